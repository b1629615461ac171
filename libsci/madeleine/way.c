// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Send and receive through gateways: divide fragments into blocks and count credits; see rail.h. */
#include <errno.h>

#include "libsci/madeleine/rail.h"

/* The part of a fragment that is not sent yet. */
struct way_piece {
	struct way_piece *next;
	const uint8_t *buf;
	size_t len;
	void *copy;			/* a copy of the fragment, freed when sent; or NULL */
};

/* The receives of a fragment's blocks. */
struct pieces {
	size_t n;
	struct {
		struct sci_req *req;
		size_t len;
	} block[];
};

struct mad_way *mad_way_new(uint32_t channel, int from, int to, uint32_t sub)
{
	struct mad_way *way = tbx_alloc(1, sizeof(*way));

	way->tag = tag_of_way(channel, from, to, sub);
	way->credits = WAY_WINDOW;
	way->tail = &way->head;
	return way;
}

/* ---- sending ---- */

static int block_send(struct mad_link *l, const void *buf, size_t len)
{
	struct mad_way *way = l->way;
	struct sci_req *req = NULL;
	int ret;

	if (way->n == way->room) {
		way->room = 2 * way->room + 8;
		way->reqs = tbx_realloc(way->reqs, way->room * sizeof(*way->reqs));
	}
	ret = sci_itsend(l->peer, CONTEXT_FORWARD, way->tag, buf, len, &req);
	if (ret)
		return ret;
	way->reqs[way->n++] = req;
	way->credits--;
	return 0;
}

/*
 * Receive a credit. Return: 0; -EAGAIN: none has arrived, and @wait is false.
 */
static int credit_take(struct mad_world *w, struct mad_link *l, bool wait)
{
	struct rail *r = &rails_of(w)->rail[l->network];
	uint64_t tag = l->way->tag | TAG_CREDIT;
	int ret;

	while ((ret = sci_tprobe(r->ep, l->peer, CONTEXT_CREDIT, tag, 0,
				 wait ? rails_poll_ms(rails_of(w)) : 0, NULL)) == -ETIMEDOUT)
		rails_progress(w);
	ret = ret ? ret : sci_trecv(r->ep, l->peer, CONTEXT_CREDIT, tag, 0, NULL, 0, NULL);
	if (!ret)
		l->way->credits += WAY_CREDIT;
	return ret;
}

static int requests_wait(struct mad_world *w, struct mad_way *way)
{
	int ret = 0;

	for (size_t i = 0; i < way->n; i++) {
		int one = rails_wait(w, way->reqs[i], NULL);

		ret = ret ? ret : one;
	}
	way->n = 0;
	return ret;
}

/* Free a sent piece. If it has a copy, first wait until its blocks are sent. */
static int copies_free(struct mad_world *w, struct mad_way *way, struct way_piece *p)
{
	int ret = p->copy ? requests_wait(w, way) : 0;

	free(p->copy);
	free(p);
	return ret;
}

/* Send blocks while there are credits. @wait: wait for credits until all blocks are sent. */
static int way_pump(struct mad_world *w, struct mad_link *l, bool wait)
{
	struct mad_way *way = l->way;
	size_t block = rails_of(w)->block;
	struct way_piece *p;
	int ret = 0;

	while (!ret && (p = way->head)) {
		size_t len = tbx_min(p->len, block);

		if (!way->credits)
			ret = credit_take(w, l, wait);
		ret = ret ? ret : block_send(l, p->buf, len);
		if (ret)
			break;
		p->buf += len;
		p->len -= len;
		if (p->len)
			continue;
		way->head = p->next;
		if (!way->head)
			way->tail = &way->head;
		ret = copies_free(w, way, p);
	}
	return ret == -EAGAIN ? 0 : ret;
}

static int piece_add(struct mad_world *w, struct mad_link *l, const void *buf, size_t len,
		     void *copy)
{
	struct way_piece *p = tbx_alloc(1, sizeof(*p));

	p->buf = buf;
	p->len = len;
	p->copy = copy;
	*l->way->tail = p;
	l->way->tail = &p->next;
	return way_pump(w, l, false);
}

int way_send(struct mad_world *w, struct mad_link *l, const void *buf, size_t len)
{
	void *copy = memcpy(tbx_alloc(1, len + 1), buf, len);

	return piece_add(w, l, copy, len, copy);
}

int way_isend(struct mad_world *w, struct mad_link *l, const void *buf, size_t len)
{
	return piece_add(w, l, buf, len, NULL);
}

int way_flush(struct mad_world *w, struct mad_link *l)
{
	int ret = way_pump(w, l, true);

	return ret ? ret : requests_wait(w, l->way);
}

/* ---- receiving ---- */

int way_irecv(struct mad_world *w, struct mad_link *l, void *buf, size_t len, void **req)
{
	struct rails *rails = rails_of(w);
	struct rail *r = &rails->rail[l->network];
	size_t n = (len + rails->block - 1) / rails->block;
	struct pieces *p = tbx_alloc(1, sizeof(*p) + n * sizeof(p->block[0]));
	int ret = 0;

	for (size_t at = 0; at < len && !ret; at += p->block[p->n++].len) {
		size_t part = tbx_min(len - at, rails->block);

		p->block[p->n].len = part;
		ret = sci_itrecv(r->ep, l->peer, rail_context(l->channel), l->way->tag, 0,
				 (uint8_t *)buf + at, part, &p->block[p->n].req);
	}
	*req = (void *)((uintptr_t)p | 1);
	return ret;
}

int way_wait(struct mad_world *w, void *req)
{
	struct pieces *p = (void *)((uintptr_t)req & ~(uintptr_t)1);
	int ret = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct sci_status st;
		int one = rails_wait(w, p->block[i].req, &st);

		if (!one && st.len != p->block[i].len)
			one = -EPROTO;
		ret = ret ? ret : one;
	}
	free(p);
	return ret;
}
