/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Options of `sci run`. */
#ifndef LIBSCI_TOOLS_RUN_H
#define LIBSCI_TOOLS_RUN_H

#include "tool.h"

struct run_options {
	const char *cluster;
	bool keep_name;
	uint64_t ranks;			/* 0: run one program as a node */
	uint64_t nodes;
	const char *hosts;
	const char *net;
	uint64_t clusters, gateways;
	const char *bind;
	const char *preload;		/* LD_PRELOAD of the ranks, which are nodes of --threads */
	bool failover, tag, keep, pmix, agent, threads;
};

/* Run a job; see launch.h. Return: the exit status of the job. */
int tool_launch(const struct tool_command *self, const struct run_options *o, char **argv);

#endif
