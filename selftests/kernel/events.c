// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test reads of events: whole records, in order, none twice; overflow of the queue. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sci_test.h"

#define RECORD	sizeof(struct sci_ev_record)
/* Time limit for filling a queue: some machines are slow. */
#define PATIENCE_MS	60000u

static void *volatile nowhere = (void *)8;

static int importer, exporter, local;
static __u32 node;

static void begin(void)
{
	unsigned int far = adapters() > 1 ? 1 : 0;

	importer = OK(adapter_open(0));
	exporter = OK(adapter_open(far));
	node = adapter_node(far);
	local = OK(segment_exported(exporter, 1, PAGE));
}

/* Make two events at the exporter: CONNECT and DISCONNECT. */
static void visit(void)
{
	close(OK(remote_connect(importer, node, 1)));
}

static void nonblocking(int fd)
{
	OK(SYS(fcntl(fd, F_SETFL, O_NONBLOCK)));
}

TEST(a_record_or_nothing)
{
	char room[2 * RECORD];

	begin();
	visit();
	CHECK(readable(local, TEST_WAIT_MS));
	for (size_t size = 0; size < RECORD; size += RECORD / 4)
		FAILS(SYS(read(local, room, size)), EINVAL);
	FAILS(SYS(read(local, room, RECORD - 1)), EINVAL);
	/* reads that failed lost no event */
	EQ(SYS(read(local, room, 2 * RECORD - 1)), RECORD);
	EQ(((struct sci_ev_record *)room)->type, SCI_EV_CONNECT);
	EQ(((struct sci_ev_record *)room)->node, adapter_node(0));
	EV(local, SCI_EV_DISCONNECT);
}

TEST(a_bad_pointer_loses_no_event)
{
	begin();
	visit();
	CHECK(readable(local, TEST_WAIT_MS));
	FAILS(SYS(read(local, nowhere, RECORD)), EFAULT);
	EV(local, SCI_EV_CONNECT);
	EV(local, SCI_EV_DISCONNECT);
}

TEST(nothing_to_read)
{
	struct sci_ev_record ev;

	begin();
	CHECK(!readable(local, 0));
	nonblocking(local);
	FAILS(SYS(read(local, &ev, RECORD)), EAGAIN);
	FAILS(SYS(read(local, &ev, 1)), EINVAL);
}

TEST(as_many_as_there_are_and_fit)
{
	struct sci_ev_record ev[9];
	size_t got, all = 8 * RECORD;

	begin();
	for (unsigned int i = 0; i < 4; i++)
		visit();
	EQ(SYS(read(local, ev, 3 * RECORD)), 3 * RECORD);
	for (got = 3 * RECORD; got < all;)
		got += OK(SYS(read(local, (char *)ev + got, all - got)));
	EQ(got, all);
	for (unsigned int i = 0; i < 8; i++)
		EQ(ev[i].type, i % 2 ? SCI_EV_DISCONNECT : SCI_EV_CONNECT);
	nonblocking(local);
	FAILS(SYS(read(local, ev, sizeof(ev))), EAGAIN);
}

static void *read_one(void *arg)
{
	OK(SYS(read(local, arg, RECORD)));
	return NULL;
}

TEST(a_reader_waits)
{
	struct sci_ev_record ev = { 0 };
	pthread_t thread;

	begin();
	EQ(pthread_create(&thread, NULL, read_one, &ev), 0);
	visit();
	EQ(pthread_join(thread, NULL), 0);
	EQ(ev.type, SCI_EV_CONNECT);
	EV(local, SCI_EV_DISCONNECT);
}

static _Atomic int interrupted;

static void on_signal(int sig)
{
	(void)sig;
}

static void *read_interrupted(void *arg)
{
	struct sci_ev_record ev;

	FAILS(SYS(read(local, &ev, RECORD)), EINTR);
	atomic_store(&interrupted, 1);
	return arg;
}

TEST(a_signal_ends_the_wait)
{
	struct sigaction action = { .sa_handler = on_signal };
	pthread_t thread;

	begin();
	OK(SYS(sigaction(SIGUSR1, &action, NULL)));
	EQ(pthread_create(&thread, NULL, read_interrupted, NULL), 0);
	/* a signal before read() has no effect: repeat until one ends the read() */
	WAIT_UNTIL((pthread_kill(thread, SIGUSR1),
		    atomic_load(&interrupted)));
	EQ(pthread_join(thread, NULL), 0);
	visit();
	EV(local, SCI_EV_CONNECT);
}

TEST(epoll_tells_edges)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	int ep;

	begin();
	ep = OK(SYS(epoll_create1(EPOLL_CLOEXEC)));
	OK(SYS(epoll_ctl(ep, EPOLL_CTL_ADD, local, &event)));
	EQ(SYS(epoll_wait(ep, &event, 1, 0)), 0);
	visit();
	EQ(SYS(epoll_wait(ep, &event, 1, TEST_WAIT_MS)), 1);
	EV(local, SCI_EV_CONNECT);
	EV(local, SCI_EV_DISCONNECT);
	visit();
	EQ(SYS(epoll_wait(ep, &event, 1, TEST_WAIT_MS)), 1);
	/* close the descriptor while epoll watches it */
	close(local);
}

/* ---- readers with bad pointers ---- */

static atomic_bool enough;

/* Take events that cannot be copied, so that the kernel puts them back. */
static void *read_badly(void *arg)
{
	while (!atomic_load(&enough)) {
		if (read(*(int *)arg, nowhere, RECORD) < 0 && errno != EFAULT)
			EQ(errno, EAGAIN);
		sched_yield();
	}
	return NULL;
}

static pthread_t read_badly_begin(int *fd)
{
	pthread_t thread;

	nonblocking(*fd);
	atomic_store(&enough, false);
	EQ(pthread_create(&thread, NULL, read_badly, fd), 0);
	return thread;
}

static void read_badly_end(pthread_t thread)
{
	atomic_store(&enough, true);
	EQ(pthread_join(thread, NULL), 0);
}

static void *visit_often(void *arg)
{
	for (unsigned int i = 0; i < *(unsigned int *)arg; i++)
		visit();
	return NULL;
}

/* A reader that finds nothing, because another one holds the event, is woken again. */
TEST(events_that_are_put_back_wake_readers)
{
	unsigned int visits = 500;
	struct sci_ev_record ev;
	pthread_t bad, visitor;

	begin();
	bad = read_badly_begin(&local);
	EQ(pthread_create(&visitor, NULL, visit_often, &visits), 0);
	for (unsigned int got = 0; got < 2 * visits;) {
		CHECK(readable(local, TEST_WAIT_MS));
		got += read(local, &ev, RECORD) == (ssize_t)RECORD;
	}
	EQ(pthread_join(visitor, NULL), 0);
	read_badly_end(bad);
}

/* ---- overflow ---- */

#define EVENTS	4096u	/* events that one descriptor holds */

static unsigned int drain(int fd, struct sci_ev_record *last,
			  unsigned int *overflows)
{
	struct sci_ev_record ev;
	unsigned int n = 0;

	*overflows = 0;
	while (read(fd, &ev, RECORD) == (ssize_t)RECORD) {
		*last = ev;
		*overflows += ev.type == SCI_EV_OVERFLOW;
		n++;
	}
	return n;
}

/* Call @make, which makes @each events, until events of @fd are lost. */
static void overflow(int fd, void (*make)(void), unsigned int each)
{
	uint64_t begun = ksft_now_ms();
	unsigned int n, read, overflows = 0;
	struct sci_ev_record last = { 0 };
	pthread_t bad;

	for (n = 64; n <= 16384 && !overflows; n *= 4) {
		/* events that are put back must not raise the queue's limit */
		bad = read_badly_begin(&fd);
		for (unsigned int i = 0; i < n; i += each) {
			make();
			if (ksft_now_ms() - begun > PATIENCE_MS)
				SKIP("no overflow after %u events", i);
		}
		/* wait for events that are still on their way */
		OK(adapter_probe(importer, node));
		read_badly_end(bad);
		read = drain(fd, &last, &overflows);
		CHECK(read <= n);
		/* more: one that was put back, and the overflow */
		CHECK(read <= EVENTS + 2);
	}
	ksft_note("%u records", read);
	EQ(overflows, 1);
	EQ(last.type, SCI_EV_OVERFLOW);
	EQ(last.node, 0);
	EQ(last.cookie, 0);
	/* the queue works again after an overflow */
	make();
	CHECK(readable(fd, TEST_WAIT_MS));
	CHECK(drain(fd, &last, &overflows) > 0);
	EQ(overflows, 0);
}

static void link_down_and_up(void)
{
	OK(knob_set(0, KNOB_LINK, 0));
	OK(knob_set(0, KNOB_LINK, 1));
}

TEST_LIMIT(events_of_an_import_overflow, 180)
{
	NEED_ADAPTERS(2);
	NEED_KNOB(KNOB_LINK);
	begin();
	overflow(OK(remote_connect(importer, node, 1)), link_down_and_up, 2);
}

TEST_LIMIT(events_of_a_segment_overflow, 180)
{
	begin();
	overflow(local, visit, 2);
}

/* ---- several readers ---- */

static void *read_many(void *arg)
{
	struct sci_ev_record ev;
	_Atomic unsigned int *left = arg;

	while (atomic_load(left))
		if (readable(local, 10) &&
		    read(local, &ev, RECORD) == (ssize_t)RECORD)
			atomic_fetch_sub(left, 1);
	return NULL;
}

TEST(no_event_is_read_twice)
{
	_Atomic unsigned int left = 200;
	pthread_t thread[3];

	begin();
	nonblocking(local);
	for (unsigned int i = 0; i < ARRAY_SIZE(thread); i++)
		EQ(pthread_create(&thread[i], NULL, read_many, &left), 0);
	for (unsigned int i = 0; i < 100; i++) {
		visit();
		WAIT_UNTIL(atomic_load(&left) <= 200 - 2 * i);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(thread); i++)
		EQ(pthread_join(thread[i], NULL), 0);
	EQ(left, 0);
	CHECK(!readable(local, 0));
}

static void read_for_ever(struct peer *self, void *arg)
{
	struct sci_ev_record ev;

	(void)arg;
	peer_expect(self, "begin");
	begin();
	peer_send(self, "begun");
	OK(SYS(read(local, &ev, RECORD)));
}

TEST(a_reader_can_be_killed)
{
	struct peer *p[10];

	for (unsigned int i = 0; i < ARRAY_SIZE(p); i++)
		p[i] = peer_spawn(read_for_ever, NULL);
	for (unsigned int i = 0; i < ARRAY_SIZE(p); i++) {
		peer_send(p[i], "begin");
		peer_expect(p[i], "begun");
		peer_kill(p[i]);
		WAIT_UNTIL(!sysfs_exists(adapters() > 1, "segment1"));
	}
}

/* ---- memory of events ---- */

#define CGROUPS		"/tmp/sci-cgroups"
#define CGROUP		CGROUPS "/test"
#define QUEUES		8u

/* Fill QUEUES event queues, each with EVENTS completions of transfers. */
static void collect_events(struct peer *self, void *arg)
{
	struct sci_dma_vec vec = { 0, 0, PAGE };
	struct pair p;
	int queue, mine;

	(void)arg;
	peer_expect(self, "join");
	OK(write_text(CGROUP "/cgroup.procs", "0"));
	p = PAIR(PAGE);
	mine = OK(segment_private(p.importer, PAGE));
	peer_send(self, "empty");
	peer_expect(self, "fill");
	for (unsigned int i = 0; i < QUEUES; i++) {
		queue = OK(dma_create(p.importer, 64));
		for (unsigned int n = 0; n < EVENTS;) {
			int ret = dma_submit(queue, 0, mine, p.remote, &vec, 1,
					     n);

			CHECK(!ret || ret == -EAGAIN);
			n += !ret;
		}
		WAIT_UNTIL(!dma_submit(queue, SCI_DMA_WAIT, mine, p.remote,
				       &vec, 1, 0));
		peer_send(self, "full");
	}
	peer_expect(self, "nothing");
}

static void cgroup_make(void)
{
	mkdir(CGROUPS, 0700);
	if (SYS(mount("none", CGROUPS, "cgroup2", 0, NULL)) < 0 ||
	    write_text(CGROUPS "/cgroup.subtree_control", "+memory") < 0) {
		umount(CGROUPS);
		SKIP("no memory control groups");
	}
	OK(SYS(mkdir(CGROUP, 0700)));
}

/* Half of the memory suffices: the kernel charges whole pages, and some of it late. */
TEST_LIMIT(events_are_charged_to_who_can_read_them, 120)
{
	struct peer *peer = peer_spawn(collect_events, NULL);
	long long before, after;

	NEED_ROOT();
	NEED_CAP(SCI_CAP_DMA);
	cgroup_make();
	peer_send(peer, "join");
	peer_expect(peer, "empty");
	before = read_number(CGROUP "/memory.current");
	peer_send(peer, "fill");
	for (unsigned int i = 0; i < QUEUES; i++)
		peer_expect(peer, "full");
	after = read_number(CGROUP "/memory.current");
	peer_kill(peer);
	WAIT_UNTIL(!rmdir(CGROUP));
	OK(SYS(umount(CGROUPS)));
	ksft_note("%lld bytes before, %lld after", before, after);
	CHECK(before > 0);
	CHECK(after - before > (long long)(QUEUES * EVENTS * RECORD / 2));
}
