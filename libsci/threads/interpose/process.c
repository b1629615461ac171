// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Signals, environment and locale, which are the same on all nodes; fork() and exec. */

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "interpose.h"

/* ---- signals ---- */

/* Remove SIGSYS from a mask: no thread may block it, because futex.c handles futexes with it. */
static const sigset_t *mask_clean(const sigset_t *set, sigset_t *copy)
{
	if (!set || !world_spans())
		return set;
	*copy = *set;
	sigdelset(copy, SIGSYS);
	return copy;
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t copy;

	return REAL(pthread_sigmask)(how, how == SIG_UNBLOCK ? set : mask_clean(set, &copy), old);
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	sigset_t copy;

	return REAL(sigprocmask)(how, how == SIG_UNBLOCK ? set : mask_clean(set, &copy), old);
}

struct action {
	int sig;
	const struct sigaction *act;
};

static void action_set(void *arg)
{
	const struct action *a = arg;

	REAL(sigaction)(a->sig, a->act, NULL);
}

EXPORT int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction clean;
	struct action a = { sig, &clean };
	int ret;

	if (!act || !world_spans())
		return REAL(sigaction)(sig, act, old);
	if (sig == SIGSYS) {
		world_say("sigaction(): SIGSYS is the library's while threads run on several nodes");
		errno = EINVAL;
		return -1;
	}
	clean = *act;
	sigdelset(&clean.sa_mask, SIGSYS);
	ret = REAL(sigaction)(sig, &clean, old);
	if (!ret)
		node_call_all(action_set, &a);
	return ret;
}

static __sighandler_t handler_set(int sig, __sighandler_t handler, int flags)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags }, old;

	return sigaction(sig, &sa, &old) ? SIG_ERR : old.sa_handler;
}

EXPORT __sighandler_t signal(int sig, __sighandler_t handler)
{
	return world_spans() ? handler_set(sig, handler, SA_RESTART) :
			       REAL(signal)(sig, handler);
}

EXPORT __sighandler_t __sysv_signal(int sig, __sighandler_t handler)
{
	return world_spans() ? handler_set(sig, handler, SA_RESETHAND | SA_NODEFER) :
			       REAL(__sysv_signal)(sig, handler);
}

/* ---- state that libc keeps in each process ---- */

struct text {
	const char *name, *value;
	int number, ret;
	char *out;
};

static void env_set(void *arg)
{
	struct text *t = arg;

	t->ret = REAL(setenv)(t->name, t->value, t->number);
}

EXPORT int setenv(const char *name, const char *value, int overwrite)
{
	struct text t = { name, value, overwrite, 0, NULL };

	if (!world_spans())
		return REAL(setenv)(name, value, overwrite);
	node_call_all(env_set, &t);
	return t.ret;
}

static void env_unset(void *arg)
{
	struct text *t = arg;

	t->ret = REAL(unsetenv)(t->name);
}

EXPORT int unsetenv(const char *name)
{
	struct text t = { .name = name };

	if (!world_spans())
		return REAL(unsetenv)(name);
	node_call_all(env_unset, &t);
	return t.ret;
}

static void env_put(void *arg)
{
	struct text *t = arg;

	t->ret = REAL(putenv)(t->out);
}

EXPORT int putenv(char *text)
{
	struct text t = { .out = text };

	if (!world_spans())
		return REAL(putenv)(text);
	node_call_all(env_put, &t);
	return t.ret;
}

static void locale_set(void *arg)
{
	struct text *t = arg;
	char *out = REAL(setlocale)(t->number, t->value);

	if (!t->out)
		t->out = out;
}

EXPORT char *setlocale(int category, const char *locale)
{
	struct text t = { .value = locale, .number = category };

	if (!locale || !world_spans())
		return REAL(setlocale)(category, locale);
	node_call_all(locale_set, &t);
	return t.out;
}

/* ---- new processes ---- */

/* Refuse to fork on several nodes: the child would share all memory with its parent. */
EXPORT pid_t fork(void)
{
	if (!world_spans())
		return REAL(fork)();
	world_say("fork(): a process whose threads run on several nodes cannot be copied; posix_spawn(), system() and popen() work");
	errno = ENOSYS;
	return -1;
}

EXPORT pid_t _Fork(void)
{
	return world_spans() ? fork() : REAL(_Fork)();
}

/* End the other nodes before exec, which would end only the threads of its own process. */
static bool exec_begin(void)
{
	if (!world_spans() || getpid_real() != world->leader) {
		if (!world_spans() || getpid_real() != world->node[self_node].pid)
			return true;	/* a child of vfork() */
		world_say("exec: only threads on node %u may replace the program", node_id(0));
		errno = ENOSYS;
		return false;
	}
	world_end();
	return true;
}

EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
	if (world_spans() && access(path, X_OK))
		return -1;
	return exec_begin() ? REAL(execve)(path, argv, env) : -1;
}

EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

EXPORT int execvp(const char *file, char *const argv[])
{
	return exec_begin() ? REAL(execvp)(file, argv) : -1;
}

EXPORT int execvpe(const char *file, char *const argv[], char *const env[])
{
	return exec_begin() ? REAL(execvpe)(file, argv, env) : -1;
}
