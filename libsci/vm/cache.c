// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: copies
 *
 * Pages of a cached range are in an anonymous file, which is mapped twice. One mapping, the view,
 * is at the addresses of the range, and its protection limits the program's accesses. The other
 * mapping, r->copies, is always writable, for the library. At the home the file has the page
 * itself: handlers read it and apply diffs to it. On other members the file has a copy.
 *
 *	VM_NONE		no copy; at the home: the program has not used the page
 *	VM_READABLE	a copy without changes
 *	VM_WRITABLE	changed since the last release. A copy has a twin, its contents
 *			before the first store: the bytes that differ are the diff
 *
 * The home's own view is VM_READABLE or VM_WRITABLE by the same rule. So a release finds the
 * pages that have changed.
 */
#include "libsci/vm/internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static int cache_grow(struct sci_vm *vm, uint64_t len)
{
	struct rlimit rl;

	/* past this limit ftruncate() would raise SIGXFSZ */
	if (!getrlimit(RLIMIT_FSIZE, &rl) && rl.rlim_cur != RLIM_INFINITY && len > rl.rlim_cur)
		return -ENOSPC;
	if (ftruncate(vm->cache_fd, (off_t)len))
		return -errno;
	vm->cache_bytes = len;
	return 0;
}

/* Create the sparse file of cached pages, as long as the memory. Context: no lock is held. */
int vm_cache_open(struct sci_vm *vm)
{
	int ret;

	pthread_mutex_lock(&vm->serve_lock);
	vm->cache_fd = memfd_create("sci-vm", MFD_CLOEXEC);
	ret = vm->cache_fd < 0 ? -errno : cache_grow(vm, vm->length);
	pthread_mutex_unlock(&vm->serve_lock);
	return ret;
}

/* Map the file at the addresses of the range, with PROT_NONE. */
int vm_copies_show(struct sci_vm *vm, struct vm_range *r)
{
	return vm_mmap(r->addr, r->len, PROT_NONE, MAP_SHARED, vm->cache_fd, r->copies_at);
}

/* Map the part of the file for a new range. An adopted range gets a new part at the end. */
int vm_copies_attach(struct sci_vm *vm, struct vm_range *r)
{
	uint64_t len = (uint64_t)r->n << r->shift, align = VM_PAGE_MAX;
	int ret = 0;

	r->copies_at = (uint64_t)(r->addr - vm->base);
	if (r->adopted) {
		r->copies_at = (vm->cache_bytes + align - 1) & ~(align - 1);
		ret = cache_grow(vm, r->copies_at + len);
		if (ret)
			return ret;
	}
	r->copies = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			 vm->cache_fd, (off_t)r->copies_at);
	if (r->copies == MAP_FAILED) {
		r->copies = NULL;
		return -errno;
	}
	return r->adopted ? 0 : vm_copies_show(vm, r);
}

/* Free the copies and twins of a range before the range is freed. */
void vm_copies_detach(struct sci_vm *vm, struct vm_range *r)
{
	uint64_t len = (uint64_t)r->n << r->shift;

	if (!r->copies)
		return;
	for (size_t i = 0; i < r->n; i++)
		free(r->pages[i].twin);
	madvise(r->copies, len, MADV_REMOVE);
	munmap(r->copies, len);
	(void)vm;
}

static uint8_t *copy_of(const struct vm_range *r, size_t i)
{
	return r->copies + (i << r->shift);
}

/* ---- diffs ---- */

/*
 * Diffs for one home, page by page. diff_add() sends a message only when it begins the next one: a
 * page without differing bytes begins none. So diff_finish() has the last message, and sends it as
 * a call: the home answers the call when it has applied all diffs.
 */
struct diff {
	struct sci_vm *vm;
	int home;
	int error;
	uint64_t page;			/* the page whose changes diff_add() adds */
	struct vm_wire w;
	size_t len;
	uint8_t runs[VM_DATA_MAX];
};

static void diff_send(struct diff *d)
{
	int ret = d->error;

	while (!ret && d->len) {
		ret = vm_send(d->vm, d->home, VM_OP_DIFF, 0, &d->w, d->runs, d->len);
		if (ret != -EAGAIN)
			break;
		sci_progress(d->vm->ep);
		ret = atomic_load(&d->vm->ranks[d->home].dead) ? -ECONNRESET : 0;
	}
	d->error = ret == -ENOTCONN ? -ECONNRESET : ret;
	d->len = 0;
}

/*
 * Send the last message, and wait until the home has applied all diffs. The home ignores diffs of a
 * range that it has removed: another member, or another thread, frees the range.
 */
static int diff_finish(struct diff *d)
{
	struct vm_call c = { 0 };

	if (!d->error && d->len) {
		d->error = vm_call_start(d->vm, &c, d->home, VM_OP_DIFF, &d->w, d->runs,
					 d->len);
		if (!d->error)
			d->error = vm_call_wait(d->vm, &c);
		if (d->error == -EFAULT)
			d->error = 0;
	}
	return d->error;
}

static void diff_add(struct diff *d, size_t at, const uint8_t *from, size_t len)
{
	while (len) {
		size_t room = sizeof(d->runs) - d->len;
		struct vm_run run = { (uint32_t)at, 0 };

		if (room <= sizeof(run) || d->w.addr != d->page) {
			diff_send(d);
			d->w.addr = d->page;
			room = sizeof(d->runs);
		}
		room -= sizeof(run);
		run.len = (uint32_t)(len < room ? len : room);
		memcpy(d->runs + d->len, &run, sizeof(run));
		memcpy(d->runs + d->len + sizeof(run), from, run.len);
		d->len += sizeof(run) + run.len;
		at += run.len;
		from += run.len;
		len -= run.len;
	}
}

/*
 * Add only the bytes of @now that differ from @twin: another member may have changed the bytes
 * beside them. Return the number of bytes.
 */
static size_t diff_scan(struct diff *d, const uint8_t *now, const uint8_t *twin, size_t len)
{
	size_t i = 0, bytes = 0, from;

	while (i < len) {
		if (!(i % 8) && !memcmp(now + i, twin + i, 8)) {
			i += 8;
			continue;
		}
		for (from = i; i < len && now[i] != twin[i]; )
			i++;
		if (i > from)
			diff_add(d, from, now + from, i - from);
		bytes += i - from;
		if (i == from)
			i++;
	}
	return bytes;
}

/*
 * Make a page that was written to readable again, and add its changes to @d. The twin stays until
 * copy_settle().
 */
static int copy_clean(struct sci_vm *vm, struct vm_range *r, size_t i, struct diff *d)
{
	struct vm_page *p = &r->pages[i];
	size_t bytes;
	int ret = vm_view_restrict(r, i, VM_READABLE);

	if (ret || !p->twin)
		return ret;
	d->page = (uint64_t)(uintptr_t)vm_page_addr(r, i);
	/* a store from here on faults, so the copy does not change during the scan */
	bytes = diff_scan(d, copy_of(r, i), p->twin, vm_page_size(r));
	if (bytes) {
		VM_COUNT(vm, diffs, 1);
		VM_COUNT(vm, diff_bytes, bytes);
		vm_trace(vm, "diff", vm_page_addr(r, i), d->home);
	}
	return 0;
}

/*
 * Free the twin of a page whose diff has ended with @error. After -ENOMEM the twin stays, so that
 * the next diff has the changes again. After another error the home is lost.
 */
static void copy_settle(struct vm_page *p, int error)
{
	if (error == -ENOMEM || p->state == VM_WRITABLE)
		return;
	free(p->twin);
	p->twin = NULL;
}

static struct diff diff_begin(struct sci_vm *vm, int home)
{
	struct diff d;

	d.vm = vm;
	d.home = home;
	d.error = 0;
	d.page = 0;
	d.len = 0;
	d.w = (struct vm_wire){ .value = 0 };
	return d;
}

/*
 * Send the changes of one page home, and wait until the home has applied them. Return: 0; -ENOMEM:
 * this member still has the changes; another error: the changes are lost.
 */
int vm_copy_flush(struct sci_vm *vm, struct vm_range *r, size_t i)
{
	struct vm_page *p = &r->pages[i];
	struct diff d = diff_begin(vm, atomic_load(&p->home));
	int ret;

	if (!vm_page_changed(p))
		return 0;
	ret = copy_clean(vm, r, i, &d);
	ret = ret ? ret : diff_finish(&d);
	copy_settle(p, ret);
	return ret;
}

static bool window_is_in(const struct vm_window *w, const uint8_t *addr, size_t len)
{
	const uint8_t *page = vm_page_addr(w->range, w->page);

	return !len || (page < addr + len && addr < page + vm_page_size(w->range));
}

/* Return the next page at or after vm->dirty[*@k] with changes for @home, or NULL. */
static struct vm_window *dirty_next(struct sci_vm *vm, size_t *k, int home, const uint8_t *addr,
				    size_t len)
{
	while (*k < vm->dirty_n) {
		struct vm_window *w = &vm->dirty[(*k)++];
		struct vm_page *p = &w->range->pages[w->page];

		if (atomic_load(&p->home) == home && vm_page_changed(p) &&
		    window_is_in(w, addr, len))
			return w;
	}
	return NULL;
}

static int copies_flush_home(struct sci_vm *vm, int home, const uint8_t *addr, size_t len)
{
	struct diff d = diff_begin(vm, home);
	struct vm_window *w;
	int ret = 0, error;
	size_t k = 0;

	while ((w = dirty_next(vm, &k, home, addr, len))) {
		error = copy_clean(vm, w->range, w->page, &d);
		ret = ret ? ret : error;
	}
	error = diff_finish(&d);
	for (k = 0; (w = dirty_next(vm, &k, home, addr, len)); )
		copy_settle(&w->range->pages[w->page], error);
	return ret ? ret : error;
}

/* Send the changes of pages in [@addr, @addr + @len) home; if @len is 0, of all pages. */
int vm_copies_flush(struct sci_vm *vm, const uint8_t *addr, size_t len)
{
	int ret = 0;

	for (int home = 0; vm->dirty_n && home < vm->size; home++) {
		int error = copies_flush_home(vm, home, addr, len);

		ret = ret ? ret : error;
	}
	return ret;
}

/* Copy @from into a page at its home. No member uses the page yet. */
int vm_copy_put(struct sci_vm *vm, struct vm_range *r, size_t i, const void *from, size_t len)
{
	int home = vm_page_home(vm, r, i);
	struct diff d = diff_begin(vm, home);

	if (home < 0)
		return home;
	if (home == vm->rank) {
		memcpy(copy_of(r, i), from, len);
		return 0;
	}
	d.page = (uint64_t)(uintptr_t)vm_page_addr(r, i);
	diff_add(&d, 0, from, len);
	return diff_finish(&d);
}

/* ---- faults ---- */

static int copy_fetch(struct sci_vm *vm, struct vm_range *r, size_t i, int home)
{
	struct vm_wire w = { .addr = (uint64_t)(uintptr_t)vm_page_addr(r, i) };
	struct vm_call c = { .buf = copy_of(r, i), .room = vm_page_size(r) };
	int ret = vm_call(vm, &c, home, VM_OP_PAGE, &w);

	if (ret)
		return ret;
	ret = vm_window_take(vm, r, i);
	if (ret)
		return ret;
	r->pages[i].transfers++;
	VM_COUNT(vm, fetches, 1);
	vm_trace(vm, "fetch", vm_page_addr(r, i), home);
	return 0;
}

static int copy_make_writable(struct sci_vm *vm, struct vm_range *r, size_t i)
{
	struct vm_page *p = &r->pages[i];
	bool twin = !p->twin && atomic_load(&p->home) != vm->rank;
	int ret = vm_dirty_add(vm, r, i);

	if (ret)
		return ret;
	if (twin) {
		p->twin = malloc(vm_page_size(r));
		if (!p->twin)
			return -ENOMEM;
		memcpy(p->twin, copy_of(r, i), vm_page_size(r));
	}
	ret = vm_view_protect(r, i, VM_WRITABLE);
	if (ret && twin)
		copy_settle(p, 0);
	if (ret || !twin)
		return ret;
	p->twins++;
	VM_COUNT(vm, twins, 1);
	vm_trace(vm, "twin", vm_page_addr(r, i), atomic_load(&p->home));
	return 0;
}

static void home_bind(struct sci_vm *vm, struct vm_range *r, size_t i)
{
	size_t len;

	pthread_mutex_lock(&vm->serve_lock);
	vm_home_page(vm, vm_page_addr(r, i), &len);
	pthread_mutex_unlock(&vm->serve_lock);
}

/* Do vm_view() for a page of a cached range. */
int vm_copy_view(struct sci_vm *vm, struct vm_range *r, size_t i, int home, bool write)
{
	struct vm_page *p = &r->pages[i];
	int ret = 0;

	if (p->state == VM_NONE && home != vm->rank)
		ret = copy_fetch(vm, r, i, home);
	else if (p->state == VM_NONE)
		home_bind(vm, r, i);
	if (!ret && p->state == VM_NONE)
		ret = vm_view_protect(r, i, VM_READABLE);
	if (p->state == VM_NONE)
		vm_window_give(vm, p);
	if (!ret && write && p->state == VM_READABLE)
		ret = copy_make_writable(vm, r, i);
	return ret;
}

/*
 * Send the changes of a copy home, and drop the copy. Return: 0; -ENOMEM: the copy stays; another
 * error: the home has died, and the changes are lost.
 */
int vm_copy_drop(struct sci_vm *vm, struct vm_range *r, size_t i)
{
	int ret = vm_copy_flush(vm, r, i), error;

	if (vm_page_changed(&r->pages[i]))
		return ret;
	error = vm_view_restrict(r, i, VM_NONE);
	if (error)
		return ret ? ret : error;
	vm_window_give(vm, &r->pages[i]);
	madvise(copy_of(r, i), vm_page_size(r), MADV_REMOVE);
	return ret;
}

/* ---- the home ---- */

/*
 * Return the memory of a cached page, or NULL if this member cannot be the home of the page.
 * Context: vm->serve_lock is held.
 */
uint8_t *vm_home_page(struct sci_vm *vm, const void *addr, size_t *len)
{
	struct vm_range *r = vm_range_find(vm, addr);
	size_t i = r ? vm_page_index(r, addr) : 0;
	int home = r ? vm_page_fixed_home(vm, r, i) : -1;

	if (!r || r->mode != SCI_VM_CACHE || (home >= 0 && home != vm->rank))
		return NULL;
	if (!r->pages[i].frame) {
		r->pages[i].frame = copy_of(r, i);
		VM_COUNT(vm, homed, 1);
	}
	*len = vm_page_size(r);
	return copy_of(r, i);
}

/* Apply a diff to a page. Context: a handler. Return: 0; -EFAULT: no page; -EPROTO: bad diff. */
int vm_serve_diff(struct sci_vm *vm, const void *addr, const void *runs, size_t len)
{
	const uint8_t *from = runs;
	size_t page_len = 0;
	uint8_t *page;
	int ret = 0;

	pthread_mutex_lock(&vm->serve_lock);
	page = vm_home_page(vm, addr, &page_len);
	if (!page)
		ret = -EFAULT;
	while (!ret && len) {
		struct vm_run run = { 0 };

		if (len >= sizeof(run))
			memcpy(&run, from, sizeof(run));
		if (!run.len || run.len > len - sizeof(run) || run.at > page_len ||
		    run.len > page_len - run.at) {
			ret = -EPROTO;
			break;
		}
		memcpy(page + run.at, from + sizeof(run), run.len);
		from += sizeof(run) + run.len;
		len -= sizeof(run) + run.len;
	}
	pthread_mutex_unlock(&vm->serve_lock);
	return ret;
}
