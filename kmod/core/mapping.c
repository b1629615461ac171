// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Mappings of other nodes' memory, shared by importers of the same memory. */

#include <linux/math64.h>
#include <linux/slab.h>

#include "att.h"
#include "import.h"
#include "retire.h"
#include "trace.h"
#include "user.h"

static struct sci_mapping *mapping_find_covering(struct sci_adapter *a,
						 u32 node, u64 base, u64 first,
						 u64 end)
{
	struct sci_mapping *m;

	list_for_each_entry(m, &a->mappings, link)
		if (m->node == node && m->base == base && m->offset <= first &&
		    m->offset + m->length >= end)
			return m;
	return NULL;
}

static u64 mapping_first(const struct sci_adapter *a, u64 offset)
{
	return round_down(offset, (u64)a->desc.att_page_size);
}

static u64 mapping_end(const struct sci_adapter *a, u64 offset, u64 length)
{
	return round_up(offset + length, (u64)a->desc.att_page_size);
}

void sci_mapping_report_full(struct sci_adapter *a, u32 node, u64 offset, u64 length)
{
	u64 bytes = mapping_end(a, offset, length) - mapping_first(a, offset);
	struct sci_att_stats st = {};

	if (a->desc.att)
		sci_att_stats(a->desc.att, &st);
	sci_count(a, SCI_COUNT_ATT_FULL, 1);
	trace_sci_att_full(a, node, div_u64(bytes, a->desc.att_page_size),
			   st.largest_free, st.used);
}

static u64 mapping_entries(const struct sci_mapping *m)
{
	return div_u64(m->length, m->adapter->desc.att_page_size);
}

static struct sci_mapping *mapping_new(struct sci_adapter *a, u32 node,
				       u64 base, u64 first, u64 end)
{
	struct sci_mapping *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!m)
		return ERR_PTR(-ENOMEM);
	m->adapter = a;
	m->node = node;
	m->base = base;
	m->offset = first;
	m->length = end - first;
	m->charged = sci_user_charge(a, SCI_USER_ENTRIES, mapping_entries(m));
	if (IS_ERR(m->charged)) {
		ret = PTR_ERR(m->charged);
		goto err_free;
	}
	ret = a->desc.ops->map(a, m);
	if (ret)
		goto err_uncharge;
	list_add(&m->link, &a->mappings);
	return m;

err_uncharge:
	sci_user_uncharge(a, m->charged, SCI_USER_ENTRIES, mapping_entries(m));
err_free:
	kfree(m);
	/* -ENOENT: the exporter has hidden the memory, and its CUT message is in flight */
	return ERR_PTR(ret == -ENOENT ? -ENOTCONN : ret);
}

struct sci_mapping *sci_mapping_get(struct sci_adapter *a, u32 node, u32 id,
				    u64 base, u64 offset, u64 length)
{
	u64 first = mapping_first(a, offset);
	u64 end = mapping_end(a, offset, length);
	struct sci_mapping *m;

	lockdep_assert_held(&a->lock);
	m = mapping_find_covering(a, node, base, first, end);
	trace_sci_map(a, node, id, offset, length, m);
	if (!m)
		m = mapping_new(a, node, base, first, end);
	if (!IS_ERR(m))
		m->users++;
	return m;
}

void sci_mapping_put(struct sci_mapping *m)
{
	struct sci_adapter *a = m->adapter;

	lockdep_assert_held(&a->lock);
	if (--m->users)
		return;
	trace_sci_unmap(a, m->node, m->offset, m->length);
	list_del(&m->link);
	sci_user_uncharge(a, m->charged, SCI_USER_ENTRIES, mapping_entries(m));
	sci_retire_mapping(m);
}
