// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test Madeleine through a gateway between two rings, in virtual time (profile A):
 * bandwidth beside that of one ring, and the time that the gateway adds.
 *
 * Each node has one ring's adapter. Packets of both rings share the model's links,
 * which are faster than the buses. The gateway's CPU serves both rings in turn.
 */
#include <stdlib.h>
#include <string.h>

#include "libsci/madeleine/rail.h"
#include "selftests/harness.h"
#include "selftests/madeleine/files.h"
#include "selftests/sim/vtime_world.h"

#define GATEWAY		1
#define LAST		2
#define CHANNEL		2		/* virtual channel of the session */
#define WARM_UP		20u		/* messages of up to WARM_UP_BYTES */
#define WARM_UP_BYTES	65536u

static const char nets_text[] =
	"networks : ({ name : west; dev : sisci; }, { name : east; dev : sisci; });";
static const char gateway_text[] =
	"application : { networks : { channels : ({ name : l; net : west; hosts : (a, g); },"
	" { name : r; net : east; hosts : (g, b); });"
	" vchannels : { name : c; channels : (l, r); }; }; };";

struct run {
	size_t len;
	unsigned int messages;		/* number that is measured */
	bool one_way;			/* only the last message is answered */
	bool two_buses;
	double us;			/* time of a message */
	struct session *session;
	bool ended;			/* the first process has all answers */
	bool left;			/* the gateway has stopped */
	bool differs;
	int error;
};

/* Set up a route through the gateway. Ranks 0 and 2 are on different networks. */
static void pair_route(struct pair *p, int me, int other)
{
	struct mad_link *in = &p->in.stream->link, *out = &p->out.stream->link;
	struct mad_inbox *inbox = &p->reception.inbox;

	in->channel = out->channel = inbox->channel = CHANNEL;
	in->network = out->network = me == LAST;
	in->way = mad_way_new(CHANNEL, other, me, 0);
	out->way = mad_way_new(CHANNEL, me, other, 0);
	in->way->via = out->way->via = GATEWAY;
	inbox->ways = true;
	inbox->networks = 1ull << in->network;
}

static void post(struct pair *p, const uint8_t *buf, size_t len)
{
	p_mad_connection_t k = mad_begin_packing(&p->channel, p->out.remote_rank);

	mad_pack(k, buf, len, mad_send_CHEAPER, mad_receive_CHEAPER);
	mad_end_packing(k);
}

static void get(struct pair *p, uint8_t *buf, size_t len)
{
	p_mad_connection_t k = mad_begin_unpacking(&p->channel);

	mad_unpack(k, buf, len, mad_send_CHEAPER, mad_receive_CHEAPER);
	mad_end_unpacking(k);
}

/* The first process sends @n messages. The other one answers each, or only the last. */
static void messages(struct run *run, struct pair *p, uint8_t *buf, size_t len, unsigned int n,
		     bool first)
{
	size_t answer = run->one_way ? 4 : len;

	for (unsigned int i = 0; i < n; i++) {
		bool is_answered = !run->one_way || i + 1 == n;

		if (first) {
			test_fill(buf, len, i);
			post(p, buf, len);
			if (is_answered)
				get(p, buf, answer);
		} else {
			get(p, buf, len);
			run->differs |= !test_filled(buf, len, i);
			if (is_answered)
				post(p, buf, answer);
		}
	}
}

static void end_run(struct vt_node *n, struct run *run, struct pair *p, uint8_t *buf)
{
	bool first = !vt_index(n);
	uint64_t begin;

	messages(run, p, buf, tbx_min(run->len, WARM_UP_BYTES), WARM_UP, first);
	begin = vt_clock(n);
	messages(run, p, buf, run->len, run->messages, first);
	if (!first)
		return;
	run->us = (double)(vt_clock(n) - begin) / (run->messages * (double)VT_US);
	run->ended = true;
}

static void forward(struct vt_node *n, struct run *run, struct mad_world *w)
{
	struct rail *rail = rails_of(w)->rail;

	while (!run->ended) {
		uint64_t seen = vt_touches(n);

		if (gateway_step(&rail[0], 0) + gateway_step(&rail[1], 0) == 0)
			vt_wait(n, seen, vt_clock(n) + VT_MS);
	}
	run->left = true;
}

static int connect_all(struct mad_world *w, struct run *run)
{
	int ret = 0;

	if (!run->session)
		return w->net->connect(w, 0, !w->rank);
	if (w->rank != LAST)
		ret = w->net->connect(w, 0, w->rank ? 0 : GATEWAY);
	if (w->rank && !ret)
		ret = w->net->connect(w, 1, w->rank == LAST ? GATEWAY : LAST);
	for (int i = 0; i < 2 && !ret && w->rank == GATEWAY; i++)
		ret = gateway_open(&rails_of(w)->rail[i]);
	return ret;
}

static void play(struct vt_node *n, void *arg)
{
	struct run *run = arg;
	struct mad_world *w = world_open(n, run->session ? 3 : 2);
	int other = run->session ? LAST - w->rank : !w->rank;
	uint8_t *buf = tbx_alloc(1, run->len);
	struct pair p;
	int ret;

	w->session = run->session;
	pair_open(&p, w->rank, other);
	ret = w->net->open(w);
	ret = ret ? ret : connect_all(w, run);
	if (run->session && w->rank != GATEWAY)
		pair_route(&p, w->rank, other);
	if (!ret && run->session && w->rank == GATEWAY)
		forward(n, run, w);
	else if (!ret)
		end_run(n, run, &p, buf);
	/* stay until the gateway has stopped: an exit would end it */
	while (!ret && run->session && !run->left)
		vt_wait(n, vt_touches(n), vt_clock(n) + VT_MS);
	run->error = run->error ? run->error : ret;
	w->net->close(w);
	pair_close(&p);
	free(buf);
}

static double time_of(struct run run, bool gateway)
{
	unsigned int nodes = gateway ? 3 : 2;
	char file[64], nets[64];
	struct vt_profile p;
	struct vt_sim *s;

	if (gateway) {
		test_file(gateway_text, file);
		test_file(nets_text, nets);
		run.session = mad_session_read(file, nets);
	}
	CHECK(vt_profile_read(&p, "sim/profiles/a.profile"));
	worlds_begin();
	s = vt_new(&p, nodes, NULL, 1);
	CHECK(s != NULL);
	if (run.two_buses)
		vt_two_buses(vt_node(s, GATEWAY));
	for (unsigned int i = 0; i < nodes; i++)
		vt_start(vt_node(s, i), play, &run);
	CHECK(vt_run(s));
	vt_free(s);
	CHECK_EQ(run.error, 0);
	CHECK(!run.differs);
	if (gateway)
		mad_session_free(run.session);
	return run.us;
}

/* A gateway adds the time of one ring to a message. */
TEST(short_messages)
{
	static const size_t lengths[] = { 4, 64, 512, 4096 };

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct run r = { .len = lengths[i], .messages = 20 };
		double direct = time_of(r, false) / 2, gateway = time_of(r, true) / 2;

		test_note("%zu bytes: one ring %.2f us, through the gateway %.2f us", r.len,
			  direct, gateway);
		/* the message is on two rings, one after the other */
		CHECK(gateway > direct && gateway < 2.1 * direct);
	}
}

/* Return the bandwidth through the gateway, in percent of one ring's bandwidth. */
static double bandwidth(size_t len, unsigned int messages, bool two_buses)
{
	struct run r = {
		.len = len, .messages = messages, .one_way = true, .two_buses = two_buses,
	};
	double direct = (double)len / time_of(r, false);
	double gateway = (double)len / time_of(r, true);

	test_note("%zu KiB: one ring %.1f MB/s, through the gateway %.1f MB/s, %.1f %%",
		  len >> 10, direct, gateway, 100 * gateway / direct);
	return 100 * gateway / direct;
}

/* With its adapters on two buses the gateway is as fast as one ring. */
TEST(long_messages_by_two_buses)
{
	CHECK(bandwidth(64u << 10, 24, true) >= 95);
	CHECK(bandwidth(1u << 20, 6, true) >= 95);
	CHECK(bandwidth(8u << 20, 1, true) >= 95);
}

/*
 * The bus of this profile takes 839 ns for 64 outgoing bytes, and 667 ns for 64
 * incoming bytes: a gateway with one bus can't exceed 42.5 MB/s, 56 % of a ring.
 */
TEST(long_messages_by_one_bus)
{
	CHECK(bandwidth(1u << 20, 6, false) >= 54);
}
