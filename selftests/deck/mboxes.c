// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests mail boxes: their names, and messages of all sizes between 1 to 16 processes. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <deck.h>

#include "selftests/ranks.h"

#define SLOW	(TEST_ASAN || TEST_TSAN)

static deck_mbox_t *box_create(const char *name)
{
	deck_mbox_t *box = NULL;

	CHECK_EQ(deck_mbox_create(&box, name), 0);
	CHECK(box);
	return box;
}

static deck_mbox_t *box_find(const char *name)
{
	deck_mbox_t *box = NULL;

	CHECK_EQ(deck_mbox_find(&box, name, TEST_WAIT_MS), 0);
	CHECK(box);
	return box;
}

static deck_msg_t *message(size_t size)
{
	deck_msg_t *m = NULL;

	CHECK_EQ(deck_msg_create(&m, size), 0);
	return m;
}

static void fill(deck_msg_t *m, size_t len, unsigned int seed)
{
	deck_msg_clear(m);
	test_fill(deck_msg_address(m), len, seed);
	CHECK_EQ(deck_msg_set_length(m, len), 0);
}

static void check(deck_msg_t *m, size_t len, unsigned int seed, int from)
{
	CHECK_EQ(deck_msg_length(m), len);
	CHECK_EQ(deck_msg_source(m), from);
	CHECK(test_filled(deck_msg_address(m), len, seed));
}

/* ---- names ---- */

static void alone(void *arg)
{
	int rank = (int)ranks_rank();
	deck_mbox_t *a, *b, *c;
	deck_msg_t *m = message(16), *big = message(100000);
	int i = 0;

	(void)arg;
	CHECK_EQ(deck_mbox_create(&a, "early"), -ENOTCONN);
	CHECK_EQ(deck_barrier(), -ENOTCONN);
	CHECK_EQ(deck_done(), -ENOTCONN);
	CHECK_EQ(deck_msg_destroy(big), 0);
	CHECK_EQ(deck_init(NULL, NULL), 0);
	CHECK_EQ(deck_init(NULL, NULL), -EALREADY);
	CHECK_EQ(deck_rank(), rank);
	CHECK_EQ(deck_size(), 1);
	CHECK_EQ(deck_nodes(), 1);
	CHECK_EQ(deck_node(0), 0);

	CHECK_EQ(deck_mbox_create(&a, ""), -EINVAL);
	CHECK_EQ(deck_mbox_create(&a, NULL), -EINVAL);
	CHECK_EQ(deck_mbox_create(NULL, "a"), -EINVAL);
	CHECK_EQ(deck_mbox_create(&a, "a name that is longer than sixty-three bytes, which "
				      "is the most it can have"), -EINVAL);
	CHECK_EQ(deck_mbox_find(&b, "a", 0), -EAGAIN);
	CHECK_EQ(deck_mbox_find(&b, "a", 5), -ETIMEDOUT);
	a = box_create("a");
	CHECK_EQ(deck_mbox_create(&c, "a"), -EEXIST);
	b = box_find("a");
	CHECK(a == b);
	CHECK_EQ(deck_mbox_owner(a), 0);
	CHECK(!strcmp(deck_mbox_name(a), "a"));

	/* a process posts to itself */
	CHECK_EQ(deck_mbox_tryretrv(a, m), -EAGAIN);
	CHECK_EQ(deck_mbox_timedretrv(a, m, 2), -ETIMEDOUT);
	CHECK_EQ(deck_pack_int(m, &(int){ 5 }, 1), 0);
	CHECK_EQ(deck_mbox_post(a, m), 0);
	deck_msg_clear(m);
	CHECK_EQ(deck_mbox_retrv(a, m), 0);
	CHECK_EQ(deck_unpack_int(m, &i, 1), 0);
	CHECK_EQ(i, 5);
	CHECK_EQ(deck_msg_source(m), 0);

	CHECK_EQ(deck_done(), -EBUSY);
	CHECK_EQ(deck_mbox_destroy(b), 0);
	CHECK_EQ(deck_done(), -EBUSY);
	CHECK_EQ(deck_mbox_destroy(a), 0);
	CHECK_EQ(deck_mbox_find(&b, "a", 0), -EAGAIN);
	/* the name is free again */
	CHECK_EQ(deck_mbox_destroy(box_create("a")), 0);
	big = message(100000);
	CHECK_EQ(deck_done(), -EBUSY);
	CHECK_EQ(deck_msg_destroy(big), 0);
	CHECK_EQ(deck_done(), 0);
	CHECK_EQ(deck_msg_destroy(m), 0);
}

TEST(one_process)
{
	ranks_run_arg(1, 1, alone, NULL, false);
}

/* Each rank creates mail boxes, and finds those of all others, also before they exist. */
static void all_names(void *arg)
{
	int rank = (int)ranks_rank();
	deck_mbox_t *own[3], *other[16][3];
	char name[32];
	int size;

	(void)arg;
	CHECK_EQ(deck_init(NULL, NULL), 0);
	size = deck_size();
	CHECK(size <= 16);
	for (int k = 0; k < 3; k++) {
		snprintf(name, sizeof(name), "box %d of %d", k, rank);
		own[k] = box_create(name);
		for (int r = 0; r < size; r++) {
			snprintf(name, sizeof(name), "box %d of %d", k, r);
			other[r][k] = box_find(name);
			CHECK_EQ(deck_mbox_owner(other[r][k]), r);
			CHECK(!strcmp(deck_mbox_name(other[r][k]), name));
		}
	}
	/* no process has this name, and the find ends */
	CHECK_EQ(deck_mbox_find(&own[0], "box 3 of 0", 3), -ETIMEDOUT);
	CHECK_EQ(deck_barrier(), 0);
	for (int k = 0; k < 3; k++)
		for (int r = 0; r < size; r++) {
			if (r == rank)
				CHECK_EQ(deck_mbox_destroy(other[r][k]), 0);
			CHECK_EQ(deck_mbox_destroy(other[r][k]), 0);
		}
	CHECK_EQ(deck_done(), 0);
}

TEST(names_of_all_processes)
{
	ranks_run_arg(SLOW ? 5 : 9, 4, all_names, NULL, false);
}

/* If all processes create the same name at the same time, one succeeds. */
static void one_name(void *arg)
{
	int rank = (int)ranks_rank();
	_Atomic int *winners = arg;
	deck_mbox_t *box;
	int ret;

	(void)rank;
	CHECK_EQ(deck_init(NULL, NULL), 0);
	for (int i = 0; i < 20; i++) {
		CHECK_EQ(deck_barrier(), 0);
		ret = deck_mbox_create(&box, "the one");
		CHECK(!ret || ret == -EEXIST);
		if (!ret)
			atomic_fetch_add(winners, 1);
		CHECK_EQ(deck_barrier(), 0);
		CHECK_EQ(atomic_load(winners), i + 1);
		if (!ret)
			CHECK_EQ(deck_mbox_destroy(box), 0);
	}
	CHECK_EQ(deck_done(), 0);
}

TEST(a_name_is_given_once)
{
	_Atomic int *winners = test_shared(sizeof(*winners));

	ranks_run_arg(16, 4, one_name, winners, false);
}

#define STOPPED_NAMES	8	/* both processes are the home of some of these names */

/* Return whether all threads of a process are stopped. */
static bool process_is_stopped(pid_t pid)
{
	char path[PATH_MAX], state = 0;
	struct dirent *e;
	bool all = true;
	FILE *f;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	CHECK(d);
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/stat", pid, e->d_name);
		f = fopen(path, "r");
		CHECK(f);
		CHECK_EQ(fscanf(f, "%*d (%*[^)]) %c", &state), 1);
		fclose(f);
		all &= state == 'T';
	}
	closedir(d);
	return all;
}

struct finder {
	deck_thread_t *thread;
	deck_mbox_t *box;
	deck_sem_t *begun;
	char name[12];
};

static void *find_later(void *arg)
{
	struct finder *f = arg;

	CHECK_EQ(deck_sem_post(f->begun), 0);
	f->box = box_find(f->name);
	return NULL;
}

/* Find each name in a thread of its own, and in this thread, which does not wait for the others. */
static void find_of_a_stopped_process(deck_mbox_t **box, pid_t pid)
{
	struct finder f[STOPPED_NAMES];
	deck_sem_t *begun;

	CHECK_EQ(kill(pid, SIGSTOP), 0);
	WAIT_UNTIL(process_is_stopped(pid), TEST_WAIT_MS);
	CHECK_EQ(deck_sem_create(&begun, 0), 0);
	for (int i = 0; i < STOPPED_NAMES; i++) {
		f[i] = (struct finder){ .begun = begun };
		snprintf(f[i].name, sizeof(f[i].name), "%d", i);
		CHECK_EQ(deck_thread_create(&f[i].thread, find_later, &f[i]), 0);
		CHECK_EQ(deck_sem_wait(begun), 0);
	}
	for (int i = 0; i < STOPPED_NAMES; i++)
		CHECK_EQ(deck_mbox_find(&box[i], f[i].name, 100), -ETIMEDOUT);
	CHECK_EQ(kill(pid, SIGCONT), 0);
	for (int i = 0; i < STOPPED_NAMES; i++) {
		CHECK_EQ(deck_mbox_find(&box[i], f[i].name, TEST_WAIT_MS), 0);
		CHECK_EQ(deck_thread_join(f[i].thread, NULL), 0);
		CHECK(f[i].box == box[i]);
		CHECK_EQ(deck_mbox_destroy(f[i].box), 0);
	}
	CHECK_EQ(deck_sem_destroy(begun), 0);
}

static void stopped(void *arg)
{
	deck_mbox_t *box[STOPPED_NAMES] = { NULL };
	_Atomic pid_t *pid = arg;
	char name[12];

	CHECK_EQ(deck_init(NULL, NULL), 0);
	for (int i = 0; !deck_rank() && i < STOPPED_NAMES; i++) {
		snprintf(name, sizeof(name), "%d", i);
		CHECK_EQ(deck_mbox_create(&box[i], name), 0);
	}
	if (!deck_rank())
		atomic_store(pid, getpid());
	CHECK_EQ(deck_barrier(), 0);
	if (deck_rank())
		find_of_a_stopped_process(box, atomic_load(pid));
	CHECK_EQ(deck_barrier(), 0);
	for (int i = 0; i < STOPPED_NAMES; i++)
		CHECK_EQ(deck_mbox_destroy(box[i]), 0);
	CHECK_EQ(deck_done(), 0);
}

TEST(a_find_ends_in_time_although_the_process_is_stopped)
{
	ranks_run_arg(2, 1, stopped, test_shared(sizeof(pid_t)), false);
}

/* ---- messages ---- */

static const size_t sizes[] = {
	0, 1, 61, 62, 63, 64, 65, 1000, 1023, 1024, 4096, 6000, 8192, 65536, 65537, 262144,
	300001, 1 << 21,
};

/* Rank 0 posts messages of all sizes to all others, which post them back. */
static void echo(void *arg)
{
	int rank = (int)ranks_rank();
	char name[16];
	deck_mbox_t *own, *other;
	deck_msg_t *m;

	(void)arg;
	CHECK_EQ(deck_init(NULL, NULL), 0);
	snprintf(name, sizeof(name), "%d", rank);
	own = box_create(name);
	for (int r = 1; r < deck_size(); r++) {
		if (rank && rank != r)
			continue;
		snprintf(name, sizeof(name), "%d", rank ? 0 : r);
		other = box_find(name);
		for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
			size_t n = sizes[i];

			m = message(n);
			if (!rank) {
				fill(m, n, (unsigned int)(n + (size_t)r));
				CHECK_EQ(deck_mbox_post(other, m), 0);
				test_fill(deck_msg_address(m), n, 0);
			}
			CHECK_EQ(deck_mbox_retrv(own, m), 0);
			check(m, n, (unsigned int)(n + (size_t)r), rank ? 0 : r);
			if (rank)
				CHECK_EQ(deck_mbox_post(other, m), 0);
			CHECK_EQ(deck_msg_destroy(m), 0);
		}
		CHECK_EQ(deck_mbox_destroy(other), 0);
	}
	CHECK_EQ(deck_barrier(), 0);
	CHECK_EQ(deck_mbox_destroy(own), 0);
	CHECK_EQ(deck_done(), 0);
}

TEST(all_sizes_on_two_nodes)
{
	ranks_run_arg(2, 2, echo, NULL, false);
}

TEST(all_sizes_on_one_node)
{
	ranks_run_arg(3, 1, echo, NULL, false);
}

TEST(all_sizes_in_private_memory)
{
	setenv("DECK_MSG_BUF_LIMIT", "100000000", 1);
	ranks_run_arg(2, 2, echo, NULL, false);
}

TEST(all_sizes_in_exported_memory)
{
	setenv("DECK_MSG_BUF_LIMIT", "1", 1);
	ranks_run_arg(2, 2, echo, NULL, false);
}

/*
 * Return the length of a message. In each round, all processes post a message to all processes.
 * Messages of a process that is ahead wait in the mail box.
 */
static size_t size_of(int from, int to, int round)
{
	unsigned int x = (unsigned int)(from * 31 + to * 17 + round * 101);

	x = (x ^ x >> 3) * 2654435761u >> 8;
	return x % 8 ? x % 700 : x % 40000;
}

#define ROUND_MAX	40000u

struct mesh {
	int rank, size;
	deck_mbox_t *own, *other[16];
	deck_msg_t *out[16], *in;
	int next[16];			/* by process: round of its next message */
	int received;
};

static void mesh_retrieve(struct mesh *m)
{
	int from, ret = deck_mbox_timedretrv(m->own, m->in, 1), *next;

	if (ret == -ETIMEDOUT)
		return;
	CHECK_EQ(ret, 0);
	from = deck_msg_source(m->in);
	CHECK(from >= 0 && from < m->size);
	next = &m->next[from];
	check(m->in, size_of(from, m->rank, *next),
	      (unsigned int)(*next * 1000 + from * 16 + m->rank), from);
	++*next;
	m->received++;
}

static void mesh_round(struct mesh *m, int round)
{
	deck_req_t *reqs[16];

	for (int r = 0; r < m->size; r++) {
		fill(m->out[r], size_of(m->rank, r, round),
		     (unsigned int)(round * 1000 + m->rank * 16 + r));
		CHECK_EQ(deck_mbox_ipost(m->other[r], m->out[r], &reqs[r]), 0);
		CHECK_EQ(deck_mbox_post(m->other[r], m->out[r]), -EBUSY);
		CHECK_EQ(deck_msg_destroy(m->out[r]), -EBUSY);
	}
	for (int r = 0; r < m->size; r++) {
		int ret;

		while ((ret = deck_wait(reqs[r], 0)) == -EAGAIN)
			mesh_retrieve(m);
		CHECK_EQ(ret, 0);
	}
}

static void all_to_all(void *arg)
{
	int rank = (int)ranks_rank();
	int rounds = (int)(uintptr_t)arg;
	struct mesh m = { .rank = rank };
	char name[16];

	CHECK_EQ(deck_init(NULL, NULL), 0);
	m.size = deck_size();
	snprintf(name, sizeof(name), "%d", rank);
	m.own = box_create(name);
	m.in = message(ROUND_MAX);
	for (int r = 0; r < m.size; r++) {
		snprintf(name, sizeof(name), "%d", r);
		m.other[r] = box_find(name);
		m.out[r] = message(ROUND_MAX);
	}
	for (int i = 0; i < rounds; i++)
		mesh_round(&m, i);
	while (m.received < rounds * m.size)
		mesh_retrieve(&m);
	CHECK_EQ(deck_barrier(), 0);
	for (int r = 0; r < m.size; r++) {
		CHECK_EQ(m.next[r], rounds);
		CHECK_EQ(deck_msg_destroy(m.out[r]), 0);
		CHECK_EQ(deck_mbox_destroy(m.other[r]), 0);
	}
	CHECK_EQ(deck_msg_destroy(m.in), 0);
	CHECK_EQ(deck_mbox_destroy(m.own), 0);
	CHECK_EQ(deck_done(), 0);
}

static void check_all_to_all(int n, int nodes, int rounds)
{
	ranks_run_arg(n, nodes, all_to_all, (void *)(uintptr_t)rounds, false);
}

TEST(all_to_all_of_2)
{
	check_all_to_all(2, 1, 100 / (1 + 9 * SLOW));
}

TEST(all_to_all_of_2_on_2_nodes)
{
	check_all_to_all(2, 2, 100 / (1 + 9 * SLOW));
}

TEST(all_to_all_of_4_on_1_node)
{
	check_all_to_all(4, 1, 50 / (1 + 9 * SLOW));
}

TEST(all_to_all_of_4_on_4_nodes)
{
	check_all_to_all(4, 4, 50 / (1 + 9 * SLOW));
}

TEST(all_to_all_of_8_on_1_node)
{
	check_all_to_all(8, 1, SLOW ? 2 : 10);
}

TEST(all_to_all_of_8_on_4_nodes)
{
	check_all_to_all(8, 4, SLOW ? 2 : 10);
}

TEST(all_to_all_of_16_on_1_node)
{
	check_all_to_all(SLOW ? 8 : 16, 1, SLOW ? 1 : 3);
}

TEST(all_to_all_of_16_on_4_nodes)
{
	check_all_to_all(SLOW ? 8 : 16, 4, SLOW ? 1 : 3);
}

/* ---- calls that fail or end later ---- */

static void limits(void *arg)
{
	int rank = (int)ranks_rank();
	deck_mbox_t *own, *other;
	deck_msg_t *m = message(100), *more = message(9000);
	deck_req_t *req, *second;

	(void)arg;
	CHECK_EQ(deck_init(NULL, NULL), 0);
	own = box_create(rank ? "b" : "a");
	other = box_find(rank ? "a" : "b");
	if (!rank) {
		/* too long for the receiver's message: an eager message, and a rendezvous */
		fill(more, 200, 1);
		CHECK_EQ(deck_mbox_post(other, more), 0);
		fill(more, 9000, 2);
		CHECK_EQ(deck_mbox_post(other, more), 0);
		fill(m, 10, 3);
		CHECK_EQ(deck_mbox_timedpost(other, m, TEST_WAIT_MS), 0);
		CHECK_EQ(deck_mbox_post(own, m), 0);
		/* a cancelled request gets no message */
		deck_msg_clear(m);
		CHECK_EQ(deck_mbox_retrv(own, m), 0);
		CHECK_EQ(deck_mbox_iretrv(own, m, &req), 0);
		CHECK_EQ(deck_mbox_iretrv(own, more, &second), 0);
		CHECK_EQ(deck_mbox_tryretrv(own, m), -EBUSY);
		CHECK_EQ(deck_wait(req, 0), -EAGAIN);
		CHECK_EQ(deck_wait(req, 2), -ETIMEDOUT);
		CHECK_EQ(deck_cancel(req), 0);
		CHECK_EQ(deck_wait(req, -1), -ECANCELED);
		fill(m, 20, 4);
		CHECK_EQ(deck_mbox_post(own, m), 0);
		CHECK_EQ(deck_wait(second, TEST_WAIT_MS), 0);
		check(more, 20, 4, 0);
	} else {
		CHECK_EQ(deck_mbox_retrv(own, m), -EMSGSIZE);
		CHECK_EQ(deck_msg_length(m), 100);
		CHECK_EQ(deck_msg_source(m), 0);
		CHECK_EQ(deck_mbox_timedretrv(own, m, TEST_WAIT_MS), -EMSGSIZE);
		CHECK_EQ(deck_mbox_iretrv(own, m, &req), 0);
		CHECK_EQ(deck_wait(req, -1), 0);
		check(m, 10, 3, 0);
	}
	CHECK_EQ(deck_barrier(), 0);
	/* only the owner of a mail box may retrieve */
	CHECK_EQ(deck_mbox_retrv(other, m), -EINVAL);
	CHECK_EQ(deck_mbox_iretrv(other, m, &req), -EINVAL);
	CHECK_EQ(deck_mbox_post(NULL, m), -EINVAL);
	CHECK_EQ(deck_mbox_post(other, NULL), -EINVAL);
	if (rank)
		CHECK_EQ(deck_mbox_destroy(own), 0);
	CHECK_EQ(deck_barrier(), 0);
	if (!rank) {
		/* the owner has destroyed the mail box */
		WAIT_UNTIL(deck_mbox_post(other, m) == -ENOTCONN, TEST_WAIT_MS);
		CHECK_EQ(deck_mbox_find(&own, "b", 0), -EAGAIN);
		own = box_find("a");
		CHECK_EQ(deck_mbox_destroy(own), 0);
		CHECK_EQ(deck_mbox_destroy(own), 0);
	}
	CHECK_EQ(deck_mbox_destroy(other), 0);
	CHECK_EQ(deck_msg_destroy(m), 0);
	CHECK_EQ(deck_msg_destroy(more), 0);
	CHECK_EQ(deck_done(), 0);
}

TEST(messages_that_do_not_fit_and_requests)
{
	ranks_run_arg(2, 2, limits, NULL, false);
}

/*
 * Posts that are not retrieved in time either fail without an effect, or go on until
 * deck_msg_wait().
 */
static void timed(void *arg)
{
	int rank = (int)ranks_rank();
	const size_t n = 1 << 20;
	deck_msg_t *m = message(n), *next = message(n), *m2 = message(10);
	unsigned int posts = 0;
	deck_mbox_t *box;
	int ret;

	(void)arg;
	CHECK_EQ(deck_init(NULL, NULL), 0);
	box = rank ? box_find("slow") : box_create("slow");
	if (rank) {
		fill(m, n, 1);
		fill(next, n, 2);
		CHECK_EQ(deck_msg_wait(m, 0), -ENOENT);
		CHECK_EQ(deck_mbox_trypost(box, m), -EINPROGRESS);
		CHECK_EQ(deck_mbox_post(box, m), -EBUSY);
		CHECK_EQ(deck_msg_wait(m, 0), -EAGAIN);
		CHECK_EQ(deck_msg_wait(m, 2), -ETIMEDOUT);
		CHECK_EQ(deck_mbox_timedpost(box, next, 2), -EINPROGRESS);
		CHECK_EQ(deck_barrier(), 0);
		CHECK_EQ(deck_msg_wait(next, TEST_WAIT_MS), 0);
		CHECK_EQ(deck_msg_wait(m, TEST_WAIT_MS), 0);
		CHECK_EQ(deck_msg_wait(m, 0), -ENOENT);
		CHECK_EQ(deck_barrier(), 0);
		/* post short messages until there is no room: the last one is not posted */
		while (fill(m2, 10, posts), !(ret = deck_mbox_timedpost(box, m2, 2)))
			posts++;
		CHECK_EQ(ret, -ETIMEDOUT);
		CHECK_EQ(deck_mbox_trypost(box, m2), -EAGAIN);
		CHECK(posts > 0);
		CHECK_EQ(deck_barrier(), 0);
		fill(m2, 1, 0);
		CHECK_EQ(deck_mbox_post(box, m2), 0);
	} else {
		CHECK_EQ(deck_barrier(), 0);
		for (unsigned int i = 1; i < 3; i++) {
			CHECK_EQ(deck_mbox_retrv(box, m), 0);
			check(m, n, i, 1);
		}
		CHECK_EQ(deck_barrier(), 0);
		CHECK_EQ(deck_barrier(), 0);
		do {
			CHECK_EQ(deck_mbox_retrv(box, m2), 0);
			if (deck_msg_length(m2) > 1)
				check(m2, 10, posts++, 1);
		} while (deck_msg_length(m2) > 1);
	}
	CHECK_EQ(deck_barrier(), 0);
	CHECK_EQ(deck_mbox_destroy(box), 0);
	CHECK_EQ(deck_msg_destroy(m), 0);
	CHECK_EQ(deck_msg_destroy(m2), 0);
	CHECK_EQ(deck_msg_destroy(next), 0);
	CHECK_EQ(deck_done(), 0);
}

/* One thread posts and retrieves long messages: the first call does not block the second. */
static void exchanges(void *arg)
{
	int rank = (int)ranks_rank(), peer;
	const size_t n = 1 << 20;
	deck_msg_t *out, *in;
	deck_mbox_t *own, *other;
	deck_req_t *r;
	char name[16];

	(void)arg;
	CHECK_EQ(deck_init(NULL, NULL), 0);
	out = message(n);
	in = message(n);
	peer = (rank + 1) % deck_size();
	snprintf(name, sizeof(name), "%d", rank);
	own = box_create(name);
	snprintf(name, sizeof(name), "%d", peer);
	other = box_find(name);
	for (unsigned int i = 0; i < 9; i++) {
		fill(out, n, i);
		switch (i % 3) {
		case 0:
			CHECK_EQ(deck_mbox_ipost(other, out, &r), 0);
			CHECK_EQ(deck_mbox_retrv(own, in), 0);
			break;
		case 1:
			CHECK_EQ(deck_mbox_ipost(other, out, &r), 0);
			CHECK_EQ(deck_mbox_timedretrv(own, in, TEST_WAIT_MS), 0);
			break;
		default:
			CHECK_EQ(deck_mbox_iretrv(own, in, &r), 0);
			CHECK_EQ(deck_mbox_post(other, out), 0);
		}
		CHECK_EQ(deck_wait(r, TEST_WAIT_MS), 0);
		check(in, n, i, peer);
	}
	CHECK_EQ(deck_barrier(), 0);
	CHECK_EQ(deck_mbox_destroy(other), 0);
	CHECK_EQ(deck_mbox_destroy(own), 0);
	CHECK_EQ(deck_msg_destroy(out), 0);
	CHECK_EQ(deck_msg_destroy(in), 0);
	CHECK_EQ(deck_done(), 0);
}

#define QUEUED	200u	/* messages, more than the ring of a mail box has room for */

/* The call that a process makes while its requests are under way. */
enum other { OTHER_BARRIER, OTHER_BROADCAST, OTHER_FIND };

static void other_call(enum other what)
{
	deck_mbox_t *late;
	deck_msg_t *m;

	switch (what) {
	case OTHER_BARRIER:
		CHECK_EQ(deck_barrier(), 0);
		break;
	case OTHER_BROADCAST:
		m = message(100);
		CHECK_EQ(deck_broadcast(m, 1), 0);
		CHECK_EQ(deck_msg_destroy(m), 0);
		break;
	case OTHER_FIND:
		late = deck_rank() ? box_create("late") : box_find("late");
		CHECK_EQ(deck_barrier(), 0);
		CHECK_EQ(deck_mbox_destroy(late), 0);
	}
}

/* Process 1 makes the other call only after it has retrieved all messages of process 0. */
static void queued_posts(void *arg)
{
	static deck_msg_t *m[QUEUED];
	static deck_req_t *r[QUEUED];
	deck_mbox_t *box;

	CHECK_EQ(deck_init(NULL, NULL), 0);
	box = deck_rank() ? box_create("queue") : box_find("queue");
	for (unsigned int i = 0; i < QUEUED; i++) {
		m[i] = message(8);
		if (deck_rank())
			CHECK_EQ(deck_mbox_retrv(box, m[i]), 0);
		else
			CHECK_EQ(deck_mbox_ipost(box, m[i], &r[i]), 0);
	}
	other_call((enum other)(uintptr_t)arg);
	for (unsigned int i = 0; i < QUEUED; i++) {
		if (!deck_rank())
			CHECK_EQ(deck_wait(r[i], TEST_WAIT_MS), 0);
		CHECK_EQ(deck_msg_destroy(m[i]), 0);
	}
	CHECK_EQ(deck_barrier(), 0);
	CHECK_EQ(deck_mbox_destroy(box), 0);
	CHECK_EQ(deck_done(), 0);
}

static void queue_posts_before(enum other what)
{
	ranks_run_arg(2, 1, queued_posts, (void *)(uintptr_t)what, false);
}

TEST(posts_make_progress_in_a_barrier)
{
	queue_posts_before(OTHER_BARRIER);
}

TEST(posts_make_progress_in_a_broadcast)
{
	queue_posts_before(OTHER_BROADCAST);
}

TEST(posts_make_progress_in_a_find)
{
	queue_posts_before(OTHER_FIND);
}

/* Process 0 makes the other call only after its long message has been retrieved. */
static void retrieve_begun(void *arg)
{
	const size_t n = 1 << 20;
	deck_mbox_t *box;
	deck_msg_t *m;
	deck_req_t *r;

	CHECK_EQ(deck_init(NULL, NULL), 0);
	m = message(n);
	box = deck_rank() ? box_create("begun") : box_find("begun");
	if (deck_rank()) {
		CHECK_EQ(deck_mbox_iretrv(box, m, &r), 0);
	} else {
		fill(m, n, 7);
		CHECK_EQ(deck_mbox_post(box, m), 0);
	}
	other_call((enum other)(uintptr_t)arg);
	if (deck_rank()) {
		CHECK_EQ(deck_wait(r, TEST_WAIT_MS), 0);
		check(m, n, 7, 0);
	}
	CHECK_EQ(deck_barrier(), 0);
	CHECK_EQ(deck_mbox_destroy(box), 0);
	CHECK_EQ(deck_msg_destroy(m), 0);
	CHECK_EQ(deck_done(), 0);
}

TEST(a_retrieve_makes_progress_in_a_barrier)
{
	ranks_run_arg(2, 1, retrieve_begun, (void *)OTHER_BARRIER, false);
}

#define SHORTS	1000u	/* messages, more than the ring of a mail box has room for */

/* Process 1 retrieves short messages only after its long message has been retrieved. */
static void short_posts(void *arg)
{
	const size_t n = 1 << 20;
	deck_mbox_t *own, *other;
	deck_msg_t *m, *shorter;
	deck_req_t *r;

	(void)arg;
	CHECK_EQ(deck_init(NULL, NULL), 0);
	m = message(n);
	shorter = message(8);
	own = box_create(deck_rank() ? "1" : "0");
	other = box_find(deck_rank() ? "0" : "1");
	if (!deck_rank()) {
		CHECK_EQ(deck_mbox_iretrv(own, m, &r), 0);
		for (unsigned int i = 0; i < SHORTS; i++) {
			fill(shorter, 8, i);
			CHECK_EQ(deck_mbox_post(other, shorter), 0);
		}
		CHECK_EQ(deck_wait(r, TEST_WAIT_MS), 0);
		check(m, n, 7, 1);
	} else {
		fill(m, n, 7);
		CHECK_EQ(deck_mbox_post(other, m), 0);
		for (unsigned int i = 0; i < SHORTS; i++) {
			CHECK_EQ(deck_mbox_retrv(own, shorter), 0);
			check(shorter, 8, i, 0);
		}
	}
	CHECK_EQ(deck_barrier(), 0);
	CHECK_EQ(deck_mbox_destroy(other), 0);
	CHECK_EQ(deck_mbox_destroy(own), 0);
	CHECK_EQ(deck_msg_destroy(shorter), 0);
	CHECK_EQ(deck_msg_destroy(m), 0);
	CHECK_EQ(deck_done(), 0);
}

TEST(a_retrieve_makes_progress_while_short_messages_are_posted)
{
	ranks_run_arg(2, 1, short_posts, NULL, false);
}

TEST(exchanges_of_2_on_2_nodes)
{
	ranks_run_arg(2, 2, exchanges, NULL, false);
}

TEST(exchanges_of_1)
{
	ranks_run_arg(1, 1, exchanges, NULL, false);
}

TEST(posts_in_time)
{
	ranks_run_arg(2, 2, timed, NULL, false);
}

/* ---- buffers ---- */

/* Messages are created, posted and destroyed many times. Descriptors do not accumulate. */
static void churn(void *arg)
{
	int rank = (int)ranks_rank();
	static const size_t lens[] = { 1024, 5000, 70000, 300000, 1 << 20 };
	deck_mbox_t *box;
	unsigned int before = 0;

	(void)arg;
	CHECK_EQ(deck_init(NULL, NULL), 0);
	box = rank ? box_find("churn") : box_create("churn");
	for (unsigned int i = 0; i < 40; i++) {
		deck_msg_t *m[ARRAY_LEN(lens)];

		for (size_t k = 0; k < ARRAY_LEN(lens); k++) {
			m[k] = message(lens[k]);
			if (rank) {
				fill(m[k], lens[k], i);
				CHECK_EQ(deck_mbox_post(box, m[k]), 0);
			} else {
				CHECK_EQ(deck_mbox_retrv(box, m[k]), 0);
				check(m[k], lens[k], i, 1);
			}
		}
		for (size_t k = 0; k < ARRAY_LEN(lens); k++)
			CHECK_EQ(deck_msg_destroy(m[k]), 0);
		if (i == 2)
			before = count_fds();
	}
	CHECK_EQ(count_fds(), before);
	CHECK_EQ(deck_barrier(), 0);
	CHECK_EQ(deck_mbox_destroy(box), 0);
	CHECK_EQ(deck_done(), 0);
}

TEST(buffers_are_used_again)
{
	ranks_run_arg(2, 2, churn, NULL, false);
}

#define FINDS		(SLOW ? 50u : 200u)
#define FINDS_BYTES	100000u		/* 100 connections have more */

static void find_often(const char *name)
{
	for (unsigned int i = 0; i < FINDS; i++)
		CHECK_EQ(deck_mbox_destroy(box_find(name)), 0);
}

/* Another process finds and destroys a mail box many times. The owner's memory does not grow. */
static void found_often(void *arg)
{
	deck_msg_t *m;
	deck_mbox_t *box = NULL;
	deck_req_t *r;
	size_t before = 0;

	(void)arg;
	/* mallinfo2() counts the first arena only; the sanitizers' count is 0 */
	mallopt(M_ARENA_MAX, 1);
	CHECK_EQ(deck_init(NULL, NULL), 0);
	m = message(8);
	if (!deck_rank())
		box = box_create("found");
	/* the first round allocates what stays; in the last, a retrieve is under way */
	for (unsigned int round = 0; round < 3; round++) {
		if (!deck_rank() && round == 1)
			before = mallinfo2().uordblks;
		if (!deck_rank() && round == 2)
			CHECK_EQ(deck_mbox_iretrv(box, m, &r), 0);
		CHECK_EQ(deck_barrier(), 0);
		if (deck_rank())
			find_often("found");
		CHECK_EQ(deck_barrier(), 0);
	}
	if (deck_rank()) {
		box = box_find("found");
		CHECK_EQ(deck_mbox_post(box, m), 0);
		CHECK_EQ(deck_barrier(), 0);
	} else {
		CHECK_EQ(deck_wait(r, TEST_WAIT_MS), 0);
		CHECK_EQ(deck_msg_source(m), 1);
		test_note("%zu bytes, then %zu", before, mallinfo2().uordblks);
		CHECK(mallinfo2().uordblks < before + FINDS_BYTES);
		CHECK_EQ(deck_barrier(), 0);
	}
	CHECK_EQ(deck_mbox_destroy(box), 0);
	CHECK_EQ(deck_msg_destroy(m), 0);
	CHECK_EQ(deck_done(), 0);
}

TEST(connections_of_finds_are_freed)
{
	ranks_run_arg(2, 1, found_often, NULL, false);
}

static void broadcasts(void *arg)
{
	int rank = (int)ranks_rank();
	deck_msg_t *m = message(50000);

	(void)arg;
	CHECK_EQ(deck_init(NULL, NULL), 0);
	for (int root = 0; root < deck_size(); root++) {
		deck_msg_clear(m);
		if (rank == root)
			fill(m, (size_t)root * 1000, (unsigned int)root);
		CHECK_EQ(deck_broadcast(m, root), 0);
		check(m, (size_t)root * 1000, (unsigned int)root, root);
	}
	CHECK_EQ(deck_broadcast(NULL, 0), -EINVAL);
	CHECK_EQ(deck_msg_destroy(m), 0);
	CHECK_EQ(deck_done(), 0);
}

TEST(broadcast_of_2)
{
	ranks_run_arg(2, 1, broadcasts, NULL, false);
}

/* A process whose message is too short stays in step with the others. */
static void broadcasts_to_a_short_message(void *arg)
{
	bool is_short = ranks_rank() == 1;
	deck_msg_t *m = message(is_short ? 1000 : 50000);

	(void)arg;
	CHECK_EQ(deck_init(NULL, NULL), 0);
	for (unsigned int i = 0; i < 3; i++) {
		size_t len = i == 1 ? 1000 : 50000;
		bool cut = is_short && len > 1000;

		deck_msg_clear(m);
		if (!ranks_rank())
			fill(m, len, i);
		CHECK_EQ(deck_broadcast(m, 0), cut ? -EMSGSIZE : 0);
		check(m, cut ? 1000 : len, i, 0);
	}
	CHECK_EQ(deck_msg_destroy(m), 0);
	CHECK_EQ(deck_done(), 0);
}

TEST(broadcasts_of_4_to_a_short_message)
{
	ranks_run_arg(4, 2, broadcasts_to_a_short_message, NULL, false);
}

TEST(broadcast_of_8_on_4_nodes)
{
	ranks_run_arg(8, 4, broadcasts, NULL, false);
}
