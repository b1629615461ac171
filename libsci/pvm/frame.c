// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Frames between tasks and daemons, and the addresses of daemons' sockets. */

#include "libsci/pvm/frame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void *frame_room(struct frame *f, size_t len)
{
	if (f->failed || len > FRAME_MAX || f->len + len > FRAME_MAX)
		goto fail;
	if (f->len + len > f->cap) {
		size_t cap = (f->len + len) * 2;
		uint8_t *data = realloc(f->data, cap);

		if (!data)
			goto fail;
		f->data = data;
		f->cap = cap;
	}
	f->len += len;
	return f->data + f->len - len;
fail:
	f->failed = true;
	return NULL;
}

void frame_begin(struct frame *f, enum frame_op op, uint32_t dst)
{
	struct frame_head head = { .op = op, .dst = dst };
	void *at = frame_room(f, sizeof(head));

	if (at)
		memcpy(at, &head, sizeof(head));
}

void frame_free(struct frame *f)
{
	free(f->data);
	*f = (struct frame){ 0 };
}

void frame_i32(struct frame *f, int32_t value)
{
	void *at = frame_room(f, sizeof(value));

	if (at)
		memcpy(at, &value, sizeof(value));
}

void frame_bytes(struct frame *f, const void *data, size_t len)
{
	void *at;

	frame_i32(f, (int32_t)len);
	at = frame_room(f, len);
	if (at && len)
		memcpy(at, data, len);
}

/* Append a string with its zero, so that the receiver can use the string inside the body. */
void frame_str(struct frame *f, const char *s)
{
	s = s ? s : "";
	frame_bytes(f, s, strlen(s) + 1);
}

void frame_ints(struct frame *f, const int *v, int n)
{
	frame_bytes(f, v, (size_t)n * sizeof(*v));
}

struct frame_head *frame_head(struct frame *f)
{
	struct frame_head *head = (struct frame_head *)f->data;

	if (f->failed || !head)
		return NULL;
	head->len = (uint32_t)(f->len - sizeof(*head));
	return head;
}

static const void *body_take(struct body *b, size_t len)
{
	const void *at = b->at;

	if (b->bad || len > b->left) {
		b->bad = true;
		return NULL;
	}
	b->at += len;
	b->left -= len;
	return at;
}

int32_t body_i32(struct body *b)
{
	const void *at = body_take(b, sizeof(int32_t));
	int32_t value = 0;

	if (at)
		memcpy(&value, at, sizeof(value));
	return value;
}

const void *body_bytes(struct body *b, size_t *len)
{
	int32_t n = body_i32(b);
	const void *at = n < 0 ? NULL : body_take(b, (size_t)n);

	if (!at)
		b->bad = true;
	*len = at ? (size_t)n : 0;
	return at;
}

const char *body_str(struct body *b)
{
	size_t len;
	const char *s = body_bytes(b, &len);

	if (s && len && !s[len - 1])
		return s;
	b->bad = true;
	return "";
}

int body_ints(struct body *b, const void **v)
{
	size_t len;

	*v = body_bytes(b, &len);
	return (int)(len / sizeof(int));
}

int ints_at(const void *v, int i)
{
	int value;

	memcpy(&value, (const char *)v + (size_t)i * sizeof(value), sizeof(value));
	return value;
}

long frame_next(const uint8_t *data, size_t len, struct frame_head *head,
		struct body *body)
{
	if (len < sizeof(*head))
		return 0;
	memcpy(head, data, sizeof(*head));
	if (head->len > FRAME_MAX)
		return -EPROTO;
	if (len - sizeof(*head) < head->len)
		return 0;
	*body = (struct body){ .at = data + sizeof(*head), .left = head->len };
	return (long)(sizeof(*head) + head->len);
}

const char *pvm_env_or(const char *name, const char *value)
{
	const char *s = getenv(name);

	return s && *s ? s : value;
}

unsigned int pvm_sock_addr(struct sockaddr_un *un)
{
	int n;

	*un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1,
		     "sci-pvm/%u/%s/%s/%s", (unsigned int)getuid(),
		     pvm_env_or("SCI_NODE", "-"), pvm_env_or("PVM_VMID", "-"),
		     pvm_env_or("SCI_FABRIC", "-"));
	if (n > (int)sizeof(un->sun_path) - 2)
		n = (int)sizeof(un->sun_path) - 2;
	return (unsigned int)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

bool pvm_same_user(int fd, int *pid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) || cred.uid != getuid())
		return false;
	if (pid)
		*pid = cred.pid;
	return true;
}
