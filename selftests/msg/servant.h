/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: a peer that obeys orders in messages
 *
 *	struct peer *p = peer_spawn(8, servant, (void *)&config);
 *	struct pair l = pair_config(p, 8, &config);
 *
 *	tell_send(&l, &(struct work){ .tagged = true, .tag = 5, .len = 100 });
 *	...
 *	tell_finish(&l);
 *	tell_leave(&l);
 *
 * The servant sends without waiting. It is always in a call of its endpoint,
 * except after tell_pause().
 */
#ifndef SELFTESTS_MSG_SERVANT_H
#define SELFTESTS_MSG_SERVANT_H

#include "selftests/msg/peers.h"

#define WORK_CONTEXT	0x776f726bu	/* context of orders and answers */
#define WORK_MAX	20000u		/* sends under way */

enum work_op {
	WORK_SEND,
	WORK_RECV,
	WORK_FINISH,
	WORK_STATS,
	WORK_PAUSE,
	WORK_LEAVE,
};

/* A tagged message of this size is still a short message. */
struct work {
	uint8_t op;
	uint8_t tagged;
	uint16_t flags;
	uint32_t context;
	uint64_t tag;
	uint64_t len;
	uint64_t seed;
};

struct servant {
	struct pair l;
	size_t n;
	struct sci_req *req[WORK_MAX];
	void *buf[WORK_MAX];
};

static inline void servant_send(struct servant *s, const struct work *w)
{
	struct iovec iov = { malloc(w->len + 1), w->len };
	struct sci_req **req = &s->req[s->n];

	CHECK(iov.iov_base && s->n < WORK_MAX);
	msg_fill(iov.iov_base, w->len, w->seed);
	s->buf[s->n++] = iov.iov_base;
	if (w->tagged)
		CHECK_EQ(sci_itsendv(s->l.to, w->context, w->tag, &iov, 1,
				     w->flags, req), 0);
	else
		CHECK_EQ(sci_isendv(s->l.to, &iov, 1, w->flags, req), 0);
}

static inline void servant_recv(struct servant *s, const struct work *w)
{
	struct guarded g = guarded_alloc(w->len, 0);
	struct sci_status st;

	if (w->tagged)
		CHECK_EQ(sci_trecv(s->l.ep, s->l.to, w->context, w->tag, 0,
				   g.p, w->len, &st), 0);
	else
		CHECK_EQ(sci_recv(s->l.ep, s->l.to, g.p, w->len, &st), 0);
	CHECK_EQ(st.len, w->len);
	CHECK_BYTES(g.p, w->len, w->seed);
	guarded_free(&g);
}

static inline void servant_finish(struct servant *s)
{
	CHECK_EQ(sci_waitall(s->req, s->n, TEST_WAIT_MS, NULL), 0);
	while (s->n)
		free(s->buf[--s->n]);
	CHECK_EQ(sci_tsend(s->l.to, WORK_CONTEXT, 0, NULL, 0), 0);
}

static inline bool servant_work(struct servant *s, const struct work *w)
{
	switch (w->op) {
	case WORK_SEND:
		servant_send(s, w);
		break;
	case WORK_RECV:
		servant_recv(s, w);
		break;
	case WORK_FINISH:
		servant_finish(s);
		break;
	case WORK_STATS:
		PEER_PUT(s->l.proc, test_ep_stats(s->l.ep));
		break;
	case WORK_PAUSE:
		peer_send(s->l.proc, "pausing");
		peer_expect(s->l.proc, "go on");
		break;
	default:
		return false;
	}
	return true;
}

/* Obey orders until WORK_LEAVE. @arg: a struct config, or NULL. */
static inline void servant(struct peer *proc, void *arg)
{
	static const struct config plain;
	static struct servant s;
	struct work w;

	s.l = pair_config(proc, 4, arg ? arg : &plain);
	do {
		CHECK_EQ(sci_trecv(s.l.ep, s.l.to, WORK_CONTEXT, 0, 0, &w,
				   sizeof(w), NULL), 0);
	} while (servant_work(&s, &w));
	pair_meet(&s.l);
	/* closing ends the sends that the test has not waited for */
	CHECK_EQ(sci_ep_close(s.l.ep), 0);
	while (s.n)
		free(s.buf[--s.n]);
}

static inline void tell(struct pair *l, const struct work *w,
			enum work_op op)
{
	struct work told = *w;

	told.op = op;
	CHECK_EQ(sci_tsend(l->to, WORK_CONTEXT, 0, &told, sizeof(told)), 0);
}

static inline void tell_send(struct pair *l, const struct work *w)
{
	tell(l, w, WORK_SEND);
}

static inline void tell_recv(struct pair *l, const struct work *w)
{
	tell(l, w, WORK_RECV);
}

/* Wait until the servant has completed all its sends and receives. */
static inline void tell_finish(struct pair *l)
{
	tell(l, &(struct work){ 0 }, WORK_FINISH);
	CHECK_EQ(sci_trecv(l->ep, l->to, WORK_CONTEXT, 0, 0, NULL, 0, NULL),
		 0);
}

static inline struct sci_ep_stats tell_stats(struct pair *l)
{
	struct sci_ep_stats stats;

	tell(l, &(struct work){ 0 }, WORK_STATS);
	PEER_GET(l->proc, stats);
	return stats;
}

/* After this the servant makes no call until peer_send(l->proc, "go on"). */
static inline void tell_pause(struct pair *l)
{
	tell(l, &(struct work){ 0 }, WORK_PAUSE);
	peer_expect(l->proc, "pausing");
}

/* Let the servant leave; l->ep stays open. */
static inline void tell_leave(struct pair *l)
{
	tell(l, &(struct work){ 0 }, WORK_LEAVE);
	pair_meet(l);
	peer_join(l->proc);
}

/* Start a servant on node 8 and connect to it. */
static inline struct pair servant_begin(const struct config *c)
{
	struct peer *p = peer_spawn(8, servant, (void *)(uintptr_t)c);

	return pair_config(p, 8, c);
}

static inline void servant_end(struct pair *l)
{
	tell_leave(l);
	CHECK_EQ(sci_ep_close(l->ep), 0);
}

/* Messages of more than 4096 bytes are rendezvous in blocks. */
#define BLOCKS								\
	{ SCI_PARAM_EAGER_MAX, 4096 },					\
	{ SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX }

#endif
