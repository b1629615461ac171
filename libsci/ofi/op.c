// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Operations, and their completions. */
#include "libsci/ofi/held.h"
#include "libsci/ofi/onesided.h"

#include <errno.h>
#include <stdlib.h>

#define SLAB	64u
/*
 * FAST_POLLS: polls for a held receive in one round of progress; each is a load and a few checks.
 * LATE: after this many polls, the message counts as late.
 */
#define FAST_POLLS	60u
#define LATE	240u
/* Rounds of failed polls before a round of full progress, which takes far longer. */
#define OFTEN	4u
/* Every AT_LEAST rounds there is full progress, even if held receives get messages all the time. */
#define AT_LEAST	32u
/* Rounds between two checks for dead or closed peers. */
#define SELDOM	1024u

struct sfi_op_slab {
	struct sfi_op_slab *next;
	struct sfi_op ops[SLAB];
};

static int ops_grow(struct sfi_ep *ep)
{
	struct sfi_op_slab *slab = calloc(1, sizeof(*slab));

	if (!slab)
		return -FI_ENOMEM;
	slab->next = ep->slabs;
	ep->slabs = slab;
	for (unsigned int i = 0; i < SLAB; i++) {
		slab->ops[i].ep = ep;
		slab->ops[i].next = ep->free;
		ep->free = &slab->ops[i];
	}
	return 0;
}

/* Allocate an operation. Context: the endpoint is locked. */
struct sfi_op *sfi_op_new(struct sfi_ep *ep)
{
	struct sfi_op *op;

	if (!ep->free && ops_grow(ep))
		return NULL;
	op = ep->free;
	ep->free = op->next;
	ep->ops++;
	op->prev = NULL;
	return op;
}

void sfi_op_free(struct sfi_op *op)
{
	op->next = op->ep->free;
	op->ep->free = op;
	op->ep->ops--;
}

void sfi_ops_fini(struct sfi_ep *ep)
{
	while (ep->slabs) {
		struct sfi_op_slab *slab = ep->slabs;

		ep->slabs = slab->next;
		free(slab);
	}
}

/*
 * Make a receive cancellable until it completes. fi_cancel() cancels the oldest
 * receive with its context.
 */
void sfi_op_pending(struct sfi_op *op)
{
	struct sfi_ep *ep = op->ep;

	op->next = ep->receives;
	if (op->next)
		op->next->prev = &op->next;
	op->prev = &ep->receives;
	ep->receives = op;
}

static void op_pending_remove(struct sfi_op *op)
{
	if (!op->prev)
		return;
	*op->prev = op->next;
	if (op->next)
		op->next->prev = op->prev;
	op->prev = NULL;
}

/* ---- completions ---- */

/* Count a completion. Do nothing if @c is NULL. */
void sfi_cntr_count(struct sfi_cntr *c, int error)
{
	if (!c)
		return;
	atomic_fetch_add(error ? &c->errors : &c->value, 1);
	sfi_cntr_change(c);
}

void sfi_op_failed(struct sfi_op *op, const struct sci_status *st)
{
	struct fi_cq_err_entry e = {
		.op_context = op->context, .flags = op->flags, .buf = op->buf,
		.tag = st->tag, .err = -st->error, .prov_errno = -st->error,
	};

	if (st->error == -EMSGSIZE) {
		e.err = FI_ETRUNC;
		e.len = op->room;
		e.olen = st->len - op->room;
	}
	sfi_cntr_count(op->cntr, st->error);
	if (op->cq)
		sfi_cq_fail(op->cq, &e);
}

/* End an operation that failed to begin. A completion reports an error of the peer. */
int sfi_op_not_begun(struct sfi_op *op, int error)
{
	const struct sci_status st = { .error = error };

	if (sfi_is_peers(error)) {
		sfi_op_failed(op, &st);
		error = 0;
	}
	sfi_op_free(op);
	return error;
}

/* Fill in an operation. @what: FI_SEND or FI_RECV, and FI_MSG or FI_TAGGED; @flags: of the call */
void sfi_op_describe(struct sfi_op *op, const struct sfi_side *s, uint64_t what,
		     uint64_t flags, void *context)
{
	op->cq = s->cq;
	op->cntr = s->cntr;
	op->context = context;
	op->flags = what;
	op->silent = s->selective && !(flags & FI_COMPLETION);
	op->done = NULL;
	op->many = false;
	op->buf = NULL;
	op->room = 0;
}

/* Report the success of @op. @more: additional flags of this completion */
void sfi_op_told(struct sfi_op *op, const struct sci_status *st, uint64_t more)
{
	sfi_cntr_count(op->cntr, 0);
	if (op->cq && !op->silent)
		sfi_cq_tell(op->cq, op->ep, op->flags | more, op->context,
			    op->buf, st);
}

/*
 * Report a message in a buffer of FI_MULTI_RECV. The completion that releases the buffer is
 * reported always: fi_msg(3) forbids to suppress it.
 */
static void many_handle(struct sfi_op *op, const struct sci_completion *c)
{
	struct sfi_op one = *op;

	if (c->buf) {
		one.buf = c->buf;
		one.room -= (size_t)((char *)c->buf - (char *)op->buf);
	}
	if (c->status.flags & SCI_STATUS_RETURNED) {
		one.flags |= FI_MULTI_RECV;
		one.silent = false;
		op_pending_remove(op);
		sfi_op_free(op);
	}
	if (c->status.error)
		sfi_op_failed(&one, &c->status);
	else
		sfi_op_told(&one, &c->status, 0);
}

static void op_completed(const struct sci_completion *c)
{
	const struct sci_status *st = &c->status;
	struct sfi_op *op = c->data;

	if (op->done) {
		op->done(op, st);
		return;
	}
	if (op->many) {
		many_handle(op, c);
		return;
	}
	op_pending_remove(op);
	if (st->error)
		sfi_op_failed(op, st);
	else
		sfi_op_told(op, st, 0);
	sfi_op_free(op);
}

static void op_progress(struct sfi_ep *ep)
{
	struct sci_completion done[SFI_BATCH];
	int n = sci_completions(ep->ep, 0, done, SFI_BATCH);

	for (int i = 0; i < n; i++)
		if (done[i].status.flags & SCI_STATUS_WRITTEN)
			sfi_write_event(ep, &done[i].status);
		else
			op_completed(&done[i]);
	if (ep->starting)
		sfi_serve_transfers(ep);
	if (ep->rounds % SELDOM == 0)
		sfi_ep_forget_strangers(ep);
}

/*
 * Poll for messages of held receives. A message that arrives between two rounds waits while the
 * program does other work. So a round polls for longer than a short message and its reply take, if
 * the last message arrived within LATE polls. Otherwise the program computes for a long time, and a
 * round polls once. So does a new endpoint.
 */
static __always_inline bool held_poll(struct sfi_ep *ep)
{
	unsigned int most = ep->late ? 1 : FAST_POLLS, polls;

	for (polls = 0; sfi_has_held(ep) && polls < most; polls++) {
		if (!sfi_held_try(ep))
			continue;
		/* a message at the first poll does not predict the delay of the next message */
		if (ep->polls + polls)
			ep->late = ep->polls + polls >= LATE;
		ep->polls = 0;
		return true;
	}
	ep->polls += polls;
	if (ep->polls >= LATE)
		ep->late = true;
	return false;
}

/*
 * Return whether a read of the queue must make full progress. While only a held receive is
 * outstanding, and peers can send no requests, most reads only poll for its message. After a
 * successful read, a program such as Open MPI reads once more to find the queue empty. That read
 * makes no full progress if no receive is held.
 */
static inline bool op_needs_progress(const struct sfi_ep *ep, bool came)
{
	if (ep->rounds % AT_LEAST == 0)
		return true;
	if (came)
		return false;
	if (ep->ops || !ep->refuses)
		return true;
	return sfi_has_held(ep) ? ep->empty_polls % OFTEN == 0 :
				 ep->empty_polls > 1 || ep->has_waiter;
}

static __always_inline void ep_round(struct sfi_ep *ep)
{
	bool came;

	ep->rounds++;
	came = held_poll(ep);
	ep->empty_polls = came ? 0 : ep->empty_polls + 1;
	if (op_needs_progress(ep, came))
		op_progress(ep);
}

/*
 * Make progress, unless the endpoint is not enabled yet. It has no handler then, so a request of a
 * peer would be dropped.
 */
__hot void sfi_ep_progress(struct sfi_ep *ep)
{
	sfi_lock(&ep->lock);
	if (ep->enabled)
		ep_round(ep);
	sfi_unlock(&ep->lock);
}

/* Count a receive that completed at once as a round. Context: the endpoint is locked. */
void sfi_ep_at_once(struct sfi_ep *ep)
{
	if (++ep->rounds % AT_LEAST == 0)
		op_progress(ep);
}

ssize_t sfi_cancel(fid_t fid, void *context)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;
	struct sfi_op *op, *found = NULL;
	bool held;

	sfi_lock(&ep->lock);
	held = sfi_held_cancel(ep, context);
	for (op = ep->receives; op; op = op->next)
		if (op->context == context)
			found = op;
	/* the cancellation has no effect on a receive whose message is arriving */
	if (!held && found)
		sci_cancel(found->req);
	sfi_unlock(&ep->lock);
	return found || held ? 0 : -FI_ENOENT;
}
