/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: inside teams
 *
 *	world.c		the process in its job: endpoint, peers, deaths
 *	wait.c		waiting
 *	heap.c		the allocator of symmetric memory; plain code
 *	symmetric.c	pieces of symmetric memory, their maps
 *	group.c		teams: create, split
 *	shrink.c	... of the living
 *	rma.c, atomic.c, words.c, lock.c	one-sided calls
 *	op.c		operations of reductions
 *	coll.c		collective calls: arguments, queue
 *	flat.c, flat_kinds.c	... through shared memory
 *	plan.c, trees.c	... through messages
 *
 * Layers: world < symmetric, rma, atomic < lock; coll < group < symmetric's calls.
 * Two members are *near* when loads and stores of one reach the memory of the other.
 * Near is an equivalence: each process belongs to one group of near ones.
 */
#ifndef LIBSCI_TEAM_TEAM_H
#define LIBSCI_TEAM_TEAM_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "libsci/base/barrier.h"
#include "libsci/base/list.h"
#include "libsci/include/sci/msg.h"
/* these are exported, all else is hidden */
#pragma GCC visibility push(default)
#include "libsci/include/sci/team.h"
#pragma GCC visibility pop
#include "libsci/team/boot.h"
#include "libsci/team/heap.h"

#define TEAM_LINE	64u
#define TEAM_FAR	1u		/* in sci_team_view.shift */
#define TEAM_CTX_COLL	SCI_TEAM_CONTEXT
#define TEAM_CTX_CREATE	(SCI_TEAM_CONTEXT + 1)
#define TEAM_CTX_REPLY	(SCI_TEAM_CONTEXT + 2)
#define TEAM_CTX_BYE	(SCI_TEAM_CONTEXT + 4)
#define TEAM_REGIONS	64u		/* pieces of the heap, registered memory */
#define TEAM_ATOMIC	(SCI_HANDLER_LIBRARY + 0)
#define TEAM_ATOMIC_REPLY	(SCI_HANDLER_LIBRARY + 1)

/* ---- world ---- */

/* First page of the control memory of a process; near peers map it. */
struct team_page {
	uint32_t sleeping;		/* the owner sleeps on wakes: say so */
	uint32_t wakes;
	uint8_t pad[TEAM_LINE - 8];
	uint8_t bye[];			/* by rank, each its own: 1: it leaves */
};

struct team_rank {
	struct sci_addr addr;
	uint32_t group;			/* near ranks have the same */
	int dead;			/* 0, or -ECONNRESET */
	struct sci_peer *peer;		/* NULL: not connected yet */
	struct team_page *page;		/* NULL: not near, or not mapped yet */
};

/* Local memory that peers can name, with parts allocated from it. */
struct team_chunk {
	struct list link;
	uint8_t *base;
	size_t len;
	struct team_heap heap;
};

struct team_region;

struct team_world {
	struct sci_boot *boot;
	const struct sci_boot_info *info;
	pthread_mutex_t boot_lock;
	struct sci_ep *ep;
	uint32_t fork_gen;
	int rank;
	int size;
	unsigned int traits;
	struct team_rank *ranks;
	int deaths;			/* grows with each death that is learnt */
	bool opening;			/* in sci_team_open() */
	uint64_t poll_ms;		/* when deaths were last looked for */
	bool crowded;			/* more processes than CPUs */
	unsigned int crowded_waits;	/* as if, for so many more waits */
	bool far;			/* some ranks are not near */
	uint32_t uids;			/* teams this process has led */
	bool broken;			/* some team cannot go on */
	pthread_mutex_t broken_lock;	/* teams, with lock */
	struct list teams;
	pthread_mutex_t lock;		/* queues of collective calls, chunks, maps */
	int queued;			/* collective calls in queues */
	struct list chunks;		/* control memory */
	struct team_page *page;		/* this process's */
	/* symmetric memory */
	struct team_region *regions[TEAM_REGIONS];
	unsigned int n_regions;		/* grows when the region is there */
	/* one-sided calls under way */
	pthread_mutex_t far_lock;
	struct list puts;
	int far_error;
	_Atomic int far_puts;
	/* atomics under way: atomic.c */
	pthread_mutex_t atomics_lock;	/* handlers take it */
	struct list atomics;
	uint64_t atomic_tag;
	unsigned int atomics_free;	/* started, with nobody waiting */
};

extern _Atomic uint32_t team_fork_gen;	/* forks between the first process and this one */

/* 0, or -ENOTCONN in the child of a fork(). */
static inline int world_usable(const struct team_world *w)
{
	return w->fork_gen == atomic_load_explicit(&team_fork_gen, memory_order_relaxed) ?
	       0 : -ENOTCONN;
}

/* Connects to a rank, now or later. */
int world_peer(struct team_world *w, int rank, struct sci_peer **peer);

/* Maps @key's memory of a near rank. */
int world_map(struct team_world *w, int rank, const struct sci_key *key, void **addr);

/* Moves messages and queued collective calls, and learns of deaths now and then. */
void world_poll(struct team_world *w);

/* Whether @rank, or another member that the team has, is dead: 0 or -ECONNRESET. */
int world_dead(const struct team_world *w, int rank);

/* Control memory: from a chunk, and its name for peers. */
int world_alloc(struct team_world *w, size_t len, void **addr, struct sci_key *key);
void world_free(struct team_world *w, void *addr);

/* Wake a near rank that sleeps in team_wait(). */
void world_wake_slow(struct team_world *w, int rank);

static inline void world_wake(struct team_world *w, int rank)
{
	struct team_page *p = w->ranks[rank].page;

	if (p && sci_load_relaxed(&p->sleeping))
		world_wake_slow(w, rank);
}

/**
 * struct team_wait - a wait under way
 * @word: NULL, or what the waiter polls, which @seen was read from
 * @waiters: set when the waiter sleeps on @word
 */
struct team_wait {
	unsigned int spins;
	uint64_t since_us;		/* when it first slept; 0: not yet */
	uint64_t deadline_ms;		/* UINT64_MAX: none */
	const uint32_t *word;
	uint32_t *waiters;
	uint32_t seen;
	bool armed;			/* ... it has been announced */
	bool own;			/* sleeps on its own page: woken by world_wake() */
};

void team_wait_init(struct team_wait *t, int timeout);

/* One look was in vain: poll, yield or sleep for a moment. -ETIMEDOUT. */
int team_wait_more(struct team_world *w, struct team_wait *t);

void team_futex_wake(uint32_t *word);
uint64_t team_now_ms(void);

/* ---- teams ---- */

/* A member's contribution when a team is made. */
struct team_hello {
	struct sci_key area;		/* len 0: has none */
	uint64_t uid;			/* of the one with rank 0 */
	int32_t error;
	uint32_t reserved;
};

struct flat_area;

struct team_member {
	int world;			/* rank in the team of all */
	int node;			/* number in this team */
	int local;			/* rank on its node */
	struct flat_area *area;		/* mapped; NULL: far */
};

struct sci_team {
	struct sci_team_view view;	/* public, see sci/team.h */
	struct team_world *world;
	struct list link;		/* world->teams */
	int rank;
	int size;
	int nodes;
	int *node_sizes;
	struct team_member *members;
	size_t *shift;
	uint64_t uid;
	int error;			/* no more collective calls */
	int deaths;			/* world->deaths when members were looked at */
	unsigned int shrinks;		/* attempts to shrink it */
	uint32_t turn;			/* of sci_team_wait_any() */
	bool all;			/* may allocate symmetric memory */
	bool flat;			/* all members are near */
	/* flat.c */
	struct flat_area *area;		/* this process's */
	size_t chunk;			/* bytes of a chunk */
	uint32_t epoch;			/* of the call that comes next */
	uint32_t min_done;		/* all members have finished this epoch */
	/* plan.c */
	struct sci_team *near;		/* the members near this one; NULL: flat */
	int *leads;			/* ranks of the first members of groups, ascending */
	int groups;			/* number of them */
	int group;			/* this member's */
	uint32_t seq;
	/* coll.c */
	struct list queue;		/* with world->lock */
	int queued;			/* calls in it */
};

/*
 * The result of a transfer with a member.  Its endpoint and memory exist until it dies
 * or closes the team of all: that they are not there says that it has gone.
 */
static inline int member_result(int ret)
{
	return ret == -ENOTCONN || ret == -ENOENT ? -ECONNRESET : ret;
}

static inline bool rank_ok(const struct sci_team *t, int rank)
{
	return (unsigned int)rank < (unsigned int)t->size;
}

/* 0; -ECONNRESET: a member is dead; the team's own error. */
int team_check(struct sci_team *t);

/* The team makes no more collective calls. */
void team_break(struct sci_team *t, int error);

/* A team of @n world ranks; @uid of world ranks that all agree on. */
int team_new(struct team_world *w, const int *world_ranks, int n, struct sci_team **out);
int team_hello(struct sci_team *t, struct team_hello *mine);
int team_join(struct sci_team *t, const struct team_hello *all);
int team_leave(struct sci_team *t);
void team_free(struct sci_team *t);

/* ---- symmetric memory ---- */

/* A heap begins with this, in a line of its own: it is there as long as the heap is. */
#define TEAM_HEAP_MARK	UINT64_C(0x70616568746d7973)

struct team_region {
	uint8_t *base;			/* the caller's part */
	size_t len;
	bool heap;			/* sci_team_alloc() may use it */
	bool registered;
	struct team_heap blocks;
	struct sci_key *keys;		/* by world rank */
	size_t *remote;			/* ... its part as mapped here; 0: far */
};

/*
 * The piece that all of [@addr, @addr + @len) lies in, by its number, which is the same
 * on all members; TEAM_REGIONS: it is not symmetric.
 */
static inline unsigned int region_find(const struct team_world *w, const void *addr,
				       size_t len)
{
	unsigned int n = sci_load_acquire(&w->n_regions);

	for (unsigned int i = 0; i < n; i++) {
		const struct team_region *r = w->regions[i];
		size_t at = (size_t)addr - (size_t)r->base;

		if (at < r->len && len <= r->len - at)
			return i;
	}
	return TEAM_REGIONS;
}

/*
 * Where @len bytes at @addr are at @rank of @t: *@ptr if it is near, else *@ptr is
 * NULL, and *@key and *@offset name them.  -EINVAL: no such rank; -EFAULT.
 */
static inline int symmetric_at(const struct sci_team *t, const void *addr, size_t len,
			       int rank, void **ptr, const struct sci_key **key,
			       uint64_t *offset)
{
	const struct team_region *r;
	size_t at = (size_t)addr - t->view.base;
	unsigned int region;
	int world;

	if (!rank_ok(t, rank))
		return -EINVAL;
	if (at < t->view.len && len <= t->view.len - at && t->shift[rank] != TEAM_FAR) {
		*ptr = (void *)((size_t)addr + t->shift[rank]);
		return 0;
	}
	region = region_find(t->world, addr, len);
	if (region == TEAM_REGIONS)
		return -EFAULT;
	r = t->world->regions[region];
	world = t->members[rank].world;
	*offset = (uint64_t)((const uint8_t *)addr - r->base);
	*key = &r->keys[world];
	*ptr = r->remote[world] ? (void *)(r->remote[world] + *offset) : NULL;
	return 0;
}

int symmetric_open(struct sci_team *all, uint64_t size);
void symmetric_close(struct team_world *w);
void symmetric_view(struct sci_team *t);

/* ---- one-sided calls ---- */

/* Starts a transfer with a far rank; quiet waits for it. */
int far_transfer(struct sci_team *t, int rank, const struct sci_key *key, uint64_t offset,
		 void *buf, size_t len, bool write, bool wait);
int far_quiet(struct team_world *w);
int atomics_open(struct team_world *w);
void atomics_close(struct team_world *w);

/* Waits for all atomics under way. */
int atomics_quiet(struct team_world *w);

/* ---- collective calls ---- */

enum coll_kind {
	COLL_BARRIER, COLL_BCAST, COLL_REDUCE, COLL_ALLREDUCE, COLL_REDUCE_SCATTER,
	COLL_SCAN, COLL_EXSCAN, COLL_GATHER, COLL_GATHERV, COLL_ALLGATHER, COLL_SCATTER,
	COLL_SCATTERV, COLL_ALLTOALL, COLL_ALLTOALLV, COLL_KINDS
};

struct plan;

/* A collective call: its arguments, and how far it is. */
struct sci_coll {
	struct list link;		/* team->queue */
	struct sci_team *team;
	int (*step)(struct sci_coll *c);
	enum coll_kind kind;
	int root;
	int result;			/* -EAGAIN: under way */
	bool heap;			/* allocated: non-blocking */
	const uint8_t *src;
	uint8_t *dst;
	size_t len;			/* bytes of a member's part */
	size_t n;			/* elements, where there is an operation */
	const struct sci_op *op;
	const size_t *lens, *offsets;
	const size_t *src_lens, *src_offsets;
	struct team_wait wait;
	/* flat.c */
	uint64_t k;			/* epoch of this call */
	uint64_t epochs;
	uint64_t longest;
	int at;				/* source that comes next */
	bool published;
	bool stay;			/* members read the caller's heap, ... */
	uint32_t direct;		/* ... last in this epoch */
	uint32_t to;			/* the member that the slot is for */
	/* plan.c */
	struct plan *plan;
};

int flat_start(struct sci_coll *c);
int flat_step(struct sci_coll *c);
size_t flat_area_size(struct sci_team *t);
void flat_open(struct sci_team *t);

/* Returns when no member that lives looks at this one's area any more. */
void flat_bye(struct sci_team *t);
int plan_start(struct sci_coll *c);
int plan_step(struct sci_coll *c);
void plan_free(struct sci_coll *c);

/* Steps what is queued in all teams; world->lock is free. */
void colls_poll(struct team_world *w);

static inline size_t coll_offset(const size_t *lens, const size_t *offsets, int rank)
{
	size_t at = 0;

	if (offsets)
		return offsets[rank];
	for (int i = 0; i < rank; i++)
		at += lens[i];
	return at;
}

#endif
