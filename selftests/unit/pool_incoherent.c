// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The protocol of a pool on memory where the caches of machines are not coherent. */
#include <setjmp.h>

#include "selftests/unit/pool_model.h"

#define SIZE	(512u << 10)

static void *the_mem;
static struct pool node_a, node_b;
static u64 the_now;

static void pool_begin(void)
{
	model_flags = POOL_INCOHERENT;
	the_mem = model_memory(SIZE);
	CHECK_EQ(model_format(the_mem, SIZE), 0);
	model_open(&node_a, the_mem, SIZE);
	model_open(&node_b, the_mem, SIZE);
	the_now = 5;
}

static void pool_end(void)
{
	model_close(&node_a);
	model_close(&node_b);
	free(the_mem);
	the_mem = NULL;
}

static void both_join(void)
{
	CHECK_EQ(pool_join(&node_a, 4, 0, "a", the_now), 0);
	CHECK_EQ(pool_join(&node_b, 8, 0, "b", the_now), 0);
}

/* Let @p watch the other nodes for @time, in steps. */
static void pass(struct pool *p, u64 time)
{
	u64 end = the_now + time;

	while (the_now < end) {
		the_now += MODEL_LEASE / 4;
		CHECK_EQ(pool_beat(p, the_now), 0);
	}
}

TEST(a_pool_has_equal_shares_in_whole_lines)
{
	struct pool p = { 0 };

	pool_begin();
	CHECK_EQ(pool_open(&p, the_mem, SIZE), 0);
	CHECK(p.form.incoherent);
	CHECK_EQ(p.form.share * MODEL_SLOTS, p.form.chunks);
	CHECK_EQ(p.form.share % POOL_SHARE_UNIT, 0);
	CHECK_EQ(pool_format(the_mem, 128u << 10, MODEL_CHUNK, MODEL_SLOTS, 1000, 10000, 1,
			     POOL_INCOHERENT), -EINVAL);
	pool_end();
}

TEST(a_formatter_flushes_what_it_stores)
{
	struct pool p = { 0 };
	u64 at;
	u8 *cache;

	the_mem = memset(model_memory(SIZE), 0xff, SIZE);
	cache = model_cache_new(the_mem, SIZE);
	CHECK_EQ(pool_format(cache, SIZE, MODEL_CHUNK, MODEL_SLOTS, 1000, 10000, 1,
			     POOL_INCOHERENT), 0);
	CHECK_EQ(pool_open(&p, the_mem, SIZE), 0);
	for (at = POOL_ALIGN; at < p.form.data_at; at++)
		CHECK_EQ(((u8 *)the_mem)[at], 0);
	p.mem = cache;
	model_close(&p);
	free(the_mem);
}

/* ---- accesses ---- */

/*
 * Both nodes have loaded a line. Node A stores its second word. Then node B stores the first
 * word, by @fn: both stores are in memory, and node A loads the new first word.
 */
static void check_store(void (*fn)(__le64 *word))
{
	__le64 *a, *b, *memory;

	pool_begin();
	a = &pool_slot(&node_a, 0)->word;
	b = &pool_slot(&node_b, 0)->word;
	memory = (__le64 *)((u8 *)the_mem + node_a.form.slot_at);
	CHECK_EQ(pool_get64(a) + pool_get64(b), 0);
	pool_set64(a + 1, 3);
	CHECK_EQ(le64_to_cpu(memory[1]), 3);
	fn(b);
	CHECK_EQ(le64_to_cpu(memory[0]), 7);
	CHECK_EQ(le64_to_cpu(memory[1]), 3);
	CHECK_EQ(pool_get64(a), 7);
	pool_end();
}

static void store_32(__le64 *word)
{
	pool_set32((__le32 *)word, 7);
}

static void store_64(__le64 *word)
{
	pool_set64(word, 7);
}

static void swap_32(__le64 *word)
{
	CHECK(pool_cas32((__le32 *)word, 0, 7));
}

static void swap_64(__le64 *word)
{
	CHECK(pool_cas64(word, 0, 7));
}

static void store_bytes(__le64 *word)
{
	u64 seven = 7;

	pool_put_bytes(word, &seven, sizeof(seven));
}

TEST(a_store_of_4_bytes_arrives) { check_store(store_32); }
TEST(a_store_of_8_bytes_arrives) { check_store(store_64); }
TEST(a_swap_of_4_bytes_arrives) { check_store(swap_32); }
TEST(a_swap_of_8_bytes_arrives) { check_store(swap_64); }
TEST(a_copy_into_the_pool_arrives) { check_store(store_bytes); }

TEST(loads_see_what_has_arrived)
{
	__le64 *a, *b;
	u64 bytes;

	pool_begin();
	a = &pool_slot(&node_a, 0)->word;
	b = &pool_slot(&node_b, 0)->word;
	pool_set64(a, 1);
	CHECK_EQ(pool_get32((__le32 *)b), 1);
	pool_set64(a, 2);
	CHECK_EQ(pool_get64(b), 2);
	pool_set64(a, 3);
	pool_get_bytes(&bytes, b, sizeof(bytes));
	CHECK_EQ(bytes, 3);
	pool_set64(a, 4);
	CHECK(!pool_cas64(b, 3, 5));
	pool_end();
}

/* ---- slots ---- */

static unsigned int stores_left;
static int b_joined;

/* Node B joins as node 4, too, before the last of the stores to wait for. */
static void b_joins_hook(void)
{
	if (stores_left--)
		return;
	pool_store_hook = NULL;
	b_joined = pool_join(&node_b, 4, 0, "b", the_now);
}

TEST(a_node_id_is_taken_once)
{
	unsigned int n;
	int a_joined;

	for (n = 0;; n++) {
		pool_begin();
		stores_left = n;
		b_joined = -ESRCH;
		pool_store_hook = b_joins_hook;
		a_joined = pool_join(&node_a, 4, 0, "a", the_now);
		pool_store_hook = NULL;
		if (b_joined == -ESRCH)
			break;		/* node A has no store number n */
		CHECK(a_joined == -EEXIST || b_joined == -EEXIST);
		CHECK(!a_joined || !b_joined);
		CHECK_EQ(pool_beat(a_joined ? &node_b : &node_a, the_now), 0);
		pool_end();
	}
	CHECK(n > 3);
	CHECK_EQ(pool_join(&node_b, 0, 0, "b", the_now), 0);
	CHECK_EQ(pool_slot_node(node_b.slot), 8);
	CHECK(pool_node_is_active(&node_b, 4) && pool_node_is_active(&node_a, 8));
	pool_end();
}

TEST(a_silent_node_is_expelled_after_its_lease)
{
	struct pool next;

	pool_begin();
	both_join();
	pass(&node_a, MODEL_LEASE * 3 / 4);
	CHECK(pool_node_is_active(&node_a, 8));
	CHECK_EQ(pool_beat(&node_b, the_now), 0);
	pass(&node_a, MODEL_LEASE * 3 / 4);
	CHECK(pool_node_is_active(&node_a, 8));
	pass(&node_a, MODEL_LEASE);
	CHECK(!pool_node_is_active(&node_a, 8));
	CHECK(!pool_node_is_active(&node_b, 8));
	CHECK_EQ(pool_beat(&node_b, the_now), -ESTALE);
	/* the node may still store: nobody takes its slot before it has left */
	model_open(&next, the_mem, SIZE);
	CHECK_EQ(pool_join(&next, 8, 0, "next", the_now), -EEXIST);
	pool_leave(&node_b);
	CHECK_EQ(pool_join(&next, 8, 0, "next", the_now), 0);
	CHECK_EQ(pool_beat(&next, the_now), 0);
	model_close(&next);
	pool_end();
}

/* Wait for the slot of a dead node as a machine that boots again does. */
static u64 join_again(struct pool *p, u32 node)
{
	u64 start = the_now;

	while (pool_join(p, node, 0, "again", the_now)) {
		the_now += MODEL_LEASE / 4;
		CHECK(the_now < start + 2 * MODEL_QUAR);
	}
	return the_now - start;
}

TEST(the_slot_of_a_dead_node_is_free_after_the_quarantine)
{
	pool_begin();
	both_join();
	model_close(&node_b);
	model_open(&node_b, the_mem, SIZE);
	CHECK(join_again(&node_b, 8) >= MODEL_QUAR);
	CHECK_EQ(node_b.generation, MODEL_ID + 1);
	pool_end();
}

/* Loads take long, and node A looks for silent nodes meanwhile. */
static void slow_flush(const void *p, size_t n)
{
	model_flush(p, n);
	if (model_cache_of(p) != model_cache_of(node_b.mem))
		return;
	the_now += MODEL_LEASE / 40;
	CHECK_EQ(pool_beat(&node_a, the_now), 0);
}

TEST(a_node_that_joins_a_large_pool_is_not_expelled_meanwhile)
{
	pool_begin();
	CHECK_EQ(pool_join(&node_a, 4, 0, "a", the_now), 0);
	CHECK(node_b.form.chunks > 40);
	pool_cache_hook = slow_flush;
	CHECK_EQ(pool_join(&node_b, 8, 0, "b", the_now), 0);
	pool_cache_hook = model_flush;
	CHECK_EQ(pool_beat(&node_b, the_now), 0);
	pool_end();
}

/* ---- memory ---- */

/* A node that hung in a store stores an old word into its slot, after it was expelled. */
TEST(a_generation_that_was_expelled_is_not_used_again)
{
	pool_begin();
	both_join();
	pass(&node_b, 2 * MODEL_LEASE);
	CHECK(!pool_node_is_active(&node_b, 4));
	pool_set64(&pool_slot(&node_b, 0)->word, 0);
	model_close(&node_a);
	model_open(&node_a, the_mem, SIZE);
	CHECK_EQ(pool_join(&node_a, 4, 0, "a", the_now), 0);
	CHECK_EQ(node_a.generation, MODEL_ID + 1);
	CHECK_EQ(pool_beat(&node_a, the_now), 0);
	pool_end();
}

TEST(a_node_allocates_in_its_share)
{
	u32 first, share;

	pool_begin();
	both_join();
	share = node_b.form.share;
	CHECK_EQ(pool_alloc(&node_b, (u64)(share + 1) * MODEL_CHUNK, &first, the_now),
		 -ENOSPC);
	CHECK_EQ(pool_alloc(&node_b, (u64)share * MODEL_CHUNK, &first, the_now), share);
	CHECK_EQ(first, share);
	CHECK_EQ(pool_alloc(&node_b, 1, &first, the_now), -ENOSPC);
	CHECK_EQ(pool_alloc(&node_a, 1, &first, the_now), 1);
	CHECK_EQ(first, 0);
	pool_end();
}

TEST(memory_of_a_dead_node_is_its_successors)
{
	u32 first, got, chunks;
	u64 base;

	pool_begin();
	both_join();
	CHECK_EQ(pool_alloc(&node_b, 4 * MODEL_CHUNK, &first, the_now), 4);
	base = pool_expose(&node_b, first, 4, 9);
	CHECK_EQ(pool_map(&node_a, 8, base, &got, &chunks), 0);
	model_close(&node_b);
	pass(&node_a, 2 * MODEL_LEASE + MODEL_QUAR);
	CHECK_EQ(pool_scrub(&node_a, the_now), 0);
	CHECK_EQ(model_count_used(&node_a), 4);
	/* the line of the slot is that of an earlier time */
	pool_set64(&pool_slot(&node_a, 1)->word, 0);
	model_open(&node_b, the_mem, SIZE);
	join_again(&node_b, 8);
	CHECK_EQ(node_b.generation, MODEL_ID + 1);
	/* the two nodes watch each other */
	for (base = the_now + MODEL_QUAR + MODEL_LEASE; the_now < base;) {
		pass(&node_a, MODEL_LEASE / 4);
		CHECK_EQ(pool_beat(&node_b, the_now), 0);
	}
	CHECK_EQ(pool_scrub(&node_b, the_now), 0);	/* node 4 has it mapped */
	pool_unmap(&node_a, got);
	CHECK_EQ(pool_scrub(&node_b, the_now), 4);
	CHECK_EQ(model_count_used(&node_a), 0);
	CHECK_EQ(node_a.corrupt + node_b.corrupt, 0);
	pool_end();
}

/* ---- mail ---- */

TEST(mail_arrives_without_a_bell)
{
	u8 packet[POOL_PACKET], got[POOL_PACKET];
	unsigned int i;
	u32 bell;

	pool_begin();
	both_join();
	for (i = 0; i < 3 * POOL_MAIL_SLOTS; i++) {
		bell = pool_bell(&node_b);
		memset(packet, (int)i, sizeof(packet));
		CHECK_EQ(pool_mail_send(&node_a, 8, packet), 0);
		CHECK(pool_bell(&node_b) != bell);
		CHECK(pool_mail_receive(&node_b, 4, got));
		CHECK(!memcmp(packet, got, sizeof(got)));
		CHECK(!pool_mail_receive(&node_b, 4, got));
	}
	CHECK_EQ(node_b.corrupt, 0);
	pool_end();
}

/* ---- a node that dies at a store ---- */

static jmp_buf crash;

static void crash_hook(void)
{
	if (!stores_left--)
		longjmp(crash, 1);
}

static void whole_life(u64 base)
{
	u32 first, second, got, chunks;

	if (pool_join(&node_b, 8, 0, "victim", the_now))
		return;
	pool_alloc(&node_b, 5 * MODEL_CHUNK, &first, the_now);
	pool_alloc(&node_b, 2 * MODEL_CHUNK, &second, the_now);
	pool_expose(&node_b, second, 2, 55);
	pool_beat(&node_b, the_now);
	pool_map(&node_b, 4, base, &got, &chunks);
	pool_free(&node_b, first, 5, the_now);
	pool_hide(&node_b, second, 2);
	pool_free(&node_b, second, 2, the_now);
	pool_unmap(&node_b, got);
	pool_leave(&node_b);
}

/* Return true if the life ends before its store number @n. */
static bool life_until(unsigned int n, u64 base)
{
	if (setjmp(crash)) {
		pool_store_hook = NULL;
		return false;
	}
	stores_left = n;
	pool_store_hook = crash_hook;
	whole_life(base);
	pool_store_hook = NULL;
	return true;
}

TEST(a_node_that_ends_at_any_store_leaves_nothing_behind)
{
	bool complete = false;
	unsigned int n;
	u32 held;
	u64 base;

	for (n = 0; !complete; n++) {
		pool_begin();
		CHECK_EQ(pool_join(&node_a, 4, 0, "a", the_now), 0);
		CHECK_EQ(pool_alloc(&node_a, 3 * MODEL_CHUNK, &held, the_now), 3);
		base = pool_expose(&node_a, held, 3, 7);
		complete = life_until(n, base);
		pass(&node_a, 2 * MODEL_LEASE + MODEL_QUAR);
		CHECK(!pool_node_is_active(&node_a, 8));
		pool_free(&node_a, held, 3, the_now);
		model_close(&node_b);
		model_open(&node_b, the_mem, SIZE);
		join_again(&node_b, 8);
		the_now += MODEL_QUAR;
		pool_scrub(&node_b, the_now);
		CHECK_EQ(model_count_used(&node_b), 0);
		CHECK_EQ(node_a.corrupt + node_b.corrupt, 0);
		pool_end();
	}
	CHECK(n > 25);
	test_note("%u stores", n);
}
