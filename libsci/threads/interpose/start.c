// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Start and end of the program. */

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "interpose.h"

typedef int (*main_fn)(int argc, char **argv, char **env);

static struct {
	main_fn main;
	int argc;
	char **argv;
	void (*init)(int argc, char **argv, char **env);
	void (*rtld_fini)(void);
} start;

/* ---- the end ---- */

#define HANDLER_BLOCK	32		/* handlers in a block of libc's list */

/*
 * Set a handler of exit() many times. libc removes a handler from its list before the call, and threads
 * that call exit() at the same time each take one. The last handlers are in a new block of the list: in
 * private memory, so that the handlers that this node sets later are not in the lists of other nodes.
 * Context: the initial thread.
 */
static void exit_handler_set(void (*fn)(int status, void *arg))
{
	home_loads = true;
	for (int i = 0; i <= HANDLER_BLOCK; i++)
		on_exit(fn, NULL);
	home_loads = false;
}

/*
 * Handle exit(). This handler runs last, because it was set first. If several threads call exit(), libc
 * would end the process in the second call, while the first one still waits.
 */
static void program_end(int status, void *arg)
{
	static _Atomic pid_t first;	/* ID of the thread that ends the program */
	pid_t none = 0, self = (pid_t)syscall(SYS_gettid);

	(void)status;
	(void)arg;
	if (getpid_real() != world->leader || (!hosts_on && !world_spans()))
		return;
	if (atomic_compare_exchange_strong(&first, &none, self)) {
		world_end();
	} else if (none != self) {
		on_exit(program_end, NULL);
		for (;;)
			pause();
	}
}

static void *exit_thread(void *arg)
{
	exit((int)(intptr_t)arg);
}

/* End the program without handlers. Context: the first node. */
static void exit_now(void *arg)
{
	world_end();
	syscall(SYS_exit_group, *(int *)arg);
}

static void exit_first(void *arg)
{
	if (thread_start_local(exit_thread, (void *)(intptr_t)*(int *)arg))
		exit_now(arg);
}

/*
 * Handle exit() on another node than the first one, also if libc itself calls it, as err() does. End
 * the program on the first node, which has the other handlers and the list of streams.
 */
static void exit_elsewhere(int status, void *arg)
{
	bool child;

	(void)arg;
	if (!world_spans())
		return;
	child = getpid_real() != world->node[self_node].pid;
	if (!self_node && !child)
		return;
	on_exit(exit_elsewhere, NULL);
	/* in a child of vfork() the other handlers would change the memory of the parent */
	if (child)
		syscall(SYS_exit_group, status);
	node_call(0, exit_first, &status);
	for (;;)
		pause();
}

static void exit_prepare(void)
{
	exit_handler_set(exit_elsewhere);
}

/* ---- the first thread that is created ---- */

enum span_state {
	SPAN_NOT,
	SPAN_WANTED,
	SPAN_DONE
};

/* State of threads_span(). Only the first node's process uses it, so it is not shared. */
static futex_t span_state;
static pthread_t span_main;

bool threads_span(void)
{
	uint32_t state = SPAN_NOT;
	sigset_t set;

	if (!world || thread_is_alone() || world->failed)
		return false;
	if (world_spans())
		return getpid_real() == world->node[self_node].pid;
	if (world->leader != getpid_real() || !self_thread)
		return false;		/* a library's constructor, or a thread of libsci */
	sigemptyset(&set);
	sigaddset(&set, SIGSYS);	/* see futex.c */
	REAL(pthread_sigmask)(SIG_UNBLOCK, &set, NULL);
	span_main = self_thread->native;
	if (atomic_compare_exchange_strong(&span_state, &state, SPAN_WANTED))
		futex_wake(&span_state, 1);
	while (atomic_load(&span_state) != SPAN_DONE)
		futex_wait(&span_state, SPAN_WANTED);
	return world_spans();
}

static void span_done(void)
{
	atomic_store(&span_state, SPAN_DONE);
	futex_wake(&span_state, 1);
}

/*
 * End the program after its last thread, if the program stays on one node: libc counts those
 * threads, but also the initial one.
 */
static noreturn void last_wait(void)
{
	const struct timespec pause = { 0, 10000000 };
	uint32_t main_lives;

	while ((main_lives = atomic_load(&world->live)))
		futex_wait(&world->live, main_lives);
	while (tasks_count() > 1)
		nanosleep(&pause, NULL);
	exit(0);
}

/* Run the initial thread. It blocks signals, so that threads of the program receive them. */
static noreturn void initial_main(void)
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGSYS);	/* see futex.c */
	REAL(pthread_sigmask)(SIG_SETMASK, &all, NULL);
	while (atomic_load(&span_state) == SPAN_NOT)
		futex_wait(&span_state, SPAN_NOT);
	exit_prepare();
	if (!world_span(span_main, span_done)) {
		world->failed = true;
		span_done();
		last_wait();
	}
	world_watch();
}

/* ---- main ---- */

/* Call the program's constructors, as libc does. */
static void program_init(void)
{
	ElfW(Addr) *array = NULL;
	size_t n = 0;
	struct link_map *map = _r_debug.r_map;

	if (start.init) {		/* binaries made for libc before 2.34 */
		start.init(start.argc, start.argv, environ);
		return;
	}
	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_INIT)
			((void (*)(int, char **, char **))(map->l_addr + d->d_un.d_ptr))(
				start.argc, start.argv, environ);
		if (d->d_tag == DT_INIT_ARRAY)
			array = (void *)(map->l_addr + d->d_un.d_ptr);
		if (d->d_tag == DT_INIT_ARRAYSZ)
			n = d->d_un.d_val / sizeof(*array);
	}
	for (size_t i = 0; array && i < n; i++)
		((void (*)(int, char **, char **))array[i])(start.argc, start.argv, environ);
}

static char **strings_copy(char **s)
{
	size_t n = 0;
	char **copy;

	while (s[n])
		n++;
	copy = calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++)
		copy[i] = strdup(s[i]);
	return copy ? copy : s;
}

/*
 * Copy the arguments and the environment, which programs change, to memory that all nodes share. The
 * stack of the initial thread is other memory on each node.
 */
static void arguments_copy(void)
{
	start.argv = strings_copy(start.argv);
	environ = strings_copy(environ);
}

/*
 * Replace the streams before any library keeps a pointer to them, as libstdc++ does for std::cout.
 * The linker marks this library, so that its constructor runs first, also before that of libc.
 */
__attribute__((constructor))
static void streams_begin(int argc, char **argv, char **env)
{
	(void)argc;
	(void)argv;
	environ = environ ? environ : env;
	if (world_active() && !self_node)
		stdio_replace();
}

static void *program_main(void *arg)
{
	(void)arg;
	if (start.rtld_fini)
		atexit(start.rtld_fini);
	program_init();
	exit(start.main(start.argc, start.argv, environ));
}

EXPORT int __libc_start_main(main_fn main, int argc, char **argv,
			     void (*init)(int, char **, char **), void (*fini)(void),
			     void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(main_fn main, int argc, char **argv,
		      void (*init)(int, char **, char **), void (*fini)(void),
		      void (*rtld_fini)(void), void *stack_end)
{
	int ret;

	if (!world_active())
		return REAL(__libc_start_main)(main, argc, argv, init, fini, rtld_fini,
					       stack_end);
	start.main = main;
	start.argc = argc;
	start.argv = argv;
	start.init = init;
	start.rtld_fini = rtld_fini;
	if (hosts_on) {
		hosts_env = environ;
		environment_clean();
	}
	if (!self_node) {
		arguments_copy();
		exit_handler_set(program_end);
	}
	if (hosts_on)
		hosts_open(exit_prepare);
	ret = thread_main_start(program_main);
	if (ret) {
		world_say("cannot start the main thread: %s", strerror(ret));
		_exit(1);
	}
	initial_main();
}

/* ---- the end without handlers ---- */

EXPORT noreturn void _exit(int status)
{
	/* a child of vfork() has the variables of its parent, but another ID */
	if (world_spans() && getpid_real() == world->node[self_node].pid)
		node_call(0, exit_now, &status);
	if (hosts_on && !world_spans() && !self_node && getpid_real() == world->leader)
		exit_now(&status);
	for (;;)
		syscall(SYS_exit_group, status);
}

EXPORT noreturn void _Exit(int status)
{
	_exit(status);
}

/* ---- handlers of exit() ---- */

struct exit_handler {
	void (*fn)(void *arg);
	void *arg, *dso;
	int ret;
};

int __cxa_atexit(void (*fn)(void *arg), void *arg, void *dso);

static void exit_handler_add(void *arg)
{
	struct exit_handler *h = arg;

	h->ret = REAL(__cxa_atexit)(h->fn, h->arg, h->dso);
}

/* Register a handler of atexit(), or the destructor of a static object, on the first node. */
EXPORT int __cxa_atexit(void (*fn)(void *arg), void *arg, void *dso)
{
	struct exit_handler h = { fn, arg, dso, 0 };

	if (!world_spans() || !self_node)
		return REAL(__cxa_atexit)(fn, arg, dso);
	node_call(0, exit_handler_add, &h);
	return h.ret;
}

/* ---- process ids: all nodes have those of the first node ---- */

pid_t getpid_real(void)
{
	return (pid_t)syscall(SYS_getpid);
}

/* Return the first node's process ID, but the real ID to libsci: it treats a node as a process. */
EXPORT pid_t getpid(void)
{
	return world_spans() && self_node &&
	       !memory_is_libsci(__builtin_return_address(0)) ? world->leader : getpid_real();
}

EXPORT pid_t getppid(void)
{
	return world_spans() && self_node ? world->parent : (pid_t)syscall(SYS_getppid);
}
