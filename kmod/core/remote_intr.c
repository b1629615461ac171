// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Remote interrupts: interrupts of other nodes that this node triggers. */

#include <linux/slab.h>

#include "core.h"
#include "intr.h"
#include "intr_data.h"
#include "remote_intr.h"
#include "trace.h"

static int remote_connected(struct sci_client *c,
			    const struct sci_msg_reply *re)
{
	sci_remote_intr_of(&c->obj)->handle = le32_to_cpu(re->exporter);
	return 0;
}

static const struct sci_client_ops remote_client_ops = {
	.connected = remote_connected,
};

static void remote_kill(struct sci_object *obj)
{
	struct sci_client *c = sci_client_of(obj);

	sci_client_end(c);
	if (sci_adapter_is_dead(obj->adapter))
		sci_object_event(obj, SCI_EV_LOST, c->node, -ENODEV, 0);
}

static void remote_free(struct sci_object *obj)
{
	struct sci_remote_intr *r = sci_remote_intr_of(obj);

	sci_client_fini(&r->client);
	kfree(r);
}

static void remote_show(struct sci_object *obj, struct seq_file *m)
{
	sci_client_show(sci_client_of(obj), m);
}

static const struct sci_object_ops remote_ops = {
	.name = "[sci-remote-interrupt]",
	.kill = remote_kill,
	.free = remote_free,
	.show = remote_show,
};

int sci_intr_connect(struct sci_object *obj, void *cmd,
		     struct sci_new_file *nf)
{
	struct sci_ioc_intr_connect *c = cmd;
	struct sci_remote_intr *r;
	int ret;

	/* a group has no interrupts */
	if (c->node == SCI_IOC_NODE_GROUP)
		return -EINVAL;
	r = kzalloc(sizeof(*r), GFP_KERNEL_ACCOUNT);
	if (!r)
		return -ENOMEM;
	r->data = c->flags & SCI_CONNECT_DATA;
	if (sci_client_init(&r->client, SCI_OBJECT_REMOTE_INTR, &remote_ops,
			    &remote_client_ops, obj->adapter)) {
		kfree(r);
		return -ENOMEM;
	}
	ret = sci_object_file(&r->client.obj, nf);
	if (ret) {
		remote_free(&r->client.obj);
		return ret;
	}
	/* from here on the release of the file cleans up after errors */
	ret = sci_client_connect(&r->client, r->data ? SCI_KIND_DATA_INTR :
				 SCI_KIND_INTR, c->node, c->number,
				 c->timeout_ms, c->flags & SCI_CONNECT_ASYNC);
	if (!ret)
		c->out_fd = nf->fd;
	return ret;
}

/* Post a trigger. Return -ENOBUFS if too many messages wait for the node. */
static int remote_post(struct sci_client *c, struct sci_message *m)
{
	struct sci_adapter *a = c->obj.adapter;
	int ret;

	mutex_lock(&a->lock);
	ret = sci_client_usable(c);
	if (!ret && sci_peer_has_many(c->conn.peer))
		ret = -ENOBUFS;
	if (!ret)
		sci_post_simple(c->conn.peer, m, SCI_MSG_TRIGGER,
				c->conn.remote);
	mutex_unlock(&a->lock);
	return ret;
}

/* Trigger by a message. A thread that triggers faster than the node answers waits for room. */
static int remote_trigger_message(struct sci_client *c)
{
	struct sci_message *m = sci_message_alloc();
	int ret;

	if (!m)
		return -ENOMEM;
	while ((ret = remote_post(c, m)) == -ENOBUFS) {
		ret = sci_peer_wait_room(c->conn.peer);
		if (ret)
			break;
	}
	if (ret)
		sci_message_free(m);
	return ret;
}

static int remote_trigger_adapter(struct sci_client *c)
{
	struct sci_adapter *a = c->obj.adapter;
	u32 remote;
	int ret;

	mutex_lock(&a->lock);
	ret = sci_client_usable(c);
	remote = c->conn.remote;
	mutex_unlock(&a->lock);
	if (ret)
		return ret;
	if (c->node != a->desc.node)
		return a->desc.ops->trigger(a, c->node, remote);
	/*
	 * A DISCONNECT to the own node does not go through the adapter, and would
	 * overtake a trigger that does: deliver the trigger here.
	 */
	sci_intr_triggered(a, a->desc.node, remote);
	return 0;
}

static int remote_trigger(struct sci_client *c)
{
	struct sci_adapter *a = c->obj.adapter;
	int idx, ret;

	ret = sci_adapter_enter(a, &idx);
	if (ret)
		return ret;
	ret = a->desc.ops->trigger ? remote_trigger_adapter(c) :
				     remote_trigger_message(c);
	sci_adapter_exit(a, idx);
	return ret;
}

/* This function calls sci_adapter_enter() itself. */
int sci_intr_trigger(struct sci_object *obj, void *cmd,
		     struct sci_new_file *nf)
{
	struct sci_remote_intr *r = sci_remote_intr_of(obj);
	struct sci_ioc_intr_trigger *c = cmd;
	int ret;

	if (c->reserved || (!r->data && (c->length || c->data)))
		return -EINVAL;
	if (c->length > SCI_IOC_INTR_DATA_MAX)
		return -EMSGSIZE;
	if (READ_ONCE(r->client.state) != SCI_REMOTE_CONNECTED)
		return -ENOTCONN;
	ret = r->data ? sci_intr_data_send(&r->client, u64_to_user_ptr(c->data),
					   c->length) :
			remote_trigger(&r->client);
	if (ret)
		return ret;
	sci_count(obj->adapter, SCI_COUNT_TRIGGERS_SENT, 1);
	trace_sci_trigger(obj->adapter, r->client.node, r->handle, c->length,
			  true);
	return 0;
}
