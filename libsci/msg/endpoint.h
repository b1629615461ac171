/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: inside an endpoint
 *
 * The message layer has three sublayers. A file uses its own sublayer and the sublayers below.
 *
 * conn/	one connection to a peer: lines, rings, blocks, credits, retransmission,
 *		doorbells, the start and the end of a connection. Its files do not use
 *		requests; they call the protocols through struct msg_upper
 * proto/	the protocols: sends, receives, matching, rendezvous, one-sided transfers,
 *		handlers, requests. Its functions do not wait
 * api/		the program's calls, progress and waiting
 *
 * conn.h, proto.h and api.h declare the functions that the next sublayer may use. This header has
 * struct sci_ep and struct sci_peer, which all sublayers share.
 *
 * One lock protects the whole endpoint. The state machine (all files except api/wait.c) never
 * blocks: msg_progress() polls the rings, moves data without waiting and returns. The fabric
 * reports events on its own thread, which only sets a bit and wakes the endpoint. Calls that
 * another process has to answer run on separate threads (conn/call.c).
 *
 * peer		a connection: an inbox for the peer, and a mapping of the peer's inbox
 * request	a send or receive of the program, in one queue at a time: waiting
 *		to be sent (peer->sendq), in a handshake or with bytes in flight
 *		(peer->sending to ->arriving, ->receiving), or posted (ep->match)
 * msg		a message that arrived before its receive was posted
 */
#ifndef LIBSCI_MSG_ENDPOINT_H
#define LIBSCI_MSG_ENDPOINT_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

/* export the functions of the public headers; all other functions are hidden */
#pragma GCC visibility push(default)
#include <sci/msg.h>
#pragma GCC visibility pop

#include "libsci/base/compiler.h"
#include "libsci/base/hash.h"
#include "libsci/base/list.h"
#include "libsci/fabric/core/fabric.h"
#include "libsci/fabric/core/fault.h"
#include "libsci/msg/conn/lock.h"
#include "libsci/msg/conn/wire.h"
#include "libsci/msg/proto/match.h"

#define MSG_PAD(n)	(((n) + LINE_BYTES - 1) & ~(uint64_t)(LINE_BYTES - 1))

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
	uint32_t lines;			/* size of the ring */
	uint32_t slot;			/* index of the next line to be written */
	uint32_t pos;			/* position of that line in the life of the ring */
	uint32_t read;			/* the peer's read position at the last load of *status */
	uint32_t checked;		/* all lines before this position have arrived */
	uint64_t id;			/* identifier of the current lap */
};

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
	uint32_t end;			/* end of the last block, in bytes with gaps */
	uint32_t free;			/* all blocks before this position are read */
};

/* The receiving end of a ring of blocks. Its read position is in peer->now. */
struct msg_blocks_rx {
	uint8_t *base;
	struct sci_lseg *seg;
	uint32_t size;			/* 0: not attached */
	uint32_t looked;		/* read position when rings_recall() last looked */
};

/* The threads that make blocking calls to other nodes: conn/callers.c */
struct msg_callers {
	pthread_mutex_t lock;
	pthread_cond_t ended;		/* signalled when a thread ends */
	unsigned int threads;
	bool stopped;			/* the endpoint closes: no call begins */
	bool waits;			/* a call waits for a thread: counted in ep->n_suspect */
	struct list waiting;
	struct list running;
};

/* ---- handlers ---- */

struct msg_handler {
	sci_handler_fn fn;
	void *arg;
};

/* ---- peers ---- */

enum msg_peer_state { PEER_CONNECTING, PEER_UP, PEER_DOWN };

/* Events that the fabric's thread records. */
enum {
	PEER_LEFT	= 1 << 0,	/* the peer has disconnected from its inbox here */
	PEER_LOST	= 1 << 1,	/* the peer has died */
	PEER_GONE	= 1 << 2,	/* the peer's inbox has ended */
	PEER_CUT	= 1 << 3,	/* the peer has removed its inbox */
	PEER_CAME	= 1 << 4,	/* the peer has imported its inbox here */
	PEER_FREED	= 1 << 5,	/* an imported segment of the peer has ended */
	PEER_RANG	= 1 << 6,	/* the peer has triggered the doorbell, or has sent bytes */
	PEER_LISTED	= 1 << 7,	/* no event: the peer is in ep->news */
	PEER_RAIL_LOST	= 1 << 8,	/* a connection on the second rail has ended */
	PEER_RAIL_CAME	= 1 << 9,	/* the peer has imported its inbox on the second rail */
};

/* The inboxes of a connection on one rail: conn/route.c. */
struct msg_route {
	struct sci_link_status *link;
	struct sci_lseg *inbox;		/* NULL: there is none */
	struct msg_inbox *inbox_map;
	struct sci_rseg *outbox;	/* the peer's inbox; NULL: not imported */
	struct msg_inbox *outbox_map;
	struct sci_rintr *bell;		/* the peer's doorbell; NULL on shared memory and the net */
};

enum { RAIL_FIRST, RAIL_SECOND, RAILS };

/* A transfer ring that the peer has lent, on one of two rails. */
struct msg_lent {
	struct line_attached ring;	/* size 0: none */
	uint64_t ms;			/* do not use it before this time, in ms */
	uint32_t pause;			/* the last pause after a failure, in ms */
};

/* The shortest handshakes of rendezvous with a peer, in ns: proto/handshake.c. */
struct msg_handshakes {
	uint32_t least;			/* of the current window */
	uint32_t least_before;		/* of the window before; 0: there is none */
	uint16_t count;			/* in the current window */
	uint16_t left;			/* messages that may leave their handshake out */
};

/* A connection of an endpoint that has two rails: conn/rail.c, conn/reroute.c. */
struct msg_rails {
	struct msg_route second;
	sci_event_fn event[RAILS];	/* of the peer's inboxes that route_ask() imports */
	uint32_t inbox;			/* id of the peer's inbox on the second rail */
	int error;			/* why this endpoint has lent no ring there */
	struct msg_blocks blocks_tx;	/* RING_RAIL */
	struct msg_blocks_rx blocks_rx;
	struct msg_lent lent[RAILS];
	struct list imports;		/* memory of the peer on the second rail */
	uint64_t import_ms;		/* no such import before this time, in ms */
	uint32_t import_id;		/* the segment of the last such import that failed */
	int import_error;
	uint32_t there_errors[RAILS];	/* of the links, see rail_is_there() */

	bool lost[RAILS];		/* the fabric has reported the end of a connection */
	bool suspect;			/* the reason of peer->suspect_ms: the loss of both rails */
	bool rerouted;			/* the peer's positions are known: */
	uint32_t their_data, their_ctl;
	uint32_t my_data, my_ctl;	/* this side's, at the last reroute */
	uint32_t read_data, read_ctl;	/* the peer's last known ones before the reroute */
	uint32_t turn;			/* number of reroutes; odd: lines use the second rail */
	uint32_t home_pause;		/* time before lines return to the first rail, in ms */
	uint64_t begun_ms;		/* start of the current reroute, in ms */
	uint64_t rerouted_ms;		/* time of the last reroute, in ms */
	uint64_t reroute_ms;		/* time of the next HELLO_REROUTE, in ms */
	uint64_t route_ms;		/* do not import an inbox before this time, in ms */
	uint64_t stuck_ms;		/* since when lines do not arrive, in ms; 0: they arrive */
};

struct sci_peer {
	struct list link;		/* ep->peers, ->down, ->ended, ->former */
	struct list hot;		/* ep->hot: polled */
	struct list busy;		/* ep->busy: has data to send */
	struct list accept_link;	/* ep->accept_queue: to be accepted */
	struct list dirty;		/* ep->dirty: has unconfirmed stores */
	struct list closing;		/* ep->closing: sci_peer_close() */
	struct list attend;		/* ep->attend: has events, calls, or is suspected */
	struct sci_peer *news;		/* ep->news: the next peer */
	uint64_t close_ms;		/* end of the linger time */
	struct hash_node by_addr;	/* ep->by_addr */
	struct sci_ep *ep;
	void *data;
	struct sci_addr addr;
	uint64_t nonce;			/* number of the peer's endpoint; 0: unknown */
	uint32_t their_inbox;		/* id of the peer's inbox for this endpoint */
	enum msg_peer_state state;
	int error;			/* why it is DOWN */
	_Atomic unsigned int events;
	bool known;			/* the program has a pointer to the peer */
	bool leaving;			/* the program is closing the peer */
	bool dropped;			/* a message to a handler was dropped meanwhile */
	bool asked;			/* a HELLO to the peer has been sent */
	bool sums;			/* the peer sends checksums */
	bool takes_events;		/* the peer has SCI_EP_WRITE_EVENTS */
	bool lossy;			/* stores to the peer may be lost */
	bool careful;			/* tx_put() needs tx_put_careful() */
	bool stale;			/* caches are not coherent: peer_refresh() before loads */
	bool may_read;			/* imports read as fast as they write */
	bool unreadable;		/* this process may not read its private memory */
	bool detour;			/* caches are not coherent, or there are two rails */
	bool imported;			/* the peer has imported its inbox here */
	bool incoming;			/* on import, the peer goes to ep->accept_queue */
	bool fence;			/* full barrier between a store and the load of *sleeps */
	bool waiting_attach;
	bool xfer_unused;		/* the import of the lent transfer ring has failed */
	bool attach_failed;
	bool attach_asked;		/* the peer has asked for an eager ring */
	bool announced;			/* this endpoint has announced a sleep to the peer */
	bool status_dirty;
	bool awaited;			/* the peer may wait for an unconfirmed line or credit */
	bool resend;			/* a store to the peer was lost: repeat all */
	bool draining;			/* closing soon: no limit for unexpected messages */
	bool rerouting;			/* no line may be written: conn/reroute.c */
	bool has_imm;			/* the message that is being received has an immediate */
	uint32_t bell_rung;		/* the last sleep for which this endpoint rang */
	uint32_t expects;		/* answers that may arrive on ctl_rx */
	uint32_t idle;			/* polls without a new line */
	uint32_t defer_polls;		/* polls that left a message in the ring */
	unsigned int ours;		/* @detached requests that this layer sends to handlers */
	size_t wanted;			/* receives and probes that name this peer */
	struct list calls;		/* struct msg_call */
	int hello_ret;			/* result of the last HELLO */
	int no_room;			/* 0, or the error of an import that found no room */
	uint64_t hello_ms;		/* duration of the last HELLO, in ms */
	uint64_t import_ms;		/* no import before this time, in ms */
	uint64_t no_room_ms;		/* until this time, imports fail with @no_room */
	/* time at which sci_peer_map() gives up missing memory, in ms */
	uint64_t map_doubt_ms;
	unsigned int dialers;		/* references by struct msg_dial */
	unsigned int detached;		/* detached requests */
	unsigned int transfers;		/* detached one-sided transfers */
	int transfer_error;		/* first error of detached transfers since sci_flush() */
	unsigned int answers;		/* outstanding replies to atomics and copies */
	unsigned int events_sent;	/* events of writes that the peer has not returned */
	unsigned int events_queued;	/* events of its writes that were not returned to it */
	unsigned int events_taken;	/* those of them that the program has taken */
	uint64_t suspect_ms;		/* when the peer's inbox disappeared, in ms */
	struct sci_req *came, *went;	/* preallocated events, not queued yet */

	/* sending */
	struct msg_tx data_tx, ctl_tx;
	struct msg_blocks blocks_tx[RING_RAIL];	/* see blocks_tx() */
	int xfer_error;			/* why the peer has lent no transfer ring */
	uint32_t last_block_pos;	/* data_rx.pos at the last message in blocks */
	struct msg_status *status;	/* credits from the peer: line 0 of the inbox */
	struct list sendq;
	struct list ctlq;		/* struct msg_ctl that wait for room */
	/* sends after their RTS, and one-sided transfers, by what they wait for: transfer_set() */
	struct list sending;		/* an answer of the peer */
	struct list moving;		/* sends: room for the next bytes */
	struct list onesided;		/* one-sided: room, or an import */
	struct list arriving;		/* the peer to confirm that the bytes have arrived */
	uint64_t chained;		/* bytes sent as chains */
	struct msg_handshakes handshakes;

	/* receiving */
	struct msg_rx data_rx, ctl_rx;
	struct msg_status status_sent;	/* the last status that the peer got */
	struct msg_status status_next;	/* the current status, for the next line 0 */
	volatile struct msg_line *status_line;	/* line 0 of the peer's inbox */
	struct msg_blocks_rx blocks_rx[RING_RAIL];	/* see blocks_rx() */
	uint64_t imm;			/* of the message that is being received: @has_imm */
	int chain_error;
	unsigned int importing;		/* number of receives that import a buffer */
	struct list receiving;		/* receives that sent a CTS or import a buffer */
	struct list matched;		/* struct sci_msg that the program has taken */
	struct sci_req *chain_req;	/* receive for an incomplete message */
	struct sci_msg *chain_msg;	/* or an incomplete unexpected message */
	size_t chain_left;		/* missing bytes of the incomplete message */

	/* objects of the peer's fabric, which is ep->fabric or ep->net */
	struct sci_fabric *fabric;
	const struct sci_stream_ops *stream;	/* NULL: imports are memory */
	const struct msg_params *params;	/* of the peer's network */
	uint32_t adapter;		/* adapter number of @fabric */
	uint32_t rail_node;		/* the peer's node on the second rail; 0: there is none */
	struct msg_route first;		/* on the first rail */
	struct msg_route *line;		/* the rail on which lines leave: @first or rails->second */
	struct msg_rails *rails;	/* NULL: this endpoint has no second rail */
	struct list imports;
	struct list maps;		/* ended imports with pointers of the program */
};

/* ---- endpoints ---- */

/* The retransmission thread: conn/retransmit.c */
struct msg_retransmit {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool runs;
	bool stop;
	bool awake;			/* written with k->lock and ep->lock held */
	uint32_t turns;			/* ep->turns at the last tick */
	unsigned int idle_ticks;	/* ticks without a dirty peer */
};

/*
 * The functions of the protocols that a connection calls: life.c. The endpoint is locked, and these
 * functions do not block.
 */
struct msg_upper {
	int (*created)(struct sci_peer *p);	/* 0, or -ENOMEM: there is no peer */
	void (*freed)(struct sci_peer *p);	/* called last for a peer */
	int (*poll)(struct sci_peer *p);	/* take lines off the rings; return their number */
	void (*came)(struct sci_peer *p);	/* one side has imported the other's inbox */
	void (*ended)(struct sci_peer *p, int error);	/* the peer is DOWN */
	bool (*holds)(struct sci_peer *p);	/* the program may still receive its messages */
	void (*dropped)(struct sci_peer *p);	/* the program has closed the peer */
};

#define EP_NAME_MAX	15u		/* the limit for names of threads */

/* The parameters for one network of an endpoint. */
struct msg_params {
	uint64_t value[SCI_PARAMS];
	uint64_t eager_limit;		/* longer messages to a near peer are rendezvous */
};

struct sci_ep {
	struct msg_lock lock;
	const struct sci_fabric_ops *ops;
	struct sci_link_status *link;
	bool lossy;			/* remote stores may be lost: conn/check.c */
	bool crc;
	bool may_read;			/* loads from imports are as fast as stores */
	bool register_copies;		/* see SCI_TRAIT_REGISTER_COPIES */
	bool peer_events;		/* see SCI_EP_PEER_EVENTS */
	bool write_events;		/* see SCI_EP_WRITE_EVENTS */
	bool wake_barrier;
	bool retry;			/* work waits that no doorbell will report */
	bool held_back;			/* a message stays in a ring: SCI_PARAM_UNEXPECTED_MAX */
	struct list hot;
	struct list busy;
	struct list dirty;
	unsigned int n_hot;
	unsigned int n_suspect;		/* reasons for ep_attend(): peers that are closing or whose
					 * inbox has ended, and calls that wait for a thread
					 */
	size_t wanted;			/* receives and probes for any peer */
	struct sci_match match;
	uint32_t turns;			/* progress calls, modulo 2^32 */
	_Atomic uint32_t attention;	/* set by the fabric's thread: attend() has work */
	uint32_t errors;		/* of the link, when no store was unconfirmed */
	uint64_t unexpected_bytes;
	uint64_t ring_bytes;		/* bytes of rings of blocks, for all peers */
	struct msg_params params;
	struct msg_params net_params;	/* of peers on the net */
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
	_Atomic uint32_t net_news;	/* set by the net's thread: bytes have arrived */
	unsigned int net_looks;		/* polls of the net left; 0: its thread polls */
	bool net_held;			/* the net holds bytes back until the next poll */
	struct sci_addr addr;
	uint32_t adapter;		/* of the fabric */
	char name[EP_NAME_MAX + 1];	/* name from the program */
	uint64_t nonce;
	uint32_t fork_gen;
	const struct msg_upper *up;
	struct list peers;		/* CONNECTING or UP */
	struct list attend;		/* peers for which peers_attend() has work */
	struct sci_peer *_Atomic news;	/* peers with new events: a stack, see peer.c */
	struct list down;		/* DOWN, to be released */
	struct list ended;		/* released, not returned by sci_peer_gone() yet */
	struct list former;		/* released and returned by sci_peer_gone() */
	struct list accept_queue;
	struct list closing;
	struct list dials;
	struct hash by_addr;		/* all peers */
	struct list bufs;
	struct list refusals;		/* calls: HELLOs that refuse a connection */
	unsigned int n_refusals;
	struct msg_callers callers;
	struct list peerless;		/* matched messages whose peer has been freed */
	struct list completed;		/* the completion queue */
	struct list blocked;		/* blocking receives that wait: see reqs_forget() */
	bool cooled;			/* some peers are parked: polled only after a bell */

	/* conn/wake.c, api/wait.c */
	struct list open;		/* link in the list of all endpoints, for fork() */
	struct sci_lintr *bell;
	struct sci_lintr *port;		/* HELLOs */
	int bell_fd;
	int wake_fd;			/* for the thread that sleeps in poll() */
	int user_fd;			/* epoll descriptor for the program; -1: none yet */
	_Atomic int user_wake_fd;	/* part of user_fd, as wake_fd; -1: none yet */
	int timer_fd;			/* part of user_fd, for what is due without a doorbell */
	bool timer_set;
	bool armed;			/* user_fd must become readable at the next completion */
	unsigned int completions;	/* completed requests, modulo 2^32 */
	unsigned int waiters;		/* threads in sleep_beside() */
	unsigned int crowded;		/* yields until the CPU counts as free; 0: it is free */
	bool sleeping;			/* a thread sleeps in poll() */
	bool woken;			/* the sleeping thread has been woken */
	pthread_mutex_t sleep_lock;
	pthread_cond_t sleep_cond;

	struct msg_retransmit retransmit;
	struct msg_handler handlers[SCI_HANDLERS];

	/* the second rail: conn/rail.c */
	struct sci_fabric *rail;	/* NULL: the endpoint has one rail */
	struct sci_link_status *rail_link;
	struct sci_lintr *rail_port;	/* HELLO_REROUTE */
	struct sci_lintr *rail_bell;
	_Atomic uint32_t rail_rang;	/* set by the rail's thread: rail_bell was triggered */
	uint32_t rail_node;		/* node of this endpoint there */
};

/*
 * With the default, single copies replace blocks only: eager messages arrive without the receiver's
 * help. Between two cores far apart, single copies have taken less time from 16 KiB on.
 */
#define SINGLE_COPY_DEFAULT	((256u << 10) + 1)

/* Set a parameter that is within its limits. A single copy needs a rendezvous. */
static inline void param_set(struct msg_params *params, enum sci_param param, uint64_t value)
{
	uint64_t single, eager;

	params->value[param] = value;
	single = params->value[SCI_PARAM_SINGLE_COPY_MIN];
	eager = params->value[SCI_PARAM_EAGER_MAX];
	params->eager_limit = single > eager || single == SINGLE_COPY_DEFAULT ? eager :
			      single ? single - 1 : 0;
}

#endif
