// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Madeleine and its MPI device ch_mad over TCP, as "MPICH/Madeleine" describes them: "N".
 *
 * A pack is a write() of its own, an unpack is a read(). A receiver waits for a message in select()
 * (N 3.3), and for the rest of a message in read(). ch_mad packs a header, EXPRESS, and a body. A body
 * beyond the switch point is sent after a request and its answer, which have a header only (N 4.2).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/vtime/papers.h"
#include "sim/vtime/papers_run.h"
#include "sim/vtime/tcp.h"

#define HANDLING	(7 * (uint64_t)VT_US)	/* N 5.2: "messages handling", for a message */
#define HEADER		16u			/* bytes; no source */
#define SWITCH_POINT	65536u			/* N 4.2.2 */

#define WARM_UP		2u
#define ROUNDS		4u

struct tcp_pingpong {
	bool is_mpi;
	size_t bytes;
	struct vt_tcp *end[2];
	uint8_t *buf[2];		/* HEADER bytes, then a message */
	double latency;
	bool failed;
};

/* A side of the ping-pong, while its program runs. */
struct tcp_side {
	struct tcp_pingpong *pp;
	struct vt_node *node;
	struct vt_tcp *end;
	uint8_t *buf;
	unsigned int sent, got;		/* messages */
};

static void side_sleep(struct tcp_side *s, bool (*ready)(const struct vt_tcp *end))
{
	bool slept = false;

	for (;;) {
		uint64_t seen = vt_touches(s->node);

		vt_sync(s->node);
		if (ready(s->end))
			break;
		slept = true;
		vt_wait(s->node, seen, VT_NEVER);
	}
	if (slept)
		vt_busy(s->node, vt_profile_of(s->node)->tcp_switch);
}

static void side_select(struct tcp_side *s)
{
	side_sleep(s, vt_tcp_readable);
	vt_busy(s->node, vt_profile_of(s->node)->tcp_call);
}

static void side_write(struct tcp_side *s, size_t from, size_t len)
{
	while (len && !s->pp->failed) {
		const struct iovec iov = { s->buf + from, len };
		ssize_t n = vt_tcp_send(s->end, &iov, 1);

		s->pp->failed |= n < 0 && n != -EAGAIN;
		if (n > 0) {
			from += (size_t)n;
			len -= (size_t)n;
		}
		if (len)
			side_sleep(s, vt_tcp_writable);
	}
}

static void side_read(struct tcp_side *s, size_t from, size_t len)
{
	while (len && !s->pp->failed) {
		const struct iovec iov = { s->buf + from, len };
		ssize_t n;

		side_sleep(s, vt_tcp_readable);
		n = vt_tcp_recv(s->end, &iov, 1);
		s->pp->failed |= n <= 0;
		from += (size_t)n;
		len -= (size_t)n;
	}
}

/* ---- messages ---- */

static void packs_send(struct tcp_side *s, size_t body)
{
	if (s->pp->is_mpi) {
		vt_busy(s->node, HANDLING);
		side_write(s, 0, HEADER);
	}
	side_write(s, HEADER, body);
}

static void packs_receive(struct tcp_side *s, size_t body)
{
	side_select(s);
	if (s->pp->is_mpi)
		side_read(s, 0, HEADER);
	side_read(s, HEADER, body);
}

static uint8_t side_pattern(unsigned int message, size_t at)
{
	return (uint8_t)(message * 7 + at * 31 + at / 251);
}

static void message_send(struct tcp_side *s)
{
	const struct tcp_pingpong *pp = s->pp;

	for (size_t i = 0; i < pp->bytes; i++)
		s->buf[HEADER + i] = side_pattern(s->sent, i);
	s->sent++;
	if (pp->is_mpi && pp->bytes > SWITCH_POINT) {
		packs_send(s, 0);
		packs_receive(s, 0);
	}
	packs_send(s, pp->bytes);
}

static void message_receive(struct tcp_side *s)
{
	struct tcp_pingpong *pp = s->pp;

	if (pp->is_mpi && pp->bytes > SWITCH_POINT) {
		packs_receive(s, 0);
		packs_send(s, 0);
	}
	packs_receive(s, pp->bytes);
	for (size_t i = 0; i < pp->bytes; i++)
		pp->failed |= s->buf[HEADER + i] != side_pattern(s->got, i);
	s->got++;
}

static void tcp_play(struct vt_node *n, void *arg)
{
	struct tcp_pingpong *pp = arg;
	bool first = !vt_index(n);
	struct tcp_side s = {
		.pp = pp, .node = n, .end = pp->end[!first], .buf = pp->buf[!first],
	};
	uint64_t begin = 0;

	for (unsigned int i = 0; i < WARM_UP + ROUNDS; i++) {
		if (i == WARM_UP)
			begin = vt_clock(n);
		if (first)
			message_send(&s);
		message_receive(&s);
		if (!first)
			message_send(&s);
	}
	if (first)
		pp->latency = (double)(vt_clock(n) - begin) / (2 * ROUNDS);
}

double papers_tcp(const struct vt_profile *p, bool is_mpi, size_t bytes)
{
	struct tcp_pingpong pp = { .is_mpi = is_mpi, .bytes = bytes };
	struct vt_sim *s = vt_new(p, 2, NULL, 1);
	bool done = s && vt_ethernet(s);

	if (done)
		pp.end[0] = vt_tcp_pair(vt_node(s, 0), vt_node(s, 1), &pp.end[1]);
	for (unsigned int i = 0; done && i < 2; i++) {
		pp.buf[i] = calloc(1, HEADER + bytes);
		done = pp.buf[i];
	}
	for (unsigned int i = 0; done && i < 2; i++)
		vt_start(vt_node(s, i), tcp_play, &pp);
	done = done && vt_run(s) && !pp.failed;
	if (s)
		vt_free(s);
	free(pp.buf[0]);
	free(pp.buf[1]);
	if (!done)
		fprintf(stderr, "sci-model: %zu bytes over TCP failed\n", bytes);
	return done ? pp.latency : 0;
}
