/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Starting daemons on other hosts. hosts.c calls these functions. */
#ifndef LIBSCI_PVM_START_H
#define LIBSCI_PVM_START_H

#include <stdbool.h>

#include "libsci/pvm/daemon/daemon.h"

/*
 * Start the daemon of @h with a new secret for its OP_HELLO: on a virtual node of this machine
 * directly, elsewhere through a remote shell. Return: 0 or a PVM error.
 */
int host_start(struct host *h);

/*
 * Keep @pid, the daemon or remote shell of a host that is removed. If it does not end by itself, its
 * process group gets SIGTERM: no remote shell of a dead machine remains.
 */
void starter_keep(pid_t pid);
/* Handle the end of process @pid. Return: false: the process is not kept. */
bool starter_ended(pid_t pid);
bool starters_left(void);
/* Send SIGTERM to processes that have had their time. Return: the next deadline; INT64_MAX: none. */
int64_t starters_expire(int64_t now);
void starters_kill(int sig);

/* Return the command line that starts @h by a hoster. The caller frees it. NULL: no memory. */
char *host_command(const struct host *h);

/* Return whether @name may be given to a remote shell. */
bool host_name_good(const char *name);

/* Read this daemon's secret from its standard input. */
int secret_read(char secret[33]);
/* Generate a secret of 32 hexadecimal digits. Return: 0 or -errno. */
int secret_make(char secret[33]);

/*
 * Create a request to add @n hosts. It is answered and freed when all hosts have a result. The
 * answer is a frame, or SM_ADDACK with @ctx and @wid.
 */
struct add *add_new(const struct frame_head *head, int n);
struct add *add_new_managed(const struct frame_head *head, int n, int ctx, int wid);
/* Set the result of host @slot. A @slot of -1: the start of all hosts has begun. */
void add_done(struct add *a, int slot, int result);

#endif
