/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: files of sessions and networks
 *
 *	file   = { entry }
 *	entry  = ID ":" object ";"
 *	object = "{" entry { entry } "}" | "(" object { "," object } ")"
 *	       | ID [ "[" index { "," index } "]" ] | STRING | INTEGER | range
 *	index  = INTEGER | range
 *	range  = INTEGER ".." INTEGER
 *
 * An error in a file is fatal. The message names file and line.
 */
#ifndef LIBSCI_MADELEINE_CONFIG_H
#define LIBSCI_MADELEINE_CONFIG_H

#include <tbx.h>

enum config_kind {
	CONFIG_TABLE,			/* entries */
	CONFIG_LIST,			/* items */
	CONFIG_ID,			/* text; items: the indices */
	CONFIG_STRING,			/* text */
	CONFIG_INTEGER,			/* from */
	CONFIG_RANGE,			/* from, to: inclusive */
};

struct config {
	enum config_kind kind;
	const char *file;		/* memory of the caller, valid as long as the object */
	int line;
	char *text;
	long from, to;
	p_tbx_slist_t items;		/* struct config */
	p_tbx_htable_t entries;		/* struct config by name */
};

struct config *mad_config_read(const char *file);
void mad_config_free(struct config *c);

/* Return the entry of a table; NULL: there is none. A @c that is not a table is a fatal error. */
struct config *mad_config_get(struct config *c, const char *name);

/*
 * Return the text of an ID or a string; NULL if @c is NULL. A value without text is a fatal error.
 */
const char *mad_config_text(const struct config *c);

/* Return item @i of a list; NULL: no such item. An object that is not a list is its own item 0. */
struct config *mad_config_item(struct config *c, long i);

__attribute__((noreturn, format(printf, 2, 3)))
void mad_config_failure(const struct config *c, const char *fmt, ...);

#endif
