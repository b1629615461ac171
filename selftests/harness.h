/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the harness of tests with several processes
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
 * A file of tests is one program; harness.c has main(). `program` runs all tests of the file,
 * `program NAME...` runs the tests whose names match a shell pattern, `program -l` lists them.
 *
 * Each test runs in its own process, on node 4 of its own virtual cluster, for at most 60 seconds.
 * The first check that fails ends the test. At the end of a test, the runner kills all processes
 * of the test, and checks that nothing of the test's cluster remains.
 *
 * SCI_TEST_NODE: the node of the test's process.
 * SCI_TEST_TIMEOUT: the time limit of a test, in seconds.
 * SCI_TEST_FABRIC: the value of SCI_FABRIC, instead of a cluster per test. "dev" needs adapters for
 *	nodes 4, 8 and so on. Without SCI_TEST_NODE, a test must leave no new objects in sysfs.
 * SCI_TEST_PEERS: each node is a machine, see remote.h.
 * SCI_TEST_NET=unix, tcp, tcp6 or vsock: each node has its own cluster; the net fabric connects them.
 * SCI_TEST_MARK: a part of the names of clusters (scripts/check-leftovers).
 * SCI_CALLS: the upper limit for test_calls(), for slow machines.
 *
 * Spawn peers before the first call of the library: a forked process inherits the descriptors of
 * its parent, and the thread sanitizer forbids new threads in the child of a process with several
 * threads. A peer that is needed later waits in peer_expect().
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
 * The time limit, in milliseconds, for an event that must happen: 20 s, or a third of
 * SCI_TEST_TIMEOUT if that is more than 60 s.
 */
#define TEST_WAIT_MS	test_wait_ms()

int test_wait_ms(void);

/* Return @n, or SCI_CALLS if that is less: a number of calls that suits slow machines, too. */
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

/* The place of a check. The runner prints a process's last one after a crash or a time-out. */
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

/* Print a line that begins with "# ". */
__attribute__((format(printf, 1, 2)))
void test_note(const char *fmt, ...);

#define TEST_SITE(site, site_text)					\
	static const struct test_site site = {				\
		__FILE__, __LINE__, site_text };			\
	test_at(&site)

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

/* Compare two integers of any types. Each argument is evaluated once. */
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
 * CHECK_ERR() - check the error code of a call
 * @call: an expression that passes &err. This macro declares err.
 */
#define CHECK_ERR(call, want)						\
	do {								\
		TEST_SITE(site_, #call);				\
		sci_error_t err = TEST_ERR_UNSET;			\
		call;							\
		test_check_err(&site_, err, want);			\
	} while (0)

#define CHECK_OK(call)	CHECK_ERR(call, SCI_ERR_OK)

/* The error code of a call, where several codes are correct. */
#define ERR_OF(call)							\
	({								\
		sci_error_t err = TEST_ERR_UNSET;			\
		call;							\
		err;							\
	})

/* The value of err before a call. Every call must overwrite it. */
#define TEST_ERR_UNSET	((sci_error_t)0x7eadbeef)

/* Poll @cond for at most @ms milliseconds. The value is true if @cond became true. */
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
void test_pause(void);			/* sleep between two polls, well below 1 ms */

/* Return the name of the test's cluster; "" with SCI_TEST_FABRIC. */
const char *test_cluster(void);

/* Open later fabrics in another cluster of this test. "" is the first cluster. */
void test_use_cluster(const char *suffix);

/* Open later fabrics as @node. */
void test_be_node(unsigned int node);

/* Open later fabrics as @node, in its own cluster; @kind is as in SCI_TEST_NET. */
void test_use_net(const char *kind, unsigned int node);

/*
 * Return a folder for files of this test, in $TMPDIR or /tmp. All processes of the test on this
 * machine have the same one. The runner removes it with its files.
 */
const char *test_dir(void);

/* Write a file in test_dir(), and let an environment variable name it. */
void test_env_file(const char *variable, const char *text);

/* Return whether the test runs on the shm fabric; test_needs_shm() skips other tests. */
bool test_on_shm(void);
void test_needs_shm(void);

/* Skip the test if each node is a machine, see remote.h. */
void test_needs_one_machine(void);

/* Map zeroed memory, shared with peers spawned later. Such peers are on this machine. */
void *test_shared(size_t size);

/* ---- peers: other processes of the test ---- */

struct peer;

/*
 * peer_spawn() - fork a process of a node
 * @node: may also be the node of the caller
 * @fn: the main function of the peer. @self is its end of the connection. Return is exit(0).
 *
 * The process dies with its parent.
 */
struct peer *peer_spawn(unsigned int node,
			void (*fn)(struct peer *self, void *arg), void *arg);

pid_t peer_pid(struct peer *p);

/* Talk to the other process, in parent and child. A missing message fails the test. */
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

/* Send a signal that ends the process, and wait for its end. */
void peer_kill(struct peer *p, int sig);

/* Send SIGSTOP and wait until it takes effect; send SIGCONT. */
void peer_stop(struct peer *p);
void peer_continue(struct peer *p);

/* Wait until the process exits by itself. Its status must be 0. */
void peer_join(struct peer *p);

/* In a peer: change to another user and group. Only root can do that. */
void peer_become(uid_t uid, gid_t gid);

/* ---- resources of a process ---- */

/* Check that at the second call the process holds no more resources than at the first. */
void leak_check_begin(void);
void leak_check_end(void);

/* Return whether all other threads sleep. */
bool others_asleep(void);

/*
 * fork() for a child that uses the library. The address sanitizer does not release its allocator's
 * locks in a child, so under it this function waits until no other thread can hold such a lock.
 */
pid_t test_fork(void);

/* A process as the kernel lists it. @state is '?' if there is no such process. */
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
unsigned int count_shared_maps(void);	/* maps of memfds and other shared files */
unsigned int count_sockets(void);	/* abstract sockets of the test's cluster */

/* ---- callbacks ---- */

/* One call of a callback. Fields that its kind does not have are 0. */
struct record {
	const void *handle;
	int reason;
	unsigned int node;
	unsigned int adapter;
	sci_error_t status;
	void *data;			/* a copy, with a 0 after it */
	unsigned int length;
	pthread_t thread;
	uint64_t when_ms;
};

#define RECORDER_MAX	4096

/* Records the callbacks of one object. It is the argument of the callbacks. */
struct recorder {
	pthread_mutex_t lock;
	pthread_cond_t more;
	sci_callback_action_t action;	/* what the callbacks return */
	bool inside;
	unsigned int overlaps;		/* callbacks that began while another one ran */
	unsigned int count;
	struct record records[RECORDER_MAX];
};

void recorder_init(struct recorder *r);
void recorder_clear(struct recorder *r);
unsigned int recorder_count(struct recorder *r);

/* Wait for @n callbacks, for at most @ms milliseconds. Return false if fewer came. */
bool recorder_wait(struct recorder *r, unsigned int n, unsigned int ms);

/* Wait for record @i, counted from 0, and return it. */
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

/* ---- first steps of most tests; each step checks its success ---- */

/* Initialize the library and open a device. */
sci_desc_t test_open(void);

/* Create a segment, prepare it and make it available on adapter 0. */
sci_local_segment_t test_segment(sci_desc_t sd, unsigned int id, size_t size,
				 unsigned int flags);

/* Return whether the adapters have broadcast groups. */
bool test_has_broadcast(void);

/* test_segment() with a callback. */
sci_local_segment_t test_segment_cb(sci_desc_t sd, unsigned int id,
				    size_t size, struct recorder *r);

/* Connect to a segment. Try again while the segment does not exist. */
sci_remote_segment_t test_connect(sci_desc_t sd, unsigned int node,
				  unsigned int id);

/* test_connect() with a callback. */
sci_remote_segment_t test_connect_cb(sci_desc_t sd, unsigned int node,
				     unsigned int id, struct recorder *r);

/* Map the whole segment. @map may be NULL. */
void *test_map_local(sci_local_segment_t s, sci_map_t *map);
volatile void *test_map_remote(sci_remote_segment_t s, sci_map_t *map);

/* Create an interrupt with this number and without a callback. */
sci_local_interrupt_t test_interrupt(sci_desc_t sd, unsigned int number);
sci_local_data_interrupt_t test_data_interrupt(sci_desc_t sd,
					       unsigned int number);

/* Connect to an interrupt. Try again while the interrupt does not exist. */
sci_remote_interrupt_t test_connect_interrupt(sci_desc_t sd, unsigned int node,
					      unsigned int number);
sci_remote_data_interrupt_t
test_connect_data_interrupt(sci_desc_t sd, unsigned int node,
			    unsigned int number);

/*
 * Store a byte while the library may revoke the map: the byte lands in the segment or in a private
 * page. The thread sanitizer skips this function, because it would report a race with mmap().
 */
void test_poke(volatile void *p, unsigned char value);

/* test_fill() writes a pattern that differs for each @seed. test_filled() compares. */
void test_fill(volatile void *p, size_t size, unsigned int seed);
bool test_filled(const volatile void *p, size_t size, unsigned int seed);

/* For the functions above: remember the caller's line for messages about failed checks. */
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
