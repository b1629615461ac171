/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Frames from an attached adapter. */
#ifndef SIM_SWITCH_RECEIVE_H
#define SIM_SWITCH_RECEIVE_H

#include <stdbool.h>

struct conn;

/* Read and handle the next frame. Return false if there is no frame, or the connection ends. */
bool receive_frame(struct conn *c);

#endif
