// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/sisci/object.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_SLOTS	SCI_CHUNK_SLOTS

struct sci_slot *_Atomic sci_chunks[SCI_CHUNKS];

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t quiet = PTHREAD_COND_INITIALIZER;
static uint32_t n_slots;
static uint32_t free_slots;		/* index + 1 */
/* Freed maps and sequences: sci_peek() may still read them. */
static struct sci_obj *free_objs[SCI_TYPES];

static struct sci_slot *slot_at(uint32_t index)
{
	return &sci_chunks[index >> SCI_CHUNK_BITS][index & (CHUNK_SLOTS - 1)];
}

static uint64_t state_gen(uint64_t state)
{
	return state >> 32;
}

static uint32_t handle_index(uintptr_t h)
{
	return h & ((1u << SCI_INDEX_BITS) - 1);
}

static bool type_is_peeked(enum sci_type type)
{
	return type == SCI_TYPE_MAP || type == SCI_TYPE_SEQUENCE;
}

static struct sci_slot *slot_take(uint32_t *index)
{
	struct sci_slot *chunk, *slot;

	if (free_slots) {
		*index = free_slots - 1;
		slot = slot_at(*index);
		free_slots = slot->next_free;
		return slot;
	}
	if (n_slots == SCI_CHUNKS * CHUNK_SLOTS)
		return NULL;
	if (!(n_slots & (CHUNK_SLOTS - 1))) {
		chunk = calloc(CHUNK_SLOTS, sizeof(*chunk));
		if (!chunk)
			return NULL;
		atomic_store_explicit(&sci_chunks[n_slots >> SCI_CHUNK_BITS], chunk,
				      memory_order_release);
	}
	*index = n_slots++;
	return slot_at(*index);
}

static struct sci_obj *memory_take(enum sci_type type, size_t size)
{
	struct sci_obj *obj = free_objs[type];

	if (!obj)
		return calloc(1, size);
	free_objs[type] = obj->desc;
	memset(obj, 0, size);
	return obj;
}

static void slot_fill(struct sci_slot *slot, uint32_t index, struct sci_obj *obj)
{
	uint64_t gen = state_gen(atomic_load(&slot->state)) + 1;

	gen = gen & SCI_GEN_MASK ? gen & SCI_GEN_MASK : 1;
	obj->handle = (uintptr_t)gen << (SCI_INDEX_BITS + SCI_TYPE_BITS) |
		      (uintptr_t)obj->type << SCI_INDEX_BITS | index;
	slot->obj = obj;
	slot->type = obj->type;
	/* The slot is retired until sci_publish(), and has the creator's reference. */
	atomic_store_explicit(&slot->state, gen << 32 | SCI_RETIRED | 1,
			      memory_order_release);
}

static struct sci_obj *object_take(enum sci_type type, size_t size)
{
	struct sci_obj *obj = NULL;
	struct sci_slot *slot;
	uint32_t index;

	pthread_mutex_lock(&table_lock);
	slot = slot_take(&index);
	if (slot)
		obj = memory_take(type, size);
	if (obj) {
		obj->type = type;
		pthread_mutex_init(&obj->lock, NULL);
		slot_fill(slot, index, obj);
	} else if (slot) {
		slot->next_free = free_slots;
		free_slots = index + 1;
	}
	pthread_mutex_unlock(&table_lock);
	return obj;
}

sci_error_t sci_new(enum sci_type type, size_t size, struct sci_obj *desc,
		    void *out)
{
	struct sci_obj *obj;

	if (desc && !sci_use(desc))
		return SCI_ERR_ILLEGAL_PARAMETER;
	obj = object_take(type, size);
	if (!obj) {
		if (desc)
			sci_unuse(desc);
		return SCI_ERR_API_NOSPC;
	}
	obj->desc = desc;
	memcpy(out, &obj, sizeof(obj));
	return SCI_ERR_OK;
}

static struct sci_slot *slot_of(const struct sci_obj *obj)
{
	return slot_at(handle_index(obj->handle));
}

void sci_publish(void *obj)
{
	struct sci_slot *slot = slot_of(obj);

	/* set @live first: another thread may find the object and clear @live in sci_retire() */
	atomic_store_explicit(&slot->live, ((struct sci_obj *)obj)->handle,
			      memory_order_release);
	atomic_fetch_and(&slot->state, ~SCI_RETIRED);
}

void *sci_get(const void *handle, enum sci_type type)
{
	uint64_t state;
	struct sci_slot *slot = sci_find(handle, type, &state);

	while (slot && !atomic_compare_exchange_weak(&slot->state, &state,
						     state + 1))
		slot = sci_find(handle, type, &state);
	return slot ? slot->obj : NULL;
}

/* A wait of a thread. A thread has several waits if a signal handler waits, too. */
struct wait {
	const void *handle;
	void *obj;
	struct wait *outer;
};

static _Thread_local struct wait *waits;

/* Drop the reference first: until then sci_waits_for() must return true in a signal handler. */
static void wait_end(struct wait *w)
{
	if (w->obj)
		sci_put(w->obj);
	sci_compiler_barrier();
	waits = w->outer;
}

static void wait_cancelled(void *w)
{
	wait_end(w);
	sci_leave(SCI_ERR_CANCELLED);
}

static sci_error_t wait_run(struct wait *w,
			    sci_error_t (*wait)(void *obj, void *arg),
			    void *arg)
{
	sci_error_t err;

	pthread_cleanup_push(wait_cancelled, w);
	err = wait(w->obj, arg);
	pthread_cleanup_pop(0);
	return err;
}

sci_error_t sci_wait_on(const void *handle, enum sci_type type,
			sci_error_t (*wait)(void *obj, void *arg), void *arg)
{
	struct wait w = { .handle = handle, .outer = waits };
	sci_error_t err;

	waits = &w;
	sci_compiler_barrier();
	w.obj = sci_get(handle, type);
	err = w.obj ? wait_run(&w, wait, arg) : SCI_ERR_ILLEGAL_PARAMETER;
	wait_end(&w);
	return err;
}

bool sci_waits_for(const void *handle)
{
	const struct wait *w;

	for (w = waits; w; w = w->outer)
		if (w->handle == handle)
			return true;
	return false;
}

void sci_bequeath(void *obj, uint32_t word0, uint32_t word1)
{
	struct sci_slot *slot = slot_of(obj);

	pthread_mutex_lock(&table_lock);
	slot->words[0] = word0;
	slot->words[1] = word1;
	pthread_mutex_unlock(&table_lock);
}

bool sci_legacy(const void *handle, enum sci_type type, uint32_t words[2])
{
	uintptr_t h = (uintptr_t)handle;
	struct sci_slot *slot;
	bool ok;

	pthread_mutex_lock(&table_lock);
	ok = handle_index(h) < n_slots;
	if (ok) {
		slot = slot_at(handle_index(h));
		ok = state_gen(atomic_load(&slot->state)) ==
		     (uint64_t)h >> (SCI_INDEX_BITS + SCI_TYPE_BITS) &&
		     slot->type == (uint32_t)type;
		if (ok)
			memcpy(words, slot->words, sizeof(slot->words));
	}
	pthread_mutex_unlock(&table_lock);
	return ok;
}

static void object_free(struct sci_slot *slot, struct sci_obj *obj)
{
	uint32_t index = handle_index(obj->handle);

	pthread_mutex_destroy(&obj->lock);
	pthread_mutex_lock(&table_lock);
	slot->obj = NULL;
	slot->next_free = free_slots;
	free_slots = index + 1;
	if (type_is_peeked(obj->type)) {
		obj->desc = free_objs[obj->type];
		free_objs[obj->type] = obj;
		obj = NULL;
	}
	pthread_mutex_unlock(&table_lock);
	free(obj);
}

void sci_put(void *obj)
{
	struct sci_slot *slot = slot_of(obj);
	uint64_t state = atomic_fetch_sub(&slot->state, 1) - 1;

	if (!(state & SCI_RETIRED))
		return;
	if (!(state & SCI_REFS)) {
		object_free(slot, obj);
		return;
	}
	/* a thread may wait in sci_drain() */
	pthread_mutex_lock(&table_lock);
	pthread_cond_broadcast(&quiet);
	pthread_mutex_unlock(&table_lock);
}

bool sci_use(void *p)
{
	struct sci_obj *obj = p;
	bool ok;

	pthread_mutex_lock(&obj->lock);
	ok = !obj->closing;
	if (ok)
		obj->users++;
	pthread_mutex_unlock(&obj->lock);
	return ok;
}

/* Drop a user. Return true if it was the last user of a removed object. */
static bool object_drop_user(struct sci_obj *obj)
{
	bool last;

	pthread_mutex_lock(&obj->lock);
	last = !--obj->users && obj->orphan;
	pthread_mutex_unlock(&obj->lock);
	return last;
}

static void object_drop_creator(struct sci_obj *obj)
{
	struct sci_obj *desc = obj->desc;

	obj->desc = NULL;
	sci_put(obj);
	/* a device has no desc itself, so dropping its last reference is enough */
	if (desc && object_drop_user(desc))
		sci_put(desc);
}

void sci_unuse(void *obj)
{
	if (object_drop_user(obj))
		object_drop_creator(obj);
}

sci_error_t sci_close_obj(void *p, bool force)
{
	struct sci_obj *obj = p;
	sci_error_t err = SCI_ERR_OK;

	pthread_mutex_lock(&obj->lock);
	if (obj->closing)
		err = SCI_ERR_ILLEGAL_PARAMETER;
	else if (obj->users && !force)
		err = SCI_ERR_BUSY;
	else
		obj->closing = true;
	pthread_mutex_unlock(&obj->lock);
	return err;
}

void sci_retire(void *obj)
{
	struct sci_slot *slot = slot_of(obj);

	atomic_store_explicit(&slot->live, 0, memory_order_release);
	atomic_fetch_or(&slot->state, SCI_RETIRED);
}

/* Wait until only the references of the caller and the creator are left. */
void sci_drain(void *obj)
{
	struct sci_slot *slot = slot_of(obj);

	pthread_mutex_lock(&table_lock);
	while ((atomic_load(&slot->state) & SCI_REFS) > 2)
		pthread_cond_wait(&quiet, &table_lock);
	pthread_mutex_unlock(&table_lock);
}

void sci_release(void *p)
{
	struct sci_obj *obj = p;
	bool last;

	pthread_mutex_lock(&obj->lock);
	obj->orphan = obj->users;
	last = !obj->users;
	pthread_mutex_unlock(&obj->lock);
	if (last)
		object_drop_creator(obj);
}

void sci_for_each(enum sci_type type, void (*fn)(void *obj, void *arg),
		  void *arg)
{
	struct sci_obj *obj;
	uint32_t i, n;

	pthread_mutex_lock(&table_lock);
	n = n_slots;
	pthread_mutex_unlock(&table_lock);
	for (i = 0; i < n; i++) {
		struct sci_slot *slot = slot_at(i);
		uintptr_t handle = 0;

		pthread_mutex_lock(&table_lock);
		if (slot->obj && slot->obj->type == type)
			handle = slot->obj->handle;
		pthread_mutex_unlock(&table_lock);
		obj = handle ? sci_get((void *)handle, type) : NULL;
		if (!obj)
			continue;
		fn(obj, arg);
		sci_put(obj);
	}
}

/*
 * The child has only the thread that forked. Other threads may have held any lock:
 * abandon all objects as they are.
 */
void sci_objects_fork(void)
{
	uint32_t i;

	pthread_mutex_init(&table_lock, NULL);
	pthread_cond_init(&quiet, NULL);
	memset(free_objs, 0, sizeof(free_objs));
	free_slots = 0;
	waits = NULL;
	for (i = 0; i < n_slots; i++) {
		struct sci_slot *slot = slot_at(i);
		uint64_t gen = state_gen(atomic_load(&slot->state));

		atomic_store(&slot->state, gen << 32);
		atomic_store(&slot->live, 0);
		slot->next_free = free_slots;
		free_slots = i + 1;
	}
}
