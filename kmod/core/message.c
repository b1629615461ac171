// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Check the form of messages from other nodes. */

#include <linux/string.h>

#include "message.h"
#include "proto.h"

static bool message_is_zero(const void *p, size_t size)
{
	return !memchr_inv(p, 0, size);
}

static bool message_connect_is_sane(const struct sci_msg_connect *m)
{
	return m->kind <= SCI_KIND_GROUP && !(m->flags & ~SCI_MSG_OVERRIDES) &&
	       m->handle && m->groups <= SCI_MSG_GROUPS &&
	       message_is_zero(m->group + m->groups,
			       (SCI_MSG_GROUPS - m->groups) *
				       sizeof(m->group[0]));
}

static bool message_reply_is_sane(const struct sci_msg_reply *m)
{
	return !(m->access & ~6) && !m->reserved &&
	       message_is_zero(m->pad, sizeof(m->pad));
}

static bool message_simple_is_sane(const struct sci_msg_simple *m)
{
	bool may_die = m->type == SCI_MSG_DISCONNECT || m->type == SCI_MSG_CUT;

	if (m->type != SCI_MSG_DATA_REPLY && (m->error || m->cookie))
		return false;
	return m->died <= may_die && message_is_zero(m->pad, sizeof(m->pad));
}

static bool message_data_is_sane(const struct sci_msg_data *m)
{
	if (m->type == SCI_MSG_MORE && (m->cookie || m->total))
		return false;
	return m->bytes <= SCI_MSG_DATA_BYTES &&
	       message_is_zero(m->data + m->bytes,
			       SCI_MSG_DATA_BYTES - m->bytes);
}

bool sci_message_is_sane(const void *body)
{
	switch (*(const u8 *)body) {
	case SCI_MSG_CONNECT:
		return message_connect_is_sane(body);
	case SCI_MSG_REPLY:
		return message_reply_is_sane(body);
	case SCI_MSG_DATA:
	case SCI_MSG_MORE:
		return message_data_is_sane(body);
	case SCI_MSG_DISCONNECT:
	case SCI_MSG_NOTIFY:
	case SCI_MSG_CUT:
	case SCI_MSG_CUT_ACK:
	case SCI_MSG_TRIGGER:
	case SCI_MSG_DATA_REPLY:
	case SCI_MSG_PING:
	case SCI_MSG_PONG:
	case SCI_MSG_LEFT:
		return message_simple_is_sane(body);
	default:
		return false;
	}
}
