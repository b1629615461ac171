/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* A doubly linked list. Its links are members of its elements. */
#ifndef LIBSCI_LIST_H
#define LIBSCI_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *next;
	struct list *prev;
};

/* libfabric's headers define this macro, too */
#ifndef container_of
#define container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))
#endif

/* @n is read before the body runs, so the body may remove @pos */
#define list_for_each_safe(pos, n, head)				\
	for ((pos) = (head)->next; (n) = (pos)->next, (pos) != (head);	\
	     (pos) = (n))

/* The same for elements @e, which are linked by their member @member */
#define list_for_each_entry_safe(e, n, head, member)				\
	for ((e) = container_of((head)->next, __typeof__(*(e)), member);	\
	     (n) = container_of((e)->member.next, __typeof__(*(e)), member),	\
	     &(e)->member != (head); (e) = (n))

static inline void list_init(struct list *head)
{
	head->next = head;
	head->prev = head;
}

static inline bool list_empty(const struct list *head)
{
	return head->next == head;
}

static inline void list_add_tail(struct list *entry, struct list *head)
{
	entry->next = head;
	entry->prev = head->prev;
	head->prev->next = entry;
	head->prev = entry;
}

/* Append all entries of @from to @to. @from is empty then. */
static inline void list_move_all(struct list *from, struct list *to)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

static inline void list_del(struct list *entry)
{
	entry->prev->next = entry->next;
	entry->next->prev = entry->prev;
	list_init(entry);
}

static inline struct list *list_pop(struct list *head)
{
	struct list *first = head->next;

	if (first == head)
		return NULL;
	head->next = first->next;
	first->next->prev = head;
	list_init(first);
	return first;
}

#endif
