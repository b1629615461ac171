// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* dma-bufs of segments, and segments of dma-bufs: see dmabuf.h. */

#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/file.h>
#include <linux/iosys-map.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "dmabuf.h"
#include "pages.h"

/* MODULE_IMPORT_NS() takes a word before 6.13, and a string since then. */
MODULE_INFO(import_ns, "DMA_BUF");

/* ---- a dma-buf of a segment's memory ---- */

/**
 * struct dmabuf_export - dma_buf.priv
 * @pages: the memory
 * @lock: protects @maps
 * @maps: list of struct dmabuf_map
 */
struct dmabuf_export {
	struct sci_pages *pages;
	struct mutex lock;		/* protects maps */
	struct list_head maps;
};

/**
 * struct dmabuf_map - the memory, mapped for DMA by a device
 * @table: scatter list of the memory
 * @dev: the device
 * @dir: direction of the transfers
 * @link: entry in dmabuf_export.maps
 */
struct dmabuf_map {
	struct sg_table table;
	struct device *dev;
	enum dma_data_direction dir;
	struct list_head link;
};

static int dmabuf_map_init(struct dmabuf_map *m, struct sci_pages *p)
{
	int ret;

	ret = sg_alloc_table_from_pages_segment(&m->table, p->page, p->count, 0,
						(size_t)p->count << PAGE_SHIFT,
						dma_get_max_seg_size(m->dev),
						GFP_KERNEL);
	if (ret)
		return ret;
	ret = dma_map_sgtable(m->dev, &m->table, m->dir, 0);
	if (ret)
		sg_free_table(&m->table);
	return ret;
}

static struct sg_table *dmabuf_map(struct dma_buf_attachment *at,
				   enum dma_data_direction dir)
{
	struct dmabuf_export *x = at->dmabuf->priv;
	struct dmabuf_map *m = kzalloc(sizeof(*m), GFP_KERNEL);
	int ret;

	if (!m)
		return ERR_PTR(-ENOMEM);
	m->dev = at->dev;
	m->dir = dir;
	ret = dmabuf_map_init(m, x->pages);
	if (ret) {
		kfree(m);
		return ERR_PTR(ret);
	}
	mutex_lock(&x->lock);
	list_add(&m->link, &x->maps);
	mutex_unlock(&x->lock);
	return &m->table;
}

static void dmabuf_unmap(struct dma_buf_attachment *at, struct sg_table *table,
			 enum dma_data_direction dir)
{
	struct dmabuf_export *x = at->dmabuf->priv;
	struct dmabuf_map *m = container_of(table, struct dmabuf_map, table);

	mutex_lock(&x->lock);
	list_del(&m->link);
	mutex_unlock(&x->lock);
	dma_unmap_sgtable(m->dev, &m->table, m->dir, 0);
	sg_free_table(&m->table);
	kfree(m);
}

/* Maps of segments are cached: devices that do not snoop caches need both calls. */
static int dmabuf_begin_cpu_access(struct dma_buf *buf,
				   enum dma_data_direction dir)
{
	struct dmabuf_export *x = buf->priv;
	struct dmabuf_map *m;

	mutex_lock(&x->lock);
	list_for_each_entry(m, &x->maps, link)
		dma_sync_sgtable_for_cpu(m->dev, &m->table, m->dir);
	mutex_unlock(&x->lock);
	return 0;
}

static int dmabuf_end_cpu_access(struct dma_buf *buf,
				 enum dma_data_direction dir)
{
	struct dmabuf_export *x = buf->priv;
	struct dmabuf_map *m;

	mutex_lock(&x->lock);
	list_for_each_entry(m, &x->maps, link)
		dma_sync_sgtable_for_device(m->dev, &m->table, m->dir);
	mutex_unlock(&x->lock);
	return 0;
}

static int dmabuf_mmap(struct dma_buf *buf, struct vm_area_struct *vma)
{
	struct dmabuf_export *x = buf->priv;

	/* a private map would copy pages, which maps of page frames cannot */
	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_flags & VM_EXEC)
		return -EINVAL;
	vm_flags_clear(vma, VM_MAYEXEC);
	return sci_pages_mmap(x->pages, vma);
}

static int dmabuf_vmap(struct dma_buf *buf, struct iosys_map *map)
{
	struct dmabuf_export *x = buf->priv;
	void *addr = vmap(x->pages->page, x->pages->count, VM_MAP, PAGE_KERNEL);

	if (!addr)
		return -ENOMEM;
	iosys_map_set_vaddr(map, addr);
	return 0;
}

static void dmabuf_vunmap(struct dma_buf *buf, struct iosys_map *map)
{
	vunmap(map->vaddr);
}

static void dmabuf_release(struct dma_buf *buf)
{
	struct dmabuf_export *x = buf->priv;

	sci_pages_put(x->pages);
	kfree(x);
}

static const struct dma_buf_ops dmabuf_ops = {
	.map_dma_buf = dmabuf_map,
	.unmap_dma_buf = dmabuf_unmap,
	.begin_cpu_access = dmabuf_begin_cpu_access,
	.end_cpu_access = dmabuf_end_cpu_access,
	.mmap = dmabuf_mmap,
	.vmap = dmabuf_vmap,
	.vunmap = dmabuf_vunmap,
	.release = dmabuf_release,
};

struct file *sci_dmabuf_create(struct sci_pages *p)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dmabuf_export *x;
	struct dma_buf *buf;

	/* an adapter can take its memory back, but a device's map cannot be revoked */
	if (p->release)
		return ERR_PTR(-EOPNOTSUPP);
	x = kzalloc(sizeof(*x), GFP_KERNEL_ACCOUNT);
	if (!x)
		return ERR_PTR(-ENOMEM);
	x->pages = p;
	mutex_init(&x->lock);
	INIT_LIST_HEAD(&x->maps);
	info.ops = &dmabuf_ops;
	info.size = (size_t)p->count << PAGE_SHIFT;
	info.flags = O_RDWR;
	info.priv = x;
	buf = dma_buf_export(&info);
	if (IS_ERR(buf)) {
		kfree(x);
		return ERR_CAST(buf);
	}
	sci_pages_get(p);
	return buf->file;
}

/* ---- a segment of a dma-buf ---- */

/**
 * struct dmabuf_import - memory of a dma-buf
 * @pages: the memory, as the segment sees it
 * @buf: reference to the dma-buf
 * @map: the kernel's map of @buf; the exporter leaves the pages in place while it exists
 */
struct dmabuf_import {
	struct sci_pages pages;
	struct dma_buf *buf;
	struct iosys_map map;
};

static void dmabuf_pages_release(struct sci_pages *p)
{
	struct dmabuf_import *im = container_of(p, struct dmabuf_import, pages);

	dma_buf_vunmap_unlocked(im->buf, &im->map);
	sci_pages_end(&im->pages);
	dma_buf_put(im->buf);
	kfree(im);
}

/* Return the page at an address of the kernel; NULL: no page of the machine's memory. */
static struct page *dmabuf_page_at(const void *addr)
{
	struct page *page = NULL;

	if (is_vmalloc_addr(addr))
		page = vmalloc_to_page(addr);
	else if (virt_addr_valid(addr))
		page = virt_to_page(addr);
	if (!page || !pfn_valid(page_to_pfn(page)) || is_zone_device_page(page))
		return NULL;
	return page;
}

/* Find the pages by the kernel's map: importers must not take pages from scatter lists. */
static int dmabuf_find_pages(struct dmabuf_import *im, size_t offset)
{
	const void *addr = im->map.vaddr + offset;
	struct sci_pages *p = &im->pages;
	unsigned long i;

	if (im->map.is_iomem || !PAGE_ALIGNED(addr))
		return -EOPNOTSUPP;
	for (i = 0; i < p->count; i++) {
		p->page[i] = dmabuf_page_at(addr + (i << PAGE_SHIFT));
		if (!p->page[i])
			return -EOPNOTSUPP;
		cond_resched();
	}
	return 0;
}

static int dmabuf_import_map(struct dmabuf_import *im, size_t offset)
{
	int ret = dma_buf_vmap_unlocked(im->buf, &im->map);

	if (ret)
		return ret;
	ret = dmabuf_find_pages(im, offset);
	if (ret)
		dma_buf_vunmap_unlocked(im->buf, &im->map);
	return ret;
}

static int dmabuf_check(const struct dma_buf *buf, u64 offset, u64 length)
{
	const fmode_t both = FMODE_READ | FMODE_WRITE;

	if ((buf->file->f_mode & both) != both)
		return -EACCES;
	if (offset > buf->size || length > buf->size - offset)
		return -EINVAL;
	return buf->ops->vmap ? 0 : -EOPNOTSUPP;
}

static struct sci_pages *dmabuf_import(struct dma_buf *buf, u64 offset,
				       u64 length)
{
	struct dmabuf_import *im;
	int ret = dmabuf_check(buf, offset, length);

	if (ret)
		return ERR_PTR(ret);
	im = kzalloc(sizeof(*im), GFP_KERNEL_ACCOUNT);
	if (!im)
		return ERR_PTR(-ENOMEM);
	im->buf = buf;
	ret = sci_pages_begin(&im->pages, length >> PAGE_SHIFT);
	if (ret)
		goto err_free;
	ret = dmabuf_import_map(im, offset);
	if (ret)
		goto err_end;
	im->pages.pinned = true;
	im->pages.release = dmabuf_pages_release;
	return &im->pages;

err_end:
	sci_pages_end(&im->pages);
err_free:
	kfree(im);
	return ERR_PTR(ret);
}

struct sci_pages *sci_dmabuf_pages(int fd, u64 offset, u64 length)
{
	struct dma_buf *buf = dma_buf_get(fd);
	struct sci_pages *p;

	if (IS_ERR(buf))
		return ERR_CAST(buf);
	p = dmabuf_import(buf, offset, length);
	if (IS_ERR(p))
		dma_buf_put(buf);
	return p;
}
