/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* A fabric whose connects to other nodes fail with a given error and delay. */
#ifndef SELFTESTS_MSG_UNANSWERED_H
#define SELFTESTS_MSG_UNANSWERED_H

#include <unistd.h>

#include "libsci/msg/endpoint.h"
#include "selftests/harness.h"

#define UNANSWERED_SEGMENTS	1u
#define UNANSWERED_INTERRUPTS	2u

/**
 * struct unanswered - failing requests of this process
 * @left: requests that still fail
 * @error: error of a failing request
 * @ms: time that a failing request takes, in milliseconds
 * @calls: requests that have failed
 * @ended: when the last failing request ended, in microseconds
 * @took: how long it took, in microseconds
 * @rest: least pause before another failing request, in units of @took
 */
static struct unanswered {
	const struct sci_fabric_ops *real;
	struct sci_fabric_ops ops;
	_Atomic unsigned int left;	/* threads of the endpoint change this */
	int error;
	unsigned int ms;
	_Atomic unsigned int calls;
	_Atomic uint64_t ended, took, rest;
} unanswered;

static inline uint64_t unanswered_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static inline bool is_unanswered(void)
{
	struct unanswered *u = &unanswered;
	uint64_t now = unanswered_now_us();

	if (!u->left)
		return false;
	u->left--;
	if (u->calls++ && u->took && (now - u->ended) / u->took < u->rest)
		u->rest = (now - u->ended) / u->took;
	usleep(u->ms * 1000);
	u->ended = unanswered_now_us();
	u->took = u->ended - now;
	return true;
}

static inline int unanswered_rseg_connect(struct sci_fabric *f,
					  const struct sci_rseg_param *p,
					  struct sci_rseg **out)
{
	return is_unanswered() ? unanswered.error :
				 unanswered.real->rseg.connect(f, p, out);
}

static inline int unanswered_rintr_connect(struct sci_fabric *f,
					   const struct sci_rintr_param *p,
					   struct sci_rintr **out)
{
	return is_unanswered() ? unanswered.error :
				 unanswered.real->rintr.connect(f, p, out);
}

/* Let @n requests of kind @what (UNANSWERED_*) fail with @error. */
static inline void unanswered_begin(struct sci_ep *ep, unsigned int what,
				    unsigned int n, int error)
{
	struct unanswered *u = &unanswered;

	*u = (struct unanswered){
		.real = ep->ops, .ops = *ep->ops, .left = n, .error = error,
		.rest = UINT64_MAX,
	};
	if (what & UNANSWERED_SEGMENTS)
		u->ops.rseg.connect = unanswered_rseg_connect;
	if (what & UNANSWERED_INTERRUPTS)
		u->ops.rintr.connect = unanswered_rintr_connect;
	ep->ops = &u->ops;
	ep->fabric->ops = ep->ops;
}

static inline void unanswered_end(struct sci_ep *ep)
{
	ep->ops = unanswered.real;
	ep->fabric->ops = ep->ops;
}

#endif
