// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Sleep in poll() until the endpoint has work. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sci/msg.h>

int main(void)
{
	struct sci_addr me;
	struct sci_peer *peer;
	struct sci_ep *ep;
	struct sci_req *recv;
	struct pollfd p;
	char got[8];
	int ret;

	ret = sci_ep_open(&ep, 0, 0);
	if (ret) {
		fprintf(stderr, "endpoint: %s\n", strerror(-ret));
		return 1;
	}
	ret = sci_ep_addr(ep, &me);
	if (!ret)
		ret = sci_connect(ep, &me, 1000, &peer);
	if (!ret)
		ret = sci_irecv(ep, NULL, got, sizeof(got), &recv);
	if (!ret)
		ret = sci_send(peer, "hello", 6);
	while (!ret && (ret = sci_test(recv, NULL)) == -EAGAIN) {
		p = (struct pollfd){ .fd = sci_ep_fd(ep), .events = POLLIN };
		ret = sci_ep_arm(ep);
		if (!ret)
			poll(&p, 1, 1000);
		ret = ret == -EAGAIN ? 0 : ret;
		sci_progress(ep);
	}
	sci_ep_close(ep);
	return ret != 0;
}
