// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Post two receives, and wait for both. */
#include <stdio.h>
#include <string.h>
#include <sci/msg.h>

int main(void)
{
	struct sci_addr me;
	struct sci_peer *peer;
	struct sci_ep *ep;
	struct sci_req *reqs[2];
	char got[2][8];
	int ret;

	ret = sci_ep_open(&ep, 0, 0);
	if (ret) {
		fprintf(stderr, "endpoint: %s\n", strerror(-ret));
		return 1;
	}
	ret = sci_ep_addr(ep, &me);
	if (!ret)
		ret = sci_connect(ep, &me, 1000, &peer);
	for (int i = 0; !ret && i < 2; i++)
		ret = sci_irecv(ep, peer, got[i], sizeof(got[i]), &reqs[i]);
	if (!ret)
		ret = sci_send(peer, "first", 6);
	if (!ret)
		ret = sci_send(peer, "second", 7);
	if (!ret)
		ret = sci_waitall(reqs, 2, 1000, NULL);
	if (!ret)
		printf("%s, %s\n", got[0], got[1]);
	sci_ep_close(ep);
	return ret != 0;
}
