// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Open a shared memory, and print its address. */
#include <stdio.h>
#include <string.h>
#include <sci/vm.h>

int main(void)
{
	struct sci_team *team;
	struct sci_vm *vm;
	int ret;

	ret = sci_team_open(&team, NULL);
	if (!ret)
		ret = sci_vm_open(&vm, team, NULL);
	if (ret) {
		fprintf(stderr, "memory: %s\n", strerror(-ret));
		return 1;
	}
	printf("%lu bytes at %p\n", (unsigned long)sci_vm_length(vm), sci_vm_base(vm));
	sci_vm_close(vm);
	sci_team_close(team);
	return ret != 0;
}
