// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Messages of SMI_Send(): one slot per ordered pair of processes. */

#include "libsci/smi/internal.h"

#include <string.h>

void smi_message_handle_data(const struct smi_msg *m)
{
	struct smi_proc *b = &smi.procs[m->from];

	if (b->full)
		return;
	b->full = true;
	b->message = *m;
}

void smi_message_handle_taken(const struct smi_msg *m)
{
	smi.procs[m->from].taken = smi.procs[m->from].sent;
}

static int message_check_args(const void *buf, int count, int peer)
{
	SMI_REFUSE(!smi_rank_ok(peer) || peer == smi.rank || count < 0 ||
		   count > SMI_MESSAGE_MAX || (count && !buf));
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Isend(void *buf, int count, int dest)
{
	struct smi_msg m = { .type = SMI_MSG_DATA };
	bool busy;
	int err = message_check_args(buf, count, dest);

	if (err)
		return err;
	pthread_mutex_lock(&smi.lock);
	busy = smi.procs[dest].sent;
	smi.procs[dest].sent = true;
	if (!busy)
		smi.procs[dest].taken = false;
	pthread_mutex_unlock(&smi.lock);
	if (busy)
		return SMI_ERR_PENDING;
	m.len = (uint32_t)count;
	if (count)
		memcpy(m.data, buf, (size_t)count);
	err = smi_channel_send(dest, &m);
	if (!err)
		return SMI_SUCCESS;
	pthread_mutex_lock(&smi.lock);
	smi.procs[dest].sent = false;
	pthread_mutex_unlock(&smi.lock);
	return err;
}

SMI_API smi_error_t SMI_Send_wait(int dest)
{
	struct smi_proc *b;
	int err = SMI_SUCCESS;

	SMI_REFUSE(!smi_rank_ok(dest) || dest == smi.rank);
	pthread_mutex_lock(&smi.lock);
	b = &smi.procs[dest];
	if (!b->sent)
		err = SMI_ERR_NOTPOSTED;
	while (!err && !b->taken)
		err = smi_wait_change(dest);
	/* a receiver that has died may have received the message before */
	if (b->sent && b->taken)
		err = SMI_SUCCESS;
	b->sent = false;
	pthread_mutex_unlock(&smi.lock);
	return err;
}

SMI_API smi_error_t SMI_Send(void *buf, int count, int dest)
{
	int err = SMI_Isend(buf, count, dest);

	return err ? err : SMI_Send_wait(dest);
}

SMI_API smi_error_t SMI_Recv(void *buf, int count, int src)
{
	struct smi_msg m = { .type = SMI_MSG_TAKEN };
	struct smi_proc *b;
	int err = message_check_args(buf, count, src);

	if (err)
		return err;
	pthread_mutex_lock(&smi.lock);
	b = &smi.procs[src];
	while (!err && !b->full)
		err = smi_wait_change(src);
	/* receive a message that has arrived even if its sender has died */
	if (b->full)
		err = b->message.len == (uint32_t)count ? SMI_SUCCESS : SMI_ERR_PARAM;
	if (!err) {
		if (count)
			memcpy(buf, b->message.data, (size_t)count);
		b->full = false;
	}
	pthread_mutex_unlock(&smi.lock);
	if (!err)
		smi_channel_send(src, &m);
	return err;
}

SMI_API smi_error_t SMI_Sendrecv(void *sendbuf, void *recvbuf, int count, int peer)
{
	int err = SMI_Isend(sendbuf, count, peer), ret;

	if (err)
		return err;
	err = SMI_Recv(recvbuf, count, peer);
	ret = SMI_Send_wait(peer);
	return err ? err : ret;
}
