/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: inside the SCI Virtual Memory
 *
 * A page has a directory, a home and views. Its *directory*, a member selected by the page's
 * number, records the home of a page that is bound by first touch. Its *home* is the member
 * that exports the *frame*, the memory of the page. Each member that uses the page has a
 * *view*: a mapping of the frame, or a copy.
 *
 *	world.c		open and close, peers, deaths
 *	range.c		ranges: allocate, free, adopt, place
 *	serve.c		messages, and their handling at the home and the directory
 *	frame.c		memory of frames
 *	fault.c		SIGSEGV, and the thread that resolves faults
 *	access.c	the access of a fault, as the CPU reports it
 *	view.c		views and windows
 *	cache.c		views that are copies: fetched pages, twins, diffs
 *	notice.c	acquire and release, write notices
 *	trace.c		SCI_VM_TRACE and the report at exit
 *
 * Each process has two threads. The *server* runs handlers, and requests that handlers
 * have queued for it. It never waits for another thread. The *worker* resolves faults. It
 * may wait for servers of other members. Threads of the program may wait for servers, and
 * for workers of other members when they hold no lock. So waits cannot form a cycle.
 *
 * Locks, outer first:
 *	vm->lock	views and windows; a thread may hold it while it waits for a server
 *			of another member
 *	endpoint	libsci's own lock, held while a handler runs
 *	vm->serve_lock	ranges, frames, directory, calls in flight; outside of a handler, a
 *			thread that holds it makes no call of the endpoint
 * Only a thread with both vm->lock and vm->serve_lock removes a range. So a thread with
 * either lock may use ranges.
 */
#ifndef LIBSCI_VM_INTERNAL_H
#define LIBSCI_VM_INTERNAL_H

#include <sci/team.h>

/* Export the public functions only. */
#pragma GCC visibility push(default)
#include <sci/vm.h>
#pragma GCC visibility pop

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "libsci/base/barrier.h"
#include "libsci/base/list.h"

#define VM_PAGE_MIN	4096u
#define VM_PAGE_MAX	(2u << 20)
#define VM_ALIGN	(2ull << 20)	/* alignment of the memory and of each member's part */
#define VM_MAX		8u		/* memories of a process */
#define VM_ADOPTED	64u		/* ranges outside of the memory's own addresses */
#define VM_WINDOWS_MIN	16u		/* an instruction may need several pages at once */
#define VM_HOT_MAX	100u		/* pages in a report */
#define VM_HANDLER	SCI_HANDLER_USER
#define VM_DATA_MAX	(SCI_HANDLER_MAX - sizeof(struct vm_wire))

enum vm_state {
	VM_NONE,			/* no view */
	VM_READABLE,
	VM_WRITABLE
};

/* The access that has faulted. */
enum vm_access {
	VM_ACCESS_UNKNOWN,		/* the CPU or the kernel does not report it */
	VM_ACCESS_LOAD,
	VM_ACCESS_STORE,
	VM_ACCESS_FETCH			/* of an instruction */
};

struct vm_page {
	/* fields for the home and the directory; vm->serve_lock protects them */
	void *frame;			/* NULL: none, or another member is the home */
	struct vm_notice *notice;	/* NULL: this member has not changed the page */
	int16_t dir_home;		/* the home in the directory; -1: none yet */
	/* fields for the view; vm->lock protects them, but the server reads them, too */
	_Atomic int16_t home;		/* the home; -1: unknown to this member */
	uint8_t state;			/* enum vm_state */
	bool armed;			/* the view is shut, to test whether it is used */
	bool lost;			/* the home has died */
	bool dirty;			/* the page is in vm->dirty */
	void *twin;			/* the bytes of a copy before the first store, until
					 * the home has the changes */
	uint32_t window;		/* slot in vm->windows, counted from 1; 0: none */
	uint32_t transfers;		/* for the report: times mapped or copied */
	uint32_t twins;
	uint32_t invalidations;
};

struct vm_range {
	uint8_t *addr;
	uint64_t len;
	uint32_t shift;			/* log2 of bytes of a page */
	uint32_t policy;
	uint32_t mode;			/* SCI_VM_MAP or SCI_VM_CACHE */
	uint32_t flags;
	int home;			/* home of all pages with SCI_VM_HOME */
	int creator;
	bool adopted;			/* the range is outside of the memory's addresses */
	size_t n;			/* pages */
	struct vm_page *pages;
	size_t pages_bytes;
	uint8_t *copies;		/* SCI_VM_CACHE: writable mapping of the pages */
	uint64_t copies_at;		/* offset of the range in vm->cache_fd */
};

/* A range, as messages contain it. */
struct vm_range_wire {
	uint64_t addr;
	uint64_t len;
	uint32_t shift;
	uint32_t policy;
	uint32_t mode;
	uint32_t flags;
	int32_t home;
	int32_t creator;
};

enum vm_op {
	VM_OP_ANSWER,			/* answer a call; value: the return value of the call */
	VM_OP_HOME,			/* ask for the home of addr; value: the new home, or -1 */
	VM_OP_PLACE,			/* give pages of the directory the home value */
	VM_OP_FRAME,			/* ask where the frame of addr is */
	VM_OP_PAGE,			/* ask for the bytes of the page at addr */
	VM_OP_DATA,			/* bytes of a page at offset len; value 1: last message */
	VM_OP_DIFF,			/* changes of the page at addr: struct vm_run follow */
	VM_OP_CHANGES,			/* ask for the pages that changed after interval len */
	VM_OP_NOTICES,			/* struct vm_pages follow; value 1: last message */
	VM_OP_ALLOC,			/* add a range: struct vm_range_wire follows */
	VM_OP_EAGER,			/* map the pages of the range at addr */
	VM_OP_FREE,			/* free the range at addr */
	VM_OP_STOP,			/* a member tells its own server to end */
	VM_OPS
};

/* A run of changed bytes: its offset in the page and its length. The bytes follow. */
struct vm_run {
	uint32_t at;
	uint32_t len;
};

/* A run of pages that have changed. */
struct vm_pages {
	uint64_t addr;
	uint64_t len;
};

/* A page that this member has changed; vm->notices is sorted by interval. */
struct vm_notice {
	struct list link;
	uint64_t addr;
	uint64_t len;
	uint32_t interval;
};

struct vm_wire {
	uint64_t addr;
	uint64_t len;
	struct sci_key key;
	int32_t value;
	uint32_t extra;
};

/* A call to a member, until its answer has arrived. The handler stores the answer in @w. */
struct vm_call {
	struct list link;
	uint64_t id;
	int rank;
	enum vm_op answer;		/* the messages that answer; after an error, VM_OP_ANSWER */
	int sent;			/* the return value of vm_call_start() */
	_Atomic bool done;
	int error;			/* belongs to the handler until @done */
	struct vm_wire w;
	void *buf;			/* where the handler stores the bytes of answers */
	size_t room;			/* VM_OP_DATA: bytes that @buf has room for */
	size_t got;			/* VM_OP_NOTICES: bytes in @buf, which grows */
};

enum vm_job_kind {
	VM_JOB_FAULT,
	VM_JOB_EAGER,
	VM_JOB_FREE,
	VM_JOB_STOP
};

/* Work for the worker. The job of a fault is on the stack of the thread that waits for it. */
struct vm_job {
	struct vm_job *next;
	enum vm_job_kind kind;
	void *addr;
	enum vm_access access;
	_Atomic uint32_t done;
	int error;
	int rank;			/* the member that waits for an answer */
	uint64_t id;			/* number of the call of that member */
};

/* A request that a handler has queued for the server. */
struct vm_request {
	struct list link;
	enum vm_op op;
	int rank;
	uint64_t id;
	struct vm_wire w;
	struct vm_range_wire range;
};

/* A segment of a peer that this member has mapped. */
struct vm_import {
	struct list link;
	struct sci_key key;
	void *base;
};

struct vm_rank {
	_Atomic(struct sci_peer *) peer;
	_Atomic bool dead;
	struct list imports;		/* vm->lock */
};

/* The slot of a page. In a free slot, @page is the number of the next free slot. */
struct vm_window {
	struct vm_range *range;
	size_t page;
};

/* A page for the report. */
struct vm_hot {
	const uint8_t *addr;
	size_t len;
	int home;
	uint32_t transfers;
	uint32_t twins;
	uint32_t invalidations;
};

struct sci_vm {
	struct sci_team *team;
	struct sci_ep *ep;
	int rank;
	int size;
	struct vm_rank *ranks;
	uint8_t *base;
	uint64_t length;
	enum sci_vm_mode mode;		/* the default mode of ranges */
	bool can_map;
	uint32_t page;			/* default page size; 0: depends on the mode */
	void (*death)(void *arg, int rank);
	void *death_arg;
	_Atomic bool forked;
	_Atomic bool closing;
	_Atomic bool cached;		/* a cached range was allocated at some time */

	pthread_mutex_t lock;
	struct vm_window *windows;	/* vm->lock */
	size_t windows_max;
	size_t windows_used;		/* slots below this number have been used */
	size_t windows_free;		/* first free slot, from 1; 0: none */
	size_t hand;
	struct vm_window *dirty;	/* pages changed since the last release */
	size_t dirty_n;
	size_t dirty_room;
	int changes_lost;		/* error of a dropped copy, for the next release */
	uint32_t seen[SCI_VM_TIME_MAX];	/* by rank: the last interval acquired */
	int cache_fd;			/* memory of cached pages: copies, and pages at home */

	pthread_mutex_t serve_lock;
	struct vm_range **ranges;	/* sorted by address */
	size_t ranges_n;
	size_t ranges_room;
	struct list chunks;
	uint64_t chunk_bytes;
	struct list notices;
	uint32_t interval;		/* number of the last release with changes */
	uint64_t cache_bytes;
	struct list calls;
	uint64_t next_id;
	struct list requests;
	_Atomic uintptr_t adopted[VM_ADOPTED][2];
	_Atomic uint32_t adopted_n;

	pthread_t server;
	pthread_t worker;
	bool worker_runs;
	_Atomic(struct vm_job *) jobs;
	_Atomic uint32_t bell;

	struct sci_vm_stats stats;	/* changed atomically */
	FILE *trace;
	struct vm_hot hot[VM_HOT_MAX];	/* sorted by transfers */
	unsigned int hot_n;
	unsigned int hot_max;
};

#define VM_COUNT(vm, field, n)	((void)__atomic_fetch_add(&(vm)->stats.field, n, __ATOMIC_RELAXED))

static inline size_t vm_page_size(const struct vm_range *r)
{
	return (size_t)1 << r->shift;
}

static inline uint8_t *vm_page_addr(const struct vm_range *r, size_t i)
{
	return r->addr + (i << r->shift);
}

static inline size_t vm_page_index(const struct vm_range *r, const void *addr)
{
	return (size_t)((const uint8_t *)addr - r->addr) >> r->shift;
}

/* world.c */
int vm_usable(const struct sci_vm *vm);
int vm_agree(struct sci_vm *vm, int error);
void vm_death(struct sci_vm *vm, int rank, const char *how);

/* range.c */
struct vm_range *vm_range_find(const struct sci_vm *vm, const void *addr);
struct vm_range *vm_range_lookup(struct sci_vm *vm, const void *addr);
struct vm_range *vm_range_after(struct sci_vm *vm, const uint8_t *addr);
int vm_range_add(struct sci_vm *vm, const struct vm_range_wire *w, int rank);
void vm_range_remove(struct sci_vm *vm, struct vm_range *r);
void vm_ranges_free(struct sci_vm *vm);
void vm_ranges_return(struct sci_vm *vm);
int vm_page_fixed_home(const struct sci_vm *vm, const struct vm_range *r, size_t i);
int vm_page_directory(const struct sci_vm *vm, size_t i);

/* serve.c */
int vm_send(struct sci_vm *vm, int rank, enum vm_op op, uint64_t id,
	    const struct vm_wire *w, const void *more, size_t len);
int vm_call_start(struct sci_vm *vm, struct vm_call *c, int rank, enum vm_op op,
		  const struct vm_wire *w, const void *more, size_t len);
int vm_call_wait(struct sci_vm *vm, struct vm_call *c);
int vm_call(struct sci_vm *vm, struct vm_call *c, int rank, enum vm_op op,
	    const struct vm_wire *w);
int vm_call_all(struct sci_vm *vm, enum vm_op op, const struct vm_wire *w,
		const void *more, size_t len);
void vm_answer(struct sci_vm *vm, int rank, uint64_t id, const struct vm_wire *w);
int vm_serve_home(struct sci_vm *vm, const void *addr, int want);
int vm_serve_place(struct sci_vm *vm, const void *addr, uint64_t len, int home);
int vm_serve_frame(struct sci_vm *vm, const void *addr, void **frame);
void vm_calls_fail(struct sci_vm *vm, int rank);
int vm_server_start(struct sci_vm *vm);
void vm_server_stop(struct sci_vm *vm);

/* frame.c */
int vm_frames_alloc(struct sci_vm *vm, size_t len, void **frame);
void vm_frames_free(struct sci_vm *vm, void *frame, size_t len);
bool vm_frame_key(struct sci_vm *vm, const void *frame, struct sci_key *chunk,
		  uint64_t *offset);
void vm_chunks_free(struct sci_vm *vm);

/* access.c */
enum vm_access vm_access_of(const void *context);

/* fault.c */
int vm_fault_start(struct sci_vm *vm);
void vm_fault_stop(struct sci_vm *vm);
void vm_job_push(struct sci_vm *vm, struct vm_job *job);
void vm_jobs_drop(struct sci_vm *vm);

/* The functions of view.c are called with vm->lock held. */
bool vm_can_map(void *memory);
int vm_mmap(void *addr, size_t len, int prot, int flags, int fd, uint64_t offset);
int vm_view(struct sci_vm *vm, struct vm_range *r, size_t i, bool write);
int vm_views_eager(struct sci_vm *vm, struct vm_range *r);
int vm_window_take(struct sci_vm *vm, struct vm_range *r, size_t i);
void vm_window_give(struct sci_vm *vm, struct vm_page *p);
size_t vm_view_len(const struct vm_range *r, size_t i);
void vm_views_drop(struct sci_vm *vm, struct vm_range *r);
int vm_page_home(struct sci_vm *vm, struct vm_range *r, size_t i);
int vm_view_protect(struct vm_range *r, size_t i, enum vm_state state);
int vm_view_restrict(struct vm_range *r, size_t i, enum vm_state state);
int vm_page_source(struct sci_vm *vm, struct vm_range *r, size_t i, int home, void **src);

/* Return true if a page of a cached range may have changes that its home does not have. */
static inline bool vm_page_changed(const struct vm_page *p)
{
	return !p->lost && (p->state == VM_WRITABLE || p->twin);
}

/* The functions of cache.c are called with vm->lock held, unless a comment says otherwise. */
int vm_cache_open(struct sci_vm *vm);
int vm_copies_attach(struct sci_vm *vm, struct vm_range *r);
int vm_copies_show(struct sci_vm *vm, struct vm_range *r);
void vm_copies_detach(struct sci_vm *vm, struct vm_range *r);
int vm_copy_view(struct sci_vm *vm, struct vm_range *r, size_t i, int home, bool write);
int vm_copy_flush(struct sci_vm *vm, struct vm_range *r, size_t i);
int vm_copy_drop(struct sci_vm *vm, struct vm_range *r, size_t i);
int vm_copy_put(struct sci_vm *vm, struct vm_range *r, size_t i, const void *from, size_t len);
int vm_copies_flush(struct sci_vm *vm, const uint8_t *addr, size_t len);
uint8_t *vm_home_page(struct sci_vm *vm, const void *addr, size_t *len);
int vm_serve_diff(struct sci_vm *vm, const void *addr, const void *runs, size_t len);

/* notice.c */
void vm_dirty_forget(struct sci_vm *vm, const struct vm_range *r);
int vm_dirty_add(struct sci_vm *vm, struct vm_range *r, size_t i);
size_t vm_serve_notices(struct sci_vm *vm, uint32_t since, struct vm_pages **out);

/* trace.c */
int vm_trace_open(struct sci_vm *vm);
void vm_trace_close(struct sci_vm *vm);
void vm_report_range(struct sci_vm *vm, const struct vm_range *r);
void vm_report(struct sci_vm *vm);
void vm_trace(struct sci_vm *vm, const char *event, const void *addr, int home);

#endif
