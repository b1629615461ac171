// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Open and close an SCI Virtual Memory: its peers, deaths of members, and statistics. */
#include "libsci/vm/internal.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsci/base/attr.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define LENGTH_DEFAULT	(64ull << 30)
#define WINDOWS_DEFAULT	24000u
#define CONNECT_MS	30000

int vm_usable(const struct sci_vm *vm)
{
	return atomic_load(&vm->forked) ? -ENOTCONN : 0;
}

static int team_agree(struct sci_team *team, int error)
{
	int32_t mine = error, all = 0;
	int ret = sci_team_allreduce(team, &mine, &all, 1,
				     sci_op(SCI_OP_MIN, SCI_TYPE_INT32));

	return ret ? ret : all;
}

/* Return the least of all members' errors: 0, or the error of a member. */
int vm_agree(struct sci_vm *vm, int error)
{
	return team_agree(vm->team, error);
}

/* Handle the end of a member: it has died, or has closed its endpoint (@how is NULL). */
void vm_death(struct sci_vm *vm, int rank, const char *how)
{
	if (atomic_exchange(&vm->ranks[rank].dead, true))
		return;
	if (!atomic_load(&vm->closing)) {
		struct sci_addr addr = { 0 };

		sci_peer_addr(vm->ranks[rank].peer, &addr);
		if (how)
			fprintf(stderr, "sci-vm: node %u (rank %d of %d) has %s: its pages are lost\n",
				addr.node, rank, vm->size, how);
		if (vm->death)
			vm->death(vm->death_arg, rank);
	}
	vm_calls_fail(vm, rank);
}

/* ---- attributes ---- */

/* Read a number from environment variable @name. If it is not set, @value does not change. */
static int env_number(const char *name, uint64_t *value)
{
	const char *s = getenv(name);
	char *end;

	if (!s || !*s)
		return 0;
	*value = strtoull(s, &end, 0);
	return *s == '-' || *end || end == s ? -EINVAL : 0;
}

static int env_mode(uint32_t *mode)
{
	static const char *const names[] = { "auto", "map", "cache" };
	const char *s = getenv("SCI_VM");

	if (!s || !*s)
		return 0;
	for (uint32_t i = 0; i < 3; i++)
		if (!strcmp(s, names[i])) {
			*mode = i;
			return 0;
		}
	return -EINVAL;
}

static int attr_fill(const struct sci_vm_attr *attr, struct sci_vm_attr *a)
{
	uint64_t page = 0, windows = WINDOWS_DEFAULT;
	uint32_t mode = SCI_VM_AUTO;
	int ret = attr ? attr_copy(a, sizeof(*a), attr, sizeof(*a)) : 0;

	ret = ret ? ret : env_mode(&mode);
	ret = ret ? ret : env_number("SCI_VM_PAGE", &page);
	ret = ret ? ret : env_number("SCI_VM_WINDOWS", &windows);
	if (ret)
		return ret;
	a->mode = a->mode ? a->mode : mode;
	if (!a->page)
		a->page = page > VM_PAGE_MAX ? 1 : (uint32_t)page;
	a->windows = a->windows ? a->windows : windows;
	if (a->windows < VM_WINDOWS_MIN)
		a->windows = VM_WINDOWS_MIN;
	if (a->mode > SCI_VM_CACHE || a->windows > 1u << 30 ||
	    (a->page && (a->page < VM_PAGE_MIN || a->page > VM_PAGE_MAX ||
			 a->page & (a->page - 1))) ||
	    ((uintptr_t)a->base | a->length) & (VM_ALIGN - 1) || a->length >= 1ull << 47)
		return -EINVAL;
	return 0;
}

/* ---- peers ---- */

/* A member's part of the exchange before members connect. */
struct hello {
	struct sci_addr addr;
	uint64_t base;
	uint64_t length;
	uint32_t mode;
	uint32_t page;
	int32_t error;
};

static int rank_connect(struct sci_vm *vm, int rank, const struct sci_addr *addr)
{
	struct sci_peer *peer;
	int ret = sci_connect(vm->ep, addr, CONNECT_MS, &peer);

	if (ret)
		return ret;
	/* serve_message() gets the sender's rank from the data of its peer */
	sci_peer_set_data(peer, (void *)(intptr_t)(rank + 1));
	atomic_store(&vm->ranks[rank].peer, peer);
	/* sockets may reach this peer */
	vm->can_map = vm->can_map && !strcmp(sci_peer_network(peer), sci_ep_fabric(vm->ep));
	return 0;
}

static int ep_open(struct sci_vm *vm, struct hello *mine)
{
	struct sci_ep_attr attr = {
		.size = sizeof(attr), .name = "sci-vm", .flags = SCI_EP_PEER_EVENTS,
	};
	void *probe;
	int ret = sci_ep_open_attr(&vm->ep, &attr);

	if (ret)
		return ret;
	if (sci_ep_traits(vm->ep) & SCI_TRAIT_SHARED_MEMORY &&
	    !sci_buf_alloc(vm->ep, VM_PAGE_MIN, &probe)) {
		vm->can_map = vm_can_map(probe);
		sci_buf_free(vm->ep, probe);
	}
	ret = sci_ep_addr(vm->ep, &mine->addr);
	ret = ret ? ret : rank_connect(vm, vm->rank, &mine->addr);
	/* start the server last: vm_server_stop() needs the connection to this member itself */
	ret = ret ? ret : vm_server_start(vm);
	if (!ret)
		return 0;
	sci_ep_close(vm->ep);
	vm->ep = NULL;
	return ret;
}

static int peers_connect(struct sci_vm *vm, const struct hello *all)
{
	for (int i = 1; i < vm->size; i++) {
		int rank = (vm->rank + i) % vm->size;
		int ret = rank_connect(vm, rank, &all[rank].addr);

		if (ret)
			return ret;
	}
	return 0;
}

static int hello_exchange(struct sci_vm *vm, const struct hello *mine)
{
	struct hello *all = calloc((size_t)vm->size, sizeof(*all));
	int ret = vm_agree(vm, all ? mine->error : -ENOMEM);

	if (ret)
		goto out;
	assert(all);		/* if it is NULL, the members agree on -ENOMEM */
	ret = sci_team_allgather(vm->team, mine, sizeof(*all), all);
	for (int i = 0; !ret && i < vm->size; i++)
		if (all[i].base != mine->base || all[i].length != mine->length ||
		    all[i].mode != mine->mode || all[i].page != mine->page)
			ret = -EINVAL;
	/* until here all members have the same result, but a single member may fail to connect */
	if (!ret)
		ret = vm_agree(vm, peers_connect(vm, all));
	if (ret)
		goto out;
	ret = vm_agree(vm, vm->can_map ? 0 : -EOPNOTSUPP);
	vm->can_map = !ret;
	vm->mode = mine->mode == SCI_VM_CACHE || ret ? SCI_VM_CACHE : SCI_VM_MAP;
	if (ret == -EOPNOTSUPP && mine->mode != SCI_VM_MAP)
		ret = 0;
out:
	free(all);
	return ret;
}

/* ---- addresses ---- */

/*
 * Addresses to try: below shared libraries and above programs, since ThreadSanitizer allows no
 * other addresses. The last ones are for systems with fewer address bits.
 */
static const uint64_t places[] = {
	0x7e9000000000, 0x7e8000000000, 0x7f0000000000, 0x300000000000, 0x200000000000,
	0x3000000000, 0x2000000000,
};

static bool range_reserve_at(struct sci_vm *vm, uint64_t base, uint64_t length)
{
	void *want = (void *)(uintptr_t)base;
	void *p = mmap(want, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
		       MAP_FIXED_NOREPLACE, -1, 0);

	if (p == MAP_FAILED)
		return false;
	if (p != want) {
		munmap(p, length);
		return false;
	}
	/* lock: the server thread runs already, and reads base and length */
	pthread_mutex_lock(&vm->serve_lock);
	vm->base = p;
	vm->length = length;
	pthread_mutex_unlock(&vm->serve_lock);
	return true;
}

/* Reserve the memory's addresses in all members, or in none. */
static int range_reserve_all(struct sci_vm *vm, uint64_t base, uint64_t length)
{
	int ret = vm_agree(vm, range_reserve_at(vm, base, length) ? 0 : -ENOMEM);

	if (ret && vm->base) {
		munmap(vm->base, vm->length);
		vm->base = NULL;
	}
	return ret;
}

static int range_reserve(struct sci_vm *vm, const struct sci_vm_attr *a)
{
	uint64_t length = a->length ? a->length : LENGTH_DEFAULT;
	int ret = -ENOMEM;

	/* the part of each member must be at least VM_ALIGN bytes, a large page */
	if (length < VM_ALIGN * (uint64_t)vm->size)
		return -EINVAL;
	if (a->base)
		return range_reserve_all(vm, (uintptr_t)a->base, length);
	do {
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			ret = range_reserve_all(vm, places[i], length);
			if (ret != -ENOMEM)
				return ret;
		}
		length /= 2;
	} while (!a->length && length >= VM_ALIGN * (uint64_t)vm->size);
	return ret;
}

/* ---- open ---- */

static int vm_new(struct sci_team *team, const struct sci_vm_attr *a, struct sci_vm **out)
{
	struct sci_vm *vm = calloc(1, sizeof(*vm));
	int ret;

	if (!vm)
		return -ENOMEM;
	vm->team = team;
	vm->rank = sci_team_rank(team);
	vm->size = sci_team_size(team);
	vm->page = a->page;
	vm->death = a->death;
	vm->death_arg = a->arg;
	vm->windows_max = (size_t)a->windows;
	vm->cache_fd = -1;
	pthread_mutex_init(&vm->lock, NULL);
	pthread_mutex_init(&vm->serve_lock, NULL);
	list_init(&vm->chunks);
	list_init(&vm->calls);
	list_init(&vm->notices);
	list_init(&vm->requests);
	vm->ranks = calloc((size_t)vm->size, sizeof(*vm->ranks));
	vm->windows = calloc(vm->windows_max, sizeof(*vm->windows));
	ret = vm->ranks && vm->windows ? vm_trace_open(vm) : -ENOMEM;
	if (ret) {
		free(vm->ranks);
		free(vm->windows);
		free(vm);
		return ret;
	}
	for (int i = 0; i < vm->size; i++)
		list_init(&vm->ranks[i].imports);
	*out = vm;
	return 0;
}

static void imports_free(struct sci_vm *vm)
{
	for (int i = 0; i < vm->size; i++) {
		struct list *l;

		while ((l = list_pop(&vm->ranks[i].imports)))
			free(container_of(l, struct vm_import, link));
	}
}

/* Free a memory whose threads have ended. */
static void vm_destroy(struct sci_vm *vm)
{
	if (vm->ep)
		sci_ep_close(vm->ep);
	if (vm->base)
		munmap(vm->base, vm->length);
	if (vm->cache_fd >= 0)
		close(vm->cache_fd);
	vm_ranges_free(vm);
	vm_chunks_free(vm);
	imports_free(vm);
	vm_trace_close(vm);
	pthread_mutex_destroy(&vm->lock);
	pthread_mutex_destroy(&vm->serve_lock);
	free(vm->ranks);
	free(vm->windows);
	free(vm->dirty);
	free(vm);
}

int sci_vm_open(struct sci_vm **out, struct sci_team *team, const struct sci_vm_attr *attr)
{
	struct hello mine = { .error = 0 };
	struct sci_vm_attr a = { .size = sizeof(a) };
	struct sci_vm *vm = NULL;
	int ret;

	if (!out || !team)
		return -EINVAL;
	*out = NULL;
	/* every member takes part in the first agreement, also a member with an error */
	ret = attr_fill(attr, &a);
	ret = ret ? ret : vm_new(team, &a, &vm);
	ret = team_agree(team, ret);
	if (ret)
		goto err_new;
	assert(vm);		/* if it is NULL, the members agree on an error */
	mine.error = vm->size > INT16_MAX ? -EINVAL : ep_open(vm, &mine);
	mine.base = (uintptr_t)a.base;
	mine.length = a.length;
	mine.mode = a.mode;
	mine.page = a.page;
	ret = hello_exchange(vm, &mine);
	ret = ret ? ret : range_reserve(vm, &a);
	if (ret)
		goto err_vm;
	ret = vm_cache_open(vm);
	ret = vm_agree(vm, ret ? ret : vm_fault_start(vm));
	if (ret)
		goto err_fault;
	*out = vm;
	return 0;

err_fault:
	vm_fault_stop(vm);
err_vm:
	atomic_store(&vm->closing, true);
	if (vm->ep)
		vm_server_stop(vm);
err_new:
	if (vm)
		vm_destroy(vm);
	return ret;
}

int sci_vm_close(struct sci_vm *vm)
{
	int ret;

	if (!vm)
		return 0;
	if (vm_usable(vm))
		return -ENOTCONN;
	ret = sci_team_barrier(vm->team);
	vm_ranges_return(vm);
	atomic_store(&vm->closing, true);
	/* after this barrier no member needs a page of another member */
	if (!ret)
		ret = sci_team_barrier(vm->team);
	vm_fault_stop(vm);
	vm_server_stop(vm);
	vm_report(vm);
	vm_destroy(vm);
	return ret;
}

/* ---- properties ---- */

void *sci_vm_base(const struct sci_vm *vm)
{
	return vm ? vm->base : NULL;
}

uint64_t sci_vm_length(const struct sci_vm *vm)
{
	return vm ? vm->length : 0;
}

enum sci_vm_mode sci_vm_mode(const struct sci_vm *vm)
{
	return vm ? vm->mode : SCI_VM_AUTO;
}

int sci_vm_stats(struct sci_vm *vm, struct sci_vm_stats *stats)
{
	struct sci_vm_stats now;
	uint64_t *to = (uint64_t *)&now;
	const uint64_t *from;

	if (!vm || !stats || stats->size < sizeof(size_t))
		return -EINVAL;
	from = (const uint64_t *)&vm->stats;
	now.size = stats->size < sizeof(now) ? stats->size : sizeof(now);
	for (size_t i = offsetof(struct sci_vm_stats, faults) / 8; i < sizeof(now) / 8; i++)
		to[i] = sci_load_relaxed(&from[i]);
	memcpy(stats, &now, now.size);
	return 0;
}
