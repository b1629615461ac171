// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Programs print and return the same on one node, natively, and on several. */

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

/* The folder of what has been built: two above this program. */
static const char *build_path(const char *name)
{
	static char path[2 * PATH_MAX];
	char self[PATH_MAX] = "";

	CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	snprintf(path, sizeof(path), "%s/%s", dirname(dirname(dirname(self))), name);
	return path;
}

/* Both outputs of a program, as they come. @nodes 0: without the library. */
static void program_run(struct result *r, const char *name, int nodes, const char *arg)
{
	char sci[2 * PATH_MAX], program[2 * PATH_MAX], number[16];
	int out[2];
	pid_t pid;
	ssize_t n;

	memset(r, 0, sizeof(*r));
	snprintf(program, sizeof(program), "%s", build_path(name));
	snprintf(sci, sizeof(sci), "%s", build_path("sci"));
	snprintf(number, sizeof(number), "%d", nodes);
	CHECK(!pipe2(out, O_CLOEXEC));
	pid = fork();
	if (!pid) {
		dup2(out[1], 1);
		dup2(out[1], 2);
		if (nodes)
			execl(sci, "sci", "run", "--threads", "-n", number, program, arg, NULL);
		else
			execl(program, name, arg, NULL);
		_exit(126);
	}
	CHECK(pid > 0);
	close(out[1]);
	while ((n = read(out[0], r->text + r->len, OUTPUT_MAX - 1 - r->len)) > 0)
		r->len += (size_t)n;
	close(out[0]);
	CHECK_EQ(waitpid(pid, &r->status, 0), pid);
}

/* Where two texts differ, as a line of each. */
static void text_compare(const char *want, const char *got)
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

static void same(const char *name, int nodes, const char *arg)
{
	static struct result native, spread;

	if (TEST_ASAN || TEST_TSAN)
		SKIP("the sanitizer has its own malloc() and pthread_create()");
	program_run(&native, name, 0, arg);
	program_run(&spread, name, nodes, arg);
	text_compare(native.text, spread.text);
	CHECK_EQ(spread.status, native.status);
	CHECK(native.len > 0);
}

#define PROGRAMS	"selftests/threads/programs/"

TEST(basics_on_two_nodes)
{
	same(PROGRAMS "basics", 2, NULL);
}

TEST(basics_on_four_nodes)
{
	same(PROGRAMS "basics", 4, NULL);
}

TEST(streams_on_two_nodes)
{
	same(PROGRAMS "streams", 2, NULL);
}

TEST(streams_on_three_nodes)
{
	same(PROGRAMS "streams", 3, NULL);
}

#define COMPUTES(program)						\
TEST(program##_on_two_and_four_nodes)					\
{									\
	same(PROGRAMS "compute", 2, #program);				\
	same(PROGRAMS "compute", 4, #program);				\
}

COMPUTES(sort)
COMPUTES(lu)
COMPUTES(nbody)
COMPUTES(hash)
COMPUTES(queue)
