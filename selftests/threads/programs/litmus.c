// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * usage: litmus atomics|locks|barriers
 *
 * Litmus tests: four threads, each on its own node if there are four nodes, load and store a few
 * words. The program counts the outcomes that the memory model forbids.
 *
 *	mp	message passing: a thread that sees the flag sees the data
 *	sb	store buffering: two threads each store one word and load the other one; at
 *		least one of them sees the store of the other
 *	iriw	independent reads of independent writes: two readers agree on the order of
 *		two stores
 *	co	coherence: two readers that each load a word twice agree on the order of two
 *		stores to it, and no thread sees an older value after a newer one
 *
 * Words are accessed by atomic instructions, or with a lock for each word. With "barriers", plain
 * stores and plain loads are separated by a barrier: the loads must see all stores.
 *
 * A round is one instance of a test. The threads run a batch of rounds at their own pace, and meet.
 * Then each takes the next thread's role. SCI_TEST_ROUNDS: rounds of each test (default 8192).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS	4u
#define BATCH	512u

/* A word and its lock, in a cache line without other words. */
struct word {
	_Alignas(64) pthread_mutex_t lock;
	union {
		_Atomic uint32_t atomic;
		uint32_t plain;
	};
};

static struct round {
	struct word x, y;
	uint32_t saw[THREADS][2];
} rounds[BATCH];

static pthread_barrier_t barrier;
static unsigned long batches, forbidden;

/* How a thread accesses words, one after the other. */
struct kind {
	const char *name;
	void (*store)(struct word *w, uint32_t v);
	uint32_t (*load)(struct word *w);
	bool meet;		/* a barrier separates stores and loads */
};

static void atomic_store_word(struct word *w, uint32_t v)
{
	atomic_store(&w->atomic, v);
}

static uint32_t atomic_load_word(struct word *w)
{
	return atomic_load(&w->atomic);
}

static void locked_store(struct word *w, uint32_t v)
{
	pthread_mutex_lock(&w->lock);
	w->plain = v;
	pthread_mutex_unlock(&w->lock);
}

static uint32_t locked_load(struct word *w)
{
	uint32_t v;

	pthread_mutex_lock(&w->lock);
	v = w->plain;
	pthread_mutex_unlock(&w->lock);
	return v;
}

static void plain_store(struct word *w, uint32_t v)
{
	w->plain = v;
}

static uint32_t plain_load(struct word *w)
{
	return w->plain;
}

static const struct kind kinds[] = {
	{ "atomics", atomic_store_word, atomic_load_word, false },
	{ "locks", locked_store, locked_load, false },
	{ "barriers", plain_store, plain_load, true },
};
static const struct kind *kind;

/* ---- tests: the stores of a role, its loads, and the verdict on a round ---- */

struct test {
	const char *name;
	void (*stores)(struct round *r, unsigned int role);
	void (*loads)(struct round *r, unsigned int role);
	bool (*forbids)(const struct round *r);
};

static void mp_stores(struct round *r, unsigned int role)
{
	if (role)
		return;
	r->x.plain = 1;		/* the data word has no lock and is not atomic */
	kind->store(&r->y, 1);
}

static void mp_loads(struct round *r, unsigned int role)
{
	if (role != 1)
		return;
	r->saw[1][0] = kind->load(&r->y);
	r->saw[1][1] = r->saw[1][0] ? r->x.plain : 1;
}

static bool mp_forbids(const struct round *r)
{
	return !r->saw[1][1] || (kind->meet && !r->saw[1][0]);
}

static void sb_stores(struct round *r, unsigned int role)
{
	if (role < 2)
		kind->store(role ? &r->y : &r->x, 1);
}

static void sb_loads(struct round *r, unsigned int role)
{
	if (role < 2)
		r->saw[role][0] = kind->load(role ? &r->x : &r->y);
}

static bool sb_forbids(const struct round *r)
{
	uint32_t n = r->saw[0][0] + r->saw[1][0];

	return kind->meet ? n != 2 : !n;
}

static void iriw_loads(struct round *r, unsigned int role)
{
	if (role < 2)
		return;
	r->saw[role][0] = kind->load(role == 2 ? &r->x : &r->y);
	r->saw[role][1] = kind->load(role == 2 ? &r->y : &r->x);
}

static bool iriw_forbids(const struct round *r)
{
	const uint32_t *a = r->saw[2], *b = r->saw[3];

	return kind->meet ? a[0] + a[1] + b[0] + b[1] != 4 :
			    a[0] && !a[1] && b[0] && !b[1];
}

/* With barriers only one thread stores: two plain stores at once would be a race. */
static void co_stores(struct round *r, unsigned int role)
{
	if (role < (kind->meet ? 1 : 2))
		kind->store(&r->x, role + 1);
}

static void co_loads(struct round *r, unsigned int role)
{
	if (role < 2)
		return;
	r->saw[role][0] = kind->load(&r->x);
	r->saw[role][1] = kind->load(&r->x);
}

static bool co_forbids(const struct round *r)
{
	const uint32_t *a = r->saw[2], *b = r->saw[3];

	if (kind->meet)
		return a[0] != 1 || a[1] != 1 || b[0] != 1 || b[1] != 1;
	return (a[0] && !a[1]) || (b[0] && !b[1]) ||
	       (a[0] == 1 && a[1] == 2 && b[0] == 2 && b[1] == 1) ||
	       (a[0] == 2 && a[1] == 1 && b[0] == 1 && b[1] == 2);
}

static const struct test tests[] = {
	{ "mp", mp_stores, mp_loads, mp_forbids },
	{ "sb", sb_stores, sb_loads, sb_forbids },
	{ "iriw", sb_stores, iriw_loads, iriw_forbids },
	{ "co", co_stores, co_loads, co_forbids },
};
static const struct test *test;

/* ---- rounds ---- */

static void rounds_clear(void)
{
	for (unsigned int i = 0; i < BATCH; i++) {
		rounds[i].x.plain = 0;
		rounds[i].y.plain = 0;
		memset(rounds[i].saw, 0, sizeof(rounds[i].saw));
	}
}

static void rounds_judge(void)
{
	for (unsigned int i = 0; i < BATCH; i++)
		forbidden += test->forbids(&rounds[i]);
}

/* Vary the pace of the threads, so that they meet in different words. */
static void dawdle(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	for (volatile uint32_t n = *seed >> 28; n; n--)
		;
}

static void batch_run(unsigned int role, uint32_t *seed)
{
	for (unsigned int i = 0; i < BATCH; i++) {
		test->stores(&rounds[i], role);
		if (!kind->meet)
			test->loads(&rounds[i], role);
		dawdle(seed);
	}
	if (!kind->meet)
		return;
	pthread_barrier_wait(&barrier);
	for (unsigned int i = 0; i < BATCH; i++)
		test->loads(&rounds[i], role);
}

static void *body(void *arg)
{
	unsigned int me = (unsigned int)(uintptr_t)arg;
	uint32_t seed = me + 1;

	for (unsigned long b = 0; b < batches; b++) {
		if (!me)
			rounds_clear();
		pthread_barrier_wait(&barrier);
		batch_run((unsigned int)(me + b) % THREADS, &seed);
		pthread_barrier_wait(&barrier);
		if (!me)
			rounds_judge();
	}
	return NULL;
}

static void test_run(void)
{
	pthread_t t[THREADS];

	forbidden = 0;
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, body, (void *)i))
			exit(1);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	printf("%s with %s: %lu forbidden outcomes in %lu rounds\n", test->name, kind->name,
	       forbidden, batches * BATCH);
}

int main(int argc, char **argv)
{
	const char *n = getenv("SCI_TEST_ROUNDS");
	unsigned long bad = 0;

	batches = ((n ? strtoul(n, NULL, 0) : 8192) + BATCH - 1) / BATCH;
	for (size_t i = 0; argc == 2 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(argv[1], kinds[i].name))
			kind = &kinds[i];
	if (!kind)
		return 2;
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (unsigned int i = 0; i < BATCH; i++) {
		pthread_mutex_init(&rounds[i].x.lock, NULL);
		pthread_mutex_init(&rounds[i].y.lock, NULL);
	}
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		test = &tests[i];
		test_run();
		bad += forbidden;
	}
	return bad != 0;
}
