// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Senders that do not stop, and a receiver that does not receive: the
 * receiver's memory stays bounded, the senders are held back, and at last every
 * message is received in order.
 *
 * The flooder counts completed sends in shared memory.  The flood stands still
 * when both sides have made many calls since that number last changed.
 */
#include <signal.h>

#include "selftests/msg/traffic.h"

#define FLOODERS	4u
#define UNDER_WAY	64u		/* sends under way of a flooder */
#define KEEP		(256u << 10)	/* SCI_PARAM_UNEXPECTED_MAX */
#define STILL		400u		/* calls without a new completion */
#define OTHER_TAG	0x0badull
#define OTHER_CONTEXT	7u

/* The messages of a flood. */
struct flood_kind {
	size_t len;
	unsigned int count;		/* far more than the receiver keeps */
	bool tagged;
};

struct flood {
	struct flood_kind kind;
	bool behind;			/* a message with another tag at the end */
	bool long_back;			/* the flooder receives a long message */
	_Atomic uint64_t posted;
	_Atomic uint64_t completed;
	_Atomic uint64_t calls;		/* calls of the flooder */
	_Atomic bool got_long;
	_Atomic bool done;
};

#define LONG_LEN	(1u << 20)
#define LONG_SEED	99u

/* Make the rings small: messages that fit a ring are not held back. */
static void small_rings(struct sci_ep *ep)
{
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_EAGER_RING, 65536), 0);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_XFER_RING, 65536), 0);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_EAGER_MAX, 8192), 0);
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_ATTACH_AFTER, 0), 0);
}

/* ---- the flooder ---- */

struct hose {
	struct flood *f;
	struct sci_ep *ep;
	struct sci_peer *to;
	struct sci_req *req[UNDER_WAY];
	unsigned char *buf[UNDER_WAY];
	struct sci_req *other, *back;
	unsigned char *long_buf;
};

static void hose_post(struct hose *h, unsigned int i)
{
	const struct flood_kind *k = &h->f->kind;
	uint64_t n = atomic_load(&h->f->posted);

	if (n == k->count)
		return;
	msg_fill(h->buf[i], k->len, n);
	if (k->tagged)
		CHECK_EQ(sci_itsend(h->to, 0, n, h->buf[i], k->len,
				    &h->req[i]), 0);
	else
		CHECK_EQ(sci_isend(h->to, h->buf[i], k->len, &h->req[i]), 0);
	atomic_store(&h->f->posted, ++n);
	if (n == k->count && h->f->behind)
		CHECK_EQ(sci_itsend(h->to, OTHER_CONTEXT, OTHER_TAG, "behind",
				    6, &h->other), 0);
}

static void hose_step(struct hose *h)
{
	for (unsigned int i = 0; i < UNDER_WAY; i++) {
		int ret = 0;

		if (h->req[i])
			ret = sci_test(h->req[i], NULL);
		if (ret == -EAGAIN)
			continue;
		CHECK_EQ(ret, 0);
		if (h->req[i])
			atomic_fetch_add(&h->f->completed, 1);
		h->req[i] = NULL;
		hose_post(h, i);
	}
	atomic_fetch_add(&h->f->calls, 1);
}

static void hose_begin(struct hose *h)
{
	for (unsigned int i = 0; i < UNDER_WAY; i++) {
		h->buf[i] = malloc(h->f->kind.len + 1);
		CHECK(h->buf[i]);
	}
	if (!h->f->long_back)
		return;
	h->long_buf = malloc(LONG_LEN);
	CHECK_EQ(sci_itrecv(h->ep, h->to, OTHER_CONTEXT, OTHER_TAG, 0,
			    h->long_buf, LONG_LEN, &h->back), 0);
}

static void hose_end(struct hose *h)
{
	if (h->other)
		CHECK_EQ(test_wait(h->other, NULL), 0);
	CHECK(!h->back);
	free(h->long_buf);
	for (unsigned int i = 0; i < UNDER_WAY; i++)
		free(h->buf[i]);
}

static void hose_look_back(struct hose *h)
{
	int ret;

	if (!h->back)
		return;
	ret = sci_test(h->back, NULL);
	if (ret == -EAGAIN)
		return;
	CHECK_EQ(ret, 0);
	h->back = NULL;
	CHECK_BYTES(h->long_buf, LONG_LEN, LONG_SEED);
	atomic_store(&h->f->got_long, true);
}

static void flooder(struct peer *self, void *arg)
{
	struct hose h = { .f = arg };

	(void)self;
	h.ep = test_ep_open(TEST_ID, 0);
	small_rings(h.ep);
	h.to = test_ep_connect(h.ep, 4, TEST_ID);
	hose_begin(&h);
	while (atomic_load(&h.f->completed) < h.f->kind.count) {
		hose_step(&h);
		hose_look_back(&h);
		/* let the other processes run now and then */
		if (atomic_load(&h.f->calls) % 16 == 0)
			test_pause();
	}
	PROGRESS_UNTIL(h.ep, atomic_load(&h.f->done), TEST_WAIT_MS);
	hose_end(&h);
	CHECK_EQ(sci_ep_close(h.ep), 0);
}

/* ---- the receiver ---- */

struct drain {
	struct sci_ep *ep;
	unsigned int n;			/* flooders */
	struct flood *f[FLOODERS];
	struct peer *p[FLOODERS];
	struct sci_peer *from[FLOODERS];	/* in order of their nodes */
	uint64_t rings;			/* bytes that a pair may attach */
	uint64_t keep;
	size_t rss;
};

static size_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long all, pages = 0;

	CHECK(file != NULL);
	CHECK_EQ(fscanf(file, "%lu %lu", &all, &pages), 2);
	fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void drain_accept(struct drain *d)
{
	for (unsigned int i = 0; i < d->n; i++) {
		struct sci_peer *from = test_ep_accept(d->ep);
		struct sci_addr addr;

		CHECK_EQ(sci_peer_addr(from, &addr), 0);
		CHECK(addr.node >= 8 && addr.node < 8 + 4 * d->n);
		d->from[(addr.node - 8) / 4] = from;
	}
}

static struct drain drain_open(unsigned int n, const struct flood *model)
{
	struct drain d = { .n = n };

	for (unsigned int i = 0; i < n; i++) {
		d.f[i] = test_shared(sizeof(*d.f[i]));
		d.f[i]->kind = model->kind;
		d.f[i]->behind = model->behind;
		d.f[i]->long_back = model->long_back;
		d.p[i] = peer_spawn(8 + 4 * i, flooder, d.f[i]);
	}
	d.ep = test_ep_open(TEST_ID, 0);
	small_rings(d.ep);
	CHECK_EQ(sci_ep_set(d.ep, SCI_PARAM_UNEXPECTED_MAX, KEEP), 0);
	d.keep = test_ep_get(d.ep, SCI_PARAM_UNEXPECTED_MAX);
	d.rings = test_ep_get(d.ep, SCI_PARAM_EAGER_RING) +
		  test_ep_get(d.ep, SCI_PARAM_XFER_RING) + 16384;
	CHECK(d.keep <= 16 * KEEP);
	drain_accept(&d);
	d.rss = resident_bytes();
	return d;
}

static void drain_close(struct drain *d)
{
	for (unsigned int i = 0; i < d->n; i++)
		atomic_store(&d->f[i]->done, true);
	for (unsigned int i = 0; i < d->n; i++) {
		CHECK_EQ(sci_recv(d->ep, d->from[i], NULL, 0, NULL),
			 -ENOTCONN);
		peer_join(d->p[i]);
	}
	CHECK_EQ(sci_ep_close(d->ep), 0);
}

/* Wait until both sides have made many calls without a completion. */
static void until_still(struct drain *d, bool progress)
{
	for (unsigned int i = 0; i < d->n; i++) {
		struct flood *f = d->f[i];
		uint64_t seen = UINT64_MAX, since = 0, mine = 0;

		WAIT_UNTIL(({
			uint64_t now = atomic_load(&f->completed);

			if (progress)
				test_progress(d->ep);
			if (now != seen || !atomic_load(&f->posted)) {
				since = atomic_load(&f->calls);
				mine = 0;
			}
			seen = now;
			mine++ > STILL &&
				atomic_load(&f->calls) > since + STILL;
		}), TEST_WAIT_MS);
	}
}

/*
 * Check that most sends have not completed.  A message takes more memory than
 * its bytes, and more messages may be in the rings.
 */
static void check_held_back(struct drain *d)
{
	struct sci_ep_stats s = test_ep_stats(d->ep);
	uint64_t slack = d->n * (d->rings + 65536);
	size_t rss = resident_bytes();

	for (unsigned int i = 0; i < d->n; i++) {
		CHECK(atomic_load(&d->f[i]->completed) <
		      d->f[i]->kind.count - UNDER_WAY);
		CHECK(atomic_load(&d->f[i]->posted) >
		      atomic_load(&d->f[i]->completed));
	}
	CHECK(s.unexpected_bytes <= d->keep + slack);
	test_note("kept: %llu messages, %llu bytes of %llu; resident: %zu more",
		  (unsigned long long)s.unexpected,
		  (unsigned long long)s.unexpected_bytes,
		  (unsigned long long)d->keep, rss - d->rss);
	/* the sanitizers need memory of their own */
	if (!(TEST_ASAN || TEST_TSAN))
		CHECK(rss < d->rss + 8 * d->keep + slack + (4u << 20));
}

static void receive_one(struct drain *d, unsigned int i, uint64_t n)
{
	static unsigned char buf[LONG_LEN];
	const struct flood_kind *k = &d->f[i]->kind;
	struct sci_status st;
	struct sci_req *req;

	if (k->tagged)
		CHECK_EQ(sci_itrecv(d->ep, d->from[i], 0, 0, UINT64_MAX, buf,
				    sizeof(buf), &req), 0);
	else
		CHECK_EQ(sci_irecv(d->ep, d->from[i], buf, sizeof(buf), &req),
			 0);
	CHECK_EQ(test_wait(req, &st), 0);
	CHECK_EQ(st.len, k->len);
	if (k->tagged)
		CHECK_EQ(st.tag, n);
	CHECK_BYTES(buf, k->len, n);
}

static void receive_everything(struct drain *d)
{
	for (uint64_t n = 0; n < d->f[0]->kind.count; n++)
		for (unsigned int i = 0; i < d->n; i++)
			receive_one(d, i, n);
	CHECK_EQ(test_ep_stats(d->ep).unexpected, 0);
	CHECK_EQ(test_ep_stats(d->ep).unexpected_bytes, 0);
}

/* ---- one flooder ---- */

static void check_flood(struct flood_kind kind, bool progress)
{
	struct flood model = { .kind = kind };
	struct drain d = drain_open(1, &model);

	until_still(&d, progress);
	check_held_back(&d);
	receive_everything(&d);
	drain_close(&d);
}

#define COUNT(n)	((n) / (TRAFFIC_SLOW > 1 ? 2 : 1))

/* Empty messages take memory too, though not for their bytes. */
TEST(empty_messages)
{
	check_flood((struct flood_kind){ 0, 60000, false }, true);
}

TEST(short_messages)
{
	check_flood((struct flood_kind){ 48, 40000, true }, true);
}

TEST(messages_of_several_lines)
{
	check_flood((struct flood_kind){ 300, COUNT(12000), false }, true);
}

TEST(eager_messages)
{
	check_flood((struct flood_kind){ 4000, COUNT(3000), true }, true);
}

TEST(rendezvous_messages)
{
	check_flood((struct flood_kind){ 200000, 150, false }, true);
}

/* Only the sender makes calls. */
TEST(a_receiver_that_makes_no_call)
{
	check_flood((struct flood_kind){ 3000, COUNT(3000), false }, false);
}

TEST(a_receiver_that_makes_no_call_and_short_messages)
{
	check_flood((struct flood_kind){ 8, COUNT(20000), true }, false);
}

/* ---- while the flood stands still ---- */

TEST(a_receive_for_what_is_behind)
{
	struct flood model = {
		.kind = { 1000, COUNT(3000), true }, .behind = true,
	};
	struct drain d = drain_open(1, &model);
	struct sci_status st;
	struct sci_req *req;
	char buf[16];

	until_still(&d, true);
	check_held_back(&d);
	/* the receiver must take in the whole flood to find this message */
	CHECK_EQ(sci_itrecv(d.ep, d.from[0], OTHER_CONTEXT, OTHER_TAG, 0, buf,
			    sizeof(buf), &req), 0);
	CHECK_EQ(test_wait(req, &st), 0);
	CHECK(st.len == 6 && !memcmp(buf, "behind", 6));
	receive_everything(&d);
	drain_close(&d);
}

TEST(a_probe_for_what_is_behind)
{
	struct flood model = {
		.kind = { 1000, COUNT(3000), true }, .behind = true,
	};
	struct drain d = drain_open(1, &model);
	struct sci_msg *msg;
	char buf[16];

	until_still(&d, true);
	CHECK_EQ(sci_tmatch(d.ep, NULL, OTHER_CONTEXT, OTHER_TAG, 0,
			    TEST_WAIT_MS, &msg, NULL), 0);
	CHECK_EQ(sci_msg_copy(msg, 0, buf, 6), 0);
	CHECK(!memcmp(buf, "behind", 6));
	sci_msg_free(msg);
	receive_everything(&d);
	drain_close(&d);
}

TEST(a_long_message_the_other_way)
{
	struct flood model = {
		.kind = { 2000, COUNT(3000), false }, .long_back = true,
	};
	struct drain d = drain_open(1, &model);
	unsigned char *buf = malloc(LONG_LEN);
	struct sci_req *req;

	until_still(&d, true);
	check_held_back(&d);
	msg_fill(buf, LONG_LEN, LONG_SEED);
	CHECK_EQ(sci_itsend(d.from[0], OTHER_CONTEXT, OTHER_TAG, buf, LONG_LEN,
			    &req), 0);
	CHECK_EQ(test_wait(req, NULL), 0);
	PROGRESS_UNTIL(d.ep, atomic_load(&d.f[0]->got_long), TEST_WAIT_MS);
	check_held_back(&d);
	receive_everything(&d);
	drain_close(&d);
	free(buf);
}

/* ---- receives that do not wait for the flood ---- */

/* Accept a connection, and send a message when told to. */
static void sends_late(struct peer *self, void *arg)
{
	struct sci_peer *to;
	struct sci_ep *ep;

	(void)arg;
	ep = test_ep_open(TEST_ID, 0);
	CHECK_EQ(sci_accept(ep, TEST_WAIT_MS, &to), 0);
	peer_expect(self, "go");
	CHECK_EQ(sci_tsend(to, OTHER_CONTEXT, 0, "late", 4), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(a_receive_for_another_peer)
{
	struct flood model = { .kind = { 2000, COUNT(3000), false } };
	struct peer *q = peer_spawn(40, sends_late, NULL);
	struct sci_addr late = { 40, TEST_ID };
	struct drain d = drain_open(1, &model);
	struct sci_peer *third;
	struct sci_req *req;
	char buf[4];

	CHECK_EQ(sci_peer_open(d.ep, &late, -1, &third), 0);
	CHECK_EQ(sci_itrecv(d.ep, third, OTHER_CONTEXT, 0, 0, buf, sizeof(buf),
			    &req), 0);
	until_still(&d, true);
	check_held_back(&d);
	peer_send(q, "go");
	CHECK_EQ(test_wait(req, NULL), 0);
	peer_join(q);
	receive_everything(&d);
	drain_close(&d);
}

/* Messages of a dead flooder can be received; a disconnect frees the others. */
static void check_flooder_dies(bool receive)
{
	struct flood model = { .kind = { 500, 20000, false } };
	struct drain d = drain_open(1, &model);
	uint64_t kept;

	until_still(&d, true);
	check_held_back(&d);
	peer_kill(d.p[0], SIGKILL);
	kept = test_ep_stats(d.ep).unexpected;
	CHECK(kept > 0);
	if (receive)
		for (uint64_t n = 0; n < kept; n++)
			receive_one(&d, 0, n);
	CHECK_EQ(sci_disconnect(d.from[0]), 0);
	CHECK_EQ(test_ep_stats(d.ep).unexpected, 0);
	CHECK_EQ(test_ep_stats(d.ep).unexpected_bytes, 0);
	CHECK_EQ(test_ep_stats(d.ep).peers, 0);
	CHECK_EQ(test_ep_stats(d.ep).peer_bytes, 0);
	CHECK_EQ(sci_ep_close(d.ep), 0);
}

TEST(the_flooder_dies)
{
	check_flooder_dies(true);
}

TEST(the_flooder_dies_unheard)
{
	check_flooder_dies(false);
}

/* ---- several flooders ---- */

TEST(several_flooders)
{
	struct flood model = { .kind = { 2000, COUNT(2000), true } };
	struct drain d = drain_open(FLOODERS, &model);

	until_still(&d, true);
	check_held_back(&d);
	receive_everything(&d);
	drain_close(&d);
}

/* The source of a message determines its bytes. */
TEST(several_flooders_and_any_source)
{
	static unsigned char buf[4096];
	struct flood model = { .kind = { 700, COUNT(3000), false } };
	struct drain d = drain_open(FLOODERS, &model);
	uint64_t next[FLOODERS] = { 0 };

	until_still(&d, true);
	check_held_back(&d);
	for (unsigned int n = 0; n < FLOODERS * model.kind.count; n++) {
		struct sci_status st;
		struct sci_req *req;
		unsigned int i;

		CHECK_EQ(sci_irecv(d.ep, NULL, buf, sizeof(buf), &req), 0);
		CHECK_EQ(test_wait(req, &st), 0);
		for (i = 0; i < FLOODERS && d.from[i] != st.peer; i++)
			;
		CHECK(i < FLOODERS);
		CHECK_EQ(st.len, 700);
		CHECK_BYTES(buf, 700, next[i]);
		next[i]++;
	}
	for (unsigned int i = 0; i < FLOODERS; i++)
		CHECK_EQ(next[i], model.kind.count);
	drain_close(&d);
}

/* A flood does not hold up a few messages of another peer. */
#define FEW	20u

static void sends_a_few(struct peer *self, void *arg)
{
	struct sci_peer *to;
	struct sci_ep *ep;

	(void)arg;
	peer_expect(self, "go");
	ep = test_ep_open(TEST_ID, 0);
	to = test_ep_connect(ep, 4, TEST_ID);
	for (uint64_t i = 0; i < FEW; i++)
		CHECK_EQ(sci_tsend(to, OTHER_CONTEXT, i, &i, sizeof(i)), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(a_third_beside_the_flooder)
{
	struct flood model = { .kind = { 2000, COUNT(3000), false } };
	struct peer *q = peer_spawn(40, sends_a_few, NULL);
	struct drain d = drain_open(1, &model);
	struct sci_peer *third;

	until_still(&d, true);
	peer_send(q, "go");
	third = test_ep_accept(d.ep);
	for (uint64_t i = 0; i < FEW; i++) {
		struct sci_req *req;
		uint64_t got = 0;

		CHECK_EQ(sci_itrecv(d.ep, third, OTHER_CONTEXT, i, 0, &got,
				    sizeof(got), &req), 0);
		CHECK_EQ(test_wait(req, NULL), 0);
		CHECK_EQ(got, i);
	}
	peer_join(q);
	receive_everything(&d);
	drain_close(&d);
}
