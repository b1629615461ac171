// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim/switch/ctl.h"
#include "sim/switch/listen.h"

enum { DONE, REFUSED, NO_DAEMON };

static int ctl_no_daemon(const char *path, const char *why)
{
	fprintf(stderr, "sci-switch: %s: %s\n", path, why);
	return NO_DAEMON;
}

/* Print a word. Make a path absolute, because the daemon may run in another folder. */
static void word_print(FILE *out, const char *word, bool is_path)
{
	char *path = is_path ? realpath(word, NULL) : NULL;

	fprintf(out, " %s", path ? path : word);
	free(path);
}

static bool ctl_send(FILE *out, int words, char **word)
{
	int i;

	fputs(word[0], out);
	for (i = 1; i < words; i++)
		word_print(out, word[i], i == 1 && !strcmp(word[0], "script"));
	fputc('\n', out);
	return !fflush(out) && !ferror(out);
}

static int ctl_receive(FILE *in, const char *path)
{
	static const char error[] = "error: ";
	char *line = NULL;
	size_t room = 0;
	int status = -1;

	while (status < 0 && getline(&line, &room, in) >= 0) {
		if (!strcmp(line, "ok\n")) {
			status = DONE;
		} else if (!strncmp(line, error, strlen(error))) {
			fprintf(stderr, "sci-switch: %s", line + strlen(error));
			status = REFUSED;
		} else {
			fputs(line, stdout);
		}
	}
	free(line);
	return status < 0 ? ctl_no_daemon(path, "no answer") : status;
}

static int ctl_run(int fd, const char *path, int words, char **word)
{
	FILE *socket_file = fdopen(fd, "r+");
	int status;

	if (!socket_file) {
		close(fd);
		return ctl_no_daemon(path, strerror(errno));
	}
	if (!ctl_send(socket_file, words, word))
		status = ctl_no_daemon(path, strerror(errno));
	else
		status = ctl_receive(socket_file, path);
	fclose(socket_file);
	return status;
}

int ctl(int words, char **word)
{
	struct sockaddr_un sa;
	int fd;

	if (words < 2) {
		fputs("usage: sci-switch ctl CONTROL-SOCKET COMMAND...\n",
		      stderr);
		return NO_DAEMON;
	}
	if (!socket_address(&sa, word[0]))
		return ctl_no_daemon(word[0], "not a name for a socket");
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return ctl_no_daemon(word[0], strerror(errno));
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa))) {
		int error = errno;

		close(fd);
		return ctl_no_daemon(word[0], strerror(error));
	}
	return ctl_run(fd, word[0], words - 1, word + 1);
}
