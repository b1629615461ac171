// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Streams. A FILE is in the global heap, its lock works between nodes (futex.c), and nodes share
 * descriptors: any thread may use any stream, and output comes in order. libc keeps open streams
 * in a list, which exit() flushes: the list of the first node's process has the streams of all
 * nodes. The standard streams, which are in libc's data, are replaced at the start: see
 * streams_begin().
 */

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "interpose.h"

/* Functions of libc that add a stream to the list of open streams, and remove it. */
void _IO_link_in(FILE *f);
void _IO_un_link(FILE *f);

void stdio_replace(void)
{
	FILE *in = fdopen(0, "r"), *out = fdopen(1, "w"), *err = fdopen(2, "w");

	if (in)
		stdin = in;
	if (out)
		stdout = out;
	if (err) {
		setvbuf(err, NULL, _IONBF, 0);
		stderr = err;
	}
}

/*
 * Run @fn(@arg) on the first node, in a thread of its own: @fn waits while another thread reads
 * from a stream, and meanwhile the service thread must serve calls.
 */
static void first_run(void (*fn)(void *arg), void *arg)
{
	if (!forward_run(fn, arg))
		node_call(0, fn, arg);
}

static void list_add(void *f)
{
	_IO_link_in(f);
}

static void list_remove(void *f)
{
	_IO_un_link(f);
}

/* Return true if a stream is in the list of the first node, and this process is another node. */
static bool stream_is_elsewhere(FILE *f)
{
	/* libsci's own streams are private memory of this process, and stay in its list */
	return world_spans() && self_node && is_global(f);
}

/* Move a new stream from the list of this process to the list of the first node. */
static FILE *stream_opened(FILE *f)
{
	if (!stream_is_elsewhere(f))
		return f;
	_IO_un_link(f);
	first_run(list_add, f);
	return f;
}

#define OPENS(name, parameters, arguments)				\
EXPORT FILE *name parameters						\
{									\
	return stream_opened(REAL(name) arguments);			\
}

OPENS(fopen, (const char *path, const char *mode), (path, mode))
OPENS(fopen64, (const char *path, const char *mode), (path, mode))
OPENS(fdopen, (int fd, const char *mode), (fd, mode))
OPENS(tmpfile, (void), ())
OPENS(tmpfile64, (void), ())
OPENS(fmemopen, (void *buf, size_t size, const char *mode), (buf, size, mode))
OPENS(open_memstream, (char **buf, size_t *size), (buf, size))
OPENS(fopencookie, (void *cookie, const char *mode, cookie_io_functions_t fn),
      (cookie, mode, fn))

EXPORT int fclose(FILE *f)
{
	if (stream_is_elsewhere(f))
		first_run(list_remove, f);
	return REAL(fclose)(f);
}

static FILE *stream_reopened(FILE *(*real)(const char *, const char *, FILE *), const char *path,
			     const char *mode, FILE *f)
{
	if (stream_is_elsewhere(f))
		first_run(list_remove, f);
	return stream_opened(real(path, mode, f));
}

EXPORT FILE *freopen(const char *path, const char *mode, FILE *f)
{
	return stream_reopened(REAL(freopen), path, mode, f);
}

EXPORT FILE *freopen64(const char *path, const char *mode, FILE *f)
{
	return stream_reopened(REAL(freopen64), path, mode, f);
}

static void streams_flush(void *ret)
{
	*(int *)ret = REAL(fflush)(NULL);
}

EXPORT int fflush(FILE *f)
{
	int ret;

	if (f || !world_spans() || !self_node)
		return REAL(fflush)(f);
	first_run(streams_flush, &ret);
	return ret;
}
