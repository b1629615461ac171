/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Owned interrupts: what interrupt.c and bell.c share. */
#ifndef LIBSCI_SHM_INTERRUPT_H
#define LIBSCI_SHM_INTERRUPT_H

#include "libsci/fabric/shm/shm.h"

#include <sys/epoll.h>

struct sci_lintr {
	struct shm *shm;
	uint32_t number;
	unsigned int flags;
	unsigned int adapter;
	struct shm_port port;
	sci_event_fn event;
	void *owner;
	_Atomic bool cancelled;
	int eventfd;			/* of a plain interrupt */
	/* shared: edge-triggered epoll of the eventfd; plain: also of the connections */
	int epfd;
	/* fields for data interrupts; svc.lock protects them */
	struct list queue;
	size_t queued_bytes;
	unsigned int queued;
	pthread_cond_t arrived;
};

/* Return whether triggers are messages: the interrupt is plain. */
static inline bool shm_intr_has_rings(const struct sci_lintr *i)
{
	return !(i->flags & (SCI_INTR_DATA | SCI_INTR_SHARED |
			     SCI_INTR_COUNTING));
}

/* bell.c */
#define SHM_BELL_EVENTS	16

bool shm_bell_take(struct sci_lintr *i, struct epoll_event *ev, int n);
bool shm_bell_input(struct sci_lintr *i);

#endif
