// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: gateways
 *
 * If messages of one virtual channel reach a process on several networks, the process has a thread
 * for each of these networks. The thread handles the completions of its rail: it forwards blocks,
 * and receives the first fragments of channels with messages on several networks; see rail.h.
 *
 * A gateway forwards blocks in the order of their posted receives, which is the order in which the
 * previous hop sent the blocks. A gateway ends when a process that it is connected to dies, so that
 * the processes that communicate through the gateway receive an error. Other gateways do not take
 * over: the blocks that the dead gateway held are lost, and common_exit() waits for all processes.
 *
 * No process waits for ever, and a gateway's memory is bounded:
 *
 * - A gateway never waits for another process: it posts a new receive for each completed receive,
 *   and each send is a request. So each block reaches the last gateway, and each credit reaches
 *   the sender, even if other ways are blocked.
 * - Only a sender waits, for a credit. Its blocks reach the last gateway, which frees a block when
 *   the receiver has taken the block, and returns a credit for every WAY_CREDIT blocks. WAY_WINDOW
 *   is at least WAY_CREDIT, so a sender without credits waits only for its receiver.
 * - A block is in a gateway's memory from its arrival until the next hop has taken the block. All
 *   gateways of a way together hold at most WAY_WINDOW blocks and WAY_WINDOW / WAY_CREDIT credits
 *   of the way, because the last gateway returns the credits. Credits from the first gateway would
 *   bound only the memory of the first gateway.
 *
 * selftests/spin/forward.pml is a model of this protocol.
 *
 * With adapters on two buses of profile A, a gateway has 95 % of the bandwidth of one ring; with
 * both on one bus, 97 % of what this bus carries both ways. A gateway adds 4.1 us to a message of
 * one line (build/selftests/sim/vtime_gateway). Blocks of 64 KiB would be 1 % slower: each block
 * waits for the end of the block before.
 */
#include <assert.h>
#include <errno.h>

#include "libsci/base/thread.h"
#include "libsci/madeleine/rail.h"

#define RECEIVES	8u		/* receives posted on each rail */
#define FLOWS		256u		/* lists of flows */
#define SLAB_BYTES	(1u << 20)	/* a larger block has its own slab */
#define FIRST_SIZE	WAY_BLOCK_MIN

_Static_assert(WAY_WINDOW >= WAY_CREDIT, "a sender without credits gets one");

enum event_kind { EVENT_STOP, EVENT_RECEIVED, EVENT_SENT, EVENT_CREDIT_SENT, EVENT_FIRST };

/* The kind of a request: the first member of the object that is queued with the request. */
struct event {
	enum event_kind kind;
};

/* The state of one way in a gateway. */
struct flow {
	struct flow *next;
	uint64_t tag;
	struct rail *before, *after;	/* rails of the previous and next hop */
	int from, to;			/* ranks of the previous and next process */
	bool is_first, is_last;		/* place of this gateway on the way */
	unsigned int sent;		/* blocks since the last credit */
};

struct block {
	struct event event;
	struct block *next;		/* next free block */
	struct flow *flow;
	bool here;
	struct sci_status status;
	uint8_t *buf;			/* in a slab */
};

/*
 * Exported memory of blocks. The previous process stores a long block into a receive's block, and
 * the gateway sends the block from there. So a gateway copies a block only once, to the next
 * process.
 */
struct slab {
	struct slab *next;
	void *heap;			/* memory if sci_buf_alloc() has failed; else NULL */
	struct block block[];
};

struct gateway {
	pthread_t thread;
	struct sci_req *stop_req;
	struct event stop, credit;
	struct block *receive[RECEIVES];	/* a ring of posted receives */
	unsigned int oldest;
	struct flow *flows[FLOWS];	/* ways of this rail's blocks and credits, by hash */
	pthread_mutex_t lock;		/* of @blocks: other rails' threads free blocks */
	struct block *blocks;
	struct slab *slabs;
};

/* A receive for the first fragments of a channel's messages on one rail. */
struct slot {
	struct event event;
	struct inbox_state *state;
	struct rail *rail;
	bool posted;
	bool here;
	struct sci_status status;
	struct slot *next;		/* next in the order of arrival */
	uint8_t buf[FIRST_SIZE];
};

struct inbox_state {
	pthread_mutex_t lock;
	pthread_cond_t came;
	struct slot *head, **tail;
	int n;
	struct slot *slot[];		/* one for each rail of the channel */
};

static void gateway_check(int ret, const char *what, int rank)
{
	if (ret)
		tbx_failuref("gateway: %s process %d: %s", what, rank, strerror(-ret));
}

/* ---- blocks ---- */

/* Allocate a slab. Context: gateway.lock is held. */
static void slab_new(struct rail *r)
{
	struct gateway *g = r->gateway;
	size_t size = rails_of(r->w)->block;
	unsigned int n = (unsigned int)tbx_max(1, tbx_min(RECEIVES, SLAB_BYTES / size));
	struct slab *s = tbx_alloc(1, sizeof(*s) + n * sizeof(s->block[0]));
	void *memory;

	if (sci_buf_alloc(r->ep, n * size, &memory))
		memory = s->heap = tbx_alloc(n, size);
	s->next = g->slabs;
	g->slabs = s;
	for (unsigned int i = 0; i < n; i++) {
		s->block[i].buf = (uint8_t *)memory + i * size;
		s->block[i].next = g->blocks;
		g->blocks = &s->block[i];
	}
}

static struct block *block_get(struct rail *r)
{
	struct gateway *g = r->gateway;
	struct block *b;

	pthread_mutex_lock(&g->lock);
	if (!g->blocks)
		slab_new(r);
	b = g->blocks;
	assert(b);		/* slab_new() adds at least one block */
	g->blocks = b->next;
	pthread_mutex_unlock(&g->lock);
	b->here = false;
	b->event.kind = EVENT_RECEIVED;
	return b;
}

static void block_put(struct rail *r, struct block *b)
{
	struct gateway *g = r->gateway;

	pthread_mutex_lock(&g->lock);
	b->next = g->blocks;
	g->blocks = b;
	pthread_mutex_unlock(&g->lock);
}

static int block_post(struct rail *r, unsigned int i)
{
	struct block *b = block_get(r);
	struct sci_req *req;
	int ret;

	r->gateway->receive[i] = b;
	ret = sci_itrecv(r->ep, NULL, CONTEXT_FORWARD, 0, ~0ull, b->buf,
			 rails_of(r->w)->block, &req);
	return ret ? ret : sci_req_queue(req, b);
}

/* ---- flows ---- */

static struct rail *hop_rail(struct rail *r, const struct def *d, p_ntbx_process_t a,
			     p_ntbx_process_t b)
{
	return &rails_of(r->w)->rail[mad_session_network(d, a, b)->index];
}

static p_ntbx_process_t gateway_get_process(struct rail *r, int rank)
{
	p_tbx_slist_t all = r->w->session->processes;

	if (rank >= all->length)
		tbx_failuref("gateway: a block of process %d, which is not in the session",
			     rank);
	return tbx_slist_index_get(all, rank);
}

static const struct def *gateway_get_channel(struct rail *r, uint64_t tag)
{
	p_tbx_slist_t all = r->w->session->order;

	if (tag_channel(tag) >= all->length)
		tbx_failuref("gateway: a block of channel %u, which does not exist",
			     tag_channel(tag));
	return tbx_slist_index_get(all, tag_channel(tag));
}

static struct flow *flow_new(struct rail *r, uint64_t tag)
{
	const struct def *d = gateway_get_channel(r, tag);
	p_ntbx_process_t from = gateway_get_process(r, tag_from(tag));
	p_ntbx_process_t to = gateway_get_process(r, tag_to(tag));
	p_ntbx_process_t me = gateway_get_process(r, r->w->rank), *way, before;
	struct flow *f = tbx_alloc(1, sizeof(*f));
	int n, i = 0;

	way = tbx_alloc((size_t)d->members->length, sizeof(p_ntbx_process_t));
	n = mad_session_member(d, from) && mad_session_member(d, to) ?
		mad_session_way(d, from, to, way) : 0;
	while (i < n && way[i] != me)
		i++;
	if (i + 1 >= n)
		tbx_failuref("gateway: blocks of process %d for process %d do not come here",
			     from->global_rank, to->global_rank);
	before = i ? way[i - 1] : from;
	f->from = before->global_rank;
	f->to = way[i + 1]->global_rank;
	f->before = hop_rail(r, d, before, me);
	f->after = hop_rail(r, d, me, way[i + 1]);
	f->is_first = !i;
	f->is_last = i + 2 == n;
	free(way);
	return f;
}

static struct flow *flow_get(struct rail *r, uint64_t tag)
{
	uint64_t hash = (tag ^ tag >> 24 ^ tag >> 40) * 0x9e3779b97f4a7c15ull;
	struct flow **list = &r->gateway->flows[hash >> 56], *f;

	for (f = *list; f; f = f->next)
		if (f->tag == tag)
			return f;
	f = flow_new(r, tag & ~TAG_CREDIT);
	f->tag = tag;
	f->next = *list;
	*list = f;
	return f;
}

/* ---- forwarding ---- */

static void credit_send(struct rail *r, int rank, bool to_sender, uint64_t tag)
{
	struct sci_req *req;
	int ret = sci_itsend(r->peer[rank], to_sender ? CONTEXT_CREDIT : CONTEXT_FORWARD,
			     tag | TAG_CREDIT, NULL, 0, &req);

	ret = ret ? ret : sci_req_queue(req, &r->gateway->credit);
	gateway_check(ret, "cannot send a credit to", rank);
}

static void block_forward(struct rail *r, struct block *b)
{
	uint64_t tag = b->status.tag;
	struct sci_req *req;
	struct flow *f;
	int ret;

	f = flow_get(r, tag);
	if (tag & TAG_CREDIT) {
		/* forward a credit to the previous hop */
		credit_send(f->before, f->from, f->is_first, tag);
		block_put(r, b);
		return;
	}
	b->flow = f;
	b->event.kind = EVENT_SENT;
	atomic_fetch_add(&f->after->sending, 1);
	ret = sci_itsend(f->after->peer[f->to],
			 f->is_last ? rail_context(tag_channel(tag)) : CONTEXT_FORWARD, tag,
			 b->buf, b->status.len, &req);
	ret = ret ? ret : sci_req_queue(req, b);
	gateway_check(ret, "cannot forward to", f->to);
}

static void block_sent(struct block *b, const struct sci_status *st)
{
	struct flow *f = b->flow;

	gateway_check(st->error, "cannot forward to", f->to);
	atomic_fetch_sub(&f->after->sending, 1);
	if (f->is_last && ++f->sent == WAY_CREDIT) {
		f->sent = 0;
		credit_send(f->before, f->from, f->is_first, f->tag);
	}
	block_put(f->before, b);
}

static void gateway_handle_block(struct rail *r, struct block *b, const struct sci_status *st)
{
	struct gateway *g = r->gateway;

	gateway_check(st->error, "cannot receive from", rail_rank(r, st->peer));
	b->status = *st;
	b->here = true;
	while ((b = g->receive[g->oldest])->here) {
		gateway_check(block_post(r, g->oldest), "cannot receive from", -1);
		g->oldest = (g->oldest + 1) % RECEIVES;
		block_forward(r, b);
	}
}

/* ---- messages that arrive on several networks ---- */

static void gateway_handle_slot(struct slot *s, const struct sci_status *st)
{
	struct inbox_state *in = s->state;

	pthread_mutex_lock(&in->lock);
	s->status = *st;
	s->posted = false;
	s->here = true;
	s->next = NULL;
	*in->tail = s;
	in->tail = &s->next;
	pthread_cond_signal(&in->came);
	pthread_mutex_unlock(&in->lock);
}

static struct inbox_state *inbox_get_state(struct mad_world *w, struct mad_inbox *in)
{
	struct rails *n = rails_of(w);
	struct inbox_state *s = in->slots;

	if (s)
		return s;
	s = tbx_alloc(1, sizeof(*s) + (size_t)n->n * sizeof(struct slot *));
	pthread_mutex_init(&s->lock, NULL);
	sci_cond_init(&s->came);
	s->tail = &s->head;
	for (int i = 0; i < n->n; i++)
		if (in->networks >> i & 1) {
			struct slot *slot = tbx_alloc(1, sizeof(*slot));

			slot->event.kind = EVENT_FIRST;
			slot->state = s;
			slot->rail = &n->rail[i];
			s->slot[s->n++] = slot;
		}
	in->slots = s;
	return s;
}

static int slots_post(struct inbox_state *s, struct mad_inbox *in)
{
	int ret = 0;

	for (int i = 0; i < s->n && !ret; i++) {
		struct slot *slot = s->slot[i];
		struct sci_req *req;
		bool post;

		pthread_mutex_lock(&s->lock);
		post = !slot->posted && !slot->here;
		slot->posted |= post;
		pthread_mutex_unlock(&s->lock);
		if (!post)
			continue;
		ret = sci_itrecv(slot->rail->ep, NULL, rail_context(in->channel), in->sub,
				 ~TAG_SUB, slot->buf, FIRST_SIZE, &req);
		ret = ret ? ret : sci_req_queue(req, slot);
	}
	return ret;
}

long gateway_first(struct mad_world *w, struct mad_inbox *in, void *buf, size_t size,
		   bool wait, int *rank)
{
	struct inbox_state *s = inbox_get_state(w, in);
	struct sci_status st;
	struct slot *slot;
	int ret = slots_post(s, in);

	if (ret)
		return ret;
	pthread_mutex_lock(&s->lock);
	while (wait && !s->head) {
		struct timespec end = sci_deadline((uint32_t)rails_poll_ms(rails_of(w)));

		if (!pthread_cond_timedwait(&s->came, &s->lock, &end))
			continue;
		pthread_mutex_unlock(&s->lock);
		rails_progress(w);
		pthread_mutex_lock(&s->lock);
	}
	slot = s->head;
	if (slot) {
		s->head = slot->next;
		if (!s->head)
			s->tail = &s->head;
		slot->here = false;
		st = slot->status;
		*rank = tag_is_way(st.tag) ? tag_from(st.tag) :
					     rail_rank(slot->rail, st.peer);
		if (!st.error)
			memcpy(buf, slot->buf, tbx_min(st.len, size));
	}
	pthread_mutex_unlock(&s->lock);
	if (!slot)
		return -EAGAIN;
	return st.error ? st.error : (long)st.len;
}

void gateway_inbox_free(struct mad_inbox *in)
{
	struct inbox_state *s = in->slots;

	if (!s)
		return;
	for (int i = 0; i < s->n; i++)
		free(s->slot[i]);
	pthread_cond_destroy(&s->came);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* ---- the thread ---- */

static void peer_event(struct rail *r, const struct sci_status *st)
{
	if (st->flags & SCI_STATUS_PEER_DOWN)
		gateway_check(st->error ? st->error : -ECONNRESET, "has lost", rail_rank(r, st->peer));
}

/* Handle a completed request. Return false if the gateway must stop. */
static bool gateway_complete(struct rail *r, const struct sci_completion *c)
{
	struct event *e = c->data;

	if (c->status.flags & (SCI_STATUS_PEER_UP | SCI_STATUS_PEER_DOWN)) {
		peer_event(r, &c->status);
		return true;
	}
	switch (e->kind) {
	case EVENT_STOP:
		return false;
	case EVENT_RECEIVED:
		gateway_handle_block(r, (struct block *)(void *)e, &c->status);
		break;
	case EVENT_SENT:
		block_sent((struct block *)(void *)e, &c->status);
		break;
	case EVENT_CREDIT_SENT:
		gateway_check(c->status.error, "cannot send a credit to",
			      rail_rank(r, c->status.peer));
		break;
	case EVENT_FIRST:
		gateway_handle_slot((struct slot *)(void *)e, &c->status);
		break;
	}
	return true;
}

int gateway_step(struct rail *r, int timeout)
{
	struct sci_completion done[16];
	int n = sci_completions(r->ep, timeout, done, 16);
	bool go_on = true;

	if (n == -EAGAIN || n == -ETIMEDOUT)
		return 0;
	gateway_check(n < 0 ? n : 0, "cannot wait for", -1);
	for (int i = 0; i < n; i++)
		go_on &= gateway_complete(r, &done[i]);
	return go_on ? n : -ECANCELED;
}

static void *gateway_run(void *arg)
{
	struct rail *r = arg;

	while (gateway_step(r, -1) >= 0)
		;
	/* a block must stay until the next hop has it, and it may be memory of another endpoint */
	while (atomic_load(&r->sending))
		gateway_step(r, -1);
	return NULL;
}

int gateway_open(struct rail *r)
{
	struct gateway *g = tbx_alloc(1, sizeof(*g));
	int ret;

	r->gateway = g;
	pthread_mutex_init(&g->lock, NULL);
	g->stop.kind = EVENT_STOP;
	g->credit.kind = EVENT_CREDIT_SENT;
	ret = sci_itrecv(r->ep, NULL, CONTEXT_STOP, 0, 0, NULL, 0, &g->stop_req);
	ret = ret ? ret : sci_req_queue(g->stop_req, &g->stop);
	for (unsigned int i = 0; i < RECEIVES && !ret; i++)
		ret = block_post(r, i);
	return ret;
}

int gateway_start(struct rail *r)
{
	int ret = gateway_open(r);

	return ret ? ret : -pthread_create(&r->gateway->thread, NULL, gateway_run, r);
}

/* Stop the gateway. Context: no process waits for a message any more. */
void gateway_stop(struct rail *r)
{
	if (!r->gateway)
		return;
	sci_cancel(r->gateway->stop_req);
	pthread_join(r->gateway->thread, NULL);
}

/* Free the gateway. Context: the endpoints of all rails are closed. */
void gateway_free(struct rail *r)
{
	struct gateway *g = r->gateway;

	if (!g)
		return;
	while (g->slabs) {
		struct slab *s = g->slabs;

		g->slabs = s->next;
		free(s->heap);
		free(s);
	}
	for (unsigned int i = 0; i < FLOWS; i++)
		while (g->flows[i]) {
			struct flow *f = g->flows[i];

			g->flows[i] = f->next;
			free(f);
		}
	pthread_mutex_destroy(&g->lock);
	free(g);
}
