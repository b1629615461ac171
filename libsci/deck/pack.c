// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The calls that pack values into messages and unpack them. */
#include <errno.h>
#include <string.h>

#include "libsci/deck/internal.h"

/* Copy @len bytes. @src may be NULL if @len is 0, which memcpy() does not allow. */
static inline void bytes_copy(void *dst, const void *src, size_t len)
{
	if (len)
		memcpy(dst, src, len);
}

int deck_msg_pack(deck_msg_t *msg, const void *data, size_t len)
{
	if (!msg || (!data && len))
		return -EINVAL;
	if (len > msg->size - msg->length)
		return -EMSGSIZE;
	bytes_copy(msg->buf + msg->length, data, len);
	msg->length += len;
	return 0;
}

int deck_msg_unpack(deck_msg_t *msg, void *data, size_t len)
{
	if (!msg || (!data && len))
		return -EINVAL;
	if (len > msg->length - msg->at)
		return -EMSGSIZE;
	bytes_copy(data, msg->buf + msg->at, len);
	msg->at += len;
	return 0;
}

/* Return the bytes of @n elements; SIZE_MAX if size_t is too small for them. */
static inline size_t array_size(size_t n, size_t size)
{
	return n > SIZE_MAX / size ? SIZE_MAX : n * size;
}

#define DEFINE(name, type)							\
	int deck_pack_##name(deck_msg_t *msg, const type *v, size_t n)		\
	{									\
		return deck_msg_pack(msg, v, array_size(n, sizeof(type)));		\
	}									\
										\
	int deck_unpack_##name(deck_msg_t *msg, type *v, size_t n)		\
	{									\
		return deck_msg_unpack(msg, v, array_size(n, sizeof(type)));		\
	}
DECK_TYPES(DEFINE)

int deck_pack_string(deck_msg_t *msg, const char *s)
{
	size_t len, before;
	int ret;

	if (!msg || !s)
		return -EINVAL;
	len = strlen(s) + 1;
	before = msg->length;
	ret = deck_pack_ulong(msg, &(unsigned long){ len }, 1);
	ret = ret ? ret : deck_msg_pack(msg, s, len);
	if (ret)
		msg->length = before;
	return ret;
}

int deck_unpack_string(deck_msg_t *msg, char *s, size_t size)
{
	unsigned long len;
	size_t before;
	int ret;

	if (!msg || !s || !size)
		return -EINVAL;
	before = msg->at;
	ret = deck_unpack_ulong(msg, &len, 1);
	if (!ret)
		ret = len && len <= size ? deck_msg_unpack(msg, s, len) : -EMSGSIZE;
	if (ret)
		msg->at = before;
	else
		s[len - 1] = '\0';
	return ret;
}
