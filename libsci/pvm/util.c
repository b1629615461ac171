// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Auxiliary calls that PVM's own programs use. */

#include "libsci/pvm/lib.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

PVM_API char *pvm_version(void)
{
	return (char *)PVM_VER;
}

PVM_API int pvmgetclock(struct timeval *tv);
PVM_API int pvmsleep(int seconds);
PVM_API int pvmputenv(char *s);
PVM_API int pvmstrtoi(char *s);
PVM_API char *pvmnametag(int tag, int *known);
PVM_API char *pvmgetroot(void);
PVM_API char *pvmgethome(void);
PVM_API int pvmsettaskname(char *name);

PVM_API int pvmgetclock(struct timeval *tv)
{
	return gettimeofday(tv, NULL);
}

PVM_API int pvmsleep(int seconds)
{
	return (int)sleep((unsigned int)seconds);
}

PVM_API int pvmputenv(char *s)
{
	return putenv(s);
}

/* Parse a number in C syntax. Return: 0 if @s is NULL or has no number. */
PVM_API int pvmstrtoi(char *s)
{
	return s ? (int)strtoul(s, NULL, 0) : 0;
}

/* Return the name of a tag of PVM's own programs; other tags: the number as a string. */
PVM_API char *pvmnametag(int tag, int *known)
{
	static const char *const names[] = {
		"SM_SPAWN", "SM_EXEC", "SM_EXECACK", "SM_TASK", "SM_CONFIG", "SM_ADDHOST",
		"SM_DELHOST", "SM_ADD", "SM_ADDACK", "SM_NOTIFY", "SM_TASKX", "SM_HOSTX",
		"SM_HANDOFF", "SM_SCHED", "SM_STHOST", "SM_STHOSTACK", "SM_STTASK",
	};
	static char name[16];
	bool found = tag >= SM_SPAWN && tag <= SM_STTASK;

	if (known)
		*known = found;
	if (found)
		return (char *)names[tag - SM_SPAWN];
	snprintf(name, sizeof(name), "%d", tag);
	return name;
}

PVM_API char *pvmgettmp(void)
{
	return (char *)pvm_env_or("PVM_TMP", "/tmp");
}

PVM_API char *pvmgetrsh(void)
{
	return (char *)pvm_env_or("PVM_RSH", "ssh");
}

PVM_API char *pvmgetroot(void)
{
	return (char *)pvm_env_or("PVM_ROOT", "/usr/lib/pvm3");
}

PVM_API char *pvmgethome(void)
{
	return (char *)pvm_env_or("HOME", "/");
}

PVM_API int pvmsettaskname(char *name)
{
	return name ? PvmOk : PvmBadParam;
}

/* PVM's allocator, which no header declares. @what: a name for reports; not used. */
PVM_API void *pvm_alloc(unsigned int size, char *what);
PVM_API void *pvm_realloc(void *p, unsigned int size, char *what);
PVM_API void pvm_free(void *p);

PVM_API void *pvm_alloc(unsigned int size, char *what)
{
	(void)what;
	return malloc(size);
}

PVM_API void *pvm_realloc(void *p, unsigned int size, char *what)
{
	(void)what;
	return realloc(p, size);
}

PVM_API void pvm_free(void *p)
{
	free(p);
}

/* Do nothing: PVM's console calls i_dump() to show PVM's allocator, which this library lacks. */
PVM_API void i_dump(int values);

PVM_API void i_dump(int values)
{
	(void)values;
}
