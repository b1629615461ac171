// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Dispatch messages of other nodes by their type, and answer PING. */

#include <linux/slab.h>

#include "compat.h"
#include "connection.h"
#include "core.h"
#include "intr.h"
#include "message.h"
#include "probe.h"
#include "segment.h"

static const struct sci_server_ops *proto_server_ops(u8 kind)
{
	switch (kind) {
	case SCI_KIND_SEGMENT:
	case SCI_KIND_GROUP:
		return &sci_segment_server_ops;
	case SCI_KIND_INTR:
	case SCI_KIND_DATA_INTR:
		return &sci_intr_server_ops;
	default:
		return NULL;
	}
}

static void proto_deliver_locked(struct sci_peer *p, const void *body)
{
	const struct sci_msg_connect *connect = body;

	lockdep_assert_held(&p->adapter->lock);
	switch (*(const u8 *)body) {
	case SCI_MSG_CONNECT:
		sci_connection_connect(p, connect, proto_server_ops(connect->kind));
		break;
	case SCI_MSG_REPLY:
		sci_connection_reply(p, body);
		break;
	case SCI_MSG_DISCONNECT:
	case SCI_MSG_NOTIFY:
	case SCI_MSG_CUT:
	case SCI_MSG_CUT_ACK:
	case SCI_MSG_LEFT:
		sci_connection_simple(p, body);
		break;
	case SCI_MSG_DATA:
	case SCI_MSG_MORE:
		sci_intr_data(p, body);
		break;
	case SCI_MSG_DATA_REPLY:
		sci_intr_data_reply(p, body);
		break;
	case SCI_MSG_PING:
		sci_post_simple(p, sci_answer_alloc(p), SCI_MSG_PONG,
				le32_to_cpu(((const struct sci_msg_simple *)
					     body)->handle));
		break;
	case SCI_MSG_PONG:
		sci_probe_answer(p, body);
		break;
	}
}

static void proto_deliver(struct sci_peer *p, const void *body)
{
	const struct sci_msg_simple *msg = body;

	/* handle an invalid CONNECT or REPLY, too: a process waits for its result */
	if (!sci_message_is_sane(body)) {
		sci_count(p->adapter, SCI_COUNT_CTRL_BAD, 1);
		if (msg->type != SCI_MSG_CONNECT && msg->type != SCI_MSG_REPLY)
			return;
	}
	if (msg->type == SCI_MSG_TRIGGER) {
		sci_intr_triggered(p->adapter, p->node,
				   le32_to_cpu(msg->handle));
		return;
	}
	mutex_lock(&p->adapter->lock);
	proto_deliver_locked(p, body);
	mutex_unlock(&p->adapter->lock);
}

static void proto_handle_gone(struct sci_peer *p, int error)
{
	mutex_lock(&p->adapter->lock);
	sci_intr_data_forget(p);
	sci_probe_peer_gone(p, error);
	sci_connection_peer_gone(p, error);
	mutex_unlock(&p->adapter->lock);
}

const struct sci_peer_ops sci_proto_peer_ops = {
	.deliver = proto_deliver,
	.gone = proto_handle_gone,
	.release = sci_intr_data_forget,
};
