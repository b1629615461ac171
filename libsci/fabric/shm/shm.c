// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/fabric/shm/shm.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEFAULT_NODE	4u
#define DEFAULT_NODES	16u		/* nodes of a virtual cluster: 4 ... 64 */
#define DEFAULT_MODE	0600u
#define FIRST_INTNO	0x1000u		/* numbers below are left to SCI_INTR_FIXED */
#define PROBE_LOOKS	4
#define STREAMS		16u		/* as later cards have; programs hang with fewer */
#define STREAM_SIZE	128u		/* as later cards have; programs hang with less */

static struct shm *shm_of(struct sci_service *svc)
{
	return container_of(svc, struct shm, svc);
}

static void shm_link_changed(struct sci_service *svc, bool down)
{
	struct shm *shm = shm_of(svc);
	struct list *pos, *n;

	atomic_store(&shm->link.down, down);
	if (down)
		atomic_fetch_add(&shm->link.errors, 1);
	list_for_each_safe(pos, n, &shm->rsegs)
		shm_rseg_link_event(container_of(pos, struct sci_rseg, link),
				    down);
}

/* Copy the registered pages in the child of a fork. */
static void shm_fork_child(struct sci_service *svc)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &shm_of(svc)->lsegs)
		shm_lseg_fork(container_of(pos, struct sci_lseg, link));
}

static const struct sci_service_ops service_ops = {
	.forked = shm_fork_child,
	.link = shm_link_changed,
};

bool shm_node_exists(struct shm *shm, unsigned int node)
{
	return node == shm->node || node == SCI_NODE_GROUP ||
	       (node >= SCI_NODE_STEP && node <= shm->last_node);
}

/* ---- open and close ---- */

static int cluster_read(struct shm *shm, const struct sci_fabric_place *at,
			const char *name)
{
	size_t len = name ? strlen(name) : 0;
	size_t i;

	/* without a name, each user has a separate cluster */
	if (!len) {
		snprintf(shm->cluster, sizeof(shm->cluster), "default-%u",
			 geteuid());
		return 0;
	}
	for (i = 0; i < len; i++)
		if (i == SHM_CLUSTER_MAX ||
		    (!isalnum((unsigned char)name[i]) &&
		     !strchr("_-", name[i])))
			return sci_place_bad(at,
					     "want shm:CLUSTER, at most 32 letters, digits, _ and -");
	memcpy(shm->cluster, name, len + 1);
	return 0;
}

static int env_huge(struct shm *shm)
{
	const char *s = getenv("SCI_HUGEPAGES");

	if (!s || !*s || !strcmp(s, "0"))
		return 0;
	if (!strcmp(s, "2M") || !strcmp(s, "1"))
		shm->huge = 2u << 20;
	else if (!strcmp(s, "1G"))
		shm->huge = 1u << 30;
	else
		return sci_env_bad("SCI_HUGEPAGES", s, "want 0, 2M or 1G");
	return 0;
}

static int rundir_report(int err)
{
	char text[128];

	snprintf(text, sizeof(text),
		 "%s: want a directory that this user can write to",
		 strerror(err));
	return sci_env_bad("SCI_RUNDIR", getenv("SCI_RUNDIR"), text);
}

static int env_rundir(struct shm *shm)
{
	const char *s = getenv("SCI_RUNDIR");

	if (!s || !*s)
		return 0;
	shm->rundir = open(s, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (shm->rundir < 0)
		return rundir_report(errno);
	return sci_fd_track(&shm->svc, shm->rundir);
}

static int shm_read_place(struct shm *shm, const struct sci_fabric_place *at,
			  const char *cluster)
{
	unsigned int nodes = DEFAULT_NODES;
	int ret;

	shm->node = DEFAULT_NODE;
	shm->mode = DEFAULT_MODE;
	ret = cluster_read(shm, at, cluster);
	ret = ret ? ret : sci_place_node(at, &shm->node);
	ret = ret ? ret : sci_env_number("SCI_NODES", &nodes, 10, 1,
					 SCI_NODE_MAX / SCI_NODE_STEP,
					 "want the number of nodes, from 1 to 16383");
	ret = ret ? ret : sci_env_mode(&shm->mode);
	ret = ret ? ret : sci_wake_init(&shm->wake_barrier);
	ret = ret ? ret : env_huge(shm);
	ret = ret ? ret : env_rundir(shm);
	ret = ret ? ret : shm_check_init(shm);
	shm->last_node = nodes * SCI_NODE_STEP;
	return ret;
}

/* Open readyfd, which is always readable, and sparefd, which is closed if no descriptor is free. */
static int spares_init(struct shm *shm)
{
	int ret;

	shm->readyfd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = shm->readyfd < 0 ? -errno :
				 sci_fd_track(&shm->svc, shm->readyfd);
	if (ret)
		return ret;
	shm->sparefd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return shm->sparefd < 0 ? -errno :
				  sci_fd_track(&shm->svc, shm->sparefd);
}

/*
 * Bind the name that shows that this node has a process.  The name is a datagram socket,
 * because a connect to a datagram socket needs no accept().
 */
static int presence_init(struct shm *shm)
{
	static _Atomic uint32_t serial;
	uint32_t unique;
	int ret;

	/* a pid is not unique if containers share a network namespace */
	do {
		unique = (uint32_t)getpid() * 2654435761u +
			 (uint32_t)sci_now_ms() + atomic_fetch_add(&serial, 1);
		shm_name(shm, shm->presence_name, SHM_NODE, shm->node, unique);
		ret = shm_bind(shm, shm->presence_name, SOCK_DGRAM,
			       &shm->presence);
	} while (ret == -EEXIST);
	/*
	 * this is the first file that the process makes in SCI_RUNDIR: report the error as an
	 * error of SCI_RUNDIR
	 */
	return ret && shm->rundir >= 0 ? rundir_report(-ret) : ret;
}

static void shm_close(struct sci_fabric *f)
{
	struct shm *shm = container_of(f, struct shm, base);

	sci_service_stop(&shm->svc);
	pthread_mutex_lock(&shm->svc.lock);
	shm_unbind(shm, shm->presence_name, false, &shm->presence);
	pthread_mutex_unlock(&shm->svc.lock);
	sci_service_close(&shm->svc);
	hash_free(&shm->maps);
	shm_check_fini(shm);
	free(shm);
}

static struct shm *shm_new(void)
{
	struct shm *shm = calloc(1, sizeof(*shm));

	if (!shm)
		return NULL;
	shm->base.ops = &sci_shm_fabric;
	shm->rundir = -1;
	shm->presence = -1;
	shm->link.map = SCI_PIO_MAP_CACHED;
	shm->next_intno = FIRST_INTNO;
	list_init(&shm->lsegs);
	list_init(&shm->rsegs);
	list_init(&shm->calls);
	return shm;
}

static int shm_open_fabric(struct sci_fabric **out,
			   const struct sci_fabric_place *at, const char *arg)
{
	struct shm *shm = shm_new();
	int ret;

	if (!shm)
		return -ENOMEM;
	ret = sci_service_open(&shm->svc, &service_ops);
	ret = ret ? ret : shm_read_place(shm, at, arg);
	ret = ret ? ret : spares_init(shm);
	ret = ret ? ret : presence_init(shm);
	ret = sci_service_opened(&shm->svc, ret);
	if (ret) {
		shm_close(&shm->base);
		return ret;
	}
	*out = &shm->base;
	return 0;
}

/* ---- adapters and nodes ---- */

static int shm_adapter_query(struct sci_fabric *f, unsigned int adapter,
			     struct sci_adapter_info *info)
{
	struct shm *shm = container_of(f, struct shm, base);
	const char *c;

	if (adapter)
		return -ENODEV;
	memset(info, 0, sizeof(*info));
	info->node = shm->node;
	info->type = "shm";
	/* all processes of a node compute the same serial number */
	info->serial = shm->node;
	for (c = shm->cluster; *c; c++)
		info->serial = (info->serial * 31 + (unsigned char)*c) &
			       0x7fffffff;
	pthread_mutex_lock(&shm->svc.lock);
	info->link_up = !sci_link_down(&shm->link);
	sci_service_link_times(&shm->svc, &info->link_up_ms,
			       &info->link_down_ms);
	pthread_mutex_unlock(&shm->svc.lock);
	info->att_page_size = (size_t)sysconf(_SC_PAGESIZE);
	info->streams = STREAMS;
	info->stream_size = STREAM_SIZE;
	info->dma_mtu = 1u << 30;
	info->dma_size_align = 1;
	info->dma_offset_align = 1;
	/* a DMA thread's wake-up takes as long as the copy of this many bytes */
	info->min_dma_size = 64u << 10;
	info->min_block_size = 64;
	info->mcast_groups = UINT16_MAX;
	info->wake_barrier = shm->wake_barrier;
	info->register_copies = true;
	return 0;
}

static int shm_wake_barrier(struct sci_fabric *f)
{
	return container_of(f, struct shm, base)->wake_barrier ?
	       sci_wake_barrier() : -EOPNOTSUPP;
}

static struct sci_link_status *shm_link_status(struct sci_fabric *f,
					       unsigned int adapter)
{
	(void)adapter;
	return &container_of(f, struct shm, base)->link;
}

struct node_seek {
	unsigned int node;
	bool found;
};

static int node_seek(void *arg, const struct sci_node_info *info)
{
	struct node_seek *s = arg;

	s->found = info->node == s->node;
	return s->found;
}

static int shm_node_probe(struct sci_fabric *f, unsigned int adapter,
			  unsigned int node)
{
	struct shm *shm = container_of(f, struct shm, base);
	struct node_seek s = { .node = node };
	unsigned int i;
	int ret;

	(void)adapter;
	if (node == shm->node)
		return 0;
	if (sci_link_down(&shm->link))
		return -ENETDOWN;
	/*
	 * Read the list several times before a node counts as absent. The kernel's list of
	 * sockets is read a page at a time and continues by position: it skips a socket when
	 * another socket of the same hash bucket is closed meanwhile.
	 */
	for (i = 0; i < PROBE_LOOKS && !s.found; i++) {
		ret = shm_node_list(f, node_seek, &s);
		if (ret < 0)
			return ret;
	}
	return s.found ? 0 : -EHOSTUNREACH;
}

static bool shm_present(void)
{
	return true;
}

const struct sci_fabric_ops sci_shm_fabric = {
	.name = "shm",
	.virtual_nodes = true,
	.present = shm_present,
	.open = shm_open_fabric,
	.close = shm_close,
	.query = {
		.adapter = shm_adapter_query,
		.link = shm_link_status,
		.probe = shm_node_probe,
		.nodes = shm_node_list,
		.segments = shm_segment_list,
	},
	.lseg = {
		.create = shm_lseg_create,
		.export = shm_lseg_export,
		.unexport = shm_lseg_unexport,
		.importers = shm_lseg_importers,
		.destroy = shm_lseg_destroy,
		.id = shm_lseg_id,
		.size = shm_lseg_size,
		.map = shm_lseg_map,
	},
	.local = {
		.attach = shm_lseg_attach,
		.reg = shm_lseg_register,
		.twin = shm_lseg_twin,
		.share = shm_lseg_share,
	},
	.rseg = {
		.connect = shm_rseg_connect,
		.disconnect = shm_rseg_disconnect,
		.cancel_connect = shm_cancel_connect,
		.size = shm_rseg_size,
		.readonly = shm_rseg_readonly,
		.status = shm_rseg_status,
		.map = shm_rseg_map,
		.store_barrier = shm_store_barrier,
	},
	.lintr = {
		.create = shm_lintr_create,
		.wait = shm_lintr_wait,
		.fd = shm_lintr_fd,
		.cancel = shm_lintr_cancel,
		.destroy = shm_lintr_destroy,
	},
	.rintr = {
		.connect = shm_rintr_connect,
		.trigger = shm_rintr_trigger,
		.disconnect = shm_rintr_disconnect,
	},
	.unmap = shm_unmap,
	.renew = shm_lseg_renew,
	.dma = shm_dma_copy,
	.peer_read = shm_peer_read,
	.ring = shm_rseg_ring,
	.pair = shm_pair,
	.wake_barrier = shm_wake_barrier,
};
