// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Connect an endpoint to itself, and attach a name to the peer. */
#include <stdio.h>
#include <string.h>
#include <sci/msg.h>

int main(void)
{
	struct sci_addr me;
	struct sci_peer *peer;
	struct sci_ep *ep;
	const char *name;
	int ret;

	ret = sci_ep_open(&ep, 0, 0);
	if (ret) {
		fprintf(stderr, "endpoint: %s\n", strerror(-ret));
		return 1;
	}
	ret = sci_ep_addr(ep, &me);
	if (!ret)
		ret = sci_connect(ep, &me, 1000, &peer);
	if (!ret) {
		sci_peer_set_data(peer, "myself");
		name = sci_peer_data(peer);
		printf("connected to %s\n", name);
		ret = sci_disconnect(peer);
	}
	sci_ep_close(ep);
	return ret != 0;
}
