/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: one program as threads on several nodes
 *
 * Until the program creates its first thread it is an ordinary process, except that its memory
 * is in the global range: main() runs on a stack there, malloc() allocates there, and the
 * initial thread of the process waits. With the first thread the process *spans*:
 *
 *  1. The initial thread makes all memory of the program shared, without changing its
 *     addresses: the global range, and .data and .bss of the program and of its libraries.
 *     Memory of libc, of the dynamic linker and of libsci stays private.
 *  2. The initial thread clones a process for each further node. The processes share
 *     descriptors, the working directory and the memory of step 1. Each process has its
 *     own copy of libc's memory.
 *  3. A service thread in each process runs calls of the other nodes (node.c), which
 *     create threads, signal them and so on.
 *
 * A thread has its stack, its struct pthread and its thread-local variables in the global
 * range. So its pthread_t is unique, and the libc of its process uses them as usual.
 * Mutexes and the like are libc's own, made process-shared at their first use.
 *
 * Nodes that share no memory, on several machines, are another case: see hosts.h.
 *
 *	libsci/threads/		memory, heap and the homes of its pages, nodes
 *	    interpose/		functions that replace those of libc
 */
#ifndef LIBSCI_THREADS_THREADS_H
#define LIBSCI_THREADS_THREADS_H

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdnoreturn.h>

#include "heap.h"
#include "lock.h"

#define EXPORT		__attribute__((visibility("default")))

#define NODES_MAX	64u
#define THREADS_MAX	16384u			/* number of slots for stacks */
#define SLOT_SIZE	((size_t)16 << 20)
#define PIECES_MAX	256u			/* pieces of shared memory */
#define KEYS_MAX	1024u			/* PTHREAD_KEYS_MAX */

/* The global range of addresses. No supported system maps memory there by itself. */
#define GLOBAL_BASE	((char *)0x200000000000)
/* Between machines: for each thread ID, 1 + the node that has a thread with this ID. */
#define GLOBAL_TIDS	((_Atomic uint8_t *)(void *)(GLOBAL_BASE + ((size_t)512 << 20)))
#define TIDS_MAX	(4u << 20)		/* limit of Linux */
#define GLOBAL_UNITS	(GLOBAL_BASE + ((size_t)1 << 30))
#define GLOBAL_STACKS	(GLOBAL_BASE + ((size_t)1 << 36))
#define GLOBAL_HEAP	(GLOBAL_STACKS + THREADS_MAX * SLOT_SIZE)
#define GLOBAL_HEAP_LEN	((size_t)512 << 30)
#define GLOBAL_LEN	(((size_t)1 << 36) + THREADS_MAX * SLOT_SIZE + GLOBAL_HEAP_LEN)
#define GLOBAL_END	(GLOBAL_BASE + GLOBAL_LEN)

static inline bool is_global(const void *p)
{
	return (size_t)((const char *)p - GLOBAL_BASE) < GLOBAL_LEN;
}

/* ---- calls between nodes (node.c) ---- */

/* A call to a node. It is in global memory, for example on the stack of the calling thread. */
struct call {
	struct call *next;
	void (*fn)(void *arg);
	void *arg;
	futex_t done;
};

struct node {
	pid_t pid;			/* 0: the node does not run */
	char id[16];			/* SCI_NODE; empty: the environment of all nodes has it */
	futex_t calls;			/* counts calls that were queued */
	struct lock lock;
	struct call *first, **last;
	_Atomic uint32_t live;		/* number of threads of the program */
	_Atomic uint32_t created;
	_Atomic uint64_t cpu_ns;	/* CPU time of threads that have ended */
	_Atomic uint64_t heap_bytes;	/* bytes of heap pages whose home is this node */
};

/* Run @fn(@arg) in the service thread of a node, and wait until @fn returns. */
void node_call(unsigned int node, void (*fn)(void *arg), void *arg);
/* Run @fn(@arg) on one node after the other, first on the caller's node. */
void node_call_all(void (*fn)(void *arg), void *arg);
/* Run @fn(@arg) on a node without waiting. @c belongs to the caller again when @fn begins. */
void node_post(unsigned int node, struct call *c, void (*fn)(void *arg), void *arg);
noreturn void node_serve(void);

/* ---- threads (interpose/thread.c) ---- */

enum thread_state {			/* bits */
	THREAD_DETACHED	= 1,
	THREAD_ENDED	= 2
};

/* The result of a claim: does a thread of another machine have the ID of the new thread? */
enum thread_claim {
	CLAIM_UNKNOWN,
	CLAIM_FAILED,
	CLAIM_DONE
};

struct thread {
	struct thread *next;		/* in the list of free records, or in @foreign */
	pthread_t native;
	const pthread_attr_t *attr;	/* valid while the thread is created */
	void *(*fn)(void *arg);
	void *arg;
	void *result;
	sigset_t mask;
	unsigned int node, slot, slots;	/* 0 @slots: the program provides the stack */
	char *stack;			/* lowest byte; NULL: the program provides the stack */
	size_t guard;			/* bytes of the guard below @stack */
	_Atomic uint32_t state;
	futex_t *tid;			/* between machines: the kernel sets it to 0 at the end */
	_Atomic uint32_t claim;		/* between machines: enum thread_claim */
	sem_t ended;
	struct thread *_Atomic joiner;	/* the thread that waits in pthread_join() */
	struct call call;
	int err;
	struct heap_cache cache;	/* only the thread itself uses this, while it runs */
	bool grows;			/* the thread is in libsci, called by home_grow() */
};

/* ---- the world: what the nodes share ---- */

struct key {
	_Atomic uintptr_t seq;		/* odd: in use */
	void (*_Atomic destructor)(void *value);
};

enum place {
	PLACE_ROUND,
	PLACE_LOAD,
	PLACE_LIST
};

enum memory {
	MEMORY_SHARED,			/* the heap is ordinary shared memory */
	MEMORY_HOME,			/* home of new heap pages: one node */
	MEMORY_ROUND			/* homes of new heap pages: all nodes in turn */
};

struct world {
	unsigned int nodes;		/* number of nodes that the user asked for */
	pid_t leader, parent;
	_Atomic bool spans;		/* the other nodes run */
	bool failed;			/* all threads run on node 0 */
	_Atomic bool ending;
	enum place place;
	unsigned int nlist;
	uint8_t list[256];		/* PLACE_LIST: the nodes of new threads, in turn */
	_Atomic unsigned int turn;
	enum memory memory;
	int memory_home;		/* for MEMORY_HOME; -1: node of the calling thread */
	bool report;
	struct node node[NODES_MAX];
	_Atomic uint32_t live;		/* threads of the program, on all nodes */
	struct lock env_lock;		/* held by a thread that changes the environment */
	struct lock user_lock;		/* held by a thread that changes users or groups */
	struct lock lock;		/* protects slots and thread records */
	struct thread *free;
	struct thread *foreign;		/* threads whose stack the program provides */
	struct thread *slots[THREADS_MAX];
	uint32_t slot_free[THREADS_MAX], nslot_free;
	uint32_t slot_top;
	struct key keys[KEYS_MAX];
	struct heap heap;
};

/* The state of all nodes, in global memory; NULL: the library does nothing. */
extern struct world *world;
extern unsigned int self_node;
/* The calling thread; NULL: the library has not created it. */
extern _Thread_local struct thread *self_thread;

/*
 * world_active() - return true if the program runs on several nodes
 *
 * The first call after libc has set environ reads SCI_THREADS_NODES.
 */
bool world_active(void);

/* ---- nodes that share no memory (hosts.h); variables of each process ---- */

extern bool hosts_on;			/* each node is a process of a job of `sci run` */
extern bool hosts_alone;		/* only threads of the program allocate global memory */
extern char **hosts_env;		/* the environment at the start, in private memory */
extern bool hosts_span_done;		/* the nodes run threads */

/*
 * Connect to the other nodes. On node 0 the function returns when all nodes are connected. On other
 * nodes it calls @follow before threads run, and does not return. Context: the initial thread.
 */
void hosts_open(void (*follow)(void));
/* Do world_span() for nodes that share no memory. Failures end the program. */
bool hosts_span(void);
/* End the program on all nodes, with exit status 1 and without handlers of exit(). */
noreturn void hosts_abort(void);
/* Tell the other nodes to end when this process, node 0, has ended. */
void hosts_end(void);
/* Undo world_end(), because exec has failed. */
void hosts_go_on(void);
/* Print the numbers of threads and the CPU time of this node. */
void hosts_report(void *arg);
/* Return the ID of a node of the job. */
uint32_t link_node_id(unsigned int node);
/* Let node 0 make the system calls of the calling thread, a thread of the program. */
void forward_begin(void);
/* Return true if node 0 has to make the system calls of the calling thread. */
static inline bool forward_is_needed(void)
{
	return hosts_on && hosts_span_done && self_node && self_thread;
}
/*
 * Run @fn(@arg) in a thread of node 0, for the calling thread, and wait. Return false if node 0
 * cannot create the thread.
 */
bool forward_run(void (*fn)(void *arg), void *arg);
/* Make a system call on node 0. Return the result, or -errno. Safe in a signal handler. */
long forward_call(int nr, const long args[6]);
/* Leave the lists of sleepers on which a cancelled thread may still be. */
void sleep_thread_end(void);

/* Return true if the calling thread is not of the program, and must not touch global memory. */
static inline bool thread_is_alone(void)
{
	return hosts_alone && !self_thread;
}

/*
 * Return true if the nodes run threads. Between machines: false in threads of libsci, which must not
 * touch global memory.
 */
static inline bool world_spans(void)
{
	if (hosts_on)
		return hosts_span_done && self_thread;
	return world && atomic_load_explicit(&world->spans, memory_order_relaxed);
}

/*
 * Make memory shared and start the other nodes. Return false after a message if that is not
 * possible. Otherwise call @done when the nodes run, from this thread or from another one.
 * Context: the initial thread, while thread @main waits.
 */
bool world_span(pthread_t main, void (*done)(void));
/* Return the number of threads of this process. */
unsigned int tasks_count(void);
/* Wait for the death of another node. Context: the initial thread of the first node. */
noreturn void world_watch(void);
/*
 * If the first node has died, print a message and end this process, which is another node. Only
 * one node prints the message. @sender: the process that has sent SIGSYS, or 0. Safe in a signal
 * handler.
 * Return: false: the first node lives; true: another handler is ending this process.
 */
bool world_orphaned(pid_t sender);
/* Let the kernel end this node when the first node dies, until the user of this node changes. */
void orphan_watch(void);
/* Return the ID of a node that users see: 4, 8, 12, ... */
unsigned int node_id(unsigned int node);
/* Print a line that begins with "sci: " on standard error. */
__attribute__((format(printf, 1, 2))) void world_say(const char *fmt, ...);
/* Remove this library from the environment, so that child programs run on one node. */
void environment_clean(void);
/* End the processes of the other nodes, and wait until they have ended. */
void world_end(void);

/* memory.c */
bool memory_init(void);
bool memory_share(void);		/* false: failed, after a message */
void memory_discard(void *p, size_t len);
/* Get piece @i of the memory that memory_share() has shared. Return false if it does not exist. */
bool memory_piece(unsigned int i, const char **from, const char **to);
/* Find the memory that nodes have to share. */
bool memory_find_pieces(void);		/* false: there are too many */
void memory_piece_add(char *from, char *to);
/* Record which libraries libsci loads, so that their memory stays private. */
void memory_libsci_loads(bool begin);
/* Return true for library @i, in the order of dl_iterate_phdr(), if libsci has loaded it. */
bool memory_is_libsci_object(unsigned int i);
/* Find the code of libsci again, after the program has opened libraries. */
void memory_find_libsci(void);
/* Return true if the address is in the code of libsci, whose memory stays private. */
bool memory_is_libsci(const void *code);

/*
 * Load libsci, and make node 0 the launcher of a team of all nodes. Context: the initial thread
 * of node 0. Return: false: the heap stays ordinary shared memory.
 */
bool home_prepare(void);
extern bool home_loads;			/* the initial thread allocates private memory */
extern bool frees_nothing;		/* free() keeps global blocks of the initial thread */
/*
 * Open the SCI Virtual Memory for the heap, on all nodes at once. Context: the initial thread of
 * each node (node 0: another thread, see span_end()), after home_prepare().
 */
void home_open(void);

/* Open a library from the directory of this library, or else where the dynamic linker finds it. */
void *library_open(const char *name);

/*
 * Block the signals of the calling thread, and restore its mask. SIGSYS stays unblocked: see futex.c.
 * A handler must not run in a thread that holds a lock which calls in a handler need.
 */
void signals_block(sigset_t *old);
void signals_restore(const sigset_t *old);
/* Start a thread of this library. It blocks signals, so that threads of the program get them. */
bool quiet_start(void *(*fn)(void *arg));
/* Start the service thread of this node. */
bool service_start(void);

/* Make libraries' private futexes work between nodes. Return false if that is not possible. */
bool futex_share(void);
/* The offset of a thread's descriptor in the last slot of its stack. Set it before futex_share(). */
extern uint32_t futex_descriptor;

/* The definition of a function in the next library: usually in libc. */
#define REAL(name)							\
	({								\
		static __typeof__(&name) real_;				\
									\
		if (!real_)						\
			real_ = (__typeof__(&name))dlsym(RTLD_NEXT, #name); \
		real_;							\
	})

#endif
