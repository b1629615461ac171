// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The search for profiles by name: beside the installed program, or in the source tree. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/vtime/vtime.h"

#define SOURCE	"sim/profiles"

static const char *folder_get_default(char *path, size_t size)
{
	static const char *const places[] = {
		"/../share/libsci/profiles", "/../" SOURCE,
	};
	char exe[2048];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	if (n <= 0)
		return SOURCE;
	exe[n] = '\0';
	slash = strrchr(exe, '/');
	if (slash)
		*slash = '\0';
	for (unsigned int i = 0; i < 2; i++) {
		snprintf(path, size, "%s%s", exe, places[i]);
		if (!access(path, R_OK))
			return path;
	}
	return SOURCE;
}

bool vt_profile_find(struct vt_profile *p, const char *folder, const char *name)
{
	char buf[4096], path[4500];

	if (strchr(name, '/'))
		return vt_profile_read(p, name);
	if (!folder)
		folder = folder_get_default(buf, sizeof(buf));
	snprintf(path, sizeof(path), "%s/%s.profile", folder, name);
	return vt_profile_read(p, path);
}
