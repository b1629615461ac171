/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* A file that gets its name when it is complete: an incomplete file never stays behind. */
#ifndef LIBSCI_TOOLS_OUTFILE_H
#define LIBSCI_TOOLS_OUTFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct outfile {
	int fd;
	int dir;
	char name[NAME_MAX + 1];	/* "": standard output */
	bool replace;
	bool named;			/* the file has a temporary name */
};

/*
 * The functions of an outfile return 0 or -errno. -EEXIST: the file exists already, or cannot be
 * replaced.
 * @dir: directory; @name: name without a slash, NULL: standard output; @replace: replace a regular
 * file at the end.
 */
int outfile_open(struct outfile *o, const char *dir, const char *name,
		 bool replace);

/*
 * Reserve space, if the file system can. The function then reports -ENOSPC, -EFBIG and other
 * errors, which outfile_commit() would report otherwise.
 */
int outfile_reserve(struct outfile *o, uint64_t size);
int outfile_write(struct outfile *o, const void *data, size_t len);

/* Give the file its name. */
int outfile_commit(struct outfile *o, mode_t mode);

/* Close the file. Call outfile_close() after each outfile_open(). */
void outfile_close(struct outfile *o);

#endif
