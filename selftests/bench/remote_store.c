// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Measure remote stores: latency, and bandwidth compared with local memcpy().
 *
 * usage: remote_store [--latency | --bandwidth] [--tsv | --json] [--data DIR]
 *                     [--max BYTES] [--rounds N]
 *
 * --data also writes DIR/latency.tsv and DIR/bandwidth.tsv.
 *
 * There are two processes, node 4 and node 8, each on a CPU of its own if there are two.
 * Node 4 measures.
 *
 * Latency: node 4 writes a line of 64 bytes into a segment of node 8 by plain stores
 * through the map, the last 8 bytes last.  Node 8 polls its own memory for these bytes,
 * checks the line, and answers in the same way.  One way is half a round trip.
 *
 * Bandwidth: node 4 writes into a segment of node 8, which sleeps, in three ways:
 * SCIMemWrite(), SCIMemCpy(), and memcpy() through the map.  The baseline is memcpy() into
 * a segment of node 4 itself, which is made by the same calls and of the same size, so its
 * memory is of the same kind.  Consecutive blocks fill a window of max(block, 16 MiB) and
 * then start again; the source is a private buffer of one block.  Windows and source are
 * touched before.  A sample is the next max(block, 1 MiB) of the window.  A round takes
 * one sample of a way and one of the baseline, in alternating order.  GB/s (10^9) are
 * medians over rounds.  A ratio is the median of the ratios of these pairs, so that load
 * and frequency affect both values.  The physical pages of a segment change results by
 * 10 % and more: the rounds are spread over several pairs of segments, allocated in both
 * orders.  memcpy() through the map is the code of the baseline: the distance of its ratio
 * from 1 is the error of the measurement.
 */
#define _GNU_SOURCE

#include <getopt.h>

#include "bench.h"

#define SEGMENT_PING	1u		/* id on both nodes */
#define SEGMENT_WINDOW	2u		/* id on node 8 */
#define SEGMENT_LOCAL	3u		/* id on node 4 */

#define LINE_WORDS	8		/* 64 bytes */
#define WARM_UP		20000u
#define TRIPS		400000u
#define TRIPS_SHARED	20000u		/* on one CPU a trip costs a switch */
#define TRIPS_NS	5000000000ull	/* time limit for a busy machine */
#define PLACEMENTS_NS	15000000000ull

#define WINDOW		((size_t)16 << 20)
#define SAMPLE		((size_t)1 << 20)	/* least number of bytes */
#define MIN_BLOCK	((size_t)64)
#define MAX_BLOCK	((size_t)64 << 20)
#define MAX_ROUNDS	1000
#define MAX_SIZES	27		/* 64 B to 4 GiB */
#define PLACEMENTS	10u		/* pairs of segments */

enum format { TEXT, TSV, JSON };

static struct {
	bool latency, bandwidth;
	enum format format;
	const char *dir;		/* argument of --data */
	size_t max;
	unsigned int rounds;
	bool pinned;
} opt = { .latency = true, .bandwidth = true, .max = MAX_BLOCK, .rounds = 60 };

/* ---- latency ---- */

/* Store a line. Its last word tells the other side that the line is complete. */
static void put_line(volatile uint64_t *line, uint64_t n)
{
	int i;

	for (i = 0; i < LINE_WORDS - 1; i++)
		line[i] = n;
	sci_store_release(&line[LINE_WORDS - 1], n);
}

static bool wait_line(const volatile uint64_t *line, uint64_t n)
{
	bool whole = true;
	int i;

	while (sci_load_acquire(&line[LINE_WORDS - 1]) != n)
		bench_relax(opt.pinned);
	for (i = 0; i < LINE_WORDS - 1; i++)
		whole &= line[i] == n;
	return whole;
}

static void answer(void *arg)
{
	sci_desc_t sd;
	sci_map_t map;
	volatile uint64_t *mine, *theirs;
	uint64_t n;

	(void)arg;
	opt.pinned = bench_pin(1);
	sd = bench_open(BENCH_PEER);
	mine = bench_export(sd, SEGMENT_PING, 4096);
	theirs = bench_map(bench_connect(sd, BENCH_NODE, SEGMENT_PING), &map);
	for (n = 1;; n++) {
		if (!wait_line(mine, n))
			bench_die("node 8: a torn line");
		put_line(theirs, n);
	}
}

/* Measure one-way times in ns; the clock is read once per round trip. */
static unsigned int ping_pong(volatile uint64_t *mine,
			      volatile uint64_t *theirs, double *ns)
{
	unsigned int trips = opt.pinned ? TRIPS : TRIPS_SHARED;
	unsigned int warm_up = WARM_UP / (TRIPS / trips);
	uint64_t end = bench_ns() + TRIPS_NS, before = 0, now = 0;
	unsigned int n, count = 0;

	for (n = 1; count < trips && (now < end || !count); n++) {
		put_line(theirs, n);
		if (!wait_line(mine, n))
			bench_die("node 4: a torn line");
		now = bench_ns();
		if (n > warm_up)
			ns[count++] = (double)(now - before) / 2;
		before = now;
	}
	return count;
}

static double clock_cost(void)
{
	uint64_t begin = bench_ns();
	unsigned int i;

	for (i = 0; i < 100000; i++)
		bench_ns();
	return (double)(bench_ns() - begin) / 100000;
}

#define HISTOGRAM_ROWS	24
#define HISTOGRAM_COLS	50

/* Print times up to p99.5 or four medians. A bar's width is its share. */
static void print_histogram(const double *ns, unsigned int n)
{
	double low = ns[0], high = bench_quantile(ns, n, 0.995);
	double most = 4 * bench_quantile(ns, n, 0.5);
	double step = 5;
	unsigned int rows[HISTOGRAM_ROWS] = { 0 };
	unsigned int i, top = 1, last = 0;

	high = high > most ? most : high;
	while ((high - low) / step > HISTOGRAM_ROWS - 1)
		step *= 2;
	low -= (double)((uint64_t)low % (uint64_t)step);
	for (i = 0; i < n && ns[i] < low + step * HISTOGRAM_ROWS; i++)
		rows[(unsigned int)((ns[i] - low) / step)]++;
	for (i = 0; i < HISTOGRAM_ROWS; i++) {
		top = rows[i] > top ? rows[i] : top;
		last = rows[i] && low + step * i <= high ? i : last;
	}
	for (i = 0; i <= last; i++)
		printf("  %6.0f ns %6.2f %% |%.*s\n", low + step * i,
		       100.0 * rows[i] / n,
		       (int)((rows[i] * HISTOGRAM_COLS + top - 1) / top),
		       "##################################################");
	printf("  slower    %6.2f %%\n",
	       100.0 * bench_share_above(ns, n, low + step * (last + 1)));
}

/* Open a file of --data for @name; NULL without --data. */
static FILE *open_data(const char *name)
{
	char path[4096];
	FILE *f;

	if (!opt.dir)
		return NULL;
	snprintf(path, sizeof(path), "%s/%s.tsv", opt.dir, name);
	f = fopen(path, "we");
	if (!f)
		bench_die("cannot write %s", path);
	return f;
}

static void latency_text(const double *ns, unsigned int n)
{
	printf("remote store latency, 64-byte lines, one way = round trip / 2\n");
	printf("%u round trips, %s; one clock read per trip (%.0f ns) is included\n",
	       n, opt.pinned ? "one CPU per node" : "both nodes on one CPU",
	       clock_cost());
	printf("  min %.0f ns, median %.0f ns, p99 %.0f ns, p99.9 %.0f ns\n",
	       ns[0], bench_quantile(ns, n, 0.5), bench_quantile(ns, n, 0.99),
	       bench_quantile(ns, n, 0.999));
	print_histogram(ns, n);
}

static void latency_tsv(FILE *out, const double *ns, unsigned int n)
{
	unsigned int i, j;

	fprintf(out, "# min %.1f median %.1f p99 %.1f\n# one-way ns\tcount\n",
		ns[0], bench_quantile(ns, n, 0.5), bench_quantile(ns, n, 0.99));
	for (i = 0; i < n; i = j) {
		for (j = i + 1; j < n && ns[j] == ns[i]; j++)
			;
		fprintf(out, "%.1f\t%u\n", ns[i], j - i);
	}
}

static void latency_json(const double *ns, unsigned int n)
{
	printf("\"latency_ns\": {\"trips\": %u, \"pinned\": %s, ", n,
	       opt.pinned ? "true" : "false");
	printf("\"min\": %.1f, \"median\": %.1f, \"p99\": %.1f, \"clock\": %.1f}",
	       ns[0], bench_quantile(ns, n, 0.5), bench_quantile(ns, n, 0.99),
	       clock_cost());
}

static void print_latency(const double *ns, unsigned int n)
{
	FILE *data = open_data("latency");

	if (opt.format == TEXT)
		latency_text(ns, n);
	else if (opt.format == TSV)
		latency_tsv(stdout, ns, n);
	else
		latency_json(ns, n);
	if (!data)
		return;
	latency_tsv(data, ns, n);
	fclose(data);
}

static void latency(void)
{
	pid_t peer = bench_spawn(answer, NULL);
	double *ns = calloc(TRIPS, sizeof(*ns));
	volatile uint64_t *mine, *theirs;
	sci_desc_t sd;
	sci_map_t map;
	unsigned int n;

	if (!ns)
		bench_die("out of memory");
	opt.pinned = bench_pin(0);
	sd = bench_open(BENCH_NODE);
	mine = bench_export(sd, SEGMENT_PING, 4096);
	theirs = bench_map(bench_connect(sd, BENCH_PEER, SEGMENT_PING), &map);
	n = ping_pong(mine, theirs, ns);
	bench_stop(peer);
	bench_sort(ns, n);
	print_latency(ns, n);
	SCITerminate();
	free(ns);
}

/* ---- bandwidth ---- */

struct target {
	sci_map_t map;			/* only for the remote segment */
	char *base;
	char *src;
	size_t next;			/* offset of the next sample in the window */
};

static void by_memcpy(struct target *t, size_t off, size_t len)
{
	memcpy(t->base + off, t->src, len);
}

static void by_memwrite(struct target *t, size_t off, size_t len)
{
	sci_error_t err;

	SCIMemWrite(t->src, t->base + off, len, 0, &err);
	if (err != SCI_ERR_OK)
		bench_die("SCIMemWrite: %s", SCIGetErrorString(err));
}

static void by_scimemcpy(struct target *t, size_t off, size_t len)
{
	sci_error_t err;

	SCIMemCpy(NULL, t->src, t->map, off, len, 0, &err);
	if (err != SCI_ERR_OK)
		bench_die("SCIMemCpy: %s", SCIGetErrorString(err));
}

static const struct way {
	const char *name;
	void (*store)(struct target *t, size_t off, size_t len);
} ways[] = {
	{ "SCIMemWrite", by_memwrite },
	{ "SCIMemCpy", by_scimemcpy },
	{ "map+memcpy", by_memcpy },
};

#define N_WAYS	(sizeof(ways) / sizeof(ways[0]))

/* All samples of one block size. */
static struct samples {
	double base[N_WAYS * MAX_ROUNDS];
	double gbs[N_WAYS][MAX_ROUNDS], ratio[N_WAYS][MAX_ROUNDS];
	unsigned int rounds[N_WAYS], bases;
} samples[MAX_SIZES];

struct result {
	size_t block;
	double local;			/* GB/s */
	double gbs[N_WAYS], ratio[N_WAYS];
};

/*
 * Return GB/s of the next blocks of the window. @store is opaque: otherwise the
 * compiler would make a faster loop for memcpy(), the only way that it knows.
 */
static double sample(void (*store)(struct target *t, size_t off, size_t len),
		     struct target *t, size_t block)
{
	size_t len = block > SAMPLE ? block : SAMPLE;
	void (*volatile opaque)(struct target *, size_t, size_t) = store;
	size_t window = block > WINDOW ? block : WINDOW;
	uint64_t begin;
	size_t end;

	store = opaque;
	if (t->next + len > window)
		t->next = 0;
	end = t->next + len;
	begin = bench_ns();
	for (; t->next < end; t->next += block)
		store(t, t->next, block);
	return (double)len / (double)(bench_ns() - begin);
}

/* Each window is only used by its own way between two rounds. */
static void one_round(struct target *remote, struct target *local,
		      size_t block, unsigned int way, struct samples *s)
{
	unsigned int r = s->rounds[way]++;
	double a, b;

	if (r % 2) {
		a = sample(ways[way].store, remote, block);
		b = sample(by_memcpy, local, block);
	} else {
		b = sample(by_memcpy, local, block);
		a = sample(ways[way].store, remote, block);
	}
	s->gbs[way][r] = a;
	s->base[s->bases++] = b;
	s->ratio[way][r] = a / b;
}

static void evaluate(struct samples *s, size_t block, struct result *out)
{
	size_t w;

	out->block = block;
	out->local = bench_median(s->base, s->bases);
	for (w = 0; w < N_WAYS; w++) {
		out->gbs[w] = bench_median(s->gbs[w], s->rounds[w]);
		out->ratio[w] = bench_median(s->ratio[w], s->rounds[w]);
	}
}

static void head_text(void)
{
	size_t w;

	printf("remote store bandwidth, GB/s (10^9 bytes/s), and its ratio to memcpy() into\n");
	printf("local memory of the same kind; medians of %u pairs of samples,\n",
	       samples[0].rounds[0]);
	printf("window of max(block, 16 MiB), %s; a call's checks take it the same\n"
	       "time at each size\n",
	       opt.pinned ? "pinned" : "not pinned");
	printf("%8s %8s", "block", "memcpy");
	for (w = 0; w < N_WAYS; w++)
		printf("  %11s ratio", ways[w].name);
	putchar('\n');
}

static void head_tsv(FILE *out)
{
	size_t w;

	fprintf(out, "# block\tmemcpy");
	for (w = 0; w < N_WAYS; w++)
		fprintf(out, "\t%s\tratio", ways[w].name);
	fputc('\n', out);
}

static void row_text(const struct result *r)
{
	char size[24];
	size_t w;

	printf("%8s %8.2f", bench_size(r->block, size), r->local);
	for (w = 0; w < N_WAYS; w++)
		printf("  %11.2f %5.3f", r->gbs[w], r->ratio[w]);
	putchar('\n');
	fflush(stdout);
}

static void row_tsv(FILE *out, const struct result *r)
{
	size_t w;

	fprintf(out, "%zu\t%.4f", r->block, r->local);
	for (w = 0; w < N_WAYS; w++)
		fprintf(out, "\t%.4f\t%.4f", r->gbs[w], r->ratio[w]);
	fputc('\n', out);
}

static void row_json(const struct result *r)
{
	size_t w;

	printf("%s\n  {\"block\": %zu, \"memcpy\": %.4f",
	       r->block == MIN_BLOCK ? "" : ",", r->block, r->local);
	for (w = 0; w < N_WAYS; w++)
		printf(", \"%s\": %.4f, \"%s ratio\": %.4f", ways[w].name,
		       r->gbs[w], ways[w].name, r->ratio[w]);
	putchar('}');
}

static void print_head(FILE *data)
{
	if (opt.format == TEXT)
		head_text();
	else if (opt.format == TSV)
		head_tsv(stdout);
	else
		printf("\"bandwidth\": [");
	if (data)
		head_tsv(data);
}

static void print_result(FILE *data, const struct result *r)
{
	if (opt.format == TEXT)
		row_text(r);
	else if (opt.format == TSV)
		row_tsv(stdout, r);
	else
		row_json(r);
	if (data)
		row_tsv(data, r);
}

#define CLAIM	0.95

/* Return how many ns a call takes longer than memcpy(). */
static double more_ns(const struct result *r, unsigned int way)
{
	return (double)r->block / r->gbs[way] * (1 - r->ratio[way]);
}

/*
 * Print the sizes at which a way is slower than memcpy(), and by how much. Each
 * call checks its arguments; with short blocks this shows.
 */
static void print_claim(unsigned int way, const struct result *r, size_t n)
{
	const char *sep = ", except at";
	char size[24];
	size_t i;

	printf("claim: %s >= %.2f x memcpy", ways[way].name, CLAIM);
	for (i = 0; i < n; i++) {
		if (r[i].ratio[way] >= CLAIM)
			continue;
		printf("%s %s: %.2f (%+.1f ns a call)", sep,
		       bench_size(r[i].block, size), r[i].ratio[way],
		       more_ns(&r[i], way));
		sep = ",";
	}
	putchar('\n');
}

static void print_tail(FILE *data, const struct result *r, size_t n)
{
	unsigned int w;

	if (opt.format == JSON)
		printf("\n]");
	for (w = 0; opt.format == TEXT && w < N_WAYS; w++)
		print_claim(w, r, n);
	if (data)
		fclose(data);
}

static int go[2];			/* pipe: when to allocate the window */

/*
 * Export the window and sleep. Node 8 allocates on node 4's CPU, so that the pages
 * come from the same place as those of the baseline.
 */
static void hold(void *arg)
{
	sci_desc_t sd;
	char c;

	(void)arg;
	bench_pin(0);
	sd = bench_open(BENCH_PEER);
	if (read(go[0], &c, 1) != 1)
		bench_die("node 8: nobody says go");
	bench_export(sd, SEGMENT_WINDOW, opt.max > WINDOW ? opt.max : WINDOW);
	for (;;)
		pause();
}

static void print_all(void)
{
	FILE *data = open_data("bandwidth");
	static struct result res[MAX_SIZES];
	size_t i;

	print_head(data);
	for (i = 0; MIN_BLOCK << i <= opt.max; i++) {
		evaluate(&samples[i], MIN_BLOCK << i, &res[i]);
		print_result(data, &res[i]);
	}
	print_tail(data, res, i);
}

static void open_targets(struct target *remote, struct target *local,
			 bool local_first)
{
	size_t window = opt.max > WINDOW ? opt.max : WINDOW;
	sci_desc_t sd = bench_open(BENCH_NODE);
	sci_remote_segment_t r;

	if (local_first)
		local->base = bench_export(sd, SEGMENT_LOCAL, window);
	if (write(go[1], "", 1) != 1)
		bench_die("node 8 is gone");
	r = bench_connect(sd, BENCH_PEER, SEGMENT_WINDOW);
	if (!local_first)
		local->base = bench_export(sd, SEGMENT_LOCAL, window);
	remote->base = (char *)bench_map(r, &remote->map);
	memset(remote->base, 0, window);
}

static void one_placement(char *src, unsigned int number, unsigned int rounds)
{
	struct target remote = { .src = src }, local = { .src = src };
	pid_t peer = bench_spawn(hold, NULL);
	unsigned int i, w, r;

	opt.pinned = bench_pin(0);
	open_targets(&remote, &local, number % 2);
	for (i = 0; MIN_BLOCK << i <= opt.max; i++)
		for (w = 0; w < N_WAYS; w++)
			for (r = 0; r < rounds; r++)
				one_round(&remote, &local, MIN_BLOCK << i, w,
					  &samples[i]);
	bench_stop(peer);
	SCITerminate();
}

static void bandwidth(void)
{
	unsigned int n = opt.rounds < PLACEMENTS ? opt.rounds : PLACEMENTS;
	uint64_t end = bench_ns() + PLACEMENTS_NS;
	char *src = malloc(opt.max);
	unsigned int i;

	if (!src || pipe(go))
		bench_die("out of memory");
	memset(src, 0x5c, opt.max);
	for (i = 0; i < n && (i < 2 || bench_ns() < end); i++)
		one_placement(src, i, opt.rounds / n);
	print_all();
	free(src);
}

static void usage(void)
{
	fprintf(stderr, "usage: remote_store [--latency | --bandwidth] [--tsv | --json]\n"
		"                    [--data DIR] [--max BYTES] [--rounds N]\n");
	exit(2);
}

static void parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "latency", no_argument, NULL, 'l' },
		{ "bandwidth", no_argument, NULL, 'b' },
		{ "tsv", no_argument, NULL, 't' },
		{ "json", no_argument, NULL, 'j' },
		{ "data", required_argument, NULL, 'd' },
		{ "max", required_argument, NULL, 'm' },
		{ "rounds", required_argument, NULL, 'r' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (c == 'l')
			opt.bandwidth = false;
		else if (c == 'b')
			opt.latency = false;
		else if (c == 't')
			opt.format = TSV;
		else if (c == 'j')
			opt.format = JSON;
		else if (c == 'd')
			opt.dir = optarg;
		else if (c == 'm')
			opt.max = strtoull(optarg, NULL, 0);
		else if (c == 'r')
			opt.rounds = (unsigned int)strtoul(optarg, NULL, 0);
		else
			usage();
	}
	if (!opt.latency && !opt.bandwidth)
		opt.latency = opt.bandwidth = true;
	if (optind != argc || opt.max < MIN_BLOCK || opt.max > (size_t)1 << 32 ||
	    !opt.rounds || opt.rounds > MAX_ROUNDS)
		usage();
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	bench_begin();
	if (opt.format == JSON)
		putchar('{');
	if (opt.latency)
		latency();
	if (opt.format == JSON && opt.latency && opt.bandwidth)
		puts(",");
	if (opt.bandwidth)
		bandwidth();
	if (opt.format == JSON)
		puts("}");
	return 0;
}
