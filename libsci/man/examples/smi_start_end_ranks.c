// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Print which process runs on which node. */
#include <stdio.h>
#include <smi.h>

int main(int argc, char **argv)
{
	int rank, size, node;

	if (SMI_Init(&argc, &argv) != SMI_SUCCESS)
		return 1;
	SMI_Proc_rank(&rank);
	SMI_Proc_size(&size);
	SMI_Node_rank(&node);
	printf("process %d of %d on node %d\n", rank, size, node);
	return SMI_Finalize();
}
