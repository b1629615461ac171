// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* DMA queues. */

#include <linux/file.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "core.h"
#include "dma.h"
#include "import.h"
#include "segment.h"
#include "trace.h"

#define PIECES_MAX	65536u
#define CHUNK		65536u	/* bytes between two tests of the abort flag */

/**
 * struct sci_dma_queue - a queue
 * @obj: the object of the file
 * @work: executes the transfers one after the other
 * @max_pieces: limit of the pieces of all transfers
 * @pieces: present number of pieces; obj.ev_lock protects it and the members below
 * @transfers: list of struct sci_dma_transfer; the first one is running
 * @submitted: number of transfers that were ever in @transfers
 * @finished: number of transfers that have ended
 * @dead: the adapter or the file ends: no new transfers
 */
struct sci_dma_queue {
	struct sci_object obj;
	struct work_struct work;
	u32 max_pieces;
	u32 pieces;
	struct list_head transfers;
	u64 submitted;
	u64 finished;
	bool dead;
};

/**
 * struct sci_dma_transfer - a submitted transfer
 * @ref: references of the queue and of a waiting submitter
 * @link: entry in queue->transfers
 * @local: file of the local segment
 * @remote: file of the remote segment
 * @pages: memory of the local segment
 * @cookie: chosen by the submitter
 * @pull: copy from the remote segment
 * @wait: the submitter waits, and gets no event
 * @abort: stop soon
 * @done: @status is valid
 * @status: 0 or -errno
 * @nr_vecs: number of @vecs
 * @vecs: the pieces
 */
struct sci_dma_transfer {
	refcount_t ref;
	struct list_head link;
	struct file *local;
	struct file *remote;
	struct sci_pages *pages;
	u64 cookie;
	bool pull;
	bool wait;
	bool abort;
	bool done;
	int status;
	u32 nr_vecs;
	struct sci_dma_vec vecs[] __counted_by(nr_vecs);
};

static struct sci_dma_queue *dma_queue_of(struct sci_object *obj)
{
	return container_of(obj, struct sci_dma_queue, obj);
}

static void dma_transfer_put(struct sci_dma_transfer *t)
{
	if (!refcount_dec_and_test(&t->ref))
		return;
	if (t->pages)
		sci_pages_put(t->pages);
	if (t->local)
		fput(t->local);
	if (t->remote)
		fput(t->remote);
	kvfree(t);
}

/* ---- execution ---- */

/* Find the remote segment: the connection may be lost at any time. */
static int dma_locate(struct sci_dma_transfer *t, struct sci_dma_piece *p)
{
	struct sci_object *obj = sci_object_of(t->remote, SCI_OBJECT_IMPORT);
	int ret;

	mutex_lock(&obj->adapter->lock);
	ret = sci_import_locate(sci_import_of(obj), &p->node, &p->base);
	mutex_unlock(&obj->adapter->lock);
	return ret;
}

static bool dma_local_removed(struct sci_dma_transfer *t)
{
	struct sci_object *obj = sci_object_of(t->local, SCI_OBJECT_SEGMENT);

	return sci_segment_is_removed(sci_segment_of(obj));
}

static int dma_copy_chunk(struct sci_adapter *a, struct sci_dma_transfer *t,
			  struct sci_dma_piece *p)
{
	int idx, ret;

	if (READ_ONCE(t->abort))
		return -ECANCELED;
	if (dma_local_removed(t))
		return -ENOTCONN;
	ret = sci_adapter_enter(a, &idx);
	if (ret)
		return ret;
	ret = dma_locate(t, p);
	if (!ret)
		ret = a->desc.ops->dma_copy(a, p);
	sci_adapter_exit(a, idx);
	return ret;
}

static int dma_copy_vec(struct sci_adapter *a, struct sci_dma_transfer *t,
			const struct sci_dma_vec *v)
{
	struct sci_dma_piece p = { .pages = t->pages, .pull = t->pull };
	u64 done;
	int ret;

	for (done = 0; done < v->length; done += p.length) {
		p.local = v->local + done;
		p.remote = v->remote + done;
		p.length = min3(v->length - done, (u64)CHUNK, (u64)a->desc.dma_max);
		ret = dma_copy_chunk(a, t, &p);
		if (ret)
			return ret;
		sci_count(a, SCI_COUNT_DMA_BYTES, p.length);
		cond_resched();
	}
	return 0;
}

static int dma_transfer_run(struct sci_adapter *a, struct sci_dma_transfer *t)
{
	u64 bytes = 0;
	u32 i;
	int ret = 0;

	for (i = 0; i < t->nr_vecs && !ret; i++) {
		ret = dma_copy_vec(a, t, &t->vecs[i]);
		bytes += t->vecs[i].length;
	}
	if (ret)
		sci_count(a, SCI_COUNT_DMA_ERRORS, 1);
	trace_sci_dma(a, t->pull ? "pull" : "push", bytes, ret);
	return ret;
}

static struct sci_dma_transfer *dma_first_transfer(struct sci_dma_queue *q)
{
	struct sci_dma_transfer *t;

	spin_lock(&q->obj.ev_lock);
	t = list_first_entry_or_null(&q->transfers, struct sci_dma_transfer,
				     link);
	spin_unlock(&q->obj.ev_lock);
	return t;
}

static void dma_transfer_end(struct sci_dma_queue *q,
			     struct sci_dma_transfer *t)
{
	spin_lock(&q->obj.ev_lock);
	list_del(&t->link);
	q->pieces -= t->nr_vecs;
	/* pairs with dma_transfer_wait(): the status comes first */
	smp_store_release(&t->done, true);
	spin_unlock(&q->obj.ev_lock);
	if (!t->wait)
		sci_object_event(&q->obj, SCI_EV_DMA, 0, t->status, t->cookie);
	/* count after the event: a reader that sees the transfer finished finds its event */
	spin_lock(&q->obj.ev_lock);
	q->finished++;
	spin_unlock(&q->obj.ev_lock);
	wake_up_all(&q->obj.wait);
	dma_transfer_put(t);
}

/* Run the transfers. Only this work removes transfers from the list: the first one stays first. */
static void dma_work(struct work_struct *work)
{
	struct sci_dma_queue *q = container_of(work, struct sci_dma_queue,
					       work);
	struct sci_dma_transfer *t;

	while ((t = dma_first_transfer(q))) {
		t->status = dma_transfer_run(q->obj.adapter, t);
		dma_transfer_end(q, t);
	}
}

/* ---- object ---- */

/* Abort all transfers. Return: the value of queue->finished when they have ended. */
static u64 dma_abort_all(struct sci_dma_queue *q)
{
	struct sci_dma_transfer *t;
	u64 last;

	spin_lock(&q->obj.ev_lock);
	list_for_each_entry(t, &q->transfers, link)
		WRITE_ONCE(t->abort, true);
	last = q->submitted;
	spin_unlock(&q->obj.ev_lock);
	return last;
}

static bool dma_is_finished(struct sci_dma_queue *q, u64 last)
{
	bool finished;

	spin_lock(&q->obj.ev_lock);
	finished = q->finished >= last;
	spin_unlock(&q->obj.ev_lock);
	return finished;
}

static void dma_kill(struct sci_object *obj)
{
	struct sci_dma_queue *q = dma_queue_of(obj);

	spin_lock(&obj->ev_lock);
	q->dead = true;
	spin_unlock(&obj->ev_lock);
	dma_abort_all(q);
}

static void dma_free(struct sci_object *obj)
{
	struct sci_dma_queue *q = dma_queue_of(obj);

	flush_work(&q->work);
	sci_object_fini(obj);
	kfree(q);
}

static void dma_show(struct sci_object *obj, struct seq_file *m)
{
	struct sci_dma_queue *q = dma_queue_of(obj);

	seq_printf(m, "sci-dma-pieces:\t%u\n", READ_ONCE(q->pieces));
	seq_printf(m, "sci-dma-max-pieces:\t%u\n", q->max_pieces);
}

static const struct sci_object_ops dma_ops = {
	.name = "[sci-dma]",
	.kill = dma_kill,
	.free = dma_free,
	.show = dma_show,
};

int sci_dma_create(struct sci_object *obj, void *cmd, struct sci_new_file *nf)
{
	struct sci_ioc_dma_create *c = cmd;
	struct sci_dma_queue *q;
	int ret;

	if (!c->max_pieces || c->max_pieces > PIECES_MAX)
		return -EINVAL;
	if (!(obj->adapter->desc.caps & SCI_CAP_DMA))
		return -EOPNOTSUPP;
	q = kzalloc(sizeof(*q), GFP_KERNEL_ACCOUNT);
	if (!q)
		return -ENOMEM;
	sci_object_init(&q->obj, SCI_OBJECT_DMA, &dma_ops, obj->adapter);
	INIT_WORK(&q->work, dma_work);
	INIT_LIST_HEAD(&q->transfers);
	q->max_pieces = c->max_pieces;
	ret = sci_object_file(&q->obj, nf);
	if (ret) {
		dma_free(&q->obj);
		return ret;
	}
	c->out_fd = nf->fd;
	return 0;
}

/* ---- submit ---- */

static int dma_check_vec(struct sci_adapter *a, const struct sci_dma_vec *v,
			 u64 local_len, u64 remote_len)
{
	u64 end;

	if (!v->length || (v->local | v->remote | v->length) &
			  (a->desc.dma_align - 1))
		return -EINVAL;
	if (check_add_overflow(v->local, v->length, &end) || end > local_len)
		return -EINVAL;
	if (check_add_overflow(v->remote, v->length, &end) || end > remote_len)
		return -EINVAL;
	return v->length > a->desc.dma_max ? -EINVAL : 0;
}

static struct file *dma_segment_file(int fd, enum sci_object_kind kind,
				     struct sci_adapter *a)
{
	struct file *file = fget(fd);
	struct sci_object *obj;

	if (!file)
		return ERR_PTR(-EBADF);
	obj = sci_object_of(file, kind);
	if (obj && obj->adapter == a)
		return file;
	fput(file);
	return ERR_PTR(-EINVAL);
}

static int dma_take_segments(struct sci_dma_transfer *t, struct sci_adapter *a,
			     const struct sci_ioc_dma_submit *c)
{
	struct file *file;
	struct sci_segment *s;

	file = dma_segment_file(c->local_fd, SCI_OBJECT_SEGMENT, a);
	if (IS_ERR(file))
		return PTR_ERR(file);
	t->local = file;
	file = dma_segment_file(c->remote_fd, SCI_OBJECT_IMPORT, a);
	if (IS_ERR(file))
		return PTR_ERR(file);
	t->remote = file;
	s = sci_segment_of(sci_object_of(t->local, SCI_OBJECT_SEGMENT));
	t->pages = sci_segment_pages(s);
	return t->pages ? 0 : -ENOTCONN;
}

static int dma_check_transfer(struct sci_dma_transfer *t, struct sci_adapter *a)
{
	struct sci_object *lo = sci_object_of(t->local, SCI_OBJECT_SEGMENT);
	struct sci_object *ro = sci_object_of(t->remote, SCI_OBJECT_IMPORT);
	struct sci_import *im = sci_import_of(ro);
	bool usable, writable;
	u32 i;
	int ret = 0;

	mutex_lock(&a->lock);
	usable = im->client.state == SCI_REMOTE_CONNECTED;
	writable = im->access & 2;
	mutex_unlock(&a->lock);
	if (!usable)
		return -ENOTCONN;
	if (!t->pull && !writable)
		return -EACCES;
	for (i = 0; i < t->nr_vecs && !ret; i++)
		ret = dma_check_vec(a, &t->vecs[i], sci_segment_of(lo)->length,
				    im->length);
	return ret;
}

static struct sci_dma_transfer *
dma_transfer_new(const struct sci_ioc_dma_submit *c)
{
	struct sci_dma_transfer *t;

	t = kvzalloc(struct_size(t, vecs, c->nr_vecs), GFP_KERNEL_ACCOUNT);
	if (!t)
		return ERR_PTR(-ENOMEM);
	refcount_set(&t->ref, 1);
	t->nr_vecs = c->nr_vecs;
	t->cookie = c->cookie;
	t->pull = c->flags & SCI_DMA_PULL;
	t->wait = c->flags & SCI_DMA_WAIT;
	if (copy_from_user(t->vecs, u64_to_user_ptr(c->vecs),
			   array_size(c->nr_vecs, sizeof(t->vecs[0])))) {
		dma_transfer_put(t);
		return ERR_PTR(-EFAULT);
	}
	return t;
}

static int dma_enqueue(struct sci_dma_queue *q, struct sci_dma_transfer *t)
{
	int ret = 0;

	spin_lock(&q->obj.ev_lock);
	if (q->dead) {
		ret = -ENODEV;
	} else if (t->nr_vecs > q->max_pieces - q->pieces) {
		ret = -EAGAIN;
	} else {
		q->pieces += t->nr_vecs;
		if (t->wait)
			refcount_inc(&t->ref);
		list_add_tail(&t->link, &q->transfers);
		q->submitted++;
	}
	spin_unlock(&q->obj.ev_lock);
	return ret;
}

static int dma_transfer_wait(struct sci_dma_queue *q,
			     struct sci_dma_transfer *t)
{
	int ret;

	if (wait_event_killable(q->obj.wait, smp_load_acquire(&t->done)))
		WRITE_ONCE(t->abort, true);
	/* the transfer must not access memory after this function has returned */
	wait_event(q->obj.wait, smp_load_acquire(&t->done));
	ret = t->status;
	dma_transfer_put(t);
	return ret;
}

/* Submit @t, and take over the caller's reference to it. */
static int dma_transfer_submit(struct sci_dma_queue *q,
			       struct sci_dma_transfer *t,
			       const struct sci_ioc_dma_submit *c)
{
	struct sci_adapter *a = q->obj.adapter;
	bool wait = t->wait;
	int ret;

	ret = dma_take_segments(t, a, c);
	if (!ret)
		ret = dma_check_transfer(t, a);
	if (!ret)
		ret = dma_enqueue(q, t);
	if (ret) {
		dma_transfer_put(t);
		return ret;
	}
	queue_work(system_dfl_wq, &q->work);
	return wait ? dma_transfer_wait(q, t) : 0;
}

/* This function calls sci_adapter_enter() itself. */
int sci_dma_submit(struct sci_object *obj, void *cmd, struct sci_new_file *nf)
{
	struct sci_dma_queue *q = dma_queue_of(obj);
	struct sci_ioc_dma_submit *c = cmd;
	struct sci_dma_transfer *t;
	int idx, ret;

	if (c->reserved || !c->nr_vecs)
		return -EINVAL;
	/* the queue can never hold that many pieces */
	if (c->nr_vecs > q->max_pieces)
		return -EAGAIN;
	t = dma_transfer_new(c);
	if (IS_ERR(t))
		return PTR_ERR(t);
	ret = sci_adapter_enter(obj->adapter, &idx);
	if (ret) {
		dma_transfer_put(t);
		return ret;
	}
	ret = dma_transfer_submit(q, t, c);
	sci_adapter_exit(obj->adapter, idx);
	return ret;
}

int sci_dma_abort(struct sci_object *obj, void *cmd, struct sci_new_file *nf)
{
	struct sci_dma_queue *q = dma_queue_of(obj);
	u64 last = dma_abort_all(q);

	/*
	 * Do not wait for the work: other submitters may keep it busy. Only a fatal
	 * signal ends the wait.
	 */
	return wait_event_killable(q->obj.wait, dma_is_finished(q, last)) ?
		       -EINTR :
		       0;
}
