// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test local segments: memory, ids, states, maps, attached segments, and their ends. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sci_test.h"

#define NOBODY		65534
#define TOP_ID		0xffffffffu

static int adapter;

static void begin(void)
{
	adapter = OK(adapter_open(0));
}

static struct sci_ioc_segment_info info_of(int fd)
{
	struct sci_ioc_segment_info info;

	OK(segment_info(fd, &info));
	return info;
}

static bool listed(__u32 id)
{
	return sysfs_exists(0, "segment%u", id);
}

static int create_on_node(int node)
{
	struct sci_ioc_segment_create c = {
		.size = sizeof(c), .flags = SCI_SEGMENT_PRIVATE,
		.numa_node = node, .length = PAGE, .mode = 0600,
	};
	int ret = xioctl(adapter, SCI_IOC_SEGMENT_CREATE, &c);

	return ret < 0 ? ret : c.out_fd;
}

/* ---- memory ---- */

TEST(memory_is_zeroed)
{
	const size_t length = 64 * PAGE;

	begin();
	for (unsigned int i = 0; i < 8; i++) {
		int fd = OK(segment_private(adapter, length));
		volatile void *p = MAP(fd, 0, length, RW);

		CHECK(all_zero(p, length));
		fill(p, length, i);
		OK(sci_unmap(p, length));
		close(fd);
	}
}

TEST(lengths_are_exact_and_maps_whole_pages)
{
	const size_t lengths[] = {
		1, 2, PAGE - 1, PAGE, PAGE + 1, 65536, 65537, 1 << 20, (4 << 20) - 1,
	};

	begin();
	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++) {
		size_t whole = (lengths[i] + PAGE - 1) & ~(PAGE - 1);
		int fd = OK(segment_create(adapter, 1, lengths[i]));
		volatile void *p;

		EQ(info_of(fd).out_length, lengths[i]);
		EQ(sysfs_number(0, "segment1/size"), lengths[i]);
		p = MAP(fd, 0, lengths[i], RW);
		fill(p, whole, i);
		CHECK(filled(p, whole, i));
		OK(sci_unmap(p, whole));
		FAILS(sci_map(fd, 0, whole + 1, RW), EINVAL);
		FAILS(sci_map(fd, whole, PAGE, RW), EINVAL);
		close(fd);
	}
}

TEST(lengths_that_can_not_be)
{
	struct sci_ioc_query q;

	begin();
	OK(adapter_query(adapter, &q));
	FAILS(segment_create(adapter, 1, 0), EINVAL);
	FAILS(segment_create(adapter, 1, q.out_max_segment + 1), EINVAL);
	FAILS(segment_create(adapter, 1, ~0ull), EINVAL);
	FAILS(segment_create(adapter, 1, ~0ull - 4094), EINVAL);
	FAILS(segment_create(adapter, 1, 1ull << 63), EINVAL);
	FAILS(segment_create(adapter, 1, (1ull << 32) * PAGE), EINVAL);
	CHECK(!listed(1));
}

TEST(the_limit_on_locked_memory_holds_for_users)
{
	struct rlimit limit = { 64 << 10, 64 << 10 };
	struct sci_ioc_query q;
	int first, second;

	NEED_ROOT();
	begin();
	OK(adapter_query(adapter, &q));
	OK(SYS(setrlimit(RLIMIT_MEMLOCK, &limit)));
	peer_become(NOBODY, NOBODY);

	FAILS(segment_private(adapter, q.out_max_segment), ENOMEM);
	FAILS(segment_private(adapter, 65537), ENOMEM);
	first = OK(segment_private(adapter, 32 << 10));
	second = OK(segment_private(adapter, 32 << 10));
	FAILS(segment_private(adapter, 1), ENOMEM);
	close(first);
	first = OK(segment_private(adapter, 32 << 10));
	FAILS(segment_private(adapter, 1), ENOMEM);
	close(second);
	close(first);
	first = OK(segment_private(adapter, 64 << 10));
	close(first);
}

static atomic_bool enough;

static void *ask_for_too_much(void *arg)
{
	while (!atomic_load(&enough))
		FAILS(segment_private(adapter, *(__u64 *)arg), ENOMEM);
	return NULL;
}

/* A request that is refused does not make those of other threads fail. */
TEST(what_is_refused_is_never_charged)
{
	struct rlimit limit = { 64 << 10, 64 << 10 };
	struct sci_ioc_query q;
	pthread_t thread;

	NEED_ROOT();
	begin();
	OK(adapter_query(adapter, &q));
	OK(SYS(setrlimit(RLIMIT_MEMLOCK, &limit)));
	peer_become(NOBODY, NOBODY);
	EQ(pthread_create(&thread, NULL, ask_for_too_much, &q.out_max_segment), 0);
	for (unsigned int i = 0; i < 20000; i++)
		close(OK(segment_private(adapter, PAGE)));
	atomic_store(&enough, true);
	EQ(pthread_join(thread, NULL), 0);
}

/* Memory stays charged while it is mapped, even without the descriptor. */
TEST(a_map_stays_charged)
{
	struct rlimit limit = { 64 << 10, 64 << 10 };
	volatile void *p;
	int fd;

	NEED_ROOT();
	begin();
	OK(SYS(setrlimit(RLIMIT_MEMLOCK, &limit)));
	peer_become(NOBODY, NOBODY);
	fd = OK(segment_private(adapter, 64 << 10));
	p = MAP(fd, 0, 64 << 10, RW);
	close(fd);
	FAILS(segment_private(adapter, 1), ENOMEM);
	OK(sci_unmap(p, 64 << 10));
	fd = OK(segment_private(adapter, 64 << 10));
	close(fd);
}

/* More segments than the export table of a card has entries. */
#define UNEXPORTED	1100u

/* Unexported segments without importers occupy no entry of the export table. */
TEST(unexported_segments_take_no_room)
{
	struct rlimit limit = { 2 * UNEXPORTED, 2 * UNEXPORTED };
	int remote, used, fd;

	begin();
	OK(SYS(setrlimit(RLIMIT_NOFILE, &limit)));
	for (__u32 id = 1; id <= UNEXPORTED; id++) {
		fd = OK(segment_exported(adapter, id, PAGE));
		remote = OK(remote_connect(adapter, adapter_node(0), id));
		OK(segment_unexport(fd, id % 2 ? SCI_UNEXPORT_HOW_QUIET :
						 SCI_UNEXPORT_HOW_NOTIFY));
		close(remote);
	}
	used = OK(segment_exported(adapter, UNEXPORTED + 1, PAGE));
	OK(segment_unexport(used, SCI_UNEXPORT_HOW_QUIET));
	OK(segment_export(used));
	close(OK(remote_connect(adapter, adapter_node(0), UNEXPORTED + 1)));
}

#define SHARE	(48u << 10)

/* Create a segment, pass its descriptor to the parent, and exit. */
static void create_for_another(struct peer *self, void *arg)
{
	struct rlimit limit = { 64 << 10, 64 << 10 };
	int ret;

	(void)arg;
	OK(SYS(setrlimit(RLIMIT_MEMLOCK, &limit)));
	peer_become(NOBODY, NOBODY);
	peer_expect(self, "create");
	adapter = OK(adapter_open(0));
	ret = segment_private(adapter, SHARE);
	PEER_PUT(self, ret);
	if (ret >= 0)
		peer_put_fd(self, ret);
}

static int created_by(struct peer *p)
{
	int ret, fd = -1;

	peer_send(p, "create");
	ret = PEER_GET(p, int);
	if (ret >= 0)
		fd = peer_get_fd(p);
	peer_join(p);
	return ret < 0 ? ret : fd;
}

/* The limit applies to the user: the share of an ended process stays charged. */
TEST(memory_that_is_passed_on_stays_charged)
{
	struct peer *p[3];
	int first;

	NEED_ROOT();
	for (unsigned int i = 0; i < ARRAY_SIZE(p); i++)
		p[i] = peer_spawn(create_for_another, NULL);
	first = OK(created_by(p[0]));
	FAILS(created_by(p[1]), ENOMEM);
	close(first);
	close(OK(created_by(p[2])));
}

TEST(numa_nodes)
{
	begin();
	close(OK(create_on_node(-1)));
	close(OK(create_on_node(0)));
	FAILS(create_on_node(-2), EINVAL);
	FAILS(create_on_node(1 << 20), EINVAL);
	FAILS(create_on_node(0x7fffffff), EINVAL);
	FAILS(create_on_node(-0x7fffffff), EINVAL);
}

TEST(memory_is_on_the_numa_node_asked_for)
{
	const unsigned int mpol_node_of_addr = 1 | 2;

	if (access("/sys/devices/system/node/node1", F_OK))
		SKIP("one NUMA node");
	begin();
	for (int node = 0; node < 2; node++) {
		int fd = OK(create_on_node(node)), got = -1;
		volatile uint32_t *p = MAP(fd, 0, PAGE, RW);

		p[0] = 1;
		if (syscall(SYS_get_mempolicy, &got, NULL, 0, p,
			    mpol_node_of_addr))
			SKIP("get_mempolicy: %s", ksft_errname(errno));
		EQ(got, node);
		OK(sci_unmap(p, PAGE));
		close(fd);
	}
}

/* ---- ids ---- */

TEST(an_id_is_there_once_per_node)
{
	int first, other;

	NEED_ADAPTERS(2);
	begin();
	other = OK(adapter_open(1));
	first = OK(segment_create(adapter, 5, PAGE));
	FAILS(segment_create(adapter, 5, PAGE), EEXIST);
	close(OK(segment_create(other, 5, PAGE)));
	close(first);
	close(OK(segment_create(adapter, 5, PAGE)));
}

TEST(every_number_is_an_id)
{
	const __u32 ids[] = { 0, 1, 0x7fffffff, 0x80000000, TOP_ID };

	begin();
	for (unsigned int i = 0; i < ARRAY_SIZE(ids); i++) {
		int fd = OK(segment_create(adapter, ids[i], PAGE));

		EQ(info_of(fd).out_id, ids[i]);
		CHECK(listed(ids[i]));
		close(fd);
		CHECK(!listed(ids[i]));
	}
}

TEST(an_automatic_id_is_the_first_free_one)
{
	int taken, fd;

	begin();
	taken = OK(segment_create(adapter, 7, PAGE));
	fd = OK(segment_create_as(adapter, 6, PAGE, 0600,
				  SCI_SEGMENT_AUTO_ID));
	EQ(info_of(fd).out_id, 6);
	fd = OK(segment_create_as(adapter, 6, PAGE, 0600,
				  SCI_SEGMENT_AUTO_ID));
	EQ(info_of(fd).out_id, 8);
	close(taken);
	fd = OK(segment_create_as(adapter, 6, PAGE, 0600,
				  SCI_SEGMENT_AUTO_ID));
	EQ(info_of(fd).out_id, 7);
}

TEST(automatic_ids_end_somewhere)
{
	begin();
	OK(segment_create_as(adapter, TOP_ID, PAGE, 0600,
			     SCI_SEGMENT_AUTO_ID));
	FAILS(segment_create_as(adapter, TOP_ID, PAGE, 0600,
				SCI_SEGMENT_AUTO_ID), ENOSPC);
}

TEST(modes_are_the_rw_bits)
{
	const __u32 bad[] = { 01, 0100, 010, 0777, 01000, 0100600, 0x80000000 };

	begin();
	for (__u32 mode = 0; mode <= 0666; mode++) {
		int fd;

		if (mode & ~0666u)
			continue;
		fd = OK(segment_create_as(adapter, 1, PAGE, mode, 0));
		EQ(info_of(fd).out_mode, mode);
		close(fd);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++)
		FAILS(segment_create_as(adapter, 1, PAGE, bad[i], 0), EINVAL);
}

TEST(flags_that_contradict_each_other)
{
	const __u32 bad[] = {
		SCI_SEGMENT_UNICAST,
		SCI_SEGMENT_PRIVATE | SCI_SEGMENT_AUTO_ID,
		SCI_SEGMENT_PRIVATE | SCI_SEGMENT_BROADCAST,
	};

	begin();
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++)
		FAILS_EITHER(segment_create_as(adapter, 0, PAGE, 0600, bad[i]),
			     EINVAL, EOPNOTSUPP);
	FAILS(segment_create_as(adapter, 1, PAGE, 0600, SCI_SEGMENT_PRIVATE),
	      EINVAL);
}

TEST(a_private_segment_has_no_name)
{
	int fd;

	begin();
	fd = OK(segment_private(adapter, PAGE));
	EQ(info_of(fd).out_id, 0);
	FAILS(segment_export(fd), EINVAL);
	FAILS(segment_share(fd), EINVAL);
	FAILS(segment_unexport(fd, SCI_UNEXPORT_HOW_QUIET), EINVAL);
	FAILS(remote_connect(adapter, adapter_node(0), 0), ENOENT);
	FAILS(segment_attach(adapter, 0), ENOENT);
	OK(segment_remove(fd));
}

TEST(an_empty_segment_waits_for_memory)
{
	int fd;

	begin();
	NEED_CAP(SCI_CAP_REGISTER);
	fd = OK(segment_create_as(adapter, 1, PAGE, 0600, SCI_SEGMENT_EMPTY));
	FAILS(segment_export(fd), EBUSY);
	FAILS(segment_share(fd), EBUSY);
	FAILS(sci_map(fd, 0, PAGE, RW), EBUSY);
	FAILS(remote_connect(adapter, adapter_node(0), 1), ENOENT);
	EQ(info_of(fd).out_state, 0);
	EQ(info_of(fd).out_length, PAGE);
}

/* An empty segment allocates nothing, so its length may exceed the machine's memory. */
TEST(an_empty_segment_costs_nothing)
{
	struct rlimit limit = { 0, 0 };
	struct sci_ioc_query q;

	NEED_ROOT();
	begin();
	NEED_CAP(SCI_CAP_REGISTER);
	OK(adapter_query(adapter, &q));
	OK(SYS(setrlimit(RLIMIT_MEMLOCK, &limit)));
	peer_become(NOBODY, NOBODY);
	OK(segment_create_as(adapter, 1, q.out_max_segment, 0600,
			     SCI_SEGMENT_EMPTY));
}

TEST(sysfs_lists_a_segment)
{
	int fd;

	begin();
	fd = OK(segment_create_as(adapter, 77, 5000, 0640, 0));
	EQ(sysfs_number(0, "segment77/size"), 5000);
	EQ(sysfs_number(0, "segment77/importers"), 0);
	EQ(sysfs_number(0, "segment77/pid"), getpid());
	CHECK(sysfs_exists(0, "segment77/mode"));
	EQ(sysfs_number(0, "segment77/owner"), geteuid());
	EQ(sysfs_number(0, "segment77/group"), getegid());
	EQ(sysfs_number(0, "segment77/exported"), 0);
	EQ(sysfs_number(0, "segment77/shared"), 0);
	EQ(sysfs_number(0, "segment77/broadcast"), 0);
	CHECK(sysfs_exists(0, "segment77/memory"));
	OK(segment_export(fd));
	EQ(sysfs_number(0, "segment77/exported"), 1);
	close(fd);
	CHECK(!listed(77));
}

/* ---- states ---- */

TEST(export_share_and_back)
{
	int fd;

	begin();
	fd = OK(segment_create(adapter, 1, PAGE));
	EQ(info_of(fd).out_state, 0);
	OK(segment_unexport(fd, SCI_UNEXPORT_HOW_QUIET));
	OK(segment_share(fd));
	EQ(info_of(fd).out_state, SCI_SEGMENT_STATE_SHARED);
	OK(segment_export(fd));
	OK(segment_export(fd));
	EQ(info_of(fd).out_state,
	   SCI_SEGMENT_STATE_SHARED | SCI_SEGMENT_STATE_EXPORTED);
	OK(segment_unexport(fd, SCI_UNEXPORT_HOW_FORCE));
	OK(segment_unexport(fd, SCI_UNEXPORT_HOW_NOTIFY));
	EQ(info_of(fd).out_state, SCI_SEGMENT_STATE_SHARED);
	OK(segment_share(fd));
}

TEST(no_such_way_to_unexport)
{
	int fd;

	begin();
	fd = OK(segment_exported(adapter, 1, PAGE));
	FAILS(segment_unexport(fd, 3), EINVAL);
	FAILS(segment_unexport(fd, -1), EINVAL);
	EQ(info_of(fd).out_state, SCI_SEGMENT_STATE_EXPORTED);
}

TEST(what_is_removed_can_not_come_back)
{
	int fd, next;

	begin();
	fd = OK(segment_exported(adapter, 1, PAGE));
	OK(segment_remove(fd));
	OK(segment_remove(fd));
	EQ(info_of(fd).out_state & ~SCI_SEGMENT_STATE_SHARED,
	   SCI_SEGMENT_STATE_REMOVED);
	FAILS(segment_export(fd), ENOTCONN);
	FAILS(segment_share(fd), ENOTCONN);
	FAILS(sci_map(fd, 0, PAGE, RW), ENOTCONN);
	FAILS(remote_connect(adapter, adapter_node(0), 1), ENOENT);
	/* the id is free for another segment, which is not affected */
	next = OK(segment_exported(adapter, 1, 2 * PAGE));
	close(fd);
	CHECK(listed(1));
	close(OK(remote_connect(adapter, adapter_node(0), 1)));
	close(next);
}

TEST(local_maps_stay_when_a_segment_is_removed)
{
	volatile void *p;
	int fd;

	begin();
	fd = OK(segment_exported(adapter, 1, 4 * PAGE));
	p = MAP(fd, 0, 4 * PAGE, RW);
	fill(p, 2 * PAGE, 1);
	OK(segment_remove(fd));
	CHECK(!listed(1));
	CHECK(filled(p, 2 * PAGE, 1));
	/* also pages that were not touched before the removal */
	fill(p, 4 * PAGE, 2);
	close(fd);
	CHECK(filled(p, 4 * PAGE, 2));
}

/* ---- maps ---- */

TEST(offsets_select_pages)
{
	volatile uint32_t *all, *third;
	int fd;

	begin();
	fd = OK(segment_private(adapter, 4 * PAGE));
	all = MAP(fd, 0, 4 * PAGE, RW);
	third = MAP(fd, 2 * PAGE, PAGE, RW);
	third[1] = 0x1234;
	EQ(WORD(all, (2 * PAGE) / 4 + 1), 0x1234);
	WORD(all, 3 * PAGE / 4 - 1) = 0x5678;
	EQ(third[PAGE / 4 - 1], 0x5678);
}

TEST(maps_end_where_the_segment_does)
{
	int fd;

	begin();
	fd = OK(segment_private(adapter, 4 * PAGE));
	FAILS(sci_map(fd, 0, 5 * PAGE, RW), EINVAL);
	FAILS(sci_map(fd, PAGE, 4 * PAGE, RW), EINVAL);
	FAILS(sci_map(fd, 4 * PAGE, PAGE, RW), EINVAL);
	FAILS_SOMEHOW(sci_map(fd, 1ull << 62, PAGE, RW));
	FAILS_SOMEHOW(sci_map(fd, -(__u64)PAGE, 2 * PAGE, RW));
	FAILS(sci_map(fd, 100, PAGE, RW), EINVAL);
	FAILS(sci_map(fd, 0, 0, RW), EINVAL);
}

TEST(maps_are_shared_and_not_executable)
{
	void *p;
	int fd;

	begin();
	fd = OK(segment_private(adapter, PAGE));
	FAILS(sci_map_as(fd, 0, PAGE, RW, MAP_PRIVATE), EINVAL);
	FAILS(sci_map_as(fd, 0, PAGE, PROT_READ, MAP_PRIVATE), EINVAL);
	FAILS(sci_map(fd, 0, PAGE, PROT_READ | PROT_EXEC), EINVAL);
	p = (void *)MAP(fd, 0, PAGE, PROT_READ);
	FAILS(SYS(mprotect(p, PAGE, PROT_READ | PROT_EXEC)), EACCES);
	OK(SYS(mprotect(p, PAGE, RW)));
	*(volatile char *)p = 1;
}

TEST(maps_do_not_grow_but_move)
{
	void *p, *q, *place;
	int fd;

	begin();
	fd = OK(segment_private(adapter, 4 * PAGE));
	p = (void *)MAP(fd, 0, 2 * PAGE, RW);
	fill(p, 2 * PAGE, 1);
	FAILS_SOMEHOW(SYS(mremap(p, 2 * PAGE, 8 * PAGE, MREMAP_MAYMOVE)));
	place = user_memory(2 * PAGE);
	q = mremap(p, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		   place);
	CHECK(q == place);
	CHECK(filled(q, 2 * PAGE, 1));
	p = mremap(q, 2 * PAGE, PAGE, 0);
	CHECK(p == q);
	CHECK(filled(p, PAGE, 1));
}

TEST(a_map_may_lose_its_middle)
{
	volatile char *p;
	int fd;

	begin();
	fd = OK(segment_exported(adapter, 1, 4 * PAGE));
	p = MAP(fd, 0, 4 * PAGE, RW);
	fill(p, 4 * PAGE, 1);
	OK(sci_unmap(p + PAGE, PAGE));
	p[0] = 1;
	p[2 * PAGE] = 2;
	close(fd);
	OK(sci_unmap(p, PAGE));
	p[3 * PAGE] = 3;
	EQ(p[2 * PAGE], 2);
	OK(sci_unmap(p + 2 * PAGE, 2 * PAGE));
}

TEST(advice_does_not_lose_data)
{
	/* advice is accepted and refused as for file memory, except for memory of a pool */
	const struct {
		int advice;
		bool known;	/* the kernel implements it in any configuration */
		bool taken;
	} tries[] = {
		{ MADV_DONTNEED, true, true },
		{ MADV_WILLNEED, true, true },
		{ MADV_COLD, true, true },
		{ MADV_PAGEOUT, true, true },
		{ MADV_REMOVE, true, false },
		{ MADV_FREE, true, false },
		{ MADV_HUGEPAGE, false, true },
		{ MADV_MERGEABLE, false, true },
		{ MADV_POPULATE_READ, true, true },
		{ MADV_POPULATE_WRITE, true, true },
	};
	void *p;
	int fd;

	begin();
	fd = OK(segment_private(adapter, 4 * PAGE));
	p = (void *)MAP(fd, 0, 4 * PAGE, RW);
	fill(p, 4 * PAGE, 1);
	for (unsigned int i = 0; i < ARRAY_SIZE(tries); i++) {
		long ret = SYS(madvise(p, 4 * PAGE, tries[i].advice));

		CHECK(filled(p, 4 * PAGE, 1));
		if (!ret == tries[i].taken || adapter_can(0, SCI_CAP_SHARED))
			continue;
		if (tries[i].known || ret != -EINVAL)
			FAIL("advice %d: %s", tries[i].advice,
			     ksft_errname((int)-ret));
	}
}

TEST(the_kernel_reads_and_writes_maps)
{
	volatile char *p;
	int fds[2], fd;

	begin();
	fd = OK(segment_private(adapter, PAGE));
	p = MAP(fd, 0, PAGE, RW);
	OK(SYS(pipe2(fds, O_CLOEXEC)));
	EQ(SYS(write(fds[1], "hello", 5)), 5);
	EQ(SYS(read(fds[0], (void *)(p + 3), 5)), 5);
	CHECK(!memcmp((void *)(p + 3), "hello", 5));
	EQ(SYS(write(fds[1], (void *)(p + 4), 4)), 4);
}

TEST(debuggers_read_and_write_maps)
{
	volatile char *p, *constant;
	char text[100];
	off64_t at;
	int fd, mem;

	begin();
	fd = OK(segment_private(adapter, 2 * PAGE));
	p = MAP(fd, 0, 2 * PAGE, RW);
	at = (off64_t)(uintptr_t)p + PAGE;
	constant = MAP(fd, 0, PAGE, PROT_READ);
	mem = OK(SYS(open("/proc/self/mem", O_RDWR | O_CLOEXEC)));
	fill(p, 2 * PAGE, 9);
	EQ(SYS(pread64(mem, text, 100, at - 50)), 100);
	CHECK(!memcmp(text, (char *)p + PAGE - 50, 100));
	EQ(SYS(pwrite64(mem, "hello", 5, at - 2)), 5);
	CHECK(!memcmp((char *)p + PAGE - 2, "hello", 5));
	EQ(SYS(pread64(mem, text, 1, (off64_t)(uintptr_t)constant + PAGE - 1)), 1);
	EQ(text[0], 'e');
	FAILS(SYS(pwrite64(mem, "h", 1, (off64_t)(uintptr_t)constant)), EIO);
}

TEST(a_map_keeps_the_memory_and_no_more)
{
	volatile void *p;
	int fd;

	begin();
	fd = OK(segment_exported(adapter, 1, 2 * PAGE));
	p = MAP(fd, 0, 2 * PAGE, RW);
	fill(p, PAGE, 9);
	close(fd);
	CHECK(!listed(1));
	FAILS(remote_connect(adapter, adapter_node(0), 1), ENOENT);
	/* the id is free, the memory is still in use */
	fd = OK(segment_exported(adapter, 1, 2 * PAGE));
	fill(MAP(fd, 0, 2 * PAGE, RW), 2 * PAGE, 10);
	CHECK(filled(p, PAGE, 9));
	CHECK(all_zero((char *)p + PAGE, PAGE));
}

TEST(a_child_shares_its_parents_map)
{
	volatile uint32_t *p;
	pid_t pid;
	int fd;

	begin();
	fd = OK(segment_private(adapter, PAGE));
	p = MAP(fd, 0, PAGE, RW);
	p[0] = 1;
	pid = ksft_fork();
	if (pid == 0) {
		p[1] = p[0] + 1;
		_exit(0);
	}
	EQ(ksft_wait(pid), 0);
	EQ(p[1], 2);
}

static void hold_a_map(struct peer *self, void *arg)
{
	int fd = peer_get_fd(self);
	volatile uint32_t *p = MAP(fd, 0, PAGE, RW);

	(void)arg;
	peer_send(self, "mapped");
	peer_expect(self, "check");
	EQ(p[0], 42);
	peer_expect(self, "close");
	close(fd);
	peer_send(self, "closed");
	p[0] = 43;
	peer_expect(self, "end");
}

TEST(a_descriptor_goes_to_another_process)
{
	struct peer *p = peer_spawn(hold_a_map, NULL);
	volatile uint32_t *w;
	int fd;

	begin();
	fd = OK(segment_create(adapter, 1, PAGE));
	w = MAP(fd, 0, PAGE, RW);
	peer_put_fd(p, fd);
	close(fd);
	peer_expect(p, "mapped");
	w[0] = 42;
	OK(sci_unmap(w, PAGE));
	peer_send(p, "check");
	CHECK(listed(1));
	peer_send(p, "close");
	peer_expect(p, "closed");
	CHECK(!listed(1));
	peer_send(p, "end");
	peer_join(p);
}

/* ---- attached segments ---- */

TEST(what_is_shared_can_be_attached)
{
	struct sci_ioc_segment_attach a = { .size = sizeof(a), .id = 1 };
	volatile void *p, *q;
	int fd;

	begin();
	fd = OK(segment_create(adapter, 1, 5000));
	FAILS(segment_attach(adapter, 1), EACCES);
	FAILS(segment_attach(adapter, 2), ENOENT);
	OK(segment_share(fd));
	OK(xioctl(adapter, SCI_IOC_SEGMENT_ATTACH, &a));
	EQ(a.out_length, 5000);
	EQ(info_of(a.out_fd).out_length, 5000);
	CHECK(info_of(a.out_fd).out_state & SCI_SEGMENT_STATE_ATTACHED);
	CHECK(!(info_of(fd).out_state & SCI_SEGMENT_STATE_ATTACHED));
	p = MAP(fd, 0, 5000, RW);
	q = MAP(a.out_fd, 0, 5000, RW);
	fill(p, 5000, 1);
	CHECK(filled(q, 5000, 1));
	fill(q, 5000, 2);
	CHECK(filled(p, 5000, 2));
}

TEST(what_is_attached_has_a_creator_for_the_rest)
{
	int fd, mate;

	begin();
	fd = OK(segment_create(adapter, 1, PAGE));
	OK(segment_share(fd));
	mate = OK(segment_attach(adapter, 1));
	FAILS(segment_export(mate), EINVAL);
	FAILS(segment_share(mate), EINVAL);
	FAILS(segment_unexport(mate, SCI_UNEXPORT_HOW_QUIET), EINVAL);
	FAILS(segment_remove(mate), EINVAL);
	FAILS_EITHER(segment_register(mate, user_memory(PAGE), PAGE), EINVAL,
		     EOPNOTSUPP);
	close(mate);
	CHECK(listed(1));
	NO_EV(fd);
}

TEST(attached_processes_are_told_of_a_removal)
{
	volatile uint32_t *p;
	int fd, mate;

	begin();
	fd = OK(segment_create(adapter, 1, PAGE));
	OK(segment_share(fd));
	mate = OK(segment_attach(adapter, 1));
	p = MAP(mate, 0, PAGE, RW);
	NO_EV(mate);
	OK(segment_remove(fd));
	EV(mate, SCI_EV_DISCONNECT);
	NO_EV(mate);
	/* the attached process keeps the memory */
	p[0] = 1;
	EQ(p[0], 1);
	EQ(WORD(MAP(mate, 0, PAGE, RW), 0), 1);
	CHECK(info_of(mate).out_state & SCI_SEGMENT_STATE_REMOVED);
	FAILS(segment_attach(adapter, 1), ENOENT);
}

TEST(attached_processes_are_told_of_a_close)
{
	int fd, mate;

	begin();
	fd = OK(segment_create(adapter, 1, PAGE));
	OK(segment_share(fd));
	mate = OK(segment_attach(adapter, 1));
	close(fd);
	EV(mate, SCI_EV_DISCONNECT);
	CHECK(!listed(1));
	close(OK(segment_create(adapter, 1, PAGE)));
}

static void share_and_die(struct peer *self, void *arg)
{
	int fd;

	(void)arg;
	peer_expect(self, "share");
	fd = OK(segment_create(OK(adapter_open(0)), 1, PAGE));
	OK(segment_share(fd));
	peer_send(self, "shared");
	peer_expect(self, "nothing");
}

TEST(attached_processes_are_told_of_a_death)
{
	struct peer *p = peer_spawn(share_and_die, NULL);
	volatile uint32_t *w;
	int mate;

	begin();
	peer_send(p, "share");
	peer_expect(p, "shared");
	mate = OK(segment_attach(adapter, 1));
	w = MAP(mate, 0, PAGE, RW);
	w[0] = 1;
	peer_kill(p);
	EV(mate, SCI_EV_LOST);
	w[0] = 2;
	EQ(w[0], 2);
}

TEST(many_segments_at_once)
{
	enum { MANY = 512 };
	int fd[MANY];

	begin();
	for (unsigned int i = 0; i < MANY; i++)
		fd[i] = OK(segment_exported(adapter, i, 64));
	for (unsigned int i = 0; i < MANY; i++)
		EQ(info_of(fd[i]).out_id, i);
	for (unsigned int i = 0; i < MANY; i += 2)
		close(fd[i]);
	for (unsigned int i = 1; i < MANY; i += 2)
		OK(segment_remove(fd[i]));
	for (unsigned int i = 0; i < MANY; i++)
		CHECK(!listed(i));
}

/* ---- memory is charged to the control group of its creator ---- */

#define CGROUP		"/sys/fs/cgroup"
#define CGROUP_TEST	CGROUP "/sci_test"
#define CHARGED		(8u << 20)

static long long group_memory(void)
{
	return read_number(CGROUP_TEST "/memory.current");
}

/* Join the control group, then create a segment of @length bytes. */
static void create_in_group(struct peer *self, void *arg)
{
	size_t length = *(size_t *)arg;
	int dev, fd;

	OK(write_text(CGROUP_TEST "/cgroup.procs", "0"));
	dev = OK(adapter_open(0));
	peer_send(self, "ready");
	peer_expect(self, "create");
	fd = segment_private(dev, length);
	peer_send(self, fd < 0 ? "refused" : "created");
	peer_expect(self, "close");
	close(fd);
	close(dev);
	peer_send(self, "closed");
}

static void group_make(void)
{
	NEED_ROOT();
	if (adapter_can(0, SCI_CAP_SHARED))
		SKIP("a pool's memory is not charged");
	write_text(CGROUP "/cgroup.subtree_control", "+memory");
	if (mkdir(CGROUP_TEST, 0755) && errno != EEXIST)
		SKIP("no %s", CGROUP);
	if (access(CGROUP_TEST "/memory.current", R_OK)) {
		rmdir(CGROUP_TEST);
		SKIP("no control groups of memory");
	}
}

TEST(memory_is_charged_to_the_control_group)
{
	size_t length = CHARGED;
	struct peer *peer;
	long long was;

	group_make();
	peer = peer_spawn(create_in_group, &length);
	peer_expect(peer, "ready");
	was = group_memory();
	CHECK(was >= 0);
	peer_send(peer, "create");
	peer_expect(peer, "created");
	CHECK(group_memory() >= was + CHARGED);
	peer_send(peer, "close");
	peer_expect(peer, "closed");
	/* the kernel keeps charges in stock for each CPU */
	WAIT_UNTIL(group_memory() < was + CHARGED / 2);
	peer_join(peer);
	WAIT_UNTIL(!rmdir(CGROUP_TEST));
}

/* At the limit the call fails, or the kernel kills the process. */
TEST(no_more_than_the_control_group_may_have)
{
	char limit[32];
	pid_t pid;
	int status;

	group_make();
	snprintf(limit, sizeof(limit), "%u", CHARGED);
	OK(write_text(CGROUP_TEST "/memory.max", limit));
	pid = ksft_fork();
	if (pid == 0) {
		int dev, ret;

		OK(write_text(CGROUP_TEST "/cgroup.procs", "0"));
		dev = OK(adapter_open(0));
		ret = segment_private(dev, 4 * CHARGED);
		_exit(ret == -ENOMEM ? 0 : 1);
	}
	status = ksft_wait(pid);
	CHECK(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
	WAIT_UNTIL(!rmdir(CGROUP_TEST));
}
