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

#define MODEL_ID	77u

#define MODEL_CACHES	8u

/* flags of the pools that model_format() makes */
static u32 model_flags;

/**
 * struct model_cache - the cache of a node, for pools that are not coherent
 * @memory: the pool
 * @lines: the copy of the pool that the node loads from and stores to
 * @clean: the lines as they were when they were loaded
 */
struct model_cache {
	uint8_t *memory, *lines, *clean;
	uint64_t size;
};

static struct model_cache model_caches[MODEL_CACHES];

static inline struct model_cache *model_cache_of(const void *p)
{
	const uint8_t *at = p;
	unsigned int i;

	for (i = 0; i < MODEL_CACHES; i++) {
		struct model_cache *c = &model_caches[i];

		if (c->lines && at >= c->lines && at < c->lines + c->size)
			return c;
	}
	return NULL;
}

/* Write changed lines back as a whole, and load lines again. */
static inline void model_flush(const void *p, size_t n)
{
	struct model_cache *c = model_cache_of(p);
	uint64_t at, end;

	if (!c)
		return;
	at = (uint64_t)((const uint8_t *)p - c->lines);
	end = at + n;
	for (at -= at % POOL_LINE; at < end; at += POOL_LINE) {
		if (memcmp(c->lines + at, c->clean + at, POOL_LINE))
			memcpy(c->memory + at, c->lines + at, POOL_LINE);
		memcpy(c->lines + at, c->memory + at, POOL_LINE);
		memcpy(c->clean + at, c->memory + at, POOL_LINE);
	}
}

/* A cache has lines of any time before: here, those of the time when the node booted. */
static inline void *model_cache_new(void *mem, uint64_t size)
{
	struct model_cache *c = model_caches;

	while (c->lines) {
		c++;
		CHECK(c < model_caches + MODEL_CACHES);
	}
	c->memory = mem;
	c->size = size;
	c->lines = aligned_alloc(4096, size);
	c->clean = aligned_alloc(4096, size);
	CHECK(c->lines && c->clean);
	memcpy(c->lines, mem, size);
	memcpy(c->clean, mem, size);
	pool_cache_hook = model_flush;
	return c->lines;
}

static inline int model_format(void *mem, uint64_t size)
{
	return pool_format(mem, size, MODEL_CHUNK, MODEL_SLOTS, MODEL_LEASE_MS,
			   MODEL_QUAR_MS, MODEL_ID, model_flags);
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
	static u64 token;

	memset(p, 0, sizeof(*p));
	p->token = ++token;
	if (model_flags & POOL_INCOHERENT)
		mem = model_cache_new(mem, size);
	CHECK_EQ(pool_open(p, mem, size), 0);
	p->own = calloc(p->form.chunks, sizeof(*p->own));
	p->mapped = calloc(p->form.chunks, sizeof(*p->mapped));
	CHECK(p->own && p->mapped);
}

/* The lines that the node has not written back are lost. */
static inline void model_close(struct pool *p)
{
	struct model_cache *c = p->mem ? model_cache_of(p->mem) : NULL;

	if (c) {
		free(c->lines);
		free(c->clean);
		c->lines = NULL;
	}
	p->mem = NULL;
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
