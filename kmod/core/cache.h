/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Flushes of an adapter's simulated cache, for programs. */
#ifndef SCI_CACHE_H
#define SCI_CACHE_H

struct sci_new_file;
struct sci_object;

/* Carry out SCI_IOC_CACHE. */
int sci_cache(struct sci_object *obj, void *cmd, struct sci_new_file *nf);

#endif
