// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: the rail of the lines
 *
 * A connection between two endpoints that have two rails has an inbox on each rail, in each
 * direction. Lines use one of the two rails, the first one at first. When lines do not arrive any
 * more, or the fabric reports the end of a connection there, both sides move the lines of both
 * directions to the other rail. The n-th reroute leads to the second rail if n is odd.
 *
 * A side that begins a reroute stops sending lines and reading the old inbox. It sends its read
 * positions to the peer in a HELLO_REROUTE, by a data interrupt on the new rail. The peer begins,
 * too, and answers with its own read positions. A side that has the peer's positions sends the
 * lines again that the peer has not read. Their copies exist, since each line is kept until the
 * peer has read it. So no line is lost, and a line that arrives late in the old inbox has no effect.
 * The HELLO_REROUTE is repeated until the peer's positions have come. If they do not come, or if this
 * side cannot use the new rail, the next reroute leads back to the old one when it may work. The peer
 * may be any number of reroutes ahead. Then the side that is behind still writes to an inbox to which
 * the second reroute has led back. These lines are read, and their credits count.
 *
 * The peer has ended when the connections on both rails have been lost.
 */

#include "libsci/msg/conn/conn.h"

#include <errno.h>

#define STUCK_MS	200u		/* lines that do not arrive for this time are rerouted */
/* Lines stay on the second rail for this time, and longer after each reroute that failed. */
#define HOME_LEAST_MS	1000u
#define HOME_MOST_MS	60000u
#define REPEAT_MS	100u		/* interval of HELLO_REROUTE */
#define GIVE_UP_MS	300u		/* after this time, try the other rail */
#define AHEAD_MAX	65536u		/* reroutes that the peer may be ahead */

static void ring_prepare(struct msg_line *slots, const struct msg_rx *rx)
{
	for (uint32_t i = 0; i < rx->lines; i++) {
		/* identifier of the line that comes next into this slot */
		uint64_t id = i < rx->slot ? rx->id ^ LINE_ID : rx->id;

		for (unsigned int w = 0; w < LINE_WORDS; w++)
			slots[i].w[w] = id ^ LINE_ID;
	}
}

/* Let the ring have no room. *@read: the last position that the peer is known to have read */
static void tx_stop(struct msg_tx *tx, const volatile uint32_t *status, uint32_t *read)
{
	if (tx->lines)
		*read = tx->read;
	tx->status = status;
	tx->read = tx->pos;
	tx->lines = 0;
}

/* Read from the inbox of the next route, and write no lines. */
static void reroute_begin(struct sci_peer *p)
{
	struct msg_inbox *old = p->inbox_map;
	struct msg_route *r;

	/* no store of the old route may arrive after the stores of the new one */
	sci_remote_barrier(p->line_fabric, p->outbox);
	p->turn++;
	r = &p->route[line_rail(p)];
	r->inbox_map->status = old->status;
	if (!route_is_unheard(p)) {
		ring_prepare(r->inbox_map->data, &p->data_rx);
		ring_prepare(r->inbox_map->ctl, &p->ctl_rx);
	}
	p->my_data = p->data_rx.pos;
	p->my_ctl = p->ctl_rx.pos;
	p->inbox = r->inbox;
	p->inbox_map = r->inbox_map;
	p->status = (struct msg_status *)&p->inbox_map->status;
	p->data_rx.slots = p->inbox_map->data;
	p->ctl_rx.slots = p->inbox_map->ctl;
	for (unsigned int i = 0; i < MSG_RINGS; i++)
		p->blocks_tx[i].status = ring_status(p, i);
	tx_stop(&p->data_tx, &p->status->data, &p->read_data);
	tx_stop(&p->ctl_tx, &p->status->ctl, &p->read_ctl);
	p->ep->n_suspect += !p->rerouting;
	p->rerouting = true;
	p->rerouted = false;
	p->begun_ms = msg_now_ms();
	p->reroute_ms = 0;
	peer_attend(p);
}

/*
 * Continue at the position up to which the peer has read. @theirs: as its HELLO_REROUTE says; @known:
 * as its status said before, which may be later if this side used the new route all the time. Return
 * false if the position is impossible: only lines after @known have copies.
 */
static bool tx_continue(struct msg_tx *tx, volatile struct msg_line *slots, uint32_t lines,
			uint32_t theirs, uint32_t known)
{
	uint32_t read = (int32_t)(theirs - known) > 0 ? theirs : known;

	if ((int32_t)(tx->pos - read) < 0)
		return false;
	tx->slots = slots;
	tx->lines = lines;
	tx->read = read;
	tx->checked = read;
	return true;
}

/* Use the new route, and send again what the peer has not read. */
static void reroute_finish(struct sci_peer *p)
{
	struct msg_route *r = &p->route[line_rail(p)];

	p->outbox = r->outbox;
	p->outbox_map = r->outbox_map;
	p->bell = r->bell;
	p->line_fabric = r->fabric;
	p->line_link = r->link;
	p->by_owner = line_rail(p) == RAIL_SECOND;
	p->status_line = &p->outbox_map->status;
	if (!tx_continue(&p->data_tx, p->outbox_map->data, DATA_LINES, p->their_data,
			 p->read_data) ||
	    !tx_continue(&p->ctl_tx, p->outbox_map->ctl, CTL_LINES, p->their_ctl, p->read_ctl)) {
		peer_down(p, -EPROTO);
		return;
	}
	p->rerouting = false;
	p->ep->n_suspect--;
	p->ep->stats.reroutes++;
	p->rerouted_ms = msg_now_ms();
	/* the first rail works in both directions */
	if (line_rail(p) == RAIL_FIRST)
		p->home_pause = 0;
	p->stuck_ms = 0;
	p->announced = false;
	p->status_dirty = true;
	p->resend = true;
	mark_dirty(p);
	peer_heat(p);
	peer_busy(p);
}

static void reroute_send(struct sci_peer *p, bool answer)
{
	struct msg_hello h;

	if (call_find(p, CALL_REROUTE, p->turn))
		return;
	h = hello_make(p->ep, HELLO_REROUTE);
	h.to = p->nonce;
	h.turn = p->turn;
	h.data = p->my_data;
	h.ctl = p->my_ctl;
	h.answer = answer;
	call_reroute(p, line_rail(p), &h);
}

static void reroute_advance(struct sci_peer *p)
{
	unsigned int rail = line_rail(p);
	uint64_t now = msg_now_ms();

	if (p->rerouted && route_works(&p->route[rail])) {
		reroute_finish(p);
		return;
	}
	route_ask(p, rail);
	if (now - p->begun_ms > GIVE_UP_MS && route_works(&p->route[1 - rail])) {
		p->home_pause = p->home_pause < HOME_MOST_MS / 2 ? p->home_pause * 2 : HOME_MOST_MS;
		reroute_begin(p);
	}
	if (!p->rerouted && now >= p->reroute_ms) {
		p->reroute_ms = now + REPEAT_MS;
		reroute_send(p, false);
	}
}

/* Begin a reroute if the other rail works. Otherwise import the peer's inbox there, for later. */
static void reroute_try(struct sci_peer *p)
{
	unsigned int rail = (p->turn + 1) % RAILS;

	if (!route_works(&p->route[rail])) {
		route_ask(p, rail);
		return;
	}
	reroute_begin(p);
	reroute_advance(p);
}

/*
 * A block has arrived through the first rail: let lines use the rail again. Eager and zero-copy
 * messages and one-sided transfers need it.
 */
void reroute_home(struct sci_peer *p)
{
	if (line_rail(p) == RAIL_FIRST)
		return;
	if (p->home_pause < HOME_LEAST_MS)
		p->home_pause = HOME_LEAST_MS;
	if (!p->rerouting && msg_now_ms() - p->rerouted_ms > p->home_pause)
		reroute_try(p);
}

/* Return whether lines to @p do not arrive on the current rail. */
static bool lines_are_stuck(const struct sci_peer *p)
{
	return p->route[line_rail(p)].lost ||
	       (p->stuck_ms && (sci_link_down(p->line_link) ||
				msg_now_ms() - p->stuck_ms > STUCK_MS));
}

/* Advance a reroute, or begin one if the current rail does not work. */
void reroute_poll(struct sci_peer *p)
{
	if (!p->rail_node || p->state != PEER_UP)
		return;
	if (p->rerouting)
		reroute_advance(p);
	else if (lines_are_stuck(p))
		reroute_try(p);
}

/* Handle a HELLO_REROUTE. Ignore an old or forged one. */
void reroute_handle(struct sci_ep *ep, const struct sci_addr *from, const struct msg_hello *h)
{
	struct sci_peer *p = peer_find(ep, from);
	uint32_t ahead;

	if (!p || p->state != PEER_UP || !p->rail_node || h->nonce != p->nonce ||
	    !p->route[RAIL_SECOND].inbox)
		return;
	ahead = h->turn - p->turn;
	if (ahead > AHEAD_MAX)
		return;
	if (ahead) {
		p->turn = h->turn - 1;
		reroute_begin(p);
	}
	if (!h->answer)
		reroute_send(p, true);
	if (p->rerouting) {
		p->their_data = h->data;
		p->their_ctl = h->ctl;
		p->rerouted = true;
		reroute_advance(p);
	}
}
