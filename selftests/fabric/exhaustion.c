// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Descriptors, address space, file size, threads and memory run out. Calls return NOSPC, and no
 * process hangs or is killed. When there are enough of them again, calls succeed.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sisci_api.h>

#include "libsci/fabric/core/fabric.h"
#include "selftests/harness.h"

#define SIZE	8192u
#define ID	10u

static void set_limit(int what, rlim_t soft, rlim_t hard)
{
	const struct rlimit rl = { soft, hard };

	CHECK_EQ(setrlimit(what, &rl), 0);
}

static rlim_t hard_limit(int what)
{
	struct rlimit rl;

	CHECK_EQ(getrlimit(what, &rl), 0);
	return rl.rlim_max;
}

/* ---- descriptors ---- */

static int taken[65536];
static unsigned int n_taken;

/* Take descriptors until @leave remain. */
static void take_descriptors(unsigned int leave)
{
	int fd;

	while ((fd = fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0) {
		CHECK(n_taken < ARRAY_LEN(taken));
		taken[n_taken++] = fd;
	}
	CHECK_EQ(errno, EMFILE);
	while (leave-- && n_taken)
		close(taken[--n_taken]);
}

static void give_descriptors(void)
{
	while (n_taken)
		close(taken[--n_taken]);
}

/* Limit descriptors to those that are open, and @more, so that no call can raise the limit. */
static void limit_descriptors(unsigned int more)
{
	rlim_t n = count_fds() + more + 4, most = hard_limit(RLIMIT_NOFILE);

	/* even root may lack the right to raise the hard limit */
	if (n > most)
		n = most;
	set_limit(RLIMIT_NOFILE, n, n);
}

#define CHECK_NOSPC_OR(call, other)					\
	do {								\
		sci_error_t code_ = ERR_OF(call);			\
									\
		if (code_ != SCI_ERR_NOSPC)				\
			CHECK_EQ(code_, other);				\
	} while (0)

static void make_one_of_each(sci_desc_t sd, unsigned int id)
{
	sci_local_segment_t s = test_segment(sd, id, SIZE, 0);
	sci_remote_segment_t r = test_connect(sd, SCI_LOCAL_HOST, id);
	sci_local_interrupt_t i = test_interrupt(sd, id);
	sci_local_data_interrupt_t d = test_data_interrupt(sd, id);
	sci_remote_data_interrupt_t rd;
	sci_remote_interrupt_t ri;
	sci_map_t map;

	test_map_remote(r, &map);
	ri = test_connect_interrupt(sd, SCI_LOCAL_HOST, id);
	CHECK_OK(SCITriggerInterrupt(ri, 0, &err));
	CHECK_OK(SCIWaitForInterrupt(i, TEST_WAIT_MS, 0, &err));
	rd = test_connect_data_interrupt(sd, SCI_LOCAL_HOST, id);
	CHECK_OK(SCITriggerDataInterrupt(rd, NULL, 0, 0, &err));
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_OK(SCIDisconnectInterrupt(ri, 0, &err));
	CHECK_OK(SCIDisconnectDataInterrupt(rd, 0, &err));
	CHECK_OK(SCIRemoveInterrupt(i, 0, &err));
	CHECK_OK(SCIRemoveDataInterrupt(d, 0, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
}

/* Make each call with 0, 1, 2 ... descriptors left, until it succeeds. */
TEST(creating_without_descriptors)
{
	static const unsigned int kinds[] = {
		0, SCI_FLAG_PRIVATE, SCI_FLAG_AUTO_ID, SCI_FLAG_BROADCAST
	};
	sci_desc_t sd = test_open();
	unsigned int number = ID;

	make_one_of_each(sd, ID);
	limit_descriptors(40);
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		sci_error_t e = SCI_ERR_NOSPC;

		for (unsigned int left = 0; e; left++) {
			sci_local_segment_t s;

			CHECK(left < 20);
			leak_check_begin();
			take_descriptors(left);
			SCICreateSegment(sd, &s, ID, SIZE, NULL, NULL,
					 kinds[k], &e);
			give_descriptors();
			if (e)
				CHECK_EQ(e, SCI_ERR_NOSPC);
			else
				CHECK_OK(SCIRemoveSegment(s, 0, &err));
			leak_check_end();
		}
	}
	for (unsigned int k = 0; k < 4; k++) {
		sci_error_t e = SCI_ERR_NOSPC;

		for (unsigned int left = 0; e; left++) {
			sci_local_data_interrupt_t d = NULL;
			sci_local_interrupt_t i = NULL;

			CHECK(left < 20);
			leak_check_begin();
			take_descriptors(left);
			if (k == 3)
				SCICreateDataInterrupt(sd, &d, 0, &number, NULL,
						       NULL,
						       SCI_FLAG_FIXED_INTNO,
						       &e);
			else
				SCICreateInterrupt(sd, &i, 0, &number, NULL,
						   NULL, k == 0 ? 0 :
						   SCI_FLAG_FIXED_INTNO |
						   (k == 2 ?
						    SCI_FLAG_SHARED_INT : 0),
						   &e);
			give_descriptors();
			if (e)
				CHECK_EQ(e, SCI_ERR_NOSPC);
			else if (d)
				CHECK_OK(SCIRemoveDataInterrupt(d, 0, &err));
			else
				CHECK_OK(SCIRemoveInterrupt(i, 0, &err));
			leak_check_end();
		}
	}
	make_one_of_each(sd, ID);
}

TEST(initializing_without_descriptors)
{
	sci_error_t e = SCI_ERR_NOSPC;

	limit_descriptors(20);
	for (unsigned int left = 0; e; left++) {
		CHECK(left < 20);
		leak_check_begin();
		take_descriptors(left);
		SCIInitialize(0, &e);
		give_descriptors();
		if (e)
			CHECK_EQ(e, SCI_ERR_NOSPC);
		SCITerminate();
		leak_check_end();
	}
}

static void owner(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();

	(void)arg;
	test_segment(sd, ID, SIZE, 0);
	test_interrupt(sd, ID);
	test_data_interrupt(sd, ID);
	test_segment(sd, ID + 1, SIZE, SCI_FLAG_BROADCAST);
	make_one_of_each(sd, ID + 2);
	peer_send(self, "ready");
	for (;;) {
		char order[16];

		peer_get(self, order, 8);
		if (!strcmp(order, "starve ")) {
			/* threads that finish connections would give descriptors back */
			WAIT_UNTIL(others_asleep(), TEST_WAIT_MS);
			limit_descriptors(30);
			take_descriptors(0);
		} else if (!strcmp(order, "feed   ")) {
			give_descriptors();
		} else {
			break;
		}
		peer_send(self, "done");
	}
}

static void order(struct peer *p, const char *what)
{
	peer_put(p, what, 8);
	peer_expect(p, "done");
}

static void use_owner(sci_desc_t sd)
{
	sci_remote_segment_t r = test_connect(sd, 8, ID);
	sci_remote_interrupt_t i = test_connect_interrupt(sd, 8, ID);
	sci_remote_data_interrupt_t d = test_connect_data_interrupt(sd, 8, ID);
	sci_map_t map;

	test_fill(test_map_remote(r, &map), SIZE, 1);
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_OK(SCITriggerInterrupt(i, 0, &err));
	CHECK_OK(SCITriggerDataInterrupt(d, NULL, 0, 0, &err));
	CHECK_OK(SCIDisconnectDataInterrupt(d, 0, &err));
	CHECK_OK(SCIDisconnectInterrupt(i, 0, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
}

#define CHECK_REFUSED(call)						\
	do {								\
		uint64_t began_ = test_now_ms();			\
									\
		CHECK_NOSPC_OR(call, SCI_ERR_TIMEOUT);			\
		CHECK(test_now_ms() - began_ < 10000);			\
	} while (0)

static void check_refused(sci_desc_t sd)
{
	sci_remote_data_interrupt_t d = NULL;
	sci_remote_interrupt_t i = NULL;
	sci_remote_segment_t r = NULL;

	CHECK_REFUSED(SCIConnectSegment(sd, &r, 8, ID, 0, NULL, NULL, 2000, 0,
					&err));
	CHECK_REFUSED(SCIConnectInterrupt(sd, &i, 8, 0, ID, 2000, 0, &err));
	CHECK_REFUSED(SCIConnectDataInterrupt(sd, &d, 8, 0, ID, 2000, 0,
					      &err));
	CHECK_REFUSED(SCIConnectSegment(sd, &r, DIS_BROADCAST_NODEID_GROUP_ALL,
					ID + 1, 0, NULL, NULL, 2000,
					SCI_FLAG_BROADCAST, &err));
	CHECK(!r && !i && !d);
}

TEST(an_exporter_without_descriptors)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	sci_remote_interrupt_t i;
	sci_desc_t sd;

	/* on other fabrics the kernel accepts connections */
	test_needs_shm();
	sd = test_open();
	peer_expect(p, "ready");
	use_owner(sd);
	i = test_connect_interrupt(sd, 8, ID);
	order(p, "starve ");
	for (int k = 0; k < 20; k++)
		check_refused(sd);
	/* existing connections still work */
	CHECK_OK(SCITriggerInterrupt(i, 0, &err));
	order(p, "feed   ");
	use_owner(sd);
	order(p, "starve ");
	check_refused(sd);
	order(p, "feed   ");
	use_owner(sd);
	peer_put(p, "leave  ", 8);
	peer_join(p);
}

TEST(an_importer_without_descriptors)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	sci_remote_data_interrupt_t d;
	sci_remote_interrupt_t i;
	sci_remote_segment_t r;
	volatile void *mem;
	sci_map_t map;
	sci_desc_t sd;

	sd = test_open();
	peer_expect(p, "ready");
	use_owner(sd);
	limit_descriptors(30);
	for (unsigned int what = 0; what < 3; what++) {
		sci_error_t e = SCI_ERR_NOSPC;

		for (unsigned int left = 0; e; left++) {
			CHECK(left < 10);
			leak_check_begin();
			take_descriptors(left);
			if (what == 0)
				SCIConnectSegment(sd, &r, 8, ID, 0, NULL, NULL,
						  2000, 0, &e);
			else if (what == 1)
				SCIConnectInterrupt(sd, &i, 8, 0, ID, 2000, 0,
						    &e);
			else
				SCIConnectDataInterrupt(sd, &d, 8, 0, ID, 2000,
							0, &e);
			give_descriptors();
			if (!e)
				continue;
			CHECK_EQ(e, SCI_ERR_NOSPC);
			leak_check_end();
		}
	}
	/* maps and triggers of existing connections need no more descriptors */
	take_descriptors(0);
	CHECK_OK(mem = SCIMapRemoteSegment(r, &map, 0, SIZE, NULL, 0, &err));
	test_fill(mem, SIZE, 1);
	CHECK_OK(SCITriggerInterrupt(i, 0, &err));
	CHECK_OK(SCITriggerDataInterrupt(d, NULL, 0, 0, &err));
	give_descriptors();
	use_owner(sd);
}

/* A thread of the exporter takes every descriptor that becomes free. */
struct greed {
	_Atomic bool stop;
	_Atomic unsigned int got;
	int fds[4096];
};

static void *grab(void *arg)
{
	struct greed *g = arg;

	while (!atomic_load(&g->stop)) {
		int fd = fcntl(0, F_DUPFD_CLOEXEC, 0);
		unsigned int n = atomic_load(&g->got);

		if (fd < 0)
			continue;
		CHECK(n < ARRAY_LEN(g->fds));
		g->fds[n] = fd;
		atomic_store(&g->got, n + 1);
	}
	return NULL;
}

static void greedy_owner(struct peer *self, void *arg)
{
	static struct greed g;
	sci_desc_t sd = test_open();
	unsigned int got;
	pthread_t t;

	(void)arg;
	test_segment(sd, ID, SIZE, 0);
	test_interrupt(sd, ID);
	test_data_interrupt(sd, ID);
	test_segment(sd, ID + 1, SIZE, SCI_FLAG_BROADCAST);
	limit_descriptors(30);
	CHECK(!pthread_create(&t, NULL, grab, &g));
	WAIT_UNTIL(atomic_load(&g.got) >= 30, TEST_WAIT_MS);
	peer_send(self, "ready");
	peer_expect(self, "enough");
	atomic_store(&g.stop, true);
	pthread_join(t, NULL);
	/* give back enough descriptors for later callers */
	got = atomic_load(&g.got);
	for (unsigned int i = 0; i < 20; i++)
		CHECK_EQ(close(g.fds[i]), 0);
	peer_send(self, "fed");
	peer_expect(self, "end");
	SCITerminate();
	/* the library has closed none of the program's descriptors */
	for (unsigned int i = 20; i < got; i++)
		if (fcntl(g.fds[i], F_GETFD) < 0)
			FAIL("the library has closed the program's fd %d",
			     g.fds[i]);
}

TEST(an_exporter_whose_descriptors_are_grabbed)
{
	struct peer *p = peer_spawn(8, greedy_owner, NULL);
	sci_desc_t sd = test_open();

	peer_expect(p, "ready");
	/* any code is right: the calls must end */
	for (int i = 0; i < 40; i++) {
		uint64_t began = test_now_ms();
		sci_remote_segment_t r;

		if (!ERR_OF(SCIConnectSegment(sd, &r, 8, ID, 0, NULL, NULL,
					      1000, 0, &err)))
			CHECK_OK(SCIDisconnectSegment(r, 0, &err));
		if (test_now_ms() - began > 900)
			break;
	}
	peer_send(p, "enough");
	peer_expect(p, "fed");
	use_owner(sd);
	peer_send(p, "end");
	peer_join(p);
}

/* The codes never claim that the exporter does not exist, however many calls there are. */
TEST(an_exporter_without_descriptors_is_not_absent)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	sci_remote_interrupt_t i;
	sci_remote_segment_t r;
	sci_desc_t sd;

	/* on other fabrics the kernel accepts connections */
	test_needs_shm();
	sd = test_open();
	peer_expect(p, "ready");
	order(p, "starve ");
	for (int k = 0; k < (TEST_TSAN || TEST_ASAN ? 1000 : 20000); k++) {
		CHECK_NOSPC_OR(SCIConnectSegment(sd, &r, 8, ID, 0, NULL, NULL,
						 2000, 0, &err),
			       SCI_ERR_TIMEOUT);
		CHECK_NOSPC_OR(SCIConnectInterrupt(sd, &i, 8, 0, ID, 2000, 0,
						   &err), SCI_ERR_TIMEOUT);
	}
	order(p, "feed   ");
	use_owner(sd);
	peer_put(p, "leave  ", 8);
	peer_join(p);
}

/* ---- the soft limit ---- */

TEST(the_soft_limit_is_raised)
{
	rlim_t hard = hard_limit(RLIMIT_NOFILE);
	sci_local_segment_t s[100];
	sci_desc_t sd = test_open();
	struct rlimit rl;

	if (hard < 1000)
		SKIP("the hard limit of descriptors is %lu",
		     (unsigned long)hard);
	set_limit(RLIMIT_NOFILE, count_fds() + 8, hard);
	for (unsigned int i = 0; i < 100; i++)
		s[i] = test_segment(sd, i, SIZE, 0);
	for (unsigned int i = 0; i < 100; i++) {
		test_map_remote(test_connect(sd, 4, i), NULL);
		CHECK_EQ(SCIGetLocalSegmentId(s[i]), i);
	}
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &rl), 0);
	CHECK(rl.rlim_cur > 200 && rl.rlim_max == hard);
}

/* Make each call that needs a descriptor when none is left below the soft limit. */
static void at_the_soft_limit(struct peer *self, void *arg)
{
	unsigned int which = *(unsigned int *)arg;
	rlim_t hard = hard_limit(RLIMIT_NOFILE);
	unsigned int number = 1;
	sci_local_data_interrupt_t d;
	sci_remote_segment_t r;
	sci_local_interrupt_t i;
	sci_local_segment_t s;
	sci_desc_t sd = NULL;

	peer_expect(self, "go");
	if (which) {
		sd = test_open();
		test_segment(sd, ID, SIZE, 0);
	}
	set_limit(RLIMIT_NOFILE, count_fds() + 20, hard);
	take_descriptors(0);
	switch (which) {
	case 0:
		CHECK_OK(SCIInitialize(0, &err));
		break;
	case 1:
		CHECK_OK(SCICreateSegment(sd, &s, 1, SIZE, NULL, NULL, 0,
					  &err));
		break;
	case 2:
		CHECK_OK(SCICreateSegment(sd, &s, 1, SIZE, NULL, NULL,
					  SCI_FLAG_PRIVATE, &err));
		break;
	case 3:
		CHECK_OK(SCIConnectSegment(sd, &r, SCI_LOCAL_HOST, ID, 0, NULL,
					   NULL, 0, 0, &err));
		break;
	case 4:
		CHECK_OK(SCICreateInterrupt(sd, &i, 0, &number, NULL, NULL, 0,
					    &err));
		break;
	case 5:
		CHECK_OK(SCICreateDataInterrupt(sd, &d, 0, &number, NULL, NULL,
						0, &err));
		break;
	default:
		CHECK_OK(SCIProbeNode(sd, 0, 4, 0, &err));
		break;
	}
}

static void check_soft_limit(unsigned int which)
{
	struct peer *p;
	sci_desc_t sd;

	if (hard_limit(RLIMIT_NOFILE) < 1000)
		SKIP("a low hard limit of descriptors");
	p = peer_spawn(8, at_the_soft_limit, &which);
	/* a process of node 4 answers probes */
	sd = test_open();
	peer_send(p, "go");
	peer_join(p);
	CHECK_OK(SCIClose(sd, 0, &err));
	SCITerminate();
}

TEST(initialize_raises_the_soft_limit)
{
	check_soft_limit(0);
}

TEST(creating_and_connecting_raise_the_soft_limit)
{
	for (unsigned int which = 1; which < 6; which++)
		check_soft_limit(which);
}

TEST(probing_raises_the_soft_limit)
{
	check_soft_limit(6);
}

static void become_user(void)
{
	if (!geteuid())
		peer_become(65534, 65534);
	setenv("SCI_MODE", "0444", 1);
}

/* The connection takes the last descriptor, and the read-only descriptor of the memory needs one. */
static void readonly_exporter(struct peer *self, void *arg)
{
	rlim_t hard = hard_limit(RLIMIT_NOFILE);
	sci_desc_t sd;

	(void)arg;
	become_user();
	sd = test_open();
	test_segment(sd, ID, SIZE, 0);
	set_limit(RLIMIT_NOFILE, count_fds() + 20, hard);
	take_descriptors(1);
	peer_send(self, "ready");
	peer_expect(self, "leave");
}

static void readonly_importer(struct peer *self, void *arg)
{
	sci_remote_segment_t r;

	(void)arg;
	become_user();
	peer_expect(self, "go");
	CHECK_OK(SCIConnectSegment(test_open(), &r, 8, ID, 0, NULL, NULL, 0, 0, &err));
}

TEST(a_readonly_import_raises_the_soft_limit)
{
	struct peer *p, *importer;

	test_needs_shm();
	if (hard_limit(RLIMIT_NOFILE) < 1000)
		SKIP("a low hard limit of descriptors");
	p = peer_spawn(8, readonly_exporter, NULL);
	importer = peer_spawn(4, readonly_importer, NULL);
	peer_expect(p, "ready");
	peer_send(importer, "go");
	peer_join(importer);
	peer_send(p, "leave");
	peer_join(p);
}

static void no_event(void *owner, const struct sci_event *ev)
{
	(void)owner;
	(void)ev;
}

TEST(a_twin_of_a_segment_raises_the_soft_limit)
{
	const struct sci_fabric_place at = { .node = 4 };
	struct sci_lseg_param param = { .id = ID, .size = SIZE, .event = no_event };
	rlim_t hard = hard_limit(RLIMIT_NOFILE);
	struct sci_lseg *s, *twin;
	struct sci_fabric *f;

	test_needs_shm();
	if (hard < 1000)
		SKIP("a low hard limit of descriptors");
	CHECK_EQ(sci_fabric_open_at(&f, &at), 0);
	CHECK_EQ(f->ops->lseg.create(f, &param, &s), 0);
	param.id++;
	param.flags = SCI_LSEG_EMPTY;
	CHECK_EQ(f->ops->lseg.create(f, &param, &twin), 0);
	set_limit(RLIMIT_NOFILE, count_fds() + 20, hard);
	take_descriptors(0);
	CHECK_EQ(sci_lseg_twin(f, twin, s), 0);
	f->ops->lseg.destroy(twin);
	f->ops->lseg.destroy(s);
	sci_fabric_close(f);
}

/* ---- very many ---- */

static void check_many(unsigned int n)
{
	sci_local_segment_t *s = calloc(n, sizeof(*s));
	sci_desc_t sd;

	if (hard_limit(RLIMIT_NOFILE) < 3 * n + 100)
		SKIP("the hard limit of descriptors is %lu",
		     (unsigned long)hard_limit(RLIMIT_NOFILE));
	sd = test_open();
	leak_check_begin();
	for (unsigned int i = 0; i < n; i++)
		s[i] = test_segment(sd, i, 4096, 0);
	for (unsigned int i = 0; i < n; i += n / 50) {
		sci_remote_segment_t r = test_connect(sd, 4, i);
		volatile unsigned int *p;
		sci_map_t map;

		p = test_map_remote(r, &map);
		*p = i;
		CHECK_OK(SCIUnmapSegment(map, 0, &err));
		CHECK_OK(SCIDisconnectSegment(r, 0, &err));
		p = test_map_local(s[i], &map);
		CHECK_EQ(*p, i);
		CHECK_OK(SCIUnmapSegment(map, 0, &err));
	}
	for (unsigned int i = 0; i < n; i++)
		CHECK_OK(SCIRemoveSegment(s[i], 0, &err));
	CHECK_OK(SCIClose(sd, 0, &err));
	SCITerminate();
	leak_check_end();
	free(s);
}

TEST(a_thousand_segments)
{
	check_many(1000);
}

TEST(four_thousand_segments)
{
	check_many(4000);
}

/* Create segments until NOSPC. One removal makes room for exactly one segment. */
TEST(segments_until_there_is_no_more)
{
	sci_local_segment_t s[600];
	sci_desc_t sd = test_open();
	sci_error_t e = SCI_ERR_OK;
	unsigned int n = 0;

	set_limit(RLIMIT_NOFILE, 500, 500);
	while (!e) {
		CHECK(n < 600);
		SCICreateSegment(sd, &s[n], n, 4096, NULL, NULL, 0, &e);
		n += !e;
	}
	CHECK_EQ(e, SCI_ERR_NOSPC);
	CHECK(n > 200);
	for (int i = 0; i < 10; i++) {
		CHECK_OK(SCIRemoveSegment(s[n - 1], 0, &err));
		CHECK_OK(SCICreateSegment(sd, &s[n - 1], n, 4096, NULL, NULL,
					  0, &err));
		CHECK_ERR(SCICreateSegment(sd, &s[n], n + 1, 4096, NULL, NULL,
					   0, &err), SCI_ERR_NOSPC);
	}
	for (unsigned int i = 0; i < n; i++)
		CHECK_OK(SCIRemoveSegment(s[i], 0, &err));
}

/* ---- memory ---- */

static uint64_t memory_available(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long kib = 0;
	char line[128];

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %lu", &kib) == 1)
			break;
	fclose(f);
	return (uint64_t)kib * 1024;
}

TEST(segments_larger_than_memory)
{
	uint64_t have = memory_available();
	const uint64_t sizes[] = {
		2 * have, 4 * have, 100 * have, (uint64_t)1 << 46,
		(uint64_t)1 << 62
	};
	sci_local_segment_t s = NULL;
	sci_desc_t sd = test_open();

	test_segment(sd, ID, SIZE, 0);
	leak_check_begin();
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		uint64_t began = test_now_ms();

		CHECK_ERR(SCICreateSegment(sd, &s, 1, sizes[i], NULL, NULL, 0,
					   &err), SCI_ERR_NOSPC);
		test_note("refused after %llu ms", (unsigned long long)(test_now_ms() - began));
	}
	CHECK(!s);
	leak_check_end();
	CHECK(memory_available() > have / 2);
}

static void too_large_without_descriptors(struct peer *self, void *arg)
{
	rlim_t hard = hard_limit(RLIMIT_NOFILE);
	sci_local_segment_t s;
	sci_desc_t sd = test_open();
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	CHECK_EQ(write(fd, "1000", 4), 4);
	close(fd);
	test_segment(sd, ID, SIZE, 0);
	set_limit(RLIMIT_NOFILE, count_fds() + 8, hard);
	/* the name takes one descriptor; the check of free memory gets none */
	take_descriptors(*(unsigned int *)arg);
	peer_send(self, "try");
	CHECK_ERR(SCICreateSegment(sd, &s, 1, (size_t)1 << 46, NULL, NULL, 0,
				   &err), SCI_ERR_NOSPC);
	peer_send(self, "refused");
}

/* Too large a segment is refused before it takes memory, even without descriptors. */
TEST(segments_larger_than_memory_at_the_soft_limit)
{
	uint64_t have = memory_available();

	if (have < (uint64_t)4 << 30 || hard_limit(RLIMIT_NOFILE) < 1000)
		SKIP("too little memory to watch it go, or descriptors");
	for (unsigned int left = 0; left < 3; left++) {
		struct peer *p = peer_spawn(8, too_large_without_descriptors,
					    &left);
		uint64_t until = test_now_ms() + TEST_WAIT_MS;
		int status;
		pid_t pid;

		peer_expect(p, "try");
		while (!(pid = waitpid(peer_pid(p), &status, WNOHANG)) &&
		       test_now_ms() < until) {
			if (memory_available() + (1u << 30) < have) {
				kill(peer_pid(p), SIGKILL);
				FAIL("it takes memory instead (%u left)",
				     left);
			}
			test_pause();
		}
		CHECK_EQ(pid, peer_pid(p));
		CHECK_EQ(status, 0);
	}
}

/* All pages of a segment exist. */
TEST(every_page_can_be_touched)
{
	static const size_t sizes[] = {
		1, 4095, 4096, 4097, 1 << 20, (16 << 20) + 1, 64 << 20
	};
	sci_desc_t sd = test_open();

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		sci_local_segment_t s = test_segment(sd, ID, sizes[i], 0);
		sci_remote_segment_t r = test_connect(sd, 4, ID);
		size_t pages = (sizes[i] + 4095) / 4096;
		volatile unsigned char *p, *q;
		sci_map_t map[2];

		p = test_map_local(s, &map[0]);
		q = test_map_remote(r, &map[1]);
		for (size_t at = 0; at < pages; at++) {
			p[4096 * at] = (unsigned char)at;
			CHECK_EQ(q[4096 * at], (unsigned char)at);
		}
		for (int k = 0; k < 2; k++)
			CHECK_OK(SCIUnmapSegment(map[k], 0, &err));
		CHECK_OK(SCIDisconnectSegment(r, 0, &err));
		CHECK_OK(SCIRemoveSegment(s, 0, &err));
	}
}

/* ---- address space ---- */

static rlim_t address_space(void)
{
	unsigned long pages;
	FILE *f = fopen("/proc/self/statm", "re");

	CHECK(f != NULL);
	CHECK_EQ(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	return (rlim_t)pages * 4096;
}

TEST(without_address_space)
{
	const size_t large = 64u << 20;
	sci_remote_segment_t r = NULL;
	sci_map_t map = NULL;
	sci_local_segment_t s;
	sci_desc_t sd;

	if (TEST_TSAN || TEST_ASAN)
		SKIP("the sanitizer needs all of it");
	sd = test_open();
	make_one_of_each(sd, ID + 1);
	s = test_segment(sd, ID, large, 0);
	set_limit(RLIMIT_AS, address_space() + (large / 2), RLIM_INFINITY);
	leak_check_begin();
	CHECK_ERR(SCIMapLocalSegment(s, &map, 0, large, NULL, 0, &err),
		  SCI_ERR_NOSPC);
	/* on other fabrics an import that is not mapped needs no address space */
	if (test_on_shm())
		CHECK_ERR(SCIConnectSegment(sd, &r, 4, ID, 0, NULL, NULL, 0, 0,
					    &err), SCI_ERR_NOSPC);
	CHECK(!map && !r);
	leak_check_end();
	/* a small part fits */
	CHECK_OK(SCIMapLocalSegment(s, &map, large / 2, 4096, NULL, 0, &err));
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	set_limit(RLIMIT_AS, RLIM_INFINITY, RLIM_INFINITY);
	test_map_remote(test_connect(sd, 4, ID), &map);
	set_limit(RLIMIT_AS, address_space() + (large / 2), RLIM_INFINITY);
	CHECK_ERR(SCIMapLocalSegment(s, &map, 0, large, NULL, 0, &err),
		  SCI_ERR_NOSPC);
	set_limit(RLIMIT_AS, RLIM_INFINITY, RLIM_INFINITY);
	CHECK_OK(SCIMapLocalSegment(s, &map, 0, large, NULL, 0, &err));
}

/* Without any free address space, each call fails or succeeds, and none crashes. */
TEST(without_any_address_space)
{
	sci_desc_t sd;

	if (TEST_TSAN || TEST_ASAN)
		SKIP("the sanitizer needs all of it");
	sd = test_open();
	test_segment(sd, ID, SIZE, 0);
	set_limit(RLIMIT_AS, address_space(), RLIM_INFINITY);
	for (unsigned int i = 0; i < 2000; i++) {
		unsigned int number = i + 100;
		sci_remote_segment_t r = NULL;
		sci_local_interrupt_t l;
		sci_local_segment_t s;
		sci_dma_queue_t q;
		sci_map_t map;

		SCICreateSegment(sd, &s, number, SIZE, NULL, NULL,
				 SCI_FLAG_EMPTY, NULL);
		SCICreateDMAQueue(sd, &q, 0, 1000, 0, NULL);
		SCICreateInterrupt(sd, &l, 0, &number, NULL, NULL, 0, NULL);
		SCIConnectSegment(sd, &r, 4, ID, 0, NULL, NULL, 0, 0, NULL);
		if (r)
			SCIMapRemoteSegment(r, &map, 0, SIZE, NULL, 0, NULL);
	}
	set_limit(RLIMIT_AS, RLIM_INFINITY, RLIM_INFINITY);
	SCITerminate();
	CHECK(!count_sockets());
}

/* ---- file size ---- */

TEST(below_the_largest_file)
{
	static const rlim_t limits[] = { 0, 1, 4095, 4096, SIZE - 1 };
	sci_local_segment_t s = NULL;
	sci_desc_t sd = test_open();

	test_needs_shm();
	signal(SIGXFSZ, SIG_DFL);
	test_segment(sd, ID, SIZE, 0);
	leak_check_begin();
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		set_limit(RLIMIT_FSIZE, limits[i], RLIM_INFINITY);
		CHECK_ERR(SCICreateSegment(sd, &s, 1, SIZE, NULL, NULL, 0,
					   &err), SCI_ERR_NOSPC);
		CHECK_ERR(SCICreateSegment(sd, &s, 1, SIZE, NULL, NULL,
					   SCI_FLAG_BROADCAST, &err),
			  SCI_ERR_NOSPC);
	}
	leak_check_end();
	set_limit(RLIMIT_FSIZE, SIZE, RLIM_INFINITY);
	CHECK_OK(SCICreateSegment(sd, &s, 1, SIZE, NULL, NULL, 0, &err));
	set_limit(RLIMIT_FSIZE, 0, RLIM_INFINITY);
	test_map_remote(test_connect(sd, 4, ID), NULL);
	test_interrupt(sd, ID);
	CHECK_OK(SCITriggerInterrupt(test_connect_interrupt(sd, 4, ID), 0,
				     &err));
	set_limit(RLIMIT_FSIZE, RLIM_INFINITY, RLIM_INFINITY);
}

/* ---- threads ---- */

/* Another user, who is allowed no more threads. */
static void without_threads(struct peer *self, void *arg)
{
	const rlim_t many = hard_limit(RLIMIT_NPROC);
	static struct recorder rec;
	unsigned int number = ID;
	sci_remote_segment_t r;
	sci_local_interrupt_t i;
	sci_local_segment_t s;
	sci_dma_queue_t q;
	sci_desc_t sd;

	(void)arg;
	peer_become(54321, 54321);
	sd = test_open();
	set_limit(RLIMIT_NPROC, 1, many);
	leak_check_begin();
	CHECK_ERR(SCICreateSegment(sd, &s, ID, SIZE, NULL, NULL, 0, &err),
		  SCI_ERR_NOSPC);
	/* on other fabrics the kernel serves interrupts */
	if (test_on_shm())
		CHECK_ERR(SCICreateInterrupt(sd, &i, 0, &number, NULL, NULL,
					     SCI_FLAG_FIXED_INTNO, &err),
			  SCI_ERR_NOSPC);
	CHECK_NOSPC_OR(SCIConnectSegment(sd, &r, 4, ID, 0, NULL, NULL, 0, 0,
					 &err), SCI_ERR_NO_SUCH_SEGMENT);
	leak_check_end();
	/* with enough threads */
	set_limit(RLIMIT_NPROC, many, many);
	s = test_segment(sd, ID, SIZE, 0);
	r = test_connect(sd, SCI_LOCAL_HOST, ID);
	CHECK_OK(SCICreateDMAQueue(sd, &q, 0, 2, 0, &err));
	/* a queue stays idle if its worker cannot start */
	set_limit(RLIMIT_NPROC, 1, many);
	CHECK_ERR(SCIStartDmaTransfer(q, s, r, 0, 64, 64, NULL, NULL, 0, &err),
		  SCI_ERR_NOSPC);
	CHECK_EQ(SCIDMAQueueState(q), SCI_DMAQUEUE_IDLE);
	CHECK_ERR(SCIConnectSegment(sd, &(sci_remote_segment_t){ NULL },
				    SCI_LOCAL_HOST, ID, 0, NULL, NULL, 0,
				    SCI_FLAG_ASYNCHRONOUS_CONNECT, &err),
		  SCI_ERR_NOSPC);
	set_limit(RLIMIT_NPROC, many, many);
	CHECK_OK(SCIStartDmaTransfer(q, s, r, 0, 64, 64, NULL, NULL,
				     SCI_FLAG_DMA_WAIT, &err));
	/* a callback without a thread is called when there is a thread */
	recorder_init(&rec);
	CHECK_OK(SCICreateInterrupt(sd, &i, 0, &number, record_interrupt, &rec,
				    SCI_FLAG_USE_CALLBACK |
				    SCI_FLAG_FIXED_INTNO, &err));
	CHECK_OK(SCITriggerInterrupt(test_connect_interrupt(sd, SCI_LOCAL_HOST,
							    ID), 0, &err));
	recorder_get(&rec, 0);
	SCITerminate();
	peer_send(self, "done");
}

/* A transfer that cannot be posted is not enqueued. */
static void without_a_worker(struct peer *self, void *arg)
{
	const rlim_t many = hard_limit(RLIMIT_NPROC);
	sci_remote_segment_t r;
	sci_local_segment_t s;
	sci_dma_queue_t q;
	sci_desc_t sd;

	(void)arg;
	peer_become(54321, 54321);
	sd = test_open();
	s = test_segment(sd, ID, SIZE, 0);
	r = test_connect(sd, SCI_LOCAL_HOST, ID);
	CHECK_OK(SCICreateDMAQueue(sd, &q, 0, 1, 0, &err));
	set_limit(RLIMIT_NPROC, 1, many);
	CHECK_ERR(SCIEnqueueDMATransfer(q, s, r, 0, 64, 64, SCI_FLAG_DMA_POST,
					&err), SCI_ERR_NOSPC);
	CHECK_EQ(SCIDMAQueueState(q), SCI_DMAQUEUE_IDLE);
	set_limit(RLIMIT_NPROC, many, many);
	CHECK_OK(SCIEnqueueDMATransfer(q, s, r, 0, 64, 64, SCI_FLAG_DMA_WAIT,
				       &err));
	peer_send(self, "done");
}

static void check_without_threads(void (*fn)(struct peer *self, void *arg))
{
	struct peer *p;

	if (geteuid())
		SKIP("only root can become another user");
	if (TEST_TSAN)
		SKIP("the thread sanitizer needs a thread");
	p = peer_spawn(8, fn, NULL);
	peer_expect(p, "done");
	peer_join(p);
}

TEST(without_threads)
{
	check_without_threads(without_threads);
}

TEST(posting_without_threads)
{
	check_without_threads(without_a_worker);
}
