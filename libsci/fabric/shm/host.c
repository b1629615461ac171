// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Copies between two processes of one kernel. */

#include "libsci/fabric/shm/shm.h"

#include <errno.h>
#include <sys/uio.h>

/* bytes of one read: the kernel copies at most 2 GiB */
#define READ_MAX	((size_t)1 << 30)

static int memory_read_error(int err)
{
	switch (err) {
	case ESRCH:
		return -ENOTCONN;
	case EPERM:
	case ENOSYS:
		return -EOPNOTSUPP;
	default:
		return -err;
	}
}

static int memory_read(pid_t pid, char *dst, uintptr_t src, size_t len)
{
	while (len) {
		size_t piece = len < READ_MAX ? len : READ_MAX;
		struct iovec to = { dst, piece };
		struct iovec from = { (void *)src, piece };
		ssize_t n = process_vm_readv(pid, &to, 1, &from, 1, 0);

		if (n < 0)
			return memory_read_error(errno);
		if (!n)
			return -EFAULT;
		dst += n;
		src += (size_t)n;
		len -= (size_t)n;
	}
	return 0;
}

int shm_peer_read(struct sci_rseg *r, void *dst, uint64_t src, size_t len)
{
	int ret;

	/* process_vm_readv() does not reach another host, or another pid namespace (pid 0) */
	if (r->pid <= 0 || r->copy)
		return -EOPNOTSUPP;
	if (atomic_load(&r->status.gone))
		return -ENOTCONN;
	if (src > UINTPTR_MAX - len)
		return -EFAULT;
	ret = memory_read(r->pid, dst, (uintptr_t)src, len);
	/* after the peer's end another process may have its pid: do not use the bytes */
	return atomic_load(&r->status.gone) ? -ENOTCONN : ret;
}
