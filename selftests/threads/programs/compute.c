// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * usage: compute sort|lu|nbody|hash|queue|fft|barnes [time]
 *
 * Textbook programs with THREADS threads that share their data. Each prints a checksum of its
 * result. No bit of the result depends on the order in which threads run. With "time", it also
 * prints nanoseconds, which do not include the start of the first threads.
 */
#include <math.h>
#include <stdbool.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

/* ---- merge sort: a new thread sorts one of two halves ---- */

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
	pthread_create(&t, NULL, sort_half, &l);	/* l is on this thread's stack */
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

/* ---- LU decomposition without pivots: rows in turn, a barrier after each column ---- */

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
			lu[i][j] = (double)(mix((uint64_t)i * LU_N + (uint64_t)j) % 1000) / 1000 +
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
			place[i][k] = (double)(mix(3 * (uint64_t)i + (uint64_t)k) % 10000) / 10000;
	threads_run(nbody_body);
	printf("nbody %016llx\n", (unsigned long long)sum(place, sizeof(place)));
}

/* ---- a hash table with a lock per bucket; threads free entries of other threads ---- */

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

/* ---- fast Fourier transform: butterflies in slices, a barrier after each stage ---- */

#define FFT_LOG	14
#define FFT_N	(1u << FFT_LOG)
#define PI	3.14159265358979323846

struct number {
	double re, im;
};

static struct number input[FFT_N], fft[FFT_N], twiddle[FFT_N / 2];

static struct number number_mul(struct number a, struct number b)
{
	return (struct number){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
}

static struct number root_of_unity(unsigned int k)
{
	double angle = -2 * PI * k / FFT_N;

	return (struct number){ cos(angle), sin(angle) };
}

static unsigned int bits_reverse(unsigned int i)
{
	unsigned int r = 0;

	for (int bit = 0; bit < FFT_LOG; bit++)
		r |= (i >> bit & 1) << (FFT_LOG - 1 - bit);
	return r;
}

static void fft_stage(unsigned int half, unsigned int from, unsigned int to)
{
	for (unsigned int k = from; k < to; k++) {
		struct number *a = &fft[k / half * half * 2 + k % half], *b = a + half;
		struct number t = number_mul(twiddle[k % half * (FFT_N / 2 / half)], *b);

		*b = (struct number){ a->re - t.re, a->im - t.im };
		*a = (struct number){ a->re + t.re, a->im + t.im };
	}
}

static void *fft_body(void *arg)
{
	unsigned int me = (unsigned int)(long)arg;
	unsigned int from = FFT_N / 2 * me / THREADS, to = FFT_N / 2 * (me + 1) / THREADS;

	for (unsigned int i = from; i < to; i++) {
		twiddle[i] = root_of_unity(i);
		fft[bits_reverse(2 * i)] = input[2 * i];
		fft[bits_reverse(2 * i + 1)] = input[2 * i + 1];
	}
	pthread_barrier_wait(&barrier);
	for (unsigned int half = 1; half < FFT_N; half *= 2) {
		fft_stage(half, from, to);
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

/* Check an output against the definition of the transform. */
static bool fft_is_right(unsigned int k)
{
	struct number s = { 0, 0 };

	for (unsigned int i = 0; i < FFT_N; i++) {
		struct number t = number_mul(input[i], root_of_unity(i * k % FFT_N));

		s.re += t.re;
		s.im += t.im;
	}
	return hypot(s.re - fft[k].re, s.im - fft[k].im) < 1e-9 * FFT_N;
}

static void fft_run(void)
{
	for (unsigned int i = 0; i < FFT_N; i++) {
		input[i].re = (double)(mix(i) % 2000) / 1000 - 1;
		input[i].im = (double)(mix(i + FFT_N) % 2000) / 1000 - 1;
	}
	threads_run(fft_body);
	for (unsigned int k = 0; k < FFT_N; k += 997)
		if (!fft_is_right(k))
			printf("output %u is wrong\n", k);
	printf("fft %016llx\n", (unsigned long long)sum(fft, sizeof(fft)));
}

/*
 * ---- Barnes-Hut: a tree of cells, which all threads build at once with a lock per cell ----
 *
 * A cell has up to 8 children, each a star or a cell. The tree depends on the places of the stars,
 * and not on the order of insertion. Masses are added in the order of the children.
 */

#define STARS		1200
#define STAR_STEPS	4
#define SOFT		0.0025
#define OPENING		0.5		/* below this ratio of width to distance a cell is one mass */

struct star {
	double at[3], speed[3], pull[3];
};

struct cell {
	pthread_mutex_t lock;
	double middle[3], half;
	double mass, center[3];
	struct child {
		struct cell *cell;
		struct star *star;
	} child[8];
};

static struct star stars[STARS];
static struct cell *tree;
static double reach;
static pthread_mutex_t reach_lock = PTHREAD_MUTEX_INITIALIZER;

static struct cell *cell_new(const double *middle, double half)
{
	struct cell *c = calloc(1, sizeof(*c));

	if (!c)
		exit(1);
	pthread_mutex_init(&c->lock, NULL);
	memcpy(c->middle, middle, sizeof(c->middle));
	c->half = half;
	return c;
}

static void cell_free(struct cell *c)
{
	for (int i = 0; c && i < 8; i++)
		cell_free(c->child[i].cell);
	if (c)
		pthread_mutex_destroy(&c->lock);
	free(c);
}

static struct child *child_of(struct cell *c, const struct star *s)
{
	int i = 0;

	for (int k = 0; k < 3; k++)
		i |= (s->at[k] >= c->middle[k]) << k;
	return &c->child[i];
}

/* The place already has a star: replace the star by a cell that contains it. */
static struct cell *child_divide(const struct cell *c, struct child *child)
{
	double middle[3];
	struct cell *n;

	for (int k = 0; k < 3; k++)
		middle[k] = c->middle[k] + (child->star->at[k] >= c->middle[k] ? 0.5 : -0.5) * c->half;
	n = cell_new(middle, c->half / 2);
	child_of(n, child->star)->star = child->star;
	child->star = NULL;
	return n;
}

static void star_insert(struct star *s)
{
	struct cell *c = tree;

	while (c) {
		struct cell *next = NULL;
		struct child *child;

		pthread_mutex_lock(&c->lock);
		child = child_of(c, s);
		if (child->star)
			child->cell = child_divide(c, child);
		if (child->cell)
			next = child->cell;
		else
			child->star = s;
		pthread_mutex_unlock(&c->lock);
		c = next;
	}
}

static void mass_add(struct cell *c, double mass, const double *at)
{
	c->mass += mass;
	for (int k = 0; k < 3; k++)
		c->center[k] += mass * at[k];
}

/* Add up the masses of a cell. With @deep, first add up the cells below it. */
static void cell_add(struct cell *c, bool deep)
{
	for (int i = 0; i < 8; i++) {
		struct child *child = &c->child[i];

		if (child->cell && deep)
			cell_add(child->cell, true);
		if (child->cell)
			mass_add(c, child->cell->mass, child->cell->center);
		if (child->star)
			mass_add(c, 1, child->star->at);
	}
	for (int k = 0; k < 3; k++)
		c->center[k] /= c->mass;
}

static void pull_add(double *pull, const struct star *s, double mass, const double *at)
{
	double d[3], r2 = SOFT;

	for (int k = 0; k < 3; k++) {
		d[k] = at[k] - s->at[k];
		r2 += d[k] * d[k];
	}
	for (int k = 0; k < 3; k++)
		pull[k] += mass * d[k] / (r2 * sqrt(r2));
}

static void star_pull(struct star *s, const struct cell *c)
{
	double r2 = 0;

	for (int k = 0; k < 3; k++)
		r2 += (c->center[k] - s->at[k]) * (c->center[k] - s->at[k]);
	if (2 * c->half < OPENING * sqrt(r2)) {
		pull_add(s->pull, s, c->mass, c->center);
		return;
	}
	for (int i = 0; i < 8; i++) {
		if (c->child[i].cell)
			star_pull(s, c->child[i].cell);
		else if (c->child[i].star && c->child[i].star != s)
			pull_add(s->pull, s, 1, c->child[i].star->at);
	}
}

/* Check that the sum over all other stars, one by one, is nearly the same. */
static void star_check(const struct star *s)
{
	double pull[3] = { 0, 0, 0 }, error = 0, size = 0;

	for (int j = 0; j < STARS; j++)
		if (&stars[j] != s)
			pull_add(pull, s, 1, stars[j].at);
	for (int k = 0; k < 3; k++) {
		error += (pull[k] - s->pull[k]) * (pull[k] - s->pull[k]);
		size += pull[k] * pull[k];
	}
	if (sqrt(error) > 0.05 * sqrt(size) + 1)
		printf("star %d is pulled wrongly\n", (int)(s - stars));
}

/* The first thread creates the root cell, which has room for all stars. */
static void tree_begin(int me)
{
	static const double origin[3];
	double far = 0;

	for (int i = me; i < STARS; i += THREADS)
		for (int k = 0; k < 3; k++)
			far = fmax(far, fabs(stars[i].at[k]));
	pthread_mutex_lock(&reach_lock);
	reach = fmax(reach, far);
	pthread_mutex_unlock(&reach_lock);
	pthread_barrier_wait(&barrier);
	if (!me)
		tree = cell_new(origin, reach * 1.01);
	pthread_barrier_wait(&barrier);
}

static void tree_add(int me)
{
	for (int i = me; i < 8; i += THREADS)
		if (tree->child[i].cell)
			cell_add(tree->child[i].cell, true);
	pthread_barrier_wait(&barrier);
	if (!me)
		cell_add(tree, false);
	pthread_barrier_wait(&barrier);
}

/* Threads free cells of other threads, and at last the first thread frees the root. */
static void tree_end(int me)
{
	for (int i = (me + 1) % THREADS; i < 8; i += THREADS) {
		cell_free(tree->child[i].cell);
		tree->child[i].cell = NULL;
	}
	pthread_barrier_wait(&barrier);
	if (!me) {
		cell_free(tree);
		reach = 0;
	}
	pthread_barrier_wait(&barrier);
}

static void *barnes_body(void *arg)
{
	int me = (int)(long)arg;

	for (int step = 0; step < STAR_STEPS; step++) {
		tree_begin(me);
		for (int i = me; i < STARS; i += THREADS)
			star_insert(&stars[i]);
		pthread_barrier_wait(&barrier);
		tree_add(me);
		for (int i = me; i < STARS; i += THREADS) {
			memset(stars[i].pull, 0, sizeof(stars[i].pull));
			star_pull(&stars[i], tree);
			if (i % 100 == step)
				star_check(&stars[i]);
		}
		pthread_barrier_wait(&barrier);
		tree_end(me);
		for (int i = me; i < STARS; i += THREADS)
			for (int k = 0; k < 3; k++) {
				stars[i].speed[k] += 1e-6 * stars[i].pull[k];
				stars[i].at[k] += stars[i].speed[k];
			}
		pthread_barrier_wait(&barrier);
	}
	return NULL;
}

static void barnes_run(void)
{
	for (int i = 0; i < STARS; i++)
		for (int k = 0; k < 3; k++)
			stars[i].at[k] = (double)(mix(3 * (uint64_t)i + (uint64_t)k + 99) >> 11) * 0x1p-52 - 1;
	threads_run(barnes_body);
	printf("barnes %016llx\n", (unsigned long long)sum(stars, sizeof(stars)));
}

static void *nothing(void *arg)
{
	return arg;
}

static void time_print(const char *name, void (*fn)(void))
{
	struct timespec from, to;

	threads_run(nothing);
	clock_gettime(CLOCK_MONOTONIC, &from);
	fn();
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("%s\t%.0f\n", name, 1e9 * (double)(to.tv_sec - from.tv_sec) +
				   (double)(to.tv_nsec - from.tv_nsec));
}

int main(int argc, char **argv)
{
	bool timed = argc == 3 && !strcmp(argv[2], "time");

	static const struct {
		const char *name;
		void (*fn)(void);
	} programs[] = {
		{ "sort", sort_run }, { "lu", lu_run }, { "nbody", nbody_run },
		{ "hash", hash_run }, { "queue", queue_run },
		{ "fft", fft_run }, { "barnes", barnes_run },
	};

	for (size_t i = 0; argc == 2 + timed && i < sizeof(programs) / sizeof(programs[0]); i++)
		if (!strcmp(argv[1], programs[i].name)) {
			if (timed)
				time_print(programs[i].name, programs[i].fn);
			else
				programs[i].fn();
			return 0;
		}
	return 2;
}
