// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Send a tagged message to the same endpoint, and receive it. */
#include <stdio.h>
#include <string.h>
#include <sci/msg.h>

int main(void)
{
	char text[16] = "hello", got[16];
	struct sci_status status = { 0 };
	struct sci_addr me;
	struct sci_peer *peer;
	struct sci_req *recv;
	struct sci_ep *ep;
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
		ret = sci_itrecv(ep, NULL, 0, 5, 0, got, sizeof(got), &recv);
	if (!ret)
		ret = sci_tsend(peer, 0, 5, text, sizeof(text));
	if (!ret)
		ret = sci_wait(recv, 1000, &status);
	if (!ret)
		printf("%s: %zu bytes with tag %lu\n", got, status.len,
		       (unsigned long)status.tag);
	sci_ep_close(ep);
	return ret != 0;
}
