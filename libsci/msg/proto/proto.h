/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* The functions of the protocols that the program's calls may use: "DOC: inside an endpoint". */
#ifndef LIBSCI_MSG_PROTO_H
#define LIBSCI_MSG_PROTO_H

#include <stdlib.h>

#include "libsci/msg/conn/conn.h"

#define IOV_INLINE	2u

/* ---- requests and messages ---- */

enum msg_kind { MSG_SEND, MSG_RECV, MSG_RECV_MANY, MSG_CONNECT, MSG_EVENT,
		MSG_WRITE, MSG_READ, MSG_ATOMIC, MSG_WRITE_EVENT };

/* One-sided: how the bytes lie, or what follows them. */
enum msg_form { FORM_PLAIN, FORM_SIGNAL, FORM_EVENT, FORM_STRIDED };

enum msg_state {
	MSG_QUEUED,			/* send: in peer->sendq */
	MSG_POSTED,			/* receive: in ep->match */
	MSG_CHAINED,			/* receive: its lines are arriving */
	MSG_IMPORTING,			/* receive: the sender's buffer is being imported */
	MSG_HANDSHAKE,			/* send: the RTS is sent; receive: the CTS is sent */
	MSG_MOVING,			/* send: blocks are being written; one-sided */
	MSG_MOVED,			/* sync send: its FIN has not arrived yet */
	MSG_ARRIVING,			/* send on the net: its bytes are not acknowledged yet */
	MSG_DIALING,			/* connect: in ep->dials */
	MSG_DONE,
};

/* The word of an atomic, or of the atomic that follows a write. */
struct msg_word {
	struct list link;		/* the link of the request */
	struct sci_rmw rmw;
	void *before;			/* where to store the value before the atomic; or NULL */
	uint64_t offset;		/* offset of the word that follows a write */
	uint32_t segment;
};

/*
 * The blocks of a strided transfer. Distances and offsets wrap, so a negative distance is a large
 * number. @first: offset of the first block in the segment; req->offset: of the lowest byte
 */
struct msg_strides {
	struct list link;		/* the link of the request */
	char *buf;			/* the first block in local memory */
	uint64_t buf_stride;
	uint64_t first;
	uint64_t stride;
	size_t len;			/* bytes of a block */
	uint64_t span;			/* bytes from the lowest to the end of the highest block */
};

struct sci_req {
	union {
		struct list link;		/* in a queue of its peer */
		struct sci_match_recv match;	/* posted */
		struct msg_word word;		/* one-sided */
		struct msg_strides strides;	/* FORM_STRIDED */
	};
	struct sci_ep *ep;
	struct iovec *iov;
	size_t iovs;
	struct iovec inline_iov[IOV_INLINE];
	struct msg_cursor at;
	size_t len;			/* length of the message or of the buffer */
	uint64_t tag;
	uint32_t context;
	uint32_t id;			/* index in ep->ids */
	enum msg_kind kind;
	union {
		uint64_t addr;		/* MSG_IMPORTING: address of the buffer in the sender */
		size_t min;		/* MSG_RECV_MANY: ends when fewer bytes are left */
		struct sci_stream_target *target;	/* receive with CTS_TARGET */
	};
	/* req_init() clears init_from and all later members */
	uint32_t init_from;
	union {
		uint32_t their_id;
		uint32_t parts;		/* MSG_RECV_MANY: parts that have not completed */
	};
	struct sci_peer *peer;		/* NULL: a receive from any peer, not matched yet */
	enum msg_state state;
	_Atomic bool done;
	bool tagged;
	bool sync;
	bool pooled;			/* req_free() returns it to the endpoint's pool */
	bool in_blocks;			/* an eager send, partly written */
	bool has_imm;
	bool detached;			/* the program has no pointer to the request */
	bool ours;			/* a message of this layer to a handler */
	bool wants_copy;		/* the program wants its buffer back */
	bool queued;			/* its completion goes to ep->completed */
	uint8_t form;			/* enum msg_form */
	bool by_owner;			/* the owner copies the bytes of a transfer */
	bool marked;			/* net: all bytes are sent, and @addr is the mark */
	bool lent;			/* net: the fabric may access the program's memory */
	uint8_t mode;			/* transfer mode of a rendezvous: CTS_*, MODE_RAILS */
	uint8_t rts_flags;
	int crc_error;
	uint32_t segment;		/* rendezvous, one-sided: id of the peer's segment */
	uint32_t rail_segment;		/* its id on the second rail, or 0 */
	uint64_t offset;
	union {
		uint64_t doubt_ms;	/* one-sided: time limit for missing memory, in ms */
		uint64_t asked_ns;	/* MSG_SEND: when the RTS was sent, in ns; 0: not measured */
	};
	size_t moved;			/* bytes already written or received */
	size_t want;			/* bytes that will be moved */
	void *data;			/* completion queue: the program's context */
	union {
		struct msg_dial *dial;		/* MSG_CONNECT */
		struct net_reads *reads;	/* MSG_READ on the net: those in flight */
		struct sci_req *whole;		/* MSG_RECV: the MSG_RECV_MANY it is part of */
		struct sci_req *part;		/* MSG_RECV_MANY: allocated for the next message */
	};
	void *copy;			/* its own copy of the bytes to send */
	uint64_t imm;
	struct sci_status status;
};

/* The request of a blocking receive, which is on the stack of its thread. */
struct msg_blocked {
	struct list link;		/* ep->blocked */
	struct sci_req req;
};

/* Number of requests that are allocated together. */
#define SLAB_REQS	32u

struct msg_slab {
	struct msg_slab *next;
	struct sci_req reqs[SLAB_REQS];
};

/* An unexpected message, or a message that the program has taken off the unexpected queue. */
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
	struct list link;		/* while matched: in p->matched or ep->peerless */
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
	bool shared;			/* another endpoint owns the memory and seg */
	struct sci_lseg *net_seg;	/* a segment of the net for the same memory; or NULL */
	struct sci_lseg *rail_seg;	/* a segment on the second rail for it; or NULL */
};

/* Return the id of a buffer on the second rail, or 0. */
static inline uint32_t buf_rail(struct sci_ep *ep, const struct msg_buf *b)
{
	return b->rail_seg ? ep->rail->ops->lseg.id(b->rail_seg) : 0;
}

/* ---- handlers ---- */

_Static_assert(MSG_HANDLERS == SCI_CONTEXT_MAX + 1 &&
	       MSG_HANDLERS + SCI_HANDLERS == MSG_UNTAGGED, "contexts");

static inline bool context_is_handler(uint32_t context)
{
	return context >= MSG_HANDLERS && context != MSG_UNTAGGED;
}

static inline unsigned int handler_id(uint32_t context)
{
	return context - MSG_HANDLERS;
}

/*
 * Copy the first @len bytes of a message for a handler. A peer can still change a message in its
 * ring, so a handler checks and uses only the copy.
 */
static inline void handled_copy(void *to, const void *data, size_t len)
{
	memcpy(to, data, len);
	sci_compiler_barrier();
}

/* Number of polls before a message without a posted receive is copied out of the ring. */
#define DEFER_POLLS	64u

/* request.c */
void slabs_free(struct sci_ep *ep);

/* Add a slab to the pool. Return 0 or -ENOMEM. */
int reqs_more(struct sci_ep *ep);
struct sci_req *req_new(struct sci_ep *ep, enum msg_kind kind);
void req_init(struct sci_req *req, struct sci_ep *ep, enum msg_kind kind);
int req_iov_many(struct sci_req *req, const struct iovec *iov, size_t n);
void req_done(struct sci_req *req, int error);
void msg_finish(struct sci_req *req, int error);
void reqs_forget(struct sci_peer *p);
int req_id_get(struct sci_req *req);
void req_id_put(struct sci_req *req);
struct sci_req *req_by_id(struct sci_peer *p, uint32_t id, enum msg_kind kind);

static inline void req_iov_drop(struct sci_req *req)
{
	if (req->iov != req->inline_iov)
		free(req->iov);
	req->iov = NULL;
	free(req->copy);
	req->copy = NULL;
}

static inline void req_free(struct sci_req *req)
{
	req_iov_drop(req);
	if (!req->pooled)
		return;
	req->link.next = (struct list *)req->ep->pool;
	req->ep->pool = req;
}

/* life.c */
extern const struct msg_upper msg_protocols __attribute__((visibility("hidden")));

/* completion.c */
void completion_queue(struct sci_req *req);
void completions_forget(struct sci_peer *p);
int peer_events_init(struct sci_peer *p);
void peer_events_fini(struct sci_peer *p);
void peer_came(struct sci_peer *p);
void peer_went(struct sci_peer *p, int error);

/* push.c */
int send_push(struct sci_peer *p);
bool transfers_arrive(struct sci_peer *p);

/* send.c */
int send_start(struct sci_req *req);
void post_typed(struct sci_peer *p, struct msg_tx *tx, const struct msg_typed *line,
		enum msg_line_type type);
void send_ctl(struct sci_peer *p, const struct msg_typed *line);

/*
 * Return the counter of the receives and probes that wait for messages of @p, or of any peer if @p
 * is NULL.
 */
static inline size_t *wanted_counter(struct sci_ep *ep, struct sci_peer *p)
{
	return p ? &p->wanted : &ep->wanted;
}

/*
 * Wake the sleeping threads after a receive was posted, or after an unexpected message was freed: a
 * message that stays in a ring may have its receive or its room now. No doorbell reports it again.
 */
static inline void held_back_wake(struct sci_ep *ep)
{
	if (!ep->held_back)
		return;
	ep->held_back = false;
	wake_all(ep);
}

/* receive.c */
int receive_poll(struct sci_peer *p);
int recv_start(struct sci_req *req);
void recv_message(struct sci_req *req, struct sci_msg *msg);
void msg_unexpected_free(struct sci_msg *msg);

/* many.c */
struct sci_req *recv_for(struct sci_peer *p, uint32_t context, uint64_t tag, size_t len);
void recv_withdraw(struct sci_req *req, int error);
void recv_many_start(struct sci_req *whole);

/* handler.c */
void handler_run(struct sci_peer *p, uint32_t context, uint64_t tag,
		 const void *data, size_t len, int error);
int handler_send(struct sci_peer *peer, unsigned int id, uint64_t tag,
		 const struct iovec *iov, size_t n);
void handler_answer(struct sci_peer *peer, unsigned int id, uint64_t tag,
		    const struct iovec *iov, size_t n);

/* Put a send or a one-sided transfer into the list of its peer for its new state. */
static inline void transfer_set(struct sci_req *req, enum msg_state state)
{
	struct sci_peer *p = req->peer;

	req->state = state;
	list_del(&req->link);
	list_add_tail(&req->link, state == MSG_ARRIVING ? &p->arriving :
				  state != MSG_MOVING ? &p->sending :
				  req->kind == MSG_SEND ? &p->moving : &p->onesided);
}

/* rendezvous.c */
void rndv_accept(struct sci_req *req, struct sci_peer *p,
		 const struct line_rts *rts);
bool rndv_accept_later(struct sci_peer *p);
int rndv_push(struct sci_req *req);
int rndv_arrive(struct sci_req *req);
int rndv_ctl(struct sci_peer *p, const struct msg_typed *line);
size_t rndv_block_size(const struct sci_req *req, enum msg_ring ring, size_t left);
void rndv_blocks_end(struct sci_req *req);

/* rails.c */

/* Mode of a send whose blocks use two rails. It is not on the wire: the CTS is CTS_BLOCKS. */
#define MODE_RAILS	0x80u

int rails_push(struct sci_req *req);
int rails_write(struct sci_req *req, size_t want);
void rail_taken(struct sci_peer *p, uint32_t end);

/* Fewer bytes use one rail: a store barrier on the other rail would take longer than its share. */
#define RAILS_MIN	8192u

/*
 * Return whether rails_write() moves the bytes of @req: the peer has exported the memory on both
 * rails, and there are many bytes, or lines do not use the first rail.
 */
static inline bool rails_reach(const struct sci_req *req, size_t want)
{
	const struct sci_peer *p = req->peer;

	return p->rail_node && req->rail_segment &&
	       (want >= RAILS_MIN || req->moved || p->line != &p->first);
}

/* rings.c */
int ring_attach(struct sci_peer *p, enum msg_ring which, uint32_t want);
int ring_attached(struct sci_peer *p, const struct line_attached *a);
int rings_line(struct sci_peer *p, const struct msg_typed *t);
bool ring_has_ended(struct sci_peer *p);
void xfer_return(struct sci_peer *p);

/* onesided.c */
int onesided_push(struct sci_req *req);
void onesided_answer(struct sci_peer *p, uint64_t id, int error, uint64_t before);
void onesided_copied(struct sci_peer *p, uint64_t tag, int error, const void *data,
		     size_t len);

/* strided.c */
bool stride_span(uint64_t stride, size_t len, size_t n, uint64_t *below, uint64_t *span);
size_t strided_piece(const struct sci_req *req, size_t at, struct iovec *local,
		     uint64_t *offset);
int strided_move(struct sci_req *req, struct msg_import *im);

/* onesided_loads.c */
int req_load(struct sci_req *req, struct msg_cursor *at, const volatile uint8_t *src,
	     size_t len);

/* onesided_net.c */
int net_write(struct sci_req *req, struct msg_import *im);
int net_read(struct sci_req *req, struct msg_import *im);
void net_take_back(struct sci_req *req);

/* handshake.c */
void handshake_begin(struct sci_req *req);
void handshake_end(struct sci_req *req);
bool handshake_takes_longer(const struct sci_req *req);
void handshake_leave_out(struct sci_peer *p);

/* rendezvous_net.c */
bool target_offer(struct sci_req *req, struct line_cts *cts);
int target_fill(struct sci_req *req);
int target_arrived(struct sci_req *req);
void target_end(struct sci_req *req);

/* atomic.c */
size_t atomic_size(const struct sci_rmw *a);
bool atomic_valid(const struct sci_rmw *a);
uint64_t atomic_apply(void *word, const struct sci_rmw *a);
void atomic_result(void *before, const struct sci_rmw *a, uint64_t old);
int atomic_ask(struct sci_peer *p, uint32_t id, uint32_t segment, uint64_t offset,
	       const struct sci_rmw *a);
void atomics_init(struct sci_ep *ep);

/* write_event.c */
int event_send(struct sci_req *req);
void events_return(struct sci_peer *p);
void events_init(struct sci_ep *ep);

/* copies.c */
int copy_ask(struct sci_req *req);
void copy_take(struct sci_req *req, const void *data, size_t len);
void copies_init(struct sci_ep *ep);

/* buffer.c */
struct msg_buf *buf_find(struct sci_ep *ep, const void *addr, size_t len);
struct msg_buf *buf_by_segment(struct sci_ep *ep, uint32_t id);
void bufs_free(struct sci_ep *ep);

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

#endif
