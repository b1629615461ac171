/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* The words of a line; '#' begins a comment. */
#ifndef SIM_SWITCH_WORDS_H
#define SIM_SWITCH_WORDS_H

#include <stdbool.h>
#include <stdio.h>

struct answer;
struct fabric;

struct words {
	const char **word;
	unsigned int count;
	char *text;
};

bool words_split(struct words *w, const char *line, struct answer *a);
void words_free(struct words *w);

/* Call @fn for each line of @file that has words, until @fn returns false. */
bool words_read_lines(struct fabric *f, FILE *file, const char *path,
		      bool (*fn)(struct fabric *f, struct words *w,
				 struct answer *a), struct answer *a);

#endif
