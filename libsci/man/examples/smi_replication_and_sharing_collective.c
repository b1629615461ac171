// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Each process stores into its own copy of a region, and SMI adds the copies. */
#include <stdio.h>
#include <smi.h>

int main(int argc, char **argv)
{
	smi_region_info_t info;
	int id, *p;

	if (SMI_Init(&argc, &argv) != SMI_SUCCESS)
		return 1;
	SMI_Init_reginfo(&info, sizeof(*p), 0, 0, SMI_ADPT_DEFAULT, 0, 0, NULL);
	if (SMI_Create_shreg(SMI_SHM_UNDIVIDED, &info, &id, (void **)&p) != SMI_SUCCESS)
		SMI_Abort(1);
	SMI_Switch_to_replication(id, SMI_REP_EVERYTHING, 0, 0, 0);
	*p = 1;
	SMI_Switch_to_sharing(id, SMI_SHR_ADD | SMI_DTYPE_FIXPOINT, 1, 0);
	printf("%d\n", *p);
	return SMI_Finalize();
}
