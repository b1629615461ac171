/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* The commands of sci-model; each gets its name as argv[0]. */
#ifndef SIM_VTIME_COMMAND_H
#define SIM_VTIME_COMMAND_H

struct command {
	const char *name;
	const char *arguments;
	const char *what;
	int (*run)(int argc, char **argv);
};

int tables_main(int argc, char **argv);
int pingpong_main(int argc, char **argv);
int raw_main(int argc, char **argv);
int papers_main(int argc, char **argv);
int scale_main(int argc, char **argv);

#endif
