// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* The memory of a pool, and the module. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "sci_pool.h"

#define IVSHMEM_VENDOR		0x1af4
#define IVSHMEM_DEVICE		0x1110
#define IVSHMEM_BAR_REGISTERS	0
#define IVSHMEM_BAR_MEMORY	2
#define IVSHMEM_POSITION	8

static unsigned int node;
module_param(node, uint, 0444);
MODULE_PARM_DESC(node, "node id that this machine asks for: 4, 8, 12... (0: one that is free)");

static unsigned long phys;
module_param(phys, ulong, 0444);
MODULE_PARM_DESC(phys,
		 "physical address of a pool, which the kernel must not use itself: memmap=SIZE$ADDRESS");

static unsigned long size;
module_param(size, ulong, 0444);
MODULE_PARM_DESC(size, "size of the pool at phys, in bytes");

static unsigned int nodes = 1;
module_param(nodes, uint, 0444);
MODULE_PARM_DESC(nodes, "nodes that this machine is in each of its pools (1 to 16, default 1)");

/* ---- memory ---- */

int pool_memory_map(struct pool_memory *m, phys_addr_t start, u64 bytes)
{
	void *virt;

	m->start = start;
	m->size = bytes;
	m->map.type = MEMORY_DEVICE_GENERIC;
	m->map.range.start = start;
	m->map.range.end = start + bytes - 1;
	m->map.nr_range = 1;
	virt = memremap_pages(&m->map, NUMA_NO_NODE);
	if (IS_ERR(virt)) {
		pr_err("cannot map %#llx bytes at %pa as memory: %pe (below 4 GiB firmware makes BARs uncached: give the pool 1 GiB or more)\n",
		       bytes, &start, virt);
		return PTR_ERR(virt);
	}
	m->virt = virt;
	return 0;
}

void pool_memory_unmap(struct pool_memory *m)
{
	memunmap_pages(&m->map);
}

void pool_memory_stop(struct pool_memory *m)
{
	unsigned int i;

	for (i = 0; i < POOL_NODES_MAX; i++) {
		if (m->nodes[i])
			pool_node_destroy(m->nodes[i]);
		m->nodes[i] = NULL;
	}
}

/* Only the first node has the doorbell: the other nodes poll. */
int pool_memory_start(struct pool_memory *m, struct device *parent,
		      void __iomem *doorbells, u32 doorbell)
{
	struct pool_node *n;
	unsigned int i;

	for (i = 0; i < nodes; i++) {
		n = pool_node_create(m, parent, i, node ? node + i * POOL_NODE_STEP : 0,
				     doorbells, i ? 0 : doorbell);
		if (IS_ERR(n))
			return PTR_ERR(n);
		WRITE_ONCE(m->nodes[i], n);
	}
	return 0;
}

/* ---- ivshmem ---- */

/**
 * struct pool_ivshmem - an ivshmem device
 * @memory: the BAR of the memory
 * @registers: the BAR of the registers; NULL: the device has no interrupts
 */
struct pool_ivshmem {
	struct pool_memory memory;
	void __iomem *registers;
};

static irqreturn_t ivshmem_interrupt(int irq, void *data)
{
	struct pool_ivshmem *s = data;
	struct pool_node *n = READ_ONCE(s->memory.nodes[0]);

	if (n)
		pool_node_rung(n);
	return IRQ_HANDLED;
}

/* A device without MSI-X is ivshmem-plain: its nodes poll. */
static int ivshmem_doorbell_init(struct pci_dev *pdev, struct pool_ivshmem *s)
{
	int ret;

	if (pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_MSIX) != 1)
		return 0;
	ret = pci_request_region(pdev, IVSHMEM_BAR_REGISTERS, KBUILD_MODNAME);
	if (ret)
		goto err_vectors;
	s->registers = pci_iomap(pdev, IVSHMEM_BAR_REGISTERS, 0);
	ret = -ENOMEM;
	if (!s->registers)
		goto err_region;
	ret = request_irq(pci_irq_vector(pdev, 0), ivshmem_interrupt, 0, KBUILD_MODNAME,
			  s);
	if (ret)
		goto err_iomap;
	pci_set_master(pdev);
	return 0;

err_iomap:
	pci_iounmap(pdev, s->registers);
err_region:
	pci_release_region(pdev, IVSHMEM_BAR_REGISTERS);
err_vectors:
	pci_free_irq_vectors(pdev);
	return ret;
}

static void ivshmem_doorbell_fini(struct pci_dev *pdev, struct pool_ivshmem *s)
{
	if (!s->registers)
		return;
	free_irq(pci_irq_vector(pdev, 0), s);
	pci_iounmap(pdev, s->registers);
	pci_release_region(pdev, IVSHMEM_BAR_REGISTERS);
	pci_free_irq_vectors(pdev);
}

/* Return the number of this device among those that share the memory, plus 1. */
static u32 ivshmem_number(struct pool_ivshmem *s)
{
	return s->registers ? (readl(s->registers + IVSHMEM_POSITION) & U16_MAX) + 1 : 0;
}

/* An interrupt wakes a node, so interrupts end first. */
static void ivshmem_nodes_stop(struct pci_dev *pdev, struct pool_ivshmem *s)
{
	if (s->registers)
		disable_irq(pci_irq_vector(pdev, 0));
	pool_memory_stop(&s->memory);
}

static int ivshmem_start(struct pci_dev *pdev, struct pool_ivshmem *s)
{
	int ret;

	ret = pool_memory_map(&s->memory, pci_resource_start(pdev, IVSHMEM_BAR_MEMORY),
			      pci_resource_len(pdev, IVSHMEM_BAR_MEMORY));
	if (ret)
		return ret;
	ret = ivshmem_doorbell_init(pdev, s);
	if (ret)
		goto err_memory;
	ret = pool_memory_start(&s->memory, &pdev->dev, s->registers, ivshmem_number(s));
	if (!ret)
		return 0;
	ivshmem_nodes_stop(pdev, s);
	ivshmem_doorbell_fini(pdev, s);
err_memory:
	pool_memory_unmap(&s->memory);
	return ret;
}

static int ivshmem_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct pool_ivshmem *s = devm_kzalloc(&pdev->dev, sizeof(*s), GFP_KERNEL);
	int ret;

	if (!s)
		return -ENOMEM;
	ret = pci_enable_device(pdev);
	if (ret)
		return ret;
	ret = pci_request_region(pdev, IVSHMEM_BAR_MEMORY, KBUILD_MODNAME);
	if (ret)
		goto err_disable;
	pci_set_drvdata(pdev, s);
	ret = ivshmem_start(pdev, s);
	if (ret)
		goto err_region;
	return 0;

err_region:
	pci_release_region(pdev, IVSHMEM_BAR_MEMORY);
err_disable:
	pci_disable_device(pdev);
	/* the shared memory of this device has another use */
	if (ret == -ENODATA) {
		pci_info(pdev, "its memory is no pool (`sci pool format` makes one)\n");
		ret = -ENODEV;
	}
	return ret;
}

static void ivshmem_remove(struct pci_dev *pdev)
{
	struct pool_ivshmem *s = pci_get_drvdata(pdev);

	ivshmem_nodes_stop(pdev, s);
	ivshmem_doorbell_fini(pdev, s);
	pool_memory_unmap(&s->memory);
	pci_release_region(pdev, IVSHMEM_BAR_MEMORY);
	pci_disable_device(pdev);
}

static const struct pci_device_id ivshmem_ids[] = {
	{ PCI_DEVICE(IVSHMEM_VENDOR, IVSHMEM_DEVICE) },
	{ }
};
MODULE_DEVICE_TABLE(pci, ivshmem_ids);

static struct pci_driver ivshmem_driver = {
	.name = KBUILD_MODNAME,
	.id_table = ivshmem_ids,
	.probe = ivshmem_probe,
	.remove = ivshmem_remove,
};

/* ---- a range of physical memory ---- */

static struct pool_memory phys_memory;

static void phys_stop(void)
{
	if (!phys)
		return;
	pool_memory_stop(&phys_memory);
	pool_memory_unmap(&phys_memory);
}

static int __init phys_start(void)
{
	int ret;

	if (!phys)
		return 0;
	ret = pool_memory_map(&phys_memory, phys, size);
	if (ret)
		return ret;
	ret = pool_memory_start(&phys_memory, NULL, NULL, 0);
	if (ret)
		phys_stop();
	return ret;
}

/* ---- module ---- */

static int __init pool_check_params(void)
{
	if (node % POOL_NODE_STEP || node > POOL_NODE_STEP * POOL_SLOTS_MAX) {
		pr_err("node=%u is not a multiple of 4 up to 256\n", node);
		return -EINVAL;
	}
	if (!nodes || nodes > POOL_NODES_MAX) {
		pr_err("nodes=%u is not between 1 and 16\n", nodes);
		return -EINVAL;
	}
	if (phys && (!IS_ALIGNED(phys, SZ_2M) || !IS_ALIGNED(size, SZ_2M) || !size)) {
		pr_err("phys=%#lx size=%#lx: not whole pieces of 2 MiB\n", phys, size);
		return -EINVAL;
	}
	if (!IS_ALIGNED(sci_pool_check, SZ_2M)) {
		pr_err("check=%#lx is not a multiple of 2 MiB\n", sci_pool_check);
		return -EINVAL;
	}
	return 0;
}

static int __init sci_pool_init(void)
{
	int ret = pool_check_params();

	if (ret)
		return ret;
	ret = phys_start();
	if (ret)
		return ret;
	ret = pci_register_driver(&ivshmem_driver);
	if (ret)
		goto err_phys;
	ret = pool_nvdimm_init();
	if (ret)
		goto err_pci;
	return 0;

err_pci:
	pci_unregister_driver(&ivshmem_driver);
err_phys:
	phys_stop();
	return ret;
}

static void __exit sci_pool_exit(void)
{
	pool_nvdimm_exit();
	pci_unregister_driver(&ivshmem_driver);
	phys_stop();
}

module_init(sci_pool_init);
module_exit(sci_pool_exit);
MODULE_AUTHOR("The libsci authors");
MODULE_DESCRIPTION("SCI adapters over memory that several machines map");
MODULE_LICENSE("GPL");
