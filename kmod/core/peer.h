/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the other nodes
 *
 * One struct sci_peer per node that an adapter has to do with: runs its session
 * with locks, timers and packets.
 *
 * Results of a session are reported through struct sci_peer_ops in order:
 * deliver() for each message, gone() at the session's end, then the messages of
 * the next one.  Packets arrive in a thread of the driver's, time in a work, so
 * both hold sci_peer.order from before they ask the session until the operation
 * has returned, and no other code makes a session deliver or end.  A result that a
 * session returns under @lock is therefore still true after @lock has been dropped
 * to report it.
 *
 * Lock order: sci_peer.order, mmap_lock, sci_adapter.lock, sci_peer.lock.
 *
 * Our own node is a peer without a session: messages are delivered by the work.
 */
#ifndef SCI_PEER_H
#define SCI_PEER_H

#include <linux/device.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "adapter_private.h"
#include "session.h"

struct sci_peer;

/**
 * struct sci_peer_ops - what stands on sessions
 * @deliver: a message came from @p: SCI_MESSAGE_SIZE bytes, hostile until
 *	checked.  No locks are held but sci_peer.order.  Must not wait for
 *	packets.
 * @gone: the node died, came back as another, or did not answer: every
 *	connection with it is gone.  Called after the session has ended; messages
 *	posted since then belong to the next life.  Nothing is delivered before
 *	it returns.  No locks are held but sci_peer.order.  Must not wait for
 *	packets.
 * @release: the peer is freed: frees @p->data_in
 */
struct sci_peer_ops {
	void (*deliver)(struct sci_peer *p, const void *body);
	void (*gone)(struct sci_peer *p, int error);
	void (*release)(struct sci_peer *p);
};

/**
 * struct sci_peer - another node, or our own, as seen from one adapter
 * @adapter: ours; not to be used after sci_peers_shutdown()
 * @ops: operations of the layer above its session
 * @node: node id
 * @order: outermost: held while @ops are called
 * @lock: @session, @local, @work_at, @last_packet
 * @session: with it
 * @local: our own node: messages to be delivered
 * @nr_local: number of local messages; may be read at any time
 * @work: work that sends retransmissions and heartbeats, and delivers @local
 * @work_at: time when @work runs next; SCI_SESSION_NEVER: it is not scheduled
 * @links: connections of either direction with it, struct sci_connection.link;
 *	under adapter->lock.  While there is one, heartbeats watch the node.
 * @connections: number of connections; may be read at any time
 * @ends: number of times that the node was gone, under adapter->lock
 * @users: references of sci_peer_get() and _hold(), under the lock of
 *	adapter->peers
 * @met: there has been a session, so this is a node that exists: it stays known
 *	until the adapter goes.  May be read at any time.
 * @last_packet: time of its last packet, 0: none
 * @data_in: a data interrupt that is arriving; of @ops
 * @data_lock: one data interrupt at a time is sent
 * @dev: sysfs peerNODE; holds the memory
 */
struct sci_peer {
	struct sci_adapter *adapter;
	const struct sci_peer_ops *ops;
	u32 node;
	struct mutex order;		/* outermost */
	struct mutex lock;		/* protects session, local and others */
	struct sci_session session;
	struct list_head local;
	unsigned int nr_local;
	struct delayed_work work;
	u64 work_at;
	struct list_head links;
	unsigned int connections;
	unsigned int ends;
	unsigned int users;
	bool met;
	u64 last_packet;
	void *data_in;
	struct mutex data_lock;		/* held by a sender of data */
	struct device dev;
};

/**
 * sci_peer_get() - the peer with that id, made if there is none
 *
 * Caller holds a->lock.  Returns an ERR_PTR: -EINVAL: not a node id; -ENOMEM.
 * A reference for the caller, which may outlive the adapter's removal.  A node
 * that never had a session is forgotten when its last reference has gone.
 */
struct sci_peer *sci_peer_get(struct sci_adapter *a, u32 node);
/* Take another reference; the caller has one. */
void sci_peer_hold(struct sci_peer *p);
/* Drop a reference; may sleep. Any lock may be held but @p->lock. */
void sci_peer_put(struct sci_peer *p);

/**
 * sci_peer_post() - send a message
 *
 * Never fails: @m->done() is called in the end, or at once when the adapter has
 * gone.  If sci_peer_ops.gone() is called, messages that were posted before it may not
 * have arrived.
 *
 * Context: may sleep; @p->lock must not be held, other locks may.
 */
void sci_peer_post(struct sci_peer *p, struct sci_message *m);

/*
 * Return the time that a node has for an answer, in jiffies.  A node that is silent
 * for so long is gone; a call that gets no answer in that time gives up.
 */
unsigned long sci_peer_patience(void);

/*
 * Return whether so many messages wait for the node that it gets no answers: a node that
 * asks, and takes no answers, must not fill memory.
 */
bool sci_peer_is_behind(struct sci_peer *p);

/*
 * Return whether more messages wait for the node than keep it busy: then users must not
 * post more. This limit is far below sci_peer_is_behind(), so that users' messages do
 * not cost answers.
 */
bool sci_peer_has_many(struct sci_peer *p);

/**
 * sci_peer_link() - add a connection to a node
 * @link: is added to @p->links
 *
 * Heartbeats run while the node has a connection.  Call this before the post of the first
 * message that belongs to the connection.  If a received message makes the connection,
 * call this before sci_peer_ops.deliver() returns.
 *
 * Context: adapter->lock is held.
 */
void sci_peer_link(struct sci_peer *p, struct list_head *link);
/* Remove a connection of a node. */
void sci_peer_unlink(struct sci_peer *p, struct list_head *link);

/* A packet to @node came back: see sci_adapter_returned(). Call without locks. */
void sci_peer_returned(struct sci_adapter *a, u32 node);

/* @node has begun a new life: see sci_adapter_lost(). Call without locks. */
void sci_peer_lost(struct sci_adapter *a, u32 node);

/*
 * A packet from @node came: see sci_adapter_receive(). One call at a time, without
 * locks.
 */
void sci_peer_receive(struct sci_adapter *a, u32 node, const void *packet);

/* The link is up again: send what waits. Call without locks. */
void sci_peers_kick(struct sci_adapter *a);

/*
 * The adapter goes. Tell the other nodes once, as far as possible, end all sessions,
 * call done() of all messages, and cancel the work. Call without locks, and when neither
 * sci_peer_get() nor _receive() can be called any more.
 */
void sci_peers_shutdown(struct sci_adapter *a);

#endif
