// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: futexes of nodes that share no memory
 *
 * A thread that sleeps has a sleeper, a record of its node. The manager of the futex's page keeps a
 * list of sleepers in the order of their arrival. A thread puts itself on the list, waits for the
 * answer, and only then compares the futex with the value: a thread that changes the futex later also
 * sends its wake-up later, and finds the sleeper. If the values differ, or after a timeout, the
 * thread leaves the list. A wake-up that arrives before the thread has left belongs to
 * another sleeper, so the thread passes it on.
 *
 * Threads of the program give their messages to the sender, a thread of this library, since they
 * must not call libsci. Each sleeper has one message under way at most.
 */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <time.h>

#include "hosts.h"

#define SLEEPERS_MAX	32768u
#define BUCKETS		1024u

enum sleeper_state {
	SLEEPER_FREE,
	SLEEPER_COMES,			/* SLEEP_ADD has no answer yet */
	SLEEPER_SLEEPS,
	SLEEPER_LEAVES,			/* SLEEP_REMOVE has no answer yet */
	SLEEPER_GONE,			/* left the list without a wake-up */
	SLEEPER_WOKEN,
	SLEEPER_SENDS			/* no sleeper, but a message to the sender */
};

struct sleeper {
	futex_t state;
	struct sleeper *outer;		/* of a signal handler: sleeper of the interrupted call */
	struct sleeper *next;		/* in the list of free ones, or of the sender */
	enum link_op op;
	struct link_wire w;
};

/* A sleeper on the list of the manager. */
struct listed {
	struct listed *next;
	uint64_t addr;
	uint32_t token;
	unsigned int node;
};

static struct {
	struct sleeper all[SLEEPERS_MAX];
	uint32_t used;
	struct sleeper *free;
	struct lock lock;		/* protects @used and @free */
	_Atomic(struct sleeper *) send;
	futex_t sends;			/* counts messages for the sender */
	struct listed *first[BUCKETS], **last[BUCKETS];	/* only handlers use them */
} sleep_;

static _Thread_local struct sleeper *innermost;

/* ---- the sender ---- */

static void sender_push(struct sleeper *s, enum link_op op)
{
	struct sleeper *head = atomic_load(&sleep_.send);

	s->op = op;
	do {
		s->next = head;
	} while (!atomic_compare_exchange_weak(&sleep_.send, &head, s));
	atomic_fetch_add(&sleep_.sends, 1);
	futex_wake(&sleep_.sends, 1);
}

/* Take the lock of the free sleepers. Signals are blocked: handlers may call sem_post(3). */
static void free_lock(sigset_t *old)
{
	signals_block(old);
	lock_take(&sleep_.lock);
}

static void free_unlock(const sigset_t *old)
{
	lock_give(&sleep_.lock);
	signals_restore(old);
}

static void sleeper_free(struct sleeper *s)
{
	sigset_t old;

	atomic_store(&s->state, SLEEPER_FREE);
	free_lock(&old);
	s->next = sleep_.free;
	sleep_.free = s;
	free_unlock(&old);
}

/* A message about a sleeper has arrived, or has been sent: let its thread go on. */
static void sleeper_set(const struct link_wire *w, uint32_t state)
{
	struct sleeper *s = &sleep_.all[w->token % SLEEPERS_MAX];

	atomic_store(&s->state, state);
	futex_wake(&s->state, 1);
}

/* Messages of one thread go out in order, because it waits for each answer. */
static noreturn void *sender_main(void *arg)
{
	(void)arg;
	for (;;) {
		uint32_t seen = atomic_load(&sleep_.sends);
		struct sleeper *s = atomic_exchange(&sleep_.send, NULL), *next;

		if (!s)
			futex_wait(&sleep_.sends, seen);
		for (; s; s = next) {
			struct link_wire w = s->w;
			enum link_op op = s->op;

			next = s->next;
			if (op == SLEEP_WAKE)
				sleeper_free(s);
			if (op == PROGRAM_END) {
				if (w.value == END_GONE)
					link_end(END_GONE);
				else
					link_go_on();
				sleeper_set(&w, SLEEPER_GONE);
			} else {
				link_send(page_manager(w.addr), op, &w, NULL);
			}
		}
	}
}

/* ---- the manager ---- */

static unsigned int bucket(uint64_t addr)
{
	return (unsigned int)((addr >> 2) % BUCKETS);
}

static void list_put(unsigned int node, const struct link_wire *w)
{
	unsigned int b = bucket(w->addr);
	struct listed *l = calloc(1, sizeof(*l));

	if (!l) {
		world_say("node %u is out of memory: the program ends", node_id(self_node));
		syscall(SYS_exit_group, 1);
		return;
	}
	*l = (struct listed){ .addr = w->addr, .token = w->token, .node = node };
	if (!sleep_.first[b])
		sleep_.last[b] = &sleep_.first[b];
	*sleep_.last[b] = l;
	sleep_.last[b] = &l->next;
}

static void list_cut(struct listed **at, unsigned int b)
{
	struct listed *l = *at;

	*at = l->next;
	if (!l->next)
		sleep_.last[b] = at;
	free(l);
}

static void list_wake(const struct link_wire *w)
{
	unsigned int b = bucket(w->addr);
	struct listed **at = &sleep_.first[b];

	for (int n = w->value; *at && n > 0;) {
		struct link_wire to = { .addr = w->addr, .token = (*at)->token };

		if ((*at)->addr != w->addr) {
			at = &(*at)->next;
			continue;
		}
		link_send((*at)->node, SLEEP_WOKEN, &to, NULL);
		list_cut(at, b);
		n--;
	}
}

static bool list_leave(unsigned int node, const struct link_wire *w)
{
	unsigned int b = bucket(w->addr);

	for (struct listed **at = &sleep_.first[b]; *at; at = &(*at)->next)
		if ((*at)->token == w->token && (*at)->node == node) {
			list_cut(at, b);
			return true;
		}
	return false;
}

/* ---- messages ---- */

/* Wake a sleeper. A thread that leaves the list learns of the wake-up from SLEEP_REMOVED. */
static void sleeper_wake(const struct link_wire *w)
{
	struct sleeper *s = &sleep_.all[w->token % SLEEPERS_MAX];
	uint32_t state = SLEEPER_SLEEPS;

	if (atomic_compare_exchange_strong(&s->state, &state, SLEEPER_WOKEN))
		futex_wake(&s->state, 1);
}

void sleep_handle(unsigned int from, enum link_op op, const struct link_wire *w)
{
	struct link_wire answer = *w;

	switch (op) {
	case SLEEP_ADD:
		list_put(from, w);
		link_send(from, SLEEP_ADDED, w, NULL);
		break;
	case SLEEP_REMOVE:
		answer.value = list_leave(from, w);
		link_send(from, SLEEP_REMOVED, &answer, NULL);
		break;
	case SLEEP_WAKE:
		list_wake(w);
		break;
	case SLEEP_ADDED:
		sleeper_set(w, SLEEPER_SLEEPS);
		break;
	case SLEEP_REMOVED:
		sleeper_set(w, w->value ? SLEEPER_GONE : SLEEPER_WOKEN);
		break;
	case SLEEP_WOKEN:
		sleeper_wake(w);
		break;
	default:
		break;
	}
}

/* ---- threads that use futexes ---- */

static struct sleeper *sleeper_new(uint64_t addr)
{
	struct sleeper *s;
	sigset_t old;

	free_lock(&old);
	s = sleep_.free;
	if (s)
		sleep_.free = s->next;
	else if (sleep_.used < SLEEPERS_MAX)
		s = &sleep_.all[sleep_.used++];
	free_unlock(&old);
	if (!s) {
		world_say("node %u: more than %u threads sleep: the program ends",
			  node_id(self_node), SLEEPERS_MAX);
		for (;;)
			syscall(SYS_exit_group, 1);
	}
	s->w = (struct link_wire){ .addr = addr, .token = (uint32_t)(s - sleep_.all) };
	return s;
}

static void wake_send(uint64_t addr, int n)
{
	struct sleeper *s = sleeper_new(addr);

	atomic_store(&s->state, SLEEPER_SENDS);
	s->w.value = n;
	sender_push(s, SLEEP_WAKE);
}

/* Wait until the sleeper has left @state. @at: NULL, or the end of the wait. Return errno. */
static int sleeper_wait(struct sleeper *s, uint32_t state, int clock, const struct timespec *at)
{
	int err = 0;

	while (!err && atomic_load(&s->state) == state)
		if (syscall(SYS_futex, &s->state, FUTEX_WAIT_BITSET | clock,
			    state, at, NULL, FUTEX_BITSET_MATCH_ANY) && errno != EAGAIN)
			err = errno;
	return err;
}

/* Leave the list. Return true if a wake-up came first. */
static bool sleeper_leave(struct sleeper *s)
{
	uint32_t state = SLEEPER_SLEEPS;

	if (!atomic_compare_exchange_strong(&s->state, &state, SLEEPER_LEAVES))
		return true;
	sender_push(s, SLEEP_REMOVE);
	while (sleeper_wait(s, SLEEPER_LEAVES, 0, NULL))
		;
	return atomic_load(&s->state) == SLEEPER_WOKEN;
}

static void sleeper_end(struct sleeper *s)
{
	innermost = s->outer;
	sleeper_free(s);
}

/* Leave the list, and pass on a wake-up that came first. */
static void sleeper_cancel(void *arg)
{
	struct sleeper *s = arg;

	if (sleeper_leave(s))
		wake_send(s->w.addr, 1);
	sleeper_end(s);
}

/* Sleep, with cancellation type @type. Return errno. */
static int sleeper_sleep(struct sleeper *s, int type, int clock, const struct timespec *at)
{
	int err;

	pthread_cleanup_push(sleeper_cancel, s);
	REAL(pthread_setcanceltype)(type, NULL);
	err = sleeper_wait(s, SLEEPER_SLEEPS, clock, at);
	REAL(pthread_setcanceltype)(PTHREAD_CANCEL_DEFERRED, NULL);
	pthread_cleanup_pop(0);
	return err;
}

/* Context: cancellation is deferred. @type: the cancellation type of the sleep. */
static int wait_at(futex_t *f, uint32_t value, int type, int clock, const struct timespec *at)
{
	struct sleeper *s = sleeper_new((uintptr_t)f);
	bool woken, same;
	int err;

	atomic_store(&s->state, SLEEPER_COMES);
	s->outer = innermost;
	innermost = s;
	sender_push(s, SLEEP_ADD);
	while (sleeper_wait(s, SLEEPER_COMES, 0, NULL))
		;
	same = atomic_load(f) == value;
	err = same ? sleeper_sleep(s, type, clock, at) : EAGAIN;
	if (!err) {
		sleeper_end(s);
		return 0;
	}
	woken = sleeper_leave(s);
	sleeper_end(s);
	if (woken && same)
		return 0;
	if (woken)
		wake_send((uintptr_t)f, 1);
	return -err;
}

static void wake_pass(void *f)
{
	wake_send((uintptr_t)f, 1);
}

/*
 * libc waits with an asynchronous cancellation type in sem_wait() and similar functions. So the
 * thread may be cancelled only while it sleeps, or at the end, when another thread gets its
 * wake-up.
 */
static long wait_cancelable(futex_t *f, uint32_t value, int clock, const struct timespec *at)
{
	int type, ret;

	REAL(pthread_setcanceltype)(PTHREAD_CANCEL_DEFERRED, &type);
	ret = wait_at(f, value, type, clock, at);
	pthread_cleanup_push(wake_pass, f);
	REAL(pthread_setcanceltype)(type, NULL);
	pthread_cleanup_pop(0);
	return ret;
}

/* Convert a relative timeout to a time of CLOCK_MONOTONIC. */
static void timeout_to_time(struct timespec *at, const struct timespec *timeout)
{
	clock_gettime(CLOCK_MONOTONIC, at);
	at->tv_sec += timeout->tv_sec;
	at->tv_nsec += timeout->tv_nsec;
	if (at->tv_nsec >= 1000000000) {
		at->tv_sec++;
		at->tv_nsec -= 1000000000;
	}
}

long hosts_futex(futex_t *f, int op, uint32_t value, const struct timespec *timeout,
		 uint32_t bits)
{
	struct timespec at;

	switch (op & FUTEX_CMD_MASK) {
	case FUTEX_WAIT:
		if (timeout)
			timeout_to_time(&at, timeout);
		return wait_cancelable(f, value, 0, timeout ? &at : NULL);
	case FUTEX_WAIT_BITSET:
		if (timeout)
			at = *timeout;
		if (bits == FUTEX_BITSET_MATCH_ANY)
			return wait_cancelable(f, value, op & FUTEX_CLOCK_REALTIME,
					       timeout ? &at : NULL);
		break;
	case FUTEX_WAKE:
		wake_send((uintptr_t)f, value > INT_MAX ? INT_MAX : (int)value);
		return 0;
	default:
		break;
	}
	world_say("futex operation %d does not work between machines: the program ends",
		  op & FUTEX_CMD_MASK);
	hosts_abort();
}

/* Let the sender end the nodes, or go on, and wait until it has done so. */
static void end_send(int value)
{
	struct sleeper *s = sleeper_new(0);

	s->w.value = value;
	atomic_store(&s->state, SLEEPER_SENDS);
	sender_push(s, PROGRAM_END);
	while (sleeper_wait(s, SLEEPER_SENDS, 0, NULL))
		;
	sleeper_free(s);
}

void hosts_end(void)
{
	end_send(END_GONE);
}

void hosts_go_on(void)
{
	atomic_store(&world->ending, false);
	end_send(END_NOT);
}

void sleep_thread_end(void)
{
	while (innermost) {
		struct sleeper *s = innermost;

		while (sleeper_wait(s, SLEEPER_COMES, 0, NULL))
			;
		if (sleeper_leave(s))
			wake_send(s->w.addr, 1);
		sleeper_end(s);
	}
}

int sleep_open(void)
{
	return quiet_start(sender_main) ? 0 : -EAGAIN;
}
