// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Tests that a daemon and its tasks refuse connections of another user of the host, who knows
 * their names: the kernel reports the user at the other end of each connection. The last test shows
 * what SCI_MODE permits.
 */

#include <errno.h>

#include "selftests/pvm/machine.h"

#define OTHER	65534
#define DONE	7
#define FORGED	0x40abc		/* the task in whose name another user sends */

struct name {
	struct sockaddr_un un;
	socklen_t len;
};

static int child_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	pvm_recv(-1, DONE);
	return 0;
}

static struct name name_of_daemon(void)
{
	struct name name;

	test_needs_shm();
	if (geteuid())
		SKIP("only root can become another user");
	name.len = pvm_sock_addr(&name.un);
	return name;
}

/* Enrol as a new task, and ask for the address of task @tid. Return: the connection. */
static int daemon_ask(const struct name *name, int tid)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct frame f = { 0 }, where = { 0 };

	CHECK_EQ(connect(fd, (const struct sockaddr *)&name->un, name->len), 0);
	frame_begin(&f, OP_ENROL, TO_OWN);
	frame_i32(&f, FRAME_VERSION);
	for (int i = 0; i < 3; i++)
		frame_i32(&f, 0);
	frame_begin(&where, OP_WHERE, (uint32_t)tid & TID_HOST_MASK);
	frame_i32(&where, tid);
	frame_head(&where)->seq = 1;
	send(fd, frame_head(&f), f.len, MSG_NOSIGNAL);
	send(fd, frame_head(&where), where.len, MSG_NOSIGNAL);
	frame_free(&f);
	frame_free(&where);
	return fd;
}

/* Return the address of the endpoint of @tid. */
static struct sci_addr task_address(const struct name *name, int tid)
{
	int fd = daemon_ask(name, tid);
	struct sci_addr addr;
	struct frame_head head;
	uint8_t data[1024];
	struct body body;
	size_t len = 0;
	long n;

	for (;;) {
		n = frame_next(data, len, &head, &body);
		if (n && head.op == OP_REPLY && head.seq == 1)
			break;
		memmove(data, data + n, len -= (size_t)n);
		if (n)
			continue;
		n = recv(fd, data + len, sizeof(data) - len, 0);
		CHECK(n > 0);
		len += (size_t)n;
	}
	CHECK_EQ(head.status, 0);
	addr.node = (uint32_t)body_i32(&body);
	addr.id = (uint32_t)body_i32(&body);
	CHECK(!body.bad);
	close(fd);
	return addr;
}

static void other_task(struct peer *self, void *name)
{
	char byte;
	int fd;

	peer_become(OTHER, OTHER);
	peer_expect(self, "ask");
	fd = daemon_ask(name, 0x40001);
	CHECK(recv(fd, &byte, 1, 0) <= 0);
	close(fd);
}

TEST(another_user_is_no_task)
{
	struct name name = name_of_daemon();
	struct peer *p = peer_spawn(4, other_task, &name);

	machine_begin();
	task_address(&name, pvm_mytid());
	peer_send(p, "ask");
	peer_join(p);
	machine_end();
}

static void other_daemon(struct peer *self, void *arg)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), task;
	struct name *name = arg;
	char byte;

	peer_become(OTHER, OTHER);
	CHECK_EQ(bind(fd, (struct sockaddr *)&name->un, name->len), 0);
	CHECK_EQ(listen(fd, 8), 0);
	peer_send(self, "listens");
	/* a task looks for a daemon before and after it tries to start one */
	for (int i = 0; i < 2; i++) {
		task = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		CHECK_EQ(recv(task, &byte, 1, 0), 0);
		close(task);
	}
	close(fd);
}

TEST(another_user_is_no_daemon)
{
	struct name name = name_of_daemon();
	struct peer *p = peer_spawn(4, other_daemon, &name);

	peer_expect(p, "listens");
	machine_prepare();
	CHECK_EQ(pvm_mytid(), PvmSysErr);
	peer_join(p);
	machine_begin();
	machine_end();
}

static void other_endpoint(struct peer *self, void *arg)
{
	struct sci_addr addr;
	struct sci_peer *to;
	struct sci_ep *ep;

	(void)arg;
	peer_become(OTHER, OTHER);
	CHECK_EQ(sci_ep_open(&ep, 0, SCI_EP_SINGLE_THREAD), 0);
	for (int i = 0; i < 2; i++) {
		PEER_GET(self, addr);
		CHECK_EQ(sci_connect(ep, &addr, TEST_WAIT_MS, &to), -EACCES);
	}
	sci_ep_close(ep);
}

static void other_connects(struct peer *p, struct sci_addr addr)
{
	struct sci_peer *to;
	struct sci_ep *ep;

	CHECK_EQ(sci_ep_open(&ep, 0, SCI_EP_SINGLE_THREAD), 0);
	CHECK_EQ(sci_connect(ep, &addr, TEST_WAIT_MS, &to), 0);
	sci_ep_close(ep);
	PEER_PUT(p, addr);
}

TEST(another_user_connects_to_no_endpoint)
{
	struct name name = name_of_daemon();
	struct peer *p = peer_spawn(4, other_endpoint, NULL);
	char *names[] = { (char *)"node8" };
	int host, tid;

	machine_begin();
	CHECK_EQ(pvm_addhosts(names, 1, &host), 1);
	CHECK_EQ(pvm_spawn(machine_self, NULL, PvmTaskHost, names[0], 1, &tid), 1);
	other_connects(p, master_address(tid));
	other_connects(p, task_address(&name, tid));
	peer_join(p);
	machine_end();
}

struct target {
	struct sci_addr addr;
	int ctx;
};

/* Send a message to a task, as peer.c does. */
static void other_sends(struct peer *self, void *arg)
{
	const uint64_t imm = (uint64_t)FORGED << 32 | PvmDataRaw;
	struct target t;
	struct sci_peer *to;
	struct sci_ep *ep;
	char byte;
	int fd;

	peer_become(OTHER, OTHER);
	PEER_GET(self, t);
	CHECK_EQ(sci_ep_open(&ep, 0, SCI_EP_SINGLE_THREAD), 0);
	CHECK_EQ(sci_connect(ep, &t.addr, TEST_WAIT_MS, &to), 0);
	WAIT_UNTIL(!sci_try_tsend(to, 1, (uint64_t)(uint32_t)t.ctx << 32 | DONE, &imm, "x", 1),
		   TEST_WAIT_MS);
	peer_expect(self, "received");
	sci_ep_close(ep);
	fd = daemon_ask(arg, 0x40001);
	CHECK(recv(fd, &byte, 1, 0) <= 0);
	close(fd);
}

TEST(sci_mode_admits_other_users_to_endpoints_alone)
{
	struct name name = name_of_daemon();
	struct target t;
	struct peer *p;
	int tid = 0;

	setenv("SCI_MODE", "0666", 1);
	p = peer_spawn(4, other_sends, &name);
	machine_begin();
	t.addr = task_address(&name, pvm_mytid());
	t.ctx = pvm_getcontext();
	PEER_PUT(p, t);
	CHECK(pvm_recv(FORGED, DONE) > 0);
	CHECK_EQ(pvm_bufinfo(pvm_getrbuf(), NULL, NULL, &tid), 0);
	CHECK_EQ(tid, FORGED);
	peer_send(p, "received");
	peer_join(p);
	machine_end();
}
