/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Messages in XDR between the daemon and tasks that have registered with the daemon. */
#ifndef LIBSCI_PVM_TEXT_H
#define LIBSCI_PVM_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "libsci/pvm/frame.h"

/* A message being written. All zeros is an empty message. The daemon ends if memory is short. */
struct text {
	uint8_t *data;
	size_t len;
};

void text_word(struct text *x, uint32_t v);
/* Append NAME=VALUE, or @s alone if @value is NULL. */
void text_str(struct text *x, const char *s, const char *value);
/* Send @x to task @tid as a message of this daemon, and free it. */
void text_send(struct text *x, int tid, int ctx, int tag, int wid);

/* Read the next number or string of @b. Past the end of @b, @b->bad is set. */
int text_read_word(struct body *b);
/* The string points into @b. A string without a final zero is bad. */
const char *text_read_str(struct body *b);

#endif
