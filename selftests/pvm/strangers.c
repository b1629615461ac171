// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Tests hostile input to the daemon: frames of tasks, and messages of strangers, which are
 * processes on the fabric that are no daemons of the machine. The daemon must go on.
 */

#include <endian.h>
#include <errno.h>
#include <sys/wait.h>

#include "selftests/pvm/hostile.h"

#define FRAME_HANDLER	SCI_HANDLER_USER
#define FLOOD		(64u << 20)	/* bytes of messages of a stranger */
#define TURNS		100
#define STATUS		6
#define HOST_GONE	7

static int child_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	/* answer each message with the status of the task that it names */
	while (pvm_recv(-1, -1) > 0) {
		int tid = 0;

		pvm_upkint(&tid, 1, 1);
		message_int(pvm_parent(), STATUS, pvm_pstat(tid));
	}
	return 0;
}

/* ---- frames of tasks ---- */

/* The fields of requests' bodies, by request. */
static const char *const forms[OP_HELLO] = {
	/*
	 * i: a number, e: a small number, t: a number that is no task's id, m: a tag of messages to
	 * daemons, s: a string, n: a name out of three, p: a program that does not exist, b: bytes,
	 * x: words and strings in XDR, l: a list, 0 to 3: a count and so many strings
	 */
	[OP_ENROL] = "iiii", [OP_EXIT] = "i", [OP_SPAWN] = "pisi20iiiiiiii",
	[OP_SIBLINGS] = "l", [OP_GET_SIBLINGS] = "", [OP_WHERE] = "i", [OP_SIGNAL] = "ti",
	[OP_TASKS] = "i", [OP_CONFIG] = "", [OP_PICK] = "ise", [OP_NOTIFY] = "eeeel",
	[OP_CONTEXT] = "i", [OP_PUTINFO] = "neeb", [OP_RECVINFO] = "nee",
	[OP_DELINFO] = "nee", [OP_MBOXES] = "sii", [OP_MBOX_RESET] = "l", [OP_ADDHOSTS] = "3",
	[OP_DELHOSTS] = "3", [OP_CLOCK] = "", [OP_SETOPT] = "ei", [OP_GROUP] = "ene",
	[OP_TASKER] = "", [OP_HOSTER] = "", [OP_MANAGER] = "", [OP_TRACE] = "iiib",
	[OP_TRACER] = "eeeesii",
	[OP_SM] = "imix",
};

static int raw_fd = -1;			/* connection of a false task to the daemon */
static bool raw_stranger;		/* the false task has not enrolled */

static void body_strings(struct frame *f, int n)
{
	frame_i32(f, one_in(16) ? hostile_int() : n);
	while (n--)
		frame_str(f, hostile_name());
}

/* Add random words and strings in XDR, as messages of registered tasks have. */
static void body_xdr(struct frame *f)
{
	uint8_t x[1024] = { 0 };
	size_t n = 0;

	while (n < sizeof(x) - 64 && !one_in(12)) {
		const char *s = one_in(3) ? hostile_name() : NULL;
		uint32_t word = htobe32(s ? (uint32_t)strlen(s) + 1 : one_in(4) ?
					(uint32_t)hostile_int() : random_below(3));

		memcpy(x + n, &word, 4);
		n += 4;
		if (s && strlen(s) < 32) {
			strcpy((char *)x + n, s);
			n += (strlen(s) + 4) & ~(size_t)3;
		}
	}
	frame_bytes(f, x, n);
}

static void field_add(struct frame *f, char form)
{
	int list[6] = { hostile_int(), hostile_tid(), hostile_int(), hostile_tid() };
	uint8_t bytes[64];

	switch (form) {
	case 'i': frame_i32(f, hostile_int()); break;
	case 'e': frame_i32(f, one_in(8) ? hostile_int() : (int)random_below(9) - 1); break;
	case 't': frame_i32(f, hostile_tid()); break;
	case 'n': frame_str(f, (const char *const[]){ "a", "b", "c" }[random_below(3)]); break;
	case 's': frame_str(f, hostile_name()); break;
	case 'p': frame_str(f, "no-such-program"); break;
	case 'm': frame_i32(f, one_in(3) ? GROUP_STATUS : SM((int)random_below(20) - 1)); break;
	case 'x': body_xdr(f); break;
	case 'l': frame_ints(f, list, (int)random_below(7)); break;
	case 'b':
		random_bytes(bytes, sizeof(bytes));
		frame_bytes(f, bytes, random_below(sizeof(bytes) + 1));
		break;
	default: body_strings(f, form - '0'); break;
	}
}

/* Change bytes, or truncate the body. Names of programs and signals do not change. */
static void frame_mutate(struct frame *f, int op)
{
	size_t body = f->len - sizeof(struct frame_head);

	if (one_in(3))
		f->len -= random_below((uint32_t)body + 1);
	else if (op != OP_SPAWN && op != OP_SIGNAL)
		body_mutate(f->data + sizeof(struct frame_head), body);
}

/*
 * Make a random frame, but none that halts the machine. Return: whether its length is right, so
 * that another frame may follow.
 */
static bool hostile_frame(struct frame *f)
{
	static const uint32_t to[] = { TO_OWN, TO_OWN, TO_OWN, TO_MASTER, TID_OF_HOST(1),
		TID_OF_HOST(2), TID_OF_HOST(HOST_MAX), 0x40001, 0xffffffff };
	int op = (int)random_below(one_in(20) ? 0x10000 : one_in(8) ? OP_BYE + 3 : OP_HELLO);
	uint8_t junk[256];

	if (op == OP_HALT)
		op = 0;
	/* few frames end the task: a longer life reaches more states */
	if ((op == OP_EXIT || op == OP_ENROL) && !one_in(8))
		op = OP_GROUP;
	frame_begin(f, op, to[random_below(sizeof(to) / sizeof(to[0]))]);
	if (op < OP_HELLO && forms[op] && !one_in(8)) {
		for (const char *form = forms[op]; *form; form++)
			field_add(f, *form);
		if (one_in(2))
			frame_mutate(f, op);
	} else if (op != OP_SIGNAL) {
		random_bytes(junk, sizeof(junk));
		memcpy(junk, &(int){ hostile_int() }, 4);
		frame_bytes(f, junk, random_below(sizeof(junk) + 1));
	}
	frame_head(f)->seq = random_below(4);
	if (!one_in(200))
		return true;
	frame_head(f)->len = (uint32_t)hostile_int();
	return false;
}

/* Close the connection after the daemon has read all frames. */
static void raw_close(void)
{
	char data[4096];

	shutdown(raw_fd, SHUT_WR);
	while (recv(raw_fd, data, sizeof(data), 0) > 0)
		;
	close(raw_fd);
	raw_fd = -1;
}

static void raw_send(const void *data, size_t len)
{
	if (send(raw_fd, data, len, MSG_NOSIGNAL) != (ssize_t)len)
		raw_close();
}

/* Connect if the daemon has closed the connection, and sometimes anyway. */
static void raw_open(void)
{
	struct frame f = { 0 };

	if (raw_fd >= 0 && !one_in(raw_stranger ? 4 : 500))
		return;
	if (raw_fd >= 0)
		raw_close();
	raw_fd = machine_connect();
	CHECK(raw_fd >= 0);
	raw_stranger = one_in(8);
	if (raw_stranger)
		return;
	frame_begin(&f, OP_ENROL, TO_OWN);
	frame_i32(&f, FRAME_VERSION);
	frame_i32(&f, one_in(2) ? 0 : hostile_int());
	frame_i32(&f, hostile_int());
	frame_i32(&f, hostile_int());
	raw_send(frame_head(&f), f.len);
	frame_free(&f);
}

/* Read all that the daemon has sent. */
static void raw_drain(void)
{
	char data[4096];

	while (raw_fd >= 0) {
		ssize_t n = recv(raw_fd, data, sizeof(data), MSG_DONTWAIT);

		if (n > 0)
			continue;
		if (!n || errno != EAGAIN)
			raw_close();
		return;
	}
}

TEST(frames_of_any_kind_do_not_harm_the_daemon)
{
	uint8_t junk[64];
	int n;

	setenv("PVM_RSH", "/bin/false", 1);
	machine_begin();
	random_seed(2);
	for (unsigned int i = rounds(20000); i; i--) {
		struct frame f = { 0 };
		bool whole = !one_in(300);

		raw_open();
		if (whole) {
			whole = hostile_frame(&f);
			raw_send(f.data, f.len);
		} else {
			random_bytes(junk, sizeof(junk));
			raw_send(junk, 1 + random_below(sizeof(junk)));
		}
		frame_free(&f);
		raw_drain();
		if (!whole && raw_fd >= 0)
			raw_close();
		if (i % 64)
			continue;
		CHECK_EQ(pvm_config(&n, NULL, NULL), 0);
		CHECK_EQ(n, 1);
		alive_check();
		/* a random frame may have sent trace messages to this task */
		while (pvm_nrecv(-1, -1) > 0)
			;
	}
	if (raw_fd >= 0)
		raw_close();
	alive_check();
	machine_end();
}

/* ---- strangers ---- */

/*
 * Begin a machine of two hosts, and connect @ep to its master. @tid: a task on the other host.
 * Return: the address of the master.
 */
static struct sci_addr strangers_begin(struct sci_ep **ep, struct sci_peer **peer, int *tid)
{
	char *names[] = { (char *)"node8" };
	struct sci_addr addr;
	int host;

	machine_begin_hosts();
	CHECK_EQ(pvm_addhosts(names, 1, &host), 1);
	CHECK_EQ(pvm_spawn(machine_self, NULL, PvmTaskHost, names[0], 1, tid), 1);
	addr = master_address(*tid);
	CHECK_EQ(sci_ep_open(ep, 0, SCI_EP_SINGLE_THREAD), 0);
	CHECK_EQ(sci_connect(*ep, &addr, TEST_WAIT_MS, peer), 0);
	return addr;
}

/* Check that the machine has two hosts, and that both answer requests. */
static void machine_check(int tid)
{
	int n;

	CHECK_EQ(pvm_config(&n, NULL, NULL), 0);
	CHECK_EQ(n, 2);
	CHECK_EQ(pvm_pstat(tid), 0);
}

/* The daemon closes the connection of a stranger whose hello is wrong. */
TEST(a_stranger_is_no_daemon)
{
	struct sci_peer *peer;
	struct sci_addr addr;
	struct sci_ep *ep;
	int tid, ret;

	random_seed(4);
	addr = strangers_begin(&ep, &peer, &tid);
	for (unsigned int i = rounds(4000); i; i--) {
		struct frame f = { 0 };
		size_t len;

		hostile_frame(&f);
		if (one_in(2))
			frame_head(&f)->op = OP_HELLO + random_below(OP_BYE + 1 - OP_HELLO);
		frame_head(&f)->src = (uint32_t)hostile_int();
		len = one_in(16) ? random_below((uint32_t)f.len) : f.len;
		len = len < SCI_HANDLER_MAX ? len : SCI_HANDLER_MAX;
		ret = sci_handler_send(peer, FRAME_HANDLER + !random_below(256),
				       one_in(16) ? (uint64_t)random_word() << random_below(33) : f.len,
				       f.data, len);
		frame_free(&f);
		sci_progress(ep);
		if (ret && ret != -EAGAIN) {
			CHECK_EQ(sci_disconnect(peer), 0);
			CHECK_EQ(sci_connect(ep, &addr, TEST_WAIT_MS, &peer), 0);
		}
		if (!(i % 64))
			machine_check(tid);
	}
	sci_ep_close(ep);
	alive_check();
	machine_end();
}

/* Return whether the daemon receives the message of @req while it answers TURNS requests. */
static bool message_taken(struct sci_req *req, int tid)
{
	for (int i = 0; i < TURNS; i++) {
		int ret = sci_test(req, NULL);

		if (ret != -EAGAIN) {
			CHECK_EQ(ret, 0);
			return true;
		}
		machine_check(tid);
	}
	return false;
}

/* The library buffers only a few of the messages that the daemon never receives. */
TEST(a_stranger_does_not_fill_the_daemon)
{
	static uint8_t body[16 << 10];
	char *names[] = { (char *)"node12" };
	struct sci_peer *peer;
	struct sci_ep *ep;
	struct sci_req *req;
	size_t taken = 0;
	int tid, host;

	strangers_begin(&ep, &peer, &tid);
	for (; taken < FLOOD; taken += sizeof(body)) {
		struct iovec iov = { body, sizeof(body) };
		struct sci_send m = {
			.iov = &iov, .n = 1, .context = 7, .tag = taken,
			.flags = SCI_SEND_TAGGED,
		};

		CHECK_EQ(sci_isendm(peer, &m, &req), 0);
		if (!message_taken(req, tid))
			break;
	}
	CHECK(taken < FLOOD / 8);
	/* a stranger that waits for the daemon does not block other requests */
	CHECK_EQ(pvm_addhosts(names, 1, &host), 1);
	CHECK_EQ(pvm_delhosts(names, 1, &host), 1);
	machine_check(tid);
	sci_ep_close(ep);
	machine_end();
}

/* ---- hosts that lose each other ---- */

static struct sci_peer *loner_master, *loner_other;
static bool loner_dismissed;
static int loner_version;		/* of a host table that is not yet acknowledged, or 0 */
static uint32_t loner_tid;

static void loner_handle(void *arg, const struct sci_handled *m)
{
	struct frame_head head;
	int words[2];

	(void)arg;
	if (m->peer != loner_master) {
		loner_other = m->peer;
		return;
	}
	if (m->len < sizeof(head))
		return;
	memcpy(&head, m->data, sizeof(head));
	loner_dismissed |= head.op == OP_BYE;
	if (head.op != OP_HOSTS || m->len < sizeof(head) + sizeof(words))
		return;
	memcpy(words, (const char *)m->data + sizeof(head), sizeof(words));
	loner_tid = TID_OF_HOST(words[0]);
	loner_version = words[1];
}

static int loner_look(void *arg)
{
	(void)arg;
	return loner_dismissed || loner_other || loner_version ? 0 : -EAGAIN;
}

static void loner_answer(void)
{
	struct frame f = { 0 };

	frame_begin(&f, OP_HOSTS_KNOWN, 0);
	frame_i32(&f, loner_version);
	frame_head(&f)->src = loner_tid;
	loner_version = 0;
	sci_handler_send(loner_master, FRAME_HANDLER, f.len, frame_head(&f), f.len);
	frame_free(&f);
}

/* Join the machine as a host, and close the connections of all daemons but the master. */
static void loner_run(const char *where)
{
	struct frame f = { 0 };
	struct sci_addr addr;
	struct sci_ep *ep;
	char secret[33] = "";

	setenv("SCI_NODE", "12", 1);
	if (read(0, secret, 32) != 32 || sscanf(where, "%u:%u", &addr.node, &addr.id) != 2 ||
	    sci_ep_open(&ep, 0, SCI_EP_SINGLE_THREAD) ||
	    sci_handler_set(ep, FRAME_HANDLER, loner_handle, NULL) ||
	    sci_connect(ep, &addr, TEST_WAIT_MS, &loner_master))
		return;
	frame_begin(&f, OP_HELLO, 0);
	frame_str(&f, secret);
	frame_str(&f, "LINUX64");
	sci_handler_send(loner_master, FRAME_HANDLER, f.len, frame_head(&f), f.len);
	frame_free(&f);
	while (!sci_wait_until(ep, loner_look, NULL, TEST_WAIT_MS) && !loner_dismissed) {
		if (loner_version)
			loner_answer();
		if (loner_other)
			sci_disconnect(loner_other);
		loner_other = NULL;
	}
}

/* Run as PVM_RSH. The last argument is the address of the master. */
__attribute__((constructor)) static void loner_shell(int argc, char **argv)
{
	if (argc < 4 || strcmp(argv[1], "loner"))
		return;
	loner_run(argv[argc - 1]);
	_exit(0);
}

/* All hosts must know the same hosts, so a host that another host has lost leaves the machine. */
TEST(a_host_that_another_host_has_lost_leaves)
{
	char *names[] = { (char *)"loner", (char *)"node8" };
	int hosts[2], tid;

	CHECK(realpath("/proc/self/exe", machine_self));
	setenv("PVM_RSH", machine_self, 1);
	machine_begin_hosts();
	CHECK_EQ(pvm_addhosts(names, 2, hosts), 2);
	CHECK_EQ(pvm_notify(PvmHostDelete, HOST_GONE, 2, hosts), 0);
	CHECK_EQ(pvm_spawn(machine_self, NULL, PvmTaskHost, names[1], 1, &tid), 1);
	message_int(tid, 1, hosts[0] | 1);
	CHECK_EQ(reply_int(tid, STATUS), PvmNoTask);
	CHECK_EQ(reply_int(-1, HOST_GONE), hosts[0]);
	machine_check(tid);
	machine_end();
}

/*
 * A host whose daemon is stopped does not know a new host, and would refuse it as a stranger.
 * So the new host joins only when the daemon goes on.
 */
TEST(a_host_joins_while_the_daemon_of_another_host_is_stopped)
{
	char *names[] = { (char *)"node8", (char *)"node12" };
	struct timespec moment = { 0, 300000000 };
	int hosts[2], old, new, n, going_on[2];
	char c = 0;
	pid_t daemon;

	machine_begin_hosts();
	CHECK_EQ(pvm_addhosts(names, 1, hosts), 1);
	CHECK_EQ(pvm_spawn(machine_self, NULL, PvmTaskHost, names[0], 1, &old), 1);
	daemon = machine_daemon(old);
	CHECK_EQ(pipe2(going_on, O_CLOEXEC | O_NONBLOCK), 0);
	CHECK_EQ(kill(daemon, SIGSTOP), 0);
	if (!fork()) {
		nanosleep(&moment, NULL);
		_exit(write(going_on[1], &c, 1) != 1 || kill(daemon, SIGCONT));
	}
	CHECK_EQ(pvm_addhosts(names + 1, 1, hosts + 1), 1);
	CHECK_EQ(read(going_on[0], &c, 1), 1);
	CHECK_EQ(pvm_spawn(machine_self, NULL, PvmTaskHost, names[1], 1, &new), 1);
	message_int(new, 1, old);
	CHECK_EQ(reply_int(new, STATUS), PvmOk);
	message_int(old, 1, new);
	CHECK_EQ(reply_int(old, STATUS), PvmOk);
	CHECK_EQ(pvm_config(&n, NULL, NULL), 0);
	CHECK_EQ(n, 3);
	wait(NULL);
	machine_end();
}
