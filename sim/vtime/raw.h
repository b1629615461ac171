/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the hardware alone
 *
 * Programs on two nodes that only store and load show whether the profile's figures for
 * store, bus and link add up to the measured values of its machine.
 */
#ifndef SIM_VTIME_RAW_H
#define SIM_VTIME_RAW_H

#include "sim/vtime/vtime.h"

/* Times are picoseconds, rates bytes a second. A result of 0: the run failed, with a message. */

/**
 * struct raw_write - a remote write
 * @latency: time from the first store until the polling program sees the last byte
 * @packets64, @packets16: store transactions
 */
struct raw_write {
	double latency;
	double packets64;
	double packets16;
};

/* Write @bytes from the beginning of a line. Flush if the last line is not full. */
struct raw_write raw_write(const struct vt_profile *p, size_t bytes);

double raw_read(const struct vt_profile *p, size_t bytes);
double raw_read_rate(const struct vt_profile *p, size_t bytes);

/* Return the rate of writing the same block again and again, in bursts or as memcpy() does. */
double raw_write_rate(const struct vt_profile *p, size_t block, bool bursts);

double raw_copy_rate(const struct vt_profile *p, size_t bytes);
double raw_poll(const struct vt_profile *p);

/* ---- measured values ---- */

enum raw_what {
	RAW_WRITE,			/* microseconds */
	RAW_READ,
	RAW_POLL,
	RAW_BURSTS,			/* 10^6 bytes a second */
	RAW_WORDS,
	RAW_COPY,
};

/**
 * struct raw_figure - a raw figure of a paper
 * @tolerance: part of @value by which the model may differ
 */
struct raw_figure {
	const char *profile;
	enum raw_what what;
	size_t bytes;
	double value;
	double tolerance;
	const char *source;
};

extern const struct raw_figure raw_published[];
extern const size_t raw_published_count;

/* Return the modelled value in the figure's unit. */
double raw_modelled(const struct vt_profile *p, const struct raw_figure *f);

#endif
