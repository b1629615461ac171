// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Pack a struct agent_job into the bytes of a frame, and unpack it. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"

static void number_pack(FILE *f, uint32_t n)
{
	fwrite(&n, sizeof(n), 1, f);
}

static void strings_pack(FILE *f, char *const *s)
{
	uint32_t n = 0;

	while (s && s[n])
		n++;
	number_pack(f, n);
	for (uint32_t i = 0; i < n; i++)
		fwrite(s[i], strlen(s[i]) + 1, 1, f);
}

int job_pack(const struct agent_job *job, char **data, size_t *len)
{
	char *const cwd[] = { job->cwd, NULL };
	FILE *f = open_memstream(data, len);

	if (!f)
		return -ENOMEM;
	number_pack(f, job->size);
	number_pack(f, job->nranks);
	number_pack(f, job->bind);
	number_pack(f, job->interactive);
	number_pack(f, job->keep);
	number_pack(f, job->pmix);
	fwrite(job->ranks, sizeof(*job->ranks), job->nranks, f);
	strings_pack(f, cwd);
	strings_pack(f, job->argv);
	strings_pack(f, job->env);
	strings_pack(f, job->gateways);
	return fclose(f) ? -ENOMEM : 0;
}

struct cursor {
	const char *at, *end;
	int error;
};

static const void *bytes_unpack(struct cursor *c, size_t n)
{
	const char *p = c->at;

	if (c->error || n > (size_t)(c->end - c->at)) {
		c->error = c->error ? c->error : -EPROTO;
		return NULL;
	}
	c->at += n;
	return p;
}

static uint32_t number_unpack(struct cursor *c)
{
	const void *p = bytes_unpack(c, sizeof(uint32_t));
	uint32_t n = 0;

	if (p)
		memcpy(&n, p, sizeof(n));
	return n;
}

static char *string_unpack(struct cursor *c)
{
	size_t n = strnlen(c->at, (size_t)(c->end - c->at));
	const char *p = bytes_unpack(c, n + 1);
	char *s = p ? strdup(p) : NULL;

	if (p && !s)
		c->error = -ENOMEM;
	return s;
}

static char **strings_unpack(struct cursor *c)
{
	uint32_t n = number_unpack(c);
	char **s;

	if (n > (size_t)(c->end - c->at)) {
		c->error = -EPROTO;
		return NULL;
	}
	s = calloc(n + 1, sizeof(*s));
	if (!s)
		c->error = -ENOMEM;
	for (uint32_t i = 0; s && i < n && !c->error; i++)
		s[i] = string_unpack(c);
	return s;
}

int job_unpack(struct agent_job *job, const void *data, size_t len)
{
	struct cursor c = { data, (const char *)data + len, 0 };
	const void *ranks;
	char **cwd;

	*job = (struct agent_job){ .size = number_unpack(&c) };
	job->nranks = number_unpack(&c);
	job->bind = number_unpack(&c);
	job->interactive = number_unpack(&c);
	job->keep = number_unpack(&c);
	job->pmix = number_unpack(&c);
	ranks = job->nranks > SCI_BOOT_RANKS_MAX ? NULL :
		bytes_unpack(&c, job->nranks * sizeof(*job->ranks));
	if (!ranks)
		return -EPROTO;
	job->ranks = malloc(job->nranks * sizeof(*job->ranks) + 1);
	if (!job->ranks)
		return -ENOMEM;
	memcpy(job->ranks, ranks, job->nranks * sizeof(*job->ranks));
	cwd = strings_unpack(&c);
	job->argv = strings_unpack(&c);
	job->env = strings_unpack(&c);
	job->gateways = strings_unpack(&c);
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
