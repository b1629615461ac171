// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Test whether a call is implemented. */
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
	sci_dma_channel_t channel;
	sci_error_t e;
	sci_desc_t sd;

	SCIInitialize(0, &e); must(e);
	SCIOpen(&sd, 0, &e); must(e);
	SCIRequestDMAChannel(sd, &channel, SCI_DMA_TYPE_DONTCARE, 0, 0, &e);
	if (e == SCI_ERR_NOT_IMPLEMENTED)
		printf("no DMA channels here: use a DMA queue\n");
	SCIClose(sd, 0, &e); must(e);
	SCITerminate();
	return 0;
}
