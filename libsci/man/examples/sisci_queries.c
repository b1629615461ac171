// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Print the node id and the number of adapters. */
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
	unsigned int node, adapters = 0;
	sci_query_adapter_t query = {
		.subcommand = SCI_Q_ADAPTER_NUMBER, .data = &adapters,
	};
	sci_error_t e;
	sci_desc_t sd;

	SCIInitialize(0, &e); must(e);
	SCIOpen(&sd, 0, &e); must(e);
	SCIGetLocalNodeId(0, &node, 0, &e); must(e);
	SCIQuery(SCI_Q_ADAPTER, &query, 0, &e); must(e);
	printf("node %u, %u adapters\n", node, adapters);
	SCIClose(sd, 0, &e); must(e);
	SCITerminate();
	return 0;
}
