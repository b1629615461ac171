// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Traces. Masks are kept, so that the console can show and set them; events are not
 * recorded. The tables have the sizes that PVM's programs were compiled with.
 */

#include "libsci/pvm/lib.h"

#include <string.h>

#define MASK_SIZE	36	/* of a mask, with its zero */

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

/* What the console calls the events, by their numbers. */
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

/* The names of fields in records. */
PVM_API struct data_id pvmtevdidlist[] = {
	D("AN"), D("AC"), D("AS"), D("BF"), D("CC"), D("CN"), D("CI"), D("CF"), D("CD"),
	D("CR"), D("CL"), D("CDA"), D("CDT"), D("CDX"), D("CDC"), D("CGI"), D("CRF"),
	D("CXC"), D("CXF"), D("CXN"), D("CXS"), D("ERI"), D("ERR"), D("FDS"), D("FP"),
	D("GN"), D("GI"), D("GT"), D("GS"), D("GBC"), D("HN"), D("HNL"), D("HNA"),
	D("HPT"), D("HA"), D("HSP"), D("HIS"), D("HCS"), D("HCU"), D("HDS"), D("HDU"),
	D("HS"), D("INB"), D("IMC"), D("IST"), D("MC"), D("MCX"), D("MB"), D("MNB"),
	D("SRC"), D("DST"), D("MDL"), D("MTS"), D("MTU"), D("MRF"), D("MRB"), D("MSB"),
	D("ME"), D("MHI"), D("AST"), D("AMC"), D("AML"), D("NE"), D("NMC"), D("NCT"),
	D("NTL"), D("NH"), D("NA"), D("OPT"), D("OPV"), D("OS"), D("PDA"), D("PDT"),
	D("PC"), D("PSD"), D("PSG"), D("PF"), D("PRF"), D("RST"), D("RMC"), D("RCX"),
	D("SN"), D("SE"), D("SF"), D("SW"), D("SC"), D("STL"), D("SIB"), D("TID"),
	D("PT"), D("MT"), D("TF"), D("TN"), D("PID"), D("TT"), D("TW"), D("TIS"),
	D("TNT"), D("TST"), D("TUS"), D("TUU"), D("TSS"), D("TSU"), D("TES"), D("TA"),
	D("TR"), D("TS"), D("TU"), D("TGS"), D("TGU"), D("TMW"), D("TM"), D("TRC"),
	D("TRT"), D("TRX"), D("TRO"), D("TRM"), D("TRB"), D("TRL"), D("VER"), D("VCT"),
	D("VID"), D("WID"),
};

/* The tracers of this task and of its children: there are none. */
PVM_API int pvmctrc[17];
PVM_API int pvmtrc[17];
PVM_API void *pvmtrccodef;

static char masks[2][MASK_SIZE];

PVM_API int pvm_settmask(int who, char *mask);
PVM_API int pvm_gettmask(int who, char *mask);

PVM_API int pvm_settmask(int who, char *mask)
{
	if ((who != PvmTaskSelf && who != PvmTaskChild) || !mask)
		return lpvmerr("pvm_settmask", PvmBadParam);
	snprintf(masks[who], sizeof(masks[who]), "%s", mask);
	return PvmOk;
}

PVM_API int pvm_gettmask(int who, char *mask)
{
	if ((who != PvmTaskSelf && who != PvmTaskChild) || !mask)
		return lpvmerr("pvm_gettmask", PvmBadParam);
	memcpy(mask, masks[who], sizeof(masks[who]));
	return PvmOk;
}
