// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Open an endpoint with attributes, and change a parameter. */
#include <stdio.h>
#include <string.h>
#include <sci/msg.h>

int main(void)
{
	struct sci_ep_attr attr = { .size = sizeof(attr), .name = "example" };
	struct sci_addr me = { 0 };
	struct sci_ep *ep;
	uint64_t limit;
	int ret;

	ret = sci_ep_open_attr(&ep, &attr);
	if (ret) {
		fprintf(stderr, "endpoint: %s\n", strerror(-ret));
		return 1;
	}
	ret = sci_ep_set(ep, SCI_PARAM_UNEXPECTED_MAX, 1 << 20);
	if (!ret)
		ret = sci_ep_get(ep, SCI_PARAM_UNEXPECTED_MAX, &limit);
	if (!ret)
		ret = sci_ep_addr(ep, &me);
	if (!ret)
		printf("%s: node %u, endpoint %u, %s %lu\n", sci_ep_name(ep), me.node, me.id,
		       sci_param_name(SCI_PARAM_UNEXPECTED_MAX), (unsigned long)limit);
	sci_ep_close(ep);
	return ret != 0;
}
