// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Placement, start and end of threads. */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "interpose.h"

#define HEAP_STACK	((size_t)1 << 20)

/* ---- records and stacks ---- */

/* Take @n adjacent slots that are free again. Return: the first slot; -1: there are not enough. */
static long slots_reuse(unsigned int n)
{
	uint32_t first, kept = 0, end = 0;
	unsigned int run = 0;

	while (end < world->slot_top && run < n)
		run = world->slots[end++] ? 0 : run + 1;
	if (run < n)
		return -1;
	first = end - n;
	for (uint32_t i = 0; i < world->nslot_free; i++)
		if (world->slot_free[i] < first || world->slot_free[i] >= end)
			world->slot_free[kept++] = world->slot_free[i];
	world->nslot_free = kept;
	return first;
}

/*
 * Take @n adjacent slots. Return: the first slot; -1: there are not enough. Context: world->lock
 * is held.
 */
static long slots_take(unsigned int n)
{
	long slot = -1;

	if (n == 1 && world->nslot_free)
		return world->slot_free[--world->nslot_free];
	if (n <= world->nslot_free)
		slot = slots_reuse(n);
	if (slot >= 0)
		return slot;
	if (n > THREADS_MAX - world->slot_top)
		return -1;
	world->slot_top += n;
	return world->slot_top - n;
}

static void slots_give(struct thread *t)
{
	for (unsigned int i = 0; i < t->slots; i++) {
		world->slots[t->slot + i] = NULL;
		world->slot_free[world->nslot_free++] = t->slot + i;
	}
}

static void thread_free(struct thread *t)
{
	lock_take(&world->lock);
	if (t->slots) {
		slots_give(t);
	} else {
		struct thread **p = &world->foreign;

		while (*p && *p != t)
			p = &(*p)->next;
		if (*p)
			*p = t->next;
	}
	t->next = world->free;
	world->free = t;
	lock_give(&world->lock);
}

/* Return a new thread record, or NULL. @stack: bytes of the stack; 0: the program provides it. */
static struct thread *thread_new(size_t stack)
{
	unsigned int n = (unsigned int)((stack + SLOT_SIZE - 1) / SLOT_SIZE);
	struct thread *t;
	long slot = 0;

	lock_take(&world->lock);
	t = world->free;
	if (t)
		world->free = t->next;
	lock_give(&world->lock);
	if (!t)
		t = heap_alloc(&world->heap, self_node * HEAP_NODE_ARENAS, sizeof(*t), 64, false);
	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	sem_init(&t->ended, 1, 0);
	lock_take(&world->lock);
	if (n)
		slot = slots_take(n);
	for (unsigned int i = 0; slot >= 0 && i < n; i++)
		world->slots[slot + i] = t;
	if (slot < 0 || !n) {
		t->next = slot < 0 ? world->free : world->foreign;
		*(slot < 0 ? &world->free : &world->foreign) = t;
	}
	lock_give(&world->lock);
	t->slot = slot < 0 ? 0 : (unsigned int)slot;
	t->slots = n;
	return slot < 0 ? NULL : t;
}

struct thread *thread_find(pthread_t native)
{
	struct thread *t;
	size_t slot;

	if (!world || !native || thread_is_alone())
		return NULL;
	slot = (size_t)((char *)native - GLOBAL_STACKS) / SLOT_SIZE;
	if (self_thread && self_thread->native == native)
		return self_thread;
	if (slot < THREADS_MAX) {
		t = world->slots[slot];
		return t && t->native == native ? t : NULL;
	}
	lock_take(&world->lock);
	t = world->foreign;
	while (t && t->native != native)
		t = t->next;
	lock_give(&world->lock);
	return t;
}

/* ---- thread ids ---- */

/* Counts claims of this process. It is private memory, so that a wait needs no messages. */
static futex_t claims;

static _Atomic uint8_t *tid_owner(void)
{
	return &GLOBAL_TIDS[(unsigned int)syscall(SYS_gettid) % TIDS_MAX];
}

/*
 * Claim the ID of the calling thread for this node, and tell the creator the result. Mutexes and
 * rwlocks of libc know their owner by this ID, which is unique on one machine only. So a thread
 * whose ID a thread of another node has ends at once, and its creator creates another one.
 */
static bool tid_claim(struct thread *t)
{
	uint8_t none = 0;
	bool done = atomic_compare_exchange_strong(tid_owner(), &none, (uint8_t)(self_node + 1));

	prctl(PR_GET_TID_ADDRESS, &t->tid);
	atomic_store(&t->claim, done ? CLAIM_DONE : CLAIM_FAILED);
	atomic_fetch_add(&claims, 1);
	futex_wake(&claims, INT_MAX);
	return done;
}

/* ---- the end of a thread ---- */

/*
 * Mark the robust mutexes of the calling thread: their owner has died. The kernel does this at the
 * end of a thread, but it knows no thread of another machine that waits.
 */
static void robust_end(void)
{
	struct robust_list_head *head;
	struct robust_list *at;
	size_t len;

	if (syscall(SYS_get_robust_list, 0, &head, &len))
		return;
	while ((at = head->list.next) != &head->list) {
		futex_t *f = (futex_t *)(void *)((char *)at + head->futex_offset);
		uint32_t old = atomic_load(f);

		head->list.next = at->next;
		while (!atomic_compare_exchange_weak(f, &old,
						     (old & FUTEX_WAITERS) | FUTEX_OWNER_DIED))
			;
		if (old & FUTEX_WAITERS)
			futex_wake(f, 1);
	}
}

/*
 * When a thread ends, the kernel sets a word of its descriptor to 0 and wakes threads that wait in
 * pthread_join(). On a stack of the program this word is in memory of the program. Then the
 * waiter is not the kernel's, and the kernel fails to write if another machine has just taken the page.
 */
static void tid_wait(struct thread *t)
{
	const struct timespec pause = { 0, 10000000 };
	uint32_t tid;

	while (t->tid && (tid = atomic_load(t->tid))) {
		syscall(SYS_futex, t->tid, FUTEX_WAIT, tid, &pause, NULL, 0);
		if (syscall(SYS_tgkill, syscall(SYS_getpid), tid, 0) && errno == ESRCH)
			atomic_store(t->tid, 0);
	}
}

/* Wait until the kernel no longer uses the thread's stack. Context: the thread's process. */
static void thread_reap(void *arg)
{
	struct thread *t = arg;

	if (hosts_on)
		tid_wait(t);
	REAL(pthread_join)(t->native, &t->result);
	if (t->guard)
		REAL(mprotect)(t->stack - t->guard, t->guard, PROT_READ | PROT_WRITE);
}

static void thread_reap_free(void *arg)
{
	thread_reap(arg);
	thread_free(arg);
}

static pthread_key_t end_key;		/* of libc; thread_end() is its destructor */

/*
 * Call the destructors of the program. If the thread is cancelled in one of them, libc calls
 * thread_end() again, but no other destructor of the program.
 */
static void thread_end_keys(struct thread *t)
{
	static _Thread_local bool again;
	bool first = !again;

	again = true;
	REAL(pthread_setspecific)(end_key, t);
	keys_destroy(first);
	REAL(pthread_setcancelstate)(PTHREAD_CANCEL_DISABLE, NULL);
	REAL(pthread_setspecific)(end_key, NULL);
}

/* Handle the end of a thread. */
static void thread_end(void *arg)
{
	struct thread *t = arg;
	unsigned int node = t->node;

	thread_end_keys(t);
	if (hosts_on) {
		robust_end();
		atomic_store(tid_owner(), 0);
		sleep_thread_end();
	}
	self_thread = NULL;
	heap_cache_flush(&world->heap, &t->cache);
	if (world->leader != getpid_real() && !node)
		return;			/* a child of fork() */
	atomic_fetch_sub(&world->node[node].live, 1);
	if (atomic_fetch_sub(&world->live, 1) == 1 && !world->failed) {
		self_thread = t;
		exit(0);
	}
	if (world->failed)
		futex_wake(&world->live, 1);	/* see last_wait() */
	if (atomic_fetch_or(&t->state, THREAD_ENDED) & THREAD_DETACHED)
		node_post(node, &t->call, thread_reap_free, t);
	else
		sem_post(&t->ended);
}

static void *thread_run(void *arg)
{
	static futex_t once;		/* private to this process */
	struct thread *t = arg;
	uint32_t none = 0;

	if (hosts_on && !tid_claim(t))
		return NULL;
	if (atomic_compare_exchange_strong(&once, &none, 1)) {
		REAL(pthread_key_create)(&end_key, thread_end);
		atomic_store(&once, 2);
		futex_wake(&once, INT_MAX);
	}
	while (atomic_load(&once) != 2)
		futex_wait(&once, 1);
	t->native = pthread_self();
	t->cache.arena = self_node * HEAP_NODE_ARENAS + t->slot % HEAP_NODE_ARENAS;
	self_thread = t;
	REAL(pthread_setspecific)(end_key, t);
	REAL(pthread_sigmask)(SIG_SETMASK, &t->mask, NULL);
	if (hosts_on && self_node)
		forward_begin();
	return t->fn(t->arg);
}

/* ---- the beginning ---- */

/* Put the stack into the slots of the record, with the size and the guard size of @attr. */
static void stack_set(struct thread *t, pthread_attr_t *attr)
{
	char *end = GLOBAL_STACKS + (t->slot + t->slots) * SLOT_SIZE;
	size_t size;

	pthread_attr_getguardsize(attr, &t->guard);
	pthread_attr_getstacksize(attr, &size);
	t->guard = (t->guard + 4095) & ~(size_t)4095;
	size = (size + 4095) & ~(size_t)4095;
	if (size + t->guard > t->slots * SLOT_SIZE)
		size = t->slots * SLOT_SIZE - t->guard;
	t->stack = end - size;
	if (hosts_on)			/* see PAGE_DENIED */
		REAL(mprotect)(t->stack, size, PROT_READ | PROT_WRITE);
	if (t->guard)
		REAL(mprotect)(t->stack - t->guard, t->guard, PROT_NONE);
	pthread_attr_setstack(attr, t->stack, size);
}

/* Wait until the new thread has claimed its ID. Return true if it has succeeded. */
static bool claim_wait(struct thread *t)
{
	for (;;) {
		uint32_t seen = atomic_load(&claims), claim = atomic_load(&t->claim);

		if (claim != CLAIM_UNKNOWN)
			return claim == CLAIM_DONE;
		futex_wait(&claims, seen);
	}
}

/* Create the thread. Return 0, or errno. */
static int thread_clone(struct thread *t, const pthread_attr_t *attr)
{
	for (;;) {
		int err;

		atomic_store(&t->claim, CLAIM_UNKNOWN);
		err = REAL(pthread_create)(&t->native, attr, thread_run, t);
		if (err || !hosts_on || claim_wait(t))
			return err;
		tid_wait(t);
		REAL(pthread_join)(t->native, NULL);
	}
}

/*
 * Create the thread, in its process. libc stores @t->native before the thread runs. A thread is
 * created joinable: thread_start() detaches it later, so that the record stays valid until then.
 */
static void thread_create(void *arg)
{
	struct thread *t = arg;
	struct node *n = &world->node[t->node];
	pthread_attr_t attr;

	if (t->attr)
		attr = *t->attr;
	else
		pthread_attr_init(&attr);
	if (t->slots)
		stack_set(t, &attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_JOINABLE);
	atomic_fetch_add(&n->live, 1);
	atomic_fetch_add(&n->created, 1);
	atomic_fetch_add(&world->live, 1);
	t->err = thread_clone(t, &attr);
	if (!t->err)
		return;
	atomic_fetch_sub(&n->live, 1);
	atomic_fetch_sub(&n->created, 1);
	atomic_fetch_sub(&world->live, 1);
}

static unsigned int place_load(void)
{
	unsigned int best = 0;

	for (unsigned int i = 1; i < world->nodes; i++)
		if (atomic_load(&world->node[i].live) < atomic_load(&world->node[best].live))
			best = i;
	return best;
}

static unsigned int thread_place(void)
{
	unsigned int node;

	if (world->place == PLACE_LOAD)
		return place_load();
	node = atomic_fetch_add(&world->turn, 1);
	return world->place == PLACE_LIST ? world->list[node % world->nlist] :
					    node % world->nodes;
}

/* Return the size of the stack to allocate; 0: the program provides the stack. */
static size_t stack_wanted(const pthread_attr_t *attr)
{
	pthread_attr_t none;
	void *stack = NULL;
	size_t size = 0, guard = 0;

	if (!attr) {
		pthread_attr_init(&none);
		attr = &none;
	}
	pthread_attr_getstack(attr, &stack, &size);
	if ((uintptr_t)stack + size)
		return 0;
	pthread_attr_getstacksize(attr, &size);
	pthread_attr_getguardsize(attr, &guard);
	return size + guard;
}

/* Detach a thread. If the thread has ended, free its record. */
static void thread_detach(struct thread *t)
{
	if (atomic_fetch_or(&t->state, THREAD_DETACHED) & THREAD_ENDED)
		node_post(t->node, &t->call, thread_reap_free, t);
}

static int thread_start(pthread_t *out, const pthread_attr_t *attr, void *(*fn)(void *arg),
			void *arg, unsigned int node)
{
	int detached = PTHREAD_CREATE_JOINABLE, err;
	struct thread *t = thread_new(stack_wanted(attr));

	if (!t)
		return EAGAIN;
	if (attr)
		pthread_attr_getdetachstate(attr, &detached);
	t->attr = attr;
	t->fn = fn;
	t->arg = arg;
	t->node = node;
	REAL(pthread_sigmask)(SIG_BLOCK, NULL, &t->mask);
	sigdelset(&t->mask, SIGSYS);
	node_call(node, thread_create, t);
	err = t->err;
	if (err) {
		thread_free(t);
		return err;
	}
	*out = t->native;
	if (detached == PTHREAD_CREATE_DETACHED)
		thread_detach(t);
	return 0;
}

int thread_main_start(void *(*fn)(void *arg))
{
	struct rlimit stack;
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	if (!getrlimit(RLIMIT_STACK, &stack) && stack.rlim_cur > 8 << 20)
		pthread_attr_setstacksize(&attr, stack.rlim_cur < 1 << 30 ? stack.rlim_cur :
									    1 << 30);
	return thread_start(&t, &attr, fn, NULL, 0);
}

int thread_start_local(void *(*fn)(void *arg), void *arg)
{
	int err;
	pthread_attr_t attr;
	pthread_t t;
	void *stack;

	err = thread_start(&t, NULL, fn, arg, self_node);
	if (err != EAGAIN)
		return err;
	/* threads of the program may have all slots: use a stack from the heap, never freed */
	stack = heap_alloc(&world->heap, self_node * HEAP_NODE_ARENAS, HEAP_STACK, 4096, false);
	if (!stack)
		return err;
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, stack, HEAP_STACK);
	return thread_start(&t, &attr, fn, arg, self_node);
}

EXPORT int pthread_create(pthread_t *out, const pthread_attr_t *attr,
			  void *(*fn)(void *arg), void *arg)
{
	if (memory_is_libsci(__builtin_return_address(0)) || !threads_span())
		return REAL(pthread_create)(out, attr, fn, arg);
	return thread_start(out, attr, fn, arg, thread_place());
}

/* ---- join ---- */

static void join_undo(void *arg)
{
	struct thread *t = arg;

	atomic_store(&t->joiner, NULL);
}

/* Claim the right to join a thread. Return: 0, or errno. After 0 no other thread can join it. */
static int join_begin(struct thread *t)
{
	struct thread *none = NULL, *self = self_thread;

	if (atomic_load(&t->state) & THREAD_DETACHED)
		return EINVAL;
	if (t == self || (self && atomic_load(&self->joiner) == t))
		return EDEADLK;
	return atomic_compare_exchange_strong(&t->joiner, &none, self ? self : t) ? 0 : EINVAL;
}

static void join_end(struct thread *t, void **result)
{
	node_call(t->node, thread_reap, t);
	if (result)
		*result = t->result;
	thread_free(t);
}

/* Wait until a thread has ended, or until time @at if @at is not NULL. Return: 0, or errno. */
static int join_wait(struct thread *t, clockid_t clock, const struct timespec *at)
{
	int ret, old = errno, err = 0;

	pthread_cleanup_push(join_undo, t);
	do {
		ret = at ? sem_clockwait(&t->ended, clock, at) : sem_wait(&t->ended);
	} while (ret && errno == EINTR);
	err = ret ? errno : 0;
	pthread_cleanup_pop(err != 0);
	errno = old;
	return err;
}

static int thread_join(pthread_t native, struct thread *t, void **result, clockid_t clock,
		       const struct timespec *at)
{
	int err;

	(void)native;
	err = join_begin(t);
	err = err ? err : join_wait(t, clock, at);
	if (!err)
		join_end(t, result);
	return err;
}

EXPORT int pthread_join(pthread_t native, void **result)
{
	struct thread *t = thread_find(native);

	return t ? thread_join(native, t, result, 0, NULL) : REAL(pthread_join)(native, result);
}

EXPORT int pthread_timedjoin_np(pthread_t native, void **result, const struct timespec *at)
{
	struct thread *t = thread_find(native);

	return t ? thread_join(native, t, result, CLOCK_REALTIME, at) :
		   REAL(pthread_timedjoin_np)(native, result, at);
}

EXPORT int pthread_clockjoin_np(pthread_t native, void **result, clockid_t clock,
				const struct timespec *at)
{
	struct thread *t = thread_find(native);

	return t ? thread_join(native, t, result, clock, at) :
		   REAL(pthread_clockjoin_np)(native, result, clock, at);
}

EXPORT int pthread_tryjoin_np(pthread_t native, void **result)
{
	struct thread *t = thread_find(native);

	if (!t)
		return REAL(pthread_tryjoin_np)(native, result);
	if (t != self_thread && !(atomic_load(&t->state) & THREAD_ENDED))
		return EBUSY;
	return thread_join(native, t, result, 0, NULL);
}

EXPORT int pthread_detach(pthread_t native)
{
	struct thread *t = thread_find(native);

	if (!t)
		return REAL(pthread_detach)(native);
	if (atomic_load(&t->state) & THREAD_DETACHED)
		return EINVAL;
	thread_detach(t);
	return 0;
}
