/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Run programs with threads natively or on several nodes. */
#ifndef SELFTESTS_THREADS_RUN_H
#define SELFTESTS_THREADS_RUN_H

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "selftests/harness.h"

#define OUTPUT_MAX	(256 << 10)

struct result {
	char text[OUTPUT_MAX];
	size_t len;
	int status;
};

/* Return the path of a file in the build folder, which is two folders above this program. */
static inline const char *build_path(const char *name)
{
	static char path[2 * PATH_MAX];
	char self[PATH_MAX] = "";

	CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	snprintf(path, sizeof(path), "%s/%s", dirname(dirname(dirname(self))), name);
	return path;
}

/*
 * Run a program and collect its standard output and error, until none of its processes has them
 * open. @nodes: 0: without the library. @argv: at most 6 arguments, and NULL.
 */
static inline void program_run(struct result *r, const char *name, int nodes,
			       const char *const *argv)
{
	char sci[2 * PATH_MAX], program[2 * PATH_MAX], number[16];
	const char *args[16] = { "sci", "run", "--threads", "-n", number, program };
	int out[2], at = 6;
	pid_t pid;
	ssize_t n;

	memset(r, 0, sizeof(*r));
	snprintf(program, sizeof(program), "%s", build_path(name));
	snprintf(sci, sizeof(sci), "%s", build_path("sci"));
	snprintf(number, sizeof(number), "%d", nodes);
	while (*argv && at < 12)
		args[at++] = *argv++;
	CHECK(!pipe2(out, O_CLOEXEC));
	pid = fork();
	if (!pid) {
		dup2(out[1], 1);
		dup2(out[1], 2);
		if (nodes)
			execv(sci, (char *const *)(uintptr_t)args);
		else
			execv(program, (char *const *)(uintptr_t)(args + 5));
		_exit(126);
	}
	CHECK(pid > 0);
	close(out[1]);
	while ((n = read(out[0], r->text + r->len, OUTPUT_MAX - 1 - r->len)) > 0)
		r->len += (size_t)n;
	close(out[0]);
	CHECK_EQ(waitpid(pid, &r->status, 0), pid);
}

#define PROGRAMS	"selftests/threads/programs/"

static inline void skip_sanitizers(void)
{
	if (TEST_ASAN || TEST_TSAN)
		SKIP("the sanitizer has its own malloc() and pthread_create()");
}

#endif
