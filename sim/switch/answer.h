/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* The answer to a command or a file: lines of text, or an error. */
#ifndef SIM_SWITCH_ANSWER_H
#define SIM_SWITCH_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

struct answer {
	char *text;
	size_t length, room;
	char where[256];		/* "FILE:LINE: " or "" */
	char error[512];		/* "" as long as there is no error */
};

/* Append to the text. */
__attribute__((format(printf, 2, 3)))
void answer_add(struct answer *a, const char *fmt, ...);

/* Store the error if @a has none. Return false. */
__attribute__((format(printf, 2, 3)))
bool answer_fail(struct answer *a, const char *fmt, ...);

void answer_free(struct answer *a);

#endif
