/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Probes: tests whether a node answers. */
#ifndef SCI_PROBE_H
#define SCI_PROBE_H

#include "object.h"
#include "peer.h"

int sci_probe(struct sci_object *obj, void *cmd, struct sci_new_file *nf);

/* Handle a PONG. Context: adapter->lock is held. */
void sci_probe_answer(struct sci_peer *p, const struct sci_msg_simple *msg);
void sci_probe_peer_gone(struct sci_peer *p, int error);

#endif
