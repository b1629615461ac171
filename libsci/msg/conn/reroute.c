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
	struct msg_rails *rails = p->rails;
	struct msg_status *status;
	struct msg_inbox *inbox;

	/* no store of the old route may arrive after the stores of the new one */
	sci_remote_barrier(line_fabric(p), p->line->outbox);
	rails->turn++;
	inbox = route_of(p, line_rail(p))->inbox_map;
	status = (struct msg_status *)&inbox->status;
	*status = *p->status;
	if (!route_is_unheard(p)) {
		ring_prepare(inbox->data, &p->data_rx);
		ring_prepare(inbox->ctl, &p->ctl_rx);
	}
	rails->my_data = p->data_rx.pos;
	rails->my_ctl = p->ctl_rx.pos;
	p->status = status;
	p->data_rx.slots = inbox->data;
	p->ctl_rx.slots = inbox->ctl;
	for (unsigned int i = 0; i < MSG_RINGS; i++)
		blocks_tx(p, i)->status = ring_status(p, i);
	tx_stop(&p->data_tx, &p->status->data, &rails->read_data);
	tx_stop(&p->ctl_tx, &p->status->ctl, &rails->read_ctl);
	p->ep->n_suspect += !p->rerouting;
	p->rerouting = true;
	rails->rerouted = false;
	rails->begun_ms = msg_now_ms();
	rails->reroute_ms = 0;
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
	struct msg_rails *rails = p->rails;
	struct msg_inbox *to;

	p->line = route_of(p, line_rail(p));
	to = p->line->outbox_map;
	p->status_line = &to->status;
	if (!tx_continue(&p->data_tx, to->data, DATA_LINES, rails->their_data,
			 rails->read_data) ||
	    !tx_continue(&p->ctl_tx, to->ctl, CTL_LINES, rails->their_ctl, rails->read_ctl)) {
		peer_down(p, -EPROTO);
		return;
	}
	p->rerouting = false;
	p->ep->n_suspect--;
	p->ep->stats.reroutes++;
	rails->rerouted_ms = msg_now_ms();
	/* the first rail works in both directions */
	if (line_rail(p) == RAIL_FIRST)
		rails->home_pause = 0;
	rails->stuck_ms = 0;
	p->announced = false;
	p->status_dirty = true;
	p->resend = true;
	mark_dirty(p);
	peer_heat(p);
	peer_busy(p);
}

static void reroute_send(struct sci_peer *p, bool answer)
{
	const struct msg_rails *rails = p->rails;
	struct msg_hello h;

	if (call_find(p, CALL_REROUTE, rails->turn))
		return;
	h = hello_make(p->ep, HELLO_REROUTE);
	h.to = p->nonce;
	h.turn = rails->turn;
	h.data = rails->my_data;
	h.ctl = rails->my_ctl;
	h.answer = answer;
	call_reroute(p, line_rail(p), &h);
}

static void reroute_advance(struct sci_peer *p)
{
	struct msg_rails *rails = p->rails;
	unsigned int rail = line_rail(p);
	uint64_t now = msg_now_ms();

	if (rails->rerouted && route_works(p, rail)) {
		reroute_finish(p);
		return;
	}
	route_ask(p, rail);
	if (now - rails->begun_ms > GIVE_UP_MS && route_works(p, 1 - rail)) {
		rails->home_pause = rails->home_pause < HOME_MOST_MS / 2 ? rails->home_pause * 2 :
									  HOME_MOST_MS;
		reroute_begin(p);
	}
	if (!rails->rerouted && now >= rails->reroute_ms) {
		rails->reroute_ms = now + REPEAT_MS;
		reroute_send(p, false);
	}
}

/* Begin a reroute if the other rail works. Otherwise import the peer's inbox there, for later. */
static void reroute_try(struct sci_peer *p)
{
	unsigned int rail = (p->rails->turn + 1) % RAILS;

	if (!route_works(p, rail)) {
		route_ask(p, rail);
		return;
	}
	reroute_begin(p);
	reroute_advance(p);
}

/*
 * A block has arrived through the first rail: let lines use the rail again. Eager messages and
 * one-sided reads need it.
 */
void reroute_home(struct sci_peer *p)
{
	struct msg_rails *rails = p->rails;

	if (line_rail(p) == RAIL_FIRST)
		return;
	if (rails->home_pause < HOME_LEAST_MS)
		rails->home_pause = HOME_LEAST_MS;
	if (!p->rerouting && msg_now_ms() - rails->rerouted_ms > rails->home_pause)
		reroute_try(p);
}

/* Return whether lines to @p do not arrive on the current rail. */
static bool lines_are_stuck(const struct sci_peer *p)
{
	const struct msg_rails *rails = p->rails;

	return rails->lost[line_rail(p)] ||
	       (rails->stuck_ms && (sci_link_down(p->line->link) ||
				    msg_now_ms() - rails->stuck_ms > STUCK_MS));
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
	struct msg_rails *rails;
	uint32_t ahead;

	if (!p || p->state != PEER_UP || !p->rail_node || h->nonce != p->nonce ||
	    !p->rails->second.inbox)
		return;
	rails = p->rails;
	ahead = h->turn - rails->turn;
	if (ahead > AHEAD_MAX)
		return;
	if (ahead) {
		rails->turn = h->turn - 1;
		reroute_begin(p);
	}
	if (!h->answer)
		reroute_send(p, true);
	if (p->rerouting) {
		rails->their_data = h->data;
		rails->their_ctl = h->ctl;
		rails->rerouted = true;
		reroute_advance(p);
	}
}
