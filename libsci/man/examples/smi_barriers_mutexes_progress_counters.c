// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Count under a mutex, and wait for all processes. */
#include <stdio.h>
#include <smi.h>

int main(int argc, char **argv)
{
	smi_region_info_t info;
	int id, mutex, counter, *count;

	if (SMI_Init(&argc, &argv) != SMI_SUCCESS)
		return 1;
	SMI_Init_reginfo(&info, sizeof(*count), 0, 0, SMI_ADPT_DEFAULT, 0, 0, NULL);
	if (SMI_Create_shreg(SMI_SHM_UNDIVIDED, &info, &id, (void **)&count) != SMI_SUCCESS ||
	    SMI_Mutex_init(&mutex) != SMI_SUCCESS || SMI_Init_PC(&counter) != SMI_SUCCESS)
		SMI_Abort(1);
	SMI_Mutex_lock(mutex);
	++*count;
	SMI_Mutex_unlock(mutex);
	SMI_Increment_PC(counter, 1);
	SMI_Wait_collective_PC(counter, 1);
	printf("%d\n", *count);
	return SMI_Finalize();
}
