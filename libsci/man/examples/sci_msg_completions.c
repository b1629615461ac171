// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Queue the completions of ten receives at the endpoint. */
#include <stdio.h>
#include <string.h>
#include <sci/msg.h>

#define N 10

int main(void)
{
	struct sci_completion done[N];
	struct sci_peer *peer;
	struct sci_addr me;
	struct sci_req *req;
	struct sci_ep *ep;
	int got[N], sum = 0, ret, i, n;

	ret = sci_ep_open(&ep, 0, 0);
	if (ret) {
		fprintf(stderr, "endpoint: %s\n", strerror(-ret));
		return 1;
	}
	ret = sci_ep_addr(ep, &me);
	if (!ret)
		ret = sci_connect(ep, &me, 1000, &peer);
	for (i = 0; i < N && !ret; i++) {
		ret = sci_irecv(ep, peer, &got[i], sizeof(got[i]), &req);
		if (!ret)
			ret = sci_req_queue(req, &got[i]);
	}
	for (i = 0; i < N && !ret; i++)
		ret = sci_send(peer, &i, sizeof(i));
	for (n = 0; n < N && !ret; n += ret > 0 ? ret : 0, ret = ret < 0 ? ret : 0) {
		ret = sci_completions(ep, 1000, done, N);
		for (i = 0; i < ret; i++)
			sum += *(int *)done[i].data;
	}
	printf("sum %d\n", sum);
	sci_ep_close(ep);
	return ret || sum != 45;
}
