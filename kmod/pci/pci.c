// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* PCI-SCI adapters on the bus; pci.h describes the files. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/sizes.h>

#include "core/compat.h"
#include "pci.h"

#define TIMEOUT_US_MAX	200000u

unsigned int sci_pci_timeout_us __ro_after_init = 20000;
module_param_named(timeout_us, sci_pci_timeout_us, uint, 0444);
MODULE_PARM_DESC(timeout_us,
		 "us until a packet that has no response is sent again, doubled each time (1 to 200000, default 20000)");

unsigned int sci_pci_retries __ro_after_init = 5;
module_param_named(retries, sci_pci_retries, uint, 0444);
MODULE_PARM_DESC(retries,
		 "how often a packet is sent again before it is lost (0 to 7, default 5)");

unsigned int sci_pci_gather_ns __ro_after_init = 10000;
module_param_named(gather_ns, sci_pci_gather_ns, uint, 0444);
MODULE_PARM_DESC(gather_ns,
		 "ns until stores that fill no packet leave by themselves (default 10000)");

unsigned int sci_pci_rx_entries __ro_after_init = 1024;
module_param_named(rx_entries, sci_pci_rx_entries, uint, 0444);
MODULE_PARM_DESC(rx_entries,
		 "entries of the receive ring (power of two from 16 to 4096, default 1024)");

static bool intx __ro_after_init;
module_param(intx, bool, 0444);
MODULE_PARM_DESC(intx, "use INTA# although the card has MSI-X (N)");

/* ---- probe and remove ---- */

static void __iomem *bar_map(struct pci_dev *pdev, int bar, u64 size)
{
	resource_size_t start = pci_resource_start(pdev, bar);
	resource_size_t len = pci_resource_len(pdev, bar);

	if (!(pci_resource_flags(pdev, bar) & IORESOURCE_MEM) || len < size ||
	    !devm_request_mem_region(&pdev->dev, start, len, KBUILD_MODNAME))
		return NULL;
	return devm_ioremap(&pdev->dev, start, len);
}

/* Claim the window; the kernel itself does not map it. */
static int window_claim(struct sci_pci *p)
{
	struct pci_dev *pdev = p->pdev;
	resource_size_t start = pci_resource_start(pdev, SCI_PCI_BAR_WINDOW);
	resource_size_t len = pci_resource_len(pdev, SCI_PCI_BAR_WINDOW);

	if (!(pci_resource_flags(pdev, SCI_PCI_BAR_WINDOW) & IORESOURCE_MEM) ||
	    !IS_ALIGNED(start, PAGE_SIZE) ||
	    !devm_request_mem_region(&pdev->dev, start, len, KBUILD_MODNAME))
		return -ENODEV;
	p->window = start;
	return devm_arch_io_reserve_memtype_wc(&pdev->dev, start, len);
}

static int bars_claim(struct sci_pci *p)
{
	p->csr = bar_map(p->pdev, SCI_PCI_BAR_CSR, SCI_PCI_CSR_SIZE);
	p->att = bar_map(p->pdev, SCI_PCI_BAR_ATT, SZ_4K);
	if (!p->csr || !p->att) {
		dev_err(&p->pdev->dev, "no registers\n");
		return -ENODEV;
	}
	return window_claim(p);
}

static int vectors_alloc(struct sci_pci *p)
{
	int n = -ENOSPC;

	if (!intx)
		n = pci_alloc_irq_vectors(p->pdev, SCI_PCI_VECTORS,
					  SCI_PCI_VECTORS, PCI_IRQ_MSIX);
	p->msix = n == SCI_PCI_VECTORS;
	if (!p->msix)
		n = pci_alloc_irq_vectors(p->pdev, 1, 1, PCI_IRQ_INTX);
	return n < 0 ? n : 0;
}

static int card_bus_set_up(struct sci_pci *p)
{
	int ret = pcim_enable_device(p->pdev);

	if (ret)
		return ret;
	ret = dma_set_mask_and_coherent(&p->pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		return ret;
	dma_set_max_seg_size(&p->pdev->dev, UINT_MAX);
	return bars_claim(p);
}

static void card_take_down(struct sci_pci *p)
{
	mutex_lock(&p->state_lock);
	sci_pci_down(p);
	mutex_unlock(&p->state_lock);
}

static int sci_pci_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct sci_pci *p = devm_kzalloc(&pdev->dev, sizeof(*p), GFP_KERNEL);
	int ret;

	if (!p)
		return -ENOMEM;
	p->pdev = pdev;
	sci_pci_init(p);
	ret = card_bus_set_up(p);
	if (ret)
		return ret;
	p->wq = alloc_workqueue("sci_pci %s", WQ_UNBOUND | WQ_HIGHPRI, 0,
				pci_name(pdev));
	if (!p->wq)
		return -ENOMEM;
	pci_set_drvdata(pdev, p);
	/* another kernel may have left the card running */
	sci_pci_halt(p);
	ret = vectors_alloc(p);
	if (ret)
		goto err_wq;
	mutex_lock(&p->state_lock);
	ret = sci_pci_up(p);
	mutex_unlock(&p->state_lock);
	if (ret)
		goto err_vectors;
	return 0;

err_vectors:
	pci_free_irq_vectors(pdev);
err_wq:
	destroy_workqueue(p->wq);
	return ret;
}

static void sci_pci_remove(struct pci_dev *pdev)
{
	struct sci_pci *p = pci_get_drvdata(pdev);

	card_take_down(p);
	cancel_work_sync(&p->fail_work);
	pci_free_irq_vectors(pdev);
	destroy_workqueue(p->wq);
}

/* Stop the card for the next kernel, whose memory it must not write to. */
static void sci_pci_shutdown(struct pci_dev *pdev)
{
	struct sci_pci *p = pci_get_drvdata(pdev);

	mutex_lock(&p->state_lock);
	set_bit(SCI_PCI_STOPPING, &p->flags);
	set_bit(SCI_PCI_BROKEN, &p->flags);
	sci_pci_halt(p);
	mutex_unlock(&p->state_lock);
}

/* ---- power, errors and resets of the bus ---- */

/* Bring a card up after an error. A card that is up stays up: not every error does harm. */
static int card_bring_up(struct sci_pci *p)
{
	int ret = 0;

	mutex_lock(&p->state_lock);
	if (!p->adapter)
		ret = sci_pci_up(p);
	mutex_unlock(&p->state_lock);
	if (ret)
		dev_err(&p->pdev->dev, "does not come back: %pe\n",
			ERR_PTR(ret));
	return ret;
}

/*
 * Take the card down before the machine sleeps: users and other nodes lose the adapter, as if
 * the card were pulled out. This is prepare() and complete(), not suspend() and resume(),
 * because a device can get no child between those.
 */
static int sci_pci_prepare(struct device *dev)
{
	card_take_down(dev_get_drvdata(dev));
	return 0;
}

static void sci_pci_complete(struct device *dev)
{
	card_bring_up(dev_get_drvdata(dev));
}

static const struct dev_pm_ops sci_pci_pm = {
	.prepare	= sci_pci_prepare,
	.complete	= sci_pci_complete,
};

static pci_ers_result_t sci_pci_error_detected(struct pci_dev *pdev,
					       pci_channel_state_t state)
{
	struct sci_pci *p = pci_get_drvdata(pdev);

	if (state == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	mutex_lock(&p->state_lock);
	if (p->adapter)
		sci_pci_fail(p, "the bus has cut it off");
	sci_pci_down(p);
	mutex_unlock(&p->state_lock);
	return state == pci_channel_io_perm_failure ?
	       PCI_ERS_RESULT_DISCONNECT : PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t sci_pci_slot_reset(struct pci_dev *pdev)
{
	struct sci_pci *p = pci_get_drvdata(pdev);

	pci_restore_state(pdev);
	return sci_pci_read(p, SCI_PCI_ID) == SCI_PCI_ID_VALUE ?
	       PCI_ERS_RESULT_RECOVERED : PCI_ERS_RESULT_DISCONNECT;
}

static void sci_pci_resume(struct pci_dev *pdev)
{
	card_bring_up(pci_get_drvdata(pdev));
}

static void sci_pci_reset_prepare(struct pci_dev *pdev)
{
	card_take_down(pci_get_drvdata(pdev));
}

static const struct pci_error_handlers sci_pci_errors = {
	.error_detected	= sci_pci_error_detected,
	.slot_reset	= sci_pci_slot_reset,
	.resume		= sci_pci_resume,
	.reset_prepare	= sci_pci_reset_prepare,
	.reset_done	= sci_pci_resume,
};

/* ---- module ---- */

static const struct pci_device_id sci_pci_ids[] = {
	{ PCI_DEVICE(SCI_PCI_VENDOR, SCI_PCI_DEVICE) },
	{ }
};
MODULE_DEVICE_TABLE(pci, sci_pci_ids);

static struct pci_driver sci_pci_driver = {
	.name = KBUILD_MODNAME,
	.id_table = sci_pci_ids,
	.probe = sci_pci_probe,
	.remove = sci_pci_remove,
	.shutdown = sci_pci_shutdown,
	.driver.pm = pm_sleep_ptr(&sci_pci_pm),
	.err_handler = &sci_pci_errors,
};

static int __init pci_check_params(void)
{
	if (!sci_pci_timeout_us || sci_pci_timeout_us > TIMEOUT_US_MAX) {
		pr_err("timeout_us=%u is not between 1 and %u\n",
		       sci_pci_timeout_us, TIMEOUT_US_MAX);
		return -EINVAL;
	}
	if (sci_pci_retries > SCI_PCI_RETRIES_MAX) {
		pr_err("retries=%u is more than %u\n", sci_pci_retries,
		       SCI_PCI_RETRIES_MAX);
		return -EINVAL;
	}
	if (!sci_pci_is_power(sci_pci_rx_entries, SCI_PCI_RX_ENTRIES_MIN,
			      SCI_PCI_RX_ENTRIES_MAX)) {
		pr_err("rx_entries=%u is not a power of two from %u to %u\n",
		       sci_pci_rx_entries, SCI_PCI_RX_ENTRIES_MIN,
		       SCI_PCI_RX_ENTRIES_MAX);
		return -EINVAL;
	}
	return 0;
}

static int __init sci_pci_module_init(void)
{
	int ret = pci_check_params();

	if (ret)
		return ret;
	sci_pci_show_init();
	return pci_register_driver(&sci_pci_driver);
}

static void __exit sci_pci_module_exit(void)
{
	pci_unregister_driver(&sci_pci_driver);
}

module_init(sci_pci_module_init);
module_exit(sci_pci_module_exit);
MODULE_AUTHOR("The libsci authors");
MODULE_DESCRIPTION("PCI-SCI adapters");
MODULE_LICENSE("GPL");
