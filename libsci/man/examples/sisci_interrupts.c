// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Trigger an interrupt of this node, and wait for it. */
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
	sci_local_interrupt_t local;
	sci_remote_interrupt_t remote;
	unsigned int number = 0;
	sci_error_t e;
	sci_desc_t sd;

	SCIInitialize(0, &e); must(e);
	SCIOpen(&sd, 0, &e); must(e);
	SCICreateInterrupt(sd, &local, 0, &number, NULL, NULL, 0, &e); must(e);
	SCIConnectInterrupt(sd, &remote, SCI_LOCAL_HOST, 0, number, 1000, 0, &e);
	must(e);
	SCITriggerInterrupt(remote, 0, &e); must(e);
	SCIWaitForInterrupt(local, 1000, 0, &e); must(e);
	printf("interrupt %u arrived\n", number);
	SCIDisconnectInterrupt(remote, 0, &e); must(e);
	SCIRemoveInterrupt(local, 0, &e); must(e);
	SCIClose(sd, 0, &e); must(e);
	SCITerminate();
	return 0;
}
