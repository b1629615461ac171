// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include <stdio.h>
#include <string.h>

#include "tool.h"

static const struct tool_command commands[] = {
	{ "info", "[--json]",
	  "this machine: library, fabric, node, adapters", tool_info },
	{ "nodes", "[--json]",
	  "the nodes of the cluster", tool_nodes },
	{ "segments", "[--json]",
	  "the segments of the cluster", tool_segments },
	{ "counters", "[-a] [-w [-i SECONDS]] [--json] [sciN...]",
	  "counters of the adapters: errors, packets, triggers", tool_counters },
	{ "top", "[-i SECONDS] [-n COUNT] [--json]",
	  "threads, CPU time and page faults by node", tool_top },
	{ "run", "-n RANKS | NODE [OPTION...] [--] COMMAND [ARGUMENT...]",
	  "start a parallel program, or one as another node", tool_run },
	{ "ping", "[-c COUNT] [-s SIZE] NODE  |  sci ping --serve",
	  "see whether a node answers, and how fast", tool_ping },
	{ "send", "[-v] [--id N] FILE NODE",
	  "send a file to `sci recv` on another node", tool_send },
	{ "recv", "[-v] [--id N] [--force] [-o PATH | -d DIR]",
	  "receive a file", tool_recv },
	{ "bench", "[-s|-2|-r|-H|-m] [OPTION...]  |  sci bench --serve",
	  "measure messages between two processes", tool_bench },
	{ "tune", "[--output FILE] [OPTION...]",
	  "find the message layer's best parameters", tool_tune },
	{ "gateway", "[--node NODE] [--net SCI_NET] [FABRIC...]",
	  "pass messages on between clusters", tool_gateway },
	{ "pool", "format [OPTION...] FILE  |  sci pool show FILE  |  sci pool serve --socket PATH FILE",
	  "memory that several machines share, for sci_pool", tool_pool },
	{ "model", "[COMMAND [ARGUMENT...]]",
	  "the protocols on modelled hardware, in virtual time", tool_model },
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void main_print_help(FILE *out)
{
	size_t i;

	fputs("usage: sci COMMAND [OPTION...] [ARGUMENT...]\n\n", out);
	for (i = 0; i < N_COMMANDS; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].what);
	fputs("\n`sci COMMAND --help` says more; so does sci(1).\n", out);
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc < 2) {
		main_print_help(stderr);
		return TOOL_USAGE;
	}
	if (!strcmp(argv[1], "help") || !strcmp(argv[1], "--help") ||
	    !strcmp(argv[1], "-h")) {
		main_print_help(stdout);
		return tool_finish();
	}
	for (i = 0; i < N_COMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(&commands[i], argc - 1,
					       argv + 1);
	tool_error("no such command: %s (`sci help` lists them)", argv[1]);
	return TOOL_USAGE;
}
