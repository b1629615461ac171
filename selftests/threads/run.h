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
#include <sys/stat.h>
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
 * open. @nodes: 0: without the library. @options: of `sci run`, at most 6, and NULL. @argv: at most 6
 * arguments, and NULL.
 */
static inline void program_run_with(struct result *r, const char *name, int nodes,
				    const char *const *options, const char *const *argv)
{
	char sci[2 * PATH_MAX], program[2 * PATH_MAX], number[16];
	const char *args[20] = { "sci", "run", "--threads", "-n", number };
	int out[2], at = 5, first;
	pid_t pid;
	ssize_t n;

	memset(r, 0, sizeof(*r));
	snprintf(program, sizeof(program), "%s", build_path(name));
	snprintf(sci, sizeof(sci), "%s", build_path("sci"));
	snprintf(number, sizeof(number), "%d", nodes);
	while (*options && at < 11)
		args[at++] = *options++;
	first = at;
	args[at++] = program;
	while (*argv && at < first + 7)
		args[at++] = *argv++;
	CHECK(!pipe2(out, O_CLOEXEC));
	pid = fork();
	if (!pid) {
		dup2(out[1], 1);
		dup2(out[1], 2);
		if (nodes)
			execv(sci, (char *const *)(uintptr_t)args);
		else
			execv(program, (char *const *)(uintptr_t)(args + first));
		_exit(126);
	}
	CHECK(pid > 0);
	close(out[1]);
	while ((n = read(out[0], r->text + r->len, OUTPUT_MAX - 1 - r->len)) > 0)
		r->len += (size_t)n;
	close(out[0]);
	CHECK_EQ(waitpid(pid, &r->status, 0), pid);
}

static inline void program_run(struct result *r, const char *name, int nodes,
			       const char *const *argv)
{
	static const char *const none[] = { NULL };

	program_run_with(r, name, nodes, none, argv);
}

/* Fail with the first lines that differ, if the texts differ. */
static inline void text_compare(const char *want, const char *got)
{
	while (*want && *want == *got && strcspn(want, "\n") == strcspn(got, "\n") &&
	       !strncmp(want, got, strcspn(want, "\n") + 1)) {
		size_t n = strcspn(want, "\n");

		want += n + (want[n] == '\n');
		got += n + (got[n] == '\n');
	}
	if (*want || *got)
		FAIL("natively: '%.*s'; on several nodes: '%.*s'", (int)strcspn(want, "\n"),
		     want, (int)strcspn(got, "\n"), got);
}

#define PROGRAMS	"selftests/threads/programs/"

static inline void skip_sanitizers(void)
{
	if (TEST_ASAN || TEST_TSAN)
		SKIP("the sanitizer has its own malloc() and pthread_create()");
}

#endif
