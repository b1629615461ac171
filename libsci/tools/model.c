// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * `sci model` runs another program, from the directory of `sci`. The model replaces parts of the
 * library, so `sci` cannot contain it.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

int tool_model(const struct tool_command *self, int argc, char **argv)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 16);
	char *slash;

	(void)self;
	(void)argc;
	argv[0] = (char *)"sci-model";
	path[n > 0 ? n : 0] = '\0';
	slash = strrchr(path, '/');
	if (slash) {
		memcpy(slash + 1, "sci-model", sizeof("sci-model"));
		execv(path, argv);
	}
	execvp("sci-model", argv);
	tool_error("sci-model: %s", strerror(errno));
	return TOOL_FAILED;
}
