// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The net fabric: opening, closing, the timer, and nodes. */

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "libsci/base/thread.h"
#include "libsci/fabric/core/common.h"
#include "libsci/fabric/net/net.h"

#define TICK_MS		100u
#define KEEN_TICK_MS	2u
/* Time for the last frames to arrive when the fabric is closed, in ms. */
#define LINGER_MS	2000u

static void service_link(struct sci_service *svc, bool down)
{
	(void)svc;
	(void)down;
}

static bool service_poll(struct sci_service *svc, bool crowded)
{
	return net_forwards_poll(container_of(svc, struct net, svc), crowded);
}

static void service_exiting(struct sci_service *svc)
{
	net_rows_send(container_of(svc, struct net, svc));
}

static const struct sci_service_ops service_ops = {
	.exiting = service_exiting, .link = service_link, .poll = service_poll, .above = true,
};

/* ---- the timer ---- */

/* Start or stop the timer: it runs while a time limit is pending. */
void net_timer_set(struct net *net)
{
	uint32_t ms = net->n_keen ? KEEN_TICK_MS :
		      !list_empty(&net->links) || !list_empty(&net->handshakes) ||
		      !list_empty(&net->pipes) ? TICK_MS : 0;
	const struct timespec ts = { .tv_nsec = (long)ms * 1000000 };
	const struct itimerspec at = { .it_interval = ts, .it_value = ts };

	if (ms == net->tick_ms)
		return;
	if (!net->tick_ms)
		net->ticked_ms = sci_now_ms();
	net->tick_ms = ms;
	timerfd_settime(net->timer_fd, 0, &at, NULL);
}

/*
 * This process was stopped between the last tick and @now: the other sides were not silent, and the
 * process could not connect to them. Do not count this time.
 */
static void links_postpone_timeout(struct net *net, uint64_t now)
{
	uint64_t gap = now - net->now_ms;
	struct list *pos, *n;

	list_for_each_safe(pos, n, &net->links) {
		struct net_link *l = container_of(pos, struct net_link, link);

		l->last_rx_ms += gap;
		/* the link may have broken after the last tick */
		l->broken_ms = l->broken_ms + gap < now ? l->broken_ms + gap : now;
	}
}

static void timer_ready(void *obj)
{
	struct net *net = obj;
	uint64_t now = sci_now_ms(), count;
	struct list *pos, *n;
	ssize_t got = read(net->timer_fd, &count, sizeof(count));

	(void)got;
	net_keen_tick(net);
	if (now - net->now_ms < TICK_MS / 2)
		return;
	if (now - net->ticked_ms > 5 * TICK_MS)
		links_postpone_timeout(net, now);
	net->now_ms = now;
	net_pipes_tick(net);
	list_for_each_safe(pos, n, &net->links)
		net_link_check(container_of(pos, struct net_link, link), now);
	net_handshakes_check(net, now);
	net_timer_set(net);
	net->ticked_ms = sci_now_ms();
}

/* ---- opening and closing ---- */

static void net_free(struct net *net)
{
	sci_service_close(&net->svc);
	net_routes_free(net);
	hash_free(&net->segments);
	pthread_cond_destroy(&net->cond);
	free(net);
}

static struct net *net_new(void)
{
	struct net *net = calloc(1, sizeof(*net));

	if (!net)
		return NULL;
	net->base.ops = &sci_net_fabric;
	net->status.map = SCI_PIO_MAP_CACHED;
	net->now_ms = sci_now_ms();
	net->slot = NET_SLOTS_MAX;
	list_init(&net->routes);
	list_init(&net->links);
	list_init(&net->handshakes);
	list_init(&net->pipes);
	list_init(&net->forwards);
	list_init(&net->busy);
	list_init(&net->lintrs);
	list_init(&net->rintrs);
	sci_cond_init(&net->cond);
	return net;
}

static int net_set_up(struct net *net)
{
	int ret;

	net->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (net->timer_fd < 0)
		return -errno;
	ret = sci_fd_track(&net->svc, net->timer_fd);
	ret = ret ? ret : sci_watch(&net->svc, net->timer_fd, EPOLLIN, timer_ready, net);
	ret = ret ? ret : net_rows_init(net);
	if (!ret && net->listen.len)
		ret = net_listen(net);
	return ret;
}

static int net_open(struct sci_fabric **out, const struct sci_fabric_place *at,
		    const char *arg)
{
	struct net *net = net_new();
	int ret;

	if (!net)
		return -ENOMEM;
	net->node = SCI_NODE_STEP;
	ret = sci_service_open(&net->svc, &service_ops);
	ret = ret ? ret : sci_place_node(at, &net->node);
	ret = ret ? ret : net_read_environment(net, arg, at->peers);
	ret = ret ? ret : net_auth_init();
	ret = ret ? ret : net_random(&net->nonce, sizeof(net->nonce));
	net->nonce |= 1;
	ret = ret ? ret : net_set_up(net);
	ret = sci_service_opened(&net->svc, ret);
	if (ret) {
		sci_service_stop(&net->svc);
		net_free(net);
		return ret;
	}
	*out = &net->base;
	return 0;
}

static bool links_all_acked(struct net *net)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &net->links) {
		struct net_link *l = container_of(pos, struct net_link, link);

		if (l->log.acked != l->log.written && !l->bye)
			return false;
	}
	return true;
}

static void net_send_bye(struct net *net)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &net->links) {
		struct net_link *l = container_of(pos, struct net_link, link);
		struct net_frame f = { .type = NET_BYE, .flags = NET_ACK_NOW };

		if (l->state == LINK_UP)
			net_link_send(l, &f, NULL);
		net_link_flush(l);
	}
}

static void links_end(struct net *net)
{
	struct list *item;

	while (!list_empty(&net->links))
		net_link_lost(container_of(net->links.next, struct net_link, link), false);
	while (!list_empty(&net->forwards))
		net_forward_end(container_of(net->forwards.next, struct net_forward, link),
				NULL, -ECANCELED);
	while ((item = list_pop(&net->handshakes)))
		net_socket_end(container_of(item, struct net_socket, link), -ECANCELED);
	net_unders_end(net);
}

static void net_close(struct sci_fabric *f)
{
	struct net *net = net_of(f);
	struct timespec until = sci_deadline(LINGER_MS);

	pthread_mutex_lock(&net->svc.lock);
	net->news = NULL;
	net->stopped = true;
	net->closing = true;
	net_send_bye(net);
	while (!links_all_acked(net) &&
	       !sci_cond_wait(&net->cond, &net->svc.lock, LINGER_MS, &until))
		;
	net_pipes_wait(net);
	pthread_mutex_unlock(&net->svc.lock);
	sci_service_stop(&net->svc);
	pthread_mutex_lock(&net->svc.lock);
	links_end(net);
	net_listen_end(net);
	pthread_mutex_unlock(&net->svc.lock);
	net_unders_close(net);
	net_free(net);
}

/* ---- adapters and nodes ---- */

static int net_adapter(struct sci_fabric *f, unsigned int adapter,
		       struct sci_adapter_info *info)
{
	if (adapter)
		return -ENODEV;
	*info = (struct sci_adapter_info){
		.node = net_of(f)->node, .type = "net", .link_up = true,
	};
	return 0;
}

static struct sci_link_status *net_status(struct sci_fabric *f, unsigned int adapter)
{
	(void)adapter;
	return &net_of(f)->status;
}

/* Return 0 if there is a route to the node. Only a connection shows that the node answers. */
static int net_probe(struct sci_fabric *f, unsigned int adapter, unsigned int node)
{
	struct net *net = net_of(f);
	struct list *pos, *n;
	int ret;

	(void)adapter;
	if (net_route_find(net, node))
		return 0;
	ret = -EHOSTUNREACH;
	pthread_mutex_lock(&net->svc.lock);
	list_for_each_safe(pos, n, &net->links)
		if (container_of(pos, struct net_link, link)->node == node)
			ret = 0;
	pthread_mutex_unlock(&net->svc.lock);
	return ret;
}

static int net_nodes(struct sci_fabric *f,
		     int (*fn)(void *arg, const struct sci_node_info *n), void *arg)
{
	struct net *net = net_of(f);
	struct list *pos, *n;
	int ret = 0;

	list_for_each_safe(pos, n, &net->routes) {
		const struct sci_node_info info = {
			.node = container_of(pos, struct net_route, link)->node,
			.remote = true,
		};

		if (!ret)
			ret = fn(arg, &info);
	}
	return ret;
}

static int net_segments(struct sci_fabric *f,
			int (*fn)(void *arg, const struct sci_segment_info *s), void *arg)
{
	(void)f;
	(void)fn;
	(void)arg;
	return 0;
}

static bool net_present(void)
{
	return true;
}

const struct sci_fabric_ops sci_net_fabric = {
	.name = "net",
	.present = net_present,
	.open = net_open,
	.close = net_close,
	.query = {
		.adapter = net_adapter,
		.link = net_status,
		.probe = net_probe,
		.nodes = net_nodes,
		.segments = net_segments,
	},
	.lseg = {
		.create = net_lseg_create,
		.export = net_lseg_export,
		.unexport = net_lseg_unexport,
		.importers = net_lseg_importers,
		.destroy = net_lseg_destroy,
		.id = net_lseg_id,
		.size = net_lseg_size,
		.map = net_lseg_map,
	},
	.local = {
		.reg = net_lseg_register,
	},
	.rseg = {
		.connect = net_rseg_connect,
		.cancel_connect = net_cancel_connect,
		.disconnect = net_rseg_disconnect,
		.size = net_rseg_size,
		.readonly = net_rseg_readonly,
		.status = net_rseg_status,
		.map = net_rseg_map,
		.store_barrier = net_store_barrier,
	},
	.lintr = {
		.create = net_lintr_create,
		.wait = net_lintr_wait,
		.fd = net_lintr_fd,
		.cancel = net_lintr_cancel,
		.destroy = net_lintr_destroy,
	},
	.rintr = {
		.connect = net_rintr_connect,
		.trigger = net_rintr_trigger,
		.disconnect = net_rintr_disconnect,
	},
	.stream = &net_stream_ops,
	.unmap = net_unmap,
};
