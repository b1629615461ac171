/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the net fabric
 *
 * Segments and interrupts of processes that no adapter reaches, over stream sockets
 * (TCP, AF_UNIX, vsock).  An endpoint opens it beside its own fabric if SCI_NET says
 * so.  Imports are not memory: a map of an import is a range of addresses without
 * pages, and sci_stream_ops.put writes to the segment that they stand for.
 *
 * instance	one open fabric, struct net; it has a random nonce.  It listens on the
 *		first free port of its range, if it listens
 * link		the session of two instances.  Each direction is one stream of frames,
 *		which has no end, and of which every byte has a position
 * socket	what carries a link at the moment, after a handshake in which both sides
 *		prove that they have the session's key (handshake.c): a stream socket, or
 *		a pipe through memory of another fabric (pipe.h, wire.c)
 * gateway	an instance that passes the bytes of sockets on to other sockets for
 *		instances that have no network in common (gateway.c)
 *
 * The sender keeps all bytes that the receiver has not acknowledged (log.c).  When
 * a socket breaks another one is made; both sides say up to which position they have
 * received, and the streams go on there.  So nothing is lost, and nothing comes twice.
 *
 * One lock, svc.lock, covers everything.  A thread of the program that polls (net_poll)
 * or the service thread reads sockets; never both wait for the same one.
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

#define NET_PORT	17764u		/* unless SCI_NET says another */
#define NET_SLOTS	16u		/* ports of a node, from the first on */
#define NET_SLOTS_MAX	1024u
#define NET_KEY_MAX	256u

/*
 * The first address of a node; a process has one of @slots.  With @via it is that of
 * the process in @slot of @node, behind the gateway of node @via; with @pipe it is a
 * data interrupt of @node in a fabric that this process is in.
 */
struct net_addr {
	struct sockaddr_storage sa;
	socklen_t len;			/* 0: none */
	unsigned int slots;
	unsigned int via;
	unsigned int node, slot;
	uint32_t pipe;
};

struct net_route {
	struct list link;		/* net->routes */
	unsigned int node;
	struct net_addr addr;
};

/* ---- on the wire, little-endian ---- */

#define NET_MAGIC	0x4e494353u	/* "SCIN" */
#define NET_VERSION	1u
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
	uint16_t port;			/* where the sender listens; 0: nowhere */
	uint16_t reserved;
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
	uint32_t epoch;			/* of the link, which this socket begins */
	uint32_t wanted;		/* an interrupt of the other side; 0: none */
	uint32_t port;			/* the sender's interrupt */
	/*
	 * A node that the other side, a gateway, connects this socket to; 0: none.  Then
	 * @epoch is the slot there, @wanted an interrupt of that node, and @received
	 * counts the gateways that may follow.
	 */
	uint32_t forward;
	uint64_t birth;			/* of the sender's half of the link ... */
	uint64_t yours;			/* ... and of the receiver's; 0: not known */
	uint64_t received;		/* position up to which the sender has received */
	uint8_t mac[NET_MAC];
};

struct net_welcome {
	struct net_head head;
	int32_t status;
	uint32_t port;			/* as that of a PROOF */
	uint64_t birth;
	uint64_t received;
	uint8_t mac[NET_MAC];
};

_Static_assert(sizeof(struct net_hello) == 40, "on the wire");
_Static_assert(sizeof(struct net_challenge) == 72, "on the wire");
_Static_assert(sizeof(struct net_proof) == 80, "on the wire");
_Static_assert(sizeof(struct net_welcome) == 64, "on the wire");

enum net_type {
	NET_ACK = 1,			/* nothing but its ack */
	NET_PUT,			/* bytes for a segment */
	NET_CONNECT_SEG,		/* is there such a segment? */
	NET_ANSWER,			/* to that: -status as object, size as offset */
	NET_LEAVE,			/* the sender has no import any more */
	NET_GONE,			/* the segment is not there any more */
	NET_TRIGGER,			/* a data interrupt */
	NET_GET,			/* offset bytes of a segment are wanted, as many
					 * as the 4 bytes that follow say */
	NET_DATA,			/* ... and come; without bytes: -status as object */
	NET_BYE,			/* the sender ends the link */
	NET_TYPES
};

enum { NET_ACK_NOW = 1 };

struct net_frame {
	uint8_t type;
	uint8_t flags;
	uint16_t reserved;
	uint32_t len;			/* of the bytes that follow */
	uint32_t object;		/* segment or interrupt */
	uint32_t request;		/* number of a question, in both directions */
	uint64_t offset;
	uint64_t ack;			/* position up to which the sender has received */
};

_Static_assert(sizeof(struct net_frame) == 32, "on the wire");

#define NET_SMALL	4096u		/* longer frames are never in one piece */
#define NET_BIG		(1u << 20)	/* bytes of a frame at most */
#define NET_TRIGGER_MAX	1024u		/* ... of a data interrupt */
#define NET_TRIGGERS	256u		/* data interrupts that wait to be fetched */
#define NET_GET_MAX	(256u << 10)
#define NET_GETS	64u		/* questions for bytes at a time, per link */
#define NET_ACK_EVERY	(64u << 10)

/* ---- objects ---- */

#define NET_KEEN	4u		/* links that threads of the program poll */
#define NET_IN		(16u << 10)	/* of a read, but for what goes into place */
#define NET_WINDOW	(1u << 20)	/* bytes on their way: no long PUT beyond */

_Static_assert(NET_IN > 2 * (NET_SMALL + sizeof(struct net_frame)), "room for a read");

struct net;

/* Bytes from @acked on are kept.  Positions only grow. */
struct net_log {
	uint8_t *buf;
	size_t size;			/* a power of two; 0: none yet */
	uint64_t acked;
	uint64_t sent;
	uint64_t written;
};

/* A fabric below: of the endpoint, or of a gateway. */
#define NET_UNDERS	8u
#define NET_PIPE_PORT	0x01000000u	/* + the interrupt of an instance: its pipes' */
#define NET_GATEWAY	0x4f000001u	/* the interrupt of a node's gateway, for pipes */

struct net_under {
	struct sci_fabric *fabric;
	unsigned int adapter;
	struct sci_lintr *port;
	bool owned;			/* closed with the net */
};

struct net_pipe {
	struct list link;		/* net->pipes */
	struct list ready;
	struct net *net;
	struct net_under *under;
	struct sci_pipe pipe;
	unsigned int node;
	uint64_t number;		/* of the other side; client: its port */
	bool client;
	bool opening;			/* a thread has it */
	bool orphan;			/* ... and frees it */
	bool paused;
	int ret;			/* of the opening */
	_Atomic bool woken;
	void (*fn)(void *obj);
	void *obj;
};

struct net_socket {
	struct list link;		/* net->handshakes, until it carries a link */
	struct net *net;
	int fd;				/* -1: it is a pipe */
	struct net_pipe *pipe;
	bool client;
	bool connecting;
	bool blocked;			/* for sending */
	bool writes;			/* watched for that */
	enum net_step step;		/* the message that comes next */
	size_t have;
	uint8_t in[sizeof(struct net_proof)];
	struct net_hello hello;
	struct net_challenge challenge;
	struct net_proof proof;
	uint64_t deadline_ms;
	struct net_link *of;		/* the link that it carries, or is to */
	uint64_t only;			/* client: the nonce wanted; 0: any */
	uint32_t wanted;
	struct net_addr addr;		/* client: where it has connected to */
	bool hop;			/* client: the gateway has not connected it yet */
	uint32_t hops;			/* gateways that may follow */
	struct net_dial *dial;		/* who waits for it; NULL: nobody */
	struct net_forward *forward;	/* a side of that */
};

#define NET_HOPS	8u
#define NET_FORWARDS	4096u		/* at a time; each has two buffers */
#define NET_FORWARD_BUF	(64u << 10)

/* Bytes on their way from a socket to another one. */
struct net_bytes {
	uint8_t *buf;			/* NULL: none needed so far */
	size_t from, to;
};

struct net_forward {
	struct list link;		/* net->forwards */
	struct net_socket *side[2];	/* who asked, and who was asked for */
	struct net_bytes bytes[2];	/* from side i to the other one */
	bool up;
};

/* A thread in a connect. */
struct net_dial {
	bool done;
	int ret;			/* 0: @of carries on */
	struct net_link *of;
};

enum net_link_state { LINK_NEW, LINK_UP, LINK_BROKEN };

struct net_link {
	struct list link;		/* net->links */
	struct net *net;
	uint64_t nonce;			/* of the other instance */
	unsigned int node;
	enum net_link_state state;
	struct net_socket *socket;	/* NULL while it is broken */
	uint32_t epoch;			/* sockets so far */
	bool ours;			/* the last one was made by this side */
	uint64_t birth, their_birth;
	struct net_log log;
	uint64_t received;		/* bytes taken in */
	uint64_t told;			/* ... of which the other side knows */
	bool ack_now;
	bool bye;			/* the other side has said so */
	bool failed;			/* there was no room for a frame */
	uint32_t port;			/* the data interrupt there */

	/* the frame of which not all has come */
	uint8_t part[NET_SMALL + sizeof(struct net_frame)];
	size_t part_len;
	struct net_frame big;
	uint64_t big_done;
	bool in_big;

	struct list imports;		/* struct sci_rseg */
	struct list importers;		/* struct net_importer */
	unsigned int n_importers;
	struct list questions;		/* struct net_question */
	struct list gets;		/* struct sci_stream_get: asked by us */
	struct list serving;		/* struct net_served: asked by them, no room yet */
	unsigned int n_serving;
	struct net_addr addr;		/* where the other side listens; len 0: nowhere */
	bool dialing;
	unsigned int dials;		/* in vain, since it broke */
	bool silent;			/* it broke since nothing came */
	bool keen;			/* threads of the program poll it */
	bool fresh;			/* the service thread has read from it lately */
	uint64_t put_at;		/* the last PUT frame, if it is short ... */
	uint64_t put_end;		/* ... which ends here, if nothing came after it */
	struct net_frame put;
	uint64_t last_rx_ms, last_tx_ms, broken_ms, dial_ms;
};

struct net_importer {
	struct list of_link;
	struct list of_seg;
	struct net_link *by;
	struct sci_lseg *seg;
};

/* An answer that a thread waits for; on its stack. */
struct net_question {
	struct net *net;
	struct list link;
	uint32_t id;
	bool done;
	int ret;
	struct sci_rseg *seg;		/* the import, if it is for one */
	const void *owner;		/* as cancel_connect's */
};

/* Bytes that the other side has asked for. */
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
	uint8_t *addr;			/* NULL: EMPTY so far */
	bool owned;			/* mapped by us */
	bool exported;
	sci_event_fn event;
	void *owner;
	struct list importers;
};

struct sci_rseg {
	struct list link;
	struct net *net;
	struct net_link *of;		/* NULL: lost */
	uint32_t id;
	uint64_t size;
	uint8_t *addr;			/* of its map */
	sci_event_fn event;
	void *owner;
	struct sci_rseg_status status;
};

struct net_message {
	struct list link;
	size_t len;
	uint8_t data[];
};

/* Data interrupts: there are no others here. */
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
	struct net_link *of;		/* NULL: lost */
	uint32_t number;
};

struct net {
	struct sci_fabric base;
	struct sci_service svc;
	struct sci_link_status status;
	pthread_cond_t cond;		/* answers, ends of dials */
	unsigned int node;
	uint64_t nonce;
	uint8_t key[NET_KEY_MAX];
	size_t key_len;
	uint32_t retry_ms;
	struct net_addr listen;		/* len 0: it does not */
	int listen_fd;
	uint16_t port;
	struct list routes;
	struct list links;
	struct list handshakes;
	struct net_under under[NET_UNDERS];
	unsigned int n_under;
	struct list pipes;
	unsigned int n_opening;
	int pipe_fd;			/* an eventfd; 0: none yet */
	_Atomic bool pipe_news;
	bool gateway;
	struct list forwards;
	unsigned int n_forwards;
	unsigned int n_handshakes;	/* of these, made by others */
	struct hash segments;
	struct list lintrs;
	struct list rintrs;
	uint32_t next_question;
	bool stopped;			/* no connect any more */
	bool closing;
	int timer_fd;
	uint32_t tick_ms;		/* 0: the timer is off */
	uint64_t now_ms;		/* at the last tick */
	bool ticked;			/* the timer was on then */

	void (*news)(void *owner);	/* bytes have come; on the service thread */
	void *news_owner;
	uint32_t polls;			/* of the program's threads, mod 2^32 */
	uint32_t polls_seen;		/* ... at the last tick */
	struct net_link *keen[NET_KEEN];
	unsigned int n_keen;
	bool fresh;			/* some link is */
	uint8_t in[NET_IN];
	uint8_t waste[NET_IN];
};

static inline struct net *net_of(struct sci_fabric *f)
{
	return container_of(f, struct net, base);
}

/* address.c */
int net_read_environment(struct net *net, const char *spec);
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

/* handshake.c */
int net_listen(struct net *net);
void net_listen_end(struct net *net);
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
void net_pipe_wake(struct net_pipe *p);
void net_pipe_close(struct net_pipe *p);

/* gateway.c */
int net_forward_begin(struct net_socket *s);
void net_forward_ready(struct net_socket *s);
void net_forward_end(struct net_forward *f, struct net_socket *closing, int error);

/* log.c */
int net_log_add(struct net_log *log, const void *data, size_t len);
void net_log_change(struct net_log *log, uint64_t at, const void *data, size_t len);
bool net_log_acked(struct net_log *log, uint64_t position);
size_t net_log_unsent(struct net_log *log, struct iovec iov[2]);
void net_log_free(struct net_log *log);

/* link.c */
struct net_link *net_link_new(struct net *net, uint64_t nonce, unsigned int node);
struct net_link *net_link_find(struct net *net, uint64_t nonce);
void net_link_take(struct net_link *l, struct net_socket *s, uint32_t epoch, bool ours);
void net_link_attach(struct net_link *l, struct net_socket *s, uint64_t received);
void net_link_break(struct net_link *l, uint64_t since);
void net_link_lost(struct net_link *l, bool died);
void net_link_dialed(struct net_link *l, int error);
void net_link_check(struct net_link *l, uint64_t now);
int net_link_send(struct net_link *l, struct net_frame *f, const void *data);
void net_link_flush(struct net_link *l);

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
int net_ask(struct net_link *l, enum net_type type, uint32_t object, uint32_t timeout,
	    const void *owner, struct sci_rseg *seg);
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
