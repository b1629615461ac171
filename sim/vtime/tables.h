/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the tables
 *
 * A row is a figure of one system on one machine: the value of its paper, the model's value,
 * the value of the library's protocols, and the limit of the profile's hardware. NAN: there is
 * no value.
 */
#ifndef SIM_VTIME_TABLES_H
#define SIM_VTIME_TABLES_H

#include "sim/vtime/ours.h"
#include "sim/vtime/vtime.h"

struct table_row {
	char profile[16];
	char system[24];
	char metric[40];
	double paper;
	double modelled;
	double ours;
	double bound;
};

/* A latency of this library on the current profile that has been computed already. */
struct table_known {
	enum ours_mode mode;
	size_t size;
	double ps;
};

struct table {
	struct table_row *row;
	size_t rows, room;
	struct table_known known[128];
	size_t n_known;
};

void table_add(struct table *t, const struct table_row *row);
void table_free(struct table *t);
bool table_write(const struct table *t, const char *path);

/* The functions below add the rows of one profile to @t, in the order of the document. */
bool tables_raw(struct table *t, const struct vt_profile *p);
bool tables_published(struct table *t, const struct vt_profile *p);
bool tables_crossovers(struct table *t, const struct vt_profile *p);
bool tables_sizes(struct table *t, const struct vt_profile *p);
bool tables_costs(struct table *t, const struct vt_profile *p);

#endif
