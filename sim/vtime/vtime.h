/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: virtual time
 *
 * Nodes with an adapter each (sim/adapter), a network between them, and on each
 * node one program that calls libsci/msg: the objects of the library itself, in
 * which only what waits for real time is exchanged (standin.c).  Nothing here
 * looks at a clock: time passes by what the profile says that stores, loads,
 * copies and packets take.  All nodes are one process and one thread; a program
 * runs until it has to wait for something in the virtual world.
 *
 *	scenario	programs, and what is made of their times
 *	  libsci/msg	  the library's protocols
 *	    fabric	  its segments and interrupts, by the adapter's tables
 *	    standin	  its waiting
 *	  cpu		  what a program's stores, loads and copies cost
 *	  node		  an adapter, its bus, its main memory
 *	    network	  links that packets share, and the ways through them
 *	  engine	  events in order of time, programs as coroutines
 *	    fiber	  their stacks
 *	  profile	  the figures of a machine
 *
 * Time is in picoseconds, so that nothing is rounded that adds up.
 */
#ifndef SIM_VTIME_H
#define SIM_VTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/adapter/adapter.h"
#include "sim/vtime/profile.h"

#define VT_NODES_MAX	16383u		/* ids: 16 bits, in steps of 4 */
#define VT_NEVER	UINT64_MAX
#define VT_NS		1000u		/* picoseconds */
#define VT_US		1000000u
#define VT_MS		1000000000u

struct vt_sim;
struct vt_node;

/* ---- engine.c ---- */

typedef void (*vt_event_fn)(void *arg);
typedef void (*vt_program)(struct vt_node *n, void *arg);

/**
 * vt_new() - a machine of @nodes nodes, with ids 4, 8, 12 ...
 * @profile: copied
 * @nodes: up to VT_NODES_MAX
 * @topology: see network.c; NULL: one ring of all nodes
 * @seed: seed of all random numbers
 *
 * Returns NULL and prints why.  There can be several, one after the other.
 */
struct vt_sim *vt_new(const struct vt_profile *profile, unsigned int nodes,
		      const char *topology, uint64_t seed);
void vt_free(struct vt_sim *s);

/* Set the program of a node, one for each. It starts at time 0. */
void vt_start(struct vt_node *n, vt_program fn, void *arg);

/**
 * vt_run() - until all programs have returned
 *
 * Returns false if those that are left wait for something that will not come, or
 * have not done at the limit.
 */
bool vt_run(struct vt_sim *s);

/* Set the time after which a program that only retries is ended; default: never. */
void vt_set_limit(struct vt_sim *s, uint64_t ps);

struct vt_node *vt_node(struct vt_sim *s, unsigned int i);
unsigned int vt_nodes(const struct vt_sim *s);
struct vt_node *vt_current(void);	/* whose program runs; NULL: none */
uint64_t vt_now(const struct vt_sim *s);
uint64_t vt_events(const struct vt_sim *s);
uint64_t vt_random(struct vt_sim *s);

/* Lose this number of a million packets. */
void vt_set_loss(struct vt_sim *s, uint32_t of_a_million);

/* Call @fn(@arg) at @when, after the events that are due by then already. */
void vt_at(struct vt_sim *s, uint64_t when, vt_event_fn fn, void *arg);

/* ---- for programs ---- */

/* The node's own time: what its program has used up. */
uint64_t vt_clock(const struct vt_node *n);

/* Keep the program busy for a time. */
void vt_busy(struct vt_node *n, uint64_t ps);

/* Run all events that are due before the program's time, and advance the world to it. */
void vt_sync(struct vt_node *n);

/*
 * Wait until something happens at the node (a packet, an event), or @until.
 * Returns at once if something has since vt_touches() was @seen.
 */
void vt_wait(struct vt_node *n, uint64_t seen, uint64_t until);
uint64_t vt_touches(const struct vt_node *n);

/* Tell a node that something has happened: its program polls. */
void vt_touch(struct vt_node *n);

/* ---- node.c ---- */

unsigned int vt_index(const struct vt_node *n);
uint16_t vt_id(const struct vt_node *n);
struct vt_sim *vt_sim_of(const struct vt_node *n);
const struct vt_profile *vt_profile_of(const struct vt_node *n);
struct sim_adapter *vt_adapter(const struct vt_node *n);
/*
 * Before its program starts: packets reach main memory by a bus of their own, as in a gateway
 * whose two adapters are on different buses.
 */
void vt_two_buses(struct vt_node *n);
uint32_t vt_att_max(const struct vt_node *n);	/* entries ever used at once */

/* ---- cpu.c: a program's memory accesses ---- */

/* Store @len consecutive bytes through the window, in the widest pieces. */
void vt_store(struct vt_node *n, volatile void *dst, const void *src,
	      size_t len);
/* Store 4 bytes at a time, as a memcpy() that makes no bursts. */
void vt_store_words(struct vt_node *n, volatile void *dst, const void *src,
		    size_t len);
/* Load from the window, with a round trip for each 8 bytes. */
void vt_load(struct vt_node *n, void *dst, const volatile void *src,
	     size_t len);
void vt_flush(struct vt_node *n);
/* ... and wait until all stores have arrived. */
void vt_barrier(struct vt_node *n);
/* Copy local memory to local memory. */
void vt_copy(struct vt_node *n, void *dst, const void *src, size_t len);
/* Check the error count. */
void vt_check(struct vt_node *n);
/* Look at a byte of local memory until it is @value. */
void vt_poll(struct vt_node *n, const volatile uint8_t *byte, uint8_t value);
/* A load from a register of the adapter. */
uint32_t vt_register(struct vt_node *n, uint32_t offset);

/* ---- fabric.c ---- */

/**
 * vt_share() - memory of @owner that @user can store to and load from
 * @attr: SCI_PCI_ATT_*
 * @mem: address of the segment at @owner
 *
 * For programs that use no library, before they start; it lives as long as the
 * machine.  Returns @user's address of it, NULL: out of something.
 */
volatile void *vt_share(struct vt_node *owner, struct vt_node *user,
			size_t size, uint16_t attr, void **mem);

#endif
