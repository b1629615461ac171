// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The equations (1) to (6) of MPICH for SCI-connected Clusters, IV.A: the limit of its
 * protocols, without the costs of the layers above the protocols.
 */
#include "sim/vtime/papers.h"
#include "sim/vtime/papers_mpich.h"

#define S_PACKET	64u
#define S_HEADER	12u
#define CONTROL		16u	/* C: of an eager message's packet */

/* Return N / B_cr(N): the time of the first packet, and of the packets that follow it. */
static double remote_copy_time(const struct mpich_parameters *m, size_t n)
{
	if (!n)
		return 0;
	return m->l_packet +
	       (n > S_PACKET ? (double)(n - S_PACKET) / m->b_cr : 0);
}

static double local_copy_time(const struct mpich_parameters *m, size_t n)
{
	return n ? m->l_cl + (double)n / m->b_cl : 0;
}

double mpich_equation_short(const struct mpich_parameters *m, size_t n)
{
	return remote_copy_time(m, S_PACKET) + m->l_lr + m->l_header +
	       local_copy_time(m, n);
}

double mpich_equation_eager(const struct mpich_parameters *m, size_t n)
{
	return remote_copy_time(m, n) + mpich_equation_short(m, CONTROL - S_HEADER) +
	       local_copy_time(m, n) + m->l_rw;
}

double mpich_equation_rendezvous(const struct mpich_parameters *m, size_t n)
{
	size_t parts = (n + m->s_buf - 1) / m->s_buf;
	size_t blocks = n / m->s_block;
	size_t rest;

	/* N_block is negative for a message without a block */
	blocks = blocks > parts ? blocks - parts : 0;
	rest = n - m->s_block * blocks;
	return (double)(1 + 2 * parts) * mpich_equation_short(m, 16) +
	       (double)blocks * (remote_copy_time(m, m->s_block) + m->l_packet) +
	       (double)parts * local_copy_time(m, m->s_block) +
	       remote_copy_time(m, rest);
}

static double equation_rate(size_t n, double time)
{
	return (double)n / time;
}

double mpich_equation_short_rate(const struct mpich_parameters *m, size_t n)
{
	return equation_rate(n, mpich_equation_short(m, n));
}

double mpich_equation_eager_rate(const struct mpich_parameters *m, size_t n)
{
	return equation_rate(n, mpich_equation_eager(m, n));
}

double mpich_equation_rendezvous_rate(const struct mpich_parameters *m,
				      size_t n)
{
	return equation_rate(n, mpich_equation_rendezvous(m, n));
}

struct mpich_parameters mpich_parameters(const struct vt_profile *p)
{
	return (struct mpich_parameters){
		.l_packet = (double)(p->bus_fpu + vt_way(p, S_PACKET)) * 1e-12,
		.b_cr = S_PACKET / ((double)p->bus_fpu * 1e-12),
		.b_cl = (double)p->copy_rate,
		.l_cl = (double)p->copy_setup * 1e-12,
		.l_header = (double)p->line_take * 1e-12,
		.l_lr = (double)p->load_local * 1e-12,
		/* a store, its flush, and the poll that sees it */
		.l_rw = (double)(2 * p->bus_word + vt_way(p, 16) +
				 p->load_local) * 1e-12,
		.s_buf = MPICH_BUFFER,
		.s_block = MPICH_BLOCK,
	};
}
