// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Message objects. */
#include <errno.h>
#include <stdlib.h>

#include "libsci/deck/internal.h"

#define BUF_ALIGN	64u

int deck_msg_create(deck_msg_t **out, size_t size)
{
	struct deck_world *w = deck_world();
	struct deck_msg *msg;
	void *buf;
	int ret;

	if (!out)
		return -EINVAL;
	msg = calloc(1, sizeof(*msg));
	if (!msg)
		return -ENOMEM;
	msg->size = size;
	msg->source = -1;
	msg->exported = w && size && size >= w->limit;
	if (msg->exported)
		ret = deck_buf_get(w, size, &buf);
	else
		ret = size > PTRDIFF_MAX ? -ENOMEM : -posix_memalign(&buf, BUF_ALIGN, size ? size : 1);
	if (ret) {
		free(msg);
		return ret;
	}
	msg->buf = buf;
	*out = msg;
	return 0;
}

int deck_msg_destroy(deck_msg_t *msg)
{
	if (!msg)
		return 0;
	if (msg->busy)
		return -EBUSY;
	if (msg->exported)
		deck_buf_put(deck_world(), msg->buf, msg->size);
	else
		free(msg->buf);
	free(msg);
	return 0;
}

void deck_msg_clear(deck_msg_t *msg)
{
	msg->length = 0;
	msg->at = 0;
}

void deck_msg_rewind(deck_msg_t *msg)
{
	msg->at = 0;
}

void *deck_msg_address(deck_msg_t *msg)
{
	return msg->buf;
}

size_t deck_msg_size(const deck_msg_t *msg)
{
	return msg->size;
}

size_t deck_msg_length(const deck_msg_t *msg)
{
	return msg->length;
}

size_t deck_msg_left(const deck_msg_t *msg)
{
	return msg->length - msg->at;
}

int deck_msg_set_length(deck_msg_t *msg, size_t length)
{
	if (!msg)
		return -EINVAL;
	if (length > msg->size)
		return -EMSGSIZE;
	msg->length = length;
	if (msg->at > length)
		msg->at = length;
	return 0;
}

int deck_msg_source(const deck_msg_t *msg)
{
	return msg->source;
}
