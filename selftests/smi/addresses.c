// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Tests that a region has the same address in all processes. `sci run` starts the processes,
 * so each has its own random layout of addresses, or the same layout without randomization.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "selftests/smi/start.h"

#define BYTES	(1u << 20)

/* ---- a rank ---- */

/* The first process stores the region's address in the region, and all processes compare. */
static void same_address(int type)
{
	int id;
	void *volatile *p = smi_region(type, BYTES, 0, &id);

	if (!rank)
		*p = (void *)p;
	CHECK_SMI(SMI_Barrier());
	CHECK(type == SMI_SHM_SMP || *p == (void *)p);
	CHECK_SMI(SMI_Barrier());
}

static void rank_addresses(void)
{
	smi_start();
	same_address(SMI_SHM_UNDIVIDED);
	same_address(SMI_SHM_BLOCKED);
	same_address(SMI_SHM_SMP);
	smi_stop();
}

/* Map every free range of at least 32 MiB, from large ranges to small ranges. */
static void take_addresses(void)
{
	for (size_t len = (size_t)1 << 40; len >= 32 * BYTES; len /= 2)
		while (mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
			    -1, 0) != MAP_FAILED)
			;
}

/* The last process has no free range: all get the same error, and one prints the reason. */
static void rank_taken(void)
{
	smi_region_info_t info;
	void *p;
	int id;

	smi_start();
	if (rank == size - 1)
		take_addresses();
	CHECK_SMI(SMI_Init_reginfo(&info, 32 * BYTES, 0, 0, SMI_ADPT_DEFAULT, 0, 0, NULL));
	CHECK_EQ(SMI_Create_shreg(SMI_SHM_UNDIVIDED, &info, &id, &p), SMI_ERR_MAPFAILED);
	smi_stop();
}

/* The program is a rank if ADDRESSES_RANK is set. */
__attribute__((constructor)) static void be_rank(void)
{
	const char *what = getenv("ADDRESSES_RANK");

	if (!what)
		return;
	if (!strcmp(what, "taken"))
		rank_taken();
	else
		rank_addresses();
	_exit(0);
}

/* ---- the test ---- */

static char text[8192];			/* output of the job */

static void job(unsigned int n, unsigned int on, const char *what, bool fixed)
{
	char self[512], sci[520], count[8], nodes_text[8];
	size_t len = 0;
	int fds[2], status;
	ssize_t k = readlink("/proc/self/exe", self, sizeof(self) - 1);
	pid_t pid;

	CHECK(k > 0);
	self[k] = '\0';
	strcpy(sci, self);
	for (int i = 0; i < 3; i++)
		*strrchr(sci, '/') = '\0';
	strcat(sci, "/sci");
	snprintf(count, sizeof(count), "%u", n);
	snprintf(nodes_text, sizeof(nodes_text), "%u", on);
	CHECK_EQ(pipe(fds), 0);
	pid = test_fork();
	if (!pid) {
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		setenv("ADDRESSES_RANK", what, 1);
		if (fixed && personality(ADDR_NO_RANDOMIZE) < 0)
			_exit(3);
		execl(sci, sci, "run", "-n", count, "--nodes", nodes_text, "--", self,
		      (char *)NULL);
		_exit(3);
	}
	close(fds[1]);
	while (len < sizeof(text) - 1 &&
	       (k = read(fds[0], text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)k;
	text[len] = '\0';
	close(fds[0]);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		FAIL("%u processes on %u nodes: status %d: %s", n, on, status, text);
}

static void all_sizes(bool fixed)
{
	for (unsigned int n = 2; n <= 16; n *= 2) {
		job(n, 1, "addresses", fixed);
		job(n, n < 4 ? n : 4, "addresses", fixed);
	}
}

TEST(with_address_space_randomization) { all_sizes(false); }
TEST(without_address_space_randomization) { all_sizes(true); }

TEST(no_free_address_is_a_clear_error)
{
	if (TEST_ASAN || TEST_TSAN)
		SKIP("the sanitizer needs address space");
	job(4, 1, "taken", false);
	if (!strstr(text, "is free at the same address in all processes"))
		FAIL("the text is: %s", text);
}
