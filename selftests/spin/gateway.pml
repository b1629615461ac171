/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Model of two ends of a link and a gateway between them (libsci/fabric/net/gateway.c),
 * connected by pipes (pipe.c).  End 0 sends ITEMS items and end 1 BACK items.  Each end
 * acknowledges the other's items, and has at most WINDOW items that are not acknowledged.
 * A pipe has SLOTS slots in each direction.  An idle process requests wake-ups, checks its
 * pipes again, and sleeps.
 *
 * Properties: both ends get all items and acknowledgements, in order (asserted), and end.
 * A lost wake-up or a cycle of waits is an invalid end state.
 *
 * Mutations, each of which must fail:
 *   NO_LOOK	pipe_look_armed() does not check again
 *   NO_BARRIER	pipe_wake() reads armed[] before the word is visible
 *   NO_ROOM	sci_pipe_take() does not wake the writer
 *   GREEDY	an end takes nothing before it has sent all items
 */
#ifndef ITEMS
#define ITEMS	2
#endif
#ifndef BACK
#define BACK	ITEMS
#endif
#ifndef SLOTS
#define SLOTS	1
#endif
#ifndef WINDOW
#define WINDOW	2
#endif

#define DATA	0		/* like SCI_PIPE_DATA and SCI_PIPE_ROOM */
#define SPACE	1

#define ACK	0		/* other values are numbers of items, from 1 */

/* Pipes: 0 from end 0 to the gateway, 1 on to end 1, 2 and 3 in the other direction. */
typedef pipe { byte ring[SLOTS]; byte written; byte taken; bool armed[2] }
pipe pipes[4];

/* Processes: the ends are 0 and 1, the gateway is 2. */
bool woken[3];
byte finished;

/* Positions are counted modulo LAPS. */
#define LAPS	(2 * SLOTS)
#define HAS(p)	(pipes[p].written != pipes[p].taken)
#define ROOM(p)	((pipes[p].written + LAPS - pipes[p].taken) % LAPS < SLOTS)

/*
 * Wake @who if it has requested a wake-up: in pipe.c, the count differs from
 * served[].
 */
inline wake(p, what, who)
{
	d_step {
		if
		:: pipes[p].armed[what] -> pipes[p].armed[what] = false; woken[who] = true
		:: else
		fi
	}
}

inline put(p, value, reader)
{
#ifdef NO_BARRIER
	wake(p, DATA, reader);
#endif
	d_step {
		pipes[p].ring[pipes[p].written % SLOTS] = value;
		pipes[p].written = (pipes[p].written + 1) % LAPS
	};
#ifndef NO_BARRIER
	wake(p, DATA, reader)
#endif
}

inline take(p, value, writer)
{
	d_step {
		value = pipes[p].ring[pipes[p].taken % SLOTS];
		pipes[p].ring[pipes[p].taken % SLOTS] = 0;
		pipes[p].taken = (pipes[p].taken + 1) % LAPS
	};
#ifndef NO_ROOM
	wake(p, SPACE, writer)
#endif
}

/* Set @can to @condition. If it is false, request a wake-up and check again. */
inline look(condition, p, what, can)
{
	can = condition;
	if
	:: can
	:: else ->
		pipes[p].armed[what] = true;
#ifndef NO_LOOK
		can = condition
#endif
	fi
}

proctype end(bit me)
{
	byte sent, acked, got, acks, value;
	byte mine = (me -> BACK : ITEMS), theirs = (me -> ITEMS : BACK);
	bool in, out, busy;

	do
	:: got == theirs && acked == mine && acks == 0 -> break
	:: else ->
		d_step { woken[me] = false; busy = false; in = false; out = false; value = 0 };
		/* net_link_flush(): the log first, then new items */
		if
		:: acks || (sent < mine && sent - acked < WINDOW) ->
			look(ROOM(2 * me), 2 * me, SPACE, out);
			if
			:: d_step { out && acks -> acks--; busy = true };
				put(2 * me, ACK, 2)
			:: d_step { out && !acks -> sent++; busy = true };
				put(2 * me, sent, 2)
			:: else
			fi
		:: else -> out = true
		fi;
#ifdef GREEDY
		if
		:: sent < mine && out -> goto next
		:: sent < mine && !out -> woken[me]; goto next
		:: else
		fi;
#endif
		look(HAS(3 - 2 * me), 3 - 2 * me, DATA, in);
		if
		:: in ->
			take(3 - 2 * me, value, 2);
			d_step {
				busy = true;
				if
				:: value == ACK -> acked++
				:: else -> assert(value == got + 1); got = value; acks++
				fi
			}
		:: else
		fi;
		if
		:: busy
		:: else -> woken[me]
		fi;
next:		skip
	od;
	finished++
}

inline move(from, to, sender, receiver)
{
	look(HAS(from), from, DATA, in);
	if
	:: in ->
		look(ROOM(to), to, SPACE, out);
		if
		:: out ->
			take(from, value, sender);
			put(to, value, receiver);
			d_step { busy = true; value = 0; in = false; out = false }
		:: else
		fi
	:: else
	fi
}

active proctype gateway()
{
	byte value;
	bool in, out, busy;

	atomic { run end(0); run end(1) };
	do
	:: d_step { woken[2] = false; busy = false; in = false; out = false; value = 0 };
		move(0, 1, 0, 1);
		move(2, 3, 1, 0);
		if
		:: busy
		:: else ->
end_idle:		woken[2]
		fi
	od
}
