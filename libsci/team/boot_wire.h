/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: frames between ranks and the launcher
 *
 * A frame is a header and up to BOOT_PAYLOAD_MAX bytes, in host byte order (little endian on
 * all machines that libsci supports). A stream carries the frames: the socket of a rank, or
 * the connection to an agent, which relays the frames of several ranks.
 *
 *	rank to launcher			launcher to rank
 *	HELLO  (arg: version)			WELCOME (struct boot_welcome, nodes)
 *	GATHER (bytes)				GATHERED (arg: -errno; all bytes)
 *	PUBLISH (name, 0, bytes)
 *	GET (arg: rank; name)			VALUE (arg: -errno; bytes)
 *	ABORT (arg: status)			DIED (arg: rank)
 *	BYE					LEFT (arg: rank)
 *
 * The launcher sends frames to all ranks in the same order. So either all ranks see a gather
 * complete before a death, or no rank does.
 */
#ifndef LIBSCI_TEAM_BOOT_WIRE_H
#define LIBSCI_TEAM_BOOT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsci/team/boot.h"

#define BOOT_VERSION		2
#define BOOT_PAYLOAD_MAX	(1u << 30)
#define BOOT_READ_SIZE		16384		/* minimum room for a read, in bytes */
#define BOOT_ALL		UINT32_MAX	/* instead of a rank: to all ranks */

enum boot_type {
	BOOT_HELLO = 1,
	BOOT_WELCOME,
	BOOT_GATHER,
	BOOT_GATHERED,
	BOOT_PUBLISH,
	BOOT_GET,
	BOOT_VALUE,
	BOOT_DIED,
	BOOT_LEFT,
	BOOT_ABORT,
	BOOT_BYE,
	BOOT_AGENT		/* from here on: between launcher and agents */
};

struct boot_frame {
	uint32_t type;			/* enum boot_type */
	uint32_t rank;			/* sender or receiver; or BOOT_ALL */
	int32_t arg;
	uint32_t len;			/* of the payload that follows */
};

struct boot_welcome {
	uint32_t rank;
	uint32_t size;
	uint32_t local_rank;
	uint32_t local_size;
	uint64_t job;
	uint8_t key[SCI_BOOT_KEY_SIZE];
	uint32_t nodes[];		/* node of each rank */
};

/* A buffer: bytes that have been read, or that wait to be written. */
struct boot_bytes {
	char *data;
	size_t from, to, room;
};

/* Make room for @n more bytes at the end. Return 0 or -ENOMEM. */
int boot_bytes_reserve(struct boot_bytes *b, size_t n);
void boot_bytes_take(struct boot_bytes *b, size_t n);

/**
 * struct boot_stream - frames over descriptors
 * @in, @out: the descriptors to read and to write; may be the same; -1: none
 *
 * The functions never block. Pipes must have O_NONBLOCK, sockets need not.
 */
struct boot_stream {
	int in, out;
	struct boot_bytes input, output;
};

/* Free the buffers. The descriptors stay open. */
void boot_stream_free(struct boot_stream *s);

/**
 * boot_stream_fill() - read bytes that have arrived
 *
 * Return: 0: some bytes were read; -EAGAIN: there are none; -ECONNRESET: the other side has
 * closed the stream; -ENOMEM.
 */
int boot_stream_fill(struct boot_stream *s);

/**
 * boot_stream_next() - take the next frame out of the bytes that have been read
 * @payload: valid until the next boot_stream_fill()
 *
 * Return: 0; -EAGAIN: the next frame is not complete; -EPROTO: its payload is too long.
 */
int boot_stream_next(struct boot_stream *s, struct boot_frame *f, const void **payload);

/**
 * boot_stream_send() - queue a frame, and write as much as possible without blocking
 *
 * Return: 0, even if bytes wait for boot_stream_flush(); -ECONNRESET: the other side has closed
 * the stream; -ENOMEM.
 */
int boot_stream_send(struct boot_stream *s, const struct boot_frame *f, const void *payload);
int boot_stream_flush(struct boot_stream *s);

/* Return how many bytes wait to be written. */
static inline size_t boot_stream_queued(const struct boot_stream *s)
{
	return s->output.to - s->output.from;
}

#endif
