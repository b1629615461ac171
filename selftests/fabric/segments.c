// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Segments: creation, sharing, connections, maps. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <sisci_api.h>

#include "selftests/harness.h"

#define PAGE	((size_t)4096)
#define SIZE	(4 * PAGE)
#define NOBODY	65534

/* ---- creating ---- */

static void check_size(sci_desc_t sd, unsigned int id, size_t size)
{
	sci_local_segment_t s = test_segment(sd, id, size, 0);
	sci_remote_segment_t r = test_connect(sd, 4, id);
	volatile unsigned char *there;
	volatile unsigned char *here;
	sci_map_t lmap, rmap;

	CHECK_EQ(SCIGetLocalSegmentSize(s), size);
	CHECK_EQ(SCIGetRemoteSegmentSize(r), size);
	here = test_map_local(s, &lmap);
	there = test_map_remote(r, &rmap);
	there[0] = 1;
	WAIT_UNTIL(here[0] == 1, TEST_WAIT_MS);
	there[size - 1] = 2;
	WAIT_UNTIL(here[size - 1] == 2, TEST_WAIT_MS);
	here[size / 2] = 3;
	CHECK_EQ(there[size / 2], 3);
	CHECK_OK(SCIUnmapSegment(lmap, 0, &err));
	CHECK_OK(SCIUnmapSegment(rmap, 0, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
}

TEST(sizes_from_one_byte)
{
	static const size_t sizes[] = {
		1, 2, 3, 7, 8, 63, 64, 65, 100, PAGE - 1, PAGE, PAGE + 1,
		65535, 65536, 1 << 20, (1 << 20) + 1, 64 << 20
	};
	sci_desc_t sd = test_open();

	for (unsigned int i = 0; i < ARRAY_LEN(sizes); i++)
		check_size(sd, i, sizes[i]);
	CHECK_OK(SCIClose(sd, 0, &err));
}

TEST(size_of_one_gibibyte)
{
	const size_t size = (size_t)1 << 30;
	sci_desc_t sd = test_open();
	sci_local_segment_t s;
	sci_error_t e = ERR_OF(SCICreateSegment(sd, &s, 1, size, NULL, NULL, 0, &err));

	if (e == SCI_ERR_NOSPC && !test_on_shm())
		SKIP("a pool may be smaller");
	CHECK_EQ(e, SCI_ERR_OK);
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	check_size(sd, 1, size);
}

TEST(size_zero)
{
	sci_local_segment_t s = NULL;
	sci_desc_t sd = test_open();

	CHECK_ERR(SCICreateSegment(sd, &s, 1, 0, NULL, NULL, 0, &err),
		  SCI_ERR_SIZE_ALIGNMENT);
	CHECK(s == NULL);
	test_segment(sd, 1, 1, 0);
}

TEST(size_too_large_leaves_nothing_behind)
{
	static const size_t sizes[] = {
		(size_t)1 << 46, (size_t)1 << 62, SIZE_MAX - PAGE, SIZE_MAX
	};
	sci_desc_t sd = test_open();
	sci_local_segment_t s = NULL;

	test_segment(sd, 2, PAGE, 0);
	leak_check_begin();
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		CHECK_ERR(SCICreateSegment(sd, &s, 1, sizes[i], NULL, NULL, 0,
					   &err), SCI_ERR_NOSPC);
	CHECK(s == NULL);
	leak_check_end();
	test_segment(sd, 1, PAGE, 0);
}

TEST(ids_are_used_once_per_node)
{
	sci_local_segment_t s = NULL, first;
	sci_desc_t sd = test_open();

	first = test_segment(sd, 1, PAGE, 0);
	CHECK_ERR(SCICreateSegment(sd, &s, 1, PAGE, NULL, NULL, 0, &err),
		  SCI_ERR_SEGMENTID_USED);
	CHECK_ERR(SCICreateSegment(sd, &s, 1, PAGE, NULL, NULL, SCI_FLAG_EMPTY, &err),
		  SCI_ERR_SEGMENTID_USED);
	CHECK(s == NULL);
	CHECK_OK(SCIRemoveSegment(first, 0, &err));
	test_segment(sd, 1, PAGE, 0);
}

TEST(flags_and_parameters_that_are_illegal)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s;

	CHECK_ERR(SCICreateSegment(sd, &s, 1, PAGE, NULL, NULL, 0x80000000,
				   &err), SCI_ERR_ILLEGAL_FLAG);
	CHECK_ERR(SCICreateSegment(sd, NULL, 1, PAGE, NULL, NULL, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCICreateSegment(NULL, &s, 1, PAGE, NULL, NULL, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIPrepareSegment(NULL, 0, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	s = test_segment(sd, 1, PAGE, 0);
	CHECK_ERR(SCIPrepareSegment(s, 0, 0x80000000, &err),
		  SCI_ERR_ILLEGAL_FLAG);
	CHECK_ERR(SCISetSegmentAvailable(s, 0, SCI_FLAG_USE_CALLBACK, &err),
		  SCI_ERR_ILLEGAL_FLAG);
	CHECK_ERR(SCIShareSegment(s, SCI_FLAG_USE_CALLBACK, &err),
		  SCI_ERR_ILLEGAL_FLAG);
	CHECK_ERR(SCIRemoveSegment(s, SCI_FLAG_USE_CALLBACK, &err),
		  SCI_ERR_ILLEGAL_FLAG);
	CHECK_ERR(SCIClose(sd, 0, &err), SCI_ERR_BUSY);
	SCIRemoveSegment(s, 0, NULL);
	CHECK_OK(SCIClose(sd, 0, &err));
}

/* Each entry is the combination of a known program. */
TEST(flags_that_programs_combine)
{
	static const unsigned int flags[] = {
		0, SCI_FLAG_AUTO_ID, SCI_FLAG_PRIVATE, SCI_FLAG_DMA_GLOBAL,
		SCI_FLAG_DMA_GLOBAL | SCI_FLAG_AUTO_ID, SCI_FLAG_BROADCAST,
		SCI_FLAG_BROADCAST | SCI_FLAG_DMA_GLOBAL | SCI_FLAG_AUTO_ID,
		SCI_FLAG_BROADCAST | SCI_FLAG_ALLOW_UNICAST, SCI_FLAG_EMPTY,
		SCI_FLAG_EMPTY | SCI_FLAG_DMA_GLOBAL,
		SCI_FLAG_EMPTY | SCI_FLAG_PRIVATE
	};
	sci_desc_t sd = test_open();
	bool broadcast = test_has_broadcast();

	for (unsigned int i = 0; i < ARRAY_LEN(flags); i++) {
		sci_local_segment_t s;

		if (flags[i] & SCI_FLAG_BROADCAST && !broadcast)
			continue;
		CHECK_OK(SCICreateSegment(sd, &s, 100 + i, PAGE, NULL, NULL,
					  flags[i], &err));
		CHECK_OK(SCIRemoveSegment(s, 0, &err));
	}
	CHECK_OK(SCIClose(sd, 0, &err));
}

TEST(a_callback_without_its_flag_is_ignored)
{
	static struct recorder rec;
	sci_desc_t sd = test_open();
	sci_local_segment_t s;
	unsigned int node;

	recorder_init(&rec);
	CHECK_OK(SCICreateSegment(sd, &s, 1, PAGE, record_local_segment, &rec,
				  0, &err));
	CHECK_OK(SCIPrepareSegment(s, 0, 0, &err));
	CHECK_OK(SCISetSegmentAvailable(s, 0, 0, &err));
	test_connect(sd, 4, 1);
	CHECK_OK(SCIWaitForLocalSegmentEvent(s, &node, NULL, 5000, 0, &err));
	CHECK_EQ(recorder_count(&rec), 0);
}

TEST(more_segments_than_the_soft_limit_of_descriptors)
{
	sci_desc_t sd = test_open();
	struct rlimit rl;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &rl), 0);
	if (rl.rlim_max < 2048)
		SKIP("RLIMIT_NOFILE is %lu", (unsigned long)rl.rlim_max);
	rl.rlim_cur = 64;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &rl), 0);
	for (unsigned int i = 0; i < 300; i++) {
		test_segment(sd, i, PAGE, 0);
		test_map_remote(test_connect(sd, 4, i), NULL);
	}
}

/* ---- states ---- */

TEST(available_only_when_prepared)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s;

	CHECK_OK(SCICreateSegment(sd, &s, 1, PAGE, NULL, NULL, 0, &err));
	CHECK_ERR(SCISetSegmentAvailable(s, 0, 0, &err),
		  SCI_ERR_SEGMENT_NOT_PREPARED);
	CHECK_ERR(SCISetSegmentUnavailable(s, 0, 0, &err),
		  SCI_ERR_ILLEGAL_OPERATION);
	CHECK_OK(SCIPrepareSegment(s, 0, SCI_FLAG_DMA_GLOBAL |
				   SCI_FLAG_BROADCAST, &err));
	CHECK_ERR(SCISetSegmentUnavailable(s, 0, 0, &err),
		  SCI_ERR_ILLEGAL_OPERATION);
	CHECK_OK(SCISetSegmentAvailable(s, 0, 0, &err));
	CHECK_OK(SCISetSegmentUnavailable(s, 0, 0, &err));
	CHECK_OK(SCISetSegmentAvailable(s, 0, 0, &err));
	CHECK_OK(SCIDisconnectSegment(test_connect(sd, 4, 1), 0, &err));
}

/* Flags as a published program passes them. */
TEST(flags_of_a_neighbouring_call_are_accepted)
{
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;
	sci_local_segment_t s;

	CHECK_OK(SCICreateSegment(sd, &s, 1, PAGE, NULL, NULL, 0, &err));
	CHECK_OK(SCIPrepareSegment(s, 0, SCI_FLAG_NOTIFY, &err));
	CHECK_OK(SCISetSegmentAvailable(s, 0, SCI_FLAG_NOTIFY |
					SCI_FLAG_DMA_SOURCE_ONLY, &err));
	CHECK_OK(SCIShareSegment(s, SCI_FLAG_BROADCAST, &err));
	r = test_connect(sd, 4, 1);
	CHECK_OK(SCISetSegmentUnavailable(s, 0, SCI_FLAG_FORCE_REMOVE, &err));
	/* ... and have no effect */
	CHECK_ERR(SCIRemoveSegment(s, SCI_FLAG_NOTIFY |
				   SCI_FLAG_FORCE_DISCONNECT, &err),
		  SCI_ERR_BUSY);
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
}

TEST(a_dma_source_is_never_available)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s;

	CHECK_OK(SCICreateSegment(sd, &s, 1, PAGE, NULL, NULL, 0, &err));
	CHECK_OK(SCIPrepareSegment(s, 0, SCI_FLAG_DMA_SOURCE_ONLY, &err));
	CHECK_ERR(SCISetSegmentAvailable(s, 0, 0, &err),
		  SCI_ERR_ILLEGAL_OPERATION);
}

TEST(private_segments_have_no_id)
{
	sci_local_segment_t s[3], open;
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;
	char *mem[3];

	for (int i = 0; i < 3; i++) {
		CHECK_OK(SCICreateSegment(sd, &s[i], 1, PAGE, NULL, NULL,
					  SCI_FLAG_PRIVATE, &err));
		mem[i] = test_map_local(s[i], NULL);
		memset(mem[i], i, PAGE);
		CHECK_OK(SCIPrepareSegment(s[i], 0, 0, &err));
		CHECK_ERR(SCISetSegmentAvailable(s[i], 0, 0, &err),
			  SCI_ERR_ILLEGAL_OPERATION);
		CHECK_ERR(SCIShareSegment(s[i], 0, &err),
			  SCI_ERR_ILLEGAL_OPERATION);
	}
	for (int i = 0; i < 3; i++)
		CHECK_EQ(mem[i][PAGE - 1], i);
	CHECK_ERR(SCIConnectSegment(sd, &r, 4, 1, 0, NULL, NULL, 0, 0, &err),
		  SCI_ERR_NO_SUCH_SEGMENT);
	open = test_segment(sd, 1, PAGE, 0);
	CHECK_OK(SCIRemoveSegment(open, 0, &err));
}

/* ---- EMPTY segments and registered memory ---- */

static sci_local_segment_t empty(sci_desc_t sd, unsigned int id, size_t size)
{
	sci_local_segment_t s;

	CHECK_OK(SCICreateSegment(sd, &s, id, size, NULL, NULL, SCI_FLAG_EMPTY,
				  &err));
	return s;
}

static void *pages(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

TEST(empty_segments_have_no_memory)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s = empty(sd, 1, SIZE);
	sci_map_t map;

	CHECK_ERR(SCIMapLocalSegment(s, &map, 0, SIZE, NULL, 0, &err),
		  SCI_ERR_ILLEGAL_OPERATION);
	CHECK_ERR(SCIPrepareSegment(s, 0, 0, &err), SCI_ERR_ILLEGAL_OPERATION);
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
}

static void reader(struct peer *self, void *arg)
{
	volatile unsigned char *mem;
	sci_remote_segment_t r;
	sci_map_t map;

	(void)arg;
	peer_expect(self, "registered");
	r = test_connect(test_open(), 4, 1);
	CHECK_EQ(SCIGetRemoteSegmentSize(r), SIZE);
	mem = test_map_remote(r, &map);
	CHECK(test_filled(mem, SIZE, 1));
	test_fill(mem, SIZE, 2);
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	peer_send(self, "written");
	peer_expect(self, "removed");
}

static void check_register(unsigned char *mem, unsigned int flags)
{
	struct peer *p = peer_spawn(8, reader, NULL);
	sci_desc_t sd = test_open();
	sci_local_segment_t s = empty(sd, 1, SIZE);
	unsigned char *again;
	sci_map_t map;

	test_fill(mem, SIZE, 1);
	CHECK_OK(SCIRegisterSegmentMemory(mem, SIZE, s, flags, &err));
	CHECK(test_filled(mem, SIZE, 1));
	again = test_map_local(s, &map);
	CHECK(test_filled(again, SIZE, 1));
	CHECK_OK(SCIPrepareSegment(s, 0, 0, &err));
	CHECK_OK(SCISetSegmentAvailable(s, 0, 0, &err));
	peer_send(p, "registered");
	peer_expect(p, "written");
	CHECK(test_filled(mem, SIZE, 2));
	CHECK(test_filled(again, SIZE, 2));
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	/* the memory is private again, with its contents */
	CHECK(test_filled(mem, SIZE, 2));
	test_fill(mem, SIZE, 3);
	CHECK(test_filled(mem, SIZE, 3));
	peer_send(p, "removed");
	peer_join(p);
	SCITerminate();
	CHECK(test_filled(mem, SIZE, 3));
}

TEST(registered_pages_are_shared_in_place)
{
	check_register(pages(SIZE), 0);
}

TEST(registered_pages_may_be_locked)
{
	check_register(pages(SIZE), SCI_FLAG_LOCK_USER_MEM);
}

TEST(registered_heap)
{
	unsigned char *mem = aligned_alloc(PAGE, SIZE);

	CHECK(mem != NULL);
	check_register(mem, 0);
	free(mem);
}

TEST(registered_part_of_a_mapping)
{
	unsigned char *mem = pages(SIZE + 2 * PAGE);

	memset(mem, 0x11, PAGE);
	memset(mem + PAGE + SIZE, 0x22, PAGE);
	check_register(mem + PAGE, 0);
	for (size_t i = 0; i < PAGE; i++) {
		CHECK_EQ(mem[i], 0x11);
		CHECK_EQ(mem[PAGE + SIZE + i], 0x22);
	}
}

TEST(registered_pages_survive_terminate)
{
	unsigned char *mem = pages(SIZE);
	sci_local_segment_t s;

	s = empty(test_open(), 1, SIZE);
	CHECK_OK(SCIRegisterSegmentMemory(mem, SIZE, s, 0, &err));
	test_fill(mem, SIZE, 1);
	SCITerminate();
	CHECK(test_filled(mem, SIZE, 1));
	test_fill(mem, SIZE, 2);
	CHECK(test_filled(mem, SIZE, 2));
	CHECK_EQ(count_shared_maps(), 0);
}

static void check_no_register(sci_desc_t sd, void *mem, size_t size,
			      sci_error_t want)
{
	sci_local_segment_t s = empty(sd, 1, SIZE);

	CHECK_ERR(SCIRegisterSegmentMemory(mem, size, s, 0, &err), want);
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
}

TEST(registering_what_is_no_private_memory)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	sci_desc_t sd = test_open();
	void *hole = pages(SIZE);
	void *p;

	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check_no_register(sd, p, SIZE, SCI_ERR_ILLEGAL_ADDRESS);
	p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	CHECK(p != MAP_FAILED);
	check_no_register(sd, p, SIZE, SCI_ERR_ILLEGAL_ADDRESS);
	p = pages(SIZE);
	CHECK_EQ(mprotect(p, SIZE, PROT_READ), 0);
	check_no_register(sd, p, SIZE, SCI_ERR_ILLEGAL_ADDRESS);
	CHECK_EQ(munmap((char *)hole + PAGE, PAGE), 0);
	check_no_register(sd, hole, SIZE, SCI_ERR_ILLEGAL_ADDRESS);
	check_no_register(sd, NULL, SIZE, SCI_ERR_ILLEGAL_ADDRESS);
	close(fd);
}

TEST(registering_a_stack)
{
	unsigned char room[SIZE + PAGE];
	uintptr_t at = ((uintptr_t)room + PAGE - 1) & ~(PAGE - 1);
	sci_desc_t sd = test_open();

	memset(room, 1, sizeof(room));
	check_no_register(sd, (void *)at, SIZE, SCI_ERR_ILLEGAL_ADDRESS);
	CHECK_EQ(room[SIZE / 2], 1);
}

TEST(registering_with_wrong_arguments)
{
	unsigned char *mem = pages(SIZE + PAGE);
	sci_desc_t sd = test_open();
	sci_local_segment_t s;

	check_no_register(sd, mem + 1, SIZE, SCI_ERR_ILLEGAL_ADDRESS);
	check_no_register(sd, mem, SIZE - 1, SCI_ERR_SIZE_ALIGNMENT);
	check_no_register(sd, mem, SIZE + PAGE, SCI_ERR_OUT_OF_RANGE);
	check_no_register(sd, mem, SIZE - PAGE, SCI_ERR_OUT_OF_RANGE);
	s = test_segment(sd, 2, SIZE, 0);
	CHECK_ERR(SCIRegisterSegmentMemory(mem, SIZE, s, 0, &err),
		  SCI_ERR_ILLEGAL_OPERATION);
	s = empty(sd, 3, SIZE);
	CHECK_ERR(SCIRegisterSegmentMemory(mem, SIZE, s, SCI_FLAG_NOTIFY,
					   &err), SCI_ERR_ILLEGAL_FLAG);
	CHECK_OK(SCIRegisterSegmentMemory(mem, SIZE, s, 0, &err));
	CHECK_ERR(SCIRegisterSegmentMemory(pages(SIZE), SIZE, s, 0, &err),
		  SCI_ERR_ILLEGAL_OPERATION);
	/* on shm registered memory is not private any more; other fabrics pin it */
	if (test_on_shm())
		check_no_register(sd, mem, SIZE, SCI_ERR_ILLEGAL_ADDRESS);
}

TEST(physical_memory_is_not_reachable)
{
	sci_desc_t sd = test_open();
	sci_error_t e;

	test_needs_shm();
	e = ERR_OF(SCIAttachPhysicalMemory(0x1000, NULL, 0, SIZE,
					   empty(sd, 1, SIZE), 0, &err));
	CHECK(e == SCI_ERR_NOT_SUPPORTED || e == SCI_ERR_ACCESS);
}

/* ---- attaching ---- */

static sci_error_t attach(sci_desc_t sd, unsigned int id,
			  sci_local_segment_t *s)
{
	return ERR_OF(SCIAttachLocalSegment(sd, s, id, NULL, NULL, NULL, 0,
					    &err));
}

static void attacher(struct peer *self, void *arg)
{
	sci_local_segment_t s = NULL;
	sci_desc_t sd = test_open();
	unsigned char *mem;
	sci_map_t map;

	(void)arg;
	CHECK_EQ(attach(sd, 1, &s), SCI_ERR_NO_SUCH_SEGMENT);
	CHECK(s == NULL);
	peer_send(self, "none");
	peer_expect(self, "created");
	CHECK_EQ(attach(sd, 1, &s), SCI_ERR_ACCESS);
	peer_send(self, "not shared");
	peer_expect(self, "shared");
	CHECK_EQ(attach(sd, 1, &s), SCI_ERR_OK);
	CHECK_EQ(SCIGetLocalSegmentId(s), 1);
	CHECK_EQ(SCIGetLocalSegmentSize(s), SIZE);
	mem = test_map_local(s, &map);
	CHECK(test_filled(mem, SIZE, 1));
	test_fill(mem, SIZE, 2);
	CHECK_ERR(SCIRemoveSegment(s, 0, &err), SCI_ERR_BUSY);
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	peer_send(self, "detached");
	CHECK_EQ(attach(sd, 1, &s), SCI_ERR_OK);
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	CHECK_OK(SCIClose(sd, 0, &err));
}

TEST(attach_to_what_is_shared)
{
	struct peer *p = peer_spawn(4, attacher, NULL);
	sci_desc_t sd = test_open();
	sci_local_segment_t s;
	unsigned char *mem;

	peer_expect(p, "none");
	CHECK_OK(SCICreateSegment(sd, &s, 1, SIZE, NULL, NULL, 0, &err));
	mem = test_map_local(s, NULL);
	test_fill(mem, SIZE, 1);
	peer_send(p, "created");
	peer_expect(p, "not shared");
	CHECK_OK(SCIShareSegment(s, 0, &err));
	peer_send(p, "shared");
	peer_expect(p, "detached");
	CHECK(test_filled(mem, SIZE, 2));
	peer_join(p);
	/* the detach has not removed the creator's segment */
	CHECK_OK(SCIPrepareSegment(s, 0, 0, &err));
	CHECK_OK(SCISetSegmentAvailable(s, 0, 0, &err));
	test_connect(sd, 4, 1);
}

static void other_node(struct peer *self, void *arg)
{
	sci_local_segment_t s;

	(void)arg;
	peer_expect(self, "shared");
	CHECK_EQ(attach(test_open(), 1, &s), SCI_ERR_NO_SUCH_SEGMENT);
}

TEST(attach_from_another_node)
{
	struct peer *p = peer_spawn(8, other_node, NULL);

	CHECK_OK(SCIShareSegment(test_segment(test_open(), 1, SIZE, 0), 0,
				 &err));
	peer_send(p, "shared");
	peer_join(p);
}

TEST(attach_in_the_same_process)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 1, SIZE, 0), a;

	CHECK_EQ(attach(sd, 1, &a), SCI_ERR_ACCESS);
	CHECK_OK(SCIShareSegment(s, 0, &err));
	CHECK_EQ(attach(sd, 1, &a), SCI_ERR_OK);
	test_fill(test_map_local(s, NULL), SIZE, 1);
	CHECK(test_filled(test_map_local(a, NULL), SIZE, 1));
}

static void creator(struct peer *self, void *arg)
{
	sci_local_segment_t s = test_segment(test_open(), 1, SIZE, 0);
	sci_map_t map;

	test_fill(test_map_local(s, &map), SIZE, 1);
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_OK(SCIShareSegment(s, 0, &err));
	peer_send(self, "ready");
	peer_expect(self, "end");
	if (!arg)
		raise(SIGKILL);
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	peer_expect(self, "leave");
}

static void check_creator_goes(void *how, sci_segment_cb_reason_t reason)
{
	static struct recorder rec;
	struct peer *p = peer_spawn(4, creator, how);
	sci_desc_t sd = test_open();
	sci_local_segment_t s;
	struct record r;

	recorder_init(&rec);
	peer_expect(p, "ready");
	CHECK_OK(SCIAttachLocalSegment(sd, &s, 1, NULL, record_local_segment,
				       &rec, SCI_FLAG_USE_CALLBACK, &err));
	peer_send(p, "end");
	r = recorder_get(&rec, 0);
	CHECK_EQ(r.reason, reason);
	CHECK(r.handle == s);
	/* the memory stays */
	CHECK(test_filled(test_map_local(s, NULL), SIZE, 1));
	CHECK_EQ(recorder_count(&rec), 1);
	/* the id is free */
	test_segment(sd, 1, SIZE, 0);
}

TEST(the_creator_of_an_attached_segment_dies)
{
	check_creator_goes(NULL, SCI_CB_LOST);
}

TEST(the_creator_of_an_attached_segment_removes_it)
{
	static char removes[] = "removes";

	check_creator_goes(removes, SCI_CB_DISCONNECT);
}

/* ---- maps ---- */

static const size_t offsets[] = {
	0, 1, 2, 63, 64, 100, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE + 17,
	SIZE - PAGE - 1
};

static const size_t lengths[] = { 1, 3, 64, PAGE - 1, PAGE, PAGE + 1 };

static void check_local_part(sci_local_segment_t s, const unsigned char *mem,
			     size_t offset, size_t size)
{
	unsigned char *part;
	sci_map_t map;

	CHECK_OK(part = SCIMapLocalSegment(s, &map, offset, size, NULL, 0,
					   &err));
	CHECK(!memcmp(part, mem + offset, size));
	part[size - 1] ^= 0xff;
	CHECK_EQ(mem[offset + size - 1], part[size - 1]);
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
}

static void check_remote_part(sci_remote_segment_t r,
			      const volatile unsigned char *mem,
			      size_t offset, size_t size)
{
	const unsigned char last = mem[offset + size - 1] ^ 0xff;
	volatile unsigned char *part;
	sci_map_t map;

	CHECK_OK(part = SCIMapRemoteSegment(r, &map, offset, size, NULL, 0,
					    &err));
	CHECK(!memcmp((void *)part, (const void *)(mem + offset), size));
	part[size - 1] ^= 0xff;
	WAIT_UNTIL(mem[offset + size - 1] == last, TEST_WAIT_MS);
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
}

TEST(maps_begin_and_end_at_any_byte)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 1, SIZE, 0);
	sci_remote_segment_t r = test_connect(sd, 4, 1);
	unsigned char *mem = test_map_local(s, NULL);

	test_fill(mem, SIZE, 1);
	for (size_t i = 0; i < ARRAY_LEN(offsets); i++)
		for (size_t k = 0; k < ARRAY_LEN(lengths); k++) {
			check_local_part(s, mem, offsets[i], lengths[k]);
			check_remote_part(r, mem, offsets[i], lengths[k]);
		}
}

TEST(many_maps_of_one_segment)
{
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;
	volatile unsigned char *part[200];
	unsigned char *mem;
	sci_map_t map;

	mem = test_map_local(test_segment(sd, 1, SIZE, 0), NULL);
	r = test_connect(sd, 4, 1);
	for (size_t i = 0; i < ARRAY_LEN(part); i++) {
		CHECK_OK(part[i] = SCIMapRemoteSegment(r, &map, 1 + i, 500,
						       NULL, 0, &err));
		part[i][0] = i;
	}
	/* a store that does not fill a packet is delayed */
	for (size_t i = 0; i < ARRAY_LEN(part); i++)
		WAIT_UNTIL(((volatile unsigned char *)mem)[1 + i] == i,
			   TEST_WAIT_MS);
	/* SCITerminate() unmaps maps whose handles are lost */
	SCITerminate();
	CHECK_EQ(count_shared_maps(), 0);
}

TEST(maps_outside_the_segment)
{
	static const size_t bad[][2] = {
		{ 0, SIZE + 1 }, { 1, SIZE }, { SIZE, 1 }, { SIZE + 1, 1 },
		{ SIZE - 1, 2 }, { SIZE_MAX, 1 }, { SIZE_MAX, 2 },
		{ 1, SIZE_MAX }, { PAGE, SIZE_MAX - PAGE + 1 }
	};
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 1, SIZE, 0);
	sci_remote_segment_t r = test_connect(sd, 4, 1);
	const volatile void *p;
	sci_map_t map;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CHECK_ERR(p = SCIMapLocalSegment(s, &map, bad[i][0], bad[i][1],
						 NULL, 0, &err),
			  SCI_ERR_OUT_OF_RANGE);
		CHECK(p == NULL);
		CHECK_ERR(p = SCIMapRemoteSegment(r, &map, bad[i][0],
						  bad[i][1], NULL, 0, &err),
			  SCI_ERR_OUT_OF_RANGE);
		CHECK(p == NULL);
	}
	CHECK_ERR(SCIMapLocalSegment(s, &map, 0, 0, NULL, 0, &err),
		  SCI_ERR_SIZE_ALIGNMENT);
	CHECK_ERR(SCIMapRemoteSegment(r, &map, 0, 0, NULL, 0, &err),
		  SCI_ERR_SIZE_ALIGNMENT);
}

/*
 * Return address space that nothing is mapped to. It is far below all maps, so that the kernel
 * does not choose it for an mmap() of another thread.
 */
static char *hole(size_t size)
{
	char *top = pages(size), *at = top;

	do
		at -= 1ul << 30;
	while (mmap(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		    0) != at);
	CHECK_EQ(munmap(at, size), 0);
	CHECK_EQ(munmap(top, size), 0);
	return at;
}

TEST(maps_at_a_fixed_address)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 1, SIZE, 0);
	sci_remote_segment_t r = test_connect(sd, 4, 1);
	const volatile void *p;
	char *at = hole(SIZE);
	sci_map_t map;

	CHECK_OK(p = SCIMapLocalSegment(s, &map, 0, SIZE, at,
					SCI_FLAG_FIXED_MAP_ADDR, &err));
	CHECK(p == at);
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_OK(p = SCIMapRemoteSegment(r, &map, 0, SIZE, at,
					 SCI_FLAG_FIXED_MAP_ADDR, &err));
	CHECK(p == at);
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_OK(p = SCIMapLocalSegment(s, &map, PAGE + 100, 200, at + 100,
					SCI_FLAG_FIXED_MAP_ADDR, &err));
	CHECK(p == at + 100);
}

TEST(maps_at_a_fixed_address_that_is_taken)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 1, SIZE, 0);
	sci_remote_segment_t r = test_connect(sd, 4, 1);
	unsigned char *mem = pages(SIZE);
	sci_map_t map;

	test_fill(mem, SIZE, 1);
	CHECK_ERR(SCIMapLocalSegment(s, &map, 0, SIZE, mem,
				     SCI_FLAG_FIXED_MAP_ADDR, &err),
		  SCI_ERR_ILLEGAL_ADDRESS);
	CHECK_ERR(SCIMapRemoteSegment(r, &map, 0, SIZE, mem,
				      SCI_FLAG_FIXED_MAP_ADDR, &err),
		  SCI_ERR_ILLEGAL_ADDRESS);
	/* only the last page is in the way */
	CHECK_EQ(munmap(mem, SIZE - PAGE), 0);
	CHECK_ERR(SCIMapLocalSegment(s, &map, 0, SIZE, mem,
				     SCI_FLAG_FIXED_MAP_ADDR, &err),
		  SCI_ERR_ILLEGAL_ADDRESS);
	CHECK_ERR(SCIMapLocalSegment(s, &map, 0, SIZE, NULL,
				     SCI_FLAG_FIXED_MAP_ADDR, &err),
		  SCI_ERR_ILLEGAL_ADDRESS);
	/* without the flag, the address is ignored */
	CHECK_OK(SCIMapLocalSegment(s, &map, 0, SIZE, mem, 0, &err));
}

TEST(maps_at_a_fixed_address_that_does_not_fit_the_offset)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 1, SIZE, 0);
	char *at = hole(SIZE);
	sci_map_t map;

	CHECK_ERR(SCIMapLocalSegment(s, &map, 0, PAGE, at + 1,
				     SCI_FLAG_FIXED_MAP_ADDR, &err),
		  SCI_ERR_OFFSET_ALIGNMENT);
	CHECK_ERR(SCIMapLocalSegment(s, &map, 1, PAGE, at,
				     SCI_FLAG_FIXED_MAP_ADDR, &err),
		  SCI_ERR_OFFSET_ALIGNMENT);
}

static sigjmp_buf after_fault;

static void on_fault(int sig)
{
	siglongjmp(after_fault, sig);
}

static bool store_faults(volatile char *p)
{
	struct sigaction sa = { .sa_handler = on_fault }, old;
	volatile bool faults = true;

	sigaction(SIGSEGV, &sa, &old);
	if (!sigsetjmp(after_fault, 1)) {
		*p = 1;
		faults = false;
	}
	sigaction(SIGSEGV, &old, NULL);
	return faults;
}

TEST(readonly_maps)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 1, SIZE, 0);
	sci_remote_segment_t r = test_connect(sd, 4, 1);
	volatile char *here, *there;
	sci_map_t map;
	char c = 1;

	memset(test_map_local(s, NULL), 7, SIZE);
	CHECK_OK(here = SCIMapLocalSegment(s, &map, 0, SIZE, NULL,
					   SCI_FLAG_READONLY_MAP, &err));
	CHECK_OK(there = SCIMapRemoteSegment(r, &map, 0, SIZE, NULL,
					     SCI_FLAG_READONLY_MAP, &err));
	CHECK_EQ(here[0], 7);
	CHECK_EQ(there[SIZE - 1], 7);
	CHECK(store_faults(here));
	CHECK(store_faults(there));
	CHECK_ERR(SCIMemCpy(NULL, &c, map, 0, 1, 0, &err), SCI_ERR_ACCESS);
	CHECK_OK(SCIMemCpy(NULL, &c, map, 0, 1, SCI_FLAG_BLOCK_READ, &err));
	CHECK_EQ(c, 7);
}

TEST(map_flags)
{
	static const unsigned int hints[] = {
		SCI_FLAG_LOCK_OPERATION, SCI_FLAG_READ_PREFETCH_AGGR_HOLD_MAP,
		SCI_FLAG_READ_PREFETCH_NO_HOLD_MAP, SCI_FLAG_DMOVE_MAP,
		SCI_FLAG_WRITES_DISABLE_GATHER_MAP,
		SCI_FLAG_DISABLE_128_BYTES_PACKETS,
		SCI_FLAG_WRITE_BACK_CACHE_MAP, SCI_FLAG_NO_MEMORY_LOOPBACK_MAP
	};
	static const unsigned int missing[] = {
		SCI_FLAG_CONDITIONAL_INTERRUPT_MAP,
		SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP
	};
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 1, SIZE, 0);
	sci_remote_segment_t r = test_connect(sd, 4, 1);
	sci_map_t map;

	for (size_t i = 0; i < ARRAY_LEN(hints); i++) {
		CHECK_OK(SCIMapRemoteSegment(r, &map, 0, SIZE, NULL, hints[i],
					     &err));
		CHECK_OK(SCIUnmapSegment(map, 0, &err));
		CHECK_ERR(SCIMapLocalSegment(s, &map, 0, SIZE, NULL, hints[i],
					     &err), SCI_ERR_ILLEGAL_FLAG);
	}
	test_needs_shm();
	for (size_t i = 0; i < ARRAY_LEN(missing); i++)
		CHECK_ERR(SCIMapRemoteSegment(r, &map, 0, SIZE, NULL,
					      missing[i], &err),
			  SCI_ERR_FLAG_NOT_IMPLEMENTED);
}

TEST(an_address_is_no_map)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 1, SIZE, 0);
	sci_map_t map;
	void *mem = test_map_local(s, &map);

	CHECK_ERR(SCIUnmapSegment(mem, 0, &err), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIUnmapSegment(NULL, 0, &err), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIUnmapSegment((sci_map_t)s, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_ERR(SCIUnmapSegment(map, 0, &err), SCI_ERR_ILLEGAL_PARAMETER);
}

/* ---- connections ---- */

TEST(disconnect_is_busy_while_mapped)
{
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;
	sci_map_t map;

	test_segment(sd, 1, SIZE, 0);
	r = test_connect(sd, 4, 1);
	test_map_remote(r, &map);
	CHECK_ERR(SCIDisconnectSegment(r, 0, &err), SCI_ERR_BUSY);
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	CHECK_ERR(SCIDisconnectSegment(r, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_EQ(SCIGetRemoteSegmentSize(r), 0);
	/* the library remembers these until it uses the handle's slot again */
	CHECK_EQ(SCIGetRemoteSegmentId(r), 1);
	CHECK_EQ(SCIGetRemoteSegmentNodeId(r), 4);
	test_connect(sd, 4, 1);
	CHECK_EQ(SCIGetRemoteSegmentId(r), 0);
	CHECK_EQ(SCIGetRemoteSegmentNodeId(r), 0);
}

TEST(several_connections_to_one_segment)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 1, SIZE, 0);
	sci_remote_segment_t r[10];

	for (int i = 0; i < 10; i++) {
		r[i] = test_connect(sd, 4, 1);
		for (int k = 0; k < i; k++)
			CHECK(r[k] != r[i]);
	}
	for (int i = 0; i < 10; i++) {
		CHECK_ERR(SCIRemoveSegment(s, 0, &err), SCI_ERR_BUSY);
		CHECK_OK(SCIDisconnectSegment(r[i], 0, &err));
	}
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
}

TEST(maps_outlive_neither_their_owner_nor_force)
{
	sci_desc_t sd = test_open();
	sci_local_segment_t s = test_segment(sd, 1, SIZE, 0);
	sci_remote_segment_t r = test_connect(sd, 4, 1);
	volatile char *mem;
	sci_map_t map, more;
	sci_error_t e;

	mem = test_map_remote(r, &map);
	CHECK_OK(SCIRemoveSegment(s, SCI_FLAG_FORCE_REMOVE, &err));
	test_poke(mem, 1);
	test_poke(mem + SIZE - 1, 1);
	while (!(e = ERR_OF(SCIMapRemoteSegment(r, &more, 0, SIZE, NULL, 0,
						&err))))
		CHECK_OK(SCIUnmapSegment(more, 0, &err));
	CHECK_EQ(e, SCI_ERR_SEGMENT_NOT_CONNECTED);
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
}

static void stopped_owner(struct peer *self, void *arg)
{
	(void)arg;
	test_segment(test_open(), 1, SIZE, 0);
	peer_send(self, "ready");
	peer_expect(self, "leave");
}

TEST(connect_to_a_node_that_does_not_answer_times_out)
{
	struct peer *p = peer_spawn(8, stopped_owner, NULL);
	sci_desc_t sd = test_open();
	sci_remote_segment_t r;

	/* on other fabrics the kernel answers */
	test_needs_shm();
	peer_expect(p, "ready");
	CHECK_OK(SCIDisconnectSegment(test_connect(sd, 8, 1), 0, &err));
	peer_stop(p);
	CHECK_ERR(SCIConnectSegment(sd, &r, 8, 1, 0, NULL, NULL, 100, 0, &err),
		  SCI_ERR_TIMEOUT);
	peer_continue(p);
	CHECK_OK(SCIConnectSegment(sd, &r, 8, 1, 0, NULL, NULL, 10000, 0,
				   &err));
	peer_send(p, "leave");
	peer_join(p);
}

/* ---- clusters, nodes, users ---- */

static void value_owner(struct peer *self, void *arg)
{
	unsigned int number = *(unsigned int *)arg;
	sci_desc_t sd = test_open();
	unsigned int *mem;

	mem = test_map_local(test_segment(sd, number >> 16, SIZE, 0), NULL);
	*mem = number;
	peer_send(self, "ready");
	peer_expect(self, "leave");
}

static void check_value(struct peer *self, void *arg)
{
	unsigned int number = *(unsigned int *)arg;
	sci_desc_t sd;

	peer_expect(self, "check");
	sd = test_open();
	CHECK_EQ(*(volatile unsigned int *)
		 test_map_remote(test_connect(sd, 8, number >> 16), NULL),
		 number);
}

TEST(two_clusters_side_by_side)
{
	static unsigned int values[] = { 0x10007, 0x10008 };
	static unsigned int alone = 0x20009;
	static const char *const names[] = { "", "b" };
	struct peer *owner[3], *check[2];
	sci_remote_segment_t r;
	sci_desc_t sd;

	for (int i = 0; i < 2; i++) {
		test_use_cluster(names[i]);
		owner[i] = peer_spawn(8, value_owner, &values[i]);
		check[i] = peer_spawn(12, check_value, &values[i]);
	}
	owner[2] = peer_spawn(16, value_owner, &alone);
	for (int i = 0; i < 3; i++)
		peer_expect(owner[i], "ready");
	for (int i = 0; i < 2; i++) {
		peer_send(check[i], "check");
		peer_join(check[i]);
	}
	/* the third process is in the second cluster only */
	test_use_cluster("");
	sd = test_open();
	CHECK_EQ(SCIProbeNode(sd, 0, 16, 0, NULL), 0);
	CHECK_ERR(SCIConnectSegment(sd, &r, 16, 2, 0, NULL, NULL, 0, 0, &err),
		  SCI_ERR_NO_SUCH_SEGMENT);
	SCITerminate();
	test_use_cluster("b");
	sd = test_open();
	CHECK_EQ(SCIProbeNode(sd, 0, 16, 0, NULL), 1);
	test_connect(sd, 16, 2);
}

TEST(several_processes_of_one_node)
{
	static unsigned int values[] = { 0x10001, 0x20002, 0x30003 };
	struct peer *p[3];
	sci_desc_t sd;

	for (int i = 0; i < 3; i++)
		p[i] = peer_spawn(8, value_owner, &values[i]);
	sd = test_open();
	for (unsigned int i = 0; i < 3; i++) {
		peer_expect(p[i], "ready");
		CHECK_EQ(*(volatile unsigned int *)
			 test_map_remote(test_connect(sd, 8, i + 1), NULL),
			 values[i]);
	}
	/* a process dies, the node stays */
	peer_kill(p[1], SIGKILL);
	CHECK_EQ(SCIProbeNode(sd, 0, 8, 0, NULL), 1);
	test_connect(sd, 8, 1);
	test_connect(sd, 8, 3);
}

/* Rights of another process. @mode, @trust: SCI_MODE of the owner and of this process. */
struct rights {
	const char *mode;
	const char *trust;
	uid_t owner, user;
	gid_t owner_group, group;
	bool read, write;
};

static void exporter(struct peer *self, void *arg)
{
	const struct rights *want = arg;
	sci_local_segment_t s;
	sci_desc_t sd;

	peer_become(want->owner, want->owner_group);
	if (want->mode)
		setenv("SCI_MODE", want->mode, 1);
	sd = test_open();
	s = test_segment(sd, 1, SIZE, 0);
	memset(test_map_local(s, NULL), 7, SIZE);
	CHECK_OK(SCIShareSegment(s, 0, &err));
	test_interrupt(sd, 1);
	test_data_interrupt(sd, 1);
	peer_send(self, "ready");
	peer_expect(self, "leave");
}

static void check_segment_rights(sci_desc_t sd, const struct rights *want)
{
	volatile char *mem;
	sci_remote_segment_t r;
	sci_map_t map;

	CHECK_ERR(SCIConnectSegment(sd, &r, 8, 1, 0, NULL, NULL, 0, 0, &err),
		  want->read ? SCI_ERR_OK : SCI_ERR_CONNECTION_REFUSED);
	if (!want->read)
		return;
	CHECK_OK(mem = SCIMapRemoteSegment(r, &map, 0, SIZE, NULL,
					   SCI_FLAG_READONLY_MAP, &err));
	CHECK_EQ(mem[0], 7);
	CHECK_ERR(mem = SCIMapRemoteSegment(r, &map, 0, SIZE, NULL, 0, &err),
		  want->write ? SCI_ERR_OK : SCI_ERR_ACCESS);
	if (want->write)
		mem[0] = 7;
}

static void check_interrupt_rights(sci_desc_t sd, const struct rights *want)
{
	sci_error_t code = want->write ? SCI_ERR_OK :
					 SCI_ERR_CONNECTION_REFUSED;
	sci_remote_data_interrupt_t d;
	sci_remote_interrupt_t i;

	CHECK_ERR(SCIConnectInterrupt(sd, &i, 8, 0, 1, 0, 0, &err), code);
	CHECK_ERR(SCIConnectDataInterrupt(sd, &d, 8, 0, 1, 0, 0, &err), code);
}

static void become_user(const struct rights *want)
{
	peer_become(want->user, want->group);
	if (want->trust)
		setenv("SCI_MODE", want->trust, 1);
}

static void user(struct peer *self, void *arg)
{
	const struct rights *want = arg;
	sci_desc_t sd;

	become_user(want);
	sd = test_open();
	peer_expect(self, "check");
	check_segment_rights(sd, want);
	check_interrupt_rights(sd, want);
}

static void neighbour(struct peer *self, void *arg)
{
	const struct rights *want = arg;
	sci_local_segment_t s;
	sci_desc_t sd;

	become_user(want);
	sd = test_open();
	peer_expect(self, "check");
	CHECK_EQ(attach(sd, 1, &s), want->write ? SCI_ERR_OK : SCI_ERR_ACCESS);
}

static void check_rights(struct rights want)
{
	struct peer *owner, *other, *same_node;

	if (geteuid())
		SKIP("only root can become another user");
	owner = peer_spawn(8, exporter, &want);
	other = peer_spawn(12, user, &want);
	same_node = peer_spawn(8, neighbour, &want);
	peer_expect(owner, "ready");
	peer_send(other, "check");
	peer_send(same_node, "check");
	peer_join(other);
	peer_join(same_node);
	peer_send(owner, "leave");
	peer_join(owner);
}

TEST(mode_of_strangers)
{
	check_rights((struct rights){ .mode = "0600", .user = NOBODY,
		     .group = NOBODY });
	check_rights((struct rights){ .mode = "0644", .user = NOBODY,
		     .group = NOBODY, .read = true });
	check_rights((struct rights){ .mode = "0666", .user = NOBODY,
		     .group = NOBODY, .read = true, .write = true });
	check_rights((struct rights){ .mode = "0660", .user = NOBODY,
		     .group = NOBODY });
}

TEST(mode_by_default_is_the_users_own)
{
	check_rights((struct rights){ .user = NOBODY, .group = NOBODY });
	check_rights((struct rights){ .owner = NOBODY, .owner_group = NOBODY,
		     .user = NOBODY, .group = NOBODY, .read = true,
		     .write = true });
	check_rights((struct rights){ .owner = NOBODY, .owner_group = NOBODY,
		     .trust = "0666", .user = 12345, .group = NOBODY });
}

TEST(mode_of_the_group)
{
	check_rights((struct rights){ .mode = "0660", .trust = "0620",
		     .owner = 12345, .owner_group = 777, .user = NOBODY,
		     .group = 777, .read = true, .write = true });
	check_rights((struct rights){ .mode = "0640", .trust = "0640",
		     .owner = 12345, .owner_group = 777, .user = NOBODY,
		     .group = 777, .read = true });
	/* the group's bits apply to its members, even if the bits of others allow more */
	check_rights((struct rights){ .mode = "0606", .trust = "0666",
		     .owner = 12345, .owner_group = 777, .user = NOBODY,
		     .group = 777 });
}

TEST(mode_does_not_stop_the_superuser)
{
	check_rights((struct rights){ .mode = "0600", .trust = "0606",
		     .owner = NOBODY, .owner_group = NOBODY, .read = true,
		     .write = true });
	check_rights((struct rights){ .mode = "0000", .trust = "0602",
		     .owner = NOBODY, .owner_group = NOBODY, .read = true,
		     .write = true });
}

/* A process of another user takes a name first, and allows everybody to connect. */
TEST(a_stranger_who_has_the_name_gets_nothing)
{
	test_needs_shm();
	check_rights((struct rights){ .mode = "0666", .owner = NOBODY,
		     .owner_group = NOBODY });
	check_rights((struct rights){ .mode = "0666", .owner = NOBODY,
		     .owner_group = NOBODY, .user = 12345, .group = 777 });
	check_rights((struct rights){ .mode = "0666", .trust = "0660",
		     .owner = NOBODY, .owner_group = NOBODY, .user = 12345,
		     .group = 777 });
	/* the group's digit applies to its members */
	check_rights((struct rights){ .mode = "0666", .trust = "0606",
		     .owner = NOBODY, .owner_group = NOBODY, .user = 12345,
		     .group = NOBODY });
	/* with 0000 no other user is trusted */
	check_rights((struct rights){ .mode = "0666", .trust = "0000",
		     .owner = NOBODY, .owner_group = NOBODY });
}

struct name_owner {
	uid_t uid;
	unsigned int id;
};

static void has_segment(struct peer *self, void *arg)
{
	const struct name_owner *o = arg;

	if (o->uid)
		peer_become(o->uid, NOBODY);
	test_segment(test_open(), o->id, SIZE, 0);
	peer_send(self, "ready");
	peer_expect(self, "leave");
}

/* Create a segment whose id a peer has, three times. @said: the messages on standard error. */
static void create_taken(sci_desc_t sd, unsigned int id, char said[512])
{
	int old = dup(2), out[2];
	sci_local_segment_t s;
	sci_error_t err;
	ssize_t n;

	CHECK_EQ(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
	dup2(out[1], 2);
	for (int i = 0; i < 3; i++)
		SCICreateSegment(sd, &s, id, SIZE, NULL, NULL, 0, &err);
	dup2(old, 2);
	CHECK_EQ(err, SCI_ERR_SEGMENTID_USED);
	n = read(out[0], said, 511);
	said[n > 0 ? n : 0] = '\0';
	close(out[0]);
	close(out[1]);
	close(old);
}

TEST(whoever_keeps_us_from_a_name_is_named)
{
	static struct name_owner owners[] = { { 0, 1 }, { 54321, 2 } };
	char said[512], *line;
	struct peer *p[2];
	sci_desc_t sd;

	test_needs_shm();
	if (geteuid())
		SKIP("only root can become another user");
	for (int i = 0; i < 2; i++) {
		p[i] = peer_spawn(4, has_segment, &owners[i]);
		peer_expect(p[i], "ready");
	}
	sd = test_open();
	/* no message if another process of the same user has the id */
	create_taken(sd, 1, said);
	CHECK_EQ(said[0], '\0');
	create_taken(sd, 2, said);
	CHECK(strstr(said, "user 54321 has the name sci."));
	line = strstr(said, "SCI_RUNDIR");
	CHECK(line);
	/* one message */
	CHECK(!strstr(line + 1, "SCI_RUNDIR"));
	for (int i = 0; i < 2; i++) {
		peer_send(p[i], "leave");
		peer_join(p[i]);
	}
}

static void in_default_cluster(struct peer *self, void *arg)
{
	const uid_t *uid = arg;
	sci_remote_segment_t r;
	sci_desc_t sd;

	peer_become(*uid, NOBODY);
	setenv("SCI_FABRIC", "shm", 1);
	setenv("SCI_MODE", "0666", 1);
	/* a node that no other process of the machine is */
	setenv("SCI_NODES", "16383", 1);
	setenv("SCI_NODE", "65532", 1);
	sd = test_open();
	test_segment(sd, 1, SIZE, 0);
	CHECK_OK(SCIConnectSegment(sd, &r, 65532, 1, 0, NULL, NULL, 0, 0,
				   &err));
	peer_send(self, "both");
	peer_expect(self, "leave");
}

TEST(users_do_not_meet_in_the_default_cluster)
{
	static uid_t uids[] = { 54321, 54322 };
	struct peer *p[2];

	test_needs_shm();
	if (geteuid())
		SKIP("only root can become another user");
	for (int i = 0; i < 2; i++) {
		p[i] = peer_spawn(8, in_default_cluster, &uids[i]);
		peer_expect(p[i], "both");
	}
	for (int i = 0; i < 2; i++) {
		peer_send(p[i], "leave");
		peer_join(p[i]);
	}
}

/* ---- leaks ---- */

static void cycle(sci_desc_t sd)
{
	sci_local_segment_t s = test_segment(sd, 1, SIZE, 0);
	sci_remote_segment_t r = test_connect(sd, 4, 1);
	sci_map_t lmap, rmap, fail;

	test_map_local(s, &lmap);
	test_map_remote(r, &rmap);
	SCIMapRemoteSegment(r, &fail, SIZE, 1, NULL, 0, NULL);
	SCIConnectSegment(sd, &r, 4, 2, 0, NULL, NULL, 0, 0, NULL);
	CHECK_OK(SCIUnmapSegment(rmap, 0, &err));
	CHECK_OK(SCIUnmapSegment(lmap, 0, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
}

TEST(nothing_leaks_in_a_loop)
{
	sci_desc_t sd = test_open();

	cycle(sd);
	leak_check_begin();
	for (int i = 0; i < 200; i++)
		cycle(sd);
	leak_check_end();
}

TEST(nothing_leaks_over_terminate)
{
	leak_check_begin();
	for (int i = 0; i < 50; i++) {
		sci_desc_t sd = test_open();

		test_map_local(test_segment(sd, 1, SIZE, 0), NULL);
		test_map_remote(test_connect(sd, 4, 1), NULL);
		test_segment(sd, 2, SIZE, SCI_FLAG_BROADCAST);
		SCITerminate();
	}
	leak_check_end();
}

/* The harness can see sockets and maps of a process. */
TEST(the_cluster_is_visible_while_it_exists)
{
	sci_desc_t sd;

	test_needs_shm();
	if (getenv("SCI_RUNDIR"))
		SKIP("names are in SCI_RUNDIR");
	CHECK_EQ(count_sockets(), 0);
	sd = test_open();
	test_segment(sd, 1, SIZE, 0);
	CHECK(count_sockets() > 0);
	test_map_local(test_segment(sd, 2, SIZE, 0), NULL);
	CHECK(count_shared_maps() > 0);
	SCITerminate();
	CHECK_EQ(count_sockets(), 0);
}
