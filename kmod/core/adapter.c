// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Adapters: registration, removal, /dev/sciN, status page, link. */

#include <linux/idr.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "compat.h"
#include "connection.h"
#include "core.h"
#include "group.h"
#include "import.h"
#include "intr.h"
#include "object.h"
#include "peer.h"
#include "segment.h"
#include "trace.h"

#define ADAPTERS_MAX	256

static DEFINE_IDA(sci_ida);
static dev_t sci_devt __ro_after_init;

int sci_adapter_enter(struct sci_adapter *a, int *idx)
{
	*idx = srcu_read_lock(&a->srcu);
	/* sparse: who gets in leaves by sci_adapter_exit() */
	__release(&a->srcu);
	if (!sci_adapter_is_dead(a))
		return 0;
	sci_adapter_exit(a, *idx);
	return -ENODEV;
}

void sci_adapter_exit(struct sci_adapter *a, int idx)
{
	__acquire(&a->srcu);
	srcu_read_unlock(&a->srcu, idx);
}

/* ---- /dev/sciN ---- */

static int status_release(struct inode *inode, struct file *file)
{
	put_page(file->private_data);
	return 0;
}

static const struct file_operations status_fops = {
	.owner = THIS_MODULE,
	.release = status_release,
};

static vm_fault_t status_fault(struct vm_fault *vmf)
{
	if (vmf->pgoff)
		return VM_FAULT_SIGBUS;
	vmf->page = vmf->vma->vm_file->private_data;
	get_page(vmf->page);
	return 0;
}

static const struct vm_operations_struct status_vm_ops = {
	.fault = status_fault,
};

static int adapter_mmap(struct sci_object *obj, struct vm_area_struct *vma)
{
	struct page *page = obj->adapter->status_page;
	int ret;

	if (vma->vm_pgoff == SCI_MMAP_BARRIER >> PAGE_SHIFT)
		return sci_barrier_mmap(obj->adapter, vma);
	if (vma->vm_pgoff != SCI_MMAP_STATUS >> PAGE_SHIFT ||
	    vma_pages(vma) != 1)
		return -EINVAL;
	if (vma->vm_flags & VM_WRITE)
		return -EACCES;
	get_page(page);
	ret = sci_vma_set_backing(vma, "[sci-status]", &status_fops, page);
	if (ret) {
		put_page(page);
		return ret;
	}
	vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYWRITE);
	vma->vm_ops = &status_vm_ops;
	return 0;
}

static ssize_t adapter_read(struct file *file, char __user *buf, size_t len)
{
	return -EINVAL;
}

static void adapter_kill(struct sci_object *obj)
{
	atomic_dec(&obj->adapter->users);
}

static void adapter_free(struct sci_object *obj)
{
	sci_object_fini(obj);
	kfree(obj);
}

static const struct sci_object_ops adapter_object_ops = {
	.name = "[sci]",
	.kill = adapter_kill,
	.free = adapter_free,
	.mmap = adapter_mmap,
	.read = adapter_read,
};

int sci_adapter_open(struct inode *inode, struct file *file)
{
	struct sci_adapter *a = container_of(inode->i_cdev, struct sci_adapter,
					     cdev);
	struct sci_object *obj;
	int idx, ret;

	obj = kzalloc(sizeof(*obj), GFP_KERNEL_ACCOUNT);
	if (!obj)
		return -ENOMEM;
	ret = sci_adapter_enter(a, &idx);
	if (ret)
		goto err_free;
	if (!try_module_get(a->ops->owner)) {
		ret = -ENODEV;
		goto err_exit;
	}
	sci_object_init(obj, SCI_OBJECT_ADAPTER, &adapter_object_ops, a);
	sci_object_attach(obj, file);
	atomic_inc(&a->users);
	nonseekable_open(inode, file);
	sci_adapter_exit(a, idx);
	return 0;

err_exit:
	sci_adapter_exit(a, idx);
err_free:
	kfree(obj);
	return ret;
}

static struct class sci_class = {
	.name = "sci",
	.dev_groups = sci_adapter_groups,
};

/* ---- life ---- */

static void sci_adapter_release(struct device *dev)
{
	struct sci_adapter *a = container_of(dev, struct sci_adapter, dev);

	if (a->index >= 0)
		ida_free(&sci_ida, a->index);
	if (a->status_page)
		put_page(a->status_page);
	mutex_destroy(&a->lock);
	cleanup_srcu_struct(&a->srcu);
	kfree(a);
}

static void adapter_init(struct sci_adapter *a)
{
	mutex_init(&a->lock);
	xa_init_flags(&a->segments, XA_FLAGS_ALLOC);
	xa_init_flags(&a->handles, XA_FLAGS_ALLOC1);
	xa_init_flags(&a->intrs, XA_FLAGS_ALLOC);
	xa_init_flags(&a->data_intrs, XA_FLAGS_ALLOC);
	xa_init(&a->peers);
	a->peer_ops = &sci_proto_peer_ops;
	INIT_LIST_HEAD(&a->objects);
	INIT_LIST_HEAD(&a->mappings);
	INIT_LIST_HEAD(&a->barrier_maps);
	INIT_LIST_HEAD(&a->probes);
	INIT_LIST_HEAD(&a->domain_link);
	init_waitqueue_head(&a->wait);
	a->link_changed = ktime_get();
	while (!a->generation)
		a->generation = get_random_u32();
}

struct sci_adapter *sci_adapter_alloc(struct device *parent)
{
	struct sci_adapter *a = kzalloc(sizeof(*a), GFP_KERNEL);

	if (!a)
		return NULL;
	if (init_srcu_struct(&a->srcu)) {
		kfree(a);
		return NULL;
	}
	a->index = -1;
	device_initialize(&a->dev);
	device_set_pm_not_required(&a->dev);
	a->dev.parent = parent;
	a->dev.class = &sci_class;
	a->dev.release = sci_adapter_release;
	dev_set_drvdata(&a->dev, a);
	adapter_init(a);
	a->status_page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	if (!a->status_page) {
		sci_adapter_put(a);
		return NULL;
	}
	a->status = page_address(a->status_page);
	a->status->down = 1;
	return a;
}
EXPORT_SYMBOL_GPL(sci_adapter_alloc);

void sci_adapter_get(struct sci_adapter *a)
{
	get_device(&a->dev);
}
EXPORT_SYMBOL_GPL(sci_adapter_get);

void sci_adapter_put(struct sci_adapter *a)
{
	put_device(&a->dev);
}
EXPORT_SYMBOL_GPL(sci_adapter_put);

static int adapter_check(struct sci_adapter *a)
{
	const struct sci_adapter_ops *ops = a->ops;

	if (!ops || !ops->send || !ops->expose || !ops->hide || !ops->map ||
	    !ops->unmap || !ops->mapping_pfn || !a->type)
		return -EINVAL;
	if (!a->node || a->node > SCI_IOC_NODE_MAX ||
	    a->node % SCI_IOC_NODE_STEP)
		return -EINVAL;
	if (!a->max_segment || a->att_page_size < PAGE_SIZE ||
	    !is_power_of_2(a->att_page_size))
		return -EINVAL;
	if (!(a->caps & SCI_CAP_MEMORY) != !!ops->flush ||
	    !(a->caps & SCI_CAP_DMA) != !ops->dma_copy ||
	    !(a->caps & SCI_CAP_BARRIER) != !a->barrier_pfn ||
	    !(a->caps & SCI_CAP_BROADCAST) != !a->domain)
		return -EINVAL;
	return 0;
}

static int adapter_name(struct sci_adapter *a)
{
	int index = ida_alloc_max(&sci_ida, ADAPTERS_MAX - 1, GFP_KERNEL);

	if (index < 0)
		return index;
	a->index = index;
	a->dev.devt = MKDEV(MAJOR(sci_devt), index);
	return dev_set_name(&a->dev, "sci%d", index);
}

static void wake_everyone(struct sci_adapter *a)
{
	struct sci_object *obj;

	mutex_lock(&a->lock);
	list_for_each_entry(obj, &a->objects, link)
		wake_up_all(&obj->wait);
	mutex_unlock(&a->lock);
	wake_up_all(&a->wait);
}

int sci_adapter_register(struct sci_adapter *a)
{
	int ret = adapter_check(a);

	if (ret)
		return ret;
	ret = adapter_name(a);
	if (ret)
		return ret;
	a->wq = alloc_ordered_workqueue("%s", 0, dev_name(&a->dev));
	if (!a->wq)
		return -ENOMEM;
	sci_debugfs_add(a);
	/* told to user space when all of it is there */
	dev_set_uevent_suppress(&a->dev, true);
	ret = device_add(&a->dev);
	if (ret)
		goto err_wq;
	ret = -ENOMEM;
	a->segments_kobj = kobject_create_and_add("segments", &a->dev.kobj);
	if (!a->segments_kobj)
		goto err_device;
	a->peers_kobj = kobject_create_and_add("peers", &a->dev.kobj);
	if (!a->peers_kobj)
		goto err_segments;
	sci_domain_add(a);
	cdev_init(&a->cdev, &sci_adapter_fops);
	a->cdev.owner = THIS_MODULE;
	cdev_set_parent(&a->cdev, &a->dev.kobj);
	ret = cdev_add(&a->cdev, a->dev.devt, 1);
	if (ret)
		goto err_domain;
	dev_set_uevent_suppress(&a->dev, false);
	kobject_uevent(&a->dev.kobj, KOBJ_ADD);
	trace_sci_adapter_state(a, "register");
	return 0;

err_domain:
	sci_domain_remove(a);
	kobject_put(a->peers_kobj);
err_segments:
	kobject_put(a->segments_kobj);
err_device:
	device_del(&a->dev);
err_wq:
	sci_debugfs_remove(a);
	destroy_workqueue(a->wq);
	return ret;
}
EXPORT_SYMBOL_GPL(sci_adapter_register);

static void kill_objects(struct sci_adapter *a)
{
	struct sci_object *obj;

	mutex_lock(&a->lock);
	while (!list_empty(&a->objects)) {
		obj = list_first_entry(&a->objects, struct sci_object, link);
		list_del_init(&obj->link);
		if (obj->ops->kill)
			obj->ops->kill(obj);
		wake_up_all(&obj->wait);
	}
	/* last: what it could still have said has been counted */
	sci_barrier_revoke(a);
	mutex_unlock(&a->lock);
}

void sci_adapter_unregister(struct sci_adapter *a)
{
	sci_domain_remove(a);
	cdev_del(&a->cdev);
	/* a store barrier that is turned away was none: it must show */
	sci_adapter_error(a, false);
	WRITE_ONCE(a->dead, true);
	sci_adapter_set_link(a, false);
	wake_everyone(a);	/* the link may have been down */
	/* from here on no system call is inside, and none gets in */
	synchronize_srcu(&a->srcu);
	kill_objects(a);
	sci_peers_shutdown(a);
	sci_connections_drop(a);
	kobject_put(a->peers_kobj);
	kobject_put(a->segments_kobj);
	device_del(&a->dev);
	sci_debugfs_remove(a);
	destroy_workqueue(a->wq);
	trace_sci_adapter_state(a, "unregister");
}
EXPORT_SYMBOL_GPL(sci_adapter_unregister);

/* ---- what drivers report ---- */

void sci_adapter_receive(struct sci_adapter *a, u32 node, const void *packet)
{
	int idx;

	if (sci_adapter_enter(a, &idx))
		return;
	sci_peer_receive(a, node, packet);
	sci_adapter_exit(a, idx);
}
EXPORT_SYMBOL_GPL(sci_adapter_receive);

void sci_adapter_returned(struct sci_adapter *a, u32 node)
{
	int idx;

	if (sci_adapter_enter(a, &idx))
		return;
	sci_peer_returned(a, node);
	sci_adapter_exit(a, idx);
}
EXPORT_SYMBOL_GPL(sci_adapter_returned);

void sci_adapter_interrupt(struct sci_adapter *a, u32 node, u32 handle)
{
	int idx;

	if (sci_adapter_enter(a, &idx))
		return;
	sci_intr_triggered(a, node, handle);
	sci_adapter_exit(a, idx);
}
EXPORT_SYMBOL_GPL(sci_adapter_interrupt);

void sci_adapter_error(struct sci_adapter *a, bool fatal)
{
	/* shared with nobody but readers, but several CPUs may report */
	atomic_inc((atomic_t *)&a->status->errors);
	if (fatal)
		atomic_inc((atomic_t *)&a->status->fatal);
	trace_sci_error(a, fatal);
}
EXPORT_SYMBOL_GPL(sci_adapter_error);

void sci_adapter_hw_error(struct sci_adapter *a)
{
	u32 errors = le32_to_cpu(READ_ONCE(a->status->hw_errors));
	u32 fatal = le32_to_cpu(READ_ONCE(a->status->hw_fatal));

	if (errors != a->hw_errors || fatal != a->hw_fatal)
		trace_sci_error(a, fatal != a->hw_fatal);
	a->hw_errors = errors;
	a->hw_fatal = fatal;
}
EXPORT_SYMBOL_GPL(sci_adapter_hw_error);

static void link_account(struct sci_adapter *a, bool up)
{
	ktime_t now = ktime_get();

	if (up)
		a->link_down_ns += ktime_to_ns(ktime_sub(now, a->link_changed));
	a->link_changed = now;
	WRITE_ONCE(a->link_up, up);
	WRITE_ONCE(a->status->down, !up);
}

void sci_adapter_set_link(struct sci_adapter *a, bool up)
{
	mutex_lock(&a->lock);
	/* under the lock: unregister() takes the link down after saying so */
	up = up && !sci_adapter_is_dead(a);
	if (up == a->link_up) {
		mutex_unlock(&a->lock);
		return;
	}
	link_account(a, up);
	trace_sci_adapter_state(a, up ? "link up" : "link down");
	if (!up) {
		sci_count(a, SCI_COUNT_LINK_DOWNS, 1);
		sci_adapter_error(a, false);
	}
	sci_imports_tell(a, up ? SCI_EV_LINK_UP : SCI_EV_LINK_DOWN);
	mutex_unlock(&a->lock);
	wake_everyone(a);
	if (up)
		sci_peers_kick(a);
	kobject_uevent(&a->dev.kobj, KOBJ_CHANGE);
}
EXPORT_SYMBOL_GPL(sci_adapter_set_link);

u64 sci_adapter_link_up_ms(struct sci_adapter *a)
{
	u64 ms = 0;

	mutex_lock(&a->lock);
	if (a->link_up)
		ms = ktime_ms_delta(ktime_get(), a->link_changed);
	mutex_unlock(&a->lock);
	return ms;
}

u64 sci_adapter_link_down_ms(struct sci_adapter *a)
{
	u64 ns;

	mutex_lock(&a->lock);
	ns = a->link_down_ns;
	if (!a->link_up)
		ns += ktime_to_ns(ktime_sub(ktime_get(), a->link_changed));
	mutex_unlock(&a->lock);
	return div_u64(ns, NSEC_PER_MSEC);
}

/* ---- module ---- */

static int __init sci_init(void)
{
	int ret;

	BUILD_BUG_ON(sizeof(struct sci_status_page) > PAGE_SIZE);
	BUILD_BUG_ON(sizeof(struct sci_status_page) != 2 * 64);
	/* their page offsets must differ, whatever the page size is */
	BUILD_BUG_ON(SCI_MMAP_STEP % PAGE_SIZE);
	ret = sci_object_fs_init();
	if (ret)
		return ret;
	ret = alloc_chrdev_region(&sci_devt, 0, ADAPTERS_MAX, "sci");
	if (ret)
		goto err_fs;
	ret = class_register(&sci_class);
	if (ret)
		goto err_chrdev;
	sci_debugfs_init();
	return 0;

err_chrdev:
	unregister_chrdev_region(sci_devt, ADAPTERS_MAX);
err_fs:
	sci_object_fs_exit();
	return ret;
}

static void __exit sci_exit(void)
{
	sci_debugfs_exit();
	class_unregister(&sci_class);
	unregister_chrdev_region(sci_devt, ADAPTERS_MAX);
	sci_object_fs_exit();
	ida_destroy(&sci_ida);
}

module_init(sci_init);
module_exit(sci_exit);
MODULE_AUTHOR("The libsci authors");
MODULE_DESCRIPTION("Scalable Coherent Interface: segments, imports, interrupts");
MODULE_LICENSE("GPL");
