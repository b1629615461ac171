// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: frames between daemons
 *
 * A daemon sends a frame to a handler of the other daemon, in pieces of SCI_HANDLER_MAX
 * bytes. The tag of each piece has the offset of the piece in its upper half and the length
 * of the frame in its lower half. The handler joins the pieces, and the loop handles frames.
 *
 * If the daemon has no memory for a frame, it keeps only the head and answers PvmNoMem.
 *
 * Any process with access to the fabric may connect. Until it has proved to be a daemon, it is
 * a stranger that may only send OP_HELLO. The daemon receives no other message of a stranger:
 * it posts no receive and keeps few unexpected messages, so messages stay with their sender.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/pvm/daemon/daemon.h"

#define FRAME_HANDLER	SCI_HANDLER_USER
#define HELLO_MAX	256u		/* largest frame of a stranger, in bytes */
#define OPEN_MS		5000

/* A frame that has not been sent completely. */
struct waiting {
	struct list link;
	size_t len;
	size_t sent;
	uint8_t data[];
};

/* A frame of another daemon, or of a stranger. */
struct arrival {
	struct list link;
	struct sci_peer *from;
	size_t len;
	size_t have;
	bool cut;		/* @data has only the head */
	uint8_t data[];
};

#define PIECE_TAG(offset, len)	((uint64_t)(offset) << 32 | (len))

static struct list arriving = { &arriving, &arriving };	/* incomplete frames */
static struct list arrived = { &arrived, &arrived };

/* ---- sending ---- */

/* Send the rest of a frame. Return: 0; -EAGAIN: no room now; another error: the host has ended. */
static int frame_push(struct host *h, struct waiting *w)
{
	int ret = h->sci ? 0 : sci_peer_open(endpoint, &h->addr, OPEN_MS, &h->sci);

	while (!ret && w->sent < w->len) {
		size_t left = w->len - w->sent;
		size_t n = left < SCI_HANDLER_MAX ? left : SCI_HANDLER_MAX;

		ret = sci_handler_send(h->sci, FRAME_HANDLER, PIECE_TAG(w->sent, w->len),
				       w->data + w->sent, n);
		if (!ret)
			w->sent += n;
	}
	return ret;
}

void host_push(struct host *h)
{
	while (!list_empty(&h->out)) {
		struct waiting *w = container_of(h->out.next, struct waiting, link);

		if (frame_push(h, w) == -EAGAIN)
			return;
		list_del(&w->link);
		free(w);
	}
}

void host_frames_free(struct host *h)
{
	while (!list_empty(&h->out))
		free(container_of(list_pop(&h->out), struct waiting, link));
}

void host_send(int index, const struct frame_head *head, const void *body)
{
	struct host *h = index >= 0 && index <= (int)HOST_MAX ? hosts[index] : NULL;
	size_t len = sizeof(*head) + head->len;
	struct waiting *w;

	if (!h || h->state < HOST_JOINING || index == own_host)
		return;
	w = malloc(sizeof(*w) + len);
	if (!w)
		return;
	w->len = len;
	w->sent = 0;
	memcpy(w->data, head, sizeof(*head));
	if (head->len)
		memcpy(w->data + sizeof(*head), body, head->len);
	list_add_tail(&w->link, &h->out);
	host_push(h);
}

void host_tell(int index, struct frame *f)
{
	struct frame_head *head = frame_head(f);

	if (head) {
		head->src = TID_OF_HOST(own_host);
		host_send(index, head, head + 1);
	}
	frame_free(f);
}

void hosts_broadcast(struct frame *f)
{
	struct frame_head *head = frame_head(f);

	for (int i = 1; head && i <= (int)HOST_MAX; i++)
		if (hosts[i] && i != own_host) {
			head->src = TID_OF_HOST(own_host);
			host_send(i, head, head + 1);
		}
	frame_free(f);
}

int hello_push(struct sci_peer *peer, struct frame *f)
{
	struct frame_head *head = frame_head(f);
	int ret = head ? sci_handler_send(peer, FRAME_HANDLER, PIECE_TAG(0, f->len), head,
					  f->len) : -ENOMEM;

	frame_free(f);
	return ret;
}

/* ---- receiving ---- */

static struct arrival *arrival_new(struct sci_peer *from, size_t len)
{
	struct arrival *whole = malloc(sizeof(*whole) + len), *a = whole;

	if (!whole)
		a = malloc(sizeof(*a) + sizeof(struct frame_head));
	if (!a)
		return NULL;
	a->from = from;
	a->len = len;
	a->have = 0;
	a->cut = !whole;
	list_add_tail(&a->link, &arriving);
	return a;
}

/* Return the incomplete frame of @from; NULL: there is none. */
static struct arrival *arrival_find(const struct sci_peer *from)
{
	for (struct list *l = arriving.next; l != &arriving; l = l->next) {
		struct arrival *a = container_of(l, struct arrival, link);

		if (a->from == from)
			return a;
	}
	return NULL;
}

static void piece_add(struct arrival *a, const void *data, size_t len)
{
	size_t room = a->cut ? sizeof(struct frame_head) : a->len;

	if (a->have < room)
		memcpy(a->data + a->have, data, len < room - a->have ? len : room - a->have);
	a->have += len;
	if (a->have == a->len) {
		list_del(&a->link);
		list_add_tail(&a->link, &arrived);
	}
}

static void piece_handle(void *arg, const struct sci_handled *m)
{
	size_t max = peer_known(m->peer) ? sizeof(struct frame_head) + FRAME_MAX : HELLO_MAX;
	size_t offset = m->tag >> 32, len = (uint32_t)m->tag;
	struct arrival *a;

	(void)arg;
	if (m->error || len > max)
		return;
	a = arrival_find(m->peer);
	if (!a && !offset)
		a = arrival_new(m->peer, len);
	/* drop the rest of a frame for which arrival_new() has failed */
	if (a && a->len == len && a->have == offset && m->len <= len - offset)
		piece_add(a, m->data, m->len);
}

int arrivals_init(void)
{
	/* keep as few unexpected messages as the library allows */
	sci_ep_set(endpoint, SCI_PARAM_UNEXPECTED_MAX, 0);
	return sci_handler_set(endpoint, FRAME_HANDLER, piece_handle, NULL);
}

bool arrivals_any(void)
{
	return !list_empty(&arrived);
}

/* Handle a frame for which there was no memory: make a reply an error, or refuse a request. */
static void frame_refuse(const uint8_t *data)
{
	struct frame_head head;

	memcpy(&head, data, sizeof(head));
	say("no memory for a frame of %u bytes", head.len);
	if (head.op == OP_REPLY) {
		head.len = 0;
		head.status = PvmNoMem;
		frame_route(&head, NULL);
	} else {
		answer(&head, PvmNoMem, NULL);
	}
}

void arrivals_serve(void)
{
	struct frame_head head;
	struct body b;

	while (!list_empty(&arrived)) {
		struct arrival *a = container_of(list_pop(&arrived), struct arrival, link);
		bool good = !a->cut && frame_next(a->data, a->len, &head, &b) > 0;

		if (a->cut && a->len >= sizeof(head) && peer_known(a->from)) {
			frame_refuse(a->data);
		} else if (good && (head.op == OP_HELLO || peer_known(a->from))) {
			host_heard(a->from);
			serve(&head, &b, NULL, a->from);
		} else if (!peer_known(a->from)) {
			stranger_end(a->from);
		}
		free(a);
	}
}

static int arrivals_test(void *arg)
{
	(void)arg;
	return arrivals_any() ? 0 : -EAGAIN;
}

bool arrivals_wait(int timeout)
{
	if (sci_wait_until(endpoint, arrivals_test, NULL, timeout))
		return false;
	arrivals_serve();
	return true;
}

static void list_drop(struct list *list, const struct sci_peer *from)
{
	struct list *l, *next;

	list_for_each_safe(l, next, list) {
		struct arrival *a = container_of(l, struct arrival, link);

		if (a->from != from)
			continue;
		list_del(&a->link);
		free(a);
	}
}

void arrivals_drop(const struct sci_peer *from)
{
	list_drop(&arriving, from);
	list_drop(&arrived, from);
}

void stranger_end(struct sci_peer *peer)
{
	hoster_peer_gone(peer);
	arrivals_drop(peer);
	sci_peer_close(peer);
}
