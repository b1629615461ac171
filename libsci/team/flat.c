// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: collective calls through shared memory
 *
 * Each member has an area that all members map: a cache line with the last epoch that it has
 * finished, a ring of slots with room for short data, and a ring of chunks for longer data. A
 * collective call consists of *epochs*, and their number is the same on all members. In each epoch
 * a member may publish one slot, and it takes the data that it needs from the slots of other
 * members. Only the owner writes to its area, except for the waiters words, which a member sets
 * before it sleeps, and the bye bytes.
 *
 * Epoch e is in slot e % SLOTS, and in chunk e % CHUNKS if it needs one. A member publishes epoch e
 * after all members have finished the epoch that was in this slot before. So a member that only
 * publishes can run ahead by the whole ring: this makes long calls a pipeline.
 *
 * Data in the symmetric heap need not be copied into a chunk: then the slot contains the position
 * of the data, and the call returns when all members have taken the data.
 *
 * Where the kernel allows it, and SCI_TEAM_SINGLE_COPY_MIN asks for it, long data in private
 * memory need not be copied either: then the slot contains its address, and members read it with
 * sci_peer_read_private(). This saves a copy that only one member would use.
 *
 * When a member dies, its memory reads as zeros from some moment on. So after a member has taken
 * data, it reads the epoch in the slot once more, and, for data in the heap, the mark at the start
 * of the heap.
 */

#include "libsci/team/flat.h"

#include <stdlib.h>

#define PIECE_MIN	16u		/* bytes of a chunk for each member */

int flat_open(struct sci_team *t)
{
	size_t least = (PIECE_MIN * (size_t)t->size + 4095) & ~(size_t)4095;

	t->chunk = t->size <= 8 ? 65536 : t->size <= 32 ? 32768 : 16384;
	t->chunk = t->chunk < least ? least : t->chunk;
	t->epoch = 1;
	t->min_done = 0;
	t->readable = -1;
	if (!t->flat || t->size < SHARED_MEMBERS)
		return 0;
	/* a share is whole elements */
	t->share = malloc(t->chunk / (size_t)t->size + TEAM_ELEMENT_MAX);
	return t->share ? 0 : -ENOMEM;
}

/* Return the byte in the area of @of that @from sets when it does not read that area any more. */
static uint8_t *bye_of(const struct sci_team *t, int of, int from)
{
	return (uint8_t *)t->members[of].area + header_size() + from;
}

void flat_bye_send(struct sci_team *t)
{
	for (int i = 0; i < t->size; i++) {
		if (!t->members[i].area)
			continue;
		sci_store_release(bye_of(t, i, t->rank), 1);
		world_wake(t->world, t->members[i].world);
	}
}

void flat_bye_wait(struct sci_team *t)
{
	struct team_world *w = t->world;
	struct team_wait wait;

	for (int i = 0; i < t->size; i++) {
		team_wait_init(&wait, -1);
		wait.own = true;
		while (!sci_load_acquire(bye_of(t, t->rank, i)) &&
		       !world_dead(w, t->members[i].world))
			team_wait_more(w, &wait);
	}
}

size_t flat_area_size(struct sci_team *t)
{
	return chunks_at(t) + CHUNKS * t->chunk;
}

void flat_set_readable(struct sci_team *t, bool readable)
{
	sci_store_relaxed(&t->area->readable, readable);
}

/* ---- epochs ---- */

/* Return the number of members whose data is taken. flat_source() returns the rank of each. */
static int flat_sources(const struct sci_coll *c, enum from from)
{
	const struct sci_team *t = c->team;

	switch (from) {
	case FROM_ROOT:
		return 1;
	case FROM_ALL:
		return t->size - 1;
	case FROM_DOWN:
		return t->size;
	case FROM_BELOW:
		return t->rank + 1;
	default:
		return 0;
	}
}

static int flat_source(const struct sci_coll *c, enum from from, int i)
{
	const struct sci_team *t = c->team;
	int rank;

	switch (from) {
	case FROM_ROOT:
		return c->root;
	case FROM_DOWN:
		return t->size - 1 - i;
	case FROM_BELOW:
		return t->rank - i;
	default:
		rank = t->rank + 1 + i;
		return rank < t->size ? rank : rank - t->size;
	}
}

/* Set the word that the caller waits for. Return -EAGAIN. */
static int flat_wait_on(struct sci_coll *c, uint32_t *word, uint32_t *waiters, uint32_t seen)
{
	c->wait.word = word;
	c->wait.waiters = waiters;
	c->wait.seen = seen;
	return -EAGAIN;
}

/*
 * Return 0 if all members have finished epoch @need, else -EAGAIN. Members may be far ahead of @need:
 * remember how far, because reading their words takes the cache lines in which they write.
 */
static int members_test_done(struct sci_coll *c, uint32_t need)
{
	struct sci_team *t = c->team;
	uint32_t least = t->epoch;

	if ((int32_t)(t->min_done - need) >= 0)
		return 0;
	for (int i = 0; i < t->size; i++) {
		struct flat_area *a = t->members[i].area;
		uint32_t done;

		if (i == t->rank)
			continue;
		done = sci_load_acquire(&a->done);
		if ((int32_t)(done - need) < 0)
			return flat_wait_on(c, &a->done, &a->waiters, done);
		if ((int32_t)(done - least) < 0)
			least = done;
	}
	t->min_done = least;
	return 0;
}

static void flat_wake(uint32_t *word, uint32_t *waiters)
{
	if (sci_load_relaxed(waiters)) {
		sci_store_relaxed(waiters, 0);
		team_futex_wake(word);
	}
}

/* Return 0 if the slot of the current epoch is free, else -EAGAIN. */
static int slot_test_free(struct sci_coll *c)
{
	return members_test_done(c, c->team->epoch - (flat_is_short(c) ? SLOTS : CHUNKS));
}

static int flat_publish(struct sci_coll *c, const struct flat_kind *kind)
{
	struct sci_team *t = c->team;
	struct flat_slot *s;

	if (c->published)
		return 0;
	if (flat_gives(c, kind)) {
		if (slot_test_free(c))
			return -EAGAIN;
		s = slot_of(t, t->rank, t->epoch);
		kind->publish(c);
		flat_wake(&s->epoch, &s->waiters);
	}
	c->published = true;
	c->at = 0;
	return 0;
}

static const uint64_t *heap_mark(const struct sci_team *t, int rank)
{
	return (const uint64_t *)(t->view.base + t->shift[rank]);
}

static int flat_take_from(struct sci_coll *c, const struct flat_kind *kind, int rank)
{
	struct sci_team *t = c->team;
	struct flat_slot *s = slot_of(t, rank, t->epoch);
	uint32_t e = sci_load_acquire(&s->epoch);
	bool direct;

	if (e != t->epoch)
		return flat_wait_on(c, &s->epoch, &s->waiters, e);
	if (!kind->take)
		return 0;
	direct = s->len & DIRECT;
	c->reads = s->len & PRIVATE && rank != t->rank ? rank : -1;
	kind->take(c, rank, data_of(t, rank, t->epoch));
	if (c->error)
		return c->error;
	/* check that the member was alive while the data was taken */
	sci_acquire_barrier();
	if (direct && sci_load_relaxed(heap_mark(t, rank)) != TEAM_HEAP_MARK)
		return -ECONNRESET;
	return sci_load_relaxed(&s->epoch) == t->epoch ? 0 : -ECONNRESET;
}

static void flat_finish(struct sci_coll *c, bool from_all)
{
	struct sci_team *t = c->team;
	struct flat_area *a = t->area;

	/* a member that has published an epoch has finished the previous epoch */
	if (from_all && (int32_t)(t->epoch - 1 - t->min_done) > 0)
		t->min_done = t->epoch - 1;
	/*
	 * The publishers of this epoch have checked that all members have finished epoch - SLOTS. A
	 * member that only receives must note this, too: otherwise min_done is in the future when
	 * the numbers of epochs wrap.
	 */
	if (t->epoch - t->min_done > SLOTS)
		t->min_done = t->epoch - SLOTS;
	sci_store_release(&a->done, t->epoch);
	flat_wake(&a->done, &a->waiters);
	t->epoch++;
	c->k++;
	c->published = false;
}

int flat_step(struct sci_coll *c)
{
	const struct flat_kind *kind = flat_kind(c);

	while (c->k < c->epochs) {
		int n, ret = flat_publish(c, kind);

		if (ret)
			return ret;
		n = flat_takes(c, kind) ? flat_sources(c, kind->from) : 0;
		for (; c->at < n; c->at++) {
			ret = flat_take_from(c, kind, flat_source(c, kind->from, c->at));
			if (ret)
				return ret;
		}
		flat_finish(c, n && (kind->from == FROM_ALL || kind->from == FROM_DOWN));
	}
	return c->stay ? members_test_done(c, c->direct) : 0;
}
