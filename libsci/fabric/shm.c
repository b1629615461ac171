// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/fabric/shm.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "libsci/barrier.h"
#include "libsci/fabric/fault.h"
#include "libsci/fabric/thread.h"

#define DEFAULT_NODE	4u
#define DEFAULT_NODES	16u		/* in a virtual cluster: 4 ... 64 */
#define DEFAULT_MODE	0600u
#define FIRST_INTNO	0x1000u		/* below it: left to FIXED numbers */
#define EVENTS_AT_ONCE	16
#define FORK_SETTLES_MS	1000
#define FD_ROOM_MAX	8
#define STARVED_PAUSE_NS 5000000

/* Every open fabric, for fork(); usually one. */
static struct list fabrics = { &fabrics, &fabrics };
static pthread_mutex_t fabrics_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

uint64_t shm_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/**
 * shm_raise_fd_limit() - raise the soft limit of descriptors to the hard one
 *
 * Done only when one was refused: a program that uses select() has a reason
 * for a low limit.  -EMFILE: it was there already.
 */
int shm_raise_fd_limit(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) || rl.rlim_cur >= rl.rlim_max)
		return -EMFILE;
	rl.rlim_cur = rl.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &rl) ? -EMFILE : 0;
}

/**
 * shm_fd_room() - raise the limit if @n more descriptors would not fit
 *
 * For calls that cannot be tried again, or that are not ours to repeat.
 * Locked, or a child would inherit what it opens for a moment.
 */
void shm_fd_room(unsigned int n)
{
	int fds[FD_ROOM_MAX];
	unsigned int i;

	for (i = 0; i < n && i < FD_ROOM_MAX; i++) {
		fds[i] = eventfd(0, EFD_CLOEXEC);
		if (fds[i] < 0) {
			if (errno == EMFILE)
				shm_raise_fd_limit();
			break;
		}
	}
	while (i > 0)
		close(fds[--i]);
}

/*
 * The table of our descriptors.  fork() must not see one that is open but not
 * yet in the table, or a child would keep a dead parent's names alive: both
 * happen under the lock, which the fork handler takes.
 */
int shm_fd_track(struct shm *shm, int fd)
{
	size_t n = shm->n_fds ? shm->n_fds : 64;
	struct shm_fd *fds;

	while (n <= (size_t)fd)
		n *= 2;
	if (n != shm->n_fds) {
		fds = realloc(shm->fds, n * sizeof(*fds));
		if (!fds) {
			close(fd);
			return -ENOMEM;
		}
		memset(fds + shm->n_fds, 0, (n - shm->n_fds) * sizeof(*fds));
		shm->fds = fds;
		shm->n_fds = n;
	}
	shm->fds[fd].open = true;
	return 0;
}

void shm_unwatch(struct shm *shm, int fd)
{
	struct shm_fd *w = &shm->fds[fd];

	if (!w->fn)
		return;
	/* not left to close(): another process may hold the same socket */
	epoll_ctl(shm->epfd, EPOLL_CTL_DEL, fd, NULL);
	w->fn = NULL;
	w->gen++;
}

void shm_fd_close(struct shm *shm, int fd)
{
	if (fd < 0)
		return;
	shm_unwatch(shm, fd);
	shm->fds[fd].open = false;
	close(fd);
}

static void serve_events(struct shm *shm, const struct epoll_event *ev, int n)
{
	for (; n > 0; n--, ev++) {
		uint32_t fd = (uint32_t)ev->data.u64;
		uint32_t gen = (uint32_t)(ev->data.u64 >> 32);
		struct shm_fd *w = &shm->fds[fd];

		if (w->fn && w->gen == gen)
			w->fn(shm, w->obj, ev->events);
	}
}

/* Until when epoll_wait() may sleep: the link's next injected change. */
static int link_timeout(struct shm *shm)
{
	uint64_t now = shm_now_ms() - shm->begin_ms, next;

	sci_fault_link(now, &next);
	if (next == UINT64_MAX)
		return -1;
	return next - now > 1000 ? 1000 : (int)(next - now);
}

static void *service(void *arg)
{
	/* callers that can't be let in, nor refused, stay ready: no hurry */
	const struct timespec pause = { .tv_nsec = STARVED_PAUSE_NS };
	struct epoll_event ev[EVENTS_AT_ONCE];
	struct shm *shm = arg;
	bool stop, starved;
	int n;

	do {
		n = epoll_wait(shm->epfd, ev, EVENTS_AT_ONCE,
			       link_timeout(shm));
		pthread_mutex_lock(&shm->lock);
		stop = shm->stop;
		shm->starved = false;
		if (!stop) {
			serve_events(shm, ev, n);
			shm_link_update(shm);
		}
		starved = shm->starved;
		pthread_mutex_unlock(&shm->lock);
		if (starved)
			nanosleep(&pause, NULL);
	} while (!stop);
	return NULL;
}

static int service_start(struct shm *shm)
{
	int ret;

	if (shm->serving)
		return 0;
	ret = sci_thread_start(&shm->service, service, shm, "sci-service");
	shm->serving = !ret;
	return ret;
}

/**
 * shm_watch() - have the service thread call @fn when @fd has @events
 *
 * Starts the thread on first need.  Locked, as everything @fn does.
 */
int shm_watch(struct shm *shm, int fd, uint32_t events, shm_watch_fn fn,
	      void *obj)
{
	struct shm_fd *w = &shm->fds[fd];
	struct epoll_event ev = { .events = events };
	int ret;

	ret = service_start(shm);
	if (ret)
		return ret;
	ev.data.u64 = (uint64_t)w->gen << 32 | (uint32_t)fd;
	if (epoll_ctl(shm->epfd, EPOLL_CTL_ADD, fd, &ev))
		return -errno;
	w->fn = fn;
	w->obj = obj;
	return 0;
}

/* Make the link what SCI_FAULT says it is now, and tell importers. */
void shm_link_update(struct shm *shm)
{
	uint64_t now = shm_now_ms(), next;
	bool down = sci_fault_link(now - shm->begin_ms, &next);
	struct list *pos, *n;

	if (down == (bool)atomic_load(&shm->link.down))
		return;
	if (!down)
		shm->down_ms += now - shm->changed_ms;
	shm->changed_ms = now;
	atomic_store(&shm->link.down, down);
	if (down)
		atomic_fetch_add(&shm->link.errors, 1);
	list_for_each_safe(pos, n, &shm->rsegs)
		shm_rseg_link_event(container_of(pos, struct sci_rseg, link),
				    down);
}

bool shm_node_exists(struct shm *shm, unsigned int node)
{
	return node == shm->node || node == SCI_NODE_GROUP ||
	       (node >= SCI_NODE_STEP && node <= shm->last_node);
}

/* ---- fork ---- */

static void fork_prepare(void)
{
	struct list *pos, *n;

	pthread_mutex_lock(&fabrics_lock);
	list_for_each_safe(pos, n, &fabrics)
		pthread_mutex_lock(&container_of(pos, struct shm, all)->lock);
}

static void fork_parent(void)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &fabrics) {
		struct shm *shm = container_of(pos, struct shm, all);

		shm->forked_ms = shm_now_ms();
		pthread_mutex_unlock(&shm->lock);
	}
	pthread_mutex_unlock(&fabrics_lock);
}

/**
 * shm_forked_lately() - a name we gave up may still be taken: wait and see
 *
 * A child holds our sockets until it has come to fork_child(); a name given up
 * in between is free a moment later.  Pauses; unlocked.
 */
bool shm_forked_lately(struct shm *shm)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	bool lately;

	pthread_mutex_lock(&shm->lock);
	lately = shm->forked_ms &&
		 shm_now_ms() - shm->forked_ms < FORK_SETTLES_MS;
	pthread_mutex_unlock(&shm->lock);
	if (lately)
		nanosleep(&ms, NULL);
	return lately;
}

/*
 * The child owns none of the parent's objects: it closes what keeps their
 * names and connections alive, and takes its own copy of registered pages.
 * Maps stay.  The structures are left behind: other threads of the parent,
 * which do not exist here, may have been using them.
 */
static void fork_child(void)
{
	struct list *pos, *n, *p2, *n2;
	size_t fd;

	list_for_each_safe(pos, n, &fabrics) {
		struct shm *shm = container_of(pos, struct shm, all);

		for (fd = 0; fd < shm->n_fds; fd++)
			if (shm->fds[fd].open)
				close((int)fd);
		list_for_each_safe(p2, n2, &shm->lsegs)
			shm_lseg_fork(container_of(p2, struct sci_lseg, link));
		list_del(pos);
		pthread_mutex_unlock(&shm->lock);
	}
	pthread_mutex_unlock(&fabrics_lock);
}

static void fork_init(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* ---- open and close ---- */

static int bad(const char *var, const char *value, const char *want)
{
	fprintf(stderr, "libsci: %s=%s: %s\n", var, value, want);
	return -EINVAL;
}

static int env_number(const char *var, unsigned int *value, int base,
		      unsigned int max)
{
	const char *s = getenv(var);
	unsigned long v;
	char *end;

	if (!s || !*s)
		return 0;
	errno = 0;
	v = strtoul(s, &end, base);
	if (!isdigit((unsigned char)*s) || *end || errno || v > max)
		return bad(var, s, "not a number of the range");
	*value = (unsigned int)v;
	return 0;
}

static int env_cluster(struct shm *shm, const char *name)
{
	size_t len = name ? strlen(name) : 0;
	size_t i;

	if (!len) {
		name = "default";
		len = strlen(name);
	}
	if (len > SHM_CLUSTER_MAX)
		return bad("SCI_FABRIC", name, "cluster name too long");
	for (i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) &&
		    !strchr("_-", name[i]))
			return bad("SCI_FABRIC", name,
				   "cluster names are letters, digits, _ and -");
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
		return bad("SCI_HUGEPAGES", s, "0, 2M or 1G");
	return 0;
}

static int env_rundir(struct shm *shm)
{
	const char *s = getenv("SCI_RUNDIR");

	shm->rundir = -1;
	if (!s || !*s)
		return 0;
	shm->rundir = open(s, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (shm->rundir < 0)
		return bad("SCI_RUNDIR", s, strerror(errno));
	return shm_fd_track(shm, shm->rundir);
}

static int env_read(struct shm *shm, const char *cluster)
{
	unsigned int nodes = DEFAULT_NODES, membarrier = 1;
	int ret;

	shm->node = DEFAULT_NODE;
	shm->mode = DEFAULT_MODE;
	ret = env_cluster(shm, cluster);
	ret = ret ? ret : env_number("SCI_NODE", &shm->node, 10, SCI_NODE_MAX);
	ret = ret ? ret : env_number("SCI_NODES", &nodes, 10,
				     SCI_NODE_MAX / SCI_NODE_STEP);
	ret = ret ? ret : env_number("SCI_MODE", &shm->mode, 8, 0666);
	ret = ret ? ret : env_number("SCI_MEMBARRIER", &membarrier, 10, 1);
	ret = ret ? ret : env_huge(shm);
	ret = ret ? ret : env_rundir(shm);
	if (!ret && !shm_is_node(shm->node))
		ret = bad("SCI_NODE", getenv("SCI_NODE"),
			  "node ids are multiples of 4 from 4 to 65532");
	shm->last_node = nodes * SCI_NODE_STEP;
	shm->wake_barrier = membarrier && shm_wake_init();
	return ret;
}

static int new_eventfd(struct shm *shm, unsigned int count, int *fd)
{
	*fd = eventfd(count, EFD_CLOEXEC | EFD_NONBLOCK);
	return *fd < 0 ? -errno : shm_fd_track(shm, *fd);
}

static int events_init(struct shm *shm)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ret;

	shm->epfd = epoll_create1(EPOLL_CLOEXEC);
	ret = shm->epfd < 0 ? -errno : shm_fd_track(shm, shm->epfd);
	ret = ret ? ret : new_eventfd(shm, 0, &shm->wakefd);
	ret = ret ? ret : new_eventfd(shm, 1, &shm->readyfd);
	if (ret)
		return ret;
	/* no function: it only has to end epoll_wait() */
	ev.data.u64 = (uint64_t)UINT32_MAX << 32 | (uint32_t)shm->wakefd;
	if (epoll_ctl(shm->epfd, EPOLL_CTL_ADD, shm->wakefd, &ev))
		return -errno;
	shm->sparefd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return shm->sparefd < 0 ? -errno : shm_fd_track(shm, shm->sparefd);
}

/*
 * A name that says a process of this node is there.  A datagram socket, since
 * connecting to one needs nobody to accept.
 */
static int presence_init(struct shm *shm)
{
	static _Atomic uint32_t serial;
	uint32_t unique;
	int ret;

	/* a pid is not enough: containers may share a network namespace */
	do {
		unique = (uint32_t)getpid() * 2654435761u +
			 (uint32_t)shm_now_ms() + atomic_fetch_add(&serial, 1);
		shm_name(shm, shm->presence_name, SHM_NODE, shm->node, unique);
		ret = shm_bind(shm, shm->presence_name, SOCK_DGRAM,
			       &shm->presence);
	} while (ret == -EEXIST);
	return ret;
}

static void shm_close(struct sci_fabric *f)
{
	struct shm *shm = container_of(f, struct shm, base);
	uint64_t one = 1;
	size_t fd;

	pthread_mutex_lock(&shm->lock);
	shm->stop = true;
	pthread_mutex_unlock(&shm->lock);
	if (shm->serving) {
		while (write(shm->wakefd, &one, sizeof(one)) < 0 &&
		       errno == EINTR)
			;
		pthread_join(shm->service, NULL);
	}

	pthread_mutex_lock(&fabrics_lock);
	pthread_mutex_lock(&shm->lock);
	list_del(&shm->all);
	shm_unbind(shm, shm->presence_name, false, &shm->presence);
	for (fd = 0; fd < shm->n_fds; fd++)
		if (shm->fds[fd].open)
			close((int)fd);
	pthread_mutex_unlock(&shm->lock);
	pthread_mutex_unlock(&fabrics_lock);

	pthread_mutex_destroy(&shm->lock);
	free(shm->fds);
	free(shm);
}

static int shm_open_fabric(struct sci_fabric **out, const char *arg)
{
	struct shm *shm;
	unsigned int i;
	int ret;

	pthread_once(&fork_once, fork_init);
	shm = calloc(1, sizeof(*shm));
	if (!shm)
		return -ENOMEM;
	shm->base.ops = &sci_shm_fabric;
	shm->presence = -1;
	shm->begin_ms = shm_now_ms();
	shm->changed_ms = shm->begin_ms;
	shm->link.map = SCI_PIO_MAP_CACHED;
	shm->next_intno = FIRST_INTNO;
	list_init(&shm->lsegs);
	list_init(&shm->rsegs);
	list_init(&shm->calls);
	for (i = 0; i < SHM_MAP_BUCKETS; i++)
		list_init(&shm->maps[i]);
	pthread_mutex_init(&shm->lock, NULL);

	pthread_mutex_lock(&fabrics_lock);
	list_add_tail(&shm->all, &fabrics);
	pthread_mutex_lock(&shm->lock);
	shm_fd_room(FD_ROOM_MAX);
	ret = env_read(shm, arg);
	ret = ret ? ret : events_init(shm);
	ret = ret ? ret : presence_init(shm);
	if (!ret) {
		shm_link_update(shm);
		/* a link that is to change needs somebody to change it */
		if (link_timeout(shm) >= 0)
			ret = service_start(shm);
	}
	pthread_mutex_unlock(&shm->lock);
	pthread_mutex_unlock(&fabrics_lock);

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
	/* the same for every process of a node, another for every node */
	info->serial = shm->node;
	for (c = shm->cluster; *c; c++)
		info->serial = (info->serial * 31 + (unsigned char)*c) &
			       0x7fffffff;
	pthread_mutex_lock(&shm->lock);
	info->link_up = !atomic_load(&shm->link.down);
	info->link_down_ms = shm->down_ms;
	*(info->link_up ? &info->link_up_ms : &info->link_down_ms) +=
		shm_now_ms() - shm->changed_ms;
	pthread_mutex_unlock(&shm->lock);
	info->att_page_size = (size_t)sysconf(_SC_PAGESIZE);
	info->streams = 1;
	info->stream_size = 64;
	info->dma_mtu = 1u << 30;
	info->dma_size_align = 1;
	info->dma_offset_align = 1;
	/* the worker's wake-up costs what a copy of this much does */
	info->min_dma_size = 64u << 10;
	info->min_block_size = 64;
	info->mcast_groups = UINT16_MAX;
	info->wake_barrier = shm->wake_barrier;
	return 0;
}

static struct sci_link_status *shm_link_status(struct sci_fabric *f,
					       unsigned int adapter)
{
	(void)adapter;
	return &container_of(f, struct shm, base)->link;
}

struct seek_node {
	unsigned int node;
	bool found;
};

static int seek_node(void *arg, const struct sci_node_info *info)
{
	struct seek_node *s = arg;

	s->found = info->node == s->node;
	return s->found;
}

static int shm_node_probe(struct sci_fabric *f, unsigned int adapter,
			  unsigned int node)
{
	struct shm *shm = container_of(f, struct shm, base);
	struct seek_node s = { .node = node };
	int ret;

	(void)adapter;
	if (atomic_load(&shm->link.down) && node != shm->node)
		return -ENETDOWN;
	ret = shm_node_list(f, seek_node, &s);
	if (ret < 0)
		return ret;
	return s.found ? 0 : -EHOSTUNREACH;
}

const struct sci_fabric_ops sci_shm_fabric = {
	.name		= "shm",
	.open		= shm_open_fabric,
	.close		= shm_close,
	.adapter_query	= shm_adapter_query,
	.link_status	= shm_link_status,
	.node_probe	= shm_node_probe,
	.node_list	= shm_node_list,
	.segment_list	= shm_segment_list,
	.lseg_create	= shm_lseg_create,
	.lseg_attach	= shm_lseg_attach,
	.lseg_register	= shm_lseg_register,
	.lseg_share	= shm_lseg_share,
	.lseg_export	= shm_lseg_export,
	.lseg_unexport	= shm_lseg_unexport,
	.lseg_importers	= shm_lseg_importers,
	.lseg_destroy	= shm_lseg_destroy,
	.lseg_id	= shm_lseg_id,
	.lseg_size	= shm_lseg_size,
	.lseg_map	= shm_lseg_map,
	.rseg_connect	= shm_rseg_connect,
	.rseg_disconnect = shm_rseg_disconnect,
	.cancel_connect	= shm_cancel_connect,
	.rseg_size	= shm_rseg_size,
	.rseg_readonly	= shm_rseg_readonly,
	.rseg_status	= shm_rseg_status,
	.rseg_map	= shm_rseg_map,
	.unmap		= shm_unmap,
	.lintr_create	= shm_lintr_create,
	.lintr_wait	= shm_lintr_wait,
	.lintr_fd	= shm_lintr_fd,
	.lintr_cancel	= shm_lintr_cancel,
	.lintr_destroy	= shm_lintr_destroy,
	.rintr_connect	= shm_rintr_connect,
	.rintr_trigger	= shm_rintr_trigger,
	.rintr_disconnect = shm_rintr_disconnect,
	.dma_copy	= shm_dma_copy,
	.peer_read	= shm_peer_read,
	.store_barrier	= shm_store_barrier,
	.wake_barrier	= shm_wake_barrier,
};
