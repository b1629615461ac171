/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Model of a ring of one block between two CPUs that reorder loads and stores, such as
 * arm64 (libsci/msg/conn/ring.c, blocks.h): the litmus test "load buffering".
 *
 * The sender waits for the credit of a block (load-acquire), stores the next block, then
 * its line (store-release).  The receiver waits for the line, loads the block, and stores
 * the credit.  Without a barrier the receiver's CPU may make the credit visible before it
 * performs the load.  The load then returns the block of the next round.
 *
 * Mutations, each of which must fail:
 *   NO_BARRIER		status_store() has no barrier
 *   NO_ACQUIRE		the sender loads the credit without acquire
 */
#define BLOCKS	4

byte block;		/* number of the block in the ring */
byte line;		/* number of the announced block */
byte credit;		/* number of blocks read */

active proctype sender()
{
	byte n = 1;

	do
	:: n <= BLOCKS ->
#ifdef NO_ACQUIRE
		/* the CPU may store the block before it loads the credit */
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
