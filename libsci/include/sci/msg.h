/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: messages
 *
 * Messages between endpoints of a fabric: reliable, in order per pair (tagged
 * ones: per pair and context), of any length. How one travels depends on its
 * length and on where its buffers lie:
 *
 *	short		up to 62 bytes: one 64-byte line, one store (DECK/SCI's
 *			protocol 1, SCI-MPICH's short protocol)
 *	eager		a ring in the receiver's memory, then a line that
 *			announces it (DECK's protocol 2, SCI-MPICH III.B.2)
 *	rendezvous	a handshake, then blocks through a transfer buffer that
 *			the receiver empties while the sender fills it
 *			(SCI-MPICH III.B.3)
 *	zero-copy	a handshake, then stores straight into the receiver's
 *			buffer, which lies in exported memory (DECK's
 *			protocol 3)
 *
 * Rules for all calls:
 *  - They return 0 (or what they say) or a negative errno value; errno itself
 *    means nothing after a call. -EINVAL: an argument is NULL or out of range.
 *  - Every endpoint may be used by any number of threads, unless it was opened
 *    with SCI_EP_SINGLE_THREAD: then by one at a time. Nothing here may be
 *    called from a signal handler.
 *  - Lengths and offsets are bytes, times milliseconds unless a name says
 *    otherwise; a timeout of -1 waits for ever, 0 not at all.
 *  - Things move while a thread is inside a call of the endpoint: a process
 *    that never calls does not receive, nor does it accept connections.
 *    Messages that it has sent arrive all the same: where packets can get lost, a
 *    thread of the library's looks after that (SCI_PARAM_CHECK_MS).
 *  - A buffer belongs to the library from the start of a non-blocking call
 *    until the request has completed.
 *  - When a peer dies, every request that depends on it completes with
 *    -ECONNRESET within a second, after the messages that had arrived whole
 *    have been delivered; so do later ones. Receives from any source wait on.
 *  - A child after fork() has no endpoints: calls answer -ENOTCONN there.
 */
#ifndef SCI_MSG_H
#define SCI_MSG_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SCI_SHORT_MAX		62u		/* bytes in a short message */
#define SCI_TAGGED_SHORT_MAX	48u		/* ... beside a tag */
#define SCI_IMM_SHORT_MAX	40u		/* ... and beside an immediate */
#define SCI_EP_ID_MAX		0xffffffu	/* ids are 1 .. this */
#define SCI_CONTEXT_MAX		0xffffff7fu	/* contexts are 0 .. this */
/*
 * Contexts from here on are for services: receives of any peer's requests, which are
 * always posted.  They do not lift SCI_PARAM_UNEXPECTED_MAX.
 */
#define SCI_CONTEXT_SERVICE	0xffffff00u
#define SCI_IOV_MAX		1024u		/* pieces in one vector */
#define SCI_UNWATCHED_MAX	2048u		/* sends nobody waits for, to a peer */

struct sci_ep;				/* an endpoint */
struct sci_peer;			/* a connection of one, to another */
struct sci_req;				/* a non-blocking call under way */
struct sci_msg;				/* a message that has been matched */

/* Where an endpoint is: a node of the fabric, and the endpoint's number. */
struct sci_addr {
	uint32_t node;
	uint32_t id;
};

/* ---- endpoints ---- */

enum sci_ep_flags {
	SCI_EP_SINGLE_THREAD	= 1 << 0, /* one thread at a time: no locks, but
					   * where packets can get lost */
	SCI_EP_CRC		= 1 << 1, /* check sums over eager messages and
					   * blocks; not what is zero-copy */
	SCI_EP_PEER_EVENTS	= 1 << 2  /* sci_completions() also names peers
					   * that have come, and gone */
};

/**
 * enum sci_param - what can be tuned
 * @SCI_PARAM_LINES_MAX: longest message that goes as several lines of the small
 *	ring although the eager ring is attached
 * @SCI_PARAM_EAGER_MAX: longest eager message; longer ones are rendezvous
 * @SCI_PARAM_EAGER_BLOCK: bytes of a block of an eager message that the receiver
 *	waits for, or an eighth of the message if that is more: it copies one block
 *	while the sender fills the next
 * @SCI_PARAM_EAGER_RING: bytes of the eager ring that a busy pair attaches
 * @SCI_PARAM_BLOCK: bytes of a rendezvous block, and the most of an eager one, which
 *	is as large in streams, while the receiver sends nothing
 * @SCI_PARAM_XFER_RING: bytes of the transfer ring, which a pair attaches for
 *	its first rendezvous in blocks
 * @SCI_PARAM_ZCOPY_MIN: shortest zero-copy message into exported memory
 * @SCI_PARAM_SINGLE_COPY_MIN: shortest message that the receiver reads out of
 *	the sender's private memory, on fabrics of one host that can;
 *	UINT64_MAX: none
 * @SCI_PARAM_ATTACH_AFTER: bytes of messages longer than short that a pair
 *	sends through its small ring before it attaches the eager ring
 * @SCI_PARAM_UNEXPECTED_MAX: bytes of messages nobody has asked for that an
 *	endpoint keeps; then a sender is held back until a receive is posted, or a
 *	probe waits, for messages of this sender or of any, whatever their tag and
 *	context: but for SCI_CONTEXT_SERVICE and later ones
 * @SCI_PARAM_SPIN_US: microseconds of polling before a wait sleeps
 * @SCI_PARAM_CHECK_MS: where packets can get lost: milliseconds without a call
 *	of the endpoint's after which a thread of the library's makes sure that
 *	what was sent has arrived
 *
 * Ring sizes count for pairs that attach after the change. A value out of
 * range is cut to what is possible; sci_ep_get() tells.
 */
enum sci_param {
	SCI_PARAM_LINES_MAX,
	SCI_PARAM_EAGER_MAX,
	SCI_PARAM_EAGER_BLOCK,
	SCI_PARAM_EAGER_RING,
	SCI_PARAM_BLOCK,
	SCI_PARAM_XFER_RING,
	SCI_PARAM_ZCOPY_MIN,
	SCI_PARAM_SINGLE_COPY_MIN,
	SCI_PARAM_ATTACH_AFTER,
	SCI_PARAM_UNEXPECTED_MAX,
	SCI_PARAM_SPIN_US,
	SCI_PARAM_CHECK_MS,
	SCI_PARAMS
};

/**
 * sci_param_name() - how a parameter is called in tables and the environment
 *
 * "eager_max" is set by SCI_MSG_EAGER_MAX, and so on. NULL: no such parameter.
 */
const char *sci_param_name(enum sci_param param);

/**
 * struct sci_ep_attr - where and how to open an endpoint
 * @size: to be set to sizeof(struct sci_ep_attr) by the caller; members that are
 *	added later come last, and 0 stands for what was before there were any
 * @fabric: as SCI_FABRIC, "shm:NAME" or "dev" for example; NULL: what that says
 * @name: the program's name for the endpoint, of which 15 bytes are kept: threads of
 *	the library that work for it bear it; NULL: none
 * @node: the node of the fabric; 0: what SCI_NODE says
 * @adapter: number of the adapter, among those of the fabric; 0: the first
 * @id: its number on this node; 0: the library picks a free one
 * @flags: enum sci_ep_flags
 * @net: a network for peers that the fabric does not reach, as SCI_NET, see
 *	sci_net(7); "": none; NULL: what that says
 * @net_peers: where the processes of other nodes listen, as SCI_NET_PEERS; NULL: what
 *	that says
 */
struct sci_ep_attr {
	size_t size;
	const char *fabric;
	const char *name;
	uint32_t node;
	uint32_t adapter;
	uint32_t id;
	uint32_t flags;
	const char *net;
	const char *net_peers;
};

/**
 * sci_ep_open_attr() - open an endpoint with attributes
 *
 * A process may have endpoints on several nodes, fabrics and clusters. The parameters
 * are those of sci_ep_open(), and so are errors. -E2BIG: @attr has members that this
 * library does not know, and they are not 0; -ENODEV: also, there is no such adapter.
 */
int sci_ep_open_attr(struct sci_ep **ep, const struct sci_ep_attr *attr);

/**
 * sci_ep_open() - open an endpoint
 * @ep: the endpoint
 * @id: its number on this node; 0: the library picks a free one
 * @flags: enum sci_ep_flags
 *
 * Joins the fabric that SCI_FABRIC names, as the node SCI_NODE says. The
 * parameters come from the library's table for that fabric, then from the file
 * that SCI_MSG_TABLE names, then from SCI_MSG_* in the environment.
 *
 * -EINVAL: also for what the environment asks; -EEXIST: the number is taken;
 * -ENODEV: no such fabric; -ENOMEM, -ENOSPC, -EMFILE: out of resources.
 */
int sci_ep_open(struct sci_ep **ep, uint32_t id, unsigned int flags);

/**
 * sci_ep_close() - close an endpoint
 *
 * Says good-bye to its peers; messages of completed sends still reach them.
 * Requests not completed are gone, as are buffers of sci_buf_alloc(). No other
 * thread may be in a call of the endpoint.
 */
int sci_ep_close(struct sci_ep *ep);

/* Where @ep is. */
int sci_ep_addr(struct sci_ep *ep, struct sci_addr *addr);

/* The program's name for it, "" where it has none; NULL for a NULL @ep. */
const char *sci_ep_name(struct sci_ep *ep);

/* Name of the fabric below it ("shm"): a static string, NULL for a NULL @ep. */
const char *sci_ep_fabric(struct sci_ep *ep);

/**
 * enum sci_traits - how the fabric of an endpoint behaves
 * @SCI_TRAIT_FAST_READS: sci_read() is as fast as sci_write(). Elsewhere the
 *	processor waits for each packet of a read.
 * @SCI_TRAIT_REGISTER_COPIES: sci_buf_register() gives the memory other pages and
 *	copies its bytes. A store of another thread meanwhile may be lost.
 * @SCI_TRAIT_SHARED_MEMORY: exported memory of peers is memory of this machine,
 *	coherent for loads, stores and atomic instructions of all CPUs:
 *	sci_peer_map() gives pointers to it.
 * @SCI_TRAIT_LOSSY: packets can get lost. The library repeats them, which takes
 *	time and a thread (SCI_PARAM_CHECK_MS).
 */
enum sci_traits {
	SCI_TRAIT_FAST_READS		= 1 << 0,
	SCI_TRAIT_REGISTER_COPIES	= 1 << 1,
	SCI_TRAIT_SHARED_MEMORY		= 1 << 2,
	SCI_TRAIT_LOSSY			= 1 << 3
};

/* The traits of @ep's fabric, enum sci_traits; 0 for a NULL @ep. */
unsigned int sci_ep_traits(struct sci_ep *ep);

int sci_ep_set(struct sci_ep *ep, enum sci_param param, uint64_t value);
int sci_ep_get(struct sci_ep *ep, enum sci_param param, uint64_t *value);

/**
 * struct sci_ep_stats - what an endpoint has done
 * @size: to be set to sizeof(struct sci_ep_stats) by the caller
 *
 * Counted since it was opened; memory as of now.
 */
struct sci_ep_stats {
	size_t size;
	uint64_t peers;			/* connected now */
	uint64_t peer_bytes;		/* their memory here, rings included */
	uint64_t sent_short;		/* messages, by protocol */
	uint64_t sent_lines;		/* several lines of the small ring */
	uint64_t sent_eager;
	uint64_t sent_rendezvous;
	uint64_t sent_zcopy;
	uint64_t sent_single_copy;
	uint64_t received;		/* messages handed out */
	uint64_t unexpected;		/* kept now, bytes of them */
	uint64_t unexpected_bytes;
	uint64_t resent_lines;		/* after a lost packet */
	uint64_t resent_blocks;
	uint64_t crc_errors;
	uint64_t bells;			/* interrupts raised at sleeping peers */
	uint64_t sleeps;		/* waits that did not end in polling */
	uint64_t checks;		/* store barriers for lines, see check_ms */
	uint64_t writes;		/* one-sided, that have arrived */
	uint64_t reads;
	uint64_t handled;		/* messages to handlers */
	uint64_t unhandled;		/* ... that nobody has set: dropped */
	uint64_t atomics;		/* asked for, that have been done */
};

int sci_ep_stats(struct sci_ep *ep, struct sci_ep_stats *stats);

/* ---- connections ---- */

/**
 * sci_connect() - connect to an endpoint
 * @addr: where it is; may be @ep itself
 * @timeout: how long to wait for it to open and to answer
 * @peer: the connection, until sci_disconnect()
 *
 * A second connect to the same endpoint returns the same connection, as does
 * one to an endpoint that has connected to this one; sci_disconnect() ends it
 * all the same. An endpoint answers while its process is in a call.
 *
 * -ETIMEDOUT; -EHOSTUNREACH: no such node in this fabric; -EACCES; -ENETDOWN;
 * -ECONNREFUSED: the peer has no room; -ENOMEM, -ENOSPC, -EMFILE.
 */
int sci_connect(struct sci_ep *ep, const struct sci_addr *addr, int timeout,
		struct sci_peer **peer);

/**
 * sci_iconnect() - connect, non-blocking
 * @timeout: after which the request completes with -ETIME (-ETIMEDOUT is what
 *	a wait for it says)
 *
 * The request's status names the connection. Cancelling gives it up. Errors are
 * sci_connect()'s, when the request completes; -ENOMEM, -ENOSPC, -EMFILE also
 * at once.
 */
int sci_iconnect(struct sci_ep *ep, const struct sci_addr *addr, int timeout,
		 struct sci_req **req);

/**
 * sci_peer_open() - a connection that need not be there yet
 * @timeout: after which it is given up if there is no such endpoint, or no
 *	more; -1: never. An endpoint that does not answer is waited for.
 *
 * The connection that there is, or a new one, which is made while the endpoint
 * makes progress. Transfers of all kinds may be asked for at once: they wait for it,
 * and complete with its error if it fails: those of sci_connect(), -ETIME.
 * -ENOMEM, -ENOSPC, -EMFILE.
 */
int sci_peer_open(struct sci_ep *ep, const struct sci_addr *addr, int timeout,
		  struct sci_peer **peer);

/**
 * sci_accept() - the next connection that another endpoint has made
 *
 * Not needed for messages to arrive: receives from any source name theirs. A
 * connection that has ended meanwhile appears only if messages of it are left.
 * Connections this side has asked for itself do not appear. -ETIMEDOUT.
 */
int sci_accept(struct sci_ep *ep, int timeout, struct sci_peer **peer);

/* The connection to @addr if there is one: -ENOENT. */
int sci_peer_find(struct sci_ep *ep, const struct sci_addr *addr,
		  struct sci_peer **peer);

/**
 * sci_disconnect() - end a connection, also a dead one, and free it
 *
 * What has been sent arrives. Requests on @peer complete with -ECANCELED, and
 * those of the other side with -ENOTCONN.
 *
 * When a peer dies or leaves, progress releases the memory and the descriptors
 * of its connection. @peer itself, less than 1 KiB, stays valid until this
 * call if the program has got it from a call or in a status.
 */
int sci_disconnect(struct sci_peer *peer);

/**
 * sci_peer_close() - end a connection, and do not wait for that
 *
 * As sci_disconnect(), but what has been sent arrives while the endpoint makes
 * progress, within two seconds if the peer takes it; the rest is lost. Requests complete when the
 * connection ends. @peer is not the program's any more; statuses name no peer instead.
 * A connect to the same endpoint meanwhile keeps the connection.
 */
int sci_peer_close(struct sci_peer *peer);

/**
 * sci_peer_gone() - find a peer that has died or left
 *
 * Names each such peer once, if the program knows it, when the messages that had
 * arrived from it have been received. So a server learns which peers to
 * sci_disconnect(). Makes no progress. -ENOENT: there is none.
 */
int sci_peer_gone(struct sci_ep *ep, struct sci_peer **peer);

/*
 * 0; -EINPROGRESS: it is not there yet, see sci_peer_open(); -ENOTCONN: it has
 * disconnected; -ECONNRESET: it has died; why it never was there.
 */
int sci_peer_state(struct sci_peer *peer);
int sci_peer_addr(struct sci_peer *peer, struct sci_addr *addr);
struct sci_ep *sci_peer_ep(struct sci_peer *peer);

/* A pointer of the program's own, kept with the connection; NULL at first. Atomic. */
void sci_peer_set_data(struct sci_peer *peer, void *data);
void *sci_peer_data(struct sci_peer *peer);

/* ---- requests ---- */

/**
 * struct sci_status - how a call has ended
 * @peer: whom it was with; of a receive: where the message came from; NULL
 *	where that has been disconnected, or there never was one
 * @tag, @context: the message's; 0 if it has none
 * @len: its length, also where the buffer was shorter
 * @error: 0 or -errno, as the call returns
 * @flags: enum sci_status_flags
 * @imm: what SCI_SEND_IMM has sent along
 *
 * Errors of messages: -EMSGSIZE: the buffer was too short, its part of the
 * message is in it; -ECONNRESET, -ENOTCONN, -ECANCELED; -EBADMSG: a check sum
 * is wrong; -ENOMEM; -ETIME: the peer's node does not answer; of a long message
 * also what the peer reports.  Never -EAGAIN or -ETIMEDOUT: a request that a call
 * answers these for has not ended.
 */
struct sci_status {
	struct sci_peer *peer;
	uint64_t tag;
	uint32_t context;
	int error;
	size_t len;
	uint64_t imm;
	uint32_t flags;
};

enum sci_status_flags {
	SCI_STATUS_IMM	= 1 << 0,	/* there is an immediate */
	SCI_STATUS_PEER_UP = 1 << 1,	/* no request: the peer has come */
	SCI_STATUS_PEER_DOWN = 1 << 2	/* ... or has gone; @error says why */
};

/* Flags of sends. */
enum sci_send_flags {
	SCI_SEND_SYNC	= 1 << 0,	/* completes when a receive has its bytes */
	SCI_SEND_TAGGED	= 1 << 1,	/* sci_isendm(): it has a tag */
	SCI_SEND_COPY	= 1 << 2,	/* ... the buffer is the caller's again
					 * when the call returns */
	SCI_SEND_IMM	= 1 << 3,	/* ... with an immediate */
	SCI_SEND_AT_ONCE = 1 << 4	/* ... no request for what has completed */
};

/**
 * sci_test() - has a request completed?
 * @req: gone, unless -EAGAIN is returned
 * @status: how it has ended; may be NULL
 *
 * Makes progress. -EAGAIN: not yet; else as status->error.
 */
int sci_test(struct sci_req *req, struct sci_status *status);

/**
 * sci_wait() - wait for a request
 *
 * As sci_test(), but waits up to @timeout: -ETIMEDOUT: not yet, @req lives on.
 */
int sci_wait(struct sci_req *req, int timeout, struct sci_status *status);

/**
 * sci_waitall() - wait for all of @reqs
 * @reqs: of one endpoint; they become NULL; those that are already are skipped
 * @status: @n of them, or NULL; those of skipped requests are not touched
 *
 * The first error of any, when all have completed; -ETIMEDOUT: none has been
 * touched.
 */
int sci_waitall(struct sci_req **reqs, size_t n, int timeout,
		struct sci_status *status);

/**
 * sci_waitany() - wait for one of @reqs
 * @index: which one completed; its entry is NULL then; @n: none did
 *
 * As sci_wait() for that one.  With *@index == @n: -ENOENT: all are NULL;
 * -ETIMEDOUT.
 */
int sci_waitany(struct sci_req **reqs, size_t n, int timeout, size_t *index,
		struct sci_status *status);

/**
 * sci_testany() - has one of @reqs completed?
 *
 * As sci_waitany(), but makes progress once and does not wait: -EAGAIN: none has.
 */
int sci_testany(struct sci_req **reqs, size_t n, size_t *index,
		struct sci_status *status);

/**
 * sci_testsome() - which of @reqs have completed?
 * @reqs: of one endpoint; those that have become NULL; NULLs are skipped
 * @indices: room for @n: which they were
 * @status: room for @n, in the order of @indices; has the errors
 *
 * How many. Makes progress once if none has. -EAGAIN: none; -ENOENT: all are NULL.
 */
int sci_testsome(struct sci_req **reqs, size_t n, size_t *indices,
		 struct sci_status *status);

/**
 * sci_cancel() - give up a request
 *
 * It still has to be tested or waited for, and completes with -ECANCELED.
 * -EBUSY: too late, its message is under way: it completes as if nothing had
 * been asked.
 */
int sci_cancel(struct sci_req *req);

/* ---- completions ---- */

/**
 * struct sci_completion - a request that has completed
 * @data: what sci_req_queue() was given
 * @status: how it has ended
 */
struct sci_completion {
	void *data;
	struct sci_status status;
};

/**
 * sci_req_queue() - have a request told of by its endpoint
 * @req: not to be tested or waited for any more; gone with its completion
 * @data: names it there
 *
 * For programs with many requests under way, which need not look at each. When
 * it completes, or if it has, it is put into the endpoint's queue, which has
 * room for all. It may be cancelled until its completion has been taken: a
 * program whose threads share the queue has to know. -EINVAL: is queued.
 */
int sci_req_queue(struct sci_req *req, void *data);

/**
 * sci_completions() - take completions, oldest first
 * @timeout: how long to wait for one if there is none
 * @done: room for @n
 * @n: not 0
 *
 * An endpoint that was opened with SCI_EP_PEER_EVENTS also has events of peers in its
 * queue, in the order in which they happened. SCI_STATUS_PEER_UP: a connection is there,
 * whichever side has asked for it. SCI_STATUS_PEER_DOWN: it has ended, or never
 * came about, and the error says why, as sci_peer_state() does: messages that had
 * arrived whole can still be received. data is sci_peer_data(). The program knows the
 * peer from then on, until sci_disconnect(), after which there is no event of it. A peer
 * that has come and gone before its event is taken may be left out.
 *
 * How many there were. -EAGAIN with a timeout of 0, else -ETIMEDOUT: none.
 */
int sci_completions(struct sci_ep *ep, int timeout, struct sci_completion *done,
		    unsigned int n);

/* ---- messages ---- */

/**
 * sci_send(), sci_tsend() - send, and wait until the buffer is free again
 * @tag, @context: what a receive names to get it
 *
 * Untagged messages and tagged ones are kept apart at the receiver.
 */
int sci_send(struct sci_peer *peer, const void *buf, size_t len);
int sci_tsend(struct sci_peer *peer, uint32_t context, uint64_t tag,
	      const void *buf, size_t len);

/**
 * sci_recv(), sci_trecv() - receive, waiting for a message
 * @peer: from whom; NULL: from anyone
 * @ignore: bits of @tag that do not matter; 0: all do
 * @size: of the buffer
 * @status: may be NULL
 */
int sci_recv(struct sci_ep *ep, struct sci_peer *peer, void *buf, size_t size,
	     struct sci_status *status);
int sci_trecv(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
	      uint64_t tag, uint64_t ignore, void *buf, size_t size,
	      struct sci_status *status);

/**
 * struct sci_try - a receive for sci_try_trecvs()
 * @buf, @size, @tag, @ignore: as in sci_trecv(); sci_try_recvs() has no tags
 * @status: of the message, when it has been received
 */
struct sci_try {
	void *buf;
	size_t size;
	uint64_t tag;
	uint64_t ignore;
	struct sci_status status;
};

/**
 * sci_try_recvs(), sci_try_trecvs() - receive what takes neither time nor memory
 * @peer: from whom; NULL: from whoever has sent something, all from the same one
 * @t: receives, in the order in which they get messages
 * @n: how many, at least 1
 *
 * Returns how many have got theirs, the first ones of @t; others may have to wait.
 * No message has been taken for the others, but -EBUSY may leave bytes in the buffer
 * of the next one: those of a message of which the rest had not come.  -EAGAIN: nothing has come; no progress is
 * made either.  -EBUSY: the next message is not for the first of @t, or longer than
 * its buffer, or not all here, or something else has to come first, a receive that is
 * posted or a message that is kept; or lines can get lost on this fabric: post it.
 */
int sci_try_recvs(struct sci_ep *ep, struct sci_peer *peer, struct sci_try *t,
		  int n);
int sci_try_trecvs(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
		   struct sci_try *t, int n);

/**
 * sci_try_send(), sci_try_tsend() - send, if that takes neither time nor memory
 * @imm: NULL, or a number of the program's that goes with the message
 *
 * As sci_send() and sci_tsend(): @buf is the caller's again, and the errors are
 * theirs.  -EAGAIN: it does not go whole and now: there is no room, or it is too long
 * for that, or in memory that @peer may read it from, or @peer is not connected.
 * Nothing has happened then, and no progress is made: sci_isendm() finds another way,
 * or says why there is none.
 */
int sci_try_send(struct sci_peer *peer, const void *buf, size_t len);
int sci_try_tsend(struct sci_peer *peer, uint32_t context, uint64_t tag,
		  const uint64_t *imm, const void *buf, size_t len);

/* As sci_send() to sci_trecv(), non-blocking. */
int sci_isend(struct sci_peer *peer, const void *buf, size_t len,
	      struct sci_req **req);
int sci_itsend(struct sci_peer *peer, uint32_t context, uint64_t tag,
	       const void *buf, size_t len, struct sci_req **req);
int sci_irecv(struct sci_ep *ep, struct sci_peer *peer, void *buf, size_t size,
	      struct sci_req **req);
int sci_itrecv(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
	       uint64_t tag, uint64_t ignore, void *buf, size_t size,
	       struct sci_req **req);

/*
 * The same from and to pieces of memory. The vector may go when the call has
 * returned; what it points to may not.
 */
int sci_isendv(struct sci_peer *peer, const struct iovec *iov, size_t n,
	       unsigned int flags, struct sci_req **req);
int sci_itsendv(struct sci_peer *peer, uint32_t context, uint64_t tag,
		const struct iovec *iov, size_t n, unsigned int flags,
		struct sci_req **req);

/**
 * struct sci_send - a message, and how to send it
 * @iov, @n: its bytes, as in sci_isendv()
 * @tag, @context: SCI_SEND_TAGGED
 * @imm: SCI_SEND_IMM: an immediate: goes with the message, beside its bytes,
 *	and is found in the receive's status
 * @flags: enum sci_send_flags
 */
struct sci_send {
	const struct iovec *iov;
	size_t n;
	uint64_t tag;
	uint64_t imm;
	uint32_t context;
	uint32_t flags;
};

/**
 * sci_isendm() - send, with all there is
 * @req: NULL, only with SCI_SEND_COPY: nobody waits for it
 *
 * Up to SCI_IMM_SHORT_MAX bytes go in one line with their immediate; to longer
 * messages it adds nothing, or one line. With SCI_SEND_COPY the bytes are
 * copied only if they cannot be sent at once. With SCI_SEND_AT_ONCE *@req is NULL if it has
 * completed; and a message that nobody waits for is not queued behind others: there
 * is one in the queue at most.
 *
 * -EAGAIN: SCI_UNWATCHED_MAX that nobody waits for are waiting to be sent to this
 * peer, or with SCI_SEND_AT_ONCE one is, or there is no room: make progress
 * first.
 */
int sci_isendm(struct sci_peer *peer, const struct sci_send *send,
	       struct sci_req **req);

int sci_irecvv(struct sci_ep *ep, struct sci_peer *peer,
	       const struct iovec *iov, size_t n, struct sci_req **req);
int sci_itrecvv(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
		uint64_t tag, uint64_t ignore, const struct iovec *iov,
		size_t n, struct sci_req **req);

/* ---- matching apart from copying ---- */

/**
 * sci_probe(), sci_tprobe() - is there a message?
 * @timeout: how long to wait for one
 *
 * The message stays. -EAGAIN with a timeout of 0, else -ETIMEDOUT: none.
 */
int sci_probe(struct sci_ep *ep, struct sci_peer *peer, int timeout,
	      struct sci_status *status);
int sci_tprobe(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
	       uint64_t tag, uint64_t ignore, int timeout,
	       struct sci_status *status);

/**
 * sci_match(), sci_tmatch() - take a message out of the queue
 * @msg: the message, the caller's until sci_msg_free() or sci_msg_recv()
 *
 * No other receive gets it; its bytes can be had later, at once or in parts.
 * Else as the probes.
 */
int sci_match(struct sci_ep *ep, struct sci_peer *peer, int timeout,
	      struct sci_msg **msg, struct sci_status *status);
int sci_tmatch(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
	       uint64_t tag, uint64_t ignore, int timeout,
	       struct sci_msg **msg, struct sci_status *status);

/* Receive all of @msg, which is gone then; as sci_irecvv(). */
int sci_msg_recv(struct sci_msg *msg, const struct iovec *iov, size_t n,
		 struct sci_req **req);

/**
 * sci_msg_copy() - copy a part of @msg
 *
 * As often as wanted, in any order. Waits until the message is all here.
 * -ERANGE: it has no such part.
 */
int sci_msg_copy(struct sci_msg *msg, size_t offset, void *buf, size_t len);

/**
 * sci_msg_data() - borrow the bytes of @msg
 * @data: where they are: memory of the library's, until sci_msg_free() or
 *	sci_msg_recv(); as many as the status of sci_match() has said
 *
 * So a message is received without a buffer of the program's. Waits until it is all
 * here. @msg and its bytes outlive the connection. -ENOMEM; else as a receive.
 */
int sci_msg_data(struct sci_msg *msg, const void **data);

/* Drop what is left of @msg. */
void sci_msg_free(struct sci_msg *msg);

/* ---- handlers ---- */

#define SCI_HANDLERS		127u	/* ids are 0 .. this - 1 */
#define SCI_HANDLER_LIBRARY	16u	/* from here on libraries above this one ... */
#define SCI_HANDLER_USER	64u	/* ... and from here on programs */
#define SCI_HANDLER_MAX		8192u	/* bytes in a message to a handler */

/**
 * struct sci_handled - a message that a handler is called with
 * @peer: its sender
 * @tag: what the sender has said
 * @data, @len: its bytes, at a multiple of 8; the library's, and gone when the
 *	handler returns
 * @error: 0; -EBADMSG: a check sum is wrong, and so is @data
 */
struct sci_handled {
	struct sci_peer *peer;
	uint64_t tag;
	const void *data;
	size_t len;
	int error;
};

typedef void (*sci_handler_fn)(void *arg, const struct sci_handled *m);

/**
 * sci_handler_set() - set the function for messages to a handler
 * @id: SCI_HANDLER_USER .. SCI_HANDLERS - 1; those from SCI_HANDLER_LIBRARY on are
 *	for libraries that share an endpoint with the program
 * @fn: NULL: none any more
 *
 * The library calls @fn inside progress, on any thread that is in a call of the
 * endpoint, one message at a time, in the order of each peer's messages. No receive
 * has to be posted, and messages that wait for one do not hold it up before they
 * fill SCI_PARAM_UNEXPECTED_MAX. A message without a function is dropped and counted;
 * none comes before the endpoint's first call that makes progress.
 *
 * All other threads wait for @fn: it is short, and neither sleeps nor takes a lock that
 * is held around a call of this endpoint. Of this endpoint and its peers it may call
 * sci_handler_send(), sci_handler_sendv() and sci_handler_set(), the calls about an
 * address, name, fabric or traits, sci_peer_ep(), sci_peer_data() and
 * sci_peer_set_data(). The program is aborted if it calls another one; with
 * SCI_EP_SINGLE_THREAD that is not noticed.
 *
 * -EINVAL: also, @id is not for callers.
 */
int sci_handler_set(struct sci_ep *ep, unsigned int id, sci_handler_fn fn,
		    void *arg);

/**
 * sci_handler_send(), sci_handler_sendv() - send a message to a handler of a peer
 * @id: as there
 * @tag: a number of the program's, which goes with it
 * @len: up to SCI_HANDLER_MAX; up to SCI_TAGGED_SHORT_MAX it is one line
 *
 * Never waits: what cannot be sent at once is copied. The bytes are the caller's
 * again. It arrives in the order of the messages to this peer; also from a
 * connection that is closed by then.
 *
 * -EMSGSIZE: longer; -EAGAIN: SCI_UNWATCHED_MAX messages are waiting for room, make
 * progress; a handler that answers each message once gets there only if its peer asks
 * more than that without taking answers. -ENOMEM; the error of a peer that has gone.
 */
int sci_handler_send(struct sci_peer *peer, unsigned int id, uint64_t tag,
		     const void *buf, size_t len);
int sci_handler_sendv(struct sci_peer *peer, unsigned int id, uint64_t tag,
		      const struct iovec *iov, size_t n);

/**
 * sci_wait_until() - wait for what handlers and completions bring about
 * @fn: says whether it is so: -EAGAIN, or what the call is to return
 *
 * Makes progress, polling first and sleeping then, as every wait. @fn is called at first
 * and after each handler and each completion of the endpoint; handlers' rules hold for
 * it. It is not called because memory has changed that a peer stores to: see
 * sci_peer_map(). -ETIMEDOUT.
 */
int sci_wait_until(struct sci_ep *ep, int (*fn)(void *arg), void *arg,
		   int timeout);

/* ---- exported buffers ---- */

/**
 * sci_buf_alloc() - memory that peers can write to directly
 *
 * Zeroed, aligned to a page. A receive of at least SCI_PARAM_ZCOPY_MIN into it
 * is zero-copy; so is a send from it, on fabrics whose imports read as fast as
 * they write. Every process that may connect to the endpoint can write to it at any
 * time: that is the price. -ENOMEM, -ENOSPC.
 */
int sci_buf_alloc(struct sci_ep *ep, size_t len, void **buf);

/* -EINVAL: not from sci_buf_alloc(); -EBUSY: a request uses it. */
int sci_buf_free(struct sci_ep *ep, void *buf);

/**
 * sci_buf_share() - let another endpoint of the process use a buffer
 * @ep: receives into the buffer without a copy from now on, as @owner does
 * @owner: has allocated the buffer
 * @buf: from sci_buf_alloc() on @owner
 *
 * sci_buf_free() on @ep ends that, and leaves the buffer as it is. @owner must free
 * the buffer, or be closed, after that. The endpoints have the same fabric.
 *
 * -EINVAL: also, @buf is no buffer of @owner's; -EEXIST: @ep has it; -ENOMEM.
 */
int sci_buf_share(struct sci_ep *ep, struct sci_ep *owner, void *buf);

/**
 * sci_buf_register() - make memory of the program's own such a buffer
 *
 * Whole pages, where the fabric can register them (shm: private anonymous
 * memory). Registrations of the same range are counted, and looked up by
 * address whenever a buffer is named; the memory must not be unmapped before
 * the last sci_buf_unregister(). -EINVAL: not whole pages; -EEXIST: overlaps
 * another range; -EFAULT: memory of a kind that can't; -EOPNOTSUPP: a fabric
 * that can't. Unregistering: -EINVAL: no such registration; -EBUSY: a request
 * uses it.
 */
int sci_buf_register(struct sci_ep *ep, void *addr, size_t len);
int sci_buf_unregister(struct sci_ep *ep, void *addr, size_t len);

/* ---- one-sided ---- */

/**
 * struct sci_key - memory of an endpoint's that its peers can name
 * @segment: the fabric's number for it
 * @reserved: 0
 * @offset: in the segment
 * @len: of what it names, in bytes
 *
 * Made by sci_buf_key(), sent to peers as it is. No secret: see sci_buf_alloc().
 */
struct sci_key {
	uint32_t segment;
	uint32_t reserved;
	uint64_t offset;
	uint64_t len;
};

/**
 * sci_buf_key() - name exported memory
 * @addr: in a buffer of sci_buf_alloc() or sci_buf_register(), all @len of it
 *
 * Good until that is freed. -EINVAL: also, it is in none.
 */
int sci_buf_key(struct sci_ep *ep, const void *addr, size_t len,
		struct sci_key *key);

/**
 * sci_iwritev(), sci_ireadv() - store to a peer's memory, load from it
 * @key: of that peer's
 * @offset: from what it names
 *
 * Without the peer's doing; but where caches are not coherent the peer copies, while a
 * thread of it is in a call of the endpoint. A write has arrived when its request completes; a
 * message sent after that does not overtake it, other writes may. The processor
 * moves the bytes: where packets go through an adapter it waits for each one of
 * a read, so that long ones are better sent. Both repeat what gets lost. With a
 * @req of NULL nobody waits for this one: sci_flush() waits for all of these, and
 * until then @iov's bytes are the library's; -EAGAIN: SCI_UNWATCHED_MAX of them are
 * under way.
 *
 * -ERANGE: beyond what @key names, or what is there; -ENOENT: the memory is
 * not there, or not any more, which may be noticed late; -ECONNRESET,
 * -ENOTCONN, -ECANCELED: see requests; -ENOMEM, -ENOSPC: out of resources.
 */
int sci_iwritev(struct sci_peer *peer, const struct sci_key *key,
		uint64_t offset, const struct iovec *iov, size_t n,
		struct sci_req **req);
int sci_ireadv(struct sci_peer *peer, const struct sci_key *key,
	       uint64_t offset, const struct iovec *iov, size_t n,
	       struct sci_req **req);

/* The same, waiting until the bytes are there. */
int sci_write(struct sci_peer *peer, const struct sci_key *key,
	      uint64_t offset, const void *buf, size_t len);
int sci_read(struct sci_peer *peer, const struct sci_key *key,
	     uint64_t offset, void *buf, size_t len);

/**
 * enum sci_rmw_op - what an atomic, a read-modify-write, makes of a word
 * @SCI_RMW_COMPARE_SWAP: a swap if the word has the bits of the comparand
 * @SCI_RMW_AND, @SCI_RMW_OR, @SCI_RMW_XOR: not of real numbers
 *
 * A sum of integers wraps. A minimum or maximum with a NaN is what was there.
 */
enum sci_rmw_op {
	SCI_RMW_READ,
	SCI_RMW_SWAP,
	SCI_RMW_COMPARE_SWAP,
	SCI_RMW_ADD,
	SCI_RMW_AND,
	SCI_RMW_OR,
	SCI_RMW_XOR,
	SCI_RMW_MIN,
	SCI_RMW_MAX
};

enum sci_rmw_type {
	SCI_RMW_INT32,
	SCI_RMW_UINT32,
	SCI_RMW_INT64,
	SCI_RMW_UINT64,
	SCI_RMW_FLOAT,
	SCI_RMW_DOUBLE
};

/**
 * struct sci_rmw - an atomic
 * @operand, @compare: their bits; values of 4 bytes in the lower half
 */
struct sci_rmw {
	enum sci_rmw_op op;
	enum sci_rmw_type type;
	uint64_t operand;
	uint64_t compare;
};

/**
 * sci_irmw(), sci_rmw() - change a word of a peer's memory
 * @key, @offset: where, at a multiple of the word's size
 * @before: for what was there, 4 or 8 bytes; NULL: not wanted
 * @req: NULL: as for sci_iwritev()
 *
 * Atomics of all peers on one word, of sci_rmw_apply() and of atomic instructions
 * in the owner's process happen one after the other. With SCI_TRAIT_SHARED_MEMORY
 * they happen without the owner's doing, else while a thread of it is in a call of the
 * endpoint. Stores to the word, sci_iwritev() included, are no atomics. Other
 * one-sided transfers may be overtaken; those that have completed are not.
 *
 * -EINVAL: also, no such operation on that type, or not aligned; else the errors of
 * sci_iwritev().
 */
int sci_irmw(struct sci_peer *peer, const struct sci_key *key, uint64_t offset,
	     const struct sci_rmw *rmw, void *before, struct sci_req **req);
int sci_rmw(struct sci_peer *peer, const struct sci_key *key, uint64_t offset,
	    const struct sci_rmw *rmw, void *before);

/* The same to a word of this process, or one of sci_peer_map(). -EINVAL. */
int sci_rmw_apply(void *word, const struct sci_rmw *rmw, void *before);

/* The atomic that follows a write: @rmw, to a word of the same peer. */
struct sci_write_signal {
	struct sci_key key;
	uint64_t offset;
	struct sci_rmw rmw;
};

/**
 * sci_iwrite_signal() - write, then change a word
 *
 * A process that sees the word changed sees the bytes. The request completes when both
 * have happened; if it fails the word may be as it was. Else as sci_iwritev() and
 * sci_irmw().
 */
int sci_iwrite_signal(struct sci_peer *peer, const struct sci_key *key,
		      uint64_t offset, const struct iovec *iov, size_t n,
		      const struct sci_write_signal *signal, struct sci_req **req);

/**
 * sci_flush() - wait until one-sided transfers to a peer have arrived
 *
 * All that were started without a request; and stores of the calling thread through
 * sci_peer_map(). The first error of any since the last sci_flush() that did not
 * time out; -ETIMEDOUT.
 */
int sci_flush(struct sci_peer *peer, int timeout);

/**
 * sci_peer_map() - map exported memory of a peer
 * @key: of that peer's
 * @timeout: how long to wait for the connection, if it is not there yet, and for
 *	the memory
 * @addr: where the first byte that @key names is from now on
 *
 * The program loads and stores there itself, and uses atomic instructions; all are
 * ordered as between threads. Only with SCI_TRAIT_SHARED_MEMORY. The map stays until
 * sci_peer_unmap() or sci_disconnect(), and never faults before: when the peer has
 * freed the memory, or has died, loads and stores reach pages that nobody else sees.
 * That the peer has died the program learns from calls, as ever. Maps of the same
 * bytes may be the same, and are counted.
 *
 * -EOPNOTSUPP: this fabric has no such memory; -EINVAL: also, @key names no byte;
 * -ERANGE: it names more than there is; -ENOENT: the memory is not there;
 * -ETIMEDOUT; the error of a peer that has gone; -ENOMEM, -EMFILE.
 */
int sci_peer_map(struct sci_peer *peer, const struct sci_key *key, int timeout,
		 void **addr);

/* @addr is what sci_peer_map() has said, or lies in it. -EINVAL: no such map. */
int sci_peer_unmap(struct sci_peer *peer, void *addr);

/* ---- progress ---- */

/* Move what can be moved; never blocks. Number of things done, or -errno. */
int sci_progress(struct sci_ep *ep);

/**
 * sci_ep_fd() - a descriptor for poll() and epoll
 *
 * Readable when there may be something to do for an endpoint that was armed.
 * The endpoint's: not to be read or closed.
 */
int sci_ep_fd(struct sci_ep *ep);

/**
 * sci_ep_arm() - before sleeping on the descriptor
 *
 * -EAGAIN: there is something to do already, call sci_progress(), or completions
 * are queued. After 0 the descriptor becomes readable when there is; any call
 * disarms, but for completions, which also other threads' calls may queue.
 */
int sci_ep_arm(struct sci_ep *ep);

#ifdef __cplusplus
}
#endif

#endif
