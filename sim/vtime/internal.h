/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Interface between the parts of the virtual machine. */
#ifndef SIM_VTIME_INTERNAL_H
#define SIM_VTIME_INTERNAL_H

#include "libsci/fabric/core/fabric.h"
#include "sim/vtime/fiber.h"
#include "sim/vtime/vtime.h"

#define VT_ATT_PAGE	65536u
#define VT_ATT_ENTRIES	4096u
#define VT_EXPORTS	1024u
#define VT_RX_ENTRIES	64u

struct vt_fabric;
struct vt_network;

struct vt_event {
	uint64_t when;
	uint64_t turn;		/* of two at one time the older one is first */
	vt_event_fn fn;
	void *arg;
};

struct vt_sim {
	struct vt_profile profile;
	uint64_t now;
	uint64_t turn;
	uint64_t random;
	struct vt_event *heap;
	size_t events, room;
	uint64_t done;			/* events, ever */

	struct vt_node *node;
	unsigned int nodes;
	unsigned int running;		/* programs that have not returned */
	struct vt_node *current;
	struct fiber main;

	struct vt_network *network;
	struct vt_packet *spare;	/* packets that have arrived */
	struct vt_packet *packets;	/* all of them */
	uint32_t loss;			/* of a million packets */
	uint64_t limit;			/* when it is given up */
	uint8_t *windows;		/* addresses of all windows; no memory */
};

/* Status words as the adapter writes them, behind the words that the kernel counts. */
struct vt_words {
	struct sci_link_words link;
	uint32_t fatal;
	uint32_t done;
};

struct vt_node {
	struct vt_sim *sim;
	unsigned int index;
	uint16_t id;

	/* its program */
	uint64_t clock;
	vt_program fn;
	void *arg;
	struct fiber fiber;
	bool waits;
	bool waking;			/* an event for that is on its way */
	uint64_t touches;
	unsigned int rings;		/* interrupts it has not taken yet */
	uint64_t until;			/* how long it waits at most */
	uint64_t limit;			/* when that is looked at next */

	/* its adapter */
	struct sim_adapter *adapter;
	uint64_t bus_free;		/* when the bus is */
	uint64_t bus_in_free;		/* ... that packets come in by, if it is another one */
	bool two_buses;
	uint64_t timer;			/* when sim_adapter_timer() is called next */
	uint64_t taken;			/* when what comes in was, by the bus */
	bool interrupt;			/* an event for it is on its way */
	uint32_t rx_head;
	uint8_t *window;		/* addresses */
	struct vt_words *words;		/* status words */
	uint8_t *rx;			/* receive ring */
	uint8_t *exports;		/* export table */

	struct vt_fabric *fabric;
};

/* node.c */
bool node_init(struct vt_sim *s, struct vt_node *n, unsigned int index);
void node_fini(struct vt_node *n);
void node_free_packets(struct vt_sim *s);
uint8_t *node_pages_get(size_t size);
void node_pages_put(uint8_t *p, size_t size);
uint64_t node_bus(struct vt_node *n, uint64_t from, uint64_t time);

/* network.c */
struct vt_network *network_new(struct vt_sim *s, const char *topology);
void network_free(struct vt_network *net);
uint64_t network_pass(struct vt_network *net, unsigned int from,
		      unsigned int to, uint64_t when, uint64_t bytes);

/* fabric.c */
bool fabric_init(struct vt_node *n);
void fabric_fini(struct vt_node *n);
void fabric_drop(vt_event_fn fn, void *arg);
void fabric_interrupt(struct vt_node *n, uint32_t value);
struct sci_fabric *fabric_of(struct vt_node *n);

#endif
