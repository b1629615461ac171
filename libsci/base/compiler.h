/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: where code goes
 *
 * A program that waits for a message runs little else meanwhile, and runs a lot of
 * other code when the message has come: its own, and MPI's.  By then libsci's code has
 * left the nearest caches and predictors, so that a call can cost more than the
 * function that it calls.  A ping-pong in a tight loop does not show this.  Therefore
 * the fast path of a message is in as few functions as possible, and the compiler
 * puts these functions next to each other.
 */
#ifndef LIBSCI_COMPILER_H
#define LIBSCI_COMPILER_H

/* This attribute marks functions that every short message runs through. */
#define __hot			__attribute__((hot))

#ifndef __always_inline			/* defined by glibc */
#define __always_inline		inline __attribute__((always_inline))
#endif

#endif
