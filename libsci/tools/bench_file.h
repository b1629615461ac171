/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
#ifndef LIBSCI_TOOLS_BENCH_FILE_H
#define LIBSCI_TOOLS_BENCH_FILE_H

#include "bench.h"
#include "outfile.h"

/* The functions of outfile.h for a path. After an error they print a message. */
int bench_file_open(struct outfile *o, const char *path);
int bench_file_commit(struct outfile *o, const char *path);

#endif
