// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Copies that complete before the call returns, transfer checks and barriers. */

#include "libsci/smi/internal.h"

#include <string.h>

#define PIECE_MIN	64u		/* bytes */
#define TRIES		1000		/* attempts to copy a piece */
#define TYPE_BITS	0x1f80
#define REMOTE_TO	(SMI_MEMCPY_LP_RS | SMI_MEMCPY_LS_RS)
#define REMOTE_FROM	(SMI_MEMCPY_RS_LP | SMI_MEMCPY_RS_LS)

/*
 * Return the segment at @addr if it is remote, else NULL. @size: limited to the bytes in one
 * segment, remote or not.
 */
static struct smi_segment *segment_remote_at(const void *addr, size_t *size)
{
	struct smi_region *r;
	struct smi_segment *s;
	size_t left;

	if (smi.nodes == 1)
		return NULL;
	r = smi_region_at(addr, 1, true);
	s = r ? smi_segment_at(r, addr) : NULL;
	if (!s)
		return NULL;
	left = s->mapped - (size_t)((const char *)addr - s->addr);
	*size = *size < left ? *size : left;
	return s->rseg ? s : NULL;
}

/* A copy to or from remote memory. */
struct copy {
	struct smi_segment *s;		/* the remote segment */
	char *dst;
	const char *src;
	int flags;
};

/* Store @n bytes. Return: SMI_ERR_TRANSFER: some bytes may not have arrived. */
static int piece_store(const struct copy *c, size_t at, size_t n)
{
	sci_error_t err;

	SCIMemWrite((void *)(uintptr_t)(c->src + at), c->dst + at, n, 0, &err);
	if (err)
		return smi_error_of(err);
	/* SCIMemWrite() has begun to write the lines back */
	if (!(c->flags & SMI_MEMCPY_NOBARRIER))
		smi_stores_arrive();
	else if (!smi.seq)
		sci_store_barrier();	/* SMI_BARRIER() makes no store barrier */
	return c->flags & SMI_MEMCPY_NOVERIFY ? SMI_SUCCESS :
						smi_segment_check(c->s, SMI_CHECK_FAST);
}

static int piece_load(const struct copy *c, size_t at, size_t n)
{
	unsigned int how = SCI_FLAG_BLOCK_READ |
			   (c->flags & SMI_MEMCPY_NOVERIFY ? 0 : SCI_FLAG_ERROR_CHECK);
	size_t offset = (size_t)(c->src - c->s->addr) + at;
	sci_error_t err;

	SCIMemCpy(c->s->seq, c->dst + at, c->s->map, offset, n, how, &err);
	if (err == SCI_ERR_TRANSFER_FAILED && smi_segment_check(c->s, 0) == SMI_ERR_OTHER)
		return SMI_ERR_OTHER;
	return smi_error_of(err);
}

/*
 * Copy, and repeat each piece until it has arrived. The first piece is the whole copy. Halve a
 * piece that fails: where many packets are lost, a long piece never arrives.
 */
static int copy_in_pieces(const struct copy *c, size_t size,
			  int (*fn)(const struct copy *c, size_t at, size_t n))
{
	size_t piece = size, at = 0, n;
	int err, tries = 0;

	while (at < size) {
		n = piece < size - at ? piece : size - at;
		err = fn(c, at, n);
		if (!err) {
			at += n;
			tries = 0;
			piece = piece < size ? 2 * piece : piece;
		} else if (err != SMI_ERR_TRANSFER || ++tries == TRIES) {
			return err == SMI_ERR_OTHER ? SMI_ERR_TRANSFER : err;
		} else {
			piece = piece / 2 / PIECE_MIN * PIECE_MIN;
			piece = piece ? piece : PIECE_MIN;
		}
	}
	return SMI_SUCCESS;
}

int smi_copy_checked(struct smi_segment *s, void *shared, void *other, size_t size,
		     int flags, bool load)
{
	const struct copy c = { s, load ? other : shared, load ? shared : other, flags };

	if (load && !(flags & SMI_MEMCPY_NOBARRIER))
		sci_load_barrier();
	if (s->seq)
		return copy_in_pieces(&c, size, load ? piece_load : piece_store);
	/* a store to a part of a line keeps the bytes beside it */
	smi_segment_sync(s, shared, size);
	memcpy(c.dst, c.src, size);
	if (!load)
		smi_segment_sync(s, shared, size);
	return SMI_SUCCESS;
}

/* Copy the bytes that are in one segment, of *@size bytes. *@size: set to their number. */
static int copy_one_segment(void *dst, void *src, size_t *size, int flags)
{
	int type = flags & TYPE_BITS;
	struct smi_segment *to, *from;

	to = !type || type & REMOTE_TO ? segment_remote_at(dst, size) : NULL;
	from = !type || type & REMOTE_FROM ? segment_remote_at(src, size) : NULL;
	if (to)
		return smi_copy_checked(to, dst, src, *size, flags, false);
	if (from)
		return smi_copy_checked(from, src, dst, *size, flags, true);
	memcpy(dst, src, *size);
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Memcpy(void *dst, void *src, size_t size, int flags)
{
	int type = flags & TYPE_BITS, err = SMI_SUCCESS;

	SMI_REFUSE(flags & ~SMI_MEMCPY_FLAGS_ALL || type & (type - 1));
	if (size && (!dst || !src))
		return SMI_ERR_BADADR;
	for (size_t n; !err && size; size -= n) {
		n = size;
		err = copy_one_segment(dst, src, &n, flags);
		dst = (char *)dst + n;
		src = (char *)src + n;
	}
	return err;
}

/* ---- checks ---- */

/* A check of the remote segments of @node; -1: of all nodes. */
struct transfer {
	int node;
	int flags;
};

/* Look at the segments once: a wait under smi.lock would stop the library's thread. */
static int transfer_look(void *arg)
{
	const struct transfer *t = arg;
	int i, k, ret, err = SMI_SUCCESS;

	pthread_mutex_lock(&smi.lock);
	for (i = 0; i < smi.nregions; i++) {
		struct smi_region *r = smi.regions[i];

		for (k = 0; r && k < r->nsegs; k++) {
			struct smi_segment *s = &r->segs[k];

			if (!s->seq || (t->node >= 0 && smi_node_of(s->owner) != t->node))
				continue;
			ret = smi_segment_look(s, t->flags | SMI_CHECK_NOBARRIER);
			if (ret && err != SMI_ERR_PENDING)
				err = ret == SMI_ERR_PENDING ? ret : SMI_ERR_TRANSFER;
		}
	}
	pthread_mutex_unlock(&smi.lock);
	return err;
}

static int transfer_check_node(int node, int flags)
{
	struct transfer t = { node, flags };

	if (flags & ~(SMI_CHECK_FAST | SMI_CHECK_PROBE))
		return SMI_ERR_PARAM;
	if (smi.nodes == 1 || node == smi.node)
		return SMI_SUCCESS;
	if (!(flags & SMI_CHECK_NOBARRIER))
		smi_store_barrier();
	return smi_link_wait(transfer_look, &t, flags & SMI_CHECK_PROBE);
}

SMI_API smi_error_t SMI_Check_transfer(int flags)
{
	SMI_ENTER();
	return transfer_check_node(-1, flags);
}

SMI_API smi_error_t SMI_Check_transfer_proc(int proc, int flags)
{
	SMI_ENTER();
	return smi_rank_ok(proc) ? transfer_check_node(smi_node_of(proc), flags) : SMI_ERR_PARAM;
}

SMI_API smi_error_t SMI_Check_transfer_addr(void *adr, int flags)
{
	struct smi_segment *s;
	size_t size = 1;

	SMI_ENTER();
	s = segment_remote_at(adr, &size);
	if (s)
		return transfer_check_node(smi_node_of(s->owner), flags);
	return smi_region_at(adr, 1, true) ? SMI_SUCCESS : SMI_ERR_PARAM;
}

SMI_API smi_error_t SMI_Flush_read(int proc)
{
	SMI_REFUSE(proc != SMI_FLUSH_ALL && !smi_rank_ok(proc));
	smi_load_barrier();
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Flush_write(int proc)
{
	SMI_REFUSE(proc != SMI_FLUSH_ALL && !smi_rank_ok(proc));
	smi_store_barrier();
	return SMI_SUCCESS;
}
