// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test which adapters may attach to sci-switch, and when a node id is free again. */
#include <sys/resource.h>

#include "selftests/sim/switch.h"

static void refused_frame(const struct frame_attach *f, int error)
{
	refused(f, sizeof(*f), error);
}

TEST(an_adapter_attaches)
{
	int fd;

	daemon_start(NULL);
	fd = adapter(4);
	control("nodes");
	SAID("4 up packets waiting 0\n");
	close(fd);
	WAIT_UNTIL((control("nodes"), strstr(said, "4 gone\n")), TEST_WAIT_MS);
	daemon_stop();
}

TEST(one_node_of_an_id)
{
	struct frame_attach f = attach_frame(4);
	int fd;

	daemon_start(NULL);
	fd = adapter(4);
	refused_frame(&f, EEXIST);
	fence(fd, 4);			/* the first adapter is still attached */
	close(adapter(8));
	daemon_stop();
}

TEST(an_id_is_free_at_once)
{
	unsigned int i;
	int fd;

	daemon_start(NULL);
	for (i = 0; i < 500; i++) {
		fd = adapter(4);
		if (i % 2)
			send_request(fd, 4, 8, 1);
		close(fd);
	}
	daemon_stop();
}

TEST(bad_ids)
{
	static const uint32_t bad[] = { 0, 1, 2, 3, 5, 65533, 65535, 65536,
					65540, UINT32_MAX, UINT32_MAX - 3 };
	unsigned int i;

	daemon_start(NULL);
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		struct frame_attach f = attach_frame(bad[i]);

		refused_frame(&f, EINVAL);
	}
	close(adapter(65532));
	close(adapter(4));
	daemon_stop();
}

TEST(another_version)
{
	struct frame_attach f = attach_frame(4);

	daemon_start(NULL);
	f.version = FABRIC_VERSION + 1;
	refused_frame(&f, EPROTONOSUPPORT);
	refused(&f, 20, EPROTONOSUPPORT);	/* its size may differ, too */
	f.version = 0;
	refused_frame(&f, EPROTONOSUPPORT);
	daemon_stop();
}

TEST(frames_that_do_not_introduce)
{
	struct frame_attach f = attach_frame(4);
	struct frame_packet p = packet(4, 8, PACKET_MAILBOX, 1);
	unsigned char big[300] = { 0 };
	uint32_t kind;

	daemon_start(NULL);
	refused(&f, 1, EPROTO);
	refused(&f, sizeof(f.head), EPROTO);
	refused(&f, sizeof(f) - 1, EINVAL);
	memcpy(big, &f, sizeof(f));
	refused(big, sizeof(f) + 1, EINVAL);
	refused(big, sizeof(big), EINVAL);
	refused(&p, frame_size(&p), EPROTO);
	for (kind = 0; kind < 16; kind++) {
		f.head.kind = kind;
		if (kind != FRAME_ATTACH)
			refused(&f, sizeof(f), EPROTO);
	}
	daemon_stop();
}

TEST(what_is_reserved_is_0)
{
	struct frame_attach f;

	daemon_start(NULL);
	f = attach_frame(4);
	f.head.value = 1;
	refused_frame(&f, EINVAL);
	f = attach_frame(4);
	f.head.reserved = 1;
	refused_frame(&f, EINVAL);
	f = attach_frame(4);
	f.reserved = 1;
	refused_frame(&f, EINVAL);
	daemon_stop();
}

TEST(a_node_that_the_topology_has_not)
{
	struct frame_attach f = attach_frame(16);

	daemon_start("ring a 4 8\n");
	refused_frame(&f, ENODEV);
	close(adapter(8));
	daemon_stop();
}

/* Connections that send nothing, or close before the answer. */
TEST(connections_without_an_adapter)
{
	struct frame_attach f = attach_frame(4);
	int fd[50];
	unsigned int i;

	daemon_start(NULL);
	for (i = 0; i < ARRAY_LEN(fd); i++)
		fd[i] = unix_socket("fabric", SOCK_SEQPACKET);
	for (i = 0; i < ARRAY_LEN(fd); i += 2) {
		send_frame(fd[i], &f, sizeof(f));
		close(fd[i]);
	}
	WAIT_UNTIL((control("nodes"), !strstr(said, "4 up")), TEST_WAIT_MS);
	close(adapter(4));
	for (i = 1; i < ARRAY_LEN(fd); i += 2)
		close(fd[i]);
	daemon_stop();
}

/* Frames behind a refused one do not keep the adapter from reading the answer. */
TEST(a_refusal_is_read)
{
	struct frame_attach f = attach_frame(4);
	unsigned int i;
	int a, b;

	daemon_start(NULL);
	a = adapter(4);
	for (i = 0; i < 100; i++) {
		b = unix_socket("fabric", SOCK_SEQPACKET);
		send_frame(b, &f, sizeof(f));
		expect_frame(b, FRAME_REFUSED, 4, EEXIST);
		expect_end(b);
	}
	fence(a, 4);
	daemon_stop();
}

TEST(a_killed_node_comes_back)
{
	unsigned int i;
	int a, b;

	daemon_start(NULL);
	a = adapter(4);
	b = adapter(8);
	for (i = 1; i < 20; i++) {
		control("kill 8");
		expect_end(b);
		control("nodes");
		SAID("8 gone\n");
		control_fails("kill 8", "not attached");
		send_request(a, 4, 8, i);
		CHECK_EQ(recv_frame(a, said, sizeof(said)), 128);
		b = adapter(8);
		send_request(a, 4, 8, i);
		expect_packet(b, i);
	}
	CHECK_EQ(counter("4", "no-node"), 19);
	CHECK_EQ(counter("8", "delivered"), 19);
	daemon_stop();
}

TEST(many_nodes)
{
	int fd[256];
	uint16_t i;

	daemon_start(NULL);
	for (i = 0; i < 256; i++)
		fd[i] = adapter((uint16_t)(4 * i + 4));
	for (i = 0; i < 256; i++)
		send_request(fd[i], (uint16_t)(4 * i + 4),
			     (uint16_t)(4 * ((i * 7 + 3) % 256) + 4), i);
	for (i = 0; i < 256; i++)
		expect_packet(fd[(i * 7 + 3) % 256], i);
	daemon_stop();
}

/* More connections than descriptors: an adapter waits until one is free. */
TEST(no_more_descriptors)
{
	struct frame_attach f = attach_frame(4);
	struct rlimit limit = { 32, 32 };
	int fd[64], late;
	unsigned int i;

	daemon_start(NULL);
	CHECK_EQ(prlimit(daemon_pid, RLIMIT_NOFILE, &limit, NULL), 0);
	for (i = 0; i < ARRAY_LEN(fd); i++)
		fd[i] = unix_socket("fabric", SOCK_SEQPACKET);
	late = unix_socket("fabric", SOCK_SEQPACKET);
	send_frame(late, &f, sizeof(f));
	WAIT_UNTIL(errors_have("no more descriptors"), TEST_WAIT_MS);
	for (i = 0; i < ARRAY_LEN(fd); i++)
		close(fd[i]);
	expect_frame(late, FRAME_ATTACHED, 4, 0);
	expect_frame(late, FRAME_LINK, 4, 1);
	close(late);
	daemon_stop();
}
