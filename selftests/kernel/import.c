// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test remote segments: connecting, mapping, and the ends of connections. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sci_test.h"

#define LENGTH	(4 * PAGE)

static struct sci_ioc_remote_info info_of(int fd)
{
	struct sci_ioc_remote_info info;

	OK(remote_info(fd, &info));
	EQ(info.out_reserved, 0);
	return info;
}

static __u32 importers(int local)
{
	struct sci_ioc_segment_info info;

	OK(segment_info(local, &info));
	return info.out_importers;
}

/* ---- connecting ---- */

TEST(data_moves_both_ways)
{
	struct pair p = PAIR(LENGTH);

	CHECK(all_zero(p.there, LENGTH));
	fill(p.there, LENGTH, 1);
	OK(sci_flush(p.remote));
	CHECK(filled(p.here, LENGTH, 1));
	fill(p.here, LENGTH, 2);
	CHECK(filled(p.there, LENGTH, 2));
}

/* ---- simulated caches ---- */

TEST(only_flushes_move_lines_of_a_simulated_cache)
{
	struct pair p = PAIR(LENGTH);

	NEED_CAP(SCI_CAP_CHECKED);
	WORD(p.there, 0) = 1;
	OK(sci_cache(p.importer, p.there, LENGTH, 0));
	EQ(WORD(p.here, 0), 0);
	OK(sci_cache(p.exporter, p.here, 1, SCI_CACHE_DROP));
	EQ(WORD(p.here, 0), 1);
	/* two pages, from the middle of a line to the middle of a line */
	WORD(p.here, PAGE / 4 - 1) = 2;
	WORD(p.here, PAGE / 4) = 3;
	OK(sci_cache(p.exporter, (char *)p.here + PAGE - 2, 4, 0));
	EQ(WORD(p.there, PAGE / 4), 0);
	OK(sci_cache(p.importer, (char *)p.there + PAGE - 2, 4, SCI_CACHE_DROP));
	EQ(WORD(p.there, PAGE / 4 - 1), 2);
	EQ(WORD(p.there, PAGE / 4), 3);
}

TEST(only_maps_of_the_adapter_have_a_simulated_cache)
{
	struct pair p = PAIR(LENGTH);
	void *other = user_memory(PAGE);

	if (!adapter_can(0, SCI_CAP_CHECKED)) {
		FAILS(sci_cache(p.importer, p.there, PAGE, 0), EOPNOTSUPP);
		FAILS(sci_cache(p.exporter, p.here, PAGE, 0), EOPNOTSUPP);
		return;
	}
	FAILS(sci_cache(p.importer, other, PAGE, 0), EFAULT);
	FAILS(sci_cache(p.importer, p.here, PAGE, 0), EFAULT);
	FAILS(sci_cache(p.exporter, p.there, PAGE, 0), EFAULT);
	FAILS(sci_cache(p.importer, NULL, 1, 0), EFAULT);
	FAILS(sci_cache(p.importer, (void *)-64ul, 128, 0), EFAULT);
	OK(sci_unmap((void *)p.there, PAGE));
	FAILS(sci_cache(p.importer, p.there, LENGTH, 0), EFAULT);
	/* maps of a segment that is gone show private pages */
	OK(segment_remove(p.local));
	WAIT_UNTIL(info_of(p.remote).out_state == SCI_REMOTE_GONE);
	OK(sci_cache(p.importer, (char *)p.there + PAGE, PAGE, SCI_CACHE_DROP));
	OK(sci_cache(p.exporter, p.here, PAGE, SCI_CACHE_DROP));
}

TEST(all_nodes_connect_to_all_nodes)
{
	for (unsigned int i = 0; i < adapters(); i++) {
		int exporter = OK(adapter_open(i));
		int local = OK(segment_exported(exporter, 1, PAGE));
		volatile uint32_t *here = MAP(local, 0, PAGE, RW);

		for (unsigned int j = 0; j < adapters(); j++) {
			int importer = OK(adapter_open(j));
			int fd = OK(remote_connect(importer, adapter_node(i),
						   1));
			volatile uint32_t *there = MAP(fd, 0, PAGE, RW);

			there[j] = 100 + j;
			OK(sci_flush(fd));
			EQ(here[j], 100 + j);
			EQ(EV(local, SCI_EV_CONNECT).node, adapter_node(j));
			OK(sci_unmap(there, PAGE));
			close(fd);
			EQ(EV(local, SCI_EV_DISCONNECT).node, adapter_node(j));
			close(importer);
		}
		OK(sci_unmap(here, PAGE));
		close(local);
		close(exporter);
	}
}

TEST(lengths_are_told)
{
	const size_t lengths[] = { 1, PAGE - 1, PAGE, PAGE + 1, 100000 };
	int fd = OK(adapter_open(0));

	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++) {
		int local = OK(segment_exported(fd, 1, lengths[i]));
		struct sci_ioc_connect c = {
			.size = sizeof(c), .node = adapter_node(0), .id = 1,
			.timeout_ms = TEST_WAIT_MS,
		};

		OK(xioctl(fd, SCI_IOC_CONNECT, &c));
		EQ(c.out_length, lengths[i]);
		EQ(info_of(c.out_fd).out_length, lengths[i]);
		close(c.out_fd);
		close(local);
	}
}

TEST(an_import_knows_what_it_is)
{
	struct pair p = PAIR(LENGTH);
	struct sci_ioc_remote_info info = info_of(p.remote);

	EQ(info.out_state, SCI_REMOTE_CONNECTED);
	EQ(info.out_status, 0);
	EQ(info.out_node, p.node);
	EQ(info.out_id, p.id);
	EQ(info.out_access, 6);
	EQ(info.out_length, LENGTH);
}

TEST(what_is_not_exported_is_ENOENT)
{
	int fd = OK(adapter_open(0));
	__u32 node = adapter_node(0);
	int local;

	FAILS(remote_connect(fd, node, 1), ENOENT);
	local = OK(segment_create(fd, 1, PAGE));
	FAILS(remote_connect(fd, node, 1), ENOENT);
	OK(segment_share(local));
	FAILS(remote_connect(fd, node, 1), ENOENT);
	OK(segment_export(local));
	close(OK(remote_connect(fd, node, 1)));
	OK(segment_unexport(local, SCI_UNEXPORT_HOW_QUIET));
	FAILS(remote_connect(fd, node, 1), ENOENT);
	OK(segment_export(local));
	close(OK(remote_connect(fd, node, 1)));
	close(local);
	FAILS(remote_connect(fd, node, 1), ENOENT);
}

TEST(what_is_no_node_is_EINVAL)
{
	const __u32 nodes[] = {
		0, 1, 2, 3, 5, 7, 0xffff, 0x10004, 0x20000, 0xfffffffc,
	};
	int fd = OK(adapter_open(0));

	for (unsigned int i = 0; i < ARRAY_SIZE(nodes); i++) {
		FAILS(remote_connect(fd, nodes[i], 1), EINVAL);
		FAILS(remote_connect_as(fd, nodes[i], 1, SCI_CONNECT_ASYNC, 1),
		      EINVAL);
	}
}

TEST(a_node_that_is_not_there_is_EHOSTUNREACH)
{
	int fd = OK(adapter_open(0));

	FAILS_EITHER(remote_connect_as(fd, NODE_NOBODY, 1, 0, 200),
		     EHOSTUNREACH, ETIMEDOUT);
	FAILS_EITHER(remote_connect_as(fd, NODE_NOBODY, 1, 0, 0), EHOSTUNREACH,
		     ETIMEDOUT);
}

TEST(a_node_that_answers_has_time_to)
{
	struct pair p = PAIR(PAGE);

	close(OK(remote_connect_as(p.importer, p.node, p.id, 0, 0)));
	FAILS(remote_connect_as(p.importer, p.node, p.id + 1, 0, 0), ENOENT);
	close(OK(remote_connect_as(p.importer, p.node, p.id, 0,
				   SCI_TIMEOUT_INFINITE)));
}

/* ---- asynchronous connects ---- */

TEST(an_event_tells_that_it_is_connected)
{
	struct pair p = PAIR(LENGTH);
	int fd = OK(remote_connect_as(p.importer, p.node, p.id,
				      SCI_CONNECT_ASYNC, TEST_WAIT_MS));
	struct sci_ev_record ev = EV(fd, SCI_EV_CONNECT);

	EQ(ev.status, 0);
	EQ(ev.node, p.node);
	EQ(info_of(fd).out_state, SCI_REMOTE_CONNECTED);
	EQ(info_of(fd).out_length, LENGTH);
	EV(p.local, SCI_EV_CONNECT);
	MAP(fd, 0, LENGTH, RW);
}

TEST(a_synchronous_connect_has_no_event)
{
	struct pair p = PAIR(LENGTH);
	struct sci_ioc_connect c = {
		.size = sizeof(c), .node = p.node, .id = p.id,
		.timeout_ms = TEST_WAIT_MS,
	};

	OK(xioctl(p.importer, SCI_IOC_CONNECT, &c));
	NO_EV(c.out_fd);
}

TEST(an_event_tells_that_it_is_refused)
{
	int fd = OK(adapter_open(0));
	int remote = OK(remote_connect_as(fd, adapter_node(0), 1,
					  SCI_CONNECT_ASYNC, TEST_WAIT_MS));

	EQ(EV(remote, SCI_EV_CONNECT).status, -ENOENT);
	EQ(info_of(remote).out_state, SCI_REMOTE_GONE);
	EQ(info_of(remote).out_status, -ENOENT);
	FAILS(sci_map(remote, 0, PAGE, RW), ENOTCONN);
	FAILS(sci_flush(remote), ENOTCONN);
}

TEST(an_event_tells_that_nobody_answers)
{
	int fd = OK(adapter_open(0));
	int remote = remote_connect_as(fd, NODE_NOBODY, 1, SCI_CONNECT_ASYNC,
				       100);
	int status;

	/* the connect may fail at once, if the driver knows already */
	if (remote == -EHOSTUNREACH)
		return;
	OK(remote);
	status = EV(remote, SCI_EV_CONNECT).status;
	CHECK(status == -EHOSTUNREACH || status == -ETIMEDOUT);
	EQ(info_of(remote).out_status, status);
}

TEST(closing_gives_it_up)
{
	struct pair p = PAIR(PAGE);

	for (unsigned int i = 0; i < 100; i++)
		close(OK(remote_connect_as(p.importer, p.node, p.id,
					   SCI_CONNECT_ASYNC,
					   SCI_TIMEOUT_INFINITE)));
	for (unsigned int i = 0; i < 20; i++) {
		int fd = remote_connect_as(p.importer, NODE_NOBODY, p.id,
					   SCI_CONNECT_ASYNC,
					   SCI_TIMEOUT_INFINITE);

		if (fd != -EHOSTUNREACH)
			close(OK(fd));
	}
	WAIT_UNTIL(importers(p.local) == 1);
}

TEST(many_connects_at_once)
{
	enum { MANY = 200 };
	struct pair p = PAIR(PAGE);
	int fd[MANY];

	for (unsigned int i = 0; i < MANY; i++)
		fd[i] = OK(remote_connect_as(p.importer, p.node,
					     p.id + (i % 3 == 0 ? 1 : 0),
					     SCI_CONNECT_ASYNC, TEST_WAIT_MS));
	for (unsigned int i = 0; i < MANY; i++)
		EQ(EV(fd[i], SCI_EV_CONNECT).status, i % 3 ? 0 : -ENOENT);
	for (unsigned int i = 0; i < MANY; i++)
		close(fd[i]);
	WAIT_UNTIL(importers(p.local) == 1);
}

/* ---- maps ---- */

TEST(offsets_select_pages)
{
	struct pair p = PAIR(LENGTH);
	volatile uint32_t *third = MAP(p.remote, 2 * PAGE, PAGE, RW);
	volatile uint32_t *rest = MAP(p.remote, PAGE, 3 * PAGE, RW);

	third[3] = 0x1234;
	OK(sci_flush(p.remote));
	EQ(WORD(p.here, 2 * PAGE / 4 + 3), 0x1234);
	EQ(WORD(rest, PAGE / 4 + 3), 0x1234);
	EQ(WORD(p.there, 2 * PAGE / 4 + 3), 0x1234);
}

TEST(maps_end_where_the_segment_does)
{
	struct pair p = PAIR(LENGTH);

	FAILS(sci_map(p.remote, 0, LENGTH + PAGE, RW), EINVAL);
	FAILS(sci_map(p.remote, LENGTH, PAGE, RW), EINVAL);
	FAILS(sci_map(p.remote, PAGE, LENGTH, RW), EINVAL);
	FAILS_SOMEHOW(sci_map(p.remote, 1ull << 62, PAGE, RW));
	FAILS_SOMEHOW(sci_map(p.remote, -(__u64)PAGE, 2 * PAGE, RW));
	FAILS(sci_map(p.remote, 16, PAGE, RW), EINVAL);
}

TEST(maps_are_shared_and_not_executable)
{
	struct pair p = PAIR(LENGTH);

	FAILS(sci_map_as(p.remote, 0, PAGE, RW, MAP_PRIVATE), EINVAL);
	FAILS(sci_map_as(p.remote, 0, PAGE, PROT_READ, MAP_PRIVATE), EINVAL);
	FAILS(sci_map(p.remote, 0, PAGE, PROT_READ | PROT_EXEC), EINVAL);
	FAILS(SYS(mprotect((void *)p.there, PAGE, PROT_READ | PROT_EXEC)),
	      EACCES);
}

TEST(maps_do_not_grow_but_move)
{
	struct pair p = PAIR(LENGTH);
	void *map = (void *)MAP(p.remote, 0, PAGE, RW);
	void *place = user_memory(PAGE);

	WORD(p.here, 0) = 17;
	FAILS_SOMEHOW(SYS(mremap(map, PAGE, 2 * PAGE, MREMAP_MAYMOVE)));
	CHECK(mremap(map, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place) ==
	      place);
	EQ(WORD(place, 0), 17);
}

TEST(a_map_keeps_nothing)
{
	struct pair p = PAIR(LENGTH);

	fill(p.there, LENGTH, 3);
	OK(sci_flush(p.remote));
	close(p.remote);
	/* from now on the map has private pages */
	fill(p.there, LENGTH, 4);
	OK(sci_flush(p.importer));
	CHECK(filled(p.here, LENGTH, 3));
	EV(p.local, SCI_EV_DISCONNECT);
	EQ(importers(p.local), 0);
	OK(sci_unmap(p.there + PAGE / 4, PAGE));
	p.there[0] = 5;
	EQ(p.there[0], 5);
}

TEST(the_kernel_reads_and_writes_maps)
{
	struct pair p = PAIR(LENGTH);
	int fds[2];

	OK(SYS(pipe2(fds, O_CLOEXEC)));
	EQ(SYS(write(fds[1], "hello", 5)), 5);
	EQ(SYS(read(fds[0], (void *)p.there, 5)), 5);
	OK(sci_flush(p.remote));
	CHECK(!memcmp((void *)p.here, "hello", 5));
	EQ(SYS(write(fds[1], (void *)p.there, 5)), 5);
}

/* ---- many importers ---- */

struct crowd {
	__u32 node, id;
};

static void one_of_many(struct peer *self, void *arg)
{
	unsigned int place = (unsigned int)(uintptr_t)arg;
	volatile uint32_t *there;
	struct crowd c;
	int fd;

	c = PEER_GET(self, struct crowd);
	fd = OK(remote_connect(OK(adapter_open(place % adapters())), c.node,
			       c.id));
	there = MAP(fd, 0, LENGTH, RW);
	there[place] = 1000 + place;
	OK(sci_flush(fd));
	peer_send(self, "stored");
	peer_expect(self, "leave");
}

TEST(several_importers)
{
	enum { MANY = 12 };
	struct peer *peer[MANY];
	struct pair p;

	for (unsigned int i = 0; i < MANY; i++)
		peer[i] = peer_spawn(one_of_many, (void *)(uintptr_t)i);
	p = PAIR_EXPORT(LENGTH);
	for (unsigned int i = 0; i < MANY; i++)
		PEER_PUT(peer[i], ((struct crowd){ p.node, p.id }));
	for (unsigned int i = 0; i < MANY; i++)
		peer_expect(peer[i], "stored");
	EQ(importers(p.local), MANY);
	for (unsigned int i = 0; i < MANY; i++) {
		EQ(p.here[i], 1000 + i);
		EV(p.local, SCI_EV_CONNECT);
	}
	for (unsigned int i = 0; i < MANY; i++) {
		peer_send(peer[i], "leave");
		peer_join(peer[i]);
	}
	WAIT_UNTIL(importers(p.local) == 0);
}

TEST(one_process_imports_often)
{
	enum { OFTEN = 32 };
	struct pair p = PAIR(LENGTH);
	volatile uint32_t *there[OFTEN];
	int fd[OFTEN];

	for (unsigned int i = 0; i < OFTEN; i++) {
		fd[i] = OK(remote_connect(p.importer, p.node, p.id));
		there[i] = MAP(fd[i], 0, LENGTH, RW);
	}
	EQ(importers(p.local), OFTEN + 1);
	there[7][7] = 7;
	OK(sci_flush(fd[7]));
	for (unsigned int i = 0; i < OFTEN; i++)
		EQ(there[i][7], 7);
	for (unsigned int i = 0; i < OFTEN; i += 2) {
		OK(sci_unmap(there[i], LENGTH));
		close(fd[i]);
	}
	for (unsigned int i = 1; i < OFTEN; i += 2)
		EQ(there[i][7], 7);
	WAIT_UNTIL(importers(p.local) == OFTEN / 2 + 1);
}

/* ---- descriptors in other processes ---- */

TEST(a_child_keeps_the_import)
{
	struct pair p = PAIR(LENGTH);
	int fds[2];
	pid_t pid;
	char byte;

	OK(SYS(pipe2(fds, O_CLOEXEC)));
	pid = ksft_fork();
	if (pid == 0) {
		close(fds[1]);
		if (read(fds[0], &byte, 1) != 0)
			_exit(1);
		p.there[1] = 5;
		_exit(sci_flush(p.remote) != 0);
	}
	OK(sci_unmap(p.there, LENGTH));
	close(p.remote);
	EQ(importers(p.local), 1);
	CHECK(!readable(p.local, 0));
	close(fds[1]);
	EQ(ksft_wait(pid), 0);
	EQ(p.here[1], 5);
	WAIT_UNTIL(importers(p.local) == 0);
}

static void become_another_program(struct peer *self, void *arg)
{
	struct pair p;

	(void)arg;
	p = PEER_GET(self, struct pair);
	PAIR_IMPORT(&p);
	peer_send(self, "connected");
	peer_expect(self, "exec");
	peer_exec(self);
}

TEST(exec_closes)
{
	struct peer *peer = peer_spawn(become_another_program, NULL);
	struct pair p = PAIR_EXPORT(LENGTH);

	PEER_PUT(peer, p);
	peer_expect(peer, "connected");
	EQ(importers(p.local), 1);
	peer_send(peer, "exec");
	peer_expect(peer, "hello");
	/* the process is alive, but exec has closed the descriptor */
	WAIT_UNTIL(importers(p.local) == 0);
	EV(p.local, SCI_EV_CONNECT);
	CHECK(readable(p.local, TEST_WAIT_MS));
	peer_send(peer, "bye");
	peer_join(peer);
}

static void take_an_import(struct peer *self, void *arg)
{
	int fd = peer_get_fd(self);
	volatile uint32_t *there = MAP(fd, 0, LENGTH, RW);

	(void)arg;
	there[2] = 6;
	OK(sci_flush(fd));
	peer_send(self, "stored");
	peer_expect(self, "end");
}

TEST(an_import_goes_to_another_process)
{
	struct peer *peer = peer_spawn(take_an_import, NULL);
	struct pair p = PAIR(LENGTH);

	peer_put_fd(peer, p.remote);
	OK(sci_unmap(p.there, LENGTH));
	close(p.remote);
	peer_expect(peer, "stored");
	EQ(p.here[2], 6);
	EQ(importers(p.local), 1);
	peer_send(peer, "end");
	peer_join(peer);
	WAIT_UNTIL(importers(p.local) == 0);
}

/* ---- many threads ---- */

static struct pair shared;
static _Atomic bool stop;

static void *connect_and_leave(void *arg)
{
	unsigned int *rounds = arg;

	while (!atomic_load(&stop)) {
		int fd = OK(remote_connect(shared.importer, shared.node,
					   shared.id));
		volatile uint32_t *p = MAP(fd, 0, LENGTH, RW);

		p[0] = 1;
		close(fd);
		OK(sci_unmap(p, LENGTH));
		if (++*rounds == 50)
			break;
	}
	return NULL;
}

TEST(threads_connect_at_once)
{
	unsigned int rounds[4] = { 0 };
	pthread_t thread[4];

	shared = PAIR(LENGTH);
	for (unsigned int i = 0; i < ARRAY_SIZE(thread); i++)
		EQ(pthread_create(&thread[i], NULL, connect_and_leave,
				  &rounds[i]), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(thread); i++)
		EQ(pthread_join(thread[i], NULL), 0);
	WAIT_UNTIL(importers(shared.local) == 1);
}
