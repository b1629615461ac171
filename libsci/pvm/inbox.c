// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The inbox. A message is first offered to handlers, and then to receives. */

#include "libsci/pvm/lib.h"

#include <stdlib.h>
#include <string.h>

/* ---- handlers ---- */

struct handler {
	int id;
	int src, tag, ctx;
	int (*run)(int mid);
};

static struct handler *handlers;
static int nhandlers;
static int handler_ids;

static bool value_matches(int want, int value)
{
	return want == -1 || want == value;
}

static struct handler *handler_for(const struct pvmminfo *info)
{
	for (int i = 0; i < nhandlers; i++) {
		struct handler *h = &handlers[i];

		if (value_matches(h->src, info->src) && value_matches(h->tag, info->tag) &&
		    value_matches(h->ctx, info->ctx))
			return h;
	}
	return NULL;
}

/* Free @b, a handler's send or receive buffer, unless it is one of the program's buffers. */
static void handler_buf_free(struct buf *b, int smid, int rmid)
{
	if (b && b->mid != smid && b->mid != rmid)
		pv_buf_free(b);
}

/*
 * Run @h with @b as the receive buffer, in the context of @b. Then restore the program's buffers and
 * context. As in PVM, the buffers that the handler leaves are freed.
 */
static void handler_run(const struct handler *h, struct buf *b)
{
	int (*run)(int) = h->run;
	struct buf *sbuf = pv_me.sbuf, *rbuf = pv_me.rbuf;
	int smid = sbuf ? sbuf->mid : 0, rmid = rbuf ? rbuf->mid : 0;
	int ctx = pvmmyctx, mid;

	list_del(&b->link);
	b->queued = false;
	mid = pv_buf_fetch(b) ? PvmBadMsg : pv_buf_name(b);
	if (mid < 0) {
		pv_buf_free(b);
		return;
	}
	pv_me.handling++;
	pv_me.sbuf = NULL;
	pv_me.rbuf = b;
	pvmmyctx = b->info.ctx;
	run(mid);
	pvmmyctx = ctx;
	/* the handler may have freed @b and both buffers of the program */
	if (pv_buf_find(mid) == b)
		pv_buf_free(b);
	handler_buf_free(pv_me.sbuf, smid, rmid);
	handler_buf_free(pv_me.rbuf, smid, rmid);
	pv_me.sbuf = pv_buf_find(smid);
	pv_me.rbuf = pv_buf_find(rmid);
	pv_me.handling--;
}

/* Run handlers for the fresh messages. A handler may itself receive messages into the inbox. */
static void handlers_run(void)
{
	struct list *l = pv_me.inbox.next;

	while (l != &pv_me.inbox) {
		struct buf *b = container_of(l, struct buf, link);
		struct handler *h = b->fresh ? handler_for(&b->info) : NULL;

		b->fresh = false;
		l = l->next;
		if (h) {
			handler_run(h, b);
			l = pv_me.inbox.next;
		}
	}
}

void pv_inbox_add(struct buf *b)
{
	list_add_tail(&b->link, &pv_me.inbox);
	b->queued = true;
	pv_me.unseen = true;
	if (nhandlers && !pv_me.handling)
		handlers_run();
}

PVM_API int pvm_addmhf(int src, int tag, int ctx, int (*func)(int))
{
	struct handler *h;

	if (!func || src < -1 || tag < -1 || ctx < -1)
		return lpvmerr("pvm_addmhf", PvmBadParam);
	for (int i = 0; i < nhandlers; i++) {
		h = &handlers[i];
		if (h->src == src && h->tag == tag && h->ctx == ctx)
			return PvmExists;
	}
	h = realloc(handlers, (size_t)(nhandlers + 1) * sizeof(*h));
	if (!h)
		return lpvmerr("pvm_addmhf", PvmNoMem);
	handlers = h;
	h[nhandlers++] = (struct handler){
		.id = handler_ids, .src = src, .tag = tag, .ctx = ctx, .run = func,
	};
	/* the new handler does not get messages that have already arrived */
	for (struct list *l = pv_me.inbox.next; l != &pv_me.inbox; l = l->next)
		container_of(l, struct buf, link)->fresh = false;
	return handler_ids++;
}

PVM_API int pvm_delmhf(int id)
{
	if (id < 0)
		return lpvmerr("pvm_delmhf", PvmBadParam);
	for (int i = 0; i < nhandlers; i++) {
		if (handlers[i].id != id)
			continue;
		memmove(&handlers[i], &handlers[i + 1],
			(size_t)(--nhandlers - i) * sizeof(*handlers));
		return PvmOk;
	}
	return lpvmerr("pvm_delmhf", PvmNotFound);
}

PVM_API void pvmdisplaymhfinfo(const char *who, const char *what, int tid);

/* Print all handlers, for debugging. @who, @tid: the task in each line. */
PVM_API void pvmdisplaymhfinfo(const char *who, const char *what, int tid)
{
	printf("\n%s t%x: %s\n", who, (unsigned int)tid, what);
	for (int i = 0; i < nhandlers; i++)
		printf("%s t%x: handler %d: src = t%x  tag = %d  ctx = %d\n", who,
		       (unsigned int)tid, handlers[i].id, (unsigned int)handlers[i].src,
		       handlers[i].tag, handlers[i].ctx);
}

/* ---- matching ---- */

/* Find the message with the highest rank of the program's own function (pvm_recvf()). */
static struct buf *inbox_find_ranked(int tid, int tag, int *error)
{
	struct buf *best = NULL;
	struct list *l, *next;
	int best_rank = 0;

	list_for_each_safe(l, next, &pv_me.inbox) {
		struct buf *b = container_of(l, struct buf, link);
		int rank;

		if (pv_buf_name(b) < 0)
			continue;
		rank = pv_me.compare(b->mid, tid, tag);
		if (rank < 0) {
			*error = rank;
			return NULL;
		}
		if (rank == 1)
			return b;
		if (rank > best_rank) {
			best = b;
			best_rank = rank;
		}
	}
	return best;
}

struct buf *pv_inbox_find(int tid, int tag, int *error)
{
	*error = 0;
	if (pv_me.compare)
		return inbox_find_ranked(tid, tag, error);
	for (struct list *l = pv_me.inbox.next; l != &pv_me.inbox; l = l->next) {
		struct buf *b = container_of(l, struct buf, link);

		if (b->info.ctx == pvmmyctx && value_matches(tid, b->info.src) &&
		    value_matches(tag, b->info.tag))
			return b;
	}
	return NULL;
}

void pv_inbox_take(struct buf *b)
{
	list_del(&b->link);
	b->queued = false;
}

PVM_API int (*pvm_recvf(int (*compare)(int, int, int)))(int, int, int)
{
	int (*old)(int, int, int) = pv_me.compare;

	pv_me.compare = compare;
	return old;
}
