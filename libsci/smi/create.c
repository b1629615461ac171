// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: regions that several processes create
 *
 * Each process plans the same segments from the same arguments, creates its own segments, and sends
 * their ids to the other processes. Then all processes map the region, at an agreed address unless
 * it is NONFIXED. After each step the processes agree whether all succeeded. If a step fails, each
 * process releases its part and returns the same error.
 */
#include "libsci/smi/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Plan segment @i behind the earlier segments. */
static void plan_segment(struct smi_region *r, int i, int owner, size_t size)
{
	r->segs[i].owner = owner;
	r->segs[i].offset = r->size;
	r->segs[i].size = size;
	r->size += size;
}

/* Plan one segment. This process maps its @r->size bytes from @r->offset on. */
static void plan_one_segment(struct smi_region *r, const smi_region_info_t *info, int owner)
{
	r->owner = owner;
	plan_segment(r, 0, owner, smi_round(info->size));
	if (r->type != SMI_SHM_SMP && owner != smi.rank)
		r->offset = info->offset;
}

/* Give each node a share in proportion to its processes. Shares begin at page boundaries. */
static void plan_blocked(struct smi_region *r, const smi_region_info_t *info)
{
	size_t pages = smi_round(info->size) / smi.page, from = 0, to;

	if (pages < (size_t)smi.nodes)
		pages = (size_t)smi.nodes;
	for (int i = 0; i < smi.nodes; i++) {
		to = pages * (size_t)smi.first[i + 1] / (size_t)smi.size;
		if (to <= from)
			to = from + 1;
		/* each later node needs at least one page */
		if (to > pages - (size_t)(smi.nodes - 1 - i))
			to = pages - (size_t)(smi.nodes - 1 - i);
		plan_segment(r, i, smi.first[i], (to - from) * smi.page);
		from = to;
	}
}

static int plan_customized(struct smi_region *r, const smi_region_info_t *info)
{
	int i, err;

	if (info->nbr_sgmts < 1 || info->nbr_sgmts > SMI_PROCS_MAX || !info->sgmt_owner ||
	    !info->sgmt_size)
		return SMI_ERR_PARAM;
	err = smi_region_alloc_segments(r, info->nbr_sgmts);
	for (i = 0; !err && i < r->nsegs; i++) {
		if (!smi_rank_ok(info->sgmt_owner[i]) || !info->sgmt_size[i])
			return SMI_ERR_PARAM;
		if (smi_too_large(info->sgmt_size[i]))
			return SMI_ERR_NOMEM;
		/* memory of a node's first process is local to all processes of the node */
		plan_segment(r, i, info->sgmt_owner[i], smi_round(info->sgmt_size[i]));
	}
	return err;
}

static void plan_fragmented(struct smi_region *r, const smi_region_info_t *info)
{
	size_t part = smi_round(info->size / (size_t)smi.size);

	for (int i = 0; i < smi.size; i++)
		plan_segment(r, i, i, part ? part : smi.page);
}

static int plan_region(struct smi_region *r, const smi_region_info_t *info)
{
	int owner = r->type == SMI_SHM_SMP ? smi.first[smi.node] : info->owner, err;
	bool blocked = r->type == SMI_SHM_BLOCKED, fragmented = r->type == SMI_SHM_FRAGMENTED;

	if (r->type == SMI_SHM_CUSTOMIZED)
		return plan_customized(r, info);
	if (!info->size || (smi_one_segment(r) && !smi_rank_ok(owner)))
		return SMI_ERR_PARAM;
	if (smi_too_large(info->size))
		return SMI_ERR_NOMEM;
	err = smi_region_alloc_segments(r, blocked ? smi.nodes : fragmented ? smi.size : 1);
	if (err)
		return err;
	if (blocked)
		plan_blocked(r, info);
	else if (fragmented)
		plan_fragmented(r, info);
	else
		plan_one_segment(r, info, owner);
	return SMI_SUCCESS;
}

/* A segment's facts, summed over all processes: only the owner's values are not 0. */
struct notice {
	uint64_t size, sci_id, err;
};

static void segments_create_own(struct smi_region *r, struct notice *mine)
{
	for (int i = 0; i < r->nsegs; i++) {
		struct smi_segment *s = &r->segs[i];

		if (s->owner != smi.rank)
			continue;
		mine[i].err = (uint64_t)smi_segment_create(s, s->size,
							   r->flags & SMI_SHM_SHRINKABLE);
		mine[i].sci_id = s->sci_id;
		mine[i].size = s->size;
	}
}

/*
 * Set the size of a segment. The owner of a single segment determines its size, and the mapped part
 * is cut to that size.
 */
static int segment_set_size(struct smi_region *r, struct smi_segment *s, size_t size)
{
	if (!smi_one_segment(r))
		return size == s->size ? SMI_SUCCESS : SMI_ERR_PARAM;
	s->size = size;
	if (r->offset >= size)
		return SMI_ERR_PARAM;
	if (r->size > size - r->offset)
		r->size = size - r->offset;
	return SMI_SUCCESS;
}

static int notices_apply(struct smi_region *r, const struct notice *all)
{
	int err = SMI_SUCCESS;

	for (int i = 0; !err && i < r->nsegs; i++) {
		struct smi_segment *s = &r->segs[i];
		const struct notice *n = &all[i];

		err = n->err ? (int)n->err : segment_set_size(r, s, n->size);
		s->sci_id = (unsigned int)n->sci_id;
		if (!err && !(r->flags & SMI_SHM_DELAYED))
			err = smi_segment_open(s);
	}
	return err;
}

static int region_create_segments(struct smi_region *r)
{
	/* in an SMP region each node has its own segment */
	int at = r->type == SMI_SHM_SMP ? smi.node : 0;
	size_t n = (size_t)(r->type == SMI_SHM_SMP ? smi.nodes : r->nsegs);
	struct notice *all = calloc(n, sizeof(*all));
	int err = smi_agree(r->team, all ? SMI_SUCCESS : SMI_ERR_NOMEM);

	if (!err) {
		assert(all);	/* smi_agree() has returned SMI_ERR_NOMEM otherwise */
		segments_create_own(r, all + at);
		err = smi_error_of_team(sci_team_allreduce(r->team, all, all, 3 * n,
					sci_op(SCI_OP_SUM, SCI_TYPE_UINT64)));
		if (!err)
			err = smi_agree(r->team, notices_apply(r, all + at));
	}
	free(all);
	return err;
}

static int region_map_everywhere(struct smi_region *r)
{
	bool mine = r->owner == smi.rank;

	if (r->type != SMI_SHM_FRAGMENTED && !(r->flags & SMI_SHM_NONFIXED))
		return smi_region_place(r);
	if (r->flags & SMI_SHM_DELAYED && !mine)
		return smi_agree(r->team, SMI_SUCCESS);
	return smi_agree(r->team, smi_region_map(r, NULL));
}

void smi_tell_owner(struct smi_region *r)
{
	struct smi_msg m = { .type = SMI_MSG_IMPORT, .a = (int)r->segs[0].sci_id, .b = -1 };

	if (r->flags & SMI_SHM_CALLBACK && r->owner != smi.rank)
		smi_channel_send(r->owner, &m);
}

int smi_create_common(struct smi_region *r, smi_region_info_t *info, void **address, int err)
{
	int i, planned = plan_region(r, info);

	err = smi_agree(r->team, planned ? planned : err);
	err = err ? err : region_create_segments(r);
	err = err ? err : region_map_everywhere(r);
	if (!err)
		err = smi_agree(r->team, smi_region_publish(r));
	if (err) {
		for (i = 0; i < r->nsegs; i++)
			smi_segment_close(&r->segs[i]);
		return err;
	}
	r->connected = r->base != NULL;
	*address = r->base;
	for (i = 0; r->type == SMI_SHM_FRAGMENTED && i < r->nsegs; i++)
		address[i] = r->segs[i].addr;
	if (r->connected && smi_one_segment(r))
		smi_tell_owner(r);
	return SMI_SUCCESS;
}

int smi_create_internal(int type, smi_region_info_t *info, struct smi_region **out)
{
	struct smi_region *r = smi_region_new(type);
	void *address;
	int err = smi_agree(smi.team, r ? SMI_SUCCESS : SMI_ERR_NOMEM);

	if (r && !err) {
		r->flags = SMI_SHM_NONFIXED;
		r->internal = true;
		err = smi_create_common(r, info, &address, SMI_SUCCESS);
	}
	if (err)
		smi_region_drop(r);
	else
		*out = r;
	return err;
}

/* Free a region. All other processes close a segment before its owner removes the segment. */
int smi_free_common(struct smi_region *r)
{
	int i, err;

	if (r->per_node)
		smi_free_common(r->per_node);
	else if (r->replicated && r->base)
		munmap(r->base, r->size);
	for (i = 0; i < r->nsegs; i++) {
		smi_segment_unmap(&r->segs[i]);
		if (r->segs[i].owner != smi.rank)
			smi_segment_close(&r->segs[i]);
	}
	err = smi_agree(r->team, SMI_SUCCESS);
	for (i = 0; i < r->nsegs; i++)
		smi_segment_close(&r->segs[i]);
	if (r->pool)
		smi_lock_free(r->pool_lock);
	smi_pair_close(r->team);
	smi_region_drop(r);
	return err;
}
