/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: sci_ntb.ko: an adapter over a non-transparent bridge
 *
 *  main.c	the client of the kernel's NTB API: probe, link, first contact
 *  window.c	memory windows: inbound memory, exposures, mappings of the peer's memory
 *  mail.c	control packets
 *  ops.c	the operations of an adapter
 *
 * A bridge connects two nodes.  Each has a few inbound windows: memory of its own that
 * the other node reaches through the bridge.  Segments are allocated in the inbound
 * windows, so that many segments share one window.  An inbound window has three parts, all
 * of them in the memory of the node that owns the window:
 *
 *	mail		slots for control packets to the owner (of window 0)
 *	chunks		one struct ntb_chunk for each chunk
 *	data		the chunks: pages of segments
 *
 * A node that maps a segment of the peer first marks it in the peer's window, and then
 * reads there whether the segment is still exposed.  The owner withdraws the exposure
 * first, and then reads the mark.  So the owner does not use memory again while the peer
 * has it mapped.
 *
 * First contact goes through words that each node sends to the other, by scratchpads or
 * by messages: enum ntb_word.  A life of a node has a generation, a random number.
 * When a node sees another generation of its peer, it ends all connections with the
 * earlier life, and acknowledges the new life when it has unmapped all memory of the
 * earlier one.  Only then does the new life open its windows.  So a store to a segment of
 * the earlier life does not reach a segment of the new life.
 *
 * The peer can store any bytes anywhere in the inbound windows.  So the driver checks
 * all values that it reads from windows of either node.  The peer can still destroy the
 * data of segments of both nodes, and keep memory of the windows in use.
 */
#ifndef SCI_NTB_H
#define SCI_NTB_H

#include <linux/build_bug.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/ntb.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "core/adapter.h"

#define NTB_PEER	0		/* index of the only peer */
#define NTB_WINDOWS	4		/* limit of used windows */
#define NTB_MAGIC	0x5c1		/* changes with the layout */
#define NTB_MAIL_AT	4096ul		/* a flush reads the page before the mail */
#define NTB_MAIL_SLOTS	64
#define NTB_CHUNKS_AT	(NTB_MAIL_AT + NTB_MAIL_SLOTS * sizeof(struct ntb_mail))

/**
 * enum ntb_word - words between nodes before they exchange control packets
 * @NTB_WORD_LIFE: NTB_MAGIC << 16 | generation of the sender, not 0
 * @NTB_WORD_STATE: generation of the receiver that the sender has acknowledged << 16 |
 *	PAGE_SHIFT << 8 | whether its windows are open
 * @NTB_WORD_SIZE: size of inbound window 0; the sizes of the other windows follow. The word
 *	is the low 4 bits of the sender's generation << 28 | number of pages
 */
enum ntb_word {
	NTB_WORD_LIFE,
	NTB_WORD_STATE,
	NTB_WORD_SIZE,
	NTB_WORDS = NTB_WORD_SIZE + NTB_WINDOWS,
};

/**
 * struct ntb_mail - a slot for a control packet
 * @packet: the packet of the core
 * @number: number of the packet
 * @crc: checksum of @packet and @number
 */
struct ntb_mail {
	u8 packet[SCI_PACKET_SIZE];
	__le32 number;
	__le32 crc;
	u8 pad[56];
};
static_assert(sizeof(struct ntb_mail) == 128);

/**
 * struct ntb_chunk - a page of an inbound window
 * @serial: serial of the exposed memory that begins here, 0: none; stored by the owner
 * @count: number of chunks of the exposed memory; stored by the owner
 * @mapped: not 0: the peer has mapped the memory that begins here; stored by the peer
 */
struct ntb_chunk {
	__le32 serial;
	__le32 count;
	__le32 mapped;
	__le32 pad;
};
static_assert(sizeof(struct ntb_chunk) == 16);

/**
 * struct ntb_form - layout of a window
 * @chunks: number of chunks
 * @data: offset of the first chunk
 */
struct ntb_form {
	u32 chunks;
	u64 data;
};

/**
 * struct ntb_inbound - an inbound window
 * @page: memory of the window
 * @dma: bus address of the memory
 * @size: bytes
 * @form: layout of the window
 * @att: allocator of its chunks
 * @serials: for each chunk: serial of the memory that was last exposed there. Unlike struct
 *	ntb_chunk, the peer cannot change it
 * @open: the peer may reach the memory
 */
struct ntb_inbound {
	struct page *page;
	dma_addr_t dma;
	u64 size;
	struct ntb_form form;
	struct sci_att *att;
	u32 *serials;
	bool open;
};

/**
 * struct ntb_outbound - a window to the peer
 * @phys: physical address
 * @virt: address in the kernel
 * @size: bytes
 * @form: layout of the peer's inbound window; zeros while the peer is not known
 * @views: for each chunk: number of maps of the memory that begins there; room for @size
 */
struct ntb_outbound {
	phys_addr_t phys;
	u8 __iomem *virt;
	u64 size;
	struct ntb_form form;
	u32 *views;
};

/**
 * struct ntb_view - mapped memory of a node
 * @pages: reference to memory of this node; NULL: the memory belongs to the peer
 * @window: the peer's window
 * @first: first chunk of the memory
 * @offset: offset in the window
 * @size: bytes
 */
struct ntb_view {
	struct sci_pages *pages;
	u32 window;
	u32 first;
	u64 offset;
	u64 size;
};

/**
 * struct ntb_mailbox - packets that arrive
 * @slot: slot in this node's memory
 * @seen: number of the packet that was last taken from each slot
 * @next: slot after the one that was last taken
 */
struct ntb_mailbox {
	struct ntb_mail *slot;
	u32 seen[NTB_MAIL_SLOTS];
	u32 next;
};

/**
 * struct ntb_node - a node, this side of a bridge
 * @ntb: the bridge
 * @adapter: the adapter in the core; NULL: the link has never been up
 * @node, @peer: node ids
 * @windows: number of windows used in each direction
 * @in, @out: windows
 * @messages: words are sent by messages, not by scratchpads
 * @db: bit of the doorbell
 * @lock: protects @in, @out.views, @out.form, @exposed, @limbo, @views, @acked
 * @exposed: table of struct sci_pages by base
 * @limbo: list of struct ntb_limbo: freed memory that the peer still has mapped
 * @views: number of views of the peer's memory
 * @generation: generation of this node
 * @peer_generation: generation of the peer, 0: not known
 * @acked: acknowledged generation of the peer
 * @open: this node's windows are open to the peer
 * @up: packets and stores may go to the peer
 * @error: error of the last attempt to set up the windows, which is in the log; 0: none
 * @theirs: words of the peer that arrived by messages
 * @send_lock: protects @sent
 * @sent: number of the last packet that was sent
 * @from_peer, @from_self: mailboxes for packets of the peer and of this node
 * @self: slots of @from_self
 * @tick: first contact, and a regular check while the link is up
 * @mail: receives packets
 * @wq: runs @tick and @mail
 */
struct ntb_node {
	struct ntb_dev *ntb;
	struct sci_adapter *adapter;
	u32 node;
	u32 peer;
	unsigned int windows;
	struct ntb_inbound in[NTB_WINDOWS];
	struct ntb_outbound out[NTB_WINDOWS];
	bool messages;
	u64 db;
	struct mutex lock;		/* protects in, out, exposed, ... */
	struct xarray exposed;
	struct list_head limbo;
	unsigned int views;
	u16 generation;
	u16 peer_generation;
	u16 acked;
	bool open;
	bool up;
	int error;
	u32 theirs[NTB_WORDS];
	spinlock_t send_lock;		/* protects sent */
	u32 sent;
	struct ntb_mailbox from_peer;
	struct ntb_mailbox from_self;
	struct ntb_mail self[NTB_MAIL_SLOTS];
	struct delayed_work tick;
	struct work_struct mail;
	struct workqueue_struct *wq;
};

static inline bool ntb_node_is_up(const struct ntb_node *n)
{
	return READ_ONCE(n->up);
}

/* ---- window.c ---- */

/* Map the windows to the peer, and unmap them. */
int ntb_outbound_create(struct ntb_node *n);
void ntb_outbound_destroy(struct ntb_node *n);

/* Allocate the inbound windows of at most @limit bytes each. Context: the link is up. */
int ntb_inbound_create(struct ntb_node *n, u64 limit);
void ntb_inbound_destroy(struct ntb_node *n);

/* Open the inbound windows to the peer, and close them. */
int ntb_inbound_open(struct ntb_node *n);
void ntb_inbound_close(struct ntb_node *n);

/* Clear the peer's marks: the peer has begun a new life, which has mapped no memory yet. */
void ntb_inbound_forget_marks(struct ntb_node *n);

/*
 * Set the form of the peer's inbound window @w. The peer reports that it has @pages pages. Return
 * -EPROTO if that is impossible.
 */
int ntb_outbound_set_form(struct ntb_node *n, unsigned int w, u32 pages);

/* Store all marks of this node again: stores may be lost while the link is down. */
void ntb_outbound_mark_again(struct ntb_node *n);

int ntb_memory_alloc(struct ntb_node *n, unsigned long count, struct page **first);
void ntb_memory_free(struct ntb_node *n, struct page *first, unsigned long count);

/* Free the memory that the peer has unmapped. */
void ntb_memory_scrub(struct ntb_node *n);

int ntb_expose(struct ntb_node *n, struct sci_pages *pages, u64 *base);
void ntb_hide(struct ntb_node *n, u64 base);

/* Return -ENOENT if @node exposes no memory as @base. */
int ntb_view_open(struct ntb_node *n, u32 node, u64 base, struct ntb_view *v);
void ntb_view_close(struct ntb_node *n, struct ntb_view *v);

static inline struct ntb_mail __iomem *ntb_peer_mail(struct ntb_node *n)
{
	return (struct ntb_mail __iomem *)(n->out[0].virt + NTB_MAIL_AT);
}

static inline struct ntb_mail *ntb_own_mail(struct ntb_node *n)
{
	return page_address(n->in[0].page) + NTB_MAIL_AT;
}

/* ---- mail.c ---- */

int ntb_mail_send(struct ntb_node *n, u32 node, const void *packet);
void ntb_mail_work(struct work_struct *work);

/* ---- ops.c ---- */

extern const struct sci_adapter_ops sci_ntb_ops;

#endif
