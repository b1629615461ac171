/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* The first frame of an adapter, which attaches the adapter to its node. */
#ifndef SIM_SWITCH_ATTACH_H
#define SIM_SWITCH_ATTACH_H

#include <stdbool.h>

struct conn;

/* Read the first frame of a connection. Return false if there is no frame. */
bool attach_frame(struct conn *c);

#endif
