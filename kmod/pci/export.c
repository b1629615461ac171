// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/*
 * Export table: memory of this node that other nodes reach.
 *
 * The id of an export is its place in the table and, in the upper bits, a count. All 16-bit ids
 * are used in turn, so a stale id names no export for a long time.
 */

#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "core/pages.h"
#include "pci.h"

#define LEAF_SIZE	(SCI_PCI_LEAF_PAGES * sizeof(__le64))

static_assert(LEAF_SIZE == SCI_PCI_PAGE);

/**
 * struct sci_pci_leaf - a page with addresses of pages
 * @addr: SCI_PCI_LEAF_PAGES bus addresses
 * @dma: bus address of @addr
 */
struct sci_pci_leaf {
	__le64 *addr;
	dma_addr_t dma;
};

/**
 * struct sci_pci_export - exported memory
 * @pages: reference to the memory
 * @sgt: the memory, mapped for the card
 * @root: bus addresses of the leaves
 * @root_dma: bus address of @root
 * @n_leaves: number of @leaves
 * @leaves: pages with the bus addresses of @pages
 */
struct sci_pci_export {
	struct sci_pages *pages;
	struct sg_table sgt;
	__le64 *root;
	dma_addr_t root_dma;
	u32 n_leaves;
	struct sci_pci_leaf leaves[] __counted_by(n_leaves);
};

int sci_pci_export_init(struct sci_pci *p)
{
	p->exports = kcalloc(p->exports_max, sizeof(*p->exports), GFP_KERNEL);
	if (!p->exports)
		return -ENOMEM;
	p->entries = dma_alloc_coherent(&p->pdev->dev, p->exports_max *
					sizeof(*p->entries), &p->entries_dma,
					GFP_KERNEL);
	if (!p->entries) {
		kfree(p->exports);
		return -ENOMEM;
	}
	p->exports_used = 0;
	return 0;
}

/* Free the export table. The card was reset. */
void sci_pci_export_fini(struct sci_pci *p)
{
	WARN_ON(p->exports_used);
	dma_free_coherent(&p->pdev->dev, p->exports_max * sizeof(*p->entries),
			  p->entries, p->entries_dma);
	kfree(p->exports);
}

/* ---- lists of pages ---- */

static void export_lists_free(struct device *dev, struct sci_pci_export *x)
{
	u32 i;

	for (i = 0; i < x->n_leaves && x->leaves[i].addr; i++)
		dma_free_coherent(dev, LEAF_SIZE, x->leaves[i].addr,
				  x->leaves[i].dma);
	if (x->root)
		dma_free_coherent(dev, x->n_leaves * sizeof(*x->root), x->root,
				  x->root_dma);
}

static int export_lists_alloc(struct device *dev, struct sci_pci_export *x)
{
	u32 i;

	x->root = dma_alloc_coherent(dev, x->n_leaves * sizeof(*x->root),
				     &x->root_dma, GFP_KERNEL);
	if (!x->root)
		return -ENOMEM;
	for (i = 0; i < x->n_leaves; i++) {
		struct sci_pci_leaf *l = &x->leaves[i];

		l->addr = dma_alloc_coherent(dev, LEAF_SIZE, &l->dma,
					     GFP_KERNEL);
		if (!l->addr) {
			export_lists_free(dev, x);
			return -ENOMEM;
		}
		x->root[i] = cpu_to_le64(l->dma);
		cond_resched();
	}
	return 0;
}

/* Fill the page lists. Return -EOPNOTSUPP if the bus would use a copy and not the memory itself. */
static int export_lists_fill(struct device *dev, struct sci_pci_export *x)
{
	struct scatterlist *sg;
	u32 page = 0, i, off;

	for_each_sgtable_dma_sg(&x->sgt, sg, i) {
		dma_addr_t addr = sg_dma_address(sg);

		if (sci_pci_is_copied(dev, addr))
			return -EOPNOTSUPP;
		for (off = 0; off < sg_dma_len(sg); off += SCI_PCI_PAGE) {
			x->leaves[page / SCI_PCI_LEAF_PAGES]
				.addr[page % SCI_PCI_LEAF_PAGES] =
				cpu_to_le64(addr + off);
			page++;
		}
		cond_resched();
	}
	return 0;
}

/* ---- an export ---- */

static void export_free(struct device *dev, struct sci_pci_export *x)
{
	dma_unmap_sgtable(dev, &x->sgt, DMA_BIDIRECTIONAL, 0);
	sg_free_table(&x->sgt);
	export_lists_free(dev, x);
	sci_pages_put(x->pages);
	kvfree(x);
}

static u64 export_pages_length(const struct sci_pages *pages)
{
	return (u64)pages->count << PAGE_SHIFT;
}

static int export_map(struct device *dev, struct sci_pci_export *x)
{
	struct sci_pages *pages = x->pages;
	int ret;

	ret = sg_alloc_table_from_pages(&x->sgt, pages->page, pages->count, 0,
					export_pages_length(pages), GFP_KERNEL);
	if (ret)
		return ret;
	ret = dma_map_sgtable(dev, &x->sgt, DMA_BIDIRECTIONAL, 0);
	if (ret)
		goto err_table;
	ret = export_lists_fill(dev, x);
	if (ret)
		goto err_map;
	return 0;

err_map:
	dma_unmap_sgtable(dev, &x->sgt, DMA_BIDIRECTIONAL, 0);
err_table:
	sg_free_table(&x->sgt);
	return ret;
}

static struct sci_pci_export *export_create(struct device *dev,
					    struct sci_pages *pages)
{
	u32 n = DIV_ROUND_UP_ULL(export_pages_length(pages),
				 (u64)SCI_PCI_PAGE * SCI_PCI_LEAF_PAGES);
	struct sci_pci_export *x;
	int ret;

	x = kvzalloc(struct_size(x, leaves, n), GFP_KERNEL);
	if (!x)
		return ERR_PTR(-ENOMEM);
	x->n_leaves = n;
	x->pages = pages;
	ret = export_lists_alloc(dev, x);
	if (ret)
		goto err_free;
	ret = export_map(dev, x);
	if (ret)
		goto err_lists;
	sci_pages_get(pages);
	return x;

err_lists:
	export_lists_free(dev, x);
err_free:
	kvfree(x);
	return ERR_PTR(ret);
}

/* ---- the table ---- */

/* Find a free entry and choose its id. */
static int export_table_find(struct sci_pci *p, u32 *id)
{
	u32 mask = p->exports_max - 1;

	lockdep_assert_held(&p->export_lock);
	if (p->exports_used == p->exports_max)
		return -ENOSPC;
	while (p->exports[p->next_id & mask])
		p->next_id++;
	*id = p->next_id++ & U16_MAX;
	return 0;
}

static void export_table_set(struct sci_pci *p, u32 id,
			     struct sci_pci_export *x)
{
	u32 slot = id & (p->exports_max - 1);
	struct sci_pci_entry *e = &p->entries[slot];
	const u32 flags = SCI_PCI_EXPORT_VALID | SCI_PCI_EXPORT_READ |
			  SCI_PCI_EXPORT_WRITE;

	lockdep_assert_held(&p->export_lock);
	p->exports[slot] = x;
	p->exports_used++;
	e->length = cpu_to_le64(export_pages_length(x->pages));
	e->root = cpu_to_le64(x->root_dma);
	/* the page lists are in memory before the card reads them */
	dma_wmb();
	WRITE_ONCE(e->id_flags, cpu_to_le32(id | flags << 16));
}

int sci_pci_expose(struct sci_adapter *a, struct sci_pages *pages, u64 *base)
{
	struct sci_pci *p = sci_adapter_priv(a);
	struct sci_pci_export *x;
	u32 id;
	int ret;

	if (sci_pci_is_broken(p))
		return -EIO;
	x = export_create(&p->pdev->dev, pages);
	if (IS_ERR(x))
		return PTR_ERR(x);
	mutex_lock(&p->export_lock);
	ret = export_table_find(p, &id);
	if (!ret)
		export_table_set(p, id, x);
	mutex_unlock(&p->export_lock);
	if (ret) {
		export_free(&p->pdev->dev, x);
		return ret;
	}
	*base = id;
	return 0;
}

void sci_pci_hide(struct sci_adapter *a, u64 base)
{
	struct sci_pci *p = sci_adapter_priv(a);
	u32 slot = base & (p->exports_max - 1);
	struct sci_pci_export *x;

	WRITE_ONCE(p->entries[slot].id_flags, 0);
	/* when the command has ended, or the card was reset, the card does not use the memory */
	sci_pci_invalidate(p, base);
	mutex_lock(&p->export_lock);
	x = p->exports[slot];
	if (!WARN_ON(!x)) {
		p->exports[slot] = NULL;
		p->exports_used--;
	}
	mutex_unlock(&p->export_lock);
	if (x)
		export_free(&p->pdev->dev, x);
}
