// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Continue with the members that are alive when a member has died. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sci/team.h>

int main(void)
{
	struct sci_team *team;
	struct sci_team *survivors;
	int ret;

	ret = sci_team_open(&team, NULL);
	if (ret) {
		fprintf(stderr, "team: %s\n", strerror(-ret));
		return 1;
	}
	ret = sci_team_barrier(team);
	if (ret == -ECONNRESET) {
		ret = sci_team_shrink(team, &survivors);
		if (!ret) {
			printf("%d members are left\n", sci_team_size(survivors));
			sci_team_close(survivors);
		}
	}
	sci_team_close(team);
	return ret != 0;
}
