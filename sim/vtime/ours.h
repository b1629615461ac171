/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* The library's own protocols, measured between two nodes. */
#ifndef SIM_VTIME_OURS_H
#define SIM_VTIME_OURS_H

#include "sim/vtime/vtime.h"

enum ours_mode {
	OURS_PLAIN,			/* untagged, any buffers */
	OURS_TAGGED,
	OURS_ZCOPY,			/* untagged, exported buffers */
	/* modes with exported buffers that find the size from which zero-copy is faster */
	OURS_LINES,			/* lines at all sizes */
	OURS_DIRECT,			/* zero-copy at all sizes */
	OURS_TCP,			/* tagged, any buffers, over TCP; profiles with Ethernet */
};

/**
 * struct ours_result - averages for one message
 * @latency: half a round trip, picoseconds
 * @packets64, @packets16: store transactions
 * @reads: transactions that read remote memory
 * @barriers: waits for all stores
 * @bytes: bytes on the links or on Ethernet, with headers and answers
 * @frames: of Ethernet
 */
struct ours_result {
	double latency;
	double packets64;
	double packets16;
	double reads;
	double barriers;
	double bytes;
	double frames;
};

/*
 * Measure a ping-pong of @size bytes between two nodes. Return false, after a message, if the
 * ping-pong failed.
 */
bool ours_pingpong(const struct vt_profile *p, enum ours_mode mode,
		   size_t size, unsigned int rounds, struct ours_result *r);

#endif
