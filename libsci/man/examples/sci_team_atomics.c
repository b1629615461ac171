// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Increment a counter in the memory of rank 0. */
#include <stdio.h>
#include <string.h>
#include <sci/team.h>

int main(void)
{
	struct sci_team *team;
	uint64_t old, *word;
	void *p;
	int ret;

	ret = sci_team_open(&team, NULL);
	if (ret) {
		fprintf(stderr, "team: %s\n", strerror(-ret));
		return 1;
	}
	ret = sci_team_alloc(team, sizeof(*word), 0, &p);
	if (!ret) {
		word = p;
		ret = sci_team_atomic(team, word, sizeof(*word), SCI_ATOMIC_ADD, 1, 0, &old, 0);
	}
	if (!ret)
		printf("value before: %lu\n", (unsigned long)old);
	sci_team_close(team);
	return ret != 0;
}
