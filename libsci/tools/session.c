// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Exchange words and blocks with a connected process. */
#define _GNU_SOURCE

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "libsci/base/barrier.h"
#include "session.h"

/* A wait spins for SPIN_NS, then also yields the CPU for YIELD_NS, then sleeps. */
#define SPIN_NS		50000u
#define YIELD_NS	200000u		/* a wake-up may cost 100 us */
#define SLICE_MS	100u		/* ms between checks whether the peer has died */
#define LINK_MS		30000u		/* ms that a link may be down */
#define CHUNK_MIN	64u		/* bytes of a packet */
#define CHUNK_MAX	((size_t)256 << 10)
#define MAX_TRIES	10000u		/* limit for one chunk */

/* Read the events of the peer's segment. Return true if the peer has disconnected. */
static bool peer_has_disconnected(struct session *s, unsigned int timeout)
{
	sci_segment_cb_reason_t reason;
	sci_error_t err;

	while (!s->gone) {
		reason = SCIWaitForRemoteSegmentEvent(s->rseg, NULL, timeout,
						      0, &err);
		if (err == SCI_ERR_TIMEOUT)
			break;
		timeout = 0;
		if (err != SCI_ERR_OK || reason == SCI_CB_DISCONNECT ||
		    reason == SCI_CB_LOST)
			s->gone = true;
	}
	return s->gone;
}

/* Wait until the link is up again and the sequence is started. */
static int link_wait(struct session *s)
{
	uint64_t end = tool_now_ns() + LINK_MS * 1000000ull;
	sci_sequence_status_t st;
	sci_error_t err;

	for (;;) {
		st = SCIStartSequence(s->seq, 0, &err);
		if (st == SCI_SEQ_OK)
			return 0;
		if (st != SCI_SEQ_PENDING || peer_has_disconnected(s, SLICE_MS))
			return -ECONNRESET;
		if (tool_now_ns() > end)
			return -ENETDOWN;
	}
}

bool session_gone(struct session *s)
{
	return peer_has_disconnected(s, 0);
}

/* Check that all stores since the last call have arrived. Return -EAGAIN if stores were lost. */
static int session_settle(struct session *s, unsigned int *tries)
{
	sci_error_t err;
	int ret;

	switch (SCICheckSequence(s->seq, 0, &err)) {
	case SCI_SEQ_OK:
		return 0;
	case SCI_SEQ_RETRIABLE:
		s->resent++;
		return ++*tries > MAX_TRIES ? -EIO : -EAGAIN;
	case SCI_SEQ_PENDING:
		ret = link_wait(s);
		return ret ? ret : -EAGAIN;
	case SCI_SEQ_NOT_RETRIABLE:
		break;
	}
	return -ECONNRESET;
}

uint64_t session_load(struct session *s, const uint64_t *word)
{
	SCIFlushReadBuffers(s->ctl_seq);
	return sci_load_acquire(word);
}

/* Store a word into the peer's ctl, and repeat the store until the word has arrived. */
static int word_put(struct session *s, uint64_t *word, uint64_t value)
{
	unsigned int tries = 0;
	int ret;

	do {
		sci_store_release(word, value);
		ret = session_settle(s, &tries);
	} while (ret == -EAGAIN);
	return ret;
}

/*
 * Write in chunks. A chunk shrinks with each loss and grows with each success: if one packet in
 * ten is lost, a block of 256 KiB never arrives whole.
 */
int session_write(struct session *s, size_t off, const void *src, size_t len)
{
	const char *p = src;
	unsigned int tries = 0;
	sci_error_t err;
	size_t n;
	int ret;

	while (len) {
		n = len < s->chunk ? len : s->chunk;
		SCIMemCpy(s->seq, (void *)p, s->rmap, off, n, 0, &err);
		if (err != SCI_ERR_OK)
			return peer_has_disconnected(s, 0) ? -ECONNRESET : -EIO;
		ret = session_settle(s, &tries);
		if (ret == -EAGAIN) {
			s->chunk = n / 2 < CHUNK_MIN ? CHUNK_MIN
						     : n / 2 & -CHUNK_MIN;
			continue;
		}
		if (ret)
			return ret;
		tries = 0;
		s->chunk = s->chunk > CHUNK_MAX / 2 ? CHUNK_MAX : 2 * s->chunk;
		p += n;
		off += n;
		len -= n;
	}
	return 0;
}

/*
 * Wake the peer if it sleeps. This side stores a word and then reads `sleeps`. The peer raises
 * `sleeps` and then reads the word. Each side executes a barrier between its store and its load, so
 * at least one side reads the other side's store.
 */
static void sleeper_wake(struct session *s)
{
	uint64_t sleeps;

	SCIStoreBarrier(s->seq, 0);
	sci_full_barrier();
	sleeps = session_load(s, &s->mine->sleeps);
	if (sleeps == s->answered)
		return;
	s->answered = sleeps;
	SCITriggerInterrupt(s->rintr, 0, NULL);
}

int session_progress(struct session *s, uint64_t progress)
{
	int ret = word_put(s, &s->theirs->progress, progress);

	if (!ret)
		sleeper_wake(s);
	return ret;
}

int session_status(struct session *s, enum session_status status)
{
	uint64_t word = (uint64_t)s->lintr_no << 32 | status;
	int ret = word_put(s, &s->theirs->status, word);

	/* send the interrupt always: before GO the client does not raise `sleeps` */
	if (!ret)
		SCITriggerInterrupt(s->rintr, 0, NULL);
	return ret;
}

uint64_t session_seen(struct session *s)
{
	return session_load(s, &s->mine->progress);
}

enum session_status session_seen_status(struct session *s)
{
	return (enum session_status)(uint32_t)session_load(s, &s->mine->status);
}

static bool session_has_news(struct session *s, uint64_t seen)
{
	return session_seen(s) != seen ||
	       session_seen_status(s) > SESSION_GO;
}

/* Return the ns to spin. On a single CPU the peer runs only while this process does not. */
static uint64_t spin_ns(void)
{
	static int cpus;
	cpu_set_t set;

	if (!cpus)
		cpus = sched_getaffinity(0, sizeof(set), &set) ? 1
							       : CPU_COUNT(&set);
	return cpus > 1 ? SPIN_NS : 0;
}

static bool session_spin(struct session *s, uint64_t seen)
{
	uint64_t begin = tool_now_ns(), spent = 0, polite = spin_ns();
	unsigned int i;

	while (spent < YIELD_NS) {
		for (i = 0; i < 64; i++) {
			if (session_has_news(s, seen))
				return true;
			sci_cpu_relax();
		}
		spent = tool_now_ns() - begin;
		if (spent > polite)
			sched_yield();
	}
	return false;
}

int session_wait(struct session *s, uint64_t seen, unsigned int timeout)
{
	uint64_t end = tool_now_ns() + timeout * 1000000ull;
	int ret;

	if (session_spin(s, seen))
		return 0;
	do {
		ret = word_put(s, &s->theirs->sleeps, ++s->slept);
		SCIStoreBarrier(s->seq, 0);
		sci_full_barrier();
		if (session_has_news(s, seen))
			return 0;
		if (ret)
			return ret;
		SCIWaitForInterrupt(s->lintr, SLICE_MS, 0, NULL);
		/* a peer's last stores count even after its death: check them first */
		ret = peer_has_disconnected(s, 0) ? -ECONNRESET : 0;
		if (session_has_news(s, seen))
			return 0;
		if (ret)
			return ret;
	} while (timeout == SCI_INFINITE_TIMEOUT || tool_now_ns() < end);
	return -ETIMEDOUT;
}

const char *session_strerror(int err)
{
	switch (err) {
	case -ECONNRESET:
		return "is gone, or the connection is lost";
	case -ENETDOWN:
		return "cannot be reached: the link is down";
	case -ETIMEDOUT:
		return "does not answer";
	case -EIO:
		return "gets nothing: packets are lost again and again";
	default:
		return strerror(-err);
	}
}

const char *session_refusal(enum session_status status)
{
	switch (status) {
	case SESSION_EXISTS:
		return "a file of that name exists there (recv --force replaces it)";
	case SESSION_NAME:
		return "it does not accept that file name (recv -o gives another)";
	case SESSION_NOSPC:
		return "there is not enough room";
	case SESSION_IO:
		return "it cannot write the file";
	case SESSION_DIGEST:
		return "the checksum is wrong";
	case SESSION_PROTOCOL:
		return "it did not understand what we sent";
	default:
		return "an unknown reason";
	}
}
