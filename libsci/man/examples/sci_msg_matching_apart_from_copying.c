// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Take a message out of the queue, and read it in place. */
#include <stdio.h>
#include <string.h>
#include <sci/msg.h>

int main(void)
{
	struct sci_addr me;
	struct sci_peer *peer;
	struct sci_ep *ep;
	struct sci_status status = { 0 };
	struct sci_msg *m;
	const void *data;
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
		ret = sci_send(peer, "hello", 6);
	if (!ret)
		ret = sci_match(ep, NULL, 1000, &m, &status);
	if (!ret) {
		ret = sci_msg_data(m, &data);
		if (!ret)
			printf("%s: %zu bytes\n", (const char *)data, status.len);
		sci_msg_free(m);
	}
	sci_ep_close(ep);
	return ret != 0;
}
