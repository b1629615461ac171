// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "libsci/team/boot_private.h"

#define IDLE_MS		10		/* between two calls of the function of sci_boot_idle() */

/*
 * The ID of the process that has joined; 0: none. The launcher cannot distinguish two joins of one
 * process. A child after fork() inherits this value, but has another process ID.
 */
static _Atomic pid_t joined;

/* ---- the process is alone: there is no launcher ---- */

static int alone_gather(struct sci_boot *boot, const void *mine, void *all, size_t len)
{
	(void)boot;
	if (len)
		memcpy(all, mine, len);
	return 0;
}

struct alone_value {
	struct alone_value *next;
	size_t len;
	char name[SCI_BOOT_NAME_MAX + 1];
	char data[];
};

struct boot_alone {
	struct sci_boot boot;
	struct alone_value *values;
};

static int alone_publish(struct sci_boot *boot, const char *name, const void *value,
			 size_t len)
{
	struct boot_alone *a = (struct boot_alone *)boot;
	struct alone_value *v = malloc(sizeof(*v) + len), **p, *old;

	if (!v)
		return -ENOMEM;
	v->len = len;
	strcpy(v->name, name);
	memcpy(v->data, value, len);
	for (p = &a->values; *p && strcmp((*p)->name, name); p = &(*p)->next)
		;
	old = *p;
	v->next = old ? old->next : NULL;
	*p = v;
	free(old);
	return 0;
}

/* Get a value. A missing value is an error: no other process can publish it. */
static int alone_get(struct sci_boot *boot, unsigned int rank, const char *name,
		     void *value, size_t *len)
{
	struct boot_alone *a = (struct boot_alone *)boot;
	struct alone_value *v = a->values;
	size_t room = *len;

	(void)rank;
	while (v && strcmp(v->name, name))
		v = v->next;
	if (!v)
		return -ECONNRESET;
	*len = v->len;
	if (v->len > room)
		return -EMSGSIZE;
	memcpy(value, v->data, v->len);
	return 0;
}

static int alone_fd(const struct sci_boot *boot)
{
	(void)boot;
	return -1;
}

static int alone_died(struct sci_boot *boot, unsigned int *rank)
{
	(void)boot;
	(void)rank;
	return -EAGAIN;
}

static bool alone_complete(const struct sci_boot *boot)
{
	(void)boot;
	return true;
}

static void alone_abort(struct sci_boot *boot, int status)
{
	(void)boot;
	(void)status;
}

static void alone_close(struct sci_boot *boot, bool forked)
{
	struct boot_alone *a = (struct boot_alone *)boot;
	struct alone_value *v;

	(void)forked;
	while ((v = a->values)) {
		a->values = v->next;
		free(v);
	}
	free(boot->nodes);
	free(a);
}

static const struct boot_ops alone_ops = {
	.gather = alone_gather,
	.publish = alone_publish,
	.get = alone_get,
	.fd = alone_fd,
	.died = alone_died,
	.complete = alone_complete,
	.abort = alone_abort,
	.close = alone_close,
};

static int alone_open(struct sci_boot **boot)
{
	struct boot_alone *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->boot.ops = &alone_ops;
	a->boot.nodes = calloc(1, sizeof(*a->boot.nodes));
	a->boot.info.size = a->boot.info.local_size = 1;
	if (!a->boot.nodes || getrandom(a->boot.info.key, SCI_BOOT_KEY_SIZE, 0) !=
			      SCI_BOOT_KEY_SIZE) {
		alone_close(&a->boot, false);
		return -ENOMEM;
	}
	*boot = &a->boot;
	return 0;
}

/* ---- calls of the program ---- */

static int launcher_open(struct sci_boot **boot, const char *socket)
{
	int ret;

	ret = boot_socket_open(boot, socket ? socket : getenv("SCI_BOOT"));
	if (ret == -ENOENT && !socket)
		ret = boot_pmix_open(boot);
	if (ret == -ENOENT && !socket)
		return alone_open(boot);
	if (!ret)
		(*boot)->info.launched = true;
	return ret;
}

int sci_boot_open(struct sci_boot **boot, const char *socket)
{
	pid_t pid = getpid(), was = atomic_load(&joined);
	int ret;

	do {
		if (was == pid)
			return -EBUSY;
	} while (!atomic_compare_exchange_weak(&joined, &was, pid));
	ret = launcher_open(boot, socket);
	if (ret) {
		atomic_store(&joined, 0);
		return ret;
	}
	(*boot)->pid = pid;
	(*boot)->info.nodes = (*boot)->nodes;
	return 0;
}

void sci_boot_close(struct sci_boot *boot)
{
	bool forked;

	if (!boot)
		return;
	forked = boot->pid != getpid();
	boot->ops->close(boot, forked);
	if (!forked)
		atomic_store(&joined, 0);
}

const struct sci_boot_info *sci_boot_info(const struct sci_boot *boot)
{
	return &boot->info;
}

int sci_boot_gather(struct sci_boot *boot, const void *mine, void *all, size_t len)
{
	if (boot->pid != getpid())
		return -ENOTCONN;
	if (len > SCI_BOOT_GATHER_MAX)
		return -EINVAL;
	return boot->ops->gather(boot, mine, all, len);
}

void sci_boot_idle(struct sci_boot *boot, void (*fn)(void *arg), void *arg)
{
	boot->idle = fn;
	boot->idle_arg = arg;
}

int boot_wait(struct sci_boot *boot, int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	if (boot->idle)
		boot->idle(boot->idle_arg);
	return poll(&p, 1, boot->idle ? IDLE_MS : -1) < 0 && errno != EINTR ? -errno : 0;
}

int sci_boot_barrier(struct sci_boot *boot)
{
	return sci_boot_gather(boot, NULL, NULL, 0);
}

static bool name_ok(const char *name)
{
	return *name && strlen(name) <= SCI_BOOT_NAME_MAX;
}

int sci_boot_publish(struct sci_boot *boot, const char *name, const void *value, size_t len)
{
	if (boot->pid != getpid())
		return -ENOTCONN;
	if (!name_ok(name) || len > SCI_BOOT_VALUE_MAX)
		return -EINVAL;
	return boot->ops->publish(boot, name, value, len);
}

int sci_boot_get(struct sci_boot *boot, unsigned int rank, const char *name, void *value,
		 size_t *len)
{
	if (boot->pid != getpid())
		return -ENOTCONN;
	if (!name_ok(name) || rank >= boot->info.size)
		return -EINVAL;
	return boot->ops->get(boot, rank, name, value, len);
}

int sci_boot_fd(const struct sci_boot *boot)
{
	return boot->ops->fd(boot);
}

int sci_boot_died(struct sci_boot *boot, unsigned int *rank)
{
	if (boot->pid != getpid())
		return -ENOTCONN;
	return boot->ops->died(boot, rank);
}

bool sci_boot_complete(const struct sci_boot *boot)
{
	return boot->ops->complete(boot);
}

void sci_boot_abort(struct sci_boot *boot, int status)
{
	if (boot->pid == getpid())
		boot->ops->abort(boot, status);
	_exit(status);
}
