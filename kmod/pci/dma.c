// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/*
 * DMA. A batch has at most as many descriptors as the ring. Only one batch runs at a
 * time, so that ABORT ends no other transfer.
 */

#include <linux/jiffies.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>

#include "core/pages.h"
#include "pci.h"

#define ENTRIES		SCI_PCI_DMA_ENTRIES_USED
#define TICK_MS		20	/* time between two checks of the progress */
#define PATIENCES	16	/* limit for a descriptor, as a multiple of sci_pci.patience */

int sci_pci_dma_init(struct sci_pci *p)
{
	p->ring = dma_alloc_coherent(&p->pdev->dev, ENTRIES * sizeof(*p->ring),
				     &p->ring_dma, GFP_KERNEL);
	if (!p->ring)
		return -ENOMEM;
	p->dma_tail = 0;
	return 0;
}

/* Free the descriptor ring. The card was reset. */
void sci_pci_dma_fini(struct sci_pci *p)
{
	dma_free_coherent(&p->pdev->dev, ENTRIES * sizeof(*p->ring), p->ring,
			  p->ring_dma);
}

static struct sci_pci_desc *dma_desc_at(struct sci_pci *p, u32 n)
{
	lockdep_assert_held(&p->dma_lock);
	return &p->ring[n % ENTRIES];
}

/* ---- waiting ---- */

/* Return a number that changes while the card makes progress. */
static u32 dma_progress(struct sci_pci *p)
{
	return sci_pci_read(p, SCI_PCI_DMA_HEAD) +
	       sci_pci_read(p, SCI_PCI_COUNTERS + 8 * SCI_PCI_CNT_DMA_WRITES) +
	       sci_pci_read(p, SCI_PCI_COUNTERS + 8 * SCI_PCI_CNT_DMA_READS);
}

/*
 * Wait until the last of @n descriptors is done.  Abort a batch that makes no progress.
 * Also abort a batch that takes longer than all its descriptors may take, because a
 * faulty card could count up for ever.
 *
 * Return: 0, or -ENODEV when the card was given up.
 */
static int dma_batch_wait(struct sci_pci *p, const struct sci_pci_desc *last,
			  u32 n)
{
	unsigned long end = jiffies + PATIENCES * n * p->patience;
	unsigned long limit = jiffies + p->patience;
	bool aborted = false;
	u32 seen = 0, now;

	while (!READ_ONCE(last->status)) {
		/* the completion may be that of an earlier batch */
		wait_for_completion_timeout(&p->dma_done,
					    msecs_to_jiffies(TICK_MS));
		if (READ_ONCE(last->status))
			break;
		if (sci_pci_is_broken(p) ||
		    sci_pci_is_gone(p, sci_pci_read(p, SCI_PCI_DMA_HEAD)))
			return -ENODEV;
		now = dma_progress(p);
		if (now != seen && !aborted)
			limit = jiffies + p->patience;
		seen = now;
		if (time_after(jiffies, limit) && aborted) {
			sci_pci_fail(p, "DMA has no end");
			return -ENODEV;
		}
		if (!aborted &&
		    (sci_pci_is_stopping(p) || time_after(jiffies, limit) ||
		     time_after(jiffies, end))) {
			sci_pci_write(p, SCI_PCI_DMA_CONTROL,
				      SCI_PCI_DMA_ABORT);
			aborted = true;
			limit = jiffies + p->patience;
		}
	}
	/* read the pulled data only after the descriptor's status */
	dma_rmb();
	return 0;
}

static int dma_desc_result(const struct sci_pci_desc *d)
{
	switch (le32_to_cpu(READ_ONCE(d->status))) {
	case SCI_PCI_DESC_OK:
		return 0;
	case SCI_PCI_DESC_FAILED + SCI_PCI_ERR_PROTECTION:
		return -ENOTCONN;
	default:
		return -EIO;
	}
}

/* ---- batches ---- */

/* Run the next @n descriptors, which are complete except for the flags CHAIN and IRQ. */
static int dma_batch_run(struct sci_pci *p, u32 n)
{
	struct sci_pci_desc *last = dma_desc_at(p, p->dma_tail + n - 1);
	u32 first = p->dma_tail, i;
	int ret;

	if (sci_pci_is_broken(p))
		return -ENODEV;
	for (i = 0; i < n - 1; i++)
		dma_desc_at(p, first + i)->flags |=
			cpu_to_le16(SCI_PCI_DESC_CHAIN);
	last->flags |= cpu_to_le16(SCI_PCI_DESC_IRQ);
	reinit_completion(&p->dma_done);
	p->dma_tail += n;
	sci_pci_write(p, SCI_PCI_DMA_TAIL, p->dma_tail);
	ret = dma_batch_wait(p, last, n);
	for (i = 0; i < n && !ret; i++)
		ret = dma_desc_result(dma_desc_at(p, first + i));
	return ret;
}

static void dma_desc_set(struct sci_pci_desc *d,
			 const struct sci_dma_piece *piece, u32 done,
			 dma_addr_t local, u32 length)
{
	*d = (struct sci_pci_desc){
		.local = cpu_to_le64(local),
		.remote = cpu_to_le64(piece->base << 32 |
				      (piece->remote + done)),
		.length = cpu_to_le32(length),
		.node = cpu_to_le16(piece->node),
		.flags = cpu_to_le16(piece->pull ? SCI_PCI_DESC_PULL : 0),
	};
}

/* Copy with one descriptor for each run of bytes that is contiguous on the bus. */
static int dma_copy_table(struct sci_pci *p, const struct sci_dma_piece *piece,
			  struct sg_table *sgt)
{
	u32 done = 0, n = 0, i, off, length;
	struct scatterlist *sg;
	int ret = 0;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		for (off = 0; off < sg_dma_len(sg) && !ret; off += length) {
			length = min(sg_dma_len(sg) - off, p->dma_max);
			dma_desc_set(dma_desc_at(p, p->dma_tail + n), piece,
				     done, sg_dma_address(sg) + off, length);
			done += length;
			if (++n == ENTRIES) {
				ret = dma_batch_run(p, n);
				n = 0;
			}
		}
	}
	return n && !ret ? dma_batch_run(p, n) : ret;
}

static int dma_check_piece(const struct sci_dma_piece *piece)
{
	u64 size = (u64)piece->pages->count << PAGE_SHIFT;

	if (!piece->length || piece->length > size ||
	    piece->local > size - piece->length)
		return -EFAULT;
	/* the other node sent the base and the length: do not trust them */
	if (piece->base > U16_MAX || piece->remote > SZ_4G - piece->length)
		return -ENOTCONN;
	return 0;
}

int sci_pci_dma_copy(struct sci_adapter *a, const struct sci_dma_piece *piece)
{
	enum dma_data_direction dir = piece->pull ? DMA_FROM_DEVICE :
						    DMA_TO_DEVICE;
	struct sci_pci *p = sci_adapter_priv(a);
	u64 first = piece->local >> PAGE_SHIFT;
	struct sg_table sgt;
	u64 end;
	int ret;

	ret = dma_check_piece(piece);
	if (ret)
		return ret;
	end = DIV_ROUND_UP_ULL(piece->local + piece->length, PAGE_SIZE);
	ret = sg_alloc_table_from_pages(&sgt, piece->pages->page + first,
					end - first,
					offset_in_page(piece->local),
					piece->length, GFP_KERNEL);
	if (ret)
		return ret;
	ret = dma_map_sgtable(&p->pdev->dev, &sgt, dir, 0);
	if (!ret) {
		mutex_lock(&p->dma_lock);
		ret = sci_pci_is_stopping(p) ? -ENODEV :
					       dma_copy_table(p, piece, &sgt);
		mutex_unlock(&p->dma_lock);
		dma_unmap_sgtable(&p->pdev->dev, &sgt, dir, 0);
	}
	sg_free_table(&sgt);
	return ret;
}
