// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Requests to the daemon, and unsolicited frames of the daemon. */

#include "libsci/pvm/lib.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define READ_SIZE	(64u << 10)

/* Requests without an answer, oldest first. */
static struct list waiting = { &waiting, &waiting };

static int send_all(const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t n = send(pv_me.sock, at, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return PvmSysErr;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Send @f with sequence number @seq, and free it. */
static int frame_post(struct frame *f, uint32_t seq)
{
	struct frame_head *head = frame_head(f);
	int ret = PvmNoMem;

	if (head) {
		head->seq = seq;
		ret = pv_me.sock < 0 ? PvmSysErr : send_all(head, f->len);
	}
	frame_free(f);
	return ret;
}

int pv_request_post(struct frame *f)
{
	return frame_post(f, 0);
}

int pv_request_start(struct frame *f, struct answer *a)
{
	int ret;

	*a = (struct answer){ .seq = ++pv_me.seq ? pv_me.seq : ++pv_me.seq };
	list_init(&a->link);
	ret = frame_post(f, a->seq);
	if (!ret)
		list_add_tail(&a->link, &waiting);
	return ret;
}

static bool request_handle_answer(void *arg)
{
	return ((struct answer *)arg)->came;
}

int pv_answer_wait(struct answer *a)
{
	int ret = pv_wait_for(request_handle_answer, a, -1);

	list_del(&a->link);
	return ret ? ret : a->status;
}

void pv_answer_free(struct answer *a)
{
	list_del(&a->link);
	free(a->bytes);
	a->bytes = NULL;
}

int pv_request(struct frame *f, struct answer *a)
{
	struct answer own = { .seq = 0 };
	struct answer *to = a ? a : &own;
	int ret = pv_request_start(f, to);

	if (!ret)
		ret = pv_answer_wait(to);
	if (!a)
		pv_answer_free(to);
	return ret;
}

/* ---- frames that arrive ---- */

static void request_handle_reply(const struct frame_head *head, const struct body *b)
{
	for (struct list *l = waiting.next; l != &waiting; l = l->next) {
		struct answer *a = container_of(l, struct answer, link);

		if (a->seq != head->seq)
			continue;
		list_del(&a->link);
		a->bytes = malloc(b->left ? b->left : 1);
		a->status = a->bytes ? head->status : PvmNoMem;
		if (a->bytes) {
			memcpy(a->bytes, b->at, b->left);
			a->body = (struct body){ .at = a->bytes, .left = b->left };
		}
		a->came = true;
		return;
	}
}

static void request_handle_message(const struct frame_head *head, struct body *b)
{
	int ctx = body_i32(b), tag = body_i32(b), wid = body_i32(b), enc = body_i32(b);
	size_t len;
	const void *data = body_bytes(b, &len);
	struct buf *m = b->bad ? NULL : pv_buf_new(enc);
	uint8_t *room = m ? pv_buf_room(m, len) : NULL;

	if (!m || (!room && len)) {
		pv_buf_free(m);
		return;
	}
	if (len)
		memcpy(room, data, len);
	m->info = (struct pvmminfo){
		.len = (int)len, .ctx = ctx, .tag = tag, .wid = wid, .enc = enc,
		.src = (int)head->src, .dst = pvmmytid,
	};
	/* only daemons' messages count as output: a task cannot forge another task's output */
	if (!pv_output_take(m))
		pv_inbox_add(m);
}

/*
 * Handle the complete frames in pv_me.in. A message handler of the program may call a function that
 * takes further frames and moves pv_me.in: skip each frame before it is handled.
 * Return: the number of frames; -1: a bad frame.
 */
static int frames_take(void)
{
	struct frame_head head;
	struct body b;
	long n;
	int count = 0;

	while ((n = frame_next(pv_me.in + pv_me.in_at, pv_me.in_len - pv_me.in_at, &head, &b)) > 0) {
		pv_me.in_at += (size_t)n;
		if (head.op == OP_REPLY)
			request_handle_reply(&head, &b);
		else if (head.op == OP_MSG)
			request_handle_message(&head, &b);
		else if (head.op == OP_NEW_MANAGER)
			pv_me.manager = body_i32(&b);
		else if (head.op == OP_EXITED)
			pv_output_host_gone(body_i32(&b));
		count++;
	}
	memmove(pv_me.in, pv_me.in + pv_me.in_at, pv_me.in_len - pv_me.in_at);
	pv_me.in_len -= pv_me.in_at;
	pv_me.in_at = 0;
	return n < 0 ? -1 : count;
}

int pv_request_read(void)
{
	ssize_t n;

	if (pv_me.sock < 0)
		return -1;
	if (pv_me.in_cap - pv_me.in_len < READ_SIZE) {
		size_t cap = pv_me.in_cap * 2 + READ_SIZE;
		uint8_t *in = realloc(pv_me.in, cap);

		if (!in)
			return -1;
		pv_me.in = in;
		pv_me.in_cap = cap;
	}
	n = recv(pv_me.sock, pv_me.in + pv_me.in_len, pv_me.in_cap - pv_me.in_len,
		 MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (!n)
		return -1;
	pv_me.in_len += (size_t)n;
	return frames_take();
}
