// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Wait for a word that another member stores. */
#include <stdio.h>
#include <string.h>
#include <sci/team.h>

int main(void)
{
	struct sci_team *team;
	int value = 42, *word;
	void *p;
	int ret;

	ret = sci_team_open(&team, NULL);
	if (ret) {
		fprintf(stderr, "team: %s\n", strerror(-ret));
		return 1;
	}
	ret = sci_team_alloc(team, sizeof(*word), 0, &p);
	word = p;
	if (!ret && sci_team_rank(team) == 0)
		ret = sci_team_put(team, word, &value, sizeof(value), sci_team_size(team) - 1);
	if (!ret && sci_team_rank(team) == sci_team_size(team) - 1)
		ret = sci_team_wait_until(team, word, sizeof(*word), SCI_CMP_EQ, 42, 1000);
	sci_team_close(team);
	return ret != 0;
}
