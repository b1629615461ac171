// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/base/hash.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_SLOTS	16u

static struct hash_node **hash_get_slot(const struct hash *h, uint64_t key)
{
	/* high bits of the product depend on all bits of the key */
	uint64_t mixed = key * UINT64_C(0x9e3779b97f4a7c15);

	return &h->slots[mixed >> 32 >> (32 - __builtin_ctzl(h->n_slots))];
}

static void slot_push(struct hash_node **slot, struct hash_node *node)
{
	node->next = *slot;
	*slot = node;
}

/* Double the number of slots. Elements with the same key keep their order. */
static void hash_grow(struct hash *h)
{
	struct hash bigger = { .n_slots = h->n_slots ? h->n_slots * 2 : FIRST_SLOTS };
	struct hash_node *node, *reversed;
	size_t i;

	bigger.slots = calloc(bigger.n_slots, sizeof(struct hash_node *));
	if (!bigger.slots)
		return;
	for (i = 0; i < h->n_slots; i++) {
		reversed = NULL;
		while ((node = h->slots[i])) {
			h->slots[i] = node->next;
			slot_push(&reversed, node);
		}
		while ((node = reversed)) {
			reversed = node->next;
			slot_push(hash_get_slot(&bigger, node->key), node);
		}
	}
	free(h->slots);
	h->slots = bigger.slots;
	h->n_slots = bigger.n_slots;
}

int hash_add(struct hash *h, struct hash_node *node, uint64_t key)
{
	if (h->n >= h->n_slots)
		hash_grow(h);
	if (!h->n_slots)
		return -ENOMEM;
	node->key = key;
	slot_push(hash_get_slot(h, key), node);
	h->n++;
	return 0;
}

void hash_del(struct hash *h, struct hash_node *node)
{
	struct hash_node **link = hash_get_slot(h, node->key);

	while (*link != node)
		link = &(*link)->next;
	*link = node->next;
	h->n--;
}

struct hash_node *hash_find(const struct hash *h, uint64_t key)
{
	struct hash_node *node = h->n ? *hash_get_slot(h, key) : NULL;

	while (node && node->key != key)
		node = node->next;
	return node;
}

struct hash_node *hash_walk(const struct hash *h, const struct hash_node *node)
{
	size_t i = 0;

	if (node) {
		if (node->next)
			return node->next;
		i = (size_t)(hash_get_slot(h, node->key) - h->slots) + 1;
	}
	for (; i < h->n_slots; i++)
		if (h->slots[i])
			return h->slots[i];
	return NULL;
}

void hash_free(struct hash *h)
{
	free(h->slots);
	*h = (struct hash){ 0 };
}
