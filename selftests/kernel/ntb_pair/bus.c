// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/*
 * A PCI bus in software. Its domain has two functions: function 0 of slots 0 and 1
 * are the bridges. They have a command register, but no BARs and no interrupts.
 */

#include "pair.h"

#define PAIR_DOMAIN	0x5c1
#define CONFIG_DWORDS	(256 / 4)

static u32 pair_config[2][CONFIG_DWORDS];
static struct pci_sysdata pair_sysdata = { .domain = PAIR_DOMAIN, .node = NUMA_NO_NODE };
static struct pci_bus *pair_bus;

static u32 *pair_config_of(struct pci_bus *bus, unsigned int devfn, int where)
{
	if (bus->number || PCI_SLOT(devfn) > 1 || PCI_FUNC(devfn) || where >= 256)
		return NULL;
	return &pair_config[PCI_SLOT(devfn)][where / 4];
}

static int pair_config_read(struct pci_bus *bus, unsigned int devfn, int where,
			    int size, u32 *val)
{
	const u32 *dword = pair_config_of(bus, devfn, where);
	u32 mask = size == 4 ? U32_MAX : BIT(8 * size) - 1;

	*val = dword ? *dword >> 8 * (where % 4) & mask : mask;
	return PCIBIOS_SUCCESSFUL;
}

/* Write the command register; ignore all other registers. */
static int pair_config_write(struct pci_bus *bus, unsigned int devfn, int where,
			     int size, u32 val)
{
	u32 *dword = pair_config_of(bus, devfn, where);

	if (dword && where == PCI_COMMAND)
		*dword = val & (PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops pair_config_ops = {
	.read = pair_config_read,
	.write = pair_config_write,
};

int pair_bus_create(void)
{
	LIST_HEAD(resources);
	int i;

	for (i = 0; i < 2; i++) {
		pair_config[i][PCI_VENDOR_ID / 4] = PAIR_DEVICE << 16 | PAIR_VENDOR;
		pair_config[i][PCI_CLASS_REVISION / 4] = PCI_CLASS_BRIDGE_OTHER << 16;
	}
	pci_lock_rescan_remove();
	pair_bus = pci_scan_root_bus(NULL, 0, &pair_config_ops, &pair_sysdata,
				     &resources);
	if (pair_bus)
		pci_bus_add_devices(pair_bus);
	pci_unlock_rescan_remove();
	return pair_bus ? 0 : -ENOMEM;
}

void pair_bus_destroy(void)
{
	struct pci_host_bridge *bridge = to_pci_host_bridge(pair_bus->bridge);

	pci_lock_rescan_remove();
	pci_stop_root_bus(pair_bus);
	pci_remove_root_bus(pair_bus);
	pci_unlock_rescan_remove();
	pci_free_host_bridge(bridge);
}
