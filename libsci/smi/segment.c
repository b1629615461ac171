// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Segments: memory of one process that other processes map. Processes of the owner's node attach to
 * a segment and map local memory. Processes of other nodes connect to it.
 */
#include "libsci/smi/internal.h"

#include <stdio.h>
#include <time.h>

#define LINK_WAIT_S	60		/* seconds until a broken link ends the program */

int smi_error_of(sci_error_t err)
{
	switch (err) {
	case SCI_ERR_OK:
		return SMI_SUCCESS;
	case SCI_ERR_NOSPC:
	case SCI_ERR_API_NOSPC:
		return SMI_ERR_NOMEM;
	case SCI_ERR_ILLEGAL_ADDRESS:
		return SMI_ERR_MAPFAILED;
	case SCI_ERR_OUT_OF_RANGE:
	case SCI_ERR_ILLEGAL_PARAMETER:
	case SCI_ERR_SIZE_ALIGNMENT:
	case SCI_ERR_OFFSET_ALIGNMENT:
		return SMI_ERR_PARAM;
	case SCI_ERR_BUSY:
		return SMI_ERR_BUSY;
	case SCI_ERR_TRANSFER_FAILED:
		return SMI_ERR_TRANSFER;
	default:
		return SMI_ERR_NOSEGMENT;
	}
}

/* Let other processes attach and connect to a segment. */
static sci_error_t segment_export(struct smi_segment *s)
{
	sci_error_t err;

	SCIPrepareSegment(s->lseg, s->adapter, 0, &err);
	if (!err)
		SCISetSegmentAvailable(s->lseg, s->adapter, 0, &err);
	if (!err)
		SCIShareSegment(s->lseg, 0, &err);
	return err;
}

static sci_error_t segment_try_create(struct smi_segment *s, size_t size)
{
	static _Atomic unsigned int next = 0x10000000;
	size_t skip = (size_t)s->plain % smi.page, len = s->plain ? smi_round(skip + size) : size;
	sci_error_t err, ignored;

	SCICreateSegment(smi.sd, &s->lseg, atomic_fetch_add(&next, 1), len, NULL, NULL,
			 SCI_FLAG_AUTO_ID | (s->plain ? SCI_FLAG_EMPTY : 0), &err);
	if (err)
		return err;
	if (s->plain)
		SCIRegisterSegmentMemory(s->plain - skip, len, s->lseg, 0, &err);
	s->skip = skip;
	err = err ? err : segment_export(s);
	if (!err) {
		s->sci_id = SCIGetLocalSegmentId(s->lseg);
		s->size = size;
		return SCI_ERR_OK;
	}
	SCIRemoveSegment(s->lseg, 0, &ignored);
	s->lseg = NULL;
	return err;
}

int smi_segment_create(struct smi_segment *s, size_t size, bool shrink)
{
	sci_error_t err = segment_try_create(s, size);

	while (err == SCI_ERR_NOSPC && shrink && size > smi.page) {
		size_t less = size / 10 * 9 / smi.page * smi.page;

		size = less ? less : smi.page;
		err = segment_try_create(s, size);
	}
	if (err == SCI_ERR_ILLEGAL_ADDRESS && s->plain)
		return SMI_ERR_BADADR;
	return smi_error_of(err);
}

int smi_segment_open(struct smi_segment *s)
{
	sci_error_t err = SCI_ERR_OK;

	if (s->lseg || s->rseg || s->plain)
		return SMI_SUCCESS;
	if (smi_node_of(s->owner) == smi.node)
		SCIAttachLocalSegment(smi.sd, &s->lseg, s->sci_id, NULL, NULL, NULL, 0,
				      &err);
	else
		SCIConnectSegment(smi.sd, &s->rseg, smi.sci_node[smi_node_of(s->owner)],
				  s->sci_id, s->adapter, NULL, NULL, 0, 0, &err);
	return smi_error_of(err);
}

/* Set the address of a segment. Take the lock, because other threads search all segments. */
static void segment_set_address(struct smi_segment *s, char *addr, size_t mapped)
{
	pthread_mutex_lock(&smi.lock);
	s->addr = addr;
	s->mapped = mapped;
	pthread_mutex_unlock(&smi.lock);
}

int smi_segment_map(struct smi_segment *s, size_t offset, size_t size, void *fixed)
{
	unsigned int flags = fixed ? SCI_FLAG_FIXED_MAP_ADDR : 0;
	sci_error_t err = SCI_ERR_OK;
	char *addr;

	if (s->plain) {
		segment_set_address(s, s->plain + offset, size);
		return SMI_SUCCESS;
	}
	if (s->rseg)
		addr = (char *)SCIMapRemoteSegment(s->rseg, &s->map, s->skip + offset,
						   size, fixed, flags, &err);
	else
		addr = SCIMapLocalSegment(s->lseg, &s->map, s->skip + offset, size,
					  fixed, flags, &err);
	if (err) {
		s->map = NULL;
		return err == SCI_ERR_OUT_OF_RANGE ? SMI_ERR_PARAM : SMI_ERR_MAPFAILED;
	}
	segment_set_address(s, addr, size);
	if (!s->rseg)
		return SMI_SUCCESS;
	SCICreateMapSequence(s->map, &s->seq, SCI_FLAG_FAST_BARRIER, &err);
	if (!err)
		SCIStartSequence(s->seq, 0, &err);
	if (err)
		smi_segment_unmap(s);
	return err ? SMI_ERR_MAPFAILED : SMI_SUCCESS;
}

void smi_segment_unmap(struct smi_segment *s)
{
	sci_sequence_t seq;
	sci_error_t err;

	smi_segment_sync(s, s->addr, s->mapped);
	/* SMI_Check_transfer() of another thread uses the sequences of all regions */
	pthread_mutex_lock(&smi.lock);
	s->addr = NULL;
	s->mapped = 0;
	seq = s->seq;
	s->seq = NULL;
	pthread_mutex_unlock(&smi.lock);
	if (seq)
		SCIRemoveSequence(seq, 0, &err);
	if (s->map)
		SCIUnmapSegment(s->map, 0, &err);
	s->map = NULL;
}

void smi_segment_close(struct smi_segment *s)
{
	sci_error_t err;

	smi_segment_unmap(s);
	if (s->rseg)
		SCIDisconnectSegment(s->rseg, 0, &err);
	if (s->lseg)
		SCIRemoveSegment(s->lseg, SCI_FLAG_FORCE_REMOVE, &err);
	s->rseg = NULL;
	s->lseg = NULL;
}

int smi_segment_look(struct smi_segment *s, int flags)
{
	unsigned int how = (flags & SMI_CHECK_NOFLUSH ? SCI_FLAG_NO_FLUSH : 0) |
			   (flags & SMI_CHECK_NOBARRIER ? SCI_FLAG_NO_STORE_BARRIER : 0);
	sci_error_t err;

	switch (SCICheckSequence(s->seq, how, &err)) {
	case SCI_SEQ_OK:
		return SMI_SUCCESS;
	case SCI_SEQ_PENDING:
		return SMI_ERR_PENDING;
	case SCI_SEQ_RETRIABLE:
		atomic_fetch_add(&smi.errors, 1);
		return SMI_ERR_TRANSFER;
	default:
		atomic_fetch_add(&smi.errors, 1);
		return SMI_ERR_OTHER;
	}
}

int smi_link_wait(int (*look)(void *arg), void *arg, bool probe)
{
	const struct timespec poll = { 0, 10000000 };
	uint64_t begin = sci_now_ns();
	int err = look(arg);

	if (err != SMI_ERR_PENDING)
		return err;
	atomic_fetch_add(&smi.errors, 1);
	while (!probe && err == SMI_ERR_PENDING) {
		if (sci_now_ns() - begin >= LINK_WAIT_S * 1000000000ull) {
			fprintf(stderr, "smi: process %d: a link is down for %d s\n", smi.rank,
				LINK_WAIT_S);
			SMI_Abort(1);
		}
		nanosleep(&poll, NULL);
		err = look(arg);
	}
	/* a broken link may have lost stores, also if no error is counted */
	return err == SMI_ERR_OTHER ? err : SMI_ERR_TRANSFER;
}

struct check {
	struct smi_segment *s;
	int flags;
};

static int segment_check_look(void *arg)
{
	const struct check *c = arg;

	return smi_segment_look(c->s, c->flags);
}

int smi_segment_check(struct smi_segment *s, int flags)
{
	struct check c = { s, flags };

	return s->seq ? smi_link_wait(segment_check_look, &c, false) : SMI_SUCCESS;
}

void smi_segment_sync(struct smi_segment *s, void *addr, size_t len)
{
	sci_error_t err;

	/* registered memory has no map; memory of this process alone is in no segment */
	if (smi.stale && addr && (s->map || s->lseg))
		SCICacheSync(s->map, addr, len, SCI_FLAG_CACHE_FLUSH | SCI_FLAG_CACHE_INVALIDATE,
			     &err);
}

/* Sync the maps of all regions. */
static void regions_sync(void)
{
	pthread_mutex_lock(&smi.lock);
	for (int i = 0; i < smi.nregions; i++) {
		struct smi_region *r = smi.regions[i];

		for (int k = 0; r && k < r->nsegs; k++)
			smi_segment_sync(&r->segs[k], r->segs[k].addr, r->segs[k].mapped);
	}
	pthread_mutex_unlock(&smi.lock);
}

void smi_stores_arrive(void)
{
	if (smi.seq)
		SCIStoreBarrier(smi.seq, 0);
	else
		sci_store_barrier();
}

void smi_store_barrier(void)
{
	if (smi.stale)
		regions_sync();
	smi_stores_arrive();
}

void smi_load_barrier(void)
{
	if (smi.stale)
		regions_sync();
	sci_load_barrier();
}
