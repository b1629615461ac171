// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Mailbox and commands: section 11 of the data sheet. */
#include "sim/adapter/model.h"

/* Return a node id of 16 bits. An invalid id of 32 bits stays invalid. */
static uint16_t command_get_node(uint32_t node)
{
	return node > UINT16_MAX ? 0 : (uint16_t)node;
}

void mailbox_send(struct sim_adapter *a, uint32_t node)
{
	struct transaction *t;

	t = transaction_special(a, OWNER_MAILBOX, command_get_node(node),
				PACKET_MAILBOX);
	if (!t)
		return;
	t->packet.size = PACKET_HEADER + SCI_PCI_MBOX_SIZE;
	memcpy(t->packet.data, a->command.mailbox, SCI_PCI_MBOX_SIZE);
}

void command_end(struct sim_adapter *a, enum sci_pci_error error,
		 uint32_t result)
{
	struct command *c = &a->command;

	c->result = error ? 0 : result;
	c->status = error ? SCI_PCI_CMD_FAILED + error : SCI_PCI_CMD_DONE;
	interrupt_raise(a, SCI_PCI_INT_COMMAND);
	if (c->kind == SCI_PCI_CMD_INTERRUPT && error != SCI_PCI_ERR_BUSY &&
	    error)
		status_error(a, error, command_get_node(c->busy_node), 0);
}

static void command_packet(struct sim_adapter *a, enum packet_kind kind)
{
	struct command *c = &a->command;
	struct transaction *t;

	t = transaction_special(a, OWNER_COMMAND, command_get_node(c->node), kind);
	if (!t) {	/* cannot happen while one command runs at a time */
		command_end(a, SCI_PCI_ERR_BUSY, 0);
		return;
	}
	if (kind == PACKET_READ_CSR)
		t->packet.address = c->arg;
	else
		t->packet.value = c->arg;
}

static void command_invalidate(struct sim_adapter *a)
{
	export_forget(a);
	if (a->config.direct)
		a->host->invalidate(a->ctx, (uint16_t)a->command.arg);
	else
		command_end(a, SCI_PCI_ERR_NONE, 0);
}

void command_start(struct sim_adapter *a, uint32_t kind)
{
	struct command *c = &a->command;

	if (c->stopped || c->status == SCI_PCI_CMD_BUSY)
		return;
	c->kind = kind;
	c->busy_node = c->node;
	c->busy_arg = c->arg;
	c->result = 0;
	c->status = SCI_PCI_CMD_BUSY;
	switch (kind) {
	case SCI_PCI_CMD_INTERRUPT:
		command_packet(a, PACKET_INTERRUPT);
		break;
	case SCI_PCI_CMD_READ_CSR:
		command_packet(a, PACKET_READ_CSR);
		break;
	case SCI_PCI_CMD_INVALIDATE:
		command_invalidate(a);
		break;
	default:
		command_end(a, SCI_PCI_ERR_DRIVER, 0);
		status_stop(a, &c->stopped);
	}
}

void sim_adapter_invalidated(struct sim_adapter *a, uint16_t export_id)
{
	const struct command *c = &a->command;

	if (a->config.direct && c->status == SCI_PCI_CMD_BUSY &&
	    c->kind == SCI_PCI_CMD_INVALIDATE &&
	    (uint16_t)c->busy_arg == export_id)
		command_end(a, SCI_PCI_ERR_NONE, 0);
	adapter_settle(a);
}
