// SPDX-License-Identifier: GPL-2.0-or-later
/* Copyright (C) 2026 The libsci authors */
/*
 * Direct windows: BAR 2 is a range of addresses in which pages of the peers' main
 * memory are mapped.
 *
 * When an ATT entry becomes valid, QEMU looks its pages up in the export table and the lists
 * of pages in the exporter's memory. These tables are hostile input: QEMU checks addresses
 * against the exporter's memory, which is sealed against shrinking, and each look-up has a
 * fixed number of steps.
 *
 * Pages have 4096 bytes. The last page of an export is mapped whole. The window has private
 * zeros where no memory is mapped, and a private mapping where stores are not allowed, because
 * a guest's store must not kill QEMU. Private pages keep stored bytes until the guest writes the
 * entry again. A private mapping without a store shows the exporter's page.
 *
 * A store to a missing node, or to pages that the host cannot map, must not get lost without an
 * error: a barrier of the guest tests whether a page of such an entry has been touched.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "exec/address-spaces.h"
#include "hw/boards.h"
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "qemu/rcu.h"
#include <linux/magic.h>
#include <sys/vfs.h>

#include "sci-pci.h"

#define PAGE		SCI_PCI_PAGE
#define LENGTH_MAX	(1ull << 32)
#define NOTHING		UINT64_MAX
/* A page inside of an export, but outside the exporter's memory that can be mapped. */
#define UNMAPPABLE	(UINT64_MAX - 1)
/* Time for the peers to unmap an export, if the card has lost the daemon. */
#define GRACE_MS	1000

/* bits of an entry of /proc/self/pagemap */
#define PAGEMAP_PRESENT	(1ull << 63)
#define PAGEMAP_SWAPPED	(1ull << 62)

#ifndef F_GET_SEALS
#define F_GET_SEALS	1034
#define F_SEAL_SHRINK	0x0002
#endif

/**
 * struct sci_peer - a node whose memory may be in the window
 * @view: map of the node's main memory, from which tables are read
 * @base: address of the export table
 * @entries: number of entries of the export table; 0: the node has none
 */
struct sci_peer {
	QTAILQ_ENTRY(sci_peer) next;
	uint32_t node;
	int fd;
	unsigned int ranges;
	struct {
		uint64_t address;
		uint64_t size;
		uint64_t offset;
		const uint8_t *view;
	} range[FABRIC_RANGES];
	uint64_t base;
	uint32_t entries;
};

/* An export of a peer, as the peer's export table describes it. */
struct export {
	uint64_t length;
	uint64_t root;
	bool writable;
};

/* ---- main memory of nodes ---- */

static void peer_free(struct sci_peer *p)
{
	unsigned int i;

	for (i = 0; i < p->ranges; i++)
		if (p->range[i].view)
			munmap((void *)p->range[i].view, p->range[i].size);
	if (p->fd >= 0)
		close(p->fd);
	g_free(p);
}

/* Make a peer, which owns @fd. Return NULL if the peer's memory cannot be mapped safely. */
static struct sci_peer *peer_new(const struct frame_attach *attach, int fd)
{
	struct sci_peer *p = g_new0(struct sci_peer, 1);
	unsigned int i;
	struct statfs fs;
	struct stat st;
	int seals;

	p->node = attach->head.node;
	p->fd = fd;
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) ||
	    fstatfs(fd, &fs) || fs.f_type == HUGETLBFS_MAGIC || attach->ranges > FABRIC_RANGES)
		goto bad;
	for (i = 0; i < attach->ranges; i++) {
		uint64_t address = attach->range[i].address;
		uint64_t size = attach->range[i].size;
		uint64_t offset = attach->range[i].offset;
		void *view;

		if (!size || (address | size | offset) % PAGE ||
		    offset > st.st_size || size > st.st_size - offset ||
		    address > UINT64_MAX - size)
			goto bad;
		view = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, offset);
		if (view == MAP_FAILED)
			goto bad;
		p->range[i].address = address;
		p->range[i].size = size;
		p->range[i].offset = offset;
		p->range[i].view = view;
		p->ranges++;
	}
	return p;
bad:
	warn_report("sci-pci: the memory of node %u can't be mapped: it wants a sealed memfd of small pages",
		    p->node);
	peer_free(p);
	return NULL;
}

static struct sci_peer *peer_find(struct sci_window *w, uint32_t node)
{
	struct sci_peer *p;

	QTAILQ_FOREACH(p, &w->peers, next)
		if (p->node == node)
			break;
	return p;
}

/* Find the range that contains all @len bytes at a bus address. Return false without a range. */
static bool peer_range(const struct sci_peer *p, uint64_t address, uint64_t len,
		       unsigned int *range, uint64_t *within)
{
	unsigned int i;

	for (i = 0; i < p->ranges; i++) {
		if (address < p->range[i].address)
			continue;
		*within = address - p->range[i].address;
		if (*within <= p->range[i].size && len <= p->range[i].size - *within) {
			*range = i;
			return true;
		}
	}
	return false;
}

/* Read a number in @p's memory, or return NOTHING, which is no valid address. */
static uint64_t peer_read(const struct sci_peer *p, uint64_t address)
{
	unsigned int range;
	uint64_t within;

	if (address % sizeof(uint64_t) ||
	    !peer_range(p, address, sizeof(uint64_t), &range, &within))
		return NOTHING;
	return le64_to_cpu(qatomic_read__nocheck((const uint64_t *)
						 (p->range[range].view + within)));
}

struct merge {
	const MemoryRegion *ram;
	struct frame_attach *attach;
	bool full;
};

/*
 * Add a piece of main memory to the ranges. x86 hides some memory below 1 MiB; pieces with the
 * same distance between address and offset are one range.
 */
static bool range_merge(Int128 start, Int128 len, const MemoryRegion *mr,
			hwaddr offset, void *opaque)
{
	struct merge *m = opaque;
	struct frame_attach *a = m->attach;
	uint64_t address = int128_get64(start), size = int128_get64(len);
	unsigned int i;

	if (mr != m->ram)
		return false;
	for (i = 0; i < a->ranges; i++)
		if (a->range[i].address - a->range[i].offset == address - offset) {
			a->range[i].size = address + size - a->range[i].address;
			return false;
		}
	if (i == FABRIC_RANGES) {
		m->full = true;
		return true;
	}
	a->range[i].address = address;
	a->range[i].offset = offset;
	a->range[i].size = size;
	a->ranges++;
	return false;
}

bool window_memory(struct sci_card *card, struct frame_attach *attach, int *fd,
		   Error **errp)
{
	MemoryRegion *ram = MACHINE(qdev_get_machine())->ram;
	struct merge m = { .ram = ram, .attach = attach };
	int seals;

	if (!ram || !ram->ram_block) {
		error_setg(errp, "sci-pci: data-path=direct needs main memory of one piece");
		return false;
	}
	*fd = memory_region_get_fd(ram);
	seals = *fd < 0 ? -1 : fcntl(*fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK) ||
	    !qemu_ram_is_shared(ram->ram_block) ||
	    qemu_ram_pagesize(ram->ram_block) != PAGE) {
		error_setg(errp, "sci-pci: data-path=direct needs main memory that can be shared");
		error_append_hint(errp, "-object memory-backend-memfd,id=ram,size=SIZE,share=on -machine memory-backend=ram\n");
		return false;
	}
	if (pci_device_iommu_address_space(&card->pci) != &address_space_memory) {
		error_setg(errp, "sci-pci: data-path=direct does not go with an IOMMU of the guest");
		return false;
	}
	WITH_RCU_READ_LOCK_GUARD() {
		flatview_for_each_range(address_space_to_flatview(&address_space_memory),
					range_merge, &m);
	}
	if (m.full) {
		error_setg(errp, "sci-pci: data-path=direct: main memory has more than %u ranges",
			   FABRIC_RANGES);
		return false;
	}
	return true;
}

/* ---- mappings in the window ---- */

static bool direct_map(struct sci_window *w, uint64_t at, uint64_t len, int flags,
		       int fd, uint64_t offset)
{
	return mmap(w->base + at, len, PROT_READ | PROT_WRITE,
		    flags | MAP_FIXED, fd, offset) != MAP_FAILED;
}

static bool zeros_map(struct sci_window *w, uint64_t at, uint64_t len)
{
	return direct_map(w, at, len, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void entry_set_lost(struct sci_window *w, uint32_t n, bool lost)
{
	w->lost += lost - w->shown[n].lost;
	w->shown[n].lost = lost;
}

/*
 * Map pages that only count: at the limit of vm.max_map_count no mmap() works, not even one that
 * replaces many mappings by one. Each of these mappings stays separate, because all have the same
 * offset in the file.
 */
static void spares_map(struct sci_window *w, int fd)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(w->spare); i++)
		w->spare[i] = mmap(NULL, PAGE, PROT_NONE, MAP_SHARED, fd, 0);
}

static void spares_unmap(struct sci_window *w)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(w->spare); i++)
		if (w->spare[i] && w->spare[i] != MAP_FAILED)
			munmap(w->spare[i], PAGE);
}

static bool window_map_zeros(struct sci_window *w)
{
	bool done = zeros_map(w, 0, w->size);

	if (done)
		return true;
	spares_unmap(w);
	done = zeros_map(w, 0, w->size);
	spares_map(w, QTAILQ_FIRST(&w->peers)->fd);
	return done;
}

/* Unmap all entries. They count as lost: their stores reach no node from now on. */
static void window_unmap(struct sci_card *card)
{
	struct sci_window *w = &card->window;
	uint32_t n;

	if (!window_map_zeros(w)) {
		error_report("sci-pci: node %u: the window can't be taken back: %s",
			     card->config.node, strerror(errno));
		abort();
	}
	for (n = 0; n < card->config.att_entries; n++) {
		if (w->shown[n].mapped)
			entry_set_lost(w, n, true);
		w->shown[n].mapped = false;
	}
}

static void entry_unmap(struct sci_card *card, uint32_t n)
{
	struct sci_window *w = &card->window;
	uint64_t size = card->config.att_page_size;

	if (!w->shown[n].mapped)
		return;
	w->shown[n].mapped = false;
	if (zeros_map(w, n * size, size))
		return;
	/*
	 * unmapping the entry would split a mapping, and there are too many mappings: unmap the
	 * window
	 */
	warn_report("sci-pci: node %u: %s: nothing is in the window any more",
		    card->config.node, strerror(errno));
	window_unmap(card);
}

/* Remove the mapping of an entry whose node does not exist, or whose pages cannot be mapped. */
static void entry_lose(struct sci_card *card, uint32_t n)
{
	entry_unmap(card, n);
	entry_set_lost(&card->window, n, true);
}

/* Call @how for each mapped entry that @match accepts. */
static void entries_unmap_if(struct sci_card *card,
			     void (*how)(struct sci_card *card, uint32_t n),
			     bool (*match)(struct sci_card *card, uint32_t n,
					   const void *what),
			     const void *what)
{
	uint32_t n;

	for (n = 0; n < card->config.att_entries; n++)
		if (card->window.shown[n].mapped && match(card, n, what))
			how(card, n);
}

static bool entry_is_of_node(struct sci_card *card, uint32_t n, const void *what)
{
	return card->window.shown[n].node == *(const uint32_t *)what;
}

static bool entry_is_of_other(struct sci_card *card, uint32_t n, const void *what)
{
	return card->window.shown[n].node != card->config.node;
}

static bool entry_is_of_export(struct sci_card *card, uint32_t n, const void *what)
{
	const struct shown *s = &card->window.shown[n], *same = what;

	return s->node == same->node && s->export_id == same->export_id;
}

/* Return the address of an export's entry, or NOTHING without a table that can be read. */
static uint64_t export_address(const struct sci_peer *p, uint16_t id)
{
	uint64_t within, at = p->base + (uint64_t)(id & (p->entries - 1)) *
		SCI_PCI_EXPORT_ENTRY_SIZE;
	unsigned int range;

	if (!p->entries || p->base == NOTHING ||
	    !peer_range(p, at, SCI_PCI_EXPORT_ENTRY_SIZE, &range, &within))
		return NOTHING;
	return at;
}

/* Read the export @id from its entry at @at. Return false if there is no such export. */
static bool export_read(const struct sci_peer *p, uint64_t at, uint16_t id, struct export *x)
{
	uint64_t head = peer_read(p, at);

	x->length = peer_read(p, at + SCI_PCI_EXPORT_LENGTH);
	x->root = peer_read(p, at + SCI_PCI_EXPORT_ROOT);
	x->writable = head >> 16 & SCI_PCI_EXPORT_WRITE;
	return head != NOTHING && (uint16_t)head == id &&
	       (head >> 16 & SCI_PCI_EXPORT_VALID) &&
	       (head >> 16 & SCI_PCI_EXPORT_READ) && x->length <= LENGTH_MAX;
}

/*
 * Return the offset in @p's descriptor of the page that contains @offset; NOTHING: beyond the end
 * of the export; UNMAPPABLE.
 */
static uint64_t page_find(const struct sci_peer *p, const struct export *x,
			  uint64_t offset)
{
	uint64_t page = offset / PAGE, leaf, address, within;
	unsigned int range;

	if (offset >= x->length)
		return NOTHING;
	leaf = peer_read(p, x->root + page / SCI_PCI_LEAF_PAGES * sizeof(uint64_t));
	if (leaf % PAGE)
		return UNMAPPABLE;
	address = peer_read(p, leaf + page % SCI_PCI_LEAF_PAGES * sizeof(uint64_t));
	if (address % PAGE || !peer_range(p, address, PAGE, &range, &within))
		return UNMAPPABLE;
	return p->range[range].offset + within;
}

/*
 * Map the @len bytes from @offset on at @at, in as few pieces as possible. Return false and set
 * errno, which is EFAULT for an unmappable page.
 */
static bool export_map(struct sci_window *w, const struct sci_peer *p,
		       const struct export *x, uint64_t at, uint64_t offset,
		       uint64_t len, int flags)
{
	uint64_t first = page_find(p, x, offset), next, done, run;

	for (done = 0; done < len; done += run, first = next) {
		if (first == UNMAPPABLE) {
			errno = EFAULT;
			return false;
		}
		for (run = PAGE, next = NOTHING; done + run < len; run += PAGE) {
			next = page_find(p, x, offset + done + run);
			if (next != (first == NOTHING ? NOTHING : first + run))
				break;
		}
		if (first == NOTHING ? !zeros_map(w, at + done, run) :
				       !direct_map(w, at + done, run, flags, p->fd, first))
			return false;
	}
	return true;
}

void window_att_changed(struct sci_card *card, uint32_t n)
{
	const uint16_t others = SCI_PCI_ATT_LOCK | SCI_PCI_ATT_INTERRUPT;
	struct sci_window *w = &card->window;
	uint64_t size = card->config.att_page_size, at;
	struct sim_att_entry e;
	struct sci_peer *p;
	struct export x;
	int flags;

	if (n >= card->config.att_entries || !card->adapter)
		return;
	sim_att_get(card->adapter, n, &e);
	if (e.node == card->config.node)
		sim_export_table(card->adapter, &QTAILQ_FIRST(&w->peers)->base,
				 &QTAILQ_FIRST(&w->peers)->entries);
	if (!(e.attr & SCI_PCI_ATT_VALID) || e.attr & others || e.offset % size ||
	    (e.node == card->config.node && e.attr & SCI_PCI_ATT_NO_LOOPBACK)) {
		entry_unmap(card, n);
		entry_set_lost(w, n, false);
		/* the next user of the entry must not read stored bytes */
		madvise(w->base + n * size, size, MADV_DONTNEED);
		return;
	}
	p = peer_find(w, e.node);
	at = p ? export_address(p, e.export_id) : NOTHING;
	if (at == NOTHING) {
		entry_lose(card, n);
		return;
	}
	if (!export_read(p, at, e.export_id, &x)) {
		entry_unmap(card, n);
		return;
	}
	flags = x.writable && !(e.attr & SCI_PCI_ATT_READ_ONLY) ? MAP_SHARED :
								  MAP_PRIVATE;
	w->shown[n].mapped = true;
	w->shown[n].node = e.node;
	w->shown[n].export_id = e.export_id;
	if (!export_map(w, p, &x, n * size, e.offset, size, flags)) {
		if (errno != EFAULT)
			warn_report_once("sci-pci: pages can't be mapped: %s: see vm.max_map_count",
					 strerror(errno));
		entry_lose(card, n);
	}
}

/* ---- stores that reach no node ---- */

/* Return whether a page of the entry was touched. Touched pages become zeros again. */
static bool entry_was_touched(struct sci_card *card, uint32_t n)
{
	struct sci_window *w = &card->window;
	uint64_t size = card->config.att_page_size, i;
	uint8_t *at = w->base + n * size;
	uint64_t pages = size / PAGE;

	if (pread(w->pagemap, w->pages, pages * sizeof(*w->pages),
		  (uintptr_t)at / PAGE * sizeof(*w->pages)) !=
	    pages * sizeof(*w->pages))
		return true;
	for (i = 0; i < pages; i++)
		if (w->pages[i] & (PAGEMAP_PRESENT | PAGEMAP_SWAPPED))
			break;
	if (i == pages)
		return false;
	/* clear the pages before the report, so that the next test sees later stores */
	madvise(at, size, MADV_DONTNEED);
	return true;
}

void window_check(struct sci_card *card)
{
	struct sci_window *w = &card->window;
	uint32_t n;

	for (n = 0; w->lost && n < card->config.att_entries; n++) {
		if (!w->shown[n].lost)
			continue;
		/* a mapping has replaced the pages, which may have had stores: report the entry */
		if (w->shown[n].mapped)
			entry_set_lost(w, n, false);
		else if (!entry_was_touched(card, n))
			continue;
		sim_adapter_unreachable(card->adapter, n);
	}
}

/* ---- export tables and invalidations ---- */

void window_exports(struct sci_card *card)
{
	struct sci_window *w = &card->window;
	struct frame_exports f = {
		.head = { .kind = FRAME_EXPORTS, .node = card->config.node },
	};

	sim_export_table(card->adapter, &f.base, &f.entries);
	if (f.base == w->told_base && f.entries == w->told_entries)
		return;
	w->told_base = f.base;
	w->told_entries = f.entries;
	link_send(card, &f, sizeof(f));
}

static void direct_invalidated(void *opaque)
{
	struct sci_card *card = opaque;
	struct sci_window *w = &card->window;

	if (!w->invalidating || !card_begin(card))
		return;
	w->invalidating = false;
	timer_del(w->done);
	sim_adapter_invalidated(card->adapter, w->invalid);
	card_end(card);
}

void window_invalidate(struct sci_card *card, uint16_t export_id)
{
	struct sci_window *w = &card->window;
	struct shown own = { .node = card->config.node, .export_id = export_id };
	struct frame f = {
		.kind = FRAME_INVALIDATE,
		.node = card->config.node,
		.value = export_id,
	};

	entries_unmap_if(card, entry_unmap, entry_is_of_export, &own);
	w->invalidating = true;
	w->invalid = export_id;
	timer_del(w->done);
	if (card->link.attached)
		link_send(card, &f, sizeof(f));	/* this may end the connection */
	else
		timer_mod_ns(w->done, w->grace);
}

/* ---- the daemon ---- */

void window_attached(struct sci_card *card)
{
	/* the daemon has no export table of a new connection */
	card->window.told_base = 0;
	card->window.told_entries = 0;
	window_exports(card);
}

void window_detached(struct sci_card *card)
{
	struct sci_window *w = &card->window;
	struct sci_peer *p, *next;

	if (!w->base)
		return;
	entries_unmap_if(card, entry_lose, entry_is_of_other, NULL);
	QTAILQ_FOREACH_SAFE(p, &w->peers, next, next) {
		if (p->node == card->config.node)
			continue;
		QTAILQ_REMOVE(&w->peers, p, next);
		peer_free(p);
	}
	/*
	 * Peers lose the daemon or receive PEER_GONE, and unmap the memory of this node: also peers
	 * whose FRAME_PEER this node has not read yet.
	 */
	if (card->link.attached)
		w->grace = qemu_clock_get_ns(QEMU_CLOCK_REALTIME) + GRACE_MS * SCALE_MS;
	if (w->invalidating)
		timer_mod_ns(w->done, w->grace);
}

static void peer_forget(struct sci_card *card, uint32_t node)
{
	struct sci_window *w = &card->window;
	struct sci_peer *p = peer_find(w, node);

	if (!p)
		return;
	entries_unmap_if(card, entry_lose, entry_is_of_node, &node);
	QTAILQ_REMOVE(&w->peers, p, next);
	peer_free(p);
}

static void peer_receive(struct sci_card *card, const struct frame_attach *attach, int fd)
{
	struct sci_peer *p;

	peer_forget(card, attach->head.node);
	p = peer_new(attach, fd);
	if (p)
		QTAILQ_INSERT_TAIL(&card->window.peers, p, next);
}

/*
 * Map the entries of a node again: they may have become valid before its export table arrived.
 */
static void node_map_entries(struct sci_card *card, uint32_t node)
{
	struct sim_att_entry e;
	uint32_t n;

	for (n = 0; card->adapter && n < card->config.att_entries; n++) {
		sim_att_get(card->adapter, n, &e);
		if (e.attr & SCI_PCI_ATT_VALID && e.node == node)
			window_att_changed(card, n);
	}
}

static void exports_receive(struct sci_card *card, const struct frame_exports *f)
{
	struct sci_peer *p = peer_find(&card->window, f->head.node);
	bool good = is_power_of_2(f->entries) && f->entries <= 4096 && !(f->base % PAGE);

	if (!p)
		return;
	p->base = f->base;
	p->entries = good ? f->entries : 0;
	node_map_entries(card, p->node);
}

static void exports_invalidate(struct sci_card *card, const struct frame *f)
{
	struct shown gone = { .node = f->node, .export_id = f->value };
	struct frame answer = *f;

	entries_unmap_if(card, entry_unmap, entry_is_of_export, &gone);
	answer.kind = FRAME_INVALIDATED;
	link_send(card, &answer, sizeof(answer));
}

void window_frame(struct sci_card *card, const void *frame, size_t size, int fd)
{
	const struct frame *f = frame;
	bool own = f->node == card->config.node;

	if (f->kind == FRAME_PEER && size == sizeof(struct frame_attach) && !own &&
	    fd >= 0) {
		peer_receive(card, frame, fd);
		return;
	}
	if (fd >= 0)
		close(fd);
	if (f->kind == FRAME_PEER_GONE && !own)
		peer_forget(card, f->node);
	else if (f->kind == FRAME_EXPORTS && size == sizeof(struct frame_exports) &&
		 !own)
		exports_receive(card, frame);
	else if (f->kind == FRAME_INVALIDATE && !own)
		exports_invalidate(card, f);
	else if (f->kind == FRAME_INVALIDATED && f->value == card->window.invalid)
		direct_invalidated(card);
}

/* ---- begin and end ---- */

bool window_init(struct sci_card *card, Error **errp)
{
	struct sci_window *w = &card->window;
	struct frame_attach attach = { .head.node = card->config.node };
	struct sci_peer *own;
	int fd;

	if (qemu_real_host_page_size() != PAGE) {
		error_setg(errp, "sci-pci: data-path=direct needs a host with pages of %u bytes",
			   PAGE);
		return false;
	}
	if (!window_memory(card, &attach, &fd, errp))
		return false;
	QTAILQ_INIT(&w->peers);
	w->pagemap = -1;
	w->size = (uint64_t)card->config.att_entries * card->config.att_page_size;
	w->base = mmap(NULL, w->size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w->base == MAP_FAILED) {
		w->base = NULL;
		error_setg_errno(errp, errno, "sci-pci: no room for the window");
		return false;
	}
	w->pages = g_new(uint64_t, card->config.att_page_size / PAGE);
	w->shown = g_new0(struct shown, card->config.att_entries);
	w->done = timer_new_ns(QEMU_CLOCK_REALTIME, direct_invalidated, card);
	w->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (w->pagemap < 0) {
		error_setg_errno(errp, errno, "sci-pci: /proc/self/pagemap");
		return false;
	}
	own = peer_new(&attach, dup(fd));
	if (!own) {
		error_setg(errp, "sci-pci: no way to own memory");
		return false;
	}
	QTAILQ_INSERT_HEAD(&w->peers, own, next);
	spares_map(w, own->fd);
	return true;
}

void window_exit(struct sci_card *card)
{
	struct sci_window *w = &card->window;
	struct sci_peer *p, *next;

	if (!w->base)
		return;
	timer_free(g_steal_pointer(&w->done));
	window_unmap(card);
	QTAILQ_FOREACH_SAFE(p, &w->peers, next, next) {
		QTAILQ_REMOVE(&w->peers, p, next);
		peer_free(p);
	}
}

/* Free the window, once no CPU can access it. */
void window_free(struct sci_card *card)
{
	struct sci_window *w = &card->window;

	if (w->base) {
		spares_unmap(w);
		munmap(w->base, w->size);
		close(w->pagemap);
	}
	g_free(w->pages);
	g_free(w->shown);
}
