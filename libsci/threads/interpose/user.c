// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Users and groups. libc changes those of all threads of its process. Here they change on all
 * nodes. Between machines only those of node 0 count, because it makes the system calls.
 */

#include <errno.h>
#include <grp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "interpose.h"

struct user {
	int (*make)(const struct user *u);
	unsigned int a, b, c;
	const void *p;
	size_t n;
	int err;
	futex_t watched;
};

static void user_watch(void *arg)
{
	struct user *u = arg;

	orphan_watch();
	atomic_store(&u->watched, 1);
	futex_wake(&u->watched, 1);
}

/*
 * The kernel has stopped the watch of this node. It sends the signal to the thread that asked for it:
 * let the service thread ask, which does not end before the node.
 */
static void user_watch_again(struct user *u)
{
	struct call c;

	if (!self_thread) {
		orphan_watch();		/* this is the service thread */
		return;
	}
	atomic_store(&u->watched, 0);
	node_post(self_node, &c, user_watch, u);
	while (!atomic_load(&u->watched))
		futex_wait(&u->watched, 0);
}

static void user_change_here(void *arg)
{
	struct user *u = arg;

	if (u->err)
		return;			/* another node has failed */
	if (u->make(u))
		u->err = errno;
	if (self_node && !hosts_on)
		user_watch_again(u);
}

static int user_change(struct user *u)
{
	int cancel;

	if (!world_spans() || getpid_real() != world->node[self_node].pid)
		return u->make(u);
	/* initgroups() may wait for a server */
	REAL(pthread_setcancelstate)(PTHREAD_CANCEL_DISABLE, &cancel);
	lock_take(&world->user_lock);
	if (!hosts_on)
		node_call_all(user_change_here, u);
	else if (!self_node)
		user_change_here(u);
	else if (!forward_run(user_change_here, u))
		u->err = EAGAIN;
	lock_give(&world->user_lock);
	REAL(pthread_setcancelstate)(cancel, NULL);
	if (!u->err)
		return 0;
	errno = u->err;
	return -1;
}

/* Define the function @name of libc, which returns 0 or -1. */
#define USER(name, parameters, call, ...)				\
static int name##_make(const struct user *u)				\
{									\
	return REAL(name) call;						\
}									\
									\
EXPORT int name parameters						\
{									\
	struct user u = { .make = name##_make, __VA_ARGS__ };		\
									\
	return user_change(&u);						\
}

USER(setuid, (uid_t id), (u->a), .a = id)
USER(setgid, (gid_t id), (u->a), .a = id)
USER(seteuid, (uid_t id), (u->a), .a = id)
USER(setegid, (gid_t id), (u->a), .a = id)
USER(setreuid, (uid_t real, uid_t effective), (u->a, u->b), .a = real, .b = effective)
USER(setregid, (gid_t real, gid_t effective), (u->a, u->b), .a = real, .b = effective)
USER(setresuid, (uid_t real, uid_t effective, uid_t saved), (u->a, u->b, u->c),
     .a = real, .b = effective, .c = saved)
USER(setresgid, (gid_t real, gid_t effective, gid_t saved), (u->a, u->b, u->c),
     .a = real, .b = effective, .c = saved)
USER(setgroups, (size_t n, const gid_t *groups), (u->n, u->p), .n = n, .p = groups)
USER(initgroups, (const char *name, gid_t group), (u->p, u->a), .p = name, .a = group)
