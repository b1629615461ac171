// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Find the largest value of all members. */
#include <stdio.h>
#include <string.h>
#include <sci/team.h>

int main(void)
{
	struct sci_team *team;
	const struct sci_op *max = sci_op(SCI_OP_MAX, SCI_TYPE_DOUBLE);
	double mine, largest;
	int ret;

	ret = sci_team_open(&team, NULL);
	if (ret) {
		fprintf(stderr, "team: %s\n", strerror(-ret));
		return 1;
	}
	mine = 0.5 * sci_team_rank(team);
	ret = sci_team_allreduce(team, &mine, &largest, 1, max);
	if (!ret)
		printf("%.1f, elements of %zu bytes\n", largest, sci_type_size(SCI_TYPE_DOUBLE));
	sci_team_close(team);
	return ret != 0;
}
