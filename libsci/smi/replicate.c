// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: replication and sharing
 *
 * A replicated region is private memory of each process, or with ONE_PER_NODE a segment of
 * each node, at the address of the shared region.  The shared region's segments stay open.  To
 * combine the copies, each process temporarily maps these segments at another address.
 */
#include "libsci/smi/internal.h"

#include <string.h>
#include <sys/mman.h>

#define SHR_WAYS	(SMI_SHR_SINGLE_SOURCE | SMI_SHR_LOOP_SPLITTING | SMI_SHR_ADD | \
			 SMI_SHR_NOTHING | SMI_SHR_EVERY_LOCAL)
#define REP_WAYS	(SMI_REP_NOTHING | SMI_REP_EVERYTHING | SMI_REP_LOCAL_AND_BEYOND)
#define DTYPES		(SMI_DTYPE_FIXPOINT | SMI_DTYPE_FLOATINGPOINT)
#define CHUNK		4096u		/* bytes that sum_add_block() adds at a time */
#define LINE		64u		/* bytes of a line of the cache */

static int copies_sync(int err)
{
	smi_store_barrier();
	err = smi_agree(smi.team, err);
	smi_load_barrier();
	return err;
}

/*
 * Return true if this process adds or loads all of its copy: with ONE_PER_NODE, only each node's
 * first process.
 */
static bool copy_is_combined(const struct smi_region *r)
{
	return !(r->replicated & SMI_REP_ONE_PER_NODE) || smi.first[smi.node] == smi.rank;
}

/* Load or store bytes [@from, @to) of the shared memory, which may be in several segments. */
static int shared_copy(struct smi_region *r, char *local, size_t from, size_t to, bool load)
{
	struct smi_segment *s = r->segs;
	int err = SMI_SUCCESS;

	for (size_t n; !err && from < to; from += n, local += n) {
		while (from - s->offset >= s->size)
			s++;
		n = s->size - (from - s->offset);
		n = n < to - from ? n : to - from;
		err = smi_copy_checked(s, s->addr + (from - s->offset), local, n, 0, load);
	}
	return err;
}

/* ---- to replication ---- */

static int copy_get_range(const struct smi_region *r, int mode, int p1, int p2, int p3,
			  size_t *from, size_t *to)
{
	int low, high, glow, ghigh;

	*from = 0;
	*to = mode & SMI_REP_NOTHING ? 0 : r->size;
	if (!r->base || r->offset)
		return SMI_ERR_NOSEGMENT;
	if (!(mode & SMI_REP_LOCAL_AND_BEYOND))
		return SMI_SUCCESS;
	if (p1 <= 0 || p3 < 0 || smi_split_range(p2, false, &low, &high) ||
	    smi_split_range(p2, true, &glow, &ghigh))
		return SMI_ERR_PARAM;
	*to = 0;
	if (low > high)
		return SMI_SUCCESS;
	low = low - p3 < glow ? glow : low - p3;
	high = high > ghigh - p3 ? ghigh : high + p3;
	if (low < 0 || ((size_t)high + 1) > r->size / (size_t)p1)
		return SMI_ERR_PARAM;
	*from = (size_t)low * (size_t)p1;
	*to = ((size_t)high + 1) * (size_t)p1;
	return SMI_SUCCESS;
}

/*
 * Return true if this process loads its part of the copy: with ONE_PER_NODE, each node's first
 * process loads all bytes, but each process loads its range of a loop.
 */
static bool copy_is_loaded(int mode)
{
	return !(mode & SMI_REP_ONE_PER_NODE) || mode & SMI_REP_LOCAL_AND_BEYOND ||
	       smi.first[smi.node] == smi.rank;
}

/* Allocate memory for the copy, at any address. */
static int copy_create(struct smi_region *r, int mode, char **copy)
{
	smi_region_info_t info = { .size = r->size };
	int err;

	if (mode & SMI_REP_ONE_PER_NODE) {
		err = smi_create_internal(SMI_SHM_SMP, &info, &r->per_node);
		*copy = err ? NULL : r->per_node->base;
		return err;
	}
	*copy = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	if (*copy != MAP_FAILED)
		return SMI_SUCCESS;
	*copy = NULL;
	return SMI_ERR_NOMEM;
}

static void copy_destroy(struct smi_region *r, char *copy)
{
	if (r->per_node)
		smi_free_common(r->per_node);
	else if (copy)
		munmap(copy, r->size);
	r->per_node = NULL;
}

/* Move the copy to the address of the shared region, and unmap the shared segments. */
static int copy_place(struct smi_region *r, int mode, char *copy)
{
	smi_region_unmap(r);
	r->replicated = mode;
	if (r->per_node) {
		smi_region_unmap(r->per_node);
		return smi_region_map(r->per_node, r->base);
	}
	copy = sci_map_move(copy, r->size, r->size, r->base);
	return copy == MAP_FAILED ? SMI_ERR_MAPFAILED : SMI_SUCCESS;
}

/* Return the region if its type permits replication, else NULL: the same in all processes. */
static struct smi_region *region_find_common(int id)
{
	struct smi_region *r = smi_region_get(id);

	if (!r || r->internal || !smi_is_collective(r) || r->type == SMI_SHM_FRAGMENTED ||
	    r->type == SMI_SHM_SMP)
		return NULL;
	return r;
}

SMI_API smi_error_t SMI_Switch_to_replication(int id, int mode, int p1, int p2, int p3)
{
	struct smi_region *r = region_find_common(id);
	int way = mode & REP_WAYS, err;
	size_t from, to;
	char *copy = NULL;

	SMI_REFUSE(!r || !way || way & (way - 1) ||
		   mode & ~(REP_WAYS | SMI_REP_ONE_PER_NODE));
	if (r->replicated || smi.size == 1)
		return SMI_SUCCESS;
	err = copy_get_range(r, mode, p1, p2, p3, &from, &to);
	err = copies_sync(err);
	if (err)
		return err;
	err = copy_create(r, mode, &copy);
	if (!err && to > from && copy_is_loaded(mode))
		err = shared_copy(r, copy + from, from, to, true);
	/* no process may store into the region before all processes have their copies */
	err = copies_sync(err);
	if (err)
		copy_destroy(r, copy);
	else
		err = copies_sync(copy_place(r, mode, copy));
	return err;
}

/* ---- combine ---- */

static int copy_store(struct smi_region *r, size_t from, size_t to)
{
	return shared_copy(r, r->base + from, from, to, false);
}

static int copy_store_range(struct smi_region *r, int p1, int p2)
{
	int low, high;

	if (p1 <= 0 || smi_split_range(p2, false, &low, &high))
		return SMI_ERR_PARAM;
	if (low > high)
		return SMI_SUCCESS;
	if (low < 0 || ((size_t)high + 1) > r->size / (size_t)p1)
		return SMI_ERR_PARAM;
	return copy_store(r, (size_t)low * (size_t)p1, ((size_t)high + 1) * (size_t)p1);
}

/*
 * Store the ranges of all processes. Where caches are not coherent, processes take turns, because
 * the end of one range and the beginning of the next may be in one line.
 */
static int copies_store_ranges(struct smi_region *r, int p1, int p2)
{
	int err = SMI_SUCCESS;

	if (!smi.stale)
		return copy_store_range(r, p1, p2);
	for (int i = 0; !err && i < smi.size; i++)
		err = copies_sync(i == smi.rank ? copy_store_range(r, p1, p2) : SMI_SUCCESS);
	return err;
}

static int copy_store_local(struct smi_region *r)
{
	int i, err = SMI_SUCCESS;

	for (i = 0; !err && i < r->nsegs; i++) {
		struct smi_segment *s = &r->segs[i];

		if (smi_node_of(s->owner) == smi.node && smi.first[smi.node] == smi.rank)
			err = copy_store(r, s->offset, s->offset + s->size);
	}
	return err;
}

/* Return the operation that adds two arrays of the mode's type. */
static const struct sci_op *mode_sum_op(int mode)
{
	bool high = mode & SMI_DTYPE_HIGHPRECISION;

	if (mode & SMI_DTYPE_FLOATINGPOINT)
		return sci_op(SCI_OP_SUM, high ? SCI_TYPE_DOUBLE : SCI_TYPE_FLOAT);
	return sci_op(SCI_OP_SUM, high && sizeof(long) == 8 ? SCI_TYPE_INT64 :
							      SCI_TYPE_INT32);
}

/* Add bytes [@from, @to) of the copy to the shared memory. @first: store the bytes instead. */
static int sum_add_block(struct smi_region *r, const struct sci_op *op, size_t from, size_t to,
			 bool first)
{
	_Alignas(16) char sum[CHUNK];
	int err = SMI_SUCCESS;

	if (first)
		return copy_store(r, from, to);
	for (size_t n; !err && from < to; from += n) {
		n = to - from < CHUNK ? to - from : CHUNK;
		/* each process adds to the earlier processes' sum */
		err = shared_copy(r, sum, from, from + n, true);
		if (err)
			return err;
		op->fn(sum, r->base + from, n / op->size, op->arg);
		err = shared_copy(r, sum, from, from + n, false);
	}
	return err;
}

/* Return where a part of the sum begins. No line of the cache is in two parts. */
static size_t sum_part(size_t bytes, int part, int parts)
{
	return bytes * (size_t)part / (size_t)parts / LINE * LINE;
}

/* Add all copies. In each round every process adds another part of its copy to the sum. */
static int sum_add_copies(struct smi_region *r, int mode, int n)
{
	bool per_node = r->replicated & SMI_REP_ONE_PER_NODE;
	int i, parts = per_node ? smi.nodes : smi.size, me = per_node ? smi.node : smi.rank;
	const struct sci_op *op = mode_sum_op(mode);
	size_t bytes = (size_t)n * op->size;
	int err = SMI_SUCCESS;

	for (i = 0; i < parts; i++) {
		int at = (me + i) % parts;

		if (!err && copy_is_combined(r))
			err = sum_add_block(r, op, sum_part(bytes, at, parts),
					    at + 1 < parts ? sum_part(bytes, at + 1, parts) :
							     bytes, !i);
		err = copies_sync(err);
		if (err)
			return err;
	}
	return SMI_SUCCESS;
}

static int combine_check_args(const struct smi_region *r, int mode, int p1)
{
	int way = mode & SHR_WAYS, type = mode & DTYPES;

	if (!way || way & (way - 1))
		return SMI_ERR_PARAM;
	if (way == SMI_SHR_SINGLE_SOURCE && !smi_rank_ok(p1))
		return SMI_ERR_PARAM;
	if (way != SMI_SHR_ADD)
		return SMI_SUCCESS;
	if (!type || type & (type - 1) || p1 < 0 ||
	    (size_t)p1 > r->size / mode_sum_op(mode)->size)
		return SMI_ERR_PARAM;
	return SMI_SUCCESS;
}

static int copies_combine(struct smi_region *r, int mode, int p1, int p2)
{
	int err = SMI_SUCCESS;

	switch (mode & SHR_WAYS) {
	case SMI_SHR_SINGLE_SOURCE:
		if (p1 == smi.rank)
			err = copy_store(r, 0, r->size);
		break;
	case SMI_SHR_LOOP_SPLITTING:
		err = copies_store_ranges(r, p1, p2);
		break;
	case SMI_SHR_EVERY_LOCAL:
		err = copy_store_local(r);
		break;
	case SMI_SHR_ADD:
		err = sum_add_copies(r, mode, p1);
	}
	return copies_sync(err);
}

/* Combine the copies. @share: make the region shared again; else store the result in all copies. */
static int region_combine(int id, int mode, int p1, int p2, bool share)
{
	struct smi_region *r = region_find_common(id);
	int i, err = SMI_SUCCESS;

	SMI_REFUSE(!r || combine_check_args(r, mode, p1));
	if (!r->replicated)
		return SMI_SUCCESS;
	/* map the shared segments at free addresses, and combine the copies in these segments */
	for (i = 0; !err && i < r->nsegs; i++)
		err = smi_segment_map(&r->segs[i], 0, r->segs[i].size, NULL);
	err = copies_sync(err);
	err = err ? err : copies_combine(r, mode, p1, p2);
	if (!err && !share && copy_is_combined(r))
		err = shared_copy(r, r->base, 0, r->size, true);
	smi_region_unmap(r);
	if (!share)
		return copies_sync(err);
	if (err)
		return err;
	copy_destroy(r, r->base);
	r->replicated = 0;
	return copies_sync(smi_region_map(r, r->base));
}

SMI_API smi_error_t SMI_Switch_to_sharing(int id, int mode, int p1, int p2)
{
	return region_combine(id, mode, p1, p2, true);
}

SMI_API smi_error_t SMI_Ensure_consistency(int id, int mode, int p1, int p2)
{
	return region_combine(id, mode, p1, p2, false);
}
