// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The two processes of `sci bench` and `sci tune`: their connection and the orders. */
#define _GNU_SOURCE

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define MAGIC		0x53434239u	/* identifies this version of the orders */
#define CONTEXT		0x5c1be9u
#define TAG_ORDER	1u
#define TAG_ANSWER	2u
#define CLIENT_NODE	4u
#define SERVER_NODE	8u
#define CONNECT_MS	10000
#define GOODBYE_NS	2000000000u
#define HELLO_MS	30000		/* ms: the server may have other clients */

int bench_error(int err, const char *what)
{
	if (err == -ECONNRESET)
		return tool_error("%s: the other process has died", what);
	if (err == -ENOTCONN)
		return tool_error("%s: the other process has hung up", what);
	return tool_error("%s: %s", what, strerror(-err));
}

/* ---- orders ---- */

int bench_await_answer(struct bench_link *l, int timeout,
		       struct bench_answer *a)
{
	struct sci_req *req;
	int ret;

	ret = sci_itrecv(l->ep, l->peer, CONTEXT, TAG_ANSWER, 0, a, sizeof(*a),
			 &req);
	if (ret)
		return ret;
	ret = sci_wait(req, timeout, NULL);
	if (ret == -ETIMEDOUT) {
		sci_cancel(req);
		sci_wait(req, -1, NULL);
	}
	if (!ret && a->magic != MAGIC)
		ret = -EPROTO;
	return ret ? ret : a->error;
}

int bench_ask(struct bench_link *l, struct bench_order o,
	      struct bench_answer *a)
{
	struct bench_answer none;
	int ret;

	o.magic = MAGIC;
	o.flags = (l->tagged ? BENCH_TAGGED : 0) | (l->zcopy ? BENCH_ZCOPY : 0);
	ret = sci_tsend(l->peer, CONTEXT, TAG_ORDER, &o, sizeof(o));
	if (ret)
		return ret;
	return bench_await_answer(l, o.op == BENCH_HELLO ? HELLO_MS : -1,
				  a ? a : &none);
}

int bench_answer(struct bench_link *l, int error, uint64_t a, uint64_t b)
{
	struct bench_answer ans = { MAGIC, error, { a, b } };

	return sci_tsend(l->peer, CONTEXT, TAG_ANSWER, &ans, sizeof(ans));
}

struct sci_req *bench_listen(struct bench_link *l, struct bench_order *o)
{
	struct sci_req *req = NULL;

	if (sci_itrecv(l->ep, l->peer, CONTEXT, TAG_ORDER, 0, o, sizeof(*o),
		       &req))
		return NULL;
	return req;
}

static int bench_await_order(struct bench_link *l, struct bench_order *o)
{
	struct sci_status st;
	int ret;

	ret = sci_trecv(l->ep, l->peer, CONTEXT, TAG_ORDER, 0, o, sizeof(*o),
			&st);
	if (ret)
		return ret;
	if (st.len != sizeof(*o) || o->magic != MAGIC)
		return -EPROTO;
	l->tagged = o->flags & BENCH_TAGGED;
	l->zcopy = o->flags & BENCH_ZCOPY;
	return 0;
}

int bench_set(struct bench_link *l, enum sci_param param, uint64_t value)
{
	struct bench_order o = { .op = BENCH_SET, .param = (uint16_t)param,
				 .count = value };
	int ret = sci_peer_set(l->peer, param, value);

	ret = ret ? ret : bench_ask(l, o, NULL);
	return ret ? bench_error(ret, "setting a parameter") : TOOL_OK;
}

int bench_count(struct bench_link *l, struct sci_ep_stats *stats)
{
	struct bench_order o = { .op = BENCH_STATS };
	struct bench_answer a;
	int ret = bench_ask(l, o, &a);

	memset(stats, 0, sizeof(*stats));
	stats->size = sizeof(*stats);
	ret = ret ? ret : sci_ep_stats(l->ep, stats);
	if (ret)
		return bench_error(ret, "looking at counters");
	stats->sent_zcopy += a.value[0];
	stats->sent_single_copy += a.value[1];
	return TOOL_OK;
}

/* ---- buffers ---- */

static void bench_free_room(struct bench_link *l)
{
	if (l->exported) {
		sci_buf_free(l->ep, l->out);
		sci_buf_free(l->ep, l->in);
	} else {
		free(l->out);
		free(l->in);
	}
	l->out = NULL;
	l->in = NULL;
	l->room = 0;
	l->exported = false;
}

static char *room_alloc(size_t size)
{
	char *p = aligned_alloc(4096, (size + 4096) / 4096 * 4096);

	return p ? memset(p, 0x5c, size) : NULL;
}

static int bench_set_room(struct bench_link *l, size_t size)
{
	void *out = NULL, *in = NULL;

	if (size > BENCH_SIZE_MAX)
		return -EINVAL;
	if (l->out && l->room >= size && l->exported == l->zcopy)
		return 0;
	bench_free_room(l);
	l->exported = l->zcopy;
	if (l->exported) {
		int ret = sci_buf_alloc(l->ep, size + 1, &out);

		ret = ret ? ret : sci_buf_alloc(l->ep, size + 1, &in);
		if (ret && out)
			sci_buf_free(l->ep, out);
		l->exported = !ret;
		if (ret)
			return ret;
		memset(out, 0x5c, size);
	} else {
		out = room_alloc(size);
		in = room_alloc(size);
	}
	l->out = out;
	l->in = in;
	l->room = size;
	return out && in ? 0 : -ENOMEM;
}

int bench_room(struct bench_link *l, size_t size)
{
	struct bench_order o = { .op = BENCH_ROOM, .size = size };
	int ret = bench_set_room(l, size);

	ret = ret ? ret : bench_ask(l, o, NULL);
	return ret ? bench_error(ret, "making buffers") : TOOL_OK;
}

/* ---- the server ---- */

static int serve_set(struct bench_link *l, const struct bench_order *o)
{
	return bench_answer(l, sci_peer_set(l->peer, o->param, o->count), 0, 0);
}

static int serve_stats(struct bench_link *l)
{
	struct sci_ep_stats s = { .size = sizeof(s) };
	int ret = sci_ep_stats(l->ep, &s);

	return bench_answer(l, ret, s.sent_zcopy, s.sent_single_copy);
}

static int order_handle(struct bench_link *l, const struct bench_order *o)
{
	switch (o->op) {
	case BENCH_HELLO:
		return bench_answer(l, 0, 0, 0);
	case BENCH_BYE:
		return -ESHUTDOWN;
	case BENCH_ROOM:
		return bench_answer(l, bench_set_room(l, o->size), 0, 0);
	case BENCH_SET:
		return serve_set(l, o);
	case BENCH_STATS:
		return serve_stats(l);
	case BENCH_RUN:
		return bench_serve_run(l, o);
	case BENCH_OPEN:
		return bench_serve_memory(l, o->count);
	default:
		return bench_answer(l, -EOPNOTSUPP, 0, 0);
	}
}

/* Serve one client until its end. Return: -ESHUTDOWN for BENCH_BYE, or another error. */
static int serve_client(struct bench_link *l)
{
	uint64_t defaults[SCI_PARAMS];
	struct bench_order o;
	int i, ret = 0;

	for (i = 0; i < SCI_PARAMS; i++)
		sci_peer_get(l->peer, i, &defaults[i]);
	while (!ret) {
		ret = bench_await_order(l, &o);
		ret = ret ? ret : order_handle(l, &o);
	}
	for (i = 0; i < SCI_PARAMS; i++)
		sci_peer_set(l->peer, i, defaults[i]);
	sci_disconnect(l->peer);
	l->peer = NULL;
	bench_free_room(l);
	return ret;
}

static unsigned int ep_flags(const struct bench_link *l)
{
	return (l->single_thread ? SCI_EP_SINGLE_THREAD : 0u) |
	       (l->crc ? SCI_EP_CRC : 0u);
}

static int ep_open_error(int err, uint32_t id)
{
	if (err == -EEXIST)
		return tool_error("endpoint %u of this node is taken: is there another `sci bench --serve`? (--id)",
				  id);
	return tool_fabric_error(err);
}

static int ep_open(struct bench_link *l, uint32_t id)
{
	int ret = sci_ep_open(&l->ep, id, ep_flags(l));

	return ret ? ep_open_error(ret, id) : TOOL_OK;
}

int bench_serve(struct bench_link *l, bool verbose)
{
	struct sci_addr from;
	int ret;

	if (ep_open(l, l->id))
		return TOOL_FAILED;
	for (;;) {
		ret = sci_accept(l->ep, -1, &l->peer);
		if (ret)
			return bench_error(ret, "waiting for a client");
		sci_peer_addr(l->peer, &from);
		if (verbose)
			fprintf(stderr, "node %u, endpoint %u\n", from.node,
				from.id);
		ret = serve_client(l);
		if (verbose && ret != -ENOTCONN && ret != -ESHUTDOWN)
			fprintf(stderr, "node %u, endpoint %u: %s\n",
				from.node, from.id, strerror(-ret));
	}
}

/* ---- a forked server ---- */

/* Pin this process to CPU number @n of @all, if @all has two CPUs. Return: the CPU, or -1. */
static int link_pin(const cpu_set_t *all, int n)
{
	cpu_set_t set;
	int cpu;

	if (CPU_COUNT(all) < 2)
		return -1;
	for (cpu = 0; !CPU_ISSET(cpu, all) || n--; cpu++)
		;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -1 : cpu;
}

static void simulated_node_set(unsigned int node)
{
	char value[16];

	snprintf(value, sizeof(value), "%u", node);
	setenv("SCI_NODE", value, 1);
}

static noreturn void server_run(struct bench_link *l, int fd, pid_t parent)
{
	int ret = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(TOOL_FAILED);
	simulated_node_set(SERVER_NODE);
	if (ep_open(l, 0) || sci_ep_addr(l->ep, &l->addr) ||
	    write(fd, &l->addr, sizeof(l->addr)) != sizeof(l->addr))
		_exit(TOOL_FAILED);
	while (ret != -ESHUTDOWN) {
		if (sci_accept(l->ep, -1, &l->peer))
			_exit(TOOL_FAILED);
		ret = serve_client(l);
	}
	_exit(sci_ep_close(l->ep) ? TOOL_FAILED : TOOL_OK);
}

/* Report that the server has ended. A server that no signal has ended has printed the reason. */
static int link_no_server(struct bench_link *l)
{
	int status = 0;

	waitpid(l->child, &status, 0);
	l->child = 0;
	if (WIFSIGNALED(status))
		tool_error("the server has not started: signal %d",
			   WTERMSIG(status));
	return TOOL_FAILED;
}

/* Fork the server. Context: before the first call of the library. */
static int server_fork(struct bench_link *l)
{
	pid_t parent = getpid();
	cpu_set_t all;
	char name[32];
	int fd[2], cpu;
	ssize_t n;

	snprintf(name, sizeof(name), "shm:sci-bench-%d", (int)parent);
	setenv("SCI_FABRIC", name, 0);
	if (sched_getaffinity(0, sizeof(all), &all))
		CPU_ZERO(&all);
	cpu = link_pin(&all, 1);		/* CPU of the child */
	fflush(NULL);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		return tool_error("cannot make a socket: %s", strerror(errno));
	l->child = fork();
	if (l->child < 0) {
		l->child = 0;
		close(fd[0]);
		close(fd[1]);
		return tool_error("cannot fork: %s", strerror(errno));
	}
	if (!l->child)
		server_run(l, fd[1], parent);
	l->cpu[1] = cpu;
	l->cpu[0] = link_pin(&all, 0);
	close(fd[1]);
	n = read(fd[0], &l->addr, sizeof(l->addr));
	close(fd[0]);
	simulated_node_set(CLIENT_NODE);
	return n == sizeof(l->addr) ? TOOL_OK : link_no_server(l);
}

/* ---- the client ---- */

static int target_parse(struct bench_link *l)
{
	const char *colon = strchr(l->to, ':');
	char node[256];
	size_t len = colon ? (size_t)(colon - l->to) : strlen(l->to);
	uint64_t id = l->id;
	sci_desc_t sd;

	if (len >= sizeof(node) ||
	    (colon && !tool_parse_number(colon + 1, 1, SCI_EP_ID_MAX, &id)))
		return tool_error("--peer wants NODE or NODE:ID, not '%s'",
				  l->to);
	memcpy(node, l->to, len);
	node[len] = '\0';
	l->addr.id = (uint32_t)id;
	if (tool_parse_node(node, &l->addr.node))
		return TOOL_OK;
	if (tool_join(&sd))
		return TOOL_FAILED;
	return tool_resolve_node(node, &l->addr.node);
}

static int link_connect_error(const struct bench_link *l, int err)
{
	if (err == -ETIMEDOUT || err == -ECONNREFUSED || err == -EHOSTUNREACH)
		return tool_error("no endpoint %u answers on node %u (%s): does `sci bench --serve` run there?",
				  l->addr.id, l->addr.node, strerror(-err));
	return tool_error("cannot connect to endpoint %u of node %u: %s",
			  l->addr.id, l->addr.node, strerror(-err));
}

static int hello_error(const struct bench_link *l, int err)
{
	if (err == -ETIMEDOUT)
		return tool_error("endpoint %u of node %u does not answer: it serves somebody else, or is no `sci bench --serve`",
				  l->addr.id, l->addr.node);
	return bench_error(err, "meeting the server");
}

static int link_connect(struct bench_link *l)
{
	struct bench_order o = { .op = BENCH_HELLO };
	int ret = sci_connect(l->ep, &l->addr, CONNECT_MS, &l->peer);

	if (ret)
		return link_connect_error(l, ret);
	ret = bench_ask(l, o, NULL);
	return ret ? hello_error(l, ret) : TOOL_OK;
}

int bench_link_open(struct bench_link *l)
{
	l->cpu[0] = -1;
	l->cpu[1] = -1;
	if (l->to ? target_parse(l) : server_fork(l))
		return TOOL_FAILED;
	if (ep_open(l, 0))
		return TOOL_FAILED;
	return link_connect(l);
}

int bench_link_again(struct bench_link *l)
{
	int ret = sci_disconnect(l->peer);

	l->peer = NULL;
	if (ret)
		return bench_error(ret, "disconnecting");
	return link_connect(l);
}

/* End the child. @asked: the child has been asked to end, so wait before a kill. */
static void child_end(struct bench_link *l, bool asked)
{
	uint64_t end = tool_now_ns() + (asked ? GOODBYE_NS : 0);

	while (waitpid(l->child, NULL, WNOHANG) == 0) {
		if (tool_now_ns() >= end)
			kill(l->child, SIGKILL);
		usleep(500);
	}
	l->child = 0;
}

void bench_link_close(struct bench_link *l)
{
	struct bench_order o = { .magic = MAGIC, .op = BENCH_BYE };
	bool asked = false;

	bench_free_room(l);
	if (l->child && l->peer)
		asked = !sci_tsend(l->peer, CONTEXT, TAG_ORDER, &o, sizeof(o));
	if (l->ep)
		sci_ep_close(l->ep);
	l->ep = NULL;
	l->peer = NULL;
	if (l->child)
		child_end(l, asked);
}
