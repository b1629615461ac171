/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * A ring of one block between two CPUs that do not keep loads and stores in order
 * (libsci/msg/conn/ring.c, blocks.h), as on arm64: the litmus test "load buffering".
 *
 * The sender waits for the credit of a block (load-acquire), stores the next block,
 * then its line (store-release).  The receiver waits for the line, loads the block
 * and stores the credit.  Nothing but a barrier keeps the CPU from making the credit
 * visible before it performs the load, whose value the block of the next round has
 * replaced by then.
 *
 *   NO_BARRIER		status_store() has none
 *   NO_ACQUIRE		the sender's look at the credit is a plain load
 */
#define BLOCKS	4

byte block;		/* the number of the block that is in the ring */
byte line;		/* ... and was announced */
byte credit;		/* blocks that were read */

active proctype sender()
{
	byte n = 1;

	do
	:: n <= BLOCKS ->
#ifdef NO_ACQUIRE
		/* the store is performed before the load of the credit */
		if
		:: block = n; credit == n - 1
		:: credit == n - 1; block = n
		fi;
#else
		credit == n - 1;
		block = n;
#endif
		line = n;
		n++
	:: else -> break
	od
}

active proctype receiver()
{
	byte n = 1, got;

	do
	:: n <= BLOCKS ->
		line == n;
		if
#ifdef NO_BARRIER
		:: credit = n; got = block
#endif
		:: got = block; credit = n
		fi;
		assert(got == n);
		n++
	:: else -> break
	od
}
