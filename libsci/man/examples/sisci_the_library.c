// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Open the library and a virtual device, and close both. */
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
	sci_error_t e;
	sci_desc_t sd;

	SCIInitialize(0, &e); must(e);
	SCIOpen(&sd, 0, &e); must(e);
	printf("the library is ready\n");
	SCIClose(sd, 0, &e); must(e);
	SCITerminate();
	return 0;
}
