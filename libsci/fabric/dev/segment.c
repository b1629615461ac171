// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Local segments: segments that this process has created or attached to. */

#include "libsci/fabric/dev/dev.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/base/pages.h"

#define RECORDS		16		/* events read at a time */

static void dev_lseg_notify(struct sci_lseg *s, enum sci_event_type type,
			    const struct sci_ev_record *rec)
{
	const struct sci_event ev = { .type = type, .node = rec->node };

	s->event(s->owner, &ev);
}

static void lseg_input(void *obj)
{
	struct sci_ev_record rec[RECORDS];
	struct sci_lseg *s = obj;
	int i, n;

	n = dev_records(s->dev, s->fd, rec, RECORDS);
	for (i = 0; i < n; i++) {
		switch (rec[i].type) {
		case SCI_EV_CONNECT:
			dev_lseg_notify(s, SCI_EVENT_CONNECT, &rec[i]);
			break;
		case SCI_EV_DISCONNECT:
			dev_lseg_notify(s, SCI_EVENT_DISCONNECT, &rec[i]);
			break;
		case SCI_EV_LOST:
			dev_lseg_notify(s, SCI_EVENT_LOST, &rec[i]);
			break;
		/* ignore events of a later kernel, and SCI_EV_OVERFLOW */
		default:
			break;
		}
	}
}

static struct sci_lseg *dev_lseg_new(struct sci_fabric *f, const struct sci_lseg_param *p)
{
	struct sci_lseg *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->dev = dev_of(f);
	s->fd = -1;
	s->id = p->id;
	s->flags = p->flags;
	s->size = p->size;
	s->empty = p->flags & SCI_LSEG_EMPTY;
	s->event = p->event;
	s->owner = p->owner;
	return s;
}

static unsigned int dev_lseg_kernel_flags(unsigned int flags)
{
	unsigned int ret = 0;

	if (flags & SCI_LSEG_EMPTY)
		ret |= SCI_SEGMENT_EMPTY;
	if (flags & SCI_LSEG_PRIVATE)
		return ret | SCI_SEGMENT_PRIVATE;
	if (flags & SCI_LSEG_AUTO_ID)
		ret |= SCI_SEGMENT_AUTO_ID;
	if (flags & SCI_LSEG_BROADCAST)
		ret |= SCI_SEGMENT_BROADCAST |
		       (flags & SCI_LSEG_UNICAST ? SCI_SEGMENT_UNICAST : 0);
	return ret;
}

/*
 * Return the NUMA node that SCI_NUMA selects: a number, or with "local" the node of the calling
 * thread. -1: the kernel chooses the node.
 */
static int lseg_numa_node(void)
{
	const char *where = getenv("SCI_NUMA");
	unsigned int cpu, node;
	char *end;
	long n;

	if (!where || !*where)
		return -1;
	if (!strcmp(where, "local"))
		return getcpu(&cpu, &node) ? -1 : (int)node;
	n = strtol(where, &end, 10);
	return *end || n < 0 || n > 1023 ? -1 : (int)n;
}

static int segment_make(struct sci_lseg *s)
{
	struct dev_adapter *a = dev_adapter(s->dev, 0);
	struct sci_ioc_segment_create arg = {
		.size = sizeof(arg),
		.flags = dev_lseg_kernel_flags(s->flags),
		.id = s->flags & SCI_LSEG_PRIVATE ? 0 : s->id,
		.mode = s->dev->mode,
		.numa_node = lseg_numa_node(),
		.length = s->size,
	};
	int ret;

	if (s->size > a->max_segment)
		return -ENOSPC;
	if (dev_register_copies(a) && s->empty) {
		if (s->flags & SCI_LSEG_TWIN)
			return -EOPNOTSUPP;
		arg.flags &= ~(unsigned int)SCI_SEGMENT_EMPTY;
	}
	ret = dev_make(s->dev, a->fd, SCI_IOC_SEGMENT_CREATE, &arg,
		       &arg.out_fd, &s->fd);
	if (ret == -EINVAL && arg.numa_node >= 0) {
		/* SCI_NUMA is only a preference: try again without it */
		arg.numa_node = -1;
		ret = dev_make(s->dev, a->fd, SCI_IOC_SEGMENT_CREATE, &arg,
			       &arg.out_fd, &s->fd);
	}
	if (!ret && !(s->flags & SCI_LSEG_PRIVATE))
		s->id = arg.out_id;
	return ret;
}

static int dev_lseg_begin(struct sci_lseg *s, int ret, struct sci_lseg **out)
{
	ret = ret ? ret : dev_watch(s->dev, s->fd, lseg_input, s);
	if (ret) {
		dev_lseg_destroy(s);
		return ret;
	}
	*out = s;
	return 0;
}

int dev_lseg_create(struct sci_fabric *f, const struct sci_lseg_param *p,
		    struct sci_lseg **out)
{
	struct sci_lseg *s = dev_lseg_new(f, p);

	return s ? dev_lseg_begin(s, segment_make(s), out) : -ENOMEM;
}

int dev_lseg_attach(struct sci_fabric *f, const struct sci_lseg_param *p,
		    struct sci_lseg **out)
{
	struct sci_ioc_segment_attach arg = {
		.size = sizeof(arg), .id = p->id,
	};
	struct sci_lseg *s = dev_lseg_new(f, p);
	int ret;

	if (!s)
		return -ENOMEM;
	s->attached = true;
	ret = dev_make(s->dev, dev_adapter(s->dev, 0)->fd,
		       SCI_IOC_SEGMENT_ATTACH, &arg, &arg.out_fd, &s->fd);
	s->size = arg.out_length;
	return dev_lseg_begin(s, ret, out);
}

/* ---- memory of the program ---- */

/* Make the pages private again that the segment's memory has replaced. */
static void copied_return(struct sci_lseg *s)
{
	sci_pages_return(s->copied, s->size, s->inode);
}

void dev_lseg_fork(struct sci_lseg *s)
{
	copied_return(s);
}

static void copied_set(struct sci_lseg *s, void *addr)
{
	pthread_mutex_lock(&s->dev->svc.lock);
	s->copied = addr;
	if (addr)
		list_add_tail(&s->link, &s->dev->copied);
	else
		list_del(&s->link);
	pthread_mutex_unlock(&s->dev->svc.lock);
}

/* Replace memory of the program by that of the segment. No child is forked meanwhile. */
static int pages_adopt(struct sci_lseg *s, void *addr, size_t len)
{
	int ret;

	pthread_rwlock_rdlock(&s->dev->svc.gate);
	ret = sci_pages_adopt(s->fd, addr, len, &s->inode);
	if (!ret && !s->copied)
		copied_set(s, addr);
	pthread_rwlock_unlock(&s->dev->svc.gate);
	return ret;
}

static int pages_copy_in(struct sci_lseg *s, void *addr, size_t len)
{
	return !s->empty || len != s->size ? -EINVAL : pages_adopt(s, addr, len);
}

/* Let the kernel pin memory of the program. */
static int pages_pin(struct sci_lseg *s, void *addr, size_t len)
{
	struct sci_ioc_segment_register arg = {
		.size = sizeof(arg), .addr = (uintptr_t)addr, .length = len,
	};
	/* Refuse other memory: the kernel could pin it, but other fabrics could not use it. */
	int ret = sci_check_anonymous((uintptr_t)addr, len);

	return ret ? ret : dev_ioctl(s->fd, SCI_IOC_SEGMENT_REGISTER, &arg);
}

int dev_lseg_register(struct sci_lseg *s, void *addr, size_t len)
{
	int ret;

	if (((uintptr_t)addr | len) & (sci_page_size() - 1))
		return -EINVAL;
	ret = dev_register_copies(dev_adapter(s->dev, 0)) ? pages_copy_in(s, addr, len) :
							    pages_pin(s, addr, len);
	if (!ret)
		s->empty = false;
	return ret;
}

int dev_lseg_renew(struct sci_lseg *s, void *addr, size_t len)
{
	if (!s->copied || sci_check_file(addr, len, s->inode, false) != -EFAULT)
		return 0;
	/* peers use the pages that the program has kept: change none of them in vain */
	if (sci_check_file(addr, len, s->inode, true))
		return -EFAULT;
	/* the pages that the program has kept become private, as the new ones are */
	copied_return(s);
	return pages_adopt(s, addr, len);
}

/* Disconnect importers in good order, and free a segment. A forked child's copies end, too. */
void dev_lseg_destroy(struct sci_lseg *s)
{
	struct sci_ioc_segment_remove arg = { .size = sizeof(arg) };

	if (s->fd >= 0) {
		dev_unwatch(s->dev, s->fd);
		if (!s->attached)
			dev_ioctl(s->fd, SCI_IOC_SEGMENT_REMOVE, &arg);
		dev_drop(s->dev, s->fd);
	}
	/* no importer is left, and the maps keep the memory */
	if (s->copied) {
		copied_return(s);
		/* only now: until here the child of a fork() must make the pages private */
		copied_set(s, NULL);
	}
	free(s);
}

int dev_lseg_twin(struct sci_lseg *s, struct sci_lseg *of)
{
	struct sci_ioc_segment_get_dmabuf get = { .size = sizeof(get) };
	struct sci_ioc_segment_register_dmabuf reg = { .size = sizeof(reg) };
	int ret = dev_make(of->dev, of->fd, SCI_IOC_SEGMENT_GET_DMABUF, &get, &get.out_fd, &reg.fd);

	if (ret)
		return ret;
	ret = dev_ioctl(s->fd, SCI_IOC_SEGMENT_REGISTER_DMABUF, &reg);
	dev_drop(of->dev, reg.fd);
	if (!ret)
		s->empty = false;
	return ret;
}

/* ---- states ---- */

int dev_lseg_share(struct sci_lseg *s)
{
	struct sci_ioc_segment_share arg = { .size = sizeof(arg) };

	if (s->empty)
		return -EBUSY;
	return dev_ioctl(s->fd, SCI_IOC_SEGMENT_SHARE, &arg);
}

int dev_lseg_export(struct sci_lseg *s, unsigned int adapter)
{
	struct sci_ioc_segment_export arg = { .size = sizeof(arg) };

	if (s->empty)
		return -EINVAL;
	/* only the adapter that allocated the memory can export it */
	if (adapter)
		return -EOPNOTSUPP;
	return dev_ioctl(s->fd, SCI_IOC_SEGMENT_EXPORT, &arg);
}

int dev_lseg_unexport(struct sci_lseg *s, enum sci_unexport how)
{
	static const unsigned int hows[] = {
		[SCI_UNEXPORT_QUIET] = SCI_UNEXPORT_HOW_QUIET,
		[SCI_UNEXPORT_NOTIFY] = SCI_UNEXPORT_HOW_NOTIFY,
		[SCI_UNEXPORT_FORCE] = SCI_UNEXPORT_HOW_FORCE,
	};
	struct sci_ioc_segment_unexport arg = {
		.size = sizeof(arg), .how = hows[how],
	};

	return dev_ioctl(s->fd, SCI_IOC_SEGMENT_UNEXPORT, &arg);
}

/*
 * Return the number of importers. A forked child of this process counts as an importer until it
 * has closed its copies of the descriptors.
 */
unsigned int dev_lseg_importers(struct sci_lseg *s)
{
	struct sci_ioc_segment_info arg = { .size = sizeof(arg) };

	do {
		if (dev_ioctl(s->fd, SCI_IOC_SEGMENT_INFO, &arg))
			return 0;
	} while (arg.out_importers && sci_forked_lately(&s->dev->svc));
	return arg.out_importers;
}

uint32_t dev_lseg_id(struct sci_lseg *s)
{
	return s->id;
}

uint64_t dev_lseg_size(struct sci_lseg *s)
{
	return s->size;
}

int dev_lseg_map(struct sci_lseg *s, uint64_t off, size_t len,
		 unsigned int flags, void **addr)
{
	return s->empty ? -EINVAL : dev_map(s->fd, off, len, flags, addr);
}
