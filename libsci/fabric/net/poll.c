// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: which thread reads the sockets
 *
 * The service thread reads the sockets until a thread of the program polls. Then that thread
 * reads the links that have received bytes lately, up to NET_KEEN links, and the service thread
 * stops watching these links. net_rest() gives them back to the service thread before the
 * program's thread sleeps. A tick of the timer also gives them back if no thread has polled since
 * the last tick.
 */

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "libsci/fabric/net/net.h"

#define READ_MAX	(1u << 20)	/* bytes, before the next link has its turn */

/*
 * Call net_wire_recv(). *@placed: number of bytes that were put into the target of a long frame.
 * *@all: the socket had no more bytes.
 */
static ssize_t link_recv(struct net_link *l, size_t *placed, bool *all)
{
	struct net *net = l->net;
	uint8_t *to = NULL;
	size_t room = l->in_big ? net_big_target(l, &to) : 0;
	struct iovec iov[2] = {
		{ to, room },
		{ net->in + l->part_len, NET_IN - l->part_len },
	};
	ssize_t n;

	/* the target no longer exists: drop the bytes */
	if (room && !to)
		iov[0] = (struct iovec){ net->waste, room < NET_IN ? room : NET_IN };
	room = iov[0].iov_len;
	n = net_wire_recv(l->socket, iov, 2);
	/* a pipe reports later bytes only after a read that finds none */
	*all = !l->socket->pipe && n < (ssize_t)(room + iov[1].iov_len);
	*placed = n <= 0 ? 0 : (size_t)n < room ? (size_t)n : room;
	return n;
}

/*
 * Read a link once. Return -EAGAIN when no bytes are left; -EFAULT: the target of the bytes cannot be
 * written; -EPROTO; -ECONNRESET: the socket has ended.
 */
static int link_read_some(struct net_link *l)
{
	struct net *net = l->net;
	size_t placed, left;
	bool all;
	ssize_t n = link_recv(l, &placed, &all);
	int ret;

	if (!n)
		return -ECONNRESET;
	if (n < 0)
		return n == -EAGAIN || n == -EFAULT ? (int)n : -ECONNRESET;
	l->received += (uint64_t)n;
	l->last_rx_ms = net->now_ms;
	if (placed)
		net_big_came(l, placed);
	left = (size_t)n - placed;
	if (left) {
		memcpy(net->in, l->part, l->part_len);
		left += l->part_len;
		l->part_len = 0;
		ret = net_frames_take(l, net->in, left);
		if (ret)
			return ret;
	}
	/* the next bytes of a long frame arrive soon */
	return all && !l->in_big ? -EAGAIN : 0;
}

/* Read all bytes of a link. Return true if there were any. @l may have been freed afterwards. */
static bool link_read(struct net_link *l)
{
	struct net *net = l->net;
	uint64_t before = l->received;
	struct net_frame ack = { .type = NET_ACK };
	int ret = 0;

	while (!ret && l->received - before < READ_MAX) {
		ret = link_read_some(l);
		/* the sender may be waiting for room */
		if (l->received - l->told >= NET_ACK_LATE) {
			net_link_send(l, &ack, NULL);
			net_link_flush(l);
		}
	}
	if (ret && ret != -EAGAIN) {
		/* the bytes before the end have been handled */
		if (ret == -EPROTO || ret == -EFAULT)
			net_link_lost(l, true);
		else
			net_link_break(l, sci_now_ms());
		return true;
	}
	/* the limit is reached: call again after the other links */
	if (!ret)
		net_wire_again(l->socket);
	if (l->ack_now || l->received - l->told >= NET_ACK_EVERY)
		net_link_send(l, &ack, NULL);
	if (net->closing)
		pthread_cond_broadcast(&net->cond);
	before = l->received - before;
	net_serve(l);
	net_link_flush(l);
	return before;
}

/* Read the link of a socket. Context: the service thread. */
void net_link_ready(void *socket)
{
	struct net_socket *s = socket;
	struct net *net = s->net;

	if (s->of && s->of->socket == s) {
		s->of->fresh = true;
		net->fresh = true;
		link_read(s->of);
	}
	if (net->news)
		net->news(net->news_owner);
}

/* ---- threads of the program ---- */

static void polling_begin(struct net_link *l)
{
	struct net *net = l->net;

	l->keen = true;
	net->keen[net->n_keen++] = l;
	net_wire_pause(l->socket, true);
	net_timer_set(net);
}

void net_keen_end(struct net_link *l)
{
	struct net *net = l->net;
	unsigned int i = 0;

	if (!l->keen)
		return;
	while (net->keen[i] != l)
		i++;
	net->keen[i] = net->keen[--net->n_keen];
	l->keen = false;
	if (l->socket)
		net_wire_pause(l->socket, false);
}

static void polling_end_all(struct net *net)
{
	while (net->n_keen)
		net_keen_end(net->keen[0]);
	net_timer_set(net);
}

static void polling_choose(struct net *net)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &net->links) {
		struct net_link *l = container_of(pos, struct net_link, link);

		if (l->fresh && l->state == LINK_UP && !l->keen && net->n_keen < NET_KEEN)
			polling_begin(l);
		l->fresh = false;
	}
	net->fresh = false;
}

bool net_poll(struct sci_fabric *f)
{
	struct net *net = net_of(f);
	bool came = false, answered;

	if (pthread_mutex_trylock(&net->svc.lock))
		return false;
	net->polls++;
	net_rows_send(net);
	if (net->fresh)
		polling_choose(net);
	/* read the links backwards: when a link breaks, the last one takes its place */
	for (unsigned int i = net->n_keen; i-- > 0;)
		if (i < net->n_keen)
			came |= link_read(net->keen[i]);
	answered = net->answered;
	net->answered = false;
	pthread_mutex_unlock(&net->svc.lock);
	/* with a real-time policy, the thread that waits for the answer would not run otherwise */
	if (answered)
		sched_yield();
	return came;
}

void net_rest(struct sci_fabric *f)
{
	struct net *net = net_of(f);

	pthread_mutex_lock(&net->svc.lock);
	net_rows_send(net);
	polling_end_all(net);
	pthread_mutex_unlock(&net->svc.lock);
}

void net_keen_tick(struct net *net)
{
	if (net->polls == net->polls_seen)
		polling_end_all(net);
	net->polls_seen = net->polls;
}
