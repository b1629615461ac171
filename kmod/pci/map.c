// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Address translation table and window. */

#include <linux/math64.h>
#include <linux/sizes.h>

#include "core/att.h"
#include "pci.h"

static void __iomem *att_entry(struct sci_pci *p, u32 entry)
{
	return p->att + (size_t)entry * SCI_PCI_ATT_ENTRY_SIZE;
}

/* Write an entry of the ATT, its valid bit last. */
static void att_entry_set(struct sci_pci *p, u32 entry,
			  const struct sci_mapping *m, u64 offset)
{
	void __iomem *e = att_entry(p, entry);

	writel(m->base, e + SCI_PCI_ATT_EXPORT);
	writel(lower_32_bits(offset), e + SCI_PCI_ATT_OFFSET);
	writel(upper_32_bits(offset), e + SCI_PCI_ATT_OFFSET + 4);
	writel(m->node | SCI_PCI_ATT_VALID << 16, e + SCI_PCI_ATT_NODE);
}

static u32 att_page_size(const struct sci_adapter *a)
{
	return sci_adapter_desc(a)->att_page_size;
}

static u32 mapping_first(const struct sci_mapping *m)
{
	return (uintptr_t)m->priv;
}

static u32 mapping_entries(const struct sci_mapping *m)
{
	return div_u64(m->length, att_page_size(m->adapter));
}

int sci_pci_map(struct sci_adapter *a, struct sci_mapping *m)
{
	struct sci_pci *p = sci_adapter_priv(a);
	u32 first, i;
	int ret;

	/* the other node sent the base and the length: do not trust them */
	if (m->base > U16_MAX || m->offset >= SZ_4G)
		return -ENOENT;
	if (m->length > p->window_size)
		return -ENOSPC;
	if (sci_pci_is_broken(p))
		return -EIO;
	ret = sci_att_alloc(sci_adapter_desc(a)->att, mapping_entries(m),
			    m->node, &first);
	if (ret)
		return ret;
	for (i = 0; i < mapping_entries(m); i++) {
		att_entry_set(p, first + i, m,
			      m->offset + (u64)i * att_page_size(a));
		cond_resched();
	}
	/* all entries are written before a store to the window can be made */
	readl(att_entry(p, first + i - 1));
	m->priv = (void *)(uintptr_t)first;
	return 0;
}

/*
 * Unmap. Wait for stores that were made before the user's maps were removed: they must not
 * reach the next owner of the entries.
 */
void sci_pci_unmap(struct sci_adapter *a, struct sci_mapping *m)
{
	struct sci_pci *p = sci_adapter_priv(a);
	u32 first = mapping_first(m), i;

	if (!sci_pci_is_broken(p)) {
		for (i = 0; i < mapping_entries(m); i++) {
			writel(0, att_entry(p, first + i) + SCI_PCI_ATT_NODE);
			cond_resched();
		}
		sci_pci_barrier(p);
	}
	sci_att_free(sci_adapter_desc(a)->att, first, mapping_entries(m));
}

int sci_pci_mapping_pfn(struct sci_adapter *a, struct sci_mapping *m,
			u64 offset, unsigned long *pfn)
{
	struct sci_pci *p = sci_adapter_priv(a);
	u64 place;

	if (offset < m->offset || offset - m->offset >= m->length)
		return -EFAULT;
	place = (u64)mapping_first(m) * att_page_size(a) + offset - m->offset;
	*pfn = PHYS_PFN(p->window + place);
	return 0;
}
