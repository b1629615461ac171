/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the PCI-SCI adapter as a device of QEMU
 *
 * sci-pci.c puts the model (sim/adapter) on a PCI bus, link.c connects the model to the
 * fabric daemon, and window-direct.c maps the peers' main memory in BAR 2. Only the model
 * implements the behaviour of the card.
 *
 * All functions run under the big lock of QEMU.  Functions that the model calls must not
 * call the model: card_begin() and card_end() enclose each call of the model, and an answer
 * to the model waits for card_end().
 */
#ifndef SCI_PCI_H
#define SCI_PCI_H

#include "hw/pci/pci.h"
#include "qemu/queue.h"
#include "qemu/timer.h"

#include "sim/adapter/adapter.h"
#include "sim/switch/protocol.h"

#define TYPE_SCI_PCI	"sci-pci"

struct queued {
	uint32_t size;
	uint8_t bytes[sizeof(struct frame_packet)];
};

/**
 * struct sci_link - the cable
 * @fd: socket to the fabric daemon, or -1
 * @wanted: ENABLE is set
 * @attached: the daemon has accepted the adapter
 * @up: the cable is plugged in
 * @told: value of @up at the last report to the model
 * @error: errno of the last attempt, which was reported
 * @retry: timer that connects again
 * @queue: ring of frames for which the socket had no room
 */
struct sci_link {
	int fd;
	bool wanted;
	bool attached;
	bool up;
	bool told;
	int error;
	QEMUTimer *retry;
	struct queued *queue;
	unsigned int head;
	unsigned int queued;
};

struct sci_peer;

/**
 * struct sci_window - BAR 2 of a card with direct windows
 * @base: the range of addresses that the guest sees
 * @shown: for each ATT entry: whether it maps memory, and whether its node or the host's mapping
 *	is or was missing without a report by a barrier
 * @lost: number of entries that are lost in this way
 * @spare: mappings that are given up if the host has no more, so that the window can be unmapped
 * @pagemap: /proc/self/pagemap, which has the touched pages; @pages: the part for one ATT entry
 * @peers: this node, then the other direct nodes
 * @told_base: the export table of which the peers have a report
 * @invalidating: the invalidation of export @invalid waits for answers of the peers
 * @done: timer that ends an invalidation without answers, at @grace at the earliest
 */
struct sci_window {
	uint8_t *base;
	uint64_t size;
	struct shown {
		bool mapped;
		bool lost;
		uint16_t node;
		uint16_t export_id;
	} *shown;
	uint32_t lost;
	void *spare[4];
	int pagemap;
	uint64_t *pages;
	QTAILQ_HEAD(, sci_peer) peers;
	uint64_t told_base;
	uint32_t told_entries;
	bool invalidating;
	uint16_t invalid;
	int64_t grace;
	QEMUTimer *done;
};

enum sci_fault {
	FAULT_NONE,
	FAULT_BARRIER,		/* store barriers never end */
	FAULT_COMMAND,		/* commands never end */
	FAULT_DMA,		/* DMA never begins */
	FAULT_DMA_BUSY,		/* DMA never begins, but DMA_HEAD changes */
	FAULT_ONES,		/* registers read as ones, writes do nothing */
	FAULT_MAILBOX,		/* the mailbox claims more room than it has */
	FAULTS,
};

struct sci_card {
	PCIDevice pci;
	QTAILQ_ENTRY(sci_card) next;

	/* properties */
	struct sim_config config;
	char *socket;
	char *data_path;
	bool msix;

	struct sim_adapter *adapter;	/* NULL: the card was removed */
	MemoryRegion csr;
	MemoryRegion att;
	MemoryRegion bar2;
	QEMUTimer *timer;
	bool deadline_changed;
	uint32_t pending;		/* causes of interrupts that are pending */
	uint32_t raised;		/* causes whose MSI-X messages wait for card_end() */
	enum sci_fault fault;
	uint32_t fault_reads;		/* reads of DMA_HEAD under FAULT_DMA_BUSY */
	bool blocked;
	Error *blocker;

	struct sci_link link;
	struct sci_window window;
};

/* Enter the model. Return false if a call of a model is in progress, or @card has no model. */
bool card_begin(struct sci_card *card);
/* Leave the model and send interrupts. These may unplug the card: then @card has no model. */
void card_end(struct sci_card *card);

/* ---- link.c ---- */

void link_init(struct sci_card *card);
void link_exit(struct sci_card *card);
void link_enable(struct sci_card *card, bool enable);
void link_tell(struct sci_card *card);
void link_send_packet(struct sci_card *card, const struct sim_packet *p);
/* Send a frame that must not be lost: if the queue is full, disconnect. */
void link_send(struct sci_card *card, const void *frame, size_t size);
void link_receive(struct sci_card *card);
void link_flush(struct sci_card *card);
void link_drop(struct sci_card *card);

/* ---- window-direct.c: only with config.direct ---- */

bool window_init(struct sci_card *card, Error **errp);
void window_exit(struct sci_card *card);
void window_free(struct sci_card *card);
/* Describe the machine's main memory. QEMU keeps @fd. */
bool window_memory(struct sci_card *card, struct frame_attach *attach, int *fd,
		   Error **errp);
void window_att_changed(struct sci_card *card, uint32_t entry);
void window_invalidate(struct sci_card *card, uint16_t export_id);
/* Before a barrier, report stores to missing nodes to the model. */
void window_check(struct sci_card *card);
/* Report a change of the export table to the peers. */
void window_exports(struct sci_card *card);
void window_attached(struct sci_card *card);
void window_detached(struct sci_card *card);
/* Handle a frame of the daemon. The function keeps or closes @fd, which may be -1. */
void window_frame(struct sci_card *card, const void *frame, size_t size, int fd);

#endif
