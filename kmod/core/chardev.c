// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* /dev/sciN: open, and the pages of an adapter that users map. */

#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "compat.h"
#include "core.h"
#include "object.h"

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

/* Map the status page. The page stays after the adapter's removal, so the map is never revoked. */
static int status_mmap(struct sci_adapter *a, struct vm_area_struct *vma)
{
	struct file *file;

	if (vma_pages(vma) != 1)
		return -EINVAL;
	if (vma->vm_flags & VM_WRITE)
		return -EACCES;
	file = anon_inode_getfile("[sci-status]", &status_fops, a->status_page,
				  O_RDWR);
	if (IS_ERR(file))
		return PTR_ERR(file);
	get_page(a->status_page);
	vma_set_file(vma, file);
	fput(file);	/* the area has its own reference */
	vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYWRITE);
	vma->vm_ops = &status_vm_ops;
	return 0;
}

static int adapter_mmap(struct sci_object *obj, struct vm_area_struct *vma)
{
	if (vma->vm_pgoff == SCI_MMAP_BARRIER >> PAGE_SHIFT)
		return sci_barrier_mmap(obj->adapter, vma);
	if (vma->vm_pgoff == SCI_MMAP_STATUS >> PAGE_SHIFT)
		return status_mmap(obj->adapter, vma);
	return -EINVAL;
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

static void adapter_show(struct sci_object *obj, struct seq_file *m)
{
	seq_printf(m, "sci-node:\t%u\n", obj->adapter->desc.node);
}

static const struct sci_object_ops adapter_object_ops = {
	.name = "[sci]",
	.kill = adapter_kill,
	.free = adapter_free,
	.show = adapter_show,
	.mmap = adapter_mmap,
	.read = adapter_read,
};

static int adapter_open(struct inode *inode, struct file *file)
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
	if (!try_module_get(a->desc.ops->owner)) {
		ret = -ENODEV;
		goto err_exit;
	}
	sci_object_init(obj, SCI_OBJECT_ADAPTER, &adapter_object_ops, a);
	sci_object_attach(obj, file);
	atomic_inc(&a->users);
	nonseekable_open(inode, file);
	/* From here on the file is that of an object, which owns the reference to the module. */
	file->f_op = &sci_object_fops;
	sci_adapter_exit(a, idx);
	return 0;

err_exit:
	sci_adapter_exit(a, idx);
err_free:
	kfree(obj);
	return ret;
}

const struct file_operations sci_chardev_fops = {
	.owner = THIS_MODULE,
	.open = adapter_open,
};
