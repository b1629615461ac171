// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Calls between nodes. Code and arguments have the same addresses on all nodes. */

#include <errno.h>
#include <limits.h>

#include "threads.h"

enum call_state {
	CALL_WAITS,
	CALL_DONE,
	CALL_POSTED
};

/* Queue a call. A handler may queue another one, so no signal may interrupt the lock's owner. */
static void node_queue(struct node *n, struct call *c)
{
	sigset_t old;

	signals_block(&old);
	lock_take(&n->lock);
	c->next = NULL;
	if (!n->first)
		n->last = &n->first;
	*n->last = c;
	n->last = &c->next;
	lock_give(&n->lock);
	signals_restore(&old);
	atomic_fetch_add(&n->calls, 1);
	futex_wake(&n->calls, 1);
}

/*
 * The memory of a posted call may be freed when its function runs, and that of any other call
 * when @done is set. So the wake-up may reach another futex at that address, whose users then
 * check their condition again.
 */
static void call_run(struct call *c)
{
	bool posted = atomic_load(&c->done) == CALL_POSTED;

	c->fn(c->arg);
	if (posted)
		return;
	atomic_store_explicit(&c->done, CALL_DONE, memory_order_release);
	futex_wake(&c->done, INT_MAX);
}

static struct call *node_next(struct node *n)
{
	struct call *c;

	lock_take(&n->lock);
	c = n->first;
	if (c)
		n->first = c->next;
	lock_give(&n->lock);
	return c;
}

noreturn void node_serve(void)
{
	struct node *n = &world->node[self_node];

	for (;;) {
		uint32_t seen = atomic_load(&n->calls);
		struct call *c = node_next(n);

		if (c)
			call_run(c);
		else
			futex_wait(&n->calls, seen);
	}
}

void node_call(unsigned int node, void (*fn)(void *arg), void *arg)
{
	struct call c = { .fn = fn, .arg = arg };
	int err = errno;

	/* a thread whose system calls node 0 makes leaves calls to the service thread */
	if (node == self_node && !forward_is_needed()) {
		fn(arg);
		return;
	}
	node_queue(&world->node[node], &c);
	while (atomic_load_explicit(&c.done, memory_order_acquire) == CALL_WAITS)
		futex_wait(&c.done, CALL_WAITS);
	errno = err;
}

void node_call_all(void (*fn)(void *arg), void *arg)
{
	fn(arg);
	for (unsigned int i = 0; world_spans() && i < world->nodes; i++)
		if (i != self_node)
			node_call(i, fn, arg);
}

void node_post(unsigned int node, struct call *c, void (*fn)(void *arg), void *arg)
{
	c->fn = fn;
	c->arg = arg;
	atomic_store(&c->done, CALL_POSTED);
	node_queue(&world->node[node], c);
}
