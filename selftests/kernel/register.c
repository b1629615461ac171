// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test registered memory: pages of a process as the memory of a segment. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sci_test.h"

#define NOBODY	65534
#define LENGTH	(4 * PAGE)

static int adapter;

static void begin(void)
{
	NEED_CAP(SCI_CAP_REGISTER);
	adapter = OK(adapter_open(0));
}

static int empty(size_t length)
{
	return OK(segment_create_as(adapter, 1, length, 0600,
				    SCI_SEGMENT_EMPTY | SCI_SEGMENT_AUTO_ID));
}

static __u32 id_of(int fd)
{
	struct sci_ioc_segment_info info;

	OK(segment_info(fd, &info));
	return info.out_id;
}

/* Export segment @fd of the first adapter and import it with the last one. */
static volatile uint32_t *import(int fd, size_t length, int *remote)
{
	int far = OK(adapter_open(adapters() - 1));

	OK(segment_export(fd));
	*remote = OK(remote_connect(far, adapter_node(0), id_of(fd)));
	return MAP(*remote, 0, length, RW);
}

/* Return the number of pinned pages of the machine, or -1. */
static long long pinned(void)
{
	long long got = -1, put = 0, n;
	char name[64];
	FILE *f;

	/* flush the counters of each CPU */
	write_text("/proc/sys/vm/stat_refresh", "1");
	f = fopen("/proc/vmstat", "re");
	while (f && fscanf(f, "%63s %lld", name, &n) == 2) {
		if (!strcmp(name, "nr_foll_pin_acquired"))
			got = n;
		if (!strcmp(name, "nr_foll_pin_released"))
			put = n;
	}
	if (f)
		fclose(f);
	return got < 0 ? -1 : got - put;
}

/* ---- data ---- */

TEST(registered_memory_is_the_segments)
{
	volatile uint32_t *mine, *there;
	int fd, remote;

	begin();
	mine = user_memory(LENGTH);
	fill(mine, LENGTH, 1);
	fd = empty(LENGTH);
	OK(segment_register(fd, (void *)mine, LENGTH));
	there = import(fd, LENGTH, &remote);
	CHECK(filled(there, LENGTH, 1));
	fill(there, LENGTH, 2);
	OK(sci_flush(remote));
	CHECK(filled(mine, LENGTH, 2));
	mine[LENGTH / 4 - 1] = 3;
	EQ(there[LENGTH / 4 - 1], 3);
}

TEST(a_segment_may_end_within_a_page)
{
	volatile uint32_t *mine;
	int fd;

	begin();
	mine = user_memory(LENGTH);
	fd = empty(LENGTH - 100);
	FAILS(segment_register(fd, (void *)mine, LENGTH - PAGE), EINVAL);
	OK(segment_register(fd, (void *)mine, LENGTH));
	FAILS(sci_map(fd, 0, LENGTH + PAGE, RW), EINVAL);
}

/* The kernel may refuse the map. If it maps, both maps show the same memory. */
TEST(a_local_map_shows_registered_memory)
{
	volatile uint32_t *mine, *p;
	int fd;
	long map;

	begin();
	mine = user_memory(LENGTH);
	fd = empty(LENGTH);
	OK(segment_register(fd, (void *)mine, LENGTH));
	map = sci_map(fd, 0, LENGTH, RW);
	if (map < 0)
		SKIP("mmap: %s", ksft_errname(-map));
	p = (void *)map;
	fill(mine, LENGTH, 1);
	CHECK(filled(p, LENGTH, 1));
	fill(p, LENGTH, 2);
	CHECK(filled(mine, LENGTH, 2));
}

TEST(private_registered_memory_is_for_dma)
{
	volatile uint32_t *mine;
	struct pair p;
	int fd, queue;

	begin();
	NEED_CAP(SCI_CAP_DMA);
	p = PAIR(LENGTH);
	mine = user_memory(LENGTH);
	fd = OK(segment_create_as(adapter, 0, LENGTH, 0600,
				  SCI_SEGMENT_EMPTY | SCI_SEGMENT_PRIVATE));
	OK(segment_register(fd, (void *)mine, LENGTH));
	queue = OK(dma_create(p.importer, 4));
	fill(mine, LENGTH, 5);
	OK(dma_move(queue, SCI_DMA_WAIT, fd, p.remote, LENGTH));
	CHECK(filled(p.here, LENGTH, 5));
	fill(p.here, LENGTH, 6);
	OK(dma_move(queue, SCI_DMA_WAIT | SCI_DMA_PULL, fd, p.remote, LENGTH));
	CHECK(filled(mine, LENGTH, 6));
}

/* ---- arguments ---- */

TEST(addresses_and_lengths)
{
	char *mine;
	int fd;

	begin();
	mine = user_memory(8 * PAGE);
	fd = empty(LENGTH);
	FAILS(segment_register(fd, mine + 1, LENGTH), EINVAL);
	FAILS(segment_register(fd, mine + 64, LENGTH), EINVAL);
	FAILS(segment_register(fd, mine, 0), EINVAL);
	FAILS(segment_register(fd, mine, LENGTH - 1), EINVAL);
	FAILS(segment_register(fd, mine, LENGTH - PAGE), EINVAL);
	FAILS(segment_register(fd, mine, LENGTH + PAGE), EINVAL);
	FAILS(segment_register(fd, mine, ~0ull & ~(PAGE - 1)), EINVAL);
	FAILS_EITHER(segment_register(fd, (void *)-PAGE, LENGTH), EFAULT,
		     EINVAL);
	FAILS_EITHER(segment_register(fd, KERNEL_ADDRESS, LENGTH), EFAULT,
		     EINVAL);
	FAILS(segment_register(fd, NULL, LENGTH), EFAULT);
	OK(segment_register(fd, mine, LENGTH));
	FAILS(segment_register(fd, mine, LENGTH), EBUSY);
	FAILS(segment_register(fd, mine + LENGTH, LENGTH), EBUSY);
}

TEST(only_an_empty_segment_takes_memory)
{
	void *mine;

	begin();
	mine = user_memory(PAGE);
	FAILS(segment_register(OK(segment_create(adapter, 1, PAGE)), mine,
			       PAGE), EINVAL);
	FAILS(segment_register(OK(segment_private(adapter, PAGE)), mine, PAGE),
	      EINVAL);
}

TEST(memory_must_be_writable)
{
	char *mine;
	int fd;

	begin();
	mine = user_memory(LENGTH);
	fd = empty(LENGTH);
	OK(SYS(mprotect(mine + PAGE, PAGE, PROT_READ)));
	FAILS(segment_register(fd, mine, LENGTH), EFAULT);
	OK(SYS(mprotect(mine + PAGE, PAGE, PROT_NONE)));
	FAILS(segment_register(fd, mine, LENGTH), EFAULT);
	OK(sci_unmap(mine + PAGE, PAGE));
	FAILS(segment_register(fd, mine, LENGTH), EFAULT);
	OK(sci_unmap(mine, LENGTH));
	FAILS(segment_register(fd, mine, LENGTH), EFAULT);
	/* the failed calls have not changed the segment */
	OK(segment_register(fd, user_memory(LENGTH), LENGTH));
}

TEST(what_fails_pins_nothing)
{
	long long was = pinned();
	char *mine;
	int fd;

	if (was < 0)
		SKIP("no count of pinned pages");
	begin();
	mine = user_memory(LENGTH);
	fd = empty(LENGTH);
	OK(sci_unmap(mine + LENGTH - PAGE, PAGE));
	FAILS(segment_register(fd, mine, LENGTH), EFAULT);
	WAIT_UNTIL(pinned() == was);
}

/* ---- kinds of memory ---- */

static void register_and_use(void *mine, size_t length)
{
	int fd = empty(length);
	volatile uint32_t *there;
	int remote;

	OK(segment_register(fd, mine, length));
	there = import(fd, length, &remote);
	fill(there, length, 1);
	OK(sci_flush(remote));
	CHECK(filled(mine, length, 1));
	OK(sci_unmap(there, length));
	close(remote);
	close(fd);
}

static void *memory_of(size_t length, int flags, int fd)
{
	void *p = mmap(NULL, length, RW, flags, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int file_of(size_t length)
{
	int fd = OK(SYS(memfd_create("registered", MFD_CLOEXEC)));

	OK(SYS(ftruncate(fd, length)));
	return fd;
}

TEST(shared_memory_is_memory)
{
	volatile uint32_t *mine, *same, *there;
	int file, fd, remote;

	begin();
	file = file_of(LENGTH);
	mine = memory_of(LENGTH, MAP_SHARED, file);
	same = memory_of(LENGTH, MAP_SHARED, file);
	CHECK(mine && same);
	register_and_use(ksft_shared(LENGTH), LENGTH);
	register_and_use((void *)mine, LENGTH);
	CHECK(filled(same, LENGTH, 1));
	/* the segment keeps pages that its file drops */
	fd = empty(LENGTH);
	OK(segment_register(fd, (void *)mine, LENGTH));
	there = import(fd, LENGTH, &remote);
	OK(SYS(ftruncate(file, 0)));
	OK(SYS(ftruncate(file, LENGTH)));
	fill(there, LENGTH, 2);
	OK(sci_flush(remote));
	CHECK(all_zero(same, LENGTH));
	CHECK(filled(there, LENGTH, 2));
}

/* Map a file of a file system that is not memory; the test gets its own mounts. */
static void *memory_of_ramfs(size_t length)
{
	char dir[] = "/tmp/register-XXXXXX", path[64];
	void *p;
	int fd;

	OK(SYS(unshare(CLONE_NEWNS)));
	OK(SYS(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL)));
	CHECK(mkdtemp(dir));
	OK(SYS(mount("none", dir, "ramfs", 0, NULL)));
	snprintf(path, sizeof(path), "%s/file", dir);
	fd = OK(SYS(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)));
	OK(SYS(ftruncate(fd, (off_t)length)));
	p = memory_of(length, MAP_SHARED, fd);
	close(fd);
	OK(SYS(umount2(dir, MNT_DETACH)));
	OK(SYS(rmdir(dir)));
	return p;
}

/* Pages of a file must not be written behind the back of the file system. */
TEST(memory_of_a_file_is_EFAULT)
{
	long long was = pinned();
	char *file, *half;

	NEED_ROOT();
	begin();
	file = memory_of_ramfs(LENGTH);
	CHECK(file);
	FAILS(segment_register(empty(LENGTH), file, LENGTH), EFAULT);
	/* one page of a file among anonymous pages */
	half = user_memory(LENGTH);
	CHECK(mremap(file, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		     half + LENGTH - PAGE) == half + LENGTH - PAGE);
	FAILS(segment_register(empty(LENGTH), half, LENGTH), EFAULT);
	if (was >= 0)
		WAIT_UNTIL(pinned() == was);
}

/* Stores to a private map go to copies of the file's pages. */
TEST(a_private_map_of_a_file_is_memory)
{
	char *mine, *shared;
	int file;

	begin();
	file = file_of(LENGTH);
	mine = memory_of(LENGTH, MAP_PRIVATE, file);
	shared = memory_of(LENGTH, MAP_SHARED, file);
	CHECK(mine && shared);
	register_and_use(mine, LENGTH);
	CHECK(all_zero(shared, LENGTH));
}

TEST(large_pages_are_memory)
{
	const size_t length = 4 << 20;
	void *p;

	begin();
	p = aligned_alloc(2 << 20, length);
	CHECK(p);
	madvise(p, length, MADV_HUGEPAGE);
	memset(p, 1, length);
	register_and_use(p, length);
	/* half of a huge page, which the kernel splits */
	register_and_use((char *)p + PAGE, 1 << 20);
	free(p);
}

static void register_huge(int flags)
{
	char *p = memory_of(2 << 20, flags | MAP_ANONYMOUS | MAP_HUGETLB, -1);

	if (!p)
		SKIP("no free huge page");
	register_and_use(p, 2 << 20);
	/* a part of a huge page */
	register_and_use(p + PAGE, 1 << 20);
	OK(sci_unmap(p, 2 << 20));
}

TEST(hugetlbfs_is_memory)
{
	const char *path = "/proc/sys/vm/nr_hugepages";
	char number[32];
	long long was;

	NEED_ROOT();
	begin();
	was = read_number(path);
	if (was < 0)
		SKIP("no %s", path);
	snprintf(number, sizeof(number), "%lld", was + 2);
	OK(write_text(path, number));
	register_huge(MAP_PRIVATE);
	register_huge(MAP_SHARED);
	snprintf(number, sizeof(number), "%lld", was);
	OK(write_text(path, number));
	WAIT_UNTIL(read_number(path) == was);
}

TEST(maps_of_this_driver_are_no_memory)
{
	struct pair p;
	void *status;

	begin();
	p = PAIR(LENGTH);
	FAILS(segment_register(empty(LENGTH), (void *)p.here, LENGTH), EFAULT);
	FAILS(segment_register(empty(LENGTH), (void *)p.there, LENGTH), EFAULT);
	status = (void *)MAP(adapter, SCI_MMAP_STATUS, PAGE, PROT_READ);
	FAILS(segment_register(empty(PAGE), status, PAGE), EFAULT);
}

/* ---- lifetime ---- */

TEST(memory_outlives_its_map)
{
	volatile uint32_t *there;
	int fd, remote;
	void *mine;

	begin();
	mine = user_memory(LENGTH);
	fill(mine, LENGTH, 7);
	fd = empty(LENGTH);
	OK(segment_register(fd, mine, LENGTH));
	there = import(fd, LENGTH, &remote);
	OK(sci_unmap(mine, LENGTH));
	CHECK(filled(there, LENGTH, 7));
	fill(there, LENGTH, 8);
	/* a new map at the same address has other pages */
	CHECK(mmap(mine, LENGTH, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		   -1, 0) == mine);
	memset(mine, 0xff, LENGTH);
	CHECK(filled(there, LENGTH, 8));
}

/* The parent keeps its pages; the child gets copies. */
TEST(fork_takes_nothing_away)
{
	volatile uint32_t *mine, *there;
	int fd, remote;
	pid_t pid;

	begin();
	mine = user_memory(LENGTH);
	fill(mine, LENGTH, 1);
	fd = empty(LENGTH);
	OK(segment_register(fd, (void *)mine, LENGTH));
	there = import(fd, LENGTH, &remote);
	pid = ksft_fork();
	if (pid == 0) {
		CHECK(filled(mine, LENGTH, 1));
		fill(mine, LENGTH, 2);
		CHECK(filled(mine, LENGTH, 2));
		exit(0);
	}
	EQ(ksft_wait(pid), 0);
	CHECK(filled(there, LENGTH, 1));
	fill(mine, LENGTH, 3);
	CHECK(filled(there, LENGTH, 3));
	fill(there, LENGTH, 4);
	OK(sci_flush(remote));
	CHECK(filled(mine, LENGTH, 4));
}

TEST(pages_are_pinned_until_the_end)
{
	long long was = pinned();
	int fd;

	if (was < 0)
		SKIP("no count of pinned pages");
	begin();
	fd = empty(LENGTH);
	OK(segment_register(fd, user_memory(LENGTH), LENGTH));
	CHECK(pinned() > was);
	close(fd);
	WAIT_UNTIL(pinned() == was);
}

static void register_until_killed(struct peer *self, void *arg)
{
	int fd;

	(void)arg;
	peer_expect(self, "begin");
	adapter = OK(adapter_open(0));
	fd = empty(LENGTH);
	OK(segment_register(fd, user_memory(LENGTH), LENGTH));
	OK(segment_export(fd));
	PEER_PUT(self, id_of(fd));
	peer_expect(self, "nothing");
}

TEST(a_death_unpins)
{
	struct peer *p = peer_spawn(register_until_killed, NULL);
	volatile uint32_t *there;
	long long was = pinned();
	int remote;

	if (was < 0)
		SKIP("no count of pinned pages");
	begin();
	peer_send(p, "begin");
	remote = OK(remote_connect(adapter, adapter_node(0),
				   PEER_GET(p, __u32)));
	there = MAP(remote, 0, LENGTH, RW);
	there[0] = 1;
	CHECK(pinned() > was);
	peer_kill(p);
	EV(remote, SCI_EV_LOST);
	there[0] = 2;
	WAIT_UNTIL(pinned() == was);
}

TEST(pinned_memory_is_charged)
{
	struct rlimit limit = { 64 << 10, 64 << 10 };
	void *mine;
	int fd, second;

	NEED_ROOT();
	begin();
	OK(SYS(setrlimit(RLIMIT_MEMLOCK, &limit)));
	peer_become(NOBODY, NOBODY);
	mine = user_memory(128 << 10);
	fd = empty(128 << 10);
	FAILS(segment_register(fd, mine, 128 << 10), ENOMEM);
	close(fd);
	for (unsigned int i = 0; i < 4; i++) {
		fd = empty(48 << 10);
		OK(segment_register(fd, mine, 48 << 10));
		second = empty(48 << 10);
		FAILS(segment_register(second, mine, 48 << 10), ENOMEM);
		close(second);
		close(fd);
	}
}

TEST(the_same_memory_for_two_segments)
{
	int first, second, remote;
	volatile uint32_t *there;
	void *mine;

	begin();
	mine = user_memory(LENGTH);
	first = empty(LENGTH);
	second = empty(LENGTH);
	OK(segment_register(first, mine, LENGTH));
	OK(segment_register(second, mine, LENGTH));
	close(first);
	there = import(second, LENGTH, &remote);
	fill(there, LENGTH, 1);
	OK(sci_flush(remote));
	CHECK(filled(mine, LENGTH, 1));
}

/* ---- races ---- */

static _Atomic bool stop;
static char *contested;

static void *map_and_unmap(void *arg)
{
	while (!atomic_load(&stop)) {
		CHECK(mmap(contested, LENGTH, RW, MAP_PRIVATE | MAP_ANONYMOUS |
			   MAP_FIXED, -1, 0) == contested);
		contested[PAGE] = 1;
		mprotect(contested + PAGE, PAGE, PROT_READ);
		munmap(contested + 2 * PAGE, PAGE);
	}
	return arg;
}

TEST(memory_that_goes_while_it_is_registered)
{
	unsigned int done = 0;
	long long was = pinned();
	pthread_t thread;

	begin();
	contested = user_memory(LENGTH);
	EQ(pthread_create(&thread, NULL, map_and_unmap, NULL), 0);
	for (unsigned int i = 0; i < 300; i++) {
		int fd = empty(LENGTH);
		int ret = segment_register(fd, contested, LENGTH);

		if (ret < 0)
			EQ(ret, -EFAULT);
		done += !ret;
		close(fd);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	ksft_note("%u of 300 succeeded", done);
	if (was >= 0)
		WAIT_UNTIL(pinned() == was);
}

static int disputed;
static void *dispute_memory;

static void *register_too(void *arg)
{
	_Atomic int *winners = arg;
	int ret = segment_register(disputed, dispute_memory, LENGTH);

	if (!ret)
		atomic_fetch_add(winners, 1);
	else
		EQ(ret, -EBUSY);
	return NULL;
}

TEST(one_of_two_registers_wins)
{
	begin();
	dispute_memory = user_memory(LENGTH);
	for (unsigned int i = 0; i < 50; i++) {
		_Atomic int winners = 0;
		pthread_t thread[2];

		disputed = empty(LENGTH);
		for (unsigned int t = 0; t < 2; t++)
			EQ(pthread_create(&thread[t], NULL, register_too,
					  &winners), 0);
		for (unsigned int t = 0; t < 2; t++)
			pthread_join(thread[t], NULL);
		EQ(winners, 1);
		close(disputed);
	}
}
