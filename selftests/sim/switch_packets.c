// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test packets, malformed frames, and nodes that do not read from sci-switch. */
#include "selftests/sim/switch.h"

#define MANY	1000u

TEST(packets_of_all_sizes_and_kinds)
{
	static const uint8_t kinds[] = {
		PACKET_WRITE, PACKET_READ, PACKET_LOCK, PACKET_MAILBOX,
		PACKET_INTERRUPT, PACKET_READ_CSR, 0, 77,
		PACKET_WRITE | PACKET_RESPONSE, 0xff,
	};
	unsigned int data, i;
	int a, b;

	daemon_start(NULL);
	a = adapter(4);
	b = adapter(8);
	for (data = 0; data <= PACKET_DATA_MAX; data++) {
		for (i = 0; i < ARRAY_LEN(kinds); i++) {
			struct frame_packet f = packet(4, 8, kinds[i], data), g;

			f.packet.size = (uint16_t)(PACKET_HEADER + data);
			test_fill(f.packet.data, data, i);
			/* sci-switch forwards packets with a wrong CRC */
			f.packet.crc = packet_crc(&f.packet) + i % 2;
			send_frame(a, &f, frame_size(&f));
			CHECK_EQ(recv_frame(b, &g, sizeof(g)), frame_size(&f));
			CHECK(!memcmp(&f.packet, &g.packet, f.packet.size));
		}
	}
	CHECK_EQ(counter("4", "malformed"), 0);
	daemon_stop();
}

TEST(a_node_that_is_not_there)
{
	struct frame_packet f = packet(4, 8, PACKET_WRITE, 7), g;
	int a;

	daemon_start(NULL);
	a = adapter(4);
	send_frame(a, &f, frame_size(&f));
	CHECK_EQ(recv_frame(a, &g, sizeof(g)), frame_size(&f));
	CHECK_EQ(g.head.kind, FRAME_NO_NODE);
	CHECK_EQ(g.head.node, 4);
	CHECK(!memcmp(&f.packet, &g.packet, f.packet.size));
	send_response(a, 4, 8, 8);	/* NO_NODE frames are sent for requests only */
	fence(a, 4);
	CHECK(nothing(a));
	CHECK_EQ(counter("4", "no-node"), 2);
	CHECK_EQ(counter("4", "lost"), 0);
	daemon_stop();
}

TEST(a_node_sends_to_itself)
{
	int a;

	daemon_start(NULL);
	a = adapter(4);
	send_request(a, 4, 4, 1);
	expect_packet(a, 1);
	daemon_stop();
}

static uint32_t next_number(int fd)
{
	struct frame_packet f;

	CHECK_EQ(recv_frame(fd, &f, sizeof(f)), 128);
	return f.packet.number;
}

TEST(packets_of_a_pair_stay_in_order)
{
	uint32_t i;
	int a, b, c;

	daemon_start(NULL);
	a = adapter(4);
	b = adapter(8);
	c = adapter(12);
	for (i = 1; i <= MANY; i++) {
		send_request(a, 4, 8, i);
		send_response(b, 8, 4, i);
		send_request(c, 12, 4, MANY + i);
		send_request(a, 4, 12, i);
		expect_packet(b, i);
		expect_packet(c, i);
		fence(b, 8);
		fence(c, 12);
	}
	for (i = 1; i <= MANY; i++) {
		uint32_t number = next_number(a);

		CHECK(number == i || number == MANY + i);
		CHECK_EQ(number + next_number(a), MANY + 2 * i);
	}
	daemon_stop();
}

/* The response to a request takes the other part of the ring. */
TEST(the_ring_goes_one_way)
{
	int a, b, c;

	daemon_start(NULL);
	b = adapter(8);
	c = adapter(12);
	a = adapter(4);
	control("links");
	SAID("ring:4 to 8 up\n");
	SAID("ring:8 to 12 up\n");
	SAID("ring:12 to 4 up\n");
	send_request(a, 4, 8, 1);
	expect_packet(b, 1);
	CHECK_EQ(counter("ring:4", "forwarded"), 1);
	CHECK_EQ(counter("ring:4", "bytes"), PACKET_HEADER + DATA_SIZE);
	CHECK_EQ(counter("ring:8", "forwarded"), 0);
	send_response(b, 8, 4, 1);
	expect_packet(a, 1);
	CHECK_EQ(counter("ring:4", "forwarded"), 1);
	CHECK_EQ(counter("ring:8", "forwarded"), 1);
	CHECK_EQ(counter("ring:12", "forwarded"), 1);
	CHECK_EQ(counter("12", "forwarded"), 0);
	close(c);
	daemon_stop();
}

/* ---- hostile frames ---- */

static void malformed(int a, const struct frame_packet *f, size_t size)
{
	uint64_t before = counter("4", "malformed");

	send_frame(a, f, size);
	fence(a, 4);
	CHECK_EQ(counter("4", "malformed"), before + 1);
}

TEST(malformed_packets_are_dropped)
{
	struct frame_packet good = packet(4, 8, PACKET_MAILBOX, 1), f;
	struct {
		struct frame_packet f;
		char more[1000];
	} big = { good, "" };
	size_t n = frame_size(&good), i;
	int a, b;

	daemon_start(NULL);
	a = adapter(4);
	b = adapter(8);
	for (i = sizeof(f.head); i < sizeof(f); i++)
		if (i != n)
			malformed(a, &good, i);
	malformed(a, &big.f, sizeof(big.f) + 1);
	malformed(a, &big.f, sizeof(big));
	f = good;
	f.packet.source = 8;
	malformed(a, &f, n);
	f.packet.source = 5;
	malformed(a, &f, n);
	for (i = 0; i < 4; i++) {
		f = good;
		f.packet.target = (uint16_t[]){ 0, 9, 65533, 65535 }[i];
		malformed(a, &f, n);
	}
	for (i = 0; i < 200; i++) {
		f = good;
		f.packet.size = (uint16_t)(i * 331);
		if (f.packet.size != good.packet.size)
			malformed(a, &f, n);
	}
	fence(b, 8);
	CHECK(nothing(b));
	send_request(a, 4, 8, 2);
	expect_packet(b, 2);
	daemon_stop();
}

static void disconnected(const void *frame, size_t size)
{
	int fd = adapter(4);

	send_frame(fd, frame, size);
	expect_end(fd);
}

TEST(broken_frames_end_the_connection)
{
	static const uint32_t bad_kinds[] = {
		0, FRAME_NO_NODE, FRAME_ATTACH, FRAME_ATTACHED, FRAME_REFUSED,
		FRAME_LINK, FRAME_PEER, FRAME_PEER_GONE, 12, 77, UINT32_MAX,
	};
	struct frame_exports e = {
		.head = { .kind = FRAME_EXPORTS, .node = 4 },
	};
	struct frame_attach f = attach_frame(4);
	unsigned int i;
	int b;

	daemon_start(NULL);
	b = adapter(8);
	for (i = 0; i < ARRAY_LEN(bad_kinds); i++) {
		f.head.kind = bad_kinds[i];
		disconnected(&f, sizeof(f));
		disconnected(&f, sizeof(f.head));
	}
	for (i = 1; i < sizeof(f.head); i++)
		disconnected(&f, i);
	disconnected(&e, sizeof(e) - 1);
	disconnected(&e, sizeof(e.head));
	e.head.node = 8;
	disconnected(&e, sizeof(e));
	f.head.kind = FRAME_INVALIDATE;
	disconnected(&f, sizeof(f));
	f.head.node = 8;
	disconnected(&f, sizeof(f.head));
	f.head.kind = FRAME_INVALIDATED;
	disconnected(&f, sizeof(f.head) + 1);
	fence(b, 8);			/* other nodes are not affected */
	CHECK(nothing(b));
	daemon_stop();
}

/* Random frames of a node do not affect other nodes. */
TEST(random_frames)
{
	uint64_t state = 1;
	unsigned int i;
	int a, b, c;

	daemon_start(NULL);
	b = adapter(8);
	c = adapter(12);
	a = adapter(4);
	for (i = 0; i < 3000; i++) {
		struct frame_packet f = packet(4, 8, PACKET_WRITE, i);
		unsigned char byte[16 + 200] = { 0 };
		struct pollfd p = { .fd = a };
		size_t at;

		state = state * 6364136223846793005 + 1442695040888963407;
		at = (state >> 33) % sizeof(f);
		memcpy(byte, &f, sizeof(f));
		byte[at] ^= (unsigned char)(1u << (state >> 60 & 7));
		if (send(a, byte, 16 + (state >> 40) % 200, MSG_NOSIGNAL) < 0 ||
		    (poll(&p, 1, 0) == 1 && p.revents & POLLHUP)) {
			close(a);
			a = adapter(4);
		}
		if (i % 100 == 0) {
			uint32_t number[200];

			read_numbers(b, number, 200);
			send_request(c, 12, 12, i);
			expect_packet(c, i);
		}
	}
	daemon_stop();
}

/* ---- a node that does not read ---- */

TEST(a_node_that_does_not_read)
{
	uint64_t delivered, overflow;
	uint32_t number, last = 0, i;
	int a, b, c;

	daemon_start(NULL);
	control("set 8 queue-packets 100");
	a = adapter(4);
	b = adapter(8);
	c = adapter(12);
	for (i = 1; i <= 5 * MANY; i++) {
		send_request(a, 4, 8, i);
		if (i % 100)
			continue;
		send_request(a, 4, 12, i);	/* node 12 is not affected */
		expect_packet(c, i);
	}
	fence(a, 4);
	control("nodes");
	SAID("8 up packets waiting 100\n");
	delivered = counter("8", "delivered");
	overflow = counter("8", "overflow");
	CHECK(overflow > 0);
	CHECK_EQ(delivered + overflow, 5 * MANY);
	CHECK_EQ(counter("12", "overflow"), 0);

	/* queued packets are delivered in order, then new packets arrive */
	for (i = 0; i < delivered; i++) {
		struct frame_packet f;

		recv_frame(b, &f, sizeof(f));
		number = f.packet.number;
		CHECK(number > last);
		last = number;
	}
	fence(b, 8);
	CHECK(nothing(b));
	send_request(a, 4, 8, 1);
	expect_packet(b, 1);
	daemon_stop();
}

TEST(a_queue_has_so_many_bytes)
{
	unsigned int i;
	int a, b;

	daemon_start(NULL);
	control("set 8 queue-bytes 1290");	/* room for 10 frames of 128 bytes */
	a = adapter(4);
	b = adapter(8);
	for (i = 1; i <= 2 * MANY; i++)
		send_request(a, 4, 8, i);
	fence(a, 4);
	control("nodes");
	SAID("8 up packets waiting 10\n");
	close(b);
	daemon_stop();
}

TEST(a_node_without_a_queue)
{
	unsigned int i;
	int a, b;

	daemon_start(NULL);
	control("set all queue-packets 0");
	a = adapter(4);
	b = adapter(8);
	for (i = 1; i <= 2 * MANY; i++)
		send_request(a, 4, 8, i);
	fence(a, 4);
	control("nodes");
	SAID("8 up packets waiting 0\n");
	expect_packet(b, 1);
	daemon_stop();
}

/* A node detaches with a full queue; its successor gets none of these packets. */
TEST(a_queue_dies_with_its_node)
{
	unsigned int i;
	int a, b;

	daemon_start(NULL);
	a = adapter(4);
	b = adapter(8);
	for (i = 1; i <= 2 * MANY; i++)
		send_request(a, 4, 8, i);
	fence(a, 4);
	close(b);
	b = adapter(8);
	send_request(a, 4, 8, 5);
	expect_packet(b, 5);
	daemon_stop();
}

/* Frames other than packets are never dropped, and queue behind waiting packets. */
TEST(other_frames_are_not_lost)
{
	struct frame_packet f;
	unsigned int i;
	int a, b;

	daemon_start(NULL);
	control("set 8 queue-packets 10");
	a = adapter(4);
	b = adapter(8);
	for (i = 1; i <= 2 * MANY; i++)
		send_request(a, 4, 8, i);
	fence(a, 4);
	for (i = 0; i < 500; i++) {
		control("link down 8");
		control("link up 8");
	}
	do
		recv_frame(b, &f, sizeof(f));
	while (f.head.kind == FRAME_PACKET);
	for (i = 0; i < 500; i++) {
		CHECK_EQ(f.head.kind, FRAME_LINK);
		CHECK_EQ(f.head.value, 0);
		expect_frame(b, FRAME_LINK, 8, 1);
		if (i < 499)
			recv_frame(b, &f, sizeof(f));
	}
	CHECK(nothing(b));
	daemon_stop();
}
