// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: pages of nodes that share no memory
 *
 * Each page has a manager, the node that its number selects. The manager knows the owner, the node
 * that wrote to the page last, and the readers, which have copies. It serves one request for a page
 * at a time:
 *
 *	read	the owner makes its page read-only and sends a copy (PAGE_GIVE, PAGE_DATA)
 *	write	the readers drop their copies (PAGE_DROP, PAGE_DROPPED), then the owner sends the
 *		page and drops it. A reader that becomes the owner keeps its copy (PAGE_RIGHT)
 *
 * mprotect(2) and guards of stacks act on one node after the other. If the protection of the owner does
 * not let it read its page, it denies the request (PAGE_DENIED): the faulting node takes PROT_NONE, too,
 * and its thread gets SIGSEGV, as on one machine. The next node that writes to the page lifts this.
 *
 * PAGE_DONE ends a request. If other requests wait, the node keeps the page for HOLD_NS: its
 * thread has time to run, and to finish with the page. At the start node 0 is the owner of all pages.
 *
 * The memory is anonymous. A page without a right is not present, and the page of a reader is
 * write-protected with userfaultfd(2): the kernel reports each access that needs more, stops the
 * thread, and wakes it when the page or its protection changes.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>

#include "hosts.h"

#define HOLD_NS		100000u

enum right {
	RIGHT_FIRST,			/* node 0: to write, but the page may be missing; else none */
	RIGHT_NONE,
	RIGHT_DENIED,			/* PROT_NONE until another node writes to the page */
	RIGHT_READ,
	RIGHT_WRITE
};

/* A page on this node. */
struct view {
	uint8_t right;
	bool asked;			/* a PAGE_ASK is under way */
};

struct ask {
	struct ask *next;
	uint64_t addr;
	uint64_t until;			/* end of the time for which the node keeps the page */
	uint8_t node;
	bool write;
};

/* A page that this node manages. */
struct managed {
	uint64_t readers;		/* a bit for each node, without the owner */
	uint64_t denied;		/* a bit for each node with RIGHT_DENIED */
	struct ask *first, *last;	/* requests; @first is the current one */
	uint8_t owner;
	uint8_t drops;			/* readers that have not dropped their copy yet */
};

static struct {
	int fd;				/* userfaultfd */
	unsigned int nodes;
	uint32_t pieces_n;
	struct {
		uint64_t from, to;
		size_t first;		/* number of the first page */
	} pieces[PIECES_MAX + 1];
	struct lock lock;		/* protects views, and their pages in the kernel */
	struct view *views;
	struct managed *managed;	/* only handlers use it, one at a time */
} page = { .fd = -1 };

static noreturn void page_fail(const char *what, uint64_t addr)
{
	world_say("node %u: %s of page %#llx: %s: the program ends", node_id(self_node), what,
		  (unsigned long long)addr, strerror(errno));
	for (;;)
		syscall(SYS_exit_group, 1);
}

/* Return the number of a page. */
static size_t page_number(uint64_t addr)
{
	for (uint32_t i = 0; i < page.pieces_n; i++)
		if (addr >= page.pieces[i].from && addr < page.pieces[i].to)
			return page.pieces[i].first +
			       (addr - page.pieces[i].from) / HOSTS_PAGE;
	errno = EFAULT;
	page_fail("a message", addr);
}

/* End the program if a message of another node is not what this node waits for. */
static void page_check(bool good, uint64_t addr)
{
	if (good)
		return;
	errno = EPROTO;
	page_fail("a message", addr);
}

unsigned int page_manager(uint64_t addr)
{
	return (unsigned int)(addr / HOSTS_PAGE % page.nodes);
}

/* ---- the manager ---- */

static void ask_give(struct managed *m)
{
	const struct ask *a = m->first;
	struct link_wire w = { .addr = a->addr, .token = a->node, .value = a->write };
	bool has = m->readers >> a->node & 1;

	if (a->node == m->owner)
		link_send(a->node, PAGE_RIGHT, &w, NULL);
	else
		link_send(m->owner, has ? PAGE_GIVE_RIGHT : PAGE_GIVE, &w, NULL);
}

static void ask_begin(struct managed *m)
{
	const struct ask *a = m->first;
	struct link_wire w = { .addr = a->addr };

	m->drops = 0;
	for (unsigned int i = 0; a->write && i < page.nodes; i++)
		if (i != a->node && (m->readers | m->denied) >> i & 1) {
			m->drops++;
			link_send(i, PAGE_DROP, &w, NULL);
		}
	if (!m->drops)
		ask_give(m);
}

/* ---- pages that a node keeps for a while, with requests that wait ---- */

static struct {
	struct lock lock;
	struct ask *first, *last;	/* requests that were served, in the order of time */
	futex_t added;
} holds;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void hold_add(struct ask *a)
{
	a->next = NULL;
	a->until = now_ns() + HOLD_NS;
	lock_take(&holds.lock);
	if (holds.first)
		holds.last->next = a;
	else
		holds.first = a;
	holds.last = a;
	lock_give(&holds.lock);
	atomic_fetch_add(&holds.added, 1);
	futex_wake(&holds.added, 1);
}

static struct ask *hold_take(void)
{
	struct ask *a;

	lock_take(&holds.lock);
	a = holds.first;
	if (a)
		holds.first = a->next;
	lock_give(&holds.lock);
	return a;
}

static noreturn void *hold_main(void *arg)
{
	(void)arg;
	prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		uint32_t seen = atomic_load(&holds.added);
		struct ask *a = hold_take();
		struct link_wire w;
		struct timespec at;

		if (!a) {
			futex_wait(&holds.added, seen);
			continue;
		}
		at.tv_sec = (time_t)(a->until / 1000000000);
		at.tv_nsec = (long)(a->until % 1000000000);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		w = (struct link_wire){ .addr = a->addr };
		free(a);
		link_send(self_node, PAGE_NEXT, &w, NULL);
	}
}

/* ---- requests ---- */

static void manager_ask(unsigned int from, const struct link_wire *w)
{
	struct managed *m = &page.managed[page_number(w->addr)];
	struct ask *a = calloc(1, sizeof(*a));

	if (!a)
		page_fail("the manager", w->addr);
	*a = (struct ask){ .addr = w->addr, .node = (uint8_t)from, .write = w->value };
	if (m->first) {
		m->last->next = a;
		m->last = a;
		return;
	}
	m->first = m->last = a;
	ask_begin(m);
}

static void manager_done(const struct link_wire *w)
{
	struct managed *m = &page.managed[page_number(w->addr)];
	struct ask *a = m->first;

	page_check(a, w->addr);
	if (a->write)
		m->readers = m->denied = 0;
	if (w->value < 0)
		m->denied |= 1ull << a->node;
	else if (a->write)
		m->owner = a->node;
	else if (a->node != m->owner)
		m->readers |= 1ull << a->node;
	m->first = a->next;
	if (m->first)
		hold_add(a);
	else
		free(a);
}

/* ---- this node's pages; page.lock is held ---- */

static int page_ioctl(unsigned long request, void *arg)
{
	int ret;

	do {
		ret = ioctl(page.fd, request, arg);
	} while (ret && errno == EAGAIN);
	return ret;
}

static void page_wake(uint64_t addr)
{
	struct uffdio_range r = { addr, HOSTS_PAGE };

	page_ioctl(UFFDIO_WAKE, &r);
}

static void page_protect(uint64_t addr, bool protect)
{
	struct uffdio_writeprotect wp = {
		.range = { addr, HOSTS_PAGE },
		.mode = protect ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	if (page_ioctl(UFFDIO_WRITEPROTECT, &wp))
		page_fail("protection", addr);
}

/* Make a page of zeroes if the page is missing. This wakes threads that wait for it. */
static void page_zero(uint64_t addr)
{
	struct uffdio_zeropage z = { .range = { addr, HOSTS_PAGE } };

	if (!page_ioctl(UFFDIO_ZEROPAGE, &z))
		return;
	if (errno != EEXIST)
		page_fail("the first use", addr);
	page_wake(addr);
}

static void page_copy(uint64_t addr, const void *bytes, bool write)
{
	struct uffdio_copy c = {
		.dst = addr, .src = (uintptr_t)bytes, .len = HOSTS_PAGE,
		.mode = write ? 0 : UFFDIO_COPY_MODE_WP,
	};

	if (page_ioctl(UFFDIO_COPY, &c))
		page_fail("arrival", addr);
}

/*
 * Copy the bytes of a page. Return false if its protection does not let this node read it.
 * process_vm_readv(2) reports this, and the program may change the protection at any time.
 */
static bool page_read(void *to, uint64_t addr)
{
	struct iovec local = { to, HOSTS_PAGE }, remote = { (void *)(uintptr_t)addr, HOSTS_PAGE };

	if (process_vm_readv((pid_t)syscall(SYS_getpid), &local, 1, &remote, 1, 0) == HOSTS_PAGE)
		return true;
	if (errno == EFAULT)
		return false;
	memcpy(to, (const void *)(uintptr_t)addr, HOSTS_PAGE);	/* a filter refuses the call */
	return true;
}

/* Let threads of this node access a page, or none. */
static void page_allow(uint64_t addr, bool allow)
{
	if (REAL(mprotect)((void *)(uintptr_t)addr, HOSTS_PAGE,
			   allow ? PROT_READ | PROT_WRITE : PROT_NONE))
		page_fail("protection", addr);
}

static void page_drop(uint64_t addr)
{
	if (REAL(madvise)((void *)(uintptr_t)addr, HOSTS_PAGE, MADV_DONTNEED))
		page_fail("removal", addr);
}

/* ---- messages to this node ---- */

static void view_drop(const struct link_wire *w)
{
	struct view *v = &page.views[page_number(w->addr)];

	lock_take(&page.lock);
	page_drop(w->addr);
	if (v->right == RIGHT_DENIED)
		page_allow(w->addr, true);
	v->right = RIGHT_NONE;
	lock_give(&page.lock);
	link_send(page_manager(w->addr), PAGE_DROPPED, w, NULL);
}

/* Pass a page on to node @w->token. */
static void view_give(const struct link_wire *w, bool bytes)
{
	struct view *v = &page.views[page_number(w->addr)];
	static char copy[HOSTS_PAGE];	/* handlers run one at a time */
	enum link_op answer = bytes ? PAGE_DATA : PAGE_RIGHT;

	lock_take(&page.lock);
	if (v->right == RIGHT_FIRST)
		page_zero(w->addr);
	if (v->right != RIGHT_READ)
		page_protect(w->addr, true);
	v->right = RIGHT_READ;
	if (bytes && !page_read(copy, w->addr)) {
		answer = PAGE_DENIED;
	} else if (w->value) {
		page_drop(w->addr);
		v->right = RIGHT_NONE;
	}
	lock_give(&page.lock);
	link_send(w->token, answer, w, answer == PAGE_DATA ? copy : NULL);
}

/* Deny the access to a page to the threads that wait for it. */
static void view_deny(const struct link_wire *w)
{
	struct view *v = &page.views[page_number(w->addr)];
	struct link_wire done = *w;

	lock_take(&page.lock);
	page_allow(w->addr, false);
	page_wake(w->addr);
	v->right = RIGHT_DENIED;
	v->asked = false;
	lock_give(&page.lock);
	done.value = -1;
	link_send(page_manager(w->addr), PAGE_DONE, &done, NULL);
}

/* Take the right that this node has asked for. @bytes: NULL: the copy of this node is valid. */
static void view_take(const struct link_wire *w, const void *bytes)
{
	struct view *v = &page.views[page_number(w->addr)];

	lock_take(&page.lock);
	if (bytes)
		page_copy(w->addr, bytes, w->value);
	else if (w->value && v->right == RIGHT_READ)
		page_protect(w->addr, false);
	else
		page_wake(w->addr);
	if (bytes || w->value)
		v->right = w->value ? RIGHT_WRITE : RIGHT_READ;
	v->asked = false;
	lock_give(&page.lock);
	link_send(page_manager(w->addr), PAGE_DONE, w, NULL);
}

void page_handle(unsigned int from, enum link_op op, const struct link_wire *w,
		 const void *bytes)
{
	struct managed *m;

	page_check(!(w->addr % HOSTS_PAGE) && w->token < page.nodes && !bytes == (op != PAGE_DATA),
		   w->addr);
	switch (op) {
	case PAGE_ASK:
		manager_ask(from, w);
		break;
	case PAGE_DROP:
		view_drop(w);
		break;
	case PAGE_DROPPED:
		m = &page.managed[page_number(w->addr)];
		page_check(m->first && m->drops, w->addr);
		if (!--m->drops)
			ask_give(m);
		break;
	case PAGE_GIVE:
	case PAGE_GIVE_RIGHT:
		view_give(w, op == PAGE_GIVE);
		break;
	case PAGE_DATA:
	case PAGE_RIGHT:
		view_take(w, bytes);
		break;
	case PAGE_DENIED:
		view_deny(w);
		break;
	case PAGE_NEXT:
		m = &page.managed[page_number(w->addr)];
		page_check(from == self_node && m->first, w->addr);
		ask_begin(m);
		break;
	default:
		manager_done(w);
	}
}

/* ---- faults ---- */

static void fault_handle(uint64_t addr, bool write)
{
	struct link_wire w = { .addr = addr & ~(uint64_t)(HOSTS_PAGE - 1), .value = write };
	struct view *v = &page.views[page_number(w.addr)];
	bool ask = false;

	lock_take(&page.lock);
	if (v->right == RIGHT_FIRST && !self_node)
		page_zero(w.addr);
	else if (v->right == RIGHT_WRITE || (v->right == RIGHT_READ && !write))
		page_wake(w.addr);	/* the page has arrived meanwhile */
	else
		ask = !v->asked;
	v->asked |= ask;
	lock_give(&page.lock);
	if (ask)
		link_send(page_manager(w.addr), PAGE_ASK, &w, NULL);
}

static noreturn void *fault_main(void *arg)
{
	struct uffd_msg m;

	(void)arg;
	for (;;) {
		if (read(page.fd, &m, sizeof(m)) != sizeof(m) ||
		    m.event != UFFD_EVENT_PAGEFAULT)
			continue;
		fault_handle(m.arg.pagefault.address,
			     m.arg.pagefault.flags &
				     (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP));
	}
}

/* ---- start ---- */

static int faults_open(void)
{
	struct uffdio_api api = { .api = UFFD_API,
				  .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP };

	page.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (page.fd < 0)
		return -errno;
	return ioctl(page.fd, UFFDIO_API, &api) ? -errno : 0;
}

static int piece_register(uint64_t from, uint64_t to, size_t *pages)
{
	struct uffdio_register r = {
		.range = { from, to - from },
		.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP,
	};

	page.pieces[page.pieces_n].from = from;
	page.pieces[page.pieces_n].to = to;
	page.pieces[page.pieces_n++].first = *pages;
	*pages += (to - from) / HOSTS_PAGE;
	return ioctl(page.fd, UFFDIO_REGISTER, &r) ? -errno : 0;
}

static void *table_new(size_t n, size_t size)
{
	void *p = REAL(mmap)(NULL, n * size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Give a piece private anonymous memory: node 0 keeps the contents, other nodes ask for them. */
static int piece_replace(char *from, size_t len)
{
	const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *copy = REAL(mmap)(NULL, len, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (copy == MAP_FAILED)
		return -errno;
	if (!self_node)
		memcpy(copy, from, len);
	REAL(madvise)(copy, len, MADV_NOHUGEPAGE);
	return REAL(mremap)(copy, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, from) == MAP_FAILED ?
		       -errno : 0;
}

static int memory_replace(const struct span_wire *s)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < s->pieces_n; i++)
		ret = piece_replace(s->pieces[i].from,
				    (size_t)(s->pieces[i].to - s->pieces[i].from));
	if (ret || !self_node)
		return ret;
	if (REAL(mmap)(GLOBAL_BASE, GLOBAL_LEN, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) ==
	    MAP_FAILED)
		return -errno;
	REAL(madvise)(GLOBAL_BASE, GLOBAL_LEN, MADV_NOHUGEPAGE);
	return 0;
}

/*
 * Begin to share the memory. Context: the initial thread; on node 0 the thread that spans waits.
 * Until all nodes have returned from this function, no thread touches global memory.
 */
int page_open(const struct span_wire *s)
{
	size_t pages = 0;
	int ret = faults_open();

	page.nodes = link_nodes();
	ret = ret ? ret : memory_replace(s);
	ret = ret ? ret : piece_register((uintptr_t)GLOBAL_BASE, (uintptr_t)GLOBAL_END, &pages);
	for (uint32_t i = 0; !ret && i < s->pieces_n; i++)
		ret = piece_register((uintptr_t)s->pieces[i].from,
				     (uintptr_t)s->pieces[i].to, &pages);
	if (ret)
		return ret;
	page.views = table_new(pages, sizeof(*page.views));
	page.managed = table_new(pages, sizeof(*page.managed));
	if (!page.views || !page.managed)
		return -ENOMEM;
	return quiet_start(fault_main) && quiet_start(hold_main) ? 0 : -EAGAIN;
}
