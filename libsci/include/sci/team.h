/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: teams
 *
 * A team is an ordered set of processes. Its members have ranks, 0 to size - 1. The
 * first team holds all processes that were started together; further teams are parts
 * of another one. A team has
 *
 *	symmetric memory	allocated by all members at once, at the same place in
 *				a heap that all have; any member may name another
 *				member's part by the address of its own part
 *	one-sided calls		put, get, atomics, signals, waits, locks
 *	collective calls	barrier, broadcast, reductions, gathers, scatters,
 *				all-to-all, scans
 *
 * Rules for all calls:
 *  - They return 0 (or what they say) or a negative errno value; errno itself means
 *    nothing after a call. -EINVAL: an argument is NULL or out of range.
 *  - A rank is an int, 0 to sci_team_size() - 1, in the team that the call names.
 *  - A symmetric address is an address in the caller's own part of symmetric memory.
 *    -EFAULT: not all bytes that a call names are symmetric.
 *  - All members of a team must make the same collective calls of this team in the
 *    same order, blocking or not. Collective calls of one team are made by one thread
 *    at a time. All other calls may be made by any threads at once, unless the team
 *    was opened with SCI_TEAM_SINGLE_THREAD. Nothing here may be called from a signal
 *    handler.
 *  - Lengths, offsets and strides are bytes. Timeouts are milliseconds; -1 waits for
 *    ever, 0 not at all.
 *  - A process makes progress while it is inside a call of its team or its endpoint.
 *    Where memory is not shared, puts, gets and messages of peers need no progress
 *    of their target, but atomics do.
 *  - When a member dies, calls that wait for it return -ECONNRESET within a second.
 *    A team with a dead member makes no more collective calls: -ECONNRESET.
 *    sci_team_shrink() makes a team of the living members.
 *  - A child after fork() has no teams: calls return -ENOTCONN there.
 */
#ifndef SCI_TEAM_H
#define SCI_TEAM_H

#include <stddef.h>
#include <stdint.h>

#include <sci/msg.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sci_team;			/* an ordered set of processes */
struct sci_coll;			/* a non-blocking collective call under way */

/* ---- teams ---- */

enum sci_team_flags {
	SCI_TEAM_SINGLE_THREAD	= 1 << 0 /* one thread at a time makes calls */
};

/**
 * struct sci_team_attr - how to open the team of all
 * @size: to be set to sizeof(struct sci_team_attr) by the caller
 * @symmetric_size: bytes of each process's symmetric heap; 0: SCI_SYMMETRIC_SIZE in
 *	the environment (a number with K, M or G), else 16 MiB
 * @flags: enum sci_team_flags
 */
struct sci_team_attr {
	size_t size;
	uint64_t symmetric_size;
	uint32_t flags;
	uint32_t reserved;
};

/**
 * sci_team_open() - open the team of all processes that were started together
 * @team: the team
 * @attr: NULL: the defaults
 *
 * Collective over all processes. They were started by sci run, mpirun or another
 * launcher that the library knows; a process that was started alone is a team of one.
 * SCI_TEAM_MEMORY in the environment limits how peers' memory is used: "all" (default):
 * wherever loads and stores reach it; "node": only between processes of one node;
 * "none": never.
 *
 * -EINVAL: also for what the environment asks; -EALREADY: the process has the team
 * open; -ENOMEM, -ENOSPC, -EMFILE: out of resources; errors of sci_ep_open();
 * -ECONNRESET: another process has died.
 */
int sci_team_open(struct sci_team **team, const struct sci_team_attr *attr);

/**
 * sci_team_close() - leave a team and free it
 *
 * Collective over the members that live; collective calls of the team must have
 * completed. The team of all takes all teams and symmetric memory of the process with
 * it. NULL is allowed.
 */
int sci_team_close(struct sci_team *team);

/**
 * sci_team_abort() - end all processes that were started together
 * @status: what the launcher exits with, 0 to 255
 *
 * Does not return: the process exits, and the launcher ends the others.
 */
void sci_team_abort(struct sci_team *team, int status);

int sci_team_rank(const struct sci_team *team);		/* the caller's rank */
int sci_team_size(const struct sci_team *team);		/* number of members */

/*
 * Nodes are numbered 0 to sci_team_nodes() - 1, in the order in which they appear
 * among the ranks.
 */
int sci_team_nodes(const struct sci_team *team);
int sci_team_node(const struct sci_team *team, int rank);
int sci_team_node_size(const struct sci_team *team, int node); /* members there */
int sci_team_local_rank(const struct sci_team *team, int rank); /* rank on its node */

/* The rank in @to of member @rank of @from. -ENOENT: it is no member of @to. */
int sci_team_translate(const struct sci_team *from, int rank,
		       const struct sci_team *to);

/* The team's endpoint, for messages of the program's. The team's, not to be closed. */
struct sci_ep *sci_team_ep(const struct sci_team *team);

/* The address of @rank's endpoint. */
int sci_team_addr(const struct sci_team *team, int rank, struct sci_addr *addr);

/**
 * sci_team_peer() - the connection to a member's endpoint
 * @peer: the team's, not to be disconnected
 *
 * The connection is made when it is first used. Untagged messages, tagged ones with
 * contexts below SCI_TEAM_CONTEXT, and handlers from SCI_HANDLER_USER on are the
 * program's. sci_peer_set_data() is the team's.
 */
int sci_team_peer(struct sci_team *team, int rank, struct sci_peer **peer);

#define SCI_TEAM_CONTEXT	0xfffffe00u	/* from here to ...feff: the team's */

/**
 * sci_team_split() - divide a team
 * @colour: members with the same colour become one team; negative: no team
 * @key: ranks are ordered by key, then by rank in @team
 * @out: the new team; NULL for a negative colour
 *
 * Collective over @team.
 */
int sci_team_split(struct sci_team *team, int colour, int key, struct sci_team **out);

/* sci_team_split() by node; ranks keep their order. */
int sci_team_split_node(struct sci_team *team, struct sci_team **out);

/**
 * sci_team_create() - make a team of some members
 * @ranks: ranks in @team, @n of them, each one once, the caller's among them
 * @out: the new team; its ranks have the order of @ranks
 *
 * Collective over the members that @ranks names: all name the same. The others need
 * not know of it.
 */
int sci_team_create(struct sci_team *team, const int *ranks, int n,
		    struct sci_team **out);

/* ---- death ---- */

/* 0: as far as is known the member lives; -ECONNRESET: it has died. */
int sci_team_alive(struct sci_team *team, int rank);

/**
 * sci_team_shrink() - make a team of the living members
 * @out: the new team; ranks keep their order
 *
 * Collective over the living members of @team, which agree on who they are. A member
 * that dies meanwhile is left out.
 */
int sci_team_shrink(struct sci_team *team, struct sci_team **out);

/* ---- symmetric memory ---- */

/**
 * sci_team_alloc() - allocate symmetric memory
 * @len: bytes; not 0; the same on all members
 * @align: a power of two, up to 4096; 0: 64
 * @addr: the caller's part, at the same offset in the heap on all members
 *
 * Collective over the team of all, or over a team that sci_team_shrink() has made of
 * it. The contents are undefined. Where the heap has no room it grows by another piece
 * if the system has the memory.
 *
 * -EINVAL: also, the members ask for different things; -ENOMEM, -ENOSPC: some member
 * has no memory: nothing is allocated, on any.
 */
int sci_team_alloc(struct sci_team *team, size_t len, size_t align, void **addr);

/*
 * Free what sci_team_alloc() gave. Collective as this; no member returns before all
 * have called. -EINVAL: @addr is not from sci_team_alloc().
 */
int sci_team_free(struct sci_team *team, void *addr);

/* Bytes allocated at @addr; 0: it is not from sci_team_alloc(). */
size_t sci_team_alloc_size(struct sci_team *team, const void *addr);

/**
 * sci_team_register() - make memory that exists symmetric
 * @addr: whole pages of private memory of the caller's: anonymous, or of a program's
 *	data; may differ from member to member
 * @len: the same on all members
 *
 * Collective as sci_team_alloc(). The bytes stay as they are, but a store of another
 * thread meanwhile may be lost. The memory stays symmetric until the team of all is
 * closed, and must not be unmapped before. Errors are those of sci_buf_register().
 */
int sci_team_register(struct sci_team *team, void *addr, size_t len);

/*
 * struct sci_team begins with this; it is public for sci_team_ptr() alone. @shift is
 * to be added to an address in the first piece of the heap, of @len bytes from @base
 * on; 1: loads and stores do not reach that member.
 */
struct sci_team_view {
	size_t base;
	size_t len;
	size_t ranks;
	const size_t *shift;
};

/* As sci_team_ptr(), for all symmetric memory. */
void *sci_team_ptr_any(const struct sci_team *team, const void *addr, int rank);

/**
 * sci_team_ptr() - a pointer to a member's part of symmetric memory
 * @addr: symmetric
 *
 * NULL: @addr is not symmetric, @rank is no member, or loads and stores do not reach
 * its memory. Memory that they reach is coherent: atomic instructions work there, too.
 * When the member has died they reach memory that nobody else sees.
 */
static __inline__ void *sci_team_ptr(const struct sci_team *team, const void *addr,
				     int rank)
{
	const struct sci_team_view *v = (const struct sci_team_view *)(const void *)team;
	size_t at = (size_t)addr, r = (size_t)rank;

	if (at - v->base < v->len && r < v->ranks && v->shift[r] != 1)
		return (void *)(at + v->shift[r]);
	return sci_team_ptr_any(team, addr, rank);
}

/* ---- put and get ---- */

/**
 * sci_team_put(), sci_team_get() - copy to, or from, a member's symmetric memory
 * @dst, @src: the remote one is a symmetric address, the local one any
 *
 * The local memory is the caller's again when the call returns. A get has its bytes
 * then; a put has arrived after sci_team_quiet(). -ECONNRESET: @rank has died, where
 * that is known and memory is not shared.
 */
int sci_team_put(struct sci_team *team, void *dst, const void *src, size_t len,
		 int rank);
int sci_team_get(struct sci_team *team, void *dst, const void *src, size_t len,
		 int rank);

/* The same, but local memory stays the library's until sci_team_quiet(). */
int sci_team_put_nbi(struct sci_team *team, void *dst, const void *src, size_t len,
		     int rank);
int sci_team_get_nbi(struct sci_team *team, void *dst, const void *src, size_t len,
		     int rank);

/*
 * @n elements of @len bytes each. Strides are from the start of an element to the start
 * of the next one; they may be negative.
 */
int sci_team_put_strided(struct sci_team *team, void *dst, ptrdiff_t dst_stride,
			 const void *src, ptrdiff_t src_stride, size_t len, size_t n,
			 int rank);
int sci_team_get_strided(struct sci_team *team, void *dst, ptrdiff_t dst_stride,
			 const void *src, ptrdiff_t src_stride, size_t len, size_t n,
			 int rank);

/* Puts and atomics of before arrive at each member before those of after. */
int sci_team_fence(struct sci_team *team);

/*
 * All puts, gets and atomics of this process, of all threads and teams, have completed,
 * and all members see them. The first error of a non-blocking one.
 */
int sci_team_quiet(struct sci_team *team);

/* How a signal word changes. */
enum sci_signal {
	SCI_SIGNAL_SET,
	SCI_SIGNAL_ADD
};

/**
 * sci_team_put_signal() - put, then change a word
 * @signal: 8 bytes, aligned, symmetric
 *
 * A process that sees the word's new value sees the bytes, too. The word is changed atomically.
 */
int sci_team_put_signal(struct sci_team *team, void *dst, const void *src, size_t len,
			uint64_t *signal, uint64_t value, enum sci_signal how, int rank);
int sci_team_put_signal_nbi(struct sci_team *team, void *dst, const void *src,
			    size_t len, uint64_t *signal, uint64_t value,
			    enum sci_signal how, int rank);

/* ---- atomics ---- */

enum sci_atomic {
	SCI_ATOMIC_GET,			/* no operand */
	SCI_ATOMIC_SET,
	SCI_ATOMIC_ADD,
	SCI_ATOMIC_AND,
	SCI_ATOMIC_OR,
	SCI_ATOMIC_XOR,
	SCI_ATOMIC_CAS,			/* set to the operand if it equals @compare */
	SCI_ATOMICS
};

/**
 * sci_team_atomic() - change a word of a member's atomically
 * @word: symmetric, aligned to @size
 * @size: 4 or 8 bytes
 * @operand, @compare: their low @size bytes count
 * @old: the word's value before; NULL: not wanted: then the call need not wait, see
 *	sci_team_quiet()
 *
 * Atomic with regard to other atomics and signals, and, where sci_team_ptr() is not
 * NULL, to atomic instructions.
 */
int sci_team_atomic(struct sci_team *team, void *word, unsigned int size,
		    enum sci_atomic op, uint64_t operand, uint64_t compare,
		    uint64_t *old, int rank);

/* *@old is set when sci_team_quiet() returns. */
int sci_team_atomic_nbi(struct sci_team *team, void *word, unsigned int size,
			enum sci_atomic op, uint64_t operand, uint64_t compare,
			uint64_t *old, int rank);

/* ---- waiting for a word ---- */

enum sci_cmp {
	SCI_CMP_EQ,
	SCI_CMP_NE,
	SCI_CMP_GT,
	SCI_CMP_GE,
	SCI_CMP_LT,
	SCI_CMP_LE,
	SCI_CMP_UNSIGNED	= 8	/* added to one of these: as unsigned numbers */
};

/**
 * struct sci_words - words of the caller's own memory that peers change
 * @words: @n of them, aligned
 * @skip: NULL, or @n of them: words with a value other than 0 are left out
 * @values: @n words to compare with; NULL: all are compared with @value
 * @size: of a word: 2, 4 or 8 bytes
 * @cmp: enum sci_cmp: what is waited for is "word @cmp value"
 */
struct sci_words {
	const void *words;
	size_t n;
	const int *skip;
	const void *values;
	uint64_t value;
	unsigned int size;
	unsigned int cmp;
};

/**
 * sci_team_wait_all(), _any(), _some() - wait until words have changed
 * @index: of one for which it is true; they are taken in turn
 * @indices: room for @w->n: of all for which it is true
 * @found: how many these are
 *
 * Puts of before the change of a word that a call has seen are seen, too.
 * -EAGAIN with a timeout of 0, else -ETIMEDOUT: not yet. Where no word is left: 0 of
 * _all; -ENOENT of the others. -ECONNRESET: not yet, and a member of the team has died.
 */
int sci_team_wait_all(struct sci_team *team, const struct sci_words *w, int timeout);
int sci_team_wait_any(struct sci_team *team, const struct sci_words *w, int timeout,
		      size_t *index);
int sci_team_wait_some(struct sci_team *team, const struct sci_words *w, int timeout,
		       size_t *indices, size_t *found);

/* Wait for one word. */
int sci_team_wait_until(struct sci_team *team, const void *word, unsigned int size,
			unsigned int cmp, uint64_t value, int timeout);

/* ---- locks ---- */

/**
 * sci_team_lock() - take a lock
 * @lock: 8 bytes, aligned, symmetric, 0 on all members at first
 * @timeout: after which the caller gives up
 *
 * Members get the lock in the order in which they ask. A member must not ask for a
 * lock it holds.
 *
 * -EAGAIN with a timeout of 0, else -ETIMEDOUT: another one has it.
 * -EOWNERDEAD: the member that had it has died; the caller has the lock now, and what
 * it protects may be in any state. -ECONNRESET: the member with rank 0, where the
 * lock's word is, has died.
 */
int sci_team_lock(struct sci_team *team, uint64_t *lock, int timeout);

/* Puts of before are complete. -EPERM: the caller does not hold it. */
int sci_team_unlock(struct sci_team *team, uint64_t *lock);

/* ---- operations of reductions ---- */

enum sci_type {
	SCI_TYPE_INT8,
	SCI_TYPE_INT16,
	SCI_TYPE_INT32,
	SCI_TYPE_INT64,
	SCI_TYPE_UINT8,
	SCI_TYPE_UINT16,
	SCI_TYPE_UINT32,
	SCI_TYPE_UINT64,
	SCI_TYPE_FLOAT,
	SCI_TYPE_DOUBLE,
	SCI_TYPE_LONG_DOUBLE,
	SCI_TYPE_FLOAT_COMPLEX,
	SCI_TYPE_DOUBLE_COMPLEX,
	SCI_TYPE_LONG_DOUBLE_COMPLEX,
	SCI_TYPE_INT16_INT,		/* struct { int16_t value; int index; } */
	SCI_TYPE_INT32_INT,		/* and so on: of MINLOC and MAXLOC alone */
	SCI_TYPE_INT64_INT,
	SCI_TYPE_FLOAT_INT,
	SCI_TYPE_DOUBLE_INT,
	SCI_TYPE_LONG_DOUBLE_INT,
	SCI_TYPES
};

/*
 * Sums and products are of all numbers; MIN and MAX of all but complex ones; logical
 * operations, which yield 0 or 1, and bitwise ones of integers.
 */
enum sci_op_kind {
	SCI_OP_SUM,
	SCI_OP_PROD,
	SCI_OP_MIN,
	SCI_OP_MAX,
	SCI_OP_LAND,
	SCI_OP_LOR,
	SCI_OP_LXOR,
	SCI_OP_BAND,
	SCI_OP_BOR,
	SCI_OP_BXOR,
	SCI_OP_MINLOC,			/* the least value, and its least index */
	SCI_OP_MAXLOC,
	SCI_OPS
};

/**
 * struct sci_op - an operation of a reduction
 * @size: bytes of an element, at most 4096
 * @fn: for each of @n elements: inout = in @fn inout, where in comes from lower ranks
 * @arg: passed to @fn
 *
 * Operations are associative. Elements are combined in the order of ranks, so that they
 * need not be commutative. The same call with the same team and count gives the same
 * result on all members, bit for bit.
 */
struct sci_op {
	size_t size;
	void (*fn)(void *inout, const void *in, size_t n, void *arg);
	void *arg;
};

/* An operation of the library's, good for ever. NULL: the type has no such operation. */
const struct sci_op *sci_op(enum sci_op_kind kind, enum sci_type type);

/* Bytes of an element; 0: no such type. */
size_t sci_type_size(enum sci_type type);

/* ---- collective calls ---- */

/*
 * Each has a non-blocking form, below. @len is the bytes that one member gives or gets;
 * all name the same. In the forms with v each member has a length of its own: @lens and
 * @offsets are arrays by rank; NULL offsets: one behind the other.
 *
 * @src and @dst may be any memory, symmetric or not. They do not overlap, but where a
 * member's own part is the same address in both it is in its place: in reductions and
 * scans @src may be @dst, in gathers, scatters and all-gathers @src may be the
 * caller's own part of @dst (or the other way), in all-to-alls nothing.
 * Arguments that only the root uses are ignored elsewhere.
 *
 * When a call returns, the buffers are the caller's again. Only a barrier, and calls in
 * which each member gets something from every other one, wait for all.
 */
int sci_team_barrier(struct sci_team *team);
int sci_team_bcast(struct sci_team *team, int root, void *buf, size_t len);

/* @n elements of @op->size bytes. */
int sci_team_reduce(struct sci_team *team, int root, const void *src, void *dst,
		    size_t n, const struct sci_op *op);
int sci_team_allreduce(struct sci_team *team, const void *src, void *dst, size_t n,
		       const struct sci_op *op);

/*
 * @src has elements for all members, one member's behind the other's: @n each, or
 * @counts[rank], which is the same array on all.
 */
int sci_team_reduce_scatter(struct sci_team *team, const void *src, void *dst,
			    size_t n, const struct sci_op *op);
int sci_team_reduce_scatterv(struct sci_team *team, const void *src, void *dst,
			     const size_t *counts, const struct sci_op *op);

/* Of the ranks up to the caller's; exscan: without the caller's: rank 0 gets nothing. */
int sci_team_scan(struct sci_team *team, const void *src, void *dst, size_t n,
		  const struct sci_op *op);
int sci_team_exscan(struct sci_team *team, const void *src, void *dst, size_t n,
		    const struct sci_op *op);

int sci_team_gather(struct sci_team *team, int root, const void *src, size_t len,
		    void *dst);
int sci_team_gatherv(struct sci_team *team, int root, const void *src, size_t len,
		     void *dst, const size_t *lens, const size_t *offsets);
int sci_team_allgather(struct sci_team *team, const void *src, size_t len, void *dst);
/* @lens is the same on all; @lens[rank] is what the caller gives. */
int sci_team_allgatherv(struct sci_team *team, const void *src, void *dst,
			const size_t *lens, const size_t *offsets);
int sci_team_scatter(struct sci_team *team, int root, const void *src, void *dst,
		     size_t len);
int sci_team_scatterv(struct sci_team *team, int root, const void *src,
		      const size_t *lens, const size_t *offsets, void *dst, size_t len);
int sci_team_alltoall(struct sci_team *team, const void *src, void *dst, size_t len);
/* The length that member i gives to j equals the length that j expects from i. */
int sci_team_alltoallv(struct sci_team *team, const void *src, const size_t *src_lens,
		       const size_t *src_offsets, void *dst, const size_t *dst_lens,
		       const size_t *dst_offsets);

/* ---- non-blocking collective calls ---- */

/*
 * As the calls above. Buffers, and arrays of lengths, offsets and counts, are the
 * library's until the call has completed. Any number may be under way; they, and
 * blocking ones, complete in the order in which a team's calls were made.
 */
int sci_team_ibarrier(struct sci_team *team, struct sci_coll **coll);
int sci_team_ibcast(struct sci_team *team, int root, void *buf, size_t len,
		    struct sci_coll **coll);
int sci_team_ireduce(struct sci_team *team, int root, const void *src, void *dst,
		     size_t n, const struct sci_op *op, struct sci_coll **coll);
int sci_team_iallreduce(struct sci_team *team, const void *src, void *dst, size_t n,
			const struct sci_op *op, struct sci_coll **coll);
int sci_team_ireduce_scatter(struct sci_team *team, const void *src, void *dst,
			     size_t n, const struct sci_op *op,
			     struct sci_coll **coll);
int sci_team_ireduce_scatterv(struct sci_team *team, const void *src, void *dst,
			      const size_t *counts, const struct sci_op *op,
			      struct sci_coll **coll);
int sci_team_iscan(struct sci_team *team, const void *src, void *dst, size_t n,
		   const struct sci_op *op, struct sci_coll **coll);
int sci_team_iexscan(struct sci_team *team, const void *src, void *dst, size_t n,
		     const struct sci_op *op, struct sci_coll **coll);
int sci_team_igather(struct sci_team *team, int root, const void *src, size_t len,
		     void *dst, struct sci_coll **coll);
int sci_team_igatherv(struct sci_team *team, int root, const void *src, size_t len,
		      void *dst, const size_t *lens, const size_t *offsets,
		      struct sci_coll **coll);
int sci_team_iallgather(struct sci_team *team, const void *src, size_t len, void *dst,
			struct sci_coll **coll);
int sci_team_iallgatherv(struct sci_team *team, const void *src, void *dst,
			 const size_t *lens, const size_t *offsets,
			 struct sci_coll **coll);
int sci_team_iscatter(struct sci_team *team, int root, const void *src, void *dst,
		      size_t len, struct sci_coll **coll);
int sci_team_iscatterv(struct sci_team *team, int root, const void *src,
		       const size_t *lens, const size_t *offsets, void *dst, size_t len,
		       struct sci_coll **coll);
int sci_team_ialltoall(struct sci_team *team, const void *src, void *dst, size_t len,
		       struct sci_coll **coll);
int sci_team_ialltoallv(struct sci_team *team, const void *src, const size_t *src_lens,
			const size_t *src_offsets, void *dst, const size_t *dst_lens,
			const size_t *dst_offsets, struct sci_coll **coll);

/**
 * sci_coll_wait() - wait for a non-blocking collective call
 * @coll: gone, unless -EAGAIN or -ETIMEDOUT is returned
 *
 * -EAGAIN with a timeout of 0, else -ETIMEDOUT: not yet. Errors are those of the call.
 */
int sci_coll_wait(struct sci_coll *coll, int timeout);

/**
 * sci_team_progress() - move what can be moved
 *
 * For programs that compute while calls are under way. Never blocks.
 */
int sci_team_progress(struct sci_team *team);

#ifdef __cplusplus
}
#endif

#endif
