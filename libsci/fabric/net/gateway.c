// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: gateways
 *
 * A gateway relays bytes and does not read frames. A client proves to the gateway that it has
 * the session's key, and names a node and one of its processes. The gateway connects to that
 * process, or to the next gateway, and answers. From then on the gateway moves bytes between the
 * two sockets. Over these sockets the client makes the handshake of a link with the process that
 * it has named. So a link works in the same way with and without gateways: keys, acknowledgements
 * and positions belong to its two ends. When a gateway dies, the link continues over another
 * gateway at the same position. A gateway that does not reach the next gateway tries all its routes
 * to the process before it refuses the client.
 *
 * Memory: a direction has one buffer of NET_FORWARD_BUF bytes if neither side is a pipe, and
 * otherwise uses the rings of the pipes. The gateway reads only as much as it has room for. A
 * link has at most NET_WINDOW bytes of long transfers in flight, with any number of gateways:
 * the credits are end to end.
 *
 * No deadlock: in every gateway, each direction of a link has its own buffers, so it waits only
 * for its next hop. The last hop is a process that always receives, without a need for room: its
 * own bytes wait in its log. By induction from there, every hop gets room. There is no cycle,
 * because a chain of gateways is made hop by hop and has at most NET_HOPS gateways.
 * selftests/spin/gateway.pml is the model.
 *
 * Polling: while bytes arrive, the service thread polls a relay instead of sleeping, and the
 * relay's pipes ask for no wake-ups. After BUSY_NS without bytes the relay sleeps again. Each
 * polling phase that ends so doubles the number of turns with bytes before the next polling
 * phase, up to 64. The number is 256 when other threads want the CPU. So an idle gateway uses no
 * CPU, and a relay whose packets are far apart is rarely polled.
 *
 * Copies: bytes from a pipe go to the other side directly out of the ring. Bytes from a socket
 * to a pipe go directly into the ring, if that is coherent memory of this host.
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "libsci/fabric/net/net.h"

#define MOVE_MAX	(1u << 20)	/* bytes, before the next socket has its turn */
#define BUSY_NS		100000u		/* time that a relay is polled after its last bytes */
#define BUSY_MAX	16u		/* relays that are polled at a time */
#define MISSES_MAX	6u
#define MISSES_CROWDED	8u		/* for a crowded CPU, where a sleeper runs sooner */

/* ---- moving bytes ---- */

/*
 * Functions that move bytes return the number of moved bytes; 0: end of the stream; -errno. They
 * set *@full if @to has no room.
 */
static ssize_t forward_from_pipe(struct net_socket *from, struct net_socket *to, bool *full)
{
	const void *data;
	ssize_t n = sci_pipe_peek(&from->pipe->pipe, &data, !from->pipe->paused);
	struct iovec iov;

	if (n <= 0)
		return n;
	iov = (struct iovec){ (void *)data, (size_t)n };
	n = net_wire_send(to, &iov, 1);
	*full = n == -EAGAIN;
	if (n > 0)
		sci_pipe_take(&from->pipe->pipe, (size_t)n);
	return n;
}

static ssize_t forward_to_pipe(struct net_socket *from, struct net_socket *to, bool *full)
{
	struct iovec iov;
	ssize_t n = sci_pipe_room(&to->pipe->pipe, &iov.iov_base, !to->pipe->paused);

	*full = n == -EAGAIN;
	if (n <= 0)
		return n;
	iov.iov_len = (size_t)n;
	n = net_wire_recv(from, &iov, 1);
	if (n > 0)
		sci_pipe_put(&to->pipe->pipe, (size_t)n);
	return n;
}

static ssize_t forward_buffered(struct net_socket *from, struct net_socket *to,
				struct net_bytes *b, bool *full)
{
	struct iovec iov;
	ssize_t n;

	if (!b->buf)
		b->buf = malloc(NET_FORWARD_BUF);
	if (!b->buf)
		return -ENOMEM;
	if (b->from == b->to) {
		iov = (struct iovec){ b->buf, NET_FORWARD_BUF };
		n = net_wire_recv(from, &iov, 1);
		if (n <= 0)
			return n;
		b->from = 0;
		b->to = (size_t)n;
	}
	iov = (struct iovec){ b->buf + b->from, b->to - b->from };
	n = net_wire_send(to, &iov, 1);
	*full = n == -EAGAIN;
	if (n > 0)
		b->from += (size_t)n;
	return n;
}

static ssize_t forward_some(struct net_socket *from, struct net_socket *to,
			    struct net_bytes *b, bool *full)
{
	if (from->pipe)
		return forward_from_pipe(from, to, full);
	if (to->pipe && to->pipe->pipe.direct)
		return forward_to_pipe(from, to, full);
	return forward_buffered(from, to, b, full);
}

struct turn {
	bool full[2];			/* the other side has no room */
	bool more;			/* bytes are left for the next turn */
	bool moved;
};

/* Move bytes in one direction. Return: 0; -errno: the direction has ended. */
static int forward_move(struct net_forward *f, int i, struct turn *t)
{
	size_t moved = 0;
	ssize_t n = 1;

	while (n > 0 && moved < MOVE_MAX) {
		n = forward_some(f->side[i], f->side[!i], &f->bytes[i], &t->full[i]);
		moved += n > 0 ? (size_t)n : 0;
	}
	t->more |= n > 0;
	t->moved |= moved != 0;
	return n > 0 || n == -EAGAIN ? 0 : n ? (int)n : -ECONNRESET;
}

/* ---- polling ---- */

static bool forward_is_busy(const struct net_forward *f)
{
	return !list_empty(&f->busy);
}

/* Begin or end to poll a relay. At the end, its pipes ask for wake-ups and check again. */
static void forward_set_busy(struct net_forward *f, bool busy)
{
	struct net *net = f->side[0]->net;

	if (busy)
		list_add_tail(&f->busy, &net->busy);
	else
		list_del(&f->busy);
	net->n_busy += busy ? 1u : -1u;
	for (int i = 0; i < 2; i++) {
		assert(f->side[i]);	/* a relay that lacks a side is never busy */
		if (f->side[i]->pipe)
			net_wire_pause(f->side[i], busy);
	}
}

static void forward_count_misses(struct net_forward *f, unsigned int misses)
{
	f->moves = 0;
	f->misses = misses;
	forward_set_busy(f, false);
}

static void forward_adapt(struct net_forward *f, bool moved)
{
	uint64_t now = sci_now_ns();

	if (moved) {
		f->moved_ns = now;
		if (forward_is_busy(f))
			f->misses = 0;
		else if (++f->moves >> f->misses && f->side[0]->net->n_busy < BUSY_MAX)
			forward_set_busy(f, true);
	} else if (forward_is_busy(f) && now - f->moved_ns > BUSY_NS) {
		forward_count_misses(f, f->misses < MISSES_MAX ? f->misses + 1 : MISSES_MAX);
	}
}

/* Move bytes in both directions. @f may have been freed after this call. */
static void forward_turn(struct net_forward *f)
{
	struct turn t = { 0 };
	int ret = forward_move(f, 0, &t);

	/* relay the bytes that arrived before the end */
	if (forward_move(f, 1, &t) || ret) {
		net_forward_end(f, NULL, -ECONNRESET);
		return;
	}
	for (int i = 0; i < 2; i++)
		net_wire_events(f->side[i], (t.full[i] ? 0u : EPOLLIN) |
					    (t.full[!i] ? EPOLLOUT : 0u));
	forward_adapt(f, t.moved);
	for (int i = 0; i < 2 && t.more && !forward_is_busy(f); i++)
		net_wire_again(f->side[i]);
}

static void forward_ready(void *socket)
{
	forward_turn(((struct net_socket *)socket)->forward);
}

/*
 * Poll the busy relays. Return true if there are any. Context: the service thread. On a crowded
 * CPU all relays sleep, because the scheduler prefers a thread that wakes up.
 */
bool net_forwards_poll(struct net *net, bool crowded)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &net->busy) {
		struct net_forward *f = container_of(pos, struct net_forward, busy);

		if (crowded)
			forward_count_misses(f, MISSES_CROWDED);
		else
			forward_turn(f);
	}
	return net->n_busy;
}

/* ---- setup and end ---- */

/*
 * Find the next hop to the named process on route number @turn. @p->wanted names the process if it
 * is reached through memory, @p->epoch is its slot otherwise. A client that does not know the
 * process tries one slot after the other: -ERANGE ends its search.
 */
static int hop_find(struct net *net, const struct net_proof *p, unsigned int turn,
		    struct net_addr *to)
{
	struct net_addr first;

	if (net_under_find(net, p->forward)) {
		*to = (struct net_addr){
			.node = p->forward, .pipe = p->wanted + NET_PIPE_PORT,
		};
		return p->epoch && !p->yours ? -ERANGE : 0;
	}
	if (!net_route_addr(net, p->forward, turn, &first) || first.below)
		return -EHOSTUNREACH;
	if (first.via) {
		*to = first;
		to->slot = p->epoch;
		return p->received && p->received <= NET_HOPS ? 0 : -ELOOP;
	}
	return net_addr_slot(&first, p->epoch, to) ? 0 : -ERANGE;
}

/* Connect to the next hop. If a gateway is missing, try the next route. */
static int forward_dial(struct net_forward *f)
{
	struct net *net = f->side[0]->net;
	const struct net_proof *p = &f->side[0]->proof;
	struct net_addr to;
	int ret;

	do {
		ret = hop_find(net, p, f->turn++, &to);
		if (!ret)
			ret = net_dial(net, &to, p->wanted,
				       to.via ? (uint32_t)p->received - 1 : 0, f);
	} while (ret == -EHOSTUNREACH && net_route_addr(net, p->forward, f->turn, &to));
	return ret;
}

/* Begin to relay for @s, whose client has proved that it has the key and has named a process. */
int net_forward_begin(struct net_socket *s)
{
	struct net *net = s->net;
	struct net_forward *f;
	int ret;

	if (!net->gateway)
		return -EHOSTUNREACH;
	if (net->n_forwards >= NET_FORWARDS)
		return -ENOSPC;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->side[0] = s;
	s->forward = f;
	net->n_handshakes--;
	net->n_forwards++;
	list_del(&s->link);
	list_add_tail(&f->link, &net->forwards);
	list_init(&f->busy);
	/* the client must not send before the answer */
	net_wire_events(s, 0);
	ret = forward_dial(f);
	/* the caller sends the refusal */
	if (ret)
		net_forward_end(f, s, ret);
	return ret;
}

/* Start to relay: the socket to the next hop is ready. */
void net_forward_ready(struct net_socket *s)
{
	struct net_forward *f = s->forward;
	int ret = net_forward_answer(f->side[0], 0);

	list_del(&s->link);
	f->up = true;
	for (int i = 0; i < 2 && !ret; i++)
		ret = net_wire_watch(f->side[i], EPOLLIN, forward_ready);
	if (ret)
		net_forward_end(f, NULL, ret);
}

/* End a relay. @closing: the side that the caller is closing with @error; or NULL. */
void net_forward_end(struct net_forward *f, struct net_socket *closing, int error)
{
	struct net *net = f->side[0]->net;

	/* the next gateway is missing: try another one before the client gets an answer */
	if (!f->up && closing && closing == f->side[1] && error == -EHOSTUNREACH) {
		f->side[1] = NULL;
		error = forward_dial(f);
		if (!error)
			return;
	}
	if (!f->up && closing != f->side[0])
		net_forward_answer(f->side[0], error);
	list_del(&f->link);
	net->n_forwards--;
	if (forward_is_busy(f))
		forward_set_busy(f, false);
	for (int i = 0; i < 2; i++) {
		free(f->bytes[i].buf);
		if (!f->side[i])
			continue;
		f->side[i]->forward = NULL;
		if (f->side[i] != closing)
			net_socket_end(f->side[i], error);
	}
	free(f);
}

static int fabric_add(struct net *net, const char *spec)
{
	const struct sci_fabric_place at = { .spec = spec, .node = net->node };
	struct sci_fabric *below;
	int ret = sci_fabric_open_at(&below, &at);

	if (ret)
		return ret;
	pthread_mutex_lock(&net->svc.lock);
	ret = net_under_add(net, below, 0, NET_GATEWAY, true);
	pthread_mutex_unlock(&net->svc.lock);
	if (ret)
		sci_fabric_close(below);
	return ret;
}

int sci_gateway_open(struct sci_fabric **out, const char *const *fabrics, unsigned int n,
		     unsigned int node, const char *spec)
{
	const struct sci_fabric_place at = { .node = node };
	int ret = sci_net_fabric.open(out, &at, spec);
	struct net *net;

	if (ret)
		return ret;
	net = net_of(*out);
	net->gateway = true;
	for (unsigned int i = 0; i < n && !ret; i++)
		ret = fabric_add(net, fabrics[i]);
	if (ret)
		sci_net_fabric.close(*out);
	return ret;
}
