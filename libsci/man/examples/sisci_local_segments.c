// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Export a segment, import it in the same process, and store through the import. */
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
	sci_map_t local_map, remote_map;
	volatile int *mine, *theirs;
	sci_error_t e;
	sci_desc_t sd;

	SCIInitialize(0, &e); must(e);
	SCIOpen(&sd, 0, &e); must(e);

	SCICreateSegment(sd, &local, 7, 4096, NULL, NULL, SCI_FLAG_AUTO_ID, &e);
	must(e);
	SCIPrepareSegment(local, 0, 0, &e); must(e);
	SCISetSegmentAvailable(local, 0, 0, &e); must(e);
	mine = SCIMapLocalSegment(local, &local_map, 0, 4096, NULL, 0, &e); must(e);

	SCIConnectSegment(sd, &remote, SCI_LOCAL_HOST, SCIGetLocalSegmentId(local), 0,
			  NULL, NULL, SCI_INFINITE_TIMEOUT, 0, &e);
	must(e);
	theirs = SCIMapRemoteSegment(remote, &remote_map, 0, 4096, NULL, 0, &e);
	must(e);

	*theirs = 42;
	while (*mine != 42)
		;
	printf("the store arrived\n");

	SCIUnmapSegment(remote_map, 0, &e); must(e);
	SCIDisconnectSegment(remote, 0, &e); must(e);
	SCIUnmapSegment(local_map, 0, &e); must(e);
	SCIRemoveSegment(local, 0, &e); must(e);
	SCIClose(sd, 0, &e); must(e);
	SCITerminate();
	return 0;
}
