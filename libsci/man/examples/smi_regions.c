// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Each process stores into a region that all processes share. */
#include <stdio.h>
#include <smi.h>

int main(int argc, char **argv)
{
	smi_region_info_t info;
	int rank, size, id, *p;

	if (SMI_Init(&argc, &argv) != SMI_SUCCESS)
		return 1;
	SMI_Proc_rank(&rank);
	SMI_Proc_size(&size);
	SMI_Init_reginfo(&info, sizeof(*p) * (size_t)size, 0, 0, SMI_ADPT_DEFAULT, 0, 0, NULL);
	if (SMI_Create_shreg(SMI_SHM_BLOCKED, &info, &id, (void **)&p) != SMI_SUCCESS)
		SMI_Abort(1);
	p[rank] = rank * rank;
	SMI_Barrier();
	if (rank == 0)
		printf("the last process stored %d\n", p[size - 1]);
	SMI_Free_shreg(id);
	return SMI_Finalize();
}
