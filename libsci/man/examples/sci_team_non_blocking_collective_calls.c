// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Compute while a broadcast is under way. */
#include <stdio.h>
#include <string.h>
#include <sci/team.h>

int main(void)
{
	struct sci_team *team;
	struct sci_coll *coll;
	double x = 1;
	int word = 5;
	int ret;

	ret = sci_team_open(&team, NULL);
	if (ret) {
		fprintf(stderr, "team: %s\n", strerror(-ret));
		return 1;
	}
	ret = sci_team_ibcast(team, 0, &word, sizeof(word), &coll);
	if (!ret) {
		for (int i = 0; i < 1000; i++)
			x *= 1.001;
		ret = sci_coll_wait(coll, -1);
	}
	if (!ret)
		printf("%d, %.3f\n", word, x);
	sci_team_close(team);
	return ret != 0;
}
