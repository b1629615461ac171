// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Pass a number around a ring of processes. */
#include <stdio.h>
#include <smi.h>

int main(int argc, char **argv)
{
	int rank, size, n = 1;

	if (SMI_Init(&argc, &argv) != SMI_SUCCESS)
		return 1;
	SMI_Proc_rank(&rank);
	SMI_Proc_size(&size);
	if (rank > 0)
		SMI_Recv(&n, sizeof(n), rank - 1);
	n *= 2;
	if (rank + 1 < size)
		SMI_Send(&n, sizeof(n), rank + 1);
	SMI_Signal_send(rank);
	SMI_Signal_wait(rank);
	printf("process %d: %d\n", rank, n);
	return SMI_Finalize();
}
