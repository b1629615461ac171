// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Copy from a local to a remote segment by DMA. */
#include <stdio.h>
#include <stdlib.h>
#include <sisci_api.h>

static void must(sci_error_t error)
{
	if (error != SCI_ERR_OK) {
		fprintf(stderr, "%s\n", SCIGetErrorString(error));
		exit(1);
	}
}

int main(void)
{
	sci_local_segment_t local;
	sci_remote_segment_t remote;
	sci_dma_queue_t queue;
	sci_error_t e;
	sci_desc_t sd;

	SCIInitialize(0, &e); must(e);
	SCIOpen(&sd, 0, &e); must(e);
	SCICreateSegment(sd, &local, 0, 4096, NULL, NULL, SCI_FLAG_AUTO_ID, &e); must(e);
	SCIPrepareSegment(local, 0, 0, &e); must(e);
	SCISetSegmentAvailable(local, 0, 0, &e); must(e);
	SCIConnectSegment(sd, &remote, SCI_LOCAL_HOST, SCIGetLocalSegmentId(local), 0, NULL,
			  NULL, SCI_INFINITE_TIMEOUT, 0, &e); must(e);
	SCICreateDMAQueue(sd, &queue, 0, 1, 0, &e); must(e);
	SCIStartDmaTransfer(queue, local, remote, 0, 2048, 2048, NULL, NULL, 0, &e); must(e);
	if (SCIWaitForDMAQueue(queue, SCI_INFINITE_TIMEOUT, 0, &e) == SCI_DMAQUEUE_DONE)
		printf("2048 bytes copied\n");
	must(e);
	SCIRemoveDMAQueue(queue, 0, &e); must(e);
	SCIDisconnectSegment(remote, 0, &e); must(e);
	SCIRemoveSegment(local, 0, &e); must(e);
	SCIClose(sd, 0, &e); must(e);
	SCITerminate();
	return 0;
}
