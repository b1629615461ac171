/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the net fabric
 *
 * This fabric connects processes that no adapter connects, over stream sockets (TCP, AF_UNIX,
 * vsock). It has segments and data interrupts. An endpoint opens it beside its own fabric if
 * SCI_NET is set. Imports are not memory: a mapping of an import is a range of addresses
 * without pages, and sci_stream_ops.put writes to the segment at such an address.
 *
 * instance	an open fabric, struct net, with a random nonce. It listens on the first
 *		free port of its range, or not at all
 * link		the session of two instances. Each direction is an endless stream of frames,
 *		and every byte has a position
 * socket	carries a link for some time, after a handshake in which both sides prove that
 *	they know the session's key (handshake.c): a stream socket, or a pipe through the
 *	memory of another fabric (pipe.h, wire.c)
 * gateway	an instance that relays the bytes of sockets for instances without a common
 *	network (gateway.c)
 * route	a way to a node from SCI_NET_PEERS: an address, a gateway, or the fabric below,
 *	the best one first. A link uses one route at a time, takes the next one when that
 *	fails, and tries earlier ones again (link.c)
 * target	memory of a program that the other side of a link may fill, for one message. Its
 *	bytes go from the socket to this memory
 *
 * The sender keeps all bytes that the receiver has not acknowledged, in the log or in the program's
 * memory (log.c). When a socket breaks, one side makes a new socket. Both sides send the position up
 * to which they have received, and the streams continue there. So no byte is lost, or received twice.
 *
 * One lock, svc.lock, protects all objects. A polling thread of the program (net_poll) or the
 * service thread reads the sockets. These two threads never wait for the same socket.
 */
#ifndef LIBSCI_NET_H
#define LIBSCI_NET_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "libsci/base/hash.h"
#include "libsci/base/list.h"
#include "libsci/base/host.h"
#include "libsci/fabric/core/fabric.h"
#include "libsci/fabric/core/service.h"
#include "libsci/fabric/net/pipe.h"

/* ---- addresses ---- */

#define NET_PORT	17764u		/* default port */
#define NET_SLOTS	16u		/* default number of ports of a node, consecutive */
#define NET_SLOTS_MAX	1024u
#define NET_KEY_MAX	256u

/*
 * The address of a node's first process; the node has @slots processes at most. With @via: the
 * address of the process in @slot of @node, behind the gateway of node @via. With @below: the
 * process in @slot of @node, through another fabric of this process. With @pipe: a data interrupt
 * of @node in such a fabric.
 */
struct net_addr {
	struct sockaddr_storage sa;
	socklen_t len;			/* 0: none */
	unsigned int slots;
	unsigned int via;
	unsigned int node, slot;
	bool below;
	bool routed;			/* from a route of this process */
	unsigned int turn;		/* number of the route, see net_route_addr() */
	uint32_t pipe;
};

struct net_route {
	struct list link;		/* net->routes */
	unsigned int node;
	struct net_addr addr;
};

/* ---- messages, little-endian ---- */

#define NET_MAGIC	0x4e494353u	/* "SCIN" */
#define NET_VERSION	3u
#define NET_RANDOM	16u
#define NET_MAC		32u

enum net_step { NET_HELLO = 1, NET_CHALLENGE, NET_PROOF, NET_WELCOME };

struct net_head {
	uint32_t magic;
	uint16_t version;
	uint16_t step;
};

struct net_hello {
	struct net_head head;
	uint32_t node;
	uint16_t port;			/* port at which the sender listens; 0: none */
	uint16_t slot;			/* of the sender's address; NET_SLOTS_MAX: none */
	uint64_t nonce;
	uint8_t random[NET_RANDOM];
};

struct net_challenge {
	struct net_head head;
	uint32_t node;
	uint32_t reserved;
	uint64_t nonce;
	uint8_t random[NET_RANDOM];
	uint8_t mac[NET_MAC];
};

struct net_proof {
	struct net_head head;
	uint32_t epoch;			/* number of the link's sockets, with this one */
	uint32_t wanted;		/* a data interrupt of the receiver; 0: any */
	uint32_t port;			/* a data interrupt of the sender */
	/*
	 * The node to which the gateway connects this socket; 0: the receiver is no gateway. For
	 * a gateway @epoch is the slot on that node, @wanted is an interrupt of that node, @yours
	 * is the nonce of the wanted instance (0: unknown), and @received is the number of
	 * gateways that may follow.
	 */
	uint32_t forward;
	uint64_t birth;			/* identifies the sender's half of the link */
	uint64_t yours;			/* identifies the receiver's half; 0: unknown */
	uint64_t received;		/* position up to which the sender has received */
	uint8_t mac[NET_MAC];
};

struct net_welcome {
	struct net_head head;
	int32_t status;
	uint32_t port;			/* a data interrupt of the sender */
	uint32_t slot;			/* as in struct net_hello */
	uint32_t reserved;
	uint64_t birth;
	uint64_t received;
	uint8_t mac[NET_MAC];
};

_Static_assert(sizeof(struct net_hello) == 40, "on the wire");
_Static_assert(sizeof(struct net_challenge) == 72, "on the wire");
_Static_assert(sizeof(struct net_proof) == 80, "on the wire");
_Static_assert(sizeof(struct net_welcome) == 72, "on the wire");

enum net_type {
	NET_ACK = 1,			/* only @ack */
	NET_PUT,			/* bytes for a segment */
	NET_CONNECT_SEG,		/* a question: import segment @object */
	NET_ANSWER,			/* to CONNECT_SEG: object is -status, offset the size */
	NET_LEAVE,			/* the sender has ended its import */
	NET_GONE,			/* the sender has destroyed the segment */
	NET_TRIGGER,			/* a data interrupt */
	NET_GET,			/* read a segment at @offset; a length follows */
	NET_DATA,			/* answers a GET; without bytes: object is -status */
	NET_BYE,			/* the sender ends the link */
	NET_FILL,			/* bytes for target @object */
	NET_TYPES
};

enum { NET_ACK_NOW = 1 };

struct net_frame {
	uint8_t type;
	uint8_t flags;
	uint16_t reserved;
	uint32_t len;			/* number of bytes that follow */
	uint32_t object;		/* id of a segment or target, or number of an interrupt */
	uint32_t request;		/* number of the question that is asked or answered */
	uint64_t offset;
	uint64_t ack;			/* position up to which the sender has received */
};

_Static_assert(sizeof(struct net_frame) == 32, "on the wire");

#define NET_SMALL	4096u		/* a longer frame is handled in parts */
#define NET_BIG		(1u << 20)	/* the longest frame, in bytes */
#define NET_TRIGGER_MAX	1024u		/* the longest data of an interrupt, in bytes */
#define NET_TRIGGERS	256u		/* limit of queued data interrupts */
#define NET_GET_MAX	(256u << 10)
#define NET_GETS	64u		/* reads in flight, per link */
#define NET_ACK_EVERY	(64u << 10)
#define NET_ACK_LATE	(256u << 10)	/* acknowledge before all bytes are read */

/* ---- objects ---- */

#define NET_KEEN	4u		/* links that threads of the program poll */
#define NET_IN		(16u << 10)	/* room for bytes that are not received in place */
#define NET_WINDOW	(1u << 20)	/* unacknowledged bytes, before a long PUT has to wait */

_Static_assert(NET_IN > 2 * (NET_SMALL + sizeof(struct net_frame)), "room for a read");

struct net;

#define NET_EXTENTS	64u
#define NET_PIECES	16u

/* Bytes of a stream that are not in the ring of its log. */
struct net_extent {
	uint64_t at;			/* position of the first byte */
	uint64_t lent_before;		/* number of all lent bytes before this position */
	const uint8_t *data;
	size_t len;
	const void *owner;		/* who has lent the bytes; NULL: they are in @copy */
	uint8_t *copy;
};

/* The unacknowledged bytes of a stream, from position @acked on. Positions only grow. */
struct net_log {
	uint8_t *buf;
	size_t size;			/* a power of two; 0: none yet */
	uint64_t acked;
	uint64_t sent;
	uint64_t written;
	uint64_t lent;			/* number of all lent bytes before position @written */
	uint32_t extents_first;		/* numbers of extents, mod 2^32 */
	uint32_t extents_end;
	struct net_extent *extents;	/* NET_EXTENTS; NULL: no byte was lent yet */
};

/* Fabrics that carry pipes: that of the endpoint, and those of a gateway. */
#define NET_UNDERS	SCI_GATEWAY_FABRICS
#define NET_PIPE_PORT	0x01000000u	/* + an instance's interrupt: its port for pipes */
#define NET_GATEWAY	0x4f000001u	/* the port for pipes of a node's gateway */

struct net_under {
	struct sci_fabric *fabric;
	unsigned int adapter;
	struct sci_lintr *port;
	bool owned;			/* close the fabric with the net */
};

struct net_pipe {
	struct list link;		/* net->pipes */
	struct list ready;
	struct net *net;
	struct net_under *under;
	struct sci_pipe pipe;
	unsigned int node;
	uint64_t number;		/* the other side's number, or its interrupt */
	bool client;
	bool opening;			/* the thread that opens the pipe uses this */
	bool orphan;			/* the opening thread frees this */
	bool paused;
	int ret;			/* result of the opening */
	_Atomic bool woken;
	void (*fn)(void *obj);
	void *obj;
};

struct net_socket {
	struct list link;		/* net->handshakes, until a link uses the socket */
	struct net *net;
	int fd;				/* -1: a pipe */
	struct net_pipe *pipe;
	bool client;
	bool connecting;
	bool blocked;			/* the last send found no room */
	bool writes;			/* watched for room to send */
	enum net_step step;		/* the next message to receive */
	size_t have;
	uint8_t in[sizeof(struct net_proof)];
	struct net_hello hello;
	struct net_challenge challenge;
	struct net_proof proof;
	uint64_t deadline_ms;
	struct net_link *of;		/* the link of this socket, also in the handshake */
	uint64_t only;			/* client: nonce of the wanted instance; 0: any */
	bool returning;			/* client: replaces a working socket on a later route */
	uint32_t wanted;
	struct net_addr addr;		/* client: the other end's address */
	bool hop;			/* client: a gateway has not connected the next hop yet */
	uint32_t hops;			/* number of gateways that may follow */
	struct net_dial *dial;		/* result for a waiting thread; or NULL */
	struct net_forward *forward;	/* the relay that has this socket as a side */
};

#define NET_HOPS	8u
#define NET_FORWARDS	4096u		/* relays at a time; each has two buffers */
#define NET_FORWARD_BUF	(64u << 10)

/* Bytes between two sockets of a gateway. */
struct net_bytes {
	uint8_t *buf;			/* NULL: not needed so far */
	size_t from, to;
};

struct net_forward {
	struct list link;		/* net->forwards */
	struct net_socket *side[2];	/* the client, and the next hop */
	struct net_bytes bytes[2];	/* from side i to the other side */
	bool up;
	unsigned int turn;		/* the next route to try */
	struct list busy;		/* net->busy, while the service thread polls it */
	uint64_t moved_ns;		/* when bytes were last moved */
	unsigned int moves;		/* turns with bytes since the last poll */
	unsigned int misses;		/* polls without bytes since the last success */
};

/* A connect for which a thread waits. */
struct net_dial {
	bool done;
	int ret;
};

enum net_link_state { LINK_NEW, LINK_UP, LINK_BROKEN };

struct net_link {
	struct list link;		/* net->links */
	struct net *net;
	uint64_t nonce;			/* of the other instance */
	unsigned int node;
	enum net_link_state state;
	struct net_socket *socket;	/* NULL while the link is broken */
	uint32_t epoch;			/* number of sockets so far */
	bool ours;			/* this side has made the last socket */
	uint64_t birth, their_birth;
	struct net_log log;
	uint64_t received;		/* position of the received stream */
	uint64_t told;			/* position that was last acknowledged */
	bool ack_now;
	bool bye;			/* the other side has sent a BYE */
	bool failed;			/* the log had no room, or its bytes cannot be read */
	uint32_t port;			/* a data interrupt of the other instance */

	/* an incomplete frame */
	uint8_t part[NET_SMALL + sizeof(struct net_frame)];
	size_t part_len;
	struct net_frame big;
	uint64_t big_done;
	bool in_big;

	struct list imports;		/* struct sci_rseg */
	struct list importers;		/* struct net_importer */
	unsigned int n_importers;
	struct list targets;		/* struct sci_stream_target */
	struct list questions;		/* struct net_question */
	struct list left;		/* struct net_left */
	struct list gets;		/* struct sci_stream_get: our reads */
	struct list serving;		/* struct net_served: the other side's reads */
	unsigned int n_serving;
	struct net_addr addr;		/* the other side's; see net_addr_known() */
	bool dialing;
	unsigned int turn;		/* the route in use, or of the next attempt to connect */
	unsigned int better;		/* the earlier route to try next */
	uint32_t return_pause_ms;	/* see link_return() */
	uint64_t return_ms;
	unsigned int missing;		/* attempts in a row without a gateway, or without a listener */
	bool cut;			/* an adapter had no link during the last attempt */
	bool silent;			/* the link broke because no bytes could arrive */
	bool keen;			/* threads of the program poll the link */
	bool fresh;			/* the service thread has read it recently */
	struct list held;		/* net->held, while bytes wait for the end of a row */
	unsigned int row;		/* messages that wait */
	uint64_t pushed_ns;		/* time of the last push */
	uint64_t pushed_rx;		/* value of @received at that time */
	uint64_t copied_at;		/* position of the last frame, a short PUT or FILL */
	uint64_t copied_end;		/* end of that frame; 0: the last frame is none of them */
	struct net_frame copied;
	uint64_t last_rx_ms, last_tx_ms, broken_ms, dial_ms;
};

struct net_importer {
	struct list of_link;
	struct list of_seg;
	struct net_link *by;
	struct sci_lseg *seg;
};

/* A question. The thread that waits for the answer has this structure on its stack. */
struct net_question {
	struct net *net;
	struct list link;
	uint32_t id;
	bool done;
	int ret;
	struct sci_rseg *seg;		/* becomes an import with the answer */
	const void *owner;		/* for net_cancel_connect() */
	struct net_left *left;
};

/*
 * A connect to a segment for whose answer no thread waits any more. If the answer is yes, the owner
 * of the segment counts this process as an importer, until a NET_LEAVE.
 */
struct net_left {
	struct list link;
	uint32_t question;
	uint32_t segment;
};

/* A read that the other side has requested. It waits for room in the log. */
struct net_served {
	struct list link;
	uint32_t segment;
	uint32_t request;
	uint32_t len;
	uint64_t offset;
};

struct sci_lseg {
	struct hash_node by_id;
	struct net *net;
	uint32_t id;
	uint64_t size;
	uint8_t *addr;			/* NULL: no memory yet (EMPTY) */
	bool owned;			/* mapped by this fabric */
	bool exported;
	bool rings;			/* has a bell: tell the owner that bytes have arrived */
	sci_event_fn event;
	void *owner;
	struct list importers;
};

struct sci_rseg {
	struct list link;
	struct net *net;
	struct net_link *of;		/* NULL: the segment or the link has ended */
	uint64_t acked;			/* acknowledged position at that end */
	uint32_t id;
	uint64_t size;
	uint8_t *addr;			/* the reserved addresses */
	sci_event_fn event;
	void *owner;
	struct sci_rseg_status status;
};

struct net_message {
	struct list link;
	size_t len;
	uint8_t data[];
};

/* A data interrupt. The net fabric has no other interrupts. */
struct sci_lintr {
	struct list link;		/* net->lintrs */
	struct net *net;
	uint32_t number;
	sci_event_fn event;
	void *owner;
	struct list messages;
	unsigned int n_messages;
};

struct sci_rintr {
	struct list link;		/* net->rintrs */
	struct net *net;
	struct net_link *of;		/* NULL: the link has ended */
	uint32_t number;
};

struct net {
	struct sci_fabric base;
	struct sci_service svc;
	struct sci_link_status status;
	pthread_cond_t cond;		/* signals answers, and ends of connects */
	unsigned int node;
	uint64_t nonce;
	uint8_t key[NET_KEY_MAX];
	size_t key_len;
	uint32_t retry_ms;
	struct net_addr listen;		/* len 0: it does not listen */
	int listen_fd;
	uint16_t port;
	unsigned int slot;		/* of its address; NET_SLOTS_MAX: it does not listen */
	struct list routes;
	struct list links;
	struct list handshakes;
	struct net_under under[NET_UNDERS];
	unsigned int n_under;
	/* by node: the number of the fabric that reached the node last */
	uint8_t under_of[SCI_NODE_MAX / SCI_NODE_STEP + 1];
	struct list pipes;
	unsigned int n_opening;		/* pipes that threads are opening */
	unsigned int n_accepting;	/* ... for other processes */
	int pipe_fd;			/* eventfd for events of pipes; -1: none yet */
	_Atomic bool pipe_news;
	bool gateway;
	struct list forwards;
	struct list busy;		/* relays that the service thread polls */
	unsigned int n_forwards, n_busy;
	unsigned int n_handshakes;	/* handshakes that other processes have begun */
	struct hash segments;
	struct list lintrs;
	struct list rintrs;
	uint32_t next_question;
	bool answered;			/* a waiting thread has got its answer */
	uint32_t next_target;
	bool stopped;			/* connects fail from now on */
	bool closing;
	int timer_fd;
	uint32_t tick_ms;		/* interval in ms; 0: stopped */
	uint64_t now_ms;		/* time of the last tick */
	uint64_t ticked_ms;		/* end of the last tick, or start of the timer */

	void (*news)(void *owner);	/* reports bytes and new sockets; on the service thread */
	void *news_owner;
	uint32_t polls;			/* polls by threads of the program, mod 2^32 */
	uint32_t polls_seen;		/* value of @polls at the last tick */
	struct net_link *keen[NET_KEEN];
	unsigned int n_keen;
	bool fresh;			/* some link is fresh */
	struct list held;		/* links with bytes that wait */
	uint32_t row_ns, row_wait_ns;	/* limits of row.c */
	int row_fd;			/* timer that ends waits */
	bool row_set;			/* the timer runs */
	uint64_t sends, receives;	/* calls of sendmsg() and recvmsg() */
	uint8_t in[NET_IN];
	uint8_t waste[NET_IN];
};

static inline struct net *net_of(struct sci_fabric *f)
{
	return container_of(f, struct net, base);
}

/* address.c */
int net_read_environment(struct net *net, const char *spec, const char *peers);
void net_routes_free(struct net *net);
struct net_route *net_route_find(struct net *net, unsigned int node);
bool net_addr_known(const struct net_addr *addr);
bool net_route_addr(struct net *net, unsigned int node, unsigned int turn,
		    struct net_addr *to);
bool net_addr_slot(const struct net_addr *from, unsigned int slot, struct net_addr *to);
void net_addr_set_port(struct net_addr *addr, uint16_t port);
uint16_t net_addr_port(const struct net_addr *addr);

/* auth.c */
int net_auth_init(void);
int net_random(void *buf, size_t len);
void net_mac(const struct net *net, const char *role, const struct iovec *parts,
	     size_t n, uint8_t mac[NET_MAC]);
bool net_mac_equal(const uint8_t *a, const uint8_t *b);

/* listen.c */
int net_listen(struct net *net);
void net_listen_end(struct net *net);

/* handshake.c */
int net_socket_open(int family);
int net_dial_start(struct net *net, const struct net_addr *to, uint64_t only,
		   uint32_t wanted, struct net_dial *dial);
void net_socket_end(struct net_socket *s, int error);
void net_handshakes_check(struct net *net, uint64_t now);

int net_dial(struct net *net, const struct net_addr *to, uint32_t wanted, uint32_t hops,
	     struct net_forward *forward);
void net_accept(struct net *net, int fd, struct net_pipe *pipe);
int net_forward_answer(struct net_socket *s, int error);

/* wire.c */
int net_wire_connect(struct net_socket *s, const struct net_addr *to, sci_watch_fn fn);
int net_wire_connected(struct net_socket *s);
int net_wire_watch(struct net_socket *s, uint32_t events, sci_watch_fn fn);
void net_wire_events(struct net_socket *s, uint32_t events);
void net_wire_again(struct net_socket *s);
void net_wire_pause(struct net_socket *s, bool pause);
bool net_wire_down(const struct net_socket *s);
bool net_unders_down(struct net *net);
void net_wire_close(struct net_socket *s);
ssize_t net_wire_send(struct net_socket *s, const struct iovec *iov, size_t n);
ssize_t net_wire_recv(struct net_socket *s, const struct iovec *iov, size_t n);
int net_under_add(struct net *net, struct sci_fabric *fabric, unsigned int adapter,
		  uint32_t number, bool owned);
struct net_under *net_under_find(struct net *net, unsigned int node);
void net_unders_end(struct net *net);
void net_unders_close(struct net *net);
void net_pipes_wait(struct net *net);
void net_pipes_tick(struct net *net);
void net_pipe_close(struct net_pipe *p);

/* gateway.c */
int net_forward_begin(struct net_socket *s);
void net_forward_ready(struct net_socket *s);
void net_forward_end(struct net_forward *f, struct net_socket *closing, int error);
bool net_forwards_poll(struct net *net, bool crowded);

/* log.c */
int net_log_add(struct net_log *log, const void *data, size_t len);
void net_log_change(struct net_log *log, uint64_t at, const void *data, size_t len);
bool net_log_acked(struct net_log *log, uint64_t position);
bool net_log_may_lend(const struct net_log *log);
int net_log_lend(struct net_log *log, const void *owner, const void *data, size_t len);
int net_log_take_back(struct net_log *log, const void *owner);
size_t net_log_unsent(struct net_log *log, struct iovec iov[NET_PIECES]);
void net_log_free(struct net_log *log);

/* link.c */
struct net_link *net_link_new(struct net *net, uint64_t nonce, unsigned int node);
struct net_link *net_link_find(struct net *net, uint64_t nonce);
void net_link_take(struct net_link *l, struct net_socket *s, uint32_t epoch, bool ours);
void net_link_attach(struct net_link *l, struct net_socket *s, uint64_t received);
void net_link_break(struct net_link *l, uint64_t since);
void net_link_lost(struct net_link *l, bool died);
void net_link_dialed(struct net_link *l, const struct net_addr *to, int error);
void net_link_check(struct net_link *l, uint64_t now);
int net_link_send(struct net_link *l, struct net_frame *f, const void *data);
int net_link_lend(struct net_link *l, struct net_frame *f, const void *data, const void *owner);
void net_links_take_back(struct net *net, const void *owner);
void net_link_flush(struct net_link *l);

/* row.c */
int net_rows_init(struct net *net);
bool net_link_push(struct net_link *l);
void net_rows_send(struct net *net);

/* poll.c */
void net_link_ready(void *socket);
bool net_poll(struct sci_fabric *f);
void net_rest(struct sci_fabric *f);
void net_keen_end(struct net_link *l);
void net_keen_tick(struct net *net);

/* frame.c */
int net_frames_take(struct net_link *l, const uint8_t *in, size_t len);
size_t net_big_target(struct net_link *l, uint8_t **to);
void net_big_came(struct net_link *l, size_t len);

/* connect.c */
int net_reach(struct net *net, unsigned int node, uint32_t port, uint32_t timeout,
	      struct net_link **out);
int net_ask(struct net_link *l, uint32_t timeout, const void *owner, struct sci_rseg *seg);
void net_cancel_connect(struct sci_fabric *f, const void *owner);
void net_answered(struct net_link *l, const struct net_frame *f);
void net_questions_end(struct net_link *l, int error);

/* segment.c */
int net_lseg_create(struct sci_fabric *f, const struct sci_lseg_param *p,
		    struct sci_lseg **out);
int net_lseg_export(struct sci_lseg *s, unsigned int adapter);
int net_lseg_unexport(struct sci_lseg *s, enum sci_unexport how);
unsigned int net_lseg_importers(struct sci_lseg *s);
void net_lseg_destroy(struct sci_lseg *s);
uint32_t net_lseg_id(struct sci_lseg *s);
uint64_t net_lseg_size(struct sci_lseg *s);
void net_lseg_rang(struct sci_lseg *s, unsigned int node);
int net_lseg_map(struct sci_lseg *s, uint64_t off, size_t len, unsigned int flags,
		 void **addr);
int net_lseg_register(struct sci_lseg *s, void *addr, size_t len);
struct net_importer *net_importer_find(struct net_link *l, uint32_t id);
int net_importer_add(struct net_link *l, uint32_t id, uint64_t *size);
void net_importer_end(struct net_importer *i, enum sci_event_type type);
void net_unmap(struct sci_fabric *f, void *addr, size_t len);

/* import.c */
int net_rseg_connect(struct sci_fabric *f, const struct sci_rseg_param *p,
		     struct sci_rseg **out);
void net_rseg_disconnect(struct sci_rseg *r);
uint64_t net_rseg_size(struct sci_rseg *r);
bool net_rseg_readonly(struct sci_rseg *r);
struct sci_rseg_status *net_rseg_status(struct sci_rseg *r);
int net_rseg_map(struct sci_rseg *r, uint64_t off, size_t len, unsigned int flags,
		 void **addr);
void net_store_barrier(struct sci_fabric *f, struct sci_rseg *r);
void net_segment_gone(struct net_link *l, uint32_t id);
void net_imports_lost(struct net_link *l);

/* stream.c */
extern const struct sci_stream_ops net_stream_ops;
struct sci_stream_target *net_target_find(struct net_link *l, uint32_t id);
void net_targets_end(struct net_link *l);
int net_get_asked(struct net_link *l, const struct net_frame *f, const uint8_t *data);
void net_serve(struct net_link *l);
struct sci_stream_get *net_get_find(struct net_link *l, uint32_t id);
void net_get_end(struct sci_stream_get *g, int error);
void net_gets_end(struct net_link *l);

/* interrupt.c */
int net_lintr_create(struct sci_fabric *f, struct sci_lintr_param *p,
		     struct sci_lintr **out);
int net_lintr_wait(struct sci_lintr *i, void *data, size_t *len, uint32_t timeout);
int net_lintr_fd(struct sci_lintr *i);
void net_lintr_cancel(struct sci_lintr *i);
void net_lintr_destroy(struct sci_lintr *i);
int net_rintr_connect(struct sci_fabric *f, const struct sci_rintr_param *p,
		      struct sci_rintr **out);
int net_rintr_trigger(struct sci_rintr *i, const void *data, size_t len);
void net_rintr_disconnect(struct sci_rintr *i);
uint32_t net_port(struct net *net);
struct sci_lintr *net_lintr_find(struct net *net, uint32_t number);
void net_triggered(struct net *net, const struct net_frame *f, const uint8_t *data);
void net_rintrs_lost(struct net_link *l);

/* net.c */
void net_timer_set(struct net *net);

#endif
