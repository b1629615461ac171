// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Receives and probes. */

#include "libsci/pvm/lib.h"

#include <errno.h>
#include <string.h>

#include "libsci/pvm/pack.h"

struct seek {
	int tid;
	int tag;
	int error;
	struct buf *found;
};

static bool seek_done(void *arg)
{
	struct seek *s = arg;

	s->found = pv_inbox_find(s->tid, s->tag, &s->error);
	/* a search that finds nothing has seen all messages */
	pv_me.unseen = s->found && pv_me.inbox.next != pv_me.inbox.prev;
	return s->found || s->error;
}

/*
 * Wait for a message from @tid with @tag, which stays in the inbox. Return: 1, 0 or an error. After 1
 * the caller calls pv_watch_renew(), which may run a handler that takes the message.
 */
static int seek_message(struct seek *s, int tid, int tag, int64_t deadline)
{
	int ret = pv_task_ready();

	*s = (struct seek){ .tid = tid, .tag = tag };
	if (ret < 0)
		return ret;
	/* tids and tags of daemons are below -1 */
	if ((tid < -1 || tag < -1) && !pv_opts.resv)
		return PvmBadParam;
	ret = pv_wait_until(seek_done, s, deadline);
	if (!s->error && s->found)
		return 1;
	pv_watch_renew();
	return s->error ? s->error : ret == PvmNoData ? 0 : ret;
}

/* Receive a message into the receive buffer. */
static int message_receive(const char *call, int tid, int tag, int64_t deadline)
{
	struct seek s;
	int ret = seek_message(&s, tid, tag, deadline);

	if (ret <= 0)
		return pv_report(call, ret);
	ret = pv_buf_name(s.found);
	if (ret >= 0) {
		pv_inbox_take(s.found);
		/* pvm_setrbuf() may have made a probed message the receive buffer */
		if (pv_me.rbuf != s.found)
			pv_buf_free(pv_me.rbuf);
		pv_me.rbuf = s.found;
	}
	pv_watch_renew();
	return pv_report(call, ret);
}

PVM_API int pvm_recv(int tid, int tag)
{
	return message_receive("pvm_recv", tid, tag, -1);
}

PVM_API int pvm_nrecv(int tid, int tag)
{
	return message_receive("pvm_nrecv", tid, tag, 0);
}

PVM_API int pvm_trecv(int tid, int tag, struct timeval *tmout)
{
	int64_t deadline = -1;

	if (tmout && (tmout->tv_sec < 0 || tmout->tv_usec < 0 ||
		      tmout->tv_sec > INT32_MAX))
		return lpvmerr("pvm_trecv", PvmBadParam);
	if (tmout)
		deadline = tmout->tv_sec || tmout->tv_usec ?
			pv_now_us() + (int64_t)tmout->tv_sec * 1000000 + tmout->tv_usec : 0;
	return message_receive("pvm_trecv", tid, tag, deadline);
}

PVM_API int pvm_probe(int tid, int tag)
{
	struct seek s;
	int ret = seek_message(&s, tid, tag, 0);

	if (ret > 0) {
		ret = pv_buf_name(s.found);
		pv_watch_renew();
	}
	return pv_report("pvm_probe", ret);
}

/* Copy the bytes of @b to @to. Receive bytes that the sender still has directly into @to. */
static int buf_deliver(struct buf *b, void *to, size_t size)
{
	struct iovec iov = { to, size < b->len ? size : b->len };
	struct sci_msg *msg = b->msg;
	struct sci_req *req;
	int ret;

	if (!msg) {
		if (iov.iov_len)
			memcpy(to, b->data, iov.iov_len);
		return 0;
	}
	ret = sci_msg_recv(msg, &iov, iov.iov_len ? 1 : 0, &req);
	if (ret == -ENOMEM)
		return PvmNoMem;
	b->msg = NULL;
	list_del(&b->late);
	if (!ret)
		ret = sci_wait(req, -1, NULL);
	return ret && ret != -EMSGSIZE ? PvmBadMsg : 0;
}

PVM_API int pvm_precv(int tid, int tag, void *data, int len, int type, int *rtid,
		      int *rtag, int *rlen)
{
	int size = pv_type_size(type);
	struct seek s;
	int ret;

	if (len < 0 || !size || (len && !data))
		return lpvmerr("pvm_precv", PvmBadParam);
	ret = seek_message(&s, tid, tag, -1);
	if (ret <= 0)
		return lpvmerr("pvm_precv", ret);
	pv_inbox_take(s.found);
	if (rtid)
		*rtid = s.found->info.src;
	if (rtag)
		*rtag = s.found->info.tag;
	if (rlen)
		*rlen = s.found->info.len;
	ret = buf_deliver(s.found, data, (size_t)len * (size_t)size);
	pv_buf_free(s.found);
	pv_watch_renew();
	return pv_report("pvm_precv", ret);
}
