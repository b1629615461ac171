// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* sci-model: the program that `sci model` executes. */
#include <stdio.h>
#include <string.h>

#include "sim/vtime/command.h"

static const struct command commands[] = {
	{ "tables", "[-P FOLDER] [-o DIR]",
	  "figures of the papers, of the model and of libsci (the default)",
	  tables_main },
	{ "pingpong", "PROFILE [-t|-z|-n] BYTES...",
	  "one message each way over the library's protocols", pingpong_main },
	{ "raw", "PROFILE",
	  "the modelled hardware beside measured figures", raw_main },
	{ "papers", "[FOLDER]", "the papers' protocols beside their published figures",
	  papers_main },
	{ "scale", "[OPTION...] PATTERN NODES...",
	  "barrier, broadcast, all-to-all ... of many nodes", scale_main },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void help_print(FILE *out)
{
	fputs("usage: sci model [COMMAND [ARGUMENT...]]\n\n", out);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %s %s\n\t%s\n", commands[i].name,
			commands[i].arguments, commands[i].what);
}

int main(int argc, char **argv)
{
	if (argc > 1 && (!strcmp(argv[1], "--help") ||
			 !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))) {
		help_print(stdout);
		return 0;
	}
	if (argc < 2 || *argv[1] == '-')
		return tables_main(argc, argv);
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	fprintf(stderr, "sci-model: no such command: %s (--help lists them)\n",
		argv[1]);
	return 2;
}
