// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Write the files of `sci bench` and `sci tune` completely, or not at all. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench_file.h"

static int bench_file_error(const char *path, int err)
{
	if (err == -EEXIST)
		return tool_error("%s: there is something that is no file",
				  path);
	return tool_error("%s: %s", path, strerror(-err));
}

int bench_file_open(struct outfile *o, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir = NULL;
	int ret;

	if (slash)
		dir = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	if (slash && !dir)
		return tool_error("out of memory");
	ret = outfile_open(o, dir ? dir : ".", slash ? slash + 1 : path, true);
	free(dir);
	if (!ret)
		return TOOL_OK;
	outfile_close(o);
	return bench_file_error(path, ret);
}

int bench_file_commit(struct outfile *o, const char *path)
{
	int ret = outfile_commit(o, 0666);

	return ret ? bench_file_error(path, ret) : TOOL_OK;
}

int bench_file_check(const char *path)
{
	struct outfile o;

	if (!strcmp(path, "-"))
		return TOOL_OK;
	if (!*path || path[strlen(path) - 1] == '/')
		return tool_error("'%s' is no name of a file", path);
	if (bench_file_open(&o, path))
		return TOOL_FAILED;
	outfile_close(&o);
	return TOOL_OK;
}

static int text_write(const char *path, const char *text, size_t len)
{
	struct outfile o;
	int ret;

	if (bench_file_open(&o, path))
		return TOOL_FAILED;
	ret = outfile_write(&o, text, len);
	ret = ret ? bench_file_error(path, ret) : bench_file_commit(&o, path);
	outfile_close(&o);
	return ret;
}

int bench_file(const char *path, void (*write)(FILE *out, const void *arg),
	       const void *arg)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out;
	int ret;

	if (!strcmp(path, "-")) {
		write(stdout, arg);
		return TOOL_OK;
	}
	out = open_memstream(&text, &len);
	if (!out)
		return tool_error("out of memory");
	write(out, arg);
	ret = fclose(out) ? tool_error("out of memory") :
			    text_write(path, text, len);
	free(text);
	return ret;
}
