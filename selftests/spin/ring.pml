/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Model of a ring of lines and its credits (libsci/msg: conn/line.h, conn/ring.c,
 * conn/check.c, proto/receive.c).
 *
 * A sender puts LINES lines, numbered from 1, into a ring of SLOTS slots.  The receiver
 * takes the lines, and writes its read position back after every BATCH lines.
 *
 * The link: each stored word of a line and each stored status, unless lost, may arrive at
 * any time, in any order and several times, until the writer's next store barrier or next
 * store to the same place, either of which delivers it.  Up to LOSS times the link loses a
 * line, some words of a line, or a status.  tx_errors and rx_errors mean that the error
 * count differs from ep->errors.
 *
 * A word of a slot holds the number of its line, or 0 before the first.  The receiver sees
 * only the identifier in it, and in the last word the sequence number.  Asserted: each
 * line taken is the next one and complete; no slot is overwritten before its line has been
 * taken.  All lines are delivered and all dirty peers become clean: there is no invalid
 * end state, and in the smaller models no non-progress cycle.  Both sides wait here for
 * the conditions that the code polls for.
 *
 * AWAKE: an endpoint executes barriers only if watch_writes() sees an error, and after the
 * last line.  Without AWAKE it may do so at any time, as before a sleep.
 *
 * Mutations, each of which must fail:
 *   LATE_LINE		a store to a slot lets an older store arrive after it
 *   LATE_STATUS	the same for the status
 *   NO_SHADOW		check_writes() repeats no line
 *   FORGET_RESEND	a resend() that gave up is forgotten: the next check_writes() finds
 *			the error count unchanged
 *   ONE_ID		only the last word has the identifier (words arrive in any order)
 *   SAME_ID		the identifier is the same in each lap
 *   NO_WATCH		with AWAKE: watch_writes() ignores errors
 *   NO_CREDITS		tx_room() is always true
 */
#ifndef SLOTS
#define SLOTS	3
#endif
#ifndef WORDS
#define WORDS	2
#endif
#ifndef LINES
#define LINES	7		/* at most 7, because a byte is a set of lines */
#endif
#ifndef BATCH
#define BATCH	2
#endif
#ifndef LOSS
#define LOSS	2
#endif
#define STORE_TRIES 1

byte mem[SLOTS * WORDS];	/* ring in the receiver's inbox */
byte late[WORDS];		/* words under way, as sets of lines */
byte status;			/* read position in the sender's inbox */
byte late_status;		/* positions under way, as a set */
byte losses;
bool tx_errors, rx_errors;	/* link->errors != ep->errors */
byte rx_pos;

#define BIT(n)		(1 << (n))
#define SLOT(n)		(((n) - 1) % SLOTS)	/* slot of line n */
#ifdef SAME_ID
#define ID(n)		((n) > 0)
#else
#define ID(n)		((n) > 0 && !((((n) - 1) / SLOTS) % 2))
#endif
#define WORD(n, w)	mem[SLOT(n) * WORDS + (w)]

/* ---- the link ---- */

#ifdef LATE_LINE
#define IN_ORDER(n, w)
#else
#define IN_ORDER(n, w)							\
	if								\
	:: (n) > SLOTS && late[w] & BIT((n) - SLOTS) ->			\
		WORD(n, w) = (n) - SLOTS;				\
		late[w] = late[w] & ~BIT((n) - SLOTS)			\
	:: else								\
	fi;
#endif

inline store_line(n)		/* sci_remote_line() */
{
	d_step {
		IN_ORDER(n, 0)
		IN_ORDER(n, 1)
#if WORDS > 2
		IN_ORDER(n, 2)
#endif
		late[0] = late[0] | BIT(n);
		late[1] = late[1] | BIT(n)
#if WORDS > 2
		; late[2] = late[2] | BIT(n)
#endif
	}
}

inline store_lossy(n)
{
	atomic {
		if
		:: store_line(n)
		:: losses < LOSS -> losses++; tx_errors = true
		:: losses < LOSS -> losses++; tx_errors = true;
			d_step { IN_ORDER(n, 0)
				late[0] = late[0] | BIT(n) }
		:: losses < LOSS -> losses++; tx_errors = true;
			d_step { IN_ORDER(n, WORDS - 1)
				late[WORDS - 1] = late[WORDS - 1] | BIT(n) }
		fi
	}
}

/* sci_remote_barrier(): of two stores to a place, either may arrive last. */
inline tx_barrier()
{
	atomic {
		if
		:: i = 1; back = false
		:: i = LINES; back = true
		fi;
		d_step {
			j = 0;
			do
			:: j < LINES ->
				w = 0;
				do
				:: w < WORDS ->
					if
					:: late[w] & BIT(i) -> WORD(i, w) = i
					:: else
					fi;
					w++
				:: else -> break
				od;
				if
				:: !back -> i++
				:: else -> i--
				fi;
				j++
			:: else -> break
			od;
			late[0] = 0;
			late[1] = 0;
#if WORDS > 2
			late[2] = 0;
#endif
			i = 0; j = 0; w = 0; back = false
		}
	}
}

#define ARRIVES(n, w) \
	:: d_step { (late[w] & BIT(n)) && WORD(n, w) != n -> WORD(n, w) = n }
#if WORDS > 2
#define ARRIVE(n) ARRIVES(n, 0) ARRIVES(n, 1) ARRIVES(n, 2)
#else
#define ARRIVE(n) ARRIVES(n, 0) ARRIVES(n, 1)
#endif
#define ARRIVE_STATUS(n) \
	:: d_step { (late_status & BIT(n)) && status != n -> status = n }

active proctype link()
{
end:	do
	ARRIVE(1) ARRIVE(2) ARRIVE(3) ARRIVE(4)
	ARRIVE(5) ARRIVE(6) ARRIVE(7)
	ARRIVE_STATUS(1) ARRIVE_STATUS(2) ARRIVE_STATUS(3) ARRIVE_STATUS(4)
	ARRIVE_STATUS(5) ARRIVE_STATUS(6) ARRIVE_STATUS(7)
	od
}

/* ---- the sender ---- */

#define NEWS	(status > read)

/* The receiver has read up to a later position. */
inline tx_room_slow()
{
	d_step {
		seen = status;
		if
		:: seen > read && seen <= pos ->
			read = seen;
			if
			:: seen > checked -> checked = seen
			:: else
			fi
		:: else
		fi;
		seen = 0
	}
}

inline tx_post()
{
	assert(pos - rx_pos < SLOTS);
	atomic { pos++; store_lossy(pos) };
	dirty = true
}

inline lines_resend()
{
	tries = 0;
	do
	:: checked == pos -> resend = false; break
	:: checked != pos && tries == STORE_TRIES -> break
	:: checked != pos && tries < STORE_TRIES ->
		tries++;
		store_lossy(checked + 1);
		tx_barrier();		/* lines_arrived() */
		if
		:: d_step { tx_errors -> tx_errors = false }
		:: d_step { else -> checked++; tries = 0 }
		fi
	od;
	tries = 0
}

inline check_writes()
{
	tx_barrier();
	d_step {
#ifndef NO_SHADOW
		resend = resend | tx_errors;
#endif
		tx_errors = false
	};
	if
	:: !resend -> checked = pos
	:: else -> lines_resend()
	fi;
	dirty = checked != pos;
#ifdef FORGET_RESEND
	resend = false
#endif
}

active proctype sender()
{
	byte pos, read, checked, tries, i, j, w, seen;
	bool dirty, resend, back;

	do
	/* send_push() */
#ifdef NO_CREDITS
	:: pos < LINES -> tx_post()
#else
	:: pos < LINES && pos - read < SLOTS -> tx_post()
	:: pos < LINES && pos - read == SLOTS && NEWS -> tx_room_slow()
#endif
	/* watch_writes() */
	:: d_step { dirty && NEWS && !tx_errors && !resend ->
		tx_room_slow();
		dirty = checked != pos }
#ifndef NO_WATCH
	:: dirty && (tx_errors || resend) -> check_writes()
#endif
#ifndef AWAKE
	:: dirty -> check_writes()
#else
	:: dirty && pos == LINES -> check_writes()
#endif
	:: pos == LINES && !dirty -> break
	od
}

/* ---- the receiver ---- */

/* line_peek(): a poll reads only the last word. */
#define PEEK	(ID(WORD(rx_pos + 1, WORDS - 1)) == ID(rx_pos + 1))

#define OF_LAP(w) (ID(got[w]) == ID(rx_pos + 1))
#ifdef ONE_ID
#define WHOLE	OF_LAP(WORDS - 1)
#elif WORDS > 2
#define WHOLE	(OF_LAP(0) && OF_LAP(1) && OF_LAP(2))
#else
#define WHOLE	(OF_LAP(0) && OF_LAP(1))
#endif

/* line_take(): read the last word first, then the others. */
inline line_take()
{
	got[WORDS - 1] = WORD(rx_pos + 1, WORDS - 1);
	got[0] = WORD(rx_pos + 1, 0);
#if WORDS > 2
	got[1] = WORD(rx_pos + 1, 1);
#endif
	come = WHOLE;
	if
	:: d_step { come ->
		/* line_seq(), or -EPROTO */
		assert(((got[WORDS - 1] - 1) & 3) == (rx_pos & 3));
		assert(got[0] == rx_pos + 1);
		assert(got[1] == rx_pos + 1);
#if WORDS > 2
		assert(got[2] == rx_pos + 1);
#endif
		rx_pos++ }
	:: else
	fi;
	d_step {
		come = false; got[0] = 0; got[1] = 0;
#if WORDS > 2
		got[2] = 0
#endif
	}
}

#define STATUS_COMES(n) \
	:: late_status & BIT(n) -> status = n; \
		late_status = late_status & ~BIT(n)

/* Of several positions under way any may arrive last; status_store() prevents that. */
inline rx_barrier()
{
	atomic {
		do
		:: late_status ->
			if
			STATUS_COMES(1) STATUS_COMES(2) STATUS_COMES(3)
			STATUS_COMES(4) STATUS_COMES(5) STATUS_COMES(6)
			STATUS_COMES(7)
			fi
		:: else -> break
		od
	}
}
inline status_store()
{
	atomic {
#ifndef LATE_STATUS
		rx_barrier();		/* earlier positions arrive first or never */
#endif
		if
		:: late_status = late_status | BIT(rx_pos)
		:: losses < LOSS -> losses++; rx_errors = true
		fi
	}
}

inline status_put()
{
	dirty = true;
	status_store();
	told = rx_pos
}

/* check_writes(): status_resend() */
inline rx_check_writes()
{
	rx_barrier();
	d_step { resend = resend | rx_errors; rx_errors = false };
	if
	:: !resend -> dirty = false
	:: else ->
		status_store();
		rx_barrier();
		if
		:: d_step { rx_errors -> rx_errors = false }
		:: d_step { else -> dirty = false; resend = false }
		fi
	fi
}

active proctype receiver()
{
	byte told, got[WORDS];
	bool come, dirty, resend;

	do
	:: rx_pos < LINES && PEEK -> line_take()
	:: rx_pos - told >= BATCH -> status_put()
#ifndef NO_WATCH
	:: dirty && (rx_errors || resend) -> rx_check_writes()
#endif
#ifndef AWAKE
	:: dirty -> rx_check_writes()
#else
	:: dirty && rx_pos == LINES -> rx_check_writes()
#endif
	:: rx_pos == LINES && rx_pos - told < BATCH && !dirty -> break
	od
}
