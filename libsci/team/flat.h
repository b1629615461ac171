/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * The shared memory of collective calls, and the interface between flat.c, which moves the data,
 * and flat_kinds.c, which implements each kind of call. flat.c describes the protocol.
 */
#ifndef LIBSCI_TEAM_FLAT_H
#define LIBSCI_TEAM_FLAT_H

#include "libsci/team/team.h"

#define SLOTS		64u		/* slots of a member */
#define CHUNKS		8u		/* chunks of a member */
#define SHARED_MEMBERS	4		/* fewest members that share a reduction of several chunks */
#define SHORT_MAX	240u		/* bytes of data in a slot */
#define DIRECT		0x80000000u	/* flag in len: the data is in symmetric memory */
#define PRIVATE		0x40000000u	/* flag in len: the data is in the member's own memory */
#define PLACED		(DIRECT | PRIVATE)

/*
 * A slot of a member. Only the owner writes to the slot, except @waiters. The slot's first cache
 * line has room for 48 bytes of data.
 */
struct flat_slot {
	uint32_t epoch;
	uint32_t waiters;
	uint32_t len;			/* bytes published, and flags */
	uint32_t to;			/* scatter with lengths: the one receiver */
	union {
		uint64_t word;		/* a length, a position in the heap, or an address */
		uint8_t data[SHORT_MAX];
	};
};
_Static_assert(sizeof(struct flat_slot) == 4 * TEAM_LINE, "a header is whole lines");

struct flat_area {
	uint32_t done;			/* the last epoch that the owner has finished */
	uint32_t waiters;
	uint32_t readable;		/* the owner can read all members' private memory */
	uint8_t pad[TEAM_LINE - 12];
	struct flat_slot slots[];	/* followed by a byte for each member, and the chunks */
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

/*
 * Return the data that @rank has published: in its heap (DIRECT), its slot (short) or its chunk.
 * PRIVATE: an address in the process of @rank.
 */
static inline const uint8_t *data_of(const struct sci_team *t, int rank, uint32_t epoch)
{
	struct flat_slot *s = slot_of(t, rank, epoch);

	if (s->len & DIRECT)
		return (uint8_t *)(t->view.base + t->shift[rank] + s->word);
	if (s->len & PRIVATE)
		return (uint8_t *)(uintptr_t)s->word;
	return s->len <= SHORT_MAX ? s->data : chunk_of(t, rank, epoch);
}

enum from {
	FROM_NONE, FROM_ROOT, FROM_ALL,	/* ALL: all except the caller */
	FROM_DOWN,			/* all members, from the last rank down to 0 */
	FROM_BELOW			/* the caller and lower ranks, descending */
};

/**
 * struct flat_kind - functions of a kind of call
 * @publish: fill and publish the caller's slot of epoch c->k
 * @take: take the data of @rank; NULL: the call has no data
 * @giver: the members that publish
 * @from, @taker: the members whose data is taken, and the members that take it
 */
struct flat_kind {
	void (*publish)(struct sci_coll *c);
	void (*take)(struct sci_coll *c, int rank, const uint8_t *data);
	enum from from;
	enum { ALL, ROOT, OTHERS } giver, taker;
};

/* Return the functions for the kind and the length of a call. */
const struct flat_kind *flat_kind(const struct sci_coll *c);

/* Return whether the caller takes data in the current epoch. */
bool flat_takes(const struct sci_coll *c, const struct flat_kind *kind);

/* Return whether the caller publishes in the current epoch. */
bool flat_gives(const struct sci_coll *c, const struct flat_kind *kind);

/* Return true only if the data of the current epoch fits a slot. */
bool flat_is_short(const struct sci_coll *c);

#endif
