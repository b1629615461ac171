// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Receives that wait in the provider: which message each gets, and who is delayed. */
#include "selftests/ofi/link.h"

#define TAG		1000u
#define LEN_MAX		(1u << 20)	/* a rendezvous */

static unsigned char buf[LEN_MAX + 1];

static void takes_a_rendezvous(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, NULL);

	(void)arg;
	CHECK_EQ(fi_trecv(l.ep, buf, LEN_MAX, NULL, l.to, TAG, 0, buf), 0);
	CHECK_EQ(link_next(&l, NULL).len, LEN_MAX);
	link_meet(&l);
	link_close(&l);
}

/*
 * A receive that finds its message makes no progress on other operations: these
 * must not wait until no more such messages arrive.
 */
static void check_nothing_waits(const struct link_config *c, bool in_hand)
{
	struct peer *p = peer_spawn(8, takes_a_rendezvous, NULL);
	struct link l = link_open(p, 8, c);
	fi_addr_t me = link_insert(&l, 4, 1);
	struct fi_cq_tagged_entry e;
	static char word[2];
	bool sent = false;

	LINK_SEND(&l, fi_tsend(l.ep, buf, LEN_MAX, NULL, l.to, TAG, buf));
	for (unsigned int i = 0; !sent; i++) {
		bool came = false;

		CHECK(i < 50000000);
		if (in_hand)
			CHECK_EQ(fi_trecv(l.ep, word, 1, NULL, me, 1, 0, word), 0);
		LINK_SEND(&l, fi_tinject(l.ep, "x", 1, me, 1));
		if (!in_hand)
			CHECK_EQ(fi_trecv(l.ep, word, 1, NULL, me, 1, 0, word), 0);
		while (!came) {
			e = link_next(&l, NULL);
			came = e.op_context == word;
			sent |= e.op_context == buf;
		}
	}
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

TEST(messages_at_once_keep_nothing_else_waiting)
{
	/* with a queue that can sleep, receives look for their message at once */
	static const struct link_config may_sleep = { .wait = FI_WAIT_FD };

	for (int in_hand = 0; in_hand < 2; in_hand++) {
		check_nothing_waits(NULL, in_hand);
		check_nothing_waits(&may_sleep, in_hand);
	}
}

/* ---- many receives wait ---- */

#define WAITING		200u
#define WAITING_MAX	300000u	/* a rendezvous */
#define WAITING_LEN(tag) ((tag) % 50 ? (tag) * 37 % 3000 : WAITING_MAX)
#define IS_CANCELLED(tag) ((tag) % 7 == 3)

static char places[WAITING][WAITING_MAX];

/* The order of tags that are sent: i * @by % @n. */
static const struct waiting {
	unsigned int n, by;
	bool named, from_anyone;	/* kinds of receives, in turn if both */
} waiting[] = {
	{ 100, 1, true, false }, { 100, 1, false, true }, { 100, 99, true, false },
	{ 100, 77, false, true }, { 100, 1, true, true }, { WAITING, 1, true, false },
	{ WAITING, 77, true, true },
};

static unsigned int sent_as(const struct waiting *w, unsigned int i)
{
	return i * w->by % w->n;
}

static void sends_in_some_order(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, NULL);

	(void)arg;
	for (size_t round = 0; round < ARRAY_LEN(waiting); round++) {
		link_meet(&l);
		for (unsigned int i = 0; i < waiting[round].n; i++) {
			unsigned int tag = sent_as(&waiting[round], i);

			if (IS_CANCELLED(tag))
				continue;
			test_fill(buf, WAITING_LEN(tag), tag);
			LINK_SEND(&l, fi_tsend(l.ep, buf, WAITING_LEN(tag), NULL,
					       l.to, tag, buf));
			while (link_next(&l, NULL).op_context != buf)
				;
		}
	}
	link_meet(&l);
	link_close(&l);
}

static void post_and_cancel(struct link *l, const struct waiting *w)
{
	unsigned int tag;

	for (tag = 0; tag < w->n; tag++)
		CHECK_EQ(fi_trecv(l->ep, places[tag], sizeof(places[0]), NULL,
				  w->named && (!w->from_anyone || tag % 20 < 10) ?
					  l->to : FI_ADDR_UNSPEC,
				  tag, 0, places[tag]), 0);
	for (tag = 0; tag < w->n; tag++) {
		if (!IS_CANCELLED(tag))
			continue;
		CHECK_EQ(fi_cancel(&l->ep->fid, places[tag]), 0);
		CHECK_EQ(fi_cancel(&l->ep->fid, &places[tag][1]), -FI_ENOENT);
	}
}

static void check_cancelled(struct link *l, const struct waiting *w)
{
	bool told[WAITING] = { false };

	for (unsigned int tag = 0; tag < w->n; tag++) {
		struct fi_cq_err_entry e;
		size_t i;

		if (!IS_CANCELLED(tag))
			continue;
		e = link_error(l);
		i = (size_t)((char (*)[sizeof(places[0])])e.op_context - places);
		CHECK(i < w->n && IS_CANCELLED(i) && !told[i]);
		CHECK_EQ(e.err, FI_ECANCELED);
		told[i] = true;
	}
}

/*
 * Each message completes the receive of its tag, once. The order of completions is free: the
 * sender has sent the end of a rendezvous and the next message on two rings.
 */
static void check_received(const struct waiting *w, const struct fi_cq_tagged_entry *e,
			   bool *done)
{
	CHECK(e->tag < w->n && !IS_CANCELLED(e->tag) && !done[e->tag]);
	done[e->tag] = true;
	CHECK(e->op_context == places[e->tag]);
	CHECK_EQ(e->len, WAITING_LEN(e->tag));
	CHECK(test_filled(places[e->tag], e->len, e->tag));
}

TEST(receives_that_wait_are_found_by_their_messages)
{
	struct peer *p = peer_spawn(8, sends_in_some_order, NULL);
	struct link l = link_open(p, 8, NULL);

	for (size_t round = 0; round < ARRAY_LEN(waiting); round++) {
		const struct waiting *w = &waiting[round];
		bool done[WAITING] = { false };
		unsigned int left = 0;

		post_and_cancel(&l, w);
		check_cancelled(&l, w);
		link_meet(&l);
		for (unsigned int tag = 0; tag < w->n; tag++)
			left += !IS_CANCELLED(tag);
		while (left) {
			struct fi_cq_tagged_entry e = link_next(&l, NULL);

			if (e.tag >= WAITING || !(e.flags & FI_RECV))
				continue;	/* a completion of link_meet() */
			check_received(w, &e, done);
			left--;
		}
	}
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

/* ---- a window of receives ---- */

static void meets(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, NULL);

	(void)arg;
	link_meet(&l);
	link_close(&l);
}

#define WINDOW		100u		/* receives; the provider has places for 128 */
#define ROUND		30u
#define ALL		(20 * ROUND)

/* There are more receives than places, in turn; some are cancelled in the middle. */
TEST(receives_in_a_window_keep_their_order)
{
	static uint64_t got[ALL + WINDOW];
	static bool gone[ALL + WINDOW];
	struct peer *p = peer_spawn(8, meets, NULL);
	struct link l = link_open(p, 8, NULL);
	fi_addr_t me = link_insert(&l, 4, 1);
	uint64_t posted = 0, tag = 0, sent, end;

	while (tag < ALL) {
		for (; posted < tag + WINDOW; posted++)
			CHECK_EQ(fi_trecv(l.ep, &got[posted], 8, NULL, me, posted,
					  0, &got[posted]), 0);
		sent = tag + ROUND / 2;
		CHECK_EQ(fi_cancel(&l.ep->fid, &got[sent]), 0);
		CHECK(link_error(&l).op_context == &got[sent]);
		gone[sent] = true;
		end = tag + ROUND;
		for (sent = tag; sent < end; sent++)
			if (!gone[sent])
				LINK_SEND(&l, fi_tinject(l.ep, &sent, 8, me, sent));
		for (; tag < end; tag++) {
			struct fi_cq_tagged_entry e;

			if (gone[tag])
				continue;
			e = link_next(&l, NULL);
			CHECK(e.op_context == &got[tag]);
			CHECK_EQ(e.tag, tag);
			CHECK_EQ(got[tag], tag);
		}
	}
	for (; tag < posted; tag++) {
		CHECK_EQ(fi_cancel(&l.ep->fid, &got[tag]), 0);
		CHECK(link_error(&l).op_context == &got[tag]);
	}
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}
