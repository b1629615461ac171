// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Make a team of the members of each node. */
#include <stdio.h>
#include <string.h>
#include <sci/team.h>

int main(void)
{
	struct sci_team *team;
	struct sci_team *node;
	int ret;

	ret = sci_team_open(&team, NULL);
	if (ret) {
		fprintf(stderr, "team: %s\n", strerror(-ret));
		return 1;
	}
	ret = sci_team_split_node(team, &node);
	if (!ret) {
		printf("rank %d is rank %d of its node\n", sci_team_rank(team),
		       sci_team_rank(node));
		ret = sci_team_close(node);
	}
	sci_team_close(team);
	return ret != 0;
}
