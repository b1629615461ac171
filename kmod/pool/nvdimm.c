// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/*
 * Pools in namespaces of NVDIMMs and of persistent CXL memory.
 *
 * The driver takes namespaces that no other driver has: nd_pmem takes each namespace when it is
 * loaded first, and root unbinds the namespace from nd_pmem.  The bus of device DAX is
 * private to the kernel's own drivers: its header is not among the kernel's headers.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ioport.h>
#include <linux/nd.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "sci_pool.h"

static int nvdimm_start(struct device *dev, struct pool_memory *m,
			const struct resource *res)
{
	int ret = pool_memory_map(m, res->start, resource_size(res));

	if (ret)
		return ret;
	ret = pool_memory_start(m, dev, NULL, 0);
	if (!ret)
		return 0;
	pool_memory_stop(m);
	pool_memory_unmap(m);
	if (ret != -ENODATA)
		return ret;
	/* the namespace has another use */
	dev_info(dev, "its memory is no pool (`sci pool format` makes one)\n");
	return -ENODEV;
}

static int nvdimm_probe(struct device *dev)
{
	const struct resource *res;
	struct pool_memory *m;
	int ret;

	/* the bus has other devices of the same types, for example btt0.0 and pfn0.0 */
	if (!strstarts(dev_name(dev), "namespace") || to_ndns(dev)->claim)
		return -ENODEV;
	res = &container_of(to_ndns(dev), struct nd_namespace_io, common)->res;
	/* the bus also has a namespace without memory, for the next `ndctl create-namespace` */
	if (resource_size(res) < SZ_2M)
		return -ENODEV;
	if (!IS_ALIGNED(res->start, SZ_2M) || !IS_ALIGNED(resource_size(res), SZ_2M)) {
		dev_err(dev, "%pR: not whole pieces of 2 MiB\n", res);
		return -EINVAL;
	}
	m = devm_kzalloc(dev, sizeof(*m), GFP_KERNEL);
	if (!m)
		return -ENOMEM;
	if (!devm_request_mem_region(dev, res->start, resource_size(res), dev_name(dev)))
		return -EBUSY;
	ret = nvdimm_start(dev, m, res);
	if (!ret)
		dev_set_drvdata(dev, m);
	return ret;
}

static void nvdimm_remove(struct device *dev)
{
	struct pool_memory *m = dev_get_drvdata(dev);

	pool_memory_stop(m);
	pool_memory_unmap(m);
}

static struct nd_device_driver nvdimm_driver = {
	.drv.name = KBUILD_MODNAME,
	.type = ND_DRIVER_NAMESPACE_IO | ND_DRIVER_NAMESPACE_PMEM,
	.probe = nvdimm_probe,
	.remove = nvdimm_remove,
};

int __init pool_nvdimm_init(void)
{
	return nd_driver_register(&nvdimm_driver);
}

void pool_nvdimm_exit(void)
{
	nd_driver_unregister(&nvdimm_driver);
}
