/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the model of the PCI-SCI adapter
 *
 * DATASHEET.md specifies the adapter. The model is plain C, without system calls, threads or a
 * clock. The host (a device of QEMU, a simulator with its own clock, a test) calls the model for
 * each event of bus, link and time, one call at a time. The operations of struct sim_host, which
 * the model calls, must not call the model.
 */
#ifndef SIM_ADAPTER_H
#define SIM_ADAPTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kmod/pci/regs.h"
#include "sim/adapter/packet.h"

#define SIM_INITIATORS	64u
#define SIM_NEVER	UINT64_MAX	/* no timer is set */

/**
 * struct sim_config - properties of a card; the data sheet has further rules for their values
 * @node: node id
 * @serial: serial number
 * @att_entries: 256 to 65536
 * @att_page_size: 4096 to 524288 bytes
 * @streams: stream buffers, 8 or 16
 * @stream_size: bytes of each stream buffer, 64 or 128
 * @outstanding: number of outstanding transactions, 1 to 64
 * @exports: largest export table, 16 to 4096
 * @dma_max: bytes of one descriptor, at least 4096
 * @direct: the host implements the window, see struct sim_host.att_changed
 */
struct sim_config {
	uint16_t node;
	uint64_t serial;
	uint32_t att_entries;
	uint32_t att_page_size;
	uint32_t streams;
	uint32_t stream_size;
	uint32_t outstanding;
	uint32_t exports;
	uint32_t dma_max;
	bool direct;
};

/*
 * The default card: 8192 ATT entries of 64 KiB, 16 stream buffers of 128 bytes, 64 transactions,
 * 1024 exports, and 1 MiB for one DMA descriptor.
 */
extern const struct sim_config sim_config_default;

/**
 * struct sim_host - operations that the model calls
 * @now: nanoseconds on a clock that never goes back
 * @dma_read: read from main memory; false: this address has no memory
 * @dma_write: write all bytes to main memory; writes are in the order of the calls
 * @interrupt: INT_STATUS & INT_MASK has become @pending; @raised: the bits for
 *	which a message is due (data sheet, section 10)
 * @send: send a packet over the link, which may lose it
 * @connect: ENABLE was set or cleared; the host calls sim_adapter_link() later
 * @att_changed: direct: @entry was written; NULL unless direct
 * @invalidate: direct: remove an export from all windows; NULL unless direct.
 *	The host calls sim_adapter_invalidated() after @invalidate has returned
 * @deadline: sim_adapter_deadline() has changed
 */
struct sim_host {
	uint64_t (*now)(void *ctx);
	bool (*dma_read)(void *ctx, uint64_t addr, void *buf, size_t len);
	bool (*dma_write)(void *ctx, uint64_t addr, const void *buf, size_t len);
	void (*interrupt)(void *ctx, uint32_t pending, uint32_t raised);
	void (*send)(void *ctx, const struct sim_packet *p);
	void (*connect)(void *ctx, bool enable);
	void (*att_changed)(void *ctx, uint32_t entry);
	void (*invalidate)(void *ctx, uint16_t export_id);
	void (*deadline)(void *ctx);
};

struct sim_adapter;

/**
 * sim_adapter_new() - make a card in its state after a reset
 * @epoch: higher than the epoch of any earlier card with this node id
 *
 * @host and @ctx must live as long as the card. Return: the card; NULL: out of memory, or
 *	@config is invalid.
 */
struct sim_adapter *sim_adapter_new(const struct sim_config *config,
				    const struct sim_host *host, void *ctx,
				    uint64_t epoch);
void sim_adapter_free(struct sim_adapter *a);

/* Reset the card, as a PCI reset or CONTROL.RESET does. @epoch: at least, the next epoch. */
void sim_adapter_reset(struct sim_adapter *a, uint64_t epoch);

/* ---- the bus ---- */

/* Access BAR 0 and BAR 1: 4 aligned bytes; other reads return ones. */
uint32_t sim_csr_read(struct sim_adapter *a, uint32_t offset);
void sim_csr_write(struct sim_adapter *a, uint32_t offset, uint32_t value);
uint32_t sim_att_read(struct sim_adapter *a, uint32_t offset);
void sim_att_write(struct sim_adapter *a, uint32_t offset, uint32_t value);

enum sim_bus {
	SIM_BUS_DONE,
	SIM_BUS_WAIT,	/* call again, with the same arguments, after the model has received
			 * a packet or run its timer, or the link or a register has changed */
};

/**
 * sim_window_write() - store @len bytes (1 to 64, in one line)
 * @initiator: below SIM_INITIATORS
 */
enum sim_bus sim_window_write(struct sim_adapter *a, unsigned int initiator,
			      uint64_t offset, const void *data, size_t len);

/**
 * sim_window_read() - load @len bytes (1 to 8, in one line)
 *
 * An initiator makes one load at a time.
 */
enum sim_bus sim_window_read(struct sim_adapter *a, unsigned int initiator,
			     uint64_t offset, void *data, size_t len);

/* ---- the link ---- */

/* Receive a packet of @len bytes, which may be hostile. */
void sim_adapter_receive(struct sim_adapter *a, const void *packet, size_t len);

/* Tell the model that the cable has been plugged in or pulled out. */
void sim_adapter_link(struct sim_adapter *a, bool up);

/*
 * Tell the model that its request @packet was not delivered, because the node does not exist.
 * The effect is that of a response with status SCI_PCI_ERR_NODE.
 */
void sim_adapter_no_node(struct sim_adapter *a, const void *packet, size_t len);

/* Report that no direct window contains the export any more. */
void sim_adapter_invalidated(struct sim_adapter *a, uint16_t export_id);

/* ---- time ---- */

/*
 * Return the time of the next call of sim_adapter_timer(), on the host's clock, or SIM_NEVER.
 * sim_adapter_timer() may find nothing to do at this time. If the time is not in the future, the
 * last call of the model did not finish its work.
 */
uint64_t sim_adapter_deadline(const struct sim_adapter *a);
void sim_adapter_timer(struct sim_adapter *a);

/* ---- for hosts with direct windows ---- */

struct sim_att_entry {
	uint16_t node;
	uint16_t attr;
	uint16_t export_id;
	uint64_t offset;
};

void sim_att_get(const struct sim_adapter *a, uint32_t entry,
		 struct sim_att_entry *e);

/*
 * Report that accesses through @entry have reached no node, as an error NODE. The host calls
 * this function before the read of BARRIER or CHECK that covers these accesses.
 */
void sim_adapter_unreachable(struct sim_adapter *a, uint32_t entry);

/* Return the registers EXPORT_BASE and EXPORT_ENTRIES; @entries is 0 if the table has stopped. */
void sim_export_table(const struct sim_adapter *a, uint64_t *base,
		      uint32_t *entries);

/* Return a counter without a bus access. */
uint64_t sim_counter(const struct sim_adapter *a, enum sci_pci_counter c);

#endif
