// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* One-sided reads by loads from an import. */

#include "libsci/msg/proto/proto.h"

#include <errno.h>

#define READ_STEP	(64u << 10)	/* most bytes per check for lost packets */
#define READ_TRIES	64u		/* attempts at a step before a read returns -EAGAIN */

static void piece_load(struct sci_ep *ep, struct msg_cursor *at,
		       const volatile uint8_t *src, size_t len)
{
	while (len) {
		size_t n;
		void *dst = (void *)msg_chunk(at, &n);

		n = n < len ? n : len;
		sci_pio_read(dst, src, n, ep->link->map);
		msg_skip(at, n);
		src += n;
		len -= n;
	}
}

/*
 * Load @len bytes of @req from @src to @at, and count them in @req->moved. After a lost packet, load
 * and check smaller steps, down to one line. The caller orders later loads. Return 0, or -EAGAIN if
 * the link loses all packets.
 */
int req_load(struct sci_req *req, struct msg_cursor *at, const volatile uint8_t *src,
	     size_t len)
{
	struct sci_ep *ep = req->ep;
	unsigned int tries = 0;
	size_t step = READ_STEP;

	while (len) {
		size_t n = len < step ? len : step;
		struct msg_cursor before = *at;
		uint32_t errors = sci_link_errors(ep->link);

		piece_load(ep, at, src, n);
		/* the errors are those of the loads above */
		if (ep->lossy)
			sci_load_barrier();
		if (!ep->lossy || errors == sci_link_errors(ep->link)) {
			req->moved += n;
			src += n;
			len -= n;
			step = step < READ_STEP ? 2 * step : READ_STEP;
			tries = 0;
			continue;
		}
		*at = before;
		step = MSG_PAD(n / 4 > LINE_BYTES ? n / 4 : LINE_BYTES);
		if (tries++ == READ_TRIES)
			return -EAGAIN;
	}
	return 0;
}
