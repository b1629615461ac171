/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Faults of a packet at a point. */
#ifndef SIM_SWITCH_FAULT_H
#define SIM_SWITCH_FAULT_H

#include <stdbool.h>

struct flight;
struct point;

/* Apply the faults of @pt to @p. Return whether @p leaves @pt now. */
bool fault_pass(struct point *pt, struct flight *p);

#endif
