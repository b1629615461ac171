// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Put and get. The CPU copies to and from shared memory of near members. The endpoint makes
 * one-sided transfers to and from far members.
 */

#include "libsci/team/team.h"

#include <assert.h>
#include <stdlib.h>

/* ---- transfers with far members ---- */

#define FAR_MAX		256u		/* limit of transfers in flight that no thread waits for */

struct far_request {
	struct list link;
	struct sci_req *req;
	int rank;			/* world rank */
};

static int req_wait(struct team_world *w, int rank, struct sci_req *req)
{
	int ret;

	while ((ret = sci_wait(req, 10, NULL)) == -ETIMEDOUT) {
		world_poll(w);
		if (!world_dead(w, rank) || sci_cancel(req))
			continue;
		sci_wait(req, -1, NULL);
		return -ECONNRESET;
	}
	return member_result(ret);
}

/* Wait for the oldest transfers until @left of them are in flight. */
static void far_finish(struct team_world *w, unsigned int left)
{
	while (w->n_far > left) {
		struct far_request *f = container_of(list_pop(&w->far_requests),
						     struct far_request, link);
		int ret = req_wait(w, f->rank, f->req);

		w->far_error = w->far_error ? w->far_error : ret;
		sci_store_relaxed(&w->n_far, w->n_far - 1);
		free(f);
	}
}

/* Wait for all transfers. Return the first error since the last call. */
int far_quiet(struct team_world *w)
{
	int ret;

	if (!w->far || !sci_load_relaxed(&w->n_far))
		return 0;
	pthread_mutex_lock(&w->far_lock);
	far_finish(w, 0);
	ret = w->far_error;
	w->far_error = 0;
	pthread_mutex_unlock(&w->far_lock);
	return ret;
}

/* Wait for the end of a transfer if @wait; else sci_team_quiet() waits. */
static int far_end(struct team_world *w, int rank, struct sci_req *req, bool wait)
{
	struct far_request *f = wait ? NULL : malloc(sizeof(*f));

	if (!f)
		return req_wait(w, rank, req);
	*f = (struct far_request){ .req = req, .rank = rank };
	pthread_mutex_lock(&w->far_lock);
	far_finish(w, FAR_MAX - 1);
	list_add_tail(&f->link, &w->far_requests);
	sci_store_relaxed(&w->n_far, w->n_far + 1);
	pthread_mutex_unlock(&w->far_lock);
	return 0;
}

/* Transfer to or from a far rank. @signal: the atomic that follows a write; or NULL */
static int far_transfer(struct sci_team *t, int rank, const struct sci_key *key, uint64_t offset,
			void *buf, size_t len, const struct sci_write_signal *signal,
			bool write, bool wait)
{
	struct team_world *w = t->world;
	struct iovec iov = { buf, len };
	struct sci_peer *peer;
	struct sci_req *req;
	int world = t->members[rank].world;
	int ret = world_peer(w, world, &peer);

	if (ret || (!len && !signal))
		return ret;
	if (signal)
		ret = sci_iwrite_signal(peer, key, offset, &iov, 1, signal, &req);
	else
		ret = write ? sci_iwritev(peer, key, offset, &iov, 1, &req) :
			      sci_ireadv(peer, key, offset, &iov, 1, &req);
	return ret ? member_result(ret) : far_end(w, world, req, wait);
}

/* Change a word of a far rank. */
int far_atomic(struct sci_team *t, int rank, const struct sci_key *key, uint64_t offset,
	       const struct sci_rmw *rmw, uint64_t *old, bool wait)
{
	struct team_world *w = t->world;
	struct sci_peer *peer;
	struct sci_req *req;
	int world = t->members[rank].world;
	int ret = world_peer(w, world, &peer);

	/* the endpoint stores 4 bytes of the old value of a word of 4 bytes */
	if (old)
		*old = 0;
	ret = ret ? ret : sci_irmw(peer, key, offset, rmw, old, &req);
	return ret ? member_result(ret) : far_end(w, world, req, wait);
}

/* ---- calls of the program ---- */

/* Copy @len bytes. Words of 1, 2, 4 and 8 bytes are copied by one store. */
static inline void memory_copy_near(void *dst, const void *src, size_t len)
{
	switch (len) {
	case 8:
		memcpy(dst, src, 8);
		break;
	case 4:
		memcpy(dst, src, 4);
		break;
	case 2:
		memcpy(dst, src, 2);
		break;
	case 1:
		memcpy(dst, src, 1);
		break;
	case 0:
		break;
	default:
		memcpy(dst, src, len);
	}
}

static inline int rma_put(struct sci_team *t, void *dst, const void *src, size_t len, int rank,
			  bool wait)
{
	const struct sci_key *key = NULL;
	uint64_t offset = 0;
	void *ptr;
	int ret;

	if (!t || (!src && len))
		return -EINVAL;
	ret = world_usable(t->world);
	ret = ret ? ret : symmetric_at(t, dst, len, rank, &ptr, &key, &offset);
	if (ret)
		return ret;
	if (!ptr)
		return far_transfer(t, rank, key, offset, (void *)src, len, NULL,
				    true, wait);
	memory_copy_near(ptr, src, len);
	world_wake(t->world, t->members[rank].world);
	return 0;
}

static inline int rma_get(struct sci_team *t, void *dst, const void *src, size_t len, int rank,
			  bool wait)
{
	const struct sci_key *key = NULL;
	uint64_t offset = 0;
	void *ptr;
	int ret;

	if (!t || (!dst && len))
		return -EINVAL;
	ret = world_usable(t->world);
	ret = ret ? ret : symmetric_at(t, src, len, rank, &ptr, &key, &offset);
	if (ret)
		return ret;
	if (!ptr)
		return far_transfer(t, rank, key, offset, dst, len, NULL, false, wait);
	memory_copy_near(dst, ptr, len);
	return 0;
}

int sci_team_put(struct sci_team *team, void *dst, const void *src, size_t len, int rank)
{
	return rma_put(team, dst, src, len, rank, true);
}

int sci_team_get(struct sci_team *team, void *dst, const void *src, size_t len, int rank)
{
	return rma_get(team, dst, src, len, rank, true);
}

int sci_team_put_nbi(struct sci_team *team, void *dst, const void *src, size_t len,
		     int rank)
{
	return rma_put(team, dst, src, len, rank, false);
}

int sci_team_get_nbi(struct sci_team *team, void *dst, const void *src, size_t len,
		     int rank)
{
	return rma_get(team, dst, src, len, rank, false);
}

/* ---- strided ---- */

static int far_strided(struct sci_team *t, int rank, const struct sci_key *key,
		       const struct sci_strided *s, bool write)
{
	struct team_world *w = t->world;
	struct sci_peer *peer;
	struct sci_req *req;
	int world = t->members[rank].world;
	int ret = world_peer(w, world, &peer);

	if (!ret) {
		ret = write ? sci_iwrite_strided(peer, key, s, &req) :
			      sci_iread_strided(peer, key, s, &req);
		ret = member_result(ret);
	}
	return ret ? ret : req_wait(w, world, req);
}

/*
 * Get the memory from the start of the first element to the end of the last one. @low: is set to 0, or
 * to the distance from the first to the last element if that is negative. Return 0 or -EFAULT.
 */
static int strided_span(const struct sci_strided *s, ptrdiff_t *low, size_t *span)
{
	ptrdiff_t last, size;

	if (__builtin_mul_overflow(s->len, s->n, &size) ||
	    __builtin_mul_overflow(s->n - 1, s->stride, &last))
		return -EFAULT;
	*low = last < 0 ? last : 0;
	*span = last < 0 ? -(size_t)last : (size_t)last;
	return __builtin_add_overflow(*span, s->len, span) ? -EFAULT : 0;
}

/* Put or get the elements of @s. @at: the first element in symmetric memory */
static int rma_strided(struct sci_team *t, const void *at, struct sci_strided *s, int rank,
		       bool write)
{
	const struct sci_key *key = NULL;
	char *near, *local = s->buf;
	uint64_t offset = 0;
	ptrdiff_t low;
	size_t span;
	void *ptr;
	int ret;

	if (!t || (!local && s->len && s->n))
		return -EINVAL;
	ret = world_usable(t->world);
	if (ret || !s->len || !s->n)
		return ret;
	ret = strided_span(s, &low, &span);
	ret = ret ? ret : symmetric_at(t, (void *)((size_t)at + (size_t)low), span, rank, &ptr,
				       &key, &offset);
	if (ret)
		return ret;
	s->offset = offset - (uint64_t)low;
	if (!ptr)
		return far_strided(t, rank, key, s, write);
	near = (char *)ptr - low;
	for (ptrdiff_t i = 0; i < (ptrdiff_t)s->n; i++) {
		char *there = near + i * s->stride, *here = local + i * s->buf_stride;

		memory_copy_near(write ? there : here, write ? here : there, s->len);
	}
	if (write)
		world_wake(t->world, t->members[rank].world);
	return 0;
}

int sci_team_put_strided(struct sci_team *team, void *dst, ptrdiff_t dst_stride,
			 const void *src, ptrdiff_t src_stride, size_t len, size_t n,
			 int rank)
{
	struct sci_strided s = {
		.buf = (void *)src, .buf_stride = src_stride, .stride = dst_stride,
		.len = len, .n = n,
	};

	return rma_strided(team, dst, &s, rank, true);
}

int sci_team_get_strided(struct sci_team *team, void *dst, ptrdiff_t dst_stride,
			 const void *src, ptrdiff_t src_stride, size_t len, size_t n,
			 int rank)
{
	struct sci_strided s = {
		.buf = dst, .buf_stride = dst_stride, .stride = src_stride,
		.len = len, .n = n,
	};

	return rma_strided(team, src, &s, rank, false);
}

int sci_team_fence(struct sci_team *team)
{
	if (!team)
		return -EINVAL;
	if (world_usable(team->world))
		return -ENOTCONN;
	sci_release_barrier();
	return far_quiet(team->world);
}

int sci_team_quiet(struct sci_team *team)
{
	uint32_t barrier = 0;

	if (!team)
		return -EINVAL;
	if (world_usable(team->world))
		return -ENOTCONN;
	/* an atomic exchange orders all accesses and is faster than sci_full_barrier() */
	sci_exchange(&barrier, 1);
	return far_quiet(team->world);
}

/* Put to a far rank, then change its word @signal. */
static int far_put_signal(struct sci_team *t, const struct sci_key *key, uint64_t offset,
			  const void *src, size_t len, uint64_t *word,
			  const struct sci_rmw *rmw, int rank, bool wait)
{
	struct sci_write_signal signal = { .rmw = *rmw };
	const struct sci_key *word_key = NULL;
	void *ptr;
	int ret = symmetric_at(t, word, sizeof(*word), rank, &ptr, &word_key, &signal.offset);

	if (ret)
		return ret;
	assert(word_key);	/* else @rank is not far */
	signal.key = *word_key;
	return far_transfer(t, rank, key, offset, (void *)src, len, &signal, true, wait);
}

static int signal_put(struct sci_team *t, void *dst, const void *src, size_t len,
		      uint64_t *signal, uint64_t value, enum sci_signal how, int rank,
		      bool wait)
{
	enum sci_atomic op = how == SCI_SIGNAL_SET ? SCI_ATOMIC_SET : SCI_ATOMIC_ADD;
	const struct sci_key *key = NULL;
	uint64_t offset = 0;
	struct sci_rmw rmw;
	void *ptr;
	int ret;

	if (!t || (!src && len) || (size_t)signal % sizeof(*signal) ||
	    (how != SCI_SIGNAL_SET && how != SCI_SIGNAL_ADD))
		return -EINVAL;
	ret = world_usable(t->world);
	ret = ret ? ret : symmetric_at(t, dst, len, rank, &ptr, &key, &offset);
	if (ret)
		return ret;
	if (!ptr) {
		rmw = far_rmw(op, sizeof(*signal), value, 0);
		return far_put_signal(t, key, offset, src, len, signal, &rmw, rank, wait);
	}
	memory_copy_near(ptr, src, len);
	return sci_team_atomic(t, signal, sizeof(*signal), op, value, 0, NULL, rank);
}

int sci_team_put_signal(struct sci_team *team, void *dst, const void *src, size_t len,
			uint64_t *signal, uint64_t value, enum sci_signal how, int rank)
{
	return signal_put(team, dst, src, len, signal, value, how, rank, true);
}

int sci_team_put_signal_nbi(struct sci_team *team, void *dst, const void *src, size_t len,
			    uint64_t *signal, uint64_t value, enum sci_signal how,
			    int rank)
{
	return signal_put(team, dst, src, len, signal, value, how, rank, false);
}
