// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/vtime/papers.h"
#include "sim/vtime/raw.h"
#include "sim/vtime/tables.h"
#include "sim/vtime/tcp.h"

#define LINE	64u

/* Rounds of a ping-pong: a receiver sends one status line for this number of answers. */
#define ROUNDS	5u

static const size_t sizes[] = {
	0, 1, 4, 16, 47, 48, 62, 63, 64, 100, 128, 256, 512, 1024, 1536, 2048,
	3072, 4096, 5000, 6000, 6144, 6208, 7168, 8000, 8192, 8256, 10000,
	12288, 16384, 20000, 24576, 28672, 32768, 33000, 40960, 49152, 65536,
	98304, 131072, 196608, 262144, 393216, 524288, 786432, 1048576,
};

#define SIZES	(sizeof(sizes) / sizeof(sizes[0]))

/* ---- rows ---- */

void table_add(struct table *t, const struct table_row *row)
{
	if (t->rows == t->room) {
		t->room = t->room ? 2 * t->room : 64;
		t->row = realloc(t->row, t->room * sizeof(*t->row));
		if (!t->row) {
			fprintf(stderr, "sci-model: out of memory\n");
			exit(1);
		}
	}
	t->row[t->rows++] = *row;
}

void table_free(struct table *t)
{
	free(t->row);
	*t = (struct table){ 0 };
}

__attribute__((format(printf, 3, 4)))
static struct table_row row_make(const struct vt_profile *p, const char *system,
				 const char *fmt, ...)
{
	struct table_row row = {
		.paper = NAN, .modelled = NAN, .ours = NAN, .bound = NAN,
	};
	va_list ap;

	snprintf(row.profile, sizeof(row.profile), "%s", p->name);
	snprintf(row.system, sizeof(row.system), "%s", system);
	va_start(ap, fmt);
	vsnprintf(row.metric, sizeof(row.metric), fmt, ap);
	va_end(ap);
	return row;
}

static void value_write(FILE *f, double v, char end)
{
	if (isnan(v))
		fprintf(f, "-%c", end);
	else
		fprintf(f, "%.5g%c", v, end);
}

bool table_write(const struct table *t, const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f) {
		fprintf(stderr, "sci-model: %s: %s\n", path, strerror(errno));
		return false;
	}
	fputs("profile\tsystem\tmetric\tpaper\tmodelled\tours\tbound\n", f);
	for (size_t i = 0; i < t->rows; i++) {
		const struct table_row *r = &t->row[i];

		fprintf(f, "%s\t%s\t%s\t", r->profile, r->system, r->metric);
		value_write(f, r->paper, '\t');
		value_write(f, r->modelled, '\t');
		value_write(f, r->ours, '\t');
		value_write(f, r->bound, '\n');
	}
	if (fclose(f)) {
		fprintf(stderr, "sci-model: %s: %s\n", path, strerror(errno));
		return false;
	}
	return true;
}

/* ---- limits of the hardware ---- */

/* Return the picoseconds from the first store of @bytes to the poll that sees the last byte. */
static double bound_latency(const struct vt_profile *p, size_t bytes)
{
	size_t lines = bytes ? (bytes + LINE - 1) / LINE : 1;

	return (double)(lines * p->bus_line + vt_way(p, LINE) + p->load_local);
}

/* Return the bytes a second of stores of whole lines, one after the other. */
static double bound_rate(const struct vt_profile *p)
{
	return LINE * 1e12 / (double)p->bus_line;
}

/* ---- raw figures ---- */

bool tables_raw(struct table *t, const struct vt_profile *p)
{
	static const char *const names[] = {
		[RAW_WRITE] = "write_us", [RAW_READ] = "read_us",
		[RAW_POLL] = "poll_us", [RAW_BURSTS] = "bursts_MB/s",
		[RAW_WORDS] = "words_MB/s", [RAW_COPY] = "copy_MB/s",
	};

	for (size_t i = 0; i < raw_published_count; i++) {
		const struct raw_figure *f = &raw_published[i];
		struct table_row row;

		if (strcmp(f->profile, p->name))
			continue;
		row = row_make(p, "hardware", "%s:%zu", names[f->what], f->bytes);
		row.paper = f->value;
		row.modelled = raw_modelled(p, f);
		if (!row.modelled)
			return false;
		table_add(t, &row);
	}
	return true;
}

/* ---- ours ---- */

static bool row_ours(struct table *t, const struct vt_profile *p,
		     enum ours_mode mode, size_t size, double *ps)
{
	struct ours_result r;

	for (size_t i = 0; i < t->n_known; i++) {
		if (t->known[i].mode != mode || t->known[i].size != size)
			continue;
		*ps = t->known[i].ps;
		return true;
	}
	if (!ours_pingpong(p, mode, size, ROUNDS, &r))
		return false;
	*ps = r.latency;
	if (t->n_known < sizeof(t->known) / sizeof(t->known[0]))
		t->known[t->n_known++] =
			(struct table_known){ mode, size, r.latency };
	return true;
}

/* Return the mode of this library that is compared with a system. */
static enum ours_mode mode_beside(enum paper_system sys)
{
	return papers_use_tcp(sys) ? OURS_TCP : sys <= DECK ? OURS_ZCOPY : OURS_TAGGED;
}

/* Store the largest bandwidth at any size in @rate, in bytes a second. */
static bool ours_rate(struct table *t, const struct vt_profile *p,
		      enum ours_mode mode, double *rate)
{
	*rate = 0;
	for (size_t i = 0; i < SIZES; i++) {
		double ps;

		if (sizes[i] < 4096)
			continue;
		if (!row_ours(t, p, mode, sizes[i], &ps))
			return false;
		*rate = fmax(*rate, (double)sizes[i] * 1e12 / ps);
	}
	return true;
}

/* ---- the figures that the papers print ---- */

static bool row_published(struct table *t, const struct vt_profile *p,
			  const struct paper_figure *f)
{
	struct table_row row;
	double v;

	row = row_make(p, papers_name(f->system),
		       f->metric == PAPER_LATENCY ? "latency_us:%zu" :
						  "bandwidth_MB/s", f->bytes);
	row.paper = f->value;
	v = papers_modelled(p, f);
	row.modelled = v > 0 ? v : NAN;
	if (f->metric == PAPER_LATENCY) {
		if (!row_ours(t, p, mode_beside(f->system), f->bytes, &v))
			return false;
		row.ours = v / VT_US;
		row.bound = (papers_use_tcp(f->system) ? vt_tcp_bound_latency(p, f->bytes) :
							 bound_latency(p, f->bytes)) / VT_US;
	} else {
		if (!ours_rate(t, p, mode_beside(f->system), &v))
			return false;
		row.ours = v / 1e6;
		row.bound = (papers_use_tcp(f->system) ? vt_tcp_bound_rate(p) :
							 bound_rate(p)) / 1e6;
	}
	table_add(t, &row);
	return true;
}

bool tables_published(struct table *t, const struct vt_profile *p)
{
	for (size_t i = 0; i < papers_published_count; i++)
		if (!strcmp(papers_published[i].profile, p->name) &&
		    !row_published(t, p, &papers_published[i]))
			return false;
	return true;
}

/* ---- sizes from which on one protocol is faster than another ---- */

struct contest {
	const struct vt_profile *profile;
	enum paper_system before, after;
	bool good;
};

static bool paper_is_faster(struct contest *c, size_t bytes)
{
	double after = papers_latency(c->profile, c->after, bytes);
	double before = papers_latency(c->profile, c->before, bytes);

	c->good = c->good && after && before;
	return after <= before;
}

static bool ours_is_faster(struct contest *c, size_t bytes)
{
	struct ours_result lines, direct;

	c->good = c->good &&
		  ours_pingpong(c->profile, OURS_LINES, bytes, ROUNDS, &lines) &&
		  ours_pingpong(c->profile, OURS_DIRECT, bytes, ROUNDS, &direct);
	return !c->good || direct.latency <= lines.latency;
}

/* Return the smallest multiple of a line, up to 128 KiB, from which on @wins returns true. */
static double figure_crossover(struct contest *c,
			       bool (*wins)(struct contest *c, size_t bytes))
{
	size_t low = 0, high = 2048;

	while (low + 1 < high) {
		size_t mid = (low + high) / 2;

		if (wins(c, mid * LINE))
			high = mid;
		else
			low = mid;
	}
	return (double)high * LINE;
}

bool tables_crossovers(struct table *t, const struct vt_profile *p)
{
	struct contest deck = { p, DECK_2, DECK_3, true };
	struct contest mpich = { p, MPICH_EAGER, MPICH_RENDEZVOUS, true };
	struct table_row row = row_make(p, "DECK", "protocol 3 from, bytes");

	row.paper = strcmp(p->name, "B") ? NAN : 1024;	/* DECK IV */
	row.modelled = figure_crossover(&deck, paper_is_faster);
	row.ours = figure_crossover(&deck, ours_is_faster);
	table_add(t, &row);
	row = row_make(p, "SCI-MPICH", "rendezvous from, bytes");
	row.paper = strcmp(p->name, "B") ? NAN : 32768;	/* DECK IV.A */
	row.modelled = figure_crossover(&mpich, paper_is_faster);
	table_add(t, &row);
	return deck.good && mpich.good;
}

/* ---- all sizes ---- */

static bool table_has_row(const struct table *t, const struct table_row *row)
{
	for (size_t i = 0; i < t->rows; i++)
		if (!strcmp(t->row[i].system, row->system) &&
		    !strcmp(t->row[i].metric, row->metric))
			return true;
	return false;
}

static bool table_at_size(struct table *t, const struct vt_profile *p,
			  enum paper_system sys, size_t size)
{
	struct table_row row = row_make(p, papers_name(sys), "latency_us:%zu",
					size);
	double v;

	if (table_has_row(t, &row))
		return true;
	v = papers_latency(p, sys, size);
	row.modelled = v > 0 ? v / VT_US : NAN;
	if (!row_ours(t, p, mode_beside(sys), size, &v))
		return false;
	row.ours = v / VT_US;
	row.bound = bound_latency(p, size) / VT_US;
	table_add(t, &row);
	return true;
}

bool tables_sizes(struct table *t, const struct vt_profile *p)
{
	static const enum paper_system systems[] = { DECK, MPICH };

	for (size_t s = 0; s < 2; s++)
		for (size_t i = 0; i < SIZES; i++)
			if (!table_at_size(t, p, systems[s], sizes[i]))
				return false;
	return true;
}

/* ---- costs of a message ---- */

/* Rounds: a multiple of the intervals of status lines, which are 24 lines and 5 answers. */
#define EVEN	120u

static bool row_cost(struct table *t, const struct vt_profile *p,
		     const char *buffers, enum ours_mode mode, size_t size)
{
	static const char *const names[] = {
		"packets", "barriers", "reads", "link_bytes",
	};
	struct ours_result r;

	if (!ours_pingpong(p, mode, size, EVEN, &r))
		return false;
	for (unsigned int i = 0; i < 4; i++) {
		const double v[] = {
			r.packets64 + r.packets16, r.barriers, r.reads, r.bytes,
		};
		struct table_row row = row_make(p, buffers, "%s:%zu", names[i],
						size);

		row.ours = v[i];
		table_add(t, &row);
	}
	return true;
}

bool tables_costs(struct table *t, const struct vt_profile *p)
{
	static const char *const modes[] = { "plain", "tagged", "zero-copy" };
	static const size_t lengths[] = { 0, 62, 64, 1024, 8192, 65536 };

	for (unsigned int m = 0; m < 3; m++)
		for (size_t i = 0; i < 6; i++)
			if (!row_cost(t, p, modes[m], (enum ours_mode)m,
				      lengths[i]))
				return false;
	return true;
}
