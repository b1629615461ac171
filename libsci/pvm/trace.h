/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Traces: events that a task sends to a collecting task. See PVM's pvmtev.h. */
#ifndef LIBSCI_PVM_TRACE_H
#define LIBSCI_PVM_TRACE_H

#include <stdbool.h>

/* Numbers of events: bits in masks, and indices of pvmtevinfo. */
enum trace_kind {
	TEV_ADDHOSTS, TEV_BARRIER, TEV_BCAST, TEV_BUFINFO, TEV_CONFIG, TEV_DELETE,
	TEV_DELHOSTS, TEV_EXIT, TEV_FREEBUF, TEV_GETFDS, TEV_GETINST, TEV_GETOPT,
	TEV_GETRBUF, TEV_GETSBUF, TEV_GETTID, TEV_GSIZE, TEV_HALT, TEV_INITSEND,
	TEV_INSERT, TEV_JOINGROUP, TEV_KILL, TEV_LOOKUP, TEV_LVGROUP, TEV_MCAST, TEV_MKBUF,
	TEV_MSTAT, TEV_MYTID, TEV_NOTIFY, TEV_NRECV, TEV_PARENT, TEV_PERROR, TEV_PKBYTE,
	TEV_PKCPLX, TEV_PKDCPLX, TEV_PKDOUBLE, TEV_PKFLOAT, TEV_PKINT, TEV_PKUINT,
	TEV_PKLONG, TEV_PKULONG, TEV_PKSHORT, TEV_PKUSHORT, TEV_PKSTR, TEV_PROBE,
	TEV_PSTAT, TEV_RECV, TEV_RECVF, TEV_SEND, TEV_SENDSIG, TEV_SETOPT, TEV_SETRBUF,
	TEV_SETSBUF, TEV_SPAWN, TEV_START_PVMD, TEV_TASKS, TEV_TICKLE, TEV_TIDTOHOST,
	TEV_TRECV, TEV_UPKBYTE, TEV_UPKCPLX, TEV_UPKDCPLX, TEV_UPKDOUBLE, TEV_UPKFLOAT,
	TEV_UPKINT, TEV_UPKUINT, TEV_UPKLONG, TEV_UPKULONG, TEV_UPKSHORT, TEV_UPKUSHORT,
	TEV_UPKSTR, TEV_VERSION, TEV_REG_HOSTER, TEV_REG_RM, TEV_REG_TASKER,
	TEV_REG_TRACER, TEV_NEWTASK, TEV_ENDTASK, TEV_SPNTASK, TEV_ARCHCODE, TEV_CATCHOUT,
	TEV_GETMWID, TEV_GETTMASK, TEV_HOSTSYNC, TEV_PACKF, TEV_PRECV, TEV_PSEND,
	TEV_REDUCE, TEV_SETMWID, TEV_SETTMASK, TEV_UNPACKF, TEV_GATHER, TEV_SCATTER,
	TEV_PUTINFO, TEV_GETINFO, TEV_DELINFO, TEV_GETMBOXINFO, TEV_NEWCONTEXT,
	TEV_FREECONTEXT, TEV_SETCONTEXT, TEV_GETCONTEXT, TEV_SIBLINGS, TEV_GETMINFO,
	TEV_SETMINFO, TEV_ADDMHF, TEV_DELMHF, TEV_MHF_INVOKE, TEV_TIMING, TEV_PROFILING,
	TEV_USER_DEFINED
};

#define TEV_EVENT_ENTRY	0x4000
#define TEV_EVENT_EXIT	0x8000

enum trace_state { TRACE_UNKNOWN, TRACE_OFF, TRACE_ON };
extern enum trace_state pv_trace_state;

/* Return whether this task records events of @kind. A spawned task first enrols. */
bool pv_traced_now(enum trace_kind kind);

static inline bool pv_traced(enum trace_kind kind)
{
	return pv_trace_state != TRACE_OFF && pv_traced_now(kind);
}

/*
 * Record an event. @fields: words, each the name of a field in pvmtevdidlist. The field's value is
 * an argument: an int; with /l a long, /s a string, /v an int n and n ints, /S an int n and n
 * strings.
 */
void pv_trace_entry(enum trace_kind kind, const char *fields, ...);
void pv_trace_exit(enum trace_kind kind, const char *fields, ...);

/*
 * Begin and end a call of libgpvm3: record its event if the event is traced. The calls of libpvm3
 * inside it record no events.
 */
void pvmgroup_entry(enum trace_kind kind, const char *fields, ...);
void pvmgroup_exit(enum trace_kind kind, const char *fields, ...);

/* Send the records to the sink. */
void pv_trace_flush(void);

/* Update the state of tracing after a change of the sink, the mask or another option. */
void pv_trace_changed(void);

/*
 * Set the options of tracing after this task has enrolled, to those of its parent, or to those of
 * the tracer in @b.
 */
struct body;
void pv_trace_begin(struct body *b);

#endif
