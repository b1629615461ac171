/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* A pool in the test's memory, and nodes that use it. */
#ifndef SELFTESTS_UNIT_POOL_MODEL_H
#define SELFTESTS_UNIT_POOL_MODEL_H

#include <stdlib.h>
#include <string.h>

#include "kmod/pool/pool.h"
#include "selftests/harness.h"

#define MODEL_CHUNK	4096u
#define MODEL_SLOTS	3u
#define MODEL_LEASE_MS	1000u
#define MODEL_QUAR_MS	10000u
#define MODEL_MS	1000000ull
#define MODEL_LEASE	(MODEL_LEASE_MS * MODEL_MS)
#define MODEL_QUAR	(MODEL_QUAR_MS * MODEL_MS)

static inline int model_format(void *mem, uint64_t size)
{
	return pool_format(mem, size, MODEL_CHUNK, MODEL_SLOTS, MODEL_LEASE_MS,
			   MODEL_QUAR_MS, 77);
}

/* Zeroed memory. The sanitizers see accesses beyond its end. */
static inline void *model_memory(uint64_t size)
{
	void *mem = aligned_alloc(4096, size);

	CHECK(mem != NULL);
	return memset(mem, 0, size);
}

static inline void model_open(struct pool *p, void *mem, uint64_t size)
{
	memset(p, 0, sizeof(*p));
	CHECK_EQ(pool_open(p, mem, size), 0);
	p->own = calloc(p->form.chunks, sizeof(*p->own));
	p->mapped = calloc(p->form.chunks, sizeof(*p->mapped));
	CHECK(p->own && p->mapped);
}

static inline void model_close(struct pool *p)
{
	free(p->own);
	free(p->mapped);
	p->own = NULL;
	p->mapped = NULL;
}

static inline u32 model_count_used(const struct pool *p)
{
	u32 chunk, n = 0;

	for (chunk = 0; chunk < p->form.chunks; chunk++)
		n += pool_get64(&pool_chunk(p, chunk)->word) != 0;
	return n;
}

static inline uint32_t model_random(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)((*state >> 33) % below);
}

#endif
