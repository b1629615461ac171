// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: symmetric memory
 *
 * There are three kinds of regions: the heap, extensions of the heap, and registered memory.
 * Each member's part of a region is an exported buffer. Near members map it when the region
 * is made. Offsets are the same on all members, addresses are not. But the addresses are congruent
 * modulo the region's modulus, up to which an aligned address is aligned on all members. The buffer
 * of an extension for larger alignments is longer than the extension by the alignment: the
 * extension begins where its second page is aligned.
 */

#include "libsci/team/team.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsci/base/pages.h"

static size_t pages_round_up(uint64_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (len + page - 1) & ~(page - 1);
}

static void region_free(struct team_world *w, struct team_region *r)
{
	heap_clear(&r->blocks);
	for (int i = 0; r->remote && i < w->size; i++)
		if (r->remote[i] && i != w->rank)
			sci_peer_unmap(w->ranks[i].peer, (void *)r->remote[i]);
	if (r->buf)
		sci_buf_free(w->ep, r->buf);
	else if (r->base)
		sci_buf_unregister(w->ep, r->base, r->len);
	free(r->keys);
	free(r->remote);
	free(r);
}

static int memory_register(struct team_world *w, void *addr, size_t len)
{
	int ret = sci_buf_register(w->ep, addr, len);

	if (ret != -EFAULT)
		return ret;
	/* the fabric wants anonymous memory */
	ret = sci_pages_make_anonymous(addr, len);
	return ret ? ret : sci_buf_register(w->ep, addr, len);
}

/* Allocate a heap whose second page is a multiple of @align. */
static int heap_new(struct team_world *w, struct team_region *r, size_t align)
{
	size_t page = pages_round_up(1), more = align > page ? align : 0, at;
	int ret;

	if (r->len > SIZE_MAX - more)
		return -ENOMEM;
	ret = sci_buf_alloc(w->ep, r->len + more, &r->buf);
	if (ret)
		return ret;
	r->base = r->buf;
	if (more)
		r->base += (align - ((size_t)r->buf + page) % align) % align;
	r->heap = true;
	*(uint64_t *)(void *)r->base = TEAM_HEAP_MARK;
	return heap_alloc(&r->blocks, TEAM_LINE, 1, &at);
}

/*
 * Make this process's part of a region. @addr: memory of the program; NULL: allocate a heap whose
 * second page has alignment @align
 */
static int region_new(struct team_world *w, void *addr, size_t len, size_t align,
		      struct team_region **out)
{
	struct team_region *r = calloc(1, sizeof(*r));
	int ret = -ENOMEM;

	*out = r;
	if (!r)
		return ret;
	r->len = len;
	heap_init(&r->blocks, len);
	r->keys = calloc((size_t)w->size, sizeof(*r->keys));
	r->remote = calloc((size_t)w->size, sizeof(*r->remote));
	if (!r->keys || !r->remote)
		return ret;
	ret = addr ? memory_register(w, addr, len) : heap_new(w, r, align);
	if (!ret && addr)
		r->base = addr;
	return ret ? ret : sci_buf_key(w->ep, r->base, len, &r->keys[w->rank]);
}

struct region_hello {
	struct sci_key key;
	uint64_t base;
	uint64_t len;
	int64_t error;
};
_Static_assert(sizeof(struct region_hello) <= TEAM_KEPT_GATHER, "exchanged without memory");

static int region_map(struct sci_team *t, struct team_region *r,
		      const struct region_hello *all)
{
	struct team_world *w = t->world;
	int ret = 0;

	for (int i = 0; i < t->size; i++) {
		ret = all[i].error ? (int)all[i].error : ret;
		ret = all[i].len != r->len ? -EINVAL : ret;
	}
	for (int i = 0; !ret && i < t->size; i++) {
		int m = (t->rank + i) % t->size, to = t->members[m].world;
		void *addr = r->base;

		r->keys[to] = all[m].key;
		if (w->ranks[to].group != w->ranks[w->rank].group)
			continue;
		if (i)
			ret = world_map(w, to, &all[m].key, &addr);
		r->remote[to] = (size_t)addr;
	}
	return ret;
}

/* Set the modulus: the largest power of two that divides all distances between the bases. */
static void region_congruence(struct sci_team *t, struct team_region *r,
			      const struct region_hello *all)
{
	uint64_t differ = SCI_TEAM_ALIGN_MAX;

	for (int i = 0; i < t->size; i++)
		differ |= all[i].base ^ all[t->rank].base;
	r->modulus = differ & -differ;
	r->blocks.phase = all[t->rank].base % r->modulus;
}

static void region_publish(struct team_world *w, struct team_region *r)
{
	w->regions[w->n_regions] = r;
	sci_store_release(&w->n_regions, w->n_regions + 1);
}

static int region_add(struct sci_team *t, void *addr, size_t len, size_t align)
{
	struct team_world *w = t->world;
	struct region_hello mine = { .len = len }, *all;
	struct team_region *r;
	bool published = false;
	int ret;

	all = calloc((size_t)t->size, sizeof(*all));
	ret = team_agree(t, all ? 0 : -ENOMEM);
	if (ret) {
		free(all);
		return ret;
	}
	assert(all);		/* else the members agreed on -ENOMEM */
	mine.error = region_new(w, addr, len, align, &r);
	if (!mine.error) {
		mine.key = r->keys[w->rank];
		mine.base = (size_t)r->base;
	}
	if (w->n_regions == TEAM_REGIONS)
		mine.error = -ENOSPC;
	ret = sci_team_allgather(t, &mine, sizeof(mine), all);
	if (!ret) {
		ret = r ? region_map(t, r, all) : -ENOMEM;
		/* publish before team_agree(): a peer that returns first may use the region */
		if (!ret) {
			region_congruence(t, r, all);
			region_publish(w, r);
		}
		published = !ret;
		ret = team_agree(t, ret);
	}
	free(all);
	if (!ret)
		return 0;
	if (published)
		sci_store_release(&w->n_regions, w->n_regions - 1);
	if (r)
		region_free(w, r);
	return ret;
}

/* Describe the first region to sci_team_ptr(), which is inline. */
void symmetric_view(struct sci_team *t)
{
	const struct team_region *r = t->world->n_regions ? t->world->regions[0] : NULL;

	t->view.ranks = (size_t)t->size;
	t->view.shift = t->shift;
	for (int i = 0; i < t->size; i++) {
		size_t remote = r ? r->remote[t->members[i].world] : 0;

		t->shift[i] = remote ? remote - (size_t)r->base : TEAM_FAR;
	}
	if (r) {
		t->view.base = (size_t)r->base;
		t->view.len = r->len;
	}
}

int symmetric_open(struct sci_team *all, uint64_t size)
{
	int ret = region_add(all, NULL, pages_round_up(size), 1);

	if (!ret)
		symmetric_view(all);
	return ret;
}

void symmetric_close(struct team_world *w)
{
	for (unsigned int i = 0; i < w->n_regions; i++)
		region_free(w, w->regions[i]);
	w->n_regions = 0;
}

void *sci_team_ptr_any(const struct sci_team *team, const void *addr, int rank)
{
	const struct sci_key *key;
	uint64_t offset;
	void *ptr;

	if (!team || world_usable(team->world) ||
	    symmetric_at(team, addr, 1, rank, &ptr, &key, &offset))
		return NULL;
	return ptr;
}

/* ---- allocate ---- */

/* Indices of the arguments and the results of an allocation, which the members compare. */
enum { ALLOC_LEN, ALLOC_ALIGN, ALLOC_REGION, ALLOC_OFFSET, ALLOC_ERRNO, ALLOC_WORDS };

/* Allocate in the first region with room. */
static int region_alloc(struct team_world *w, uint64_t *words, void **addr)
{
	size_t at = 0;

	for (unsigned int i = 0; i < w->n_regions; i++) {
		struct team_region *r = w->regions[i];
		int ret = -ENOSPC;

		pthread_mutex_lock(&w->lock);
		if (r->heap && words[ALLOC_ALIGN] <= r->modulus)
			ret = heap_alloc(&r->blocks, words[ALLOC_LEN], words[ALLOC_ALIGN], &at);
		pthread_mutex_unlock(&w->lock);
		if (ret == -ENOSPC)
			continue;
		words[ALLOC_REGION] = i;
		words[ALLOC_OFFSET] = at;
		*addr = r->base + at;
		return ret;
	}
	return -ENOSPC;
}

static struct team_region *region_block_find(struct team_world *w, const void *addr, size_t *at)
{
	unsigned int i = region_find(w, addr, 1);

	if (i == TEAM_REGIONS || !w->regions[i]->heap)
		return NULL;
	*at = (size_t)addr - (size_t)w->regions[i]->base;
	/* offset 0 is the heap's mark */
	return *at ? w->regions[i] : NULL;
}

static int region_block_free(struct team_world *w, const void *addr)
{
	size_t at;
	struct team_region *r = region_block_find(w, addr, &at);
	int ret = -EINVAL;

	pthread_mutex_lock(&w->lock);
	if (r)
		ret = heap_free(&r->blocks, at);
	pthread_mutex_unlock(&w->lock);
	return ret;
}

/* A word is the same on all members if its maximum is also its minimum. */
static bool word_is_same(const uint64_t *all, int i)
{
	return all[i] == ~all[ALLOC_WORDS + i];
}

/*
 * Allocate a block. Check that all members have passed the same arguments and got the same offset.
 */
static int alloc_once(struct sci_team *t, size_t len, size_t align, void **addr)
{
	uint64_t all[2 * ALLOC_WORDS] = { len, align };
	int mine = region_alloc(t->world, all, addr), ret;

	all[ALLOC_ERRNO] = (uint64_t)-mine;
	for (int i = 0; i < ALLOC_WORDS; i++)
		all[ALLOC_WORDS + i] = ~all[i];
	ret = sci_team_allreduce(t, all, all, 2 * ALLOC_WORDS,
				 sci_op(SCI_OP_MAX, SCI_TYPE_UINT64));
	if (!ret && !(word_is_same(all, ALLOC_LEN) && word_is_same(all, ALLOC_ALIGN)))
		ret = -EINVAL;
	ret = ret ? ret : -(int)all[ALLOC_ERRNO];
	if (!ret && !(word_is_same(all, ALLOC_REGION) && word_is_same(all, ALLOC_OFFSET)))
		ret = -EINVAL;
	if (ret && !mine)
		region_block_free(t->world, *addr);
	return ret;
}

/*
 * Return the length of an extension for a block. The first page has the heap's mark. A full heap
 * doubles. A heap that only lacks the alignment grows by an eighth: few blocks need much.
 */
static size_t extension_len(const struct team_world *w, size_t len, size_t align)
{
	size_t least = w->regions[0]->len / 8, page = pages_round_up(1);

	for (unsigned int i = 0; i < w->n_regions; i++)
		if (w->regions[i]->heap && align <= w->regions[i]->modulus)
			least = w->regions[0]->len;
	if (len > SIZE_MAX - 2 * page)
		return len;
	return pages_round_up(len + page > least ? len + page : least);
}

/*
 * Return the alignment of an extension of @len bytes. If the caller needs more than pages, use up
 * to a quarter of the length: a program that asks for larger and larger alignments gets few
 * extensions.
 */
static size_t extension_align(size_t len, size_t align)
{
	if (align <= pages_round_up(1))
		return align;
	while (align < SCI_TEAM_ALIGN_MAX && align <= len / 8)
		align *= 2;
	return align;
}

int sci_team_alloc(struct sci_team *team, size_t len, size_t align, void **addr)
{
	size_t more;
	int ret;

	if (!team || !len || !addr || !team->all || (align & (align - 1)) ||
	    align > SCI_TEAM_ALIGN_MAX)
		return -EINVAL;
	ret = world_usable(team->world);
	if (ret)
		return ret;
	align = align ? align : TEAM_LINE;
	ret = alloc_once(team, len, align, addr);
	if (ret == -ENOSPC) {
		more = extension_len(team->world, len, align);
		ret = region_add(team, NULL, more, extension_align(more, align));
		ret = ret ? ret : alloc_once(team, len, align, addr);
	}
	if (ret)
		*addr = NULL;
	return ret;
}

int sci_team_free(struct sci_team *team, void *addr)
{
	int ret;

	if (!team || !addr || !team->all)
		return -EINVAL;
	if (world_usable(team->world))
		return -ENOTCONN;
	if (!sci_team_alloc_size(team, addr))
		return -EINVAL;
	ret = sci_team_barrier(team);
	if (ret)
		return ret;
	return region_block_free(team->world, addr);
}

size_t sci_team_alloc_size(struct sci_team *team, const void *addr)
{
	struct team_region *r;
	size_t at, size = 0;

	if (!team || world_usable(team->world))
		return 0;
	r = region_block_find(team->world, addr, &at);
	pthread_mutex_lock(&team->world->lock);
	if (r)
		size = heap_size(&r->blocks, at);
	pthread_mutex_unlock(&team->world->lock);
	return size;
}

int sci_team_register(struct sci_team *team, void *addr, size_t len)
{
	if (!team || !team->all || !addr || !len ||
	    len != pages_round_up(len) || (size_t)addr != pages_round_up((size_t)addr))
		return -EINVAL;
	if (world_usable(team->world))
		return -ENOTCONN;
	return region_add(team, addr, len, 1);
}
