// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * With SCI_VM_TRACE the library writes a line for each event of a page. With SCI_VM_REPORT it
 * prints at exit which pages of other members were mapped or copied most often, and the
 * variables in these pages.
 */
#include "libsci/vm/internal.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAMES_MAX	4u		/* variables named for one page */

/**
 * vm_trace_open() - begin a trace if SCI_VM_TRACE names a file
 *
 * The function appends "." and the rank to the name. Return: 0; -errno: the file cannot be opened;
 * -EINVAL: SCI_VM_REPORT is no number from 0 to VM_HOT_MAX.
 */
int vm_trace_open(struct sci_vm *vm)
{
	const char *name = getenv("SCI_VM_TRACE"), *report = getenv("SCI_VM_REPORT");
	char path[4096], *end;
	long n;

	if (report && *report) {
		n = strtol(report, &end, 10);
		if (*end || n < 0 || n > (long)VM_HOT_MAX)
			return -EINVAL;
		vm->hot_max = (unsigned int)n;
	}
	if (!name || !*name)
		return 0;
	snprintf(path, sizeof(path), "%s.%d", name, vm->rank);
	vm->trace = fopen(path, "we");
	return vm->trace ? 0 : -errno;
}

void vm_trace_close(struct sci_vm *vm)
{
	if (vm->trace)
		fclose(vm->trace);
}

/* Write the line "seconds event address home". Context: vm->lock is held. */
void vm_trace(struct sci_vm *vm, const char *event, const void *addr, int home)
{
	struct timespec ts;

	if (!vm->trace)
		return;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	fprintf(vm->trace, "%ld.%09ld %s %p %d\n", (long)ts.tv_sec, ts.tv_nsec, event, addr,
		home);
}

/* ---- the report ---- */

/* Keep @h if it is one of the hottest pages so far. */
static void hot_insert(struct sci_vm *vm, const struct vm_hot *h)
{
	unsigned int i = vm->hot_n;

	if (i == vm->hot_max) {
		if (!i || vm->hot[i - 1].transfers >= h->transfers)
			return;
		i--;
	} else {
		vm->hot_n++;
	}
	for (; i && vm->hot[i - 1].transfers < h->transfers; i--)
		vm->hot[i] = vm->hot[i - 1];
	vm->hot[i] = *h;
}

/* Add the pages of a range to the report, before the range is freed. Context: vm->lock is held. */
void vm_report_range(struct sci_vm *vm, const struct vm_range *r)
{
	for (size_t i = 0; vm->hot_max && i < r->n; i++) {
		const struct vm_page *p = &r->pages[i];
		struct vm_hot h = {
			vm_page_addr(r, i), vm_page_size(r), atomic_load(&p->home),
			p->transfers, p->twins, p->invalidations,
		};

		if (p->transfers)
			hot_insert(vm, &h);
	}
}

/* An address, and the program or shared library that contains it. */
struct object {
	uintptr_t addr;
	uintptr_t bias;
	char path[4096];
};

static int object_find(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct object *o = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type != PT_LOAD ||
		    o->addr - (info->dlpi_addr + ph->p_vaddr) >= ph->p_memsz)
			continue;
		o->bias = info->dlpi_addr;
		snprintf(o->path, sizeof(o->path), "%s",
			 *info->dlpi_name ? info->dlpi_name : "/proc/self/exe");
		return 1;
	}
	return 0;
}

static bool section_fits(const ElfW(Shdr) *s, size_t len)
{
	return s->sh_offset <= len && s->sh_size <= len - s->sh_offset;
}

/* Print names of a symbol table's variables in [@from, @to). Return the number of variables. */
static unsigned int names_print(FILE *f, const uint8_t *file, size_t len,
				const ElfW(Shdr) *table, const ElfW(Shdr) *strings,
				uintptr_t from, uintptr_t to)
{
	const ElfW(Sym) *sym = (const void *)(file + table->sh_offset);
	unsigned int found = 0;

	if (!section_fits(table, len) || !section_fits(strings, len) || !strings->sh_size ||
	    file[strings->sh_offset + strings->sh_size - 1])
		return 0;
	for (size_t k = 0; k < table->sh_size / sizeof(*sym); k++) {
		if ((sym[k].st_info & 15) != STT_OBJECT || !sym[k].st_size ||
		    sym[k].st_value >= to || sym[k].st_value + sym[k].st_size <= from ||
		    sym[k].st_name >= strings->sh_size)
			continue;
		if (found++ < NAMES_MAX)
			fprintf(f, "%s%s", found > 1 ? ", " : "  ",
				(const char *)file + strings->sh_offset + sym[k].st_name);
	}
	if (found > NAMES_MAX)
		fprintf(f, " and %u more", found - NAMES_MAX);
	return found;
}

static void file_names(FILE *f, const uint8_t *file, size_t len, uintptr_t from, uintptr_t to)
{
	const ElfW(Ehdr) *e = (const void *)file;
	const ElfW(Shdr) *s = (const void *)(file + e->e_shoff);
	static const uint32_t tables[] = { SHT_SYMTAB, SHT_DYNSYM };

	if (memcmp(e->e_ident, ELFMAG, SELFMAG) || e->e_shoff > len || e->e_shoff % 8 ||
	    e->e_shnum > (len - e->e_shoff) / sizeof(*s))
		return;
	for (unsigned int t = 0; t < 2; t++)
		for (unsigned int i = 0; i < e->e_shnum; i++)
			if (s[i].sh_type == tables[t] && s[i].sh_link < e->e_shnum &&
			    names_print(f, file, len, &s[i], &s[s[i].sh_link], from, to))
				return;
}

static void hot_names(FILE *f, const struct vm_hot *h)
{
	struct object o = { .addr = (uintptr_t)h->addr };
	struct stat st;
	void *file;
	int fd;

	if (!dl_iterate_phdr(object_find, &o))
		return;
	fd = open(o.path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && (size_t)st.st_size > sizeof(ElfW(Ehdr))) {
		file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (file != MAP_FAILED) {
			file_names(f, file, (size_t)st.st_size, o.addr - o.bias,
				   o.addr - o.bias + h->len);
			munmap(file, (size_t)st.st_size);
		}
	}
	close(fd);
}

/* Print the report by one write. Context: no lock is held, and no other thread makes calls. */
void vm_report(struct sci_vm *vm)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f;

	for (size_t i = 0; i < vm->ranges_n; i++)
		vm_report_range(vm, vm->ranges[i]);
	if (!vm->hot_n)
		return;
	f = open_memstream(&text, &len);
	if (!f)
		return;
	fprintf(f, "sci-vm: rank %d: pages of others by transfers\n"
		"sci-vm: %4s %18s %4s %9s %6s %12s  variables\n", vm->rank, "rank", "page",
		"home", "transfers", "twins", "invalidated");
	for (unsigned int i = 0; i < vm->hot_n; i++) {
		const struct vm_hot *h = &vm->hot[i];

		fprintf(f, "sci-vm: %4d %18p %4d %9u %6u %12u", vm->rank, (void *)h->addr,
			h->home, h->transfers, h->twins, h->invalidations);
		hot_names(f, h);
		fputc('\n', f);
	}
	if (!fclose(f))
		fputs(text, stderr);
	free(text);
}
