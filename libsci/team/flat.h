/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * The memory of collective calls through shared memory, and what flat_kinds.c tells
 * flat.c about a call. flat.c says how the memory is used.
 */
#ifndef LIBSCI_TEAM_FLAT_H
#define LIBSCI_TEAM_FLAT_H

#include "libsci/team/team.h"

#define SLOTS		64u		/* headers of a member */
#define CHUNKS		8u		/* ... and chunks */
#define SHORT_MAX	240u		/* bytes in a header */
#define DIRECT		0x80000000u	/* in len: the data is in symmetric memory */

/* Written by its owner but for @waiters; its first line is enough for 48 bytes. */
struct flat_slot {
	uint32_t epoch;
	uint32_t waiters;
	uint32_t len;			/* bytes published, DIRECT */
	uint32_t to;			/* for this member alone: scatter with lengths */
	union {
		uint64_t word;		/* lengths that not all know; DIRECT: where */
		uint8_t data[SHORT_MAX];
	};
};
_Static_assert(sizeof(struct flat_slot) == 4 * TEAM_LINE, "a header is whole lines");

struct flat_area {
	uint32_t done;			/* the epoch that has been finished */
	uint32_t waiters;
	uint8_t pad[TEAM_LINE - 8];
	struct flat_slot slots[];	/* then a byte for each member, then chunks */
};

static inline size_t header_size(void)
{
	return sizeof(struct flat_area) + SLOTS * sizeof(struct flat_slot);
}

static inline size_t chunks_at(const struct sci_team *t)
{
	return (header_size() + (size_t)t->size + 4095) & ~(size_t)4095;
}

static inline struct flat_slot *slot_of(const struct sci_team *t, int rank, uint32_t epoch)
{
	return &t->members[rank].area->slots[epoch % SLOTS];
}

static inline uint8_t *chunk_of(const struct sci_team *t, int rank, uint32_t epoch)
{
	return (uint8_t *)t->members[rank].area + chunks_at(t) +
	       (epoch % CHUNKS) * t->chunk;
}

/* The data that @rank has published: in the header if it is short. */
static inline const uint8_t *data_of(const struct sci_team *t, int rank, uint32_t epoch)
{
	struct flat_slot *s = slot_of(t, rank, epoch);

	if (s->len & DIRECT)
		return (uint8_t *)(t->view.base + t->shift[rank] + s->word);
	return s->len <= SHORT_MAX ? s->data : chunk_of(t, rank, epoch);
}

enum from {
	FROM_NONE, FROM_ROOT, FROM_ALL,	/* but for the caller */
	FROM_DOWN,			/* all, from the last one down to rank 0 */
	FROM_BELOW			/* the caller and all below it, downwards */
};

/**
 * struct flat_kind - how a call works
 * @publish: fill and publish the caller's slot of epoch c->k
 * @take: take what @rank has published; NULL: nothing
 * @giver: who publishes
 * @from, @taker: from whom data is taken, and by whom
 */
struct flat_kind {
	void (*publish)(struct sci_coll *c);
	void (*take)(struct sci_coll *c, int rank, const uint8_t *data);
	enum from from;
	enum { ALL, ROOT, OTHERS } giver, taker;
};

/* The way a call works. */
const struct flat_kind *flat_kind(const struct sci_coll *c);

/* Whether the caller takes data in the present epoch. */
bool flat_takes(const struct sci_coll *c, const struct flat_kind *kind);

/* Whether the caller publishes. */
bool flat_gives(const struct sci_coll *c, const struct flat_kind *kind);

/* Whether the data of the present epoch surely fits a header. */
bool flat_is_short(const struct sci_coll *c);

#endif
