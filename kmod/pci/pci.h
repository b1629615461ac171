/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: sci_pci.ko: PCI-SCI adapters
 *
 * sim/adapter/DATASHEET.md describes the adapters; regs.h has its numbers.
 *
 *	pci.c		the bus: probe, removal, power, errors
 *	card.c	properties of a card; up and down
 *	irq.c	interrupts, link
 *	ring.c	control packets: receive ring, mailbox
 *	cmd.c	store barrier; commands, remote interrupts
 *	export.c	memory that other nodes reach: export table
 *	map.c	memory that this node reaches: address translation table, window
 *	dma.c	descriptor ring
 *	show.c	counters: sysfs, debugfs
 *
 * A card is up or down.  While it is up it has a struct sci_adapter, a new one each
 * time.  To take a card down, the driver first ends all objects that users have of
 * the adapter, then resets the card, and then frees the memory that the card could reach.
 *
 * The driver does not trust the card.  It checks the card's registers when the card comes
 * up, and checks memory that the card has written when it reads the memory.  Each wait for
 * the card has a time limit.  A card fails if it does not answer in time, or reads as ones
 * because it has been pulled out.  sci_pci_fail() then resets the card at once, so that the
 * memory that it could reach can be freed, and takes it down from a work.
 */
#ifndef SCI_PCI_H
#define SCI_PCI_H

#include <linux/completion.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "core/adapter.h"
#include "regs.h"

#define SCI_PCI_DMA_ENTRIES_USED	128	/* entries of the descriptor ring */

/**
 * struct sci_pci_rx - entry of the receive ring (data sheet, section 10)
 * @turn: number of the entry, which the card writes last
 * @kind: SCI_PCI_RX_MAILBOX, SCI_PCI_RX_INTERRUPT or SCI_PCI_RX_RETURNED
 * @source: sending node; returned packet: the node that does not exist
 * @value: interrupt: the raised value
 * @zero: 0
 * @data: mailbox, returned packet: the packet
 * @unused: not written
 */
struct sci_pci_rx {
	__le32 turn;
	__le16 kind;
	__le16 source;
	__le32 value;
	__le32 zero;
	u8 data[SCI_PCI_MBOX_SIZE];
	u8 unused[48];
};

static_assert(sizeof(struct sci_pci_rx) == SCI_PCI_RX_ENTRY_SIZE);
static_assert(offsetof(struct sci_pci_rx, kind) == SCI_PCI_RX_KIND);
static_assert(offsetof(struct sci_pci_rx, source) == SCI_PCI_RX_SOURCE);
static_assert(offsetof(struct sci_pci_rx, value) == SCI_PCI_RX_VALUE);
static_assert(offsetof(struct sci_pci_rx, data) == SCI_PCI_RX_DATA);
static_assert(SCI_PCI_MBOX_SIZE == SCI_PACKET_SIZE);

/**
 * struct sci_pci_entry - entry of the export table (data sheet, section 7)
 * @id_flags: export id and, in the upper half, SCI_PCI_EXPORT_VALID and other flags
 * @reserved: 0
 * @length: bytes of the exported memory
 * @root: bus address of the root of the lists of pages
 * @reserved2: 0
 */
struct sci_pci_entry {
	__le32 id_flags;
	__le32 reserved;
	__le64 length;
	__le64 root;
	__le64 reserved2;
};

static_assert(sizeof(struct sci_pci_entry) == SCI_PCI_EXPORT_ENTRY_SIZE);
static_assert(offsetof(struct sci_pci_entry, id_flags) == SCI_PCI_EXPORT_ID);
static_assert(sizeof(__le16) == SCI_PCI_EXPORT_FLAGS);
static_assert(offsetof(struct sci_pci_entry, length) == SCI_PCI_EXPORT_LENGTH);
static_assert(offsetof(struct sci_pci_entry, root) == SCI_PCI_EXPORT_ROOT);

/**
 * struct sci_pci_desc - DMA descriptor (data sheet, section 13)
 * @local: bus address of the local memory
 * @remote: export id << 32 | offset of the remote memory
 * @length: bytes
 * @node: node of the remote memory
 * @flags: SCI_PCI_DESC_PULL and other flags
 * @status: 0 until the card has executed the descriptor
 * @done: bytes copied
 * @unused: free for the driver
 */
struct sci_pci_desc {
	__le64 local;
	__le64 remote;
	__le32 length;
	__le16 node;
	__le16 flags;
	__le32 status;
	__le32 done;
	u8 unused[32];
};

static_assert(sizeof(struct sci_pci_desc) == SCI_PCI_DESC_SIZE);
static_assert(offsetof(struct sci_pci_desc, remote) == SCI_PCI_DESC_REMOTE);
static_assert(offsetof(struct sci_pci_desc, length) == SCI_PCI_DESC_LENGTH);
static_assert(offsetof(struct sci_pci_desc, node) == SCI_PCI_DESC_NODE);
static_assert(offsetof(struct sci_pci_desc, flags) == SCI_PCI_DESC_FLAGS);
static_assert(offsetof(struct sci_pci_desc, status) == SCI_PCI_DESC_STATUS);
static_assert(offsetof(struct sci_pci_desc, done) == SCI_PCI_DESC_DONE);

enum sci_pci_flag {
	SCI_PCI_BROKEN,		/* given up: the card was reset and is not used any more */
	SCI_PCI_STOPPING,	/* the card is being taken down */
};

struct sci_pci;
struct sci_pci_export;

/**
 * struct sci_pci_irq - a vector of MSI-X
 * @card: the card
 * @events: bits of INT_STATUS that raise this interrupt
 */
struct sci_pci_irq {
	struct sci_pci *card;
	u32 events;
};

/**
 * struct sci_pci - a card
 * @pdev: the PCI device
 * @csr: BAR 0
 * @att: BAR 1
 * @window: physical address of BAR 2
 * @window_size: bytes of the window that ATT entries map
 * @msix: the card uses @irqs; else it uses INTA#
 * @irqs: the MSI-X vectors
 * @flags: enum sci_pci_flag
 * @state_lock: held to take the card up or down; outermost lock
 * @fail_work: takes a broken card down
 * @adapter: NULL: the card is down.  Changed under @state_lock; the members below are valid
 *	while the card is up
 * @patience: longest time of an operation, in jiffies
 * @features: register FEATURES
 * @att_entries: number of entries of the ATT
 * @exports_max: number of entries of the export table
 * @dma_max: largest number of bytes of one descriptor
 * @outstanding_max: number of packets that may be in flight
 * @int_mask: copy of register INT_MASK
 * @wq: runs @rx_work and @event_work
 * @rx_work: empties the receive ring; no other code does
 * @event_work: checks the link and the error counts
 * @link: the link is up; for the mailbox
 * @link_downs: number of times that the link went down, for @event_work
 * @status_dma: bus address of the adapter's status page
 * @rx: receive ring; only @rx_work uses it, @rx_head and @rx_turn
 * @rx_dma: bus address of the receive ring
 * @rx_head: number of entries taken
 * @rx_turn: turn of the next entry
 * @mbox_lock: protects the mailbox; leaf lock
 * @mbox_free: number of packets that the mailbox can take before the next read of MBOX_FREE
 * @trigger_lock: serialises remote interrupts; taken before @cmd_lock
 * @silent: for each node: number of remote interrupts without an answer
 * @cmd_lock: serialises commands; leaf lock
 * @cmd_done: completed when a command may be complete
 * @export_lock: protects the next five members
 * @entries: export table
 * @entries_dma: bus address of the export table
 * @exports: exported memory of each entry
 * @next_id: id at which the search for a free id begins
 * @exports_used: number of used @exports
 * @dma_lock: protects the descriptor ring: one batch runs at a time
 * @ring: the descriptor ring
 * @ring_dma: bus address of the ring
 * @dma_tail: number of descriptors given to the card
 * @dma_done: a batch may be complete
 */
struct sci_pci {
	struct pci_dev *pdev;
	void __iomem *csr;
	void __iomem *att;
	phys_addr_t window;
	u64 window_size;
	bool msix;
	struct sci_pci_irq irqs[SCI_PCI_VECTORS];
	unsigned long flags;
	struct mutex state_lock;	/* held to go up or down */
	struct work_struct fail_work;

	struct sci_adapter *adapter;
	unsigned long patience;
	u32 features;
	u32 att_entries;
	u32 exports_max;
	u32 dma_max;
	u32 outstanding_max;
	u32 int_mask;
	struct workqueue_struct *wq;
	struct work_struct rx_work;
	struct work_struct event_work;
	bool link;
	u32 link_downs;
	dma_addr_t status_dma;

	struct sci_pci_rx *rx;
	dma_addr_t rx_dma;
	u32 rx_head;
	u32 rx_turn;

	struct mutex mbox_lock;		/* mailbox */
	u32 mbox_free;

	struct mutex trigger_lock;	/* protects remote interrupts */
	struct xarray silent;
	struct mutex cmd_lock;		/* commands */
	struct completion cmd_done;

	struct mutex export_lock;	/* protects the export table */
	struct sci_pci_entry *entries;
	dma_addr_t entries_dma;
	struct sci_pci_export **exports;
	u32 next_id;
	u32 exports_used;

	struct mutex dma_lock;		/* protects the descriptor ring */
	struct sci_pci_desc *ring;
	dma_addr_t ring_dma;
	u32 dma_tail;
	struct completion dma_done;
};

static inline u32 sci_pci_read(struct sci_pci *p, u32 reg)
{
	return readl(p->csr + reg);
}

static inline void sci_pci_write(struct sci_pci *p, u32 reg, u32 value)
{
	writel(value, p->csr + reg);
}

/* Write a 64-bit register, whose new value takes effect with the write of its upper half. */
static inline void sci_pci_write64(struct sci_pci *p, u32 reg, u64 value)
{
	sci_pci_write(p, reg, lower_32_bits(value));
	sci_pci_write(p, reg + 4, upper_32_bits(value));
}

static inline bool sci_pci_is_power(u32 value, u32 low, u32 high)
{
	return is_power_of_2(value) && value >= low && value <= high;
}

/* module parameters, in pci.c */
extern unsigned int sci_pci_timeout_us;
extern unsigned int sci_pci_retries;
extern unsigned int sci_pci_gather_ns;
extern unsigned int sci_pci_rx_entries;

/* card.c */
void sci_pci_init(struct sci_pci *p);

/*
 * Bring the card up (it must be down), or take it down (it may be down already). Context:
 * @state_lock is held.
 */
int sci_pci_up(struct sci_pci *p);
void sci_pci_down(struct sci_pci *p);

/* Reset the card and end its access to main memory, of which it then holds no address. */
void sci_pci_halt(struct sci_pci *p);

/**
 * sci_pci_fail() - give a card up
 * @why: text for the log
 *
 * On return the card uses no memory any more, and the error count has risen. A work takes the
 * card down soon. Context: process context; any locks may be held.
 */
void sci_pci_fail(struct sci_pci *p, const char *why);

/* Return whether the card was given up. Then it uses no memory any more. */
bool sci_pci_is_broken(struct sci_pci *p);

/**
 * sci_pci_is_gone() - test whether @value was read from a missing card
 *
 * If the card is missing, give it up. The call is cheap unless @value is 0 or all ones.
 */
bool sci_pci_is_gone(struct sci_pci *p, u32 value);

/*
 * Return whether the card would access a copy of the main memory at @dma, or not what is in the
 * CPU's caches. @dma is the bus address of whole pages.
 */
bool sci_pci_is_copied(struct device *dev, dma_addr_t dma);

static inline bool sci_pci_is_stopping(struct sci_pci *p)
{
	return test_bit(SCI_PCI_STOPPING, &p->flags);
}

/* irq.c */
void sci_pci_irqs_init(struct sci_pci *p);
int sci_pci_irqs_request(struct sci_pci *p);
void sci_pci_irqs_free(struct sci_pci *p);

/* Allow only @events. On return no handler acts on other events any more. */
void sci_pci_irqs_allow(struct sci_pci *p, u32 events);

/* ring.c */
int sci_pci_ring_init(struct sci_pci *p);
void sci_pci_ring_fini(struct sci_pci *p);
void sci_pci_rx_work(struct work_struct *work);
int sci_pci_send(struct sci_adapter *a, u32 node, const void *packet);

/* cmd.c */
void sci_pci_flush(struct sci_adapter *a);
int sci_pci_trigger(struct sci_adapter *a, u32 node, u32 handle);

/**
 * sci_pci_barrier() - wait until all stores to the window have arrived or failed
 *
 * The wait also ends when the card is given up.
 */
void sci_pci_barrier(struct sci_pci *p);

/* Wait until no access of other nodes uses the export, or the card has been given up. */
void sci_pci_invalidate(struct sci_pci *p, u32 id);

/* export.c */
int sci_pci_export_init(struct sci_pci *p);
void sci_pci_export_fini(struct sci_pci *p);
int sci_pci_expose(struct sci_adapter *a, struct sci_pages *pages, u64 *base);
void sci_pci_hide(struct sci_adapter *a, u64 base);

/* map.c */
int sci_pci_map(struct sci_adapter *a, struct sci_mapping *m);
void sci_pci_unmap(struct sci_adapter *a, struct sci_mapping *m);
int sci_pci_mapping_pfn(struct sci_adapter *a, struct sci_mapping *m,
			u64 offset, unsigned long *pfn);

/* dma.c */
int sci_pci_dma_init(struct sci_pci *p);
void sci_pci_dma_fini(struct sci_pci *p);
int sci_pci_dma_copy(struct sci_adapter *a, const struct sci_dma_piece *piece);

/* show.c */
extern const struct attribute_group *sci_pci_groups[];
void sci_pci_show_init(void);
void sci_pci_debugfs_add(struct sci_pci *p);

#endif
