/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* The functions that the files of the program's calls, progress and waiting share. */
#ifndef LIBSCI_MSG_API_H
#define LIBSCI_MSG_API_H

#include "libsci/msg/proto/proto.h"

/* progress.c */
int msg_progress(struct sci_ep *ep);
int msg_look(struct sci_ep *ep, int (*fn)(void *arg), void *arg, int timeout);
bool msg_announce_sleep(struct sci_ep *ep);
void msg_woken(struct sci_ep *ep);

/* wait.c */

/**
 * msg_wait() - make progress until a condition holds
 * @fn: checks the condition and returns -EAGAIN until it holds
 * @timeout: in ms; negative: no limit
 *
 * Context: msg_wait() and @fn are called with the endpoint's lock held.
 * Return: the result of @fn, or -ETIMEDOUT.
 */
int msg_wait(struct sci_ep *ep, int (*fn)(void *arg), void *arg, int timeout);

/* Wait as msg_wait() does, and also call @fn every @ms milliseconds. */
int msg_wait_often(struct sci_ep *ep, int (*fn)(void *arg), void *arg,
		   int timeout, uint32_t ms);

/* connect_calls.c */
void connect_cancel(struct sci_req *req);

/* peer_calls.c */
void peers_flush(struct sci_ep *ep);
int closings_poll(struct sci_ep *ep);

/* param.c */
int params_init(struct sci_ep *ep);

#endif
