// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Print the rank of each process. Without a launcher the team has one process. */
#include <stdio.h>
#include <string.h>
#include <sci/team.h>

int main(void)
{
	struct sci_team *team;
	int ret;

	ret = sci_team_open(&team, NULL);
	if (ret) {
		fprintf(stderr, "team: %s\n", strerror(-ret));
		return 1;
	}
	printf("rank %d of %d\n", sci_team_rank(team), sci_team_size(team));
	ret = sci_team_barrier(team);
	sci_team_close(team);
	return ret != 0;
}
