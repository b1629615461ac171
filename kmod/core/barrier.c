// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/*
 * The page of an adapter that users may map for store barriers without a system call.
 * Removal of the adapter revokes the page, so each map has a private page in reserve.
 * import.h explains revoke semaphores.
 */

#include <linux/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "core.h"
#include "object.h"

#define ONES	0xff	/* value of each byte read from a missing adapter */

/**
 * struct sci_barrier_map - a map of the barrier page
 * @link: entry in adapter->barrier_maps
 * @adapter: reference to the adapter
 * @revoke: see import.h
 * @revoked: the map shows @private_page; written under adapter->lock and @revoke
 * @private_page: the page that replaces the barrier page in a revoked map
 * @file: the file that backs the map
 */
struct sci_barrier_map {
	struct list_head link;
	struct sci_adapter *adapter;
	struct rw_semaphore revoke;
	bool revoked;
	struct page *private_page;
	struct file *file;
};

static vm_fault_t barrier_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct sci_barrier_map *map = vma->vm_file->private_data;
	unsigned long addr = vmf->address & PAGE_MASK;
	vm_fault_t ret;

	down_read(&map->revoke);
	/* the private page is cached memory: see import.c */
	if (map->revoked)
		ret = vmf_insert_pfn_prot(vma, addr,
					  page_to_pfn(map->private_page),
					  vm_get_page_prot(vma->vm_flags));
	else
		ret = vmf_insert_pfn(vma, addr, map->adapter->desc.barrier_pfn);
	up_read(&map->revoke);
	return ret;
}

static const struct vm_operations_struct barrier_vm_ops = {
	.fault = barrier_fault,
	.mprotect = sci_vma_mprotect,
};

void sci_barrier_revoke(struct sci_adapter *a)
{
	struct sci_barrier_map *map;

	lockdep_assert_held(&a->lock);
	list_for_each_entry(map, &a->barrier_maps, link) {
		down_write(&map->revoke);
		map->revoked = true;
		up_write(&map->revoke);
		unmap_mapping_range(map->file->f_mapping, 0, 0, 1);
	}
}

static void barrier_map_free(struct sci_barrier_map *map)
{
	if (map->private_page)
		__free_page(map->private_page);
	sci_adapter_put(map->adapter);
	kfree(map);
}

static int barrier_map_release(struct inode *inode, struct file *file)
{
	struct sci_barrier_map *map = file->private_data;

	mutex_lock(&map->adapter->lock);
	list_del(&map->link);
	mutex_unlock(&map->adapter->lock);
	barrier_map_free(map);
	return 0;
}

static const struct file_operations map_fops = {
	.owner = THIS_MODULE,
	.release = barrier_map_release,
};

static struct sci_barrier_map *barrier_map_alloc(struct sci_adapter *a)
{
	struct sci_barrier_map *map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);

	if (!map)
		return NULL;
	init_rwsem(&map->revoke);
	map->adapter = a;
	sci_adapter_get(a);
	map->private_page = alloc_page(GFP_KERNEL_ACCOUNT);
	if (!map->private_page) {
		barrier_map_free(map);
		return NULL;
	}
	memset(page_address(map->private_page), ONES, PAGE_SIZE);
	return map;
}

int sci_barrier_mmap(struct sci_adapter *a, struct vm_area_struct *vma)
{
	struct sci_barrier_map *map;
	int ret;

	if (vma_pages(vma) != 1)
		return -EINVAL;
	if (!(a->desc.caps & SCI_CAP_BARRIER))
		return -EOPNOTSUPP;
	map = barrier_map_alloc(a);
	if (!map)
		return -ENOMEM;
	ret = sci_vma_set_backing(vma, "[sci-barrier]", &map_fops, map);
	if (ret) {
		barrier_map_free(map);
		return ret;
	}
	map->file = vma->vm_file;
	/* removal of the adapter waits until this function has returned */
	mutex_lock(&a->lock);
	list_add_tail(&map->link, &a->barrier_maps);
	mutex_unlock(&a->lock);
	vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	vma->vm_ops = &barrier_vm_ops;
	return 0;
}
