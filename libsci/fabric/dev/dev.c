// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/fabric/dev/dev.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FOLDER		"/dev"
#define DEFAULT_MODE	0600u
#define PROBE_MS	1000u
#define MEMORY_MIN_DMA	(64u << 10)	/* a shorter copy costs less than a system call */
#define CARD_MIN_DMA	(8u << 10)	/* like MEMORY_MIN_DMA; a card's stores are slow */

/* libsci's inline accessors read the kernel's status page. */
_Static_assert(offsetof(struct sci_status_page, errors) ==
	       offsetof(struct sci_link_words, errors), "same words");
_Static_assert(offsetof(struct sci_status_page, down) ==
	       offsetof(struct sci_link_words, down), "same words");
_Static_assert(offsetof(struct sci_status_page, hw_errors) ==
	       offsetof(struct sci_link_words, hw_errors), "same words");
_Static_assert(offsetof(struct sci_status_page, hw_down) ==
	       offsetof(struct sci_link_words, hw_down), "same words");
_Static_assert(SCI_NODE_GROUP == SCI_IOC_NODE_GROUP, "one fact");
_Static_assert(SCI_NODE_MAX == SCI_IOC_NODE_MAX, "one fact");
_Static_assert(SCI_NODE_STEP == SCI_IOC_NODE_STEP, "one fact");
_Static_assert(SCI_DATA_INTR_MAX == SCI_IOC_INTR_DATA_MAX, "one fact");
_Static_assert(SCI_TIMEOUT_NONE == SCI_TIMEOUT_INFINITE, "one fact");

/* ---- one adapter ---- */

static int adapter_query(int fd, struct sci_ioc_query *q)
{
	int ret;

	memset(q, 0, sizeof(*q));
	q->size = sizeof(*q);
	ret = dev_ioctl(fd, SCI_IOC_QUERY, q);
	/* -ENOTTY: the file is not an SCI device */
	return ret == -ENOTTY ? -ENODEV : ret;
}

static int device_open(struct dev *dev, const char *path, int *out)
{
	int fd;

	do {
		fd = open(path, O_RDWR | O_CLOEXEC);
	} while (fd < 0 && (errno == EINTR ||
			    (errno == EMFILE && !sci_raise_fd_limit())));
	if (fd < 0)
		return errno == ENOENT || errno == ENXIO ? -ENODEV : -errno;
	*out = fd;
	return sci_fd_track(&dev->svc, fd);
}

static int page_map(int fd, int prot, off_t off, void **out)
{
	void *page = mmap(NULL, sci_page_size(), prot, MAP_SHARED, fd, off);

	if (page == MAP_FAILED)
		return -errno;
	*out = page;
	return 0;
}

/* Return true if a membarrier(2) reaches all processes that map the imported memory. */
static bool caps_are_local(uint32_t caps)
{
	return (caps & (SCI_CAP_MEMORY | SCI_CAP_SHARED)) == SCI_CAP_MEMORY;
}

static int pages_map(struct dev_adapter *a)
{
	int ret = page_map(a->fd, PROT_READ, SCI_MMAP_STATUS, &a->page);

	if (ret || !(a->caps & SCI_CAP_BARRIER))
		return ret;
	return page_map(a->fd, PROT_READ | PROT_WRITE, SCI_MMAP_BARRIER, &a->barrier);
}

/* Return true if a stream buffer is larger than a line, and so keeps a line until a timer ends. */
static bool card_keeps_lines(const struct dev_adapter *a, const struct sci_ioc_query *q)
{
	return a->barrier && q->out_stream_size > SCI_PIO_LINE;
}

static int adapter_set_up(struct dev_adapter *a, const char *path)
{
	struct sci_ioc_query q;
	int ret;

	ret = adapter_query(a->fd, &q);
	if (ret)
		return ret;
	a->number = q.out_adapter;
	a->node = q.out_node;
	a->caps = q.out_caps;
	a->max_segment = q.out_max_segment;
	a->dma_max = q.out_dma_max;
	snprintf(a->type, sizeof(a->type), "%.15s", (const char *)q.out_type);
	ret = pages_map(a);
	if (!ret)
		ret = dev_cache_init(a);
	if (ret)
		return ret;
	a->link.adapter = a->page;
	a->link.map = a->caps & SCI_CAP_MEMORY ? SCI_PIO_MAP_CACHED :
						 SCI_PIO_MAP_LINES;
	if (card_keeps_lines(a, &q))
		a->link.flush = &((struct sci_barrier_page *)a->barrier)->flush;
	a->path = strdup(path);
	return a->path ? 0 : -ENOMEM;
}

static void adapter_close(struct dev *dev, struct dev_adapter *a)
{
	if (a->page)
		munmap(a->page, sci_page_size());
	if (a->barrier)
		munmap(a->barrier, sci_page_size());
	sci_fd_close(&dev->svc, a->fd);
	free(a->path);
}

static int adapter_open(struct dev *dev, const char *path,
			struct dev_adapter *a)
{
	int ret;

	memset(a, 0, sizeof(*a));
	a->fd = -1;
	ret = device_open(dev, path, &a->fd);
	if (ret)
		return ret;
	ret = adapter_set_up(a, path);
	if (ret)
		adapter_close(dev, a);
	return ret;
}

struct dev_adapter *dev_adapter(struct dev *dev, unsigned int number)
{
	return number < dev->n_adapters ? &dev->adapters[number] : NULL;
}

/* ---- choice of adapters ---- */

struct search {
	struct dev *dev;
	const struct sci_fabric_place *at;
	unsigned int node;		/* of @at, or 0 */
	bool listed;			/* @at lists the devices */
	struct dev_adapter loop;	/* the first loop device, or fd -1 */
	int err;			/* error of the first unusable adapter */
	char path[64];			/* path of that adapter */
};

static int adapter_adopt(struct search *s, const struct dev_adapter *a)
{
	struct dev *dev = s->dev;

	if (dev->n_adapters == SCI_ADAPTER_MAX)
		return sci_place_bad(s->at, "want at most 16 adapters");
	dev->adapters[dev->n_adapters++] = *a;
	return 0;
}

/*
 * Open the device @path, and use it if it belongs to the node that SCI_NODE names. Without
 * SCI_NODE, use each listed device, and each found device but loop devices.
 *
 * Return: 0: continue with the next device; 1: end the search; -errno: end it with an error.
 */
static int adapter_consider(struct search *s, const char *path)
{
	struct dev_adapter a;
	int ret;

	ret = adapter_open(s->dev, path, &a);
	if (ret) {
		if (!s->err) {
			s->err = ret;
			snprintf(s->path, sizeof(s->path), "%s", path);
		}
		return s->listed ? ret : 0;
	}
	if (s->node) {
		if (a.node == s->node) {
			ret = adapter_adopt(s, &a);
			return ret ? ret : 1;
		}
	} else if (s->listed || strcmp(a.type, "loop")) {
		if (!s->listed && s->dev->n_adapters == SCI_ADAPTER_MAX)
			ret = 1;
		else
			ret = adapter_adopt(s, &a);
		if (!ret)
			return 0;
	} else if (s->loop.fd < 0) {
		s->loop = a;
		return 0;
	}
	adapter_close(s->dev, &a);
	return ret;
}

static int devices_consider(struct search *s, const char *list)
{
	char *copy = strdup(list), *path, *next = NULL;
	int ret = copy ? 0 : -ENOMEM;

	s->listed = true;
	for (path = copy ? strtok_r(copy, ",", &next) : NULL; path && !ret;
	     path = strtok_r(NULL, ",", &next))
		ret = adapter_consider(s, path);
	free(copy);
	return ret;
}

/*
 * Return true if the device belongs to another node, by sysfs. An open of the device would count
 * this process as a process of that node.
 */
static bool device_is_other_node(const struct search *s, const char *name)
{
	uint64_t node;

	return s->node && !dev_sysfs_number(name, "node_id", 0, &node) &&
	       node != s->node;
}

static int entry_is_device(const struct dirent *e)
{
	size_t digits = strlen("sci");

	return !strncmp(e->d_name, "sci", digits) && e->d_name[digits] &&
	       !e->d_name[digits + strspn(e->d_name + digits, "0123456789")];
}

static int adapters_search(struct search *s)
{
	char path[PATH_MAX];
	struct dirent **e;
	int ret = 0, i, n;

	/* visit the devices in the order of their numbers */
	n = scandir(FOLDER, &e, entry_is_device, versionsort);
	if (n < 0)
		return -errno;
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), FOLDER "/%s", e[i]->d_name);
		if (!ret && !device_is_other_node(s, e[i]->d_name))
			ret = adapter_consider(s, path);
		free(e[i]);
	}
	free(e);
	return ret;
}

/* Return true if there is a device that the user may open. Do not open the device. */
static bool dev_present(void)
{
	char path[PATH_MAX];
	bool found = false;
	const struct dirent *e;
	DIR *dir = opendir(FOLDER);

	while (dir && !found && (e = readdir(dir))) {
		snprintf(path, sizeof(path), FOLDER "/%s", e->d_name);
		found = entry_is_device(e) && !faccessat(AT_FDCWD, path,
							 R_OK | W_OK, AT_EACCESS);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Print why there is no adapter, and what the user can do. */
static void search_print_error(const struct search *s)
{
	const char *from = sci_place_spec_from(s->at);

	if (s->err)
		fprintf(stderr, "libsci: cannot open %s: %s: %s or set %s=shm\n", s->path,
			s->err == -ENODEV ? "no SCI adapter" :
					    strerror(-s->err),
			s->err == -EACCES ? "add this user to the group sci," :
					    "name one of " FOLDER "/sci*,", from);
	else if (s->node && (s->listed || dev_present()))
		fprintf(stderr, "libsci: %s=%u: no adapter is this node: see /sys/class/sci/sci*/node_id\n",
			sci_place_node_from(s->at), s->node);
	else
		fprintf(stderr, "libsci: %s=dev: no " FOLDER "/sci*: modprobe sci_loop, or set %s=shm\n",
			from, from);
}

static int adapters_find(struct dev *dev, const struct sci_fabric_place *at, const char *list,
			 unsigned int node)
{
	struct search s = { .dev = dev, .at = at, .node = node, .loop.fd = -1 };
	int ret;

	ret = list && *list ? devices_consider(&s, list) : adapters_search(&s);
	ret = ret < 0 ? ret : 0;
	if (s.loop.fd >= 0) {
		/* each loop device is a separate node: use one only without other adapters */
		if (ret || dev->n_adapters)
			adapter_close(dev, &s.loop);
		else
			ret = adapter_adopt(&s, &s.loop);
	}
	if (!ret && !dev->n_adapters)
		ret = s.err ? s.err : -ENODEV;
	if (ret && ret != -EINVAL)
		search_print_error(&s);
	return ret;
}

/* ---- injected link changes ---- */

static void dev_link_changed(struct sci_service *svc, bool down)
{
	struct dev *dev = container_of(svc, struct dev, svc);
	struct list *pos, *n;
	unsigned int i;

	for (i = 0; i < dev->n_adapters; i++) {
		atomic_store(&dev->adapters[i].link.down, down);
		if (down)
			atomic_fetch_add(&dev->adapters[i].link.errors, 1);
	}
	list_for_each_safe(pos, n, &dev->rsegs)
		dev_rseg_link_event(container_of(pos, struct sci_rseg, link),
				    down);
}

/* Copy the registered pages in the child of a fork. */
static void dev_fork_child(struct sci_service *svc)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &container_of(svc, struct dev, svc)->copied)
		dev_lseg_fork(container_of(pos, struct sci_lseg, link));
}

static const struct sci_service_ops service_ops = {
	.forked = dev_fork_child,
	.link = dev_link_changed,
};

/* ---- open and close ---- */

static void dev_close(struct sci_fabric *f)
{
	struct dev *dev = dev_of(f);
	unsigned int i;

	sci_service_stop(&dev->svc);
	pthread_mutex_lock(&dev->svc.lock);
	for (i = 0; i < dev->n_adapters; i++)
		adapter_close(dev, &dev->adapters[i]);
	dev->n_adapters = 0;
	pthread_mutex_unlock(&dev->svc.lock);
	sci_service_close(&dev->svc);
	free(dev);
}

static int dev_read_place(struct dev *dev, const struct sci_fabric_place *at,
			  unsigned int *node)
{
	int ret;

	*node = 0;
	dev->mode = DEFAULT_MODE;
	ret = sci_place_node(at, node);
	ret = ret ? ret : sci_env_mode(&dev->mode);
	return ret ? ret : sci_wake_init(&dev->wake_barrier);
}

static int dev_open(struct sci_fabric **out, const struct sci_fabric_place *at,
		    const char *arg)
{
	struct dev *dev = calloc(1, sizeof(*dev));
	unsigned int node;
	int ret;

	if (!dev)
		return -ENOMEM;
	dev->base.ops = &sci_dev_fabric;
	list_init(&dev->rsegs);
	list_init(&dev->copied);
	list_init(&dev->calls);
	ret = sci_service_open(&dev->svc, &service_ops);
	ret = ret ? ret : dev_read_place(dev, at, &node);
	ret = ret ? ret : adapters_find(dev, at, arg, node);
	/* The kernel's wake barrier reaches processes of this machine only. */
	if (!ret && !caps_are_local(dev->adapters[0].caps))
		dev->wake_barrier = false;
	ret = sci_service_opened(&dev->svc, ret);
	if (ret) {
		dev_close(&dev->base);
		return ret;
	}
	*out = &dev->base;
	return 0;
}

/* ---- adapters and nodes ---- */

static void info_fill(struct dev *dev, struct dev_adapter *a,
		      const struct sci_ioc_query *q,
		      struct sci_adapter_info *info)
{
	bool dma = a->caps & SCI_CAP_DMA;

	*info = (struct sci_adapter_info) {
		.node = q->out_node,
		.type = a->type,
		.device = a->path,
		.serial = q->out_serial,
		.link_up = !sci_link_down(&a->link),
		.att_page_size = q->out_att_page_size,
		.att_entries = q->out_att_entries,
		.att_available = q->out_att_free,
		.streams = q->out_streams,
		.stream_size = q->out_stream_size,
		/* the fabric divides transfers that are too long for the adapter */
		.dma_mtu = 1u << 30,
		.dma_size_align = dma && q->out_dma_align ?
				  q->out_dma_align : 1,
		.dma_offset_align = dma && q->out_dma_align ?
				    q->out_dma_align : 1,
		.min_dma_size = a->caps & SCI_CAP_MEMORY ? MEMORY_MIN_DMA :
							   CARD_MIN_DMA,
		.min_block_size = 64,
		.mcast_groups = q->out_mcast_groups,
		.wake_barrier = dev->wake_barrier && caps_are_local(a->caps),
		.bdf = q->out_bdf,
		.register_copies = dev_register_copies(a),
		.link_up_ms = q->out_link_up_ms,
		.link_down_ms = q->out_link_down_ms,
	};
}

static int dev_adapter_query(struct sci_fabric *f, unsigned int adapter,
			     struct sci_adapter_info *info)
{
	struct dev *dev = dev_of(f);
	struct dev_adapter *a = dev_adapter(dev, adapter);
	uint64_t up_ms, down_ms;
	struct sci_ioc_query q;
	int ret;

	if (!a)
		return -ENODEV;
	ret = adapter_query(a->fd, &q);
	if (ret)
		return ret;
	info_fill(dev, a, &q, info);
	pthread_mutex_lock(&dev->svc.lock);
	sci_service_link_times(&dev->svc, &up_ms, &down_ms);
	pthread_mutex_unlock(&dev->svc.lock);
	/* report the times of the real link, less injected outages */
	if (down_ms && up_ms < info->link_up_ms)
		info->link_up_ms = up_ms;
	info->link_down_ms += down_ms;
	return 0;
}

static struct sci_link_status *dev_link_status(struct sci_fabric *f,
					       unsigned int adapter)
{
	return &dev_adapter(dev_of(f), adapter)->link;
}

static int dev_node_probe(struct sci_fabric *f, unsigned int adapter,
			  unsigned int node)
{
	struct dev_adapter *a = dev_adapter(dev_of(f), adapter);
	struct sci_ioc_probe arg = {
		.size = sizeof(arg), .node = node, .timeout_ms = PROBE_MS,
	};

	if (!a)
		return -ENODEV;
	if (sci_link_down(&a->link) && node != a->node)
		return -ENETDOWN;
	return dev_ioctl(a->fd, SCI_IOC_PROBE, &arg);
}

static int dev_wake_barrier(struct sci_fabric *f)
{
	return dev_of(f)->wake_barrier ? sci_wake_barrier() : -EOPNOTSUPP;
}

const struct sci_fabric_ops sci_dev_fabric = {
	.name = "dev",
	.present = dev_present,
	.open = dev_open,
	.close = dev_close,
	.query = {
		.adapter = dev_adapter_query,
		.link = dev_link_status,
		.probe = dev_node_probe,
		.nodes = dev_node_list,
		.segments = dev_segment_list,
	},
	.lseg = {
		.create = dev_lseg_create,
		.export = dev_lseg_export,
		.unexport = dev_lseg_unexport,
		.importers = dev_lseg_importers,
		.destroy = dev_lseg_destroy,
		.id = dev_lseg_id,
		.size = dev_lseg_size,
		.map = dev_lseg_map,
	},
	.local = {
		.attach = dev_lseg_attach,
		.reg = dev_lseg_register,
		.twin = dev_lseg_twin,
		.share = dev_lseg_share,
	},
	.rseg = {
		.connect = dev_rseg_connect,
		.disconnect = dev_rseg_disconnect,
		.cancel_connect = dev_cancel_connect,
		.size = dev_rseg_size,
		.readonly = dev_rseg_readonly,
		.status = dev_rseg_status,
		.map = dev_rseg_map,
		.store_barrier = dev_store_barrier,
	},
	.lintr = {
		.create = dev_lintr_create,
		.wait = dev_lintr_wait,
		.fd = dev_lintr_fd,
		.cancel = dev_lintr_cancel,
		.destroy = dev_lintr_destroy,
	},
	.rintr = {
		.connect = dev_rintr_connect,
		.trigger = dev_rintr_trigger,
		.disconnect = dev_rintr_disconnect,
	},
	.unmap = dev_unmap,
	.renew = dev_lseg_renew,
	.dma = dev_dma_copy,
	.wake_barrier = dev_wake_barrier,
};
