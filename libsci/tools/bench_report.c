// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Print the results of `sci bench`: for people, as TSV or as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "outfile.h"

#define BAR	50			/* columns of a histogram's longest bar */

static const double quantiles[] = { 0.5, 0.9, 0.99, 0.999, 0.9999 };
static const char *const quantile_names[] = {
	"p50", "p90", "p99", "p99.9", "p99.99"
};
static const char *const stage_names[] = {
	"connected", "after_short", "after_long"
};
#define N_QUANTILES	(sizeof(quantiles) / sizeof(quantiles[0]))
#define N_STAGES	3

/* ---- values ---- */

static const char *bench_mode_name(enum bench_mode mode)
{
	static const char *const names[] = {
		[MODE_PING] = "ping-pong", [MODE_STREAM] = "stream",
		[MODE_BOTH] = "bi-directional", [MODE_RATE] = "rate",
		[MODE_HISTOGRAM] = "histogram", [MODE_MEMORY] = "memory",
	};

	return names[mode];
}

static const char *bench_rate_unit(enum bench_mode mode)
{
	return mode == MODE_RATE ? "million/s" : "MB/s";
}

struct bench_value bench_us(const struct bench_result *r,
			    const struct bench_point *p)
{
	(void)r;
	return (struct bench_value){ p->median * 1e6, p->min * 1e6,
				     p->max * 1e6 };
}

/* Return MB/s, in both directions together, or million messages per second. */
struct bench_value bench_rate(const struct bench_result *r,
			      const struct bench_point *p)
{
	double what = r->mode == MODE_RATE ? 1 : (double)p->size;

	what *= r->mode == MODE_BOTH ? 2e-6 : 1e-6;
	return (struct bench_value){ what / p->median, what / p->max,
				     what / p->min };
}

/* ---- for people ---- */

static void title_print(FILE *out, const struct bench_result *r)
{
	const struct bench_link *l = r->link;
	struct sci_addr me = { 0, 0 };

	sci_ep_addr(l->ep, &me);
	fprintf(out, "%s, fabric %s, nodes %u and %u", bench_mode_name(r->mode),
		sci_peer_network(l->peer), me.node, l->addr.node);
	if (l->cpu[0] >= 0)
		fprintf(out, " on CPUs %d and %d", l->cpu[0], l->cpu[1]);
	fprintf(out, ", %s%s%s%s",
		l->single_thread ? "endpoints of one thread" :
				   "thread-safe endpoints",
		l->tagged ? ", tagged" : "", l->zcopy ? ", exported buffers" : "",
		l->crc ? ", check sums" : "");
	if (r->point)
		fprintf(out, "; %s of %u round%s", r->rounds > 1 ? "medians" :
			"values", r->rounds, r->rounds > 1 ? "s" : "");
	fputs("\n\n", out);
}

static void range_print(FILE *out, struct bench_value v)
{
	char range[40];
	int digits = v.median < 100 ? 3 : v.median < 10000 ? 1 : 0;

	snprintf(range, sizeof(range), "%.*f .. %.*f", digits, v.min, digits,
		 v.max);
	fprintf(out, " %10.*f  %-22s", digits, v.median, range);
}

static void report_points(FILE *out, const struct bench_result *r)
{
	char left[32], right[32];
	unsigned int i;

	snprintf(left, sizeof(left), "%s", r->mode == MODE_PING ? "latency us" :
		 r->mode == MODE_BOTH ? "us/pair" : "us/message");
	snprintf(right, sizeof(right), "%s", bench_rate_unit(r->mode));
	fprintf(out, "%10s %10s  %-22s %10s  %-22s %s\n", "bytes", left,
		"min .. max", right, "min .. max", "protocol");
	for (i = 0; i < r->n; i++) {
		const struct bench_point *p = &r->point[i];

		fprintf(out, "%10zu", p->size);
		range_print(out, bench_us(r, p));
		range_print(out, bench_rate(r, p));
		fprintf(out, " %s\n", p->how);
	}
}

static void bar_print(FILE *out, uint64_t n, uint64_t most)
{
	int len = (int)((double)n / (double)most * BAR + 0.5);

	fprintf(out, " %9" PRIu64 " %.*s\n", n, len,
		"##################################################");
}

/* Print the histogram up to the 99th percentile, and all larger samples in one line. */
static void histogram_print(FILE *out, const struct bench_samples *s)
{
	uint64_t begin = bench_bin(s, s->ns[0]);
	uint64_t end = bench_bin(s, bench_quantile(s->ns, s->n, 0.99));
	uint64_t at, done = 0, n, most = 1;

	for (at = begin; at <= end; at += s->step, done += n) {
		n = bench_count_below(s, done, at + s->step);
		most = n > most ? n : most;
	}
	fprintf(out, "\n%zu bytes, from ... ns on:\n", s->size);
	done = 0;
	for (at = begin; at <= end; at += s->step, done += n) {
		n = bench_count_below(s, done, at + s->step);
		fprintf(out, "%10" PRIu64, at);
		bar_print(out, n, most);
	}
	if (done < s->n)
		fprintf(out, "    higher %9" PRIu64 " up to %.0f\n",
			s->n - done, s->ns[s->n - 1]);
}

static void histograms_print(FILE *out, const struct bench_result *r)
{
	unsigned int i, q;

	fprintf(out, "half a round trip in ns, by %s:\n",
		r->tsc ? "the time stamp counter" : "clock_gettime()");
	fprintf(out, "%10s %9s", "bytes", "min");
	for (q = 0; q < N_QUANTILES; q++)
		fprintf(out, " %9s", quantile_names[q]);
	fprintf(out, " %9s %9s\n", "max", "trips");
	for (i = 0; i < r->n; i++) {
		const struct bench_samples *s = &r->samples[i];

		fprintf(out, "%10zu %9.0f", s->size, s->ns[0]);
		for (q = 0; q < N_QUANTILES; q++)
			fprintf(out, " %9.0f",
				bench_quantile(s->ns, s->n, quantiles[q]));
		fprintf(out, " %9.0f %9" PRIu64 "\n", s->ns[s->n - 1], s->n);
	}
	for (i = 0; i < r->n; i++)
		histogram_print(out, &r->samples[i]);
}

static void memory_print(FILE *out, const struct bench_result *r)
{
	static const char *const words[] = {
		"connected", "after 8 bytes there and back",
		"after 1 MiB there and back"
	};
	const struct bench_memory *m = &r->memory;
	int i;

	fprintf(out, "%u peers, %.1f us to connect to each; bytes of this process per peer:\n",
		m->peers, m->connect_us);
	fprintf(out, "%-30s %12s %12s %12s\n", "", "peer_bytes", "resident", "descriptors");
	for (i = 0; i < N_STAGES; i++)
		fprintf(out, "%-30s %12.0f %12.0f %12.1f\n", words[i], m->bytes[i],
			m->resident[i], m->descriptors[i]);
}

void bench_print(FILE *out, const struct bench_result *r)
{
	title_print(out, r);
	if (r->mode == MODE_MEMORY)
		memory_print(out, r);
	else if (r->mode == MODE_HISTOGRAM)
		histograms_print(out, r);
	else
		report_points(out, r);
}

/* ---- TSV ---- */

static void tsv_histograms(FILE *out, const struct bench_result *r)
{
	unsigned int i, q;

	for (i = 0; i < r->n; i++) {
		const struct bench_samples *s = &r->samples[i];

		fprintf(out, "# bytes %zu min %.1f", s->size, s->ns[0]);
		for (q = 0; q < N_QUANTILES; q++)
			fprintf(out, " %s %.1f", quantile_names[q],
				bench_quantile(s->ns, s->n, quantiles[q]));
		fprintf(out, " max %.1f ns\n", s->ns[s->n - 1]);
	}
	fputs("bytes\tns\tto_ns\tround_trips\n", out);
	for (i = 0; i < r->n; i++) {
		const struct bench_samples *s = &r->samples[i];
		uint64_t done = 0, n, at;

		for (; done < s->n; done += n) {
			at = bench_bin(s, s->ns[done]);
			n = bench_count_below(s, done, at + s->step);
			fprintf(out, "%zu\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
				"\n", s->size, at, at + s->step, n);
		}
	}
}

static void tsv_memory(FILE *out, const struct bench_memory *m)
{
	int i;

	fputs("peers\tstage\tpeer_bytes\tresident\tdescriptors\n", out);
	for (i = 0; i < N_STAGES; i++)
		fprintf(out, "%u\t%s\t%.0f\t%.0f\t%.1f\n", m->peers, stage_names[i],
			m->bytes[i], m->resident[i], m->descriptors[i]);
}

static void tsv_points(FILE *out, const struct bench_result *r)
{
	const char *unit = r->mode == MODE_RATE ? "Mps" : "MBps";
	unsigned int i;

	fprintf(out, "bytes\tus\tus_min\tus_max\t%s\t%s_min\t%s_max\tprotocol\n",
		unit, unit, unit);
	for (i = 0; i < r->n; i++) {
		const struct bench_point *p = &r->point[i];
		struct bench_value us = bench_us(r, p);
		struct bench_value rate = bench_rate(r, p);

		fprintf(out, "%zu\t%.4f\t%.4f\t%.4f\t%.4f\t%.4f\t%.4f\t%s\n",
			p->size, us.median, us.min, us.max, rate.median,
			rate.min, rate.max, p->how);
	}
}

void bench_write_tsv(FILE *out, const void *result)
{
	const struct bench_result *r = result;

	if (r->mode == MODE_MEMORY)
		tsv_memory(out, &r->memory);
	else if (r->mode == MODE_HISTOGRAM)
		tsv_histograms(out, r);
	else
		tsv_points(out, r);
}

/* ---- JSON ---- */

static void json_head(struct tool_json *j, const struct bench_result *r)
{
	const struct bench_link *l = r->link;
	struct sci_addr me = { 0, 0 };

	sci_ep_addr(l->ep, &me);
	json_string(j, "mode", bench_mode_name(r->mode));
	json_string(j, "fabric", sci_peer_network(l->peer));
	json_number(j, "node", me.node);
	json_number(j, "peer_node", l->addr.node);
	json_bool(j, "pinned", l->cpu[0] >= 0 && l->cpu[1] >= 0);
	json_bool(j, "single_thread", l->single_thread);
	json_bool(j, "tagged", l->tagged);
	json_bool(j, "zero_copy", l->zcopy);
	json_bool(j, "crc", l->crc);
}

static void json_params(struct tool_json *j, const struct bench_result *r)
{
	uint64_t v;
	int i;

	json_open(j, "parameters", '{');
	for (i = 0; i < SCI_PARAMS; i++) {
		if (sci_peer_get(r->link->peer, i, &v))
			continue;
		if (v == UINT64_MAX)
			json_null(j, sci_param_name(i));
		else
			json_number(j, sci_param_name(i), v);
	}
	json_close(j, '}');
}

static void json_value(struct tool_json *j, const char *key,
		       struct bench_value v)
{
	json_open(j, key, '{');
	json_real(j, "median", v.median);
	json_real(j, "min", v.min);
	json_real(j, "max", v.max);
	json_close(j, '}');
}

static void json_points(struct tool_json *j, const struct bench_result *r)
{
	unsigned int i;

	json_number(j, "rounds", r->rounds);
	json_open(j, "sizes", '[');
	for (i = 0; i < r->n; i++) {
		const struct bench_point *p = &r->point[i];

		json_open(j, NULL, '{');
		json_number(j, "bytes", p->size);
		json_number(j, "messages", p->count);
		json_string(j, "protocol", p->how);
		json_value(j, "us", bench_us(r, p));
		json_value(j, r->mode == MODE_RATE ? "million_per_s" : "MBps",
			   bench_rate(r, p));
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void json_histograms(struct tool_json *j, const struct bench_result *r)
{
	unsigned int i, q;

	json_string(j, "clock", r->tsc ? "tsc" : "clock_gettime");
	json_open(j, "sizes", '[');
	for (i = 0; i < r->n; i++) {
		const struct bench_samples *s = &r->samples[i];

		json_open(j, NULL, '{');
		json_number(j, "bytes", s->size);
		json_number(j, "round_trips", s->n);
		json_open(j, "ns", '{');
		json_real(j, "min", s->ns[0]);
		for (q = 0; q < N_QUANTILES; q++)
			json_real(j, quantile_names[q],
				  bench_quantile(s->ns, s->n, quantiles[q]));
		json_real(j, "max", s->ns[s->n - 1]);
		json_close(j, '}');
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void json_memory(struct tool_json *j, const struct bench_memory *m)
{
	int i;

	json_number(j, "peers", m->peers);
	json_real(j, "connect_us", m->connect_us);
	for (i = 0; i < N_STAGES; i++) {
		json_open(j, stage_names[i], '{');
		json_real(j, "peer_bytes", m->bytes[i]);
		json_real(j, "resident", m->resident[i]);
		json_real(j, "descriptors", m->descriptors[i]);
		json_close(j, '}');
	}
}

void bench_write_json(FILE *out, const void *result)
{
	const struct bench_result *r = result;
	struct tool_json j = { .out = out, .first = true };

	json_open(&j, NULL, '{');
	json_head(&j, r);
	json_params(&j, r);
	if (r->mode == MODE_MEMORY)
		json_memory(&j, &r->memory);
	else if (r->mode == MODE_HISTOGRAM)
		json_histograms(&j, r);
	else
		json_points(&j, r);
	json_close(&j, '}');
}
