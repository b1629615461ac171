// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include "sim/vtime/tcp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/vtime/internal.h"

#define ETHER_OVERHEAD	38u		/* IEEE 802.3: preamble 8, header 14, CRC 4, gap 12 */
#define ETHER_MIN	46u		/* IEEE 802.3: the shortest packet of a frame */
#define ETHER_MTU	1500u
#define TCP_HEADERS	52u		/* IPv4 20, TCP 20, timestamps 12 */
#define TCP_SEGMENT	(ETHER_MTU - TCP_HEADERS)

struct vt_tcp {
	struct vt_tcp *next;		/* sim->tcp */
	struct vt_node *node;
	struct vt_tcp *peer;
	uint8_t *buf;			/* received bytes, by position modulo tcp_buffer */
	/* positions in the stream that this end sends */
	uint64_t sent;
	uint64_t acked;
	/* positions in the stream that this end receives */
	uint64_t arrived;
	uint64_t told;			/* last acknowledged */
	uint64_t taken;
	bool refused;			/* the last send found too little room */
	bool closed;
	bool ended;			/* the other end's last byte has arrived */
};

/* A packet, or an acknowledgement without bytes. */
struct vt_frame {
	struct vt_frame *next;		/* sim->frames */
	struct vt_frame *spare;		/* sim->spare_frames */
	struct vt_tcp *to;
	size_t len;
	uint64_t ack;
	bool end;			/* no byte follows */
};

/* ---- the network ---- */

/* Return the bytes of the packet, which the card moves by DMA, for @len bytes of a program. */
static uint64_t packet_bytes(size_t len)
{
	return TCP_HEADERS + len > ETHER_MIN ? TCP_HEADERS + len : ETHER_MIN;
}

static uint64_t frame_bytes(size_t len)
{
	return ETHER_OVERHEAD + packet_bytes(len);
}

static uint64_t frame_time(const struct vt_profile *p, size_t len)
{
	return vt_transfer(frame_bytes(len), p->ether_rate);
}

static uint64_t frame_dma(const struct vt_profile *p, size_t len)
{
	return p->mem_setup + vt_transfer(packet_bytes(len), p->mem_rate);
}

double vt_tcp_bound_latency(const struct vt_profile *p, size_t bytes)
{
	return (double)(p->mem_latency + 2 * frame_dma(p, bytes) + frame_time(p, bytes));
}

double vt_tcp_bound_rate(const struct vt_profile *p)
{
	return TCP_SEGMENT * 1e12 / (double)frame_time(p, TCP_SEGMENT);
}

uint64_t vt_tcp_frames(const struct vt_sim *s)
{
	return s->ether_frames;
}

uint64_t vt_tcp_bytes(const struct vt_sim *s)
{
	return s->ether_bytes;
}

static void frame_handled(void *arg);
static void frame_received(void *arg);

static struct vt_frame *frame_new(struct vt_sim *s)
{
	struct vt_frame *f = s->spare_frames;

	if (f) {
		s->spare_frames = f->spare;
		return f;
	}
	f = calloc(1, sizeof(*f));
	if (!f) {
		fprintf(stderr, "sci-model: out of memory for packets\n");
		abort();
	}
	f->next = s->frames;
	s->frames = f;
	return f;
}

static uint64_t time_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Give the card a packet with @len bytes for the other end, at the time @when. */
static void frame_send(struct vt_tcp *t, uint64_t when, size_t len, bool end)
{
	struct vt_node *n = t->node, *to = t->peer->node;
	const struct vt_profile *p = &n->sim->profile;
	struct vt_frame *f = frame_new(n->sim);
	uint64_t begin = when + p->mem_latency + frame_dma(p, len);

	f->to = t->peer;
	f->len = len;
	f->ack = t->arrived;
	f->end = end;
	t->told = t->arrived;
	n->sim->ether_frames++;
	n->sim->ether_bytes += frame_bytes(len);
	n->wire_free = time_later(begin, n->wire_free) + frame_time(p, len);
	/* a card writes packets to memory in their order */
	to->card_free = time_later(n->wire_free, to->card_free) + frame_dma(p, len);
	vt_at(n->sim, to->card_free + p->tcp_path, frame_received, f);
}

/* Occupy the CPU that handles the interrupts of a node. Return the time at which it is done. */
static uint64_t kernel_work(struct vt_node *n, uint64_t time)
{
	n->kernel_free = time_later(n->sim->now, n->kernel_free) + time;
	return n->kernel_free;
}

/* An event: the card has written a packet to memory. */
static void frame_received(void *arg)
{
	struct vt_frame *f = arg;
	struct vt_node *n = f->to->node;
	const struct vt_profile *p = &n->sim->profile;

	vt_at(n->sim, kernel_work(n, p->tcp_interrupt + p->tcp_input +
				     vt_transfer(f->len, p->copy_rate)), frame_handled, f);
}

/* An event: the kernel has handled a packet. */
static void frame_handled(void *arg)
{
	struct vt_frame *f = arg;
	struct vt_tcp *t = f->to;
	struct vt_node *n = t->node;
	bool news = f->len || f->end;

	t->arrived += f->len;
	t->ended |= f->end;
	if (f->ack > t->acked) {
		t->acked = f->ack;
		news |= t->refused;
	}
	f->spare = n->sim->spare_frames;
	n->sim->spare_frames = f;
	if (t->arrived - t->told > TCP_SEGMENT)
		frame_send(t, kernel_work(n, n->sim->profile.tcp_output), 0, false);
	if (news)
		vt_touch(n);
}

/* ---- ends ---- */

bool vt_ethernet(struct vt_sim *s)
{
	if (!s->profile.ether_rate)
		fprintf(stderr, "sci-model: profile %s has no Ethernet: it needs the figures tcp_* and ether_rate\n",
			s->profile.name);
	s->ethernet = s->profile.ether_rate;
	return s->ethernet;
}

static struct vt_tcp *end_new(struct vt_node *n)
{
	struct vt_tcp *t = calloc(1, sizeof(*t));
	uint8_t *buf = malloc(n->sim->profile.tcp_buffer);

	if (!t || !buf) {
		fprintf(stderr, "sci-model: out of memory for a connection\n");
		abort();
	}
	t->node = n;
	t->buf = buf;
	t->next = n->sim->tcp;
	n->sim->tcp = t;
	return t;
}

struct vt_tcp *vt_tcp_pair(struct vt_node *a, struct vt_node *b, struct vt_tcp **other)
{
	struct vt_tcp *t = end_new(a);

	*other = end_new(b);
	(*other)->peer = t;
	t->peer = *other;
	return t;
}

void tcp_free(struct vt_sim *s)
{
	struct vt_tcp *t;
	struct vt_frame *f;

	while ((t = s->tcp)) {
		s->tcp = t->next;
		free(t->buf);
		free(t);
	}
	while ((f = s->frames)) {
		s->frames = f->next;
		free(f);
	}
}

/* Return the room for bytes to send: both the sender and the receiver keep them for some time. */
static size_t end_room(const struct vt_tcp *t)
{
	uint64_t first = t->acked < t->peer->taken ? t->acked : t->peer->taken;

	return (size_t)(t->node->sim->profile.tcp_buffer - (t->sent - first));
}

bool vt_tcp_readable(const struct vt_tcp *t)
{
	return t->arrived != t->taken || t->ended;
}

bool vt_tcp_writable(const struct vt_tcp *t)
{
	return end_room(t) > 0 || t->peer->closed;
}

static void program_work(struct vt_node *n, uint64_t time)
{
	vt_busy(n, time);
	vt_sync(n);
}

/* Return the byte at position @at of the stream that @t receives, and the bytes up to the wrap. */
static uint8_t *end_at(const struct vt_tcp *t, uint64_t at, size_t *len)
{
	uint64_t size = t->node->sim->profile.tcp_buffer;

	*len = (size_t)(size - at % size);
	return t->buf + at % size;
}

/* Put up to @room bytes of @iov into the other end's buffer. Return the number of bytes. */
static size_t end_put(struct vt_tcp *t, const struct iovec *iov, size_t n, size_t room)
{
	size_t done = 0;

	for (size_t i = 0; i < n; i++) {
		for (size_t from = 0; from < iov[i].iov_len && done < room;) {
			size_t len, left = iov[i].iov_len - from;
			uint8_t *to = end_at(t->peer, t->sent + done, &len);

			len = len < left ? len : left;
			len = len < room - done ? len : room - done;
			memcpy(to, (const uint8_t *)iov[i].iov_base + from, len);
			done += len;
			from += len;
		}
	}
	return done;
}

static size_t iov_bytes(const struct iovec *iov, size_t n)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		len += iov[i].iov_len;
	return len;
}

ssize_t vt_tcp_send(struct vt_tcp *t, const struct iovec *iov, size_t n)
{
	struct vt_node *node = t->node;
	const struct vt_profile *p = &node->sim->profile;
	size_t len, want = iov_bytes(iov, n);

	program_work(node, p->tcp_call);
	if (t->peer->closed)
		return -EPIPE;
	len = end_put(t, iov, n, end_room(t));
	t->refused = len < want;
	t->sent += len;
	for (size_t left = len; left;) {
		size_t k = left < TCP_SEGMENT ? left : TCP_SEGMENT;

		program_work(node, p->tcp_output + vt_transfer(k, p->copy_rate));
		frame_send(t, node->clock, k, false);
		left -= k;
	}
	return len || !want ? (ssize_t)len : -EAGAIN;
}

/* Take up to @have bytes out of the buffer. Return the number of bytes. */
static size_t end_take(struct vt_tcp *t, const struct iovec *iov, size_t n, size_t have)
{
	size_t done = 0;

	for (size_t i = 0; i < n; i++) {
		for (size_t to = 0; to < iov[i].iov_len && done < have;) {
			size_t len, left = iov[i].iov_len - to;
			const uint8_t *from = end_at(t, t->taken + done, &len);

			len = len < left ? len : left;
			len = len < have - done ? len : have - done;
			memcpy((uint8_t *)iov[i].iov_base + to, from, len);
			done += len;
			to += len;
		}
	}
	return done;
}

ssize_t vt_tcp_recv(struct vt_tcp *t, const struct iovec *iov, size_t n)
{
	struct vt_node *node = t->node;
	const struct vt_profile *p = &node->sim->profile;
	size_t len;

	program_work(node, p->tcp_call);
	if (t->arrived == t->taken)
		return t->ended ? 0 : -EAGAIN;
	len = end_take(t, iov, n, (size_t)(t->arrived - t->taken));
	program_work(node, p->copy_setup + vt_transfer(len, p->copy_rate));
	t->taken += len;
	if (t->peer->refused)
		vt_touch(t->peer->node);
	return (ssize_t)len;
}

void vt_tcp_close(struct vt_tcp *t)
{
	if (t->closed)
		return;
	program_work(t->node, t->node->sim->profile.tcp_call);
	t->closed = true;
	frame_send(t, t->node->clock, 0, true);
}
