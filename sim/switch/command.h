/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Commands of the control socket and of scripts: see sci-switch(1). */
#ifndef SIM_SWITCH_COMMAND_H
#define SIM_SWITCH_COMMAND_H

#include <stdbool.h>

struct answer;
struct fabric;
struct point;
struct words;

/* After an error, the functions below store a text in @a and return false. */
bool command_run(struct fabric *f, const char *line, struct answer *a);

/* Call @fn for all points that @name means: a node, a link, a ring, "all" or "links". */
bool command_points(struct fabric *f, const char *name,
		    bool (*fn)(struct point *pt, void *arg), void *arg,
		    struct answer *a);

/* the command "set NAME KEY VALUE [after ...] [for ...]" */
bool command_set(struct fabric *f, struct words *w, struct answer *a);

/* the command "link down|up NAME [after ...] [for ...]" */
bool command_link(struct fabric *f, struct words *w, struct answer *a);

/* the command "kill NODE [after ...]" */
bool command_kill(struct fabric *f, struct words *w, struct answer *a);

/* the command "garbage NODE COUNT [FROM]" */
bool command_garbage(struct fabric *f, struct words *w, struct answer *a);

/* The commands below add text to @a. */
bool command_nodes(struct fabric *f, struct words *w, struct answer *a);
bool command_links(struct fabric *f, struct words *w, struct answer *a);
bool command_route(struct fabric *f, struct words *w, struct answer *a);
bool command_counters(struct fabric *f, struct words *w, struct answer *a);
bool command_get(struct fabric *f, struct words *w, struct answer *a);

struct node *command_node(struct fabric *f, const char *name,
			  struct answer *a);

#endif
