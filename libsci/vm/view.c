// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: views
 *
 * The view of a mapped page is a second mapping of its frame: mremap() of a shared mapping with
 * an old size of 0 makes it without a descriptor. A page of another member takes a window. The
 * number of windows is limited, like the entries of an adapter's address translation table. When
 * no window is free, a clock algorithm frees one: its hand shuts each view that it passes
 * (PROT_NONE). A fault opens a shut view again, without a message. A view that is still shut
 * when the hand returns is dropped.
 */
#include "libsci/vm/internal.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libsci/base/host.h"

/* Return true if mremap() can duplicate a mapping. It cannot under qemu-user. */
bool vm_can_map(void *memory)
{
	void *p = mremap(memory, 0, VM_PAGE_MIN, MREMAP_MAYMOVE);

	if (p == MAP_FAILED)
		return false;
	munmap(p, VM_PAGE_MIN);
	return true;
}

/* Call mmap() without libc: a sanitizer would take libc's mmap() for a store to all bytes. */
int vm_mmap(void *addr, size_t len, int prot, int flags, int fd, uint64_t offset)
{
	return syscall(SYS_mmap, addr, len, prot, flags | MAP_FIXED | MAP_NORESERVE, fd,
		       (off_t)offset) == -1 ? -errno : 0;
}

/* Return the length of page @i. The last page of an adopted range may be shorter. */
size_t vm_view_len(const struct vm_range *r, size_t i)
{
	size_t left = (size_t)(r->addr + r->len - vm_page_addr(r, i));

	return left < vm_page_size(r) ? left : vm_page_size(r);
}

static int view_place(void *addr, void *src, size_t len)
{
	return sci_map_move(src, 0, len, addr) == MAP_FAILED ? -errno : 0;
}

/* Shut a view to see whether it is used. After an error the view stays open. */
static void view_shut(struct vm_range *r, size_t i)
{
	if (!mprotect(vm_page_addr(r, i), vm_view_len(r, i), PROT_NONE))
		r->pages[i].armed = true;
}

/* Allow the accesses of @state, and open the view if it was shut. */
int vm_view_protect(struct vm_range *r, size_t i, enum vm_state state)
{
	int prot = state == VM_WRITABLE ? PROT_READ | PROT_WRITE :
		   state == VM_READABLE ? PROT_READ : PROT_NONE;

	if (mprotect(vm_page_addr(r, i), vm_view_len(r, i), prot))
		return -errno;
	r->pages[i].state = (uint8_t)state;
	r->pages[i].armed = false;
	return 0;
}

/* Allow fewer accesses. A shut view stays shut, so this cannot fail for a shut view. */
int vm_view_restrict(struct vm_range *r, size_t i, enum vm_state state)
{
	struct vm_page *p = &r->pages[i];

	if (!p->armed)
		return vm_view_protect(r, i, state);
	p->state = (uint8_t)state;
	p->armed = state != VM_NONE;
	return 0;
}

/* ---- windows ---- */

void vm_window_give(struct sci_vm *vm, struct vm_page *p)
{
	if (!p->window)
		return;
	vm->windows[p->window - 1] = (struct vm_window){ NULL, vm->windows_free };
	vm->windows_free = p->window;
	p->window = 0;
	VM_COUNT(vm, windows, -1ull);
}

/*
 * Drop a shut view, so that a touch asks for the page again. Changes of a copy are sent home.
 * Return: 0; -ENOMEM: the changes were not sent, and the view stays.
 */
static int view_drop(struct sci_vm *vm, struct vm_range *r, size_t i)
{
	struct vm_page *p = &r->pages[i];
	int ret = 0;

	if (r->mode == SCI_VM_CACHE) {
		ret = vm_copy_drop(vm, r, i);
		if (p->state == VM_NONE)
			vm->changes_lost = vm->changes_lost ? vm->changes_lost : ret;
		return p->state == VM_NONE ? 0 : ret;
	}
	vm_window_give(vm, p);
	/* after an error the old view is still shut */
	vm_mmap(vm_page_addr(r, i), vm_view_len(r, i), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		-1, 0);
	p->state = VM_NONE;
	p->armed = false;
	return 0;
}

/* Remove all views of a range before it is freed. Changes are not sent home. */
void vm_views_drop(struct sci_vm *vm, struct vm_range *r)
{
	for (size_t i = 0; i < r->n; i++)
		vm_window_give(vm, &r->pages[i]);
	vm_dirty_forget(vm, r);
	vm_mmap(r->addr, r->len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	vm_copies_detach(vm, r);
}

/*
 * Free a window when all are in use: move the clock's hand until a view has been dropped. Return: 0;
 * -ENOMEM: in two rounds no view could be dropped.
 */
static int window_make_room(struct sci_vm *vm)
{
	for (size_t n = 0; n < 2 * vm->windows_max; n++) {
		struct vm_window w = vm->windows[vm->hand];
		struct vm_page *p = &w.range->pages[w.page];

		vm->hand = (vm->hand + 1) % vm->windows_max;
		if (!p->armed) {
			view_shut(w.range, w.page);
		} else if (!view_drop(vm, w.range, w.page)) {
			vm_trace(vm, "drop", vm_page_addr(w.range, w.page),
				 atomic_load(&p->home));
			VM_COUNT(vm, drops, 1);
			return 0;
		}
	}
	return -ENOMEM;
}

/* Give page @i a window. Return: 0 or -ENOMEM. */
int vm_window_take(struct sci_vm *vm, struct vm_range *r, size_t i)
{
	size_t slot = vm->windows_used;

	if (!vm->windows_free && slot == vm->windows_max && window_make_room(vm))
		return -ENOMEM;
	if (vm->windows_free) {
		slot = vm->windows_free - 1;
		vm->windows_free = vm->windows[slot].page;
	} else {
		vm->windows_used++;
	}
	vm->windows[slot] = (struct vm_window){ r, i };
	r->pages[i].window = (uint32_t)slot + 1;
	VM_COUNT(vm, windows, 1);
	return 0;
}

/* ---- where a page is ---- */

/* Return the rank of the home, or -errno. If page @i has no home, this member becomes its home. */
int vm_page_home(struct sci_vm *vm, struct vm_range *r, size_t i)
{
	struct vm_page *p = &r->pages[i];
	int home = atomic_load(&p->home), dir = vm_page_directory(vm, i);
	struct vm_wire w = {
		.addr = (uint64_t)(uintptr_t)vm_page_addr(r, i), .value = vm->rank,
	};
	struct vm_call c;

	if (home >= 0)
		return home;
	home = vm_page_fixed_home(vm, r, i);
	if (home < 0 && dir == vm->rank)
		home = vm_serve_home(vm, vm_page_addr(r, i), vm->rank);
	else if (home < 0) {
		home = vm_call(vm, &c, dir, VM_OP_HOME, &w);
		home = home ? home : c.w.value;
	}
	if (home >= vm->size)
		return -EPROTO;
	if (home >= 0)
		atomic_store(&p->home, (int16_t)home);
	return home;
}

/* Map the memory of a key, or find its mapping. Return: 0; -EPROTO: the key has changed; -errno. */
static int import_find(struct sci_vm *vm, int rank, const struct sci_key *chunk, uint8_t **base)
{
	struct list *pos, *n;
	struct vm_import *m;
	int ret;

	list_for_each_safe(pos, n, &vm->ranks[rank].imports) {
		m = container_of(pos, struct vm_import, link);
		if (m->key.segment == chunk->segment) {
			*base = m->base;
			return m->key.offset == chunk->offset && m->key.len == chunk->len ?
			       0 : -EPROTO;
		}
	}
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	ret = sci_peer_map(vm->ranks[rank].peer, chunk, -1, &m->base);
	if (ret) {
		free(m);
		return ret == -ENOTCONN ? -ECONNRESET : ret;
	}
	m->key = *chunk;
	list_add_tail(&m->link, &vm->ranks[rank].imports);
	*base = m->base;
	return 0;
}

/* Get the address and the length of a run of contiguous frames that begins with page @i. */
static int source_run(struct sci_vm *vm, struct vm_range *r, size_t i, int home, void **src,
		      uint64_t *len)
{
	struct vm_wire w = { .addr = (uint64_t)(uintptr_t)vm_page_addr(r, i) };
	struct vm_call c;
	uint8_t *base = NULL;
	int ret;

	*len = vm_page_size(r);
	if (home == vm->rank)
		return vm_serve_frame(vm, vm_page_addr(r, i), src);
	ret = vm_call(vm, &c, home, VM_OP_FRAME, &w);
	if (ret)
		return ret;
	if (c.w.addr > c.w.key.len || c.w.len > c.w.key.len - c.w.addr || c.w.len < *len ||
	    c.w.len > (uint64_t)(r->n - i) << r->shift)
		return -EPROTO;
	ret = import_find(vm, home, &c.w.key, &base);
	*len = c.w.len;
	*src = base + c.w.addr;
	return ret;
}

int vm_page_source(struct sci_vm *vm, struct vm_range *r, size_t i, int home, void **src)
{
	uint64_t len;

	return source_run(vm, r, i, home, src, &len);
}

/* ---- faults ---- */

/* Give a page a private view of zeroes, because the page is lost with its home. */
static int view_lost(struct sci_vm *vm, struct vm_range *r, size_t i)
{
	struct vm_page *p = &r->pages[i];
	int ret = vm_mmap(vm_page_addr(r, i), vm_view_len(r, i), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (ret)
		return ret;
	p->state = VM_WRITABLE;
	p->lost = true;
	VM_COUNT(vm, lost, 1);
	vm_trace(vm, "lost", vm_page_addr(r, i), atomic_load(&p->home));
	return -ECONNRESET;
}

static int view_map(struct sci_vm *vm, struct vm_range *r, size_t i, int home)
{
	struct vm_page *p = &r->pages[i];
	void *src;
	int ret = vm_page_source(vm, r, i, home, &src);

	if (!ret && home != vm->rank)
		ret = vm_window_take(vm, r, i);
	if (!ret)
		ret = view_place(vm_page_addr(r, i), src, vm_view_len(r, i));
	if (ret) {
		vm_window_give(vm, p);
		return ret;
	}
	p->state = VM_WRITABLE;
	if (home != vm->rank) {
		p->transfers++;
		VM_COUNT(vm, maps, 1);
		vm_trace(vm, "map", vm_page_addr(r, i), home);
	}
	return 0;
}

/**
 * vm_view() - give a page a view that allows the access
 *
 * Return: 0; -ECONNRESET: the page's home or directory has died, and the view is private memory;
 * -ENOMEM.
 */
int vm_view(struct sci_vm *vm, struct vm_range *r, size_t i, bool write)
{
	struct vm_page *p = &r->pages[i];
	int ret = p->armed ? vm_view_protect(r, i, p->state) : 0, home;

	if (ret || p->lost)
		return ret ? ret : -ECONNRESET;
	home = vm_page_home(vm, r, i);
	if (home < 0)
		ret = home;
	else if (r->mode == SCI_VM_CACHE)
		ret = vm_copy_view(vm, r, i, home, write);
	else if (p->state == VM_NONE)
		ret = view_map(vm, r, i, home);
	return ret == -ECONNRESET ? view_lost(vm, r, i) : ret;
}

/* Map views of all pages of a range, one run of contiguous frames at a time. */
int vm_views_eager(struct sci_vm *vm, struct vm_range *r)
{
	size_t page = vm_page_size(r), i = 0;

	while (i < r->n) {
		int home = vm_page_home(vm, r, i), ret;
		uint64_t len = 0;
		size_t run = 0;
		void *src;

		ret = home < 0 ? home : source_run(vm, r, i, home, &src, &len);
		if (ret)
			return ret;
		if (home == vm->rank) {
			pthread_mutex_lock(&vm->serve_lock);
			for (len = 0; i + run < r->n && (uint8_t *)r->pages[i + run].frame ==
			     (uint8_t *)src + len; run++)
				len += page;
			pthread_mutex_unlock(&vm->serve_lock);
		}
		run = (size_t)(len / page);
		len = (uint64_t)(run - 1) * page + vm_view_len(r, i + run - 1);
		ret = view_place(vm_page_addr(r, i), src, (size_t)len);
		if (ret)
			return ret;
		for (; run; run--, i++) {
			r->pages[i].state = VM_WRITABLE;
			atomic_store(&r->pages[i].home, (int16_t)home);
		}
	}
	return 0;
}
