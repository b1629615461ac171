// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Nodes of a pool: slots, leases and generations. */

#include "pool.h"

static u32 slot_generation(u64 word)
{
	return (u32)word;
}

static bool slot_is_active(u64 word)
{
	return word & POOL_SLOT_ACTIVE;
}

static bool slot_node_valid(const struct pool *p, u32 node)
{
	return node && !(node % POOL_NODE_STEP) &&
	       node / POOL_NODE_STEP <= p->form.slots;
}

static u32 slot_of_node(u32 node)
{
	return node / POOL_NODE_STEP - 1;
}

/*
 * Return the generation after @last, which is never 0: 0 in a map word means that it is not in
 * use. The first generation of a pool is random: a machine that hung while the pool was formatted
 * again must not take words of the new pool for its own.
 */
static u32 slot_next_generation(const struct pool *p, u32 last)
{
	u32 next = last ? last + 1 : (u32)p->form.id;

	return next ? next : 1;
}

u64 pool_slot_word(const struct pool *p, u32 slot)
{
	u64 word = pool_get64(&pool_slot(p, slot)->word);
	u32 by;

	if (!p->form.incoherent || !slot_is_active(word))
		return word;
	for (by = 0; by < p->form.slots; by++)
		if (pool_get32(pool_expelled(p, by, slot)) == slot_generation(word))
			return word & ~POOL_SLOT_ACTIVE;
	return word;
}

/* ---- other nodes ---- */

static void slot_observe(struct pool *p, u32 slot, u64 now)
{
	struct pool_seen *seen = &p->seen[slot];
	u64 word = pool_slot_word(p, slot);
	u64 beat = pool_get64(pool_beat_word(p, slot));

	if (word != seen->word) {
		seen->word = word;
		seen->settled = now + p->form.quarantine;
		seen->alive = now;
	}
	if (beat != seen->beat) {
		seen->beat = beat;
		seen->alive = now;
	}
}

static void slot_expel(struct pool *p, u32 slot, u64 now)
{
	u64 word = p->seen[slot].word;

	if (p->form.incoherent && p->generation)
		pool_set32(pool_expelled(p, p->slot, slot), slot_generation(word));
	else if (!p->form.incoherent)
		pool_cas64(&pool_slot(p, slot)->word, word, word & ~POOL_SLOT_ACTIVE);
	slot_observe(p, slot, now);
}

static void slot_check(struct pool *p, u32 slot, u64 now)
{
	struct pool_seen *seen = &p->seen[slot];

	slot_observe(p, slot, now);
	if (slot_is_active(seen->word) && now - seen->alive >= p->form.lease)
		slot_expel(p, slot, now);
}

/* Restart all leases: this node has not checked for so long that it may have missed beats. */
static void slots_forgive(struct pool *p, u64 now)
{
	u32 slot;

	for (slot = 0; slot < p->form.slots; slot++)
		p->seen[slot].alive = now;
}

static void slots_check(struct pool *p, u64 now)
{
	u32 slot;

	if (now - p->looked >= p->form.lease / 2)
		slots_forgive(p, now);
	p->looked = now;
	for (slot = 0; slot < p->form.slots; slot++)
		if (slot != p->slot || !p->generation)
			slot_check(p, slot, now);
}

/* ---- this node ---- */

/* Clear the map words that an earlier use of this generation has left. */
static void slot_clear_maps(struct pool *p, u32 slot)
{
	u32 chunk;

	for (chunk = 0; chunk < p->form.chunks; chunk++) {
		pool_pause();
		if (pool_get32(pool_map_word(p, slot, chunk)) == p->generation)
			pool_cas32(pool_map_word(p, slot, chunk), p->generation, 0);
	}
}

static void slot_own(struct pool *p, u32 slot, u32 generation)
{
	p->slot = slot;
	p->generation = generation;
	p->seen[slot].word = generation | POOL_SLOT_ACTIVE;
}

static int slot_take(struct pool *p, u32 slot)
{
	struct pool_slot *s = pool_slot(p, slot);
	u64 word = pool_get64(&s->word);
	u32 generation = slot_next_generation(p, slot_generation(word));

	if (slot_is_active(word))
		return -EEXIST;
	if (!pool_cas64(&s->word, word, generation | POOL_SLOT_ACTIVE))
		return -EEXIST;
	slot_own(p, slot, generation);
	return 0;
}

/* ---- a slot, where caches are not coherent ---- */

/*
 * Return whether a node may take a slot. The last node may have hung in the middle of a store:
 * then its line overwrites what the next node stores, unless that node waits.
 */
static bool slot_is_free(struct pool *p, u32 slot, u64 now)
{
	if (!slot_is_active(pool_get64(&pool_slot(p, slot)->word)))
		return true;
	/* a node that has taken the slot meanwhile is not silent */
	slot_observe(p, slot, now);
	return now - p->seen[slot].alive >= p->form.quarantine;
}

/* Return the newer of two generations; 0 is none. */
static u32 slot_newer(u32 a, u32 b)
{
	return !b || (int)(a - b) > 0 ? a : b;
}

/*
 * Return the newest generation that the slot had. A node that hung may have stored an old one
 * into the slot, but words of newer ones may be left.
 */
static u32 slot_newest_generation(const struct pool *p, u32 slot)
{
	const struct pool_slot *s = pool_slot(p, slot);
	u32 newest = slot_generation(pool_get64(&s->word)), by, chunk;
	u64 word;

	newest = slot_newer(newest, pool_get32(&s->dropped));
	for (by = 0; by < p->form.slots; by++)
		newest = slot_newer(newest, pool_get32(pool_expelled(p, by, slot)));
	for (chunk = 0; chunk < p->form.chunks; chunk++) {
		pool_pause();
		newest = slot_newer(newest, pool_get32(pool_map_word(p, slot, chunk)));
		if (chunk / p->form.share != slot)
			continue;
		word = pool_get64(&pool_chunk(p, chunk)->word);
		if (word)
			newest = slot_newer(newest, slot_generation(word));
	}
	return newest;
}

/*
 * Of several nodes that store their tokens, at most one takes the slot. If the token of another
 * node is the last one, that node reads the slot's word after this node has stored it.
 */
static int slot_take_incoherent(struct pool *p, u32 slot, u64 now)
{
	struct pool_slot *s = pool_slot(p, slot);
	u32 generation;

	if (!slot_is_free(p, slot, now))
		return -EEXIST;
	pool_set64(&s->claim, p->token);
	if (!slot_is_free(p, slot, now))
		return -EEXIST;
	generation = slot_next_generation(p, slot_newest_generation(p, slot));
	pool_set64(&s->word, generation | POOL_SLOT_ACTIVE);
	if (pool_get64(&s->claim) != p->token)
		return -EEXIST;
	slot_own(p, slot, generation);
	return 0;
}

/* ---- joining and leaving ---- */

static int slot_try(struct pool *p, u32 slot, u64 now)
{
	return p->form.incoherent ? slot_take_incoherent(p, slot, now) : slot_take(p, slot);
}

static int slot_find(struct pool *p, u32 node, u64 now)
{
	u32 slot;

	if (node)
		return slot_try(p, slot_of_node(node), now);
	for (slot = 0; slot < p->form.slots; slot++)
		if (!slot_try(p, slot, now))
			return 0;
	return -ENOSPC;
}

static void slot_beat(struct pool *p)
{
	__le64 *beat = pool_beat_word(p, p->slot);

	pool_set64(beat, pool_get64(beat) + 1);
}

static void slot_introduce(struct pool *p, u32 doorbell, const char *name)
{
	struct pool_slot *s = pool_slot(p, p->slot);
	u8 text[POOL_NAME] = { 0 };
	size_t n = strlen(name);

	memcpy(text, name, n < POOL_NAME ? n : POOL_NAME - 1);
	pool_put_bytes(s->name, text, sizeof(text));
	pool_set32(&s->doorbell, doorbell);
	slot_beat(p);
}

bool pool_has_slot(const struct pool *p)
{
	return pool_slot_word(p, p->slot) == (p->generation | POOL_SLOT_ACTIVE);
}

int pool_join(struct pool *p, u32 node, u32 doorbell, const char *name, u64 now)
{
	int ret;

	if (node && !slot_node_valid(p, node))
		return -EINVAL;
	if (!pool_is_current(p))
		return -ESTALE;
	slots_check(p, now);
	ret = slot_find(p, node, now);
	if (ret)
		return ret;
	/*
	 * The words may have this generation from a time before the counter wrapped. Where caches
	 * are not coherent, the generation is newer than all words.
	 */
	if (!p->form.incoherent)
		slot_clear_maps(p, p->slot);
	p->seen[p->slot].settled = now + p->form.quarantine;
	slot_introduce(p, doorbell, name);
	return 0;
}

int pool_beat(struct pool *p, u64 now)
{
	/* only a node that is still in the pool may store its heartbeat */
	if (!pool_has_slot(p))
		return -ESTALE;
	slot_beat(p);
	slots_check(p, now);
	return 0;
}

void pool_leave(struct pool *p)
{
	struct pool_slot *s = pool_slot(p, p->slot);
	u64 word = p->generation | POOL_SLOT_ACTIVE;

	if (pool_is_current(p)) {
		pool_set32(&s->dropped, p->generation);
		pool_cas64(&s->word, word, p->generation);
	}
	p->generation = 0;
}

bool pool_node_is_active(struct pool *p, u32 node)
{
	return slot_node_valid(p, node) &&
	       slot_is_active(pool_slot_word(p, slot_of_node(node)));
}

int pool_node_doorbell(struct pool *p, u32 node)
{
	u32 number;

	if (!slot_node_valid(p, node))
		return -1;
	number = pool_get32(&pool_slot(p, slot_of_node(node))->doorbell);
	return number && number <= 0x10000 ? (int)number - 1 : -1;
}

bool pool_generation_is_over(struct pool *p, u32 slot, u32 generation, u64 now)
{
	u64 word = pool_slot_word(p, slot);
	u32 dropped = pool_get32(&pool_slot(p, slot)->dropped);

	if (word == (generation | POOL_SLOT_ACTIVE))
		return false;
	/* the node may have ended since the last check */
	slot_observe(p, slot, now);
	return dropped == generation || now >= p->seen[slot].settled;
}
