/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* sci-switch ctl: a client of the control socket. */
#ifndef SIM_SWITCH_CTL_H
#define SIM_SWITCH_CTL_H

/* Send a command and print the answer. @word: socket and command. Return: the exit status. */
int ctl(int words, char **word);

#endif
