// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Allocate memory of which each member has a part. */
#include <stdio.h>
#include <string.h>
#include <sci/team.h>

int main(void)
{
	struct sci_team *team;
	void *p;
	int ret;

	ret = sci_team_open(&team, NULL);
	if (ret) {
		fprintf(stderr, "team: %s\n", strerror(-ret));
		return 1;
	}
	ret = sci_team_alloc(team, 4096, 64, &p);
	if (!ret) {
		printf("%zu bytes, rank 0 has them at %p\n", sci_team_alloc_size(team, p),
		       sci_team_ptr(team, p, 0));
		ret = sci_team_free(team, p);
	}
	sci_team_close(team);
	return ret != 0;
}
