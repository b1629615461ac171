// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Copy to a segment, and check that all bytes have arrived. */
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
	sci_sequence_t sequence;
	char text[8] = "hello";
	sci_map_t map;
	sci_error_t e;
	sci_desc_t sd;

	SCIInitialize(0, &e); must(e);
	SCIOpen(&sd, 0, &e); must(e);
	SCICreateSegment(sd, &local, 0, 4096, NULL, NULL, SCI_FLAG_AUTO_ID, &e); must(e);
	SCIPrepareSegment(local, 0, 0, &e); must(e);
	SCISetSegmentAvailable(local, 0, 0, &e); must(e);
	SCIConnectSegment(sd, &remote, SCI_LOCAL_HOST, SCIGetLocalSegmentId(local), 0, NULL,
			  NULL, SCI_INFINITE_TIMEOUT, 0, &e); must(e);
	SCIMapRemoteSegment(remote, &map, 0, sizeof(text), NULL, 0, &e); must(e);
	SCICreateMapSequence(map, &sequence, 0, &e); must(e);
	do {
		while (SCIStartSequence(sequence, 0, &e) == SCI_SEQ_PENDING)
			;
		SCIMemCpy(sequence, text, map, 0, sizeof(text), 0, &e); must(e);
	} while (SCICheckSequence(sequence, 0, &e) == SCI_SEQ_RETRIABLE);
	must(e);
	SCIRemoveSequence(sequence, 0, &e); must(e);
	SCIUnmapSegment(map, 0, &e); must(e);
	SCIDisconnectSegment(remote, 0, &e); must(e);
	SCIRemoveSegment(local, 0, &e); must(e);
	SCIClose(sd, 0, &e); must(e);
	SCITerminate();
	return 0;
}
