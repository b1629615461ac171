/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Model of the credits of ways through two gateways (libsci/madeleine/gateway.c, way.c).
 * Ways 0 and 1 go from left to right, way 2 from right to left; all share the link between
 * the gateways.  A sender has at most WINDOW blocks under way.  The last gateway returns a
 * credit when the receiver has taken CREDIT blocks.  A gateway takes every block, and
 * queues blocks that it can't send yet.  The receiver of way 0 starts when the other
 * receivers have all their blocks.
 *
 * Properties: each receiver gets all blocks, in order; gateways hold at most WINDOW blocks
 * of a way; their queues have room.  A cycle of waits is an invalid end state.
 *
 * Mutations, each of which must fail:
 *   NO_CREDITS	senders do not wait for credits: memory of gateways has no limit
 *   FIRST	the first gateway returns the credit when it has forwarded the block
 *   WAITS	a gateway takes no block while it holds one
 *   SMALL	the window is smaller than a credit
 */
#ifndef ITEMS
#define ITEMS	3
#endif
#ifndef CREDIT
#define CREDIT	2
#endif
#ifdef SMALL
#define WINDOW	(CREDIT - 1)
#else
#define WINDOW	2
#endif
#ifndef WAYS
#define WAYS	3
#endif

#define FIRST_OF(way)	(way == 2)	/* the gateway next to the sender */
#define LAST_OF(way)	(way != 2)
#define QUEUE		(WAYS * (WINDOW + 1))

chan enter[WAYS] = [1] of { byte };		/* from a sender to its gateway */
chan leave[WAYS] = [WINDOW] of { byte };	/* blocks that wait for their receiver */
chan credit[WAYS] = [ITEMS] of { bit };		/* credits for a sender */
chan out[2] = [QUEUE] of { byte, byte };	/* to the other gateway; 0: a credit */
chan link[2] = [1] of { byte, byte };

byte held[WAYS];		/* blocks in both gateways */
byte holds[2];			/* blocks in one gateway */
byte taken[WAYS];		/* by the receiver: completions at the last gateway */
byte credits_due[WAYS];		/* completions since the last credit */
byte finished;			/* number of receivers that have all blocks */

proctype sender(byte way)
{
	byte n = 1, credits = WINDOW;

	do
	:: n > ITEMS -> break
	:: else ->
#ifndef NO_CREDITS
		if
		:: credits
		:: else -> credit[way]?_; credits = credits + CREDIT
		fi;
		credits--;
#endif
		enter[way]!n;
		n++
	od
}

proctype receiver(byte way)
{
	byte n = 1;

	if
	:: way -> skip
	:: else -> finished == WAYS - 1
	fi;
	do
	:: n > ITEMS -> break
	:: else ->
		/* eval() accepts only the block with this number */
		atomic { leave[way]?eval(n) -> taken[way]++ };
		n++
	od;
	finished++
}

inline queue(me, way, n)
{
	assert(nfull(out[me]));
	out[me]!way, n
}

/* Count a block for the next credit. */
inline count(me, way)
{
#ifndef FIRST
	credits_due[way]++;
	if
	:: credits_due[way] == CREDIT ->
		credits_due[way] = 0;
		queue(me, way, 0)
	:: else
	fi
#else
	skip
#endif
}

#ifdef WAITS
#define READY	(!holds[me])
#else
#define READY	true
#endif

/* Take a block from a sender. */
#define ENTER(way)							\
	:: atomic { FIRST_OF(way) == me && READY && nempty(enter[way]) -> \
		enter[way]?n;						\
		held[way]++;						\
		holds[me]++;						\
		assert(held[way] <= WINDOW);				\
		queue(me, way, n);					\
		n = 0							\
	}

/* The receiver has taken a block. */
#define TAKEN(way)							\
	:: atomic { LAST_OF(way) == me && taken[way] ->			\
		taken[way]--;						\
		held[way]--;						\
		holds[me]--;						\
		count(me, way)						\
	}

/* Take a credit or a block for a receiver from the other gateway. */
inline take_link(me)
{
	link[!me]?way, n;
	if
	:: n ->
		holds[me]++;
		assert(nfull(leave[way]));
		leave[way]!n
	:: else ->
		assert(nfull(credit[way]));
		credit[way]!true
	fi;
	d_step { way = 0; n = 0 }
}

/* Send the oldest entry of the queue over the link. */
inline send_on(me)
{
	out[me]?way, n;
	link[me]!way, n;
	if
	:: n ->
		holds[me]--;
#ifdef FIRST
		assert(nfull(credit[way]));
		credits_due[way]++;
		if
		:: credits_due[way] == CREDIT ->
			credits_due[way] = 0;
			credit[way]!true
		:: else
		fi
#endif
	:: else
	fi;
	d_step { way = 0; n = 0 }
}

proctype gateway(bit me)
{
	byte way, n;

end_idle:
	do
	ENTER(0)
#if WAYS > 1
	ENTER(1)
#endif
#if WAYS > 2
	ENTER(2)
#endif
	TAKEN(0)
#if WAYS > 1
	TAKEN(1)
#endif
#if WAYS > 2
	TAKEN(2)
#endif
	:: atomic { nempty(link[!me]) && READY -> take_link(me) }
	:: atomic { nempty(out[me]) && nfull(link[me]) -> send_on(me) }
	od
}

init
{
	byte way;

	atomic {
		run gateway(0);
		run gateway(1);
		for (way : 0 .. WAYS - 1) {
			run sender(way);
			run receiver(way)
		}
	}
}
