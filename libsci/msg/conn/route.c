// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The inboxes of a connection, on one rail or on two. The peer's inbox on the second rail is
 * imported when the connection is up. An import that has ended is made again when it is needed.
 */

#include "libsci/msg/conn/conn.h"

#include <assert.h>
#include <errno.h>

#define IMPORT_PAUSE_MS	200u		/* interval of attempts to import an inbox */

/* Make this endpoint's inbox for @p on a rail, and export it. @event: of the inbox */
int route_make(struct sci_peer *p, unsigned int rail, sci_event_fn event)
{
	struct msg_route *r = route_of(p, rail);
	struct sci_fabric *f = rail_fabric(p, rail);
	const struct sci_fabric_ops *ops = f->ops;
	struct sci_lseg_param param = {
		/* with two rails the peer imports the inbox again when the rail comes back */
		.size = INBOX_BYTES, .flags = p->rails ? 0 : SCI_LSEG_ONCE,
		.event = event, .owner = p, .bell = rail == RAIL_FIRST ? p->ep->bell : NULL,
	};
	void *addr = NULL;
	int ret;

	assert(r);	/* only a peer with rails has a second route */
	ret = segment_create(p->ep, f, &param, &r->inbox);
	if (ret)
		goto err;
	ret = ops->lseg.map(r->inbox, 0, INBOX_BYTES, 0, &addr);
	if (ret)
		goto err_seg;
	ret = ops->lseg.export(r->inbox, rail == RAIL_FIRST ? p->adapter : 0);
	if (ret)
		goto err_map;
	r->inbox_map = addr;
	return 0;

err_map:
	ops->unmap(f, addr, INBOX_BYTES);
err_seg:
	ops->lseg.destroy(r->inbox);
err:
	r->inbox = NULL;
	return ret;
}

static void outbox_leave(struct sci_peer *p, unsigned int rail)
{
	struct sci_fabric *f = rail_fabric(p, rail);
	const struct sci_fabric_ops *ops = f->ops;
	struct msg_route *r = route_of(p, rail);

	if (r->bell)
		ops->rintr.disconnect(r->bell);
	r->bell = NULL;
	if (!r->outbox)
		return;
	sci_fault_forget(r->outbox_map, INBOX_BYTES);
	ops->unmap(f, r->outbox_map, INBOX_BYTES);
	ops->rseg.disconnect(r->outbox);
	r->outbox = NULL;
}

/* Leave the peer's inboxes, which reports an orderly end to the peer. */
void routes_leave(struct sci_peer *p)
{
	if (p->rerouting)
		p->ep->n_suspect--;
	p->rerouting = false;
	for (unsigned int i = 0; i < peer_rails(p); i++)
		outbox_leave(p, i);
}

/* Release this endpoint's inboxes. */
void routes_end(struct sci_peer *p)
{
	for (unsigned int i = 0; i < peer_rails(p); i++) {
		struct msg_route *r = route_of(p, i);
		struct sci_fabric *f = rail_fabric(p, i);

		if (!r->inbox)
			continue;
		f->ops->unmap(f, r->inbox_map, INBOX_BYTES);
		f->ops->lseg.destroy(r->inbox);
		r->inbox = NULL;
	}
}

/* Return whether the peer's inbox on a rail is not imported, or the import has ended. */
static bool outbox_is_gone(struct sci_peer *p, unsigned int rail)
{
	const struct msg_route *r = route_of(p, rail);

	return !r->outbox ||
	       atomic_load(&rail_fabric(p, rail)->ops->rseg.status(r->outbox)->gone);
}

/* Return whether lines can use a rail, as far as this side knows. */
bool route_works(struct sci_peer *p, unsigned int rail)
{
	const struct msg_route *r = route_of(p, rail);

	return r->inbox && !p->rails->lost[rail] && !sci_link_down(r->link) &&
	       !outbox_is_gone(p, rail);
}

/* Start to import the peer's inbox on a rail, again if its import has ended. */
void route_ask(struct sci_peer *p, unsigned int rail)
{
	const struct msg_route *r = route_of(p, rail);
	uint32_t id = rail == RAIL_SECOND ? p->rails->inbox : p->their_inbox;

	if (!r->inbox || !msg_number_is_valid(id) || sci_link_down(r->link) ||
	    !outbox_is_gone(p, rail) || call_find(p, CALL_ROUTE, id) ||
	    msg_now_ms() < p->rails->route_ms)
		return;
	p->rails->route_ms = msg_now_ms() + IMPORT_PAUSE_MS;
	call_route(p, rail, id, p->rails->event[rail]);
}

/* Use the new import of the inbox to which lines go. Lines that the peer has not read may be lost. */
static void lines_renew(struct sci_peer *p)
{
	struct msg_inbox *to = p->line->outbox_map;

	p->status_line = &to->status;
	p->data_tx.slots = to->data;
	p->ctl_tx.slots = to->ctl;
	p->data_tx.checked = p->data_tx.read;
	p->ctl_tx.checked = p->ctl_tx.read;
	p->status_dirty = true;
	p->resend = true;
	mark_dirty(p);
}

/*
 * Take the result of route_ask(). An import that is not taken ends with the call, which ends the
 * connection.
 */
void route_take(struct sci_peer *p, struct msg_call *c)
{
	unsigned int rail = c->fabric == p->ep->rail ? RAIL_SECOND : RAIL_FIRST;
	const struct sci_fabric_ops *ops = c->fabric->ops;
	struct msg_route *r = route_of(p, rail);
	void *addr = NULL;

	if (c->ret || p->state != PEER_UP || !outbox_is_gone(p, rail) ||
	    ops->rseg.size(c->seg) != INBOX_BYTES ||
	    ops->rseg.map(c->seg, 0, INBOX_BYTES, 0, &addr))
		return;
	outbox_leave(p, rail);
	r->outbox = c->seg;
	r->outbox_map = addr;
	r->bell = c->bell;
	p->rails->lost[rail] = false;
	c->seg = NULL;
	c->bell = NULL;
	if (r == p->line)
		lines_renew(p);
}

/*
 * Handle events of a connection with two rails. Return true while the connections on both rails
 * are lost: then the peer has died, or one of its inboxes can be imported again.
 */
bool routes_lost(struct sci_peer *p, unsigned int events)
{
	bool *lost = p->rails->lost;

	if (events & PEER_CAME)
		lost[RAIL_FIRST] = false;
	if (events & PEER_RAIL_CAME)
		lost[RAIL_SECOND] = false;
	/* a loss that is recorded together with an import is later: peer_event_came() */
	lost[RAIL_FIRST] |= !!(events & (PEER_LOST | PEER_GONE));
	lost[RAIL_SECOND] |= !!(events & PEER_RAIL_LOST);
	if (lost[RAIL_FIRST] && (lost[RAIL_SECOND] || !p->rails->second.outbox)) {
		route_ask(p, RAIL_SECOND);
		route_ask(p, RAIL_FIRST);
		return true;
	}
	return false;
}

/*
 * Return whether no line has arrived since the current reroute began. Then reads of either inbox may
 * continue at the current position: one was prepared for that, the other one has the next lines of a
 * peer that has not begun.
 */
bool route_is_unheard(const struct sci_peer *p)
{
	return p->rerouting && p->data_rx.pos == p->rails->my_data &&
	       p->ctl_rx.pos == p->rails->my_ctl;
}

/*
 * Read from the other inbox again if the peer may have ended without the current reroute. Return
 * whether to do so.
 */
bool route_read_back(struct sci_peer *p)
{
	const struct msg_route *r;

	if (!route_is_unheard(p))
		return false;
	r = route_of(p, 1 - line_rail(p));
	p->data_rx.slots = r->inbox_map->data;
	p->ctl_rx.slots = r->inbox_map->ctl;
	return true;
}
