// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: locks of far members
 *
 * A member that does not reach the lock's word sends a request to rank 0. A handler of rank 0
 * executes the request: it takes and releases locks, and takes tickets, in the name of the far
 * member. The member that waits for its turn sends nothing: it sleeps until the answer arrives. A
 * lock that is taken and released costs four messages, however many members wait for it.
 *
 * Near members release locks without a message. So rank 0 checks in world_poll() whether a ticket
 * of a far member is current.
 *
 * The lock of the endpoint protects both lists: handlers and functions of sci_wait_until() use them.
 */

#include "libsci/team/lock.h"

#include <stdlib.h>

#define LOCK_HANDLER	(SCI_HANDLER_USER - 1)
#define REQUESTS_MAX	0x7fffu		/* half of the numbers that a ticket has */
#define WAIT_MS		10		/* between two checks for deaths and for collective calls */
#define WAIT_BUSY_MS	1		/* the same while other members wait for this process */

enum lock_op { LOCK_TRY, LOCK_TAKE, LOCK_CANCEL, LOCK_RELEASE, LOCK_ANSWER };

/* A request or an answer. Its tag is the number of the call. */
struct lock_msg {
	uint64_t offset;		/* of the word in the region */
	uint32_t region;
	uint32_t rank;			/* world rank of the sender of a request */
	uint32_t op;
	int32_t result;			/* of an answer */
};
_Static_assert(sizeof(struct lock_msg) <= SCI_TAGGED_SHORT_MAX, "one line");

/* ---- rank 0 ---- */

/* A request without an answer yet. */
struct lock_request {
	struct list link;		/* world->lock_requests */
	struct sci_peer *peer;
	uint64_t id;
	int result;			/* -EINPROGRESS: @wait is in use */
	struct lock_wait wait;
};

static int answer_send(struct sci_peer *peer, uint64_t id, int result)
{
	struct lock_msg answer = { .op = LOCK_ANSWER, .result = result };

	return sci_handler_send(peer, LOCK_HANDLER, id, &answer, sizeof(answer));
}

static void request_free(struct team_world *w, struct lock_request *r)
{
	list_del(&r->link);
	sci_store_relaxed(&w->n_lock_requests, w->n_lock_requests - 1);
	free(r);
}

/* Continue a request. Answer it if it has a result and there is room for the answer. */
static void request_step(struct team_world *w, struct lock_request *r)
{
	int ret;

	if (r->result == -EINPROGRESS && world_dead(w, r->wait.member)) {
		lock_wait_cancel(&r->wait);
		request_free(w, r);
		return;
	}
	if (r->result == -EINPROGRESS) {
		ret = lock_wait_step(w, &r->wait);
		if (ret == -EAGAIN)
			return;
		r->result = ret;
	}
	ret = answer_send(r->peer, r->id, r->result);
	if (ret == -EAGAIN || ret == -ENOMEM)
		return;
	/* the connection has ended: the member will not learn that it has the lock */
	if (ret && r->wait.word && r->result == -EOWNERDEAD)
		lock_give_back(&r->wait);
	else if (ret && r->wait.word && !r->result)
		lock_release(r->wait.word, r->wait.member);
	request_free(w, r);
}

static int requests_step(void *arg)
{
	struct team_world *w = arg;
	struct lock_request *r, *n;

	list_for_each_entry_safe(r, n, &w->lock_requests, link)
		request_step(w, r);
	return 0;
}

void locks_poll(struct team_world *w)
{
	sci_wait_until(w->ep, requests_step, w, 0);
}

/*
 * Execute a request. Return its result. 0: if the request was to take the lock, @wait names the lock.
 * -EINPROGRESS: the member waits with the ticket in @wait.
 */
static int request_execute(struct team_world *w, const struct lock_msg *m, struct lock_wait *wait)
{
	const struct team_region *region;
	int member = (int)m->rank, ret;
	uint64_t *word;

	if (m->region >= sci_load_acquire(&w->n_regions))
		return -EFAULT;
	region = w->regions[m->region];
	if (m->offset % sizeof(*word) || region->len < sizeof(*word) ||
	    m->offset > region->len - sizeof(*word))
		return -EFAULT;
	word = (uint64_t *)(void *)(region->base + m->offset);
	if (m->op == LOCK_RELEASE)
		return lock_release(word, member);
	*wait = (struct lock_wait){ .word = word, .member = member };
	ret = lock_try(w, wait);
	if (ret != -EAGAIN || m->op != LOCK_TAKE)
		return ret;
	lock_wait_begin(wait, word, member);
	return -EINPROGRESS;
}

/* The member's call has timed out. If the answer is on its way, the member gets that answer. */
static void request_cancel(struct team_world *w, const struct sci_handled *m)
{
	struct lock_request *r, *n;

	list_for_each_entry_safe(r, n, &w->lock_requests, link)
		if (r->peer == m->peer && r->id == m->tag && r->result == -EINPROGRESS) {
			lock_wait_cancel(&r->wait);
			r->result = -ETIMEDOUT;
			request_step(w, r);
		}
}

static void request_handle(struct team_world *w, const struct sci_handled *m,
			   const struct lock_msg *msg)
{
	struct lock_request *r = NULL;

	if (w->n_lock_requests < REQUESTS_MAX)
		r = calloc(1, sizeof(*r));
	if (!r) {
		answer_send(m->peer, m->tag, -ENOMEM);
		return;
	}
	r->peer = m->peer;
	r->id = m->tag;
	r->result = request_execute(w, msg, &r->wait);
	list_add_tail(&r->link, &w->lock_requests);
	sci_store_relaxed(&w->n_lock_requests, w->n_lock_requests + 1);
	request_step(w, r);
	/* the next member may be far, too */
	if (msg->op == LOCK_RELEASE)
		requests_step(w);
}

/* ---- far members ---- */

/* A call of this process. */
struct lock_call {
	struct list link;		/* world->lock_calls, from the first message on */
	struct team_world *world;
	struct sci_peer *peer;
	uint64_t id;
	struct lock_msg msg;
	bool send;			/* @msg is to be sent */
	bool listed;
	int result;			/* -EINPROGRESS: no answer yet */
};

static void call_answered(struct team_world *w, const struct sci_handled *m, int result)
{
	struct lock_call *c, *n;

	list_for_each_entry_safe(c, n, &w->lock_calls, link)
		if (c->peer == m->peer && c->id == m->tag)
			c->result = result > 0 ? -EPROTO : result;
}

static int call_end(void *arg)
{
	struct lock_call *c = arg;

	if (c->listed)
		list_del(&c->link);
	return 0;
}

/* Send the message of a call if it is not sent yet. Return 0 when the answer has arrived. */
static int call_step(void *arg)
{
	struct lock_call *c = arg;
	struct team_world *w = c->world;
	int ret;

	if (c->send) {
		if (!c->listed) {
			c->id = w->lock_ids++;
			list_add_tail(&c->link, &w->lock_calls);
			c->listed = true;
		}
		ret = sci_handler_send(c->peer, LOCK_HANDLER, c->id, &c->msg, sizeof(c->msg));
		/* after a request, wait for its answer: rank 0 may give the lock to this member */
		if (ret == -ENOMEM && c->msg.op == LOCK_CANCEL)
			return -EAGAIN;
		if (ret)
			return ret;
		c->send = false;
	}
	return c->result == -EINPROGRESS ? -EAGAIN : 0;
}

/* Return how long to sleep until @end. */
static int call_sleep_ms(struct team_world *w, uint64_t now, uint64_t end)
{
	int ms = sci_load_relaxed(&w->queued) || sci_load_relaxed(&w->n_lock_requests) ?
		 WAIT_BUSY_MS : WAIT_MS;

	return end - now < (uint64_t)ms ? (int)(end - now) : ms;
}

/* Return false if the connection has ended: there will be no answer, also if the peer lives. */
static bool peer_can_answer(struct sci_peer *peer)
{
	int state = sci_peer_state(peer);

	return !state || state == -EINPROGRESS;
}

/*
 * Wait for the answer. After @timeout ms, cancel the request, and wait for the answer to that. If there
 * was no room to send the request, there is nothing to cancel.
 */
static int call_wait(struct lock_call *c, int home, int timeout)
{
	struct team_world *w = c->world;
	uint64_t now = team_now_ms(), end = timeout < 0 ? UINT64_MAX : now + (uint64_t)timeout;
	int ret;

	while ((ret = sci_wait_until(w->ep, call_step, c, call_sleep_ms(w, now, end))) ==
	       -ETIMEDOUT) {
		world_poll(w);
		if (world_dead(w, home) || !peer_can_answer(c->peer))
			return -ECONNRESET;
		now = team_now_ms();
		if (now >= end && c->send)
			return -ETIMEDOUT;
		if (now >= end) {
			c->msg.op = LOCK_CANCEL;
			c->send = true;
			end = UINT64_MAX;
		}
	}
	return ret ? member_result(ret) : c->result;
}

static int lock_call(struct sci_team *t, uint64_t *lock, enum lock_op op, int timeout)
{
	struct team_world *w = t->world;
	unsigned int region = region_find(w, lock, sizeof(*lock));
	struct lock_call c = {
		.world = w, .send = true, .result = -EINPROGRESS,
		.msg = { .op = op, .region = region, .rank = (uint32_t)w->rank },
	};
	int home = t->members[0].world, ret;

	if (region == TEAM_REGIONS)
		return -EFAULT;
	c.msg.offset = (uint64_t)((uint8_t *)lock - w->regions[region]->base);
	ret = world_peer(w, home, &c.peer);
	ret = ret ? ret : call_wait(&c, home, timeout);
	sci_wait_until(w->ep, call_end, &c, 0);
	return ret;
}

int lock_far_take(struct sci_team *t, uint64_t *lock, int timeout)
{
	return lock_call(t, lock, timeout ? LOCK_TAKE : LOCK_TRY, timeout ? timeout : -1);
}

int lock_far_release(struct sci_team *t, uint64_t *lock)
{
	return lock_call(t, lock, LOCK_RELEASE, -1);
}

/* ---- both ---- */

static bool sender_is(const struct team_world *w, struct sci_peer *peer, uint32_t rank)
{
	struct sci_addr addr;

	return rank < (uint32_t)w->size && !sci_peer_addr(peer, &addr) &&
	       addr.node == w->ranks[rank].addr.node && addr.id == w->ranks[rank].addr.id;
}

static void lock_handle(void *arg, const struct sci_handled *m)
{
	struct team_world *w = arg;
	struct lock_msg msg;

	if (m->error || m->len != sizeof(msg))
		return;
	memcpy(&msg, m->data, sizeof(msg));
	/* check the copy: the peer can still change the message */
	sci_compiler_barrier();
	if (msg.op == LOCK_ANSWER)
		call_answered(w, m, msg.result);
	else if (!sender_is(w, m->peer, msg.rank))
		return;
	else if (msg.op == LOCK_CANCEL)
		request_cancel(w, m);
	else if (msg.op < LOCK_ANSWER)
		request_handle(w, m, &msg);
}

int locks_open(struct team_world *w)
{
	return sci_handler_set(w->ep, LOCK_HANDLER, lock_handle, w);
}

void locks_close(struct team_world *w)
{
	struct list *l;

	while ((l = list_pop(&w->lock_requests)))
		free(container_of(l, struct lock_request, link));
}
