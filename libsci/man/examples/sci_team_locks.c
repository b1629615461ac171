// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Change shared data under a lock. */
#include <stdio.h>
#include <string.h>
#include <sci/team.h>

int main(void)
{
	struct sci_team *team;
	uint64_t *lock;
	void *p;
	int ret;

	ret = sci_team_open(&team, NULL);
	if (ret) {
		fprintf(stderr, "team: %s\n", strerror(-ret));
		return 1;
	}
	ret = sci_team_alloc(team, sizeof(*lock), 0, &p);
	if (!ret) {
		lock = p;
		ret = sci_team_lock(team, lock, -1);
	}
	if (!ret) {
		printf("rank %d has the lock\n", sci_team_rank(team));
		ret = sci_team_unlock(team, lock);
	}
	sci_team_close(team);
	return ret != 0;
}
