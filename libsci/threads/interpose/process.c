// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Signals, environment and locale, which are the same on all nodes; fork() and exec. */

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>

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

/* Calls that wait with another mask. A handler that runs meanwhile has this mask, too. */

EXPORT int sigsuspend(const sigset_t *set)
{
	sigset_t copy;

	return REAL(sigsuspend)(mask_clean(set, &copy));
}

EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		 const sigset_t *set)
{
	sigset_t copy;

	return REAL(ppoll)(fds, n, timeout, mask_clean(set, &copy));
}

int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		const sigset_t *set, size_t len);

/* ppoll() of a program that was compiled with _FORTIFY_SOURCE */
EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout,
		       const sigset_t *set, size_t len)
{
	sigset_t copy;

	return REAL(__ppoll_chk)(fds, n, timeout, mask_clean(set, &copy), len);
}

EXPORT int pselect(int n, fd_set *in, fd_set *out, fd_set *except,
		   const struct timespec *timeout, const sigset_t *set)
{
	sigset_t copy;

	return REAL(pselect)(n, in, out, except, timeout, mask_clean(set, &copy));
}

EXPORT int epoll_pwait(int fd, struct epoll_event *events, int n, int timeout,
		       const sigset_t *set)
{
	sigset_t copy;

	return REAL(epoll_pwait)(fd, events, n, timeout, mask_clean(set, &copy));
}

#if __GLIBC_PREREQ(2, 35)
EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int n,
			const struct timespec *timeout, const sigset_t *set)
{
	sigset_t copy;

	return REAL(epoll_pwait2)(fd, events, n, timeout, mask_clean(set, &copy));
}
#endif

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
	int number, ret, err;
	char *out, **env;
};

/* Find a variable for a thread of libsci: the environment of the program is global memory. */
static char *alone_getenv(const char *name)
{
	size_t n = strlen(name);

	for (char **e = hosts_env; *e; e++)
		if (!strncmp(*e, name, n) && (*e)[n] == '=')
			return *e + n + 1;
	return NULL;
}

/* Find a variable that is not in the environment of the program; NULL: look there. */
static char *own_getenv(const char *name)
{
	char *id = world && !hosts_on ? world->node[self_node].id : NULL;

	return id && *id && !strcmp(name, "SCI_NODE") ? id : NULL;
}

EXPORT char *getenv(const char *name)
{
	char *own = own_getenv(name);

	if (own)
		return own;
	return thread_is_alone() && hosts_env ? alone_getenv(name) : REAL(getenv)(name);
}

EXPORT char *secure_getenv(const char *name)
{
	char *own = own_getenv(name);

	if (own)
		return own;
	return thread_is_alone() && hosts_env ? alone_getenv(name) : REAL(secure_getenv)(name);
}

static void environ_take(void *arg)
{
	environ = arg;
}

/*
 * Change the environment on all nodes. Node 0 changes it, in global memory, and the other nodes use
 * the same memory: libc reallocates the array that it has allocated before, so only one node's libc
 * may do that. Two changes at once could leave an array on a node that the later change has freed.
 */
static int env_change(void (*fn)(void *arg), struct text *t)
{
	t->ret = -1;
	t->err = ENOMEM;
	lock_take(&world->env_lock);
	if (!self_node)
		fn(t);
	else if (!forward_run(fn, t))
		t->env = environ;
	node_call_all(environ_take, t->env);
	lock_give(&world->env_lock);
	if (t->ret)
		errno = t->err;
	return t->ret;
}

static void env_set(void *arg)
{
	struct text *t = arg;

	t->ret = REAL(setenv)(t->name, t->value, t->number);
	t->err = errno;
	t->env = environ;
}

EXPORT int setenv(const char *name, const char *value, int overwrite)
{
	struct text t = { .name = name, .value = value, .number = overwrite };

	if (!world_spans())
		return REAL(setenv)(name, value, overwrite);
	return env_change(env_set, &t);
}

static void env_unset(void *arg)
{
	struct text *t = arg;

	t->ret = REAL(unsetenv)(t->name);
	t->err = errno;
	t->env = environ;
}

EXPORT int unsetenv(const char *name)
{
	struct text t = { .name = name };

	if (!world_spans())
		return REAL(unsetenv)(name);
	return env_change(env_unset, &t);
}

static void env_put(void *arg)
{
	struct text *t = arg;

	t->ret = REAL(putenv)(t->out);
	t->err = errno;
	t->env = environ;
}

EXPORT int putenv(char *text)
{
	struct text t = { .out = text };

	if (!world_spans())
		return REAL(putenv)(text);
	return env_change(env_put, &t);
}

static void env_clear(void *arg)
{
	struct text *t = arg;

	t->ret = REAL(clearenv)();
	t->err = errno;
	t->env = environ;
}

EXPORT int clearenv(void)
{
	struct text t = { 0 };

	return world_spans() ? env_change(env_clear, &t) : REAL(clearenv)();
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

/* Between machines only node 0 starts processes: children are children of node 0. */

struct child {
	const char *text, *mode;
	FILE *f;
	pid_t *pid;
	const posix_spawn_file_actions_t *actions;
	const posix_spawnattr_t *attr;
	char *const *argv, *const *env;
	bool search;
	int ret, err;
	void (*fn)(void *arg);
	sigset_t mask;			/* of the calling thread: the child inherits it */
};

static void child_run_proxy(void *arg)
{
	struct child *c = arg;
	sigset_t old;

	REAL(pthread_sigmask)(SIG_SETMASK, &c->mask, &old);
	c->fn(c);
	REAL(pthread_sigmask)(SIG_SETMASK, &old, NULL);
}

/* Run @fn(@c) on node 0. */
static void child_run(void (*fn)(void *arg), struct child *c)
{
	c->fn = fn;
	if (!forward_is_needed()) {
		fn(c);
	} else {
		REAL(pthread_sigmask)(SIG_BLOCK, NULL, &c->mask);
		sigdelset(&c->mask, SIGSYS);
		if (!forward_run(child_run_proxy, c))
			c->err = EAGAIN;
	}
	if (c->err)
		errno = c->err;
}

static void system_here(void *arg)
{
	struct child *c = arg;

	c->ret = REAL(system)(c->text);
	c->err = c->ret < 0 ? errno : 0;
}

EXPORT int system(const char *text)
{
	struct child c = { .text = text, .ret = -1 };

	child_run(system_here, &c);
	return c.ret;
}

static void popen_here(void *arg)
{
	struct child *c = arg;

	c->f = REAL(popen)(c->text, c->mode);
	c->err = c->f ? 0 : errno;
}

EXPORT FILE *popen(const char *text, const char *mode)
{
	struct child c = { .text = text, .mode = mode };

	child_run(popen_here, &c);
	return c.f;
}

static void pclose_here(void *arg)
{
	struct child *c = arg;

	c->ret = REAL(pclose)(c->f);
	c->err = c->ret < 0 ? errno : 0;
}

EXPORT int pclose(FILE *f)
{
	struct child c = { .f = f, .ret = -1 };

	child_run(pclose_here, &c);
	return c.ret;
}

static void posix_spawn_here(void *arg)
{
	struct child *c = arg;

	c->ret = c->search ? REAL(posix_spawnp)(c->pid, c->text, c->actions, c->attr, c->argv,
						c->env) :
			     REAL(posix_spawn)(c->pid, c->text, c->actions, c->attr, c->argv,
					       c->env);
}

/* Return errno: these functions do not set errno. */
static int spawn(struct child *c)
{
	int err = errno;

	child_run(posix_spawn_here, c);
	errno = err;
	return c->err ? c->err : c->ret;
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	struct child c = { .pid = pid, .text = path, .actions = actions, .attr = attr,
			   .argv = argv, .env = env };

	return spawn(&c);
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	struct child c = { .pid = pid, .text = file, .actions = actions, .attr = attr,
			   .argv = argv, .env = env, .search = true };

	return spawn(&c);
}

/* End the other nodes before exec, which would end only the threads of its own process. */
static bool exec_begin(void)
{
	if (hosts_on && world && !world_spans() && getpid_real() == world->leader) {
		world_end();		/* node 0 has no threads yet, but the other nodes wait */
		return true;
	}
	/* on another machine the process of a node may have the ID of node 0 */
	if (!world_spans() || self_node || getpid_real() != world->leader) {
		if (!world_spans() || getpid_real() != world->node[self_node].pid)
			return true;	/* a child of vfork() */
		world_say("exec: only threads on node %u may replace the program", node_id(0));
		errno = ENOSYS;
		return false;
	}
	world_end();
	return true;
}

/*
 * Return -1, because the kernel has refused a program. Nodes of several machines still run, and go on.
 * Nodes of one machine have ended: so end, too.
 */
static int exec_fail(void)
{
	int err = errno;

	if (!world || self_node || getpid_real() != world->leader || !atomic_load(&world->ending))
		return -1;
	if (!hosts_on) {
		world_say("exec: %s: the program ends, because its other nodes have ended",
			  strerror(errno));
		syscall(SYS_exit_group, 1);
	}
	hosts_go_on();
	errno = err;
	return -1;
}

/* Return true if @path is a file that may be executed, else set errno. */
static bool program_is_executable(const char *path)
{
	struct stat st;

	if (access(path, X_OK) || stat(path, &st))
		return false;
	errno = EACCES;
	return S_ISREG(st.st_mode);
}

/* Return true if execvp(3) finds a program, else set errno. */
static bool program_is_found(const char *file)
{
	const char *path = getenv("PATH"), *end;
	char name[PATH_MAX];
	int err = ENOENT;

	if (strchr(file, '/'))
		return program_is_executable(file);
	for (path = path ? path : "/bin:/usr/bin"; *file; path = end + 1) {
		end = strchrnul(path, ':');
		snprintf(name, sizeof(name), "%.*s%s%s", (int)(end - path), path,
			 end > path ? "/" : "", file);
		if (program_is_executable(name))
			return true;
		err = errno == EACCES ? EACCES : err;
		if (!*end)
			break;
	}
	errno = err;
	return false;
}

EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
	if (world && !program_is_executable(path))
		return -1;
	return exec_begin() && !REAL(execve)(path, argv, env) ? 0 : exec_fail();
}

EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const env[])
{
	if (world && !program_is_found(file))
		return -1;
	return exec_begin() && !REAL(execvpe)(file, argv, env) ? 0 : exec_fail();
}

/* Copy the arguments of execl(3), which end with NULL, to an array. Leave *@ap behind the NULL. */
#define ARGUMENTS_COPY(ap, first)						\
	size_t n_ = 1;								\
	va_list count_;								\
										\
	va_copy(count_, ap);							\
	while (va_arg(count_, char *))						\
		n_++;								\
	va_end(count_);								\
	char **argv = __builtin_alloca((n_ + 1) * sizeof(*argv));		\
										\
	argv[0] = (char *)(uintptr_t)(first);					\
	for (size_t i_ = 1; i_ <= n_; i_++)					\
		argv[i_] = va_arg(ap, char *)

EXPORT int execl(const char *path, const char *arg, ...)
{
	va_list ap;

	va_start(ap, arg);
	ARGUMENTS_COPY(ap, arg);
	va_end(ap);
	return execve(path, argv, environ);
}

EXPORT int execle(const char *path, const char *arg, ...)
{
	char **env;
	va_list ap;

	va_start(ap, arg);
	ARGUMENTS_COPY(ap, arg);
	env = va_arg(ap, char **);
	va_end(ap);
	return execve(path, argv, env);
}

EXPORT int execlp(const char *file, const char *arg, ...)
{
	va_list ap;

	va_start(ap, arg);
	ARGUMENTS_COPY(ap, arg);
	va_end(ap);
	return execvp(file, argv);
}
