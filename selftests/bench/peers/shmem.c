// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Measure one-sided calls of a SHMEM with two PEs, or the barrier of more: libsci's or Open
 * MPI's.
 *
 * usage: LAUNCHER -n 2 shmem METRIC SIZE...
 *        LAUNCHER -n N shmem barrierN_us 0
 *
 *	latency_us	put, fence, flag, and back (see measure.h)
 *	bandwidth_MBps	put, fence and flag, again and again
 *	both_MBps	put, fence, flag, by both PEs at once
 *	p_us		half a round trip of shmem_long_p() and shmem_long_wait_until()
 *	put_us		shmem_putmem() and shmem_quiet()
 *	get_us		shmem_getmem()
 *	fadd_us		shmem_long_atomic_fetch_add() of one word
 *	fadd_dirty_us	the same, of words whose lines the other PE has just written
 *	p_Mps		million shmem_long_p() a second, with one quiet per run
 *	barrier_us	shmem_barrier_all()
 *
 * With more than two PEs, there are no probes between the runs.
 */
#define _GNU_SOURCE
#include <shmem.h>

#include "selftests/bench/peers/measure.h"

enum { ORDER_P = PEER_END + 1, ORDER_BARRIER, ORDER_DIRTY };

static int rank;
static char *window, *local;		/* PEER_MAX bytes; only @window is symmetric */
static long *flags, *word;		/* *flags counts arrived messages */
static long sent, got;

static void peer_send(size_t n)
{
	if (n) {
		shmem_putmem(window, peer_out, n, !rank);
		shmem_fence();
	}
	shmem_long_p(flags, ++sent, !rank);
}

static void peer_recv(size_t n)
{
	(void)n;
	shmem_long_wait_until(flags, SHMEM_CMP_GE, ++got);
}

static void peer_stream_out(size_t n, uint64_t count)
{
	while (count--)
		peer_send(n);
}

static void peer_stream_in(size_t n, uint64_t count)
{
	(void)n;
	got += (long)count - 1;
	peer_recv(n);
}

/* A put needs no receive. */
static void post_receive(size_t n)
{
	(void)n;
}

static void wait_receive(void)
{
	peer_recv(0);
}

static void pongs(uint64_t count)
{
	for (uint64_t i = 1; i <= count; i++) {
		shmem_long_wait_until(word, SHMEM_CMP_EQ, (long)i);
		shmem_long_p(word, (long)i, 0);
	}
	*word = 0;
}

static void pings(uint64_t count)
{
	for (uint64_t i = 1; i <= count; i++) {
		shmem_long_p(word, (long)i, 1);
		shmem_long_wait_until(word, SHMEM_CMP_EQ, (long)i);
	}
	*word = 0;
}

static void barriers(uint64_t count)
{
	while (count--)
		shmem_barrier_all();
}

/* ---- additions to lines that the other PE has written ---- */

/* PE 1 writes the lines of its window when PE 0 asks, by word[0], and answers in PE 0's. */
static void dirty_answer(uint64_t turns)
{
	for (uint64_t i = 1; i <= turns; i++) {
		shmem_long_wait_until(word, SHMEM_CMP_EQ, (long)i);
		for (unsigned int k = 0; k < PEER_DIRTY; k++)
			*(volatile long *)(window + peer_dirty_at(k, 0)) = (long)i;
		shmem_long_p(word, (long)i, 0);
	}
	*word = 0;
}

/* Return the seconds of @count additions, without PE 1's part. */
static double dirty_add(uint64_t count)
{
	uint64_t turns = (count + PEER_DIRTY - 1) / PEER_DIRTY;
	double begin, t = 0;
	long old = 0;

	peer_tell(ORDER_DIRTY, 0, turns);
	for (uint64_t i = 1; i <= turns; i++) {
		shmem_long_p(word, (long)i, 1);
		shmem_long_wait_until(word, SHMEM_CMP_EQ, (long)i);
		begin = peer_now();
		for (unsigned int k = 0; k < PEER_DIRTY; k++)
			old = shmem_long_atomic_fetch_add(
				(long *)(window + peer_dirty_at(k, (uint64_t)old)), 1, 1);
		t += peer_now() - begin;
	}
	*word = 0;
	return t * (double)count / (double)(turns * PEER_DIRTY);
}

static void obey(void)
{
	struct peer_order o;

	do {
		peer_recv(sizeof(o));
		memcpy(&o, peer_in, sizeof(o));
		peer_send(0);
		if (o.what == PEER_PROBE)
			peer_probe_answer();
		else if (o.what == ORDER_P)
			pongs(o.count);
		else if (o.what == ORDER_BARRIER)
			barriers(o.count);
		else if (o.what == ORDER_DIRTY)
			dirty_answer(o.count);
	} while (o.what != PEER_END);
}

struct point {
	const char *metric;
	size_t size;
};

static double point_run(void *arg, uint64_t count)
{
	const struct point *p = arg;
	const char *m = p->metric;
	double begin;
	uint64_t i;

	if (!strcmp(m, "fadd_dirty_us"))
		return dirty_add(count);
	if (!strcmp(m, "p_us"))
		peer_tell(ORDER_P, 0, count);
	if (!strcmp(m, "barrier_us"))
		peer_tell(ORDER_BARRIER, 0, count);
	begin = peer_now();
	if (!strcmp(m, "p_us")) {
		pings(count);
	} else if (!strcmp(m, "barrier_us")) {
		barriers(count);
	} else if (!strcmp(m, "put_us")) {
		for (i = 0; i < count; i++) {
			shmem_putmem(window, local, p->size, 1);
			shmem_quiet();
		}
	} else if (!strcmp(m, "get_us")) {
		for (i = 0; i < count; i++)
			shmem_getmem(local, window, p->size, 1);
	} else if (!strcmp(m, "fadd_us")) {
		for (i = 0; i < count; i++)
			shmem_long_atomic_fetch_add(word + 64, 1, 1);
	} else if (!strcmp(m, "p_Mps")) {
		for (i = 0; i < count; i++)
			shmem_long_p((long *)window + i % 512, (long)i, 1);
		shmem_quiet();
	} else {
		peer_die("no such metric: %s", m);
	}
	return peer_now() - begin;
}

static double value_of(const char *metric, double seconds)
{
	if (!strcmp(metric, "p_Mps"))
		return 1e-6 / seconds;
	return !strcmp(metric, "p_us") ? seconds * 1e6 / 2 : seconds * 1e6;
}

static void points_measure(const char *metric, char **sizes)
{
	peer_probe_open();
	if (rank) {
		obey();
		return;
	}
	for (; *sizes; sizes++) {
		struct point p = { metric, strtoull(*sizes, NULL, 0) };
		struct peer_sample v[PEER_RUNS];

		peer_must(p.size <= PEER_MAX);
		peer_measure(point_run, &p, peer_probe_run, v);
		for (unsigned int i = 0; i < PEER_RUNS; i++)
			peer_print(metric, p.size, value_of(metric, v[i].seconds), &v[i]);
	}
	peer_tell(PEER_END, 0, 0);
}

/* ---- more than two PEs ---- */

/* Return the number of barriers that PE 0 wants. */
static uint64_t many_begin(uint64_t count)
{
	for (int pe = 0; !rank && pe < shmem_n_pes(); pe++)
		shmem_long_p(word, (long)count, pe);
	shmem_barrier_all();
	return (uint64_t)*word;
}

static double many_run(uint64_t count)
{
	double begin;

	count = many_begin(count);
	begin = peer_now();
	barriers(count);
	return peer_now() - begin;
}

static void many_measure(const char *metric)
{
	const char *ms = getenv("PEER_MS");
	double goal = (ms ? atof(ms) : 30) / 1000, t;
	uint64_t count = 8;

	if (rank) {
		while ((count = many_begin(0)))
			barriers(count);
		return;
	}
	while ((t = many_run(count)) < goal / 2)
		count *= 2;
	count = (uint64_t)((double)count * goal / t) + 1;
	for (unsigned int i = 0; i < PEER_RUNS; i++)
		printf("%s 0 %.6g\n", metric, many_run(count) / (double)count * 1e6);
	fflush(stdout);
	many_begin(0);
}

int main(int argc, char **argv)
{
	shmem_init();
	rank = shmem_my_pe();
	if (argc < 3 || shmem_n_pes() < 2 ||
	    (shmem_n_pes() > 2 && strncmp(argv[1], "barrier", 7)))
		peer_die("usage: LAUNCHER -n 2 shmem METRIC SIZE...");
	peer_pin(rank);
	window = shmem_align(4096, PEER_MAX);
	flags = shmem_align(256, 1024);
	word = shmem_align(256, 1024);
	local = peer_alloc(PEER_MAX, MAP_PRIVATE);
	peer_out = peer_alloc(PEER_MAX, MAP_PRIVATE);
	peer_in = window;
	peer_must(window && flags && word);
	memset(window, 0, PEER_MAX);
	memset(flags, 0, 1024);
	memset(word, 0, 1024);
	shmem_barrier_all();
	peer_post = post_receive;
	peer_wait = wait_receive;
	if (shmem_n_pes() > 2)
		many_measure(argv[1]);
	else if (!strcmp(argv[1], "latency_us") || strstr(argv[1], "_MBps"))
		measure(rank, argv[1], argv + 2);
	else
		points_measure(argv[1], argv + 2);
	shmem_barrier_all();
	shmem_finalize();
	return 0;
}
