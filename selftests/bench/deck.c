// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Compare DECK's post and retrieve with sci_send() and sci_recv().
 *
 * usage: sci run -n 2 [--nodes N] deck [BYTES...]
 *
 * Both do a ping-pong in turn (pairs.h).  Prints half a round trip in microseconds.  With
 * DECK_MSG_BUF_LIMIT bytes or more, all buffers are exported.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <deck.h>
#include <sci/msg.h>

#include "selftests/bench/pairs.h"

#define TIMEOUT	20000

#define OK(call)							\
	do {								\
		int ret_ = (call);					\
		if (ret_ < 0)						\
			bench_die("%s: %s", #call, strerror(-ret_));	\
	} while (0)

struct link {
	deck_mbox_t *own, *other;
	deck_msg_t *msg;
	struct sci_ep *ep;
	struct sci_peer *peer;
	volatile uint32_t *words;	/* the first process's, for pairs_probe() */
	void *buf;
	size_t len;
	bool first;
};

static unsigned int rounds(size_t n)
{
	return n <= 4096 ? 2000 : n <= 65536 ? 400 : 40;
}

static void deck_round(struct link *l)
{
	if (l->first) {
		OK(deck_mbox_post(l->other, l->msg));
		OK(deck_mbox_retrv(l->own, l->msg));
	} else {
		OK(deck_mbox_retrv(l->own, l->msg));
		OK(deck_mbox_post(l->other, l->msg));
	}
}

static void sci_round(struct link *l)
{
	if (l->first) {
		OK(sci_send(l->peer, l->buf, l->len));
		OK(sci_recv(l->ep, NULL, l->buf, l->len, NULL));
	} else {
		OK(sci_recv(l->ep, NULL, l->buf, l->len, NULL));
		OK(sci_send(l->peer, l->buf, l->len));
	}
}

static double measure(struct link *l, void (*fn)(struct link *l))
{
	unsigned int n = rounds(l->len);
	uint64_t begin = bench_ns();

	for (unsigned int i = 0; i < n; i++)
		fn(l);
	return (double)(bench_ns() - begin) / 2e3 / n;
}

static void measure_size(struct link *l, size_t n)
{
	struct pairs p = { .n = 0 };
	char name[24];
	bool exported = n >= DECK_MSG_BUF_LIMIT;

	l->len = n;
	OK(deck_msg_create(&l->msg, n));
	OK(deck_msg_set_length(l->msg, n));
	memset(deck_msg_address(l->msg), 1, n);
	if (exported)
		OK(sci_buf_alloc(l->ep, n, &l->buf));
	else
		l->buf = malloc(n + 1);
	memset(l->buf, 1, n);
	measure(l, deck_round);
	measure(l, sci_round);
	for (unsigned int i = 0; i < PAIRS; i++) {
		double at = pairs_probe(l->words, l->first);
		double first = measure(l, i % 2 ? sci_round : deck_round);
		double second = measure(l, i % 2 ? deck_round : sci_round);

		pairs_add(&p, at, i % 2 ? second : first, i % 2 ? first : second);
	}
	snprintf(name, sizeof(name), "%zu bytes", n);
	if (l->first)
		pairs_print(&p, name);
	OK(deck_msg_destroy(l->msg));
	if (exported)
		sci_buf_free(l->ep, l->buf);
	else
		free(l->buf);
}

/* Exchange the addresses of endpoints and of probe memory by DECK messages. */
static void meet(struct link *l)
{
	struct sci_addr addr;
	struct sci_key key;
	deck_msg_t *m;
	void *memory;

	OK(deck_mbox_create(&l->own, l->first ? "0" : "1"));
	OK(deck_mbox_find(&l->other, l->first ? "1" : "0", TIMEOUT));
	OK(sci_ep_open(&l->ep, 0, 0));
	OK(sci_ep_addr(l->ep, &addr));
	OK(sci_buf_alloc(l->ep, 4096, &memory));
	OK(sci_buf_key(l->ep, memory, 4096, &key));
	OK(deck_msg_create(&m, sizeof(addr) + sizeof(key)));
	OK(deck_msg_pack(m, &addr, sizeof(addr)));
	OK(deck_msg_pack(m, &key, sizeof(key)));
	OK(deck_mbox_post(l->other, m));
	OK(deck_mbox_retrv(l->own, m));
	OK(deck_msg_unpack(m, &addr, sizeof(addr)));
	OK(deck_msg_unpack(m, &key, sizeof(key)));
	OK(deck_msg_destroy(m));
	OK(sci_connect(l->ep, &addr, TIMEOUT, &l->peer));
	if (!l->first)
		OK(sci_peer_map(l->peer, &key, TIMEOUT, &memory));
	l->words = memory;
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 0, 8, 62, 64, 256, 1024, 4096, 16384, 65536, 1 << 20 };
	struct link l = { 0 };

	sched_getaffinity(0, sizeof(bench_cpus), &bench_cpus);
	OK(deck_init(&argc, &argv));
	if (deck_size() != 2)
		bench_die("deck: start two processes: sci run -n 2 deck");
	l.first = !deck_rank();
	bench_pin(deck_rank());
	meet(&l);
	if (l.first)
		pairs_title("message", "deck us", "sci us");
	for (int i = 1; i < argc; i++)
		measure_size(&l, strtoul(argv[i], NULL, 0));
	for (size_t i = 0; argc == 1 && i < sizeof(sizes) / sizeof(*sizes); i++)
		measure_size(&l, sizes[i]);
	OK(deck_barrier());
	OK(sci_ep_close(l.ep));
	OK(deck_mbox_destroy(l.other));
	OK(deck_mbox_destroy(l.own));
	OK(deck_done());
	return 0;
}
