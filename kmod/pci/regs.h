/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: registers of the PCI-SCI adapter
 *
 * sim/adapter/DATASHEET.md describes them, and section numbers refer to it. The driver, the
 * model and their tests share this file: it has only numbers, and no types.
 */
#ifndef SCI_PCI_REGS_H
#define SCI_PCI_REGS_H

/* ---- 2: PCI configuration ---- */
#define SCI_PCI_VENDOR			0x1234
#define SCI_PCI_DEVICE			0x5c10
#define SCI_PCI_REVISION		1
#define SCI_PCI_CLASS			0x0280
#define SCI_PCI_BAR_CSR			0
#define SCI_PCI_BAR_ATT			1
#define SCI_PCI_BAR_WINDOW		2
#define SCI_PCI_BAR_MSIX		4
#define SCI_PCI_CSR_SIZE		0x8000
#define SCI_PCI_VECTORS			4

/* ---- 3: registers for the driver ---- */
#define SCI_PCI_ID			0x000
#define SCI_PCI_ID_VALUE		0x31494353
#define SCI_PCI_VERSION			0x004
#define SCI_PCI_VERSION_VALUE		0x00010000
#define SCI_PCI_FEATURES		0x008
#define   SCI_PCI_FEAT_DIRECT		(1u << 0)
#define   SCI_PCI_FEAT_PREFETCH		(1u << 1)
#define   SCI_PCI_FEAT_LOCK		(1u << 2)
#define   SCI_PCI_FEAT_INTERRUPT_MAPS	(1u << 3)
#define   SCI_PCI_FEAT_PACKET_128	(1u << 4)
#define SCI_PCI_ATT_ENTRIES		0x00c
#define SCI_PCI_ATT_PAGE_SIZE		0x010
#define SCI_PCI_STREAMS			0x014
#define   SCI_PCI_STREAMS_COUNT(v)	((v) & 0xff)
#define   SCI_PCI_STREAMS_SIZE(v)	((v) >> 8 & 0xff)
#define SCI_PCI_OUTSTANDING_MAX		0x018
#define SCI_PCI_EXPORTS_MAX		0x01c
#define SCI_PCI_DMA_MAX			0x020
#define SCI_PCI_NODE_ID			0x024
#define SCI_PCI_SERIAL			0x028	/* 64 */
#define SCI_PCI_CONTROL			0x030
#define   SCI_PCI_CONTROL_ENABLE	(1u << 0)
#define   SCI_PCI_CONTROL_RESET		(1u << 31)
#define SCI_PCI_STATUS			0x034
#define   SCI_PCI_STATUS_LINK_UP	(1u << 0)
#define   SCI_PCI_STATUS_OUTSTANDING	(1u << 1)
#define   SCI_PCI_STATUS_GATHERING	(1u << 2)
#define   SCI_PCI_STATUS_DMA_BUSY	(1u << 3)
#define   SCI_PCI_STATUS_STOPPED	(1u << 4)
#define SCI_PCI_INT_STATUS		0x038
#define SCI_PCI_INT_MASK		0x03c
#define   SCI_PCI_INT_RX		(1u << 0)
#define   SCI_PCI_INT_DMA		(1u << 1)
#define   SCI_PCI_INT_ERROR		(1u << 2)
#define   SCI_PCI_INT_LINK		(1u << 3)
#define   SCI_PCI_INT_COMMAND		(1u << 4)
#define   SCI_PCI_INT_ALL		0x1f
#define SCI_PCI_TIMEOUT_US		0x040
#define SCI_PCI_RETRIES			0x044
#define   SCI_PCI_RETRIES_MAX		7
#define SCI_PCI_GATHER_NS		0x048
#define SCI_PCI_RX_BASE			0x050	/* 64 */
#define SCI_PCI_RX_ENTRIES		0x058
#define   SCI_PCI_RX_ENTRIES_MIN	16
#define   SCI_PCI_RX_ENTRIES_MAX	4096
#define SCI_PCI_RX_HEAD			0x05c
#define SCI_PCI_STATUS_BASE		0x060	/* 64 */
#define SCI_PCI_EXPORT_BASE		0x068	/* 64 */
#define SCI_PCI_EXPORT_ENTRIES		0x070
#define SCI_PCI_DMA_BASE		0x080	/* 64 */
#define SCI_PCI_DMA_ENTRIES		0x088
#define   SCI_PCI_DMA_ENTRIES_MIN	2
#define   SCI_PCI_DMA_ENTRIES_MAX	4096
#define SCI_PCI_DMA_TAIL		0x08c
#define SCI_PCI_DMA_HEAD		0x090
#define SCI_PCI_DMA_CONTROL		0x094
#define   SCI_PCI_DMA_ABORT		(1u << 0)
#define SCI_PCI_ERROR_CODE		0x0a0
#define SCI_PCI_ERROR_NODE		0x0a4
#define SCI_PCI_ERROR_ADDRESS		0x0a8	/* 64 */
#define SCI_PCI_COUNTERS		0x100	/* 64 each, enum sci_pci_counter */

/* MSI-X vectors (10) */
enum sci_pci_vector {
	SCI_PCI_VEC_RX,
	SCI_PCI_VEC_DMA,
	SCI_PCI_VEC_ERROR,		/* and link */
	SCI_PCI_VEC_COMMAND,
};

/* ---- 4: entry of the address translation table ---- */
#define SCI_PCI_ATT_ENTRY_SIZE		16
#define SCI_PCI_ATT_NODE		0	/* 16 bits */
#define SCI_PCI_ATT_ATTR		2	/* 16 bits */
#define   SCI_PCI_ATT_READ_ONLY		(1u << 0)
#define   SCI_PCI_ATT_PREFETCH		(1u << 1)
#define   SCI_PCI_ATT_NO_GATHER		(1u << 2)
#define   SCI_PCI_ATT_NO_128		(1u << 3)
#define   SCI_PCI_ATT_LOCK		(1u << 4)
#define   SCI_PCI_ATT_INTERRUPT		(1u << 5)
#define   SCI_PCI_ATT_NO_LOOPBACK	(1u << 6)
#define   SCI_PCI_ATT_VALID		(1u << 15)
#define SCI_PCI_ATT_EXPORT		4	/* 16 bits */
#define SCI_PCI_ATT_OFFSET		8	/* 64 bits */

/* ---- 7: export table ---- */
#define SCI_PCI_EXPORT_ENTRY_SIZE	32
#define SCI_PCI_EXPORT_ID		0	/* 16 bits */
#define SCI_PCI_EXPORT_FLAGS		2	/* 16 bits */
#define   SCI_PCI_EXPORT_VALID		(1u << 0)
#define   SCI_PCI_EXPORT_READ		(1u << 1)
#define   SCI_PCI_EXPORT_WRITE		(1u << 2)
#define SCI_PCI_EXPORT_LENGTH		8	/* 64 bits */
#define SCI_PCI_EXPORT_ROOT		16	/* 64 bits */
#define SCI_PCI_EXPORTS_MIN		16
#define SCI_PCI_PAGE			4096	/* of exported memory */
#define SCI_PCI_LEAF_PAGES		512

/* ---- 8: for users ---- */
#define SCI_PCI_USER			0x1000
#define SCI_PCI_USER_ERRORS		0x1000
#define SCI_PCI_USER_DOWN		0x1004
#define SCI_PCI_USER_FATAL		0x1008
#define SCI_PCI_USER_DONE		0x100c
#define SCI_PCI_USER_BARRIER		0x1010
#define SCI_PCI_USER_FLUSH		0x1014
#define SCI_PCI_USER_CHECK		0x1018

/* ---- 9: errors ---- */
enum sci_pci_error {
	SCI_PCI_ERR_NONE,
	SCI_PCI_ERR_TIMEOUT,
	SCI_PCI_ERR_LINK,
	SCI_PCI_ERR_NODE,
	SCI_PCI_ERR_PROTECTION,
	SCI_PCI_ERR_ATT,
	SCI_PCI_ERR_BUSY,
	SCI_PCI_ERR_BUS,
	SCI_PCI_ERR_DRIVER,
	SCI_PCI_ERR_ABORTED,
};

/* ---- 10: receive ring ---- */
#define SCI_PCI_RX_ENTRY_SIZE		128
#define SCI_PCI_RX_TURN			0	/* 32 bits */
#define SCI_PCI_RX_KIND			4	/* 16 bits */
#define   SCI_PCI_RX_MAILBOX		1
#define   SCI_PCI_RX_INTERRUPT		2
#define   SCI_PCI_RX_RETURNED		3
#define SCI_PCI_RX_SOURCE		6	/* 16 bits */
#define SCI_PCI_RX_VALUE		8	/* 32 bits */
#define SCI_PCI_RX_DATA			16	/* SCI_PCI_MBOX_SIZE bytes */

/* ---- 11: mailbox and commands ---- */
#define SCI_PCI_MBOX_SIZE		64
#define SCI_PCI_MBOX_DATA		0x2000
#define SCI_PCI_MBOX_SEND		0x2040
#define SCI_PCI_MBOX_FREE		0x2044
#define   SCI_PCI_MBOX_SLOTS		32
#define SCI_PCI_CMD_NODE		0x2080
#define SCI_PCI_CMD_ARG			0x2084
#define SCI_PCI_CMD			0x2088
#define   SCI_PCI_CMD_INTERRUPT		1
#define   SCI_PCI_CMD_READ_CSR		2
#define   SCI_PCI_CMD_INVALIDATE	3
#define SCI_PCI_CMD_STATUS		0x208c
#define   SCI_PCI_CMD_NONE		0
#define   SCI_PCI_CMD_BUSY		1
#define   SCI_PCI_CMD_DONE		2
#define   SCI_PCI_CMD_FAILED		0x100	/* plus an enum sci_pci_error */
#define SCI_PCI_CMD_RESULT		0x2090

/* ---- 12: counters ---- */
enum sci_pci_counter {
	SCI_PCI_CNT_WRITES_16,
	SCI_PCI_CNT_WRITES_64,
	SCI_PCI_CNT_WRITES_128,
	SCI_PCI_CNT_STORE_BYTES,
	SCI_PCI_CNT_READS,
	SCI_PCI_CNT_LOCKS,
	SCI_PCI_CNT_FLUSHES,
	SCI_PCI_CNT_GATHER_BROKEN,
	SCI_PCI_CNT_GATHER_TIMEOUTS,
	SCI_PCI_CNT_GATHER_EVICTED,
	SCI_PCI_CNT_BARRIERS,
	SCI_PCI_CNT_STALLS,
	SCI_PCI_CNT_RETRIES,
	SCI_PCI_CNT_TIMEOUTS,
	SCI_PCI_CNT_ERRORS_NODE,
	SCI_PCI_CNT_ERRORS_PROTECTION,
	SCI_PCI_CNT_ERRORS_ATT,
	SCI_PCI_CNT_ERRORS_LINK,
	SCI_PCI_CNT_RECEIVED,
	SCI_PCI_CNT_RECEIVED_BYTES,
	SCI_PCI_CNT_DUPLICATES,
	SCI_PCI_CNT_CRC_ERRORS,
	SCI_PCI_CNT_REFUSED,
	SCI_PCI_CNT_MBOX_SENT,
	SCI_PCI_CNT_MBOX_FAILED,
	SCI_PCI_CNT_MBOX_RECEIVED,
	SCI_PCI_CNT_MBOX_BUSY,
	SCI_PCI_CNT_INTERRUPTS_SENT,
	SCI_PCI_CNT_INTERRUPTS_RECEIVED,
	SCI_PCI_CNT_DMA_WRITES,
	SCI_PCI_CNT_DMA_READS,
	SCI_PCI_CNT_DMA_BYTES,
	SCI_PCI_CNT_DMA_ERRORS,
	SCI_PCI_CNT_LINK_DOWNS,
	SCI_PCI_COUNTERS_COUNT
};

/* The names of the counters, in the order of enum sci_pci_counter. */
#define SCI_PCI_COUNTER_NAMES						\
	"writes_16", "writes_64", "writes_128", "store_bytes", "reads",	\
	"locks", "flushes", "gather_broken", "gather_timeouts",		\
	"gather_evicted", "barriers", "stalls", "retries", "timeouts",	\
	"errors_node", "errors_protection", "errors_att",		\
	"errors_link", "received", "received_bytes", "duplicates",	\
	"crc_errors", "refused", "mbox_sent", "mbox_failed",		\
	"mbox_received", "mbox_busy", "interrupts_sent",		\
	"interrupts_received", "dma_writes", "dma_reads", "dma_bytes",	\
	"dma_errors", "link_downs"

/* ---- 13: DMA ---- */
#define SCI_PCI_DESC_SIZE		64
#define SCI_PCI_DESC_LOCAL		0	/* 64 bits */
#define SCI_PCI_DESC_REMOTE		8	/* 64 bits */
#define SCI_PCI_DESC_LENGTH		16	/* 32 bits */
#define SCI_PCI_DESC_NODE		20	/* 16 bits */
#define SCI_PCI_DESC_FLAGS		22	/* 16 bits */
#define   SCI_PCI_DESC_PULL		(1u << 0)
#define   SCI_PCI_DESC_IRQ		(1u << 1)
#define   SCI_PCI_DESC_CHAIN		(1u << 2)
#define SCI_PCI_DESC_STATUS		24	/* 32 bits */
#define   SCI_PCI_DESC_OK		2
#define   SCI_PCI_DESC_FAILED		0x100	/* plus an enum sci_pci_error */
#define SCI_PCI_DESC_DONE		28	/* 32 bits */

#endif
