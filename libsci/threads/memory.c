// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Memory of the program: private until the other nodes start, then shared at the same addresses. */

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "threads.h"

#define PAGE		((size_t)sysconf(_SC_PAGESIZE))
#define COPY_MAX	((size_t)64 << 20)	/* bytes that are copied at a time */

struct piece {
	char *from, *to;
	int prot;
	bool shared;			/* a shared mapping of the program, for example of a file */
};

static struct {
	int fd;
	off_t end;			/* file offset of the next piece that is not global */
	struct piece pieces[PIECES_MAX];
	unsigned int n;
	bool full;
} memory = { .fd = -1 };

/* Address ranges of the code of libsci.so and of libsci-vm.so. */
static struct {
	const char *from, *to;
} libsci[2];

/* ---- objects ---- */

/*
 * Libraries whose data stays private, by the beginning of the file name: the kernel or the dynamic
 * linker keeps state of one process in their data.
 */
static const char *const private_objects[] = {
	"ld-linux", "ld.so", "libc.so", "libpthread", "libdl.", "librt.", "libgcc_s", "libsci",
	"libnuma", "libpmix", "libasan", "libtsan", "libubsan", "linux-vdso",
};

/* Return true if @name begins with a name of @list, such as "libfoo.so:libbar". */
static bool object_listed(const char *name, const char *list)
{
	while (list && *list) {
		size_t n = strcspn(list, ":, ");

		if (n && !strncmp(name, list, n))
			return true;
		list += n;
		list += *list != '\0';
	}
	return false;
}

static bool object_is_private(const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	for (size_t i = 0; i < sizeof(private_objects) / sizeof(private_objects[0]); i++)
		if (!strncmp(name, private_objects[i], strlen(private_objects[i])))
			return true;
	return object_listed(name, getenv("SCI_THREADS_PRIVATE"));
}

static char *page_round_down(uintptr_t p)
{
	return (char *)(p & ~(PAGE - 1));
}

static char *page_round_up(uintptr_t p)
{
	return page_round_down(p + PAGE - 1);
}

static void piece_add(char *from, char *to, int prot, bool shared)
{
	if (from >= to)
		return;
	memory.full |= memory.n == PIECES_MAX;
	if (!memory.full)
		memory.pieces[memory.n++] = (struct piece){ from, to, prot, shared };
}

/*
 * Objects that came with libsci, by their numbers in the order of dl_iterate_phdr(). Only hosts.c
 * records them.
 */
static struct {
	unsigned int from, to;
} libsci_objects;

static int object_count(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)info;
	(void)size;
	++*(unsigned int *)arg;
	return 0;
}

void memory_libsci_loads(bool begin)
{
	unsigned int n = 0;

	dl_iterate_phdr(object_count, &n);
	libsci_objects.from = begin ? n : libsci_objects.from;
	libsci_objects.to = n;
}

bool memory_is_libsci_object(unsigned int i)
{
	return i >= libsci_objects.from && i < libsci_objects.to;
}

/*
 * Add the writable segments of a library to the pieces, without its RELRO part. @arg: the number of
 * the library
 */
static int object_add(struct dl_phdr_info *info, size_t size, void *arg)
{
	char *relro = NULL, *relro_end = NULL;
	unsigned int *number = arg;

	(void)size;
	if (memory_is_libsci_object((*number)++) || object_is_private(info->dlpi_name))
		return 0;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_GNU_RELRO)
			continue;
		relro = page_round_down(info->dlpi_addr + p->p_vaddr);
		relro_end = page_round_down(info->dlpi_addr + p->p_vaddr + p->p_memsz);
	}
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		char *from = page_round_down(info->dlpi_addr + p->p_vaddr);
		char *to = page_round_up(info->dlpi_addr + p->p_vaddr + p->p_memsz);

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_W))
			continue;
		if (relro >= from && relro < to) {
			piece_add(from, relro, PROT_READ | PROT_WRITE, false);
			from = relro_end;
		}
		piece_add(from, to, PROT_READ | PROT_WRITE, false);
	}
	return 0;
}

static void pieces_find(void)
{
	unsigned int number = 0;

	dl_iterate_phdr(object_add, &number);
}

bool memory_find_pieces(void)
{
	pieces_find();
	return !memory.full;
}

void memory_piece_add(char *from, char *to)
{
	piece_add(from, to, PROT_READ | PROT_WRITE, false);
}

bool futex_is_far(const futex_t *f)
{
	const char *p = (const char *)f;

	if (!hosts_on || !hosts_span_done)
		return false;
	if (is_global(p))
		return true;
	for (unsigned int i = 0; i < memory.n; i++)
		if (p >= memory.pieces[i].from && p < memory.pieces[i].to)
			return true;
	return false;
}

static int object_libsci(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *name = strrchr(info->dlpi_name, '/');
	bool vm;

	(void)size;
	(void)arg;
	if (!name || (strncmp(name, "/libsci.so", 10) && strncmp(name, "/libsci-vm.so", 13)))
		return 0;
	vm = name[7] == '-';
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_flags & PF_X) {
			libsci[vm].from = (const char *)info->dlpi_addr + p->p_vaddr;
			libsci[vm].to = libsci[vm].from + p->p_memsz;
		}
	}
	return 0;
}

void memory_find_libsci(void)
{
	dl_iterate_phdr(object_libsci, NULL);
}

bool memory_is_libsci(const void *code)
{
	return ((const char *)code >= libsci[0].from && (const char *)code < libsci[0].to) ||
	       ((const char *)code >= libsci[1].from && (const char *)code < libsci[1].to);
}

bool memory_piece(unsigned int i, const char **from, const char **to)
{
	if (i >= memory.n)
		return false;
	*from = memory.pieces[i].from;
	*to = memory.pieces[i].to;
	return true;
}

/* ---- private ---- */

bool memory_init(void)
{
	size_t len = GLOBAL_LEN;
	void *p = REAL(mmap)(GLOBAL_BASE, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (p != GLOBAL_BASE)
		return false;
	madvise(p, len, MADV_NOHUGEPAGE);
	memory_find_libsci();
	return true;
}

/* Discard the whole pages in a piece, so that they read as zeroes. */
void memory_discard(void *p, size_t len)
{
	int err = errno;

	if (hosts_on && world_spans())
		memset(p, 0, len);
	else if (REAL(madvise)(p, len, world_spans() ? MADV_REMOVE : MADV_DONTNEED))
		memset(p, 0, len);
	errno = err;
}

/* ---- from private to shared ---- */

/* Add the mappings in a used part of the global range to the pieces, with their protection. */
static void global_add(char *from, char *to)
{
	unsigned long a, b;
	char prot[5], line[512];
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %4s", &a, &b, prot) != 3)
			continue;
		if ((char *)a < to && (char *)b > from)
			piece_add((char *)a > from ? (char *)a : from,
				  (char *)b < to ? (char *)b : to,
				  (prot[0] == 'r' ? PROT_READ : 0) |
				  (prot[1] == 'w' ? PROT_WRITE : 0) |
				  (prot[2] == 'x' ? PROT_EXEC : 0), prot[3] == 's');
	}
	if (f)
		fclose(f);
}

/* Copy memory to the file at offset @at. Pages of zeroes stay holes of the file. */
static bool bytes_copy(const char *from, size_t len, off_t at)
{
	static const char zeroes[4096];
	char *to = REAL(mmap)(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, at);

	if (to == MAP_FAILED)
		return false;
	for (size_t i = 0; i < len; i += sizeof(zeroes))
		if (memcmp(from + i, zeroes, sizeof(zeroes)))
			memcpy(to + i, from + i, sizeof(zeroes));
	REAL(munmap)(to, len);
	return true;
}

static bool piece_share(const struct piece *p, off_t at)
{
	for (char *from = p->from; from < p->to; from += COPY_MAX) {
		size_t len = (size_t)(p->to - from) < COPY_MAX ? (size_t)(p->to - from) :
								 COPY_MAX;

		if (!(p->prot & PROT_READ) && REAL(mprotect)(from, len, PROT_READ | PROT_WRITE))
			return false;
		if (!bytes_copy(from, len, at + (from - p->from)))
			return false;
		if (REAL(mmap)(from, len, p->prot, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
			       memory.fd, at + (from - p->from)) == MAP_FAILED)
			return false;
	}
	return true;
}

/* Share a piece of global memory. The nodes that start later inherit the program's mappings. */
static bool global_share(const struct piece *p)
{
	if (!p->shared)
		return piece_share(p, p->from - GLOBAL_BASE);
	if (heap_has(&world->heap, p->from))
		heap_mark(&world->heap, p->from, (size_t)(p->to - p->from));
	return true;
}

/* Map an unused part of the global range to the file, without a copy. */
static bool object_share_rest(char *from, char *to)
{
	return from >= to ||
	       REAL(mmap)(from, (size_t)(to - from), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED | MAP_NORESERVE, memory.fd, from - GLOBAL_BASE) !=
			MAP_FAILED;
}

static bool pieces_share(void)
{
	char *done = GLOBAL_BASE;
	bool ok = true;

	for (unsigned int i = 0; ok && i < memory.n; i++) {
		struct piece *p = &memory.pieces[i];

		if (is_global(p->from)) {
			ok = object_share_rest(done, p->from) && global_share(p);
			done = p->to;
		} else {
			ok = piece_share(p, memory.end);
			memory.end += p->to - p->from;
		}
	}
	return ok && object_share_rest(done, GLOBAL_END);
}

/*
 * Make all memory of the program shared. Global memory has the order of its addresses in the file.
 * Sharing a piece cannot be undone. Context: no other thread of the program runs.
 */
bool memory_share(void)
{
	const struct heap *h = &world->heap;
	size_t units = h->top * sizeof(*h->units);

	memory.end = GLOBAL_LEN;
	memory.fd = memfd_create("sci-threads", MFD_CLOEXEC);
	if (memory.fd < 0 || ftruncate(memory.fd, memory.end + ((off_t)1 << 40))) {
		world_say("cannot share memory: %s", strerror(errno));
		return false;
	}
	pieces_find();
	global_add(GLOBAL_BASE, page_round_up((uintptr_t)(world + 1)));
	global_add(GLOBAL_UNITS, page_round_up((uintptr_t)GLOBAL_UNITS + units));
	global_add(GLOBAL_STACKS, GLOBAL_STACKS + world->slot_top * SLOT_SIZE);
	global_add(GLOBAL_HEAP, GLOBAL_HEAP + h->top * HEAP_UNIT);
	if (memory.full) {
		world_say("cannot share memory: more than %u pieces", PIECES_MAX);
		return false;
	}
	if (!pieces_share()) {
		world_say("cannot share memory: %s", strerror(errno));
		abort();
	}
	close(memory.fd);
	return true;
}
