// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Interrupts of a card, and the work that checks its link and error counts. */

#include <linux/interrupt.h>

#include "core/compat.h"
#include "pci.h"

/* Report the link. If it went down and came up since the last check, report it as down first. */
static void link_check(struct sci_pci *p, bool up)
{
	u32 downs = sci_pci_read(p, SCI_PCI_COUNTERS +
				    8 * SCI_PCI_CNT_LINK_DOWNS);

	if (up && p->link && downs != p->link_downs)
		sci_adapter_set_link(p->adapter, false);
	p->link_downs = downs;
	WRITE_ONCE(p->link, up);
	sci_adapter_set_link(p->adapter, up);
}

static void event_work(struct work_struct *work)
{
	struct sci_pci *p = container_of(work, struct sci_pci, event_work);
	u32 status = sci_pci_read(p, SCI_PCI_STATUS);

	if (sci_pci_is_gone(p, status))
		return;
	if (status & SCI_PCI_STATUS_STOPPED) {
		sci_pci_fail(p, "it has stopped");
		return;
	}
	link_check(p, status & SCI_PCI_STATUS_LINK_UP);
	sci_adapter_hw_error(p->adapter);
}

/* Clear @events. The read makes sure that they are cleared before they are handled. */
static void irq_ack(struct sci_pci *p, u32 events)
{
	sci_pci_write(p, SCI_PCI_INT_STATUS, events);
	sci_pci_read(p, SCI_PCI_INT_STATUS);
}

static void irq_dispatch(struct sci_pci *p, u32 events)
{
	if (events & SCI_PCI_INT_RX)
		queue_work(p->wq, &p->rx_work);
	if (events & SCI_PCI_INT_DMA)
		complete(&p->dma_done);
	if (events & SCI_PCI_INT_COMMAND)
		complete(&p->cmd_done);
	if (events & (SCI_PCI_INT_ERROR | SCI_PCI_INT_LINK))
		queue_work(p->wq, &p->event_work);
}

static irqreturn_t irq_msix(int irq, void *data)
{
	struct sci_pci_irq *v = data;

	irq_ack(v->card, v->events);
	irq_dispatch(v->card, v->events & READ_ONCE(v->card->int_mask));
	return IRQ_HANDLED;
}

/* Handle an interrupt of a line that other devices may share. */
static irqreturn_t irq_intx(int irq, void *data)
{
	struct sci_pci *p = data;
	u32 events = sci_pci_read(p, SCI_PCI_INT_STATUS);

	/* a missing card reads as all ones */
	if (events == U32_MAX)
		return IRQ_NONE;
	events &= READ_ONCE(p->int_mask);
	if (!events)
		return IRQ_NONE;
	irq_ack(p, events);
	irq_dispatch(p, events);
	return IRQ_HANDLED;
}

void sci_pci_irqs_init(struct sci_pci *p)
{
	static const u32 events[SCI_PCI_VECTORS] = {
		[SCI_PCI_VEC_RX] = SCI_PCI_INT_RX,
		[SCI_PCI_VEC_DMA] = SCI_PCI_INT_DMA,
		[SCI_PCI_VEC_ERROR] = SCI_PCI_INT_ERROR | SCI_PCI_INT_LINK,
		[SCI_PCI_VEC_COMMAND] = SCI_PCI_INT_COMMAND,
	};
	int i;

	for (i = 0; i < SCI_PCI_VECTORS; i++) {
		p->irqs[i].card = p;
		p->irqs[i].events = events[i];
	}
	INIT_WORK(&p->event_work, event_work);
}

static int irq_vectors(const struct sci_pci *p)
{
	return p->msix ? SCI_PCI_VECTORS : 1;
}

static void irqs_free(struct sci_pci *p, int n)
{
	while (n--)
		free_irq(pci_irq_vector(p->pdev, n),
			 p->msix ? (void *)&p->irqs[n] : p);
}

void sci_pci_irqs_free(struct sci_pci *p)
{
	irqs_free(p, irq_vectors(p));
}

int sci_pci_irqs_request(struct sci_pci *p)
{
	static const char *const names[SCI_PCI_VECTORS] = {
		"sci_pci rx", "sci_pci dma", "sci_pci error", "sci_pci command",
	};
	int i, ret;

	if (!p->msix)
		return request_irq(pci_irq_vector(p->pdev, 0), irq_intx,
				   IRQF_SHARED, "sci_pci", p);
	for (i = 0; i < SCI_PCI_VECTORS; i++) {
		ret = request_irq(pci_irq_vector(p->pdev, i), irq_msix, 0,
				  names[i], &p->irqs[i]);
		if (ret) {
			irqs_free(p, i);
			return ret;
		}
	}
	return 0;
}

void sci_pci_irqs_allow(struct sci_pci *p, u32 events)
{
	int i;

	WRITE_ONCE(p->int_mask, events);
	sci_pci_write(p, SCI_PCI_INT_MASK, events);
	for (i = 0; i < irq_vectors(p); i++)
		synchronize_irq(pci_irq_vector(p->pdev, i));
}
