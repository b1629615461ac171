// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* The drivers' side of adapters: registration, removal, and reports. */

#include <linux/mm.h>
#include <linux/module.h>

#include "connection.h"
#include "core.h"
#include "import.h"
#include "intr.h"
#include "lent.h"
#include "object.h"
#include "peer.h"
#include "trace.h"

static dev_t sci_devt __ro_after_init;

static struct class sci_class = {
	.name = "sci",
	.dev_groups = sci_adapter_groups,
};

/* ---- life ---- */

static int adapter_check(struct sci_adapter *a)
{
	const struct sci_adapter_ops *ops = a->desc.ops;

	if (!ops || !ops->send || !ops->expose || !ops->hide || !ops->map ||
	    !ops->unmap || !ops->mapping_pfn || !a->desc.type)
		return -EINVAL;
	if (!a->desc.node || a->desc.node > SCI_IOC_NODE_MAX ||
	    a->desc.node % SCI_IOC_NODE_STEP)
		return -EINVAL;
	if (!a->desc.max_segment || a->desc.att_page_size < PAGE_SIZE ||
	    !is_power_of_2(a->desc.att_page_size))
		return -EINVAL;
	if (!(a->desc.caps & SCI_CAP_MEMORY) != !!ops->flush ||
	    !(a->desc.caps & SCI_CAP_DMA) != !ops->dma_copy ||
	    (a->desc.caps & SCI_CAP_CHECKED && !ops->cache) ||
	    !(a->desc.caps & SCI_CAP_BARRIER) != !a->desc.barrier_pfn ||
	    !(a->desc.caps & SCI_CAP_BROADCAST) != !a->desc.domain)
		return -EINVAL;
	if (!ops->alloc != !ops->free ||
	    (ops->alloc && a->desc.caps & SCI_CAP_REGISTER))
		return -EINVAL;
	return 0;
}

static int adapter_name(struct sci_adapter *a)
{
	int ret = sci_adapter_number(a);

	if (ret)
		return ret;
	a->dev.devt = MKDEV(MAJOR(sci_devt), a->index);
	return dev_set_name(&a->dev, "sci%d", a->index);
}

static void adapter_wake_all(struct sci_adapter *a)
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
	a->dev.class = &sci_class;
	a->peer_ops = &sci_proto_peer_ops;
	/* not ordered: works of different nodes need not wait for each other */
	a->wq = alloc_workqueue("%s", WQ_UNBOUND, 0, dev_name(&a->dev));
	if (!a->wq)
		return -ENOMEM;
	ret = sci_object_fs_pin();
	if (ret)
		goto err_wq;
	sci_debugfs_add(a);
	cdev_init(&a->cdev, &sci_chardev_fops);
	a->cdev.owner = THIS_MODULE;
	ret = cdev_device_add(&a->cdev, &a->dev);
	if (ret)
		goto err_debugfs;
	trace_sci_adapter_state(a, "register");
	return 0;

err_debugfs:
	sci_debugfs_remove(a);
	sci_object_fs_unpin();
err_wq:
	destroy_workqueue(a->wq);
	return ret;
}
EXPORT_SYMBOL_GPL(sci_adapter_register);

static void adapter_kill_objects(struct sci_adapter *a)
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
	/* revoke the barrier page last: until then users see the errors of killed objects */
	sci_barrier_revoke(a);
	mutex_unlock(&a->lock);
}

void sci_adapter_unregister(struct sci_adapter *a)
{
	/* Store barriers are refused from now on: users must see an error. */
	sci_adapter_error(a, false);
	WRITE_ONCE(a->dead, true);
	sci_adapter_set_link(a, false);
	adapter_wake_all(a); /* set_link() wakes no waiter if the link was down */
	/* after this, no system call is inside the adapter, and none enters */
	synchronize_srcu(&a->srcu);
	adapter_kill_objects(a);
	flush_work(&a->retire_work);
	sci_lent_revoke(a);
	sci_peers_shutdown(a);
	sci_connections_drop(a);
	cdev_device_del(&a->cdev, &a->dev);
	sci_debugfs_remove(a);
	sci_object_fs_unpin();
	destroy_workqueue(a->wq);
	trace_sci_adapter_state(a, "unregister");
}
EXPORT_SYMBOL_GPL(sci_adapter_unregister);

/* ---- reports of drivers ---- */

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

void sci_adapter_lost(struct sci_adapter *a, u32 node)
{
	int idx;

	if (sci_adapter_enter(a, &idx))
		return;
	sci_peer_lost(a, node);
	sci_adapter_exit(a, idx);
}
EXPORT_SYMBOL_GPL(sci_adapter_lost);

void sci_adapter_interrupt(struct sci_adapter *a, u32 node, u32 handle)
{
	int idx;

	if (sci_adapter_enter(a, &idx))
		return;
	sci_intr_triggered(a, node, handle);
	sci_adapter_exit(a, idx);
}
EXPORT_SYMBOL_GPL(sci_adapter_interrupt);

static void adapter_link_account(struct sci_adapter *a, bool up)
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
	/* test under the lock: unregister() marks the adapter dead, then takes the link down */
	up = up && !sci_adapter_is_dead(a);
	if (up == a->link_up) {
		mutex_unlock(&a->lock);
		return;
	}
	adapter_link_account(a, up);
	trace_sci_adapter_state(a, up ? "link up" : "link down");
	if (!up) {
		sci_count(a, SCI_COUNT_LINK_DOWNS, 1);
		sci_adapter_error(a, false);
	}
	sci_imports_tell(a, up ? SCI_EV_LINK_UP : SCI_EV_LINK_DOWN);
	mutex_unlock(&a->lock);
	adapter_wake_all(a);
	if (up)
		sci_peers_kick(a);
	kobject_uevent(&a->dev.kobj, KOBJ_CHANGE);
}
EXPORT_SYMBOL_GPL(sci_adapter_set_link);

/* ---- module ---- */

static int __init sci_init(void)
{
	int ret;

	BUILD_BUG_ON(sizeof(struct sci_status_page) > PAGE_SIZE);
	BUILD_BUG_ON(sizeof(struct sci_status_page) != 2 * 64);
	/* the SCI_MMAP_ offsets must be different pages with any page size */
	BUILD_BUG_ON(SCI_MMAP_STEP % PAGE_SIZE);
	sci_object_set_ioctl(sci_ioctl);
	ret = alloc_chrdev_region(&sci_devt, 0, SCI_ADAPTERS_MAX, "sci");
	if (ret)
		return ret;
	ret = class_register(&sci_class);
	if (ret)
		goto err_chrdev;
	sci_debugfs_init();
	return 0;

err_chrdev:
	unregister_chrdev_region(sci_devt, SCI_ADAPTERS_MAX);
	return ret;
}

static void __exit sci_exit(void)
{
	sci_debugfs_exit();
	class_unregister(&sci_class);
	unregister_chrdev_region(sci_devt, SCI_ADAPTERS_MAX);
}

module_init(sci_init);
module_exit(sci_exit);
MODULE_AUTHOR("The libsci authors");
MODULE_DESCRIPTION("Scalable Coherent Interface: segments, imports, interrupts");
MODULE_LICENSE("GPL");
