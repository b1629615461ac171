/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: where code goes
 *
 * Who waits for a message runs little else while it waits, and a lot of other code
 * when it has come: the program's, MPI's.  What of ours comes next has left the
 * nearest caches and predictors then, and a call takes longer than what it calls, of
 * which a loop in which a program talks to itself shows nothing.  So the way of a
 * message that goes or comes at once is in as few functions as it can be, and those
 * lie together.
 */
#ifndef LIBSCI_COMPILER_H
#define LIBSCI_COMPILER_H

/* On the way of every short message. */
#define __hot			__attribute__((hot))

#ifndef __always_inline			/* glibc has it */
#define __always_inline		inline __attribute__((always_inline))
#endif

#endif
