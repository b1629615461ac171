// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: calls to other nodes
 *
 * To import a segment, to connect to a doorbell or to send a HELLO, this process needs
 * an answer of another process. That process may be stopped or busy, and then the fabric
 * blocks until a timeout. Progress must never block. So threads make these calls
 * (callers.c) and wake the endpoint after the answer, and progress takes the result.
 *
 * Most calls are made again after a timeout of a second. For the owner of an inbox, an importer that
 * gives up while the answer is on its way has left. So the import of an inbox has a long timeout. If
 * the owner dies, the call ends at once.
 *
 * A call belongs to a peer, which is not freed before the call has ended. A refusal
 * (a HELLO that rejects a connection) belongs to the endpoint.
 */

#include "libsci/msg/conn/conn.h"

#include <errno.h>
#include <stdlib.h>

#define CALL_TIMEOUT_MS		1000u
#define INBOX_TIMEOUT_MS	60000u

/* ---- on a thread of callers.c ---- */

static uint32_t call_adapter(const struct msg_call *c)
{
	return c->fabric == c->ep->fabric ? c->ep->adapter : 0;
}

static int call_connect_segment(struct msg_call *c)
{
	struct sci_rseg_param param = {
		.adapter = call_adapter(c), .node = c->to.node, .id = c->id,
		.port = MSG_NUMBERS + c->to.id,
		.timeout = c->kind == CALL_INBOX || c->kind == CALL_ROUTE ? INBOX_TIMEOUT_MS :
									    CALL_TIMEOUT_MS,
		.event = c->event, .owner = call_owner(c),
	};

	return c->fabric->ops->rseg.connect(c->fabric, &param, &c->seg);
}

static int call_connect_intr(struct msg_call *c, bool data, struct sci_rintr **out)
{
	struct sci_rintr_param param = {
		.adapter = call_adapter(c), .node = c->to.node,
		.number = MSG_NUMBERS + c->to.id,
		.timeout = CALL_TIMEOUT_MS, .data = data, .owner = call_owner(c),
	};

	return c->fabric->ops->rintr.connect(c->fabric, &param, out);
}

/*
 * Connect to the doorbell first: the peer treats the import of its inbox as the last step, and the
 * end of the import as the end of the connection. The net has no doorbells: its thread wakes an
 * endpoint that sleeps. On shared memory the inbox has the doorbell.
 */
static int call_connect_inbox(struct msg_call *c)
{
	const struct sci_fabric_ops *ops = c->fabric->ops;
	bool intr = c->kind == CALL_ROUTE && c->fabric == c->ep->rail;
	int ret = 0;

	/* on the second rail each doorbell is an interrupt, as its thread wakes the endpoint */
	if (intr || !(ops->stream || ops->ring))
		ret = call_connect_intr(c, false, &c->bell);

	return ret ? ret : call_connect_segment(c);
}

static int call_send_hello(struct msg_call *c)
{
	int ret = call_connect_intr(c, true, &c->port);

	return ret ? ret :
	       c->fabric->ops->rintr.trigger(c->port, &c->hello, sizeof(c->hello));
}

static int call_make(struct msg_call *c)
{
	switch (c->kind) {
	case CALL_SEGMENT:
	case CALL_RAIL:
		return call_connect_segment(c);
	case CALL_INBOX:
	case CALL_ROUTE:
		return call_connect_inbox(c);
	case CALL_HELLO:
	case CALL_REROUTE:
		return call_send_hello(c);
	}
	return -EINVAL;
}

/* Make the call unless it is cancelled, and block until its end. Then wake the endpoint. */
void call_run(struct msg_call *c)
{
	struct sci_ep *ep = c->ep;

	if (!c->ret)
		c->ret = call_make(c);
	c->ms = msg_now_ms() - c->begin;
	callers_done(c);
	/* after this store the endpoint may free @c */
	atomic_store_explicit(&c->done, true, memory_order_release);
	atomic_store(&ep->attention, 1);
	wake_self(ep);
}

static struct msg_call *call_new(struct sci_ep *ep, struct sci_fabric *fabric,
				 enum msg_call_kind kind, const struct sci_addr *to)
{
	struct msg_call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->ep = ep;
	c->fabric = fabric;
	c->kind = kind;
	c->to = *to;
	list_init(&c->waiting);
	return c;
}

/* Make a call to @p on one of the rails. */
static struct msg_call *call_new_on(struct sci_peer *p, unsigned int rail, enum msg_call_kind kind)
{
	const struct sci_addr there = { .node = p->rail_node, .id = p->addr.id };

	return rail == RAIL_SECOND ? call_new(p->ep, p->ep->rail, kind, &there) :
				     call_new(p->ep, p->fabric, kind, &p->addr);
}

static int call_start_new(struct msg_call *c, struct sci_peer *p, uint32_t id, sci_event_fn event)
{
	c->peer = p;
	c->id = id;
	c->event = event;
	list_add_tail(&c->link, &p->calls);
	peer_attend(p);
	callers_make(c);
	return 0;
}

/**
 * call_start() - import a segment or the inbox of @p on a thread
 * @event: event function of the import; its owner is @p
 *
 * The call stays in p->calls until call_end().
 *
 * Return: 0 or -ENOMEM.
 */
int call_start(struct sci_peer *p, enum msg_call_kind kind, uint32_t id,
	       sci_event_fn event)
{
	struct msg_call *c = call_new_on(p, kind == CALL_RAIL ? RAIL_SECOND : RAIL_FIRST, kind);

	return c ? call_start_new(c, p, id, event) : -ENOMEM;
}

/* Import the inbox @id on a rail on a thread. Otherwise as call_start() */
int call_route(struct sci_peer *p, unsigned int rail, uint32_t id, sci_event_fn event)
{
	struct msg_call *c = call_new_on(p, rail, CALL_ROUTE);

	return c ? call_start_new(c, p, id, event) : -ENOMEM;
}

/* Send a HELLO_REROUTE on a rail on a thread. */
int call_reroute(struct sci_peer *p, unsigned int rail, const struct msg_hello *hello)
{
	struct msg_call *c = call_new_on(p, rail, CALL_REROUTE);

	if (!c)
		return -ENOMEM;
	c->hello = *hello;
	return call_start_new(c, p, hello->turn, NULL);
}

struct msg_hello hello_make(struct sci_ep *ep, enum msg_hello_type type)
{
	return (struct msg_hello){
		.magic = MSG_MAGIC, .version = MSG_VERSION,
		.type = (uint16_t)type, .node = ep->addr.node,
		.id = ep->addr.id, .nonce = ep->nonce,
		.flags = (ep->wake_barrier ? HELLO_WAKE_BARRIER : 0u) |
			 (ep->crc ? HELLO_CRC : 0u) |
			 (ep->write_events ? HELLO_WRITE_EVENTS : 0u),
		.rail = ep->rail_node,
	};
}

/* Send a HELLO on a thread. @p is NULL for a refusal, whose result is ignored. */
int call_hello(struct sci_ep *ep, struct sci_fabric *fabric, struct sci_peer *p,
	       const struct sci_addr *to, const struct msg_hello *hello)
{
	struct msg_call *c = call_new(ep, fabric, CALL_HELLO, to);

	if (!c)
		return -ENOMEM;
	c->peer = p;
	c->hello = *hello;
	list_add_tail(&c->link, p ? &p->calls : &ep->refusals);
	if (p)
		peer_attend(p);
	ep->n_refusals += !p;
	callers_make(c);
	return 0;
}

/*
 * Return the call of @kind that has not ended or whose result has not been taken, or NULL. A peer
 * has at most one CALL_INBOX and one CALL_HELLO, and one call of each other kind per @id.
 */
struct msg_call *call_find(struct sci_peer *p, enum msg_call_kind kind,
			   uint32_t id)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &p->calls) {
		struct msg_call *c = container_of(pos, struct msg_call, link);

		if (c->kind == kind && (kind == CALL_INBOX || kind == CALL_HELLO || c->id == id))
			return c;
	}
	return NULL;
}

/* Free @c, which has ended, and disconnect the results that progress did not take. */
void call_end(struct msg_call *c)
{
	const struct sci_fabric_ops *ops = c->fabric->ops;

	if (c->port)
		ops->rintr.disconnect(c->port);
	if (c->bell)
		ops->rintr.disconnect(c->bell);
	if (c->seg)
		ops->rseg.disconnect(c->seg);
	c->ep->n_refusals -= !c->peer;
	list_del(&c->link);
	free(c);
}

static void calls_end_done(struct list *calls)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, calls) {
		struct msg_call *c = container_of(pos, struct msg_call, link);

		if (call_is_done(c))
			call_end(c);
	}
}

void refusals_end(struct sci_ep *ep)
{
	calls_end_done(&ep->refusals);
}

/* Cancel the calls of @p, which is DOWN. Return false while a call has not ended. */
bool calls_give_up(struct sci_peer *p)
{
	calls_end_done(&p->calls);
	if (list_empty(&p->calls))
		return true;
	p->fabric->ops->rseg.cancel_connect(p->fabric, p);
	if (p->rail_node)
		p->ep->rail->ops->rseg.cancel_connect(p->ep->rail, p);
	return false;
}
