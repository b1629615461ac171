// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Message buffers and their message ids. */

#include "libsci/pvm/lib.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEPT_MAX	64		/* freed buffers that are kept for reuse */
#define KEPT_CAP	(8u << 10)	/* bytes of data that a kept buffer may have */
#define XDR_SIGNATURE	0x10000000	/* signature of messages in XDR, for programs */
#define MIDS_MAX	(1 << 24)

static struct buf **mids;		/* buffers by message id; [0] is not used */
static int nmids;
static int free_mid;			/* all ids below this one are in use */

static struct buf *kept[KEPT_MAX];
static int nkept;

struct buf *pv_buf_new(int enc)
{
	struct buf *b = nkept ? kept[--nkept] : calloc(1, sizeof(*b));
	uint8_t *data;
	size_t cap;

	if (!b)
		return NULL;
	data = b->data;
	cap = b->cap;
	*b = (struct buf){ .enc = enc, .data = data, .cap = cap, .fresh = true };
	b->info.enc = enc;
	return b;
}

void pv_buf_free(struct buf *b)
{
	if (!b)
		return;
	if (b->mid) {
		mids[b->mid] = NULL;
		if (b->mid < free_mid)
			free_mid = b->mid;
	}
	if (b->queued)
		list_del(&b->link);
	if (b->msg) {
		list_del(&b->late);
		sci_msg_free(b->msg);
	}
	free(b->pieces);
	if (pv_me.sbuf == b)
		pv_me.sbuf = NULL;
	if (pv_me.rbuf == b)
		pv_me.rbuf = NULL;
	if (nkept < KEPT_MAX && b->cap <= KEPT_CAP) {
		kept[nkept++] = b;
		return;
	}
	free(b->data);
	free(b);
}

static int mids_grow(void)
{
	int n = nmids ? nmids * 2 : 64;
	struct buf **m;

	if (n > MIDS_MAX)
		return PvmNoMem;
	m = realloc(mids, (size_t)n * sizeof(*m));
	if (!m)
		return PvmNoMem;
	memset(m + nmids, 0, (size_t)(n - nmids) * sizeof(*m));
	mids = m;
	nmids = n;
	return 0;
}

int pv_buf_name(struct buf *b)
{
	int i;

	if (b->mid)
		return b->mid;
	for (i = free_mid ? free_mid : 1; i < nmids && mids[i]; i++)
		;
	if (i >= nmids && mids_grow())
		return PvmNoMem;
	mids[i] = b;
	b->mid = i;
	free_mid = i + 1;
	return i;
}

struct buf *pv_buf_find(int mid)
{
	return mid > 0 && mid < nmids ? mids[mid] : NULL;
}

uint8_t *pv_buf_room(struct buf *b, size_t len)
{
	if (len > INT32_MAX || b->len + len > INT32_MAX)
		return NULL;
	if (b->len + len > b->cap) {
		size_t cap = b->cap ? b->cap : 256;
		uint8_t *data;

		while (cap < b->len + len)
			cap *= 2;
		data = realloc(b->data, cap);
		if (!data)
			return NULL;
		b->data = data;
		b->cap = cap;
	}
	b->len += len;
	return b->data + b->len - len;
}

size_t pv_buf_bytes(const struct buf *b)
{
	size_t n = b->len;

	for (int i = 0; i < b->npieces; i++)
		n += b->pieces[i].n * b->pieces[i].size;
	return n;
}

struct buf *pv_buf_copy(const struct buf *b)
{
	size_t len = pv_buf_bytes(b);
	struct buf *c = pv_buf_new(b->enc);
	uint8_t *to = c ? pv_buf_room(c, len) : NULL;

	if (!c || (len && !to)) {
		pv_buf_free(c);
		return NULL;
	}
	c->info = b->info;
	if (b->len)
		memcpy(to, b->data, b->len);
	for (int i = 0; i < b->npieces; i++) {
		const struct piece *p = &b->pieces[i];

		for (size_t j = 0; j < p->n; j++, to += p->size)
			memcpy(to, p->at + j * p->step, p->size);
	}
	return c;
}

int pv_buf_fetch(struct buf *b)
{
	struct sci_msg *msg = b->msg;
	struct iovec iov;
	struct sci_req *req;
	size_t len = b->len;
	int ret;

	if (!msg)
		return 0;
	b->len = 0;
	iov = (struct iovec){ pv_buf_room(b, len), len };
	if (!iov.iov_base && len) {
		b->len = len;
		return PvmNoMem;
	}
	b->len = len;
	ret = sci_msg_recv(msg, &iov, len ? 1 : 0, &req);
	if (ret == -ENOMEM)
		return PvmNoMem;
	b->msg = NULL;
	list_del(&b->late);
	if (!ret)
		ret = sci_wait(req, -1, NULL);
	return ret ? PvmBadMsg : 0;
}

/* Fetch the bytes of a message as pv_buf_fetch() does, outside of a wait. */
int pv_buf_complete(struct buf *b)
{
	int ret = pv_buf_fetch(b);

	pv_watch_renew();
	return ret;
}

/* Fetch all long messages. A message whose sender dies before its last byte is dropped. */
void pv_bufs_fetch(void)
{
	struct list *l, *next;

	list_for_each_safe(l, next, &pv_me.late) {
		struct buf *b = container_of(l, struct buf, late);

		if (!pv_buf_fetch(b) || b->msg)
			continue;
		if (b->queued && !b->mid)
			pv_buf_free(b);
		else
			b->len = 0;
	}
}

void pv_bufs_free(void)
{
	for (int i = 1; i < nmids; i++)
		pv_buf_free(mids[i]);
	while (!list_empty(&pv_me.inbox))
		pv_buf_free(container_of(pv_me.inbox.next, struct buf, link));
}

/* ---- calls ---- */

static bool encoding_is_valid(int enc)
{
	return enc == PvmDataDefault || enc == PvmDataRaw || enc == PvmDataInPlace;
}

PVM_API int pvm_mkbuf(int enc)
{
	struct buf *b;
	int mid;

	/* messages of a tracer use the default encoding */
	if (enc == PvmDataTrace)
		enc = PvmDataDefault;
	if (!encoding_is_valid(enc))
		return lpvmerr("pvm_mkbuf", PvmBadParam);
	b = pv_buf_new(enc);
	if (!b)
		return lpvmerr("pvm_mkbuf", PvmNoMem);
	b->info.src = pvmmytid;
	b->info.ctx = pvmmyctx;
	mid = pv_buf_name(b);
	if (mid < 0)
		pv_buf_free(b);
	return pv_report("pvm_mkbuf", mid);
}

PVM_API int pvm_initsend(int enc)
{
	int mid;

	if (enc == PvmDataTrace)
		enc = PvmDataDefault;
	if (!encoding_is_valid(enc))
		return lpvmerr("pvm_initsend", PvmBadParam);
	pv_buf_free(pv_me.sbuf);
	mid = pvm_mkbuf(enc);
	if (mid > 0)
		pv_me.sbuf = mids[mid];
	return mid;
}

PVM_API int pvm_freebuf(int mid)
{
	struct buf *b = pv_buf_find(mid);

	if (!mid)
		return PvmOk;	/* pvm_setsbuf() returned 0: no buffer */
	if (mid < 0)
		return lpvmerr("pvm_freebuf", PvmBadParam);
	if (!b)
		return lpvmerr("pvm_freebuf", PvmNoSuchBuf);
	pv_buf_free(b);
	return PvmOk;
}

/*
 * Set *@slot, the send or the receive buffer, to message @mid. Return: the old message's id, or 0.
 */
static int buf_switch(const char *call, struct buf **slot, int mid)
{
	struct buf *b = pv_buf_find(mid);
	int old = *slot ? (*slot)->mid : 0;

	if (mid < 0)
		return lpvmerr(call, PvmBadParam);
	if (mid && !b)
		return lpvmerr(call, PvmNoSuchBuf);
	*slot = b;
	return old;
}

PVM_API int pvm_setsbuf(int mid)
{
	int old = buf_switch("pvm_setsbuf", &pv_me.sbuf, mid);

	if (old >= 0 && pv_me.rbuf && pv_me.rbuf == pv_me.sbuf)
		pv_me.rbuf = NULL;
	return old;
}

PVM_API int pvm_setrbuf(int mid)
{
	int old = buf_switch("pvm_setrbuf", &pv_me.rbuf, mid);

	if (old >= 0 && pv_me.rbuf && pv_me.rbuf == pv_me.sbuf)
		pv_me.sbuf = NULL;
	return old;
}

PVM_API int pvm_getsbuf(void)
{
	return pv_me.sbuf ? pv_me.sbuf->mid : 0;
}

PVM_API int pvm_getrbuf(void)
{
	return pv_me.rbuf ? pv_me.rbuf->mid : 0;
}

PVM_API int pvm_bufinfo(int mid, int *bytes, int *tag, int *tid)
{
	struct buf *b = pv_buf_find(mid);

	if (mid <= 0)
		return lpvmerr("pvm_bufinfo", PvmBadParam);
	if (!b)
		return lpvmerr("pvm_bufinfo", PvmNoSuchBuf);
	if (bytes)
		*bytes = (int)pv_buf_bytes(b);
	if (tag)
		*tag = b->info.tag;
	if (tid)
		*tid = b->info.src;
	return PvmOk;
}

PVM_API int pvm_getminfo(int mid, struct pvmminfo *info)
{
	struct buf *b = pv_buf_find(mid);

	if (mid <= 0 || !info)
		return lpvmerr("pvm_getminfo", PvmBadParam);
	if (!b)
		return lpvmerr("pvm_getminfo", PvmNoSuchBuf);
	*info = b->info;
	info->len = (int)pv_buf_bytes(b);
	info->enc = b->enc == PvmDataDefault ? XDR_SIGNATURE : DATA_SIGNATURE;
	return PvmOk;
}

PVM_API int pvm_setminfo(int mid, struct pvmminfo *info)
{
	struct buf *b = pv_buf_find(mid);

	if (mid <= 0 || !info)
		return lpvmerr("pvm_setminfo", PvmBadParam);
	if (!b)
		return lpvmerr("pvm_setminfo", PvmNoSuchBuf);
	b->info.wid = info->wid & WID_MAX;
	b->info.ctx = info->ctx;
	b->info.tag = info->tag;
	b->info.src = info->src;
	b->info.dst = info->dst;
	return PvmOk;
}
