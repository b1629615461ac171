/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the other nodes
 *
 * A struct sci_peer stands for a node that an adapter exchanges packets with. It runs the
 * session with that node, and has locks, timers and packets for it.
 *
 * Results of a session are reported through struct sci_peer_ops in order:
 * deliver() for each message, gone() at the session's end, then the messages of
 * the next one. Packets arrive in a thread of the driver, and timeouts in a work. Both hold
 * sci_peer.order while they ask the session and call the operation, and no other code makes a
 * session deliver or end. So a result that a session returns under @lock is still true after
 * @lock has been dropped to report it.
 *
 * Lock order: sci_peer.order, mmap_lock, sci_adapter.lock, sci_peer.lock.
 *
 * This node is a peer of itself, without a session: the work delivers its messages.
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
 * struct sci_peer_ops - operations of the layer above sessions
 * @deliver: handles a message from @p: SCI_MESSAGE_SIZE bytes, which may be hostile. No locks
 *	are held but sci_peer.order. Must not wait for packets.
 * @gone: ends every connection with the node, which has died, restarted, or did not answer.
 *	Called after the session has ended; messages posted since then belong to the next life.
 *	No message is delivered before it returns. No locks are held but sci_peer.order. Must not
 *	wait for packets.
 * @release: frees @p->data_in, before the peer is freed
 */
struct sci_peer_ops {
	void (*deliver)(struct sci_peer *p, const void *body);
	void (*gone)(struct sci_peer *p, int error);
	void (*release)(struct sci_peer *p);
};

/**
 * struct sci_peer - another node, or this node itself, as a peer of one adapter
 * @adapter: this node's adapter; not to be used after sci_peers_shutdown()
 * @ops: operations of the layer above the session
 * @node: node id
 * @order: outermost lock: held while @ops are called
 * @lock: protects @session, @local, @work_at, @last_packet
 * @session: the session with the node
 * @local: messages of this node to itself that are to be delivered
 * @nr_local: number of @local; may be read at any time
 * @work: work that sends retransmissions and heartbeats, and delivers @local
 * @work_at: time when @work runs next; SCI_SESSION_NEVER: it is not scheduled
 * @links: connections with the node in either direction, struct sci_connection.link;
 *	under adapter->lock.  While there is one, heartbeats watch the node.
 * @connections: number of @links; may be read at any time
 * @ends: number of times that the node was lost, under adapter->lock
 * @users: references of sci_peer_get() and _hold(), under the lock of
 *	adapter->peers
 * @met: a session was up once, so the node exists, and the peer stays until the
 *	adapter is removed.  May be read at any time.
 * @last_packet: time of the last packet from the node, 0: none
 * @data_in: a data interrupt of which not all bytes have arrived; belongs to @ops
 * @data_lock: held by a sender of a data interrupt: one is sent at a time
 * @dev: sysfs peerNODE; its last reference frees the peer
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
 * sci_peer_get() - get the peer of a node, or make it
 *
 * The caller gets a reference, which may outlive the adapter's removal. The peer of a node that
 * never had a session is freed after its last reference. Context: a->lock is held. Return: the
 * peer, or an ERR_PTR: -EINVAL: not a node id; -ENOMEM.
 */
struct sci_peer *sci_peer_get(struct sci_adapter *a, u32 node);
/* Take another reference; the caller has one. */
void sci_peer_hold(struct sci_peer *p);
/* Drop a reference. Context: may sleep; any lock may be held but @p->lock. */
void sci_peer_put(struct sci_peer *p);

/**
 * sci_peer_post() - send a message
 *
 * The call never fails: @m->done() is called in the end, or at once if the adapter has been
 * removed. If sci_peer_ops.gone() is called, messages that were posted before it may not have
 * arrived.
 *
 * Context: may sleep; @p->lock must not be held, other locks may.
 */
void sci_peer_post(struct sci_peer *p, struct sci_message *m);

/*
 * Return the time that a node has for an answer, in jiffies.  A node that is silent for that
 * long counts as dead, and a call that gets no answer in that time fails.
 */
unsigned long sci_peer_patience(void);

/*
 * Return whether too many messages wait for the node. Then it gets no answers: a node that
 * sends requests and takes no answers must not fill memory.
 */
bool sci_peer_is_behind(struct sci_peer *p);

/*
 * Return whether so many messages wait for the node that users must not post more. This
 * limit is far below that of sci_peer_is_behind(), so that messages of users do not
 * prevent answers.
 */
bool sci_peer_has_many(struct sci_peer *p);

/**
 * sci_peer_wait_room() - wait while sci_peer_has_many() is true
 *
 * Context: no lock is held. Return: 0; -ENOBUFS: the time of sci_peer_patience() is over; -EINTR: a
 * fatal signal; -ENODEV: the adapter has been removed.
 */
int sci_peer_wait_room(struct sci_peer *p);

/**
 * sci_peer_wait_room_for() - wait for room until a signal comes, for a limited time
 * @left: the limit in jiffies, or MAX_SCHEDULE_TIMEOUT; the call subtracts the time that it waits
 *
 * Context: no lock is held. Return: as sci_peer_wait_room().
 */
int sci_peer_wait_room_for(struct sci_peer *p, long *left);

/*
 * Count a connection that is in no list: while one is counted, heartbeats run, and the end of the
 * node is reported. Context: adapter->lock is held.
 */
void sci_peer_watch(struct sci_peer *p);
void sci_peer_unwatch(struct sci_peer *p);

/**
 * sci_peer_link() - add a connection to a node
 * @link: is added to @p->links
 *
 * Heartbeats run while the node has a connection.  Call this function before the post of the
 * first message that belongs to the connection.  If a received message makes the connection,
 * call this function before sci_peer_ops.deliver() returns.
 *
 * Context: adapter->lock is held.
 */
void sci_peer_link(struct sci_peer *p, struct list_head *link);
/* Remove a connection of a node. */
void sci_peer_unlink(struct sci_peer *p, struct list_head *link);

/*
 * Handle a packet to @node that came back: see sci_adapter_returned(). Context: no locks are
 * held.
 */
void sci_peer_returned(struct sci_adapter *a, u32 node);

/* Handle a new life of @node: see sci_adapter_lost(). Context: no locks are held. */
void sci_peer_lost(struct sci_adapter *a, u32 node);

/*
 * Handle a packet from @node: see sci_adapter_receive(). Context: one call at a time, no locks
 * are held.
 */
void sci_peer_receive(struct sci_adapter *a, u32 node, const void *packet);

/* Send the waiting messages: the link is up again. Context: no locks are held. */
void sci_peers_kick(struct sci_adapter *a);

/*
 * End all sessions of an adapter that is removed. Send one BYE to each other node, without
 * retransmission, call done() of all messages, and cancel the work. Context: no locks are held,
 * and no thread can call sci_peer_get() or _receive() any more.
 */
void sci_peers_shutdown(struct sci_adapter *a);

#endif
