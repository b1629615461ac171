// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Lines of ranks on standard output and standard error. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch.h"

/* A pipe that poll() reports as writable takes PIPE_BUF bytes without blocking. */
#define WRITE_SIZE	4096u

static bool outlet_same_file(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

void outlets_init(struct outlets *o, bool tag)
{
	*o = (struct outlets){ 0 };
	for (int i = 0; i < 2; i++)
		o->outlet[i] = (struct outlet){ .fd = i + 1, .tag = tag };
	o->of[1] = &o->outlet[0];
	o->of[2] = outlet_same_file(1, 2) ? &o->outlet[0] : &o->outlet[1];
}

void outlets_free(struct outlets *o)
{
	free(o->outlet[0].bytes.data);
	free(o->outlet[1].bytes.data);
}

size_t outlets_queued(const struct outlets *o)
{
	size_t n = 0;

	for (unsigned int i = 0; i < 2; i++)
		n += o->outlet[i].bytes.to - o->outlet[i].bytes.from;
	return n;
}

static void outlet_drop(struct outlet *o)
{
	o->fd = -1;
	o->bytes.from = o->bytes.to = 0;
}

static int outlet_put(struct outlet *o, const char *data, size_t len)
{
	if (o->fd < 0)
		return 0;
	if (boot_bytes_reserve(&o->bytes, len)) {
		outlet_drop(o);
		return -ENOMEM;
	}
	memcpy(o->bytes.data + o->bytes.to, data, len);
	o->bytes.to += len;
	return 0;
}

int outlet_add(struct outlet *o, unsigned int rank, const char *data, size_t len)
{
	char tag[16];
	int n = snprintf(tag, sizeof(tag), "[%u] ", rank), ret = 0;

	if (!len)
		return 0;
	if (!o->tag) {
		/* end the incomplete last line of another rank */
		if (o->open && o->rank != rank)
			ret = outlet_put(o, "\n", 1);
		ret = ret ? ret : outlet_put(o, data, len);
		if (ret)
			return ret;
		o->open = data[len - 1] != '\n';
		o->rank = rank;
		return 0;
	}
	while (len && !ret) {
		const char *end = memchr(data, '\n', len);
		size_t line = end ? (size_t)(end - data) + 1 : len;

		ret = outlet_put(o, tag, (size_t)n);
		ret = ret ? ret : outlet_put(o, data, line);
		if (!ret && !end)
			ret = outlet_put(o, "\n", 1);
		data += line;
		len -= line;
	}
	return ret;
}

int outlet_write(struct outlet *o)
{
	size_t len = o->bytes.to - o->bytes.from;
	ssize_t n;

	if (!len || o->fd < 0)
		return 0;
	n = write(o->fd, o->bytes.data + o->bytes.from, len < WRITE_SIZE ? len : WRITE_SIZE);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0) {
		outlet_drop(o);
		return errno == EPIPE ? 0 : -errno;
	}
	boot_bytes_take(&o->bytes, (size_t)n);
	return 0;
}
