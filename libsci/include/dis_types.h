/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Types that the SISCI headers share with other DIS interfaces. */
#ifndef _DIS_TYPES_H_
#define _DIS_TYPES_H_

#define DIS_MAX_NSCIS		16	/* adapter numbers are 0..15 */
#define DIS_MAX_NODEIDS		32	/* entries of a dis_nodeId_list_t, with the 0 */

/* The node ids of an adapter name, ended by a 0. */
typedef unsigned int dis_nodeId_list_t[DIS_MAX_NODEIDS];

/* The kind of card or bus of an adapter; SCIGetAdapterTypeString() names it. */
typedef enum dis_adapter_type {
	DIS_ADAPTER_UNKNOWN	= 0,
	DIS_ADAPTER_SHM		= 1,	/* processes of one host */
	DIS_ADAPTER_LOOP	= 2,	/* virtual nodes in one kernel */
	DIS_ADAPTER_PCI_SCI	= 3	/* a PCI-SCI adapter */
} dis_adapter_type_t;

typedef dis_adapter_type_t dis_virt_adapter_t;

#endif
