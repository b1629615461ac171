// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Messages without tags: fi_msg(3). */
#include "libsci/ofi/held.h"

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			 size_t n, fi_addr_t src,
			 void *context)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;
	const struct sfi_recv r = {
		.iov = iov, .n = n, .src = src, .context = context,
		.flags = ep->rx.op_flags, .tagged = false,
	};

	(void)desc;
	return sfi_recv(ep, &r);
}

static __hot ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t len,
			      void *desc, fi_addr_t src, void *context)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = len };

	if (sfi_recv_held((struct sfi_ep *)fid, src, false, buf, len, 0, 0, context))
		return 0;
	return msg_recvv(fid, &iov, &desc, 1, src, context);
}

static ssize_t msg_recvmsg_flags(struct fid_ep *fid, const struct fi_msg *m,
				 uint64_t flags)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;
	const struct sfi_recv r = {
		.iov = m->msg_iov, .n = m->iov_count, .src = m->addr,
		.context = m->context, .flags = flags, .tagged = false,
	};

	return flags & (FI_PEEK | FI_CLAIM) ? sfi_look(ep, &r) : sfi_recv(ep, &r);
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			 size_t n, fi_addr_t dest, void *context)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;
	const struct sfi_send s = {
		.iov = iov, .n = n, .dest = dest, .context = context,
		.flags = ep->tx.op_flags, .tagged = false,
	};

	(void)desc;
	return sfi_send(ep, &s);
}

static __hot ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len,
			      void *desc, fi_addr_t dest, void *context)
{
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return msg_sendv(fid, &iov, &desc, 1, dest, context);
}

static ssize_t msg_sendmsg_flags(struct fid_ep *fid, const struct fi_msg *m,
				 uint64_t flags)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;
	const struct sfi_send s = {
		.iov = m->msg_iov, .n = m->iov_count, .dest = m->addr,
		.context = m->context, .data = m->data, .flags = flags,
		.tagged = false,
	};

	return sfi_send(ep, &s);
}

static __hot ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len,
				fi_addr_t dest)
{
	return sfi_inject((struct sfi_ep *)fid, dest, false, 0, NULL, buf, len);
}

static __hot ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t len,
				    uint64_t data, fi_addr_t dest)
{
	return sfi_inject((struct sfi_ep *)fid, dest, false, 0, &data, buf, len);
}

static __hot ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t len,
				  void *desc, uint64_t data, fi_addr_t dest,
				  void *context)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	const struct sfi_send s = {
		.iov = &iov, .n = 1, .dest = dest, .context = context,
		.data = data, .flags = ep->tx.op_flags | FI_REMOTE_CQ_DATA,
		.tagged = false,
	};

	(void)desc;
	return sfi_send(ep, &s);
}

struct fi_ops_msg sfi_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg_flags,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg_flags,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};
