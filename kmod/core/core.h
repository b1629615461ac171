/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* What the files of sci.ko share besides what has a header of its own. */
#ifndef SCI_CORE_H
#define SCI_CORE_H

#include "adapter.h"

#define SCI_ADAPTERS_MAX	256

struct sci_peer_ops;

/*
 * Between these the adapter is alive and its operations may be called; removal
 * waits for all who are inside.  Whoever sleeps for long in between also has
 * to wake up when sci_adapter_is_dead().
 */
int sci_adapter_enter(struct sci_adapter *a, int *idx);
void sci_adapter_exit(struct sci_adapter *a, int idx);

static inline bool sci_adapter_is_dead(struct sci_adapter *a)
{
	return READ_ONCE(a->dead);
}

/* adapter.c */
/* Give it the number that is free and the lowest. */
int sci_adapter_number(struct sci_adapter *a);
/* ... for the counters files and the ioctl */
u64 sci_adapter_link_up_ms(struct sci_adapter *a);
u64 sci_adapter_link_down_ms(struct sci_adapter *a);

/* chardev.c */
extern const struct file_operations sci_chardev_fops;

/* barrier.c */
int sci_barrier_mmap(struct sci_adapter *a, struct vm_area_struct *vma);
/* All maps turn to private pages.  adapter->lock held. */
void sci_barrier_revoke(struct sci_adapter *a);

/* proto.c */
extern const struct sci_peer_ops sci_proto_peer_ops;

/* ioctl.c */
long sci_ioctl(struct file *file, unsigned int cmd, unsigned long arg);

/* sysfs.c */
extern const struct attribute_group *sci_adapter_groups[];

/* debugfs.c */
void sci_debugfs_init(void);
void sci_debugfs_exit(void);
void sci_debugfs_add(struct sci_adapter *a);
void sci_debugfs_remove(struct sci_adapter *a);

#endif
