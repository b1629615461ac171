// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test a link that goes down, a link that loses packets, and a node that is gone. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sci_test.h"

#define LENGTH		(2 * PAGE)
#define ALL_LOST	1000000u
#define TENTH		100000u

static void begin(const char *knob)
{
	NEED_ADAPTERS(2);
	NEED_KNOB(knob);
}

static void link_set(unsigned int i, bool up)
{
	OK(knob_set(i, KNOB_LINK, up));
}

static struct sci_ioc_query query_of(int fd)
{
	struct sci_ioc_query q;

	OK(adapter_query(fd, &q));
	return q;
}

static struct sci_ioc_check snapshot(int fd)
{
	struct sci_ioc_check c = { 0 };

	OK(sci_check(fd, &c));
	c.errors = c.out_errors;
	c.fatal = c.out_fatal;
	return c;
}

/* ---- the link ---- */

TEST(events_tell_down_and_up)
{
	struct pair p;

	begin(KNOB_LINK);
	p = PAIR(LENGTH);
	NO_EV(p.remote);
	link_set(p.near, false);
	EV(p.remote, SCI_EV_LINK_DOWN);
	link_set(p.near, true);
	EV(p.remote, SCI_EV_LINK_UP);
	WAIT_UNTIL(!adapter_probe(p.importer, p.node));
	/* a link that is down for a short while breaks no connection */
	WORD(p.there, 0) = 1;
	OK(sci_flush(p.remote));
	EQ(p.here[0], 1);
	NO_EV(p.remote);
	NO_EV(p.local);
}

TEST(the_same_state_again_is_no_event)
{
	struct sci_ioc_counters a, b;
	struct pair p;

	begin(KNOB_LINK);
	p = PAIR(LENGTH);
	OK(adapter_counters(p.importer, &a));
	link_set(p.near, true);
	NO_EV(p.remote);
	link_set(p.near, false);
	link_set(p.near, false);
	EV(p.remote, SCI_EV_LINK_DOWN);
	NO_EV(p.remote);
	OK(adapter_counters(p.importer, &b));
	EQ(b.out_link_downs, a.out_link_downs + 1);
}

TEST(nothing_goes_over_a_link_that_is_down)
{
	struct world w;
	struct pair *p = &w.pair;
	int fd;

	begin(KNOB_LINK);
	w = WORLD();
	link_set(p->near, false);
	FAILS(adapter_probe(p->importer, p->node), ENETDOWN);
	FAILS(remote_connect(p->importer, p->node, p->id), ENETDOWN);
	FAILS(intr_connect(p->importer, p->node, 1, 0), ENETDOWN);
	FAILS(intr_trigger(w.fd[KIND_RINTR]), ENETDOWN);
	fd = remote_connect_as(p->importer, p->node, p->id, SCI_CONNECT_ASYNC,
			       TEST_WAIT_MS);
	if (fd >= 0)
		EQ(EV(fd, SCI_EV_CONNECT).status, -ENETDOWN);
	else
		EQ(fd, -ENETDOWN);
	/* calls that need no other node work */
	close(OK(segment_exported(p->importer, 100, PAGE)));
	OK(sci_unmap(MAP(w.fd[KIND_LOCAL], 0, PAGE, RW), PAGE));
}

TEST(queries_work_when_it_is_down)
{
	struct sci_ioc_counters before, after;
	struct sci_ioc_query q;
	int fd;

	begin(KNOB_LINK);
	fd = OK(adapter_open(0));
	q = query_of(fd);
	CHECK(q.out_link_up_ms > 0);
	OK(adapter_counters(fd, &before));
	link_set(0, false);
	EQ(query_of(fd).out_link_up_ms, 0);
	WAIT_UNTIL(query_of(fd).out_link_down_ms > q.out_link_down_ms);
	OK(adapter_counters(fd, &after));
	EQ(after.out_link_downs, before.out_link_downs + 1);
	CHECK(after.out_errors > before.out_errors);
	link_set(0, true);
	WAIT_UNTIL(query_of(fd).out_link_up_ms > 0);
}

TEST(the_status_page_tells_it)
{
	volatile struct sci_status_page *s;
	__u32 errors;
	int fd;

	begin(KNOB_LINK);
	fd = OK(adapter_open(0));
	s = MAP(fd, SCI_MMAP_STATUS, PAGE, PROT_READ);
	errors = s->errors;
	EQ(s->down, 0);
	link_set(0, false);
	CHECK(s->down != 0);
	CHECK(s->errors != errors);
	link_set(0, true);
	WAIT_UNTIL(s->down == 0);
}

TEST(checks_tell_it)
{
	struct sci_ioc_check c;
	struct pair p;

	begin(KNOB_LINK);
	p = PAIR(LENGTH);
	c = snapshot(p.remote);
	link_set(p.near, false);
	OK(sci_check(p.remote, &c));
	EQ(c.out_result, SCI_CHECK_PENDING);
	link_set(p.near, true);
	WAIT_UNTIL(!adapter_probe(p.importer, p.node));
	OK(sci_check(p.remote, &c));
	EQ(c.out_result, SCI_CHECK_RETRIABLE);
	c = snapshot(p.remote);
	OK(sci_check(p.remote, &c));
	EQ(c.out_result, SCI_CHECK_OK);
}

TEST(ends_are_ends_though_the_link_is_down)
{
	struct pair p;

	begin(KNOB_LINK);
	p = PAIR(LENGTH);
	link_set(p.near, false);
	OK(sci_unmap(p.there, LENGTH));
	close(p.remote);
	link_set(p.near, true);
	/* the exporter gets the disconnect when the link is up again */
	CHECK(readable(p.local, TEST_WAIT_MS));
}

static void *unexport(void *arg)
{
	struct pair *p = arg;

	OK(segment_unexport(p->local, SCI_UNEXPORT_HOW_FORCE));
	/* after the unexport, stores of either side are not visible to the other */
	p->here[0] = 1;
	return NULL;
}

TEST(force_over_a_link_that_is_down)
{
	pthread_t thread;
	struct pair p;

	begin(KNOB_LINK);
	p = PAIR(LENGTH);
	link_set(p.far, false);
	EQ(pthread_create(&thread, NULL, unexport, &p), 0);
	/* returns when the importers have acknowledged or are declared gone */
	link_set(p.far, true);
	EQ(pthread_join(thread, NULL), 0);
	CHECK(p.there[0] != 1);
	EV_SOON(p.remote, SCI_EV_LOST);
}

static void unexport_until_killed(struct peer *self, void *arg)
{
	struct pair p;

	(void)arg;
	peer_expect(self, "export");
	p = PAIR_EXPORT(LENGTH);
	PEER_PUT(self, p);
	peer_expect(self, "force");
	peer_send(self, "forcing");
	segment_unexport(p.local, SCI_UNEXPORT_HOW_FORCE);
	peer_expect(self, "nothing");
}

/* The importer can't acknowledge. The segment must still get its memory back. */
TEST(force_takes_memory_away_though_nobody_hears_it)
{
	struct pair p;

	begin(KNOB_LINK);
	p = PAIR(LENGTH);
	OK(sci_unmap(p.there, LENGTH));
	OK(sci_unmap(MAP(p.remote, 0, LENGTH, RW), LENGTH));
	link_set(p.far, false);
	OK(segment_unexport(p.local, SCI_UNEXPORT_HOW_FORCE));
	FAILS(sci_map(p.remote, 0, LENGTH, RW), ENOTCONN);
	link_set(p.far, true);
	EV_SOON(p.remote, SCI_EV_LOST);
	/* the segment can be exported again */
	OK(segment_export(p.local));
	close(OK(remote_connect(p.importer, p.node, p.id)));
}

TEST(force_does_not_wait_for_a_kernel_that_says_nothing)
{
	struct pair p;

	begin(KNOB_WITHHOLD);
	p = PAIR(LENGTH);
	OK(knob_set(p.near, KNOB_WITHHOLD, MESSAGE_CUT_ACK));
	OK(segment_unexport(p.local, SCI_UNEXPORT_HOW_FORCE));
	OK(segment_export(p.local));
	/* the session delivers the withheld message before all later ones */
	OK(knob_set(p.near, KNOB_WITHHOLD, 0));
	close(OK(remote_connect(p.importer, p.node, p.id)));
}

static void map_and_unmap(struct peer *self, void *arg)
{
	struct pair p;

	(void)arg;
	peer_expect(self, "map");
	p = PAIR(LENGTH);
	peer_send(self, "mapped");
	peer_expect(self, "unmap");
	OK(sci_unmap(p.there, LENGTH));
	close(p.remote);
	peer_send(self, "unmapped");
}

/* An adapter may take seconds to unmap: it waits for packets to a silent node. */
TEST(an_unmap_that_takes_long_keeps_only_its_process_waiting)
{
	struct peer *peer;
	struct pair p;

	NEED_KNOB(KNOB_HOLD_UNMAP);
	peer = peer_spawn(map_and_unmap, NULL);
	begin(KNOB_HOLD_UNMAP);
	peer_send(peer, "map");
	peer_expect(peer, "mapped");
	OK(knob_set(0, KNOB_HOLD_UNMAP, 1));
	peer_send(peer, "unmap");
	WAIT_UNTIL(knob_get(0, KNOB_UNMAPS_HELD) == 1);
	/* calls, page faults and messages of the same adapter do not wait */
	p = PAIR(LENGTH);
	p.there[0] = 1;
	EQ(p.here[0], 1);
	CHECK(nodes_answer());
	EQ(knob_get(0, KNOB_UNMAPS_HELD), 1);
	OK(knob_set(0, KNOB_HOLD_UNMAP, 0));
	peer_expect(peer, "unmapped");
	peer_join(peer);
}

/* Return a segment of the second adapter, connected to the first one. */
static int import_second(void)
{
	OK(segment_exported(OK(adapter_open(1)), 1, LENGTH));
	return OK(remote_connect(OK(adapter_open(0)), adapter_node(1), 1));
}

static void map_second_and_unmap(struct peer *self, void *arg)
{
	volatile uint32_t *map = MAP(import_second(), 0, LENGTH, RW);

	(void)arg;
	peer_send(self, "mapped");
	peer_expect(self, "unmap");
	OK(sci_unmap(map, LENGTH));
	peer_send(self, "unmapped");
}

static void connect_and_be_killed(struct peer *self, void *arg)
{
	const unsigned int *node = arg;

	OK(remote_connect(OK(adapter_open(0)), *node, 1));
	peer_send(self, "connected");
	peer_expect(self, "nothing");
}

/* Remove a node and add it again: its handles begin anew. Return its new segment. */
static int begins_anew(unsigned int node)
{
	unsigned int i = 0;

	while (adapter_node(i) != node)
		i++;
	OK(adapter_remove(i));
	OK(node_add(node));
	adapters_find();
	for (i = 0; adapter_node(i) != node; i++)
		;
	return OK(segment_exported(OK(adapter_open(i)), 1, LENGTH));
}

/*
 * A process's DISCONNECT waits for an unmap to another node. Meanwhile its receiver ends, and the
 * next node gives the same handle to another client.
 */
TEST(a_late_disconnect_is_not_for_the_next_node)
{
	struct peer *slow, *killed;
	long long connections;
	unsigned int node;
	int local, remote;

	begin(KNOB_HOLD_UNMAP);
	NEED_ADAPTERS(3);
	NEED_ROOT();
	node = adapter_node(2);
	begins_anew(node);
	killed = peer_spawn(connect_and_be_killed, &node);
	peer_expect(killed, "connected");
	slow = peer_spawn(map_second_and_unmap, NULL);
	peer_expect(slow, "mapped");
	OK(knob_set(0, KNOB_HOLD_UNMAP, 1));
	peer_send(slow, "unmap");
	WAIT_UNTIL(knob_get(0, KNOB_UNMAPS_HELD) == 1);
	connections = counts_of(0).connections;
	/* the process ends after the unmap, but it has no connection any more */
	OK(SYS(kill(peer_pid(killed), SIGKILL)));
	WAIT_UNTIL(counts_of(0).connections == connections - 1);
	local = begins_anew(node);
	remote = OK(remote_connect(OK(adapter_open(0)), node, 1));
	OK(knob_set(0, KNOB_HOLD_UNMAP, 0));
	peer_expect(slow, "unmapped");
	peer_join(slow);
	peer_kill(killed);
	OK(adapter_probe(OK(adapter_open(0)), node));
	OK(segment_unexport(local, SCI_UNEXPORT_HOW_FORCE));
	EV_SOON(remote, SCI_EV_LOST);
}

TEST(whoever_forces_can_be_killed)
{
	struct peer *peer = peer_spawn(unexport_until_killed, NULL);
	struct pair p;

	begin(KNOB_LINK);
	peer_send(peer, "export");
	p = PEER_GET(peer, struct pair);
	PAIR_IMPORT(&p);
	link_set(p.far, false);
	peer_send(peer, "force");
	peer_expect(peer, "forcing");
	peer_kill(peer);
	link_set(p.far, true);
	EV_SOON(p.remote, SCI_EV_LOST);
}

TEST(a_link_that_flaps)
{
	struct pair p;

	begin(KNOB_LINK);
	p = PAIR(LENGTH);
	for (unsigned int i = 0; i < 50; i++) {
		link_set(p.near, i % 2);
		link_set(p.far, i % 3);
	}
	link_set(p.near, true);
	link_set(p.far, true);
	WAIT_UNTIL(!adapter_probe(p.importer, p.node));
	close(OK(remote_connect(p.importer, p.node, p.id)));
}

/* ---- a node that is gone ---- */

TEST_LIMIT(a_node_that_is_silent_is_declared_gone, 120)
{
	struct pair p;
	int fd;

	begin(KNOB_LOSS);
	p = PAIR(LENGTH);
	p.here[0] = 0x1234;
	OK(knob_set(p.far, KNOB_LOSS, ALL_LOST));
	OK(knob_set(p.near, KNOB_LOSS, ALL_LOST));
	FAILS_EITHER(remote_connect_as(p.importer, p.node, p.id, 0, 100),
		     EHOSTUNREACH, ETIMEDOUT);
	EV_SOON(p.remote, SCI_EV_LOST);
	EV_SOON(p.local, SCI_EV_LOST);
	CHECK(p.there[0] != 0x1234);
	FAILS(sci_flush(p.remote), ENOTCONN);

	OK(knob_set(p.far, KNOB_LOSS, 0));
	OK(knob_set(p.near, KNOB_LOSS, 0));
	WAIT_UNTIL(!adapter_probe(p.importer, p.node));
	fd = OK(remote_connect(p.importer, p.node, p.id));
	EQ(WORD(MAP(fd, 0, LENGTH, RW), 0), 0x1234);
}

static unsigned int nodes_known(unsigned int i)
{
	char path[64];
	unsigned int n = 0;
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), SYSFS_DIR "/sci%u", adapter_index(i));
	dir = opendir(path);
	CHECK(dir);
	while ((e = readdir(dir)))
		n += !strncmp(e->d_name, "peer", 4);
	closedir(dir);
	return n;
}

#define ABSENT_FIRST	0x8000u
#define ABSENT		500u

/* Otherwise any user could fill the kernel's memory with nodes. */
TEST(nodes_that_do_not_exist_are_forgotten)
{
	unsigned int known, node;
	int adapter, fd;

	NEED_ADAPTERS(1);
	adapter = OK(adapter_open(0));
	known = nodes_known(0);
	for (unsigned int i = 0; i < ABSENT; i++) {
		node = ABSENT_FIRST + i * SCI_IOC_NODE_STEP;
		FAILS(adapter_probe(adapter, node), EHOSTUNREACH);
		fd = OK(remote_connect_as(adapter, node, 1, SCI_CONNECT_ASYNC,
					  SCI_TIMEOUT_INFINITE));
		close(fd);
		FAILS_EITHER(intr_connect(adapter, node, 1, 0), EHOSTUNREACH,
			     ETIMEDOUT);
	}
	WAIT_UNTIL(nodes_known(0) <= known);
}

/* The kernel remembers a node that exists as long as the adapter is there. */
TEST(a_node_that_was_met_is_remembered)
{
	struct pair p;

	NEED_ADAPTERS(2);
	p = PAIR(LENGTH);
	OK(sci_unmap(p.there, LENGTH));
	close(p.remote);
	close(p.local);
	EQ(sysfs_number(p.near, "peer%u/connections", p.node), 0);
	OK(adapter_probe(p.importer, p.node));
	CHECK(sysfs_exists(p.near, "peer%u", p.node));
}

TEST(a_connect_that_nobody_hears)
{
	uint64_t begun;
	struct pair p;
	int fd;

	begin(KNOB_LOSS);
	p = PAIR(LENGTH);
	OK(knob_set(p.near, KNOB_LOSS, ALL_LOST));
	OK(knob_set(p.far, KNOB_LOSS, ALL_LOST));
	begun = ksft_now_ms();
	FAILS_EITHER(remote_connect_as(p.importer, p.node, p.id, 0, 300),
		     EHOSTUNREACH, ETIMEDOUT);
	ksft_note("given up after %llu ms",
		  (unsigned long long)(ksft_now_ms() - begun));
	/* closing ends a connect without a timeout */
	fd = remote_connect_as(p.importer, p.node, p.id, SCI_CONNECT_ASYNC,
			       SCI_TIMEOUT_INFINITE);
	if (fd >= 0)
		close(fd);
}

static _Atomic bool connected;

static void on_signal(int sig)
{
	(void)sig;
}

static void *connect_for_ever(void *arg)
{
	struct pair *p = arg;
	int ret = remote_connect_as(p->importer, p->node, p->id, 0,
				    SCI_TIMEOUT_INFINITE);

	atomic_store(&connected, true);
	/* the node may be declared gone before the signal comes */
	CHECK(ret == -EINTR || ret == -EHOSTUNREACH || ret == -ETIMEDOUT);
	return NULL;
}

TEST(a_signal_ends_the_wait)
{
	struct sigaction action = { .sa_handler = on_signal };
	pthread_t thread;
	struct pair p;

	begin(KNOB_LOSS);
	p = PAIR(LENGTH);
	OK(SYS(sigaction(SIGUSR1, &action, NULL)));
	OK(knob_set(p.near, KNOB_LOSS, ALL_LOST));
	EQ(pthread_create(&thread, NULL, connect_for_ever, &p), 0);
	WAIT_UNTIL((pthread_kill(thread, SIGUSR1), atomic_load(&connected)));
	EQ(pthread_join(thread, NULL), 0);
	OK(knob_set(p.near, KNOB_LOSS, 0));
	WAIT_UNTIL(!adapter_probe(p.importer, p.node));
}

static void connect_until_killed(struct peer *self, void *arg)
{
	struct pair p;

	(void)arg;
	p = PEER_GET(self, struct pair);
	p.importer = OK(adapter_open(p.near));
	peer_send(self, "connecting");
	for (;;)
		remote_connect_as(p.importer, p.node, p.id, 0,
				  SCI_TIMEOUT_INFINITE);
}

TEST(whoever_waits_can_be_killed)
{
	struct peer *peer = peer_spawn(connect_until_killed, NULL);
	struct pair p;

	begin(KNOB_LOSS);
	p = PAIR_EXPORT(LENGTH);
	OK(knob_set(p.near, KNOB_LOSS, ALL_LOST));
	PEER_PUT(peer, p);
	peer_expect(peer, "connecting");
	peer_kill(peer);
}

/* ---- loss ---- */

/* Lose, duplicate and reorder one packet in ten each. */
static void shake(const struct pair *p)
{
	static const char *const knobs[] = {
		KNOB_LOSS, KNOB_DUPLICATE, KNOB_REORDER,
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(knobs); i++) {
		if (!has_knob(p->near, knobs[i]))
			continue;
		OK(knob_set(p->near, knobs[i], TENTH));
		OK(knob_set(p->far, knobs[i], TENTH));
	}
}

TEST_LIMIT(connections_survive_loss, 120)
{
	struct sci_ioc_counters a, b;
	struct pair p;

	begin(KNOB_LOSS);
	p = PAIR(LENGTH);
	OK(adapter_counters(p.importer, &a));
	shake(&p);
	for (unsigned int i = 0; i < 50; i++) {
		int fd = OK(remote_connect(p.importer, p.node, p.id));

		EV(p.local, SCI_EV_CONNECT);
		FAILS(remote_connect(p.importer, p.node, p.id + 1), ENOENT);
		close(fd);
		EV(p.local, SCI_EV_DISCONNECT);
	}
	NO_EV(p.local);
	NO_EV(p.remote);
	OK(adapter_counters(p.importer, &b));
	CHECK(b.out_ctrl_resent > a.out_ctrl_resent);
}

TEST_LIMIT(triggers_survive_loss, 120)
{
	struct world w;
	__u64 one;

	begin(KNOB_LOSS);
	w = WORLD();
	shake(&w.pair);
	for (unsigned int i = 0; i < 100; i++)
		OK(intr_trigger(w.fd[KIND_RINTR]));
	for (unsigned int i = 0; i < 100; i++) {
		CHECK(readable(w.fd[KIND_INTR], TEST_WAIT_MS));
		EQ(SYS(read(w.fd[KIND_INTR], &one, sizeof(one))), 8);
	}
	/* no trigger arrives twice */
	OK(adapter_probe(w.pair.importer, w.pair.node));
	CHECK(!readable(w.fd[KIND_INTR], 0));
}

TEST_LIMIT(data_survives_loss, 120)
{
	static uint32_t data[1024], room[1024];
	__u32 number = 0;
	struct pair p;
	int intr, fd;

	begin(KNOB_LOSS);
	p = PAIR(LENGTH);
	intr = OK(intr_create(p.exporter, SCI_INTR_WITH_DATA, &number));
	fd = OK(intr_connect(p.importer, p.node, number, SCI_CONNECT_DATA));
	shake(&p);
	for (unsigned int i = 0; i < 20; i++) {
		size_t length = i % 2 ? sizeof(data) : 100;

		fill(data, sizeof(data), i);
		OK(intr_send(fd, data, length));
		CHECK(readable(intr, TEST_WAIT_MS));
		EQ(SYS(read(intr, room, sizeof(room))), length);
		CHECK(filled(room, length, i));
	}
}

TEST_LIMIT(revocation_survives_loss, 120)
{
	struct pair p;

	begin(KNOB_LOSS);
	p = PAIR(LENGTH);
	shake(&p);
	for (uint32_t i = 1; i <= 20; i++) {
		int fd = OK(remote_connect(p.importer, p.node, p.id));
		volatile uint32_t *there = MAP(fd, 0, LENGTH, RW);

		OK(segment_unexport(p.local, SCI_UNEXPORT_HOW_FORCE));
		p.here[0] = i;
		CHECK(there[0] != i);
		EV(fd, SCI_EV_LOST);
		OK(sci_unmap(there, LENGTH));
		close(fd);
		OK(segment_export(p.local));
	}
}

/* ---- lost transfers ---- */

TEST(a_lost_transfer_is_retriable)
{
	struct sci_ioc_counters a, b;
	struct sci_ioc_check c;
	struct pair p;

	begin(KNOB_RETRIABLE);
	p = PAIR(LENGTH);
	OK(adapter_counters(p.importer, &a));
	c = snapshot(p.remote);
	OK(knob_set(p.near, KNOB_RETRIABLE, 3));
	WORD(p.there, 0) = 1;
	OK(sci_check(p.remote, &c));
	EQ(c.out_result, SCI_CHECK_RETRIABLE);
	CHECK(c.out_errors != c.errors);
	EQ(c.out_fatal, c.fatal);
	OK(adapter_counters(p.importer, &b));
	EQ(b.out_errors, a.out_errors + 3);
	c = snapshot(p.remote);
	OK(sci_check(p.remote, &c));
	EQ(c.out_result, SCI_CHECK_OK);
}

TEST(some_losses_are_for_good)
{
	struct sci_ioc_check c;
	struct pair p;

	begin(KNOB_FATAL);
	p = PAIR(LENGTH);
	c = snapshot(p.importer);
	OK(knob_set(p.near, KNOB_FATAL, 1));
	OK(sci_check(p.importer, &c));
	EQ(c.out_result, SCI_CHECK_NOT_RETRIABLE);
	CHECK(c.out_fatal != c.fatal);
}

TEST(the_status_page_counts_losses)
{
	volatile struct sci_status_page *s;
	__u32 errors, fatal;
	int fd;

	begin(KNOB_RETRIABLE);
	fd = OK(adapter_open(0));
	s = MAP(fd, SCI_MMAP_STATUS, PAGE, PROT_READ);
	errors = s->errors;
	fatal = s->fatal;
	OK(knob_set(0, KNOB_RETRIABLE, 2));
	EQ(s->errors, errors + 2);
	EQ(s->fatal, fatal);
	OK(knob_set(0, KNOB_FATAL, 2));
	EQ(s->fatal, fatal + 2);
}

TEST(transfers_that_fail)
{
	struct sci_ioc_counters a, b;
	struct world w;
	int queue;

	begin(KNOB_DMA_ERRORS);
	NEED_CAP(SCI_CAP_DMA);
	w = WORLD();
	queue = w.fd[KIND_DMA];
	OK(adapter_counters(w.pair.importer, &a));
	OK(knob_set(w.pair.near, KNOB_DMA_ERRORS, ALL_LOST));
	FAILS(dma_move(queue, SCI_DMA_WAIT, w.fd[KIND_LOCAL], w.pair.remote,
		       PAGE), EIO);
	OK(dma_move(queue, 0, w.fd[KIND_LOCAL], w.pair.remote, PAGE));
	EQ(EV(queue, SCI_EV_DMA).status, -EIO);
	OK(knob_set(w.pair.near, KNOB_DMA_ERRORS, 0));
	OK(dma_move(queue, SCI_DMA_WAIT, w.fd[KIND_LOCAL], w.pair.remote,
		    PAGE));
	OK(adapter_counters(w.pair.importer, &b));
	EQ(b.out_dma_errors, a.out_dma_errors + 2);
}

TEST(transfers_over_a_link_that_is_down)
{
	struct world w;
	int ret;

	begin(KNOB_LINK);
	NEED_CAP(SCI_CAP_DMA);
	w = WORLD();
	link_set(w.pair.near, false);
	ret = dma_move(w.fd[KIND_DMA], SCI_DMA_WAIT, w.fd[KIND_LOCAL],
		       w.pair.remote, PAGE);
	CHECK(ret == -EIO || ret == -ENETDOWN);
}
