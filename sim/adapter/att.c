// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The address translation table: section 4 of the data sheet. */
#include "sim/adapter/model.h"

#define ATTR_ALL							\
	(SCI_PCI_ATT_READ_ONLY | SCI_PCI_ATT_PREFETCH |			\
	 SCI_PCI_ATT_NO_GATHER | SCI_PCI_ATT_NO_128 | SCI_PCI_ATT_LOCK |\
	 SCI_PCI_ATT_INTERRUPT | SCI_PCI_ATT_NO_LOOPBACK |		\
	 SCI_PCI_ATT_VALID)

/* The bits of the four words of an entry that can be written. */
static const uint32_t writable[4] = {
	ATTR_ALL << 16 | 0xffff, 0xffff, UINT32_MAX, UINT32_MAX
};

static bool att_offset(const struct sim_adapter *a, uint32_t offset)
{
	return !(offset & 3) &&
	       offset / SCI_PCI_ATT_ENTRY_SIZE < a->config.att_entries;
}

static bool att_valid(const struct sim_adapter *a, uint32_t entry)
{
	return a->att[entry][0] >> 16 & SCI_PCI_ATT_VALID;
}

uint32_t sim_att_read(struct sim_adapter *a, uint32_t offset)
{
	if (!att_offset(a, offset))
		return UINT32_MAX;
	return a->att[offset / SCI_PCI_ATT_ENTRY_SIZE][offset >> 2 & 3];
}

void sim_att_write(struct sim_adapter *a, uint32_t offset, uint32_t value)
{
	uint32_t entry = offset / SCI_PCI_ATT_ENTRY_SIZE;
	unsigned int word = offset >> 2 & 3;
	bool was;

	if (!att_offset(a, offset))
		return;
	was = att_valid(a, entry);
	stream_flush_page(a, entry);
	read_forget(a);
	a->att_used[entry / ATT_BLOCK] = 1;
	a->att[entry][word] = value & writable[word];
	if (a->config.direct && (was || att_valid(a, entry)))
		a->host->att_changed(a->ctx, entry);
	adapter_settle(a);
}

void sim_att_get(const struct sim_adapter *a, uint32_t entry,
		 struct sim_att_entry *e)
{
	const uint32_t *w = a->att[entry & (a->config.att_entries - 1)];

	e->node = (uint16_t)w[0];
	e->attr = (uint16_t)(w[0] >> 16);
	e->export_id = (uint16_t)w[1];
	e->offset = (uint64_t)w[3] << 32 | w[2];
}

void sim_adapter_unreachable(struct sim_adapter *a, uint32_t entry)
{
	struct sim_att_entry e;

	if (!a->config.direct)
		return;
	sim_att_get(a, entry, &e);
	status_error(a, SCI_PCI_ERR_NODE, e.node,
		     (uint64_t)e.export_id << 32 | e.offset);
	adapter_settle(a);
}

static bool att_allows(const struct sim_adapter *a, const uint32_t *w,
		       bool store)
{
	uint32_t attr = w[0] >> 16;
	uint32_t never = store ? SCI_PCI_ATT_READ_ONLY | SCI_PCI_ATT_LOCK :
				 SCI_PCI_ATT_INTERRUPT;

	if (!(attr & SCI_PCI_ATT_VALID) || attr & never)
		return false;
	if (attr & SCI_PCI_ATT_NO_LOOPBACK && (uint16_t)w[0] == a->config.node)
		return false;
	return attr & SCI_PCI_ATT_INTERRUPT ||
	       (!w[3] && !(w[2] & (a->config.att_page_size - 1)));
}

/* Look up the entry of an offset in the window. Report a failure as an error of the card. */
bool att_lookup(struct sim_adapter *a, uint64_t offset, bool store,
		struct att *e)
{
	const uint32_t *w;

	if (offset >= a->window_size) {
		status_error(a, SCI_PCI_ERR_ATT, 0, offset);
		return false;
	}
	e->page = (uint32_t)(offset >> a->page_shift);
	w = a->att[e->page];
	e->node = (uint16_t)w[0];
	e->attr = (uint16_t)(w[0] >> 16);
	e->value = w[2];
	e->address = address_of(e->node, (uint16_t)w[1], w[2]);
	/* added to any value of an interrupt, the offset might change the node */
	if (!(e->attr & SCI_PCI_ATT_INTERRUPT))
		e->address += offset & (a->config.att_page_size - 1);
	if (att_allows(a, w, store))
		return true;
	if (e->attr & SCI_PCI_ATT_VALID)
		status_error(a, SCI_PCI_ERR_ATT, e->node, e->address);
	else
		status_error(a, SCI_PCI_ERR_ATT, 0, offset);
	return false;
}

void att_reset(struct sim_adapter *a)
{
	for (uint32_t b = 0; b < a->config.att_entries / ATT_BLOCK; b++) {
		uint32_t first = b * ATT_BLOCK;

		if (!a->att_used[b])
			continue;
		a->att_used[b] = 0;
		for (uint32_t i = first; i < first + ATT_BLOCK; i++) {
			bool was = att_valid(a, i);

			memset(a->att[i], 0, sizeof(a->att[i]));
			if (was && a->config.direct)
				a->host->att_changed(a->ctx, i);
		}
	}
}
