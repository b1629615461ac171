// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The data that members publish and take in each kind of collective call through shared memory. */

#include "libsci/team/flat.h"

#define FIRST_MAX	48u		/* bytes of data in the first line of a slot */
#define DIRECT_MIN	4096u		/* shorter data is copied into a chunk */
#define SMALL_FOLD	4096u		/* longer allreduces are shared among the members */

static uint64_t flat_pieces(size_t len, size_t piece)
{
	return (len + piece - 1) / piece;
}

/* Return the length of piece @k of @len bytes, and set *@at to its offset. */
static size_t piece_at(uint64_t k, size_t len, size_t piece, size_t *at)
{
	*at = 0;
	if (k >= flat_pieces(len, piece))
		return 0;
	*at = k * piece;
	return len - *at < piece ? len - *at : piece;
}

/* Return the size of the overlap of [@a, @a + @n) with [@from, @from + @len); *@at is its start. */
static size_t range_overlap(size_t a, size_t n, size_t from, size_t len, size_t *at)
{
	size_t lo = a > from ? a : from;
	size_t hi = a + n < from + len ? a + n : from + len;

	*at = lo;
	return hi > lo ? hi - lo : 0;
}

static size_t elements_round(const struct sci_coll *c, size_t bytes)
{
	return bytes - bytes % c->op->size;
}

static void private_copy(struct sci_coll *c, uint8_t *dst, const uint8_t *data, size_t len)
{
	struct team_world *w = c->team->world;
	struct sci_peer *peer;
	int ret = world_peer(w, c->team->members[c->reads].world, &peer);

	ret = ret ? ret : sci_peer_read_private(peer, dst, (uintptr_t)data, len);
	/* -EAGAIN: the connection of the team's creation has ended, and a new one begins */
	if (ret)
		c->error = ret == -EAGAIN ? -ECONNRESET : member_result(ret);
}

static void flat_copy(struct sci_coll *c, uint8_t *dst, const uint8_t *data, size_t len)
{
	if (c->reads < 0)
		memcpy(dst, data, len);
	else
		private_copy(c, dst, data, len);
}

static void flat_fold(const struct sci_coll *c, uint8_t *inout, const uint8_t *in, size_t len,
		      bool first)
{
	if (first)
		memcpy(inout, in, len);
	else
		c->op->fn(inout, in, len / c->op->size, c->op->arg);
}

/*
 * Write a slot. Other members poll its first cache line, and each poll takes this line out of the
 * writer's cache. So write the other lines first, and then all of the first line.
 */
static void slot_write(struct flat_slot *s, uint32_t epoch, uint32_t len, uint32_t to,
		       const void *data)
{
	size_t n = len & PLACED ? sizeof(s->word) : len <= SHORT_MAX ? len : 0;

	if (n > FIRST_MAX)
		memcpy(s->data + FIRST_MAX, (const uint8_t *)data + FIRST_MAX, n - FIRST_MAX);
	sci_release_barrier();
	s->len = len;
	s->to = to;
	if (n == sizeof(s->word))
		memcpy(s->data, data, sizeof(s->word));
	else if (n)
		memcpy(s->data, data, n < FIRST_MAX ? n : FIRST_MAX);
	sci_store_release(&s->epoch, epoch);
}

/* Publish @len bytes. Short @data is copied to the slot; longer data is in the chunk already. */
static void slot_put(struct sci_coll *c, const void *data, size_t len)
{
	struct sci_team *t = c->team;

	slot_write(slot_of(t, t->rank, t->epoch), t->epoch, (uint32_t)len, c->to,
		   data);
}

static void word_put(struct sci_coll *c, uint64_t word)
{
	slot_put(c, &word, sizeof(word));
}

/* Publish the position of @len bytes at @src. Return false if they are short or not in the heap. */
static bool direct_put(struct sci_coll *c, const uint8_t *src, size_t len)
{
	struct sci_team *t = c->team;
	uint64_t at = (size_t)src - t->view.base;

	if (len < DIRECT_MIN || len >= PRIVATE || at >= t->view.len ||
	    len > t->view.len - at)
		return false;
	c->direct = t->epoch;
	c->stay = true;
	slot_put(c, &at, len | DIRECT);
	return true;
}

static bool members_are_readable(struct sci_team *t)
{
	if (t->readable < 0) {
		t->readable = 1;
		for (int i = 0; i < t->size; i++)
			t->readable &= (int)sci_load_relaxed(&t->members[i].area->readable);
	}
	return t->readable;
}

/*
 * Publish the address of @len bytes in parts of @part bytes. Measured on two cores far apart, this
 * takes half the time if one member alone takes a part, and others do not wait for that member.
 * With several members a chunk is as fast or faster, in reductions too. Return false if the bytes
 * must be in a chunk.
 */
static bool private_put(struct sci_coll *c, const uint8_t *src, size_t len, size_t part)
{
	struct sci_team *t = c->team;
	uint64_t addr = (uintptr_t)src;
	bool alone = c->kind == COLL_SCATTER || c->kind == COLL_SCATTERV || t->size == 2;

	if (part < t->world->single_copy_min || len >= PRIVATE || c->op || !alone ||
	    !members_are_readable(t))
		return false;
	c->direct = t->epoch;
	c->stay = true;
	slot_put(c, &addr, len | PRIVATE);
	return true;
}

/* Publish @len bytes at @src. @stay: the bytes do not change during this call. */
static void slot_fill_from(struct sci_coll *c, const uint8_t *src, size_t len, bool stay)
{
	struct sci_team *t = c->team;

	if (stay && (direct_put(c, src, len) || private_put(c, src, len, len)))
		return;
	if (len > SHORT_MAX)
		memcpy(chunk_of(t, t->rank, t->epoch), src, len);
	slot_put(c, src, len);
}

/* Publish bytes of the source buffer. They do not change unless the call reduces in place. */
static void flat_fill(struct sci_coll *c, const uint8_t *src, size_t len)
{
	bool writes = c->op && (c->kind != COLL_REDUCE || c->team->rank == c->root);

	slot_fill_from(c, src, len, !writes || c->src != c->dst);
}

static void nothing_publish(struct sci_coll *c)
{
	slot_put(c, NULL, 0);
}

static void piece_publish(struct sci_coll *c)
{
	size_t at, n = piece_at(c->k, c->len, c->team->chunk, &at);

	flat_fill(c, c->src + at, n);
}

static void flat_take_piece(struct sci_coll *c, int rank, const uint8_t *data)
{
	size_t at, n = piece_at(c->k, c->len, c->team->chunk, &at);

	(void)rank;
	flat_copy(c, c->dst + at, data, n);
}

static void flat_take_gather(struct sci_coll *c, int rank, const uint8_t *data)
{
	size_t len = c->lens ? c->lens[rank] : c->len;
	size_t to = c->lens ? coll_offset(c->lens, c->offsets, rank) : (size_t)rank * len;
	size_t at, n = piece_at(c->k, len, c->team->chunk, &at);

	if (n)
		flat_copy(c, c->dst + to + at, data, n);
}

/*
 * A gather with lengths, whose longest part only the root knows: in the first epoch each member
 * publishes the length of its part, and the beginning of the part.
 */
#define FIRST_PART	(SHORT_MAX - 8)

static size_t gatherv_first_part(size_t len)
{
	return len < FIRST_PART ? len : FIRST_PART;
}

static void gatherv_publish(struct sci_coll *c)
{
	size_t at, n = gatherv_first_part(c->len);
	uint8_t first[SHORT_MAX];

	if (!c->k) {
		memcpy(first, &c->len, 8);
		if (n)
			memcpy(first + 8, c->src, n);
		slot_put(c, first, 8 + n);
		return;
	}
	n = piece_at(c->k - 1, c->len - n, c->team->chunk, &at);
	flat_fill(c, c->src + FIRST_PART + at, n);
}

static void gatherv_learn_longest(struct sci_coll *c, const uint8_t *data, size_t piece)
{
	uint64_t len;

	memcpy(&len, data, sizeof(len));
	if (len > c->longest)
		c->longest = len;
	c->epochs = 1 + flat_pieces(c->longest, piece);
}

static uint64_t gatherv_epochs(const struct sci_coll *c)
{
	return flat_pieces(c->longest - gatherv_first_part(c->longest), c->team->chunk);
}

static void flat_take_gatherv(struct sci_coll *c, int rank, const uint8_t *data)
{
	bool root = c->team->rank == c->root;
	size_t at = 0, n, first = root ? gatherv_first_part(c->lens[rank]) : 0;
	uint8_t *to = root ? c->dst + coll_offset(c->lens, c->offsets, rank) : NULL;

	if (!c->k) {
		gatherv_learn_longest(c, data, c->team->chunk);
		c->epochs = 1 + gatherv_epochs(c);
		data += 8;
		n = first;
	} else {
		n = root ? piece_at(c->k - 1, c->lens[rank] - first, c->team->chunk, &at) : 0;
		at += first;
	}
	if (n)
		flat_copy(c, to + at, data, n);
}

/* Publish the root's next piece: all parts together are one stream of bytes. */
static void scatter_publish(struct sci_coll *c)
{
	struct sci_team *t = c->team;
	size_t at, n = piece_at(c->k, c->len * (size_t)t->size, t->chunk, &at);

	flat_fill(c, c->src + at, n);
}

static void flat_take_scatter(struct sci_coll *c, int rank, const uint8_t *data)
{
	const struct sci_team *t = c->team;
	size_t at, from, n = piece_at(c->k, c->len * (size_t)t->size, t->chunk, &at);
	size_t mine = (size_t)t->rank * c->len;

	(void)rank;
	n = range_overlap(at, n, mine, c->len, &from);
	if (n)
		flat_copy(c, c->dst + (from - mine), data + (from - at), n);
}

/* Return the length of this epoch's piece, set *@to to its receiver and *@at to its offset. */
static size_t scatterv_piece(struct sci_coll *c, int *to, size_t *at)
{
	struct sci_team *t = c->team;
	uint64_t k = c->k - 1, n;

	for (*to = 0; *to < t->size; (*to)++) {
		n = flat_pieces(c->lens[*to], t->chunk);
		if (k < n)
			break;
		k -= n;
	}
	return *to < t->size ? piece_at(k, c->lens[*to], t->chunk, at) : 0;
}

static void scatterv_publish(struct sci_coll *c)
{
	struct sci_team *t = c->team;
	uint64_t epochs = 0;
	size_t at = 0, n;
	int to;

	if (!c->k) {
		for (int i = 0; i < t->size; i++)
			epochs += flat_pieces(c->lens[i], t->chunk);
		c->epochs = 1 + epochs;
		word_put(c, epochs);
		return;
	}
	n = scatterv_piece(c, &to, &at);
	c->to = (uint32_t)to;
	flat_fill(c, n ? c->src + coll_offset(c->lens, c->offsets, to) + at : NULL, n);
}

static void flat_take_scatterv(struct sci_coll *c, int rank, const uint8_t *data)
{
	const struct sci_team *t = c->team;
	const struct flat_slot *s = slot_of(t, rank, t->epoch);
	uint32_t len = s->len & ~PLACED;
	uint64_t n;

	if (!c->k) {
		memcpy(&n, data, sizeof(n));
		c->epochs = 1 + n;
	} else if (s->to == (uint32_t)t->rank && len <= c->len - c->longest) {
		flat_copy(c, c->dst + c->longest, data, len);
		c->longest += len;
	}
}

/*
 * Return whether all parts together fit a slot. Otherwise each chunk has a piece for
 * each member.
 */
static bool parts_are_short(const struct sci_coll *c)
{
	return !c->lens && c->len * (size_t)c->team->size <= SHORT_MAX;
}

static size_t all_piece(const struct sci_team *t)
{
	return (t->chunk / (size_t)t->size) & ~(size_t)15;
}

static void alltoall_publish(struct sci_coll *c)
{
	struct sci_team *t = c->team;
	uint8_t *chunk = chunk_of(t, t->rank, t->epoch);
	uint64_t k = c->src_lens ? c->k - 1 : c->k;
	size_t piece = all_piece(t), at, n, from = 0;

	if (c->src_lens && !c->k) {
		word_put(c, c->longest);
		return;
	}
	if (parts_are_short(c)) {
		slot_put(c, c->src, c->len * (size_t)t->size);
		return;
	}
	if (!c->src_lens && c->src != c->dst &&
	    (direct_put(c, c->src, c->len * (size_t)t->size) ||
	     private_put(c, c->src, c->len * (size_t)t->size, c->len)))
		return;
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
	slot_put(c, NULL, t->chunk);
}

static void flat_take_alltoall(struct sci_coll *c, int rank, const uint8_t *data)
{
	struct sci_team *t = c->team;
	uint64_t k = c->lens ? c->k - 1 : c->k;
	size_t piece = all_piece(t), at, n, len = c->lens ? c->lens[rank] : c->len;
	size_t to = c->lens ? coll_offset(c->lens, c->offsets, rank) : (size_t)rank * len;
	size_t me = (size_t)t->rank;

	if (c->lens && !c->k) {
		gatherv_learn_longest(c, data, piece);
		return;
	}
	n = piece_at(k, len, piece, &at);
	if (slot_of(t, rank, t->epoch)->len & PLACED)
		data += me * len + at;
	else
		data += me * (parts_are_short(c) ? len : piece);
	if (n)
		flat_copy(c, c->dst + to + at, data, n);
}

/* ---- reductions ---- */

static size_t fold_piece(const struct sci_coll *c, size_t *at)
{
	return piece_at(c->k, c->n * c->op->size, elements_round(c, c->team->chunk), at);
}

/*
 * Only the root of a reduction takes data. In a long reduction, the root is the slowest member, so
 * it does not copy its own part, unless it reduces in place.
 */
static bool root_folds_source(const struct sci_coll *c)
{
	return c->kind == COLL_REDUCE && c->team->rank == c->root && c->src != c->dst &&
	       c->epochs > 1;
}

static void fold_publish(struct sci_coll *c)
{
	size_t at, n = fold_piece(c, &at);

	if (root_folds_source(c)) {
		nothing_publish(c);
		return;
	}
	flat_fill(c, c->src + at, n);
}

static void flat_take_reduce(struct sci_coll *c, int rank, const uint8_t *data)
{
	size_t at, n = fold_piece(c, &at);

	if (rank == c->team->rank && root_folds_source(c))
		data = c->src + at;
	flat_fold(c, c->dst + at, data, n, rank == c->team->size - 1);
}

static void flat_take_scan(struct sci_coll *c, int rank, const uint8_t *data)
{
	size_t at, n = fold_piece(c, &at);

	flat_fold(c, c->dst + at, data, n, rank == c->team->rank);
}

static void flat_take_exscan(struct sci_coll *c, int rank, const uint8_t *data)
{
	size_t at, n = fold_piece(c, &at);

	if (rank != c->team->rank)
		flat_fold(c, c->dst + at, data, n, rank == c->team->rank - 1);
}

/*
 * Return the length of a piece of each part, or 0 if the whole vector fits a chunk. A longer vector
 * needs several epochs, each with a piece of each part, so that all members fold data in each
 * epoch. c->n is the number of elements of all parts; the caller's part begins at byte c->longest.
 */
static size_t part_piece(const struct sci_coll *c)
{
	const struct sci_team *t = c->team;

	return c->n * c->op->size <= t->chunk ? 0 : elements_round(c, all_piece(t));
}

static size_t part_bytes(const struct sci_coll *c, int rank)
{
	return c->lens ? c->lens[rank] * c->op->size : c->len;
}

static void reduce_scatter_publish(struct sci_coll *c)
{
	struct sci_team *t = c->team;
	uint8_t *chunk = chunk_of(t, t->rank, t->epoch);
	size_t piece = part_piece(c), at, n, from = 0;

	if (!piece) {
		fold_publish(c);
		return;
	}
	if (c->src != c->dst && direct_put(c, c->src, c->n * c->op->size))
		return;
	for (int i = 0; i < t->size; i++) {
		n = piece_at(c->k, part_bytes(c, i), piece, &at);
		if (n)
			memcpy(chunk + (size_t)i * piece, c->src + from + at, n);
		from += part_bytes(c, i);
	}
	slot_put(c, NULL, t->chunk);
}

static void flat_take_reduce_scatter(struct sci_coll *c, int rank, const uint8_t *data)
{
	const struct sci_team *t = c->team;
	size_t at, from, n, piece = part_piece(c);

	if (piece) {
		n = piece_at(c->k, c->len, piece, &at);
		data += slot_of(t, rank, t->epoch)->len & DIRECT ? c->longest + at :
			(size_t)t->rank * piece;
	} else {
		n = fold_piece(c, &from);
		n = range_overlap(from, n, c->longest, c->len, &at);
		data += at - from;
		at -= c->longest;
	}
	if (n)
		flat_fold(c, c->dst + at, data, n, rank == t->size - 1);
}

/*
 * Return the length of @rank's share of a chunk. A long reduction takes two epochs for each chunk.
 * In the first one all members publish their data, and each member folds its share. In the second
 * one all members publish the folded shares, and the root takes them, or each member of an
 * allreduce.
 */
static size_t flat_share(const struct sci_coll *c, int rank, size_t chunk, size_t *at)
{
	size_t n = chunk / c->op->size, size = (size_t)c->team->size, r = (size_t)rank;
	size_t each = n / size, rest = n % size;

	*at = (r * each + (r < rest ? r : rest)) * c->op->size;
	return (each + (r < rest)) * c->op->size;
}

static size_t long_piece(const struct sci_coll *c, size_t *at)
{
	return piece_at(c->k / 2, c->n * c->op->size, elements_round(c, c->team->chunk), at);
}

/* Return where the caller folds its share, which begins at byte @at of the vector. */
static uint8_t *share_place(const struct sci_coll *c, size_t at)
{
	const struct sci_team *t = c->team;

	return c->kind == COLL_REDUCE && t->rank != c->root ? t->share : c->dst + at;
}

static void long_publish(struct sci_coll *c)
{
	size_t at, from, n = long_piece(c, &at);

	if (!(c->k & 1)) {
		flat_fill(c, c->src + at, n);
		return;
	}
	n = flat_share(c, c->team->rank, n, &from);
	if (c->kind == COLL_ALLREDUCE)
		/* do not copy the results: they do not change any more */
		slot_fill_from(c, c->dst + at + from, n, true);
	else if (c->team->rank == c->root)
		nothing_publish(c);
	else
		slot_fill_from(c, c->team->share, n, false);
}

static void flat_take_long(struct sci_coll *c, int rank, const uint8_t *data)
{
	const struct sci_team *t = c->team;
	size_t at, from, n = long_piece(c, &at);

	if (c->k & 1) {
		n = flat_share(c, rank, n, &from);
		if (rank != t->rank)
			memcpy(c->dst + at + from, data, n);
		return;
	}
	n = flat_share(c, t->rank, n, &from);
	flat_fold(c, share_place(c, at + from), data + from, n, rank == t->size - 1);
}

/* ---- all kinds ---- */

static const struct flat_kind kinds[COLL_KINDS] = {
	[COLL_BARRIER] = { nothing_publish, NULL, FROM_ALL, ALL, ALL },
	[COLL_BCAST] = { piece_publish, flat_take_piece, FROM_ROOT, ROOT, OTHERS },
	[COLL_REDUCE] = { fold_publish, flat_take_reduce, FROM_DOWN, ALL, ROOT },
	[COLL_ALLREDUCE] = { fold_publish, flat_take_reduce, FROM_DOWN, ALL, ALL },
	[COLL_REDUCE_SCATTER] = { reduce_scatter_publish, flat_take_reduce_scatter, FROM_DOWN, ALL,
				  ALL },
	[COLL_SCAN] = { fold_publish, flat_take_scan, FROM_BELOW, ALL, ALL },
	[COLL_EXSCAN] = { fold_publish, flat_take_exscan, FROM_BELOW, ALL, ALL },
	[COLL_GATHER] = { piece_publish, flat_take_gather, FROM_ALL, OTHERS, ROOT },
	[COLL_GATHERV] = { gatherv_publish, flat_take_gatherv, FROM_ALL, ALL, ALL },
	[COLL_ALLGATHER] = { piece_publish, flat_take_gather, FROM_ALL, ALL, ALL },
	[COLL_SCATTER] = { scatter_publish, flat_take_scatter, FROM_ROOT, ROOT, OTHERS },
	[COLL_SCATTERV] = { scatterv_publish, flat_take_scatterv, FROM_ROOT, ROOT, OTHERS },
	[COLL_ALLTOALL] = { alltoall_publish, flat_take_alltoall, FROM_ALL, ALL, ALL },
	[COLL_ALLTOALLV] = { alltoall_publish, flat_take_alltoall, FROM_ALL, ALL, ALL },
};

static const struct flat_kind long_reduction = {
	long_publish, flat_take_long, FROM_DOWN, ALL, ALL
};

static bool flat_is_long(const struct sci_coll *c)
{
	size_t len = c->op ? c->n * c->op->size : 0;

	return c->kind == COLL_ALLREDUCE ? len > SMALL_FOLD :
	       c->kind == COLL_REDUCE && c->team->size >= SHARED_MEMBERS && len > c->team->chunk;
}

static bool member_takes_part(const struct sci_coll *c, int who)
{
	return who == ALL || (who == ROOT) == (c->team->rank == c->root);
}

const struct flat_kind *flat_kind(const struct sci_coll *c)
{
	return flat_is_long(c) ? &long_reduction : &kinds[c->kind];
}

bool flat_gives(const struct sci_coll *c, const struct flat_kind *kind)
{
	return member_takes_part(c, kind->giver);
}

/*
 * After the first epoch, only the root of a gather with lengths takes data; so does the root of a
 * long reduction in each second epoch.
 */
bool flat_takes(const struct sci_coll *c, const struct flat_kind *kind)
{
	bool root_only = c->kind == COLL_GATHERV ? c->k : c->kind == COLL_REDUCE && c->k & 1;

	return member_takes_part(c, root_only ? ROOT : kind->taker);
}

/* Copy the caller's own part, unless the caller takes it from its own slot. */
static void part_copy_own(struct sci_coll *c)
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

static uint64_t epochs_count(struct sci_coll *c)
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
		return flat_pieces(c->len * (size_t)t->size, t->chunk);
	case COLL_ALLTOALL:
		return flat_pieces(c->len, all_piece(t));
	case COLL_BCAST:
	case COLL_GATHER:
		return flat_pieces(c->len, t->chunk);
	case COLL_ALLGATHER:
		for (int i = 0; c->lens && i < t->size; i++)
			longest = c->lens[i] > longest ? c->lens[i] : longest;
		return flat_pieces(c->lens ? longest : c->len, t->chunk);
	case COLL_REDUCE_SCATTER:
		for (int i = 0; part_piece(c) && i < t->size; i++)
			longest = part_bytes(c, i) > longest ? part_bytes(c, i) : longest;
		if (longest)
			return flat_pieces(longest, part_piece(c));
		/* fallthrough */
	default:
		return flat_pieces(c->n * c->op->size, elements_round(c, t->chunk)) *
		       (flat_is_long(c) ? 2 : 1);
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
	c->epochs = epochs_count(c);
	if (c->kind == COLL_ALLTOALLV)
		c->epochs += flat_pieces(c->longest, all_piece(t));
	if (c->kind == COLL_GATHERV)
		c->epochs += gatherv_epochs(c);
	part_copy_own(c);
	if (t->size == 1 && c->kind < COLL_GATHER) {
		if (c->kind >= COLL_REDUCE && c->kind != COLL_EXSCAN && c->src != c->dst)
			memcpy(c->dst, c->src, c->n * c->op->size);
	}
	if (t->size == 1)
		c->epochs = 0;
	return 0;
}

bool flat_is_short(const struct sci_coll *c)
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
		return parts_are_short(c);
	default:
		return c->n * c->op->size <= SHORT_MAX;
	}
}
