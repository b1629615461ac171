// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: traces
 *
 * A task records a call if PvmSelfTraceTid names a task, the sink, and the trace mask has the
 * call. Records are messages to the sink in the format of PVM 3.4. They travel through the
 * daemons, so that they arrive between the daemons' records of the task's start and end.
 *
 * The tables have the sizes that PVM's programs were compiled with.
 */

#include "libsci/pvm/lib.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "libsci/pvm/pack.h"
#include "libsci/pvm/trace.h"

#define MASK_SIZE	36	/* bytes of a mask, with its zero */

struct event {
	char *name;
	int described;
	struct timeval mark;
	struct timeval total;
	int count;
};

struct data_id {
	char *id;
	char *text;
};

#define E(name)	{ (char *)name, 0, { 0, 0 }, { 0, 0 }, 0 }

/* The names of events, indexed by enum trace_kind. PVM's console reads this table. */
PVM_API struct event pvmtevinfo[] = {
	E("addhosts"), E("barrier"), E("bcast"), E("bufinfo"), E("config"), E("delete"),
	E("delhosts"), E("exit"), E("freebuf"), E("getfds"), E("getinst"), E("getopt"),
	E("getrbuf"), E("getsbuf"), E("gettid"), E("gsize"), E("halt"), E("initsend"),
	E("insert"), E("joingroup"), E("kill"), E("lookup"), E("lvgroup"), E("mcast"),
	E("mkbuf"), E("mstat"), E("mytid"), E("notify"), E("nrecv"), E("parent"),
	E("perror"), E("pkbyte"), E("pkcplx"), E("pkdcplx"), E("pkdouble"), E("pkfloat"),
	E("pkint"), E("pkuint"), E("pklong"), E("pkulong"), E("pkshort"), E("pkushort"),
	E("pkstr"), E("probe"), E("pstat"), E("recv"), E("recvf"), E("send"),
	E("sendsig"), E("setopt"), E("setrbuf"), E("setsbuf"), E("spawn"),
	E("start_pvmd"), E("tasks"), E("tickle"), E("tidtohost"), E("trecv"),
	E("upkbyte"), E("upkcplx"), E("upkdcplx"), E("upkdouble"), E("upkfloat"),
	E("upkint"), E("upkuint"), E("upklong"), E("upkulong"), E("upkshort"),
	E("upkushort"), E("upkstr"), E("version"), E("reg_hoster"), E("reg_rm"),
	E("reg_tasker"), E("reg_tracer"), E("newtask"), E("endtask"), E("spntask"),
	E("archcode"), E("catchout"), E("getmwid"), E("gettmask"), E("hostsync"),
	E("packf"), E("precv"), E("psend"), E("reduce"), E("setmwid"), E("settmask"),
	E("unpackf"), E("gather"), E("scatter"), E("putinfo"), E("getinfo"), E("delinfo"),
	E("getmboxinfo"), E("newcontext"), E("freecontext"), E("setcontext"),
	E("getcontext"), E("siblings"), E("getminfo"), E("setminfo"), E("addmhf"),
	E("delmhf"), E("mhf_invoke"), E("timing"), E("profiling"), E("user_defined"),
};

#undef E
#define D(id)	{ (char *)id, (char *)id }

/* The names of fields in records, indexed by their numbers. */
PVM_API struct data_id pvmtevdidlist[] = {
#include "libsci/pvm/dids.h"
};

/* Unused variables of PVM's library, which programs may refer to. */
PVM_API int pvmctrc[17];
PVM_API int pvmtrc[17];
PVM_API void *pvmtrccodef;

/* Marks in messages and types of fields, from PVM's pvmtev.h. */
enum { MARK_BUFFER = -1, MARK_BUFFER_END = -2, MARK_DESC = -5, MARK_DESC_END = -6,
	MARK_RECORD = -7, MARK_RECORD_END = -8 };
enum { TYPE_INT = 6, TYPE_LONG = 8, TYPE_STRING = 12, TYPE_ARRAY = 0x80 };

#define EVENTS		((int)(sizeof(pvmtevinfo) / sizeof(pvmtevinfo[0])))
#define DIDS		((int)(sizeof(pvmtevdidlist) / sizeof(pvmtevdidlist[0])))
#define WORD_MAX	8

enum trace_state pv_trace_state;
static char masks[2][MASK_SIZE];
static struct buf *record;		/* the record that is not sent yet */
static struct buf *program_sbuf;	/* the program's send buffer, while @record is packed */
static int group_calls;			/* nested calls of libgpvm3 */

/* ---- options ---- */

static void mask_set(int who, const char *mask)
{
	memset(masks[who], '@', MASK_SIZE - 1);
	memcpy(masks[who], mask, strnlen(mask, MASK_SIZE - 1));
}

void pv_trace_begin(struct body *b)
{
	const char *tracer_mask = body_str(b);
	int tracer_bytes = body_i32(b), tracer_option = body_i32(b);
	const char *mask = getenv("PVMTMASK"), *size = getenv("PVMTRCBUF");
	const char *option = getenv("PVMTRCOPT");

	for (int who = PvmTaskSelf; who <= PvmTaskChild; who++)
		if (mask)
			mask_set(who, mask);
	if (size)
		pv_opts.self_trace_buf = pv_opts.trace_buf = atoi(size);
	if (option)
		pv_opts.self_trace_opt = pv_opts.trace_opt = atoi(option);
	if (*tracer_mask) {
		for (int who = PvmTaskSelf; who <= PvmTaskChild; who++)
			mask_set(who, tracer_mask);
		pv_opts.self_trace_buf = pv_opts.trace_buf = tracer_bytes;
		pv_opts.self_trace_opt = pv_opts.trace_opt = tracer_option;
	}
	for (int i = 0; i < EVENTS; i++)
		pvmtevinfo[i].described = pvmtevinfo[i].count = 0;
	pv_trace_changed();
}

void pv_trace_changed(void)
{
	int sink = pv_opts.self[OPT_TRACE_TID];

	pv_trace_state = pv_me.sock < 0 ? TRACE_UNKNOWN :
		tid_is_task(sink) && sink != pvmmytid ? TRACE_ON : TRACE_OFF;
}

bool pv_traced_now(enum trace_kind kind)
{
	if (pv_trace_state == TRACE_UNKNOWN && (!getenv("PVMEPID") || pv_task_ready()))
		return false;
	return pv_trace_state == TRACE_ON && !group_calls &&
		masks[PvmTaskSelf][kind / 4] & 1 << kind % 4;
}

/* ---- records ---- */

/* Make the record the send buffer, and save the program's send buffer. */
static bool record_begin(void)
{
	bool fresh = !record;

	if (fresh)
		record = pv_buf_new(PvmDataDefault);
	if (!record)
		return false;
	program_sbuf = pv_me.sbuf;
	pv_me.sbuf = record;
	if (fresh && pv_opts.self_trace_buf)
		pv_pack_int(MARK_BUFFER);
	return true;
}

static void record_send(void)
{
	struct frame f = { 0 };

	frame_begin(&f, OP_TRACE, TO_OWN);
	frame_i32(&f, pv_opts.self[OPT_TRACE_TID]);
	frame_i32(&f, pv_opts.self[OPT_TRACE_CTX]);
	frame_i32(&f, pv_opts.self[OPT_TRACE_TAG]);
	frame_bytes(&f, record->data, record->len);
	pv_request_post(&f);
	pv_buf_free(record);
	record = NULL;
}

static void record_end(void)
{
	if (pv_opts.self_trace_buf && (int)record->len < pv_opts.self_trace_buf) {
		pv_me.sbuf = program_sbuf;
		return;
	}
	if (pv_opts.self_trace_buf)
		pv_pack_int(MARK_BUFFER_END);
	pv_me.sbuf = program_sbuf;
	record_send();
}

static int did_find(const char *word, size_t len)
{
	for (int i = 0; i < DIDS; i++)
		if (strlen(pvmtevdidlist[i].id) == len && !memcmp(pvmtevdidlist[i].id, word, len))
			return i;
	return 0;
}

/* Pack the number and the type of a field, unless the record's kind is @described. */
static void field_describe(bool described, int did, int type)
{
	if (described)
		return;
	pv_pack_int(did);
	pv_pack_int(type);
}

static void field_pack(bool described, int did, char kind, va_list *ap)
{
	const int *ints;
	char *const *strings;
	const char *s;
	long l;
	int n;

	switch (kind) {
	case 'l':
		field_describe(described, did, TYPE_LONG);
		l = va_arg(*ap, long);
		/* truncate: an XDR long has 4 bytes, but an address may have 8 */
		n = (int)l;
		pv_pack_int(n);
		break;
	case 's':
		field_describe(described, did, TYPE_STRING);
		s = va_arg(*ap, const char *);
		pv_pack_str(s ? s : "");
		break;
	case 'v':
		field_describe(described, did, TYPE_INT | TYPE_ARRAY);
		n = va_arg(*ap, int);
		ints = va_arg(*ap, const int *);
		pv_pack_int(n);
		pv_pack(PVM_INT, ints, n, 1);
		break;
	case 'S':
		field_describe(described, did, TYPE_STRING | TYPE_ARRAY);
		n = va_arg(*ap, int);
		strings = va_arg(*ap, char *const *);
		pv_pack_int(n);
		for (int i = 0; i < n; i++)
			pv_pack_str(strings[i] ? strings[i] : "");
		break;
	default:
		field_describe(described, did, TYPE_INT);
		pv_pack_int(va_arg(*ap, int));
		break;
	}
}

static void fields_pack(bool described, const char *fields, va_list *ap)
{
	while (*fields) {
		size_t len = strcspn(fields, "/ ");
		char kind = fields[len] == '/' ? fields[len + 1] : 'i';

		field_pack(described, did_find(fields, len), kind, ap);
		fields += strcspn(fields, " ");
		fields += *fields == ' ';
	}
}

static void fields_add(bool described, const char *fields, ...)
{
	va_list ap;

	va_start(ap, fields);
	fields_pack(described, fields, &ap);
	va_end(ap);
}

/* Pack the mark, the event number, the name, and the fields that all events have. */
static void head_pack(bool described, int id, const struct event *e)
{
	struct timeval now;

	gettimeofday(&now, NULL);
	pv_pack_int(described ? MARK_RECORD : MARK_DESC);
	pv_pack_int(id);
	if (!described)
		pv_pack_str(e->name);
	fields_add(described, "TS TU TID", (int)now.tv_sec, (int)now.tv_usec, pvmmytid);
}

/* Add an event to the sums of PvmTraceTime or PvmTraceCount. Return: false with PvmTraceFull. */
static bool event_sum(struct event *e, int when)
{
	struct timeval now, spent;

	if (pv_opts.self_trace_opt != PvmTraceTime && pv_opts.self_trace_opt != PvmTraceCount)
		return false;
	gettimeofday(&now, NULL);
	if (when == TEV_EVENT_ENTRY) {
		e->mark = now;
		e->count++;
	} else {
		timersub(&now, &e->mark, &spent);
		timeradd(&e->total, &spent, &e->total);
	}
	return true;
}

static void event_record(enum trace_kind kind, int when, const char *fields, va_list *ap)
{
	struct event *e = &pvmtevinfo[kind];
	bool described = e->described & when;

	/* the traced call may have left the machine or ended the trace */
	if (pv_me.sock < 0 || pv_trace_state != TRACE_ON || event_sum(e, when) || !record_begin())
		return;
	e->described |= when;
	head_pack(described, (int)kind | when, e);
	fields_pack(described, fields, ap);
	pv_pack_int(described ? MARK_RECORD_END : MARK_DESC_END);
	record_end();
}

void pv_trace_entry(enum trace_kind kind, const char *fields, ...)
{
	va_list ap;

	va_start(ap, fields);
	event_record(kind, TEV_EVENT_ENTRY, fields, &ap);
	va_end(ap);
}

void pv_trace_exit(enum trace_kind kind, const char *fields, ...)
{
	va_list ap;

	va_start(ap, fields);
	event_record(kind, TEV_EVENT_EXIT, fields, &ap);
	va_end(ap);
}

PVM_API void pvmgroup_entry(enum trace_kind kind, const char *fields, ...)
{
	va_list ap;

	va_start(ap, fields);
	if (pv_traced(kind))
		event_record(kind, TEV_EVENT_ENTRY, fields, &ap);
	va_end(ap);
	group_calls++;
}

PVM_API void pvmgroup_exit(enum trace_kind kind, const char *fields, ...)
{
	va_list ap;

	group_calls--;
	va_start(ap, fields);
	if (pv_traced(kind))
		event_record(kind, TEV_EVENT_EXIT, fields, &ap);
	va_end(ap);
}

/* Record the sums of PvmTraceTime or PvmTraceCount as one event. */
static void sums_record(void)
{
	bool times = pv_opts.self_trace_opt == PvmTraceTime;
	int n = 0, sec[EVENTS], usec[EVENTS], counts[EVENTS];
	char *names[EVENTS];

	for (int i = 0; i < EVENTS; i++) {
		struct event *e = &pvmtevinfo[i];

		if (!e->count)
			continue;
		names[n] = e->name;
		sec[n] = (int)e->total.tv_sec;
		usec[n] = (int)e->total.tv_usec;
		counts[n++] = e->count;
		e->count = 0;
		e->total = (struct timeval){ 0, 0 };
	}
	if (!n || !record_begin())
		return;
	head_pack(false, times ? TEV_TIMING : TEV_PROFILING,
		  &pvmtevinfo[times ? TEV_TIMING : TEV_PROFILING]);
	fields_add(false, "VCT VID/S", n, n, names);
	if (times)
		fields_add(false, "TGS/v TGU/v", n, sec, n, usec);
	fields_add(false, "PRF/v", n, counts);
	pv_pack_int(MARK_DESC_END);
	pv_me.sbuf = program_sbuf;
}

void pv_trace_flush(void)
{
	if (pv_me.sock < 0 || pv_trace_state != TRACE_ON)
		return;
	if (pv_opts.self_trace_opt == PvmTraceTime || pv_opts.self_trace_opt == PvmTraceCount)
		sums_record();
	if (!record)
		return;
	if (pv_opts.self_trace_buf && record_begin()) {
		pv_pack_int(MARK_BUFFER_END);
		pv_me.sbuf = program_sbuf;
	}
	record_send();
}

/* ---- masks ---- */

PVM_API int pvm_settmask(int who, char *mask);
PVM_API int pvm_gettmask(int who, char *mask);

PVM_API int pvm_settmask(int who, char *mask)
{
	if ((who != PvmTaskSelf && who != PvmTaskChild) || !mask)
		return lpvmerr("pvm_settmask", PvmBadParam);
	mask_set(who, mask);
	return PvmOk;
}

PVM_API int pvm_gettmask(int who, char *mask)
{
	if ((who != PvmTaskSelf && who != PvmTaskChild) || !mask)
		return lpvmerr("pvm_gettmask", PvmBadParam);
	if (!masks[who][0])
		mask_set(who, "");
	memcpy(mask, masks[who], sizeof(masks[who]));
	return PvmOk;
}
