// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The export table and its lists of pages: section 7 of the data sheet. Table and lists are in main
 * memory and may contain any bytes. A cache keeps entries that the model has read until INVALIDATE.
 */
#include "sim/adapter/model.h"

#define LENGTH_MAX	(UINT64_C(1) << 32)

struct entry {
	uint16_t id;
	uint16_t flags;
	uint32_t reserved;
	uint64_t length;
	uint64_t root;
	uint64_t reserved2;
};

static_assert(sizeof(struct entry) == SCI_PCI_EXPORT_ENTRY_SIZE, "as in memory");
static_assert(offsetof(struct entry, flags) == SCI_PCI_EXPORT_FLAGS &&
	      offsetof(struct entry, length) == SCI_PCI_EXPORT_LENGTH &&
	      offsetof(struct entry, root) == SCI_PCI_EXPORT_ROOT,
	      "as in memory");

void export_forget(struct sim_adapter *a)
{
	memset(a->tlb, 0, sizeof(a->tlb));
}

/* Read the address of a page from a list. */
static bool list_get(struct sim_adapter *a, uint64_t list, uint32_t index,
		     uint64_t *page)
{
	return a->host->dma_read(a->ctx, list + (uint64_t)index * sizeof(*page),
				 page, sizeof(*page)) &&
	       !(*page & (SCI_PCI_PAGE - 1));
}

static bool export_walk(struct sim_adapter *a, uint16_t id, uint32_t number,
			struct tlb *t)
{
	const struct ring *table = &a->exports;
	uint64_t slot = id & (table->entries - 1);
	struct entry e;
	uint64_t leaf;

	if (!a->host->dma_read(a->ctx,
			       table->base + slot * SCI_PCI_EXPORT_ENTRY_SIZE,
			       &e, sizeof(e)) ||
	    e.id != id || !(e.flags & SCI_PCI_EXPORT_VALID) ||
	    e.length > LENGTH_MAX ||
	    (uint64_t)number * SCI_PCI_PAGE >= e.length ||
	    !list_get(a, e.root, number / SCI_PCI_LEAF_PAGES, &leaf) ||
	    !list_get(a, leaf, number % SCI_PCI_LEAF_PAGES, &t->page))
		return false;
	t->id = id;
	t->number = number;
	t->length = e.length;
	t->flags = e.flags;
	return true;
}

static const struct tlb *export_lookup(struct sim_adapter *a, uint16_t id,
				       uint32_t number)
{
	struct tlb *t = &a->tlb[(id * 7u + number) % TLB_ENTRIES];

	if (t->flags && t->id == id && t->number == number)
		return t;
	t->flags = 0;
	return export_walk(a, id, number, t) ? t : NULL;
}

/* Find @len bytes of exported memory, if the request may access them. */
bool export_find(struct sim_adapter *a, uint64_t address, uint32_t len,
		 uint16_t rights, uint64_t *bus)
{
	uint32_t offset = (uint32_t)address;
	uint32_t in_page = offset % SCI_PCI_PAGE;
	const struct tlb *t;

	if (!a->exports.entries || a->exports.stopped ||
	    address & ~ADDRESS_BITS || in_page + len > SCI_PCI_PAGE)
		return false;
	t = export_lookup(a, (uint16_t)(address >> 32), offset / SCI_PCI_PAGE);
	if (!t || (t->flags & rights) != rights ||
	    (uint64_t)offset + len > t->length)
		return false;
	*bus = t->page + in_page;
	return true;
}
