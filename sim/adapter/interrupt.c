// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* INT_STATUS, INT_MASK and the interrupts that they cause: section 10 of the data sheet. */
#include "sim/adapter/model.h"

void interrupt_raise(struct sim_adapter *a, uint32_t bits)
{
	a->int_raised |= bits & ~a->int_status & a->int_mask;
	a->int_status |= bits;
}

void interrupt_clear(struct sim_adapter *a, uint32_t bits)
{
	a->int_status &= ~bits;
}

void interrupt_mask(struct sim_adapter *a, uint32_t mask)
{
	mask &= SCI_PCI_INT_ALL;
	a->int_raised |= a->int_status & mask & ~a->int_mask;
	a->int_mask = mask;
}

void interrupt_settle(struct sim_adapter *a)
{
	uint32_t pending = a->int_status & a->int_mask;
	uint32_t raised = a->int_raised;

	if (pending == a->int_told && !raised)
		return;
	a->int_told = pending;
	a->int_raised = 0;
	a->host->interrupt(a->ctx, pending, raised);
}
