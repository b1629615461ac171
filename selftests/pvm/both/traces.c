// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Prints the trace of a task that makes calls of all kinds: the fields of each event, and the
 * values that are the same in each run. scripts/check-pvm runs the program under Debian's PVM
 * and under ours, and compares.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "selftests/pvm/events.h"

#define TRACE_TAG	666

/* Types of fields. */
enum { T_BYTE = 1, T_CPLX, T_DCPLX, T_DOUBLE, T_FLOAT, T_INT, T_UINT, T_LONG, T_ULONG,
	T_SHORT, T_USHORT, T_STRING, T_ARRAY = 0x80 };

#define FIELDS	20

/* The fields of an event, from its descriptor. */
static struct {
	char name[32];
	int n;
	int type[FIELDS];
	char did[FIELDS][8];
} known[2][EVENTS];
static char ids[256][8];

/* Return whether the value of field @did is the same in each run. */
static int same_value(const char *did)
{
	static const char *const change[] = { "TS", "TU", "TID", "SRC", "DST", "STL", "PT", "TT",
		"HPT", "SPT", "CC", "MB", "IMC", "INB", "PDA", "TST", "TUS", "TUU", "TSS", "TSU",
		"HDS", "HDU", "HCS", "HCU", "SW", "RST", "AN", "SIB", "FDS", "NTL", "MRB", "MSB",
		"TN", "SE", "TES", "CD", "CR", "MHI", "CXN", "CXF", "MT", "TW",
		"MDL", "SW", "IST" };

	for (unsigned int i = 0; i < sizeof(change) / sizeof(change[0]); i++)
		if (!strcmp(did, change[i]))
			return 0;
	return 1;
}

/* Read a value. Return: 0 if its type is unknown. */
static int value_read(int type, int show)
{
	static double room[512];
	char *s = (char *)room;
	void *any = room;
	int n = type & T_ARRAY ? unpack_int() : 1, v;
	double d;
	float f;
	short h;
	long l;

	for (int i = 0; i < n; i++) {
		switch (type & ~T_ARRAY) {
		case T_BYTE: pvm_upkbyte(s, 1, 1); break;
		case T_CPLX: pvm_upkcplx(any, 1, 1); break;
		case T_DCPLX: pvm_upkdcplx(any, 1, 1); break;
		case T_DOUBLE: pvm_upkdouble(&d, 1, 1); break;
		case T_FLOAT: pvm_upkfloat(&f, 1, 1); break;
		case T_INT: case T_UINT:
			v = unpack_int();
			if (show)
				printf("=%d", v);
			break;
		case T_LONG: case T_ULONG: pvm_upklong(&l, 1, 1); break;
		case T_SHORT: case T_USHORT: pvm_upkshort(&h, 1, 1); break;
		case T_STRING:
			*s = 0;
			pvm_upkstr(s);
			if (show)
				printf("=%s", s);
			break;
		default:
			printf("type %d?\n", type);
			return 0;
		}
	}
	return 1;
}

static int event_read(int described)
{
	int id = unpack_int(), end = id & EXIT ? 1 : 0, kind = id & ~(ENTRY | EXIT), i = 0, did;

	if (kind < 0 || kind >= EVENTS)
		return 0;
	if (!described) {
		pvm_upkstr(known[end][kind].name);
		known[end][kind].n = 0;
	}
	printf("%s %s:", id & ENTRY ? "entry" : id & EXIT ? "exit" : "event",
	       known[end][kind].name);
	if (!described) {
		while ((did = unpack_int()) != DESC_END && did >= 0 && did < 256 && i < FIELDS) {
			known[end][kind].type[i] = unpack_int();
			strcpy(known[end][kind].did[i], ids[did]);
			printf(" %s", ids[did]);
			if (!value_read(known[end][kind].type[i], same_value(ids[did])))
				return 0;
			known[end][kind].n = ++i;
		}
	} else {
		for (i = 0; i < known[end][kind].n; i++) {
			printf(" %s", known[end][kind].did[i]);
			if (!value_read(known[end][kind].type[i],
					same_value(known[end][kind].did[i])))
				return 0;
		}
		if (unpack_int() != RECORD_END)
			printf(" no end");
	}
	printf("\n");
	return !strcmp(known[end][kind].name, "endtask") ? 2 : 1;
}

/* Return: 1 when the task has ended. */
static int message_read(void)
{
	char s[256];
	int mark, ret = 1, n, ended = 0;

	while (ret && pvm_upkint(&mark, 1, 1) == 0) {
		if (mark == IDS) {
			while ((n = unpack_int()) != IDS_END && n >= 0 && n < 256) {
				pvm_upkstr(ids[n]);
				pvm_upkstr(s);
			}
		} else if (mark == DESC || mark == RECORD) {
			ret = event_read(mark == RECORD);
			ended |= ret == 2;
		} else if (mark != BUFFER && mark != BUFFER_END) {
			printf("mark %d?\n", mark);
			break;
		}
	}
	return ended;
}

static int handler(int mid)
{
	return mid;
}

static void calls(void)
{
	char bytes[4] = "abc", mask[MASK_SIZE], str[] = "text", group[] = "g";
	int me = pvm_mytid(), parent = pvm_parent(), v[3] = { 1, 2, 3 }, w[3];
	int mid, n, tag, tid, *list;
	struct timeval tv = { 0, 1000 };
	struct pvmhostinfo *h;
	struct pvmtaskinfo *t;
	struct pvmminfo info;
	double d = 1;
	float f = 1;
	short s = 1;
	long l = 1;
	unsigned int ui = 1;
	unsigned short us = 1;
	unsigned long ul = 1;
	float z[2] = { 1, 2 };
	double dz[2] = { 1, 2 };
	struct pvmmboxinfo *box;
	char *args[] = { (char *)"one", NULL }, *names[] = { (char *)"bad host" };
	int tids[2];

	/* the first time, events are descriptors; the second time, records */
	for (int i = 0; i < 2; i++) {
		pvm_initsend(PvmDataDefault);
		pvm_pkint(v, 3, 1);
		pvm_pkbyte(bytes, 3, 1);
		pvm_pkdouble(&d, 1, 1);
		pvm_pkfloat(&f, 1, 1);
		pvm_pkshort(&s, 1, 1);
		pvm_pklong(&l, 1, 1);
		pvm_pkuint(&ui, 1, 1);
		pvm_pkstr(str);
		pvm_packf("%d", 4);
		pvm_send(me, 7);
	}
	pvm_probe(me, 7);
	pvm_recv(me, 7);
	pvm_bufinfo(pvm_getrbuf(), &n, &tag, &tid);
	pvm_upkint(v, 3, 1);
	pvm_upkbyte(bytes, 3, 1);
	pvm_upkdouble(&d, 1, 1);
	pvm_upkfloat(&f, 1, 1);
	pvm_upkshort(&s, 1, 1);
	pvm_upklong(&l, 1, 1);
	pvm_upkuint(&ui, 1, 1);
	pvm_upkstr(str);
	pvm_unpackf("%d", v);
	while (pvm_probe(me, 7) <= 0)
		;
	pvm_nrecv(me, 7);
	pvm_upkint(v, 1, 1);
	pvm_nrecv(me, 8);
	pvm_trecv(me, 7, &tv);
	pvm_psend(me, 9, v, 3, PVM_INT);
	pvm_precv(me, 9, v, 3, PVM_INT, &tid, &tag, &n);
	mid = pvm_mkbuf(PvmDataRaw);
	n = pvm_setsbuf(mid);
	pvm_getsbuf();
	pvm_setsbuf(n);
	pvm_getminfo(mid, &info);
	pvm_setminfo(mid, &info);
	pvm_freebuf(mid);
	pvm_setrbuf(pvm_getrbuf());
	pvm_config(&n, &tag, &h);
	pvm_mstat(h->hi_name);
	pvm_archcode((char *)"none");
	pvm_tasks(parent, &n, &t);
	pvm_pstat(parent);
	pvm_tidtohost(me);
	pvm_notify(PvmTaskExit, 5, 1, &parent);
	pvm_sendsig(parent, 0);
	pvm_getopt(PvmAutoErr);
	pvm_setopt(PvmAutoErr, 0);
	pvm_gettmask(PvmTaskChild, mask);
	pvm_settmask(PvmTaskChild, mask);
	pvm_newcontext();
	pvm_setcontext(pvm_getcontext());
	pvm_initsend(PvmDataDefault);
	pvm_putinfo((char *)"entry", pvm_getsbuf(), PvmMboxDefault);
	pvm_recvinfo((char *)"entry", 0, PvmMboxDefault);
	pvm_delinfo((char *)"entry", 0, PvmMboxDefault);
	pvm_siblings(&list);
	pvm_mcast(&parent, 1, 10);
	pvm_spawn((char *)"no-such-program", args, PvmTaskDefault, NULL, 2, tids);
	pvm_addhosts(names, 1, tids);
	pvm_delhosts(names, 1, tids);
	pvm_kill(parent + 1000);
	pvm_getmboxinfo((char *)"none", &n, &box);
	pvm_freecontext(pvm_newcontext());
	pvm_delmhf(pvm_addmhf(-1, 77, -1, handler));
	pvm_getfds(&list);
	pvm_pkcplx(z, 1, 1);
	pvm_pkdcplx(dz, 1, 1);
	pvm_pkushort(&us, 1, 1);
	pvm_pkulong(&ul, 1, 1);
	pvm_reg_tasker();
	pvm_reg_tasker();
	pvm_recvf(pvm_recvf(NULL));
	for (int i = 0; i < 2; i++) {
		pvm_joingroup(group);
		pvm_gsize(group);
		pvm_getinst(group, me);
		pvm_gettid(group, 0);
		pvm_gettid(group, 7);
		pvm_barrier(group, 1);
		pvm_bcast(group, 11);
		pvm_reduce(PvmSum, v, 1, PVM_INT, 12, group, 0);
		pvm_gather(w, v, 3, PVM_INT, 13, group, 0);
		pvm_scatter(w, v, 3, PVM_INT, 14, group, 0);
		pvm_lvgroup(group);
	}
	pvm_exit();
}

int main(int argc, char **argv)
{
	char path[4096], *args[] = { (char *)"child", NULL }, mask[MASK_SIZE];
	struct timeval wait = { 5, 0 };
	int tid;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (argc > 1) {
		calls();
		return 0;
	}
	(void)argv;
	path[n > 0 ? n : 0] = 0;
	pvm_mytid();
	pvm_setopt(PvmAutoErr, 0);
	pvm_setopt(PvmTraceTid, pvm_mytid());
	pvm_setopt(PvmTraceCode, TRACE_TAG);
	pvm_setopt(PvmTraceOptions, PvmTraceFull);
	mask_make_full(mask);
	pvm_settmask(PvmTaskChild, mask);
	if (pvm_spawn(path, args, PvmTaskTrace, NULL, 1, &tid) != 1)
		return 1;
	while (pvm_trecv(-1, TRACE_TAG, &wait) > 0)
		if (message_read())
			break;
	pvm_exit();
	return 0;
}
