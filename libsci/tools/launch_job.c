// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* This file packs a struct agent_job into the bytes of a frame. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"

static void pack_number(FILE *f, uint32_t n)
{
	fwrite(&n, sizeof(n), 1, f);
}

static void pack_strings(FILE *f, char *const *s)
{
	uint32_t n = 0;

	while (s && s[n])
		n++;
	pack_number(f, n);
	for (uint32_t i = 0; i < n; i++)
		fwrite(s[i], strlen(s[i]) + 1, 1, f);
}

int job_pack(const struct agent_job *job, char **data, size_t *len)
{
	char *const cwd[] = { job->cwd, NULL };
	FILE *f = open_memstream(data, len);

	if (!f)
		return -ENOMEM;
	pack_number(f, job->size);
	pack_number(f, job->nranks);
	pack_number(f, job->bind);
	pack_number(f, job->interactive);
	pack_number(f, job->keep);
	pack_number(f, job->pmix);
	fwrite(job->ranks, sizeof(*job->ranks), job->nranks, f);
	pack_strings(f, cwd);
	pack_strings(f, job->argv);
	pack_strings(f, job->env);
	pack_strings(f, job->gateways);
	return fclose(f) ? -ENOMEM : 0;
}

struct cursor {
	const char *at, *end;
	int error;
};

static const void *unpack_bytes(struct cursor *c, size_t n)
{
	const char *p = c->at;

	if (c->error || n > (size_t)(c->end - c->at)) {
		c->error = c->error ? c->error : -EPROTO;
		return NULL;
	}
	c->at += n;
	return p;
}

static uint32_t unpack_number(struct cursor *c)
{
	const void *p = unpack_bytes(c, sizeof(uint32_t));
	uint32_t n = 0;

	if (p)
		memcpy(&n, p, sizeof(n));
	return n;
}

static char *unpack_string(struct cursor *c)
{
	size_t n = strnlen(c->at, (size_t)(c->end - c->at));
	const char *p = unpack_bytes(c, n + 1);
	char *s = p ? strdup(p) : NULL;

	if (p && !s)
		c->error = -ENOMEM;
	return s;
}

static char **unpack_strings(struct cursor *c)
{
	uint32_t n = unpack_number(c);
	char **s;

	if (n > (size_t)(c->end - c->at)) {
		c->error = -EPROTO;
		return NULL;
	}
	s = calloc(n + 1, sizeof(*s));
	if (!s)
		c->error = -ENOMEM;
	for (uint32_t i = 0; s && i < n && !c->error; i++)
		s[i] = unpack_string(c);
	return s;
}

int job_unpack(struct agent_job *job, const void *data, size_t len)
{
	struct cursor c = { data, (const char *)data + len, 0 };
	const void *ranks;
	char **cwd;

	*job = (struct agent_job){ .size = unpack_number(&c) };
	job->nranks = unpack_number(&c);
	job->bind = unpack_number(&c);
	job->interactive = unpack_number(&c);
	job->keep = unpack_number(&c);
	job->pmix = unpack_number(&c);
	ranks = job->nranks > SCI_BOOT_RANKS_MAX ? NULL :
		unpack_bytes(&c, job->nranks * sizeof(*job->ranks));
	if (!ranks)
		return -EPROTO;
	job->ranks = malloc(job->nranks * sizeof(*job->ranks) + 1);
	if (!job->ranks)
		return -ENOMEM;
	memcpy(job->ranks, ranks, job->nranks * sizeof(*job->ranks));
	cwd = unpack_strings(&c);
	job->argv = unpack_strings(&c);
	job->env = unpack_strings(&c);
	job->gateways = unpack_strings(&c);
	job->cwd = cwd ? cwd[0] : NULL;
	free(cwd);
	if (!c.error && (!job->cwd || !job->argv[0]))
		c.error = -EPROTO;
	return c.error;
}

void strings_free(char **s)
{
	for (char **p = s; p && *p; p++)
		free(*p);
	free(s);
}

void job_free(struct agent_job *job)
{
	strings_free(job->argv);
	strings_free(job->env);
	strings_free(job->gateways);
	free(job->cwd);
	free(job->ranks);
	*job = (struct agent_job){ 0 };
}
