// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The mail box: entries by name and index, on the master. */

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/pvm/daemon/daemon.h"

struct entry {
	struct list link;		/* by name, then index */
	char *name;
	int index;
	int owner;
	int flags;
	int enc;
	size_t len;
	uint8_t data[];
};

/* A pvm_recvinfo() that waits for an entry. */
struct seeker {
	struct list link;
	struct frame_head head;
	char *name;
	int index;
	int flags;
};

static struct list entries = { &entries, &entries };
static struct list seekers = { &seekers, &seekers };

static void entry_free(struct entry *e)
{
	list_del(&e->link);
	free(e->name);
	free(e);
}

/* Find entry @index of @name. @first: find the first entry from @index on. */
static struct entry *entry_find(const char *name, int index, bool first)
{
	for (struct list *l = entries.next; l != &entries; l = l->next) {
		struct entry *e = container_of(l, struct entry, link);

		if (!strcmp(e->name, name) &&
		    (e->index == index || (first && e->index > index)))
			return e;
	}
	return NULL;
}

/* Insert @e by its name, then by its index. */
static void entry_insert(struct entry *e)
{
	struct list *l;

	for (l = entries.next; l != &entries; l = l->next) {
		struct entry *o = container_of(l, struct entry, link);
		int order = strcmp(o->name, e->name);

		if (order > 0 || (!order && o->index > e->index))
			break;
	}
	list_add_tail(&e->link, l);
}

static bool entry_denied(const struct entry *e, int task)
{
	return e->owner != task && !(e->flags & PvmMboxOverWritable);
}

static void entry_deliver(const struct frame_head *head, struct entry *e, int flags)
{
	struct frame f = { 0 };

	if (flags & PvmMboxReadAndDelete && entry_denied(e, (int)head->src)) {
		answer(head, PvmDenied, NULL);
		return;
	}
	frame_begin(&f, OP_REPLY, 0);
	frame_i32(&f, e->enc);
	frame_i32(&f, e->owner);
	frame_bytes(&f, e->data, e->len);
	answer(head, e->index, &f);
	if (flags & PvmMboxReadAndDelete)
		entry_free(e);
}

static void seeker_free(struct seeker *s)
{
	list_del(&s->link);
	free(s->name);
	free(s);
}

static void seekers_serve(void)
{
	struct list *l, *next;

	list_for_each_safe(l, next, &seekers) {
		struct seeker *s = container_of(l, struct seeker, link);
		struct entry *e = entry_find(s->name, s->index,
					     s->flags & PvmMboxFirstAvail);

		if (!e)
			continue;
		entry_deliver(&s->head, e, s->flags);
		seeker_free(s);
	}
}

static int index_free(const char *name)
{
	int index = 0;

	while (entry_find(name, index, false))
		index++;
	return index;
}

/* Choose the index of a new entry. *@old: a replaced entry, or NULL. Return: index or error. */
static int entry_choose_index(const char *name, int flags, int task, struct entry **old)
{
	struct entry *first = entry_find(name, 0, true);
	int direct = (int)PvmMboxDirectIndexOf((unsigned int)flags);

	*old = NULL;
	if (first && entry_denied(first, task) &&
	    (first->flags & PvmMboxMultiInstance) != (flags & PvmMboxMultiInstance))
		return PvmExists;
	if (flags & PvmMboxMultiInstance && !direct)
		return index_free(name);
	*old = entry_find(name, direct, false);
	if (*old && entry_denied(*old, task)) {
		*old = NULL;
		return flags & PvmMboxOverWritable ? PvmDenied : PvmExists;
	}
	return direct;
}

static void serve_put(const struct frame_head *head, struct body *b)
{
	const char *name = body_str(b);
	int flags = body_i32(b), enc = body_i32(b), index;
	struct entry *e, *old;
	size_t len;
	const void *data = body_bytes(b, &len);

	if (enc != PvmDataDefault && enc != PvmDataRaw && enc != PvmDataInPlace)
		b->bad = true;
	index = b->bad ? PvmBadParam : entry_choose_index(name, flags, (int)head->src, &old);
	if (index < 0) {
		answer(head, index, NULL);
		return;
	}
	e = malloc(sizeof(*e) + len);
	if (e)
		*e = (struct entry){
			.name = strdup(name), .index = index, .owner = (int)head->src,
			.flags = flags & (PvmMboxMaxFlag * 2 - 1), .enc = enc, .len = len,
		};
	if (!e || !e->name) {
		free(e);
		answer(head, PvmNoMem, NULL);
		return;
	}
	if (len)
		memcpy(e->data, data, len);
	if (old)
		entry_free(old);
	entry_insert(e);
	answer(head, index, NULL);
	seekers_serve();
}

static void serve_take(const struct frame_head *head, struct body *b)
{
	const char *name = body_str(b);
	int index = body_i32(b), flags = body_i32(b);
	struct entry *e = entry_find(name, index, flags & PvmMboxFirstAvail);
	struct seeker *s;

	if (e) {
		entry_deliver(head, e, flags);
		return;
	}
	s = flags & PvmMboxWaitForInfo ? calloc(1, sizeof(*s)) : NULL;
	if (s)
		*s = (struct seeker){ .head = *head, .name = strdup(name),
				      .index = index, .flags = flags };
	if (!s || !s->name) {
		free(s);
		answer(head, flags & PvmMboxWaitForInfo ? PvmNoMem : PvmNotFound, NULL);
		return;
	}
	list_add_tail(&s->link, &seekers);
}

static int serve_delete(const struct frame_head *head, struct body *b)
{
	const char *name = body_str(b);
	int index = body_i32(b), flags = body_i32(b);
	struct entry *e = entry_find(name, index, flags & PvmMboxFirstAvail);

	if (!e)
		return PvmNotFound;
	if (entry_denied(e, (int)head->src))
		return PvmDenied;
	entry_free(e);
	return 0;
}

/* Append a class to @f: the entries from @l on with the same name. Return: the next class. */
static struct list *class_list(struct list *l, struct frame *f)
{
	struct entry *e = container_of(l, struct entry, link);
	const char *name = e->name;
	int n = 1, i = 0, *v;
	struct list *end;

	for (end = l->next; end != &entries; end = end->next, n++)
		if (strcmp(container_of(end, struct entry, link)->name, name))
			break;
	v = calloc((size_t)n * 3, sizeof(int));
	for (; v && l != end; l = l->next, i++) {
		e = container_of(l, struct entry, link);
		v[i] = e->index;
		v[n + i] = e->owner;
		v[2 * n + i] = e->flags;
	}
	frame_str(f, name);
	for (i = 0; i < 3; i++)
		frame_ints(f, v ? v + i * n : NULL, v ? n : 0);
	free(v);
	return end;
}

static void serve_list(const struct frame_head *head, struct body *b)
{
	const char *pattern = body_str(b);
	struct frame f = { 0 }, classes = { 0 };
	struct list *l = entries.next;
	int n = 0;

	frame_begin(&classes, OP_REPLY, 0);
	while (l != &entries) {
		struct entry *e = container_of(l, struct entry, link);

		if (fnmatch(pattern, e->name, 0)) {
			l = l->next;
			continue;
		}
		l = class_list(l, &classes);
		n++;
	}
	frame_begin(&f, OP_REPLY, 0);
	frame_i32(&f, n);
	if (!classes.failed && f.data) {
		/* append the body of classes to f */
		const size_t skip = sizeof(struct frame_head);
		uint8_t *data = realloc(f.data, f.len + classes.len);

		if (data) {
			memcpy(data + f.len, classes.data + skip, classes.len - skip);
			f.data = data;
			f.cap = f.len + classes.len;
			f.len += classes.len - skip;
		}
	}
	answer(head, 0, &f);
	frame_free(&classes);
}

/* Delete the entries of all tasks that are not in the list in @b. */
static void serve_reset(struct body *b)
{
	struct list *l, *next;
	const void *v;
	int n = body_ints(b, &v);

	list_for_each_safe(l, next, &entries) {
		struct entry *e = container_of(l, struct entry, link);
		bool stays = false;

		for (int i = 0; i < n; i++)
			stays = stays || ints_at(v, i) == e->owner;
		if (!stays)
			entry_free(e);
	}
}

void mbox_serve(const struct frame_head *head, struct body *b)
{
	switch (head->op) {
	case OP_PUTINFO: serve_put(head, b); break;
	case OP_RECVINFO: serve_take(head, b); break;
	case OP_DELINFO: answer(head, serve_delete(head, b), NULL); break;
	case OP_MBOXES: serve_list(head, b); break;
	default: serve_reset(b); answer(head, 0, NULL); break;
	}
}

void mbox_task_ended(int tid)
{
	struct list *l, *next;

	list_for_each_safe(l, next, &entries) {
		struct entry *e = container_of(l, struct entry, link);

		if (!tid_matches(e->owner, tid))
			continue;
		if (e->flags & PvmMboxPersistent)
			e->owner = 0;
		else
			entry_free(e);
	}
	list_for_each_safe(l, next, &seekers) {
		struct seeker *s = container_of(l, struct seeker, link);

		if (tid_matches((int)s->head.src, tid))
			seeker_free(s);
	}
}
