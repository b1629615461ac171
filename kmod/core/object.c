// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Files of objects: their file system, events, poll and release. */

#include <linux/file.h>
#include <linux/memcontrol.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/poll.h>
#include <linux/pseudo_fs.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "core.h"
#include "object.h"
#include "retire.h"

#define SCIOBJ_MAGIC	0x5c1a0b1e
/* Limit of unread events of an object. Later events become one SCI_EV_OVERFLOW. */
#define EVENTS_MAX	4096

struct sci_event {
	struct list_head link;
	struct sci_ev_record record;
};

static sci_ioctl_fn object_ioctl __ro_after_init;

void __init sci_object_set_ioctl(sci_ioctl_fn ioctl)
{
	object_ioctl = ioctl;
}

/* ---- file system ---- */

static struct vfsmount *sciobj_mnt;
static int sciobj_users;

static int sciobj_init_fs_context(struct fs_context *fc)
{
	return init_pseudo(fc, SCIOBJ_MAGIC) ? 0 : -ENOMEM;
}

/*
 * Each adapter pins a mount of this file system, and each file refers to the mount: so the
 * module stays until the last file has been freed.
 */
static struct file_system_type sciobj_fs = {
	.owner = THIS_MODULE,
	.name = "sciobj",
	.init_fs_context = sciobj_init_fs_context,
	.kill_sb = kill_anon_super,
};

int sci_object_fs_pin(void)
{
	return simple_pin_fs(&sciobj_fs, &sciobj_mnt, &sciobj_users);
}

void sci_object_fs_unpin(void)
{
	simple_release_fs(&sciobj_mnt, &sciobj_users);
}

/* ---- objects ---- */

void sci_object_init(struct sci_object *obj, enum sci_object_kind kind,
		     const struct sci_object_ops *ops, struct sci_adapter *a)
{
	obj->kind = kind;
	obj->ops = ops;
	obj->adapter = a;
	sci_adapter_get(a);
	INIT_LIST_HEAD(&obj->link);
	obj->memcg = get_mem_cgroup_from_mm(current->mm);
	init_waitqueue_head(&obj->wait);
	spin_lock_init(&obj->ev_lock);
	INIT_LIST_HEAD(&obj->events);
}

void sci_object_fini(struct sci_object *obj)
{
	struct sci_event *ev, *next;

	list_for_each_entry_safe(ev, next, &obj->events, link)
		kfree(ev);
	mem_cgroup_put(obj->memcg);
	sci_adapter_put(obj->adapter);
}

/*
 * Make a file with an inode, and hence an address space, of its own: revoking the maps of one
 * object must not affect those of another.
 */
struct file *sci_file_create(const char *name,
			     const struct file_operations *fops)
{
	struct inode *inode;
	struct file *file;

	if (!try_module_get(THIS_MODULE))
		return ERR_PTR(-ENODEV);
	inode = alloc_anon_inode(sciobj_mnt->mnt_sb);
	if (IS_ERR(inode)) {
		file = ERR_CAST(inode);
		goto err_module;
	}
	file = alloc_file_pseudo(inode, sciobj_mnt, name, O_RDWR, fops);
	if (IS_ERR(file)) {
		iput(inode);
		goto err_module;
	}
	file->f_mode &= ~(FMODE_LSEEK | FMODE_PREAD | FMODE_PWRITE);
	return file;

err_module:
	module_put(THIS_MODULE);
	return file;
}

int sci_object_file(struct sci_object *obj, struct sci_new_file *nf)
{
	struct sci_adapter *a = obj->adapter;
	struct file *file;
	int fd;

	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	/* A driver's module stays while its objects have files. */
	if (!try_module_get(a->desc.ops->owner)) {
		put_unused_fd(fd);
		return -ENODEV;
	}
	file = sci_file_create(obj->ops->name, &sci_object_fops);
	if (IS_ERR(file)) {
		module_put(a->desc.ops->owner);
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	sci_object_attach(obj, file);
	nf->fd = fd;
	nf->file = file;
	return 0;
}

void sci_object_attach(struct sci_object *obj, struct file *file)
{
	struct sci_adapter *a = obj->adapter;

	file->private_data = obj;
	mutex_lock(&a->lock);
	list_add_tail(&obj->link, &a->objects);
	mutex_unlock(&a->lock);
}

struct sci_object *sci_object_of(struct file *file, enum sci_object_kind kind)
{
	struct sci_object *obj;

	if (file->f_op != &sci_object_fops)
		return NULL;
	obj = file->private_data;
	return obj->kind == kind ? obj : NULL;
}

/*
 * Handle the close of a descriptor: note whether the process exits. The last close counts. The
 * file itself may be released much later, by another process or a kernel thread.
 */
static int sci_object_flush(struct file *file, fl_owner_t id)
{
	struct sci_object *obj = file->private_data;

	WRITE_ONCE(obj->died, current->flags & PF_EXITING);
	return 0;
}

static int sci_object_release(struct inode *inode, struct file *file)
{
	struct sci_object *obj = file->private_data;
	struct sci_adapter *a = obj->adapter;
	struct module *owner = a->desc.ops->owner;
	unsigned int retired;

	mutex_lock(&a->lock);
	retired = sci_retire_count(a);
	/* an object in no list was killed when its adapter was removed */
	if (!list_empty(&obj->link)) {
		list_del_init(&obj->link);
		if (obj->ops->kill)
			obj->ops->kill(obj);
	}
	retired -= sci_retire_count(a);
	mutex_unlock(&a->lock);
	/* close() returns after the adapter has taken back the object's mappings and memory */
	if (retired)
		sci_retire_flush(a);
	obj->ops->free(obj);
	module_put(owner);
	return 0;
}

/* ---- events ---- */

void sci_object_wake(struct sci_object *obj)
{
	wake_up_poll(&obj->wait, EPOLLIN | EPOLLRDNORM);
}

/*
 * Allocate an event, and charge it to the reader, not to the process that causes the event.
 * Without memory return NULL, and do not invoke the OOM killer.
 */
static struct sci_event *object_event_alloc(struct sci_object *obj)
{
	struct mem_cgroup *old = set_active_memcg(obj->memcg);
	struct sci_event *ev;

	ev = kmalloc(sizeof(*ev), GFP_KERNEL_ACCOUNT | __GFP_NOWARN |
			    __GFP_RETRY_MAYFAIL);
	set_active_memcg(old);
	return ev;
}

void sci_object_event(struct sci_object *obj, enum sci_ev_type type, u32 node,
		      int status, u64 cookie)
{
	struct sci_event *ev = object_event_alloc(obj);

	spin_lock(&obj->ev_lock);
	if (!ev || obj->overflow || obj->n_events >= EVENTS_MAX) {
		obj->overflow = true;
		kfree(ev);
	} else {
		ev->record = (struct sci_ev_record){
			.type = type, .node = node, .status = status,
			.cookie = cookie,
		};
		list_add_tail(&ev->link, &obj->events);
		obj->n_events++;
	}
	spin_unlock(&obj->ev_lock);
	sci_object_wake(obj);
}

/*
 * Take the next event. Return NULL if there is none; then *@overflow is set if events were
 * dropped. The caller frees the event or puts it back.
 */
static struct sci_event *object_next_event(struct sci_object *obj,
					   bool *overflow)
{
	struct sci_event *ev;

	spin_lock(&obj->ev_lock);
	ev = list_first_entry_or_null(&obj->events, struct sci_event, link);
	*overflow = !ev && obj->overflow;
	if (ev) {
		list_del(&ev->link);
		obj->n_events--;
	} else {
		obj->overflow = false;
	}
	spin_unlock(&obj->ev_lock);
	return ev;
}

/* Put back an event, or the overflow if @ev is NULL, that the reader could not take. */
static void object_unread_event(struct sci_object *obj, struct sci_event *ev)
{
	spin_lock(&obj->ev_lock);
	if (ev) {
		list_add(&ev->link, &obj->events);
		obj->n_events++;
	} else {
		obj->overflow = true;
	}
	spin_unlock(&obj->ev_lock);
	/* another reader may have found nothing meanwhile */
	sci_object_wake(obj);
}

/* Copy one record to the user. Return its bytes, or 0 if there is none. */
static ssize_t object_read_event(struct sci_object *obj, char __user *buf)
{
	const struct sci_ev_record lost = { .type = SCI_EV_OVERFLOW };
	bool overflow;
	struct sci_event *ev = object_next_event(obj, &overflow);

	if (!ev && !overflow)
		return 0;
	if (copy_to_user(buf, ev ? &ev->record : &lost, sizeof(lost))) {
		object_unread_event(obj, ev);
		return -EFAULT;
	}
	kfree(ev);
	return sizeof(lost);
}

static bool object_is_ready(struct sci_object *obj)
{
	bool ready;

	spin_lock(&obj->ev_lock);
	ready = obj->overflow || !list_empty(&obj->events) ||
		(obj->ops->ready && obj->ops->ready(obj));
	spin_unlock(&obj->ev_lock);
	return ready;
}

/* Copy as many queued records as fit. */
static ssize_t object_read_present(struct sci_object *obj, char __user *buf,
				   size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (len - done >= sizeof(struct sci_ev_record)) {
		n = object_read_event(obj, buf + done);
		if (n <= 0)
			return done ? done : n;
		done += n;
	}
	return done;
}

static ssize_t object_read_events(struct file *file, char __user *buf,
				  size_t len)
{
	struct sci_object *obj = file->private_data;
	ssize_t ret;

	if (len < sizeof(struct sci_ev_record))
		return -EINVAL;
	for (;;) {
		bool dead = sci_adapter_is_dead(obj->adapter);

		ret = object_read_present(obj, buf, len);
		if (ret)
			return ret;
		if (dead)
			return -ENODEV;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		ret = wait_event_interruptible(obj->wait,
					       object_is_ready(obj) ||
					       sci_adapter_is_dead(obj->adapter));
		if (ret)
			return ret;
	}
}

static ssize_t sci_object_read(struct file *file, char __user *buf, size_t len,
			       loff_t *pos)
{
	struct sci_object *obj = file->private_data;

	return obj->ops->read ? obj->ops->read(file, buf, len) :
				object_read_events(file, buf, len);
}

static __poll_t sci_object_poll(struct file *file, poll_table *pt)
{
	struct sci_object *obj = file->private_data;
	__poll_t mask = 0;

	poll_wait(file, &obj->wait, pt);
	if (object_is_ready(obj))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (sci_adapter_is_dead(obj->adapter))
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLERR | EPOLLHUP;
	return mask;
}

static void sci_object_show_fdinfo(struct seq_file *m, struct file *file)
{
	struct sci_object *obj = file->private_data;

	seq_printf(m, "sci-adapter:\t%s\n", dev_name(&obj->adapter->dev));
	seq_printf(m, "sci-events:\t%u\n", READ_ONCE(obj->n_events));
	obj->ops->show(obj, m);
}

static long sci_object_ioctl(struct file *file, unsigned int cmd,
			     unsigned long arg)
{
	return object_ioctl(file, cmd, arg);
}

/* ---- maps ---- */

static int sci_object_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct sci_object *obj = file->private_data;
	int idx, ret;

	if (!obj->ops->mmap)
		return -ENODEV;
	/* VM_SHARED is not set if the descriptor is read-only */
	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_flags & VM_EXEC)
		return -EINVAL;
	vm_flags_clear(vma, VM_MAYEXEC);
	ret = sci_adapter_enter(obj->adapter, &idx);
	if (ret)
		return ret;
	ret = obj->ops->mmap(obj, vma);
	sci_adapter_exit(obj->adapter, idx);
	return ret;
}

int sci_vma_set_backing(struct vm_area_struct *vma, const char *name,
			const struct file_operations *fops, void *priv)
{
	struct file *file = sci_file_create(name, fops);

	if (IS_ERR(file))
		return PTR_ERR(file);
	file->private_data = priv;
	vma_set_file(vma, file);
	fput(file);	/* the area has its own reference */
	return 0;
}

int sci_vma_mprotect(struct vm_area_struct *vma, unsigned long start,
		     unsigned long end, unsigned long flags)
{
	zap_vma_ptes(vma, start, end - start);
	return 0;
}

const struct file_operations sci_object_fops = {
	.owner = THIS_MODULE,
	.read = sci_object_read,
	.poll = sci_object_poll,
	.mmap = sci_object_mmap,
	.unlocked_ioctl = sci_object_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.flush = sci_object_flush,
	.release = sci_object_release,
	.show_fdinfo = sci_object_show_fdinfo,
};
