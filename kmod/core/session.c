// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */

#include <linux/bitops.h>
#include <linux/bug.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "session.h"

const char *sci_session_state_name(enum sci_session_state state)
{
	static const char * const names[] = {
		[SCI_SESSION_IDLE]	= "idle",
		[SCI_SESSION_HELLO]	= "hello",
		[SCI_SESSION_UP]	= "up",
		[SCI_SESSION_GONE]	= "gone",
		[SCI_SESSION_CLOSED]	= "closed",
	};

	return names[state];
}

static void session_set_state(struct sci_session *s,
			      enum sci_session_state state)
{
	enum sci_session_state old = s->state;

	if (state == old)
		return;
	WRITE_ONCE(s->state, state);
	s->ops->changed(s, old);
}

/* ---- tags ---- */

/* Return the tag after @tag. All numbers but 0 occur before a tag repeats. */
static u32 session_tag_after(u32 tag)
{
	tag += 0x9e3779b9;
	return tag ?: 0x9e3779b9;
}

/* Return the id of packets of a session. It depends on both tags and on the direction. */
static u32 session_id(u32 sender, u32 receiver)
{
	return sender * 0x85ebca6b + rol32(receiver * 0xc2b2ae35, 16);
}

/* ---- packets expected from the other node ---- */

static bool session_has_messages(const struct sci_session *s)
{
	return !list_empty(&s->sent) || !list_empty(&s->waiting);
}

/* Return whether an end of the session has to be reported. */
static bool session_is_needed(const struct sci_session *s)
{
	return s->watched || session_has_messages(s);
}

/* Return whether a packet of this node waits for an answer. */
static bool session_awaits_answer(const struct sci_session *s)
{
	if (s->state == SCI_SESSION_HELLO)
		return true;
	return s->state == SCI_SESSION_UP && (s->nr_sent || s->probing);
}

/* Return the time of the last sign of life of the other node. */
static u64 session_silent_since(const struct sci_session *s)
{
	return max(s->heard, s->since);
}

/* Return when the other node counts as dead if it remains silent. */
static u64 session_gone_at(const struct sci_session *s)
{
	bool known = s->state == SCI_SESSION_UP && s->proven;

	return session_silent_since(s) +
	       (known ? s->times.dead : s->times.connect);
}

/* Note that the session is needed from now on: earlier silence does not count. */
static void session_begin_need(struct sci_session *s, u64 now)
{
	if (!session_is_needed(s))
		s->since = now;
}

/*
 * Note that the session is not needed any more: silence is ignored, and no PING is sent. The
 * session stays up: if it ended now, without a report, its messages could be taken again in the
 * next session.
 */
static void session_end_need(struct sci_session *s)
{
	if (session_is_needed(s))
		return;
	s->proven = false;
	s->probing = false;
	s->retry_at = SCI_SESSION_NEVER;
}

static void session_retry_reset(struct sci_session *s, u64 now)
{
	s->retry_after = s->times.retry;
	s->retry_at = session_awaits_answer(s) ? now + s->retry_after :
					      SCI_SESSION_NEVER;
}

static void session_retry_start(struct sci_session *s, u64 now)
{
	if (s->retry_at == SCI_SESSION_NEVER)
		session_retry_reset(s, now);
}

/* ---- sending ---- */

static void session_transmit(struct sci_session *s, struct sci_packet *p,
			     u8 type, bool again)
{
	p->version = SCI_SESSION_VERSION;
	p->type = type;
	if (s->ops->send(s, p, again) == -EHOSTUNREACH)
		s->unreachable = true;
}

static void session_send_hello(struct sci_session *s, bool again)
{
	struct sci_packet p = { .from = cpu_to_le32(s->next) };

	session_transmit(s, &p, SCI_PACKET_HELLO, again);
}

static void session_send_answer(struct sci_session *s, u32 from, u32 to,
				bool again)
{
	struct sci_packet p = {
		.from = cpu_to_le32(from),
		.to = cpu_to_le32(to),
	};

	session_transmit(s, &p, SCI_PACKET_ANSWER, again);
}

/* Send a packet of the session. Each packet acknowledges all messages received so far. */
static void session_send_in_session(struct sci_session *s, u8 type,
				    const struct sci_message *m, bool again)
{
	struct sci_packet p = {
		.session = cpu_to_le32(s->tx_id),
		.ack = cpu_to_le32(s->rx_seq),
	};

	if (m) {
		p.seq = cpu_to_le32(m->seq);
		memcpy(p.body, m->body, sizeof(p.body));
	}
	s->ack_due = false;
	session_transmit(s, &p, type, again);
}

/* Send the messages that the window allows. */
static void session_push(struct sci_session *s, u64 now)
{
	struct sci_message *m, *next;

	list_for_each_entry_safe(m, next, &s->waiting, link) {
		if (s->nr_sent == SCI_SESSION_WINDOW)
			break;
		m->seq = s->tx_seq++;
		list_move_tail(&m->link, &s->sent);
		s->nr_sent++;
		session_send_in_session(s, SCI_PACKET_DATA, m, false);
	}
	session_retry_start(s, now);
}

static void session_probe(struct sci_session *s, u64 now)
{
	s->probing = true;
	session_send_in_session(s, SCI_PACKET_PING, NULL, false);
	session_retry_start(s, now);
}

static void session_retry_in_session(struct sci_session *s)
{
	struct sci_message *m;

	if (!s->proven)
		session_send_answer(s, s->own, s->peer, true);
	list_for_each_entry(m, &s->sent, link)
		session_send_in_session(s, SCI_PACKET_DATA, m, true);
	if (s->probing)
		session_send_in_session(s, SCI_PACKET_PING, NULL, true);
}

static void session_retry(struct sci_session *s, u64 now)
{
	if (s->state == SCI_SESSION_HELLO)
		session_send_hello(s, true);
	else
		session_retry_in_session(s);
	s->retry_after = min(2 * s->retry_after, s->times.retry_max);
	s->retry_at = now + s->retry_after;
}

/* ---- beginning and end of a session ---- */

static void session_finish(struct sci_session *s, struct sci_message *m)
{
	list_del(&m->link);
	WRITE_ONCE(s->nr_messages, s->nr_messages - 1);
	m->done(m);
}

static void session_finish_all(struct sci_session *s)
{
	struct sci_message *m, *next;

	list_splice_tail_init(&s->waiting, &s->sent);
	list_for_each_entry_safe(m, next, &s->sent, link)
		session_finish(s, m);
	s->nr_sent = 0;
}

static void session_hello(struct sci_session *s, u64 now)
{
	session_set_state(s, SCI_SESSION_HELLO);
	s->since = now;
	session_retry_reset(s, now);
	session_send_hello(s, false);
}

/*
 * The other node has answered the next tag: begin a session. Unacknowledged messages of a
 * session that is replaced without a report are sent again in the new one.
 */
static void session_begin(struct sci_session *s, u32 peer, u64 now)
{
	list_splice_init(&s->sent, &s->waiting);
	s->nr_sent = 0;
	s->own = s->next;
	s->next = session_tag_after(s->own);
	WRITE_ONCE(s->peer, peer);
	s->tx_id = session_id(s->own, s->peer);
	s->rx_id = session_id(s->peer, s->own);
	s->tx_seq = SCI_SESSION_FIRST;
	s->rx_seq = SCI_SESSION_FIRST;
	s->received = 0;
	s->proven = false;
	s->probing = false;
	s->ack_due = false;
	WRITE_ONCE(s->heard, now);
	session_set_state(s, SCI_SESSION_UP);
	session_retry_reset(s, now);
	session_send_answer(s, s->own, s->peer, false);
	session_push(s, now);
}

/*
 * End the session. Its messages are not delivered any more. The next tag remains, since
 * the other node may have received it already.
 */
static void session_end(struct sci_session *s, int error)
{
	bool tell = session_is_needed(s);

	session_finish_all(s);
	s->received = 0;
	s->probing = false;
	s->ack_due = false;
	s->unreachable = false;
	s->retry_at = SCI_SESSION_NEVER;
	s->error = error;
	session_set_state(s, tell ? SCI_SESSION_GONE : SCI_SESSION_IDLE);
}

void sci_session_revive(struct sci_session *s, u64 now)
{
	if (s->state != SCI_SESSION_GONE)
		return;
	if (list_empty(&s->waiting))
		session_set_state(s, SCI_SESSION_IDLE);
	else
		session_hello(s, now);
}

void sci_session_init(struct sci_session *s, const struct sci_session_ops *ops,
		      const struct sci_session_times *times, u32 generation)
{
	memset(s, 0, sizeof(*s));
	s->ops = ops;
	s->times = *times;
	s->next = generation ?: session_tag_after(generation);
	s->retry_at = SCI_SESSION_NEVER;
	INIT_LIST_HEAD(&s->sent);
	INIT_LIST_HEAD(&s->waiting);
}

void sci_session_close(struct sci_session *s)
{
	if (s->state == SCI_SESSION_UP)
		session_send_in_session(s, SCI_PACKET_BYE, NULL, false);
	session_finish_all(s);
	s->received = 0;
	session_set_state(s, SCI_SESSION_CLOSED);
}

/* ---- receiving ---- */

static bool packet_is_zero(const void *p, size_t bytes)
{
	return !memchr_inv(p, 0, bytes);
}

static bool session_greeting_valid(const struct sci_packet *p)
{
	size_t used = offsetofend(struct sci_packet, to);

	return !p->session && !p->seq && !p->ack && p->from &&
	       !p->to == (p->type == SCI_PACKET_HELLO) &&
	       packet_is_zero((const u8 *)p + used, sizeof(*p) - used);
}

bool sci_packet_valid(const struct sci_packet *p)
{
	if (p->version != SCI_SESSION_VERSION || p->reserved)
		return false;
	switch (p->type) {
	case SCI_PACKET_HELLO:
	case SCI_PACKET_ANSWER:
		return session_greeting_valid(p);
	case SCI_PACKET_DATA:
		return true;
	case SCI_PACKET_ACK:
	case SCI_PACKET_PING:
	case SCI_PACKET_BYE:
		return !p->seq && packet_is_zero(p->body, sizeof(p->body));
	default:
		return false;
	}
}

/*
 * Answer a HELLO, and change no state: the HELLO may be from an earlier life of the node. If
 * the session is with its sender, send the session's tag again: the sender may not have it.
 */
static int session_receive_hello(struct sci_session *s,
				 const struct sci_packet *p)
{
	u32 from = le32_to_cpu(p->from);

	if (s->state == SCI_SESSION_UP && from == s->peer)
		session_send_answer(s, s->own, from, false);
	else
		session_send_answer(s, s->next, from, false);
	return 0;
}

static void session_was_heard(struct sci_session *s, u64 now)
{
	WRITE_ONCE(s->heard, now);
	s->proven = true;
	if (!s->probing)
		return;
	s->probing = false;
	session_retry_reset(s, now);
}

static int session_receive_answer(struct sci_session *s,
				  const struct sci_packet *p, u64 now)
{
	u32 from = le32_to_cpu(p->from), to = le32_to_cpu(p->to);
	bool up = s->state == SCI_SESSION_UP;

	if (up && to == s->own && from == s->peer) {
		session_was_heard(s, now);
		return 0;
	}
	if (to != s->next)
		return -ESTALE;
	if (up && s->proven && session_is_needed(s))
		session_end(s, -EHOSTUNREACH);
	else
		session_begin(s, from, now);
	return 0;
}

/* Remove the @count oldest messages, which have arrived. */
static void session_acknowledged(struct sci_session *s, unsigned int count,
				 u64 now)
{
	if (!count)
		return;
	s->nr_sent -= count;
	while (count--)
		session_finish(s, list_first_entry(&s->sent, struct sci_message,
						   link));
	session_retry_reset(s, now);
	session_push(s, now);
}

/*
 * Store a message. @ahead: its number, less the number of the next message to be taken;
 * negative: it was taken before.
 */
static void session_store(struct sci_session *s, const struct sci_packet *p,
			  s32 ahead)
{
	u32 slot = le32_to_cpu(p->seq) % SCI_SESSION_WINDOW;

	s->ack_due = true;
	if (ahead < 0 || s->received & BIT(ahead))
		return;
	memcpy(s->ring[slot], p->body, sizeof(p->body));
	s->received |= BIT(ahead);
}

static int session_receive_in_session(struct sci_session *s,
				      const struct sci_packet *p, u64 now)
{
	s32 acked = le32_to_cpu(p->ack) - (s->tx_seq - s->nr_sent);
	s32 ahead = le32_to_cpu(p->seq) - s->rx_seq;

	if (acked > (s32)s->nr_sent)
		return -EBADMSG;
	if (p->type == SCI_PACKET_DATA && ahead >= SCI_SESSION_WINDOW)
		return -EBADMSG;
	session_was_heard(s, now);
	/* first send the messages that waited for room in the window: they carry an ACK */
	session_acknowledged(s, max(acked, 0), now);
	switch (p->type) {
	case SCI_PACKET_DATA:
		session_store(s, p, ahead);
		break;
	case SCI_PACKET_PING:
		s->ack_due = true;
		break;
	case SCI_PACKET_BYE:
		session_end(s, -EHOSTUNREACH);
		break;
	}
	return 0;
}

/*
 * Answer a packet of another session, which the other node may still use. Without a session, a
 * HELLO starts a handshake that ends it. In a new session, repeat the ANSWER with which the
 * session began: the other node may not have it. If the packet is old, the answer does no harm.
 */
static int session_receive_stray(struct sci_session *s,
				 const struct sci_packet *p)
{
	if (p->type == SCI_PACKET_BYE)
		return -ESTALE;
	if (s->state == SCI_SESSION_IDLE)
		session_send_hello(s, false);
	else if (s->state == SCI_SESSION_UP && !s->proven)
		session_send_answer(s, s->own, s->peer, true);
	return -ESTALE;
}

int sci_session_receive(struct sci_session *s, const struct sci_packet *packet,
			u64 now)
{
	if (!sci_packet_valid(packet))
		return -EBADMSG;
	if (s->state == SCI_SESSION_GONE || s->state == SCI_SESSION_CLOSED)
		return -ESTALE;
	if (packet->type == SCI_PACKET_HELLO)
		return session_receive_hello(s, packet);
	if (packet->type == SCI_PACKET_ANSWER)
		return session_receive_answer(s, packet, now);
	if (s->state == SCI_SESSION_UP &&
	    le32_to_cpu(packet->session) == s->rx_id)
		return session_receive_in_session(s, packet, now);
	return session_receive_stray(s, packet);
}

bool sci_session_take(struct sci_session *s, void *body)
{
	if (!(s->received & BIT(0)))
		return false;
	memcpy(body, s->ring[s->rx_seq % SCI_SESSION_WINDOW], SCI_MESSAGE_SIZE);
	s->rx_seq++;
	s->received >>= 1;
	s->ack_due = true;
	return true;
}

void sci_session_settle(struct sci_session *s)
{
	if (s->ack_due)
		session_send_in_session(s, SCI_PACKET_ACK, NULL, false);
	session_end_need(s);
}

/* ---- calls of users, and time ---- */

void sci_session_post(struct sci_session *s, struct sci_message *m, u64 now)
{
	if (s->state == SCI_SESSION_CLOSED) {
		m->done(m);
		return;
	}
	session_begin_need(s, now);
	list_add_tail(&m->link, &s->waiting);
	WRITE_ONCE(s->nr_messages, s->nr_messages + 1);
	if (s->state == SCI_SESSION_IDLE)
		session_hello(s, now);
	else if (s->state == SCI_SESSION_UP)
		session_push(s, now);
}

void sci_session_watch(struct sci_session *s, bool watched, u64 now)
{
	if (watched)
		session_begin_need(s, now);
	s->watched = watched;
	session_end_need(s);
}

void sci_session_returned(struct sci_session *s, u64 now)
{
	if (!session_awaits_answer(s))
		return;
	if (s->state == SCI_SESSION_UP && s->returned <= session_silent_since(s))
		s->returned = now;
	else if (s->state == SCI_SESSION_HELLO || now - s->returned >= s->times.absent)
		s->unreachable = true;
}

void sci_session_lost(struct sci_session *s)
{
	if (s->state == SCI_SESSION_HELLO || s->state == SCI_SESSION_UP)
		s->unreachable = true;
}

u64 sci_session_deadline(const struct sci_session *s)
{
	switch (s->state) {
	case SCI_SESSION_GONE:
	case SCI_SESSION_CLOSED:
		return SCI_SESSION_NEVER;
	default:
		if (s->unreachable)
			return 0;
		if (s->paused)
			return SCI_SESSION_NEVER;
		if (session_awaits_answer(s))
			return min(s->retry_at, session_gone_at(s));
		if (s->state == SCI_SESSION_UP && s->watched)
			return session_silent_since(s) + s->times.heartbeat;
		return SCI_SESSION_NEVER;
	}
}

void sci_session_tick(struct sci_session *s, u64 now)
{
	u64 due = sci_session_deadline(s);

	if (now < due)
		return;
	if (s->unreachable) {
		s->unreachable = false;
		if (session_is_needed(s))
			session_end(s, -EHOSTUNREACH);
		return;
	}
	/* after a long pause of this machine, packets may wait to be received */
	if (now - due >= s->times.heartbeat)
		s->since = now;
	if (!session_awaits_answer(s))
		session_probe(s, now);
	else if (now >= session_gone_at(s))
		session_end(s, -EHOSTUNREACH);
	else
		session_retry(s, now);
}

void sci_session_pause(struct sci_session *s)
{
	s->paused = true;
}

void sci_session_resume(struct sci_session *s, u64 now)
{
	s->paused = false;
	s->since = now;
	if (!session_awaits_answer(s))
		return;
	s->retry_after = s->times.retry;
	session_retry(s, now);
}
