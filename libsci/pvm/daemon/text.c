// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Messages in XDR: a number has four bytes, a string its length and padded bytes. */

#include "libsci/pvm/daemon/text.h"

#include <stdlib.h>
#include <string.h>

#include "libsci/pvm/daemon/daemon.h"

static uint8_t *text_room(struct text *x, size_t len)
{
	uint8_t *data = realloc(x->data, x->len + len);

	if (!data)
		abort();
	memset(data + x->len, 0, len);
	x->data = data;
	x->len += len;
	return data + x->len - len;
}

void text_word(struct text *x, uint32_t v)
{
	put_word(text_room(x, 4), v);
}

void text_str(struct text *x, const char *s, const char *value)
{
	size_t n = strlen(s), all = n + (value ? strlen(value) + 1 : 0) + 1;
	uint8_t *to;

	text_word(x, (uint32_t)all);
	to = text_room(x, (all + 3) & ~(size_t)3);
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): text_room() writes zeroes */
	memcpy(to, s, n);
	if (value) {
		to[n] = '=';
		memcpy(to + n + 1, value, all - n - 2);
	}
}

void text_send(struct text *x, int tid, int ctx, int tag, int wid)
{
	message_send_wid(tid, (int)(TID_DAEMON | TID_OF_HOST(own_host)), ctx, tag, wid,
			 x->data, x->len);
	free(x->data);
	*x = (struct text){ 0 };
}

/* Take @len bytes from @b. Return NULL if @b has fewer bytes. */
static const uint8_t *text_take(struct body *b, size_t len)
{
	const uint8_t *at = b->at;

	if (b->bad || b->left < len) {
		b->bad = true;
		return NULL;
	}
	b->at += len;
	b->left -= len;
	return at;
}

int text_read_word(struct body *b)
{
	const uint8_t *p = text_take(b, 4);

	return p ? (int)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
			 (uint32_t)p[2] << 8 | p[3]) : 0;
}

const char *text_read_str(struct body *b)
{
	size_t len = (uint32_t)text_read_word(b);
	const uint8_t *s = text_take(b, (len + 3) & ~(size_t)3);

	if (s && (!len || s[len - 1]))
		b->bad = true;
	return b->bad ? "" : (const char *)s;
}
