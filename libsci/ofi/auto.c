// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * FI_PROGRESS_AUTO: a thread of the domain makes progress while the program does not.
 *
 * The thread checks every TICK_MS whether the program still makes progress itself. If not, the
 * thread makes progress, and then sleeps on the doorbells of all endpoints. When the program makes
 * progress again, it wakes the thread, because the program may have consumed a doorbell for which
 * the thread sleeps.
 */
#include "libsci/ofi/ofi.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "libsci/base/thread.h"

#define TICK_MS		1

/* Count a call of the program that makes progress. A sleeping thread returns to its ticks. */
void sfi_auto_called(struct sfi_auto *a)
{
	atomic_fetch_add_explicit(&a->calls, 1, memory_order_relaxed);
	if (atomic_load(&a->asleep) && atomic_exchange(&a->asleep, false))
		sfi_wait_signal(&a->wait);
}

/* Return whether the program has made progress since the last call. */
static bool program_is_active(struct sfi_auto *a, uint64_t *seen)
{
	uint64_t calls = atomic_load_explicit(&a->calls, memory_order_relaxed);

	if (calls == *seen)
		return false;
	*seen = calls;
	return true;
}

static void auto_tick(struct sfi_auto *a)
{
	struct pollfd p = { .fd = a->wait.signal, .events = POLLIN };

	sfi_wait_clear(&a->wait);
	if (!atomic_load(&a->stop))
		poll(&p, 1, TICK_MS);
}

static void auto_serve_and_sleep(struct sfi_domain *d)
{
	struct sfi_auto *a = &d->automatic;

	sfi_domain_progress(d);
	atomic_store(&a->asleep, true);
	if (!sfi_wait_arm(&a->wait, d)) {
		if (atomic_load(&a->asleep) && !atomic_load(&a->stop))
			sfi_wait_sleep(&a->wait, -1);
		else
			sfi_wait_disarm(&a->wait);
	}
	atomic_store(&a->asleep, false);
}

static void *auto_main(void *arg)
{
	struct sfi_domain *d = arg;
	struct sfi_auto *a = &d->automatic;
	uint64_t seen = 0;

	while (!atomic_load(&a->stop)) {
		if (program_is_active(a, &seen))
			auto_tick(a);
		else
			auto_serve_and_sleep(d);
	}
	return NULL;
}

int sfi_auto_start(struct sfi_domain *d)
{
	struct sfi_auto *a = &d->automatic;
	int ret = sfi_wait_open(&a->wait, FI_WAIT_UNSPEC, d);

	if (ret)
		return ret;
	a->pid = getpid();
	ret = sci_thread_start(&a->thread, auto_main, d, "sci-progress");
	a->runs = !ret;
	if (ret)
		sfi_wait_close(&a->wait, d);
	return ret;
}

/* Stop the progress thread. A child after fork() does not have this thread. */
void sfi_auto_stop(struct sfi_domain *d)
{
	struct sfi_auto *a = &d->automatic;

	if (!a->runs)
		return;
	atomic_store(&a->stop, true);
	if (a->pid == getpid()) {
		sfi_wait_signal(&a->wait);
		pthread_join(a->thread, NULL);
	}
	sfi_wait_close(&a->wait, d);
}
