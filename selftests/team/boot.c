// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Start-up: numbers and nodes of ranks, gathers, values, and reports of deaths. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsci/team/boot.h"
#include "libsci/team/boot_server.h"
#include "selftests/ranks.h"

static struct sci_boot *join(void)
{
	struct sci_boot *boot;

	CHECK_EQ(sci_boot_open(&boot, NULL), 0);
	return boot;
}

static unsigned int rank_of(const struct sci_boot *boot)
{
	return sci_boot_info(boot)->rank;
}

/* ---- a single process ---- */

TEST(a_process_without_a_launcher_is_a_job_of_one)
{
	struct sci_boot *boot = join();
	const struct sci_boot_info *info = sci_boot_info(boot);
	unsigned int in = 7, out = 0, rank;
	size_t len = sizeof(out);

	CHECK_EQ(info->rank, 0);
	CHECK_EQ(info->size, 1);
	CHECK_EQ(info->local_rank, 0);
	CHECK_EQ(info->local_size, 1);
	CHECK(!info->launched);
	CHECK_EQ(sci_boot_barrier(boot), 0);
	CHECK_EQ(sci_boot_gather(boot, &in, &out, sizeof(in)), 0);
	CHECK_EQ(out, 7);
	CHECK_EQ(sci_boot_get(boot, 0, "a", &out, &len), -ECONNRESET);
	CHECK_EQ(sci_boot_publish(boot, "a", "12", 2), 0);
	CHECK_EQ(sci_boot_publish(boot, "b", "34", 2), 0);
	CHECK_EQ(sci_boot_publish(boot, "a", "567", 3), 0);
	len = 2;
	CHECK_EQ(sci_boot_get(boot, 0, "a", &out, &len), -EMSGSIZE);
	CHECK_EQ(len, 3);
	CHECK_EQ(sci_boot_get(boot, 0, "a", &out, &len), 0);
	CHECK(!memcmp(&out, "567", 3));
	CHECK_EQ(sci_boot_get(boot, 1, "a", &out, &len), -EINVAL);
	CHECK_EQ(sci_boot_died(boot, &rank), -EAGAIN);
	CHECK_EQ(sci_boot_fd(boot), -1);
	sci_boot_close(boot);
	sci_boot_close(NULL);
}

TEST(a_variable_without_its_socket_is_ignored)
{
	int fds[2];
	char value[32];

	CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
	snprintf(value, sizeof(value), "%d:1", fds[0]);
	setenv("SCI_BOOT", value, 1);
	sci_boot_close(join());
	setenv("SCI_BOOT", "9999:1", 1);
	sci_boot_close(join());
	setenv("SCI_BOOT", "nonsense", 1);
	sci_boot_close(join());
}

TEST(a_process_joins_once_and_again_after_it_has_left)
{
	struct sci_boot *boot = join(), *second;

	CHECK_EQ(sci_boot_open(&second, NULL), -EBUSY);
	sci_boot_close(boot);
	sci_boot_close(join());
}

/* ---- numbers and nodes of ranks ---- */

struct seen {
	uint64_t job;
	uint8_t key[SCI_BOOT_KEY_SIZE];
	unsigned int rank, node;
};

static void check_places(void)
{
	struct sci_boot *boot = join();
	const struct sci_boot_info *info = sci_boot_info(boot);
	struct seen mine = { .job = info->job, .rank = info->rank }, all[6];

	CHECK_EQ(info->size, 6);
	CHECK_EQ(info->rank, ranks_rank());
	CHECK_EQ(info->local_rank, info->rank);
	CHECK_EQ(info->local_size, 6);
	CHECK(info->launched);
	CHECK(info->job != 0);
	memcpy(mine.key, info->key, sizeof(mine.key));
	mine.node = (unsigned int)atoi(getenv("SCI_NODE"));
	CHECK_EQ(sci_boot_gather(boot, &mine, all, sizeof(mine)), 0);
	for (unsigned int i = 0; i < 6; i++) {
		CHECK_EQ(all[i].job, info->job);
		CHECK_EQ(all[i].rank, i);
		CHECK_EQ(all[i].node, info->nodes[i]);
		CHECK_EQ(all[i].node, 4 * (1 + i / 2));
		CHECK(!memcmp(all[i].key, info->key, sizeof(info->key)));
	}
	sci_boot_close(boot);
}

TEST(ranks_know_their_numbers_and_nodes)
{
	ranks_run(6, 3, check_places);
}

/* ---- gathers ---- */

static void gathers(void)
{
	static unsigned char mine[SCI_BOOT_GATHER_MAX], all[4 * SCI_BOOT_GATHER_MAX];
	struct sci_boot *boot = join();
	unsigned int rank = rank_of(boot);

	for (unsigned int round = 0; round < 200; round++) {
		size_t len = round % 20 ? round : sizeof(mine);

		test_fill(mine, len, rank + 4 * round);
		CHECK_EQ(sci_boot_gather(boot, mine, all, len), 0);
		for (unsigned int i = 0; i < 4; i++)
			CHECK(test_filled(all + i * len, len, i + 4 * round));
	}
	CHECK_EQ(sci_boot_gather(boot, mine, all, sizeof(mine) + 1), -EINVAL);
	CHECK_EQ(sci_boot_gather(boot, mine, all, rank == 3 ? 2 : 1), -EINVAL);
	CHECK_EQ(sci_boot_barrier(boot), 0);
	sci_boot_close(boot);
}

TEST(gathers_of_all_sizes)
{
	ranks_run(4, 1, gathers);
}

static _Atomic unsigned int *arrived;

static void barriers(void)
{
	struct sci_boot *boot = join();

	for (unsigned int i = 1; i <= 100; i++) {
		(*arrived)++;
		CHECK_EQ(sci_boot_barrier(boot), 0);
		CHECK(*arrived >= 5 * i);
		CHECK_EQ(sci_boot_barrier(boot), 0);
	}
	sci_boot_close(boot);
}

TEST(a_barrier_waits_for_all)
{
	arrived = test_shared(sizeof(*arrived));
	ranks_run(5, 5, barriers);
}

/* ---- values ---- */

static void values(void)
{
	struct sci_boot *boot = join();
	unsigned int rank = rank_of(boot), got;
	char name[SCI_BOOT_NAME_MAX + 2];
	size_t len;

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	CHECK_EQ(sci_boot_publish(boot, name, "", 0), -EINVAL);
	CHECK_EQ(sci_boot_publish(boot, "", "", 0), -EINVAL);
	name[sizeof(name) - 2] = '\0';
	/* each rank but the last waits for a value of the next one */
	for (unsigned int k = 0; k < 50; k++) {
		name[0] = (char)('a' + k % 26);
		if (rank < 3) {
			len = sizeof(got);
			CHECK_EQ(sci_boot_get(boot, rank + 1, name, &got, &len), 0);
			CHECK_EQ(len, sizeof(got));
		}
		got = rank;
		CHECK_EQ(sci_boot_publish(boot, name, &got, sizeof(got)), 0);
	}
	for (unsigned int i = 0; i < 4; i++) {
		len = sizeof(got);
		CHECK_EQ(sci_boot_get(boot, i, name, &got, &len), 0);
		CHECK_EQ(got, i);
		len = 3;
		CHECK_EQ(sci_boot_get(boot, i, name, &got, &len), -EMSGSIZE);
		CHECK_EQ(len, sizeof(got));
	}
	CHECK_EQ(sci_boot_barrier(boot), 0);
	if (rank)
		CHECK_EQ(sci_boot_get(boot, 0, "never", &got, &len), -ECONNRESET);
	sci_boot_close(boot);
}

TEST(values_are_waited_for)
{
	ranks_run(4, 2, values);
}

/* ---- death ---- */

static void one_dies(void *arg)
{
	struct sci_boot *boot = join();
	unsigned int dead, victim = *(unsigned int *)arg;
	char all[4];
	size_t len = 1;

	CHECK_EQ(sci_boot_barrier(boot), 0);
	if (rank_of(boot) == victim)
		raise(SIGKILL);
	CHECK_EQ(sci_boot_gather(boot, "a", all, 1), -ECONNRESET);
	CHECK_EQ(sci_boot_died(boot, &dead), 0);
	CHECK_EQ(dead, victim);
	CHECK_EQ(sci_boot_died(boot, &dead), -EAGAIN);
	CHECK_EQ(sci_boot_barrier(boot), -ECONNRESET);
	CHECK_EQ(sci_boot_get(boot, victim, "x", all, &len), -ECONNRESET);
	/* living ranks still exchange values */
	CHECK_EQ(sci_boot_publish(boot, "alive", "y", 1), 0);
	for (unsigned int i = 0; i < 4; i++)
		if (i != victim)
			CHECK_EQ(sci_boot_get(boot, i, "alive", all, &len), 0);
	sci_boot_close(boot);
}

TEST(a_death_ends_gathers_and_is_reported_once)
{
	for (unsigned int victim = 0; victim < 4; victim++)
		ranks_run_arg(4, 2, one_dies, &victim, true);
}

static void notice(void *arg)
{
	struct sci_boot *boot = join();
	struct pollfd p = { .fd = sci_boot_fd(boot), .events = POLLIN };
	unsigned int dead;
	int ret;

	(void)arg;
	CHECK_EQ(sci_boot_barrier(boot), 0);
	if (rank_of(boot) == 1)
		raise(SIGKILL);
	/* the barrier may have read the report together with its own answer */
	while ((ret = sci_boot_died(boot, &dead)) == -EAGAIN)
		CHECK_EQ(poll(&p, 1, TEST_WAIT_MS), 1);
	CHECK_EQ(ret, 0);
	CHECK_EQ(dead, 1);
	sci_boot_close(boot);
}

TEST(the_descriptor_reports_a_death)
{
	ranks_run_arg(3, 1, notice, NULL, true);
}

static void leaves_early(void)
{
	struct sci_boot *boot = join();
	unsigned int dead;

	if (rank_of(boot) != 2) {
		CHECK_EQ(sci_boot_barrier(boot), -ECONNRESET);
		CHECK_EQ(sci_boot_died(boot, &dead), -EAGAIN);
	}
	sci_boot_close(boot);
}

TEST(a_rank_that_has_left_is_not_waited_for)
{
	ranks_run(3, 1, leaves_early);
}

static void never_joins(void)
{
	if (ranks_rank() != 1) {
		struct sci_boot *boot = join();

		CHECK_EQ(sci_boot_barrier(boot), -ECONNRESET);
		sci_boot_close(boot);
	}
}

TEST(a_rank_that_ends_without_joining_is_not_waited_for)
{
	ranks_run(3, 1, never_joins);
}

/* ---- several joins by a process, and children ---- */

static void again(void)
{
	for (unsigned int i = 0; i < 100; i++) {
		struct sci_boot *boot = join();
		unsigned int all[3];

		CHECK_EQ(sci_boot_gather(boot, &i, all, sizeof(i)), 0);
		for (unsigned int k = 0; k < 3; k++)
			CHECK_EQ(all[k], i);
		sci_boot_close(boot);
	}
}

TEST(a_rank_joins_many_times)
{
	ranks_run(3, 3, again);
}

static void forks(void)
{
	struct sci_boot *boot = join();
	unsigned int dead;
	int status;
	pid_t pid;

	pid = test_fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK_EQ(sci_boot_barrier(boot), -ENOTCONN);
		CHECK_EQ(sci_boot_publish(boot, "a", "b", 1), -ENOTCONN);
		CHECK_EQ(sci_boot_died(boot, &dead), -ENOTCONN);
		sci_boot_close(boot);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(sci_boot_barrier(boot), 0);
	CHECK(fcntl(sci_boot_fd(boot), F_GETFD) & FD_CLOEXEC);
	sci_boot_close(boot);
}

TEST(a_forked_child_is_not_the_rank)
{
	ranks_run(2, 1, forks);
}

static void aborts(void *arg)
{
	struct sci_boot *boot = join();

	(void)arg;
	CHECK_EQ(sci_boot_barrier(boot), 0);
	if (rank_of(boot) == 1)
		sci_boot_abort(boot, 42);
	pause();
}

TEST(one_rank_aborts_all)
{
	ranks_run_arg(4, 1, aborts, NULL, true);
	CHECK_EQ(ranks_aborted(), 42);
}

static void leaks(void)
{
	char all[2];

	sci_boot_close(join());
	leak_check_begin();
	for (unsigned int i = 0; i < 50; i++) {
		struct sci_boot *boot = join();

		CHECK_EQ(sci_boot_gather(boot, "a", all, 1), 0);
		sci_boot_close(boot);
	}
	leak_check_end();
}

static void server_sends(void *arg, const struct boot_frame *f, const void *payload)
{
	unsigned int *dead = arg;

	(void)payload;
	if (f->type == BOOT_DIED)
		*dead |= 1u << f->arg;
}

TEST(a_rank_that_has_ended_well_does_not_die_with_its_machine)
{
	const struct boot_place places[2] = { { 0, 4 }, { 0, 4 } };
	struct boot_server *server;
	unsigned int dead = 0;

	CHECK_EQ(boot_server_create(&server, places, 2, server_sends, &dead), 0);
	boot_server_ended(server, 0, false);
	boot_server_ended(server, 0, true);
	boot_server_ended(server, 1, true);
	CHECK_EQ(dead, 2);
	boot_server_destroy(server);
}

static void server_counts_gathers(void *arg, const struct boot_frame *f, const void *payload)
{
	unsigned int *gathers = arg;

	(void)payload;
	*gathers += f->type == BOOT_GATHERED;
}

static void server_receives(struct boot_server *server, enum boot_type type, uint32_t rank)
{
	const struct boot_frame f = { type, rank, type == BOOT_HELLO ? BOOT_VERSION : 0, 0 };

	CHECK_EQ(boot_server_frame(server, &f, NULL), 0);
}

/* Rank 0 contributes to a gather that rank 2 has left. The others have begun the next one. */
TEST(a_late_contribution_is_not_for_the_next_gather)
{
	const struct boot_place places[3] = { { 0, 4 }, { 0, 4 }, { 0, 4 } };
	struct boot_server *server;
	unsigned int gathers = 0;

	CHECK_EQ(boot_server_create(&server, places, 3, server_counts_gathers, &gathers), 0);
	for (uint32_t i = 0; i < 3; i++)
		server_receives(server, BOOT_HELLO, i);
	for (uint32_t i = 2; i; i--) {
		server_receives(server, BOOT_BYE, i);
		server_receives(server, BOOT_HELLO, i);
		server_receives(server, BOOT_GATHER, i);
	}
	server_receives(server, BOOT_GATHER, 0);
	CHECK_EQ(gathers, 0);
	server_receives(server, BOOT_BYE, 0);
	server_receives(server, BOOT_HELLO, 0);
	server_receives(server, BOOT_GATHER, 0);
	CHECK_EQ(gathers, 1);
	boot_server_destroy(server);
}

TEST(nothing_leaks)
{
	ranks_run(2, 1, leaks);
}
