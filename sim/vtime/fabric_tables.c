// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The adapter's tables: ATT entries and exports. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/vtime/fabric.h"

/* Return the number of window entries that [@off, @off + @len) of a segment takes. */
uint32_t fabric_pages(uint64_t off, size_t len)
{
	return (uint32_t)((off % VT_ATT_PAGE + len + VT_ATT_PAGE - 1) /
			  VT_ATT_PAGE);
}

/* Take @pages consecutive entries. Return the first one; UINT32_MAX: too few are free. */
uint32_t fabric_entries_get(struct vt_fabric *f, uint32_t pages)
{
	uint32_t run = 0;

	for (uint32_t i = 0; i < 2 * VT_ATT_ENTRIES; i++) {
		uint32_t at = (f->next_entry + i) % VT_ATT_ENTRIES;

		run = !at ? 0 : run;
		run = f->att[at] ? 0 : run + 1;
		if (run < pages)
			continue;
		at -= pages - 1;
		memset(f->att + at, 1, pages);
		f->next_entry = (at + pages) % VT_ATT_ENTRIES;
		f->entries += pages;
		if (f->entries > f->entries_max)
			f->entries_max = f->entries;
		return at;
	}
	return UINT32_MAX;
}

void fabric_entries_put(struct vt_fabric *f, uint32_t first, uint32_t pages)
{
	for (uint32_t i = first; i < first + pages; i++)
		sim_att_write(f->node->adapter, i * SCI_PCI_ATT_ENTRY_SIZE, 0);
	memset(f->att + first, 0, pages);
	f->entries -= pages;
}

void fabric_entry_set(struct vt_fabric *f, uint32_t entry, uint16_t node,
		      uint16_t attr, uint16_t export_id, uint64_t offset)
{
	struct sim_adapter *a = f->node->adapter;
	uint32_t at = entry * SCI_PCI_ATT_ENTRY_SIZE;

	sim_att_write(a, at + SCI_PCI_ATT_EXPORT, export_id);
	sim_att_write(a, at + SCI_PCI_ATT_OFFSET, (uint32_t)offset);
	sim_att_write(a, at + SCI_PCI_ATT_OFFSET + 4, (uint32_t)(offset >> 32));
	sim_att_write(a, at, node | (uint32_t)(attr | SCI_PCI_ATT_VALID) << 16);
}

static void table_put64(uint8_t *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
}

static size_t page_count(const struct sci_lseg *s)
{
	return (s->size + SCI_PCI_PAGE - 1) / SCI_PCI_PAGE;
}

static size_t leaf_count(const struct sci_lseg *s)
{
	return (page_count(s) + SCI_PCI_LEAF_PAGES - 1) / SCI_PCI_LEAF_PAGES;
}

/* Return the offset of the root, which follows the lists directly, mostly in the same page. */
static size_t root_offset(const struct sci_lseg *s)
{
	return page_count(s) * 8;
}

static size_t list_bytes(const struct sci_lseg *s)
{
	return root_offset(s) + leaf_count(s) * 8;
}

/* Make the lists of pages that the adapter reads: see the data sheet, section 7. */
static int pages_make(struct sci_lseg *s)
{
	size_t pages = page_count(s), leaves = leaf_count(s);
	uint8_t *root;

	s->pages = node_pages_get(list_bytes(s));
	if (!s->pages)
		return -ENOSPC;
	root = s->pages + root_offset(s);
	for (size_t i = 0; i < leaves; i++)
		table_put64(root + i * 8,
			    (uintptr_t)(s->pages + i * SCI_PCI_PAGE));
	for (size_t i = 0; i < pages; i++)
		table_put64(s->pages + i * 8,
			    (uintptr_t)(s->mem + i * SCI_PCI_PAGE));
	return 0;
}

static int export_id_get(struct vt_fabric *f)
{
	for (uint32_t i = 0; i < VT_EXPORTS; i++) {
		uint32_t slot = f->last_export++ % VT_EXPORTS;
		uint16_t id = f->next_export[slot];

		if (!id)
			continue;
		f->next_export[slot] = 0;
		return id;
	}
	return -ENOSPC;
}

static uint8_t *export_entry(struct vt_fabric *f, uint16_t id)
{
	return f->node->exports + id % VT_EXPORTS * SCI_PCI_EXPORT_ENTRY_SIZE;
}

int fabric_export_begin(struct sci_lseg *s)
{
	uint8_t *e;
	int id, ret;

	ret = s->pages ? 0 : pages_make(s);
	if (ret)
		return ret;
	id = export_id_get(s->node->fabric);
	if (id < 0)
		return id;
	s->export_id = (uint16_t)id;
	s->exported = true;
	e = export_entry(s->node->fabric, s->export_id);
	/* the kernel exports whole pages, and packets store 16 bytes or more */
	table_put64(e + SCI_PCI_EXPORT_LENGTH, page_count(s) * SCI_PCI_PAGE);
	table_put64(e + SCI_PCI_EXPORT_ROOT, (uintptr_t)s->pages + root_offset(s));
	memcpy(e + SCI_PCI_EXPORT_ID, &s->export_id, 2);
	e[SCI_PCI_EXPORT_FLAGS] = SCI_PCI_EXPORT_VALID | SCI_PCI_EXPORT_READ |
				  SCI_PCI_EXPORT_WRITE;
	return 0;
}

void fabric_export_end(struct sci_lseg *s)
{
	struct vt_fabric *f = s->node->fabric;
	struct sim_adapter *a = f->node->adapter;
	uint16_t next = (uint16_t)(s->export_id + VT_EXPORTS);

	memset(export_entry(f, s->export_id), 0, 4);
	sim_csr_write(a, SCI_PCI_CMD_ARG, s->export_id);
	sim_csr_write(a, SCI_PCI_CMD, SCI_PCI_CMD_INVALIDATE);
	/* 0 marks a slot in use */
	f->next_export[s->export_id % VT_EXPORTS] = next ? next : VT_EXPORTS;
	s->exported = false;
}

void fabric_export_free(struct sci_lseg *s)
{
	node_pages_put(s->pages, list_bytes(s));
}
