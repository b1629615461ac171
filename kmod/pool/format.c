// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* A pool's header: the formatter writes it once, and every node that opens the pool checks it. */

#include "pool.h"

#define MS	1000000ull

#ifndef __KERNEL__
void (*pool_store_hook)(void);
void (*pool_cache_hook)(const void *p, size_t n);
#endif

u32 pool_crc(const void *p, size_t n)
{
	const u8 *byte = p;
	u32 crc = ~0u;
	int bit;

	while (n--) {
		crc ^= *byte++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

static u64 form_align(u64 at)
{
	return (at + POOL_ALIGN - 1) & ~(u64)(POOL_ALIGN - 1);
}

static u64 form_chunk_align(const struct pool_form *f, u64 at)
{
	return (at + f->chunk_size - 1) & ~((u64)f->chunk_size - 1);
}

/* Compute the places of the tables for a number of chunks. */
static void form_place(struct pool_form *f)
{
	f->slot_at = POOL_ALIGN;
	f->bell_at = form_align(f->slot_at + f->slots * sizeof(struct pool_slot));
	f->expelled_at = form_align(f->bell_at + f->slots * sizeof(struct pool_bell));
	f->chunk_at = f->expelled_at;
	if (f->incoherent)
		f->chunk_at = form_align(f->expelled_at +
					 f->slots * POOL_SLOTS_MAX * sizeof(__le32));
	f->map_at = form_align(f->chunk_at +
			       (u64)f->chunks * sizeof(struct pool_chunk));
	f->mail_at = form_align(f->map_at +
				(u64)f->slots * f->chunks * sizeof(__le32));
	f->data_at = form_chunk_align(f, f->mail_at + (u64)f->slots * f->slots *
					 sizeof(struct pool_ring));
}

static bool form_fits(const struct pool_form *f)
{
	return f->data_at <= f->size &&
	       (u64)f->chunks * f->chunk_size <= f->size - f->data_at;
}

/* Return the number of chunks of which all numbers of chunks are multiples. */
static u32 form_unit(const struct pool_form *f)
{
	return f->incoherent ? f->slots * POOL_SHARE_UNIT : 1;
}

static void form_set_chunks(struct pool_form *f, u32 chunks)
{
	f->chunks = chunks;
	f->share = f->incoherent ? chunks / f->slots : chunks;
	form_place(f);
}

static bool form_in_range(const struct pool_form *f)
{
	return f->size && !(f->size % POOL_ALIGN) &&
	       f->slots && f->slots <= POOL_SLOTS_MAX &&
	       f->chunk_size >= POOL_CHUNK_MIN && f->chunk_size <= POOL_CHUNK_MAX &&
	       !(f->chunk_size & (f->chunk_size - 1)) &&
	       f->chunks && f->chunks <= POOL_CHUNKS_MAX && !(f->chunks % form_unit(f)) &&
	       f->lease && f->quarantine >= f->lease;
}

/* Compute the number of chunks for which there is room. */
static int form_plan(struct pool_form *f)
{
	u64 spare, each = f->chunk_size + sizeof(struct pool_chunk) +
			  f->slots * sizeof(__le32);
	u32 unit = form_unit(f);

	f->chunks = unit;
	if (!form_in_range(f))
		return -EINVAL;
	form_set_chunks(f, unit);
	if (!form_fits(f))
		return -EINVAL;
	spare = (f->size - f->data_at) / each + unit;
	spare = spare < POOL_CHUNKS_MAX ? spare : POOL_CHUNKS_MAX;
	form_set_chunks(f, spare - spare % unit);
	while (f->chunks > unit && !form_fits(f))
		form_set_chunks(f, f->chunks - unit);
	return form_fits(f) ? 0 : -EINVAL;
}

static u32 header_crc(const struct pool_header *h)
{
	size_t from = offsetof(struct pool_header, size);

	return pool_crc((const u8 *)h + from, sizeof(*h) - from);
}

static void header_fill(struct pool_header *h, const struct pool_form *f)
{
	memset(h, 0, sizeof(*h));
	h->version = cpu_to_le32(f->incoherent ? POOL_VERSION_FLAGS : POOL_VERSION);
	h->size = cpu_to_le64(f->size);
	h->id = cpu_to_le64(f->id);
	h->chunk_size = cpu_to_le32(f->chunk_size);
	h->chunks = cpu_to_le32(f->chunks);
	h->slots = cpu_to_le32(f->slots);
	h->lease_ms = cpu_to_le32(f->lease / MS);
	h->quarantine_ms = cpu_to_le32(f->quarantine / MS);
	h->flags = cpu_to_le32(f->incoherent ? POOL_INCOHERENT : 0);
	h->data = cpu_to_le64(f->data_at);
	h->crc = cpu_to_le32(header_crc(h));
}

int pool_format(void *mem, u64 size, u32 chunk_size, u32 slots, u32 lease_ms,
		u32 quarantine_ms, u64 id, u32 flags)
{
	struct pool_form f = {
		.size = size,
		.id = id,
		.chunk_size = chunk_size,
		.slots = slots,
		.incoherent = flags & POOL_INCOHERENT,
		.lease = lease_ms * MS,
		.quarantine = quarantine_ms * MS,
	};
	struct pool_header *h = mem, copy;
	u64 at;
	int ret;

	if (flags & ~POOL_FLAGS)
		return -EINVAL;
	ret = form_plan(&f);
	if (ret)
		return ret;
	header_fill(&copy, &f);
	pool_set64(&h->magic, 0);
	/* no node may see the new magic number with old tables */
	pool_full_barrier();
	for (at = POOL_ALIGN; at < f.data_at; at += POOL_ALIGN) {
		pool_storing();
		memset((u8 *)mem + at, 0, POOL_ALIGN);
		pool_flush((u8 *)mem + at, POOL_ALIGN);
	}
	pool_put_bytes(h, &copy, sizeof(copy));
	pool_full_barrier();
	pool_set64(&h->magic, POOL_MAGIC);
	return 0;
}

int pool_open(struct pool *p, void *mem, u64 size)
{
	struct pool_form *f = &p->form;
	struct pool_header h;
	u32 flags;

	if (size < POOL_ALIGN)
		return -ENODATA;
	pool_get_bytes(&h, mem, sizeof(h));
	if (le64_to_cpu(h.magic) != POOL_MAGIC)
		return -ENODATA;
	flags = le32_to_cpu(h.flags);
	if (le32_to_cpu(h.version) != (flags ? POOL_VERSION_FLAGS : POOL_VERSION) ||
	    flags & ~POOL_FLAGS)
		return -EPROTONOSUPPORT;
	if (le32_to_cpu(h.crc) != header_crc(&h))
		return -EBADMSG;
	f->size = le64_to_cpu(h.size);
	f->id = le64_to_cpu(h.id);
	f->chunk_size = le32_to_cpu(h.chunk_size);
	f->chunks = le32_to_cpu(h.chunks);
	f->slots = le32_to_cpu(h.slots);
	f->incoherent = flags & POOL_INCOHERENT;
	f->lease = le32_to_cpu(h.lease_ms) * MS;
	f->quarantine = le32_to_cpu(h.quarantine_ms) * MS;
	if (!form_in_range(f) || f->size > size)
		return -EBADMSG;
	form_set_chunks(f, f->chunks);
	if (f->data_at != le64_to_cpu(h.data) || !form_fits(f))
		return -EBADMSG;
	p->mem = mem;
	return 0;
}

bool pool_is_current(const struct pool *p)
{
	const struct pool_header *h = p->mem;

	return pool_get64(&h->magic) == POOL_MAGIC && pool_get64(&h->id) == p->form.id;
}
