// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/fabric/net/pipe.h"

#include <errno.h>
#include <string.h>

#include "libsci/base/host.h"
#include "libsci/fabric/core/fault.h"

#define PIPE_SEGMENT	0x4e000000u	/* the first id to try */
#define PIPE_SIZE	(sizeof(struct sci_pipe_head) + SCI_PIPE_RING)
#define PIPE_TELL	(SCI_PIPE_RING / 8)
#define WRITE_TRIES	4
#define SILENT_MS	100u		/* a loss that takes longer: the other node is silent */
#define SILENT_PAUSE_MS	1000u
#define LOSSY_PIECE	1024u		/* bytes that are written again after a loss */

static size_t ring_at(uint64_t position)
{
	return position & (SCI_PIPE_RING - 1);
}

/* ---- writes to the other side ---- */

static void silence_set(struct sci_pipe *p, uint64_t ms)
{
	if (p->silent_ms == ms)
		return;
	p->silent_ms = ms;
	if (p->silence)
		p->silence(p);
}

/*
 * Try to write to the other side. Return false if packets were lost. A write to a node that does
 * not answer takes the adapter's time limit, while the caller has its locks. After such a write,
 * all tries fail at once for SILENT_PAUSE_MS.
 */
static bool pipe_try(struct sci_pipe *p, void *dst, const void *src, size_t len)
{
	uint64_t begin = p->lossy ? sci_now_ms() : 0;
	uint32_t errors = sci_link_errors(p->link);

	if (p->silent_ms && begin - p->silent_ms < SILENT_PAUSE_MS)
		return false;
	sci_remote_write(dst, src, len, p->link);
	sci_remote_barrier(p->fabric, p->rseg);
	if (!p->lossy || errors == sci_remote_errors(p->link)) {
		silence_set(p, 0);
		return true;
	}
	if (sci_now_ms() - begin > SILENT_MS)
		silence_set(p, sci_now_ms());
	return false;
}

static bool pipe_write(struct sci_pipe *p, void *dst, const void *src, size_t len)
{
	for (int i = 0; i < WRITE_TRIES; i++)
		if (pipe_try(p, dst, src, len))
			return true;
	return false;
}

static void word_write(struct sci_pipe *p, uint64_t *word, uint64_t value)
{
	pipe_write(p, word, &value, sizeof(value));
}

/* Load a word that the other side stores. */
static uint64_t word_read(struct sci_pipe *p, const uint64_t *word)
{
	sci_link_refresh(p->link, word, sizeof(*word));
	return sci_load_acquire(word);
}

/* Trigger the other side's interrupt if it has asked for this wake-up. */
static void pipe_wake(struct sci_pipe *p, int what)
{
	uint64_t armed;

	sci_full_barrier();
	armed = word_read(p, &p->in->armed[what]);
	if (armed == p->served[what])
		return;
	p->served[what] = armed;
	p->fabric->ops->rintr.trigger(p->rintr, NULL, 0);
}

static void pipe_ask_wake(struct sci_pipe *p, int what)
{
	word_write(p, &p->out->armed[what], ++p->armed[what]);
	sci_full_barrier();
}

static bool pipe_is_gone(struct sci_pipe *p)
{
	return atomic_load(&p->fabric->ops->rseg.status(p->rseg)->gone);
}

/* ---- bytes and room ---- */

/* Return the number of bytes in our ring; -ECONNRESET: the other side's count is invalid. */
static ssize_t pipe_bytes_in(struct sci_pipe *p)
{
	uint64_t n = word_read(p, &p->in->written) - p->taken;

	return n <= SCI_PIPE_RING ? (ssize_t)n : -ECONNRESET;
}

static ssize_t pipe_room_out(struct sci_pipe *p)
{
	uint64_t n = p->sent - word_read(p, &p->in->taken);

	return n <= SCI_PIPE_RING ? (ssize_t)(SCI_PIPE_RING - n) : -ECONNRESET;
}

/* Call @look; after 0 and with @arm, ask for a wake-up and call @look again. -EAGAIN: still 0. */
static ssize_t pipe_look_armed(struct sci_pipe *p, ssize_t (*look)(struct sci_pipe *), int what,
			       bool arm)
{
	ssize_t n = look(p);

	if (!n && arm) {
		pipe_ask_wake(p, what);
		n = look(p);
	}
	return n ? n : -EAGAIN;
}

/* Return the number of bytes to receive; 0: no bytes, and the other side has ended the pipe. */
static ssize_t pipe_look_in(struct sci_pipe *p, bool arm)
{
	bool gone = pipe_is_gone(p);
	ssize_t n = pipe_look_armed(p, pipe_bytes_in, SCI_PIPE_DATA, arm);

	return n == -EAGAIN && gone ? 0 : n;
}

static ssize_t pipe_look_out(struct sci_pipe *p, bool arm)
{
	ssize_t n = pipe_is_gone(p) ? -ECONNRESET :
		    pipe_look_armed(p, pipe_room_out, SCI_PIPE_ROOM, arm);

	p->full = n == -EAGAIN;
	return n;
}

void sci_pipe_put(struct sci_pipe *p, size_t len)
{
	p->sent += len;
	sci_release_barrier();
	word_write(p, &p->out->written, p->sent);
	pipe_wake(p, SCI_PIPE_DATA);
}

void sci_pipe_take(struct sci_pipe *p, size_t len)
{
	p->taken += len;
	if (p->taken - p->told < PIPE_TELL)
		return;
	p->told = p->taken;
	sci_release_barrier();
	word_write(p, &p->out->taken, p->taken);
	pipe_wake(p, SCI_PIPE_ROOM);
}

/*
 * Write to the ring. Return the number of bytes written: less than @len if packets were lost. The
 * longer a piece, the more probable is a loss in each try: after a loss, the pieces are short.
 */
static size_t ring_write(struct sci_pipe *p, uint64_t position, const uint8_t *src, size_t len)
{
	size_t done = 0, piece = len;

	while (done < len) {
		size_t at = ring_at(position + done), n = SCI_PIPE_RING - at;
		uint8_t *dst = p->out->ring + at;

		n = n < len - done ? n : len - done;
		n = n < piece ? n : piece;
		if (n <= LOSSY_PIECE ? pipe_write(p, dst, src + done, n) :
				       pipe_try(p, dst, src + done, n))
			done += n;
		else if (n <= LOSSY_PIECE)
			break;
		else
			piece = LOSSY_PIECE;
	}
	return done;
}

ssize_t sci_pipe_send(struct sci_pipe *p, const struct iovec *iov, size_t n, bool arm)
{
	ssize_t room = pipe_look_out(p, arm);
	size_t done = 0;

	for (size_t i = 0; room > 0 && i < n && done < (size_t)room; i++) {
		size_t len = iov[i].iov_len, left = (size_t)room - done, written;

		len = len < left ? len : left;
		written = ring_write(p, p->sent + done, iov[i].iov_base, len);
		done += written;
		if (written < len)
			break;
	}
	if (room <= 0)
		return room;
	if (!done)
		return -EAGAIN;
	sci_pipe_put(p, done);
	return (ssize_t)done;
}

ssize_t sci_pipe_peek(struct sci_pipe *p, const void **data, bool arm)
{
	ssize_t n = pipe_look_in(p, arm), end = (ssize_t)(SCI_PIPE_RING - ring_at(p->taken));

	n = n < end ? n : end;
	*data = p->in->ring + ring_at(p->taken);
	if (n > 0)
		sci_link_refresh(p->link, *data, (size_t)n);
	return n;
}

ssize_t sci_pipe_room(struct sci_pipe *p, void **room, bool arm)
{
	ssize_t n, end = (ssize_t)(SCI_PIPE_RING - ring_at(p->sent));

	if (!p->direct)
		return -EOPNOTSUPP;
	n = pipe_look_out(p, arm);
	*room = p->out->ring + ring_at(p->sent);
	return n < end ? n : end;
}

/* Copy bytes from the ring, up to its end. */
static void ring_load(struct sci_pipe *p, void *dst, uint64_t position, size_t len)
{
	const uint8_t *src = p->in->ring + ring_at(position);

	if (!len)
		return;
	sci_link_refresh(p->link, src, len);
	memcpy(dst, src, len);
}

ssize_t sci_pipe_recv(struct sci_pipe *p, const struct iovec *iov, size_t n, bool arm)
{
	ssize_t have = pipe_look_in(p, arm);
	size_t done = 0;

	for (size_t i = 0; have > 0 && i < n && done < (size_t)have; i++) {
		size_t len = iov[i].iov_len, left = (size_t)have - done, first;
		uint64_t at = p->taken + done;

		len = len < left ? len : left;
		first = SCI_PIPE_RING - ring_at(at);
		first = first < len ? first : len;
		if (!len)
			continue;
		ring_load(p, iov[i].iov_base, at, first);
		ring_load(p, (uint8_t *)iov[i].iov_base + first, at + first, len - first);
		done += len;
	}
	if (have <= 0)
		return have;
	sci_pipe_take(p, done);
	return (ssize_t)done;
}

bool sci_pipe_arm(struct sci_pipe *p)
{
	pipe_ask_wake(p, SCI_PIPE_DATA);
	pipe_ask_wake(p, SCI_PIPE_ROOM);
	return pipe_bytes_in(p) || (p->full && pipe_room_out(p)) || pipe_is_gone(p);
}

void sci_pipe_repeat(struct sci_pipe *p)
{
	if (!p->lossy)
		return;
	word_write(p, &p->out->written, p->sent);
	word_write(p, &p->out->taken, p->taken);
	word_write(p, &p->out->armed[SCI_PIPE_DATA], ++p->armed[SCI_PIPE_DATA]);
	word_write(p, &p->out->armed[SCI_PIPE_ROOM], ++p->armed[SCI_PIPE_ROOM]);
	if (!p->silent_ms)
		p->fabric->ops->rintr.trigger(p->rintr, NULL, 0);
}

/* ---- setup and end ---- */

uint64_t sci_pipe_number(const struct sci_pipe *p)
{
	return (uint64_t)p->segment << 32 | p->interrupt;
}

void sci_pipe_answer(struct sci_pipe *p)
{
	word_write(p, &p->out->peer, sci_pipe_number(p));
	p->fabric->ops->rintr.trigger(p->rintr, NULL, 0);
}

uint64_t sci_pipe_answered(struct sci_pipe *p)
{
	return word_read(p, &p->in->peer);
}

int sci_pipe_begin(struct sci_pipe *p, struct sci_fabric *fabric, unsigned int adapter,
		   sci_event_fn event, void *owner)
{
	const struct sci_fabric_ops *ops = fabric->ops;
	struct sci_lseg_param seg = {
		.id = PIPE_SEGMENT, .size = PIPE_SIZE, .flags = SCI_LSEG_AUTO_ID,
		.event = event, .owner = owner,
	};
	struct sci_lintr_param intr = { .adapter = adapter, .event = event, .owner = owner };
	void *addr;
	int ret;

	*p = (struct sci_pipe){ .fabric = fabric, .adapter = adapter };
	p->link = ops->query.link(fabric, adapter);
	p->lossy = p->link->map != SCI_PIO_MAP_CACHED || atomic_load(&sci_fault_enabled);
	p->direct = !p->lossy && !p->link->cache;
	ret = ops->lseg.create(fabric, &seg, &p->lseg);
	if (ret)
		return ret;
	ret = ops->lseg.map(p->lseg, 0, PIPE_SIZE, 0, &addr);
	if (!ret) {
		p->in = addr;
		p->segment = ops->lseg.id(p->lseg);
		ret = ops->lintr.create(fabric, &intr, &p->lintr);
		p->interrupt = intr.number;
	}
	ret = ret ? ret : ops->lseg.export(p->lseg, adapter);
	if (ret)
		sci_pipe_end(p);
	return ret;
}

int sci_pipe_connect(struct sci_pipe *p, unsigned int node, uint64_t peer,
		     uint32_t timeout, sci_event_fn event, void *owner)
{
	const struct sci_fabric_ops *ops = p->fabric->ops;
	const struct sci_rseg_param seg = {
		.adapter = p->adapter, .node = node, .id = (uint32_t)(peer >> 32),
		.timeout = timeout, .event = event, .owner = owner,
	};
	const struct sci_rintr_param intr = {
		.adapter = p->adapter, .node = node, .number = (uint32_t)peer,
		.timeout = timeout,
	};
	void *addr;
	int ret = ops->rseg.connect(p->fabric, &seg, &p->rseg);

	if (ret)
		p->rseg = NULL;
	else if (ops->rseg.size(p->rseg) != PIPE_SIZE)
		ret = -EPROTO;
	ret = ret ? ret : ops->rseg.map(p->rseg, 0, PIPE_SIZE, 0, &addr);
	if (ret)
		return ret;
	p->out = addr;
	ret = ops->rintr.connect(p->fabric, &intr, &p->rintr);
	if (ret)
		p->rintr = NULL;
	return ret;
}

void sci_pipe_end(struct sci_pipe *p)
{
	const struct sci_fabric_ops *ops;

	if (!p->fabric)
		return;
	ops = p->fabric->ops;
	if (p->rintr)
		ops->rintr.disconnect(p->rintr);
	if (p->out)
		ops->unmap(p->fabric, p->out, PIPE_SIZE);
	if (p->rseg)
		ops->rseg.disconnect(p->rseg);
	if (p->lintr)
		ops->lintr.destroy(p->lintr);
	if (p->in)
		ops->unmap(p->fabric, p->in, PIPE_SIZE);
	if (p->lseg)
		ops->lseg.destroy(p->lseg);
	*p = (struct sci_pipe){ 0 };
}
