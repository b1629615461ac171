/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Local segments: memory that this node exports. */
#ifndef SCI_SEGMENT_H
#define SCI_SEGMENT_H

#include <linux/device.h>

#include "connection.h"
#include "object.h"
#include "owner.h"
#include "pages.h"

struct sci_group;

/**
 * struct sci_segment - a local segment, or a process's attachment to one
 * @obj: the object of its file
 * @dev: sysfs segmentID; holds the reference count
 * @id: number of the segment on this node
 * @flags: enum sci_segment_flags
 * @owner: the owner, and permissions of other users
 * @pid: process that created it
 * @numa_node: node that the creator asked for
 * @length: bytes
 * @pages: the segment's memory; NULL: EMPTY, and no memory was registered yet
 * @backing: file that backs maps of @pages; NULL: no process has mapped it yet
 * @state: enum sci_segment_state, under adapter->lock; sysfs reads it without the lock
 * @base: result of sci_adapter_ops.expose(), valid while @exposed
 * @exposed: the exposure, through which other nodes reach @pages; NULL: none
 * @exporter: the servers of the segment's importers
 * @importers: number of importers that are not cut off
 * @cutting: number of importers that are cut off, and have not acknowledged it
 * @attached: list of segments that are attached to this one
 * @creator: attached segment: the created segment; NULL: that segment has ended
 * @attach_link: entry in creator->attached
 * @group: BROADCAST: its group
 * @group_link: entry in group->exported
 */
struct sci_segment {
	struct sci_object obj;
	struct device dev;
	u32 id;
	u32 flags;
	struct sci_owner owner;
	struct pid *pid;
	int numa_node;
	u64 length;
	struct sci_pages *pages;
	struct file *backing;
	u32 state;
	u64 base;
	struct sci_exposure *exposed;
	struct sci_exporter exporter;
	unsigned int importers;
	unsigned int cutting;
	struct list_head attached;
	struct sci_segment *creator;
	struct list_head attach_link;
	struct sci_group *group;
	struct list_head group_link;
};

int sci_segment_create(struct sci_object *obj, void *cmd,
		       struct sci_new_file *nf);
int sci_segment_attach(struct sci_object *obj, void *cmd,
		       struct sci_new_file *nf);
int sci_segment_register(struct sci_object *obj, void *cmd,
			 struct sci_new_file *nf);
int sci_segment_register_dmabuf(struct sci_object *obj, void *cmd,
				struct sci_new_file *nf);
int sci_segment_get_dmabuf(struct sci_object *obj, void *cmd,
			   struct sci_new_file *nf);
int sci_segment_share(struct sci_object *obj, void *cmd,
		      struct sci_new_file *nf);
int sci_segment_export(struct sci_object *obj, void *cmd,
		       struct sci_new_file *nf);
int sci_segment_unexport(struct sci_object *obj, void *cmd,
			 struct sci_new_file *nf);
int sci_segment_remove(struct sci_object *obj, void *cmd,
		       struct sci_new_file *nf);
int sci_segment_info(struct sci_object *obj, void *cmd,
		     struct sci_new_file *nf);

static inline struct sci_segment *sci_segment_of(struct sci_object *obj)
{
	return container_of(obj, struct sci_segment, obj);
}

/* Return whether a created segment has ended. Attached segments stay usable after its end. */
static inline bool sci_segment_is_removed(struct sci_segment *s)
{
	return (READ_ONCE(s->state) & (SCI_SEGMENT_STATE_REMOVED |
				       SCI_SEGMENT_STATE_ATTACHED)) ==
	       SCI_SEGMENT_STATE_REMOVED;
}

/*
 * Return a reference to the segment's memory; NULL: it has none yet, or was removed. Context:
 * takes adapter->lock.
 */
struct sci_pages *sci_segment_pages(struct sci_segment *s);

/* Operations of servers of SCI_KIND_SEGMENT and SCI_KIND_GROUP. */
extern const struct sci_server_ops sci_segment_server_ops;

#endif
