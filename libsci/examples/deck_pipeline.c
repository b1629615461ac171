// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * A DECK pipeline: a picture passes in bands through four processes.
 *
 *	cut -> smooth -> edges -> count
 *
 * The first process cuts the picture into bands. The two middle processes filter the bands,
 * several bands at a time, with THREADS threads that retrieve from one mail box. The last
 * process counts the pixels of each brightness. It returns a credit for each band, so that
 * no more than WINDOW bands are in flight. At the end rank 0 computes the counts alone, and
 * compares the results. More processes are more pipelines, side by side: their number is a
 * multiple of four.
 *
 * usage: sci run -n 4 --nodes 4 deck_pipeline [WIDTH HEIGHT]
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <deck.h>

#define BAND	32		/* rows of a band */
#define HALO	2		/* rows of each neighbour in a band's message, for two filters */
#define THREADS	3
#define WINDOW	16
#define LEVELS	256

static unsigned int width = 2048, height = 1536;

static void ok(int ret, const char *what)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "deck_pipeline: %s: %s\n", what, strerror(-ret));
	exit(1);
}

#define OK(call) ok(call, #call)

static int pipelines(void)
{
	return deck_size() / 4;
}

/* Write the name of this pipeline's mail box into @full. */
static const char *box_name(char full[32], const char *name)
{
	snprintf(full, 32, "%s %d", name, deck_rank() % pipelines());
	return full;
}

static deck_mbox_t *box_find(const char *name)
{
	deck_mbox_t *box;
	char full[32];

	OK(deck_mbox_find(&box, box_name(full, name), 10000));
	return box;
}

static deck_mbox_t *box_create(const char *name)
{
	deck_mbox_t *box;
	char full[32];

	OK(deck_mbox_create(&box, box_name(full, name)));
	return box;
}

/* ---- the picture ---- */

static uint8_t pixel(unsigned int x, unsigned int y)
{
	uint32_t h = (x / 37 * 2654435761u) ^ (y / 29 * 2246822519u);

	return (uint8_t)(h >> 24 ^ (x * y >> 9));
}

/*
 * Rows of the picture around a band. Beyond the edge of the picture, the row at the edge is
 * repeated.
 */
struct rows {
	int first;		/* number of the first row in the picture */
	unsigned int n;
	uint8_t *p;
};

static unsigned int row_clamp(int y)
{
	return y < 0 ? 0 : y >= (int)height ? height - 1 : (unsigned int)y;
}

static void draw(struct rows *r)
{
	for (unsigned int i = 0; i < r->n; i++)
		for (unsigned int x = 0; x < width; x++)
			r->p[i * width + x] = pixel(x, row_clamp(r->first + (int)i));
}

static unsigned int at(const struct rows *r, unsigned int i, int x)
{
	x = x < 0 ? 0 : x >= (int)width ? (int)width - 1 : x;
	return r->p[i * width + (unsigned int)x];
}

static uint8_t smooth_pixel(const struct rows *r, unsigned int i, int x)
{
	unsigned int sum = 0;

	for (unsigned int k = i - 1; k <= i + 1; k++)
		sum += at(r, k, x - 1) + at(r, k, x) + at(r, k, x + 1);
	return (uint8_t)(sum / 9);
}

static uint8_t edge_pixel(const struct rows *r, unsigned int i, int x)
{
	int dx = (int)at(r, i, x + 1) - (int)at(r, i, x - 1);
	int dy = (int)at(r, i + 1, x) - (int)at(r, i - 1, x);
	int sum = abs(dx) + abs(dy);

	return (uint8_t)(sum > 255 ? 255 : sum);
}

typedef uint8_t (*filter_fn)(const struct rows *r, unsigned int i, int x);

/* Filter the rows. @out has one row less than @in on each side. */
static void rows_filter(const struct rows *in, struct rows *out, filter_fn fn)
{
	out->first = in->first + 1;
	out->n = in->n - 2;
	for (unsigned int i = 0; i < out->n; i++)
		for (unsigned int x = 0; x < width; x++)
			out->p[i * width + x] = fn(in, i + 1, (int)x);
}

static void count(const struct rows *r, unsigned long *levels)
{
	for (size_t i = 0; i < (size_t)r->n * width; i++)
		levels[r->p[i]]++;
}

/* ---- bands as messages ---- */

static size_t band_bytes(void)
{
	return 2 * sizeof(int) + (size_t)(BAND + 2 * HALO) * width;
}

static void band_put(deck_msg_t *m, const struct rows *r)
{
	deck_msg_clear(m);
	OK(deck_pack_int(m, &r->first, 1));
	OK(deck_pack_uint(m, &r->n, 1));
	OK(deck_pack_uchar(m, r->p, (size_t)r->n * width));
}

static void band_get(deck_msg_t *m, struct rows *r)
{
	OK(deck_unpack_int(m, &r->first, 1));
	OK(deck_unpack_uint(m, &r->n, 1));
	OK(deck_unpack_uchar(m, r->p, (size_t)r->n * width));
}

static struct rows rows_new(void)
{
	struct rows r = { .p = malloc((size_t)(BAND + 2 * HALO) * width) };

	if (!r.p)
		ok(-1, "malloc");
	return r;
}

static unsigned int bands(void)
{
	return (height + BAND - 1) / BAND;
}

static void cut_band(struct rows *r, unsigned int band)
{
	unsigned int rows = height - band * BAND;

	r->first = (int)(band * BAND) - HALO;
	r->n = (rows < BAND ? rows : BAND) + 2 * HALO;
	draw(r);
}

/* ---- stages ---- */

/* The argument of a filter's threads. A message without bytes ends a thread. */
struct stage {
	deck_mbox_t *in, *out;
	filter_fn fn;
};

static void *filter_bands(void *arg)
{
	struct stage *s = arg;
	struct rows in = rows_new(), out = rows_new();
	deck_msg_t *m;

	OK(deck_msg_create(&m, band_bytes()));
	for (;;) {
		OK(deck_mbox_retrv(s->in, m));
		if (!deck_msg_length(m))
			break;
		band_get(m, &in);
		rows_filter(&in, &out, s->fn);
		band_put(m, &out);
		OK(deck_mbox_post(s->out, m));
	}
	OK(deck_msg_destroy(m));
	free(in.p);
	free(out.p);
	return NULL;
}

/*
 * Run a stage of the pipeline. Each of its threads ends at a message without bytes. Then the next
 * stage gets @ends such messages.
 */
static void run_filter(const char *name, const char *next, filter_fn fn, unsigned int ends)
{
	struct stage s = { .in = box_create(name), .out = box_find(next), .fn = fn };
	deck_thread_t *t[THREADS];
	deck_msg_t *end;

	for (unsigned int i = 0; i < THREADS; i++)
		OK(deck_thread_create(&t[i], filter_bands, &s));
	for (unsigned int i = 0; i < THREADS; i++)
		OK(deck_thread_join(t[i], NULL));
	OK(deck_msg_create(&end, 0));
	for (unsigned int i = 0; i < ends; i++)
		OK(deck_mbox_post(s.out, end));
	OK(deck_msg_destroy(end));
	OK(deck_barrier());
	OK(deck_mbox_destroy(s.in));
	OK(deck_mbox_destroy(s.out));
}

struct credits {
	deck_mbox_t *box;
	deck_sem_t *sem;
};

static void *take_credits(void *arg)
{
	struct credits *c = arg;
	deck_msg_t *m;

	OK(deck_msg_create(&m, 0));
	for (unsigned int i = 0; i < bands(); i++) {
		OK(deck_mbox_retrv(c->box, m));
		OK(deck_sem_post(c->sem));
	}
	OK(deck_msg_destroy(m));
	return NULL;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Compare @levels with the result of one thread in one process. */
static int check(const unsigned long *levels, double seconds)
{
	unsigned long alone[LEVELS] = { 0 };
	struct rows a = rows_new(), b = rows_new();
	double begin = now();

	for (unsigned int i = 0; i < bands(); i++) {
		cut_band(&a, i);
		rows_filter(&a, &b, smooth_pixel);
		rows_filter(&b, &a, edge_pixel);
		count(&a, alone);
	}
	free(a.p);
	free(b.p);
	printf("%u x %u pixels in %u bands: %.3f s in four processes, %.3f s in one\n",
	       width, height, bands(), seconds, now() - begin);
	if (memcmp(levels, alone, sizeof(alone))) {
		puts("the results differ");
		return 1;
	}
	puts("the results are the same");
	return 0;
}

static int run_cut(void)
{
	struct credits c = { .box = box_create("credits") };
	deck_mbox_t *out = box_find("smooth"), *result = box_create("result");
	unsigned long levels[LEVELS];
	struct rows r = rows_new();
	deck_thread_t *t;
	deck_msg_t *m;
	double begin = now();

	OK(deck_sem_create(&c.sem, WINDOW));
	OK(deck_thread_create(&t, take_credits, &c));
	OK(deck_msg_create(&m, band_bytes()));
	for (unsigned int i = 0; i < bands(); i++) {
		OK(deck_sem_wait(c.sem));
		cut_band(&r, i);
		band_put(m, &r);
		OK(deck_mbox_post(out, m));
	}
	deck_msg_clear(m);
	for (unsigned int i = 0; i < THREADS; i++)
		OK(deck_mbox_post(out, m));
	OK(deck_mbox_retrv(result, m));
	OK(deck_unpack_ulong(m, levels, LEVELS));
	begin = now() - begin;
	OK(deck_thread_join(t, NULL));
	OK(deck_barrier());
	free(r.p);
	OK(deck_msg_destroy(m));
	OK(deck_sem_destroy(c.sem));
	OK(deck_mbox_destroy(c.box));
	OK(deck_mbox_destroy(result));
	OK(deck_mbox_destroy(out));
	return check(levels, begin);
}

static void run_count(void)
{
	deck_mbox_t *in = box_create("count");
	deck_mbox_t *credits = box_find("credits"), *result = box_find("result");
	unsigned long levels[LEVELS] = { 0 };
	struct rows r = rows_new();
	deck_msg_t *m, *credit;

	OK(deck_msg_create(&m, band_bytes()));
	OK(deck_msg_create(&credit, 0));
	for (;;) {
		OK(deck_mbox_retrv(in, m));
		if (!deck_msg_length(m))
			break;
		band_get(m, &r);
		count(&r, levels);
		OK(deck_mbox_post(credits, credit));
	}
	deck_msg_clear(m);
	OK(deck_pack_ulong(m, levels, LEVELS));
	OK(deck_mbox_post(result, m));
	OK(deck_barrier());
	free(r.p);
	OK(deck_msg_destroy(m));
	OK(deck_msg_destroy(credit));
	OK(deck_mbox_destroy(in));
	OK(deck_mbox_destroy(credits));
	OK(deck_mbox_destroy(result));
}

int main(int argc, char **argv)
{
	int ret = 0;

	if (argc == 3) {
		width = (unsigned int)atoi(argv[1]);
		height = (unsigned int)atoi(argv[2]);
	}
	if ((argc != 1 && argc != 3) || width - 1 > 65535 || height - 1 > 65535) {
		fputs("usage: sci run -n 4 --nodes 4 deck_pipeline [WIDTH HEIGHT]\n", stderr);
		return 2;
	}
	OK(deck_init(&argc, &argv));
	if (deck_size() % 4) {
		fputs("deck_pipeline: start four processes: sci run -n 4 deck_pipeline\n",
		      stderr);
		return 2;
	}
	/* each stage of a pipeline is on another node, if there are four */
	switch (deck_rank() / pipelines()) {
	case 0:
		ret = run_cut();
		break;
	case 1:
		run_filter("smooth", "edges", smooth_pixel, THREADS);
		break;
	case 2:
		run_filter("edges", "count", edge_pixel, 1);
		break;
	case 3:
		run_count();
		break;
	}
	OK(deck_done());
	return ret;
}
