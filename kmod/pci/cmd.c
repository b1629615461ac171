// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Store barriers and commands. */

#include <linux/delay.h>
#include <linux/jiffies.h>

#include "pci.h"

/* a store barrier spins for this time before it sleeps */
#define BARRIER_SPIN_NS	(20 * NSEC_PER_USEC)
#define BUSY_WAIT_MS	100	/* limit of a wait for room in the other node's receive ring */
#define TICK_MS		10	/* poll again after this time: an interrupt may be lost */

/* ---- store barrier ---- */

static bool barrier_passed(struct sci_pci *p, u32 ticket)
{
	const struct sci_status_page *st = sci_adapter_status(p->adapter);

	return (s32)(le32_to_cpu(READ_ONCE(st->hw_done)) - ticket) >= 0;
}

static bool barrier_spin(struct sci_pci *p, u32 ticket)
{
	u64 end = ktime_get_ns() + BARRIER_SPIN_NS;

	while (!barrier_passed(p, ticket)) {
		if (ktime_get_ns() > end)
			return false;
		cpu_relax();
	}
	return true;
}

void sci_pci_barrier(struct sci_pci *p)
{
	unsigned long limit = jiffies + p->patience;
	u32 ticket;

	if (sci_pci_is_broken(p))
		return;
	/* flush the CPU's write-combining buffers */
	wmb();
	ticket = sci_pci_read(p, SCI_PCI_USER_BARRIER);
	if (sci_pci_is_gone(p, ticket))
		return;
	if (!barrier_spin(p, ticket)) {
		while (!barrier_passed(p, ticket)) {
			if (sci_pci_is_broken(p))
				return;
			if (time_after(jiffies, limit)) {
				sci_pci_fail(p, "a store barrier has no end");
				return;
			}
			usleep_range(20, 100);
		}
	}
	/* the card has written the error count before the number of the barrier */
	dma_rmb();
}

void sci_pci_flush(struct sci_adapter *a)
{
	sci_pci_barrier(sci_adapter_priv(a));
}

/* ---- commands ---- */

/* Wait until the command is complete and return its CMD_STATUS. -ENODEV: the card was given up. */
static int card_command_wait(struct sci_pci *p, u32 *status)
{
	unsigned long limit = jiffies + p->patience;

	lockdep_assert_held(&p->cmd_lock);
	for (;;) {
		*status = sci_pci_read(p, SCI_PCI_CMD_STATUS);
		if (sci_pci_is_gone(p, *status) || sci_pci_is_broken(p))
			return -ENODEV;
		if (*status != SCI_PCI_CMD_BUSY)
			return 0;
		if (time_after(jiffies, limit)) {
			sci_pci_fail(p, "a command has no end");
			return -ENODEV;
		}
		/* the completion may be that of an earlier command */
		wait_for_completion_timeout(&p->cmd_done,
					    msecs_to_jiffies(TICK_MS));
	}
}

static int card_command_result(u32 status)
{
	if (status == SCI_PCI_CMD_DONE)
		return 0;
	if (status > SCI_PCI_CMD_FAILED &&
	    status <= SCI_PCI_CMD_FAILED + SCI_PCI_ERR_ABORTED)
		return status - SCI_PCI_CMD_FAILED;
	return SCI_PCI_ERR_DRIVER;
}

/* Run a command. Return: 0, an enum sci_pci_error, or -ENODEV. */
static int card_command(struct sci_pci *p, u32 cmd, u32 node, u32 arg)
{
	u32 status;
	int ret = -ENODEV;

	mutex_lock(&p->cmd_lock);
	if (!sci_pci_is_broken(p)) {
		reinit_completion(&p->cmd_done);
		sci_pci_write(p, SCI_PCI_CMD_NODE, node);
		sci_pci_write(p, SCI_PCI_CMD_ARG, arg);
		sci_pci_write(p, SCI_PCI_CMD, cmd);
		ret = card_command_wait(p, &status);
		if (!ret)
			ret = card_command_result(status);
	}
	mutex_unlock(&p->cmd_lock);
	return ret;
}

void sci_pci_invalidate(struct sci_pci *p, u32 id)
{
	if (card_command(p, SCI_PCI_CMD_INVALIDATE, 0, id) > 0)
		sci_pci_fail(p, "it does not let go of exported memory");
}

/* ---- remote interrupts ---- */

/* Return a number that grows with each trigger of @node that got no answer. */
static unsigned long node_silent(struct sci_pci *p, u32 node)
{
	return xa_to_value(xa_load(&p->silent, node));
}

/*
 * Trigger an interrupt by a command. For a node that does not answer, the command takes as long
 * as all its repetitions. Only one trigger waits for cmd_lock, so INVALIDATE waits for one
 * trigger at most. If a trigger of the same node gets no answer while this trigger waits for
 * trigger_lock, this trigger fails at once: many processes may trigger interrupts of a node.
 *
 * Return: as for card_command().
 */
static int card_command_interrupt(struct sci_pci *p, u32 node, u32 handle)
{
	unsigned long before = node_silent(p, node);
	int ret = SCI_PCI_ERR_TIMEOUT;

	mutex_lock(&p->trigger_lock);
	if (node_silent(p, node) == before) {
		ret = card_command(p, SCI_PCI_CMD_INTERRUPT, node, handle);
		/* if xa_store() fails, waiting triggers of the node are tried, too */
		if (ret == SCI_PCI_ERR_TIMEOUT)
			xa_store(&p->silent, node, xa_mk_value(before + 1),
				 GFP_KERNEL);
	}
	mutex_unlock(&p->trigger_lock);
	return ret;
}

static int trigger_errno(int error)
{
	switch (error) {
	case SCI_PCI_ERR_TIMEOUT:
	case SCI_PCI_ERR_NODE:
		return -EHOSTUNREACH;
	case SCI_PCI_ERR_LINK:
		return -ENETDOWN;
	case SCI_PCI_ERR_BUSY:
		return -ENOBUFS;
	default:
		return error > 0 ? -EIO : error;
	}
}

int sci_pci_trigger(struct sci_adapter *a, u32 node, u32 handle)
{
	unsigned long limit = jiffies + msecs_to_jiffies(BUSY_WAIT_MS);
	struct sci_pci *p = sci_adapter_priv(a);
	int ret;

	for (;;) {
		ret = card_command_interrupt(p, node, handle);
		if (ret != SCI_PCI_ERR_BUSY || sci_pci_is_stopping(p) ||
		    time_after(jiffies, limit))
			return trigger_errno(ret);
		usleep_range(100, 500);
	}
}
