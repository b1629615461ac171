/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: connections
 *
 * A connection has two ends, each a struct sci_connection that the other end's
 * node names by its handle: the client imports a segment or triggers an
 * interrupt, the server belongs to the segment or interrupt at its owner.  The
 * messages of proto.h make and end connections.  Clients and servers of each
 * kind have operations of their own.
 *
 * adapter->lock protects all of it.  Messages that an end must be able to
 * send are allocated when it is made.
 */
#ifndef SCI_CONNECTION_H
#define SCI_CONNECTION_H

#include "adapter_private.h"
#include "object.h"
#include "owner.h"
#include "peer.h"
#include "proto.h"

/**
 * struct sci_connection - one end of a connection
 * @peer: reference to the other node
 * @link: entry in peer->links, empty when the connection is gone
 * @handle: name of the connection at the other node; 0: gone
 * @remote: this node's name of the other end; 0: not known yet
 * @server: true: the server; false: the client
 */
struct sci_connection {
	struct sci_peer *peer;
	struct list_head link;
	u32 handle;
	u32 remote;
	bool server;
};

struct sci_client;

/**
 * struct sci_client_ops - kinds of clients; called with adapter->lock held
 * @connected: handles the reply, and later that of another member of the group. -errno: the
 *	reply is not credible
 * @gone: handles the loss of the connection, after client->state and ->status were set. Not
 *	called for clients that never were connected. May be NULL.
 */
struct sci_client_ops {
	int (*connected)(struct sci_client *c, const struct sci_msg_reply *re);
	void (*gone)(struct sci_client *c);
};

/**
 * struct sci_client - the importing end
 * @obj: the object of the file
 * @ops: operations of its kind
 * @conn: the connection
 * @kind: kind of the object that it connects to
 * @node: the wanted node; may be SCI_IOC_NODE_GROUP
 * @id: the wanted id
 * @group: SCI_KIND_GROUP: serial of the group that it is connected to
 * @state: enum sci_remote_state
 * @status: 0 or -errno
 * @async: an event reports the result of a connect
 * @who: its credentials, in the form of messages
 * @cred: reference to all its credentials, for this node
 * @timeout: ends a connect that gets no answer
 * @charged: the user who is charged for it
 * @connect, @bye, @ack: messages not sent yet
 * @leaving: DISCONNECT was sent, close() waits for LEFT
 * @rejoining: the group's member has gone, another was asked
 * @rejoins: number of rejoins in a row
 */
struct sci_client {
	struct sci_object obj;
	const struct sci_client_ops *ops;
	struct sci_connection conn;
	enum sci_connect_kind kind;
	u32 node;
	u32 id;
	u64 group;
	enum sci_remote_state state;
	int status;
	bool async;
	struct sci_msg_connect who;
	const struct cred *cred;
	struct delayed_work timeout;
	struct sci_user *charged;
	struct sci_message *connect;
	struct sci_message *bye;
	struct sci_message *ack;
	bool leaving;
	bool rejoining;
	unsigned int rejoins;
};

/**
 * struct sci_exporter - an object that clients of other nodes connect to
 * @servers: struct sci_server: one for each client
 *
 * It is part of a segment, or of an interrupt's line.
 */
struct sci_exporter {
	struct list_head servers;
};

struct sci_server;

/**
 * struct sci_server_ops - kinds of servers; called with adapter->lock held
 * @accept: finds the exporter that @who asks for, and checks that the client may
 *	connect to it.  Fills in the exporter's members of @re. Returns an ERR_PTR:
 *	-ENOENT, -EACCES, -EUSERS.
 * @joined: the server is in the exporter's list now.  May be NULL.
 * @left: the client disconnected, or @died with its process or node.  Not
 *	called for clients that were cut off.  May be NULL.
 * @gone: called when a server has left the exporter's list. May be NULL.
 * @cut: the client was cut off, and has acknowledged that or has ended.
 */
struct sci_server_ops {
	struct sci_exporter *(*accept)(struct sci_adapter *a,
				       const struct sci_caller *who,
				       struct sci_msg_reply *re);
	void (*joined)(struct sci_server *s);
	void (*left)(struct sci_server *s, bool died);
	void (*gone)(struct sci_exporter *e, bool cut);
};

/**
 * struct sci_server - the exporting end of a connection
 * @conn: the connection
 * @ops: operations of its kind
 * @kind: kind of the object that the client asked for
 * @exporter: the exported object; NULL: it is gone
 * @link: entry in @exporter->servers
 * @cut: CUT was sent, and is not acknowledged
 * @notify_msg, @cut_msg: messages not sent yet
 */
struct sci_server {
	struct sci_connection conn;
	const struct sci_server_ops *ops;
	enum sci_connect_kind kind;
	struct sci_exporter *exporter;
	struct list_head link;
	bool cut;
	struct sci_message *notify_msg;
	struct sci_message *cut_msg;
};

/* Return a message that frees itself when it is done, or NULL without memory. */
struct sci_message *sci_message_alloc(void);
void sci_message_free(struct sci_message *m);
/* Return a message that answers one of @p's; NULL also if @p has too many answers waiting. */
struct sci_message *sci_answer_alloc(struct sci_peer *p);

/* Fill in a message without a body of its own, and post it. Do nothing if it is NULL. */
void sci_post_simple(struct sci_peer *p, struct sci_message *m, u8 type,
		     u32 handle);

/**
 * sci_client_init() - initialise a client, which has no file yet
 *
 * The client keeps the caller's credentials until sci_client_fini().
 *
 * Return: 0 or -ENOMEM.
 */
int sci_client_init(struct sci_client *c, enum sci_object_kind kind,
		    const struct sci_object_ops *obj_ops,
		    const struct sci_client_ops *ops, struct sci_adapter *a);
/*
 * End the client; its memory can be freed afterwards. Wait for a moment until the exporter does
 * not count the importer any more, so that a process may report its disconnect. Context: no
 * locks are held.
 */
void sci_client_fini(struct sci_client *c);

/**
 * sci_client_connect() - connect a client to an object of another node
 * @async: do not wait: an event has the result
 *
 * Context: takes adapter->lock.
 * Return: 0; -EINVAL: not a node id; -ENETDOWN: the link is down; -ENOENT: the group has no
 * member; -ENOMEM; without @async also -EINTR, -ENODEV, and the errors that the event can have.
 */
int sci_client_connect(struct sci_client *c, enum sci_connect_kind kind,
		       u32 node, u32 id, u32 timeout_ms, bool async);

/* End a client that was closed, killed or removed: sci_object_ops.kill of clients calls it. */
void sci_client_end(struct sci_client *c);

/*
 * Return 0 if the other end can be reached, else -ENOTCONN or -ENETDOWN. Context: adapter->lock
 * is held.
 */
int sci_client_usable(struct sci_client *c);

/* Print a client, for sci_object_ops.show. */
void sci_client_show(struct sci_client *c, struct seq_file *m);

/* Handle the end of a connected client's other end. */
void sci_client_lost(struct sci_client *c, int status);

/* The functions below are called with adapter->lock held. */
void sci_exporter_init(struct sci_exporter *e);

/* Ask all clients to disconnect. */
void sci_exporter_notify(struct sci_exporter *e);

/**
 * sci_exporter_cut() - disconnect all clients
 * @died: the exporter's process died
 *
 * Return: the number of clients that this call has cut off.  sci_server_ops.gone() is called
 * for each of them.
 */
unsigned int sci_exporter_cut(struct sci_exporter *e, bool died);

/*
 * End an exporter. Servers that wait for acknowledgments stay without it, and do not call
 * gone() any more.
 */
void sci_exporter_end(struct sci_exporter *e);

static inline struct sci_client *sci_client_of(struct sci_object *obj)
{
	return container_of(obj, struct sci_client, obj);
}

/* End all remaining connections of an adapter that is removed. Context: no locks are held. */
void sci_connections_drop(struct sci_adapter *a);

/*
 * Handle the messages of proto.h about connections. @ops: operations of the wanted kind; NULL:
 * there is no such kind. Context: adapter->lock is held.
 */
void sci_connection_connect(struct sci_peer *p,
			    const struct sci_msg_connect *msg,
			    const struct sci_server_ops *ops);
void sci_connection_reply(struct sci_peer *p, const struct sci_msg_reply *msg);
void sci_connection_simple(struct sci_peer *p,
			   const struct sci_msg_simple *msg);
void sci_connection_peer_gone(struct sci_peer *p, int error);

/* Return the live end that @p's node knows as @handle, or NULL. */
struct sci_connection *sci_connection_find(struct sci_peer *p, u32 handle);
struct sci_server *sci_server_find(struct sci_peer *p, u32 handle);

/* Convert an error of a reply to -errno, and back. */
int sci_proto_errno(u16 error);
u16 sci_proto_error(int err);

#endif
