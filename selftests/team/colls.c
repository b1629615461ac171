// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Collective calls with random sizes, roots, types and operations. One process computes the
 * expected results.
 */

#include <sci/team.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libsci/base/host.h"
#include "selftests/ranks.h"
#include "selftests/remote.h"

#define RANKS	16
#define MOST	(300u << 10)		/* bytes per member: several chunks */

/* Settings are constants: ranks on other machines find them at the same address. */
struct setting {
	unsigned int n;
	unsigned int nodes;
	const char *memory;
	unsigned int rounds;
	const char *fault;		/* SCI_FAULT; NULL: none */
};

/* State of draw(), which returns the same numbers on all members. */
static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

/* Return a length: often short, sometimes long, sometimes 0. */
static size_t draw_len(void)
{
	switch (draw(8)) {
	case 0:
		return draw(MOST);
	case 1:
		return 0;
	case 2:
		return draw(20000);
	default:
		return draw(300);
	}
}

/* Return byte @i of the data that @rank passes to call @seed. */
static uint8_t byte_of(uint32_t seed, int rank, size_t i)
{
	return (uint8_t)((i * 2654435761u + (size_t)rank * 97 + seed * 31) >> 7);
}

static void fill(uint8_t *p, uint32_t seed, int rank, size_t from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		p[i] = byte_of(seed, rank, from + i);
}

static void expect(const uint8_t *p, uint32_t seed, int rank, size_t from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != byte_of(seed, rank, from + i))
			FAIL("byte %zu of rank %d's %zu is %u, not %u", i, rank, len, p[i],
			     byte_of(seed, rank, from + i));
}

/* Symmetric memory for buffers, or NULL. Each call uses it from its start. */
static uint8_t *arena;
static size_t arena_used, arena_len;

/* Allocate a buffer in the arena or by malloc(). */
static void *room(size_t len)
{
	uint8_t *p = arena ? arena + arena_used : NULL;

	if (p && len <= arena_len - arena_used && byte_of((uint32_t)state, 1, len) % 4)
		arena_used += (len + 15) & ~(size_t)15;
	else
		p = malloc(len ? len : 1);
	CHECK(p);
	memset(p, 0xee, len ? len : 1);
	return p;
}

static void give_back(void *p)
{
	if (!arena || (uint8_t *)p < arena || (uint8_t *)p >= arena + arena_len)
		free(p);
}

/* Make a blocking call, or start a call and wait for it. */
#define DO(team, call, icall)						\
	do {								\
		struct sci_coll *coll_;					\
									\
		if (draw(2)) {						\
			CHECK_EQ(call, 0);				\
		} else {						\
			CHECK_EQ(icall, 0);				\
			CHECK_EQ(sci_coll_wait(coll_, -1), 0);		\
		}							\
	} while (0)

static void bcast_bytes(struct sci_team *t, uint32_t seed, size_t len)
{
	int root = (int)draw((uint32_t)sci_team_size(t));
	uint8_t *p = room(len);

	if (sci_team_rank(t) == root)
		fill(p, seed, root, 0, len);
	DO(t, sci_team_bcast(t, root, p, len), sci_team_ibcast(t, root, p, len, &coll_));
	expect(p, seed, root, 0, len);
	give_back(p);
}

static void bcast(struct sci_team *t, uint32_t seed)
{
	bcast_bytes(t, seed, draw_len());
}

static void gathers(struct sci_team *t, uint32_t seed)
{
	int n = sci_team_size(t), me = sci_team_rank(t), root = (int)draw((uint32_t)n);
	size_t len = draw_len() / 4;
	bool all = draw(2), in_place = draw(2);
	uint8_t *src = room(len), *dst = room(len * (size_t)n), *from = src;

	fill(src, seed, me, 0, len);
	if (in_place && (all || me == root)) {
		from = dst + (size_t)me * len;
		fill(from, seed, me, 0, len);
	}
	if (all)
		DO(t, sci_team_allgather(t, from, len, dst),
		   sci_team_iallgather(t, from, len, dst, &coll_));
	else
		DO(t, sci_team_gather(t, root, from, len, dst),
		   sci_team_igather(t, root, from, len, dst, &coll_));
	for (int i = 0; i < n && (all || me == root); i++)
		expect(dst + (size_t)i * len, seed, i, 0, len);
	give_back(src);
	give_back(dst);
}

/* Draw lengths and offsets, with gaps, for each rank. Return the bytes that they need. */
static size_t draw_lens(int n, size_t *lens, size_t *offsets)
{
	size_t at = 0;

	for (int i = 0; i < n; i++) {
		lens[i] = draw(4) ? draw(500) : draw_len() / 4;
		at += draw(3) * 8;
		offsets[i] = at;
		at += lens[i];
	}
	return at;
}

static void gathervs(struct sci_team *t, uint32_t seed)
{
	int n = sci_team_size(t), me = sci_team_rank(t), root = (int)draw((uint32_t)n);
	size_t lens[RANKS], offsets[RANKS], total = draw_lens(n, lens, offsets);
	size_t len = lens[me];
	bool all = draw(2);
	uint8_t *src = room(len), *dst = room(total);

	fill(src, seed, me, 0, len);
	if (all)
		DO(t, sci_team_allgatherv(t, src, dst, lens, offsets),
		   sci_team_iallgatherv(t, src, dst, lens, offsets, &coll_));
	else
		DO(t, sci_team_gatherv(t, root, src, len, dst, lens, offsets),
		   sci_team_igatherv(t, root, src, len, dst, lens, offsets, &coll_));
	for (int i = 0; i < n && (all || me == root); i++)
		expect(dst + offsets[i], seed, i, 0, lens[i]);
	give_back(src);
	give_back(dst);
}

static void scatters(struct sci_team *t, uint32_t seed)
{
	int n = sci_team_size(t), me = sci_team_rank(t), root = (int)draw((uint32_t)n);
	size_t lens[RANKS], offsets[RANKS], total;
	bool v = draw(2);
	uint8_t *src, *dst;

	total = draw_lens(n, lens, offsets);
	if (!v) {
		lens[0] /= 2;
		for (int i = 0; i < n; i++) {
			lens[i] = lens[0];
			offsets[i] = (size_t)i * lens[0];
		}
		total = lens[0] * (size_t)n;
	}
	src = room(total);
	dst = room(lens[me]);
	for (int i = 0; i < n && me == root; i++)
		fill(src + offsets[i], seed, i, 0, lens[i]);
	if (v)
		DO(t, sci_team_scatterv(t, root, src, lens, offsets, dst, lens[me]),
		   sci_team_iscatterv(t, root, src, lens, offsets, dst, lens[me], &coll_));
	else
		DO(t, sci_team_scatter(t, root, src, dst, lens[me]),
		   sci_team_iscatter(t, root, src, dst, lens[me], &coll_));
	expect(dst, seed, me, 0, lens[me]);
	give_back(src);
	give_back(dst);
}

/* Return the bytes that @from sends to @to: in half of the calls, many parts are short. */
static size_t pair_len(uint32_t seed, int from, int to, bool v)
{
	uint32_t most = seed % 2 ? 250 : 9000;

	if (!v)
		return seed % 3 ? seed * 7919 % (most / 3) : seed / 3 % 12;
	return (seed * 31 + (uint32_t)from * 577 + (uint32_t)to * 1733) % most;
}

static void alltoalls(struct sci_team *t, uint32_t seed)
{
	int n = sci_team_size(t), me = sci_team_rank(t);
	size_t out[RANKS], in[RANKS], out_at[RANKS], in_at[RANKS], outs = 0, ins = 0;
	bool v = draw(2);
	uint8_t *src, *dst;

	CHECK(n > 0 && n <= RANKS);
	for (int i = 0; i < n; i++) {
		out[i] = pair_len(seed, me, i, v);
		in[i] = pair_len(seed, i, me, v);
		out_at[i] = outs;
		in_at[i] = ins;
		outs += out[i] + (v ? 8 : 0);
		ins += in[i] + (v ? 24 : 0);
	}
	src = room(outs);
	dst = room(ins);
	for (int i = 0; i < n; i++)
		fill(src + out_at[i], seed, me, (size_t)i * 10000, out[i]);
	if (v)
		DO(t, sci_team_alltoallv(t, src, out, out_at, dst, in, in_at),
		   sci_team_ialltoallv(t, src, out, out_at, dst, in, in_at, &coll_));
	else
		DO(t, sci_team_alltoall(t, src, dst, out[0]),
		   sci_team_ialltoall(t, src, dst, out[0], &coll_));
	for (int i = 0; i < n; i++)
		expect(dst + in_at[i], seed, i, (size_t)me * 10000, in[i]);
	give_back(src);
	give_back(dst);
}

/* ---- reductions: the same function folds the parts one after the other ---- */

/* An operation that does not commute: the product of 2x2 matrices of bytes. */
static void matrix(void *inout, const void *in, size_t n, void *arg)
{
	uint8_t *b = inout;
	const uint8_t *a = in;

	CHECK(arg == &state);
	for (; n--; a += 4, b += 4) {
		uint8_t c[4] = {
			(uint8_t)(a[0] * b[0] + a[1] * b[2]), (uint8_t)(a[0] * b[1] + a[1] * b[3]),
			(uint8_t)(a[2] * b[0] + a[3] * b[2]), (uint8_t)(a[2] * b[1] + a[3] * b[3]),
		};

		memcpy(b, c, 4);
	}
}

static struct sci_op draw_op(bool *exact)
{
	static const struct sci_op user = { 4, matrix, &state };
	const struct sci_op *op = NULL;
	enum sci_type type = SCI_TYPE_INT8;

	*exact = true;
	if (!draw(6))
		return user;
	while (!op) {
		type = (enum sci_type)draw(SCI_TYPES);
		op = sci_op((enum sci_op_kind)draw(SCI_OPS), type);
	}
	*exact = type < SCI_TYPE_FLOAT;
	return *op;
}

/* Floating-point numbers are small integers: their sums are exact in any order. */
static void fill_numbers(const struct sci_op *op, bool exact, uint8_t *p, uint32_t seed,
			 int rank, size_t n)
{
	memset(p, 0, n * op->size);
	if (exact) {
		fill(p, seed, rank, 0, n * op->size);
		return;
	}
	for (int type = SCI_TYPE_FLOAT; type < SCI_TYPES; type++)
		for (int kind = 0; kind < SCI_OPS; kind++) {
			const struct sci_op *o = sci_op((enum sci_op_kind)kind,
							(enum sci_type)type);

			if (!o || o->fn != op->fn)
				continue;
			for (size_t i = 0; i < n; i++) {
				int v = 1 + byte_of(seed, rank, i) % 2;
				float f = (float)v;
				double d = v;
				long double l = v;
				void *at = p + i * op->size;

				if (type == SCI_TYPE_FLOAT || type == SCI_TYPE_FLOAT_COMPLEX ||
				    type == SCI_TYPE_FLOAT_INT)
					memcpy(at, &f, sizeof(f));
				else if (type == SCI_TYPE_DOUBLE ||
					 type == SCI_TYPE_DOUBLE_COMPLEX ||
					 type == SCI_TYPE_DOUBLE_INT)
					memcpy(at, &d, sizeof(d));
				else if (type == SCI_TYPE_LONG_DOUBLE ||
					 type == SCI_TYPE_LONG_DOUBLE_COMPLEX ||
					 type == SCI_TYPE_LONG_DOUBLE_INT)
					memcpy(at, &l, 10);
				else
					memcpy(at, &v, 2);
				if (kind >= SCI_OP_MINLOC)
					*((uint8_t *)at + op->size / 2) = (uint8_t)rank;
			}
		}
}

/* Fold @n elements of ranks 0 to @to - 1, the last rank first, as the calls promise. */
static uint8_t *serial(const struct sci_op *op, bool exact, uint32_t seed, int to, size_t n)
{
	uint8_t *acc = room(n * op->size), *in = room(n * op->size);

	for (int i = to - 1; i >= 0; i--) {
		fill_numbers(op, exact, i == to - 1 ? acc : in, seed, i, n);
		if (i < to - 1)
			op->fn(acc, in, n, op->arg);
	}
	give_back(in);
	return acc;
}

/* Compare results. Padding bytes of a long double are ignored: no operation sets them. */
static void same(const struct sci_op *op, const uint8_t *got, const uint8_t *want, size_t n)
{
	size_t part = op->size % 16 ? op->size : 16;
	bool padded = false;

	for (int i = 0; i < SCI_OPS; i++)
		for (int type = SCI_TYPE_LONG_DOUBLE; type < SCI_TYPES; type++) {
			const struct sci_op *o = sci_op((enum sci_op_kind)i,
							(enum sci_type)type);

			if (o && o->fn == op->fn && (type == SCI_TYPE_LONG_DOUBLE ||
			    type == SCI_TYPE_LONG_DOUBLE_COMPLEX))
				padded = true;
		}
	for (size_t i = 0; i < n * op->size; i++)
		if (got[i] != want[i] && !(padded && i % part >= 10))
			FAIL("byte %zu of %zu elements of %zu is %u, not %u", i, n, op->size,
			     got[i], want[i]);
}

static void reductions(struct sci_team *t, uint32_t seed)
{
	int size = sci_team_size(t), me = sci_team_rank(t), root = (int)draw((uint32_t)size);
	int which = (int)draw(4);
	bool exact, in_place = draw(2);
	struct sci_op op = draw_op(&exact);
	size_t n = draw_len() / op.size;
	uint8_t *src = room(n * op.size), *dst = in_place ? src : room(n * op.size), *want;

	fill_numbers(&op, exact, src, seed, me, n);
	if (which == 0)
		DO(t, sci_team_reduce(t, root, src, dst, n, &op),
		   sci_team_ireduce(t, root, src, dst, n, &op, &coll_));
	else if (which == 1)
		DO(t, sci_team_allreduce(t, src, dst, n, &op),
		   sci_team_iallreduce(t, src, dst, n, &op, &coll_));
	else if (which == 2)
		DO(t, sci_team_scan(t, src, dst, n, &op),
		   sci_team_iscan(t, src, dst, n, &op, &coll_));
	else
		DO(t, sci_team_exscan(t, src, dst, n, &op),
		   sci_team_iexscan(t, src, dst, n, &op, &coll_));
	if ((which == 0 && me == root) || which == 1)
		want = serial(&op, exact, seed, size, n);
	else if (which == 2 || (which == 3 && me))
		want = serial(&op, exact, seed, which == 2 ? me + 1 : me, n);
	else
		want = NULL;
	if (want)
		same(&op, dst, want, n);
	give_back(want);
	if (!in_place)
		give_back(dst);
	give_back(src);
}

static void reduce_scatters(struct sci_team *t, uint32_t seed)
{
	int size = sci_team_size(t), me = sci_team_rank(t);
	size_t counts[RANKS], total = 0, mine = 0;
	bool exact, v = draw(2), in_place = draw(2);
	struct sci_op op = draw_op(&exact);
	uint8_t *src, *dst, *want;

	CHECK(size > 0 && size <= RANKS);
	for (int i = 0; i < size; i++) {
		counts[i] = v || !i ? draw_len() / op.size / 8 : counts[0];
		mine = i == me ? total : mine;
		total += counts[i];
	}
	src = room(total * op.size);
	dst = in_place ? src : room(counts[me] * op.size);
	fill_numbers(&op, exact, src, seed, me, total);
	if (v)
		DO(t, sci_team_reduce_scatterv(t, src, dst, counts, &op),
		   sci_team_ireduce_scatterv(t, src, dst, counts, &op, &coll_));
	else
		DO(t, sci_team_reduce_scatter(t, src, dst, counts[0], &op),
		   sci_team_ireduce_scatter(t, src, dst, counts[0], &op, &coll_));
	want = serial(&op, exact, seed, size, total);
	same(&op, dst, want + mine * op.size, counts[me]);
	give_back(want);
	if (!in_place)
		give_back(dst);
	give_back(src);
}

static void some_calls(struct sci_team *t, unsigned int rounds)
{
	static void (*const calls[])(struct sci_team *t, uint32_t seed) = {
		bcast, gathers, gathervs, scatters, alltoalls, reductions, reductions,
		reduce_scatters,
	};

	for (unsigned int i = 0; i < rounds; i++) {
		uint32_t seed = draw(1000000);

		arena_used = 0;
		calls[draw(ARRAY_LEN(calls))](t, seed);
		if (!draw(8))
			CHECK_EQ(sci_team_barrier(t), 0);
	}
}

static struct sci_team *team_open(const struct setting *s)
{
	struct sci_team *t;

	setenv("SCI_TEAM_MEMORY", s->memory, 1);
	setenv("SCI_SYMMETRIC_SIZE", "4M", 1);
	if (s->fault)
		setenv("SCI_FAULT", s->fault, 1);
	CHECK_EQ(sci_team_open(&t, NULL), 0);
	CHECK_EQ(sci_team_size(t), s->n);
	if (!remote_machines())
		CHECK_EQ(sci_team_nodes(t), s->nodes);
	return t;
}

/* Make a team in which the order of ranks is not the order of nodes. */
static struct sci_team *team_mix(struct sci_team *t)
{
	struct sci_team *mixed;

	CHECK_EQ(sci_team_split(t, 0, sci_team_rank(t) * 5 % sci_team_size(t), &mixed), 0);
	return mixed;
}

static void all_calls(void *arg)
{
	const struct setting *s = arg;
	struct sci_team *t = team_open(s), *mixed = team_mix(t);
	unsigned int rounds = test_calls(s->rounds);
	void *p;

	state = s->n * 100 + s->nodes;
	some_calls(t, rounds);
	some_calls(mixed, s->nodes > 1 ? rounds / 4 : 0);
	arena_len = 3u << 20;
	CHECK_EQ(sci_team_alloc(t, arena_len + 64, 0, &p), 0);
	arena = p;
	some_calls(t, rounds);
	some_calls(mixed, s->nodes > 1 ? rounds / 4 : 0);
	CHECK_EQ(sci_team_close(mixed), 0);
	CHECK_EQ(sci_team_close(t), 0);
}

static void settings(const struct setting *s, void (*fn)(void *arg))
{
	ranks_run_arg(s->n, s->nodes, fn, (void *)s, false);
}

/* Run @fn with a setting. */
#define SETTINGS(fn, ...)						\
	do {								\
		static const struct setting s_ = { __VA_ARGS__ };	\
									\
		settings(&s_, fn);					\
	} while (0)

TEST(a_process_alone)
{
	SETTINGS(all_calls, 1, 1, "all", 300, NULL);
}

TEST(two_near_members)
{
	SETTINGS(all_calls, 2, 1, "all", 300, NULL);
}

TEST(three_near_members)
{
	SETTINGS(all_calls, 3, 1, "all", 200, NULL);
}

TEST(eight_near_members)
{
	SETTINGS(all_calls, 8, 1, "all", 100, NULL);
}

TEST(sixteen_near_members)
{
	SETTINGS(all_calls, 16, 4, "all", 40, NULL);
}

/* ---- data in private memory ---- */

static long minor_faults(void)
{
	struct rusage r;

	CHECK_EQ(getrusage(RUSAGE_SELF, &r), 0);
	return r.ru_minflt;
}

/* A root that copies its data would touch all pages. */
static void untouched_source(void *arg)
{
	const size_t pages = 256, len = pages * 4096;
	struct sci_team *t;
	uint8_t *buf;
	long before;

	(void)arg;
	setenv("SCI_TEAM_MEMORY", "all", 1);
	CHECK_EQ(sci_team_open(&t, NULL), 0);
	buf = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(buf != MAP_FAILED);
	CHECK_EQ(madvise(buf, len, MADV_NOHUGEPAGE), 0);
	if (sci_team_rank(t))
		memset(buf, 1, len);
	before = minor_faults();
	CHECK_EQ(sci_team_bcast(t, 0, buf, len), 0);
	/*
	 * Messages copy the data, and adapters do not read private memory. The thread sanitizer has
	 * page faults of its own.
	 */
	if (!sci_team_rank(t) && !TEST_TSAN && *test_cluster() &&
	    sci_ep_traits(sci_team_ep(t)) & SCI_TRAIT_SHARED_MEMORY)
		CHECK(minor_faults() - before < (long)pages / 2);
	for (size_t i = 0; i < len; i++)
		CHECK(!buf[i]);
	munmap(buf, len);
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(two_members_read_private_memory)
{
	if (!sci_processes_are_readable())
		test_skip("no process may trace another");
	setenv("SCI_TEAM_SINGLE_COPY_MIN", "16384", 1);
	ranks_run_arg(2, 1, untouched_source, NULL, false);
	setenv("SCI_TEAM_SINGLE_COPY_MIN", "1", 1);
	SETTINGS(all_calls, 2, 1, "all", 300, NULL);
}

TEST(five_members_read_private_memory)
{
	setenv("SCI_TEAM_SINGLE_COPY_MIN", "1", 1);
	SETTINGS(all_calls, 5, 1, "all", 200, NULL);
}

/* ---- far members ---- */

TEST(two_far_members)
{
	SETTINGS(all_calls, 2, 2, "none", 200, NULL);
}

TEST(five_far_members)
{
	SETTINGS(all_calls, 5, 1, "none", 100, NULL);
}

TEST(eight_members_on_four_nodes)
{
	SETTINGS(all_calls, 8, 4, "node", 100, NULL);
}

/* Nodes have 3, 2 and 2 members. */
TEST(seven_members_on_three_nodes)
{
	SETTINGS(all_calls, 7, 3, "node", 100, NULL);
}

/* Nodes have 1 and 2 members. */
TEST(eight_members_on_five_nodes)
{
	SETTINGS(all_calls, 8, 5, "node", 60, NULL);
}

TEST(six_members_on_three_nodes)
{
	SETTINGS(all_calls, 6, 3, "node", 100, NULL);
}

TEST(sixteen_members_on_sixteen_nodes)
{
	SETTINGS(all_calls, 16, 16, "node", 30, NULL);
}

TEST(sixteen_members_on_four_nodes)
{
	SETTINGS(all_calls, 16, 4, "node", 30, NULL);
}

/* Loss, reordering and duplication affect a tenth of the packets each. */
#define LOSSY	"loss=0.1,reorder=0.1,dup=0.1,seed=25"

TEST(three_far_members_lose_packets)
{
	SETTINGS(all_calls, 3, 3, "none", 30, LOSSY);
}

TEST(eight_members_on_four_nodes_lose_packets)
{
	SETTINGS(all_calls, 8, 4, "node", 20, LOSSY);
}

/* ---- long broadcasts: chains of leaders ---- */

/* Broadcast lengths around the shortest chain of @leaders, and around whole segments. */
static void chain_bcasts(struct sci_team *t, size_t leaders)
{
	const size_t shortest = leaders * 4096, segment = 7168;
	const size_t lens[] = {
		shortest - 1, shortest, shortest + 1, 10 * segment - 1, 10 * segment,
		10 * segment + 1, 250001, MOST,
	};

	for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
		arena_used = 0;
		bcast_bytes(t, draw(1000000), lens[i]);
	}
}

static void long_bcasts(void *arg)
{
	const struct setting *s = arg;
	struct sci_team *t = team_open(s), *mixed = team_mix(t);
	void *p;

	state = s->n + s->nodes;
	for (unsigned int i = 0; i < s->rounds; i++) {
		chain_bcasts(t, s->nodes);
		chain_bcasts(mixed, s->nodes);
		if (arena)
			continue;
		arena_len = 1u << 20;
		CHECK_EQ(sci_team_alloc(t, arena_len, 0, &p), 0);
		arena = p;
	}
	CHECK_EQ(sci_team_close(mixed), 0);
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(long_broadcasts_of_far_members)
{
	SETTINGS(long_bcasts, 8, 8, "none", 2, NULL);
}

TEST(long_broadcasts_of_many_nodes)
{
	SETTINGS(long_bcasts, 16, 16, "node", 2, NULL);
}

TEST(long_broadcasts_of_leaders)
{
	SETTINGS(long_bcasts, 16, 8, "node", 2, NULL);
}

TEST(long_broadcasts_lose_packets)
{
	SETTINGS(long_bcasts, 8, 8, "none", 2, LOSSY);
}

/* ---- many calls at once, and teams from parts of a team ---- */

static void many_at_once(void *arg)
{
	enum { CALLS = 40 };
	struct sci_coll *colls[CALLS];
	int64_t in[CALLS], out[CALLS];
	struct sci_team *t = team_open(arg);
	int n;

	n = sci_team_size(t);
	for (int i = 0; i < CALLS; i++) {
		in[i] = sci_team_rank(t) + i;
		CHECK_EQ(sci_team_iallreduce(t, &in[i], &out[i], 1,
					     sci_op(SCI_OP_SUM, SCI_TYPE_INT64), &colls[i]), 0);
	}
	/* the blocking call completes after all earlier calls */
	CHECK_EQ(sci_team_barrier(t), 0);
	for (int i = CALLS - 1; i >= 0; i--) {
		CHECK_EQ(sci_coll_wait(colls[i], 0), 0);
		CHECK_EQ(out[i], n * (n - 1) / 2 + n * i);
	}
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(many_calls_at_once)
{
	SETTINGS(many_at_once, 4, 1, "all", 0, NULL);
	SETTINGS(many_at_once, 4, 2, "node", 0, NULL);
}

/* Rank 0 waits in vain for a barrier, until it lets the other members enter. */
static void late_members(void *arg)
{
	struct sci_team *t = team_open(arg);
	struct sci_ep *ep = sci_team_ep(t);
	struct sci_peer *peer;
	struct sci_coll *coll;
	char go = 0;

	if (sci_team_rank(t))
		CHECK_EQ(sci_trecv(ep, NULL, 7, 1, 0, &go, 1, NULL), 0);
	CHECK_EQ(sci_team_ibarrier(t, &coll), 0);
	if (!sci_team_rank(t)) {
		CHECK_EQ(sci_coll_wait(coll, 0), -EAGAIN);
		CHECK_EQ(sci_coll_wait(coll, 10), -ETIMEDOUT);
		for (int i = 1; i < sci_team_size(t); i++) {
			CHECK_EQ(sci_team_peer(t, i, &peer), 0);
			CHECK_EQ(sci_tsend(peer, 7, 1, &go, 1), 0);
		}
	}
	CHECK_EQ(sci_coll_wait(coll, -1), 0);
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(a_call_that_has_not_completed_can_be_waited_for_again)
{
	SETTINGS(late_members, 4, 1, "all", 0, NULL);
	SETTINGS(late_members, 4, 2, "node", 0, NULL);
	SETTINGS(late_members, 3, 3, "none", 0, NULL);
}

static void parts(void *arg)
{
	struct sci_team *t = team_open(arg), *half, *node, *reverse;
	int me, n, third[3];

	me = sci_team_rank(t);
	n = sci_team_size(t);
	CHECK_EQ(sci_team_split(t, me == 2 ? -1 : me % 2, 0, &half), 0);
	CHECK_EQ(!half, me == 2);
	CHECK_EQ(sci_team_split_node(t, &node), 0);
	CHECK_EQ(sci_team_size(node), sci_team_node_size(t, sci_team_node(t, me)));
	CHECK_EQ(sci_team_rank(node), sci_team_local_rank(t, me));
	CHECK_EQ(sci_team_split(t, 0, -me, &reverse), 0);
	CHECK_EQ(sci_team_rank(reverse), n - 1 - me);
	CHECK_EQ(sci_team_translate(reverse, 0, t), n - 1);
	CHECK_EQ(sci_team_translate(t, 2, node), sci_team_node(t, 2) != sci_team_node(t, me) ?
		 -ENOENT : sci_team_local_rank(t, 2));
	state = 77;
	if (half)
		some_calls(half, 30);
	state = 78;
	some_calls(node, 30);
	state = 79;
	some_calls(reverse, 30);
	for (int i = 0; i < 3; i++)
		third[i] = 2 * (2 - i);
	for (int round = 0; round < 2 && me % 2 == 0 && me < 6; round++) {
		struct sci_team *few;

		CHECK_EQ(sci_team_create(t, third, 3, &few), 0);
		CHECK_EQ(sci_team_rank(few), 2 - me / 2);
		state = 80;
		some_calls(few, 20);
		CHECK_EQ(sci_team_close(few), 0);
	}
	CHECK_EQ(sci_team_close(half), 0);
	CHECK_EQ(sci_team_close(node), 0);
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(parts_of_a_team)
{
	SETTINGS(parts, 8, 4, "all", 0, NULL);
	SETTINGS(parts, 8, 4, "node", 0, NULL);
}

/* ---- errors ---- */

/* Member 1 passes another length, and only member 1 can see that. */
static void wrong_length(void *arg)
{
	char buf[8] = "";
	struct sci_team *t;
	int me, ret;

	(void)arg;
	setenv("SCI_TEAM_MEMORY", "none", 1);
	CHECK_EQ(sci_team_open(&t, NULL), 0);
	me = sci_team_rank(t);
	/* the report of member 1 may come before the bytes */
	ret = sci_team_bcast(t, 0, buf, me == 1 ? 4 : 8);
	CHECK(ret == -EMSGSIZE || (!ret && me != 1));
	CHECK_EQ(sci_team_barrier(t), -EMSGSIZE);
	CHECK_EQ(sci_team_barrier(t), -EMSGSIZE);
	CHECK_EQ(sci_team_close(t), 0);
}

TEST(an_error_of_a_member_breaks_the_team_for_all)
{
	ranks_run_arg(3, 3, wrong_length, NULL, false);
}
