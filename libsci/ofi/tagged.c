// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Messages with tags: fi_tagged(3). */
#include "libsci/ofi/held.h"

static ssize_t tagged_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			    size_t n, fi_addr_t src, uint64_t tag, uint64_t ignore,
			    void *context)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;
	const struct sfi_recv r = {
		.iov = iov, .n = n, .src = src, .context = context,
		.flags = ep->rx.op_flags, .tagged = true,
		.tag = tag, .ignore = ignore,
	};

	(void)desc;
	return sfi_recv(ep, &r);
}

static __hot ssize_t tagged_recv(struct fid_ep *fid, void *buf, size_t len,
				 void *desc, fi_addr_t src, uint64_t tag,
				 uint64_t ignore, void *context)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = len };

	if (sfi_recv_held((struct sfi_ep *)fid, src, true, buf, len, tag, ignore,
			  context))
		return 0;
	return tagged_recvv(fid, &iov, &desc, 1, src, tag, ignore, context);
}

static ssize_t tagged_recvmsg_flags(struct fid_ep *fid, const struct fi_msg_tagged *m,
				    uint64_t flags)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;
	const struct sfi_recv r = {
		.iov = m->msg_iov, .n = m->iov_count, .src = m->addr,
		.context = m->context, .flags = flags, .tagged = true,
		.tag = m->tag, .ignore = m->ignore,
	};

	return flags & (FI_PEEK | FI_CLAIM) ? sfi_look(ep, &r) : sfi_recv(ep, &r);
}

static ssize_t tagged_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			    size_t n, fi_addr_t dest, uint64_t tag, void *context)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;
	const struct sfi_send s = {
		.iov = iov, .n = n, .dest = dest, .context = context,
		.flags = ep->tx.op_flags, .tagged = true,
		.tag = tag,
	};

	(void)desc;
	return sfi_send(ep, &s);
}

static __hot ssize_t tagged_send(struct fid_ep *fid, const void *buf, size_t len,
				 void *desc, fi_addr_t dest, uint64_t tag,
				 void *context)
{
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };

	return tagged_sendv(fid, &iov, &desc, 1, dest, tag, context);
}

static ssize_t tagged_sendmsg_flags(struct fid_ep *fid, const struct fi_msg_tagged *m,
				    uint64_t flags)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;
	const struct sfi_send s = {
		.iov = m->msg_iov, .n = m->iov_count, .dest = m->addr,
		.context = m->context, .data = m->data, .flags = flags,
		.tagged = true,
		.tag = m->tag,
	};

	return sfi_send(ep, &s);
}

static __hot ssize_t tagged_inject(struct fid_ep *fid, const void *buf, size_t len,
				   fi_addr_t dest, uint64_t tag)
{
	return sfi_inject((struct sfi_ep *)fid, dest, true, tag, NULL, buf, len);
}

static __hot ssize_t tagged_injectdata(struct fid_ep *fid, const void *buf, size_t len,
				       uint64_t data, fi_addr_t dest, uint64_t tag)
{
	return sfi_inject((struct sfi_ep *)fid, dest, true, tag, &data, buf, len);
}

static __hot ssize_t tagged_senddata(struct fid_ep *fid, const void *buf, size_t len,
				     void *desc, uint64_t data, fi_addr_t dest,
				     uint64_t tag, void *context)
{
	struct sfi_ep *ep = (struct sfi_ep *)fid;
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	const struct sfi_send s = {
		.iov = &iov, .n = 1, .dest = dest, .context = context,
		.data = data, .flags = ep->tx.op_flags | FI_REMOTE_CQ_DATA,
		.tagged = true,
		.tag = tag,
	};

	(void)desc;
	return sfi_send(ep, &s);
}

struct fi_ops_tagged sfi_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = tagged_recv,
	.recvv = tagged_recvv,
	.recvmsg = tagged_recvmsg_flags,
	.send = tagged_send,
	.sendv = tagged_sendv,
	.sendmsg = tagged_sendmsg_flags,
	.inject = tagged_inject,
	.senddata = tagged_senddata,
	.injectdata = tagged_injectdata,
};
