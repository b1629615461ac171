// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Measure a barrier, and print a message if another process dies. */
#include <stdio.h>
#include <unistd.h>
#include <smi.h>

static void at_the_end(void)
{
	static const char text[] = "a process has died\n";

	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1);
}

int main(int argc, char **argv)
{
	double start;

	if (SMI_Init(&argc, &argv) != SMI_SUCCESS)
		return 1;
	SMI_Watchdog_callback(at_the_end);
	SMI_Watchdog(5);
	start = SMI_Wtime();
	SMI_Barrier();
	printf("%.1f us\n", (SMI_Wtime() - start) * 1e6);
	return SMI_Finalize();
}
