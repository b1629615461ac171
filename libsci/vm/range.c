// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: ranges
 *
 * Every member has a record of every range. A member allocates addresses in its own part of the
 * memory, so that it needs no agreement, and then sends the range to the other members. The
 * creator frees a range last: no other member has the range then, and its addresses may be used
 * again.
 */
#include "libsci/vm/internal.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsci/base/attr.h"
#include "libsci/base/host.h"

/* Return the number of ranges that begin at or below @addr. vm->serve_lock is held. */
static size_t ranges_below(const struct sci_vm *vm, const uint8_t *addr)
{
	size_t lo = 0, hi = vm->ranges_n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (vm->ranges[mid]->addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Return the last range that overlaps [@addr, @addr + @len), or NULL. vm->serve_lock is held. */
static struct vm_range *range_overlapping(const struct sci_vm *vm, const uint8_t *addr,
					  uint64_t len)
{
	size_t n = ranges_below(vm, addr + len - 1);
	struct vm_range *r = n ? vm->ranges[n - 1] : NULL;

	return r && r->addr + r->len > addr ? r : NULL;
}

/* Return the range that contains @addr, or NULL. vm->serve_lock is held. */
struct vm_range *vm_range_find(const struct sci_vm *vm, const void *addr)
{
	return range_overlapping(vm, addr, 1);
}

/* Return the range of an address for callers that hold vm->lock, which keeps the range in place. */
struct vm_range *vm_range_lookup(struct sci_vm *vm, const void *addr)
{
	struct vm_range *r;

	pthread_mutex_lock(&vm->serve_lock);
	r = vm_range_find(vm, addr);
	pthread_mutex_unlock(&vm->serve_lock);
	return r;
}

/* Return the first range with an address at or after @addr, or NULL. vm->lock is held. */
struct vm_range *vm_range_after(struct sci_vm *vm, const uint8_t *addr)
{
	struct vm_range *r = NULL;
	size_t n;

	pthread_mutex_lock(&vm->serve_lock);
	n = ranges_below(vm, addr);
	if (n && vm->ranges[n - 1]->addr + vm->ranges[n - 1]->len > addr)
		n--;
	if (n < vm->ranges_n)
		r = vm->ranges[n];
	pthread_mutex_unlock(&vm->serve_lock);
	return r;
}

/* Return the home of page @i by the range's policy; -1: the first touch decides. */
int vm_page_fixed_home(const struct sci_vm *vm, const struct vm_range *r, size_t i)
{
	size_t part = (r->n + (size_t)vm->size - 1) / (size_t)vm->size;

	switch (r->policy) {
	case SCI_VM_ROUND_ROBIN:
		return (int)(i % (size_t)vm->size);
	case SCI_VM_BLOCK:
		return (int)(i / part);
	case SCI_VM_HOME:
		return r->home;
	default:
		return r->flags & SCI_VM_EAGER ? r->creator : -1;
	}
}

int vm_page_directory(const struct sci_vm *vm, size_t i)
{
	return (int)(i % (size_t)vm->size);
}

/* ---- the table ---- */

static bool wire_is_sane(const struct sci_vm *vm, const struct vm_range_wire *w)
{
	uint64_t page = w->shift < 64 ? 1ull << w->shift : 0;

	return page >= VM_PAGE_MIN && page <= VM_PAGE_MAX && w->len &&
	       !((w->addr | w->len) & (VM_PAGE_MIN - 1)) && w->addr + w->len > w->addr &&
	       w->len < 1ull << 47 && w->policy <= SCI_VM_HOME && !(w->flags & ~SCI_VM_EAGER) &&
	       (w->mode == SCI_VM_MAP || (w->mode == SCI_VM_CACHE && !w->flags)) &&
	       w->home >= 0 && w->home < vm->size &&
	       w->creator >= 0 && w->creator < vm->size;
}

static bool range_in_memory(const struct sci_vm *vm, uint64_t addr)
{
	return addr - (uint64_t)(uintptr_t)vm->base < vm->length;
}

static struct vm_range *range_new(const struct vm_range_wire *w)
{
	struct vm_range *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->addr = (uint8_t *)(uintptr_t)w->addr;
	r->len = w->len;
	r->shift = w->shift;
	r->policy = w->policy;
	r->mode = w->mode;
	r->flags = w->flags;
	r->home = w->home;
	r->creator = w->creator;
	r->n = (size_t)((w->len + (1ull << w->shift) - 1) >> w->shift);
	r->pages_bytes = r->n * sizeof(*r->pages);
	r->pages = mmap(NULL, r->pages_bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (r->pages == MAP_FAILED) {
		free(r);
		return NULL;
	}
	for (size_t i = 0; i < r->n; i++) {
		r->pages[i].dir_home = -1;
		atomic_init(&r->pages[i].home, -1);
	}
	return r;
}

static void notices_free(struct vm_range *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->pages[i].notice) {
			list_del(&r->pages[i].notice->link);
			free(r->pages[i].notice);
		}
}

static void range_free(struct vm_range *r)
{
	munmap(r->pages, r->pages_bytes);
	free(r);
}

static int table_grow(struct sci_vm *vm)
{
	size_t room = vm->ranges_room ? 2 * vm->ranges_room : 64;
	struct vm_range **t;

	if (vm->ranges_n < vm->ranges_room)
		return 0;
	t = realloc(vm->ranges, room * sizeof(struct vm_range *));
	if (!t)
		return -ENOMEM;
	vm->ranges = t;
	vm->ranges_room = room;
	return 0;
}

/* Record the addresses of a range of sci_vm_adopt(), for the handler of SIGSEGV. */
static void adopted_add(struct sci_vm *vm, const struct vm_range *r)
{
	uint32_t i = atomic_load(&vm->adopted_n);

	atomic_store(&vm->adopted[i][0], (uintptr_t)r->addr);
	atomic_store(&vm->adopted[i][1], (uintptr_t)r->addr + r->len);
	atomic_store(&vm->adopted_n, i + 1);
}

static int table_add(struct sci_vm *vm, struct vm_range *r)
{
	size_t at = ranges_below(vm, r->addr);
	int ret;

	r->adopted = !range_in_memory(vm, (uintptr_t)r->addr);
	if (range_overlapping(vm, r->addr, r->len))
		return -EEXIST;
	if (r->adopted && atomic_load(&vm->adopted_n) == VM_ADOPTED)
		return -ENOSPC;
	ret = table_grow(vm);
	if (!ret && r->mode == SCI_VM_CACHE)
		ret = vm_copies_attach(vm, r);
	if (r->mode == SCI_VM_CACHE)
		atomic_store(&vm->cached, true);
	if (ret)
		return ret;
	memmove(&vm->ranges[at + 1], &vm->ranges[at],
		(vm->ranges_n++ - at) * sizeof(struct vm_range *));
	vm->ranges[at] = r;
	if (r->adopted)
		adopted_add(vm, r);
	return 0;
}

/* Each member allocates in its own part of the memory. Return the length of a part. */
static uint64_t part_len(const struct sci_vm *vm)
{
	return vm->length / (uint64_t)vm->size & ~(VM_ALIGN - 1);
}

static uint64_t part_begin(const struct sci_vm *vm, int rank)
{
	return (uint64_t)(uintptr_t)vm->base + (uint64_t)rank * part_len(vm);
}

/* Return the first gap of @len bytes in this member's part; 0: none. vm->serve_lock is held. */
static uint64_t range_find_gap(const struct sci_vm *vm, uint64_t len, uint64_t align)
{
	uint64_t at = part_begin(vm, vm->rank);
	uint64_t end = at + part_len(vm);

	while (at <= end && len <= end - at) {
		const struct vm_range *r;

		r = range_overlapping(vm, (const uint8_t *)(uintptr_t)at, len);
		if (!r)
			return at;
		at = ((uint64_t)(uintptr_t)(r->addr + r->len) + align - 1) & ~(align - 1);
	}
	return 0;
}

/* Add a range. If @w->addr is 0, find addresses in this member's part and store them there. */
static int range_insert(struct sci_vm *vm, struct vm_range_wire *w)
{
	struct vm_range *r = range_new(w);
	int ret;

	if (!r)
		return -ENOMEM;
	pthread_mutex_lock(&vm->serve_lock);
	if (!w->addr)
		w->addr = range_find_gap(vm, w->len, 1ull << w->shift);
	r->addr = (uint8_t *)(uintptr_t)w->addr;
	ret = w->addr ? table_add(vm, r) : -ENOSPC;
	pthread_mutex_unlock(&vm->serve_lock);
	if (ret)
		range_free(r);
	return ret;
}

/*
 * Add a range at @w->addr. Context: no lock is held. Return: 0; -EINVAL, -EEXIST, -ENOSPC,
 * -ENOMEM.
 */
static int range_add(struct sci_vm *vm, const struct vm_range_wire *w)
{
	struct vm_range_wire copy = *w;

	return w->addr && wire_is_sane(vm, w) ? range_insert(vm, &copy) : -EINVAL;
}

/*
 * Add a range that a member has allocated. A range outside of its part could be any memory of this
 * process. Context: no lock is held. Return: as range_add().
 */
int vm_range_add(struct sci_vm *vm, const struct vm_range_wire *w, int rank)
{
	uint64_t at, part;

	pthread_mutex_lock(&vm->serve_lock);
	at = w->addr - part_begin(vm, rank);
	part = part_len(vm);
	pthread_mutex_unlock(&vm->serve_lock);
	return w->creator == rank && at < part && w->len <= part - at ? range_add(vm, w) : -EINVAL;
}

/* Remove a range, its views and its frames. Context: vm->lock is held. */
void vm_range_remove(struct sci_vm *vm, struct vm_range *r)
{
	size_t at, page = vm_page_size(r);

	vm_report_range(vm, r);
	/* handlers use the copies of a range in the table, and its addresses are free afterwards */
	pthread_mutex_lock(&vm->serve_lock);
	at = ranges_below(vm, r->addr) - 1;
	memmove(&vm->ranges[at], &vm->ranges[at + 1],
		(--vm->ranges_n - at) * sizeof(struct vm_range *));
	for (size_t i = 0; i < r->n; i++)
		if (r->pages[i].frame) {
			vm_frames_free(vm, r->pages[i].frame, page);
			VM_COUNT(vm, homed, -1ull);
		}
	notices_free(r);
	vm_views_drop(vm, r);
	pthread_mutex_unlock(&vm->serve_lock);
	range_free(r);
}

void vm_ranges_free(struct sci_vm *vm)
{
	for (size_t i = 0; i < vm->ranges_n; i++) {
		vm_copies_detach(vm, vm->ranges[i]);
		notices_free(vm->ranges[i]);
		range_free(vm->ranges[i]);
	}
	free(vm->ranges);
}

/* ---- public functions ---- */

static int range_of_attr(struct sci_vm *vm, const struct sci_vm_range *from, uint32_t page,
			 struct vm_range_wire *w)
{
	struct sci_vm_range a = { 0 };
	int ret = from ? attr_copy(&a, sizeof(a), from, sizeof(a)) : 0;
	uint32_t mode = a.mode ? a.mode : (uint32_t)vm->mode;

	if (ret)
		return ret;
	if (a.policy > SCI_VM_HOME || a.mode > SCI_VM_CACHE || a.flags & ~SCI_VM_EAGER ||
	    a.reserved || a.home < -1 || a.home >= vm->size || (a.home && a.policy != SCI_VM_HOME))
		return -EINVAL;
	page = a.page ? a.page : page;
	if (!page)
		page = mode == SCI_VM_MAP ? 65536 : 4096;
	if (page < VM_PAGE_MIN || page > VM_PAGE_MAX || page & (page - 1))
		return -EINVAL;
	if (mode == SCI_VM_MAP ? !vm->can_map :
	    vm->size > (int)SCI_VM_TIME_MAX || a.flags & SCI_VM_EAGER)
		return -EOPNOTSUPP;
	*w = (struct vm_range_wire){
		.mode = mode, .creator = vm->rank, .shift = (uint32_t)__builtin_ctz(page),
		.policy = a.policy, .flags = a.flags, .home = a.home < 0 ? vm->rank : a.home,
	};
	return 0;
}

static int range_view_eager(struct sci_vm *vm, const void *addr)
{
	struct vm_range *r;
	int ret = -EFAULT;

	pthread_mutex_lock(&vm->lock);
	r = vm_range_lookup(vm, addr);
	if (r)
		ret = vm_views_eager(vm, r);
	pthread_mutex_unlock(&vm->lock);
	return ret;
}

static void range_remove_here(struct sci_vm *vm, const void *addr)
{
	struct vm_range *r;

	pthread_mutex_lock(&vm->lock);
	r = vm_range_lookup(vm, addr);
	if (r)
		vm_range_remove(vm, r);
	pthread_mutex_unlock(&vm->lock);
}

int sci_vm_alloc(struct sci_vm *vm, size_t len, const struct sci_vm_range *range,
		 void **addr)
{
	struct vm_range_wire rw;
	struct vm_wire w = { .value = 0 };
	int ret;

	if (!vm || !len || !addr || len > SIZE_MAX / 2)
		return -EINVAL;
	ret = vm_usable(vm);
	ret = ret ? ret : range_of_attr(vm, range, vm->page, &rw);
	if (ret)
		return ret;
	rw.len = ((uint64_t)len + (1ull << rw.shift) - 1) & ~((1ull << rw.shift) - 1);
	ret = rw.len > vm->length ? -ENOSPC : range_insert(vm, &rw);
	if (ret)
		return ret;
	w.addr = rw.addr;
	ret = vm_call_all(vm, VM_OP_ALLOC, &w, &rw, sizeof(rw));
	if (!ret && rw.flags & SCI_VM_EAGER) {
		ret = range_view_eager(vm, (void *)(uintptr_t)rw.addr);
		ret = ret ? ret : vm_call_all(vm, VM_OP_EAGER, &w, NULL, 0);
	}
	if (ret) {
		/* members that could not add the range answer -EFAULT */
		vm_call_all(vm, VM_OP_FREE, &w, NULL, 0);
		range_remove_here(vm, (void *)(uintptr_t)rw.addr);
		return ret;
	}
	*addr = (void *)(uintptr_t)rw.addr;
	return 0;
}

/* Free the range at @w->addr on all members, on member @last after all others. */
static int range_free_everywhere(struct sci_vm *vm, const struct vm_wire *w, int last)
{
	struct vm_call c;
	int ret = 0;

	for (int i = 0; i < vm->size; i++) {
		int error = 0;

		if (i == vm->rank || i == last)
			continue;
		error = vm_call(vm, &c, i, VM_OP_FREE, w);
		/* -ECONNRESET: the member has died, and has no ranges */
		if (error != -ECONNRESET && !ret)
			ret = error;
	}
	range_remove_here(vm, (void *)(uintptr_t)w->addr);
	if (last != vm->rank) {
		int error = vm_call(vm, &c, last, VM_OP_FREE, w);

		if (error != -ECONNRESET && !ret)
			ret = error;
	}
	return ret;
}

int sci_vm_free(struct sci_vm *vm, void *addr)
{
	struct vm_wire w = { .addr = (uint64_t)(uintptr_t)addr };
	struct vm_range *r;
	int ret, last = 0;

	if (!vm || !addr)
		return -EINVAL;
	ret = vm_usable(vm);
	if (ret)
		return ret;
	pthread_mutex_lock(&vm->serve_lock);
	r = vm_range_find(vm, addr);
	if (!r || r->addr != addr || r->adopted)
		ret = -EINVAL;
	else
		last = r->creator;
	pthread_mutex_unlock(&vm->serve_lock);
	return ret ? ret : range_free_everywhere(vm, &w, last);
}

int sci_vm_place(struct sci_vm *vm, void *addr, size_t len, int rank)
{
	struct vm_wire w = {
		.addr = (uint64_t)(uintptr_t)addr, .len = len, .value = rank,
	};
	struct vm_range *r;
	int ret, local;

	if (!vm || !len || rank < 0 || rank >= vm->size)
		return -EINVAL;
	ret = vm_usable(vm);
	if (ret)
		return ret;
	pthread_mutex_lock(&vm->serve_lock);
	r = vm_range_find(vm, addr);
	if (!r || r->policy != SCI_VM_FIRST_TOUCH || r->flags & SCI_VM_EAGER ||
	    len > r->len - (uint64_t)((uint8_t *)addr - r->addr))
		ret = -EINVAL;
	pthread_mutex_unlock(&vm->serve_lock);
	if (ret)
		return ret;
	local = vm_serve_place(vm, addr, len, rank);
	ret = vm_call_all(vm, VM_OP_PLACE, &w, NULL, 0);
	return local ? local : ret;
}

int sci_vm_home(struct sci_vm *vm, const void *addr)
{
	struct vm_wire w = { .addr = (uint64_t)(uintptr_t)addr, .value = -1 };
	struct vm_range *r;
	struct vm_call c;
	int ret, home = -1, dir = 0;

	if (!vm)
		return -EINVAL;
	ret = vm_usable(vm);
	if (ret)
		return ret;
	pthread_mutex_lock(&vm->serve_lock);
	r = vm_range_find(vm, addr);
	if (r) {
		size_t i = vm_page_index(r, addr);

		home = vm_page_fixed_home(vm, r, i);
		home = home < 0 ? atomic_load(&r->pages[i].home) : home;
		dir = vm_page_directory(vm, i);
	}
	pthread_mutex_unlock(&vm->serve_lock);
	if (!r)
		return -EFAULT;
	if (home >= 0)
		return home;
	if (dir == vm->rank)
		return vm_serve_home(vm, addr, -1);
	ret = vm_call(vm, &c, dir, VM_OP_HOME, &w);
	return ret ? ret : c.w.value;
}

/* ---- sci_vm_adopt() ---- */

static bool range_overlaps(struct sci_vm *vm, const uint8_t *addr, size_t len)
{
	bool found;

	if (range_in_memory(vm, (uintptr_t)addr) || range_in_memory(vm, (uintptr_t)addr + len - 1))
		return true;
	pthread_mutex_lock(&vm->serve_lock);
	found = range_overlapping(vm, addr, len);
	pthread_mutex_unlock(&vm->serve_lock);
	return found;
}

/* Return true if the kernel lists the whole range as private, readable and writable. */
static bool range_is_private(uintptr_t addr, uint64_t len)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512], prot[8];
	uintptr_t at = addr, from, to;

	if (!f)
		return false;
	while (at < addr + len && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %7s", &from, &to, prot) == 3 && from <= at &&
		    to > at && !strncmp(prot, "rw", 2) && prot[3] == 'p')
			at = to;
	fclose(f);
	return at >= addr + len;
}

/*
 * Copy from or to adopted memory. Sanitizers are off, because they poison the gaps between static
 * variables.
 */
__attribute__((no_sanitize("address", "thread")))
static void words_copy(void *to, const void *from, size_t len)
{
	const volatile uint64_t *f = from;
	volatile uint64_t *t = to;

	for (size_t i = 0; i < len / sizeof(*t); i++)
		t[i] = f[i];
}

static int range_adopt_contents(struct sci_vm *vm, struct vm_range *r)
{
	void *copy = malloc(vm_page_size(r));
	int ret = copy ? 0 : -ENOMEM;

	pthread_mutex_lock(&vm->lock);
	for (size_t i = 0; !ret && i < r->n; i++) {
		uint8_t *at = vm_page_addr(r, i);
		size_t left = (size_t)(r->addr + r->len - at), page = vm_page_size(r);
		int home = vm_page_home(vm, r, i);
		void *frame = NULL;

		left = left < page ? left : page;
		if (r->mode == SCI_VM_CACHE) {
			words_copy(copy, at, left);
			ret = vm_copy_put(vm, r, i, copy, left);
			continue;
		}
		ret = home < 0 ? home : vm_page_source(vm, r, i, home, &frame);
		if (!ret)
			words_copy(frame, at, left);
	}
	pthread_mutex_unlock(&vm->lock);
	free(copy);
	return ret;
}

/* Replace adopted memory by views. Stores of the program at the same time are lost. */
static int range_adopt_views(struct sci_vm *vm, struct vm_range *r)
{
	int ret = 0;

	pthread_mutex_lock(&vm->lock);
	if (r->flags & SCI_VM_EAGER)
		ret = vm_views_eager(vm, r);
	else if (r->mode == SCI_VM_CACHE)
		ret = vm_copies_show(vm, r);
	else
		ret = vm_mmap(r->addr, r->len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_mutex_unlock(&vm->lock);
	return ret;
}

int sci_vm_adopt(struct sci_vm *vm, void *addr, size_t len, int root,
		 const struct sci_vm_range *range)
{
	struct vm_range_wire w = { 0 };
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct vm_range *r;
	int ret;

	if (!vm)
		return -EINVAL;
	ret = vm_usable(vm);
	if (ret)
		return ret;
	ret = range_of_attr(vm, range, (uint32_t)page, &w);
	if (!ret && (!addr || !len || root < 0 || root >= vm->size ||
		     ((uintptr_t)addr | len) & (page - 1) ||
		     (uintptr_t)addr + len < (uintptr_t)addr))
		ret = -EINVAL;
	if (!ret && ((uintptr_t)addr & ((1ull << w.shift) - 1)))
		ret = -EINVAL;
	if (!ret && range_overlaps(vm, addr, len))
		ret = -EEXIST;
	if (!ret && !range_is_private((uintptr_t)addr, len))
		ret = -EFAULT;
	ret = vm_agree(vm, ret);
	if (ret)
		return ret;
	w.addr = (uint64_t)(uintptr_t)addr;
	w.len = len;
	w.creator = root;
	if (range && range->policy == SCI_VM_HOME && range->home < 0)
		w.home = root;
	ret = vm_agree(vm, range_add(vm, &w));
	if (ret)
		return ret;
	pthread_mutex_lock(&vm->lock);
	r = vm_range_lookup(vm, addr);
	pthread_mutex_unlock(&vm->lock);
	ret = vm_agree(vm, vm->rank == root ? range_adopt_contents(vm, r) : 0);
	/* call no libc function before the views exist: adopted memory may have malloc()'s data */
	return ret ? ret : vm_agree(vm, range_adopt_views(vm, r));
}

static int range_return(struct vm_range *r)
{
	void *p = mmap(NULL, r->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	words_copy(p, r->addr, r->len);
	if (sci_map_move(p, r->len, r->len, r->addr) == MAP_FAILED) {
		munmap(p, r->len);
		return -errno;
	}
	return 0;
}

/* Make adopted memory private again. The copy faults, and the worker resolves these faults. */
void vm_ranges_return(struct sci_vm *vm)
{
	for (uint32_t i = 0; i < atomic_load(&vm->adopted_n); i++) {
		struct vm_range *r;

		r = vm_range_lookup(vm, (void *)atomic_load(&vm->adopted[i][0]));
		if (r)
			range_return(r);
	}
}
