// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/fabric/core/fabric.h"
#include "tool.h"

#define MAX_OPTIONS	24
#define LONG_ONLY	256		/* getopt's values for options without a letter */

static void usage_print(FILE *out, const struct tool_command *self)
{
	fprintf(out, "usage: sci %s %s\n", self->name, self->args);
}

void tool_usage(const struct tool_command *self, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "sci: %s: ", self->name);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	usage_print(stderr, self);
	exit(TOOL_USAGE);
}

static noreturn void options_print_help(const struct tool_command *self,
					const struct tool_option *o)
{
	char left[40];

	usage_print(stdout, self);
	printf("\n%s\n\n", self->what);
	for (; o->name; o++) {
		snprintf(left, sizeof(left), "%c%c --%s%s%s",
			 o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
			 o->name, o->arg ? " " : "", o->arg ? o->arg : "");
		printf("  %-22s %s\n", left, o->help);
	}
	printf("  %-22s %s\n", "-h --help", "this help");
	exit(tool_finish());
}

bool tool_parse_number(const char *s, uint64_t min, uint64_t max,
		       uint64_t *out)
{
	unsigned long long v;
	char *end;

	if (!isdigit((unsigned char)*s))
		return false;
	errno = 0;
	v = strtoull(s, &end, s[0] == '0' && tolower(s[1]) == 'x' ? 16 : 10);
	if (errno || *end || v < min || v > max)
		return false;
	*out = v;
	return true;
}

bool tool_parse_size(const char *s, uint64_t min, uint64_t max, uint64_t *out)
{
	static const char units[] = "KMGT";
	const char *unit = NULL;
	unsigned int shift;
	size_t len = strlen(s);
	char digits[24];
	uint64_t v;

	if (len && len < sizeof(digits))
		unit = strchr(units, toupper((unsigned char)s[len - 1]));
	if (!unit)
		return tool_parse_number(s, min, max, out);
	shift = 10 * (unsigned int)(unit - units + 1);
	memcpy(digits, s, len - 1);
	digits[len - 1] = '\0';
	if (!tool_parse_number(digits, 0, UINT64_MAX >> shift, &v) ||
	    v << shift < min || v << shift > max)
		return false;
	*out = v << shift;
	return true;
}

bool tool_parse_node(const char *s, unsigned int *node)
{
	uint64_t v;

	if (!strncmp(s, "node", 4))
		s += 4;
	if (!tool_parse_number(s, SCI_NODE_STEP, SCI_NODE_MAX, &v) ||
	    v % SCI_NODE_STEP)
		return false;
	*node = (unsigned int)v;
	return true;
}

static bool seconds_parse(const char *s, unsigned int *ms)
{
	char *end;
	double v = strtod(s, &end);

	if (end == s || *end || !isfinite(v) || v < 0 || v > 4e6)
		return false;
	*ms = (unsigned int)(v * 1e3);
	return true;
}

static void option_set(const struct tool_command *self,
		       const struct tool_option *o, const char *arg)
{
	bool ok = true;

	switch (o->kind) {
	case TOOL_FLAG:
		*(bool *)o->value = true;
		break;
	case TOOL_STRING:
		*(const char **)o->value = arg;
		break;
	case TOOL_NUMBER:
		ok = tool_parse_number(arg, o->min, o->max, o->value);
		break;
	case TOOL_SIZE:
		ok = tool_parse_size(arg, o->min, o->max, o->value);
		break;
	case TOOL_SECONDS:
		ok = seconds_parse(arg, o->value);
		break;
	}
	if (!ok && o->max)
		tool_usage(self, "--%s wants a number from %llu to %llu, not '%s'",
			   o->name, (unsigned long long)o->min,
			   (unsigned long long)o->max, arg);
	if (!ok)
		tool_usage(self, "--%s wants seconds, not '%s'", o->name, arg);
}

/* Translate a table of options to the two tables of getopt_long(). */
static size_t getopt_tables(const struct tool_option *o, bool mixed,
			    char *letters, struct option *longs)
{
	size_t n;

	*letters++ = mixed ? '-' : '+';
	*letters++ = ':';
	*letters++ = 'h';
	for (n = 0; o[n].name; n++) {
		int has_arg = o[n].kind == TOOL_FLAG ? no_argument
						     : required_argument;

		longs[n] = (struct option){ o[n].name, has_arg, NULL,
					    LONG_ONLY + (int)n };
		if (!o[n].letter)
			continue;
		*letters++ = o[n].letter;
		if (has_arg == required_argument)
			*letters++ = ':';
	}
	*letters = '\0';
	longs[n] = (struct option){ "help", no_argument, NULL, 'h' };
	longs[n + 1] = (struct option){ 0 };
	return n;
}

static noreturn void option_report(const struct tool_command *self, int c,
				   char **argv)
{
	const char *word = argv[optind - 1];

	if (c == ':')
		tool_usage(self, "%s wants an argument", word);
	if (optopt && optopt < LONG_ONLY)
		tool_usage(self, "no such option: -%c", optopt);
	tool_usage(self, "no such option: %s", word);
}

int tool_parse(const struct tool_command *self, int argc, char **argv,
	       const struct tool_option *options, bool mixed)
{
	struct option longs[MAX_OPTIONS + 2];
	char letters[2 * MAX_OPTIONS + 4];
	int c, i, args = 0;
	size_t n;

	n = getopt_tables(options, mixed, letters, longs);
	optind = 0;
	opterr = 0;
	while ((c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (c == 'h')
			options_print_help(self, options);
		if (c == '?' || c == ':')
			option_report(self, c, argv);
		if (c == 1) {		/* an argument between options */
			argv[++args] = optarg;
			continue;
		}
		for (i = 0; (size_t)i < n; i++)
			if (c == LONG_ONLY + i || c == options[i].letter)
				break;
		option_set(self, &options[i], optarg);
	}
	/* move the arguments before "--" to those after "--" */
	for (i = args; i > 0; i--)
		argv[optind - 1 - (args - i)] = argv[i];
	return optind - args;
}
