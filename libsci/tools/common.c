// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tool.h"

int tool_error(const char *fmt, ...)
{
	va_list ap;

	fputs("sci: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return TOOL_FAILED;
}

int tool_sci_error(sci_error_t err, const char *fmt, ...)
{
	int e = errno;
	va_list ap;

	fputs("sci: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, ": %s", SCIGetErrorString(err));
	if (err == SCI_ERR_SYSTEM && e)
		fprintf(stderr, " (%s)", strerror(e));
	fputc('\n', stderr);
	return TOOL_FAILED;
}

/* For -EINVAL and -ENODEV the library has printed the reason. */
int tool_fabric_error(int err)
{
	if (err == -EINVAL || err == -ENODEV)
		return tool_error("cannot join the fabric");
	return tool_error("cannot join the fabric: %s", strerror(-err));
}

int tool_join_error(sci_error_t err)
{
	if (err == SCI_ERR_ILLEGAL_PARAMETER ||
	    err == SCI_ERR_NO_SUCH_ADAPTERNO)
		return tool_error("cannot join the fabric");
	return tool_sci_error(err, "cannot join the fabric");
}

char *tool_size_str(char buf[TOOL_SIZE_STR], double bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	size_t u = 0;

	while (bytes >= 1000 && u + 1 < sizeof(units) / sizeof(units[0])) {
		bytes /= 1024;
		u++;
	}
	snprintf(buf, TOOL_SIZE_STR, "%.*f %s", u && bytes < 100 ? 1 : 0,
		 bytes, units[u]);
	return buf;
}

char *tool_printable(char *dst, size_t room, const char *s)
{
	size_t i;

	for (i = 0; s[i] && i + 1 < room; i++)
		dst[i] = (unsigned char)s[i] < ' ' || s[i] == 127 ? '?' : s[i];
	dst[i] = '\0';
	return dst;
}

int tool_finish(void)
{
	if (fflush(stdout) || ferror(stdout))
		return tool_error("cannot write the output: %s",
				  strerror(errno));
	return TOOL_OK;
}

uint64_t tool_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int tool_join(sci_desc_t *sd)
{
	sci_error_t err;

	SCIInitialize(0, &err);
	if (err != SCI_ERR_OK)
		return tool_join_error(err);
	SCIOpen(sd, 0, &err);
	if (err != SCI_ERR_OK)
		return tool_sci_error(err, "cannot open the library");
	return TOOL_OK;
}

int tool_resolve_node(const char *s, unsigned int *node)
{
	dis_nodeId_list_t nodes;
	sci_error_t err;
	char *name;

	if (tool_parse_node(s, node))
		return TOOL_OK;
	name = strdup(s);
	if (!name)
		return tool_error("out of memory");
	SCIGetNodeIdByAdapterName(name, &nodes, NULL, 0, &err);
	free(name);
	if (err != SCI_ERR_OK || !nodes[0])
		return tool_error("no such node: %s (node ids are 4, 8, 12, ... 65532)",
				  s);
	*node = nodes[0];
	return TOOL_OK;
}
