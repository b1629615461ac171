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

static void set_state(struct sci_session *s, enum sci_session_state state)
{
	enum sci_session_state old = s->state;

	if (state == old)
		return;
	WRITE_ONCE(s->state, state);
	s->ops->changed(s, old);
}

/* ---- tags ---- */

/* Goes through all numbers but 0 before it comes back. */
static u32 tag_after(u32 tag)
{
	tag += 0x9e3779b9;
	return tag ?: 0x9e3779b9;
}

/* Differs whenever one of them does; not the same in the other direction. */
static u32 session_id(u32 sender, u32 receiver)
{
	return sender * 0x85ebca6b + rol32(receiver * 0xc2b2ae35, 16);
}

/* ---- what is expected from the other node ---- */

static bool has_messages(const struct sci_session *s)
{
	return !list_empty(&s->sent) || !list_empty(&s->waiting);
}

/* Would anybody miss the other node? */
static bool at_stake(const struct sci_session *s)
{
	return s->watched || has_messages(s);
}

/* Did we say something that has no answer yet? */
static bool unanswered(const struct sci_session *s)
{
	if (s->state == SCI_SESSION_HELLO)
		return true;
	return s->state == SCI_SESSION_UP && (s->nr_sent || s->probing);
}

/* Since when the other node is silent. */
static u64 silent_since(const struct sci_session *s)
{
	return max(s->heard, s->since);
}

/* When it is gone if it remains silent. */
static u64 gone_at(const struct sci_session *s)
{
	bool known = s->state == SCI_SESSION_UP && s->proven;

	return silent_since(s) + (known ? s->times.dead : s->times.connect);
}

/* Somebody is about to care: the silence before does not count. */
static void care(struct sci_session *s, u64 now)
{
	if (!at_stake(s))
		s->since = now;
}

/*
 * Nobody cares any more: what was heard before will not count.  Nor is the
 * other node asked: a session that ended now would do so untold, and what was
 * taken in it could come again in the next.
 */
static void relax(struct sci_session *s)
{
	if (at_stake(s))
		return;
	s->proven = false;
	s->probing = false;
	s->retry_at = SCI_SESSION_NEVER;
}

static void retry_reset(struct sci_session *s, u64 now)
{
	s->retry_after = s->times.retry;
	s->retry_at = unanswered(s) ? now + s->retry_after : SCI_SESSION_NEVER;
}

static void retry_start(struct sci_session *s, u64 now)
{
	if (s->retry_at == SCI_SESSION_NEVER)
		retry_reset(s, now);
}

/* ---- sending ---- */

static void transmit(struct sci_session *s, struct sci_packet *p, u8 type,
		     bool again)
{
	p->version = SCI_SESSION_VERSION;
	p->type = type;
	if (s->ops->send(s, p, again) == -EHOSTUNREACH)
		s->unreachable = true;
}

static void send_hello(struct sci_session *s, bool again)
{
	struct sci_packet p = { .from = cpu_to_le32(s->next) };

	transmit(s, &p, SCI_PACKET_HELLO, again);
}

static void send_answer(struct sci_session *s, u32 from, u32 to, bool again)
{
	struct sci_packet p = {
		.from = cpu_to_le32(from),
		.to = cpu_to_le32(to),
	};

	transmit(s, &p, SCI_PACKET_ANSWER, again);
}

/* In the session; each such packet acknowledges all there is. */
static void send_in_session(struct sci_session *s, u8 type,
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
	transmit(s, &p, type, again);
}

/* Sends what the window allows. */
static void push(struct sci_session *s, u64 now)
{
	struct sci_message *m, *next;

	list_for_each_entry_safe(m, next, &s->waiting, link) {
		if (s->nr_sent == SCI_SESSION_WINDOW)
			break;
		m->seq = s->tx_seq++;
		list_move_tail(&m->link, &s->sent);
		s->nr_sent++;
		send_in_session(s, SCI_PACKET_DATA, m, false);
	}
	retry_start(s, now);
}

static void probe(struct sci_session *s, u64 now)
{
	s->probing = true;
	send_in_session(s, SCI_PACKET_PING, NULL, false);
	retry_start(s, now);
}

static void retry_in_session(struct sci_session *s)
{
	struct sci_message *m;

	if (!s->proven)
		send_answer(s, s->own, s->peer, true);
	list_for_each_entry(m, &s->sent, link)
		send_in_session(s, SCI_PACKET_DATA, m, true);
	if (s->probing)
		send_in_session(s, SCI_PACKET_PING, NULL, true);
}

static void retry(struct sci_session *s, u64 now)
{
	if (s->state == SCI_SESSION_HELLO)
		send_hello(s, true);
	else
		retry_in_session(s);
	s->retry_after = min(2 * s->retry_after, s->times.retry_max);
	s->retry_at = now + s->retry_after;
}

/* ---- beginning and end of a session ---- */

static void finish(struct sci_session *s, struct sci_message *m)
{
	list_del(&m->link);
	WRITE_ONCE(s->nr_messages, s->nr_messages - 1);
	m->done(m);
}

static void finish_all(struct sci_session *s)
{
	struct sci_message *m, *next;

	list_splice_tail_init(&s->waiting, &s->sent);
	list_for_each_entry_safe(m, next, &s->sent, link)
		finish(s, m);
	s->nr_sent = 0;
}

static void hello(struct sci_session *s, u64 now)
{
	set_state(s, SCI_SESSION_HELLO);
	s->since = now;
	retry_reset(s, now);
	send_hello(s, false);
}

/*
 * The other node has answered to our next tag.  Messages that were on their way
 * in a session that is replaced silently go with this one.
 */
static void begin(struct sci_session *s, u32 peer, u64 now)
{
	list_splice_init(&s->sent, &s->waiting);
	s->nr_sent = 0;
	s->own = s->next;
	s->next = tag_after(s->own);
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
	set_state(s, SCI_SESSION_UP);
	retry_reset(s, now);
	send_answer(s, s->own, s->peer, false);
	push(s, now);
}

/*
 * No message of this session is delivered any more.  The next tag remains: the
 * other node may know it already.
 */
static void end(struct sci_session *s, int error)
{
	bool tell = at_stake(s);

	finish_all(s);
	s->received = 0;
	s->probing = false;
	s->ack_due = false;
	s->unreachable = false;
	s->retry_at = SCI_SESSION_NEVER;
	s->error = error;
	set_state(s, tell ? SCI_SESSION_GONE : SCI_SESSION_IDLE);
}

void sci_session_revive(struct sci_session *s, u64 now)
{
	if (s->state != SCI_SESSION_GONE)
		return;
	if (list_empty(&s->waiting))
		set_state(s, SCI_SESSION_IDLE);
	else
		hello(s, now);
}

void sci_session_init(struct sci_session *s, const struct sci_session_ops *ops,
		      const struct sci_session_times *times, u32 generation)
{
	memset(s, 0, sizeof(*s));
	s->ops = ops;
	s->times = *times;
	s->next = generation ?: tag_after(generation);
	s->retry_at = SCI_SESSION_NEVER;
	INIT_LIST_HEAD(&s->sent);
	INIT_LIST_HEAD(&s->waiting);
}

void sci_session_close(struct sci_session *s)
{
	if (s->state == SCI_SESSION_UP)
		send_in_session(s, SCI_PACKET_BYE, NULL, false);
	finish_all(s);
	s->received = 0;
	set_state(s, SCI_SESSION_CLOSED);
}

/* ---- receiving ---- */

static bool is_zero(const void *p, size_t bytes)
{
	return !memchr_inv(p, 0, bytes);
}

static bool greeting_valid(const struct sci_packet *p)
{
	size_t used = offsetofend(struct sci_packet, to);

	return !p->session && !p->seq && !p->ack && p->from &&
	       !p->to == (p->type == SCI_PACKET_HELLO) &&
	       is_zero((const u8 *)p + used, sizeof(*p) - used);
}

bool sci_packet_valid(const struct sci_packet *p)
{
	if (p->version != SCI_SESSION_VERSION || p->reserved)
		return false;
	switch (p->type) {
	case SCI_PACKET_HELLO:
	case SCI_PACKET_ANSWER:
		return greeting_valid(p);
	case SCI_PACKET_DATA:
		return true;
	case SCI_PACKET_ACK:
	case SCI_PACKET_PING:
	case SCI_PACKET_BYE:
		return !p->seq && is_zero(p->body, sizeof(p->body));
	default:
		return false;
	}
}

/*
 * May be from another life: answering is all.  The tag is that of the session
 * we have if it is with this very sender, who may have missed that.
 */
static int receive_hello(struct sci_session *s, const struct sci_packet *p)
{
	u32 from = le32_to_cpu(p->from);

	if (s->state == SCI_SESSION_UP && from == s->peer)
		send_answer(s, s->own, from, false);
	else
		send_answer(s, s->next, from, false);
	return 0;
}

static void was_heard(struct sci_session *s, u64 now)
{
	WRITE_ONCE(s->heard, now);
	s->proven = true;
	if (!s->probing)
		return;
	s->probing = false;
	retry_reset(s, now);
}

static int receive_answer(struct sci_session *s, const struct sci_packet *p,
			  u64 now)
{
	u32 from = le32_to_cpu(p->from), to = le32_to_cpu(p->to);
	bool up = s->state == SCI_SESSION_UP;

	if (up && to == s->own && from == s->peer) {
		was_heard(s, now);
		return 0;
	}
	if (to != s->next)
		return -ESTALE;
	if (up && s->proven && at_stake(s))
		end(s, -EHOSTUNREACH);
	else
		begin(s, from, now);
	return 0;
}

/* The @count oldest messages have arrived. */
static void acknowledged(struct sci_session *s, unsigned int count, u64 now)
{
	if (!count)
		return;
	s->nr_sent -= count;
	while (count--)
		finish(s, list_first_entry(&s->sent, struct sci_message, link));
	retry_reset(s, now);
	push(s, now);
}

/* @ahead: of the next one to be taken; negative: has been */
static void store(struct sci_session *s, const struct sci_packet *p, s32 ahead)
{
	u32 slot = le32_to_cpu(p->seq) % SCI_SESSION_WINDOW;

	s->ack_due = true;
	if (ahead < 0 || s->received & BIT(ahead))
		return;
	memcpy(s->ring[slot], p->body, sizeof(p->body));
	s->received |= BIT(ahead);
}

static int receive_in_session(struct sci_session *s, const struct sci_packet *p,
			      u64 now)
{
	s32 acked = le32_to_cpu(p->ack) - (s->tx_seq - s->nr_sent);
	s32 ahead = le32_to_cpu(p->seq) - s->rx_seq;

	if (acked > (s32)s->nr_sent)
		return -EBADMSG;
	if (p->type == SCI_PACKET_DATA && ahead >= SCI_SESSION_WINDOW)
		return -EBADMSG;
	was_heard(s, now);
	/* sends what has waited, thus goes before what wants a new ack */
	acknowledged(s, max(acked, 0), now);
	switch (p->type) {
	case SCI_PACKET_DATA:
		store(s, p, ahead);
		break;
	case SCI_PACKET_PING:
		s->ack_due = true;
		break;
	case SCI_PACKET_BYE:
		end(s, -EHOSTUNREACH);
		break;
	}
	return 0;
}

/*
 * Not of this session.  If it is of one that the other node still believes in,
 * a HELLO makes it see; or the ANSWER with which ours began, which it missed.
 * If the packet is an old one, neither does any harm.
 */
static int receive_stray(struct sci_session *s, const struct sci_packet *p)
{
	if (p->type == SCI_PACKET_BYE)
		return -ESTALE;
	if (s->state == SCI_SESSION_IDLE)
		send_hello(s, false);
	else if (s->state == SCI_SESSION_UP && !s->proven)
		send_answer(s, s->own, s->peer, true);
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
		return receive_hello(s, packet);
	if (packet->type == SCI_PACKET_ANSWER)
		return receive_answer(s, packet, now);
	if (s->state == SCI_SESSION_UP &&
	    le32_to_cpu(packet->session) == s->rx_id)
		return receive_in_session(s, packet, now);
	return receive_stray(s, packet);
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
		send_in_session(s, SCI_PACKET_ACK, NULL, false);
	relax(s);
}

/* ---- what users and time do ---- */

void sci_session_post(struct sci_session *s, struct sci_message *m, u64 now)
{
	if (s->state == SCI_SESSION_CLOSED) {
		m->done(m);
		return;
	}
	care(s, now);
	list_add_tail(&m->link, &s->waiting);
	WRITE_ONCE(s->nr_messages, s->nr_messages + 1);
	if (s->state == SCI_SESSION_IDLE)
		hello(s, now);
	else if (s->state == SCI_SESSION_UP)
		push(s, now);
}

void sci_session_watch(struct sci_session *s, bool watched, u64 now)
{
	if (watched)
		care(s, now);
	s->watched = watched;
	relax(s);
}

void sci_session_returned(struct sci_session *s)
{
	if (s->state == SCI_SESSION_HELLO)
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
		if (unanswered(s))
			return min(s->retry_at, gone_at(s));
		if (s->state == SCI_SESSION_UP && s->watched)
			return silent_since(s) + s->times.heartbeat;
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
		if (at_stake(s))
			end(s, -EHOSTUNREACH);
		return;
	}
	/* we did not look for so long that packets may lie there */
	if (now - due >= s->times.heartbeat)
		s->since = now;
	if (!unanswered(s))
		probe(s, now);
	else if (now >= gone_at(s))
		end(s, -EHOSTUNREACH);
	else
		retry(s, now);
}

void sci_session_pause(struct sci_session *s)
{
	s->paused = true;
}

void sci_session_resume(struct sci_session *s, u64 now)
{
	s->paused = false;
	s->since = now;
	if (!unanswered(s))
		return;
	s->retry_after = s->times.retry;
	retry(s, now);
}
