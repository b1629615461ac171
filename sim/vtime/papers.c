// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Published figures of the papers, and the model's values. */
#include <stdio.h>
#include <string.h>

#include "sim/vtime/command.h"
#include "sim/vtime/papers.h"
#include "sim/vtime/papers_run.h"

#define DECK_IV		"DECK, IV"
#define DECK_IV_A	"DECK, IV.A"
#define MPICH_TAB_2	"SCI-MPICH, table 2"
#define MADELEINE_TAB	"MPICH/Madeleine, "
#define MB20		1.048576	/* 2^20 bytes, as in MPICH/Madeleine, section 5.1 */

const struct paper_figure papers_published[] = {
	{ "B", DECK_1, PAPER_LATENCY, 0, 4.66, 0.1, DECK_IV },
	{ "B", DECK_2, PAPER_LATENCY, 64, 8.56, 0.1, DECK_IV },
	{ "B", DECK_2, PAPER_BANDWIDTH, 0, 62.54, 0.12, DECK_IV },
	{ "B", DECK_3, PAPER_LATENCY, 64, 9.82, 0.65, DECK_IV },
	{ "B", DECK_3, PAPER_BANDWIDTH, 0, 84.12, 0.1, DECK_IV },
	{ "A", MPICH, PAPER_LATENCY, 0, 6.6, 0.1, MPICH_TAB_2 },
	{ "A", MPICH, PAPER_BANDWIDTH, 0, 73.8, 0.1, MPICH_TAB_2 },
	{ "B", MPICH, PAPER_LATENCY, 0, 7.26, 0.1, DECK_IV_A },
	{ "B", MPICH, PAPER_BANDWIDTH, 0, 73.80, 0.1, DECK_IV_A },
	{ "A", MPICH_EQUATIONS, PAPER_LATENCY, 0, 4.1, 0.1,
	  "SCI-MPICH, IV.B.2: 6.6 less 2.5" },
	{ "A", SCAMPI, PAPER_LATENCY, 0, 16.2, 0,
	  MPICH_TAB_2 ": 400 MHz, not tuned" },
	{ "A", SCAMPI, PAPER_BANDWIDTH, 0, 65.7, 0, MPICH_TAB_2 },
	{ "B", SCAMPI, PAPER_LATENCY, 0, 6.63, 0, DECK_IV_A },
	{ "B", SCAMPI, PAPER_BANDWIDTH, 0, 78.35, 0, DECK_IV_A },
	{ "A", MADELEINE, PAPER_LATENCY, 4, 4.4, 0,
	  MADELEINE_TAB "table 1: D310, 450 MHz" },
	{ "A", MADELEINE, PAPER_BANDWIDTH, 0, 82.6 * MB20, 0,
	  MADELEINE_TAB "table 1" },
	{ "A", MPICH_MADELEINE, PAPER_LATENCY, 0, 13, 0,
	  MADELEINE_TAB "table 2" },
	{ "A", MPICH_MADELEINE, PAPER_LATENCY, 4, 20, 0,
	  MADELEINE_TAB "table 2" },
	{ "A", MPICH_MADELEINE, PAPER_BANDWIDTH, 0, 82.5 * MB20, 0,
	  MADELEINE_TAB "table 2" },
	{ "A", MADELEINE_TCP, PAPER_LATENCY, 4, 121, 0.005,
	  MADELEINE_TAB "table 1; the profile is fitted to it" },
	{ "A", MADELEINE_TCP, PAPER_BANDWIDTH, 0, 11.2 * MB20, 0.01,
	  MADELEINE_TAB "table 1: 8 MB" },
	{ "A", MPICH_MADELEINE_TCP, PAPER_LATENCY, 0, 130, 0.05,
	  MADELEINE_TAB "table 2" },
	{ "A", MPICH_MADELEINE_TCP, PAPER_LATENCY, 4, 148.7, 0.05,
	  MADELEINE_TAB "table 2" },
	{ "A", MPICH_MADELEINE_TCP, PAPER_BANDWIDTH, 0, 11.2 * MB20, 0.01,
	  MADELEINE_TAB "table 2: 8 MB" },
};

const size_t papers_published_count =
	sizeof(papers_published) / sizeof(papers_published[0]);

static const char *const names[PAPER_SYSTEMS] = {
	[DECK_1] = "DECK protocol 1",
	[DECK_2] = "DECK protocol 2",
	[DECK_3] = "DECK protocol 3",
	[DECK] = "DECK",
	[MPICH_SHORT] = "SCI-MPICH short",
	[MPICH_EAGER] = "SCI-MPICH eager",
	[MPICH_RENDEZVOUS] = "SCI-MPICH rendezvous",
	[MPICH] = "SCI-MPICH",
	[MPICH_EQUATIONS] = "SCI-MPICH, equations",
	[SCAMPI] = "ScaMPI",
	[MADELEINE] = "Madeleine",
	[MPICH_MADELEINE] = "MPICH/Madeleine",
	[MADELEINE_TCP] = "Madeleine, TCP",
	[MPICH_MADELEINE_TCP] = "MPICH/Madeleine, TCP",
};

const char *papers_name(enum paper_system sys)
{
	return names[sys];
}

bool papers_use_tcp(enum paper_system sys)
{
	return sys == MADELEINE_TCP || sys == MPICH_MADELEINE_TCP;
}

static enum paper_system papers_choose(enum paper_system sys, size_t bytes)
{
	if (sys == DECK)
		return bytes <= deck_1.max ? DECK_1 :
		       bytes <= 1024 ? DECK_2 : DECK_3;
	if (sys == MPICH)
		return bytes <= mpich_short.max ? MPICH_SHORT :
		       bytes <= 32768 ? MPICH_EAGER : MPICH_RENDEZVOUS;
	return sys;
}

static double equations_print(const struct vt_profile *p, size_t bytes)
{
	struct mpich_parameters m = mpich_parameters(p);
	double seconds;

	switch (papers_choose(MPICH, bytes)) {
	case MPICH_SHORT:
		seconds = mpich_equation_short(&m, bytes);
		break;
	case MPICH_EAGER:
		seconds = mpich_equation_eager(&m, bytes);
		break;
	default:
		seconds = mpich_equation_rendezvous(&m, bytes);
	}
	return seconds * 1e12;
}

double papers_latency(const struct vt_profile *p, enum paper_system sys,
		      size_t bytes)
{
	switch (papers_choose(sys, bytes)) {
	case DECK_1:
		return papers_pingpong(p, &deck_1, bytes);
	case DECK_2:
		return papers_pingpong(p, &deck_2, bytes);
	case DECK_3:
		return papers_pingpong(p, &deck_3, bytes);
	case MPICH_SHORT:
		return papers_pingpong(p, &mpich_short, bytes);
	case MPICH_EAGER:
		return papers_pingpong(p, &mpich_eager, bytes);
	case MPICH_RENDEZVOUS:
		return papers_pingpong(p, &mpich_rendezvous, bytes);
	case MPICH_EQUATIONS:
		return equations_print(p, bytes);
	case MADELEINE_TCP:
	case MPICH_MADELEINE_TCP:
		return papers_tcp(p, sys == MPICH_MADELEINE_TCP, bytes);
	default:
		return 0;
	}
}

double papers_bandwidth(const struct vt_profile *p, enum paper_system sys)
{
	double best = 0;

	for (size_t bytes = 1024; bytes <= 1 << 20; bytes *= 2) {
		double time = papers_latency(p, sys, bytes);
		double rate = time ? (double)bytes / time * 1e6 : 0;

		best = rate > best ? rate : best;
	}
	return best;
}

double papers_modelled(const struct vt_profile *p,
		       const struct paper_figure *f)
{
	if (f->metric == PAPER_LATENCY)
		return papers_latency(p, f->system, f->bytes) / VT_US;
	return papers_bandwidth(p, f->system);
}

static void figure_print(const struct vt_profile *p, const struct paper_figure *f)
{
	double v = papers_modelled(p, f);

	printf("%-7s %-21s ", f->profile, papers_name(f->system));
	if (f->metric == PAPER_LATENCY)
		printf("%2zu bytes, us %9.2f ", f->bytes, f->value);
	else
		printf("peak, MB/s   %9.2f ", f->value);
	if (v)
		printf("%9.2f %6.1f%%", v, (v / f->value - 1) * 100);
	else
		printf("%9s %7s", "-", "");
	printf("  %s\n", f->source);
}

/* `sci model papers`: the argument is the folder of profiles; default: see vt_profile_find(). */
int papers_main(int argc, char **argv)
{
	const char *folder = argc > 1 ? argv[1] : NULL;
	struct vt_profile p[2];

	if (!vt_profile_find(&p[0], folder, "a") ||
	    !vt_profile_find(&p[1], folder, "b"))
		return 2;
	printf("%-7s %-21s %-12s %9s %9s %7s  %s\n", "profile", "system",
	       "metric", "paper", "modelled", "error", "source");
	for (size_t i = 0; i < papers_published_count; i++)
		figure_print(&p[strcmp(papers_published[i].profile, p[0].name) != 0],
			     &papers_published[i]);
	return 0;
}
