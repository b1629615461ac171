/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: ntb_pair.ko: two non-transparent bridges in one kernel, for tests
 *
 *	pair.c		the bridges behind the kernel's NTB API, and the module
 *	bus.c		a PCI bus in software, with one function for each bridge
 *	window.c	memory windows of the bridges, and DMA operations of the functions
 *
 * An action of one bridge reaches the other bridge's client as from hardware:
 * doorbells, messages and link events come in hard interrupt context, a masked
 * doorbell waits, and a message to a full register is refused.
 *
 * A window in software can't lead to any memory that a client names: its physical
 * address is that of the inbound buffer.  So the DMA operations of a function
 * allocate the memory behind one of its inbound windows: the window whose alignment
 * the client has asked for last.  A translation to another address is refused.
 * ntb_perf asks for one window and translates the other; `other=1` is for it.
 * Bus addresses are not physical addresses: a client that mixes them up fails.
 */
#ifndef NTB_PAIR_H
#define NTB_PAIR_H

#include <linux/irq_work.h>
#include <linux/ntb.h>
#include <linux/pci.h>

#define PAIR_VENDOR	0xfffe
#define PAIR_DEVICE	0x5c1
#define PAIR_WINDOWS	4	/* at most */
#define PAIR_SPADS	16
#define PAIR_MSGS	4
#define PAIR_DB_MASK	GENMASK_ULL(15, 0)

/**
 * struct pair_window - an inbound window
 * @page: first page of its memory
 * @bus: bus address of that memory
 * @taken: the client has allocated it
 * @translated: the client has set the translation
 */
struct pair_window {
	struct page *page;
	dma_addr_t bus;
	bool taken;
	bool translated;
};

/**
 * struct pair_bridge - one of the two bridges
 * @ntb: the API's; registered while @pdev has a driver
 * @peer: the other bridge
 * @pdev: its PCI function
 * @window: its inbound windows
 * @asked: inbound window that the client has asked for the alignment of
 * @enabled: the client has enabled the link
 * @spad: scratchpads
 * @msg: inbound messages
 * @sts: messages: bit N: register N is full; bit PAIR_MSGS + N: a message to the
 *	peer's register N was refused
 * @sts_mask: masked bits of @sts
 * @db: doorbells that were rung
 * @db_mask: masked bits of @db
 * @db_irq, @msg_irq, @link_irq: the interrupts
 */
struct pair_bridge {
	struct ntb_dev ntb;
	struct pair_bridge *peer;
	struct pci_dev *pdev;
	struct pair_window window[PAIR_WINDOWS];
	unsigned int asked;
	bool enabled;
	u32 spad[PAIR_SPADS];
	u32 msg[PAIR_MSGS];
	u64 sts;
	u64 sts_mask;
	u64 db;
	u64 db_mask;
	struct irq_work db_irq;
	struct irq_work msg_irq;
	struct irq_work link_irq;
};

/* Calls that parameter `fail` lets fail. */
enum pair_call {
	PAIR_MEMORY	= 1,
	PAIR_ALIGN	= 2,
	PAIR_OPEN	= 4,
	PAIR_CLOSE	= 8,
};

extern struct pair_bridge pair_bridges[2];
extern spinlock_t pair_lock;		/* protects all that changes in the bridges */

/* ---- pair.c ---- */

/* Return whether @call must fail, and count the failure. */
bool pair_fails(enum pair_call call);

/* ---- bus.c ---- */

int pair_bus_create(void);
void pair_bus_destroy(void);

/* ---- window.c ---- */

extern unsigned int pair_windows;
extern unsigned long pair_window_size;
extern bool pair_other;
extern unsigned int pair_fail;
extern unsigned int pair_failed;
extern unsigned int pair_taken;

int pair_windows_create(void);
void pair_windows_destroy(void);

/* Return the physical address of an inbound window. */
static inline phys_addr_t pair_window_phys(const struct pair_window *w)
{
	return page_to_phys(w->page);
}

extern const struct dma_map_ops pair_dma_ops;

#endif
