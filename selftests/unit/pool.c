// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The protocol of a pool: format, slots, chunks, mail, and nodes that die at any store.
 *
 * SCI_TEST_ROUNDS: number of random words that a machine stores (default 200,000).
 */
#include <setjmp.h>
#include <sys/mman.h>

#include "selftests/unit/pool_model.h"

#define SIZE	(256u << 10)

/* ---- format ---- */

TEST(a_pool_is_formatted_and_opened)
{
	void *mem = model_memory(SIZE);
	struct pool p = { 0 };

	CHECK_EQ(pool_open(&p, mem, SIZE), -ENODATA);
	CHECK_EQ(model_format(mem, SIZE), 0);
	CHECK_EQ(pool_open(&p, mem, SIZE), 0);
	CHECK_EQ(p.form.size, SIZE);
	CHECK_EQ(p.form.slots, MODEL_SLOTS);
	CHECK_EQ(p.form.lease, MODEL_LEASE);
	CHECK(p.form.chunks > 5);
	CHECK(pool_chunk_offset(&p, p.form.chunks) <= SIZE);
	/* another chunk would not fit */
	CHECK(pool_chunk_offset(&p, p.form.chunks + 1) > SIZE - 2 * POOL_ALIGN);
	CHECK_EQ(pool_open(&p, mem, SIZE / 2), -EBADMSG);
	CHECK_EQ(pool_open(&p, mem, 0), -ENODATA);
	free(mem);
}

TEST(a_header_with_any_bit_changed_is_not_opened)
{
	uint8_t *mem = model_memory(SIZE);
	struct pool p = { 0 };
	size_t bit;

	CHECK_EQ(model_format(mem, SIZE), 0);
	for (bit = 0; bit < 8 * sizeof(struct pool_header); bit++) {
		mem[bit / 8] ^= 1 << bit % 8;
		CHECK(pool_open(&p, mem, SIZE) < 0);
		mem[bit / 8] ^= 1 << bit % 8;
	}
	CHECK_EQ(pool_open(&p, mem, SIZE), 0);
	free(mem);
}

/* Headers with a correct checksum describe tables outside of the pool. */
TEST(a_header_that_lies_is_not_opened)
{
	struct pool_header *h = model_memory(SIZE), good;
	struct pool p = { 0 };
	uint64_t state = 1;
	unsigned int i, opened = 0;

	CHECK_EQ(model_format(h, SIZE), 0);
	good = *h;
	for (i = 0; i < 100000; i++) {
		__le32 *words = (__le32 *)&h->size;
		uint32_t at = model_random(&state, 12);

		*h = good;
		words[at] = cpu_to_le32(model_random(&state, 2) ?
					1u << model_random(&state, 32) :
					model_random(&state, 1u << 31));
		h->crc = cpu_to_le32(pool_crc(words, 48));
		if (pool_open(&p, h, SIZE))
			continue;
		opened++;
		CHECK(pool_chunk_offset(&p, p.form.chunks) <= SIZE);
		CHECK((uint8_t *)pool_ring(&p, p.form.slots - 1, p.form.slots - 1) +
		      sizeof(struct pool_ring) <= (uint8_t *)h + p.form.data_at);
	}
	/* other times and ids are valid */
	CHECK(opened > 0 && opened < i / 2);
	free(h);
}

TEST(arguments_that_make_no_pool_are_refused)
{
	void *mem = model_memory(SIZE);

	CHECK_EQ(pool_format(mem, SIZE, 4095, 3, 1000, 10000, 1, 0), -EINVAL);
	CHECK_EQ(pool_format(mem, SIZE, 2048, 3, 1000, 10000, 1, 0), -EINVAL);
	CHECK_EQ(pool_format(mem, SIZE, 4096, 0, 1000, 10000, 1, 0), -EINVAL);
	CHECK_EQ(pool_format(mem, SIZE, 4096, 65, 1000, 10000, 1, 0), -EINVAL);
	CHECK_EQ(pool_format(mem, SIZE, 4096, 3, 0, 10000, 1, 0), -EINVAL);
	CHECK_EQ(pool_format(mem, SIZE, 4096, 3, 1000, 999, 1, 0), -EINVAL);
	CHECK_EQ(pool_format(mem, SIZE - 1, 4096, 3, 1000, 10000, 1, 0), -EINVAL);
	CHECK_EQ(pool_format(mem, 8192, 4096, 3, 1000, 10000, 1, 0), -EINVAL);
	CHECK_EQ(pool_format(mem, SIZE, 1 << 24, 3, 1000, 10000, 1, 0), -EINVAL);
	CHECK_EQ(pool_format(mem, SIZE, 4096, 3, 1000, 10000, 1, 2), -EINVAL);
	free(mem);
}

/* ---- slots ---- */

TEST(a_node_id_is_taken_once)
{
	void *mem = model_memory(SIZE);
	struct pool a, b;
	u64 now = 5;

	model_format(mem, SIZE);
	model_open(&a, mem, SIZE);
	model_open(&b, mem, SIZE);
	CHECK_EQ(pool_join(&a, 8, 0, "a", now), 0);
	CHECK_EQ(pool_slot_node(a.slot), 8);
	CHECK_EQ(pool_join(&b, 8, 0, "b", now), -EEXIST);
	CHECK_EQ(pool_join(&b, 7, 0, "b", now), -EINVAL);
	CHECK_EQ(pool_join(&b, 4 * MODEL_SLOTS + 4, 0, "b", now), -EINVAL);
	CHECK_EQ(pool_join(&b, 0, 3, "b", now), 0);
	CHECK_EQ(pool_slot_node(b.slot), 4);
	CHECK(pool_node_is_active(&a, 4) && pool_node_is_active(&a, 8));
	CHECK(!pool_node_is_active(&a, 12) && !pool_node_is_active(&a, 6));
	CHECK_EQ(pool_node_doorbell(&a, 4), 2);
	CHECK_EQ(pool_node_doorbell(&b, 8), -1);
	pool_leave(&a);
	CHECK(!pool_node_is_active(&b, 8));
	CHECK_EQ(pool_join(&a, 8, 0, "a", now), 0);
	CHECK_EQ(a.generation, MODEL_ID + 1);
	model_close(&a);
	model_close(&b);
	free(mem);
}

/* A machine hangs while the pool is formatted, and another one takes its node id. */
TEST(a_node_that_hung_while_the_pool_was_formatted_leaves_the_new_pool_alone)
{
	void *mem = model_memory(SIZE);
	uint8_t packet[POOL_PACKET] = { 1 };
	struct pool a, b;
	u32 held, first;

	model_format(mem, SIZE);
	model_open(&a, mem, SIZE);
	CHECK_EQ(pool_join(&a, 4, 0, "a", 5), 0);
	CHECK_EQ(pool_alloc(&a, MODEL_CHUNK, &held, 5), 1);
	CHECK_EQ(pool_format(mem, SIZE, MODEL_CHUNK, MODEL_SLOTS, MODEL_LEASE_MS, MODEL_QUAR_MS,
			     MODEL_ID + 1, 0), 0);
	model_open(&b, mem, SIZE);
	CHECK_EQ(pool_join(&b, 4, 0, "b", 5), 0);
	CHECK_EQ(pool_alloc(&b, MODEL_CHUNK, &first, 5), 1);
	CHECK_EQ(first, held);

	CHECK_EQ(pool_mail_send(&a, 4, packet), -EHOSTUNREACH);
	pool_free(&a, held, 1, 5);
	CHECK_EQ(pool_beat(&a, 6), -ESTALE);
	pool_leave(&a);
	CHECK_EQ(pool_join(&a, 8, 0, "a", 6), -ESTALE);

	CHECK_EQ(pool_beat(&b, 6), 0);
	CHECK_EQ(pool_get32(&pool_slot(&b, 0)->dropped), 0);
	CHECK(!pool_mail_receive(&b, 4, packet));
	CHECK_EQ(model_count_used(&b), 1);
	model_close(&a);
	model_close(&b);
	free(mem);
}

#define LARGE	(16u << 20)
#define MANY	3500u	/* chunks: their words do not fit into the tables of the new pool */

static unsigned int stores;

static void count_hook(void)
{
	stores++;
}

/* Fill the data. Each line differs from the next one: a ring seems to have packets there. */
static void fill_data(uint8_t *mem, u64 at)
{
	for (; at < LARGE; at++)
		mem[at] = at / POOL_LINE % 2;
}

/* The new pool has fewer chunks and slots, so that the old tables are in its data. */
TEST(a_node_that_hung_while_the_pool_got_other_tables_stores_nothing)
{
	void *mem = model_memory(LARGE);
	u32 many, held, chunk, first, chunks;
	uint8_t packet[POOL_PACKET];
	struct pool a, b;

	model_format(mem, LARGE);
	model_open(&a, mem, LARGE);
	CHECK_EQ(pool_join(&a, 8, 0, "a", 5), 0);
	CHECK_EQ(pool_alloc(&a, MANY * MODEL_CHUNK, &many, 5), MANY);
	CHECK_EQ(pool_alloc(&a, MODEL_CHUNK, &held, 5), 1);
	CHECK_EQ(pool_format(mem, LARGE, 2 * MODEL_CHUNK, 1, MODEL_LEASE_MS, MODEL_QUAR_MS,
			     MODEL_ID + 1, 0), 0);
	model_open(&b, mem, LARGE);
	CHECK(b.form.data_at < a.form.map_at);
	fill_data(mem, b.form.data_at);

	pool_store_hook = count_hook;
	CHECK(!pool_mail_receive(&a, 4, packet));
	CHECK_EQ(stores, 0);
	CHECK_EQ(pool_alloc(&a, MODEL_CHUNK, &first, 5), -ENOSPC);
	CHECK_EQ(stores, 0);
	pool_expose(&a, held, 1, 5);
	CHECK_EQ(stores, 0);
	/* the map words of so many chunks are in two lines */
	for (chunk = held - 2 * POOL_SHARE_UNIT; chunk < held; chunk++)
		CHECK_EQ(pool_map(&a, 4, chunk, &first, &chunks), -ENOENT);
	CHECK_EQ(stores, 0);
	pool_hide(&a, held, 1);
	for (chunk = held - 2 * POOL_SHARE_UNIT; chunk <= held; chunk++)
		pool_free(&a, chunk, 1, 5);
	CHECK_EQ(pool_beat(&a, 6), -ESTALE);
	pool_leave(&a);
	CHECK_EQ(stores, 0);
	pool_store_hook = NULL;
	model_close(&a);
	model_close(&b);
	free(mem);
}

/* Let @p watch the other nodes for @time, in steps. */
static void pass(struct pool *p, u64 *now, u64 time)
{
	u64 end = *now + time;

	while (*now < end) {
		*now += MODEL_LEASE / 4;
		CHECK_EQ(pool_beat(p, *now), 0);
	}
}

TEST(a_silent_node_is_expelled_after_its_lease)
{
	void *mem = model_memory(SIZE);
	struct pool a, b;
	u64 now = 5;

	model_format(mem, SIZE);
	model_open(&a, mem, SIZE);
	model_open(&b, mem, SIZE);
	CHECK_EQ(pool_join(&a, 4, 0, "a", now), 0);
	CHECK_EQ(pool_join(&b, 8, 0, "b", now), 0);
	pass(&a, &now, MODEL_LEASE * 3 / 4);
	CHECK(pool_node_is_active(&a, 8));
	CHECK_EQ(pool_beat(&b, now), 0);
	pass(&a, &now, MODEL_LEASE * 3 / 4);
	CHECK(pool_node_is_active(&a, 8));
	pass(&a, &now, MODEL_LEASE);
	CHECK(!pool_node_is_active(&a, 8));
	CHECK_EQ(pool_beat(&b, now), -ESTALE);
	pool_leave(&b);
	CHECK_EQ(pool_join(&b, 8, 0, "b", now), 0);
	CHECK_EQ(pool_beat(&b, now), 0);
	model_close(&a);
	model_close(&b);
	free(mem);
}

/* A node that has hung does not know yet that another node has its slot's memory. */
TEST(an_expelled_node_neither_takes_nor_exposes_memory)
{
	void *mem = model_memory(SIZE);
	u32 first, again, chunks;
	struct pool a, b;
	u64 now = 5, base;

	model_format(mem, SIZE);
	model_open(&a, mem, SIZE);
	model_open(&b, mem, SIZE);
	CHECK_EQ(pool_join(&a, 4, 0, "a", now), 0);
	CHECK_EQ(pool_join(&b, 8, 0, "b", now), 0);
	CHECK(pool_alloc(&b, 1, &first, now) > 0);
	pass(&a, &now, MODEL_LEASE * 2);
	CHECK(!pool_node_is_active(&a, 8));
	CHECK_EQ(pool_alloc(&b, 1, &again, now), -ENOSPC);
	stores = 0;
	pool_store_hook = count_hook;
	base = pool_expose(&b, first, 1, 77);
	pool_store_hook = NULL;
	CHECK_EQ(stores, 0);
	CHECK_EQ(pool_map(&b, 8, base, &again, &chunks), -ENOENT);
	model_close(&a);
	model_close(&b);
	free(mem);
}

/* A node that has been suspended itself must not expel nodes that it has not watched. */
TEST(a_node_that_was_away_expels_nobody)
{
	void *mem = model_memory(SIZE);
	struct pool a, b;
	u64 now = 5;

	model_format(mem, SIZE);
	model_open(&a, mem, SIZE);
	model_open(&b, mem, SIZE);
	CHECK_EQ(pool_join(&a, 4, 0, "a", now), 0);
	CHECK_EQ(pool_join(&b, 8, 0, "b", now), 0);
	now += 100 * MODEL_LEASE;
	CHECK_EQ(pool_beat(&a, now), 0);
	CHECK(pool_node_is_active(&a, 8));
	model_close(&a);
	model_close(&b);
	free(mem);
}

/* ---- chunks ---- */

TEST(memory_is_free_when_nobody_maps_it)
{
	void *mem = model_memory(SIZE);
	struct pool a, b;
	u64 now = 5, base;
	u32 first, got, chunks;

	model_format(mem, SIZE);
	model_open(&a, mem, SIZE);
	model_open(&b, mem, SIZE);
	pool_join(&a, 4, 0, "a", now);
	pool_join(&b, 8, 0, "b", now);
	CHECK_EQ(pool_alloc(&a, 3 * MODEL_CHUNK - 1, &first, now), 3);
	CHECK_EQ(pool_map(&b, 4, first, &got, &chunks), -ENOENT);
	base = pool_expose(&a, first, 3, 1234);
	CHECK_EQ(pool_map(&b, 8, base, &got, &chunks), -ENOENT);
	CHECK_EQ(pool_map(&b, 4, base + (1ull << 32), &got, &chunks), -ENOENT);
	CHECK_EQ(pool_map(&b, 4, base + 1, &got, &chunks), -ENOENT);
	CHECK_EQ(pool_map(&b, 4, base, &got, &chunks), 0);
	CHECK_EQ(got, first);
	CHECK_EQ(chunks, 3);
	pool_hide(&a, first, 3);
	CHECK_EQ(pool_map(&b, 4, base, &got, &chunks), -ENOENT);
	pool_free(&a, first, 3, now);
	CHECK_EQ(pool_scrub(&a, now), 0);
	CHECK_EQ(model_count_used(&a), 3);
	pool_unmap(&b, got);
	CHECK_EQ(pool_scrub(&b, now), 0);	/* the owner is alive and has to do it */
	CHECK_EQ(pool_scrub(&a, now), 3);
	CHECK_EQ(model_count_used(&a), 0);
	CHECK_EQ(a.corrupt + b.corrupt, 0);
	model_close(&a);
	model_close(&b);
	free(mem);
}

TEST(a_dead_nodes_memory_comes_back_after_the_quarantine)
{
	void *mem = model_memory(SIZE);
	struct pool a, b;
	u64 now = 5, base;
	u32 first, got, chunks;

	model_format(mem, SIZE);
	model_open(&a, mem, SIZE);
	model_open(&b, mem, SIZE);
	pool_join(&a, 4, 0, "a", now);
	pool_join(&b, 8, 0, "b", now);
	/* b dies while it owns memory and maps memory of a */
	CHECK_EQ(pool_alloc(&a, MODEL_CHUNK, &first, now), 1);
	base = pool_expose(&a, first, 1, 99);
	CHECK_EQ(pool_map(&b, 4, base, &got, &chunks), 0);
	CHECK_EQ(pool_alloc(&b, 4 * MODEL_CHUNK, &got, now), 4);
	pass(&a, &now, 2 * MODEL_LEASE);
	CHECK(!pool_node_is_active(&a, 8));
	pool_free(&a, first, 1, now);
	CHECK_EQ(pool_scrub(&a, now), 0);
	CHECK_EQ(model_count_used(&a), 5);
	pass(&a, &now, MODEL_QUAR);
	CHECK_EQ(pool_scrub(&a, now), 5);
	CHECK_EQ(model_count_used(&a), 0);
	model_close(&a);
	model_close(&b);
	free(mem);
}

TEST(a_node_that_has_let_go_has_no_quarantine)
{
	void *mem = model_memory(SIZE);
	struct pool a, b;
	u64 now = 5;
	u32 first;

	model_format(mem, SIZE);
	model_open(&a, mem, SIZE);
	model_open(&b, mem, SIZE);
	pool_join(&a, 4, 0, "a", now);
	pool_join(&b, 8, 0, "b", now);
	CHECK_EQ(pool_alloc(&b, 4 * MODEL_CHUNK, &first, now), 4);
	pool_leave(&b);
	CHECK_EQ(pool_scrub(&a, now), 4);
	model_close(&a);
	model_close(&b);
	free(mem);
}

TEST(a_full_pool_says_so)
{
	void *mem = model_memory(SIZE);
	struct pool a;
	u64 now = 5;
	u32 first, all;

	model_format(mem, SIZE);
	model_open(&a, mem, SIZE);
	all = a.form.chunks;
	pool_join(&a, 4, 0, "a", now);
	CHECK_EQ(pool_alloc(&a, (u64)(all + 1) * MODEL_CHUNK, &first, now), -ENOSPC);
	CHECK_EQ(pool_alloc(&a, UINT64_MAX, &first, now), -ENOSPC);
	CHECK_EQ(pool_alloc(&a, 0, &first, now), -ENOSPC);
	CHECK_EQ(pool_alloc(&a, (u64)all * MODEL_CHUNK, &first, now), all);
	CHECK_EQ(pool_alloc(&a, 1, &first, now), -ENOSPC);
	pool_free(&a, 0, all, now);
	CHECK_EQ(pool_alloc(&a, (u64)all * MODEL_CHUNK, &first, now), all);
	model_close(&a);
	free(mem);
}

/* Another machine stores into each run of free chunks as soon as its first chunk is taken. */
static struct pool the_pool;
static unsigned int conflicts;

static void conflict_hook(void)
{
	u32 chunk;

	for (chunk = 0; chunk + 1 < the_pool.form.chunks; chunk++)
		if (the_pool.own[chunk] == 0 && pool_get64(&pool_chunk(&the_pool, chunk)->word) &&
		    !pool_get64(&pool_chunk(&the_pool, chunk + 1)->word)) {
			pool_chunk(&the_pool, chunk + 1)->word = cpu_to_le64(~0ull);
			conflicts++;
			return;
		}
}

TEST(an_allocation_with_a_conflict_in_each_run_ends)
{
	void *mem = model_memory(8 * SIZE);
	u32 first;

	model_format(mem, 8 * SIZE);
	model_open(&the_pool, mem, 8 * SIZE);
	CHECK_EQ(pool_join(&the_pool, 4, 0, "a", 5), 0);
	pool_store_hook = conflict_hook;
	CHECK_EQ(pool_alloc(&the_pool, 2 * MODEL_CHUNK, &first, 5), -ENOSPC);
	pool_store_hook = NULL;
	CHECK(conflicts >= 8 && conflicts < 100);
	model_close(&the_pool);
	free(mem);
}

/* A chunk's word has 22 bits for the length of an allocation. */
TEST(an_allocation_is_not_longer_than_its_word_can_say)
{
	const u64 size = 17ull << 30;
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	u32 first, chunk, chunks;
	struct pool p;
	u64 base;

	CHECK(mem != MAP_FAILED);
	CHECK_EQ(pool_format(mem, size, MODEL_CHUNK, 1, MODEL_LEASE_MS, MODEL_QUAR_MS, 1, 0), 0);
	model_open(&p, mem, size);
	CHECK_EQ(p.form.chunks, POOL_CHUNKS_MAX);
	CHECK_EQ(pool_join(&p, 4, 0, "a", 5), 0);
	CHECK_EQ(pool_alloc(&p, (u64)POOL_CHUNKS_MAX * MODEL_CHUNK, &first, 5), -ENOSPC);
	CHECK_EQ(pool_alloc(&p, (u64)POOL_LENGTH_MAX * MODEL_CHUNK, &first, 5), POOL_LENGTH_MAX);
	base = pool_expose(&p, first, POOL_LENGTH_MAX, 7);
	CHECK_EQ(pool_map(&p, 4, base, &chunk, &chunks), 0);
	CHECK_EQ(chunks, POOL_LENGTH_MAX);
	model_close(&p);
	munmap(mem, size);
}

/* ---- mail ---- */

TEST(mail_arrives_in_order_until_the_ring_is_full)
{
	void *mem = model_memory(SIZE);
	uint8_t packet[POOL_PACKET];
	struct pool a, b;
	unsigned int i, round;
	u32 bell;

	model_format(mem, SIZE);
	model_open(&a, mem, SIZE);
	model_open(&b, mem, SIZE);
	pool_join(&a, 4, 0, "a", 5);
	pool_join(&b, 8, 0, "b", 5);
	bell = pool_bell(&b);
	for (round = 0; round < 5; round++) {
		for (i = 0; i < POOL_MAIL_SLOTS; i++) {
			memset(packet, (int)(round + i), sizeof(packet));
			CHECK_EQ(pool_mail_send(&a, 8, packet), 0);
		}
		CHECK_EQ(pool_mail_send(&a, 8, packet), -EAGAIN);
		for (i = 0; i < POOL_MAIL_SLOTS; i++) {
			CHECK(pool_mail_receive(&b, 4, packet));
			CHECK_EQ(packet[0], round + i);
			CHECK_EQ(packet[POOL_PACKET - 1], round + i);
		}
		CHECK(!pool_mail_receive(&b, 4, packet));
	}
	CHECK(pool_bell(&b) != bell);
	CHECK_EQ(pool_mail_send(&a, 6, packet), -EHOSTUNREACH);
	CHECK_EQ(pool_mail_send(&a, 400, packet), -EHOSTUNREACH);
	CHECK(!pool_mail_receive(&b, 400, packet));
	CHECK_EQ(b.corrupt, 0);
	model_close(&a);
	model_close(&b);
	free(mem);
}

TEST(torn_mail_is_thrown_away)
{
	void *mem = model_memory(SIZE);
	uint8_t packet[POOL_PACKET] = { 1 };
	struct pool a, b;

	model_format(mem, SIZE);
	model_open(&a, mem, SIZE);
	model_open(&b, mem, SIZE);
	pool_join(&a, 4, 0, "a", 5);
	pool_join(&b, 8, 0, "b", 5);
	CHECK_EQ(pool_mail_send(&a, 8, packet), 0);
	pool_ring(&a, 0, 1)->mail[0].packet[7] ^= 1;
	packet[0] = 2;
	CHECK_EQ(pool_mail_send(&a, 8, packet), 0);
	CHECK(pool_mail_receive(&b, 4, packet));
	CHECK_EQ(packet[0], 2);
	CHECK_EQ(b.corrupt, 1);
	pool_set32(&pool_ring(&a, 0, 1)->head, 4711);
	CHECK(!pool_mail_receive(&b, 4, packet));
	CHECK_EQ(b.corrupt, 2);
	CHECK_EQ(pool_mail_send(&a, 8, packet), 0);
	CHECK(pool_mail_receive(&b, 4, packet));
	model_close(&a);
	model_close(&b);
	free(mem);
}

/* ---- a node that dies at a store ---- */

static jmp_buf crash;
static unsigned int stores_left;

static void crash_hook(void)
{
	if (!stores_left--)
		longjmp(crash, 1);
}

/* Run @fn up to its store number @n. Return true if it ends before. */
static bool run_until(unsigned int n, void (*fn)(void))
{
	if (setjmp(crash)) {
		pool_store_hook = NULL;
		return false;
	}
	stores_left = n;
	pool_store_hook = crash_hook;
	fn();
	pool_store_hook = NULL;
	return true;
}

static void *the_mem;
static struct pool the_node, the_other;
static u64 the_now;
static u32 the_held;

static void format_again(void)
{
	pool_format(the_mem, SIZE, 8192, 2, MODEL_LEASE_MS, MODEL_QUAR_MS, 78, 0);
}

TEST(a_formatter_that_ends_leaves_no_pool)
{
	unsigned int n;

	the_mem = model_memory(SIZE);
	for (n = 0;; n++) {
		struct pool p = { 0 };
		bool complete;

		model_format(the_mem, SIZE);
		complete = run_until(n, format_again);
		if (complete)
			break;
		if (!n)
			CHECK_EQ(pool_open(&p, the_mem, SIZE), 0);
		else
			CHECK_EQ(pool_open(&p, the_mem, SIZE), -ENODATA);
	}
	CHECK(n > 3);
	test_note("%u stores", n);
	free(the_mem);
}

/* All actions of a node, which dies at any of its stores. */
static void whole_life(void)
{
	u64 base;
	u32 first, second, got, chunks;

	if (pool_join(&the_node, 8, 0, "victim", the_now))
		return;
	pool_alloc(&the_node, 5 * MODEL_CHUNK, &first, the_now);
	pool_alloc(&the_node, 2 * MODEL_CHUNK, &second, the_now);
	base = pool_expose(&the_node, second, 2, 55);
	pool_beat(&the_node, the_now);
	pool_map(&the_node, 8, base, &got, &chunks);
	pool_map(&the_node, 4, 7ull << 32 | the_held, &got, &chunks);
	pool_free(&the_node, first, 5, the_now);
	pool_hide(&the_node, second, 2);
	pool_free(&the_node, second, 2, the_now);
	pool_unmap(&the_node, second);
	pool_scrub(&the_node, the_now);
	pool_unmap(&the_node, the_held);
	pool_leave(&the_node);
}

static void life_begin(void)
{
	CHECK_EQ(model_format(the_mem, SIZE), 0);
	model_open(&the_node, the_mem, SIZE);
	model_open(&the_other, the_mem, SIZE);
	the_now = 5;
	CHECK_EQ(pool_join(&the_other, 4, 0, "other", the_now), 0);
	CHECK_EQ(pool_alloc(&the_other, 3 * MODEL_CHUNK, &the_held, the_now), 3);
	pool_expose(&the_other, the_held, 3, 7);
}

/* The other node gets all memory back, and the dead node can join again. */
static void life_check_recovery(void)
{
	u32 first;

	pass(&the_other, &the_now, 2 * MODEL_LEASE + MODEL_QUAR);
	CHECK(!pool_node_is_active(&the_other, 8));
	pool_scrub(&the_other, the_now);
	CHECK_EQ(model_count_used(&the_other), 3);
	pool_free(&the_other, the_held, 3, the_now);
	CHECK_EQ(model_count_used(&the_other), 0);
	model_close(&the_node);
	model_open(&the_node, the_mem, SIZE);
	CHECK_EQ(pool_join(&the_node, 8, 0, "again", the_now), 0);
	CHECK_EQ(pool_alloc(&the_node, (u64)the_node.form.chunks * MODEL_CHUNK, &first,
			    the_now), the_node.form.chunks);
	CHECK_EQ(the_other.corrupt, 0);
	model_close(&the_node);
	model_close(&the_other);
}

TEST(a_node_that_ends_at_any_store_leaves_nothing_behind)
{
	unsigned int n;
	bool complete = false;

	the_mem = model_memory(SIZE);
	for (n = 0; !complete; n++) {
		life_begin();
		complete = run_until(n, whole_life);
		life_check_recovery();
	}
	CHECK(n > 30);
	test_note("%u stores", n);
	free(the_mem);
}

/* The node that cleans up also dies, at any store, and a third node continues. */
static void clean_up(void)
{
	u64 end = the_now + 2 * MODEL_LEASE + MODEL_QUAR;

	for (; the_now < end; the_now += MODEL_LEASE / 4)
		pool_beat(&the_other, the_now);
	pool_scrub(&the_other, the_now);
}

TEST(a_node_that_ends_while_it_cleans_up_leaves_nothing_behind)
{
	struct pool third;
	unsigned int n, at;
	bool complete;

	the_mem = model_memory(SIZE);
	for (at = 5; at < 40; at += 7)
		for (n = 0, complete = false; !complete; n++) {
			life_begin();
			model_open(&third, the_mem, SIZE);
			run_until(at, whole_life);
			complete = run_until(n, clean_up);
			CHECK_EQ(pool_join(&third, 12, 0, "third", the_now), 0);
			pass(&third, &the_now, 2 * MODEL_LEASE + MODEL_QUAR);
			pool_scrub(&third, the_now);
			CHECK_EQ(model_count_used(&third), 0);
			model_close(&the_node);
			model_close(&the_other);
			model_close(&third);
		}
	free(the_mem);
}

/* ---- a machine that stores random words ---- */

static void corrupt_word(uint8_t *mem, u64 bytes, uint64_t *state)
{
	u64 value = model_random(state, 1u << 31), at;

	switch (model_random(state, 4)) {
	case 0:
		value = 0;
		break;
	case 1:
		value = UINT64_MAX;
		break;
	case 2:
		value |= value << 32;
		break;
	case 3:		/* change one bit */
		at = model_random(state, bytes / 8) * 8;
		memcpy(&value, mem + at, 8);
		value ^= 1ull << model_random(state, 64);
		memcpy(mem + at, &value, 8);
		return;
	}
	at = POOL_ALIGN + model_random(state, (bytes - POOL_ALIGN) / 8) * 8;
	memcpy(mem + at, &value, 8);
}

#define RUNS	16

/* If a random word has expelled the node, give up its maps and join again. */
static void beat_with_maps(struct pool *p, const u32 *maps, u32 *n_maps, u64 now)
{
	if (!pool_beat(p, now))
		return;
	while (*n_maps)
		pool_unmap(p, maps[--*n_maps]);
	pool_leave(p);
	pool_join(p, 8, 0, "b", now);
}

/*
 * Two nodes use the pool. Whatever they read there, they access no memory outside of it, and a
 * node does not get memory that it already has.
 */
static void check_nonsense(u64 size)
{
	const char *rounds = getenv("SCI_TEST_ROUNDS");
	uint8_t packet[POOL_PACKET] = { 0 }, *taken;
	u32 first[RUNS] = { 0 }, maps[RUNS], n_maps = 0, got, chunks, i, c;
	int length[RUNS] = { 0 }, n;
	u64 now = 5, base = 0, step;
	u64 corruptions = rounds ? strtoul(rounds, NULL, 10) : test_calls(200000);
	uint64_t state = 9;
	struct pool a, b;

	the_mem = model_memory(size);
	model_format(the_mem, size);
	model_open(&a, the_mem, size);
	model_open(&b, the_mem, size);
	taken = calloc(a.form.chunks, 1);
	CHECK(taken != NULL);
	pool_join(&a, 4, 0, "a", now);
	pool_join(&b, 8, 0, "b", now);
	for (step = 0; step < corruptions; step++) {
		corrupt_word(the_mem, a.form.data_at, &state);
		now += model_random(&state, 2) * MODEL_LEASE / 3;
		i = model_random(&state, RUNS);
		switch (model_random(&state, 8)) {
		case 0:
			if (length[i])
				break;
			n = pool_alloc(&a, (1 + model_random(&state, 4)) * MODEL_CHUNK,
				       &first[i], now);
			if (n < 0)
				break;
			CHECK(first[i] + (u32)n <= a.form.chunks);
			for (c = 0; c < (u32)n; c++) {
				CHECK(!taken[first[i] + c]);
				taken[first[i] + c] = 1;
			}
			length[i] = n;
			break;
		case 1:
			if (length[i])
				base = pool_expose(&a, first[i], length[i], step);
			break;
		case 2:
			if (length[i])
				pool_free(&a, first[i], length[i], now);
			memset(taken + first[i], 0, length[i]);
			length[i] = 0;
			break;
		case 3:
			if (n_maps == RUNS || !b.generation ||
			    pool_map(&b, 4, base, &got, &chunks))
				break;
			CHECK(chunks && got + chunks <= b.form.chunks);
			maps[n_maps++] = got;
			break;
		case 4:
			if (n_maps)
				pool_unmap(&b, maps[--n_maps]);
			break;
		case 5:
			pool_mail_send(&a, 8, packet);
			pool_mail_receive(&b, 4, packet);
			break;
		case 6:
			pool_scrub(&a, now);
			pool_scrub(&b, now);
			pool_node_doorbell(&a, 8);
			break;
		case 7:
			beat_with_maps(&b, maps, &n_maps, now);
			if (!pool_beat(&a, now))
				break;
			/* expelled by a random word: the node gives up all memory */
			for (i = 0; i < RUNS; i++)
				if (length[i]) {
					pool_free(&a, first[i], length[i], now);
					memset(taken + first[i], 0, length[i]);
					length[i] = 0;
				}
			pool_leave(&a);
			if (pool_join(&a, 0, 0, "a", now)) {
				model_format(the_mem, size);
				pool_join(&a, 4, 0, "a", now);
			}
			break;
		}
	}
	CHECK(a.corrupt + b.corrupt > 0);
	free(taken);
	model_close(&a);
	model_close(&b);
	free(the_mem);
}

TEST(nonsense_in_the_pool_does_no_harm_to_its_users)
{
	check_nonsense(SIZE);
}

TEST(nonsense_does_no_harm_where_caches_are_not_coherent)
{
	model_flags = POOL_INCOHERENT;
	check_nonsense(2 * SIZE);
}
