/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the dev fabric
 *
 * Nodes are adapters of the kernel module, whose interface is include/uapi/linux/sci.h. Every
 * object is a descriptor, and every descriptor is in the table of the service, so that the child
 * of a fork() closes it.
 *
 * The kernel reports events of an object as records in its descriptor.
 * The service thread reads the records of segments, and of interrupts that have an
 * event function.  All descriptors are non-blocking; a thread that waits calls poll().
 *
 * Calls that make an object hold the gate and not the lock: the kernel may take long to find
 * memory, and other objects' events must not wait.
 */
#ifndef LIBSCI_DEV_H
#define LIBSCI_DEV_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "include/uapi/linux/sci.h"
#include "libsci/fabric/core/common.h"
#include "libsci/fabric/core/fabric.h"
#include "libsci/base/host.h"
#include "libsci/base/list.h"
#include "libsci/fabric/core/service.h"

#define DEV_IDLE_QUEUES	8		/* queues that are kept for later transfers */

struct dev_adapter {
	struct sci_link_status link;
	char *path;
	int fd;
	unsigned int number;		/* N of /dev/sciN */
	unsigned int node;
	unsigned int caps;		/* enum sci_cap */
	uint64_t max_segment;
	uint64_t dma_max;		/* longest piece of a transfer */
	char type[16];
	void *page;			/* struct sci_status_page */
	void *barrier;			/* struct sci_barrier_page, or NULL */
	int idle[DEV_IDLE_QUEUES];	/* DMA queues that no thread uses */
	unsigned int n_idle;
};

struct dev {
	struct sci_fabric base;
	struct sci_service svc;
	struct dev_adapter adapters[SCI_ADAPTER_MAX];
	unsigned int n_adapters;
	unsigned int mode;
	/* the process takes part in the kernel's wake barrier */
	bool wake_barrier;
	struct list rsegs;
	struct list copied;		/* segments that replace memory: struct sci_lseg */
	struct list calls;		/* calls in progress: struct dev_call */
	bool no_calls;			/* all calls fail from now on */
};

/* A connect in progress. Another thread may cancel it. */
struct dev_call {
	struct list link;
	const void *owner;
	int cancelfd;			/* an eventfd */
	bool cancelled;
};

struct sci_rseg {
	struct list link;
	struct dev *dev;
	struct dev_adapter *adapter;
	unsigned int node;
	unsigned int adapter_no;
	int fd;
	uint64_t size;
	bool readonly;
	/* the owner has received the event that ends the connection */
	bool over;
	struct sci_rseg_status status;
	sci_event_fn event;
	void *owner;
};

struct sci_lseg {
	struct dev *dev;
	int fd;
	uint32_t id;
	unsigned int flags;		/* SCI_LSEG_* */
	uint64_t size;
	bool attached;
	bool empty;			/* the segment has no memory yet */
	void *copied;			/* the program's memory that this segment's replaces */
	unsigned long inode;		/* of the maps at @copied */
	struct list link;
	sci_event_fn event;
	void *owner;
};

/*
 * Return whether registering replaces memory by pages of the adapter's own, because peers reach no
 * other pages.
 */
static inline bool dev_register_copies(const struct dev_adapter *a)
{
	return !(a->caps & SCI_CAP_REGISTER);
}

static inline struct dev *dev_of(struct sci_fabric *f)
{
	return container_of(f, struct dev, base);
}

/* object.c */
int dev_ioctl(int fd, unsigned long cmd, void *arg);
int dev_make(struct dev *dev, int from, unsigned long cmd, void *arg,
	     const int32_t *out, int *fd);
void dev_drop(struct dev *dev, int fd);
int dev_watch(struct dev *dev, int fd, sci_watch_fn fn, void *obj);
void dev_unwatch(struct dev *dev, int fd);
int dev_records(struct dev *dev, int fd, struct sci_ev_record *rec, int room);
int dev_map(int fd, uint64_t off, size_t len, unsigned int flags,
	    void **addr);

/* call.c */
int dev_connect(struct dev *dev, const void *owner, uint32_t timeout, int from, unsigned long cmd,
		void *arg, const int32_t *out, int *fd);
void dev_cancel_connect(struct sci_fabric *f, const void *owner);

/* dev.c */
struct dev_adapter *dev_adapter(struct dev *dev, unsigned int number);

/* segment.c, import.c, interrupt.c: struct sci_fabric_ops */
int dev_lseg_create(struct sci_fabric *f, const struct sci_lseg_param *p,
		    struct sci_lseg **out);
int dev_lseg_attach(struct sci_fabric *f, const struct sci_lseg_param *p,
		    struct sci_lseg **out);
int dev_lseg_register(struct sci_lseg *s, void *addr, size_t len);
int dev_lseg_renew(struct sci_lseg *s, void *addr, size_t len);
void dev_lseg_fork(struct sci_lseg *s);
int dev_lseg_twin(struct sci_lseg *s, struct sci_lseg *of);
int dev_lseg_share(struct sci_lseg *s);
int dev_lseg_export(struct sci_lseg *s, unsigned int adapter);
int dev_lseg_unexport(struct sci_lseg *s, enum sci_unexport how);
unsigned int dev_lseg_importers(struct sci_lseg *s);
void dev_lseg_destroy(struct sci_lseg *s);
uint32_t dev_lseg_id(struct sci_lseg *s);
uint64_t dev_lseg_size(struct sci_lseg *s);
int dev_lseg_map(struct sci_lseg *s, uint64_t off, size_t len,
		 unsigned int flags, void **addr);

int dev_rseg_connect(struct sci_fabric *f, const struct sci_rseg_param *p,
		     struct sci_rseg **out);
void dev_rseg_disconnect(struct sci_rseg *r);
uint64_t dev_rseg_size(struct sci_rseg *r);
bool dev_rseg_readonly(struct sci_rseg *r);
struct sci_rseg_status *dev_rseg_status(struct sci_rseg *r);
int dev_rseg_map(struct sci_rseg *r, uint64_t off, size_t len,
		 unsigned int flags, void **addr);
void dev_unmap(struct sci_fabric *f, void *addr, size_t len);
void dev_rseg_link_event(struct sci_rseg *r, bool down);
/* ---- cache.c ---- */

/*
 * Set link.cache of an adapter whose caps are known. Return: 0; -EOPNOTSUPP: programs cannot
 * flush this CPU's cache.
 */
int dev_cache_init(struct dev_adapter *a);

void dev_store_barrier(struct sci_fabric *f, struct sci_rseg *r);

int dev_lintr_create(struct sci_fabric *f, struct sci_lintr_param *p,
		     struct sci_lintr **out);
int dev_lintr_wait(struct sci_lintr *i, void *data, size_t *len,
		   uint32_t timeout);
int dev_lintr_fd(struct sci_lintr *i);
void dev_lintr_cancel(struct sci_lintr *i);
void dev_lintr_destroy(struct sci_lintr *i);
int dev_rintr_connect(struct sci_fabric *f, const struct sci_rintr_param *p,
		      struct sci_rintr **out);
int dev_rintr_trigger(struct sci_rintr *i, const void *data, size_t len);
void dev_rintr_disconnect(struct sci_rintr *i);

/* dma.c */
int dev_dma_copy(struct sci_lseg *s, struct sci_rseg *r,
		 const struct sci_dma_piece *piece, bool pull);

/* list.c */
int dev_sysfs_number(const char *where, const char *name, int base,
		     uint64_t *value);
int dev_node_list(struct sci_fabric *f,
		  int (*fn)(void *arg, const struct sci_node_info *n),
		  void *arg);
int dev_segment_list(struct sci_fabric *f,
		     int (*fn)(void *arg, const struct sci_segment_info *s),
		     void *arg);

#endif
