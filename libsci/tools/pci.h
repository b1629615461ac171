/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* PCI-SCI adapters on the bus, with a driver or without. */
#ifndef LIBSCI_TOOLS_PCI_H
#define LIBSCI_TOOLS_PCI_H

#include <stdbool.h>
#include <stdint.h>

#define TOOL_PCI_BARS	6

struct tool_pci_bar {
	uint64_t size;			/* 0: no such BAR */
	bool prefetchable;
	bool wide;			/* a 64-bit BAR, which takes two registers */
};

struct tool_pci_device {
	char slot[32];			/* 0000:01:00.0 */
	uint16_t vendor, device;
	uint16_t subvendor, subdevice;
	uint8_t revision;
	int numa_node;			/* -1: unknown */
	struct tool_pci_bar bars[TOOL_PCI_BARS];
	int msix;			/* number of vectors; -1: not visible to this user */
	bool msix_on;
	const char *name;
	char driver[32];		/* "": no driver is bound */
	char adapter[32];		/* sciN of the driver; "": none */
};

/*
 * tool_pci_scan() - call @fn for each adapter
 *
 * A machine without a PCI bus (containers, some architectures) has no adapters.
 */
void tool_pci_scan(void (*fn)(void *arg, const struct tool_pci_device *d),
		   void *arg);

#endif
