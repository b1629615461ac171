// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Error codes, their texts, and reports of them. */

#include "libsci/pvm/lib.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <unistd.h>

PVM_API int pvm_errno;
PVM_API int pvmautoerr = 1;

/* The texts of errors are PVM's, because programs print them. */
#define ERRORS		37
PVM_API char *pvm_errlist[ERRORS] = {
	(char *)"Error 0",
	(char *)"Error 1",
	[-PvmBadParam] = (char *)"Bad parameter",
	[-PvmMismatch] = (char *)"Parameter mismatch",
	[-PvmOverflow] = (char *)"Value too large",
	[-PvmNoData] = (char *)"End of buffer",
	[-PvmNoHost] = (char *)"No such host",
	[-PvmNoFile] = (char *)"No such file",
	[-PvmDenied] = (char *)"Permission denied",
	[9] = (char *)"Error 9",
	[-PvmNoMem] = (char *)"Malloc failed",
	[11] = (char *)"Error 11",
	[-PvmBadMsg] = (char *)"Can't decode message",
	[13] = (char *)"Error 13",
	[-PvmSysErr] = (char *)"Can't contact local daemon",
	[-PvmNoBuf] = (char *)"No current buffer",
	[-PvmNoSuchBuf] = (char *)"No such buffer",
	[-PvmNullGroup] = (char *)"Null group name",
	[-PvmDupGroup] = (char *)"Already in group",
	[-PvmNoGroup] = (char *)"No such group",
	[-PvmNotInGroup] = (char *)"Not in group",
	[-PvmNoInst] = (char *)"No such instance",
	[-PvmHostFail] = (char *)"Host failed",
	[-PvmNoParent] = (char *)"No parent task",
	[-PvmNotImpl] = (char *)"Not implemented",
	[-PvmDSysErr] = (char *)"Pvmd system error",
	[-PvmBadVersion] = (char *)"Version mismatch",
	[-PvmOutOfRes] = (char *)"Out of resources",
	[-PvmDupHost] = (char *)"Duplicate host",
	[-PvmCantStart] = (char *)"Can't start pvmd",
	[-PvmAlready] = (char *)"Already in progress",
	[-PvmNoTask] = (char *)"No such task",
	[-PvmNotFound] = (char *)"Not Found",
	[-PvmExists] = (char *)"Already Exists",
	[-PvmHostrNMstr] = (char *)"Hoster must run on master host",
	[-PvmParentNotSet] = (char *)"Spawning parent set PvmNoParent",
	[-PvmIPLoopback] = (char *)"Master Host IP Address is Loopback! (See pvm3/Readme)",
};

PVM_API int pvm_nerr = ERRORS;

PVM_API int vpvmlogprintf(const char *fmt, va_list ap)
	__attribute__((format(printf, 1, 0)));
PVM_API int pvmlogprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
PVM_API int pvmlogerror(const char *s);
PVM_API int pvmlogperror(const char *s);

PVM_API int vpvmlogprintf(const char *fmt, va_list ap)
{
	int n;

	if (pvmmytid != -1)
		n = fprintf(stderr, "libpvm [t%x]: ", (unsigned int)pvmmytid);
	else
		n = fprintf(stderr, "libpvm [pid%d]: ", (int)getpid());
	return n + vfprintf(stderr, fmt, ap);
}

PVM_API int pvmlogprintf(const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vpvmlogprintf(fmt, ap);
	va_end(ap);
	return n;
}

PVM_API int pvmlogerror(const char *s)
{
	return pvmlogprintf("%s", s);
}

PVM_API int pvmlogperror(const char *s)
{
	return pvmlogprintf("%s: %s\n", s, strerror(errno));
}

static const char *error_text(int code)
{
	return code <= 0 && code > -ERRORS ? pvm_errlist[-code] : "Unknown error";
}

int lpvmerr(const char *call, int code)
{
	pvm_errno = code;
	if (code >= 0 || !pvmautoerr)
		return code;
	pvmlogprintf("%s(): %s\n", call, error_text(code));
	if (pvmautoerr == 2)
		exit(1);
	if (pvmautoerr == 3)
		abort();
	return code;
}

PVM_API int pvm_perror(char *s)
{
	pvmlogprintf("%s: %s\n", s ? s : "(null)", error_text(pvm_errno));
	return 0;
}

PVM_API char *pvm_strerror(void)
{
	return (char *)error_text(pvm_errno);
}

PVM_API void pvmbailout(int sig);

PVM_API void pvmbailout(int sig)
{
	(void)sig;
}
