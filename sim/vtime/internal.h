/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Interface between the parts of the simulation. */
#ifndef SIM_VTIME_INTERNAL_H
#define SIM_VTIME_INTERNAL_H

#include "libsci/fabric/core/fabric.h"
#include "sim/vtime/fiber.h"
#include "sim/vtime/vtime.h"

#define VT_ATT_PAGE	65536u
#define VT_ATT_ENTRIES	4096u
#define VT_EXPORTS	1024u
#define VT_RX_ENTRIES	64u

struct sci_service;
struct vt_fabric;
struct vt_frame;
struct vt_network;
struct vt_tcp;

struct vt_event {
	uint64_t when;
	uint64_t turn;		/* order of events at the same time */
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
	uint64_t done;			/* number of events that have run */

	struct vt_node *node;
	unsigned int nodes;
	unsigned int running;		/* programs that have not returned */
	struct vt_node *current;
	struct fiber main;

	struct vt_network *network;
	struct vt_packet *spare;	/* packets that have arrived */
	struct vt_packet *packets;	/* all packets */
	bool ethernet;			/* no adapter has a cable */
	struct vt_tcp *tcp;		/* all ends of connections */
	struct vt_frame *frames;	/* all packets of Ethernet */
	struct vt_frame *spare_frames;
	uint64_t ether_frames, ether_bytes;	/* sent so far */
	uint32_t loss;			/* of a million packets */
	uint64_t limit;			/* time at which vt_run() ends */
	uint8_t *windows;		/* addresses of all windows; no memory */
};

/* Status words: those that the kernel counts, then from link.hw_errors on the adapter's words. */
struct vt_words {
	struct sci_link_words link;
	uint32_t fatal;
	uint32_t done;
};

struct vt_node {
	struct vt_sim *sim;
	unsigned int index;
	uint16_t id;

	/* the program */
	uint64_t clock;
	vt_program fn;
	void *arg;
	struct fiber fiber;
	bool waits;
	bool waking;			/* the event node_touched() is set */
	uint64_t touches;
	unsigned int rings;		/* number of pending interrupts */
	uint64_t until;			/* time limit of the present wait */
	uint64_t limit;			/* time of the next event limit_reached() */

	/* the adapter */
	struct sim_adapter *adapter;
	uint64_t bus_free;		/* time at which the bus is free */
	uint64_t bus_in_free;		/* time at which the second bus is free */
	bool two_buses;
	uint64_t timer;			/* time of the next event node_timer() */
	uint64_t taken;			/* see vt_packet.taken: of the present packet */
	bool interrupt;			/* the event node_interrupts() is set */
	uint32_t rx_head;
	uint8_t *window;		/* addresses */
	struct vt_words *words;		/* status words */
	uint8_t *rx;			/* receive ring */
	uint8_t *exports;		/* export table */

	struct vt_fabric *fabric;

	/* TCP */
	uint64_t wire_free;		/* time at which the card has sent all packets */
	uint64_t card_free;		/* time at which all received packets are in memory */
	uint64_t kernel_free;		/* time at which all interrupts are handled */
	struct sci_service *service;	/* of the library's net fabric; NULL: none */
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

/* tcp.c */
void tcp_free(struct vt_sim *s);

/* sockets.c: forget the sockets of programs that have not ended */
void sockets_forget(const struct vt_sim *s);

/* fabric.c */
bool fabric_init(struct vt_node *n);
void fabric_fini(struct vt_node *n);
void fabric_drop(vt_event_fn fn, void *arg);
void fabric_interrupt(struct vt_node *n, uint32_t value);
struct sci_fabric *fabric_of(struct vt_node *n);

#endif
