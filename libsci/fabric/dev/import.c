// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Remote segments: segments that this process imports. */

#include "libsci/fabric/dev/dev.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "libsci/base/barrier.h"

#define RECORDS		8		/* events read at a time */
#define BARRIER_SPINS	1000		/* time of about ten round trips */

static void dev_rseg_notify(struct sci_rseg *r, enum sci_event_type type, int status)
{
	const struct sci_event ev = {
		.type = type, .node = r->node, .adapter = r->adapter_no,
		.status = status,
	};

	r->event(r->owner, &ev);
}

/* Report a change of the link, except for a segment of this node, which needs no link. */
void dev_rseg_link_event(struct sci_rseg *r, bool down)
{
	if (!r->over && r->node != r->adapter->node)
		dev_rseg_notify(
			r, down ? SCI_EVENT_NOT_OPERATIONAL : SCI_EVENT_OPERATIONAL, 0);
}

/*
 * Mark the connection as lost. @why: -ENOTCONN: the owner closed it; other values: the owner or
 * its node died.
 */
static void dev_rseg_lost(struct sci_rseg *r, int why)
{
	if (r->over)
		return;
	r->over = true;
	atomic_store(&r->status.gone, 1);
	dev_rseg_notify(r, why == -ENOTCONN ? SCI_EVENT_DISCONNECT : SCI_EVENT_LOST,
			-ENOTCONN);
}

/* Get the current state of the import, because the kernel has dropped event records. */
static void rseg_query_state(struct sci_rseg *r)
{
	struct sci_ioc_remote_info arg = { .size = sizeof(arg) };

	if (!dev_ioctl(r->fd, SCI_IOC_REMOTE_INFO, &arg) &&
	    arg.out_state == SCI_REMOTE_GONE)
		dev_rseg_lost(r, arg.out_status);
}

static void rseg_take_record(struct sci_rseg *r, const struct sci_ev_record *rec)
{
	switch (rec->type) {
	case SCI_EV_DISCONNECT:
		dev_rseg_notify(r, SCI_EVENT_DISCONNECT, 0);
		break;
	case SCI_EV_LOST:
		dev_rseg_lost(r, rec->status);
		break;
	case SCI_EV_LINK_DOWN:
	case SCI_EV_LINK_UP:
		dev_rseg_link_event(r, rec->type == SCI_EV_LINK_DOWN);
		break;
	case SCI_EV_OVERFLOW:
		rseg_query_state(r);
		break;
	default:		/* an event of a later kernel */
		break;
	}
}

static void dev_rseg_input(void *obj)
{
	struct sci_ev_record rec[RECORDS];
	struct sci_rseg *r = obj;
	int i, n;

	n = dev_records(r->dev, r->fd, rec, RECORDS);
	for (i = 0; i < n; i++)
		rseg_take_record(r, &rec[i]);
	if (n < 0)
		dev_rseg_lost(r, n);
}

/* ---- connect and disconnect ---- */

static int dev_rseg_call_exporter(struct sci_rseg *r, const struct sci_rseg_param *p)
{
	struct sci_ioc_connect arg = {
		.size = sizeof(arg), .flags = SCI_CONNECT_ASYNC,
		.node = p->node, .id = p->id, .timeout_ms = p->timeout,
	};
	struct sci_ioc_remote_info info = { .size = sizeof(info) };
	int ret;

	ret = dev_connect(r->dev, p->owner, p->timeout, r->adapter->fd, SCI_IOC_CONNECT, &arg,
			  &arg.out_fd, &r->fd);
	ret = ret ? ret : dev_ioctl(r->fd, SCI_IOC_REMOTE_INFO, &info);
	if (ret)
		return ret;
	r->size = info.out_length;
	r->readonly = !(info.out_access & 2);
	/* the connection was lost at once: report that there is no such segment */
	return info.out_state == SCI_REMOTE_CONNECTED ? 0 : -ENOENT;
}

static int dev_rseg_begin(struct sci_rseg *r)
{
	int ret;

	ret = dev_watch(r->dev, r->fd, dev_rseg_input, r);
	if (ret)
		return ret;
	pthread_mutex_lock(&r->dev->svc.lock);
	list_add_tail(&r->link, &r->dev->rsegs);
	pthread_mutex_unlock(&r->dev->svc.lock);
	return 0;
}

int dev_rseg_connect(struct sci_fabric *f, const struct sci_rseg_param *p,
		     struct sci_rseg **out)
{
	struct dev *dev = dev_of(f);
	struct dev_adapter *a = dev_adapter(dev, p->adapter);
	struct sci_rseg *r;
	int ret;

	if (!a)
		return -ENODEV;
	if (sci_link_down(&a->link) && p->node != a->node)
		return -ENETDOWN;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->dev = dev;
	r->adapter = a;
	r->adapter_no = p->adapter;
	r->node = p->node;
	r->fd = -1;
	r->event = p->event;
	r->owner = p->owner;
	r->status.link = &a->link;
	list_init(&r->link);
	*out = r;
	ret = dev_rseg_call_exporter(r, p);
	ret = ret ? ret : dev_rseg_begin(r);
	if (ret) {
		*out = NULL;
		dev_rseg_disconnect(r);
	}
	return ret;
}

void dev_rseg_disconnect(struct sci_rseg *r)
{
	pthread_mutex_lock(&r->dev->svc.lock);
	list_del(&r->link);
	pthread_mutex_unlock(&r->dev->svc.lock);
	dev_drop(r->dev, r->fd);
	free(r);
}

uint64_t dev_rseg_size(struct sci_rseg *r)
{
	return r->size;
}

bool dev_rseg_readonly(struct sci_rseg *r)
{
	return r->readonly;
}

struct sci_rseg_status *dev_rseg_status(struct sci_rseg *r)
{
	return &r->status;
}

int dev_rseg_map(struct sci_rseg *r, uint64_t off, size_t len,
		 unsigned int flags, void **addr)
{
	if (r->readonly && !(flags & SCI_MAP_READONLY))
		return -EACCES;
	if (atomic_load(&r->status.gone))
		return -ENOTCONN;
	return dev_map(r->fd, off, len, flags, addr);
}

/* ---- copies and barriers ---- */

/*
 * Do a store barrier by the adapter's registers. Return false after BARRIER_SPINS polls, or if the
 * adapter may have been removed. The caller then waits in the kernel, which uses no CPU and
 * detects a removed adapter.
 */
static bool barrier_by_adapter(const struct dev_adapter *a)
{
	const volatile struct sci_barrier_page *page = a->barrier;
	const struct sci_status_page *status = a->page;
	uint32_t ticket, done;
	unsigned int i;

	ticket = le32toh(sci_load_acquire(&page->barrier));
	/* a removed adapter reads as all ones */
	if (!ticket || ticket == UINT32_MAX)
		return false;
	for (i = 0; i < BARRIER_SPINS; i++) {
		done = le32toh(sci_load_acquire(&status->hw_done));
		if ((int32_t)(done - ticket) >= 0)
			return true;
		sci_cpu_relax();
	}
	return false;
}

/* Wait until stores have arrived. Stores to memory of this machine arrive at once. */
static void rseg_flush(struct dev_adapter *a, int fd)
{
	struct sci_ioc_flush arg = { .size = sizeof(arg) };
	struct sci_link_status *link = &a->link;

	if (link->cache)
		link->cache->fence(link);
	if (a->caps & SCI_CAP_MEMORY || (a->barrier && barrier_by_adapter(a)))
		return;
	dev_ioctl(fd, SCI_IOC_FLUSH, &arg);
}

void dev_store_barrier(struct sci_fabric *f, struct sci_rseg *r)
{
	struct dev *dev = dev_of(f);
	unsigned int i;

	sci_store_barrier();
	if (r) {
		rseg_flush(r->adapter, r->fd);
		return;
	}
	for (i = 0; i < dev->n_adapters; i++)
		rseg_flush(&dev->adapters[i], dev->adapters[i].fd);
}
