// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test queries, probes, counters, checks, and the status page of an adapter. */
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sci_test.h"

static volatile struct sci_status_page *map_status(int fd)
{
	return MAP(fd, SCI_MMAP_STATUS, PAGE, PROT_READ);
}

static __u32 errors_of(const volatile struct sci_status_page *s)
{
	return s->errors + le32toh(s->hw_errors);
}

/* ---- queries ---- */

TEST(a_query_says_what_is_there)
{
	for (unsigned int i = 0; i < adapters(); i++) {
		int fd = OK(adapter_open(i));
		struct sci_ioc_query q;

		OK(adapter_query(fd, &q));
		CHECK(q.out_abi >= SCI_ABI_VERSION);
		EQ(q.out_adapter, adapter_index(i));
		CHECK(q.out_node && q.out_node % SCI_IOC_NODE_STEP == 0);
		CHECK(q.out_node <= SCI_IOC_NODE_MAX);
		CHECK(memchr(q.out_type, 0, sizeof(q.out_type)));
		CHECK(q.out_type[0]);
		CHECK(q.out_att_page_size >= PAGE);
		CHECK(q.out_att_free <= q.out_att_entries);
		CHECK(q.out_max_segment >= PAGE);
		CHECK(q.out_link_up_ms > 0);
		if (q.out_caps & SCI_CAP_DMA)
			CHECK(q.out_dma_max > 0 && q.out_dma_align > 0);
		if (q.out_caps & SCI_CAP_BROADCAST)
			CHECK(q.out_mcast_groups > 0);
		close(fd);
	}
}

static void place_of(unsigned int i, char *name, size_t size)
{
	char path[64], target[256];
	long n;

	snprintf(path, sizeof(path), "/sys/class/sci/sci%u/device",
		 adapter_index(i));
	n = OK(SYS(readlink(path, target, sizeof(target) - 1)));
	target[n] = 0;
	snprintf(name, size, "%s", strrchr(target, '/') + 1);
}

TEST(a_query_says_where_on_the_bus_it_is)
{
	for (unsigned int i = 0; i < adapters(); i++) {
		int fd = OK(adapter_open(i));
		struct sci_ioc_query q;
		char place[64], want[64];

		OK(adapter_query(fd, &q));
		close(fd);
		EQ(q.out_reserved, 0);
		if (strcmp((char *)q.out_type, "pci") != 0) {
			EQ(q.out_bdf, 0);
			EQ(q.out_domain, 0);
			continue;
		}
		place_of(i, place, sizeof(place));
		snprintf(want, sizeof(want), "%04x:%02x:%02x.%x", q.out_domain,
			 q.out_bdf >> 8, q.out_bdf >> 3 & 31, q.out_bdf & 7);
		if (strcmp(place, want) != 0)
			FAIL("it is at %s, not %s", place, want);
	}
}

TEST(node_ids_are_distinct)
{
	for (unsigned int i = 0; i < adapters(); i++)
		for (unsigned int j = 0; j < i; j++)
			CHECK(adapter_node(i) != adapter_node(j));
}

TEST(sysfs_says_the_same)
{
	for (unsigned int i = 0; i < adapters(); i++) {
		int fd = OK(adapter_open(i));
		struct sci_ioc_query q;

		OK(adapter_query(fd, &q));
		EQ(sysfs_number(i, "node_id"), q.out_node);
		EQ(sysfs_number(i, "att/entries"), q.out_att_entries);
		EQ(sysfs_number(i, "att/page_size"), q.out_att_page_size);
		EQ(sysfs_number(i, "att/used"),
		   q.out_att_entries - q.out_att_free);
		CHECK(sysfs_number(i, "users") > 0);
		close(fd);
	}
}

TEST(users_are_counted)
{
	long long was = sysfs_number(0, "users");
	int fd = OK(adapter_open(0));

	CHECK(sysfs_number(0, "users") > was);
	close(fd);
	EQ(sysfs_number(0, "users"), was);
}

/* Read the value of @key from /proc/self/fdinfo/FD, "" if there is none. */
static void fdinfo(int fd, const char *key, char value[64])
{
	char path[64], line[128];
	size_t n = strlen(key);
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	CHECK(f != NULL);
	value[0] = '\0';
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, key, n) && line[n] == ':')
			sscanf(line + n + 1, "%63s", value);
	fclose(f);
}

static bool fdinfo_is(int fd, const char *key, const char *value)
{
	char found[64];

	fdinfo(fd, key, found);
	if (strcmp(found, value))
		ksft_note("%s: %s, not %s", key, found, value);
	return !strcmp(found, value);
}

static bool fdinfo_number_is(int fd, const char *key, long long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", value);
	return fdinfo_is(fd, key, text);
}

TEST(fdinfo_says_what_a_descriptor_is)
{
	struct world w = WORLD();
	char name[16];
	int local = w.pair.local;

	for (unsigned int kind = 0; kind < KINDS; kind++) {
		snprintf(name, sizeof(name), "sci%u",
			 adapter_index(kind == KIND_INTR ? w.pair.far :
							   w.pair.near));
		if (w.fd[kind] < 0)
			continue;
		CHECK(fdinfo_is(w.fd[kind], "sci-adapter", name));
		CHECK(fdinfo_number_is(w.fd[kind], "sci-events", 0));
	}
	CHECK(fdinfo_number_is(w.fd[KIND_ADAPTER], "sci-node",
			       adapter_node(w.pair.near)));
	CHECK(fdinfo_number_is(local, "sci-segment-id", w.pair.id));
	CHECK(fdinfo_number_is(local, "sci-segment-size", w.pair.length));
	CHECK(fdinfo_number_is(local, "sci-segment-exported", 1));
	CHECK(fdinfo_number_is(local, "sci-segment-importers", 1));
	CHECK(fdinfo_number_is(w.pair.remote, "sci-remote-node", w.pair.node));
	CHECK(fdinfo_number_is(w.pair.remote, "sci-remote-id", w.pair.id));
	CHECK(fdinfo_is(w.pair.remote, "sci-remote-state", "connected"));
	CHECK(fdinfo_number_is(w.fd[KIND_INTR], "sci-interrupt-ready", 0));
	OK(intr_trigger(w.fd[KIND_RINTR]));
	WAIT_UNTIL(fdinfo_number_is(w.fd[KIND_INTR], "sci-interrupt-ready", 1));
	if (w.fd[KIND_DMA] >= 0)
		CHECK(fdinfo_number_is(w.fd[KIND_DMA], "sci-dma-pieces", 0));
	OK(segment_remove(local));
	CHECK(fdinfo_number_is(local, "sci-segment-removed", 1));
	WAIT_UNTIL(fdinfo_is(w.pair.remote, "sci-remote-state", "gone"));
	world_close(&w);
}

TEST(the_link_has_been_up_for_longer_now)
{
	int fd = OK(adapter_open(0));
	struct sci_ioc_query a, b;

	OK(adapter_query(fd, &a));
	WAIT_UNTIL(!adapter_query(fd, &b) &&
		   b.out_link_up_ms > a.out_link_up_ms);
	EQ(a.out_link_down_ms, b.out_link_down_ms);
}

/* ---- probes ---- */

TEST(all_nodes_answer_all_nodes)
{
	for (unsigned int i = 0; i < adapters(); i++) {
		int fd = OK(adapter_open(i));

		for (unsigned int j = 0; j < adapters(); j++)
			OK(adapter_probe(fd, adapter_node(j)));
		close(fd);
	}
}

TEST(what_is_no_node_id_is_EINVAL)
{
	const unsigned int nodes[] = {
		0, 1, 2, 3, 5, 7, 0xffff, 0x10000, 0x10004, 0xfffffffc,
	};
	int fd = OK(adapter_open(0));

	for (unsigned int i = 0; i < ARRAY_SIZE(nodes); i++)
		FAILS(adapter_probe(fd, nodes[i]), EINVAL);
}

TEST(a_node_that_is_not_there_is_EHOSTUNREACH)
{
	struct sci_ioc_probe p = {
		.size = sizeof(p), .node = NODE_NOBODY, .timeout_ms = 0,
	};
	int fd = OK(adapter_open(0));

	FAILS(xioctl(fd, SCI_IOC_PROBE, &p), EHOSTUNREACH);
	p.timeout_ms = 10;
	FAILS(xioctl(fd, SCI_IOC_PROBE, &p), EHOSTUNREACH);
}

TEST(a_timeout_of_0_allows_one_round_trip)
{
	struct sci_ioc_probe p = {
		.size = sizeof(p), .node = adapter_node(adapters() - 1),
	};
	int fd = OK(adapter_open(0));

	OK(xioctl(fd, SCI_IOC_PROBE, &p));
}

/* ---- counters ---- */

TEST(counters_count_what_happened)
{
	struct sci_ioc_counters a, b;
	struct pair p;
	int fd;

	NEED_ADAPTERS(2);
	fd = OK(adapter_open(0));
	OK(adapter_counters(fd, &a));
	p = PAIR(PAGE);
	OK(adapter_counters(fd, &b));
	CHECK(b.out_imports > a.out_imports);
	CHECK(b.out_ctrl_sent > a.out_ctrl_sent);
	CHECK(b.out_ctrl_received > a.out_ctrl_received);
	EQ(b.out_ctrl_bad, a.out_ctrl_bad);
	EQ(b.out_revoked, a.out_revoked);
	OK(segment_unexport(p.local, SCI_UNEXPORT_HOW_FORCE));
	EV(p.remote, SCI_EV_LOST);
	OK(adapter_counters(fd, &b));
	CHECK(b.out_revoked > a.out_revoked);
	CHECK(b.out_errors > a.out_errors);
}

TEST(counters_count_triggers_and_dma)
{
	struct world w = WORLD();
	struct sci_ioc_counters a, b;
	struct pair *p = &w.pair;

	OK(adapter_counters(p->importer, &a));
	OK(intr_trigger(w.fd[KIND_RINTR]));
	OK(adapter_counters(p->importer, &b));
	EQ(b.out_triggers_sent, a.out_triggers_sent + 1);
	CHECK(readable(w.fd[KIND_INTR], TEST_WAIT_MS));
	OK(adapter_counters(p->exporter, &b));
	CHECK(b.out_triggers_received > 0);

	if (w.fd[KIND_DMA] < 0)
		return;
	OK(adapter_counters(p->importer, &a));
	OK(dma_move(w.fd[KIND_DMA], SCI_DMA_WAIT, w.fd[KIND_LOCAL], p->remote,
		    PAGE));
	OK(adapter_counters(p->importer, &b));
	EQ(b.out_dma_bytes, a.out_dma_bytes + PAGE);
	EQ(b.out_dma_errors, a.out_dma_errors);
}

TEST(counters_stand_in_sysfs_too)
{
	static const char *const names[] = {
		"errors", "fatal", "ctrl_sent", "ctrl_received", "ctrl_resent",
		"ctrl_bad", "imports", "revoked", "att_full", "triggers_sent",
		"triggers_received", "dma_bytes", "dma_errors", "link_downs",
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++)
		if (sysfs_number(0, "counters/%s", names[i]) < 0)
			FAIL("no counters/%s", names[i]);
}

/* ---- checks ---- */

TEST(a_check_finds_nothing_lost)
{
	struct pair p = PAIR(PAGE);
	const int fds[] = { p.importer, p.remote };

	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++) {
		struct sci_ioc_check c = { 0 };

		OK(sci_check(fds[i], &c));
		c.errors = c.out_errors;
		c.fatal = c.out_fatal;
		WORD(p.there, 0) = 1;
		OK(sci_check(fds[i], &c));
		EQ(c.out_result, SCI_CHECK_OK);
		EQ(c.out_errors, c.errors);
		EQ(c.out_reserved, 0);
		EQ(WORD(p.here, 0), 1);
	}
}

TEST(a_check_with_an_older_snapshot_is_retriable)
{
	struct sci_ioc_check c = { 0 };
	int fd = OK(adapter_open(0));

	OK(sci_check(fd, &c));
	c.fatal = c.out_fatal;
	c.errors = c.out_errors - 1;
	OK(sci_check(fd, &c));
	EQ(c.out_result, SCI_CHECK_RETRIABLE);
	c.errors = c.out_errors;
	c.fatal = c.out_fatal - 1;
	OK(sci_check(fd, &c));
	EQ(c.out_result, SCI_CHECK_NOT_RETRIABLE);
}

TEST(a_flush_succeeds)
{
	struct pair p = PAIR(PAGE);

	OK(sci_flush(p.importer));
	OK(sci_flush(p.exporter));
	OK(sci_flush(p.remote));
}

/* ---- the status page ---- */

TEST(the_status_page_is_the_counters)
{
	int fd = OK(adapter_open(0));
	volatile struct sci_status_page *s = map_status(fd);
	struct sci_ioc_counters c;

	OK(adapter_counters(fd, &c));
	EQ(errors_of(s), (__u32)c.out_errors);
	EQ(s->fatal + le32toh(s->hw_fatal), (__u32)c.out_fatal);
	EQ(s->down, 0);
	EQ(s->hw_down, 0);
	CHECK(all_zero(s->reserved, sizeof(s->reserved)));
	CHECK(all_zero(s->hw_reserved, sizeof(s->hw_reserved)));
	CHECK(all_zero((char *)s + sizeof(*s), PAGE - sizeof(*s)));
}

TEST(the_status_page_is_one_page)
{
	int fd = OK(adapter_open(0));

	FAILS(sci_map(fd, SCI_MMAP_STATUS, 2 * PAGE, PROT_READ), EINVAL);
	FAILS(sci_map(fd, SCI_MMAP_STATUS + PAGE, PAGE, PROT_READ), EINVAL);
	FAILS(sci_map(fd, SCI_MMAP_BARRIER + PAGE, PAGE, PROT_READ), EINVAL);
	FAILS(sci_map(fd, SCI_MMAP_BARRIER - PAGE, PAGE, PROT_READ), EINVAL);
	FAILS(sci_map(fd, 1ull << 40, PAGE, PROT_READ), EINVAL);
	FAILS_SOMEHOW(sci_map(fd, -(__u64)PAGE, PAGE, PROT_READ));
}

TEST(the_pages_of_an_adapter_are_apart_whatever_the_page_size)
{
	const __u64 offsets[] = { SCI_MMAP_STATUS, SCI_MMAP_BARRIER };
	const __u64 largest = 256 << 10;	/* page size of Linux on Hexagon */

	for (unsigned int i = 0; i < ARRAY_SIZE(offsets); i++) {
		EQ(offsets[i] % largest, 0);
		CHECK(offsets[i] <= INT32_MAX);
		for (unsigned int j = 0; j < i; j++)
			CHECK(offsets[i] / largest != offsets[j] / largest);
	}
}

TEST(the_status_page_is_read_only)
{
	int fd = OK(adapter_open(0));
	void *s;

	FAILS_EITHER(sci_map(fd, SCI_MMAP_STATUS, PAGE, RW), EACCES, EINVAL);
	FAILS_EITHER(sci_map(fd, SCI_MMAP_STATUS, PAGE, PROT_WRITE), EACCES,
		     EINVAL);
	s = (void *)map_status(fd);
	FAILS(SYS(mprotect(s, PAGE, RW)), EACCES);
	FAILS(SYS(mprotect(s, PAGE, PROT_WRITE)), EACCES);
}

TEST(the_status_page_is_not_executable)
{
	int fd = OK(adapter_open(0));
	void *s;

	FAILS_EITHER(sci_map(fd, SCI_MMAP_STATUS, PAGE, PROT_READ | PROT_EXEC),
		     EACCES, EINVAL);
	s = (void *)map_status(fd);
	FAILS(SYS(mprotect(s, PAGE, PROT_READ | PROT_EXEC)), EACCES);
}

TEST(the_status_page_is_shared)
{
	int fd = OK(adapter_open(0));

	FAILS(sci_map_as(fd, SCI_MMAP_STATUS, PAGE, PROT_READ, MAP_PRIVATE),
	      EINVAL);
}

TEST(the_status_page_does_not_grow)
{
	int fd = OK(adapter_open(0));
	void *s = (void *)map_status(fd);

	FAILS_SOMEHOW(SYS(mremap(s, PAGE, 2 * PAGE, MREMAP_MAYMOVE)));
	EQ(((struct sci_status_page *)s)->down, 0);
}

TEST(the_kernel_can_not_be_made_to_write_it)
{
	int zero = OK(SYS(open("/dev/zero", O_RDONLY | O_CLOEXEC)));
	int mem = OK(SYS(open("/proc/self/mem", O_RDWR | O_CLOEXEC)));
	int fd = OK(adapter_open(0));
	volatile struct sci_status_page *s = map_status(fd);
	__u32 was = s->errors;

	FAILS(SYS(read(zero, (void *)s, PAGE)), EFAULT);
	/* writing /proc/self/mem ignores write protection of ordinary memory */
	FAILS_SOMEHOW(SYS(pwrite(mem, "x", 1, (off_t)(uintptr_t)s)));
	EQ(s->errors, was);
}

TEST(the_status_page_outlives_its_descriptor)
{
	long long users = sysfs_number(0, "users");
	int fd = OK(adapter_open(0));
	volatile struct sci_status_page *s = map_status(fd);
	pid_t pid;

	OK(SYS(close(fd)));
	EQ(s->down, 0);
	pid = ksft_fork();
	if (pid == 0)
		_exit(s->down != 0);
	EQ(ksft_wait(pid), 0);
	EQ(s->down, 0);
	/* a map does not count as a user of the adapter */
	EQ(sysfs_number(0, "users"), users);
}

/* ---- hw_ words and barrier page, which a card provides ---- */

TEST(what_is_memory_has_no_words_of_its_own)
{
	int fd = OK(adapter_open(0));
	volatile struct sci_status_page *s = map_status(fd);

	NEED_CAP(SCI_CAP_MEMORY);
	CHECK(!adapter_can(0, SCI_CAP_BARRIER));
	EQ(s->hw_errors, 0);
	EQ(s->hw_fatal, 0);
	EQ(s->hw_done, 0);
}

TEST(without_barriers_there_is_no_page_for_them)
{
	int fd = OK(adapter_open(0));

	if (adapter_can(0, SCI_CAP_BARRIER))
		SKIP("the adapter has barriers");
	FAILS(sci_map(fd, SCI_MMAP_BARRIER, PAGE, PROT_READ), EOPNOTSUPP);
	FAILS(sci_map(fd, SCI_MMAP_BARRIER, PAGE, RW), EOPNOTSUPP);
}

TEST(the_barrier_page_is_one_shared_page)
{
	int fd = OK(adapter_open(0));

	FAILS(sci_map(fd, SCI_MMAP_BARRIER, 2 * PAGE, RW), EINVAL);
	FAILS(sci_map_as(fd, SCI_MMAP_BARRIER, PAGE, PROT_READ, MAP_PRIVATE),
	      EINVAL);
	FAILS_EITHER(sci_map(fd, SCI_MMAP_BARRIER, PAGE, PROT_READ | PROT_EXEC),
		     EACCES, EINVAL);
}

static void barrier(volatile struct sci_barrier_page *b,
		    volatile struct sci_status_page *s)
{
	__u32 ticket, any = 0;

	/* a locked instruction drains the CPU's store buffer */
	__atomic_fetch_add(&any, 1, __ATOMIC_SEQ_CST);
	ticket = le32toh(b->barrier);
	WAIT_UNTIL((__s32)(le32toh(s->hw_done) - ticket) >= 0);
}

TEST(a_barrier_by_hand_is_a_flush)
{
	volatile struct sci_barrier_page *b;
	volatile struct sci_status_page *s;
	struct pair p = PAIR(PAGE);
	__u32 errors, i;

	NEED_CAP(SCI_CAP_BARRIER);
	s = map_status(p.importer);
	b = MAP(p.importer, SCI_MMAP_BARRIER, PAGE, RW);
	errors = errors_of(s);
	for (i = 1; i < 100; i++) {
		WORD(p.there, i) = i;
		barrier(b, s);
		EQ(WORD(p.here, i), i);
	}
	EQ(errors_of(s), errors);
	EQ(b->errors, s->hw_errors);
	EQ(b->fatal, s->hw_fatal);
	EQ(b->down, 0);
	WORD(p.there, 0) = 7;
	b->flush = 1;
	WAIT_UNTIL(!b->check);
	EQ(WORD(p.here, 0), 7);
}

TEST(the_barrier_page_outlives_its_descriptor)
{
	volatile struct sci_barrier_page *b;
	volatile struct sci_status_page *s;
	int fd = OK(adapter_open(0));

	NEED_CAP(SCI_CAP_BARRIER);
	s = map_status(fd);
	b = MAP(fd, SCI_MMAP_BARRIER, PAGE, PROT_READ);
	OK(SYS(close(fd)));
	barrier(b, s);
	FAILS_SOMEHOW(SYS(mremap((void *)b, PAGE, 2 * PAGE, MREMAP_MAYMOVE)));
	barrier(b, s);
}

TEST(an_adapter_is_opened_often)
{
	enum { TIMES = 200 };
	int fd[TIMES];

	for (unsigned int i = 0; i < TIMES; i++)
		fd[i] = OK(adapter_open(0));
	for (unsigned int i = 0; i < TIMES; i++)
		OK(SYS(close(fd[i])));
}
