// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: interrupts
 *
 * The kernel latches triggers and queues data. A waiting thread reads the descriptor. If there
 * is an event function, the service thread reads the descriptor, moves each message to a short
 * queue, and calls the function. The thread stops reading while the short queue is full. Then
 * the kernel's queue fills, and senders get an error.
 */

#include "libsci/fabric/dev/dev.h"

#include "libsci/base/cancel.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define QUEUE_MAX	64u		/* limit of @queue; more messages stay in the kernel */

struct message {
	struct list link;
	size_t len;
	unsigned char data[];
};

struct sci_lintr {
	struct dev *dev;
	int fd;
	unsigned int flags;
	unsigned int adapter_no;
	unsigned int node;
	sci_event_fn event;
	void *owner;
	bool cancelled;
	/* fields for data interrupts with an event function; svc.lock protects them */
	struct list queue;
	unsigned int queued;
};

struct sci_rintr {
	struct dev *dev;
	struct dev_adapter *adapter;
	unsigned int node;
	int fd;
	bool data;
};

/* ---- functions of the service thread ---- */

static void dev_intr_notify(struct sci_lintr *i)
{
	const struct sci_event ev = {
		.type = SCI_EVENT_INTERRUPT, .node = i->node,
		.adapter = i->adapter_no,
	};

	i->event(i->owner, &ev);
}

/* Return true if no trigger arrives after error @err: then poll() always reports the descriptor. */
static bool intr_is_over(int err)
{
	return err != EAGAIN && err != EINTR && err != EMSGSIZE;
}

static void dev_intr_plain_input(void *obj)
{
	struct sci_lintr *i = obj;
	uint64_t count;

	if (read(i->fd, &count, sizeof(count)) == sizeof(count))
		dev_intr_notify(i);
	else if (intr_is_over(errno))
		sci_unwatch(&i->dev->svc, i->fd);
}

/* Read a message. Return NULL and set errno if that is not possible. */
static struct message *dev_intr_read_message(int fd)
{
	struct message *m;
	int len = 0;
	ssize_t n;

	/* get the length first, to avoid an allocation for the longest message */
	if (ioctl(fd, FIONREAD, &len) || len < 0)
		return NULL;
	m = malloc(sizeof(*m) + (size_t)len);
	if (!m) {
		errno = EAGAIN;	/* the message stays in the kernel */
		return NULL;
	}
	n = read(fd, m->data, (size_t)len);
	if (n < 0) {
		free(m);
		return NULL;
	}
	m->len = (size_t)n;
	return m;
}

static void dev_intr_data_input(void *obj)
{
	struct sci_lintr *i = obj;
	struct message *m = dev_intr_read_message(i->fd);

	if (!m) {
		if (intr_is_over(errno))
			sci_unwatch(&i->dev->svc, i->fd);
		return;
	}
	list_add_tail(&m->link, &i->queue);
	if (++i->queued == QUEUE_MAX)
		sci_watch_pause(&i->dev->svc, i->fd, true);
	dev_intr_notify(i);
}

static int intr_listen(struct sci_lintr *i)
{
	return sci_watch(
		&i->dev->svc, i->fd, EPOLLIN,
		i->flags & SCI_INTR_DATA ? dev_intr_data_input : dev_intr_plain_input, i);
}

/* ---- create and destroy ---- */

static unsigned int dev_intr_kernel_flags(unsigned int flags)
{
	return (flags & SCI_INTR_FIXED ? SCI_INTR_FIXED_NUMBER : 0) |
	       (flags & SCI_INTR_SHARED ? SCI_INTR_SHARE_NUMBER : 0) |
	       (flags & SCI_INTR_COUNTING ? SCI_INTR_COUNT : 0) |
	       (flags & SCI_INTR_DATA ? SCI_INTR_WITH_DATA : 0);
}

static int intr_make(struct sci_lintr *i, const struct dev_adapter *a,
		     struct sci_lintr_param *p)
{
	struct sci_ioc_intr_create arg = {
		.size = sizeof(arg),
		.flags = dev_intr_kernel_flags(p->flags),
		.number = p->flags & SCI_INTR_FIXED ? p->number : 0,
		.mode = i->dev->mode,
	};
	int ret;

	do {
		ret = dev_make(i->dev, a->fd, SCI_IOC_INTR_CREATE, &arg,
			       &arg.out_fd, &i->fd);
	} while (ret == -EEXIST && sci_forked_lately(&i->dev->svc));
	if (ret)
		return ret;
	p->number = arg.out_number;
	if (!i->event)
		return 0;
	pthread_mutex_lock(&i->dev->svc.lock);
	ret = intr_listen(i);
	pthread_mutex_unlock(&i->dev->svc.lock);
	return ret;
}

int dev_lintr_create(struct sci_fabric *f, struct sci_lintr_param *p,
		     struct sci_lintr **out)
{
	struct dev *dev = dev_of(f);
	struct dev_adapter *a = dev_adapter(dev, p->adapter);
	struct sci_lintr *i;
	int ret;

	if (!a)
		return -ENODEV;
	i = calloc(1, sizeof(*i));
	if (!i)
		return -ENOMEM;
	i->dev = dev;
	i->fd = -1;
	i->flags = p->flags;
	i->adapter_no = p->adapter;
	i->node = a->node;
	i->event = p->event;
	i->owner = p->owner;
	list_init(&i->queue);
	ret = intr_make(i, a, p);
	if (ret) {
		dev_lintr_destroy(i);
		return ret;
	}
	*out = i;
	return 0;
}

void dev_lintr_destroy(struct sci_lintr *i)
{
	struct list *pos;

	dev_drop(i->dev, i->fd);
	while ((pos = list_pop(&i->queue)))
		free(container_of(pos, struct message, link));
	free(i);
}

/* ---- waiting ---- */

/* Take a trigger. Return: 1: a trigger was taken; 0: no trigger is pending; -errno. */
static int intr_take(struct sci_lintr *i, void *data, size_t *len)
{
	bool with_data = i->flags & SCI_INTR_DATA;
	int need = 0;
	uint64_t one;
	ssize_t n;

	n = with_data ? read(i->fd, data ? data : &one, *len) :
			read(i->fd, &one, sizeof(one));
	if (n >= 0) {
		if (with_data)
			*len = (size_t)n;
		return 1;
	}
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	if (errno != EMSGSIZE)
		return -errno;
	if (ioctl(i->fd, FIONREAD, &need))
		return -errno;
	/* another thread took the long message, and the next message fits */
	if ((size_t)need <= *len)
		return 0;
	*len = (size_t)need;
	return -EMSGSIZE;
}

/* Take a trigger from the queue, for an owner with an event function. */
static int queued_take(struct sci_lintr *i, void *data, size_t *len)
{
	struct message *m = container_of(i->queue.next, struct message, link);
	size_t room = *len;

	if (i->cancelled)
		return -ECANCELED;
	if (list_empty(&i->queue))
		return -ETIMEDOUT;
	*len = m->len;
	if (m->len > room)
		return -EMSGSIZE;
	if (m->len)
		memcpy(data, m->data, m->len);
	list_del(&m->link);
	free(m);
	if (i->queued-- == QUEUE_MAX)
		sci_watch_pause(&i->dev->svc, i->fd, false);
	return 0;
}

static int dev_intr_left_ms(uint64_t deadline)
{
	uint64_t now = sci_now_ms();

	if (deadline == UINT64_MAX)
		return -1;
	if (deadline <= now)
		return 0;
	return deadline - now > 60000 ? 60000 : (int)(deadline - now);
}

int dev_lintr_wait(struct sci_lintr *i, void *data, size_t *len,
		   uint32_t timeout)
{
	uint64_t deadline = timeout == SCI_TIMEOUT_NONE ?
			    UINT64_MAX : sci_now_ms() + timeout;
	struct pollfd pfd = { .fd = i->fd, .events = POLLIN };
	int ret, ms;

	if (i->event) {
		pthread_mutex_lock(&i->dev->svc.lock);
		ret = queued_take(i, data, len);
		pthread_mutex_unlock(&i->dev->svc.lock);
		return ret;
	}
	/* Try before poll(): usually a trigger is pending, or the timeout is 0. */
	while (!(ret = intr_take(i, data, len))) {
		ms = dev_intr_left_ms(deadline);
		if (!ms)
			return -ETIMEDOUT;
		if (sci_poll_cancelable(&pfd, 1, ms) < 0 && errno != EINTR)
			return -errno;
	}
	return ret < 0 ? ret : 0;
}

int dev_lintr_fd(struct sci_lintr *i)
{
	return i->flags & SCI_INTR_DATA || i->event ? -EOPNOTSUPP : i->fd;
}

void dev_lintr_cancel(struct sci_lintr *i)
{
	struct sci_ioc_intr_cancel arg = { .size = sizeof(arg) };

	pthread_mutex_lock(&i->dev->svc.lock);
	i->cancelled = true;
	sci_unwatch(&i->dev->svc, i->fd);
	pthread_mutex_unlock(&i->dev->svc.lock);
	dev_ioctl(i->fd, SCI_IOC_INTR_CANCEL, &arg);
}

/* ---- remote interrupts ---- */

int dev_rintr_connect(struct sci_fabric *f, const struct sci_rintr_param *p,
		      struct sci_rintr **out)
{
	struct sci_ioc_intr_connect arg = {
		.size = sizeof(arg), .node = p->node, .number = p->number,
		.flags = SCI_CONNECT_ASYNC |
			 (p->data ? (unsigned int)SCI_CONNECT_DATA : 0),
		.timeout_ms = p->timeout,
	};
	struct dev *dev = dev_of(f);
	struct dev_adapter *a = dev_adapter(dev, p->adapter);
	struct sci_rintr *i;
	int ret;

	if (!a)
		return -ENODEV;
	if (sci_link_down(&a->link) && p->node != a->node)
		return -ENETDOWN;
	i = calloc(1, sizeof(*i));
	if (!i)
		return -ENOMEM;
	i->dev = dev;
	i->adapter = a;
	i->node = p->node;
	i->data = p->data;
	*out = i;
	ret = dev_connect(dev, p->owner, p->timeout, a->fd, SCI_IOC_INTR_CONNECT, &arg,
			  &arg.out_fd, &i->fd);
	if (ret) {
		*out = NULL;
		free(i);
	}
	return ret;
}

int dev_rintr_trigger(struct sci_rintr *i, const void *data, size_t len)
{
	struct sci_ioc_intr_trigger arg = { .size = sizeof(arg) };

	if (sci_link_down(&i->adapter->link) && i->node != i->adapter->node)
		return -ENETDOWN;
	if (i->data) {
		if (len > SCI_DATA_INTR_MAX)
			return -EMSGSIZE;
		arg.data = (uintptr_t)data;
		arg.length = (uint32_t)len;
	}
	return dev_ioctl(i->fd, SCI_IOC_INTR_TRIGGER, &arg);
}

void dev_rintr_disconnect(struct sci_rintr *i)
{
	dev_drop(i->dev, i->fd);
	free(i);
}
