// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Add the ranks of all members. */
#include <stdio.h>
#include <string.h>
#include <sci/team.h>

int main(void)
{
	struct sci_team *team;
	int rank, sum;
	int ret;

	ret = sci_team_open(&team, NULL);
	if (ret) {
		fprintf(stderr, "team: %s\n", strerror(-ret));
		return 1;
	}
	rank = sci_team_rank(team);
	ret = sci_team_allreduce(team, &rank, &sum, 1, sci_op(SCI_OP_SUM, SCI_TYPE_INT32));
	if (!ret)
		printf("sum %d\n", sum);
	sci_team_close(team);
	return ret != 0;
}
