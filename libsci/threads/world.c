// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Start, watch and end the processes of the nodes. */

#include <dirent.h>
#include <errno.h>
#include <linux/sched.h>
#include <locale.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "threads.h"

struct world *world;
unsigned int self_node;
_Thread_local struct thread *self_thread;
bool frees_nothing;

extern FILE *_IO_list_all;		/* libc's list of all open streams */

unsigned int node_id(unsigned int node)
{
	uint32_t id = hosts_on ? link_node_id(node) : 0;

	return id ? id : 4 * (node + 1);
}

void world_say(const char *fmt, ...)
{
	char text[512];
	va_list ap;
	int n;

	n = snprintf(text, sizeof(text), "sci: ");
	va_start(ap, fmt);
	n += vsnprintf(text + n, sizeof(text) - (size_t)n - 1, fmt, ap);
	va_end(ap);
	if ((size_t)n > sizeof(text) - 2)
		n = sizeof(text) - 2;
	text[n++] = '\n';
	if (write(2, text, (size_t)n) < 0)
		return;
}

/* ---- options ---- */

/* Parse a place: "round" (default), "load", or node ids in turn: "4,8,8". */
static bool place_parse(struct world *w, const char *s)
{
	char *end;

	if (!s || !*s || !strcmp(s, "round"))
		return true;
	if (!strcmp(s, "load")) {
		w->place = PLACE_LOAD;
		return true;
	}
	w->place = PLACE_LIST;
	w->turn = 0;
	for (; *s; s = end + (*end == ',')) {
		unsigned long id = strtoul(s, &end, 10);

		if (end == s || (*end && *end != ',') || id % 4 || !id ||
		    id > 4 * w->nodes || w->nlist == sizeof(w->list))
			return false;
		w->list[w->nlist++] = (uint8_t)(id / 4 - 1);
	}
	return true;
}

/* Parse the home of new heap pages: "shared" (default), "local", "round", or a node ID. */
static bool memory_parse(struct world *w, const char *s)
{
	char *end;
	unsigned long id;

	if (!s || !*s || !strcmp(s, "shared"))
		return true;
	w->memory = MEMORY_HOME;
	w->memory_home = -1;
	if (!strcmp(s, "round"))
		w->memory = MEMORY_ROUND;
	if (!strcmp(s, "round") || !strcmp(s, "local"))
		return true;
	id = strtoul(s, &end, 10);
	w->memory_home = (int)(id / 4) - 1;
	return !*end && id && id % 4 == 0 && id <= 4 * w->nodes;
}

static bool world_open(const char *nodes)
{
	const char *rank = getenv("SCI_RANK");
	char *end;
	unsigned long n = strtoul(nodes, &end, 10);

	if (*end || !n || n > NODES_MAX) {
		world_say("SCI_THREADS_NODES: '%s' is no number of nodes, 1 to %u", nodes,
			  NODES_MAX);
		return false;
	}
	if (n == 1)
		return false;
	if (!memory_init()) {
		world_say("no room for the global memory (%s): the program runs on one node",
			  strerror(errno));
		return false;
	}
	hosts_on = getenv("SCI_THREADS_HOSTS") != NULL;
	if (hosts_on && rank)
		self_node = (unsigned int)atoi(rank);
	hosts_alone = self_node;
	world = (struct world *)(void *)GLOBAL_BASE;
	world->nodes = (unsigned int)n;
	world->leader = getpid();
	world->parent = getppid();
	world->turn = 1;		/* main() took node 0's turn */
	world->report = getenv("SCI_THREADS_REPORT") != NULL;
	heap_init(&world->heap, GLOBAL_HEAP, GLOBAL_HEAP_LEN, (void *)GLOBAL_UNITS,
		  memory_discard);
	if (!place_parse(world, getenv("SCI_THREADS_PLACE"))) {
		world_say("SCI_THREADS_PLACE: '%s' is neither round nor load nor a list of nodes",
			  getenv("SCI_THREADS_PLACE"));
		_exit(2);
	}
	if (!memory_parse(world, getenv("SCI_THREADS_MEMORY"))) {
		world_say("SCI_THREADS_MEMORY: '%s' is neither shared, local nor round nor a node",
			  getenv("SCI_THREADS_MEMORY"));
		_exit(2);
	}
	if (hosts_on && world->memory != MEMORY_SHARED) {
		world_say("SCI_THREADS_MEMORY has no effect between machines");
		world->memory = MEMORY_SHARED;
	}
	if (world->memory != MEMORY_SHARED)
		world->heap.limit /= 2;
	return true;
}

bool world_active(void)
{
	static int state;		/* 0: not known; 1: false; 2: true */
	const char *nodes;

	if (state)
		return state == 2;
	if (!environ)
		return false;		/* libc is not ready */
	state = 1;
	nodes = getenv("SCI_THREADS_NODES");
	if (nodes && world_open(nodes))
		state = 2;
	return state == 2;
}

/* ---- start ---- */

unsigned int tasks_count(void)
{
	DIR *d = opendir("/proc/self/task");
	const struct dirent *e;
	unsigned int n = 0;

	while (d && (e = readdir(d)))
		n += *e->d_name != '.';
	if (d)
		closedir(d);
	return n;
}

void environment_clean(void)
{
	const char *preload = getenv("LD_PRELOAD");
	char *left = preload ? strdup(preload) : NULL, *word, *rest = left, *out;

	unsetenv("SCI_THREADS_NODES");
	unsetenv("SCI_THREADS_HOSTS");
	if (!left)
		return;
	out = calloc(1, strlen(preload) + 2);
	while (out && (word = strsep(&rest, ": ")))
		if (*word && !strstr(word, "libsci-threads.so"))
			strcat(strcat(out, *out ? ":" : ""), word);
	if (out && *out)
		setenv("LD_PRELOAD", out, 1);
	else
		unsetenv("LD_PRELOAD");
	free(out);
	free(left);
}

/* `sci top` finds the processes of nodes by the name of this thread. */
static noreturn void *service_main(void *arg)
{
	char name[16];

	(void)arg;
	snprintf(name, sizeof(name), "sci-node-%u", node_id(self_node));
	prctl(PR_SET_NAME, name);
	node_serve();
}

void signals_block(sigset_t *old)
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGSYS);	/* see futex.c */
	REAL(pthread_sigmask)(SIG_SETMASK, &all, old);
}

void signals_restore(const sigset_t *old)
{
	REAL(pthread_sigmask)(SIG_SETMASK, old, NULL);
}

bool quiet_start(void *(*fn)(void *arg))
{
	sigset_t old;
	pthread_t t;
	int ret;

	signals_block(&old);
	ret = REAL(pthread_create)(&t, NULL, fn, NULL);
	signals_restore(&old);
	return !ret;
}

bool service_start(void)
{
	return quiet_start(service_main);
}

struct link {
	struct link *next, *prev;
};

/*
 * Remove thread @main from this process's list of threads on stacks that libc has not allocated:
 * struct pthread of @main, then of the initial thread. @main runs in another process, and its
 * struct is shared memory, so do not store there. The offset of the links in struct pthread is
 * the offset at which the two structs point to each other.
 */
static void thread_list_forget(pthread_t main)
{
	char *initial = (char *)pthread_self(), *other = (char *)main;

	for (size_t at = 0; at < 2048; at += sizeof(void *)) {
		struct link *l = (struct link *)(void *)(initial + at);
		struct link *o = (struct link *)(void *)(other + at);

		if (l->prev == o && o->next == l) {
			o->prev->next = l;
			l->prev = o->prev;
			return;
		}
	}
}

void orphan_watch(void)
{
	prctl(PR_SET_PDEATHSIG, SIGSYS);	/* its handler calls world_orphaned() */
	world_orphaned(0);
}

/* Begin the process of a node other than the first. @homes: heap pages have home nodes. */
static noreturn void node_begin(unsigned int node, pthread_t main, bool homes)
{
	self_node = node;
	orphan_watch();
	setsid();			/* signals of the terminal are for the first node */
	snprintf(world->node[node].id, sizeof(world->node[node].id), "%u", node_id(node));
	_IO_list_all = NULL;		/* streams belong to the first node, see stdio.c */
	thread_list_forget(main);
	if (!service_start()) {
		world_say("cannot start a thread on node %u", node_id(node));
		syscall(SYS_exit_group, 1);
	}
	if (homes)
		home_open();
	for (;;)
		pause();
}

/*
 * Start the process of a node. The nodes share descriptors. Memory that is not shared is copied.
 * The process sends no signal when it ends, so that the program's wait() does not find it.
 */
static int node_clone(unsigned int node, pthread_t main, bool homes)
{
	struct clone_args args = { .flags = CLONE_FILES | CLONE_FS };
	void *tid;
	long pid;

	/* libc signals all threads of its process in setuid(), by their IDs */
	if (!prctl(PR_GET_TID_ADDRESS, &tid)) {
		args.flags |= CLONE_CHILD_SETTID;
		args.child_tid = (uintptr_t)tid;
	}
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (!pid)
		node_begin(node, main, homes);
	return pid < 0 ? -errno : (int)pid;
}

/* ---- blocks of libc ---- */

/* Let tzset() read another time zone, then that of the program. */
static void time_zone_renew(void)
{
	static char **other;		/* never freed: another node may be in getenv() */
	char **env = environ;
	size_t n = 0;

	while (env && env[n])
		n++;
	if (!other)
		other = calloc(n + 2, sizeof(*other));
	if (!other)
		return;
	other[0] = (char *)(uintptr_t)"TZ=SCI0";
	for (size_t i = 0; i < n; i++)
		other[i + 1] = env[i];
	environ = other;
	tzset();
	environ = env;
	tzset();
}

/*
 * Let libc allocate its blocks again that localtime() and setlocale() free, without freeing the old
 * ones: those belong to the libc of the node that has been cloned.
 */
static void libc_renew(void)
{
	char *locale = strdup(setlocale(LC_ALL, NULL));

	frees_nothing = true;
	time_zone_renew();
	if (locale && setlocale(LC_ALL, "C"))
		setlocale(LC_ALL, locale);
	frees_nothing = false;
	free(locale);
}

static void *span_end(void *done)
{
	home_open();
	atomic_store(&world->spans, true);
	((void (*)(void))(uintptr_t)done)();
	return NULL;
}

/* Remove SIGSYS from the masks of the program's handlers: see futex.c. */
static void actions_clean(void)
{
	struct sigaction sa;

	for (int i = 1; i < _NSIG; i++) {
		if (REAL(sigaction)(i, NULL, &sa) || sigismember(&sa.sa_mask, SIGSYS) != 1)
			continue;
		sigdelset(&sa.sa_mask, SIGSYS);
		REAL(sigaction)(i, &sa, NULL);
	}
}

bool world_span(pthread_t main, void (*done)(void))
{
	pthread_t t;
	bool homes;

	actions_clean();
	futex_descriptor = (uint32_t)((size_t)((char *)main - GLOBAL_STACKS) % SLOT_SIZE);
	if (hosts_on) {
		hosts_span();
		done();
		return true;
	}
	if (tasks_count() != 2) {
		world_say("a library has started threads before main(): all threads stay on node %u",
			  node_id(0));
		return false;
	}
	environment_clean();
	homes = home_prepare();
	if (!memory_share() || !futex_share())
		return false;
	world->node[0].pid = getpid();
	for (unsigned int i = 1; i < world->nodes; i++) {
		int pid = node_clone(i, main, homes);

		if (pid < 0) {
			world_say("cannot start node %u: %s", node_id(i), strerror(-pid));
			world_end();
			abort();
		}
		world->node[i].pid = pid;
		libc_renew();
	}
	if (!service_start())
		abort();
	/* home_open() waits for the other nodes; meanwhile the initial thread watches them */
	if (homes) {
		if (REAL(pthread_create)(&t, NULL, span_end, (void *)(uintptr_t)done))
			abort();
		return true;
	}
	atomic_store(&world->spans, true);
	done();
	return true;
}

/* ---- the end ---- */

static void report_node(unsigned int i)
{
	struct node *n = &world->node[i];
	struct timespec ts = { 0 };
	clockid_t clock;

	if (n->pid && !clock_getcpuclockid(n->pid, &clock))
		clock_gettime(clock, &ts);
	world_say("node %u: %u threads created, %ld.%03ld s of CPU time", node_id(i),
		  atomic_load(&n->created), (long)ts.tv_sec, ts.tv_nsec / 1000000);
	if (world->heap.grow)
		world_say("node %u: %llu MiB of the heap", node_id(i),
			  (unsigned long long)atomic_load(&n->heap_bytes) >> 20);
}

/* End the program in the way in which the node has ended. */
static noreturn void world_die(unsigned int node, const siginfo_t *info)
{
	struct rlimit none = { 0, 0 };
	struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t set;
	int sig = info->si_status;

	world->report = false;
	world_end();
	if (info->si_code == CLD_EXITED)
		syscall(SYS_exit_group, info->si_status);
	world_say("node %u was ended by signal %d (%s): the program ends", node_id(node), sig,
		  strsignal(sig));
	setrlimit(RLIMIT_CORE, &none);	/* the node has written a core file */
	sigemptyset(&set);
	sigaddset(&set, sig);
	REAL(sigaction)(sig, &sa, NULL);
	REAL(pthread_sigmask)(SIG_UNBLOCK, &set, NULL);
	kill(world->leader, sig);
	syscall(SYS_exit_group, 128 + sig);
	for (;;)
		;
}

/*
 * With __WCLONE and __WNOTHREAD waitid() reports only nodes: they are children of this thread
 * that send no signal when they end. The program's own children do not match. world_end()
 * reaps the nodes that it ends.
 */
noreturn void world_watch(void)
{
	siginfo_t info;

	while (!waitid(P_ALL, 0, &info, WEXITED | WNOWAIT | __WCLONE | __WNOTHREAD) &&
	       !atomic_load(&world->ending))
		for (unsigned int i = 1; i < world->nodes; i++)
			if (world->node[i].pid == info.si_pid)
				world_die(i, &info);
	for (;;)
		pause();
}

bool world_orphaned(pid_t sender)
{
	static atomic_bool known;	/* this process knows of the death */

	/* while the first node dies, getppid() may still return its process ID */
	if (!self_node || hosts_on || (sender != world->leader && syscall(SYS_getppid) == world->leader))
		return false;
	/* each dying thread of the parent sends a signal: let the first handler print */
	if (atomic_exchange(&known, true))
		return true;
	if (!atomic_exchange(&world->ending, true))
		world_say("node %u has died: the program ends", node_id(0));
	for (;;)
		syscall(SYS_exit_group, 1);
}

/* End the other nodes. Context: the first node. */
void world_end(void)
{
	bool again = atomic_exchange(&world->ending, true);

	if (hosts_on) {
		if (world->report && !again)
			node_call_all(hosts_report, NULL);
		hosts_end();		/* each caller waits: it ends this process next */
		return;
	}
	if (again)
		return;
	for (unsigned int i = 0; world->report && i < world->nodes; i++)
		report_node(i);
	for (unsigned int i = 1; i < world->nodes; i++)
		if (world->node[i].pid && kill(world->node[i].pid, SIGKILL))
			world->node[i].pid = 0;	/* it has another user: do not wait for it */
	for (unsigned int i = 1; i < world->nodes; i++)
		if (world->node[i].pid)
			waitpid(world->node[i].pid, NULL, __WALL);
}
