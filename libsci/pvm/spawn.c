// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Spawning: the choice of hosts, and the environment of tasks. */

#include "libsci/pvm/lib.h"

#include <stdlib.h>
#include <string.h>

#include "libsci/pvm/pack.h"

extern char **environ;

int pvm_gettmask(int who, char *mask);

#define SPAWN_MAX	(1 << 18)

/* Append the environment variables of tracing for a spawned task. */
static void frame_trace_options(struct frame *f)
{
	char value[40];

	pvm_gettmask(PvmTaskChild, value);
	frame_str(f, "PVMTMASK");
	frame_str(f, value);
	snprintf(value, sizeof(value), "%d", pv_opts.trace_buf);
	frame_str(f, "PVMTRCBUF");
	frame_str(f, value);
	snprintf(value, sizeof(value), "%d", pv_opts.trace_opt);
	frame_str(f, "PVMTRCOPT");
	frame_str(f, value);
}

/* Append PVM_EXPORT, the variables in PVM_EXPORT, and the variables of tracing. */
static void frame_environment(struct frame *f)
{
	const char *list = getenv("PVM_EXPORT");
	char *copy = list ? strdup(list) : NULL, *save = NULL, *name;
	bool traced = tid_is_task(pv_opts.trace_tid);
	int n = traced ? 3 : 0;

	for (int pass = 0; pass < 2; pass++) {
		if (pass) {
			free(copy);
			copy = list ? strdup(list) : NULL;
			frame_i32(f, n);
			if (traced)
				frame_trace_options(f);
			if (copy) {
				frame_str(f, "PVM_EXPORT");
				frame_str(f, list);
			}
		} else if (copy) {
			n++;
		}
		for (name = copy ? strtok_r(copy, ":", &save) : NULL; name;
		     name = strtok_r(NULL, ":", &save)) {
			const char *value = getenv(name);

			if (!value || !strcmp(name, "PVM_EXPORT"))
				continue;
			if (pass) {
				frame_str(f, name);
				frame_str(f, value);
			} else {
				n++;
			}
		}
	}
	free(copy);
}

/* Compose a request to one host to start @n tasks. */
static void frame_spawn(struct frame *f, int host, const char *file, char **argv,
			int flag, const char *dir, int n)
{
	int argc = 0;

	while (argv && argv[argc])
		argc++;
	frame_begin(f, OP_SPAWN, (uint32_t)host);
	frame_str(f, file);
	frame_i32(f, flag);
	frame_str(f, dir);
	frame_i32(f, n);
	frame_i32(f, argc);
	for (int i = 0; i < argc; i++)
		frame_str(f, argv[i]);
	frame_environment(f);
	frame_i32(f, flag & PvmNoSpawnParent ? 0 : pvmmytid);
	frame_i32(f, pvmmyctx);
	frame_i32(f, pv_opts.out_tid);
	frame_i32(f, pv_opts.out_ctx);
	frame_i32(f, pv_opts.out_tag);
	frame_i32(f, pv_opts.trace_tid);
	frame_i32(f, pv_opts.trace_ctx);
	frame_i32(f, pv_opts.trace_tag);
}

static char *where_split(const char *where, const char **dir)
{
	char *host = strdup(where ? where : "");
	char *colon = host ? strchr(host, ':') : NULL;

	*dir = "";
	if (colon) {
		*colon = 0;
		*dir = colon + 1;
	}
	return host;
}

/*
 * Ask the daemon on which hosts to start @n tasks. @hosts and @counts (tasks of each host) have
 * room for @n elements.
 * Return: the number of hosts, or a PVM error.
 */
static int hosts_pick(int flag, const char *where, int n, int *hosts, int *counts)
{
	struct frame f = { 0 };
	struct answer a;
	const void *v;
	int got, m = 0, ret;

	frame_begin(&f, OP_PICK, TO_OWN);
	frame_i32(&f, flag);
	frame_str(&f, where);
	frame_i32(&f, n);
	ret = pv_request(&f, &a);
	got = ret < 0 ? 0 : body_ints(&a.body, &v);
	for (int i = 0; i < got && i < n; i++) {
		int host = ints_at(v, i), j;

		for (j = 0; j < m && hosts[j] != host; j++)
			;
		if (j == m) {
			hosts[m] = host;
			counts[m++] = 0;
		}
		counts[j]++;
	}
	pv_answer_free(&a);
	return ret < 0 ? ret : m;
}

/* Send the tids of all tasks of one spawn to these tasks. */
static void siblings_send(const int *tids, int n)
{
	for (int i = 0; i < n; i++) {
		struct frame f = { 0 };
		bool seen = false;

		for (int j = 0; j < i && !seen; j++)
			seen = TID_HOST(tids[j]) == TID_HOST(tids[i]);
		if (seen)
			continue;
		frame_begin(&f, OP_SIBLINGS, (uint32_t)tids[i] & TID_HOST_MASK);
		frame_ints(&f, tids, n);
		pv_request_post(&f);
	}
}

/* Append the tids in one host's answer to the front of @tids, and its errors to the back. */
static void tids_take(struct answer *a, int ret, int count, int *tids, int *good,
		      int *bad)
{
	const void *v = NULL;
	int got = ret < 0 ? 0 : body_ints(&a->body, &v);

	for (int i = 0; i < count; i++) {
		int tid = i < got ? ints_at(v, i) : ret < 0 ? ret : PvmDSysErr;

		if (tid > 0)
			tids[(*good)++] = tid;
		else
			tids[--*bad] = tid;
	}
}

static int spawn_tasks(const char *file, char **argv, int flag, const char *where, int n,
		       int *tids)
{
	int *hosts = calloc((size_t)n * 2, sizeof(int)), *counts = hosts + n;
	const char *dir;
	char *host = where_split(where, &dir);
	int m, good = 0, bad = n;

	m = hosts && host ? hosts_pick(flag, host, n, hosts, counts) : PvmNoMem;
	for (int i = 0; i < m; i++) {
		struct frame f = { 0 };
		struct answer a;
		int ret;

		frame_spawn(&f, hosts[i], file, argv, flag, dir, counts[i]);
		ret = pv_request(&f, &a);
		tids_take(&a, ret, counts[i], tids, &good, &bad);
		pv_answer_free(&a);
	}
	if (m > 0)
		siblings_send(tids, good);
	free(hosts);
	free(host);
	return m < 0 ? m : good;
}

/* Pack the environment of the tasks, each variable as NAME=VALUE. */
static void ask_environment(void)
{
	struct frame f = { 0 };
	struct body b;
	char own[32], *s;
	int n;

	frame_environment(&f);
	b = (struct body){ .at = f.data, .left = f.failed ? 0 : f.len };
	n = body_i32(&b);
	pv_pack_int(n + 1);
	snprintf(own, sizeof(own), "PVMCTX=0x%x", (unsigned int)pvmmyctx);
	pv_pack_str(own);
	for (int i = 0; i < n; i++) {
		const char *name = body_str(&b), *value = body_str(&b);

		s = malloc(strlen(name) + strlen(value) + 2);
		if (s)
			sprintf(s, "%s=%s", name, value);
		pv_pack_str(s ? s : "");
		free(s);
	}
	frame_free(&f);
}

/*
 * Ask the resource manager to spawn. *@asked: false if the task must ask the daemons instead.
 * Return: the number of started tasks, or a PVM error.
 */
static int spawn_ask(const char *file, char **argv, int flag, const char *where, int n,
		     int *tids, bool *asked)
{
	struct ask a;
	int ret, argc = 0, good = 0, bad = n, got;

	*asked = false;
	if (!pv_ask_begin(&a))
		return 0;
	while (argv && argv[argc])
		argc++;
	pv_pack_str(file);
	pv_pack_int(flag);
	pv_pack_str(where ? where : "");
	pv_pack_int(n);
	pv_pack_int(argc);
	for (int i = 0; i < argc; i++)
		pv_pack_str(argv[i]);
	pv_pack_int(pv_opts.out_tid);
	pv_pack_int(pv_opts.out_ctx);
	pv_pack_int(pv_opts.out_tag);
	pv_pack_int(pv_opts.trace_tid);
	pv_pack_int(pv_opts.trace_ctx);
	pv_pack_int(pv_opts.trace_tag);
	ask_environment();
	ret = pv_ask_send(&a, SM_SPAWN, true);
	*asked = ret != 0;
	got = ret > 0 ? pv_unpack_int() : 0;
	if (got < 0)
		ret = got;
	for (int i = 0; ret > 0 && i < n; i++) {
		int tid = i < got ? pv_unpack_int() : PvmSysErr;

		if (tid > 0)
			tids[good++] = tid;
		else
			tids[--bad] = tid;
	}
	pv_ask_end(&a);
	if (ret > 0)
		siblings_send(tids, good);
	return ret < 0 ? ret : good;
}

PVM_API int pvm_spawn(char *file, char **argv, int flag, char *where, int count,
		      int *tids)
{
	int ret = pv_task_ready();
	int *own = NULL;
	bool asked;

	if (ret < 0)
		return lpvmerr("pvm_spawn", ret);
	if (!file || !*file || count < 1 || count > SPAWN_MAX)
		return lpvmerr("pvm_spawn", PvmBadParam);
	if (!tids)
		tids = own = calloc((size_t)count, sizeof(int));
	if (!tids)
		return lpvmerr("pvm_spawn", PvmNoMem);
	ret = spawn_ask(file, argv, flag, where, count, tids, &asked);
	if (!asked)
		ret = spawn_tasks(file, argv, flag, where, count, tids);
	if (ret == PvmNoHost) {
		/* no host fits: return the error for each task */
		for (int i = 0; i < count; i++)
			tids[i] = PvmNoHost;
		ret = 0;
	}
	free(own);
	return pv_report("pvm_spawn", ret);
}
