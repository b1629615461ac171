// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * PVM for Fortran, as gfortran calls it: names end in an underscore, arguments are
 * addresses, and the length of each character argument follows the last argument.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "libsci/include/sci-pvm/pvm3.h"

#define API	__attribute__((visibility("default")))

/* Return a C string of a Fortran string, without the blanks at its end. The caller frees it. */
static char *string_from_fortran(const char *s, size_t len)
{
	char *c;

	while (len && (s[len - 1] == ' ' || !s[len - 1]))
		len--;
	c = malloc(len + 1);
	if (!c)
		abort();
	memcpy(c, s, len);
	c[len] = 0;
	return c;
}

/* Copy a C string to a Fortran string, and fill up with blanks. */
static void string_to_fortran(const char *c, char *s, size_t len)
{
	size_t n = strlen(c ? c : "");

	n = n < len ? n : len;
	if (n)
		memcpy(s, c, n);
	memset(s + n, ' ', len - n);
}

/* Define a call with numbers only. The last argument receives the result. */
#define CALL0(name, call)	API void name(int *r); API void name(int *r) { *r = call(); }
#define CALL1(name, call)							\
	API void name(int *a, int *r);						\
	API void name(int *a, int *r) { *r = call(*a); }
#define CALL2(name, call)							\
	API void name(int *a, int *b, int *r);					\
	API void name(int *a, int *b, int *r) { *r = call(*a, *b); }

CALL0(pvmfmytid_, pvm_mytid)
CALL0(pvmfparent_, pvm_parent)
CALL0(pvmfexit_, pvm_exit)
CALL0(pvmfhalt_, pvm_halt)
CALL0(pvmfgetrbuf_, pvm_getrbuf)
CALL0(pvmfgetsbuf_, pvm_getsbuf)
CALL0(pvmfgetcontext_, pvm_getcontext)
CALL0(pvmfnewcontext_, pvm_newcontext)
CALL1(pvmffreebuf_, pvm_freebuf)
CALL1(pvmffreecontext_, pvm_freecontext)
CALL1(pvmfgetopt_, pvm_getopt)
CALL1(pvmfinitsend_, pvm_initsend)
CALL1(pvmfkill_, pvm_kill)
CALL1(pvmfmkbuf_, pvm_mkbuf)
CALL1(pvmfpstat_, pvm_pstat)
CALL1(pvmfsetcontext_, pvm_setcontext)
CALL1(pvmfsetrbuf_, pvm_setrbuf)
CALL1(pvmfsetsbuf_, pvm_setsbuf)
CALL1(pvmftidtohost_, pvm_tidtohost)
CALL1(pvmfdelmhf_, pvm_delmhf)
CALL1(pvmfpkmesg_, pvm_pkmesg)
CALL1(pvmfpkmesgbody_, pvm_pkmesgbody)
CALL0(pvmfupkmesg_, pvm_upkmesg)
CALL2(pvmfnrecv_, pvm_nrecv)
CALL2(pvmfprobe_, pvm_probe)
CALL2(pvmfrecv_, pvm_recv)
CALL2(pvmfsend_, pvm_send)
CALL2(pvmfsendsig_, pvm_sendsig)
CALL2(pvmfsetopt_, pvm_setopt)

/* Define a call with a name and up to two numbers. */
#define NAME0(name, call)							\
	API void name(const char *s, int *r, size_t len);			\
	API void name(const char *s, int *r, size_t len)			\
	{									\
		char *c = string_from_fortran(s, len);					\
										\
		*r = call(c);							\
		free(c);							\
	}
#define NAME1(name, call)							\
	API void name(const char *s, int *a, int *r, size_t len);		\
	API void name(const char *s, int *a, int *r, size_t len)		\
	{									\
		char *c = string_from_fortran(s, len);					\
										\
		*r = call(c, *a);						\
		free(c);							\
	}
#define NAME2(name, call)							\
	API void name(const char *s, int *a, int *b, int *r, size_t len);	\
	API void name(const char *s, int *a, int *b, int *r, size_t len)	\
	{									\
		char *c = string_from_fortran(s, len);					\
										\
		*r = call(c, *a, *b);						\
		free(c);							\
	}

static int host_add(char *name)
{
	int result, ret = pvm_addhosts(&name, 1, &result);

	return ret < 0 ? ret : result;
}

static int host_delete(char *name)
{
	int result, ret = pvm_delhosts(&name, 1, &result);

	return ret < 0 ? ret : result;
}

NAME0(pvmfaddhost_, host_add)
NAME0(pvmfdelhost_, host_delete)
NAME0(pvmfarchcode_, pvm_archcode)
NAME0(pvmfgsize_, pvm_gsize)
NAME0(pvmfjoingroup_, pvm_joingroup)
NAME0(pvmflvgroup_, pvm_lvgroup)
NAME0(pvmfmstat_, pvm_mstat)
NAME1(pvmfbarrier_, pvm_barrier)
NAME1(pvmfbcast_, pvm_bcast)
NAME1(pvmffreezegroup_, pvm_freezegroup)
NAME1(pvmfgetinst_, pvm_getinst)
NAME1(pvmfgettid_, pvm_gettid)
NAME2(pvmfdelinfo_, pvm_delinfo)
NAME2(pvmfputinfo_, pvm_putinfo)
NAME2(pvmfrecvinfo_, pvm_recvinfo)

/* Print an error message. The text @s keeps the blanks at its end. */
API void pvmfperror_(const char *s, int *info, size_t len);
API void pvmfperror_(const char *s, int *info, size_t len)
{
	char *c = strndup(s, len);

	*info = c ? pvm_perror(c) : PvmNoMem;
	free(c);
}

API void pvmfcatchout_(int *on, int *info);
API void pvmfcatchout_(int *on, int *info)
{
	*info = pvm_catchout(*on ? stdout : NULL);
}

API void pvmfbufinfo_(int *mid, int *bytes, int *tag, int *tid, int *info);
API void pvmfbufinfo_(int *mid, int *bytes, int *tag, int *tid, int *info)
{
	*info = pvm_bufinfo(*mid, bytes, tag, tid);
}

API void pvmfmcast_(int *n, int *tids, int *tag, int *info);
API void pvmfmcast_(int *n, int *tids, int *tag, int *info)
{
	*info = pvm_mcast(tids, *n, *tag);
}

API void pvmfnotify_(int *what, int *tag, int *n, int *tids, int *info);
API void pvmfnotify_(int *what, int *tag, int *n, int *tids, int *info)
{
	*info = pvm_notify(*what, *tag, *n, tids);
}

API void pvmftrecv_(int *tid, int *tag, int *sec, int *usec, int *mid);
API void pvmftrecv_(int *tid, int *tag, int *sec, int *usec, int *mid)
{
	struct timeval tv = { *sec, *usec };

	*mid = pvm_trecv(*tid, *tag, *sec < 0 ? NULL : &tv);
}

API void pvmfpsend_(int *tid, int *tag, void *data, int *n, int *type, int *info);
API void pvmfpsend_(int *tid, int *tag, void *data, int *n, int *type, int *info)
{
	*info = pvm_psend(*tid, *tag, data, *n, *type);
}

API void pvmfprecv_(int *tid, int *tag, void *data, int *n, int *type, int *rtid,
		    int *rtag, int *rlen, int *info);
API void pvmfprecv_(int *tid, int *tag, void *data, int *n, int *type, int *rtid,
		    int *rtag, int *rlen, int *info)
{
	*info = pvm_precv(*tid, *tag, data, *n, *type, rtid, rtag, rlen);
}

API void pvmfhostsync_(int *host, int *sec, int *usec, int *dsec, int *dusec, int *info);
API void pvmfhostsync_(int *host, int *sec, int *usec, int *dsec, int *dusec, int *info)
{
	struct timeval clock = { 0, 0 }, delta = { 0, 0 };

	*info = pvm_hostsync(*host, &clock, &delta);
	*sec = (int)clock.tv_sec;
	*usec = (int)clock.tv_usec;
	*dsec = (int)delta.tv_sec;
	*dusec = (int)delta.tv_usec;
}

/* Start a daemon. @args: one argument of the daemon, or blanks. */
API void pvmfstartpvmd_(const char *args, int *block, int *info, size_t len);
API void pvmfstartpvmd_(const char *args, int *block, int *info, size_t len)
{
	char *arg = string_from_fortran(args, len);

	*info = pvm_start_pvmd(*arg ? 1 : 0, &arg, *block);
	free(arg);
}

API void pvmfsleep_(int *seconds);
API void pvmfsleep_(int *seconds)
{
	sleep((unsigned int)*seconds);
}

/*
 * Get the number of siblings, and sibling @i, from 0, in @tid, which is unchanged if there is none.
 */
API void pvmfsiblings_(int *n, int *i, int *tid);
API void pvmfsiblings_(int *n, int *i, int *tid)
{
	int *tids;

	*n = pvm_siblings(&tids);
	if (*i >= 0 && *i < *n)
		*tid = tids[*i];
}

API void pvmfspawn_(const char *task, int *flag, const char *where, int *n, int *tids,
		    int *numt, size_t tlen, size_t wlen);
API void pvmfspawn_(const char *task, int *flag, const char *where, int *n, int *tids,
		    int *numt, size_t tlen, size_t wlen)
{
	char *file = string_from_fortran(task, tlen), *host = string_from_fortran(where, wlen);

	*numt = pvm_spawn(file, NULL, *flag, !strcmp(host, "*") ? NULL : host, *n, tids);
	free(file);
	free(host);
}

/*
 * ---- tables ----
 *
 * Each call returns the next host or task, and 1 in @info. After the last entry, or if the number
 * of entries is -1 on entry, the call returns the first entry.
 */

API void pvmfconfig_(int *nhost, int *narch, int *dtid, char *name, char *arch, int *speed,
		     int *info, size_t nlen, size_t alen);
API void pvmfconfig_(int *nhost, int *narch, int *dtid, char *name, char *arch, int *speed,
		     int *info, size_t nlen, size_t alen)
{
	static struct pvmhostinfo *hosts;
	static int next, count, archs;

	if (*nhost == -1)
		next = 0;
	*info = next ? PvmOk : pvm_config(&count, &archs, &hosts);
	if (*info < 0)
		return;
	*info = 1;
	*nhost = count;
	*narch = archs;
	*dtid = hosts[next].hi_tid;
	*speed = hosts[next].hi_speed;
	string_to_fortran(hosts[next].hi_name, name, nlen);
	string_to_fortran(hosts[next].hi_arch, arch, alen);
	next = (next + 1) % count;
}

API void pvmftasks_(int *where, int *ntask, int *tid, int *ptid, int *dtid, int *flag,
		    char *name, int *info, size_t len);
API void pvmftasks_(int *where, int *ntask, int *tid, int *ptid, int *dtid, int *flag,
		    char *name, int *info, size_t len)
{
	static struct pvmtaskinfo *tasks;
	static int next, count;

	if (*ntask == -1)
		next = 0;
	*info = next ? PvmOk : pvm_tasks(*where, &count, &tasks);
	*ntask = count;
	if (*info < 0 || !count)
		return;
	*info = 1;
	*tid = tasks[next].ti_tid;
	*ptid = tasks[next].ti_ptid;
	*dtid = tasks[next].ti_host;
	*flag = tasks[next].ti_flag;
	string_to_fortran(tasks[next].ti_a_out, name, len);
	next = (next + 1) % count;
}

/* Get the next class of the mail box. A @nclasses of -1 on entry gets the first class. */
API void pvmfgetmboxinfo_(const char *pattern, char *name, int *nclasses, int *nentries,
			  int *indices, int *owners, int *flags, int *info, size_t plen,
			  size_t nlen);
API void pvmfgetmboxinfo_(const char *pattern, char *name, int *nclasses, int *nentries,
			  int *indices, int *owners, int *flags, int *info, size_t plen,
			  size_t nlen)
{
	static struct pvmmboxinfo *classes;
	static int next, count;
	char *p = string_from_fortran(pattern, plen);

	*info = PvmOk;
	if (!next || *nclasses == -1) {
		next = 0;
		*info = pvm_getmboxinfo(p, &count, &classes);
	}
	free(p);
	*nclasses = count;
	if (*info < 0 || !count)
		return;
	string_to_fortran(classes[next].mi_name, name, nlen);
	*nentries = classes[next].mi_nentries;
	for (int i = 0; i < *nentries; i++) {
		indices[i] = classes[next].mi_indices[i];
		owners[i] = classes[next].mi_owners[i];
		flags[i] = classes[next].mi_flags[i];
	}
	next = (next + 1) % count;
}

/* Set a message handler. @unused: an argument of PVM's interface that no library reads. */
API void pvmfaddmhf_(int *src, int *tag, int *ctx, int *unused, int (*func)(int), int *info);
API void pvmfaddmhf_(int *src, int *tag, int *ctx, int *unused, int (*func)(int), int *info)
{
	(void)unused;
	*info = pvm_addmhf(*src, *tag, *ctx, func);
}

/* ---- data ---- */

API void pvmfpack_(int *type, void *items, int *n, int *stride, int *info);
API void pvmfpack_(int *type, void *items, int *n, int *stride, int *info)
{
	switch (*type) {
	/* a string is @n characters, with blanks and without a final zero */
	case PVM_STR:
	case PVM_BYTE: *info = pvm_pkbyte(items, *n, *stride); break;
	case PVM_SHORT: *info = pvm_pkshort(items, *n, *stride); break;
	case PVM_INT: *info = pvm_pkint(items, *n, *stride); break;
	case PVM_FLOAT: *info = pvm_pkfloat(items, *n, *stride); break;
	case PVM_CPLX: *info = pvm_pkcplx(items, *n, *stride); break;
	case PVM_DOUBLE: *info = pvm_pkdouble(items, *n, *stride); break;
	case PVM_DCPLX: *info = pvm_pkdcplx(items, *n, *stride); break;
	case PVM_LONG: *info = pvm_pklong(items, *n, *stride); break;
	default: *info = PvmBadParam; break;
	}
}

API void pvmfunpack_(int *type, void *items, int *n, int *stride, int *info);
API void pvmfunpack_(int *type, void *items, int *n, int *stride, int *info)
{
	switch (*type) {
	case PVM_STR:
	case PVM_BYTE: *info = pvm_upkbyte(items, *n, *stride); break;
	case PVM_SHORT: *info = pvm_upkshort(items, *n, *stride); break;
	case PVM_INT: *info = pvm_upkint(items, *n, *stride); break;
	case PVM_FLOAT: *info = pvm_upkfloat(items, *n, *stride); break;
	case PVM_CPLX: *info = pvm_upkcplx(items, *n, *stride); break;
	case PVM_DOUBLE: *info = pvm_upkdouble(items, *n, *stride); break;
	case PVM_DCPLX: *info = pvm_upkdcplx(items, *n, *stride); break;
	case PVM_LONG: *info = pvm_upklong(items, *n, *stride); break;
	default: *info = PvmBadParam; break;
	}
}

/* ---- groups ---- */

#define COLLECTIVE(name, call)							\
	API void name(void *r, void *data, int *n, int *type, int *tag, const char *g,	\
		      int *root, int *info, size_t len);			\
	API void name(void *r, void *data, int *n, int *type, int *tag, const char *g,	\
		      int *root, int *info, size_t len)				\
	{									\
		char *group = string_from_fortran(g, len);					\
										\
		*info = call(r, data, *n, *type, *tag, group, *root);		\
		free(group);							\
	}

COLLECTIVE(pvmfgather_, pvm_gather)
COLLECTIVE(pvmfscatter_, pvm_scatter)

typedef void operator_fn(int *type, void *x, void *y, int *n, int *info);

API void pvmfreduce_(operator_fn *func, void *data, int *n, int *type, int *tag,
		     const char *g, int *root, int *info, size_t len);
API void pvmfreduce_(operator_fn *func, void *data, int *n, int *type, int *tag,
		     const char *g, int *root, int *info, size_t len)
{
	char *group = string_from_fortran(g, len);

	*info = pvm_reduce(func, data, *n, *type, *tag, group, *root);
	free(group);
}

#define OPERATOR(name, call)							\
	API operator_fn name;							\
	API void name(int *type, void *x, void *y, int *n, int *info)		\
	{									\
		call(type, x, y, n, info);					\
	}

OPERATOR(pvmmax_, PvmMax)
OPERATOR(pvmmin_, PvmMin)
OPERATOR(pvmsum_, PvmSum)
OPERATOR(pvmproduct_, PvmProduct)
