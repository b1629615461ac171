// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Loop-back: this file answers requests to the own node. Such requests cannot get lost, so they
 * have no timeout.
 */
#include "sim/adapter/model.h"

static void request_answer_own(struct sim_adapter *a, struct transaction *t)
{
	struct sim_packet lost = {
		.kind = t->packet.kind | PACKET_RESPONSE,
		.status = SCI_PCI_ERR_PROTECTION,
		.size = PACKET_HEADER,
		.source = a->config.node,
		.epoch = a->epoch,
		.number = t->packet.number,
	};
	struct sim_packet r;

	if (!responder_answer(a, &t->packet, &r))
		r = lost;	/* out of memory: the request is lost */
	transaction_response(a, &r);
}

bool own_run(struct sim_adapter *a)
{
	if (link_empty(&a->own))
		return false;
	while (a->budget && !link_empty(&a->own)) {
		a->budget--;
		request_answer_own(a, LINK_OF(a->own.next, struct transaction, queue));
	}
	return true;
}
