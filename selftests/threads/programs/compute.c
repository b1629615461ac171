// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * usage: compute sort|lu|nbody|hash|queue
 *
 * Programs of the textbook, for THREADS threads that share their data. Prints a sum of the
 * result, which one thread's has to equal, and which does not depend on time.
 */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS	6

static pthread_barrier_t barrier;

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdu;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53u;
	return x ^ x >> 33;
}

static void threads_run(void *(*fn)(void *arg))
{
	pthread_t t[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, fn, (void *)i))
			exit(1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

static uint64_t sum(const void *p, size_t n)
{
	const unsigned char *c = p;
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ c[i]) * 1099511628211u;
	return h;
}

/* ---- merge sort: halves are threads of their own ---- */

#define SORT_N	300000

struct half {
	uint64_t *from, *room;
	size_t n;
	int depth;
};

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void *sort_half(void *arg)
{
	struct half *h = arg, l, r;
	size_t i = 0, j = 0, at = 0;
	pthread_t t;

	if (!h->depth) {
		qsort(h->from, h->n, sizeof(*h->from), compare);
		return NULL;
	}
	l = (struct half){ h->from, h->room, h->n / 2, h->depth - 1 };
	r = (struct half){ h->from + l.n, h->room + l.n, h->n - l.n, h->depth - 1 };
	pthread_create(&t, NULL, sort_half, &l);	/* on this thread's stack */
	sort_half(&r);
	pthread_join(t, NULL);
	while (i < l.n || j < r.n)
		if (j == r.n || (i < l.n && l.from[i] <= r.from[j]))
			h->room[at++] = l.from[i++];
		else
			h->room[at++] = r.from[j++];
	memcpy(h->from, h->room, h->n * sizeof(*h->from));
	return NULL;
}

static void sort_run(void)
{
	struct half all = { malloc(SORT_N * 8), malloc(SORT_N * 8), SORT_N, 3 };

	for (size_t i = 0; i < SORT_N; i++)
		all.from[i] = mix(i + 1);
	sort_half(&all);
	for (size_t i = 1; i < SORT_N; i++)
		if (all.from[i - 1] > all.from[i])
			puts("not sorted");
	printf("sort %016llx\n", (unsigned long long)sum(all.from, SORT_N * 8));
	free(all.from);
	free(all.room);
}

/* ---- LU without pivots, rows in turn, barriers between columns ---- */

#define LU_N	220

static double lu[LU_N][LU_N];

static void *lu_body(void *arg)
{
	for (int k = 0; k < LU_N; k++) {
		for (int i = k + 1; i < LU_N; i++) {
			if (i % THREADS != (long)arg)
				continue;
			lu[i][k] /= lu[k][k];
			for (int j = k + 1; j < LU_N; j++)
				lu[i][j] -= lu[i][k] * lu[k][j];
		}
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void lu_run(void)
{
	for (int i = 0; i < LU_N; i++)
		for (int j = 0; j < LU_N; j++)
			lu[i][j] = (double)(mix((uint64_t)(i * LU_N + j)) % 1000) / 1000 +
				   (i == j ? LU_N : 0);
	threads_run(lu_body);
	printf("lu %016llx\n", (unsigned long long)sum(lu, sizeof(lu)));
}

/* ---- n bodies ---- */

#define BODIES	300
#define STEPS	8

static double place[BODIES][3], speed[BODIES][3];

static void body_pull(int i)
{
	for (int j = 0; j < BODIES; j++) {
		double d[3], r2 = 0.01;

		for (int k = 0; k < 3; k++) {
			d[k] = place[j][k] - place[i][k];
			r2 += d[k] * d[k];
		}
		for (int k = 0; k < 3; k++)
			speed[i][k] += 0.001 * d[k] / (r2 * sqrt(r2));
	}
}

static void *nbody_body(void *arg)
{
	for (int s = 0; s < STEPS; s++) {
		for (int i = (int)(long)arg; i < BODIES; i += THREADS)
			body_pull(i);
		pthread_barrier_wait(&barrier);
		for (int i = (int)(long)arg; i < BODIES; i += THREADS)
			for (int k = 0; k < 3; k++)
				place[i][k] += speed[i][k];
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void nbody_run(void)
{
	for (int i = 0; i < BODIES; i++)
		for (int k = 0; k < 3; k++)
			place[i][k] = (double)(mix((uint64_t)(3 * i + k)) % 10000) / 10000;
	threads_run(nbody_body);
	printf("nbody %016llx\n", (unsigned long long)sum(place, sizeof(place)));
}

/* ---- a hash table with a lock per bucket; threads free what others have allocated ---- */

#define BUCKETS	512
#define INSERTS	8000

struct entry {
	struct entry *next;
	uint64_t key;
	char text[40];
};

static struct {
	pthread_rwlock_t lock;
	struct entry *first;
} table[BUCKETS];
static _Atomic uint64_t found;

static void *hash_body(void *arg)
{
	for (uint64_t i = 0; i < INSERTS; i++) {
		uint64_t key = mix(i * THREADS + (uint64_t)(long)arg);
		struct entry *e = malloc(sizeof(*e));

		e->key = key;
		snprintf(e->text, sizeof(e->text), "%016llx", (unsigned long long)key);
		pthread_rwlock_wrlock(&table[key % BUCKETS].lock);
		e->next = table[key % BUCKETS].first;
		table[key % BUCKETS].first = e;
		pthread_rwlock_unlock(&table[key % BUCKETS].lock);
	}
	pthread_barrier_wait(&barrier);
	for (int b = (int)(long)arg; b < BUCKETS; b += THREADS) {
		struct entry *e;

		pthread_rwlock_rdlock(&table[b].lock);
		while ((e = table[b].first)) {
			found += mix(e->key + strtoull(e->text, NULL, 16));
			table[b].first = e->next;
			free(e);
		}
		pthread_rwlock_unlock(&table[b].lock);
	}
	return NULL;
}

static void hash_run(void)
{
	for (int i = 0; i < BUCKETS; i++)
		pthread_rwlock_init(&table[i].lock, NULL);
	threads_run(hash_body);
	printf("hash %016llx\n", (unsigned long long)found);
}

/* ---- producers and consumers ---- */

#define ITEMS	4000
#define SLOTS	16

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER, not_empty = PTHREAD_COND_INITIALIZER;
static uint64_t *queue[SLOTS], taken;
static unsigned int head, tail, consumed;

static void queue_put(uint64_t *item)
{
	pthread_mutex_lock(&queue_lock);
	while (head - tail == SLOTS)
		pthread_cond_wait(&not_full, &queue_lock);
	queue[head++ % SLOTS] = item;
	pthread_cond_signal(&not_empty);
	pthread_mutex_unlock(&queue_lock);
}

static int queue_take(void)
{
	uint64_t *item = NULL;

	pthread_mutex_lock(&queue_lock);
	while (head == tail && consumed < ITEMS * THREADS / 2)
		pthread_cond_wait(&not_empty, &queue_lock);
	if (head != tail) {
		item = queue[tail++ % SLOTS];
		taken += mix(*item);
		if (++consumed == ITEMS * THREADS / 2)
			pthread_cond_broadcast(&not_empty);
		pthread_cond_signal(&not_full);
	}
	pthread_mutex_unlock(&queue_lock);
	free(item);
	return item != NULL;
}

static void *queue_body(void *arg)
{
	if ((long)arg % 2) {
		while (queue_take())
			;
		return NULL;
	}
	for (uint64_t i = 0; i < ITEMS; i++) {
		uint64_t *item = malloc(64 + i);

		*item = i * THREADS + (uint64_t)(long)arg;
		queue_put(item);
	}
	return NULL;
}

static void queue_run(void)
{
	threads_run(queue_body);
	printf("queue %016llx\n", (unsigned long long)taken);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} programs[] = {
		{ "sort", sort_run }, { "lu", lu_run }, { "nbody", nbody_run },
		{ "hash", hash_run }, { "queue", queue_run },
	};

	for (size_t i = 0; argc == 2 && i < sizeof(programs) / sizeof(programs[0]); i++)
		if (!strcmp(argv[1], programs[i].name)) {
			programs[i].fn();
			return 0;
		}
	return 2;
}
