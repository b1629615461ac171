// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * A process is killed at any point of any call. Its peer gets the events, and no connect of the
 * peer waits until its timeout. The next process can take all ids and numbers of the dead one.
 *
 *	test process	does not use the library; starts, kills, counts
 *	  partner	node 4, lives through all rounds
 *	  victim ...	node 8, one per round: makes random calls until it dies
 *	  successor ...	node 8, one per round: takes all names of the victim
 *
 * SCI_TEST_ROUNDS: number of rounds. SCI_TEST_SEED: repeats the calls of another run, but not the
 * time of the kill.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sisci_api.h>

#include "selftests/harness.h"

#define SIZE		16384u
#define SLOTS		4
#define PARTNER_ID	10u	/* first id of its segments and interrupts */
#define VICTIM_ID	20u	/* first id of the victim's segments and interrupts */
#define GROUP_ID	40u

#if TEST_TSAN
/*
 * When an owner disconnects an importer by force, the library replaces the memory of the
 * importer's map. The sanitizer reports its mmap() as a race with stores to the map.
 */
__attribute__((visibility("default")))
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:shm_map_revoke\n";
}
#endif

/* ---- data of all processes ---- */

struct shared {
	_Atomic bool stop;		/* for the partner: the victim is dead */
	_Atomic unsigned int victim_calls;
	_Atomic unsigned int timeouts;		/* connects of the partner that timed out */
	_Atomic unsigned int heard;		/* events of the victim's end at the partner */
};

static struct shared *shared;

static uint64_t random_state;

static unsigned int any(unsigned int n)
{
	random_state += 0x9e3779b97f4a7c15u;

	uint64_t z = random_state;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (unsigned int)((z ^ z >> 31) >> 16) % n;
}

/* ---- calls at random ---- */

struct node {
	unsigned int own, other;	/* first id of this node, first id of the other one */
	unsigned int other_node;
	sci_desc_t sd;
	sci_local_segment_t lseg[SLOTS];
	sci_map_t lmap[SLOTS];
	sci_remote_segment_t rseg[SLOTS];
	sci_map_t rmap[SLOTS];
	sci_sequence_t seq[SLOTS];
	sci_dma_queue_t q;
	sci_local_interrupt_t lintr[SLOTS];
	sci_remote_interrupt_t rintr[SLOTS];
	sci_local_data_interrupt_t ldintr[SLOTS];
	sci_remote_data_interrupt_t rdintr[SLOTS];
	sci_local_segment_t group;
	sci_remote_segment_t rgroup;
};

static sci_callback_action_t hear_local(void *arg, sci_local_segment_t s,
					sci_segment_cb_reason_t reason,
					unsigned int node, unsigned int adapter,
					sci_error_t error)
{
	_Atomic int *connected = arg;

	(void)s, (void)adapter, (void)error;
	/* the partner also connects to its own segments */
	if (connected && node == 8)
		atomic_fetch_add(connected, reason == SCI_CB_CONNECT ? 1 : -1);
	return SCI_CALLBACK_CONTINUE;
}

static void end_map(sci_map_t *map)
{
	if (*map)
		SCIUnmapSegment(*map, 0, NULL);
	*map = NULL;
}

static void op_segment(struct node *n, unsigned int i)
{
	static const unsigned int flags[] = {
		0, SCI_FLAG_USE_CALLBACK, SCI_FLAG_BROADCAST |
		SCI_FLAG_ALLOW_UNICAST
	};
	sci_error_t e;

	if (n->lseg[i]) {
		if (any(3)) {
			SCISetSegmentUnavailable(n->lseg[i], 0, any(2) ?
						 SCI_FLAG_NOTIFY : 0, NULL);
			SCISetSegmentAvailable(n->lseg[i], 0, 0, NULL);
			return;
		}
		end_map(&n->lmap[i]);
		SCIRemoveSegment(n->lseg[i], SCI_FLAG_FORCE_REMOVE, &e);
		if (!e)
			n->lseg[i] = NULL;
		return;
	}
	SCICreateSegment(n->sd, &n->lseg[i], n->own + i, SIZE, hear_local,
			 NULL, flags[any(3)], &e);
	if (e) {
		n->lseg[i] = NULL;
		return;
	}
	SCIPrepareSegment(n->lseg[i], 0, 0, NULL);
	SCISetSegmentAvailable(n->lseg[i], 0, 0, NULL);
	if (any(2))
		SCIShareSegment(n->lseg[i], 0, NULL);
}

static void op_map_local(struct node *n, unsigned int i)
{
	void *p;

	if (!n->lseg[i])
		return;
	if (n->lmap[i]) {
		end_map(&n->lmap[i]);
		return;
	}
	p = SCIMapLocalSegment(n->lseg[i], &n->lmap[i], 0, SIZE, NULL, 0,
			       NULL);
	if (p)
		memset(p, (int)i, SIZE);
	else
		n->lmap[i] = NULL;
}

static void count_connect(const struct node *n, sci_error_t e)
{
	if (e == SCI_ERR_TIMEOUT && n->other == VICTIM_ID)
		atomic_fetch_add(&shared->timeouts, 1);
}

static void op_connect(struct node *n, unsigned int i)
{
	bool own = !any(4);
	sci_error_t e;

	if (n->rseg[i]) {
		if (n->seq[i])
			SCIRemoveSequence(n->seq[i], 0, NULL);
		n->seq[i] = NULL;
		end_map(&n->rmap[i]);
		SCIDisconnectSegment(n->rseg[i], 0, &e);
		if (!e)
			n->rseg[i] = NULL;
		return;
	}
	SCIConnectSegment(n->sd, &n->rseg[i], own ? SCI_LOCAL_HOST :
			  n->other_node, (own ? n->own : n->other) + i, 0,
			  NULL, NULL, 0, any(4) ? 0 :
			  SCI_FLAG_ASYNCHRONOUS_CONNECT, &e);
	if (e)
		n->rseg[i] = NULL;
	count_connect(n, e);
}

static void op_map_remote(struct node *n, unsigned int i)
{
	volatile void *p;

	if (!n->rseg[i])
		return;
	if (n->rmap[i]) {
		if (n->seq[i])
			SCIRemoveSequence(n->seq[i], 0, NULL);
		n->seq[i] = NULL;
		end_map(&n->rmap[i]);
		return;
	}
	p = SCIMapRemoteSegment(n->rseg[i], &n->rmap[i], 0, SIZE, NULL, 0,
				NULL);
	if (!p) {
		n->rmap[i] = NULL;
		return;
	}
	memset((void *)(uintptr_t)p, (int)i, SIZE);
	SCICreateMapSequence(n->rmap[i], &n->seq[i], 0, NULL);
}

static void op_store(struct node *n, unsigned int i)
{
	static char data[SIZE];

	if (!n->rmap[i])
		return;
	SCIStartSequence(n->seq[i], 0, NULL);
	SCIMemCpy(n->seq[i], data, n->rmap[i], 0, SIZE, SCI_FLAG_ERROR_CHECK,
		  NULL);
	SCICheckSequence(n->seq[i], 0, NULL);
	SCITransferBlock(n->rmap[i], 0, n->rmap[i], SIZE / 2, SIZE / 2, 0,
			 NULL);
}

static void op_dma(struct node *n, unsigned int i)
{
	sci_error_t e;

	if (!n->q) {
		SCICreateDMAQueue(n->sd, &n->q, 0, 4, 0, &e);
		if (e)
			n->q = NULL;
		return;
	}
	if (any(5) == 0) {
		SCIAbortDMAQueue(n->q, 0, NULL);
		SCIRemoveDMAQueue(n->q, 0, &e);
		if (!e)
			n->q = NULL;
		return;
	}
	if (n->lseg[i] && n->rseg[i])
		SCIStartDmaTransfer(n->q, n->lseg[i], n->rseg[i], 0, SIZE, 0,
				    NULL, NULL, any(2) ? SCI_FLAG_DMA_WAIT : 0,
				    NULL);
}

static void op_interrupt(struct node *n, unsigned int i)
{
	unsigned int number = n->own + i;
	sci_error_t e;

	if (n->lintr[i]) {
		if (any(2)) {
			SCIWaitForInterrupt(n->lintr[i], any(2), 0, NULL);
			return;
		}
		SCIRemoveInterrupt(n->lintr[i], 0, NULL);
		n->lintr[i] = NULL;
		return;
	}
	SCICreateInterrupt(n->sd, &n->lintr[i], 0, &number, NULL, NULL,
			   SCI_FLAG_FIXED_INTNO |
			   (any(2) ? SCI_FLAG_SHARED_INT : 0), &e);
	if (e)
		n->lintr[i] = NULL;
}

static void op_trigger(struct node *n, unsigned int i)
{
	sci_error_t e;

	if (n->rintr[i]) {
		if (any(3)) {
			SCITriggerInterrupt(n->rintr[i], 0, NULL);
			return;
		}
		SCIDisconnectInterrupt(n->rintr[i], 0, NULL);
		n->rintr[i] = NULL;
		return;
	}
	SCIConnectInterrupt(n->sd, &n->rintr[i], n->other_node, 0,
			    n->other + i, 0, 0, &e);
	if (e)
		n->rintr[i] = NULL;
	count_connect(n, e);
}

static void op_data_interrupt(struct node *n, unsigned int i)
{
	static char data[65536];
	unsigned int number = n->own + i, len = sizeof(data);
	sci_error_t e;

	if (n->ldintr[i]) {
		if (any(2)) {
			SCIWaitForDataInterrupt(n->ldintr[i], data, &len,
						any(2), 0, NULL);
			return;
		}
		SCIRemoveDataInterrupt(n->ldintr[i], 0, NULL);
		n->ldintr[i] = NULL;
		return;
	}
	SCICreateDataInterrupt(n->sd, &n->ldintr[i], 0, &number, NULL, NULL,
			       SCI_FLAG_FIXED_INTNO, &e);
	if (e)
		n->ldintr[i] = NULL;
}

static void op_data_trigger(struct node *n, unsigned int i)
{
	static char data[65536];
	sci_error_t e;

	if (n->rdintr[i]) {
		if (any(3)) {
			SCITriggerDataInterrupt(n->rdintr[i], data,
						any(sizeof(data)), 0, NULL);
			return;
		}
		SCIDisconnectDataInterrupt(n->rdintr[i], 0, NULL);
		n->rdintr[i] = NULL;
		return;
	}
	SCIConnectDataInterrupt(n->sd, &n->rdintr[i], n->other_node, 0,
				n->other + i, 0, 0, &e);
	if (e)
		n->rdintr[i] = NULL;
	count_connect(n, e);
}

/* Both nodes are members of a group and store to it. */
static void op_group(struct node *n, unsigned int i)
{
	sci_error_t e;

	if (i & 1) {
		if (n->rgroup) {
			SCIDisconnectSegment(n->rgroup, 0, NULL);
			n->rgroup = NULL;
			return;
		}
		SCIConnectSegment(n->sd, &n->rgroup,
				  DIS_BROADCAST_NODEID_GROUP_ALL, GROUP_ID, 0,
				  NULL, NULL, 0, SCI_FLAG_BROADCAST, &e);
		if (e)
			n->rgroup = NULL;
		return;
	}
	if (n->group) {
		SCIRemoveSegment(n->group, SCI_FLAG_FORCE_REMOVE, NULL);
		n->group = NULL;
		return;
	}
	SCICreateSegment(n->sd, &n->group, GROUP_ID, SIZE, NULL, NULL,
			 SCI_FLAG_BROADCAST, &e);
	if (e) {
		n->group = NULL;
		return;
	}
	SCIPrepareSegment(n->group, 0, 0, NULL);
	SCISetSegmentAvailable(n->group, 0, 0, NULL);
}

static void op_ask(struct node *n, unsigned int i)
{
	char text[64];
	sci_query_string_t q = { text, sizeof(text) };

	if (i & 1)
		SCIProbeNode(n->sd, 0, n->other_node, 0, NULL);
	else
		SCIQuery(SCI_Q_API, &q, 0, NULL);
}

static void one_call(struct node *n)
{
	static void (*const ops[])(struct node *n, unsigned int i) = {
		op_segment, op_segment, op_map_local, op_connect, op_connect,
		op_map_remote, op_map_remote, op_store, op_dma, op_interrupt,
		op_trigger, op_data_interrupt, op_data_trigger, op_group,
		op_ask
	};

	ops[any(ARRAY_LEN(ops))](n, any(SLOTS));
}

/* ---- the victim ---- */

__attribute__((noreturn))
static void victim(uint64_t seed)
{
	struct node n = {
		.own = VICTIM_ID, .other = PARTNER_ID, .other_node = 4,
	};

	random_state = seed;
	for (;;) {
		n.sd = test_open();
		for (unsigned int i = any(400); i > 0; i--) {
			one_call(&n);
			atomic_fetch_add(&shared->victim_calls, 1);
		}
		SCITerminate();
		n = (struct node) {
			.own = VICTIM_ID, .other = PARTNER_ID, .other_node = 4,
		};
	}
}

static pid_t fork_node8(void)
{
	pid_t parent = getpid(), pid = fork();

	CHECK(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	setenv("SCI_NODE", "8", 1);
	return 0;
}

static pid_t start_victim(uint64_t seed, bool traced)
{
	pid_t pid = fork_node8();

	if (pid)
		return pid;
	if (traced) {
		/* its own process group, for which kill_by_call() waits */
		setpgid(0, 0);
		raise(SIGSTOP);
	}
	victim(seed);
}

/* Kill the victim after some microseconds of its life. */
static void kill_by_time(pid_t pid)
{
	unsigned int us = any(3) ? any(150000) : any(3000);
	struct timespec ts = { 0, (long)us * 1000 };

	nanosleep(&ts, NULL);
	CHECK_EQ(kill(pid, SIGKILL), 0);
}

static pid_t wait_thread(pid_t pid, int *status)
{
	pid_t tid;

	do {
		tid = waitpid(-pid, status, __WALL);
	} while (tid < 0 && errno == EINTR);
	return tid;
}

/* Kill the victim before or after its n-th system call; those of its threads count. */
static void kill_by_call(pid_t pid)
{
	const long options = PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE |
			     PTRACE_O_TRACESYSGOOD;
	unsigned int left = any(3) ? any(1500) : any(6000);
	int status;
	pid_t tid;

	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	CHECK(WIFSTOPPED(status));
	CHECK_EQ(ptrace(PTRACE_SEIZE, pid, NULL, options), 0);
	CHECK_EQ(kill(pid, SIGCONT), 0);
	while (left && (tid = wait_thread(pid, &status)) > 0) {
		int sig = WSTOPSIG(status);

		if (!WIFSTOPPED(status)) {
			CHECK(tid != pid);
			continue;
		}
		if (sig == (SIGTRAP | 0x80)) {
			left--;
			sig = 0;
		} else if (status >> 16 || sig == SIGTRAP) {
			sig = 0;
		}
		if (sig == SIGSTOP || sig == SIGCONT)
			sig = 0;
		if (left)
			ptrace(PTRACE_SYSCALL, tid, NULL, (long)sig);
	}
	CHECK_EQ(kill(pid, SIGKILL), 0);
}

static void reap_victim(pid_t pid, bool traced)
{
	int status = 0;
	pid_t tid;

	do {
		tid = traced ? wait_thread(pid, &status) :
			       waitpid(pid, &status, 0);
		CHECK(tid > 0);
	} while (tid != pid || WIFSTOPPED(status));
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		FAIL("the victim ended by itself: status %#x", status);
}

/* ---- the partner ---- */

#define PARTNER_SEGMENTS	(SLOTS + 1)

struct partner {
	struct node n;
	_Atomic int connected[PARTNER_SEGMENTS];
	sci_local_segment_t fixed;	/* always exists */
	sci_local_interrupt_t intr;	/* always exists */
	sci_local_data_interrupt_t data;
};

/* Return whether an import of the victim's memory has ended. */
static bool has_ended(sci_remote_segment_t r)
{
	sci_segment_cb_reason_t reason;
	sci_error_t err;

	do {
		reason = SCIWaitForRemoteSegmentEvent(r, NULL, 0, 0, &err);
	} while (!err && reason != SCI_CB_LOST && reason != SCI_CB_DISCONNECT);
	/* a failed asynchronous connect reports the end by CONNECT */
	if (!err)
		atomic_fetch_add(&shared->heard, 1);
	return !err || !SCIGetRemoteSegmentSize(r);
}

static void check_heard(struct partner *p)
{
	struct node *n = &p->n;

	for (unsigned int i = 0; i < SLOTS; i++) {
		if (n->rseg[i] && SCIGetRemoteSegmentNodeId(n->rseg[i]) == 8)
			WAIT_UNTIL(has_ended(n->rseg[i]), TEST_WAIT_MS);
		if (n->rintr[i])
			WAIT_UNTIL(ERR_OF(SCITriggerInterrupt(n->rintr[i], 0,
							      &err)) ==
				   SCI_ERR_NOT_CONNECTED, TEST_WAIT_MS);
		if (n->rdintr[i])
			WAIT_UNTIL(ERR_OF(SCITriggerDataInterrupt(n->rdintr[i],
								  NULL, 0, 0,
								  &err)) ==
				   SCI_ERR_NOT_CONNECTED, TEST_WAIT_MS);
	}
	/* all connections to the partner's segments have ended */
	for (unsigned int i = 0; i < PARTNER_SEGMENTS; i++)
		WAIT_UNTIL(!atomic_load(&p->connected[i]), TEST_WAIT_MS);
}

/* Give back all objects of the round. Each call must succeed. */
static void clean_up(struct node *n)
{
	for (unsigned int i = 0; i < SLOTS; i++) {
		if (n->seq[i])
			CHECK_OK(SCIRemoveSequence(n->seq[i], 0, &err));
		if (n->rmap[i])
			CHECK_OK(SCIUnmapSegment(n->rmap[i], 0, &err));
		if (n->lmap[i])
			CHECK_OK(SCIUnmapSegment(n->lmap[i], 0, &err));
	}
	if (n->q) {
		CHECK_OK(SCIAbortDMAQueue(n->q, 0, &err));
		CHECK_OK(SCIRemoveDMAQueue(n->q, 0, &err));
	}
	for (unsigned int i = 0; i < SLOTS; i++) {
		if (n->rseg[i])
			CHECK_OK(SCIDisconnectSegment(n->rseg[i], 0, &err));
		if (n->lseg[i])
			CHECK_OK(SCIRemoveSegment(n->lseg[i], 0, &err));
		if (n->rintr[i])
			CHECK_OK(SCIDisconnectInterrupt(n->rintr[i], 0, &err));
		if (n->rdintr[i])
			CHECK_OK(SCIDisconnectDataInterrupt(n->rdintr[i], 0,
							    &err));
		if (n->lintr[i])
			CHECK_OK(SCIRemoveInterrupt(n->lintr[i], 0, &err));
		if (n->ldintr[i])
			CHECK_OK(SCIRemoveDataInterrupt(n->ldintr[i], 0,
							&err));
	}
	if (n->rgroup)
		CHECK_OK(SCIDisconnectSegment(n->rgroup, 0, &err));
	if (n->group)
		CHECK_OK(SCIRemoveSegment(n->group, 0, &err));
	*n = (struct node) {
		.own = n->own, .other = n->other, .other_node = n->other_node,
		.sd = n->sd,
	};
}

/*
 * Create the partner's segments. The random calls cannot remove them: op_segment() finds the
 * ids in use. So the victim's connections stay.
 */
static void make_fixed(struct partner *p, sci_local_segment_t fixed[])
{
	for (unsigned int i = 0; i < SLOTS; i++) {
		CHECK_OK(SCICreateSegment(p->n.sd, &fixed[i], PARTNER_ID + i,
					  SIZE, hear_local, &p->connected[i],
					  SCI_FLAG_USE_CALLBACK, &err));
		CHECK_OK(SCIPrepareSegment(fixed[i], 0, 0, &err));
		CHECK_OK(SCISetSegmentAvailable(fixed[i], 0, 0, &err));
	}
	p->intr = test_interrupt(p->n.sd, PARTNER_ID);
	p->data = test_data_interrupt(p->n.sd, PARTNER_ID);
}

static void drain(struct partner *p)
{
	static char data[65536];
	unsigned int len;
	sci_error_t e;

	do {
		len = sizeof(data);
		SCIWaitForDataInterrupt(p->data, data, &len, 0, 0, &e);
	} while (!e);
}

static void partner(struct peer *self, void *arg)
{
	static struct partner p = {
		.n = { .own = PARTNER_ID, .other = VICTIM_ID,
		       .other_node = 8 },
	};
	sci_local_segment_t fixed[SLOTS];
	unsigned int fds, rounds = *(unsigned int *)arg;

	random_state = rounds;
	p.n.sd = test_open();
	make_fixed(&p, fixed);
	/* the first call of each kind starts threads and opens files */
	for (unsigned int i = 0; i < 400; i++)
		one_call(&p.n);
	clean_up(&p.n);
	fds = count_fds();
	peer_send(self, "ready");
	while (rounds--) {
		peer_expect(self, "run");
		while (!atomic_load(&shared->stop)) {
			one_call(&p.n);
			drain(&p);
		}
		check_heard(&p);
		clean_up(&p.n);
		drain(&p);
		WAIT_UNTIL(count_fds() <= fds, TEST_WAIT_MS);
		peer_send(self, "clean");
	}
	for (unsigned int i = 0; i < SLOTS; i++)
		CHECK_OK(SCIRemoveSegment(fixed[i], 0, &err));
	CHECK_OK(SCIRemoveInterrupt(p.intr, 0, &err));
	CHECK_OK(SCIRemoveDataInterrupt(p.data, 0, &err));
	CHECK_OK(SCIClose(p.n.sd, 0, &err));
	SCITerminate();
}

/* ---- the successor ---- */

static void check_names_free(void)
{
	int status;
	pid_t pid = fork_node8();

	if (!pid) {
		sci_desc_t sd = test_open();

		for (unsigned int i = 0; i < SLOTS; i++) {
			test_segment(sd, VICTIM_ID + i, SIZE, 0);
			test_interrupt(sd, VICTIM_ID + i);
			test_data_interrupt(sd, VICTIM_ID + i);
		}
		test_segment(sd, GROUP_ID, 2 * SIZE, SCI_FLAG_BROADCAST);
		SCITerminate();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

/* ---- rounds ---- */

static unsigned int rounds_wanted(unsigned int normal)
{
	const char *s = getenv("SCI_TEST_ROUNDS");

	if (s)
		return (unsigned int)strtoul(s, NULL, 0);
	return TEST_TSAN || TEST_ASAN ? normal / 4 : normal;
}

static uint64_t seed_wanted(void)
{
	const char *s = getenv("SCI_TEST_SEED");
	uint64_t seed = 1;

	if (s)
		return strtoull(s, NULL, 0);
	CHECK_EQ(getrandom(&seed, sizeof(seed), 0), sizeof(seed));
	return seed;
}

static void one_round(struct peer *p, uint64_t seed, bool traced,
		      unsigned int sockets)
{
	pid_t pid;

	atomic_store(&shared->stop, false);
	pid = start_victim(seed, traced);
	peer_send(p, "run");
	if (traced)
		kill_by_call(pid);
	else
		kill_by_time(pid);
	reap_victim(pid, traced);
	atomic_store(&shared->stop, true);
	peer_expect(p, "clean");
	WAIT_UNTIL(count_sockets() <= sockets, TEST_WAIT_MS);
	check_names_free();
	WAIT_UNTIL(count_sockets() <= sockets, TEST_WAIT_MS);
}

static void run_rounds(unsigned int n, bool traced)
{
	uint64_t seed = seed_wanted();
	unsigned int sockets;
	struct peer *p;

	test_needs_shm();
	shared = test_shared(sizeof(*shared));
	test_note("%u rounds, SCI_TEST_SEED=%#llx", n,
		  (unsigned long long)seed);
	p = peer_spawn(4, partner, &n);
	peer_expect(p, "ready");
	sockets = count_sockets();
	random_state = seed;
	for (unsigned int i = 0; i < n; i++)
		one_round(p, seed + i * 1000003u, traced, sockets);
	peer_join(p);
	test_note("%u calls of victims; the partner heard of %u ends",
		  atomic_load(&shared->victim_calls), atomic_load(&shared->heard));
	CHECK_EQ(atomic_load(&shared->timeouts), 0);
}

TEST(killed_at_any_time)
{
	run_rounds(rounds_wanted(100), false);
}

TEST(killed_at_any_system_call)
{
	run_rounds(rounds_wanted(60), true);
}

/* ---- a stopped peer is not dead ---- */

static void stopped_owner(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();

	(void)arg;
	test_segment(sd, 10, SIZE, 0);
	peer_send(self, "ready");
	peer_expect(self, "leave");
}

TEST(killed_while_stopped)
{
	static struct recorder rec;
	struct peer *p = peer_spawn(8, stopped_owner, NULL);
	sci_remote_segment_t r;
	volatile char *mem;
	uint64_t began;

	recorder_init(&rec);
	peer_expect(p, "ready");
	mem = test_map_remote(test_connect_cb(test_open(), 8, 10, &rec), NULL);
	peer_stop(p);
	mem[0] = 1;
	if (test_on_shm()) {
		/* On shm the stopped process would answer. The shortest timeout is a second. */
		began = test_now_ms();
		CHECK_ERR(SCIConnectSegment(test_open(), &r, 8, 10, 0, NULL,
					    NULL, 100, 0, &err),
			  SCI_ERR_TIMEOUT);
		CHECK(test_now_ms() - began >= 999);
	}
	CHECK_EQ(recorder_count(&rec), 0);
	peer_kill(p, SIGKILL);
	CHECK_EQ(recorder_get(&rec, 0).reason, SCI_CB_LOST);
	mem[SIZE - 1] = 1;
}

/* A connect waits for a process when that process is killed. */
static void waits_for_connect(struct peer *self, void *arg)
{
	sci_remote_segment_t r;
	sci_desc_t sd = test_open();

	(void)arg;
	peer_expect(self, "connect");
	peer_send(self, "connecting");
	CHECK_ERR(SCIConnectSegment(sd, &r, 8, 10, 0, NULL, NULL,
				    SCI_INFINITE_TIMEOUT, 0, &err),
		  SCI_ERR_NO_SUCH_SEGMENT);
	peer_send(self, "failed");
}

TEST(killed_while_somebody_waits_for_it)
{
	struct peer *owner = peer_spawn(8, stopped_owner, NULL);
	struct peer *waiter = peer_spawn(12, waits_for_connect, NULL);
	unsigned int sockets;

	test_needs_shm();
	peer_expect(owner, "ready");
	peer_stop(owner);
	sockets = count_sockets();
	peer_send(waiter, "connect");
	peer_expect(waiter, "connecting");
	/* the connection waits in the backlog */
	WAIT_UNTIL(count_sockets() > sockets, TEST_WAIT_MS);
	peer_kill(owner, SIGKILL);
	peer_expect(waiter, "failed");
	peer_join(waiter);
}

/* ---- connects to an owner that comes and goes ---- */

static void flicker(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	_Atomic bool *stop = arg;

	(void)self;
	while (!atomic_load(stop)) {
		sci_local_segment_t s = test_segment(sd, 10, SIZE, 0);
		sci_local_interrupt_t i = test_interrupt(sd, 10);

		CHECK_OK(SCIRemoveInterrupt(i, 0, &err));
		CHECK_OK(SCIRemoveSegment(s, SCI_FLAG_FORCE_REMOVE, &err));
	}
}

TEST(connects_to_a_name_that_flickers)
{
	_Atomic bool *stop = test_shared(sizeof(*stop));
	struct peer *p = peer_spawn(8, flicker, (void *)stop);
	uint64_t until = test_now_ms() + 4000;
	unsigned int met = 0;
	sci_desc_t sd = test_open();

	while (test_now_ms() < until) {
		sci_remote_interrupt_t i;
		sci_remote_segment_t r;
		sci_error_t e;

		SCIConnectSegment(sd, &r, 8, 10, 0, NULL, NULL, 0, 0, &e);
		if (!e) {
			met++;
			CHECK_OK(SCIDisconnectSegment(r, 0, &err));
		} else {
			CHECK_EQ(e, SCI_ERR_NO_SUCH_SEGMENT);
		}
		SCIConnectInterrupt(sd, &i, 8, 0, 10, 0, 0, &e);
		if (!e)
			CHECK_OK(SCIDisconnectInterrupt(i, 0, &err));
		else
			CHECK_EQ(e, SCI_ERR_NO_SUCH_INTNO);
	}
	atomic_store(stop, true);
	peer_join(p);
	test_note("connected %u times", met);
}
