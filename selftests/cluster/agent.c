// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: the agent that runs commands on a node of a cluster of virtual machines
 *
 * A TCP connection to port 1 carries one command: a line for bash, then the
 * command's standard input.  The agent returns the command's output, then 16 bytes:
 * "\0exit ", its status as eight digits, "\n", and 0.  Command and connection end
 * together, with all processes of the command's process group.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT		1
#define LINE_LENGTH	131072u

/* Read the line and no byte more: the rest is the command's input. */
static bool read_line(int fd, char *line)
{
	for (size_t n = 0; n < LINE_LENGTH; n++) {
		if (read(fd, line + n, 1) != 1)
			return false;
		if (line[n] != '\n')
			continue;
		line[n] = 0;
		return true;
	}
	return false;
}

__attribute__((noreturn))
static void command(int fd, const char *line)
{
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_DFL);
	for (int i = 0; i < 3; i++)
		dup2(fd, i);
	if (fd > 2)
		close(fd);
	execl("/bin/bash", "bash", "-c", line, NULL);
	_exit(127);
}

static void end_of(int fd, pid_t pid)
{
	char text[16] = "";
	int status = 0;

	waitpid(pid, &status, 0);
	kill(-pid, SIGKILL);
	snprintf(text + 1, sizeof(text) - 1, "exit %08d\n",
		 WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
				       WEXITSTATUS(status));
	if (write(fd, text, sizeof(text)) == sizeof(text))
		shutdown(fd, SHUT_WR);
}

static void serve(int fd)
{
	static char line[LINE_LENGTH];
	struct pollfd pfd[2] = { { .fd = fd, .events = POLLRDHUP } };
	pid_t pid;

	if (!read_line(fd, line))
		return;
	pid = fork();
	if (!pid)
		command(fd, line);
	if (pid < 0)
		return;
	setpgid(pid, pid);
	pfd[1].fd = (int)syscall(SYS_pidfd_open, pid, 0);
	pfd[1].events = POLLIN;
	while (poll(pfd, 2, -1) < 0 && errno == EINTR)
		;
	if (!pfd[1].revents)
		kill(-pid, SIGKILL);
	end_of(fd, pid);
}

int main(void)
{
	struct sockaddr_in any = {
		.sin_family = AF_INET, .sin_port = htons(PORT),
	};
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (s < 0 || bind(s, (struct sockaddr *)&any, sizeof(any)) ||
	    listen(s, 64)) {
		perror("agent");
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	for (;;) {
		int fd = accept4(s, NULL, NULL, SOCK_CLOEXEC);
		pid_t pid = -1;

		if (fd >= 0)
			pid = fork();
		if (!pid) {
			serve(fd);
			_exit(0);
		}
		if (fd >= 0)
			close(fd);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}
