// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Completion queues. A full queue grows, and loses completions only if there is no memory. */
#include "libsci/ofi/ofi.h"

#include <stdlib.h>
#include <string.h>

/* Each format is a prefix of the next one. */
static const size_t entry_size[] = {
	[FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
	[FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
	[FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
	[FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
};

/* ---- writing ---- */

static bool cq_grow(struct sfi_cq *cq)
{
	size_t room = cq->room * 2, n = cq->tail - cq->head;
	struct sfi_entry *ring = malloc(room * sizeof(*ring));

	if (!ring)
		return false;
	for (size_t i = 0; i < n; i++)
		ring[i] = cq->ring[(cq->head + i) & (cq->room - 1)];
	free(cq->ring);
	cq->ring = ring;
	cq->room = room;
	cq->head = 0;
	cq->tail = n;
	return true;
}

/* Lock the queue and return its next free entry; NULL: no memory, and the queue is not locked. */
static inline struct sfi_entry *entry_next(struct sfi_cq *cq)
{
	sfi_lock(&cq->lock);
	if (cq->tail - cq->head < cq->room || cq_grow(cq))
		return &cq->ring[cq->tail++ & (cq->room - 1)];
	cq->overrun = true;
	sfi_unlock(&cq->lock);
	sfi_wait_wake(&cq->wait);
	return NULL;
}

static inline void entry_filled(struct sfi_cq *cq)
{
	sfi_unlock(&cq->lock);
	sfi_wait_wake(&cq->wait);
}

void sfi_cq_push(struct sfi_cq *cq, const struct fi_cq_tagged_entry *e,
		 fi_addr_t src)
{
	struct sfi_entry *to = entry_next(cq);

	if (!to)
		return;
	*to = (struct sfi_entry){ *e, src };
	entry_filled(cq);
}

/* Queue a completion that sfi_cq_tell() cannot write to the buffer of a reader. */
void sfi_cq_queue(struct sfi_cq *cq, struct sfi_ep *ep, uint64_t flags,
		  void *context, void *buf, const struct sci_status *st)
{
	fi_addr_t src = FI_ADDR_NOTAVAIL;
	struct sfi_entry *to;

	if (flags & FI_RECV && ep->caps & FI_SOURCE)
		src = sfi_ep_source(ep, st->peer);
	to = entry_next(cq);
	if (!to)
		return;
	sfi_entry_fill(&to->e, flags, context, buf, st);
	to->src = src;
	entry_filled(cq);
}

void sfi_cq_fail(struct sfi_cq *cq, const struct fi_cq_err_entry *e)
{
	struct sfi_error *error = malloc(sizeof(*error));

	sfi_lock(&cq->lock);
	if (error) {
		error->next = NULL;
		error->e = *e;
		*cq->errors_end = error;
		cq->errors_end = &error->next;
	} else {
		cq->overrun = true;
	}
	sfi_unlock(&cq->lock);
	sfi_wait_wake(&cq->wait);
}

/* ---- reading ---- */

/*
 * Copy completions to the program's buffer. Errors are reported first, as fi_cq(3) demands: after
 * the completions, a busy program would see an error late, or never.
 */
static ssize_t cq_take(struct sfi_cq *cq, char *buf, size_t count, fi_addr_t *src)
{
	size_t size = entry_size[cq->format], n;

	if (cq->errors)
		return -FI_EAVAIL;
	for (n = 0; n < count && cq->head != cq->tail; n++) {
		struct sfi_entry *e = &cq->ring[cq->head++ & (cq->room - 1)];

		memcpy(buf + n * size, &e->e, size);
		if (src)
			src[n] = e->src;
	}
	if (n)
		return (ssize_t)n;
	return cq->overrun ? -FI_EOVERRUN : -FI_EAGAIN;
}

/* Return whether a read would return an entry or an error without progress. */
bool sfi_cq_ready(struct sfi_cq *cq)
{
	bool ready;

	sfi_lock(&cq->lock);
	ready = cq->head != cq->tail || cq->errors || cq->overrun;
	sfi_unlock(&cq->lock);
	return ready;
}

/*
 * A variant of sfi_eps_progress() for a domain with one thread, without locks. Most queues have one
 * endpoint, and then an empty read costs half as many instructions.
 */
static __always_inline void eps_progress_straight(struct sfi_cq *cq)
{
	struct sfi_eps *e = &cq->eps;

	if (e->n == 1 && (e->rounds + 1) % SFI_OTHERS) {
		e->rounds++;
		sfi_ep_progress(e->ep[0]);
	} else {
		sfi_eps_progress(e, cq->domain);
	}
}

/* Read an empty queue in a domain with one thread: sfi_cq_tell() may write straight to @buf. */
static __hot ssize_t cq_read_straight(struct sfi_cq *cq, void *buf, size_t count)
{
	ssize_t n;

	cq->reader.to = buf;
	cq->reader.room = count;
	eps_progress_straight(cq);
	n = (ssize_t)cq->reader.n;
	cq->reader.n = cq->reader.room = 0;
	if (n)
		return n;
	if (cq->head == cq->tail && !cq->errors && !cq->overrun)
		return -FI_EAGAIN;
	return cq_take(cq, buf, count, NULL);
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count,
			   fi_addr_t *src)
{
	struct sfi_cq *cq = (struct sfi_cq *)fid;
	ssize_t ret;

	sfi_lock(&cq->lock);
	ret = cq_take(cq, buf, count, src);
	sfi_unlock(&cq->lock);
	if (ret != -FI_EAGAIN)
		return ret;
	sfi_eps_progress(&cq->eps, cq->domain);
	sfi_lock(&cq->lock);
	ret = cq_take(cq, buf, count, src);
	sfi_unlock(&cq->lock);
	return ret;
}

static __hot ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	struct sfi_cq *cq = (struct sfi_cq *)fid;
	struct fi_cq_tagged_entry *to = buf;
	size_t n;

	if (!cq->straight || cq->errors)
		return cq_readfrom(fid, buf, count, NULL);
	if (cq->head == cq->tail)
		return cq_read_straight(cq, buf, count);
	for (n = 0; n < count && cq->head != cq->tail; n++)
		to[n] = cq->ring[cq->head++ & (cq->room - 1)].e;
	return (ssize_t)n;
}

/*
 * Return the oldest error. This provider has no additional data about errors, so @buf->err_data
 * does not change.
 */
static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf,
			  uint64_t flags)
{
	struct sfi_cq *cq = (struct sfi_cq *)fid;
	void *data = buf->err_data;
	struct sfi_error *e;

	(void)flags;
	sfi_lock(&cq->lock);
	e = cq->errors;
	if (e) {
		cq->errors = e->next;
		if (!cq->errors)
			cq->errors_end = &cq->errors;
	}
	sfi_unlock(&cq->lock);
	if (!e)
		return -FI_EAGAIN;
	*buf = e->e;
	buf->err_data = data;
	buf->err_data_size = 0;
	free(e);
	return 1;
}

/* Sleep until the queue may have an entry, for up to @ms milliseconds; -1: no limit. */
static int cq_sleep(struct sfi_cq *cq, int ms)
{
	if (sfi_wait_arm(&cq->wait, cq->domain))
		return 0;
	if (!sfi_cq_ready(cq) && !atomic_load(&cq->signalled))
		return sfi_wait_sleep(&cq->wait, ms);
	sfi_wait_disarm(&cq->wait);
	return 0;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count,
			    fi_addr_t *src, const void *cond, int timeout)
{
	struct sfi_cq *cq = (struct sfi_cq *)fid;
	uint64_t until = sfi_now_ms() + (uint64_t)timeout;
	ssize_t ret;

	(void)cond;
	if (cq->wait.obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	while ((ret = cq_readfrom(fid, buf, count, src)) == -FI_EAGAIN) {
		uint64_t now = sfi_now_ms();

		if (atomic_exchange(&cq->signalled, false) ||
		    (timeout >= 0 && now >= until))
			break;
		ret = cq_sleep(cq, timeout < 0 ? -1 : (int)(until - now));
		if (ret)
			return ret;
	}
	return ret;
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count,
			const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	struct sfi_cq *cq = (struct sfi_cq *)fid;

	atomic_store(&cq->signalled, true);
	sfi_wait_signal(&cq->wait);
	return 0;
}

static const char *cq_strerror(struct fid_cq *fid, int error, const void *data,
			       char *buf, size_t len)
{
	(void)fid, (void)data;
	if (buf && len) {
		strncpy(buf, fi_strerror(error), len - 1);
		buf[len - 1] = 0;
		return buf;
	}
	return fi_strerror(error);
}

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

/* ---- open and close ---- */

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct sfi_cq *cq = (struct sfi_cq *)fid;

	return command == FI_GETWAIT ? sfi_wait_fd(&cq->wait, arg) : -FI_ENOSYS;
}

static int cq_close(struct fid *fid)
{
	struct sfi_cq *cq = (struct sfi_cq *)fid;
	struct sfi_error *e;

	if (atomic_load(&cq->users))
		return -FI_EBUSY;
	while ((e = cq->errors)) {
		cq->errors = e->next;
		free(e);
	}
	sfi_wait_close(&cq->wait, cq->domain);
	cq->domain->users--;
	sfi_eps_fini(&cq->eps);
	sfi_lock_fini(&cq->lock);
	free(cq->ring);
	free(cq);
	return 0;
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = sfi_no_bind,
	.control = cq_control,
	.ops_open = sfi_no_ops_open,
};

int sfi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		struct fid_cq **out, void *context)
{
	struct sfi_domain *d = (struct sfi_domain *)domain;
	enum fi_cq_format format = attr->format;
	struct sfi_cq *cq;
	int ret;

	if (format > FI_CQ_FORMAT_TAGGED ||
	    attr->flags & ~(uint64_t)FI_AFFINITY || attr->wait_set)
		return -FI_ENOSYS;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	cq->room = 256;
	cq->ring = malloc(cq->room * sizeof(*cq->ring));
	ret = cq->ring ? sfi_wait_open(&cq->wait, attr->wait_obj, d) : -FI_ENOMEM;
	if (ret) {
		free(cq->ring);
		free(cq);
		return ret;
	}
	cq->fid.fid.fclass = FI_CLASS_CQ;
	cq->fid.fid.context = context;
	cq->fid.fid.ops = &cq_fid_ops;
	cq->fid.ops = &cq_ops;
	cq->domain = d;
	cq->format = format == FI_CQ_FORMAT_UNSPEC ? FI_CQ_FORMAT_CONTEXT :
						     format;
	cq->errors_end = &cq->errors;
	cq->straight = !d->shared && cq->format == FI_CQ_FORMAT_TAGGED;
	d->users++;
	sfi_lock_init(&cq->lock, d->shared);
	sfi_eps_init(&cq->eps, d->shared);
	*out = &cq->fid;
	return 0;
}
