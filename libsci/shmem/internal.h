/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: OpenSHMEM on teams
 *
 * PEs are the ranks of the team of all processes. The symmetric heap is the team's heap. At
 * start-up, the program's static variables are registered with the team. If loads and stores
 * reach the memory of the target PE, the caller copies the data itself: pe_ptr() and a store.
 * All other transfers are calls to the team.
 */
#ifndef LIBSCI_SHMEM_INTERNAL_H
#define LIBSCI_SHMEM_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <sci/team.h>

#define SHMEM_NO_INLINE
#include "libsci/include/sci-shmem/shmem.h"

#define EXPORT		__attribute__((visibility("default")))
#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))

struct shmem_team_ {
	struct sci_team *team;
	int my_pe;
	int n_pes;
	int *world;			/* world rank of each PE; NULL: the same number */
	shmem_team_config_t config;
	struct shmem_ctx_ *contexts;
	struct shmem_team_ *next;	/* in shmem.teams */
};

struct shmem_ctx_ {
	struct shmem_team_ *team;
	shmem_team_t handle;		/* the handle of its team */
	long options;
	struct shmem_ctx_ *next;	/* next context of the team */
};

/*
 * struct shmem - the state of the process
 * @view, @data: the heap and the static variables as pe_ptr() sees them. With SHMEM_DEBUG, before
 *	shmem_init() and after shmem_finalize(), both are empty, and pe_ptr() returns NULL.
 * @serves: loads and stores of some PEs do not reach this PE, which makes progress for these PEs
 * @my_pe, @n_pes: -1 and 0 before the first shmem_init()
 */
struct shmem {
	const struct sci_team_view *view;
	const struct sci_team_view *data;
	struct sci_team *team;
	bool serves;
	int my_pe;
	int n_pes;
	bool debug;
	int thread_level;
	struct shmem_team_ world;
	struct shmem_team_ shared;
	struct shmem_team_ *teams;	/* teams made by the program */
};

extern struct shmem shmem __attribute__((visibility("hidden")));

/* ---- errors ---- */

/* Print an error with the PE and the name of the call, and end all PEs. */
__attribute__((noreturn, format(printf, 2, 3)))
void shmem_die(const char *call, const char *fmt, ...);

/* If @error is not 0, print it and end all PEs. */
__attribute__((noreturn, cold)) void shmem_die_of(const char *call, int error);

static inline void shmem_ok(const char *call, int error)
{
	if (unlikely(error < 0))
		shmem_die_of(call, error);
}

/* Check @error as shmem_ok() does. @what: text about the failed part */
static inline void shmem_ok_of(const char *call, int error, const char *what)
{
	char buf[64];

	if (unlikely(error < 0))
		shmem_die(call, "%s: %s", what, strerror_r(-error, buf, sizeof(buf)));
}

/* End all PEs unless the caller is between shmem_init() and shmem_finalize(). */
static inline void shmem_running(const char *call)
{
	if (unlikely(!shmem.team))
		shmem_die(call, "the library is not initialised");
}

/* ---- memory of other PEs ---- */

/* The variant of pe_ptr() for all symmetric memory. If an argument is wrong, end all PEs. */
__attribute__((cold))
void *pe_ptr_slow(const char *call, const void *addr, size_t len, int pe);

static inline __attribute__((always_inline))
void *view_ptr(const struct sci_team_view *v, const void *addr, int pe)
{
	size_t at = (size_t)addr, r = (size_t)pe;

	if (likely(at - v->base < v->len && r < v->ranks && v->shift[r] != 1))
		return (void *)(at + v->shift[r]);
	return NULL;
}

/*
 * Return the address of @addr in the memory of world PE @pe, if @addr is in the first region of the
 * heap or in a static variable, and loads and stores reach that PE. Otherwise return NULL: then
 * call pe_ptr_slow().
 */
static inline __attribute__((always_inline)) void *pe_ptr(const void *addr, int pe)
{
	void *p = view_ptr(shmem.view, addr, pe);

	return likely(p) ? p : view_ptr(shmem.data, addr, pe);
}

static inline void *pe_ptr_of(const char *call, const void *addr, size_t len, int pe)
{
	void *p = pe_ptr(addr, pe);

	return likely(p) ? p : pe_ptr_slow(call, addr, len, pe);
}

/* Check that the caller's address is symmetric. For SHMEM_DEBUG. */
void symmetric_check_slow(const char *call, const void *addr, size_t len);

static inline void symmetric_check(const char *call, const void *addr, size_t len)
{
	if (unlikely(shmem.debug || !shmem.team))
		symmetric_check_slow(call, addr, len);
}

/* Make the program's static variables symmetric. Return 0 or -errno. */
int data_register(struct sci_team *team);
void data_exit(void);

/* Return the view for shmem.data. */
const struct sci_team_view *data_view(void);

bool data_holds(const void *addr);

/*
 * Return the number of bytes from @addr to the end of its allocation; 0: @addr is in no allocation.
 */
size_t memory_left(const void *addr);

/* Free the list of allocations, after the end of the team's heap. */
void memory_exit(void);

/* Start or stop the thread that makes progress if shmem.serves is set. Return 0 or -errno. */
int serve_start(void);
void serve_stop(void);

/* ---- teams and contexts ---- */

/* Return the team of a handle, or NULL for SHMEM_TEAM_INVALID and invalid handles. */
struct shmem_team_ *team_of(shmem_team_t handle);

/* Make the predefined teams, or free all teams. Return 0 or -errno. */
int teams_init(void);
void teams_exit(void);

void active_sets_exit(void);

/* Return the world rank of PE @pe in the team of context @ctx. */
int ctx_pe_slow(const char *call, shmem_ctx_t ctx, int pe);

static inline int ctx_pe(const char *call, shmem_ctx_t ctx, int pe)
{
	return likely(ctx == SHMEM_CTX_DEFAULT) ? pe : ctx_pe_slow(call, ctx, pe);
}

#endif
