// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Lists of pointers with a cursor. */
#include "libsci/madeleine/internal.h"

p_tbx_slist_t tbx_slist_nil(void)
{
	return tbx_alloc(1, sizeof(tbx_slist_t));
}

tbx_bool_t tbx_slist_is_nil(p_tbx_slist_t l)
{
	return l->length ? tbx_false : tbx_true;
}

long tbx_slist_get_length(p_tbx_slist_t l)
{
	return l->length;
}

static void slist_check_not_empty(p_tbx_slist_t l)
{
	if (!l->length)
		tbx_failure("the list is empty");
}

/* Insert an element before @next; NULL: at the tail. */
static void slist_insert(p_tbx_slist_t l, p_tbx_slist_element_t next, void *o)
{
	p_tbx_slist_element_t e = tbx_alloc(1, sizeof(*e));

	e->object = o;
	e->next = next;
	e->previous = next ? next->previous : l->tail;
	*(e->previous ? &e->previous->next : &l->head) = e;
	*(next ? &next->previous : &l->tail) = e;
	l->length++;
}

static void *element_take(p_tbx_slist_t l, p_tbx_slist_element_t e)
{
	void *o = e->object;

	*(e->previous ? &e->previous->next : &l->head) = e->next;
	*(e->next ? &e->next->previous : &l->tail) = e->previous;
	if (l->ref == e)
		l->ref = NULL;
	l->length--;
	free(e);
	return o;
}

void tbx_slist_add_at_head(p_tbx_slist_t l, void *o)
{
	slist_insert(l, l->head, o);
}

void tbx_slist_add_at_tail(p_tbx_slist_t l, void *o)
{
	slist_insert(l, NULL, o);
}

void *tbx_slist_remove_from_head(p_tbx_slist_t l)
{
	slist_check_not_empty(l);
	return element_take(l, l->head);
}

void *tbx_slist_remove_from_tail(p_tbx_slist_t l)
{
	slist_check_not_empty(l);
	return element_take(l, l->tail);
}

void *tbx_slist_peek_from_head(p_tbx_slist_t l)
{
	slist_check_not_empty(l);
	return l->head->object;
}

void *tbx_slist_peek_from_tail(p_tbx_slist_t l)
{
	slist_check_not_empty(l);
	return l->tail->object;
}

void tbx_slist_append(p_tbx_slist_t l, void *o)
{
	tbx_slist_add_at_tail(l, o);
}

void *tbx_slist_extract(p_tbx_slist_t l)
{
	return tbx_slist_remove_from_head(l);
}

void tbx_slist_push(p_tbx_slist_t l, void *o)
{
	tbx_slist_add_at_tail(l, o);
}

void *tbx_slist_pop(p_tbx_slist_t l)
{
	return tbx_slist_remove_from_tail(l);
}

void tbx_slist_clear(p_tbx_slist_t l)
{
	while (l->head)
		element_take(l, l->head);
}

void tbx_slist_free(p_tbx_slist_t l)
{
	if (l->length)
		tbx_failuref("a list of %ld objects is freed", l->length);
	free(l);
}

void tbx_slist_clear_and_free(p_tbx_slist_t l)
{
	tbx_slist_clear(l);
	free(l);
}

p_tbx_slist_t tbx_slist_dup(p_tbx_slist_t l)
{
	p_tbx_slist_t copy = tbx_slist_nil();

	tbx_slist_merge_after(copy, l);
	return copy;
}

void tbx_slist_merge_after(p_tbx_slist_t dst, p_tbx_slist_t src)
{
	p_tbx_slist_element_t e = src->head;

	for (long n = src->length; n--; e = e->next)
		tbx_slist_add_at_tail(dst, e->object);
}

void tbx_slist_merge_before(p_tbx_slist_t dst, p_tbx_slist_t src)
{
	p_tbx_slist_element_t e = src->tail;

	for (long n = src->length; n--; e = e->previous)
		tbx_slist_add_at_head(dst, e->object);
}

static p_tbx_slist_element_t slist_at(p_tbx_slist_t l, long i)
{
	p_tbx_slist_element_t e = l->head;

	if (i < 0 || i >= l->length)
		tbx_failuref("index %ld of a list of %ld", i, l->length);
	while (i--)
		e = e->next;
	return e;
}

void *tbx_slist_index_get(p_tbx_slist_t l, long i)
{
	return slist_at(l, i)->object;
}

void *tbx_slist_index_extract(p_tbx_slist_t l, long i)
{
	return element_take(l, slist_at(l, i));
}

void tbx_slist_ref_to_head(p_tbx_slist_t l)
{
	slist_check_not_empty(l);
	l->ref = l->head;
}

void tbx_slist_ref_to_tail(p_tbx_slist_t l)
{
	slist_check_not_empty(l);
	l->ref = l->tail;
}

static void slist_check_ref(p_tbx_slist_t l)
{
	if (!l->ref)
		tbx_failure("the list's cursor is nowhere");
}

void *tbx_slist_ref_get(p_tbx_slist_t l)
{
	slist_check_ref(l);
	return l->ref->object;
}

tbx_bool_t tbx_slist_ref_forward(p_tbx_slist_t l)
{
	slist_check_ref(l);
	l->ref = l->ref->next;
	return l->ref ? tbx_true : tbx_false;
}

tbx_bool_t tbx_slist_ref_backward(p_tbx_slist_t l)
{
	slist_check_ref(l);
	l->ref = l->ref->previous;
	return l->ref ? tbx_true : tbx_false;
}
