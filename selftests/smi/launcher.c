// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests each option of smirun by the output of the processes that it starts. */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "selftests/smi/start.h"

static char path[PATH_MAX];

static const char *file(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", test_dir(), name);
	return path;
}

/* ---- a process of the program ---- */

/* Print the ranks, and the first process's input, if smirun has started this program. */
__attribute__((constructor)) static void be_process(void)
{
	char line[64] = "";

	if (!getenv("LAUNCHER_PROCESS"))
		return;
	smi_start();
	if (!rank && !fgets(line, sizeof(line), stdin))
		line[0] = '\0';
	printf("%d of %d on %d of %d %s\n", rank, size, node, nodes, line);
	fprintf(stderr, "error of %d\n", rank);
	smi_stop();
	_exit(0);
}

/* ---- the test ---- */

/* Run `smirun @options` with this program.  Return: its exit status. */
static int smirun(const char *options)
{
	char self[512], command[PATH_MAX + 1400];
	ssize_t k = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int status;

	CHECK(k > 0);
	self[k] = '\0';
	snprintf(command, sizeof(command), "smirun=$(dirname '%s')/../../smirun; cd '%s' && "
		 "LAUNCHER_PROCESS=1 \"$smirun\" %s '%s' >all 2>all.err </dev/null", self,
		 test_dir(), options, self);
	/* NOLINTNEXTLINE(cert-env33-c): our own arguments */
	status = system(command);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void check_line(const char *name, const char *want)
{
	char line[128] = "";
	FILE *f = fopen(file(name), "r");

	CHECK(f);
	CHECK(fgets(line, sizeof(line), f));
	fclose(f);
	line[strcspn(line, "\n")] = '\0';
	if (strncmp(line, want, strlen(want)))
		FAIL("%s has '%s', not '%s'", name, line, want);
}

static void write_file(const char *name, const char *text)
{
	FILE *f = fopen(file(name), "w");

	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}

TEST(processes_on_nodes)
{
	test_needs_one_machine();
	CHECK_EQ(smirun("-np 3 -nodes node4,node8 -stdout out"), 0);
	check_line("out_0", "0 of 3 on 0 of 2");
	check_line("out_1", "1 of 3 on ");
	check_line("out_2", "2 of 3 on 1 of 2");
}

TEST(nodes_of_a_file)
{
	test_needs_one_machine();
	write_file("nodes", "# ours\nnode4\n\nnode8  # the second\n");
	CHECK_EQ(smirun("-np 2 -machinefile nodes -stdout out"), 0);
	check_line("out_0", "0 of 2 on 0 of 2");
	check_line("out_1", "1 of 2 on 1 of 2");
}

TEST(all_on_one_node)
{
	test_needs_one_machine();
	CHECK_EQ(smirun("-smp -np 2 -nodes node4,node8 -stdout out -stderr err"), 0);
	check_line("out_1", "1 of 2 on 0 of 1");
	check_line("err_0", "error of 0");
	check_line("err_1", "error of 1");
}

TEST(input_comes_from_a_file)
{
	test_needs_one_machine();
	write_file("in", "a line of input\n");
	CHECK_EQ(smirun("-stdin in"), 0);
	check_line("all", "0 of 1 on 0 of 1 a line of input");
}

TEST(wrong_options_are_refused)
{
	test_needs_one_machine();
	CHECK_EQ(smirun("-np none"), 2);
	check_line("all.err", "smirun: -np needs a number, not 'none'");
	CHECK_EQ(smirun("-unknown"), 2);
	check_line("all.err", "smirun: unknown option -unknown");
	CHECK_EQ(smirun("-machinefile absent"), 2);
	check_line("all.err", "smirun: cannot read absent");
}
