// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include <inttypes.h>
#include <math.h>

#include "tool.h"

static void string_print(FILE *out, const char *s)
{
	fputc('"', out);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (c < ' ' || c == 127)
			fprintf(out, "\\u%04x", c);
		else
			fputc(c, out);
	}
	fputc('"', out);
}

static void json_begin(struct tool_json *j, const char *key)
{
	if (!j->first)
		fputc(',', j->out);
	if (j->depth)
		fprintf(j->out, "\n%*s", 2 * (int)j->depth, "");
	j->first = false;
	if (key) {
		string_print(j->out, key);
		fputs(": ", j->out);
	}
}

void json_open(struct tool_json *j, const char *key, char bracket)
{
	json_begin(j, key);
	fputc(bracket, j->out);
	j->depth++;
	j->first = true;
}

void json_close(struct tool_json *j, char bracket)
{
	j->depth--;
	if (!j->first)
		fprintf(j->out, "\n%*s", 2 * (int)j->depth, "");
	fputc(bracket, j->out);
	j->first = false;
	if (!j->depth)
		fputc('\n', j->out);
}

void json_string(struct tool_json *j, const char *key, const char *value)
{
	json_begin(j, key);
	string_print(j->out, value);
}

void json_number(struct tool_json *j, const char *key, uint64_t value)
{
	json_begin(j, key);
	fprintf(j->out, "%" PRIu64, value);
}

void json_real(struct tool_json *j, const char *key, double value)
{
	json_begin(j, key);
	if (isfinite(value))
		fprintf(j->out, "%.3f", value);
	else
		fputs("null", j->out);
}

void json_bool(struct tool_json *j, const char *key, bool value)
{
	json_begin(j, key);
	fputs(value ? "true" : "false", j->out);
}

void json_null(struct tool_json *j, const char *key)
{
	json_begin(j, key);
	fputs("null", j->out);
}
