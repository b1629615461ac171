/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: tests of several processes
 *
 *	#include <sisci_api.h>
 *	#include "selftests/harness.h"
 *
 *	static void owner(struct peer *self, void *arg)
 *	{
 *		sci_desc_t sd = test_open();
 *
 *		test_segment(sd, 7, 4096, 0);
 *		peer_send(self, "ready");
 *		peer_expect(self, "done");
 *	}
 *
 *	TEST(a_store_is_seen_by_the_other_node)
 *	{
 *		struct peer *p = peer_spawn(8, owner, NULL);
 *
 *		sci_desc_t sd = test_open();
 *		peer_expect(p, "ready");
 *		CHECK_OK(SCIConnectSegment(sd, &r, 8, 7, 0, NULL, NULL,
 *					   SCI_INFINITE_TIMEOUT, 0, &err));
 *		peer_send(p, "done");
 *		peer_join(p);
 *	}
 *
 * A file of tests is one program; harness.c has main().  `program` runs all of
 * them, `program NAME...` (shell patterns) some, `program -l` lists them.
 *
 * Each test runs in a process of its own, on node 4 (SCI_TEST_NODE) of a virtual
 * cluster of its own, for at most 60 seconds (SCI_TEST_TIMEOUT).  SCI_TEST_FABRIC
 * replaces the cluster: it becomes SCI_FABRIC as it is ("dev", with adapters for
 * nodes 4, 8 and so on).  With SCI_TEST_PEERS nodes are machines, see remote.h.
 * The first check that fails ends the test.  When a test has ended, all its
 * processes are killed, and nothing that belongs to its cluster may remain, nor
 * with "dev" more in sysfs than there was (but with SCI_TEST_NODE, which is for
 * several at once).  SCI_CALLS bounds floods, for a machine that is slow.
 * With SCI_TEST_NET=unix, tcp or tcp6 each node is a cluster of its own, and nodes reach
 * each other over the net fabric alone.
 * SCI_TEST_MARK becomes part of the names of clusters (scripts/check-leftovers).
 *
 * Spawn peers before the first call of the library: a forked process inherits
 * the descriptors of its parent, and the thread sanitizer forbids new threads
 * in the child of a process with several threads.  Let the peer wait with
 * peer_expect() until it is wanted.
 */
#ifndef SELFTESTS_HARNESS_H
#define SELFTESTS_HARNESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sisci_api.h"

#if defined(__SANITIZE_THREAD__)
#define TEST_TSAN	1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_TSAN	1
#endif
#endif
#ifndef TEST_TSAN
#define TEST_TSAN	0
#endif

#if defined(__SANITIZE_ADDRESS__)
#define TEST_ASAN	1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_ASAN	1
#endif
#endif
#ifndef TEST_ASAN
#define TEST_ASAN	0
#endif

#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))

/*
 * How long something that must happen may take; never reached when it works.
 * Where SCI_TEST_TIMEOUT gives tests more than 60 seconds, in proportion.
 */
#define TEST_WAIT_MS	test_wait_ms()

int test_wait_ms(void);

/* So many, or SCI_CALLS if that is less: how often a test floods, if it does. */
unsigned int test_calls(unsigned int n);

/* ---- tests and checks ---- */

struct test {
	const char *name;
	void (*fn)(void);
	struct test *next;
};

void test_register(struct test *t);

#define TEST(test_name)							\
	static void test_##test_name(void);				\
	__attribute__((constructor)) static void reg_##test_name(void)	\
	{								\
		static struct test t = { #test_name,			\
					 test_##test_name, NULL };	\
									\
		test_register(&t);					\
	}								\
	static void test_##test_name(void)

/* Where a process is: printed when it crashes or takes too long. */
struct test_site {
	const char *file;
	int line;
	const char *text;
};

void test_at(const struct test_site *site);

__attribute__((noreturn, format(printf, 2, 3)))
void test_fail(const struct test_site *site, const char *fmt, ...);

__attribute__((noreturn, format(printf, 1, 2)))
void test_skip(const char *fmt, ...);

void test_check_err(const struct test_site *site, sci_error_t got,
		    sci_error_t want);

/* A line of the test's output that begins with "# ". */
__attribute__((format(printf, 1, 2)))
void test_note(const char *fmt, ...);

#define TEST_SITE(site, site_text)					\
	static const struct test_site site = {				\
		__FILE__, __LINE__, site_text };			\
	test_at(&site)

/* Ends the test as skipped. */
#define SKIP(...)	test_skip(__VA_ARGS__)

#define FAIL(...)							\
	do {								\
		TEST_SITE(site_, "FAIL");				\
		test_fail(&site_, __VA_ARGS__);				\
	} while (0)

#define CHECK(cond)							\
	do {								\
		TEST_SITE(site_, #cond);				\
		if (!(cond))						\
			test_fail(&site_, "expected %s", #cond);	\
	} while (0)

/* Integers of any kind; each argument is evaluated once. */
#define CHECK_EQ(got, want)						\
	do {								\
		TEST_SITE(site_, #got " == " #want);			\
		long long got_ = (long long)(got);			\
		long long want_ = (long long)(want);			\
		if (got_ != want_)					\
			test_fail(&site_, "%s: expected %lld (%#llx), "	\
				  "got %lld (%#llx)", #got, want_,	\
				  (unsigned long long)want_, got_,	\
				  (unsigned long long)got_);		\
	} while (0)

/*
 * CHECK_ERR() - a call answers this code
 * @call: an expression that passes &err, a variable of this macro's
 */
#define CHECK_ERR(call, want)						\
	do {								\
		TEST_SITE(site_, #call);				\
		sci_error_t err = TEST_ERR_UNSET;			\
		call;							\
		test_check_err(&site_, err, want);			\
	} while (0)

#define CHECK_OK(call)	CHECK_ERR(call, SCI_ERR_OK)

/* The code that a call answers, for those that may answer several. */
#define ERR_OF(call)							\
	({								\
		sci_error_t err = TEST_ERR_UNSET;			\
		call;							\
		err;							\
	})

/* No call may leave this in place. */
#define TEST_ERR_UNSET	((sci_error_t)0x7eadbeef)

/* Polls; false if @cond did not come true within @ms. */
#define HAPPENS(cond, ms)						\
	({								\
		uint64_t until_ = test_now_ms() + (ms);			\
		bool true_;						\
		while (!(true_ = (cond)) && test_now_ms() < until_)	\
			test_pause();					\
		true_ || (cond);					\
	})

#define WAIT_UNTIL(cond, ms)						\
	do {								\
		TEST_SITE(site_, #cond);				\
		if (!HAPPENS(cond, ms))					\
			test_fail(&site_, "not within %u ms: %s",	\
				  (unsigned int)(ms), #cond);		\
	} while (0)

uint64_t test_now_ms(void);
void test_pause(void);			/* between two polls, well below 1 ms */

/* The name of the test's cluster; "" with SCI_TEST_FABRIC. */
const char *test_cluster(void);

/* Joins another cluster of this test's from now on, "" the first. */
void test_use_cluster(const char *suffix);

/* This process is of @node from now on, for fabrics that it opens. */
void test_be_node(unsigned int node);

/* Be @node, alone in its cluster, with a way to others over the net: see SCI_TEST_NET. */
void test_use_net(const char *kind, unsigned int node);

/* Whether the test runs on the shm fabric; skips it unless it does. */
bool test_on_shm(void);
void test_needs_shm(void);

/* Skips the test where nodes are machines, see remote.h. */
void test_needs_one_machine(void);

/* Memory shared with peers spawned later, zeroed; they are on this machine. */
void *test_shared(size_t size);

/* ---- peers: other processes of the test ---- */

struct peer;

/*
 * peer_spawn() - fork a process of another node, or of the same
 * @fn: what it does, with its end of the connection; returning is exit(0)
 *
 * The process dies with the one that spawned it.
 */
struct peer *peer_spawn(unsigned int node,
			void (*fn)(struct peer *self, void *arg), void *arg);

pid_t peer_pid(struct peer *p);

/* Both directions, in parent and child; what doesn't come in time fails. */
void peer_send(struct peer *p, const char *token);
void peer_expect(struct peer *p, const char *token);
void peer_put(struct peer *p, const void *data, size_t len);
void peer_get(struct peer *p, void *data, size_t len);

#define PEER_PUT(p, value)						\
	do {								\
		__typeof__(value) value_ = (value);			\
									\
		peer_put(p, &value_, sizeof(value_));			\
	} while (0)

#define PEER_GET(p, variable)	peer_get(p, &(variable), sizeof(variable))

/* Sends a signal that ends it and waits for that end. */
void peer_kill(struct peer *p, int sig);

/* SIGSTOP, in effect when this returns, and SIGCONT. */
void peer_stop(struct peer *p);
void peer_continue(struct peer *p);

/* Waits until it exits, by itself and with 0. */
void peer_join(struct peer *p);

/* In a peer: go on as another user and group; root only. */
void peer_become(uid_t uid, gid_t gid);

/* ---- what a process holds ---- */

/* Between two of these, outside of Initialize and Terminate, nothing leaks. */
void leak_check_begin(void);
void leak_check_end(void);

/* Whether all other threads sleep: what was started waits by now. */
bool others_asleep(void);

/*
 * fork() for a child that goes on to use the library.  The address sanitizer
 * does not release its allocator's locks in a child: under it this waits until
 * no other thread can be holding one.
 */
pid_t test_fork(void);

/* A process as the kernel lists it. @state: '?': there is no such process */
struct test_process {
	char state;
	pid_t parent;
	pid_t group;
	char name[64];
};

struct test_process test_process(pid_t pid);

unsigned int count_tasks(void);
unsigned int count_fds(void);
unsigned int count_maps(void);
unsigned int count_shared_maps(void);	/* those of memfds and the like */
unsigned int count_sockets(void);	/* abstract, of the test's clusters */

/* ---- callbacks ---- */

/* One call of a callback; what its kind does not have is 0. */
struct record {
	const void *handle;
	int reason;
	unsigned int node;
	unsigned int adapter;
	sci_error_t status;
	void *data;			/* a copy, with a 0 behind it */
	unsigned int length;
	pthread_t thread;
	uint64_t when_ms;
};

#define RECORDER_MAX	4096

/* Records the callbacks of one object; give one to each, as its argument. */
struct recorder {
	pthread_mutex_t lock;
	pthread_cond_t more;
	sci_callback_action_t action;	/* what the callbacks return */
	bool inside;
	unsigned int overlaps;		/* callbacks that ran at once */
	unsigned int count;
	struct record records[RECORDER_MAX];
};

void recorder_init(struct recorder *r);
void recorder_clear(struct recorder *r);
unsigned int recorder_count(struct recorder *r);

/* Waits until @n callbacks have been recorded; false: not within @ms. */
bool recorder_wait(struct recorder *r, unsigned int n, unsigned int ms);

/* Record @i (from 0), for which the test waits. */
struct record recorder_get(struct recorder *r, unsigned int i);

sci_callback_action_t record_local_segment(void *arg, sci_local_segment_t s,
					   sci_segment_cb_reason_t reason,
					   unsigned int node,
					   unsigned int adapter,
					   sci_error_t error);
sci_callback_action_t record_remote_segment(void *arg, sci_remote_segment_t s,
					    sci_segment_cb_reason_t reason,
					    sci_error_t status);
sci_callback_action_t record_dma(void *arg, sci_dma_queue_t q,
				 sci_error_t status);
sci_callback_action_t record_interrupt(void *arg, sci_local_interrupt_t i,
				       sci_error_t status);
sci_callback_action_t record_data_interrupt(void *arg,
					    sci_local_data_interrupt_t i,
					    void *data, unsigned int length,
					    sci_error_t status);
int record_block_transfer(void *arg, sci_block_transfer_t b,
			  sci_error_t status);

/* ---- steps that most tests begin with; each checks that it works ---- */

/* Initializes the library and opens a device. */
sci_desc_t test_open(void);

/* Creates a segment, prepares it and makes it available on adapter 0. */
sci_local_segment_t test_segment(sci_desc_t sd, unsigned int id, size_t size,
				 unsigned int flags);

/* Whether these adapters have broadcast groups. */
bool test_has_broadcast(void);

/* The same with a callback. */
sci_local_segment_t test_segment_cb(sci_desc_t sd, unsigned int id,
				    size_t size, struct recorder *r);

/* Connects, again and again while the segment does not exist. */
sci_remote_segment_t test_connect(sci_desc_t sd, unsigned int node,
				  unsigned int id);

/* The same with a callback. */
sci_remote_segment_t test_connect_cb(sci_desc_t sd, unsigned int node,
				     unsigned int id, struct recorder *r);

/* Maps the whole segment; @map may be NULL. */
void *test_map_local(sci_local_segment_t s, sci_map_t *map);
volatile void *test_map_remote(sci_remote_segment_t s, sci_map_t *map);

/* Creates an interrupt of this number, without a callback. */
sci_local_interrupt_t test_interrupt(sci_desc_t sd, unsigned int number);
sci_local_data_interrupt_t test_data_interrupt(sci_desc_t sd,
					       unsigned int number);

/* Connects, again and again while the interrupt does not exist. */
sci_remote_interrupt_t test_connect_interrupt(sci_desc_t sd, unsigned int node,
					      unsigned int number);
sci_remote_data_interrupt_t
test_connect_data_interrupt(sci_desc_t sd, unsigned int node,
			    unsigned int number);

/*
 * A store that the library may take a map away under, as it may in programs:
 * it lands in the segment or in a page of our own.  The thread sanitizer, which
 * sees a race with mmap(), is not told.
 */
void test_poke(volatile void *p, unsigned char value);

/* A pattern that differs for each @seed, and whether @p holds it. */
void test_fill(volatile void *p, size_t size, unsigned int seed);
bool test_filled(const volatile void *p, size_t size, unsigned int seed);

/* The functions above that check something say where they were called from. */
#define TEST_FROM(call)	(test_from(__FILE__, __LINE__, #call), call)

void test_from(const char *file, int line, const char *text);

#ifndef SELFTESTS_HARNESS_C
#define peer_spawn(node, fn, arg) TEST_FROM(peer_spawn(node, fn, arg))
#define peer_send(p, token) TEST_FROM(peer_send(p, token))
#define peer_expect(p, token) TEST_FROM(peer_expect(p, token))
#define peer_put(p, data, len) TEST_FROM(peer_put(p, data, len))
#define peer_get(p, data, len) TEST_FROM(peer_get(p, data, len))
#define peer_kill(p, sig) TEST_FROM(peer_kill(p, sig))
#define peer_stop(p) TEST_FROM(peer_stop(p))
#define peer_join(p) TEST_FROM(peer_join(p))
#define peer_become(uid, gid) TEST_FROM(peer_become(uid, gid))
#define leak_check_end() TEST_FROM(leak_check_end())
#define recorder_get(r, i) TEST_FROM(recorder_get(r, i))
#define test_open() TEST_FROM(test_open())
#define test_segment(sd, id, size, flags) \
	TEST_FROM(test_segment(sd, id, size, flags))
#define test_segment_cb(sd, id, size, r) \
	TEST_FROM(test_segment_cb(sd, id, size, r))
#define test_connect(sd, node, id) \
	TEST_FROM(test_connect(sd, node, id))
#define test_connect_cb(sd, node, id, r) \
	TEST_FROM(test_connect_cb(sd, node, id, r))
#define test_map_local(s, map) TEST_FROM(test_map_local(s, map))
#define test_map_remote(s, map) TEST_FROM(test_map_remote(s, map))
#define test_interrupt(sd, number) \
	TEST_FROM(test_interrupt(sd, number))
#define test_data_interrupt(sd, number) \
	TEST_FROM(test_data_interrupt(sd, number))
#define test_connect_interrupt(sd, node, number) \
	TEST_FROM(test_connect_interrupt(sd, node, number))
#define test_connect_data_interrupt(sd, node, number) \
	TEST_FROM(test_connect_data_interrupt(sd, node, number))
#endif

#endif
