/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Starting daemons on other hosts. hosts.c calls these functions. */
#ifndef LIBSCI_PVM_START_H
#define LIBSCI_PVM_START_H

#include <stdbool.h>

#include "libsci/pvm/daemon/daemon.h"

/*
 * Start the daemon of @h, with a secret that it says hello with: on a virtual node of
 * this machine by itself, elsewhere through a remote shell. Return: 0 or a PVM error.
 */
int host_start(struct host *h);

/* Return the command line that starts @h by a hoster. The caller frees it. NULL: no memory. */
char *host_command(const struct host *h);

/* Return whether @name may be given to a remote shell. */
bool host_name_good(const char *name);

/* Read the secret from the standard input of a daemon that was started. */
int secret_read(char secret[33]);
/* Make a secret, in a daemon that a hoster has started. Return: 0 or -errno. */
int secret_make(char secret[33]);

/*
 * A request to add @n hosts; it is answered and freed when all have a result. The answer
 * is a frame, or SM_ADDACK with @ctx and @wid.
 */
struct add *add_new(const struct frame_head *head, int n);
struct add *add_new_managed(const struct frame_head *head, int n, int ctx, int wid);
/* Set the result of host @slot. -1: the start of all hosts has begun. */
void add_done(struct add *a, int slot, int result);

#endif
