// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Maps of local and remote segments. */

#include "libsci/sisci/object.h"

#include <unistd.h>

#include "libsci/fabric/core/fault.h"

#define LOCAL_FLAGS	(SCI_FLAG_FIXED_MAP_ADDR | SCI_FLAG_READONLY_MAP)
/* Hints for windows of an adapter; maps of plain memory ignore them. */
#define HINTS		(SCI_FLAG_BROADCAST | SCI_FLAG_LOCK_OPERATION |	\
			 SCI_FLAG_READ_PREFETCH_AGGR_HOLD_MAP |		\
			 SCI_FLAG_READ_PREFETCH_NO_HOLD_MAP |		\
			 SCI_FLAG_IO_MAP_IOSPACE |			\
			 SCI_FLAG_DMOVE_MAP |				\
			 SCI_FLAG_WRITES_DISABLE_GATHER_MAP |		\
			 SCI_FLAG_DISABLE_128_BYTES_PACKETS |		\
			 SCI_FLAG_WRITE_BACK_CACHE_MAP |		\
			 SCI_FLAG_NO_MEMORY_LOOPBACK_MAP)
#define NOT_HERE	(SCI_FLAG_CONDITIONAL_INTERRUPT_MAP |		\
			 SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP)

struct range {
	size_t offset;
	size_t size;
	void *addr;			/* the address that the caller asks for */
	unsigned int flags;
};

static sci_error_t map_check_range(const struct range *want, uint64_t have)
{
	size_t mask = (size_t)sysconf(_SC_PAGESIZE) - 1;

	if (!want->size)
		return SCI_ERR_SIZE_ALIGNMENT;
	if (want->offset > have || want->size > have - want->offset)
		return SCI_ERR_OUT_OF_RANGE;
	if (!(want->flags & SCI_FLAG_FIXED_MAP_ADDR))
		return SCI_ERR_OK;
	if (!want->addr)
		return SCI_ERR_ILLEGAL_ADDRESS;
	return ((uintptr_t)want->addr ^ want->offset) & mask ?
	       SCI_ERR_OFFSET_ALIGNMENT : SCI_ERR_OK;
}

static unsigned int map_fabric_flags(unsigned int flags)
{
	return (flags & SCI_FLAG_READONLY_MAP ? SCI_MAP_READONLY : 0) |
	       (flags & SCI_FLAG_FIXED_MAP_ADDR ? SCI_MAP_FIXED : 0);
}

static sci_error_t map_publish(struct sci_map_obj *m, const struct range *want,
			       void *addr, sci_map_t *map)
{
	m->addr = addr;
	m->size = want->size;
	m->offset = want->offset;
	m->readonly = want->flags & SCI_FLAG_READONLY_MAP;
	*map = sci_handle(m);
	sci_publish(m);
	return SCI_ERR_OK;
}

static sci_error_t map_new(void *segment, struct sci_map_obj **m)
{
	sci_error_t err;

	if (!sci_use(segment))
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = sci_new(SCI_TYPE_MAP, sizeof(**m), NULL, m);
	if (err)
		sci_unuse(segment);
	return err;
}

/* Store the address of plain memory of the caller, which needs no map, in @addr. */
static sci_error_t map_plain(const struct sci_lseg_obj *s,
			     const struct range *want, void **addr)
{
	void *at = s->mem + want->offset;

	if (want->flags & SCI_FLAG_FIXED_MAP_ADDR && want->addr != at)
		return SCI_ERR_ILLEGAL_ADDRESS;
	*addr = at;
	return SCI_ERR_OK;
}

static sci_error_t map_lseg(struct sci_lseg_obj *s, sci_map_t *map,
			    const struct range *want, void **addr)
{
	struct sci_map_obj *m;
	sci_error_t err;

	pthread_mutex_lock(&s->obj.lock);
	err = s->empty ? SCI_ERR_ILLEGAL_OPERATION :
	      map_check_range(want, sci_lib.ops->lseg.size(s->seg));
	pthread_mutex_unlock(&s->obj.lock);
	err = err ? err : map_new(s, &m);
	if (err)
		return err;
	m->lseg = s;
	m->pio = SCI_PIO_MAP_CACHED;
	*addr = want->addr;
	err = s->mem ? map_plain(s, want, addr) :
		       sci_err(sci_lib.ops->lseg.map(s->seg, want->offset, want->size,
						     map_fabric_flags(want->flags), addr),
			       SCI_CTX_MAP);
	if (!err)
		return map_publish(m, want, *addr, map);
	sci_release(m);
	sci_unuse(s);
	return err;
}

static sci_error_t map_local(sci_local_segment_t segment, sci_map_t *map,
			     const struct range *want, void **addr)
{
	struct sci_lseg_obj *s;
	sci_error_t err;

	if (!map)
		return SCI_ERR_ILLEGAL_PARAMETER;
	s = sci_get(segment, SCI_TYPE_LSEG);
	if (!s)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = map_lseg(s, map, want, addr);
	sci_put(s);
	return err;
}

void *SCIMapLocalSegment(sci_local_segment_t segment, sci_map_t *map,
			 size_t offset, size_t size, void *addr,
			 unsigned int flags, sci_error_t *error)
{
	const struct range want = { offset, size, addr, flags };
	sci_error_t err;
	void *got = NULL;

	SCI_RUN(err, flags, LOCAL_FLAGS,
		 map_local(segment, map, &want, &got));
	sci_set_error(error, err);
	return err ? NULL : got;
}
SISCI_EXPORT(SCIMapLocalSegment);

static sci_error_t map_rseg(struct sci_rseg_obj *r, struct sci_rseg *seg,
			    sci_map_t *map, const struct range *want,
			    void **addr)
{
	struct sci_map_obj *m;
	sci_error_t err = map_check_range(want, sci_lib.ops->rseg.size(seg));

	err = err ? err : map_new(r, &m);
	if (err)
		return err;
	m->rseg = r;
	m->status = sci_lib.ops->rseg.status(seg);
	m->pio = m->status->link->map;
	*addr = want->addr;
	err = sci_err(sci_lib.ops->rseg.map(seg, want->offset, want->size,
					    map_fabric_flags(want->flags), addr),
		      SCI_CTX_MAP);
	if (!err)
		return map_publish(m, want, *addr, map);
	sci_release(m);
	sci_unuse(r);
	return err;
}

static sci_error_t map_remote(sci_remote_segment_t segment, sci_map_t *map,
			      const struct range *want, void **addr)
{
	struct sci_rseg_obj *r;
	struct sci_rseg *seg;
	sci_error_t err;

	if (want->flags & NOT_HERE)
		return SCI_ERR_FLAG_NOT_IMPLEMENTED;
	if (!map)
		return SCI_ERR_ILLEGAL_PARAMETER;
	r = sci_get(segment, SCI_TYPE_RSEG);
	if (!r)
		return SCI_ERR_ILLEGAL_PARAMETER;
	pthread_mutex_lock(&r->obj.lock);
	seg = r->seg;
	pthread_mutex_unlock(&r->obj.lock);
	err = seg ? map_rseg(r, seg, map, want, addr) :
		    SCI_ERR_SEGMENT_NOT_CONNECTED;
	sci_put(r);
	return err;
}

volatile void *SCIMapRemoteSegment(sci_remote_segment_t segment,
				   sci_map_t *map, size_t offset, size_t size,
				   void *addr, unsigned int flags,
				   sci_error_t *error)
{
	const struct range want = { offset, size, addr, flags };
	sci_error_t err;
	void *got = NULL;

	SCI_RUN(err, flags, LOCAL_FLAGS | HINTS | NOT_HERE,
		 map_remote(segment, map, &want, &got));
	sci_set_error(error, err);
	return err ? NULL : got;
}
SISCI_EXPORT(SCIMapRemoteSegment);

void sci_map_destroy(void *obj)
{
	struct sci_map_obj *m = obj;
	void *segment = m->lseg ? (void *)m->lseg : (void *)m->rseg;

	sci_close_obj(m, true);
	sci_retire(m);
	sci_drain(m);
	sci_fault_forget(m->addr, m->size);
	sci_seq_unmapped(m);
	if (!m->lseg || !m->lseg->mem)
		sci_lib.ops->unmap(sci_lib.fabric, m->addr, m->size);
	sci_release(m);
	sci_unuse(segment);
}

static sci_error_t map_close(sci_map_t map)
{
	struct sci_map_obj *m = sci_get(map, SCI_TYPE_MAP);
	sci_error_t err;

	if (!m)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = sci_close_obj(m, false);
	if (!err)
		sci_map_destroy(m);
	sci_put(m);
	return err;
}

void SCIUnmapSegment(sci_map_t map, unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0, map_close(map));
}
SISCI_EXPORT(SCIUnmapSegment);
