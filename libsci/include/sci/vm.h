/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the SCI Virtual Memory
 *
 * A range of addresses that all members of a team share: a pointer into it means the
 * same byte in each process. The range consists of pages. Each page is in the memory of one
 * member, its home. A page is bound to a home when a member touches it first, or when
 * sci_vm_place() names the home. There are two ways to reach a page of another member:
 *
 *	mapped	The first touch maps the home's memory. From then on loads, stores, atomic
 *		instructions and futexes work as between the threads of one process, at the
 *		price of memory. This needs a fabric with SCI_TRAIT_SHARED_MEMORY.
 *	cached	The first read copies the page. Stores go to the copy. sci_vm_release()
 *		sends the bytes that have changed to the home, and sci_vm_acquire() drops
 *		the copies of pages that other members have changed: release consistency.
 *		A program without data races, whose locks and barriers make these two calls,
 *		sees the memory of one machine. Atomic instructions work between the threads
 *		of one process only.
 *
 * A touch of a page that is not present raises SIGSEGV. The library's handler makes the
 * page present; the thread then goes on. The kernel raises no signal for a system call:
 * read(), write() and other calls return EFAULT for a page that is not present. In cached
 * ranges a system call that stores to a page also returns EFAULT if the process has not stored
 * to the page since the last release. There are two remedies: sci_vm_touch() before the call;
 * and SCI_VM_EAGER, which maps the pages of a range when the range is allocated.
 *
 * Rules for all calls:
 *  - Unless a call says otherwise, it returns 0 or a negative errno value. errno itself means
 *    nothing after a call. -EINVAL: an argument is NULL or out of range. -ENOTCONN: the process
 *    is a child after fork().
 *  - Lengths are in bytes. A rank is an int, 0 to sci_team_size() - 1, in the team of the
 *    memory.
 *  - Several threads may make calls at the same time. Signal handlers must not make any calls.
 *  - All members of the team must make the same collective calls in the same order. Only one
 *    thread at a time may make collective calls of a memory.
 *  - Each process has two threads of the library that serve pages. A member answers its
 *    peers at any time, whether or not it makes calls.
 *  - When a member dies, a message on standard error names its node. Calls that need the
 *    member return -ECONNRESET. Mapped pages of the member keep their contents. A touch of
 *    another page of the member finds a private page of zeroes (counted as lost). So does the
 *    touch of a page without a home if the member keeps the record of this page's home.
 *    Programs that must not go on set struct sci_vm_attr.death.
 *  - A child after fork() shares the pages that are mapped at that time. In the child, a touch of
 *    another page raises SIGSEGV.
 *  - The library's own data, and memory of malloc() that the library uses, must not be in the
 *    range. A thread whose stack is in the range needs a sigaltstack() outside of the range.
 *  - The library's handler of SIGSEGV passes other faults on to the handler that it replaced. A
 *    handler that the program sets later also gets faults of the range, and must pass them on.
 */
#ifndef SCI_VM_H
#define SCI_VM_H

#include <stddef.h>
#include <stdint.h>

#include <sci/team.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sci_vm;				/* a shared memory, opened by a member */

/* ---- the memory ---- */

enum sci_vm_mode {
	SCI_VM_AUTO,			/* mapped if the fabric can map, else cached */
	SCI_VM_MAP,
	SCI_VM_CACHE
};

/**
 * struct sci_vm_attr - how to open a memory
 * @size: the caller sets it to sizeof(struct sci_vm_attr)
 * @base: first address of the range, a multiple of 2 MiB; NULL: the members agree on an address
 * @length: bytes of addresses, a multiple of 2 MiB; addresses take no memory until they are
 *	allocated; 0: 64 GiB, or less if the members have less room
 * @mode: enum sci_vm_mode, the mode of ranges that do not set a mode; SCI_VM_AUTO: the value
 *	of SCI_VM in the environment: "map", "cache" or "auto" (default)
 * @page: bytes of a page of ranges that do not set a page size, a power of two, 4096 to
 *	2 MiB; 0: the value of SCI_VM_PAGE in the environment, else 65536 for mapped ranges
 *	and 4096 for cached ranges
 * @windows: how many pages of other members a process has mapped or copied at once. The library
 *	drops pages that have not faulted lately to admit other pages. 0: the value of
 *	SCI_VM_WINDOWS in the environment, else 24000.
 * @death: NULL, or a function that a thread of the library calls once for each member that has
 *	died. It must not make calls of this memory.
 * @arg: is passed to @death
 *
 * All members pass the same values, except for @death, @arg and @windows.
 */
struct sci_vm_attr {
	size_t size;
	void *base;
	uint64_t length;
	uint32_t mode;
	uint32_t page;
	uint64_t windows;
	void (*death)(void *arg, int rank);
	void *arg;
};

/**
 * sci_vm_open() - open a memory
 * @vm: is set to the memory, which belongs to the caller until sci_vm_close()
 * @team: its members share the memory. The team still belongs to the caller, who must not close
 *	it before the memory.
 * @attr: NULL: the defaults
 *
 * This is a collective call of @team. A process may have several memories.
 * Return: 0; -EINVAL: also if the members pass different attributes; -E2BIG: @attr has members that
 * this library does not know, and they are not 0; -EOPNOTSUPP: @attr asks for mapped ranges, and
 * the fabric has no shared memory, or sockets connect some members; -ENOMEM: out of memory, or no
 * place for the range is free in all members; -ENOSPC: the process has too many memories;
 * -ECONNRESET: a member has died; or an error of sci_ep_open().
 */
int sci_vm_open(struct sci_vm **vm, struct sci_team *team,
		const struct sci_vm_attr *attr);

/**
 * sci_vm_close() - close a memory and free it
 * @vm: NULL is ignored
 *
 * This is a collective call of the members that are alive. The call unmaps the range and frees all
 * pages. Memory of sci_vm_adopt() becomes private memory of each member and keeps its contents.
 * Return: 0 or -ENOTCONN; -ECONNRESET: a member has died. @vm is freed, except after -ENOTCONN.
 */
int sci_vm_close(struct sci_vm *vm);

/* Return the first address, or the number of bytes, of the range of a memory. */
void *sci_vm_base(const struct sci_vm *vm);
uint64_t sci_vm_length(const struct sci_vm *vm);

/**
 * sci_vm_mode() - return the mode of ranges that do not set a mode
 * @vm: the memory
 * Return: SCI_VM_MAP or SCI_VM_CACHE.
 */
enum sci_vm_mode sci_vm_mode(const struct sci_vm *vm);

/* ---- ranges ---- */

enum sci_vm_policy {
	SCI_VM_FIRST_TOUCH,		/* the first member that touches a page is its home,
					 * unless sci_vm_place() names a home */
	SCI_VM_ROUND_ROBIN,		/* the home of page i is rank i modulo the team's size */
	SCI_VM_BLOCK,			/* each member is the home of one part, by rank */
	SCI_VM_HOME			/* one member is the home of all pages */
};

enum sci_vm_flags {
	/*
	 * All members map all pages of an eager range before the call that allocates it returns.
	 * Then no access faults, and system calls work. Eager pages take no window. With
	 * SCI_VM_FIRST_TOUCH the home is the caller. Cached ranges: -EOPNOTSUPP.
	 */
	SCI_VM_EAGER	= 1 << 0
};

/**
 * struct sci_vm_range - how to allocate a range
 * @size: the caller sets it to sizeof(struct sci_vm_range)
 * @policy: enum sci_vm_policy: the homes of the pages
 * @home: with SCI_VM_HOME: a rank; -1: the caller, or the root of sci_vm_adopt(). With other
 *	policies: 0.
 * @mode: enum sci_vm_mode; SCI_VM_AUTO: the mode of the memory
 * @flags: enum sci_vm_flags
 * @page: bytes of a page; 0: the default of the memory
 */
struct sci_vm_range {
	size_t size;
	uint32_t policy;
	int32_t home;
	uint32_t mode;
	uint32_t flags;
	uint32_t page;
	uint32_t reserved;
};

/**
 * sci_vm_alloc() - allocate a range of pages
 * @len: bytes; rounded up to whole pages
 * @range: NULL: SCI_VM_FIRST_TOUCH, and the defaults of the memory
 * @addr: is set to the start of the range, which is valid in all members when the call returns
 *
 * Only one thread of one member makes the call. The pages contain zeroes. A page takes memory when
 * it is touched first. The call sends a message to each other member and waits for the answers.
 * Return: 0; -EOPNOTSUPP: the members have no shared memory for a mapped range, @range asks for
 * an eager cached range, or a cached range would have more than SCI_VM_TIME_MAX members; -E2BIG: @range has members that this library does not know, and they are
 * not 0; -ENOMEM, -ENOSPC: no addresses are left, or, with SCI_VM_EAGER, no
 * memory; -ECONNRESET: a member has died.
 */
int sci_vm_alloc(struct sci_vm *vm, size_t len, const struct sci_vm_range *range,
		 void **addr);

/**
 * sci_vm_free() - free a range
 * @addr: the start of a range of sci_vm_alloc(); any member may free it
 *
 * No member may touch the range any more: a touch raises SIGSEGV.
 * Return: 0; -EINVAL: @addr is not the start of such a range.
 */
int sci_vm_free(struct sci_vm *vm, void *addr);

/**
 * sci_vm_adopt() - make existing memory a range
 * @addr: whole system pages of private memory, at the same address in all members: static
 *	variables of a program whose addresses are not random, for example
 * @len: whole system pages; the same on all members
 * @root: after the call all members see the contents of this member
 * @range: as in sci_vm_alloc(), but a page of 0 is a system page
 *
 * This is a collective call of the team. No other thread may touch the memory during the call.
 * The range stays until sci_vm_close(). After an error, the memory of some members may
 * have been replaced by a private copy.
 * Return: 0; -EFAULT: some bytes are not readable and writable private memory in all members;
 * -EEXIST: the bytes overlap a range; -ENOSPC: 64 ranges have been adopted; -ENOMEM: out of memory;
 * -ECONNRESET: a member has died; -EOPNOTSUPP, -E2BIG: as from sci_vm_alloc().
 */
int sci_vm_adopt(struct sci_vm *vm, void *addr, size_t len, int root,
		 const struct sci_vm_range *range);

/**
 * sci_vm_place() - set the home of pages
 * @addr, @len: bytes in one range with SCI_VM_FIRST_TOUCH. The call places all pages that have
 *	any of these bytes.
 * @rank: the home of these pages
 * Return: 0; -EBUSY: some page has another home already, and the other pages are placed;
 * -EINVAL: also if the range has another policy or is eager; -ECONNRESET: a member has died.
 */
int sci_vm_place(struct sci_vm *vm, void *addr, size_t len, int rank);

/*
 * Return the rank of the home of @addr; -ENOENT: the page has no home yet; -EFAULT: @addr is not
 * in a range; -ECONNRESET: a member has died.
 */
int sci_vm_home(struct sci_vm *vm, const void *addr);

enum sci_vm_access {
	SCI_VM_READ,
	SCI_VM_WRITE
};

/**
 * sci_vm_touch() - make pages present, so that a system call works on them
 * @addr, @len: any addresses; the call skips addresses outside of ranges
 * @access: SCI_VM_READ, or SCI_VM_WRITE if the system call stores to the pages
 *
 * A page stays present until the library needs its window for another page. A page of a cached
 * range stays present at most until a thread of the process acquires or releases.
 * Return: 0; -ENOSPC: there are more pages than windows; -ENOMEM: out of memory; -ECONNRESET:
 * the home of a page has died.
 */
int sci_vm_touch(struct sci_vm *vm, const void *addr, size_t len,
		 enum sci_vm_access access);

/* ---- consistency ---- */

#define SCI_VM_TIME_MAX		256	/* members of a team with a cached range */

/**
 * struct sci_vm_time - a vector time: the releases that a member has seen
 * @n: number of members of the team
 * @intervals: for each rank: the number of releases of that member
 *
 * A lock passes the time from the member that releases it to the member that acquires it. Only
 * the first sci_vm_time_size() bytes are used. A barrier passes the maximum of all times. The time
 * may be in a range.
 */
struct sci_vm_time {
	uint32_t n;
	uint32_t intervals[SCI_VM_TIME_MAX];
};

/* Return how many bytes of a struct sci_vm_time are used. */
size_t sci_vm_time_size(const struct sci_vm *vm);

/* Set each interval of *@into to the maximum of both times. */
void sci_vm_time_merge(struct sci_vm_time *into, const struct sci_vm_time *other);

/**
 * sci_vm_release() - send changed bytes to their homes, before an unlock, a barrier or a signal
 * @time: NULL, or receives the time for the member that acquires
 *
 * Stores of all threads of this process reach the homes before the call returns. If all ranges
 * are mapped, the call does nothing. Otherwise it sends one or more messages, of up to 8 KiB, for
 * each changed page with another home, and each such home answers once.
 * Return: 0; -ECONNRESET: a home has died, and the changes of its pages are lost; -ENOMEM: out of
 * memory, and the next release sends the changes that this call has not sent.
 */
int sci_vm_release(struct sci_vm *vm, struct sci_vm_time *time);

/**
 * sci_vm_acquire() - drop old copies, after a lock, a barrier or a wait
 * @time: the time of the member's sci_vm_release(); NULL: all releases of all members before this
 *	call
 *
 * Later loads see the stores that the members made before these releases. The call sends one
 * message to each member with releases that this member has not seen (with NULL: to each other
 * member). A member answers with one message for each 509 runs of pages.
 * Return: 0; -ECONNRESET: a member has died; -ENOMEM: out of memory, and some old copies remain until
 * the next acquire.
 */
int sci_vm_acquire(struct sci_vm *vm, const struct sci_vm_time *time);

/*
 * Release, or acquire, only the pages that have any of @len bytes from @addr on. Other pages do not
 * change. The acquire covers all releases of all members before this call.
 * Return: as for sci_vm_release() and sci_vm_acquire().
 */
int sci_vm_release_range(struct sci_vm *vm, const void *addr, size_t len);
int sci_vm_acquire_range(struct sci_vm *vm, const void *addr, size_t len);

/* ---- statistics ---- */

/**
 * struct sci_vm_stats - counters of this member
 * @size: the caller sets it to sizeof(struct sci_vm_stats)
 *
 * Counters start at 0 when the memory is opened. Members marked "now" are present values.
 */
struct sci_vm_stats {
	size_t size;
	uint64_t faults;		/* SIGSEGVs that the library's handler has resolved */
	uint64_t touches;		/* pages that sci_vm_touch() has made present */
	uint64_t maps;			/* pages of other members mapped, except eager pages */
	uint64_t drops;			/* pages dropped because windows were needed */
	uint64_t windows;		/* windows in use now */
	uint64_t homed;			/* pages whose home is this member, now */
	uint64_t fetches;		/* pages copied from other members */
	uint64_t twins;			/* copies that were written to */
	uint64_t diffs;			/* pages whose changes were sent to the home */
	uint64_t diff_bytes;		/* changed bytes sent to homes */
	uint64_t notices;		/* pages in write notices received */
	uint64_t invalidations;		/* copies dropped by acquires */
	uint64_t acquires;
	uint64_t releases;
	uint64_t messages;		/* messages sent to other members, including answers */
	uint64_t bytes;			/* bytes of these messages */
	uint64_t lost;			/* pages of dead members replaced by zeroes */
};

/**
 * sci_vm_stats() - get the counters of this member
 * @stats: receives as many bytes as @stats->size says and the library has; the library sets
 *	@stats->size to this number
 * Return: 0; -EINVAL: @stats->size is not set.
 */
int sci_vm_stats(struct sci_vm *vm, struct sci_vm_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
