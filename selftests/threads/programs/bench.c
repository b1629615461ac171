// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Measure calls of threads with two threads: that of main(), and one on the node that
 * SCI_THREADS_PLACE selects. If there are two CPUs, each thread has its own. Each line of output
 * is a name, a tab and nanoseconds: the median of REPEATS measurements.
 *
 *	create and join		one thread created and joined
 *	mutex, free		lock and unlock; no other thread uses the mutex
 *	mutex, used by two	lock, add and unlock, by two threads at once; per call
 *	barrier			of two threads
 *	condition, one way	half of a round trip: signal, and the other thread's wake-up
 *	spin lock, used by two	lock, add and unlock, by two threads at once; per call
 *	malloc and free		of 64 bytes, by main()
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define REPEATS	15

static cpu_set_t cpus;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static unsigned int turn;
static _Alignas(64) volatile uint64_t sum;

/* Move the calling thread to the @n-th of the program's CPUs. */
static void pin(int n)
{
	cpu_set_t set;
	int cpu = 0;

	n %= CPU_COUNT(&cpus);
	while (!CPU_ISSET(cpu, &cpus) || n--)
		cpu++;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- benchmarks: a thread makes @n calls; @me: 0 or 1 ---- */

static void *nothing(void *arg)
{
	return arg;
}

static void create_join(unsigned int n, unsigned int me)
{
	pthread_t t;

	(void)me;
	while (n--)
		if (pthread_create(&t, NULL, nothing, NULL) || pthread_join(t, NULL))
			exit(1);
}

static void use_mutex(unsigned int n, unsigned int me)
{
	(void)me;
	while (n--) {
		pthread_mutex_lock(&lock);
		sum = sum + 1;
		pthread_mutex_unlock(&lock);
	}
}

static void use_spin(unsigned int n, unsigned int me)
{
	(void)me;
	while (n--) {
		pthread_spin_lock(&spin);
		sum = sum + 1;
		pthread_spin_unlock(&spin);
	}
}

static void use_barrier(unsigned int n, unsigned int me)
{
	(void)me;
	while (n--)
		pthread_barrier_wait(&barrier);
}

static void use_condition(unsigned int n, unsigned int me)
{
	while (n--) {
		pthread_mutex_lock(&lock);
		while (turn % 2 != me)
			pthread_cond_wait(&turned, &lock);
		turn++;
		pthread_cond_signal(&turned);
		pthread_mutex_unlock(&lock);
	}
}

static void use_heap(unsigned int n, unsigned int me)
{
	(void)me;
	while (n--) {
		char *volatile p = malloc(64);

		free(p);
	}
}

static const struct bench {
	const char *name;
	void (*fn)(unsigned int n, unsigned int me);
	unsigned int threads, n;
	unsigned int calls;		/* calls per @n; the time is divided by it */
} benches[] = {
	{ "create and join", create_join, 1, 100, 1 },
	{ "mutex, free", use_mutex, 1, 100000, 1 },
	{ "mutex, used by two", use_mutex, 2, 20000, 2 },
	{ "spin lock, used by two", use_spin, 2, 20000, 2 },
	{ "barrier", use_barrier, 2, 2000, 1 },
	{ "condition, one way", use_condition, 2, 2000, 2 },
	{ "malloc and free", use_heap, 1, 100000, 1 },
};

static void *peer(void *arg)
{
	const struct bench *b = arg;

	pin(1);
	for (int i = 0; i < REPEATS; i++) {
		pthread_barrier_wait(&barrier);
		b->fn(b->n, 1);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void bench_run(const struct bench *b)
{
	double ns[REPEATS];
	pthread_t t;

	if (b->threads == 2 && pthread_create(&t, NULL, peer, (void *)(uintptr_t)b))
		exit(1);
	for (int i = 0; i < REPEATS; i++) {
		uint64_t begin;

		if (b->threads == 2)
			pthread_barrier_wait(&barrier);
		begin = now();
		b->fn(b->n, 0);
		if (b->threads == 2)
			pthread_barrier_wait(&barrier);
		ns[i] = (double)(now() - begin) / b->n / b->calls;
	}
	if (b->threads == 2)
		pthread_join(t, NULL);
	qsort(ns, REPEATS, sizeof(*ns), compare);
	printf("%s\t%.1f\n", b->name, ns[REPEATS / 2]);
}

int main(void)
{
	sched_getaffinity(0, sizeof(cpus), &cpus);
	pin(0);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++)
		bench_run(&benches[i]);
	return 0;
}
