// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Write to exported memory of an endpoint, and read it back. */
#include <stdio.h>
#include <string.h>
#include <sci/msg.h>

int main(void)
{
	struct sci_peer *peer;
	struct sci_key key;
	struct sci_addr me;
	struct sci_ep *ep;
	char got[6] = "";
	void *buf;
	int ret;

	ret = sci_ep_open(&ep, 0, 0);
	if (ret) {
		fprintf(stderr, "endpoint: %s\n", strerror(-ret));
		return 1;
	}
	ret = sci_ep_addr(ep, &me);
	/* The owner exports a buffer and sends its key to peers. */
	if (!ret)
		ret = sci_buf_alloc(ep, 65536, &buf);
	if (!ret)
		ret = sci_buf_key(ep, buf, 65536, &key);
	/* A peer, here the endpoint itself, writes without the owner's help. */
	if (!ret)
		ret = sci_connect(ep, &me, 1000, &peer);
	if (!ret)
		ret = sci_write(peer, &key, 100, "hello", 6);
	if (!ret)
		ret = sci_read(peer, &key, 100, got, 6);
	printf("%s\n", ret ? strerror(-ret) : got);
	sci_ep_close(ep);
	return ret != 0;
}
