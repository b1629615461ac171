/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: connections
 *
 * A connection has two ends, each a struct sci_connection that the other end's
 * node names by its handle: the client imports a segment or triggers an
 * interrupt, the server belongs to the segment or interrupt at its owner.  They
 * are made and ended by the messages of proto.h; what a client or server then
 * does is its kind's.
 *
 * Everything here is under adapter->lock.  Messages that an end must be able to
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
 * struct sci_connection - one end
 * @peer: the other node; a reference
 * @link: entry in peer->links, empty when the connection is gone
 * @handle: name of the connection at the other node; 0: gone
 * @remote: this node's name of the other end; 0: not known yet
 * @server: which end
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
 * @connected: the reply came; also of another member of the group, later.
 *	-errno: it can't be believed
 * @gone: it is lost, after client->state and ->status were set; not called for
 *	clients that never were connected.  May be NULL.
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
 * @node: wanted: may be SCI_IOC_NODE_GROUP
 * @id: wanted
 * @group: SCI_KIND_GROUP: serial of the group that it is connected to
 * @state: enum sci_remote_state
 * @status: 0 or -errno
 * @async: events tell of a connect's end
 * @who: credentials it connects with, as messages have them
 * @cred: ... and all of them, for this node; a reference
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
 * struct sci_exporter - what clients of other nodes connect to
 * @servers: struct sci_server: one for each client
 *
 * Is part of a segment, or of an interrupt's line.
 */
struct sci_exporter {
	struct list_head servers;
};

struct sci_server;

/**
 * struct sci_server_ops - kinds of servers; called with adapter->lock held
 * @accept: finds the exporter that @who asks for, and checks that the client may
 *	connect to it.  Fills in what @re says of it.  Returns an ERR_PTR:
 *	-ENOENT, -EACCES, -EUSERS.
 * @joined: the server is in the exporter's list now.  May be NULL.
 * @left: the client disconnected, or @died with its process or node.  Not
 *	called for clients that were cut off.  May be NULL.
 * @gone: called when a server has left the exporter's list.  May be NULL.  @cut: its client
 *	was cut off, and has acknowledged that or is gone.
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
 * struct sci_server - the exporting end
 * @conn: the connection
 * @ops: operations of its kind
 * @kind: kind of the object that the client asked for
 * @exporter: the exported object; NULL: it is gone
 * @link: entry in @exporter->servers
 * @cut: CUT was sent, its acknowledgment has not come
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
/*
 * Return a message that answers one of @p's; NULL also if @p has too many answers
 * waiting.
 */
struct sci_message *sci_answer_alloc(struct sci_peer *p);

/* Fill in a message without a body of its own and post it. Does nothing with NULL. */
void sci_post_simple(struct sci_peer *p, struct sci_message *m, u8 type,
		     u32 handle);

/**
 * sci_client_init() - initialise a client, which has no file yet
 *
 * The client keeps the caller's credentials, until sci_client_fini().
 *
 * Return: 0 or -ENOMEM.
 */
int sci_client_init(struct sci_client *c, enum sci_object_kind kind,
		    const struct sci_object_ops *obj_ops,
		    const struct sci_client_ops *ops, struct sci_adapter *a);
/*
 * End the client; its memory can be freed afterwards. Waits for a moment until the
 * exporter has removed the importer from its count, so that a process that reports its
 * disconnect is right. Call without locks.
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

/*
 * End a client that was closed, killed or removed: sci_object_ops.kill of clients calls
 * it.
 */
void sci_client_end(struct sci_client *c);

/*
 * Return 0 if the other end can be reached, else -ENOTCONN or -ENETDOWN. Caller holds
 * adapter->lock.
 */
int sci_client_usable(struct sci_client *c);

/* Print a client, for sci_object_ops.show. */
void sci_client_show(struct sci_client *c, struct seq_file *m);

/* The other end of a connected client is gone. */
void sci_client_lost(struct sci_client *c, int status);

/* The functions below are called with adapter->lock held. */
void sci_exporter_init(struct sci_exporter *e);

/* Ask all clients to disconnect. */
void sci_exporter_notify(struct sci_exporter *e);

/**
 * sci_exporter_cut() - disconnect all clients
 * @died: the exporter's process died
 *
 * Returns how many clients this call cut off.  sci_server_ops.gone() is called
 * for each of them.
 */
unsigned int sci_exporter_cut(struct sci_exporter *e, bool died);

/*
 * End an exporter. Servers that wait for acknowledgments live on without it, and do not
 * call gone() any more.
 */
void sci_exporter_end(struct sci_exporter *e);

static inline struct sci_client *sci_client_of(struct sci_object *obj)
{
	return container_of(obj, struct sci_client, obj);
}

/* The adapter goes: end all remaining connections. Call without locks. */
void sci_connections_drop(struct sci_adapter *a);

/*
 * Messages of proto.h that concern connections; adapter->lock held.  @ops: of
 * the kind that is asked for; NULL: there is no such kind.
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
