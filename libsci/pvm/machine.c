// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The virtual machine: its hosts and tasks, signals, notifications. */

#include "libsci/pvm/lib.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libsci/pvm/pack.h"

/* ---- hosts ---- */

/* A table of hosts. A program keeps using the last table that pvm_config() has returned. */
struct host_table {
	struct pvmhostinfo *h;
	int n;
};

static struct host_table shown;

static void hosts_free(struct host_table *t)
{
	for (int i = 0; i < t->n; i++) {
		free(t->h[i].hi_name);
		free(t->h[i].hi_arch);
	}
	free(t->h);
	*t = (struct host_table){ 0 };
}

static int hosts_unpack(struct host_table *t)
{
	int n = pv_unpack_int();

	pv_unpack_int();	/* number of architectures */
	if (n <= 0 || n > (int)HOST_MAX)
		return n < 0 ? n : PvmBadMsg;
	t->h = calloc((size_t)n, sizeof(*t->h));
	if (!t->h)
		return PvmNoMem;
	for (; t->n < n; t->n++) {
		struct pvmhostinfo *h = &t->h[t->n];

		h->hi_tid = pv_unpack_int();
		h->hi_name = pv_unpack_new();
		h->hi_arch = pv_unpack_new();
		h->hi_speed = pv_unpack_int();
		h->hi_dsig = pv_unpack_int();
	}
	return 1;
}

/* Ask the resource manager for its table. Return: 1; 0: no manager; or a PVM error. */
static int hosts_ask(struct host_table *t)
{
	struct ask a;
	int ret;

	if (!pv_ask_begin(&a))
		return 0;
	ret = pv_ask_send(&a, SM_CONFIG, true);
	if (ret > 0)
		ret = hosts_unpack(t);
	pv_ask_end(&a);
	return ret;
}

/* Ask for the table of hosts. Return: 0 or a PVM error, with an empty table. */
static int hosts_get(struct host_table *t)
{
	struct frame f = { 0 };
	struct answer a;
	int ret = pv_task_ready(), n;

	*t = (struct host_table){ 0 };
	if (!ret)
		ret = hosts_ask(t);
	if (ret)
		return ret < 0 ? ret : 0;
	frame_begin(&f, OP_CONFIG, TO_OWN);
	ret = pv_request(&f, &a);
	n = ret < 0 ? 0 : body_i32(&a.body);
	if (n > 0 && n <= (int)HOST_MAX)
		t->h = calloc((size_t)n, sizeof(*t->h));
	if (ret >= 0 && !t->h)
		ret = PvmNoMem;
	for (; t->h && t->n < n; t->n++) {
		struct pvmhostinfo *h = &t->h[t->n];

		h->hi_tid = body_i32(&a.body);
		h->hi_speed = body_i32(&a.body);
		h->hi_dsig = body_i32(&a.body);
		h->hi_name = strdup(body_str(&a.body));
		h->hi_arch = strdup(body_str(&a.body));
	}
	pv_answer_free(&a);
	return ret < 0 ? ret : 0;
}

PVM_API int pvm_config(int *count, int *narch, struct pvmhostinfo **info)
{
	struct host_table t;
	int ret = hosts_get(&t);

	if (ret < 0)
		return lpvmerr("pvm_config", ret);
	hosts_free(&shown);
	shown = t;
	if (count)
		*count = t.n;
	if (narch)
		*narch = 1;	/* all hosts have the same data format */
	if (info)
		*info = t.h;
	return PvmOk;
}

PVM_API int pvm_mstat(char *name)
{
	struct host_table t;
	int ret = hosts_get(&t);

	if (ret < 0)
		return lpvmerr("pvm_mstat", ret);
	ret = name ? PvmNoHost : PvmBadParam;
	for (int i = 0; name && i < t.n; i++)
		if (t.h[i].hi_name && !strcmp(t.h[i].hi_name, name))
			ret = PvmOk;
	hosts_free(&t);
	return ret == PvmBadParam ? lpvmerr("pvm_mstat", ret) : ret;
}

/* Return the signature of an architecture's data formats. */
PVM_API int pvm_archcode(char *arch)
{
	struct host_table t;
	int ret = hosts_get(&t);

	if (ret < 0)
		return lpvmerr("pvm_archcode", ret);
	ret = arch ? PvmNotFound : PvmBadParam;
	for (int i = 0; arch && i < t.n; i++)
		if (t.h[i].hi_arch && !strcmp(t.h[i].hi_arch, arch))
			ret = t.h[i].hi_dsig;
	hosts_free(&t);
	return pv_report("pvm_archcode", ret);
}

/* Ask the resource manager to add or delete hosts. Return: 1; 0: no manager; or a PVM error. */
static int hosts_change_ask(enum frame_op op, char **names, int n, int *results)
{
	struct ask a;
	int ret, got;

	if (!pv_ask_begin(&a))
		return 0;
	pv_pack_int(n);
	for (int i = 0; i < n; i++)
		pv_pack_str(names[i]);
	ret = pv_ask_send(&a, op == OP_ADDHOSTS ? SM_ADDHOST : SM_DELHOST, true);
	got = ret > 0 ? pv_unpack_int() : n;
	if (got != n)
		ret = got < 0 ? got : PvmOutOfRes;
	if (ret > 0 && op == OP_ADDHOSTS)
		pv_unpack_int();
	for (int i = 0; ret > 0 && i < n; i++) {
		results[i] = pv_unpack_int();
		if (op != OP_ADDHOSTS)
			continue;
		free(pv_unpack_new());
		free(pv_unpack_new());
		pv_unpack_int();
		pv_unpack_int();
	}
	pv_ask_end(&a);
	return ret;
}

/* Ask the daemon to add or delete hosts. Return: 0 or a PVM error. */
static int hosts_change_request(enum frame_op op, char **names, int n, int *results)
{
	struct frame f = { 0 };
	struct answer a;
	const void *v;
	int ret, got;

	frame_begin(&f, op, TO_MASTER);
	frame_i32(&f, n);
	for (int i = 0; i < n; i++)
		frame_str(&f, names[i]);
	ret = pv_request(&f, &a);
	got = ret < 0 ? 0 : body_ints(&a.body, &v);
	for (int i = 0; i < n; i++)
		results[i] = i < got ? ints_at(v, i) : PvmSysErr;
	pv_answer_free(&a);
	return ret < 0 ? ret : 0;
}

/* Add or delete hosts. Return: the number of hosts that succeeded, or a PVM error. */
static int hosts_change(enum frame_op op, char **names, int n, int *results)
{
	int ret = pv_task_ready(), good = 0, *own;

	if (ret < 0)
		return ret;
	if (n < 1 || n > (int)HOST_MAX || !names)
		return PvmBadParam;
	own = calloc((size_t)n, sizeof(int));
	if (!own)
		return PvmNoMem;
	ret = hosts_change_ask(op, names, n, own);
	if (!ret)
		ret = hosts_change_request(op, names, n, own);
	for (int i = 0; i < n; i++) {
		good += own[i] >= 0;
		if (results)
			results[i] = own[i];
	}
	free(own);
	return ret < 0 ? ret : good;
}

PVM_API int pvm_addhosts(char **names, int n, int *results)
{
	return pv_report("pvm_addhosts", hosts_change(OP_ADDHOSTS, names, n, results));
}

PVM_API int pvm_delhosts(char **names, int n, int *results)
{
	return pv_report("pvm_delhosts", hosts_change(OP_DELHOSTS, names, n, results));
}

PVM_API int pvm_halt(void)
{
	struct frame f = { 0 };
	int ret = pv_task_ready();

	if (ret < 0)
		return lpvmerr("pvm_halt", ret);
	frame_begin(&f, OP_HALT, TO_MASTER);
	pv_request(&f, NULL);
	pv_task_leave();
	return PvmOk;
}

PVM_API int pvm_hostsync(int host, struct timeval *clock, struct timeval *delta)
{
	struct timeval before, after;
	struct frame f = { 0 };
	struct answer a;
	int64_t us;
	int ret = pv_task_ready();

	if (ret < 0)
		return lpvmerr("pvm_hostsync", ret);
	if (!TID_HOST(host))
		return lpvmerr("pvm_hostsync", PvmNoHost);
	frame_begin(&f, OP_CLOCK, (uint32_t)host & TID_HOST_MASK);
	gettimeofday(&before, NULL);
	ret = pv_request(&f, &a);
	gettimeofday(&after, NULL);
	if (ret >= 0) {
		struct timeval t;

		t.tv_sec = (uint32_t)body_i32(&a.body);
		t.tv_usec = body_i32(&a.body);
		/* the remote clock minus the local clock halfway through the exchange */
		us = ((int64_t)t.tv_sec - before.tv_sec) * 1000000 + t.tv_usec -
			before.tv_usec -
			(((int64_t)after.tv_sec - before.tv_sec) * 1000000 +
			 after.tv_usec - before.tv_usec) / 2;
		if (clock)
			*clock = t;
		if (delta) {
			delta->tv_sec = us / 1000000 - (us % 1000000 < 0);
			delta->tv_usec = us % 1000000 + (us % 1000000 < 0 ? 1000000 : 0);
		}
	}
	pv_answer_free(&a);
	return pv_report("pvm_hostsync", ret < 0 ? ret : 0);
}

/* ---- tasks ---- */

static struct pvmtaskinfo *tasks;
static int ntasks;

static void tasks_free(void)
{
	for (int i = 0; i < ntasks; i++)
		free(tasks[i].ti_a_out);
	free(tasks);
	tasks = NULL;
	ntasks = 0;
}

/* Append task @tid of @host to the list; with @tid 0, all tasks of @host. */
static int tasks_add(int host, int tid)
{
	struct frame f = { 0 };
	struct answer a;
	int ret, n;

	frame_begin(&f, OP_TASKS, (uint32_t)host);
	frame_i32(&f, tid);
	ret = pv_request(&f, &a);
	n = ret < 0 ? 0 : body_i32(&a.body);
	for (int i = 0; i < n && !a.body.bad; i++) {
		struct pvmtaskinfo *t = realloc(tasks, (size_t)(ntasks + 1) * sizeof(*t));

		if (!t) {
			ret = PvmNoMem;
			break;
		}
		tasks = t;
		t = &tasks[ntasks++];
		t->ti_tid = body_i32(&a.body);
		t->ti_ptid = body_i32(&a.body);
		t->ti_host = host;
		t->ti_flag = body_i32(&a.body);
		t->ti_pid = body_i32(&a.body);
		t->ti_a_out = strdup(body_str(&a.body));
	}
	pv_answer_free(&a);
	return ret;
}

/* Ask the resource manager for its tasks. Return: 1; 0: no manager; or a PVM error. */
static int tasks_ask(int where)
{
	struct pvmtaskinfo *t;
	struct ask a;
	int ret;

	if (!pv_ask_begin(&a))
		return 0;
	pv_pack_int(where);
	ret = pv_ask_send(&a, SM_TASK, true);
	if (ret > 0) {
		int error = pv_unpack_int();

		ret = error < 0 ? error : 1;
	}
	if (ret)
		tasks_free();
	while (ret > 0 && pv_me.rbuf->pos < pv_me.rbuf->len) {
		t = realloc(tasks, (size_t)(ntasks + 1) * sizeof(*t));
		if (!t) {
			ret = PvmNoMem;
			break;
		}
		tasks = t;
		t = &tasks[ntasks++];
		t->ti_tid = pv_unpack_int();
		t->ti_ptid = pv_unpack_int();
		t->ti_host = pv_unpack_int();
		t->ti_flag = pv_unpack_int();
		t->ti_a_out = pv_unpack_new();
		t->ti_pid = pv_unpack_int();
		if (t->ti_tid == PvmBadMsg || t->ti_pid == PvmBadMsg)
			ret = PvmBadMsg;
	}
	pv_ask_end(&a);
	return ret;
}

static int tasks_request(int where)
{
	uint32_t host = (uint32_t)where & TID_HOST_MASK;
	struct host_table t;
	int ret = hosts_get(&t);

	if (ret >= 0 && where && !host)
		ret = PvmNoHost;
	if (ret < 0) {
		hosts_free(&t);
		return ret;
	}
	tasks_free();
	ret = where ? PvmNoHost : 0;
	for (int i = 0; i < t.n; i++) {
		if (where && t.h[i].hi_tid != (int)host)
			continue;
		ret = tasks_add(t.h[i].hi_tid, tid_is_task(where) ? where : 0);
		if (ret == PvmHostFail && !where)
			ret = 0;	/* the host has left after hosts_get() */
		if (ret < 0)
			break;
	}
	hosts_free(&t);
	return ret;
}

PVM_API int pvm_tasks(int where, int *count, struct pvmtaskinfo **info)
{
	int ret = pv_task_ready();

	if (!ret)
		ret = tasks_ask(where);
	if (!ret)
		ret = tasks_request(where);
	if (ret < 0)
		return lpvmerr("pvm_tasks", ret);
	if (count)
		*count = ntasks;
	if (info)
		*info = tasks;
	return PvmOk;
}

PVM_API int pvm_pstat(int tid)
{
	struct frame f = { 0 };
	struct answer a;
	int ret = pv_task_ready();

	if (ret < 0)
		return lpvmerr("pvm_pstat", ret);
	if (!tid_is_task(tid))
		return lpvmerr("pvm_pstat", PvmBadParam);
	frame_begin(&f, OP_TASKS, (uint32_t)tid & TID_HOST_MASK);
	frame_i32(&f, tid);
	ret = pv_request(&f, &a);
	if (ret >= 0)
		ret = body_i32(&a.body) ? PvmOk : PvmNoTask;
	pv_answer_free(&a);
	return ret == PvmHostFail ? PvmNoTask : ret;
}

static int signal_send(const char *call, int tid, int sig)
{
	struct frame f = { 0 };
	int ret = pv_task_ready();

	if (ret < 0)
		return lpvmerr(call, ret);
	if (!tid_is_task(tid) || sig < 0 || sig > SIGRTMAX)
		return lpvmerr(call, PvmBadParam);
	if (tid == pvmmytid) {
		raise(sig);
		return PvmOk;
	}
	frame_begin(&f, OP_SIGNAL, (uint32_t)tid & TID_HOST_MASK);
	frame_i32(&f, tid);
	frame_i32(&f, sig);
	ret = pv_request(&f, NULL);
	/* a signal to a task that has ended is not an error */
	return ret == PvmSysErr ? lpvmerr(call, ret) : PvmOk;
}

PVM_API int pvm_sendsig(int tid, int sig)
{
	return signal_send("pvm_sendsig", tid, sig);
}

PVM_API int pvm_kill(int tid)
{
	return signal_send("pvm_kill", tid, SIGTERM);
}

PVM_API int pvm_notify(int what, int tag, int count, int *tids)
{
	int event = what & ~PvmNotifyCancel;
	bool listed = event == PvmTaskExit || event == PvmHostDelete;
	struct frame f = { 0 };
	struct ask a;
	int ret = pv_task_ready();

	if (ret < 0)
		return lpvmerr("pvm_notify", ret);
	if (event < PvmTaskExit || event > PvmRouteDelete || count < -1 || tag < 0 ||
	    (listed && (count < 1 || !tids)))
		return lpvmerr("pvm_notify", PvmBadParam);
	for (int i = 0; listed && i < count; i++)
		if (event == PvmTaskExit ? !tid_is_task(tids[i]) : !TID_HOST(tids[i]))
			return lpvmerr("pvm_notify", PvmBadParam);
	/* routes never change: all messages go directly */
	if (event == PvmRouteAdd || event == PvmRouteDelete)
		return PvmOk;
	if (pv_ask_begin(&a)) {
		pv_pack_int(what);
		pv_pack_int(pvmmyctx);
		pv_pack_int(tag);
		pv_pack_int(count);
		pv_pack(PVM_INT, tids, listed ? count : 0, 1);
		ret = pv_ask_send(&a, SM_NOTIFY, false);
		return ret < 0 ? lpvmerr("pvm_notify", ret) : PvmOk;
	}
	frame_begin(&f, OP_NOTIFY, TO_OWN);
	frame_i32(&f, what);
	frame_i32(&f, pvmmyctx);
	frame_i32(&f, tag);
	frame_i32(&f, count);
	frame_ints(&f, tids, listed ? count : 0);
	return pv_report("pvm_notify", pv_request(&f, NULL));
}

/* ---- for the console ---- */

PVM_API int pvm_tickle(int narg, int *argp, int *nresp, int *resp)
{
	int ret = pv_task_ready();

	if (ret < 0)
		return lpvmerr("pvm_tickle", ret);
	if (narg < 1 || narg > 10 || !argp)
		return lpvmerr("pvm_tickle", PvmBadParam);
	if (nresp)
		*nresp = 0;
	(void)resp;
	return PvmOk;
}

/* Kill all tasks except this task and those with PvmNoReset. Empty the mail box. */
PVM_API int pvmreset(int mytid, int killtasks, char *class_name, int index);
PVM_API int pvm_getnoresets(int **tids, int *n);

PVM_API int pvm_getnoresets(int **tids, int *n)
{
	struct pvmmboxinfo *box;
	int count, ret;

	*n = 0;
	ret = pvm_getmboxinfo((char *)PVMNORESETCLASS, &count, &box);
	if (ret >= 0 && count == 1) {
		*n = box->mi_nentries;
		*tids = box->mi_owners;
	}
	return ret;
}

static bool tid_is_listed(int tid, const int *tids, int n)
{
	for (int i = 0; i < n; i++)
		if (tids[i] == tid)
			return true;
	return false;
}

PVM_API int pvmreset(int mytid, int killtasks, char *class_name, int index)
{
	struct frame f = { 0 };
	struct pvmtaskinfo *t;
	int *stay = NULL, nstay = 0, n = 0, ret;

	(void)class_name;
	(void)index;
	ret = pvm_getnoresets(&stay, &nstay);
	if (ret >= 0 && killtasks) {
		ret = pvm_tasks(0, &n, &t);
		for (int i = 0; ret >= 0 && i < n; i++)
			if (t[i].ti_tid != mytid && !tid_is_listed(t[i].ti_tid, stay, nstay))
				pvm_kill(t[i].ti_tid);
	}
	if (ret < 0)
		return ret;
	frame_begin(&f, OP_MBOX_RESET, TO_MASTER);
	frame_ints(&f, stay, nstay);
	return pv_request(&f, NULL);
}
