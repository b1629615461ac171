// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/vtime/vtime.h"

struct figure {
	const char *name;
	size_t offset;
	double scale;			/* from the file's unit */
	double min, max;		/* in the file's unit */
};

#define TIME(field) { #field, offsetof(struct vt_profile, field), VT_NS, 0, 1e9 }
#define RATE(field) { #field, offsetof(struct vt_profile, field), 1e6, 0.001, 1e6 }
#define COUNT(field, lo, hi) \
	{ #field, offsetof(struct vt_profile, field), 1, lo, hi }

/* The figures of a profile: times in nanoseconds, rates in 10^6 bytes a second. */
static const struct figure figures[] = {
	COUNT(streams, 8, 16),
	COUNT(stream_size, 64, 128),
	COUNT(outstanding, 1, 64),
	TIME(gather),
	TIME(load_local),
	TIME(copy_setup),
	RATE(copy_rate),
	TIME(line_put),
	TIME(line_take),
	TIME(check),
	TIME(atomic),
	TIME(bus_line),
	TIME(bus_fpu),
	TIME(bus_word),
	TIME(bus_read),
	TIME(mem_setup),
	RATE(mem_rate),
	TIME(mem_latency),
	TIME(adapter_out),
	TIME(adapter_in),
	COUNT(link_header, 0, 256),
	RATE(link_rate),
	TIME(link_hop),
	TIME(interrupt),
	TIME(control),
	RATE(ether_rate),
	COUNT(tcp_buffer, 4096, 1 << 24),
	TIME(tcp_call),
	TIME(tcp_output),
	TIME(tcp_input),
	TIME(tcp_interrupt),
	TIME(tcp_switch),
	TIME(tcp_path),
};

#define FIGURES (sizeof(figures) / sizeof(figures[0]))

struct reader {
	struct vt_profile *profile;
	const char *path;
	unsigned int line;
	bool seen[FIGURES];
	bool tcp;			/* a figure of TCP was seen */
};

static bool figure_is_tcp(const struct figure *f)
{
	return f->offset >= offsetof(struct vt_profile, ether_rate);
}

static bool profile_wrong(const struct reader *r, const char *why, const char *what)
{
	fprintf(stderr, "sci-model: %s:%u: %s: %s\n", r->path, r->line, what,
		why);
	return false;
}

static bool figure_set(struct reader *r, const char *name, const char *text)
{
	for (size_t i = 0; i < FIGURES; i++) {
		const struct figure *f = &figures[i];
		double v;
		char *end;

		if (strcmp(f->name, name))
			continue;
		if (r->seen[i])
			return profile_wrong(r, "is here twice", name);
		v = strtod(text, &end);
		if (end == text || *end || !(v >= f->min && v <= f->max))
			return profile_wrong(r, "no number in its range", text);
		r->seen[i] = true;
		r->tcp |= figure_is_tcp(f);
		*(uint64_t *)((char *)r->profile + f->offset) =
			(uint64_t)llround(v * f->scale);
		return true;
	}
	return profile_wrong(r, "no such figure", name);
}

static bool text_set(struct reader *r, char *to, size_t size, const char *text)
{
	size_t len = strcspn(text, "\n");

	if (*to)
		return profile_wrong(r, "is here twice", "name or title");
	if (!len || len >= size)
		return profile_wrong(r, "too long, or nothing", text);
	memcpy(to, text, len);
	to[len] = '\0';
	return true;
}

static bool line_read(struct reader *r, char *line)
{
	struct vt_profile *p = r->profile;
	char *name, *value, *save;

	if (!strncmp(line, "name ", 5))
		return text_set(r, p->name, sizeof(p->name), line + 5);
	if (!strncmp(line, "title ", 6))
		return text_set(r, p->title, sizeof(p->title), line + 6);
	line[strcspn(line, "#\n")] = '\0';
	name = strtok_r(line, " \t", &save);
	if (!name)
		return true;
	value = strtok_r(NULL, " \t", &save);
	if (!value || strtok_r(NULL, " \t", &save))
		return profile_wrong(r, "is not NAME VALUE", name);
	return figure_set(r, name, value);
}

static bool profile_complete(struct reader *r)
{
	for (size_t i = 0; i < FIGURES; i++)
		if (!r->seen[i] && (r->tcp || !figure_is_tcp(&figures[i])))
			return profile_wrong(r, "is missing", figures[i].name);
	if (!*r->profile->name || !*r->profile->title)
		return profile_wrong(r, "are missing", "name or title");
	return true;
}

bool vt_profile_read(struct vt_profile *p, const char *path)
{
	struct reader r = { .profile = p, .path = path };
	FILE *f = fopen(path, "re");
	char line[512];
	bool good = true;

	memset(p, 0, sizeof(*p));
	if (!f) {
		fprintf(stderr, "sci-model: %s: %s\n", path, strerror(errno));
		return false;
	}
	while (good && fgets(line, sizeof(line), f)) {
		r.line++;
		good = line_read(&r, line);
	}
	fclose(f);
	return good && profile_complete(&r);
}
