/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: virtual time
 *
 * Each node has an adapter (sim/adapter) and one program that calls libsci/msg. A network joins
 * the nodes. The library's own objects run; standin.c replaces only functions that wait for real
 * time. No function reads a clock: the profile has the times of stores, loads, copies and
 * packets. All nodes are one process and one thread. A program runs until it has to wait
 * for an event of the simulation.
 *
 *	scenario	programs, and the evaluation of their times
 *	  libsci/msg	  the library's protocols
 *	    fabric	  the library's segments and interrupts, in the adapter's tables
 *	    standin	  the library's waits
 *	  cpu		  costs of a program's stores, loads and copies
 *	  node		  an adapter, its bus, its main memory
 *	    network	  links that packets share, and routes over the links
 *	    sockets	  the library's stream connections, over tcp
 *	      tcp	  TCP over Ethernet, where a machine has it
 *	  engine	  events in order of time, programs as coroutines
 *	    fiber	  stacks of coroutines
 *	  profile	  the figures of a machine
 *
 * Time is in picoseconds, so that rounding errors do not add up.
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
 * vt_new() - make a machine of @nodes nodes, with ids 4, 8, 12 ...
 * @profile: copied
 * @nodes: up to VT_NODES_MAX
 * @topology: see network.c; NULL: one ring of all nodes
 * @seed: seed of all random numbers
 *
 * Only one machine may exist at a time. Return: the machine; NULL, after a message.
 */
struct vt_sim *vt_new(const struct vt_profile *profile, unsigned int nodes,
		      const char *topology, uint64_t seed);
void vt_free(struct vt_sim *s);

/* Set the program of a node, which starts at time 0. A node has one program. */
void vt_start(struct vt_node *n, vt_program fn, void *arg);

/**
 * vt_run() - run until all programs have returned
 *
 * Return: true; false: the remaining programs wait for events that will never come, or the
 * limit of vt_set_limit() was reached.
 */
bool vt_run(struct vt_sim *s);

/* Set the virtual time at which vt_run() ends, even if programs still retry. Default: none. */
void vt_set_limit(struct vt_sim *s, uint64_t ps);

struct vt_node *vt_node(struct vt_sim *s, unsigned int i);
unsigned int vt_nodes(const struct vt_sim *s);
struct vt_node *vt_current(void);	/* return the node whose program runs, or NULL */
uint64_t vt_now(const struct vt_sim *s);
uint64_t vt_events(const struct vt_sim *s);
uint64_t vt_random(struct vt_sim *s);

/* Lose this number of a million packets. */
void vt_set_loss(struct vt_sim *s, uint32_t of_a_million);

/* Call @fn(@arg) at the time @when, after the events that have been set for this time before. */
void vt_at(struct vt_sim *s, uint64_t when, vt_event_fn fn, void *arg);

/* ---- for programs ---- */

/* Return the clock of the node's program. */
uint64_t vt_clock(const struct vt_node *n);

/* Advance the clock of the node's program: the program is busy for @ps picoseconds. */
void vt_busy(struct vt_node *n, uint64_t ps);

/* Run all events before the program's clock, and advance the simulation to this clock. */
void vt_sync(struct vt_node *n);

/*
 * Wait until vt_touch() reports an event at the node (such as a packet), or until the time
 * @until. Return at once if vt_touches() is not @seen any more.
 */
void vt_wait(struct vt_node *n, uint64_t seen, uint64_t until);
uint64_t vt_touches(const struct vt_node *n);

/* Report an event to a node: its program wakes up and polls. */
void vt_touch(struct vt_node *n);

/* ---- node.c ---- */

unsigned int vt_index(const struct vt_node *n);
uint16_t vt_id(const struct vt_node *n);
struct vt_sim *vt_sim_of(const struct vt_node *n);
const struct vt_profile *vt_profile_of(const struct vt_node *n);
struct sim_adapter *vt_adapter(const struct vt_node *n);
/*
 * Give a node a second bus, on which packets reach main memory, as in a gateway whose two
 * adapters are on different buses. Context: before its program starts.
 */
void vt_two_buses(struct vt_node *n);
uint32_t vt_att_max(const struct vt_node *n);	/* largest number of used entries */

/* ---- cpu.c: a program's memory accesses ---- */

/* Store @len consecutive bytes through the window, in the widest pieces. */
void vt_store(struct vt_node *n, volatile void *dst, const void *src,
	      size_t len);
/* Store 4 bytes at a time, like a memcpy() without bursts. */
void vt_store_words(struct vt_node *n, volatile void *dst, const void *src,
		    size_t len);
/* Load from the window, with a round trip for each 8 bytes. */
void vt_load(struct vt_node *n, void *dst, const volatile void *src,
	     size_t len);
void vt_flush(struct vt_node *n);
/* Flush as vt_flush() does, and wait until all stores have arrived. */
void vt_barrier(struct vt_node *n);
/* Copy local memory to local memory. */
void vt_copy(struct vt_node *n, void *dst, const void *src, size_t len);
/* Take the time of a check of the error count. */
void vt_check(struct vt_node *n);
/* Read a byte of local memory until it is @value. */
void vt_poll(struct vt_node *n, const volatile uint8_t *byte, uint8_t value);
/* Load from a register of the adapter. */
uint32_t vt_register(struct vt_node *n, uint32_t offset);

/* ---- fabric.c ---- */

/**
 * vt_share() - make memory of @owner that @user can store to and load from
 * @attr: SCI_PCI_ATT_*
 * @mem: address of the segment at @owner
 *
 * Programs without the library use this memory, which exists as long as the machine.
 * Context: before the programs start. Return: the address at @user; NULL: out of a resource.
 */
volatile void *vt_share(struct vt_node *owner, struct vt_node *user,
			size_t size, uint16_t attr, void **mem);

#endif
