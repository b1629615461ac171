// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Add the numbers 1 to 100. Idle processes help busy processes. */
#include <stdio.h>
#include <smi.h>

int main(int argc, char **argv)
{
	int loop, status, low, high, sum = 0;

	if (SMI_Init(&argc, &argv) != SMI_SUCCESS ||
	    SMI_Loop_init(&loop, 1, 100, SMI_PART_BLOCKED) != SMI_SUCCESS)
		return 1;
	do {
		if (SMI_Get_iterations(loop, &status, &low, &high) != SMI_SUCCESS)
			SMI_Abort(1);
		for (int i = low; i <= high; i++)
			sum += i;
	} while (status != SMI_LOOP_READY);
	printf("%d\n", sum);
	SMI_Loop_free(loop);
	return SMI_Finalize();
}
