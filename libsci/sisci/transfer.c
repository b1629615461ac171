// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Copies through maps, on the calling thread. */

#include "libsci/sisci/transfer.h"

#include "libsci/base/barrier.h"
#include "libsci/fabric/core/fault.h"

#define BOUNCE	4096

static bool transfer_in_range(const struct sci_map_obj *m, size_t off, size_t size)
{
	return off <= m->size && size <= m->size - off;
}

static void transfer_write(struct sci_map_obj *m, size_t off, const void *src,
			   size_t size)
{
	if (m->status) {
		sci_remote_write(m->addr + off, src, size, m->status->link);
		return;
	}
	sci_link_refresh_ends(sci_lib.link, m->addr + off, size);
	sci_pio_write(m->addr + off, src, size, SCI_PIO_MAP_CACHED);
	sci_link_write_back(sci_lib.link, m->addr + off, size);
}

static void transfer_read(const struct sci_map_obj *m, size_t off, void *dst, size_t size)
{
	sci_link_refresh(sci_lib.link, m->addr + off, size);
	sci_pio_read(dst, m->addr + off, size, m->pio);
}

/* Return an error if the error count is not @before, or if the connection is lost. */
static sci_error_t transfer_check(struct sci_map_obj *m, uint32_t before)
{
	if (!m->status)
		return SCI_ERR_OK;
	sci_remote_barrier(sci_lib.fabric, NULL);
	sci_remote_check(m->status);
	return atomic_load(&m->status->gone) ||
	       sci_link_down(m->status->link) ||
	       sci_link_errors(m->status->link) != before ?
	       SCI_ERR_TRANSFER_FAILED : SCI_ERR_OK;
}

static uint32_t link_errors_get(struct sci_map_obj *m)
{
	return m->status ? sci_link_errors(m->status->link) : 0;
}

/*
 * Return the function for the common case; NULL: use the slow path. The CPU copies 64 bytes in
 * 3 ns, so each instruction counts: callers check for the common case first.
 */
static sci_pio_copy_fn *quick_copy_get(void)
{
	return atomic_load_explicit(&sci_lib.quick, memory_order_acquire);
}

#define MEMCPY_FLAGS	(SCI_FLAG_BLOCK_READ | SCI_FLAG_ERROR_CHECK)

static __attribute__((noinline)) sci_error_t
transfer_copy(sci_sequence_t sequence, void *mem, sci_map_t map, size_t off,
	      size_t size, unsigned int flags)
{
	struct sci_map_obj *m;
	uint32_t before = 0;

	if (!sci_up())
		return SCI_ERR_NOT_INITIALIZED;
	if (flags & ~MEMCPY_FLAGS)
		return SCI_ERR_ILLEGAL_FLAG;
	m = sci_peek(map, SCI_TYPE_MAP);
	if (!m || (!mem && size) ||
	    (sequence && !sci_peek(sequence, SCI_TYPE_SEQUENCE)))
		return SCI_ERR_ILLEGAL_PARAMETER;
	if (!transfer_in_range(m, off, size))
		return SCI_ERR_OUT_OF_RANGE;
	if (flags & SCI_FLAG_ERROR_CHECK)
		before = link_errors_get(m);
	if (flags & SCI_FLAG_BLOCK_READ)
		transfer_read(m, off, mem, size);
	else if (m->readonly)
		return SCI_ERR_ACCESS;
	else
		transfer_write(m, off, mem, size);
	return flags & SCI_FLAG_ERROR_CHECK ? transfer_check(m, before) : SCI_ERR_OK;
}

void SCIMemCpy(sci_sequence_t sequence, void *memAddr, sci_map_t remoteMap,
	       size_t remoteOffset, size_t size, unsigned int flags,
	       sci_error_t *error)
{
	sci_pio_copy_fn *fn = quick_copy_get();
	struct sci_map_obj *m;

	if (fn && !flags && !sequence && memAddr) {
		m = sci_peek(remoteMap, SCI_TYPE_MAP);
		if (m && !m->readonly && transfer_in_range(m, remoteOffset, size)) {
			sci_set_error(error, SCI_ERR_OK);
			fn(m->addr + remoteOffset, memAddr, size);
			return;
		}
	}
	sci_set_error(error, transfer_copy(sequence, memAddr, remoteMap, remoteOffset,
					   size, flags));
}
SISCI_EXPORT(SCIMemCpy);

void SCIMemCopy(void *memAddr, sci_map_t remoteMap, size_t remoteOffset,
		size_t size, unsigned int flags, sci_error_t *error)
{
	/* Without a sequence the caller cannot check for lost data, so this call checks. */
	sci_set_error(error, transfer_copy(NULL, memAddr, remoteMap, remoteOffset, size,
					   flags | SCI_FLAG_ERROR_CHECK));
}
SISCI_EXPORT(SCIMemCopy);

static __attribute__((noinline)) void
write_mem(void *mem, volatile void *remote, size_t size, unsigned int flags,
	  sci_error_t *error)
{
	sci_error_t err = SCI_ERR_OK;

	if (!sci_up())
		err = SCI_ERR_NOT_INITIALIZED;
	else if (flags)
		err = SCI_ERR_ILLEGAL_FLAG;
	else if (size && (!mem || !remote))
		err = SCI_ERR_ILLEGAL_PARAMETER;
	else
		sci_remote_write(remote, mem, size, sci_lib.link);
	sci_set_error(error, err);
}

void SCIMemWrite(void *memAddr, volatile void *remoteAddr, size_t size,
		 unsigned int flags, sci_error_t *error)
{
	sci_pio_copy_fn *fn = quick_copy_get();

	if (fn && !flags && memAddr && remoteAddr) {
		sci_set_error(error, SCI_ERR_OK);
		fn((void *)remoteAddr, memAddr, size);
	} else {
		write_mem(memAddr, remoteAddr, size, flags, error);
	}
}
SISCI_EXPORT(SCIMemWrite);

/* ---- from map to map ---- */

sci_error_t sci_transfer_check(const struct sci_transfer *t)
{
	if (!transfer_in_range(t->src, t->src_off, t->size) ||
	    !transfer_in_range(t->dst, t->dst_off, t->size))
		return SCI_ERR_OUT_OF_RANGE;
	return t->dst->readonly ? SCI_ERR_ACCESS : SCI_ERR_OK;
}

/* Return true if the destination begins inside the source, in the same segment. */
static bool transfer_copy_backwards(const struct sci_transfer *t)
{
	size_t src = t->src->offset + t->src_off;
	size_t dst = t->dst->offset + t->dst_off;

	return t->src->lseg == t->dst->lseg && t->src->rseg == t->dst->rseg &&
	       dst > src && dst - src < t->size;
}

/* Maps of one segment may overlap at different addresses: copy through a buffer. */
static void transfer_copy_piece(const struct sci_transfer *t, size_t off, size_t n)
{
	char buf[BOUNCE];

	transfer_read(t->src, t->src_off + off, buf, n);
	transfer_write(t->dst, t->dst_off + off, buf, n);
}

sci_error_t sci_transfer_run(const struct sci_transfer *t, size_t from,
			     size_t to)
{
	uint32_t src_before = link_errors_get(t->src);
	uint32_t dst_before = link_errors_get(t->dst);
	bool same = t->src->lseg == t->dst->lseg &&
		    t->src->rseg == t->dst->rseg;
	sci_error_t err;
	size_t off, n;

	if (!same) {
		sci_link_refresh(sci_lib.link, t->src->addr + t->src_off + from, to - from);
		transfer_write(t->dst, t->dst_off + from,
			       t->src->addr + t->src_off + from, to - from);
	} else if (transfer_copy_backwards(t)) {
		for (off = to; off > from; off -= n) {
			n = off - from < BOUNCE ? off - from : BOUNCE;
			transfer_copy_piece(t, off - n, n);
		}
	} else {
		for (off = from; off < to; off += n) {
			n = to - off < BOUNCE ? to - off : BOUNCE;
			transfer_copy_piece(t, off, n);
		}
	}
	err = transfer_check(t->src, src_before);
	return err ? err : transfer_check(t->dst, dst_before);
}

bool sci_transfer_backwards(const struct sci_transfer *t)
{
	return transfer_copy_backwards(t);
}

sci_error_t sci_transfer_get(struct sci_transfer *t, sci_map_t src,
			     sci_map_t dst)
{
	t->src = sci_get(src, SCI_TYPE_MAP);
	t->dst = t->src ? sci_get(dst, SCI_TYPE_MAP) : NULL;
	if (t->dst)
		return SCI_ERR_OK;
	if (t->src)
		sci_put(t->src);
	return SCI_ERR_ILLEGAL_PARAMETER;
}

void sci_transfer_put(struct sci_transfer *t)
{
	sci_put(t->src);
	sci_put(t->dst);
}

static sci_error_t transfer_run(sci_map_t src, sci_map_t dst,
				struct sci_transfer *t)
{
	sci_error_t err = sci_transfer_get(t, src, dst);

	if (err)
		return err;
	err = sci_transfer_check(t);
	err = err ? err : sci_transfer_run(t, 0, t->size);
	sci_transfer_put(t);
	return err;
}

void SCITransferBlock(sci_map_t sourceMap, size_t sourceOffset,
		      sci_map_t destinationMap, size_t destinationOffset,
		      size_t size, unsigned int flags, sci_error_t *error)
{
	struct sci_transfer t = {
		.src_off = sourceOffset, .dst_off = destinationOffset,
		.size = size,
	};

	SCI_CALL(error, flags, 0, transfer_run(sourceMap, destinationMap, &t));
}
SISCI_EXPORT(SCITransferBlock);

/* ---- the CPU's cache ---- */

static sci_error_t cache_sync(sci_map_t map, char *addr, size_t length)
{
	struct sci_map_obj *m = NULL;
	sci_error_t err = SCI_ERR_OK;

	if (!addr && length)
		return SCI_ERR_ILLEGAL_PARAMETER;
	if (map) {
		m = sci_get(map, SCI_TYPE_MAP);
		if (!m)
			return SCI_ERR_ILLEGAL_PARAMETER;
		if (addr < m->addr ||
		    !transfer_in_range(m, (size_t)(addr - m->addr), length))
			err = SCI_ERR_OUT_OF_RANGE;
	}
	if (!err)
		sci_link_refresh(sci_lib.link, addr, length);
	if (!err && !sci_lib.link->cache)
		sci_cache_flush(addr, length);
	if (m)
		sci_put(m);
	return err;
}

void SCICacheSync(sci_map_t map, void *addr, size_t length,
		  unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, SCI_FLAG_CACHE_FLUSH |
		 SCI_FLAG_CACHE_INVALIDATE, cache_sync(map, addr, length));
}
SISCI_EXPORT(SCICacheSync);
