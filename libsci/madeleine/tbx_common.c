// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Failures, memory, time, strings. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>

#include "libsci/madeleine/internal.h"

/* ---- failures ---- */

static __thread const char *place_file;
static __thread int place_line;

void tbx_place(const char *file, int line)
{
	place_file = file;
	place_line = line;
}

static void failure_begin(void)
{
	fflush(stdout);
	fputs("madeleine: ", stderr);
	if (place_file)
		fprintf(stderr, "%s:%d: ", place_file, place_line);
}

static _Noreturn void failure_end(void)
{
	fputc('\n', stderr);
	abort();
}

void tbx_failuref(const char *fmt, ...)
{
	va_list args;

	failure_begin();
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	failure_end();
}

void tbx_failure(const char *text)
{
	tbx_failuref("%s", text);
}

void tbx_error(const char *text)
{
	tbx_failuref("%s: %s", text, strerror(errno));
}

void tbx_log(const char *fmt, ...)
{
	(void)fmt;
}

void tbx_disp(const char *fmt, ...)
{
	va_list args;

	flockfile(stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	funlockfile(stderr);
}

/* ---- memory ---- */

void *tbx_alloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		tbx_failuref("no memory for %zu * %zu bytes", n, size);
	return p;
}

void *tbx_realloc(void *p, size_t n)
{
	void *more = realloc(p, n ? n : 1);

	if (!more)
		tbx_failuref("no memory for %zu bytes", n);
	return more;
}

void *tbx_aligned_malloc(size_t n, tbx_align_t align)
{
	void *p = NULL;

	if (align < sizeof(void *))
		align = sizeof(void *);
	if (posix_memalign(&p, align, n ? n : 1))
		tbx_failuref("no memory for %zu bytes, aligned to %zu", n, align);
	return p;
}

void tbx_aligned_free(void *p, tbx_align_t align)
{
	(void)align;
	free(p);
}

/* An allocator of blocks of one size. Each free block points to the next free block. */
struct s_tbx_memory {
	size_t block;
	long count;			/* blocks of a chunk */
	void *unused;
	long used;
	p_tbx_slist_t chunks;
	const char *name;
};

void tbx_malloc_init(p_tbx_memory_t *out, size_t block, long count, const char *name)
{
	p_tbx_memory_t mem = tbx_alloc(1, sizeof(*mem));
	const size_t unit = sizeof(max_align_t);

	mem->block = (tbx_max(block, sizeof(void *)) + unit - 1) / unit * unit;
	mem->count = count > 0 ? count : 1;
	mem->name = name;
	mem->chunks = tbx_slist_nil();
	*out = mem;
}

void *tbx_malloc(p_tbx_memory_t mem)
{
	void *p;

	if (!mem->unused) {
		char *chunk = tbx_alloc((size_t)mem->count, mem->block);

		tbx_slist_append(mem->chunks, chunk);
		for (long i = mem->count; i--;) {
			p = chunk + (size_t)i * mem->block;
			memcpy(p, &mem->unused, sizeof(mem->unused));
			mem->unused = p;
		}
	}
	p = mem->unused;
	assert(p);		/* a chunk has at least one block */
	memcpy(&mem->unused, p, sizeof(mem->unused));
	mem->used++;
	return p;
}

void tbx_free(p_tbx_memory_t mem, void *p)
{
	memcpy(p, &mem->unused, sizeof(mem->unused));
	mem->unused = p;
	mem->used--;
}

void tbx_malloc_clean(p_tbx_memory_t mem)
{
	if (mem->used)
		tbx_failuref("%ld blocks of the pool %s are in use", mem->used,
			     mem->name ? mem->name : "?");
	while (!tbx_slist_is_nil(mem->chunks))
		free(tbx_slist_extract(mem->chunks));
	tbx_slist_free(mem->chunks);
	free(mem);
}

char *tbx_strdup(const char *s)
{
	size_t n = strlen(s) + 1;

	return memcpy(tbx_alloc(1, n), s, n);
}

tbx_bool_t tbx_streq(const char *a, const char *b)
{
	return strcmp(a, b) ? tbx_false : tbx_true;
}

double tbx_tick2usec(tbx_ticks_t ticks)
{
	return (double)ticks / 1e3;
}

/* ---- strings ---- */

struct s_tbx_string {
	char *text;
	size_t len, room;
};

p_tbx_string_t tbx_string_init(void)
{
	return tbx_alloc(1, sizeof(tbx_string_t));
}

static void text_append(p_tbx_string_t s, const char *more, size_t n)
{
	if (!n)
		return;
	if (!s->text || s->room - s->len < n) {
		s->room = 2 * s->room + n + 16;
		s->text = tbx_realloc(s->text, s->room);
	}
	memcpy(s->text + s->len, more, n);
	s->len += n;
}

void tbx_string_append_cstring(p_tbx_string_t s, const char *more)
{
	text_append(s, more, strlen(more));
}

void tbx_string_append_int(p_tbx_string_t s, int i)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", i);

	text_append(s, text, (size_t)n);
}

void tbx_string_append_uint(p_tbx_string_t s, unsigned int i)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", i);

	text_append(s, text, (size_t)n);
}

void tbx_string_append_char(p_tbx_string_t s, int c)
{
	text_append(s, &(char){ (char)c }, 1);
}

void tbx_string_append_string(p_tbx_string_t s, p_tbx_string_t more)
{
	char *text = tbx_string_to_cstring(more);

	text_append(s, text, more->len);
	free(text);
}

p_tbx_string_t tbx_string_init_to_cstring(const char *text)
{
	p_tbx_string_t s = tbx_string_init();

	tbx_string_append_cstring(s, text);
	return s;
}

p_tbx_string_t tbx_string_init_to_int(int i)
{
	p_tbx_string_t s = tbx_string_init();

	tbx_string_append_int(s, i);
	return s;
}

p_tbx_string_t tbx_string_init_to_char(int c)
{
	p_tbx_string_t s = tbx_string_init();

	tbx_string_append_char(s, c);
	return s;
}

size_t tbx_string_length(p_tbx_string_t s)
{
	return s->len;
}

char *tbx_string_to_cstring(p_tbx_string_t s)
{
	char *text = tbx_alloc(1, s->len + 1);

	if (s->len)
		memcpy(text, s->text, s->len);
	return text;
}

char *tbx_string_to_cstring_and_free(p_tbx_string_t s)
{
	char *text = tbx_string_to_cstring(s);

	tbx_string_free(s);
	return text;
}

void tbx_string_free(p_tbx_string_t s)
{
	free(s->text);
	free(s);
}
