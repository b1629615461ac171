// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: life of a peer
 *
 * CONNECTING: the inbox for the peer is exported, the peer's inbox is not imported yet. UP: the
 * peer's inbox is imported, too. DOWN: the peer has disconnected, has died, or has violated the
 * protocol; all requests that depended on the peer have completed with an error. The next progress
 * call releases its segments, imports and doorbell, since callers of peer_down() may still be using
 * them. The struct exists until sci_disconnect() if the program may have a pointer to it.
 *
 * The fabric reports the end of a peer in two ways: the peer disconnects from its inbox in this
 * endpoint, in good order or by dying, and the peer's own inbox ends. The first report decides.
 */

#include "libsci/msg/conn/conn.h"

#include <errno.h>
#include <stdlib.h>

/* Time after which a peer that has removed only its own inbox is closed, in ms. */
#define SUSPECT_MS		500u

/* ---- events: on the fabric's thread, which holds the fabric's locks ---- */

/*
 * Record an event. A peer's first event puts the peer on the stack ep->news, so that progress looks
 * only at peers with events, however many peers there are.
 */
static void event_record(struct sci_peer *p, unsigned int event)
{
	struct sci_peer *top = atomic_load(&p->ep->news);

	if (atomic_fetch_or(&p->events, event | PEER_LISTED) & PEER_LISTED)
		return;
	do {
		p->news = top;
	} while (!atomic_compare_exchange_weak(&p->ep->news, &top, p));
}

void peer_event_add(struct sci_peer *p, unsigned int event)
{
	event_record(p, event);
	atomic_store(&p->ep->attention, 1);
	wake_self(p->ep);
}

/*
 * Record that the peer has imported an inbox. With two rails, this import may follow one that has
 * ended. @lost: the event of that end, which no longer counts. A later one stays.
 */
static void peer_event_came(struct sci_peer *p, unsigned int came, unsigned int lost)
{
	atomic_fetch_and(&p->events, ~lost);
	peer_event_add(p, came);
}

static void inbox_event(void *owner, const struct sci_event *ev)
{
	struct sci_peer *p = owner;

	switch (ev->type) {
	case SCI_EVENT_CONNECT:
		peer_event_came(p, PEER_CAME, p->ep->rail ? PEER_LOST : 0);
		break;
	case SCI_EVENT_DISCONNECT:
		peer_event_add(owner, PEER_LEFT);
		break;
	case SCI_EVENT_LOST:
		peer_event_add(owner, PEER_LOST);
		break;
	case SCI_EVENT_RANG:
		/* the fabric wakes the endpoint */
		event_record(owner, PEER_RANG);
		break;
	default:
		break;
	}
}

static void outbox_event(void *owner, const struct sci_event *ev)
{
	if (ev->type == SCI_EVENT_LOST)
		peer_event_add(owner, PEER_GONE);
	else if (ev->type == SCI_EVENT_DISCONNECT && ev->status)
		peer_event_add(owner, PEER_GONE | PEER_CUT);
}

static void second_inbox_event(void *owner, const struct sci_event *ev)
{
	if (ev->type == SCI_EVENT_CONNECT)
		peer_event_came(owner, PEER_RAIL_CAME, PEER_RAIL_LOST);
	else if (ev->type == SCI_EVENT_DISCONNECT)
		peer_event_add(owner, PEER_LEFT);
	else if (ev->type == SCI_EVENT_LOST)
		peer_event_add(owner, PEER_RAIL_LOST);
}

static void second_outbox_event(void *owner, const struct sci_event *ev)
{
	if (ev->type == SCI_EVENT_LOST)
		peer_event_add(owner, PEER_RAIL_LOST);
	else if (ev->type == SCI_EVENT_DISCONNECT && ev->status)
		peer_event_add(owner, PEER_GONE | PEER_CUT);
}

/* ---- creation ---- */

static uint64_t key_of(const struct sci_addr *addr)
{
	return (uint64_t)addr->node << 32 | addr->id;
}

/* Return the live peer with this address, else the latest DOWN peer with it, or NULL. */
struct sci_peer *peer_find(struct sci_ep *ep, const struct sci_addr *addr)
{
	struct hash_node *node = hash_find(&ep->by_addr, key_of(addr));

	return node ? container_of(node, struct sci_peer, by_addr) : NULL;
}

static int inbox_make(struct sci_peer *p)
{
	int ret = route_make(p, RAIL_FIRST, inbox_event);

	/* without an inbox on the second rail, lines can only use the first rail */
	if (!ret && p->rails)
		route_make(p, RAIL_SECOND, second_inbox_event);
	return ret;
}

static struct sci_peer *peer_alloc(bool rails)
{
	struct sci_peer *p = calloc(1, sizeof(*p));

	if (!p || !rails)
		return p;
	p->rails = calloc(1, sizeof(*p->rails));
	if (p->rails)
		return p;
	free(p);
	return NULL;
}

static void peer_dealloc(struct sci_peer *p)
{
	free(p->rails);
	free(p);
}

/* Return the memory of a connection without rings of blocks, in bytes. */
static size_t peer_bytes(const struct sci_peer *p)
{
	size_t bytes = sizeof(*p) + INBOX_BYTES;

	if (p->rails)
		bytes += sizeof(*p->rails) + (p->rails->second.inbox ? INBOX_BYTES : 0);
	return bytes;
}

static void rails_init(struct sci_peer *p)
{
	p->rails->second.link = p->ep->rail_link;
	list_init(&p->rails->imports);
	p->rails->event[RAIL_FIRST] = outbox_event;
	p->rails->event[RAIL_SECOND] = second_outbox_event;
}

static void peer_set_fabric(struct sci_peer *p, struct sci_fabric *fabric)
{
	const struct sci_ep *ep = p->ep;

	p->fabric = fabric;
	p->stream = fabric->ops->stream;
	p->params = p->stream ? &ep->net_params : &ep->params;
	p->adapter = p->stream ? 0 : ep->adapter;
	p->lossy = ep->lossy && !p->stream;
	p->stale = ep->link->cache && !p->stream;
	p->detour = p->stale || p->rails;
	p->careful = ep->lossy || p->stale || p->stream;
	p->may_read = ep->may_read && !p->stream;
}

static void rings_init(struct sci_peer *p)
{
	struct msg_inbox *inbox = p->first.inbox_map;

	p->status = (struct msg_status *)&inbox->status;
	rx_init(&p->ctl_rx, inbox->ctl, CTL_LINES);
	rx_init(&p->data_rx, inbox->data, DATA_LINES);
}

int peer_new(struct sci_ep *ep, struct sci_fabric *fabric,
	     const struct sci_addr *addr, struct sci_peer **out)
{
	struct sci_peer *p = peer_alloc(ep->rail && !fabric->ops->stream);
	int ret;

	if (!p)
		return -ENOMEM;
	p->ep = ep;
	p->addr = *addr;
	p->line = &p->first;
	p->first.link = ep->link;
	if (p->rails)
		rails_init(p);
	peer_set_fabric(p, fabric);
	ret = hash_add(&ep->by_addr, &p->by_addr, key_of(addr));
	if (ret)
		goto err;
	ret = ep->up->created(p);
	if (ret)
		goto err_hash;
	ret = inbox_make(p);
	if (ret)
		goto err_created;
	list_init(&p->hot);
	list_init(&p->busy);
	list_init(&p->accept_link);
	list_init(&p->dirty);
	list_init(&p->closing);
	list_init(&p->attend);
	list_init(&p->sendq);
	list_init(&p->ctlq);
	list_init(&p->sending);
	list_init(&p->moving);
	list_init(&p->onesided);
	list_init(&p->arriving);
	list_init(&p->receiving);
	list_init(&p->matched);
	list_init(&p->imports);
	list_init(&p->maps);
	list_init(&p->calls);
	rings_init(p);
	list_add_tail(&p->link, &ep->peers);
	*out = p;
	return 0;

err_created:
	ep->up->freed(p);
err_hash:
	hash_del(&ep->by_addr, &p->by_addr);
err:
	peer_dealloc(p);
	return ret;
}

/* Move @p from the net to ep->fabric. On an error, @p stays on the net. */
static int peer_move(struct sci_peer *p)
{
	struct sci_fabric *from = p->fabric;
	struct msg_route old = p->first;
	int ret;

	if (p->ep->rail) {
		p->rails = calloc(1, sizeof(*p->rails));
		if (!p->rails)
			return -ENOMEM;
		rails_init(p);
	}
	peer_set_fabric(p, p->ep->fabric);
	ret = inbox_make(p);
	if (ret) {
		free(p->rails);
		p->rails = NULL;
		peer_set_fabric(p, from);
		p->first = old;
		return ret;
	}
	rings_init(p);
	p->asked = false;
	from->ops->unmap(from, old.inbox_map, INBOX_BYTES);
	from->ops->lseg.destroy(old.inbox);
	/* no HELLO has named the new inbox yet: all events are those of the old one */
	atomic_fetch_and(&p->events, PEER_LISTED);
	return 0;
}

/*
 * A HELLO of @p has arrived by ep->fabric. If @p is on the net, it was made before its node joined
 * the cluster. Move it, unless it is already making a connection by the net: its next HELLO comes
 * here again.
 */
void peer_follow(struct sci_peer *p)
{
	if (p->stream && p->state == PEER_CONNECTING && !p->nonce && !p->imported &&
	    !(atomic_load(&p->events) & PEER_CAME) && list_empty(&p->calls))
		peer_move(p);
}

/* ---- the peer's inbox ---- */

/* Start a call that imports the peer's inbox and connects to its doorbell. */
int peer_ask_inbox(struct sci_peer *p)
{
	return msg_number_is_valid(p->their_inbox) ?
		       call_start(p, CALL_INBOX, p->their_inbox, outbox_event) :
		       -EPROTO;
}

/* Queue a connection for sci_accept() that the peer has begun, or whose connect has timed out here. */
static void peer_offer(struct sci_peer *p)
{
	if (!p->incoming || !p->imported || p->leaving)
		return;
	p->incoming = false;
	/* it is in the queue already if a connect to a waiting peer has timed out */
	if (list_empty(&p->accept_link))
		list_add_tail(&p->accept_link, &p->ep->accept_queue);
}

/* When each side has imported the other's inbox, let the inboxes share descriptors. */
static void peer_pair(struct sci_peer *p)
{
	if (p->state == PEER_UP && p->imported && !p->ep->rail)
		sci_pair(p->fabric, p->first.inbox, p->first.outbox);
}

int peer_take_inbox(struct sci_peer *p, struct msg_call *c)
{
	const struct sci_fabric_ops *ops = p->fabric->ops;
	struct msg_route *r = &p->first;
	void *addr = NULL;
	int ret;

	if (ops->rseg.size(c->seg) != INBOX_BYTES)
		return -EPROTO;
	ret = ops->rseg.map(c->seg, 0, INBOX_BYTES, 0, &addr);
	if (ret)
		return ret;
	r->outbox = c->seg;
	r->bell = c->bell;
	c->seg = NULL;
	c->bell = NULL;
	r->outbox_map = addr;
	p->status_line = &r->outbox_map->status;
	tx_init(&p->ctl_tx, r->outbox_map->ctl, CTL_LINES, &p->status->ctl);
	tx_init(&p->data_tx, r->outbox_map->data, DATA_LINES, &p->status->data);
	if (p->stale)
		p->ctl_tx.stale = p->data_tx.stale = p->ep->link;
	p->state = PEER_UP;
	p->ep->stats.peers++;
	p->ep->stats.peer_bytes += peer_bytes(p);
	peer_heat(p);
	if (!list_empty(&p->sendq) || peer_has_transfers(p))
		peer_busy(p);
	peer_offer(p);
	peer_pair(p);
	if (p->rail_node)
		route_ask(p, RAIL_SECOND);
	p->ep->up->came(p);
	return 0;
}

/* Make progress call send_push() for @p, which has data to send. */
void peer_busy(struct sci_peer *p)
{
	if (list_empty(&p->busy))
		list_add_tail(&p->busy, &p->ep->busy);
}

void peer_heat(struct sci_peer *p)
{
	if (!list_empty(&p->hot))
		return;
	list_add_tail(&p->hot, &p->ep->hot);
	p->ep->n_hot++;
	p->idle = 0;
}

/*
 * Return whether the peer has died: a segment that was imported after the death may belong to a
 * later process that uses the same id.
 */
bool peer_is_gone(const struct sci_peer *p)
{
	return atomic_load(&line_fabric(p)->ops->rseg.status(p->line->outbox)->gone);
}

/* Poll the peer, which will answer on the control ring. */
void peer_expect_ctl(struct sci_peer *p)
{
	p->expects++;
	peer_heat(p);
}

/* ---- the end ---- */

static void peer_drop_queues(struct sci_peer *p)
{
	struct list *l;

	while ((l = list_pop(&p->ctlq)))
		free(container_of(l, struct msg_ctl, link));
	if (!list_empty(&p->hot))
		p->ep->n_hot--;
	list_del(&p->hot);
	list_del(&p->busy);
	list_del(&p->dirty);
	p->expects = 0;
	tx_drop(p);
}

/* End the connection. The next progress call calls peers_release(). */
void peer_down(struct sci_peer *p, int error)
{
	if (p->state == PEER_DOWN)
		return;
	if (p->state == PEER_UP) {
		p->ep->stats.peers--;
		p->ep->stats.peer_bytes -= peer_bytes(p);
		for (unsigned int i = 0; i < peer_rings(p); i++)
			p->ep->stats.peer_bytes -= blocks_rx(p, i)->size;
	}
	p->state = PEER_DOWN;
	p->error = error_for_request(error);
	list_del(&p->attend);
	list_del(&p->link);
	list_add_tail(&p->link, &p->ep->down);
	atomic_store(&p->ep->attention, 1);
	peer_drop_queues(p);
	p->ep->up->ended(p, error);
	msg_changed(p->ep);
}

/*
 * Receive the complete messages of a peer that has ended, without a limit for memory, but at most as
 * many lines as the rings contain. A peer that still writes after that has violated the protocol.
 */
static void peer_drain(struct sci_peer *p)
{
	int left = DATA_LINES + CTL_LINES, n;

	p->draining = true;
	do {
		n = p->state == PEER_UP ? p->ep->up->poll(p) : 0;
		left -= n;
	} while (n && left > 0);
}

/* End a peer that has disconnected or died. First receive its complete messages. */
void peer_end(struct sci_peer *p, int error)
{
	peer_drain(p);
	if (route_read_back(p))
		peer_drain(p);
	peer_down(p, error);
}

/* Handle the end of the peer's inbox: wait SUSPECT_MS for the reason, then close the connection. */
void peer_suspect(struct sci_peer *p)
{
	if (p->suspect_ms)
		return;
	p->suspect_ms = msg_now_ms();
	p->ep->n_suspect++;
	peer_attend(p);
}

/* The loss of one rail is not the end of a peer. Suspect the peer when both are lost. */
static void peer_check_routes(struct sci_peer *p, unsigned int events)
{
	bool lost = routes_lost(p, events);

	if (lost && !p->suspect_ms) {
		peer_suspect(p);
		p->rails->suspect = true;
	} else if (!lost && p->rails->suspect) {
		p->rails->suspect = false;
		p->suspect_ms = 0;
		p->ep->n_suspect--;
	}
}

/* Handle the events that the fabric's thread has recorded. */
void peer_event_check(struct sci_peer *p)
{
	unsigned int events = atomic_fetch_and(&p->events, PEER_LISTED);

	if (events & PEER_RANG && p->state == PEER_UP)
		peer_heat(p);
	if (events & PEER_CAME) {
		p->imported = true;
		peer_offer(p);
		peer_pair(p);
		p->ep->up->came(p);
		msg_changed(p->ep);
	}
	if (events & PEER_FREED)
		imports_drop_gone(p);
	if (p->rail_node && p->state == PEER_UP && !(events & (PEER_CUT | PEER_LEFT))) {
		peer_check_routes(p, events);
		events &= ~(unsigned int)(PEER_LOST | PEER_GONE);
	}
	if (events & (PEER_LOST | PEER_LEFT)) {
		peer_end(p, events & PEER_LOST ? -ECONNRESET : -ENOTCONN);
	} else if (events & PEER_GONE && !p->imported) {
		peer_end(p, events & PEER_CUT ? -ENOTCONN : -ECONNRESET);
	} else if (events & PEER_GONE && p->state == PEER_UP) {
		peer_suspect(p);
	}
	if (p->suspect_ms && (p->state == PEER_DOWN ||
			      msg_now_ms() - p->suspect_ms > SUSPECT_MS)) {
		p->suspect_ms = 0;
		if (p->rails)
			p->rails->suspect = false;
		p->ep->n_suspect--;
		peer_end(p, -ECONNRESET);
	}
}

/* Move the peers of ep->news to ep->attend, in the order of their events. */
void news_collect(struct sci_ep *ep)
{
	struct sci_peer *p = atomic_exchange(&ep->news, NULL), *first = NULL, *next;

	for (; p; p = next) {
		next = p->news;
		p->news = first;
		first = p;
	}
	for (p = first; p; p = next) {
		next = p->news;
		/* from now on, another event may put @p on the stack again */
		atomic_fetch_and(&p->events, ~PEER_LISTED);
		peer_attend(p);
	}
}

/* Release the fabric's objects of @p, which is DOWN and in no queue. */
static void peer_leave_fabric(struct sci_peer *p)
{
	if (!p->first.inbox)
		return;
	/* the caller of peer_down() may have queued lines or sends afterwards */
	peer_drop_queues(p);
	if (p->suspect_ms)
		p->ep->n_suspect--;
	p->suspect_ms = 0;
	imports_leave(p);
	routes_leave(p);
	rings_free(p);
	routes_end(p);
}

static void peer_closing_end(struct sci_peer *p)
{
	if (list_empty(&p->closing))
		return;
	list_del(&p->closing);
	p->ep->n_suspect--;
}

/* The program has asked for @p again: stop closing it. */
void peer_keep(struct sci_peer *p)
{
	p->known = true;
	if (list_empty(&p->closing))
		return;
	peer_closing_end(p);
	p->leaving = false;
}

/* Free @p, which is DOWN. The program has no pointer to it. */
void peer_free(struct sci_peer *p)
{
	peer_closing_end(p);
	p->ep->up->dropped(p);
	p->ep->up->freed(p);
	hash_del(&p->ep->by_addr, &p->by_addr);
	list_del(&p->accept_link);
	list_del(&p->link);
	peer_leave_fabric(p);
	maps_drop(p);
	/* now no object of the fabric has an event for @p any more */
	if (atomic_load(&p->events) & PEER_LISTED)
		news_collect(p->ep);
	peer_dealloc(p);
}

/*
 * Release the fabric's objects of DOWN peers, except for peers with unfinished calls. Free the
 * peers to which the program has no pointer.
 */
void peers_release(struct sci_ep *ep)
{
	struct list *l, later;

	list_init(&later);
	while ((l = list_pop(&ep->down))) {
		struct sci_peer *p = container_of(l, struct sci_peer, link);

		if (!calls_give_up(p)) {
			list_add_tail(&p->link, &later);
			continue;
		}
		list_add_tail(&p->link, &ep->ended);
		if (p->known || p->dialers || ep->up->holds(p))
			peer_leave_fabric(p);
		else
			peer_free(p);
	}
	list_move_all(&later, &ep->down);
}

/* Free @p, or let peers_release() free it: @p is DOWN, and the program has no pointer to @p. */
void peer_forget(struct sci_peer *p)
{
	if (!p->first.inbox) {
		peer_free(p);
		return;
	}
	p->ep->up->dropped(p);
	peers_release(p->ep);
}

/* End the connection and release @p. Data that has not arrived is lost. */
void peer_drop(struct sci_peer *p)
{
	peer_closing_end(p);
	p->leaving = true;
	/* a call to the peer may go on for long: sci_accept() must not return the peer meanwhile */
	list_del(&p->accept_link);
	p->incoming = false;
	peer_down(p, -ECANCELED);
	p->known = false;
	if (!p->dialers)	/* otherwise the last dialer calls it */
		peer_forget(p);
}

/*
 * Find a peer as peer_find() does, for a program that asks for it. First end a closing connection
 * that has dropped messages to handlers: they may be requests, and only the end of the connection
 * tells the peer that they get no reply.
 */
struct sci_peer *peer_find_kept(struct sci_ep *ep, const struct sci_addr *addr)
{
	struct sci_peer *p = peer_find(ep, addr);

	if (!p || !p->dropped || list_empty(&p->closing))
		return p;
	peer_drop(p);
	return peer_find(ep, addr);
}
