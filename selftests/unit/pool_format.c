// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* `sci pool`: output, results and refusals of its commands. */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsci/base/barrier.h"
#include "selftests/unit/pool_model.h"

#define SIZE	(1u << 20)

static char path[PATH_MAX];
static char output[8192];

/* Run `sci pool ARGS PATH`. Store its output in @output. Return its exit status. */
static int sci_pool(const char *args)
{
	char self[PATH_MAX], command[2 * PATH_MAX + 128];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int i, status;
	FILE *f;

	CHECK(n > 0);
	self[n] = '\0';
	for (i = 0; i < 3; i++)
		*strrchr(self, '/') = '\0';
	snprintf(command, sizeof(command), "%s/sci pool %s %s 2>&1", self, args, path);
	/* NOLINTNEXTLINE(cert-env33-c): our own names */
	f = popen(command, "r");
	CHECK(f);
	output[fread(output, 1, sizeof(output) - 1, f)] = '\0';
	status = pclose(f);
	test_note("%s", output);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void path_make(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(path, sizeof(path), "%.200s/sci-pool.%d", tmp ? tmp : "/tmp", getpid());
}

static void *path_map(void)
{
	int fd = open(path, O_RDWR);
	void *mem;

	CHECK(fd >= 0);
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	CHECK(mem != MAP_FAILED);
	return mem;
}

TEST(a_pool_is_made_once_and_shown)
{
	path_make();
	CHECK_EQ(sci_pool("format"), 1);
	CHECK(strstr(output, "No such file"));
	CHECK_EQ(sci_pool("format -s 1M -n 3 -c 4K"), 0);
	CHECK_EQ(sci_pool("show"), 0);
	CHECK(strstr(output, "chunks of 4096 bytes, lease 3.0 s"));
	CHECK_EQ(sci_pool("format"), 1);
	CHECK(strstr(output, "is a pool already"));
	CHECK_EQ(sci_pool("format --force -n 2"), 0);
	unlink(path);
}

TEST(a_pool_that_is_not_coherent_is_made_and_shown)
{
	path_make();
	CHECK_EQ(sci_pool("format -s 1M -n 3 -c 4K --incoherent"), 0);
	CHECK(strstr(output, ": 240 chunks of 4096 bytes for 3 nodes"));
	CHECK_EQ(sci_pool("show"), 0);
	CHECK(strstr(output, "quarantine 30.0 s, not coherent\n"));
	unlink(path);
}

/* Without an active node nothing can have a heartbeat: the command does not wait for one. */
TEST(a_pool_without_active_nodes_is_formatted_at_once)
{
	path_make();
	CHECK_EQ(sci_pool("format -s 1M -n 3 -l 100000 -q 100000"), 0);
	CHECK_EQ(sci_pool("format --force -n 3 -c 4K -l 100000 -q 100000 --incoherent"), 0);
	CHECK_EQ(sci_pool("format --force -n 3"), 0);
	unlink(path);
}

TEST(a_file_that_looks_used_is_refused)
{
	uint8_t *mem;

	path_make();
	CHECK_EQ(sci_pool("format -s 1M -n 3"), 0);
	mem = path_map();
	memset(mem, 0, SIZE);
	mem[SIZE / 2] = 1;
	CHECK_EQ(sci_pool("show"), 1);
	CHECK(strstr(output, "not formatted"));
	CHECK_EQ(sci_pool("format -n 3"), 1);
	CHECK(strstr(output, "looks used"));
	CHECK_EQ(sci_pool("format -n 3 --force"), 0);
	munmap(mem, SIZE);
	unlink(path);
}

static bool stop;

static void *beat(void *arg)
{
	struct pool *p = arg;

	while (!sci_load_acquire(&stop)) {
		pool_set64(&pool_slot(p, p->slot)->beat,
			   pool_get64(&pool_slot(p, p->slot)->beat) + 1);
		test_pause();
	}
	return NULL;
}

TEST(a_pool_with_a_living_node_is_never_formatted)
{
	pthread_t thread;
	struct pool p;
	void *mem;

	path_make();
	CHECK_EQ(sci_pool("format -s 1M -n 3 -c 4K -l 0.2"), 0);
	mem = path_map();
	model_open(&p, mem, SIZE);
	CHECK_EQ(pool_join(&p, 8, 0, "host\033[2J", 5), 0);
	CHECK_EQ(pthread_create(&thread, NULL, beat, &p), 0);
	CHECK_EQ(sci_pool("format --force"), 1);
	CHECK(strstr(output, "node 8 has a heartbeat"));
	CHECK_EQ(sci_pool("show"), 0);
	CHECK(strstr(output, "active") && !strchr(output, '\033'));
	sci_store_release(&stop, true);
	pthread_join(thread, NULL);
	CHECK_EQ(sci_pool("format --force -n 2"), 0);
	model_close(&p);
	munmap(mem, SIZE);
	unlink(path);
}

TEST(arguments_are_checked)
{
	path_make();
	CHECK_EQ(sci_pool(""), 2);
	CHECK_EQ(sci_pool("format -s 1M -c 5000"), 1);
	CHECK(strstr(output, "power of two"));
	CHECK_EQ(sci_pool("format -n 64"), 1);
	CHECK(strstr(output, "too small"));
	CHECK_EQ(sci_pool("format -n 65"), 2);
	CHECK_EQ(sci_pool("format -n 2 -l 3 -q 2"), 1);
	CHECK(strstr(output, "quarantine is shorter"));
	CHECK_EQ(sci_pool("format -n 2 -l 0.0004"), 1);
	CHECK(strstr(output, "lease is shorter than 1 ms"));
	CHECK_EQ(sci_pool("show"), 1);
	unlink(path);
}
