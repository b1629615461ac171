// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* sci-model scale: print a line for each number of nodes. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/vtime/command.h"
#include "sim/vtime/scale.h"

#define PROFILE		"b"
#define BYTES		8u
#define BYTES_MAX	(1u << 24)

struct options {
	const char *profile;
	struct scale_setup setup;
	bool tsv;
	bool host;
};

static void scale_usage(FILE *out)
{
	fputs("usage: sci model scale [-p PROFILE] [-t TOPOLOGY] [-b BYTES] [-s SEED]\n"
	      "                       [-l LOSS] [--tsv] [--host] PATTERN NODES...\n\n"
	      "  PATTERN   barrier, broadcast, allreduce, neighbours, alltoall\n"
	      "            or star\n"
	      "  TOPOLOGY  ring, rings:NODES, torus or torus:COLUMNSxROWS (ring)\n"
	      "  BYTES     bytes of a message (8)\n"
	      "  SEED      seed of the random numbers (1)\n"
	      "  LOSS      packets of a million that are lost (0)\n"
	      "  --tsv     columns with tabs\n"
	      "  --host    also print CPU time and memory of this machine\n\n"
	      "first_us: time of the first run, with connections; us: of a later run.\n"
	      "peers, recv_KiB: the largest number of a node; *_mean: the mean of all\n"
	      "nodes. recv: the memory of a node that its peers may write to.\n", out);
}

static bool number_parse(const char *text, uint64_t min, uint64_t max,
			 const char *what, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	if (*text >= '0' && *text <= '9' && !*end && !errno && *out >= min &&
	    *out <= max)
		return true;
	fprintf(stderr, "sci-model: %s: %s is a number from %llu to %llu\n",
		text, what, (unsigned long long)min, (unsigned long long)max);
	return false;
}

static bool option_set(struct options *o, int c)
{
	uint64_t v = 0;
	bool good = true;

	switch (c) {
	case 'p':
		o->profile = optarg;
		break;
	case 't':
		o->setup.topology = optarg;
		break;
	case 'b':
		good = number_parse(optarg, 0, BYTES_MAX, "BYTES", &v);
		o->setup.bytes = v;
		break;
	case 's':
		good = number_parse(optarg, 0, UINT64_MAX, "SEED", &o->setup.seed);
		break;
	case 'l':
		good = number_parse(optarg, 0, 500000, "LOSS", &v);
		o->setup.loss = (uint32_t)v;
		break;
	case 'T':
		o->tsv = true;
		break;
	case 'H':
		o->host = true;
		break;
	default:
		scale_usage(stderr);
		good = false;
	}
	return good;
}

static bool options_get(struct options *o, int argc, char **argv)
{
	static const struct option names[] = {
		{ "tsv", no_argument, NULL, 'T' },
		{ "host", no_argument, NULL, 'H' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "p:t:b:s:l:", names, NULL)) != -1)
		if (!option_set(o, c))
			return false;
	if (argc - optind >= 2)
		return true;
	scale_usage(stderr);
	return false;
}

static bool pattern_find(const char *name, enum scale_pattern *p)
{
	for (int i = 0; i < SCALE_PATTERNS; i++) {
		*p = (enum scale_pattern)i;
		if (!strcmp(scale_name(*p), name))
			return true;
	}
	fprintf(stderr, "sci-model: %s: no such pattern\n", name);
	return false;
}

static bool nodes_are_valid(int argc, char **argv)
{
	uint64_t nodes;

	for (int i = optind + 1; i < argc; i++)
		if (!number_parse(argv[i], 2, VT_NODES_MAX, "NODES", &nodes))
			return false;
	return true;
}

/* ---- output ---- */

struct column {
	const char *name;
	int width;
	int digits;
};

static const struct column columns[] = {
	{ "nodes", 6, 0 },		{ "bytes", 7, 0 },
	{ "first_us", 11, 1 },		{ "us", 11, 2 },
	{ "packets", 9, 0 },		{ "link_KB", 10, 1 },
	{ "busiest_%", 10, 1 },		{ "mean_%", 7, 1 },
	{ "peers", 6, 0 },		{ "peers_mean", 10, 1 },
	{ "recv_KiB", 9, 1 },		{ "recv_mean", 10, 1 },
	{ "ATT", 5, 0 },		{ "resent", 7, 0 },
	{ "host_KiB", 9, 0 },		{ "host_ms", 8, 2 },
};

#define COLUMNS		(sizeof(columns) / sizeof(columns[0]))
#define HOST_COLUMNS	2u

static size_t scale_shown(const struct options *o)
{
	return o->host ? COLUMNS : COLUMNS - HOST_COLUMNS;
}

static void names_print(const struct options *o)
{
	printf(o->tsv ? "%s\t%s" : "%-10s %-12s", "pattern", "topology");
	for (size_t i = 0; i < scale_shown(o); i++) {
		if (o->tsv)
			printf("\t%s", columns[i].name);
		else
			printf(" %*s", columns[i].width, columns[i].name);
	}
	putchar('\n');
}

static void result_print(const struct options *o, const struct scale_result *r)
{
	const struct scale_setup *s = &o->setup;
	double n = s->nodes, time = (double)r->time;
	const double values[COLUMNS] = {
		n, (double)s->bytes,
		(double)r->first / VT_US, time / VT_US,
		(double)r->load.packets, (double)r->load.bytes / 1e3,
		100.0 * (double)r->load.busiest / time,
		100.0 * (double)r->load.mean / time,
		(double)r->peers, (double)r->all_peers / n,
		(double)r->receive / 1024, (double)r->all_receive / 1024 / n,
		r->att, (double)r->resent,
		(double)r->host_bytes / 1024 / n, (double)r->host_ns / 1e6 / n,
	};

	printf(o->tsv ? "%s\t%s" : "%-10s %-12s", scale_name(s->pattern),
	       s->topology);
	for (size_t i = 0; i < scale_shown(o); i++) {
		if (o->tsv)
			printf("\t%.*f", columns[i].digits, values[i]);
		else
			printf(" %*.*f", columns[i].width, columns[i].digits,
			       values[i]);
	}
	putchar('\n');
	fflush(stdout);
}

int scale_main(int argc, char **argv)
{
	struct options o = {
		.profile = PROFILE,
		.setup = { .topology = "ring", .bytes = BYTES, .seed = 1 },
	};
	struct vt_profile profile;

	if (!options_get(&o, argc, argv) ||
	    !pattern_find(argv[optind], &o.setup.pattern) ||
	    !nodes_are_valid(argc, argv) ||
	    !vt_profile_find(&profile, NULL, o.profile))
		return 2;
	o.setup.profile = &profile;
	names_print(&o);
	for (int i = optind + 1; i < argc; i++) {
		struct scale_result r;

		o.setup.nodes = (unsigned int)strtoul(argv[i], NULL, 0);
		if (!scale_run(&o.setup, &r))
			return 1;
		result_print(&o, &r);
	}
	return 0;
}
