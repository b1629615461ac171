// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Measured values of the profiles' machines, beside the model. */
#include <stdio.h>
#include <string.h>

#include "sim/vtime/command.h"
#include "sim/vtime/raw.h"

#define MPICH	"SCI-MPICH, table 1"
#define DECK	"DECK, II.E"

const struct raw_figure raw_published[] = {
	{ "A", RAW_WRITE, 4, 2.7, 0.01, MPICH ", L_rw" },
	{ "A", RAW_WRITE, 64, 4.0, 0.1, "SCI-MPICH, III.B.1: about" },
	{ "A", RAW_READ, 4, 4.4, 0.01, MPICH ", L_rr" },
	{ "A", RAW_POLL, 4, 0.031, 0.01, MPICH ", L_lr" },
	{ "A", RAW_BURSTS, 8192, 76.3, 0.01, MPICH ", B_cr" },
	{ "A", RAW_COPY, 8192, 334.0, 0.01, MPICH ", B_cl" },
	{ "B", RAW_WRITE, 4, 2.5, 0.2, "DECK, I: 2 to 3" },
	{ "B", RAW_BURSTS, 512, 87.71, 0.02, DECK ": from 512 bytes on" },
	{ "B", RAW_BURSTS, 65536, 87.71, 0.01, DECK },
	{ "B", RAW_WORDS, 512, 49.94, 0.02, DECK ": from 512 bytes on" },
	{ "B", RAW_WORDS, 65536, 49.94, 0.01, DECK },
	{ "C", RAW_WRITE, 4, 0.52, 0.42, "Dolphin: 0.3 in a CPU, 0.74 gen 2" },
};

const size_t raw_published_count =
	sizeof(raw_published) / sizeof(raw_published[0]);

double raw_modelled(const struct vt_profile *p, const struct raw_figure *f)
{
	switch (f->what) {
	case RAW_WRITE:
		return raw_write(p, f->bytes).latency / VT_US;
	case RAW_READ:
		return raw_read(p, f->bytes) / VT_US;
	case RAW_POLL:
		return raw_poll(p) / VT_US;
	case RAW_BURSTS:
		return raw_write_rate(p, f->bytes, true) / 1e6;
	case RAW_WORDS:
		return raw_write_rate(p, f->bytes, false) / 1e6;
	case RAW_COPY:
		return raw_copy_rate(p, f->bytes) / 1e6;
	}
	return 0;
}

static const char *const names[] = {
	[RAW_WRITE] = "remote write, us",
	[RAW_READ] = "remote read, us",
	[RAW_POLL] = "local read, us",
	[RAW_BURSTS] = "stores in bursts, MB/s",
	[RAW_WORDS] = "stores of words, MB/s",
	[RAW_COPY] = "local copy, MB/s",
};

static void published_print(const struct vt_profile *p)
{
	printf("%-24s %6s %9s %9s %7s  %s\n", "", "bytes", "measured",
	       "modelled", "error", "source");
	for (size_t i = 0; i < raw_published_count; i++) {
		const struct raw_figure *f = &raw_published[i];
		double v;

		if (strcmp(f->profile, p->name))
			continue;
		v = raw_modelled(p, f);
		printf("%-24s %6zu %9.3f %9.3f %6.1f%%  %s\n", names[f->what],
		       f->bytes, f->value, v, (v / f->value - 1) * 100,
		       f->source);
	}
}

static void writes_print(const struct vt_profile *p)
{
	static const size_t sizes[] = {
		1, 4, 8, 16, 17, 32, 48, 60, 63, 64, 65, 80, 96, 112, 124, 127,
		128, 129, 144, 188, 191, 192, 193, 252, 255, 256,
	};

	printf("\nremote write %11s %9s %9s\n", "us", "64 B", "16 B");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct raw_write w = raw_write(p, sizes[i]);

		printf("%10zu %13.3f %9.0f %9.0f\n", sizes[i],
		       w.latency / VT_US, w.packets64, w.packets16);
	}
}

static void rates_print(const struct vt_profile *p)
{
	printf("\nMB/s, blocks %11s %9s %9s %9s\n", "bursts", "words", "reads",
	       "copy");
	for (size_t block = 64; block <= 65536; block *= 2)
		printf("%10zu %13.2f %9.2f %9.2f %9.2f\n", block,
		       raw_write_rate(p, block, true) / 1e6,
		       raw_write_rate(p, block, false) / 1e6,
		       raw_read_rate(p, block) / 1e6,
		       raw_copy_rate(p, block) / 1e6);
}

int raw_main(int argc, char **argv)
{
	struct vt_profile p;

	if (argc != 2) {
		fputs("usage: sci model raw PROFILE\n", stderr);
		return 2;
	}
	if (!vt_profile_find(&p, NULL, argv[1]))
		return 2;
	printf("profile %s: %s\n\n", p.name, p.title);
	published_print(&p);
	writes_print(&p);
	rates_print(&p);
	return 0;
}
