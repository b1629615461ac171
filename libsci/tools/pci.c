// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include <dirent.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <pci/pci.h>

#include "kmod/pci/regs.h"
#include "pci.h"

#define SYSFS		"/sys/bus/pci/devices"
#define ANY		0xffff		/* stands for all device ids */
#define MSIX_CONTROL	2		/* offset of the control word in the capability */

/* Known adapters. The first entry that matches a device names it. */
static const struct {
	uint16_t vendor, device;
	const char *name;
} ids[] = {
	{ 0x11c8, 0x0658, "Dolphin PCI-SCI adapter D31x (PSB32)" },
	{ 0x11c8, 0xd665, "Dolphin PCI-SCI adapter D32x (PSB64)" },
	{ 0x11c8, 0xd667, "Dolphin PCI-SCI adapter D33x (PSB66)" },
	{ 0x11c8, ANY, "Dolphin adapter" },
	{ SCI_PCI_VENDOR, SCI_PCI_DEVICE, "PCI-SCI adapter of libsci" },
};

#define N_IDS		(sizeof(ids) / sizeof(ids[0]))

static jmp_buf failed;

/* Print an error of libpci and exit: libpci does not expect a return. */
static void __attribute__((noreturn, format(printf, 1, 2)))
scan_failed(char *fmt, ...)
{
	(void)fmt;
	longjmp(failed, 1);
}

static void __attribute__((format(printf, 1, 2))) scan_remark(char *fmt, ...)
{
	(void)fmt;
}

static const char *id_name(uint16_t vendor, uint16_t device)
{
	size_t i;

	for (i = 0; i < N_IDS; i++)
		if (ids[i].vendor == vendor &&
		    (ids[i].device == device || ids[i].device == ANY))
			return ids[i].name;
	return NULL;
}

static void driver_find(struct tool_pci_device *d)
{
	char path[96], target[256];
	const char *base;
	ssize_t n;

	snprintf(path, sizeof(path), SYSFS "/%s/driver", d->slot);
	n = readlink(path, target, sizeof(target) - 1);
	d->driver[0] = '\0';
	if (n <= 0)
		return;
	target[n] = '\0';
	base = strrchr(target, '/');
	snprintf(d->driver, sizeof(d->driver), "%.31s",
		 base ? base + 1 : target);
}

/* Find the device of class sci, whose directory is in the directory of the PCI device. */
static void adapter_find(struct tool_pci_device *d)
{
	const struct dirent *e;
	char path[96];
	DIR *dir;

	snprintf(path, sizeof(path), SYSFS "/%s/sci", d->slot);
	dir = opendir(path);
	while (dir && !d->adapter[0] && (e = readdir(dir)))
		if (!strncmp(e->d_name, "sci", 3))
			snprintf(d->adapter, sizeof(d->adapter), "%.31s",
				 e->d_name);
	if (dir)
		closedir(dir);
}

static void bars_describe(const struct pci_dev *p, struct tool_pci_device *d)
{
	int i;

	for (i = 0; i < TOOL_PCI_BARS; i++) {
		d->bars[i].size = p->size[i];
		d->bars[i].prefetchable = p->base_addr[i] &
					  PCI_BASE_ADDRESS_MEM_PREFETCH;
		d->bars[i].wide = (p->base_addr[i] &
				   PCI_BASE_ADDRESS_MEM_TYPE_MASK) ==
				  PCI_BASE_ADDRESS_MEM_TYPE_64;
	}
}

/* Read MSI-X. Users other than root read zeros from most of the configuration space. */
static void msix_describe(struct pci_dev *p, struct tool_pci_device *d)
{
	const struct pci_cap *cap = pci_find_cap(p, PCI_CAP_ID_MSIX,
						 PCI_CAP_NORMAL);
	unsigned int flags;

	d->msix = -1;
	if (!cap)
		return;
	flags = pci_read_word(p, (int)cap->addr + MSIX_CONTROL);
	d->msix = (int)(flags & PCI_MSIX_TABSIZE) + 1;
	d->msix_on = flags & PCI_MSIX_ENABLE;
}

static void pci_describe(struct pci_dev *p, const char *name, struct tool_pci_device *d)
{
	memset(d, 0, sizeof(*d));
	snprintf(d->slot, sizeof(d->slot), "%04x:%02x:%02x.%x",
		 (unsigned int)p->domain, p->bus, p->dev, p->func);
	d->vendor = p->vendor_id;
	d->device = p->device_id;
	d->subvendor = pci_read_word(p, PCI_SUBSYSTEM_VENDOR_ID);
	d->subdevice = pci_read_word(p, PCI_SUBSYSTEM_ID);
	d->revision = pci_read_byte(p, PCI_REVISION_ID);
	d->numa_node = p->numa_node;
	d->name = name;
	bars_describe(p, d);
	msix_describe(p, d);
	driver_find(d);
	adapter_find(d);
}

void tool_pci_scan(void (*fn)(void *arg, const struct tool_pci_device *d),
		   void *arg)
{
	struct pci_access *volatile bus = NULL;
	struct tool_pci_device d;
	struct pci_dev *p;
	const char *name;

	if (access(SYSFS, R_OK | X_OK))
		return;
	if (setjmp(failed))
		goto out;
	bus = pci_alloc();
	bus->error = scan_failed;
	bus->warning = scan_remark;
	bus->debug = scan_remark;
	bus->method = PCI_ACCESS_SYS_BUS_PCI;
	pci_init(bus);
	pci_scan_bus(bus);
	for (p = bus->devices; p; p = p->next) {
		pci_fill_info(p, PCI_FILL_IDENT | PCI_FILL_NUMA_NODE |
				 PCI_FILL_BASES | PCI_FILL_SIZES |
				 PCI_FILL_CAPS);
		name = id_name(p->vendor_id, p->device_id);
		if (!name)
			continue;
		pci_describe(p, name, &d);
		fn(arg, &d);
	}
out:
	if (bus)
		pci_cleanup(bus);
}
