// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: doorbells of virtual machines
 *
 * `sci pool serve` is the server of QEMU's device ivshmem-doorbell, by version 0 of the protocol in
 * QEMU's docs/specs/ivshmem-spec.  Each virtual machine is a client of a stream socket of
 * AF_UNIX.  A client has a number and an eventfd, its doorbell: a write to the eventfd interrupts
 * the machine.
 *
 * The server sends messages of 8 bytes, a signed number in little-endian, most of them with a
 * descriptor:
 *
 *	0			version of the protocol
 *	N			number of the client
 *	-1, descriptor		the memory
 *	M, descriptor		doorbell of client M: all other clients, later ones too, and itself
 *	M			client M has gone
 *
 * A client sends nothing.  The server does not wait for a client: a client that sends bytes, or
 * whose socket is full, is disconnected.
 */

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "kmod/pool/pool.h"
#include "pool_file.h"

#define CLIENTS_MAX	POOL_SLOTS_MAX
#define IVSHMEM_VERSION	0
#define IVSHMEM_MEMORY	(-1)
#define RETRY_MS	100

struct client {
	int fd;				/* -1: no client has this number */
	int bell;			/* eventfd */
	uint64_t told;			/* clients that know of this client, a bit each */
};

static_assert(CLIENTS_MAX <= 64, "client.told has a bit for each client");

struct server {
	const char *path;		/* of the socket */
	struct pool_file file;
	int socket;
	int signals;			/* signalfd */
	struct client clients[CLIENTS_MAX];
};

/* ---- messages ---- */

/* Send a number, and a descriptor unless @fd is -1. Return false if the client must go. */
static bool message_send(const struct client *c, int64_t number, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	uint64_t word = htole64((uint64_t)number);
	struct iovec iov = { .iov_base = &word, .iov_len = sizeof(word) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg;

	if (fd >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		cmsg = CMSG_FIRSTHDR(&m);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	}
	return sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(word);
}

/* ---- clients ---- */

static uint64_t client_bit(unsigned int n)
{
	return (uint64_t)1 << n;
}

/* Disconnect client @n, and all clients that cannot be told of it. */
static void client_end(struct server *s, unsigned int n)
{
	struct client *c = &s->clients[n];

	close(c->fd);
	close(c->bell);
	c->fd = -1;
	printf("client %u has gone\n", n);
	for (unsigned int i = 0; i < CLIENTS_MAX; i++) {
		s->clients[i].told &= ~client_bit(n);
		if (c->told & client_bit(i) && !message_send(&s->clients[i], n, -1))
			client_end(s, i);
	}
}

/* Tell client @to of the doorbell of client @n. Return whether both are still connected. */
static bool client_tell(struct server *s, unsigned int to, unsigned int n)
{
	struct client *c = &s->clients[n];

	if (message_send(&s->clients[to], n, c->bell))
		c->told |= client_bit(to);
	else
		client_end(s, to);
	return c->fd >= 0 && s->clients[to].fd >= 0;
}

static void client_introduce(struct server *s, unsigned int n)
{
	struct client *c = &s->clients[n];

	if (!message_send(c, IVSHMEM_VERSION, -1) || !message_send(c, n, -1) ||
	    !message_send(c, IVSHMEM_MEMORY, s->file.fd)) {
		client_end(s, n);
		return;
	}
	for (unsigned int i = 0; i < CLIENTS_MAX; i++)
		if (i != n && s->clients[i].fd >= 0 && !client_tell(s, n, i))
			break;
	for (unsigned int i = 0; i < CLIENTS_MAX && c->fd >= 0; i++)
		if (i != n && s->clients[i].fd >= 0)
			client_tell(s, i, n);
	if (c->fd >= 0)
		client_tell(s, n, n);
}

static void client_accept(struct server *s)
{
	int fd = accept4(s->socket, NULL, NULL, SOCK_CLOEXEC), bell;
	unsigned int n;

	if (fd < 0) {
		/* without descriptors or memory the client stays ready: do not ask at once */
		poll(NULL, 0, RETRY_MS);
		return;
	}
	for (n = 0; n < CLIENTS_MAX && s->clients[n].fd >= 0; n++)
		;
	bell = n < CLIENTS_MAX ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
	if (bell < 0) {
		tool_error("a client is refused: %s",
			   n < CLIENTS_MAX ? strerror(errno) : "the pool has no more nodes");
		close(fd);
		return;
	}
	s->clients[n] = (struct client){ .fd = fd, .bell = bell };
	printf("client %u has come\n", n);
	client_introduce(s, n);
}

/* ---- the server ---- */

/* Return whether a server answers at the address. */
static bool socket_is_served(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool served = fd >= 0 && (!connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) ||
				  errno == EAGAIN);

	if (fd >= 0)
		close(fd);
	return served;
}

/* Remove the socket of a server that was killed, and nothing else. */
static bool socket_remove_old(const struct sockaddr_un *addr)
{
	struct stat st;

	return !lstat(addr->sun_path, &st) && S_ISSOCK(st.st_mode) &&
	       !socket_is_served(addr) && !unlink(addr->sun_path);
}

static int server_bind(struct server *s)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const struct sockaddr *any = (const struct sockaddr *)&addr;
	mode_t mask = umask(0177);	/* only the owner connects, unless they change the mode */
	int ret;

	if (strlen(s->path) >= sizeof(addr.sun_path))
		return tool_error("%s: the path of a socket has at most %zu bytes", s->path,
				  sizeof(addr.sun_path) - 1);
	memcpy(addr.sun_path, s->path, strlen(s->path));
	s->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ret = s->socket < 0 ? -1 : bind(s->socket, any, sizeof(addr));
	if (ret && errno == EADDRINUSE && socket_remove_old(&addr))
		ret = bind(s->socket, any, sizeof(addr));
	umask(mask);
	if (ret || listen(s->socket, CLIENTS_MAX))
		return tool_error("cannot listen on %s: %s", s->path, strerror(errno));
	return TOOL_OK;
}

static int server_open(struct server *s, const char *file)
{
	struct pool p = { 0 };
	sigset_t set;
	int ret;

	ret = pool_file_open(&s->file, file, true, 0);
	if (ret)
		return ret;
	ret = pool_open(&p, s->file.mem, s->file.size);
	if (ret)
		return pool_open_error(&s->file, ret);
	if (s->file.size & (s->file.size - 1))
		return tool_error("%s: %" PRIu64 " bytes: the memory of a PCI device is a power of two",
				  file, s->file.size);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (s->signals < 0)
		return tool_error("signalfd: %s", strerror(errno));
	return server_bind(s);
}

static void doorbells_serve(struct server *s)
{
	struct pollfd fds[CLIENTS_MAX + 2];

	fds[CLIENTS_MAX] = (struct pollfd){ .fd = s->socket, .events = POLLIN };
	fds[CLIENTS_MAX + 1] = (struct pollfd){ .fd = s->signals, .events = POLLIN };
	for (;;) {
		fflush(stdout);
		for (unsigned int i = 0; i < CLIENTS_MAX; i++)
			fds[i] = (struct pollfd){ .fd = s->clients[i].fd, .events = POLLIN };
		if (poll(fds, CLIENTS_MAX + 2, -1) < 0)
			continue;
		if (fds[CLIENTS_MAX + 1].revents)
			return;
		for (unsigned int i = 0; i < CLIENTS_MAX; i++)
			if (fds[i].revents && s->clients[i].fd == fds[i].fd)
				client_end(s, i);
		if (fds[CLIENTS_MAX].revents)
			client_accept(s);
	}
}

int pool_run_serve(const struct tool_command *self, int argc, char **argv)
{
	struct server s = { .file.fd = -1, .socket = -1, .signals = -1 };
	const struct tool_option options[] = {
		{ .letter = 'S', .name = "socket", .kind = TOOL_STRING, .value = &s.path,
		  .arg = "PATH", .help = "where QEMU connects" },
		{ 0 },
	};
	int first = tool_parse(self, argc, argv, options, true), ret;

	if (argc - first != 1 || !s.path)
		tool_usage(self, "want --socket and one file");
	for (unsigned int i = 0; i < CLIENTS_MAX; i++)
		s.clients[i].fd = -1;
	ret = server_open(&s, argv[first]);
	if (!ret) {
		printf("%s is served on %s\n", argv[first], s.path);
		doorbells_serve(&s);
		unlink(s.path);
		ret = tool_finish();
	}
	pool_file_close(&s.file);
	return ret;
}
