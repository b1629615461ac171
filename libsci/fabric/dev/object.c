// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Code for all objects of the kernel: descriptors, events, maps. */

#include "libsci/fabric/dev/dev.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Call ioctl() for a request that does not wait long: repeat it after a signal. */
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
 * dev_make() - make an object by an ioctl
 * @from: the descriptor of the ioctl
 * @out: the field of @arg that receives the new descriptor
 * @fd: receives the descriptor, non-blocking and in the table
 *
 * Context: svc.lock is not held.
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
 * dev_drop() - close an object
 *
 * On return the watch function does not run any more. Context: svc.lock is not held.
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
 * dev_records() - read the events of an object
 *
 * Context: svc.lock is held. Return: the number of records; -errno: the adapter was removed, no
 * further records will arrive, and the watch has ended.
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
