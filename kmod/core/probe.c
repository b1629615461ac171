// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Probes. */

#include <linux/sched.h>
#include <linux/slab.h>

#include "compat.h"
#include "connection.h"
#include "core.h"
#include "probe.h"

#define TIMEOUT_MIN_MS	250u	/* the shortest timeout allows for a round trip */

/**
 * struct sci_probe - a test whether a node answers
 * @link: entry in adapter->probes; adapter->lock protects this and the members below
 * @peer: the node that is probed
 * @cookie: number of the probe in PING and PONG
 * @result: 0 or -errno; 1: no answer yet
 */
struct sci_probe {
	struct list_head link;
	struct sci_peer *peer;
	u32 cookie;
	int result;
};

static void probe_end(struct sci_probe *pr, int result)
{
	WRITE_ONCE(pr->result, result);
	wake_up_all(&pr->peer->adapter->wait);
}

void sci_probe_answer(struct sci_peer *p, const struct sci_msg_simple *msg)
{
	struct sci_probe *pr;

	lockdep_assert_held(&p->adapter->lock);
	list_for_each_entry(pr, &p->adapter->probes, link)
		if (pr->peer == p && pr->cookie == le32_to_cpu(msg->handle))
			probe_end(pr, 0);
}

void sci_probe_peer_gone(struct sci_peer *p, int error)
{
	struct sci_probe *pr;

	lockdep_assert_held(&p->adapter->lock);
	list_for_each_entry(pr, &p->adapter->probes, link)
		if (pr->peer == p && pr->result > 0)
			probe_end(pr, error);
}

/* Post a PING. Return -ENOBUFS if too many messages wait for pr->peer, which is referenced then. */
static int probe_begin(struct sci_adapter *a, u32 node, struct sci_probe *pr)
{
	struct sci_message *m;
	struct sci_peer *p;

	lockdep_assert_held(&a->lock);
	if (!a->link_up && node != a->desc.node)
		return -ENETDOWN;
	p = sci_peer_get(a, node);
	if (IS_ERR(p))
		return PTR_ERR(p);
	pr->peer = p;
	if (sci_peer_has_many(p))
		return -ENOBUFS;
	m = sci_message_alloc();
	if (!m) {
		sci_peer_put(p);
		return -ENOMEM;
	}
	pr->cookie = a->next_probe++;
	pr->result = 1;
	list_add_tail(&pr->link, &a->probes);
	sci_post_simple(p, m, SCI_MSG_PING, pr->cookie);
	return 0;
}

static long probe_patience(u32 ms)
{
	return ms == SCI_TIMEOUT_INFINITE ? MAX_SCHEDULE_TIMEOUT :
					    msecs_to_jiffies(max(ms, TIMEOUT_MIN_MS));
}

static int probe_wait(struct sci_adapter *a, struct sci_probe *pr, long left)
{
	left = wait_event_interruptible_timeout(a->wait,
						READ_ONCE(pr->result) <= 0 ||
						sci_adapter_is_dead(a), left);
	if (left < 0)
		return -EINTR;
	if (sci_adapter_is_dead(a))
		return -ENODEV;
	return READ_ONCE(pr->result) > 0 ? -EHOSTUNREACH : pr->result;
}

int sci_probe(struct sci_object *obj, void *cmd, struct sci_new_file *nf)
{
	struct sci_ioc_probe *c = cmd;
	struct sci_adapter *a = obj->adapter;
	long left = probe_patience(c->timeout_ms);
	struct sci_probe pr;
	int ret;

	do {
		mutex_lock(&a->lock);
		ret = probe_begin(a, c->node, &pr);
		mutex_unlock(&a->lock);
		if (ret != -ENOBUFS)
			break;
		ret = sci_peer_wait_room_for(pr.peer, &left);
		sci_peer_put(pr.peer);
	} while (!ret);
	if (ret)
		return ret;
	ret = probe_wait(a, &pr, left);
	mutex_lock(&a->lock);
	list_del(&pr.link);
	mutex_unlock(&a->lock);
	sci_peer_put(pr.peer);
	return ret;
}
