// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Strangers at the port, and processes that have the session's key but break
 * the rules, harm no other process.  SCI_TEST_STRANGERS is their number.
 */
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "libsci/fabric/net/net.h"
#include "selftests/msg/peers.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS	83
#endif

static unsigned int strangers(unsigned int n)
{
	const char *text = getenv("SCI_TEST_STRANGERS");

	return text ? (unsigned int)strtoul(text, NULL, 10) : TEST_TSAN || TEST_ASAN ? n / 4 : n;
}

/* ---- a raw socket to node 8 ---- */

static int knock(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int len = snprintf(un.sun_path, sizeof(un.sun_path), "@sci%s-8.0", test_cluster());
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	un.sun_path[0] = '\0';
	CHECK_EQ(connect(fd, (struct sockaddr *)&un,
			 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)len)), 0);
	return fd;
}

/* Return false if the other side has hung up. */
static bool say(int fd, const void *data, size_t len)
{
	return send(fd, data, len, MSG_NOSIGNAL) == (ssize_t)len;
}

static bool hear(int fd, void *data, size_t len)
{
	return recv(fd, data, len, MSG_WAITALL) == (ssize_t)len;
}

/* Check that the server reads all bytes and hangs up. */
static void hung_up(int fd)
{
	char buf[4096];
	ssize_t n;

	shutdown(fd, SHUT_WR);
	do {
		struct pollfd p = { fd, POLLIN, 0 };

		CHECK_EQ(poll(&p, 1, TEST_WAIT_MS), 1);
		n = recv(fd, buf, sizeof(buf), 0);
	} while (n > 0);
	close(fd);
}

static struct net_head head(enum net_step step)
{
	return (struct net_head){ NET_MAGIC, NET_VERSION, (uint16_t)step };
}

static struct net_hello hello(uint64_t nonce)
{
	return (struct net_hello){
		.head = head(NET_HELLO), .node = 400, .nonce = nonce,
	};
}

/* Connect as a process that has the key. Return -1 if the server refuses. */
static int enter(const struct net *me, uint64_t nonce)
{
	struct net_hello h = hello(nonce);
	struct net_challenge c;
	struct net_proof p = { .head = head(NET_PROOF), .epoch = 1, .birth = nonce };
	struct net_welcome w;
	const struct iovec parts[] = {
		{ &h, sizeof(h) }, { &c, offsetof(struct net_challenge, mac) },
		{ &p, offsetof(struct net_proof, mac) },
	};
	int fd = knock();

	CHECK(say(fd, &h, sizeof(h)));
	CHECK(hear(fd, &c, sizeof(c)));
	net_mac(me, "proof", parts, 3, p.mac);
	CHECK(say(fd, &p, sizeof(p)));
	if (hear(fd, &w, sizeof(w)) && !w.status)
		return fd;
	close(fd);
	return -1;
}

static void me_init(struct net *me)
{
	FILE *f = fopen(getenv("SCI_NET_KEY"), "re");

	CHECK(f);
	me->key_len = fread(me->key, 1, sizeof(me->key), f);
	fclose(f);
	CHECK_EQ(net_auth_init(), 0);
}

/* ---- the server ---- */

struct report {
	unsigned int fds;
	unsigned int tasks;
	long pages;
};

static struct report report(void)
{
	struct report r = { .fds = count_fds(), .tasks = count_tasks() };
	FILE *f = fopen("/proc/self/statm", "re");

	CHECK(f);
	CHECK_EQ(fscanf(f, "%*d %ld", &r.pages), 1);
	fclose(f);
	return r;
}

/* Report the server's resources whenever node 4 asks, until it sends 0. */
static void server(struct peer *proc, void *arg)
{
	struct pair l = { .proc = proc };
	uint8_t more = 1;

	(void)arg;
	test_use_net("unix", 8);
	l.ep = test_ep_open(TEST_ID, 0);
	peer_send(proc, "open");
	l.to = test_ep_accept(l.ep);
	while (more) {
		struct report r;

		CHECK_EQ(sci_recv(l.ep, l.to, &more, 1, NULL), 0);
		r = report();
		CHECK_EQ(sci_send(l.to, &r, sizeof(r)), 0);
	}
	pair_close(&l);
}

static struct report ask(struct pair *l, uint8_t more)
{
	struct report r;

	CHECK_EQ(sci_send(l->to, &more, 1), 0);
	CHECK_EQ(sci_recv(l->ep, l->to, &r, sizeof(r), NULL), 0);
	return r;
}

static struct pair begin(void)
{
	struct pair l = { .proc = peer_spawn(8, server, NULL) };

	test_use_net("unix", 4);
	peer_expect(l.proc, "open");
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, 8, TEST_ID);
	return l;
}

/*
 * The server has no more resources than before. The last strangers may have to time out first;
 * @before may have counted the thread that connected to node 4, which ends by itself.
 */
static void end(struct pair *l, const struct report *before)
{
	struct report now;

	WAIT_UNTIL((now = ask(l, 1), now.fds <= before->fds && now.tasks <= before->tasks),
		   TEST_WAIT_MS);
	test_note("%ld pages more", now.pages - before->pages);
	/* sanitizers keep freed memory */
	CHECK(TEST_ASAN || TEST_TSAN || now.pages < before->pages + 1024);
	ask(l, 0);
	pair_close(l);
	peer_join(l->proc);
}

static void scribble(uint64_t *state, void *buf, size_t len)
{
	uint8_t *c = buf;

	for (size_t i = 0; i < len; i++)
		c[i] = (uint8_t)msg_random(state, 256);
}

/* ---- strangers ---- */

TEST(strangers_get_nowhere)
{
	struct pair l = begin();
	struct report before = ask(&l, 1);
	uint64_t state = 12345;

	for (unsigned int i = 0; i < strangers(4000); i++) {
		struct net_hello h = hello(7 + i);
		uint8_t junk[300];
		int fd = knock();

		scribble(&state, junk, sizeof(junk));
		/* from junk alone to a handshake whose proof is wrong */
		if (i % 4)
			say(fd, &h, i % 4 == 1 ? msg_random(&state, sizeof(h)) : sizeof(h));
		if (i % 4 == 2) {
			struct net_proof p = { .head = head(NET_PROOF), .epoch = 1, .birth = 5 };

			memcpy(p.mac, junk, sizeof(p.mac));
			say(fd, &p, sizeof(p));
		}
		say(fd, junk, msg_random(&state, sizeof(junk)));
		if (i % 64)
			close(fd);
		else
			hung_up(fd);
		if (i % 256 == 0)
			ask(&l, 1);
	}
	end(&l, &before);
}

/* A close of the descriptor may block, so the kernel must refuse it before the service thread has it. */
TEST(strangers_cannot_send_descriptors)
{
	struct pair l = begin();
	struct report before = ask(&l, 1);
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	union {
		struct cmsghdr head;
		char buf[CMSG_SPACE(sizeof(int))];
	} control = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
			    .msg_controllen = sizeof(control.buf) };
	socklen_t len = sizeof(int);
	int fd = knock(), value;

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	if (getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &value, &len))
		SKIP("the kernel has no SO_PASSRIGHTS");
	CHECK_EQ(sendmsg(fd, &m, MSG_NOSIGNAL), -1);
	CHECK_EQ(errno, EPERM);
	hung_up(fd);
	end(&l, &before);
}

/* The proof of another connection is refused, because each challenge is new. */
TEST(a_proof_is_good_once)
{
	struct pair l = begin();
	struct report before = ask(&l, 1);
	struct net_hello h = hello(99);
	struct net_challenge c;
	struct net_proof p = { .head = head(NET_PROOF), .epoch = 1, .birth = 99 };
	struct net *me = calloc(1, sizeof(*me));
	const struct iovec parts[] = {
		{ &h, sizeof(h) }, { &c, offsetof(struct net_challenge, mac) },
		{ &p, offsetof(struct net_proof, mac) },
	};
	struct net_welcome w;
	int fd;

	CHECK(me);
	me_init(me);
	fd = knock();
	CHECK(say(fd, &h, sizeof(h)) && hear(fd, &c, sizeof(c)));
	net_mac(me, "proof", parts, 3, p.mac);
	CHECK(say(fd, &p, sizeof(p)) && hear(fd, &w, sizeof(w)));
	CHECK_EQ(w.status, 0);
	hung_up(fd);
	/* the proof does not match the new challenge */
	fd = knock();
	CHECK(say(fd, &h, sizeof(h)) && hear(fd, &c, sizeof(c)));
	CHECK(say(fd, &p, sizeof(p)));
	CHECK(!hear(fd, &w, sizeof(w)));
	close(fd);
	end(&l, &before);
	free(me);
}

TEST(silent_strangers_keep_nobody_out)
{
	struct peer *proc = peer_spawn(8, server, NULL);
	struct pair l = { .proc = proc };
	int fds[100];

	test_use_net("unix", 4);
	peer_expect(proc, "open");
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = knock();
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, 8, TEST_ID);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
	ask(&l, 0);
	pair_close(&l);
	peer_join(proc);
}

TEST(another_key_is_refused)
{
	struct pair l = begin();
	struct report before = ask(&l, 1);
	char path[] = "/tmp/sci-key-XXXXXX";
	struct sci_addr addr = { 8, TEST_ID };
	int fd = mkstemp(path);
	struct sci_peer *to;
	struct sci_ep *ep;

	CHECK(fd >= 0);
	CHECK(write(fd, "another key of this length", 26) == 26);
	close(fd);
	setenv("SCI_NET_KEY", path, 1);
	ep = test_ep_open(2, 0);
	CHECK_EQ(sci_connect(ep, &addr, TEST_WAIT_MS, &to), -EACCES);
	CHECK_EQ(sci_ep_close(ep), 0);
	unlink(path);
	end(&l, &before);
}

TEST(a_key_that_others_can_read_is_refused)
{
	char path[] = "/tmp/sci-key-XXXXXX";
	struct sci_ep *ep;
	int fd = mkstemp(path);

	test_use_net("unix", 4);
	CHECK(fd >= 0);
	CHECK(write(fd, "a key of this length", 20) == 20);
	CHECK_EQ(fchmod(fd, 0644), 0);
	setenv("SCI_NET_KEY", path, 1);
	CHECK_EQ(sci_ep_open(&ep, TEST_ID, 0), -EINVAL);
	CHECK_EQ(fchmod(fd, 0600), 0);
	CHECK_EQ(sci_ep_open(&ep, TEST_ID, 0), 0);
	CHECK_EQ(sci_ep_close(ep), 0);
	/* a key of 15 bytes is too short */
	CHECK_EQ(ftruncate(fd, 15), 0);
	CHECK_EQ(sci_ep_open(&ep, TEST_ID, 0), -EINVAL);
	close(fd);
	unlink(path);
	CHECK_EQ(sci_ep_open(&ep, TEST_ID, 0), -EINVAL);
}

/* ---- processes with the key ---- */

/* Make a frame that is right except for a few fields, or not at all. */
static void frame_fuzz(uint64_t *state, struct net_frame *f)
{
	scribble(state, f, sizeof(*f));
	if (msg_random(state, 16)) {
		f->type = 1 + (uint8_t)msg_random(state, NET_TYPES);
		f->flags &= NET_ACK_NOW;
		f->reserved = 0;
		f->ack = 0;
		f->len = (uint32_t)msg_random(state, msg_random(state, 8) ? 64 : 5000);
	}
	/* segment numbers of the message layer */
	if (msg_random(state, 2))
		f->object = 0x4d000000 + (uint32_t)msg_random(state, 4);
	if (msg_random(state, 2))
		f->offset = msg_random(state, 5000);
}

static void misbehave(struct net *me, uint64_t *state, uint64_t nonce)
{
	int fd = enter(me, nonce);
	uint8_t junk[5000];

	CHECK(fd >= 0);
	scribble(state, junk, sizeof(junk));
	for (unsigned int i = 0; i < 40; i++) {
		struct net_frame f;

		frame_fuzz(state, &f);
		if (!say(fd, &f, sizeof(f)) ||
		    !say(fd, junk, f.len < sizeof(junk) ? f.len : msg_random(state, 50)))
			break;
	}
	hung_up(fd);
}

TEST(frames_out_of_their_mind)
{
	struct pair l = begin();
	struct report before = ask(&l, 1);
	struct net *me = calloc(1, sizeof(*me));
	uint64_t state = 777;

	CHECK(me);
	me_init(me);
	for (unsigned int i = 0; i < strangers(2000); i++) {
		misbehave(me, &state, 1000 + i);
		if (i % 64 == 0)
			ask(&l, 1);
	}
	end(&l, &before);
	free(me);
}
