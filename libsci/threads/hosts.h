/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: nodes that share no memory
 *
 * With SCI_THREADS_HOSTS each node is a rank of a job of `sci run`: a process that has loaded the
 * same program at the same addresses. Node 0 runs main(). The others wait in their initial thread
 * until node 0 spans. From then on messages replace what one kernel does for virtual nodes:
 *
 *	page.c		memory: each page has one writer or several readers at a time
 *	sleep.c		futexes: a node keeps the list of threads that sleep on an address
 *	forward.c	system calls: node 0 makes those about descriptors for threads of all nodes
 *	link.c		the messages, and the death of nodes
 *	hosts.c		start: the same libraries on all nodes, memory and settings of node 0
 *
 * A page is at one moment writable on one node, or readable on some. So all loads, stores and
 * atomic instructions have the order of the threads of one process, and programs with data races
 * behave as on one machine. A thread that touches a page without the right sleeps in the
 * kernel (userfaultfd(2)), also inside a system call, until the page has arrived.
 *
 * Threads of libsci resolve these faults. They must never touch global memory themselves, and threads
 * of the program must not call libsci. The variables of this library are private to each process.
 */
#ifndef LIBSCI_THREADS_HOSTS_H
#define LIBSCI_THREADS_HOSTS_H

#include "threads.h"

#define HOSTS_PAGE	4096u

enum link_op {
	/* a page at addr; value 1: to write */
	PAGE_ASK,			/* faulting node to the manager: ask for a right */
	PAGE_DROP,			/* manager to a reader: drop the copy */
	PAGE_DROPPED,
	PAGE_GIVE,			/* manager to the owner: pass the page to node @token */
	PAGE_GIVE_RIGHT,		/* ... which has the bytes already */
	PAGE_DATA,			/* to the faulting node; the bytes follow */
	PAGE_RIGHT,			/* to the faulting node: its own copy is valid */
	PAGE_DENIED,			/* to the faulting node: the owner may not read its page */
	PAGE_DONE,			/* faulting node to the manager; value -1: denied */
	PAGE_NEXT,			/* manager to itself: serve the next request */
	/* a futex at addr; token: number of a sleeper */
	SLEEP_ADD,
	SLEEP_ADDED,
	SLEEP_REMOVE,
	SLEEP_REMOVED,			/* value 0: a wake-up came first */
	SLEEP_WAKE,			/* value: most sleepers to wake */
	SLEEP_WOKEN,
	PROGRAM_END,			/* node 0 ends the program; value: exit status, or END_... */
	PROGRAM_ENDS,			/* the answer to a PROGRAM_END without exit status */
	LINK_OPS
};

#define END_GONE	-1		/* the program ends when node 0 has gone */
#define END_NOT		-2		/* the program goes on after END_GONE: exec has failed */

struct link_wire {
	uint64_t addr;
	uint32_t token;
	int32_t value;
};

/* Node 0 describes the program when it spans. */
struct span_wire {
	uint32_t pieces_n;
	uint32_t descriptor;		/* futex_descriptor */
	struct {
		char *from, *to;
	} pieces[PIECES_MAX];
	char objects[48 << 10];		/* text of objects_describe() */
	char locale[256];
	FILE *in, *out, *err;
	char **env;
	struct sigaction actions[64];
};

/* link.c: all functions return 0 or -errno */
int link_open(void);
/* Send a message, of a thread of libsci or a handler. @page: HOSTS_PAGE bytes, or NULL. */
void link_send(unsigned int node, enum link_op op, const struct link_wire *w, const void *page);
int link_bcast(void *buf, size_t len);
int link_agree(int error);
unsigned int link_nodes(void);
/* End the other nodes with an exit status, without a message, or with END_GONE. */
void link_end(int status);
/* Undo link_end(END_GONE). If a node has died meanwhile, the program ends. */
void link_go_on(void);
/* End this node, when a call has failed. Another node prints the reason. */
noreturn void link_leave(void);

/* page.c */
int page_open(const struct span_wire *s);
void page_handle(unsigned int from, enum link_op op, const struct link_wire *w, const void *page);
unsigned int page_manager(uint64_t addr);

/* sleep.c */
int sleep_open(void);
void sleep_handle(unsigned int from, enum link_op op, const struct link_wire *w);

#endif
