// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Prints the result of each call of PVM, a line per call. scripts/check-pvm runs the program
 * with Debian's libraries and with ours, and compares the output. fortran.c has the Fortran
 * calls.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pvm3.h>

#include "selftests/pvm/both/show.h"

void *pvm_alloc(unsigned int size, char *what);
void *pvm_realloc(void *p, unsigned int size, char *what);
void pvm_free(void *p);
int pvm_settmask(int who, char *mask);
int pvm_gettmask(int who, char *mask);

static char *self;
static int caught;

/* ---- children ---- */

static void on_usr1(int sig)
{
	(void)sig;
	caught = 1;
}

/* Send each message back until a message with tag 99 arrives. */
static void child_echo(void)
{
	int n, tag, src;

	while (pvm_recv(-1, -1) > 0) {
		pvm_bufinfo(pvm_getrbuf(), &n, &tag, &src);
		if (tag == 99)
			break;
		pvm_setsbuf(pvm_getrbuf());
		pvm_send(src, tag);
	}
}

static void child_signal(void)
{
	signal(SIGUSR1, on_usr1);
	pvm_initsend(PvmDataDefault);
	pvm_send(pvm_parent(), 1);
	while (!caught)
		usleep(1000);
	pvm_initsend(PvmDataDefault);
	pvm_send(pvm_parent(), 2);
}

static void child_options(void)
{
	int values[3];

	pvm_mytid();

	values[0] = pvm_getopt(PvmSelfOutputCode);
	values[1] = pvm_getcontext();
	values[2] = pvm_getopt(PvmSelfTraceTid);
	pvm_initsend(PvmDataDefault);
	pvm_pkint(values, 3, 1);
	pvm_send(pvm_parent(), 3);
}

static int spawn(const char *what, int n, int *tids)
{
	char *argv[] = { (char *)what, NULL };

	return pvm_spawn(self, argv, 0, NULL, n, tids);
}

/* ---- groups of calls ---- */

static int ints[4] = { 1, -2, 0x7fffffff, -0x7fffffff - 1 };
static unsigned int uints[2] = { 7, 0xffffffffu };
static short shorts[3] = { 1, -2, 32767 };
static unsigned short ushorts[2] = { 3, 65535 };
/* Debian's PVM loses the sign of a long in XDR */
static long longs[3] = { 5, 6, 0x7fffffff };
static unsigned long ulongs[2] = { 5, 0xffffffffu };
static float floats[2] = { 1.5f, -2.25f };
static double doubles[2] = { 1.5, -1e300 };
static char bytes[5] = "abcd";

#define BACK(name, array)							\
	do {									\
		__typeof__(array) got_;						\
		int n_ = (int)(sizeof(array) / sizeof(array[0]));		\
										\
		memset(got_, 0, sizeof(got_));					\
		SHOW(pvm_upk##name(got_, n_, 1));				\
		show(#name " same", !memcmp(got_, array, sizeof(got_)));	\
	} while (0)

static void encodings(void)
{
	int me = pvm_mytid(), n, tag, src;
	char text[32];

	for (int enc = PvmDataDefault; enc <= PvmDataInPlace; enc++) {
		show("initsend > 0", pvm_initsend(enc) > 0);
		SHOW(pvm_pkint(ints, 4, 1));
		SHOW(pvm_pkuint(uints, 2, 1));
		SHOW(pvm_pkshort(shorts, 3, 1));
		SHOW(pvm_pkushort(ushorts, 2, 1));
		SHOW(pvm_pklong(longs, 3, 1));
		SHOW(pvm_pkulong(ulongs, 2, 1));
		SHOW(pvm_pkfloat(floats, 2, 1));
		SHOW(pvm_pkdouble(doubles, 2, 1));
		SHOW(pvm_pkcplx(floats, 1, 1));
		SHOW(pvm_pkdcplx(doubles, 1, 1));
		SHOW(pvm_pkbyte(bytes, 5, 1));
		/* in place, Debian's PVM packs neither strings nor strides */
		if (enc != PvmDataInPlace)
			SHOW(pvm_pkint(ints, 2, 2));
		SHOW(pvm_pkstr("a string"));
		SHOW(pvm_bufinfo(pvm_getsbuf(), &n, &tag, &src));
		if (enc != PvmDataInPlace)
			show("bytes", n);
		SHOW(pvm_send(me, 4));
		show("recv > 0", pvm_recv(me, 4) > 0);
		SHOW(pvm_bufinfo(pvm_getrbuf(), &n, &tag, &src));
		show("bytes", n);
		show("tag", tag);
		show("own", src == me);
		BACK(int, ints);
		BACK(uint, uints);
		BACK(short, shorts);
		BACK(ushort, ushorts);
		BACK(long, longs);
		BACK(ulong, ulongs);
		BACK(float, floats);
		BACK(double, doubles);
		SHOW(pvm_upkcplx(floats, 1, 1));
		SHOW(pvm_upkdcplx(doubles, 1, 1));
		BACK(byte, bytes);
		if (enc == PvmDataInPlace)
			continue;
		ints[2] = 0;
		SHOW(pvm_upkint(ints, 2, 2));
		show("stride", ints[2] == 0x7fffffff);
		ints[2] = 0x7fffffff;
		memset(text, 0, sizeof(text));
		SHOW(pvm_upkstr(text));
		printf("text <%s>\n", text);
		SHOW(pvm_upkint(&n, 1, 1));
	}
}

static void formats(void)
{
	int me = pvm_mytid(), i = 0, a[3] = { 4, 5, 6 }, b[3] = { 0 };
	double d = 0;
	short h = 0;
	char c = 0, s[16] = "";

	SHOW(pvm_packf("%+ %d %hd %c %lf %s %*d %d", PvmDataDefault, 7, 8, 'x', 2.5, "text",
		       3, a, 9));
	SHOW(pvm_send(me, 1));
	show("recv > 0", pvm_recv(-1, 1) > 0);
	SHOW(pvm_unpackf("%d %hd %c %lf %s %*d", &i, &h, &c, &d, s, 3, b));
	printf("%d %d %c %g %s %d %d %d\n", i, h, c, d, s, b[0], b[1], b[2]);
	SHOW(pvm_unpackf("%d", &i));
	show("value", i);
	SHOW(pvm_unpackf("%d", &i));
	SHOW(pvm_packf("%q", 1));
	SHOW(pvm_packf("no conversions"));
}

static void buffers(void)
{
	struct pvmminfo info;
	int me = pvm_mytid(), one = 1, a, b;

	pvm_freebuf(pvm_getsbuf());
	pvm_freebuf(pvm_getrbuf());
	SHOW(pvm_getsbuf());
	SHOW(pvm_getrbuf());
	SHOW(pvm_pkint(&one, 1, 1));
	SHOW(pvm_upkint(&one, 1, 1));
	SHOW(pvm_send(me, 1));
	a = pvm_mkbuf(PvmDataDefault);
	b = pvm_mkbuf(PvmDataRaw);
	show("different", a > 0 && b > 0 && a != b);
	SHOW(pvm_setsbuf(a));
	show("old", pvm_setsbuf(b) == a);
	show("get", pvm_getsbuf() == b);
	SHOW(pvm_setrbuf(a));
	show("getrbuf", pvm_getrbuf() == a);
	SHOW(pvm_freebuf(b));
	SHOW(pvm_getsbuf());
	SHOW(pvm_freebuf(b));
	SHOW(pvm_freebuf(0));
	SHOW(pvm_freebuf(-1));
	SHOW(pvm_setsbuf(-1));
	SHOW(pvm_setsbuf(100000));
	SHOW(pvm_setrbuf(-1));
	SHOW(pvm_setrbuf(100000));
	SHOW(pvm_mkbuf(9));
	SHOW(pvm_initsend(9));
	SHOW(pvm_bufinfo(100000, NULL, NULL, NULL));
	SHOW(pvm_bufinfo(-1, NULL, NULL, NULL));
	SHOW(pvm_getminfo(a, &info));
	printf("%d %d %d %d\n", info.len, info.ctx, info.tag, info.wid);
	info.tag = 77;
	info.ctx = 5;
	SHOW(pvm_setminfo(a, &info));
	SHOW(pvm_getminfo(a, &info));
	printf("%d %d %d\n", info.len, info.ctx, info.tag);
	SHOW(pvm_freebuf(a));
	SHOW(pvm_getminfo(a, &info));
}

/* Left out: arguments with which Debian's PVM crashes (NULL) or hangs (a tid of -2). */
static void hostile(void)
{
	int me = pvm_mytid(), v[2] = { 1, 2 }, *tids = v;

	pvm_initsend(PvmDataDefault);
	SHOW(pvm_send(0, 1));
	SHOW(pvm_send(-1, 1));
	SHOW(pvm_send(me, -1));
	SHOW(pvm_send(me & ~0x3ffff, 1));
	SHOW(pvm_send(me | 0x3fff, 1));
	SHOW(pvm_mcast(tids, -1, 1));
	SHOW(pvm_mcast(tids, 0, 1));
	SHOW(pvm_pkint(v, -1, 1));
	SHOW(pvm_pkint(v, 0, 1));
	SHOW(pvm_nrecv(-1, -1));
	SHOW(pvm_probe(-1, -1));
	SHOW(pvm_kill(0));
	SHOW(pvm_kill(-1));
	SHOW(pvm_sendsig(0, 1));
	SHOW(pvm_pstat(0));
	SHOW(pvm_pstat(me));
	SHOW(pvm_pstat(me | 0x3fff));
	SHOW(pvm_mstat((char *)"no-such-host"));
	SHOW(pvm_notify(99, 1, 1, tids));
	SHOW(pvm_notify(PvmTaskExit, 1, -1, tids));
	SHOW(pvm_notify(PvmTaskExit, -1, 1, &me));
	SHOW(pvm_spawn((char *)"no-such-program", NULL, 0, NULL, 2, v));
	show("no file", v[0]);
	SHOW(pvm_spawn(self, NULL, 0, NULL, 0, v));
	SHOW(pvm_spawn(self, NULL, PvmTaskHost, (char *)"no-such-host", 1, v));
	show("no host", v[0]);
	SHOW(pvm_spawn(self, NULL, PvmTaskArch, (char *)"NOARCH", 1, v));
	show("no architecture", v[0]);
	SHOW(pvm_addhosts((char **)&self, 0, v));
	SHOW(pvm_tasks(5, NULL, NULL));
	SHOW(pvm_archcode((char *)"LINUX64"));
	SHOW(pvm_archcode((char *)"NOARCH"));
	SHOW(pvm_freecontext(-1));
	SHOW(pvm_freecontext(123456));
	SHOW(pvm_delmhf(-1));
	SHOW(pvm_delmhf(1000));
}

static void options(void)
{
	static const int all[] = {
		PvmRoute, PvmDebugMask, PvmAutoErr, PvmOutputTid, PvmOutputCode,
		PvmTraceTid, PvmTraceCode, PvmTraceBuffer, PvmTraceOptions, PvmResvTids,
		PvmSelfOutputTid, PvmSelfOutputCode, PvmSelfTraceTid, PvmSelfTraceCode,
		PvmSelfTraceBuffer, PvmSelfTraceOptions, PvmShowTids, PvmPollType,
		PvmPollTime, PvmOutputContext, PvmTraceContext, PvmSelfOutputContext,
		PvmSelfTraceContext, PvmNoReset,
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		printf("option %d: %d", all[i], pvm_getopt(all[i]));
		printf(" %d", pvm_setopt(all[i], pvm_getopt(all[i])));
		printf(" %d\n", all[i] == PvmAutoErr ? 0 : pvm_setopt(all[i], 2));
		pvm_setopt(all[i], 0);
	}
	SHOW(pvm_setopt(PvmOutputTid, pvm_mytid() + 1));
	SHOW(pvm_setopt(PvmOutputTid, 0));
	SHOW(pvm_setopt(PvmTraceTid, -5));
	SHOW(pvm_getopt(0));
	SHOW(pvm_getopt(99));
	SHOW(pvm_setopt(99, 1));
	SHOW(pvm_setopt(PvmRoute, 9));
	SHOW(pvm_setopt(PvmRoute, PvmRouteDirect));
	SHOW(pvm_setopt(PvmRoute, PvmDontRoute));
	SHOW(pvm_setopt(PvmRoute, PvmAllowDirect));
	SHOW(pvm_setopt(PvmFragSize, 8192));
	SHOW(pvm_getopt(PvmFragSize));
	SHOW(pvm_setopt(PvmFragSize, 1));
}

static int handler_runs;

static int handler(int mid)
{
	int n = -1, tag = -1;

	pvm_bufinfo(mid, &n, &tag, NULL);
	handler_runs += n == 4 && tag == 10;
	return 0;
}

static void tasks(void)
{
	int tids[3], me = pvm_mytid(), n, got, *all, values[4], id, old;
	struct pvmtaskinfo *info;
	struct timeval soon = { 0, 10000 };

	SHOW(pvm_parent());
	SHOW(spawn("echo", 2, tids));
	for (int i = 0; i < 2; i++) {
		pvm_initsend(PvmDataDefault);
		pvm_pkint(&i, 1, 1);
		SHOW(pvm_send(tids[i], 8));
		show("recv", pvm_recv(tids[i], 8) > 0);
		SHOW(pvm_upkint(&got, 1, 1));
		show("value", got);
		SHOW(pvm_pstat(tids[i]));
	}
	SHOW(pvm_tasks(tids[0], &n, &info));
	show("count", n);
	show("parent", info->ti_ptid == me);
	show("flag", info->ti_flag);
	show("host", info->ti_host == pvm_tidtohost(tids[0]));
	SHOW(pvm_tasks(0, &n, &info));
	SHOW(pvm_siblings(&all));
	SHOW(pvm_notify(PvmTaskExit, 50, 2, tids));
	SHOW(pvm_psend(tids[0], 9, values, 0, PVM_INT));
	SHOW(pvm_precv(tids[0], 9, values, 4, PVM_INT, &id, &n, &got));
	show("tag", n);
	show("length", got);
	values[0] = 5;
	SHOW(pvm_psend(tids[0], 9, values, 1, PVM_INT));
	values[0] = 0;
	SHOW(pvm_precv(-1, -1, values, 4, PVM_INT, &id, &n, &got));
	show("length", got);
	show("value", values[0]);
	SHOW(pvm_psend(tids[0], 9, values, 1, 99));
	SHOW(pvm_trecv(-1, 1234, &soon));
	id = pvm_addmhf(tids[0], 10, 0, handler);
	show("handler", id >= 0);
	SHOW(pvm_addmhf(tids[0], 10, 0, handler));
	pvm_initsend(PvmDataDefault);
	pvm_pkint(values, 1, 1);
	SHOW(pvm_send(tids[0], 10));
	SHOW(pvm_send(tids[0], 11));
	show("recv", pvm_recv(tids[0], 11) > 0);
	show("runs", handler_runs);
	SHOW(pvm_delmhf(id));
	SHOW(pvm_delmhf(id));
	pvm_initsend(PvmDataDefault);
	SHOW(pvm_send(tids[0], 99));
	show("exit", pvm_recv(-1, 50) > 0);
	SHOW(pvm_upkint(&got, 1, 1));
	show("first", got == tids[0]);
	SHOW(pvm_notify(PvmTaskExit | PvmNotifyCancel, 50, 1, tids + 1));
	show("cancelled", pvm_recv(-1, 50) > 0);
	SHOW(pvm_upkint(&got, 1, 1));
	show("second", got == tids[1]);
	SHOW(pvm_kill(tids[1]));
	while (pvm_pstat(tids[1]) == PvmOk)
		usleep(1000);
	SHOW(pvm_pstat(tids[1]));
	SHOW(pvm_notify(PvmTaskExit, 51, 1, tids + 1));
	show("at once", pvm_recv(-1, 51) > 0);
	SHOW(pvm_send(tids[1], 1));
	SHOW(spawn("signal", 1, tids));
	pvm_recv(tids[0], 1);
	SHOW(pvm_sendsig(tids[0], SIGUSR1));
	show("signal", pvm_recv(tids[0], 2) > 0);
	old = pvm_setcontext(pvm_newcontext());
	SHOW(pvm_setopt(PvmOutputTid, me));
	SHOW(pvm_getopt(PvmOutputTid));
	SHOW(pvm_setopt(PvmOutputCode, 66));
	show("context", pvm_getcontext() != old);
	SHOW(spawn("options", 1, tids));
	show("recv", pvm_recv(tids[0], 3) > 0);
	SHOW(pvm_upkint(values, 3, 1));
	printf("%d %d %d\n", values[0], values[1] == pvm_getcontext(), values[2]);
	SHOW(pvm_freecontext(pvm_setcontext(old)));
	pvm_setopt(PvmOutputTid, 0);
}

static void mailbox(void)
{
	struct pvmmboxinfo *box;
	int mid = pvm_initsend(PvmDataDefault), v = 42, n, got = 0;

	pvm_pkint(&v, 1, 1);
	SHOW(pvm_putinfo((char *)"a", mid, PvmMboxDefault));
	SHOW(pvm_putinfo((char *)"a", mid, PvmMboxDefault));
	SHOW(pvm_putinfo((char *)"b", mid, PvmMboxMultiInstance));
	SHOW(pvm_putinfo((char *)"b", mid, PvmMboxMultiInstance));
	SHOW(pvm_putinfo((char *)"b", mid, PvmMboxDefault));
	SHOW(pvm_putinfo((char *)"c", mid, PvmMboxOverWritable));
	SHOW(pvm_putinfo((char *)"c", mid, PvmMboxOverWritable));
	SHOW(pvm_putinfo((char *)"c", mid, PvmMboxMultiInstance));
	SHOW(pvm_putinfo((char *)"", mid, 0));
	show("found", pvm_recvinfo((char *)"a", 0, PvmMboxDefault) == pvm_getrbuf());
	SHOW(pvm_upkint(&got, 1, 1));
	show("value", got);
	SHOW(pvm_recvinfo((char *)"none", 0, PvmMboxDefault));
	SHOW(pvm_recvinfo((char *)"b", 7, PvmMboxDefault));
	SHOW(pvm_recvinfo((char *)"b", -1, PvmMboxDefault));
	SHOW(pvm_getmboxinfo((char *)"*", &n, &box));
	for (int i = 0; i < n; i++)
		if (strcmp(box[i].mi_name, "pvmgs"))
			printf("class %s: %d, flags %d\n", box[i].mi_name,
			       box[i].mi_nentries, box[i].mi_flags[0]);
	SHOW(pvm_delinfo((char *)"b", 0, 0));
	SHOW(pvm_delinfo((char *)"b", 0, 0));
	show("first", pvm_recvinfo((char *)"b", 0, PvmMboxFirstAvail) > 0);
	show("and delete", pvm_recvinfo((char *)"b", 1, PvmMboxReadAndDelete) > 0);
	SHOW(pvm_recvinfo((char *)"b", 1, 0));
	SHOW(pvm_delinfo((char *)"a", 0, 0));
	SHOW(pvm_delinfo((char *)"c", 0, 0));
	SHOW(pvm_insert((char *)"old", 3, 77));
	got = 0;
	SHOW(pvm_lookup((char *)"old", 3, &got));
	show("data", got);
	SHOW(pvm_delete((char *)"old", 3));
	SHOW(pvm_lookup((char *)"old", 3, &got));
}

static void groups(void)
{
	int me = pvm_mytid(), data[2] = { 3, -4 }, all[2] = { 0 };

	SHOW(pvm_gettid((char *)"none", 0));
	SHOW(pvm_getinst((char *)"none", me));
	SHOW(pvm_gsize((char *)"none"));
	SHOW(pvm_lvgroup((char *)"none"));
	SHOW(pvm_barrier((char *)"none", 1));
	SHOW(pvm_bcast((char *)"none", 1));
	SHOW(pvm_joingroup((char *)"g"));
	SHOW(pvm_joingroup((char *)"g"));
	SHOW(pvm_gettid((char *)"g", 0));
	SHOW(pvm_gettid((char *)"g", 5));
	SHOW(pvm_gettid((char *)"g", -1));
	SHOW(pvm_getinst((char *)"g", me));
	SHOW(pvm_getinst((char *)"g", me + 5));
	SHOW(pvm_getinst((char *)"g", 0));
	SHOW(pvm_gsize((char *)"g"));
	SHOW(pvm_gsize((char *)""));
	SHOW(pvm_gsize(NULL));
	SHOW(pvm_joingroup((char *)""));
	SHOW(pvm_joingroup(NULL));
	SHOW(pvm_barrier((char *)"g", 1));
	pvm_initsend(PvmDataDefault);
	SHOW(pvm_bcast((char *)"g", 1));
	SHOW(pvm_reduce(PvmSum, data, 2, PVM_INT, 5, (char *)"g", 0));
	SHOW(pvm_reduce(PvmSum, data, 2, PVM_INT, 5, (char *)"g", 7));
	SHOW(pvm_gather(all, data, 2, PVM_INT, 5, (char *)"g", 0));
	SHOW(all[1]);
	SHOW(pvm_scatter(data, all, 2, PVM_INT, 5, (char *)"g", 0));
	SHOW(pvm_freezegroup((char *)"g", 1));
	SHOW(pvm_freezegroup((char *)"g", 1));
	SHOW(pvm_gsize((char *)"g"));
	SHOW(pvm_gettid((char *)"g", 0));
	SHOW(pvm_lvgroup((char *)"g"));
	SHOW(pvm_freezegroup((char *)"none", 1));
}

static void machine(void)
{
	struct pvmhostinfo *hosts;
	struct timeval clock, delta;
	int n = 0, narch = 0, mid, inner, *fds;
	char mask[64];

	SHOW(pvm_config(&n, &narch, &hosts));
	printf("%d %d %s %d\n", n, narch, hosts[0].hi_arch, hosts[0].hi_speed);
	SHOW(pvm_mstat(hosts[0].hi_name));
	SHOW(pvm_hostsync(hosts[0].hi_tid, &clock, &delta));
	SHOW(pvm_config(NULL, NULL, NULL));
	SHOW(pvm_hostsync(0, &clock, &delta));
	show("near", labs((long)delta.tv_sec) < 5);
	printf("%s\n", pvm_version());
	show("descriptors", pvm_getfds(&fds) >= 1);
	SHOW(pvm_setrbuf(0) >= 0);
	inner = pvm_mkbuf(PvmDataDefault);
	pvm_setsbuf(inner);
	pvm_pkint(&n, 1, 1);
	mid = pvm_mkbuf(PvmDataDefault);
	pvm_setsbuf(mid);
	SHOW(pvm_pkmesg(inner));
	SHOW(pvm_pkmesgbody(inner));
	SHOW(pvm_pkmesg(100000));
	SHOW(pvm_pkmesg(-1));
	SHOW(pvm_send(pvm_mytid(), 6));
	pvm_recv(-1, 6);
	mid = pvm_upkmesg();
	show("inside", mid > 0);
	pvm_setrbuf(mid);
	SHOW(pvm_upkint(&n, 1, 1));
	show("value", n);
	SHOW(pvm_upkmesg());
	memset(mask, 0, sizeof(mask));
	SHOW(pvm_gettmask(9, mask));
	SHOW(pvm_settmask(9, mask));
	SHOW(pvm_gettmask(PvmTaskSelf, mask));
	SHOW(pvm_settmask(PvmTaskChild, mask));
	SHOW(pvm_export((char *)"PVM_TEST"));
	printf("%s\n", getenv("PVM_EXPORT"));
	SHOW(pvm_export((char *)"OTHER"));
	printf("%s\n", getenv("PVM_EXPORT"));
	SHOW(pvm_unexport((char *)"PVM_TEST"));
	printf("%s\n", getenv("PVM_EXPORT"));
	SHOW(pvm_catchout(stdout));
	SHOW(pvm_catchout(NULL));
	SHOW(pvm_start_pvmd(0, NULL, 1));
	SHOW(pvm_exit());
	SHOW(pvm_exit());
	show("again", pvm_mytid() > 0);
	SHOW(pvm_exit());
}

/* Print a call's error message, except its prefix "libpvm [t40001]", to standard output. */
static void errors(void)
{
	FILE *f = tmpfile();
	int old = dup(2), ret;
	char line[256] = "", *text;

	pvm_send(-1, 1);
	printf("%s\n", pvm_strerror());
	fflush(stderr);
	dup2(fileno(f), 2);
	ret = pvm_perror((char *)"a program");
	fflush(stderr);
	dup2(old, 2);
	close(old);
	rewind(f);
	text = fgets(line, sizeof(line), f) ? strchr(line, ']') : NULL;
	printf("pvm_perror: %d%s\n", ret, text ? text : " without a task id\n");
	fclose(f);
	printf("%s %s\n", pvmgetrsh(), pvmgettmp());
}

static void memory(void)
{
	char *p = pvm_alloc(8, (char *)"test");

	strcpy(p, "memory");
	p = pvm_realloc(p, 100000, (char *)"test");
	printf("%s\n", p);
	pvm_free(p);
}

/* A second registration by the same task removes the first one. */
static void registrations(void)
{
	int args[2] = { 0 }, results[16], n = 0, *tids;
	struct pvmhostinfo *host;

	SHOW(pvm_reg_hoster());
	SHOW(pvm_reg_hoster());
	SHOW(pvm_reg_tasker());
	SHOW(pvm_reg_tasker());
	SHOW(pvm_reg_rm(&host));
	printf("%s\n", host->hi_arch);
	SHOW(pvm_reg_rm(&host));
	SHOW(pvm_getnoresets(&tids, &n));
	show("noresets", n);
	SHOW(pvm_setopt(PvmNoReset, 1));
	SHOW(pvm_getnoresets(&tids, &n));
	show("noresets", n);
	SHOW(pvm_setopt(PvmNoReset, 0));
	SHOW(pvm_tickle(2, args, &n, results));
	show("numbers", n);
	SHOW(pvm_tickle(11, args, &n, results));
}

/* Halt the machine. */
static void end(void)
{
	signal(SIGTERM, SIG_IGN);
	show("there", pvm_mytid() > 0);
	SHOW(pvm_halt());
}

int main(int argc, char **argv)
{
	static void (*const parts[])(void) = {
		encodings, formats, buffers, hostile, tasks, mailbox, groups, options, errors,
		memory, registrations, machine, end,
	};

	setvbuf(stdout, NULL, _IONBF, 0);
	self = argv[0];
	pvm_setopt(PvmAutoErr, 0);
	if (argc > 1) {
		if (!strcmp(argv[1], "echo"))
			child_echo();
		else if (!strcmp(argv[1], "signal"))
			child_signal();
		else
			child_options();
		return pvm_exit();
	}
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		printf("-- part %zu\n", i);
		parts[i]();
	}
	return 0;
}
