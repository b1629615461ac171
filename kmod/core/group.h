/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Broadcast groups: segments of several adapters with one memory. A domain is a set of adapters
 * that can have common groups: those of one machine.
 */
#ifndef SCI_GROUP_H
#define SCI_GROUP_H

#include <linux/list.h>
#include <linux/mutex.h>

#include "adapter_private.h"
#include "owner.h"
#include "pages.h"

struct sci_segment;

struct sci_domain {
	struct mutex lock;		/* protects the domain and its groups */
	struct list_head groups;
	u64 founded;			/* number of groups founded so far */
};

/**
 * struct sci_group - a broadcast group; domain->lock protects it
 * @link: entry in domain->groups
 * @id: id of the group, and of its segments on their nodes
 * @serial: number of the group among all groups of the domain so far; not 0
 * @length: bytes
 * @pages: the members' memory
 * @owner: ids and mode of the founder, which decide who may join
 * @members: number of segments
 * @exported: list of the members that importers may connect to
 */
struct sci_group {
	struct list_head link;
	u32 id;
	u64 serial;
	u64 length;
	struct sci_pages *pages;
	struct sci_owner owner;
	unsigned int members;
	struct list_head exported;
};

/* Make a domain for all adapters of a driver. The driver destroys it after the last adapter. */
struct sci_domain *sci_domain_create(void);
void sci_domain_destroy(struct sci_domain *d);

/**
 * sci_group_join() - make a segment a member of its group
 *
 * The memory of the first segment becomes the group's memory.  Each later segment gets the
 * group's memory in place of its own.
 *
 * Context: no locks are held.
 * Return: 0; -EMSGSIZE: the group has another length; -EACCES: the group's mode does not let
 * the caller read and write; -ENOMEM.
 */
int sci_group_join(struct sci_segment *s);
void sci_group_leave(struct sci_segment *s);
/* Let importers connect to the member. Context: adapter->lock is held. */
void sci_group_export(struct sci_segment *s);
void sci_group_unexport(struct sci_segment *s);

/*
 * Find a node with a member that importers may connect to, and the base of its memory.
 * @serial: number of the group, because another group of the same id has other memory; 0: any.
 * Context: adapter->lock is held. Return: 0; -ENOENT; -EHOSTUNREACH: @a has no groups.
 */
int sci_group_member(struct sci_adapter *a, u32 id, u64 serial, u32 *node,
		     u64 *base);

#endif
