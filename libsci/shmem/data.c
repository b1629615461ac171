// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Static variables of the program as symmetric memory.
 *
 * The variables are in the writable segment of the executable, after the pages that become
 * read-only when relocation is done. All PEs run the same executable: a variable has the same
 * offset in the segment on all PEs, wherever the segment is mapped. The variables of libc and
 * libsci are in the segments of these libraries.
 */

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

#include "libsci/shmem/internal.h"

struct range {
	uintptr_t start;
	uintptr_t end;
};

static struct range data;
static struct sci_team_view view;

/* Find the writable segment of the program, which dl_iterate_phdr() reports first. */
static int data_find(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), relro = 0;

	(void)size;
	(void)arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + p->p_vaddr, end = start + p->p_memsz;

		if (p->p_type == PT_GNU_RELRO)
			relro = end & ~(page - 1);
		if (p->p_type == PT_LOAD && p->p_flags & PF_W) {
			data.start = start & ~(page - 1);
			data.end = (end + page - 1) & ~(page - 1);
		}
	}
	if (relro > data.start)
		data.start = relro;
	return 1;
}

static int view_make(struct sci_team *team)
{
	size_t n = (size_t)sci_team_size(team), *shift = malloc(n * sizeof(*shift));

	if (!shift)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		void *p = sci_team_ptr(team, (void *)data.start, (int)i);

		shift[i] = p ? (size_t)p - data.start : 1;
	}
	view = (struct sci_team_view){ data.start, data.end - data.start, n, shift };
	return 0;
}

int data_register(struct sci_team *team)
{
	int err;

	dl_iterate_phdr(data_find, NULL);
	if (data.start >= data.end)
		return 0;
	err = sci_team_register(team, (void *)data.start, data.end - data.start);
	return err ? err : view_make(team);
}

void data_exit(void)
{
	free((void *)view.shift);
	view = (struct sci_team_view){ 0 };
}

const struct sci_team_view *data_view(void)
{
	return &view;
}

bool data_holds(const void *addr)
{
	return (uintptr_t)addr - data.start < data.end - data.start;
}
