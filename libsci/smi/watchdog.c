// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: the watchdog
 *
 * A thread of each process stores a growing number, the beat, into the memory of all other
 * processes and checks the beats that it receives. Where caches are not coherent, the receiver
 * itself copies a put into its memory, and a silent receiver does not: so a beat is a control
 * message there, and each control message counts as a beat. If a process's beat stops, or the
 * team reports the process's death, the program ends: every process runs the callback and exits.
 * SMI_Abort() does the same at once by a control message.
 */
#include "libsci/smi/internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "libsci/base/thread.h"

#define PERIOD_MS	200
#define DEFAULT_S	10

static pthread_t watchdog_id;
static bool watchdog_started, watchdog_ends;
static int watchdog_seconds = DEFAULT_S;
static pthread_mutex_t watchdog_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t watchdog_change = PTHREAD_COND_INITIALIZER;

static struct beat {
	uint32_t seen;			/* the last beat of a process */
	uint64_t when;			/* arrival of this beat, in nanoseconds */
} *beats;

static void (*_Atomic callback)(void);

/* Run the program's callback, at most once. */
static void watchdog_run_callback(void)
{
	void (*fn)(void) = atomic_exchange(&callback, NULL);

	if (fn)
		fn();
}

/* End this process after SMI_Abort() in another process. */
void smi_abort_handle(const struct smi_msg *m)
{
	watchdog_run_callback();
	_exit(m->a);
}

SMI_API void SMI_Abort(int code)
{
	struct smi_msg m = { .type = SMI_MSG_ABORT, .a = code };

	if (!smi_check_up())
		for (int i = 0; i < smi.size; i++)
			if (i != smi.rank)
				smi_channel_send(i, &m);
	watchdog_run_callback();
	fflush(stdout);
	fflush(stderr);
	_exit(code);
}

static void watchdog_report_death(int rank, const char *how)
{
	if (atomic_load(&smi.ending) || atomic_exchange(&smi.dead, rank + 1))
		return;
	fprintf(stderr, "smi: process %d: process %d %s; the program ends\n", smi.rank,
		rank, how);
	smi_abort_handle(&(struct smi_msg){ .a = 1 });
}

static void watchdog_check_process(int rank, uint64_t now, int seconds)
{
	struct beat *b = &beats[rank];
	uint32_t beat = atomic_load(smi_cell(0, rank));

	if (sci_team_alive(smi.team, rank))
		watchdog_report_death(rank, "has died");
	else if (beat != b->seen)
		*b = (struct beat){ beat, now };
	else if (now - b->when > (uint64_t)seconds * 1000000000u)
		watchdog_report_death(rank, "is silent");
}

void smi_beat_count(int from)
{
	if (smi.stale)
		atomic_fetch_add(smi_cell(0, from), 1);
}

/* Wait until the next beat is due. Return false if the thread must end. */
static bool watchdog_pause(int *seconds)
{
	struct timespec until = sci_deadline(PERIOD_MS);
	bool stop;

	pthread_mutex_lock(&watchdog_lock);
	while (!watchdog_ends &&
	       !pthread_cond_clockwait(&watchdog_change, &watchdog_lock, CLOCK_MONOTONIC, &until))
		;
	stop = watchdog_ends;
	*seconds = watchdog_seconds;
	pthread_mutex_unlock(&watchdog_lock);
	return !stop;
}

/*
 * Send the beat to all other processes, except silent ones: where memory is not shared, a put
 * waits for its receiver, and where beats are messages, they would fill the receiver's queue.
 */
static void beat_send(uint32_t beat, uint64_t now, int seconds)
{
	struct smi_msg m = { .type = SMI_MSG_BEAT };

	for (int i = 0; i < smi.size; i++) {
		if (i == smi.rank || (seconds > 0 && now - beats[i].when >
						     (uint64_t)seconds * 500000000u))
			continue;
		if (smi.stale)
			smi_channel_try(i, &m);
		else
			smi_cell_put(0, beat, i);
	}
	sci_team_progress(smi.team);
}

static void *watchdog_run(void *arg)
{
	uint32_t beat = 1;
	int seconds;

	(void)arg;
	while (watchdog_pause(&seconds)) {
		uint64_t now;

		beat_send(++beat, sci_now_ns(), seconds);
		now = sci_now_ns();
		for (int i = 0; seconds > 0 && i < smi.size; i++)
			if (i != smi.rank)
				watchdog_check_process(i, now, seconds);
	}
	return NULL;
}

int smi_watchdog_start(void)
{
	int i, ret;

	if (smi_args.no_watchdog || smi.size == 1 || watchdog_started)
		return SMI_SUCCESS;
	beats = calloc((size_t)smi.size, sizeof(*beats));
	if (!beats)
		return SMI_ERR_NOMEM;
	for (i = 0; i < smi.size; i++)
		beats[i].when = sci_now_ns();
	/* the first beat makes connections while all peers are known to be alive */
	beat_send(1, sci_now_ns(), 0);
	watchdog_ends = false;
	ret = sci_thread_start(&watchdog_id, watchdog_run, NULL, "smi-watchdog");
	watchdog_started = !ret;
	return ret ? 2000 - ret : SMI_SUCCESS;
}

void smi_watchdog_stop(void)
{
	pthread_mutex_lock(&watchdog_lock);
	watchdog_ends = true;
	pthread_cond_broadcast(&watchdog_change);
	pthread_mutex_unlock(&watchdog_lock);
	if (watchdog_started)
		pthread_join(watchdog_id, NULL);
	watchdog_started = false;
	free(beats);
	beats = NULL;
}

SMI_API smi_error_t SMI_Watchdog(int seconds)
{
	int err;

	SMI_REFUSE(seconds < SMI_WATCHDOG_OFF);
	pthread_mutex_lock(&watchdog_lock);
	watchdog_seconds = seconds < 0 ? 0 : seconds;
	pthread_mutex_unlock(&watchdog_lock);
	if (seconds != SMI_WATCHDOG_OFF)
		return smi_watchdog_start();
	/* all processes stop together: a process without this thread would seem dead */
	err = smi_agree(smi.team, SMI_SUCCESS);
	smi_watchdog_stop();
	return err;
}

/* ---- abnormal ends ---- */

static void watchdog_handle_signal(int sig)
{
	watchdog_run_callback();
	signal(sig, SIG_DFL);
	raise(sig);
}

SMI_API smi_error_t SMI_Watchdog_callback(void (*fcn)(void))
{
	static const int signals[] = { SIGINT, SIGTERM, SIGQUIT, SIGSEGV, SIGFPE };
	struct sigaction sa = { .sa_handler = watchdog_handle_signal }, old;

	SMI_ENTER();
	atomic_store(&callback, fcn);
	for (size_t i = 0; fcn && i < sizeof(signals) / sizeof(signals[0]); i++) {
		/* keep a handler that the program has installed */
		if (!sigaction(signals[i], NULL, &old) && old.sa_handler == SIG_DFL)
			sigaction(signals[i], &sa, NULL);
	}
	return SMI_SUCCESS;
}
