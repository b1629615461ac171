/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Processes of Madeleine in virtual time, in place of libsci/madeleine/world.c. */
#ifndef SELFTESTS_SIM_VTIME_WORLD_H
#define SELFTESTS_SIM_VTIME_WORLD_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/madeleine/internal.h"
#include "sim/vtime/vtime.h"

#define WORLDS		3
#define EXCHANGES	8
#define EXCHANGE_BYTES	16

static struct mad_world worlds[WORLDS];
static unsigned int exchanges[WORLDS];		/* begun by each process */
static struct {
	uint8_t bytes[WORLDS][EXCHANGE_BYTES];
	unsigned int here;
} exchanged[EXCHANGES];

struct mad_world *mad_world(void)
{
	return &worlds[vt_index(vt_current())];
}

/* Exchange through memory of the test; vt_wait() lets the other nodes run. */
int mad_world_exchange(struct mad_world *w, const void *mine, size_t len, void *all)
{
	unsigned int number = exchanges[w->rank]++;
	struct vt_node *n = vt_current();

	if (len > EXCHANGE_BYTES || number >= EXCHANGES)
		return -EINVAL;
	memcpy(exchanged[number].bytes[w->rank], mine, len);
	exchanged[number].here++;
	while (exchanged[number].here < (unsigned int)w->size)
		vt_wait(n, vt_touches(n), vt_clock(n) + VT_US);
	for (int i = 0; i < w->size; i++)
		memcpy((uint8_t *)all + (size_t)i * len, exchanged[number].bytes[i], len);
	return 0;
}

/* Reset the exchanges. Call this before the programs start. */
static inline void worlds_begin(void)
{
	memset(exchanges, 0, sizeof(exchanges));
	memset(exchanged, 0, sizeof(exchanged));
}

static inline struct mad_world *world_open(struct vt_node *n, int size)
{
	struct mad_world *w = &worlds[vt_index(n)];

	*w = (struct mad_world){
		.rank = (int)vt_index(n), .size = size, .net = &mad_net_msg,
	};
	return w;
}

/* A channel between two processes, and its connections. */
struct pair {
	mad_channel_t channel;
	mad_connection_t in, out;
	struct mad_reception reception;
	ntbx_process_t process[WORLDS];
};

static inline struct mad_stream *stream_new(int rank)
{
	struct mad_stream *s = tbx_alloc(1, sizeof(*s));

	mad_gate_init(&s->gate);
	s->link.rank = rank;
	return s;
}

static inline void pair_open(struct pair *p, int me, int other)
{
	*p = (struct pair){
		.channel = {
			.name = (char *)"model", .not_private = tbx_true, .process_lrank = me,
			.in_connection_darray = tbx_darray_init(),
			.out_connection_darray = tbx_darray_init(),
			.pc = mad_pc_new(), .reception = &p->reception,
		},
		.in = { .remote_rank = other, .channel = &p->channel },
		.out = { .remote_rank = other, .channel = &p->channel },
	};
	mad_gate_init(&p->reception.gate);
	for (int i = 0; i < WORLDS; i++) {
		p->process[i].global_rank = i;
		mad_pc_add(p->channel.pc, &p->process[i]);
	}
	p->in.stream = stream_new(other);
	p->out.stream = stream_new(other);
	tbx_darray_expand_and_set(p->channel.in_connection_darray, other, &p->in);
	tbx_darray_expand_and_set(p->channel.out_connection_darray, other, &p->out);
}

static inline void pair_close(struct pair *p)
{
	mad_stream_free(p->in.stream);
	mad_stream_free(p->out.stream);
	tbx_darray_free(p->channel.in_connection_darray);
	tbx_darray_free(p->channel.out_connection_darray);
	mad_pc_free(p->channel.pc);
	mad_gate_fini(&p->reception.gate);
	free(p->reception.buf);
}

#endif
