// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/vtime/papers_run.h"

#define WARM_UP		2u
#define SMALL		4096u
#define ROUNDS_SMALL	64u
#define ROUNDS_LARGE	2u
#define ROOM		128u		/* protocols copy whole packets */

struct pingpong {
	const struct paper_protocol *proto;
	struct paper_side side[2];
	size_t bytes;
	unsigned int rounds;
	double latency;
	bool wrong;
};

void paper_poll(struct paper_side *s, const volatile uint8_t *byte,
		uint8_t value, unsigned int others)
{
	vt_poll(s->node, byte, value);
	vt_busy(s->node, others * s->profile->load_local / 2);
}

static uint8_t copy_pattern(unsigned int round, size_t at)
{
	return (uint8_t)(round * 7 + at * 31 + at / 251);
}

static void papers_send_one(struct pingpong *pp, struct paper_side *s, unsigned int round)
{
	for (size_t i = 0; i < pp->bytes; i++)
		s->buf[i] = copy_pattern(round, i);
	pp->proto->send(s);
}

static void papers_recv_one(struct pingpong *pp, struct paper_side *s, unsigned int round)
{
	const uint8_t *message = pp->proto->recv(s);

	for (size_t i = 0; i < pp->bytes; i++)
		if (message[i] != copy_pattern(round, i))
			pp->wrong = true;
}

static void papers_play(struct vt_node *n, void *arg)
{
	struct pingpong *pp = arg;
	struct paper_side *s = &pp->side[vt_index(n)];
	bool first = !vt_index(n);
	uint64_t begin = 0;

	for (unsigned int i = 0; i < WARM_UP + pp->rounds; i++) {
		if (i == WARM_UP)
			begin = vt_clock(n);
		if (first)
			papers_send_one(pp, s, 2 * i);
		papers_recv_one(pp, s, 2 * i + first);
		if (!first)
			papers_send_one(pp, s, 2 * i + 1);
	}
	if (first)
		pp->latency = (double)(vt_clock(n) - begin) / 2 / pp->rounds;
}

/* Set up the memory of each process, and the map of it at the other process. */
static bool papers_set_up(struct pingpong *pp, struct vt_sim *sim)
{
	size_t memory = pp->proto->memory(pp->bytes);

	for (unsigned int i = 0; i < 2; i++) {
		struct paper_side *s = &pp->side[i];

		s->node = vt_node(sim, i);
		s->profile = vt_profile_of(s->node);
		s->size = pp->bytes;
		s->buf = calloc(1, pp->bytes + ROOM);
		pp->side[!i].far = vt_share(s->node, vt_node(sim, !i), memory,
					    SCI_PCI_ATT_PREFETCH, &s->near);
		if (!s->buf || !pp->side[!i].far)
			return false;
		vt_start(s->node, papers_play, pp);
	}
	return true;
}

double papers_pingpong(const struct vt_profile *p,
		       const struct paper_protocol *proto, size_t bytes)
{
	struct pingpong pp = {
		.proto = proto, .bytes = bytes,
		.rounds = bytes > SMALL ? ROUNDS_LARGE : ROUNDS_SMALL,
	};
	struct vt_sim *s;
	bool done;

	if (bytes > proto->max)
		return 0;
	s = vt_new(p, 2, NULL, 1);
	if (!s)
		return 0;
	done = papers_set_up(&pp, s) && vt_run(s);
	vt_free(s);
	free(pp.side[0].buf);
	free(pp.side[1].buf);
	if (!done || pp.wrong)
		fprintf(stderr, "sci-model: %zu bytes: %s\n", bytes,
			done ? "other data came" : "it waits for ever");
	return done && !pp.wrong ? pp.latency : 0;
}
