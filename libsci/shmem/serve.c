// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * OpenSHMEM programs may compute without a call, and the calls of other PEs must still complete.
 * Puts and gets complete without the target. An atomic on a PE that loads and stores do not reach
 * needs progress of that PE: then a thread of that PE makes progress.
 */

#include <unistd.h>

#include "libsci/base/thread.h"
#include "libsci/shmem/internal.h"

#define SERVE_MS	2u		/* interval of progress calls; see serve_interval_ms() */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stopped;
static pthread_t thread;
static bool stop;

/*
 * Return the interval of progress calls. If a node has more PEs than CPUs, the interval is longer by
 * this ratio: so the threads of all PEs wake up each CPU at most once in SERVE_MS.
 */
static unsigned int serve_interval_ms(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	long pes = sci_team_node_size(shmem.team, sci_team_node(shmem.team, shmem.my_pe));

	return cpus < 1 || pes <= cpus ? SERVE_MS :
	       SERVE_MS * (unsigned int)((pes + cpus - 1) / cpus);
}

static void *serve_run(void *arg)
{
	unsigned int ms = serve_interval_ms();

	pthread_mutex_lock(&lock);
	while (!stop) {
		struct timespec end = sci_deadline(ms);

		sci_team_progress(arg);
		sci_cond_wait(&stopped, &lock, ms, &end);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

int serve_start(void)
{
	sci_cond_init(&stopped);
	stop = false;
	return sci_thread_start(&thread, serve_run, shmem.team, "sci-shmem");
}

void serve_stop(void)
{
	pthread_mutex_lock(&lock);
	stop = true;
	pthread_cond_signal(&stopped);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	pthread_cond_destroy(&stopped);
}
