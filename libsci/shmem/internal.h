/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: OpenSHMEM on teams
 *
 * PEs are the ranks of the team of all processes. The symmetric heap is the team's, and
 * static variables are memory that the program registers with the team at start-up. A
 * transfer to memory that loads and stores reach is a copy by the caller: pe_ptr() and
 * a store. All other transfers are calls of the team's.
 */
#ifndef LIBSCI_SHMEM_INTERNAL_H
#define LIBSCI_SHMEM_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
	int *world;			/* the PEs' numbers in the world; NULL: the same */
	shmem_team_config_t config;
	struct shmem_ctx_ *contexts;
	struct shmem_team_ *next;	/* in shmem.teams */
};

struct shmem_ctx_ {
	struct shmem_team_ *team;
	shmem_team_t handle;		/* of the team */
	long options;
	struct shmem_ctx_ *next;	/* of the same team */
};

/*
 * struct shmem - the state of the process
 * @view: of the world's memory; with SHMEM_DEBUG, and outside of shmem_init() and
 *	shmem_finalize(), a view that reaches nothing: pe_ptr() then asks pe_ptr_slow()
 * @my_pe, @n_pes: -1 and 0 outside of shmem_init() and shmem_finalize()
 */
struct shmem {
	const struct sci_team_view *view;
	struct sci_team *team;
	int my_pe;
	int n_pes;
	bool debug;
	int thread_level;
	struct shmem_team_ world;
	struct shmem_team_ shared;
	struct shmem_team_ *teams;	/* those of the program */
};

extern struct shmem shmem __attribute__((visibility("hidden")));

/* ---- errors ---- */

/* Say what is wrong, with the PE and the name of the call, and end all PEs. */
__attribute__((noreturn, format(printf, 2, 3)))
void shmem_die(const char *call, const char *fmt, ...);

/* End all PEs if the team's call returned an error. */
__attribute__((noreturn, cold)) void shmem_die_of(const char *call, int error);

static inline void shmem_ok(const char *call, int error)
{
	if (unlikely(error < 0))
		shmem_die_of(call, error);
}

/* The same, with words about what failed. */
static inline void shmem_ok_of(const char *call, int error, const char *what)
{
	if (unlikely(error < 0))
		shmem_die(call, "%s (error %d)", what, -error);
}

/* Between shmem_init() and shmem_finalize(), or the end of all PEs. */
static inline void shmem_running(const char *call)
{
	if (unlikely(!shmem.team))
		shmem_die(call, "the library is not initialised");
}

/* ---- memory of other PEs ---- */

/* As pe_ptr(), for all symmetric memory. Ends all PEs if the arguments are wrong. */
__attribute__((cold))
void *pe_ptr_slow(const char *call, const void *addr, size_t len, int pe);

/*
 * The part of symmetric memory at @addr that @pe has, PE of the world. NULL: not there,
 * or loads and stores do not reach it: pe_ptr_slow() knows.
 */
static inline __attribute__((always_inline)) void *pe_ptr(const void *addr, int pe)
{
	const struct sci_team_view *v = shmem.view;
	size_t at = (size_t)addr, r = (size_t)pe;

	if (likely(at - v->base < v->len && r < v->ranks && v->shift[r] != 1))
		return (void *)(at + v->shift[r]);
	return NULL;
}

static inline void *pe_ptr_of(const char *call, const void *addr, size_t len, int pe)
{
	void *p = pe_ptr(addr, pe);

	return likely(p) ? p : pe_ptr_slow(call, addr, len, pe);
}

/* Check a symmetric address of the caller's; only with SHMEM_DEBUG. */
void check_symmetric_slow(const char *call, const void *addr, size_t len);

static inline void check_symmetric(const char *call, const void *addr, size_t len)
{
	if (unlikely(shmem.debug || !shmem.team))
		check_symmetric_slow(call, addr, len);
}

/* Make the program's static variables symmetric. 0 or -errno. */
int data_register(struct sci_team *team);

/* Whether @addr lies among these. */
bool data_holds(const void *addr);

/* Bytes from @addr to the end of what was allocated; 0: nothing was. */
size_t memory_left(const void *addr);

/* Forget what is allocated: the team's heap is gone. */
void memory_exit(void);

/* ---- teams and contexts ---- */

/* The team of a handle; NULL: SHMEM_TEAM_INVALID, or no team. */
struct shmem_team_ *team_of(shmem_team_t handle);

/* Make the predefined teams; 0 or -errno. Free all teams. */
int teams_init(void);
void teams_exit(void);

/* Free the teams of active sets. */
void active_sets_exit(void);

/* The number in the world of PE @pe of context @ctx. */
int ctx_pe_slow(const char *call, shmem_ctx_t ctx, int pe);

static inline int ctx_pe(const char *call, shmem_ctx_t ctx, int pe)
{
	return likely(ctx == SHMEM_CTX_DEFAULT) ? pe : ctx_pe_slow(call, ctx, pe);
}

#endif
