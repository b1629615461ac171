// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Allocation in regions, and in the internal region that each node has. */

#include "libsci/smi/internal.h"

#define NODEMEM_SIZE	(1u << 20)	/* the internal region of a node */

/* Sync the whole region: its free blocks contain links. */
static void pool_sync(struct smi_region *r)
{
	for (int i = 0; i < r->nsegs; i++)
		smi_segment_sync(&r->segs[i], r->segs[i].addr, r->segs[i].mapped);
}

static int pool_enter(struct smi_region *r)
{
	int err = SMI_SUCCESS;

	if (r->pool_lock >= 0)
		err = smi_lock_take(r->pool_lock, -1);
	else
		pthread_mutex_lock(&smi.lock);
	if (!err)
		pool_sync(r);
	return err;
}

static void pool_leave(struct smi_region *r)
{
	pool_sync(r);
	if (r->pool_lock < 0) {
		pthread_mutex_unlock(&smi.lock);
		return;
	}
	/* an adapter may still repeat stores that got lost */
	smi_stores_arrive();
	smi_lock_give(r->pool_lock);
}

/* Create the pool of a region. Collective: a process with an error takes part, too. */
static int pool_create(struct smi_region *r)
{
	struct smi_pool *p = (void *)r->base;
	/* the pool begins at the same byte of the region in all processes */
	int err = r->pool ? SMI_ERR_PARAM : p && !r->offset ? SMI_SUCCESS : SMI_ERR_NOSEGMENT;

	/* the processes' earlier stores must not overwrite the allocator's */
	smi_store_barrier();
	err = smi_agree(r->team, err);
	if (err)
		return err;
	r->pool_lock = smi_lock_new(r->owner, false);
	if (smi.rank == r->segs[0].owner && (r->pool_lock < 0 || !smi_pool_init(p, r->size)))
		err = SMI_ERR_NOMEM;
	smi_store_barrier();
	err = smi_agree(r->team, err);
	if (err)
		smi_lock_free(r->pool_lock);
	else
		r->pool = p;
	return err;
}

SMI_API smi_error_t SMI_Init_shregMMU(int region_id)
{
	struct smi_region *r = smi_region_get(region_id);

	SMI_REFUSE(!r || r->internal || r->type == SMI_SHM_FRAGMENTED);
	if (smi_is_collective(r))
		return pool_create(r);
	if (r->pool || r->owner != smi.rank || !r->base)
		return SMI_ERR_PARAM;
	if (!smi_pool_init((void *)r->base, r->size))
		return SMI_ERR_NOMEM;
	r->pool_lock = -1;
	r->pool = (void *)r->base;
	return SMI_SUCCESS;
}

static int region_alloc(struct smi_region *r, size_t size, void **adr)
{
	void *block;
	int err = pool_enter(r);

	if (err)
		return err;
	block = smi_pool_ok(r->pool, r->size) ? smi_pool_alloc(r->pool, size) : NULL;
	pool_leave(r);
	if (!block)
		return SMI_ERR_NOMEM;
	*adr = block;
	return SMI_SUCCESS;
}

static int region_free(struct smi_region *r, void *adr)
{
	int err = pool_enter(r);

	if (err)
		return err;
	err = smi_pool_ok(r->pool, r->size) ? smi_pool_free(r->pool, adr) :
					      SMI_ERR_PARAM;
	pool_leave(r);
	return err;
}

SMI_API smi_error_t SMI_Imalloc(size_t size, int region_id, void **adr)
{
	struct smi_region *r = smi_region_get(region_id);

	SMI_REFUSE(!r || !r->pool || r->internal || !adr);
	return region_alloc(r, size, adr);
}

SMI_API smi_error_t SMI_Ifree(void *adr)
{
	struct smi_region *r = smi_region_at(adr, 1, false);

	SMI_REFUSE(!r || !r->pool);
	return region_free(r, adr);
}

/* Return true if all processes allocate from one pool: an SMP region has a pool on each node. */
static bool pool_is_common(const struct smi_region *r)
{
	return smi_is_collective(r) && (r->type != SMI_SHM_SMP || smi.nodes == 1);
}

/* Allocate in process 0, which broadcasts the offset: the addresses of the region may differ. */
SMI_API smi_error_t SMI_Cmalloc(size_t size, int region_id, void **adr)
{
	struct answer {
		int64_t offset;
		int64_t err;
	} a = { 0, SMI_SUCCESS };
	struct smi_region *r = smi_region_get(region_id);
	void *block;
	int err;

	SMI_REFUSE(!r || !r->pool || r->internal || !adr);
	if (!pool_is_common(r))
		return SMI_ERR_OTHER;
	if (smi.rank == 0) {
		a.err = region_alloc(r, size, &block);
		a.offset = a.err ? 0 : (char *)block - (char *)r->pool;
	}
	err = smi_error_of_team(sci_team_bcast(smi.team, 0, &a, sizeof(a)));
	err = err ? err : (int)a.err;
	if (!err)
		*adr = (char *)r->pool + a.offset;
	return err;
}

SMI_API smi_error_t SMI_Cfree(void *adr)
{
	struct smi_region *r = smi_region_at(adr, 1, false);
	int err;

	SMI_REFUSE(!r || !r->pool);
	if (!pool_is_common(r))
		return SMI_ERR_OTHER;
	/* wait until all processes have called SMI_Cfree(): then no process uses the block */
	smi_store_barrier();
	err = smi_agree(smi.team, SMI_SUCCESS);
	if (!err && smi.rank == 0)
		err = region_free(r, adr);
	return smi_agree(smi.team, err);
}

/* ---- node memory ---- */

/*
 * Create the internal regions 0 .. nodes-1. Each node has one internal region, which all processes
 * map. If memory of other nodes is not coherent, a sequence of a remote map becomes smi.seq, with
 * which barriers order stores. If it is coherent, the team's calls order stores.
 */
int smi_nodemem_start(void)
{
	unsigned int traits = sci_ep_traits(sci_team_ep(smi.all));
	bool coherent = traits & SCI_TRAIT_SHARED_MEMORY;
	int i, err = SMI_SUCCESS;

	smi.stale = traits & SCI_TRAIT_INCOHERENT;
	for (i = 0; !err && i < smi.nodes; i++) {
		smi_region_info_t info = { .size = NODEMEM_SIZE, .owner = smi.first[i] };
		struct smi_region *r;

		err = smi_create_internal(SMI_SHM_UNDIVIDED, &info, &r);
		err = err ? err : pool_create(r);
		if (!err && !coherent && r->segs[0].seq)
			smi.seq = r->segs[0].seq;
	}
	return err;
}

SMI_API void *SMI_Nodemem_alloc(size_t size)
{
	void *adr = NULL;

	if (smi_check_up() || region_alloc(smi_region_get(smi.node), size, &adr))
		return NULL;
	return adr;
}

SMI_API smi_error_t SMI_Nodemem_free(void *adr)
{
	struct smi_region *r = smi_region_get(smi.node);

	SMI_REFUSE(!adr || !smi_segment_at(r, adr));
	return region_free(r, adr);
}

SMI_API void *SMI_Nodemem_address(int node)
{
	if (smi_check_up() || node < 0 || node >= smi.nodes)
		return NULL;
	return smi_region_get(node)->base;
}
