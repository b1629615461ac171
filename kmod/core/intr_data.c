// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Data interrupts: see intr_data.h. */

#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "core.h"
#include "intr_data.h"
#include "remote_intr.h"
#include "trace.h"

#define QUEUE_BYTES	(16u << 20)	/* limit of unread bytes for one owner */
/* A trigger counts as at least this many bytes in the limits of unread bytes. */
#define CHARGE_MIN	256u

static unsigned int max_data = 256;
module_param(max_data, uint, 0644);
MODULE_PARM_DESC(max_data,
		 "MiB of unread data interrupts that one adapter holds (256)");

/* The data of one trigger. */
struct sci_intr_data {
	struct list_head link;
	u32 len;
	u8 bytes[];
};

/* A trigger whose data is arriving. peer->data_in points to it. */
struct sci_data_in {
	u32 handle;
	u32 total;
	u32 got;
	__le16 cookie;
	int error;			/* a trigger that is refused is received to its end */
	struct sci_intr_data *data;	/* NULL: the trigger is refused */
};

static size_t data_charge(u32 len)
{
	return max_t(size_t, sizeof(struct sci_intr_data) + len, CHARGE_MIN);
}

/* Free queued data and end its charge. */
static void data_free(struct sci_adapter *a, struct sci_intr_data *d)
{
	atomic_long_sub(data_charge(d->len), &a->data_bytes);
	kvfree(d);
}

/* ---- reading ---- */

void sci_intr_data_drop(struct sci_intr *i)
{
	struct sci_intr_data *d, *next;

	list_for_each_entry_safe(d, next, &i->data, link)
		data_free(i->obj.adapter, d);
}

static struct sci_intr_data *data_take(struct sci_intr *i, size_t room)
{
	struct sci_intr_data *d;

	spin_lock(&i->obj.ev_lock);
	d = list_first_entry_or_null(&i->data, struct sci_intr_data, link);
	if (i->cancelled) {
		d = ERR_PTR(-ECANCELED);
	} else if (!d) {
		d = ERR_PTR(-EAGAIN);
	} else if (d->len > room) {
		d = ERR_PTR(-EMSGSIZE);
	} else {
		list_del(&d->link);
		i->data_bytes -= data_charge(d->len);
	}
	spin_unlock(&i->obj.ev_lock);
	return d;
}

static void data_put_back(struct sci_intr *i, struct sci_intr_data *d)
{
	spin_lock(&i->obj.ev_lock);
	list_add(&d->link, &i->data);
	i->data_bytes += data_charge(d->len);
	spin_unlock(&i->obj.ev_lock);
	sci_object_wake(&i->obj);
}

ssize_t sci_intr_data_read(struct sci_intr *i, char __user *buf, size_t len)
{
	struct sci_intr_data *d = data_take(i, len);
	ssize_t ret;

	if (IS_ERR(d))
		return PTR_ERR(d);
	if (copy_to_user(buf, d->bytes, d->len)) {
		data_put_back(i, d);
		return -EFAULT;
	}
	ret = d->len;
	data_free(i->obj.adapter, d);
	return ret;
}

int sci_intr_fionread(struct sci_object *obj, int __user *out)
{
	struct sci_intr *i = container_of(obj, struct sci_intr, obj);
	struct sci_intr_data *d;
	int len = 0;

	spin_lock(&obj->ev_lock);
	d = list_first_entry_or_null(&i->data, struct sci_intr_data, link);
	if (d)
		len = d->len;
	else if (i->pending)
		len = sizeof(u64);
	spin_unlock(&obj->ev_lock);
	return put_user(len, out);
}

/* ---- arriving ---- */

static struct sci_intr *data_owner(struct sci_peer *p, u32 handle)
{
	struct sci_server *s = sci_server_find(p, handle);
	struct sci_intr_line *l;

	if (!s || !s->exporter || s->kind != SCI_KIND_DATA_INTR)
		return NULL;
	l = sci_intr_line_of(s->exporter);
	return list_first_entry(&l->owners, struct sci_intr, link);
}

/*
 * Return whether the queue is full. No user is charged for data from other nodes, so queues
 * have limits.
 */
static bool data_queue_is_full(struct sci_adapter *a, struct sci_intr *i,
			       u32 len)
{
	u64 limit = (u64)READ_ONCE(max_data) << 20;
	bool full;

	if (atomic_long_read(&a->data_bytes) + data_charge(len) > limit)
		return true;
	spin_lock(&i->obj.ev_lock);
	full = i->data_bytes + data_charge(len) > QUEUE_BYTES;
	spin_unlock(&i->obj.ev_lock);
	return full;
}

static int data_make_room(struct sci_adapter *a, struct sci_data_in *in,
			  struct sci_intr *i)
{
	if (!i)
		return -ENOTCONN;
	if (data_queue_is_full(a, i, in->total))
		return -ENOBUFS;
	in->data = kvmalloc(struct_size(in->data, bytes, in->total),
			    GFP_KERNEL | __GFP_NOWARN);
	if (!in->data)
		return -ENOBUFS;
	in->data->len = in->total;
	return 0;
}

static void data_begin(struct sci_peer *p, const struct sci_msg_data *msg)
{
	struct sci_data_in *in = p->data_in;

	if (!in) {
		in = kzalloc(sizeof(*in), GFP_KERNEL);
		if (!in)
			return;
		p->data_in = in;
	}
	/* a peer that begins a trigger before its last one is complete violates the protocol */
	kvfree(in->data);
	*in = (struct sci_data_in){
		.handle = le32_to_cpu(msg->handle),
		.total = le32_to_cpu(msg->total),
		.cookie = msg->cookie,
	};
	if (in->total > SCI_IOC_INTR_DATA_MAX)
		in->error = -EINVAL;
	else
		in->error = data_make_room(p->adapter, in,
					   data_owner(p, in->handle));
}

static void data_queue(struct sci_data_in *in, struct sci_intr *i)
{
	struct sci_intr_data *d = in->data;

	in->data = NULL;
	atomic_long_add(data_charge(d->len), &i->obj.adapter->data_bytes);
	spin_lock(&i->obj.ev_lock);
	list_add_tail(&d->link, &i->data);
	i->data_bytes += data_charge(d->len);
	spin_unlock(&i->obj.ev_lock);
	sci_object_wake(&i->obj);
}

static void data_end(struct sci_peer *p, struct sci_data_in *in)
{
	struct sci_server *s = sci_server_find(p, in->handle);
	struct sci_intr *i = data_owner(p, in->handle);
	struct sci_msg_simple *re;
	struct sci_message *m;

	if (!in->error && !i)
		in->error = -ENOTCONN;
	if (!in->error) {
		sci_count(p->adapter, SCI_COUNT_TRIGGERS_RECEIVED, 1);
		trace_sci_trigger(p->adapter, p->node, in->handle, in->total,
				  false);
		data_queue(in, i);
	}
	kvfree(in->data);
	in->data = NULL;
	in->handle = 0;
	m = s ? sci_answer_alloc(p) : NULL;
	if (!m)
		return;
	re = (struct sci_msg_simple *)m->body;
	re->error = cpu_to_le16(sci_proto_error(in->error));
	re->cookie = in->cookie;
	sci_post_simple(p, m, SCI_MSG_DATA_REPLY, s->conn.remote);
}

void sci_intr_data(struct sci_peer *p, const struct sci_msg_data *msg)
{
	struct sci_data_in *in;

	lockdep_assert_held(&p->adapter->lock);
	if (msg->type == SCI_MSG_DATA)
		data_begin(p, msg);
	in = p->data_in;
	if (!in || !in->handle || in->handle != le32_to_cpu(msg->handle) ||
	    msg->bytes > SCI_MSG_DATA_BYTES ||
	    msg->bytes > in->total - in->got ||
	    (!msg->bytes && in->total)) {
		sci_count(p->adapter, SCI_COUNT_CTRL_BAD, 1);
		return;
	}
	if (in->data)
		memcpy(in->data->bytes + in->got, msg->data, msg->bytes);
	in->got += msg->bytes;
	if (in->got == in->total)
		data_end(p, in);
}

void sci_intr_data_forget(struct sci_peer *p)
{
	struct sci_data_in *in = p->data_in;

	p->data_in = NULL;
	if (in)
		kvfree(in->data);
	kfree(in);
}

/* ---- sending ---- */

static void data_free_messages(struct list_head *list)
{
	struct sci_message *m, *next;

	list_for_each_entry_safe(m, next, list, link) {
		list_del(&m->link);
		sci_message_free(m);
	}
}

/* Make all messages for @len bytes, complete except for handle and cookie. */
static int data_make_messages(struct list_head *list, const void __user *data,
			      u32 len)
{
	struct sci_msg_data *body;
	struct sci_message *m;
	u32 done = 0;

	do {
		m = sci_message_alloc();
		if (!m)
			return -ENOMEM;
		list_add_tail(&m->link, list);
		body = (struct sci_msg_data *)m->body;
		body->type = done ? SCI_MSG_MORE : SCI_MSG_DATA;
		body->bytes = min_t(u32, len - done, SCI_MSG_DATA_BYTES);
		body->total = cpu_to_le32(done ? 0 : len);
		if (copy_from_user(body->data, data + done, body->bytes))
			return -EFAULT;
		done += body->bytes;
	} while (done < len);
	return 0;
}

static int data_post_messages(struct sci_remote_intr *r, struct list_head *list)
{
	struct sci_client *c = &r->client;
	struct sci_adapter *a = c->obj.adapter;
	struct sci_message *m, *next;
	struct sci_msg_data *body;
	int ret;

	mutex_lock(&a->lock);
	ret = sci_client_usable(c);
	if (!ret) {
		r->reply = 1;
		r->cookie++;
		list_for_each_entry_safe(m, next, list, link) {
			list_del_init(&m->link);
			body = (struct sci_msg_data *)m->body;
			body->handle = cpu_to_le32(c->conn.remote);
			if (body->type == SCI_MSG_DATA)
				body->cookie = cpu_to_le16(r->cookie);
			sci_peer_post(c->conn.peer, m);
		}
	}
	mutex_unlock(&a->lock);
	return ret;
}

/* Return the limit for a reply in jiffies: a timeout for each window of messages. */
static unsigned long data_reply_patience(u32 len)
{
	return sci_peer_patience() *
	       (1 + len / (SCI_MSG_DATA_BYTES * SCI_SESSION_WINDOW));
}

/*
 * Wait for the reply. The wait is limited, because the owner's node sends no reply when it
 * has no memory, and other senders wait for this one.
 */
static int data_wait_reply(struct sci_remote_intr *r, u32 len)
{
	struct sci_client *c = &r->client;
	struct sci_adapter *a = c->obj.adapter;
	long left;

	left = wait_event_killable_timeout(c->obj.wait,
					   READ_ONCE(r->reply) <= 0 ||
						   READ_ONCE(c->state) ==
							   SCI_REMOTE_GONE ||
						   sci_adapter_is_dead(a),
					   data_reply_patience(len));
	if (left < 0)
		return -EINTR;
	if (READ_ONCE(r->reply) <= 0)
		return r->reply;
	if (!left)
		return -ETIMEDOUT;
	return sci_adapter_is_dead(a) ? -ENODEV : -ENOTCONN;
}

/* Send one trigger at a time to a peer: fragments of two triggers must not mix. */
static int data_send_messages(struct sci_remote_intr *r, struct list_head *list,
			      u32 len)
{
	struct sci_peer *p = r->client.conn.peer;
	int ret;

	if (mutex_lock_killable(&p->data_lock))
		return -EINTR;
	ret = sci_peer_wait_room(p);
	if (!ret)
		ret = data_post_messages(r, list);
	if (!ret)
		ret = data_wait_reply(r, len);
	mutex_unlock(&p->data_lock);
	return ret;
}

int sci_intr_data_send(struct sci_client *c, const void __user *data, u32 len)
{
	struct sci_remote_intr *r = sci_remote_intr_of(&c->obj);
	LIST_HEAD(list);
	int idx, ret;

	ret = data_make_messages(&list, data, len);
	if (!ret)
		ret = sci_adapter_enter(c->obj.adapter, &idx);
	if (!ret) {
		ret = data_send_messages(r, &list, len);
		sci_adapter_exit(c->obj.adapter, idx);
	}
	data_free_messages(&list);
	return ret;
}

void sci_intr_data_reply(struct sci_peer *p, const struct sci_msg_simple *msg)
{
	struct sci_connection *conn;
	struct sci_remote_intr *r;
	struct sci_client *c;

	lockdep_assert_held(&p->adapter->lock);
	conn = sci_connection_find(p, le32_to_cpu(msg->handle));
	if (!conn || conn->server)
		return;
	c = container_of(conn, struct sci_client, conn);
	if (c->kind != SCI_KIND_DATA_INTR)
		return;
	r = sci_remote_intr_of(&c->obj);
	if (le16_to_cpu(msg->cookie) != r->cookie)
		return;
	WRITE_ONCE(r->reply, sci_proto_errno(le16_to_cpu(msg->error)));
	wake_up_all(&c->obj.wait);
}
