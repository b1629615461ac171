/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: teams
 *
 * A team is an ordered set of processes. Its members have ranks, 0 to size - 1. The first
 * team consists of all processes that were started together. Every other team is a part of
 * an existing team. A team has
 *
 *	symmetric memory	all members allocate it together, at the same offset in the
 *				heap of each member; a member names the memory of another
 *				member by the address of its own part
 *	one-sided calls		put, get, atomics, signals, waits, locks
 *	collective calls	barrier, broadcast, reductions, gathers, scatters,
 *				all-to-all, scans
 *
 * Rules for all calls:
 *  - Unless a call says otherwise, it returns 0 or a negative errno value. errno itself means
 *    nothing after a call. -EINVAL: an argument is NULL or out of range.
 *  - A rank is an int, 0 to sci_team_size() - 1, in the team that the call names.
 *  - A symmetric address is an address in the caller's own part of symmetric memory.
 *    -EFAULT: the call names bytes that are not symmetric.
 *  - All members of a team must make the same collective calls of this team in the same
 *    order, blocking or not. Only one thread at a time may make collective calls of a team.
 *    Several threads may make all other calls at the same time, unless the team was opened with
 *    SCI_TEAM_SINGLE_THREAD. Signal handlers must not make any of these calls.
 *  - Lengths, offsets and strides are in bytes. Timeouts are in milliseconds; -1 waits for
 *    ever, 0 does not wait.
 *  - A process makes progress while it is inside a call of its team or its endpoint. Without
 *    shared memory, atomics need progress of their target, and locks need progress of rank 0.
 *    Puts, gets and messages do not need progress of their target. Only calls of a team advance
 *    pending non-blocking collective calls: see sci_team_progress().
 *  - When a member dies, calls that wait for it return -ECONNRESET within a second. All later
 *    collective calls of the team return -ECONNRESET. sci_team_shrink() makes a team of the
 *    members that are alive. When the connection of two living members ends, their calls return
 *    -ECONNRESET, and those of the other members a second later.
 *  - In the child of a fork(), all calls return -ENOTCONN.
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
struct sci_team_launcher;		/* a launcher of processes that the program starts */
struct sci_coll;			/* a non-blocking collective call */

/* ---- teams ---- */

enum sci_team_flags {
	SCI_TEAM_SINGLE_THREAD	= 1 << 0 /* only one thread at a time makes calls */
};

/**
 * struct sci_team_attr - how to open the team of all processes
 * @size: the caller sets it to sizeof(struct sci_team_attr)
 * @symmetric_size: bytes of each process's symmetric heap; 0: the value of
 *	SCI_SYMMETRIC_SIZE in the environment (a number with K, M or G), else 16 MiB
 * @flags: enum sci_team_flags
 * @boot: text of sci_team_launcher_boot(); NULL: the environment names the launcher
 */
struct sci_team_attr {
	size_t size;
	uint64_t symmetric_size;
	uint32_t flags;
	uint32_t reserved;
	const char *boot;
};

/**
 * sci_team_open() - open the team of all processes that were started together
 * @team: is set to the team
 * @attr: NULL: the defaults
 *
 * This is a collective call of all processes that `sci run`, mpirun or another supported launcher
 * has started together. A process that was started alone is a team of one. The variable
 * SCI_TEAM_MEMORY in the environment limits the use of shared memory. "all" (default): share memory
 * wherever loads and stores reach it; "node": only between processes of one node; "none": never.
 * Return: 0; -EINVAL: an argument or a variable in the environment is invalid; -E2BIG: @attr has
 * members that this library does not know, and they are not 0; -ENOENT: @attr->boot names no
 * descriptor of a launcher; -EALREADY: the process has already opened the team; -ENOMEM, -ENOSPC,
 * -EMFILE: some process is out of resources; -ECONNRESET: another process has died, or its call
 * has failed; -ENETDOWN: a link has been down for a minute; or an error of sci_ep_open().
 */
int sci_team_open(struct sci_team **team, const struct sci_team_attr *attr);

/**
 * sci_team_close() - leave a team and free it
 * @team: NULL is ignored
 *
 * This is a collective call of the members that are alive. All collective calls of the team
 * must have completed. Closing the team of all processes also frees all other teams and the
 * symmetric memory of the process.
 * Return: 0 or -ENOTCONN.
 */
int sci_team_close(struct sci_team *team);

/**
 * sci_team_abort() - end all processes that were started together
 * @status: exit status of the launcher, 0 to 255
 *
 * The call does not return: the process exits, and the launcher ends the other processes.
 */
void sci_team_abort(struct sci_team *team, int status) __attribute__((noreturn));

/* ---- a launcher in the program ---- */

/**
 * struct sci_team_launcher_attr - the processes of a launcher
 * @size: the caller sets it to sizeof(struct sci_team_launcher_attr)
 * @processes: number of processes, 1 to 65536
 * @nodes: node id of each process; NULL: unknown. sci_team_launcher_open() copies the array.
 * @abort: NULL, or a function that the launcher's thread calls when a process has called
 *	sci_team_abort() with @status. It should end the other processes. It must not make calls
 *	of the launcher.
 * @arg: is passed to @abort
 */
struct sci_team_launcher_attr {
	size_t size;
	uint32_t processes;
	uint32_t reserved;
	const uint32_t *nodes;
	void (*abort)(void *arg, int rank, int status);
	void *arg;
};

/**
 * sci_team_launcher_open() - open a launcher for processes that the caller starts
 * @launcher: is set to the launcher
 *
 * This call is for programs that start processes by themselves, without `sci run`. A thread of the
 * library is the launcher. Each process opens the team of all processes with sci_team_open(). For
 * that it inherits a descriptor from the caller, and gets the name of the descriptor:
 *
 *	a child of fork()	calls sci_team_launcher_child() and passes
 *				sci_team_launcher_boot() in struct sci_team_attr
 *	another program		finds this text in SCI_BOOT in its environment. The caller
 *				clears FD_CLOEXEC of sci_team_launcher_fd().
 *
 * The caller itself may be one of the processes. When a process has ended, the caller calls
 * sci_team_launcher_ended(). Any thread may make these calls, but no thread may make them
 * during sci_team_launcher_close().
 * Return: 0; -EINVAL: an argument is out of range; -E2BIG: @attr has members that this library
 * does not know, and they are not 0; -EMFILE, -ENFILE: two descriptors per process are too many;
 * -EAGAIN: no thread can be started; -ENOMEM.
 */
int sci_team_launcher_open(struct sci_team_launcher **launcher,
			   const struct sci_team_launcher_attr *attr);

/**
 * sci_team_launcher_close() - end a launcher
 * @launcher: NULL is ignored
 *
 * Processes that still run lose the launcher. They can go on, but the launcher reports no more
 * deaths to them.
 */
void sci_team_launcher_close(struct sci_team_launcher *launcher);

/**
 * sci_team_launcher_boot() - get the text that names a process's descriptor of the launcher
 * @rank: 0 to the number of processes less 1
 * Return: a text that is valid until sci_team_launcher_close(); NULL: there is no such process.
 */
const char *sci_team_launcher_boot(struct sci_team_launcher *launcher, int rank);

/**
 * sci_team_launcher_fd() - get the descriptor that a process has to inherit
 *
 * The descriptor has FD_CLOEXEC, and belongs to the launcher.
 * Return: the descriptor, or -EINVAL.
 */
int sci_team_launcher_fd(struct sci_team_launcher *launcher, int rank);

/**
 * sci_team_launcher_child() - make a child of fork() a process of the launcher
 * @rank: rank of the child
 *
 * The call closes the descriptors of the launcher and of other processes: while the child has them,
 * no process can detect the end of the launcher. A child that shares its descriptors
 * with the launcher must not call this. No other call of @launcher is allowed in the child,
 * except for sci_team_launcher_boot().
 * Return: 0 or -EINVAL.
 */
int sci_team_launcher_child(struct sci_team_launcher *launcher, int rank);

/**
 * sci_team_launcher_ended() - report that a process has ended
 * @failed: not 0 if the process may have ended before it opened the team, or by an error
 *
 * Other processes that wait for this process return from their calls with -ECONNRESET, unless it
 * has closed the team.
 * Return: 0; -EINVAL: there is no such process, or its end has been reported before.
 */
int sci_team_launcher_ended(struct sci_team_launcher *launcher, int rank, int failed);

/* ---- members ---- */

/* Return the caller's rank in a team, or the number of members of the team. */
int sci_team_rank(const struct sci_team *team);
int sci_team_size(const struct sci_team *team);

/*
 * Nodes are numbered 0 to sci_team_nodes() - 1, in the order in which they appear among the
 * ranks. Return the number of nodes, the node of a member, the number of members on a node, or
 * the rank of a member among the members on its node.
 */
int sci_team_nodes(const struct sci_team *team);
int sci_team_node(const struct sci_team *team, int rank);
int sci_team_node_size(const struct sci_team *team, int node);
int sci_team_local_rank(const struct sci_team *team, int rank);

/*
 * Translate a rank. Return the rank in @to of member @rank of @from; -ENOENT: it is not a member
 * of @to.
 */
int sci_team_translate(const struct sci_team *from, int rank,
		       const struct sci_team *to);

/*
 * Return the team's endpoint, for messages of the program. The program must not close it. The handler
 * SCI_HANDLER_USER - 1 of this endpoint belongs to the team.
 */
struct sci_ep *sci_team_ep(const struct sci_team *team);

/* Get the address of @rank's endpoint. Return: 0 or -EINVAL. */
int sci_team_addr(const struct sci_team *team, int rank, struct sci_addr *addr);

/**
 * sci_team_peer() - get the connection to a member's endpoint
 * @peer: is set to the connection; do not disconnect it
 *
 * The first use makes the connection. The program may use untagged messages, tagged messages
 * with contexts below SCI_TEAM_CONTEXT, and handlers from SCI_HANDLER_USER on. The program must
 * not call sci_peer_set_data().
 * Return: 0; or an error of sci_peer_open().
 */
int sci_team_peer(struct sci_team *team, int rank, struct sci_peer **peer);

#define SCI_TEAM_CONTEXT	0xfffffe00u	/* first of 256 contexts of the team */

/**
 * sci_team_split() - divide a team
 * @colour: members with the same colour form a team; negative: the caller gets no team
 * @key: ranks are ordered by key, then by rank in @team
 * @out: is set to the new team; NULL for a negative colour
 *
 * This is a collective call of @team. If a member of @team is out of resources, no member gets
 * a new team.
 * Return: 0; -ENOMEM, -ENOSPC: some member is out of resources; -ECONNRESET: a member has died;
 * -ENOBUFS: a connection ended because the memory of a member ended. After the last two errors, other
 * members may get another error, or a new team whose calls fail.
 */
int sci_team_split(struct sci_team *team, int colour, int key, struct sci_team **out);

/* Split @team by node. Ranks keep their order. Return: as for sci_team_split(). */
int sci_team_split_node(struct sci_team *team, struct sci_team **out);

/**
 * sci_team_create() - make a team of some members
 * @ranks: @n different ranks in @team, one of them the caller's
 * @out: is set to the new team; its ranks have the order of @ranks
 *
 * This is a collective call of the members in @ranks, which all pass the same list. Other
 * members need not call.
 * Return: 0; -ENOMEM, -ENOSPC: some member in @ranks is out of resources, and no member gets
 * the team; -EAGAIN: the caller has no memory for connections, and the other members wait until
 * it calls again; -ECONNRESET, -ENOBUFS: as for sci_team_split().
 */
int sci_team_create(struct sci_team *team, const int *ranks, int n,
		    struct sci_team **out);

/* ---- death of members ---- */

/* Return -ECONNRESET if member @rank is known to have died, else 0. */
int sci_team_alive(struct sci_team *team, int rank);

/**
 * sci_team_shrink() - make a team of the members that are alive
 * @out: is set to the new team; ranks keep their order
 *
 * This is a collective call of the members of @team that are alive. They agree on the list of
 * these members. The new team may lack a member that dies during the call.
 * Return: 0; -ENOMEM, -EAGAIN, -ENOSPC: out of resources: either all members get such an error,
 * and all may call again, or the new team lacks this process; -ECONNRESET: the members
 * cannot agree, because the launcher has ended, or the team of an earlier call lacks this process.
 */
int sci_team_shrink(struct sci_team *team, struct sci_team **out);

/* ---- symmetric memory ---- */

#define SCI_TEAM_ALIGN_MAX	((size_t)1 << 30)	/* largest alignment of sci_team_alloc() */

/**
 * sci_team_alloc() - allocate symmetric memory
 * @len: bytes; not 0; the same on all members
 * @align: a power of two, up to SCI_TEAM_ALIGN_MAX; 0 means 64
 * @addr: is set to the caller's part, which has the same offset in the heap on all members
 *
 * This is a collective call of the team of all processes, or of a team that sci_team_shrink()
 * has made of the team of all processes. The contents are undefined. If the heap is full, the
 * library extends it if the system has the memory. The library also extends the heap if the heaps
 * of two members lie differently in blocks of @align bytes: such an extension takes @align bytes or
 * a quarter more, and serves all later allocations of at most this alignment. Addresses in the
 * memory of other members that sci_team_ptr() returns are aligned up to a page.
 * Return: 0; -EINVAL: also if the members pass different arguments; -ENOMEM, -ENOSPC: some
 * member has no memory, and no member has allocated any; -ECONNRESET: a member has died.
 */
int sci_team_alloc(struct sci_team *team, size_t len, size_t align, void **addr);

/*
 * Free memory of sci_team_alloc(). This is a collective call of the team that allocated the memory.
 * No member returns before all members have called.
 * Return: 0; -EINVAL: @addr is not from sci_team_alloc(); -ECONNRESET: a member has died.
 */
int sci_team_free(struct sci_team *team, void *addr);

/* Return the number of bytes allocated at @addr; 0: it is not from sci_team_alloc(). */
size_t sci_team_alloc_size(struct sci_team *team, const void *addr);

/**
 * sci_team_register() - make existing memory symmetric
 * @addr: whole pages of the caller's private memory: anonymous memory, or data of the program. The
 *	address may differ between members.
 * @len: bytes; the same on all members
 *
 * This is a collective call of the same teams as sci_team_alloc(). The bytes are kept, but a
 * store by another thread during the call may be lost. The memory stays symmetric until the
 * team of all processes is closed. Do not unmap it before.
 * Return: 0; -ECONNRESET: a member has died; or an error of sci_buf_register().
 */
int sci_team_register(struct sci_team *team, void *addr, size_t len);

/*
 * The first part of struct sci_team, which is public only for sci_team_ptr(). The first region of
 * the caller's heap has @len bytes from @base on. @shift[rank] is the distance from this region to
 * the same region of member @rank; 1: loads and stores do not reach the member.
 */
struct sci_team_view {
	size_t base;
	size_t len;
	size_t ranks;
	const size_t *shift;
};

/* Do what sci_team_ptr() does, for all symmetric memory. Return: as for sci_team_ptr(). */
void *sci_team_ptr_any(const struct sci_team *team, const void *addr, int rank);

/**
 * sci_team_ptr() - get a pointer to a member's part of symmetric memory
 * @addr: a symmetric address
 *
 * The memory is coherent: atomic instructions work on it, too. After the death of the member,
 * the pointer points to memory that no other process uses.
 * Return: the pointer; NULL: @addr is not symmetric, @rank is not a member, or loads and stores
 * do not reach the member's memory.
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
 * @dst, @src: the remote address must be symmetric; the local address may be any address
 *
 * When the call returns, the caller may reuse the local memory, and the bytes of a get have
 * arrived. The bytes of a put have arrived after sci_team_quiet().
 * Return: 0; -ECONNRESET: @rank is known to have died and its memory is not shared; -ENOMEM:
 * out of memory, where memory is not shared.
 */
int sci_team_put(struct sci_team *team, void *dst, const void *src, size_t len,
		 int rank);
int sci_team_get(struct sci_team *team, void *dst, const void *src, size_t len,
		 int rank);

/*
 * Put or get without waiting. The caller must not touch the local memory until sci_team_quiet().
 * Return: as for sci_team_put().
 */
int sci_team_put_nbi(struct sci_team *team, void *dst, const void *src, size_t len,
		     int rank);
int sci_team_get_nbi(struct sci_team *team, void *dst, const void *src, size_t len,
		     int rank);

/*
 * Put or get @n elements of @len bytes each. A stride is the distance in bytes from the start of
 * an element to the start of the next element, and may be negative.
 * Return: as for sci_team_put().
 */
int sci_team_put_strided(struct sci_team *team, void *dst, ptrdiff_t dst_stride,
			 const void *src, ptrdiff_t src_stride, size_t len, size_t n,
			 int rank);
int sci_team_get_strided(struct sci_team *team, void *dst, ptrdiff_t dst_stride,
			 const void *src, ptrdiff_t src_stride, size_t len, size_t n,
			 int rank);

/*
 * Order puts and atomics: at each member, earlier transfers arrive before later transfers.
 * Return: 0, or the first error of a non-blocking call.
 */
int sci_team_fence(struct sci_team *team);

/*
 * Complete all puts, gets and atomics of this process, of all threads and teams. When the call
 * returns, all members see them.
 * Return: 0, or the first error of a non-blocking call.
 */
int sci_team_quiet(struct sci_team *team);

/* How sci_team_put_signal() changes the signal word. */
enum sci_signal {
	SCI_SIGNAL_SET,
	SCI_SIGNAL_ADD
};

/**
 * sci_team_put_signal() - put, then change a word
 * @signal: the word: 8 bytes, aligned, symmetric
 *
 * The word changes atomically. A process that sees its new value also sees the bytes of the put.
 * The _nbi call does not wait: the caller must not touch @src until sci_team_quiet().
 * Return: as for sci_team_put().
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
 * sci_team_atomic() - change a word of a member atomically
 * @word: symmetric, aligned to @size
 * @size: 4 or 8 bytes
 * @operand, @compare: values; only their low @size bytes count
 * @old: is set to the old value of the word. With NULL the call may return before the change:
 *	sci_team_quiet() waits for it.
 *
 * The change is atomic to other atomics and signals. Where sci_team_ptr() is not NULL, it is
 * also atomic to atomic instructions.
 * Return: 0; -ECONNRESET: the member has died; -ENOMEM: out of memory, where memory is not shared.
 */
int sci_team_atomic(struct sci_team *team, void *word, unsigned int size,
		    enum sci_atomic op, uint64_t operand, uint64_t compare,
		    uint64_t *old, int rank);

/* Start sci_team_atomic(). sci_team_quiet() waits for *@old. Return: as for sci_team_atomic(). */
int sci_team_atomic_nbi(struct sci_team *team, void *word, unsigned int size,
			enum sci_atomic op, uint64_t operand, uint64_t compare,
			uint64_t *old, int rank);

/* ---- waiting for words ---- */

enum sci_cmp {
	SCI_CMP_EQ,
	SCI_CMP_NE,
	SCI_CMP_GT,
	SCI_CMP_GE,
	SCI_CMP_LT,
	SCI_CMP_LE,
	SCI_CMP_UNSIGNED	= 8	/* added to another value: compare unsigned */
};

/**
 * struct sci_words - words of the caller's own memory that other members change
 * @words: @n words, aligned
 * @skip: leave out each word i with @skip[i] != 0; or NULL
 * @values: @n words to compare with; NULL: compare all words with @value
 * @size: size of a word: 2, 4 or 8 bytes
 * @cmp: enum sci_cmp: the condition is "word @cmp value"
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
 * sci_team_wait_all(), _any(), _some() - wait for words that satisfy a condition
 * @index: is set to the index of such a word; repeated calls find such words in turn
 * @indices: room for @w->n indices; is set to the indices of all such words
 * @found: is set to the number of these indices
 *
 * If a call has seen the change of a word, the caller also sees the puts that came before the
 * change. A call that has waited for some time sleeps. Puts, signals and atomics of other members
 * wake it. A store through sci_team_ptr() does not: the call tests the words again after an
 * eighth of the time that it has waited, and after at most 5 ms.
 * Return: 0; with a timeout of 0 -EAGAIN, otherwise -ETIMEDOUT: the condition is not satisfied;
 * -ENOENT: _any and _some skip all words (_all returns 0); -ECONNRESET: the condition is
 * not satisfied, and a member of the team has died.
 */
int sci_team_wait_all(struct sci_team *team, const struct sci_words *w, int timeout);
int sci_team_wait_any(struct sci_team *team, const struct sci_words *w, int timeout,
		      size_t *index);
int sci_team_wait_some(struct sci_team *team, const struct sci_words *w, int timeout,
		       size_t *indices, size_t *found);

/* Wait until "@word @cmp @value" is satisfied. Return: as for sci_team_wait_all(). */
int sci_team_wait_until(struct sci_team *team, const void *word, unsigned int size,
			unsigned int cmp, uint64_t value, int timeout);

/* ---- locks ---- */

/**
 * sci_team_lock() - take a lock
 * @lock: 8 bytes, aligned, symmetric, initially 0 on all members
 *
 * Members get the lock in the order of their calls. A member must not take a lock that it holds.
 * Without shared memory, a member that takes and releases a lock exchanges four messages with rank
 * 0, and sends no message while it waits. Only a call of a team that rank 0 makes gives the lock to
 * such a member.
 * Return: 0; with a timeout of 0 -EAGAIN, otherwise -ETIMEDOUT: another member holds the lock;
 * -EOWNERDEAD: the caller has the lock, but the member that held it before has died, and the data
 * that the lock protects may be in any state; -ECONNRESET: the member with rank 0, which has the
 * lock's word, has died, or the connection to it has ended; -ENOMEM: where memory is not shared, out
 * of memory, or 32,767 requests of members without shared memory wait; -ENOBUFS: the connection to
 * rank 0 has ended for want of memory.
 */
int sci_team_lock(struct sci_team *team, uint64_t *lock, int timeout);

/*
 * Complete all puts and release a lock, also if a put has failed. Return: 0; -EPERM: the caller does
 * not hold the lock; -ECONNRESET, -ENOMEM: as for sci_team_lock(); otherwise the result of
 * sci_team_quiet(), whose errors do not keep the lock.
 */
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
	SCI_TYPE_INT32_INT,		/* types with an index are for MINLOC and MAXLOC */
	SCI_TYPE_INT64_INT,
	SCI_TYPE_FLOAT_INT,
	SCI_TYPE_DOUBLE_INT,
	SCI_TYPE_LONG_DOUBLE_INT,
	SCI_TYPES
};

/*
 * SUM and PROD are defined for all numbers, MIN and MAX for all numbers that are not complex.
 * The logical operations, whose results are 0 or 1, and the bitwise operations are defined for
 * integers.
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
	SCI_OP_MINLOC,			/* the least value, and the least index with it */
	SCI_OP_MAXLOC,
	SCI_OPS
};

/**
 * struct sci_op - an operation of a reduction
 * @size: bytes of an element, at most 4096
 * @fn: sets inout to "in OPERATION inout" for each of @n elements; in comes from lower ranks
 * @arg: passed to @fn
 *
 * Operations must be associative. They need not be commutative, because elements are combined
 * in the order of ranks. The same call with the same team and count gives the same result on
 * all members, bit for bit.
 */
struct sci_op {
	size_t size;
	void (*fn)(void *inout, const void *in, size_t n, void *arg);
	void *arg;
};

/* Return a predefined operation, which is never freed. NULL: the type has no such operation. */
const struct sci_op *sci_op(enum sci_op_kind kind, enum sci_type type);

/* Return the number of bytes of an element; 0: there is no such type. */
size_t sci_type_size(enum sci_type type);

/* ---- collective calls ---- */

/*
 * Each sci_team_NAME() has a non-blocking form, sci_team_iNAME(). @len is the number of bytes that
 * one member contributes or gets; all members pass the same value. In the calls with a final v each
 * member has its own length: @lens and @offsets are arrays by rank. If @offsets is NULL, the parts
 * are contiguous.
 *
 * @src and @dst may be any memory, symmetric or not. They must not overlap, with one exception: the
 * caller's own part may be in place. In reductions and scans @src may be @dst. In gathers, scatters
 * and all-gathers the caller's part of the large buffer may be the small buffer. In all-to-alls
 * there is no exception. Arguments that only the root uses are ignored on other members.
 *
 * When a call returns, the caller may reuse its buffers. Only a barrier, and calls in which each
 * member gets bytes from every other member, wait for all members. -ENOMEM changes nothing: the
 * other members wait until this member has made the call again. Every other error
 * breaks the team: all later collective calls return that error, on all members.
 * Return: 0; -EMSGSIZE: the members have passed different lengths, which not every call detects;
 * -ECONNRESET: a member has died; -ENOMEM: the caller has no memory for the call; -ENOBUFS: the
 * memory of a member ended during the call.
 */
int sci_team_barrier(struct sci_team *team);
int sci_team_bcast(struct sci_team *team, int root, void *buf, size_t len);

/* Reduce @n elements of @op->size bytes. Return: as for sci_team_barrier(). */
int sci_team_reduce(struct sci_team *team, int root, const void *src, void *dst,
		    size_t n, const struct sci_op *op);
int sci_team_allreduce(struct sci_team *team, const void *src, void *dst, size_t n,
		       const struct sci_op *op);

/*
 * Reduce, and scatter the result. @src has elements for all members, contiguous in the order of
 * ranks: @n for each member, or @counts[rank], an array that is the same on all members.
 * Return: as for sci_team_barrier().
 */
int sci_team_reduce_scatter(struct sci_team *team, const void *src, void *dst,
			    size_t n, const struct sci_op *op);
int sci_team_reduce_scatterv(struct sci_team *team, const void *src, void *dst,
			     const size_t *counts, const struct sci_op *op);

/*
 * Reduce the elements of the ranks up to the caller's rank. An exscan excludes the caller: rank 0
 * gets no result.
 * Return: as for sci_team_barrier().
 */
int sci_team_scan(struct sci_team *team, const void *src, void *dst, size_t n,
		  const struct sci_op *op);
int sci_team_exscan(struct sci_team *team, const void *src, void *dst, size_t n,
		    const struct sci_op *op);

/*
 * Gather the parts of all members at the root, or at all members. Return: as for
 * sci_team_barrier().
 */
int sci_team_gather(struct sci_team *team, int root, const void *src, size_t len,
		    void *dst);
int sci_team_gatherv(struct sci_team *team, int root, const void *src, size_t len,
		     void *dst, const size_t *lens, const size_t *offsets);
int sci_team_allgather(struct sci_team *team, const void *src, size_t len, void *dst);
/*
 * Gather parts of different lengths at all members. @lens is the same on all members. The caller
 * contributes @lens[rank] bytes. Return: as for sci_team_barrier().
 */
int sci_team_allgatherv(struct sci_team *team, const void *src, void *dst,
			const size_t *lens, const size_t *offsets);
/* Give each member a part of the root's memory. Return: as for sci_team_barrier(). */
int sci_team_scatter(struct sci_team *team, int root, const void *src, void *dst,
		     size_t len);
int sci_team_scatterv(struct sci_team *team, int root, const void *src,
		      const size_t *lens, const size_t *offsets, void *dst, size_t len);
/* Give each member a part of the memory of every member. Return: as for sci_team_barrier(). */
int sci_team_alltoall(struct sci_team *team, const void *src, void *dst, size_t len);
/*
 * Give each member a part of the memory of every member. Lengths differ: the length that member i
 * sends to j must be the length that j expects from i. Return: as for sci_team_barrier().
 */
int sci_team_alltoallv(struct sci_team *team, const void *src, const size_t *src_lens,
		       const size_t *src_offsets, void *dst, const size_t *dst_lens,
		       const size_t *dst_offsets);

/* ---- non-blocking collective calls ---- */

/*
 * Start a collective call. The caller must not touch the buffers and the arrays of lengths, offsets
 * and counts until the call has completed. Any number of calls may be pending. All collective calls
 * of a team, blocking calls included, complete in the order in which they were made.
 * Return: 0: *@coll is set, for sci_coll_wait(), which returns later errors; or an error of the
 * blocking call.
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
 * @coll: is freed, unless the result is -EAGAIN or -ETIMEDOUT
 * Return: 0 or an error of the call; with a timeout of 0 -EAGAIN, otherwise -ETIMEDOUT: the call
 * has not completed.
 */
int sci_coll_wait(struct sci_coll *coll, int timeout);

/**
 * sci_team_progress() - make progress
 *
 * This call is for programs that compute while collective calls are pending. It never blocks.
 * Pending non-blocking collective calls of all teams advance in this call, in sci_coll_wait(), and
 * in every other call of a team that waits. Calls of the endpoint, such as sci_progress(), do not
 * advance them. No thread of the library does.
 * Return: 0 or -ENOTCONN.
 */
int sci_team_progress(struct sci_team *team);

#ifdef __cplusplus
}
#endif

#endif
