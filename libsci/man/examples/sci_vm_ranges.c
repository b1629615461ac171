// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Each member adds its rank to a shared counter. */
#include <stdio.h>
#include <string.h>
#include <sci/vm.h>

int main(void)
{
	struct sci_team *team;
	struct sci_vm *vm;
	void *p = NULL;
	long *sum;
	int ret;

	ret = sci_team_open(&team, NULL);
	if (!ret)
		ret = sci_vm_open(&vm, team, NULL);
	if (ret) {
		fprintf(stderr, "memory: %s\n", strerror(-ret));
		return 1;
	}
	if (sci_team_rank(team) == 0)
		ret = sci_vm_alloc(vm, sizeof(*sum), NULL, &p);
	sci_team_bcast(team, 0, &p, sizeof(p));
	if (ret || !p)
		sci_team_abort(team, 1);
	sum = p;
	for (int turn = 0; turn < sci_team_size(team); turn++) {
		if (sci_team_rank(team) == turn)
			*sum += turn;
		sci_vm_release(vm, NULL);
		sci_team_barrier(team);
		sci_vm_acquire(vm, NULL);
	}
	printf("sum %ld\n", *sum);
	sci_vm_close(vm);
	sci_team_close(team);
	return 0;
}
