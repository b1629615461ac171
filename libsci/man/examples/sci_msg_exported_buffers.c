// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Receive a message directly into an exported buffer. */
#include <stdio.h>
#include <string.h>
#include <sci/msg.h>

int main(void)
{
	struct sci_addr me;
	struct sci_peer *peer;
	struct sci_ep *ep;
	static char data[1 << 20];
	void *buf = NULL;
	struct sci_req *recv;
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
		ret = sci_buf_alloc(ep, sizeof(data), &buf);
	if (!ret)
		ret = sci_irecv(ep, peer, buf, sizeof(data), &recv);
	if (!ret)
		ret = sci_send(peer, data, sizeof(data));
	if (!ret)
		ret = sci_wait(recv, 1000, NULL);
	if (!ret)
		ret = sci_buf_free(ep, buf);
	sci_ep_close(ep);
	return ret != 0;
}
