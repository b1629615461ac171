// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Connect to segments and interrupts. The ioctl does not wait in the kernel, because another
 * thread could not cancel such a wait.
 */

#include "libsci/fabric/dev/dev.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ROOM_MS		5000u	/* the default of dead_ms of sci.ko */
#define ROOM_POLL_MS	10

static int call_begin(struct dev *dev, struct dev_call *call)
{
	int ret;

	pthread_mutex_lock(&dev->svc.lock);
	list_add_tail(&call->link, &dev->calls);
	call->cancelled = dev->no_calls;
	do {
		call->cancelfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	} while (call->cancelfd < 0 && errno == EMFILE &&
		 !sci_raise_fd_limit());
	if (call->cancelfd < 0)
		ret = -errno;
	else
		ret = sci_fd_track(&dev->svc, call->cancelfd);
	if (ret)
		call->cancelfd = -1;
	pthread_mutex_unlock(&dev->svc.lock);
	return !ret && call->cancelled ? -ECANCELED : ret;
}

static void call_end(struct dev *dev, struct dev_call *call)
{
	pthread_mutex_lock(&dev->svc.lock);
	list_del(&call->link);
	sci_fd_close(&dev->svc, call->cancelfd);
	pthread_mutex_unlock(&dev->svc.lock);
}

/**
 * dev_cancel_connect() - cancel connects
 * @owner: the owner of the connects; NULL: cancel all connects, and all later connects
 */
void dev_cancel_connect(struct sci_fabric *f, const void *owner)
{
	struct dev *dev = dev_of(f);
	struct list *pos, *n;
	uint64_t one = 1;
	ssize_t done;

	pthread_mutex_lock(&dev->svc.lock);
	if (!owner)
		dev->no_calls = true;
	list_for_each_safe(pos, n, &dev->calls) {
		struct dev_call *call = container_of(pos, struct dev_call,
						     link);

		if (owner && call->owner != owner)
			continue;
		call->cancelled = true;
		if (call->cancelfd < 0)
			continue;
		done = write(call->cancelfd, &one, sizeof(one));
		(void)done;	/* if the eventfd is full it is readable, as it should be */
	}
	pthread_mutex_unlock(&dev->svc.lock);
}

static int answer_await(const struct dev_call *call, int fd)
{
	struct pollfd fds[] = {
		{ .fd = fd, .events = POLLIN },
		{ .fd = call->cancelfd, .events = POLLIN },
	};
	struct sci_ev_record rec;
	ssize_t n;

	for (;;) {
		if (poll(fds, 2, -1) < 0) {
			if (errno != EINTR)
				return -errno;
			continue;
		}
		n = read(fd, &rec, sizeof(rec));
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n == sizeof(rec))
			return rec.type == SCI_EV_CONNECT ? rec.status :
							    -EPROTO;
		if (fds[1].revents)
			return -ECANCELED;
	}
}

/* Call the ioctl. If many messages wait for the node, wait as the kernel would. */
static int call_make(struct dev *dev, const struct dev_call *call, uint32_t timeout, int from,
		     unsigned long cmd, void *arg, const int32_t *out, int *fd)
{
	uint64_t until = sci_now_ms() + (timeout < ROOM_MS ? timeout : ROOM_MS);
	struct pollfd cancel = { .fd = call->cancelfd, .events = POLLIN };
	int ret;

	while ((ret = dev_make(dev, from, cmd, arg, out, fd)) == -ENOBUFS &&
	       sci_now_ms() < until)
		if (poll(&cancel, 1, ROOM_POLL_MS) > 0)
			return -ECANCELED;
	return ret;
}

/**
 * dev_connect() - connect by an ioctl, and wait for its answer
 * @owner: the argument of dev_cancel_connect() that cancels this connect
 * @timeout: milliseconds
 * @arg: the ioctl's argument, with SCI_CONNECT_ASYNC
 *
 * Other arguments are those of dev_make().
 */
int dev_connect(struct dev *dev, const void *owner, uint32_t timeout, int from, unsigned long cmd,
		 void *arg, const int32_t *out, int *fd)
{
	struct dev_call call = { .owner = owner };
	int ret;

	ret = call_begin(dev, &call);
	ret = ret ? ret : call_make(dev, &call, timeout, from, cmd, arg, out, fd);
	if (!ret) {
		ret = answer_await(&call, *fd);
		if (ret) {
			dev_drop(dev, *fd);
			*fd = -1;
		}
	}
	call_end(dev, &call);
	return ret;
}
