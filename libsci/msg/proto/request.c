// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Requests: their memory, and their completion. */

#include "libsci/msg/proto/proto.h"

#include <errno.h>
#include <stdlib.h>

#define IDS_MAX		(1u << 24)

#define INIT_LEN	(sizeof(struct sci_req) - \
			 offsetof(struct sci_req, init_from))
#define INIT_HALF	80u

_Static_assert(INIT_LEN > INIT_HALF && INIT_LEN <= 2 * INIT_HALF, "two steps");

/*
 * Initialize only the members that need a value: each message pays for these stores. A single
 * memset() of the whole struct would become a string instruction, which starts more slowly.
 */
void req_init(struct sci_req *req, struct sci_ep *ep, enum msg_kind kind)
{
	char *from = (char *)&req->init_from;

	memset(from, 0, INIT_HALF);
	memset(from + INIT_HALF, 0, INIT_LEN - INIT_HALF);
	req->ep = ep;
	req->kind = kind;
	req->id = UINT32_MAX;
	req->iov = req->inline_iov;
}

int reqs_more(struct sci_ep *ep)
{
	struct msg_slab *slab = calloc(1, sizeof(*slab));

	if (!slab)
		return -ENOMEM;
	slab->next = ep->slabs;
	ep->slabs = slab;
	for (unsigned int i = 0; i < SLAB_REQS; i++) {
		slab->reqs[i].link.next = (struct list *)ep->pool;
		ep->pool = &slab->reqs[i];
	}
	return 0;
}

struct sci_req *req_new(struct sci_ep *ep, enum msg_kind kind)
{
	struct sci_req *req;

	if (!ep->pool && reqs_more(ep))
		return NULL;
	req = ep->pool;
	ep->pool = (struct sci_req *)req->link.next;
	req_init(req, ep, kind);
	req->pooled = true;
	return req;
}

/* Free all slabs, also slabs with requests that the program has not tested to their end. */
void slabs_free(struct sci_ep *ep)
{
	while (ep->slabs) {
		struct msg_slab *slab = ep->slabs;

		ep->slabs = slab->next;
		for (unsigned int i = 0; i < SLAB_REQS; i++)
			req_iov_drop(&slab->reqs[i]);
		free(slab);
	}
}

int req_iov_many(struct sci_req *req, const struct iovec *iov, size_t n)
{
	if (n > IOV_INLINE) {
		req->iov = malloc(n * sizeof(*iov));
		if (!req->iov) {
			req->iov = req->inline_iov;
			return -ENOMEM;
		}
	}
	if (n)
		memcpy(req->iov, iov, n * sizeof(*iov));
	req->iovs = n;
	req->len = msg_iov_len(iov, n);
	req->at = (struct msg_cursor){ .iov = req->iov, .n = n };
	msg_skip(&req->at, 0);
	return 0;
}

/* End a detached request. sci_flush() reports the error of a one-sided transfer. */
static void req_drop_detached(struct sci_req *req)
{
	struct sci_peer *p = req->peer;

	p->detached--;
	p->ours -= req->ours;
	if (req->kind >= MSG_WRITE) {
		p->transfers--;
		if (!p->transfer_error)
			p->transfer_error = req->status.error;
	}
	req_free(req);
}

/* Complete a request that is in no queue. */
void req_done(struct sci_req *req, int error)
{
	struct sci_ep *ep = req->ep;

	req_id_put(req);
	if (req->lent)
		net_take_back(req);
	req->state = MSG_DONE;
	req->status.error = error_for_request(error);
	req->status.peer = req->peer && !req->peer->leaving ? req->peer : NULL;
	atomic_store_explicit(&req->done, true, memory_order_release);
	if (req->queued) {
		completion_queue(req);
		return;
	}
	msg_changed(ep);
	if (req->detached)
		req_drop_detached(req);
}

/* Complete a receive that is in no queue. */
void msg_finish(struct sci_req *req, int error)
{
	if (!error && req->status.len > req->len)
		error = -EMSGSIZE;
	req->ep->stats.received++;
	if (req->peer)
		req->peer->known = true;
	req_done(req, error);
}

/*
 * Remove @p, which the program closes, from the results of completed requests that the program has
 * not tested yet, and of blocking receives whose threads have not run yet. A search through all
 * requests is slow, but a list would cost time in each request. completions_forget() does the same
 * in the completion queue.
 */
void reqs_forget(struct sci_peer *p)
{
	struct msg_blocked *b, *n;

	list_for_each_entry_safe(b, n, &p->ep->blocked, link)
		if (b->req.status.peer == p)
			b->req.status.peer = NULL;
	for (struct msg_slab *slab = p->ep->slabs; slab; slab = slab->next)
		for (unsigned int i = 0; i < SLAB_REQS; i++)
			if (slab->reqs[i].status.peer == p && !slab->reqs[i].queued)
				slab->reqs[i].status.peer = NULL;
}

/* ---- ids of requests in a rendezvous ---- */

/* Free entries form a list through the table: an odd value has the index of the next free entry. */
static struct sci_req *entry_make_free(uint32_t next)
{
	return (struct sci_req *)((uintptr_t)next << 1 | 1);
}

static bool entry_is_free(const struct sci_req *e)
{
	return (uintptr_t)e & 1;
}

static int ids_grow(struct sci_ep *ep)
{
	uint32_t n = ep->n_ids ? ep->n_ids * 2 : 64;
	struct sci_req **ids;

	if (n > IDS_MAX)
		return -ENOMEM;
	ids = realloc(ep->ids, n * sizeof(struct sci_req *));
	if (!ids)
		return -ENOMEM;
	ep->ids = ids;
	for (uint32_t i = ep->n_ids; i < n; i++)
		ids[i] = entry_make_free(i + 1 < n ? i + 1 : UINT32_MAX);
	ep->free_id = ep->n_ids;
	ep->n_ids = n;
	return 0;
}

int req_id_get(struct sci_req *req)
{
	struct sci_ep *ep = req->ep;
	uint32_t id;

	if (ep->free_id == UINT32_MAX && ids_grow(ep))
		return -ENOMEM;
	id = ep->free_id;
	ep->free_id = (uint32_t)((uintptr_t)ep->ids[id] >> 1);
	ep->ids[id] = req;
	req->id = id;
	return 0;
}

void req_id_put(struct sci_req *req)
{
	struct sci_ep *ep = req->ep;

	if (req->id == UINT32_MAX)
		return;
	ep->ids[req->id] = entry_make_free(ep->free_id);
	ep->free_id = req->id;
	req->id = UINT32_MAX;
}

/* Return request @id of @p, or NULL. A peer can only name requests that it takes part in. */
struct sci_req *req_by_id(struct sci_peer *p, uint32_t id, enum msg_kind kind)
{
	struct sci_ep *ep = p->ep;
	struct sci_req *req;

	if (id >= ep->n_ids || entry_is_free(ep->ids[id]))
		return NULL;
	req = ep->ids[id];
	return req->peer == p && req->kind == kind ? req : NULL;
}
