// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: gateways
 *
 * A gateway relays bytes and knows nothing of frames. A client proves to the gateway that it
 * knows the session's key, and names a node and one of its processes. The gateway connects to
 * that process, or to the next gateway, and answers. From then on it moves bytes between the
 * two sockets. Through them the client makes the handshake of a link with the process that it
 * has named. So a link works in the same way with and without gateways: keys, acknowledgements
 * and positions belong to its two ends. When a gateway dies, the link continues over another
 * gateway at the same position.
 *
 * Memory: a direction has one buffer of NET_FORWARD_BUF bytes if neither side is a pipe, and
 * otherwise uses the rings of the pipes. The gateway reads only as much as it has room for. A
 * link has at most NET_WINDOW bytes of long transfers on their way, whatever is between its
 * ends: the credits are end to end.
 *
 * No deadlock: in every gateway, each direction of a link has its own buffers, so it waits only
 * for its next hop. The last hop is a process that receives everything and needs no room for
 * that: what it has to send in return waits in its log. By induction from there, every hop gets
 * room. There is no cycle, because a chain of gateways is made hop by hop and has at most
 * NET_HOPS gateways. selftests/spin/gateway.pml is the model.
 *
 * Copies: bytes from a pipe go to the other side directly out of the ring. Bytes from a socket
 * to a pipe go directly into the ring, if that is memory of this host.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "libsci/fabric/net/net.h"

#define MOVE_MAX	(1u << 20)	/* bytes, before the next socket has its turn */

/* ---- moving bytes ---- */

/*
 * These functions return the number of bytes; 0 at the end; or -errno. *@full: @to has
 * no room
 */
static ssize_t move_from_pipe(struct net_socket *from, struct net_socket *to, bool *full)
{
	const void *data;
	ssize_t n = sci_pipe_peek(&from->pipe->pipe, &data, true);
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

static ssize_t move_to_pipe(struct net_socket *from, struct net_socket *to, bool *full)
{
	struct iovec iov;
	ssize_t n = sci_pipe_room(&to->pipe->pipe, &iov.iov_base, true);

	*full = n == -EAGAIN;
	if (n <= 0)
		return n;
	iov.iov_len = (size_t)n;
	n = net_wire_recv(from, &iov, 1);
	if (n > 0)
		sci_pipe_put(&to->pipe->pipe, (size_t)n);
	return n;
}

static ssize_t move_buffered(struct net_socket *from, struct net_socket *to,
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

static ssize_t move_some(struct net_socket *from, struct net_socket *to,
			 struct net_bytes *b, bool *full)
{
	if (from->pipe)
		return move_from_pipe(from, to, full);
	if (to->pipe && !to->pipe->pipe.lossy)
		return move_to_pipe(from, to, full);
	return move_buffered(from, to, b, full);
}

/*
 * Move bytes in one direction. Return why it has ended, or 0. *@more: continue in the
 * next turn
 */
static int forward_move(struct net_forward *f, int i, bool *full, bool *more)
{
	size_t moved = 0;
	ssize_t n = 1;

	while (n > 0 && moved < MOVE_MAX) {
		n = move_some(f->side[i], f->side[!i], &f->bytes[i], full);
		moved += n > 0 ? (size_t)n : 0;
	}
	*more |= n > 0;
	return n > 0 || n == -EAGAIN ? 0 : n ? (int)n : -ECONNRESET;
}

static void forward_moves(void *socket)
{
	struct net_socket *s = socket;
	struct net_forward *f = s->forward;
	bool full[2] = { false, false }, more = false;
	int ret = forward_move(f, 0, &full[0], &more);

	/* relay the bytes that arrived before the end */
	if (forward_move(f, 1, &full[1], &more) || ret) {
		net_forward_end(f, NULL, -ECONNRESET);
		return;
	}
	for (int i = 0; i < 2; i++) {
		net_wire_events(f->side[i], (full[i] ? 0u : EPOLLIN) |
					    (full[!i] ? EPOLLOUT : 0u));
		if (more && f->side[i]->pipe)
			net_pipe_wake(f->side[i]->pipe);
	}
}

/* ---- setup and end ---- */

/*
 * Find the next hop to the named process. @p->wanted names the process if it is reached through
 * memory, @p->epoch is its slot otherwise.
 */
static int next_hop(struct net *net, const struct net_proof *p, struct net_addr *to)
{
	struct net_addr first;

	if (net_under_find(net, p->forward)) {
		*to = (struct net_addr){
			.node = p->forward, .pipe = p->wanted + NET_PIPE_PORT,
		};
		return p->epoch ? -ERANGE : 0;
	}
	if (!net_route_addr(net, p->forward, 0, &first))
		return -EHOSTUNREACH;
	if (first.via) {
		*to = first;
		to->slot = p->epoch;
		return p->received ? 0 : -ELOOP;
	}
	return net_addr_slot(&first, p->epoch, to) ? 0 : -ERANGE;
}

/*
 * Begin to relay for @s, whose client has proved that it knows the key and has named a
 * process.
 */
int net_forward_begin(struct net_socket *s)
{
	struct net *net = s->net;
	const struct net_proof *p = &s->proof;
	struct net_forward *f;
	struct net_addr to;
	int ret = next_hop(net, p, &to);

	if (!net->gateway)
		ret = -EHOSTUNREACH;
	else if (net->n_forwards >= NET_FORWARDS)
		ret = -ENOSPC;
	f = ret ? NULL : calloc(1, sizeof(*f));
	if (!f)
		return ret ? ret : -ENOMEM;
	f->side[0] = s;
	s->forward = f;
	net->n_handshakes--;
	net->n_forwards++;
	list_del(&s->link);
	list_add_tail(&f->link, &net->forwards);
	/* the client must not send before the answer */
	net_wire_events(s, 0);
	ret = net_dial(net, &to, p->wanted, to.via ? (uint32_t)p->received - 1 : 0, f);
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
		ret = net_wire_watch(f->side[i], EPOLLIN, forward_moves);
	if (ret)
		net_forward_end(f, NULL, ret);
}

/* End both sides. @closing: the side that the caller is closing with @error; or NULL */
void net_forward_end(struct net_forward *f, struct net_socket *closing, int error)
{
	struct net *net = f->side[0]->net;

	if (!f->up && closing != f->side[0])
		net_forward_answer(f->side[0], error);
	list_del(&f->link);
	net->n_forwards--;
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
