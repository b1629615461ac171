// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Memory of a pool: the owner of each chunk, and the nodes that have it mapped. */

#include "pool.h"

#define CONFLICTS_MAX	64	/* of an allocation */

/* ---- words ---- */

static u64 chunk_word(const struct pool *p, enum pool_chunk_state state, u32 length)
{
	return p->generation | (u64)(p->slot + 1) << POOL_CHUNK_SLOT_SHIFT |
	       (u64)state << POOL_CHUNK_STATE_SHIFT |
	       (u64)length << POOL_CHUNK_LEN_SHIFT;
}

static u32 chunk_generation(u64 word)
{
	return (u32)word;
}

/* Return the slot of the owner, or a number that no slot has. */
static u32 chunk_slot(u64 word)
{
	return (u32)(word >> POOL_CHUNK_SLOT_SHIFT & 0xff) - 1;
}

static enum pool_chunk_state chunk_state(u64 word)
{
	return word >> POOL_CHUNK_STATE_SHIFT & 3;
}

static u32 chunk_length(u64 word)
{
	return word >> POOL_CHUNK_LEN_SHIFT;
}

static bool chunk_same_owner(u64 a, u64 b)
{
	const u64 owner = (1ull << POOL_CHUNK_STATE_SHIFT) - 1;

	return !((a ^ b) & owner);
}

/* Return whether a chunk is the first of an allocation that lies within the pool. */
static bool chunk_is_first(const struct pool *p, u32 chunk, u64 word)
{
	return chunk_state(word) != POOL_MORE && chunk_slot(word) < p->form.slots &&
	       chunk_length(word) && chunk_length(word) <= p->form.chunks - chunk;
}

/* ---- take and give back ---- */

/*
 * Free the chunks after @first that have its owner, then @first itself, which has the
 * length: while a chunk of an allocation is taken, its first chunk is taken, too.
 */
static u32 chunk_run_free(struct pool *p, u32 first, u32 length, u64 word)
{
	u32 i, freed = 0;
	u64 more;

	for (i = first + length - 1; i > first; i--) {
		pool_pause();
		more = pool_get64(&pool_chunk(p, i)->word);
		if (chunk_state(more) == POOL_MORE && chunk_same_owner(more, word) &&
		    pool_cas64(&pool_chunk(p, i)->word, more, 0))
			freed++;
	}
	if (pool_cas64(&pool_chunk(p, first)->word, word, 0))
		freed++;
	return freed;
}

static bool chunk_is_free(const struct pool *p, u32 chunk)
{
	return !p->own[chunk] && !pool_get64(&pool_chunk(p, chunk)->word);
}

/* Take @length chunks from @first on, or none.  Return the number of free chunks found. */
static u32 chunk_run_take(struct pool *p, u32 first, u32 length)
{
	u64 head = chunk_word(p, POOL_HELD, length);
	u64 more = chunk_word(p, POOL_MORE, 0);
	u32 n;

	if (!pool_cas64(&pool_chunk(p, first)->word, 0, head))
		return 0;
	for (n = 1; n < length; n++) {
		pool_pause();
		if (!pool_cas64(&pool_chunk(p, first + n)->word, 0, more))
			break;
	}
	if (n < length)
		chunk_run_free(p, first, n, head);
	return n;
}

static u32 chunk_share_end(const struct pool *p)
{
	return pool_share_first(p) + p->form.share;
}

/*
 * Return the first of @length free chunks in a row, at or after @from; chunk_share_end(): none.
 */
static u32 chunk_run_find(const struct pool *p, u32 from, u32 length)
{
	u32 run = 0, end = chunk_share_end(p);

	for (; from < end; from++) {
		pool_pause();
		run = chunk_is_free(p, from) ? run + 1 : 0;
		if (run == length)
			return from + 1 - length;
	}
	return end;
}

/*
 * Allocate. If another node takes a chunk first, both nodes may have given their chunks back, so
 * the search begins anew at its end. It ends after CONFLICTS_MAX conflicts: another machine may
 * store into each run that it finds.
 */
static int chunk_alloc(struct pool *p, u32 length, u32 *first)
{
	u32 start = pool_share_first(p), at = start, got, conflicts = 0, before = 0;

	while (conflicts < CONFLICTS_MAX) {
		at = chunk_run_find(p, at, length);
		if (at == chunk_share_end(p)) {
			if (conflicts == before)
				return -ENOSPC;
			before = conflicts;
			at = start;
			continue;
		}
		got = chunk_run_take(p, at, length);
		if (got == length) {
			memset(p->own + at, 1, length);
			*first = at;
			return length;
		}
		conflicts++;
		at += got + 1;
	}
	return -ENOSPC;
}

int pool_alloc(struct pool *p, u64 bytes, u32 *first, u64 now)
{
	u64 length = bytes / p->form.chunk_size + !!(bytes % p->form.chunk_size);
	int ret;

	if (!length || length > p->form.share || length > POOL_LENGTH_MAX ||
	    !pool_is_current(p) || !pool_has_slot(p))
		return -ENOSPC;
	ret = chunk_alloc(p, length, first);
	if (ret == -ENOSPC && pool_scrub(p, now))
		ret = chunk_alloc(p, length, first);
	return ret;
}

/* Return whether a node may still reach the allocation that begins at @first. */
static bool chunk_is_mapped(struct pool *p, u32 first, u64 now)
{
	u32 slot, generation;

	for (slot = 0; slot < p->form.slots; slot++) {
		generation = pool_get32(pool_map_word(p, slot, first));
		if (!generation)
			continue;
		if (!pool_generation_is_over(p, slot, generation, now))
			return true;
		/* where caches are not coherent, only the slot's node stores to its words */
		if (!p->form.incoherent)
			pool_cas32(pool_map_word(p, slot, first), generation, 0);
	}
	return false;
}

static void chunk_set_state(struct pool *p, u32 first, u32 length,
			    enum pool_chunk_state state)
{
	u64 word = pool_get64(&pool_chunk(p, first)->word);
	u64 want = chunk_word(p, state, length);

	/* only this node may change the word: a difference is a fault of another node */
	if (!chunk_same_owner(word, want) ||
	    !pool_cas64(&pool_chunk(p, first)->word, word, want))
		p->corrupt++;
}

void pool_free(struct pool *p, u32 first, u32 chunks, u64 now)
{
	memset(p->own + first, 0, chunks);
	/* the words may be data of the new pool now */
	if (!pool_is_current(p))
		return;
	chunk_set_state(p, first, chunks, POOL_FREED);
	pool_full_barrier();
	if (!chunk_is_mapped(p, first, now))
		chunk_run_free(p, first, chunks, chunk_word(p, POOL_FREED, chunks));
}

/* ---- expose and map ---- */

u64 pool_expose(struct pool *p, u32 first, u32 chunks, u32 serial)
{
	/* without its slot this node may have lost the chunk to another node */
	if (pool_is_current(p) && pool_has_slot(p)) {
		pool_set32(&pool_chunk(p, first)->serial, serial);
		chunk_set_state(p, first, chunks, POOL_EXPOSED);
	}
	return (u64)serial << 32 | first;
}

void pool_hide(struct pool *p, u32 first, u32 chunks)
{
	chunk_set_state(p, first, chunks, POOL_HELD);
}

/* Return the length of the memory at @first if @node exposes it as @serial, else 0. */
static u32 chunk_exposed_length(struct pool *p, u32 node, u32 first, u32 serial)
{
	u64 word = pool_get64(&pool_chunk(p, first)->word);

	/* read the word before the serial: the owner stores the serial before the word */
	if (pool_get32(&pool_chunk(p, first)->serial) != serial ||
	    chunk_state(word) != POOL_EXPOSED || !chunk_is_first(p, first, word) ||
	    pool_slot_node(chunk_slot(word)) != node)
		return 0;
	if (pool_slot_word(p, chunk_slot(word)) !=
	    (chunk_generation(word) | POOL_SLOT_ACTIVE))
		return 0;
	return chunk_length(word);
}

/*
 * Store this node's generation into its map word. The word may have the generation of an
 * earlier node of the slot, which may still store: pool_unmap() restores that generation. A
 * later generation means that the slot has another owner.
 */
static bool chunk_announce(struct pool *p, u32 chunk)
{
	__le32 *map = pool_map_word(p, p->slot, chunk);
	u32 before = pool_get32(map);

	if (before && (int)(p->generation - before) <= 0)
		return false;
	p->mapped[chunk].before = before;
	return pool_cas32(map, before, p->generation);
}

int pool_map(struct pool *p, u32 node, u64 base, u32 *first, u32 *chunks)
{
	u32 chunk = (u32)base, length;

	if (chunk >= p->form.chunks || !pool_is_current(p))
		return -ENOENT;
	if (!p->mapped[chunk].count && !chunk_announce(p, chunk))
		return -ENOENT;
	p->mapped[chunk].count++;
	/* see layout.h: this node stores its map word before it reads the owner's word */
	pool_full_barrier();
	length = pool_has_slot(p) ? chunk_exposed_length(p, node, chunk, base >> 32) : 0;
	if (!length) {
		pool_unmap(p, chunk);
		return -ENOENT;
	}
	*first = chunk;
	*chunks = length;
	return 0;
}

/* Unmap. If the slot has another owner now, the map word stays as it is. */
void pool_unmap(struct pool *p, u32 first)
{
	struct pool_mapped *m = &p->mapped[first];

	if (!--m->count)
		pool_cas32(pool_map_word(p, p->slot, first), p->generation, m->before);
}

/* ---- scrub ---- */

/* Return whether the owner of the chunk has ended and cannot store, or this node must free it. */
static bool chunk_is_orphan(struct pool *p, u64 word, u64 now)
{
	u32 slot = chunk_slot(word);

	if (slot == p->slot && chunk_generation(word) == p->generation)
		return chunk_state(word) == POOL_FREED;
	if (slot >= p->form.slots)
		return false;
	return pool_generation_is_over(p, slot, chunk_generation(word), now);
}

/*
 * Return whether @chunk belongs to no allocation: no first chunk of its owner comes before it.
 * This happens if an owner takes a chunk after it was expelled. The owner has ended, so a run of
 * its chunks only gets shorter, from its end. @steps limits the search in a corrupt pool.
 */
static bool chunk_is_stray(const struct pool *p, u32 chunk, u64 word, u32 *steps)
{
	u64 before;
	u32 i;

	for (i = chunk; i--;) {
		pool_pause();
		if (!*steps)
			return false;
		--*steps;
		before = pool_get64(&pool_chunk(p, i)->word);
		if (!chunk_same_owner(before, word))
			return true;
		if (chunk_state(before) != POOL_MORE)
			return chunk_length(before) <= chunk - i;
	}
	return true;
}

static u32 chunk_scrub(struct pool *p, u32 chunk, u64 word, u32 *steps, u64 now)
{
	if (!chunk_is_orphan(p, word, now))
		return 0;
	if (chunk_state(word) == POOL_MORE)
		return chunk_is_stray(p, chunk, word, steps) &&
		       pool_cas64(&pool_chunk(p, chunk)->word, word, 0);
	if (chunk_is_mapped(p, chunk, now))
		return 0;
	return chunk_run_free(p, chunk, chunk_length(word), word);
}

/* Return how many chunks from @first on its owner took. The owner may have died meanwhile. */
static u32 chunk_run_length(const struct pool *p, u32 first, u64 word)
{
	u32 n;
	u64 more;

	for (n = 1; n < chunk_length(word); n++) {
		pool_pause();
		more = pool_get64(&pool_chunk(p, first + n)->word);
		if (chunk_state(more) != POOL_MORE || !chunk_same_owner(more, word))
			break;
	}
	return n;
}

u32 pool_scrub(struct pool *p, u64 now)
{
	u32 chunk, length, freed = 0, steps = 4 * p->form.chunks;
	u64 word;

	for (chunk = pool_share_first(p); chunk < chunk_share_end(p); chunk += length) {
		pool_pause();
		word = pool_get64(&pool_chunk(p, chunk)->word);
		length = 1;
		if (!word || p->own[chunk])
			continue;
		if (chunk_is_first(p, chunk, word)) {
			length = chunk_run_length(p, chunk, word);
		} else if (chunk_state(word) != POOL_MORE) {
			p->corrupt++;
			continue;
		}
		freed += chunk_scrub(p, chunk, word, &steps, now);
	}
	return freed;
}
