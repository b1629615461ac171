// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Allocate from a region: the pointer is the same in all processes. */
#include <stdio.h>
#include <smi.h>

int main(int argc, char **argv)
{
	smi_region_info_t info;
	void *base, *block;
	int id;

	if (SMI_Init(&argc, &argv) != SMI_SUCCESS)
		return 1;
	SMI_Init_reginfo(&info, 1 << 20, 0, 0, SMI_ADPT_DEFAULT, 0, 0, NULL);
	if (SMI_Create_shreg(SMI_SHM_UNDIVIDED, &info, &id, &base) != SMI_SUCCESS ||
	    SMI_Init_shregMMU(id) != SMI_SUCCESS ||
	    SMI_Cmalloc(1000, id, &block) != SMI_SUCCESS)
		SMI_Abort(1);
	printf("%td bytes into the region\n", (char *)block - (char *)base);
	SMI_Cfree(block);
	SMI_Free_shreg(id);
	return SMI_Finalize();
}
