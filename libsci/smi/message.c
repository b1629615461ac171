// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Small messages: one slot per ordered pair of processes. */

#include "libsci/smi/internal.h"

#include <stdlib.h>
#include <string.h>

struct smi_mailbox {			/* of one peer */
	bool full;			/* it holds a message from the peer */
	uint32_t len;
	unsigned char data[SMI_MESSAGE_MAX];
	bool sent;			/* a message to the peer is not waited for yet */
	bool taken;			/* the peer has received that message */
};

int smi_messages_start(void)
{
	smi.mailboxes = calloc((size_t)smi.size, sizeof(*smi.mailboxes));
	return smi.mailboxes ? SMI_SUCCESS : SMI_ERR_NOMEM;
}

void smi_messages_end(void)
{
	free(smi.mailboxes);
	smi.mailboxes = NULL;
}

void smi_message_handle(const struct smi_msg *m)
{
	struct smi_mailbox *b;

	pthread_mutex_lock(&smi.lock);
	b = &smi.mailboxes[m->from];
	if (m->type == SMI_MSG_TAKEN) {
		b->taken = b->sent;
	} else if (!b->full) {
		b->full = true;
		b->len = m->len;
		memcpy(b->data, m->data, m->len);
	}
	pthread_cond_broadcast(&smi.change);
	pthread_mutex_unlock(&smi.lock);
}

static int message_check_args(const void *buf, int count, int peer)
{
	if (smi_check_up())
		return SMI_ERR_NOINIT;
	if (!smi_rank_ok(peer) || peer == smi.rank || count < 0 ||
	    count > SMI_MESSAGE_MAX || (count && !buf))
		return SMI_ERR_PARAM;
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
	busy = smi.mailboxes[dest].sent;
	smi.mailboxes[dest].sent = true;
	if (!busy)
		smi.mailboxes[dest].taken = false;
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
	smi.mailboxes[dest].sent = false;
	pthread_mutex_unlock(&smi.lock);
	return err;
}

SMI_API smi_error_t SMI_Send_wait(int dest)
{
	struct smi_mailbox *b;
	int err = SMI_SUCCESS;

	SMI_REFUSE(!smi_rank_ok(dest) || dest == smi.rank);
	pthread_mutex_lock(&smi.lock);
	b = &smi.mailboxes[dest];
	if (!b->sent)
		err = SMI_ERR_NOTPOSTED;
	while (!err && !b->taken)
		err = smi_wait_change();
	if (err != SMI_ERR_NOTPOSTED)
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
	struct smi_mailbox *b;
	int err = message_check_args(buf, count, src);

	if (err)
		return err;
	pthread_mutex_lock(&smi.lock);
	b = &smi.mailboxes[src];
	while (!err && !b->full)
		err = smi_wait_change();
	/* receive a message that has arrived even if its sender has died */
	if (b->full)
		err = b->len == (uint32_t)count ? SMI_SUCCESS : SMI_ERR_PARAM;
	if (!err) {
		if (count)
			memcpy(buf, b->data, (size_t)count);
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
