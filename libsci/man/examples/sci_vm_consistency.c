// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Make stores of rank 0 visible to all members. */
#include <stdio.h>
#include <string.h>
#include <sci/vm.h>

int main(void)
{
	struct sci_team *team;
	struct sci_vm *vm;
	void *p = NULL;
	int *word;
	int ret;

	ret = sci_team_open(&team, NULL);
	if (!ret)
		ret = sci_vm_open(&vm, team, NULL);
	if (ret) {
		fprintf(stderr, "memory: %s\n", strerror(-ret));
		return 1;
	}
	if (sci_team_rank(team) == 0)
		ret = sci_vm_alloc(vm, sizeof(*word), NULL, &p);
	sci_team_bcast(team, 0, &p, sizeof(p));
	if (ret || !p)
		sci_team_abort(team, 1);
	word = p;
	if (sci_team_rank(team) == 0)
		*word = 42;
	ret = sci_vm_release(vm, NULL);
	if (!ret)
		ret = sci_team_barrier(team);
	if (!ret)
		ret = sci_vm_acquire(vm, NULL);
	if (!ret)
		printf("%d\n", *word);
	sci_vm_close(vm);
	sci_team_close(team);
	return ret != 0;
}
