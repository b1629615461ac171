// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* A node of a pool: join, heartbeats, expulsion and leave. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/utsname.h>

#include "core/att.h"
#include "sci_pool.h"

#define BEATS		4		/* in a lease */
#define MAIL_BATCH	32
#define ENTRIES_MAX	65536u
#define DMA_MAX		SZ_64M
#define STREAMS		16
#define STREAM_SIZE	128

unsigned int sci_pool_poll_us = 50;
module_param_named(poll_us, sci_pool_poll_us, uint, 0644);
MODULE_PARM_DESC(poll_us, "microseconds between two polls after a packet has arrived (50)");

unsigned int sci_pool_poll_max_us = 2000;
module_param_named(poll_max_us, sci_pool_poll_max_us, uint, 0644);
MODULE_PARM_DESC(poll_max_us,
		 "longest time between two polls, which doubles without packets, in microseconds (2000)");

static u32 node_id(const struct pool_node *n)
{
	return pool_slot_node(n->pool.slot);
}

/* ---- mail ---- */

/* Take the packets of all nodes. Return whether there were any. */
static bool node_take_mail(struct pool_node *n)
{
	u8 packet[POOL_PACKET] __aligned(8);
	bool any = false;
	u32 slot, i;

	for (slot = 0; slot < n->pool.form.slots; slot++)
		for (i = 0; i < MAIL_BATCH; i++) {
			if (!pool_mail_receive(&n->pool, pool_slot_node(slot), packet))
				break;
			sci_adapter_receive(n->adapter, pool_slot_node(slot), packet);
			any = true;
			cond_resched();
		}
	return any;
}

void pool_node_rung(struct pool_node *n)
{
	WRITE_ONCE(n->rung, true);
	wake_up(&n->bell);
}

static void node_wait(struct pool_node *n, unsigned int us)
{
	if (!n->doorbell) {
		usleep_range(us, us + us / 4 + 1);
		return;
	}
	wait_event_interruptible_timeout(n->bell, READ_ONCE(n->rung) ||
					 kthread_should_stop(),
					 usecs_to_jiffies(us) + 1);
	WRITE_ONCE(n->rung, false);
}

static int node_thread(void *data)
{
	struct pool_node *n = data;
	unsigned int us = 1;
	u32 bell = pool_bell(&n->pool) - 1, now;

	while (!kthread_should_stop()) {
		now = pool_bell(&n->pool);
		if (now != bell && node_take_mail(n))
			us = 0;
		else
			bell = now;
		us = clamp(2 * us, max(READ_ONCE(sci_pool_poll_us), 1u),
			   max(READ_ONCE(sci_pool_poll_max_us), 1u));
		node_wait(n, us);
	}
	return 0;
}

/* ---- the adapter ---- */

static int node_adapter_create(struct pool_node *n)
{
	const struct pool_form *f = &n->pool.form;
	struct sci_adapter_desc desc = {
		.ops = &sci_pool_ops,
		.type = "pool",
		.node = node_id(n),
		.caps = SCI_CAP_MEMORY | SCI_CAP_SHARED | SCI_CAP_DMA,
		.serial = f->id,
		.att_page_size = f->chunk_size,
		.streams = STREAMS,
		.stream_size = STREAM_SIZE,
		.dma_max = DMA_MAX,
		.dma_align = 1,
		.max_segment = (u64)min(f->share, POOL_LENGTH_MAX) * f->chunk_size,
		.priv = n,
	};

	if (f->incoherent)
		desc.caps |= SCI_CAP_INCOHERENT;
	if (n->check)
		desc.caps |= SCI_CAP_CHECKED;
	desc.att = sci_att_create(min(f->chunks, ENTRIES_MAX));
	if (!desc.att)
		return -ENOMEM;
	n->adapter = sci_adapter_alloc(n->parent, &desc);
	if (n->adapter)
		return 0;
	sci_att_destroy(desc.att);
	return -ENOMEM;
}

static void node_adapter_free(struct pool_node *n)
{
	sci_att_destroy(sci_adapter_desc(n->adapter)->att);
	sci_adapter_put(n->adapter);
	n->adapter = NULL;
}

static int node_adapter_start(struct pool_node *n)
{
	int ret = node_adapter_create(n);

	if (ret)
		return ret;
	ret = sci_adapter_register(n->adapter);
	if (ret)
		goto err_free;
	n->thread = kthread_run(node_thread, n, "%s", sci_adapter_name(n->adapter));
	if (IS_ERR(n->thread)) {
		ret = PTR_ERR(n->thread);
		goto err_register;
	}
	sci_adapter_set_link(n->adapter, true);
	return 0;

err_register:
	sci_adapter_unregister(n->adapter);
err_free:
	node_adapter_free(n);
	return ret;
}

/* Stop the node's adapter. On return no process maps the pool through it. */
static void node_adapter_stop(struct pool_node *n)
{
	kthread_stop(n->thread);
	sci_adapter_unregister(n->adapter);
	node_adapter_free(n);
}

/* ---- the pool ---- */

static void node_cache_put(struct pool_node *n)
{
	if (n->flushes)
		pool_cache_put();
	n->flushes = false;
}

/*
 * Open the pool. The flag in its header says whether the node flushes the cache from now on. While
 * the memory is no pool, the node continues to flush: each change may patch the kernel's code.
 */
static int node_open_header(struct pool_node *n)
{
	struct pool *p = &n->pool;
	int flushes = n->flushes ? 0 : pool_cache_get(), ret;

	n->flushes = !flushes;
	ret = pool_open(p, n->virt, n->memory->size);
	if (ret)
		return ret;
	if (!p->form.incoherent)
		node_cache_put(n);
	if (n->check && !p->form.incoherent) {
		pr_err("check: the pool is not formatted with `sci pool format --incoherent`\n");
		return -EINVAL;
	}
	return p->form.incoherent ? flushes : 0;
}

static void node_close(struct pool_node *n)
{
	kvfree(n->pool.own);
	kvfree(n->pool.mapped);
	memset(&n->pool, 0, sizeof(n->pool));
}

/* Open the pool. The caller calls node_close(), also after an error. */
static int node_open(struct pool_node *n)
{
	struct pool *p = &n->pool;
	int ret = node_open_header(n);

	if (ret)
		return ret;
	p->token = get_random_u64();
	if (p->form.chunk_size % PAGE_SIZE || p->form.data_at % PAGE_SIZE)
		return -EOPNOTSUPP;
	p->own = kvcalloc(p->form.chunks, sizeof(*p->own), GFP_KERNEL);
	p->mapped = kvcalloc(p->form.chunks, sizeof(*p->mapped), GFP_KERNEL);
	return p->own && p->mapped ? 0 : -ENOMEM;
}

/* ---- life ---- */

static unsigned long node_beat_time(const struct pool_node *n)
{
	return max(nsecs_to_jiffies(n->pool.form.lease / BEATS), 1ul);
}

/* Open the pool again if it has been formatted since it was opened. */
static int node_open_current(struct pool_node *n)
{
	int ret;

	if (n->pool.mem && pool_is_current(&n->pool))
		return 0;
	node_close(n);
	ret = node_open(n);
	if (ret)
		node_close(n);
	return ret;
}

static int node_join(struct pool_node *n)
{
	int ret;

	mutex_lock(&n->lock);
	ret = node_open_current(n);
	if (!ret)
		ret = pool_join(&n->pool, n->wanted, n->doorbell,
				init_utsname()->nodename, pool_now());
	mutex_unlock(&n->lock);
	return ret;
}

static void node_leave(struct pool_node *n)
{
	mutex_lock(&n->lock);
	pool_leave(&n->pool);
	mutex_unlock(&n->lock);
}

static void node_report_wait(const struct pool_node *n, int error)
{
	if (error == -ENODATA)
		pr_notice("node %u: the memory is no pool any more: waiting for `sci pool format`\n",
			  n->wanted);
	else if (error == -EEXIST || error == -ENOSPC)
		pr_notice("node %u is another machine's: waiting for it to leave\n",
			  n->wanted);
	else
		pr_err("node %u: cannot join: %pe: trying again\n", n->wanted,
		       ERR_PTR(error));
}

/* Try again later, whatever the error is: the next format of the pool may end it. */
static void node_join_later(struct pool_node *n, int error)
{
	if (n->waiting != error)
		node_report_wait(n, error);
	n->waiting = error;
	queue_delayed_work(n->wq, &n->life, n->pool.mem ? node_beat_time(n) : HZ);
}

static void node_join_start(struct pool_node *n)
{
	int ret = node_join(n);

	if (ret) {
		node_join_later(n, ret);
		return;
	}
	queue_delayed_work(n->wq, &n->beat, node_beat_time(n));
	ret = node_adapter_start(n);
	if (!ret) {
		n->waiting = 0;
		return;
	}
	cancel_delayed_work_sync(&n->beat);
	node_leave(n);
	if (n->waiting != ret)
		pr_err("node %u: no adapter: %pe: trying again\n", node_id(n), ERR_PTR(ret));
	n->waiting = ret;
	node_join_later(n, ret);
}

/* Take the node down. Heartbeats continue until no resource is in use any more. */
static void node_down(struct pool_node *n)
{
	node_adapter_stop(n);
	cancel_delayed_work_sync(&n->beat);
	node_leave(n);
}

static void node_life(struct work_struct *work)
{
	struct pool_node *n = container_of(to_delayed_work(work), struct pool_node,
					   life);

	/* pool_node_destroy() takes the node down, while heartbeats continue */
	if (READ_ONCE(n->stopping))
		return;
	if (n->adapter) {
		pr_warn("node %u was silent for too long and has been expelled, or the pool has been formatted again: it begins anew\n",
			node_id(n));
		node_down(n);
	}
	node_join_start(n);
}

static void node_beat(struct work_struct *work)
{
	struct pool_node *n = container_of(to_delayed_work(work), struct pool_node,
					   beat);
	int ret;

	mutex_lock(&n->lock);
	ret = pool_beat(&n->pool, pool_now());
	if (!ret)
		pool_scrub(&n->pool, pool_now());
	mutex_unlock(&n->lock);
	if (ret)
		queue_delayed_work(n->wq, &n->life, 0);
	else
		queue_delayed_work(n->wq, &n->beat, node_beat_time(n));
}

static void node_free(struct pool_node *n)
{
	if (n->wq)
		destroy_workqueue(n->wq);
	node_close(n);
	node_cache_put(n);
	pool_check_stop(n);
	WARN_ON(!xa_empty(&n->exposed));
	mutex_destroy(&n->lock);
	kfree(n);
}

struct pool_node *pool_node_create(struct pool_memory *memory, struct device *parent,
				   unsigned int index, u32 node,
				   void __iomem *doorbells, u32 doorbell)
{
	struct pool_node *n = kzalloc(sizeof(*n), GFP_KERNEL);
	int ret;

	if (!n)
		return ERR_PTR(-ENOMEM);
	n->memory = memory;
	n->start = memory->start;
	n->virt = memory->virt;
	n->parent = parent;
	n->wanted = node;
	n->doorbells = doorbells;
	n->doorbell = doorbell;
	mutex_init(&n->lock);
	spin_lock_init(&n->send_lock);
	xa_init(&n->exposed);
	init_waitqueue_head(&n->bell);
	INIT_DELAYED_WORK(&n->beat, node_beat);
	INIT_DELAYED_WORK(&n->life, node_life);
	n->wq = alloc_workqueue("sci_pool", WQ_UNBOUND | WQ_HIGHPRI, 0);
	ret = n->wq ? pool_check_start(n, index) : -ENOMEM;
	if (!ret)
		ret = node_open(n);
	if (ret) {
		node_free(n);
		return ERR_PTR(ret);
	}
	queue_delayed_work(n->wq, &n->life, 0);
	flush_delayed_work(&n->life);
	return n;
}

void pool_node_destroy(struct pool_node *n)
{
	WRITE_ONCE(n->stopping, true);
	cancel_delayed_work_sync(&n->life);
	if (n->adapter)
		node_down(n);
	/* the last heartbeat may have queued n->life again */
	cancel_delayed_work_sync(&n->life);
	node_free(n);
}
