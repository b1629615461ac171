// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* A card: its description, its start and stop, and its end after a failure. */

#include <linux/dma-map-ops.h>
#include <linux/iommu.h>
#include <linux/iopoll.h>
#include <linux/sizes.h>

#include "core/att.h"
#include "core/compat.h"
#include "pci.h"

#define DRAIN_POLL_US	500
#define DRAIN_WAIT_US	50000	/* time for the last packets when the card goes down */
#define DMA_PIECE_MAX	SZ_64M
#define PACKET_MIN	16u		/* bytes in a packet of a buffer that is not full */

/* The hw_ words of the status page have the layout of the card's page for users. */
#define HW_WORDS	offsetof(struct sci_status_page, hw_errors)
#define HW_WORD(_name)	(offsetof(struct sci_status_page, _name) - HW_WORDS + \
			 SCI_PCI_USER)
#define USER_WORD(_name) (offsetof(struct sci_barrier_page, _name) +	\
			  SCI_PCI_USER)

static_assert(HW_WORDS % 64 == 0);
static_assert(HW_WORD(hw_errors) == SCI_PCI_USER_ERRORS);
static_assert(HW_WORD(hw_down) == SCI_PCI_USER_DOWN);
static_assert(HW_WORD(hw_fatal) == SCI_PCI_USER_FATAL);
static_assert(HW_WORD(hw_done) == SCI_PCI_USER_DONE);
static_assert(USER_WORD(errors) == SCI_PCI_USER_ERRORS);
static_assert(USER_WORD(down) == SCI_PCI_USER_DOWN);
static_assert(USER_WORD(fatal) == SCI_PCI_USER_FATAL);
static_assert(USER_WORD(done) == SCI_PCI_USER_DONE);
static_assert(USER_WORD(barrier) == SCI_PCI_USER_BARRIER);
static_assert(USER_WORD(flush) == SCI_PCI_USER_FLUSH);
static_assert(USER_WORD(check) == SCI_PCI_USER_CHECK);

/* ---- giving a card up ---- */

void sci_pci_halt(struct sci_pci *p)
{
	sci_pci_write(p, SCI_PCI_CONTROL, SCI_PCI_CONTROL_RESET);
	/* read a register back, so that the write has arrived */
	sci_pci_read(p, SCI_PCI_STATUS);
	pci_clear_master(p->pdev);
}

void sci_pci_fail(struct sci_pci *p, const char *why)
{
	/* a user that sees the card broken must also see that stores were lost */
	sci_adapter_error(p->adapter, true);
	if (!test_and_set_bit(SCI_PCI_BROKEN, &p->flags))
		dev_err(&p->pdev->dev, "given up: %s\n", why);
	sci_pci_halt(p);
	queue_work(system_dfl_wq, &p->fail_work);
}

bool sci_pci_is_broken(struct sci_pci *p)
{
	if (!test_bit(SCI_PCI_BROKEN, &p->flags))
		return false;
	/* the thread that has set the flag may not have halted the card yet */
	sci_pci_halt(p);
	return true;
}

bool sci_pci_is_gone(struct sci_pci *p, u32 value)
{
	/* a card that is gone reads as ones; some bridges answer zeros */
	if ((value && value != U32_MAX) ||
	    sci_pci_read(p, SCI_PCI_ID) == SCI_PCI_ID_VALUE)
		return false;
	sci_pci_fail(p, "it does not answer");
	return true;
}

/* ---- properties of the card ---- */

static int card_refuse(struct sci_pci *p, const char *what, u32 value)
{
	dev_err(&p->pdev->dev, "%s %#x: not a card for this driver\n", what,
		value);
	return -ENODEV;
}

static bool card_streams_are_known(u32 streams)
{
	u32 size = SCI_PCI_STREAMS_SIZE(streams);

	switch (SCI_PCI_STREAMS_COUNT(streams)) {
	case 8:
		return size == 64;
	case 16:
		return size == 128;
	default:
		return false;
	}
}

static int card_identify(struct sci_pci *p)
{
	u32 v = sci_pci_read(p, SCI_PCI_ID);

	if (v != SCI_PCI_ID_VALUE)
		return card_refuse(p, "ID", v);
	v = sci_pci_read(p, SCI_PCI_VERSION);
	if (v >> 16 != SCI_PCI_VERSION_VALUE >> 16)
		return card_refuse(p, "VERSION", v);
	p->features = sci_pci_read(p, SCI_PCI_FEATURES);
	p->att_entries = sci_pci_read(p, SCI_PCI_ATT_ENTRIES);
	if (!sci_pci_is_power(p->att_entries, 256, 65536) ||
	    pci_resource_len(p->pdev, SCI_PCI_BAR_ATT) <
	    (u64)p->att_entries * SCI_PCI_ATT_ENTRY_SIZE)
		return card_refuse(p, "ATT_ENTRIES", p->att_entries);
	p->exports_max = sci_pci_read(p, SCI_PCI_EXPORTS_MAX);
	if (!sci_pci_is_power(p->exports_max, SCI_PCI_EXPORTS_MIN, 4096))
		return card_refuse(p, "EXPORTS_MAX", p->exports_max);
	p->dma_max = sci_pci_read(p, SCI_PCI_DMA_MAX);
	if (p->dma_max < SZ_4K)
		return card_refuse(p, "DMA_MAX", p->dma_max);
	v = sci_pci_read(p, SCI_PCI_OUTSTANDING_MAX);
	if (!v || v > 64)
		return card_refuse(p, "OUTSTANDING_MAX", v);
	p->outstanding_max = v;
	return 0;
}

/* Read properties of the card into @d and @p->window_size. */
static int card_describe(struct sci_pci *p, struct sci_adapter_desc *d)
{
	u32 v = sci_pci_read(p, SCI_PCI_NODE_ID);

	if (!v || v > SCI_IOC_NODE_MAX || v % SCI_IOC_NODE_STEP)
		return card_refuse(p, "NODE_ID", v);
	d->node = v;
	v = sci_pci_read(p, SCI_PCI_ATT_PAGE_SIZE);
	if (!sci_pci_is_power(v, max_t(u32, SZ_4K, PAGE_SIZE), SZ_512K))
		return card_refuse(p, "ATT_PAGE_SIZE", v);
	d->att_page_size = v;
	p->window_size = (u64)p->att_entries * v;
	if (pci_resource_len(p->pdev, SCI_PCI_BAR_WINDOW) < p->window_size)
		return card_refuse(p, "ATT_PAGE_SIZE", v);
	v = sci_pci_read(p, SCI_PCI_STREAMS);
	if (!card_streams_are_known(v))
		return card_refuse(p, "STREAMS", v);
	d->streams = SCI_PCI_STREAMS_COUNT(v);
	d->stream_size = SCI_PCI_STREAMS_SIZE(v);
	d->serial = sci_pci_read(p, SCI_PCI_SERIAL);
	d->serial |= (u64)sci_pci_read(p, SCI_PCI_SERIAL + 4) << 32;
	return 0;
}

/* ---- the adapter ---- */

static const struct sci_adapter_ops sci_pci_ops = {
	.owner		= THIS_MODULE,
	.send		= sci_pci_send,
	.expose		= sci_pci_expose,
	.hide		= sci_pci_hide,
	.map		= sci_pci_map,
	.unmap		= sci_pci_unmap,
	.mapping_pfn	= sci_pci_mapping_pfn,
	.flush		= sci_pci_flush,
	.trigger	= sci_pci_trigger,
	.dma_copy	= sci_pci_dma_copy,
};

/* Offer the card's page for users as barrier page, if a CPU page holds no other registers. */
static void card_barrier_page_offer(struct sci_pci *p, struct sci_adapter_desc *d)
{
	phys_addr_t page = pci_resource_start(p->pdev, SCI_PCI_BAR_CSR) +
			   SCI_PCI_USER;

	if (!IS_ALIGNED(page, PAGE_SIZE) || !IS_ALIGNED(SZ_4K, PAGE_SIZE))
		return;
	d->caps |= SCI_CAP_BARRIER;
	d->barrier_pfn = PHYS_PFN(page);
}

static int adapter_create(struct sci_pci *p)
{
	struct sci_adapter_desc desc = {
		.ops = &sci_pci_ops,
		.type = "pci",
		.caps = SCI_CAP_DMA | SCI_CAP_REGISTER,
		.dma_max = DMA_PIECE_MAX,
		.dma_align = 1,
		.bdf = pci_dev_id(p->pdev),
		.pci_domain = pci_domain_nr(p->pdev->bus),
		.max_segment = SZ_4G,
		.groups = sci_pci_groups,
		.priv = p,
	};
	int ret;

	ret = card_describe(p, &desc);
	if (ret)
		return ret;
	card_barrier_page_offer(p, &desc);
	desc.exports = p->exports_max;
	desc.att = sci_att_create(p->att_entries);
	if (!desc.att)
		return -ENOMEM;
	p->adapter = sci_adapter_alloc(&p->pdev->dev, &desc);
	if (!p->adapter) {
		sci_att_destroy(desc.att);
		return -ENOMEM;
	}
	return 0;
}

static void adapter_destroy(struct sci_pci *p)
{
	struct sci_adapter *a = p->adapter;

	p->adapter = NULL;
	xa_destroy(&p->silent);
	sci_att_destroy(sci_adapter_desc(a)->att);
	sci_adapter_put(a);
}

/* ---- main memory that the card accesses ---- */

bool sci_pci_is_copied(struct device *dev, dma_addr_t dma)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);

	/* an IOMMU copies no whole pages, but dma_need_sync() of 6.1 is always true behind one */
	if (domain && iommu_is_dma_domain(domain))
		return !dev_is_dma_coherent(dev);
	return dma_need_sync(dev, dma);
}

/* Map the status page, whose second line the card writes. */
static int status_map(struct sci_pci *p)
{
	struct device *dev = &p->pdev->dev;
	dma_addr_t dma = dma_map_single(dev, sci_adapter_status(p->adapter),
					PAGE_SIZE, DMA_FROM_DEVICE);

	if (dma_mapping_error(dev, dma))
		return -ENOMEM;
	/* the card would access copies of main memory, also of the memory of segments */
	if (sci_pci_is_copied(dev, dma)) {
		dev_err(dev, "main memory can't be shared with it\n");
		dma_unmap_page(dev, dma, PAGE_SIZE, DMA_FROM_DEVICE);
		return -EOPNOTSUPP;
	}
	p->status_dma = dma;
	return 0;
}

/* Unmap the status page. Its words do not change any more, because the card was reset. */
static void status_unmap(struct sci_pci *p)
{
	dma_unmap_page_attrs(&p->pdev->dev, p->status_dma, PAGE_SIZE,
			     DMA_FROM_DEVICE, DMA_ATTR_SKIP_CPU_SYNC);
}

static int memory_alloc(struct sci_pci *p)
{
	int ret = status_map(p);

	if (ret)
		return ret;
	ret = sci_pci_ring_init(p);
	if (ret)
		goto err_status;
	ret = sci_pci_export_init(p);
	if (ret)
		goto err_ring;
	ret = sci_pci_dma_init(p);
	if (ret)
		goto err_export;
	return 0;

err_export:
	sci_pci_export_fini(p);
err_ring:
	sci_pci_ring_fini(p);
err_status:
	status_unmap(p);
	return ret;
}

/* Free memory that the card used. The card was reset. */
static void memory_free(struct sci_pci *p)
{
	sci_pci_dma_fini(p);
	sci_pci_export_fini(p);
	sci_pci_ring_fini(p);
	status_unmap(p);
}

/* ---- up and down ---- */

/*
 * Return the longest time of an operation, in jiffies. In the worst case all stream buffers are
 * half full, for nodes that do not answer. Each buffer leaves as packets of 16 bytes, which
 * share few slots. Each round of packets takes as long as all repetitions of a packet. A
 * command may wait for a round, and a packet for another packet of the same line.
 */
static unsigned long card_patience(struct sci_pci *p)
{
	const struct sci_adapter_desc *d = sci_adapter_desc(p->adapter);
	u32 packets = d->streams * (d->stream_size / PACKET_MIN);
	u32 rounds = DIV_ROUND_UP(packets, p->outstanding_max);
	unsigned int us = sci_pci_timeout_us * ((2u << sci_pci_retries) - 1);

	return (2 * rounds + 2) * usecs_to_jiffies(us) + HZ;
}

static int card_reset(struct sci_pci *p)
{
	clear_bit(SCI_PCI_BROKEN, &p->flags);
	clear_bit(SCI_PCI_STOPPING, &p->flags);
	p->link = false;
	p->link_downs = 0;
	p->int_mask = 0;
	sci_pci_halt(p);
	pci_set_master(p->pdev);
	return card_identify(p);
}

/* Set up the card: write bases before sizes, and both before the card is enabled. */
static void card_set_up(struct sci_pci *p)
{
	p->patience = card_patience(p);
	sci_pci_write(p, SCI_PCI_TIMEOUT_US, sci_pci_timeout_us);
	sci_pci_write(p, SCI_PCI_RETRIES, sci_pci_retries);
	sci_pci_write(p, SCI_PCI_GATHER_NS, sci_pci_gather_ns);
	sci_pci_write64(p, SCI_PCI_STATUS_BASE, p->status_dma + HW_WORDS);
	sci_pci_write64(p, SCI_PCI_RX_BASE, p->rx_dma);
	sci_pci_write(p, SCI_PCI_RX_ENTRIES, sci_pci_rx_entries);
	sci_pci_write64(p, SCI_PCI_EXPORT_BASE, p->entries_dma);
	sci_pci_write(p, SCI_PCI_EXPORT_ENTRIES, p->exports_max);
	sci_pci_write64(p, SCI_PCI_DMA_BASE, p->ring_dma);
	sci_pci_write(p, SCI_PCI_DMA_ENTRIES, SCI_PCI_DMA_ENTRIES_USED);
}

static void card_announce(struct sci_pci *p)
{
	const struct sci_adapter_desc *d = sci_adapter_desc(p->adapter);

	dev_info(&p->pdev->dev, "%s: node %u, %u ATT entries of %u, %s%s\n",
		 sci_adapter_name(p->adapter), d->node, p->att_entries,
		 d->att_page_size, p->msix ? "MSI-X" : "INTx",
		 p->features & SCI_PCI_FEAT_DIRECT ? ", direct" : "");
}

int sci_pci_up(struct sci_pci *p)
{
	int ret;

	lockdep_assert_held(&p->state_lock);
	ret = card_reset(p);
	if (ret)
		goto err_halt;
	ret = adapter_create(p);
	if (ret)
		goto err_halt;
	ret = memory_alloc(p);
	if (ret)
		goto err_adapter;
	ret = sci_pci_irqs_request(p);
	if (ret)
		goto err_memory;
	card_set_up(p);
	/* sci_adapter_register() may call operations that need these interrupts */
	sci_pci_irqs_allow(p, SCI_PCI_INT_DMA | SCI_PCI_INT_COMMAND);
	ret = sci_adapter_register(p->adapter);
	if (ret)
		goto err_irqs;
	sci_pci_debugfs_add(p);
	sci_pci_irqs_allow(p, SCI_PCI_INT_ALL);
	sci_pci_write(p, SCI_PCI_CONTROL, SCI_PCI_CONTROL_ENABLE);
	queue_work(p->wq, &p->event_work);
	/* for slot_reset(): an earlier reset or sleep has consumed the saved state */
	pci_save_state(p->pdev);
	card_announce(p);
	return 0;

err_irqs:
	sci_pci_halt(p);
	sci_pci_irqs_free(p);
err_memory:
	memory_free(p);
err_adapter:
	adapter_destroy(p);
err_halt:
	sci_pci_halt(p);
	return ret;
}

/* Wait until the card has sent its last packets: a BYE to each node with a session. */
static void card_drain(struct sci_pci *p)
{
	u32 n;

	read_poll_timeout(sci_pci_read, n, n >= SCI_PCI_MBOX_SLOTS,
			  DRAIN_POLL_US, DRAIN_WAIT_US, false, p,
			  SCI_PCI_MBOX_FREE);
}

void sci_pci_down(struct sci_pci *p)
{
	lockdep_assert_held(&p->state_lock);
	if (!p->adapter)
		return;
	if (!test_bit(SCI_PCI_BROKEN, &p->flags))
		sci_pci_is_gone(p, sci_pci_read(p, SCI_PCI_STATUS));
	/* from here on no packet of other nodes is taken, and DMA is aborted */
	set_bit(SCI_PCI_STOPPING, &p->flags);
	sci_pci_irqs_allow(p, SCI_PCI_INT_DMA | SCI_PCI_INT_COMMAND);
	cancel_work_sync(&p->rx_work);
	cancel_work_sync(&p->event_work);
	sci_adapter_unregister(p->adapter);
	if (!sci_pci_is_broken(p))
		card_drain(p);
	sci_pci_halt(p);
	sci_pci_irqs_free(p);
	memory_free(p);
	adapter_destroy(p);
}

static void fail_work(struct work_struct *work)
{
	struct sci_pci *p = container_of(work, struct sci_pci, fail_work);

	mutex_lock(&p->state_lock);
	/* the card may have been taken down and up meanwhile */
	if (test_bit(SCI_PCI_BROKEN, &p->flags))
		sci_pci_down(p);
	mutex_unlock(&p->state_lock);
}

void sci_pci_init(struct sci_pci *p)
{
	mutex_init(&p->state_lock);
	mutex_init(&p->mbox_lock);
	mutex_init(&p->trigger_lock);
	xa_init(&p->silent);
	mutex_init(&p->cmd_lock);
	mutex_init(&p->export_lock);
	mutex_init(&p->dma_lock);
	init_completion(&p->cmd_done);
	init_completion(&p->dma_done);
	INIT_WORK(&p->fail_work, fail_work);
	INIT_WORK(&p->rx_work, sci_pci_rx_work);
	sci_pci_irqs_init(p);
}
