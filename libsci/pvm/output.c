// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Output of children. The daemon of a child sends each piece as a message: the child's tid, then a
 * length and the bytes, or one of the events below.
 */

#include "libsci/pvm/lib.h"

#include <stdlib.h>
#include <string.h>

#define OUTPUT_TAG	0x7ffffffe	/* tag of messages for pvm_catchout() */
#define OUTPUT_CTX	0x7fffd		/* context of these messages */

enum output_event { OUTPUT_EOF = 0, OUTPUT_SPAWN = -1, OUTPUT_NEW = -2 };

/* A child that writes output, and the received part of its last line. */
struct child {
	struct child *next;
	int tid;
	bool began;
	char *line;
	size_t len;
};

static struct child *children;
static FILE *out;

static struct child *child_get(int tid)
{
	struct child *c;

	for (c = children; c; c = c->next)
		if (c->tid == tid)
			return c;
	c = calloc(1, sizeof(*c));
	if (c) {
		c->tid = tid;
		c->next = children;
		children = c;
	}
	return c;
}

static void child_begin(struct child *c)
{
	if (!c->began && out && pv_opts.show_tids)
		fprintf(out, "[t%x] BEGIN\n", (unsigned int)c->tid);
	c->began = true;
}

static void line_print(struct child *c)
{
	if (out && pv_opts.show_tids)
		fprintf(out, "[t%x] ", (unsigned int)c->tid);
	if (out) {
		fwrite(c->line, 1, c->len, out);
		fputc('\n', out);
	}
	c->len = 0;
}

static void child_bytes(struct child *c, const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (data[i] == '\n') {
			line_print(c);
			continue;
		}
		if (!(c->len & (c->len - 1)) || !c->line) {
			char *line = realloc(c->line, c->len ? c->len * 2 : 1);

			if (!line)
				return;
			c->line = line;
		}
		c->line[c->len++] = (char)data[i];
	}
}

static void child_end(struct child *c)
{
	struct child **at = &children;

	if (c->len)
		line_print(c);
	if (c->began && out && pv_opts.show_tids)
		fprintf(out, "[t%x] EOF\n", (unsigned int)c->tid);
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	free(c->line);
	free(c);
}

static uint32_t word_at(const struct buf *b, size_t at)
{
	const uint8_t *p = b->data + at;

	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

bool pv_output_take(struct buf *b)
{
	struct child *c;
	int len;

	if (b->info.tag != OUTPUT_TAG || b->info.ctx != OUTPUT_CTX)
		return false;
	if (b->len >= 8 && (c = child_get((int)word_at(b, 0)))) {
		len = (int)word_at(b, 4);
		if (len > 0 && (size_t)len <= b->len - 8) {
			child_begin(c);
			child_bytes(c, b->data + 8, (size_t)len);
		} else if (len == OUTPUT_NEW) {
			child_begin(c);
		} else if (len == OUTPUT_EOF) {
			child_end(c);
		}
		if (out)
			fflush(out);
	}
	pv_buf_free(b);
	return true;
}

void pv_output_host_gone(int host)
{
	struct child *c, *next;

	for (c = children; c; c = next) {
		next = c->next;
		if (host && TID_HOST(c->tid) != TID_HOST(host))
			continue;
		child_end(c);
		if (out)
			fflush(out);
	}
}

bool pv_output_pending(void)
{
	return children && out;
}

PVM_API int pvm_catchout(FILE *ff)
{
	int ret = pv_task_ready();

	if (ret < 0)
		return lpvmerr("pvm_catchout", ret);
	if (ff) {
		out = ff;
		pv_opts.out_tid = pvmmytid;
		pv_opts.out_ctx = OUTPUT_CTX;
		pv_opts.out_tag = OUTPUT_TAG;
	} else {
		pv_opts.out_tid = pv_opts.out_ctx = pv_opts.out_tag = 0;
	}
	return PvmOk;
}
