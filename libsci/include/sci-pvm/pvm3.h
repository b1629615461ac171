/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: PVM 3.4
 *
 * The calls, constants and structures of PVM's C interface, with the same names and
 * values, so that programs of either library work with the other. See pvm_sci(7).
 */
#ifndef _PVM3_H_
#define _PVM3_H_

#include <sys/time.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PVM_VER			"3.4.6"
#define PVM_MAJOR_VERSION	3
#define PVM_MINOR_VERSION	4
#define PVM_PATCH_VERSION	6

/* Encodings for pvm_initsend() and pvm_mkbuf() */
#define PvmDataDefault		0	/* XDR */
#define PvmDataRaw		1	/* the machine's format */
#define PvmDataInPlace		2	/* the machine's format, read at the send */
#define PvmDataFoo		PvmDataDefault
#define PvmDataTrace		4

/* Flags of pvm_spawn() */
#define PvmTaskDefault		0
#define PvmTaskHost		1	/* on the host that is named */
#define PvmTaskArch		2	/* on hosts of the architecture that is named */
#define PvmTaskDebug		4	/* under $PVM_ROOT/lib/debugger */
#define PvmTaskTrace		8
#define PvmMppFront		16
#define PvmHostCompl		32	/* on the hosts that the other flags exclude */
#define PvmNoSpawnParent	64	/* the task gets no parent */

/* Events of pvm_notify() */
#define PvmTaskExit		1
#define PvmHostDelete		2
#define PvmHostAdd		3
#define PvmRouteAdd		4
#define PvmRouteDelete		5
#define PvmNotifyCancel		256

/* Options of pvm_setopt() and pvm_getopt(), and their values */
#define PvmRoute		1
#define PvmDontRoute		1
#define PvmAllowDirect		2
#define PvmRouteDirect		3
#define PvmDebugMask		2
#define PvmAutoErr		3	/* 0 silent, 1 print, 2 print and exit, 3 print and abort */
#define PvmOutputTid		4	/* the task that receives the output of children */
#define PvmOutputCode		5
#define PvmTraceTid		6
#define PvmTraceCode		7
#define PvmTraceBuffer		8
#define PvmTraceOptions		9
#define PvmTraceFull		1
#define PvmTraceTime		2
#define PvmTraceCount		3
#define PvmFragSize		10
#define PvmResvTids		11
#define PvmSelfOutputTid	12	/* the task that receives the output of this task */
#define PvmSelfOutputCode	13
#define PvmSelfTraceTid		14
#define PvmSelfTraceCode	15
#define PvmSelfTraceBuffer	16
#define PvmSelfTraceOptions	17
#define PvmShowTids		18	/* pvm_catchout() prints the child's tid */
#define PvmPollType		19
#define PvmPollConstant		1
#define PvmPollSleep		2
#define PvmPollTime		20
#define PvmOutputContext	21
#define PvmTraceContext		22
#define PvmSelfOutputContext	23
#define PvmSelfTraceContext	24
#define PvmNoReset		25	/* a reset does not kill this task */

#define PvmTaskSelf		0	/* for pvm_settmask(), pvm_gettmask() */
#define PvmTaskChild		1

#define PvmBaseContext		0

/* Flags of calls for the mail box */
#define PvmMboxDefault		0	/* one entry of this name; its owner may replace it */
#define PvmMboxPersistent	1	/* the entry stays when its owner exits */
#define PvmMboxMultiInstance	2	/* several entries may have this name */
#define PvmMboxOverWritable	4	/* other tasks may replace the entry */
#define PvmMboxFirstAvail	8	/* the first entry from this index on */
#define PvmMboxReadAndDelete	16
#define PvmMboxWaitForInfo	32	/* wait until the entry exists */
#define PvmMboxMaxFlag		512
#define PvmMboxDirectIndexShift	10
#define PvmMboxMaxDirectIndex	(1u << (31 - PvmMboxDirectIndexShift))
#define PvmMboxDirectIndexOf(flags) \
	((flags) >> PvmMboxDirectIndexShift & (PvmMboxMaxDirectIndex - 1))
/* Return the flag that requests @index; 0 if @index is too large */
#define PvmMboxDirectIndex(index) \
	((index) < PvmMboxMaxDirectIndex ? (index) << PvmMboxDirectIndexShift : 0)

/* Names in the mail box that PVM itself uses */
#define PVMNORESETCLASS		"###_PVM_NO_RESET_###"
#define PVMHOSTERCLASS		"###_PVM_HOSTER_###"
#define PVMTASKERCLASS		"###_PVM_TASKER_###"
#define PVMTRACERCLASS		"###_PVM_TRACER_###"
#define PVMRMCLASS		"###_PVM_RM_###"

/* Errors */
#define PvmOk			0
#define PvmBadParam		-2
#define PvmMismatch		-3
#define PvmOverflow		-4
#define PvmNoData		-5
#define PvmNoHost		-6
#define PvmNoFile		-7
#define PvmDenied		-8
#define PvmNoMem		-10
#define PvmBadMsg		-12
#define PvmSysErr		-14
#define PvmNoBuf		-15
#define PvmNoSuchBuf		-16
#define PvmNullGroup		-17
#define PvmDupGroup		-18
#define PvmNoGroup		-19
#define PvmNotInGroup		-20
#define PvmNoInst		-21
#define PvmHostFail		-22
#define PvmNoParent		-23
#define PvmNotImpl		-24
#define PvmDSysErr		-25
#define PvmBadVersion		-26
#define PvmOutOfRes		-27
#define PvmDupHost		-28
#define PvmCantStart		-29
#define PvmAlready		-30
#define PvmNoTask		-31
#define PvmNotFound		-32
#define PvmExists		-33
#define PvmHostrNMstr		-34
#define PvmParentNotSet		-35
#define PvmIPLoopback		-36
#define PvmNoEntry		PvmNotFound
#define PvmDupEntry		PvmDenied

/* Types of pvm_psend(), pvm_precv(), pvm_reduce() */
#define PVM_STR			0
#define PVM_BYTE		1
#define PVM_SHORT		2
#define PVM_INT			3
#define PVM_FLOAT		4
#define PVM_CPLX		5
#define PVM_DOUBLE		6
#define PVM_DCPLX		7
#define PVM_LONG		8
#define PVM_USHORT		9
#define PVM_UINT		10
#define PVM_ULONG		11

struct pvmhostinfo {
	int hi_tid;		/* tid of the host's daemon */
	char *hi_name;
	char *hi_arch;
	int hi_speed;
	int hi_dsig;		/* the host's data formats */
};

struct pvmtaskinfo {
	int ti_tid;
	int ti_ptid;		/* tid of the parent; 0: none */
	int ti_host;		/* tid of the daemon */
	int ti_flag;
	char *ti_a_out;		/* the task's program */
	int ti_pid;
};

struct pvmminfo {
	int len;		/* bytes */
	int ctx;
	int tag;
	int wid;
	int enc;
	int crc;
	int src;
	int dst;
};

struct pvmmboxinfo {
	char *mi_name;
	int mi_nentries;
	int *mi_indices;
	int *mi_owners;
	int *mi_flags;
};

#ifdef NOTMPNAM
#define PVMTMPNAMFUN(x)	pvmtmpnam(x)
#define PVMTMPNAMLEN	128
char *pvmtmpnam(char *name);
#else
#define PVMTMPNAMFUN(x)	tmpnam(x)
#ifdef L_tmpnam
#define PVMTMPNAMLEN	L_tmpnam
#else
#define PVMTMPNAMLEN	128
#endif
#endif

/* Calls for tasks and hosts */
int pvm_mytid(void);
int pvm_parent(void);
int pvm_siblings(int **tids);
int pvm_exit(void);
int pvm_spawn(char *file, char **argv, int flag, char *where, int count, int *tids);
int pvm_kill(int tid);
int pvm_sendsig(int tid, int sig);
int pvm_tasks(int where, int *count, struct pvmtaskinfo **info);
int pvm_pstat(int tid);
int pvm_tidtohost(int tid);
int pvm_config(int *count, int *narch, struct pvmhostinfo **info);
int pvm_mstat(char *host);
int pvm_addhosts(char **names, int count, int *results);
int pvm_delhosts(char **names, int count, int *results);
int pvm_halt(void);
int pvm_start_pvmd(int argc, char **argv, int block);
int pvm_hostsync(int host, struct timeval *clock, struct timeval *delta);
int pvm_notify(int what, int tag, int count, int *tids);
int pvm_tickle(int narg, int *argp, int *nresp, int *resp);
int pvm_archcode(char *arch);
char *pvm_version(void);
int pvm_reg_hoster(void);
int pvm_reg_rm(struct pvmhostinfo **info);
int pvm_reg_tasker(void);
int pvm_reg_tracer(int tctx, int ttag, int octx, int otag, char *mask, int buf, int opt);

/* Options */
int pvm_setopt(int what, int value);
int pvm_getopt(int what);
int pvm_export(char *name);
int pvm_unexport(char *name);
#ifdef EOF
int pvm_catchout(FILE *ff);
#endif
int pvm_getfds(int **fds);
int pvm_getnoresets(int **tids, int *count);
int pvm_perror(char *s);
char *pvm_strerror(void);
char *pvmgetrsh(void);
char *pvmgettmp(void);

/* Buffers */
int pvm_mkbuf(int encoding);
int pvm_initsend(int encoding);
int pvm_freebuf(int mid);
int pvm_setsbuf(int mid);
int pvm_setrbuf(int mid);
int pvm_getsbuf(void);
int pvm_getrbuf(void);
int pvm_bufinfo(int mid, int *bytes, int *tag, int *tid);
int pvm_getminfo(int mid, struct pvmminfo *info);
int pvm_setminfo(int mid, struct pvmminfo *info);

/* Pack or unpack @count items, every @stride-th */
int pvm_pkbyte(char *items, int count, int stride);
int pvm_pkcplx(float *items, int count, int stride);
int pvm_pkdcplx(double *items, int count, int stride);
int pvm_pkdouble(double *items, int count, int stride);
int pvm_pkfloat(float *items, int count, int stride);
int pvm_pkint(int *items, int count, int stride);
int pvm_pklong(long *items, int count, int stride);
int pvm_pkshort(short *items, int count, int stride);
int pvm_pkuint(unsigned int *items, int count, int stride);
int pvm_pkulong(unsigned long *items, int count, int stride);
int pvm_pkushort(unsigned short *items, int count, int stride);
int pvm_pkstr(char *s);
int pvm_packf(const char *fmt, ...);
int pvm_pkmesg(int mid);
int pvm_pkmesgbody(int mid);
int pvm_upkbyte(char *items, int count, int stride);
int pvm_upkcplx(float *items, int count, int stride);
int pvm_upkdcplx(double *items, int count, int stride);
int pvm_upkdouble(double *items, int count, int stride);
int pvm_upkfloat(float *items, int count, int stride);
int pvm_upkint(int *items, int count, int stride);
int pvm_upklong(long *items, int count, int stride);
int pvm_upkshort(short *items, int count, int stride);
int pvm_upkuint(unsigned int *items, int count, int stride);
int pvm_upkulong(unsigned long *items, int count, int stride);
int pvm_upkushort(unsigned short *items, int count, int stride);
int pvm_upkstr(char *s);
int pvm_unpackf(const char *fmt, ...);
int pvm_upkmesg(void);

/* Messages. In a receive, a tid or tag of -1 accepts any sender or tag. */
int pvm_send(int tid, int tag);
int pvm_mcast(int *tids, int count, int tag);
int pvm_psend(int tid, int tag, void *data, int len, int type);
int pvm_recv(int tid, int tag);
int pvm_nrecv(int tid, int tag);
int pvm_trecv(int tid, int tag, struct timeval *timeout);
int pvm_probe(int tid, int tag);
int pvm_precv(int tid, int tag, void *data, int len, int type, int *rtid, int *rtag,
	      int *rlen);
int (*pvm_recvf(int (*compare)(int, int, int)))(int, int, int);
int pvm_addmhf(int src, int tag, int ctx, int (*handler)(int));
int pvm_delmhf(int mhid);
int pvm_getcontext(void);
int pvm_setcontext(int ctx);
int pvm_newcontext(void);
int pvm_freecontext(int ctx);

/* Calls for the mail box */
int pvm_putinfo(char *name, int mid, int flags);
int pvm_recvinfo(char *name, int index, int flags);
int pvm_delinfo(char *name, int index, int flags);
int pvm_getmboxinfo(char *pattern, int *count, struct pvmmboxinfo **info);
int pvm_insert(char *name, int req, int data);
int pvm_lookup(char *name, int req, int *data);
int pvm_delete(char *name, int req);

/* Groups: libgpvm3 */
int pvm_joingroup(char *group);
int pvm_lvgroup(char *group);
int pvm_getinst(char *group, int tid);
int pvm_gettid(char *group, int instance);
int pvm_gsize(char *group);
int pvm_barrier(char *group, int count);
int pvm_bcast(char *group, int tag);
int pvm_freezegroup(char *group, int size);
int pvm_gather(void *result, void *data, int count, int type, int tag, char *group,
	       int root);
int pvm_scatter(void *result, void *data, int count, int type, int tag, char *group,
		int root);
int pvm_reduce(void (*func)(int *, void *, void *, int *, int *), void *data, int count,
	       int type, int tag, char *group, int root);
void PvmMax(int *type, void *x, void *y, int *count, int *info);
void PvmMin(int *type, void *x, void *y, int *count, int *info);
void PvmSum(int *type, void *x, void *y, int *count, int *info);
void PvmProduct(int *type, void *x, void *y, int *count, int *info);

#ifdef __cplusplus
}
#endif

#endif
