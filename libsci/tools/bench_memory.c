// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * `sci bench --memory` measures the memory that a peer needs. The server opens the wanted
 * number of endpoints. The client's endpoint connects to all of them, then sends a short
 * message to each, then a long one.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define LONG_BYTES	((size_t)1 << 20)	/* longer than SCI_PARAM_EAGER_MAX */
#define CONNECT_MS	20000

/* ---- the server ---- */

struct crowd {
	uint64_t n;
	struct sci_ep **ep;
	struct sci_peer **peer;
};

static int crowd_open(struct crowd *c, uint64_t n)
{
	int ret = 0;

	if (n > BENCH_PEERS_MAX)
		return -EINVAL;
	c->ep = calloc(n + 1, sizeof(struct sci_ep *));
	c->peer = calloc(n + 1, sizeof(struct sci_peer *));
	if (!c->ep || !c->peer)
		return -ENOMEM;
	while (!ret && c->n < n) {
		ret = sci_ep_open(&c->ep[c->n], 0, 0);
		c->n += !ret;
	}
	return ret;
}

static void crowd_close(struct crowd *c)
{
	while (c->n)
		sci_ep_close(c->ep[--c->n]);
	free(c->ep);
	free(c->peer);
}

static int serve_where(struct bench_link *l, struct crowd *c, uint64_t i)
{
	struct sci_addr addr = { 0, 0 };
	int ret = i < c->n ? sci_ep_addr(c->ep[i], &addr) : -EINVAL;

	return bench_answer(l, ret, addr.id, 0);
}

/* Receive a message of the client on endpoint @o->count, and send it back. */
static int serve_echo(struct bench_link *l, struct crowd *c,
		      const struct bench_order *o)
{
	uint64_t i = o->count;
	int ret = 0;

	if (i >= c->n || !l->in || o->size > l->room)
		return bench_answer(l, -EINVAL, 0, 0);
	if (!c->peer[i])
		ret = sci_accept(c->ep[i], CONNECT_MS, &c->peer[i]);
	ret = bench_answer(l, ret, 0, 0);
	ret = ret ? ret : sci_recv(c->ep[i], c->peer[i], l->in, o->size, NULL);
	return ret ? ret : sci_send(c->peer[i], l->in, o->size);
}

/* Wait for an order, and poll all endpoints: an endpoint accepts connections only in calls. */
static int crowd_await(struct bench_link *l, struct crowd *c,
		       struct bench_order *o)
{
	struct sci_req *req = bench_listen(l, o);
	uint64_t i;
	int ret;

	if (!req)
		return -ENOTCONN;
	while ((ret = sci_test(req, NULL)) == -EAGAIN) {
		for (i = 0; i < c->n; i++)
			sci_progress(c->ep[i]);
		sched_yield();
	}
	return ret;
}

int bench_serve_memory(struct bench_link *l, uint64_t n)
{
	struct crowd c = { .n = 0 };
	struct bench_order o;
	int ret = crowd_open(&c, n);

	if (ret) {
		crowd_close(&c);
		return bench_answer(l, ret, 0, 0);
	}
	ret = bench_answer(l, 0, 0, 0);
	while (!ret) {
		ret = crowd_await(l, &c, &o);
		if (ret || o.op == BENCH_CLOSE)
			break;
		if (o.op == BENCH_BYE)
			ret = -ESHUTDOWN;
		else if (o.op == BENCH_WHERE)
			ret = serve_where(l, &c, o.count);
		else if (o.op == BENCH_ECHO)
			ret = serve_echo(l, &c, &o);
		else
			ret = bench_answer(l, -EOPNOTSUPP, 0, 0);
	}
	crowd_close(&c);
	return ret ? ret : bench_answer(l, 0, 0, 0);
}

/* ---- the client ---- */

struct usage {
	uint64_t bytes;
	uint64_t resident;
	unsigned int descriptors;
};

static unsigned int descriptors_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

static struct usage memory_usage(const struct bench_link *l)
{
	struct sci_ep_stats s = { .size = sizeof(s) };
	struct usage u = { .descriptors = descriptors_count() };
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%*u %lu", &pages) == 1)
		u.resident = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	if (f)
		fclose(f);
	sci_ep_stats(l->ep, &s);
	u.bytes = s.peer_bytes;
	return u;
}

static void memory_note(const struct bench_link *l, struct bench_memory *m,
			const struct usage *before, int stage)
{
	struct usage u = memory_usage(l);

	m->bytes[stage] = (double)(u.bytes - before->bytes) / m->peers;
	m->resident[stage] = ((double)u.resident - (double)before->resident) /
			     m->peers;
	m->descriptors[stage] = ((double)u.descriptors - before->descriptors) / m->peers;
}

static int crowd_connect(struct bench_link *l, unsigned int n,
			 struct sci_peer **peer)
{
	struct bench_order o = { .op = BENCH_WHERE };
	struct bench_answer a;
	unsigned int i;
	int ret = 0;

	for (i = 0; i < n && !ret; i++) {
		struct sci_addr addr = { .node = l->addr.node };

		o.count = i;
		ret = bench_ask(l, o, &a);
		addr.id = (uint32_t)a.value[0];
		ret = ret ? ret : sci_connect(l->ep, &addr, CONNECT_MS,
					      &peer[i]);
	}
	return ret;
}

static int memory_send_all(struct bench_link *l, unsigned int n, size_t size,
			   struct sci_peer **peer)
{
	struct bench_order o = { .op = BENCH_ECHO, .size = size };
	unsigned int i;
	int ret = 0;

	for (i = 0; i < n && !ret; i++) {
		o.count = i;
		ret = bench_ask(l, o, NULL);
		ret = ret ? ret : sci_send(peer[i], l->out, size);
		ret = ret ? ret : sci_recv(l->ep, peer[i], l->in, size, NULL);
	}
	return ret;
}

static int crowd_error(int err, const char *what)
{
	if (err == -ENOMEM || err == -EMFILE || err == -ENOSPC ||
	    err == -ECONNREFUSED)
		return tool_error("%s: %s (fewer --peers, or more memory or descriptors)",
				  what, strerror(-err));
	return bench_error(err, what);
}

static int memory_stages(struct bench_link *l, struct bench_memory *m,
			 struct sci_peer **peer)
{
	struct usage before = memory_usage(l);
	uint64_t begin = tool_now_ns();
	int ret = crowd_connect(l, m->peers, peer);

	if (ret)
		return crowd_error(ret, "connecting to many peers");
	m->connect_us = (double)(tool_now_ns() - begin) / 1e3 / m->peers;
	memory_note(l, m, &before, 0);
	ret = memory_send_all(l, m->peers, 8, peer);
	memory_note(l, m, &before, 1);
	ret = ret ? ret : memory_send_all(l, m->peers, LONG_BYTES, peer);
	memory_note(l, m, &before, 2);
	return ret ? crowd_error(ret, "talking to many peers") : TOOL_OK;
}

int bench_memory(struct bench_link *l, struct bench_memory *m)
{
	struct bench_order opening = { .op = BENCH_OPEN, .count = m->peers };
	struct bench_order closing = { .op = BENCH_CLOSE };
	struct sci_peer **peer;
	int ret = bench_room(l, LONG_BYTES);

	if (ret)
		return ret;
	ret = bench_ask(l, opening, NULL);
	if (ret)
		return crowd_error(ret, "the server opening endpoints");
	peer = calloc(m->peers, sizeof(struct sci_peer *));
	if (!peer)
		return tool_error("out of memory");
	ret = memory_stages(l, m, peer);
	free(peer);
	if (!ret && bench_ask(l, closing, NULL))
		return tool_error("the server has not closed its endpoints");
	return ret;
}
