// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Local segments: see segment.h. */

#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "compat.h"
#include "core.h"
#include "dmabuf.h"
#include "group.h"
#include "lent.h"
#include "retire.h"
#include "segment.h"
#include "trace.h"
#include "user.h"

static unsigned int max_importers = 65536;
module_param(max_importers, uint, 0644);
MODULE_PARM_DESC(max_importers, "importers one segment can have (65536)");

/* ---- end ---- */

static void segment_drop_attached(struct sci_segment *s, enum sci_ev_type type)
{
	struct sci_segment *at, *next;

	list_for_each_entry_safe(at, next, &s->attached, attach_link) {
		list_del_init(&at->attach_link);
		at->creator = NULL;
		at->state |= SCI_SEGMENT_STATE_REMOVED;
		sci_object_event(&at->obj, type, at->obj.adapter->desc.node, 0, 0);
	}
}

/* Cut off all importers. @tell: the owner gets an event for each. */
static void segment_cut_importers(struct sci_segment *s, bool died, bool tell)
{
	struct sci_server *server;

	if (tell)
		list_for_each_entry(server, &s->exporter.servers, link)
			if (!server->cut)
				sci_object_event(&s->obj, SCI_EV_DISCONNECT,
						 server->conn.peer->node, 0, 0);
	s->cutting += sci_exporter_cut(&s->exporter, died);
	s->importers = 0;
}

static void segment_hide(struct sci_segment *s)
{
	lockdep_assert_held(&s->obj.adapter->lock);
	if (!s->exposed)
		return;
	sci_user_uncharge(s->obj.adapter, s->exposed->charged,
			  SCI_USER_EXPORTS, 1);
	sci_retire_exposure(s->obj.adapter, s->exposed);
	s->exposed = NULL;
}

/* Hide a segment that has no importers and accepts none. */
static void segment_hide_unused(struct sci_segment *s)
{
	if (!(s->state & SCI_SEGMENT_STATE_EXPORTED) &&
	    list_empty(&s->exporter.servers))
		segment_hide(s);
}

/* End a segment, though it may still be mapped. */
static void segment_remove(struct sci_segment *s, enum sci_ev_type type)
{
	struct sci_adapter *a = s->obj.adapter;

	lockdep_assert_held(&a->lock);
	if (s->state & SCI_SEGMENT_STATE_REMOVED)
		return;
	s->state |= SCI_SEGMENT_STATE_REMOVED;
	s->state &= ~(SCI_SEGMENT_STATE_EXPORTED | SCI_SEGMENT_STATE_SHARED);
	sci_group_leave(s);
	segment_cut_importers(s, type == SCI_EV_LOST, false);
	sci_exporter_end(&s->exporter);
	/* segment_force() gets no more acknowledgments: end its wait */
	WRITE_ONCE(s->cutting, 0);
	wake_up_all(&s->obj.wait);
	segment_drop_attached(s, type);
	segment_hide(s);
	if (!(s->flags & SCI_SEGMENT_PRIVATE))
		xa_erase(&a->segments, s->id);
	if (device_is_registered(&s->dev))
		device_del(&s->dev);
	trace_sci_segment_state(a, s->id, s->length, "remove");
}

static void segment_kill(struct sci_object *obj)
{
	struct sci_segment *s = sci_segment_of(obj);

	if (s->state & SCI_SEGMENT_STATE_ATTACHED) {
		list_del_init(&s->attach_link);
		s->creator = NULL;
		s->state |= SCI_SEGMENT_STATE_REMOVED;
	} else {
		segment_remove(s, sci_object_died(obj) ? SCI_EV_LOST :
							 SCI_EV_DISCONNECT);
	}
}

static void segment_release(struct sci_object *obj)
{
	struct sci_segment *s = sci_segment_of(obj);

	if (s->backing)
		fput(s->backing);
	if (s->pages)
		sci_pages_put(s->pages);
	put_device(&s->dev);
}

/* ---- maps ---- */

static int segment_backing_release(struct inode *inode, struct file *file)
{
	sci_pages_put(file->private_data);
	return 0;
}

/*
 * Operations of the file that backs the maps of a segment.  The file keeps only the
 * memory of the segment: see sci_vma_set_backing().  One file is enough for all maps,
 * because these maps are never revoked.
 */
static const struct file_operations local_fops = {
	.owner = THIS_MODULE,
	.release = segment_backing_release,
};

static struct file *segment_backing_get(struct sci_segment *s)
{
	struct file *file = s->backing;

	lockdep_assert_held(&s->obj.adapter->lock);
	if (sci_segment_is_removed(s))
		return ERR_PTR(-ENOTCONN);
	if (!s->pages)
		return ERR_PTR(-EBUSY);
	if (!file) {
		file = anon_inode_getfile("[sci-segment]", &local_fops,
					  s->pages, O_RDWR);
		if (IS_ERR(file))
			return file;
		sci_pages_get(s->pages);
		s->backing = file;
	}
	return get_file(file);
}

static int segment_mmap_lent(struct sci_segment *s, struct vm_area_struct *vma)
{
	struct sci_pages *p = sci_segment_pages(s);
	int ret = -EINVAL;

	if (!p)
		return -ENOTCONN;
	if (sci_pages_cover(p, vma)) {
		sci_lent_mmap(p, vma);
		ret = 0;
	}
	sci_pages_put(p);
	return ret;
}

static int segment_mmap(struct sci_object *obj, struct vm_area_struct *vma)
{
	struct sci_segment *s = sci_segment_of(obj);
	struct file *file;
	int ret;

	if (obj->adapter->desc.ops->alloc)
		return segment_mmap_lent(s, vma);
	mutex_lock(&obj->adapter->lock);
	file = segment_backing_get(s);
	mutex_unlock(&obj->adapter->lock);
	if (IS_ERR(file))
		return PTR_ERR(file);
	vma_set_file(vma, file);
	ret = sci_pages_mmap(file->private_data, vma);
	fput(file);
	return ret;
}

struct sci_pages *sci_segment_pages(struct sci_segment *s)
{
	struct sci_adapter *a = s->obj.adapter;
	struct sci_pages *p = NULL;

	mutex_lock(&a->lock);
	if (s->pages && !sci_segment_is_removed(s))
		p = sci_pages_get(s->pages);
	mutex_unlock(&a->lock);
	return p;
}

static void segment_show(struct sci_object *obj, struct seq_file *m)
{
	struct sci_segment *s = sci_segment_of(obj);
	u32 state = READ_ONCE(s->state);

	seq_printf(m, "sci-segment-id:\t%u\n", s->id);
	seq_printf(m, "sci-segment-size:\t%llu\n", s->length);
	seq_printf(m, "sci-segment-importers:\t%u\n",
		   READ_ONCE(s->importers));
	seq_printf(m, "sci-segment-exported:\t%d\n",
		   !!(state & SCI_SEGMENT_STATE_EXPORTED));
	seq_printf(m, "sci-segment-attached:\t%d\n",
		   !!(state & SCI_SEGMENT_STATE_ATTACHED));
	seq_printf(m, "sci-segment-removed:\t%d\n",
		   !!(state & SCI_SEGMENT_STATE_REMOVED));
}

static const struct sci_object_ops segment_ops = {
	.name = "[sci-segment]",
	.kill = segment_kill,
	.free = segment_release,
	.show = segment_show,
	.mmap = segment_mmap,
};

/*
 * ---- sysfs: segmentID/ ----
 *
 * A segment with an id is a device without class and bus, so that its creation and
 * removal send no uevents.  The functions below do not take adapter->lock:
 * device_del() waits under that lock for readers of the files.
 */

#define SEGMENT_SHOW(_name, _fmt, _value)				\
static ssize_t _name##_show(struct device *dev,				\
			    struct device_attribute *attr, char *buf)	\
{									\
	struct sci_segment *s = container_of(dev, struct sci_segment, dev); \
									\
	return sysfs_emit(buf, _fmt "\n", _value);			\
}									\
static DEVICE_ATTR_RO(_name)

static const char *segment_memory_word(const struct sci_segment *s)
{
	if (!(s->flags & SCI_SEGMENT_EMPTY))
		return "allocated";
	return READ_ONCE(s->pages) ? "registered" : "empty";
}

/* Return the owner's uid in the reader's user namespace. */
static uid_t segment_owner_for_reader(const struct sci_segment *s)
{
	return from_kuid_munged(current_user_ns(),
				make_kuid(&init_user_ns, s->owner.uid));
}

static gid_t segment_group_for_reader(const struct sci_segment *s)
{
	return from_kgid_munged(current_user_ns(),
				make_kgid(&init_user_ns, s->owner.gid));
}

SEGMENT_SHOW(size, "%llu", s->length);
SEGMENT_SHOW(mode, "%04o", s->owner.mode);
SEGMENT_SHOW(owner, "%u", segment_owner_for_reader(s));
SEGMENT_SHOW(group, "%u", segment_group_for_reader(s));
SEGMENT_SHOW(pid, "%d", pid_vnr(s->pid));
SEGMENT_SHOW(numa_node, "%d", s->numa_node);
SEGMENT_SHOW(importers, "%u", READ_ONCE(s->importers));
SEGMENT_SHOW(exported, "%d",
	     !!(READ_ONCE(s->state) & SCI_SEGMENT_STATE_EXPORTED));
SEGMENT_SHOW(shared, "%d",
	     !!(READ_ONCE(s->state) & SCI_SEGMENT_STATE_SHARED));
SEGMENT_SHOW(broadcast, "%d", !!(s->flags & SCI_SEGMENT_BROADCAST));
SEGMENT_SHOW(memory, "%s", segment_memory_word(s));

static struct attribute *segment_attrs[] = {
	&dev_attr_size.attr,
	&dev_attr_mode.attr,
	&dev_attr_owner.attr,
	&dev_attr_group.attr,
	&dev_attr_pid.attr,
	&dev_attr_numa_node.attr,
	&dev_attr_importers.attr,
	&dev_attr_exported.attr,
	&dev_attr_shared.attr,
	&dev_attr_broadcast.attr,
	&dev_attr_memory.attr,
	NULL
};
ATTRIBUTE_GROUPS(segment);

static void segment_dev_release(struct device *dev)
{
	struct sci_segment *s = container_of(dev, struct sci_segment, dev);

	put_pid(s->pid);
	sci_object_fini(&s->obj);
	kfree(s);
}

static void segment_dev_init(struct sci_segment *s)
{
	device_initialize(&s->dev);
	device_set_pm_not_required(&s->dev);
	s->dev.parent = &s->obj.adapter->dev;
	s->dev.groups = segment_groups;
	s->dev.release = segment_dev_release;
}

static int segment_dev_add(struct sci_segment *s)
{
	int ret = dev_set_name(&s->dev, "segment%u", s->id);

	return ret ? ret : device_add(&s->dev);
}

/* ---- create, attach ---- */

static struct sci_segment *segment_alloc(struct sci_adapter *a)
{
	struct sci_segment *s = kzalloc(sizeof(*s), GFP_KERNEL_ACCOUNT);

	if (!s)
		return NULL;
	sci_object_init(&s->obj, SCI_OBJECT_SEGMENT, &segment_ops, a);
	segment_dev_init(s);
	sci_exporter_init(&s->exporter);
	INIT_LIST_HEAD(&s->attached);
	INIT_LIST_HEAD(&s->attach_link);
	INIT_LIST_HEAD(&s->group_link);
	s->pid = get_task_pid(current, PIDTYPE_TGID);
	return s;
}

static int segment_check_create(struct sci_adapter *a,
				const struct sci_ioc_segment_create *c)
{
	const u32 named = SCI_SEGMENT_AUTO_ID | SCI_SEGMENT_BROADCAST |
			  SCI_SEGMENT_UNICAST;

	if (c->reserved || !c->length || c->length > a->desc.max_segment ||
	    c->mode & ~0666u)
		return -EINVAL;
	if (c->flags & SCI_SEGMENT_PRIVATE && (c->flags & named || c->id))
		return -EINVAL;
	if (c->flags & SCI_SEGMENT_UNICAST &&
	    !(c->flags & SCI_SEGMENT_BROADCAST))
		return -EINVAL;
	if (c->flags & SCI_SEGMENT_BROADCAST && c->flags & SCI_SEGMENT_EMPTY)
		return -EINVAL;
	if (c->numa_node != NUMA_NO_NODE &&
	    (c->numa_node < 0 || c->numa_node >= MAX_NUMNODES ||
	     !node_online(c->numa_node)))
		return -EINVAL;
	if (c->flags & SCI_SEGMENT_BROADCAST &&
	    !(a->desc.caps & SCI_CAP_BROADCAST))
		return -EOPNOTSUPP;
	if (c->flags & SCI_SEGMENT_EMPTY && !(a->desc.caps & SCI_CAP_REGISTER))
		return -EOPNOTSUPP;
	return 0;
}

static int segment_id_assign(struct sci_segment *s, u32 id)
{
	struct sci_adapter *a = s->obj.adapter;
	int ret;

	lockdep_assert_held(&a->lock);
	s->id = id;
	if (s->flags & SCI_SEGMENT_PRIVATE)
		return 0;
	if (!(s->flags & SCI_SEGMENT_AUTO_ID)) {
		ret = xa_insert(&a->segments, id, s, GFP_KERNEL_ACCOUNT);
		return ret == -EBUSY ? -EEXIST : ret;
	}
	ret = xa_alloc(&a->segments, &s->id, s, XA_LIMIT(id, U32_MAX),
		       GFP_KERNEL_ACCOUNT);
	return ret == -EBUSY ? -ENOSPC : ret;
}

static int segment_memory_alloc(struct sci_segment *s)
{
	int node = s->numa_node;
	struct sci_pages *p;

	if (s->flags & SCI_SEGMENT_EMPTY)
		return 0;
	if (node == NUMA_NO_NODE)
		node = dev_to_node(&s->obj.adapter->dev);
	if (s->obj.adapter->desc.ops->alloc)
		p = sci_lent_alloc(s->obj.adapter, s->length);
	else
		p = sci_pages_alloc(s->length, node, &s->obj.adapter->dead);
	if (IS_ERR(p))
		return sci_adapter_is_dead(s->obj.adapter) ? -ENODEV : PTR_ERR(p);
	s->pages = p;
	return s->flags & SCI_SEGMENT_BROADCAST ? sci_group_join(s) : 0;
}

/* Build a segment. Take the id first, so that an id in use costs no allocation of memory. */
static int segment_build(struct sci_segment *s, u32 id)
{
	struct sci_adapter *a = s->obj.adapter;
	int ret;

	mutex_lock(&a->lock);
	ret = segment_id_assign(s, id);
	mutex_unlock(&a->lock);
	if (ret)
		return ret;
	ret = segment_memory_alloc(s);
	if (!ret && !(s->flags & SCI_SEGMENT_PRIVATE))
		ret = segment_dev_add(s);
	if (!ret)
		return 0;
	mutex_lock(&a->lock);
	segment_remove(s, SCI_EV_DISCONNECT);
	mutex_unlock(&a->lock);
	return ret;
}

int sci_segment_create(struct sci_object *obj, void *cmd,
		       struct sci_new_file *nf)
{
	struct sci_ioc_segment_create *c = cmd;
	struct sci_segment *s;
	int ret;

	ret = segment_check_create(obj->adapter, c);
	if (ret)
		return ret;
	s = segment_alloc(obj->adapter);
	if (!s)
		return -ENOMEM;
	s->flags = c->flags;
	s->length = c->length;
	s->numa_node = c->numa_node;
	sci_owner_init(&s->owner, c->mode);
	ret = segment_build(s, c->id);
	if (ret)
		goto err_release;
	ret = sci_object_file(&s->obj, nf);
	if (ret)
		goto err_remove;
	trace_sci_segment_state(obj->adapter, s->id, s->length, "create");
	c->out_fd = nf->fd;
	c->out_id = s->id;
	return 0;

err_remove:
	mutex_lock(&obj->adapter->lock);
	segment_remove(s, SCI_EV_DISCONNECT);
	mutex_unlock(&obj->adapter->lock);
err_release:
	segment_release(&s->obj);
	return ret;
}

static int segment_attach_to(struct sci_segment *s, u32 id)
{
	struct sci_adapter *a = s->obj.adapter;
	struct sci_segment *to;

	lockdep_assert_held(&a->lock);
	to = xa_load(&a->segments, id);
	if (!to)
		return -ENOENT;
	if (!(to->state & SCI_SEGMENT_STATE_SHARED) || !to->pages ||
	    sci_owner_permits_current(&to->owner) != 6)
		return -EACCES;
	s->flags = to->flags;
	s->length = to->length;
	s->id = id;
	s->owner = to->owner;
	s->numa_node = to->numa_node;
	s->pages = sci_pages_get(to->pages);
	s->creator = to;
	list_add_tail(&s->attach_link, &to->attached);
	return 0;
}

int sci_segment_attach(struct sci_object *obj, void *cmd,
		       struct sci_new_file *nf)
{
	struct sci_ioc_segment_attach *c = cmd;
	struct sci_adapter *a = obj->adapter;
	struct sci_segment *s = segment_alloc(a);
	int ret;

	if (!s)
		return -ENOMEM;
	s->state = SCI_SEGMENT_STATE_ATTACHED;
	mutex_lock(&a->lock);
	ret = segment_attach_to(s, c->id);
	mutex_unlock(&a->lock);
	if (!ret)
		ret = sci_object_file(&s->obj, nf);
	if (ret) {
		mutex_lock(&a->lock);
		segment_kill(&s->obj);
		mutex_unlock(&a->lock);
		segment_release(&s->obj);
		return ret;
	}
	c->out_fd = nf->fd;
	c->out_length = s->length;
	return 0;
}

/* ---- calls on a segment ---- */

/* Return 0 if importers and other processes may use the segment, else -errno. */
static int segment_check_usable(struct sci_segment *s)
{
	lockdep_assert_held(&s->obj.adapter->lock);
	if (s->flags & SCI_SEGMENT_PRIVATE ||
	    s->state & SCI_SEGMENT_STATE_ATTACHED)
		return -EINVAL;
	if (s->state & SCI_SEGMENT_STATE_REMOVED)
		return -ENOTCONN;
	return s->pages ? 0 : -EBUSY;
}

static int segment_check_register(struct sci_segment *s,
				  const struct sci_ioc_segment_register *c)
{
	if (!(s->flags & SCI_SEGMENT_EMPTY) ||
	    s->state & SCI_SEGMENT_STATE_ATTACHED)
		return -EINVAL;
	if (!PAGE_ALIGNED(c->addr) || c->length != PAGE_ALIGN(s->length))
		return -EINVAL;
	return c->addr > ULONG_MAX - c->length ? -EFAULT : 0;
}

static int segment_check_dmabuf(struct sci_segment *s,
				const struct sci_ioc_segment_register_dmabuf *c)
{
	if (c->reserved || !PAGE_ALIGNED(c->offset))
		return -EINVAL;
	if (!(s->flags & SCI_SEGMENT_EMPTY) ||
	    s->state & SCI_SEGMENT_STATE_ATTACHED)
		return -EINVAL;
	return 0;
}

static int segment_set_pages(struct sci_segment *s, struct sci_pages *p)
{
	lockdep_assert_held(&s->obj.adapter->lock);
	if (s->state & SCI_SEGMENT_STATE_REMOVED)
		return -ENOTCONN;
	if (s->pages)
		return -EBUSY;
	WRITE_ONCE(s->pages, p);
	trace_sci_segment_state(s->obj.adapter, s->id, s->length, "register");
	return 0;
}

/* Give a segment its memory, or drop the memory. This function calls sci_adapter_enter() itself. */
static int segment_give_pages(struct sci_segment *s, struct sci_pages *p)
{
	struct sci_adapter *a = s->obj.adapter;
	int idx, ret;

	if (IS_ERR(p))
		return PTR_ERR(p);
	ret = sci_adapter_enter(a, &idx);
	if (!ret) {
		mutex_lock(&a->lock);
		ret = segment_set_pages(s, p);
		mutex_unlock(&a->lock);
		sci_adapter_exit(a, idx);
	}
	if (ret)
		sci_pages_put(p);
	return ret;
}

int sci_segment_register(struct sci_object *obj, void *cmd,
			 struct sci_new_file *nf)
{
	struct sci_segment *s = sci_segment_of(obj);
	struct sci_ioc_segment_register *c = cmd;
	int ret = segment_check_register(s, c);

	if (ret)
		return ret;
	if (READ_ONCE(s->pages))
		return -EBUSY;
	return segment_give_pages(s, sci_pages_pin(c->addr, c->length));
}

int sci_segment_register_dmabuf(struct sci_object *obj, void *cmd,
				struct sci_new_file *nf)
{
	struct sci_segment *s = sci_segment_of(obj);
	struct sci_ioc_segment_register_dmabuf *c = cmd;
	int ret = segment_check_dmabuf(s, c);

	if (ret)
		return ret;
	if (READ_ONCE(s->pages))
		return -EBUSY;
	return segment_give_pages(s, sci_dmabuf_pages(c->fd, c->offset,
						      PAGE_ALIGN(s->length)));
}

int sci_segment_get_dmabuf(struct sci_object *obj, void *cmd,
			   struct sci_new_file *nf)
{
	struct sci_segment *s = sci_segment_of(obj);
	struct sci_ioc_segment_get_dmabuf *c = cmd;
	struct sci_pages *p = sci_segment_pages(s);
	struct file *file;
	int fd;

	if (!p)
		return sci_segment_is_removed(s) ? -ENOTCONN : -EBUSY;
	file = sci_dmabuf_create(p);
	sci_pages_put(p);
	if (IS_ERR(file))
		return PTR_ERR(file);
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0) {
		fput(file);
		return fd;
	}
	nf->fd = fd;
	nf->file = file;
	c->out_fd = fd;
	c->out_reserved = 0;
	return 0;
}

int sci_segment_share(struct sci_object *obj, void *cmd,
		      struct sci_new_file *nf)
{
	struct sci_segment *s = sci_segment_of(obj);
	int ret;

	mutex_lock(&obj->adapter->lock);
	ret = segment_check_usable(s);
	if (!ret) {
		s->state |= SCI_SEGMENT_STATE_SHARED;
		trace_sci_segment_state(obj->adapter, s->id, s->length,
					"share");
	}
	mutex_unlock(&obj->adapter->lock);
	return ret;
}

static int segment_expose(struct sci_segment *s)
{
	struct sci_adapter *a = s->obj.adapter;
	struct sci_exposure *x;
	int ret;

	if (s->exposed)
		return 0;
	x = kmalloc(sizeof(*x), GFP_KERNEL_ACCOUNT);
	if (!x)
		return -ENOMEM;
	x->charged = sci_user_charge(a, SCI_USER_EXPORTS, 1);
	if (IS_ERR(x->charged)) {
		ret = PTR_ERR(x->charged);
		goto err_free;
	}
	ret = a->desc.ops->expose(a, s->pages, &x->base);
	if (ret)
		goto err_uncharge;
	s->base = x->base;
	s->exposed = x;
	return 0;

err_uncharge:
	sci_user_uncharge(a, x->charged, SCI_USER_EXPORTS, 1);
err_free:
	kfree(x);
	return ret;
}

static int segment_export(struct sci_segment *s)
{
	struct sci_adapter *a = s->obj.adapter;
	int ret = segment_check_usable(s);

	if (ret)
		return ret;
	ret = segment_expose(s);
	if (ret)
		return ret;
	s->state |= SCI_SEGMENT_STATE_EXPORTED;
	sci_group_export(s);
	trace_sci_segment_state(a, s->id, s->length, "export");
	return 0;
}

static int segment_export_locked(struct sci_segment *s)
{
	struct sci_adapter *a = s->obj.adapter;
	int ret;

	mutex_lock(&a->lock);
	ret = segment_export(s);
	mutex_unlock(&a->lock);
	return ret;
}

int sci_segment_export(struct sci_object *obj, void *cmd,
		       struct sci_new_file *nf)
{
	struct sci_segment *s = sci_segment_of(obj);
	int ret = segment_export_locked(s);

	/* segments that were hidden just now may still hold entries of the export table */
	if (ret == -ENOSPC) {
		sci_retire_flush(obj->adapter);
		ret = segment_export_locked(s);
	}
	return ret;
}

static int segment_unexport(struct sci_segment *s, u32 how)
{
	lockdep_assert_held(&s->obj.adapter->lock);
	if (s->flags & SCI_SEGMENT_PRIVATE ||
	    s->state & SCI_SEGMENT_STATE_ATTACHED)
		return -EINVAL;
	s->state &= ~SCI_SEGMENT_STATE_EXPORTED;
	sci_group_unexport(s);
	if (how == SCI_UNEXPORT_HOW_NOTIFY)
		sci_exporter_notify(&s->exporter);
	else if (how == SCI_UNEXPORT_HOW_FORCE)
		segment_cut_importers(s, false, true);
	segment_hide_unused(s);
	trace_sci_segment_state(s->obj.adapter, s->id, s->length, "unexport");
	return 0;
}

/*
 * Wait until the importers have acknowledged CUT: their stores do not fail then.  Importers
 * that do not answer in time, or whose link is down, lose access in any case.
 */
static int segment_force(struct sci_segment *s)
{
	struct sci_adapter *a = s->obj.adapter;
	long ret;

	/* only a fatal signal ends the wait: the process does not see the result */
	ret = wait_event_killable_timeout(s->obj.wait, !READ_ONCE(s->cutting) ||
					  !READ_ONCE(a->link_up) ||
					  sci_adapter_is_dead(a),
					  sci_peer_patience());
	mutex_lock(&a->lock);
	if (!(s->state & SCI_SEGMENT_STATE_EXPORTED))
		segment_hide(s);
	mutex_unlock(&a->lock);
	return ret < 0 ? -EINTR : 0;
}

int sci_segment_unexport(struct sci_object *obj, void *cmd,
			 struct sci_new_file *nf)
{
	struct sci_segment *s = sci_segment_of(obj);
	struct sci_ioc_segment_unexport *c = cmd;
	struct sci_adapter *a = obj->adapter;
	int ret;

	if (c->reserved || c->how > SCI_UNEXPORT_HOW_FORCE)
		return -EINVAL;
	mutex_lock(&a->lock);
	ret = segment_unexport(s, c->how);
	mutex_unlock(&a->lock);
	if (!ret && c->how == SCI_UNEXPORT_HOW_FORCE)
		ret = segment_force(s);
	sci_retire_flush(a);
	return ret;
}

int sci_segment_remove(struct sci_object *obj, void *cmd,
		       struct sci_new_file *nf)
{
	struct sci_segment *s = sci_segment_of(obj);

	if (s->state & SCI_SEGMENT_STATE_ATTACHED)
		return -EINVAL;
	mutex_lock(&obj->adapter->lock);
	segment_remove(s, SCI_EV_DISCONNECT);
	mutex_unlock(&obj->adapter->lock);
	sci_retire_flush(obj->adapter);
	return 0;
}

int sci_segment_info(struct sci_object *obj, void *cmd,
		     struct sci_new_file *nf)
{
	struct sci_segment *s = sci_segment_of(obj);
	struct sci_ioc_segment_info *c = cmd;

	mutex_lock(&obj->adapter->lock);
	c->out_id = s->id;
	c->out_state = s->state;
	c->out_importers = s->importers;
	c->out_mode = s->owner.mode;
	c->out_length = s->length;
	mutex_unlock(&obj->adapter->lock);
	return 0;
}

/* ---- importers ---- */

static struct sci_segment *segment_of(struct sci_exporter *e)
{
	return container_of(e, struct sci_segment, exporter);
}

static struct sci_exporter *segment_accept(struct sci_adapter *a,
					   const struct sci_caller *who,
					   struct sci_msg_reply *re)
{
	const struct sci_msg_connect *msg = who->msg;
	struct sci_segment *s;
	u8 access;

	lockdep_assert_held(&a->lock);
	s = xa_load(&a->segments, le32_to_cpu(msg->id));
	if (!s || !(s->state & SCI_SEGMENT_STATE_EXPORTED))
		return ERR_PTR(-ENOENT);
	/* clients connect to a member as SCI_KIND_GROUP, or directly if it is UNICAST */
	if (msg->kind == SCI_KIND_GROUP ?
	    !(s->flags & SCI_SEGMENT_BROADCAST) :
	    (s->flags & (SCI_SEGMENT_BROADCAST | SCI_SEGMENT_UNICAST)) ==
	    SCI_SEGMENT_BROADCAST)
		return ERR_PTR(-ENOENT);
	access = sci_owner_permits(&s->owner, who);
	if (!(access & 4))
		return ERR_PTR(-EACCES);
	if (s->importers >= READ_ONCE(max_importers))
		return ERR_PTR(-EUSERS);
	re->access = access;
	re->length = cpu_to_le64(s->length);
	re->base = cpu_to_le64(s->base);
	if (msg->kind == SCI_KIND_GROUP)
		re->group = cpu_to_le64(s->group->serial);
	return &s->exporter;
}

static void segment_importer_count(struct sci_server *server,
				   enum sci_ev_type type, const char *what)
{
	struct sci_segment *s = segment_of(server->exporter);
	u32 node = server->conn.peer->node;

	lockdep_assert_held(&s->obj.adapter->lock);
	/* an importer of the group is not an importer of this member alone */
	if (server->kind == SCI_KIND_SEGMENT)
		s->importers += type == SCI_EV_CONNECT ? 1 : -1;
	trace_sci_importer_state(s->obj.adapter, node, s->id, what);
	sci_object_event(&s->obj, type, node, 0, 0);
}

static void segment_joined(struct sci_server *server)
{
	segment_importer_count(server, SCI_EV_CONNECT, "connect");
}

static void segment_left(struct sci_server *server, bool died)
{
	if (died)
		segment_importer_count(server, SCI_EV_LOST, "lost");
	else
		segment_importer_count(server, SCI_EV_DISCONNECT, "disconnect");
}

static void segment_handle_server_end(struct sci_exporter *e, bool cut)
{
	struct sci_segment *s = segment_of(e);

	lockdep_assert_held(&s->obj.adapter->lock);
	segment_hide_unused(s);
	if (!cut)
		return;
	WRITE_ONCE(s->cutting, s->cutting - 1);
	if (!s->cutting)
		wake_up_all(&s->obj.wait);
}

const struct sci_server_ops sci_segment_server_ops = {
	.accept = segment_accept,
	.joined = segment_joined,
	.left = segment_left,
	.gone = segment_handle_server_end,
};
