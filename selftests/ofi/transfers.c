// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Messages through libfabric: their bytes, and their completions. */
#include <stdatomic.h>

#include "selftests/ofi/link.h"

#define TAG		UINT64_C(0xf00d000000000000)
#define LEN_MAX		(1u << 20)
#define DATA(i)		(UINT64_C(0xdada000000000000) + (i))

static const size_t lengths[] = {
	0, 1, 40, 41, 48, 49, 62, 63, 4096, 20000, 70000, LEN_MAX,
};

static unsigned char buf[LEN_MAX + 1];

/* ---- all ways to send, by turns ---- */

enum way { SEND, SENDV, SENDMSG, SENDDATA, INJECT, INJECTDATA, DELIVERY, WAYS };

static bool can(enum way w, size_t len)
{
	return (w != INJECT && w != INJECTDATA) || len <= 4096;
}

static bool has_data(enum way w)
{
	return w == SENDDATA || w == INJECTDATA || w == DELIVERY;
}

static bool is_told(enum way w)
{
	return w != INJECT && w != INJECTDATA;
}

static ssize_t send_tagged(struct link *l, enum way w, size_t i, size_t len)
{
	struct iovec iov[2] = { { buf, len / 2 }, { buf + len / 2, len - len / 2 } };
	struct fi_msg_tagged m = {
		.msg_iov = iov, .iov_count = 2, .addr = l->to, .tag = TAG + i,
		.context = &buf[i], .data = DATA(i),
	};

	switch (w) {
	case SEND:
		return fi_tsend(l->ep, buf, len, NULL, l->to, TAG + i, &buf[i]);
	case SENDV:
		return fi_tsendv(l->ep, iov, NULL, 2, l->to, TAG + i, &buf[i]);
	case SENDMSG:
		return fi_tsendmsg(l->ep, &m, 0);
	case DELIVERY:
		return fi_tsendmsg(l->ep, &m,
				   FI_DELIVERY_COMPLETE | FI_REMOTE_CQ_DATA);
	case SENDDATA:
		return fi_tsenddata(l->ep, buf, len, NULL, DATA(i), l->to,
				    TAG + i, &buf[i]);
	case INJECT:
		return fi_tinject(l->ep, buf, len, l->to, TAG + i);
	default:
		return fi_tinjectdata(l->ep, buf, len, DATA(i), l->to, TAG + i);
	}
}

static ssize_t send_untagged(struct link *l, enum way w, size_t i, size_t len)
{
	struct iovec iov[2] = { { buf, len / 2 }, { buf + len / 2, len - len / 2 } };
	struct fi_msg m = {
		.msg_iov = iov, .iov_count = 2, .addr = l->to,
		.context = &buf[i], .data = DATA(i),
	};

	switch (w) {
	case SEND:
		return fi_send(l->ep, buf, len, NULL, l->to, &buf[i]);
	case SENDV:
		return fi_sendv(l->ep, iov, NULL, 2, l->to, &buf[i]);
	case SENDMSG:
		return fi_sendmsg(l->ep, &m, 0);
	case DELIVERY:
		return fi_sendmsg(l->ep, &m,
				  FI_DELIVERY_COMPLETE | FI_REMOTE_CQ_DATA);
	case SENDDATA:
		return fi_senddata(l->ep, buf, len, NULL, DATA(i), l->to,
				   &buf[i]);
	case INJECT:
		return fi_inject(l->ep, buf, len, l->to);
	default:
		return fi_injectdata(l->ep, buf, len, DATA(i), l->to);
	}
}

static void sends(struct peer *self, void *arg)
{
	bool tagged = *(bool *)arg;
	struct link l = link_open(self, 4, NULL);

	for (enum way w = 0; w < WAYS; w++) {
		for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
			struct fi_cq_tagged_entry e;

			if (!can(w, lengths[i]))
				continue;
			test_fill(buf, lengths[i], w * 100 + i);
			LINK_SEND(&l, tagged ?
					      send_tagged(&l, w, i, lengths[i]) :
					      send_untagged(&l, w, i, lengths[i]));
			if (!is_told(w)) {
				memset(buf, 0xee, lengths[i]);
				continue;
			}
			e = link_next(&l, NULL);
			CHECK(e.op_context == &buf[i]);
			CHECK_EQ(e.flags, FI_SEND | (tagged ? FI_TAGGED : FI_MSG));
		}
	}
	link_meet(&l);
	link_close(&l);
}

static void take(struct link *l, bool tagged, enum way w, size_t i)
{
	uint64_t flags = FI_RECV | (tagged ? FI_TAGGED : FI_MSG) |
			 (has_data(w) ? FI_REMOTE_CQ_DATA : 0);
	struct fi_cq_tagged_entry e;
	fi_addr_t src = FI_ADDR_UNSPEC, from = i & 1 ? l->to : FI_ADDR_UNSPEC;

	if (tagged)
		CHECK_EQ(fi_trecv(l->ep, buf, sizeof(buf), NULL, from,
				  TAG + (i ^ 5), i & 2 ? 0xff : 5, &buf[i]), 0);
	else
		CHECK_EQ(fi_recv(l->ep, buf, sizeof(buf), NULL, from, &buf[i]),
			 0);
	e = link_next(l, &src);
	CHECK(e.op_context == &buf[i]);
	CHECK_EQ(e.flags, flags);
	CHECK_EQ(e.len, lengths[i]);
	CHECK_EQ(e.tag, tagged ? TAG + i : 0);
	CHECK_EQ(e.data, has_data(w) ? DATA(i) : 0);
	CHECK_EQ(src, l->to);
	CHECK(test_filled(buf, lengths[i], w * 100 + i));
}

static void check_ways(bool tagged)
{
	struct peer *p = peer_spawn(8, sends, &tagged);
	struct link l = link_open(p, 8, NULL);

	for (enum way w = 0; w < WAYS; w++)
		for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
			if (can(w, lengths[i]))
				take(&l, tagged, w, i);
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

TEST(tagged_messages)
{
	check_ways(true);
}

TEST(untagged_messages)
{
	check_ways(false);
}

static void sends_with_source(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, NULL);

	(void)arg;
	LINK_SEND(&l, fi_tsend(l.ep, buf, 8, NULL, l.to, TAG, &l));
	link_next(&l, NULL);
	link_meet(&l);
	link_close(&l);
}

/* A program that does not ask for FI_SOURCE does not pay for the look-up. */
TEST(sources_are_told_to_who_asks_for_them)
{
	static const struct link_config with = {
		.caps = FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE,
	}, without = {
		.caps = FI_TAGGED | FI_DIRECTED_RECV,
	};

	for (int i = 0; i < 2; i++) {
		struct peer *p = peer_spawn(8, sends_with_source, NULL);
		struct link l = link_open(p, 8, i ? &with : &without);
		fi_addr_t src = 0;

		CHECK_EQ(fi_trecv(l.ep, buf, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, &l),
			 0);
		link_next(&l, &src);
		CHECK_EQ(src, i ? l.to : FI_ADDR_NOTAVAIL);
		link_meet(&l);
		link_close(&l);
		peer_join(p);
	}
}

/* ---- numbers of senders change with the address vector ---- */

/* Send a message. On return it is under way and needs no more progress here. */
static void send_one(struct link *l)
{
	uint64_t sent = fi_cntr_read(l->sent);

	CHECK_EQ(fi_tsend(l->ep, buf, 8, NULL, l->to, TAG, NULL), 0);
	WAIT_UNTIL(fi_cntr_read(l->sent) > sent, TEST_WAIT_MS);
}

static void sends_when_told(struct peer *self, void *arg)
{
	unsigned int *n = arg;
	struct link l = link_open(self, 4, NULL);

	for (unsigned int i = 0; i < *n; i++) {
		peer_expect(self, "send");
		send_one(&l);
	}
	link_meet(&l);
	link_close(&l);
}

static fi_addr_t source_of_next(struct link *l)
{
	fi_addr_t src = FI_ADDR_UNSPEC;

	peer_send(l->proc, "send");
	CHECK_EQ(fi_trecv(l->ep, buf, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, l), 0);
	link_next(l, &src);
	return src;
}

/* This endpoint only receives from the peer. */
TEST(a_sender_of_two_numbers_keeps_one_when_the_other_is_removed)
{
	unsigned int n = 4;
	struct peer *p = peer_spawn(8, sends_when_told, &n);
	struct link l = link_open(p, 8, NULL);
	fi_addr_t first = l.to, second, third;

	CHECK_EQ(source_of_next(&l), first);
	second = link_insert(&l, 8, 1);
	CHECK(second != first);
	CHECK_EQ(source_of_next(&l), first);
	CHECK_EQ(fi_av_remove(l.av, &first, 1, 0), 0);
	CHECK_EQ(source_of_next(&l), second);
	/* the lowest number is free again, and goes to another address */
	third = link_insert(&l, 12, 1);
	CHECK_EQ(third, first);
	CHECK_EQ(source_of_next(&l), second);
	l.to = second;
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

static void sends_from_two(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, NULL);

	(void)arg;
	peer_expect(self, "send");
	send_one(&l);
	/* the peer has removed this endpoint: connect again */
	peer_expect(self, "again");
	CHECK_EQ(fi_av_remove(l.av, &l.to, 1, 0), 0);
	l.to = link_insert(&l, 4, 1);
	peer_expect(self, "send");
	send_one(&l);
	link_meet(&l);
	link_close(&l);
}

TEST(a_sender_that_is_inserted_again_has_its_new_number)
{
	struct peer *p = peer_spawn(8, sends_from_two, NULL);
	struct link l = link_open(p, 8, NULL);
	fi_addr_t first = l.to, other;

	CHECK_EQ(source_of_next(&l), first);
	CHECK_EQ(fi_av_remove(l.av, &first, 1, 0), 0);
	peer_send(p, "again");
	other = link_insert(&l, 12, 1);
	CHECK_EQ(other, first);
	l.to = link_insert(&l, 8, 1);
	CHECK(l.to != first);
	CHECK_EQ(source_of_next(&l), l.to);
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

/* Number of messages in all, or 0, and number of received messages. */
struct late {
	_Atomic unsigned int sent, got;
};

/* Make no progress between the first message and the end of all sends. */
static void takes_late(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, NULL);
	struct late *late = arg;
	fi_addr_t src;

	for (unsigned int i = 0; !i || i < atomic_load(&late->sent); i++) {
		CHECK_EQ(fi_trecv(l.ep, buf, 4096, NULL, FI_ADDR_UNSPEC, TAG, 0,
				  &l), 0);
		link_next(&l, &src);
		atomic_store(&late->got, i + 1);
		if (!i)
			WAIT_UNTIL(atomic_load(&late->sent), TEST_WAIT_MS);
	}
	peer_expect(self, "end");
	link_close(&l);
}

/* A removal does not wait: messages that were sent before it arrive after it. */
TEST(messages_outlive_their_address)
{
	struct late *late = test_shared(sizeof(*late));
	struct peer *p = peer_spawn(8, takes_late, late);
	struct link l = link_open(p, 8, NULL);
	struct fi_cq_tagged_entry e;
	unsigned int n = 1;

	LINK_SEND(&l, fi_tinject(l.ep, buf, 8, l.to, TAG));
	WAIT_UNTIL((fi_cq_read(l.cq, &e, 0), atomic_load(&late->got) == 1),
		   TEST_WAIT_MS);
	/* messages that find no room wait at the sender */
	while (!fi_tinject(l.ep, buf, 4096, l.to, TAG))
		n++;
	CHECK(n > 1);
	CHECK_EQ(fi_av_remove(l.av, &l.to, 1, 0), 0);
	atomic_store(&late->sent, n);
	WAIT_UNTIL((fi_cq_read(l.cq, &e, 0), atomic_load(&late->got) == n),
		   TEST_WAIT_MS);
	peer_send(p, "end");
	link_close(&l);
	peer_join(p);
}

/* A sender is found by its address while many other addresses come and go. */
TEST(numbers_are_found_by_address_while_others_come_and_go)
{
	struct link l = link_open(NULL, 4, NULL);
	fi_addr_t n[500];
	bool there[500] = { false };
	unsigned int seed = 1;

	for (unsigned int i = 0; i < 20000; i++) {
		unsigned int k = (unsigned int)rand_r(&seed) % 500;
		fi_addr_t src = FI_ADDR_UNSPEC;

		if (there[k])
			CHECK_EQ(fi_av_remove(l.av, &n[k], 1, 0), 0);
		else
			n[k] = link_insert(&l, 8 + 4 * (k % 7), 1 + k / 7);
		there[k] = !there[k];
		/* the endpoint itself, whose number changes from time to time */
		if (i % 100 == 0) {
			CHECK_EQ(fi_av_remove(l.av, &l.to, 1, 0), 0);
			l.to = link_insert(&l, 4, 1);
		}
		if (i % 10)
			continue;
		LINK_SEND(&l, fi_tinject(l.ep, buf, 8, l.to, TAG));
		CHECK_EQ(fi_trecv(l.ep, buf, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, &l), 0);
		link_next(&l, &src);
		CHECK_EQ(src, l.to);
	}
	link_close(&l);
}

/* ---- multi-receives and peeks ---- */

#define MANY	100u
#define PIECE	100u

static void sends_many(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, NULL);

	(void)arg;
	for (unsigned int i = 0; i < MANY; i++) {
		test_fill(buf, PIECE, i);
		LINK_SEND(&l, fi_inject(l.ep, buf, PIECE, l.to));
	}
	link_meet(&l);
	link_close(&l);
}

/* Buffers that take many messages each are filled one after the other. */
TEST(one_buffer_for_many)
{
	struct peer *p = peer_spawn(8, sends_many, NULL);
	struct link l = link_open(p, 8, NULL);
	size_t half = MANY / 2 * PIECE, min = PIECE;
	struct iovec iov = { .iov_len = half };
	struct fi_msg m = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
	};

	CHECK_EQ(fi_setopt(&l.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			   &min, sizeof(min)), 0);
	for (unsigned int i = 0; i < 3; i++) {
		iov.iov_base = buf + i * half;
		m.context = iov.iov_base;
		CHECK_EQ(fi_recvmsg(l.ep, &m, FI_MULTI_RECV), 0);
	}
	for (unsigned int i = 0; i < MANY; i++) {
		bool last = (i + 1) % (MANY / 2) == 0;
		struct fi_cq_tagged_entry e;

		e = link_next(&l, NULL);
		CHECK(e.op_context == buf + i * PIECE / half * half);
		CHECK(e.buf == buf + i * PIECE);
		CHECK_EQ(e.len, PIECE);
		CHECK_EQ(e.flags, FI_RECV | FI_MSG | (last ? FI_MULTI_RECV : 0));
		CHECK(test_filled(e.buf, PIECE, i));
	}
	/* the third buffer is first now; post it again, then cancel both */
	CHECK_EQ(fi_recvmsg(l.ep, &m, FI_MULTI_RECV), 0);
	for (unsigned int i = 0; i < 2; i++) {
		struct fi_cq_err_entry err;

		CHECK_EQ(fi_cancel(&l.ep->fid, m.context), 0);
		err = link_error(&l);
		CHECK_EQ(err.err, FI_ECANCELED);
		CHECK_EQ(err.flags & FI_MULTI_RECV, FI_MULTI_RECV);
	}
	CHECK_EQ(fi_cancel(&l.ep->fid, m.context), -FI_ENOENT);
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

#define FEW	4u

static void sends_few(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, NULL);

	(void)arg;
	for (unsigned int i = 0; i < FEW; i++)
		LINK_SEND(&l, fi_inject(l.ep, buf, PIECE, l.to));
	link_meet(&l);
	link_close(&l);
}

/*
 * fi_msg(3): the completion that returns a consumed buffer is always generated,
 * whether or not the other completions of the buffer are suppressed.
 */
TEST(a_consumed_buffer_is_returned_under_selective_completion)
{
	const struct link_config c = { .bind = FI_SELECTIVE_COMPLETION };
	struct peer *p = peer_spawn(8, sends_few, NULL);
	struct link l = link_open(p, 8, &c);
	struct iovec iov = { buf, FEW * PIECE };
	struct fi_msg m = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
		.context = &iov,
	};
	struct fi_cq_tagged_entry e;

	CHECK_EQ(fi_recvmsg(l.ep, &m, FI_MULTI_RECV), 0);
	WAIT_UNTIL(fi_cntr_read(l.received) == FEW, TEST_WAIT_MS);
	CHECK_EQ(fi_cq_read(l.cq, &e, 1), 1);
	CHECK(e.op_context == &iov);
	CHECK(e.buf == buf + (FEW - 1) * PIECE);
	CHECK_EQ(e.len, PIECE);
	CHECK_EQ(e.flags, FI_RECV | FI_MSG | FI_MULTI_RECV);
	CHECK_EQ(fi_cq_read(l.cq, &e, 1), -FI_EAGAIN);
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

static void sends_two_when_told(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, NULL);

	(void)arg;
	/* this connects the endpoints */
	link_meet(&l);
	peer_expect(self, "posted");
	for (unsigned int i = 0; i < 2; i++) {
		test_fill(buf, PIECE, i);
		LINK_SEND(&l, fi_inject(l.ep, buf, PIECE, l.to));
	}
	peer_send(self, "sent");
	link_meet(&l);
	link_close(&l);
}

/* Both messages arrive in one round of progress. The first leaves room for the second. */
TEST(a_buffer_for_many_comes_before_a_later_receive)
{
	struct peer *p = peer_spawn(8, sends_two_when_told, NULL);
	struct link l = link_open(p, 8, NULL);
	unsigned char *later = buf + LEN_MAX / 2;
	struct iovec iov = { buf, 10 * PIECE };
	struct fi_msg m = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
		.context = &iov,
	};

	link_meet(&l);
	for (unsigned int i = 0; i < 2; i++)
		link_next(&l, NULL);
	CHECK_EQ(fi_recvmsg(l.ep, &m, FI_MULTI_RECV), 0);
	CHECK_EQ(fi_recv(l.ep, later, PIECE, NULL, FI_ADDR_UNSPEC, later), 0);
	peer_send(p, "posted");
	peer_expect(p, "sent");
	for (unsigned int i = 0; i < 2; i++) {
		struct fi_cq_tagged_entry e = link_next(&l, NULL);

		CHECK(e.op_context == &iov);
		CHECK(e.buf == buf + i * PIECE);
		CHECK_EQ(e.flags, FI_RECV | FI_MSG);
		CHECK(test_filled(e.buf, PIECE, i));
	}
	CHECK_EQ(fi_cancel(&l.ep->fid, &iov), 0);
	CHECK_EQ(link_error(&l).flags & FI_MULTI_RECV, FI_MULTI_RECV);
	CHECK_EQ(fi_cancel(&l.ep->fid, later), 0);
	CHECK(link_error(&l).op_context == later);
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

static void sends_one_untagged(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, NULL);

	(void)arg;
	LINK_SEND(&l, fi_send(l.ep, buf, PIECE, NULL, l.to, NULL));
	link_next(&l, NULL);
	peer_send(self, "sent");
	peer_expect(self, "removed");
	link_close(&l);
}

/* The removal of the only peer that could fill them returns both buffers. */
TEST(buffers_for_many_are_returned_when_their_peer_is_removed)
{
	struct peer *p = peer_spawn(8, sends_one_untagged, NULL);
	struct link l = link_open(p, 8, NULL);
	struct iovec iov = { buf, LEN_MAX / 2 };
	struct fi_msg m = {
		.msg_iov = &iov, .iov_count = 1, .addr = l.to, .context = &iov,
	};
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;

	/* the message is here, so that the first buffer gets it at once */
	WAIT_UNTIL((fi_recvmsg(l.ep, &m, FI_PEEK),
		    fi_cq_read(l.cq, &e, 1) == 1) ||
		   (fi_cq_readerr(l.cq, &err, 0), false), TEST_WAIT_MS);
	peer_expect(p, "sent");
	CHECK_EQ(fi_recvmsg(l.ep, &m, FI_MULTI_RECV), 0);
	iov.iov_base = buf + LEN_MAX / 2;
	m.context = &m;
	CHECK_EQ(fi_recvmsg(l.ep, &m, FI_MULTI_RECV), 0);
	CHECK_EQ(fi_av_remove(l.av, &l.to, 1, 0), 0);
	peer_send(p, "removed");
	for (unsigned int i = 0; i < 2; i++) {
		err = link_error(&l);
		CHECK(err.op_context == (i ? (void *)&m : &iov));
		CHECK_EQ(err.err, FI_ECANCELED);
		CHECK_EQ(err.flags & FI_MULTI_RECV, FI_MULTI_RECV);
	}
	e = link_next(&l, NULL);
	CHECK(e.op_context == &iov);
	CHECK_EQ(e.len, PIECE);
	CHECK_EQ(e.flags & FI_MULTI_RECV, 0);
	link_close(&l);
	peer_join(p);
}

static void sends_to_look_at(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, NULL);

	(void)arg;
	for (unsigned int i = 0; i < 4; i++) {
		test_fill(buf, 5000, i);
		CHECK_EQ(fi_tsenddata(l.ep, buf, 5000, NULL, DATA(i), l.to,
				      TAG + i, NULL), 0);
		link_next(&l, NULL);
	}
	link_meet(&l);
	link_close(&l);
}

/* Peek until the message is here; before that the error is FI_ENOMSG. */
static struct fi_cq_tagged_entry peek(struct link *l, struct fi_msg_tagged *m,
				      uint64_t flags)
{
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err;
	ssize_t ret;

	for (;;) {
		CHECK_EQ(fi_trecvmsg(l->ep, m, FI_PEEK | flags), 0);
		ret = fi_cq_read(l->cq, &e, 1);
		if (ret == 1)
			break;
		CHECK_EQ(ret, -FI_EAVAIL);
		CHECK_EQ(fi_cq_readerr(l->cq, &err, 0), 1);
		CHECK_EQ(err.err, FI_ENOMSG);
		CHECK(err.op_context == m->context);
		CHECK_EQ(fi_cq_read(l->cq, &e, 0), -FI_EAGAIN);
	}
	CHECK_EQ(e.flags & (FI_RECV | FI_TAGGED), FI_RECV | FI_TAGGED);
	CHECK(e.op_context == m->context);
	CHECK_EQ(e.len, 5000);
	CHECK_EQ(e.tag, m->tag);
	return e;
}

TEST(messages_are_looked_at_claimed_and_dropped)
{
	struct peer *p = peer_spawn(8, sends_to_look_at, NULL);
	struct link l = link_open(p, 8, NULL);
	struct iovec iov = { buf, 5000 };
	struct fi_context context;
	struct fi_msg_tagged m = {
		.addr = l.to, .tag = TAG + 2, .context = &context,
	};
	struct fi_cq_tagged_entry e;

	/* a peek leaves the message; a claim takes it from other receives */
	CHECK_EQ(peek(&l, &m, 0).data, DATA(2));
	CHECK_EQ(peek(&l, &m, FI_CLAIM).data, DATA(2));
	CHECK_EQ(fi_trecvmsg(l.ep, &m, FI_PEEK), 0);
	CHECK_EQ(link_error(&l).err, FI_ENOMSG);
	m.msg_iov = &iov;
	m.iov_count = 1;
	CHECK_EQ(fi_trecvmsg(l.ep, &m, FI_CLAIM), 0);
	e = link_next(&l, NULL);
	CHECK(e.op_context == &context);
	CHECK_EQ(e.len, 5000);
	CHECK(test_filled(buf, 5000, 2));
	/* discard one message by a peek, and one after a claim */
	m.tag = TAG;
	peek(&l, &m, FI_DISCARD);
	m.tag = TAG + 1;
	peek(&l, &m, FI_CLAIM);
	CHECK_EQ(fi_trecvmsg(l.ep, &m, FI_CLAIM | FI_DISCARD), 0);
	link_next(&l, NULL);
	CHECK_EQ(fi_trecv(l.ep, buf, 5000, NULL, l.to, TAG, 0xff, NULL), 0);
	CHECK_EQ(link_next(&l, NULL).tag, TAG + 3);
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

/* ---- order ---- */

static void sends_two(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, NULL);
	uint32_t word = *(uint32_t *)arg;

	peer_expect(self, "send");
	for (; word < 2; word++) {
		LINK_SEND(&l, fi_tinject(l.ep, &word, sizeof(word), l.to, TAG));
		peer_send(self, "sent");
	}
	link_meet(&l);
	link_close(&l);
}

/* The first receive gets the first message, though its sender is not connected yet. */
TEST(receives_from_one_who_is_not_there_keep_their_order)
{
	uint32_t first = 0, got[2] = { 7, 7 };
	struct peer *p = peer_spawn(8, sends_two, &first);
	struct link l = link_open(p, 8, NULL);
	struct fi_cq_tagged_entry e;

	CHECK_EQ(fi_trecv(l.ep, &got[0], 4, NULL, l.to, TAG, 0, &got[0]), 0);
	CHECK_EQ(fi_trecv(l.ep, &got[1], 4, NULL, FI_ADDR_UNSPEC, TAG, 0,
			  &got[1]), 0);
	peer_send(p, "send");
	for (uint32_t i = 0; i < 2; i++) {
		e = link_next(&l, NULL);
		CHECK(e.op_context == &got[i]);
		CHECK_EQ(got[i], i);
		peer_expect(p, "sent");
	}
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

/* ---- formats, and suppressed completions ---- */

static void echoes(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, NULL);
	uint32_t word;

	for (unsigned int n = *(unsigned int *)arg; n; n--) {
		CHECK_EQ(fi_trecv(l.ep, &word, 4, NULL, l.to, TAG, 0, NULL), 0);
		link_next(&l, NULL);
		LINK_SEND(&l, fi_tinject(l.ep, &word, 4, l.to, TAG));
	}
	link_meet(&l);
	link_close(&l);
}

static void check_format(enum fi_cq_format format, size_t size)
{
	const struct link_config c = { .format = format };
	unsigned int n = 1;
	struct peer *p = peer_spawn(8, echoes, &n);
	struct link l = link_open(p, 8, &c);
	struct fi_cq_tagged_entry e[2];
	uint32_t word = 4711;
	size_t got = 0;

	memset(e, 0x55, sizeof(e));
	CHECK_EQ(fi_trecv(l.ep, &word, 4, NULL, l.to, TAG, 0, e), 0);
	CHECK_EQ(fi_tsend(l.ep, &word, 4, NULL, l.to, TAG, e), 0);
	while (got < 2) {
		ssize_t ret;

		WAIT_UNTIL((ret = fi_cq_read(l.cq, (char *)e + got * size,
					     2 - got)) != -FI_EAGAIN,
			   TEST_WAIT_MS);
		CHECK(ret > 0);
		got += (size_t)ret;
	}
	for (size_t i = 0; i < 2; i++)
		CHECK(*(void **)((char *)e + i * size) == e);
	for (size_t i = 2 * size; i < sizeof(e); i++)
		CHECK_EQ(((unsigned char *)e)[i], 0x55);
	LINK_SEND(&l, fi_tinject(l.ep, &word, 1, l.to, MEET_TAG));
	CHECK_EQ(fi_trecv(l.ep, &word, 1, NULL, l.to, MEET_TAG, 0, NULL), 0);
	WAIT_UNTIL(fi_cntr_read(l.received) == 2, TEST_WAIT_MS);
	link_close(&l);
	peer_join(p);
}

TEST(formats_of_completions)
{
	check_format(FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry));
	check_format(FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry));
	check_format(FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry));
	check_format(FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry));
}

TEST(completions_that_are_not_wanted)
{
	const struct link_config c = { .bind = FI_SELECTIVE_COMPLETION };
	unsigned int n = 2;
	struct peer *p = peer_spawn(8, echoes, &n);
	struct link l = link_open(p, 8, &c);
	struct fi_cq_tagged_entry e;
	uint32_t word = 1;
	struct iovec iov = { &word, 4 };
	struct fi_msg_tagged m = {
		.msg_iov = &iov, .iov_count = 1, .addr = l.to, .tag = TAG,
		.context = &word,
	};

	CHECK_EQ(fi_tsend(l.ep, &word, 4, NULL, l.to, TAG, NULL), 0);
	CHECK_EQ(fi_trecv(l.ep, &word, 4, NULL, l.to, TAG, 0, NULL), 0);
	WAIT_UNTIL(fi_cntr_read(l.sent) == 1 && fi_cntr_read(l.received) == 1,
		   TEST_WAIT_MS);
	CHECK_EQ(fi_cq_read(l.cq, &e, 1), -FI_EAGAIN);
	CHECK_EQ(fi_tsendmsg(l.ep, &m, FI_COMPLETION), 0);
	CHECK_EQ(link_next(&l, NULL).flags, FI_SEND | FI_TAGGED);
	CHECK_EQ(fi_trecvmsg(l.ep, &m, FI_COMPLETION), 0);
	CHECK_EQ(link_next(&l, NULL).flags, FI_RECV | FI_TAGGED);
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

/* ---- sleep ---- */

#define WAKES	20u

TEST(sleep_until_something_completes)
{
	const struct link_config c = { .wait = FI_WAIT_FD };
	unsigned int n = WAKES;
	struct peer *p = peer_spawn(8, echoes, &n);
	struct link l = link_open(p, 8, &c);
	struct fi_cq_tagged_entry e;
	uint32_t word = 1;

	CHECK_EQ(fi_cq_sread(l.cq, &e, 1, NULL, 10), -FI_EAGAIN);
	CHECK_EQ(fi_cq_signal(l.cq), 0);
	CHECK_EQ(fi_cq_sread(l.cq, &e, 1, NULL, -1), -FI_EAGAIN);
	for (unsigned int i = 0; i < WAKES; i++) {
		LINK_SEND(&l, fi_tinject(l.ep, &word, 4, l.to, TAG));
		CHECK_EQ(fi_trecv(l.ep, &word, 4, NULL, l.to, TAG, 0, NULL), 0);
		if (i & 1)
			CHECK_EQ(fi_cntr_wait(l.received, i + 1, TEST_WAIT_MS), 0);
		CHECK_EQ(fi_cq_sread(l.cq, &e, 1, NULL, TEST_WAIT_MS), 1);
	}
	CHECK_EQ(fi_cntr_wait(l.received, WAKES + 1, 10), -FI_ETIMEDOUT);
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

struct sleeper {
	struct link *l;
	unsigned int n;
	bool counts;
	_Atomic bool done;
};

static void *sleeps(void *arg)
{
	struct sleeper *s = arg;
	struct fi_cq_tagged_entry e;

	for (unsigned int i = 0; i < s->n; i++) {
		if (s->counts)
			CHECK_EQ(fi_cntr_wait(s->l->received, i + 1, -1), 0);
		else
			CHECK_EQ(fi_cq_sread(s->l->cq, &e, 1, NULL, -1), 1);
	}
	atomic_store(&s->done, true);
	return NULL;
}

/* A thread sleeps for receives, which another thread's reads of the send queue complete. */
static void check_sleeper(bool counts)
{
	const struct link_config c = { .wait = FI_WAIT_UNSPEC, .two = true };
	unsigned int n = 20 * WAKES;
	struct peer *p = peer_spawn(8, echoes, &n);
	struct link l = link_open(p, 8, &c);
	struct sleeper s = { .l = &l, .n = n, .counts = counts };
	struct fi_cq_tagged_entry e;
	pthread_t thread;
	uint32_t word = 1;

	for (unsigned int i = 0; i < n; i++)
		CHECK_EQ(fi_trecv(l.ep, &word, 4, NULL, l.to, TAG, 0, NULL), 0);
	CHECK_EQ(pthread_create(&thread, NULL, sleeps, &s), 0);
	for (unsigned int i = 0; i < n; i++) {
		LINK_SEND(&l, fi_tinject(l.ep, &word, 4, l.to, TAG));
		fi_cq_read(l.tx_cq, &e, 1);
	}
	while (!atomic_load(&s.done))
		fi_cq_read(l.tx_cq, &e, 1);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

TEST(one_sleeps_while_another_makes_progress)
{
	check_sleeper(false);
	check_sleeper(true);
}

/* Wait as a program with an event loop does. */
TEST(a_descriptor_to_wait_for)
{
	const struct link_config c = { .wait = FI_WAIT_FD };
	unsigned int n = WAKES;
	struct peer *p = peer_spawn(8, echoes, &n);
	struct link l = link_open(p, 8, &c);
	struct fid *fids[] = { &l.cq->fid };
	struct fi_cq_tagged_entry e;
	struct pollfd pfd = { .events = POLLIN };
	uint32_t word = 1;

	CHECK_EQ(fi_control(&l.cq->fid, FI_GETWAIT, &pfd.fd), 0);
	for (unsigned int i = 0; i < WAKES; i++) {
		LINK_SEND(&l, fi_tinject(l.ep, &word, 4, l.to, TAG));
		CHECK_EQ(fi_trecv(l.ep, &word, 4, NULL, l.to, TAG, 0, NULL), 0);
		while (fi_cq_read(l.cq, &e, 1) != 1)
			if (!fi_trywait(l.fabric, fids, 1))
				CHECK_EQ(poll(&pfd, 1, TEST_WAIT_MS), 1);
	}
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

/* A change must keep the program awake until the program has read it. */
static void check_change(struct link *l, struct pollfd *pfd)
{
	struct fid *fids[] = { &l->received->fid };

	for (unsigned int i = 0; i < 10; i++)
		CHECK_EQ(fi_trywait(l->fabric, fids, 1), -FI_EAGAIN);
	CHECK_EQ(poll(pfd, 1, 0), 1);
}

/* The queue's reads make the progress, and count for the counter. */
TEST(a_counter_that_has_changed_is_not_waited_for)
{
	const struct link_config c = { .wait = FI_WAIT_FD };
	struct link l = link_open(NULL, 4, &c);
	struct fid *fids[] = { &l.received->fid };
	struct pollfd pfd = { .events = POLLIN };
	struct fi_cq_tagged_entry e;
	uint32_t word = 1;

	CHECK_EQ(fi_control(&l.received->fid, FI_GETWAIT, &pfd.fd), 0);
	for (unsigned int i = 1; i <= 3; i++) {
		WAIT_UNTIL(!fi_trywait(l.fabric, fids, 1), TEST_WAIT_MS);
		CHECK_EQ(poll(&pfd, 1, 0), 0);
		CHECK_EQ(fi_trecv(l.ep, &word, 4, NULL, l.to, TAG, 0, NULL), 0);
		CHECK_EQ(fi_tinject(l.ep, &word, 4, l.to, TAG), 0);
		WAIT_UNTIL(fi_cq_read(l.cq, &e, 1) == 1, TEST_WAIT_MS);
		check_change(&l, &pfd);
		CHECK_EQ(fi_cntr_read(l.received), i);
		WAIT_UNTIL(!fi_trywait(l.fabric, fids, 1), TEST_WAIT_MS);
		CHECK_EQ(fi_trecv(l.ep, &word, 4, NULL, l.to, TAG, 0, &word), 0);
		CHECK_EQ(fi_cancel(&l.ep->fid, &word), 0);
		CHECK(link_error(&l).op_context == &word);
		check_change(&l, &pfd);
		/* any read sees all changes, and a value that has been set is one */
		CHECK_EQ(fi_cntr_read(l.received), i);
		WAIT_UNTIL(!fi_trywait(l.fabric, fids, 1), TEST_WAIT_MS);
		CHECK_EQ(fi_cntr_set(l.received, i), 0);
		check_change(&l, &pfd);
		CHECK_EQ(fi_cntr_readerr(l.received), i);
	}
	link_close(&l);
}

static void sends_one(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, NULL);
	uint32_t word = 4711;

	(void)arg;
	LINK_SEND(&l, fi_tinject(l.ep, &word, 4, l.to, TAG));
	link_meet(&l);
	link_close(&l);
}

/* A receive whose message has arrived wakes a program that is about to sleep. */
TEST(a_receive_that_is_posted_late_wakes)
{
	const struct link_config c = { .wait = FI_WAIT_FD };
	struct peer *p = peer_spawn(8, sends_one, NULL);
	struct link l = link_open(p, 8, &c);
	const struct fi_msg_tagged look = { .addr = l.to, .tag = TAG };
	struct fid *fids[] = { &l.cq->fid };
	struct pollfd pfd = { .events = POLLIN };
	struct fi_cq_err_entry error;
	struct fi_cq_tagged_entry e;
	uint32_t word = 0;

	CHECK_EQ(fi_control(&l.cq->fid, FI_GETWAIT, &pfd.fd), 0);
	do {
		CHECK_EQ(fi_trecvmsg(l.ep, &look, FI_PEEK), 0);
		while (fi_cq_readerr(l.cq, &error, 0) == 1)
			;
	} while (fi_cq_read(l.cq, &e, 1) != 1);
	while (fi_trywait(l.fabric, fids, 1))
		;
	CHECK_EQ(fi_trecv(l.ep, &word, 4, NULL, l.to, TAG, 0, NULL), 0);
	CHECK_EQ(poll(&pfd, 1, TEST_WAIT_MS), 1);
	CHECK_EQ(link_next(&l, NULL).tag, TAG);
	CHECK_EQ(word, 4711);
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

TEST(sets_tell_where_to_look)
{
	const struct link_config c = { .two = true };
	unsigned int n = 2;
	struct peer *p = peer_spawn(8, echoes, &n);
	struct link l = link_open(p, 8, &c);
	struct fi_cq_tagged_entry e;
	struct fid_poll *set;
	void *where[3];
	uint32_t word = 1;

	l.cq->fid.context = &l.cq;
	l.tx_cq->fid.context = &l.tx_cq;
	l.received->fid.context = &l.received;
	CHECK_EQ(fi_poll_open(l.domain, NULL, &set), 0);
	CHECK_EQ(fi_poll_add(set, &l.cq->fid, 0), 0);
	CHECK_EQ(fi_poll_add(set, &l.tx_cq->fid, 0), 0);
	CHECK_EQ(fi_poll_add(set, &l.ep->fid, 0), -FI_EINVAL);
	CHECK_EQ(fi_poll(set, where, 3), 0);
	CHECK_EQ(fi_tsend(l.ep, &word, 4, NULL, l.to, TAG, NULL), 0);
	WAIT_UNTIL(fi_poll(set, where, 3) == 1, TEST_WAIT_MS);
	CHECK(where[0] == &l.tx_cq);
	CHECK_EQ(fi_cq_read(l.tx_cq, &e, 1), 1);
	CHECK_EQ(fi_trecv(l.ep, &word, 4, NULL, l.to, TAG, 0, NULL), 0);
	WAIT_UNTIL(fi_poll(set, where, 3) == 1, TEST_WAIT_MS);
	CHECK(where[0] == &l.cq);
	CHECK_EQ(fi_poll_del(set, &l.cq->fid, 0), 0);
	CHECK_EQ(fi_poll_del(set, &l.cq->fid, 0), -FI_EINVAL);
	CHECK_EQ(fi_poll(set, where, 3), 0);

	/* a counter that has changed is reported once */
	CHECK_EQ(fi_poll_add(set, &l.received->fid, 0), 0);
	CHECK_EQ(fi_poll(set, where, 3), 1);
	CHECK(where[0] == &l.received);
	CHECK_EQ(fi_poll(set, where, 3), 0);
	LINK_SEND(&l, fi_tinject(l.ep, &word, 4, l.to, TAG));
	CHECK_EQ(fi_trecv(l.ep, &word, 4, NULL, l.to, TAG, 0, NULL), 0);
	WAIT_UNTIL(fi_poll(set, where, 3) == 1, TEST_WAIT_MS);
	CHECK_EQ(fi_close(&set->fid), -FI_EBUSY);
	CHECK_EQ(fi_poll_del(set, &l.received->fid, 0), 0);
	CHECK_EQ(fi_poll_del(set, &l.tx_cq->fid, 0), 0);
	CHECK_EQ(fi_close(&set->fid), 0);
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

/* ---- threads ---- */

#define THREADS		3u
#define EACH		(TEST_TSAN || TEST_ASAN ? 200u : 2000u)

struct worker {
	struct link *l;
	unsigned int i;
	pthread_t thread;
	_Atomic unsigned int *done;
};

/* Echo messages of a tag. A thread that reads a completion counts it for its owner. */
static void *works(void *arg)
{
	struct worker *w = arg;
	struct link *l = w->l;
	uint32_t word;

	for (unsigned int k = 0; k < EACH; k++) {
		struct fi_cq_tagged_entry e;

		LINK_SEND(l, fi_tinject(l->ep, &k, 4, l->to, TAG + w->i));
		CHECK_EQ(fi_trecv(l->ep, &word, 4, NULL, l->to, TAG + w->i, 0,
				  (void *)(uintptr_t)w->i), 0);
		while (atomic_load(&w->done[w->i]) == k)
			if (fi_cq_read(l->cq, &e, 1) == 1)
				atomic_fetch_add(&w->done[(uintptr_t)
							  e.op_context], 1);
		CHECK_EQ(word, k);
	}
	return NULL;
}

static void echoes_tags(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, NULL);

	(void)arg;
	for (unsigned int n = 0; n < THREADS * EACH; n++) {
		struct fi_cq_tagged_entry e;
		uint32_t word;

		CHECK_EQ(fi_trecv(l.ep, &word, 4, NULL, FI_ADDR_UNSPEC, TAG,
				  0xff, NULL), 0);
		e = link_next(&l, NULL);
		LINK_SEND(&l, fi_tinject(l.ep, &word, 4, l.to, e.tag));
	}
	link_meet(&l);
	link_close(&l);
}

TEST(threads_share_an_endpoint_and_a_queue)
{
	const struct link_config c = { .threading = FI_THREAD_SAFE };
	struct peer *p = peer_spawn(8, echoes_tags, NULL);
	struct link l = link_open(p, 8, &c);
	_Atomic unsigned int done[THREADS] = { 0 };
	struct worker w[THREADS];

	for (unsigned int i = 0; i < THREADS; i++) {
		w[i] = (struct worker){ .l = &l, .i = i, .done = done };
		CHECK_EQ(pthread_create(&w[i].thread, NULL, works, &w[i]), 0);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(w[i].thread, NULL), 0);
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

struct changer {
	struct link *l;
	_Atomic bool stop;
};

static void *changes_addresses(void *arg)
{
	struct changer *c = arg;

	for (uint32_t i = 1; !atomic_load(&c->stop); i = i % 1000 + 1) {
		fi_addr_t n = link_insert(c->l, 12, i);

		CHECK_EQ(fi_av_remove(c->l->av, &n, 1, 0), 0);
	}
	return NULL;
}

/* Endpoints that use an address vector open and close while it changes. */
TEST(an_address_vector_changes_while_endpoints_come_and_go)
{
	const struct link_config config = { .threading = FI_THREAD_SAFE };
	struct link l = link_open(NULL, 4, &config);
	struct changer c = { .l = &l };
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, changes_addresses, &c), 0);
	l.info->src_addrlen = 0;
	for (unsigned int i = 0; i < 20; i++) {
		struct fid_ep *ep[3];

		for (size_t k = 0; k < ARRAY_LEN(ep); k++) {
			CHECK_EQ(fi_endpoint(l.domain, l.info, &ep[k], NULL), 0);
			CHECK_EQ(fi_ep_bind(ep[k], &l.av->fid, 0), 0);
		}
		for (size_t k = 0; k < ARRAY_LEN(ep); k++)
			CHECK_EQ(fi_close(&ep[k]->fid), 0);
	}
	atomic_store(&c.stop, true);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	link_close(&l);
}

TEST(one_thread_needs_no_locks)
{
	const struct link_config c = { .threading = FI_THREAD_DOMAIN };
	unsigned int n = WAKES;
	struct peer *p = peer_spawn(8, echoes, &n);
	struct link l = link_open(p, 8, &c);
	uint32_t word = 1;

	for (unsigned int i = 0; i < WAKES; i++) {
		LINK_SEND(&l, fi_tinject(l.ep, &word, 4, l.to, TAG));
		CHECK_EQ(fi_trecv(l.ep, &word, 4, NULL, l.to, TAG, 0, NULL), 0);
		link_next(&l, NULL);
	}
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}
