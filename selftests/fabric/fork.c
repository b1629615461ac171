// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * fork() in a process with objects of all kinds: the child owns none of them, keeps its maps,
 * and may become a node of its own.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sisci_api.h>

#include "selftests/harness.h"

#define SIZE	8192u
#define ID	10u

/* ---- objects of all kinds ---- */

struct world {
	sci_desc_t sd;
	sci_local_segment_t s;
	sci_remote_segment_t r;
	sci_map_t lmap, rmap;
	sci_sequence_t seq;
	sci_dma_queue_t q;
	sci_local_interrupt_t li;
	sci_remote_interrupt_t ri;
	sci_local_data_interrupt_t ldi;
	sci_remote_data_interrupt_t rdi;
	volatile unsigned char *local, *remote;
};

static struct recorder segment_events;

static void open_everything(struct world *w)
{
	static const char hello[] = "hello";

	recorder_init(&segment_events);
	w->sd = test_open();
	w->s = test_segment_cb(w->sd, ID, SIZE, &segment_events);
	w->r = test_connect(w->sd, SCI_LOCAL_HOST, ID);
	w->local = test_map_local(w->s, &w->lmap);
	w->remote = test_map_remote(w->r, &w->rmap);
	CHECK_OK(SCICreateMapSequence(w->rmap, &w->seq, 0, &err));
	CHECK_OK(SCICreateDMAQueue(w->sd, &w->q, 0, 4, 0, &err));
	CHECK_OK(SCIStartDmaTransfer(w->q, w->s, w->r, 0, 64, 64, NULL, NULL,
				     SCI_FLAG_DMA_WAIT, &err));
	w->li = test_interrupt(w->sd, ID);
	w->ri = test_connect_interrupt(w->sd, SCI_LOCAL_HOST, ID);
	w->ldi = test_data_interrupt(w->sd, ID);
	w->rdi = test_connect_data_interrupt(w->sd, SCI_LOCAL_HOST, ID);
	CHECK_OK(SCITriggerDataInterrupt(w->rdi, (void *)(uintptr_t)hello, 6,
					 0, &err));
	test_segment(w->sd, ID + 1, SIZE, SCI_FLAG_BROADCAST);
	CHECK_EQ(recorder_get(&segment_events, 0).reason, SCI_CB_CONNECT);
}

/* The parent's objects still work. */
static void check_everything(struct world *w)
{
	unsigned int len = 64;
	char data[64];

	test_fill(w->remote, SIZE, 77);
	CHECK(test_filled(w->local, SIZE, 77));
	CHECK_OK(SCIMemCpy(w->seq, data, w->rmap, 0, 64,
			   SCI_FLAG_BLOCK_READ | SCI_FLAG_ERROR_CHECK, &err));
	CHECK_EQ(SCIStartSequence(w->seq, 0, NULL), SCI_SEQ_OK);
	CHECK_EQ(SCICheckSequence(w->seq, 0, NULL), SCI_SEQ_OK);
	CHECK_OK(SCIStartDmaTransfer(w->q, w->s, w->r, 0, 64, 64, NULL, NULL,
				     SCI_FLAG_DMA_WAIT, &err));
	CHECK_OK(SCITriggerInterrupt(w->ri, 0, &err));
	CHECK_OK(SCIWaitForInterrupt(w->li, TEST_WAIT_MS, 0, &err));
	CHECK_OK(SCITriggerDataInterrupt(w->rdi, data, 64, 0, &err));
	while (len == 64 && data[0]) {
		CHECK_OK(SCIWaitForDataInterrupt(w->ldi, data, &len,
						 TEST_WAIT_MS, 0, &err));
		if (len == 64)
			break;
		len = 64;
	}
	CHECK_OK(SCIDisconnectSegment(test_connect(w->sd, 4, ID), 0, &err));
	/* no other connection has come or gone */
	CHECK_EQ(recorder_get(&segment_events, 1).reason, SCI_CB_CONNECT);
	CHECK_EQ(recorder_get(&segment_events, 2).reason, SCI_CB_DISCONNECT);
	CHECK_EQ(recorder_count(&segment_events), 3);
	recorder_clear(&segment_events);
	SCIDisconnectSegment(test_connect(w->sd, 4, ID), 0, NULL);
	recorder_get(&segment_events, 1);
	recorder_clear(&segment_events);
	CHECK_OK(SCIDisconnectSegment(test_connect(w->sd, 4, ID), 0, &err));
	recorder_get(&segment_events, 1);
}

/* ---- children ---- */

static pid_t fork_child(void)
{
	pid_t parent = getpid(), pid = test_fork();

	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

static void reap(pid_t pid, int want)
{
	int status;
	pid_t got = 0;

	WAIT_UNTIL((got = waitpid(pid, &status, WNOHANG)), TEST_WAIT_MS);
	CHECK_EQ(got, pid);
	CHECK_EQ(status, want);
}

#define IN_CHILD(code)							\
	do {								\
		pid_t pid_ = fork_child();				\
									\
		if (!pid_) {						\
			code;						\
			_exit(0);					\
		}							\
		reap(pid_, 0);						\
	} while (0)

/* The thread sanitizer forbids threads in the child of a process with threads. */
static void needs_threads_in_children(void)
{
	if (TEST_TSAN)
		SKIP("the thread sanitizer allows no threads in the child");
}

/* If another thread holds the allocator's lock during fork(), the child can never take it. */
static void needs_an_allocator_in_children(void)
{
	if (TEST_ASAN)
		SKIP("the address sanitizer does not survive forks of threads");
}

static void check_not_initialized(struct world *w)
{
	sci_desc_t sd = NULL;

	CHECK_ERR(SCIOpen(&sd, 0, &err), SCI_ERR_NOT_INITIALIZED);
	CHECK_ERR(SCIClose(w->sd, 0, &err), SCI_ERR_NOT_INITIALIZED);
	CHECK_ERR(SCIRemoveSegment(w->s, 0, &err), SCI_ERR_NOT_INITIALIZED);
	CHECK_ERR(SCIDisconnectSegment(w->r, 0, &err),
		  SCI_ERR_NOT_INITIALIZED);
	CHECK_ERR(SCIUnmapSegment(w->lmap, 0, &err), SCI_ERR_NOT_INITIALIZED);
	CHECK_ERR(SCITriggerInterrupt(w->ri, 0, &err),
		  SCI_ERR_NOT_INITIALIZED);
	CHECK_ERR(SCIWaitForInterrupt(w->li, 0, 0, &err),
		  SCI_ERR_NOT_INITIALIZED);
	CHECK_ERR(SCIMemWrite(w, (void *)(uintptr_t)w->remote, 4, 0, &err),
		  SCI_ERR_NOT_INITIALIZED);
	CHECK_EQ(SCIGetLocalSegmentSize(w->s), 0);
	SCITerminate();
}

TEST(the_child_has_nothing)
{
	struct world w;

	open_everything(&w);
	IN_CHILD(check_not_initialized(&w));
	check_everything(&w);
}

/* Count descriptors from 3 on: with @hard those of the library's kinds, otherwise all others. */
static unsigned int list_descriptors(bool hard, bool tell)
{
	static const char *const kinds[] = {
		"socket:", "eventfd", "eventpoll", "memfd:", "null"
	};
	DIR *dir = opendir("/proc/self/fd");
	unsigned int found = 0;
	struct dirent *e;

	CHECK(dir != NULL);
	while ((e = readdir(dir))) {
		char target[128];
		ssize_t n = readlinkat(dirfd(dir), e->d_name, target,
				       sizeof(target) - 1);
		bool known = false;

		if (n <= 0 || atoi(e->d_name) == dirfd(dir) ||
		    atoi(e->d_name) < 3)
			continue;
		target[n] = '\0';
		for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
			known |= strstr(target, kinds[i]) != NULL;
		if (known != hard)
			continue;
		if (tell)
			test_note("fd %s: %s", e->d_name, target);
		found++;
	}
	closedir(dir);
	return found;
}

/* Count sockets, memory and other descriptors that keep names and peers alive. */
static unsigned int hard_descriptors(void)
{
	return list_descriptors(true, false);
}

static void check_descriptors(unsigned int allowed)
{
	if (hard_descriptors() == allowed)
		return;
	list_descriptors(true, true);
	FAIL("descriptors of the library's in the child");
}

TEST(the_child_has_no_descriptors)
{
	unsigned int before = count_fds();
	struct world w;

	open_everything(&w);
	IN_CHILD(CHECK_EQ(count_fds(), before));
	check_everything(&w);
}

TEST(maps_work_in_the_child)
{
	struct world w;

	open_everything(&w);
	test_fill(w.local, SIZE, 1);
	IN_CHILD({
		CHECK(test_filled(w.local, SIZE, 1));
		CHECK(test_filled(w.remote, SIZE, 1));
		test_fill(w.remote, SIZE, 2);
		CHECK(test_filled(w.local, SIZE, 2));
	});
	CHECK(test_filled(w.local, SIZE, 2));
	check_everything(&w);
}

TEST(maps_of_the_child_outlive_the_segment)
{
	pid_t pid;
	int go[2];
	struct world w;
	char c;

	open_everything(&w);
	CHECK_EQ(pipe(go), 0);
	pid = fork_child();
	if (!pid) {
		close(go[1]);
		CHECK_EQ(read(go[0], &c, 1), 0);
		test_fill(w.local, SIZE, 3);
		/* on other fabrics imports end with the connection */
		CHECK(!test_on_shm() || test_filled(w.remote, SIZE, 3));
		_exit(0);
	}
	SCITerminate();
	WAIT_UNTIL(!count_sockets(), TEST_WAIT_MS);
	close(go[1]);
	reap(pid, 0);
}

/* The end of the child does not affect the parent. */
static void check_child_end(void (*end)(void), int status)
{
	struct world w;
	pid_t pid;

	open_everything(&w);
	pid = fork_child();
	if (!pid) {
		signal(SIGABRT, SIG_DFL);
		end();
	}
	reap(pid, status);
	check_everything(&w);
}

static void end_by_exit(void)
{
	exit(0);
}

static void end_at_once(void)
{
	_exit(0);
}

static void end_by_kill(void)
{
	raise(SIGKILL);
}

TEST(the_child_exits)
{
	check_child_end(end_by_exit, 0);
}

TEST(the_child_exits_at_once)
{
	check_child_end(end_at_once, 0);
}

TEST(the_child_is_killed)
{
	check_child_end(end_by_kill, SIGKILL);
}

/* ---- the child as a node ---- */

static void be_a_node(const char *node, struct world *w)
{
	unsigned int number = atoi(node), own = 0;
	volatile unsigned char *mem;
	sci_desc_t sd;

	setenv("SCI_NODE", node, 1);
	sd = test_open();
	CHECK_OK(SCIGetLocalNodeId(0, &own, 0, &err));
	CHECK_EQ(own, number);
	/* the parent's handles are invalid in the child */
	CHECK_ERR(SCIClose(w->sd, 0, &err), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIRemoveSegment(w->s, 0, &err), SCI_ERR_ILLEGAL_PARAMETER);
	mem = test_map_remote(test_connect(sd, 4, ID), NULL);
	CHECK(test_filled(mem, SIZE, 1));
	test_fill(mem, SIZE, number);
	CHECK(test_filled(w->local, SIZE, number));
	CHECK_OK(SCITriggerInterrupt(test_connect_interrupt(sd, 4, ID), 0,
				     &err));
	test_segment(sd, number, SIZE, 0);
	test_map_local(test_segment(sd, number + 1, SIZE, 0), NULL);
	test_interrupt(sd, number);
	SCITerminate();
	CHECK_ERR(SCIOpen(&sd, 0, &err), SCI_ERR_NOT_INITIALIZED);
	/* the new library leaves the maps of the parent alone */
	CHECK(test_filled(w->local, SIZE, number));
}

static void check_child_node(const char *node)
{
	struct world w;

	needs_threads_in_children();
	open_everything(&w);
	test_fill(w.local, SIZE, 1);
	IN_CHILD(be_a_node(node, &w));
	CHECK(test_filled(w.local, SIZE, atoi(node)));
	CHECK_OK(SCIWaitForInterrupt(w.li, TEST_WAIT_MS, 0, &err));
	CHECK_EQ(recorder_get(&segment_events, 1).node, atoi(node));
	CHECK_EQ(recorder_get(&segment_events, 2).reason, SCI_CB_DISCONNECT);
}

TEST(the_child_becomes_another_node)
{
	check_child_node("12");
}

TEST(the_child_becomes_the_same_node)
{
	check_child_node("4");
}

static void fork_again(unsigned int depth)
{
	sci_desc_t sd = test_open();

	test_segment(sd, 100 + depth, SIZE, 0);
	for (unsigned int i = 0; i <= depth; i++)
		test_connect(sd, 4, 100 + i);
	if (depth < 4)
		IN_CHILD(fork_again(depth + 1));
	test_connect(sd, 4, 100 + depth);
}

TEST(children_of_children)
{
	needs_threads_in_children();
	fork_again(0);
}

/* ---- the parent dies, the child lives ---- */

struct family {
	_Atomic pid_t child;
};

static void parent_of_one(struct peer *self, void *arg)
{
	struct family *f = arg;
	struct world w;
	pid_t pid;

	open_everything(&w);
	pid = test_fork();
	CHECK(pid >= 0);
	if (!pid) {
		/* the child lives longer than its parent; the runner ends it */
		atomic_store(&f->child, getpid());
		for (;;)
			pause();
	}
	WAIT_UNTIL(atomic_load(&f->child), TEST_WAIT_MS);
	peer_send(self, "ready");
	peer_expect(self, "leave");
}

TEST(the_death_of_a_parent_is_noticed)
{
	static struct recorder rec;
	struct family *f = test_shared(sizeof(*f));
	struct peer *p = peer_spawn(8, parent_of_one, f);
	sci_remote_data_interrupt_t rd;
	sci_remote_interrupt_t ri;
	sci_remote_segment_t r;
	sci_desc_t sd;

	recorder_init(&rec);
	sd = test_open();
	peer_expect(p, "ready");
	r = test_connect_cb(sd, 8, ID, &rec);
	ri = test_connect_interrupt(sd, 8, ID);
	rd = test_connect_data_interrupt(sd, 8, ID);
	peer_kill(p, SIGKILL);
	CHECK_EQ(recorder_get(&rec, 0).reason, SCI_CB_LOST);
	WAIT_UNTIL(ERR_OF(SCITriggerInterrupt(ri, 0, &err)) ==
		   SCI_ERR_NOT_CONNECTED, TEST_WAIT_MS);
	WAIT_UNTIL(ERR_OF(SCITriggerDataInterrupt(rd, NULL, 0, 0, &err)) ==
		   SCI_ERR_NOT_CONNECTED, TEST_WAIT_MS);
	CHECK_EQ(kill(atomic_load(&f->child), 0), 0);
	CHECK_ERR(SCIConnectSegment(sd, &r, 8, ID, 0, NULL, NULL, 0, 0, &err),
		  SCI_ERR_NO_SUCH_SEGMENT);
	if (test_on_shm())
		CHECK_EQ(SCIProbeNode(sd, 0, 8, 0, NULL), 0);
	CHECK_EQ(kill(atomic_load(&f->child), SIGKILL), 0);
}

/* ---- fork() during calls of other threads ---- */

#define HAMMERS	4

/*
 * Create a segment whose id a child may still hold until it has closed its descriptors.
 * a_fork_holds_no_names tests that separately.
 */
static sci_local_segment_t segment_again(sci_desc_t sd, unsigned int id)
{
	sci_local_segment_t s;

	WAIT_UNTIL(ERR_OF(SCICreateSegment(sd, &s, id, SIZE, NULL, NULL, 0,
					   &err)) != SCI_ERR_SEGMENTID_USED,
		   TEST_WAIT_MS);
	CHECK_OK(SCIPrepareSegment(s, 0, 0, &err));
	CHECK_OK(SCISetSegmentAvailable(s, 0, 0, &err));
	return s;
}

static sci_local_interrupt_t interrupt_again(sci_desc_t sd, unsigned int no)
{
	sci_local_interrupt_t i = NULL;

	WAIT_UNTIL(ERR_OF(SCICreateInterrupt(sd, &i, 0, &no, NULL, NULL,
					     SCI_FLAG_FIXED_INTNO, &err)) !=
		   SCI_ERR_INTNO_USED, TEST_WAIT_MS);
	CHECK(i != NULL);
	return i;
}

struct hammer {
	_Atomic bool stop;
	_Atomic unsigned int calls;
	sci_desc_t sd;
	struct world *w;
};

static void *hammer_segments(void *arg)
{
	struct hammer *h = arg;

	while (!atomic_load(&h->stop)) {
		sci_local_segment_t s = segment_again(h->sd, 50);
		sci_remote_segment_t r = test_connect(h->sd, 4, 50);
		sci_map_t map;

		test_map_remote(r, &map);
		CHECK_OK(SCIUnmapSegment(map, 0, &err));
		CHECK_OK(SCIDisconnectSegment(r, 0, &err));
		CHECK_OK(SCIRemoveSegment(s, 0, &err));
		atomic_fetch_add(&h->calls, 1);
	}
	return NULL;
}

static void *hammer_sequences(void *arg)
{
	struct hammer *h = arg;

	while (!atomic_load(&h->stop)) {
		sci_sequence_t seq;

		for (int i = 0; i < 100; i++) {
			CHECK_OK(SCICreateMapSequence(h->w->rmap, &seq, 0,
						      &err));
			CHECK_OK(SCIRemoveSequence(seq, 0, &err));
		}
		atomic_fetch_add(&h->calls, 1);
	}
	return NULL;
}

static void *hammer_interrupts(void *arg)
{
	struct hammer *h = arg;
	static char data[100];
	unsigned int len;

	while (!atomic_load(&h->stop)) {
		sci_local_interrupt_t i = interrupt_again(h->sd, 50);
		sci_remote_interrupt_t r = test_connect_interrupt(h->sd, 4,
								  50);

		CHECK_OK(SCITriggerInterrupt(r, 0, &err));
		CHECK_OK(SCIWaitForInterrupt(i, TEST_WAIT_MS, 0, &err));
		CHECK_OK(SCIDisconnectInterrupt(r, 0, &err));
		CHECK_OK(SCIRemoveInterrupt(i, 0, &err));
		len = sizeof(data);
		CHECK_OK(SCITriggerDataInterrupt(h->w->rdi, data, 100, 0,
						 &err));
		CHECK_OK(SCIWaitForDataInterrupt(h->w->ldi, data, &len,
						 TEST_WAIT_MS, 0, &err));
		atomic_fetch_add(&h->calls, 1);
	}
	return NULL;
}

static void *hammer_questions(void *arg)
{
	struct hammer *h = arg;
	sci_dma_queue_t q;

	CHECK_OK(SCICreateDMAQueue(h->sd, &q, 0, 4, 0, &err));
	while (!atomic_load(&h->stop)) {
		CHECK_EQ(SCIProbeNode(h->sd, 0, 4, 0, NULL), 1);
		CHECK_OK(SCIStartDmaTransfer(q, h->w->s, h->w->r, 0, 64, 64,
					     NULL, NULL, SCI_FLAG_DMA_WAIT,
					     &err));
		atomic_fetch_add(&h->calls, 1);
	}
	return NULL;
}

static _Atomic unsigned int *transient;
static unsigned int others;	/* open before SCIInitialize() */

static void forked_amid_calls(struct world *w, unsigned int allowed)
{
	sci_sequence_t seq;
	sci_map_t map;
	sci_desc_t sd;

	check_descriptors(allowed);
	atomic_fetch_add(transient, list_descriptors(false, false) - others);
	check_not_initialized(w);
	if (TEST_TSAN)
		return;
	setenv("SCI_NODE", "12", 1);
	sd = test_open();
	test_map_local(test_segment(sd, 60, SIZE, 0), NULL);
	test_map_remote(test_connect(sd, 4, ID), &map);
	CHECK_OK(SCICreateMapSequence(map, &seq, 0, &err));
	CHECK_OK(SCIRemoveSequence(seq, 0, &err));
	test_interrupt(sd, 60);
	CHECK_EQ(SCIProbeNode(sd, 0, 12, 0, NULL), 1);
	SCITerminate();
}

static void fork_amid(void *(*const fns[])(void *), int n)
{
	unsigned int allowed = hard_descriptors();
	pthread_t threads[HAMMERS];
	struct hammer h = { 0 };
	unsigned int len = 64;
	char hello[64];
	struct world w;

	needs_an_allocator_in_children();
	transient = test_shared(sizeof(*transient));
	others = list_descriptors(false, false);
	open_everything(&w);
	CHECK_OK(SCIWaitForDataInterrupt(w.ldi, hello, &len, TEST_WAIT_MS, 0,
					 &err));
	h.sd = w.sd;
	h.w = &w;
	for (int i = 0; i < n; i++)
		CHECK(!pthread_create(&threads[i], NULL, fns[i], &h));
	for (int i = 0; i < (TEST_TSAN ? 30 : 100); i++)
		IN_CHILD(forked_amid_calls(&w, allowed));
	atomic_store(&h.stop, true);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	test_note("%u rounds of calls; %u files of /proc open in children",
		  atomic_load(&h.calls), atomic_load(transient));
	test_fill(w.remote, SIZE, 5);
	CHECK(test_filled(w.local, SIZE, 5));
}

TEST(forks_while_threads_call)
{
	void *(*const fns[])(void *) = {
		hammer_segments, hammer_interrupts, hammer_questions
	};

	fork_amid(fns, ARRAY_LEN(fns));
}

TEST(forks_while_threads_make_sequences)
{
	void *(*const fns[])(void *) = {
		hammer_sequences, hammer_sequences, hammer_segments
	};

	fork_amid(fns, ARRAY_LEN(fns));
}

static void *init_and_terminate(void *arg)
{
	_Atomic bool *stop = arg;

	while (!atomic_load(stop)) {
		sci_desc_t sd = test_open();

		segment_again(sd, 70);
		SCITerminate();
	}
	return NULL;
}

TEST(forks_while_the_library_comes_and_goes)
{
	_Atomic bool stop = false;
	unsigned int allowed = hard_descriptors();
	pthread_t t;

	needs_threads_in_children();
	needs_an_allocator_in_children();
	CHECK(!pthread_create(&t, NULL, init_and_terminate, (void *)&stop));
	for (int i = 0; i < 200; i++)
		IN_CHILD({
			sci_desc_t sd;

			check_descriptors(allowed);
			setenv("SCI_NODE", "16", 1);
			sd = test_open();
			test_map_local(test_segment(sd, 70, SIZE, 0), NULL);
			SCITerminate();
		});
	atomic_store(&stop, true);
	pthread_join(t, NULL);
}

static void *fork_and_reap(void *arg)
{
	_Atomic bool *stop = arg;

	while (!atomic_load(stop)) {
		pid_t pid = fork_child();

		if (!pid)
			_exit(0);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return NULL;
}

/* A name that the parent gives back can be taken again, in spite of children. */
TEST(a_fork_holds_no_names)
{
	_Atomic bool stop = false;
	sci_desc_t sd = test_open();
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, fork_and_reap, (void *)&stop));
	for (int i = 0; i < (TEST_TSAN || TEST_ASAN ? 1000 : 10000); i++) {
		CHECK_OK(SCIRemoveInterrupt(test_interrupt(sd, 50), 0, &err));
		CHECK_OK(SCIRemoveSegment(test_segment(sd, 50, SIZE, 0), 0,
					  &err));
	}
	atomic_store(&stop, true);
	pthread_join(t, NULL);
}

/* ---- names and started programs ---- */

struct spawn {
	char dir[32], here[64], leave[64];
	_Atomic bool held;		/* the child waits before it starts its program */
};

static struct spawn spawned;

/* Replace connect(): the library tests who holds a name. Then the child starts its program. */
int connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	int ret = (int)syscall(SYS_connect, fd, sa, len), error = errno;

	if (atomic_load(&spawned.held)) {
		int pipe = open(spawned.leave, O_WRONLY | O_CLOEXEC);

		CHECK(pipe >= 0);
		close(pipe);
		WAIT_UNTIL(!atomic_load(&spawned.held), TEST_WAIT_MS);
	}
	errno = error;
	return ret;
}

static void *spawn_held(void *arg)
{
	posix_spawn_file_actions_t actions;
	char *const command[] = { (char[]){ "/bin/true" }, NULL };
	pid_t pid;

	(void)arg;
	CHECK(!posix_spawn_file_actions_init(&actions));
	/* each open of a pipe waits for its other end */
	CHECK(!posix_spawn_file_actions_addopen(&actions, 200, spawned.here, O_WRONLY, 0));
	CHECK(!posix_spawn_file_actions_addopen(&actions, 201, spawned.leave, O_RDONLY, 0));
	CHECK(!posix_spawn(&pid, command[0], &actions, NULL, command, environ));
	posix_spawn_file_actions_destroy(&actions);
	atomic_store(&spawned.held, false);
	reap(pid, 0);
	return NULL;
}

/* Start a program. The child has all descriptors until the next connect(). */
static pthread_t spawn_begin(void)
{
	pthread_t t;
	int pipe;

	CHECK(!pthread_create(&t, NULL, spawn_held, NULL));
	pipe = open(spawned.here, O_RDONLY | O_CLOEXEC);
	CHECK(pipe >= 0);
	close(pipe);
	atomic_store(&spawned.held, true);
	return t;
}

TEST(a_started_program_holds_no_names)
{
	sci_local_data_interrupt_t d;
	sci_local_interrupt_t i;
	sci_local_segment_t s;
	sci_desc_t sd;
	pthread_t t;

	test_needs_shm();
	strcpy(spawned.dir, "/tmp/sci-fork-XXXXXX");
	CHECK(mkdtemp(spawned.dir));
	snprintf(spawned.here, sizeof(spawned.here), "%s/here", spawned.dir);
	snprintf(spawned.leave, sizeof(spawned.leave), "%s/leave", spawned.dir);
	CHECK(!mkfifo(spawned.here, 0600) && !mkfifo(spawned.leave, 0600));
	sd = test_open();
	s = test_segment(sd, ID, SIZE, 0);
	i = test_interrupt(sd, ID);
	d = test_data_interrupt(sd, ID);

	t = spawn_begin();
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	test_segment(sd, ID, SIZE, 0);
	pthread_join(t, NULL);
	t = spawn_begin();
	CHECK_OK(SCIRemoveInterrupt(i, 0, &err));
	test_interrupt(sd, ID);
	pthread_join(t, NULL);
	t = spawn_begin();
	CHECK_OK(SCIRemoveDataInterrupt(d, 0, &err));
	test_data_interrupt(sd, ID);
	pthread_join(t, NULL);
	unlink(spawned.here);
	unlink(spawned.leave);
	rmdir(spawned.dir);
}

/* ---- descriptors in started programs ---- */

static unsigned int read_count(int fd)
{
	char text[32] = "";
	ssize_t n, got = 0;

	while ((n = read(fd, text + got, sizeof(text) - 1 - got)) > 0)
		got += n;
	close(fd);
	return atoi(text);
}

static char *const list_command[] = {
	(char[]){ "/bin/sh" }, (char[]){ "-c" },
	(char[]){ "set -- /proc/self/fd/*; echo $#" }, NULL
};

/* Count the descriptors of a program that is started in one of three ways. */
static unsigned int fds_of_program(char how)
{
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;
	int out[2];

	CHECK_EQ(pipe(out), 0);
	switch (how) {
	case 's':
		CHECK(!posix_spawn_file_actions_init(&actions));
		CHECK(!posix_spawn_file_actions_adddup2(&actions, out[1], 1));
		CHECK(!posix_spawn(&pid, list_command[0], &actions, NULL,
				   list_command, environ));
		posix_spawn_file_actions_destroy(&actions);
		break;
	case 'v':
		pid = vfork();
		if (!pid) {
			dup2(out[1], 1);
			execv(list_command[0], list_command);
			_exit(1);
		}
		break;
	default:
		pid = fork();
		if (!pid) {
			dup2(out[1], 1);
			execv(list_command[0], list_command);
			_exit(1);
		}
		break;
	}
	close(out[1]);
	reap(pid, 0);
	return read_count(out[0]);
}

TEST(programs_inherit_nothing)
{
	static const char hows[] = "fsv";
	unsigned int before[3];
	struct world w;

	for (int i = 0; i < 3; i++)
		before[i] = fds_of_program(hows[i]);
	open_everything(&w);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 5; k++)
			CHECK_EQ(fds_of_program(hows[i]), before[i]);
	check_everything(&w);
}

/* ---- registered memory ---- */

static void check_private(const void *addr, size_t size)
{
	FILE *f = fopen("/proc/self/maps", "re");
	uintptr_t want = (uintptr_t)addr;
	char line[512], perms[5];
	uintptr_t from, to;

	CHECK(f != NULL);
	while (want < (uintptr_t)addr + size && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %4s", &from, &to, perms) != 3 ||
		    to <= want || from > want)
			continue;
		if (perms[3] != 'p')
			FAIL("pages of the child's are shared: %s", line);
		want = to;
	}
	fclose(f);
	CHECK(want >= (uintptr_t)addr + size);
}

static void *anonymous(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static sci_local_segment_t registered(sci_desc_t sd, void *p, size_t size)
{
	sci_local_segment_t s;

	CHECK_OK(SCICreateSegment(sd, &s, 80, size, NULL, NULL, SCI_FLAG_EMPTY,
				  &err));
	CHECK_OK(SCIRegisterSegmentMemory(p, size, s, 0, &err));
	return s;
}

TEST(registered_memory_is_the_childs_own)
{
	unsigned char *mine = anonymous(SIZE);
	sci_local_segment_t s;
	sci_desc_t sd;

	test_fill(mine, SIZE, 1);
	sd = test_open();
	s = registered(sd, mine, SIZE);
	CHECK_OK(SCIPrepareSegment(s, 0, 0, &err));
	CHECK_OK(SCISetSegmentAvailable(s, 0, 0, &err));
	test_map_remote(test_connect(sd, 4, 80), NULL);
	IN_CHILD({
		check_private(mine, SIZE);
		CHECK(test_filled(mine, SIZE, 1));
		test_fill(mine, SIZE, 2);
	});
	CHECK(test_filled(mine, SIZE, 1));
	test_fill(test_map_remote(test_connect(sd, 4, 80), NULL), SIZE, 3);
	CHECK(test_filled(mine, SIZE, 3));
}

/*
 * The program unmaps a page of registered memory and maps a file of its own over another one, both
 * before the segment ends: neither a child nor the end of the segment touches these pages.
 */
TEST(registered_memory_is_replaced)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *mine = anonymous(3 * page), *file, *same;
	int fd = memfd_create("mine", MFD_CLOEXEC);
	sci_local_segment_t s;
	sci_desc_t sd;

	CHECK(fd >= 0 && !ftruncate(fd, (off_t)page));
	mine[2 * page] = 5;
	sd = test_open();
	s = registered(sd, mine, 3 * page);
	CHECK_OK(SCIPrepareSegment(s, 0, 0, &err));
	file = mmap(mine, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	CHECK(file == mine);
	same = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(same != MAP_FAILED);
	CHECK_EQ(munmap(mine + page, page), 0);
	IN_CHILD({
		check_private(mine + 2 * page, page);
		file[0] = 3;
	});
	CHECK_EQ(same[0], 3);
	CHECK_OK(SCIRemoveSegment(s, 0, &err));
	file[1] = 4;
	CHECK_EQ(same[1], 4);
	check_private(mine + 2 * page, page);
	CHECK_EQ(mine[2 * page], 5);
}

struct registrar {
	_Atomic bool stop;
	_Atomic unsigned int times;
	sci_desc_t sd;
	void *mem;
	size_t size;
};

static void *register_and_remove(void *arg)
{
	struct registrar *r = arg;

	while (!atomic_load(&r->stop)) {
		sci_local_segment_t s = registered(r->sd, r->mem, r->size);

		CHECK_OK(SCIRemoveSegment(s, 0, &err));
		atomic_fetch_add(&r->times, 1);
	}
	return NULL;
}

/* Return the number of shared maps of @size bytes. */
static unsigned int shared_maps(size_t size)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[512], share;
	unsigned int n = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		n += sscanf(line, "%lx-%lx %*3c%c", &from, &to, &share) == 3 && share == 's' &&
		     to - from == size;
	fclose(f);
	return n;
}

/* A child never shares the pages or the segment, at no point of registration or removal. */
TEST(forks_while_memory_is_registered)
{
	struct registrar r = { .size = 8u << 20 };
	pthread_t t;

	needs_an_allocator_in_children();
	r.mem = anonymous(r.size);
	memset(r.mem, 1, r.size);
	r.sd = test_open();
	CHECK(!pthread_create(&t, NULL, register_and_remove, &r));
	for (int i = 0; i < (TEST_TSAN ? 20 : 100); i++)
		IN_CHILD({
			check_private(r.mem, r.size);
			CHECK_EQ(shared_maps(r.size), 0);
		});
	atomic_store(&r.stop, true);
	pthread_join(t, NULL);
	test_note("registered %u times", atomic_load(&r.times));
}

/* ---- fork() in a callback ---- */

struct from_callback {
	struct world w;
	_Atomic int status;		/* status of the child; -1: not yet known */
};

static sci_callback_action_t fork_in_callback(void *arg,
					      sci_local_interrupt_t i,
					      sci_error_t status)
{
	struct from_callback *f = arg;
	int child = -1;
	pid_t pid;

	(void)i;
	(void)status;
	pid = fork_child();
	if (!pid) {
		check_not_initialized(&f->w);
		if (!TEST_TSAN) {
			setenv("SCI_NODE", "12", 1);
			test_connect(test_open(), 4, ID);
			/* this thread is the child's only thread */
			SCITerminate();
			CHECK_ERR(SCIOpen(&f->w.sd, 0, &err),
				  SCI_ERR_NOT_INITIALIZED);
		}
		_exit(0);
	}
	while (waitpid(pid, &child, 0) < 0 && errno == EINTR)
		;
	atomic_store(&f->status, child);
	return SCI_CALLBACK_CONTINUE;
}

TEST(fork_from_a_callback)
{
	static struct from_callback f = { .status = -1 };
	unsigned int number = 90;
	sci_local_interrupt_t i;
	sci_remote_interrupt_t r;

	needs_an_allocator_in_children();
	open_everything(&f.w);
	CHECK_OK(SCICreateInterrupt(f.w.sd, &i, 0, &number, fork_in_callback,
				    &f, SCI_FLAG_USE_CALLBACK |
				    SCI_FLAG_FIXED_INTNO, &err));
	r = test_connect_interrupt(f.w.sd, 4, 90);
	for (int k = 0; k < 3; k++) {
		atomic_store(&f.status, -1);
		CHECK_OK(SCITriggerInterrupt(r, 0, &err));
		WAIT_UNTIL(atomic_load(&f.status) != -1, TEST_WAIT_MS);
		CHECK_EQ(atomic_load(&f.status), 0);
	}
	CHECK_OK(SCIRemoveInterrupt(i, 0, &err));
}

/* After SCITerminate(), fork() is the same as without the library. */
TEST(fork_after_terminate)
{
	struct world w;
	unsigned int fds = count_fds();

	open_everything(&w);
	SCITerminate();
	IN_CHILD(CHECK_EQ(count_fds(), fds));
	needs_threads_in_children();
	IN_CHILD({ test_segment(test_open(), ID, SIZE, 0); SCITerminate(); });
}
