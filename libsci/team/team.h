/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: inside teams
 *
 *	world.c		one process of a job: endpoint, peers, deaths
 *	wait.c		waiting
 *	heap.c		the allocator of symmetric memory; independent of the rest
 *	symmetric.c	regions of symmetric memory, and their mappings
 *	group.c		making teams: create, split
 *	shrink.c	making a team of the survivors
 *	rma.c, atomic.c, words.c, lock.c	one-sided calls
 *	op.c		operations of reductions
 *	coll.c		collective calls: arguments, queue
 *	flat.c, flat_kinds.c	collective calls through shared memory
 *	plan.c, trees.c, leaders.c	collective calls through messages
 *
 * Layers: world < symmetric, rma, atomic < lock; coll < group < the calls of symmetric.
 * Two members are *near* if each can load from and store to the other's memory. This is an
 * equivalence relation: each process belongs to one group of near processes.
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
/* export the functions of the public header; all other functions are hidden */
#pragma GCC visibility push(default)
#include "libsci/include/sci/team.h"
#pragma GCC visibility pop
#include "libsci/team/boot.h"
#include "libsci/team/heap.h"

#define TEAM_LINE	64u
#define TEAM_FAR	1u		/* flag in sci_team_view.shift */
#define TEAM_CTX_COLL	SCI_TEAM_CONTEXT
#define TEAM_CTX_CREATE	(SCI_TEAM_CONTEXT + 1)
#define TEAM_CTX_REPLY	(SCI_TEAM_CONTEXT + 2)
#define TEAM_CTX_BYE	(SCI_TEAM_CONTEXT + 4)
#define TEAM_CTX_BROKEN	(SCI_TEAM_CONTEXT + 5)
#define TEAM_REGIONS	64u		/* heap, extensions, registered memory */
#define TEAM_KEPT_REDUCE	4096u	/* longest blocking reduction without malloc() */
#define TEAM_ELEMENT_MAX	4096u	/* bytes of an element of a reduction */
#define TEAM_KEPT_GATHER	64u	/* longest part of such an allgather */

/* ---- world ---- */

/* The first page of a process's control memory. Near peers map it. */
struct team_page {
	uint32_t sleeping;		/* the owner sleeps on @wakes: wake it */
	uint32_t wakes;
	uint8_t pad[TEAM_LINE - 8];
	uint8_t bye[];			/* one byte for each rank; 1: that rank closes */
};

struct team_rank {
	struct sci_addr addr;
	uint32_t group;			/* equal for ranks that are near each other */
	int dead;			/* 0, or -ECONNRESET */
	bool reported;			/* the launcher has reported its death */
	struct sci_peer *peer;		/* NULL: not connected yet */
	struct team_page *page;		/* NULL: far, or not mapped yet */
};

/* An exported buffer. Control memory is allocated from such chunks. */
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
	/* bytes of the shortest data that members read from private memory; UINT_MAX: none */
	unsigned int single_copy_min;
	struct team_rank *ranks;
	int deaths;			/* number of known deaths */
	bool opening;			/* in sci_team_open() */
	uint64_t poll_ms;		/* time of the last check for deaths */
	bool crowded;			/* more processes than CPUs */
	unsigned int crowded_waits;	/* waits left that assume a crowded machine */
	bool far;			/* some ranks are not near */
	uint32_t uids;			/* number of teams with this process as rank 0 */
	bool broken;			/* some team is broken */
	pthread_mutex_t broken_lock;	/* protects @teams, together with @lock */
	struct list teams;
	pthread_mutex_t lock;		/* protects queues, chunks, maps and heaps */
	int queued;			/* collective calls in all queues */
	struct list chunks;		/* control memory */
	struct team_page *page;		/* the page of this process */
	/* symmetric memory */
	struct team_region *regions[TEAM_REGIONS];
	unsigned int n_regions;		/* increased after the region is complete */
	/* outstanding one-sided transfers */
	pthread_mutex_t far_lock;
	struct list far_requests;	/* oldest first */
	unsigned int n_far;
	int far_error;			/* the first error since the last sci_team_quiet() */
	/* lock_far.c */
	struct list lock_requests;	/* of far members, without an answer yet */
	unsigned int n_lock_requests;
	struct list lock_calls;		/* of this process */
	uint64_t lock_ids;		/* number of the next call */
};

extern _Atomic uint32_t team_fork_gen;	/* number of forks before this process */

/* Return 0, or -ENOTCONN in the child of a fork(). */
static inline int world_usable(const struct team_world *w)
{
	return w->fork_gen == atomic_load_explicit(&team_fork_gen, memory_order_relaxed) ?
	       0 : -ENOTCONN;
}

/* Return the peer of @rank. The connection may not be established yet. */
int world_peer(struct team_world *w, int rank, struct sci_peer **peer);

int world_map(struct team_world *w, int rank, const struct sci_key *key, void **addr);

/* Make progress on messages and queued collective calls. Check for deaths every DEATHS_MS. */
void world_poll(struct team_world *w);

/* Return -ECONNRESET if @rank is dead, else 0. */
int world_dead(const struct team_world *w, int rank);

/* Note the deaths that the launcher has reported. Context: world->boot_lock is held. */
void world_take_deaths(void *world);

/* Allocate control memory. @key: set to the key with which peers map the memory */
int world_alloc(struct team_world *w, size_t len, void **addr, struct sci_key *key);
void world_free(struct team_world *w, void *addr);

/* Wake a near rank that sleeps in team_wait_more(). */
void world_wake_slow(struct team_world *w, int rank);

static inline void world_wake(struct team_world *w, int rank)
{
	struct team_page *p = w->ranks[rank].page;

	if (p && sci_load_relaxed(&p->sleeping))
		world_wake_slow(w, rank);
}

/**
 * struct team_wait - state of a wait
 * @word: the word that the waiter polls, or NULL; its value was @seen
 * @waiters: the flag that the waiter sets before it sleeps on @word
 */
struct team_wait {
	unsigned int spins;
	unsigned int limit;		/* of polls before the first yield */
	uint64_t since_us;		/* time of the first sleep; 0: none yet */
	uint64_t deadline_ms;		/* UINT64_MAX: none */
	const uint32_t *word;
	uint32_t *waiters;
	uint32_t seen;
	bool armed;			/* the sleep on the own page is announced */
	bool own;			/* sleep on the own page: world_wake() ends the sleep */
};

void team_wait_init(struct team_wait *t, int timeout);

/* Poll, yield or sleep once. Return 0 or -ETIMEDOUT. */
int team_wait_more(struct team_world *w, struct team_wait *t);

void team_futex_wake(uint32_t *word);
uint64_t team_now_ms(void);

/* ---- teams ---- */

/* The data that each member contributes to the creation of a team. */
struct team_hello {
	struct sci_key area;		/* len 0: no area */
	uint64_t uid;			/* the first member's uid becomes the team's uid */
	uint64_t probe;			/* address of this uid in private memory; 0: none */
	int32_t error;
	uint32_t reserved;
};
_Static_assert(sizeof(struct team_hello) <= TEAM_KEPT_GATHER, "exchanged without memory");

struct flat_area;

struct team_member {
	int world;			/* world rank */
	int node;			/* number of its node in this team */
	int local;			/* rank on its node */
	int group;			/* number of its group of near members */
	struct flat_area *area;		/* NULL: a far member */
};

struct sci_team {
	struct sci_team_view view;	/* public: see sci/team.h */
	struct team_world *world;
	struct list link;		/* world->teams */
	int rank;
	int size;
	int nodes;
	int *node_sizes;
	struct team_member *members;
	size_t *shift;
	uint64_t uid;
	int error;			/* the team is broken: no more collective calls */
	int told;			/* members below this rank have been sent the error */
	uint64_t tell_ms;		/* time from which -ECONNRESET is sent */
	int deaths;			/* world->deaths at the last check */
	unsigned int shrinks;		/* attempts to shrink the team */
	uint8_t *part;			/* NULL, or 1 for each member of the shrink */
	bool left_out;			/* other members have shrunk the team without this one */
	uint32_t turn;			/* first word of the next sci_team_wait_any() */
	bool all;			/* the world's team: may allocate symmetric memory */
	bool flat;			/* all members are near */
	/* flat.c */
	struct flat_area *area;		/* the area of this process */
	size_t chunk;			/* bytes of a chunk */
	uint8_t *share;			/* the caller's share of a reduction */
	uint32_t epoch;			/* epoch of the next call */
	uint32_t min_done;		/* all members have finished this epoch */
	uint64_t probe;			/* the uid in this member's team_hello */
	int readable;			/* all members read each other's memory; -1: unknown */
	/* plan.c */
	struct sci_team *near;		/* the team of the near members; NULL if @flat */
	int *sorted;			/* all ranks, by group and then by rank */
	int *starts;			/* index in @sorted of each group's first member, and @size */
	int *leads;			/* first member of each group, ascending */
	int groups;			/* number of groups */
	int group;			/* group of this member */
	uint32_t seq;
	struct plan *plan;		/* of blocking calls; NULL if @flat */
	/* coll.c */
	struct list queue;		/* protected by world->lock */
	int queued;			/* number of calls in @queue */
};

/*
 * Translate the result of a transfer with a member. The endpoint and the memory of a member exist
 * until it dies or closes its world team. So -ENOTCONN and -ENOENT mean -ECONNRESET.
 */
static inline int member_result(int ret)
{
	return ret == -ENOTCONN || ret == -ENOENT ? -ECONNRESET : ret;
}

static inline bool rank_ok(const struct sci_team *t, int rank)
{
	return (unsigned int)rank < (unsigned int)t->size;
}

static inline int group_size(const struct sci_team *t, int group)
{
	return t->starts[group + 1] - t->starts[group];
}

/* Return 0, -ECONNRESET if a member is dead, or the error of a broken team. */
int team_check(struct sci_team *t);

/*
 * Make all collective calls of the team fail with @error, and send @error to the other members.
 * -ECONNRESET is not sent: the launcher reports deaths to all members.
 */
void team_break(struct sci_team *t, int error);

/* Make a team of @n world ranks. Context: all members pass the same list. */
int team_new(struct team_world *w, const int *world_ranks, int n, struct sci_team **out);
int team_hello(struct sci_team *t, struct team_hello *mine);

/*
 * Map the memory of the near members. If a member has died meanwhile, the team is broken. @all: the
 * hellos of all members of @in, a team that contains @t
 */
int team_map(struct sci_team *t, const struct team_hello *all, const struct sci_team *in);

/* Return the first error in @n hellos, or 0. */
int team_hellos_error(const struct team_hello *all, int n);

/* Put a complete team into the list of teams. */
void team_enter(struct sci_team *t);

/* Exchange @error between all members. Return the worst error of any member, or 0. */
int team_agree(struct sci_team *t, int error);
int team_leave(struct sci_team *t);
void team_free(struct sci_team *t);

/* ---- symmetric memory ---- */

/* The first word of a heap. It reads as zero in the heap of a dead member. */
#define TEAM_HEAP_MARK	UINT64_C(0x70616568746d7973)

struct team_region {
	uint8_t *base;			/* this member's part */
	void *buf;			/* the buffer that contains the part; NULL: registered */
	size_t len;
	size_t modulus;			/* the bases of all members are congruent modulo it */
	bool heap;			/* sci_team_alloc() may use it */
	struct team_heap blocks;	/* protected by world->lock */
	struct sci_key *keys;		/* by world rank */
	size_t *remote;			/* offset to the part of each rank, mapped here; 0: far */
};

/*
 * Return the number of the region that contains [@addr, @addr + @len). The number is the same on
 * all members. Return TEAM_REGIONS if no region contains this range.
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
 * Find the @len bytes at @addr in the memory of @rank. If @rank is near, *@ptr is the address.
 * Otherwise *@ptr is NULL, and *@key and *@offset name the memory. Return 0; -EINVAL: there is no
 * such rank; -EFAULT: the memory is not symmetric.
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

struct sci_rmw far_rmw(enum sci_atomic op, unsigned int size, uint64_t operand,
		       uint64_t compare);
int far_atomic(struct sci_team *t, int rank, const struct sci_key *key, uint64_t offset,
	       const struct sci_rmw *rmw, uint64_t *old, bool wait);
int far_quiet(struct team_world *w);

/* ---- locks of far members ---- */

int locks_open(struct team_world *w);

/* Free requests without an answer. Context: the endpoint is closed. */
void locks_close(struct team_world *w);

/* Continue the requests of far members. */
void locks_poll(struct team_world *w);

/* ---- collective calls ---- */

enum coll_kind {
	COLL_BARRIER, COLL_BCAST, COLL_REDUCE, COLL_ALLREDUCE, COLL_REDUCE_SCATTER,
	COLL_SCAN, COLL_EXSCAN, COLL_GATHER, COLL_GATHERV, COLL_ALLGATHER, COLL_SCATTER,
	COLL_SCATTERV, COLL_ALLTOALL, COLL_ALLTOALLV, COLL_KINDS
};

struct plan;

/* A collective call: its arguments and its state. */
struct sci_coll {
	struct list link;		/* team->queue */
	struct sci_team *team;
	int (*step)(struct sci_coll *c);
	enum coll_kind kind;
	int root;
	int result;			/* -EAGAIN until the call completes */
	bool heap;			/* on the heap: a non-blocking call */
	const uint8_t *src;
	uint8_t *dst;
	size_t len;			/* length of each part in bytes */
	size_t n;			/* number of elements of a reduction */
	const struct sci_op *op;
	const size_t *lens, *offsets;
	const size_t *src_lens, *src_offsets;
	struct team_wait wait;
	/* flat.c */
	uint64_t k;			/* current epoch of this call */
	uint64_t epochs;
	uint64_t longest;
	int at;				/* index of the next source */
	int reads;			/* rank whose private memory is read; -1: none */
	int error;			/* of reading it */
	bool published;
	bool stay;			/* members read this member's heap in this call */
	uint32_t direct;		/* last epoch in which members read the heap */
	uint32_t to;			/* receiver of the slot */
	/* plan.c */
	struct plan *plan;
};

int flat_start(struct sci_coll *c);
int flat_step(struct sci_coll *c);
size_t flat_area_size(struct sci_team *t);
/* Return: 0 or -ENOMEM. team_free() frees what the call has allocated. */
int flat_open(struct sci_team *t);

/* Tell the other members whether this member can read the private memory of all. */
void flat_set_readable(struct sci_team *t, bool readable);

/* Tell the other members that this member does not use their areas any more. */
void flat_bye_send(struct sci_team *t);

/* Wait until no live member uses this member's area any more. */
void flat_bye_wait(struct sci_team *t);

/* Allocate the memory of the plan of blocking calls. */
int plan_reserve(struct sci_team *t);
void plan_free(struct plan *p);

/* Make the plan of a call. -ENOMEM: the call has had no effect, and can be repeated. */
int plan_prepare(struct sci_coll *c, bool blocking);
void plan_start(struct sci_coll *c);
void plan_end(struct sci_coll *c);

/* Step the queued calls of all teams. Context: world->lock is not held. */
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
