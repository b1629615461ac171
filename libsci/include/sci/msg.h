/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: messages
 *
 * Messages between endpoints of a fabric. They are reliable and of any length. They arrive in
 * order between two endpoints; tagged messages arrive in order between two endpoints within
 * one context. The length of a message and the memory of its buffers select its protocol:
 *
 *	short		up to 62 bytes: one 64-byte line, one store (DECK/SCI's
 *			protocol 1, SCI-MPICH's short protocol)
 *	eager		bytes in a ring in the receiver's memory, then a line that
 *			announces them (DECK's protocol 2, SCI-MPICH III.B.2)
 *	rendezvous	a handshake, then blocks through a transfer buffer that
 *			the receiver empties while the sender fills it
 *			(SCI-MPICH III.B.3)
 *	zero-copy	a handshake, then stores directly into the receiver's
 *			buffer, which is in exported memory (DECK's
 *			protocol 3)
 *	single copy	a handshake, then the receiver reads the sender's private memory
 *
 * Rules for all calls:
 *  - Unless a call says otherwise, it returns 0 or a negative errno value. errno itself means
 *    nothing after a call. -EINVAL: an argument is NULL or out of range.
 *  - Several threads may use an endpoint at the same time. With SCI_EP_SINGLE_THREAD only one
 *    thread at a time may use it. Signal handlers must not make any of these calls.
 *  - A thread must not be cancelled by pthread_cancel() in a call, except while the call waits:
 *    the thread could leave an endpoint locked. A call that waits holds cancellation off until
 *    its wait has ended.
 *  - Lengths and offsets are in bytes. Timeouts are in milliseconds; -1 waits for ever, 0 does
 *    not wait.
 *  - An endpoint makes progress while a thread is inside one of its calls. A process that makes
 *    no calls receives no messages and accepts no connections. Messages that the process has sent
 *    still arrive: on fabrics that can lose packets, a thread of the library sends lost packets
 *    again (SCI_PARAM_CHECK_MS).
 *  - The library uses the buffer of a non-blocking call until the request has completed. Before
 *    that the program must not change or free the buffer.
 *  - When a peer dies, every request that depends on it completes with -ECONNRESET within a
 *    second. Later calls return the same error. Messages that arrived whole are delivered first.
 *    Receives from any source keep waiting.
 *  - A child after fork() has no endpoints: its calls return -ENOTCONN.
 */
#ifndef SCI_MSG_H
#define SCI_MSG_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SCI_SHORT_MAX		62u		/* bytes of a short message */
#define SCI_TAGGED_SHORT_MAX	48u		/* bytes of a short message with a tag */
#define SCI_IMM_SHORT_MAX	40u		/* bytes of a short message with an immediate */
#define SCI_EP_ID_MAX		0xffffffu	/* ids of endpoints are 1 to this */
#define SCI_CONTEXT_MAX		0xffffff7fu	/* contexts are 0 to this */
#define SCI_IOV_MAX		1024u		/* pieces of a vector */
#define SCI_DETACHED_MAX	2048u		/* pending sends without a request, per peer */
#define SCI_WRITE_EVENTS_MAX	1024u		/* events of a peer's writes that were not taken */

struct sci_ep;				/* an endpoint */
struct sci_peer;			/* a connection of an endpoint to another endpoint */
struct sci_req;				/* a non-blocking call */
struct sci_msg;				/* a message that sci_match() has taken */

/* The address of an endpoint: a node of the fabric, and the endpoint's number on this node. */
struct sci_addr {
	uint32_t node;
	uint32_t id;
};

/* ---- endpoints ---- */

enum sci_ep_flags {
	SCI_EP_SINGLE_THREAD	= 1 << 0, /* one thread at a time makes calls. The library
					   * takes no locks, except on fabrics that can
					   * lose packets. */
	SCI_EP_CRC		= 1 << 1, /* check sums over eager messages and blocks of a
					   * rendezvous, but not over zero-copy messages and
					   * single copies */
	SCI_EP_PEER_EVENTS	= 1 << 2, /* sci_completions() also reports peers that
					   * connect, disconnect or die */
	SCI_EP_WRITE_EVENTS	= 1 << 3  /* sci_completions() also reports writes of
					   * peers: sci_iwrite_imm() */
};

/**
 * enum sci_param - parameters of an endpoint
 * @SCI_PARAM_LINES_MAX: longest message in bytes that the sender writes as several lines of the
 *	small ring although the eager ring is attached
 * @SCI_PARAM_EAGER_MAX: longest eager message in bytes; longer messages are rendezvous, except
 *	those of SCI_PARAM_FAR_EAGER_MAX
 * @SCI_PARAM_EAGER_BLOCK: bytes of a block of an eager message, or an eighth of the message if that
 *	is more. The receiver copies one block while the sender fills the next one
 * @SCI_PARAM_EAGER_RING: bytes of the eager ring that a busy pair attaches
 * @SCI_PARAM_BLOCK: bytes of a rendezvous block, and the limit of an eager block. Eager blocks
 *	have this length while the receiver sends no messages itself
 * @SCI_PARAM_XFER_RING: bytes of the transfer ring, which a pair attaches for
 *	its first rendezvous in blocks
 * @SCI_PARAM_RINGS_MAX: bytes of all rings of an endpoint, which its peers share. With many
 *	peers, rings are smaller than SCI_PARAM_EAGER_RING and SCI_PARAM_XFER_RING. At the
 *	limit, the endpoint takes unused rings back. A peer gets rings of 8 KiB in any case,
 *	beyond the limit if necessary
 * @SCI_PARAM_ZCOPY_MIN: shortest zero-copy message into exported memory, in bytes
 * @SCI_PARAM_SINGLE_COPY_MIN: shortest message in bytes that the receiver reads from the sender's
 *	private memory, on fabrics of one host that can do this; UINT64_MAX: no message. The
 *	larger one of the sender's and the receiver's values counts. Messages of more than 1 MiB
 *	are no single copies. By default, eager messages are not sent as single copies
 * @SCI_PARAM_ATTACH_AFTER: bytes of messages longer than short that a pair
 *	sends through its small ring before it attaches the eager ring
 * @SCI_PARAM_UNEXPECTED_MAX: bytes of unexpected messages that an endpoint keeps. At this limit
 *	the endpoint takes no more messages of a sender until a receive is posted, or a probe
 *	waits, for this sender or for any sender. The tag and the context of the receive do not
 *	matter.
 * @SCI_PARAM_SPIN_US: microseconds of polling before a wait sleeps
 * @SCI_PARAM_CHECK_MS: on fabrics that can lose packets: milliseconds without a call
 *	of the endpoint after which a thread of the library sends lost packets again
 * @SCI_PARAM_FAR_EAGER_MAX: longest message in bytes that is eager although it is longer than
 *	SCI_PARAM_EAGER_MAX, because a handshake with the peer takes longer than two copies of the
 *	message. The sender measures handshakes. 0: no message
 *
 * Sizes of rings apply to pairs that attach after the change.
 */
enum sci_param {
	SCI_PARAM_LINES_MAX,
	SCI_PARAM_EAGER_MAX,
	SCI_PARAM_EAGER_BLOCK,
	SCI_PARAM_EAGER_RING,
	SCI_PARAM_BLOCK,
	SCI_PARAM_XFER_RING,
	SCI_PARAM_RINGS_MAX,
	SCI_PARAM_ZCOPY_MIN,
	SCI_PARAM_SINGLE_COPY_MIN,
	SCI_PARAM_ATTACH_AFTER,
	SCI_PARAM_UNEXPECTED_MAX,
	SCI_PARAM_SPIN_US,
	SCI_PARAM_CHECK_MS,
	SCI_PARAM_FAR_EAGER_MAX,
	SCI_PARAMS
};

/**
 * sci_param_name() - return the name of a parameter in tables and in the environment
 * @param: the parameter
 *
 * For example, the variable SCI_MSG_EAGER_MAX in the environment sets "eager_max".
 * Return: a static string; NULL: there is no such parameter.
 */
const char *sci_param_name(enum sci_param param);

/**
 * struct sci_ep_attr - where and how to open an endpoint
 * @size: the caller sets it to sizeof(struct sci_ep_attr). New members are added at the end;
 *	their value 0 means the behaviour before they existed.
 * @fabric: a value of SCI_FABRIC, "shm:NAME" or "dev" for example; NULL: the value of
 *	SCI_FABRIC in the environment
 * @name: the program's name for the endpoint. The first 15 bytes become the name of the
 *	library's threads for this endpoint. NULL: no name.
 * @node: the node of the fabric; 0: the value of SCI_NODE in the environment
 * @adapter: number of the adapter, among those of the fabric; 0: the first
 * @id: the endpoint's number on this node; 0: the library picks a free number
 * @flags: enum sci_ep_flags
 * @net: a network for peers that the fabric does not reach, as SCI_NET, see
 *	sci_net(7); "": none; NULL: the value of SCI_NET in the environment
 * @net_peers: where the processes of other nodes listen, as SCI_NET_PEERS; NULL: the value
 *	of SCI_NET_PEERS in the environment
 * @rail: a second adapter, as SCI_RAIL, see "Two rails" in sci_msg(3): a value of SCI_FABRIC,
 *	"dev:/dev/sci1" for example; "": none; NULL: the value of SCI_RAIL in the environment
 * @rail_node: the node of the second adapter; 0: the value of SCI_RAIL_NODE in the environment,
 *	or else the same node as that of the first adapter
 *
 * The library copies the strings.
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
	const char *rail;
	uint32_t rail_node;
};

/**
 * sci_ep_open_attr() - open an endpoint with attributes
 * @ep: is set to the endpoint
 * @attr: where and how to open it
 *
 * A process may have endpoints on several nodes, fabrics and clusters. The endpoint has the
 * same parameters as after sci_ep_open().
 * Return: 0; -E2BIG: @attr has members that this library does not know, and they are not 0;
 * -ENODEV: there is no such fabric or adapter; or an error of sci_ep_open().
 */
int sci_ep_open_attr(struct sci_ep **ep, const struct sci_ep_attr *attr);

/**
 * sci_ep_open() - open an endpoint
 * @ep: is set to the endpoint, which belongs to the caller until sci_ep_close()
 * @id: the endpoint's number on this node; 0: the library picks a free number
 * @flags: enum sci_ep_flags
 *
 * The endpoint joins the fabric that SCI_FABRIC in the environment names, as the node that
 * SCI_NODE names. Its parameters come from the library's table for that fabric, then from the
 * file that SCI_MSG_TABLE names, then from the variables SCI_MSG_* in the environment.
 * Return: 0; -EINVAL: an argument or a variable in the environment is invalid; -EEXIST:
 * another endpoint has this number; -ENODEV: there is no such fabric; -EACCES: the user may
 * not open the adapter; -ENOMEM, -ENOSPC, -EMFILE, -EAGAIN: out of resources.
 */
int sci_ep_open(struct sci_ep **ep, uint32_t id, unsigned int flags);

/**
 * sci_ep_close() - close an endpoint and free it
 * @ep: the endpoint; no other thread may be in a call of it
 *
 * All its connections end. Messages of completed sends still reach their receivers, for which
 * the call waits up to two seconds. The call frees all connections, all requests, completed or
 * not, and all buffers of sci_buf_alloc().
 * Return: 0 or -ENOTCONN.
 */
int sci_ep_close(struct sci_ep *ep);

/* Get the address of @ep. Return: 0 or -ENOTCONN. */
int sci_ep_addr(struct sci_ep *ep, struct sci_addr *addr);

/*
 * Return the name that the program has given to @ep, "" if it has given none; NULL if @ep is NULL.
 * The string belongs to the endpoint.
 */
const char *sci_ep_name(struct sci_ep *ep);

/* Return the name of the fabric of @ep ("shm"), a static string; NULL if @ep is NULL. */
const char *sci_ep_fabric(struct sci_ep *ep);

/**
 * enum sci_traits - how the fabric of an endpoint behaves
 * @SCI_TRAIT_FAST_READS: sci_read() is as fast as sci_write(). Without this trait the
 *	processor waits for each packet of a read.
 * @SCI_TRAIT_REGISTER_COPIES: sci_buf_register() gives the memory other pages and
 *	copies its bytes. A store by another thread during the call may be lost.
 * @SCI_TRAIT_SHARED_MEMORY: exported memory of peers is memory of this machine, coherent for loads,
 *	stores and atomic instructions of all CPUs: sci_peer_map() gives pointers to it.
 * @SCI_TRAIT_LOSSY: the fabric can lose packets. The library sends them again, which takes
 *	time and a thread (SCI_PARAM_CHECK_MS).
 * @SCI_TRAIT_VIRTUAL_NODES: nodes are numbers that processes of this machine choose
 *	(SCI_NODE), not adapters.
 * @SCI_TRAIT_INCOHERENT: the caches of nodes are not coherent. This affects maps of SISCI segments:
 *	libsci(7) lists the calls that make stores visible, at SCI_SHM_CHECK.
 */
enum sci_traits {
	SCI_TRAIT_FAST_READS		= 1 << 0,
	SCI_TRAIT_REGISTER_COPIES	= 1 << 1,
	SCI_TRAIT_SHARED_MEMORY		= 1 << 2,
	SCI_TRAIT_LOSSY			= 1 << 3,
	SCI_TRAIT_VIRTUAL_NODES		= 1 << 4,
	SCI_TRAIT_INCOHERENT		= 1 << 5
};

/* Return the traits of the fabric of @ep, enum sci_traits; 0 if @ep is NULL. */
unsigned int sci_ep_traits(struct sci_ep *ep);

/**
 * sci_ep_set(), sci_ep_get() - set, or get, a parameter of an endpoint
 * @param: the parameter
 * @value: sci_ep_set() replaces a value out of range by the nearest possible one, and sets it for
 *	all networks of the endpoint; sci_ep_get() gives the value for the fabric
 * Return: 0; -EINVAL: there is no such parameter.
 */
int sci_ep_set(struct sci_ep *ep, enum sci_param param, uint64_t value);
int sci_ep_get(struct sci_ep *ep, enum sci_param param, uint64_t *value);

/**
 * struct sci_ep_stats - counters of an endpoint
 * @size: the caller sets it to sizeof(struct sci_ep_stats)
 *
 * Counters start at 0 when the endpoint is opened. Members marked "now" are present values.
 */
struct sci_ep_stats {
	size_t size;
	uint64_t peers;			/* connections now */
	uint64_t peer_bytes;		/* local memory of the connections and rings, now */
	uint64_t sent_short;		/* messages sent as one line */
	uint64_t sent_lines;		/* messages sent as several lines of the small ring */
	uint64_t sent_eager;
	uint64_t sent_rendezvous;
	uint64_t sent_zcopy;
	uint64_t sent_single_copy;
	uint64_t received;		/* messages that receives have taken */
	uint64_t unexpected;		/* unexpected messages now */
	uint64_t unexpected_bytes;	/* bytes of unexpected messages now */
	uint64_t resent_lines;		/* lines sent again after a lost packet */
	uint64_t resent_blocks;
	uint64_t crc_errors;
	uint64_t bells;			/* interrupts raised at sleeping peers */
	uint64_t sleeps;		/* times that a wait slept after polling */
	uint64_t checks;		/* store barriers that checked for lost packets */
	uint64_t writes;		/* one-sided writes that have arrived */
	uint64_t reads;			/* one-sided reads that have completed */
	uint64_t handled;		/* messages to handlers */
	uint64_t unhandled;		/* messages dropped because their handler is not set */
	uint64_t atomics;		/* atomics of this endpoint that have completed */
	/* between endpoints with two rails: bytes of long transfers sent through each rail */
	uint64_t first_rail_bytes;
	uint64_t second_rail_bytes;
	uint64_t reroutes;		/* moves of a connection's lines to the other rail */
};

/**
 * sci_ep_stats() - get the counters of an endpoint
 * @stats: receives as many bytes as @stats->size says and the library has; the library sets
 *	@stats->size to this number
 * Return: 0; -EINVAL: @stats->size is not set.
 */
int sci_ep_stats(struct sci_ep *ep, struct sci_ep_stats *stats);

/* ---- connections ---- */

/**
 * sci_connect() - connect to an endpoint
 * @addr: the endpoint's address; may be the address of @ep itself
 * @timeout: how long to wait for the endpoint to open and to answer
 * @peer: is set to the connection, which the caller may use until sci_disconnect()
 *
 * An endpoint answers while its process is inside a call. Two endpoints have one connection: a
 * second connect, by either side, returns the same one. The first sci_disconnect() ends it. If the
 * endpoint has begun to answer by the end of the timeout, the connection may come later: another
 * connect or sci_accept() returns it.
 * Return: 0; -ETIMEDOUT: the endpoint does not answer, or does not exist; -EHOSTUNREACH: the
 * fabric has no such node; -EACCES: the endpoint may not be used; -ENETDOWN: the link is
 * still down at the end of the timeout; -ECONNREFUSED: the peer has no room; -EPROTO: the peer
 * has another version of the protocol; -ENOMEM, -ENOSPC, -EMFILE: out of resources.
 */
int sci_connect(struct sci_ep *ep, const struct sci_addr *addr, int timeout,
		struct sci_peer **peer);

/**
 * sci_iconnect() - connect, non-blocking
 * @addr: as in sci_connect()
 * @timeout: after this time the request completes with -ETIME
 * @req: is set to the request
 *
 * The status of the completed request names the connection. sci_cancel() ends the attempt.
 * Return: 0; -ENOMEM, -ENOSPC, -EMFILE: out of resources. The request completes with the
 * errors of sci_connect().
 */
int sci_iconnect(struct sci_ep *ep, const struct sci_addr *addr, int timeout,
		 struct sci_req **req);

/**
 * sci_peer_open() - get a connection that need not be established yet
 * @addr: as in sci_connect()
 * @timeout: how long to try if the endpoint does not exist, or no longer exists; -1: for ever. The
 *	library waits without a limit for an endpoint that exists but does not answer.
 * @peer: is set to the existing connection, or to a new one
 *
 * The endpoint establishes the connection while it makes progress. The program may start transfers
 * of all kinds at once. They wait for the connection. If the connection fails, transfers complete
 * with the error of sci_connect(), or with -ETIME.
 * Return: 0; -ENOMEM, -ENOSPC, -EMFILE: out of resources.
 */
int sci_peer_open(struct sci_ep *ep, const struct sci_addr *addr, int timeout,
		  struct sci_peer **peer);

/**
 * sci_accept() - get the next connection that another endpoint has made
 * @timeout: how long to wait for a connection
 * @peer: is set to the connection
 *
 * Messages arrive without this call: the status of a receive from any source names the
 * connection. The call returns a connection that has ended only if messages of it are left. It
 * does not return connections that this side has requested. Connections of several endpoints may
 * come in another order than these were made.
 * Return: 0; -ETIMEDOUT: there is no new connection.
 */
int sci_accept(struct sci_ep *ep, int timeout, struct sci_peer **peer);

/* Get the connection to @addr. Return: 0; -ENOENT: there is no such connection. */
int sci_peer_find(struct sci_ep *ep, const struct sci_addr *addr,
		  struct sci_peer **peer);

/**
 * sci_disconnect() - end a connection and free it
 * @peer: the connection; may be dead. It is invalid after the call.
 *
 * Messages that have been sent arrive: the call waits for this up to two seconds. Requests on
 * @peer complete with -ECANCELED, requests of the other side with -ENOTCONN.
 *
 * When a peer dies or disconnects, the endpoint's progress releases the memory and the descriptors
 * of the connection. If a call or a status has given @peer to the program, @peer itself
 * (less than 1 KiB) stays valid until this call.
 * Return: 0 or -ENOTCONN.
 */
int sci_disconnect(struct sci_peer *peer);

/**
 * sci_peer_close() - end a connection, without waiting
 * @peer: the connection; the program must not use it any more
 *
 * This call works like sci_disconnect(), with these differences. Messages that have been sent
 * arrive while the endpoint makes progress; messages that the peer has not taken after two seconds
 * are lost. Requests complete when the connection ends. After this call statuses name no peer, and
 * messages to handlers are dropped. If either side connects again before the end, the connection
 * stays. But if this side connects after it has dropped a message to a handler, this connection
 * ends at once, and a new connection begins.
 * Return: 0 or -ENOTCONN.
 */
int sci_peer_close(struct sci_peer *peer);

/**
 * sci_peer_gone() - find a peer that has died or disconnected
 * @peer: is set to the peer's connection
 *
 * The call returns each peer once, after all its messages have been received. It returns only
 * peers that a call or a status has given to the program. A server passes these peers to
 * sci_disconnect(). The call makes no progress.
 * Return: 0; -ENOENT: there is no such peer.
 */
int sci_peer_gone(struct sci_ep *ep, struct sci_peer **peer);

/**
 * sci_peer_state() - get the state of a connection
 * Return: 0: connected; -EINPROGRESS: not established yet, see sci_peer_open(); -ENOTCONN: the
 * peer has disconnected; -ECONNRESET: the peer has died; -EPROTO: the peer has broken the
 * protocol; or the error with which the connection attempt has failed.
 */
int sci_peer_state(struct sci_peer *peer);

/* Get the address of the peer's endpoint. Return: 0 or -ENOTCONN. */
int sci_peer_addr(struct sci_peer *peer, struct sci_addr *addr);

/**
 * sci_peer_network() - get the network that reaches a peer
 * A peer that is not connected yet may change from the sockets to the endpoint's fabric.
 * Return: "net" for sockets, gateways and several ways, else sci_ep_fabric() of the endpoint; NULL:
 * @peer is NULL, or the process is a child of the one that opened the endpoint.
 */
const char *sci_peer_network(struct sci_peer *peer);

/**
 * sci_peer_set(), sci_peer_get() - set, or get, a parameter for the network that reaches a peer
 * @param: the parameter
 * @value: see sci_ep_set()
 *
 * sci_peer_set() has an effect for all peers of this endpoint on that network. The parameters of the
 * endpoint itself, SCI_PARAM_RINGS_MAX, SCI_PARAM_UNEXPECTED_MAX, SCI_PARAM_SPIN_US and
 * SCI_PARAM_CHECK_MS, have one value for all networks.
 * Return: 0; -EINVAL: there is no such parameter.
 */
int sci_peer_set(struct sci_peer *peer, enum sci_param param, uint64_t value);
int sci_peer_get(struct sci_peer *peer, enum sci_param param, uint64_t *value);

/* Return the endpoint of this process to which the connection belongs; NULL if @peer is NULL. */
struct sci_ep *sci_peer_ep(struct sci_peer *peer);

/* Set the pointer that the program attaches to a connection, atomically. It is NULL at first. */
void sci_peer_set_data(struct sci_peer *peer, void *data);

/* Return the pointer that sci_peer_set_data() has set. */
void *sci_peer_data(struct sci_peer *peer);

/* ---- requests ---- */

/**
 * struct sci_status - the result of a call
 * @peer: the connection; of a receive: the connection to the sender; NULL: the connection has been
 *	freed, or never existed
 * @tag, @context: tag and context of the message; 0 if it has none
 * @len: length of the message, also if the buffer was shorter
 * @error: 0 or a negative errno value, the same as the call returns
 * @flags: enum sci_status_flags
 * @imm: the immediate of a message that was sent with SCI_SEND_IMM, or of sci_iwrite_imm()
 *
 * Errors of messages are -EMSGSIZE: the buffer was too short and has only the first bytes of the
 * message; -ECONNRESET, -ENOTCONN, -ECANCELED: the connection has ended; -EBADMSG: a check sum is
 * wrong; -ENOMEM: out of memory; -ETIME: the peer's node does not answer; -EPROTO: the peer has
 * broken the protocol, which ends the connection. A long message can also end with an error that
 * the peer reports. A request that has completed never has the errors -EAGAIN and -ETIMEDOUT.
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
	SCI_STATUS_IMM	= 1 << 0,	/* the message has an immediate */
	SCI_STATUS_PEER_UP = 1 << 1,	/* event: a peer has connected */
	SCI_STATUS_PEER_DOWN = 1 << 2,	/* event: a connection has ended with @error */
	SCI_STATUS_RETURNED = 1 << 3,	/* the library no longer uses the buffer of
					 * sci_irecv_many() */
	SCI_STATUS_WRITTEN = 1 << 4	/* event: the bytes of sci_iwrite_imm() have arrived */
};

/* Flags of sends. All flags except SCI_SEND_SYNC are for sci_isendm() only. */
enum sci_send_flags {
	SCI_SEND_SYNC	= 1 << 0,	/* the send completes when a receive has the bytes */
	SCI_SEND_TAGGED	= 1 << 1,	/* the message has a tag */
	SCI_SEND_COPY	= 1 << 2,	/* the caller may reuse the buffer when the
					 * call returns */
	SCI_SEND_IMM	= 1 << 3,	/* the message has an immediate */
	SCI_SEND_AT_ONCE = 1 << 4	/* make no request if the send has completed */
};

/**
 * sci_test() - test whether a request has completed
 * @req: is freed, unless the call returns -EAGAIN
 * @status: NULL, or receives the result
 *
 * The call makes progress.
 * Return: the result of the request, as in @status->error; -EAGAIN: it has not completed.
 */
int sci_test(struct sci_req *req, struct sci_status *status);

/**
 * sci_wait() - wait for a request
 * @req: is freed, unless the call returns -ETIMEDOUT
 * @status: NULL, or receives the result
 * Return: the result of the request, as in @status->error; -ETIMEDOUT: it has not completed.
 */
int sci_wait(struct sci_req *req, int timeout, struct sci_status *status);

/**
 * sci_waitall() - wait for all requests of an array
 * @reqs: @n requests of one endpoint. The call frees them and sets them to NULL. Entries that
 *	are NULL already are skipped.
 * @status: NULL, or @n statuses that receive the results; skipped entries do not change theirs
 * Return: 0 or the first error of a request, when all requests have completed; -ETIMEDOUT: some
 * request has not completed, and the call has freed no request.
 */
int sci_waitall(struct sci_req **reqs, size_t n, int timeout,
		struct sci_status *status);

/**
 * sci_waitany() - wait for one request of an array
 * @reqs: @n requests of one endpoint; entries that are NULL are skipped
 * @index: is set to the index of the request that completed, which is freed and becomes NULL;
 *	@n: no request has completed
 * @status: NULL, or receives the result
 * Return: the result of the request. If *@index is @n: -ENOENT if all entries are NULL, else
 * -ETIMEDOUT.
 */
int sci_waitany(struct sci_req **reqs, size_t n, int timeout, size_t *index,
		struct sci_status *status);

/**
 * sci_testany() - test whether one request of an array has completed
 * @reqs: as in sci_waitany()
 * @index: as in sci_waitany()
 * @status: as in sci_waitany()
 *
 * The call makes progress once and does not wait.
 * Return: the result of the request. If *@index is @n: -ENOENT if all entries are NULL, else
 * -EAGAIN.
 */
int sci_testany(struct sci_req **reqs, size_t n, size_t *index,
		struct sci_status *status);

/**
 * sci_testsome() - find all requests of an array that have completed
 * @reqs: @n requests of one endpoint; NULL entries are skipped. Requests that have completed
 *	are freed and become NULL.
 * @indices: room for @n; receives the indices of these requests
 * @status: room for @n; receives the results of these requests, in the order of @indices
 *
 * The call makes progress once if no request has completed.
 * Return: number of completed requests; -EAGAIN: no request has completed; -ENOENT: all entries
 * are NULL.
 */
int sci_testsome(struct sci_req **reqs, size_t n, size_t *indices,
		 struct sci_status *status);

/**
 * sci_cancel() - cancel a request
 * @req: stays valid; the program still tests it or waits for it
 *
 * The request completes with -ECANCELED.
 * Return: 0; -EBUSY: the transfer has begun, and the request completes as without this call.
 */
int sci_cancel(struct sci_req *req);

/* ---- completions ---- */

/**
 * struct sci_completion - a request that has completed, or an event
 * @data: of a request: the pointer passed to sci_req_queue(); of an event: sci_peer_data()
 * @status: the result
 * @buf: of a message to sci_irecv_many(): the address of the message in the buffer; otherwise NULL
 */
struct sci_completion {
	void *data;
	struct sci_status status;
	void *buf;
};

/**
 * sci_req_queue() - hand a request to the completion queue of its endpoint
 * @req: the program must not test it or wait for it any more; sci_completions() frees it together
 *	with its completion
 * @data: names the request in its completion
 *
 * This call is for programs with many requests. When the request completes, or if it already has
 * completed, its completion enters the queue, which has room for all. The program may cancel the
 * request until a thread has taken the completion.
 * Return: 0; -EINVAL: the request is in the queue already.
 */
int sci_req_queue(struct sci_req *req, void *data);

/**
 * sci_completions() - take completions, oldest first
 * @timeout: how long to wait for a completion if the queue is empty
 * @done: room for @n completions
 * @n: not 0
 *
 * The queue of an endpoint that was opened with SCI_EP_PEER_EVENTS also has events of peers, in
 * the order in which they happened. The flag SCI_STATUS_PEER_UP says that a connection has been
 * established by either side. The flag SCI_STATUS_PEER_DOWN says that a connection has ended, or
 * could not be established; the error is that of sci_peer_state(). Messages that had arrived whole
 * can still be received. The peer of an event stays valid until the program calls
 * sci_disconnect(). No event of the peer follows that call. If a peer connects and disconnects
 * before the program takes its first event, the library may drop both events.
 * The queue of an endpoint that was opened with SCI_EP_WRITE_EVENTS also has an event for each
 * sci_iwrite_imm() of a peer, in the order in which the peer has sent them. No such event follows a
 * call that closes the peer's connection.
 * Return: number of completions; if there are none: -EAGAIN with a @timeout of 0, else -ETIMEDOUT.
 */
int sci_completions(struct sci_ep *ep, int timeout, struct sci_completion *done,
		    unsigned int n);

/**
 * sci_completions_queued() - check whether the queue of completions has an entry
 *
 * For handlers, and for a function of sci_wait_until() that waits for a completion or for something
 * else: only these may make this call.
 * Return: 1 if sci_completions() would return a completion at once, else 0.
 */
int sci_completions_queued(struct sci_ep *ep);

/* ---- messages ---- */

/**
 * sci_send(), sci_tsend() - send a message, and wait until the buffer can be reused
 * @buf: the message, @len bytes; NULL is allowed if @len is 0
 * @context: context of a tagged message, 0 to SCI_CONTEXT_MAX
 * @tag: tag of a tagged message
 *
 * A receive without a tag gets only messages without a tag, and a receive with a tag gets
 * only messages with a tag.
 * Return: 0; or an error of a message, see struct sci_status.
 */
int sci_send(struct sci_peer *peer, const void *buf, size_t len);
int sci_tsend(struct sci_peer *peer, uint32_t context, uint64_t tag,
	      const void *buf, size_t len);

/**
 * sci_recv(), sci_trecv() - wait for a message and receive it
 * @peer: the sender; NULL: any sender
 * @context: the context that the message must have
 * @tag: the tag that the message must have
 * @ignore: bits of @tag that need not match; 0: all must match
 * @buf: receives the message
 * @size: bytes of the buffer
 * @status: NULL, or receives the result
 * Return: 0; or an error of a message, see struct sci_status.
 */
int sci_recv(struct sci_ep *ep, struct sci_peer *peer, void *buf, size_t size,
	     struct sci_status *status);
int sci_trecv(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
	      uint64_t tag, uint64_t ignore, void *buf, size_t size,
	      struct sci_status *status);

/**
 * struct sci_try_recv - a receive for sci_try_trecvs()
 * @buf, @size, @tag, @ignore: as in sci_trecv(); sci_try_recvs() ignores the tags
 * @status: receives the result, when a message has been received
 */
struct sci_try_recv {
	void *buf;
	size_t size;
	uint64_t tag;
	uint64_t ignore;
	struct sci_status status;
};

/**
 * sci_try_recvs(), sci_try_trecvs() - receive messages that have arrived, without a request
 * @peer: the sender; NULL: any sender, but the same one for all messages of a call
 * @context: the context that the messages must have
 * @t: receives, in the order in which they take messages
 * @n: number of receives, at least 1
 *
 * The calls allocate no memory and do not wait. They make no progress, except that they receive
 * these messages. The other receives of @t have taken no message, but the buffer of the first of
 * these receives may have bytes of a message that is not complete yet.
 * Return: number of messages, which the first receives of @t have taken; -EAGAIN: no message has
 * arrived; -EBUSY: the program must post a receive, because the next message does not match the
 * first receive of @t, is longer than its buffer or not complete yet; or because another posted
 * receive or an unexpected message comes first; or because this fabric can lose packets.
 */
int sci_try_recvs(struct sci_ep *ep, struct sci_peer *peer, struct sci_try_recv *t,
		  int n);
int sci_try_trecvs(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
		   struct sci_try_recv *t, int n);

/**
 * sci_try_send(), sci_try_tsend() - send a message if the send needs neither a wait nor memory
 * @context: as in sci_tsend()
 * @tag: as in sci_tsend()
 * @imm: NULL, or the immediate of the message
 * @buf: the message, @len bytes; the caller may reuse it when the call returns
 *
 * The calls make no progress.
 * Return: 0; -EAGAIN: nothing has been sent, because there is no room, the message is too
 * long, the peer may read it from the sender's memory, or @peer is not connected. sci_isendm()
 * then sends the message in another way, or returns the error of the connection.
 */
int sci_try_send(struct sci_peer *peer, const void *buf, size_t len);
int sci_try_tsend(struct sci_peer *peer, uint32_t context, uint64_t tag,
		  const uint64_t *imm, const void *buf, size_t len);

/**
 * sci_isend(), sci_itsend(), sci_irecv(), sci_itrecv() - send or receive, non-blocking
 * @buf: must stay as it is until the request has completed
 * @req: is set to the request
 *
 * The other arguments are those of sci_send(), sci_tsend(), sci_recv() and sci_trecv(). The
 * request completes when the blocking call would return, with the same result.
 * Return: 0; -ENOMEM: out of memory, call again; -ENOBUFS: the connection has ended
 * for lack of memory; or another error of a connection that has ended.
 */
int sci_isend(struct sci_peer *peer, const void *buf, size_t len,
	      struct sci_req **req);
int sci_itsend(struct sci_peer *peer, uint32_t context, uint64_t tag,
	       const void *buf, size_t len, struct sci_req **req);
int sci_irecv(struct sci_ep *ep, struct sci_peer *peer, void *buf, size_t size,
	      struct sci_req **req);
int sci_itrecv(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
	       uint64_t tag, uint64_t ignore, void *buf, size_t size,
	       struct sci_req **req);

/**
 * sci_isendv(), sci_itsendv() - send a vector of pieces, non-blocking
 * @iov: @n pieces of memory, up to SCI_IOV_MAX. The caller may reuse the vector when the call
 *	returns, and the memory when the request has completed.
 * @flags: SCI_SEND_SYNC or 0
 * @req: is set to the request
 * Return: as for sci_isend().
 */
int sci_isendv(struct sci_peer *peer, const struct iovec *iov, size_t n,
	       unsigned int flags, struct sci_req **req);
int sci_itsendv(struct sci_peer *peer, uint32_t context, uint64_t tag,
		const struct iovec *iov, size_t n, unsigned int flags,
		struct sci_req **req);

/**
 * struct sci_send - a message for sci_isendm()
 * @iov, @n: the bytes of the message, as in sci_isendv()
 * @tag, @context: with SCI_SEND_TAGGED: the tag and the context of the message
 * @imm: with SCI_SEND_IMM: the immediate, a number that the receiver finds in the status
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
 * sci_isendm() - send a message with any flags, non-blocking
 * @send: the message; the caller may reuse the structure when the call returns
 * @req: is set to the request. NULL is allowed with SCI_SEND_COPY: then there is no request.
 *
 * An immediate fits into the line of a message of up to SCI_IMM_SHORT_MAX bytes. It costs longer
 * messages at most one more line. With SCI_SEND_COPY the library copies the bytes only if it
 * cannot send them at once. With SCI_SEND_AT_ONCE the call sets *@req to NULL if the send has
 * completed without an error; and if @req is NULL, the message never waits behind other messages.
 * Return: 0; -EAGAIN: make progress first, because @req is NULL and SCI_DETACHED_MAX such messages
 * wait to be sent to this peer, or because with SCI_SEND_AT_ONCE the message would have to
 * wait; -ENOMEM: out of memory, call again; -ENOBUFS: the connection has ended
 * for lack of memory; or another error of a connection that has ended.
 */
int sci_isendm(struct sci_peer *peer, const struct sci_send *send,
	       struct sci_req **req);

/**
 * sci_irecvv(), sci_itrecvv() - receive into a vector of pieces, non-blocking
 * @iov: @n pieces of memory, as in sci_isendv()
 * @req: is set to the request
 *
 * The other arguments are those of sci_recv() and sci_trecv().
 * Return: as for sci_irecv().
 */
int sci_irecvv(struct sci_ep *ep, struct sci_peer *peer,
	       const struct iovec *iov, size_t n, struct sci_req **req);
int sci_itrecvv(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
		uint64_t tag, uint64_t ignore, const struct iovec *iov,
		size_t n, struct sci_req **req);

/**
 * sci_irecv_many() - receive several messages into one buffer, one after the other
 * @peer: NULL, or the only sender
 * @buf: @size bytes, at least one. The library uses them until a completion has the flag
 *	SCI_STATUS_RETURNED.
 * @min: the receive ends when fewer bytes than this are left, or no bytes at all
 * @data: names the receive in its completions
 * @req: is set to the request, for sci_cancel() alone. It is freed when the completion with
 *	SCI_STATUS_RETURNED is taken.
 *
 * The receive takes messages without a tag, and stays before receives that are posted later. Each
 * message has its own completion in the queue of the endpoint. If a message is longer than the rest
 * of the buffer, its completion has the error -EMSGSIZE, and the receive ends. The last completion
 * has the flag SCI_STATUS_RETURNED. If the receive is cancelled or its connection ends, and no
 * message is in transfer, the last completion has an error, and no message: @buf of struct
 * sci_completion is NULL.
 * Return: 0; -ENOMEM: out of memory.
 */
int sci_irecv_many(struct sci_ep *ep, struct sci_peer *peer, void *buf, size_t size,
		   size_t min, void *data, struct sci_req **req);

/* ---- matching apart from copying ---- */

/**
 * sci_probe(), sci_tprobe() - wait for a message, and do not receive it
 * @timeout: how long to wait for a message
 * @status: NULL, or receives the sender, the length, the tag and the immediate
 *
 * The other arguments are those of sci_recv() and sci_trecv(). The message stays in the queue.
 * Return: 0; if there is no message: -EAGAIN with a @timeout of 0, else -ETIMEDOUT; or the
 * error of a connection that has ended.
 */
int sci_probe(struct sci_ep *ep, struct sci_peer *peer, int timeout,
	      struct sci_status *status);
int sci_tprobe(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
	       uint64_t tag, uint64_t ignore, int timeout,
	       struct sci_status *status);

/**
 * sci_match(), sci_tmatch() - take a message out of the queue
 * @msg: is set to the message, which the caller must end with sci_msg_free() or sci_msg_recv()
 *
 * No other receive gets the message. The program can get its bytes later, in whole or in parts.
 * The other arguments are those of sci_probe() and sci_tprobe().
 * Return: as for sci_probe().
 */
int sci_match(struct sci_ep *ep, struct sci_peer *peer, int timeout,
	      struct sci_msg **msg, struct sci_status *status);
int sci_tmatch(struct sci_ep *ep, struct sci_peer *peer, uint32_t context,
	       uint64_t tag, uint64_t ignore, int timeout,
	       struct sci_msg **msg, struct sci_status *status);

/*
 * Receive all bytes of @msg into @n pieces of memory, and free @msg. *@req is set to the request.
 * Return: as for sci_irecvv(). After an error @msg is still valid.
 */
int sci_msg_recv(struct sci_msg *msg, const struct iovec *iov, size_t n,
		 struct sci_req **req);

/**
 * sci_msg_copy() - copy a part of a message
 * @offset: where the part begins in the message
 * @buf: receives @len bytes
 *
 * The call waits until the whole message has arrived. Parts may be copied in any order.
 * Return: 0; -ERANGE: the part is not inside the message; -ENOMEM: out of memory; or an error
 * of a message, see struct sci_status.
 */
int sci_msg_copy(struct sci_msg *msg, size_t offset, void *buf, size_t len);

/**
 * sci_msg_data() - get a pointer to the bytes of a message
 * @data: is set to memory of the library, valid until sci_msg_free() or sci_msg_recv(). It has
 *	the length that the status of sci_match() gives.
 *
 * With this call a program receives a message without a buffer of its own. The call waits until the
 * whole message has arrived. @msg and its bytes stay valid after the end of the connection.
 * Return: 0; -ENOMEM: out of memory; or an error of a message, see struct sci_status.
 */
int sci_msg_data(struct sci_msg *msg, const void **data);

/* Free @msg, and drop its bytes. @msg may be NULL. */
void sci_msg_free(struct sci_msg *msg);

/* ---- handlers ---- */

#define SCI_HANDLERS		127u	/* ids of handlers are 0 to this - 1 */
#define SCI_HANDLER_LIBRARY	16u	/* first handler id for libraries that use libsci */
#define SCI_HANDLER_USER	64u	/* first handler id for programs */
#define SCI_HANDLER_MAX		8192u	/* bytes of a message to a handler */

/**
 * struct sci_handled - a message for a handler
 * @peer: the sender of the message
 * @tag: the number that the sender passed to sci_handler_send()
 * @data, @len: the bytes of the message, aligned to 8, in memory of the library that is valid
 *	until the handler returns. A hostile peer can change the bytes until then: a handler copies
 *	the numbers that it checks, and uses the copies.
 * @error: 0; -EBADMSG: a check sum is wrong, and @data is not valid
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
 * @id: SCI_HANDLER_USER to SCI_HANDLERS - 1 for a program; from SCI_HANDLER_LIBRARY on for a
 *	library that shares the endpoint with the program
 * @fn: the function; NULL: remove the function
 * @arg: is passed to @fn
 *
 * Progress calls @fn, on any thread that is in a call of the endpoint. It calls @fn for one
 * message at a time, in the order of each peer's messages. No receive has to be posted.
 * Unexpected messages delay messages to handlers only when they fill SCI_PARAM_UNEXPECTED_MAX. A
 * message without a function is dropped and counted. No message is handled before the first
 * call of the endpoint that makes progress.
 *
 * All other threads wait while @fn runs. So @fn must be short, must not sleep, and must not take a
 * lock that a thread holds around a call of this endpoint. @fn may make these calls of the endpoint
 * and its peers: sci_handler_send(), sci_handler_sendv(), sci_handler_set(), sci_isendm() without a
 * request, the calls about an address, name, fabric or traits, sci_completions_queued(),
 * sci_peer_ep(), sci_peer_data() and sci_peer_set_data(). Any other call aborts the program; with
 * SCI_EP_SINGLE_THREAD the library does not detect it.
 * Return: 0; -EINVAL: also if @id is less than SCI_HANDLER_LIBRARY.
 */
int sci_handler_set(struct sci_ep *ep, unsigned int id, sci_handler_fn fn,
		    void *arg);

/**
 * sci_handler_send(), sci_handler_sendv() - send a message to a handler of a peer
 * @id: the handler's id, as in sci_handler_set()
 * @tag: a number that the handler receives
 * @buf: the message; the caller may reuse the memory when the call returns
 * @len: up to SCI_HANDLER_MAX bytes; up to SCI_TAGGED_SHORT_MAX bytes fit into one line
 *
 * The calls never wait: the library copies a message that it cannot send at once. The message
 * arrives in the order of all messages to this peer, also if the connection is closed meanwhile.
 * Return: 0; -EMSGSIZE: the message is too long; -EAGAIN: SCI_DETACHED_MAX messages wait for
 * room, so make progress first (a handler that sends one answer to each request gets this error
 * only if its peer sends so many requests and receives no answers); -ENOMEM: out of
 * memory; or the error of a connection that has ended.
 */
int sci_handler_send(struct sci_peer *peer, unsigned int id, uint64_t tag,
		     const void *buf, size_t len);
int sci_handler_sendv(struct sci_peer *peer, unsigned int id, uint64_t tag,
		      const struct iovec *iov, size_t n);

/**
 * sci_wait_until() - wait for a condition that handlers or completions cause
 * @fn: tests the condition; returns -EAGAIN while it is false, else the value that
 *	sci_wait_until() returns
 * @arg: is passed to @fn
 *
 * The call makes progress: it polls first and then sleeps, as every wait. It calls @fn at the
 * beginning, and after each handler and each completion of the endpoint. The rules for handlers
 * apply to @fn. A store of a peer to mapped memory (sci_peer_map()) does not cause a call of @fn.
 * Return: the value of @fn, or -ETIMEDOUT.
 */
int sci_wait_until(struct sci_ep *ep, int (*fn)(void *arg), void *arg,
		   int timeout);

/* ---- exported buffers ---- */

/**
 * sci_buf_alloc() - allocate memory that peers can write to directly
 * @buf: is set to the memory, zeroed and aligned to a page, valid until sci_buf_free()
 *
 * A receive of at least SCI_PARAM_ZCOPY_MIN bytes into this memory is zero-copy. On fabrics with
 * SCI_TRAIT_FAST_READS a send from this memory is zero-copy, too. But every process that may
 * connect to the endpoint can write to the memory at any time.
 * Return: 0; -ENOMEM, -ENOSPC, -EMFILE: out of resources.
 */
int sci_buf_alloc(struct sci_ep *ep, size_t len, void **buf);

/*
 * Free a buffer of sci_buf_alloc(), or end sci_buf_share().
 * Return: 0; -EINVAL: @buf is not such a buffer; -EBUSY: a request uses it.
 */
int sci_buf_free(struct sci_ep *ep, void *buf);

/**
 * sci_buf_share() - let another endpoint of the process use a buffer
 * @ep: an endpoint that can then also receive into the buffer without a copy
 * @owner: the endpoint that has allocated the buffer, on the same fabric as @ep
 * @buf: a buffer of sci_buf_alloc() on @owner
 *
 * sci_buf_free() on @ep ends the sharing and does not free the buffer. The program must do this
 * before it frees the buffer or closes @owner.
 * Return: 0; -EINVAL: also if @buf is not a buffer of @owner; -EEXIST: @ep shares it already;
 * -ENOMEM: out of memory.
 */
int sci_buf_share(struct sci_ep *ep, struct sci_ep *owner, void *buf);

/**
 * sci_buf_register(), sci_buf_unregister() - make memory of the program an exported buffer
 * @addr: start of whole pages of private anonymous memory.
 *	The program should not unmap them before the last sci_buf_unregister(), see below.
 * @len: whole pages
 *
 * The library counts registrations of the same range. Every call that takes a buffer finds the
 * registration by the buffer's address.
 *
 * A program may unmap registered pages by mistake, as free() does, and map others at their address.
 * Until the next sci_buf_register() of the range, peers and zero-copy messages use the old pages.
 * On a fabric with SCI_TRAIT_REGISTER_COPIES this call registers the new pages under the same key.
 * Elsewhere the program must call sci_buf_unregister() for each registration first: the library cannot
 * see the change. A cache of registrations must therefore watch munmap(), as libfabric's caches do.
 * Return: 0; -EINVAL: not whole pages, or no such registration; -EEXIST: the range overlaps another
 * one; -EFAULT: the fabric cannot register this kind of memory; -EOPNOTSUPP: the fabric cannot
 * register memory; -ENOMEM, -EMFILE: out of resources; -EBUSY: a request uses the memory.
 */
int sci_buf_register(struct sci_ep *ep, void *addr, size_t len);
int sci_buf_unregister(struct sci_ep *ep, void *addr, size_t len);

/* ---- one-sided ---- */

/**
 * struct sci_key - names memory of an endpoint to its peers
 * @segment: the fabric's number of the segment that has the memory
 * @rail: its number on the second rail of the endpoint, or 0
 * @offset: start of the memory in the segment, in bytes
 * @len: length of the memory, in bytes
 *
 * sci_buf_key() makes a key. The program sends the key to peers unchanged. A key protects nothing:
 * see sci_buf_alloc().
 */
struct sci_key {
	uint32_t segment;
	uint32_t rail;
	uint64_t offset;
	uint64_t len;
};

/**
 * sci_buf_key() - make a key for exported memory
 * @addr: @len bytes in one buffer of sci_buf_alloc() or sci_buf_register()
 * @key: is set; valid until the buffer is freed or unregistered
 * Return: 0; -EINVAL: also if the bytes are not in one buffer.
 */
int sci_buf_key(struct sci_ep *ep, const void *addr, size_t len,
		struct sci_key *key);

/**
 * sci_iwritev(), sci_ireadv() - write to, or read from, a peer's memory
 * @key: a key of that peer
 * @offset: from the start of the memory that @key names
 * @iov: @n pieces of local memory
 * @req: is set to the request. NULL: there is no request; sci_flush() waits for all such
 *	transfers, and until then the library uses the local memory.
 *
 * The peer takes no part. But where caches are not coherent, or where the memory cannot be mapped
 * because the adapter's table or this process is full, the peer copies the bytes while a thread is
 * in a call of its endpoint. A write has arrived when its request completes. A message
 * that is sent after this completion arrives later than the write; another write may overtake the
 * first one. The processor moves the bytes: on an adapter the processor waits for each packet of a
 * read, so send a message instead of a long read. The library sends lost packets again.
 * Return: 0; -EAGAIN: @req is NULL and SCI_DETACHED_MAX such transfers are under way. Errors
 * of this call or of the request are -ERANGE: the bytes are beyond the memory that @key names,
 * or that exists; -ENOENT: the memory does not exist, or no longer exists, which the library may
 * detect late; -ECONNRESET, -ENOTCONN, -ECANCELED: the connection has ended; -ENOMEM, -ENOSPC,
 * -EMFILE: out of resources.
 */
int sci_iwritev(struct sci_peer *peer, const struct sci_key *key,
		uint64_t offset, const struct iovec *iov, size_t n,
		struct sci_req **req);
int sci_ireadv(struct sci_peer *peer, const struct sci_key *key,
	       uint64_t offset, const struct iovec *iov, size_t n,
	       struct sci_req **req);

/**
 * struct sci_strided - blocks of one length at regular distances
 * @buf: the first block in local memory
 * @buf_stride: bytes from the start of a block to the start of the next one in local memory; may be
 *	negative
 * @offset: offset of the first block in the memory that the key names
 * @stride: as @buf_stride, in the peer's memory
 * @len: bytes of a block
 * @n: number of blocks
 */
struct sci_strided {
	void *buf;
	ptrdiff_t buf_stride;
	uint64_t offset;
	int64_t stride;
	size_t len;
	size_t n;
};

/**
 * sci_iwrite_strided(), sci_iread_strided() - write or read blocks at regular distances
 * @key: a key of that peer
 * @s: the blocks; the caller may reuse the structure when the call returns. A write does not
 *	change the local memory.
 * @req: as in sci_iwritev()
 *
 * The calls work like sci_iwritev() and sci_ireadv(). All blocks are one transfer. If blocks overlap
 * in the memory that the transfer changes, the bytes there are those of any of them.
 * Return: 0; -EINVAL: also if the blocks are beyond the address space; or an error of sci_iwritev().
 */
int sci_iwrite_strided(struct sci_peer *peer, const struct sci_key *key,
		       const struct sci_strided *s, struct sci_req **req);
int sci_iread_strided(struct sci_peer *peer, const struct sci_key *key,
		      const struct sci_strided *s, struct sci_req **req);

/**
 * sci_write(), sci_read() - write to, or read from, a peer's memory, and wait for the bytes
 * @buf: @len bytes of local memory
 *
 * The other arguments are those of sci_iwritev().
 * Return: 0; or an error of sci_iwritev().
 */
int sci_write(struct sci_peer *peer, const struct sci_key *key,
	      uint64_t offset, const void *buf, size_t len);
int sci_read(struct sci_peer *peer, const struct sci_key *key,
	     uint64_t offset, void *buf, size_t len);

/**
 * enum sci_rmw_op - operations of an atomic read-modify-write
 * @SCI_RMW_READ: the word stays as it is
 * @SCI_RMW_SWAP: the word becomes the operand
 * @SCI_RMW_COMPARE_SWAP: the word becomes the operand if its bits are those of @compare
 * @SCI_RMW_AND, @SCI_RMW_OR, @SCI_RMW_XOR: bitwise, not for real numbers
 *
 * A sum of integers wraps. A minimum or maximum with a NaN leaves the word as it is.
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
 * struct sci_rmw - an atomic read-modify-write
 * @op: the operation
 * @type: type of the word and of the operands
 * @operand, @compare: bits of the operands; values of 4 bytes are in the lower half
 */
struct sci_rmw {
	enum sci_rmw_op op;
	enum sci_rmw_type type;
	uint64_t operand;
	uint64_t compare;
};

/**
 * sci_irmw(), sci_rmw() - change a word of a peer's memory atomically
 * @key: a key of that peer
 * @offset: of the word in the memory that @key names; the word must be aligned to its size
 * @rmw: the operation; the caller may reuse the structure when the call returns
 * @before: NULL, or receives the old value, 4 or 8 bytes
 * @req: as in sci_iwritev()
 *
 * sci_rmw() waits, sci_irmw() does not. Atomics of all peers, sci_rmw_apply() and atomic
 * instructions of the owner's process are atomic to each other. Stores to the word, such as those
 * of sci_iwritev(), are not. With SCI_TRAIT_SHARED_MEMORY the caller executes the atomic. Without
 * this trait the owner executes it while a thread is in a call of its endpoint. An atomic may
 * overtake other one-sided transfers that have not completed.
 * Return: 0; -EINVAL: also if the type does not have the operation, or the word is not
 * aligned; or an error of sci_iwritev().
 */
int sci_irmw(struct sci_peer *peer, const struct sci_key *key, uint64_t offset,
	     const struct sci_rmw *rmw, void *before, struct sci_req **req);
int sci_rmw(struct sci_peer *peer, const struct sci_key *key, uint64_t offset,
	    const struct sci_rmw *rmw, void *before);

/*
 * Change a word of this process, or of sci_peer_map(), atomically. The arguments are those of
 * sci_rmw(). Return: 0; -EINVAL: also if the type does not have the operation, or the word is not
 * aligned.
 */
int sci_rmw_apply(void *word, const struct sci_rmw *rmw, void *before);

/* The atomic that sci_iwrite_signal() applies after its bytes, to a word of the same peer. */
struct sci_write_signal {
	struct sci_key key;
	uint64_t offset;
	struct sci_rmw rmw;
};

/**
 * sci_iwrite_signal() - write, then change a word atomically, non-blocking
 * @signal: the word and the operation; the caller may reuse the structure when the call returns
 *
 * The other arguments are those of sci_iwritev(). A process that sees the new value of the word
 * sees the bytes, too. The request completes when the bytes and the atomic have arrived. If the
 * request fails, the word may have its old value.
 * Return: 0; or an error of sci_iwritev() or sci_irmw().
 */
int sci_iwrite_signal(struct sci_peer *peer, const struct sci_key *key,
		      uint64_t offset, const struct iovec *iov, size_t n,
		      const struct sci_write_signal *signal, struct sci_req **req);

/**
 * sci_iwrite_imm(), sci_write_imm() - write, then report the write to the peer's program
 * @imm: the immediate, a number for the program of the peer
 *
 * sci_write_imm() waits, sci_iwrite_imm() does not. The other arguments are those of sci_iwritev()
 * and sci_write(). The peer's endpoint must have been opened with SCI_EP_WRITE_EVENTS. When the bytes
 * have arrived, the queue of sci_completions() of that endpoint gets an event. The status of the
 * event has the flags SCI_STATUS_WRITTEN and SCI_STATUS_IMM, @imm, the number of bytes, and the
 * connection. A write without bytes also causes an event.
 *
 * The request completes when the bytes have arrived and the event has been sent. A message that is
 * sent after this completion arrives later than the event. If SCI_WRITE_EVENTS_MAX events of this
 * endpoint wait in the peer's queue, the request completes after the program of the peer has taken
 * some of them. If the request fails, the bytes may have arrived without an event.
 * Return: 0; -EOPNOTSUPP, of the request: the peer takes no events, and nothing has
 * been written; or an error of sci_iwritev().
 */
int sci_iwrite_imm(struct sci_peer *peer, const struct sci_key *key,
		   uint64_t offset, const struct iovec *iov, size_t n,
		   uint64_t imm, struct sci_req **req);
int sci_write_imm(struct sci_peer *peer, const struct sci_key *key,
		  uint64_t offset, const void *buf, size_t len, uint64_t imm);

/**
 * sci_flush() - wait until one-sided transfers to a peer have arrived
 *
 * The call waits for all transfers that were started without a request, and for stores of the
 * calling thread to memory of sci_peer_map().
 * Return: 0; -ETIMEDOUT: some transfer has not arrived; else the first error of a transfer since
 * the last sci_flush() that did not time out.
 */
int sci_flush(struct sci_peer *peer, int timeout);

/**
 * sci_peer_map() - map exported memory of a peer
 * @key: a key of that peer
 * @timeout: how long to wait for the memory, and for the connection if it is not established yet
 * @addr: is set to the address of the first byte that @key names
 *
 * The program then accesses the memory with loads, stores and atomic instructions, which are
 * ordered as between threads. The mapping stays until sci_peer_unmap() or sci_disconnect(). Until
 * then an access never faults: after the peer has freed the memory, or has died, the access reaches
 * pages that no other process uses. An access does not report the death of the peer; calls report
 * it. Two mappings of the same bytes may have the same address, and the library counts them.
 * Return: 0; -EOPNOTSUPP: no SCI_TRAIT_SHARED_MEMORY; -EINVAL: also if @key names no byte;
 * -ERANGE: the memory is shorter than @key says; -ENOENT: the memory does not exist;
 * -ETIMEDOUT: the peer has not answered; -ENOMEM, -EMFILE: out of resources; or the error of a
 * connection that has ended.
 */
int sci_peer_map(struct sci_peer *peer, const struct sci_key *key, int timeout,
		 void **addr);

/**
 * sci_peer_read_private() - copy bytes of a peer's private memory
 * @dst: room for @len bytes
 * @addr: address in the process of the peer
 *
 * The kernel copies, without the peer, if both processes are on one host and it would also let this
 * process trace the peer (ptrace(2)). The peer tells the address, and that the bytes are complete,
 * in another way: a message, or a word in exported memory.
 * Return: 0; -EOPNOTSUPP: the fabric, the kernel or permissions do not allow it; -EFAULT: the peer
 * has no such memory; -EAGAIN: the connection is not established yet; or the error of a connection
 * that has ended. After an error some bytes of @dst may have changed.
 */
int sci_peer_read_private(struct sci_peer *peer, void *dst, uint64_t addr, size_t len);

/*
 * End a mapping of sci_peer_map(). @addr is any address in the mapping.
 * Return: 0; -EINVAL: @addr is in no mapping.
 */
int sci_peer_unmap(struct sci_peer *peer, void *addr);

/* ---- progress ---- */

/*
 * Make progress, without waiting: receive messages, and continue transfers.
 * Return: number of steps made, or a negative errno value.
 */
int sci_progress(struct sci_ep *ep);

/**
 * sci_ep_fd() - get a descriptor for poll() and epoll
 *
 * After sci_ep_arm() the descriptor becomes readable when the endpoint may have work to do. It
 * belongs to the endpoint: the program must not read or close it.
 * Return: the descriptor; -EMFILE, -ENFILE, -ENOMEM: out of resources.
 */
int sci_ep_fd(struct sci_ep *ep);

/**
 * sci_ep_arm() - arm the descriptor before a sleep
 *
 * After this call the descriptor becomes readable when there is work, or when a call of another
 * thread queues a completion. It may also become readable without work, for example after a late
 * doorbell: then call sci_progress() and arm it again. Any call of the endpoint disarms the
 * descriptor.
 * Return: 0; -EAGAIN: there is work or a completion already: call sci_progress() or
 * sci_completions() instead of sleeping.
 */
int sci_ep_arm(struct sci_ep *ep);

#ifdef __cplusplus
}
#endif

#endif
