// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* This file turns events of a fabric's segments into SISCI's callback reasons. */

#include "libsci/sisci/object.h"

static int event_get_reason(enum sci_event_type type)
{
	switch (type) {
	case SCI_EVENT_CONNECT:
		return SCI_CB_CONNECT;
	case SCI_EVENT_LOST:
		return SCI_CB_LOST;
	case SCI_EVENT_NOT_OPERATIONAL:
		return SCI_CB_NOT_OPERATIONAL;
	case SCI_EVENT_OPERATIONAL:
		return SCI_CB_OPERATIONAL;
	default:
		return SCI_CB_DISCONNECT;
	}
}

void sci_segment_event(void *owner, const struct sci_event *ev)
{
	const struct sci_note note = {
		.reason = event_get_reason(ev->type), .node = ev->node,
		.adapter = ev->adapter, .count = 1,
	};

	sci_notify(owner, &note, SCI_MERGE_NO);
}
