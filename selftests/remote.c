// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "selftests/harness.h"
#include "selftests/remote.h"

#define AGENT_PORT	1
#define PAYLOAD_MAX	(256u << 10)
#define ARG_LEN_MAX	(32u << 10)
#define ENVIRONMENT_MAX	(64u << 10)
#define NODES_MAX	16

extern char __executable_start[], etext[];

enum frame_kind {
	FRAME_SPAWN,
	FRAME_MESSAGE,		/* in both directions */
	FRAME_HANG_UP,		/* in both directions */
	FRAME_SIGNAL,
	FRAME_SIGNALLED,
	FRAME_OUTPUT,
	FRAME_END,
};

struct frame {
	uint32_t kind;
	uint32_t len;
};

struct spawn {
	uint64_t hash;
	uint64_t base;
	uint64_t fn;
	uint64_t arg;
	uint32_t arg_len;	/* bytes of *arg, which follow; 0: arg itself is valid everywhere */
	uint32_t env_len;	/* bytes of the environment, which follow *arg */
	uint32_t node;
};

struct end {
	int32_t status;
	int32_t failed;
	char skipped[128];
};

/* ---- bytes ---- */

static bool write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

static bool read_all(int fd, void *data, size_t len)
{
	char *p = data;

	while (len) {
		ssize_t n = read(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

static bool frame_put(int fd, enum frame_kind kind, const void *data,
		      size_t len)
{
	struct frame head = { kind, (uint32_t)len };

	return write_all(fd, &head, sizeof(head)) && write_all(fd, data, len);
}

static bool frame_get(int fd, struct frame *head, void *data)
{
	return read_all(fd, head, sizeof(*head)) && head->len <= PAYLOAD_MAX &&
	       read_all(fd, data, head->len);
}

/* Hash the program's code. Each peer needs the hash, so a step takes 8 bytes. */
static uint64_t program_hash(void)
{
	uintptr_t at = (uintptr_t)__executable_start, end = (uintptr_t)etext;
	uint64_t hash = 0, word;

	for (; at + 8 <= end; at += 8) {
		memcpy(&word, (const void *)at, 8);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	return hash;
}

/* ---- machines ---- */

bool remote_machines(void)
{
	return getenv("SCI_TEST_PEERS") != NULL;
}

static const char *machine(unsigned int i, unsigned int *node)
{
	const char *s = getenv("SCI_TEST_PEERS");
	static char address[64];

	for (; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL) {
		if (i--)
			continue;
		if (sscanf(s, "%u=%63[^,]", node, address) == 2)
			return address;
	}
	return NULL;
}

const char *remote_address(unsigned int node)
{
	const char *address;
	unsigned int n;

	for (unsigned int i = 0; (address = machine(i, &n)); i++)
		if (n == node)
			return address;
	return NULL;
}

/* Start this program on another machine. Return the connection, or -1 with errno. */
static int machine_call(const char *address, const char *what)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(AGENT_PORT),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char program[512], line[640];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (fd < 0 || n < 0 || !inet_aton(address, &to.sin_addr))
		return -1;
	program[n] = 0;
	n = snprintf(line, sizeof(line), "exec '%s' --%s\n", program, what);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) ||
	    !write_all(fd, line, (size_t)n))
		return -1;
	return fd;
}

bool remote_main(char **argv)
{
	bool served = argv[1] && !strncmp(argv[1], "--serve-", 8);
	int now;

	if (!remote_machines() && !served)
		return false;
	now = personality(0xffffffff);
	if (!(now & ADDR_NO_RANDOMIZE) &&
	    personality((unsigned long)now | ADDR_NO_RANDOMIZE) >= 0)
		execv("/proc/self/exe", argv);
	return served;
}

/* ---- the stub ---- */

/*
 * Return the number of writable bytes from @p on, at most @max. Read-only memory is the
 * same on all machines and needs no copy.
 */
static size_t variable_bytes(const void *p, size_t max)
{
	uintptr_t at = (uintptr_t)p, from, to;
	FILE *file = fopen("/proc/self/maps", "re");
	char perms[8], line[512];
	size_t len = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%lx-%lx %7s", &from, &to, perms) == 3 &&
		    at >= from && at < to && perms[1] == 'w')
			len = to - at < max ? to - at : max;
	if (file)
		fclose(file);
	return len;
}

bool remote_variable(const void *p)
{
	return variable_bytes(p, 1) != 0;
}

static bool spawn_put(int fd, unsigned int node, peer_fn *fn, void *arg)
{
	static char data[sizeof(struct spawn) + ARG_LEN_MAX + ENVIRONMENT_MAX];
	struct spawn s = {
		.hash = program_hash(),
		.base = (uintptr_t)__executable_start,
		.fn = (uintptr_t)fn, .arg = (uintptr_t)arg, .node = node,
		.arg_len = (uint32_t)variable_bytes(arg, ARG_LEN_MAX),
	};
	char *p = data + sizeof(s);

	memcpy(p, arg, s.arg_len);
	p += s.arg_len;
	for (char **e = environ; *e; e++) {
		size_t len = strlen(*e) + 1;

		if (s.env_len + len > ENVIRONMENT_MAX)
			break;
		memcpy(p + s.env_len, *e, len);
		s.env_len += (uint32_t)len;
	}
	memcpy(data, &s, sizeof(s));
	return frame_put(fd, FRAME_SPAWN, data,
			 sizeof(s) + s.arg_len + s.env_len);
}

__attribute__((noreturn))
static void end_as(const struct end *e)
{
	static const struct rlimit no_core;

	if (e->failed)
		harness_fail();
	if (e->skipped[0])
		harness_skip(e->skipped);
	if (!WIFSIGNALED(e->status))
		_exit(WEXITSTATUS(e->status));
	setrlimit(RLIMIT_CORE, &no_core);
	signal(WTERMSIG(e->status), SIG_DFL);
	kill(getpid(), WTERMSIG(e->status));
	_exit(1);
}

static bool stub_frame(int net, int *fd, int orders)
{
	static char data[PAYLOAD_MAX];
	struct frame head;

	if (!frame_get(net, &head, data))
		return false;
	switch (head.kind) {
	case FRAME_MESSAGE:
		if (*fd >= 0)
			(void)!send(*fd, data, head.len, MSG_NOSIGNAL);
		break;
	case FRAME_HANG_UP:
		if (*fd >= 0)
			shutdown(*fd, SHUT_WR);
		break;
	case FRAME_SIGNALLED:
		(void)!write(orders, data, 1);
		break;
	case FRAME_OUTPUT:
		(void)!write_all(STDOUT_FILENO, data, head.len);
		break;
	case FRAME_END:
		end_as((struct end *)data);
	default:
		return false;
	}
	return true;
}

/* Send one message of the test or the peer, or the end of its connection. */
static bool pass_message(int *fd, int net)
{
	char data[8192];
	ssize_t n = recv(*fd, data, sizeof(data), 0);

	if (n > 0)
		return frame_put(net, FRAME_MESSAGE, data, (size_t)n);
	close(*fd);
	*fd = -1;
	return frame_put(net, FRAME_HANG_UP, NULL, 0);
}

void remote_stub(unsigned int node, peer_fn *fn, void *arg, int fd, int orders)
{
	const char *address = remote_address(node);
	int net = machine_call(address, "serve-peer");
	struct pollfd pfd[3];
	bool ok = net >= 0 && spawn_put(net, node, fn, arg);
	char sig;

	while (ok) {
		pfd[0] = (struct pollfd){ .fd = net, .events = POLLIN };
		pfd[1] = (struct pollfd){ .fd = fd, .events = POLLIN };
		pfd[2] = (struct pollfd){ .fd = orders, .events = POLLIN };
		if (poll(pfd, 3, -1) < 0 && errno != EINTR)
			break;
		if (pfd[2].revents) {
			if (read(orders, &sig, 1) == 1)
				ok = frame_put(net, FRAME_SIGNAL, &sig, 1);
			else
				orders = -1;
		}
		if (ok && pfd[1].revents)
			ok = pass_message(&fd, net);
		if (ok && pfd[0].revents)
			ok = stub_frame(net, &fd, orders);
	}
	test_note("node %u at %s: the connection to it is lost: %s", node,
		  address, strerror(errno));
	harness_fail();
	_exit(1);
}

/* ---- the server ---- */

struct server {
	int net;
	int fd;			/* messages of the peer */
	int output;
	pid_t pid;
};

static void put_environment(char *p, size_t len)
{
	const char *end = p + len;

	clearenv();
	for (; p < end; p += strlen(p) + 1)
		putenv(p);
}

static void *copy(const void *data, size_t len)
{
	void *p = aligned_alloc(64, (len + 63) / 64 * 64);

	memcpy(p, data, len);
	return p;
}

/* Refuse to start a peer. The reason becomes output of the test. */
static int refuse(int net, const char *why)
{
	static const struct end end = { .status = 1 << 8, .failed = 1 };
	char line[256];
	int len = snprintf(line, sizeof(line), "# the other machine: %s\n", why);

	frame_put(net, FRAME_OUTPUT, line, (size_t)len);
	frame_put(net, FRAME_END, &end, sizeof(end));
	return 1;
}

static const char *spawn(struct server *v, char *data)
{
	int fds[2], output[2];
	pid_t parent = getpid();
	struct spawn s;

	memcpy(&s, data, sizeof(s));
	data += sizeof(s);
	if (s.base != (uintptr_t)__executable_start)
		return "the program is at another address: does its kernel randomize?";
	if (s.hash != program_hash())
		return "it is another program";
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) ||
	    pipe2(output, O_CLOEXEC))
		return strerror(errno);
	v->pid = fork();
	if (v->pid < 0)
		return strerror(errno);
	if (!v->pid) {
		close(v->net);
		close(fds[0]);
		close(output[0]);
		dup2(output[1], STDOUT_FILENO);
		dup2(output[1], STDERR_FILENO);
		close(output[1]);
		put_environment(copy(data + s.arg_len, s.env_len), s.env_len);
		harness_peer(s.node, parent, fds[1], (peer_fn *)s.fn,
			     s.arg_len ? copy(data, s.arg_len) : (void *)s.arg);
	}
	close(fds[1]);
	close(output[1]);
	v->fd = fds[0];
	v->output = output[0];
	return NULL;
}

/* Send a signal to the peer and confirm that it has taken effect. */
static bool order(struct server *v, char sig)
{
	siginfo_t info;

	kill(v->pid, sig);
	if (sig == SIGSTOP)
		waitid(P_PID, (id_t)v->pid, &info, WSTOPPED);
	return (sig != SIGSTOP && sig != SIGCONT) ||
	       frame_put(v->net, FRAME_SIGNALLED, &sig, 1);
}

static bool server_frame(struct server *v, char *data)
{
	struct frame head;

	if (!frame_get(v->net, &head, data))
		return false;
	switch (head.kind) {
	case FRAME_MESSAGE:
		if (v->fd >= 0)
			(void)!send(v->fd, data, head.len, MSG_NOSIGNAL);
		return true;
	case FRAME_HANG_UP:
		if (v->fd >= 0)
			close(v->fd);
		v->fd = -1;
		return true;
	case FRAME_SIGNAL:
		return order(v, *data);
	default:
		return false;
	}
}

static bool pass_output(struct server *v)
{
	char data[4096];
	ssize_t n = read(v->output, data, sizeof(data));

	if (n > 0)
		return frame_put(v->net, FRAME_OUTPUT, data, (size_t)n);
	close(v->output);
	v->output = -1;
	return true;
}

/* Pass on pending data. Return false if the connection has ended. */
static bool serve_once(struct server *v, int pidfd, bool *ended, char *data)
{
	struct pollfd pfd[4] = {
		{ .fd = v->net, .events = POLLIN },
		{ .fd = v->fd, .events = POLLIN },
		{ .fd = v->output, .events = POLLIN },
		{ .fd = pidfd, .events = POLLIN },
	};

	if (poll(pfd, 4, -1) < 0)
		return errno == EINTR;
	if (pfd[1].revents && !pass_message(&v->fd, v->net))
		return false;
	if (pfd[2].revents && !pass_output(v))
		return false;
	if (pfd[0].revents && !server_frame(v, data))
		return false;
	/* the last messages and output go before the end */
	*ended = pfd[3].revents && !pfd[1].revents && !pfd[2].revents;
	return true;
}

static int serve_peer(struct server *v)
{
	static char data[PAYLOAD_MAX];
	const char *wrong = "it asks for something else";
	bool ended = false;
	struct frame head;
	struct end end;
	int pidfd;

	if (frame_get(v->net, &head, data) && head.kind == FRAME_SPAWN)
		wrong = spawn(v, data);
	if (wrong)
		return refuse(v->net, wrong);
	pidfd = (int)syscall(SYS_pidfd_open, v->pid, 0);
	while (!ended)
		if (!serve_once(v, pidfd, &ended, data))
			return 1;
	waitpid(v->pid, &end.status, 0);
	end.failed = harness_failed();
	snprintf(end.skipped, sizeof(end.skipped), "%s", harness_skipped());
	return !frame_put(v->net, FRAME_END, &end, sizeof(end));
}

static int serve_objects(int net)
{
	uint32_t n;
	char c;

	while (read_all(net, &c, 1)) {
		n = harness_objects();
		if (!write_all(net, &n, sizeof(n)))
			break;
	}
	return 0;
}

int remote_serve(const char *what)
{
	struct server v = { .net = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	for (int i = 0; i < 3; i++)
		dup2(null, i);
	close(null);
	harness_begin();
	return strcmp(what, "peer") ? serve_objects(v.net) : serve_peer(&v);
}

/* ---- leftovers of a test ---- */

static int objects_of[NODES_MAX];	/* descriptor of the connection + 1; 0: none */

unsigned int remote_objects(void)
{
	unsigned int all = 0, node;
	const char *address;
	uint32_t n;

	for (unsigned int i = 0; (address = machine(i, &node)); i++) {
		if (i >= NODES_MAX)
			break;
		if (!objects_of[i])
			objects_of[i] = machine_call(address,
						     "serve-objects") + 1;
		if (!write_all(objects_of[i] - 1, "", 1) ||
		    !read_all(objects_of[i] - 1, &n, sizeof(n))) {
			test_note("node %u at %s does not answer", node,
				  address);
			harness_fail();
			n = 0;
		}
		all += n;
	}
	return all;
}

void remote_forget(void)
{
	for (unsigned int i = 0; i < NODES_MAX; i++) {
		if (objects_of[i])
			close(objects_of[i] - 1);
		objects_of[i] = 0;
	}
}
