/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the library's fabric "model"
 *
 * Stores, barriers and plain interrupts use the adapter. A request to another node's kernel and
 * its answer (connects, events, interrupts with data) take the time `control` of the profile.
 */
#ifndef SIM_VTIME_FABRIC_H
#define SIM_VTIME_FABRIC_H

#include "libsci/fabric/core/fabric.h"
#include "libsci/base/list.h"
#include "sim/vtime/internal.h"

#define FABRIC_BUCKETS		64u

/* The receiver of events of an object. It exists until all events in flight have arrived. */
struct vt_listener {
	struct vt_node *node;
	sci_event_fn fn;		/* NULL: the object has been freed */
	void *owner;
	unsigned int refs;
};

struct sci_lseg {
	struct sci_lseg *next;		/* in its bucket */
	struct vt_node *node;
	struct vt_listener *listener;
	uint32_t id;
	uint64_t size;
	uint8_t *mem;
	bool own;			/* the segment has allocated @mem */
	bool exported;
	uint16_t export_id;
	uint8_t *pages;			/* of the export: leaves, then their root */
	struct list importers;
	unsigned int n_importers;
};

struct sci_rseg {
	struct list link;		/* lseg->importers */
	struct vt_node *node;
	struct vt_listener *listener;
	struct sci_lseg *lseg;		/* NULL: the exporter has cut the import off */
	uint16_t target;
	uint16_t export_id;
	uint64_t size;
	struct sci_rseg_status status;
};

struct vt_fabric {
	struct sci_fabric base;
	struct vt_node *node;
	struct sci_link_status link;
	struct sci_lseg *segments[FABRIC_BUCKETS];
	struct sci_lintr *interrupts[FABRIC_BUCKETS];
	uint16_t next_export[VT_EXPORTS];	/* id; 0: that slot is in use */
	uint32_t last_export;
	uint32_t next_entry;			/* of the ATT: a hint */
	uint32_t entries;			/* in use */
	uint32_t entries_max;
	uint8_t att[VT_ATT_ENTRIES];		/* in use */
};

static inline struct vt_fabric *fabric_cast(struct sci_fabric *f)
{
	return (struct vt_fabric *)f;
}

/* fabric.c */
void fabric_ask(struct vt_node *n);
struct vt_node *fabric_node(struct vt_node *n, unsigned int id);

/* fabric_news.c */
struct vt_listener *fabric_listener(struct vt_node *n, sci_event_fn fn,
				    void *owner);
void fabric_listener_end(struct vt_listener *l);
void fabric_tell(struct vt_listener *l, enum sci_event_type type,
		 unsigned int node, int status);
void fabric_news_drop(vt_event_fn fn, void *arg);

/* fabric_tables.c */
uint32_t fabric_pages(uint64_t off, size_t len);
uint32_t fabric_entries_get(struct vt_fabric *f, uint32_t pages);
void fabric_entries_put(struct vt_fabric *f, uint32_t first, uint32_t pages);
void fabric_entry_set(struct vt_fabric *f, uint32_t entry, uint16_t node,
		      uint16_t attr, uint16_t export_id, uint64_t offset);
int fabric_export_begin(struct sci_lseg *s);
void fabric_export_end(struct sci_lseg *s);
void fabric_export_free(struct sci_lseg *s);

/* fabric_segment.c: struct sci_fabric_ops */
int fab_lseg_create(struct sci_fabric *base, const struct sci_lseg_param *p,
		    struct sci_lseg **out);
int fab_lseg_export(struct sci_lseg *s, unsigned int adapter);
int fab_lseg_unexport(struct sci_lseg *s, enum sci_unexport how);
unsigned int fab_lseg_importers(struct sci_lseg *s);
void fab_lseg_destroy(struct sci_lseg *s);
uint32_t fab_lseg_id(struct sci_lseg *s);
uint64_t fab_lseg_size(struct sci_lseg *s);
int fab_lseg_map(struct sci_lseg *s, uint64_t off, size_t len,
		 unsigned int flags, void **addr);
int fab_rseg_connect(struct sci_fabric *f, const struct sci_rseg_param *p,
		     struct sci_rseg **out);
void fab_cancel_connect(struct sci_fabric *f, const void *owner);
void fab_rseg_disconnect(struct sci_rseg *r);
uint64_t fab_rseg_size(struct sci_rseg *r);
bool fab_rseg_readonly(struct sci_rseg *r);
struct sci_rseg_status *fab_rseg_status(struct sci_rseg *r);
int fab_rseg_map(struct sci_rseg *r, uint64_t off, size_t len,
		 unsigned int flags, void **addr);
void fab_unmap(struct sci_fabric *base, void *addr, size_t len);
void fabric_lseg_free(struct sci_lseg *s);

/* fabric_interrupt.c: struct sci_fabric_ops */
int fab_lintr_create(struct sci_fabric *base, struct sci_lintr_param *p,
		     struct sci_lintr **out);
int fab_lintr_wait(struct sci_lintr *i, void *data, size_t *len,
		   uint32_t timeout);
int fab_lintr_fd(struct sci_lintr *i);
void fab_lintr_cancel(struct sci_lintr *i);
void fab_lintr_destroy(struct sci_lintr *i);
int fab_rintr_connect(struct sci_fabric *base, const struct sci_rintr_param *p,
		      struct sci_rintr **out);
int fab_rintr_trigger(struct sci_rintr *r, const void *data, size_t len);
void fab_rintr_disconnect(struct sci_rintr *r);
void fabric_parcel_drop(vt_event_fn fn, void *arg);

#endif
