// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "libsci/team/boot_server.h"

#define VALUES_MAX	65536u		/* published values of one rank; a shrink has 4 */

/* A published value. @opens: join count of its rank; a later join is by another program */
struct value {
	struct value *next;
	unsigned int opens;
	size_t len;
	char name[SCI_BOOT_NAME_MAX + 1];
	char data[];
};

/* A rank that waits for a value. */
struct getter {
	struct getter *next;
	uint32_t rank;
	unsigned int opens;
	char name[SCI_BOOT_NAME_MAX + 1];
};

struct member {
	bool joined, dead, ended;
	bool contributed;		/* has contributed to the current gather */
	bool incomplete;		/* its program has been told that a rank has left */
	bool waiting;			/* has an entry in a list of getters */
	unsigned int opens;		/* how many times the rank has joined */
	unsigned int nvalues;
	struct value *values;
	struct getter *getters;		/* getters of this rank's values */
};

struct gather {
	char *data;			/* size * len bytes */
	size_t len;
	unsigned int count;		/* ranks that have contributed */
	int error;
};

struct boot_server {
	unsigned int size;
	unsigned int ndead;
	boot_send_fn *send;
	void *arg;
	struct boot_place *places;
	struct gather gather;
	uint64_t job;
	uint8_t key[SCI_BOOT_KEY_SIZE];
	struct member members[];
};

int boot_server_create(struct boot_server **server, const struct boot_place *places,
		       unsigned int size, boot_send_fn *send, void *arg)
{
	struct boot_server *s;

	if (!size || size > SCI_BOOT_RANKS_MAX)
		return -EINVAL;
	s = calloc(1, sizeof(*s) + size * sizeof(s->members[0]));
	if (!s)
		return -ENOMEM;
	s->size = size;
	s->send = send;
	s->arg = arg;
	s->places = malloc(size * sizeof(*places));
	if (!s->places || getrandom(s->key, sizeof(s->key), 0) != sizeof(s->key) ||
	    getrandom(&s->job, sizeof(s->job), 0) != sizeof(s->job)) {
		boot_server_destroy(s);
		return -ENOMEM;
	}
	s->job |= 1;			/* 0 means no job */
	memcpy(s->places, places, size * sizeof(*places));
	*server = s;
	return 0;
}

static void member_free(struct member *m)
{
	struct getter *g;
	struct value *v;

	while ((v = m->values)) {
		m->values = v->next;
		free(v);
	}
	while ((g = m->getters)) {
		m->getters = g->next;
		free(g);
	}
}

void boot_server_destroy(struct boot_server *s)
{
	if (!s)
		return;
	for (unsigned int i = 0; i < s->size; i++)
		member_free(&s->members[i]);
	free(s->gather.data);
	free(s->places);
	free(s);
}

static void server_send(struct boot_server *s, enum boot_type type, uint32_t rank, int arg,
			const void *payload, size_t len)
{
	const struct boot_frame f = { type, rank, arg, (uint32_t)len };

	s->send(s->arg, &f, payload);
}

/* ---- join and leave ---- */

static int rank_welcome(struct boot_server *s, uint32_t rank)
{
	size_t len = sizeof(struct boot_welcome) + s->size * sizeof(uint32_t);
	struct boot_welcome *w = calloc(1, len);

	if (!w)
		return -ENOMEM;
	w->rank = rank;
	w->size = s->size;
	w->job = s->job;
	memcpy(w->key, s->key, sizeof(w->key));
	for (uint32_t i = 0; i < s->size; i++) {
		bool local = s->places[i].host == s->places[rank].host;

		w->nodes[i] = s->places[i].node;
		w->local_size += local;
		w->local_rank += local && i < rank;
	}
	server_send(s, BOOT_WELCOME, rank, 0, w, len);
	free(w);
	for (uint32_t i = 0; i < s->size; i++) {
		const struct member *m = &s->members[i];

		if (m->dead || m->ended ||
		    (!m->joined && m->opens >= s->members[rank].opens)) {
			s->members[rank].incomplete = true;
			server_send(s, m->dead ? BOOT_DIED : BOOT_LEFT, rank, (int)i, NULL, 0);
		}
	}
	return 0;
}

/* Drop values that no rank can request any more. */
static void values_expire(struct member *m)
{
	struct value **p = &m->values, *v;

	while ((v = *p)) {
		if (v->opens + 1 >= m->opens) {
			p = &v->next;
			continue;
		}
		*p = v->next;
		m->nvalues--;
		free(v);
	}
}

static int rank_hello(struct boot_server *s, uint32_t rank, int version)
{
	struct member *m = &s->members[rank];

	if (version != BOOT_VERSION) {
		server_send(s, BOOT_WELCOME, rank, -EPROTO, NULL, 0);
		return 0;
	}
	/* an earlier program of this rank has ended without a BYE */
	if (m->joined)
		boot_server_ended(s, rank, true);
	m->ended = false;
	m->joined = true;
	m->incomplete = false;
	m->opens++;
	values_expire(m);
	return rank_welcome(s, rank);
}

/* Answer @g with @v (NULL: -ECONNRESET), and free @g, which is in no list. */
static void getter_end(struct boot_server *s, struct getter *g, const struct value *v)
{
	s->members[g->rank].waiting = false;
	server_send(s, BOOT_VALUE, g->rank, v ? 0 : -ECONNRESET, v ? v->data : NULL,
		    v ? v->len : 0);
	free(g);
}

/* Remove the getter of @rank, whose program has left or ended. */
static void getter_cancel(struct boot_server *s, uint32_t rank)
{
	for (uint32_t i = 0; s->members[rank].waiting && i < s->size; i++) {
		struct getter **p = &s->members[i].getters, *g;

		while ((g = *p) && g->rank != rank)
			p = &g->next;
		if (!g)
			continue;
		*p = g->next;
		free(g);
		s->members[rank].waiting = false;
	}
}

/* Refuse the getters of ranks that joined up to @opens times: @m will not publish their values. */
static void getters_refuse(struct boot_server *s, struct member *m, unsigned int opens)
{
	struct getter **p = &m->getters, *g;

	while ((g = *p)) {
		if (g->opens > opens) {
			p = &g->next;
			continue;
		}
		*p = g->next;
		getter_end(s, g, NULL);
	}
}

/*
 * Send LEFT of @rank to the ranks that joined up to @opens times. Drop the contributions of these
 * ranks to the current gather.
 */
static void rank_left(struct boot_server *s, uint32_t rank, unsigned int opens)
{
	for (uint32_t i = 0; i < s->size; i++) {
		struct member *m = &s->members[i];

		if (m->opens > opens)
			continue;
		if (m->contributed)
			s->gather.count--;
		m->contributed = false;
		if (i == rank || !m->joined)
			continue;
		m->incomplete = true;
		server_send(s, BOOT_LEFT, i, (int)rank, NULL, 0);
	}
	getters_refuse(s, &s->members[rank], opens);
}

/*
 * Handle a BYE. Ranks that have joined more often than @rank run a later program, which does not
 * wait for @rank.
 */
static int rank_bye(struct boot_server *s, uint32_t rank)
{
	s->members[rank].joined = false;
	getter_cancel(s, rank);
	rank_left(s, rank, s->members[rank].opens);
	return 0;
}

void boot_server_ended(struct boot_server *s, unsigned int rank, bool failed)
{
	struct member *m = &s->members[rank];
	bool had_joined = m->joined;

	if (m->ended)
		return;
	m->ended = true;
	m->joined = false;
	getter_cancel(s, rank);
	if (m->dead) {
		if (had_joined)
			rank_left(s, rank, UINT_MAX);
		return;
	}
	if (had_joined || failed) {
		m->dead = true;
		s->ndead++;
		server_send(s, BOOT_DIED, BOOT_ALL, (int)rank, NULL, 0);
	}
	rank_left(s, rank, UINT_MAX);
}

/* ---- gather ---- */

static void gather_complete(struct boot_server *s)
{
	struct gather *g = &s->gather;

	if (g->error)
		server_send(s, BOOT_GATHERED, BOOT_ALL, g->error, NULL, 0);
	else
		server_send(s, BOOT_GATHERED, BOOT_ALL, 0, g->data, g->len * s->size);
	free(g->data);
	*g = (struct gather){ 0 };
	for (unsigned int i = 0; i < s->size; i++)
		s->members[i].contributed = false;
}

static int rank_gather(struct boot_server *s, uint32_t rank, const void *data, size_t len)
{
	struct gather *g = &s->gather;

	/*
	 * The gather cannot complete: the rank receives DIED or LEFT. Other ranks may have joined
	 * again, and have contributed to another gather.
	 */
	if (s->ndead || s->members[rank].incomplete)
		return 0;
	if (s->members[rank].contributed || len > SCI_BOOT_GATHER_MAX)
		return -EPROTO;
	if (!g->count) {
		g->len = len;
		g->error = 0;
		free(g->data);
		g->data = malloc(len * s->size + 1);
		if (!g->data)
			return -ENOMEM;
	}
	if (len != g->len)
		g->error = -EINVAL;
	else if (len)
		memcpy(g->data + rank * len, data, len);
	s->members[rank].contributed = true;
	if (++g->count == s->size)
		gather_complete(s);
	return 0;
}

/* ---- values ---- */

static struct value **value_find(struct member *m, unsigned int opens, const char *name)
{
	struct value **p = &m->values;

	while (*p && ((*p)->opens != opens || strcmp((*p)->name, name)))
		p = &(*p)->next;
	return p;
}

/*
 * Return the length of the name at the start of @payload, with its final 0; or 0 if
 * there is none.
 */
static size_t name_size(const char *payload, size_t len)
{
	size_t n = len ? strnlen(payload, len) : 0;

	return n && n < len && n <= SCI_BOOT_NAME_MAX ? n + 1 : 0;
}

static void getters_answer(struct boot_server *s, struct member *m, const struct value *v)
{
	struct getter **p = &m->getters, *g;

	while ((g = *p)) {
		if (g->opens != v->opens || strcmp(g->name, v->name)) {
			p = &g->next;
			continue;
		}
		*p = g->next;
		getter_end(s, g, v);
	}
}

static int rank_publish(struct boot_server *s, uint32_t rank, const char *payload,
			size_t len)
{
	struct member *m = &s->members[rank];
	size_t n = name_size(payload, len);
	struct value *v, **old;

	if (!n || len - n > SCI_BOOT_VALUE_MAX)
		return -EPROTO;
	old = value_find(m, m->opens, payload);
	if (!*old && m->nvalues++ == VALUES_MAX)
		return -EPROTO;
	v = malloc(sizeof(*v) + len - n);
	if (!v)
		return -ENOMEM;
	memcpy(v->name, payload, n);
	v->opens = m->opens;
	v->len = len - n;
	memcpy(v->data, payload + n, v->len);
	v->next = *old ? (*old)->next : NULL;
	free(*old);
	*old = v;
	getters_answer(s, m, v);
	return 0;
}

static int rank_get(struct boot_server *s, uint32_t rank, uint32_t whose, const char *name,
		    size_t len)
{
	unsigned int opens = s->members[rank].opens;
	struct member *m;
	struct getter *g;
	struct value *v;

	if (whose >= s->size || !len || name_size(name, len) != len)
		return -EPROTO;
	if (s->members[rank].waiting)
		return -EPROTO;
	m = &s->members[whose];
	v = *value_find(m, opens, name);
	if (v || m->ended || (!m->joined && m->opens >= opens) || m->opens > opens) {
		server_send(s, BOOT_VALUE, rank, v ? 0 : -ECONNRESET, v ? v->data : NULL,
			    v ? v->len : 0);
		return 0;
	}
	g = malloc(sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->rank = rank;
	g->opens = opens;
	memcpy(g->name, name, len);
	g->next = m->getters;
	m->getters = g;
	s->members[rank].waiting = true;
	return 0;
}

int boot_server_frame(struct boot_server *s, const struct boot_frame *f, const void *payload)
{
	if (f->rank >= s->size)
		return -EPROTO;
	if (f->type == BOOT_HELLO)
		return rank_hello(s, f->rank, f->arg);
	if (!s->members[f->rank].joined)
		return -EPROTO;
	switch (f->type) {
	case BOOT_GATHER:
		return rank_gather(s, f->rank, payload, f->len);
	case BOOT_PUBLISH:
		return rank_publish(s, f->rank, payload, f->len);
	case BOOT_GET:
		return rank_get(s, f->rank, (uint32_t)f->arg, payload, f->len);
	case BOOT_BYE:
		return rank_bye(s, f->rank);
	case BOOT_ABORT:
		return f->arg > 0 && f->arg <= 256 ? f->arg : -EPROTO;
	default:
		return -EPROTO;
	}
}
