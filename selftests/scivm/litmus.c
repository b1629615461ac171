// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Litmus tests: several members load and store a few words, and the memory model must allow each
 * outcome. Mapped ranges are tested with atomic instructions, ranges of both modes with locks and
 * barriers that acquire and release.
 *
 * SCI_TEST_ROUNDS: rounds of each test of a mapped range; a cached range has a tenth.
 */

#include "selftests/scivm/scivm.h"

#include <stdatomic.h>

/* Symmetric memory. The words of rank 0 are used. */
struct shared {
	uint64_t lock;			/* of ... */
	struct sci_vm_time time;	/* ... this time, which goes from owner to owner */
};

struct litmus {
	struct member m;
	struct shared *shared;
	volatile uint32_t *x;		/* words under test, in different pages */
	volatile uint32_t *y;
	uint32_t rounds;
};

static void litmus_open(struct litmus *l, uint32_t mode)
{
	struct sci_vm_range range = {
		.size = sizeof(range), .policy = SCI_VM_ROUND_ROBIN, .mode = mode, .page = PAGE,
	};
	void *p;

	setenv("SCI_VM", "auto", 1);
	member_open(&l->m, NULL);
	CHECK_EQ(sci_team_alloc(l->m.team, sizeof(*l->shared), 0, &p), 0);
	l->shared = p;
	memset(p, 0, sizeof(*l->shared));
	l->x = alloc_for_all(&l->m, 2 * PAGE, &range);
	l->y = l->x + PAGE / 4;
	meet(&l->m);
}

static void lock(struct litmus *l)
{
	struct sci_vm_time time;

	CHECK_EQ(sci_team_lock(l->m.team, &l->shared->lock, -1), 0);
	CHECK_EQ(sci_team_get(l->m.team, &time, &l->shared->time, sci_vm_time_size(l->m.vm), 0),
		 0);
	CHECK_EQ(sci_vm_acquire(l->m.vm, &time), 0);
}

static void unlock(struct litmus *l)
{
	struct sci_vm_time time;

	CHECK_EQ(sci_vm_release(l->m.vm, &time), 0);
	CHECK_EQ(sci_team_put(l->m.team, &l->shared->time, &time, sci_vm_time_size(l->m.vm), 0),
		 0);
	CHECK_EQ(sci_team_unlock(l->m.team, &l->shared->lock), 0);
}

static uint32_t locked_read(struct litmus *l, volatile uint32_t *at)
{
	uint32_t v;

	lock(l);
	v = *at;
	unlock(l);
	return v;
}

static void locked_write(struct litmus *l, volatile uint32_t *at, uint32_t v)
{
	lock(l);
	*at = v;
	unlock(l);
}

/* Message passing: a member that sees the flag sees the data. Only the flag has a lock. */
static void message_passing(struct litmus *l)
{
	for (uint32_t i = 1; i <= l->rounds; i++) {
		meet(&l->m);
		if (!l->m.rank) {
			*l->x = i;
			locked_write(l, l->y, i);
		} else {
			while (locked_read(l, l->y) != i)
				;
			CHECK_EQ(*l->x, i);
		}
		meet(&l->m);
	}
}

/* Store buffering: at least one of two members sees the store of the other. */
static void store_buffering(struct litmus *l)
{
	uint32_t saw, both[2];

	for (uint32_t i = 1; i <= l->rounds; i++) {
		meet(&l->m);
		locked_write(l, l->m.rank ? l->y : l->x, i);
		saw = locked_read(l, l->m.rank ? l->x : l->y) == i;
		CHECK_EQ(sci_team_allgather(l->m.team, &saw, sizeof(saw), both), 0);
		CHECK(both[0] || both[1]);
	}
}

/* Coherence: no member sees a counter, which a lock protects, become smaller. */
static void coherence(struct litmus *l)
{
	uint32_t last = 0;

	for (uint32_t i = 0; i < l->rounds; i++) {
		uint32_t now;

		lock(l);
		now = *l->x;
		*l->x = now + 1;
		unlock(l);
		CHECK(now >= last);
		last = now + 1;
	}
	meet(&l->m);
	CHECK_EQ(locked_read(l, l->x), l->rounds * (unsigned int)l->m.size);
}

/* IRIW: two readers of two words agree on the order of the two stores. */
static void independent_reads(struct litmus *l)
{
	uint32_t saw[2] = { 0, 0 }, all[8];

	for (uint32_t i = 1; i <= l->rounds; i++) {
		meet(&l->m);
		if (l->m.rank == 0)
			locked_write(l, l->x, i);
		else if (l->m.rank == 1)
			locked_write(l, l->y, i);
		else {
			saw[0] = locked_read(l, l->m.rank == 2 ? l->x : l->y) == i;
			saw[1] = locked_read(l, l->m.rank == 2 ? l->y : l->x) == i;
		}
		CHECK_EQ(sci_team_allgather(l->m.team, saw, sizeof(saw), all), 0);
		CHECK(!(all[4] && !all[5] && all[6] && !all[7]));
	}
}

/*
 * Barriers: all members store to words of one page, and one member also to another page. After
 * the barrier each member sees all of these stores.
 */
static void barriers(struct litmus *l)
{
	for (uint32_t i = 1; i <= l->rounds; i++) {
		l->x[l->m.rank] = i;
		if (i % (uint32_t)l->m.size == (uint32_t)l->m.rank)
			*l->y = i;
		sync_all(&l->m);
		for (int k = 0; k < l->m.size; k++)
			CHECK_EQ(l->x[k], i);
		CHECK_EQ(*l->y, i);
		sync_all(&l->m);
	}
}

/* ---- mapped ranges, with atomic instructions alone ---- */

static void atomics(struct litmus *l)
{
	_Atomic uint32_t *x = (_Atomic uint32_t *)(uintptr_t)l->x;
	_Atomic uint32_t *y = (_Atomic uint32_t *)(uintptr_t)l->y;
	uint32_t saw, all[4];

	for (uint32_t i = 1; i <= l->rounds; i++) {
		meet(&l->m);
		/* members 0 and 1: store buffering; members 2 and 3: message passing */
		if (l->m.rank == 0)
			atomic_store(x, i);
		else if (l->m.rank == 1)
			atomic_store(y, i);
		saw = l->m.rank == 0 ? atomic_load(y) == i : atomic_load(x) == i;
		if (l->m.rank == 2) {
			l->x[1] = i;
			atomic_store_explicit(&y[2], i, memory_order_release);
		} else if (l->m.rank == 3 &&
			   atomic_load_explicit(&y[2], memory_order_acquire) == i) {
			CHECK_EQ(l->x[1], i);
		}
		meet(&l->m);
		if (i % 8)
			continue;
		CHECK_EQ(sci_team_allgather(l->m.team, &saw, sizeof(saw), all), 0);
		CHECK(all[0] || all[1]);
	}
}

/* ---- the tests ---- */

struct kind_of_test {
	uint32_t mode;
	unsigned int rounds;
	void (*fn)(struct litmus *l);
};

static void run_member(void *arg)
{
	const struct kind_of_test *kind = arg;
	const char *wanted = getenv("SCI_TEST_ROUNDS");
	struct litmus l = { .rounds = test_calls(kind->rounds) };

	if (wanted)
		l.rounds = (uint32_t)atoi(wanted) / (kind->mode == SCI_VM_CACHE ? 10 : 1);
	litmus_open(&l, kind->mode);
	kind->fn(&l);
	member_close(&l.m);
}

#define LITMUS(name, with, members, f, n)				\
TEST(name)								\
{									\
	static const struct kind_of_test kind = {			\
		.mode = with, .rounds = n, .fn = f,			\
	};								\
									\
	needs_mode(with);						\
	ranks_run_arg(members, members, run_member, (void *)&kind, false); \
}

LITMUS(mapped_message_passing, SCI_VM_MAP, 2, message_passing, 2000)
LITMUS(cached_message_passing, SCI_VM_CACHE, 2, message_passing, 400)
LITMUS(mapped_store_buffering, SCI_VM_MAP, 2, store_buffering, 2000)
LITMUS(cached_store_buffering, SCI_VM_CACHE, 2, store_buffering, 300)
LITMUS(mapped_coherence, SCI_VM_MAP, 4, coherence, 2000)
LITMUS(cached_coherence, SCI_VM_CACHE, 4, coherence, 200)
LITMUS(mapped_iriw, SCI_VM_MAP, 4, independent_reads, 1000)
LITMUS(cached_iriw, SCI_VM_CACHE, 4, independent_reads, 150)
LITMUS(mapped_barriers, SCI_VM_MAP, 4, barriers, 1000)
LITMUS(cached_barriers, SCI_VM_CACHE, 4, barriers, 100)
LITMUS(mapped_atomics, SCI_VM_MAP, 4, atomics, 3000)
