// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Code that all objects of the kernel's share: descriptors, events, maps. */

#include "libsci/fabric/dev/dev.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* ioctl() for calls that do not wait long: repeat them after a signal. */
int dev_ioctl(int fd, unsigned long cmd, void *arg)
{
	int ret;

	do {
		ret = ioctl(fd, cmd, arg);
	} while (ret < 0 && errno == EINTR);
	return ret < 0 ? -errno : 0;
}

static int object_enter(struct dev *dev, int fd)
{
	int ret;

	pthread_mutex_lock(&dev->svc.lock);
	ret = sci_fd_track(&dev->svc, fd);
	if (!ret && fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK)) {
		ret = -errno;
		sci_fd_close(&dev->svc, fd);
	}
	pthread_mutex_unlock(&dev->svc.lock);
	return ret;
}

/**
 * dev_make() - an ioctl that makes an object
 * @from: the descriptor it is called on
 * @out: where in @arg it puts the new descriptor
 * @fd: receives it, non-blocking and in our table
 *
 * Unlocked.
 */
int dev_make(struct dev *dev, int from, unsigned long cmd, void *arg,
	     const int32_t *out, int *fd)
{
	int ret;

	pthread_rwlock_rdlock(&dev->svc.gate);
	do {
		ret = dev_ioctl(from, cmd, arg);
	} while (ret == -EMFILE && !sci_raise_fd_limit());
	ret = ret ? ret : object_enter(dev, *out);
	pthread_rwlock_unlock(&dev->svc.gate);
	if (!ret)
		*fd = *out;
	return ret;
}

/**
 * dev_drop() - the end of an object
 *
 * Unlocked.  Its watch function does not run any more when this returns.
 */
void dev_drop(struct dev *dev, int fd)
{
	if (fd < 0)
		return;
	pthread_rwlock_rdlock(&dev->svc.gate);
	pthread_mutex_lock(&dev->svc.lock);
	sci_fd_untrack(&dev->svc, fd);
	pthread_mutex_unlock(&dev->svc.lock);
	close(fd);
	pthread_rwlock_unlock(&dev->svc.gate);
}

int dev_watch(struct dev *dev, int fd, sci_watch_fn fn, void *obj)
{
	int ret;

	pthread_mutex_lock(&dev->svc.lock);
	ret = sci_watch(&dev->svc, fd, EPOLLIN, fn, obj);
	pthread_mutex_unlock(&dev->svc.lock);
	return ret;
}

void dev_unwatch(struct dev *dev, int fd)
{
	pthread_mutex_lock(&dev->svc.lock);
	sci_unwatch(&dev->svc, fd);
	pthread_mutex_unlock(&dev->svc.lock);
}

/**
 * dev_records() - what has happened to an object
 *
 * Locked.  Returns how many records were read.  Negative: the object will have
 * none any more (its adapter is gone), and is not watched from now on.
 */
int dev_records(struct dev *dev, int fd, struct sci_ev_record *rec, int room)
{
	ssize_t n = read(fd, rec, (size_t)room * sizeof(*rec));

	if (n >= 0)
		return (int)((size_t)n / sizeof(*rec));
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	sci_unwatch(&dev->svc, fd);
	return -errno;
}

int dev_map(int fd, uint64_t off, size_t len, unsigned int flags, void **addr)
{
	return sci_map_fd(fd, off, len, sci_page_size(), flags, addr);
}

void dev_unmap(struct sci_fabric *f, void *addr, size_t len)
{
	size_t page = sci_page_size();
	size_t delta = (uintptr_t)addr & (page - 1);

	(void)f;
	munmap((char *)addr - delta, (len + delta + page - 1) & ~(page - 1));
}
