// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Signals. Each process counts received signals by sender until a thread waits for them. */

#include "libsci/smi/internal.h"

#include <stdlib.h>

static bool signals_stop;
static int signals_waits;			/* calls of signal_await() that have not returned */

/* End all waits for signals, and return after the waiting threads have returned. */
void smi_signals_end(void)
{
	pthread_mutex_lock(&smi.lock);
	signals_stop = true;
	pthread_cond_broadcast(&smi.change);
	while (signals_waits)
		pthread_cond_wait(&smi.change, &smi.lock);
	pthread_mutex_unlock(&smi.lock);
}

void smi_signal_receive(const struct smi_msg *m)
{
	if (m->a == SMI_SIGNAL_ANY)
		smi.procs[m->from].for_any++;
	else
		smi.procs[m->from].direct++;
}

/* Check that SMI is up and signals are in use. @good: whether the arguments are valid. */
static int signal_check_args(bool good)
{
	SMI_ENTER();
	if (smi_args.no_signals)
		return SMI_ERR_NOTIMPL;
	return good ? SMI_SUCCESS : SMI_ERR_PARAM;
}

SMI_API smi_error_t SMI_Signal_send(int rank)
{
	struct smi_msg m = { .type = SMI_MSG_SIGNAL };
	int i, to, err = signal_check_args(rank >= 0);

	if (err)
		return err;
	m.a = rank & SMI_SIGNAL_ANY;
	to = rank & ~SMI_SIGNAL_ANY;
	if (to != SMI_SIGNAL_BCAST)
		return smi_rank_ok(to) ? smi_channel_send(to, &m) : SMI_ERR_PARAM;
	for (i = 0; !err && i < smi.size; i++)
		if (i != smi.rank)
			err = smi_channel_send(i, &m);
	return err;
}

static bool signal_count_take(unsigned int *count)
{
	return *count && (*count)--;
}

/*
 * Take a signal of @rank; prefer direct signals, or with SMI_SIGNAL_ANY signals for any. Context:
 * smi.lock is held.
 */
static bool signal_take(int rank)
{
	struct smi_proc *from = smi.procs;
	int i;

	if (rank != SMI_SIGNAL_ANY)
		return signal_count_take(&from[rank].direct) ||
		       signal_count_take(&from[rank].for_any);
	for (i = 0; i < smi.size; i++)
		if (signal_count_take(&from[i].for_any))
			return true;
	for (i = 0; i < smi.size; i++)
		if (signal_count_take(&from[i].direct))
			return true;
	return false;
}

static struct smi_proc *signal_get_sender(int rank)
{
	return &smi.procs[rank == SMI_SIGNAL_ANY ? smi.size : rank];
}

/* Announce a call of signal_await(), so that SMI_Finalize() waits. Context: smi.lock is held. */
static void signal_await_begin(int rank)
{
	signals_waits++;
	signal_get_sender(rank)->awaited = true;
}

/* Wait for a signal, after signal_await_begin(). Context: smi.lock is held. */
static int signal_await(int rank)
{
	int err = SMI_SUCCESS;

	while (!err && !signal_take(rank))
		err = signals_stop ? SMI_ERR_NOINIT :
				     smi_wait_change(rank == SMI_SIGNAL_ANY ? -1 : rank);
	signal_get_sender(rank)->awaited = false;
	signals_waits--;
	pthread_cond_broadcast(&smi.change);
	return err;
}

SMI_API smi_error_t SMI_Signal_wait(int rank)
{
	int err = signal_check_args(rank == SMI_SIGNAL_ANY || smi_rank_ok(rank));

	if (err)
		return err;
	pthread_mutex_lock(&smi.lock);
	if (signal_get_sender(rank)->awaited) {
		err = SMI_ERR_PENDING;
	} else {
		signal_await_begin(rank);
		err = signal_await(rank);
	}
	pthread_mutex_unlock(&smi.lock);
	return err;
}

static void *callback_run(void *arg)
{
	smi_signal_handle_t *h = arg;
	int err;

	pthread_mutex_lock(&smi.lock);
	err = signal_await(h->iProcRank);
	pthread_mutex_unlock(&smi.lock);
	if (!err)
		h->callback_fcn(h->callback_arg);
	return NULL;
}

SMI_API smi_error_t SMI_Signal_setCallBack(int rank, void (*fcn)(void *), void *arg,
					   smi_signal_handle *handle)
{
	smi_signal_handle_t *h;
	bool awaited;
	int ret, err = signal_check_args((rank == SMI_SIGNAL_ANY || smi_rank_ok(rank)) && fcn &&
					 handle);

	if (err)
		return err;
	h = malloc(sizeof(*h));
	if (!h)
		return SMI_ERR_NOMEM;
	*h = (smi_signal_handle_t) { .iProcRank = rank, .callback_fcn = fcn, .callback_arg = arg };
	pthread_mutex_lock(&smi.lock);
	awaited = signal_get_sender(rank)->awaited;
	ret = awaited ? 0 : pthread_create(&h->ptThread, NULL, callback_run, h);
	err = awaited ? SMI_ERR_PENDING : ret ? 2000 + ret : SMI_SUCCESS;
	/* the thread may start after SMI_Finalize() has begun to wait */
	if (!err)
		signal_await_begin(rank);
	pthread_mutex_unlock(&smi.lock);
	if (err)
		free(h);
	else
		*handle = h;
	return err;
}

SMI_API smi_error_t SMI_Signal_joinCallBack(smi_signal_handle *handle)
{
	if (!handle || !*handle)
		return SMI_ERR_PARAM;
	pthread_join((*handle)->ptThread, NULL);
	free(*handle);
	*handle = NULL;
	return SMI_SUCCESS;
}
