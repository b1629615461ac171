// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Hash tables with strings as keys, in the order of insertion, and arrays that grow. */
#include "libsci/madeleine/internal.h"

#define BUCKETS	64		/* buckets of an empty table */

struct entry {
	struct entry *next;		/* next entry in the bucket */
	void *object;
	char *key;
	long turn;			/* number of the insertion, which orders entries */
};

struct s_tbx_htable {
	struct entry **bucket;
	long buckets;
	long size;
	long turns;
};

p_tbx_htable_t tbx_htable_empty_table(void)
{
	p_tbx_htable_t t = tbx_alloc(1, sizeof(*t));

	t->bucket = tbx_alloc(BUCKETS, sizeof(struct entry *));
	t->buckets = BUCKETS;
	return t;
}

/* Return the link to the entry @key, or the link where @key would be inserted. */
static struct entry **table_find(p_tbx_htable_t t, const char *key)
{
	unsigned int h = 5381;
	struct entry **e;

	for (const char *c = key; *c; c++)
		h = h * 33 ^ (unsigned char)*c;
	for (e = &t->bucket[h % t->buckets]; *e && strcmp((*e)->key, key); e = &(*e)->next)
		;
	return e;
}

/* Double the number of buckets, so that their lists stay short. */
static void table_grow(p_tbx_htable_t t)
{
	struct entry **old = t->bucket, *e;
	long buckets = t->buckets;

	t->buckets *= 2;
	t->bucket = tbx_alloc((size_t)t->buckets, sizeof(struct entry *));
	for (long i = 0; i < buckets; i++)
		while ((e = old[i])) {
			old[i] = e->next;
			e->next = NULL;
			*table_find(t, e->key) = e;
		}
	free(old);
}

void tbx_htable_add(p_tbx_htable_t t, const char *key, void *o)
{
	struct entry **at, *e;

	if (t->size == t->buckets)
		table_grow(t);
	at = table_find(t, key);
	if (*at)
		tbx_failuref("the table has %s", key);
	e = tbx_alloc(1, sizeof(*e));
	e->object = o;
	e->key = tbx_strdup(key);
	e->turn = t->turns++;
	*at = e;
	t->size++;
}

void *tbx_htable_get(p_tbx_htable_t t, const char *key)
{
	struct entry *e = *table_find(t, key);

	return e ? e->object : NULL;
}

void *tbx_htable_replace(p_tbx_htable_t t, const char *key, void *o)
{
	struct entry *e = *table_find(t, key);
	void *old;

	if (!e)
		tbx_failuref("the table has no %s", key);
	old = e->object;
	e->object = o;
	return old;
}

void *tbx_htable_extract(p_tbx_htable_t t, const char *key)
{
	struct entry **at = table_find(t, key), *e = *at;
	void *o;

	if (!e)
		return NULL;
	o = e->object;
	*at = e->next;
	t->size--;
	free(e->key);
	free(e);
	return o;
}

tbx_bool_t tbx_htable_empty(p_tbx_htable_t t)
{
	return t->size ? tbx_false : tbx_true;
}

long tbx_htable_get_size(p_tbx_htable_t t)
{
	return t->size;
}

static int entries_compare(const void *a, const void *b)
{
	long x = (*(struct entry *const *)a)->turn, y = (*(struct entry *const *)b)->turn;

	return x < y ? -1 : x > y;
}

p_tbx_slist_t tbx_htable_get_key_slist(p_tbx_htable_t t)
{
	struct entry **all = tbx_alloc((size_t)t->size, sizeof(struct entry *));
	p_tbx_slist_t l = tbx_slist_nil();
	size_t n = 0;

	for (long i = 0; i < t->buckets; i++)
		for (struct entry *e = t->bucket[i]; e; e = e->next)
			all[n++] = e;
	qsort(all, n, sizeof(struct entry *), entries_compare);
	for (size_t i = 0; i < n; i++)
		tbx_slist_append(l, tbx_strdup(all[i]->key));
	free(all);
	return l;
}

void tbx_htable_free(p_tbx_htable_t t)
{
	if (t->size)
		tbx_failuref("a table of %ld objects is freed", t->size);
	free(t->bucket);
	free(t);
}

void tbx_htable_cleanup_and_free(p_tbx_htable_t t)
{
	for (long i = 0; i < t->buckets; i++)
		while (t->bucket[i])
			tbx_htable_extract(t, t->bucket[i]->key);
	free(t->bucket);
	free(t);
}

/* ---- arrays ---- */

struct s_tbx_darray {
	void **object;
	int length;
	int room;
};

p_tbx_darray_t tbx_darray_init(void)
{
	return tbx_alloc(1, sizeof(tbx_darray_t));
}

void tbx_darray_free(p_tbx_darray_t d)
{
	free(d->object);
	free(d);
}

long tbx_darray_length(p_tbx_darray_t d)
{
	return d->length;
}

static void index_check(int i)
{
	if (i < 0 || i >= 1 << 28)
		tbx_failuref("index %d of an array", i);
}

void *tbx_darray_get(p_tbx_darray_t d, tbx_darray_index_t i)
{
	index_check(i);
	return i < d->length ? d->object[i] : NULL;
}

static void table_expand(p_tbx_darray_t d, int length)
{
	if (length <= d->length)
		return;
	if (length > d->room) {
		d->room = length + length / 2;
		d->object = tbx_realloc(d->object, (size_t)d->room * sizeof(void *));
	}
	memset(d->object + d->length, 0, (size_t)(length - d->length) * sizeof(void *));
	d->length = length;
}

void tbx_darray_set(p_tbx_darray_t d, tbx_darray_index_t i, void *o)
{
	index_check(i);
	if (i >= d->length)
		tbx_failuref("index %d of an array of %d", i, d->length);
	d->object[i] = o;
}

void tbx_darray_expand_and_set(p_tbx_darray_t d, tbx_darray_index_t i, void *o)
{
	index_check(i);
	table_expand(d, i + 1);
	d->object[i] = o;
}

void *tbx_darray_expand_and_get(p_tbx_darray_t d, tbx_darray_index_t i)
{
	index_check(i);
	table_expand(d, i + 1);
	return d->object[i];
}

void tbx_darray_append(p_tbx_darray_t d, void *o)
{
	tbx_darray_expand_and_set(d, d->length, o);
}

static void *table_from(p_tbx_darray_t d, int i, p_tbx_darray_index_t out)
{
	for (; i < d->length; i++)
		if (d->object[i]) {
			*out = i;
			return d->object[i];
		}
	return NULL;
}

void *tbx_darray_first_idx(p_tbx_darray_t d, p_tbx_darray_index_t i)
{
	return table_from(d, 0, i);
}

void *tbx_darray_next_idx(p_tbx_darray_t d, p_tbx_darray_index_t i)
{
	return table_from(d, *i + 1, i);
}
