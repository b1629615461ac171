// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* `sci model tables`: all tables, as a document and as files for plots. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/vtime/command.h"
#include "sim/vtime/papers.h"
#include "sim/vtime/raw.h"
#include "sim/vtime/tables.h"

static const char *const names[] = { "a", "b", "c" };

#define PROFILES	(sizeof(names) / sizeof(names[0]))

/* ---- the document ---- */

static void value_print(FILE *out, double v)
{
	if (isnan(v))
		fprintf(out, " - |");
	else
		fprintf(out, v < 100 ? " %.2f |" : " %.1f |", v);
}

/* Print the papers' figures, with the modelled value beside each. */
static void document_figures(const struct table *t, FILE *out)
{
	fputs("| profile | system | metric | paper | modelled | ours | bound |\n"
	      "|---|---|---|---|---|---|---|\n", out);
	for (size_t i = 0; i < t->rows; i++) {
		const struct table_row *r = &t->row[i];

		fprintf(out, "| %s | %s | %s |", r->profile, r->system,
			r->metric);
		value_print(out, r->paper);
		value_print(out, r->modelled);
		value_print(out, r->ours);
		value_print(out, r->bound);
		fputc('\n', out);
	}
}

/* Print a row of costs for each message. */
static void document_costs(const struct table *t, FILE *out)
{
	fputs("\n| buffers | bytes | packets | barriers | reads | bytes on links |\n"
	      "|---|---|---|---|---|---|\n", out);
	for (size_t i = 0; i < t->rows; i++) {
		const struct table_row *r = &t->row[i];
		size_t bytes;

		if (sscanf(r->metric, "packets:%zu", &bytes) != 1)
			continue;
		/* columns in the order of tables_costs() */
		fprintf(out, "| %s | %zu | %.3f | %.3f | %.3f | %.1f |\n",
			r->system, bytes, r[0].ours, r[1].ours, r[2].ours,
			r[3].ours);
	}
}

/* ---- files for plots ---- */

static FILE *file_open_in(const char *dir, const char *name)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	if (!f)
		fprintf(stderr, "sci-model: %s: %s\n", path, strerror(errno));
	return f;
}

/* Write the saw-tooth of raw remote writes. */
static bool sawtooth_write(const struct vt_profile *p, const char *dir)
{
	char name[64];
	FILE *f;

	snprintf(name, sizeof(name), "sawtooth-%s.dat", p->name);
	f = file_open_in(dir, name);
	if (!f)
		return false;
	fputs("# bytes us packets\n", f);
	for (size_t n = 4; n <= 320; n += 4) {
		struct raw_write w = raw_write(p, n);

		if (!w.latency) {
			fclose(f);
			return false;
		}
		fprintf(f, "%zu %.4f %.0f\n", n, w.latency / VT_US,
			w.packets64 + w.packets16);
	}
	return !fclose(f);
}

static bool sizes_write(const struct table *t, const struct vt_profile *p,
			const char *dir)
{
	const char *const systems[] = { papers_name(DECK), papers_name(MPICH) };
	char name[64];
	FILE *f;

	snprintf(name, sizeof(name), "sizes-%s.dat", p->name);
	f = file_open_in(dir, name);
	if (!f)
		return false;
	fputs("# bytes modelled_us ours_us bound_us; DECK, then SCI-MPICH\n", f);
	for (unsigned int s = 0; s < 2; s++) {
		for (size_t i = 0; i < t->rows; i++) {
			const struct table_row *r = &t->row[i];
			size_t n;

			if (strcmp(r->profile, p->name) ||
			    strcmp(r->system, systems[s]) ||
			    sscanf(r->metric, "latency_us:%zu", &n) != 1)
				continue;
			fprintf(f, "%zu %.5g %.5g %.5g\n", n, r->modelled,
				r->ours, r->bound);
		}
		fputs("\n\n", f);
	}
	return !fclose(f);
}

/* ---- all profiles ---- */

static bool profile_write_tables(const char *profiles, const char *name,
				 const char *dir, struct table *all,
				 struct table *summary)
{
	struct vt_profile p;
	struct table one = { 0 };
	size_t published;
	bool good;

	if (!vt_profile_find(&p, profiles, name))
		return false;
	good = tables_raw(&one, &p) && tables_published(&one, &p) &&
	       tables_crossovers(&one, &p);
	published = one.rows;
	good = good && tables_sizes(&one, &p);
	if (good && dir)
		good = sawtooth_write(&p, dir) && sizes_write(&one, &p, dir);
	/* the costs in packets are the same on each profile */
	if (good && !strcmp(p.name, "B"))
		good = tables_costs(&one, &p);
	for (size_t i = 0; good && i < one.rows; i++)
		table_add(i < published ? summary : all, &one.row[i]);
	table_free(&one);
	return good;
}

static int tables_usage(void)
{
	fputs("usage: sci model tables [-P FOLDER] [-o DIR]\n", stderr);
	return 2;
}

int tables_main(int argc, char **argv)
{
	const char *profiles = NULL, *dir = NULL;
	char path[4200];
	struct table summary = { 0 }, all = { 0 };
	bool good = true;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-P") && i + 1 < argc)
			profiles = argv[++i];
		else if (!strcmp(argv[i], "-o") && i + 1 < argc)
			dir = argv[++i];
		else
			return tables_usage();
	}
	if (dir && mkdir(dir, 0777) && errno != EEXIST) {
		fprintf(stderr, "sci-model: %s: %s\n", dir, strerror(errno));
		return 1;
	}
	for (unsigned int i = 0; good && i < PROFILES; i++)
		good = profile_write_tables(profiles, names[i], dir, &all, &summary);
	if (good) {
		document_figures(&summary, stdout);
		document_costs(&all, stdout);
	}
	for (size_t i = 0; i < all.rows; i++)
		table_add(&summary, &all.row[i]);
	if (good && dir) {
		snprintf(path, sizeof(path), "%s/tables.tsv", dir);
		good = table_write(&summary, path);
	}
	table_free(&all);
	table_free(&summary);
	return good ? 0 : 1;
}
