// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The program has its own mremap(). The libraries of other networks replace mremap() in all
 * libraries of the process. The one of UCX 1.13 loses the new address, its last argument.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sci/msg.h>

#include "libsci/base/host.h"
#include "selftests/harness.h"
#include "selftests/msg/peers.h"

#define LEN	8192u

void *mremap(void *old, size_t len, size_t new_len, int flags, ...)
{
	return (void *)syscall(SYS_mremap, old, len, new_len, flags & ~MREMAP_FIXED, NULL);
}

TEST(registered_memory_is_shared)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	unsigned char *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				-1, 0);

	if (!(sci_ep_traits(ep) & SCI_TRAIT_REGISTER_COPIES))
		SKIP("this fabric registers memory in place");
	CHECK(p != MAP_FAILED);
	memset(p, 7, LEN);
	CHECK_EQ(sci_buf_register(ep, p, LEN), 0);
	CHECK_EQ(sci_check_anonymous((uintptr_t)p, LEN), -EFAULT);
	CHECK_EQ(p[LEN - 1], 7);
	p[LEN - 1] = 8;
	CHECK_EQ(sci_buf_unregister(ep, p, LEN), 0);
	CHECK_EQ(sci_check_anonymous((uintptr_t)p, LEN), 0);
	CHECK_EQ(p[LEN - 1], 8);
	CHECK_EQ(sci_ep_close(ep), 0);
}
