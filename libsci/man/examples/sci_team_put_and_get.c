// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Store into the memory of the next rank. */
#include <stdio.h>
#include <string.h>
#include <sci/team.h>

int main(void)
{
	struct sci_team *team;
	int next, rank, *from;
	void *p;
	int ret;

	ret = sci_team_open(&team, NULL);
	if (ret) {
		fprintf(stderr, "team: %s\n", strerror(-ret));
		return 1;
	}
	rank = sci_team_rank(team);
	next = (rank + 1) % sci_team_size(team);
	ret = sci_team_alloc(team, sizeof(*from), 0, &p);
	from = p;
	if (!ret)
		ret = sci_team_put(team, from, &rank, sizeof(rank), next);
	if (!ret)
		ret = sci_team_barrier(team);
	if (!ret)
		printf("rank %d has the number of rank %d\n", rank, *from);
	sci_team_close(team);
	return ret != 0;
}
