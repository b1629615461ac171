// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test the removal of an adapter that is in use. */
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#include "ioctls.h"

#define LENGTH	(4 * PAGE)
#define MAGIC	0x600df00du

/*
 * The last adapter, which a test removes, exports to and imports from the first
 * adapter, which stays.
 */
struct scene {
	unsigned int out;		/* place of the adapter to remove */
	unsigned int node;
	int gone, stays;		/* descriptors of both adapters */
	int exported, imported;		/* segments of @gone */
	int import_of_it, export_to_it;	/* segments of @stays */
	volatile uint32_t *map[4];	/* maps of the four segments, in this order */
	volatile struct sci_status_page *status;
	int intr, rintr, queue, mine;
	__u32 number;
};

static int segment_of(int adapter, __u32 id, volatile uint32_t **map)
{
	int fd = OK(segment_exported(adapter, id, LENGTH));

	*map = MAP(fd, 0, LENGTH, RW);
	(*map)[0] = MAGIC;
	return fd;
}

static int import_of(int adapter, __u32 node, __u32 id,
		     volatile uint32_t **map)
{
	int fd = OK(remote_connect(adapter, node, id));

	*map = MAP(fd, 0, LENGTH, RW);
	EQ((*map)[0], MAGIC);
	return fd;
}

static struct scene scene_of(void)
{
	struct scene s = { .out = adapters() - 1 };

	NEED_ADAPTERS(2);
	NEED_ROOT();
	if (access(LOOP_DIR "/" KNOB_REMOVE, W_OK))
		SKIP("no %s", LOOP_DIR "/" KNOB_REMOVE);
	s.node = adapter_node(s.out);
	s.gone = OK(adapter_open(s.out));
	s.stays = OK(adapter_open(0));
	s.exported = segment_of(s.gone, 1, &s.map[0]);
	s.export_to_it = segment_of(s.stays, 1, &s.map[3]);
	s.imported = import_of(s.gone, adapter_node(0), 1, &s.map[1]);
	s.import_of_it = import_of(s.stays, s.node, 1, &s.map[2]);
	s.status = MAP(s.gone, SCI_MMAP_STATUS, PAGE, PROT_READ);
	s.intr = OK(intr_create(s.gone, 0, &s.number));
	s.rintr = OK(intr_connect(s.gone, s.node, s.number, 0));
	s.mine = OK(segment_private(s.gone, LENGTH));
	s.queue = -1;
	if (adapter_can(s.out, SCI_CAP_DMA))
		s.queue = OK(dma_create(s.gone, 16));
	return s;
}

static void take_out(const struct scene *s)
{
	OK(adapter_remove(s->out));
}

static bool is_there(const struct scene *s)
{
	char path[32];

	snprintf(path, sizeof(path), DEV_DIR "/sci%u", adapter_index(s->out));
	return !access(path, F_OK);
}

/* ---- descriptors ---- */

static void all_ioctls_fail(int fd, enum sci_kind kind)
{
	for (unsigned int i = 0; i < sci_ncalls; i++) {
		const struct sci_call *c = &sci_calls[i];
		unsigned char room[CALL_SIZE_MAX] = { 0 };
		int ret;

		if (!(c->kinds & (1u << kind)))
			continue;
		memcpy(room, &c->size, sizeof(c->size));
		ret = xioctl(fd, c->cmd, room);
		if (ret != -ENODEV)
			FAIL("%s: %s", c->name, ksft_errname(-ret));
	}
}

TEST(all_ioctls_are_ENODEV)
{
	struct scene s = scene_of();

	take_out(&s);
	CHECK(!is_there(&s));
	all_ioctls_fail(s.gone, KIND_ADAPTER);
	all_ioctls_fail(s.exported, KIND_LOCAL);
	all_ioctls_fail(s.imported, KIND_REMOTE);
	all_ioctls_fail(s.intr, KIND_INTR);
	all_ioctls_fail(s.rintr, KIND_RINTR);
	if (s.queue >= 0)
		all_ioctls_fail(s.queue, KIND_DMA);
	FAILS(sci_map(s.gone, SCI_MMAP_STATUS, PAGE, PROT_READ), ENODEV);
	FAILS(sci_map(s.exported, 0, PAGE, RW), ENODEV);
	FAILS(sci_map(s.imported, 0, PAGE, RW), ENODEV);
	EQ(EV_SOON(s.imported, SCI_EV_LOST).status, -ENODEV);
}

#define MUCH	(256u << 20)

static _Atomic unsigned int allocations;

static void *allocate_until_removed(void *arg)
{
	const struct scene *s = arg;
	struct sci_ioc_query q;
	int fd;

	OK(adapter_query(s->gone, &q));
	while ((fd = segment_private(s->gone, q.out_max_segment < MUCH ? q.out_max_segment : MUCH)) >= 0) {
		atomic_fetch_add(&allocations, 1);
		close(fd);
	}
	EQ(fd, -ENODEV);
	return NULL;
}

/* The removal most likely comes while some thread allocates. */
TEST(an_allocation_ends_with_ENODEV)
{
	struct scene s = scene_of();
	pthread_t thread[4];

	for (unsigned int i = 0; i < ARRAY_SIZE(thread); i++)
		EQ(pthread_create(&thread[i], NULL, allocate_until_removed, &s), 0);
	WAIT_UNTIL(atomic_load(&allocations) > 4);
	take_out(&s);
	for (unsigned int i = 0; i < ARRAY_SIZE(thread); i++)
		EQ(pthread_join(thread[i], NULL), 0);
}

TEST(the_node_is_gone_for_others)
{
	struct scene s = scene_of();

	take_out(&s);
	EQ(EV_SOON(s.import_of_it, SCI_EV_LOST).status, -EHOSTUNREACH);
	EV_SOON(s.export_to_it, SCI_EV_LOST);
	FAILS(adapter_probe(s.stays, s.node), EHOSTUNREACH);
	FAILS_EITHER(remote_connect_as(s.stays, s.node, 1, 0, 200),
		     EHOSTUNREACH, ETIMEDOUT);
	CHECK(s.map[2][0] != MAGIC);
	s.map[2][0] = 1;
}

TEST(maps_stay)
{
	struct scene s = scene_of();

	take_out(&s);
	/* local memory stays, imports become private pages, no access faults */
	s.map[0][1] = 2;
	EQ(s.map[0][0], MAGIC);
	EQ(s.map[0][1], 2);
	CHECK(s.map[1][0] != MAGIC);
	s.map[1][1] = 3;
	EQ(s.map[1][1], 3);
	EQ(s.map[3][0], MAGIC);
	EQ(s.map[3][1], 0);
	CHECK(s.status->down != 0);
	close(s.gone);
	close(s.exported);
	close(s.imported);
	s.map[0][1] = 4;
	s.map[1][1] = 5;
	CHECK(s.status->down != 0);
}

TEST(polls_wake)
{
	struct scene s = scene_of();
	struct pollfd pfd[5];
	const int fds[] = { s.exported, s.imported, s.intr, s.rintr, s.queue };
	struct sci_ev_record ev;

	while (readable(s.exported, 0))
		OK(ev_next(s.exported, &ev));
	take_out(&s);
	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++) {
		unsigned int reads = 0;
		long n;

		if (fds[i] < 0)
			continue;
		OK(SYS(fcntl(fds[i], F_SETFL, O_NONBLOCK)));
		pfd[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
		EQ(SYS(poll(&pfd[i], 1, TEST_WAIT_MS)), 1);
		/* pending events may be read, then read() fails */
		do {
			n = SYS(read(fds[i], &ev, sizeof(ev)));
		} while (n >= 0 && ++reads < 1000);
		EQ(n, -ENODEV);
		EQ(SYS(poll(&pfd[i], 1, 0)), 1);
	}
}

static void *read_until_gone(void *arg)
{
	int fd = *(int *)arg;
	char room[256];
	long n;

	do {
		n = SYS(read(fd, room, sizeof(room)));
	} while (n > 0);
	EQ(n, -ENODEV);
	return NULL;
}

TEST(readers_wake)
{
	struct scene s = scene_of();
	int *fds[] = { &s.exported, &s.imported, &s.intr, &s.rintr, &s.queue };
	pthread_t thread[ARRAY_SIZE(fds)];

	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++)
		if (*fds[i] >= 0)
			EQ(pthread_create(&thread[i], NULL, read_until_gone,
					  fds[i]), 0);
	take_out(&s);
	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++)
		if (*fds[i] >= 0)
			EQ(pthread_join(thread[i], NULL), 0);
}

/* ---- removal of a busy adapter ---- */

static _Atomic bool stop;
static struct scene busy;

static void *store(void *arg)
{
	(void)arg;
	for (uint32_t i = 1; !atomic_load(&stop); i++)
		for (unsigned int m = 0; m < 4; m++)
			busy.map[m][i % (LENGTH / 4 - 1) + 1] = i;
	return NULL;
}

static void *use(void *arg)
{
	uint64_t seed = (uintptr_t)arg;

	while (!atomic_load(&stop)) {
		int fd = segment_create_as(busy.gone, 100, PAGE, 0600,
					   SCI_SEGMENT_AUTO_ID);

		if (fd >= 0)
			segment_export(fd);
		if (fd >= 0)
			close(fd);
		fd = remote_connect_as(ksft_below(&seed, 2) ? busy.gone :
							      busy.stays,
				       busy.node, 1, 0, 100);
		if (fd >= 0) {
			sci_flush(fd);
			close(fd);
		}
		intr_trigger(busy.rintr);
		if (busy.queue >= 0)
			dma_move(busy.queue, ksft_below(&seed, 4), busy.mine,
				 busy.imported, LENGTH);
	}
	return NULL;
}

TEST(everything_is_in_use)
{
	pthread_t thread[4];

	busy = scene_of();
	EQ(pthread_create(&thread[0], NULL, store, NULL), 0);
	for (uintptr_t i = 1; i < ARRAY_SIZE(thread); i++)
		EQ(pthread_create(&thread[i], NULL, use, (void *)i), 0);
	/* the threads are at work once the middle of the segment has changed */
	WAIT_UNTIL(busy.map[0][LENGTH / 8] != 0);
	take_out(&busy);
	FAILS(sci_flush(busy.gone), ENODEV);
	/* the threads go on for a while with objects of the removed adapter */
	for (unsigned int i = 0; i < 100; i++)
		ksft_pause();
	atomic_store(&stop, true);
	for (unsigned int i = 0; i < ARRAY_SIZE(thread); i++)
		EQ(pthread_join(thread[i], NULL), 0);
}

TEST(an_adapter_comes_back)
{
	struct scene s = scene_of();

	if (access(LOOP_DIR "/" KNOB_ADD, W_OK))
		SKIP("no %s", LOOP_DIR "/" KNOB_ADD);
	for (unsigned int i = 0; i < 5; i++) {
		take_out(&s);
		CHECK(!is_there(&s));
		OK(node_add(s.node));
		WAIT_UNTIL(!adapter_probe(s.stays, s.node));
	}
	/* objects of the old adapter stay dead */
	FAILS(sci_flush(s.gone), ENODEV);
	FAILS(remote_connect(s.stays, s.node, 1), ENOENT);
	adapters_find();
	CHECK(adapters() > s.out);
	everything(1, 1);
}

static void *dma_for_long(void *arg)
{
	const struct sci_dma_vec vec = { .length = 16u << 20 };
	static struct sci_dma_vec vecs[65536];
	const int *fd = arg;

	for (unsigned int i = 0; i < ARRAY_SIZE(vecs); i++)
		vecs[i] = vec;
	FAILS(dma_submit(fd[0], SCI_DMA_WAIT, fd[1], fd[2], vecs,
			 ARRAY_SIZE(vecs), 0), ECANCELED);
	return NULL;
}

TEST(others_need_not_be_waited_for)
{
	struct scene s = scene_of();
	struct sci_ioc_counters before, c;
	pthread_t thread;
	int fd[3];

	if (!adapter_can(0, SCI_CAP_DMA))
		SKIP("no DMA");
	fd[0] = OK(dma_create(s.stays, 65536));
	fd[1] = OK(segment_exported(s.stays, 2, 16u << 20));
	fd[2] = OK(remote_connect(s.stays, adapter_node(0), 2));
	OK(adapter_counters(s.stays, &before));
	EQ(pthread_create(&thread, NULL, dma_for_long, fd), 0);
	do {
		ksft_pause();
		OK(adapter_counters(s.stays, &c));
	} while (c.out_dma_bytes == before.out_dma_bytes);
	take_out(&s);
	/* the transfer was under way during the removal, and did not complete */
	OK(dma_abort(fd[0]));
	EQ(pthread_join(thread, NULL), 0);
}

/* ---- memory that does not answer ---- */

/* Create pages without contents: a thread that touches such a page waits. */
static int pages_that_wait(char **pages, unsigned int n)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = SYS(syscall(SYS_userfaultfd, O_CLOEXEC));

	if (fd < 0)
		SKIP("no userfaultfd");
	OK(SYS(ioctl(fd, UFFDIO_API, &api)));
	*pages = user_memory(n * PAGE);
	OK(SYS(madvise(*pages, n * PAGE, MADV_DONTNEED)));
	range.range.start = (uintptr_t)*pages;
	range.range.len = n * PAGE;
	OK(SYS(ioctl(fd, UFFDIO_REGISTER, &range)));
	return fd;
}

/* A thread in a call that touches such a page. */
struct stuck {
	int fd;
	unsigned long cmd;
	void *arg;
	pthread_t thread;
	int ret;
};

static void *get_stuck(void *arg)
{
	struct stuck *s = arg;

	s->ret = xioctl(s->fd, s->cmd, s->arg);
	return NULL;
}

static void stuck_begin(struct stuck *s, int waits)
{
	struct uffd_msg msg;

	EQ(pthread_create(&s->thread, NULL, get_stuck, s), 0);
	EQ(SYS(read(waits, &msg, sizeof(msg))), sizeof(msg));
	EQ(msg.event, UFFD_EVENT_PAGEFAULT);
}

/* Otherwise a process with memory behind FUSE could delay the removal of a card. */
TEST(memory_that_does_not_answer_holds_nothing_up)
{
	struct scene s = scene_of();
	struct sci_ioc_intr_trigger trigger = {
		.size = sizeof(trigger), .length = 64,
	};
	struct sci_ioc_dma_submit submit = {
		.size = sizeof(submit), .local_fd = s.mine,
		.remote_fd = s.imported, .nr_vecs = 1,
	};
	struct stuck stuck[3];
	__u32 number;
	char *pages;
	int waits;

	if (s.queue < 0)
		SKIP("no DMA");
	OK(intr_create(s.gone, SCI_INTR_WITH_DATA, &number));
	waits = pages_that_wait(&pages, ARRAY_SIZE(stuck));
	submit.vecs = (uintptr_t)pages + PAGE;
	trigger.data = (uintptr_t)pages + 2 * PAGE;
	stuck[0] = (struct stuck){ s.gone, SCI_IOC_QUERY, pages, 0, 0 };
	stuck[1] = (struct stuck){ s.queue, SCI_IOC_DMA_SUBMIT, &submit, 0, 0 };
	stuck[2] = (struct stuck){
		OK(intr_connect(s.gone, s.node, number, SCI_CONNECT_DATA)),
		SCI_IOC_INTR_TRIGGER, &trigger, 0, 0,
	};
	for (unsigned int i = 0; i < ARRAY_SIZE(stuck); i++)
		stuck_begin(&stuck[i], waits);
	take_out(&s);
	CHECK(!is_there(&s));
	/* closing the userfaultfd ends the waits with zeroed pages */
	close(waits);
	for (unsigned int i = 0; i < ARRAY_SIZE(stuck); i++) {
		EQ(pthread_join(stuck[i].thread, NULL), 0);
		if (i)
			EQ(stuck[i].ret, -ENODEV);
		else
			EQ(stuck[i].ret, -EINVAL);
	}
}

/* ---- memory of a pool ---- */

#define POOL_DRIVER	"/sys/bus/pci/drivers/sci_pool"

/* Exit as soon as an ioctl reports that the adapter is removed, with maps of its memory. */
static void segment_holder(struct peer *self, void *arg)
{
	struct sci_ioc_query query;
	volatile uint32_t *map;
	int fd;

	(void)arg;
	adapters_find();
	fd = OK(adapter_open(0));
	for (__u32 id = 1; id <= 8; id++)
		segment_of(fd, id, &map);
	peer_send(self, "ready");
	while (adapter_query(fd, &query) != -ENODEV)
		;
}

TEST(processes_end_while_their_adapter_takes_its_memory_back)
{
	const char *device;
	glob_t found;

	NEED_ROOT();
	if (glob(POOL_DRIVER "/0*", 0, NULL, &found))
		SKIP("no pool on the PCI bus");
	device = strrchr(found.gl_pathv[0], '/') + 1;
	for (unsigned int i = 0; i < 20; i++) {
		struct peer *p = peer_spawn(segment_holder, NULL);

		peer_expect(p, "ready");
		OK(write_text(POOL_DRIVER "/unbind", device));
		peer_join(p);
		OK(write_text(POOL_DRIVER "/bind", device));
	}
	globfree(&found);
	adapters_find();
}
