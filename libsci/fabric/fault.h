/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: injected faults
 *
 * SCI_FAULT is a comma-separated list, read when the library initializes:
 *
 *	loss=P		each 64-byte packet that a library call writes to remote
 *			memory is lost with probability P (0..1); the adapter's
 *			error count rises (plain stores cannot be lost here)
 *	retriable=P	a sequence check finds an error with probability P
 *	fatal=P		a sequence check finds the connection lost with
 *			probability P; it then stays lost
 *	linkdown=T:D	the link is down from T to T + D milliseconds after
 *			initialization; T alone: from T on; may be repeated
 *	seed=N		makes a run repeatable (default 1)
 */
#ifndef LIBSCI_FAULT_H
#define LIBSCI_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsci/fabric/fabric.h"
#include "libsci/pio/pio.h"

extern _Atomic bool sci_fault_enabled __attribute__((visibility("hidden")));

/**
 * sci_fault_init() - read SCI_FAULT
 * @spec: its value; NULL or "": no faults
 *
 * -EINVAL: a word that is none of the above, or a number out of range.
 */
int sci_fault_init(const char *spec);

/**
 * sci_fault_link() - what the link should be doing now
 * @elapsed_ms: since initialization
 * @next_ms: receives when that changes next; UINT64_MAX: never
 *
 * Returns true while the link is to be down.
 */
bool sci_fault_link(uint64_t elapsed_ms, uint64_t *next_ms);

/* Slow paths of the inline functions below. */
void sci_fault_write(volatile void *dst, const void *src, size_t len,
		     struct sci_link_status *link);
void sci_fault_check(struct sci_rseg_status *st);

/**
 * sci_remote_write() - store to remote memory, under the faults asked for
 * @link: whose error count a loss raises
 */
static inline void sci_remote_write(volatile void *dst, const void *src,
				    size_t len, struct sci_link_status *link)
{
	if (atomic_load_explicit(&sci_fault_enabled, memory_order_relaxed))
		sci_fault_write(dst, src, len, link);
	else
		sci_pio_write(dst, src, len, link->map);
}

/**
 * sci_remote_check() - to be called before a sequence check reads @st
 */
static inline void sci_remote_check(struct sci_rseg_status *st)
{
	if (atomic_load_explicit(&sci_fault_enabled, memory_order_relaxed))
		sci_fault_check(st);
}

#endif
