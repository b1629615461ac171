// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Copy into shared memory in the background. */
#include <stdio.h>
#include <smi.h>

int main(int argc, char **argv)
{
	static char text[4096] = "hello";
	smi_memcpy_handle copy = NULL;
	smi_region_info_t info;
	void *p;
	int id;

	if (SMI_Init(&argc, &argv) != SMI_SUCCESS)
		return 1;
	SMI_Init_reginfo(&info, sizeof(text), 0, 0, SMI_ADPT_DEFAULT, 0, 0, NULL);
	if (SMI_Create_shreg(SMI_SHM_UNDIVIDED, &info, &id, &p) != SMI_SUCCESS ||
	    SMI_Imemcpy(p, text, sizeof(text), 0, &copy) != SMI_SUCCESS ||
	    SMI_Memwait(copy) != SMI_SUCCESS)
		SMI_Abort(1);
	puts(p);
	SMI_Free_shreg(id);
	return SMI_Finalize();
}
