// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Put and get. The CPU copies to and from shared memory of near members. The endpoint makes
 * one-sided transfers to and from far members.
 */

#include "libsci/team/team.h"

#include <stdlib.h>

/* ---- transfers with far members ---- */

struct far_put {
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

/* Transfer to or from a far rank. Wait for the end if @wait; else sci_team_quiet() waits. */
static int far_transfer(struct sci_team *t, int rank, const struct sci_key *key, uint64_t offset,
			void *buf, size_t len, bool write, bool wait)
{
	struct team_world *w = t->world;
	struct iovec iov = { buf, len };
	struct far_put *f = NULL;
	struct sci_peer *peer;
	struct sci_req *req;
	int ret = world_peer(w, t->members[rank].world, &peer);

	if (ret || !len)
		return ret;
	if (!wait) {
		f = malloc(sizeof(*f));
		if (!f)
			return -ENOMEM;
	}
	ret = write ? sci_iwritev(peer, key, offset, &iov, 1, &req) :
		      sci_ireadv(peer, key, offset, &iov, 1, &req);
	if (ret) {
		free(f);
		return member_result(ret);
	}
	if (wait)
		return req_wait(w, t->members[rank].world, req);
	f->req = req;
	f->rank = t->members[rank].world;
	pthread_mutex_lock(&w->far_lock);
	list_add_tail(&f->link, &w->puts);
	atomic_fetch_add(&w->far_puts, 1);
	pthread_mutex_unlock(&w->far_lock);
	return 0;
}

int far_quiet(struct team_world *w)
{
	struct list *l;
	int ret, first = 0;

	if (!w->far)
		return 0;
	first = atomics_quiet(w);
	if (!atomic_load(&w->far_puts))
		return first;
	pthread_mutex_lock(&w->far_lock);
	while ((l = list_pop(&w->puts))) {
		struct far_put *f = container_of(l, struct far_put, link);

		ret = req_wait(w, f->rank, f->req);
		first = first ? first : ret;
		atomic_fetch_sub(&w->far_puts, 1);
		free(f);
	}
	pthread_mutex_unlock(&w->far_lock);
	return first;
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
		return far_transfer(t, rank, key, offset, (void *)src, len, true, wait);
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
		return far_transfer(t, rank, key, offset, dst, len, false, wait);
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

	if (!ret)
		ret = member_result((write ? sci_iwrite_strided : sci_iread_strided)
				    (peer, key, s, &req));
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
	sci_release_barrier();
	return far_quiet(team->world);
}

int sci_team_quiet(struct sci_team *team)
{
	uint32_t barrier = 0;

	if (!team)
		return -EINVAL;
	/* an atomic exchange orders all accesses and is faster than sci_full_barrier() */
	sci_exchange(&barrier, 1);
	return far_quiet(team->world);
}

static int signal_put(struct sci_team *t, void *dst, const void *src, size_t len,
		      uint64_t *signal, uint64_t value, enum sci_signal how, int rank)
{
	uint64_t *word;
	int ret;

	if (how != SCI_SIGNAL_SET && how != SCI_SIGNAL_ADD)
		return -EINVAL;
	/* with @wait, rma_put() to a far member returns after the data has arrived */
	ret = rma_put(t, dst, src, len, rank, true);
	if (ret)
		return ret;
	word = sci_team_ptr(t, signal, rank);
	if (!word || (size_t)signal % 8)
		return sci_team_atomic(t, signal, 8, how == SCI_SIGNAL_SET ?
				       SCI_ATOMIC_SET : SCI_ATOMIC_ADD, value, 0, NULL,
				       rank);
	if (how == SCI_SIGNAL_SET)
		sci_store_release(word, value);
	else
		sci_fetch_add(word, value);
	world_wake(t->world, t->members[rank].world);
	return 0;
}

int sci_team_put_signal(struct sci_team *team, void *dst, const void *src, size_t len,
			uint64_t *signal, uint64_t value, enum sci_signal how, int rank)
{
	return signal_put(team, dst, src, len, signal, value, how, rank);
}

int sci_team_put_signal_nbi(struct sci_team *team, void *dst, const void *src, size_t len,
			    uint64_t *signal, uint64_t value, enum sci_signal how,
			    int rank)
{
	return signal_put(team, dst, src, len, signal, value, how, rank);
}
