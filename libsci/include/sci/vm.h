/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the SCI Virtual Memory
 *
 * A range of addresses that all members of a team share: a pointer into it means the
 * same byte in each process. The range is made of pages. Each page lives in the memory of
 * one member, its home. A page is bound to a home when a member touches it first, or when
 * sci_vm_place() names one. There are two ways to reach a page of another member:
 *
 *	mapped	The first touch maps the home's memory. From then on loads, stores, atomic
 *		instructions and futexes work as between the threads of one process, at the
 *		price of memory. This needs a fabric with SCI_TRAIT_SHARED_MEMORY.
 *	cached	The first read copies the page. Stores go to the copy. sci_vm_release()
 *		sends the bytes that have changed to the home, and sci_vm_acquire() drops
 *		the copies of pages that others have changed: release consistency. A
 *		program without data races, whose locks and barriers make these two calls,
 *		sees the memory of one machine. Atomic instructions work between the threads
 *		of one process only.
 *
 * A touch of a page that is not there raises SIGSEGV. The library's handler finds the
 * page; the thread then goes on. The kernel raises no signal for a system call: read(),
 * write() and the others return EFAULT for a page that is not there, and in cached ranges
 * for a page that they are to store to and that has not been stored to since the last
 * release. There are two remedies: sci_vm_touch() before the call; and SCI_VM_EAGER, which
 * maps the pages of a range when the range is allocated.
 *
 * Rules for all calls:
 *  - They return 0 (or what they say) or a negative errno value; errno itself
 *    means nothing after a call. -EINVAL: an argument is NULL or out of range.
 *  - Any threads may make calls at once. No call may be made from a signal handler.
 *  - Each process has two threads of the library that serve pages. A member answers its
 *    peers at any time, whether or not it makes calls.
 *  - When a member dies, a message on standard error names its node. Calls that need it
 *    return -ECONNRESET. Pages of it that are mapped keep their contents. A touch of
 *    another page of it finds a private page of zeroes (counted as lost), and so does the
 *    touch of a page without a home whose directory it was. Programs that must not go on
 *    set struct sci_vm_attr.death.
 *  - A child after fork() shares the pages that are mapped at that time. Calls return
 *    -ENOTCONN there, and a touch of another page raises SIGSEGV.
 *  - The library's own data, and memory of malloc() that it uses, must not lie in the
 *    range. A thread whose stack lies in the range needs a sigaltstack() outside of it.
 *  - The handler of SIGSEGV passes other faults on to the handler that it replaced. A
 *    program that sets one later gets faults of the range, too, and must pass them on.
 */
#ifndef SCI_VM_H
#define SCI_VM_H

#include <stddef.h>
#include <stdint.h>

#include <sci/team.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sci_vm;				/* a member's side of the memory */

/* ---- the memory ---- */

enum sci_vm_mode {
	SCI_VM_AUTO,			/* mapped where the fabric can, else cached */
	SCI_VM_MAP,
	SCI_VM_CACHE
};

/**
 * struct sci_vm_attr - what the memory is like
 * @size: to be set to sizeof(struct sci_vm_attr) by the caller
 * @base: where the range begins, a multiple of 2 MiB; NULL: the members agree on a place
 * @length: bytes of addresses, a multiple of 2 MiB; they cost nothing until they are
 *	allocated; 0: 64 GiB, or what there is room for
 * @mode: enum sci_vm_mode of ranges that do not ask for one; SCI_VM_AUTO: what SCI_VM in
 *	the environment says: "map", "cache" or "auto" (default)
 * @page: bytes of a page of ranges that do not ask for a size, a power of two, 4096 to
 *	2 MiB; 0: SCI_VM_PAGE, else 65536 for mapped ranges and 4096 for cached ones
 * @windows: how many pages of other members a process has at once; a clock drops those
 *	that have not been faulted in lately; 0: SCI_VM_WINDOWS, else 24000
 * @death: NULL, or called once for each member that has died, from a thread of the
 *	library's; may not make calls of this memory
 * @arg: passed to @death
 *
 * All but @death, @arg and @windows are the same on all members.
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
 * sci_vm_open() - open the memory
 * @team: its members share the memory; stays the caller's, and open
 * @attr: NULL: the defaults
 *
 * Collective over @team. A process may have several.
 *
 * -EINVAL: also, the members' attributes differ; -EOPNOTSUPP: mapped is asked for, and the
 * fabric has no shared memory; -ENOMEM: no place for the range is free in all members, or
 * no memory; -ENOSPC: the process has too many; errors of sci_ep_open();
 * -ECONNRESET: a member has died.
 */
int sci_vm_open(struct sci_vm **vm, struct sci_team *team,
		const struct sci_vm_attr *attr);

/**
 * sci_vm_close() - close the memory
 *
 * Collective over the members that live. The range and all pages are gone. Memory that
 * sci_vm_adopt() took becomes private memory of each member with the contents that it has
 * then. NULL is allowed.
 */
int sci_vm_close(struct sci_vm *vm);

void *sci_vm_base(const struct sci_vm *vm);
uint64_t sci_vm_length(const struct sci_vm *vm);

/**
 * sci_vm_mode() - return the mode of ranges that do not ask for one
 * @vm: the memory
 *
 * Return: SCI_VM_MAP or SCI_VM_CACHE.
 */
enum sci_vm_mode sci_vm_mode(const struct sci_vm *vm);

/* ---- ranges ---- */

enum sci_vm_policy {
	SCI_VM_FIRST_TOUCH,		/* the member that touches it, or sci_vm_place() */
	SCI_VM_ROUND_ROBIN,		/* page i: member i modulo their number */
	SCI_VM_BLOCK,			/* the first nth part: member 0, and so on */
	SCI_VM_HOME			/* all pages: one member */
};

enum sci_vm_flags {
	/*
	 * All members map all pages before the call that allocates the range returns: no
	 * touch faults, and system calls work. Such pages take no window. With
	 * SCI_VM_FIRST_TOUCH the home is the caller. Mapped ranges only: -EOPNOTSUPP.
	 */
	SCI_VM_EAGER	= 1 << 0
};

/**
 * struct sci_vm_range - what a range is like
 * @size: to be set to sizeof(struct sci_vm_range) by the caller
 * @policy: enum sci_vm_policy: where pages live
 * @home: the rank of SCI_VM_HOME; -1: the caller (sci_vm_adopt(): @root); of other
 *	policies 0
 * @mode: enum sci_vm_mode; SCI_VM_AUTO: that of the memory
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
 * @range: NULL: first touch, the defaults
 * @addr: the same address is valid in all members when the call returns
 *
 * Not collective: one thread of one member calls. The pages are zeroes. Memory is taken
 * when a page is touched first. Messages: one to each other member and one answer.
 *
 * -ENOMEM, -ENOSPC: no addresses are left, or, with SCI_VM_EAGER, no memory;
 * -ECONNRESET: a member has died.
 */
int sci_vm_alloc(struct sci_vm *vm, size_t len, const struct sci_vm_range *range,
		 void **addr);

/**
 * sci_vm_free() - free a range
 * @addr: what sci_vm_alloc() has said; any member may call
 *
 * No member may touch the range any more: that is a plain SIGSEGV afterwards.
 * -EINVAL: @addr is not the start of a range of sci_vm_alloc().
 */
int sci_vm_free(struct sci_vm *vm, void *addr);

/**
 * sci_vm_adopt() - make memory that exists part of the memory
 * @addr: whole system pages of private memory, at the same address in all members: static
 *	variables of a program whose addresses are not random, for example
 * @len: whole system pages; the same on all
 * @root: the member whose contents all see from now on
 * @range: as for sci_vm_alloc(); a page of 0 is a system page
 *
 * Collective over the team. No other thread may touch the memory meanwhile. Stays until
 * sci_vm_close(). -EFAULT: not all of it is readable and writable memory in all members;
 * -EEXIST: overlaps a range; -ENOSPC: 64 are adopted. After an error, memory of members
 * may have become private copies of what it was.
 */
int sci_vm_adopt(struct sci_vm *vm, void *addr, size_t len, int root,
		 const struct sci_vm_range *range);

/**
 * sci_vm_place() - say where pages live
 * @addr, @len: in one range with SCI_VM_FIRST_TOUCH; pages that lie in it partly count
 * @rank: their home
 *
 * -EBUSY: some page has another home already; the others are placed. -EINVAL: also, the
 * range has another policy.
 */
int sci_vm_place(struct sci_vm *vm, void *addr, size_t len, int rank);

/*
 * The rank of the home of @addr; -ENOENT: the page has none yet; -EFAULT: @addr is in no
 * range.
 */
int sci_vm_home(struct sci_vm *vm, const void *addr);

enum sci_vm_access {
	SCI_VM_READ,
	SCI_VM_WRITE
};

/**
 * sci_vm_touch() - make pages present
 * @addr, @len: any addresses; those that are in no range are left alone
 * @access: what the caller is going to do
 *
 * So that a system call works on them: until a page is dropped for want of a window, in
 * cached ranges also until a thread of the process acquires or releases. -ENOSPC: there are
 * more pages than windows; -ECONNRESET: the home of a page has died.
 */
int sci_vm_touch(struct sci_vm *vm, const void *addr, size_t len,
		 enum sci_vm_access access);

/* ---- consistency ---- */

#define SCI_VM_TIME_MAX		256	/* members of a team with a cached range */

/**
 * struct sci_vm_time - what a member knows of
 * @n: members of the team
 * @intervals: by rank: the releases of that member that the changes come from
 *
 * A lock passes it from the member that releases to the one that acquires: only its first
 * sci_vm_time_size() bytes count. A barrier passes the maximum of all.
 */
struct sci_vm_time {
	uint32_t n;
	uint32_t intervals[SCI_VM_TIME_MAX];
};

size_t sci_vm_time_size(const struct sci_vm *vm);

/* Make *@into the later of the two, rank by rank. */
void sci_vm_time_merge(struct sci_vm_time *into, const struct sci_vm_time *other);

/**
 * sci_vm_release() - before an unlock, a barrier or a signal
 * @time: NULL, or receives the time to be passed on
 *
 * Stores of this process, of all its threads, reach the homes before the call returns.
 * Does nothing, and costs no message, where all pages are mapped. Messages: one or more for
 * each page with changes, whose home is another member, of up to 8 KiB, and an answer of
 * each such home. -ECONNRESET: a home has died; the changes of its pages are lost.
 */
int sci_vm_release(struct sci_vm *vm, struct sci_vm_time *time);

/**
 * sci_vm_acquire() - after a lock, a barrier or a wait
 * @time: what the releasing side's sci_vm_release() has said; NULL: whatever has been
 *	released by any member before the call
 *
 * Later loads see the stores of the members before these releases. Messages: one to each
 * member with releases that this one does not know of (NULL: to each other member), and its
 * answers, one for up to 509 runs of pages.
 */
int sci_vm_acquire(struct sci_vm *vm, const struct sci_vm_time *time);

/* The same for a part: of @addr and @len's pages only; the others stay as they are. */
int sci_vm_release_range(struct sci_vm *vm, const void *addr, size_t len);
int sci_vm_acquire_range(struct sci_vm *vm, const void *addr, size_t len);

/* ---- statistics ---- */

/**
 * struct sci_vm_stats - what this member has done
 * @size: to be set to sizeof(struct sci_vm_stats) by the caller
 */
struct sci_vm_stats {
	size_t size;
	uint64_t faults;		/* signals that the handler has served */
	uint64_t touches;		/* pages that sci_vm_touch() has made present */
	uint64_t maps;			/* pages of others mapped; without eager ones */
	uint64_t drops;			/* ... and copies, dropped for want of a window */
	uint64_t windows;		/* in use now */
	uint64_t homed;			/* pages that live here, now */
	uint64_t fetches;		/* pages copied */
	uint64_t twins;			/* pages whose copy was written to */
	uint64_t diffs;			/* pages with changes sent home */
	uint64_t diff_bytes;		/* bytes that had changed */
	uint64_t notices;		/* pages of write notices received */
	uint64_t invalidations;		/* copies dropped by acquires */
	uint64_t acquires;
	uint64_t releases;
	uint64_t messages;		/* sent to other members, answers included */
	uint64_t bytes;			/* in these */
	uint64_t lost;			/* pages of dead members replaced by zeroes */
};

int sci_vm_stats(struct sci_vm *vm, struct sci_vm_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
