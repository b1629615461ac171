// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Calls of the mail box. The first daemon keeps the entries. */

#include "libsci/pvm/lib.h"

#include <stdlib.h>
#include <string.h>

static int mbox_request(struct frame *f, enum frame_op op, const char *name,
			struct answer *a, int x, int y)
{
	frame_begin(f, op, TO_MASTER);
	frame_str(f, name);
	frame_i32(f, x);
	frame_i32(f, y);
	return pv_request(f, a);
}

PVM_API int pvm_putinfo(char *name, int mid, int flags)
{
	struct buf *b = pv_buf_find(mid), *plain;
	struct frame f = { 0 };
	int ret = pv_task_ready();

	if (ret < 0)
		return lpvmerr("pvm_putinfo", ret);
	if (!name || !*name || mid <= 0)
		return lpvmerr("pvm_putinfo", PvmBadParam);
	if (!b)
		return lpvmerr("pvm_putinfo", PvmNoSuchBuf);
	if (b->msg && pv_buf_fetch(b))
		return lpvmerr("pvm_putinfo", PvmNoMem);
	plain = b->npieces ? pv_buf_copy(b) : b;
	if (!plain)
		return lpvmerr("pvm_putinfo", PvmNoMem);
	frame_begin(&f, OP_PUTINFO, TO_MASTER);
	frame_str(&f, name);
	frame_i32(&f, flags);
	frame_i32(&f, b->enc);
	frame_bytes(&f, plain->data, plain->len);
	if (plain != b)
		pv_buf_free(plain);
	ret = pv_request(&f, NULL);
	/* PvmExists and PvmDenied are results for the program: do not print them */
	return ret == PvmSysErr || ret == PvmNoMem ? lpvmerr("pvm_putinfo", ret) : ret;
}

/*
 * Receive an entry, but do not make it the receive buffer. *@found: its index. Return: a message id
 * or a PVM error.
 */
static int entry_receive(char *name, int index, int flags, int *found)
{
	struct frame f = { 0 };
	struct answer a;
	struct buf *b;
	const void *data;
	uint8_t *room;
	size_t len;
	int ret = pv_task_ready(), enc, src;

	if (ret < 0)
		return lpvmerr("pvm_recvinfo", ret);
	if (!name || !*name || index < 0)
		return lpvmerr("pvm_recvinfo", PvmBadParam);
	ret = mbox_request(&f, OP_RECVINFO, name, &a, index, flags);
	*found = ret;
	if (ret >= 0) {
		enc = body_i32(&a.body);
		src = body_i32(&a.body);
		data = body_bytes(&a.body, &len);
		b = pv_buf_new(enc);
		room = b ? pv_buf_room(b, len) : NULL;
		ret = b && (room || !len) ? pv_buf_name(b) : PvmNoMem;
		if (ret < 0) {
			pv_buf_free(b);
		} else {
			if (len)
				memcpy(room, data, len);
			b->info.src = src;
			b->info.tag = 1;
		}
	}
	pv_answer_free(&a);
	return ret == PvmSysErr || ret == PvmNoMem ? lpvmerr("pvm_recvinfo", ret) : ret;
}

PVM_API int pvm_recvinfo(char *name, int index, int flags)
{
	int found, mid = entry_receive(name, index, flags, &found);

	if (mid > 0) {
		pv_buf_free(pv_me.rbuf);
		pv_me.rbuf = pv_buf_find(mid);
	}
	return mid;
}

PVM_API int pvm_delinfo(char *name, int index, int flags)
{
	struct frame f = { 0 };
	int ret = pv_task_ready();

	if (ret < 0)
		return lpvmerr("pvm_delinfo", ret);
	if (!name || !*name || index < 0)
		return lpvmerr("pvm_delinfo", PvmBadParam);
	return mbox_request(&f, OP_DELINFO, name, NULL, index, flags);
}

static struct pvmmboxinfo *boxes;
static int nboxes;

static void boxes_free(void)
{
	for (int i = 0; i < nboxes; i++) {
		free(boxes[i].mi_name);
		free(boxes[i].mi_indices);
		free(boxes[i].mi_owners);
		free(boxes[i].mi_flags);
	}
	free(boxes);
	boxes = NULL;
	nboxes = 0;
}

static int *ints_copy(struct body *b, int *n)
{
	const void *v;
	int *copy;

	*n = body_ints(b, &v);
	copy = malloc(((size_t)*n + 1) * sizeof(int));
	if (copy && *n)
		memcpy(copy, v, (size_t)*n * sizeof(int));
	return copy;
}

PVM_API int pvm_getmboxinfo(char *pattern, int *nclasses, struct pvmmboxinfo **info)
{
	struct frame f = { 0 };
	struct answer a;
	int ret = pv_task_ready(), n, m;

	if (ret < 0)
		return lpvmerr("pvm_getmboxinfo", ret);
	ret = mbox_request(&f, OP_MBOXES, pattern && *pattern ? pattern : "*", &a, 0, 0);
	boxes_free();
	n = ret < 0 ? 0 : body_i32(&a.body);
	boxes = calloc((size_t)n + 1, sizeof(*boxes));
	for (; boxes && nboxes < n && !a.body.bad; nboxes++) {
		struct pvmmboxinfo *box = &boxes[nboxes];

		box->mi_name = strdup(body_str(&a.body));
		box->mi_indices = ints_copy(&a.body, &box->mi_nentries);
		box->mi_owners = ints_copy(&a.body, &m);
		box->mi_flags = ints_copy(&a.body, &m);
	}
	pv_answer_free(&a);
	if (nclasses)
		*nclasses = nboxes;
	if (info)
		*info = boxes;
	return pv_report("pvm_getmboxinfo", ret < 0 ? ret : PvmOk);
}

/* ---- calls of PVM 3.3, by entries of the mail box ---- */

PVM_API int pvm_insert(char *name, int req, int data)
{
	int old = pvm_setsbuf(0), mid = pvm_mkbuf(PvmDataDefault), ret = mid;

	if (mid > 0) {
		pvm_setsbuf(mid);
		pvm_pkint(&data, 1, 1);
		ret = pvm_putinfo(name, mid, PvmMboxPersistent | PvmMboxOverWritable |
				  (req == -1 ? PvmMboxMultiInstance :
				   PvmMboxMultiInstance |
				   (int)((unsigned int)req << PvmMboxDirectIndexShift)));
		pvm_freebuf(mid);
	}
	pvm_setsbuf(old);
	return ret;
}

PVM_API int pvm_lookup(char *name, int req, int *data)
{
	int old = pvm_setrbuf(0), ret, found = 0;
	int mid = entry_receive(name, req < 0 ? 0 : req, req < 0 ? PvmMboxFirstAvail : 0,
				&found);

	ret = mid;
	if (mid > 0) {
		pvm_setrbuf(mid);
		ret = data ? pvm_upkint(data, 1, 1) : 0;
		ret = ret < 0 ? ret : found;
		pvm_freebuf(mid);
	}
	pvm_setrbuf(old);
	return ret;
}

PVM_API int pvm_delete(char *name, int req)
{
	int index = req < 0 ? 0 : req, ret = pvm_delinfo(name, index, 0);

	return ret < 0 ? ret : index;
}
