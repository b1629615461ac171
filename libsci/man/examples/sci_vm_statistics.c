// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Print how many page faults the library has resolved. */
#include <stdio.h>
#include <string.h>
#include <sci/vm.h>

int main(void)
{
	struct sci_team *team;
	struct sci_vm *vm;
	struct sci_vm_stats stats = { .size = sizeof(stats) };
	int ret;

	ret = sci_team_open(&team, NULL);
	if (!ret)
		ret = sci_vm_open(&vm, team, NULL);
	if (ret) {
		fprintf(stderr, "memory: %s\n", strerror(-ret));
		return 1;
	}
	ret = sci_vm_stats(vm, &stats);
	if (!ret)
		printf("%lu faults\n", (unsigned long)stats.faults);
	sci_vm_close(vm);
	sci_team_close(team);
	return ret != 0;
}
