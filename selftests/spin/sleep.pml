/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Model of sleeps and bells (libsci/msg: api/progress.c "DOC: progress", api/wait.c,
 * conn/ring.c, conn/check.c, conn/retransmit.c).
 *
 * Two endpoints send to each other, A (0) TO_B lines and B (1) TO_A lines, over rings of
 * SLOTS lines, and return credits every BATCH lines.  An endpoint sleeps when
 * msg_progress() has done nothing.  Its stores to the other's inbox wait in a store buffer
 * (x86-TSO: first in, first out), which the memory drains at any time.  A line is one
 * store (ring.pml models its words).  A status is two stores: credits, then sleeps with
 * rung.  There is one ring in each direction: the control ring would add nothing.
 *
 * Property: no lost wake-up.  A sleeping endpoint without a bell under way, whose peer
 * sleeps or has finished, is an invalid end state.
 *
 * Without macros: the code on a fabric with a wake barrier.  Variants:
 *   FENCE		both sides use sci_full_barrier() instead (p->fence)
 *   LATE		a link: stores arrive at any time, at the latest at the store
 *			barrier of their writer; neither a bell nor another endpoint's
 *			barrier delivers them (ep->lossy)
 *   POLLS		A, which receives nothing, neither sleeps nor executes a barrier
 *			until B has left
 *   HOLD		A keeps no more messages until its sends are done
 *			(message_may_keep() is false: SCI_PARAM_UNEXPECTED_MAX is reached)
 *   IDLE		both endpoints wait for more messages at the end, and must come to rest
 *			(check for non-progress cycles); no sends without TO_A or TO_B
 *   COLD		the peer may be cooled down (peer_cool_down()): then it is not
 *			polled, and msg_progress() takes the bell, too
 *   SPURIOUS=n		n bells without a ring
 * Mutations, each of which must fail:
 *   NO_BARRIER		sleep_barrier() has no barrier
 *   NO_FENCE		with FENCE: bell_ring_sleeper() has no fence
 *   NO_LOOK		msg_announce_sleep() does not poll again
 *   NO_AGAIN		status_write() reads status->sleeps once
 *   NO_RUNG		peer_is_announced() does not read status->rung
 *   NO_RING		status_write() rings no bell
 *   NO_TELL		bell_ring_sleeper() rings without writing the sleep's number
 *   NO_FORGET		with LATE: announcements_forget() is not called
 *   NO_COUNT		with COLD: msg_progress() does not count a taken bell
 *   NO_WARM		with COLD: doorbell_handle() resumes polling of no peer
 *   LOUD		with IDLE: status_announce() rings even without new credits
 *   NO_LATE_RING	with LATE: check_writes() rings sleepers only after a loss
 *   NO_WATCH_RING	with LATE and POLLS: watch_writes() does not look for sleepers
 *   NO_AWAITED		with LATE: credits do not set p->awaited
 *   ALL_AWAITED	with LATE and IDLE: an announcement sets p->awaited, too
 *   WATCH_ONLY		with LATE, POLLS and IDLE: watch_writes() rings, but confirms nothing
 *   NO_KEEPER		with LATE: no retransmission thread for an endpoint that has left
 */
#ifndef SLOTS
#define SLOTS	2
#endif
#ifndef BATCH
#define BATCH	1		/* status_due() */
#endif
#ifdef IDLE
#ifndef TO_A
#define TO_A	0
#endif
#ifndef TO_B
#define TO_B	0
#endif
#endif
#ifndef TO_A
#define TO_A	2
#endif
#ifndef TO_B
#define TO_B	3
#endif
#ifndef SPURIOUS
#define SPURIOUS 1
#endif

mtype = { LINE, CREDITS, SLEEPS };

/* Stores of each endpoint that are not visible yet. */
chan out[2] = [6] of { mtype, byte, byte };

/* The inbox of each endpoint: visible lines, and the status. */
byte lines[2], st_data[2], st_sleeps[2], st_rung[2];
bool bell[2];
byte bell_rung[2], rung[2];	/* members of both endpoints, for fresh() */
byte taken[2];			/* read positions, for assertions only */
bool over;			/* B has left */

#define PEER	(1 - me)
#define TO_SEND	(me -> TO_A : TO_B)
#define TO_RECV	(me -> TO_B : TO_A)

#ifdef HOLD
#define MAY_KEEP (me || tx == TO_SEND)
#else
#define MAY_KEEP true
#endif

#ifdef POLLS
#define MAY_LEAVE (me || over)
#else
#define MAY_LEAVE true
#endif

#ifdef NO_WATCH_RING
#define RINGS	false
#else
#define RINGS	(dirty && awaited)
#endif

/*
 * Numbers of announcements are only compared for equality. So fresh() takes the
 * lowest number that is not in use instead of counting. The state space stays
 * finite, and a wrap-around, which 2^32 numbers do not meet either, can't occur.
 */
#define KNOWN(v) (v == sleeps || v == st_sleeps[PEER] || v == st_rung[me] || \
		  v == bell_rung[PEER] || v == rung[PEER] || \
		  out[me]??[SLEEPS, eval(v), _] || \
		  out[PEER]??[SLEEPS, _, eval(v)])

inline fresh()
{
	d_step {
		number = 0;
		do
		:: KNOWN(number) -> number++
		:: else -> break
		od;
		sleeps = number;
		number = 0
	}
}

inline visible(e)
{
	if
	:: kind == LINE -> lines[1 - e]++
	:: kind == CREDITS -> st_data[1 - e] = x
	:: kind == SLEEPS -> st_sleeps[1 - e] = x; st_rung[1 - e] = y
	fi;
	kind = 0; x = 0; y = 0
}

active proctype memory()
{
	mtype kind;
	byte x, y;
	byte spurious = SPURIOUS;

end:	do
	:: atomic { out[0]?kind, x, y -> visible(0) }
	:: atomic { out[1]?kind, x, y -> visible(1) }
	:: atomic { spurious > 0 -> spurious--;
		if
		:: bell[0] = true
		:: bell[1] = true
		fi }
	od
}

/* sci_full_barrier(), sci_remote_barrier(), or the barrier of a system call. */
inline flush(e)
{
	empty(out[e])
}

/* bell_ring(): a system call, which makes earlier stores visible. */
inline ring_bell()
{
#ifndef LATE
	flush(me);
#endif
	bell[PEER] = true
}

inline status_put()
{
#ifdef LATE
	dirty = true;
	status_dirty = true;
#ifdef ALL_AWAITED
	awaited = true;
#endif
#ifndef NO_AWAITED
	awaited = awaited || rx != told;
#endif
#endif
	out[me]!CREDITS, rx, 0;
	out[me]!SLEEPS, sleeps, rung[me];
	told = rx
}

inline status_write()
{
	do
	:: rung[me] = st_sleeps[me];
		status_put();
#ifdef FENCE
		flush(me);
#endif
		if
#ifndef NO_AGAIN
		:: st_sleeps[me] != rung[me]
#endif
		:: else -> break
		fi
	od;
#ifndef NO_RING
	if
	:: rung[me] != bell_rung[me] -> bell_rung[me] = rung[me]; ring_bell()
	:: else
	fi
#endif
}

inline bell_ring_sleeper()
{
#if defined(FENCE) && !defined(NO_FENCE)
	flush(me);
#endif
	if
#ifdef NO_TELL
	:: atomic { st_sleeps[me] != bell_rung[me] ->
			bell_rung[me] = st_sleeps[me] };
		ring_bell()
#else
	:: st_sleeps[me] != bell_rung[me] -> status_write()
#endif
	:: else
	fi
}

inline tx_post()
{
	atomic {
		assert(tx - taken[PEER] < SLOTS);
		out[me]!LINE, 0, 0;
		tx++
	};
#ifdef LATE
	dirty = true;
	awaited = true;
#endif
	bell_ring_sleeper()
}

/* peer_confirm_stores() */
inline check_writes()
{
#ifdef LATE
	if
	:: dirty ->
		flush(me);
		dirty = false;
		status_dirty = false;
		if
		:: awaited -> awaited = false
#ifndef NO_LATE_RING
			; bell_ring_sleeper()
#endif
		:: else
		fi
	:: else
	fi
#else
	skip
#endif
}

/* Look for sleepers: nothing was lost, but stores may have arrived late. */
inline watch_writes()
{
#ifdef LATE
	if
#ifdef WATCH_ONLY
	:: dirty && awaited && st_sleeps[me] != bell_rung[me] -> bell_ring_sleeper()
#elif !defined(NO_WATCH_RING)
	:: dirty && awaited && st_sleeps[me] != bell_rung[me] -> check_writes()
#endif
	:: else ->
		/* lines_are_confirmed() */
		d_step {
			if
			:: dirty && !status_dirty && st_data[me] == tx ->
				dirty = false; awaited = false
			:: else
			fi
		}
	fi
#else
	skip
#endif
}

inline peer_is_announced()
{
	if
	:: announced ->
		if
#ifndef NO_RUNG
		:: st_rung[me] == sleeps -> announced = false
#endif
		:: else
		fi
	:: else
	fi
}

inline peer_warm_up()
{
#ifdef COLD
	if
	:: !hot ->
		peer_is_announced();
		if
#ifndef NO_WARM
		:: lines[me] > rx || !announced -> hot = true
#endif
		:: else
		fi
	:: else
	fi
#else
	skip
#endif
}

/* Handle a bell that has been taken. */
inline doorbell_handle()
{
#if defined(LATE) && !defined(NO_FORGET)
	announced = false;	/* announcements_forget() */
#endif
	peer_warm_up()
}

/* Take the bell and cool the peer down, at random times. */
inline cold_peers()
{
#ifdef COLD
	if
	:: atomic { bell[me] -> bell[me] = false };
		doorbell_handle();
#ifndef NO_COUNT
		did = 1
#endif
	:: true
	fi;
	if
	:: hot && tx == TO_SEND && !dirty ->	/* peer_may_cool() */
		announce();
		sleep_barrier();
		hot = false;
		peer_warm_up()
	:: true
	fi
#else
	skip
#endif
}

/* Set @did to the result of msg_progress(). */
inline msg_progress()
{
	did = 0;
	/* receive_poll(): ring_poll() */
	do
	:: atomic { hot && lines[me] > rx && MAY_KEEP -> rx++; taken[me] = rx;
		did = 1 }
	:: else -> break
	od;
	if
	:: did ->
		announced = false;
		if
		:: rx - told >= BATCH -> status_write()
		:: else
		fi
	:: else
	fi;
	/* send_push(): tx_room(), tx_room_slow(), tx_post() */
	do
	:: tx < TO_SEND && tx - read < SLOTS -> tx_post(); did = 1
	:: atomic { tx < TO_SEND && tx - read == SLOTS && st_data[me] > read ->
		read = st_data[me] }
	:: else -> break
	od;
	watch_writes();
	cold_peers()
}

inline announce()
{
	any = false;
	peer_is_announced();
	if
	:: !announced ->
		fresh();	/* p->status_next.sleeps++ */
#ifndef LOUD
		if
		:: rx == told -> status_put()
		:: else -> status_write()
		fi;
#else
		status_write();
#endif
		announced = true;
		any = true
	:: else
	fi
}

/* The effect of the barrier on the other endpoint may come at any time. */
inline sleep_barrier()
{
	check_writes();
#ifndef NO_BARRIER
	flush(me);
#if !defined(FENCE) && !defined(LATE)
	flush(PEER)
#endif
#endif
}

proctype endpoint(bit me)
{
	byte tx, read, rx, told, sleeps, number;
	bool announced, did, any, dirty, status_dirty, awaited, hot = true;

	do			/* msg_wait_often() */
	:: msg_progress();
		if
#ifndef IDLE
		:: !did && tx == TO_SEND && rx == TO_RECV && MAY_LEAVE -> break
#endif
		:: did
#ifdef POLLS
		:: !did && !me && !(tx == TO_SEND && MAY_LEAVE) ->
			/* wait for the condition that the code polls for */
			(tx < TO_SEND && st_data[me] > read) || over ||
				RINGS && st_sleeps[me] != bell_rung[me]
#endif
		:: else ->
			/* sleep_on_fds(): msg_announce_sleep() */
			any = false;
			if
			:: hot -> announce()
			:: else
			fi;
			if
			:: any -> sleep_barrier()
			:: else
			fi;
#ifndef NO_LOOK
			msg_progress();
#endif
			if
			:: did
			:: else ->
#ifdef IDLE
end:
#endif
				atomic { bell[me] -> bell[me] = false };
				doorbell_handle()
			fi
		fi
	od;
	over = me;
#ifndef NO_KEEPER
	do
	:: dirty -> check_writes()
	:: else -> break
	od
#endif
}

init
{
	atomic {
		run endpoint(0);
		run endpoint(1)
	}
}
