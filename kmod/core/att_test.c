// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
#include <kunit/test.h>
#include <linux/bitmap.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/seq_file.h>

#include "att.h"

#define ENTRIES		512
#define OWNER		4
#define ROUNDS		100000
#define SEED		0x5c1

static int att_test_init(struct kunit *test)
{
	test->priv = sci_att_create(ENTRIES);
	KUNIT_ASSERT_NOT_NULL(test, test->priv);
	return 0;
}

static void att_test_exit(struct kunit *test)
{
	sci_att_destroy(test->priv);
}

static u32 att_take(struct kunit *test, u32 count)
{
	u32 first = U32_MAX;

	KUNIT_EXPECT_EQ(test, 0,
			sci_att_alloc(test->priv, count, OWNER, &first));
	return first;
}

static void expect_stats(struct kunit *test, u32 used, u32 largest_free)
{
	struct sci_att_stats st;

	sci_att_stats(test->priv, &st);
	KUNIT_EXPECT_EQ(test, st.entries, (u32)ENTRIES);
	KUNIT_EXPECT_EQ(test, st.used, used);
	KUNIT_EXPECT_EQ(test, st.largest_free, largest_free);
}

static void att_create_empty(struct kunit *test)
{
	KUNIT_EXPECT_NULL(test, sci_att_create(0));
	sci_att_destroy(NULL);
}

static void att_alloc_arguments(struct kunit *test)
{
	u32 first = 77;

	KUNIT_EXPECT_EQ(test, -EINVAL,
			sci_att_alloc(test->priv, 0, OWNER, &first));
	KUNIT_EXPECT_EQ(test, -ENOSPC,
			sci_att_alloc(test->priv, ENTRIES + 1, OWNER, &first));
	KUNIT_EXPECT_EQ(test, -ENOSPC,
			sci_att_alloc(test->priv, U32_MAX, OWNER, &first));
	KUNIT_EXPECT_EQ(test, first, 77u);
	expect_stats(test, 0, ENTRIES);
}

static void att_alloc_whole(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, att_take(test, ENTRIES), 0u);
	expect_stats(test, ENTRIES, 0);
	sci_att_free(test->priv, 0, ENTRIES);
	expect_stats(test, 0, ENTRIES);
}

static void att_alloc_exhaust(struct kunit *test)
{
	u32 i, first;

	for (i = 0; i < ENTRIES; i++)
		KUNIT_ASSERT_EQ(test, att_take(test, 1), i);
	KUNIT_EXPECT_EQ(test, -ENOSPC,
			sci_att_alloc(test->priv, 1, OWNER, &first));
	expect_stats(test, ENTRIES, 0);
	for (i = 0; i < ENTRIES; i++)
		sci_att_free(test->priv, i, 1);
	expect_stats(test, 0, ENTRIES);
}

/* Leave every other entry allocated: half of the table is free, in runs of one entry. */
static void att_alloc_fragmented(struct kunit *test)
{
	u32 i, first;

	for (i = 0; i < ENTRIES; i++)
		att_take(test, 1);
	for (i = 0; i < ENTRIES; i += 2)
		sci_att_free(test->priv, i, 1);
	expect_stats(test, ENTRIES / 2, 1);
	KUNIT_EXPECT_EQ(test, -ENOSPC,
			sci_att_alloc(test->priv, 2, OWNER, &first));
	for (i = 1; i < ENTRIES; i += 2)
		sci_att_free(test->priv, i, 1);
	expect_stats(test, 0, ENTRIES);
}

/* Check that an allocation never consists of the last entries and the first ones. */
static void att_alloc_no_wrap(struct kunit *test)
{
	u32 low = att_take(test, 10);
	u32 middle = att_take(test, ENTRIES - 20);
	u32 high = att_take(test, 10), first;

	sci_att_free(test->priv, low, 10);
	sci_att_free(test->priv, high, 10);
	expect_stats(test, ENTRIES - 20, 10);
	KUNIT_EXPECT_EQ(test, -ENOSPC,
			sci_att_alloc(test->priv, 11, OWNER, &first));
	sci_att_free(test->priv, middle, ENTRIES - 20);
	expect_stats(test, 0, ENTRIES);
}

/* Free a run without free neighbours, with one on either side, and with one on both sides. */
static void att_free_coalesces(struct kunit *test)
{
	u32 run[5], rest, i;

	for (i = 0; i < ARRAY_SIZE(run); i++)
		run[i] = att_take(test, 10);
	rest = att_take(test, ENTRIES - 50);

	sci_att_free(test->priv, run[1], 10);
	expect_stats(test, ENTRIES - 10, 10);
	sci_att_free(test->priv, run[0], 10);
	expect_stats(test, ENTRIES - 20, 20);
	sci_att_free(test->priv, run[2], 10);
	expect_stats(test, ENTRIES - 30, 30);
	sci_att_free(test->priv, run[4], 10);
	expect_stats(test, ENTRIES - 40, 30);
	sci_att_free(test->priv, run[3], 10);
	expect_stats(test, ENTRIES - 50, 50);
	sci_att_free(test->priv, rest, ENTRIES - 50);
	expect_stats(test, 0, ENTRIES);
}

static void att_alloc_best_fit(struct kunit *test)
{
	static const u32 length[] = { 30, 1, 10, 1, 20, 1, 10, 1 };
	u32 first[ARRAY_SIZE(length)], rest, i;

	for (i = 0; i < ARRAY_SIZE(length); i++)
		first[i] = att_take(test, length[i]);
	rest = att_take(test, ENTRIES - 74);
	for (i = 0; i < ARRAY_SIZE(length); i += 2)
		sci_att_free(test->priv, first[i], length[i]);

	KUNIT_EXPECT_EQ(test, att_take(test, 10), first[2]);
	KUNIT_EXPECT_EQ(test, att_take(test, 9), first[6]);
	KUNIT_EXPECT_EQ(test, att_take(test, 11), first[4]);
	KUNIT_EXPECT_EQ(test, att_take(test, 21), first[0]);
	expect_stats(test, ENTRIES - 19, 9);

	sci_att_free(test->priv, first[0], 21);
	sci_att_free(test->priv, first[4], 11);
	sci_att_free(test->priv, first[6], 9);
	sci_att_free(test->priv, first[2], 10);
	for (i = 1; i < ARRAY_SIZE(length); i += 2)
		sci_att_free(test->priv, first[i], length[i]);
	sci_att_free(test->priv, rest, ENTRIES - 74);
	expect_stats(test, 0, ENTRIES);
}

static void att_dump_owners(struct kunit *test)
{
	char text[64];
	struct seq_file m = { .buf = text, .size = sizeof(text) };
	u32 a, b, c;

	KUNIT_EXPECT_EQ(test, 0, sci_att_alloc(test->priv, 3, 4, &a));
	KUNIT_EXPECT_EQ(test, 0, sci_att_alloc(test->priv, 5, 65532, &b));
	KUNIT_EXPECT_EQ(test, 0, sci_att_alloc(test->priv, 1, 8, &c));
	sci_att_free(test->priv, a, 3);
	sci_att_dump(test->priv, &m);
	KUNIT_ASSERT_LT(test, m.count, sizeof(text));
	text[m.count] = '\0';
	KUNIT_EXPECT_STREQ(test, text, "3 5 65532\n8 1 8\n");
	sci_att_free(test->priv, b, 5);
	sci_att_free(test->priv, c, 1);
}

/* The model of a random test: a bitmap that is compared with the table after each operation. */

struct model {
	DECLARE_BITMAP(used, ENTRIES);
	u32 first[ENTRIES];
	u32 count[ENTRIES];
	u32 runs;
};

static u32 model_largest_free(const struct model *m)
{
	unsigned int begin, end;
	u32 largest = 0;

	for_each_clear_bitrange(begin, end, m->used, ENTRIES)
		largest = max(largest, end - begin);
	return largest;
}

/* Return where best fit places @count entries, or -ENOSPC. */
static int model_best_fit(const struct model *m, u32 count)
{
	unsigned int begin, end;
	u32 best_count = U32_MAX;
	int best = -ENOSPC;

	for_each_clear_bitrange(begin, end, m->used, ENTRIES) {
		if (end - begin < count || end - begin >= best_count)
			continue;
		best_count = end - begin;
		best = begin;
	}
	return best;
}

static void model_alloc(struct kunit *test, struct model *m, u32 count)
{
	int best = model_best_fit(m, count);
	u32 first = 0;

	KUNIT_ASSERT_EQ(test, min(best, 0),
			sci_att_alloc(test->priv, count, OWNER, &first));
	if (best < 0)
		return;
	KUNIT_ASSERT_EQ(test, (u32)best, first);
	bitmap_set(m->used, first, count);
	m->first[m->runs] = first;
	m->count[m->runs++] = count;
}

static void model_free(struct kunit *test, struct model *m, u32 i)
{
	sci_att_free(test->priv, m->first[i], m->count[i]);
	bitmap_clear(m->used, m->first[i], m->count[i]);
	m->runs--;
	m->first[i] = m->first[m->runs];
	m->count[i] = m->count[m->runs];
}

static void model_compare(struct kunit *test, const struct model *m)
{
	struct sci_att_stats st;

	sci_att_stats(test->priv, &st);
	KUNIT_ASSERT_EQ(test, st.used, bitmap_weight(m->used, ENTRIES));
	KUNIT_ASSERT_EQ(test, st.largest_free, model_largest_free(m));
}

/* Mostly allocate for a while, then mostly free: the table becomes full, then empty. */
static void att_random(struct kunit *test)
{
	struct model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct rnd_state rnd;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	prandom_seed_state(&rnd, SEED);
	for (i = 0; i < ROUNDS; i++) {
		bool grow = prandom_u32_state(&rnd) % 8 < (i >> 10 & 1 ? 3 : 6);
		u32 r = prandom_u32_state(&rnd);

		if (grow)
			model_alloc(test, m, 1 + r % (r & 0x10000 ? 4 : 64));
		else if (m->runs)
			model_free(test, m, r % m->runs);
		model_compare(test, m);
	}
	while (m->runs)
		model_free(test, m, 0);
	expect_stats(test, 0, ENTRIES);
}

static struct kunit_case att_cases[] = {
	KUNIT_CASE(att_create_empty),
	KUNIT_CASE(att_alloc_arguments),
	KUNIT_CASE(att_alloc_whole),
	KUNIT_CASE(att_alloc_exhaust),
	KUNIT_CASE(att_alloc_fragmented),
	KUNIT_CASE(att_alloc_no_wrap),
	KUNIT_CASE(att_free_coalesces),
	KUNIT_CASE(att_alloc_best_fit),
	KUNIT_CASE(att_dump_owners),
	KUNIT_CASE(att_random),
	{}
};

static struct kunit_suite att_suite = {
	.name = "sci_att",
	.init = att_test_init,
	.exit = att_test_exit,
	.test_cases = att_cases,
};

kunit_test_suite(att_suite);

MODULE_LICENSE("GPL");
