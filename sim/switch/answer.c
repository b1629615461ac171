// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/switch/answer.h"

static bool answer_room(struct answer *a, size_t more)
{
	size_t room = a->room ? a->room : 256;
	char *text;

	while (room - a->length <= more)
		room *= 2;
	if (room == a->room)
		return true;
	text = realloc(a->text, room);
	if (!text)
		return answer_fail(a, "out of memory");
	a->text = text;
	a->room = room;
	return true;
}

void answer_add(struct answer *a, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	if (n >= 0 && answer_room(a, (size_t)n)) {
		vsnprintf(a->text + a->length, a->room - a->length, fmt, again);
		a->length += (size_t)n;
	}
	va_end(again);
	va_end(ap);
}

bool answer_fail(struct answer *a, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	if (a->error[0])
		return false;
	snprintf(a->error, sizeof(a->error), "%s", a->where);
	n = strlen(a->error);
	va_start(ap, fmt);
	vsnprintf(a->error + n, sizeof(a->error) - n, fmt, ap);
	va_end(ap);
	return false;
}

void answer_free(struct answer *a)
{
	free(a->text);
	*a = (struct answer){ 0 };
}
