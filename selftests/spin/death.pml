/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Model of the death of a peer (libsci/msg: conn/peer.c "DOC: life of a peer",
 * api/progress.c, api/wait.c).
 *
 * A sender puts LINES lines of two words into a ring of SLOTS slots, one word after the
 * other.  A receiver waits for messages for ever.  At any step one of them dies, or the
 * sender leaves.  Each store under way then arrives or is lost.  After that the fabric's
 * thread calls inbox_event() and outbox_event() of the survivor, with any delay between
 * steps.  Here the bell also stands for the last look before a sleep; sleep.pml models
 * sleeps, and ring.pml models slots.
 *
 * Properties: the receiver reaches DOWN, and has received exactly the lines that arrived
 * whole, in order from the first (asserted).  A sender that waits for room ends with an
 * error.  A process that hangs is an invalid end state.
 *
 * Variants:
 *   HELLO	a successor of the dead sender may say HELLO before the fabric reports
 *		the death: accept_hello() leaves the old connection alone
 * Mutations, each of which must fail:
 *   NO_DRAIN	peer_event_check() calls peer_down() without draining the ring
 *   DRAIN_ONCE	drain() calls receive_poll() once (BUDGET lines)
 *   LATE_CLEAR	msg_progress() clears ep->attention after attend()
 *   NO_WAKE	peer_event_add() does not call wake_self()
 *   NO_FAIL	peer_down() leaves requests in p->sendq
 *   HELLO_ENDS	with HELLO: accept_hello() ends the connection, and loses arrived lines
 *   EARLY	the fabric reports the death before all stores have arrived
 */
#ifndef LINES
#define LINES	3
#endif
#ifndef SLOTS
#define SLOTS	2
#endif
#define BUDGET	1

#define S	0
#define R	1

#define LOST	1		/* PEER_LOST, PEER_LEFT */
#define GONE	2		/* PEER_GONE */

/* Sets of lines, numbered from 1: words under way, and words that have arrived. */
byte late[2], here[2];
byte posted, status, taken;
bool dead[2], settled;
byte events[2];			/* p->events of the survivor */
bool attention[2], wake_fd[2], hello;
bool expired;			/* SUSPECT_MS have passed */
bool down[2], failed;

#define BIT(n)		(1 << (n))
#define WHOLE(n)	((here[0] & here[1] & BIT(n)) != 0)

/* ---- the fabric ---- */

inline add_event(me, what)
{
	events[me] = events[me] | what;
	attention[me] = true;
#ifndef NO_WAKE
	wake_fd[me] = true
#endif
}

inline say_hello()
{
#ifdef HELLO
	if
	:: hello = true;		/* port_event() */
		attention[R] = true;
		wake_fd[R] = true
	:: true
	fi
#else
	skip
#endif
}

/* An event of another peer, or HELLO, makes the endpoint check all peers. */
inline attract(me)
{
	if
	:: attention[me] = true;
		wake_fd[me] = true
	:: true
	fi
}

active proctype fabric()
{
	/* stores arrive in any order */
	do
	:: d_step { late[0] != 0 -> here[0] = here[0] | late[0]; late[0] = 0 }
	:: d_step { late[1] != 0 -> here[1] = here[1] | late[1]; late[1] = 0 }
	:: dead[S] || dead[R] -> break
	od;
#ifdef EARLY
	if
	:: dead[S] -> add_event(R, LOST)
	:: else
	fi;
#endif
	if				/* some of the stores under way arrive */
	:: here[0] = here[0] | late[0]
	:: here[1] = here[1] | late[1]
	:: true
	fi;
	d_step { late[0] = 0; late[1] = 0; settled = true };
	if
	:: dead[S] ->
		attract(R);
		say_hello();
		if			/* events of both connections, in any order */
		:: add_event(R, LOST); add_event(R, GONE)
		:: add_event(R, GONE); add_event(R, LOST)
		:: add_event(R, GONE)	/* without an event for the inbox */
		:: add_event(R, LOST)
		fi;
		expired = true
	:: dead[R] ->
		attract(S);
		if
		:: add_event(S, LOST); add_event(S, GONE)
		:: add_event(S, GONE); add_event(S, LOST)
		fi;
		expired = true
	fi
}

active proctype death()
{
	if
	:: dead[S] = true
	:: dead[R] = true
	fi
}

/* ---- an endpoint ---- */

inline receive_poll()
{
	n = 0;
	do
	:: n < BUDGET && WHOLE(rx + 1) ->
		d_step { rx++; taken = rx; n++ };
		status = rx
	:: else -> break
	od
}

inline drain(me)
{
#ifdef DRAIN_ONCE
	if
	:: me == R && !down[me] -> receive_poll()
	:: else
	fi;
	n = 1
#else
	do
	:: me == R && !down[me] -> receive_poll();
		if
		:: n
		:: else -> break
		fi
	:: else -> break
	od;
	n = 1
#endif
}

inline peer_down(me)
{
	down[me] = true
}

inline peer_event_check(me)
{
	d_step { ev = events[me]; events[me] = 0 };
	if
	:: ev & LOST ->
#ifndef NO_DRAIN
		drain(me);
#endif
		peer_down(me)
	:: (ev & GONE) && !(ev & LOST) && !down[me] -> gone = true
	:: else
	fi;
	ev = 0;
	if
	:: gone && (down[me] || expired) ->
		gone = false;
		drain(me);
		peer_down(me)
	:: else
	fi
}

inline accept_hello(me)
{
	hello = false;
	if
	:: !down[me] -> peer_event_check(me)
	:: else
	fi
#ifdef HELLO_ENDS
	;
	if
	:: !down[me] -> peer_down(me)
	:: else
	fi
#endif
}

inline attend(me)
{
	if
	:: me == R && hello -> accept_hello(me)
	:: else
	fi;
	if
	:: events[me] || gone -> n = 1; peer_event_check(me)
	:: else
	fi
}

/* The end of msg_progress(), after it has polled the rings. */
inline look_up(me)
{
	if
	:: attention[me] || gone ->
#ifdef LATE_CLEAR
		attend(me);
		attention[me] = false
#else
		attention[me] = false;
		attend(me)
#endif
	:: else
	fi
}

active proctype receiver()
{
	byte rx, n, ev;
	bool gone;

	{
		do
		:: !down[R] ->
			receive_poll();
			look_up(R);
			if
			:: n || down[R]
			:: else ->	/* sleep_on_fds() */
				if
				:: WHOLE(rx + 1)
				:: wake_fd[R] -> wake_fd[R] = false
				/* SUSPECT_POLL_MS */
				:: gone && expired
				fi
			fi
		:: down[R] -> break
		od;
		settled;
		assert(!WHOLE(rx + 1));
		assert(rx <= posted)
	} unless { dead[R] }
}

active proctype sender()
{
	byte pos, n, ev, rx;	/* the sender receives nothing */
	bool gone;

	{
		do
		:: pos < LINES && !down[S] && pos - status < SLOTS ->
			assert(pos - taken < SLOTS);
			pos++;
			late[0] = late[0] | BIT(pos);
			d_step { late[1] = late[1] | BIT(pos); posted = pos }
		:: pos < LINES && !down[S] && pos - status >= SLOTS ->
			n = 0;
			look_up(S);
			if
			:: n || down[S]
			:: else ->
				if
				:: pos - status < SLOTS
				:: wake_fd[S] -> wake_fd[S] = false
				:: gone && expired
				fi
			fi
		:: down[S] ->
			/* peer_down(): reqs_fail() */
#ifdef NO_FAIL
			false;
#endif
			failed = true;
			break
		:: pos == LINES -> break
		od
	} unless { dead[S] }
}
