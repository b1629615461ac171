// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */

#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/lockdep.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "core.h"
#include "peer.h"
#include "trace.h"

static_assert(sizeof(struct sci_packet) == SCI_PACKET_SIZE);

/* Limit of messages to the own node that one run of the work delivers. */
#define LOCAL_BATCH	32
/* A node with this many waiting messages is behind. A node that answers never has that many. */
#define BEHIND_MIN	131072
/* While so many messages wait for a node, users post no triggers to it: 32 full windows. */
#define MANY_MIN	1024

static unsigned int retry_ms __ro_after_init = 20;
module_param(retry_ms, uint, 0444);
MODULE_PARM_DESC(retry_ms,
		 "ms until a control packet is sent again, doubled each time (20)");

static unsigned int retry_max_ms __ro_after_init = 500;
module_param(retry_max_ms, uint, 0444);
MODULE_PARM_DESC(retry_max_ms, "longest time until a control packet is sent again, in ms (500)");

static unsigned int heartbeat_ms __ro_after_init = 500;
module_param(heartbeat_ms, uint, 0444);
MODULE_PARM_DESC(heartbeat_ms,
		 "ms without a packet after which a connected node gets a heartbeat (500)");

static unsigned int connect_ms __ro_after_init = 3000;
module_param(connect_ms, uint, 0444);
MODULE_PARM_DESC(connect_ms,
		 "ms a node has for its first answer before it counts as unreachable (3000)");

static unsigned int dead_ms __ro_after_init = 5000;
module_param(dead_ms, uint, 0444);
MODULE_PARM_DESC(dead_ms,
		 "ms of silence after which a connected node counts as dead (5000)");

static unsigned int absent_ms __ro_after_init = 250;
module_param(absent_ms, uint, 0444);
MODULE_PARM_DESC(absent_ms,
		 "ms after which a silent node counts as dead if packets to it come back (250)");

unsigned long sci_peer_patience(void)
{
	return msecs_to_jiffies(max3(dead_ms, heartbeat_ms, 1u));
}

static u64 ns_from_ms(unsigned int ms)
{
	return (u64)max(ms, 1u) * NSEC_PER_MSEC;
}

static bool peer_is_own_node(const struct sci_peer *p)
{
	return p->node == p->adapter->desc.node;
}

static struct sci_peer *peer_of(struct sci_session *s)
{
	return container_of(s, struct sci_peer, session);
}

/* ---- operations of a session ---- */

static int peer_send(struct sci_session *s, const struct sci_packet *packet,
		     bool again)
{
	struct sci_peer *p = peer_of(s);
	struct sci_adapter *a = p->adapter;

	lockdep_assert_held(&p->lock);
	sci_count(a, SCI_COUNT_CTRL_SENT, 1);
	if (again)
		sci_count(a, SCI_COUNT_CTRL_RESENT, 1);
	trace_sci_packet(a, p->node, true, packet->type,
			 le32_to_cpu(packet->seq));
	return a->desc.ops->send(a, p->node, packet);
}

static void peer_changed(struct sci_session *s, enum sci_session_state old)
{
	struct sci_peer *p = peer_of(s);

	lockdep_assert_held(&p->lock);
	if (s->state == SCI_SESSION_UP)
		WRITE_ONCE(p->met, true);
	trace_sci_peer_state(p->adapter, p->node, sci_session_state_name(old),
			     sci_session_state_name(s->state));
}

static const struct sci_session_ops peer_session_ops = {
	.send = peer_send,
	.changed = peer_changed,
};

/* ---- time ---- */

/* Pause the session if the link is down. sci_peers_kick() resumes it. */
static void peer_check_link(struct sci_peer *p)
{
	lockdep_assert_held(&p->lock);
	if (!READ_ONCE(p->adapter->link_up))
		sci_session_pause(&p->session);
}

/* Arm the work. If the work runs too early, it asks the session again. */
static void peer_arm_at(struct sci_peer *p, u64 at)
{
	u64 now = ktime_get_ns();
	unsigned long delay = 0;

	lockdep_assert_held(&p->lock);
	if (at >= p->work_at)
		return;
	p->work_at = at;
	if (at > now)
		delay = nsecs_to_jiffies(at - now) + 1;
	mod_delayed_work(p->adapter->wq, &p->work, delay);
}

static void peer_arm(struct sci_peer *p)
{
	peer_arm_at(p, sci_session_deadline(&p->session));
}

/* ---- reports ---- */

static void peer_deliver(struct sci_peer *p)
{
	u8 body[SCI_MESSAGE_SIZE] __aligned(8);

	while (sci_session_take(&p->session, body)) {
		mutex_unlock(&p->lock);
		p->ops->deliver(p, body);
		mutex_lock(&p->lock);
	}
}

static void peer_report_gone(struct sci_peer *p)
{
	int error = p->session.error;

	if (p->session.state != SCI_SESSION_GONE)
		return;
	mutex_unlock(&p->lock);
	p->ops->gone(p, error);
	mutex_lock(&p->lock);
	sci_session_revive(&p->session, ktime_get_ns());
}

/* Wake the threads in sci_peer_wait_room(). */
static void peer_report_room(struct sci_peer *p)
{
	if (wq_has_sleeper(&p->adapter->wait) && !sci_peer_has_many(p))
		wake_up_all(&p->adapter->wait);
}

/* Deliver messages, report an end of the session, and acknowledge. Drop @p->lock meanwhile. */
static void peer_settle(struct sci_peer *p)
{
	lockdep_assert_held(&p->order);
	lockdep_assert_held(&p->lock);
	peer_deliver(p);
	peer_report_gone(p);
	sci_session_settle(&p->session);
	peer_report_room(p);
	peer_arm(p);
}

/* ---- the own node ---- */

static void peer_local_post(struct sci_peer *p, struct sci_message *m)
{
	lockdep_assert_held(&p->lock);
	list_add_tail(&m->link, &p->local);
	WRITE_ONCE(p->nr_local, p->nr_local + 1);
	peer_arm_at(p, 0);
}

static void peer_local_deliver(struct sci_peer *p)
{
	struct sci_message *m;
	int i;

	lockdep_assert_held(&p->order);
	lockdep_assert_held(&p->lock);
	for (i = 0; i < LOCAL_BATCH && !list_empty(&p->local); i++) {
		m = list_first_entry(&p->local, struct sci_message, link);
		list_del(&m->link);
		WRITE_ONCE(p->nr_local, p->nr_local - 1);
		mutex_unlock(&p->lock);
		p->ops->deliver(p, m->body);
		mutex_lock(&p->lock);
		m->done(m);
	}
	if (!list_empty(&p->local))
		peer_arm_at(p, 0);
}

static void peer_local_close(struct sci_peer *p)
{
	struct sci_message *m, *next;

	lockdep_assert_held(&p->lock);
	list_for_each_entry_safe(m, next, &p->local, link) {
		list_del(&m->link);
		m->done(m);
	}
}

/* ---- sysfs: peerNODE/ ---- */

static struct sci_peer *peer_of_dev(struct device *dev)
{
	return container_of(dev, struct sci_peer, dev);
}

static ssize_t state_show(struct device *dev, struct device_attribute *attr,
			  char *buf)
{
	struct sci_peer *p = peer_of_dev(dev);
	enum sci_session_state state = READ_ONCE(p->session.state);

	if (peer_is_own_node(p))
		return sysfs_emit(buf, "local\n");
	return sysfs_emit(buf, "%s\n", sci_session_state_name(state));
}

static ssize_t heard_ms_show(struct device *dev, struct device_attribute *attr,
			     char *buf)
{
	struct sci_peer *p = peer_of_dev(dev);
	u64 heard = READ_ONCE(p->session.heard);

	if (!heard)
		return sysfs_emit(buf, "-1\n");
	return sysfs_emit(buf, "%llu\n",
			  div_u64(ktime_get_ns() - heard, NSEC_PER_MSEC));
}

static ssize_t generation_show(struct device *dev, struct device_attribute *attr,
			       char *buf)
{
	struct sci_peer *p = peer_of_dev(dev);

	return sysfs_emit(buf, "0x%08x\n", READ_ONCE(p->session.peer));
}

static ssize_t connections_show(struct device *dev, struct device_attribute *attr,
				char *buf)
{
	struct sci_peer *p = peer_of_dev(dev);

	return sysfs_emit(buf, "%u\n", READ_ONCE(p->connections));
}

static DEVICE_ATTR_RO(state);
static DEVICE_ATTR_RO(heard_ms);
static DEVICE_ATTR_RO(generation);
static DEVICE_ATTR_RO(connections);

static struct attribute *peer_attrs[] = {
	&dev_attr_state.attr,
	&dev_attr_heard_ms.attr,
	&dev_attr_generation.attr,
	&dev_attr_connections.attr,
	NULL
};
ATTRIBUTE_GROUPS(peer);

static void peer_dev_release(struct device *dev)
{
	struct sci_peer *p = peer_of_dev(dev);

	p->ops->release(p);
	mutex_destroy(&p->data_lock);
	mutex_destroy(&p->lock);
	mutex_destroy(&p->order);
	kfree(p);
}

/* Set up the device of a peer, which has no class and no bus, like a segment's device. */
static void peer_dev_init(struct sci_peer *p)
{
	device_initialize(&p->dev);
	device_set_pm_not_required(&p->dev);
	p->dev.parent = &p->adapter->dev;
	p->dev.groups = peer_groups;
	p->dev.release = peer_dev_release;
}

static int peer_dev_add(struct sci_peer *p)
{
	int ret = dev_set_name(&p->dev, "peer%u", p->node);

	return ret ? ret : device_add(&p->dev);
}

/* ---- life ---- */

/*
 * Return whether the node can be forgotten.  A node that has sent a packet may be
 * about to answer: it is kept for as long as a session needs to come up.
 */
static bool peer_is_unused(struct sci_peer *p)
{
	u64 until = p->last_packet ? p->last_packet + p->session.times.connect :
				     0;

	lockdep_assert_held(&p->lock);
	if (p->users || p->met || p->session.state != SCI_SESSION_IDLE)
		return false;
	if (until <= ktime_get_ns())
		return true;
	peer_arm_at(p, until);
	return false;
}

/*
 * Remove the peer from the table if it is unused. Close its session: a closed session does
 * not arm the work again.
 */
static bool peer_leave_table(struct sci_peer *p)
{
	struct xarray *peers = &p->adapter->peers;
	bool leave;

	mutex_lock(&p->lock);
	xa_lock(peers);
	leave = peer_is_unused(p);
	if (leave)
		__xa_erase(peers, p->node);
	xa_unlock(peers);
	if (leave) {
		sci_session_close(&p->session);
		cancel_delayed_work(&p->work);
	}
	mutex_unlock(&p->lock);
	return leave;
}

/*
 * Forget a node without users that never had a session, because users may connect to any number
 * of node ids. The call may free @p.
 */
static void peer_forget(struct sci_peer *p)
{
	struct sci_adapter *a = p->adapter;
	bool left;

	if (READ_ONCE(p->met))
		return;
	mutex_lock(&a->lock);
	left = peer_leave_table(p);
	if (left)
		device_del(&p->dev);
	mutex_unlock(&a->lock);
	if (left)
		put_device(&p->dev);
}

static void peer_work(struct work_struct *work)
{
	struct sci_peer *p = container_of(to_delayed_work(work),
					  struct sci_peer, work);

	mutex_lock(&p->order);
	mutex_lock(&p->lock);
	p->work_at = SCI_SESSION_NEVER;
	peer_local_deliver(p);
	peer_check_link(p);
	sci_session_tick(&p->session, ktime_get_ns());
	peer_settle(p);
	mutex_unlock(&p->lock);
	mutex_unlock(&p->order);
	peer_forget(p);
}

static void peer_session_init(struct sci_peer *p)
{
	const struct sci_session_times times = {
		.retry = ns_from_ms(retry_ms),
		.retry_max = ns_from_ms(max(retry_ms, retry_max_ms)),
		.heartbeat = ns_from_ms(heartbeat_ms),
		.connect = ns_from_ms(connect_ms),
		.dead = ns_from_ms(max(dead_ms, heartbeat_ms)),
		.absent = ns_from_ms(absent_ms),
	};

	/* begin with a random tag: the tags of a forgotten peer must not be used again */
	sci_session_init(&p->session, &peer_session_ops, &times,
			 get_random_u32());
}

static struct sci_peer *peer_alloc(struct sci_adapter *a, u32 node)
{
	struct sci_peer *p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);

	if (!p)
		return NULL;
	p->adapter = a;
	p->ops = a->peer_ops;
	p->node = node;
	p->met = node == a->desc.node;
	mutex_init(&p->order);
	mutex_init(&p->lock);
	mutex_init(&p->data_lock);
	INIT_LIST_HEAD(&p->local);
	INIT_LIST_HEAD(&p->links);
	INIT_DELAYED_WORK(&p->work, peer_work);
	p->work_at = SCI_SESSION_NEVER;
	peer_session_init(p);
	peer_dev_init(p);
	return p;
}

/* Make a peer. Return the reference that @a->peers holds. */
static struct sci_peer *peer_create(struct sci_adapter *a, u32 node)
{
	struct sci_peer *p = peer_alloc(a, node);
	int ret;

	if (!p)
		return ERR_PTR(-ENOMEM);
	ret = peer_dev_add(p);
	if (ret)
		goto err_put;
	ret = xa_err(xa_store(&a->peers, node, p, GFP_KERNEL_ACCOUNT));
	if (ret)
		goto err_del;
	return p;

err_del:
	device_del(&p->dev);
err_put:
	put_device(&p->dev);
	return ERR_PTR(ret);
}

static bool peer_node_valid(u32 node)
{
	return node && node <= SCI_IOC_NODE_MAX && node % SCI_IOC_NODE_STEP == 0;
}

static void peer_hold(struct sci_peer *p)
{
	p->users++;
	get_device(&p->dev);
}

static struct sci_peer *peer_lookup(struct sci_adapter *a, u32 node)
{
	struct sci_peer *p;

	xa_lock(&a->peers);
	p = xa_load(&a->peers, node);
	if (p)
		peer_hold(p);
	xa_unlock(&a->peers);
	return p;
}

struct sci_peer *sci_peer_get(struct sci_adapter *a, u32 node)
{
	struct sci_peer *p;

	lockdep_assert_held(&a->lock);
	if (!peer_node_valid(node))
		return ERR_PTR(-EINVAL);
	p = peer_lookup(a, node);
	if (p)
		return p;
	p = peer_create(a, node);
	if (!IS_ERR(p))
		sci_peer_hold(p);
	return p;
}

void sci_peer_hold(struct sci_peer *p)
{
	struct xarray *peers = &p->adapter->peers;

	xa_lock(peers);
	peer_hold(p);
	xa_unlock(peers);
}

/* Run the work, which forgets the node if it has no other user. */
static void peer_abandon(struct sci_peer *p)
{
	mutex_lock(&p->lock);
	if (p->session.state != SCI_SESSION_CLOSED)
		peer_arm_at(p, 0);
	mutex_unlock(&p->lock);
}

void sci_peer_put(struct sci_peer *p)
{
	struct xarray *peers = &p->adapter->peers;
	bool unused;

	xa_lock(peers);
	unused = !--p->users;
	xa_unlock(peers);
	if (unused && !READ_ONCE(p->met))
		peer_abandon(p);
	put_device(&p->dev);
}

void sci_peer_post(struct sci_peer *p, struct sci_message *m)
{
	mutex_lock(&p->lock);
	if (p->session.state == SCI_SESSION_CLOSED) {
		m->done(m);
	} else if (peer_is_own_node(p)) {
		peer_local_post(p, m);
	} else {
		peer_check_link(p);
		sci_session_post(&p->session, m, ktime_get_ns());
		peer_arm(p);
	}
	mutex_unlock(&p->lock);
}

bool sci_peer_is_behind(struct sci_peer *p)
{
	return READ_ONCE(p->session.nr_messages) >= BEHIND_MIN;
}

static void peer_watch_change(struct sci_peer *p, int change)
{
	lockdep_assert_held(&p->adapter->lock);
	WRITE_ONCE(p->connections, p->connections + change);
	mutex_lock(&p->lock);
	sci_session_watch(&p->session, p->connections, ktime_get_ns());
	peer_arm(p);
	mutex_unlock(&p->lock);
}

/* Return the number of waiting messages, which are in @p->local or in @p->session. */
static unsigned int peer_waiting(struct sci_peer *p)
{
	return READ_ONCE(p->session.nr_messages) + READ_ONCE(p->nr_local);
}

bool sci_peer_has_many(struct sci_peer *p)
{
	return peer_waiting(p) >= MANY_MIN;
}

static bool peer_room_settled(struct sci_peer *p)
{
	return !sci_peer_has_many(p) || sci_adapter_is_dead(p->adapter);
}

/* Convert @rest, the result of a wait for room, to the error of the caller. */
static int peer_room_result(struct sci_peer *p, long rest)
{
	if (rest <= 0)
		return rest ? -EINTR : -ENOBUFS;
	return sci_adapter_is_dead(p->adapter) ? -ENODEV : 0;
}

int sci_peer_wait_room(struct sci_peer *p)
{
	long rest = wait_event_killable_timeout(p->adapter->wait, peer_room_settled(p),
						sci_peer_patience());

	return peer_room_result(p, rest);
}

int sci_peer_wait_room_for(struct sci_peer *p, long *left)
{
	long limit = min_t(unsigned long, *left, sci_peer_patience());
	long rest = wait_event_interruptible_timeout(p->adapter->wait, peer_room_settled(p),
						     limit);

	if (*left != MAX_SCHEDULE_TIMEOUT)
		*left -= limit - max(rest, 0L);
	return peer_room_result(p, rest);
}

void sci_peer_watch(struct sci_peer *p)
{
	peer_watch_change(p, 1);
}

void sci_peer_unwatch(struct sci_peer *p)
{
	peer_watch_change(p, -1);
}

void sci_peer_link(struct sci_peer *p, struct list_head *link)
{
	list_add_tail(link, &p->links);
	sci_peer_watch(p);
}

void sci_peer_unlink(struct sci_peer *p, struct list_head *link)
{
	list_del_init(link);
	sci_peer_unwatch(p);
}

/* Return a reference to the node. An unknown node gets a peer once it has sent a valid packet. */
static struct sci_peer *peer_find(struct sci_adapter *a, u32 node,
				  const struct sci_packet *packet)
{
	struct sci_peer *p = peer_lookup(a, node);

	if (p)
		return p;
	if (node == a->desc.node || !sci_packet_valid(packet))
		return ERR_PTR(-EBADMSG);
	mutex_lock(&a->lock);
	p = sci_peer_get(a, node);
	mutex_unlock(&a->lock);
	return p;
}

static int peer_receive(struct sci_peer *p, const struct sci_packet *packet)
{
	int ret;

	if (peer_is_own_node(p))
		return -EBADMSG;
	mutex_lock(&p->order);
	mutex_lock(&p->lock);
	peer_check_link(p);
	p->last_packet = ktime_get_ns();
	ret = sci_session_receive(&p->session, packet, ktime_get_ns());
	peer_settle(p);
	mutex_unlock(&p->lock);
	mutex_unlock(&p->order);
	return ret;
}

void sci_peer_receive(struct sci_adapter *a, u32 node, const void *packet)
{
	struct sci_packet copy;
	struct sci_peer *p;
	int ret;

	/* the packet must not change after it was checked */
	memcpy(&copy, packet, sizeof(copy));
	sci_count(a, SCI_COUNT_CTRL_RECEIVED, 1);
	trace_sci_packet(a, node, false, copy.type, le32_to_cpu(copy.seq));
	p = peer_find(a, node, &copy);
	ret = PTR_ERR_OR_ZERO(p);
	if (!ret) {
		ret = peer_receive(p, &copy);
		sci_peer_put(p);
	}
	/* a stale packet, or a packet without memory for its peer, is not a bad packet */
	if (ret == -EBADMSG || ret == -EINVAL)
		sci_count(a, SCI_COUNT_CTRL_BAD, 1);
}

static void session_returned(struct sci_session *s)
{
	sci_session_returned(s, ktime_get_ns());
}

static void peer_report_session(struct sci_adapter *a, u32 node,
				void (*tell)(struct sci_session *s))
{
	struct sci_peer *p;

	/* the lock keeps the peer from being freed */
	mutex_lock(&a->lock);
	p = xa_load(&a->peers, node);
	if (p) {
		mutex_lock(&p->lock);
		tell(&p->session);
		peer_arm(p);
		mutex_unlock(&p->lock);
	}
	mutex_unlock(&a->lock);
}

void sci_peer_returned(struct sci_adapter *a, u32 node)
{
	peer_report_session(a, node, session_returned);
}

void sci_peer_lost(struct sci_adapter *a, u32 node)
{
	peer_report_session(a, node, sci_session_lost);
}

void sci_peers_kick(struct sci_adapter *a)
{
	struct sci_peer *p;
	unsigned long node;

	/* the lock keeps the peers from being freed */
	mutex_lock(&a->lock);
	xa_for_each(&a->peers, node, p) {
		mutex_lock(&p->lock);
		sci_session_resume(&p->session, ktime_get_ns());
		peer_arm(p);
		mutex_unlock(&p->lock);
	}
	mutex_unlock(&a->lock);
}

/* Close the session. A closed session does not arm the work. */
static void peer_close(struct sci_peer *p)
{
	mutex_lock(&p->lock);
	sci_session_close(&p->session);
	peer_local_close(p);
	mutex_unlock(&p->lock);
}

void sci_peers_shutdown(struct sci_adapter *a)
{
	struct sci_peer *p;
	unsigned long node;

	/* send BYE to all nodes before waiting for the first work */
	mutex_lock(&a->lock);
	xa_for_each(&a->peers, node, p)
		peer_close(p);
	mutex_unlock(&a->lock);
	/* from here on the table of peers does not change */
	flush_workqueue(a->wq);
	xa_for_each(&a->peers, node, p) {
		cancel_delayed_work_sync(&p->work);
		device_del(&p->dev);
		mutex_lock(&a->lock);
		xa_erase(&a->peers, node);
		mutex_unlock(&a->lock);
		put_device(&p->dev);
	}
}
