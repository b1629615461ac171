// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * `sci ping` tests whether a node answers. If `sci ping --serve` runs on the node, `sci ping` also
 * measures round trips of a store to the node and the answering store.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

#define PING_ID		0x5c1b1b6u	/* default id of the segment (--id) */
#define SIZE_LIMIT	(1u << 20)
#define COUNT_LIMIT	10000000u
#define ANSWER_MS	1000u		/* ms after which an unanswered ping is lost */
#define CONNECT_MS	5000u		/* ms; the server may have other clients */
#define WARM_UP		100u
/* slower pings mean that server and client share a CPU */
#define SHARED_NS	10000u

struct ping {
	struct session s;
	unsigned int node;
	uint64_t id;
	uint64_t count, size;
	unsigned int timeout;
	bool as_json, serve, verbose;

	bool answered;			/* the server has answered */
	char *payload;
	double *us;
	uint64_t received;
};

/* ---- the server ---- */

/* Answer each ping until the client disconnects. */
static void pings_answer(struct ping *p, size_t size)
{
	uint64_t done = 0, seen;
	int ret = 0;

	while (!ret) {
		seen = session_seen(&p->s);
		if (seen == done)
			ret = session_wait(&p->s, done, SCI_INFINITE_TIMEOUT);
		if (session_seen_status(&p->s) != SESSION_NEW)
			return;
		if (ret || seen == done)
			continue;
		done = seen;
		if (size)
			ret = session_write(&p->s, SESSION_CTL_SIZE,
					    session_data(&p->s), size);
		if (!ret)
			ret = session_progress(&p->s, done);
	}
}

static int ping_serve(struct ping *p)
{
	uint64_t size;
	size_t len;

	if (session_listen(&p->s, (uint32_t)p->id,
			   SESSION_CTL_SIZE + SIZE_LIMIT))
		return TOOL_FAILED;
	for (;;) {
		len = sizeof(size);
		if (session_accept(&p->s, SESSION_PING, &size, &len,
				   SCI_INFINITE_TIMEOUT))
			return TOOL_FAILED;
		if (p->verbose)
			fprintf(stderr, "node %u\n", p->s.node);
		if (len == sizeof(size) && size <= SIZE_LIMIT &&
		    p->s.their_size >= SESSION_CTL_SIZE + size)
			pings_answer(p, size);
		session_hangup(&p->s);
	}
}

/* ---- the client ---- */

/* Make one round trip. Return -ETIMEDOUT if the ping was lost. */
static int ping_once(struct ping *p, uint64_t n)
{
	uint64_t end = tool_now_ns() + p->timeout * 1000000ull;
	uint64_t seen;
	int ret = 0;

	if (p->size)
		ret = session_write(&p->s, SESSION_CTL_SIZE, p->payload,
				    p->size);
	if (!ret)
		ret = session_progress(&p->s, n);
	while (!ret && (seen = session_seen(&p->s)) != n) {
		if (tool_now_ns() > end)
			return -ETIMEDOUT;
		ret = session_wait(&p->s, seen, p->timeout);
	}
	return ret;
}

/* Leave this CPU to the server, if there is another CPU. */
static void cpu_leave_to_server(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	if (cpu < 0 || sched_getaffinity(0, sizeof(set), &set) ||
	    CPU_COUNT(&set) < 2)
		return;
	CPU_CLR(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static int ping_measure(struct ping *p)
{
	uint64_t n, begin, ns;
	int ret;

	for (n = 1; n <= WARM_UP + p->count; n++) {
		begin = tool_now_ns();
		ret = ping_once(p, n);
		ns = tool_now_ns() - begin;
		if (ret && ret != -ETIMEDOUT)
			return tool_error("node %u %s", p->node,
					  session_strerror(ret));
		if (n == WARM_UP / 2 && ns > SHARED_NS)
			cpu_leave_to_server();
		if (!ret && n > WARM_UP)
			p->us[p->received++] = (double)ns / 1e3;
	}
	return TOOL_OK;
}

static int ping_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Return the value below which a part @q of the sorted times lies. */
static double ping_quantile(const struct ping *p, double q)
{
	return p->us[(uint64_t)(q * (double)(p->received - 1) + 0.5)];
}

static void ping_print_json(const struct ping *p)
{
	struct tool_json j = { .out = stdout, .first = true };

	json_open(&j, NULL, '{');
	json_number(&j, "node", p->node);
	json_bool(&j, "alive", true);
	json_bool(&j, "server", p->answered);
	if (p->answered) {
		json_number(&j, "size", p->size);
		json_number(&j, "sent", p->count);
		json_number(&j, "received", p->received);
		json_number(&j, "sent_again", p->s.resent);
	}
	if (p->received) {
		json_real(&j, "min_us", p->us[0]);
		json_real(&j, "median_us", ping_quantile(p, 0.5));
		json_real(&j, "p99_us", ping_quantile(p, 0.99));
		json_real(&j, "max_us", p->us[p->received - 1]);
	}
	json_close(&j, '}');
}

static void ping_print_text(const struct ping *p)
{
	if (!p->answered) {
		printf("node %u answers (no `sci ping --serve` there to measure with)\n",
		       p->node);
		return;
	}
	printf("node %u: %" PRIu64 " pings of %" PRIu64 " bytes, %" PRIu64
	       " lost (%.1f %%), %" PRIu64 " sent again\n", p->node, p->count,
	       p->size, p->count - p->received,
	       100.0 * (double)(p->count - p->received) / (double)p->count,
	       p->s.resent);
	if (p->received)
		printf("round trip: min %.2f, median %.2f, p99 %.2f, max %.2f us\n",
		       p->us[0], ping_quantile(p, 0.5), ping_quantile(p, 0.99),
		       p->us[p->received - 1]);
}

/* Return whether a server runs on the node. Without a server, only the probe of the node counts. */
static bool server_is_running(struct ping *p)
{
	sci_remote_segment_t r;
	sci_error_t err;

	SCIConnectSegment(p->s.sd, &r, p->node, (unsigned int)p->id, 0, NULL,
			  NULL, 0, 0, &err);
	if (err != SCI_ERR_OK)
		return err != SCI_ERR_NO_SUCH_SEGMENT;
	SCIDisconnectSegment(r, 0, NULL);
	return true;
}

static int ping_measure_server(struct ping *p)
{
	unsigned int timeout = p->timeout;

	p->payload = malloc(p->size + 1);
	p->us = calloc(p->count, sizeof(*p->us));
	if (!p->payload || !p->us)
		return tool_error("out of memory");
	memset(p->payload, 0x5c, p->size);
	if (timeout < CONNECT_MS)
		timeout = CONNECT_MS;
	if (session_connect(&p->s, p->node, (uint32_t)p->id, SESSION_PING,
			    &p->size, sizeof(p->size), p->size, timeout))
		return TOOL_FAILED;
	if (p->s.their_size < SESSION_CTL_SIZE + p->size)
		return tool_error("segment 0x%" PRIx64 " of node %u is no `sci ping --serve`",
				  p->id, p->node);
	p->answered = true;
	if (ping_measure(p))
		return TOOL_FAILED;
	qsort(p->us, p->received, sizeof(*p->us), ping_compare);
	return TOOL_OK;
}

static int ping_run_client(struct ping *p, const char *node)
{
	sci_error_t err;

	if (tool_join(&p->s.sd) || tool_resolve_node(node, &p->node))
		return TOOL_FAILED;
	if (!SCIProbeNode(p->s.sd, 0, p->node, 0, &err))
		return tool_sci_error(err, "node %u does not answer", p->node);
	if (server_is_running(p) && ping_measure_server(p))
		return TOOL_FAILED;
	if (p->as_json)
		ping_print_json(p);
	else
		ping_print_text(p);
	if (tool_finish())
		return TOOL_FAILED;
	return p->answered && !p->received ? TOOL_FAILED : TOOL_OK;
}

static void ping_parse(struct ping *p, const struct tool_command *self, int argc,
		       char **argv, const char **node)
{
	const struct tool_option options[] = {
		{ .letter = 'c', .name = "count", .kind = TOOL_NUMBER,
		  .value = &p->count, .min = 1, .max = COUNT_LIMIT,
		  .arg = "N", .help = "number of round trips (1000)" },
		{ .letter = 's', .name = "size", .kind = TOOL_SIZE,
		  .value = &p->size, .max = SIZE_LIMIT, .arg = "BYTES",
		  .help = "bytes of each round trip, up to 1M (64)" },
		{ .letter = 't', .name = "timeout", .kind = TOOL_SECONDS,
		  .value = &p->timeout, .arg = "S",
		  .help = "time after which a ping is lost (1)" },
		{ .letter = 'i', .name = "id", .kind = TOOL_NUMBER,
		  .value = &p->id, .max = UINT32_MAX, .arg = "N",
		  .help = "id of the server's segment" },
		{ .letter = 'j', .name = "json", .kind = TOOL_FLAG,
		  .value = &p->as_json, .help = "print JSON" },
		{ .name = "serve", .kind = TOOL_FLAG, .value = &p->serve,
		  .help = "answer other nodes until a signal comes" },
		{ .letter = 'v', .name = "verbose", .kind = TOOL_FLAG,
		  .value = &p->verbose, .help = "with --serve: print each client" },
		{ 0 },
	};
	int i = tool_parse(self, argc, argv, options, true);

	if (p->serve && i != argc)
		tool_usage(self, "--serve takes no node");
	if (!p->serve && argc - i != 1)
		tool_usage(self, "which node?");
	*node = argv[i];
}

int tool_ping(const struct tool_command *self, int argc, char **argv)
{
	struct ping p = { .id = PING_ID, .count = 1000, .size = 64,
			  .timeout = ANSWER_MS };
	const char *node;
	int ret;

	ping_parse(&p, self, argc, argv, &node);
	ret = p.serve ? ping_serve(&p) : ping_run_client(&p, node);
	session_close(&p.s);
	free(p.payload);
	free(p.us);
	return ret;
}
