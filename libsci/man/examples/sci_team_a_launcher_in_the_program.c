// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Start a process with fork(), and open a team of this process and its parent. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <sci/team.h>

static int member(struct sci_team_launcher *launcher, int rank)
{
	struct sci_team_attr attr = {
		.size = sizeof(attr), .boot = sci_team_launcher_boot(launcher, rank),
	};
	struct sci_team *team;
	int ret = sci_team_open(&team, &attr);

	if (ret)
		return ret;
	printf("rank %d of %d\n", sci_team_rank(team), sci_team_size(team));
	return sci_team_close(team);
}

int main(void)
{
	struct sci_team_launcher_attr attr = { .size = sizeof(attr), .processes = 2 };
	struct sci_team_launcher *launcher;
	int ret, status = 0;
	pid_t child;

	ret = sci_team_launcher_open(&launcher, &attr);
	if (ret) {
		fprintf(stderr, "launcher: %s\n", strerror(-ret));
		return 1;
	}
	child = fork();
	if (!child)
		_exit(sci_team_launcher_child(launcher, 1) || member(launcher, 1));
	ret = member(launcher, 0);
	waitpid(child, &status, 0);
	sci_team_launcher_ended(launcher, 1, status != 0);
	sci_team_launcher_close(launcher);
	return ret || status;
}
