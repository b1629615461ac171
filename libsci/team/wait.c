// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: waiting
 *
 * A waiter polls, then yields the CPU between polls, then sleeps: on the polled word if this is a
 * 4-byte word of shared memory, else on its own page or on the endpoint. A member that changes the
 * word checks a second word, which shows whether a thread sleeps. No barrier orders the two
 * accesses: the check may be executed before the change is visible, and so, very rarely, the
 * sleeper misses a wake-up. Programs also store to words without a library call. Therefore a sleep
 * takes at most an eighth of the time since the first sleep, and at most SLEEP_MAX_US. This limits
 * the delay of a missed wake-up, too.
 */

#include "libsci/base/host.h"
#include "libsci/team/team.h"

#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPINS		2000u		/* polls without yielding */
#define SPINS_CROWDED	1u		/* more would only keep the awaited process from the CPU */
#define SPINS_WORD	8u		/* loads of the word in one poll */
#define SPINS_POLL	64u		/* word polls between two endpoint polls */
#define YIELDS		200u
#define CROWDED_WAITS	64u		/* waits that poll less after another process has run */
#define YIELDS_POLL	8u
#define SLEEP_MIN_US	50u
#define SLEEP_MAX_US	5000u
#define SLEEP_BUSY_US	200u		/* limit if other work may be waiting */
#define SLEEP_SHARE	8u		/* a sleep's share in the time of the wait */

uint64_t team_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void team_futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void futex_sleep(const uint32_t *word, uint32_t seen, unsigned int us)
{
	struct timespec ts = { .tv_nsec = (long)us * 1000 };

	syscall(SYS_futex, word, FUTEX_WAIT, seen, &ts, NULL, 0);
}

void world_wake_slow(struct team_world *w, int rank)
{
	struct team_page *p = w->ranks[rank].page;

	sci_store_relaxed(&p->sleeping, 0);
	sci_fetch_add(&p->wakes, 1);
	team_futex_wake(&p->wakes);
}

void team_wait_init(struct team_wait *t, int timeout)
{
	memset(t, 0, sizeof(*t));
	t->deadline_ms = timeout < 0 ? UINT64_MAX : team_now_ms() + (uint64_t)timeout;
}

/* Sleep until a message arrives on the endpoint or the launcher reports a death, at most @us. */
static void endpoint_sleep(struct team_world *w, unsigned int us)
{
	struct pollfd fds[2] = {
		{ .fd = sci_ep_fd(w->ep), .events = POLLIN },
		{ .fd = sci_boot_fd(w->boot), .events = POLLIN },
	};
	struct timespec ts = { .tv_nsec = (long)us * 1000 };

	if (sci_ep_arm(w->ep))
		return;
	ppoll(fds, fds[1].fd >= 0 && !sci_load_relaxed(&w->deaths) ? 2 : 1, &ts, NULL);
}

/* Set the sleeping flag in the first call, and sleep in the next: the caller polls in between. */
static void page_sleep(struct team_world *w, struct team_wait *t, unsigned int us)
{
	if (!t->armed) {
		t->seen = sci_load_acquire(&w->page->wakes);
		sci_store_relaxed(&w->page->sleeping, 1);
		sci_full_barrier();
	} else {
		futex_sleep(&w->page->wakes, t->seen, us);
	}
	t->armed = !t->armed;
}

static void word_sleep(struct team_wait *t, unsigned int us)
{
	sci_store_relaxed(t->waiters, 1);
	sci_full_barrier();
	if (sci_load_acquire(t->word) == t->seen)
		futex_sleep(t->word, t->seen, us);
}

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* Yield the CPU. If another process has run meanwhile, the next CROWDED_WAITS waits poll less. */
static void wait_yield(struct team_world *w)
{
	if (w->crowded)
		sched_yield();
	else if (sci_cpu_yield())
		sci_store_relaxed(&w->crowded_waits, CROWDED_WAITS);
}

/* Return whether a wait that begins polls less. */
static bool wait_is_crowded(struct team_world *w)
{
	unsigned int waits = sci_load_relaxed(&w->crowded_waits);

	if (waits)
		sci_store_relaxed(&w->crowded_waits, waits - 1);
	return w->crowded || waits;
}

/* Poll only the word: this is faster than a step of a collective call. */
static void word_spin(const struct team_wait *t)
{
	for (unsigned int i = 0; i < SPINS_WORD; i++) {
		if (sci_load_relaxed(t->word) != t->seen)
			return;
		sci_cpu_relax();
	}
}

/* Return the limit of the next sleep in microseconds. */
static unsigned int sleep_us(struct team_world *w, struct team_wait *t)
{
	uint64_t most = sci_load_relaxed(&w->queued) || w->far ? SLEEP_BUSY_US : SLEEP_MAX_US;
	uint64_t now = now_us(), us;

	if (!t->since_us)
		t->since_us = now;
	us = (now - t->since_us) / SLEEP_SHARE;
	us = us < SLEEP_MIN_US ? SLEEP_MIN_US : us;
	return (unsigned int)(us < most ? us : most);
}

int team_wait_more(struct team_world *w, struct team_wait *t)
{
	unsigned int us;

	if (!t->spins)
		t->limit = wait_is_crowded(w) ? SPINS_CROWDED : SPINS;
	if (++t->spins < t->limit) {
		if (t->word)
			word_spin(t);
		else
			sci_cpu_relax();
		if (!(t->spins % SPINS_POLL))
			world_poll(w);
		return 0;
	}
	if (t->deadline_ms != UINT64_MAX && team_now_ms() >= t->deadline_ms)
		return -ETIMEDOUT;
	if (t->spins < t->limit + YIELDS) {
		wait_yield(w);
		if (w->far || !(t->spins % YIELDS_POLL))
			world_poll(w);
		return 0;
	}
	world_poll(w);
	us = sleep_us(w, t);
	if (t->word)
		word_sleep(t, us);
	else if (t->own && !w->far)
		page_sleep(w, t, us);
	else
		endpoint_sleep(w, us);
	return 0;
}
