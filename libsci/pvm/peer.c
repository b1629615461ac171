// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: sending
 *
 * Before the first message to a task, the sender asks the task's daemon for the address of
 * its endpoint. The daemon answers when the task has enrolled. A send waits up to
 * PATIENCE_US for the answer, then it queues a copy of the message. Any later call sends the
 * queue after the answer has arrived, and pvm_exit() waits until the queue is sent. A
 * message to a task that has ended is dropped, as in PVM.
 */

#include "libsci/pvm/lib.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/pvm/pack.h"

#define PATIENCE_US	1000000
#define OPEN_MS		1000	/* ms to connect to an endpoint that may have closed */
#define BINS		256u
#define IOV_MAX_OWN	64	/* limit of in-place pieces sent without a copy */

enum peer_state { PEER_ASKING, PEER_KNOWN, PEER_DEAD };

/* A queued message: its receiver has not enrolled yet. */
struct queued {
	struct list link;
	struct buf *b;
	int tag;
	struct sci_req *req;
};

struct peer {
	struct peer *next;		/* next peer in the bin */
	struct list unsettled;		/* in the list of peers with a request or a queue, or @dead */
	int tid;
	enum peer_state state;
	struct sci_peer *sci;
	struct answer where;
	struct list queue;
};

static struct peer *bins[BINS];
static struct peer *last;		/* receiver of the last message */
static struct list unsettled = { &unsettled, &unsettled };
static struct list dead = { &dead, &dead };	/* peers to free when @users is 0 */
static int users;			/* calls that hold pointers to peers */

static unsigned int bin_of(int tid)
{
	return ((unsigned int)tid ^ (unsigned int)tid >> TID_HOST_SHIFT) % BINS;
}

static struct peer *peer_find(int tid)
{
	struct peer *p = bins[bin_of(tid)];

	while (p && p->tid != tid)
		p = p->next;
	return p;
}

static void queued_free(struct queued *q)
{
	list_del(&q->link);
	pv_buf_free(q->b);
	free(q);
}

static void peer_free(struct peer *p)
{
	struct peer **at = &bins[bin_of(p->tid)];

	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	if (last == p)
		last = NULL;
	if (p->state == PEER_ASKING)
		pv_answer_free(&p->where);
	while (!list_empty(&p->queue))
		queued_free(container_of(p->queue.next, struct queued, link));
	list_del(&p->unsettled);
	if (p->sci)
		sci_disconnect(p->sci);
	free(p);
}

static void peers_free_dead(void)
{
	while (!users && !list_empty(&dead))
		peer_free(container_of(dead.next, struct peer, unsettled));
}

static void peer_die(struct peer *p)
{
	if (p->state == PEER_ASKING)
		pv_answer_free(&p->where);
	p->state = PEER_DEAD;
	list_del(&p->unsettled);
	list_add_tail(&p->unsettled, &dead);
	peers_free_dead();
}

/* Handle the end of connection @sci. */
void pv_peer_gone(struct sci_peer *sci)
{
	struct peer *p = sci_peer_data(sci);

	if (p)
		peer_die(p);
	else
		sci_disconnect(sci);
}

void pv_peers_free(void)
{
	for (unsigned int i = 0; i < BINS; i++)
		while (bins[i])
			peer_free(bins[i]);
}

/* Get the peer of @tid. A new peer asks the daemon for the address of the task. */
static struct peer *peer_get(int tid)
{
	struct frame f = { 0 };
	struct peer *p = peer_find(tid);

	if (p && p->state != PEER_DEAD)
		return p;
	if (p && !users)
		peer_free(p);
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->tid = tid;
	list_init(&p->queue);
	frame_begin(&f, OP_WHERE, (uint32_t)tid & TID_HOST_MASK);
	frame_i32(&f, tid);
	if (pv_request_start(&f, &p->where)) {
		free(p);
		return NULL;
	}
	p->next = bins[bin_of(tid)];
	bins[bin_of(tid)] = p;
	list_add_tail(&p->unsettled, &unsettled);
	return p;
}

/* Connect to @p, whose address the daemon has sent. */
static void peer_settle(struct peer *p)
{
	struct sci_addr addr;
	struct answer *a = &p->where;

	addr.node = (uint32_t)body_i32(&a->body);
	addr.id = (uint32_t)body_i32(&a->body);
	if (a->status || a->body.bad ||
	    sci_peer_open(pv_me.ep, &addr, OPEN_MS, &p->sci)) {
		p->sci = NULL;
		peer_die(p);
		return;
	}
	sci_peer_set_data(p->sci, p);
	p->state = PEER_KNOWN;
	pv_answer_free(a);
}

/* ---- messages ---- */

static uint64_t match_tag(const struct buf *b, int tag)
{
	return (uint64_t)(uint32_t)b->info.ctx << 32 | (uint32_t)tag;
}

static uint64_t match_imm(const struct buf *b)
{
	return (uint64_t)(uint32_t)pvmmytid << 32 | (uint32_t)b->info.wid << 2 |
	       (uint32_t)b->enc;
}

/* Start to send @b. *@req: NULL if the send has completed. */
static int message_start(struct sci_peer *to, const struct buf *b, int tag,
			 struct sci_req **req)
{
	struct iovec iov[IOV_MAX_OWN];
	struct sci_send s = {
		.iov = iov, .n = 1, .tag = match_tag(b, tag), .imm = match_imm(b),
		.context = MSG_CONTEXT,
		.flags = SCI_SEND_TAGGED | SCI_SEND_IMM,
	};

	*req = NULL;
	if (b->npieces) {
		s.n = (size_t)b->npieces;
		for (size_t i = 0; i < s.n; i++)
			iov[i] = (struct iovec){ (void *)b->pieces[i].at,
				b->pieces[i].n * b->pieces[i].size };
	} else {
		if (!sci_try_tsend(to, MSG_CONTEXT, s.tag, &s.imm, b->data, b->len))
			return 0;
		iov[0] = (struct iovec){ b->data, b->len };
		s.n = b->len ? 1 : 0;
	}
	return sci_isendm(to, &s, req);
}

static int message_queue(struct peer *p, const struct buf *b, int tag)
{
	struct queued *q = malloc(sizeof(*q));

	if (!q || !(q->b = pv_buf_copy(b))) {
		free(q);
		return PvmNoMem;
	}
	q->tag = tag;
	q->req = NULL;
	list_add_tail(&q->link, &p->queue);
	return 0;
}

/* Send the messages of @p's queue, in order. */
static void queue_push(struct peer *p)
{
	while (p->state == PEER_KNOWN && !list_empty(&p->queue)) {
		struct queued *q = container_of(p->queue.next, struct queued, link);
		int ret = q->req ? 0 : message_start(p->sci, q->b, q->tag, &q->req);

		/* out of memory: a later call sends the message */
		if (ret == -ENOMEM)
			return;
		if (ret)
			q->req = NULL;
		if (q->req && sci_test(q->req, NULL) == -EAGAIN)
			return;
		queued_free(q);
	}
}

void pv_peers_push(void)
{
	struct list *l, *next;

	users++;
	list_for_each_safe(l, next, &unsettled) {
		struct peer *p = container_of(l, struct peer, unsettled);

		if (p->state == PEER_ASKING && p->where.came)
			peer_settle(p);
		queue_push(p);
		if (p->state == PEER_KNOWN && list_empty(&p->queue)) {
			list_del(&p->unsettled);
			list_init(&p->unsettled);
		}
	}
	users--;
	peers_free_dead();
}

bool pv_peers_unsettled(void)
{
	return !list_empty(&unsettled);
}

static bool peer_answered(void *arg)
{
	struct peer *p = arg;

	return p->state != PEER_ASKING || p->where.came;
}

static bool request_done(void *arg)
{
	struct sci_req **req = arg;

	if (*req && sci_test(*req, NULL) != -EAGAIN)
		*req = NULL;
	return !*req;
}

/* Send a message from this task to itself. */
static int send_self(const struct buf *b, int tag)
{
	struct buf *c = pv_buf_copy(b);

	if (!c)
		return PvmNoMem;
	c->info.src = c->info.dst = pvmmytid;
	c->info.tag = tag;
	c->info.len = (int)c->len;
	c->info.enc = c->enc;
	pv_inbox_add(c);
	return 0;
}

/* Return true if in-place data has gaps, or too many pieces to be sent without a copy. */
static bool pieces_need_copy(const struct buf *b)
{
	for (int i = 0; i < b->npieces; i++)
		if (b->pieces[i].step != b->pieces[i].size)
			return true;
	return b->npieces > IOV_MAX_OWN;
}

/* Start to send @b to one task. *@req: the request to wait for, or NULL. */
static int send_start(const struct buf *b, int tid, int tag, int64_t *deadline,
		      struct sci_req **req)
{
	struct peer *p;
	int ret;

	*req = NULL;
	if (tid == pvmmytid)
		return send_self(b, tag);
	p = last && last->tid == tid && last->state == PEER_KNOWN ? last : peer_get(tid);
	if (!p)
		return PvmNoMem;
	if (!peer_answered(p)) {
		if (*deadline < 0)
			*deadline = pv_now_us() + PATIENCE_US;
		ret = pv_wait_for(peer_answered, p, *deadline);
		if (ret == PvmSysErr)
			return ret;
	}
	if (p->state == PEER_ASKING && p->where.came)
		peer_settle(p);
	if (p->state == PEER_DEAD)
		return 0;
	queue_push(p);
	if (p->state == PEER_ASKING || !list_empty(&p->queue))
		return message_queue(p, b, tag);
	list_del(&p->unsettled);
	list_init(&p->unsettled);
	last = p;
	ret = message_start(p->sci, b, tag, req);
	if (ret)
		*req = NULL;
	return ret == -ENOMEM ? PvmNoMem : 0;
}

int pv_peer_send(struct buf *b, const int *tids, int n, int tag)
{
	struct sci_req *one, **reqs = &one;
	struct buf *copy = NULL;
	int64_t deadline = -1;
	int ret = 0, i;

	if (b->msg && pv_buf_fetch(b))
		return PvmBadMsg;
	/* the receiver counts the bytes of a message in an int */
	if (pv_buf_bytes(b) > INT32_MAX)
		return PvmNoMem;
	if (pieces_need_copy(b)) {
		b = copy = pv_buf_copy(b);
		if (!copy)
			return PvmNoMem;
	}
	if (n > 1)
		reqs = calloc((size_t)n, sizeof(struct sci_req *));
	if (!reqs) {
		pv_buf_free(copy);
		return PvmNoMem;
	}
	users++;
	for (i = 0; i < n && !ret; i++)
		ret = send_start(b, tids[i], tag, &deadline, &reqs[i]);
	n = ret && i ? i - 1 : n;
	for (i = 0; i < n; i++)
		if (reqs[i] && pv_wait_for(request_done, &reqs[i], -1))
			ret = PvmSysErr;
	users--;
	peers_free_dead();
	/* without the daemon, requests may still read the copy */
	if (ret != PvmSysErr)
		pv_buf_free(copy);
	if (reqs != &one)
		free(reqs);
	pv_watch_renew();
	return ret;
}

/* ---- calls ---- */

static int send_sbuf(const char *call, const int *tids, int n, int tag)
{
	struct buf *b = pv_me.sbuf;
	int ret;

	if (!b)
		return lpvmerr(call, PvmNoBuf);
	b->info.ctx = pvmmyctx;
	ret = pv_peer_send(b, tids, n, tag);
	return pv_report(call, ret);
}

PVM_API int pvm_send(int tid, int tag)
{
	int ret = pv_task_ready();

	if (ret < 0)
		return lpvmerr("pvm_send", ret);
	if ((pv_opts.resv && (uint32_t)tid & TID_DAEMON && tid != -1) || tid == TID_GROUPS)
		return pv_report("pvm_send", pv_me.sbuf ? pv_daemon_send(pv_me.sbuf, tid, tag) :
				 PvmNoBuf);
	if (!tid_is_task(tid) || (tag < 0 && !pv_opts.resv))
		return lpvmerr("pvm_send", PvmBadParam);
	return send_sbuf("pvm_send", &tid, 1, tag);
}

static int tid_compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

/* Send to several tasks. Each task in @tids gets one message; the calling task gets none. */
PVM_API int pvm_mcast(int *tids, int count, int tag)
{
	int ret = pv_task_ready();
	int *to, n = 0;

	if (ret < 0)
		return lpvmerr("pvm_mcast", ret);
	if (count < 0 || tag < 0 || (count && !tids))
		return lpvmerr("pvm_mcast", PvmBadParam);
	for (int i = 0; i < count; i++)
		if (!tid_is_task(tids[i]))
			return lpvmerr("pvm_mcast", PvmBadParam);
	to = malloc(((size_t)count + 1) * sizeof(int));
	if (!to)
		return lpvmerr("pvm_mcast", PvmNoMem);
	if (count)
		memcpy(to, tids, (size_t)count * sizeof(int));
	qsort(to, (size_t)count, sizeof(int), tid_compare);
	for (int i = 0; i < count; i++)
		if (to[i] != pvmmytid && (!n || to[n - 1] != to[i]))
			to[n++] = to[i];
	ret = send_sbuf("pvm_mcast", to, n, tag);
	free(to);
	return ret;
}

PVM_API int pvm_psend(int tid, int tag, void *data, int len, int type)
{
	size_t size = (size_t)pv_type_size(type);
	struct piece piece = { data, 1, (size_t)len * size, 1 };
	struct buf *b;
	int ret = pv_task_ready();

	if (ret < 0)
		return lpvmerr("pvm_psend", ret);
	if (len < 0 || !size || (len && !data) || tag < 0 || !tid_is_task(tid))
		return lpvmerr("pvm_psend", PvmBadParam);
	b = pv_buf_new(PvmDataRaw);
	if (b && len)
		b->pieces = malloc(sizeof(piece));
	if (!b || (len && !b->pieces)) {
		pv_buf_free(b);
		return lpvmerr("pvm_psend", PvmNoMem);
	}
	if (len) {
		*b->pieces = piece;
		b->npieces = 1;
	}
	b->info.ctx = pvmmyctx;
	ret = pv_peer_send(b, &tid, 1, tag);
	pv_buf_free(b);
	return pv_report("pvm_psend", ret);
}
