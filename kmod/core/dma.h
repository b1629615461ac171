/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* DMA queues: transfers between local and remote segments, done in order. */
#ifndef SCI_DMA_H
#define SCI_DMA_H

#include "object.h"

int sci_dma_create(struct sci_object *obj, void *cmd, struct sci_new_file *nf);
int sci_dma_submit(struct sci_object *obj, void *cmd, struct sci_new_file *nf);
int sci_dma_abort(struct sci_object *obj, void *cmd, struct sci_new_file *nf);

#endif
