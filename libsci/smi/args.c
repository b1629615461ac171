// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Arguments that SMI's launcher puts before those of the program. Ranks come from the team's
 * launcher, so SMI's arguments are only checked and removed; -w, -g, -f and -v have an effect.
 */
#include "libsci/smi/internal.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct smi_args smi_args;

static int args_usage(const char *program)
{
	fprintf(stderr, "usage: %s -r RANK -n PROCESSES -h HOST -m MAGIC [-p PORT] "
		"[-i SCIID] [-f PIDFILE] [-l] [-w] [-g] [-v] -- [argument...]\n", program);
	return SMI_ERR_PARAM;
}

static void args_flag(char option, const char *value)
{
	switch (option) {
	case 'w':
		smi_args.no_watchdog = true;
		break;
	case 'g':
		smi_args.no_signals = true;
		break;
	case 'v':
		smi_args.verbose = true;
		break;
	case 'f':
		smi_args.pidfile = value;
		break;
	case 's':
	case 't':
	case 'T':
		fprintf(stderr, "smi: option -%c has no effect: this library keeps no trace, "
			"statistics or times (perf and ltrace do)\n", option);
	}
}

/* Return the index of the program's first argument; 0: there are no launcher's arguments. */
static int args_end(int argc, char **argv, bool *complete)
{
	unsigned int needed = 0;
	int i;

	for (i = 1; i < argc; i++) {
		const char *a = argv[i], *at;

		if (!strcmp(a, "--")) {
			*complete = needed == 15;
			return needed ? i + 1 : 0;
		}
		if (a[0] != '-' || !a[1] || a[2] || !strchr("rnhmpiflwgvstT", a[1]))
			return 0;
		at = strchr("rnhmpif", a[1]);
		if (!at)
			continue;
		if (i + 1 == argc)
			return 0;
		i++;
		if (strchr("rnhm", a[1]))
			needed |= 1u << (a[1] == 'r' ? 0 : a[1] == 'n' ? 1 : a[1] == 'h' ? 2 : 3);
	}
	return 0;
}

int smi_args_strip(int *argc, char ***argv)
{
	bool complete = false;
	int i, end;

	if (!argc || !argv || !*argv || *argc < 1)
		return SMI_SUCCESS;
	end = args_end(*argc, *argv, &complete);
	if (end && !complete)
		return args_usage((*argv)[0]);
	for (i = 1; end && i < end - 1; i++) {
		char option = (*argv)[i][1];
		bool has_value = strchr("rnhmpif", option) != NULL;

		args_flag(option, has_value ? (*argv)[i + 1] : NULL);
		i += has_value;
	}
	if (end) {
		for (i = end; i <= *argc; i++)
			(*argv)[i - end + 1] = (*argv)[i];
		*argc -= end - 1;
	}
	optind = 1;
	return SMI_SUCCESS;
}
