// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Wait for messages of tasks and for frames of the daemon at the same time. */

#include "libsci/pvm/lib.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define SPIN_US		20	/* microseconds of polling before a wait sleeps */
#define ROUNDS		64u	/* polls between two readings of the clock */
#define KEEN_US		4	/* microseconds of polling before a wait yields the CPU */
#define LOOKS		1024u	/* polls between two reads of the daemon's socket */
#define TAKEN_US	2	/* us of a yield that has run another process */
#define CROWDED		16u	/* yields without a switch until the CPU counts as free */
#define YIELDS		8u	/* yields of a wait on a crowded CPU before it sleeps */
#define SLEEPS		16u	/* waits that sleep at once after YIELDS yields */

int64_t pv_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- messages of tasks ---- */

/* The buffer that receives the next short message. */
static struct buf *spare;

static void info_set(struct buf *b, const struct sci_status *st)
{
	b->enc = (int)(st->imm & 3);
	b->info = (struct pvmminfo){
		.len = (int)st->len, .ctx = (int)(st->tag >> 32), .tag = (int)st->tag,
		.wid = (int)(st->imm >> 2 & WID_MAX), .enc = b->enc,
		.src = (int)(st->imm >> 32), .dst = pvmmytid,
	};
}

static struct buf *spare_get(void)
{
	if (!spare) {
		spare = pv_buf_new(PvmDataDefault);
		if (spare && !pv_buf_room(spare, TRY_SIZE)) {
			pv_buf_free(spare);
			spare = NULL;
		}
	}
	return spare;
}

/* Move a short message to a buffer of its size, so that a long inbox takes little memory. */
static struct buf *spare_fit(struct buf *b, size_t len)
{
	struct buf *small;
	uint8_t *room;

	if (len > TRY_SIZE / 8) {
		spare = NULL;
		b->len = len;
		return b;
	}
	small = pv_buf_new(b->enc);
	room = small ? pv_buf_room(small, len) : NULL;
	if (!small || (len && !room)) {
		pv_buf_free(small);
		spare = NULL;
		b->len = len;
		return b;
	}
	if (len)
		memcpy(room, b->data, len);
	return small;
}

/* Receive a complete message. Return: 1; 0: no message; -EBUSY: message_take_any() must be used. */
static int message_take_complete(void)
{
	struct buf *b = spare_get();
	struct sci_try_recv t;
	int n;

	if (!b)
		return -EBUSY;
	t = (struct sci_try_recv){ .buf = b->data, .size = b->cap, .ignore = UINT64_MAX };
	n = sci_try_trecvs(pv_me.ep, NULL, MSG_CONTEXT, &t, 1);
	if (n == -EAGAIN)
		return 0;
	if (n != 1 || t.status.len > b->cap)
		return -EBUSY;
	b = spare_fit(b, t.status.len);
	info_set(b, &t.status);
	pv_inbox_add(b);
	return 1;
}

/* Receive the oldest message in any state. Return: 1; 0: no message. */
static int message_take_any(void)
{
	struct sci_status st;
	struct sci_msg *msg;
	struct sci_peer *gone;
	struct buf *b;

	if (sci_tmatch(pv_me.ep, NULL, MSG_CONTEXT, 0, UINT64_MAX, 0, &msg, &st)) {
		while (!sci_peer_gone(pv_me.ep, &gone))
			pv_peer_gone(gone);
		return 0;
	}
	b = st.len <= INT32_MAX ? pv_buf_new(PvmDataDefault) : NULL;
	if (!b) {
		sci_msg_free(msg);
		return 1;
	}
	b->msg = msg;
	b->len = st.len;
	list_add_tail(&b->late, &pv_me.late);
	info_set(b, &st);
	if (st.len <= TRY_SIZE && pv_buf_fetch(b)) {
		pv_buf_free(b);
		return 1;
	}
	pv_inbox_add(b);
	return 1;
}

/* Receive the messages that have arrived. Return: the number of messages. */
static int messages_take_in(void)
{
	int n = 0, got;

	while ((got = message_take_complete()) == 1)
		n++;
	if (got == -EBUSY)
		while (message_take_any())
			n++;
	return n;
}

/* ---- sleeping ---- */

/* Return the timeout of poll() until @deadline, in milliseconds. */
static int deadline_to_ms(int64_t deadline)
{
	int64_t left;

	if (deadline < 0)
		return -1;
	left = (deadline - pv_now_us() + 999) / 1000;
	return left < 0 ? 0 : left > 1000000 ? 1000000 : (int)left;
}

/*
 * Sleep until a message of a task or of the daemon arrives. First call @done: progress may have
 * made the condition true.
 */
static int wait_sleep(bool (*done)(void *arg), void *arg, int64_t deadline)
{
	struct pollfd p[2] = {
		{ .fd = pv_me.sock, .events = POLLIN },
		{ .fd = sci_ep_fd(pv_me.ep), .events = POLLIN },
	};

	if (message_take_any() || done(arg))
		return 0;
	if (!sci_ep_arm(pv_me.ep))
		poll(p, 2, deadline_to_ms(deadline));
	return pv_request_read() < 0 ? PvmSysErr : 0;
}

/*
 * The state of a wait. A wait polls, yields the CPU once, then sleeps. It reads the time every
 * ROUNDS polls. If another process ran during the yield, the CPU is crowded: polling keeps the CPU
 * from the awaited process. On a crowded CPU a wait yields after each poll, and sleeps after YIELDS
 * yields. A yield takes one switch to the other process; a sleep also takes system calls on both
 * sides. Among many waiting tasks, yields do not reach the awaited process: the next SLEEPS waits
 * sleep at once.
 */
struct spin {
	unsigned int rounds;
	unsigned int yields;
	int64_t start;
};

static unsigned int crowded, sleepy;

static void spin_yield(int64_t now)
{
	sched_yield();
	if (pv_now_us() - now >= TAKEN_US)
		crowded = CROWDED;
	else if (crowded)
		crowded--;
}

/* Poll once. Return: true: sleep now. */
static bool spin_once(struct spin *s)
{
	int64_t now;

	if (!crowded && ++s->rounds % ROUNDS)
		return false;
	if (message_take_any())
		return false;
	if (pv_peers_unsettled())
		pv_peers_push();
	if (crowded && sleepy) {
		sleepy--;
		return true;
	}
	now = pv_now_us();
	if (crowded) {
		if (s->yields++ == YIELDS) {
			sleepy = SLEEPS;
			return true;
		}
		spin_yield(now);
		return false;
	}
	if (!s->start)
		s->start = now;
	if (now - s->start <= KEEN_US)
		return false;
	if (!s->yields++) {
		spin_yield(now);
		return false;
	}
	return now - s->start > SPIN_US;
}

int pv_wait_until(bool (*done)(void *arg), void *arg, int64_t deadline)
{
	struct spin s = { 0 };
	unsigned int looks = 0;
	int ret;

	if (done(arg))
		return 0;
	for (;;) {
		int n = messages_take_in();

		if (done(arg))
			return 0;
		if (!deadline || (deadline > 0 && pv_now_us() >= deadline)) {
			/* poll once more, now with the sources that need a system call */
			while (message_take_any())
				;
			/* a program may only poll: the senders of long messages wait for it */
			if (!list_empty(&pv_me.late))
				pv_bufs_fetch();
			if (pv_request_read() < 0)
				return PvmSysErr;
			if (pv_peers_unsettled())
				pv_peers_push();
			return done(arg) ? 0 : PvmNoData;
		}
		/* receive long messages: their senders wait, perhaps also the awaited task */
		if (!list_empty(&pv_me.late)) {
			pv_bufs_fetch();
			continue;
		}
		/* read the daemon's socket even if messages of tasks arrive all the time */
		if (!(++looks % LOOKS) && pv_request_read() < 0)
			return PvmSysErr;
		if (n || !spin_once(&s))
			continue;
		s = (struct spin){ 0 };
		ret = wait_sleep(done, arg, deadline);
		if (ret)
			return done(arg) ? 0 : ret;
	}
}

/* ---- the descriptor for the program's own loop ---- */

/*
 * Arm pv_me.watch, the one descriptor for the endpoint and the daemon's socket. An armed endpoint's
 * descriptor becomes readable. If the inbox has new messages, or the endpoint cannot be armed because
 * a message has arrived, @watch must be readable at once: it then also watches whether the daemon's
 * socket is writable, which is always true.
 */
static void watch_arm(void)
{
	struct epoll_event e = { .events = EPOLLIN };

	if (pv_me.unseen || message_take_any() || sci_ep_arm(pv_me.ep))
		e.events |= EPOLLOUT;
	if (e.events != pv_me.watch_events &&
	    !epoll_ctl(pv_me.watch, EPOLL_CTL_MOD, pv_me.sock, &e))
		pv_me.watch_events = e.events;
}

int pv_watch_begin(void)
{
	struct epoll_event e = { .events = EPOLLIN };

	if (pv_me.watch < 0) {
		pv_me.watch = epoll_create1(EPOLL_CLOEXEC);
		if (pv_me.watch < 0)
			return -errno;
		if (epoll_ctl(pv_me.watch, EPOLL_CTL_ADD, pv_me.sock, &e) ||
		    epoll_ctl(pv_me.watch, EPOLL_CTL_ADD, sci_ep_fd(pv_me.ep), &e)) {
			pv_watch_end();
			return -ENOMEM;
		}
		pv_me.watch_events = e.events;
	}
	watch_arm();
	return 0;
}

void pv_watch_end(void)
{
	if (pv_me.watch >= 0)
		close(pv_me.watch);
	pv_me.watch = -1;
}

/* Arm pv_me.watch again, if the program has it, after a call of the endpoint. */
void pv_watch_renew(void)
{
	if (pv_me.watch >= 0 && pv_me.sock >= 0)
		watch_arm();
}

int pv_wait_for(bool (*done)(void *arg), void *arg, int64_t deadline)
{
	int ret = pv_wait_until(done, arg, deadline);

	pv_watch_renew();
	return ret;
}
