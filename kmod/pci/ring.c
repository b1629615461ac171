// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Receive ring and mailbox. */

#include <linux/iopoll.h>
#include <linux/string.h>

#include "pci.h"

#define RX_BATCH	256	/* limit of packets that one run of the work handles */
#define MBOX_POLL_US	50
#define MBOX_WAIT_US	1000	/* limit of a wait under locks of the core */

/* ---- receive ring ---- */

int sci_pci_ring_init(struct sci_pci *p)
{
	p->rx = dma_alloc_coherent(&p->pdev->dev,
				   sci_pci_rx_entries * sizeof(*p->rx),
				   &p->rx_dma, GFP_KERNEL);
	if (!p->rx)
		return -ENOMEM;
	p->rx_head = 0;
	p->rx_turn = 1;
	p->mbox_free = 0;
	return 0;
}

/* Free the receive ring. The card was reset. */
void sci_pci_ring_fini(struct sci_pci *p)
{
	dma_free_coherent(&p->pdev->dev, sci_pci_rx_entries * sizeof(*p->rx),
			  p->rx, p->rx_dma);
	p->rx = NULL;
}

static void rx_deliver(struct sci_pci *p, const struct sci_pci_rx *rx)
{
	u32 source = le16_to_cpu(READ_ONCE(rx->source));

	switch (le16_to_cpu(READ_ONCE(rx->kind))) {
	case SCI_PCI_RX_MAILBOX:
		/* the core copies the data before it checks them */
		sci_adapter_receive(p->adapter, source, rx->data);
		break;
	case SCI_PCI_RX_INTERRUPT:
		sci_adapter_interrupt(p->adapter, source,
				      le32_to_cpu(READ_ONCE(rx->value)));
		break;
	case SCI_PCI_RX_RETURNED:
		sci_adapter_returned(p->adapter, source);
		break;
	}
}

/* Return the next entry, or NULL if it has not arrived yet. */
static const struct sci_pci_rx *rx_next(struct sci_pci *p)
{
	const struct sci_pci_rx *rx = &p->rx[p->rx_head &
					     (sci_pci_rx_entries - 1)];

	if (le32_to_cpu(READ_ONCE(rx->turn)) != p->rx_turn)
		return NULL;
	/* the card writes this word last */
	dma_rmb();
	return rx;
}

void sci_pci_rx_work(struct work_struct *work)
{
	struct sci_pci *p = container_of(work, struct sci_pci, rx_work);
	const struct sci_pci_rx *rx;
	unsigned int n;

	for (n = 0; n < RX_BATCH; n++) {
		rx = rx_next(p);
		if (!rx)
			break;
		rx_deliver(p, rx);
		p->rx_head++;
		if (!++p->rx_turn)
			p->rx_turn = 1;
		/* the card refuses packets while the ring is full: give entries back early */
		if (!(p->rx_head % (sci_pci_rx_entries / 4)))
			sci_pci_write(p, SCI_PCI_RX_HEAD, p->rx_head);
		cond_resched();
	}
	if (n)
		sci_pci_write(p, SCI_PCI_RX_HEAD, p->rx_head);
	if (n == RX_BATCH)
		queue_work(p->wq, &p->rx_work);
}

/* ---- mailbox ---- */

static int mbox_reserve(struct sci_pci *p)
{
	u32 n;
	int ret;

	lockdep_assert_held(&p->mbox_lock);
	if (!p->mbox_free) {
		ret = read_poll_timeout(sci_pci_read, n, n, MBOX_POLL_US,
					MBOX_WAIT_US, false, p,
					SCI_PCI_MBOX_FREE);
		if (sci_pci_is_gone(p, n))
			return -ENODEV;
		if (ret || n > SCI_PCI_MBOX_SLOTS)
			return -EAGAIN;
		p->mbox_free = n;
	}
	p->mbox_free--;
	return 0;
}

/* Send a packet. Without room in the mailbox, the packet counts as lost. */
int sci_pci_send(struct sci_adapter *a, u32 node, const void *packet)
{
	struct sci_pci *p = sci_adapter_priv(a);
	__le32 words[SCI_PCI_MBOX_SIZE / 4];
	int ret, i;

	if (!READ_ONCE(p->link))
		return -ENETDOWN;
	if (sci_pci_is_broken(p))
		return -ENODEV;
	memcpy(words, packet, sizeof(words));
	mutex_lock(&p->mbox_lock);
	ret = mbox_reserve(p);
	if (!ret) {
		for (i = 0; i < ARRAY_SIZE(words); i++)
			sci_pci_write(p, SCI_PCI_MBOX_DATA + 4 * i,
				      le32_to_cpu(words[i]));
		sci_pci_write(p, SCI_PCI_MBOX_SEND, node);
	}
	mutex_unlock(&p->mbox_lock);
	return ret;
}
