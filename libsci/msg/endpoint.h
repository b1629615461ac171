/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: inside an endpoint
 *
 * One lock protects the whole endpoint. The state machine (everything but wait.c) never
 * blocks: msg_progress() polls the rings, moves what it can move and returns. The fabric
 * reports events on a thread of its own: that thread sets a bit, wakes the endpoint and
 * does nothing else. Calls that another process has to answer run on separate threads
 * (call.c, callers.c).
 *
 * peer		a connection: our inbox for the peer, and a mapping of the peer's inbox
 * request	a send or receive of the program, in one queue at a time: waiting
 *		to be sent (peer->sendq), handshake or blocks under way
 *		(peer->sending, peer->receiving), or posted (ep->match)
 * msg		a message that arrived before its receive was posted
 */
#ifndef LIBSCI_MSG_ENDPOINT_H
#define LIBSCI_MSG_ENDPOINT_H

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

/* the functions in the public headers are exported, all others are hidden */
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

/* The position of a copy through a vector. */
struct msg_cursor {
	const struct iovec *iov;
	size_t n;
	size_t done;			/* bytes already copied of iov[0] */
};

/* ---- rings of lines ---- */

/* The sending end of a ring. */
struct msg_tx {
	volatile struct msg_line *slots;	/* in the peer's memory */
	struct msg_line *shadow;	/* copies, where lines can be lost */
	const volatile uint32_t *status; /* how far the peer has read */
	struct sci_link_status *stale;	/* refresh *status before a load; or NULL */
	uint32_t lines;			/* of the ring */
	uint32_t slot;			/* next one to be written */
	uint32_t pos;			/* ... counted from the beginning */
	uint32_t read;			/* the peer's read position when we last loaded *status */
	uint32_t checked;		/* all lines before this position have arrived */
	uint64_t id;			/* identifier of the current lap */
};

/* The receiving end. */
struct msg_rx {
	const volatile struct msg_line *slots;
	uint32_t lines;
	uint32_t slot;
	uint32_t pos;
	uint64_t id;
};

/* The sending end of a ring of blocks. Its size is a power of two. */
struct msg_blocks {
	volatile uint8_t *base;
	const volatile uint32_t *status;
	struct sci_rseg *seg;
	uint32_t size;			/* 0: not attached */
	uint32_t end;			/* of the last block, since the start, with gaps */
};

/* The receiving end. Its read position is in peer->now. */
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

/* The word of an atomic, or of the atomic that follows a write. */
struct msg_word {
	struct list link;		/* the request's */
	struct sci_rmw rmw;
	void *before;			/* where to store the value before the atomic; or NULL */
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
	uint32_t id;			/* index in ep->ids */
	enum msg_kind kind;
	uint64_t addr;			/* MSG_IMPORTING: address of the buffer in the sender */
	/* req_init() clears the members from here on */
	uint32_t init_from;
	struct sci_peer *peer;		/* NULL: a receive from any peer, not matched yet */
	enum msg_state state;
	_Atomic bool done;
	bool tagged;
	bool sync;
	bool pooled;			/* goes back to the endpoint's pool */
	bool in_blocks;			/* an eager send, partly written */
	bool has_imm;
	bool unwatched;			/* detached: the program has no pointer to it */
	bool lent;			/* the program wants its buffer back */
	bool queued;			/* its completion goes to ep->completed */
	bool signals;			/* a write that the atomic in @word follows */
	bool marked;			/* net: all is sent, @addr is the mark */
	uint8_t mode;			/* transfer mode of a rendezvous: CTS_* */
	uint8_t rts_flags;
	int crc_error;
	uint32_t their_id;
	uint32_t segment;		/* rendezvous, one-sided: id of the peer's segment */
	uint64_t offset;
	uint64_t doubt_ms;		/* one-sided: when to give up missing memory, in ms */
	size_t moved;			/* bytes already written or received */
	size_t want;			/* bytes that will be moved */
	void *data;			/* completion queue: the program's context */
	union {
		struct msg_dial *dial;		/* MSG_CONNECT */
		struct sci_stream_get *get;	/* MSG_READ on the net: the request for bytes */
	};
	void *copy;			/* its own copy of the bytes to send */
	uint64_t imm;
	struct sci_status status;
};

/* Requests are allocated many at a time. */
#define SLAB_REQS	32u

struct msg_slab {
	struct msg_slab *next;
	struct sci_req reqs[SLAB_REQS];
};

/* A message that has not found its receive, or that the program has taken off the queue. */
struct sci_msg {
	struct sci_match_msg match;
	struct sci_ep *ep;
	struct sci_peer *peer;		/* NULL: the peer has been freed */
	struct sci_req *req;		/* the receive that gets it when it is complete */
	bool matched;			/* the program owns it: it is not in ep->match */
	bool rendezvous;		/* its bytes are still in the sender */
	bool has_imm;
	uint64_t imm;
	int error;
	size_t len;
	size_t have;
	size_t kept;			/* its share of ep->unexpected_bytes */
	struct line_rts rts;
	struct list link;		/* while matched: in p->matched or ep->orphans */
	uint8_t *data;
	uint8_t small[LINE_BYTES];
};

/* ---- exported memory ---- */

/* A buffer of sci_buf_alloc() or sci_buf_register(). */
struct msg_buf {
	struct list link;
	struct sci_lseg *seg;
	uint8_t *addr;
	size_t len;
	unsigned int count;		/* registrations; 0: allocated */
	bool shared;			/* another endpoint's, which owns seg */
	struct sci_lseg *net_seg;	/* a segment of the net for the same memory; or NULL */
};

/* An imported segment of a peer, for stores and loads. */
struct msg_import {
	struct list link;
	struct sci_rseg *seg;
	uint8_t *addr;
	uint64_t size;
	uint32_t id;
	uint32_t errors;		/* of the link, when the segment still existed */
	unsigned int pointers;		/* pointers into it that the program has */
};

/* ---- calls to other nodes: call.c ---- */

enum msg_call_kind { CALL_SEGMENT, CALL_INBOX, CALL_HELLO };

struct msg_call {
	struct list link;		/* peer->calls, or ep->refusals */
	struct list waiting;		/* callers.waiting, until a thread takes it */
	struct sci_ep *ep;
	struct sci_peer *peer;		/* NULL: a refusal */
	struct sci_fabric *fabric;
	enum msg_call_kind kind;
	struct sci_addr to;
	uint32_t id;			/* of the segment */
	sci_event_fn event;
	struct msg_hello hello;
	/* members that the thread writes before it sets @done */
	struct sci_rseg *seg;
	struct sci_rintr *bell;
	struct sci_rintr *port;		/* of a HELLO */
	int ret;
	uint64_t ms;			/* duration, in ms */
	_Atomic bool done;
	/* progress has seen @done: the waiting requests may take the result */
	bool answered;
};

static inline bool call_is_done(const struct msg_call *c)
{
	return atomic_load_explicit(&c->done, memory_order_acquire);
}

/* The threads that make calls. */
struct msg_callers {
	pthread_mutex_t lock;
	pthread_cond_t ended;		/* signalled when a thread ends */
	unsigned int threads;
	struct list waiting;
};

/* ---- connection attempts: dial.c ---- */

struct msg_dial {
	struct list link;		/* ep->dials */
	struct sci_ep *ep;
	struct sci_addr addr;
	struct sci_peer *p;		/* a reference: p->dialers counts this dial */
	/* frees or keeps the dial, which has ended; @p is NULL if d->ret is an error */
	void (*done)(struct msg_dial *d, struct sci_peer *p);
	struct sci_req *req;		/* sci_iconnect(): for done() */
	bool open;			/* sci_peer_open(): the program already has @p */
	bool asking;			/* a HELLO to @p is under way */
	uint64_t again;			/* when to send the next HELLO, in ms */
	uint64_t until;			/* when to give up with -ETIME, in ms */
	int timeout;
	uint32_t pause;			/* current interval, in ms */
	int ret;			/* -EAGAIN while the dial goes on */
};

/* ---- handlers ---- */

struct msg_handler {
	sci_handler_fn fn;
	void *arg;
};

_Static_assert(MSG_HANDLERS == SCI_CONTEXT_MAX + 1 &&
	       MSG_HANDLERS + SCI_HANDLERS == MSG_UNTAGGED, "contexts");

/* Return whether a message with this context is for a handler. */
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

/* Events of the fabric, which its thread records. */
enum {
	PEER_LEFT	= 1 << 0,	/* the peer has disconnected from our inbox */
	PEER_LOST	= 1 << 1,	/* the peer has died */
	PEER_GONE	= 1 << 2,	/* the peer's inbox is gone */
	PEER_CUT	= 1 << 3,	/* ... because the peer removed it */
	PEER_CAME	= 1 << 4,	/* the peer has imported our inbox */
	PEER_FREED	= 1 << 5,	/* a segment that we have imported is gone */
};

struct sci_peer {
	struct list link;		/* ep->peers, ->down, ->ended, ->former */
	struct list hot;		/* ep->hot: polled */
	struct list busy;		/* ep->busy: has something to send */
	struct list fresh;		/* ep->fresh: to be accepted */
	struct list dirty;		/* ep->dirty: has unconfirmed stores */
	struct list closing;		/* ep->closing: sci_peer_close() */
	uint64_t close_ms;		/* end of the linger time */
	struct hash_node by_addr;	/* ep->by_addr */
	struct sci_ep *ep;
	void *data;
	struct sci_addr addr;
	uint64_t nonce;			/* number of the peer's endpoint; 0: not known yet */
	uint32_t their_inbox;		/* id of the inbox that the peer made for us */
	enum msg_peer_state state;
	int error;			/* why it is DOWN */
	_Atomic unsigned int events;
	bool known;			/* the program has a pointer to the peer */
	bool leaving;			/* ... and is giving it up */
	bool asked;			/* our HELLO has been sent */
	bool sums;			/* the peer sends checksums */
	bool lossy;			/* stores to the peer may be lost */
	bool careful;			/* tx_put() needs tx_put_careful() */
	bool stale;			/* caches are not coherent: peer_refresh() before loads */
	bool may_read;			/* imports read as fast as they write */
	bool imported;			/* the peer has imported our inbox */
	bool incoming;			/* on import, the peer goes to ep->fresh */
	bool fence;			/* full barrier between a store and the load of *sleeps */
	bool waiting_attach;
	bool attach_failed;
	bool attach_asked;		/* the peer has asked for an eager ring */
	bool announced;			/* we have announced a sleep to the peer */
	bool status_dirty;
	bool resend;			/* a store to the peer was lost: repeat all */
	bool draining;			/* closing soon: no limit for unexpected messages */
	uint32_t bell_rung;		/* the last sleep for which we rang */
	uint32_t expects;		/* answers that may arrive on ctl_rx */
	uint32_t idle;			/* polls without a new line */
	uint32_t stayed;		/* ... that left a message in the ring */
	size_t wanted;			/* receives and probes that name this peer */
	struct list calls;		/* struct msg_call */
	int hello_ret;			/* result of the last HELLO */
	uint64_t hello_ms;		/* duration of the last HELLO, in ms */
	uint64_t import_ms;		/* no import before this time, in ms */
	unsigned int dialers;		/* references by struct msg_dial */
	unsigned int unwatched;		/* detached requests */
	unsigned int transfers;		/* ... of these, one-sided transfers */
	int transfer_error;		/* first error of these since sci_flush() */
	unsigned int answers;		/* outstanding, to atomics and copies */
	uint64_t gone_ms;		/* when its inbox went away, in ms */
	struct sci_req *came, *went;	/* preallocated events, not queued yet */

	/* sending */
	struct msg_tx data_tx, ctl_tx;
	struct msg_blocks blocks_tx[MSG_RINGS];
	int xfer_error;			/* why the peer has no transfer ring for us */
	struct msg_status *status;	/* credits from the peer: line 0 of our inbox */
	struct list sendq;
	struct list ctlq;		/* struct msg_ctl that wait for room */
	struct list sending;		/* sends after their RTS, and one-sided transfers */
	uint64_t chained;		/* bytes sent as chains */
	uint32_t heard;			/* data_rx.pos at our last message in blocks */

	/* receiving */
	struct msg_rx data_rx, ctl_rx;
	struct msg_status told;		/* the last status that the peer got */
	struct msg_status now;		/* the current status, for the next line 0 */
	volatile struct msg_line *tell;	/* line 0 of the peer's inbox */
	struct msg_blocks_rx blocks_rx[MSG_RINGS];
	bool has_imm;			/* the message that is being received has an immediate */
	uint64_t imm;
	int chain_error;
	struct list receiving;		/* receives that sent a CTS or import a buffer */
	unsigned int importing;		/* ... the number that import a buffer */
	struct list matched;		/* struct sci_msg that the program has */
	struct sci_req *chain_req;	/* an incomplete message goes to this receive */
	struct sci_msg *chain_msg;	/* ... or this message */
	size_t chain_left;		/* ... with so many bytes missing */

	/* ep->fabric or ep->net */
	struct sci_fabric *fabric;
	uint32_t adapter;		/* adapter number of @fabric */
	const struct sci_stream_ops *stream;	/* NULL: imports are memory */
	struct sci_lseg *inbox;
	struct msg_inbox *inbox_map;
	struct sci_rseg *outbox;
	struct msg_inbox *outbox_map;
	struct sci_rintr *bell;		/* the peer's; NULL on the net */
	struct list imports;
	struct list maps;		/* gone imports with pointers of the program */
};

/* Return whether the peer has sent nothing since our last message in blocks: we stream. */
static inline bool peer_streams(const struct sci_peer *p)
{
	return p->heard == p->data_rx.pos;
}

/* Polls that leave a message without a receive in the ring before it is copied. */
#define STAY_LOOKS	64u

/* A control line that waits for room. */
struct msg_ctl {
	struct list link;
	struct msg_typed line;
};

/* ---- endpoints ---- */

/* The retransmission thread: keeper.c */
struct msg_keeper {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool runs;
	bool stop;
	bool awake;			/* written with k->lock and ep->lock held */
	uint32_t turns;			/* ep->turns at the last tick */
	unsigned int calm;		/* ticks without a dirty peer */
};

/*
 * The calls from a connection up to the protocols: life.c. The endpoint is locked, and none
 * of these functions blocks.
 */
struct msg_upper {
	int (*created)(struct sci_peer *p);	/* 0, or -ENOMEM: there is no peer */
	void (*freed)(struct sci_peer *p);	/* the last call */
	int (*poll)(struct sci_peer *p);	/* take lines off the rings; return their number */
	void (*came)(struct sci_peer *p);	/* one side has imported the other's inbox */
	void (*ended)(struct sci_peer *p, int error);	/* the peer is DOWN */
	bool (*holds)(struct sci_peer *p);	/* the program may still receive its messages */
	void (*dropped)(struct sci_peer *p);	/* the program has given the peer up */
};

#define EP_NAME_MAX	15u		/* the limit for names of threads */

/* The endpoint's threads get its name, or else a name for their role. */
#define ep_thread_name(ep, role)	((ep)->name[0] ? (ep)->name : (role))

/* Attempts at a store before the caller gives up for now. */
#define STORE_TRIES	64u

struct sci_ep {
	struct msg_lock lock;
	const struct sci_fabric_ops *ops;
	struct sci_link_status *link;
	bool lossy;			/* remote stores may be lost: check.c */
	bool crc;
	bool may_read;			/* loads from imports are as fast as stores */
	bool register_copies;		/* see SCI_TRAIT_REGISTER_COPIES */
	bool peer_events;		/* see SCI_EP_PEER_EVENTS */
	bool wake_barrier;
	bool retry;			/* something waits that no doorbell will report */
	struct list hot;
	struct list busy;
	struct list dirty;
	unsigned int n_hot;
	unsigned int n_gone;		/* peers that are closing or whose inbox is gone */
	size_t wanted;			/* receives and probes for any peer */
	struct sci_match match;
	uint32_t turns;			/* progress calls, modulo 2^32 */
	_Atomic uint32_t attention;	/* set by the fabric's thread: attend() has work */
	uint32_t errors;		/* of the link, when no store was unconfirmed */
	uint64_t unexpected_bytes;
	uint64_t params[SCI_PARAMS];
	struct sci_ep_stats stats;

	struct sci_req *pool;
	struct msg_slab *slabs;
	struct sci_req **ids;		/* requests of rendezvous, by id */
	uint32_t n_ids;
	uint32_t free_id;
	uint32_t next_segment;		/* id of the next segment, minus MSG_NUMBERS */

	struct sci_fabric *fabric;
	struct sci_fabric *net;		/* fabric for peers beyond ep->fabric; or NULL */
	struct sci_lintr *net_port;
	_Atomic uint32_t net_news;	/* set by the net's thread: something has arrived */
	unsigned int net_looks;		/* polls of the net left; 0: its thread polls */
	struct sci_addr addr;
	uint32_t adapter;		/* of the fabric */
	char name[EP_NAME_MAX + 1];	/* name from the program */
	uint64_t nonce;
	uint32_t fork_gen;
	const struct msg_upper *up;
	struct list peers;		/* CONNECTING or UP */
	struct list down;		/* DOWN, to be released */
	struct list ended;		/* ... released: sci_peer_gone() has not returned them */
	struct list former;		/* ... sci_peer_gone() has returned them */
	struct list fresh;
	struct list closing;
	struct list dials;
	struct hash by_addr;		/* all peers */
	struct list bufs;
	struct list refusals;		/* calls: HELLOs that refuse a connection */
	unsigned int n_refusals;
	struct msg_callers callers;
	struct list orphans;		/* matched messages whose peer has been freed */
	struct list completed;		/* the completion queue */
	bool cooled;			/* some peers are parked: not polled, they ring */

	/* wake.c, wait.c */
	struct list open;		/* link in the list of all endpoints, for fork() */
	struct sci_lintr *bell;
	struct sci_lintr *port;		/* HELLOs */
	int bell_fd;
	int wake_fd;
	int user_fd;			/* epoll descriptor for the program; -1: none yet */
	int timer_fd;			/* part of user_fd, for what is due without a doorbell */
	bool timer_set;
	bool armed;			/* user_fd must become readable at the next completion */
	unsigned int completions;	/* completed requests, modulo 2^32 */
	unsigned int waiters;		/* threads in sleep_beside() */
	unsigned int crowded;		/* yields until the CPU counts as free; 0: it is free */
	bool sleeping;			/* a thread sleeps in poll() */
	bool woken;			/* ... and has been woken */
	pthread_mutex_t sleep_lock;
	pthread_cond_t sleep_cond;

	struct msg_keeper keeper;
	struct msg_handler handlers[SCI_HANDLERS];
};

/* Refresh memory that the peer stores to, before a load, if caches are not coherent. */
static inline void peer_refresh(const struct sci_peer *p, const volatile void *addr,
				size_t len)
{
	if (p->stale)
		sci_link_refresh(p->ep->link, addr, len);
}

/* Return whether the next line of @rx seems to be there. A short look at one word. */
static inline bool peer_line_peek(const struct sci_peer *p, const struct msg_rx *rx)
{
	const volatile struct msg_line *slot = &rx->slots[rx->slot];

	peer_refresh(p, slot, sizeof(*slot));
	return line_peek(slot, rx->id);
}

/* Return the number of sleeps that the peer has announced. */
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

/* blocks.c */
uint32_t ring_size(uint32_t want);
int ring_make(struct sci_peer *p, enum msg_ring which, uint32_t size);
int ring_import(struct sci_peer *p, const struct line_attached *a);
void rings_free(struct sci_peer *p);

/* check.c */
void mark_dirty(struct sci_peer *p);
bool check_writes(struct sci_ep *ep);
void watch_writes(struct sci_ep *ep);

/* keeper.c */
int keeper_start(struct sci_ep *ep);
void keeper_stop(struct sci_ep *ep);
void keeper_wake(struct sci_ep *ep);

/* vector.c */

/* Copy memory to memory. The copy engine knows where memcpy() is slow. */
static inline void msg_copy(void *dst, const void *src, size_t len)
{
	sci_pio_write(dst, src, len, SCI_PIO_MAP_CACHED);
}

bool msg_iov_good_many(const struct iovec *iov, size_t n);
size_t msg_iov_len(const struct iovec *iov, size_t n);

/* Return whether no piece is without memory, and the total length does not overflow. */
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

/* request.c */
void slabs_free(struct sci_ep *ep);
struct sci_req *req_new(struct sci_ep *ep, enum msg_kind kind);
void req_init(struct sci_req *req, struct sci_ep *ep, enum msg_kind kind);
int req_iov_many(struct sci_req *req, const struct iovec *iov, size_t n);
void req_free(struct sci_req *req);
void req_done(struct sci_req *req, int error);
void msg_finish(struct sci_req *req, int error);
int req_id_get(struct sci_req *req);
void req_id_put(struct sci_req *req);
struct sci_req *req_by_id(struct sci_peer *p, uint32_t id, enum msg_kind kind);

/* life.c */
extern const struct msg_upper msg_protocols __attribute__((visibility("hidden")));

/* completion.c */
void completion_queue(struct sci_req *req);
void completions_forget(const struct sci_peer *p);
int peer_events_init(struct sci_peer *p);
void peer_events_fini(struct sci_peer *p);
void peer_came(struct sci_peer *p);
void peer_went(struct sci_peer *p, int error);

/* push.c */
int send_push(struct sci_peer *p);

/* send.c */
int send_start(struct sci_req *req);
void send_ctl(struct sci_peer *p, const struct msg_typed *line);

/*
 * Return the counter of the receives and probes that wait for messages of @p, or of any
 * peer if @p is NULL. NULL for a service context: its receives are always posted, and wait
 * for no message in particular.
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

/* handler.c */
void handler_run(struct sci_peer *p, uint32_t context, uint64_t tag,
		 const void *data, size_t len, int error);
struct sci_msg *handler_message(struct sci_peer *p, uint32_t context,
				uint64_t tag, size_t len);
int handler_send(struct sci_peer *peer, unsigned int id, uint64_t tag,
		 const struct iovec *iov, size_t n);

/* rendezvous.c */
void rndv_accept(struct sci_req *req, struct sci_peer *p,
		 const struct line_rts *rts);
bool rndv_accept_later(struct sci_peer *p);
int rndv_push(struct sci_req *req);
int rndv_ctl(struct sci_peer *p, const struct msg_typed *line);
int rndv_attach(struct sci_peer *p, const struct line_attach *want);

/* onesided.c */
int onesided_push(struct sci_req *req);
void onesided_answer(struct sci_peer *p, uint64_t id, int error, uint64_t before);
void onesided_copied(struct sci_peer *p, uint64_t id, int error, const void *data,
		     size_t len);

/* onesided_net.c */
int net_write(struct sci_req *req, struct msg_import *im);
int net_read(struct sci_req *req, struct msg_import *im);
void net_read_forget(struct sci_req *req);

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
void peer_busy(struct sci_peer *p);
void peer_heat(struct sci_peer *p);
void peer_expect_ctl(struct sci_peer *p);
void peer_doubt(struct sci_peer *p);
bool peer_is_gone(const struct sci_peer *p);
int peer_ask_inbox(struct sci_peer *p);
int peer_take_inbox(struct sci_peer *p, struct msg_call *c);
void peer_event_add(struct sci_peer *p, unsigned int event);
void peer_keep(struct sci_peer *p);
void peer_drop(struct sci_peer *p);

/* import.c */
void import_drop(struct sci_peer *p, struct msg_import *im);
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
bool hello_again(int error);
int hello_send(struct sci_peer *p);
int hello_poll(struct sci_ep *ep);
int calls_check(struct sci_peer *p);

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

/* buffer.c */
struct msg_buf *buf_find(struct sci_ep *ep, const void *addr, size_t len);
struct msg_buf *buf_by_segment(struct sci_ep *ep, uint32_t id);
void bufs_free(struct sci_ep *ep);

/* net.c */
int net_join(struct sci_ep *ep, const struct sci_fabric_place *at, const char *spec,
	     const char *peers);
int net_port_make(struct sci_ep *ep, uint32_t id);
void net_port_end(struct sci_ep *ep);
void net_leave(struct sci_ep *ep);
struct sci_fabric *net_choose(struct sci_ep *ep, uint32_t node);
int net_store(struct sci_peer *p, struct sci_rseg *seg, volatile uint8_t *dst,
	      struct msg_cursor *at, size_t len);
int net_buf_add(struct sci_ep *ep, struct msg_buf *b);
void net_buf_end(struct sci_ep *ep, struct msg_buf *b);
void net_look(struct sci_ep *ep);
bool net_news_take(struct sci_ep *ep);
void net_sleep(struct sci_ep *ep);

/* progress.c */
int msg_progress(struct sci_ep *ep);
int msg_look(struct sci_ep *ep, int (*fn)(void *arg), void *arg, int timeout);
bool msg_announce_sleep(struct sci_ep *ep);
void msg_woken(struct sci_ep *ep);

/*
 * Return @error, or a replacement: sci_test() and sci_wait() return -EAGAIN and -ETIMEDOUT
 * while a request is still there. No request may complete with these codes, or a program
 * would use it after its end.
 */
static inline int last_error(int error)
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

/* host.c */
uint64_t msg_now_ms(void);
uint64_t msg_nonce(void);

/* wake.c */
void wake_fork_init(void);
int wake_init(struct sci_ep *ep);
void wake_fini(struct sci_ep *ep);
int wake_user_fd(struct sci_ep *ep);
void wake_drain(struct sci_ep *ep);
void wake_self(struct sci_ep *ep);
void wake_waiters(struct sci_ep *ep);
void wake_all(struct sci_ep *ep);

/* Note a change that a waiting thread may wait for. */
static inline void msg_changed(struct sci_ep *ep)
{
	/* writers hold the lock, but sleep_beside() reads without it */
	sci_store_relaxed(&ep->completions, ep->completions + 1);
	if (ep->sleeping || ep->waiters)
		wake_waiters(ep);
}

/* wait.c */

/**
 * msg_wait() - make progress until a condition holds
 * @fn: checks the condition and returns -EAGAIN until it holds
 * @timeout: in ms; negative: no limit
 *
 * Context: called with the lock held, and so is @fn.
 * Return: the result of @fn, or -ETIMEDOUT.
 */
int msg_wait(struct sci_ep *ep, int (*fn)(void *arg), void *arg, int timeout);

/* Like msg_wait(), but also call @fn every @ms milliseconds. */
int msg_wait_often(struct sci_ep *ep, int (*fn)(void *arg), void *arg,
		   int timeout, uint32_t ms);

/* connect_calls.c */
void connect_cancel(struct sci_req *req);

/* peer_calls.c */
void peers_flush(struct sci_ep *ep);
int closings_poll(struct sci_ep *ep);

/* param.c */
int params_init(struct sci_ep *ep);

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
 * Write the line @ahead lines after the next one. The caller has called tx_room() and
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
	maybe_ring(p);
}

/*
 * Return whether enough lines were read for a status line, which costs a packet or a
 * cache miss.
 */
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

/* Set the vector of @req to a copy of @iov. */
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

/* Copy bytes of a line to @at. Drop those beyond the end of @at. */
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
