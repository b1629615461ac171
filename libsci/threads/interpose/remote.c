// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Functions with a pthread_t argument. Each runs in the process of that thread. */

#include <errno.h>
#include <sched.h>
#include <time.h>

#include "interpose.h"

struct about {
	pthread_t t;
	union {
		int number;
		void *p;
		const void *cp;
		size_t size;
	} a, b;
	int ret;
};

/*
 * Define the function @name. It runs in the process of thread @t, or in this process if this
 * library has not created @t. @here: the calling thread may call it for a thread of its own
 * process.
 */
#define ABOUT_IF(here, name, parameters, arguments, call, ...)		\
static void name##_there(void *arg)					\
{									\
	struct about *c = arg;						\
									\
	c->ret = REAL(name) call;					\
}									\
									\
EXPORT int name parameters						\
{									\
	struct about c = { .t = t, __VA_ARGS__ };			\
	struct thread *record = world_spans() ? thread_find(t) : NULL;	\
									\
	if (!record || (record->node == self_node && (here)))		\
		return REAL(name) arguments;				\
	node_call(record->node, name##_there, &c);			\
	return c.ret;							\
}

#define ABOUT(name, ...)	ABOUT_IF(true, name, __VA_ARGS__)
/* Define a function that opens files in /proc/self. */
#define ABOUT_IN_PROC(name, ...)	ABOUT_IF(!forward_is_needed(), name, __VA_ARGS__)

ABOUT(pthread_cancel, (pthread_t t), (t), (c->t), .a.number = 0)
ABOUT(pthread_kill, (pthread_t t, int sig), (t, sig), (c->t, c->a.number), .a.number = sig)
ABOUT(pthread_sigqueue, (pthread_t t, int sig, const union sigval value), (t, sig, value),
      (c->t, c->a.number, (union sigval){ .sival_ptr = c->b.p }),
      .a.number = sig, .b.p = value.sival_ptr)
ABOUT_IN_PROC(pthread_setname_np, (pthread_t t, const char *name), (t, name), (c->t, c->a.cp),
	      .a.cp = name)
ABOUT_IN_PROC(pthread_getname_np, (pthread_t t, char *name, size_t size), (t, name, size),
	      (c->t, c->a.p, c->b.size), .a.p = name, .b.size = size)
ABOUT(pthread_setschedparam, (pthread_t t, int policy, const struct sched_param *param),
      (t, policy, param), (c->t, c->a.number, c->b.cp), .a.number = policy, .b.cp = param)
ABOUT(pthread_getschedparam, (pthread_t t, int *policy, struct sched_param *param),
      (t, policy, param), (c->t, c->a.p, c->b.p), .a.p = policy, .b.p = param)
ABOUT(pthread_setschedprio, (pthread_t t, int prio), (t, prio), (c->t, c->a.number),
      .a.number = prio)
ABOUT(pthread_setaffinity_np, (pthread_t t, size_t size, const cpu_set_t *set), (t, size, set),
      (c->t, c->a.size, c->b.cp), .a.size = size, .b.cp = set)
ABOUT(pthread_getaffinity_np, (pthread_t t, size_t size, cpu_set_t *set), (t, size, set),
      (c->t, c->a.size, c->b.p), .a.size = size, .b.p = set)
ABOUT(pthread_getattr_np, (pthread_t t, pthread_attr_t *attr), (t, attr), (c->t, c->a.p),
      .a.p = attr)
