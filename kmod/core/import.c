// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Remote segments: see import.h. */

#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "compat.h"
#include "core.h"
#include "group.h"
#include "import.h"
#include "retire.h"
#include "trace.h"

/* Pages inserted at a fault: the program probably accesses the next pages soon. */
#define FAULT_AROUND	32

/**
 * struct sci_import_map - a map of an import
 *
 * A map belongs to the file that backs its areas of memory, so it may outlive the
 * import.
 *
 * @link: entry in import->maps; empty: the map is revoked for ever
 * @adapter: reference to the import's adapter
 * @revoke: see import.h
 * @mapping: NULL: the map is revoked.  Written under adapter->lock and @revoke.
 * @private_page: the page that replaces the memory in a revoked map
 * @file: the file that backs the map
 */
struct sci_import_map {
	struct list_head link;
	struct sci_adapter *adapter;
	struct rw_semaphore revoke;
	struct sci_mapping *mapping;
	struct page *private_page;
	struct file *file;
};

/* ---- maps ---- */

/*
 * Map the private page as cached memory, even in an uncached area.  On machines other
 * than x86 the zeros may still be in the cache, and an uncached map would show what the
 * page held before it was cleared.
 */
static vm_fault_t import_insert_private(struct vm_area_struct *vma,
					struct sci_import_map *map,
					unsigned long addr)
{
	return vmf_insert_pfn_prot(vma, addr, page_to_pfn(map->private_page),
				   vm_get_page_prot(vma->vm_flags));
}

/* Insert the page at @addr and some that follow. */
static vm_fault_t import_insert_around(struct vm_area_struct *vma,
				       struct sci_import_map *map,
				       unsigned long addr)
{
	struct sci_mapping *m = map->mapping;
	struct sci_adapter *a = m->adapter;
	u64 offset = ((u64)vma->vm_pgoff << PAGE_SHIFT) + addr - vma->vm_start;
	unsigned long pfn, end;
	vm_fault_t ret;

	/* the exporter has less memory than its reply said */
	if (a->desc.ops->mapping_pfn(a, m, offset, &pfn))
		return import_insert_private(vma, map, addr);
	ret = vmf_insert_pfn(vma, addr, pfn);
	end = min(vma->vm_end, addr + FAULT_AROUND * PAGE_SIZE);
	for (addr += PAGE_SIZE; ret == VM_FAULT_NOPAGE && addr < end;
	     addr += PAGE_SIZE) {
		offset += PAGE_SIZE;
		if (a->desc.ops->mapping_pfn(a, m, offset, &pfn) ||
		    vmf_insert_pfn(vma, addr, pfn) != VM_FAULT_NOPAGE)
			break;
	}
	return ret;
}

static vm_fault_t import_vm_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct sci_import_map *map = vma->vm_file->private_data;
	unsigned long addr = vmf->address & PAGE_MASK;
	vm_fault_t ret;

	down_read(&map->revoke);
	if (map->mapping)
		ret = import_insert_around(vma, map, addr);
	else
		ret = import_insert_private(vma, map, addr);
	up_read(&map->revoke);
	return ret;
}

static const struct vm_operations_struct import_vm_ops = {
	.fault = import_vm_fault,
	.mprotect = sci_vma_mprotect,
};

/* Unmap the adapter's memory from processes, and give the mapping back. */
static void import_map_revoke(struct sci_import_map *map)
{
	struct sci_mapping *m = map->mapping;

	lockdep_assert_held(&map->adapter->lock);
	list_del_init(&map->link);
	down_write(&map->revoke);
	map->mapping = NULL;
	up_write(&map->revoke);
	unmap_mapping_range(map->file->f_mapping, 0, 0, 1);
	sci_mapping_put(m);
}

static void import_map_free(struct sci_import_map *map)
{
	if (map->private_page)
		__free_page(map->private_page);
	sci_adapter_put(map->adapter);
	kfree(map);
}

static int import_map_release(struct inode *inode, struct file *file)
{
	struct sci_import_map *map = file->private_data;
	struct sci_adapter *a = map->adapter;
	unsigned int retired;

	mutex_lock(&a->lock);
	retired = sci_retire_count(a);
	if (map->mapping) {
		list_del(&map->link);
		sci_mapping_put(map->mapping);
	}
	retired -= sci_retire_count(a);
	mutex_unlock(&a->lock);
	/* Wait, so that the ATT has room again when munmap() returns. */
	if (retired)
		sci_retire_flush(a);
	import_map_free(map);
	return 0;
}

static const struct file_operations map_fops = {
	.owner = THIS_MODULE,
	.release = import_map_release,
};

static struct sci_import_map *import_map_alloc(struct sci_adapter *a)
{
	struct sci_import_map *map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);

	if (!map)
		return NULL;
	INIT_LIST_HEAD(&map->link);
	init_rwsem(&map->revoke);
	map->adapter = a;
	sci_adapter_get(a);
	map->private_page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!map->private_page) {
		import_map_free(map);
		return NULL;
	}
	return map;
}

static int import_check_map(struct sci_import *im, struct vm_area_struct *vma)
{
	u64 pages = DIV_ROUND_UP_ULL(im->length, PAGE_SIZE);

	if (vma->vm_pgoff >= pages || vma_pages(vma) > pages - vma->vm_pgoff)
		return -EINVAL;
	return vma->vm_flags & VM_WRITE && !(im->access & 2) ? -EACCES : 0;
}

int sci_import_locate(struct sci_import *im, u32 *node, u64 *base)
{
	struct sci_adapter *a = im->client.obj.adapter;

	lockdep_assert_held(&a->lock);
	if (im->client.state != SCI_REMOTE_CONNECTED)
		return -ENOTCONN;
	*node = im->client.conn.peer->node;
	*base = im->base;
	/* the connected member may have left the group just now: find another member */
	if (im->client.node == SCI_IOC_NODE_GROUP &&
	    sci_group_member(a, im->client.id, im->client.group, node, base))
		return -ENOTCONN;
	return 0;
}

static int import_map_make(struct sci_import *im, struct sci_import_map *map,
			   struct vm_area_struct *vma)
{
	struct sci_mapping *m;
	u64 base;
	u32 node;
	int ret;

	ret = sci_import_locate(im, &node, &base);
	if (!ret)
		ret = import_check_map(im, vma);
	if (ret)
		return ret;
	m = sci_mapping_get(map->adapter, node, im->client.id, base,
			    (u64)vma->vm_pgoff << PAGE_SHIFT,
			    vma->vm_end - vma->vm_start);
	if (IS_ERR(m))
		return PTR_ERR(m);
	ret = sci_vma_set_backing(vma, "[sci-import]", &map_fops, map);
	if (ret) {
		sci_mapping_put(m);
		return ret;
	}
	map->file = vma->vm_file;
	map->mapping = m;
	list_add_tail(&map->link, &im->maps);
	return 0;
}

static int import_map_make_locked(struct sci_import *im,
				  struct sci_import_map *map,
				  struct vm_area_struct *vma)
{
	int ret;

	mutex_lock(&map->adapter->lock);
	ret = import_map_make(im, map, vma);
	mutex_unlock(&map->adapter->lock);
	return ret;
}

static int import_mmap(struct sci_object *obj, struct vm_area_struct *vma)
{
	struct sci_import *im = sci_import_of(obj);
	struct sci_import_map *map = import_map_alloc(obj->adapter);
	int ret;

	if (!map)
		return -ENOMEM;
	ret = import_map_make_locked(im, map, vma);
	/* mappings that were unmapped just now may still hold entries of the ATT */
	if (ret == -ENOSPC) {
		sci_retire_flush(obj->adapter);
		ret = import_map_make_locked(im, map, vma);
	}
	if (ret == -ENOSPC)
		sci_mapping_report_full(obj->adapter, im->client.node,
					(u64)vma->vm_pgoff << PAGE_SHIFT,
					vma->vm_end - vma->vm_start);
	if (ret) {
		import_map_free(map);
		return ret;
	}
	vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP);
	if (!(im->access & 2))
		vm_flags_clear(vma, VM_MAYWRITE);
	if (!(obj->adapter->desc.caps & SCI_CAP_MEMORY))
		vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
	vma->vm_ops = &import_vm_ops;
	return 0;
}

int sci_import_cache(struct sci_adapter *a, struct vm_area_struct *vma,
		     unsigned long addr, unsigned int length, bool drop)
{
	u64 offset = (u64)linear_page_index(vma, addr) << PAGE_SHIFT;
	struct sci_import_map *map;
	unsigned long pfn;

	if (vma->vm_ops != &import_vm_ops)
		return -EFAULT;
	map = vma->vm_file->private_data;
	if (map->adapter != a)
		return -EFAULT;
	down_read(&map->revoke);
	if (map->mapping && !a->desc.ops->mapping_pfn(a, map->mapping, offset, &pfn))
		a->desc.ops->cache(a, pfn, offset_in_page(addr), length, drop);
	up_read(&map->revoke);
	return 0;
}

/*
 * Make all maps show private pages. Increase the error count first: the stores of a program that
 * still sees the old count have reached the segment.
 */
static void import_revoke(struct sci_import *im)
{
	struct sci_adapter *a = im->client.obj.adapter;
	struct sci_import_map *map, *next;
	unsigned int n = 0;

	lockdep_assert_held(&a->lock);
	if (!list_empty(&im->maps))
		sci_adapter_error(a, false);
	list_for_each_entry_safe(map, next, &im->maps, link) {
		import_map_revoke(map);
		n++;
	}
	trace_sci_revoke(a, im->client.node, im->client.id, n);
}

void sci_imports_tell(struct sci_adapter *a, enum sci_ev_type type)
{
	struct sci_object *obj;
	struct sci_client *c;

	lockdep_assert_held(&a->lock);
	list_for_each_entry(obj, &a->objects, link) {
		if (obj->kind != SCI_OBJECT_IMPORT)
			continue;
		c = sci_client_of(obj);
		if (c->state == SCI_REMOTE_CONNECTED && c->node != a->desc.node)
			sci_object_event(obj, type, c->node, 0, 0);
	}
}

/* ---- object ---- */

static int import_connected(struct sci_client *c,
			    const struct sci_msg_reply *re)
{
	struct sci_import *im = container_of(c, struct sci_import, client);
	u64 length = le64_to_cpu(re->length);

	if (!(re->access & 4) || re->access & ~6 || !length ||
	    length > c->obj.adapter->desc.max_segment)
		return -EPROTO;
	/* A reply of another group member must grant the length and access that the maps have. */
	if (im->length && (im->length != length || im->access & ~re->access))
		return -EPROTO;
	im->length = length;
	im->base = le64_to_cpu(re->base);
	im->access = re->access;
	return 0;
}

static void import_gone(struct sci_client *c)
{
	import_revoke(container_of(c, struct sci_import, client));
}

static const struct sci_client_ops import_client_ops = {
	.connected = import_connected,
	.gone = import_gone,
};

static void import_kill(struct sci_object *obj)
{
	struct sci_import *im = sci_import_of(obj);

	/* revoke first: no store may follow the DISCONNECT to the exporter */
	import_revoke(im);
	sci_client_end(&im->client);
	if (sci_adapter_is_dead(obj->adapter))
		sci_object_event(obj, SCI_EV_LOST, im->client.node, -ENODEV, 0);
}

static void import_free(struct sci_object *obj)
{
	struct sci_import *im = sci_import_of(obj);

	sci_client_fini(&im->client);
	kfree(im);
}

static void import_show(struct sci_object *obj, struct seq_file *m)
{
	struct sci_import *im = sci_import_of(obj);

	sci_client_show(&im->client, m);
	seq_printf(m, "sci-remote-size:\t%llu\n", READ_ONCE(im->length));
}

static const struct sci_object_ops import_ops = {
	.name = "[sci-import]",
	.kill = import_kill,
	.free = import_free,
	.show = import_show,
	.mmap = import_mmap,
};

static struct sci_import *import_alloc(struct sci_adapter *a)
{
	struct sci_import *im = kzalloc(sizeof(*im), GFP_KERNEL_ACCOUNT);

	if (!im)
		return NULL;
	INIT_LIST_HEAD(&im->maps);
	if (sci_client_init(&im->client, SCI_OBJECT_IMPORT, &import_ops,
			    &import_client_ops, a)) {
		kfree(im);
		return NULL;
	}
	return im;
}

int sci_import_connect(struct sci_object *obj, void *cmd,
		       struct sci_new_file *nf)
{
	struct sci_ioc_connect *c = cmd;
	struct sci_import *im;
	int ret;

	if (c->flags & SCI_CONNECT_DATA)
		return -EOPNOTSUPP;
	im = import_alloc(obj->adapter);
	if (!im)
		return -ENOMEM;
	ret = sci_object_file(&im->client.obj, nf);
	if (ret) {
		import_free(&im->client.obj);
		return ret;
	}
	/* from here on the release of the file cleans up after errors */
	ret = sci_client_connect(&im->client, SCI_KIND_SEGMENT, c->node, c->id,
				 c->timeout_ms, c->flags & SCI_CONNECT_ASYNC);
	if (ret)
		return ret;
	c->out_fd = nf->fd;
	c->out_length = c->flags & SCI_CONNECT_ASYNC ? 0 : im->length;
	return 0;
}

int sci_import_info(struct sci_object *obj, void *cmd, struct sci_new_file *nf)
{
	struct sci_import *im = sci_import_of(obj);
	struct sci_ioc_remote_info *c = cmd;

	mutex_lock(&obj->adapter->lock);
	c->out_state = im->client.state;
	c->out_status = im->client.status;
	c->out_node = im->client.node;
	c->out_id = im->client.id;
	c->out_access = im->access;
	c->out_reserved = 0;
	c->out_length = im->length;
	mutex_unlock(&obj->adapter->lock);
	return 0;
}

/* ---- flush and check ---- */

static int import_flush(struct sci_object *obj)
{
	struct sci_adapter *a = obj->adapter;

	if (a->desc.ops->flush)
		a->desc.ops->flush(a);
	else
		mb();	/* drain non-temporal stores from write-combining buffers */
	if (obj->kind == SCI_OBJECT_IMPORT &&
	    READ_ONCE(sci_client_of(obj)->state) != SCI_REMOTE_CONNECTED)
		return -ENOTCONN;
	return 0;
}

int sci_import_flush(struct sci_object *obj, void *cmd,
		     struct sci_new_file *nf)
{
	return import_flush(obj);
}

int sci_import_check(struct sci_object *obj, void *cmd,
		     struct sci_new_file *nf)
{
	struct sci_adapter *a = obj->adapter;
	struct sci_ioc_check *c = cmd;
	int ret = import_flush(obj);

	if (ret)
		return ret;
	c->out_errors = sci_adapter_errors(a);
	c->out_fatal = sci_adapter_fatal(a);
	c->out_reserved = 0;
	if (sci_adapter_down(a))
		c->out_result = SCI_CHECK_PENDING;
	else if (c->out_fatal != c->fatal)
		c->out_result = SCI_CHECK_NOT_RETRIABLE;
	else if (c->out_errors != c->errors)
		c->out_result = SCI_CHECK_RETRIABLE;
	else
		c->out_result = SCI_CHECK_OK;
	return 0;
}
