/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Files and devices with a pool, for the subcommands of `sci pool`. */
#ifndef LIBSCI_TOOLS_POOL_FILE_H
#define LIBSCI_TOOLS_POOL_FILE_H

#include "tool.h"

/**
 * struct pool_file - a pool that is mapped
 * @path: path of the file or the device
 * @fd: descriptor of @path, or -1
 * @mem: the mapped memory, or NULL
 * @size: length of @mem in bytes
 */
struct pool_file {
	const char *path;
	int fd;
	void *mem;
	uint64_t size;
};

/*
 * Map a file or a device. @create: bytes of a new file; 0: the file must exist. Return: TOOL_OK,
 * or TOOL_FAILED after a message; in both cases pool_file_close() frees @f.
 */
int pool_file_open(struct pool_file *f, const char *path, bool write, uint64_t create);
void pool_file_close(struct pool_file *f);

/* Print why pool_open() has failed with -@err. Return: TOOL_FAILED. */
int pool_open_error(const struct pool_file *f, int err);

int pool_run_serve(const struct tool_command *self, int argc, char **argv);

#endif
