/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the papers' protocols
 *
 * The protocols are programs that store and load as the authors describe, without
 * libsci/msg. The profile has the costs of stores, flushes, waits, copies, polls and locks. A
 * cost of only one system is a constant beside its code, with a source.
 *
 *	DECK	Low-latency and zero-copy message passing protocols for
 *		SCI-based clusters; on profile B
 *	MPICH	MPICH for SCI-connected Clusters; on profile A
 *
 *	N	MPICH/Madeleine: a multi-protocol implementation of MPI; over TCP, on profile A
 *
 * For ScaMPI, and for Madeleine over SCI, there are only published figures.
 */
#ifndef SIM_VTIME_PAPERS_H
#define SIM_VTIME_PAPERS_H

#include "sim/vtime/vtime.h"

enum paper_system {
	DECK_1,				/* one packet; 0 to 62 bytes */
	DECK_2,				/* buffer, flush, control packet */
	DECK_3,				/* zero-copy */
	DECK,				/* DECK_1 up to 62 bytes, DECK_2 up to 1024, DECK_3 */
	MPICH_SHORT,			/* one packet; 0 to 47 bytes */
	MPICH_EAGER,
	MPICH_RENDEZVOUS,
	MPICH,				/* short up to 47, eager up to 32768 */
	MPICH_EQUATIONS,		/* the equations of the SCI-MPICH paper */
	SCAMPI,				/* SCAMPI to MPICH_MADELEINE: published figures only */
	MADELEINE,
	MPICH_MADELEINE,
	MADELEINE_TCP,
	MPICH_MADELEINE_TCP,
	PAPER_SYSTEMS
};

const char *papers_name(enum paper_system sys);

/* Return whether a system uses TCP: it is modelled on profiles with Ethernet. */
bool papers_use_tcp(enum paper_system sys);

/*
 * Return half a round trip of @bytes, in picoseconds; 0: the system is not modelled for this
 * number of bytes, or the run failed (with a message).
 */
double papers_latency(const struct vt_profile *p, enum paper_system sys,
		      size_t bytes);

/* Return the largest bandwidth of powers of two up to 1 MB, in 10^6 bytes a second. */
double papers_bandwidth(const struct vt_profile *p, enum paper_system sys);

enum paper_metric {
	PAPER_LATENCY,			/* smallest latency, microseconds */
	PAPER_BANDWIDTH,		/* largest bandwidth, 10^6 bytes a second */
};

/**
 * struct paper_figure - a figure of a paper
 * @profile: the machine of the measurement, or the machine most like it
 * @bytes: with PAPER_LATENCY: length of the message
 * @value: the published value; bandwidths of 2^20 bytes a second are converted to 10^6
 * @within: part of @value by which the model may differ; a comment of the model gives the reason
 *	for more than a tenth.
 */
struct paper_figure {
	const char *profile;
	enum paper_system system;
	enum paper_metric metric;
	size_t bytes;
	double value;
	double within;
	const char *source;
};

extern const struct paper_figure papers_published[];
extern const size_t papers_published_count;

/* Return the modelled value in the figure's unit; 0: the system is not modelled. */
double papers_modelled(const struct vt_profile *p,
		       const struct paper_figure *f);

/* ---- the equations of MPICH for SCI-connected Clusters, IV.A ---- */

/**
 * struct mpich_parameters - table 1 of the SCI-MPICH paper; in seconds and bytes a second
 * @l_packet: S_packet / B_cr(S_packet), and L_rw(S_packet): 64 bytes written
 * @b_cr: remote bandwidth of large blocks, whose first 64 bytes take @l_packet
 * @b_cl: local bandwidth of large blocks, whose start takes @l_cl
 * @l_header: S_header / B_lr(S_header): 12 bytes read
 * @l_lr: L_lr(4)
 * @l_rw: L_rw(4)
 * @s_buf, @s_block: bytes of the buffer and of a block of the rendezvous
 */
struct mpich_parameters {
	double l_packet;
	double b_cr;
	double b_cl;
	double l_cl;
	double l_header;
	double l_lr;
	double l_rw;
	size_t s_buf;
	size_t s_block;
};

/* Compute the parameters from a profile: the time of a store is the sum of its parts. */
struct mpich_parameters mpich_parameters(const struct vt_profile *p);

/* Return the result of equation (1), (3) or (5) in seconds. */
double mpich_equation_short(const struct mpich_parameters *m, size_t n);
double mpich_equation_eager(const struct mpich_parameters *m, size_t n);
double mpich_equation_rendezvous(const struct mpich_parameters *m, size_t n);

/* Return the result of equation (2), (4) or (6) in bytes a second. */
double mpich_equation_short_rate(const struct mpich_parameters *m, size_t n);
double mpich_equation_eager_rate(const struct mpich_parameters *m, size_t n);
double mpich_equation_rendezvous_rate(const struct mpich_parameters *m,
				      size_t n);

#endif
