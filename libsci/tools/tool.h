/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Code that the commands of `sci` share. */
#ifndef LIBSCI_TOOLS_TOOL_H
#define LIBSCI_TOOLS_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdnoreturn.h>

#include "sisci_api.h"

enum {
	TOOL_OK		= 0,
	TOOL_FAILED	= 1,
	TOOL_USAGE	= 2,
};

#define TOOL_CLUSTER_MAX	32u	/* characters of the name of a virtual cluster */

struct tool_command {
	const char *name;
	const char *args;		/* arguments, for the usage line */
	const char *what;		/* one line, for `sci help` */
	int (*run)(const struct tool_command *self, int argc, char **argv);
};

int tool_info(const struct tool_command *self, int argc, char **argv);
int tool_nodes(const struct tool_command *self, int argc, char **argv);
int tool_segments(const struct tool_command *self, int argc, char **argv);
int tool_counters(const struct tool_command *self, int argc, char **argv);
int tool_top(const struct tool_command *self, int argc, char **argv);
int tool_run(const struct tool_command *self, int argc, char **argv);
int tool_ping(const struct tool_command *self, int argc, char **argv);
int tool_send(const struct tool_command *self, int argc, char **argv);
int tool_recv(const struct tool_command *self, int argc, char **argv);
int tool_bench(const struct tool_command *self, int argc, char **argv);
int tool_tune(const struct tool_command *self, int argc, char **argv);
int tool_pool(const struct tool_command *self, int argc, char **argv);
int tool_gateway(const struct tool_command *self, int argc, char **argv);
int tool_model(const struct tool_command *self, int argc, char **argv);

/* ---- options ---- */

enum tool_option_kind {
	TOOL_FLAG,			/* bool */
	TOOL_STRING,			/* const char * */
	TOOL_NUMBER,			/* uint64_t; 0x... is allowed */
	TOOL_SIZE,			/* uint64_t; suffixes K, M, G */
	TOOL_SECONDS,			/* unsigned int, in milliseconds */
};

struct tool_option {
	const char *name;
	char letter;			/* 0: the option has only a long name */
	enum tool_option_kind kind;
	void *value;
	uint64_t min, max;		/* limits of TOOL_NUMBER and TOOL_SIZE */
	const char *arg;		/* name of the option's argument in the help */
	const char *help;
};

/**
 * tool_parse() - read a command's options, which end with a zero entry
 * @argv: begins with the command's name, as in main()
 * @mixed: options may also follow arguments
 *
 * The function adds -h and --help. It ends the process if an option is wrong or asks for help. It
 * moves the arguments to the end of @argv. Return: the index of the first argument.
 */
int tool_parse(const struct tool_command *self, int argc, char **argv,
	       const struct tool_option *options, bool mixed);

/* Print a message, and end the process with TOOL_USAGE. */
__attribute__((format(printf, 2, 3)))
noreturn void tool_usage(const struct tool_command *self, const char *fmt, ...);

/* Parse a number that is all of @s. Return false if @s is no number, or outside of [@min, @max]. */
bool tool_parse_number(const char *s, uint64_t min, uint64_t max,
		       uint64_t *out);
bool tool_parse_size(const char *s, uint64_t min, uint64_t max, uint64_t *out);

/* Parse "8" or "node8". Return false if @s is no node id. */
bool tool_parse_node(const char *s, unsigned int *node);

/* ---- messages ---- */

/* Print "sci: ..." on standard error. Return: TOOL_FAILED. */
__attribute__((format(printf, 1, 2))) int tool_error(const char *fmt, ...);

/* Print a message and the library's text for @err. For SCI_ERR_SYSTEM, print the text for errno. */
__attribute__((format(printf, 2, 3)))
int tool_sci_error(sci_error_t err, const char *fmt, ...);

/* Print why sci_fabric_open() has failed. */
int tool_fabric_error(int err);

/* Print why SCIInitialize() has failed. */
int tool_join_error(sci_error_t err);

/* Write a size such as "8.0 MiB" to @buf, and return @buf. */
#define TOOL_SIZE_STR	16
char *tool_size_str(char buf[TOOL_SIZE_STR], double bytes);

/* Copy a foreign name and replace its control characters by '?', for a terminal. */
char *tool_printable(char *dst, size_t room, const char *s);

/* Flush and close standard output. Return: TOOL_OK, or TOOL_FAILED after a message. */
int tool_finish(void);

uint64_t tool_now_ns(void);

/* ---- the library, for commands that use the SISCI API ---- */

/* Call SCIInitialize() and SCIOpen(). On failure print a message and return TOOL_FAILED. */
int tool_join(sci_desc_t *sd);

/* Resolve a number, "nodeN" or a name that the library knows. Return: TOOL_OK or TOOL_FAILED. */
int tool_resolve_node(const char *s, unsigned int *node);

/* ---- JSON ---- */

struct tool_json {
	FILE *out;
	unsigned int depth;
	bool first;			/* the next value is the first of its level */
};

/* @key is NULL for an element of an array. */
void json_open(struct tool_json *j, const char *key, char bracket);
void json_close(struct tool_json *j, char bracket);
void json_string(struct tool_json *j, const char *key, const char *value);
void json_number(struct tool_json *j, const char *key, uint64_t value);
void json_real(struct tool_json *j, const char *key, double value);
void json_bool(struct tool_json *j, const char *key, bool value);
void json_null(struct tool_json *j, const char *key);

#endif
