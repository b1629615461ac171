// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: regions of one process
 *
 * A process exports a LOCAL region by itself. Another process imports the region as REMOTE or
 * RDMA with the owner's rank and the segment's id. The importer asks the owner's library thread,
 * which counts the import and answers with the place of the memory. If the owner frees the
 * region, the segment stays until its last importer has released it.
 */
#include "libsci/smi/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/*
 * A request to the owner of a segment. It is on the stack of the importer's thread until the answer
 * arrives; the request of an import, until the region is in the table.
 */
struct request {
	struct list link;
	int number, owner, segment;
	bool answered;
	struct smi_region *importing;	/* the region that this request imports */
	bool gone;			/* the owner has freed the segment */
	struct smi_msg answer;
};

static struct list requests = { &requests, &requests };
static struct list freed = { &freed, &freed };	/* freed LOCAL regions that have importers */

/* ---- LOCAL ---- */

static int local_private(struct smi_segment *s, size_t size)
{
	static _Atomic unsigned int next = 1;

	s->sci_id = atomic_fetch_add(&next, 1);
	s->size = size;
	if (!s->plain)
		s->plain = mmap(NULL, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->plain == MAP_FAILED)
		s->plain = NULL;
	return s->plain ? SMI_SUCCESS : SMI_ERR_NOMEM;
}

static void local_close(struct smi_region *r)
{
	struct smi_segment *s = &r->segs[0];

	if (s->plain && r->flags & SMI_SHM_PRIVATE && !(r->flags & SMI_SHM_REGISTER))
		munmap(s->plain, s->size);
	smi_segment_close(s);
}

/*
 * Return true if memory may be registered. A fabric that copies replaces whole pages. Another
 * thread's concurrent stores to the rest of such a page could be lost.
 */
static bool range_can_register(const void *address, size_t size)
{
	if (!(sci_ep_traits(sci_team_ep(smi.all)) & SCI_TRAIT_REGISTER_COPIES))
		return true;
	return !((uintptr_t)address % smi.page) && !(size % smi.page);
}

int smi_create_local(struct smi_region *r, smi_region_info_t *info, void **address)
{
	bool given = r->flags & SMI_SHM_REGISTER, shrink = r->flags & SMI_SHM_SHRINKABLE;
	struct smi_segment *s;
	int err;

	if (info->owner != smi.rank || !info->size)
		return SMI_ERR_PARAM;
	if (given && (!*address || !range_can_register(*address, info->size)))
		return SMI_ERR_BADADR;
	if (r->flags & SMI_SHM_PRIVATE && smi.nodes == 1)
		return SMI_ERR_NODEVICE;
	if (smi_too_large(info->size))
		return SMI_ERR_NOMEM;
	r->importers = calloc((size_t)smi.size, sizeof(*r->importers));
	if (!r->importers || smi_region_alloc_segments(r, 1))
		return SMI_ERR_NOMEM;
	s = r->segs;
	r->owner = s->owner = smi.rank;
	s->plain = given ? *address : NULL;
	r->size = given ? info->size : smi_round(info->size);
	err = r->flags & SMI_SHM_PRIVATE ? local_private(s, r->size) :
	      smi_segment_create(s, r->size, shrink && !given);
	if (err)
		return err;
	r->size = s->size;
	err = smi_region_map(r, NULL);
	err = err ? err : smi_region_publish(r);
	if (err) {
		local_close(r);
		return err;
	}
	r->connected = true;
	*address = r->base;
	return SMI_SUCCESS;
}

/* Count the imports of all processes. Context: smi.lock is held. */
static int importers_count(const struct smi_region *r)
{
	int i, n = 0;

	for (i = 0; i < smi.size; i++)
		n += r->importers[i];
	return n;
}

int smi_free_local(const int *id)
{
	struct smi_msg gone = { .type = SMI_MSG_GONE };
	int *counts = calloc((size_t)smi.size, sizeof(*counts));
	struct smi_region *r;
	bool busy;

	if (!counts)
		return SMI_ERR_NOMEM;
	pthread_mutex_lock(&smi.lock);
	r = smi_region_find(*id);
	if (!r || r->type != SMI_SHM_LOCAL) {
		pthread_mutex_unlock(&smi.lock);
		free(counts);
		return SMI_ERR_PARAM;
	}
	gone.a = (int)r->segs[0].sci_id;
	memcpy(counts, r->importers, (size_t)smi.size * sizeof(*counts));
	busy = importers_count(r) > 0;
	smi_region_take(r);
	if (busy)
		list_add_tail(&r->freed, &freed);
	pthread_mutex_unlock(&smi.lock);
	if (!busy) {
		local_close(r);
		smi_region_drop(r);
	}
	/* the last importer's SMI_MSG_RELEASE frees r, so send from a copy */
	for (int i = 0; i < smi.size; i++)
		if (counts[i])
			smi_channel_send(i, &gone);
	free(counts);
	return busy ? SMI_ERR_BUSY : SMI_SUCCESS;
}

/* ---- callbacks ---- */

void smi_region_call_back(const int *id, int reason)
{
	smi_region_callback_t cb = NULL;
	int action = SMI_CB_ACTION_FREEREG, now = *id;
	struct smi_region *r;

	r = smi_region_find(now);
	if (r && r->flags & SMI_SHM_CALLBACK)
		cb = r->cb;
	if (!r || (!cb && !smi_is_import(r)))
		return;
	pthread_mutex_unlock(&smi.lock);
	if (cb)
		action = cb(now, reason);
	pthread_mutex_lock(&smi.lock);
	/* the program may have freed the region during the callback */
	r = smi_region_find(*id);
	if (action == SMI_CB_ACTION_NOTHING || !r)
		return;
	r->flags &= ~SMI_SHM_CALLBACK;
	if (action != SMI_CB_ACTION_FREEREG)
		return;
	pthread_mutex_unlock(&smi.lock);
	smi_region_free(id);
	pthread_mutex_lock(&smi.lock);
}

/* Queue a callback of a region. Context: smi.lock is held. */
static void region_queue_callback(const struct smi_region *r, int reason)
{
	if (r->flags & SMI_SHM_CALLBACK)
		smi_callback_queue(r->id, reason);
}

/* ---- the owner's side of an import ---- */

/* Return the exported region with this segment. Context: smi.lock is held. */
static struct smi_region *export_find(int segment)
{
	for (int i = 0; i < smi.nregions; i++) {
		struct smi_region *r = smi.regions[i];

		if (r && smi_one_segment(r) && r->owner == smi.rank &&
		    !(r->flags & SMI_SHM_PRIVATE) &&
		    r->segs[0].sci_id == (unsigned int)segment)
			return r;
	}
	return NULL;
}

void smi_export_handle_import(const struct smi_msg *m)
{
	struct smi_msg answer = { .type = SMI_MSG_IMPORTED, .b = m->b,
				  .a = SMI_ERR_NOSEGMENT };
	struct smi_region *r;

	pthread_mutex_lock(&smi.lock);
	r = export_find(m->a);
	if (r) {
		if (r->importers)
			r->importers[m->from]++;
		answer.a = SMI_SUCCESS;
		answer.c = r->segs[0].size;
		answer.d = r->segs[0].skip;
		region_queue_callback(r, SMI_CB_REASON_CONNECT);
	}
	pthread_mutex_unlock(&smi.lock);
	if (m->b >= 0)
		smi_channel_answer(m->from, &answer);
}

/*
 * Subtract one import. *@done: set to the freed region if this was its last import. Return: the
 * region, if its owner has not freed it; else NULL.
 */
static struct smi_region *importer_remove(const struct smi_msg *m, struct smi_region **done)
{
	struct smi_region *exported = export_find(m->a), *r, *n;

	if (exported && exported->importers && exported->importers[m->from]) {
		exported->importers[m->from]--;
		return exported;
	}
	list_for_each_entry_safe(r, n, &freed, freed) {
		if (r->segs[0].sci_id != (unsigned int)m->a || !r->importers[m->from])
			continue;
		r->importers[m->from]--;
		if (!importers_count(r)) {
			list_del(&r->freed);
			*done = r;
		}
		break;
	}
	return NULL;
}

void smi_export_handle_release(const struct smi_msg *m)
{
	struct smi_msg answer = { .type = SMI_MSG_IMPORTED, .b = m->b };
	struct smi_region *r, *done = NULL;

	pthread_mutex_lock(&smi.lock);
	r = importer_remove(m, &done);
	if (r)
		region_queue_callback(r, SMI_CB_REASON_DISCONNECT);
	pthread_mutex_unlock(&smi.lock);
	if (done) {
		local_close(done);
		smi_region_drop(done);
	}
	smi_channel_answer(m->from, &answer);
}

/* ---- the importer's side ---- */

void smi_import_handle_answer(const struct smi_msg *m)
{
	struct request *q, *n;

	list_for_each_entry_safe(q, n, &requests, link) {
		if (q->number != m->b || q->owner != m->from)
			continue;
		q->answered = true;
		q->answer = *m;
	}
}

/* Return whether a request for an import is under way. Its thread then handles @gone. */
static bool import_is_requested(const struct smi_region *r)
{
	struct request *q, *n;

	list_for_each_entry_safe(q, n, &requests, link)
		if (q->importing == r)
			return true;
	return false;
}

/* Handle SMI_MSG_GONE: the owner has freed a segment. Queue the callbacks of its imports. */
void smi_import_handle_gone(const struct smi_msg *m)
{
	struct request *q, *n;

	list_for_each_entry_safe(q, n, &requests, link)
		q->gone |= q->owner == m->from && q->segment == m->a;
	for (int i = 0; i < smi.nregions; i++) {
		struct smi_region *r = smi.regions[i];

		if (r && smi_is_import(r) && r->owner == m->from &&
		    r->segs[0].sci_id == (unsigned int)m->a && !import_is_requested(r))
			region_queue_callback(r, SMI_CB_REASON_DISCONNECT);
	}
}

/* Send a request of @type for the import @r to its owner, and wait for the answer. */
static int request_send(struct request *q, enum smi_msg_type type, struct smi_region *r)
{
	struct smi_segment *s = &r->segs[0];
	struct smi_msg m = { .type = type, .a = (int)s->sci_id };
	static int number;
	int err;

	*q = (struct request) { .owner = s->owner, .segment = (int)s->sci_id,
				.importing = r };
	pthread_mutex_lock(&smi.lock);
	m.b = q->number = number++ & 0x7fffffff;
	list_add_tail(&q->link, &requests);
	pthread_mutex_unlock(&smi.lock);
	err = smi_channel_send(s->owner, &m);
	pthread_mutex_lock(&smi.lock);
	while (!err && !q->answered)
		err = smi_wait_change(s->owner);
	pthread_mutex_unlock(&smi.lock);
	return err ? err : q->answer.a;
}

/* Disconnect from a segment and release it at its owner, which may then remove it. */
static void import_release(struct smi_region *r)
{
	struct request q;

	smi_segment_close(&r->segs[0]);
	request_send(&q, SMI_MSG_RELEASE, r);
	pthread_mutex_lock(&smi.lock);
	list_del(&q.link);
	pthread_mutex_unlock(&smi.lock);
}

static int import_map(struct smi_region *r, const smi_region_info_t *info)
{
	struct smi_segment *s = &r->segs[0];
	int err;

	r->offset = info->offset;
	if (r->offset >= s->size)
		return SMI_ERR_PARAM;
	r->size = info->size ? info->size : s->size - r->offset;
	/* a size that exceeds the segment by less than a page means the whole segment */
	if (r->size > s->size - r->offset) {
		if (r->size > smi_round(s->size - r->offset))
			return SMI_ERR_PARAM;
		r->size = s->size - r->offset;
	}
	err = smi_segment_open(s);
	if (!err && (r->type == SMI_SHM_REMOTE || !s->rseg))
		err = smi_region_map(r, NULL);
	/* an RDMA region of the same node is mapped only for put and get */
	if (r->type == SMI_SHM_RDMA)
		r->base = NULL;
	return err;
}

int smi_create_import(struct smi_region *r, smi_region_info_t *info, int *id, void **address)
{
	struct request q;
	int err;

	if (!smi_rank_ok(info->owner) || info->owner == smi.rank || info->sgmt_id <= 0)
		return SMI_ERR_PARAM;
	if (smi_region_alloc_segments(r, 1))
		return SMI_ERR_NOMEM;
	r->owner = r->segs[0].owner = info->owner;
	r->segs[0].sci_id = (unsigned int)info->sgmt_id;
	err = request_send(&q, SMI_MSG_IMPORT, r);
	if (!err) {
		r->segs[0].size = q.answer.c;
		r->segs[0].skip = q.answer.d;
		r->connected = true;
		err = import_map(r, info);
		err = err ? err : smi_region_publish(r);
		if (err)
			import_release(r);
	}
	if (!err) {
		*address = r->base;
		info->size = r->size;
		*id = r->id;
	}
	pthread_mutex_lock(&smi.lock);
	list_del(&q.link);
	if (!err && q.gone)
		region_queue_callback(r, SMI_CB_REASON_DISCONNECT);
	pthread_mutex_unlock(&smi.lock);
	return err;
}

int smi_free_import(struct smi_region *r)
{
	import_release(r);
	smi_region_drop(r);
	return SMI_SUCCESS;
}

/* Release the freed LOCAL regions that still have importers. */
void smi_imports_end(void)
{
	struct smi_region *r, *n;

	list_for_each_entry_safe(r, n, &freed, freed) {
		local_close(r);
		smi_region_drop(r);
	}
}
