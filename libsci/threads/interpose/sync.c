// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Mutexes and similar objects are those of libc, in the program's memory. They have libc's mark
 * for process-shared objects, so libc's functions sleep on futexes that work between processes.
 * Static initialisers lack the mark, so each call that may sleep, or may be the first use of the
 * object, sets the mark. The marks are part of libc's ABI.
 *
 * Owners of mutexes and rwlocks are thread ids. The nodes of one machine have one set of them, and
 * thread.c lets no threads of two machines have one ID.
 */

#include <errno.h>
#include <threads.h>

#include "interpose.h"

#define MUTEX_SHARED	128		/* a bit of __kind */
#define COND_SHARED	1u		/* a bit of __wrefs */

static inline pthread_mutex_t *mutex_share(pthread_mutex_t *m)
{
	int *kind = &m->__data.__kind;

	if (world && !hosts_on && !(__atomic_load_n(kind, __ATOMIC_RELAXED) & MUTEX_SHARED))
		__atomic_fetch_or(kind, MUTEX_SHARED, __ATOMIC_SEQ_CST);
	return m;
}

static inline pthread_cond_t *cond_share(pthread_cond_t *c)
{
	unsigned int *refs = &c->__data.__wrefs;

	if (world && !hosts_on && !(__atomic_load_n(refs, __ATOMIC_RELAXED) & COND_SHARED))
		__atomic_fetch_or(refs, COND_SHARED, __ATOMIC_SEQ_CST);
	return c;
}

static inline pthread_rwlock_t *rwlock_share(pthread_rwlock_t *l)
{
	if (world && !hosts_on && !__atomic_load_n(&l->__data.__shared, __ATOMIC_RELAXED))
		__atomic_store_n(&l->__data.__shared, 1, __ATOMIC_SEQ_CST);
	return l;
}

/* ---- mutexes ---- */

/* Refuse priority protocols between machines: the kernel of one machine would apply them. */
EXPORT int pthread_mutexattr_setprotocol(pthread_mutexattr_t *attr, int protocol)
{
	bool priority = protocol == PTHREAD_PRIO_INHERIT || protocol == PTHREAD_PRIO_PROTECT;

	if (world && hosts_on && priority)
		return ENOTSUP;
	return REAL(pthread_mutexattr_setprotocol)(attr, protocol);
}

EXPORT int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
	int ret = REAL(pthread_mutex_init)(m, attr);

	if (!ret)
		mutex_share(m);
	return ret;
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *m)
{
	return REAL(pthread_mutex_lock)(mutex_share(m));
}

EXPORT int pthread_mutex_trylock(pthread_mutex_t *m)
{
	return REAL(pthread_mutex_trylock)(mutex_share(m));
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *at)
{
	return REAL(pthread_mutex_timedlock)(mutex_share(m), at);
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock,
				   const struct timespec *at)
{
	return REAL(pthread_mutex_clocklock)(mutex_share(m), clock, at);
}

/* Initialise a C11 mutex, which in libc is a pthread mutex. */
EXPORT int mtx_init(mtx_t *m, int type)
{
	int ret = REAL(mtx_init)(m, type);

	if (ret == thrd_success)
		mutex_share((pthread_mutex_t *)m);
	return ret;
}

/* ---- conditions ---- */

EXPORT int pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *attr)
{
	int ret = REAL(pthread_cond_init)(c, attr);

	if (!ret)
		cond_share(c);
	return ret;
}

EXPORT int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
	return REAL(pthread_cond_wait)(cond_share(c), mutex_share(m));
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
				  const struct timespec *at)
{
	return REAL(pthread_cond_timedwait)(cond_share(c), mutex_share(m), at);
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock,
				  const struct timespec *at)
{
	return REAL(pthread_cond_clockwait)(cond_share(c), mutex_share(m), clock, at);
}

EXPORT int pthread_cond_signal(pthread_cond_t *c)
{
	return REAL(pthread_cond_signal)(cond_share(c));
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *c)
{
	return REAL(pthread_cond_broadcast)(cond_share(c));
}

EXPORT int cnd_init(cnd_t *c)
{
	int ret = REAL(cnd_init)(c);

	if (ret == thrd_success)
		cond_share((pthread_cond_t *)c);
	return ret;
}

/* ---- read-write locks ---- */

EXPORT int pthread_rwlock_init(pthread_rwlock_t *l, const pthread_rwlockattr_t *attr)
{
	int ret = REAL(pthread_rwlock_init)(l, attr);

	if (!ret)
		rwlock_share(l);
	return ret;
}

#define RWLOCK(name)							\
EXPORT int name(pthread_rwlock_t *l)					\
{									\
	return REAL(name)(rwlock_share(l));				\
}

#define RWLOCK_TIMED(name)						\
EXPORT int name(pthread_rwlock_t *l, const struct timespec *at)		\
{									\
	return REAL(name)(rwlock_share(l), at);				\
}

#define RWLOCK_CLOCK(name)						\
EXPORT int name(pthread_rwlock_t *l, clockid_t clock, const struct timespec *at) \
{									\
	return REAL(name)(rwlock_share(l), clock, at);			\
}

RWLOCK(pthread_rwlock_rdlock)
RWLOCK(pthread_rwlock_wrlock)
RWLOCK(pthread_rwlock_tryrdlock)
RWLOCK(pthread_rwlock_trywrlock)
RWLOCK_TIMED(pthread_rwlock_timedrdlock)
RWLOCK_TIMED(pthread_rwlock_timedwrlock)
RWLOCK_CLOCK(pthread_rwlock_clockrdlock)
RWLOCK_CLOCK(pthread_rwlock_clockwrlock)

/* ---- barriers and semaphores: there are no static ones ---- */

EXPORT int pthread_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *attr,
				unsigned int count)
{
	pthread_barrierattr_t shared;

	if (!world)
		return REAL(pthread_barrier_init)(b, attr, count);
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	return REAL(pthread_barrier_init)(b, &shared, count);
}

EXPORT int sem_init(sem_t *s, int shared, unsigned int value)
{
	return REAL(sem_init)(s, world ? 1 : shared, value);
}

/* ---- once ---- */

/* States of a once control, with libc's values: the static initialiser is ONCE_NOT. */
enum once_state {
	ONCE_NOT,
	ONCE_RUNS,
	ONCE_DONE
};

static void once_set(futex_t *f, uint32_t state)
{
	atomic_store(f, state);
	futex_wake(f, 1 << 30);
}

/* Reset a once control whose function was cancelled: the next caller runs it again. */
static void once_undo(void *f)
{
	once_set(f, ONCE_NOT);
}

static int once_run(futex_t *f, void (*fn)(void))
{
	uint32_t state;

	while ((state = atomic_load(f)) != ONCE_DONE) {
		if (state == ONCE_RUNS) {
			futex_wait(f, ONCE_RUNS);
			continue;
		}
		if (!atomic_compare_exchange_strong(f, &state, ONCE_RUNS))
			continue;
		pthread_cleanup_push(once_undo, f);
		fn();
		pthread_cleanup_pop(0);
		once_set(f, ONCE_DONE);
	}
	return 0;
}

EXPORT int pthread_once(pthread_once_t *once, void (*fn)(void))
{
	if (!world)
		return REAL(pthread_once)(once, fn);
	return once_run((futex_t *)once, fn);
}

EXPORT void call_once(once_flag *once, void (*fn)(void))
{
	if (!world)
		REAL(call_once)(once, fn);
	else
		once_run((futex_t *)&once->__data, fn);
}
