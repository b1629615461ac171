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
 * adapter->lock protects all connections.  Messages that an end must be able to
 * send are allocated when the end is made.
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
 * @link: entry in peer->links, empty when the connection has ended
 * @handle: number by which the other node names this end; 0: no connection
 * @remote: number by which this node names the other end; 0: not known yet
 * @server: true: this end is the server; false: this end is the client
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
 * @connected: handles a reply that grants the connect; also a later reply of another member
 *	of the group. Returns -errno if the reply has an invalid value.
 * @gone: handles the loss of the connection, after client->state and ->status were set. Not
 *	called for clients that never were connected. May be NULL.
 */
struct sci_client_ops {
	int (*connected)(struct sci_client *c, const struct sci_msg_reply *re);
	void (*gone)(struct sci_client *c);
};

/**
 * struct sci_client - the importing end of a connection
 * @obj: the object of the file
 * @ops: operations of this kind of client
 * @conn: the connection
 * @kind: kind of the object that the client connects to
 * @node: the wanted node; may be SCI_IOC_NODE_GROUP
 * @id: the wanted id
 * @group: SCI_KIND_GROUP: serial of the group that the client is connected to
 * @state: enum sci_remote_state
 * @status: 0 or -errno
 * @async: an event reports the result of a connect
 * @who: credentials of the connecting process, in the form of a message
 * @cred: full credentials of the connecting process, which an exporter on this node checks
 * @timeout: ends a connect that gets no answer
 * @charged: the user who is charged for the connection
 * @connect, @bye, @ack: messages allocated in advance; NULL: already sent
 * @leaving: DISCONNECT was sent, close() waits for LEFT
 * @rejoining: the connected group member has ended, and a CONNECT to another one was sent
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
 * An exporter is part of a segment, or of an interrupt's line.
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
 * @joined: called when the server has entered the exporter's list.  May be NULL.
 * @left: called when the client has disconnected, or @died with its process or node.
 *	Not called for clients that were cut off.  May be NULL.
 * @gone: called when a server has left the exporter's list. @cut: the client was cut off,
 *	and has acknowledged that or has ended. May be NULL.
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
 * @ops: operations of this kind of server
 * @kind: kind of the object that the client asked for
 * @exporter: the exported object; NULL: the object has ended
 * @link: entry in @exporter->servers
 * @cut: CUT was sent, and is not acknowledged
 * @notify_msg, @cut_msg: messages allocated in advance; NULL: already sent
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
/* Return a message that answers a message of @p; NULL also if too many messages wait for @p. */
struct sci_message *sci_answer_alloc(struct sci_peer *p);

/* Fill in @m as a struct sci_msg_simple, and post it. If @m is NULL, do nothing. */
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
 * End the client; its memory can be freed afterwards. Wait up to a second until the exporter has
 * removed the importer: after close(), a process may tell the exporter so. Context: no locks are
 * held.
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

/* Handle the loss of a connected client's connection. @status: the reason, -errno. */
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

/* Return the end of a connection with @p's node that the node names @handle, or NULL. */
struct sci_connection *sci_connection_find(struct sci_peer *p, u32 handle);
struct sci_server *sci_server_find(struct sci_peer *p, u32 handle);

/* Convert an error of a reply to -errno, and back. */
int sci_proto_errno(u16 error);
u16 sci_proto_error(int err);

#endif
