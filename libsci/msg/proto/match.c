// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: how a match is found
 *
 * A queue of up to SHORT nodes is searched from the oldest node on: no hash is as fast.
 * A longer queue is hashed until only FEW nodes are left:
 *
 *	bins[hash] -> key -> key -> key		(next)
 *		       |	     |
 *		      node	    node	(same: oldest first)
 *		       |
 *		      node
 *
 * A key is a source, a tag and a context. The oldest node of a key represents the key in its bin,
 * and it is the node to be found. So neither many keys nor many nodes of one key make a search
 * longer. Receives that are not exact have no key: they are in a separate list.
 */
#include <stdlib.h>
#include <string.h>

#include "libsci/msg/proto/match.h"

#define SHORT		8	/* number of nodes */
#define FEW		4
#define FIRST_BINS_LOG2	5
#define HASH_BITS	64

#define node_of(link, member) \
	container_of(link, struct sci_match_node, member)

#define recv_of(link, member) \
	container_of(link, struct sci_match_recv, member)

/* ---- keys ---- */

/*
 * Return the bin of a key. The upper bits of a product depend on all bits of its factors, so they
 * select the bin. The XOR separates evenly spaced sums: addresses and tags are evenly spaced.
 */
static inline struct sci_match_node **bin_of(const struct sci_match_queue *q,
					     const void *source, uint64_t tag,
					     uint32_t context)
{
	uint64_t h = tag * UINT64_C(0x9e3779b97f4a7c15);

	h += ((uintptr_t)source + ((uint64_t)context << 32 | context)) *
	     UINT64_C(0xd6e8feb86659fd93);
	h = (h ^ h >> 32) * UINT64_C(0xff51afd7ed558ccd);
	return &q->bins[h >> q->shift];
}

static inline struct sci_match_node *key_find(struct sci_match_queue *q,
					      struct sci_match_node *const *bin,
					      const void *source, uint64_t tag,
					      uint32_t context)
{
	struct sci_match_node *n;

	for (n = *bin; n; n = n->next) {
		q->steps++;
		if (n->tag == tag && n->source == source &&
		    n->context == context)
			break;
	}
	return n;
}

static void chain_add(struct sci_match_node **bin, struct sci_match_node *n)
{
	n->next = *bin;
	n->pprev = bin;
	if (n->next)
		n->next->pprev = &n->next;
	*bin = n;
}

static void key_add(struct sci_match_queue *q, struct sci_match_node *n)
{
	struct sci_match_node **bin = bin_of(q, n->source, n->tag, n->context);
	struct sci_match_node *oldest = key_find(q, bin, n->source, n->tag,
						 n->context);

	if (oldest) {
		n->pprev = NULL;
		list_add_tail(&n->same, &oldest->same);
		return;
	}
	list_init(&n->same);
	chain_add(bin, n);
	q->keys++;
}

/* Remove a node. If it represents its key, the second oldest node of the key replaces it. */
static void key_remove(struct sci_match_queue *q, struct sci_match_node *n)
{
	struct sci_match_node *heir = n->next;

	if (!n->pprev) {
		list_del(&n->same);
		return;
	}
	if (list_empty(&n->same)) {
		q->keys--;
	} else {
		heir = node_of(n->same.next, same);
		list_del(&n->same);
		heir->next = n->next;
		if (heir->next)
			heir->next->pprev = &heir->next;
	}
	*n->pprev = heir;
	if (heir)
		heir->pprev = n->pprev;
}

/* ---- bins ---- */

static size_t queue_bins_count(const struct sci_match_queue *q)
{
	return (size_t)1 << (HASH_BITS - q->shift);
}

static bool bins_make(struct sci_match_queue *q)
{
	if (!q->bins) {
		q->bins = calloc((size_t)1 << FIRST_BINS_LOG2,
				 sizeof(*q->bins));
		q->shift = HASH_BITS - FIRST_BINS_LOG2;
	}
	return q->bins;
}

/* Double the bins. Without memory the chains grow; the next attempt is at twice as many keys. */
static void bins_grow(struct sci_match_queue *q)
{
	struct sci_match_node **old = q->bins, *n, *next;
	size_t count = queue_bins_count(q);

	q->bins = calloc(count, 2 * sizeof(*old));
	if (!q->bins) {
		q->bins = old;
		q->limit *= 2;
		return;
	}
	q->shift--;
	q->limit = 2 * count;
	for (size_t i = 0; i < count; i++)
		for (n = old[i]; n; n = next) {
			next = n->next;
			q->steps++;
			chain_add(bin_of(q, n->source, n->tag, n->context), n);
		}
	free(old);
}

/* ---- queues ---- */

static void queue_init(struct sci_match_queue *q)
{
	*q = (struct sci_match_queue){ .limit = SHORT };
	list_init(&q->order);
	list_init(&q->wild);
	q->passed = &q->order;
}

static void queue_hash_one(struct sci_match_queue *q, struct sci_match_node *n)
{
	if (n->wild) {
		list_add_tail(&n->same, &q->wild);
		return;
	}
	key_add(q, n);
	if (q->keys > q->limit)
		bins_grow(q);
}

static void queue_hash_all(struct sci_match_queue *q)
{
	struct list *pos, *next;

	if (!bins_make(q)) {
		q->limit *= 2;
		return;
	}
	q->hashed = true;
	q->limit = queue_bins_count(q);
	list_for_each_safe(pos, next, &q->order) {
		q->steps++;
		queue_hash_one(q, node_of(pos, order));
	}
}

/* Append @n to the queue. @count: number of nodes with @n */
static inline void queue_add(struct sci_match_queue *q,
			     struct sci_match_node *n, size_t count)
{
	list_add_tail(&n->order, &q->order);
	if (q->hashed)
		queue_hash_one(q, n);
	else if (count > q->limit)
		queue_hash_all(q);
}

static inline void queue_unhash_one(struct sci_match_queue *q,
				    struct sci_match_node *n)
{
	if (n->wild)
		list_del(&n->same);
	else
		key_remove(q, n);
}

static void queue_unhash_all(struct sci_match_queue *q)
{
	struct list *pos, *next;

	list_for_each_safe(pos, next, &q->order) {
		q->steps++;
		queue_unhash_one(q, node_of(pos, order));
	}
	q->hashed = false;
	q->limit = SHORT;
}

/* Remove a node: @count nodes are left. A queue with FEW nodes is not hashed any more. */
static inline void queue_remove(struct sci_match_queue *q,
				struct sci_match_node *n, size_t count)
{
	if (q->hashed)
		queue_unhash_one(q, n);
	if (q->passed == &n->order)
		q->passed = n->order.prev;
	list_del(&n->order);
	if (!count)
		q->limit = SHORT;
	if (q->hashed && count <= FEW)
		queue_unhash_all(q);
}

/*
 * Return the oldest node of @source. The nodes up to q->passed have other sources: do not visit
 * them again. Otherwise the removal of a peer with many nodes among many nodes of other peers would
 * take quadratic time. New nodes are appended behind q->passed.
 */
static struct sci_match_node *queue_node_of(struct sci_match_queue *q,
					    const void *source)
{
	struct sci_match_node *n;

	if (q->passed_source != source) {
		q->passed_source = source;
		q->passed = &q->order;
	}
	while (q->passed->next != &q->order) {
		n = node_of(q->passed->next, order);
		q->steps++;
		if (n->source == source)
			return n;
		q->passed = &n->order;
	}
	return NULL;
}

int sci_match_init(struct sci_match *m)
{
	m->posted = 0;
	memset(m->of_class, 0, sizeof(m->of_class));
	m->unexpected = 0;
	m->seq = 0;
	queue_init(&m->recvs);
	queue_init(&m->msgs);
	return 0;
}

void sci_match_fini(struct sci_match *m)
{
	free(m->recvs.bins);
	free(m->msgs.bins);
	m->recvs.bins = NULL;
	m->msgs.bins = NULL;
}

/* ---- receives ---- */

static inline bool node_is_wild(const struct sci_match_recv *recv)
{
	return !recv->source || recv->ignore;
}

static inline bool recv_accepts(const struct sci_match_recv *recv,
				const void *source, uint64_t tag, uint32_t context)
{
	return !((recv->tag ^ tag) & ~recv->ignore) &&
	       (recv->source == source || !recv->source) &&
	       recv->context == context;
}

void sci_match_post(struct sci_match *m, struct sci_match_recv *recv)
{
	recv->wild = node_is_wild(recv);
	recv->seq = m->seq++;
	m->of_class[recv->context % SCI_MATCH_CLASSES]++;
	if (recv->count)
		++*recv->count;
	queue_add(&m->recvs, &recv->node, ++m->posted);
}

void sci_match_recv_remove(struct sci_match *m, struct sci_match_recv *recv)
{
	m->of_class[recv->context % SCI_MATCH_CLASSES]--;
	if (recv->count)
		--*recv->count;
	queue_remove(&m->recvs, &recv->node, --m->posted);
}

static inline struct sci_match_recv *
queue_find_short(struct sci_match_queue *q, const void *source, uint64_t tag,
		 uint32_t context)
{
	struct sci_match_recv *r;

	for (struct list *pos = q->order.next; pos != &q->order;
	     pos = pos->next) {
		r = recv_of(pos, order);
		q->steps++;
		if (recv_accepts(r, source, tag, context))
			return r;
	}
	return NULL;
}

static struct sci_match_recv *queue_find_hashed(struct sci_match_queue *q,
						const void *source, uint64_t tag,
						uint32_t context)
{
	struct sci_match_node *n = key_find(q, bin_of(q, source, tag, context),
					    source, tag, context);
	struct sci_match_recv *exact, *r;

	exact = n ? container_of(n, struct sci_match_recv, node) : NULL;
	for (struct list *pos = q->wild.next; pos != &q->wild;
	     pos = pos->next) {
		r = recv_of(pos, same);
		q->steps++;
		if (exact && exact->seq < r->seq)
			break;
		if (recv_accepts(r, source, tag, context))
			return r;
	}
	return exact;
}

struct sci_match_recv *sci_match_arrive_posted(struct sci_match *m,
					       const void *source, uint64_t tag,
					       uint32_t context)
{
	struct sci_match_queue *q = &m->recvs;
	struct sci_match_recv *r;

	if (q->hashed)
		r = queue_find_hashed(q, source, tag, context);
	else
		r = queue_find_short(q, source, tag, context);
	if (r && !r->stays)
		sci_match_recv_remove(m, r);
	return r;
}

struct sci_match_recv *sci_match_recv_of(struct sci_match *m,
					 const void *source)
{
	struct sci_match_node *n = queue_node_of(&m->recvs, source);

	return n ? container_of(n, struct sci_match_recv, node) : NULL;
}

/* ---- messages ---- */

void sci_match_unexpected(struct sci_match *m, struct sci_match_msg *msg)
{
	msg->wild = false;
	msg->seq = m->seq++;
	queue_add(&m->msgs, &msg->node, ++m->unexpected);
}

void sci_match_msg_remove(struct sci_match *m, struct sci_match_msg *msg)
{
	queue_remove(&m->msgs, &msg->node, --m->unexpected);
}

static struct sci_match_node *queue_find_accepted(struct sci_match_queue *q,
						  const struct sci_match_recv *want)
{
	struct sci_match_node *n;

	for (struct list *pos = q->order.next; pos != &q->order;
	     pos = pos->next) {
		n = node_of(pos, order);
		q->steps++;
		if (recv_accepts(want, n->source, n->tag, n->context))
			return n;
	}
	return NULL;
}

struct sci_match_msg *
sci_match_find_unexpected(struct sci_match *m,
			  const struct sci_match_recv *want)
{
	struct sci_match_queue *q = &m->msgs;
	struct sci_match_node *n;

	if (!q->hashed || node_is_wild(want))
		n = queue_find_accepted(q, want);
	else
		n = key_find(q, bin_of(q, want->source, want->tag,
				       want->context),
			     want->source, want->tag, want->context);
	return n ? container_of(n, struct sci_match_msg, node) : NULL;
}

struct sci_match_msg *sci_match_msg_of(struct sci_match *m, const void *source)
{
	struct sci_match_node *n = queue_node_of(&m->msgs, source);

	return n ? container_of(n, struct sci_match_msg, node) : NULL;
}
