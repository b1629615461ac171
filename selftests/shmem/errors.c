// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests that wrong calls print an error and end all PEs, and that shmem_global_exit() does. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sci-shmem/shmem.h>

#include "selftests/ranks.h"

static int errors_fd;
static long word;

struct mistake {
	void (*make)(void);
	const char *debug;		/* SHMEM_DEBUG */
};

static void mistake_pe(void *arg)
{
	const struct mistake *m = arg;

	setenv("SHMEM_DEBUG", m->debug, 1);
	dup2(errors_fd, STDERR_FILENO);
	shmem_init();
	if (!shmem_my_pe())
		m->make();
	/* PE 1 waits for a value that is never stored */
	shmem_long_wait_until(&word, SHMEM_CMP_EQ, 1);
}

/* Two PEs that run @fn end with status 1, and PE 0 prints an error that has @says. */
static void check_said(void (*fn)(void *arg), void *arg, const char *says)
{
	char text[2000] = "";

	errors_fd = memfd_create("errors", 0);
	CHECK(errors_fd >= 0);
	ranks_run_arg(2, 1, fn, arg, true);
	CHECK_EQ(ranks_aborted(), 1);
	CHECK(pread(errors_fd, text, sizeof(text) - 1, 0) > 0);
	CHECK(strstr(text, "shmem: PE 0: "));
	CHECK(strstr(text, says));
	close(errors_fd);
}

static void check_mistake(void (*make)(void), const char *debug, const char *says)
{
	struct mistake m = { make, debug };

	check_said(mistake_pe, &m, says);
}

static void no_such_pe(void)
{
	shmem_long_p(&word, 1, 2);
}

static void negative_pe(void)
{
	shmem_long_atomic_fetch_add(&word, 1, -1);
}

static void not_symmetric(void)
{
	long local = 0;

	shmem_long_put(&local, &word, 1, 1);
}

static void null_pointer(void)
{
	shmem_long_g(NULL, 1);
}

static void stride_of_zero(void)
{
	shmem_long_iput(&word, &word, 0, 1, 1, 1);
}

static void bad_comparison(void)
{
	shmem_long_wait_until(&word, 77, 1);
}

static void free_of_static(void)
{
	shmem_free(&word);
}

static void lock_of_another(void)
{
	shmem_clear_lock(&word);
}

static void too_long(void)
{
	static char big[1 << 20];

	shmem_putmem(big, big, (size_t)1 << 40, 1);
}

static void context_is_invalid(void)
{
	shmem_ctx_long_p(SHMEM_CTX_INVALID, &word, 1, 1);
}

static void team_is_gone(void)
{
	shmem_team_n_pes((shmem_team_t)(void *)&word);
}

TEST(mistakes_are_said)
{
	check_mistake(no_such_pe, "0", "shmem_long_p: there is no PE 2: 0 to 1");
	check_mistake(negative_pe, "0", "there is no PE -1");
	check_mistake(not_symmetric, "0", "is not symmetric");
	check_mistake(null_pointer, "0", "is not symmetric");
	check_mistake(stride_of_zero, "0", "strides of 0 and 1");
	check_mistake(bad_comparison, "0", "77 is no comparison");
	check_mistake(free_of_static, "0", "is not from shmem_malloc()");
	check_mistake(lock_of_another, "0", "does not hold the lock");
	check_mistake(context_is_invalid, "0", "SHMEM_CTX_INVALID");
}

TEST(mistakes_are_said_in_debug_mode)
{
	check_mistake(no_such_pe, "1", "shmem_long_p: there is no PE 2: 0 to 1");
	check_mistake(not_symmetric, "1", "is not symmetric");
	check_mistake(too_long, "1", "are symmetric");
	check_mistake(team_is_gone, "1", "is no team");
}

/* ---- the length of an allocation ---- */

static void too_long_pe(void *arg)
{
	char *p;

	(void)arg;
	setenv("SHMEM_DEBUG", "1", 1);
	dup2(errors_fd, STDERR_FILENO);
	shmem_init();
	p = shmem_malloc(100);
	if (!shmem_my_pe())
		shmem_putmem(p, p, 101, 1);
	shmem_barrier_all();
}

static void freed_pe(void *arg)
{
	long *p;

	(void)arg;
	setenv("SHMEM_DEBUG", "1", 1);
	dup2(errors_fd, STDERR_FILENO);
	shmem_init();
	p = shmem_malloc(sizeof(*p));
	shmem_free(p);
	if (!shmem_my_pe())
		shmem_long_p(p, 1, 1);
	shmem_barrier_all();
}

TEST(debug_mode_knows_what_is_allocated)
{
	check_said(too_long_pe, NULL, "only 100 are left");
	check_said(freed_pe, NULL, "is not allocated");
}

/* ---- the environment ---- */

static void use_after_free(void)
{
	long *p = shmem_malloc(sizeof(*p));

	shmem_free(p);
	shmem_long_p(p, 1, 0);
}

/*
 * Start a PE that has the variables @one and @two, "NAME=VALUE", and calls @fn, which may be NULL.
 * The PE ends with @status, and its output contains @says. NULL: it prints nothing.
 */
static void check_start(const char *one, const char *two, void (*fn)(void), int status,
			const char *says)
{
	char text[2000] = "";
	int ended, out = memfd_create("output", 0);
	pid_t pid;

	CHECK(out >= 0);
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		putenv((char *)one);
		putenv((char *)two);
		dup2(out, STDOUT_FILENO);
		dup2(out, STDERR_FILENO);
		shmem_init();
		if (fn)
			fn();
		shmem_finalize();
		fflush(stdout);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &ended, 0), pid);
	CHECK(pread(out, text, sizeof(text) - 1, 0) >= 0);
	close(out);
	if (!WIFEXITED(ended) || WEXITSTATUS(ended) != status ||
	    (says ? !strstr(text, says) : *text))
		FAIL("%s %s: wait status %#x, output: %s", one, two, ended, text);
}

TEST(environment)
{
	check_start("SHMEM_INFO=1", "SHMEM_SYMMETRIC_SIZE=1.5m", NULL, 0, "(here 1572864)");
	check_start("SHMEM_INFO=1", "SHMEM_SYMMETRIC_SIZE=3.1M", NULL, 0, "(here 3250586)");
	check_start("SHMEM_VERSION=1", "SHMEM_INFO=0", NULL, 0, "OpenSHMEM 1.5, libsci");
	check_start("SHMEM_SYMMETRIC_SIZE=20kk", "SHMEM_INFO=1", NULL, 1, "20kk: not a size");
	check_start("SHMEM_SYMMETRIC_SIZE=1 ", "SHMEM_INFO=1", NULL, 1, "1 : not a size");
	check_start("SHMEM_SYMMETRIC_SIZE=0", "SHMEM_INFO=1", NULL, 1, "0: not a size");
	check_start("SHMEM_SYMMETRIC_SIZE=-1M", "SHMEM_INFO=1", NULL, 1, "-1M: not a size");
	check_start("SHMEM_SYMMETRIC_SIZE=900T", "SHMEM_INFO=0", NULL, 1,
		    "shmem: shmem_init: out of memory: the symmetric heap of each PE has "
		    "989560464998400 bytes");
	check_start("SHMEM_SYMMETRIC_SIZE=inf", "SHMEM_INFO=1", NULL, 1, "inf: not a size");
}

TEST(deprecated_names_of_the_environment)
{
	check_start("SMA_INFO=1", "SMA_SYMMETRIC_SIZE=1.5m", NULL, 0, "(here 1572864)");
	check_start("SMA_VERSION=1", "SMA_DEBUG=0", NULL, 0, "OpenSHMEM 1.5, libsci");
	check_start("SMA_SYMMETRIC_SIZE=20kk", "SMA_INFO=1", NULL, 1, "20kk: not a size");
	check_start("SMA_DEBUG=1", "SHMEM_INFO=0", use_after_free, 1, "is not allocated");
	/* the new names have precedence */
	check_start("SMA_SYMMETRIC_SIZE=20kk", "SHMEM_SYMMETRIC_SIZE=1M", NULL, 0, NULL);
	check_start("SMA_INFO=1", "SHMEM_INFO=0", NULL, 0, NULL);
}

/* ---- the end ---- */

/*
 * Fork a child, and end. The PE makes no further call: this program contains the library, whose
 * variables a child changes before it has its own copies of the static variables.
 */
static void fork_pe(void *memory)
{
	int ended;
	pid_t pid;

	setenv("SCI_TEAM_MEMORY", memory, 1);
	shmem_init();
	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		exit(0);
	CHECK_EQ(waitpid(pid, &ended, 0), pid);
	CHECK_EQ(ended, 0);
	_exit(0);
}

TEST(a_child_of_a_pe_exits)
{
	if (TEST_TSAN)
		SKIP("the thread sanitizer forbids fork() in a process with several threads");
	ranks_run_arg(2, 2, fork_pe, (void *)"all", false);
	ranks_run_arg(2, 2, fork_pe, (void *)"none", false);
}

static void exit_pe(void *arg)
{
	(void)arg;
	shmem_init();
	if (shmem_my_pe() == 1)
		shmem_global_exit(42);
	for (;;)
		pause();
}

TEST(global_exit_ends_all_with_its_status)
{
	ranks_run_arg(4, 1, exit_pe, NULL, true);
	CHECK_EQ(ranks_aborted(), 42);
}
