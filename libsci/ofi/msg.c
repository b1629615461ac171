// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Messages without tags: fi_msg(3). */
#include "libsci/ofi/hand.h"

static ssize_t recvv(struct fid_ep *fid, const struct iovec *iov, void **desc,
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

static __hot ssize_t recv_one(struct fid_ep *fid, void *buf, size_t len,
			      void *desc, fi_addr_t src, void *context)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = len };

	if (sfi_recv_held((struct sfi_ep *)fid, src, false, buf, len, 0, 0, context))
		return 0;
	return recvv(fid, &iov, &desc, 1, src, context);
}

static ssize_t recvmsg_flags(struct fid_ep *fid, const struct fi_msg *m,
			     uint64_t flags)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;
	const struct sfi_recv r = {
		.iov = m->msg_iov, .n = m->iov_count, .src = m->addr,
		.context = m->context, .flags = flags, .tagged = false,
	};

	return flags & (FI_PEEK | FI_CLAIM) ? sfi_look(ep, &r) : sfi_recv(ep, &r);
}

static ssize_t sendv(struct fid_ep *fid, const struct iovec *iov, void **desc,
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

static __hot ssize_t send_one(struct fid_ep *fid, const void *buf, size_t len,
			      void *desc, fi_addr_t dest, void *context)
{
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return sendv(fid, &iov, &desc, 1, dest, context);
}

static ssize_t sendmsg_flags(struct fid_ep *fid, const struct fi_msg *m,
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

static __hot ssize_t inject(struct fid_ep *fid, const void *buf, size_t len,
			    fi_addr_t dest)
{
	return sfi_inject((struct sfi_ep *)fid, dest, false, 0, NULL, buf, len);
}

static __hot ssize_t injectdata(struct fid_ep *fid, const void *buf, size_t len,
				uint64_t data, fi_addr_t dest)
{
	return sfi_inject((struct sfi_ep *)fid, dest, false, 0, &data, buf, len);
}

static __hot ssize_t senddata(struct fid_ep *fid, const void *buf, size_t len,
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
	.recv = recv_one,
	.recvv = recvv,
	.recvmsg = recvmsg_flags,
	.send = send_one,
	.sendv = sendv,
	.sendmsg = sendmsg_flags,
	.inject = inject,
	.senddata = senddata,
	.injectdata = injectdata,
};
