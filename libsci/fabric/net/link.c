// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Links: sockets, time limits, sending, and the end of a link. */

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "libsci/fabric/net/net.h"

#define DIAL_PAUSE_MS	100u
/* Time that a side waits for a new socket if it cannot connect itself, in ms. */
#define PASSIVE_MS	1000u
/* Pauses between attempts to return to an earlier route, in ms. */
#define RETURN_FIRST_MS	1000u
#define RETURN_MAX_MS	16000u

struct net_link *net_link_find(struct net *net, uint64_t nonce)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &net->links) {
		struct net_link *l = container_of(pos, struct net_link, link);

		if (l->nonce == nonce)
			return l;
	}
	return NULL;
}

struct net_link *net_link_new(struct net *net, uint64_t nonce, unsigned int node)
{
	struct net_link *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	if (net_random(&l->birth, sizeof(l->birth))) {
		free(l);
		return NULL;
	}
	/* a birth of 0 means that there is no link */
	l->birth |= 1;
	l->net = net;
	l->nonce = nonce;
	l->node = node;
	list_init(&l->imports);
	list_init(&l->importers);
	list_init(&l->targets);
	list_init(&l->questions);
	list_init(&l->left);
	list_init(&l->gets);
	list_init(&l->serving);
	list_init(&l->held);
	list_add_tail(&l->link, &net->links);
	return l;
}

/* ---- sockets ---- */

/* Close the link's socket, without a notice to the link or to a waiting thread. */
static void socket_drop(struct net_link *l)
{
	struct net_socket *s = l->socket;

	if (!s)
		return;
	net_keen_end(l);
	/* the thread waits for the link, which gets another socket */
	if (s->dial)
		*s->dial = (struct net_dial){ .done = true };
	s->dial = NULL;
	s->of = NULL;
	l->socket = NULL;
	net_socket_end(s, -ECONNRESET);
}

/* Make @s the socket of @l. net_link_attach() completes the change. */
void net_link_take(struct net_link *l, struct net_socket *s, uint32_t epoch, bool ours)
{
	if (l->socket != s)
		socket_drop(l);
	if (l->state == LINK_UP) {
		l->state = LINK_BROKEN;
		l->broken_ms = sci_now_ms();
	}
	l->socket = s;
	l->epoch = epoch;
	l->ours = ours;
	s->of = l;
}

/* Continue link @l on @s after the handshake. The other side has received up to @received. */
void net_link_attach(struct net_link *l, struct net_socket *s, uint64_t received)
{
	struct net *net = l->net;

	if (!s->client)
		net->n_handshakes--;
	list_del(&s->link);
	net_log_acked(&l->log, received);
	l->log.sent = received;
	l->copied_end = 0;
	l->told = l->received;
	l->state = LINK_UP;
	l->dialing = false;
	l->silent = false;
	net->now_ms = sci_now_ms();
	l->last_rx_ms = net->now_ms;
	l->last_tx_ms = net->now_ms;
	l->missing = 0;
	if (!l->return_pause_ms)
		l->return_pause_ms = RETURN_FIRST_MS;
	l->return_ms = net->now_ms + l->return_pause_ms;
	l->better = 0;
	/* without a watch the socket is useless: the next tick ends the link */
	if (net_wire_watch(s, EPOLLIN, net_link_ready))
		l->failed = true;
	net_link_flush(l);
	/* the handshake may acknowledge the bytes for which a thread of the program sleeps */
	if (net->news)
		net->news(net->news_owner);
	pthread_cond_broadcast(&net->cond);
}

/* Return whether the route is a fabric whose adapter, in this machine, has no link now. */
static bool link_is_cut(const struct net_link *l)
{
	return l->addr.below && l->socket && net_wire_down(l->socket);
}

/* Use another route for the next attempt. */
static void link_turn(struct net_link *l)
{
	struct net_addr next;

	if (!net_route_addr(l->net, l->node, ++l->turn, &next))
		l->turn = 0;
}

/* Set *@to to the address on route number @turn. Return false if there is no such address. */
static bool link_address(const struct net_link *l, unsigned int turn, struct net_addr *to)
{
	struct net_addr first;

	return l->addr.routed && net_route_addr(l->net, l->node, turn, &first) &&
	       net_addr_slot(&first, l->addr.slot, to);
}

/* Connect to the other side again. @l may have been freed after this call. */
static void link_dial(struct net_link *l)
{
	struct net_addr to;
	int ret;

	if (!link_address(l, l->turn, &to))
		to = l->addr;
	l->dial_ms = sci_now_ms() + DIAL_PAUSE_MS;
	l->dialing = true;
	l->cut = net_unders_down(l->net);
	ret = net_dial_start(l->net, &to, l->nonce, l->port, NULL);
	if (ret)
		net_link_dialed(l, &to, ret);
}

/*
 * Try an earlier route, which is better. The link leaves its socket when the other side answers on
 * the new one. The pause between attempts doubles, because the earlier route may fail again.
 */
static void link_return(struct net_link *l, uint64_t now)
{
	struct net_addr to;

	if (l->return_pause_ms < RETURN_MAX_MS)
		l->return_pause_ms *= 2;
	l->return_ms = now + l->return_pause_ms;
	if (link_address(l, l->better++ % l->turn, &to))
		net_dial_start(l->net, &to, l->nonce, l->port, NULL);
}

/*
 * Drop the link's socket. The time limit for a new socket counts from @since. @l may have been
 * freed after this call.
 */
void net_link_break(struct net_link *l, uint64_t since)
{
	/* a node that is cut off or silent answers a new attempt late, or never */
	if (l->state == LINK_UP && (l->silent || l->addr.below))
		link_turn(l);
	socket_drop(l);
	if (l->state == LINK_UP) {
		l->state = LINK_BROKEN;
		l->broken_ms = since;
	}
	if (l->bye || !l->net->retry_ms)
		net_link_lost(l, !l->bye);
	else if (net_addr_known(&l->addr) && !l->dialing)
		link_dial(l);
}

/*
 * Handle the end of a socket that this side has made, to the address @to. @l may have been freed
 * after this call.
 */
void net_link_dialed(struct net_link *l, const struct net_addr *to, int error)
{
	struct net_addr next;
	bool missing;

	/* the link is ending, or has another socket */
	if (list_empty(&l->link) || l->socket)
		return;
	l->dialing = false;
	/* an adapter without a link says nothing about the gateway or the process */
	l->cut |= net_unders_down(l->net);
	missing = to->via ? error == -EHOSTUNREACH && !l->cut : error == -ECONNREFUSED;
	l->missing = missing ? l->missing + 1 : to->below ? l->missing : 0;
	link_turn(l);
	if (l->state == LINK_NEW && list_empty(&l->questions))
		net_link_lost(l, true);
	/* the gateway is missing, or no process listens at the address: there may be other routes */
	else if (missing && net_route_addr(l->net, l->node, l->missing, &next))
		return;
	/* no process listens at any address, or another instance does */
	else if (missing || error == -ECONNREFUSED || error == -ENOENT || error == -ESTALE)
		net_link_lost(l, true);
}

static void sockets_forget(struct net_link *l)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &l->net->handshakes) {
		struct net_socket *s = container_of(pos, struct net_socket, link);

		if (s->of != l)
			continue;
		s->of = NULL;
		net_socket_end(s, -ECONNRESET);
	}
}

/* End the link and free it: the other instance cannot be reached. */
void net_link_lost(struct net_link *l, bool died)
{
	enum sci_event_type type = died ? SCI_EVENT_LOST : SCI_EVENT_DISCONNECT;
	struct list *item;

	list_del(&l->link);
	list_del(&l->held);
	socket_drop(l);
	sockets_forget(l);
	net_imports_lost(l);
	while (!list_empty(&l->importers))
		net_importer_end(container_of(l->importers.next, struct net_importer,
					      of_link), type);
	net_rintrs_lost(l);
	net_questions_end(l, -ENOTCONN);
	net_gets_end(l);
	net_targets_end(l);
	while ((item = list_pop(&l->serving)))
		free(container_of(item, struct net_served, link));
	net_log_free(&l->log);
	pthread_cond_broadcast(&l->net->cond);
	free(l);
}

/* ---- time ---- */

static bool link_is_overdue(const struct net_link *l, uint64_t now)
{
	uint64_t limit = l->net->retry_ms;

	if (!net_addr_known(&l->addr) && !l->silent && limit > PASSIVE_MS)
		limit = PASSIVE_MS;
	return now - l->broken_ms >= limit;
}

static void link_check_up(struct net_link *l, uint64_t now)
{
	struct net_frame ping = { .type = NET_ACK };
	uint64_t retry = l->net->retry_ms;

	if (!retry)
		return;
	l->silent = now - l->last_rx_ms > retry / 2 || link_is_cut(l);
	if (l->silent) {
		net_link_break(l, l->last_rx_ms);
		return;
	}
	if (now - l->last_tx_ms >= retry / 8) {
		net_link_send(l, &ping, NULL);
		net_link_flush(l);
	}
	if (l->turn && l->addr.routed && now >= l->return_ms)
		link_return(l, now);
	else if (!l->turn && now >= l->return_ms + RETURN_MAX_MS)
		l->return_pause_ms = RETURN_FIRST_MS;
}

/* Handle the time limits of a link. @l may have been freed after this call. */
void net_link_check(struct net_link *l, uint64_t now)
{
	if (l->failed)
		net_link_lost(l, true);
	else if (l->state == LINK_UP)
		link_check_up(l, now);
	else if (link_is_cut(l))
		net_socket_end(l->socket, -ECONNRESET);
	else if (l->state == LINK_BROKEN && link_is_overdue(l, now))
		net_link_lost(l, true);
	else if (l->state == LINK_BROKEN && net_addr_known(&l->addr) && !l->socket && !l->dialing &&
		 now >= l->dial_ms)
		link_dial(l);
}

/* ---- sending ---- */

static int link_send_head(struct net_link *l, struct net_frame *f)
{
	int ret;

	f->ack = l->received;
	ret = net_log_add(&l->log, f, sizeof(*f));
	l->failed |= ret != 0;
	l->told = l->received;
	l->ack_now = false;
	return ret;
}

/* Queue a frame. After -ENOBUFS or -ENOMEM, the next tick ends the link. */
int net_link_send(struct net_link *l, struct net_frame *f, const void *data)
{
	int ret = link_send_head(l, f);

	if (!ret && f->len)
		ret = net_log_add(&l->log, data, f->len);
	/* the log may have a part of the frame: the stream is broken for good */
	l->failed |= ret != 0;
	return ret;
}

/* Queue a frame as net_link_send() does. Its bytes stay in the memory of @owner. */
int net_link_lend(struct net_link *l, struct net_frame *f, const void *data, const void *owner)
{
	int ret = link_send_head(l, f);

	if (!ret)
		ret = net_log_lend(&l->log, owner, data, f->len);
	l->failed |= ret != 0;
	return ret;
}

/* End all loans of @owner. */
void net_links_take_back(struct net *net, const void *owner)
{
	struct net_link *l, *n;

	list_for_each_entry_safe(l, n, &net->links, link)
		l->failed |= net_log_take_back(&l->log, owner) != 0;
}

/* Send the queued frames. The next read reports errors. */
void net_link_flush(struct net_link *l)
{
	struct net_socket *s = l->socket;
	struct iovec iov[NET_PIECES];
	bool blocked = false;
	size_t pieces;
	ssize_t n;

	list_del(&l->held);
	l->row = 0;
	/* after a failure, the log may refer to memory that the program has back */
	if (l->state != LINK_UP || l->failed)
		return;
	while ((pieces = net_log_unsent(&l->log, iov))) {
		n = net_wire_send(s, iov, pieces);
		blocked = n == -EAGAIN;
		/* lent memory that cannot be read: a new socket would not help */
		l->failed |= n == -EFAULT;
		if (n < 0)
			break;
		l->log.sent += (uint64_t)n;
		l->last_tx_ms = l->net->now_ms;
	}
	if (blocked != s->blocked) {
		s->blocked = blocked;
		net_wire_events(s, EPOLLIN | (blocked ? EPOLLOUT : 0u));
	}
}
