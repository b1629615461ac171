/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: sessions between two nodes
 *
 * Messages of SCI_MESSAGE_SIZE bytes go in control packets, which may be lost,
 * doubled or reordered.  A session delivers messages once and in order, or reports
 * that the other node is lost.  It uses sequence numbers, cumulative acknowledgments,
 * a window, retransmission and heartbeats.  A generation, which is a random number
 * for each life of a peer, distinguishes a node that came back from its earlier life.
 *
 * A session is a pure state machine: no clock, no lock, no I/O.  The caller serializes
 * calls, passes the time in, and transmits packets.  peer.c is that caller, and
 * session_test.c is another.
 *
 * How a session begins: each side of a session has a tag, which it uses for no other
 * session.  sci_session.next is the tag of the next session.
 *
 *	HELLO(from)          asks for an ANSWER.  @from is the sender's tag.
 *	ANSWER(from, to)     answers HELLO(@to), or an ANSWER that began a session.
 *
 * An ANSWER to this node's next tag can only come from a node that is alive and got the
 * tag from this node.  So a session with its @from begins, and this node sends an ANSWER
 * of its own.  A HELLO may be from an earlier life, so it changes nothing.  HELLOs that
 * cross lead to the same pair of tags on both sides.  From then on each packet carries a
 * hash of both tags, in the order sender, receiver.  Packets of another session, and
 * packets that come back to their sender, do not match.
 *
 * If an ANSWER to the next tag arrives while a session is up, the other node has begun a
 * new life, or has given this node up.  The session ends, and the layer above gets a
 * report before any message of the next session is taken.  There is one exception: if the
 * session is not needed, or no packet of it has arrived since it is needed, the new
 * session replaces it silently and takes over its messages.  So a node may restart
 * unnoticed while there is no connection with it.  If a node without a session receives
 * a packet of one, it sends a HELLO.  The handshake then ends the session of the sender.
 *
 * A node that is silent while this node expects packets from it counts as dead.  Silence
 * does not count while the link is down, or while this machine was too busy to poll.
 */
#ifndef SCI_SESSION_H
#define SCI_SESSION_H

#include <linux/build_bug.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/types.h>

#include "proto.h"

#define SCI_SESSION_VERSION	1
#define SCI_SESSION_WINDOW	32	/* limit of unacknowledged messages */
#define SCI_SESSION_NEVER	U64_MAX	/* a time that never comes */

/* Sequence numbers start shortly before they wrap, so that each session tests the wrap. */
#define SCI_SESSION_FIRST	((u32)-64)

enum sci_packet_type {
	SCI_PACKET_HELLO = 1,
	SCI_PACKET_ANSWER,
	SCI_PACKET_DATA,	/* a message */
	SCI_PACKET_ACK,
	SCI_PACKET_PING,	/* asks for an ACK */
	SCI_PACKET_BYE,		/* the sender's adapter is removed */
};

/**
 * struct sci_packet - a control packet
 * @version: SCI_SESSION_VERSION
 * @type: enum sci_packet_type
 * @reserved: 0
 * @session: hash of both tags; 0 in HELLO and ANSWER
 * @seq: DATA: sequence number of the message; else 0
 * @ack: all DATA before this one has arrived; 0 in HELLO and ANSWER
 * @body: DATA: the message; else 0
 * @from: HELLO, ANSWER: the sender's tag, not 0
 * @to: ANSWER: the receiver's tag, not 0; HELLO: 0
 */
struct sci_packet {
	u8 version;
	u8 type;
	__le16 reserved;
	__le32 session;
	__le32 seq;
	__le32 ack;
	union {
		u8 body[SCI_MESSAGE_SIZE];
		struct {
			__le32 from;
			__le32 to;
		};
	};
};

static_assert(sizeof(struct sci_packet) == 16 + SCI_MESSAGE_SIZE);

/**
 * struct sci_message - a message to another node
 * @link: entry in a queue of the session; poisoned or empty if it is in none
 * @done: called when the message was acknowledged or given up; may free it.
 *	Called under the session's serialization: must not call the session,
 *	and must not take a lock that a caller of sci_session_post() may hold.
 * @seq: sequence number, which the session sets
 * @body: the body of the packet
 *
 * The session owns a message from post to done; embed it where sending must not fail.
 */
struct sci_message {
	struct list_head link;
	void (*done)(struct sci_message *m);
	u32 seq;
	u8 body[SCI_MESSAGE_SIZE];
};

/**
 * enum sci_session_state - state of a session
 * @SCI_SESSION_IDLE: there is no session, and no message waits for one
 * @SCI_SESSION_HELLO: waiting for an ANSWER
 * @SCI_SESSION_UP: the session is established
 * @SCI_SESSION_GONE: the session has ended; no packet is sent or taken until
 *	sci_session_revive()
 * @SCI_SESSION_CLOSED: the session has ended and does not start again
 */
enum sci_session_state {
	SCI_SESSION_IDLE,
	SCI_SESSION_HELLO,
	SCI_SESSION_UP,
	SCI_SESSION_GONE,
	SCI_SESSION_CLOSED,
};

/**
 * struct sci_session_times - times of a session, in ns
 * @retry: time until the first retransmission; the interval doubles with each retry
 * @retry_max: longest interval between retransmissions
 * @heartbeat: silence of a watched node before a PING
 * @connect: silence after which a node that has not yet answered counts as dead
 * @dead: silence after which a node that has answered counts as dead
 * @absent: time for which packets must come back until a silent node counts as dead
 */
struct sci_session_times {
	u64 retry;
	u64 retry_max;
	u64 heartbeat;
	u64 connect;
	u64 dead;
	u64 absent;
};

struct sci_session;

/**
 * struct sci_session_ops - operations of the caller
 * @send: transmits a packet; must not call the session.  -EHOSTUNREACH: no such node
 *	exists, which ends the session at the next tick; after other errors the
 *	packet counts as lost.  @again: the packet was sent before.
 * @changed: called when the state has changed from @old; must not call the session
 */
struct sci_session_ops {
	int (*send)(struct sci_session *s, const struct sci_packet *packet,
		    bool again);
	void (*changed)(struct sci_session *s, enum sci_session_state old);
};

/**
 * struct sci_session - one end of a session
 * @ops: operations of the caller
 * @times: the timeouts
 * @state: may be read at any time
 * @error: reason of SCI_SESSION_GONE, -errno
 * @watched: a connection needs a report if the other node is lost
 * @proven: a packet of this session has arrived since the session is needed, or has
 *	caused the need
 * @probing: a PING was sent, and no packet has arrived since then
 * @ack_due: a packet has arrived that needs an acknowledgment
 * @paused: the link is down
 * @unreachable: there is no such node: the next tick ends the session
 * @own: this node's tag in this session
 * @next: this node's tag in the next session
 * @peer: the other side's tag; may be read at any time
 * @tx_id: value of sci_packet.session in sent packets
 * @rx_id: value of sci_packet.session in received packets
 * @tx_seq: number of the next message to be sent for the first time
 * @rx_seq: number of the next message to be taken
 * @received: bit i: message rx_seq + i is in @ring
 * @nr_sent: entries of @sent
 * @sent: messages sent and not acknowledged, in order
 * @waiting: messages not sent yet, in order
 * @nr_messages: number of messages in @sent and @waiting; may be read at any time
 * @heard: time of the last packet of this session, 0: none; may be read at any time
 * @since: time from which silence counts
 * @returned: time of the first packet that came back in the present silence; any earlier
 *	time: there is none
 * @retry_at: time to send unanswered messages again
 * @retry_after: present interval between retries, which doubles with each retry
 * @ring: messages not taken yet, by sequence number
 */
struct sci_session {
	const struct sci_session_ops *ops;
	struct sci_session_times times;
	enum sci_session_state state;
	int error;
	bool watched;
	bool proven;
	bool probing;
	bool ack_due;
	bool paused;
	bool unreachable;
	u32 own;
	u32 next;
	u32 peer;
	u32 tx_id;
	u32 rx_id;
	u32 tx_seq;
	u32 rx_seq;
	u32 received;
	unsigned int nr_sent;
	struct list_head sent;
	struct list_head waiting;
	unsigned int nr_messages;
	u64 heard;
	u64 since;
	u64 returned;
	u64 retry_at;
	u64 retry_after;
	u8 ring[SCI_SESSION_WINDOW][SCI_MESSAGE_SIZE];
};

static_assert(SCI_SESSION_WINDOW <= 8 * sizeof_field(struct sci_session,
						     received));

/**
 * sci_session_init() - initialize a session in state SCI_SESSION_IDLE
 * @generation: a random number, another one in each life of this node
 */
void sci_session_init(struct sci_session *s, const struct sci_session_ops *ops,
		      const struct sci_session_times *times, u32 generation);

/* Return whether the packet is well-formed for any session. Other packets are ignored. */
bool sci_packet_valid(const struct sci_packet *p);

/**
 * sci_session_post() - send a message
 *
 * Set up a session if there is none. If the session is closed, call @m->done() at once.
 */
void sci_session_post(struct sci_session *s, struct sci_message *m, u64 now);

/**
 * sci_session_receive() - handle a packet
 * @packet: a copy that does not change; its contents are hostile
 *
 * Then call sci_session_take() until it returns false, and sci_session_settle().
 *
 * Return: 0; after an error the packet was dropped: -EBADMSG: malformed; -ESTALE: well-formed,
 * but not of this session.
 */
int sci_session_receive(struct sci_session *s, const struct sci_packet *packet,
			u64 now);

/**
 * sci_session_take() - take the next message
 * @body: receives its SCI_MESSAGE_SIZE bytes
 *
 * Return: false if there is none.
 */
bool sci_session_take(struct sci_session *s, void *body);

/*
 * Acknowledge the messages that were received and handled, unless a message that
 * was sent since then has acknowledged them.
 */
void sci_session_settle(struct sci_session *s);

/* Set whether a connection needs a report if the other node is lost. */
void sci_session_watch(struct sci_session *s, bool watched, u64 now);

/*
 * Handle a packet that came back: there is no such node.  A node that has not answered yet is
 * given up.  A node that has answered may come back soon: it is given up if packets still come
 * back after times.absent, and none of its own has arrived meanwhile.
 */
void sci_session_returned(struct sci_session *s, u64 now);

/* Note that the other node has begun a new life: the next sci_session_tick() ends the session. */
void sci_session_lost(struct sci_session *s);

/* Return when sci_session_tick() has to be called next, or SCI_SESSION_NEVER. */
u64 sci_session_deadline(const struct sci_session *s);

/* Send packets that are due, or end the session. A call before the deadline does nothing. */
void sci_session_tick(struct sci_session *s, u64 now);

/* Pause: the link is down, and silence does not count until it is up again. */
void sci_session_pause(struct sci_session *s);
void sci_session_resume(struct sci_session *s, u64 now);

/*
 * Leave SCI_SESSION_GONE after the end was reported to all users. Messages that were posted
 * meanwhile get a new session.
 */
void sci_session_revive(struct sci_session *s, u64 now);

/* Close the session for good: send a BYE, and call done() of all messages. */
void sci_session_close(struct sci_session *s);

const char *sci_session_state_name(enum sci_session_state state);

#endif
