// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: exported buffers
 *
 * Each chunk of exported memory is a segment with its own descriptors. Peers import the segment
 * when they first write to it. To save exports and imports, buffers of up to 256 KiB are pieces of
 * chunks of 256 KiB, and freed buffers are used again while peers still import their chunks. Chunks
 * of pieces stay exported until deck_done(). Freed larger buffers stay exported up to a total of 32
 * MiB.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "libsci/deck/internal.h"

/* Return the class c of @size, with pieces of 1024 << c bytes; BUF_CLASSES: no class fits. */
static unsigned int size_get_class(size_t size)
{
	unsigned int c = 0;

	while (c < BUF_CLASSES && size > (size_t)1024 << c)
		c++;
	return c;
}

int deck_bufs_share(struct deck_world *w, struct sci_ep *ep)
{
	struct deck_chunk *c, *n;
	int ret = 0;

	list_for_each_entry_safe(c, n, &w->chunks, link)
		ret = ret ? ret : sci_buf_share(ep, w->port, c->addr);
	return ret;
}

static void chunk_free(struct deck_world *w, struct deck_chunk *c)
{
	struct deck_mbox *box, *n;

	list_for_each_entry_safe(box, n, &w->boxes, link)
		sci_buf_free(box->ep, c->addr);
	sci_buf_free(w->port, c->addr);
	list_del(&c->link);
	free(c);
}

static int chunk_share(struct deck_world *w, const struct deck_chunk *c)
{
	struct deck_mbox *box, *n;
	int ret = 0;

	list_for_each_entry_safe(box, n, &w->boxes, link)
		ret = ret ? ret : sci_buf_share(box->ep, w->port, c->addr);
	return ret;
}

static int chunk_new(struct deck_world *w, size_t size, struct deck_chunk **out)
{
	struct deck_chunk *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return -ENOMEM;
	c->size = size;
	ret = sci_buf_alloc(w->port, size, &c->addr);
	if (ret) {
		free(c);
		return ret;
	}
	list_add_tail(&c->link, &w->chunks);
	ret = chunk_share(w, c);
	if (ret) {
		chunk_free(w, c);
		return ret;
	}
	*out = c;
	return 0;
}

static int pieces_new(struct deck_world *w, struct deck_pieces *p, size_t size)
{
	size_t room = p->room + BUF_CHUNK / size;
	void **more = realloc(p->free, room * sizeof(*more));
	struct deck_chunk *c;
	int ret;

	if (!more)
		return -ENOMEM;
	p->free = more;
	ret = chunk_new(w, BUF_CHUNK, &c);
	if (ret)
		return ret;
	p->room = room;
	for (size_t at = BUF_CHUNK; at; at -= size)
		p->free[p->n++] = (uint8_t *)c->addr + at - size;
	return 0;
}

static int piece_get(struct deck_world *w, unsigned int class, void **out)
{
	struct deck_pieces *p = &w->pieces[class];
	int ret = p->n ? 0 : pieces_new(w, p, (size_t)1024 << class);

	if (!ret)
		*out = p->free[--p->n];
	return ret;
}

static int large_get(struct deck_world *w, size_t size, void **out)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len = (size + page - 1) & ~(page - 1);
	struct deck_chunk *c, *n;
	int ret;

	if (len < size)
		return -ENOMEM;
	list_for_each_entry_safe(c, n, &w->kept, free) {
		if (c->size >= len && c->size - len <= len / 4) {
			list_del(&c->free);
			w->kept_bytes -= c->size;
			*out = c->addr;
			return 0;
		}
	}
	ret = chunk_new(w, len, &c);
	if (!ret)
		*out = c->addr;
	return ret;
}

static void large_put(struct deck_world *w, const void *addr)
{
	struct deck_chunk *c, *n;

	list_for_each_entry_safe(c, n, &w->chunks, link) {
		if (c->addr != addr)
			continue;
		if (w->kept_bytes + c->size > BUF_KEPT_MAX) {
			chunk_free(w, c);
		} else {
			list_add_tail(&c->free, &w->kept);
			w->kept_bytes += c->size;
		}
		return;
	}
}

int deck_buf_get(struct deck_world *w, size_t size, void **out)
{
	unsigned int class = size_get_class(size);
	int ret;

	pthread_mutex_lock(&w->lock);
	ret = class < BUF_CLASSES ? piece_get(w, class, out) : large_get(w, size, out);
	if (!ret)
		w->exported++;
	pthread_mutex_unlock(&w->lock);
	return ret;
}

void deck_buf_put(struct deck_world *w, uint8_t *buf, size_t size)
{
	unsigned int class = size_get_class(size);

	pthread_mutex_lock(&w->lock);
	w->exported--;
	if (class < BUF_CLASSES)
		w->pieces[class].free[w->pieces[class].n++] = buf;
	else
		large_put(w, buf);
	pthread_mutex_unlock(&w->lock);
}

void deck_bufs_free(struct deck_world *w)
{
	struct deck_chunk *c, *n;

	list_for_each_entry_safe(c, n, &w->chunks, link) {
		sci_buf_free(w->port, c->addr);
		free(c);
	}
	for (unsigned int i = 0; i < BUF_CLASSES; i++)
		free(w->pieces[i].free);
}
