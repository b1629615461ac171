// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test faults of sci-switch: loss, duplicates, reordering, corruption, delay, links. */
#include "selftests/sim/switch.h"

#define MANY	4000u
#define BURST	50u		/* packets between two fences */

/* Numbers of the packets that have arrived, of MANY packets from 4 to 8. */
struct arrived {
	unsigned int n;
	uint32_t number[2 * MANY];	/* 0: corrupted */
};

static int a, b;

static void nodes_4_and_8(void)
{
	a = adapter(4);
	b = adapter(8);
}

/* Wait until no packet is held, then until all delivered packets have been read. */
static void settle(struct arrived *r)
{
	WAIT_UNTIL((r->n += read_numbers(b, r->number + r->n, 2 * MANY - r->n),
		    counter("8", "delivered") + counter("4", "lost") +
		    counter("ring:4", "lost") ==
		    MANY + counter("4", "duplicated") +
		    counter("ring:4", "duplicated")), TEST_WAIT_MS);
	/* packets that did not fit into the socket are in the daemon's queue */
	WAIT_UNTIL((r->n += read_numbers(b, r->number + r->n, 2 * MANY - r->n),
		    r->n == counter("8", "delivered")), TEST_WAIT_MS);
}

static void send_many(struct arrived *r)
{
	uint32_t i;

	r->n = 0;
	for (i = 1; i <= MANY; i++) {
		send_request(a, 4, 8, i);
		if (i % BURST)
			continue;
		fence(a, 4);
		r->n += read_numbers(b, r->number + r->n, 2 * MANY - r->n);
	}
	settle(r);
}

static void run(struct arrived *r, const char *seed, const char *command)
{
	daemon_start_seed(NULL, seed);
	nodes_4_and_8();
	control(command);
	send_many(r);
}

static void end(void)
{
	close(a);
	close(b);
	daemon_stop();
}

static bool same(const struct arrived *x, const struct arrived *y)
{
	return x->n == y->n &&
	       !memcmp(x->number, y->number, x->n * sizeof(x->number[0]));
}

/* Check that @n of MANY is near @ppm parts per million. */
static void about(uint64_t n, unsigned int ppm)
{
	uint64_t want = (uint64_t)MANY * ppm / 1000000;

	test_note("%llu, about %llu", (unsigned long long)n,
		  (unsigned long long)want);
	CHECK(n > want * 8 / 10);
	CHECK(n < want * 12 / 10);
}

static unsigned int count_zero(const struct arrived *r)
{
	unsigned int i, n = 0;

	for (i = 0; i < r->n; i++)
		n += !r->number[i];
	return n;
}

/* Count the packets that arrived behind a packet sent later. */
static unsigned int count_late(const struct arrived *r)
{
	unsigned int i, n = 0;
	uint32_t last = 0;

	for (i = 0; i < r->n; i++) {
		n += r->number[i] < last;
		if (r->number[i] > last)
			last = r->number[i];
	}
	return n;
}

/* Places to set a fault at: node or links. Only their random generators differ. */
static const char *const places[] = { "4", "ring:4", "all", "links", "ring" };

#define EACH_PLACE(i) for (unsigned int i = 0; i < ARRAY_LEN(places); i++)

static const char *set(unsigned int place, const char *what)
{
	static char command[128];

	snprintf(command, sizeof(command), "set %s %s", places[place], what);
	return command;
}

static uint64_t counted(const char *name)
{
	return counter("4", name) + counter("ring:4", name);
}

TEST(nothing_is_lost_without_faults)
{
	struct arrived r;
	unsigned int i;

	run(&r, "1", "seed 5");
	CHECK_EQ(r.n, MANY);
	for (i = 0; i < MANY; i++)
		CHECK_EQ(r.number[i], i + 1);
	CHECK_EQ(counter("4", "forwarded"), MANY);
	CHECK_EQ(counter("8", "delivered"), MANY);
	CHECK_EQ(counter("4", "bytes"), MANY * 112);
	end();
}

TEST(loss)
{
	static struct arrived r;

	EACH_PLACE(i) {
		run(&r, "1", set(i, "loss 100000"));
		about(MANY - r.n, 100000);
		if (!i)			/* the same on all machines */
			CHECK_EQ(MANY - r.n, 373);
		CHECK_EQ(counted("lost"), MANY - r.n);
		CHECK_EQ(count_late(&r), 0);
		CHECK_EQ(count_zero(&r), 0);
		end();
	}
}

TEST(duplicates)
{
	static struct arrived r;
	unsigned int i, twice = 0;

	EACH_PLACE(k) {
		run(&r, "1", set(k, "duplicate 100000"));
		about(r.n - MANY, 100000);
		CHECK_EQ(counted("duplicated"), r.n - MANY);
		for (i = 1, twice = 0; i < r.n; i++)
			twice += r.number[i] == r.number[i - 1];
		CHECK_EQ(twice, r.n - MANY);
		end();
	}
}

TEST(corruption)
{
	static struct arrived r;

	EACH_PLACE(i) {
		run(&r, "1", set(i, "corrupt 100000"));
		CHECK_EQ(r.n, MANY);
		about(count_zero(&r), 100000);
		CHECK_EQ(counted("corrupted"), count_zero(&r));
		end();
	}
}

/* Packets that two links corrupt must not become valid again. */
TEST(corruption_everywhere)
{
	static struct arrived r;

	run(&r, "1", "set all corrupt 1000000");
	CHECK_EQ(count_zero(&r), MANY);
	control("reset");
	control("set all corrupt 1000000");
	control("set links corrupt 1000000");
	send_many(&r);
	CHECK_EQ(count_zero(&r), MANY);
	CHECK_EQ(counted("corrupted"), 2 * MANY);
	end();
}

TEST(disorder)
{
	static struct arrived r;

	EACH_PLACE(i) {
		run(&r, "1", set(i, "reorder 50000"));
		CHECK_EQ(r.n, MANY);
		/* a packet is not held while another is */
		CHECK(counted("reordered") > 150);
		CHECK_EQ(count_late(&r), counted("reordered"));
		end();
	}
}

TEST(disorder_over_a_distance)
{
	static struct arrived r;
	unsigned int i;

	daemon_start(NULL);
	nodes_4_and_8();
	control("set 4 distance 7");
	control("set 4 hold 3600s");
	control("set 4 reorder 1000000");
	for (i = 1; i <= 64; i++)
		send_request(a, 4, 8, i);
	fence(a, 4);
	r.n = read_numbers(b, r.number, 2 * MANY);
	CHECK_EQ(r.n, 64);
	for (i = 0; i < 64; i++)
		CHECK_EQ(r.number[i], i % 8 == 7 ? i - 6 : i + 2);
	CHECK_EQ(counter("4", "reordered"), 8);
	end();
}

/* A held packet is released after some time, even if no packet overtakes it. */
TEST(a_packet_that_nobody_overtakes)
{
	daemon_start(NULL);
	nodes_4_and_8();
	control("set 4 reorder 1000000");
	control("set 4 distance 1000");
	send_request(a, 4, 8, 1);
	expect_packet(b, 1);
	end();
}

static const char *const all_faults[] = {
	"set all loss 50000", "set all duplicate 50000", "set all corrupt 50000",
	"set links reorder 50000", "set links distance 3",
	"set links hold 3600s",
};

/* Send MANY packets from 4 to 8. Packets of @others, from 12 to 16, must not matter. */
static void with_all_faults(struct arrived *r, const char *seed, bool others)
{
	unsigned int i;
	int c, d;

	daemon_start_seed(NULL, seed);
	nodes_4_and_8();
	c = adapter(12);
	d = adapter(16);
	for (i = 0; i < ARRAY_LEN(all_faults); i++)
		control(all_faults[i]);
	r->n = 0;
	for (i = 1; i <= MANY; i++) {
		send_request(a, 4, 8, i);
		if (others)
			send_request(c, 12, 16, i);
		if (i % BURST)
			continue;
		fence(a, 4);
		fence(c, 12);
		r->n += read_numbers(b, r->number + r->n, 2 * MANY - r->n);
		read_numbers(d, r->number + r->n, 2 * MANY - r->n);
	}
	close(c);
	close(d);
}

TEST(the_same_seed_does_the_same)
{
	static struct arrived r[3];

	with_all_faults(&r[0], "77", false);
	CHECK(r[0].n > MANY / 2);
	end();
	with_all_faults(&r[1], "77", true);
	CHECK(same(&r[0], &r[1]));
	end();
	with_all_faults(&r[2], "78", false);
	CHECK(!same(&r[0], &r[2]));
	end();
}

TEST(a_seed_begins_anew)
{
	static struct arrived r[3];

	run(&r[0], "9", "set 4 loss 300000");
	control("reset");
	control("set 4 loss 300000");
	send_many(&r[1]);
	CHECK(same(&r[0], &r[1]));
	control("reset");
	control("seed 10");
	control("set 4 loss 300000");
	send_many(&r[2]);
	CHECK(!same(&r[0], &r[2]));
	control("reset");
	control("seed 9");
	control("set 4 loss 300000");
	send_many(&r[2]);
	CHECK(same(&r[0], &r[2]));
	end();
}

/* The losses of one node do not depend on packets of other nodes. */
TEST(nodes_have_generators_of_their_own)
{
	static struct arrived r[2];
	unsigned int i;
	int c;

	run(&r[0], "3", "set all loss 200000");
	end();
	daemon_start_seed(NULL, "3");
	c = adapter(2000);
	nodes_4_and_8();
	control("set all loss 200000");
	for (i = 1; i <= 777; i++)
		send_request(c, 2000, 2000, i);
	send_many(&r[1]);
	CHECK(same(&r[0], &r[1]));
	end();
}

TEST(loss_does_not_depend_on_other_faults)
{
	static struct arrived r[2];
	unsigned int i, k = 0;

	run(&r[0], "4", "set 4 loss 200000");
	end();
	daemon_start_seed(NULL, "4");
	nodes_4_and_8();
	control("set 4 duplicate 200000");
	control("set 4 loss 200000");
	send_many(&r[1]);
	for (i = 0; i < r[1].n; i++)
		if (!i || r[1].number[i] != r[1].number[i - 1])
			CHECK_EQ(r[1].number[i], r[0].number[k++]);
	CHECK_EQ(k, r[0].n);
	end();
}

TEST(everything_is_lost)
{
	static struct arrived r;

	run(&r, "1", "set 4 loss 1000000");
	CHECK_EQ(r.n, 0);
	CHECK_EQ(counter("4", "lost"), MANY);
	send_request(a, 4, 12, 1);	/* also a packet that would not arrive */
	fence(a, 4);
	CHECK(nothing(a));
	end();
}

TEST(delayed_packets_come_in_order)
{
	static struct arrived r;

	run(&r, "1", "set links delay 2ms");
	CHECK_EQ(r.n, MANY);
	CHECK_EQ(count_late(&r), 0);
	control("set links delay 0");
	control("set links jitter 5ms");
	control("seed 1");
	send_request(a, 4, 8, 1);
	expect_packet(b, 1);
	end();
}

/* The copy of a packet has the delay of the packet. */
TEST(duplicates_are_delayed_too)
{
	daemon_start(NULL);
	nodes_4_and_8();
	control("set 4 delay 3600s");
	control("set 4 duplicate 1000000");
	send_request(a, 4, 8, 1);
	fence(a, 4);
	CHECK_EQ(counter("4", "duplicated"), 1);
	CHECK(nothing(b));
	end();
}

/* Send a request from 4 that is held until another packet passes. */
static void hold_one(uint32_t number)
{
	control("set 4 reorder 1000000");
	control("set 4 hold 3600s");
	send_request(a, 4, 8, number);
	fence(a, 4);
	control("set 4 reorder 0");
}

/* Packets under way to a node that detaches are not delivered to its successor. */
TEST(packets_of_the_dead)
{
	struct frame_packet f;

	daemon_start(NULL);
	nodes_4_and_8();
	hold_one(1);
	close(b);
	WAIT_UNTIL((control("nodes"), strstr(said, "8 gone")), TEST_WAIT_MS);
	send_request(a, 4, 4, 2);
	expect_packet(a, 2);
	CHECK(recv_frame(a, &f, sizeof(f)) > 0);
	CHECK_EQ(f.head.kind, FRAME_NO_NODE);
	CHECK_EQ(f.packet.number, 1);
	b = adapter(8);
	hold_one(3);
	close(a);			/* its packets are still delivered */
	a = adapter(4);
	send_request(a, 4, 8, 4);
	expect_packet(b, 4);
	expect_packet(b, 3);
	control("set ring:4 delay 20ms");
	send_request(a, 4, 8, 2);
	fence(a, 4);
	close(a);
	expect_packet(b, 2);
	control("set ring:4 delay 3600s");
	control("set ring:8 delay 3600s");
	a = adapter(4);
	send_request(a, 4, 8, 3);	/* under way when the daemon exits */
	send_request(b, 8, 4, 3);
	fence(a, 4);
	fence(b, 8);
	end();
}

/* The number of delayed packets of a node is limited. */
TEST(many_delayed_packets)
{
	unsigned int i;

	daemon_start(NULL);
	nodes_4_and_8();
	control("set 4 delay 3600s");
	for (i = 0; i < 20000; i++)
		send_request(a, 4, 8, i);
	fence(a, 4);
	CHECK_EQ(counter("4", "overflow"), 20000 - 16384);
	send_request(b, 8, 4, 1);
	expect_packet(a, 1);
	end();
}

TEST(stuck_responses)
{
	daemon_start(NULL);
	nodes_4_and_8();
	control("set 8 stuck 1");
	send_request(a, 4, 8, 1);
	send_response(a, 4, 8, 2);
	fence(a, 4);
	send_response(b, 8, 4, 3);	/* responses to other nodes get through */
	expect_packet(b, 1);
	expect_packet(a, 3);
	CHECK(nothing(b));
	CHECK_EQ(counter("8", "lost"), 1);
	control("set 8 stuck 0");
	control("set ring:4 stuck 1");
	send_response(a, 4, 8, 2);
	send_request(a, 4, 8, 4);
	expect_packet(b, 4);
	CHECK_EQ(counter("ring:4", "lost"), 1);
	end();
}

TEST(garbled_mailboxes)
{
	struct frame_packet f;

	daemon_start(NULL);
	nodes_4_and_8();
	control("set 4 garble 1000000");
	send_kind(a, 4, 8, PACKET_WRITE, 1);
	expect_packet(b, 1);		/* only mailbox requests change */
	send_response(a, 4, 8, 2);
	expect_packet(b, 2);
	send_request(a, 4, 8, 3);
	CHECK_EQ(recv_frame(b, &f, sizeof(f)), 128);
	CHECK(packet_good(&f.packet));
	CHECK_EQ(f.packet.number, 3);
	CHECK(!test_filled(f.packet.data, DATA_SIZE, 3));
	CHECK_EQ(counter("4", "garbled"), 1);
	end();
}

/* Send a mailbox packet that is a control packet of sci.ko, of @type. */
static struct frame_packet send_control(uint32_t number, uint8_t type)
{
	struct frame_packet f = packet(4, 8, PACKET_MAILBOX, number);

	f.packet.data[1] = type;
	f.packet.crc = packet_crc(&f.packet);
	send_frame(a, &f, frame_size(&f));
	return f;
}

TEST(damaged_messages)
{
	struct frame_packet f, sent;
	unsigned int changed = 0;

	daemon_start(NULL);
	nodes_4_and_8();
	control("set 4 damage 1000000");
	for (uint32_t i = 1; i <= 50; i++) {
		sent = send_control(i, 3);
		CHECK_EQ(recv_frame(b, &f, sizeof(f)), 128);
		CHECK(packet_good(&f.packet));
		/* the header of the control packet is unchanged */
		CHECK(!memcmp(f.packet.data, sent.packet.data, 16));
		changed += !!memcmp(f.packet.data, sent.packet.data, DATA_SIZE);
	}
	CHECK(changed > 25);
	CHECK_EQ(counter("4", "damaged"), 50);
	sent = send_control(51, 4);	/* this type has no message */
	CHECK_EQ(recv_frame(b, &f, sizeof(f)), 128);
	CHECK(!memcmp(f.packet.data, sent.packet.data, DATA_SIZE));
	CHECK_EQ(counter("4", "damaged"), 50);
	end();
}

/* ---- links ---- */

TEST(a_node_without_a_link)
{
	int c;

	daemon_start(NULL);
	nodes_4_and_8();
	c = adapter(12);
	control("link down 8");
	expect_frame(b, FRAME_LINK, 8, 0);
	control("nodes");
	SAID("8 down packets waiting 0\n");
	send_request(a, 4, 8, 1);
	send_request(b, 8, 4, 2);
	send_request(b, 8, 77 * 4, 2);	/* it gets no NO_NODE frame either */
	send_request(a, 4, 12, 3);	/* other nodes are not affected */
	send_request(c, 12, 4, 4);
	expect_packet(c, 3);
	expect_packet(a, 4);
	fence(b, 8);
	CHECK_EQ(counter("8", "lost"), 3);
	control("link down 8");		/* no effect */
	control("link up 8");
	expect_frame(b, FRAME_LINK, 8, 1);
	send_request(a, 4, 8, 5);
	expect_packet(b, 5);
	close(c);
	end();
}

/* A cut ring: its sender gets a LINK frame, other nodes lose packets. */
TEST(a_link_goes_down)
{
	int c;

	daemon_start(NULL);
	nodes_4_and_8();
	c = adapter(12);
	control("link down ring:8");
	expect_frame(b, FRAME_LINK, 8, 0);
	control("links");
	SAID("ring:8 to 12 down\n");
	send_request(a, 4, 12, 1);
	send_request(c, 12, 4, 2);	/* is lost on the cut link */
	expect_packet(a, 2);
	fence(a, 4);
	fence(c, 12);
	CHECK(nothing(c));
	CHECK_EQ(counter("ring:8", "lost"), 1);
	CHECK_EQ(counter("ring:4", "forwarded"), 1);
	control("link up ring");
	expect_frame(b, FRAME_LINK, 8, 1);
	send_request(a, 4, 12, 3);
	expect_packet(c, 3);
	control("link down links");
	expect_frame(a, FRAME_LINK, 4, 0);
	expect_frame(b, FRAME_LINK, 8, 0);
	expect_frame(c, FRAME_LINK, 12, 0);
	control("reset");
	expect_frame(a, FRAME_LINK, 4, 1);
	close(c);
	end();
}

TEST(an_adapter_attaches_without_a_link)
{
	struct frame_attach f = attach_frame(8);

	daemon_start(NULL);
	control("link down 8");
	b = unix_socket("fabric", SOCK_SEQPACKET);
	send_frame(b, &f, sizeof(f));
	expect_frame(b, FRAME_ATTACHED, 8, 0);
	expect_frame(b, FRAME_LINK, 8, 0);
	control("link up all");
	expect_frame(b, FRAME_LINK, 8, 1);
	close(b);
	daemon_stop();
}

TEST(a_link_goes_down_while_packets_are_under_way)
{
	daemon_start(NULL);
	nodes_4_and_8();
	hold_one(1);
	control("link down 8");
	expect_frame(b, FRAME_LINK, 8, 0);
	send_request(a, 4, 4, 2);
	expect_packet(a, 2);
	fence(a, 4);
	CHECK_EQ(counter("8", "lost"), 1);
	CHECK(nothing(b));
	end();
}

/* ---- `after` and `for` ---- */

/* Send packets 1 to @n. Store the numbers that arrive, and return how many. */
static unsigned int send_some(uint32_t n, uint32_t *number)
{
	uint32_t i;

	for (i = 1; i <= n; i++)
		send_request(a, 4, 8, i);
	fence(a, 4);
	return read_numbers(b, number, n);
}

static void numbers_are(const uint32_t *number, unsigned int n,
			const uint32_t *want, unsigned int wants)
{
	unsigned int i;

	CHECK_EQ(n, wants);
	for (i = 0; i < n; i++)
		CHECK_EQ(number[i], want[i]);
}

TEST(after_and_for_packets)
{
	uint32_t number[10];

	daemon_start(NULL);
	nodes_4_and_8();
	control("set 4 loss 1000000 after 3 packets for 2 packets");
	numbers_are(number, send_some(7, number),
		    (uint32_t[]){ 1, 2, 3, 6, 7 }, 5);
	control("set ring:4 loss 1000000 for 1 packet");
	numbers_are(number, send_some(3, number), (uint32_t[]){ 2, 3 }, 2);
	control("set 4 loss 1000000 after 1 packet");
	numbers_are(number, send_some(3, number), (uint32_t[]){ 1 }, 1);
	control("set 4 loss 0 for 1 packet");	/* then loss is 1000000 again */
	numbers_are(number, send_some(3, number), (uint32_t[]){ 1 }, 1);
	control("set 4 loss 0");
	control("set 4 loss 1000000 after 1 packet");
	control("set 4 loss 0");		/* cancels the pending setting */
	numbers_are(number, send_some(3, number), (uint32_t[]){ 1, 2, 3 }, 3);
	end();
}

/* The second fault replaces the first one. At its end, the value before both is restored. */
TEST(durations_overlap)
{
	uint32_t number[10];

	daemon_start(NULL);
	nodes_4_and_8();
	control("set 4 loss 1000000 for 3 packets");
	CHECK_EQ(send_some(1, number), 0);
	control("set 4 loss 1000000 for 3 packets");
	numbers_are(number, send_some(6, number), (uint32_t[]){ 4, 5, 6 }, 3);
	/* one within another, and three */
	control("set 4 loss 1000000 for 5 packets");
	control("set 4 loss 0 for 2 packets");
	numbers_are(number, send_some(7, number), (uint32_t[]){ 1, 2, 6, 7 }, 4);
	control("set 4 loss 1000000 for 2 packets");
	control("set 4 loss 1000000 for 4 packets");
	control("set 4 loss 0 for 3 packets");
	numbers_are(number, send_some(6, number), (uint32_t[]){ 1, 2, 3, 5, 6 }, 5);
	control("get 4 loss");
	SAID("loss 0\n");
	end();
}

TEST(several_things_later)
{
	uint32_t number[10];

	daemon_start(NULL);
	nodes_4_and_8();
	control("set 4 loss 1000000 after 1 packets for 1 packets");
	control("set 4 duplicate 1000000 after 4 packets for 1 packet");
	control("set 4 loss 1000000 after 3 packets for 1 packets");
	numbers_are(number, send_some(7, number),
		    (uint32_t[]){ 1, 3, 5, 5, 6, 7 }, 6);
	/* reset cancels pending settings */
	control("set 4 loss 1000000 after 1 packet");
	control("reset");
	numbers_are(number, send_some(3, number), (uint32_t[]){ 1, 2, 3 }, 3);
	end();
}

/* `seed` restarts the generators, but not the counts of pending settings. */
TEST(a_seed_postpones_nothing)
{
	uint32_t number[100];

	daemon_start(NULL);
	nodes_4_and_8();
	CHECK_EQ(send_some(100, number), 100);
	control("set 4 loss 1000000 for 2 packets");
	control("set 4 duplicate 1000000 after 4 packets for 1 packet");
	control("seed 1");
	numbers_are(number, send_some(5, number), (uint32_t[]){ 3, 4, 5, 5 }, 4);
	end();
}

TEST(for_a_time)
{
	daemon_start(NULL);
	nodes_4_and_8();
	control("set 4 loss 1000000 for 20ms");
	WAIT_UNTIL((control("get 4 loss"), strstr(said, "loss 0\n")),
		   TEST_WAIT_MS);
	send_request(a, 4, 8, 1);
	expect_packet(b, 1);
	control("link down 8 after 10 ms for 10 ms");
	expect_frame(b, FRAME_LINK, 8, 0);
	expect_frame(b, FRAME_LINK, 8, 1);
	control("set 4 loss 1000000 after 3600s");	/* pending at the end */
	end();
}

TEST(links_go_down_by_count)
{
	uint32_t number[10];

	daemon_start("ring r 4 100 8");
	nodes_4_and_8();
	control("link down r:100 after 2 packets for 3 packets");
	numbers_are(number, send_some(7, number),
		    (uint32_t[]){ 1, 2, 6, 7 }, 4);
	end();
}

TEST(a_node_is_killed_by_count)
{
	unsigned int i;

	daemon_start(NULL);
	nodes_4_and_8();
	control("kill 4 after 3 packets");
	for (i = 1; i <= 4; i++)
		send_request(a, 4, 8, i);
	expect_end(a);
	for (i = 1; i <= 3; i++)
		expect_packet(b, i);
	a = adapter(4);
	send_request(a, 4, 8, 9);
	/* packet 4 was already under way when its sender was killed */
	expect_packet(b, 4);
	expect_packet(b, 9);
	control("kill 4 after 20 ms");
	expect_end(a);
	a = adapter(4);
	end();
}
