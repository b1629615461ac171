// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The table of objects: generations, reuse, very many objects, and calls of several threads. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsci/sisci/object.h"
#include "selftests/harness.h"

struct thing {
	struct sci_obj obj;
	uint64_t word;
};

static struct thing *new_thing(enum sci_type type, struct sci_obj *desc)
{
	struct thing *t = NULL;

	CHECK_EQ(sci_new(type, sizeof(*t), desc, &t), SCI_ERR_OK);
	CHECK(t != NULL);
	return t;
}

static void *published(enum sci_type type, uint64_t word)
{
	struct thing *t = new_thing(type, NULL);

	t->word = word;
	sci_publish(t);
	return sci_handle(t);
}

/* Remove an object in the order that object.h requires. False: another thread removes it. */
static bool remove_thing(const void *handle, enum sci_type type)
{
	struct thing *t = sci_get(handle, type);
	bool mine;

	if (!t)
		return false;
	mine = !sci_close_obj(t, true);
	if (mine) {
		sci_retire(t);
		sci_drain(t);
		sci_release(t);
	}
	sci_put(t);
	return mine;
}

static unsigned int found;

static void count_one(void *obj, void *arg)
{
	(void)obj;
	(void)arg;
	found++;
}

static unsigned int count_of(enum sci_type type)
{
	found = 0;
	sci_for_each(type, count_one, NULL);
	return found;
}

/* ---- one object ---- */

TEST(found_when_published)
{
	struct thing *t = new_thing(SCI_TYPE_LSEG, NULL);
	void *h = sci_handle(t);

	CHECK(h != NULL);
	CHECK(!sci_get(h, SCI_TYPE_LSEG));
	CHECK_EQ(count_of(SCI_TYPE_LSEG), 0);
	sci_publish(t);
	CHECK(sci_get(h, SCI_TYPE_LSEG) == t);
	sci_put(t);
	CHECK(sci_peek(h, SCI_TYPE_LSEG) == t);
	CHECK_EQ(count_of(SCI_TYPE_LSEG), 1);
	CHECK(remove_thing(h, SCI_TYPE_LSEG));
	CHECK(!sci_get(h, SCI_TYPE_LSEG));
	CHECK(!sci_peek(h, SCI_TYPE_LSEG));
	CHECK(!remove_thing(h, SCI_TYPE_LSEG));
	CHECK_EQ(count_of(SCI_TYPE_LSEG), 0);
}

TEST(of_its_type_only)
{
	void *h[SCI_TYPES];

	for (unsigned int i = 1; i < SCI_TYPES; i++)
		h[i] = published(i, i);
	for (unsigned int i = 1; i < SCI_TYPES; i++)
		for (unsigned int type = 0; type < 16; type++) {
			struct thing *t = sci_get(h[i], type);

			CHECK_EQ(t != NULL, type == i);
			if (!t)
				continue;
			CHECK_EQ(t->word, i);
			sci_put(t);
		}
	for (unsigned int i = 1; i < SCI_TYPES; i++)
		CHECK(remove_thing(h[i], i));
}

TEST(numbers_that_are_no_handles)
{
	uintptr_t h = (uintptr_t)published(SCI_TYPE_MAP, 1);
	char local;

	CHECK(!sci_get(NULL, SCI_TYPE_MAP));
	CHECK(!sci_get(&local, SCI_TYPE_MAP));
	CHECK(!sci_get((void *)UINTPTR_MAX, SCI_TYPE_MAP));
	for (unsigned int bit = 0; bit < 8 * sizeof(h); bit++) {
		void *near = (void *)(h ^ (uintptr_t)1 << bit);

		for (unsigned int type = 0; type < 16; type++)
			if (sci_get(near, type) || sci_peek(near, type))
				FAIL("bit %u of a handle does not matter",
				     bit);
	}
	for (unsigned int i = 0; i < 1000000; i++) {
		uintptr_t any = ((uintptr_t)rand() << 40) ^
				((uintptr_t)rand() << 20) ^ (uintptr_t)rand();

		if (any != h)
			CHECK(!sci_get((void *)any, SCI_TYPE_MAP));
	}
}

/* ---- generations and reuse ---- */

TEST(a_slot_used_again_has_another_handle)
{
	enum { ROUNDS = 10000 };
	static void *old[ROUNDS];
	uintptr_t index = 0;

	for (int i = 0; i < ROUNDS; i++) {
		old[i] = published(SCI_TYPE_DESC, i);
		/* the index is in the low bits: all rounds use one slot */
		if (i == 0)
			index = (uintptr_t)old[0] & 0xfffff;
		CHECK_EQ((uintptr_t)old[i] & 0xfffff, index);
		CHECK(remove_thing(old[i], SCI_TYPE_DESC));
	}
	old[0] = published(SCI_TYPE_DESC, 0);
	for (int i = 1; i < ROUNDS; i++) {
		CHECK(old[i] != old[0]);
		CHECK(!sci_get(old[i], SCI_TYPE_DESC));
	}
}

TEST(zeroed_each_time)
{
	static const enum sci_type types[] = {
		SCI_TYPE_MAP, SCI_TYPE_SEQUENCE, SCI_TYPE_LSEG
	};

	for (size_t k = 0; k < ARRAY_LEN(types); k++)
		for (int i = 0; i < 100; i++) {
			struct thing *t = new_thing(types[k], NULL);

			CHECK_EQ(t->word, 0);
			CHECK(!t->obj.closing && !t->obj.orphan);
			CHECK_EQ(t->obj.users, 0);
			t->word = UINT64_MAX;
			t->obj.orphan = false;
			sci_publish(t);
			CHECK(remove_thing(sci_handle(t), types[k]));
		}
}

/* Memory of maps is only used for maps: sci_peek() may still read it. */
TEST(memory_of_maps_stays_memory_of_maps)
{
	struct thing *first = new_thing(SCI_TYPE_MAP, NULL), *t;

	sci_publish(first);
	CHECK(remove_thing(sci_handle(first), SCI_TYPE_MAP));
	t = new_thing(SCI_TYPE_SEQUENCE, NULL);
	CHECK(t != first);
	CHECK(new_thing(SCI_TYPE_LSEG, NULL) != first);
	CHECK(new_thing(SCI_TYPE_MAP, NULL) == first);
}

TEST(abandoned_before_it_is_published)
{
	for (int i = 0; i < 10000; i++) {
		struct thing *t = new_thing(SCI_TYPE_RSEG, NULL);
		void *h = sci_handle(t);

		sci_release(t);
		CHECK(!sci_get(h, SCI_TYPE_RSEG));
	}
}

/* ---- users ---- */

TEST(a_device_with_objects_is_busy)
{
	struct thing *d = new_thing(SCI_TYPE_DESC, NULL), *t;
	void *dh = sci_handle(d), *th;

	sci_publish(d);
	t = new_thing(SCI_TYPE_LSEG, &d->obj);
	sci_publish(t);
	th = sci_handle(t);
	CHECK_EQ(sci_close_obj(d, false), SCI_ERR_BUSY);
	CHECK(sci_use(t));
	CHECK_EQ(sci_close_obj(t, false), SCI_ERR_BUSY);
	sci_unuse(t);
	CHECK(remove_thing(th, SCI_TYPE_LSEG));
	CHECK_EQ(sci_close_obj(d, false), SCI_ERR_OK);
	CHECK_EQ(sci_close_obj(d, false), SCI_ERR_ILLEGAL_PARAMETER);
	/* an object that is closing gets no new users and objects */
	CHECK(!sci_use(d));
	CHECK_EQ(sci_new(SCI_TYPE_LSEG, sizeof(*t), &d->obj, &t),
		 SCI_ERR_ILLEGAL_PARAMETER);
	sci_retire(d);
	sci_release(d);
	CHECK(!sci_get(dh, SCI_TYPE_DESC));
}

TEST(removed_by_force_it_waits_for_its_users)
{
	struct thing *d = new_thing(SCI_TYPE_DESC, NULL);
	struct thing *t = new_thing(SCI_TYPE_LSEG, &d->obj);
	void *h = sci_handle(t);

	sci_publish(d);
	sci_publish(t);
	CHECK(sci_use(t));
	CHECK(sci_use(t));
	t->word = 42;
	CHECK(remove_thing(h, SCI_TYPE_LSEG));
	CHECK(!sci_get(h, SCI_TYPE_LSEG));
	CHECK_EQ(t->word, 42);
	CHECK_EQ(sci_close_obj(d, false), SCI_ERR_BUSY);
	sci_unuse(t);
	CHECK_EQ(t->word, 42);
	sci_unuse(t);
	/* the last user has freed the object, so the device is not busy */
	CHECK_EQ(sci_close_obj(d, false), SCI_ERR_OK);
}

/* ---- many ---- */

TEST(a_hundred_thousand)
{
	const unsigned int n = 100000;
	void **h = calloc(n, sizeof(*h));

	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < n; i++)
			h[i] = published(SCI_TYPE_LSEG, i);
		CHECK_EQ(count_of(SCI_TYPE_LSEG), n);
		for (unsigned int i = 0; i < n; i++) {
			struct thing *t = sci_get(h[i], SCI_TYPE_LSEG);

			CHECK(t && t->word == i);
			sci_put(t);
		}
		for (unsigned int i = 0; i < n; i += 2)
			CHECK(remove_thing(h[i], SCI_TYPE_LSEG));
		CHECK_EQ(count_of(SCI_TYPE_LSEG), n / 2);
		for (unsigned int i = 1; i < n; i += 2)
			CHECK(remove_thing(h[i], SCI_TYPE_LSEG));
		for (unsigned int i = 0; i < n; i++)
			CHECK(!sci_get(h[i], SCI_TYPE_LSEG));
	}
	free(h);
}

/* The table is full at 2^20 objects. A removed object makes room for another one. */
TEST(more_than_there_are_handles)
{
	const unsigned int limit = 1u << 20;
	void **h = calloc(limit + 1, sizeof(*h));
	struct thing *t;
	unsigned int n;

	if (TEST_TSAN || TEST_ASAN)
		SKIP("too many for a sanitizer");
	for (n = 0; n <= limit; n++) {
		if (sci_new(SCI_TYPE_LSEG, sizeof(*t), NULL, &t))
			break;
		sci_publish(t);
		h[n] = sci_handle(t);
	}
	CHECK_EQ(n, limit);
	CHECK(remove_thing(h[7], SCI_TYPE_LSEG));
	h[7] = published(SCI_TYPE_LSEG, 7);
	CHECK_EQ(sci_new(SCI_TYPE_LSEG, sizeof(*t), NULL, &t),
		 SCI_ERR_API_NOSPC);
	for (unsigned int i = 0; i < n; i++)
		CHECK(remove_thing(h[i], SCI_TYPE_LSEG));
	free(h);
}

/* ---- several threads ---- */

#define CELLS	16

struct arena {
	_Atomic uintptr_t cell[CELLS];
	_Atomic bool stop;
	_Atomic unsigned int made, removed, got, missed;
	enum sci_type type;
};

static void *make_many(void *arg)
{
	struct arena *a = arg;
	unsigned int seed = (unsigned int)(uintptr_t)&seed;

	while (!atomic_load(&a->stop)) {
		unsigned int i = rand_r(&seed) % CELLS;
		uintptr_t h = (uintptr_t)published(a->type, i + 1), old;

		atomic_fetch_add(&a->made, 1);
		old = atomic_exchange(&a->cell[i], h);
		if (old && remove_thing((void *)old, a->type))
			atomic_fetch_add(&a->removed, 1);
	}
	return NULL;
}

static void *get_many(void *arg)
{
	struct arena *a = arg;
	unsigned int seed = (unsigned int)(uintptr_t)&seed;

	while (!atomic_load(&a->stop)) {
		unsigned int i = rand_r(&seed) % CELLS;
		void *h = (void *)atomic_load(&a->cell[i]);
		struct thing *t = sci_get(h, a->type);

		if (!t) {
			atomic_fetch_add(&a->missed, 1);
			continue;
		}
		/* while a thread holds the object, its handle and contents belong together */
		CHECK_EQ(t->word, i + 1);
		CHECK(sci_handle(t) == h);
		CHECK_EQ(t->obj.type, a->type);
		sci_put(t);
		atomic_fetch_add(&a->got, 1);
	}
	return NULL;
}

static void *remove_many(void *arg)
{
	struct arena *a = arg;
	unsigned int seed = (unsigned int)(uintptr_t)&seed;

	while (!atomic_load(&a->stop)) {
		unsigned int i = rand_r(&seed) % CELLS;
		void *h = (void *)atomic_load(&a->cell[i]);

		if (remove_thing(h, a->type))
			atomic_fetch_add(&a->removed, 1);
	}
	return NULL;
}

static void check_sane(void *obj, void *arg)
{
	struct thing *t = obj;

	(void)arg;
	CHECK(t->word >= 1 && t->word <= CELLS);
	CHECK(sci_handle(t) != NULL);
}

static void *walk_many(void *arg)
{
	struct arena *a = arg;

	while (!atomic_load(&a->stop))
		sci_for_each(a->type, check_sane, NULL);
	return NULL;
}

static void check_at_once(enum sci_type type)
{
	static struct arena a;
	void *(*const fns[])(void *) = {
		make_many, make_many, get_many, get_many, remove_many,
		walk_many
	};
	pthread_t t[ARRAY_LEN(fns)];

	memset(&a, 0, sizeof(a));
	a.type = type;
	for (size_t i = 0; i < ARRAY_LEN(fns); i++)
		CHECK(!pthread_create(&t[i], NULL, fns[i], &a));
	WAIT_UNTIL(atomic_load(&a.made) > (TEST_TSAN ? 20000u : 200000u) &&
		   atomic_load(&a.got) > 1000, 50000);
	atomic_store(&a.stop, true);
	for (size_t i = 0; i < ARRAY_LEN(fns); i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < CELLS; i++)
		if (remove_thing((void *)atomic_load(&a.cell[i]), type))
			atomic_fetch_add(&a.removed, 1);
	/* each object was removed exactly once */
	CHECK_EQ(atomic_load(&a.removed), atomic_load(&a.made));
	CHECK_EQ(count_of(type), 0);
}

TEST(get_and_remove_at_once)
{
	check_at_once(SCI_TYPE_LSEG);
}

TEST(get_and_remove_maps_at_once)
{
	check_at_once(SCI_TYPE_MAP);
}

/* ---- removal waits for users ---- */

struct visit {
	void *handle;
	_Atomic bool inside, leave, left;
	_Atomic bool removed;
};

static void *visitor(void *arg)
{
	struct visit *v = arg;
	struct thing *t = sci_get(v->handle, SCI_TYPE_LSEG);

	CHECK(t != NULL);
	atomic_store(&v->inside, true);
	while (!atomic_load(&v->leave))
		test_pause();
	CHECK_EQ(t->word, 7);
	atomic_store(&v->left, true);
	sci_put(t);
	return NULL;
}

static void *remover(void *arg)
{
	struct visit *v = arg;

	CHECK(remove_thing(v->handle, SCI_TYPE_LSEG));
	CHECK(atomic_load(&v->left));
	atomic_store(&v->removed, true);
	return NULL;
}

TEST(removal_waits_for_a_call)
{
	struct visit v = { .handle = published(SCI_TYPE_LSEG, 7) };
	pthread_t t[2];

	CHECK(!pthread_create(&t[0], NULL, visitor, &v));
	WAIT_UNTIL(atomic_load(&v.inside), TEST_WAIT_MS);
	CHECK(!pthread_create(&t[1], NULL, remover, &v));
	/* from then on no other thread gets the object */
	WAIT_UNTIL(({ struct thing *g = sci_get(v.handle, SCI_TYPE_LSEG);
		      if (g)
			      sci_put(g);
		      !g; }), TEST_WAIT_MS);
	CHECK(!atomic_load(&v.removed));
	atomic_store(&v.leave, true);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	CHECK(atomic_load(&v.removed));
}

/* ---- after fork ---- */

static void check_child(void *const h[100])
{
	sci_objects_fork();
	for (int i = 0; i < 100; i++)
		CHECK(!sci_get(h[i], SCI_TYPE_LSEG + i % 2));
	CHECK_EQ(count_of(SCI_TYPE_LSEG), 0);
	for (int i = 0; i < 100; i++) {
		void *n = published(SCI_TYPE_LSEG, i);

		for (int k = 0; k < 100; k++)
			CHECK(n != h[k]);
	}
	CHECK_EQ(count_of(SCI_TYPE_LSEG), 100);
}

TEST(nothing_is_found_in_a_child)
{
	void *h[100];
	int status;
	pid_t pid;

	for (int i = 0; i < 100; i++)
		h[i] = published(SCI_TYPE_LSEG + i % 2, i);
	/* the child leaks the parent's objects: _exit() skips the leak checker */
	pid = fork();
	if (!pid) {
		check_child(h);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	for (int i = 0; i < 100; i++)
		CHECK(remove_thing(h[i], SCI_TYPE_LSEG + i % 2));
}
