/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: injected faults
 *
 * SCI_FAULT is a comma-separated list, read when the library initializes:
 *
 *	loss=P		each 64-byte packet that a library call writes to remote
 *			memory is lost with probability P (0..1); the adapter's
 *			error count rises (plain stores are never lost)
 *	reorder=P	such a packet is held back with probability P, so that
 *			later packets overtake it: each later packet and each
 *			check of the error count delivers it with probability
 *			1/2, the next store barrier and the next packet for the
 *			same line always deliver it
 *	dup=P		such a packet arrives twice with probability P: a copy
 *			is held back by the same rule
 *	retriable=P	a sequence check finds an error with probability P
 *	fatal=P		a sequence check finds the connection lost with
 *			probability P; it then stays lost
 *	linkdown=T:D	the link is down from T to T + D milliseconds after
 *			initialization; T alone: from T on; may be repeated
 *	seed=N		makes a run repeatable (default 1)
 *
 * At most 64 packets are held back: a further one delivers the oldest.  A barrier
 * or a packet of any thread may deliver held packets of all threads.
 * Code that unmaps remote memory calls sci_fault_forget() first.
 */
#ifndef LIBSCI_FAULT_H
#define LIBSCI_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsci/fabric/core/fabric.h"
#include "libsci/pio/pio.h"

extern _Atomic bool sci_fault_enabled __attribute__((visibility("hidden")));

/**
 * sci_fault_init() - read SCI_FAULT
 * @spec: the value of SCI_FAULT; NULL or "": no faults
 *
 * Packets that are held back are dropped. Context: no remote memory is mapped.
 * -EINVAL: an unknown word, or a number out of range.
 */
int sci_fault_init(const char *spec);

/* Faults that this process has injected since sci_fault_init(). */
struct sci_fault_counts {
	_Atomic uint64_t lost;		/* packets, by loss=P */
	_Atomic uint64_t cut;		/* packets lost because the link was down */
	_Atomic uint64_t late;		/* packets held back, by reorder=P */
	_Atomic uint64_t copies;	/* packets that arrive twice, by dup=P */
};

extern struct sci_fault_counts sci_fault_counts __attribute__((visibility("hidden")));

/* Drop the held packets in the child of a fork: the parent delivers them. */
void sci_fault_fork(void);

/**
 * sci_fault_forget() - deliver the packets held for [@addr, @addr + @len)
 *
 * Call it before the range is unmapped: a late packet would hit the next mapping there.
 */
void sci_fault_forget(volatile void *addr, size_t len);

/**
 * sci_fault_link() - get the state of the link that SCI_FAULT sets for a time
 * @elapsed_ms: milliseconds since initialization
 * @next_ms: receives the time of the next change, like @elapsed_ms; UINT64_MAX: never
 *
 * Return: true while the link is down.
 */
bool sci_fault_link(uint64_t elapsed_ms, uint64_t *next_ms);

/* The slow paths of the inline functions below. */
void sci_fault_later(void);
void sci_fault_write(volatile void *dst, const void *src, size_t len,
		     struct sci_link_status *link);
void sci_fault_line(volatile void *dst, const void *src,
		    struct sci_link_status *link);
void sci_fault_check(struct sci_rseg_status *st);
void sci_fault_deliver(void);

/**
 * sci_remote_write() - store to remote memory, with injected faults
 * @link: the link whose error count a loss raises
 */
static inline void sci_remote_write(volatile void *dst, const void *src,
				    size_t len, struct sci_link_status *link)
{
	if (atomic_load_explicit(&sci_fault_enabled, memory_order_relaxed))
		sci_fault_write(dst, src, len, link);
	else
		sci_link_write(link, dst, src, len);
}

/**
 * sci_remote_line() - store one line like sci_pio_line(), with injected faults
 * @dst: aligned to 64 bytes
 *
 * The line is one packet. The adapter sends it at once. It arrives whole, perhaps late or twice,
 * but before a later packet for the same line.
 */
static inline void sci_remote_line(volatile void *dst, const void *src,
				   struct sci_link_status *link)
{
	if (atomic_load_explicit(&sci_fault_enabled, memory_order_relaxed))
		sci_fault_line(dst, src, link);
	else
		sci_link_line(link, dst, src);
	sci_link_flush(link);
}

/**
 * sci_remote_errors() - get the link's error count
 *
 * The call also delivers some of the held packets.
 */
static inline uint32_t sci_remote_errors(struct sci_link_status *link)
{
	if (atomic_load_explicit(&sci_fault_enabled, memory_order_relaxed))
		sci_fault_later();
	return sci_link_errors(link);
}

/**
 * sci_remote_barrier() - do the fabric's store barrier, with injected faults
 *
 * On return all packets of sci_remote_write() and sci_remote_line() have arrived or are lost.
 */
static inline void sci_remote_barrier(struct sci_fabric *f,
				      struct sci_rseg *r)
{
	if (atomic_load_explicit(&sci_fault_enabled, memory_order_relaxed))
		sci_fault_deliver();
	f->ops->rseg.store_barrier(f, r);
}

/* Inject faults before a sequence check reads @st. */
static inline void sci_remote_check(struct sci_rseg_status *st)
{
	if (atomic_load_explicit(&sci_fault_enabled, memory_order_relaxed))
		sci_fault_check(st);
}

#endif
