// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Thread-specific data. Keys are valid on all nodes, and each thread has its own values. */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "interpose.h"

struct value {
	uintptr_t seq;			/* generation of the key when the value was set */
	void *value;
};

static _Thread_local struct value *values;
static _Thread_local unsigned int nvalues;

EXPORT int pthread_key_create(pthread_key_t *key, void (*destructor)(void *value))
{
	if (!world_active() || thread_is_alone())
		return REAL(pthread_key_create)(key, destructor);
	for (unsigned int i = 0; i < KEYS_MAX; i++) {
		struct key *k = &world->keys[i];
		uintptr_t seq = atomic_load(&k->seq);

		if (seq & 1 || !atomic_compare_exchange_strong(&k->seq, &seq, seq + 1))
			continue;
		atomic_store(&k->destructor, destructor);
		*key = i;
		return 0;
	}
	return EAGAIN;
}

EXPORT int pthread_key_delete(pthread_key_t key)
{
	uintptr_t seq;

	if (!world || thread_is_alone())
		return REAL(pthread_key_delete)(key);
	if (key >= KEYS_MAX)
		return EINVAL;
	seq = atomic_load(&world->keys[key].seq);
	if (!(seq & 1) ||
	    !atomic_compare_exchange_strong(&world->keys[key].seq, &seq, seq + 1))
		return EINVAL;
	return 0;
}

EXPORT void *pthread_getspecific(pthread_key_t key)
{
	const struct value *v = &values[key];

	if (!world || thread_is_alone())
		return REAL(pthread_getspecific)(key);
	if (key >= nvalues ||
	    v->seq != atomic_load_explicit(&world->keys[key].seq, memory_order_relaxed))
		return NULL;
	return v->value;
}

static void values_free(void *arg)
{
	(void)arg;
	keys_destroy(true);
}

/* Make libc call values_free() at the end of a thread that this library has not started. */
static void values_watch(void)
{
	static futex_t once;		/* one for each process */
	static pthread_key_t key;
	uint32_t none = 0;

	if (atomic_compare_exchange_strong(&once, &none, 1)) {
		REAL(pthread_key_create)(&key, values_free);
		atomic_store(&once, 2);
		futex_wake(&once, INT_MAX);
	}
	while (atomic_load(&once) != 2)
		futex_wait(&once, 1);
	REAL(pthread_setspecific)(key, values);
}

static int values_grow(unsigned int n)
{
	struct value *v = realloc(values, (n + 16) * sizeof(*v));

	if (!v)
		return ENOMEM;
	memset(v + nvalues, 0, (n + 16 - nvalues) * sizeof(*v));
	values = v;
	nvalues = n + 16;
	if (!self_thread)
		values_watch();
	return 0;
}

EXPORT int pthread_setspecific(pthread_key_t key, const void *value)
{
	uintptr_t seq;

	if (!world || thread_is_alone())
		return REAL(pthread_setspecific)(key, value);
	if (key >= KEYS_MAX || !((seq = atomic_load(&world->keys[key].seq)) & 1))
		return EINVAL;
	if (key >= nvalues && (!value || values_grow(key)))
		return value ? ENOMEM : 0;
	values[key] = (struct value){ seq, (void *)(uintptr_t)value };
	return 0;
}

static bool keys_round(void)
{
	bool any = false;

	for (unsigned int i = 0; i < nvalues; i++) {
		struct key *k = &world->keys[i];
		void (*destructor)(void *value) = atomic_load(&k->destructor);
		void *value = values[i].value;

		if (!value || values[i].seq != atomic_load(&k->seq) || !destructor)
			continue;
		values[i].value = NULL;
		any = true;
		destructor(value);
	}
	return any;
}

void keys_destroy(bool call)
{
	for (unsigned int i = 0; call && i < PTHREAD_DESTRUCTOR_ITERATIONS && keys_round(); i++)
		;
	free(values);
	values = NULL;
	nvalues = 0;
}

/* ---- C11 ---- */

EXPORT int tss_create(tss_t *key, tss_dtor_t destructor)
{
	return pthread_key_create(key, destructor) ? thrd_error : thrd_success;
}

EXPORT void tss_delete(tss_t key)
{
	pthread_key_delete(key);
}

EXPORT void *tss_get(tss_t key)
{
	return pthread_getspecific(key);
}

EXPORT int tss_set(tss_t key, void *value)
{
	return pthread_setspecific(key, value) ? thrd_error : thrd_success;
}

/* The start of a C11 thread, whose function returns an int. */
struct c11_start {
	thrd_start_t fn;
	void *arg;
};

static void *c11_main(void *arg)
{
	struct c11_start s = *(struct c11_start *)arg;

	free(arg);
	return (void *)(intptr_t)s.fn(s.arg);
}

EXPORT int thrd_create(thrd_t *out, thrd_start_t fn, void *arg)
{
	struct c11_start *s;
	int err;

	if (!world)
		return REAL(thrd_create)(out, fn, arg);
	s = malloc(sizeof(*s));
	if (!s)
		return thrd_nomem;
	*s = (struct c11_start){ fn, arg };
	err = pthread_create(out, NULL, c11_main, s);
	if (!err)
		return thrd_success;
	free(s);
	return err == ENOMEM || err == EAGAIN ? thrd_nomem : thrd_error;
}

EXPORT int thrd_join(thrd_t t, int *result)
{
	void *value;

	if (!world)
		return REAL(thrd_join)(t, result);
	if (pthread_join(t, &value))
		return thrd_error;
	if (result)
		*result = (int)(intptr_t)value;
	return thrd_success;
}

EXPORT int thrd_detach(thrd_t t)
{
	return pthread_detach(t) ? thrd_error : thrd_success;
}

EXPORT noreturn void thrd_exit(int result)
{
	pthread_exit((void *)(intptr_t)result);
}
