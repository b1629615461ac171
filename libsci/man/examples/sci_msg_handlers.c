// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Send a message to a handler, which is a function of the receiver. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sci/msg.h>

static void on_message(void *arg, const struct sci_handled *m)
{
	int *count = arg;

	printf("%zu bytes with tag %lu\n", m->len, (unsigned long)m->tag);
	(*count)++;
}

static int has_message(void *arg)
{
	const int *count = arg;

	return *count ? 0 : -EAGAIN;
}

int main(void)
{
	struct sci_addr me;
	struct sci_peer *peer;
	struct sci_ep *ep;
	int count = 0;
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
		ret = sci_handler_set(ep, SCI_HANDLER_LIBRARY, on_message, &count);
	if (!ret)
		ret = sci_handler_send(peer, SCI_HANDLER_LIBRARY, 7, "hello", 6);
	if (!ret)
		ret = sci_wait_until(ep, has_message, &count, 1000);
	sci_ep_close(ep);
	return ret != 0;
}
