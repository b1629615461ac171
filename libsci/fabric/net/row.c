// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: messages in a row
 *
 * A system call for each short message costs more than all other work for the message. So a link
 * sends messages that follow each other closely with one system call.
 *
 * The first message leaves at once. A message within ROW_NS after another one waits, unless bytes
 * from the other side have arrived between them: then the program answers, and does not send in a
 * row. Waiting messages leave together:
 *
 *	- with the message that makes ROW_MESSAGES messages or ROW_BYTES bytes
 *	- when a thread of the program polls, which each wait does, or goes to sleep
 *	- with the next frame that cannot wait
 *	- after ROW_WAIT_NS, by a timer: the program may be busy with other work
 *	- when the program calls exit()
 *
 * A sender that waits for credits makes progress, which sends its row: the two sides never wait for
 * each other.
 */

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "libsci/fabric/net/net.h"

#define ROW_NS		10000u
#define ROW_MESSAGES	12u
#define ROW_BYTES	(32u << 10)
#define ROW_WAIT_NS	100000u

/* Send the bytes of all links that wait. */
void net_rows_send(struct net *net)
{
	struct list *item;

	while ((item = list_pop(&net->held)))
		net_link_flush(container_of(item, struct net_link, held));
}

static void row_timer_ready(void *obj)
{
	struct net *net = obj;
	uint64_t count;
	ssize_t got = read(net->row_fd, &count, sizeof(count));

	(void)got;
	net->row_set = false;
	net_rows_send(net);
}

/* Make the timer. Return 0 or -errno. */
int net_rows_init(struct net *net)
{
	int ret;

	list_init(&net->held);
	net->row_ns = ROW_NS;
	net->row_wait_ns = ROW_WAIT_NS;
	net->row_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (net->row_fd < 0)
		return -errno;
	ret = sci_fd_track(&net->svc, net->row_fd);
	return ret ? ret : sci_watch(&net->svc, net->row_fd, EPOLLIN, row_timer_ready, net);
}

/* Start the timer unless it runs. Return false if that fails. */
static bool row_timer_start(struct net *net)
{
	const struct itimerspec at = { .it_value.tv_nsec = net->row_wait_ns };

	if (!net->row_set)
		net->row_set = !timerfd_settime(net->row_fd, 0, &at, NULL);
	return net->row_set;
}

/* Return whether the message that ends with the last queued byte can wait for the next one. */
static bool row_goes_on(struct net_link *l)
{
	uint64_t now = sci_now_ns();
	bool near = now - l->pushed_ns < l->net->row_ns && l->pushed_rx == l->received;

	l->pushed_ns = now;
	l->pushed_rx = l->received;
	return near && l->row + 1 < ROW_MESSAGES && l->log.written - l->log.sent < ROW_BYTES;
}

/* Send the queued frames, or let them wait. Return true if they wait. */
bool net_link_push(struct net_link *l)
{
	struct net *net = l->net;

	if (!row_goes_on(l) || l->state != LINK_UP || !row_timer_start(net)) {
		net_link_flush(l);
		return false;
	}
	if (!l->row++)
		list_add_tail(&l->held, &net->held);
	return true;
}
