// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/*
 * Counters of the card. The files in sysfs adapter/ are stable: sysfs-class-sci documents them.
 * debugfs has the same counters in one file, and the ATT.
 */

#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/sysfs.h>

#include "pci.h"

static const char *const counter_names[] = { SCI_PCI_COUNTER_NAMES };

static_assert(ARRAY_SIZE(counter_names) == SCI_PCI_COUNTERS_COUNT);

/* Read a counter: the lower half first, and the upper half again if there was a carry. */
static u64 counter_read(struct sci_pci *p, unsigned int i)
{
	u32 reg = SCI_PCI_COUNTERS + 8 * i;
	u32 low = sci_pci_read(p, reg);
	u32 high = sci_pci_read(p, reg + 4);
	u32 again = sci_pci_read(p, reg);

	if (again < low)
		high = sci_pci_read(p, reg + 4);
	return (u64)high << 32 | again;
}

/* ---- sysfs ---- */

static struct device_attribute counter_attrs[SCI_PCI_COUNTERS_COUNT];
static struct attribute *counter_list[SCI_PCI_COUNTERS_COUNT + 1];

static const struct attribute_group counter_group = {
	.name = "adapter",
	.attrs = counter_list,
};

const struct attribute_group *sci_pci_groups[] = {
	&counter_group,
	NULL
};

static ssize_t counter_show(struct device *dev, struct device_attribute *attr,
			    char *buf)
{
	struct sci_pci *p = sci_adapter_priv(sci_adapter_of_device(dev));

	if (sci_pci_is_broken(p))
		return -EIO;
	return sysfs_emit(buf, "%llu\n", counter_read(p, attr - counter_attrs));
}

void __init sci_pci_show_init(void)
{
	int i;

	for (i = 0; i < SCI_PCI_COUNTERS_COUNT; i++) {
		struct device_attribute *da = &counter_attrs[i];

		da->attr.name = counter_names[i];
		da->attr.mode = 0444;
		da->show = counter_show;
		counter_list[i] = &da->attr;
	}
}

/* ---- debugfs ---- */

static int card_show(struct seq_file *m, void *unused)
{
	struct sci_pci *p = m->private;
	int i;

	for (i = 0; i < SCI_PCI_COUNTERS_COUNT; i++)
		seq_printf(m, "%s %llu\n", counter_names[i],
			   counter_read(p, i));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(card);

static const struct {
	const char *name;
	u32 reg;
} registers[] = {
	{ "features", SCI_PCI_FEATURES },
	{ "control", SCI_PCI_CONTROL },
	{ "status", SCI_PCI_STATUS },
	{ "int_status", SCI_PCI_INT_STATUS },
	{ "int_mask", SCI_PCI_INT_MASK },
	{ "timeout_us", SCI_PCI_TIMEOUT_US },
	{ "retries", SCI_PCI_RETRIES },
	{ "gather_ns", SCI_PCI_GATHER_NS },
	{ "rx_head", SCI_PCI_RX_HEAD },
	{ "dma_tail", SCI_PCI_DMA_TAIL },
	{ "dma_head", SCI_PCI_DMA_HEAD },
	{ "error_code", SCI_PCI_ERROR_CODE },
	{ "error_node", SCI_PCI_ERROR_NODE },
	{ "error_address", SCI_PCI_ERROR_ADDRESS },
	{ "error_export", SCI_PCI_ERROR_ADDRESS + 4 },
	{ "errors", SCI_PCI_USER_ERRORS },
	{ "down", SCI_PCI_USER_DOWN },
	{ "fatal", SCI_PCI_USER_FATAL },
	{ "done", SCI_PCI_USER_DONE },
	{ "mbox_free", SCI_PCI_MBOX_FREE },
	{ "cmd_status", SCI_PCI_CMD_STATUS },
};

static int registers_show(struct seq_file *m, void *unused)
{
	struct sci_pci *p = m->private;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(registers); i++)
		seq_printf(m, "%s %#x\n", registers[i].name,
			   sci_pci_read(p, registers[i].reg));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(registers);

/* Print the ATT of the card. The file att shows the core's allocations in the ATT. */
static void *table_start(struct seq_file *m, loff_t *pos)
{
	struct sci_pci *p = m->private;

	return *pos < p->att_entries ? pos : NULL;
}

static void *table_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return table_start(m, pos);
}

static void table_stop(struct seq_file *m, void *v)
{
}

static int table_show(struct seq_file *m, void *v)
{
	struct sci_pci *p = m->private;
	u32 entry = *(loff_t *)v;
	void __iomem *e = p->att + (size_t)entry * SCI_PCI_ATT_ENTRY_SIZE;
	u32 word = readl(e + SCI_PCI_ATT_NODE);

	if (!(word >> 16 & SCI_PCI_ATT_VALID))
		return SEQ_SKIP;
	seq_printf(m, "%u node %u export %#x offset %#x%08x attributes %#x\n",
		   entry, word & U16_MAX,
		   readl(e + SCI_PCI_ATT_EXPORT) & U16_MAX,
		   readl(e + SCI_PCI_ATT_OFFSET + 4),
		   readl(e + SCI_PCI_ATT_OFFSET), word >> 16);
	return 0;
}

static const struct seq_operations table_sops = {
	.start = table_start,
	.next = table_next,
	.stop = table_stop,
	.show = table_show,
};
DEFINE_SEQ_ATTRIBUTE(table);

void sci_pci_debugfs_add(struct sci_pci *p)
{
	struct dentry *dir = sci_adapter_debugfs(p->adapter);

	debugfs_create_file("card", 0400, dir, p, &card_fops);
	debugfs_create_file("registers", 0400, dir, p, &registers_fops);
	debugfs_create_file("att_table", 0400, dir, p, &table_fops);
}
