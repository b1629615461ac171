// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Threads of one program on nodes that share no memory: virtual clusters, or hosts of SCI_RSH. */

#include <sys/syscall.h>

#include "selftests/threads/run.h"

/* Options of `sci run --threads` for nodes that share no memory. */
static const char *const machines[] = { "--clusters", "2", "--net", "tcp", NULL };

static const char *const three[] = { "--clusters", "3", "--net", "tcp", NULL };

static struct result native, spread;

static void skip_without_faults(void)
{
	int fd;

	skip_sanitizers();
	fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (fd < 0)
		SKIP("userfaultfd(2) is not permitted");
	close(fd);
}

static void same_on(const char *name, int nodes, const char *const *options, const char *arg)
{
	const char *const argv[] = { arg, NULL };

	skip_without_faults();
	program_run(&native, name, 0, argv);
	program_run_with(&spread, name, nodes, options, argv);
	text_compare(native.text, spread.text);
	CHECK_EQ(spread.status, native.status);
	CHECK(native.len > 0);
}

static void ends(const char *how, int status, const char *message)
{
	const char *const argv[] = { how, NULL };

	skip_without_faults();
	program_run_with(&spread, PROGRAMS "machines", 2, machines, argv);
	if (!strstr(spread.text, message))
		FAIL("%s: '%s' instead of '%s'", how, spread.text, message);
	CHECK(WIFEXITED(spread.status));
	if (WEXITSTATUS(spread.status) != status)
		FAIL("%s: status %d, '%s'", how, WEXITSTATUS(spread.status), spread.text);
}

TEST(two_machines_are_as_one)
{
	same_on(PROGRAMS "machines", 2, machines, NULL);
}

TEST(three_machines_are_as_one)
{
	same_on(PROGRAMS "machines", 3, three, NULL);
}

TEST(streams_of_two_machines)
{
	same_on(PROGRAMS "streams", 2, machines, NULL);
}

TEST(mappings_of_two_machines)
{
	same_on(PROGRAMS "mappings", 2, machines, "parts");
	same_on(PROGRAMS "mappings", 2, machines, "zero");
	same_on(PROGRAMS "mappings", 2, machines, "fixed");
	same_on(PROGRAMS "mappings", 2, machines, "protected");
}

TEST(nbody_on_two_machines)
{
	same_on(PROGRAMS "compute", 2, machines, "nbody");
}

TEST(signals_interrupt_calls_on_another_machine)
{
	same_on(PROGRAMS "machines", 2, machines, "signals");
}

TEST(signals_end_calls_with_a_mask_of_their_own)
{
	same_on(PROGRAMS "machines", 2, machines, "suspend");
}

/* No thread may block SIGSYS, on several machines and on virtual nodes. */
TEST(signals_that_are_blocked_before_the_first_thread)
{
	static const char *const none[] = { NULL };

	same_on(PROGRAMS "machines", 2, machines, "blocked");
	same_on(PROGRAMS "machines", 2, none, "blocked");
}

TEST(threads_on_stacks_of_the_program)
{
	same_on(PROGRAMS "machines", 2, machines, "stacks");
}

TEST(a_program_executes_another_one)
{
	same_on(PROGRAMS "machines", 2, machines, "exec");
}

TEST(programs_that_cannot_be_executed)
{
	same_on(PROGRAMS "machines", 2, machines, "format");
}

/* Nodes of one machine end before the kernel looks at the format of a program. */
TEST(programs_that_cannot_be_executed_by_nodes_of_one_machine)
{
	static const char *const none[] = { NULL };

	same_on(PROGRAMS "machines", 2, none, "execs");
}

TEST(pages_that_one_machine_protects)
{
	same_on(PROGRAMS "machines", 2, machines, "protect");
}

/* The program creates no thread: the other node ends with it. */
TEST(a_program_without_threads)
{
	same_on("sci", 2, machines, "--help");
}

/* `sci run`, or before it node 4, notices the death. */
TEST(a_node_dies)
{
	const char *const argv[] = { "die", NULL };
	bool seen;
	int status;

	skip_without_faults();
	program_run_with(&spread, PROGRAMS "machines", 2, machines, argv);
	status = WIFEXITED(spread.status) ? WEXITSTATUS(spread.status) : -1;
	seen = strstr(spread.text, "sci: node 8 was ended by signal 9 (Killed)\n");
	if (seen ? status != 128 + SIGKILL :
		   status != 1 || !strstr(spread.text, "sci: node 8 has died: the program ends\n"))
		FAIL("status %d, '%s'", status, spread.text);
}

TEST(another_node_calls_exit) { ends("exit", 5, ""); }

/* No node takes the end of the program for a death. */
TEST(all_threads_end_the_program)
{
	for (int i = 0; i < 5; i++) {
		ends("exits", 5, "");
		text_compare("", spread.text);
		ends("errs", 5, "the end");
		CHECK(!strstr(spread.text, "died"));
	}
}

TEST(messages_end_the_program_on_another_node)
{
	static const char *const none[] = { NULL };
	static const char *const how[] = { "err", "errx", "error", "line" };

	for (unsigned int i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
		same_on(PROGRAMS "machines", 2, machines, how[i]);
		same_on(PROGRAMS "machines", 2, none, how[i]);
	}
}

TEST(children_of_vfork_end_alone)
{
	static const char *const none[] = { NULL };

	same_on(PROGRAMS "machines", 2, none, "vfork");
}

/* libc's array of variables grows in its block, or moves to another one. */
TEST(variables_of_an_array_with_odd_and_even_length)
{
	static const char *const none[] = { NULL };

	for (int i = 0; i < 2; i++) {
		same_on(PROGRAMS "machines", 2, none, "environment");
		setenv("SCI_TEST_ODD", "1", 1);
	}
	same_on(PROGRAMS "machines", 2, machines, "environment");
}

TEST(variables_that_two_nodes_set_at_the_same_time)
{
	static const char *const none[] = { NULL };

	same_on(PROGRAMS "machines", 2, none, "variables");
	same_on(PROGRAMS "machines", 2, machines, "variables");
}

/* Between machines no library may be opened before the first thread. */
TEST(another_node_closes_a_library)
{
	static const char *const none[] = { NULL };

	same_on(PROGRAMS "machines", 2, none, "close");
}

TEST(another_machine_changes_the_user)
{
	same_on(PROGRAMS "ends", 2, machines, "user");
}

/* The child has the filter of its parent, but the addresses of another process. */
TEST(a_child_with_threads)
{
	same_on(PROGRAMS "ends", 2, machines, "child");
}

/* In most rounds the cancelled thread has come first. */
TEST(cancelled_threads_get_no_wake_ups)
{
	same_on(PROGRAMS "ends", 2, machines, "cancel");
	same_on(PROGRAMS "ends", 3, three, "cancel");
}

TEST(names_of_threads_of_both_machines)
{
	same_on(PROGRAMS "ends", 2, machines, "names");
}

TEST(futexes_in_variables_of_threads)
{
	static const char *const none[] = { NULL };

	same_on(PROGRAMS "machines", 2, none, "local");
	same_on(PROGRAMS "machines", 2, machines, "local");
}

TEST(threads_with_a_large_thread_local_variable)
{
	same_on(PROGRAMS "local", 2, machines, NULL);
}

/* After exec has failed, the death of a node is the end of the program again. */
TEST(a_node_leaves_after_exec_has_failed)
{
	ends("leave", 1, "sci: node 8 has died: the program ends\n");
}

TEST(another_node_maps_a_file)
{
	ends("map", 6, "sci: mmap(): only copies of files can be mapped on several machines\n");
}

TEST(another_node_asks_for_mutexes_with_priorities) { ends("priorities", 7, ""); }

TEST(robust_mutexes_of_threads_that_end)
{
	same_on(PROGRAMS "machines", 2, machines, "robust");
}

/*
 * Make a remote shell that runs the command on this machine, by the words @how, and run @program
 * with an argument on two machines of this shell.
 */
static void shell_run(const char *how, const char *hosts, const char *program, const char *arg)
{
	const char *const options[] = { "--hosts", hosts, NULL };
	const char *const argv[] = { arg, NULL };
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/shell", test_dir());
	f = fopen(path, "we");
	CHECK(f && fprintf(f, "#!/bin/sh\nshift\nexec %s \"$@\"\n", how) > 0);
	CHECK(!fchmod(fileno(f), 0700) && !fclose(f));
	setenv("SCI_RSH", path, 1);
	program_run(&native, program, 0, argv);
	program_run_with(&spread, program, 2, options, argv);
}

TEST(hosts_of_a_remote_shell)
{
	skip_without_faults();
	shell_run("env SCI_TEST=1", "localhost,other", PROGRAMS "machines", NULL);
	text_compare(native.text, spread.text);
	CHECK_EQ(spread.status, native.status);
}

static void needs_pid_namespaces(void)
{
	/* NOLINTNEXTLINE(cert-env33-c): our own command */
	if (system("unshare -fp true 2>/dev/null"))
		SKIP("no PID namespaces");
}

/* Each machine counts its threads from 1. */
TEST(threads_of_two_machines_with_equal_ids)
{
	skip_without_faults();
	needs_pid_namespaces();
	shell_run("unshare -fp --kill-child", "localhost,other", PROGRAMS "machines", NULL);
	text_compare(native.text, spread.text);
	CHECK_EQ(spread.status, native.status);
}

TEST(signals_with_values_on_both_machines)
{
	skip_without_faults();
	needs_pid_namespaces();
	shell_run("unshare -fp --kill-child", "localhost,other", PROGRAMS "ends", "queue");
	text_compare(native.text, spread.text);
	CHECK_EQ(spread.status, native.status);
}

/* The processes of both nodes have one ID. */
TEST(another_node_cannot_replace_the_program)
{
	skip_without_faults();
	needs_pid_namespaces();
	shell_run("unshare -fp --kill-child", "first,other", PROGRAMS "machines", "replace");
	text_compare("sci: exec: only threads on node 4 may replace the program\n"
		     "execv: -1, Function not implemented\n", spread.text);
	CHECK_EQ(spread.status, 0);
}

/* With this tunable libc selects other variants of memcpy(), as on another kind of CPU. */
TEST(hosts_with_another_cpu_are_refused)
{
	skip_without_faults();
	shell_run("env GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2_Usable,-AVX2,-AVX512VL,-AVX_Fast_Unaligned_Load,-ERMS",
		  "localhost,other", PROGRAMS "machines", NULL);
	if (WIFEXITED(spread.status) && WEXITSTATUS(spread.status) == 4)
		SKIP("this libc has one variant of each function");
	if (!strstr(spread.text, "threads need the same files at the same addresses, and the same kind of CPU"))
		FAIL("'%s'", spread.text);
	CHECK(WIFEXITED(spread.status) && WEXITSTATUS(spread.status) == 1);
}
