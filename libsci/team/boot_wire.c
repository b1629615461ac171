// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libsci/team/boot_wire.h"

void boot_stream_free(struct boot_stream *s)
{
	free(s->input.data);
	free(s->output.data);
	s->input = s->output = (struct boot_bytes){ 0 };
}

int boot_bytes_reserve(struct boot_bytes *b, size_t n)
{
	size_t used = b->to - b->from, room = b->room;
	char *data;

	if (b->room - b->to >= n)
		return 0;
	if (b->from) {
		memmove(b->data, b->data + b->from, used);
		b->from = 0;
		b->to = used;
	}
	if (b->room - b->to >= n)
		return 0;
	while (room < used + n)
		room = room ? 2 * room : BOOT_READ_SIZE;
	data = realloc(b->data, room);
	if (!data)
		return -ENOMEM;
	b->data = data;
	b->room = room;
	return 0;
}

void boot_bytes_take(struct boot_bytes *b, size_t n)
{
	b->from += n;
	if (b->from == b->to)
		b->from = b->to = 0;
}

int boot_stream_fill(struct boot_stream *s)
{
	struct boot_bytes *b = &s->input;
	ssize_t n;
	int ret;

	ret = boot_bytes_reserve(b, BOOT_READ_SIZE);
	if (ret)
		return ret;
	do {
		n = recv(s->in, b->data + b->to, b->room - b->to, MSG_DONTWAIT);
		if (n < 0 && errno == ENOTSOCK)
			n = read(s->in, b->data + b->to, b->room - b->to);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -EAGAIN : -ECONNRESET;
	if (!n)
		return -ECONNRESET;
	b->to += (size_t)n;
	return 0;
}

int boot_stream_next(struct boot_stream *s, struct boot_frame *f, const void **payload)
{
	struct boot_bytes *b = &s->input;
	size_t n = b->to - b->from;

	if (n < sizeof(*f))
		return -EAGAIN;
	memcpy(f, b->data + b->from, sizeof(*f));
	if (f->len > BOOT_PAYLOAD_MAX)
		return -EPROTO;
	if (n < sizeof(*f) + f->len)
		return -EAGAIN;
	*payload = b->data + b->from + sizeof(*f);
	boot_bytes_take(b, sizeof(*f) + f->len);
	return 0;
}

int boot_stream_flush(struct boot_stream *s)
{
	struct boot_bytes *b = &s->output;
	ssize_t n;

	while (b->to > b->from) {
		n = send(s->out, b->data + b->from, b->to - b->from,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == ENOTSOCK)
			n = write(s->out, b->data + b->from, b->to - b->from);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -ECONNRESET;
		boot_bytes_take(b, (size_t)n);
	}
	return 0;
}

int boot_stream_send(struct boot_stream *s, const struct boot_frame *f, const void *payload)
{
	struct boot_bytes *b = &s->output;
	int ret;

	ret = boot_bytes_reserve(b, sizeof(*f) + f->len);
	if (ret)
		return ret;
	memcpy(b->data + b->to, f, sizeof(*f));
	if (f->len)
		memcpy(b->data + b->to + sizeof(*f), payload, f->len);
	b->to += sizeof(*f) + f->len;
	return boot_stream_flush(s);
}
