// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test direct nodes of sci-switch, which map each other's memory. */
#include <sys/mman.h>

#include "selftests/sim/switch.h"

#define MEMORY	(4u << 20)

/* A frame with two ranges of memory: one from 0 and one from 4 GiB on. */
static struct frame_attach direct_frame(uint32_t node)
{
	struct frame_attach f = attach_frame(node);

	f.direct = 1;
	f.ranges = 2;
	f.range[0].size = 1u << 20;
	f.range[1].address = 1ull << 32;
	f.range[1].size = 3u << 20;
	f.range[1].offset = 1u << 20;
	return f;
}

static int memory(void)
{
	int fd = memfd_create("sci-switch-test", MFD_CLOEXEC);

	CHECK(fd >= 0);
	CHECK_EQ(ftruncate(fd, MEMORY), 0);
	return fd;
}

static int direct_adapter(uint16_t node, int memory_fd)
{
	struct frame_attach f = direct_frame(node);
	int fd = unix_socket("fabric", SOCK_SEQPACKET);

	send_with(fd, &f, sizeof(f), &memory_fd, 1);
	expect_frame(fd, FRAME_ATTACHED, node, 0);
	expect_frame(fd, FRAME_LINK, node, 1);
	return fd;
}

/* Receive the frame that announces a peer, and return the peer's memory. */
static int expect_peer(int fd, uint16_t node)
{
	struct frame_attach f, want = direct_frame(node);
	struct iovec iov = { .iov_base = &f, .iov_len = sizeof(f) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control_room;
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control_room,
		.msg_controllen = sizeof(control_room),
	};
	int memory_fd;

	wait_readable(fd);
	CHECK_EQ(recvmsg(fd, &msg, MSG_CMSG_CLOEXEC), sizeof(f));
	want.head.kind = FRAME_PEER;
	CHECK(!memcmp(&f, &want, sizeof(f)));
	CHECK(CMSG_FIRSTHDR(&msg));
	CHECK_EQ(control_room.head.cmsg_len, CMSG_LEN(sizeof(int)));
	memcpy(&memory_fd, CMSG_DATA(&control_room.head), sizeof(memory_fd));
	return memory_fd;
}

/* Check that both descriptors name the same memory. */
static void same_memory(int x, int y)
{
	static char mark = 'a';
	char got = 0;

	mark++;
	CHECK_EQ(pwrite(x, &mark, 1, 12345), 1);
	CHECK_EQ(pread(y, &got, 1, 12345), 1);
	CHECK_EQ(got, mark);
	close(y);
}

static struct frame_exports exports_frame(uint16_t node, uint64_t base)
{
	return (struct frame_exports){
		.head = { .kind = FRAME_EXPORTS, .node = node },
		.base = base, .entries = 64,
	};
}

static void send_exports(int fd, uint16_t node, uint64_t base)
{
	struct frame_exports e = exports_frame(node, base);

	send_frame(fd, &e, sizeof(e));
}

static void expect_exports(int fd, uint16_t node, uint64_t base)
{
	struct frame_exports e, want = exports_frame(node, base);

	CHECK_EQ(recv_frame(fd, &e, sizeof(e)), sizeof(e));
	CHECK(!memcmp(&e, &want, sizeof(e)));
}

static void send_head(int fd, uint32_t kind, uint32_t node, uint32_t value)
{
	struct frame f = { .kind = kind, .node = node, .value = value };

	send_frame(fd, &f, sizeof(f));
}

TEST(direct_nodes_learn_of_each_other)
{
	int m4, m8, a, b, c;

	daemon_start(NULL);
	m4 = memory();
	m8 = memory();
	a = direct_adapter(4, m4);
	c = adapter(12);		/* not a direct node */
	control("nodes");
	SAID("4 up direct waiting 0\n");
	SAID("12 up packets waiting 0\n");
	b = direct_adapter(8, m8);
	same_memory(m8, expect_peer(a, 8));
	same_memory(m4, expect_peer(b, 4));
	close(b);
	expect_frame(a, FRAME_PEER_GONE, 8, 0);
	b = direct_adapter(8, m8);
	same_memory(m8, expect_peer(a, 8));
	same_memory(m4, expect_peer(b, 4));
	control("kill 4");
	expect_end(a);
	expect_frame(b, FRAME_PEER_GONE, 4, 0);
	send_head(c, FRAME_INVALIDATE, 12, 1);
	expect_frame(b, FRAME_INVALIDATE, 12, 1);
	send_head(b, FRAME_INVALIDATED, 12, 1);
	expect_frame(c, FRAME_INVALIDATED, 12, 1);
	daemon_stop();
}

/* A node is killed and attaches again before the daemon has noticed. */
TEST(a_direct_node_is_replaced)
{
	int m = memory(), a, b, i;

	daemon_start(NULL);
	a = direct_adapter(4, m);
	b = direct_adapter(8, m);
	close(expect_peer(a, 8));
	for (i = 0; i < 200; i++) {
		close(b);
		b = direct_adapter(8, m);
		expect_frame(a, FRAME_PEER_GONE, 8, 0);
		close(expect_peer(a, 8));
		close(expect_peer(b, 4));
	}
	daemon_stop();
}

TEST(export_tables_are_passed_on)
{
	int m = memory(), a, b, c;

	daemon_start(NULL);
	a = direct_adapter(4, m);
	send_exports(a, 4, 0x1000);
	b = direct_adapter(8, m);
	close(expect_peer(a, 8));
	close(expect_peer(b, 4));
	expect_exports(b, 4, 0x1000);
	send_exports(b, 8, 0x8000);
	expect_exports(a, 8, 0x8000);
	send_exports(a, 4, 0x2000);
	expect_exports(b, 4, 0x2000);
	c = adapter(12);
	send_exports(c, 12, 0x3000);	/* no node gets this table */
	close(c);
	c = direct_adapter(16, m);
	close(expect_peer(a, 16));
	close(expect_peer(b, 16));
	close(expect_peer(c, 8));
	expect_exports(c, 8, 0x8000);
	close(expect_peer(c, 4));
	expect_exports(c, 4, 0x2000);
	/* a node that attaches again has no table until it sends one */
	close(b);
	expect_frame(a, FRAME_PEER_GONE, 8, 0);
	expect_frame(c, FRAME_PEER_GONE, 8, 0);
	b = direct_adapter(8, m);
	close(expect_peer(a, 8));
	send_exports(b, 8, 0x9000);
	expect_exports(a, 8, 0x9000);
	daemon_stop();
}

/* Attach direct nodes 4, 8 and 12 and read the frames that announce their peers. */
static void three(int fd[3])
{
	int m = memory(), i, k;

	for (i = 0; i < 3; i++)
		fd[i] = direct_adapter((uint16_t)(4 * i + 4), m);
	for (i = 0; i < 3; i++)
		for (k = 0; k < 2; k++) {
			struct frame_attach f;

			CHECK_EQ(recv_frame(fd[i], &f, sizeof(f)), sizeof(f));
			CHECK_EQ(f.head.kind, FRAME_PEER);
		}
}

TEST(invalidation_waits_for_all)
{
	int fd[3];

	daemon_start(NULL);
	three(fd);
	send_head(fd[0], FRAME_INVALIDATE, 4, 77);
	expect_frame(fd[1], FRAME_INVALIDATE, 4, 77);
	expect_frame(fd[2], FRAME_INVALIDATE, 4, 77);
	send_head(fd[1], FRAME_INVALIDATED, 4, 77);
	send_head(fd[1], FRAME_INVALIDATED, 4, 77);	/* has no effect */
	send_head(fd[2], FRAME_INVALIDATED, 4, 78);	/* not requested */
	send_head(fd[2], FRAME_INVALIDATED, 8, 77);
	send_request(fd[1], 8, 4, 1);
	expect_packet(fd[0], 1);	/* and no acknowledgement yet */
	send_request(fd[2], 12, 4, 2);
	expect_packet(fd[0], 2);
	send_head(fd[2], FRAME_INVALIDATED, 4, 77);
	expect_frame(fd[0], FRAME_INVALIDATED, 4, 77);
	daemon_stop();
}

TEST(several_invalidations)
{
	uint32_t i;
	int fd[3];

	daemon_start(NULL);
	three(fd);
	for (i = 0; i < 20; i++)
		send_head(fd[0], FRAME_INVALIDATE, 4, i / 2);
	send_head(fd[1], FRAME_INVALIDATE, 8, 3);
	expect_frame(fd[0], FRAME_INVALIDATE, 8, 3);
	expect_frame(fd[2], FRAME_INVALIDATE, 4, 0);
	send_head(fd[0], FRAME_INVALIDATED, 8, 3);
	send_head(fd[2], FRAME_INVALIDATED, 8, 3);
	for (i = 0; i < 20; i++) {
		send_head(fd[1], FRAME_INVALIDATED, 4, i / 2);
		send_head(fd[2], FRAME_INVALIDATED, 4, i / 2);
	}
	for (i = 0; i < 20; i++)
		expect_frame(fd[0], FRAME_INVALIDATED, 4, i / 2);
	daemon_stop();
}

/* A node that detaches counts as having answered. */
TEST(invalidation_while_nodes_go)
{
	int fd[3];

	daemon_start(NULL);
	three(fd);
	send_head(fd[0], FRAME_INVALIDATE, 4, 5);
	send_head(fd[1], FRAME_INVALIDATE, 8, 6);
	expect_frame(fd[2], FRAME_INVALIDATE, 4, 5);
	expect_frame(fd[2], FRAME_INVALIDATE, 8, 6);
	expect_frame(fd[1], FRAME_INVALIDATE, 4, 5);
	expect_frame(fd[0], FRAME_INVALIDATE, 8, 6);
	send_head(fd[0], FRAME_INVALIDATED, 8, 6);
	close(fd[2]);
	expect_frame(fd[1], FRAME_INVALIDATED, 8, 6);
	expect_frame(fd[1], FRAME_PEER_GONE, 12, 0);
	expect_frame(fd[0], FRAME_PEER_GONE, 12, 0);
	close(fd[1]);
	expect_frame(fd[0], FRAME_INVALIDATED, 4, 5);
	expect_frame(fd[0], FRAME_PEER_GONE, 8, 0);
	daemon_stop();
}

/* The adapter of a node that the daemon disconnects maps memory until it closes its end. */
TEST(invalidation_while_a_killed_node_lives)
{
	int fd[3];

	daemon_start(NULL);
	three(fd);
	send_head(fd[0], FRAME_INVALIDATE, 4, 5);
	expect_frame(fd[2], FRAME_INVALIDATE, 4, 5);
	expect_frame(fd[1], FRAME_INVALIDATE, 4, 5);
	send_head(fd[2], FRAME_INVALIDATED, 4, 5);
	control("kill 8");
	expect_frame(fd[0], FRAME_PEER_GONE, 8, 0);
	expect_frame(fd[2], FRAME_PEER_GONE, 8, 0);
	send_head(fd[0], FRAME_INVALIDATE, 4, 6);
	expect_frame(fd[2], FRAME_INVALIDATE, 4, 6);
	send_head(fd[2], FRAME_INVALIDATED, 4, 6);
	send_head(fd[1], FRAME_INVALIDATED, 4, 6);	/* the daemon does not listen to it */
	send_request(fd[2], 12, 4, 1);
	expect_packet(fd[0], 1);	/* and no acknowledgement yet */
	expect_end(fd[1]);
	expect_frame(fd[0], FRAME_INVALIDATED, 4, 5);
	expect_frame(fd[0], FRAME_INVALIDATED, 4, 6);
	daemon_stop();
}

/* Kill node 8, whose new adapter attaches before the daemon has ended the old connection. */
static int kill_and_replace(int memory_fd)
{
	struct frame_attach f = direct_frame(8);
	int fd = unix_socket("fabric", SOCK_SEQPACKET), status;

	control("nodes");		/* the daemon has accepted the connection */
	CHECK_EQ(kill(daemon_pid, SIGSTOP), 0);
	CHECK_EQ(waitpid(daemon_pid, &status, WUNTRACED), daemon_pid);
	CHECK_EQ(send(control_fd, "kill 8\n", 7, MSG_NOSIGNAL), 7);
	send_with(fd, &f, sizeof(f), &memory_fd, 1);
	CHECK_EQ(kill(daemon_pid, SIGCONT), 0);
	read_answer(control_fd);
	SAID("ok\n");
	expect_frame(fd, FRAME_ATTACHED, 8, 0);
	expect_frame(fd, FRAME_LINK, 8, 1);
	return fd;
}

/* A node id is free at once, also while the killed adapter lives. */
TEST(a_killed_node_is_replaced)
{
	int fd[3], m = memory(), again;

	daemon_start(NULL);
	three(fd);
	again = kill_and_replace(m);
	expect_frame(fd[0], FRAME_PEER_GONE, 8, 0);
	close(expect_peer(fd[0], 8));
	send_head(fd[0], FRAME_INVALIDATE, 4, 5);
	close(expect_peer(again, 12));
	close(expect_peer(again, 4));
	expect_frame(again, FRAME_INVALIDATE, 4, 5);
	send_head(again, FRAME_INVALIDATED, 4, 5);
	send_head(fd[2], FRAME_INVALIDATED, 4, 5);
	send_request(again, 8, 4, 1);
	expect_packet(fd[0], 1);	/* and no acknowledgement yet */
	expect_end(fd[1]);
	expect_frame(fd[0], FRAME_INVALIDATED, 4, 5);
	control("kill 12");		/* lives when the daemon exits */
	expect_frame(fd[0], FRAME_PEER_GONE, 12, 0);
	daemon_stop();
	expect_frame(fd[2], FRAME_PEER_GONE, 8, 0);
}

TEST(invalidation_by_the_last_one)
{
	int fd[3];

	daemon_start(NULL);
	three(fd);
	send_head(fd[0], FRAME_INVALIDATE, 4, 5);
	expect_frame(fd[2], FRAME_INVALIDATE, 4, 5);
	close(fd[1]);
	expect_frame(fd[2], FRAME_PEER_GONE, 8, 0);
	expect_frame(fd[0], FRAME_PEER_GONE, 8, 0);
	close(fd[2]);			/* the last answer that was missing */
	expect_frame(fd[0], FRAME_INVALIDATED, 4, 5);
	expect_frame(fd[0], FRAME_PEER_GONE, 12, 0);
	fence(fd[0], 4);		/* no direct node is left to ask */
	daemon_stop();
}

/* The owner of an invalidation attaches again: old answers have no effect. */
TEST(invalidation_of_the_dead)
{
	int fd[3], m = memory();

	daemon_start(NULL);
	three(fd);
	send_head(fd[0], FRAME_INVALIDATE, 4, 5);
	expect_frame(fd[1], FRAME_INVALIDATE, 4, 5);
	close(fd[0]);
	expect_frame(fd[1], FRAME_PEER_GONE, 4, 0);
	fd[0] = direct_adapter(4, m);
	send_head(fd[1], FRAME_INVALIDATED, 4, 5);
	send_request(fd[1], 8, 4, 1);
	close(expect_peer(fd[1], 4));
	close(expect_peer(fd[0], 12));
	close(expect_peer(fd[0], 8));
	expect_packet(fd[0], 1);
	CHECK(nothing(fd[0]));
	daemon_stop();
}

/* ... and do not count for a newer invalidation with the same id. */
TEST(an_old_answer_is_not_a_new_one)
{
	int fd[3], m = memory();

	daemon_start(NULL);
	three(fd);
	close(fd[2]);
	expect_frame(fd[0], FRAME_PEER_GONE, 12, 0);
	expect_frame(fd[1], FRAME_PEER_GONE, 12, 0);
	send_head(fd[0], FRAME_INVALIDATE, 4, 5);
	expect_frame(fd[1], FRAME_INVALIDATE, 4, 5);
	close(fd[0]);
	expect_frame(fd[1], FRAME_PEER_GONE, 4, 0);
	fd[0] = direct_adapter(4, m);
	close(expect_peer(fd[0], 8));
	close(expect_peer(fd[1], 4));
	send_head(fd[0], FRAME_INVALIDATE, 4, 5);
	expect_frame(fd[1], FRAME_INVALIDATE, 4, 5);
	send_head(fd[1], FRAME_INVALIDATED, 4, 5);
	send_request(fd[1], 8, 4, 1);
	expect_packet(fd[0], 1);	/* and no acknowledgement yet */
	send_head(fd[1], FRAME_INVALIDATED, 4, 5);
	expect_frame(fd[0], FRAME_INVALIDATED, 4, 5);
	daemon_stop();
}

TEST(too_many_invalidations)
{
	uint32_t i;
	int fd[3];

	daemon_start(NULL);
	three(fd);
	for (i = 0; i < 65; i++)
		send_head(fd[0], FRAME_INVALIDATE, 4, i);
	expect_end(fd[0]);
	for (i = 0; i < 64; i++)
		expect_frame(fd[1], FRAME_INVALIDATE, 4, i);
	expect_frame(fd[1], FRAME_PEER_GONE, 4, 0);
	daemon_stop();
}

/* ---- invalid memory ---- */

static void refused_with(const struct frame_attach *f, const int *fds,
			 unsigned int n)
{
	int fd = unix_socket("fabric", SOCK_SEQPACKET);
	struct frame_attach answer;

	send_with(fd, f, sizeof(*f), fds, n);
	CHECK_EQ(recv_frame(fd, &answer, sizeof(answer)), sizeof(answer.head));
	CHECK_EQ(answer.head.kind, FRAME_REFUSED);
	CHECK_EQ(answer.head.value, EINVAL);
	expect_end(fd);
}

static unsigned int daemon_fds(void)
{
	char path[64];
	unsigned int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", daemon_pid);
	d = opendir(path);
	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

TEST(bad_memory)
{
	struct frame_attach good = direct_frame(4), f;
	int m = memory(), many[12], fd;
	unsigned int i, fds;

	for (i = 0; i < ARRAY_LEN(many); i++)
		many[i] = m;
	daemon_start(NULL);
	control("nodes");
	fds = daemon_fds();
	refused(&good, sizeof(good), EINVAL);	/* no descriptor */
	refused_with(&good, many, 2);
	refused_with(&good, many, 8);
	refused_with(&good, many, 12);
	f = attach_frame(4);			/* a descriptor that is not needed */
	refused_with(&f, many, 1);
	f = good;
	f.direct = 2;
	refused_with(&f, many, 1);
	f = good;
	f.ranges = 0;
	refused_with(&f, many, 1);
	f.ranges = FABRIC_RANGES + 1;
	refused_with(&f, many, 1);
	f.ranges = UINT32_MAX;
	refused_with(&f, many, 1);
	f = good;
	f.range[1].size = 0;
	refused_with(&f, many, 1);
	f.range[1].size = (3u << 20) + 1;	/* beyond the end of the file */
	refused_with(&f, many, 1);
	f.range[1].size = UINT64_MAX;
	refused_with(&f, many, 1);
	f = good;
	f.range[1].offset = MEMORY + 1;
	refused_with(&f, many, 1);
	f.range[1].offset = UINT64_MAX - 10;
	refused_with(&f, many, 1);
	f = good;
	f.range[1].address = UINT64_MAX - 10;
	refused_with(&f, many, 1);
	WAIT_UNTIL(daemon_fds() == fds, TEST_WAIT_MS);
	fd = direct_adapter(4, m);

	/* the daemon closes descriptors that come with other frames */
	f.head = (struct frame){ .kind = FRAME_INVALIDATE, .node = 4 };
	for (i = 0; i < 20; i++) {
		send_with(fd, &f, sizeof(f.head), many, 3);
		expect_frame(fd, FRAME_INVALIDATED, 4, 0);
	}
	CHECK_EQ(daemon_fds(), fds + 2);
	daemon_stop();
}

/* Read frames until the next one is no packet. */
static void read_packets(int fd)
{
	struct frame_packet f;

	do
		CHECK(recv(fd, &f, sizeof(f), MSG_PEEK) > 0);
	while (f.head.kind == FRAME_PACKET && recv_frame(fd, &f, sizeof(f)));
}

/* Wait until the daemon has closed the connection of a node. @gone: "NODE gone" */
static void wait_gone(const char *gone)
{
	WAIT_UNTIL((control("nodes"), strstr(said, gone)), TEST_WAIT_MS);
	control("nodes");		/* the close follows the events of the first answer */
}

/*
 * Frames with descriptors are queued for a node that does not read, but not those of nodes that
 * have left: they would keep the memory of these nodes.
 */
TEST(descriptors_wait)
{
	int m = memory(), a, b, c, d, i;
	struct frame_attach f;
	unsigned int fds;

	daemon_start(NULL);
	a = direct_adapter(4, m);
	d = direct_adapter(16, m);
	b = adapter(8);
	for (i = 0; i < 2000; i++)
		send_request(b, 8, 4, 1);
	send_request(b, 8, 65532, 1);	/* instead of a fence, which would ask node 4 */
	CHECK_EQ(recv_frame(b, &f, sizeof(f)), sizeof(f));
	CHECK_EQ(f.head.kind, FRAME_NO_NODE);
	close(expect_peer(a, 16));
	close(expect_peer(d, 4));
	close(d);			/* node 4 knows node 16 */
	wait_gone("16 gone");
	fds = daemon_fds();
	for (i = 0; i < 20; i++) {
		c = direct_adapter(12, m);
		send_exports(c, 12, 0x1000);
		close(expect_peer(c, 4));
		close(c);
	}
	wait_gone("12 gone");
	CHECK_EQ(daemon_fds(), fds);
	c = direct_adapter(12, m);
	send_exports(c, 12, 0x2000);
	read_packets(a);
	expect_frame(a, FRAME_PEER_GONE, 16, 0);
	same_memory(m, expect_peer(a, 12));
	expect_exports(a, 12, 0x2000);
	close(c);
	expect_frame(a, FRAME_PEER_GONE, 12, 0);
	daemon_stop();
}
