// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Connections: how both ends of a connection begin and end. */

#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "compat.h"
#include "connection.h"
#include "core.h"
#include "group.h"
#include "message.h"
#include "owner.h"
#include "retire.h"
#include "trace.h"
#include "user.h"

/* The shortest timeout of a connect, which leaves a peer the time to refuse. */
#define TIMEOUT_MIN_MS	250u
/* Time that close() waits for the exporter's answer to a DISCONNECT. */
#define LEAVE_MS	1000
/* Limit for connections with one node: memory for other nodes is charged to no user. */
#define CONNECTIONS_MAX	262144
/* Limit of group members that a client asks in succession. */
#define REJOINS_MAX	8

/* ---- messages ---- */

static void message_done(struct sci_message *m)
{
	kfree(m);
}

struct sci_message *sci_message_alloc(void)
{
	struct sci_message *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);

	if (m) {
		INIT_LIST_HEAD(&m->link);
		m->done = message_done;
	}
	return m;
}

void sci_message_free(struct sci_message *m)
{
	kfree(m);
}

struct sci_message *sci_answer_alloc(struct sci_peer *p)
{
	return sci_peer_is_behind(p) ? NULL : sci_message_alloc();
}

static void message_fill(struct sci_message *m, u8 type, u32 handle)
{
	struct sci_msg_simple *body = (struct sci_msg_simple *)m->body;

	body->type = type;
	body->handle = cpu_to_le32(handle);
}

void sci_post_simple(struct sci_peer *p, struct sci_message *m, u8 type,
		     u32 handle)
{
	if (!m)
		return;
	message_fill(m, type, handle);
	sci_peer_post(p, m);
}

/**
 * struct late_post - a message that waits until no store is in flight
 * @call: posts the message
 * @peer: reference to the receiver
 * @message: the message
 * @ends: value of @peer->ends when the message was made
 */
struct late_post {
	struct sci_retired_call call;
	struct sci_peer *peer;
	struct sci_message *message;
	unsigned int ends;
};

static void message_post_late(struct sci_retired_call *call)
{
	struct late_post *late = container_of(call, struct late_post, call);

	/* a receiver that was lost in the meantime gets no message */
	if (late->ends == late->peer->ends)
		sci_peer_post(late->peer, late->message);
	else
		sci_message_free(late->message);
	sci_peer_unwatch(late->peer);
	sci_peer_put(late->peer);
	kfree(late);
}

/*
 * Post a message after the last store in flight has arrived. Without memory for the wait, post
 * it at once: stores that arrive after it count as errors.
 */
static void message_post_stored(struct sci_peer *p, struct sci_message *m,
				u8 type, u32 handle)
{
	struct late_post *late = NULL;

	if (!m)
		return;
	message_fill(m, type, handle);
	if (sci_retire_pending(p->adapter))
		late = kzalloc(sizeof(*late), GFP_KERNEL);
	if (!late) {
		sci_peer_post(p, m);
		return;
	}
	sci_peer_hold(p);
	/* the next receiver at this node must not get the message, even if no connection is left */
	sci_peer_watch(p);
	late->call.fn = message_post_late;
	late->peer = p;
	late->message = m;
	late->ends = p->ends;
	sci_retire_call(p->adapter, &late->call);
}

static const int proto_errors[] = {
	[SCI_PROTO_OK]		= 0,
	[SCI_PROTO_NOENT]	= -ENOENT,
	[SCI_PROTO_ACCES]	= -EACCES,
	[SCI_PROTO_USERS]	= -EUSERS,
	[SCI_PROTO_NOMEM]	= -ENOMEM,
	[SCI_PROTO_NOBUFS]	= -ENOBUFS,
	[SCI_PROTO_NOTCONN]	= -ENOTCONN,
	[SCI_PROTO_INVAL]	= -EINVAL,
};

int sci_proto_errno(u16 error)
{
	return error < ARRAY_SIZE(proto_errors) ? proto_errors[error] : -EPROTO;
}

u16 sci_proto_error(int err)
{
	u16 i;

	for (i = 0; i < ARRAY_SIZE(proto_errors); i++)
		if (proto_errors[i] == err)
			return i;
	return SCI_PROTO_INVAL;
}

/* ---- either end ---- */

static int connection_add(struct sci_connection *conn, struct sci_peer *p)
{
	struct sci_adapter *a = p->adapter;
	int ret;

	lockdep_assert_held(&a->lock);
	ret = xa_alloc_cyclic(&a->handles, &conn->handle, conn,
			      XA_LIMIT(1, U32_MAX), &a->next_handle,
			      GFP_KERNEL_ACCOUNT);
	if (ret < 0) {
		/* it may be set: then connection_drop() would drop what was not added */
		conn->handle = 0;
		return ret;
	}
	conn->peer = p;
	sci_peer_link(p, &conn->link);
	return 0;
}

static void connection_drop(struct sci_connection *conn)
{
	struct sci_peer *p = conn->peer;

	if (!conn->handle)
		return;
	lockdep_assert_held(&p->adapter->lock);
	xa_erase(&p->adapter->handles, conn->handle);
	conn->handle = 0;
	conn->remote = 0;
	sci_peer_unlink(p, &conn->link);
}

struct sci_connection *sci_connection_find(struct sci_peer *p, u32 handle)
{
	struct sci_connection *conn;

	lockdep_assert_held(&p->adapter->lock);
	conn = xa_load(&p->adapter->handles, handle);
	return conn && conn->peer == p ? conn : NULL;
}

struct sci_server *sci_server_find(struct sci_peer *p, u32 handle)
{
	struct sci_connection *conn = sci_connection_find(p, handle);

	return conn && conn->server ?
	       container_of(conn, struct sci_server, conn) : NULL;
}

static struct sci_client *client_find(struct sci_peer *p, u32 handle)
{
	struct sci_connection *conn = sci_connection_find(p, handle);

	return conn && !conn->server ?
	       container_of(conn, struct sci_client, conn) : NULL;
}

/* ---- clients ---- */

static const char *client_settle_word(int status)
{
	if (!status)
		return "connected";
	return status == -ETIMEDOUT ? "timeout" : "refused";
}

/* Handle the success or the failure of a connect. */
static void client_settle(struct sci_client *c, int status)
{
	lockdep_assert_held(&c->obj.adapter->lock);
	c->status = status;
	WRITE_ONCE(c->state, status ? SCI_REMOTE_GONE : SCI_REMOTE_CONNECTED);
	if (status)
		connection_drop(&c->conn);
	cancel_delayed_work(&c->timeout);
	trace_sci_import_state(c->obj.adapter, c->node, c->id,
			       client_settle_word(status), status);
	if (c->async)
		sci_object_event(&c->obj, SCI_EV_CONNECT, c->node, status, 0);
	else
		wake_up_all(&c->obj.wait);
}

static void client_timeout(struct work_struct *work)
{
	struct sci_client *c = container_of(to_delayed_work(work),
					    struct sci_client, timeout);
	struct sci_adapter *a = c->obj.adapter;

	mutex_lock(&a->lock);
	if (c->state == SCI_REMOTE_CONNECTING)
		client_settle(c, -ETIMEDOUT);
	mutex_unlock(&a->lock);
}

int sci_client_init(struct sci_client *c, enum sci_object_kind kind,
		    const struct sci_object_ops *obj_ops,
		    const struct sci_client_ops *ops, struct sci_adapter *a)
{
	sci_object_init(&c->obj, kind, obj_ops, a);
	c->ops = ops;
	c->state = SCI_REMOTE_CONNECTING;
	INIT_LIST_HEAD(&c->conn.link);
	INIT_DELAYED_WORK(&c->timeout, client_timeout);
	sci_credentials(&c->who);
	c->cred = get_current_cred();
	c->connect = sci_message_alloc();
	c->bye = sci_message_alloc();
	c->ack = sci_message_alloc();
	if (c->connect && c->bye && c->ack)
		return 0;
	sci_client_fini(c);
	return -ENOMEM;
}

static void client_wait_left(struct sci_client *c)
{
	struct sci_adapter *a = c->obj.adapter;

	/* a dying process need not wait */
	wait_event_killable_timeout(c->obj.wait, !READ_ONCE(c->leaving) ||
				    sci_adapter_is_dead(a),
				    msecs_to_jiffies(LEAVE_MS));
}

void sci_client_fini(struct sci_client *c)
{
	struct sci_adapter *a = c->obj.adapter;

	/* a kernel thread that releases a process's file must not wait */
	if (READ_ONCE(c->leaving) && !(current->flags & PF_KTHREAD))
		client_wait_left(c);
	/* the lock also waits for a thread that reports the end of this client */
	mutex_lock(&a->lock);
	connection_drop(&c->conn);
	sci_user_uncharge(a, c->charged, SCI_USER_CONNECTIONS, 1);
	mutex_unlock(&a->lock);
	cancel_delayed_work_sync(&c->timeout);
	put_cred(c->cred);
	sci_message_free(c->connect);
	sci_message_free(c->bye);
	sci_message_free(c->ack);
	if (c->conn.peer)
		sci_peer_put(c->conn.peer);
	sci_object_fini(&c->obj);
}

/* Send CONNECT message @m to @node. After an error the caller still owns @m. */
static int client_ask(struct sci_client *c, u32 node, struct sci_message *m)
{
	struct sci_adapter *a = c->obj.adapter;
	struct sci_peer *p, *old = c->conn.peer;
	struct sci_msg_connect *body = (struct sci_msg_connect *)m->body;
	int ret;

	p = sci_peer_get(a, node);
	if (IS_ERR(p))
		return PTR_ERR(p);
	ret = connection_add(&c->conn, p);
	if (ret) {
		sci_peer_put(p);
		return ret;
	}
	if (old)
		sci_peer_put(old);
	*body = c->who;
	body->kind = c->kind;
	body->id = cpu_to_le32(c->id);
	body->handle = cpu_to_le32(c->conn.handle);
	sci_peer_post(p, m);
	return 0;
}

/*
 * Return -ENOBUFS if too many messages wait for the node. Then the caller may wait for room
 * with c->conn.peer.
 */
static int client_check_room(struct sci_client *c, u32 node)
{
	struct sci_peer *p = sci_peer_get(c->obj.adapter, node);

	if (IS_ERR(p))
		return PTR_ERR(p);
	if (!sci_peer_has_many(p)) {
		sci_peer_put(p);
		return 0;
	}
	if (c->conn.peer)
		sci_peer_put(c->conn.peer);
	c->conn.peer = p;
	return -ENOBUFS;
}

static int client_charge(struct sci_client *c)
{
	struct sci_user *user = sci_user_charge(c->obj.adapter,
						SCI_USER_CONNECTIONS, 1);

	if (IS_ERR(user))
		return PTR_ERR(user);
	c->charged = user;
	return 0;
}

static int client_start(struct sci_client *c)
{
	struct sci_adapter *a = c->obj.adapter;
	u32 node = c->node;
	u64 base;
	int ret;

	if (node == SCI_IOC_NODE_GROUP) {
		c->kind = SCI_KIND_GROUP;
		ret = sci_group_member(a, c->id, 0, &node, &base);
		if (ret)
			return ret;
	}
	if (!a->link_up && node != a->desc.node)
		return -ENETDOWN;
	ret = client_check_room(c, node);
	if (!ret)
		ret = client_charge(c);
	if (!ret)
		ret = client_ask(c, node, c->connect);
	if (!ret)
		c->connect = NULL;
	return ret;
}

static bool client_is_settled(struct sci_client *c)
{
	return READ_ONCE(c->state) != SCI_REMOTE_CONNECTING;
}

/* Wait for the end of a connect. Return its status, -EINTR or -ENODEV. */
static int client_wait(struct sci_client *c)
{
	struct sci_adapter *a = c->obj.adapter;
	int ret;

	ret = wait_event_interruptible(c->obj.wait, client_is_settled(c) ||
				       sci_adapter_is_dead(a));
	if (ret)
		return -EINTR;
	if (sci_adapter_is_dead(a))
		return -ENODEV;
	mutex_lock(&a->lock);
	ret = c->status;
	mutex_unlock(&a->lock);
	return ret;
}

static long client_patience(u32 timeout_ms)
{
	if (timeout_ms == SCI_TIMEOUT_INFINITE)
		return MAX_SCHEDULE_TIMEOUT;
	return msecs_to_jiffies(max(timeout_ms, TIMEOUT_MIN_MS));
}

/* Start to connect. @patience is in jiffies; MAX_SCHEDULE_TIMEOUT: without a limit. */
static int client_begin(struct sci_client *c, long patience)
{
	struct sci_adapter *a = c->obj.adapter;
	int ret;

	mutex_lock(&a->lock);
	ret = client_start(c);
	if (!ret) {
		trace_sci_import_state(a, c->node, c->id, "connecting", 0);
		if (patience != MAX_SCHEDULE_TIMEOUT)
			schedule_delayed_work(&c->timeout, patience);
	}
	mutex_unlock(&a->lock);
	return ret;
}

int sci_client_connect(struct sci_client *c, enum sci_connect_kind kind,
		       u32 node, u32 id, u32 timeout_ms, bool async)
{
	long left = client_patience(timeout_ms);
	int ret;

	c->async = async;
	c->kind = kind;
	c->node = node;
	c->id = id;
	while ((ret = client_begin(c, left)) == -ENOBUFS && !async) {
		ret = sci_peer_wait_room_for(c->conn.peer, &left);
		if (ret)
			break;
	}
	return ret || async ? ret : client_wait(c);
}

int sci_client_usable(struct sci_client *c)
{
	struct sci_adapter *a = c->obj.adapter;

	lockdep_assert_held(&a->lock);
	if (c->state != SCI_REMOTE_CONNECTED)
		return -ENOTCONN;
	return !a->link_up && c->node != a->desc.node ? -ENETDOWN : 0;
}

void sci_client_show(struct sci_client *c, struct seq_file *m)
{
	static const char *const words[] = {
		[SCI_REMOTE_CONNECTING]	= "connecting",
		[SCI_REMOTE_CONNECTED]	= "connected",
		[SCI_REMOTE_GONE]	= "gone",
	};

	seq_printf(m, "sci-remote-node:\t%u\n", c->node);
	seq_printf(m, "sci-remote-id:\t%u\n", c->id);
	seq_printf(m, "sci-remote-state:\t%s\n", words[READ_ONCE(c->state)]);
}

/* Send a DISCONNECT to the exporter, if the client is connected. */
static void client_leave(struct sci_client *c)
{
	struct sci_adapter *a = c->obj.adapter;
	bool died = sci_object_died(&c->obj);

	/* removal of the adapter sends one BYE for all connections */
	if (!c->conn.remote || !c->bye || sci_adapter_is_dead(a))
		return;
	((struct sci_msg_simple *)c->bye->body)->died = died;
	message_post_stored(c->conn.peer, c->bye, SCI_MSG_DISCONNECT,
			    c->conn.remote);
	c->bye = NULL;
	c->leaving = !died && a->link_up;
}

void sci_client_end(struct sci_client *c)
{
	lockdep_assert_held(&c->obj.adapter->lock);
	cancel_delayed_work(&c->timeout);
	client_leave(c);
	if (c->state != SCI_REMOTE_GONE) {
		c->status = sci_adapter_is_dead(c->obj.adapter) ? -ENODEV :
								  -ENOTCONN;
		WRITE_ONCE(c->state, SCI_REMOTE_GONE);
		trace_sci_import_state(c->obj.adapter, c->node, c->id,
				       "disconnect", 0);
	}
	if (!c->leaving)
		connection_drop(&c->conn);
}

/* Handle the answer to a DISCONNECT: close() need not wait any more. */
static void client_left(struct sci_client *c)
{
	connection_drop(&c->conn);
	WRITE_ONCE(c->leaving, false);
	wake_up_all(&c->obj.wait);
}

/*
 * Connect to another member of the group: the member of this connection has ended, but the maps
 * show memory of the whole group. Return false if that is impossible.
 */
static bool client_rejoin(struct sci_client *c)
{
	struct sci_adapter *a = c->obj.adapter;
	struct sci_message *m;
	u64 base;
	u32 node;

	if (c->node != SCI_IOC_NODE_GROUP || sci_adapter_is_dead(a) ||
	    c->rejoins == REJOINS_MAX ||
	    sci_group_member(a, c->id, c->group, &node, &base))
		return false;
	m = sci_message_alloc();
	if (!m)
		return false;
	if (client_ask(c, node, m)) {
		sci_message_free(m);
		return false;
	}
	c->rejoining = true;
	c->rejoins++;
	return true;
}

void sci_client_lost(struct sci_client *c, int status)
{
	struct sci_adapter *a = c->obj.adapter;

	lockdep_assert_held(&a->lock);
	connection_drop(&c->conn);
	if (client_rejoin(c))
		return;
	c->status = status;
	WRITE_ONCE(c->state, SCI_REMOTE_GONE);
	sci_count(a, SCI_COUNT_REVOKED, 1);
	trace_sci_import_state(a, c->node, c->id, "lost", status);
	if (c->ops->gone)
		c->ops->gone(c);
	sci_object_event(&c->obj, SCI_EV_LOST, c->node, status, 0);
}

/* End a connection that the peer has granted, but that this node does not want. */
static void client_refuse(struct sci_peer *p, const struct sci_msg_reply *re)
{
	if (!re->error && re->exporter)
		sci_post_simple(p, sci_answer_alloc(p), SCI_MSG_DISCONNECT,
				le32_to_cpu(re->exporter));
}

/* Handle the reply of another member of the group. */
static void client_rejoined(struct sci_client *c,
			    const struct sci_msg_reply *re)
{
	c->rejoining = false;
	if (re->error || !sci_message_is_sane(re) || !re->exporter ||
	    le64_to_cpu(re->group) != c->group ||
	    c->ops->connected(c, re)) {
		client_refuse(c->conn.peer, re);
		sci_client_lost(c, -ECONNRESET);
		return;
	}
	c->conn.remote = le32_to_cpu(re->exporter);
	c->rejoins = 0;
}

static bool client_reply_is_sane(struct sci_client *c,
				 const struct sci_msg_reply *re)
{
	return sci_message_is_sane(re) && re->exporter &&
	       !re->group == (c->kind != SCI_KIND_GROUP);
}

static void client_reply(struct sci_client *c, const struct sci_msg_reply *re)
{
	int status = sci_proto_errno(le16_to_cpu(re->error));

	if (!status)
		status = client_reply_is_sane(c, re) ?
				 c->ops->connected(c, re) :
				 -EPROTO;
	if (!status) {
		c->conn.remote = le32_to_cpu(re->exporter);
		c->group = le64_to_cpu(re->group);
		sci_count(c->obj.adapter, SCI_COUNT_IMPORTS, 1);
	} else {
		client_refuse(c->conn.peer, re);
	}
	client_settle(c, status);
}

void sci_connection_reply(struct sci_peer *p, const struct sci_msg_reply *re)
{
	struct sci_client *c = client_find(p, le32_to_cpu(re->handle));

	if (c && c->rejoining)
		client_rejoined(c, re);
	else if (c && c->state == SCI_REMOTE_CONNECTING)
		client_reply(c, re);
	else if (!c)		/* the client gave up meanwhile */
		client_refuse(p, re);
	else
		sci_count(p->adapter, SCI_COUNT_CTRL_BAD, 1);
}

/* ---- servers ---- */

static void server_free(struct sci_server *s)
{
	struct sci_peer *p = s->conn.peer;

	connection_drop(&s->conn);
	list_del(&s->link);
	if (s->exporter && s->ops->gone)
		s->ops->gone(s->exporter, s->cut);
	sci_message_free(s->notify_msg);
	sci_message_free(s->cut_msg);
	kfree(s);
	sci_peer_put(p);
}

static void server_left(struct sci_server *s, bool died)
{
	if (s->exporter && !s->cut && s->ops->left)
		s->ops->left(s, died);
	server_free(s);
}

static struct sci_server *server_alloc(struct sci_peer *p,
				       const struct sci_server_ops *ops)
{
	struct sci_server *s = kzalloc(sizeof(*s), GFP_KERNEL);

	if (!s)
		return NULL;
	INIT_LIST_HEAD(&s->link);
	s->ops = ops;
	s->conn.server = true;
	s->notify_msg = sci_message_alloc();
	s->cut_msg = sci_message_alloc();
	if (!s->notify_msg || !s->cut_msg || connection_add(&s->conn, p)) {
		sci_message_free(s->notify_msg);
		sci_message_free(s->cut_msg);
		kfree(s);
		return NULL;
	}
	sci_peer_hold(p);
	return s;
}

static int server_accept(struct sci_server *s, const struct sci_msg_connect *msg,
			 struct sci_msg_reply *re)
{
	struct sci_peer *p = s->conn.peer;
	struct sci_caller who = { .msg = msg };
	struct sci_exporter *e;
	struct sci_client *c;

	if (p->node == p->adapter->desc.node) {
		c = client_find(p, le32_to_cpu(msg->handle));
		who.cred = c ? c->cred : NULL;
	}
	e = s->ops->accept(p->adapter, &who, re);
	if (IS_ERR(e))
		return PTR_ERR(e);
	s->kind = msg->kind;
	s->exporter = e;
	list_add_tail(&s->link, &e->servers);
	if (s->ops->joined)
		s->ops->joined(s);
	return 0;
}

/* Return 0 if a connect may be granted, else -EINVAL or -EUSERS. */
static int server_check_connect(struct sci_peer *p,
				const struct sci_msg_connect *msg)
{
	if (!sci_message_is_sane(msg))
		return -EINVAL;
	return p->connections < CONNECTIONS_MAX ? 0 : -EUSERS;
}

void sci_connection_connect(struct sci_peer *p,
			    const struct sci_msg_connect *msg,
			    const struct sci_server_ops *ops)
{
	struct sci_message *m = sci_answer_alloc(p);
	struct sci_msg_reply *re;
	struct sci_server *s = NULL;
	int ret;

	lockdep_assert_held(&p->adapter->lock);
	if (!m)
		return;		/* the client's timeout will end its wait */
	re = (struct sci_msg_reply *)m->body;
	re->type = SCI_MSG_REPLY;
	re->handle = msg->handle;
	ret = ops ? server_check_connect(p, msg) : -EINVAL;
	if (!ret) {
		s = server_alloc(p, ops);
		ret = s ? 0 : -ENOMEM;
	}
	if (s) {
		s->conn.remote = le32_to_cpu(msg->handle);
		ret = server_accept(s, msg, re);
		re->exporter = cpu_to_le32(s->conn.handle);
		if (ret)
			server_free(s);
	}
	re->error = cpu_to_le16(sci_proto_error(ret));
	if (ret)
		re->exporter = 0;
	sci_peer_post(p, m);
}

void sci_exporter_init(struct sci_exporter *e)
{
	INIT_LIST_HEAD(&e->servers);
}

void sci_exporter_notify(struct sci_exporter *e)
{
	struct sci_server *s;

	list_for_each_entry(s, &e->servers, link) {
		if (s->cut)
			continue;
		sci_post_simple(s->conn.peer, s->notify_msg, SCI_MSG_NOTIFY,
				s->conn.remote);
		s->notify_msg = NULL;
	}
}

unsigned int sci_exporter_cut(struct sci_exporter *e, bool died)
{
	struct sci_server *s;
	unsigned int n = 0;

	list_for_each_entry(s, &e->servers, link) {
		if (s->cut)
			continue;
		s->cut = true;
		n++;
		/* removal of the adapter sends one BYE for all connections */
		if (sci_adapter_is_dead(s->conn.peer->adapter))
			continue;
		((struct sci_msg_simple *)s->cut_msg->body)->died = died;
		sci_post_simple(s->conn.peer, s->cut_msg, SCI_MSG_CUT,
				s->conn.remote);
		s->cut_msg = NULL;
	}
	return n;
}

void sci_exporter_end(struct sci_exporter *e)
{
	struct sci_server *s, *next;

	list_for_each_entry_safe(s, next, &e->servers, link) {
		s->exporter = NULL;
		list_del_init(&s->link);
	}
}

/* ---- messages about both ends ---- */

static void client_message(struct sci_client *c,
			   const struct sci_msg_simple *msg)
{
	struct sci_peer *p = c->conn.peer;
	u32 remote = c->conn.remote;

	if (msg->type == SCI_MSG_NOTIFY) {
		trace_sci_import_state(p->adapter, c->node, c->id, "notify", 0);
		sci_object_event(&c->obj, SCI_EV_DISCONNECT, c->node, 0, 0);
		return;
	}
	/* acknowledge CUT only when no store is in flight any more */
	sci_client_lost(c, msg->died ? -ECONNRESET : -ENOTCONN);
	message_post_stored(p, c->ack, SCI_MSG_CUT_ACK, remote);
	/* the next group member may cut this client off, too: that needs another CUT_ACK */
	c->ack = c->rejoining ? sci_message_alloc() : NULL;
}

void sci_connection_simple(struct sci_peer *p,
			   const struct sci_msg_simple *msg)
{
	u32 handle = le32_to_cpu(msg->handle);
	struct sci_client *c;
	struct sci_server *s;

	lockdep_assert_held(&p->adapter->lock);
	switch (msg->type) {
	case SCI_MSG_NOTIFY:
	case SCI_MSG_CUT:
		c = client_find(p, handle);
		if (c && c->conn.remote && !c->leaving)
			client_message(c, msg);
		break;		/* else the client left while this message was in flight */
	case SCI_MSG_LEFT:
		c = client_find(p, handle);
		if (c && c->leaving)
			client_left(c);
		break;
	case SCI_MSG_DISCONNECT:
		s = sci_server_find(p, handle);
		if (s) {
			handle = s->conn.remote;
			server_left(s, msg->died);
			sci_post_simple(p, sci_answer_alloc(p), SCI_MSG_LEFT,
					handle);
		}
		break;
	case SCI_MSG_CUT_ACK:
		s = sci_server_find(p, handle);
		if (s && s->cut)
			server_free(s);
		break;
	}
}

void sci_connection_peer_gone(struct sci_peer *p, int error)
{
	struct sci_connection *conn, *next;
	struct sci_client *c;
	LIST_HEAD(gone);

	lockdep_assert_held(&p->adapter->lock);
	p->ends++;
	/* A client that rejoins meanwhile enters another peer's list, or this one again. */
	list_splice_init(&p->links, &gone);
	list_for_each_entry_safe(conn, next, &gone, link) {
		if (conn->server) {
			server_left(container_of(conn, struct sci_server, conn),
				    true);
			continue;
		}
		c = container_of(conn, struct sci_client, conn);
		if (c->leaving)
			client_left(c);
		else if (c->state == SCI_REMOTE_CONNECTING)
			client_settle(c, error);
		else
			sci_client_lost(c, error);
	}
}

void sci_connections_drop(struct sci_adapter *a)
{
	struct sci_connection *conn;
	unsigned long handle;

	mutex_lock(&a->lock);
	xa_for_each(&a->handles, handle, conn) {
		if (conn->server)
			server_free(container_of(conn, struct sci_server,
						 conn));
		else	/* a client that waits in close() */
			client_left(container_of(conn, struct sci_client,
						 conn));
	}
	mutex_unlock(&a->lock);
	xa_destroy(&a->handles);
}
