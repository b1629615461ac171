// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: handshakes
 *
 *	client				server
 *	HELLO nonce, random	  ->
 *				  <-	CHALLENGE nonce, random, MAC
 *	PROOF epoch, position, MAC ->
 *				  <-	WELCOME status, position, MAC
 *
 * Each MAC covers all messages so far. So each side knows that the other side has the session's
 * key, and that the messages are not replayed. A server keeps at most STRANGERS sockets without
 * a PROOF, for HANDSHAKE_MS each. A new socket replaces the oldest.
 *
 * After a PROOF the client reads from no older socket of the link, because the server continues at
 * the position in the PROOF. Two instances may connect to each other at the same time. The link
 * counts its sockets: the count is the epoch. A server accepts a socket with a higher epoch than
 * that of its current socket. If two sockets have the same epoch, both sides choose the socket
 * that the instance with the lower nonce has made.
 *
 * Both sides send the slot of their own address. So a process that was found by its interrupt, in
 * a fabric, can be found at its sockets, too. A client whose link works may try an earlier route:
 * then the CHALLENGE makes it leave the socket of the link.
 *
 * A client that needs a gateway first makes a handshake with the gateway. The PROOF of this
 * handshake names the wanted process. After the WELCOME, the same socket leads to the next
 * gateway or to that process, and the client starts again with a HELLO.
 */

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "libsci/fabric/net/net.h"

#define STRANGERS	32u
#define HANDSHAKE_MS	2000u

static void handshake_ready(void *obj);

/* ---- sockets ---- */

int net_socket_open(int family)
{
	int one = 1, fd;

	do {
		fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	} while (fd < 0 && errno == EMFILE && !sci_raise_fd_limit());
	if (fd < 0)
		return -errno;
	if (family == AF_INET || family == AF_INET6)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	else if (family == AF_UNIX)
		sci_fd_pass_rights(fd, false);
	return fd;
}

static struct net_socket *socket_new(struct net *net, int fd, bool client)
{
	struct net_socket *s;

	if (fd >= 0 && sci_fd_track(&net->svc, fd))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s) {
		if (fd >= 0)
			sci_fd_close(&net->svc, fd);
		return NULL;
	}
	s->net = net;
	s->fd = fd;
	s->client = client;
	s->deadline_ms = sci_now_ms() + HANDSHAKE_MS;
	list_add_tail(&s->link, &net->handshakes);
	net->n_handshakes += !client;
	net_timer_set(net);
	return s;
}

/* Close @s. Notify the thread, the link or the gateway that waits for @s. */
void net_socket_end(struct net_socket *s, int error)
{
	struct net_link *l = s->of;

	if (!list_empty(&s->link) && !s->client)
		s->net->n_handshakes--;
	list_del(&s->link);
	if (s->forward)
		net_forward_end(s->forward, s, error);
	if (s->fd >= 0 || s->pipe)
		net_wire_close(s);
	if (l && l->socket == s)
		l->socket = NULL;
	if (s->dial) {
		s->dial->ret = error;
		s->dial->done = true;
		pthread_cond_broadcast(&s->net->cond);
	}
	/* the link waits for this socket: it may connect another socket */
	if (l && s->client && !s->returning)
		net_link_dialed(l, &s->addr, error);
	free(s);
}

static int socket_send(struct net_socket *s, const void *message, size_t len)
{
	const struct iovec iov = { (void *)message, len };

	/* a new socket has room for a message of the handshake */
	return net_wire_send(s, &iov, 1) == (ssize_t)len ? 0 : -ECONNRESET;
}

static struct net_head handshake_head(enum net_step step)
{
	return (struct net_head){ NET_MAGIC, NET_VERSION, (uint16_t)step };
}

/*
 * Compute the MAC of all messages of the handshake, up to @welcome. @proof and @welcome
 * are NULL if they have not been sent yet.
 */
static void handshake_mac(const struct net_socket *s, const struct net_proof *proof,
			  const struct net_welcome *welcome, uint8_t mac[NET_MAC])
{
	const struct iovec parts[] = {
		{ (void *)&s->hello, sizeof(s->hello) },
		{ (void *)&s->challenge, offsetof(struct net_challenge, mac) },
		{ (void *)proof, offsetof(struct net_proof, mac) },
		{ (void *)welcome, offsetof(struct net_welcome, mac) },
	};

	net_mac(s->net, welcome ? "welcome" : proof ? "proof" : "challenge", parts,
		welcome ? 4 : proof ? 3 : 2, mac);
}

/* ---- the server ---- */

static int server_hello(struct net_socket *s)
{
	struct net_challenge *c = &s->challenge;

	memcpy(&s->hello, s->in, sizeof(s->hello));
	if (!s->hello.nonce || s->hello.nonce == s->net->nonce || !s->hello.node ||
	    s->hello.node > SCI_NODE_MAX || s->hello.slot > NET_SLOTS_MAX)
		return -EPROTO;
	*c = (struct net_challenge){
		.head = handshake_head(NET_CHALLENGE), .node = s->net->node,
		.nonce = s->net->nonce,
	};
	if (net_random(c->random, sizeof(c->random)))
		return -EIO;
	handshake_mac(s, NULL, NULL, c->mac);
	s->step = NET_PROOF;
	return socket_send(s, c, sizeof(*c));
}

/* Return true if @s may become the socket of @l. The epochs decide. */
static bool server_accepts_socket(const struct net_socket *s, const struct net_link *l)
{
	return s->proof.epoch > l->epoch ||
	       (s->proof.epoch == l->epoch && l->ours && s->hello.nonce < s->net->nonce);
}

/* Return the link for the client's PROOF; NULL: refuse the PROOF with *@error. */
static struct net_link *server_link(struct net_socket *s, int *error)
{
	struct net_link *l = net_link_find(s->net, s->hello.nonce);
	const struct net_proof *p = &s->proof;

	if (l && l->their_birth && l->their_birth != p->birth) {
		/* the client no longer has its half of this link */
		net_link_lost(l, true);
		l = NULL;
	}
	*error = -ESTALE;
	if (p->yours && (!l || l->birth != p->yours))
		return NULL;
	*error = -ENOENT;
	if (p->wanted && !net_lintr_find(s->net, p->wanted))
		return NULL;
	*error = -EEXIST;
	if (l)
		return server_accepts_socket(s, l) && p->received <= l->log.written &&
		       p->received >= l->log.acked ? l : NULL;
	*error = p->received ? -EPROTO : -ENOMEM;
	return p->received ? NULL :
	       net_link_new(s->net, s->hello.nonce, s->hello.node);
}

/* Return true if the client of @s may have come on @route of this process to the client's node. */
static bool client_is_on(const struct net_socket *s, const struct net_addr *route)
{
	return route->below ? s->pipe != NULL : route->via && !s->hello.port;
}

/*
 * Store the client's address. If the client has connected by a pipe or through a gateway, and this
 * process has such a route to the client's node, use the routes. Else if the client listens, use the
 * peer address of @s with the client's port.
 */
static void client_store_address(struct net_socket *s, struct net_link *l)
{
	struct net_addr *a = &l->addr, first;

	for (unsigned int i = 0; net_route_addr(s->net, l->node, i, &first); i++)
		if (client_is_on(s, &first) && net_addr_slot(&first, s->hello.slot, a)) {
			l->turn = i;
			return;
		}
	if (!s->hello.port)
		return;
	*a = (struct net_addr){ .len = sizeof(a->sa), .slots = 1 };
	if (s->pipe || getpeername(s->fd, (struct sockaddr *)&a->sa, &a->len) ||
	    a->sa.ss_family == AF_UNIX)
		a->len = 0;
	net_addr_set_port(a, s->hello.port);
}

static int handshake_send_welcome(struct net_socket *s, struct net_welcome *w)
{
	w->head = handshake_head(NET_WELCOME);
	handshake_mac(s, &s->proof, w, w->mac);
	return socket_send(s, w, sizeof(*w));
}

/* Answer the client of a gateway: the next hop is connected, or @error. */
int net_forward_answer(struct net_socket *s, int error)
{
	struct net_welcome w = { .status = error };

	return handshake_send_welcome(s, &w);
}

static int server_proof(struct net_socket *s)
{
	struct net_welcome w = { 0 };
	uint8_t mac[NET_MAC];
	struct net_link *l;
	int ret;

	memcpy(&s->proof, s->in, sizeof(s->proof));
	handshake_mac(s, &s->proof, NULL, mac);
	if (!net_mac_equal(mac, s->proof.mac) || !s->proof.birth)
		return -EACCES;
	if (s->proof.forward) {
		ret = net_forward_begin(s);
		if (ret)
			net_forward_answer(s, ret);
		return ret;
	}
	/* the client is authenticated: find its link */
	l = server_link(s, &w.status);
	if (l)
		w.status = 0;
	w.port = net_port(s->net);
	w.slot = s->net->slot;
	w.birth = l ? l->birth : 0;
	w.received = l ? l->received : 0;
	ret = handshake_send_welcome(s, &w);
	if (ret || !l)
		return ret ? ret : w.status;
	l->their_birth = s->proof.birth;
	l->port = s->proof.port;
	client_store_address(s, l);
	net_link_take(l, s, s->proof.epoch, false);
	net_link_attach(l, s, s->proof.received);
	return 0;
}

/* ---- the client ---- */

static int client_hello(struct net_socket *s)
{
	s->hello = (struct net_hello){
		.head = handshake_head(NET_HELLO), .node = s->net->node,
		.slot = (uint16_t)s->net->slot, .nonce = s->net->nonce,
	};
	/* a gateway does not accept connections for this process */
	if (!s->addr.via)
		s->hello.port = s->net->port;
	if (net_random(s->hello.random, sizeof(s->hello.random)))
		return -EIO;
	s->step = NET_CHALLENGE;
	return socket_send(s, &s->hello, sizeof(s->hello));
}

static int client_connected(struct net_socket *s)
{
	int ret;

	if (s->pipe && s->pipe->opening)
		return 0;
	ret = net_wire_connected(s);
	if (ret)
		return s->addr.via ? -EHOSTUNREACH : ret;
	s->connecting = false;
	net_wire_events(s, EPOLLIN);
	net_wire_again(s);
	if (s->forward && !s->addr.via) {
		net_forward_ready(s);
		return 0;
	}
	s->hop = s->addr.via;
	return client_hello(s);
}

/* Send a gateway the PROOF that names the wanted process. */
static int client_forward(struct net_socket *s)
{
	struct net_proof *p = &s->proof;

	*p = (struct net_proof){
		.head = handshake_head(NET_PROOF), .epoch = s->addr.slot, .wanted = s->wanted,
		.forward = s->addr.node, .birth = s->net->nonce, .yours = s->only,
		.received = s->hops,
	};
	handshake_mac(s, p, NULL, p->mac);
	s->step = NET_WELCOME;
	return socket_send(s, p, sizeof(*p));
}

/* Start a new handshake: the gateway has connected the next hop. */
static int client_forwarded(struct net_socket *s)
{
	s->hop = false;
	s->deadline_ms = sci_now_ms() + HANDSHAKE_MS;
	if (!s->forward)
		return client_hello(s);
	net_forward_ready(s);
	return 0;
}

static int client_challenge(struct net_socket *s)
{
	struct net_proof *p = &s->proof;
	uint8_t mac[NET_MAC];
	struct net_link *l;

	memcpy(&s->challenge, s->in, sizeof(s->challenge));
	handshake_mac(s, NULL, NULL, mac);
	if (!net_mac_equal(mac, s->challenge.mac))
		return -EACCES;
	if (s->hop)
		return client_forward(s);
	/* the wanted process has ended, and another process has its port */
	if (s->only && s->challenge.nonce != s->only)
		return -ESTALE;
	if (s->challenge.nonce == s->net->nonce)
		return -ENOENT;
	l = net_link_find(s->net, s->challenge.nonce);
	/* the link has another socket, or will have it after a handshake */
	if (l && (l->state == LINK_UP || (l->socket && l->socket != s)) &&
	    !(s->returning && l->state == LINK_UP && s->addr.turn < l->turn))
		return -EISCONN;
	s->returning = false;
	if (!l)
		l = net_link_new(s->net, s->challenge.nonce, s->challenge.node);
	if (!l)
		return -ENOMEM;
	*p = (struct net_proof){
		.head = handshake_head(NET_PROOF), .epoch = l->epoch + 1,
		.wanted = s->wanted, .port = net_port(s->net), .birth = l->birth, .yours = l->their_birth,
		.received = l->received,
	};
	handshake_mac(s, p, NULL, p->mac);
	l->addr = s->addr;
	l->turn = s->addr.turn;
	net_link_take(l, s, p->epoch, true);
	s->step = NET_WELCOME;
	return socket_send(s, p, sizeof(*p));
}

static int client_welcome(struct net_socket *s)
{
	struct net_link *l = s->of;
	struct net_welcome w;
	uint8_t mac[NET_MAC];

	memcpy(&w, s->in, sizeof(w));
	handshake_mac(s, &s->proof, &w, mac);
	if (!net_mac_equal(mac, w.mac) || w.status > 0)
		return -EACCES;
	if (w.status)
		return w.status;
	if (s->hop)
		return client_forwarded(s);
	if ((l->their_birth && l->their_birth != w.birth) ||
	    w.received < l->log.acked || w.received > l->log.written)
		return -EPROTO;
	l->their_birth = w.birth;
	l->port = w.port;
	/* a fabric, here or at a gateway, finds the process by its interrupt */
	if (!l->addr.len)
		l->addr.slot = w.slot;
	if (s->dial) {
		*s->dial = (struct net_dial){ .done = true };
		s->dial = NULL;
		pthread_cond_broadcast(&s->net->cond);
	}
	net_link_attach(l, s, w.received);
	return 0;
}

/* ---- messages of both sides ---- */

static size_t step_get_size(enum net_step step)
{
	switch (step) {
	case NET_HELLO:
		return sizeof(struct net_hello);
	case NET_CHALLENGE:
		return sizeof(struct net_challenge);
	case NET_PROOF:
		return sizeof(struct net_proof);
	default:
		return sizeof(struct net_welcome);
	}
}

static int handshake_step(struct net_socket *s)
{
	struct net_head head;

	memcpy(&head, s->in, sizeof(head));
	if (head.magic != NET_MAGIC || head.version != NET_VERSION || head.step != s->step)
		return -EPROTO;
	s->have = 0;
	switch (s->step) {
	case NET_HELLO:
		return server_hello(s);
	case NET_CHALLENGE:
		return client_challenge(s);
	case NET_PROOF:
		return server_proof(s);
	default:
		return client_welcome(s);
	}
}

/* Read the next message. Return -EAGAIN if it is incomplete. */
static int handshake_read(struct net_socket *s)
{
	size_t want = step_get_size(s->step);
	struct iovec iov = { s->in + s->have, want - s->have };
	ssize_t n = net_wire_recv(s, &iov, 1);

	if (n <= 0)
		return n ? (int)n : -ECONNRESET;
	/* the client of a relay must not send before the gateway's answer */
	if (s->forward && !s->client)
		return -EPROTO;
	s->have += (size_t)n;
	net_wire_again(s);
	return s->have < want ? -EAGAIN : handshake_step(s);
}

static void handshake_ready(void *obj)
{
	struct net_socket *s = obj;
	int ret = s->connecting ? client_connected(s) : handshake_read(s);

	if (ret && ret != -EAGAIN)
		net_socket_end(s, ret);
}

void net_handshakes_check(struct net *net, uint64_t now)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &net->handshakes) {
		struct net_socket *s = container_of(pos, struct net_socket, link);

		if (now >= s->deadline_ms)
			net_socket_end(s, -ETIMEDOUT);
	}
}

/*
 * Find the address of the first hop to @to: @to itself, the gateway, or the process with the data
 * interrupt @wanted in another fabric.
 */
static int hop_find_first(struct net *net, const struct net_addr *to, uint32_t wanted,
			  struct net_addr *hop)
{
	struct net_addr a;

	*hop = *to;
	if (to->below)
		*hop = (struct net_addr){ .node = to->node, .pipe = wanted + NET_PIPE_PORT };
	if (!to->via)
		return 0;
	if (net_under_find(net, to->via)) {
		*hop = (struct net_addr){ .node = to->via, .pipe = NET_GATEWAY };
		return 0;
	}
	for (unsigned int i = 0; net_route_addr(net, to->via, i, &a); i++)
		if (a.len && net_addr_slot(&a, 0, hop))
			return 0;
	return -EHOSTUNREACH;
}

static struct net_socket *client_new(struct net *net, const struct net_addr *hop, int *error)
{
	int fd = hop->pipe ? -1 : net_socket_open(hop->sa.ss_family);
	struct net_socket *s;

	*error = fd;
	if (fd < 0 && !hop->pipe)
		return NULL;
	s = socket_new(net, fd, true);
	*error = s ? 0 : -ENOMEM;
	return s;
}

static int client_start(struct net *net, const struct net_addr *to, uint32_t wanted,
			struct net_socket **out)
{
	struct net_socket *s;
	struct net_addr hop;
	int ret = hop_find_first(net, to, wanted, &hop);

	s = ret ? NULL : client_new(net, &hop, &ret);
	if (!s)
		return ret;
	s->wanted = wanted;
	s->addr = *to;
	s->connecting = true;
	s->hops = NET_HOPS;
	ret = net_wire_connect(s, &hop, handshake_ready);
	if (ret) {
		net_socket_end(s, ret);
		return to->via ? -EHOSTUNREACH : ret;
	}
	*out = s;
	return 0;
}

/**
 * net_dial_start() - connect to @to
 * @only: the nonce of the wanted instance; 0: any instance
 * @wanted: a data interrupt that the instance must have; 0: none
 * @dial: gets the result; NULL: the link with nonce @only gets it
 */
int net_dial_start(struct net *net, const struct net_addr *to, uint64_t only,
		   uint32_t wanted, struct net_dial *dial)
{
	struct net_socket *s;
	int ret = client_start(net, to, wanted, &s);

	if (ret)
		return ret;
	s->only = only;
	s->dial = dial;
	s->of = only ? net_link_find(net, only) : NULL;
	s->returning = s->of && s->of->state == LINK_UP;
	return 0;
}

/* Connect to @to for the relay @forward. @hops: the number of gateways that may follow. */
int net_dial(struct net *net, const struct net_addr *to, uint32_t wanted, uint32_t hops,
	     struct net_forward *forward)
{
	struct net_socket *s;
	int ret = client_start(net, to, wanted, &s);

	if (ret)
		return ret;
	s->only = forward->side[0]->proof.yours;
	s->hops = hops;
	s->forward = forward;
	forward->side[1] = s;
	return 0;
}

/* ---- connections of other processes ---- */

static void stranger_drop_oldest(struct net *net)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &net->handshakes) {
		struct net_socket *s = container_of(pos, struct net_socket, link);

		if (!s->client) {
			net_socket_end(s, -ETIMEDOUT);
			return;
		}
	}
}

/* Start the server's side for a connection of another process, over @fd or @pipe. */
void net_accept(struct net *net, int fd, struct net_pipe *pipe)
{
	struct net_socket *s;

	if (net->n_handshakes >= STRANGERS)
		stranger_drop_oldest(net);
	s = socket_new(net, fd, false);
	if (!s) {
		if (pipe)
			net_pipe_close(pipe);
		return;
	}
	s->pipe = pipe;
	s->step = NET_HELLO;
	if (net_wire_watch(s, EPOLLIN, handshake_ready))
		net_socket_end(s, -ENOMEM);
}
