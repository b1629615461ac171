// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Start and end, error messages, and queries about PEs. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsci/shmem/internal.h"

#define PAGE		4096u			/* the page size, or a divisor of it */
#define HEAP_SIZE	((uint64_t)64 << 20)	/* default of SHMEM_SYMMETRIC_SIZE, in bytes */

static const struct sci_team_view nothing;

struct shmem shmem = { .view = &nothing, .data = &nothing, .my_pe = -1 };

/* ---- errors ---- */

void shmem_die(const char *call, const char *fmt, ...)
{
	char what[400], who[24] = "";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (shmem.my_pe >= 0)
		snprintf(who, sizeof(who), "PE %d: ", shmem.my_pe);
	/* a single write: several PEs may report errors at the same time */
	fprintf(stderr, "shmem: %s%s: %s\n", who, call, what);
	shmem_global_exit(1);
	abort();
}

void shmem_die_of(const char *call, int error)
{
	char buf[64];

	shmem_running(call);
	shmem_die(call, error == -ECONNRESET ? "a PE has died (%s)" : "%s",
		  strerror_r(-error, buf, sizeof(buf)));
}

/* Report that an address is not symmetric, and why. */
static __attribute__((noreturn))
void die_of_address(const char *call, const void *addr, size_t len, size_t at)
{
	if (at)
		shmem_die(call, "of %zu bytes at %p only the first %zu are symmetric", len,
			  addr, at);
	shmem_die(call, "address %p is not symmetric: neither from shmem_malloc() "
		  "nor a static variable of the program", addr);
}

void symmetric_check_slow(const char *call, const void *addr, size_t len)
{
	const char *p = addr;
	size_t left, at;

	shmem_running(call);
	if (!sci_team_ptr(shmem.team, addr, shmem.my_pe))
		die_of_address(call, addr, len, 0);
	/* symmetric memory consists of whole pages */
	at = PAGE - ((uintptr_t)p & (PAGE - 1));
	while (at < len && sci_team_ptr(shmem.team, p + at, shmem.my_pe))
		at += PAGE;
	if (at < len)
		die_of_address(call, addr, len, at);
	if (data_holds(addr))
		return;
	left = memory_left(addr);
	if (!left)
		shmem_die(call, "address %p lies in the symmetric heap, but is not allocated",
			  addr);
	if (len > left)
		shmem_die(call, "%zu bytes at %p, but only %zu are left of what "
			  "shmem_malloc() gave", len, addr, left);
}

void *pe_ptr_slow(const char *call, const void *addr, size_t len, int pe)
{
	shmem_running(call);
	if (pe < 0 || pe >= shmem.n_pes)
		shmem_die(call, "there is no PE %d: 0 to %d", pe, shmem.n_pes - 1);
	if (!len)
		return (void *)addr;
	if (shmem.debug || !sci_team_ptr(shmem.team, addr, shmem.my_pe))
		symmetric_check_slow(call, addr, len);
	return sci_team_ptr(shmem.team, addr, pe);
}

/* ---- start ---- */

/* Parse a size such as "2M" or "1.5g", and round it up. Return false if @text is not a size. */
static bool size_parse(const char *text, uint64_t *bytes)
{
	static const char units[] = "KkMmGgTt";
	char *end;
	double n = strtod(text, &end);
	const char *unit;

	if (end == text || !(n > 0))
		return false;
	if (*end) {
		unit = strchr(units, *end);
		if (!unit || end[1])
			return false;
		n *= (double)(1024ull << (unit - units) / 2 * 10);
	}
	if (n >= 0x1p62)
		return false;
	*bytes = (uint64_t)n;
	*bytes += (double)*bytes < n;
	return true;
}

/* Return the value of SHMEM_@name, or else of its deprecated name SMA_@name; NULL: no value. */
static const char *env_get(const char *name)
{
	static const char *const prefixes[] = { "SHMEM_", "SMA_" };
	const char *value = NULL;
	char full[32];

	for (size_t i = 0; !value && i < ARRAY_LEN(prefixes); i++) {
		snprintf(full, sizeof(full), "%s%s", prefixes[i], name);
		value = getenv(full);
	}
	return value;
}

static bool env_is_set(const char *name)
{
	const char *value = env_get(name);

	return value && *value && strcmp(value, "0");
}

static uint64_t heap_size(void)
{
	const char *text = env_get("SYMMETRIC_SIZE");
	uint64_t bytes = HEAP_SIZE;

	if (text && *text && !size_parse(text, &bytes))
		shmem_die("shmem_init", "symmetric heap of %s: not a size such as 64M "
			  "(see SHMEM_SYMMETRIC_SIZE)", text);
	return bytes;
}

static void environment_print(void)
{
	printf("OpenSHMEM %d.%d, %s\n"
	       "Environment:\n"
	       "  SHMEM_SYMMETRIC_SIZE=SIZE  bytes of the symmetric heap of a PE, with K, M, G\n"
	       "                             or T (here %llu)\n"
	       "  SHMEM_DEBUG=1              check arguments, say what is wrong\n"
	       "  SHMEM_INFO=1               print this text\n"
	       "  SHMEM_VERSION=1            print the version\n"
	       "The deprecated names SMA_* have the same effect.\n",
	       SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION, SHMEM_VENDOR_STRING,
	       (unsigned long long)heap_size());
	fflush(stdout);
}

static void environment_read(void)
{
	shmem.debug = env_is_set("DEBUG");
	if (shmem.my_pe)
		return;
	if (env_is_set("INFO"))
		environment_print();
	else if (env_is_set("VERSION"))
		printf("OpenSHMEM %d.%d, %s\n", SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION,
		       SHMEM_VENDOR_STRING);
}

static pid_t starter;			/* the process that has called shmem_init() */

static void exit_finalize(void)
{
	/* a child of fork() has no library thread to stop, and is no PE */
	if (getpid() == starter)
		shmem_finalize();
}

/* ---- functions that shmem.h also defines inline ---- */

_Static_assert(sizeof(struct shmem_view_) == sizeof(struct sci_team_view) &&
	       offsetof(struct shmem_view_, shift) == offsetof(struct sci_team_view, shift),
	       "one structure, two headers");

EXPORT const struct shmem_view_ *shmem_view_ = (const struct shmem_view_ *)&nothing;

/* Declare the functions that shmem.h defines inline, and the library's own names for them. */
#define DECLARE_OWN(NAME, TYPE, a, b)						\
	extern EXPORT __typeof__(shmem_##NAME##_p) pshmem_##NAME##_p;		\
	extern EXPORT __typeof__(shmem_##NAME##_g) pshmem_##NAME##_g;
SHMEM_RMA_TYPES_(DECLARE_OWN, 0, 0)
#define BOTH_NAMES(NAME, TYPE, a, b)						\
	{ (void *)shmem_##NAME##_p, (void *)pshmem_##NAME##_p },		\
	{ (void *)shmem_##NAME##_g, (void *)pshmem_##NAME##_g },

/* Return whether a profiling library has replaced functions of this library. */
static bool shmem_is_profiled(void)
{
	static void *const volatile names[][2] = { SHMEM_RMA_TYPES_(BOTH_NAMES, 0, 0) };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i][0] != names[i][1])
			return true;
	return false;
}

static void view_set(const struct sci_team_view *view)
{
	shmem.view = view;
	shmem_view_ = (const struct shmem_view_ *)(shmem_is_profiled() ? &nothing : view);
}

static void team_open(const char *call, const struct sci_team_attr *attr)
{
	int err = sci_team_open(&shmem.team, attr);

	if (err == -ENOMEM || err == -ENOSPC)
		shmem_die(call, "out of memory: the symmetric heap of each PE has %llu bytes "
			  "(see SHMEM_SYMMETRIC_SIZE)", (unsigned long long)attr->symmetric_size);
	shmem_ok_of(call, err, "cannot join the other PEs");
}

static void shmem_start(const char *call, int requested)
{
	struct sci_team_attr attr = {
		.size = sizeof(attr),
		.symmetric_size = heap_size(),
	};
	const struct sci_team_view *own;
	static bool registered;

	if (shmem.team)
		return;
	team_open(call, &attr);
	shmem.my_pe = sci_team_rank(shmem.team);
	shmem.n_pes = sci_team_size(shmem.team);
	shmem.thread_level = requested;
	environment_read();
	shmem_ok_of(call, data_register(shmem.team), "cannot share static variables");
	shmem_ok_of(call, teams_init(), "cannot make the predefined teams");
	shmem_ok(call, sci_team_barrier(shmem.team));
	own = (const struct sci_team_view *)(const void *)shmem.team;
	shmem.serves = false;
	for (size_t i = 0; i < own->ranks; i++)
		shmem.serves |= own->shift[i] == 1;
	if (shmem.serves)
		shmem_ok_of(call, serve_start(), "cannot start a thread");
	view_set(shmem.debug ? &nothing : own);
	shmem.data = shmem.debug ? &nothing : data_view();
	/* by the standard, a return from main() finalises */
	starter = getpid();
	if (!registered)
		registered = !atexit(exit_finalize);
}

EXPORT void shmem_init(void)
{
	shmem_start(__func__, SHMEM_THREAD_SINGLE);
}

EXPORT int shmem_init_thread(int requested, int *provided)
{
	if (requested < SHMEM_THREAD_SINGLE || requested > SHMEM_THREAD_MULTIPLE)
		return -1;
	shmem_start(__func__, requested);
	*provided = shmem.thread_level;
	return 0;
}

EXPORT void shmem_query_thread(int *provided)
{
	*provided = shmem.thread_level;
}

EXPORT void start_pes(int npes)
{
	(void)npes;
	shmem_init();
}

/* ---- end ---- */

EXPORT void shmem_finalize(void)
{
	if (!shmem.team)
		return;
	/* sci_team_quiet() fails if a PE has died: then a barrier would wait for that PE */
	if (!sci_team_quiet(shmem.team))
		sci_team_barrier(shmem.team);
	teams_exit();
	if (shmem.serves)
		serve_stop();
	sci_team_close(shmem.team);
	view_set(&nothing);
	shmem.data = &nothing;
	shmem.team = NULL;
	data_exit();
	memory_exit();
}

EXPORT void shmem_global_exit(int status)
{
	fflush(NULL);
	if (shmem.team)
		sci_team_abort(shmem.team, status);
	_exit(status);
}

/* ---- queries ---- */

EXPORT int shmem_my_pe(void)
{
	return shmem.my_pe;
}

EXPORT int shmem_n_pes(void)
{
	return shmem.n_pes;
}

EXPORT int _my_pe(void)
{
	return shmem.my_pe;
}

EXPORT int _num_pes(void)
{
	return shmem.n_pes;
}

EXPORT int shmem_pe_accessible(int pe)
{
	return pe >= 0 && pe < shmem.n_pes;
}

EXPORT int shmem_addr_accessible(const void *addr, int pe)
{
	return shmem.team && shmem_pe_accessible(pe) &&
	       sci_team_ptr(shmem.team, addr, shmem.my_pe);
}

EXPORT void *shmem_ptr(const void *dest, int pe)
{
	return shmem.team ? sci_team_ptr(shmem.team, dest, pe) : NULL;
}

EXPORT void shmem_info_get_version(int *major, int *minor)
{
	*major = SHMEM_MAJOR_VERSION;
	*minor = SHMEM_MINOR_VERSION;
}

EXPORT void shmem_info_get_name(char *name)
{
	strcpy(name, SHMEM_VENDOR_STRING);
}

/* ---- profiling ---- */

EXPORT void shmem_pcontrol(int level, ...) { (void)level; }

/* ---- caches: all machines have coherent caches ---- */

EXPORT void shmem_set_cache_inv(void) { }
EXPORT void shmem_clear_cache_inv(void) { }
EXPORT void shmem_set_cache_line_inv(void *dest) { (void)dest; }
EXPORT void shmem_clear_cache_line_inv(void *dest) { (void)dest; }
EXPORT void shmem_udcflush(void) { }
EXPORT void shmem_udcflush_line(void *dest) { (void)dest; }
