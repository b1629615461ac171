// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: home nodes of the heap's pages
 *
 * With SCI_THREADS_MEMORY the heap grows by ranges of the SCI Virtual Memory (sci/vm.h). The
 * nodes are a team. Each range is eager: all nodes map it before malloc() returns. So
 * no later access faults, and system calls work on the memory. The variable sets the home of
 * new pages:
 *
 *	local	on the node of the thread that allocates
 *	round	on all nodes in turn
 *	a node	on the node with this ID
 *
 * Static variables, stacks, and heap blocks from before the first thread have no home: they are
 * ordinary shared memory.
 *
 * The library loads libsci only if the variable is set to one of these values.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sci/vm.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "threads.h"

#define HOME_PAGE	((size_t)1 << 20)	/* large, since each page is a mapping */
#define VM_PART		(GLOBAL_HEAP_LEN / 2)
#define VM_BASE		(GLOBAL_HEAP + VM_PART)

static struct {
	__typeof__(&sci_team_launcher_open) launcher_open;
	__typeof__(&sci_team_launcher_boot) launcher_boot;
	__typeof__(&sci_team_open) team_open;
	__typeof__(&sci_team_barrier) barrier;
	__typeof__(&sci_vm_open) open;
	__typeof__(&sci_vm_alloc) alloc;
	__typeof__(&sci_vm_home) home;
	struct sci_team_launcher *launcher;	/* nodes other than 0 have a copy */
	struct sci_team *team;
	struct sci_vm *vm;		/* of this process */
} home;

bool home_loads;

/* Node 0 is the launcher of the team of nodes. */
static int launcher_start(void)
{
	uint32_t nodes[NODES_MAX];
	const struct sci_team_launcher_attr attr = {
		.size = sizeof(attr), .processes = world->nodes, .nodes = nodes,
	};

	for (unsigned int i = 0; i < world->nodes; i++)
		nodes[i] = node_id(i);
	return home.launcher_open(&home.launcher, &attr);
}

/* ---- the libraries ---- */

void *library_open(const char *name)
{
	char path[PATH_MAX], self[PATH_MAX];
	Dl_info info;

	if (!dladdr(&home, &info) || !realpath(info.dli_fname, self))
		return NULL;
	snprintf(path, sizeof(path), "%s/%s", dirname(self), name);
	return REAL(dlopen)(access(path, R_OK) ? name : path, RTLD_NOW);
}

#define SYMBOL(member, library, symbol) \
	(home.member = (__typeof__(&symbol))dlsym(library, #symbol))

static bool libraries_open(void)
{
	void *sci = library_open("libsci.so.0"), *vm = sci ? library_open("libsci-vm.so.0") : NULL;

	if (!vm) {
		world_say("SCI_THREADS_MEMORY has no effect: %s", dlerror());
		return false;
	}
	SYMBOL(launcher_open, sci, sci_team_launcher_open);
	SYMBOL(launcher_boot, sci, sci_team_launcher_boot);
	SYMBOL(team_open, sci, sci_team_open);
	SYMBOL(barrier, sci, sci_team_barrier);
	SYMBOL(open, vm, sci_vm_open);
	SYMBOL(alloc, vm, sci_vm_alloc);
	SYMBOL(home, vm, sci_vm_home);
	memory_find_libsci();
	if (home.launcher_open && home.launcher_boot && home.team_open && home.barrier &&
	    home.open && home.alloc && home.home)
		return true;
	world_say("SCI_THREADS_MEMORY has no effect: libsci is of another version");
	return false;
}

/* ---- growth ---- */

static void pages_count(char *p, size_t len)
{
	for (size_t at = 0; at < len; at += HOME_PAGE) {
		int node = home.home(home.vm, p + at);

		if (node >= 0)
			atomic_fetch_add(&world->node[node].heap_bytes, HOME_PAGE);
	}
}

/* Get memory for the heap: the function @grow of struct heap. */
static void *home_grow(size_t len)
{
	struct sci_vm_range r = {
		.size = sizeof(r), .policy = SCI_VM_HOME, .home = world->memory_home,
		.mode = SCI_VM_MAP, .flags = SCI_VM_EAGER, .page = HOME_PAGE,
	};
	void *p = NULL;
	int ret, state, err = errno;

	if (!self_thread)
		return NULL;		/* the service thread starts a thread for exit() */
	if (world->memory == MEMORY_ROUND) {
		r.policy = SCI_VM_ROUND_ROBIN;
		r.home = 0;
	}
	self_thread->grows = true;
	REAL(pthread_setcancelstate)(PTHREAD_CANCEL_DISABLE, &state);
	ret = home.alloc(home.vm, len, &r, &p);
	if (!ret)
		pages_count(p, len);
	REAL(pthread_setcancelstate)(state, NULL);
	self_thread->grows = false;
	errno = err;
	return ret ? NULL : p;
}

/* ---- start ---- */

bool home_prepare(void)
{
	bool ok;
	int ret;

	if (world->memory == MEMORY_SHARED)
		return false;
	home_loads = true;
	ok = libraries_open();
	home_loads = false;
	ret = ok ? launcher_start() : 0;
	if (ret)
		world_say("SCI_THREADS_MEMORY has no effect: %s", strerror(-ret));
	return ok && !ret;
}

static int home_open_here(void)
{
	struct sci_team_attr team = { .size = sizeof(team), .symmetric_size = 65536 };
	struct sci_vm_attr vm = { .size = sizeof(vm), .base = VM_BASE, .length = VM_PART,
				  .mode = SCI_VM_MAP };
	int ret;

	team.boot = home.launcher_boot(home.launcher, (int)self_node);
	ret = home.team_open(&home.team, &team);
	if (ret)
		return ret;
	/* this part of the heap is not used yet: its units are beyond @limit */
	REAL(munmap)(VM_BASE, VM_PART);
	ret = home.open(&home.vm, home.team, &vm);
	/* after the barrier every node has stored home.vm, and may run threads of the program */
	return ret ? ret : home.barrier(home.team);
}

void home_open(void)
{
	int ret = home_open_here();

	if (ret)
		world_say("SCI_THREADS_MEMORY: node %u cannot open the SCI Virtual Memory: %s",
			  node_id(self_node), strerror(-ret));
	if (self_node)
		return;
	if (ret) {
		world_end();
		abort();
	}
	world->heap.growth = HOME_PAGE * (world->memory == MEMORY_ROUND ? world->nodes : 4);
	world->heap.grow = home_grow;
}
