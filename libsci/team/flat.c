// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: collective calls through shared memory
 *
 * Each member has an area that all members map: a line that says which epoch it has
 * finished, a ring of slots with room for short data, and a ring of chunks for longer
 * data.  A collective call is a number of *epochs*, the same on
 * all members.  In each epoch a member may publish one slot, and takes what it needs
 * from the slots of other members.  An area is written by its owner alone, but for the
 * words that say that somebody sleeps.
 *
 * Slot e % SLOTS, and chunk e % CHUNKS if it needs one, hold epoch e.  A member publishes
 * epoch e when all members have finished the epoch that was there before.  So a member
 * that only gives runs ahead by the whole ring: that is the pipeline of long calls.
 *
 * Data in the symmetric heap need not be copied into a chunk: the slot says where it is.
 * The member returns when all have taken it.
 *
 * When a member dies its memory shows zeros from some moment on.  Therefore the number
 * in the header is looked at again when its data has been taken, or the word that the
 * heap begins with.
 */

#include "libsci/team/team.h"

#define SLOTS		64u		/* headers of a member */
#define CHUNKS		8u		/* ... and chunks */
#define SHORT_MAX	240u		/* bytes in a header */
#define DIRECT		0x80000000u	/* in len: the data is in symmetric memory */
#define DIRECT_MIN	4096u		/* shortest data that is not copied into a chunk */
#define SMALL_FOLD	4096u		/* longest allreduce in which all fold all */

/* Written by its owner but for @waiters; its first line is enough for 48 bytes. */
struct flat_slot {
	uint32_t epoch;
	uint32_t waiters;
	uint32_t len;			/* bytes published, DIRECT */
	uint32_t reserved;
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

void flat_open(struct sci_team *t)
{
	t->chunk = t->size <= 8 ? 65536 : t->size <= 32 ? 32768 : 16384;
	t->epoch = 1;
	t->min_done = 0;
}

static size_t header_size(void)
{
	return sizeof(struct flat_area) + SLOTS * sizeof(struct flat_slot);
}

static size_t chunks_at(const struct sci_team *t)
{
	return (header_size() + (size_t)t->size + 4095) & ~(size_t)4095;
}

/* Set by member @from in the area of @of: it does not look there any more. */
static uint8_t *bye_of(const struct sci_team *t, int of, int from)
{
	return (uint8_t *)t->members[of].area + header_size() + from;
}

void flat_bye(struct sci_team *t)
{
	struct team_world *w = t->world;
	struct team_wait wait;

	for (int i = 0; i < t->size; i++) {
		sci_store_release(bye_of(t, i, t->rank), 1);
		world_wake(w, t->members[i].world);
	}
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

static struct flat_slot *slot_of(const struct sci_team *t, int rank, uint32_t epoch)
{
	return &t->members[rank].area->slots[epoch % SLOTS];
}

static uint8_t *chunk_of(const struct sci_team *t, int rank, uint32_t epoch)
{
	return (uint8_t *)t->members[rank].area + chunks_at(t) +
	       (epoch % CHUNKS) * t->chunk;
}

/* The data that @rank has published: in the header if it is short. */
static const uint8_t *data_of(const struct sci_team *t, int rank, uint32_t epoch)
{
	struct flat_slot *s = slot_of(t, rank, epoch);

	if (s->len & DIRECT)
		return (uint8_t *)(t->view.base + t->shift[rank] + s->word);
	return s->len <= SHORT_MAX ? s->data : chunk_of(t, rank, epoch);
}

/* ---- kinds of calls ---- */

enum from {
	FROM_NONE, FROM_ROOT, FROM_ALL,	/* but for the caller */
	FROM_DOWN,			/* all, from the last one down to rank 0 */
	FROM_BELOW			/* the caller and all below it, downwards */
};

/* How many sources there are, and which one comes as the @i-th. */
static int sources(const struct sci_coll *c, enum from from)
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

static int source(const struct sci_coll *c, enum from from, int i)
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

static uint64_t pieces(size_t len, size_t piece)
{
	return (len + piece - 1) / piece;
}

/* The bytes of epoch @k of @len in pieces of @piece. */
static size_t piece_at(uint64_t k, size_t len, size_t piece, size_t *at)
{
	*at = 0;
	if (k >= pieces(len, piece))
		return 0;
	*at = k * piece;
	return len - *at < piece ? len - *at : piece;
}

/* Where @n bytes from @a on meet [@from, @from + @len): their number. */
static size_t meet(size_t a, size_t n, size_t from, size_t len, size_t *at)
{
	size_t lo = a > from ? a : from;
	size_t hi = a + n < from + len ? a + n : from + len;

	*at = lo;
	return hi > lo ? hi - lo : 0;
}

static size_t whole_elements(const struct sci_coll *c, size_t bytes)
{
	return bytes - bytes % c->op->size;
}

static void fold(const struct sci_coll *c, uint8_t *inout, const uint8_t *in, size_t len,
		 bool first)
{
	if (first)
		memcpy(inout, in, len);
	else
		c->op->fn(inout, in, len / c->op->size, c->op->arg);
}

/* Publishes @len bytes of the caller's.  @stay: the call does not change them. */
static void fill_from(struct sci_coll *c, const uint8_t *src, size_t len, bool stay)
{
	struct sci_team *t = c->team;
	struct flat_slot *s = slot_of(t, t->rank, t->epoch);
	size_t at = (size_t)src - t->view.base;

	s->len = (uint32_t)len;
	if (stay && len >= DIRECT_MIN && at < t->view.len && len <= t->view.len - at) {
		s->len |= DIRECT;
		s->word = at;
		c->direct = t->epoch;
		c->stay = true;
		return;
	}
	if (!len)
		return;
	memcpy(len <= SHORT_MAX ? s->data : chunk_of(t, t->rank, t->epoch), src, len);
}

/* Of a call that does not write where it reads, at this member. */
static void fill(struct sci_coll *c, const uint8_t *src, size_t len)
{
	bool writes = c->op && (c->kind != COLL_REDUCE || c->team->rank == c->root);

	fill_from(c, src, len, !writes || c->src != c->dst);
}

static void publish_nothing(struct sci_coll *c)
{
	slot_of(c->team, c->team->rank, c->team->epoch)->len = 0;
}

static void publish_piece(struct sci_coll *c)
{
	size_t at, n = piece_at(c->k, c->len, c->team->chunk, &at);

	fill(c, c->src + at, n);
}

static void take_piece(struct sci_coll *c, int rank, const uint8_t *data)
{
	size_t at, n = piece_at(c->k, c->len, c->team->chunk, &at);

	(void)rank;
	memcpy(c->dst + at, data, n);
}

static void take_gather(struct sci_coll *c, int rank, const uint8_t *data)
{
	size_t len = c->lens ? c->lens[rank] : c->len;
	size_t to = c->lens ? coll_offset(c->lens, c->offsets, rank) : (size_t)rank * len;
	size_t at, n = piece_at(c->k, len, c->team->chunk, &at);

	if (n)
		memcpy(c->dst + to + at, data, n);
}

/* ... where all must first learn how long the longest part is. */
static void publish_gatherv(struct sci_coll *c)
{
	struct sci_team *t = c->team;
	struct flat_slot *s = slot_of(t, t->rank, t->epoch);
	size_t at, n;

	if (!c->k) {
		s->len = sizeof(s->word);
		s->word = c->len;
		return;
	}
	n = piece_at(c->k - 1, c->len, t->chunk, &at);
	fill(c, c->src + at, n);
}

static void learn_longest(struct sci_coll *c, const uint8_t *data, size_t piece)
{
	uint64_t len;

	memcpy(&len, data, sizeof(len));
	if (len > c->longest)
		c->longest = len;
	c->epochs = 1 + pieces(c->longest, piece);
}

static void take_gatherv(struct sci_coll *c, int rank, const uint8_t *data)
{
	size_t at, n;

	if (!c->k) {
		learn_longest(c, data, c->team->chunk);
		return;
	}
	if (c->team->rank != c->root)
		return;
	n = piece_at(c->k - 1, c->lens[rank], c->team->chunk, &at);
	if (n)
		memcpy(c->dst + coll_offset(c->lens, c->offsets, rank) + at, data, n);
}

/* The root's stream: all parts, one behind the other. */
static void publish_scatter(struct sci_coll *c)
{
	struct sci_team *t = c->team;
	size_t at, n = piece_at(c->k, c->len * (size_t)t->size, t->chunk, &at);

	fill(c, c->src + at, n);
}

static void take_scatter(struct sci_coll *c, int rank, const uint8_t *data)
{
	const struct sci_team *t = c->team;
	size_t at, from, n = piece_at(c->k, c->len * (size_t)t->size, t->chunk, &at);
	size_t mine = (size_t)t->rank * c->len;

	(void)rank;
	n = meet(at, n, mine, c->len, &from);
	if (n)
		memcpy(c->dst + (from - mine), data + (from - at), n);
}

/* An epoch for each member and piece, of which only the member takes its own. */
static size_t scatterv_piece(struct sci_coll *c, int *to, size_t *at)
{
	struct sci_team *t = c->team;
	uint64_t k = c->k - 1, n;

	for (*to = 0; *to < t->size; (*to)++) {
		n = pieces(c->lens[*to], t->chunk);
		if (k < n)
			break;
		k -= n;
	}
	return *to < t->size ? piece_at(k, c->lens[*to], t->chunk, at) : 0;
}

static void publish_scatterv(struct sci_coll *c)
{
	struct sci_team *t = c->team;
	struct flat_slot *s = slot_of(t, t->rank, t->epoch);
	size_t at = 0, n;
	int to;

	if (!c->k) {
		s->len = sizeof(s->word);
		s->word = 0;
		for (int i = 0; i < t->size; i++)
			s->word += pieces(c->lens[i], t->chunk);
		c->epochs = 1 + s->word;
		return;
	}
	n = scatterv_piece(c, &to, &at);
	s->reserved = (uint32_t)to;
	fill(c, n ? c->src + coll_offset(c->lens, c->offsets, to) + at : NULL, n);
}

static void take_scatterv(struct sci_coll *c, int rank, const uint8_t *data)
{
	const struct sci_team *t = c->team;
	const struct flat_slot *s = slot_of(t, rank, t->epoch);
	uint32_t len = s->len & ~DIRECT;
	uint64_t n;

	if (!c->k) {
		memcpy(&n, data, sizeof(n));
		c->epochs = 1 + n;
	} else if (s->reserved == (uint32_t)t->rank && len <= c->len - c->longest) {
		memcpy(c->dst + c->longest, data, len);
		c->longest += len;
	}
}

/* A piece for each member in each slot. */
static size_t all_piece(const struct sci_team *t)
{
	return (t->chunk / (size_t)t->size) & ~(size_t)15;
}

static void publish_alltoall(struct sci_coll *c)
{
	struct sci_team *t = c->team;
	struct flat_slot *s = slot_of(t, t->rank, t->epoch);
	uint8_t *chunk = chunk_of(t, t->rank, t->epoch);
	uint64_t k = c->src_lens ? c->k - 1 : c->k;
	size_t piece = all_piece(t), at, n, from = 0;

	s->len = (uint32_t)t->chunk;
	if (c->src_lens && !c->k) {
		s->len = sizeof(s->word);
		s->word = c->longest;
		return;
	}
	for (int i = 0; i < t->size; i++) {
		size_t len = c->src_lens ? c->src_lens[i] : c->len;
		size_t start = c->src_offsets ? c->src_offsets[i] : from;

		from += len;
		if (i == t->rank)
			continue;
		n = piece_at(k, len, piece, &at);
		if (n)
			memcpy(chunk + (size_t)i * piece, c->src + start + at, n);
	}
}

static void take_alltoall(struct sci_coll *c, int rank, const uint8_t *data)
{
	struct sci_team *t = c->team;
	uint64_t k = c->lens ? c->k - 1 : c->k;
	size_t piece = all_piece(t), at, n, len = c->lens ? c->lens[rank] : c->len;
	size_t to = c->lens ? coll_offset(c->lens, c->offsets, rank) : (size_t)rank * len;

	if (c->lens && !c->k) {
		learn_longest(c, data, piece);
		return;
	}
	n = piece_at(k, len, piece, &at);
	if (n)
		memcpy(c->dst + to + at, data + (size_t)t->rank * piece, n);
}

/* ---- reductions ---- */

static size_t fold_piece(const struct sci_coll *c, size_t *at)
{
	return piece_at(c->k, c->n * c->op->size, whole_elements(c, c->team->chunk), at);
}

static void publish_fold(struct sci_coll *c)
{
	size_t at, n = fold_piece(c, &at);

	fill(c, c->src + at, n);
}

static void take_reduce(struct sci_coll *c, int rank, const uint8_t *data)
{
	size_t at, n = fold_piece(c, &at);

	fold(c, c->dst + at, data, n, rank == c->team->size - 1);
}

static void take_scan(struct sci_coll *c, int rank, const uint8_t *data)
{
	size_t at, n = fold_piece(c, &at);

	fold(c, c->dst + at, data, n, rank == c->team->rank);
}

static void take_exscan(struct sci_coll *c, int rank, const uint8_t *data)
{
	size_t at, n = fold_piece(c, &at);

	if (rank != c->team->rank)
		fold(c, c->dst + at, data, n, rank == c->team->rank - 1);
}

/* c->n is the number of elements of all parts; the caller's begins at c->longest. */
static void take_reduce_scatter(struct sci_coll *c, int rank, const uint8_t *data)
{
	size_t at, from, n = fold_piece(c, &at);

	n = meet(at, n, c->longest, c->len, &from);
	if (n)
		fold(c, c->dst + (from - c->longest), data + (from - at), n,
		     rank == c->team->size - 1);
}

/*
 * Long: two epochs for a chunk.  In the first one all publish theirs, and each member
 * folds its share of it; in the second one all publish that.
 */
static size_t share(const struct sci_coll *c, int rank, size_t chunk, size_t *at)
{
	size_t n = chunk / c->op->size, size = (size_t)c->team->size, r = (size_t)rank;
	size_t each = n / size, rest = n % size;

	*at = (r * each + (r < rest ? r : rest)) * c->op->size;
	return (each + (r < rest)) * c->op->size;
}

static size_t long_piece(const struct sci_coll *c, size_t *at)
{
	return piece_at(c->k / 2, c->n * c->op->size, whole_elements(c, c->team->chunk), at);
}

static void publish_long(struct sci_coll *c)
{
	size_t at, from, n = long_piece(c, &at);

	if (!(c->k & 1)) {
		fill(c, c->src + at, n);
		return;
	}
	n = share(c, c->team->rank, n, &from);
	/* results, which stay */
	fill_from(c, c->dst + at + from, n, true);
}

static void take_long(struct sci_coll *c, int rank, const uint8_t *data)
{
	const struct sci_team *t = c->team;
	size_t at, from, n = long_piece(c, &at);

	if (c->k & 1) {
		n = share(c, rank, n, &from);
		if (rank != t->rank)
			memcpy(c->dst + at + from, data, n);
		return;
	}
	n = share(c, t->rank, n, &from);
	fold(c, c->dst + at + from, data + from, n, rank == t->size - 1);
}

/* ---- the engine ---- */

/**
 * struct flat_kind - how a call works
 * @publish: fill the caller's slot of epoch c->k
 * @giver: who publishes
 * @from, @taker: from whom data is taken, and by whom
 */
struct flat_kind {
	void (*publish)(struct sci_coll *c);
	void (*take)(struct sci_coll *c, int rank, const uint8_t *data);
	enum from from;
	enum { ALL, ROOT, OTHERS } giver, taker;
};

static void take_nothing(struct sci_coll *c, int rank, const uint8_t *data)
{
	(void)c;
	(void)rank;
	(void)data;
}

static const struct flat_kind kinds[COLL_KINDS] = {
	[COLL_BARRIER] = { publish_nothing, take_nothing, FROM_ALL, ALL, ALL },
	[COLL_BCAST] = { publish_piece, take_piece, FROM_ROOT, ROOT, OTHERS },
	[COLL_REDUCE] = { publish_fold, take_reduce, FROM_DOWN, ALL, ROOT },
	[COLL_ALLREDUCE] = { publish_fold, take_reduce, FROM_DOWN, ALL, ALL },
	[COLL_REDUCE_SCATTER] = { publish_fold, take_reduce_scatter, FROM_DOWN, ALL, ALL },
	[COLL_SCAN] = { publish_fold, take_scan, FROM_BELOW, ALL, ALL },
	[COLL_EXSCAN] = { publish_fold, take_exscan, FROM_BELOW, ALL, ALL },
	[COLL_GATHER] = { publish_piece, take_gather, FROM_ALL, OTHERS, ROOT },
	[COLL_GATHERV] = { publish_gatherv, take_gatherv, FROM_ALL, ALL, ALL },
	[COLL_ALLGATHER] = { publish_piece, take_gather, FROM_ALL, ALL, ALL },
	[COLL_SCATTER] = { publish_scatter, take_scatter, FROM_ROOT, ROOT, OTHERS },
	[COLL_SCATTERV] = { publish_scatterv, take_scatterv, FROM_ROOT, ROOT, OTHERS },
	[COLL_ALLTOALL] = { publish_alltoall, take_alltoall, FROM_ALL, ALL, ALL },
	[COLL_ALLTOALLV] = { publish_alltoall, take_alltoall, FROM_ALL, ALL, ALL },
};

static const struct flat_kind long_allreduce = {
	publish_long, take_long, FROM_DOWN, ALL, ALL
};

static bool is_long(const struct sci_coll *c)
{
	return c->kind == COLL_ALLREDUCE && c->n * c->op->size > SMALL_FOLD;
}

static bool takes_part(const struct sci_coll *c, int who)
{
	return who == ALL || (who == ROOT) == (c->team->rank == c->root);
}

/* In one epoch after the first the root of a gather with lengths alone takes. */
static bool takes(const struct sci_coll *c, const struct flat_kind *kind)
{
	if (c->kind == COLL_GATHERV && c->k)
		return c->team->rank == c->root;
	return takes_part(c, kind->taker);
}

/* The caller's own part, where it does not go through its slot. */
static void copy_own(struct sci_coll *c)
{
	struct sci_team *t = c->team;
	size_t me = (size_t)t->rank, to = 0, from = 0, len = c->len;
	bool root = t->rank == c->root;

	switch (c->kind) {
	case COLL_GATHER:
	case COLL_GATHERV:
	case COLL_ALLGATHER:
		if (c->kind != COLL_ALLGATHER && !root)
			return;
		to = c->lens ? coll_offset(c->lens, c->offsets, t->rank) : me * len;
		break;
	case COLL_SCATTER:
	case COLL_SCATTERV:
		if (!root)
			return;
		from = c->lens ? coll_offset(c->lens, c->offsets, t->rank) : me * len;
		break;
	case COLL_ALLTOALL:
		to = from = me * len;
		break;
	case COLL_ALLTOALLV:
		to = coll_offset(c->lens, c->offsets, t->rank);
		from = coll_offset(c->src_lens, c->src_offsets, t->rank);
		len = c->lens[me];
		break;
	default:
		return;
	}
	if (len && c->dst + to != c->src + from)
		memcpy(c->dst + to, c->src + from, len);
}

static uint64_t count_epochs(struct sci_coll *c)
{
	const struct sci_team *t = c->team;
	size_t longest = 0;

	switch (c->kind) {
	case COLL_BARRIER:
	case COLL_GATHERV:
	case COLL_SCATTERV:
	case COLL_ALLTOALLV:
		return 1;
	case COLL_SCATTER:
		return pieces(c->len * (size_t)t->size, t->chunk);
	case COLL_ALLTOALL:
		return pieces(c->len, all_piece(t));
	case COLL_BCAST:
	case COLL_GATHER:
		return pieces(c->len, t->chunk);
	case COLL_ALLGATHER:
		for (int i = 0; c->lens && i < t->size; i++)
			longest = c->lens[i] > longest ? c->lens[i] : longest;
		return pieces(c->lens ? longest : c->len, t->chunk);
	default:
		return pieces(c->n * c->op->size, whole_elements(c, t->chunk)) *
		       (is_long(c) ? 2 : 1);
	}
}

int flat_start(struct sci_coll *c)
{
	struct sci_team *t = c->team;

	c->step = flat_step;
	if (c->kind == COLL_ALLTOALLV)
		for (int i = 0; i < t->size; i++)
			if (c->src_lens[i] > c->longest)
				c->longest = c->src_lens[i];
	if (c->kind == COLL_GATHERV)
		c->longest = c->len;
	c->epochs = count_epochs(c);
	if (c->kind == COLL_ALLTOALLV)
		c->epochs += pieces(c->longest, all_piece(t));
	if (c->kind == COLL_GATHERV)
		c->epochs += pieces(c->longest, t->chunk);
	copy_own(c);
	if (t->size == 1 && c->kind < COLL_GATHER) {
		if (c->kind >= COLL_REDUCE && c->kind != COLL_EXSCAN && c->src != c->dst)
			memcpy(c->dst, c->src, c->n * c->op->size);
	}
	if (t->size == 1)
		c->epochs = 0;
	return 0;
}

/* Not yet: what the caller will wait for. */
static int wait_on(struct sci_coll *c, uint32_t *word, uint32_t *waiters, uint32_t seen)
{
	c->wait.word = word;
	c->wait.waiters = waiters;
	c->wait.seen = seen;
	return -EAGAIN;
}

/* Whether the data of the present epoch surely fits a header. */
static bool is_short(const struct sci_coll *c)
{
	switch (c->kind) {
	case COLL_BARRIER:
		return true;
	case COLL_GATHERV:
	case COLL_SCATTERV:
	case COLL_ALLTOALLV:
		return !c->k;
	case COLL_BCAST:
	case COLL_GATHER:
		return c->len <= SHORT_MAX;
	case COLL_ALLGATHER:
		return c->len <= SHORT_MAX && !c->lens;
	case COLL_SCATTER:
		return c->len * (size_t)c->team->size <= SHORT_MAX;
	case COLL_ALLTOALL:
		return false;
	default:
		return c->n * c->op->size <= SHORT_MAX;
	}
}

/* Whether all members have finished epoch @need. */
static int all_done(struct sci_coll *c, uint32_t need)
{
	struct sci_team *t = c->team;

	if ((int32_t)(t->min_done - need) >= 0)
		return 0;
	for (int i = 0; i < t->size; i++) {
		struct flat_area *a = t->members[i].area;
		uint32_t done;

		if (i == t->rank)
			continue;
		done = sci_load_acquire(&a->done);
		if ((int32_t)(done - need) < 0)
			return wait_on(c, &a->done, &a->waiters, done);
	}
	t->min_done = need;
	return 0;
}

static void wake(uint32_t *word, uint32_t *waiters)
{
	if (sci_load_relaxed(waiters)) {
		sci_store_relaxed(waiters, 0);
		team_futex_wake(word);
	}
}

/* Whether the slot of the present epoch is free. */
static int slot_free(struct sci_coll *c)
{
	return all_done(c, c->team->epoch - (is_short(c) ? SLOTS : CHUNKS));
}

static int publish(struct sci_coll *c, const struct flat_kind *kind)
{
	struct sci_team *t = c->team;
	struct flat_slot *s;

	if (c->published)
		return 0;
	if (takes_part(c, kind->giver)) {
		if (slot_free(c))
			return -EAGAIN;
		s = slot_of(t, t->rank, t->epoch);
		kind->publish(c);
		sci_store_release(&s->epoch, t->epoch);
		wake(&s->epoch, &s->waiters);
	}
	c->published = true;
	c->at = 0;
	return 0;
}

static const uint64_t *heap_mark(const struct sci_team *t, int rank)
{
	return (const uint64_t *)(t->view.base + t->shift[rank]);
}

static int take(struct sci_coll *c, const struct flat_kind *kind, int rank)
{
	struct sci_team *t = c->team;
	struct flat_slot *s = slot_of(t, rank, t->epoch);
	uint32_t e = sci_load_acquire(&s->epoch);
	bool direct;

	if (e != t->epoch)
		return wait_on(c, &s->epoch, &s->waiters, e);
	if (kind->take == take_nothing)
		return 0;
	direct = s->len & DIRECT;
	kind->take(c, rank, data_of(t, rank, t->epoch));
	/* was it the member's until now? */
	sci_acquire_barrier();
	if (direct && sci_load_relaxed(heap_mark(t, rank)) != TEAM_HEAP_MARK)
		return -ECONNRESET;
	return sci_load_relaxed(&s->epoch) == t->epoch ? 0 : -ECONNRESET;
}

static void finish(struct sci_coll *c, bool from_all)
{
	struct sci_team *t = c->team;
	struct flat_area *a = t->area;

	/* who has published an epoch has finished the one before */
	if (from_all && (int32_t)(t->epoch - 1 - t->min_done) > 0)
		t->min_done = t->epoch - 1;
	sci_store_release(&a->done, t->epoch);
	wake(&a->done, &a->waiters);
	t->epoch++;
	c->k++;
	c->published = false;
}

int flat_step(struct sci_coll *c)
{
	const struct flat_kind *kind = is_long(c) ? &long_allreduce : &kinds[c->kind];

	while (c->k < c->epochs) {
		int n, ret = publish(c, kind);

		if (ret)
			return ret;
		n = takes(c, kind) ? sources(c, kind->from) : 0;
		for (; c->at < n; c->at++) {
			ret = take(c, kind, source(c, kind->from, c->at));
			if (ret)
				return ret;
		}
		finish(c, n && (kind->from == FROM_ALL || kind->from == FROM_DOWN));
	}
	return c->stay ? all_done(c, c->direct) : 0;
}
