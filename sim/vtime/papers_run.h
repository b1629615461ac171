/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Code that the papers' protocols share: a ping-pong, and polling. */
#ifndef SIM_VTIME_PAPERS_RUN_H
#define SIM_VTIME_PAPERS_RUN_H

#include "sim/vtime/vtime.h"

#define PAPER_LINE	64u

static inline size_t paper_lines(size_t bytes)
{
	return (bytes + PAPER_LINE - 1) / PAPER_LINE * PAPER_LINE;
}

/**
 * struct paper_side - a process of a ping-pong
 * @near: memory of this side to which the other side stores
 * @far: map of the other side's @near
 * @buf: buffer for a message, larger than the largest message
 * @size: length of the messages
 * @sent, @got: number of messages or packets until now; the protocol counts them
 */
struct paper_side {
	struct vt_node *node;
	const struct vt_profile *profile;
	void *near;
	volatile void *far;
	uint8_t *buf;
	size_t size;
	uint32_t sent, got;
	uint32_t more_sent, more_got;
};

/**
 * struct paper_protocol - a protocol
 * @memory: length of @near, in bytes
 * @max: bytes of a message
 * @send: sends a message from @buf
 * @recv: receives a message and returns its place
 */
struct paper_protocol {
	size_t (*memory)(size_t bytes);
	size_t max;
	void (*send)(struct paper_side *s);
	const uint8_t *(*recv)(struct paper_side *s);
};

extern const struct paper_protocol deck_1, deck_2, deck_3;
extern const struct paper_protocol mpich_short, mpich_eager, mpich_rendezvous;

/* Return half a round trip in picoseconds; 0: the run failed, and an error has been printed. */
double papers_pingpong(const struct vt_profile *p,
		       const struct paper_protocol *proto, size_t bytes);

/*
 * The same for Madeleine over TCP, or with @is_mpi for ch_mad; see papers_tcp.c. The profile has
 * Ethernet.
 */
double papers_tcp(const struct vt_profile *p, bool is_mpi, size_t bytes);

/*
 * Poll @byte until it is @value. The program polls @byte and @others other bytes in turn, so on
 * average it reads half of the others before it finds the value.
 */
void paper_poll(struct paper_side *s, const volatile uint8_t *byte,
		uint8_t value, unsigned int others);

/* Return the last byte of packet @i, which differs from the last byte of packet @i - 1. */
static inline uint8_t paper_id(uint32_t i)
{
	return (uint8_t)(i % 255 + 1);
}

#endif
