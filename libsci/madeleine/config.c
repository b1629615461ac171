// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Parse session and network files; see config.h. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>

#include "libsci/madeleine/internal.h"

#define DEPTH_MAX	32		/* nesting of objects */

struct parser {
	const char *file;
	FILE *stream;
	int line;
	int depth;
	int c;				/* the next character, or EOF */
};

void mad_config_failure(const struct config *c, const char *fmt, ...)
{
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	tbx_failuref("%s:%d: %s", c->file, c->line, text);
}

static _Noreturn void parser_expected(const struct parser *p, const char *what)
{
	if (p->c == EOF)
		tbx_failuref("%s:%d: expected %s, not the end of the file", p->file, p->line,
			     what);
	tbx_failuref("%s:%d: expected %s, not '%c'", p->file, p->line, what, p->c);
}

/* ---- characters ---- */

static void parser_next(struct parser *p)
{
	if (p->c == '\n')
		p->line++;
	p->c = fgetc(p->stream);
}

/* Return whether a comment begins: '#' or '//'. A name may contain '/', but not '//'. */
static bool parser_at_comment(struct parser *p)
{
	int c;

	if (p->c != '/')
		return p->c == '#';
	c = fgetc(p->stream);
	ungetc(c, p->stream);
	return c == '/';
}

static void parser_skip(struct parser *p)
{
	for (;;) {
		while (p->c != EOF && isspace(p->c))
			parser_next(p);
		if (!parser_at_comment(p))
			return;
		while (p->c != EOF && p->c != '\n')
			parser_next(p);
	}
}

static bool parser_accept(struct parser *p, int c)
{
	parser_skip(p);
	if (p->c != c)
		return false;
	parser_next(p);
	return true;
}

static void parser_expect(struct parser *p, int c)
{
	const char what[] = { '\'', (char)c, '\'', '\0' };

	if (!parser_accept(p, c))
		parser_expected(p, what);
}

/* ---- tokens ---- */

static bool char_begins_id(int c)
{
	return c != EOF && (isalpha(c) || c == '_' || c == '/' || c == '-');
}

static bool char_in_id(int c)
{
	return char_begins_id(c) || (c != EOF && isdigit(c));
}

static char *id_parse(struct parser *p)
{
	p_tbx_string_t s = tbx_string_init();

	parser_skip(p);
	do {
		if (tbx_string_length(s)) {
			tbx_string_append_char(s, p->c);
			parser_next(p);
		}
		if (!char_begins_id(p->c))
			parser_expected(p, "a name");
		for (; char_in_id(p->c) && !parser_at_comment(p); parser_next(p))
			tbx_string_append_char(s, p->c);
	} while (p->c == '.');
	return tbx_string_to_cstring_and_free(s);
}

static char *string_parse(struct parser *p)
{
	p_tbx_string_t s = tbx_string_init();

	for (parser_next(p); p->c != '"'; parser_next(p)) {
		if (p->c == EOF || p->c == '\n')
			parser_expected(p, "'\"'");
		tbx_string_append_char(s, p->c);
	}
	parser_next(p);
	return tbx_string_to_cstring_and_free(s);
}

static long integer_parse(struct parser *p)
{
	long n = 0;

	parser_skip(p);
	if (p->c == EOF || !isdigit(p->c))
		parser_expected(p, "a number");
	for (; p->c != EOF && isdigit(p->c); parser_next(p)) {
		n = n * 10 + (p->c - '0');
		if (n > 1000000000)
			tbx_failuref("%s:%d: the number is too large", p->file, p->line);
	}
	return n;
}

/* ---- objects ---- */

static struct config *config_new(const struct parser *p, enum config_kind kind)
{
	struct config *c = tbx_alloc(1, sizeof(*c));

	c->kind = kind;
	c->file = p->file;
	c->line = p->line;
	return c;
}

static struct config *object_parse(struct parser *p);

static struct config *number_parse(struct parser *p)
{
	struct config *c = config_new(p, CONFIG_INTEGER);

	c->from = integer_parse(p);
	c->to = c->from;
	if (!parser_accept(p, '.'))
		return c;
	if (p->c != '.')
		parser_expected(p, "'..'");
	parser_next(p);
	c->kind = CONFIG_RANGE;
	c->to = integer_parse(p);
	if (c->to < c->from)
		mad_config_failure(c, "the range %ld..%ld is empty", c->from, c->to);
	return c;
}

static struct config *name_parse(struct parser *p)
{
	struct config *c = config_new(p, CONFIG_ID);

	c->text = id_parse(p);
	c->items = tbx_slist_nil();
	if (!parser_accept(p, '['))
		return c;
	do
		tbx_slist_append(c->items, number_parse(p));
	while (parser_accept(p, ','));
	parser_expect(p, ']');
	return c;
}

static void entry_parse(struct parser *p, struct config *table)
{
	char *name = id_parse(p);

	parser_expect(p, ':');
	if (tbx_htable_get(table->entries, name))
		tbx_failuref("%s:%d: there is another %s", p->file, p->line, name);
	tbx_htable_add(table->entries, name, object_parse(p));
	parser_expect(p, ';');
	free(name);
}

static struct config *table_parse(struct parser *p)
{
	struct config *c = config_new(p, CONFIG_TABLE);

	c->entries = tbx_htable_empty_table();
	do
		entry_parse(p, c);
	while (!parser_accept(p, '}'));
	return c;
}

static struct config *list_parse(struct parser *p)
{
	struct config *c = config_new(p, CONFIG_LIST);

	c->items = tbx_slist_nil();
	do
		tbx_slist_append(c->items, object_parse(p));
	while (parser_accept(p, ','));
	parser_expect(p, ')');
	return c;
}

static struct config *object_parse(struct parser *p)
{
	struct config *c;

	if (++p->depth > DEPTH_MAX)
		tbx_failuref("%s:%d: too many objects in objects", p->file, p->line);
	parser_skip(p);
	if (parser_accept(p, '{')) {
		c = table_parse(p);
	} else if (parser_accept(p, '(')) {
		c = list_parse(p);
	} else if (p->c == '"') {
		c = config_new(p, CONFIG_STRING);
		c->text = string_parse(p);
	} else if (p->c != EOF && isdigit(p->c)) {
		c = number_parse(p);
	} else {
		c = name_parse(p);
	}
	p->depth--;
	return c;
}

struct config *mad_config_read(const char *file)
{
	struct parser p = { .file = file, .stream = fopen(file, "re"), .line = 1 };
	struct config *c;

	if (!p.stream)
		tbx_failuref("cannot open %s: %s", file, strerror(errno));
	c = config_new(&p, CONFIG_TABLE);
	c->entries = tbx_htable_empty_table();
	parser_next(&p);
	for (parser_skip(&p); p.c != EOF; parser_skip(&p))
		entry_parse(&p, c);
	if (ferror(p.stream))
		tbx_failuref("cannot read %s", file);
	fclose(p.stream);
	return c;
}

void mad_config_free(struct config *c)
{
	if (c->items) {
		while (!tbx_slist_is_nil(c->items))
			mad_config_free(tbx_slist_extract(c->items));
		tbx_slist_free(c->items);
	}
	if (c->entries) {
		p_tbx_slist_t names = tbx_htable_get_key_slist(c->entries);

		while (!tbx_slist_is_nil(names)) {
			char *name = tbx_slist_extract(names);

			mad_config_free(tbx_htable_extract(c->entries, name));
			free(name);
		}
		tbx_slist_free(names);
		tbx_htable_free(c->entries);
	}
	free(c->text);
	free(c);
}

/* ---- queries ---- */

struct config *mad_config_get(struct config *c, const char *name)
{
	if (c->kind != CONFIG_TABLE)
		mad_config_failure(c, "expected '{' and %s", name);
	return tbx_htable_get(c->entries, name);
}

const char *mad_config_text(const struct config *c)
{
	if (!c)
		return NULL;
	if (c->kind != CONFIG_ID && c->kind != CONFIG_STRING)
		mad_config_failure(c, "expected a name");
	return c->text;
}

struct config *mad_config_item(struct config *c, long i)
{
	if (c->kind != CONFIG_LIST)
		return i ? NULL : c;
	return i < c->items->length ? tbx_slist_index_get(c->items, i) : NULL;
}
