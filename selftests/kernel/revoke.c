// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test revoked connections, for exporter and importer: events, and maps that turn
 * into private pages while threads use them.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sci_test.h"

#define LENGTH	(4 * PAGE)
#define MAGIC	0x600df00du
#define ROUNDS	8u

static __u32 importers(int local)
{
	struct sci_ioc_segment_info info;

	OK(segment_info(local, &info));
	return info.out_importers;
}

static void check_gone(int remote, int why)
{
	struct sci_ioc_check c = { 0 };
	struct sci_ioc_remote_info info;

	OK(remote_info(remote, &info));
	EQ(info.out_state, SCI_REMOTE_GONE);
	EQ(info.out_status, -why);
	FAILS(sci_map(remote, 0, PAGE, RW), ENOTCONN);
	FAILS(sci_flush(remote), ENOTCONN);
	FAILS(sci_check(remote, &c), ENOTCONN);
}

/* ---- the exporter's side ---- */

static void import_and_wait(struct peer *self, void *arg)
{
	bool mapped = arg;
	struct pair p;
	int fd;

	p = PEER_GET(self, struct pair);
	if (mapped) {
		PAIR_IMPORT(&p);
		p.there[0] = 1;
	} else {
		fd = OK(adapter_open(p.near));
		p.remote = OK(remote_connect(fd, p.node, p.id));
	}
	peer_send(self, "connected");
	peer_expect(self, "close");
	if (mapped)
		OK(sci_unmap(p.there, p.length));
	OK(SYS(close(p.remote)));
	peer_send(self, "closed");
	peer_expect(self, "end");
}

static void importer_ends(bool mapped, bool killed)
{
	struct peer *peer = peer_spawn(import_and_wait,
				       mapped ? &mapped : NULL);
	struct pair p = PAIR_EXPORT(LENGTH);

	PEER_PUT(peer, p);
	peer_expect(peer, "connected");
	EQ(EV(p.local, SCI_EV_CONNECT).node, adapter_node(p.near));
	NO_EV(p.local);
	if (killed) {
		peer_kill(peer);
		EQ(EV(p.local, SCI_EV_LOST).node, adapter_node(p.near));
	} else {
		peer_send(peer, "close");
		peer_expect(peer, "closed");
		EQ(EV(p.local, SCI_EV_DISCONNECT).node, adapter_node(p.near));
	}
	NO_EV(p.local);
	EQ(importers(p.local), 0);
	/* a new import works like the first one */
	PAIR_IMPORT(&p);
	EV(p.local, SCI_EV_CONNECT);
	if (!killed) {
		peer_send(peer, "end");
		peer_join(peer);
	}
}

TEST(an_importer_is_killed)
{
	importer_ends(true, true);
}

TEST(an_importer_without_map_is_killed)
{
	importer_ends(false, true);
}

TEST(an_importer_leaves)
{
	importer_ends(true, false);
}

TEST(an_importer_without_map_leaves)
{
	importer_ends(false, false);
}

/* ---- the importer's side ---- */

static void export_until_killed(struct peer *self, void *arg)
{
	struct pair p;

	(void)arg;
	peer_expect(self, "export");
	p = PAIR_EXPORT(LENGTH);
	p.here[0] = MAGIC;
	p.here[LENGTH / 4 - 1] = MAGIC;
	PEER_PUT(self, p);
	peer_expect(self, "nothing");
}

static struct pair exporter_in(struct peer *peer)
{
	struct pair p;

	peer_send(peer, "export");
	p = PEER_GET(peer, struct pair);
	PAIR_IMPORT(&p);
	EQ(p.there[0], MAGIC);
	return p;
}

TEST(an_exporter_is_killed)
{
	struct peer *peer = peer_spawn(export_until_killed, NULL);
	struct pair p = exporter_in(peer);
	struct sci_ioc_counters a, b;
	struct sci_ev_record ev;

	OK(adapter_counters(p.importer, &a));
	NO_EV(p.remote);
	peer_kill(peer);
	ev = EV(p.remote, SCI_EV_LOST);
	EQ(ev.node, p.node);
	EQ(ev.status, -ECONNRESET);
	NO_EV(p.remote);
	check_gone(p.remote, ECONNRESET);
	OK(adapter_counters(p.importer, &b));
	CHECK(b.out_errors > a.out_errors);
	EQ(b.out_fatal, a.out_fatal);
	/* private pages: stores stay in this process */
	fill(p.there, PAGE, 1);
	CHECK(filled(p.there, PAGE, 1));
	fill(p.there + 3 * PAGE / 4, PAGE, 2);
	CHECK(filled(p.there + 3 * PAGE / 4, PAGE, 2));
}

TEST(private_pages_show_nothing_of_what_was)
{
	struct peer *peer = peer_spawn(export_until_killed, NULL);
	struct pair p = exporter_in(peer);
	volatile uint32_t *again = MAP(p.remote, 0, LENGTH, RW);

	peer_kill(peer);
	EV(p.remote, SCI_EV_LOST);
	CHECK(p.there[0] != MAGIC);
	CHECK(p.there[LENGTH / 4 - 1] != MAGIC);
	CHECK(again[0] != MAGIC);
}

static void import_and_look(struct peer *self, void *arg)
{
	bool stores = arg;
	struct pair p;

	p = PEER_GET(self, struct pair);
	PAIR_IMPORT(&p);
	peer_send(self, "connected");
	EV(p.remote, SCI_EV_LOST);
	peer_expect(self, "go on");
	for (unsigned int i = 0; stores && i < LENGTH / 4; i++)
		p.there[i] = MAGIC;
	for (unsigned int i = 0; !stores && i < LENGTH / 4; i++)
		CHECK(p.there[i] != MAGIC);
	peer_send(self, "done");
	peer_expect(self, "end");
}

TEST(private_pages_are_not_shared)
{
	struct peer *peer[2];
	struct pair p;

	for (uintptr_t i = 0; i < 2; i++)
		peer[i] = peer_spawn(import_and_look, (void *)(1 - i));
	p = PAIR_EXPORT(LENGTH);
	for (unsigned int i = 0; i < 2; i++) {
		PEER_PUT(peer[i], p);
		peer_expect(peer[i], "connected");
	}
	OK(segment_unexport(p.local, SCI_UNEXPORT_HOW_FORCE));
	for (unsigned int i = 0; i < 2; i++) {
		peer_send(peer[i], "go on");
		peer_expect(peer[i], "done");
	}
	for (unsigned int i = 0; i < 2; i++) {
		peer_send(peer[i], "end");
		peer_join(peer[i]);
	}
}

TEST(read_only_maps_are_revoked_too)
{
	struct peer *peer = peer_spawn(export_until_killed, NULL);
	struct pair p = exporter_in(peer);
	volatile uint32_t *r = MAP(p.remote, 0, LENGTH, PROT_READ);

	EQ(r[0], MAGIC);
	peer_kill(peer);
	EV(p.remote, SCI_EV_LOST);
	CHECK(r[0] != MAGIC);
	CHECK(r[LENGTH / 4 - 1] != MAGIC);
	/* with access allowed again, the old memory must not come back */
	OK(SYS(mprotect((void *)r, LENGTH, RW)));
	WORD(r, 0) = 1;
	EQ(r[0], 1);
}

/* Return the number of page faults of one load. */
static long load_faults(volatile uint32_t *p)
{
	struct rusage before, after;

	getrusage(RUSAGE_THREAD, &before);
	(void)*p;
	getrusage(RUSAGE_THREAD, &after);
	return after.ru_minflt - before.ru_minflt;
}

/*
 * mprotect() gives the attributes of the area to all present pages. A private page
 * has other attributes, so the kernel must remove and insert it.
 */
TEST(private_pages_keep_their_attributes)
{
	struct peer *peer = peer_spawn(export_until_killed, NULL);
	struct pair p = exporter_in(peer);
	volatile uint32_t mine = 0;

	peer_kill(peer);
	EV(p.remote, SCI_EV_LOST);
	p.there[0] = 1;
	load_faults(&mine);
	EQ(load_faults(p.there), 0);
	OK(SYS(mprotect((void *)p.there, PAGE, PROT_READ)));
	EQ(load_faults(p.there), 1);
	EQ(load_faults(p.there), 0);
	EQ(p.there[0], 1);
	OK(SYS(mprotect((void *)p.there, PAGE, RW)));
	EQ(load_faults(p.there), 1);
	p.there[0]++;
	EQ(p.there[0], 2);
}

TEST(maps_in_pieces_are_revoked_too)
{
	struct peer *peer = peer_spawn(export_until_killed, NULL);
	struct pair p = exporter_in(peer);
	void *place = user_memory(PAGE);
	volatile uint32_t *last = MAP(p.remote, 3 * PAGE, PAGE, RW);

	OK(sci_unmap(p.there + PAGE / 4, PAGE));
	OK(SYS(mprotect((void *)(p.there + 2 * PAGE / 4), PAGE, PROT_READ)));
	CHECK(mremap((void *)p.there, PAGE, PAGE,
		     MREMAP_MAYMOVE | MREMAP_FIXED, place) == place);
	EQ(WORD(place, 0), MAGIC);
	peer_kill(peer);
	EV(p.remote, SCI_EV_LOST);
	CHECK(WORD(place, 0) != MAGIC);
	CHECK(p.there[LENGTH / 4 - 1] != MAGIC);
	CHECK(last[PAGE / 4 - 1] != MAGIC);
	CHECK(p.there[2 * PAGE / 4] != MAGIC);
	WORD(place, 0) = 1;
	last[0] = 2;
}

TEST(a_map_never_touched_is_revoked_too)
{
	struct peer *peer = peer_spawn(export_until_killed, NULL);
	struct pair p = exporter_in(peer);
	volatile uint32_t *fresh = MAP(p.remote, 0, LENGTH, RW);

	peer_kill(peer);
	EV(p.remote, SCI_EV_LOST);
	CHECK(fresh[0] != MAGIC);
	fresh[1] = 1;
	EQ(fresh[1], 1);
}

/* Exit with 0 if a revoked import, inherited from the parent, stays revoked. */
__attribute__((noreturn))
static void map_again(const struct pair *p)
{
	long again = sci_map_as(p->remote, 0, LENGTH, RW,
				MAP_SHARED | MAP_POPULATE);
	volatile uint32_t *moved;

	if (again != -ENOTCONN)
		_exit(2);
	moved = mremap((void *)p->there, LENGTH, LENGTH, MREMAP_MAYMOVE |
		       MREMAP_DONTUNMAP);
	/* the kernel may refuse to duplicate a map of pages without struct page */
	if (moved != MAP_FAILED && moved[0] == MAGIC)
		_exit(3);
	p->there[0] = MAGIC;
	_exit(p->here[0] == MAGIC ? 4 : 0);
}

TEST(a_child_can_not_map_anew)
{
	struct pair p = PAIR(LENGTH);
	char byte = 0;
	int fds[2];
	pid_t pid;

	p.here[0] = MAGIC;
	EQ(p.there[0], MAGIC);
	OK(SYS(pipe2(fds, O_CLOEXEC)));
	pid = ksft_fork();
	if (pid == 0) {
		close(fds[1]);
		if (read(fds[0], &byte, 1) != 0)
			_exit(1);
		map_again(&p);
	}
	OK(segment_unexport(p.local, SCI_UNEXPORT_HOW_FORCE));
	p.here[0] = 0;
	close(fds[1]);
	EQ(ksft_wait(pid), 0);
	FAILS(sci_map_as(p.remote, 0, LENGTH, RW, MAP_SHARED | MAP_POPULATE),
	      ENOTCONN);
}

TEST(children_are_cut_off_too)
{
	struct peer *peer = peer_spawn(export_until_killed, NULL);
	struct pair p = exporter_in(peer);
	int fds[2], seen[2];
	char byte = 0;
	pid_t pid;

	OK(SYS(pipe2(fds, O_CLOEXEC)));
	OK(SYS(pipe2(seen, O_CLOEXEC)));
	pid = ksft_fork();
	if (pid == 0) {
		close(fds[1]);
		if (p.there[0] != MAGIC || write(seen[1], &byte, 1) != 1 ||
		    read(fds[0], &byte, 1) != 0)
			_exit(2);
		p.there[1] = 1;
		_exit(p.there[0] == MAGIC);
	}
	/* wait until the child has seen the exporter's memory */
	close(seen[1]);
	EQ(read(seen[0], &byte, 1), 1);
	peer_kill(peer);
	EV(p.remote, SCI_EV_LOST);
	close(fds[1]);
	EQ(ksft_wait(pid), 0);
	CHECK(p.there[0] != MAGIC);
}

TEST(the_descriptor_may_be_closed_already)
{
	struct peer *peer = peer_spawn(export_until_killed, NULL);
	struct pair p = exporter_in(peer);

	close(p.remote);
	CHECK(p.there[0] != MAGIC);
	p.there[0] = 1;
	peer_kill(peer);
	EQ(p.there[0], 1);
}

/* Keep only the map, in a child that has no descriptor of it. */
static void fork_and_close(struct peer *self, void *arg)
{
	struct pair p;
	int fds[2];

	(void)arg;
	p = PEER_GET(self, struct pair);
	PAIR_IMPORT(&p);
	OK(SYS(pipe(fds)));
	if (fork() == 0) {
		char byte;

		close(p.remote);
		close(p.importer);
		close(fds[1]);
		/* wait until the parent has ended */
		if (read(fds[0], &byte, 1) < 0)
			_exit(1);
		for (uint32_t i = 0;; i++)
			p.there[0] = i;
	}
	peer_send(self, "forked");
	peer_expect(self, "nothing");
}

TEST(maps_in_children_keep_nothing)
{
	struct peer *peer = peer_spawn(fork_and_close, NULL);
	struct pair p = PAIR_EXPORT(LENGTH);

	PEER_PUT(peer, p);
	peer_expect(peer, "forked");
	EV(p.local, SCI_EV_CONNECT);
	peer_kill(peer);
	/* the child may not have closed its copies of the descriptors yet */
	CHECK(readable(p.local, TEST_WAIT_MS));
	WAIT_UNTIL(importers(p.local) == 0);
	p.here[0] = MAGIC;
	EQ(p.here[0], MAGIC);
}

/* ---- maps in use ---- */

static _Atomic bool stop;

static void *store_for_ever(void *arg)
{
	volatile uint32_t *p = arg;

	for (uint32_t i = 0; !atomic_load(&stop); i++)
		p[1 + i % (LENGTH / 4 - 1)] = i;
	return NULL;
}

TEST(threads_store_while_the_exporter_is_killed)
{
	struct peer *peer[ROUNDS];

	for (unsigned int i = 0; i < ROUNDS; i++)
		peer[i] = peer_spawn(export_until_killed, NULL);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct pair p = exporter_in(peer[i]);
		pthread_t thread[3];

		atomic_store(&stop, false);
		for (unsigned int t = 0; t < ARRAY_SIZE(thread); t++)
			EQ(pthread_create(&thread[t], NULL, store_for_ever,
					  (void *)p.there), 0);
		peer_kill(peer[i]);
		EV(p.remote, SCI_EV_LOST);
		CHECK(p.there[0] != MAGIC);
		atomic_store(&stop, true);
		for (unsigned int t = 0; t < ARRAY_SIZE(thread); t++)
			EQ(pthread_join(thread[t], NULL), 0);
		OK(sci_unmap(p.there, LENGTH));
		close(p.remote);
		close(p.importer);
	}
}

struct watch {
	volatile uint32_t *there;
	volatile struct sci_status_page *status;
	uint32_t errors;
};

/* A thread that sees the private page must also see the increased error count. */
static void *watch_order(void *arg)
{
	const struct watch *w = arg;

	while (w->there[0] == MAGIC)
		;
	CHECK(w->status->errors != w->errors);
	return NULL;
}

TEST(errors_rise_before_the_map_changes)
{
	struct peer *peer[ROUNDS];

	NEED_CAP(SCI_CAP_MEMORY);
	for (unsigned int i = 0; i < ROUNDS; i++)
		peer[i] = peer_spawn(export_until_killed, NULL);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct pair p = exporter_in(peer[i]);
		pthread_t thread;
		struct watch w;

		w.there = p.there;
		w.status = MAP(p.importer, SCI_MMAP_STATUS, PAGE, PROT_READ);
		w.errors = w.status->errors;
		EQ(pthread_create(&thread, NULL, watch_order, &w), 0);
		peer_kill(peer[i]);
		EQ(pthread_join(thread, NULL), 0);
		OK(sci_unmap(p.there, LENGTH));
		close(p.remote);
		close(p.importer);
	}
}

static void *read_into(void *arg)
{
	int zero = OK(SYS(open("/dev/zero", O_RDONLY | O_CLOEXEC)));

	while (!atomic_load(&stop))
		EQ(SYS(read(zero, (char *)arg + PAGE, LENGTH - PAGE)),
		   LENGTH - PAGE);
	close(zero);
	return NULL;
}

TEST(the_kernel_stores_while_the_exporter_is_killed)
{
	struct peer *peer = peer_spawn(export_until_killed, NULL);
	struct pair p = exporter_in(peer);
	pthread_t thread;

	EQ(pthread_create(&thread, NULL, read_into, (void *)p.there), 0);
	peer_kill(peer);
	EV(p.remote, SCI_EV_LOST);
	atomic_store(&stop, true);
	EQ(pthread_join(thread, NULL), 0);
}

static void *map_and_unmap(void *arg)
{
	int fd = *(int *)arg;

	while (!atomic_load(&stop)) {
		long long map = sci_map(fd, 0, LENGTH, RW);

		if (map == -ENOTCONN)
			continue;
		OK(map);
		WORD((void *)(uintptr_t)map, 0) = 1;
		OK(sci_unmap((void *)(uintptr_t)map, LENGTH));
	}
	return NULL;
}

TEST(maps_come_and_go_while_the_exporter_is_killed)
{
	struct peer *peer[ROUNDS];

	for (unsigned int i = 0; i < ROUNDS; i++)
		peer[i] = peer_spawn(export_until_killed, NULL);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct pair p = exporter_in(peer[i]);
		pthread_t thread[2];

		atomic_store(&stop, false);
		for (unsigned int t = 0; t < ARRAY_SIZE(thread); t++)
			EQ(pthread_create(&thread[t], NULL, map_and_unmap,
					  &p.remote), 0);
		peer_kill(peer[i]);
		EV(p.remote, SCI_EV_LOST);
		FAILS(sci_map(p.remote, 0, PAGE, RW), ENOTCONN);
		atomic_store(&stop, true);
		for (unsigned int t = 0; t < ARRAY_SIZE(thread); t++)
			EQ(pthread_join(thread[t], NULL), 0);
		close(p.remote);
		close(p.importer);
	}
}

/* ---- revocation by the exporter ---- */

TEST(unexport_quietly)
{
	struct pair p = PAIR(LENGTH);

	OK(segment_unexport(p.local, SCI_UNEXPORT_HOW_QUIET));
	NO_EV(p.remote);
	p.there[0] = 3;
	OK(sci_flush(p.remote));
	EQ(p.here[0], 3);
	EQ(importers(p.local), 1);
	FAILS(remote_connect(p.importer, p.node, p.id), ENOENT);
	MAP(p.remote, 0, LENGTH, RW);
}

TEST(unexport_with_notice)
{
	struct pair p = PAIR(LENGTH);

	OK(segment_unexport(p.local, SCI_UNEXPORT_HOW_NOTIFY));
	EQ(EV(p.remote, SCI_EV_DISCONNECT).node, p.node);
	p.there[0] = 3;
	OK(sci_flush(p.remote));
	EQ(p.here[0], 3);
	FAILS(remote_connect(p.importer, p.node, p.id), ENOENT);
	OK(sci_unmap(p.there, LENGTH));
	close(p.remote);
	EV(p.local, SCI_EV_DISCONNECT);
}

TEST(unexport_by_force)
{
	struct pair p = PAIR(LENGTH);

	OK(segment_unexport(p.local, SCI_UNEXPORT_HOW_FORCE));
	/* the segment is cut off as soon as the call returns */
	p.here[0] = MAGIC;
	CHECK(p.there[0] != MAGIC);
	p.there[1] = MAGIC;
	CHECK(p.here[1] != MAGIC);
	EQ(EV(p.remote, SCI_EV_LOST).status, -ENOTCONN);
	check_gone(p.remote, ENOTCONN);
	EV(p.local, SCI_EV_DISCONNECT);
	NO_EV(p.local);
	EQ(importers(p.local), 0);
	FAILS(remote_connect(p.importer, p.node, p.id), ENOENT);
	/* the segment is intact and can be exported again */
	OK(segment_export(p.local));
	close(OK(remote_connect(p.importer, p.node, p.id)));
}

TEST(force_after_quiet)
{
	struct pair p = PAIR(LENGTH);

	OK(segment_unexport(p.local, SCI_UNEXPORT_HOW_QUIET));
	OK(segment_unexport(p.local, SCI_UNEXPORT_HOW_FORCE));
	p.here[0] = MAGIC;
	CHECK(p.there[0] != MAGIC);
	EV(p.remote, SCI_EV_LOST);
}

TEST(removal_cuts_off)
{
	struct pair p = PAIR(LENGTH);

	OK(segment_remove(p.local));
	p.here[0] = MAGIC;
	EQ(EV(p.remote, SCI_EV_LOST).status, -ENOTCONN);
	CHECK(p.there[0] != MAGIC);
	check_gone(p.remote, ENOTCONN);
}

TEST(closing_cuts_off)
{
	struct pair p = PAIR(LENGTH);

	p.here[0] = MAGIC;
	OK(sci_unmap(p.here, LENGTH));
	close(p.local);
	EQ(EV(p.remote, SCI_EV_LOST).status, -ENOTCONN);
	CHECK(p.there[0] != MAGIC);
	check_gone(p.remote, ENOTCONN);
}

TEST(the_end_of_what_was_lost)
{
	struct pair p = PAIR(LENGTH);

	for (unsigned int i = 0; i < 20; i++) {
		int fd = OK(remote_connect(p.importer, p.node, p.id));
		volatile uint32_t *there = MAP(fd, 0, LENGTH, RW);

		OK(segment_unexport(p.local, SCI_UNEXPORT_HOW_FORCE));
		OK(segment_export(p.local));
		EV(fd, SCI_EV_LOST);
		there[0] = i;
		/* close and unmap, in both orders */
		if (i % 2)
			close(fd);
		OK(sci_unmap(there, LENGTH));
		if (i % 2 == 0)
			close(fd);
	}
	EQ(importers(p.local), 0);
}

/* The id is reused at once: the old import must not reach the new segment. */
TEST(a_new_segment_of_the_same_name_is_another)
{
	struct pair p = PAIR(LENGTH);
	volatile uint32_t *here;
	int next;

	OK(segment_remove(p.local));
	next = OK(segment_exported(p.exporter, p.id, LENGTH));
	here = MAP(next, 0, LENGTH, RW);
	p.there[0] = MAGIC;
	EQ(here[0], 0);
	EV(p.remote, SCI_EV_LOST);
	FAILS(sci_map(p.remote, 0, PAGE, RW), ENOTCONN);
	NO_EV(next);
}

#define REUSES	100u
#define BACKLOG	200u

/*
 * An adapter may give a segment's memory to the next one before CUT reaches an import on the own
 * node: CUT waits behind messages of interrupts.
 */
TEST(a_new_segment_in_the_same_memory_is_another)
{
	int fd = OK(adapter_open(0)), intr, trigger, last, next, remote;
	volatile uint32_t *here;
	long long there;
	__u32 number;

	intr = OK(intr_create(fd, 0, &number));
	trigger = OK(intr_connect(fd, adapter_node(0), number, 0));
	for (unsigned int i = 0; i < REUSES; i++) {
		last = OK(segment_exported(fd, 1, LENGTH));
		remote = OK(remote_connect(fd, adapter_node(0), 1));
		for (unsigned int n = 0; n < BACKLOG; n++)
			OK(intr_trigger(trigger));
		OK(segment_remove(last));
		close(last);
		next = OK(segment_exported(fd, 2, LENGTH));
		here = MAP(next, 0, LENGTH, RW);
		here[0] = MAGIC;
		there = sci_map(remote, 0, LENGTH, RW);
		CHECK(there < 0 || *(volatile uint32_t *)(uintptr_t)there != MAGIC);
		if (there >= 0)
			OK(sci_unmap((void *)(uintptr_t)there, LENGTH));
		OK(sci_unmap(here, LENGTH));
		close(remote);
		close(next);
	}
	close(intr);
}

static void *close_descriptor(void *arg)
{
	close(*(int *)arg);
	return NULL;
}

/* The memory may still be exposed for the importer that has just left. */
TEST(export_as_soon_as_the_last_importer_has_left)
{
	struct pair p = PAIR_EXPORT(LENGTH);
	pthread_t thread;

	p.importer = OK(adapter_open(p.near));
	for (unsigned int i = 0; i < 500; i++) {
		p.remote = OK(remote_connect(p.importer, p.node, p.id));
		OK(segment_unexport(p.local, SCI_UNEXPORT_HOW_QUIET));
		EQ(pthread_create(&thread, NULL, close_descriptor, &p.remote), 0);
		while (importers(p.local))
			;
		OK(segment_export(p.local));
		EQ(pthread_join(thread, NULL), 0);
	}
}

static atomic_int forcing;		/* the thread of force(), or 0 */

static void *force(void *arg)
{
	atomic_store(&forcing, (int)syscall(SYS_gettid));
	OK(segment_unexport(*(int *)arg, SCI_UNEXPORT_HOW_FORCE));
	return NULL;
}

#define REMOVALS	16u

/*
 * The segment is removed while an unexport waits for its importers. An unexport whose wait does
 * not end waits for dead_ms of sci(4): all of them take longer than the test may.
 */
TEST(removal_ends_an_unexport)
{
	pthread_t thread;
	struct pair p;

	NEED_ADAPTERS(2);
	NEED_KNOB(KNOB_WITHHOLD);
	for (unsigned int i = 0; i < REMOVALS; i++) {
		p = PAIR(LENGTH);
		OK(knob_set(p.near, KNOB_WITHHOLD, MESSAGE_CUT_ACK));
		atomic_store(&forcing, 0);
		EQ(pthread_create(&thread, NULL, force, &p.local), 0);
		EV(p.remote, SCI_EV_LOST);
		WAIT_UNTIL(ksft_waits_in_ioctl(atomic_load(&forcing), p.local));
		OK(segment_remove(p.local));
		EQ(pthread_join(thread, NULL), 0);
		OK(knob_set(p.near, KNOB_WITHHOLD, 0));
	}
}
