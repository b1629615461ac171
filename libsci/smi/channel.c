// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: control messages
 *
 * Each process has one data interrupt, to which all other processes connect. The library's thread
 * handles each message when it arrives, also while the program computes. A handler never waits:
 * callbacks of the program, and answers for which the importer's queue has no space, are jobs of
 * two other threads.
 */
#include "libsci/smi/internal.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/base/thread.h"

static sci_local_data_interrupt_t channel_in;
static sci_remote_data_interrupt_t *channel_out;	/* by process */

/* A beat needs no handler: each message shows that its sender is alive. */
static void channel_ignore(const struct smi_msg *m)
{
	(void)m;
}

static void channel_handle(const struct smi_msg *m)
{
	static void (*const handlers[])(const struct smi_msg *m) = {
		[SMI_MSG_SIGNAL] = smi_signal_receive,
		[SMI_MSG_DATA] = smi_message_handle_data,
		[SMI_MSG_TAKEN] = smi_message_handle_taken,
		[SMI_MSG_IMPORTED] = smi_import_handle_answer,
		[SMI_MSG_GONE] = smi_import_handle_gone,
		[SMI_MSG_IMPORT] = smi_export_handle_import,
		[SMI_MSG_RELEASE] = smi_export_handle_release,
		[SMI_MSG_ABORT] = smi_abort_handle,
		[SMI_MSG_BEAT] = channel_ignore,
	};
	bool locked = m->type <= SMI_MSG_LOCKED;

	if (locked)
		pthread_mutex_lock(&smi.lock);
	handlers[m->type](m);
	if (locked) {
		pthread_cond_broadcast(&smi.change);
		pthread_mutex_unlock(&smi.lock);
	}
}

static sci_callback_action_t channel_receive(void *arg, sci_local_data_interrupt_t in,
					     void *data, unsigned int length,
					     sci_error_t status)
{
	struct smi_msg m;

	(void)arg;
	(void)in;
	if (status || length < offsetof(struct smi_msg, data) || length > sizeof(m))
		return SCI_CALLBACK_CONTINUE;
	memcpy(&m, data, length);
	if (!smi_rank_ok(m.from) || m.len != length - offsetof(struct smi_msg, data) ||
	    m.type >= SMI_MSG_TYPES)
		return SCI_CALLBACK_CONTINUE;
	smi_beat_count(m.from);
	channel_handle(&m);
	return SCI_CALLBACK_CONTINUE;
}

/* Pause, longer with each call. The caller sets *@n to 0 before the first call. */
static void channel_back_off(unsigned int *n)
{
	const struct timespec moment = { 0, 50000 };

	if (*n < 200)
		sci_cpu_relax();
	else if (*n < 400)
		sched_yield();
	else
		nanosleep(&moment, NULL);
	++*n;
	sci_team_progress(smi.team);
}

int smi_channel_send(int rank, struct smi_msg *m)
{
	unsigned int n = 0, len = (unsigned int)offsetof(struct smi_msg, data) + m->len;
	sci_error_t err;

	m->from = smi.rank;
	if (rank == smi.rank) {
		channel_handle(m);
		return SMI_SUCCESS;
	}
	/* NOSPC: the peer's queue is full; retry until its thread has emptied the queue */
	do {
		SCITriggerDataInterrupt(channel_out[rank], m, len, 0, &err);
		if (err == SCI_ERR_NOSPC)
			channel_back_off(&n);
	} while (err == SCI_ERR_NOSPC && !atomic_load(&smi.dead));
	return err ? 1000 + SMI_ERR_OTHER : SMI_SUCCESS;
}

bool smi_channel_try(int rank, struct smi_msg *m)
{
	sci_error_t err;

	m->from = smi.rank;
	SCITriggerDataInterrupt(channel_out[rank], m, (unsigned int)offsetof(struct smi_msg, data),
				0, &err);
	return err != SCI_ERR_NOSPC;
}

int smi_wait_change(int rank)
{
	struct smi_proc *p = &smi.procs[rank < 0 ? smi.size : rank];
	struct timespec until = sci_deadline(1000);

	if (atomic_load(&smi.dead))
		return SMI_ERR_OTHER;
	/* also test for dead processes here, because the watchdog may be off */
	if (!pthread_cond_timedwait(&smi.change, &smi.lock, &until) && sci_now_ns() < p->next_test)
		return SMI_SUCCESS;
	p->next_test = sci_now_ns() + 1000000000u;
	for (int i = 0; i < smi.size; i++)
		if ((rank < 0 || i == rank) && sci_team_alive(smi.team, i))
			return SMI_ERR_OTHER;
	return SMI_SUCCESS;
}

/* Return the code for a process to which this process cannot connect. */
static int channel_refused(int rank)
{
	sci_error_t err;

	SCIProbeNode(smi.sd, smi.adapter, smi.sci_node[smi_node_of(rank)], 0, &err);
	if (err != SCI_ERR_NO_SUCH_NODEID || sci_team_alive(smi.team, rank))
		return 1000 + SMI_ERR_OTHER;
	fprintf(stderr, "smi: process %d: no fabric reaches process %d "
		"(SMI does not use sockets)\n", smi.rank, rank);
	return SMI_ERR_NODEVICE;
}

int smi_channel_open(void)
{
	const unsigned int *numbers = smi.board;
	unsigned int number = 0;
	sci_error_t failed;
	int err;

	SCICreateDataInterrupt(smi.sd, &channel_in, smi.adapter, &number, channel_receive, NULL,
			       SCI_FLAG_USE_CALLBACK, &failed);
	err = smi_agree(smi.team, failed ? 1000 + SMI_ERR_OTHER : SMI_SUCCESS);
	err = err ? err : smi_exchange(&number, sizeof(number));
	if (err)
		return err;
	channel_out = calloc((size_t)smi.size, sizeof(channel_out[0]));
	for (int i = 0; channel_out && i < smi.size; i++) {
		if (i == smi.rank)
			continue;
		SCIConnectDataInterrupt(smi.sd, &channel_out[i], smi.sci_node[smi_node_of(i)],
					smi.adapter, numbers[i], 0, 0, &failed);
		if (failed)
			return channel_refused(i);
	}
	return channel_out ? SMI_SUCCESS : SMI_ERR_NOMEM;
}

/* ---- jobs of other threads ---- */

struct job {
	struct list link;
	void (*run)(struct job *job);	/* smi.lock is held */
	int id, reason;			/* of a callback */
	int to;				/* the process that gets @answer */
	struct smi_msg answer;
};

struct worker {
	pthread_t id;
	bool started;
	bool stop;
	struct list jobs;
	struct job *job;		/* the job that runs */
};

static struct worker callbacks = { .jobs = { &callbacks.jobs, &callbacks.jobs } };
static struct worker answers = { .jobs = { &answers.jobs, &answers.jobs } };

static void *worker_run(void *arg)
{
	struct worker *w = arg;
	struct job *job;

	pthread_mutex_lock(&smi.lock);
	while (!list_empty(&w->jobs) || !w->stop) {
		if (list_empty(&w->jobs)) {
			pthread_cond_wait(&smi.change, &smi.lock);
			continue;
		}
		job = w->job = container_of(list_pop(&w->jobs), struct job, link);
		job->run(job);
		w->job = NULL;
		free(job);
	}
	pthread_mutex_unlock(&smi.lock);
	return NULL;
}

/* Queue a copy of a job. Return false if that failed. Context: smi.lock is held. */
static bool worker_add(struct worker *w, const struct job *from)
{
	struct job *job = w->stop ? NULL : malloc(sizeof(*job));

	if (!w->started)
		w->started = job && !pthread_create(&w->id, NULL, worker_run, w);
	if (!job || !w->started) {
		free(job);
		return false;
	}
	*job = *from;
	list_add_tail(&job->link, &w->jobs);
	pthread_cond_broadcast(&smi.change);
	return true;
}

/* Run all pending jobs, then refuse new ones. */
static void worker_stop(struct worker *w)
{
	pthread_mutex_lock(&smi.lock);
	w->stop = true;
	pthread_cond_broadcast(&smi.change);
	pthread_mutex_unlock(&smi.lock);
	if (w->started && !pthread_equal(w->id, pthread_self()))
		pthread_join(w->id, NULL);
}

static void job_call_back(struct job *job)
{
	smi_region_call_back(&job->id, job->reason);
}

void smi_callback_queue(int id, int reason)
{
	const struct job job = { .run = job_call_back, .id = id, .reason = reason };

	worker_add(&callbacks, &job);
}

void smi_callbacks_forget(int id)
{
	struct job *job, *n;

	if (callbacks.job && callbacks.job->id == id)
		callbacks.job->id = -1;
	list_for_each_entry_safe(job, n, &callbacks.jobs, link)
		if (job->id == id) {
			list_del(&job->link);
			free(job);
		}
}

static void job_answer(struct job *job)
{
	pthread_mutex_unlock(&smi.lock);
	smi_channel_send(job->to, &job->answer);
	pthread_mutex_lock(&smi.lock);
}

void smi_channel_answer(int rank, struct smi_msg *m)
{
	const struct job job = { .run = job_answer, .to = rank, .answer = *m };
	bool queued;

	if (smi_channel_try(rank, m))
		return;
	pthread_mutex_lock(&smi.lock);
	queued = worker_add(&answers, &job);
	pthread_mutex_unlock(&smi.lock);
	if (!queued)
		smi_channel_send(rank, m);
}

void smi_callbacks_stop(void)
{
	worker_stop(&callbacks);
}

/* ---- the end ---- */

void smi_channel_close(void)
{
	sci_error_t err;
	int i;

	if (channel_in)
		SCIRemoveDataInterrupt(channel_in, 0, &err);
	worker_stop(&answers);
	for (i = 0; channel_out && i < smi.size; i++)
		if (channel_out[i])
			SCIDisconnectDataInterrupt(channel_out[i], 0, &err);
	free(channel_out);
}
