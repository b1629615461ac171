/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Measure messages in the same way for libsci and for its peers.
 *
 * A program is called as
 *
 *	PROGRAM MODE METRIC SIZE...
 *
 * and prints a line "METRIC SIZE VALUE BEFORE AFTER PACE" for each of PEER_RUNS samples of
 * a size.  It defines the functions declared below before main(), and calls measure() in
 * both processes: rank 0 on the first CPU that it may use, rank 1 on the second.  Rank 0
 * measures.
 *
 * Each size begins with messages whose bytes are checked.  Then runs grow until one takes
 * a sixth of PEER_MS (30) milliseconds, which is the warm-up.  The next PEER_RUNS runs are
 * the samples.  The clock is read twice per run.
 *
 * The CPUs of a virtual machine may move between threads of one core and distant cores,
 * which changes times fourfold.  So a probe runs before and after each run: BEFORE and
 * AFTER are half a round trip of a word in the file PEER_PROBE, in microseconds.  A CPU
 * may also share its core with a foreign CPU.  So the probe also computes sums: PACE is
 * the time of a step in nanoseconds, of the slower process and the slower probe.
 * scripts/measure.sh uses these values to select samples.
 *
 *	latency_us		half a round trip
 *	bandwidth_MBps		rank 0 sends, rank 1 answers once, after the last message
 *	rate_Mps		the same, in million messages per second
 *	posted_us		latency_us, each receive posted before the message is sent
 *	both_MBps		both ranks send at once, and go on when the other's message has
 *				come: the sum of both directions
 *
 * There is one buffer for each direction, not touched between messages, as in the OSU
 * benchmarks.
 */
#ifndef SELFTESTS_PEERS_MEASURE_H
#define SELFTESTS_PEERS_MEASURE_H

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libsci/base/barrier.h"

#define PEER_MAX	((size_t)4 << 20)	/* size of the largest message */
#define PEER_RUNS	5u
#define PEER_TRIPS	100u			/* round trips of a probe */
#define PEER_STEPS	2000u			/* steps of a probe's sums */
#define PEER_RANKS	16			/* of all-to-all */
#define PEER_DIRTY	512u			/* words of a turn of fadd_dirty_us */
#define PEER_DIRTY_STEP	128u			/* in bytes */

#define peer_die(...)							\
	do {								\
		fprintf(stderr, __VA_ARGS__);				\
		fputc('\n', stderr);					\
		exit(1);						\
	} while (0)

#define peer_must(cond)							\
	do {								\
		if (!(cond))						\
			peer_die("%s:%d: %s failed", __FILE__, __LINE__, #cond); \
	} while (0)

/*
 * Return the offset of the @k-th word of fadd_dirty_us. No prefetcher knows the order, and no
 * addition begins before the CPU knows @old, the word before it, whose highest byte is 0.
 */
static inline size_t peer_dirty_at(size_t k, uint64_t old)
{
	return k * 37 % PEER_DIRTY * PEER_DIRTY_STEP + (old >> 56);
}

/*
 * Each program defines these. The buffers hold PEER_MAX bytes. Sizes start at 0,
 * and the receiver knows the sender's size. The stream functions keep a window of
 * messages under way. They return when the last buffer is free or has arrived.
 */
static char *peer_out, *peer_in;
static void peer_send(size_t n);
static void peer_recv(size_t n);
static void peer_stream_out(size_t n, uint64_t count);
static void peer_stream_in(size_t n, uint64_t count);

/* A program that offers posted_us and both_MBps sets these: start and end a receive. */
static void (*peer_post)(size_t n);
static void (*peer_wait)(void);

static inline double peer_now(void)	/* in seconds */
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Pin this process to the @n-th CPU that it may use. */
static inline void peer_pin(int n)
{
	cpu_set_t all, set;
	int cpu;

	peer_must(!sched_getaffinity(0, sizeof(all), &all));
	n %= CPU_COUNT(&all);
	for (cpu = 0; !CPU_ISSET(cpu, &all) || n--; cpu++)
		;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	peer_must(!sched_setaffinity(0, sizeof(set), &set));
}

/* Allocate page-aligned memory and touch it. @flags: MAP_SHARED or MAP_PRIVATE. */
static inline void *peer_alloc(size_t n, int flags)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS,
		       -1, 0);

	peer_must(p != MAP_FAILED);
	return memset(p, 0, n);
}

static int peer_pair[2];		/* rank 0's end, rank 1's end */

static inline void peer_exchange(int rank, const void *mine, void *theirs,
				 size_t n)
{
	char *p = theirs;
	ssize_t got;

	peer_must(write(peer_pair[rank], mine, n) == (ssize_t)n);
	for (; n; n -= (size_t)got, p += got) {
		got = read(peer_pair[rank], p, n);
		peer_must(got > 0);
	}
}

/* Fork. Pin both processes and return the rank. */
static inline int peer_fork(void)
{
	pid_t parent = getpid(), pid;
	int rank;

	peer_must(!socketpair(AF_UNIX, SOCK_STREAM, 0, peer_pair));
	fflush(stdout);
	pid = fork();
	peer_must(pid >= 0);
	rank = pid ? 0 : 1;
	if (rank) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		peer_must(getppid() == parent);
	}
	peer_pin(rank);
	return rank;
}

/* Rank 0 waits until rank 1 has exited. */
static inline int peer_join(int rank)
{
	int status = 0;

	if (!rank)
		peer_must(wait(&status) > 0 && !status);
	return 0;
}

/* ---- probe ---- */

static struct peer_probe {
	_Alignas(256) uint64_t ping;
	_Alignas(256) uint64_t pong;
	_Alignas(256) double pace;		/* of rank 1 */
	_Alignas(256) uint64_t turn;		/* number of probes done */
} *peer_probe;

static double peer_pace;			/* in ns, of the slower rank */
static volatile uint64_t peer_sum;

static inline void peer_probe_open(void)
{
	const char *path = getenv("PEER_PROBE");
	int fd;

	if (!path)
		return;
	fd = open(path, O_RDWR | O_CLOEXEC);
	peer_must(fd >= 0 && !ftruncate(fd, sizeof(*peer_probe)));
	peer_probe = mmap(NULL, sizeof(*peer_probe), PROT_READ | PROT_WRITE,
			  MAP_SHARED, fd, 0);
	peer_must(peer_probe != MAP_FAILED);
	close(fd);
}

/* Return ns per step of independent sums: as many at once as a core can do. */
static inline double peer_sums(void)
{
	uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, i;
	double begin = peer_now();

	for (i = 0; i < PEER_STEPS; i++) {
		a += (a >> 1) ^ i;
		b += (b >> 1) ^ i;
		c += (c >> 1) ^ i;
		d += (d >> 1) ^ i;
		e += (e >> 1) ^ i;
		f += (f >> 1) ^ i;
	}
	peer_sum = a + b + c + d + e + f;	/* or the compiler drops the sums */
	return (peer_now() - begin) * 1e9 / PEER_STEPS;
}

static inline void peer_await(const uint64_t *word, uint64_t n)
{
	while (sci_load_acquire(word) != n)
		;
}

static inline uint64_t peer_trips(uint64_t n, unsigned int count)
{
	while (count--) {
		sci_store_release(&peer_probe->ping, ++n);
		peer_await(&peer_probe->pong, n);
	}
	return n;
}

/* Return half a round trip in us; rank 1 answers. The first trip is not timed. */
static inline double peer_probe_ask(void)
{
	double mine = peer_sums(), begin;
	uint64_t n = peer_trips(peer_probe->pong, 1);

	peer_pace = peer_probe->pace > mine ? peer_probe->pace : mine;
	begin = peer_now();
	peer_trips(n, PEER_TRIPS);
	return (peer_now() - begin) * 1e6 / PEER_TRIPS / 2;
}

static inline void peer_probe_answer(void)
{
	uint64_t n = peer_probe->pong;
	unsigned int i;

	peer_probe->pace = peer_sums();
	for (i = 0; i < 1 + PEER_TRIPS; i++) {
		peer_await(&peer_probe->ping, ++n);
		sci_store_release(&peer_probe->pong, n);
	}
}

/* ---- orders from rank 0 to rank 1 ---- */

enum {
	PEER_CHECK, PEER_PING, PEER_STREAM, PEER_POSTED, PEER_BOTH, PEER_PROBE, PEER_END
};

struct peer_order {			/* from rank 0 to rank 1 */
	uint64_t what, size, count;
};

static inline unsigned char peer_byte(size_t i, uint64_t seed)
{
	return (unsigned char)((i ^ (i >> 8) ^ (i >> 16)) * 7 + seed);
}

static inline void peer_fill(size_t n, uint64_t seed)
{
	size_t i;

	for (i = 0; i < n; i++)
		peer_out[i] = (char)peer_byte(i, seed);
}

static inline void peer_verify(size_t n, uint64_t seed)
{
	size_t i;

	for (i = 0; i < n; i++)
		if ((unsigned char)peer_in[i] != peer_byte(i, seed))
			peer_die("wrong byte %zu of %zu", i, n);
}

/* Post a receive, send, and wait for the receive: rank 0, or both ranks at once. */
static inline void peer_posted_ping(size_t n, uint64_t count)
{
	while (count--) {
		peer_post(n);
		peer_send(n);
		peer_wait();
	}
}

/* The first receive is posted. */
static inline void peer_posted_pong(size_t n, uint64_t count)
{
	while (count--) {
		peer_wait();
		if (count)
			peer_post(n);
		peer_send(n);
	}
}

static inline void peer_tell(uint64_t what, size_t size, uint64_t count)
{
	struct peer_order o = { what, size, count };

	memcpy(peer_out, &o, sizeof(o));
	peer_send(sizeof(o));
	peer_recv(0);		/* no message overtakes an order */
}

static inline void peer_obey(void)
{
	struct peer_order o;
	uint64_t i;

	for (;;) {
		peer_recv(sizeof(o));
		memcpy(&o, peer_in, sizeof(o));
		if (o.what == PEER_POSTED)
			peer_post(o.size);
		peer_send(0);
		if (o.what == PEER_END)
			return;
		if (o.what == PEER_PROBE) {
			peer_probe_answer();
			continue;
		}
		if (o.what == PEER_POSTED || o.what == PEER_BOTH) {
			if (o.what == PEER_POSTED)
				peer_posted_pong(o.size, o.count);
			else
				peer_posted_ping(o.size, o.count);
			continue;
		}
		if (o.what == PEER_STREAM) {
			peer_stream_in(o.size, o.count);
			peer_send(8);
			continue;
		}
		for (i = 0; i < o.count; i++) {
			if (o.what == PEER_CHECK)
				peer_fill(o.size, i + 1);
			peer_recv(o.size);
			if (o.what == PEER_CHECK)
				peer_verify(o.size, i);
			peer_send(o.size);
		}
	}
}

static inline void peer_check(size_t n)
{
	uint64_t i;

	peer_tell(PEER_CHECK, n, 3);
	for (i = 0; i < 3; i++) {
		peer_fill(n, i);
		peer_send(n);
		peer_recv(n);
		peer_verify(n, i + 1);
	}
}

static inline double peer_run(uint64_t what, size_t n, uint64_t count)
{
	double begin;
	uint64_t i;

	peer_tell(what, n, count);
	begin = peer_now();
	if (what == PEER_STREAM) {
		peer_stream_out(n, count);
		peer_recv(8);
	} else if (what == PEER_POSTED || what == PEER_BOTH) {
		peer_posted_ping(n, count);
	} else {
		for (i = 0; i < count; i++) {
			peer_send(n);
			peer_recv(n);
		}
	}
	return peer_now() - begin;
}

static inline int peer_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

struct peer_sample {
	double seconds;			/* per iteration */
	double before, after;		/* in us; 0 without a probe */
	double pace;			/* in ns */
};

static inline double peer_sorted_median(double *v, unsigned int n)
{
	qsort(v, n, sizeof(*v), peer_compare);
	return v[n / 2];
}

/* Take samples of @run(arg, count), with @probe() between runs. */
static inline void peer_measure(double (*run)(void *arg, uint64_t count), void *arg,
				double (*probe)(void), struct peer_sample v[PEER_RUNS])
{
	const char *ms = getenv("PEER_MS");
	double goal = (ms ? atof(ms) : 30) / 6000, t, us, pace;
	uint64_t count = 8;
	unsigned int i;

	for (;;) {
		t = run(arg, count);
		if (t >= goal / 2)
			break;
		count *= t < goal / 16 ? 8 : 2;
	}
	count = (uint64_t)((double)count * goal / t) + 1;
	us = probe();
	for (i = 0; i < PEER_RUNS; i++) {
		pace = peer_pace;
		v[i].before = us;
		v[i].seconds = run(arg, count) / (double)count;
		v[i].after = us = probe();
		v[i].pace = pace > peer_pace ? pace : peer_pace;
	}
}

static inline void peer_print(const char *metric, size_t n, double value,
			      const struct peer_sample *s)
{
	printf("%s %zu %.6g %.4g %.4g %.4g\n", metric, n, value, s->before, s->after,
	       s->pace);
	fflush(stdout);
}

struct peer_point {
	uint64_t what;
	size_t size;
};

static inline double peer_point_run(void *arg, uint64_t count)
{
	struct peer_point *p = arg;

	return peer_run(p->what, p->size, count);
}

/*
 * Return the metric's value. @seconds is the time of an iteration of
 * peer_point_run().
 */
static inline double peer_value(const char *metric, size_t n, double seconds)
{
	if (!strcmp(metric, "bandwidth_MBps"))
		return (double)n / seconds / 1e6;
	if (!strcmp(metric, "both_MBps"))
		return 2 * (double)n / seconds / 1e6;
	if (!strcmp(metric, "rate_Mps"))
		return 1 / seconds / 1e6;
	return seconds * 1e6 / 2;
}

static inline double peer_probe_run(void)
{
	if (!peer_probe)
		return 0;
	peer_tell(PEER_PROBE, 0, 0);
	return peer_probe_ask();
}

static inline uint64_t peer_order_of(const char *metric)
{
	if (!strcmp(metric, "latency_us"))
		return PEER_PING;
	if (!strcmp(metric, "posted_us"))
		return PEER_POSTED;
	return !strcmp(metric, "both_MBps") ? PEER_BOTH : PEER_STREAM;
}

/* Measure all sizes. @sizes are the program's arguments from SIZE on. */
static inline void measure(int rank, const char *metric, char **sizes)
{
	struct peer_point p = { .what = peer_order_of(metric) };
	struct peer_sample v[PEER_RUNS];
	unsigned int i;

	peer_must(peer_post || (p.what != PEER_POSTED && p.what != PEER_BOTH));
	peer_probe_open();
	if (rank) {
		peer_obey();
		return;
	}
	for (; *sizes; sizes++) {
		p.size = strtoull(*sizes, NULL, 0);
		peer_must(p.size <= PEER_MAX);
		peer_check(p.size);
		peer_measure(peer_point_run, &p, peer_probe_run, v);
		for (i = 0; i < PEER_RUNS; i++)
			peer_print(metric, p.size,
				   peer_value(metric, p.size, v[i].seconds), &v[i]);
	}
	peer_tell(PEER_END, 0, 0);
}

/* Return the number of repetitions of an all-to-all with messages of @n bytes. */
static inline int peer_alltoall_count(size_t n)
{
	return n > 16384 ? 40 : 400;
}

#endif
