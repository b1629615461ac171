// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: collective calls through messages
 *
 * Calls have two levels: near members do their part through shared memory, and the first member of
 * each group, its leader, exchanges messages for the group. The order of operands counts in
 * reductions and scans, so they have two levels only if the ranks of each group are consecutive.
 *
 *	barrier			dissemination
 *	broadcast		binomial tree, in segments; chain for long data and many groups
 *	reduce			binomial tree
 *	allreduce		recursive doubling, or reduce and broadcast
 *	scan, exscan		recursive doubling
 *	reduce-scatter		pairs of groups; reduce and scatter for short data
 *	allgather		ring of leaders; with one member on each node: Bruck for short
 *				parts, ring for long parts and for parts with lengths
 *	gather, scatter		to and from the root directly; short parts through leaders
 *	all-to-all		in pairs; short parts through leaders; with one member on each
 *				node: Bruck for very short parts
 *
 * A broadcast does not use the broadcast groups of a fabric (SCI_LSEG_BROADCAST):
 *  - Only shm and loop have them. The members of a broadcast group are on one machine and share
 *    one memory. So they are near, unless SCI_TEAM_MEMORY or SCI_SHM_CHECK forbids it. A broadcast
 *    through shared memory (flat.c) also stores each piece once. It leaves data in the symmetric
 *    heap in place. A broadcast group would need a copy of that data in its segment.
 *  - pci, ntb, pool and net have none. The pci adapter sends a line to one node, and the node
 *    answers. A missing answer increases the error count, so the sender notices each lost line.
 *    If a line to several nodes had no answers, the sender would not notice a loss. If each node
 *    answered, more than half of the packets would remain. In virtual time, a broadcast of 1 MiB
 *    (16384 lines) takes 33033 packets for 2 nodes, 99101 for 4 and 246323 for 8:
 *    sci model scale -b 1048576 broadcast 2 4 8
 *  - An importer of a broadcast group gets no event when one of several members dies.
 */

#include "libsci/team/plan.h"

#define SEGMENT		(128u << 10)	/* bytes; unit of forwarding in a tree */
#define CHAIN_SEGMENT	(7u << 10)	/* bytes; unit of forwarding in a chain */
#define CHAIN_SHARE	(4u << 10)	/* bytes for each member that make a chain worthwhile */
#define CHAIN_MEMBERS	5		/* fewest members of a chain */
#define DOUBLING_MAX	(64u << 10)	/* longest allreduce by recursive doubling */
#define BRUCK_MAX	1024u		/* longest part of an allgather by Bruck's algorithm */
#define EXCHANGE_MIN	4096u		/* shortest block for a reduce-scatter in pairs of groups */

/* The members of a tree: their ranks in order, and the position of the caller. */
struct tree {
	const struct sci_team *team;
	const int *ranks;		/* NULL: all members */
	int n;
	int me;				/* -1: the caller is not a member */
};

static int tree_rank(const struct tree *t, int i)
{
	return t->ranks ? t->ranks[i] : i;
}

/* ---- building blocks ---- */

static void tree_add_barrier(struct plan *p, const struct tree *t)
{
	for (int d = 1; t->me >= 0 && d < t->n; d *= 2) {
		plan_round(p);
		plan_send(p, tree_rank(t, (t->me + d) % t->n), NULL, 0);
		plan_recv(p, tree_rank(t, (t->me - d + t->n) % t->n), NULL, 0);
	}
}

/*
 * Receive from @parent and send to @n @children, in segments. Members are positions in the tree.
 * Send to one child after another: then the first child, which has most children of its own, can
 * begin early. The next segment arrives meanwhile. @parent: -1 for the root
 */
static void tree_add_segments(struct plan *p, const struct tree *t, int parent,
			      const int *children, int n, size_t segment, uint8_t *buf, size_t len)
{
	for (size_t at = 0; at < len; at += segment) {
		size_t part = len - at < segment ? len - at : segment;

		if (parent >= 0)
			plan_recv(p, tree_rank(t, parent), buf + at, part);
		plan_round(p);
		for (int i = 0; i < n; i++) {
			if (i)
				plan_round(p);
			plan_send(p, tree_rank(t, children[i]), buf + at, part);
		}
	}
	plan_round(p);
}

/* A chain visits the members in the order of their nodes, which is the order on a ring. */
static uint64_t chain_key(const struct tree *t, int i)
{
	const struct sci_team *team = t->team;
	int world = team->members[tree_rank(t, i)].world;

	return (uint64_t)team->world->ranks[world].addr.node << 32 | (unsigned int)i;
}

/* Return the position after or before the caller's in the chain, as if its ends were joined. */
static int chain_beside(const struct tree *t, bool after)
{
	uint64_t me = chain_key(t, t->me), least = UINT64_MAX;
	int beside = t->me;

	for (int i = 0; i < t->n; i++) {
		uint64_t key = chain_key(t, i), distance = after ? key - me : me - key;

		if (distance && distance < least) {
			least = distance;
			beside = i;
		}
	}
	return beside;
}

static void tree_add_chain(struct plan *p, const struct tree *t, int root, uint8_t *buf,
			   size_t len)
{
	int parent = t->me == root ? -1 : chain_beside(t, false), child = chain_beside(t, true);

	tree_add_segments(p, t, parent, &child, child != root, CHAIN_SEGMENT, buf, len);
}

/*
 * In a tree, the root's link carries the data log2 n times; in a chain, each link carries the data
 * once, but the last member waits for n segments. A segment of a chain is shorter than the longest
 * eager message (8 KiB), so it has no handshake. sim/vtime/SCALE.md compares trees and chains.
 */
static void tree_add_bcast(struct plan *p, const struct tree *t, int root, uint8_t *buf,
			   size_t len)
{
	int me = (t->me - root + t->n) % t->n, parent = -1, low = 1, n = 0;
	int children[31];

	if (t->me < 0 || !len)
		return;
	if (t->n >= CHAIN_MEMBERS && len / CHAIN_SHARE >= (size_t)t->n) {
		tree_add_chain(p, t, root, buf, len);
		return;
	}
	while (low < t->n && !(me & low))
		low *= 2;
	if (me)
		parent = (me - low + root) % t->n;
	for (int d = low / 2; d; d /= 2)
		if (me + d < t->n)
			children[n++] = (me + d + root) % t->n;
	tree_add_segments(p, t, parent, children, n, SEGMENT, buf, len);
}

/*
 * Reduce to position 0 of the tree. @acc has the caller's part. The returned buffer, which is
 * @acc or @other, has the result.
 */
static uint8_t *tree_add_reduce(struct plan *p, const struct tree *t, uint8_t *acc,
				uint8_t *other, size_t len)
{
	for (int d = 1; t->me >= 0 && d < t->n; d *= 2) {
		uint8_t *swap = acc;

		plan_round(p);
		if (t->me & d) {
			plan_send(p, tree_rank(t, t->me - d), acc, len);
			break;
		}
		if (t->me + d >= t->n)
			continue;
		plan_recv(p, tree_rank(t, t->me + d), other, len);
		plan_round(p);
		plan_fold(p, other, acc, len);
		acc = other;
		other = swap;
	}
	plan_round(p);
	return acc;
}

/* Reduce by recursive doubling, in the order of ranks. @t->n is a power of two. */
static uint8_t *tree_add_doubling(struct plan *p, const struct tree *t, uint8_t *acc,
				  uint8_t *other, size_t len)
{
	for (int d = 1; d < t->n; d *= 2) {
		int peer = tree_rank(t, t->me ^ d);
		uint8_t *swap = acc;

		plan_round(p);
		plan_send(p, peer, acc, len);
		plan_recv(p, peer, other, len);
		plan_round(p);
		if (t->me & d) {
			plan_fold(p, acc, other, len);
			continue;
		}
		plan_fold(p, other, acc, len);
		acc = other;
		other = swap;
	}
	plan_round(p);
	return acc;
}

/* ---- two levels: groups and leaders ---- */

static bool member_is_leader(const struct sci_team *t)
{
	return t->leads[t->group] == t->rank;
}

static void tree_build_barrier(struct sci_coll *c, struct plan *p)
{
	struct sci_team *t = c->team;
	struct tree tree = { t, t->leads, t->groups, member_is_leader(t) ? t->group : -1 };

	plan_near(p, t->near, COLL_BARRIER, 0);
	tree_add_barrier(p, &tree);
	plan_near(p, t->near, COLL_BARRIER, 0);
}

static void plan_add_near_bcast(struct plan *p, struct sci_team *near, int root, uint8_t *buf,
				size_t len)
{
	struct sci_coll *sub = plan_near(p, near, COLL_BCAST, root);

	if (!sub)
		return;
	sub->src = buf;
	sub->dst = buf;
	sub->len = len;
}

/* A root that is not the leader of its group broadcasts the data in its group first. */
static void tree_build_bcast(struct sci_coll *c, struct plan *p)
{
	struct sci_team *t = c->team;
	struct tree tree = { t, t->leads, t->groups, member_is_leader(t) ? t->group : -1 };
	int root_group = t->members[c->root].group;
	int near_root = sci_team_translate(t, c->root, t->near);
	bool early = near_root >= 0 && t->leads[root_group] != c->root;

	if (early)
		plan_add_near_bcast(p, t->near, near_root, c->dst, c->len);
	tree_add_bcast(p, &tree, root_group, c->dst, c->len);
	if (!early)
		plan_add_near_bcast(p, t->near, near_root >= 0 ? near_root : 0, c->dst, c->len);
}

/* Reduce the parts of the caller's group. Its leader gets the result in @acc. */
static void plan_add_near_reduce(struct sci_coll *c, struct plan *p, uint8_t *acc, size_t len)
{
	struct sci_coll *sub = plan_near(p, c->team->near, COLL_REDUCE, 0);

	if (!sub)
		return;
	sub->src = c->src;
	sub->dst = acc;
	sub->op = c->op;
	sub->n = len / c->op->size;
}

/* Reduce to rank 0. @everywhere: to all members of @tree if recursive doubling is possible */
static uint8_t *tree_reduce_to_first(struct sci_coll *c, struct plan *p, struct tree *tree,
				     bool everywhere)
{
	struct sci_team *t = c->team;
	size_t len = c->n * c->op->size;
	uint8_t *acc = plan_tmp(p, 0, len), *other = plan_tmp(p, 1, len);

	*tree = (struct tree){ t, NULL, t->size, t->rank };
	if (!acc || !other)
		return NULL;
	if (groups_in_order(t)) {
		*tree = (struct tree){ t, t->leads, t->groups, member_is_leader(t) ? t->group : -1 };
		plan_add_near_reduce(c, p, acc, len);
	} else {
		plan_copy(p, acc, c->src, len);
	}
	if (everywhere && tree->me >= 0 && !(tree->n & (tree->n - 1)) &&
	    len <= DOUBLING_MAX)
		return tree_add_doubling(p, tree, acc, other, len);
	return tree_add_reduce(p, tree, acc, other, len);
}

static void tree_build_reduce(struct sci_coll *c, struct plan *p)
{
	struct sci_team *t = c->team;
	size_t len = c->n * c->op->size;
	struct tree tree;
	uint8_t *acc = tree_reduce_to_first(c, p, &tree, false);
	int first = tree_rank(&tree, 0);

	if (!acc || !len)
		return;
	if (first == c->root && t->rank == first)
		plan_copy(p, c->dst, acc, len);
	else if (t->rank == first)
		plan_send(p, c->root, acc, len);
	else if (t->rank == c->root)
		plan_recv(p, first, c->dst, len);
}

static void tree_build_allreduce(struct sci_coll *c, struct plan *p)
{
	struct sci_team *t = c->team;
	size_t len = c->n * c->op->size;
	struct tree tree;
	uint8_t *acc = tree_reduce_to_first(c, p, &tree, true);

	if (!acc)
		return;
	if (tree.n & (tree.n - 1) || len > DOUBLING_MAX)
		tree_add_bcast(p, &tree, 0, acc, len);
	plan_round(p);
	if (tree.me >= 0)
		plan_copy(p, c->dst, acc, len);
	plan_round(p);
	if (tree.ranks)
		plan_add_near_bcast(p, t->near, 0, c->dst, len);
}

/* ---- scan ---- */

/* Return the member that scans for group @i, its last one; or, with one level, member @i. */
static int scan_rank(const struct sci_team *t, bool levels, int i)
{
	return levels ? t->sorted[t->starts[i + 1] - 1] : i;
}

/* Fold the data @acc of all lower positions into @below, by recursive doubling. */
static void scan_add_doubling(const struct sci_team *t, struct plan *p, bool levels, uint8_t *acc,
			      uint8_t *in, uint8_t *below, size_t len)
{
	int me = levels ? t->group : t->rank, n = levels ? t->groups : t->size;

	for (int d = 1; d < n; d *= 2) {
		plan_round(p);
		if (me + d < n)
			plan_send(p, scan_rank(t, levels, me + d), acc, len);
		if (me < d)
			continue;
		plan_recv(p, scan_rank(t, levels, me - d), in, len);
		plan_round(p);
		plan_fold(p, acc, in, len);
		if (d > 1)
			plan_fold(p, below, in, len);
		else
			plan_copy(p, below, in, len);
	}
	plan_round(p);
}

static void scan_add_one_level(struct sci_coll *c, struct plan *p, uint8_t *acc, uint8_t *in,
			       uint8_t *below)
{
	size_t len = c->n * c->op->size;

	plan_copy(p, acc, c->src, len);
	scan_add_doubling(c->team, p, false, acc, in, below, len);
	if (c->kind == COLL_SCAN)
		plan_copy(p, c->dst, acc, len);
	else if (c->team->rank)
		plan_copy(p, c->dst, below, len);
}

/*
 * Each group scans its parts. Then its last member, which has the result of the whole group, scans
 * the results of the groups, and broadcasts that of all lower groups to its group.
 */
static void scan_add_two_levels(struct sci_coll *c, struct plan *p, uint8_t *acc, uint8_t *in,
				uint8_t *below)
{
	struct sci_team *t = c->team, *near = t->near;
	size_t len = c->n * c->op->size;
	bool last = near->rank == near->size - 1, inclusive = c->kind == COLL_SCAN;
	struct sci_coll *sub;

	if (last && !inclusive)
		plan_copy(p, acc, c->src, len);
	sub = plan_near(p, near, c->kind, 0);
	if (!sub)
		return;
	sub->src = c->src;
	sub->dst = c->dst;
	sub->op = c->op;
	sub->n = c->n;
	if (last && inclusive)
		plan_copy(p, acc, c->dst, len);
	else if (last && near->rank)
		plan_fold(p, acc, c->dst, len);
	if (last)
		scan_add_doubling(t, p, true, acc, in, below, len);
	if (!t->group)
		return;
	plan_add_near_bcast(p, near, near->size - 1, below, len);
	if (inclusive || near->rank)
		plan_fold(p, c->dst, below, len);
	else
		plan_copy(p, c->dst, below, len);
}

static void tree_build_scan(struct sci_coll *c, struct plan *p)
{
	size_t len = c->n * c->op->size;
	uint8_t *acc = plan_tmp(p, 0, len), *in = plan_tmp(p, 1, len);
	uint8_t *below = plan_tmp(p, 2, len);

	if (p->error)
		return;
	if (c->team->groups < c->team->size && groups_in_order(c->team))
		scan_add_two_levels(c, p, acc, in, below);
	else
		scan_add_one_level(c, p, acc, in, below);
}

/* ---- reduce-scatter ---- */

/* Return the length of the parts of group @g, and set *@at to their offset. */
static size_t reduce_scatter_block(const struct sci_coll *c, int g, size_t *at)
{
	const struct sci_team *t = c->team;
	size_t elements = 0;

	if (!c->lens) {
		*at = (size_t)t->starts[g] * c->len;
		return (size_t)group_size(t, g) * c->len;
	}
	*at = coll_offset(c->lens, NULL, t->starts[g]) * c->op->size;
	for (int i = t->starts[g]; i < t->starts[g + 1]; i++)
		elements += c->lens[i];
	return elements * c->op->size;
}

/*
 * Each leader sends each other leader its block of the group's result @acc. Return the leader's own
 * block of the result, which is in @acc or in @blocks.
 */
static uint8_t *reduce_scatter_add_pairs(struct sci_coll *c, struct plan *p, uint8_t *acc,
					 uint8_t *blocks)
{
	struct sci_team *t = c->team;
	size_t at, len = reduce_scatter_block(c, t->group, &at);
	uint8_t *own = acc + at, *result = NULL;

	for (int i = 1; i < t->groups; i++) {
		int to = (t->group + i) % t->groups, from = (t->group - i + t->groups) % t->groups;
		size_t out = reduce_scatter_block(c, to, &at);

		if (out)
			plan_send(p, t->leads[to], acc + at, out);
		if (len)
			plan_recv(p, t->leads[from], blocks + (size_t)from * len, len);
		if (!(i % PAIRS))
			plan_round(p);
	}
	plan_round(p);
	for (int g = t->groups - 1; g >= 0; g--) {
		uint8_t *block = g == t->group ? own : blocks + (size_t)g * len;

		if (result)
			plan_fold(p, result, block, len);
		else
			result = block;
	}
	return result;
}

/* The leaders exchange blocks in pairs: no leader has the whole result. */
static void reduce_scatter_add_exchange(struct sci_coll *c, struct plan *p, const struct scatter *s)
{
	struct sci_team *t = c->team;
	size_t at, len = c->n * c->op->size;
	size_t blocks_len = reduce_scatter_block(c, t->group, &at) * (size_t)t->groups;
	uint8_t *acc = plan_tmp(p, 0, len), *blocks = plan_tmp(p, 1, blocks_len);

	if (!acc || !blocks)
		return;
	plan_add_near_reduce(c, p, acc, len);
	if (member_is_leader(t))
		blocks = reduce_scatter_add_pairs(c, p, acc, blocks);
	plan_near_scatter(c, p, s, blocks);
}

/* Reduce short data to rank 0, which scatters the result. */
static void tree_build_reduce_scatter(struct sci_coll *c, struct plan *p)
{
	struct sci_team *t = c->team;
	struct scatter s = {
		.dst = c->dst, .len = c->len, .unit = c->op->size, .lens = c->lens, .known = true,
	};
	size_t block = c->n * c->op->size / (size_t)t->groups;
	struct tree tree;

	if (groups_in_order(t) && (t->groups == 2 || block >= EXCHANGE_MIN)) {
		reduce_scatter_add_exchange(c, p, &s);
		return;
	}
	s.src = tree_reduce_to_first(c, p, &tree, false);
	if (s.src)
		plan_scatter(c, p, &s);
}

/* ---- allgather ---- */

/* Gather by Bruck's algorithm in plan_tmp() 0, which begins with the caller's part. */
static void allgather_add_bruck(struct sci_coll *c, struct plan *p)
{
	struct sci_team *t = c->team;
	size_t len = c->len;
	uint8_t *tmp = plan_tmp(p, 0, len * (size_t)t->size);

	if (!tmp)
		return;
	plan_copy(p, tmp, c->src, len);
	for (int have = 1; have < t->size; have *= 2) {
		int n = have < t->size - have ? have : t->size - have;

		plan_round(p);
		plan_send(p, (t->rank - have + t->size) % t->size, tmp, (size_t)n * len);
		plan_recv(p, (t->rank + have) % t->size, tmp + (size_t)have * len,
			  (size_t)n * len);
	}
	plan_round(p);
	for (int i = 0; i < t->size; i++)
		plan_copy(p, c->dst + (size_t)((t->rank + i) % t->size) * len,
			  tmp + (size_t)i * len, len);
}

static void allgather_add_ring(struct sci_coll *c, struct plan *p)
{
	struct sci_team *t = c->team;
	int next = (t->rank + 1) % t->size, before = (t->rank - 1 + t->size) % t->size;

	plan_copy(p, c->dst + part_at(c, t->rank), c->src, part_len(c, t->rank));
	for (int i = 0; i < t->size - 1; i++) {
		int out = (t->rank - i + t->size) % t->size;
		int in = (t->rank - i - 1 + 2 * t->size) % t->size;

		plan_round(p);
		if (part_len(c, out))
			plan_send(p, next, c->dst + part_at(c, out), part_len(c, out));
		if (part_len(c, in))
			plan_recv(p, before, c->dst + part_at(c, in), part_len(c, in));
	}
}

/* Return the length of the block of group @g, and set *@at to its offset in @all. */
static size_t allgather_block(const struct sci_coll *c, int g, size_t *at)
{
	const struct sci_team *t = c->team;
	size_t len = 0;

	*at = 0;
	for (int i = 0; i < t->starts[g]; i++)
		*at += part_len(c, t->sorted[i]);
	for (int i = t->starts[g]; i < t->starts[g + 1]; i++)
		len += part_len(c, t->sorted[i]);
	return len;
}

/* Gather the parts of the caller's group in its block in @all. */
static void allgather_add_near(struct sci_coll *c, struct plan *p, uint8_t *all)
{
	struct sci_team *t = c->team;
	const int *group = t->sorted + t->starts[t->group];
	struct sci_coll *sub = plan_near(p, t->near, COLL_ALLGATHER, 0);
	size_t *lens = NULL, at;

	if (c->lens)
		lens = (void *)plan_tmp(p, 1, (size_t)t->near->size * sizeof(*lens));
	if (!sub || p->error)
		return;
	for (int i = 0; lens && i < t->near->size; i++)
		lens[i] = c->lens[group[i]];
	allgather_block(c, t->group, &at);
	sub->src = c->src;
	sub->dst = all + at;
	sub->len = part_len(c, t->rank);
	sub->lens = lens;
}

/* The leaders pass the blocks of @all on in a ring. */
static void allgather_add_leaders(struct sci_coll *c, struct plan *p, uint8_t *all)
{
	struct sci_team *t = c->team;
	int n = t->groups, next = t->leads[(t->group + 1) % n];
	int before = t->leads[(t->group - 1 + n) % n];

	for (int i = 0; i < n - 1; i++) {
		int out = (t->group - i + n) % n, in = (t->group - i - 1 + 2 * n) % n;
		size_t at, len = allgather_block(c, out, &at);

		plan_round(p);
		if (len)
			plan_send(p, next, all + at, len);
		len = allgather_block(c, in, &at);
		if (len)
			plan_recv(p, before, all + at, len);
	}
}

/*
 * Each group gathers its parts. The leaders exchange the parts of their groups. Then each leader
 * broadcasts all parts to its group. The parts are in the order of t->sorted, which is often that
 * of the result.
 */
static void allgather_add_two_levels(struct sci_coll *c, struct plan *p)
{
	struct sci_team *t = c->team;
	bool in_place = groups_in_order(t) && !(c->lens && c->offsets);
	size_t at = 0, len = 0;
	uint8_t *all;

	for (int i = 0; i < t->size; i++)
		len += part_len(c, i);
	all = in_place ? c->dst : plan_tmp(p, 0, len);
	if (!all || !len)
		return;
	allgather_add_near(c, p, all);
	if (member_is_leader(t))
		allgather_add_leaders(c, p, all);
	plan_add_near_bcast(p, t->near, 0, all, len);
	for (int i = 0; !in_place && i < t->size; i++) {
		int rank = t->sorted[i];

		plan_copy(p, c->dst + part_at(c, rank), all + at, part_len(c, rank));
		at += part_len(c, rank);
	}
}

static void tree_build_allgather(struct sci_coll *c, struct plan *p)
{
	const struct sci_team *t = c->team;

	if (!c->len && !c->lens)
		return;
	if (t->groups < t->size)
		allgather_add_two_levels(c, p);
	else if (!c->lens && c->len <= BRUCK_MAX)
		allgather_add_bruck(c, p);
	else
		allgather_add_ring(c, p);
}

void plan_build(struct sci_coll *c, struct plan *p)
{
	switch (c->kind) {
	case COLL_BARRIER:
		tree_build_barrier(c, p);
		break;
	case COLL_BCAST:
		tree_build_bcast(c, p);
		break;
	case COLL_REDUCE:
		tree_build_reduce(c, p);
		break;
	case COLL_ALLREDUCE:
		tree_build_allreduce(c, p);
		break;
	case COLL_REDUCE_SCATTER:
		tree_build_reduce_scatter(c, p);
		break;
	case COLL_SCAN:
	case COLL_EXSCAN:
		tree_build_scan(c, p);
		break;
	case COLL_GATHER:
	case COLL_GATHERV:
		plan_gather(c, p);
		break;
	case COLL_ALLGATHER:
		tree_build_allgather(c, p);
		break;
	case COLL_SCATTER:
	case COLL_SCATTERV:
		plan_scatter(c, p, &(struct scatter){
			.root = c->root, .src = c->src, .dst = c->dst, .len = c->len, .unit = 1,
			.lens = c->lens, .offsets = c->offsets, .known = c->kind == COLL_SCATTER,
		});
		break;
	default:
		plan_alltoall(c, p);
	}
}
