// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/vtime/raw.h"

#define LINE		64u
#define WARM_UP		2u
#define ROUNDS		16u
#define STREAM_BYTES	(256u << 10)	/* of one measurement of a rate */

/* Two nodes, each with memory that the other one has mapped. */
struct bench {
	size_t bytes;
	bool bursts;
	uint8_t *near[2];		/* by node: its own memory */
	volatile uint8_t *far[2];	/* by node: the memory of the other node */
	uint8_t *buf;
	double result;
	double packets[2];
};

static bool bench_run(const struct vt_profile *p, struct bench *b,
		      size_t memory, vt_program fn, unsigned int programs)
{
	struct vt_sim *s = vt_new(p, 2, NULL, 1);
	bool done = s;

	/* packets of stores have whole lines, so the memory has whole lines, too */
	memory = (memory + LINE - 1) / LINE * LINE;
	b->buf = calloc(1, memory);
	for (unsigned int i = 0; done && i < 2; i++) {
		void *mem = NULL;

		/* the papers' drivers read ahead (SCI-MPICH II.A) */
		b->far[!i] = vt_share(vt_node(s, i), vt_node(s, !i), memory,
				      SCI_PCI_ATT_PREFETCH, &mem);
		b->near[i] = mem;
		done = b->buf && b->far[!i];
	}
	for (unsigned int i = 0; done && i < programs; i++)
		vt_start(vt_node(s, i), fn, b);
	done = done && vt_run(s);
	if (s)
		vt_free(s);
	free(b->buf);
	if (!done)
		fprintf(stderr, "sci-model: raw: it does not run\n");
	return done;
}

/* ---- writes ---- */

static void raw_put(struct vt_node *n, struct bench *b, uint8_t value)
{
	memset(b->buf, value, b->bytes);
	vt_store(n, b->far[vt_index(n)], b->buf, b->bytes);
	if (b->bytes % LINE)
		vt_flush(n);
}

static double counter_per_round(struct vt_node *n, enum sci_pci_counter c)
{
	return (double)sim_counter(vt_adapter(n), c) / (WARM_UP + ROUNDS);
}

static void play_write(struct vt_node *n, void *arg)
{
	struct bench *b = arg;
	bool first = !vt_index(n);
	const volatile uint8_t *last = &b->near[vt_index(n)][b->bytes - 1];
	uint64_t begin = 0;

	for (unsigned int i = 1; i <= WARM_UP + ROUNDS; i++) {
		if (i == WARM_UP + 1)
			begin = vt_clock(n);
		if (first)
			raw_put(n, b, (uint8_t)i);
		vt_poll(n, last, (uint8_t)i);
		if (!first)
			raw_put(n, b, (uint8_t)i);
	}
	if (!first)
		return;
	b->result = (double)(vt_clock(n) - begin) / (2 * ROUNDS);
	b->packets[0] = counter_per_round(n, SCI_PCI_CNT_WRITES_64);
	b->packets[1] = counter_per_round(n, SCI_PCI_CNT_WRITES_16);
}

struct raw_write raw_write(const struct vt_profile *p, size_t bytes)
{
	struct bench b = { .bytes = bytes };

	if (!bench_run(p, &b, bytes, play_write, 2))
		return (struct raw_write){ 0 };
	return (struct raw_write){ b.result, b.packets[0], b.packets[1] };
}

static void play_write_rate(struct vt_node *n, void *arg)
{
	struct bench *b = arg;
	unsigned int rounds = (unsigned int)(STREAM_BYTES / b->bytes) + 1;
	uint64_t begin = 0;

	for (unsigned int i = 0; i < WARM_UP + rounds; i++) {
		if (i == WARM_UP)
			begin = vt_clock(n);
		if (b->bursts)
			vt_store(n, b->far[0], b->buf, b->bytes);
		else
			vt_store_words(n, b->far[0], b->buf, b->bytes);
		if (b->bytes % LINE)
			vt_flush(n);
	}
	b->result = (double)b->bytes * rounds /
		    (double)(vt_clock(n) - begin) * 1e12;
}

double raw_write_rate(const struct vt_profile *p, size_t block, bool bursts)
{
	struct bench b = { .bytes = block, .bursts = bursts };

	return bench_run(p, &b, block, play_write_rate, 1) ? b.result : 0;
}

/* ---- reads ---- */

/* A program: load from lines that it has not read before. */
static void play_read(struct vt_node *n, void *arg)
{
	struct bench *b = arg;
	size_t step = (b->bytes + LINE - 1) / LINE * LINE;
	uint64_t begin = vt_clock(n);

	for (unsigned int i = 0; i < ROUNDS; i++)
		vt_load(n, b->buf, b->far[0] + i * step, b->bytes);
	b->result = (double)(vt_clock(n) - begin) / ROUNDS;
}

double raw_read(const struct vt_profile *p, size_t bytes)
{
	struct bench b = { .bytes = bytes };

	return bench_run(p, &b, (bytes + LINE) * ROUNDS, play_read, 1) ?
		       b.result : 0;
}

double raw_read_rate(const struct vt_profile *p, size_t bytes)
{
	double time = raw_read(p, bytes);

	return time ? (double)bytes / time * 1e12 : 0;
}

/* ---- local memory ---- */

static void play_copy(struct vt_node *n, void *arg)
{
	struct bench *b = arg;
	uint64_t begin = vt_clock(n);

	vt_copy(n, b->buf, b->near[0], b->bytes);
	b->result = (double)(vt_clock(n) - begin);
}

double raw_copy_rate(const struct vt_profile *p, size_t bytes)
{
	struct bench b = { .bytes = bytes };

	return bench_run(p, &b, bytes, play_copy, 1) ?
		       (double)bytes / b.result * 1e12 : 0;
}

static void play_poll(struct vt_node *n, void *arg)
{
	struct bench *b = arg;
	uint64_t begin = vt_clock(n);

	vt_poll(n, b->near[0], 0);
	b->result = (double)(vt_clock(n) - begin);
}

double raw_poll(const struct vt_profile *p)
{
	struct bench b = { .bytes = 1 };

	return bench_run(p, &b, 1, play_poll, 1) ? b.result : 0;
}
