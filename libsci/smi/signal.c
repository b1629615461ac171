// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Signals. Each process counts them by sender until a thread waits for them. */

#include "libsci/smi/internal.h"

#include <stdlib.h>

/* The signals of one sender, and the threads that wait for them. */
struct sender {
	unsigned int for_any;		/* signals sent with SMI_SIGNAL_ANY */
	unsigned int direct;
	bool awaited;
	bool callback;
};

struct smi_signals {
	bool stop;
	int waits;			/* threads that wait */
	struct sender any;		/* only .awaited and .callback are used */
	struct sender from[];
};

int smi_signals_start(void)
{
	smi.signals = calloc(1, sizeof(*smi.signals) +
			     (size_t)smi.size * sizeof(smi.signals->from[0]));
	return smi.signals ? SMI_SUCCESS : SMI_ERR_NOMEM;
}

/* Free the signals after all waiting threads have returned. */
void smi_signals_end(void)
{
	pthread_mutex_lock(&smi.lock);
	if (smi.signals) {
		smi.signals->stop = true;
		pthread_cond_broadcast(&smi.change);
		while (smi.signals->waits)
			pthread_cond_wait(&smi.change, &smi.lock);
	}
	free(smi.signals);
	smi.signals = NULL;
	pthread_mutex_unlock(&smi.lock);
}

void smi_signal_take(const struct smi_msg *m)
{
	pthread_mutex_lock(&smi.lock);
	if (smi.signals) {
		if (m->a == SMI_SIGNAL_ANY)
			smi.signals->from[m->from].for_any++;
		else
			smi.signals->from[m->from].direct++;
		pthread_cond_broadcast(&smi.change);
	}
	pthread_mutex_unlock(&smi.lock);
}

SMI_API smi_error_t SMI_Signal_send(int rank)
{
	struct smi_msg m = { .type = SMI_MSG_SIGNAL };
	int i, to, err = SMI_SUCCESS;

	SMI_ENTER();
	if (smi_args.no_signals)
		return SMI_ERR_NOTIMPL;
	if (rank < 0)
		return SMI_ERR_PARAM;
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
	if (!*count)
		return false;
	--*count;
	return true;
}

/*
 * Take a signal; prefer one that was sent to calls such as the caller's. Context: smi.lock is held.
 */
static bool signal_take(int rank)
{
	struct sender *from = smi.signals->from;
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

static struct sender *signal_get_sender(int rank)
{
	return rank == SMI_SIGNAL_ANY ? &smi.signals->any : &smi.signals->from[rank];
}

/* Wait for a signal. Context: smi.lock is held. */
static int signal_await(int rank)
{
	int err = SMI_SUCCESS;

	smi.signals->waits++;
	while (!err && !signal_take(rank))
		err = smi.signals->stop ? SMI_ERR_NOINIT : smi_wait_change();
	smi.signals->waits--;
	return err;
}

SMI_API smi_error_t SMI_Signal_wait(int rank)
{
	struct sender *s;
	int err = SMI_ERR_PENDING;

	SMI_ENTER();
	if (smi_args.no_signals)
		return SMI_ERR_NOTIMPL;
	if (rank != SMI_SIGNAL_ANY && !smi_rank_ok(rank))
		return SMI_ERR_PARAM;
	pthread_mutex_lock(&smi.lock);
	s = signal_get_sender(rank);
	if (!s->awaited && !s->callback) {
		s->awaited = true;
		err = signal_await(rank);
		s->awaited = false;
	}
	pthread_cond_broadcast(&smi.change);
	pthread_mutex_unlock(&smi.lock);
	return err;
}

static void *callback_run(void *arg)
{
	smi_signal_handle_t *h = arg;
	int err;

	pthread_mutex_lock(&smi.lock);
	err = signal_await(h->iProcRank);
	signal_get_sender(h->iProcRank)->callback = false;
	pthread_cond_broadcast(&smi.change);
	pthread_mutex_unlock(&smi.lock);
	if (!err)
		h->callback_fcn(h->callback_arg);
	return NULL;
}

SMI_API smi_error_t SMI_Signal_setCallBack(int rank, void (*fcn)(void *), void *arg,
					   smi_signal_handle *handle)
{
	smi_signal_handle_t *h;
	struct sender *s;
	int err = SMI_ERR_PENDING, ret;

	SMI_ENTER();
	if (smi_args.no_signals)
		return SMI_ERR_NOTIMPL;
	if ((rank != SMI_SIGNAL_ANY && !smi_rank_ok(rank)) || !fcn || !handle)
		return SMI_ERR_PARAM;
	h = calloc(1, sizeof(*h));
	if (!h)
		return SMI_ERR_NOMEM;
	h->iProcRank = rank;
	h->callback_fcn = fcn;
	h->callback_arg = arg;
	pthread_mutex_lock(&smi.lock);
	s = signal_get_sender(rank);
	if (!s->awaited && !s->callback) {
		ret = pthread_create(&h->ptThread, NULL, callback_run, h);
		s->callback = !ret;
		err = ret ? 2000 + ret : SMI_SUCCESS;
	}
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
