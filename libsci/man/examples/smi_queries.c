// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Query the alignment that DMA needs. */
#include <stdio.h>
#include <smi.h>

int main(int argc, char **argv)
{
	int align;

	if (SMI_Init(&argc, &argv) != SMI_SUCCESS)
		return 1;
	if (SMI_Query(SMI_Q_SCI_DMA_OFFSET_ALIGN, SMI_ADPT_DEFAULT, &align) == SMI_SUCCESS)
		printf("%d bytes\n", align);
	return SMI_Finalize();
}
