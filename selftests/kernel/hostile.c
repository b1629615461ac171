// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test messages that no sane kernel of another node sends. The loop driver changes
 * messages on their way. It leaves their packets valid, so that the session accepts
 * them. Other tests make allocations of the kernel's workers fail.
 *
 * --messages=N	number of messages that are damaged at random (5000)
 * --seed=N	seed of the random numbers (printed)
 */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sci_test.h"

/* types of messages, from kmod/core/proto.h */
enum { CONNECT = 1, REPLY, DISCONNECT, NOTIFY, CUT, CUT_ACK, TRIGGER, DATA, MORE,
       DATA_REPLY, PING, PONG, LEFT, NO_TYPE };
/* offsets of their fields */
enum { AT_TYPE = 0, AT_HANDLE = 4,
       CONNECT_KIND = 1, CONNECT_GROUPS = 2, CONNECT_FLAGS = 3, CONNECT_ID = 8,
       CONNECT_UID = 12, CONNECT_GID = 16,
       REPLY_ACCESS = 1, REPLY_ERROR = 2, REPLY_EXPORTER = 8, REPLY_LENGTH = 16,
       REPLY_BASE = 24, REPLY_GROUP = 32,
       DATA_SIZE = 1, DATA_COOKIE = 2, DATA_TOTAL = 8,
       ANSWER_ERROR = 2, ANSWER_COOKIE = 8 };

#define LENGTH		(4 * PAGE)
#define MAP_MAX		(1u << 20)
#define BOUND_MS	400	/* limit for a step that may block for ever */
#define STUCK		(-ETIME)	/* result of a step that blocked for ever */
#define ANY		1		/* any result but -ENODEV */

struct scene {
	struct pair pair;
	int intr, rintr;		/* a data interrupt and its trigger */
	__u32 number;
};

static struct scene scene_of(void)
{
	struct scene s = { .pair = PAIR(LENGTH) };

	s.intr = OK(intr_create(s.pair.exporter, SCI_INTR_WITH_DATA, &s.number));
	s.rintr = OK(intr_connect(s.pair.importer, s.pair.node, s.number,
				  SCI_CONNECT_DATA));
	return s;
}

static void scene_close(struct scene *s)
{
	OK(sci_unmap(s->pair.here, LENGTH));
	OK(sci_unmap(s->pair.there, LENGTH));
	close(s->rintr);
	close(s->intr);
	close(s->pair.remote);
	close(s->pair.local);
	close(s->pair.importer);
	close(s->pair.exporter);
}

/* ---- steps, each of which sends one kind of message ---- */

/* Connect and read each page of the length that the exporter states, up to MAP_MAX. */
static int do_connect(const struct scene *s)
{
	int fd = remote_connect_as(s->pair.importer, s->pair.node, s->pair.id, 0,
				   BOUND_MS / 2);
	struct sci_ioc_remote_info info;
	long long map;

	if (fd < 0)
		return fd;
	OK(remote_info(fd, &info));
	if (info.out_length > MAP_MAX)
		info.out_length = MAP_MAX;
	map = sci_map(fd, 0, info.out_length, PROT_READ);
	if (map < 0)
		return (int)map;
	/* a page without memory at the exporter is a private page */
	for (size_t i = 0; i < info.out_length; i += PAGE)
		(void)WORD((void *)(uintptr_t)map, i / 4);
	return 0;
}

/* Connect without CAP_DAC_OVERRIDE, so that the segment's mode counts. */
static int do_connect_bound(const struct scene *s)
{
	int ret;

	may_override(false);
	ret = do_connect(s);
	may_override(true);
	return ret;
}

static int do_disconnect(const struct scene *s)
{
	int fd = remote_connect(s->pair.importer, s->pair.node, s->pair.id);

	return fd < 0 ? fd : SYS(close(fd));
}

static int do_notify(const struct scene *s)
{
	return segment_unexport(s->pair.local, SCI_UNEXPORT_HOW_NOTIFY);
}

static int do_cut(const struct scene *s)
{
	return segment_unexport(s->pair.local, SCI_UNEXPORT_HOW_FORCE);
}

static int do_probe(const struct scene *s)
{
	struct sci_ioc_probe p = {
		.size = sizeof(p), .node = s->pair.node,
		.timeout_ms = BOUND_MS / 2,
	};

	return xioctl(s->pair.importer, SCI_IOC_PROBE, &p);
}

static int do_send(const struct scene *s)
{
	static const char data[100];

	return intr_send(s->rintr, data, sizeof(data));
}

/*
 * Run @step in a process of its own. A damaged message may block @step for ever:
 * then SIGALRM must end it.
 *
 * Return: the result of @step, or STUCK.
 */
static int bounded(int (*step)(const struct scene *s), const struct scene *s)
{
	const struct itimerval bound = { .it_value.tv_usec = BOUND_MS * 1000 };
	pid_t pid = ksft_fork();
	int status, ret;

	if (pid == 0) {
		signal(SIGALRM, SIG_DFL);
		setitimer(ITIMER_REAL, &bound, NULL);
		ret = step(s);
		_exit(ret < 0 ? -ret : 0);
	}
	status = ksft_wait(pid);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		return STUCK;
	CHECK(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

/* ---- one message with one wrong field ---- */

static const struct wrong {
	const char *what;
	int (*step)(const struct scene *s);
	bool far;			/* the exporter sends the message */
	unsigned char type, offset, size;
	long long value;
	int want, or_else;
} table[] = {
	{ "no type", do_connect, false, CONNECT, AT_TYPE, 1, 0, -ETIMEDOUT, 0 },
	{ "a type too many", do_connect, false, CONNECT, AT_TYPE, 1, NO_TYPE, -ETIMEDOUT, 0 },
	{ "a connect that is a reply",
	  do_connect, false, CONNECT, AT_TYPE, 1, REPLY, -ETIMEDOUT, 0 },
	{ "a connect that is a cut",
	  do_connect, false, CONNECT, AT_TYPE, 1, CUT, -ETIMEDOUT, 0 },
	{ "an unknown kind", do_connect, false, CONNECT, CONNECT_KIND, 1, 4, -EINVAL, 0 },
	{ "a group that is none", do_connect, false, CONNECT, CONNECT_KIND, 1, 3, -ENOENT, 0 },
	{ "an interrupt that is none",
	  do_connect, false, CONNECT, CONNECT_KIND, 1, 1, -ENOENT, 0 },
	{ "too many groups", do_connect, false, CONNECT, CONNECT_GROUPS, 1, 8, -EINVAL, 0 },
	{ "far too many groups",
	  do_connect, false, CONNECT, CONNECT_GROUPS, 1, 255, -EINVAL, 0 },
	{ "an unknown flag", do_connect, false, CONNECT, CONNECT_FLAGS, 1, 2, -EINVAL, 0 },
	{ "no handle", do_connect, false, CONNECT, AT_HANDLE, 4, 0, -ETIMEDOUT, 0 },
	{ "another's handle", do_connect, false, CONNECT, AT_HANDLE, 4, -1, -ETIMEDOUT, 0 },
	{ "no such segment", do_connect, false, CONNECT, CONNECT_ID, 4, -1, -ENOENT, 0 },
	{ "another user",
	  do_connect_bound, false, CONNECT, CONNECT_UID, 8, 0x1234500012345, -EACCES, 0 },

	{ "an unknown error", do_connect, true, REPLY, REPLY_ERROR, 2, 8, -EPROTO, 0 },
	{ "the largest error", do_connect, true, REPLY, REPLY_ERROR, 2, -1, -EPROTO, 0 },
	{ "a reply to nobody", do_connect, true, REPLY, AT_HANDLE, 4, 0, -ETIMEDOUT, 0 },
	{ "a reply to another", do_connect, true, REPLY, AT_HANDLE, 4, -1, -ETIMEDOUT, 0 },
	{ "a reply without a handle",
	  do_connect, true, REPLY, REPLY_EXPORTER, 4, 0, -EPROTO, 0 },
	{ "no access", do_connect, true, REPLY, REPLY_ACCESS, 1, 0, -EPROTO, 0 },
	{ "write only", do_connect, true, REPLY, REPLY_ACCESS, 1, 2, -EPROTO, 0 },
	{ "unknown access", do_connect, true, REPLY, REPLY_ACCESS, 1, 0xff, -EPROTO, 0 },
	{ "no length", do_connect, true, REPLY, REPLY_LENGTH, 8, 0, -EPROTO, 0 },
	{ "the largest length", do_connect, true, REPLY, REPLY_LENGTH, 8, -1, -EPROTO, 0 },
	{ "a length in no machine",
	  do_connect, true, REPLY, REPLY_LENGTH, 8, 1LL << 50, -EPROTO, 0 },
	{ "less than a page", do_connect, true, REPLY, REPLY_LENGTH, 8, 1, 0, 0 },
	{ "more than there is", do_connect, true, REPLY, REPLY_LENGTH, 8, MAP_MAX, 0, 0 },
	{ "memory that is not there", do_connect, true, REPLY, REPLY_BASE, 8, -1, ANY, 0 },
	{ "a group not asked for", do_connect, true, REPLY, REPLY_GROUP, 8, 1, -EPROTO, 0 },
	{ "a reply that is a connect",
	  do_connect, true, REPLY, AT_TYPE, 1, CONNECT, -ETIMEDOUT, 0 },
	{ "a reply that is data", do_connect, true, REPLY, AT_TYPE, 1, DATA, -ETIMEDOUT, 0 },

	{ "a goodbye of nobody", do_disconnect, false, DISCONNECT, AT_HANDLE, 4, 0, 0, STUCK },
	{ "a goodbye that is none",
	  do_disconnect, false, DISCONNECT, AT_TYPE, 1, CUT_ACK, 0, STUCK },
	{ "a goodbye unheard of",
	  do_disconnect, false, DISCONNECT, AT_HANDLE, 4, -1, 0, STUCK },
	{ "left, but another", do_disconnect, true, LEFT, AT_HANDLE, 4, -1, 0, STUCK },
	{ "left by being cut", do_disconnect, true, LEFT, AT_TYPE, 1, CUT, 0, STUCK },
	{ "left by a notice", do_disconnect, true, LEFT, AT_TYPE, 1, NOTIFY, 0, STUCK },

	{ "a notice to nobody", do_notify, true, NOTIFY, AT_HANDLE, 4, -1, 0, STUCK },
	{ "left without leaving", do_notify, true, NOTIFY, AT_TYPE, 1, LEFT, 0, STUCK },
	{ "a cut not asked for", do_notify, true, NOTIFY, AT_TYPE, 1, CUT, 0, STUCK },
	{ "a reply once more", do_notify, true, NOTIFY, AT_TYPE, 1, REPLY, 0, STUCK },
	{ "a cut of nobody", do_cut, true, CUT, AT_HANDLE, 4, -1, ANY, STUCK },
	{ "a cut by a notice", do_cut, true, CUT, AT_TYPE, 1, NOTIFY, ANY, STUCK },
	{ "cut, but another", do_cut, false, CUT_ACK, AT_HANDLE, 4, -1, ANY, STUCK },
	{ "cut and gone", do_cut, false, CUT_ACK, AT_TYPE, 1, DISCONNECT, ANY, STUCK },

	{ "a ping that is none", do_probe, false, PING, AT_TYPE, 1, NO_TYPE, -EHOSTUNREACH, 0 },
	{ "a pong to nobody", do_probe, true, PONG, AT_HANDLE, 4, -1, -EHOSTUNREACH, 0 },
	{ "a pong that is a ping", do_probe, true, PONG, AT_TYPE, 1, PING, -EHOSTUNREACH, 0 },

	{ "data for nobody", do_send, false, DATA, AT_HANDLE, 4, 0, ANY, STUCK },
	{ "data for another", do_send, false, DATA, AT_HANDLE, 4, -1, ANY, STUCK },
	{ "no data", do_send, false, DATA, DATA_SIZE, 1, 0, ANY, STUCK },
	{ "more than a message has", do_send, false, DATA, DATA_SIZE, 1, 37, ANY, STUCK },
	{ "far more", do_send, false, DATA, DATA_SIZE, 1, 255, ANY, STUCK },
	{ "data of nothing", do_send, false, DATA, DATA_TOTAL, 4, 0, ANY, STUCK },
	{ "a byte less than comes", do_send, false, DATA, DATA_TOTAL, 4, 35, ANY, STUCK },
	{ "ends too early", do_send, false, DATA, DATA_TOTAL, 4, 50, ANY, STUCK },
	{ "never ends", do_send, false, DATA, DATA_TOTAL, 4, 60000, ANY, STUCK },
	{ "as much as there can be", do_send, false, DATA, DATA_TOTAL, 4, -1, ANY, STUCK },
	{ "the rest without a beginning", do_send, false, DATA, AT_TYPE, 1, MORE, ANY, STUCK },
	{ "two beginnings", do_send, false, MORE, AT_TYPE, 1, DATA, ANY, STUCK },
	{ "the rest of another", do_send, false, MORE, AT_HANDLE, 4, 1, ANY, STUCK },
	{ "more of the rest", do_send, false, MORE, DATA_SIZE, 1, 255, ANY, STUCK },
	{ "nothing of the rest", do_send, false, MORE, DATA_SIZE, 1, 0, ANY, STUCK },
	{ "the answer to another", do_send, true, DATA_REPLY, AT_HANDLE, 4, -1, ANY, STUCK },
	{ "an earlier answer", do_send, true, DATA_REPLY, ANSWER_COOKIE, 2, -1, ANY, STUCK },
	{ "an unknown answer", do_send, true, DATA_REPLY, ANSWER_ERROR, 2, -1, -EPROTO, 0 },
	{ "the answer to a connect", do_send, true, DATA_REPLY, AT_TYPE, 1, REPLY, ANY, STUCK },
};

static bool is_wanted(const struct wrong *w, int ret)
{
	if (w->want == ANY)
		return ret != -ENODEV;
	return ret == w->want || (w->or_else && ret == w->or_else);
}

static void patch(unsigned int i, const struct wrong *w)
{
	char text[64];

	snprintf(text, sizeof(text), "%u %u %u %lld", w->type, w->offset, w->size,
		 w->value);
	OK(knob_write(i, KNOB_PATCH, text));
}

/* Check that stores, interrupts and probes between the two nodes work. */
static void all_works(void)
{
	char sent[100] = "sense", got[100] = "";
	struct scene s = scene_of();

	WORD(s.pair.there, 1) = 0x600df00d;
	EQ(WORD(s.pair.here, 1), 0x600df00d);
	OK(intr_send(s.rintr, sent, sizeof(sent)));
	CHECK(readable(s.intr, TEST_WAIT_MS));
	EQ(SYS(read(s.intr, got, sizeof(got))), sizeof(got));
	CHECK(!memcmp(sent, got, sizeof(got)));
	OK(adapter_probe(s.pair.importer, s.pair.node));
	OK(adapter_probe(s.pair.exporter, adapter_node(s.pair.near)));
	scene_close(&s);
}

/*
 * Remove a node and add it again. If the node can't say goodbye, its peers keep
 * their connections until they declare it gone.
 */
static void forget(unsigned int i)
{
	unsigned int node = adapter_node(i);

	OK(adapter_remove(i));
	OK(node_add(node));
	adapters_find();
}

static void try_it(const struct wrong *w)
{
	struct scene s = scene_of();
	unsigned int i = w->far ? s.pair.far : s.pair.near;
	long long damaged = knob_get(i, KNOB_DAMAGED);
	int ret;

	patch(i, w);
	ret = bounded(w->step, &s);
	/* the process may have ended before its message was sent */
	WAIT_UNTIL(knob_get(i, KNOB_DAMAGED) == damaged + 1);
	if (!is_wanted(w, ret))
		FAIL("%s: %s, not %s", w->what, ksft_errname(-ret),
		     w->want == ANY ? "any" : ksft_errname(-w->want));
	scene_close(&s);
	all_works();
}

static void begin(void)
{
	NEED_ADAPTERS(2);
	NEED_KNOB(KNOB_PATCH);
}

TEST_LIMIT(each_field_of_each_message, 180)
{
	struct counts was;

	begin();
	was = counts_of(0);
	for (unsigned int i = 0; i < ARRAY_SIZE(table); i++)
		try_it(&table[i]);
	forget(1);
	COUNTS_BACK(0, &was);
	ksft_note("%zu wrong messages", ARRAY_SIZE(table));
}

/* ---- random damage ---- */

#define WORKERS		4u
#define CONNECTS	16u
#define LIFE_US		150000		/* of a process whose calls may never return */
#define PARTS		300000u		/* damaged messages per million */

static char blob[4096];

static int member_of_group(int adapter, __u32 id)
{
	int fd = segment_create_as(adapter, id, LENGTH, SEGMENT_MODE,
				   SCI_SEGMENT_BROADCAST);

	segment_export(fd);
	return fd;
}

/* Use all kinds of objects and check nothing: SIGALRM ends the process at any point. */
__attribute__((noreturn))
static void live(uint64_t seed, const struct pair *p)
{
	const struct itimerval life = { .it_value.tv_usec = LIFE_US };
	int near, far, local, group[2], fd[CONNECTS];
	__u32 number = 0, id = 1 + ksft_below(&seed, 1 << 20);

	signal(SIGALRM, SIG_DFL);
	setitimer(ITIMER_REAL, &life, NULL);
	near = adapter_open(p->near);
	far = adapter_open(p->far);
	if (ksft_below(&seed, 2)) {
		int other = near;

		near = far;
		far = other;
	}
	local = segment_create(far, id, LENGTH);
	segment_export(local);
	intr_create(far, SCI_INTR_WITH_DATA, &number);
	group[0] = member_of_group(far, id + 1);
	group[1] = member_of_group(near, id + 1);
	for (;;) {
		__u32 node = adapter_node(near < far ? p->far : p->near);
		int rintr = intr_connect(near, node, number, SCI_CONNECT_DATA);

		for (unsigned int i = 0; i < CONNECTS; i++)
			fd[i] = remote_connect_as(near, node, id, SCI_CONNECT_ASYNC,
						  1000);
		for (unsigned int i = 0; i < CONNECTS; i++)
			sci_map(fd[i], 0, LENGTH, RW);
		remote_connect_as(near, SCI_IOC_NODE_GROUP, id + 1,
				  SCI_CONNECT_ASYNC, 1000);
		intr_send(rintr, blob, ksft_below(&seed, sizeof(blob)));
		switch (ksft_below(&seed, 4)) {
		case 0:
			segment_unexport(local, ksft_below(&seed, 3));
			segment_export(local);
			break;
		case 1:
			for (unsigned int i = 0; i < CONNECTS; i++)
				close(fd[i]);
			break;
		case 2:		/* importers of the group now join its other member */
			segment_unexport(group[0], SCI_UNEXPORT_HOW_FORCE);
			segment_export(group[0]);
			break;
		}
		close(rintr);
	}
}

static long long damaged(const struct pair *p)
{
	return knob_get(p->near, KNOB_DAMAGED) + knob_get(p->far, KNOB_DAMAGED);
}

static void damage(const struct pair *p, unsigned long parts)
{
	OK(knob_set(p->near, KNOB_DAMAGE, parts));
	OK(knob_set(p->far, KNOB_DAMAGE, parts));
}

/* Run processes until SIGALRM has killed each of them. */
static void generation(uint64_t *rnd, const struct pair *p)
{
	pid_t pid[WORKERS];

	for (unsigned int i = 0; i < WORKERS; i++) {
		uint64_t seed = ksft_random(rnd);

		pid[i] = ksft_fork();
		if (pid[i] == 0)
			live(seed, p);
	}
	for (unsigned int i = 0; i < WORKERS; i++) {
		int status = ksft_wait(pid[i]);

		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
	}
}

TEST_LIMIT(messages_damaged_at_random, 300)
{
	long long wanted = (long long)ksft_option("messages", 5000), done = 0;
	uint64_t rnd = ksft_option("seed", ksft_now_ms() * 2654435761u);
	struct pair p = { .near = 0, .far = 1 };
	struct counts was;

	begin();
	ksft_set_limit((unsigned int)(300 + wanted / 20));
	ksft_note("--seed=%llu --messages=%lld", (unsigned long long)rnd, wanted);
	was = counts_of(0);
	while (done < wanted) {
		long long before = damaged(&p);

		damage(&p, PARTS);
		for (unsigned int i = 0; i < 10; i++)
			generation(&rnd, &p);
		damage(&p, 0);
		done += damaged(&p) - before;
		forget(1);
		COUNTS_BACK(0, &was);
		WAIT_UNTIL(nodes_answer());
		all_works();
	}
	ksft_note("%lld messages damaged", done);
}

/* ---- workers without memory ---- */

#define FAILSLAB	"/sys/kernel/debug/failslab/"
#define FAILURES_MAX	100000000LL

/* Return whether @pid is an unbound kernel worker, as the adapters use, or kthreadd. */
static bool is_worker(const char *pid)
{
	char path[300], name[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(name, sizeof(name), f))
		name[0] = 0;
	fclose(f);
	return !strncmp(name, "kworker/u", 9) || !strncmp(name, "kthreadd", 8);
}

static void mark_workers(bool fail)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	char path[300];

	CHECK(dir);
	while ((e = readdir(dir))) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9' || !is_worker(e->d_name))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/make-it-fail", e->d_name);
		/* the worker may have ended */
		write_text(path, fail ? "1" : "0");
	}
	closedir(dir);
}

/* Make @percent of the allocations of kernel workers fail. */
static void workers_fail(unsigned int percent)
{
	static const char *const settings[][2] = {
		{ "ignore-gfp-wait", "N" }, { "verbose", "0" },
		{ "interval", "1" }, { "space", "0" }, { "times", "100000000" },
		{ "task-filter", "Y" },
	};
	char text[16];

	snprintf(text, sizeof(text), "%u", percent);
	if (!percent)
		OK(write_text(FAILSLAB "probability", text));
	mark_workers(percent);
	for (unsigned int i = 0; percent && i < ARRAY_SIZE(settings); i++) {
		char path[128];

		snprintf(path, sizeof(path), FAILSLAB "%s", settings[i][0]);
		OK(write_text(path, settings[i][1]));
	}
	if (percent)
		OK(write_text(FAILSLAB "probability", text));
	else
		OK(write_text(FAILSLAB "task-filter", "N"));
}

TEST_LIMIT(workers_find_no_memory, 300)
{
	unsigned int rounds = (unsigned int)ksft_option("rounds", 10);
	uint64_t rnd = ksft_option("seed", ksft_now_ms() * 2654435761u);
	struct pair p = { .near = 0, .far = 1 };
	long long failures = 0;
	struct counts was;

	begin();
	if (access(FAILSLAB "task-filter", W_OK))
		SKIP("no %s", FAILSLAB);
	ksft_note("--seed=%llu --rounds=%u", (unsigned long long)rnd, rounds);
	was = counts_of(0);
	for (unsigned int i = 0; i < rounds; i++) {
		workers_fail(20);
		for (unsigned int k = 0; k < 5; k++)
			generation(&rnd, &p);
		/* node 1 has met no other node, and no other node has met it */
		forget(1);
		generation(&rnd, &p);
		failures += FAILURES_MAX - read_number(FAILSLAB "times");
		workers_fail(0);
		forget(1);
		COUNTS_BACK(0, &was);
		WAIT_UNTIL(nodes_answer());
		all_works();
	}
	ksft_note("%lld allocations failed", failures);
	CHECK(failures > 0);
}
