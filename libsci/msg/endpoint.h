/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: inside an endpoint
 *
 * One lock per endpoint covers all of it. The state machine (everything but
 * wait.c) never blocks: msg_progress() looks at the rings, moves what can be
 * moved and returns. Events of the fabric come on a thread of the fabric's:
 * they set a bit and wake, no more. Calls that another process has to answer
 * are made on threads of their own (call.c, callers.c).
 *
 * peer		a connection; its inbox here, the other's inbox mapped
 * request	a send or receive of the program's, in one queue at a time:
 *		to be sent (peer->sendq), handshake or blocks under way
 *		(peer->sending, peer->receiving), or posted (ep->match)
 * msg		a message that came before anybody asked for it
 */
#ifndef LIBSCI_MSG_ENDPOINT_H
#define LIBSCI_MSG_ENDPOINT_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

/* these are exported, all else is hidden */
#pragma GCC visibility push(default)
#include <sci/msg.h>
#pragma GCC visibility pop

#include "libsci/base/compiler.h"
#include "libsci/base/hash.h"
#include "libsci/base/list.h"
#include "libsci/fabric/core/fabric.h"
#include "libsci/fabric/core/fault.h"
#include "libsci/msg/lock.h"
#include "libsci/msg/match.h"
#include "libsci/msg/wire.h"

#define MSG_PAD(n)	(((n) + LINE_BYTES - 1) & ~(uint64_t)(LINE_BYTES - 1))
#define IOV_INLINE	2u

/* ---- vectors ---- */

/* Where a copy through a vector has got to. */
struct msg_cursor {
	const struct iovec *iov;
	size_t n;
	size_t done;			/* bytes of iov[0] */
};

/* ---- rings of lines ---- */

/* The sending end of a ring. */
struct msg_tx {
	volatile struct msg_line *slots;	/* in the peer's memory */
	struct msg_line *shadow;	/* copies, where lines can be lost */
	const volatile uint32_t *status; /* how far the peer has read */
	struct sci_link_status *stale;	/* NULL: *status is what the peer stored last */
	uint32_t lines;			/* of the ring */
	uint32_t slot;			/* next one to be written */
	uint32_t pos;			/* ... counted from the beginning */
	uint32_t read;			/* *status, as last looked at */
	uint32_t checked;		/* all before this have surely arrived */
	uint64_t id;			/* this lap's */
};

/* The receiving end. */
struct msg_rx {
	const volatile struct msg_line *slots;
	uint32_t lines;
	uint32_t slot;
	uint32_t pos;
	uint64_t id;
};

/* A ring of blocks, sending end. Sizes are powers of two. */
struct msg_blocks {
	volatile uint8_t *base;
	const volatile uint32_t *status;
	struct sci_rseg *seg;
	uint32_t size;			/* 0: not attached */
	uint32_t end;			/* bytes ever put in, gaps included */
};

/* The receiving end; how far it is read stands in peer->now. */
struct msg_blocks_rx {
	uint8_t *base;
	struct sci_lseg *seg;
	uint32_t size;			/* 0: not attached */
};

/* ---- requests and messages ---- */

enum msg_kind { MSG_SEND, MSG_RECV, MSG_CONNECT, MSG_EVENT,
		MSG_WRITE, MSG_READ, MSG_ATOMIC };

enum msg_state {
	MSG_QUEUED,			/* send: in peer->sendq */
	MSG_POSTED,			/* receive: in ep->match */
	MSG_CHAINED,			/* receive: its lines are coming */
	MSG_IMPORTING,			/* receive: the sender's buffer */
	MSG_HANDSHAKE,			/* send: RTS is out; receive: CTS is */
	MSG_MOVING,			/* send: blocks are being written; one-sided */
	MSG_MOVED,			/* sync send: its FIN has not come yet */
	MSG_DIALING,			/* connect: in ep->dials */
	MSG_DONE,
};

/* An atomic, or what follows a write. */
struct msg_word {
	struct list link;		/* the request's */
	struct sci_rmw rmw;
	void *before;			/* for what was there; or NULL */
	uint64_t offset;		/* of the word that follows a write */
	uint32_t segment;
};

struct sci_req {
	union {
		struct list link;		/* in a queue of its peer */
		struct sci_match_recv match;	/* posted */
		struct msg_word word;		/* one-sided */
	};
	struct sci_ep *ep;
	struct iovec *iov;
	size_t iovs;
	struct iovec inline_iov[IOV_INLINE];
	struct msg_cursor at;
	size_t len;			/* of the message, or of the buffer */
	uint64_t tag;
	uint32_t context;
	uint32_t id;			/* ours, in ep->ids */
	enum msg_kind kind;
	uint64_t addr;			/* MSG_IMPORTING: the buffer's, there */
	/* from here on zero at first */
	uint32_t init_from;
	struct sci_peer *peer;		/* NULL: receive from anyone, not matched */
	enum msg_state state;
	_Atomic bool done;
	bool tagged;
	bool sync;
	bool pooled;			/* goes back to the endpoint's pool */
	bool in_blocks;			/* eager, some of its blocks are out */
	bool has_imm;
	bool unwatched;			/* nobody has a pointer to it */
	bool lent;			/* its bytes, until the call returns */
	bool queued;			/* its end is told by ep->completed */
	bool signals;			/* a write: word follows */
	bool marked;			/* a write: all is on its way, up to addr */
	uint8_t mode;			/* of a rendezvous: CTS_* */
	uint8_t rts_flags;
	int crc_error;
	uint32_t their_id;
	uint32_t segment;		/* rendezvous, one-sided: their memory */
	uint64_t offset;
	uint64_t doubt_ms;		/* one-sided: when it is given up */
	size_t moved;			/* bytes already on their way, or here */
	size_t want;			/* bytes that will be moved */
	void *data;			/* if queued: the program's name for it */
	union {
		struct msg_dial *dial;		/* MSG_CONNECT */
		struct sci_stream_get *get;	/* MSG_READ: what has been asked for */
	};
	void *copy;			/* of what it sends; its own */
	uint64_t imm;
	struct sci_status status;
};

/* Requests are allocated many at a time. */
#define SLAB_REQS	32u

struct msg_slab {
	struct msg_slab *next;
	struct sci_req reqs[SLAB_REQS];
};

/* A message without a receive. */
struct sci_msg {
	struct sci_match_msg match;
	struct sci_ep *ep;
	struct sci_peer *peer;		/* NULL: gone since */
	struct sci_req *req;		/* waits for the rest of it */
	bool matched;			/* the program has it: not in ep->match */
	bool rendezvous;		/* its bytes are still there */
	bool has_imm;
	uint64_t imm;
	int error;
	size_t len;
	size_t have;
	size_t kept;			/* of ep->unexpected_bytes */
	struct line_rts rts;
	struct list link;		/* while matched: its peer's, or orphans */
	uint8_t *data;
	uint8_t small[LINE_BYTES];
};

/* ---- exported memory ---- */

/* A range of sci_buf_alloc() or sci_buf_register(). */
struct msg_buf {
	struct list link;
	struct sci_lseg *seg;
	uint8_t *addr;
	size_t len;
	unsigned int count;		/* registrations; 0: allocated */
	bool shared;			/* another endpoint's, which owns seg */
	struct sci_lseg *net_seg;	/* the same memory, for peers beyond; or NULL */
};

/* A segment of a peer's, imported to store to it or to read from it. */
struct msg_import {
	struct list link;
	struct sci_rseg *seg;
	uint8_t *addr;
	uint64_t size;
	uint32_t id;
	uint32_t errors;		/* link's, when it was surely there */
	unsigned int pointers;		/* of the program into it */
};

/* ---- calls to other nodes: call.c ---- */

enum msg_call_kind { CALL_SEGMENT, CALL_INBOX, CALL_HELLO };

struct msg_call {
	struct list link;		/* peer->calls, or ep->refusals */
	struct list waiting;		/* for a thread: callers.waiting */
	struct sci_ep *ep;
	struct sci_peer *peer;		/* NULL: a refusal */
	struct sci_fabric *fabric;
	enum msg_call_kind kind;
	struct sci_addr to;
	uint32_t id;			/* of the segment */
	sci_event_fn event;
	struct msg_hello hello;
	/* written by the thread until @done is set */
	struct sci_rseg *seg;
	struct sci_rintr *bell;
	struct sci_rintr *port;		/* of a HELLO */
	int ret;
	uint64_t ms;			/* how long it took */
	_Atomic bool done;
	/* progress has seen @done: all requests that wait may have it, in order */
	bool answered;
};

static inline bool call_is_done(const struct msg_call *c)
{
	return atomic_load_explicit(&c->done, memory_order_acquire);
}

/* The threads that make calls. */
struct msg_callers {
	pthread_mutex_t lock;
	pthread_cond_t ended;		/* a thread has */
	unsigned int threads;
	struct list waiting;
};

/* ---- handlers ---- */

struct msg_handler {
	sci_handler_fn fn;
	void *arg;
};

_Static_assert(MSG_HANDLERS == SCI_CONTEXT_MAX + 1 &&
	       MSG_HANDLERS + SCI_HANDLERS == MSG_UNTAGGED, "contexts");

/* Is a message with this context one to a handler? */
static inline bool is_handler(uint32_t context)
{
	return context >= MSG_HANDLERS && context != MSG_UNTAGGED;
}

static inline unsigned int handler_id(uint32_t context)
{
	return context - MSG_HANDLERS;
}

/* ---- peers ---- */

enum msg_peer_state { PEER_CONNECTING, PEER_UP, PEER_DOWN };

/* Events of the fabric, noted on its thread. */
enum {
	PEER_LEFT	= 1 << 0,	/* disconnected from our inbox */
	PEER_LOST	= 1 << 1,	/* ... by dying */
	PEER_GONE	= 1 << 2,	/* its inbox is gone */
	PEER_CUT	= 1 << 3,	/* ... since it took it away */
	PEER_CAME	= 1 << 4,	/* it has imported our inbox */
	PEER_FREED	= 1 << 5,	/* memory of its that we have imported */
};

struct sci_peer {
	struct list link;		/* ep->peers, ->down, ->ended, ->former */
	struct list hot;		/* ep->hot: polled */
	struct list busy;		/* ep->busy: has something to push */
	struct list fresh;		/* ep->fresh: to be accepted */
	struct list dirty;		/* ep->dirty: writes to be checked */
	struct list closing;		/* ep->closing: sci_peer_close() */
	uint64_t close_ms;		/* ... and when it ends at the latest */
	struct hash_node by_addr;	/* ep->by_addr */
	struct sci_ep *ep;
	void *data;
	struct sci_addr addr;
	uint64_t nonce;			/* of its life; 0: not known yet */
	uint32_t their_inbox;		/* segment it made for us */
	enum msg_peer_state state;
	int error;			/* why it is DOWN */
	_Atomic unsigned int events;
	bool known;			/* the program has a pointer to it */
	bool leaving;			/* ... which it is giving up */
	bool asked;			/* our HELLO has gone out */
	bool sums;			/* it sends check sums */
	bool lossy;			/* stores to it have to be checked */
	bool careful;			/* ... or flushed, or are no stores, but stream->put */
	bool stale;			/* loads of what it stores: peer_refresh() */
	bool may_read;			/* imports read as fast as they write */
	bool imported;			/* it has our inbox */
	bool incoming;			/* ... and is to be accepted when it has */
	bool fence;			/* stores need one before *sleeps */
	bool waiting_attach;
	bool attach_failed;
	bool attach_asked;		/* the peer has asked for an eager ring */
	bool announced;			/* it knows that we sleep */
	bool status_dirty;
	bool resend;			/* something of it was lost */
	bool draining;			/* down soon: no limit to what is kept */
	uint32_t bell_rung;		/* last status->sleeps we answered */
	uint32_t expects;		/* control lines that may come */
	uint32_t idle;			/* polls in vain */
	uint32_t stayed;		/* ... that left a message where it was */
	size_t wanted;			/* receives and probes that wait for this peer */
	struct list calls;		/* to it: struct msg_call */
	int hello_ret;			/* what came of the last HELLO */
	uint64_t hello_ms;		/* ... and how long that took */
	uint64_t import_ms;		/* no other attempt to import before */
	unsigned int dialers;		/* struct msg_dial: who wants it */
	unsigned int unwatched;		/* requests for it that nobody waits for */
	unsigned int transfers;		/* ... of these, one-sided */
	int transfer_error;		/* the first of these, since sci_flush() */
	unsigned int answers;		/* of atomics, still to come */
	uint64_t gone_ms;		/* when its inbox went away */
	struct sci_req *came, *went;	/* events that are not queued yet */

	/* sending */
	struct msg_tx data_tx, ctl_tx;
	struct msg_blocks blocks_tx[MSG_RINGS];
	int xfer_error;			/* why there is no transfer ring */
	struct msg_status *status;	/* what it has told us: inbox line 0 */
	struct list sendq;
	struct list ctlq;		/* struct msg_ctl: no room yet */
	struct list sending;		/* requests: RTS is out, or MOVING */
	uint64_t chained;		/* bytes sent as chains */
	uint32_t heard;			/* data_rx.pos after the last of blocks */

	/* receiving */
	struct msg_rx data_rx, ctl_rx;
	struct msg_status told;		/* what we have told it, in part: */
	struct msg_status now;		/* ... what there is to tell */
	volatile struct msg_line *tell;	/* where: line 0 of its inbox */
	struct msg_blocks_rx blocks_rx[MSG_RINGS];
	bool has_imm;			/* the line that is being taken, one */
	uint64_t imm;
	int chain_error;
	struct list receiving;		/* requests: CTS is out, or IMPORTING */
	unsigned int importing;		/* how many of them */
	struct list matched;		/* struct sci_msg */
	struct sci_req *chain_req;	/* a chain is coming: for this request */
	struct sci_msg *chain_msg;	/* ... or this message */
	size_t chain_left;		/* ... with so many bytes missing */

	/* fabric: the endpoint's, or the net */
	struct sci_fabric *fabric;
	uint32_t adapter;		/* of that */
	const struct sci_stream_ops *stream;	/* the net's; NULL: imports are memory */
	struct sci_lseg *inbox;
	struct msg_inbox *inbox_map;
	struct sci_rseg *outbox;
	struct msg_inbox *outbox_map;
	struct sci_rintr *bell;		/* NULL on the net, which wakes by itself */
	struct list imports;
	struct list maps;		/* ... gone, but for pointers into them */
};

/* It has sent nothing since our last long message, and hardly waits for the next. */
static inline bool peer_streams(const struct sci_peer *p)
{
	return p->heard == p->data_rx.pos;
}

/* Looks at a message that nobody has asked for before it is kept. */
#define STAY_LOOKS	64u

/* A control line that waits for room. */
struct msg_ctl {
	struct list link;
	struct msg_typed line;
};

/* ---- endpoints ---- */

/* keeper.c */
struct msg_keeper {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool runs;
	bool stop;
	bool awake;			/* written with both locks held */
	uint32_t turns;			/* ep->turns at the last look */
	unsigned int calm;		/* looks with nothing dirty */
};

#define EP_NAME_MAX	15u		/* as names of threads */

/* The endpoint's threads are called as it is, or for what they do. */
#define ep_thread_name(ep, role)	((ep)->name[0] ? (ep)->name : (role))

/* Attempts at a store before the caller does something else first. */
#define STORE_TRIES	64u

struct sci_ep {
	struct msg_lock lock;
	const struct sci_fabric_ops *ops;
	struct sci_link_status *link;
	bool lossy;			/* remote stores have to be checked */
	bool crc;
	bool may_read;			/* imports read as fast as they write */
	bool register_copies;		/* see SCI_TRAIT_REGISTER_COPIES */
	bool peer_events;		/* see SCI_EP_PEER_EVENTS */
	bool wake_barrier;
	bool retry;			/* something waits that nobody tells of */
	struct list hot;
	struct list busy;
	struct list dirty;
	unsigned int n_hot;
	unsigned int n_gone;		/* peers whose inbox has gone away, or closing */
	size_t wanted;			/* receives and probes that wait for any peer */
	struct sci_match match;
	uint32_t turns;			/* progress calls, mod 2^32 */
	_Atomic uint32_t attention;	/* the fabric's thread has news */
	uint32_t errors;		/* of the link, when all was there */
	uint64_t unexpected_bytes;
	uint64_t params[SCI_PARAMS];
	struct sci_ep_stats stats;

	struct sci_req *pool;
	struct msg_slab *slabs;
	struct sci_req **ids;		/* requests of rendezvous, by id */
	uint32_t n_ids;
	uint32_t free_id;
	uint32_t next_segment;		/* id of the next segment, less MSG_NUMBERS */

	struct sci_fabric *fabric;
	struct sci_fabric *net;		/* for peers beyond that; or NULL */
	struct sci_lintr *net_port;
	_Atomic uint32_t net_news;	/* something has come over it */
	unsigned int net_looks;		/* left, at the net; 0: its thread does */
	struct sci_addr addr;
	uint32_t adapter;		/* of the fabric */
	char name[EP_NAME_MAX + 1];	/* the program's for it */
	uint64_t nonce;
	uint32_t fork_gen;
	struct list peers;		/* CONNECTING or UP */
	struct list down;		/* DOWN, to be released */
	struct list ended;		/* ... released, for sci_peer_gone() */
	struct list former;		/* ... which has named them */
	struct list fresh;
	struct list closing;
	struct list dials;
	struct hash by_addr;		/* all peers */
	struct list bufs;
	struct list refusals;		/* calls: HELLOs that refuse */
	unsigned int n_refusals;
	struct msg_callers callers;
	struct list orphans;		/* matched messages of former peers */
	struct list completed;		/* requests that nobody has to look at */
	bool cooled;			/* some peers ring and are not polled */

	/* wait.c */
	struct list open;		/* of all endpoints, for fork() */
	struct sci_lintr *bell;
	struct sci_lintr *port;		/* HELLOs */
	int bell_fd;
	int wake_fd;
	int user_fd;			/* epoll of them; -1: not asked for */
	int timer_fd;			/* ... and this, for what is dialed */
	bool timer_set;
	bool armed;			/* ... and completions shall wake it */
	unsigned int completions;	/* of requests, ever: mod 2^32 */
	unsigned int waiters;		/* threads in sleep_beside() */
	unsigned int crowded;		/* others want the CPU; 0: they do not */
	bool sleeping;			/* a thread is in poll() */
	bool woken;			/* ... and will return from it */
	pthread_mutex_t sleep_lock;
	pthread_cond_t sleep_cond;

	struct msg_keeper keeper;
	struct msg_handler handlers[SCI_HANDLERS];
};

/* Before a load of what the peer may have stored, where caches are not coherent. */
static inline void peer_refresh(const struct sci_peer *p, const volatile void *addr,
				size_t len)
{
	if (p->stale)
		sci_link_refresh(p->ep->link, addr, len);
}

/* Has the next line of @rx come, as far as a short look tells? */
static inline bool peer_line_peek(const struct sci_peer *p, const struct msg_rx *rx)
{
	const volatile struct msg_line *slot = &rx->slots[rx->slot];

	peer_refresh(p, slot, sizeof(*slot));
	return line_peek(slot, rx->id);
}

/* The sleep that the peer has announced last. */
static inline uint32_t peer_sleeps(const struct sci_peer *p)
{
	peer_refresh(p, p->status, sizeof(*p->status));
	return sci_load_relaxed(&p->status->sleeps);
}

extern _Atomic uint32_t msg_fork_gen __attribute__((visibility("hidden")));

static inline bool msg_usable(const struct sci_ep *ep)
{
	return ep->fork_gen ==
	       atomic_load_explicit(&msg_fork_gen, memory_order_relaxed);
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
bool status_due(const struct sci_peer *p);
uint32_t blocks_crc(struct msg_cursor at, size_t len);
int remote_store(struct sci_peer *p, struct sci_rseg *seg, volatile void *dst,
		 struct msg_cursor *at, size_t len, bool block);
void status_store(struct sci_peer *p);
void status_of_blocks(struct sci_peer *p);

/* check.c */
void mark_dirty(struct sci_peer *p);
bool check_writes(struct sci_ep *ep);
void watch_writes(struct sci_ep *ep);

/* keeper.c */
int keeper_start(struct sci_ep *ep);
void keeper_stop(struct sci_ep *ep);
void keeper_wake(struct sci_ep *ep);

/* vector.c */

/* Memory to memory: the engine knows where memcpy() is slow. */
static inline void msg_copy(void *dst, const void *src, size_t len)
{
	sci_pio_write(dst, src, len, SCI_PIO_MAP_CACHED);
}

bool msg_iov_good_many(const struct iovec *iov, size_t n);
size_t msg_iov_len(const struct iovec *iov, size_t n);

/* No piece without memory, and a length that is one. */
static inline bool msg_iov_good(const struct iovec *iov, size_t n)
{
	if (n != 1)
		return msg_iov_good_many(iov, n);
	return (iov->iov_base || !iov->iov_len) && iov->iov_len <= SSIZE_MAX;
}

void msg_gather(struct msg_cursor *at, void *dst, size_t len);
void msg_scatter(struct msg_cursor *at, const void *src, size_t len);

/* The rest of the piece @at is in; callers know that there is one. */
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

/* request.c */
void slabs_free(struct sci_ep *ep);
struct sci_req *req_new(struct sci_ep *ep, enum msg_kind kind);
void req_init(struct sci_req *req, struct sci_ep *ep, enum msg_kind kind);
int req_iov_many(struct sci_req *req, const struct iovec *iov, size_t n);
void req_free(struct sci_req *req);
void req_done(struct sci_req *req, int error);
int last_error(int error);
int req_id_get(struct sci_req *req);
void req_id_put(struct sci_req *req);
struct sci_req *req_by_id(struct sci_peer *p, uint32_t id, enum msg_kind kind);

/* completion.c */
void completion_queue(struct sci_req *req);
void completions_forget(const struct sci_peer *p);
int peer_events_init(struct sci_peer *p);
void peer_events_fini(struct sci_peer *p);
void peer_came(struct sci_peer *p);
void peer_went(struct sci_peer *p, int error);

/* send.c */
int send_start(struct sci_req *req);
int send_push(struct sci_peer *p);
void send_ctl(struct sci_peer *p, const struct msg_typed *line);
void peer_busy(struct sci_peer *p);

/*
 * The counter of receives and probes that wait for messages of @p, or of any peer.
 * A receive of a service context waits for no message in particular: NULL.
 */
static inline size_t *wanted_counter(struct sci_ep *ep, struct sci_peer *p,
				     uint32_t context)
{
	if (context >= SCI_CONTEXT_SERVICE && context != MSG_UNTAGGED)
		return NULL;
	return p ? &p->wanted : &ep->wanted;
}

/* receive.c */
int receive_poll(struct sci_peer *p);
int recv_start(struct sci_req *req);
void recv_message(struct sci_req *req, struct sci_msg *msg);
void msg_unexpected_free(struct sci_msg *msg);
void msg_finish(struct sci_req *req, int error);

/* handler.c */
void handler_run(struct sci_peer *p, uint32_t context, uint64_t tag,
		 const void *data, size_t len, int error);
struct sci_msg *handler_message(struct sci_peer *p, uint32_t context,
				uint64_t tag, size_t len);

/* send_calls.c */
int handler_send(struct sci_peer *peer, unsigned int id, uint64_t tag,
		 const struct iovec *iov, size_t n);

/* rendezvous.c */
void rndv_accept(struct sci_req *req, struct sci_peer *p,
		 const struct line_rts *rts);
bool rndv_accept_later(struct sci_peer *p);
int rndv_push(struct sci_req *req);
int rndv_ctl(struct sci_peer *p, const struct msg_typed *line);
void rings_free(struct sci_peer *p);
int rndv_attach(struct sci_peer *p, const struct line_attach *want);

/* onesided.c */
int onesided_push(struct sci_req *req);
void onesided_answer(struct sci_peer *p, uint64_t id, int error, uint64_t before);
void onesided_copied(struct sci_peer *p, uint64_t id, int error, const void *data,
		     size_t len);

/* atomic.c */
size_t atomic_size(const struct sci_rmw *a);
bool atomic_valid(const struct sci_rmw *a);
uint64_t atomic_apply(void *word, const struct sci_rmw *a);
void atomic_result(void *before, const struct sci_rmw *a, uint64_t old);
int atomic_ask(struct sci_peer *p, uint32_t id, uint32_t segment, uint64_t offset,
	       const struct sci_rmw *a);
void atomics_init(struct sci_ep *ep);

/* copies.c */
int copy_ask(struct sci_req *req);
void copies_init(struct sci_ep *ep);

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
void peer_heat(struct sci_peer *p);
void peer_expect_ctl(struct sci_peer *p);
void peer_doubt(struct sci_peer *p);
bool peer_is_gone(const struct sci_peer *p);
int peer_ask_inbox(struct sci_peer *p);
int peer_take_inbox(struct sci_peer *p, struct msg_call *c);
void peer_event_add(struct sci_peer *p, unsigned int event);

/* import.c */
void imports_drop_gone(struct sci_peer *p);
void imports_leave(struct sci_peer *p);
void maps_drop(struct sci_peer *p);
int peer_connect_segment(struct sci_peer *p, uint32_t id, struct sci_rseg **seg);
struct msg_import *peer_import(struct sci_peer *p, uint32_t id, int *error);
bool import_is_there(struct sci_peer *p, struct msg_import *im);
bool import_is_gone(int error);
bool import_later(struct sci_peer *p, int error);
int import_missing(struct sci_peer *p, uint64_t *doubt_ms);

/* connect.c */
int hello_send(struct sci_peer *p);
int hello_poll(struct sci_ep *ep);
int calls_check(struct sci_peer *p);
void peers_flush(struct sci_ep *ep);
int closings_poll(struct sci_ep *ep);
void peer_closing_end(struct sci_peer *p);
void peer_keep(struct sci_peer *p);
void peer_drop(struct sci_peer *p);

/* call.c */
int call_start(struct sci_peer *p, enum msg_call_kind kind, uint32_t id,
	       sci_event_fn event);
int call_hello(struct sci_ep *ep, struct sci_fabric *fabric, struct sci_peer *p,
	       const struct sci_addr *to, const struct msg_hello *hello);
struct msg_call *call_find(struct sci_peer *p, enum msg_call_kind kind,
			   uint32_t id);
void call_end(struct msg_call *c);
void refusals_end(struct sci_ep *ep);
bool calls_give_up(struct sci_peer *p);
void call_run(struct msg_call *c);

/* callers.c */
void callers_make(struct msg_call *c);
void callers_init(struct sci_ep *ep);
void callers_stop(struct sci_ep *ep);
void callers_fini(struct sci_ep *ep);

/* dial.c */
bool hello_again(int error);
int dials_poll(struct sci_ep *ep);
int dials_due(struct sci_ep *ep);
void dial_cancel(struct sci_req *req);
void dials_cancel(struct sci_ep *ep);

/* buffer.c */
int segment_create(struct sci_ep *ep, struct sci_fabric *fabric,
		   struct sci_lseg_param *param, struct sci_lseg **out);
struct msg_buf *buf_find(struct sci_ep *ep, const void *addr, size_t len);
struct msg_buf *buf_by_segment(struct sci_ep *ep, uint32_t id);
void bufs_free(struct sci_ep *ep);

/* net.c */
int net_join(struct sci_ep *ep, const struct sci_fabric_place *at, const char *spec);
int net_port_make(struct sci_ep *ep, uint32_t id);
void net_port_end(struct sci_ep *ep);
void net_leave(struct sci_ep *ep);
struct sci_fabric *net_choose(struct sci_ep *ep, uint32_t node);
int net_store(struct sci_peer *p, struct sci_rseg *seg, volatile uint8_t *dst,
	      struct msg_cursor *at, size_t len);
int net_write(struct sci_req *req, struct msg_import *im);
int net_read(struct sci_req *req, struct msg_import *im);
void net_read_forget(struct sci_req *req);
int net_buf_add(struct sci_ep *ep, struct msg_buf *b);
void net_buf_end(struct sci_ep *ep, struct msg_buf *b);
void net_look(struct sci_ep *ep);
void net_news_take(struct sci_ep *ep);
void net_sleep(struct sci_ep *ep);

/* progress.c */
void peers_warm_up(struct sci_ep *ep);
int msg_progress(struct sci_ep *ep);
int msg_look(struct sci_ep *ep, int (*fn)(void *arg), void *arg, int timeout);
bool msg_announce_sleep(struct sci_ep *ep);
void msg_woken(struct sci_ep *ep);

/* host.c */
uint64_t msg_now_ms(void);
uint64_t msg_nonce(void);

/* wait.c */
int waits_init(struct sci_ep *ep);
void waits_fini(struct sci_ep *ep);
void waits_fork_prepare(void);
void waits_fork_parent(void);
void waits_fork_child(void);
void wake_self(struct sci_ep *ep);
void wake_waiters(struct sci_ep *ep);
void wake_all(struct sci_ep *ep);

/* Something has completed that a wait may be for. */
static inline void msg_changed(struct sci_ep *ep)
{
	/* one writer at a time, but sleep_beside() reads it without the lock */
	sci_store_relaxed(&ep->completions, ep->completions + 1);
	if (ep->sleeping || ep->waiters)
		wake_waiters(ep);
}

/**
 * msg_wait() - make progress until something is so
 * @fn: looks for it; called with the lock held, as is this
 *
 * Returns what @fn does unless that is -EAGAIN; -ETIMEDOUT.
 */
int msg_wait(struct sci_ep *ep, int (*fn)(void *arg), void *arg, int timeout);

/* The same for an @fn that wants to be called every @ms milliseconds. */
int msg_wait_often(struct sci_ep *ep, int (*fn)(void *arg), void *arg,
		   int timeout, uint32_t ms);

/* param.c */
int params_init(struct sci_ep *ep);

/* ---- the hot path ---- */

static inline bool tx_room(struct msg_tx *tx)
{
	return tx->pos - tx->read < tx->lines || tx_room_slow(tx);
}

/* Lines there is room for, at most; more may be found by tx_room(). */
static inline uint32_t tx_free(const struct msg_tx *tx)
{
	return tx->lines - (tx->pos - tx->read);
}

/* The receiver may be asleep, or be about to: see msg_announce_sleep(). */
static inline void maybe_ring(struct sci_peer *p)
{
	uint32_t sleeps;

	if (p->fence) {
		if (p->stream) {
			p->stream->flush(p->outbox);
			return;
		}
		sci_full_barrier();
	}
	sleeps = peer_sleeps(p);
	if (sleeps != p->bell_rung)
		status_write(p);
}

/*
 * Write the line that comes @ahead lines after the next one: there is room, and
 * memory (tx_room(), tx_prepare()). @type 0: a short message.
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

/* @n lines have been put. */
static inline void tx_go(struct sci_peer *p, struct msg_tx *tx, uint32_t n)
{
	tx->pos += n;
	tx->slot += n;
	if (tx->slot >= tx->lines) {
		tx->slot -= tx->lines;
		tx->id ^= LINE_ID;
	}
	maybe_ring(p);
}

/* So much has been read that the peer should be told: a packet, or a cache line. */
static inline bool lines_due(const struct sci_peer *p)
{
	return p->now.data - p->told.data >= DATA_LINES / (p->lossy ? 2 : 4);
}

static inline bool ring_due(const struct sci_peer *p, enum msg_ring which,
			    uint32_t read)
{
	uint32_t size = p->blocks_rx[which].size;

	return size && read >= size / (p->lossy ? 4 : 8);
}

static inline void status_of_message(struct sci_status *st, uint32_t context,
				     uint64_t tag, size_t len)
{
	bool tagged = context != MSG_UNTAGGED;

	st->tag = tagged ? tag : 0;
	st->context = tagged ? context : 0;
	st->len = len;
}

/* The vector is copied: the caller's may go. */
static inline int req_iov(struct sci_req *req, const struct iovec *iov, size_t n)
{
	if (n != 1)
		return req_iov_many(req, iov, n);
	req->iov[0] = iov[0];
	req->iovs = 1;
	req->len = iov[0].iov_len;
	req->at = (struct msg_cursor){ .iov = req->iov, .n = 1 };
	if (!req->len)
		msg_skip(&req->at, 0);
	return 0;
}

/* Copy bytes of a line to @at. Drop those beyond its end. */
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
