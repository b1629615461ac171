// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: acquire and release
 *
 * A member numbers its releases with changes: these numbers are its intervals. For each page that
 * it has ever changed, the member keeps a write notice with the interval of the last change. A
 * member that acquires asks for the pages that changed after the last interval that it knows,
 * and drops its copies of them. So notices need no garbage collection. At worst a member drops a
 * copy that is up to date.
 */
#include "libsci/vm/internal.h"

#include <stdlib.h>

size_t sci_vm_time_size(const struct sci_vm *vm)
{
	size_t n = vm && vm->size < (int)SCI_VM_TIME_MAX ? (size_t)vm->size : SCI_VM_TIME_MAX;

	return offsetof(struct sci_vm_time, intervals) + n * sizeof(uint32_t);
}

void sci_vm_time_merge(struct sci_vm_time *into, const struct sci_vm_time *other)
{
	for (uint32_t i = 0; i < other->n && i < SCI_VM_TIME_MAX; i++) {
		if (i >= into->n)
			into->intervals[into->n++] = 0;
		if (into->intervals[i] < other->intervals[i])
			into->intervals[i] = other->intervals[i];
	}
}

/* ---- pages changed since the last release: vm->lock ---- */

int vm_dirty_add(struct sci_vm *vm, struct vm_range *r, size_t i)
{
	if (r->pages[i].dirty)
		return 0;
	if (vm->dirty_n == vm->dirty_room) {
		size_t room = vm->dirty_room ? 2 * vm->dirty_room : 256;
		struct vm_window *d = realloc(vm->dirty, room * sizeof(*d));

		if (!d)
			return -ENOMEM;
		vm->dirty = d;
		vm->dirty_room = room;
	}
	vm->dirty[vm->dirty_n++] = (struct vm_window){ r, i };
	r->pages[i].dirty = true;
	return 0;
}

void vm_dirty_forget(struct sci_vm *vm, const struct vm_range *r)
{
	size_t n = 0;

	for (size_t k = 0; k < vm->dirty_n; k++)
		if (vm->dirty[k].range != r)
			vm->dirty[n++] = vm->dirty[k];
	vm->dirty_n = n;
}

/* ---- notices: vm->serve_lock ---- */

/* Set the interval of a page's notice, and move the notice to the end of the list. */
static int notice_give(struct sci_vm *vm, struct vm_range *r, size_t i, uint32_t interval)
{
	struct vm_page *p = &r->pages[i];

	if (!p->notice) {
		p->notice = calloc(1, sizeof(*p->notice));
		if (!p->notice)
			return -ENOMEM;
		list_init(&p->notice->link);
		p->notice->addr = (uint64_t)(uintptr_t)vm_page_addr(r, i);
		p->notice->len = vm_page_size(r);
	}
	list_del(&p->notice->link);
	p->notice->interval = interval;
	list_add_tail(&p->notice->link, &vm->notices);
	return 0;
}

/* Add notices for all pages whose changes have been sent home, and mark the pages clean. */
static int notices_give(struct sci_vm *vm)
{
	uint32_t interval = vm->interval + 1;
	size_t left = 0;
	int ret = 0;

	pthread_mutex_lock(&vm->serve_lock);
	for (size_t k = 0; k < vm->dirty_n; k++) {
		struct vm_window w = vm->dirty[k];
		struct vm_page *p = &w.range->pages[w.page];
		int error = vm_page_changed(p) ? -EAGAIN :
			    notice_give(vm, w.range, w.page, interval);

		if (error) {
			/*
			 * the page has changes again, or memory is short: the next release
			 * tries again
			 */
			ret = error == -ENOMEM ? error : ret;
			vm->dirty[left++] = w;
			continue;
		}
		vm->interval = interval;
		p->dirty = false;
	}
	vm->dirty_n = left;
	vm->seen[vm->rank] = vm->interval;
	pthread_mutex_unlock(&vm->serve_lock);
	return ret;
}

/**
 * vm_serve_notices() - get the pages that this member has changed after interval @since
 * @out: receives runs of pages, which the caller frees; NULL: there are none, or no memory
 *
 * Return: the number of runs.
 */
size_t vm_serve_notices(struct sci_vm *vm, uint32_t since, struct vm_pages **out)
{
	struct vm_pages *runs = NULL;
	struct list *pos;
	size_t n = 0;

	*out = NULL;
	for (pos = vm->notices.prev; pos != &vm->notices; pos = pos->prev) {
		if (container_of(pos, struct vm_notice, link)->interval <= since)
			break;
		n++;
	}
	runs = n ? malloc(n * sizeof(*runs)) : NULL;
	if (!runs)
		return n;
	n = 0;
	for (pos = pos->next; pos != &vm->notices; pos = pos->next) {
		const struct vm_notice *e = container_of(pos, struct vm_notice, link);

		if (n && runs[n - 1].addr + runs[n - 1].len == e->addr)
			runs[n - 1].len += e->len;
		else
			runs[n++] = (struct vm_pages){ e->addr, e->len };
	}
	*out = runs;
	return n;
}

/* ---- acquire ---- */

static void copy_invalidated(struct sci_vm *vm, struct vm_range *r, size_t i)
{
	struct vm_page *p = &r->pages[i];

	p->invalidations++;
	VM_COUNT(vm, invalidations, 1);
	vm_trace(vm, "invalidate", vm_page_addr(r, i), atomic_load(&p->home));
}

/* Drop this member's copies of pages in [@at, @end), which another member has changed. */
static int copies_drop(struct sci_vm *vm, const uint8_t *at, const uint8_t *end)
{
	int ret = 0;

	while (at < end) {
		struct vm_range *r = vm_range_after(vm, at);
		struct vm_page *p;
		size_t i;

		/* the run may begin in a range that a member frees now, and end in another range */
		if (!r || r->addr >= end)
			return ret;
		if (r->mode != SCI_VM_CACHE) {
			at = r->addr + r->len;
			continue;
		}
		at = at < r->addr ? r->addr : at;
		i = vm_page_index(r, at);
		p = &r->pages[i];
		VM_COUNT(vm, notices, 1);
		if (p->state != VM_NONE && !p->lost && atomic_load(&p->home) != vm->rank) {
			int error = vm_copy_drop(vm, r, i);

			ret = ret ? ret : error;
			if (p->state == VM_NONE)
				copy_invalidated(vm, r, i);
		}
		at = vm_page_addr(r, i) + vm_page_size(r);
	}
	return ret;
}

static int changes_take(struct sci_vm *vm, const struct vm_call *c, const uint8_t *addr,
			size_t len)
{
	const struct vm_pages *runs = c->buf;
	int ret = 0;

	for (size_t k = 0; k < c->got / sizeof(*runs); k++) {
		const uint8_t *from = (const uint8_t *)(uintptr_t)runs[k].addr;
		const uint8_t *to = from + runs[k].len;
		int error;

		if (len) {
			from = from < addr ? addr : from;
			to = to > addr + len ? addr + len : to;
		}
		error = copies_drop(vm, from, to);
		ret = ret ? ret : error;
	}
	return ret;
}

/* Send VM_OP_CHANGES to each member that may have new changes. In the other calls, @sent is 1. */
static void changes_ask(struct sci_vm *vm, struct vm_call *calls, const struct sci_vm_time *time)
{
	for (int i = 0; i < vm->size; i++) {
		struct vm_wire w = { .len = vm->seen[i] };
		bool news = i != vm->rank && (!time || ((uint32_t)i < time->n &&
							time->intervals[i] > vm->seen[i]));

		calls[i].buf = NULL;
		calls[i].sent = news ? vm_call_start(vm, &calls[i], i, VM_OP_CHANGES, &w,
						     NULL, 0) : 1;
	}
}

static int notices_acquire(struct sci_vm *vm, const struct sci_vm_time *time, const uint8_t *addr,
			   size_t len)
{
	struct vm_call *calls = calloc((size_t)vm->size, sizeof(*calls));
	int ret = 0;

	if (!calls)
		return -ENOMEM;
	changes_ask(vm, calls, time);
	for (int i = 0; i < vm->size; i++) {
		int error = calls[i].sent;

		if (error == 1)
			continue;
		if (!error)
			error = vm_call_wait(vm, &calls[i]);
		if (!error) {
			error = changes_take(vm, &calls[i], addr, len);
			/*
			 * after an error, or an acquire of a part, some copies may be stale: the
			 * next acquire asks for the same changes
			 */
			if (!len && !error)
				vm->seen[i] = (uint32_t)calls[i].w.len;
		}
		free(calls[i].buf);
		ret = ret ? ret : error;
	}
	free(calls);
	return ret;
}

static int part_acquire(struct sci_vm *vm, const struct sci_vm_time *time, const void *addr,
			size_t len)
{
	int ret = vm ? vm_usable(vm) : -EINVAL;

	if (ret)
		return ret;
	VM_COUNT(vm, acquires, 1);
	if (!atomic_load(&vm->cached))
		return 0;
	pthread_mutex_lock(&vm->lock);
	ret = notices_acquire(vm, time, addr, len);
	pthread_mutex_unlock(&vm->lock);
	return ret;
}

int sci_vm_acquire(struct sci_vm *vm, const struct sci_vm_time *time)
{
	struct sci_vm_time copy = { .n = 0 };

	if (vm && time && time->n > (uint32_t)vm->size)
		return -EINVAL;
	/* @time may be in a range: the worker resolves no fault of a thread that holds vm->lock */
	if (time)
		sci_vm_time_merge(&copy, time);
	return part_acquire(vm, time ? &copy : NULL, NULL, 0);
}

int sci_vm_acquire_range(struct sci_vm *vm, const void *addr, size_t len)
{
	if (!len || (uintptr_t)addr + len < len)
		return -EINVAL;
	return part_acquire(vm, NULL, addr, len);
}

/* ---- release ---- */

static int part_release(struct sci_vm *vm, const void *addr, size_t len,
			struct sci_vm_time *time)
{
	int ret = vm ? vm_usable(vm) : -EINVAL, error;
	struct sci_vm_time now;

	if (ret)
		return ret;
	VM_COUNT(vm, releases, 1);
	if (!atomic_load(&vm->cached)) {
		if (time)
			memset(time, 0, sci_vm_time_size(vm));
		return 0;
	}
	pthread_mutex_lock(&vm->lock);
	ret = vm_copies_flush(vm, addr, len);
	/* add notices after the changes: a member that receives a notice fetches the page */
	error = notices_give(vm);
	ret = ret ? ret : vm->changes_lost;
	vm->changes_lost = 0;
	now.n = (uint32_t)vm->size;
	memcpy(now.intervals, vm->seen, sizeof(now.intervals));
	pthread_mutex_unlock(&vm->lock);
	/* a store to @time may fault: it may be in a range */
	if (time)
		memcpy(time, &now, sci_vm_time_size(vm));
	return ret ? ret : error;
}

int sci_vm_release(struct sci_vm *vm, struct sci_vm_time *time)
{
	return part_release(vm, NULL, 0, time);
}

int sci_vm_release_range(struct sci_vm *vm, const void *addr, size_t len)
{
	if (!len || (uintptr_t)addr + len < len)
		return -EINVAL;
	return part_release(vm, addr, len, NULL);
}
