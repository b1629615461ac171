/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Clients of the control socket: a command is a line; its answer ends with "ok" or an error. */
#ifndef SIM_SWITCH_CONTROL_H
#define SIM_SWITCH_CONTROL_H

struct fabric;

void control_accept(struct fabric *f, int fd);
void control_close_all(struct fabric *f);

#endif
