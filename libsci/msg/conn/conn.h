/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* The functions of connections that the protocols may use: "DOC: inside an endpoint". */
#ifndef LIBSCI_MSG_CONN_H
#define LIBSCI_MSG_CONN_H

#include <errno.h>

#include "libsci/msg/endpoint.h"

/* An imported segment of a peer, for stores and loads. */
struct msg_import {
	struct list link;		/* peer->imports, peer->maps or rails->imports */
	struct sci_fabric *fabric;
	struct sci_rseg *seg;
	uint8_t *addr;
	uint64_t size;
	uint32_t id;
	uint32_t errors;		/* of the link, when the segment still existed */
	unsigned int pointers;		/* pointers into it that the program has */
};

/* ---- calls to other nodes: call.c ---- */

/*
 * CALL_RAIL: a segment on the second rail; CALL_ROUTE: an inbox on the second rail, or again on the
 * first; CALL_REROUTE: a HELLO_REROUTE
 */
enum msg_call_kind { CALL_SEGMENT, CALL_INBOX, CALL_HELLO, CALL_RAIL, CALL_ROUTE, CALL_REROUTE };

#define CALL_SLOW_MS	1000u		/* a call that lasts longer is slow */

struct msg_call {
	struct list link;		/* peer->calls, or ep->refusals */
	struct list waiting;		/* callers.waiting, then callers.running */
	struct sci_ep *ep;
	struct sci_peer *peer;		/* NULL: a refusal */
	struct sci_fabric *fabric;
	enum msg_call_kind kind;
	struct sci_addr to;
	uint32_t id;			/* of the segment */
	sci_event_fn event;
	bool memory;			/* of a segment that transfers use, not a ring */
	struct msg_hello hello;
	/* members that the thread writes before it sets @done */
	struct sci_rseg *seg;
	struct sci_rintr *bell;
	struct sci_rintr *port;		/* of a HELLO */
	int ret;
	uint64_t begin;			/* in ms, as msg_now_ms() */
	uint64_t ms;			/* duration, in ms */
	_Atomic bool done;
	/* progress has seen @done: the waiting requests may take the result */
	bool answered;
};

/* Return the owner of the fabric's connects for @c, for cancel_connect. */
static inline void *call_owner(struct msg_call *c)
{
	return c->peer ? (void *)c->peer : c;
}

static inline bool call_is_done(const struct msg_call *c)
{
	return atomic_load_explicit(&c->done, memory_order_acquire);
}

/* ---- connection attempts: dial.c ---- */

struct msg_dial {
	struct list link;		/* ep->dials */
	struct sci_ep *ep;
	struct sci_addr addr;
	struct sci_peer *p;		/* a reference: p->dialers counts this dial */
	/* called after the end of the dial, may free @d; @p is NULL if d->ret is an error */
	void (*done)(struct msg_dial *d, struct sci_peer *p);
	void *owner;			/* for done() */
	bool open;			/* sci_peer_open(): the program already has @p */
	bool asking;			/* a HELLO to @p is in flight */
	bool absent;			/* the last HELLO found no endpoint */
	uint64_t again;			/* when to send the next HELLO, in ms */
	uint64_t until;			/* time at which the dial ends with -ETIME, in ms */
	int timeout;
	uint32_t pause;			/* current interval, in ms */
	int ret;			/* -EAGAIN while the dial goes on */
};

/* ---- peers ---- */

/* Return whether this side streams: the peer has sent no line since the last blocks to it. */
static inline bool peer_streams(const struct sci_peer *p)
{
	return p->last_block_pos == p->data_rx.pos;
}

/* A control line that waits for room. */
struct msg_ctl {
	struct list link;
	struct msg_typed line;
};

/* The endpoint's threads get the name of the endpoint, or else a name for their role. */
#define ep_thread_name(ep, role)	((ep)->name[0] ? (ep)->name : (role))

/* Attempts at a store before it is postponed. */
#define STORE_TRIES	64u

/* Refresh memory that the peer stores to, before a load, if caches are not coherent. */
static inline void peer_refresh(const struct sci_peer *p, const volatile void *addr,
				size_t len)
{
	if (p->stale)
		sci_link_refresh(p->ep->link, addr, len);
}

/* Return whether the next line of @rx may have arrived. The function loads only one word. */
static inline bool peer_line_peek(const struct sci_peer *p, const struct msg_rx *rx)
{
	const volatile struct msg_line *slot = &rx->slots[rx->slot];

	peer_refresh(p, slot, sizeof(*slot));
	return line_peek(slot, rx->id);
}

static inline uint32_t peer_sleeps(const struct sci_peer *p)
{
	peer_refresh(p, p->status, sizeof(*p->status));
	return sci_load_relaxed(&p->status->sleeps);
}

/* Let peers_attend() look at @p. */
static inline void peer_attend(struct sci_peer *p)
{
	if (p->state != PEER_DOWN && list_empty(&p->attend))
		list_add_tail(&p->attend, &p->ep->attend);
}

extern _Atomic uint32_t msg_fork_gen __attribute__((visibility("hidden")));

static inline bool msg_usable(const struct sci_ep *ep)
{
	return ep->fork_gen ==
	       atomic_load_explicit(&msg_fork_gen, memory_order_relaxed);
}

/* Lock @ep. Return false, without the lock, in a child of the process that opened it. */
static inline bool ep_lock(struct sci_ep *ep)
{
	if (!msg_usable(ep))
		return false;
	msg_lock(&ep->lock);
	return true;
}

/* ring.c */
void tx_init(struct msg_tx *tx, volatile struct msg_line *slots,
	     uint32_t lines, const volatile uint32_t *status);
void rx_init(struct msg_rx *rx, const volatile struct msg_line *slots,
	     uint32_t lines);
bool tx_room_slow(struct msg_tx *tx);
bool tx_prepare(struct sci_peer *p);
void tx_put_careful(struct sci_peer *p, struct msg_tx *tx, uint32_t slot,
		  const struct line_head *head, const void *buf, size_t len,
		  uint64_t id, uint64_t last);
void tx_drop(struct sci_peer *p);
void status_write(struct sci_peer *p);
void status_announce(struct sci_peer *p);
bool status_due(struct sci_peer *p);
uint32_t blocks_crc(struct msg_cursor at, size_t len);
int remote_store(struct sci_peer *p, struct sci_rseg *seg, volatile void *dst,
		 struct msg_cursor *at, size_t len, bool block);
void status_store(struct sci_peer *p);
void status_of_blocks(struct sci_peer *p);

/* blocks.c */
uint32_t ring_size(uint32_t want);
int ring_make(struct sci_peer *p, enum msg_ring which, uint32_t size);
int ring_import(struct sci_peer *p, const struct line_attached *a);
void ring_free(struct sci_peer *p, enum msg_ring which);
void ring_leave(struct sci_peer *p, enum msg_ring which);
void rings_free(struct sci_peer *p);

/* Return whether @p has sends after their RTS, or one-sided transfers. */
static inline bool peer_has_transfers(const struct sci_peer *p)
{
	return !list_empty(&p->sending) || !list_empty(&p->moving) ||
	       !list_empty(&p->onesided) || !list_empty(&p->arriving);
}

/* Return this endpoint's read position in its ring for @p. */
static inline const uint32_t *ring_read(const struct sci_peer *p, enum msg_ring which)
{
	return which == RING_EAGER ? &p->status_next.eager :
	       which == RING_XFER ? &p->status_next.xfer : &p->status_next.rail;
}

/* Return where the peer stores its read position in a ring that it has lent. */
static inline const volatile uint32_t *ring_status(const struct sci_peer *p, enum msg_ring which)
{
	return which == RING_EAGER ? &p->status->eager :
	       which == RING_XFER ? &p->status->xfer : &p->status->rail;
}

/* Return the sending end of a ring of blocks. RING_RAIL exists only with p->rails. */
static inline struct msg_blocks *blocks_tx(struct sci_peer *p, enum msg_ring which)
{
	return which == RING_RAIL ? &p->rails->blocks_tx : &p->blocks_tx[which];
}

/* Return the receiving end of a ring of blocks. RING_RAIL exists only with p->rails. */
static inline struct msg_blocks_rx *blocks_rx(struct sci_peer *p, enum msg_ring which)
{
	return which == RING_RAIL ? &p->rails->blocks_rx : &p->blocks_rx[which];
}

/* Return the number of rings of blocks that @p may have in each direction. */
static inline unsigned int peer_rings(const struct sci_peer *p)
{
	return p->rails ? MSG_RINGS : RING_RAIL;
}

/* Return the number of rails that @p may have. */
static inline unsigned int peer_rails(const struct sci_peer *p)
{
	return p->rails ? RAILS : RAIL_SECOND;
}

static inline struct msg_route *route_of(struct sci_peer *p, unsigned int rail)
{
	return rail == RAIL_SECOND ? &p->rails->second : &p->first;
}

static inline struct sci_fabric *rail_fabric(const struct sci_peer *p, unsigned int rail)
{
	return rail == RAIL_SECOND ? p->ep->rail : p->fabric;
}

/* Return the fabric of a ring between this endpoint and @p. */
static inline struct sci_fabric *ring_fabric(const struct sci_peer *p, enum msg_ring which)
{
	return rail_fabric(p, which == RING_RAIL ? RAIL_SECOND : RAIL_FIRST);
}

/* Return the fabric on which lines leave. */
static inline struct sci_fabric *line_fabric(const struct sci_peer *p)
{
	return rail_fabric(p, p->line == &p->first ? RAIL_FIRST : RAIL_SECOND);
}

/* rail.c */

/* After this number of attempts at a store, a rail is not used for a pause. */
#define RAIL_TRIES	8u

/* A rail on which bytes of a peer's segment are stored. */
struct msg_rail {
	struct sci_fabric *fabric;
	struct sci_link_status *link;
	struct sci_rseg *seg;
	enum msg_ring ring;		/* the ring of blocks on this rail */
	unsigned int tries;		/* attempts at a store before it fails */
};

/* A part of a message, for one rail. */
struct rail_part {
	struct msg_rail rail;
	volatile uint8_t *dst;
	struct msg_cursor at;		/* start of the part in the message */
	size_t len;
	/* members that rails_store() sets */
	struct msg_cursor next;		/* the bytes that are not stored yet */
	size_t left;
	uint32_t errors;		/* of the link, before the stores */
	int ret;			/* 0: the part has arrived; -EAGAIN: the rail loses packets */
};

/* ring.c */
int rail_store(struct sci_ep *ep, const struct msg_rail *rail, volatile void *dst,
	       struct msg_cursor *at, size_t len, bool block);
void rail_write(struct sci_link_status *link, volatile uint8_t *dst, struct msg_cursor *at,
		size_t len, bool block);

bool rail_is_there(struct sci_peer *p, unsigned int rail, struct sci_rseg *seg);

int rail_join(struct sci_ep *ep, const struct sci_fabric_place *first, const char *spec,
	      uint32_t node);
void rail_leave(struct sci_ep *ep);
int rail_bell_make(struct sci_ep *ep, uint32_t id);
void rail_bell_end(struct sci_ep *ep);
int rail_lent(struct sci_peer *p, const struct line_attached *a);
void rail_answered(struct sci_peer *p, const struct msg_call *c);
bool rail_may(struct sci_peer *p, enum msg_ring ring);
bool rail_ready(struct sci_peer *p, enum msg_ring ring);
bool rail_is_idle(struct sci_peer *p, enum msg_ring ring);
void rail_fail(struct sci_peer *p, enum msg_ring ring);

static inline struct msg_lent *ring_lent(struct sci_peer *p, enum msg_ring ring)
{
	return &p->rails->lent[ring == RING_RAIL ? RAIL_SECOND : RAIL_FIRST];
}
void rails_store(struct sci_peer *p, struct rail_part part[2], unsigned int n, bool block);

/* check.c */
void mark_dirty(struct sci_peer *p);
void lines_stuck(struct sci_peer *p);

/* Note that stores to @p arrive. */
static inline void lines_arrive(struct sci_peer *p)
{
	if (p->rails)
		p->rails->stuck_ms = 0;
}

bool check_writes(struct sci_ep *ep);
void watch_writes(struct sci_ep *ep);

/* retransmit.c */
int retransmit_start(struct sci_ep *ep);
void retransmit_stop(struct sci_ep *ep);
void retransmit_wake(struct sci_ep *ep);

/* vector.c */

/* Copy memory to memory. sci_pio_write() avoids memcpy() for lengths at which it is slow. */
static inline void msg_copy(void *dst, const void *src, size_t len)
{
	sci_pio_write(dst, src, len, SCI_PIO_MAP_CACHED);
}

bool msg_iov_good_many(const struct iovec *iov, size_t n);
size_t msg_iov_len(const struct iovec *iov, size_t n);

/* Return whether all pieces have memory and the total length does not overflow. */
static inline bool msg_iov_good(const struct iovec *iov, size_t n)
{
	if (n != 1)
		return msg_iov_good_many(iov, n);
	return (iov->iov_base || !iov->iov_len) && iov->iov_len <= SSIZE_MAX;
}

void msg_gather(struct msg_cursor *at, void *dst, size_t len);
void msg_scatter(struct msg_cursor *at, const void *src, size_t len);

/* Return the rest of the current piece of @at, which must exist. */
static inline const void *msg_chunk(const struct msg_cursor *at, size_t *len)
{
	*len = at->iov->iov_len - at->done;
	return (const char *)at->iov->iov_base + at->done;
}

static inline void msg_skip(struct msg_cursor *at, size_t len)
{
	at->done += len;
	while (at->n && at->done >= at->iov->iov_len) {
		at->done -= at->iov->iov_len;
		at->iov++;
		at->n--;
	}
}

/* attend.c */
int peers_attend(struct sci_ep *ep);

/* Return the id of this endpoint's inbox for @p, which is not DOWN, on the first rail. */
static inline uint32_t inbox_id(const struct sci_peer *p)
{
	return p->fabric->ops->lseg.id(p->first.inbox);
}

/* peer.c */
int peer_new(struct sci_ep *ep, struct sci_fabric *fabric,
	     const struct sci_addr *addr, struct sci_peer **out);
void peer_free(struct sci_peer *p);
void peer_forget(struct sci_peer *p);
void peers_release(struct sci_ep *ep);
struct sci_peer *peer_find(struct sci_ep *ep, const struct sci_addr *addr);
void peer_down(struct sci_peer *p, int error);
void peer_end(struct sci_peer *p, int error);
void peer_event_check(struct sci_peer *p);
void news_collect(struct sci_ep *ep);
void peer_busy(struct sci_peer *p);
void peer_heat(struct sci_peer *p);
void peer_expect_ctl(struct sci_peer *p);
void peer_suspect(struct sci_peer *p);
bool peer_is_gone(const struct sci_peer *p);
void peer_follow(struct sci_peer *p);
int peer_ask_inbox(struct sci_peer *p);
int peer_take_inbox(struct sci_peer *p, struct msg_call *c);
void peer_event_add(struct sci_peer *p, unsigned int event);
void peer_keep(struct sci_peer *p);
void peer_drop(struct sci_peer *p);
struct sci_peer *peer_find_kept(struct sci_ep *ep, const struct sci_addr *addr);

/* import.c */
void import_drop(struct msg_import *im);
void imports_drop_gone(struct sci_peer *p);
void imports_leave(struct sci_peer *p);
void maps_drop(struct sci_peer *p);
int peer_connect_segment(struct sci_peer *p, enum msg_call_kind kind, uint32_t id,
			 struct sci_rseg **seg);
struct msg_import *peer_import(struct sci_peer *p, uint32_t id, int *error);
struct msg_import *rail_import(struct sci_peer *p, uint32_t id, int *error);
bool import_is_there(struct sci_peer *p, struct msg_import *im);
bool import_is_gone(int error);
bool import_has_no_room(const struct sci_peer *p, int error);
bool import_later(struct sci_peer *p, int error);
int import_missing(struct sci_peer *p, uint64_t *doubt_ms);

/* connect.c */
bool hello_again(int error);
int hello_send(struct sci_peer *p);
int hello_poll(struct sci_ep *ep);
int calls_check(struct sci_peer *p);

/* route.c */
int route_make(struct sci_peer *p, unsigned int rail, sci_event_fn event);
bool route_works(struct sci_peer *p, unsigned int rail);
void routes_leave(struct sci_peer *p);
void routes_end(struct sci_peer *p);
void route_ask(struct sci_peer *p, unsigned int rail);
void route_take(struct sci_peer *p, struct msg_call *c);
bool route_is_unheard(const struct sci_peer *p);
bool route_read_back(struct sci_peer *p);
bool routes_lost(struct sci_peer *p, unsigned int events);

/* reroute.c */

/* Return the rail of the lines of a peer with two rails. */
static inline unsigned int line_rail(const struct sci_peer *p)
{
	return p->rails->turn % RAILS;
}

void reroute_home(struct sci_peer *p);
void reroute_poll(struct sci_peer *p);
void reroute_handle(struct sci_ep *ep, const struct sci_addr *from, const struct msg_hello *h);

/*
 * Return whether the first rail of @p, which has two rails, carries bytes now as far as is known:
 * lines use it.
 */
static inline bool first_rail_works(const struct sci_peer *p)
{
	return p->line == &p->first && !p->rails->lost[RAIL_FIRST] &&
	       !sci_link_down(p->ep->link);
}

/* Return the number of packets that the endpoint's adapters have lost. */
static inline uint32_t ep_errors(struct sci_ep *ep)
{
	return sci_link_errors(ep->link) + (ep->rail ? sci_link_errors(ep->rail_link) : 0);
}

/* call.c */
struct msg_hello hello_make(struct sci_ep *ep, enum msg_hello_type type);
int call_start(struct sci_peer *p, enum msg_call_kind kind, uint32_t id,
	       sci_event_fn event);
int call_hello(struct sci_ep *ep, struct sci_fabric *fabric, struct sci_peer *p,
	       const struct sci_addr *to, const struct msg_hello *hello);
int call_reroute(struct sci_peer *p, unsigned int rail, const struct msg_hello *hello);
int call_route(struct sci_peer *p, unsigned int rail, uint32_t id, sci_event_fn event);
struct msg_call *call_find(struct sci_peer *p, enum msg_call_kind kind,
			   uint32_t id);
void call_end(struct msg_call *c);
void refusals_end(struct sci_ep *ep);
bool calls_give_up(struct sci_peer *p);
void call_run(struct msg_call *c);

/* callers.c */
void callers_make(struct msg_call *c);
void callers_init(struct sci_ep *ep);
/* Note that @c has ended. */
void callers_done(struct msg_call *c);
/* Start a thread if calls wait and others have become slow. */
void callers_check(struct sci_ep *ep);
void callers_stop(struct sci_ep *ep);
void callers_fini(struct sci_ep *ep);

/* dial.c */
void dial_init(struct msg_dial *d, struct sci_ep *ep,
	       const struct sci_addr *addr, int timeout);
int dial_pick(struct msg_dial *d);
int dial_start(struct msg_dial *d);
struct sci_peer *dial_end(struct msg_dial *d, int ret);
void dial_done(struct msg_dial *d, int ret);
bool dial_is_open(struct sci_peer *p);
int dials_poll(struct sci_ep *ep);
int dials_due(struct sci_ep *ep);
void dials_cancel(struct sci_ep *ep);

/* segment.c */
int segment_create(struct sci_ep *ep, struct sci_fabric *fabric,
		   struct sci_lseg_param *param, struct sci_lseg **out);

/* net.c */
int net_join(struct sci_ep *ep, const struct sci_fabric_place *at, const char *spec,
	     const char *peers);
int net_port_make(struct sci_ep *ep, uint32_t id);
void net_port_end(struct sci_ep *ep);
void net_leave(struct sci_ep *ep);
struct sci_fabric *net_choose(struct sci_ep *ep, uint32_t node);
int net_store(struct sci_peer *p, struct sci_rseg *seg, volatile uint8_t *dst,
	      struct msg_cursor *at, size_t len);
bool net_look(struct sci_ep *ep);
void net_news_take(struct sci_ep *ep);
void net_sleep(struct sci_ep *ep);
void net_push(struct sci_peer *p);

/*
 * Return @error, or a replacement: sci_test() and sci_wait() return -EAGAIN and -ETIMEDOUT while a
 * request is outstanding. A request must not complete with these codes, or a program would use the
 * request after its end.
 */
static inline int error_for_request(int error)
{
	switch (error) {
	case -EAGAIN:		/* too much locked memory, or too many threads */
		return -ENOMEM;
	case -ETIMEDOUT:
		return -ETIME;
	default:
		return error;
	}
}

/*
 * Return the error of a call to @p, which is DOWN. After -ENOMEM the program may repeat a call. So a
 * connection that has ended for lack of memory has another error.
 */
static inline int peer_error(const struct sci_peer *p)
{
	return p->error == -ENOMEM ? -ENOBUFS : p->error;
}

/* host.c */
uint64_t msg_now_ms(void);
uint64_t msg_nonce(void);

/* wake.c */
void wake_fork_init(void);
int wake_init(struct sci_ep *ep);
void wake_fini(struct sci_ep *ep);
int wake_user_fd(struct sci_ep *ep);
void wake_drain(struct sci_ep *ep);
void wake_drain_user(struct sci_ep *ep);
void wake_self(struct sci_ep *ep);
void wake_waiters(struct sci_ep *ep);
void wake_all(struct sci_ep *ep);

/* Count a change that a thread may wait for, and wake the waiting threads. */
static inline void msg_changed(struct sci_ep *ep)
{
	/* writers hold the lock, but sleep_beside() reads without it */
	sci_store_relaxed(&ep->completions, ep->completions + 1);
	if (ep->sleeping || ep->waiters)
		wake_waiters(ep);
}

/* ---- the hot path ---- */

static inline bool tx_room(struct msg_tx *tx)
{
	return tx->pos - tx->read < tx->lines || tx_room_slow(tx);
}

/* Return the number of lines that are surely free. tx_room() may find more. */
static inline uint32_t tx_free(const struct msg_tx *tx)
{
	return tx->lines - (tx->pos - tx->read);
}

/* Ring the bell if the receiver has announced a sleep: see msg_announce_sleep(). */
static inline void bell_ring_sleeper(struct sci_peer *p)
{
	uint32_t sleeps;

	if (p->fence) {
		if (p->stream) {
			net_push(p);
			return;
		}
		sci_full_barrier();
	}
	sleeps = peer_sleeps(p);
	if (sleeps != p->bell_rung)
		status_write(p);
}

/*
 * Write the line @ahead lines after the next line. The caller has called tx_room() and
 * tx_prepare(). @type 0 is a short message.
 */
static __always_inline void tx_put(struct sci_peer *p, struct msg_tx *tx,
				   uint32_t ahead, const struct line_head *head,
				   const void *buf, size_t len,
				   enum msg_line_type type)
{
	uint64_t last = line_last(type, type ? LINE_TYPED : (unsigned int)len,
				  tx->pos + ahead);
	uint32_t slot = tx->slot + ahead;
	uint64_t id = tx->id;

	if (slot >= tx->lines) {
		slot -= tx->lines;
		id ^= LINE_ID;
	}
	if (p->careful)
		tx_put_careful(p, tx, slot, head, buf, len, id, last);
	else
		line_ops.put(&tx->slots[slot], head, buf, len, id, last);
}

/* Advance the ring past @n lines that have been written. */
static inline void tx_go(struct sci_peer *p, struct msg_tx *tx, uint32_t n)
{
	tx->pos += n;
	tx->slot += n;
	if (tx->slot >= tx->lines) {
		tx->slot -= tx->lines;
		tx->id ^= LINE_ID;
	}
	bell_ring_sleeper(p);
}

/* Return whether enough lines were read for a status line, which costs a packet or a cache miss. */
static inline bool lines_due(const struct sci_peer *p)
{
	return p->status_next.data - p->status_sent.data >= DATA_LINES / (p->lossy ? 2 : 4);
}

static inline bool ring_due(struct sci_peer *p, enum msg_ring which,
			    uint32_t read)
{
	uint32_t size = blocks_rx(p, which)->size;

	return size && read >= size / (p->lossy ? 4 : 8);
}

/* Copy bytes of a line to @at. Drop the bytes beyond the end of @at. */
static inline void msg_scatter_line(struct msg_cursor *at, const void *src,
				    size_t len)
{
	size_t room = 0;
	const void *dst = at->n ? msg_chunk(at, &room) : NULL;

	if (len <= room && len <= LINE_BYTES) {
		line_copy((void *)dst, src, len);
		msg_skip(at, len);
	} else {
		msg_scatter(at, src, len);
	}
}

static inline void rx_advance(struct msg_rx *rx)
{
	rx->pos++;
	if (++rx->slot == rx->lines) {
		rx->slot = 0;
		rx->id ^= LINE_ID;
	}
}

#endif
