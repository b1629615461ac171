// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Event queues. Datagram endpoints have no events, but many programs open a queue. A queue contains
 * only the events that the program has written. Its descriptor is readable while it contains
 * events.
 */
#include "libsci/ofi/ofi.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

struct event {
	struct event *next;
	uint32_t type;
	size_t len;
	char data[];
};

struct sfi_eq {
	struct fid_eq fid;
	struct sfi_fabric *fabric;
	struct sfi_wait wait;
	struct sfi_lock lock;
	struct event *events, **end;
};

static ssize_t eq_read(struct fid_eq *fid, uint32_t *type, void *buf, size_t len,
		       uint64_t flags)
{
	struct sfi_eq *eq = (struct sfi_eq *)fid;
	ssize_t ret = -FI_EAGAIN;
	struct event *e;

	sfi_lock(&eq->lock);
	e = eq->events;
	if (e && e->len > len) {
		ret = -FI_ETOOSMALL;
	} else if (e) {
		*type = e->type;
		memcpy(buf, e->data, e->len);
		ret = (ssize_t)e->len;
		if (!(flags & FI_PEEK)) {
			eq->events = e->next;
			free(e);
			if (!eq->events) {
				eq->end = &eq->events;
				sfi_wait_clear(&eq->wait);
			}
		}
	}
	sfi_unlock(&eq->lock);
	return ret;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf,
			  uint64_t flags)
{
	(void)fid, (void)buf, (void)flags;
	return -FI_EAGAIN;
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t type, const void *buf,
			size_t len, uint64_t flags)
{
	struct sfi_eq *eq = (struct sfi_eq *)fid;
	struct event *e = malloc(sizeof(*e) + len);

	(void)flags;
	if (!e)
		return -FI_ENOMEM;
	*e = (struct event){ .type = type, .len = len };
	memcpy(e->data, buf, len);
	sfi_lock(&eq->lock);
	*eq->end = e;
	eq->end = &e->next;
	sfi_wait_signal(&eq->wait);
	sfi_unlock(&eq->lock);
	return (ssize_t)len;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *type, void *buf,
			size_t len, int timeout, uint64_t flags)
{
	struct sfi_eq *eq = (struct sfi_eq *)fid;
	ssize_t ret = eq_read(fid, type, buf, len, flags);

	if (ret != -FI_EAGAIN)
		return ret;
	if (eq->wait.obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	ret = sfi_wait_poll(&eq->wait, timeout);
	return ret ? ret : eq_read(fid, type, buf, len, flags);
}

static const char *eq_strerror(struct fid_eq *fid, int error, const void *data,
			       char *buf, size_t len)
{
	(void)fid, (void)data, (void)buf, (void)len;
	return fi_strerror(error);
}

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct sfi_eq *eq = (struct sfi_eq *)fid;

	return command == FI_GETWAIT ? sfi_wait_fd(&eq->wait, arg) : -FI_ENOSYS;
}

static int eq_close(struct fid *fid)
{
	struct sfi_eq *eq = (struct sfi_eq *)fid;
	struct event *e;

	while ((e = eq->events)) {
		eq->events = e->next;
		free(e);
	}
	eq->fabric->users--;
	sfi_wait_fini(&eq->wait);
	sfi_lock_fini(&eq->lock);
	free(eq);
	return 0;
}

static struct fi_ops eq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = sfi_no_bind,
	.control = eq_control,
	.ops_open = sfi_no_ops_open,
};

int sfi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		struct fid_eq **out, void *context)
{
	struct sfi_fabric *f = (struct sfi_fabric *)fabric;
	struct sfi_eq *eq = calloc(1, sizeof(*eq));
	int ret = eq ? sfi_wait_init(&eq->wait, attr ? attr->wait_obj :
						       FI_WAIT_NONE) :
		       -FI_ENOMEM;

	if (ret) {
		free(eq);
		return ret;
	}
	eq->fid.fid.fclass = FI_CLASS_EQ;
	eq->fid.fid.context = context;
	eq->fid.fid.ops = &eq_fid_ops;
	eq->fid.ops = &eq_ops;
	eq->fabric = f;
	eq->end = &eq->events;
	sfi_lock_init(&eq->lock, true);
	f->users++;
	*out = &eq->fid;
	return 0;
}
