// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The traced calls: each records its arguments and results, if it is traced. */

#include <stdarg.h>
#include <stddef.h>

#include "libsci/include/sci-pvm/pvm3.h"

#define PV_CALLS_HERE
#include "libsci/pvm/lib.h"
#include "libsci/pvm/trace.h"

/* Define pvm_@name. In the fields of @end, "ret" is the result. */
#define CALL(kind, name, params, args, entry, end)		\
	extern __typeof__(pvm_##name) plain_##name;		\
	PVM_API int pvm_##name params				\
	{							\
		int ret;					\
								\
		if (!pv_traced(kind))				\
			return plain_##name args;		\
		pv_trace_entry(kind, WORDS entry);		\
		ret = plain_##name args;			\
		pv_trace_exit(kind, WORDS end);			\
		return ret;					\
	}
#define WORDS(...)	__VA_ARGS__
#define NO_FIELDS	("")
#define RECEIVED(mid)	mid, received_bytes(mid), received_tag(mid), pvmmyctx, received_src(mid)

/* Return the length, the tag or the source of message @mid; -1: no such message. */
static int received_bytes(int mid)
{
	struct buf *b = mid > 0 ? pv_buf_find(mid) : NULL;

	return b ? (int)pv_buf_bytes(b) : -1;
}

static int received_tag(int mid)
{
	struct buf *b = mid > 0 ? pv_buf_find(mid) : NULL;

	return b ? b->info.tag : -1;
}

static int received_src(int mid)
{
	struct buf *b = mid > 0 ? pv_buf_find(mid) : NULL;

	return b ? b->info.src : -1;
}

static int sbuf_bytes(void)
{
	return pv_me.sbuf ? (int)pv_buf_bytes(pv_me.sbuf) : -1;
}

/* Return *@v, which a call has set; -1: the call has failed, or @v is NULL. */
static int trace_get_value(const int *v, int ret)
{
	return v && ret >= 0 ? *v : -1;
}

CALL(TEV_MYTID, mytid, (void), (),
     NO_FIELDS,
     ("MT", ret))
CALL(TEV_PARENT, parent, (void), (),
     NO_FIELDS,
     ("PT", ret))
CALL(TEV_MKBUF, mkbuf, (int enc), (enc),
     ("ME", enc),
     ("MB", ret))
CALL(TEV_INITSEND, initsend, (int enc), (enc),
     ("ME", enc),
     ("MSB", ret))
CALL(TEV_FREEBUF, freebuf, (int mid), (mid),
     ("MB", mid),
     ("CC", ret))
CALL(TEV_GETSBUF, getsbuf, (void), (),
     NO_FIELDS,
     ("MSB", ret))
CALL(TEV_GETRBUF, getrbuf, (void), (),
     NO_FIELDS,
     ("MRB", ret))
CALL(TEV_SETSBUF, setsbuf, (int mid), (mid),
     ("MB", mid),
     ("MSB", ret))
CALL(TEV_SETRBUF, setrbuf, (int mid), (mid),
     ("MB", mid),
     ("MRB", ret))
CALL(TEV_BUFINFO, bufinfo, (int mid, int *bytes, int *tag, int *tid), (mid, bytes, tag, tid),
     ("MB", mid),
     ("CC INB IMC IST", ret, ret < 0 || !bytes ? -1 : *bytes, ret < 0 || !tag ? -1 : *tag,
	     ret < 0 || !tid ? -1 : *tid))
CALL(TEV_GETMINFO, getminfo, (int mid, struct pvmminfo *info), (mid, info),
     ("MB", mid),
     ("CC", ret))
CALL(TEV_SETMINFO, setminfo, (int mid, struct pvmminfo *info), (mid, info),
     ("MB", mid),
     ("CC", ret))
CALL(TEV_SEND, send, (int tid, int tag), (tid, tag),
     ("MNB DST MC MCX", sbuf_bytes(), tid, tag, pvmmyctx),
     ("CC", ret))
CALL(TEV_MCAST, mcast, (int *tids, int n, int tag), (tids, n, tag),
     ("MNB MC MCX MDL/v", sbuf_bytes(), tag, pvmmyctx, tids ? n : 0, tids),
     ("CC", ret))
CALL(TEV_PSEND, psend, (int tid, int tag, void *data, int n, int type), (tid, tag, data, n, type),
     ("DST MC MCX PDA/l PC PDT", tid, tag, pvmmyctx, (long)data, n, type),
     ("CC", ret))
CALL(TEV_PRECV, precv, (int tid, int tag, void *data, int n, int type, int *rtid, int *rtag, int *rn), (tid, tag, data, n, type, rtid, rtag, rn),
     ("RST RMC RCX PDA/l PC PDT", tid, tag, pvmmyctx, (long)data, n, type),
     ("CC MNB MC MCX SRC", ret, trace_get_value(rn, ret), trace_get_value(rtag, ret), pvmmyctx,
      trace_get_value(rtid, ret)))
CALL(TEV_PROBE, probe, (int tid, int tag), (tid, tag),
     ("RST RMC RCX", tid, tag, pvmmyctx),
     ("CC", ret))
CALL(TEV_RECV, recv, (int tid, int tag), (tid, tag),
     ("RST RMC RCX", tid, tag, pvmmyctx),
     ("MB MNB MC MCX SRC", RECEIVED(ret)))
CALL(TEV_NRECV, nrecv, (int tid, int tag), (tid, tag),
     ("RST RMC RCX", tid, tag, pvmmyctx),
     ("MB MNB MC MCX SRC", RECEIVED(ret)))
CALL(TEV_TRECV, trecv, (int tid, int tag, struct timeval *t), (tid, tag, t),
     ("RST RMC RCX MTS MTU", tid, tag, pvmmyctx, t ? (int)t->tv_sec : -1,
	     t ? (int)t->tv_usec : -1),
     ("MB MNB MC MCX SRC", RECEIVED(ret)))
CALL(TEV_CONFIG, config, (int *n, int *archs, struct pvmhostinfo **info), (n, archs, info),
     NO_FIELDS,
     ("NH NA CC", trace_get_value(n, ret), trace_get_value(archs, ret), ret))
CALL(TEV_MSTAT, mstat, (char *name), (name),
     ("HN/s", name),
     ("HS", ret))
CALL(TEV_ARCHCODE, archcode, (char *arch), (arch),
     ("AN/s", arch),
     ("AC", ret))
CALL(TEV_TASKS, tasks, (int where, int *n, struct pvmtaskinfo **info), (where, n, info),
     ("TW", where),
     ("CC TNT", ret, trace_get_value(n, ret)))
CALL(TEV_PSTAT, pstat, (int tid), (tid),
     ("TT", tid),
     ("TST", ret))
CALL(TEV_NOTIFY, notify, (int what, int tag, int n, int *tids), (what, tag, n, tids),
     ("NE NMC NTL/v", what, tag, tids && n > 0 ? n : 0, tids),
     ("CC", ret))
CALL(TEV_SENDSIG, sendsig, (int tid, int sig), (tid, sig),
     ("TT SN", tid, sig),
     ("CC", ret))
CALL(TEV_KILL, kill, (int tid), (tid),
     ("TT", tid),
     ("CC", ret))
CALL(TEV_GETOPT, getopt, (int what), (what),
     ("OPT", what),
     ("OPV", ret))
CALL(TEV_SETOPT, setopt, (int what, int value), (what, value),
     ("OPT OPV", what, value),
     ("OPV", ret))
CALL(TEV_NEWCONTEXT, newcontext, (void), (),
     NO_FIELDS,
     ("CXN", ret))
CALL(TEV_FREECONTEXT, freecontext, (int ctx), (ctx),
     ("CXF", ctx),
     ("CC", ret))
CALL(TEV_SETCONTEXT, setcontext, (int ctx), (ctx),
     ("CXS", ctx),
     ("CC", ret))
CALL(TEV_GETCONTEXT, getcontext, (void), (),
     NO_FIELDS,
     ("CXC", ret))
CALL(TEV_PUTINFO, putinfo, (char *name, int mid, int flags), (name, mid, flags),
     ("CN/s CI CF CD", name, -1, flags, mid),
     ("CC", ret))
CALL(TEV_GETMBOXINFO, getmboxinfo, (char *pattern, int *n, struct pvmmboxinfo **info), (pattern, n, info),
     ("CN/s", pattern),
     ("CC", ret))
CALL(TEV_GETINFO, recvinfo, (char *name, int index, int flags), (name, index, flags),
     ("CN/s CI CF", name, index, flags),
     ("CC CR", ret < 0 ? ret : 0, ret))
CALL(TEV_DELINFO, delinfo, (char *name, int index, int flags), (name, index, flags),
     ("CN/s CI CF", name, index, flags),
     ("CC", ret))
CALL(TEV_SIBLINGS, siblings, (int **tids), (tids),
     NO_FIELDS,
     ("SIB/v", ret > 0 && tids ? ret : 0, ret > 0 && tids ? *tids : NULL))
CALL(TEV_SPAWN, spawn, (char *file, char **argv, int flag, char *where, int n, int *tids), (file, argv, flag, where, n, tids),
     ("SE/s SW/s SF SC", file, where, flag, n),
     ("CC STL/v", ret, ret > 0 && tids ? ret : 0, tids))
CALL(TEV_ADDHOSTS, addhosts, (char **names, int n, int *results), (names, n, results),
     ("HNL/S", names ? n : 0, names),
     ("CC", ret))
CALL(TEV_DELHOSTS, delhosts, (char **names, int n, int *results), (names, n, results),
     ("HNL/S", names ? n : 0, names),
     ("CC", ret))
CALL(TEV_ADDMHF, addmhf, (int src, int tag, int ctx, int (*func)(int)), (src, tag, ctx, func),
     ("RST RMC RCX", src, tag, ctx),
     ("MHI", ret))
CALL(TEV_DELMHF, delmhf, (int id), (id),
     ("MHI", id),
     ("CC", ret))
CALL(TEV_GETFDS, getfds, (int **fds), (fds),
     NO_FIELDS,
     ("CC FDS/v", ret, ret > 0 && fds ? ret : 0, ret > 0 && fds ? *fds : NULL))
CALL(TEV_REG_TASKER, reg_tasker, (void), (),
     NO_FIELDS,
     ("CC", ret))
CALL(TEV_REG_HOSTER, reg_hoster, (void), (),
     NO_FIELDS,
     ("CC", ret))
CALL(TEV_REG_RM, reg_rm, (struct pvmhostinfo **info), (info),
     NO_FIELDS,
     ("CC", ret))
CALL(TEV_REG_TRACER, reg_tracer, (int tctx, int ttag, int octx, int otag, char *mask, int bytes, int option), (tctx, ttag, octx, otag, mask, bytes, option),
     ("TRC TRT TRX TRO TRM/s TRB TRL", tctx, ttag, octx, otag, mask, bytes, option),
     ("CC", ret))
CALL(TEV_PKSTR, pkstr, (char *s), (s),
     ("PDA/l", (long)s),
     ("CC", ret))
CALL(TEV_UPKSTR, upkstr, (char *s), (s),
     ("PDA/l", (long)s),
     ("CC", ret))

#define PACK_CALL(kind, name, type)						\
	CALL(TEV_PK##kind, pk##name, (type *items, int n, int step), (items, n, step),	\
	     ("PDA/l PC PSD", (long)items, n, step), ("CC", ret))			\
	CALL(TEV_UPK##kind, upk##name, (type *items, int n, int step), (items, n, step),	\
	     ("PDA/l PC PSD", (long)items, n, step), ("CC", ret))

PACK_CALL(BYTE, byte, char)
PACK_CALL(CPLX, cplx, float)
PACK_CALL(DCPLX, dcplx, double)
PACK_CALL(DOUBLE, double, double)
PACK_CALL(FLOAT, float, float)
PACK_CALL(INT, int, int)
PACK_CALL(UINT, uint, unsigned int)
PACK_CALL(LONG, long, long)
PACK_CALL(ULONG, ulong, unsigned long)
PACK_CALL(SHORT, short, short)
PACK_CALL(USHORT, ushort, unsigned short)

PVM_API int pvm_vpackf(const char *fmt, va_list ap);
PVM_API int pvm_vunpackf(const char *fmt, va_list ap);

static int format_call(int kind, int (*call)(const char *fmt, va_list ap), const char *fmt,
		       va_list ap)
{
	bool traced = pv_traced(kind);
	int ret;

	if (traced)
		pv_trace_entry(kind, "PF/s", fmt);
	ret = call(fmt, ap);
	if (traced)
		pv_trace_exit(kind, "CC", ret);
	return ret;
}

PVM_API int pvm_packf(const char *fmt, ...)
{
	va_list ap;
	int ret;

	va_start(ap, fmt);
	ret = format_call(TEV_PACKF, pvm_vpackf, fmt, ap);
	va_end(ap);
	return ret;
}

PVM_API int pvm_unpackf(const char *fmt, ...)
{
	va_list ap;
	int ret;

	va_start(ap, fmt);
	ret = format_call(TEV_UNPACKF, pvm_vunpackf, fmt, ap);
	va_end(ap);
	return ret;
}

extern __typeof__(pvm_recvf) plain_recvf;

PVM_API int (*pvm_recvf(int (*compare)(int, int, int)))(int, int, int)
{
	int (*old)(int, int, int);
	bool traced = pv_traced(TEV_RECVF);

	if (traced)
		pv_trace_entry(TEV_RECVF, "");
	old = plain_recvf(compare);
	if (traced)
		pv_trace_exit(TEV_RECVF, "");
	return old;
}

/* pvm_halt() ends the machine, so record only its entry. */
extern __typeof__(pvm_halt) plain_halt;

PVM_API int pvm_halt(void)
{
	if (pv_traced(TEV_HALT))
		pv_trace_entry(TEV_HALT, "");
	pv_trace_flush();
	return plain_halt();
}

/* The entry of pvm_exit() is the last event of a task. */
extern __typeof__(pvm_exit) plain_exit;

PVM_API int pvm_exit(void)
{
	if (pv_me.sock >= 0 && pv_traced(TEV_EXIT))
		pv_trace_entry(TEV_EXIT, "");
	pv_trace_flush();
	return plain_exit();
}
