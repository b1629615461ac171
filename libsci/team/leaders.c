// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: gathers, scatters and all-to-alls through messages
 *
 * Short parts have two levels: the leader of each group gathers or scatters the parts of its group
 * through shared memory, and one message carries all parts between two groups. The root is the
 * leader of its own group. Longer parts go from their sender to their receiver directly.
 *
 * The limits come from the price of a message and of a copy through shared memory:
 *	SCI_TEAM_MEMORY=node sci run -n 2 --nodes N coll-sci gather_us/2 8 1024 8192
 * takes 0.26, 0.52 and 1.6 us with a message (N is 2), and 0.18, 0.60 and 2.1 us through shared
 * memory (N is 1); scripts/bench-coll builds coll-sci. So a message costs as much as forwarding
 * 1 KiB, which a gather or scatter does once, and an all-to-all twice.
 *
 * In a call with lengths, each part is short or long by itself, and both its sender and its
 * receiver know its length. Leaders learn the lengths of their members first.
 *
 * Blocks are in the order of t->sorted: by group, and in a group by rank.
 */

#include "libsci/team/plan.h"

#include <assert.h>

#define FORWARD_MAX	1024u		/* longest part of a gather or scatter through leaders */
#define EXCHANGE_MAX	512u		/* parts of an all-to-all through leaders, see exchange_max() */

/*
 * An all-to-all by Bruck's algorithm has fewer messages than one in pairs, but more bytes. In
 * virtual time, 16 nodes take 20 us with it for parts of 8 bytes and 37 for 32, and in pairs 26 us
 * for either: see sim/vtime/SCALE.md.
 */
#define BRUCK_MAX	8u		/* longest part, in bytes */
#define BRUCK_MEMBERS	16		/* fewest members, each alone on its node */

static bool team_has_levels(const struct sci_team *t)
{
	return t->groups < t->size;
}

/* Return @len if a part of a gather or scatter goes through leaders, else 0. */
static size_t short_len(const struct sci_team *t, size_t len)
{
	return team_has_levels(t) && len <= FORWARD_MAX ? len : 0;
}

static bool in_root_group(const struct sci_team *t, int root)
{
	return t->group == t->members[root].group;
}

/* Return the leader of the caller's group, as a rank of the near team. */
static int near_leader(const struct sci_team *t, int root)
{
	return in_root_group(t, root) ? sci_team_translate(t, root, t->near) : 0;
}

static int near_to_rank(const struct sci_team *t, int near)
{
	return t->sorted[t->starts[t->group] + near];
}

/* ---- lengths of the parts of the caller's group ---- */

/* The members @total and @of are set in the leader only. */
struct lens {
	size_t mine;			/* length of the caller's part; 0 if it is long */
	size_t total;
	size_t of[];			/* by rank of the near team */
};

static struct lens *lens_new(const struct sci_team *t, struct plan *p, size_t mine)
{
	size_t n = (size_t)group_size(t, t->group);
	struct lens *l = (void *)plan_tmp(p, 2, sizeof(*l) + n * sizeof(l->of[0]));

	p->state = l;
	if (!l)
		return NULL;
	l->mine = mine;
	l->total = mine * n;
	return l;
}

static void lens_sum(struct sci_coll *c)
{
	struct lens *l = c->plan->state;

	l->total = 0;
	for (int i = 0; i < group_size(c->team, c->team->group); i++) {
		if (l->of[i] > FORWARD_MAX)	/* the data must fit the leader's memory */
			l->of[i] = FORWARD_MAX;
		l->total += l->of[i];
	}
}

/* Send all lengths to the leader. */
static void lens_gather(const struct sci_team *t, struct plan *p, struct lens *l)
{
	struct sci_coll *sub = plan_near(p, t->near, COLL_GATHER, 0);

	if (!sub)
		return;
	sub->src = (void *)&l->mine;
	sub->dst = (void *)l->of;
	sub->len = sizeof(l->mine);
	if (!t->near->rank)
		plan_call(p, lens_sum);
}

/* ---- gather ---- */

/* Gather the short parts of the caller's group in the leader's @data. */
static void near_gather(struct sci_coll *c, struct plan *p, struct lens *l, uint8_t *data)
{
	struct sci_team *t = c->team;
	bool lens = c->kind == COLL_GATHERV;
	struct sci_coll *sub;

	if (lens && !in_root_group(t, c->root))
		lens_gather(t, p, l);
	sub = plan_near(p, t->near, lens ? COLL_GATHERV : COLL_GATHER, near_leader(t, c->root));
	if (!sub)
		return;
	sub->src = c->src;
	sub->dst = data;
	sub->len = l->mine;
	sub->lens = lens ? l->of : NULL;
}

/* Return the length of the block of @group. Context: the root. */
static size_t gather_block(const struct sci_coll *c, int group)
{
	const struct sci_team *t = c->team;
	size_t bytes = 0;

	for (int i = t->starts[group]; i < t->starts[group + 1]; i++)
		bytes += short_len(t, part_len(c, t->sorted[i]));
	return bytes;
}

/* Receive one block from each other group, and the long parts. */
static void gather_add_receives(struct sci_coll *c, struct plan *p, uint8_t *data)
{
	struct sci_team *t = c->team;

	for (int g = 0; g < t->groups; g++) {
		size_t len = gather_block(c, g);

		if (len && g != t->group)
			plan_recv(p, t->leads[g], data, len);
		data += len;
	}
	for (int i = 0; i < t->size; i++) {
		size_t len = part_len(c, i);

		if (i == c->root && !short_len(t, len))
			plan_copy(p, c->dst + part_at(c, i), c->src, len);
		else if (len && !short_len(t, len))
			plan_recv(p, i, c->dst + part_at(c, i), len);
	}
}

static void gather_add_root(struct sci_coll *c, struct plan *p, struct lens *l, bool levels)
{
	struct sci_team *t = c->team;
	size_t bytes = 0, own = 0;
	uint8_t *data;

	for (int g = 0; g < t->groups; g++) {
		own = g == t->group ? bytes : own;
		bytes += gather_block(c, g);
	}
	data = plan_tmp(p, 3, bytes);
	if (!data)
		return;
	for (int i = 0; i < group_size(t, t->group); i++)
		l->of[i] = short_len(t, part_len(c, near_to_rank(t, i)));
	if (levels)
		near_gather(c, p, l, data + own);
	gather_add_receives(c, p, data);
	plan_round(p);
	for (int i = 0; i < t->size; i++) {
		size_t len = short_len(t, part_len(c, t->sorted[i]));

		plan_copy(p, c->dst + part_at(c, t->sorted[i]), data, len);
		data += len;
	}
}

static void gather_add_leader(struct sci_coll *c, struct plan *p, struct lens *l)
{
	struct sci_team *t = c->team;
	bool lens = c->kind == COLL_GATHERV;
	uint8_t *data = plan_tmp(p, 3, (size_t)group_size(t, t->group) *
				       (lens ? FORWARD_MAX : c->len));

	if (!data)
		return;
	near_gather(c, p, l, data);
	if (lens)
		plan_send_later(p, c->root, data, &l->total);
	else
		plan_send(p, c->root, data, l->total);
}

void plan_gather(struct sci_coll *c, struct plan *p)
{
	struct sci_team *t = c->team;
	size_t mine = short_len(t, c->len);
	bool levels = c->kind == COLL_GATHERV ? team_has_levels(t) : mine != 0;
	struct lens *l = lens_new(t, p, mine);

	if (!l)
		return;
	if (t->rank == c->root) {
		gather_add_root(c, p, l, levels);
		return;
	}
	if (levels && t->near->rank == near_leader(t, c->root))
		gather_add_leader(c, p, l);
	else if (levels)
		near_gather(c, p, l, NULL);
	if (c->len && !mine)
		plan_send(p, c->root, c->src, c->len);
}

/* ---- scatter ---- */

static size_t scatter_len(const struct scatter *s, int rank)
{
	return s->lens ? s->lens[rank] * s->unit : s->len;
}

static size_t scatter_at(const struct scatter *s, int rank)
{
	return s->offsets ? s->offsets[rank] :
	       s->lens ? coll_offset(s->lens, NULL, rank) * s->unit : (size_t)rank * s->len;
}

/* Scatter the leader's @data among the caller's group. */
static void near_scatter(const struct sci_team *t, struct plan *p, const struct scatter *s,
			 const struct lens *l, const uint8_t *data)
{
	struct sci_coll *sub = plan_near(p, t->near, s->lens || !s->known ? COLL_SCATTERV :
					 COLL_SCATTER, near_leader(t, s->root));

	if (!sub)
		return;
	sub->src = data;
	sub->dst = s->dst;
	sub->len = l->mine;
	sub->lens = sub->kind == COLL_SCATTERV ? l->of : NULL;
}

void plan_near_scatter(struct sci_coll *c, struct plan *p, const struct scatter *s,
		       const uint8_t *data)
{
	const struct sci_team *t = c->team;
	struct lens *l = lens_new(t, p, s->len);

	if (!l)
		return;
	for (int i = 0; i < group_size(t, t->group); i++)
		l->of[i] = scatter_len(s, near_to_rank(t, i));
	near_scatter(t, p, s, l, data);
}

/* Set the lengths of the caller's group. */
static void scatter_lens_set(const struct sci_team *t, const struct scatter *s, struct lens *l)
{
	l->total = 0;
	for (int i = 0; i < group_size(t, t->group); i++) {
		l->of[i] = short_len(t, scatter_len(s, near_to_rank(t, i)));
		l->total += l->of[i];
	}
}

/* Pack the short parts into @data, by groups. Return the block of the caller's group. */
static const uint8_t *scatter_add_copies(const struct sci_team *t, struct plan *p,
					 const struct scatter *s, uint8_t *data)
{
	const uint8_t *own = data;

	for (int i = 0; i < t->size; i++) {
		int rank = t->sorted[i];
		size_t len = short_len(t, scatter_len(s, rank));

		own = i == t->starts[t->group] ? data : own;
		plan_copy(p, data, s->src + scatter_at(s, rank), len);
		data += len;
	}
	return own;
}

static void scatter_add_root(const struct sci_team *t, struct plan *p, const struct scatter *s,
			     struct lens *l, bool levels)
{
	size_t bytes = 0;
	const uint8_t *own;
	uint8_t *data;

	for (int i = 0; i < t->size; i++)
		bytes += short_len(t, scatter_len(s, i));
	data = plan_tmp(p, 3, bytes);
	if (!data)
		return;
	scatter_lens_set(t, s, l);
	own = scatter_add_copies(t, p, s, data);
	for (int g = 0; g < t->groups; g++) {
		size_t len = 0;

		for (int i = t->starts[g]; i < t->starts[g + 1]; i++)
			len += short_len(t, scatter_len(s, t->sorted[i]));
		if (len && g != t->group)
			plan_send(p, t->leads[g], data, len);
		data += len;
	}
	for (int i = 0; i < t->size; i++) {
		size_t len = scatter_len(s, i);

		if (short_len(t, len))
			continue;
		if (i == s->root)
			plan_copy(p, s->dst, s->src + scatter_at(s, i), len);
		else if (len)
			plan_send(p, i, s->src + scatter_at(s, i), len);
	}
	if (levels)
		near_scatter(t, p, s, l, own);
}

/* Receive the block of the caller's group. Return it. */
static uint8_t *scatter_add_leader(const struct sci_team *t, struct plan *p,
				   const struct scatter *s, struct lens *l)
{
	uint8_t *data;

	if (s->lens)
		scatter_lens_set(t, s, l);
	data = plan_tmp(p, 3, s->known ? l->total :
			(size_t)group_size(t, t->group) * FORWARD_MAX);
	if (!data)
		return NULL;
	if (!s->known)
		plan_recv_later(p, s->root, data, &l->total);
	else if (l->total)
		plan_recv(p, s->root, data, l->total);
	return data;
}

void plan_scatter(struct sci_coll *c, struct plan *p, const struct scatter *s)
{
	const struct sci_team *t = c->team;
	size_t mine = short_len(t, s->len);
	bool levels = s->lens || !s->known ? team_has_levels(t) : mine != 0;
	struct lens *l = lens_new(t, p, mine);
	uint8_t *data = NULL;

	if (!l)
		return;
	if (t->rank == s->root) {
		scatter_add_root(t, p, s, l, levels);
		return;
	}
	if (levels && !in_root_group(t, s->root)) {
		if (!s->known)
			lens_gather(t, p, l);
		if (!t->near->rank)
			data = scatter_add_leader(t, p, s, l);
	}
	if (s->len && !mine)
		plan_recv(p, s->root, s->dst, s->len);
	if (levels)
		near_scatter(t, p, s, l, data);
}

/* ---- all-to-all ---- */

/*
 * Return the longest part that goes through leaders. A leader copies the parts of all members of its
 * group, which could send them at the same time. So the limit is for a part of each member.
 */
static size_t exchange_max(const struct sci_team *t)
{
	return EXCHANGE_MAX * (size_t)t->groups / (size_t)t->size;
}

/* Return @len if a part of this length goes through leaders, else 0. */
static size_t exchange_short(const struct sci_team *t, size_t len)
{
	return team_has_levels(t) && len <= exchange_max(t) ? len : 0;
}

/*
 * State of an all-to-all through leaders. A member has a *row*: parts of at most @room bytes in the
 * order of t->sorted. The leader has the rows of its group.
 * @lens: of the caller: the short lengths of its parts, to send and then to receive, in that order;
 *	NULL: all parts have @room bytes
 * @table: in the leader: @lens of all members of the group
 * @out, @in: in the leader: blocks to and from each group, each with room for all its parts
 * @out_lens, @in_lens: their lengths
 * @near_lens, @near_offsets: the lengths and offsets of @rows
 */
struct exchange {
	size_t room;
	size_t *lens, *table;
	size_t *out_lens, *in_lens, *near_lens, *near_offsets;
	uint8_t *row, *rows, *out, *in;
};

/* Return the length of a part of member @near, at @i in t->sorted. @in: to receive, else to send */
static size_t exchange_len(const struct sci_team *t, const struct exchange *x, int near, int i,
			   bool in)
{
	size_t n = (size_t)t->size;

	return x->table ? x->table[(size_t)near * 2 * n + (in ? n : 0) + (size_t)i] : x->room;
}

static uint8_t *exchange_block(const struct sci_team *t, const struct exchange *x, bool in, int g)
{
	bool mine = g == t->group;	/* this block stays where it is */

	return (in && !mine ? x->in : x->out) +
	       (size_t)t->starts[g] * (size_t)group_size(t, t->group) * x->room;
}

/* Return the length of the block to or from group @g. */
static size_t exchange_block_len(const struct sci_team *t, const struct exchange *x, bool in, int g)
{
	size_t len = 0;

	for (int near = 0; near < group_size(t, t->group); near++)
		for (int i = t->starts[g]; i < t->starts[g + 1]; i++)
			len += exchange_len(t, x, near, i, in);
	return len;
}

/* Set the lengths of all blocks and rows. The leader has learnt the lengths of its members. */
static void exchange_lens_set(struct sci_coll *c)
{
	const struct sci_team *t = c->team;
	struct exchange *x = c->plan->state;
	size_t table = x->table ? 2 * (size_t)group_size(t, t->group) * (size_t)t->size : 0;

	for (size_t i = 0; i < table; i++)
		if (x->table[i] > x->room)	/* the data must fit the leader's memory */
			x->table[i] = x->room;
	for (int g = 0; g < t->groups; g++) {
		x->out_lens[g] = g == t->group ? 0 : exchange_block_len(t, x, false, g);
		x->in_lens[g] = g == t->group ? 0 : exchange_block_len(t, x, true, g);
	}
	for (int near = 0; near < group_size(t, t->group); near++) {
		x->near_lens[near] = 0;
		for (int i = 0; i < t->size; i++)
			x->near_lens[near] += exchange_len(t, x, near, i, false);
	}
}

/* Copy the rows of the group into blocks. In a block, the parts of one sender are together. */
static void exchange_pack(struct sci_coll *c)
{
	const struct sci_team *t = c->team;
	const struct exchange *x = c->plan->state;

	for (int near = 0; near < group_size(t, t->group); near++)
		x->near_lens[near] = 0;
	for (int g = 0; g < t->groups; g++) {
		uint8_t *to = exchange_block(t, x, false, g);

		for (int near = 0; near < group_size(t, t->group); near++) {
			size_t len = 0;

			for (int i = t->starts[g]; i < t->starts[g + 1]; i++)
				len += exchange_len(t, x, near, i, false);
			memcpy(to, x->rows + x->near_offsets[near] + x->near_lens[near], len);
			x->near_lens[near] += len;
			to += len;
		}
	}
}

/* Copy the blocks from all groups into the rows of the receivers. */
static void exchange_unpack(struct sci_coll *c)
{
	const struct sci_team *t = c->team;
	const struct exchange *x = c->plan->state;
	const uint8_t *from = NULL;

	for (int near = 0; near < group_size(t, t->group); near++)
		x->near_lens[near] = 0;
	for (int i = 0, g = 0; i < t->size; i++) {
		if (i == t->starts[g])
			from = exchange_block(t, x, true, g++);
		for (int near = 0; near < group_size(t, t->group); near++) {
			size_t len = exchange_len(t, x, near, i, true);

			assert(from);	/* the first group starts at rank 0 */
			memcpy(x->rows + x->near_offsets[near] + x->near_lens[near], from, len);
			x->near_lens[near] += len;
			from += len;
		}
	}
}

/* Allocate the leader's part of the state. */
static bool exchange_add_leader(const struct sci_team *t, struct plan *p, struct exchange *x)
{
	size_t n = (size_t)group_size(t, t->group), rows = n * (size_t)t->size * x->room;
	size_t table = x->lens ? 2 * n * (size_t)t->size : 0;
	size_t *words = (void *)plan_tmp(p, 1, (table + 2 * n + 2 * (size_t)t->groups) *
					       sizeof(*words));

	x->rows = plan_tmp(p, 2, 3 * rows);
	if (!words || !x->rows)
		return false;
	x->out = x->rows + rows;
	x->in = x->out + rows;
	x->near_lens = words;
	x->near_offsets = words + n;
	x->out_lens = words + 2 * n;
	x->in_lens = x->out_lens + t->groups;
	x->table = table ? x->in_lens + t->groups : NULL;
	for (size_t i = 0; i < n; i++)
		x->near_offsets[i] = i * (size_t)t->size * x->room;
	return true;
}

static size_t out_len(const struct sci_coll *c, int rank)
{
	return c->src_lens ? c->src_lens[rank] : c->len;
}

static size_t out_at(const struct sci_coll *c, int rank)
{
	return c->src_lens ? coll_offset(c->src_lens, c->src_offsets, rank) :
			     (size_t)rank * c->len;
}


/* Allocate the state, and set the lengths of the caller's parts. */
static struct exchange *exchange_new(struct sci_coll *c, struct plan *p)
{
	const struct sci_team *t = c->team;
	size_t n = (size_t)t->size, lens = c->lens ? 2 * n : 0;
	struct exchange *x = (void *)plan_tmp(p, 0, sizeof(*x) + lens * sizeof(*x->lens));

	p->state = x;
	if (!x)
		return NULL;
	memset(x, 0, sizeof(*x));
	x->room = c->lens ? exchange_max(t) : c->len;
	if (c->lens)
		x->lens = (size_t *)(void *)(x + 1);
	for (int i = 0; c->lens && i < t->size; i++) {
		x->lens[i] = exchange_short(t, out_len(c, t->sorted[i]));
		x->lens[t->size + i] = exchange_short(t, part_len(c, t->sorted[i]));
	}
	if (c->lens || !groups_in_order(t)) {
		x->row = plan_tmp(p, 3, n * x->room);
		if (!x->row)
			return NULL;
	}
	return !t->near->rank && !exchange_add_leader(t, p, x) ? NULL : x;
}

/*
 * Add copies between the caller's row and its buffers. Return the length of the row. @in: from the
 * row
 */
static size_t exchange_add_row(struct sci_coll *c, struct plan *p, const struct exchange *x, bool in)
{
	const struct sci_team *t = c->team;
	size_t at = 0;

	for (int i = 0; i < t->size; i++) {
		int rank = t->sorted[i];
		size_t len = exchange_short(t, in ? part_len(c, rank) : out_len(c, rank));

		if (x->row && in)
			plan_copy(p, c->dst + part_at(c, rank), x->row + at, len);
		else if (x->row)
			plan_copy(p, x->row + at, c->src + out_at(c, rank), len);
		at += len;
	}
	return at;
}

/* Add a call of the near team that moves @len bytes between the caller's and the leader's memory. */
static void exchange_add_near(const struct sci_team *t, struct plan *p, enum coll_kind kind,
			      const void *src, void *dst, size_t len)
{
	const struct exchange *x = p->state;
	struct sci_coll *sub = plan_near(p, t->near, kind, 0);

	if (!sub)
		return;
	sub->src = src;
	sub->dst = dst;
	sub->len = len;
	if (kind == COLL_GATHERV || kind == COLL_SCATTERV) {
		sub->lens = x->near_lens;
		sub->offsets = x->near_offsets;
	}
}

/* Exchange blocks with the leaders of all other groups. */
static void exchange_add_blocks(const struct sci_team *t, struct plan *p)
{
	const struct exchange *x = p->state;

	plan_call(p, exchange_pack);
	for (int i = 1; i < t->groups; i++) {
		int to = (t->group + i) % t->groups;
		int from = (t->group - i + t->groups) % t->groups;

		plan_send_later(p, t->leads[to], exchange_block(t, x, false, to), &x->out_lens[to]);
		plan_recv_later(p, t->leads[from], exchange_block(t, x, true, from),
				&x->in_lens[from]);
		if (!(i % PAIRS))
			plan_round(p);
	}
	plan_round(p);
	plan_call(p, exchange_unpack);
}

static void alltoall_add_levels(struct sci_coll *c, struct plan *p)
{
	struct sci_team *t = c->team;
	struct exchange *x = exchange_new(c, p);
	bool leader = !t->near->rank;
	size_t len;

	if (!x)
		return;
	if (c->lens)
		exchange_add_near(t, p, COLL_GATHER, x->lens, x->table,
				  2 * (size_t)t->size * sizeof(*x->lens));
	if (leader)
		plan_call(p, exchange_lens_set);
	len = exchange_add_row(c, p, x, false);
	exchange_add_near(t, p, c->lens ? COLL_GATHERV : COLL_GATHER, x->row ? x->row : c->src,
			  x->rows, len);
	if (leader)
		exchange_add_blocks(t, p);
	len = 0;
	for (int i = 0; i < t->size; i++)
		len += exchange_short(t, part_len(c, i));
	exchange_add_near(t, p, c->lens ? COLL_SCATTERV : COLL_SCATTER, x->rows,
			  x->row ? x->row : c->dst, len);
	exchange_add_row(c, p, x, true);
	plan_round(p);
}

/* Send and receive the parts that do not go through leaders. */
static void alltoall_add_direct(struct sci_coll *c, struct plan *p)
{
	struct sci_team *t = c->team;

	for (int i = 0; i < t->size; i++) {
		int to = (t->rank + i) % t->size;
		int from = (t->rank - i + t->size) % t->size;
		size_t out = out_len(c, to), in = part_len(c, from);

		if (!i && !exchange_short(t, out))
			plan_copy(p, c->dst + part_at(c, to), c->src + out_at(c, to), out);
		if (!i)
			continue;
		if (out && !exchange_short(t, out))
			plan_send(p, to, c->src + out_at(c, to), out);
		if (in && !exchange_short(t, in))
			plan_recv(p, from, c->dst + part_at(c, from), in);
		if (!(i % PAIRS))
			plan_round(p);
	}
}

/* Return the bytes of the run of blocks at @i in the round of bit @k of alltoall_add_bruck(). */
static size_t bruck_run(const struct sci_coll *c, int i, int k)
{
	int n = c->team->size - i;

	return (size_t)(n < k ? n : k) * c->len;
}

/*
 * Exchange short parts by Bruck's algorithm, in log2 n rounds. At the start, block i is for the
 * rank that is i higher. The round of bit k sends the blocks whose index i has this bit to the rank
 * that is k higher. At the end, block i is from the rank that is i lower.
 */
static void alltoall_add_bruck(struct sci_coll *c, struct plan *p)
{
	int n = c->team->size, me = c->team->rank;
	size_t len = c->len, half = (size_t)n / 2 * len;
	uint8_t *blocks = plan_tmp(p, 0, (size_t)n * len);
	uint8_t *out = plan_tmp(p, 1, half), *in = plan_tmp(p, 2, half);

	if (p->error)
		return;
	plan_copy(p, blocks, c->src + (size_t)me * len, (size_t)(n - me) * len);
	plan_copy(p, blocks + (size_t)(n - me) * len, c->src, (size_t)me * len);
	for (int k = 1; k < n; k *= 2) {
		size_t at = 0;

		for (int i = k; i < n; at += bruck_run(c, i, k), i += 2 * k)
			plan_copy(p, out + at, blocks + (size_t)i * len, bruck_run(c, i, k));
		plan_send(p, (me + k) % n, out, at);
		plan_recv(p, (me - k + n) % n, in, at);
		plan_round(p);
		at = 0;
		for (int i = k; i < n; at += bruck_run(c, i, k), i += 2 * k)
			plan_copy(p, blocks + (size_t)i * len, in + at, bruck_run(c, i, k));
	}
	for (int i = 0; i < n; i++)
		plan_copy(p, c->dst + (size_t)((me - i + n) % n) * len, blocks + (size_t)i * len,
			  len);
}

void plan_alltoall(struct sci_coll *c, struct plan *p)
{
	const struct sci_team *t = c->team;

	if (!c->lens && c->len && c->len <= BRUCK_MAX && t->groups == t->size &&
	    t->size >= BRUCK_MEMBERS) {
		alltoall_add_bruck(c, p);
		return;
	}
	if (c->lens ? team_has_levels(t) : exchange_short(t, c->len) != 0)
		alltoall_add_levels(c, p);
	alltoall_add_direct(c, p);
}
