// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Compare DMA with stores: SCIStartDmaTransfer() and a wait for its end, and
 * SCIMemCpy() of the same block from the same local segment.
 *
 * usage: dma [ROUNDS]
 *
 * A sample copies consecutive blocks, at most 512, of a window of max(block, 16 MiB) of
 * both segments. The next sample goes on behind them, so that small blocks are not in
 * the cache. A round takes one sample of each way, in alternating order. GB/s (10^9) are medians; the ratio is the median
 * of ratios.
 */
#define _GNU_SOURCE

#include "bench.h"

#define SEGMENT		1u
#define WINDOW		((size_t)16 << 20)
#define MIN_BLOCK	((size_t)64)
#define MAX_BLOCK	((size_t)64 << 20)
#define MAX_ROUNDS	1001u
#define SAMPLE		512u		/* most blocks: small ones are slow */

struct ends {
	sci_local_segment_t lseg;
	char *src;
	sci_remote_segment_t rseg;
	sci_map_t rmap;
	sci_dma_queue_t queue;
	size_t next;			/* offset of the next block */
};

static void hold(void *arg)
{
	(void)arg;
	bench_export(bench_open(BENCH_PEER), SEGMENT, MAX_BLOCK);
	for (;;)
		pause();
}

static void by_dma(struct ends *e, size_t off, size_t len)
{
	BENCH_OK(SCIStartDmaTransfer(e->queue, e->lseg, e->rseg, off, len, off,
				     NULL, NULL, SCI_FLAG_DMA_WAIT, &err));
}

static void by_store(struct ends *e, size_t off, size_t len)
{
	BENCH_OK(SCIMemCpy(NULL, e->src + off, e->rmap, off, len, 0, &err));
}

static double sample(void (*copy)(struct ends *e, size_t off, size_t len),
		     struct ends *e, size_t block)
{
	size_t window = block > WINDOW ? block : WINDOW;
	size_t n = window / block < SAMPLE ? window / block : SAMPLE;
	uint64_t begin = bench_ns();
	size_t i;

	for (i = 0; i < n; i++) {
		copy(e, e->next, block);
		e->next = e->next + 2 * block <= window ? e->next + block : 0;
	}
	return (double)(n * block) / (double)(bench_ns() - begin);
}

static void measure(struct ends *e, size_t block, unsigned int rounds)
{
	static double dma[MAX_ROUNDS], store[MAX_ROUNDS], ratio[MAX_ROUNDS];
	char size[24];
	unsigned int i;

	e->next = 0;
	for (i = 0; i < rounds; i++) {
		if (i % 2)
			dma[i] = sample(by_dma, e, block);
		store[i] = sample(by_store, e, block);
		if (i % 2 == 0)
			dma[i] = sample(by_dma, e, block);
		ratio[i] = dma[i] / store[i];
	}
	printf("%8s %10.3f %10.3f %8.3f %12.2f\n", bench_size(block, size),
	       bench_median(dma, rounds), bench_median(store, rounds),
	       bench_median(ratio, rounds),
	       (double)block / bench_median(dma, rounds) / 1e3);
}

static void open_ends(struct ends *e)
{
	sci_desc_t sd = bench_open(BENCH_NODE);
	sci_map_t map;

	BENCH_OK(SCICreateSegment(sd, &e->lseg, SEGMENT, MAX_BLOCK, NULL, NULL,
				  0, &err));
	BENCH_OK(SCIPrepareSegment(e->lseg, 0, 0, &err));
	BENCH_OK(e->src = SCIMapLocalSegment(e->lseg, &map, 0, MAX_BLOCK, NULL,
					     0, &err));
	memset(e->src, 0x5c, MAX_BLOCK);
	e->rseg = bench_connect(sd, BENCH_PEER, SEGMENT);
	memset((void *)bench_map(e->rseg, &e->rmap), 0, MAX_BLOCK);
	BENCH_OK(SCICreateDMAQueue(sd, &e->queue, 0, 1, 0, &err));
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 15;
	struct ends e;
	size_t block;
	pid_t peer;

	if (!rounds || rounds > MAX_ROUNDS)
		bench_die("usage: dma [ROUNDS]");
	bench_begin();
	peer = bench_spawn(hold, NULL);
	open_ends(&e);
	printf("DMA and wait against SCIMemCpy(), GB/s (10^9), %lu rounds, not pinned\n",
	       rounds);
	printf("%8s %10s %10s %8s %12s\n", "block", "DMA", "SCIMemCpy", "ratio",
	       "us per DMA");
	for (block = MIN_BLOCK; block <= MAX_BLOCK; block *= 4)
		measure(&e, block, (unsigned int)rounds);
	bench_stop(peer);
	SCITerminate();
	return 0;
}
