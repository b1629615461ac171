// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Regions: their table, the code that all types share, and queries. */

#include "libsci/smi/internal.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the table ---- */

struct smi_region *smi_region_new(int type)
{
	struct smi_region *r = malloc(sizeof(*r));

	if (r)
		*r = (struct smi_region) { .id = -1, .type = type, .owner = -1,
					   .team = smi.team, .adapter = smi.adapter };
	return r;
}

int smi_region_alloc_segments(struct smi_region *r, int n)
{
	r->segs = calloc((size_t)n, sizeof(r->segs[0]));
	if (!r->segs)
		return SMI_ERR_NOMEM;
	r->nsegs = n;
	for (int i = 0; i < n; i++)
		r->segs[i].adapter = r->adapter;
	return SMI_SUCCESS;
}

/* Put a region into the table, under the lowest free id. */
int smi_region_publish(struct smi_region *r)
{
	struct smi_region **table;
	int i;

	pthread_mutex_lock(&smi.lock);
	table = smi.regions;
	for (i = 0; i < smi.nregions && table[i]; i++)
		;
	if (i == smi.nregions)
		table = realloc(table, (size_t)(i + 1) * sizeof(*table));
	if (table) {
		smi.regions = table;
		smi.nregions += i == smi.nregions;
		table[i] = r;
		r->id = i;
	}
	pthread_mutex_unlock(&smi.lock);
	return table ? SMI_SUCCESS : SMI_ERR_NOMEM;
}

void smi_region_take(struct smi_region *r)
{
	smi_callbacks_forget(r->id);
	smi.regions[r->id] = NULL;
	r->id = -1;
}

void smi_region_drop(struct smi_region *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&smi.lock);
	if (r->id >= 0)
		smi_region_take(r);
	pthread_mutex_unlock(&smi.lock);
	free(r->importers);
	free(r->segs);
	free(r);
}

struct smi_region *smi_region_find(int id)
{
	return id >= 0 && id < smi.nregions ? smi.regions[id] : NULL;
}

struct smi_region *smi_region_get(int id)
{
	struct smi_region *r;

	pthread_mutex_lock(&smi.lock);
	r = smi_region_find(id);
	pthread_mutex_unlock(&smi.lock);
	return r;
}

struct smi_segment *smi_segment_at(struct smi_region *r, const void *addr)
{
	for (int i = 0; i < r->nsegs; i++) {
		struct smi_segment *s = &r->segs[i];

		if (s->addr && (const char *)addr >= s->addr &&
		    (size_t)((const char *)addr - s->addr) < s->mapped)
			return s;
	}
	return NULL;
}

/* Return whether a region contains a whole range. Adjacent segments form one range. */
static bool region_covers(struct smi_region *r, const char *addr, size_t len)
{
	struct smi_segment *s = smi_segment_at(r, addr);
	const char *base = r->base;
	size_t size = r->size;

	if (!base || (!s && !r->replicated))
		return false;
	if (s && r->type == SMI_SHM_FRAGMENTED) {
		base = s->addr;
		size = s->mapped;
	}
	return addr >= base && len <= size && (size_t)(addr - base) <= size - len;
}

/* Find the region that contains a range. Context: smi.lock is held. */
static struct smi_region *region_find(const void *addr, size_t len, bool internal)
{
	for (int i = 0; i < smi.nregions; i++) {
		struct smi_region *r = smi.regions[i];

		if (r && (internal || !r->internal) && region_covers(r, addr, len))
			return r;
	}
	return NULL;
}

struct smi_region *smi_region_at(const void *addr, size_t len, bool internal)
{
	struct smi_region *r;

	pthread_mutex_lock(&smi.lock);
	r = region_find(addr, len, internal);
	pthread_mutex_unlock(&smi.lock);
	return r;
}

/* ---- maps ---- */

void smi_region_unmap(struct smi_region *r)
{
	for (int i = 0; i < r->nsegs; i++)
		smi_segment_unmap(&r->segs[i]);
}

/* Map the segments one behind the other at @base. NULL: map each at an address that is free. */
int smi_region_map(struct smi_region *r, char *base)
{
	int i, err = SMI_SUCCESS;

	for (i = 0; !err && i < r->nsegs; i++) {
		struct smi_segment *s = &r->segs[i];

		if (smi_one_segment(r))
			err = smi_segment_map(s, r->offset, r->size,
					      base ? base + r->offset : NULL);
		else
			err = smi_segment_map(s, 0, s->size,
					      base ? base + s->offset : NULL);
	}
	if (err)
		smi_region_unmap(r);
	r->base = r->segs[r->type == SMI_SHM_FRAGMENTED ? smi.rank : 0].addr;
	return err;
}

static size_t region_span(const struct smi_region *r)
{
	const struct smi_segment *last = &r->segs[r->nsegs - 1];

	return last->offset + last->size;
}

int smi_region_place(struct smi_region *r)
{
	int i, leader, err = SMI_ERR_MAPFAILED, mine, size = sci_team_size(r->team);
	char *base;

	for (i = 0; err && i < smi_address_attempts(size); i++) {
		leader = i % size;
		base = sci_team_rank(r->team) == leader ? smi_address_propose(i, region_span(r)) :
							  NULL;
		err = smi_error_of_team(sci_team_bcast(r->team, leader, &base, sizeof(base)));
		if (err)
			return err;
		mine = base ? smi_region_map(r, base) : SMI_ERR_MAPFAILED;
		err = smi_agree(r->team, mine);
		if (err && !mine)
			smi_region_unmap(r);
		if (err && err != SMI_ERR_MAPFAILED)
			return err;
	}
	if (err && !sci_team_rank(r->team))
		fprintf(stderr, "smi: no range of %zu bytes is free at the same address "
			"in all processes (use SMI_SHM_NONFIXED, or a smaller region)\n",
			region_span(r));
	return err;
}

/* ---- create and free ---- */

#define ONE_SEGMENT	(SMI_SHM_SHRINKABLE | SMI_SHM_CALLBACK)

/* Check the flags of a region's type. Only types of one segment permit ONE_SEGMENT. */
static int region_check_flags(int type, int flags)
{
	static const int permitted[SMI_SHM_RDMA + 1] = {
		[SMI_SHM_UNDIVIDED] = ONE_SEGMENT | SMI_SHM_NONFIXED | SMI_SHM_DELAYED |
				      SMI_SHM_INTERN,
		[SMI_SHM_SMP] = SMI_SHM_NONFIXED | SMI_SHM_INTERN,
		[SMI_SHM_PT2PT] = ONE_SEGMENT | SMI_SHM_NONFIXED | SMI_SHM_DELAYED,
		[SMI_SHM_FRAGMENTED] = SMI_SHM_NONFIXED,
		[SMI_SHM_LOCAL] = ONE_SEGMENT | SMI_SHM_NONFIXED | SMI_SHM_REGISTER |
				  SMI_SHM_PRIVATE,
		[SMI_SHM_REMOTE] = ONE_SEGMENT | SMI_SHM_NONFIXED,
		[SMI_SHM_RDMA] = ONE_SEGMENT | SMI_SHM_NONFIXED,
	};

	if (type < 0 || type > SMI_SHM_RDMA)
		return SMI_ERR_PARAM;
	if (flags & ONE_SEGMENT & ~permitted[type])
		return SMI_ERR_NOTIMPL;
	if (flags & ~permitted[type])
		return SMI_ERR_PARAM;
	if (flags & SMI_SHM_DELAYED && !(flags & SMI_SHM_NONFIXED))
		return SMI_ERR_PARAM;
	return type == SMI_SHM_CYCLIC ? SMI_ERR_NOTIMPL : SMI_SUCCESS;
}

static bool adapter_is_named(int adapter)
{
	return adapter >= 0 && adapter <= 2;
}

/* Create a region. smi_create_import() itself stores the results, before a callback frees @r. */
static int region_create(struct smi_region *r, smi_region_info_t *info, int *id, void **address)
{
	int device, err;

	if (r->flags & SMI_SHM_CALLBACK)
		r->cb = info->cb_fcn;
	r->no_adapter = r->flags & SMI_SHM_INTERN || r->type == SMI_SHM_SMP || smi.nodes == 1;
	/* a region that needs no adapter ignores @info->adapter */
	if (!r->no_adapter && adapter_is_named(info->adapter))
		r->adapter = (unsigned int)info->adapter;
	device = r->no_adapter || smi_adapter_valid(r->adapter) ? SMI_SUCCESS : SMI_ERR_NODEVICE;
	if (r->type >= SMI_SHM_LOCAL && device)
		return device;
	if (r->type > SMI_SHM_LOCAL)
		return smi_create_import(r, info, id, address);
	err = r->type == SMI_SHM_LOCAL ? smi_create_local(r, info, address) :
					 smi_create_common(r, info, address, device);
	if (err)
		return err;
	info->size = r->size;
	*id = r->id;
	return SMI_SUCCESS;
}

/* Create the team of the two processes that share a region. */
static int pair_open(const smi_region_info_t *info, struct sci_team **team)
{
	const int ranks[] = { info->owner, info->partner };

	if (!smi_rank_ok(info->owner) || !smi_rank_ok(info->partner) ||
	    info->owner == info->partner ||
	    (smi.rank != info->owner && smi.rank != info->partner))
		return SMI_ERR_PARAM;
	return smi_error_of_team(sci_team_create(smi.team, ranks, 2, team));
}

void smi_pair_close(struct sci_team *team)
{
	if (team != smi.team)
		sci_team_close(team);
}

SMI_API smi_error_t SMI_Create_shreg(int type, smi_region_info_t *info, int *id,
				     void **address)
{
	int flags = type & ~1023, err;
	struct sci_team *team = smi.team;
	struct smi_region *r;

	SMI_REFUSE(!info || !id || !address);
	type &= 1023;
	err = region_check_flags(type, flags);
	if (!err && type == SMI_SHM_PT2PT)
		err = pair_open(info, &team);
	if (err)
		return err;
	r = smi_region_new(type);
	if (r) {
		r->flags = flags;
		r->team = team;
		err = region_create(r, info, id, address);
	} else {
		/* make the creation fail in all processes of the region */
		err = type < SMI_SHM_LOCAL ? smi_agree(team, SMI_ERR_NOMEM) : SMI_ERR_NOMEM;
	}
	if (err) {
		smi_pair_close(team);
		smi_region_drop(r);
	}
	return err;
}

SMI_API smi_error_t SMI_Connect_shreg(int id, void **address)
{
	struct smi_region *r = smi_region_get(id);
	int err;

	SMI_REFUSE(!r || !address || !smi_one_segment(r));
	if (!r->connected) {
		err = smi_segment_open(&r->segs[0]);
		err = err ? err : smi_region_map(r, NULL);
		if (err)
			return err;
		r->connected = true;
		smi_tell_owner(r);
	}
	*address = r->base;
	return SMI_SUCCESS;
}

int smi_region_free(const int *id)
{
	struct smi_region *r;
	bool internal, local, import;

	SMI_ENTER();
	/* a callback may free a region of one process at the same time */
	pthread_mutex_lock(&smi.lock);
	r = smi_region_find(*id);
	internal = r && r->internal;
	local = r && r->type == SMI_SHM_LOCAL;
	import = r && smi_is_import(r);
	if (import)
		smi_region_take(r);
	pthread_mutex_unlock(&smi.lock);
	if (!r)
		return SMI_ERR_PARAM;
	if (internal)
		return SMI_ERR_NOSEGMENT;
	if (local)
		return smi_free_local(id);
	return import ? smi_free_import(r) : smi_free_common(r);
}

SMI_API smi_error_t SMI_Free_shreg(int id)
{
	return smi_region_free(&id);
}

/* Release all regions, including internal ones. Send no messages to other processes. */
void smi_regions_end(void)
{
	for (int i = 0; i < smi.nregions; i++) {
		struct smi_region *r = smi.regions[i];

		for (int k = 0; r && k < r->nsegs; k++)
			smi_segment_close(&r->segs[k]);
		smi_region_drop(r);
	}
	free(smi.regions);
	smi.nregions = 0;		/* smi_region_get() finds none */
}

/* ---- queries ---- */

SMI_API smi_error_t SMI_Init_reginfo(smi_region_info_t *info, size_t size, size_t offset,
				     int owner, int loc_adpt, int rmt_adpt, int sgmt_id,
				     smi_region_callback_t cb_fcn)
{
	SMI_REFUSE(!info || !smi_rank_ok(owner));
	*info = (smi_region_info_t) {
		.size = size, .owner = owner, .offset = offset, .sgmt_id = sgmt_id,
		.adapter = loc_adpt, .rmt_adapter = rmt_adpt, .cb_fcn = cb_fcn,
	};
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Set_adapter(int adapter)
{
	bool used = false;

	SMI_ENTER();
	if (adapter == SMI_ADPT_CYCLIC || adapter == SMI_ADPT_BIDIRECTIONAL)
		return SMI_ERR_NOTIMPL;
	if (adapter != SMI_ADPT_DEFAULT && adapter != SMI_ADPT_IMPEXP &&
	    adapter != SMI_ADPT_SMP && !adapter_is_named(adapter))
		return SMI_ERR_PARAM;
	if (adapter_is_named(adapter) && !smi_adapter_valid((unsigned int)adapter))
		return SMI_ERR_NODEVICE;
	pthread_mutex_lock(&smi.lock);
	for (int i = 0; i < smi.nregions; i++)
		used |= smi.regions[i] && !smi.regions[i]->internal;
	if (!used)
		smi.adapter = adapter_is_named(adapter) ? (unsigned int)adapter : smi.first_adapter;
	pthread_mutex_unlock(&smi.lock);
	return used ? SMI_ERR_BUSY : SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Set_region_callback(int id, smi_region_callback_t cb_fcn)
{
	struct smi_region *r = smi_region_get(id);

	SMI_REFUSE(!r || !(r->flags & SMI_SHM_CALLBACK));
	pthread_mutex_lock(&smi.lock);
	r->cb = cb_fcn;
	pthread_mutex_unlock(&smi.lock);
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Range_to_region(void *adr, size_t len, int *id)
{
	struct smi_region *r;

	SMI_REFUSE(!id);
	/* hold the lock: a callback may free an import when the owner frees the segment */
	pthread_mutex_lock(&smi.lock);
	r = region_find(adr, len, false);
	if (r)
		*id = r->id;
	pthread_mutex_unlock(&smi.lock);
	return r ? SMI_SUCCESS : SMI_ERR_PARAM;
}

SMI_API smi_error_t SMI_Adr_to_region(void *adr, int *id)
{
	return SMI_Range_to_region(adr, 1, id);
}

SMI_API smi_error_t SMI_Region_layout(int id, smi_rlayout_t **layout)
{
	struct smi_region *r = smi_region_get(id);
	smi_rlayout_t l, *out;
	size_t n;

	SMI_REFUSE(!r || !layout);
	n = (size_t)r->nsegs;
	l = (smi_rlayout_t) {
		.nsegments = n, .size = r->size, .adr = r->base,
		.seg_size = calloc(n, sizeof(*l.seg_size)),
		.seg_adr = calloc(n, sizeof(*l.seg_adr)),
		.seg_machine = calloc(n, sizeof(*l.seg_machine)),
	};
	out = malloc(sizeof(*out));
	if (!out || !l.seg_size || !l.seg_adr || !l.seg_machine) {
		free(l.seg_size);
		free(l.seg_adr);
		free(l.seg_machine);
		free(out);
		return SMI_ERR_NOMEM;
	}
	for (size_t i = 0; i < n; i++) {
		l.seg_size[i] = r->segs[i].size;
		l.seg_adr[i] = r->segs[i].addr;
		l.seg_machine[i] = smi_node_of(r->segs[i].owner);
	}
	*out = l;
	*layout = out;
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Get_region_locator(int id, smi_sgmt_locator_t *locator)
{
	struct smi_region *r = smi_region_get(id);

	SMI_REFUSE(!r || !locator);
	locator->sci_id = (int)smi.sci_node[smi_node_of(r->segs[0].owner)];
	locator->segment_id = (int)r->segs[0].sci_id;
	return SMI_SUCCESS;
}

SMI_API void print_region(void)
{
	if (smi_check_up())
		return;
	pthread_mutex_lock(&smi.lock);
	for (int i = 0; i < smi.nregions; i++) {
		struct smi_region *r = smi.regions[i];

		if (!r)
			continue;
		printf("[%d] region %d: type %d flags %#x size %zu at %p%s\n", smi.rank,
		       r->id, r->type, (unsigned int)r->flags, r->size, (void *)r->base,
		       r->internal ? " (internal)" : "");
		for (int k = 0; k < r->nsegs; k++)
			printf("[%d]   segment %#x of process %d: %zu bytes at %p\n",
			       smi.rank, r->segs[k].sci_id, r->segs[k].owner,
			       r->segs[k].size, (void *)r->segs[k].addr);
	}
	pthread_mutex_unlock(&smi.lock);
}
