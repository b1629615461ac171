// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Options, contexts, and PVM_EXPORT: the variables that children inherit. */

#include "libsci/pvm/lib.h"
#include "libsci/pvm/trace.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct opts pv_opts = { .route = PvmAllowDirect, .frag = 4080, .show_tids = 1 };

PVM_API int pvmdebmask;
PVM_API int pvmrouteopt = PvmAllowDirect;
PVM_API int pvmshowtaskid = 1;

/* Return the address of an option's value; NULL: no such option. */
static int *opt_value(int what)
{
	switch (what) {
	case PvmRoute: return &pv_opts.route;
	case PvmDebugMask: return &pvmdebmask;
	case PvmAutoErr: return &pvmautoerr;
	case PvmOutputTid: return &pv_opts.out_tid;
	case PvmOutputCode: return &pv_opts.out_tag;
	case PvmOutputContext: return &pv_opts.out_ctx;
	case PvmTraceTid: return &pv_opts.trace_tid;
	case PvmTraceCode: return &pv_opts.trace_tag;
	case PvmTraceContext: return &pv_opts.trace_ctx;
	case PvmTraceBuffer: return &pv_opts.trace_buf;
	case PvmTraceOptions: return &pv_opts.trace_opt;
	case PvmFragSize: return &pv_opts.frag;
	case PvmResvTids: return &pv_opts.resv;
	case PvmSelfOutputTid: return &pv_opts.self[OPT_OUT_TID];
	case PvmSelfOutputCode: return &pv_opts.self[OPT_OUT_TAG];
	case PvmSelfOutputContext: return &pv_opts.self[OPT_OUT_CTX];
	case PvmSelfTraceTid: return &pv_opts.self[OPT_TRACE_TID];
	case PvmSelfTraceCode: return &pv_opts.self[OPT_TRACE_TAG];
	case PvmSelfTraceContext: return &pv_opts.self[OPT_TRACE_CTX];
	case PvmSelfTraceBuffer: return &pv_opts.self_trace_buf;
	case PvmSelfTraceOptions: return &pv_opts.self_trace_opt;
	case PvmShowTids: return &pv_opts.show_tids;
	case PvmNoReset: return &pv_opts.noreset;
	default: return NULL;
	}
}

static bool opt_is_valid(int what, int value)
{
	switch (what) {
	case PvmRoute:
		return value >= PvmDontRoute && value <= PvmRouteDirect;
	case PvmAutoErr:
		return value >= 0 && value <= 3;
	case PvmOutputTid:
	case PvmTraceTid:
		return !value || value == pvmmytid;
	case PvmTraceOptions:
	case PvmSelfTraceOptions:
		return value >= PvmTraceFull && value <= PvmTraceCount;
	case PvmFragSize:
		return value >= 1024 && value <= 1048576;
	default:
		return true;
	}
}

/* Send the sinks of this task's output and trace to the daemon. */
static int opt_send(int what, int value)
{
	static const struct {
		int what;
		enum task_opt opt;
	} told[] = {
		{ PvmSelfOutputTid, OPT_OUT_TID }, { PvmSelfOutputContext, OPT_OUT_CTX },
		{ PvmSelfOutputCode, OPT_OUT_TAG }, { PvmSelfTraceTid, OPT_TRACE_TID },
		{ PvmSelfTraceContext, OPT_TRACE_CTX }, { PvmSelfTraceCode, OPT_TRACE_TAG },
	};

	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		struct frame f = { 0 };

		if (told[i].what != what || pv_me.sock < 0)
			continue;
		frame_begin(&f, OP_SETOPT, TO_OWN);
		frame_i32(&f, told[i].opt);
		frame_i32(&f, value);
		return pv_request(&f, NULL);
	}
	return 0;
}

/* Put an entry of this task into the mail box class that pvmreset() spares, or delete the entry. */
static int noreset_set(int value)
{
	static int entry;
	int mid;

	if (!!value == !!pv_opts.noreset)
		return 0;
	if (!value)
		return pvm_delinfo((char *)PVMNORESETCLASS, entry, 0);
	mid = pvm_mkbuf(PvmDataDefault);
	if (mid < 0)
		return mid;
	entry = pvm_putinfo((char *)PVMNORESETCLASS, mid, PvmMboxMultiInstance);
	pvm_freebuf(mid);
	return entry < 0 ? entry : 0;
}

/*
 * Enrol if option @what needs it. A program may set options before it enrols, and then start a
 * daemon of its choice. A spawned task enrols first, because it gets options from the daemon.
 */
static int opt_ready(int what)
{
	bool asks = what == PvmOutputTid || what == PvmTraceTid || what == PvmNoReset;

	return asks || getenv("PVMEPID") ? pv_task_ready() : 0;
}

PVM_API int pvm_setopt(int what, int value)
{
	int *v = opt_value(what), old, ret = opt_ready(what);

	if (ret < 0)
		return lpvmerr("pvm_setopt", ret);
	if (what == PvmPollType || what == PvmPollTime || what == PvmSelfOutputContext ||
	    what == PvmSelfTraceContext)
		return lpvmerr("pvm_setopt", PvmNotImpl);
	if (!v || !opt_is_valid(what, value))
		return lpvmerr("pvm_setopt", PvmBadParam);
	ret = what == PvmNoReset ? noreset_set(value) : opt_send(what, value);
	if (ret < 0)
		return lpvmerr("pvm_setopt", ret);
	old = *v;
	*v = value;
	pv_trace_changed();
	pvmrouteopt = pv_opts.route;
	pvmshowtaskid = pv_opts.show_tids;
	return old;
}

PVM_API int pvm_getopt(int what)
{
	int *v = opt_value(what), ret = opt_ready(what);

	if (ret < 0)
		return lpvmerr("pvm_getopt", ret);
	return v ? *v : lpvmerr("pvm_getopt", PvmBadParam);
}

/* ---- contexts ---- */

PVM_API int pvm_getcontext(void)
{
	int ret = pv_task_ready();

	return ret < 0 ? lpvmerr("pvm_getcontext", ret) : pvmmyctx;
}

PVM_API int pvm_setcontext(int ctx)
{
	int old = pvmmyctx, ret = pv_task_ready();

	if (ret < 0)
		return lpvmerr("pvm_setcontext", ret);
	pvmmyctx = ctx;
	return old;
}

static int context_request(int ctx)
{
	struct frame f = { 0 };
	int ret = pv_task_ready();

	if (ret < 0)
		return ret;
	frame_begin(&f, OP_CONTEXT, ctx ? (uint32_t)ctx & TID_HOST_MASK : TO_OWN);
	frame_i32(&f, ctx);
	return pv_request(&f, NULL);
}

PVM_API int pvm_newcontext(void)
{
	return pv_report("pvm_newcontext", context_request(0));
}

PVM_API int pvm_freecontext(int ctx)
{
	return pv_report("pvm_freecontext", ctx > 0 ? context_request(ctx) : PvmNotFound);
}

/* ---- PVM_EXPORT ---- */

/* Find @name in @list, whose names are separated by colons. Return: its position, or NULL. */
static char *export_find(char *list, const char *name)
{
	size_t n = strlen(name);

	for (char *s = list; s && *s; s = strchr(s, ':') ? strchr(s, ':') + 1 : NULL)
		if (!strncmp(s, name, n) && (!s[n] || s[n] == ':'))
			return s;
	return NULL;
}

PVM_API int pvm_export(char *name)
{
	const char *old = getenv("PVM_EXPORT");
	char *list;
	size_t size;

	if (!name || !*name || strchr(name, '=') || strchr(name, ':'))
		return lpvmerr("pvm_export", PvmBadParam);
	if (old && export_find((char *)old, name))
		return PvmOk;
	size = strlen(name) + (old ? strlen(old) : 0) + 2;
	list = malloc(size);
	if (!list)
		return lpvmerr("pvm_export", PvmNoMem);
	snprintf(list, size, "%s%s%s", old ? old : "", old && *old ? ":" : "", name);
	setenv("PVM_EXPORT", list, 1);
	free(list);
	return PvmOk;
}

PVM_API int pvm_unexport(char *name)
{
	const char *old = getenv("PVM_EXPORT");
	char *list, *at, *rest;

	if (!name || !*name)
		return lpvmerr("pvm_unexport", PvmBadParam);
	list = old ? strdup(old) : NULL;
	at = list ? export_find(list, name) : NULL;
	if (at) {
		rest = at + strlen(name);
		if (*rest == ':')
			rest++;
		else if (at > list)
			at--;
		memmove(at, rest, strlen(rest) + 1);
		setenv("PVM_EXPORT", list, 1);
	}
	free(list);
	return PvmOk;
}
