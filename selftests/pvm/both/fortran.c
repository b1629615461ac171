// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Prints the result of each Fortran call of PVM, a line per call. scripts/check-pvm links this
 * with Debian's libfpvm3.a and with our libfpvm3.so.3, and compares the output. Calls are those
 * of gfortran: arguments are addresses, and the lengths of character arguments follow them.
 *
 * Left out: results of Debian's library that contradict its manual pages. Its pvmffreecontext()
 * sets a context, and its pvmfgetmboxinfo() sets neither the number of classes nor info.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pvm3.h>

#include "selftests/pvm/both/show.h"

typedef void operator_fn(int *type, void *x, void *y, int *n, int *info);

#define RESULT(name)	void name(int *r);
#define NUMBER(name)	void name(int *a, int *r);
#define NUMBERS(name)	void name(int *a, int *b, int *r);
#define NAME(name)	void name(const char *s, int *r, size_t len);
#define NAME1(name)	void name(const char *s, int *a, int *r, size_t len);
#define NAME2(name)	void name(const char *s, int *a, int *b, int *r, size_t len);

RESULT(pvmfmytid_) RESULT(pvmfparent_) RESULT(pvmfexit_) RESULT(pvmfhalt_)
RESULT(pvmfgetrbuf_) RESULT(pvmfgetsbuf_) RESULT(pvmfgetcontext_) RESULT(pvmfnewcontext_)
NUMBER(pvmffreebuf_) NUMBER(pvmffreecontext_) NUMBER(pvmfgetopt_) NUMBER(pvmfinitsend_)
NUMBER(pvmfkill_) NUMBER(pvmfmkbuf_) NUMBER(pvmfpstat_) NUMBER(pvmfsetcontext_)
NUMBER(pvmfsetrbuf_) NUMBER(pvmfsetsbuf_) NUMBER(pvmftidtohost_) NUMBER(pvmfdelmhf_)
NUMBERS(pvmfnrecv_) NUMBERS(pvmfprobe_) NUMBERS(pvmfrecv_) NUMBERS(pvmfsend_)
NUMBERS(pvmfsendsig_) NUMBERS(pvmfsetopt_)
NUMBER(pvmfcatchout_)
NAME(pvmfaddhost_) NAME(pvmfdelhost_) NAME(pvmfarchcode_) NAME(pvmfgsize_)
NAME(pvmfjoingroup_) NAME(pvmflvgroup_) NAME(pvmfmstat_) NAME(pvmfperror_)
NAME1(pvmfbarrier_) NAME1(pvmfbcast_) NAME1(pvmffreezegroup_) NAME1(pvmfgetinst_)
NAME1(pvmfgettid_) NAME1(pvmfstartpvmd_)
NAME2(pvmfdelinfo_) NAME2(pvmfputinfo_) NAME2(pvmfrecvinfo_)
operator_fn pvmmax_, pvmmin_, pvmsum_, pvmproduct_;

void pvmfbufinfo_(int *mid, int *bytes, int *tag, int *tid, int *info);
void pvmfmcast_(int *n, int *tids, int *tag, int *info);
void pvmfnotify_(int *what, int *tag, int *n, int *tids, int *info);
void pvmftrecv_(int *tid, int *tag, int *sec, int *usec, int *mid);
void pvmfpsend_(int *tid, int *tag, void *data, int *n, int *type, int *info);
void pvmfprecv_(int *tid, int *tag, void *data, int *n, int *type, int *rtid, int *rtag,
		int *rlen, int *info);
void pvmfhostsync_(int *host, int *sec, int *usec, int *dsec, int *dusec, int *info);
void pvmfsleep_(int *seconds);
void pvmfsiblings_(int *n, int *i, int *tid);
void pvmfspawn_(const char *task, int *flag, const char *where, int *n, int *tids,
		int *numt, size_t tlen, size_t wlen);
void pvmfconfig_(int *nhost, int *narch, int *dtid, char *name, char *arch, int *speed,
		 int *info, size_t nlen, size_t alen);
void pvmftasks_(int *where, int *ntask, int *tid, int *ptid, int *dtid, int *flag,
		char *name, int *info, size_t len);
void pvmfgetmboxinfo_(const char *pattern, char *name, int *nclasses, int *nentries,
		      int *indices, int *owners, int *flags, int *info, size_t plen,
		      size_t nlen);
void pvmfaddmhf_(int *src, int *tag, int *ctx, int *unused, int (*func)(int), int *info);
void pvmfpack_(int *type, void *items, int *n, int *stride, int *info);
void pvmfunpack_(int *type, void *items, int *n, int *stride, int *info);
void pvmfgather_(void *r, void *data, int *n, int *type, int *tag, const char *g, int *root,
		 int *info, size_t len);
void pvmfscatter_(void *r, void *data, int *n, int *type, int *tag, const char *g, int *root,
		  int *info, size_t len);
void pvmfreduce_(operator_fn *func, void *data, int *n, int *type, int *tag, const char *g,
		 int *root, int *info, size_t len);

static const char *self;
static int r;

/* N: the address of a number. S and L: a name with trailing blanks, and its length. */
#define N(value)	(&(int){ (value) })
#define S(text)		text "   "
#define L(text)		(sizeof(text "   ") - 1)
#define CALL(call)	do { r = -99; call; show(#call, r); } while (0)
/* Ids of buffers may differ: print only whether the id is positive. */
#define ID(call)	do { r = -99; call; show(#call " > 0", r > 0); } while (0)

static void spawn(int n, int *tids)
{
	char task[4096 + 4];
	int len = snprintf(task, sizeof(task), "%s   ", self);

	CALL(pvmfspawn_(task, N(PvmTaskDefault), S("*"), &n, tids, &r, (size_t)len, L("*")));
}

static void buffers(void)
{
	int me, mid, old, bytes, tag, src;

	CALL(pvmfmytid_(&r));
	me = r;
	CALL(pvmfgetsbuf_(&r));
	CALL(pvmfgetrbuf_(&r));
	ID(pvmfinitsend_(N(PvmDataDefault), &r));
	CALL(pvmfinitsend_(N(77), &r));
	ID(pvmfmkbuf_(N(PvmDataRaw), &r));
	mid = r;
	ID(pvmfsetsbuf_(&mid, &r));
	old = r;
	ID(pvmfgetsbuf_(&r));
	show("same", r == mid);
	ID(pvmfsetsbuf_(&old, &r));
	CALL(pvmfsetrbuf_(&mid, &r));
	ID(pvmfgetrbuf_(&r));
	CALL(pvmfbufinfo_(&mid, &bytes, &tag, &src, &r));
	show("bytes", bytes);
	CALL(pvmffreebuf_(&mid, &r));
	CALL(pvmffreebuf_(&mid, &r));
	CALL(pvmfbufinfo_(&mid, &bytes, &tag, &src, &r));
	CALL(pvmfgetcontext_(&r));
	CALL(pvmfnewcontext_(&r));
	mid = r;
	CALL(pvmfsetcontext_(&mid, &r));
	CALL(pvmfsetcontext_(N(0), &r));
	pvmffreecontext_(&mid, &r);
	pvmfsetcontext_(N(0), &r);
	CALL(pvmfgetopt_(N(PvmAutoErr), &r));
	CALL(pvmfsetopt_(N(PvmRoute), N(PvmRouteDirect), &r));
	CALL(pvmfgetopt_(N(PvmRoute), &r));
	CALL(pvmfsetopt_(N(99), N(1), &r));
	CALL(pvmfpsend_(&me, N(3), N(17), N(1), N(PVM_INT), &r));
	CALL(pvmfprecv_(&me, N(3), &old, N(1), N(PVM_INT), &src, &tag, &bytes, &r));
	printf("%d %d %d %d\n", old, src == me, tag, bytes);
}

static const int types[] = { PVM_BYTE, PVM_SHORT, PVM_INT, PVM_FLOAT, PVM_CPLX, PVM_DOUBLE,
	PVM_DCPLX, PVM_LONG, 10, 11, 12, 99 };

static void data(void)
{
	static short values[] = { 1, 2, 0x3f80, 0x3f80, 0x3ff0, 0x3ff0, 0, 0, 5, 6, 7, 8, 9,
		10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28 };
	char got[64], text[8];
	int me;

	pvmfmytid_(&me);
	for (int enc = PvmDataDefault; enc <= PvmDataRaw; enc++) {
		pvmfinitsend_(&enc, &r);
		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
			int type = types[i];

			/* a long has four bytes in XDR */
			CALL(pvmfpack_(&type, type == PVM_LONG ? (void *)(long[]){ 5, 6 } : values,
				       N(2), N(1), &r));
		}
		CALL(pvmfpack_(N(PVM_STR), (char *)"hello there", N(5), N(1), &r));
		CALL(pvmfsend_(&me, N(4), &r));
		/* the message may take a moment to arrive */
		do
			pvmfprobe_(&me, N(4), &r);
		while (!r);
		show("pvmfprobe_ > 0", r > 0);
		CALL(pvmfnrecv_(&me, N(5), &r));
		ID(pvmfrecv_(&me, N(4), &r));
		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
			int type = types[i], sum = 0;

			memset(got, 0, sizeof(got));
			CALL(pvmfunpack_(&type, got, N(2), N(1), &r));
			for (size_t j = 0; j < sizeof(got); j++)
				sum += (int)(j + 1) * got[j];
			show("bytes", sum);
		}
		CALL(pvmfunpack_(N(PVM_STR), text, N(5), N(1), &r));
		printf("<%.5s>\n", text);
		CALL(pvmfunpack_(N(PVM_STR), text, N(5), N(1), &r));
	}
	CALL(pvmftrecv_(N(-1), N(5), N(0), N(1000), &r));
}

static int handled;

static int handler(int mid)
{
	(void)mid;
	handled++;
	return 0;
}

static void tasks(void)
{
	int tids[2], n = 0, tid = 0, ptid, dtid, flag, me;
	char name[8];

	pvmfmytid_(&me);
	CALL(pvmfparent_(&r));
	CALL(pvmfsiblings_(&r, N(0), &tid));
	show("sibling", tid == me);
	spawn(2, tids);
	CALL(pvmfpstat_(&tids[0], &r));
	CALL(pvmfpstat_(N(0), &r));
	CALL(pvmftidtohost_(&tids[0], &r));
	CALL(pvmfnotify_(N(PvmTaskExit), N(7), N(2), tids, &r));
	CALL(pvmftasks_(&tids[0], &n, &tid, &ptid, &dtid, &flag, name, &r, sizeof(name)));
	printf("%d %d %d %d\n", n, tid == tids[0], ptid == me, flag & 2);
	pvmfaddmhf_(N(-1), N(10), N(-1), N(0), handler, &tid);
	show("handler", tid >= 0);
	for (int i = 0; i < 2; i++) {
		ID(pvmfinitsend_(N(PvmDataDefault), &r));
		CALL(pvmfsend_(&tids[i], N(10), &r));
	}
	CALL(pvmfmcast_(N(2), tids, N(5), &r));
	ID(pvmfrecv_(&tids[0], N(5), &r));
	ID(pvmfrecv_(&tids[1], N(5), &r));
	show("handled", handled);
	CALL(pvmfdelmhf_(&tid, &r));
	CALL(pvmfdelmhf_(N(-1), &r));
	CALL(pvmfsendsig_(&tids[0], N(0), &r));
	CALL(pvmfsendsig_(N(0), N(0), &r));
	CALL(pvmfkill_(&tids[0], &r));
	CALL(pvmfkill_(N(0), &r));
	CALL(pvmfsend_(&tids[1], N(99), &r));
	ID(pvmfrecv_(N(-1), N(7), &r));
	ID(pvmfrecv_(N(-1), N(7), &r));
	CALL(pvmfcatchout_(N(1), &r));
	CALL(pvmfcatchout_(N(0), &r));
}

static void machine(void)
{
	int n = 0, archs, dtid, speed, sec, usec, dsec, dusec, entries, index[9], owners[9], flags[9];
	char name[12], arch[12];
	int me;

	pvmfmytid_(&me);
	CALL(pvmfconfig_(&n, &archs, &dtid, name, arch, &speed, &r, sizeof(name), sizeof(arch)));
	printf("%d %d <%.12s> <%.12s> %d\n", n, archs, name, arch, speed);
	CALL(pvmfmstat_(S("10.9.0.1"), &r, L("10.9.0.1")));
	CALL(pvmfmstat_(S("nohost"), &r, L("nohost")));
	CALL(pvmfarchcode_(S("LINUX64"), &r, L("LINUX64")));
	CALL(pvmfarchcode_(S("NOARCH"), &r, L("NOARCH")));
	CALL(pvmfhostsync_(&dtid, &sec, &usec, &dsec, &dusec, &r));
	show("near", labs((long)dsec) < 5);
	CALL(pvmfaddhost_(S("10.9.0.2"), &r, L("10.9.0.2")));
	CALL(pvmfaddhost_(S("10.9.0.2"), &r, L("10.9.0.2")));
	/* a call with -1 begins the list of hosts again */
	for (int i = 0; i < 4; i++) {
		n = i == 1 ? -1 : 0;
		CALL(pvmfconfig_(&n, &archs, &dtid, name, arch, &speed, &r, sizeof(name),
				 sizeof(arch)));
		printf("%d <%.12s>\n", n, name);
	}
	CALL(pvmfdelhost_(S("10.9.0.2"), &r, L("10.9.0.2")));
	CALL(pvmfdelhost_(S("nohost"), &r, L("nohost")));
	CALL(pvmfstartpvmd_(S(""), N(1), &r, L("")));
	CALL(pvmfsleep_(N(0)));
	ID(pvmfinitsend_(N(PvmDataDefault), &r));
	CALL(pvmfpack_(N(PVM_INT), N(42), N(1), N(1), &r));
	entries = pvm_getsbuf();
	CALL(pvmfputinfo_(S("a"), &entries, N(PvmMboxDefault), &r, L("a")));
	CALL(pvmfputinfo_(S("a"), &entries, N(PvmMboxDefault), &r, L("a")));
	n = -1;
	pvmfgetmboxinfo_(S("a"), name, &n, &entries, index, owners, flags, &r, L("a"),
			 sizeof(name));
	printf("<%.12s> %d %d %d %d\n", name, entries, index[0], owners[0] == me, flags[0]);
	ID(pvmfrecvinfo_(S("a"), N(0), N(PvmMboxDefault), &r, L("a")));
	CALL(pvmfrecvinfo_(S("none"), N(0), N(PvmMboxDefault), &r, L("none")));
	CALL(pvmfdelinfo_(S("a"), N(0), N(PvmMboxDefault), &r, L("a")));
	CALL(pvmfdelinfo_(S("a"), N(0), N(PvmMboxDefault), &r, L("a")));
}

static void mean(int *type, void *x, void *y, int *n, int *info)
{
	(void)type;
	for (int i = 0; i < *n; i++)
		((int *)x)[i] = (((int *)x)[i] + ((int *)y)[i]) / 2;
	*info = PvmOk;
}

static void groups(void)
{
	static operator_fn *const operators[] = { pvmmax_, pvmmin_, pvmsum_, pvmproduct_, mean };
	int x[2] = { 3, -4 }, y[2] = { 5, 6 }, me, all[2] = { 0 };

	pvmfmytid_(&me);
	CALL(pvmfgsize_(S("none"), &r, L("none")));
	CALL(pvmfjoingroup_(S("g"), &r, L("g")));
	CALL(pvmfjoingroup_(S("g"), &r, L("g")));
	CALL(pvmfgsize_(S("g"), &r, L("g")));
	CALL(pvmfgetinst_(S("g"), &me, &r, L("g")));
	CALL(pvmfgettid_(S("g"), N(0), &r, L("g")));
	CALL(pvmfgettid_(S("g"), N(5), &r, L("g")));
	CALL(pvmfbarrier_(S("g"), N(1), &r, L("g")));
	pvmfinitsend_(N(PvmDataDefault), &r);
	CALL(pvmfbcast_(S("g"), N(1), &r, L("g")));
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		CALL(operators[i](N(PVM_INT), x, y, N(2), &r));
		printf("%d %d\n", x[0], x[1]);
		CALL(pvmfreduce_(operators[i], x, N(2), N(PVM_INT), N(5), S("g"), N(0), &r,
				 L("g")));
		printf("%d %d\n", x[0], x[1]);
	}
	CALL(pvmfgather_(all, x, N(2), N(PVM_INT), N(6), S("g"), N(0), &r, L("g")));
	printf("%d %d\n", all[0], all[1]);
	CALL(pvmfscatter_(y, all, N(2), N(PVM_INT), N(7), S("g"), N(0), &r, L("g")));
	printf("%d %d\n", y[0], y[1]);
	CALL(pvmffreezegroup_(S("g"), N(1), &r, L("g")));
	CALL(pvmflvgroup_(S("g"), &r, L("g")));
	CALL(pvmflvgroup_(S("none"), &r, L("none")));
}

static void end(void)
{
	CALL(pvmfperror_(S("a program"), &r, L("a program")));
	CALL(pvmfexit_(&r));
	signal(SIGTERM, SIG_IGN);
	pvm_mytid();
	CALL(pvmfhalt_(&r));
}

/* Send each message back until a message with tag 99 arrives. */
static int child(void)
{
	int n, tag, src;

	while (pvm_recv(-1, -1) > 0) {
		pvm_bufinfo(pvm_getrbuf(), &n, &tag, &src);
		if (tag == 99)
			break;
		pvm_setsbuf(pvm_getrbuf());
		pvm_send(src, tag);
	}
	return pvm_exit();
}

int main(int argc, char **argv)
{
	static void (*const parts[])(void) = { buffers, data, tasks, machine, groups, end };

	(void)argc;
	setvbuf(stdout, NULL, _IONBF, 0);
	pvm_setopt(PvmAutoErr, 0);
	self = argv[0];
	if (pvm_parent() > 0)
		return child();
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		printf("-- part %zu\n", i);
		parts[i]();
	}
	return 0;
}
