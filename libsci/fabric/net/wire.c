// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: wires
 *
 * A wire carries bytes for links, handshakes and gateways. It is a stream socket, or a pipe
 * through the memory of another fabric of this process. Sockets and pipes have the same functions,
 * never block, and call a function when they can receive or send.
 *
 * A separate thread opens a pipe, because connecting to segments blocks. The client makes its
 * half of the pipe and sends the half's number to a data interrupt of the other process. That
 * process makes its own half, connects to the client's half, and writes its number into the
 * client's half.
 *
 * Events of a pipe arrive on a thread of its fabric, which writes to an eventfd. The net's
 * service thread watches the eventfd.
 */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libsci/base/thread.h"
#include "libsci/fabric/net/net.h"

#define OPEN_MS		2000u
#define OPENINGS	32u		/* pipes that are opened at a time for other processes */
#define PIPE_MAGIC	0x50494353u	/* "SCIP" */

/* A message to a data interrupt. It asks the owner to connect to the sender's half of a pipe. */
struct pipe_call {
	uint32_t magic;
	uint32_t node;
	uint64_t number;
};

_Static_assert(sizeof(struct pipe_call) == 16, "on the wire");

/* ---- wake-ups ---- */

static void pipes_signal(struct net *net)
{
	const uint64_t one = 1;

	if (!atomic_exchange(&net->pipe_news, true))
		while (write(net->pipe_fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
}

/* Make the service thread call the pipe's function. */
static void pipe_alert(struct net_pipe *p)
{
	atomic_store(&p->woken, true);
	pipes_signal(p->net);
}

/* Handle an event of a pipe. Context: a thread of the fabric that carries the pipe. */
static void pipe_event(void *owner, const struct sci_event *ev)
{
	(void)ev;
	pipe_alert(owner);
}

static void port_event(void *owner, const struct sci_event *ev)
{
	(void)ev;
	pipes_signal(owner);
}

/* ---- opening pipes, on a separate thread ---- */

static int pipe_send(struct net_pipe *p)
{
	const struct sci_fabric_ops *ops = p->pipe.fabric->ops;
	const struct sci_rintr_param param = {
		.adapter = p->under->adapter, .node = p->node,
		.number = (uint32_t)p->number, .timeout = OPEN_MS, .data = true,
	};
	struct sci_adapter_info info;
	struct pipe_call call = { .magic = PIPE_MAGIC, .number = sci_pipe_number(&p->pipe) };
	struct sci_rintr *port;
	int ret = ops->query.adapter(p->pipe.fabric, p->under->adapter, &info);

	ret = ret ? ret : ops->rintr.connect(p->pipe.fabric, &param, &port);
	if (ret)
		return ret;
	call.node = info.node;
	ret = ops->rintr.trigger(port, &call, sizeof(call));
	ops->rintr.disconnect(port);
	return ret;
}

static int answer_wait(struct net_pipe *p)
{
	struct timespec until = sci_deadline(OPEN_MS);
	struct net *net = p->net;
	int ret = 0;

	pthread_mutex_lock(&net->svc.lock);
	while (!ret && !sci_pipe_answered(&p->pipe))
		if (p->orphan || net->closing)
			ret = -ECANCELED;
		else if (sci_cond_wait(&net->cond, &net->svc.lock, OPEN_MS, &until))
			ret = -ETIMEDOUT;
	pthread_mutex_unlock(&net->svc.lock);
	return ret;
}

static int pipe_open(struct net_pipe *p)
{
	int ret = sci_pipe_begin(&p->pipe, p->under->fabric, p->under->adapter, pipe_event, p);

	if (!ret && p->client) {
		ret = pipe_send(p);
		ret = ret ? ret : answer_wait(p);
		p->number = ret ? 0 : sci_pipe_answered(&p->pipe);
	}
	/* the other half may have ended meanwhile: its process need not have ended */
	if (!ret && sci_pipe_connect(&p->pipe, p->node, p->number, OPEN_MS, pipe_event, p))
		ret = -ECONNRESET;
	if (!ret && !p->client)
		sci_pipe_answer(&p->pipe);
	return ret;
}

static void pipe_free(struct net_pipe *p)
{
	list_del(&p->link);
	list_del(&p->ready);
	sci_pipe_end(&p->pipe);
	free(p);
}

/*
 * The other node has just been silent, or has answered again: tell all pipes to this node. So only
 * one of them waits for an answer.
 */
static void pipe_tell_silence(struct sci_pipe *pipe)
{
	struct net_pipe *p = container_of(pipe, struct net_pipe, pipe);
	struct list *pos, *n;

	list_for_each_safe(pos, n, &p->net->pipes) {
		struct net_pipe *other = container_of(pos, struct net_pipe, link);

		if (!other->opening && other->node == p->node && other->under == p->under)
			other->pipe.silent_ms = pipe->silent_ms;
	}
}

static void *pipe_thread(void *arg)
{
	struct net_pipe *p = arg;
	struct net *net = p->net;
	int ret = pipe_open(p);

	pthread_mutex_lock(&net->svc.lock);
	p->ret = ret;
	p->opening = false;
	p->pipe.silence = pipe_tell_silence;
	net->n_opening--;
	/* calls of other processes may wait for this one */
	if (!p->client && net->n_accepting-- == OPENINGS)
		pipes_signal(net);
	if (p->orphan)
		pipe_free(p);
	else if (p->client)
		pipe_alert(p);
	else if (p->ret || net->closing)
		pipe_free(p);
	else
		net_accept(net, -1, p);
	pthread_cond_broadcast(&net->cond);
	pthread_mutex_unlock(&net->svc.lock);
	return NULL;
}

static struct net_pipe *pipe_start(struct net *net, struct net_under *under,
				   unsigned int node, uint64_t number, bool client)
{
	struct net_pipe *p = net->closing ? NULL : calloc(1, sizeof(*p));
	pthread_t thread;

	if (!p)
		return NULL;
	p->net = net;
	p->under = under;
	p->node = node;
	p->number = number;
	p->client = client;
	p->opening = true;
	list_init(&p->ready);
	list_add_tail(&p->link, &net->pipes);
	if (sci_thread_start(&thread, pipe_thread, p, "sci-pipe")) {
		pipe_free(p);
		return NULL;
	}
	pthread_detach(thread);
	net->n_opening++;
	net->n_accepting += !client;
	return p;
}

void net_pipe_close(struct net_pipe *p)
{
	p->fn = NULL;
	p->orphan = true;
	if (!p->opening)
		pipe_free(p);
}

/* ---- the service thread ---- */

/* Start to open pipes for other processes. Further calls wait in the queue of the interrupt. */
static void port_take(struct net *net, struct net_under *u)
{
	const struct sci_lintr_ops *ops = &u->fabric->ops->lintr;

	while (u->port && net->n_accepting < OPENINGS) {
		struct pipe_call call;
		size_t len = sizeof(call);
		int ret = ops->wait(u->port, &call, &len, 0);

		if (ret == -EMSGSIZE) {
			void *junk = len <= SCI_DATA_INTR_MAX ? malloc(len) : NULL;

			if (junk)
				ops->wait(u->port, junk, &len, 0);
			free(junk);
			if (junk)
				continue;
		}
		if (ret)
			return;
		if (len == sizeof(call) && call.magic == PIPE_MAGIC && !net->closing &&
		    call.node && call.node <= SCI_NODE_MAX)
			pipe_start(net, u, call.node, call.number, false);
	}
}

static void pipes_ready(void *obj)
{
	struct net *net = obj;
	struct list ready, *pos, *n;
	uint64_t count;
	ssize_t got = read(net->pipe_fd, &count, sizeof(count));

	(void)got;
	atomic_store(&net->pipe_news, false);
	for (unsigned int i = 0; i < net->n_under; i++)
		port_take(net, &net->under[i]);
	list_init(&ready);
	list_for_each_safe(pos, n, &net->pipes) {
		struct net_pipe *p = container_of(pos, struct net_pipe, link);

		if (atomic_exchange(&p->woken, false))
			list_add_tail(&p->ready, &ready);
	}
	/* the function of a pipe may end other pipes */
	while ((pos = list_pop(&ready))) {
		struct net_pipe *p = container_of(pos, struct net_pipe, ready);

		if (p->opening)
			pthread_cond_broadcast(&net->cond);
		else if (p->fn && !p->paused)
			p->fn(p->obj);
	}
}

/* Repeat the words of the heads in all pipes, since packets may have been lost. */
void net_pipes_tick(struct net *net)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &net->pipes) {
		struct net_pipe *p = container_of(pos, struct net_pipe, link);
		uint64_t before;

		if (p->opening || p->ret)
			continue;
		before = p->pipe.silent_ms;
		sci_pipe_repeat(&p->pipe);
		/* a write without an answer takes long: repeat the other words in the next tick */
		if (p->pipe.silent_ms && p->pipe.silent_ms != before)
			return;
	}
}

/* ---- fabrics that carry pipes ---- */

static int pipes_begin(struct net *net)
{
	int ret;

	if (net->pipe_fd)
		return 0;
	net->pipe_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (net->pipe_fd < 0)
		ret = -errno;
	else
		ret = sci_fd_track(&net->svc, net->pipe_fd);
	if (ret)
		net->pipe_fd = 0;
	return ret ? ret : sci_watch(&net->svc, net->pipe_fd, EPOLLIN, pipes_ready, net);
}

/**
 * net_under_add() - use a fabric for pipes
 * @number: the data interrupt through which other processes open pipes to this process
 * @owned: close the fabric with the net, but not if this call fails
 *
 * Context: called with svc.lock held.
 */
int net_under_add(struct net *net, struct sci_fabric *fabric, unsigned int adapter,
		  uint32_t number, bool owned)
{
	struct sci_lintr_param param = {
		.adapter = adapter, .number = number,
		.flags = SCI_INTR_DATA | SCI_INTR_FIXED, .event = port_event, .owner = net,
	};
	struct net_under *u = &net->under[net->n_under];
	int ret = net->n_under < NET_UNDERS ? pipes_begin(net) : -ENOSPC;

	if (ret)
		return ret;
	*u = (struct net_under){ .fabric = fabric, .adapter = adapter, .owned = owned };
	ret = fabric->ops->lintr.create(fabric, &param, &u->port);
	if (!ret)
		net->n_under++;
	return ret;
}

/*
 * Find a fabric that reaches a node. Begin with the fabric that reached the node last time: to find
 * that a fabric does not reach a node takes long.
 */
struct net_under *net_under_find(struct net *net, unsigned int node)
{
	unsigned int first = node <= SCI_NODE_MAX ? net->under_of[node / SCI_NODE_STEP] : 0;

	for (unsigned int i = 0; node <= SCI_NODE_MAX && i < net->n_under; i++) {
		unsigned int k = (first + i) % net->n_under;
		struct net_under *u = &net->under[k];

		if (u->fabric->ops->query.probe(u->fabric, u->adapter, node))
			continue;
		if (k != first)
			net->under_of[node / SCI_NODE_STEP] = (uint8_t)k;
		return u;
	}
	return NULL;
}

/* Return true if an adapter that carries pipes has no link. */
bool net_unders_down(struct net *net)
{
	bool down = false;

	for (unsigned int i = 0; i < net->n_under; i++) {
		const struct net_under *u = &net->under[i];

		down |= sci_link_down(u->fabric->ops->query.link(u->fabric, u->adapter));
	}
	return down;
}

/* Wait until no pipe is being opened. Context: the net is closing; svc.lock is held. */
void net_pipes_wait(struct net *net)
{
	pthread_cond_broadcast(&net->cond);
	while (net->n_opening)
		pthread_cond_wait(&net->cond, &net->svc.lock);
}

/* Free the pipes, and the interrupts for pipes. Context: the service thread has ended. */
void net_unders_end(struct net *net)
{
	while (!list_empty(&net->pipes))
		pipe_free(container_of(net->pipes.next, struct net_pipe, link));
	for (unsigned int i = 0; i < net->n_under; i++)
		net->under[i].fabric->ops->lintr.destroy(net->under[i].port);
}

/*
 * Close the fabrics that carry pipes. Context: no lock is held, because sci_fabric_open() takes
 * the locks in another order.
 */
void net_unders_close(struct net *net)
{
	for (unsigned int i = 0; i < net->n_under; i++)
		if (net->under[i].owned)
			sci_fabric_close(net->under[i].fabric);
	net->n_under = 0;
}

/* ---- sockets and pipes ---- */

/* Start to connect a wire. @fn is called when the wire is connected, or has failed. */
int net_wire_connect(struct net_socket *s, const struct net_addr *to, sci_watch_fn fn)
{
	struct net_under *under;

	if (to->pipe) {
		/* net_under_find() may take a second for a node that does not answer */
		under = s->net->n_under == 1 ? s->net->under : net_under_find(s->net, to->node);
		s->pipe = under ? pipe_start(s->net, under, to->node, to->pipe, true) : NULL;
		if (!s->pipe)
			return under ? -ENOMEM : -EHOSTUNREACH;
		return net_wire_watch(s, EPOLLOUT, fn);
	}
	if (connect(s->fd, (const struct sockaddr *)&to->sa, to->len) && errno != EINPROGRESS)
		return -errno;
	return net_wire_watch(s, EPOLLOUT, fn);
}

int net_wire_connected(struct net_socket *s)
{
	socklen_t len = sizeof(int);
	int error = 0, domain = 0;

	if (s->pipe)
		return s->pipe->ret;
	if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &len) ||
	    getsockopt(s->fd, SOL_SOCKET, SO_DOMAIN, &domain, &len))
		return -errno;
	/* no process listens: TCP has another error for this than vsock */
	if (domain == AF_VSOCK && error == ECONNRESET)
		error = ECONNREFUSED;
	return -error;
}

/* Watch a wire: from now on, call @fn(@s) for @events. */
int net_wire_watch(struct net_socket *s, uint32_t events, sci_watch_fn fn)
{
	if (!s->pipe) {
		sci_unwatch(&s->net->svc, s->fd);
		return sci_watch(&s->net->svc, s->fd, events, fn, s);
	}
	s->pipe->fn = fn;
	s->pipe->obj = s;
	/* call @fn once for bytes that arrived before; later events call it again */
	pipe_alert(s->pipe);
	return 0;
}

/* Watch a socket for @events. A pipe reports each event that a failed read or write waits for. */
void net_wire_events(struct net_socket *s, uint32_t events)
{
	if (!s->pipe)
		sci_watch_events(&s->net->svc, s->fd, events);
}

/* Call the wire's function again, as it has not read all bytes. Sockets report unread bytes. */
void net_wire_again(struct net_socket *s)
{
	if (s->pipe)
		pipe_alert(s->pipe);
}

void net_wire_pause(struct net_socket *s, bool pause)
{
	struct net_pipe *p = s->pipe;

	if (!p) {
		sci_watch_pause(&s->net->svc, s->fd, pause);
		return;
	}
	p->paused = pause;
	if (!pause && sci_pipe_arm(&p->pipe))
		pipe_alert(p);
}

/* Return true if the adapter of a pipe has no link: the pipe carries no bytes now. */
bool net_wire_down(const struct net_socket *s)
{
	return s->pipe && sci_link_down(s->pipe->pipe.link);
}

void net_wire_close(struct net_socket *s)
{
	if (s->pipe)
		net_pipe_close(s->pipe);
	else
		sci_fd_close(&s->net->svc, s->fd);
	s->pipe = NULL;
}

ssize_t net_wire_send(struct net_socket *s, const struct iovec *iov, size_t n)
{
	const struct msghdr m = { .msg_iov = (struct iovec *)iov, .msg_iovlen = n };
	ssize_t done;

	if (s->pipe)
		return sci_pipe_send(&s->pipe->pipe, iov, n, !s->pipe->paused);
	do {
		s->net->sends++;
		done = sendmsg(s->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (done < 0 && errno == EINTR);
	if (done < 0)
		return errno == ENOBUFS || errno == ENOMEM ? -EAGAIN : -errno;
	return done;
}

ssize_t net_wire_recv(struct net_socket *s, const struct iovec *iov, size_t n)
{
	struct msghdr m = { .msg_iov = (struct iovec *)iov, .msg_iovlen = n };
	ssize_t done;

	if (s->pipe)
		return sci_pipe_recv(&s->pipe->pipe, iov, n, !s->pipe->paused);
	do {
		s->net->receives++;
		done = recvmsg(s->fd, &m, MSG_DONTWAIT);
	} while (done < 0 && errno == EINTR);
	return done < 0 ? -errno : done;
}
