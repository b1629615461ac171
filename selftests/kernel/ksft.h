/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: tests of a kernel interface, in kselftest's form
 *
 *	static void owner(struct peer *self, void *arg)
 *	{
 *		int fd = OK(thing_open());
 *
 *		peer_send(self, "ready");
 *		peer_expect(self, "done");
 *	}
 *
 *	TEST(a_thing_has_one_owner)
 *	{
 *		struct peer *p = peer_spawn(owner, NULL);
 *
 *		peer_expect(p, "ready");
 *		FAILS(thing_open(), EBUSY);
 *		peer_send(p, "done");
 *		peer_join(p);
 *	}
 *
 * A file of tests is one program; ksft.c has main().  `program` runs all tests,
 * `program NAME...` those that match shell patterns, and `program -l` lists them.
 * --WORD=NUMBER, or SCI_WORD=NUMBER in the environment, sets the result of
 * ksft_option("word", default).
 *
 * Output is TAP.  The exit status is 0, 1 if a test failed, or 4 if all tests were
 * skipped.
 *
 * Each test runs in a process of its own, which leads a process group.  Its time
 * limit is 60 seconds, or that of TEST_LIMIT(); SCI_TEST_TIMEOUT=N replaces the 60
 * and scales the others.  The first check that fails ends the test.  After a test
 * the runner kills its process group, and the hooks look for leftovers.
 *
 * Functions that tests call return -errno or a result that is not negative.  OK()
 * and FAILS() check such a result, and SYS() converts that of a system call.
 */
#ifndef SELFTESTS_KERNEL_KSFT_H
#define SELFTESTS_KERNEL_KSFT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#endif

enum ksft_exit { KSFT_PASS = 0, KSFT_FAIL = 1, KSFT_SKIP = 4 };

/*
 * The longest wait for an event that must happen; a test that passes never waits so
 * long. It grows with SCI_TEST_TIMEOUT if that is above 60 seconds.
 */
#define TEST_WAIT_MS	ksft_wait_ms()

int ksft_wait_ms(void);

/* ---- tests ---- */

struct ksft_test {
	const char *name;
	void (*fn)(void);
	unsigned int limit_s;
	struct ksft_test *next;
};

void ksft_register(struct ksft_test *t);

#define TEST_LIMIT(test_name, seconds)					\
	static void test_##test_name(void);				\
	__attribute__((constructor)) static void reg_##test_name(void)	\
	{								\
		static struct ksft_test t = {				\
			#test_name, test_##test_name, seconds, NULL };	\
									\
		ksft_register(&t);					\
	}								\
	static void test_##test_name(void)

#define TEST(test_name)	TEST_LIMIT(test_name, 60)

/**
 * struct ksft_hooks - what a set of programs does around each test
 * @missing: why nothing can be tested here, or NULL
 * @before: called before a test starts
 * @after: called when the last process of a test is gone; false: the test left
 *	something behind, or broke something
 *
 * All run in the process that starts the tests.
 */
struct ksft_hooks {
	const char *(*missing)(void);
	void (*before)(void);
	bool (*after)(void);
};

extern const struct ksft_hooks ksft_hooks;

/* Return the number that the command line or the environment sets, or @otherwise. */
unsigned long long ksft_option(const char *word, unsigned long long otherwise);

/* Set the time limit of this test, in seconds before SCI_TEST_TIMEOUT scales it. */
void ksft_set_limit(unsigned int seconds);

/* Print a line that begins with "# ". */
__attribute__((format(printf, 1, 2)))
void ksft_note(const char *fmt, ...);

/* End the test as skipped. Call this in the test process only, not in a peer. */
__attribute__((noreturn, format(printf, 1, 2)))
void ksft_skip(const char *fmt, ...);

#define SKIP(...)	ksft_skip(__VA_ARGS__)

/* ---- checks ---- */

/* The place of a process: printed when the process fails, crashes or hangs. */
struct ksft_site {
	const char *file;
	int line;
	const char *text;
};

#define KSFT_SITE(site_text)						\
	((struct ksft_site){ __FILE__, __LINE__, site_text })
#define KSFT_AT(site_text)	ksft_at(KSFT_SITE(site_text))

void ksft_at(struct ksft_site site);
void ksft_from(struct ksft_site site);

__attribute__((noreturn, format(printf, 2, 3)))
void ksft_fail(struct ksft_site site, const char *fmt, ...);

void ksft_check(struct ksft_site site, bool cond);
void ksft_eq(struct ksft_site site, long long got, long long want);
long long ksft_ok(struct ksft_site site, long long result);
void ksft_fails(struct ksft_site site, long long result, int one, int other);

/* Return "EINVAL" for 22. Not thread-safe if @error has no name. */
const char *ksft_errname(int error);

#define FAIL(...)	ksft_fail(KSFT_SITE("FAIL"), __VA_ARGS__)

#define CHECK(cond)							\
	(KSFT_AT(#cond), ksft_check(KSFT_SITE(#cond), cond))

/* Compare integers of any type. */
#define EQ(got, want)							\
	(KSFT_AT(#got), ksft_eq(KSFT_SITE(#got), (long long)(got),	\
				(long long)(want)))

/* Check that a result is not negative, and return it. */
#define OK(call)							\
	(KSFT_AT(#call), ksft_ok(KSFT_SITE(#call), (long long)(call)))

/* Check that a result is -@error; one of two errors; any error. */
#define FAILS(call, error)	FAILS_EITHER(call, error, error)
#define FAILS_EITHER(call, one, other)					\
	(KSFT_AT(#call),						\
	 ksft_fails(KSFT_SITE(#call), (long long)(call), one, other))
#define FAILS_SOMEHOW(call)	FAILS_EITHER(call, 0, 0)

/* Return the result of a system call, or -errno. */
#define SYS(call)	ksft_sys((long)(call))

static inline long ksft_sys(long result)
{
	return result == -1 ? -(long)errno : result;
}

/* Call a function that checks; its failures also print the caller's place. */
#define KSFT_FROM(call)	(ksft_from(KSFT_SITE(#call)), call)

/* Poll until @cond is true; false after @ms milliseconds. */
#define HAPPENS(cond, ms)						\
	({								\
		uint64_t until_ = ksft_now_ms() + (ms);			\
		bool true_;						\
		while (!(true_ = (cond)) && ksft_now_ms() < until_)	\
			ksft_pause();					\
		true_ || (cond);					\
	})

#define WAIT_UNTIL(cond)						\
	do {								\
		KSFT_AT(#cond);						\
		if (!HAPPENS(cond, TEST_WAIT_MS))			\
			FAIL("not within %d ms: %s", TEST_WAIT_MS,	\
			     #cond);					\
	} while (0)

uint64_t ksft_now_ms(void);
void ksft_pause(void);			/* between two polls */

/* A stream of pseudo-random numbers that a seed determines. */
uint64_t ksft_random(uint64_t *state);
unsigned int ksft_below(uint64_t *state, unsigned int n);

/* Allocate zeroed memory that is shared with processes forked later. */
void *ksft_shared(size_t size);

/* Count the lines of a file that @match accepts; NULL accepts all. */
unsigned int ksft_count_lines(const char *path,
			      bool (*match)(const char *line));
unsigned int ksft_count_fds(void);
unsigned int ksft_count_maps(void);

/* ---- peers: other processes of the test ---- */

struct peer;

/*
 * peer_spawn() - fork a process
 * @fn: its main function; @self is its end of the connection; returning is exit(0)
 *
 * The peer inherits all descriptors and maps: spawn first, open later, and let the
 * peer wait with peer_expect() until the test needs it.  It dies with its parent.
 */
struct peer *peer_spawn(void (*fn)(struct peer *self, void *arg), void *arg);

pid_t peer_pid(struct peer *p);

/* Send and receive, in parent or peer. A message that does not come fails the test. */
void peer_send(struct peer *p, const char *token);
void peer_expect(struct peer *p, const char *token);
void peer_put(struct peer *p, const void *data, size_t len);
void peer_get(struct peer *p, void *data, size_t len);
void peer_put_fd(struct peer *p, int fd);
int peer_get_fd(struct peer *p);

#define PEER_PUT(p, value)						\
	do {								\
		__typeof__(value) value_ = (value);			\
									\
		peer_put(p, &value_, sizeof(value_));			\
	} while (0)

#define PEER_GET(p, type)						\
	({								\
		type value_ = { 0 };					\
									\
		peer_get(p, &value_, sizeof(value_));			\
		value_;							\
	})

/* Kill the peer and wait until it has ended. */
void peer_kill(struct peer *p);

/* Wait until the peer exits by itself with status 0. */
void peer_join(struct peer *p);

/*
 * Execute this program again in a peer, which closes all close-on-exec descriptors.
 * The new program sends "hello" and exits when it receives "bye".
 */
__attribute__((noreturn)) void peer_exec(struct peer *self);
bool peer_exec_main(int argc, char **argv);

/* Change the user and group of a peer, and drop its supplementary groups. */
void peer_become(uid_t uid, gid_t gid);

/*
 * Fork a child that dies with its parent and that reports of hangs include. Return
 * 0 in the child, its pid in the parent.
 */
pid_t ksft_fork(void);

/* Return whether a thread, of any process, sleeps in an ioctl of @fd. */
bool ksft_waits_in_ioctl(pid_t thread, int fd);

/* Wait for a child and return its status in the form of waitpid(). */
int ksft_wait(pid_t pid);

#ifndef SELFTESTS_KERNEL_KSFT_C
#define peer_spawn(fn, arg) KSFT_FROM(peer_spawn(fn, arg))
#define peer_send(p, token) KSFT_FROM(peer_send(p, token))
#define peer_expect(p, token) KSFT_FROM(peer_expect(p, token))
#define peer_put(p, data, len) KSFT_FROM(peer_put(p, data, len))
#define peer_get(p, data, len) KSFT_FROM(peer_get(p, data, len))
#define peer_put_fd(p, fd) KSFT_FROM(peer_put_fd(p, fd))
#define peer_get_fd(p) KSFT_FROM(peer_get_fd(p))
#define peer_kill(p) KSFT_FROM(peer_kill(p))
#define peer_join(p) KSFT_FROM(peer_join(p))
#define ksft_wait(pid) KSFT_FROM(ksft_wait(pid))
#endif

#endif
