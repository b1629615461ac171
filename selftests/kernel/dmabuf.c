// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test dma-bufs of segments, and segments of dma-bufs. Another exporter of dma-bufs is the
 * kernel's udmabuf or vgem.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <linux/dma-buf.h>
#include <linux/udmabuf.h>

#include "sci_test.h"

#define NOBODY		65534
#define LENGTH		(4 * PAGE)
#define BUFINFO		"/sys/kernel/debug/dma_buf/bufinfo"

static int adapter;
static unsigned int bufs_before;

/* A line of a dma-buf: size, flags, mode, references, exporter, inode, name. */
static bool is_of_sci(const char *line)
{
	char exporter[32];

	return sscanf(line, "%*x %*x %*x %*x %31s", exporter) == 1 &&
	       !strcmp(exporter, "sci");
}

/* Return the number of dma-bufs of segments in this machine, 0 without debugfs. */
static unsigned int bufs(void)
{
	return access(BUFINFO, R_OK) ? 0 : ksft_count_lines(BUFINFO, is_of_sci);
}

/* Wait until the machine has @n more dma-bufs of segments than before the test. */
static void more_bufs(unsigned int n)
{
	if (!access(BUFINFO, R_OK))
		WAIT_UNTIL(bufs() == bufs_before + n);
}

static void begin(void)
{
	int segment, buf;

	NEED_CAP(SCI_CAP_REGISTER);
	adapter = OK(adapter_open(0));
	segment = OK(segment_private(adapter, PAGE));
	buf = segment_get_dmabuf(segment);
	if (buf == -EOPNOTSUPP)
		SKIP("no dma-bufs of segments of this adapter");
	OK(buf);
	close(buf);
	close(segment);
	bufs_before = bufs();
}

static int buf_of(int segment)
{
	return OK(segment_get_dmabuf(segment));
}

static __u32 id_of(int fd)
{
	struct sci_ioc_segment_info info;

	OK(segment_info(fd, &info));
	return info.out_id;
}

static int empty(size_t length)
{
	return OK(segment_create_as(adapter, 1, length, 0600,
				    SCI_SEGMENT_EMPTY | SCI_SEGMENT_AUTO_ID));
}

/* Export segment @fd of the first adapter and import it with the last one. */
static volatile uint32_t *import(int fd, size_t length, int *remote)
{
	int far = OK(adapter_open(adapters() - 1));

	OK(segment_export(fd));
	*remote = OK(remote_connect(far, adapter_node(0), id_of(fd)));
	close(far);
	return MAP(*remote, 0, length, RW);
}

/* Check that two maps show the same memory. @remote: the import of @there; -1: it is no import */
static void same_far(volatile void *there, volatile void *here, size_t length, int remote)
{
	static uint32_t seed;

	fill(there, length, ++seed);
	if (remote >= 0)
		OK(sci_flush(remote));
	CHECK(filled(here, length, seed));
	fill(here, length, ++seed);
	CHECK(filled(there, length, seed));
}

static void same(volatile void *a, volatile void *b, size_t length)
{
	same_far(a, b, length, -1);
}

/* ---- a dma-buf of a segment ---- */

TEST(a_dmabuf_has_the_segments_memory)
{
	volatile uint32_t *map;
	struct pair p;
	int buf;

	begin();
	p = PAIR(LENGTH);
	buf = buf_of(p.local);
	EQ(fcntl(buf, F_GETFD), FD_CLOEXEC);
	map = MAP(buf, 0, LENGTH, RW);
	same(map, p.here, LENGTH);
	fill(p.there, LENGTH, 77);
	OK(sci_flush(p.remote));
	CHECK(filled(map, LENGTH, 77));
	fill(map, LENGTH, 78);
	CHECK(filled(p.there, LENGTH, 78));
	more_bufs(1);
}

TEST(a_dmabuf_has_whole_pages)
{
	int buf;

	begin();
	buf = buf_of(OK(segment_create(adapter, 1, LENGTH - 100)));
	EQ(lseek(buf, 0, SEEK_END), LENGTH);
}

TEST(pieces_of_a_dmabuf)
{
	volatile uint32_t *all, *piece;
	int buf;

	begin();
	buf = buf_of(OK(segment_create(adapter, 1, LENGTH)));
	all = MAP(buf, 0, LENGTH, RW);
	piece = MAP(buf, PAGE, 2 * PAGE, RW);
	same(all + PAGE / 4, piece, 2 * PAGE);
	/* a page that the process drops is inserted again */
	all[0] = 5;
	OK(SYS(madvise((void *)all, PAGE, MADV_DONTNEED)));
	EQ(all[0], 5);
}

static void bad_maps(int buf)
{
	volatile void *map;

	FAILS(sci_map(buf, 0, LENGTH + PAGE, RW), EINVAL);
	FAILS(sci_map(buf, LENGTH, PAGE, RW), EINVAL);
	FAILS(sci_map(buf, 1ull << 62, PAGE, RW), EINVAL);
	FAILS(sci_map_as(buf, 0, LENGTH, RW, MAP_PRIVATE), EINVAL);
	FAILS(sci_map_as(buf, 0, LENGTH, PROT_READ, MAP_PRIVATE), EINVAL);
	FAILS(sci_map(buf, 0, LENGTH, RW | PROT_EXEC), EINVAL);
	map = MAP(buf, 0, LENGTH, RW);
	FAILS(SYS(mprotect((void *)map, PAGE, RW | PROT_EXEC)), EACCES);
	OK(sci_unmap(map, LENGTH));
}

TEST(bad_maps_are_EINVAL)
{
	begin();
	bad_maps(buf_of(OK(segment_create(adapter, 1, LENGTH))));
}

TEST(access_of_a_cpu_begins_and_ends)
{
	const __u64 flags[] = { DMA_BUF_SYNC_READ, DMA_BUF_SYNC_WRITE,
				DMA_BUF_SYNC_RW };
	int buf;

	begin();
	buf = buf_of(OK(segment_create(adapter, 1, LENGTH)));
	for (unsigned int i = 0; i < ARRAY_SIZE(flags); i++) {
		struct dma_buf_sync sync = { DMA_BUF_SYNC_START | flags[i] };

		OK(SYS(ioctl(buf, DMA_BUF_IOCTL_SYNC, &sync)));
		sync.flags = DMA_BUF_SYNC_END | flags[i];
		OK(SYS(ioctl(buf, DMA_BUF_IOCTL_SYNC, &sync)));
	}
}

TEST(states_of_a_segment)
{
	int fd, mate;

	begin();
	fd = OK(segment_create(adapter, 1, LENGTH));
	OK(segment_share(fd));
	mate = OK(segment_attach(adapter, 1));
	same(MAP(fd, 0, LENGTH, RW), MAP(buf_of(mate), 0, LENGTH, RW), LENGTH);
	OK(segment_remove(fd));
	FAILS(segment_get_dmabuf(fd), ENOTCONN);
	/* as a map, an attached segment stays */
	OK(segment_get_dmabuf(mate));
	FAILS(segment_get_dmabuf(empty(LENGTH)), EBUSY);
}

TEST(a_dmabuf_of_registered_memory)
{
	volatile uint32_t *mine, *map;
	int fd, buf;

	begin();
	fd = empty(LENGTH);
	mine = user_memory(LENGTH);
	OK(segment_register(fd, (void *)mine, LENGTH));
	buf = buf_of(fd);
	bad_maps(buf);
	map = MAP(buf, 0, LENGTH, RW);
	same(mine, map, LENGTH);
	/* the pages stay pinned without the segment and the process's map */
	fill(mine, LENGTH, 5);
	close(fd);
	OK(sci_unmap(mine, LENGTH));
	CHECK(filled(map, LENGTH, 5));
}

/* ---- lifetime ---- */

/* End a segment, its dma-buf and a map, in the order that @order encodes. */
static void end_in_order(const unsigned int *order)
{
	int fd = OK(segment_create(adapter, 1, LENGTH));
	int buf = buf_of(fd);
	volatile uint32_t *map = MAP(buf, 0, LENGTH, RW);

	fill(map, LENGTH, 9);
	for (unsigned int i = 0; i < 3; i++) {
		if (order[i] == 0)
			OK(SYS(close(fd)));
		if (order[i] == 1)
			OK(SYS(close(buf)));
		if (order[i] == 2) {
			CHECK(filled(map, LENGTH, 9));
			OK(sci_unmap(map, LENGTH));
		}
	}
}

TEST(every_order_of_the_end)
{
	static const unsigned int orders[][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
		{ 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	struct counts was;

	begin();
	was = counts_of(0);
	for (unsigned int i = 0; i < ARRAY_SIZE(orders); i++) {
		end_in_order(orders[i]);
		COUNTS_BACK(0, &was);
		more_bufs(0);
	}
}

/* The segment ends with its descriptor, not with the dma-buf. */
TEST(a_dmabuf_does_not_hold_the_segment)
{
	struct counts was;
	int fd, buf;

	begin();
	was = counts_of(0);
	fd = OK(segment_exported(adapter, 1, LENGTH));
	buf = buf_of(fd);
	OK(SYS(close(fd)));
	COUNTS_BACK(0, &was);
	FAILS(remote_connect(adapter, adapter_node(0), 1), ENOENT);
	EQ(lseek(buf, 0, SEEK_END), LENGTH);
}

TEST(each_dmabuf_has_its_own_end)
{
	volatile uint32_t *map;
	int fd, first, second;

	begin();
	fd = OK(segment_create(adapter, 1, LENGTH));
	first = buf_of(fd);
	second = buf_of(fd);
	map = MAP(second, 0, LENGTH, RW);
	OK(SYS(close(first)));
	OK(SYS(close(second)));
	same(map, MAP(fd, 0, LENGTH, RW), LENGTH);
}

static void make_until_killed(struct peer *self, void *arg)
{
	volatile uint32_t *map;
	int fd, buf;

	(void)arg;
	peer_expect(self, "begin");
	adapter = OK(adapter_open(0));
	fd = OK(segment_exported(adapter, 1, LENGTH));
	buf = buf_of(fd);
	map = MAP(buf, 0, LENGTH, RW);
	fill(map, LENGTH, 3);
	peer_put_fd(self, buf);
	peer_expect(self, "nothing");
}

TEST(a_dmabuf_outlives_a_killed_process)
{
	struct peer *p = peer_spawn(make_until_killed, NULL);
	volatile uint32_t *map;
	struct counts was;
	int buf;

	begin();
	was = counts_of(0);
	peer_send(p, "begin");
	buf = peer_get_fd(p);
	peer_kill(p);
	COUNTS_BACK(0, &was);
	map = MAP(buf, 0, LENGTH, RW);
	CHECK(filled(map, LENGTH, 3));
	OK(SYS(close(buf)));
	OK(sci_unmap(map, LENGTH));
	more_bufs(0);
}

TEST(a_dmabuf_outlives_the_adapter)
{
	unsigned int out = adapters() - 1;
	volatile uint32_t *map;
	int far, fd, buf;

	begin();
	NEED_ROOT();
	NEED_ADAPTERS(2);
	if (access(LOOP_DIR "/" KNOB_REMOVE, W_OK))
		SKIP("no %s", LOOP_DIR "/" KNOB_REMOVE);
	far = OK(adapter_open(out));
	fd = OK(segment_create(far, 1, LENGTH));
	buf = buf_of(fd);
	map = MAP(buf, 0, LENGTH, RW);
	OK(adapter_remove(out));
	FAILS(segment_get_dmabuf(fd), ENODEV);
	same(map, MAP(buf, 0, LENGTH, RW), LENGTH);
}

TEST(a_dmabuf_keeps_the_charge)
{
	struct rlimit limit = { 64 << 10, 64 << 10 };
	const size_t length = 48 << 10;
	int fd, buf;

	NEED_ROOT();
	begin();
	OK(SYS(setrlimit(RLIMIT_MEMLOCK, &limit)));
	peer_become(NOBODY, NOBODY);
	fd = OK(segment_create(adapter, 1, length));
	buf = buf_of(fd);
	close(fd);
	FAILS(segment_create(adapter, 1, length), ENOMEM);
	close(buf);
	OK(segment_create(adapter, 1, length));
}

/* ---- a segment of a segment's dma-buf ---- */

TEST(a_segment_of_another_segments_dmabuf)
{
	volatile uint32_t *first, *there, *here;
	int remote, fd;

	begin();
	fd = OK(segment_private(adapter, LENGTH));
	first = MAP(fd, 0, LENGTH, RW);
	fill(first, LENGTH, 1);
	{
		int buf = buf_of(fd), second = empty(LENGTH);

		OK(segment_register_dmabuf(second, buf, 0));
		close(fd);
		close(buf);
		fd = second;
	}
	here = MAP(fd, 0, LENGTH, RW);
	there = import(fd, LENGTH, &remote);
	CHECK(filled(there, LENGTH, 1));
	same_far(there, first, LENGTH, remote);
	same_far(there, here, LENGTH, remote);
	/* the imported memory is not the segment's to export again */
	FAILS(segment_get_dmabuf(fd), EOPNOTSUPP);
	close(fd);
	close(remote);
	OK(sci_unmap(there, LENGTH));
	same(here, first, LENGTH);
	OK(sci_unmap(here, LENGTH));
	OK(sci_unmap(first, LENGTH));
	more_bufs(0);
}

TEST(a_part_of_a_dmabuf)
{
	volatile uint32_t *all, *there;
	int fd, buf, remote;

	begin();
	fd = OK(segment_private(adapter, LENGTH));
	all = MAP(fd, 0, LENGTH, RW);
	buf = buf_of(fd);
	fd = empty(PAGE + 4);
	FAILS(segment_register_dmabuf(fd, buf, LENGTH - PAGE), EINVAL);
	FAILS(segment_register_dmabuf(fd, buf, LENGTH), EINVAL);
	FAILS(segment_register_dmabuf(fd, buf, ~0ull & ~(PAGE - 1)), EINVAL);
	FAILS(segment_register_dmabuf(fd, buf, 1ull << 32), EINVAL);
	FAILS(segment_register_dmabuf(fd, buf, 1), EINVAL);
	FAILS(segment_register_dmabuf(fd, buf, PAGE + 64), EINVAL);
	OK(segment_register_dmabuf(fd, buf, LENGTH - 2 * PAGE));
	there = import(fd, PAGE + 4, &remote);
	same_far(there, all + 2 * PAGE / 4, PAGE + 4, remote);
	FAILS(sci_map(fd, 0, 3 * PAGE, RW), EINVAL);
}

TEST(what_is_no_dmabuf)
{
	int fd, full, ends[2];

	begin();
	fd = empty(LENGTH);
	full = OK(segment_create(adapter, 2, LENGTH));
	OK(SYS(pipe2(ends, O_CLOEXEC)));
	FAILS(segment_register_dmabuf(fd, -1, 0), EBADF);
	FAILS(segment_register_dmabuf(fd, 1000, 0), EBADF);
	FAILS(segment_register_dmabuf(fd, ends[0], 0), EINVAL);
	FAILS(segment_register_dmabuf(fd, adapter, 0), EINVAL);
	FAILS(segment_register_dmabuf(fd, full, 0), EINVAL);
	FAILS(segment_register_dmabuf(fd, fd, 0), EINVAL);
	/* the failed calls have not changed the segment */
	OK(segment_register_dmabuf(fd, buf_of(full), 0));
}

TEST(states_of_a_segment_that_takes_memory)
{
	int buf, fd, mate;

	begin();
	fd = OK(segment_create(adapter, 1, LENGTH));
	buf = buf_of(fd);
	FAILS(segment_register_dmabuf(fd, buf, 0), EINVAL);
	fd = empty(LENGTH);
	OK(segment_register_dmabuf(fd, buf, 0));
	FAILS(segment_register_dmabuf(fd, buf, 0), EBUSY);
	FAILS(segment_register(fd, user_memory(LENGTH), LENGTH), EBUSY);
	OK(segment_share(fd));
	mate = OK(segment_attach(adapter, id_of(fd)));
	FAILS(segment_register_dmabuf(mate, buf, 0), EINVAL);
	fd = empty(LENGTH);
	OK(segment_remove(fd));
	FAILS(segment_register_dmabuf(fd, buf, 0), ENOTCONN);
	close(fd);
	more_bufs(1);
}

TEST(pages_of_a_dmabuf_are_charged)
{
	struct rlimit limit = { 64 << 10, 64 << 10 };
	const size_t length = 48 << 10;
	int fd, buf;

	NEED_ROOT();
	begin();
	buf = buf_of(OK(segment_create(adapter, 1, length)));
	OK(SYS(setrlimit(RLIMIT_MEMLOCK, &limit)));
	peer_become(NOBODY, NOBODY);
	for (unsigned int i = 0; i < 3; i++) {
		int second = empty(length);

		fd = empty(length);
		OK(segment_register_dmabuf(fd, buf, 0));
		FAILS(segment_register_dmabuf(second, buf, 0), ENOMEM);
		close(second);
		close(fd);
	}
}

/* ---- other exporters ---- */

/* The parts of <drm/drm.h> and <drm/drm_mode.h> that find vgem and create a buffer. */
struct vgem_version {
	int version[3];
	size_t name_len;
	char *name;
	size_t date_len;
	char *date;
	size_t desc_len;
	char *desc;
};

struct vgem_create {
	__u32 height, width, bpp, flags, handle, pitch;
	__u64 size;
};

struct vgem_prime {
	__u32 handle, flags;
	__s32 fd;
};

#define VGEM_VERSION	_IOWR('d', 0x00, struct vgem_version)
#define VGEM_CREATE	_IOWR('d', 0xb2, struct vgem_create)
#define VGEM_PRIME	_IOWR('d', 0x2d, struct vgem_prime)

static int vgem_open(void)
{
	for (unsigned int i = 0; i < 16; i++) {
		char path[32], name[16] = "";
		struct vgem_version v = { .name = name,
					  .name_len = sizeof(name) - 1 };
		int fd;

		snprintf(path, sizeof(path), "/dev/dri/card%u", i);
		fd = SYS(open(path, O_RDWR | O_CLOEXEC));
		if (fd < 0)
			continue;
		if (!ioctl(fd, VGEM_VERSION, &v) && !strcmp(name, "vgem"))
			return fd;
		close(fd);
	}
	return -ENOENT;
}

static int vgem(size_t length, __u32 flags)
{
	struct vgem_create c = { .height = (__u32)(length / PAGE),
				 .width = (__u32)(PAGE / 4), .bpp = 32 };
	struct vgem_prime p = { .flags = flags | O_CLOEXEC };
	int fd, ret;

	fd = vgem_open();
	if (fd < 0)
		return fd;
	ret = SYS(ioctl(fd, VGEM_CREATE, &c));
	p.handle = c.handle;
	if (ret >= 0)
		ret = SYS(ioctl(fd, VGEM_PRIME, &p));
	close(fd);
	return ret < 0 ? ret : p.fd;
}

static int udmabuf(size_t length)
{
	struct udmabuf_create c = { .flags = UDMABUF_FLAGS_CLOEXEC,
				    .size = length };
	int fd, ret;

	fd = SYS(open("/dev/udmabuf", O_RDWR | O_CLOEXEC));
	if (fd < 0)
		return fd;
	c.memfd = (__u32)OK(SYS(memfd_create("memory", MFD_CLOEXEC |
					     MFD_ALLOW_SEALING)));
	OK(SYS(ftruncate((int)c.memfd, (off_t)length)));
	OK(SYS(fcntl((int)c.memfd, F_ADD_SEALS, F_SEAL_SHRINK)));
	ret = SYS(ioctl(fd, UDMABUF_CREATE, &c));
	close((int)c.memfd);
	close(fd);
	return ret;
}

/* Create a dma-buf of vgem or udmabuf. */
static int foreign(size_t length)
{
	int buf = vgem(length, O_RDWR), fd;

	if (buf >= 0)
		return buf;
	buf = udmabuf(length);
	if (buf < 0)
		SKIP("neither vgem nor udmabuf: %s", ksft_errname(-buf));
	fd = empty(length);
	/* before 6.3 udmabuf had no maps for the kernel */
	if (segment_register_dmabuf(fd, buf, 0) == -EOPNOTSUPP)
		SKIP("udmabuf cannot map for the kernel");
	close(fd);
	return buf;
}

TEST(another_node_uses_a_foreign_dmabuf)
{
	volatile uint32_t *map, *there, *here;
	int buf, fd, remote;

	begin();
	buf = foreign(LENGTH);
	map = MAP(buf, 0, LENGTH, RW);
	fill(map, LENGTH, 1);
	fd = empty(LENGTH);
	OK(segment_register_dmabuf(fd, buf, 0));
	there = import(fd, LENGTH, &remote);
	CHECK(filled(there, LENGTH, 1));
	same_far(there, map, LENGTH, remote);
	here = MAP(fd, 0, LENGTH, RW);
	same(here, map, LENGTH);
	FAILS(sci_map_as(fd, 0, LENGTH, RW, MAP_PRIVATE), EINVAL);
	/* the import outlives the descriptor of the dma-buf and its map */
	fill(map, LENGTH, 2);
	close(buf);
	OK(sci_unmap(map, LENGTH));
	CHECK(filled(there, LENGTH, 2));
	close(fd);
	EV(remote, SCI_EV_LOST);
	CHECK(filled(here, LENGTH, 2));
}

TEST(dma_to_a_foreign_dmabuf)
{
	volatile uint32_t *map;
	struct pair p;
	int buf, fd, queue;

	begin();
	NEED_CAP(SCI_CAP_DMA);
	p = PAIR(LENGTH);
	buf = foreign(LENGTH);
	map = MAP(buf, 0, LENGTH, RW);
	fd = empty(LENGTH);
	OK(segment_register_dmabuf(fd, buf, 0));
	queue = OK(dma_create(p.importer, 4));
	fill(p.here, LENGTH, 4);
	OK(dma_move(queue, SCI_DMA_WAIT | SCI_DMA_PULL, fd, p.remote, LENGTH));
	CHECK(filled(map, LENGTH, 4));
	fill(map, LENGTH, 5);
	OK(dma_move(queue, SCI_DMA_WAIT, fd, p.remote, LENGTH));
	CHECK(filled(p.here, LENGTH, 5));
}

TEST(a_large_foreign_dmabuf)
{
	const size_t length = 8 << 20;
	volatile uint32_t *map, *there;
	int buf, fd, remote;

	begin();
	buf = foreign(length);
	map = MAP(buf, 0, length, RW);
	fd = empty(length);
	OK(segment_register_dmabuf(fd, buf, 0));
	there = import(fd, length, &remote);
	fill(there, length, 1);
	OK(sci_flush(remote));
	CHECK(filled(map, length, 1));
	fill(map, length, 2);
	/* a load from a card waits for a packet: load one word of each page */
	for (size_t i = 0; i < length / 4; i += PAGE / 4)
		EQ(there[i], map[i]);
}

TEST(a_foreign_dmabuf_for_reading_is_EACCES)
{
	int fd, buf;

	begin();
	buf = vgem(LENGTH, 0);
	if (buf < 0)
		SKIP("vgem: %s", ksft_errname(-buf));
	fd = empty(LENGTH);
	FAILS(segment_register_dmabuf(fd, buf, 0), EACCES);
}

static void register_until_killed(struct peer *self, void *arg)
{
	int fd;

	(void)arg;
	peer_expect(self, "begin");
	adapter = OK(adapter_open(0));
	fd = empty(LENGTH);
	OK(segment_register_dmabuf(fd, peer_get_fd(self), 0));
	OK(segment_export(fd));
	PEER_PUT(self, id_of(fd));
	peer_expect(self, "nothing");
}

TEST(a_killed_process_gives_the_dmabuf_back)
{
	volatile uint32_t *there;
	struct counts was;
	int buf, fd, remote;
	struct peer *p;

	NEED_CAP(SCI_CAP_REGISTER);
	p = peer_spawn(register_until_killed, NULL);
	begin();
	was = counts_of(0);
	fd = OK(segment_private(adapter, LENGTH));
	buf = buf_of(fd);
	peer_send(p, "begin");
	peer_put_fd(p, buf);
	remote = OK(remote_connect(adapter, adapter_node(0),
				   PEER_GET(p, __u32)));
	there = MAP(remote, 0, LENGTH, RW);
	same_far(there, MAP(fd, 0, LENGTH, RW), LENGTH, remote);
	close(buf);
	close(fd);
	peer_kill(p);
	EV(remote, SCI_EV_LOST);
	there[0] = 2;
	close(remote);
	COUNTS_BACK(0, &was);
	/* only the map of the private segment keeps memory, not the dma-buf */
	more_bufs(0);
}
