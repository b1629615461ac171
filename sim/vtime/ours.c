// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sci/msg.h>

#include "sim/vtime/command.h"
#include "sim/vtime/network.h"
#include "sim/vtime/ours.h"
#include "sim/vtime/tcp.h"

/* Return the rounds after which all rings exist and status lines have their usual intervals. */
static unsigned int rings_warm_up(size_t size)
{
	return size > 16384 ? 2 : 48;
}

#define CONNECT_MS	10000
/*
 * Virtual time after which an operation has failed: to connect, or to move one byte
 * of a message.  Only an operation that is repeated for ever takes so long.
 */
#define PATIENCE	(10000 * (uint64_t)VT_MS)
#define BYTE_PATIENCE	(10 * (uint64_t)VT_US)

/* The longest message: the machines of the profiles have memory for it. */
#define BYTES_MAX	(256u << 20)

struct side {
	struct sci_ep *ep;
	struct sci_peer *peer;
	void *buf;
};

struct pingpong {
	enum ours_mode mode;
	size_t size;
	unsigned int rounds;
	struct ours_result *result;
	uint64_t begin;
	uint64_t counts[SCI_PCI_COUNTERS_COUNT];
	struct vt_network_load load;
	uint64_t frames, ether_bytes;
	int error;
};

static bool mode_exports(enum ours_mode mode)
{
	return mode >= OURS_ZCOPY && mode != OURS_TCP;
}

static bool mode_is_tagged(enum ours_mode mode)
{
	return mode == OURS_TAGGED || mode == OURS_TCP;
}

/* Set the parameters that select a protocol for all messages longer than one line. */
static int ours_choose(struct sci_ep *ep, enum ours_mode mode)
{
	int ret = 0;

	if (mode == OURS_DIRECT)
		return sci_ep_set(ep, SCI_PARAM_ZCOPY_MIN, 0);
	if (mode == OURS_LINES) {
		ret = sci_ep_set(ep, SCI_PARAM_ZCOPY_MIN, UINT64_MAX);
		ret = ret ? ret : sci_ep_set(ep, SCI_PARAM_EAGER_MAX,
					     UINT64_MAX);
		ret = ret ? ret : sci_ep_set(ep, SCI_PARAM_LINES_MAX,
					     UINT64_MAX);
	}
	return ret;
}

static int side_open(struct vt_node *n, const struct pingpong *pp,
		     struct side *s)
{
	const struct sci_addr other = { .node = 8, .id = 1 };
	struct sci_ep_attr attr = {
		.size = sizeof(attr), .id = 1, .flags = SCI_EP_SINGLE_THREAD, .net = "",
	};
	size_t room = pp->size ? pp->size : 1;
	int ret;

	if (pp->mode == OURS_TCP) {
		/* any key will do: all processes are in this one */
		setenv("SCI_NET_KEY", "hex:00112233445566778899aabbccddeeff", 1);
		attr.net = vt_index(n) ? "tcp:127.0.0.8" : "tcp:127.0.0.4";
		attr.net_peers = "4=tcp:127.0.0.4,8=tcp:127.0.0.8";
	}
	ret = sci_ep_open_attr(&s->ep, &attr);
	ret = ret ? ret : ours_choose(s->ep, pp->mode);
	if (ret)
		return ret;
	if (vt_index(n))
		ret = sci_accept(s->ep, CONNECT_MS, &s->peer);
	else
		ret = sci_connect(s->ep, &other, CONNECT_MS, &s->peer);
	if (ret)
		return ret;
	if (mode_exports(pp->mode))
		return sci_buf_alloc(s->ep, room, &s->buf);
	s->buf = malloc(room);
	return s->buf ? 0 : -1;
}

static void side_close(const struct pingpong *pp, struct side *s)
{
	if (s->peer)
		sci_disconnect(s->peer);
	if (mode_exports(pp->mode) && s->buf)
		sci_buf_free(s->ep, s->buf);
	else
		free(s->buf);
	if (s->ep)
		sci_ep_close(s->ep);
}

static int ours_send_one(const struct pingpong *pp, const struct side *s)
{
	return mode_is_tagged(pp->mode) ?
		       sci_tsend(s->peer, 1, 2, s->buf, pp->size) :
		       sci_send(s->peer, s->buf, pp->size);
}

static int ours_recv_one(const struct pingpong *pp, const struct side *s)
{
	return mode_is_tagged(pp->mode) ?
		       sci_trecv(s->ep, s->peer, 1, 2, 0, s->buf, pp->size,
				 NULL) :
		       sci_recv(s->ep, s->peer, s->buf, pp->size, NULL);
}

/* Return the sum of counter @c over both adapters. */
static uint64_t counter_total(struct vt_sim *s, enum sci_pci_counter c)
{
	return sim_counter(vt_adapter(vt_node(s, 0)), c) +
	       sim_counter(vt_adapter(vt_node(s, 1)), c);
}

static void ours_begin(struct vt_node *n, struct pingpong *pp)
{
	struct vt_sim *s = vt_sim_of(n);

	vt_sync(n);
	pp->begin = vt_clock(n);
	for (int c = 0; c < SCI_PCI_COUNTERS_COUNT; c++)
		pp->counts[c] = counter_total(s, (enum sci_pci_counter)c);
	vt_network_load(s, &pp->load);
	pp->frames = vt_tcp_frames(s);
	pp->ether_bytes = vt_tcp_bytes(s);
}

static double counts_per_message(struct vt_sim *s, const struct pingpong *pp,
				 enum sci_pci_counter c)
{
	return (double)(counter_total(s, c) - pp->counts[c]) / (2.0 * pp->rounds);
}

static void pingpong_end(struct vt_node *n, struct pingpong *pp)
{
	struct vt_sim *s = vt_sim_of(n);
	double messages = 2.0 * pp->rounds;
	struct vt_network_load load;

	vt_sync(n);
	vt_network_load(s, &load);
	*pp->result = (struct ours_result){
		.latency = (double)(vt_clock(n) - pp->begin) / messages,
		.packets64 = counts_per_message(s, pp, SCI_PCI_CNT_WRITES_64),
		.packets16 = counts_per_message(s, pp, SCI_PCI_CNT_WRITES_16),
		.reads = counts_per_message(s, pp, SCI_PCI_CNT_READS),
		.barriers = counts_per_message(s, pp, SCI_PCI_CNT_BARRIERS),
		.bytes = (double)(load.bytes - pp->load.bytes + vt_tcp_bytes(s) - pp->ether_bytes) /
			 messages,
		.frames = (double)(vt_tcp_frames(s) - pp->frames) / messages,
	};
}

static void ours_play(struct vt_node *n, void *arg)
{
	struct pingpong *pp = arg;
	struct side s = { 0 };
	int ret = side_open(n, pp, &s);

	for (unsigned int i = 0; !ret && i < rings_warm_up(pp->size) + pp->rounds; i++) {
		if (i == rings_warm_up(pp->size) && !vt_index(n))
			ours_begin(n, pp);
		ret = vt_index(n) ? ours_recv_one(pp, &s) : ours_send_one(pp, &s);
		if (ret)
			break;
		ret = vt_index(n) ? ours_send_one(pp, &s) : ours_recv_one(pp, &s);
	}
	if (!ret && !vt_index(n))
		pingpong_end(n, pp);
	/* the counts are complete: a last message lets the other program end */
	if (!ret)
		ret = vt_index(n) ? ours_recv_one(pp, &s) : ours_send_one(pp, &s);
	if (ret)
		pp->error = ret;
	side_close(pp, &s);
}

bool ours_pingpong(const struct vt_profile *p, enum ours_mode mode,
		   size_t size, unsigned int rounds, struct ours_result *r)
{
	struct pingpong pp = {
		.mode = mode, .size = size, .rounds = rounds, .result = r,
	};
	struct vt_sim *s = vt_new(p, 2, NULL, 1);
	bool done;

	if (!s)
		return false;
	if (mode == OURS_TCP && !vt_ethernet(s)) {
		vt_free(s);
		return false;
	}
	vt_set_limit(s, PATIENCE + (rings_warm_up(size) + rounds) * 2ull * size *
			BYTE_PATIENCE);
	for (unsigned int i = 0; i < 2; i++)
		vt_start(vt_node(s, i), ours_play, &pp);
	done = vt_run(s);
	vt_free(s);
	if (!done || pp.error)
		fprintf(stderr, "sci-model: %zu bytes: %s\n", size,
			done ? strerror(-pp.error) : "it waits for ever");
	return done && !pp.error;
}

static bool size_is_valid(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (*text >= '0' && *text <= '9' && !*end && n <= BYTES_MAX)
		return true;
	fprintf(stderr, "sci-model: %s: bytes are a number up to %u\n", text,
		BYTES_MAX);
	return false;
}

int pingpong_main(int argc, char **argv)
{
	enum ours_mode mode = OURS_PLAIN;
	struct vt_profile p;
	int i = 2;

	if (argc > 2 && !strcmp(argv[i], "-t"))
		mode = OURS_TAGGED;
	else if (argc > 2 && !strcmp(argv[i], "-z"))
		mode = OURS_ZCOPY;
	else if (argc > 2 && !strcmp(argv[i], "-n"))
		mode = OURS_TCP;
	i += mode != OURS_PLAIN;
	if (i >= argc) {
		fputs("usage: sci model pingpong PROFILE [-t|-z|-n] BYTES...\n",
		      stderr);
		return 2;
	}
	for (int k = i; k < argc; k++)
		if (!size_is_valid(argv[k]))
			return 2;
	if (!vt_profile_find(&p, NULL, argv[1]))
		return 2;
	printf("%10s %12s %10s %8s %8s %6s %8s %10s %8s\n", "bytes", "us", "MB/s",
	       "64 B", "16 B", "reads", "barriers", "link bytes", "frames");
	for (; i < argc; i++) {
		size_t size = strtoul(argv[i], NULL, 0);
		struct ours_result r;

		if (!ours_pingpong(&p, mode, size, 20, &r))
			return 1;
		printf("%10zu %12.3f %10.2f %8.2f %8.2f %6.2f %8.2f %10.0f %8.2f\n",
		       size, r.latency / VT_US,
		       (double)size / r.latency * 1e6, r.packets64,
		       r.packets16, r.reads, r.barriers, r.bytes, r.frames);
	}
	return 0;
}
