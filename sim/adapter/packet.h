/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: packets between adapters
 *
 * A request is one packet, and its response is one packet (data sheet, section 6). Packets are
 * little-endian and have no padding. Adapters send only `size` bytes of a packet.
 */
#ifndef SIM_ADAPTER_PACKET_H
#define SIM_ADAPTER_PACKET_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_DATA_MAX		128
#define PACKET_WINDOW		256u	/* a request's number is below floor + PACKET_WINDOW */

enum packet_kind {
	PACKET_WRITE = 1,	/* data, mask (16 bytes only) */
	PACKET_READ,		/* length */
	PACKET_LOCK,		/* adds 1 to 4 bytes and returns the old value */
	PACKET_MAILBOX,		/* 64 bytes of data */
	PACKET_INTERRUPT,	/* value */
	PACKET_READ_CSR,	/* address: the offset */
	PACKET_RESPONSE = 0x80,	/* or'ed to the request's kind; has status and data */
};

/**
 * struct sim_packet - a packet
 * @crc: CRC-32 (as zlib's) of all bytes behind @crc
 * @kind: enum packet_kind
 * @status: responses: enum sci_pci_error
 * @size: bytes of the packet, header and data
 * @source: node that sends it
 * @target: node that receives it
 * @mask: PACKET_WRITE of 16 bytes: the bytes that are written; else 0.  Other sizes,
 *	of DMA, have no mask
 * @length: PACKET_READ: number of bytes to read
 * @epoch: requests: epoch of the sender, higher after each reset; responses: epoch of the request
 * @number: requests: counted for each target; responses: number of the request
 * @floor: requests: the sender has no outstanding request with a lower number
 * @address: export id << 32, offset; PACKET_READ_CSR: offset
 * @value: PACKET_INTERRUPT; responses to PACKET_LOCK and PACKET_READ_CSR
 * @data: @size - PACKET_HEADER bytes
 */
struct sim_packet {
	uint32_t crc;
	uint8_t kind;
	uint8_t status;
	uint16_t size;
	uint16_t source;
	uint16_t target;
	uint16_t mask;
	uint16_t length;
	uint64_t epoch;
	uint32_t number;
	uint32_t floor;
	uint64_t address;
	uint32_t value;
	uint32_t reserved;
	uint8_t data[PACKET_DATA_MAX];
};

#define PACKET_HEADER	offsetof(struct sim_packet, data)

static_assert(PACKET_HEADER == 48, "packets have no padding");
static_assert(sizeof(struct sim_packet) == PACKET_HEADER + PACKET_DATA_MAX,
	      "packets have no padding");

/* Return the check sum of @p, whose size must be right. */
uint32_t packet_crc(const struct sim_packet *p);

#endif
