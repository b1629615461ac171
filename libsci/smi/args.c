// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Arguments that SMI's launcher puts before those of the program. Ranks come from the team's
 * launcher, so SMI's arguments are only checked and removed; -w, -g, -f and -v have an effect.
 */
#include "libsci/smi/internal.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

/* Options of the launcher: the first NEEDED are required, the first WITH_VALUE have a value. */
static const char options[] = "rnhmpiflwgvstT";

#define NEEDED		4
#define WITH_VALUE	7

struct smi_args smi_args;

static int args_usage(const char *program)
{
	fprintf(stderr, "usage: %s -r RANK -n PROCESSES -h HOST -m MAGIC [-p PORT] "
		"[-i SCIID] [-f PIDFILE] [-l] [-w] [-g] [-v] -- [argument...]\n", program);
	return SMI_ERR_PARAM;
}

static bool option_is_given(unsigned int given, char option)
{
	return given >> (strchr(options, option) - options) & 1;
}

int smi_args_strip(int *argc, char ***argv)
{
	const unsigned int needed = (1u << NEEDED) - 1;
	const char *pidfile = NULL;
	unsigned int given = 0;
	int i, k;

	if (!argc || !argv || !*argv || *argc < 1)
		return SMI_SUCCESS;
	optind = 1;
	for (i = 1; i < *argc && strcmp((*argv)[i], "--"); i++) {
		const char *a = (*argv)[i];
		const char *at = a[0] == '-' && a[1] && !a[2] ? strchr(options, a[1]) : NULL;

		if (!at)
			return SMI_SUCCESS;
		given |= 1u << (at - options);
		i += at - options < WITH_VALUE;
		if (*at == 'f')
			pidfile = (*argv)[i];
	}
	if (i >= *argc || !(given & needed))
		return SMI_SUCCESS;
	if ((given & needed) != needed)
		return args_usage((*argv)[0]);
	smi_args = (struct smi_args) {
		.no_watchdog = option_is_given(given, 'w'),
		.no_signals = option_is_given(given, 'g'),
		.verbose = option_is_given(given, 'v'),
		.pidfile = pidfile,
	};
	for (const char *c = "stT"; *c; c++)
		if (option_is_given(given, *c))
			fprintf(stderr, "smi: option -%c has no effect: this library keeps "
				"no trace, statistics or times (perf and ltrace do)\n", *c);
	for (k = i + 1; k <= *argc; k++)
		(*argv)[k - i] = (*argv)[k];
	*argc -= i;
	return SMI_SUCCESS;
}
