// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* sysfs: /sys/class/sci/sciN. A stable interface, documented in sysfs-class-sci. */

#include <linux/sysfs.h>

#include "att.h"
#include "core.h"

#define ADAPTER_SHOW(_name, _fmt, _value)				\
static ssize_t _name##_show(struct device *dev,				\
			    struct device_attribute *attr, char *buf)	\
{									\
	struct sci_adapter *a = sci_adapter_of_device(dev);			\
									\
	return sysfs_emit(buf, _fmt "\n", _value);			\
}									\
static DEVICE_ATTR_RO(_name)

static ssize_t abi_version_show(struct device *dev,
				struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", SCI_ABI_VERSION);
}
static DEVICE_ATTR_RO(abi_version);

ADAPTER_SHOW(node_id, "%u", a->desc.node);
ADAPTER_SHOW(type, "%s", a->desc.type);
ADAPTER_SHOW(serial, "%llu", a->desc.serial);
ADAPTER_SHOW(users, "%d", atomic_read(&a->users));
ADAPTER_SHOW(max_segment, "%llu", a->desc.max_segment);

static struct attribute *adapter_attrs[] = {
	&dev_attr_node_id.attr,
	&dev_attr_type.attr,
	&dev_attr_serial.attr,
	&dev_attr_users.attr,
	&dev_attr_abi_version.attr,
	&dev_attr_max_segment.attr,
	NULL
};

static const struct attribute_group adapter_group = {
	.attrs = adapter_attrs,
};

/* ---- link/ ---- */

ADAPTER_SHOW(state, "%s", READ_ONCE(a->link_up) ? "up" : "down");
ADAPTER_SHOW(up_ms, "%llu", sci_adapter_link_up_ms(a));
ADAPTER_SHOW(down_ms, "%llu", sci_adapter_link_down_ms(a));

static struct attribute *link_attrs[] = {
	&dev_attr_state.attr,
	&dev_attr_up_ms.attr,
	&dev_attr_down_ms.attr,
	NULL
};

static const struct attribute_group link_group = {
	.name = "link",
	.attrs = link_attrs,
};

/* ---- att/ ---- */

static struct sci_att_stats att_stats(struct sci_adapter *a)
{
	struct sci_att_stats st = {};

	if (a->desc.att)
		sci_att_stats(a->desc.att, &st);
	return st;
}

ADAPTER_SHOW(entries, "%u", att_stats(a).entries);
ADAPTER_SHOW(used, "%u", att_stats(a).used);
ADAPTER_SHOW(largest_free, "%u", att_stats(a).largest_free);
ADAPTER_SHOW(page_size, "%u", a->desc.att_page_size);

static struct attribute *att_attrs[] = {
	&dev_attr_entries.attr,
	&dev_attr_used.attr,
	&dev_attr_largest_free.attr,
	&dev_attr_page_size.attr,
	NULL
};

static const struct attribute_group att_group = {
	.name = "att",
	.attrs = att_attrs,
};

/* ---- counters/ ---- */

#define COUNTER(_name, _index)						\
	ADAPTER_SHOW(_name, "%lld", (long long)				\
		     atomic64_read(&a->counters[_index]))

ADAPTER_SHOW(errors, "%u", sci_adapter_errors(a));
ADAPTER_SHOW(fatal, "%u", sci_adapter_fatal(a));
COUNTER(ctrl_sent, SCI_COUNT_CTRL_SENT);
COUNTER(ctrl_received, SCI_COUNT_CTRL_RECEIVED);
COUNTER(ctrl_resent, SCI_COUNT_CTRL_RESENT);
COUNTER(ctrl_bad, SCI_COUNT_CTRL_BAD);
COUNTER(imports, SCI_COUNT_IMPORTS);
COUNTER(revoked, SCI_COUNT_REVOKED);
COUNTER(att_full, SCI_COUNT_ATT_FULL);
COUNTER(triggers_sent, SCI_COUNT_TRIGGERS_SENT);
COUNTER(triggers_received, SCI_COUNT_TRIGGERS_RECEIVED);
COUNTER(dma_bytes, SCI_COUNT_DMA_BYTES);
COUNTER(dma_errors, SCI_COUNT_DMA_ERRORS);
COUNTER(link_downs, SCI_COUNT_LINK_DOWNS);

static struct attribute *counter_attrs[] = {
	&dev_attr_errors.attr,
	&dev_attr_fatal.attr,
	&dev_attr_ctrl_sent.attr,
	&dev_attr_ctrl_received.attr,
	&dev_attr_ctrl_resent.attr,
	&dev_attr_ctrl_bad.attr,
	&dev_attr_imports.attr,
	&dev_attr_revoked.attr,
	&dev_attr_att_full.attr,
	&dev_attr_triggers_sent.attr,
	&dev_attr_triggers_received.attr,
	&dev_attr_dma_bytes.attr,
	&dev_attr_dma_errors.attr,
	&dev_attr_link_downs.attr,
	NULL
};

static const struct attribute_group counter_group = {
	.name = "counters",
	.attrs = counter_attrs,
};

const struct attribute_group *sci_adapter_groups[] = {
	&adapter_group,
	&link_group,
	&att_group,
	&counter_group,
	NULL
};
