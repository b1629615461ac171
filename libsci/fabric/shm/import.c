// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Remote segments: the segments that this process imports. */

#include "libsci/fabric/shm/shm.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsci/base/barrier.h"
#include "libsci/fabric/core/fault.h"

static void shm_rseg_notify(struct sci_rseg *r, enum sci_event_type type, int status)
{
	const struct sci_event ev = {
		.type = type, .node = r->node, .adapter = r->adapter,
		.status = status,
	};

	r->event(r->owner, &ev);
}

void shm_rseg_link_event(struct sci_rseg *r, bool down)
{
	if (shm_rseg_sock(r) >= 0 && r->node != r->shm->node)
		shm_rseg_notify(
			r, down ? SCI_EVENT_NOT_OPERATIONAL : SCI_EVENT_OPERATIONAL, 0);
}

void shm_rseg_hang_up(struct sci_rseg *r)
{
	if (r->pair && r->pair_stays)
		shm_bell_remove(r->pair->bell, r->conn);
	sci_fd_close(&r->shm->svc, r->conn);
	r->conn = -1;
}

static void import_name(struct sci_rseg *r, char *name)
{
	if (r->node == SCI_NODE_GROUP)
		shm_name(r->shm, name, SHM_GROUP_OPEN, 0, r->id);
	else
		shm_name(r->shm, name, SHM_SEGMENT, r->node, r->id);
}

/*
 * Connect an import to another member of the group, after its member has ended. Context: the
 * service thread, which must not wait. shm_rseg_input() receives the answer.
 */
static bool shm_rseg_rejoin(struct sci_rseg *r)
{
	const struct shm_msg msg = { .type = SHM_CONNECT,
				     .node = r->shm->node };
	struct shm *shm = r->shm;
	char name[SHM_NAME_MAX];
	int sock, ret;

	if (r->rejoining == SHM_REJOINS)
		return false;
	import_name(r, name);
	ret = shm_dial_locked(shm, name, &sock);
	if (ret)
		return false;
	if (!shm_owner_admit(shm, sock) || shm_send(sock, &msg, NULL, 0) ||
	    sci_watch(&shm->svc, sock, EPOLLIN, shm_rseg_input, r)) {
		sci_fd_close(&shm->svc, sock);
		return false;
	}
	r->conn = sock;
	r->rejoining++;
	return true;
}

void shm_rseg_ended(struct sci_rseg *r, enum sci_event_type type)
{
	atomic_store(&r->status.gone, 1);
	shm_rseg_notify(r, type, -ENOTCONN);
}

static void import_end(struct sci_rseg *r, enum sci_event_type type)
{
	/* the peer sends SHM_MERGE before it ends this connection */
	if (r->pair && r->pair_stays && !r->merged)
		shm_bell_drain(r->pair);
	shm_rseg_hang_up(r);
	shm_rseg_ended(r, type);
	shm_pair_import_end(r, type == SCI_EVENT_DISCONNECT);
}

static void shm_rseg_lost(struct sci_rseg *r, enum sci_event_type type)
{
	if (r->node == SCI_NODE_GROUP) {
		shm_rseg_hang_up(r);
		if (shm_rseg_rejoin(r))
			return;
	}
	import_end(r, type);
}

/* Handle SHM_NOTIFY or SHM_CUT. Return false if the caller has to end the import. */
bool shm_rseg_owner_message(struct sci_rseg *r, enum shm_type type)
{
	if (type == SHM_CUT) {
		shm_map_revoke(r->shm, r);
		return false;
	}
	shm_rseg_notify(r, SCI_EVENT_DISCONNECT, 0);
	return true;
}

/* Return true if @memfd is the memory that the import has mapped. */
static bool import_has_memory(const struct sci_rseg *r, int memfd)
{
	struct stat st;

	return !fstat(memfd, &st) && st.st_dev == r->dev && st.st_ino == r->inode;
}

/* Handle the answer to shm_rseg_rejoin(). A group with other memory is a new group. */
static void import_rejoined(struct sci_rseg *r)
{
	struct shm *shm = r->shm;
	struct shm_msg msg;
	int fd = -1, n_fds = 1, ret;
	bool same;

	ret = shm_recv(shm, r->conn, &msg, &fd, &n_fds);
	if (ret == -EAGAIN)
		return;
	same = n_fds > 0 && import_has_memory(r, fd);
	if (n_fds > 0)
		sci_fd_close(&shm->svc, fd);
	if (ret || msg.type != SHM_REPLY || msg.status)
		shm_rseg_lost(r, SCI_EVENT_LOST);
	else if (!same)
		import_end(r, SCI_EVENT_LOST);
	else
		r->rejoining = 0;
}

/* Read a message. Return true if it triggers the bell of the pair. */
bool shm_rseg_read(struct sci_rseg *r)
{
	struct shm_msg msg;
	int ret;

	if (r->rejoining) {
		import_rejoined(r);
		return false;
	}
	ret = shm_recv(r->shm, r->conn, &msg, NULL, NULL);
	if (ret == -EAGAIN)
		return false;
	if (ret) {
		if (ret != -EPIPE || !shm_pair_done(r))
			shm_rseg_lost(r, SCI_EVENT_LOST);
		return false;
	}
	if (msg.type == SHM_TRIGGER && r->pair && r->pair_stays)
		return true;
	if (msg.type == SHM_PAIR && !r->pair_asked)
		shm_pair_asked(r);
	else if (msg.type != SHM_CUT && msg.type != SHM_NOTIFY)
		shm_rseg_lost(r, SCI_EVENT_DISCONNECT);
	else if (!shm_rseg_owner_message(r, msg.type))
		import_end(r, SCI_EVENT_DISCONNECT);
	return false;
}

void shm_rseg_input(void *obj)
{
	struct sci_rseg *r = obj;

	if (shm_rseg_read(r))
		shm_bell_keep(r->pair);
}

static int base_map(struct sci_rseg *r, int memfd)
{
	int prot = r->readonly ? PROT_READ : PROT_READ | PROT_WRITE;
	struct stat st;

	if (fstat(memfd, &st))
		return -errno;
	r->dev = st.st_dev;
	r->inode = st.st_ino;
	r->base = mmap(NULL, r->length, prot, MAP_SHARED, memfd, 0);
	if (r->base == MAP_FAILED) {
		r->base = NULL;
		return -errno;
	}
	return 0;
}

/*
 * Set the simulated cache of an import. A segment of this process and its import have one cache. Only
 * if the segment takes one importer, the import has a cache of its own: the segment has given up its
 * name by now, so another segment may have the same id.
 */
static int import_copy(struct sci_rseg *r)
{
	struct shm *shm = r->shm;
	struct list *pos, *n;

	list_for_each_safe(pos, n, &shm->lsegs) {
		struct sci_lseg *s = container_of(pos, struct sci_lseg, link);

		if (r->pid != getpid() || r->node != shm->node || r->id != s->id ||
		    s->port.fd < 0 || shm_lseg_base(s))
			continue;
		r->copy = shm_copy_get(s->copy);
		return 0;
	}
	return shm_copy_new(shm, r->base, r->length, true, &r->copy);
}

static int shm_rseg_call_exporter(struct sci_rseg *r, uint32_t timeout)
{
	struct shm_msg msg = { .type = SHM_CONNECT };
	struct shm *shm = r->shm;
	char name[SHM_NAME_MAX];
	int memfd = -1, n_fds = 1, ret;

	import_name(r, name);
	ret = shm_call(shm, name, &msg, &memfd, &n_fds, shm_deadline(timeout),
		       r->owner, &r->conn);
	if (ret)
		return ret;
	ret = n_fds == 1 ? shm_memory_check(memfd, &msg, &r->length, &r->page) :
			   -EPROTO;
	r->size = msg.size;
	r->readonly = msg.flags & SHM_F_READONLY;
	if (r->node != SCI_NODE_GROUP)
		r->pid = shm_peer(r->conn);
	if (!ret)
		ret = base_map(r, memfd);

	pthread_mutex_lock(&shm->svc.lock);
	if (!ret && shm->link.cache)
		ret = import_copy(r);
	if (!ret && !shm_can_map_copy(r->page))
		r->memfd = memfd;
	else if (n_fds == 1)
		sci_fd_close(&shm->svc, memfd);
	if (!ret)
		ret = sci_watch(&shm->svc, r->conn, EPOLLIN, shm_rseg_input, r);
	list_add_tail(&r->link, &shm->rsegs);
	pthread_mutex_unlock(&shm->svc.lock);
	return ret;
}

int shm_rseg_connect(struct sci_fabric *f, const struct sci_rseg_param *p,
		     struct sci_rseg **out)
{
	struct shm *shm = container_of(f, struct shm, base);
	struct sci_rseg *r;
	int ret;

	if (sci_link_down(&shm->link) && p->node != shm->node)
		return -ENETDOWN;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->shm = shm;
	r->node = p->node;
	r->adapter = p->adapter;
	r->id = p->id;
	r->event = p->event;
	r->owner = p->owner;
	r->conn = -1;
	r->memfd = -1;
	r->status.link = &shm->link;
	list_init(&r->link);
	*out = r;
	ret = shm_rseg_call_exporter(r, p->timeout);
	if (ret) {
		*out = NULL;
		shm_rseg_disconnect(r);
		return ret == -ENOENT && !shm_node_exists(shm, p->node) ?
		       -EHOSTUNREACH : ret;
	}
	return 0;
}

void shm_rseg_disconnect(struct sci_rseg *r)
{
	const struct shm_msg bye = { .type = SHM_BYE };
	struct shm *shm = r->shm;

	pthread_mutex_lock(&shm->svc.lock);
	if (shm_rseg_sock(r) >= 0)
		shm_send(shm_rseg_sock(r), &bye, NULL, 0);
	shm_rseg_hang_up(r);
	shm_pair_import_end(r, true);
	sci_fd_close(&shm->svc, r->memfd);
	list_del(&r->link);
	shm_copy_put(r->copy);
	pthread_mutex_unlock(&shm->svc.lock);
	if (r->base)
		munmap(r->base, r->length);
	free(r);
}

int shm_rseg_ring(struct sci_rseg *r)
{
	int ret = -ENOTCONN;

	if (sci_link_down(&r->shm->link) && r->node != r->shm->node)
		return -ENETDOWN;
	/* the service thread closes the connection when the owner has ended */
	pthread_mutex_lock(&r->shm->svc.lock);
	if (shm_rseg_sock(r) >= 0)
		ret = shm_trigger_send(r->shm, shm_rseg_sock(r));
	pthread_mutex_unlock(&r->shm->svc.lock);
	return ret;
}

uint64_t shm_rseg_size(struct sci_rseg *r)
{
	return r->size;
}

bool shm_rseg_readonly(struct sci_rseg *r)
{
	return r->readonly;
}

struct sci_rseg_status *shm_rseg_status(struct sci_rseg *r)
{
	return &r->status;
}

int shm_rseg_map(struct sci_rseg *r, uint64_t off, size_t len,
		 unsigned int flags, void **addr)
{
	int ret = -ENOTCONN;

	if (r->readonly && !(flags & SCI_MAP_READONLY))
		return -EACCES;
	/*
	 * The owner may disconnect the import at any time: add the map under the lock, so that
	 * shm_map_revoke() finds it.
	 */
	pthread_mutex_lock(&r->shm->svc.lock);
	if (!atomic_load(&r->status.gone))
		ret = r->copy ? shm_copy_map(r->copy, off, len, flags, addr) :
		      r->memfd < 0 ?
		      shm_map_copy(r->base, off, len, flags, addr) :
		      sci_map_fd(r->memfd, off, len, r->page, flags, addr);
	if (!ret)
		ret = shm_map_add(r->shm, *addr, len, r->page, r);
	pthread_mutex_unlock(&r->shm->svc.lock);
	return ret;
}

/* Map the whole segment. Context: svc.lock is held. */
int shm_lseg_base(struct sci_lseg *s)
{
	void *p;

	if (!s->base && s->memfd >= 0) {
		p = mmap(NULL, s->length, PROT_READ | PROT_WRITE, MAP_SHARED,
			 s->memfd, 0);
		s->base = p == MAP_FAILED ? NULL : p;
	}
	if (s->base && !s->copy && s->shm->link.cache)
		return shm_copy_new(s->shm, s->base, s->length, false, &s->copy);
	return s->base ? 0 : -ENOMEM;
}

static int base_get_local(struct sci_lseg *s)
{
	int ret;

	pthread_mutex_lock(&s->shm->svc.lock);
	ret = shm_lseg_base(s);
	pthread_mutex_unlock(&s->shm->svc.lock);
	return ret;
}

int shm_dma_copy(struct sci_lseg *s, struct sci_rseg *r,
		 const struct sci_dma_piece *piece, bool pull)
{
	struct sci_link_status *link = r->status.link;
	uint32_t errors;
	void *remote;
	char *local;
	int ret;

	ret = base_get_local(s);
	if (ret)
		return ret;
	local = (s->copy ? s->copy->cache : (char *)s->base) + piece->local;
	remote = (char *)r->base + piece->remote;
	if (atomic_load(&r->status.gone))
		return -ENOTCONN;
	if (!pull && r->readonly)
		return -EACCES;
	/* write-backs and refreshes need addresses of a map */
	if (r->copy)
		ret = shm_rseg_map(r, piece->remote, piece->len,
				   pull ? SCI_MAP_READONLY : 0, &remote);
	if (ret)
		return ret;
	errors = sci_link_errors(link);
	if (pull) {
		sci_link_refresh(link, remote, piece->len);
		sci_pio_read(local, remote, piece->len, link->map);
	} else {
		sci_remote_write(remote, local, piece->len, link);
	}
	/*
	 * Deliver packets that a fault holds back: they must not arrive after the end of the
	 * transfer.
	 */
	sci_fault_forget(remote, piece->len);
	sci_link_flush(link);
	if (r->copy)
		shm_unmap(&r->shm->base, remote, piece->len);
	return sci_link_errors(link) == errors ? 0 : -EIO;
}

void shm_store_barrier(struct sci_fabric *f, struct sci_rseg *r)
{
	(void)r;
	sci_store_barrier();
	sci_link_flush(&container_of(f, struct shm, base)->link);
}
