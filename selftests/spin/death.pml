/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Death of a peer (libsci/msg: conn/peer.c "DOC: life of a peer", api/progress.c, api/wait.c).
 *
 * A sender puts LINES lines of two words in a ring of SLOTS slots, one word
 * after the other; a receiver waits for messages for ever. At any step one of
 * them dies, or the sender leaves. What is under way then arrives or does not,
 * after that the fabric's thread tells the survivor, each step of it at any
 * time: inbox_event(), outbox_event(), add_event(). The bell is as good as the
 * guard of the wait here; see sleep.pml for it, and ring.pml for the slots.
 *
 * Properties: the receiver comes to DOWN, with exactly those lines delivered
 * that had come whole, one after the other from the first (asserted); a
 * sender waiting for room comes to an end, with an error. Hanging would be an
 * invalid end state.
 *
 * Without macros: the code as it is. Others:
 *   HELLO	a new life of the dead sender may say HELLO before the fabric
 *		tells of the old one's end: accept_hello() leaves that alone
 * Mutations, each of which must fail:
 *   NO_DRAIN	peer_event_check() goes down at once
 *   DRAIN_ONCE	drain() calls receive_poll() once (BUDGET lines)
 *   LATE_CLEAR	msg_progress() clears ep->attention after attend()
 *   NO_WAKE	add_event() does not wake_self()
 *   NO_FAIL	peer_down() leaves what waits in p->sendq
 *   HELLO_ENDS	with HELLO: accept_hello() goes down, and leaves lines in the
 *		ring that had come
 *   EARLY	the fabric tells of the death before all has arrived
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

/* Lines, from 1: words on their way and words that are there, as sets. */
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

/* Another peer's event, or HELLO: it looks at everybody. */
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
	if				/* a part of what was under way */
	:: here[0] = here[0] | late[0]
	:: here[1] = here[1] | late[1]
	:: true
	fi;
	d_step { late[0] = 0; late[1] = 0; settled = true };
	if
	:: dead[S] ->
		attract(R);
		say_hello();
		if			/* two connections, in any order */
		:: add_event(R, LOST); add_event(R, GONE)
		:: add_event(R, GONE); add_event(R, LOST)
		:: add_event(R, GONE)	/* it keeps our inbox */
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

/* The end of msg_progress(), after the rings. */
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
	byte pos, n, ev, rx;	/* it receives nothing */
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
