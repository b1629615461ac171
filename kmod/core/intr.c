// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Interrupts: lines and their owners. */

#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "core.h"
#include "intr.h"
#include "intr_data.h"
#include "trace.h"

/* ---- lines ---- */

static struct xarray *intr_line_table(struct sci_adapter *a, bool data)
{
	return data ? &a->data_intrs : &a->intrs;
}

static struct sci_intr_line *intr_line_new(struct sci_adapter *a, u32 flags,
					   u32 number, u16 mode)
{
	bool data = flags & SCI_INTR_WITH_DATA;
	struct sci_intr_line *l = kzalloc(sizeof(*l), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!l)
		return ERR_PTR(-ENOMEM);
	l->adapter = a;
	l->number = number;
	l->data = data;
	l->shared = flags & SCI_INTR_SHARE_NUMBER;
	sci_owner_init(&l->owner, mode);
	INIT_LIST_HEAD(&l->owners);
	sci_exporter_init(&l->exporter);
	if (flags & SCI_INTR_FIXED_NUMBER)
		ret = xa_insert(intr_line_table(a, data), number, l,
				GFP_KERNEL_ACCOUNT);
	else
		ret = xa_alloc(intr_line_table(a, data), &l->number, l,
			       XA_LIMIT(0, U32_MAX), GFP_KERNEL_ACCOUNT);
	if (ret) {
		kfree(l);
		return ERR_PTR(ret == -EBUSY ? -ENOSPC : ret);
	}
	return l;
}

/* Return the line with @number if it may be shared, or a new line. */
static struct sci_intr_line *intr_line_get(struct sci_adapter *a, u32 flags,
					   u32 number, u16 mode)
{
	struct sci_intr_line *l = NULL;

	lockdep_assert_held(&a->lock);
	if (flags & SCI_INTR_FIXED_NUMBER)
		l = xa_load(intr_line_table(a, flags & SCI_INTR_WITH_DATA), number);
	if (!l)
		return intr_line_new(a, flags, number, mode);
	if (!l->shared || !(flags & SCI_INTR_SHARE_NUMBER))
		return ERR_PTR(-EEXIST);
	return l;
}

/* End a line whose last owner has ended. */
static void intr_line_end(struct sci_intr_line *l, bool died)
{
	sci_exporter_cut(&l->exporter, died);
	sci_exporter_end(&l->exporter);
	xa_erase(intr_line_table(l->adapter, l->data), l->number);
	kfree(l);
}

static struct sci_exporter *intr_accept(struct sci_adapter *a,
					const struct sci_caller *who,
					struct sci_msg_reply *re)
{
	const struct sci_msg_connect *msg = who->msg;
	struct sci_intr_line *l;

	lockdep_assert_held(&a->lock);
	l = xa_load(intr_line_table(a, msg->kind == SCI_KIND_DATA_INTR),
		    le32_to_cpu(msg->id));
	if (!l)
		return ERR_PTR(-ENOENT);
	/* a trigger needs the right to write; owners that share a line share its mode */
	if (!(sci_owner_permits(&l->owner, who) & 2))
		return ERR_PTR(-EACCES);
	return &l->exporter;
}

const struct sci_server_ops sci_intr_server_ops = {
	.accept = intr_accept,
};

/* ---- owners ---- */

static void intr_kill(struct sci_object *obj)
{
	struct sci_intr *i = container_of(obj, struct sci_intr, obj);
	struct sci_intr_line *l = i->line;

	if (!l)
		return;
	trace_sci_intr_state(obj->adapter, l->number, l->data, "remove");
	i->line = NULL;
	list_del_init(&i->link);
	if (list_empty(&l->owners))
		intr_line_end(l, sci_object_died(obj));
}

static void intr_free(struct sci_object *obj)
{
	struct sci_intr *i = container_of(obj, struct sci_intr, obj);

	sci_intr_data_drop(i);
	sci_object_fini(obj);
	kfree(i);
}

static bool intr_ready(struct sci_object *obj)
{
	struct sci_intr *i = container_of(obj, struct sci_intr, obj);

	return i->pending || i->cancelled || !list_empty(&i->data);
}

/* Take one trigger. Return: 0, -ECANCELED or -EAGAIN. */
static int intr_take_trigger(struct sci_intr *i)
{
	int ret = -EAGAIN;

	spin_lock(&i->obj.ev_lock);
	if (i->cancelled) {
		ret = -ECANCELED;
	} else if (i->pending) {
		i->pending--;
		ret = 0;
	}
	spin_unlock(&i->obj.ev_lock);
	return ret;
}

/* Give back a trigger that could not be copied to the reader. */
static void intr_return_trigger(struct sci_intr *i)
{
	spin_lock(&i->obj.ev_lock);
	i->pending = i->flags & SCI_INTR_COUNT ? i->pending + 1 : 1;
	spin_unlock(&i->obj.ev_lock);
	sci_object_wake(&i->obj);
}

static ssize_t intr_read_trigger(struct sci_intr *i, char __user *buf,
				 size_t len)
{
	const u64 one = 1;
	int ret;

	if (len < sizeof(one))
		return -EINVAL;
	ret = intr_take_trigger(i);
	if (ret)
		return ret;
	if (!copy_to_user(buf, &one, sizeof(one)))
		return sizeof(one);
	intr_return_trigger(i);
	return -EFAULT;
}

static bool intr_ready_locked(struct sci_intr *i)
{
	bool ready;

	spin_lock(&i->obj.ev_lock);
	ready = intr_ready(&i->obj);
	spin_unlock(&i->obj.ev_lock);
	return ready;
}

static ssize_t intr_read(struct file *file, char __user *buf, size_t len)
{
	struct sci_intr *i = container_of(file->private_data, struct sci_intr,
					  obj);
	struct sci_adapter *a = i->obj.adapter;
	ssize_t ret;

	for (;;) {
		ret = i->flags & SCI_INTR_WITH_DATA ?
			      sci_intr_data_read(i, buf, len) :
			      intr_read_trigger(i, buf, len);
		if (ret != -EAGAIN)
			return ret;
		if (sci_adapter_is_dead(a))
			return -ENODEV;
		if (file->f_flags & O_NONBLOCK)
			return ret;
		ret = wait_event_interruptible(i->obj.wait,
					       intr_ready_locked(i) ||
					       sci_adapter_is_dead(a));
		if (ret)
			return ret;
	}
}

static void intr_show(struct sci_object *obj, struct seq_file *m)
{
	struct sci_intr *i = container_of(obj, struct sci_intr, obj);
	bool ready;

	spin_lock(&obj->ev_lock);
	ready = intr_ready(obj);
	spin_unlock(&obj->ev_lock);
	seq_printf(m, "sci-interrupt-number:\t%u\n", i->number);
	seq_printf(m, "sci-interrupt-data:\t%d\n",
		   !!(i->flags & SCI_INTR_WITH_DATA));
	seq_printf(m, "sci-interrupt-ready:\t%d\n", ready);
}

static const struct sci_object_ops intr_ops = {
	.name = "[sci-interrupt]",
	.kill = intr_kill,
	.free = intr_free,
	.show = intr_show,
	.read = intr_read,
	.ready = intr_ready,
};

static struct sci_intr *intr_alloc(struct sci_adapter *a, u32 flags)
{
	struct sci_intr *i = kzalloc(sizeof(*i), GFP_KERNEL_ACCOUNT);

	if (!i)
		return NULL;
	sci_object_init(&i->obj, SCI_OBJECT_INTR, &intr_ops, a);
	INIT_LIST_HEAD(&i->link);
	INIT_LIST_HEAD(&i->data);
	i->flags = flags;
	return i;
}

int sci_intr_create(struct sci_object *obj, void *cmd, struct sci_new_file *nf)
{
	struct sci_ioc_intr_create *c = cmd;
	struct sci_adapter *a = obj->adapter;
	struct sci_intr_line *l;
	struct sci_intr *i;
	int ret;

	if (c->mode & ~0666u)
		return -EINVAL;
	if (c->flags & SCI_INTR_WITH_DATA &&
	    c->flags & (SCI_INTR_SHARE_NUMBER | SCI_INTR_COUNT))
		return -EINVAL;
	i = intr_alloc(a, c->flags);
	if (!i)
		return -ENOMEM;
	mutex_lock(&a->lock);
	l = intr_line_get(a, c->flags, c->number, c->mode);
	if (!IS_ERR(l)) {
		i->line = l;
		i->number = l->number;
		list_add_tail(&i->link, &l->owners);
		trace_sci_intr_state(a, l->number, l->data, "create");
		c->out_number = l->number;
	}
	mutex_unlock(&a->lock);
	ret = PTR_ERR_OR_ZERO(l);
	if (!ret)
		ret = sci_object_file(&i->obj, nf);
	if (ret) {
		mutex_lock(&a->lock);
		intr_kill(&i->obj);
		mutex_unlock(&a->lock);
		intr_free(&i->obj);
		return ret;
	}
	c->out_fd = nf->fd;
	return 0;
}

int sci_intr_cancel(struct sci_object *obj, void *cmd, struct sci_new_file *nf)
{
	struct sci_intr *i = container_of(obj, struct sci_intr, obj);
	struct sci_adapter *a = obj->adapter;

	mutex_lock(&a->lock);
	if (i->line)
		trace_sci_intr_state(a, i->line->number, i->line->data,
				     "cancel");
	spin_lock(&obj->ev_lock);
	i->cancelled = true;
	spin_unlock(&obj->ev_lock);
	mutex_unlock(&a->lock);
	wake_up_all(&obj->wait);
	return 0;
}

static void intr_fire(struct sci_intr_line *l)
{
	struct sci_intr *i;

	list_for_each_entry(i, &l->owners, link) {
		spin_lock(&i->obj.ev_lock);
		if (i->flags & SCI_INTR_COUNT)
			i->pending++;
		else
			i->pending = 1;
		spin_unlock(&i->obj.ev_lock);
		sci_object_wake(&i->obj);
	}
}

void sci_intr_triggered(struct sci_adapter *a, u32 node, u32 handle)
{
	struct sci_server *s = NULL;
	struct sci_peer *p;

	mutex_lock(&a->lock);
	p = xa_load(&a->peers, node);
	if (p)
		s = sci_server_find(p, handle);
	if (s && s->exporter && s->kind == SCI_KIND_INTR) {
		sci_count(a, SCI_COUNT_TRIGGERS_RECEIVED, 1);
		trace_sci_trigger(a, node, handle, 0, false);
		intr_fire(sci_intr_line_of(s->exporter));
	}
	mutex_unlock(&a->lock);
}
