/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the figures of a machine
 *
 * A profile is a text file of lines "NAME VALUE # SOURCE", in sim/profiles; all names must
 * appear, once each. A machine without Ethernet has none of the figures of TCP. Times are nanoseconds with a fraction, in memory picoseconds.
 *
 * A store of a line takes the bus for @bus_line; a shorter store takes it for @bus_word for
 * each 4 bytes. The time of a packet is @adapter_out, then each link's serialization
 * (@link_header and the data, at @link_rate) and @link_hop, then @adapter_in, and the target's
 * bus for @mem_setup and the data at @mem_rate; programs see the data @mem_latency later. A
 * response has the same times, up to @adapter_in. The answer to a read starts when memory has
 * delivered the data. The answer to a store, which the bus posts, starts when main memory has
 * taken its address: after @mem_setup.
 *
 * A load from a remote line that was read ahead takes the bus for @bus_word.
 * This time may be too short: in the model, reads of blocks are six to seven times slower than
 * stores, and in the papers about ten times.
 */
#ifndef SIM_VTIME_PROFILE_H
#define SIM_VTIME_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

struct vt_profile {
	char name[16];
	char title[96];

	/* the adapter's capabilities */
	uint64_t streams;		/* stream buffers */
	uint64_t stream_size;		/* bytes of each */
	uint64_t outstanding;		/* transactions */
	uint64_t gather;		/* ps after which a buffer leaves that is not full */

	/* CPU and memory; ps */
	uint64_t load_local;		/* a load from main memory */
	uint64_t copy_setup;		/* start of a local copy */
	uint64_t copy_rate;		/* bytes a second of a local copy */
	uint64_t line_put;		/* composing a line: 64 bytes in the cache */
	uint64_t line_take;		/* taking a line off a ring, and testing it */
	uint64_t check;			/* a check of the error count */
	uint64_t atomic;		/* a locked instruction */

	/* bus; ps */
	uint64_t bus_line;		/* a store of a whole line, as one burst */
	uint64_t bus_fpu;		/* a store of a line by the FPU, 8 bytes at a time */
	uint64_t bus_word;		/* a store of up to 4 bytes */
	uint64_t bus_read;		/* a load from the adapter's registers */
	uint64_t mem_setup;		/* start of the adapter's write to main memory */
	uint64_t mem_rate;		/* bytes a second of this write */
	uint64_t mem_latency;		/* from the end of this write to a program's load */

	/* adapter and links; ps */
	uint64_t adapter_out;
	uint64_t adapter_in;
	uint64_t link_header;		/* bytes of a packet besides its data */
	uint64_t link_rate;		/* bytes a second */
	uint64_t link_hop;
	uint64_t interrupt;		/* from a packet to the program */
	uint64_t control;		/* a request to another node's kernel, and back */

	/* TCP over Ethernet, see tcp.h; ps */
	uint64_t ether_rate;		/* bytes a second; 0: no Ethernet, and no other figure */
	uint64_t tcp_buffer;		/* bytes of a socket, in each direction */
	uint64_t tcp_call;		/* a call of a socket, without the work for its bytes */
	uint64_t tcp_output;		/* sending a segment */
	uint64_t tcp_input;		/* receiving a segment, after the interrupt */
	uint64_t tcp_interrupt;		/* an interrupt, and the driver's work for a packet */
	uint64_t tcp_switch;		/* a context switch to a program that was asleep */
	uint64_t tcp_path;		/* added to the time of a packet; no processor is busy */
};

/* Read a profile. Return false after printing an error. */
bool vt_profile_read(struct vt_profile *p, const char *path);

/*
 * Find and read a profile. @name: a path, with a slash, or NAME of the file NAME.profile in
 * @folder. @folder is NULL: the installed profiles, else sim/profiles of the source tree.
 */
bool vt_profile_find(struct vt_profile *p, const char *folder, const char *name);

static inline uint64_t vt_transfer(uint64_t bytes, uint64_t rate)
{
	return bytes * UINT64_C(1000000000000) / rate;
}

/* Return the time of one packet of @bytes from the adapter to the next node's main memory. */
static inline uint64_t vt_way(const struct vt_profile *p, uint64_t bytes)
{
	return p->adapter_out + p->link_hop + p->adapter_in +
	       vt_transfer(p->link_header + bytes, p->link_rate) +
	       p->mem_setup + vt_transfer(bytes, p->mem_rate) + p->mem_latency;
}

#endif
