// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/switch/answer.h"
#include "sim/switch/command.h"
#include "sim/switch/fabric.h"
#include "sim/switch/node.h"
#include "sim/switch/words.h"

#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))

static bool command_run_words(struct fabric *f, struct words *w, bool in_script,
			      struct answer *a);

static bool command_seed(struct fabric *f, struct words *w, struct answer *a)
{
	uint64_t value;

	if (!parse_number(w->word[1], UINT64_MAX, &value))
		return answer_fail(a, "%.40s: not a number", w->word[1]);
	fabric_seed(f, value);
	return true;
}

static bool command_reset(struct fabric *f, struct words *w, struct answer *a)
{
	(void)w;
	(void)a;
	fabric_reset(f);
	return true;
}

static bool command_run_line(struct fabric *f, struct words *w, struct answer *a)
{
	return command_run_words(f, w, true, a);
}

/* Open a script. Only a regular file: a FIFO or a terminal would block the event loop. */
static FILE *script_open(const char *path, struct answer *a)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	FILE *file = NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		answer_fail(a, "%.200s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		answer_fail(a, "%.200s: not a regular file", path);
	else if (!(file = fdopen(fd, "r")))
		answer_fail(a, "out of memory");
	if (fd >= 0 && !file)
		close(fd);
	return file;
}

static bool command_script(struct fabric *f, struct words *w, struct answer *a)
{
	FILE *file = script_open(w->word[1], a);
	bool ok;

	if (!file)
		return false;
	ok = words_read_lines(f, file, w->word[1], command_run_line, a);
	fclose(file);
	return ok;
}

static bool command_help(struct fabric *f, struct words *w, struct answer *a);

static const struct command {
	const char *name;
	unsigned int min, max;		/* number of words after the name */
	bool (*run)(struct fabric *f, struct words *w, struct answer *a);
	const char *usage;
} commands[] = {
	{ "nodes", 0, 0, command_nodes, "" },
	{ "links", 0, 0, command_links, "" },
	{ "route", 2, 2, command_route, "NODE NODE" },
	{ "counters", 0, 1, command_counters, "[NAME]" },
	{ "get", 1, 2, command_get, "NAME [KEY]" },
	{ "set", 3, 9, command_set, "NAME KEY VALUE [after WHEN] [for WHEN]" },
	{ "link", 2, 8, command_link, "down|up NAME [after WHEN] [for WHEN]" },
	{ "kill", 1, 4, command_kill, "NODE [after WHEN]" },
	{ "garbage", 2, 3, command_garbage, "NODE COUNT [FROM]" },
	{ "seed", 1, 1, command_seed, "NUMBER" },
	{ "script", 1, 1, command_script, "FILE" },
	{ "reset", 0, 0, command_reset, "" },
	{ "help", 0, 0, command_help, "" },
};

static bool command_help(struct fabric *f, struct words *w, struct answer *a)
{
	size_t i;

	(void)f;
	(void)w;
	for (i = 0; i < ARRAY_LEN(commands); i++)
		answer_add(a, "%s%s%s\n", commands[i].name,
			   *commands[i].usage ? " " : "", commands[i].usage);
	return true;
}

static bool command_run_words(struct fabric *f, struct words *w, bool in_script,
			      struct answer *a)
{
	const struct command *c = commands;
	const char *name = w->word[0];

	while (c < commands + ARRAY_LEN(commands) && strcmp(c->name, name))
		c++;
	if (c == commands + ARRAY_LEN(commands))
		return answer_fail(a, "%.40s: no such command", name);
	if (w->count - 1 < c->min || w->count - 1 > c->max)
		return answer_fail(a, "usage: %s %s", name, c->usage);
	if (in_script && c->run == command_script)
		return answer_fail(a, "a script in a script");
	return c->run(f, w, a) && !a->error[0];
}

bool command_run(struct fabric *f, const char *line, struct answer *a)
{
	struct words w;
	bool ok;

	ok = words_split(&w, line, a);
	if (ok && w.count)
		ok = command_run_words(f, &w, false, a);
	words_free(&w);
	return ok;
}

struct node *command_node(struct fabric *f, const char *name, struct answer *a)
{
	struct node *n;
	uint16_t id;

	if (!node_id_parse(name, &id)) {
		answer_fail(a, "%.40s: " NODE_ID_RULE, name);
		return NULL;
	}
	n = node_find(f, id);
	if (n && node_there(n))
		return n;
	answer_fail(a, "node %u is not attached", id);
	return NULL;
}
