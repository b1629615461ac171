// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: replaced parts of the library
 *
 * The protocols are the library's own objects.  This file replaces the functions of
 * these modules, which use real time, threads and descriptors:
 *
 *	libsci/msg/api/wait.c	waits and the clock: a wait polls, and runs the
 *				simulation if the poll finds no work
 *	libsci/msg/conn/wake.c	descriptors: no thread sleeps on them
 *	libsci/msg/conn/keeper.c	a thread for programs that make no calls: programs of
 *				the simulation make calls
 *	libsci/msg/conn/callers.c	threads for calls to other nodes: a program makes
 *				these calls itself
 *	libsci/fabric/core/fault.c	stores to remote memory use the adapter; lost packets
 *				are lost on the links
 *	libsci/fabric/core/fabric.c	the fabric of a call is that of the node whose program runs
 *
 * libsci/fabric/net runs unchanged, see sockets.c.
 *
 * A program's clock advances by the cost of a line or of a copy when the library composes a
 * line, takes a line, or copies.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "libsci/fabric/net/net.h"
#include "libsci/msg/api/api.h"
#include "sim/vtime/internal.h"
#include "sim/vtime/tcp.h"

/* ---- libsci/msg/conn/line.c, libsci/pio: charged ---- */

static struct line_ops real_lines;

static void charged_put(volatile struct msg_line *slot,
			const struct line_head *head, const void *buf,
			size_t len, uint64_t id, uint64_t last)
{
	struct vt_node *n = vt_current();

	vt_busy(n, n->sim->profile.line_put);
	real_lines.put(slot, head, buf, len, id, last);
}

static bool charged_get(const volatile struct msg_line *slot, uint64_t id,
			struct msg_line *out)
{
	struct vt_node *n = vt_current();

	if (!real_lines.get(slot, id, out))
		return false;
	vt_busy(n, n->sim->profile.line_take);
	return true;
}

/* Copy, and charge the time. Bytes of up to a line come from a line that was just loaded. */
static void charged_copy(void *dst, const void *src, size_t len)
{
	struct vt_node *n = vt_current();

	if (len > LINE_PAYLOAD) {
		vt_copy(n, dst, src, len);
		return;
	}
	memcpy(dst, src, len);
	vt_busy(n, n->sim->profile.line_put * len / LINE_BYTES);
}

/* Install the operations that charge time, once, before the first endpoint is open. */
static void time_charge(void)
{
	if (real_lines.put)
		return;
	line_init();
	real_lines = line_ops;
	line_ops = (struct line_ops){ charged_put, charged_get };
	sci_pio_current_copy = charged_copy;
}

/* ---- libsci/fabric/core/fabric.c ---- */

int sci_fabric_open_at(struct sci_fabric **out, const struct sci_fabric_place *at)
{
	(void)at;
	if (!vt_current())
		return -ENODEV;
	time_charge();
	*out = fabric_of(vt_current());
	return 0;
}

int sci_fabric_share(struct sci_fabric **out, const struct sci_fabric_place *at)
{
	return sci_fabric_open_at(out, at);
}

int sci_fabric_open(struct sci_fabric **out)
{
	return sci_fabric_open_at(out, NULL);
}

void sci_fabric_close(struct sci_fabric *f)
{
	(void)f;
}

/* ---- libsci/fabric/core/fault.c ---- */

_Atomic bool sci_fault_enabled = true;

void sci_fault_forget(volatile void *addr, size_t len)
{
	(void)addr;
	(void)len;
}

void sci_fault_later(void)
{
	vt_check(vt_current());
}

void sci_fault_write(volatile void *dst, const void *src, size_t len,
		     struct sci_link_status *link)
{
	(void)link;
	vt_store(vt_current(), dst, src, len);
}

void sci_fault_line(volatile void *dst, const void *src,
		    struct sci_link_status *link)
{
	(void)link;
	vt_store(vt_current(), dst, src, SCI_PIO_LINE);
}

void sci_fault_check(struct sci_rseg_status *st)
{
	(void)st;
}

/* Report that the link is up for ever: no fault of the net fabric is injected. */
bool sci_fault_link(uint64_t now_ms, uint64_t *next)
{
	(void)now_ms;
	*next = UINT64_MAX;
	return false;
}

/* Do nothing: the store barrier of the fabric waits until packets in flight have arrived. */
void sci_fault_deliver(void)
{
}

/* ---- libsci/msg/conn/keeper.c ---- */

int retransmit_start(struct sci_ep *ep)
{
	(void)ep;
	return 0;
}

void retransmit_stop(struct sci_ep *ep)
{
	(void)ep;
}

void retransmit_wake(struct sci_ep *ep)
{
	(void)ep;
}

/* ---- libsci/msg/conn/callers.c ---- */

void callers_init(struct sci_ep *ep)
{
	(void)ep;
}

void callers_done(struct msg_call *c)
{
	(void)c;
}

void callers_check(struct sci_ep *ep)
{
	(void)ep;
}

void callers_stop(struct sci_ep *ep)
{
	refusals_end(ep);
}

void callers_fini(struct sci_ep *ep)
{
	(void)ep;
}

/* Make a call at once: every node answers, after the time of the profile. */
void callers_make(struct msg_call *c)
{
	c->begin = msg_now_ms();
	call_run(c);
	/* a later round of progress takes the answer */
	vt_touch(vt_current());
}

uint64_t msg_now_ms(void)
{
	return vt_clock(vt_current()) / VT_MS;
}

/* Return a nonce: any number that differs from those of other endpoints. */
uint64_t msg_nonce(void)
{
	return vt_random(vt_current()->sim) | 1;
}

/* ---- libsci/msg/conn/wake.c ---- */

_Atomic uint32_t msg_fork_gen;

void wake_fork_init(void)
{
}

int wake_init(struct sci_ep *ep)
{
	(void)ep;
	return 0;
}

void wake_fini(struct sci_ep *ep)
{
	(void)ep;
}

/* Do nothing: the event that wakes the endpoint touches its node. */
void wake_self(struct sci_ep *ep)
{
	(void)ep;
}

void wake_waiters(struct sci_ep *ep)
{
	(void)ep;
}

void wake_all(struct sci_ep *ep)
{
	msg_changed(ep);
}

/* ---- libsci/msg/api/wait.c ---- */

int sci_ep_fd(struct sci_ep *ep)
{
	(void)ep;
	return -EOPNOTSUPP;
}

int sci_ep_arm(struct sci_ep *ep)
{
	(void)ep;
	return -EOPNOTSUPP;
}

static int poll_once(struct sci_ep *ep, struct vt_node *n)
{
	const struct net *net = ep->net ? net_of(ep->net) : NULL;
	uint32_t polls = net ? net->polls : 0;
	int done;

	/* charge a load of the last word of the next line of each polled ring */
	vt_busy(n, (ep->n_hot ? ep->n_hot : 1) * n->sim->profile.load_local);
	vt_sync(n);
	done = vt_sockets_serve(n);
	/* not every round polls the net, but no event ends the wait for bytes that have arrived */
	do
		done += msg_progress(ep);
	while (!done && net && ep->net_looks && net->polls == polls);
	return done;
}

/* Return the limit of a wait: only polls find lost packets, as no thread checks for them. */
static uint64_t wait_until(struct sci_ep *ep, uint64_t until,
			   uint64_t clock, uint32_t often_ms)
{
	uint64_t often = often_ms ? clock + (uint64_t)often_ms * VT_MS :
				    VT_NEVER;
	int due = dials_due(ep);

	if (due < INT_MAX && clock + (uint64_t)due * VT_MS < often)
		often = clock + (uint64_t)(due ? due : 1) * VT_MS;

	if (ep->retry || !list_empty(&ep->busy) || ep->n_suspect)
		often = clock + VT_MS < often ? clock + VT_MS : often;
	return until < often ? until : often;
}

int msg_wait_often(struct sci_ep *ep, int (*fn)(void *arg), void *arg,
		   int timeout, uint32_t often_ms)
{
	struct vt_node *n = vt_current();
	uint64_t until = timeout < 0 ? VT_NEVER :
			 vt_clock(n) + (uint64_t)timeout * VT_MS;
	unsigned int completions = ep->completions;
	int ret = fn(arg);

	while (ret == -EAGAIN) {
		uint64_t seen = vt_touches(n);
		int done = poll_once(ep, n);

		if (ep->completions != completions || often_ms) {
			completions = ep->completions;
			ret = fn(arg);
			if (ret != -EAGAIN)
				break;
		}
		if (vt_clock(n) >= until)
			return -ETIMEDOUT;
		if (!done)
			vt_wait(n, seen, wait_until(ep, until, vt_clock(n),
						    often_ms));
	}
	return ret;
}

int msg_wait(struct sci_ep *ep, int (*fn)(void *arg), void *arg, int timeout)
{
	return msg_wait_often(ep, fn, arg, timeout, 0);
}
