// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * `sci bench` measures how fast messages are. Each round measures every size once, so a disturbance
 * of the machine affects all sizes alike. The values are medians of the rounds.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define PING_SIZES	"1..4M"
#define STREAM_SIZES	"64..4M"
#define SHORT_SIZES	"8"
#define MIN_COUNT	4u
#define WARM_UP		1000u
#define COUNT_LIMIT	100000000u
#define HISTOGRAM_STEPS	20

struct bench {
	struct bench_link link;
	struct bench_result res;
	const char *sizes, *tsv, *json, *picture;
	size_t size[BENCH_SIZES];
	uint64_t id, rounds, count, peers;
	unsigned int time_ms;
	bool stream, both, rate, histogram, memory, serve, verbose;
};

/* ---- numbers ---- */

static int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

void bench_sort(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), bench_compare);
}

double bench_quantile(const double *sorted, size_t n, double q)
{
	return sorted[(size_t)(q * (double)(n - 1) + 0.5)];
}

static void point_finish(struct bench_point *p, unsigned int rounds)
{
	bench_sort(p->t, rounds);
	p->min = p->t[0];
	p->max = p->t[rounds - 1];
	p->median = (p->t[(rounds - 1) / 2] + p->t[rounds / 2]) / 2;
}

/* ---- rounds ---- */

static enum bench_kind bench_mode_kind(enum bench_mode mode)
{
	return mode == MODE_PING || mode == MODE_HISTOGRAM ? BENCH_PING :
	       mode == MODE_BOTH ? BENCH_BOTH : BENCH_STREAM;
}

static const char *bench_protocol(const struct sci_ep_stats *a,
				  const struct sci_ep_stats *b)
{
	return b->sent_zcopy > a->sent_zcopy ? "zero-copy" :
	       b->sent_single_copy > a->sent_single_copy ? "single copy" :
	       b->sent_rendezvous > a->sent_rendezvous ? "rendezvous" :
	       b->sent_eager > a->sent_eager ? "eager" :
	       b->sent_lines > a->sent_lines ? "lines" : "short";
}

/* Find the protocol of a size: send a few messages, and compare the counters of both sides. */
static int protocol_find(struct bench *b, struct bench_point *p)
{
	enum bench_kind kind = bench_mode_kind(b->res.mode);
	struct sci_ep_stats before, after;
	double t;

	if (bench_count(&b->link, &before) ||
	    bench_run(&b->link, kind, p->size, MIN_COUNT, &t) ||
	    bench_count(&b->link, &after))
		return TOOL_FAILED;
	p->how = bench_protocol(&before, &after);
	return TOOL_OK;
}

static int bench_one_run(struct bench *b, struct bench_point *p, unsigned int round)
{
	enum bench_kind kind = bench_mode_kind(b->res.mode);
	double t;

	if (!round && bench_calibrate(&b->link, kind, p->size,
				      b->time_ms * 1e-3, MIN_COUNT, &p->count))
		return TOOL_FAILED;
	if (bench_run(&b->link, kind, p->size, p->count, &t))
		return TOOL_FAILED;
	t /= (double)p->count;
	p->t[round] = kind == BENCH_PING ? t / 2 : t;
	return round ? TOOL_OK : protocol_find(b, p);
}

static int bench_one_round(struct bench *b, unsigned int round)
{
	unsigned int i;

	for (i = 0; i < b->res.n; i++)
		if (bench_one_run(b, &b->res.point[i], round))
			return TOOL_FAILED;
	return TOOL_OK;
}

static int bench_measure_sizes(struct bench *b)
{
	unsigned int i;

	b->res.point = calloc(b->res.n, sizeof(*b->res.point));
	if (!b->res.point)
		return tool_error("out of memory");
	for (i = 0; i < b->res.n; i++)
		b->res.point[i].size = b->size[i];
	for (i = 0; i < b->rounds; i++)
		if (bench_one_round(b, i))
			return TOOL_FAILED;
	for (i = 0; i < b->res.n; i++)
		point_finish(&b->res.point[i], b->res.rounds);
	return TOOL_OK;
}

/* ---- histograms ---- */

/* Return the least of 1, 2 or 5 times a power of ten that is at least @least. */
static uint64_t step_round(double least)
{
	uint64_t step = 1;
	int i;

	for (i = 0; (double)step < least; i++)
		step = i % 3 == 1 ? step / 2 * 5 : step * 2;
	return step;
}

uint64_t bench_bin(const struct bench_samples *s, double ns)
{
	return (uint64_t)ns / s->step * s->step;
}

uint64_t bench_count_below(const struct bench_samples *s, uint64_t i,
			   uint64_t end)
{
	uint64_t n = 0;

	while (i + n < s->n && s->ns[i + n] < (double)end)
		n++;
	return n;
}

static int histogram_measure(struct bench *b, struct bench_samples *s)
{
	double warm;

	s->ns = calloc(s->n, sizeof(*s->ns));
	if (!s->ns)
		return tool_error("out of memory");
	if (bench_run(&b->link, BENCH_PING, s->size, WARM_UP, &warm) ||
	    bench_run_each(&b->link, s->size, s->n, s->ns, &b->res.tsc))
		return TOOL_FAILED;
	bench_sort(s->ns, s->n);
	s->step = step_round((bench_quantile(s->ns, s->n, 0.99) - s->ns[0]) /
			     HISTOGRAM_STEPS);
	return TOOL_OK;
}

static int bench_measure_histograms(struct bench *b)
{
	unsigned int i;

	b->res.samples = calloc(b->res.n, sizeof(*b->res.samples));
	if (!b->res.samples)
		return tool_error("out of memory");
	for (i = 0; i < b->res.n; i++) {
		b->res.samples[i].size = b->size[i];
		b->res.samples[i].n = b->count;
		if (histogram_measure(b, &b->res.samples[i]))
			return TOOL_FAILED;
	}
	return TOOL_OK;
}

/* ---- the whole ---- */

static size_t bench_largest(const struct bench *b)
{
	size_t max = 0;
	unsigned int i;

	for (i = 0; i < b->res.n; i++)
		max = b->size[i] > max ? b->size[i] : max;
	return max;
}

static int bench_measure(struct bench *b)
{
	if (bench_link_open(&b->link))
		return TOOL_FAILED;
	if (b->memory) {
		b->res.memory.peers = (unsigned int)b->peers;
		return bench_memory(&b->link, &b->res.memory);
	}
	if (bench_room(&b->link, bench_largest(b)))
		return TOOL_FAILED;
	return b->histogram ? bench_measure_histograms(b) : bench_measure_sizes(b);
}

static bool path_is_stdout(const char *path)
{
	return path && !strcmp(path, "-");
}

static int bench_report(struct bench *b)
{
	if (!path_is_stdout(b->tsv) && !path_is_stdout(b->json))
		bench_print(stdout, &b->res);
	if ((b->tsv && bench_file(b->tsv, bench_write_tsv, &b->res)) ||
	    (b->json && bench_file(b->json, bench_write_json, &b->res)) ||
	    (b->picture && bench_picture(b->picture, &b->res)))
		return TOOL_FAILED;
	return tool_finish();
}

/* Check the arguments and the environment before the measurement. */
static int bench_check(const struct bench *b)
{
	return (b->tsv && bench_file_check(b->tsv)) ||
	       (b->json && bench_file_check(b->json)) ||
	       (b->picture && bench_picture_check(b->picture)) ?
		       TOOL_FAILED : TOOL_OK;
}

/* ---- the command line ---- */

static bool size_add(struct bench *b, uint64_t size)
{
	if (b->res.n == BENCH_SIZES)
		return false;
	b->size[b->res.n++] = size;
	return true;
}

/* Parse "64", or "64..4M": both ends and the powers of two between them. */
static bool sizes_add(struct bench *b, char *word)
{
	char *dots = strstr(word, "..");
	uint64_t from, to, power;

	if (dots)
		*dots = '\0';
	if (!tool_parse_size(word, 0, BENCH_SIZE_MAX, &from))
		return false;
	if (!dots)
		return size_add(b, from);
	if (!tool_parse_size(dots + 2, from, BENCH_SIZE_MAX, &to) ||
	    !size_add(b, from))
		return false;
	for (power = 1; power < to; power *= 2)
		if (power > from && !size_add(b, power))
			return false;
	return to == from || size_add(b, to);
}

static void sizes_parse(const struct tool_command *self, struct bench *b)
{
	char list[512], *word, *rest = list;

	if (strlen(b->sizes) >= sizeof(list))
		tool_usage(self, "--size: the list is too long");
	memcpy(list, b->sizes, strlen(b->sizes) + 1);
	while ((word = strsep(&rest, ",")))
		if (!sizes_add(b, word))
			tool_usage(self, "--size wants up to %u sizes, 'A..B' or 'A,B,C', each up to 1G, not '%s'",
				   BENCH_SIZES, b->sizes);
}

static void mode_parse(const struct tool_command *self, struct bench *b)
{
	if (b->stream + b->both + b->rate + b->histogram + b->memory +
	    b->serve > 1)
		tool_usage(self, "one of --stream, --bi-directional, --rate, --histogram, --memory, --serve");
	b->res.mode = b->stream ? MODE_STREAM : b->both ? MODE_BOTH :
		      b->rate ? MODE_RATE : b->histogram ? MODE_HISTOGRAM :
		      b->memory ? MODE_MEMORY : MODE_PING;
	if (b->serve && b->link.to)
		tool_usage(self, "--serve or --peer?");
	if (b->memory && b->picture)
		tool_usage(self, "--memory draws no picture");
	if (path_is_stdout(b->tsv) && path_is_stdout(b->json))
		tool_usage(self, "--tsv or --json to standard output?");
	if (!b->sizes)
		b->sizes = b->rate || b->histogram ? SHORT_SIZES :
			   b->stream || b->both ? STREAM_SIZES : PING_SIZES;
	sizes_parse(self, b);
	if (b->picture && !b->histogram && !bench_largest(b))
		tool_usage(self, "--picture wants a size above 0");
}

#define FLAG(l, n, v, h)						\
	{ .letter = l, .name = n, .kind = TOOL_FLAG, .value = v, .help = h }
#define WORD(l, n, v, a, h)						\
	{ .letter = l, .name = n, .kind = TOOL_STRING, .value = v,	\
	  .arg = a, .help = h }
#define NUMBER(l, n, v, most, h)					\
	{ .letter = l, .name = n, .kind = TOOL_NUMBER, .value = v,	\
	  .min = 1, .max = most, .arg = "N", .help = h }

static void bench_parse(struct bench *b, const struct tool_command *self, int argc,
			char **argv)
{
	struct bench_link *l = &b->link;
	const struct tool_option options[] = {
		FLAG('s', "stream", &b->stream, "many messages in one direction"),
		FLAG('2', "bi-directional", &b->both, "streams in both directions"),
		FLAG('r', "rate", &b->rate, "messages per second"),
		FLAG('H', "histogram", &b->histogram, "time of each round trip"),
		FLAG('m', "memory", &b->memory, "memory that a peer takes"),
		WORD('S', "size", &b->sizes, "LIST",
		     "A..B: powers of two, or A,B,C"),
		FLAG('T', "tagged", &l->tagged, "messages with a tag"),
		FLAG('z', "zero-copy", &l->zcopy, "exported buffers"),
		FLAG('1', "single-thread", &l->single_thread,
		     "endpoints of one thread, without locks"),
		FLAG(0, "crc", &l->crc, "endpoints with check sums"),
		NUMBER('R', "rounds", &b->rounds, BENCH_ROUNDS,
		       "number of rounds (5)"),
		{ .letter = 't', .name = "time", .kind = TOOL_SECONDS,
		  .value = &b->time_ms, .arg = "S",
		  .help = "time of each size in each round (0.02)" },
		NUMBER('c', "count", &b->count, COUNT_LIMIT,
		       "round trips of a histogram (100000)"),
		NUMBER('n', "peers", &b->peers, BENCH_PEERS_MAX,
		       "number of peers for --memory (256)"),
		WORD(0, "tsv", &b->tsv, "FILE", "columns with tabs; -: stdout"),
		WORD('j', "json", &b->json, "FILE", "JSON; -: stdout"),
		WORD('p', "picture", &b->picture, "FILE",
		     "picture by gnuplot: .svg or .png"),
		WORD(0, "peer", &l->to, "NODE[:ID]", "node where `sci bench --serve` runs"),
		FLAG(0, "serve", &b->serve, "be the server for --peer"),
		NUMBER('i', "id", &b->id, SCI_EP_ID_MAX,
		       "id of the server's endpoint"),
		FLAG('v', "verbose", &b->verbose, "with --serve: print each client"),
		{ 0 },
	};

	if (tool_parse(self, argc, argv, options, true) != argc)
		tool_usage(self, "it takes options only");
	mode_parse(self, b);
	b->link.id = (uint32_t)b->id;
}

static void result_free(struct bench_result *r)
{
	unsigned int i;

	for (i = 0; r->samples && i < r->n; i++)
		free(r->samples[i].ns);
	free(r->samples);
	free(r->point);
}

int tool_bench(const struct tool_command *self, int argc, char **argv)
{
	struct bench b = { .id = BENCH_ID, .rounds = 5, .count = 100000,
			   .peers = 256, .time_ms = 20 };
	int ret;

	bench_parse(&b, self, argc, argv);
	if (b.serve)
		return bench_serve(&b.link, b.verbose);
	b.res.link = &b.link;
	b.res.rounds = (unsigned int)b.rounds;
	ret = bench_check(&b) || bench_measure(&b) || bench_report(&b) ? TOOL_FAILED : TOOL_OK;
	bench_link_close(&b.link);
	result_free(&b.res);
	return ret;
}
