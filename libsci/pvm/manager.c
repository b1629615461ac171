// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Register this task as resource manager, hoster, tasker or tracer, and send requests about hosts
 * and tasks to the resource manager of this task, if any.
 */

#include "libsci/pvm/lib.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/pvm/pack.h"

static int next_wid;

bool pv_ask_begin(struct ask *a)
{
	*a = (struct ask){ .manager = pv_me.manager };
	if (!a->manager)
		return false;
	a->request = pv_buf_new(PvmDataDefault);
	if (!a->request)
		return false;
	a->saved = pv_me.sbuf;
	pv_me.sbuf = a->request;
	return true;
}

static bool ask_answered(void *arg)
{
	struct ask *a = arg;

	for (struct list *l = pv_me.inbox.next; l != &pv_me.inbox; l = l->next) {
		struct buf *b = container_of(l, struct buf, link);

		if (b->info.src == a->manager && b->info.tag == a->tag &&
		    b->info.wid == a->wid) {
			a->reply = b;
			return true;
		}
	}
	return pv_me.manager != a->manager;
}

int pv_ask_send(struct ask *a, int tag, bool answered)
{
	int ret;

	pv_me.sbuf = a->saved;
	next_wid = next_wid % WID_MAX + 1;
	a->tag = tag;
	a->wid = a->request->info.wid = next_wid;
	a->request->info.ctx = 0;
	ret = pv_peer_send(a->request, &a->manager, 1, tag);
	pv_buf_free(a->request);
	if (ret || !answered)
		return ret ? ret : 1;
	ret = pv_wait_until(ask_answered, a, -1);
	/* pv_watch_renew() may run a handler that takes the reply */
	if (a->reply)
		pv_inbox_take(a->reply);
	pv_watch_renew();
	if (!a->reply)
		return ret;
	if (pv_buf_fetch(a->reply)) {
		pv_buf_free(a->reply);
		return PvmBadMsg;
	}
	a->saved = pv_me.rbuf;
	pv_me.rbuf = a->reply;
	return 1;
}

void pv_ask_end(struct ask *a)
{
	if (!a->reply)
		return;
	pv_me.rbuf = a->saved;
	pv_buf_free(a->reply);
}

void pv_pack_int(int v)
{
	pv_pack(PVM_INT, &v, 1, 1);
}

int pv_unpack_int(void)
{
	int v = 0;

	return pv_unpack(PVM_INT, &v, 1, 1) ? PvmBadMsg : v;
}

char *pv_unpack_new(void)
{
	struct buf *b = pv_me.rbuf;
	char *s = malloc(b->len - b->pos + 1);

	if (s && pv_unpack_str(s, -1))
		*s = 0;
	return s;
}

/* ---- calls ---- */

/* The mail box entry of a registered task. @tid: 0: there is no entry. */
struct entry {
	int tid;
	int index;
};

/* Begin to pack an entry. Return: the program's send buffer. */
static int entry_begin(void)
{
	int saved = pvm_setsbuf(pvm_mkbuf(PvmDataDefault));

	pv_pack_int(pvmmytid);
	return saved;
}

static void entry_end(struct entry *e, const char *class, int flags, int saved)
{
	int mid = pvm_setsbuf(saved);

	e->index = pvm_putinfo((char *)class, mid, flags);
	e->tid = e->index < 0 ? 0 : pvmmytid;
	pvm_freebuf(mid);
}

static void entry_put(struct entry *e, const char *class)
{
	entry_end(e, class, PvmMboxMultiInstance, entry_begin());
}

/*
 * Delete this task's entry. Return: false if there is none: the daemon has deleted it when the task
 * left the machine, and the task has enrolled again under another tid.
 */
static bool entry_delete(struct entry *e, const char *class)
{
	bool mine = e->tid && e->tid == pvmmytid;

	if (mine)
		pvm_delinfo((char *)class, e->index, PvmMboxDefault);
	e->tid = 0;
	return mine;
}

/* Register with the daemon, or unregister if this task is registered. */
static int registration_switch(enum frame_op op, const char *class, struct entry *e)
{
	struct frame f = { 0 };
	int ret = pv_task_ready();

	if (ret < 0)
		return ret;
	frame_begin(&f, op, TO_OWN);
	ret = pv_request(&f, NULL);
	if (ret < 0)
		return ret;
	if (!entry_delete(e, class))
		entry_put(e, class);
	return PvmOk;
}

PVM_API int pvm_reg_tasker(void)
{
	static struct entry entry;

	return pv_report("pvm_reg_tasker",
			 registration_switch(OP_TASKER, PVMTASKERCLASS, &entry));
}

PVM_API int pvm_reg_hoster(void)
{
	static struct entry entry;

	return pv_report("pvm_reg_hoster",
			 registration_switch(OP_HOSTER, PVMHOSTERCLASS, &entry));
}

static int tracer_request(int tctx, int ttag, int octx, int otag, const char *mask,
			  int bytes, int option)
{
	struct frame f = { 0 };

	frame_begin(&f, OP_TRACER, TO_MASTER);
	frame_i32(&f, tctx);
	frame_i32(&f, ttag);
	frame_i32(&f, octx);
	frame_i32(&f, otag);
	frame_str(&f, mask);
	frame_i32(&f, bytes);
	frame_i32(&f, option);
	return pv_request(&f, NULL);
}

PVM_API int pvm_reg_tracer(int tctx, int ttag, int octx, int otag, char *mask, int bytes,
			   int option)
{
	static struct entry entry;
	int ret = pv_task_ready(), saved;

	if (!ret && !mask)
		ret = PvmBadParam;
	if (!ret)
		ret = tracer_request(tctx, ttag, octx, otag, mask, bytes, option);
	if (ret < 0)
		return lpvmerr("pvm_reg_tracer", ret);
	if (entry_delete(&entry, PVMTRACERCLASS))
		return PvmOk;
	saved = entry_begin();
	pv_pack_int(tctx);
	pv_pack_int(ttag);
	pv_pack_int(octx);
	pv_pack_int(otag);
	pv_pack_str(mask);
	pv_pack_int(bytes);
	pv_pack_int(option);
	entry_end(&entry, PVMTRACERCLASS, PvmMboxDefault, saved);
	return PvmOk;
}

static void host_set(struct pvmhostinfo *h, int tid, char *name, char *arch, int speed)
{
	free(h->hi_name);
	free(h->hi_arch);
	*h = (struct pvmhostinfo){
		.hi_tid = tid, .hi_name = name, .hi_arch = arch, .hi_speed = speed,
	};
}

/* Take the place of this task's resource manager. Return: the old manager's tid, or an error. */
static int manager_replace(struct pvmhostinfo *h)
{
	struct ask a;
	int ret, old = 0, tid;
	char *name, *arch;

	if (!pv_ask_begin(&a))
		return PvmNoMem;
	ret = pv_ask_send(&a, SM_SCHED, true);
	if (ret > 0) {
		old = pv_unpack_int();
		tid = pv_unpack_int();
		name = pv_unpack_new();
		arch = pv_unpack_new();
		host_set(h, tid, name, arch, pv_unpack_int());
	}
	pv_ask_end(&a);
	return ret < 0 ? ret : old;
}

static int manager_request(struct pvmhostinfo *h)
{
	struct frame f = { 0 };
	struct answer a;
	int ret, old = 0, tid;
	char *name, *arch;

	frame_begin(&f, OP_MANAGER, TO_MASTER);
	ret = pv_request(&f, &a);
	if (ret >= 0) {
		old = body_i32(&a.body);
		tid = body_i32(&a.body);
		name = strdup(body_str(&a.body));
		arch = strdup(body_str(&a.body));
		host_set(h, tid, name, arch, body_i32(&a.body));
	}
	pv_answer_free(&a);
	return ret < 0 ? ret : old;
}

PVM_API int pvm_reg_rm(struct pvmhostinfo **info)
{
	static struct pvmhostinfo master;
	static struct entry entry;
	int ret = pv_task_ready();

	if (ret < 0)
		return lpvmerr("pvm_reg_rm", ret);
	ret = pv_me.manager ? manager_replace(&master) : manager_request(&master);
	if (ret < 0)
		return lpvmerr("pvm_reg_rm", ret);
	if (info)
		*info = &master;
	entry_delete(&entry, PVMRMCLASS);
	entry_put(&entry, PVMRMCLASS);
	return ret;
}

int pv_daemon_send(struct buf *b, int tid, int tag)
{
	struct frame f = { 0 };

	if (tid == TID_GROUPS ? tag != GROUP_STATUS : tag < SM_SPAWN || tag > SM_STTASK)
		return PvmNotImpl;
	if (b->enc != PvmDataDefault)
		return PvmBadMsg;
	if (pv_buf_fetch(b))
		return PvmBadMsg;
	frame_begin(&f, OP_SM, (uint32_t)tid & TID_HOST_MASK);
	frame_i32(&f, pvmmyctx);
	frame_i32(&f, tag);
	frame_i32(&f, b->info.wid);
	frame_bytes(&f, b->data, b->len);
	return pv_request_post(&f);
}
