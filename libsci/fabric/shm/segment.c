// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Local segments: the segments that this process exports or has attached to. */

#include "libsci/fabric/shm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsci/base/pages.h"

#define ATTACH_TIMEOUT_MS	5000

static void shm_lseg_notify(struct sci_lseg *s, enum sci_event_type type,
			    unsigned int node, int status)
{
	const struct sci_event ev = {
		.type = type, .node = node, .adapter = s->adapter,
		.status = status,
	};

	s->event(s->owner, &ev);
}

/* Tell the segment of @conn, if any, that its importer rings. Context: svc.lock is held. */
void shm_lseg_rang(struct shm_conn *conn)
{
	if (conn->rings)
		shm_lseg_notify(conn->rings, SCI_EVENT_RANG, conn->node, 0);
}

static unsigned int msg_flags(const struct sci_lseg *s)
{
	unsigned int flags = 0;

	if (s->page > sci_page_size())
		flags |= SHM_F_HUGE;
	if (s->exported)
		flags |= SHM_F_EXPORTED;
	if (s->flags & SCI_LSEG_BROADCAST)
		flags |= SHM_F_BROADCAST;
	return flags;
}

/*
 * Return a descriptor of the memory that cannot be opened for writing, for importers
 * that may only read.
 */
static int fd_reopen_readonly(int memfd)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", memfd);
	do {
		fd = open(path, O_RDONLY | O_CLOEXEC);
	} while (fd < 0 && errno == EMFILE && !sci_raise_fd_limit());
	return fd < 0 ? -errno : fd;
}

/* Send the memory's descriptor to an importer, with the access that the segment's mode allows. */
static int lseg_grant(struct sci_lseg *s, struct shm_conn *conn)
{
	unsigned int access = shm_access(s->shm, conn->fd);
	struct shm_msg re = {
		.type = SHM_REPLY, .node = s->shm->node, .size = s->size,
		.flags = (uint16_t)msg_flags(s),
	};
	int fd = s->memfd, ret;

	if (!(access & 4))
		return -EACCES;
	if (!(access & 2)) {
		re.flags |= SHM_F_READONLY;
		fd = fd_reopen_readonly(s->memfd);
		if (fd < 0)
			return fd;
	}
	ret = shm_send(conn->fd, &re, &fd, 1);
	if (fd != s->memfd)
		close(fd);
	return ret;
}

/* Release the segment's name: no other process can connect. Context: svc.lock is held. */
static void lseg_seal(struct sci_lseg *s)
{
	if (s->port.fd >= 0)
		sci_unwatch(&s->shm->svc, s->port.fd);
	shm_unbind(s->shm, s->port.name, false, &s->port.fd);
	sci_fd_close(&s->shm->svc, s->memfd);
	s->memfd = -1;
}

static int importer_hello(struct sci_lseg *s, struct shm_conn *conn,
			  const struct shm_msg *msg)
{
	int ret = 0;

	if (!s->exported || s->memfd < 0)
		return -ENOENT;
	if (!shm_is_node(msg->node))
		return -EPROTO;
	/* Read the messages of earlier imports first: the peer may have disconnected them. */
	conn->pid = shm_peer(conn->fd);
	shm_port_drain(conn->port, conn->pid);
	/* only a process with the right to write may trigger */
	if (s->bell && shm_access(s->shm, conn->fd) & 2)
		ret = shm_bell_listen(s->bell, conn);
	conn->rings = s;
	ret = ret ? ret : lseg_grant(s, conn);
	if (ret)
		return ret;
	conn->role = SHM_IMPORTER;
	conn->node = msg->node;
	conn->port->importers++;
	if (s->flags & SCI_LSEG_ONCE)
		lseg_seal(s);
	shm_lseg_notify(s, SCI_EVENT_CONNECT, conn->node, 0);
	return 0;
}

static int attach_hello(struct sci_lseg *s, struct shm_conn *conn)
{
	int ret;

	if (!s->shared || s->memfd < 0 ||
	    (shm_access(s->shm, conn->fd) & 6) != 6)
		return -EACCES;
	ret = lseg_grant(s, conn);
	if (!ret)
		conn->role = SHM_ATTACHED;
	return ret;
}

static void lseg_answer_query(struct sci_lseg *s, struct shm_conn *conn)
{
	struct shm_msg re = {
		.type = SHM_REPLY, .node = s->shm->node, .size = s->size,
		.flags = (uint16_t)msg_flags(s), .mode = s->shm->mode,
	};

	shm_port_drain(&s->port, 0);
	re.importers = s->port.importers;
	shm_send(conn->fd, &re, NULL, 0);
}

static bool shm_lseg_refuse(struct shm_conn *conn, int status)
{
	const struct shm_msg no = { .type = SHM_REPLY, .status = status };

	shm_send(conn->fd, &no, NULL, 0);
	return false;
}

/* Answer the first message of a peer that connects to the segment's own name. */
static bool lseg_hello(struct shm_port *port, struct shm_conn *conn,
		       const struct shm_msg *msg)
{
	struct sci_lseg *s = container_of(port, struct sci_lseg, port);
	int ret;

	switch (msg->type) {
	case SHM_CONNECT:
		/* a member of a group accepts importers of its own only with SCI_LSEG_UNICAST */
		ret = s->flags & SCI_LSEG_BROADCAST &&
		      !(s->flags & SCI_LSEG_UNICAST) ?
		      -ENOENT : importer_hello(s, conn, msg);
		return !ret || shm_lseg_refuse(conn, ret);
	case SHM_ATTACH:
		ret = attach_hello(s, conn);
		return !ret || shm_lseg_refuse(conn, ret);
	case SHM_QUERY:
		lseg_answer_query(s, conn);
		return false;
	default:
		return shm_lseg_refuse(conn, -EPROTO);
	}
}

static void lseg_handle_importer_end(struct shm_port *port, struct shm_conn *conn,
				     bool orderly)
{
	struct sci_lseg *s = container_of(port, struct sci_lseg, port);

	shm_lseg_notify(s, orderly ? SCI_EVENT_DISCONNECT : SCI_EVENT_LOST, conn->node,
			0);
}

/* ---- broadcast groups ---- */

/*
 * Answer a process that wants to join the group. The members of a group share one memfd, so a
 * store reaches all of them. They also share two names: processes connect to "g" to join, and
 * to "b" to import. The exported members own "b".
 */

static int shm_lseg_join_hello(struct sci_lseg *s, struct shm_port *port,
			       struct shm_conn *conn, const struct shm_msg *msg)
{
	const struct shm_msg re = {
		.type = SHM_REPLY, .node = s->shm->node, .size = s->size,
		.flags = (uint16_t)msg_flags(s),
	};
	const int fds[] = { port->fd, s->memfd };

	if ((shm_access(s->shm, conn->fd) & 6) != 6)
		return -EACCES;
	if (msg->size != s->size)
		return -EMSGSIZE;
	return shm_send(conn->fd, &re, fds, 2);
}

static bool group_hello(struct shm_port *port, struct shm_conn *conn,
			const struct shm_msg *msg)
{
	struct sci_lseg *s = container_of(port, struct sci_lseg, group);
	int ret = msg->type == SHM_JOIN ? shm_lseg_join_hello(s, port, conn, msg) :
					  -EPROTO;

	if (ret)
		shm_lseg_refuse(conn, ret);
	return false;
}

static bool group_open_hello(struct shm_port *port, struct shm_conn *conn,
			     const struct shm_msg *msg)
{
	struct sci_lseg *s = container_of(port, struct sci_lseg, group_open);
	int ret = -EPROTO;

	if (msg->type == SHM_JOIN) {
		ret = shm_lseg_join_hello(s, port, conn, msg);
		if (ret)
			shm_lseg_refuse(conn, ret);
		return false;
	}
	if (msg->type == SHM_CONNECT)
		ret = importer_hello(s, conn, msg);
	return !ret || shm_lseg_refuse(conn, ret);
}

static void group_handle_importer_end(struct shm_port *port, struct shm_conn *conn,
				      bool orderly)
{
	struct sci_lseg *s = container_of(port, struct sci_lseg, group_open);

	shm_lseg_notify(s, orderly ? SCI_EVENT_DISCONNECT : SCI_EVENT_LOST, conn->node,
			0);
}

static int name_share(struct sci_lseg *s, struct shm_port *port,
		      enum shm_kind kind, int *memfd)
{
	const struct shm_msg mine = { .size = s->size };
	struct shm *shm = s->shm;
	char name[SHM_NAME_MAX];
	struct shm_msg theirs;
	int ret;

	shm_name(shm, name, kind, 0, s->id);
	ret = shm_port_share(port, name, &mine, &theirs, memfd);
	if (ret || *memfd < 0)
		return ret;
	return shm_memory_check(*memfd, &theirs, &s->length, &s->page);
}

/* Join the group, or create the group with this segment's memory. */
static int group_join(struct sci_lseg *s)
{
	struct shm *shm = s->shm;
	int memfd = -1, ret;

	ret = name_share(s, &s->group, SHM_GROUP, &memfd);
	pthread_mutex_lock(&shm->svc.lock);
	if (!ret && memfd >= 0) {
		sci_fd_close(&shm->svc, s->memfd);
		s->memfd = memfd;
	} else {
		sci_fd_close(&shm->svc, memfd);
	}
	if (!ret)
		ret = shm_port_serve(&s->group);
	pthread_mutex_unlock(&shm->svc.lock);
	return ret;
}

static int group_export(struct sci_lseg *s)
{
	struct shm *shm = s->shm;
	int memfd = -1, ret;

	ret = name_share(s, &s->group_open, SHM_GROUP_OPEN, &memfd);
	pthread_mutex_lock(&shm->svc.lock);
	sci_fd_close(&shm->svc, memfd);
	if (!ret)
		ret = shm_port_serve(&s->group_open);
	if (ret)
		shm_port_close(&s->group_open);
	pthread_mutex_unlock(&shm->svc.lock);
	return ret;
}

/* ---- create and destroy ---- */

/*
 * Take the lowest free id from @asked on: programs that ask for several ids expect consecutive
 * ids. A search with the same @asked as the last search continues at the end of the last search,
 * or at a lower id that was freed since.
 */
static int lseg_open_auto(struct sci_lseg *s, uint32_t asked)
{
	struct shm *shm = s->shm;
	uint32_t id = asked == shm->auto_asked && shm->auto_next ?
		      shm->auto_next : asked;
	char name[SHM_NAME_MAX];
	uint64_t tries;
	int ret = -EEXIST;

	for (tries = 0; ret == -EEXIST && tries <= UINT32_MAX; tries++, id++) {
		shm_name(shm, name, SHM_SEGMENT, shm->node, id);
		ret = shm_port_open(&s->port, name);
		s->id = id;
	}
	if (!ret) {
		shm->auto_asked = asked;
		shm->auto_next = id;
	}
	return ret;
}

static int lseg_try_name(struct sci_lseg *s)
{
	struct shm *shm = s->shm;
	char name[SHM_NAME_MAX];
	int ret;

	pthread_mutex_lock(&shm->svc.lock);
	if (s->flags & SCI_LSEG_AUTO_ID) {
		ret = lseg_open_auto(s, s->id);
	} else {
		shm_name(shm, name, SHM_SEGMENT, shm->node, s->id);
		ret = shm_port_open(&s->port, name);
		if (ret == -EEXIST)
			shm_name_taken(shm, name);
	}
	pthread_mutex_unlock(&shm->svc.lock);
	return ret;
}

static int lseg_open_name(struct sci_lseg *s)
{
	uint64_t begin = sci_now_ms();
	int ret;

	do {
		ret = lseg_try_name(s);
	} while (ret == -EEXIST && shm_name_settles(s->shm, s->port.name, begin));
	return ret;
}

static int lseg_alloc_memory(struct sci_lseg *s, size_t huge)
{
	char name[SHM_NAME_MAX];

	snprintf(name, sizeof(name), "sci.%s.%u.%08x", s->shm->cluster,
		 s->shm->node, s->id);
	return shm_memory_alloc(s->shm, name, s->size, huge, &s->memfd,
				&s->length, &s->page);
}

static struct sci_lseg *shm_lseg_new(struct sci_fabric *f, const struct sci_lseg_param *p)
{
	struct shm *shm = container_of(f, struct shm, base);
	struct sci_lseg *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->shm = shm;
	s->id = p->id;
	s->flags = p->flags;
	s->size = p->size;
	s->page = sci_page_size();
	s->memfd = -1;
	s->attach_fd = -1;
	s->event = p->event;
	s->owner = p->owner;
	s->bell = p->bell;
	shm_port_init(&s->port, shm);
	s->port.hello = lseg_hello;
	s->port.gone = lseg_handle_importer_end;
	shm_port_init(&s->group, shm);
	s->group.hello = group_hello;
	shm_port_init(&s->group_open, shm);
	s->group_open.hello = group_open_hello;
	s->group_open.gone = group_handle_importer_end;
	pthread_mutex_lock(&shm->svc.lock);
	list_add_tail(&s->link, &shm->lsegs);
	pthread_mutex_unlock(&shm->svc.lock);
	return s;
}

/* Make the registered pages private again. */
static void registered_return(struct sci_lseg *s)
{
	sci_pages_return(s->registered, s->length, s->inode);
	if (s->cover)
		sci_pages_return(s->registered, s->length, s->cover);
}

void shm_lseg_destroy(struct sci_lseg *s)
{
	struct shm *shm = s->shm;

	pthread_mutex_lock(&shm->svc.lock);
	if (s->id >= shm->auto_asked && s->id < shm->auto_next)
		shm->auto_next = s->id;
	shm_port_close(&s->port);
	shm_port_close(&s->group_open);
	shm_port_close(&s->group);
	sci_fd_close(&shm->svc, s->attach_fd);
	sci_fd_close(&shm->svc, s->memfd);
	if (s->registered)
		shm_copy_unmap(shm, s->registered);
	shm_copy_put(s->copy);
	pthread_mutex_unlock(&shm->svc.lock);
	if (s->base)
		munmap(s->base, s->length);
	if (s->registered)
		registered_return(s);
	/*
	 * Remove the segment from the list only now: until here the child of a fork() must make
	 * its registered pages private, which it does for segments in the list.
	 */
	pthread_mutex_lock(&shm->svc.lock);
	list_del(&s->link);
	pthread_mutex_unlock(&shm->svc.lock);
	free(s);
}

int shm_lseg_create(struct sci_fabric *f, const struct sci_lseg_param *p,
		    struct sci_lseg **out)
{
	struct sci_lseg *s = shm_lseg_new(f, p);
	int ret = 0;

	if (!s)
		return -ENOMEM;
	/* Open the name first: if it is taken, no memory has been allocated yet. */
	if (!(s->flags & SCI_LSEG_PRIVATE))
		ret = lseg_open_name(s);
	if (!ret && !(s->flags & SCI_LSEG_EMPTY))
		ret = lseg_alloc_memory(s, s->shm->huge);
	if (!ret && s->flags & SCI_LSEG_BROADCAST)
		ret = group_join(s);
	if (ret) {
		shm_lseg_destroy(s);
		return ret;
	}
	*out = s;
	return 0;
}

static void creator_input(void *obj)
{
	struct sci_lseg *s = obj;
	struct shm *shm = s->shm;
	struct shm_msg msg;
	int ret;

	ret = shm_recv(shm, s->attach_fd, &msg, NULL, NULL);
	if (ret == -EAGAIN)
		return;
	sci_fd_close(&shm->svc, s->attach_fd);
	s->attach_fd = -1;
	shm_lseg_notify(
		s, !ret && msg.type == SHM_BYE ? SCI_EVENT_DISCONNECT : SCI_EVENT_LOST,
		shm->node, 0);
}

int shm_lseg_attach(struct sci_fabric *f, const struct sci_lseg_param *p,
		    struct sci_lseg **out)
{
	struct shm *shm = container_of(f, struct shm, base);
	struct shm_msg msg = { .type = SHM_ATTACH };
	struct sci_lseg *s = shm_lseg_new(f, p);
	char name[SHM_NAME_MAX];
	int n_fds = 1, ret;

	if (!s)
		return -ENOMEM;
	shm_name(shm, name, SHM_SEGMENT, shm->node, p->id);
	ret = shm_call(shm, name, &msg, &s->memfd, &n_fds,
		       sci_now_ms() + ATTACH_TIMEOUT_MS, p->owner,
		       &s->attach_fd);
	if (!ret)
		ret = n_fds == 1 ? shm_memory_check(s->memfd, &msg, &s->length,
						    &s->page) : -EPROTO;
	if (!ret) {
		s->size = msg.size;
		pthread_mutex_lock(&shm->svc.lock);
		ret = sci_watch(&shm->svc, s->attach_fd, EPOLLIN,
				creator_input, s);
		pthread_mutex_unlock(&shm->svc.lock);
	}
	if (ret) {
		shm_lseg_destroy(s);
		return ret;
	}
	*out = s;
	return 0;
}

static int pages_cover_registered(struct sci_lseg *s, void *addr, size_t len)
{
	int ret;

	pthread_mutex_lock(&s->shm->svc.lock);
	ret = shm_lseg_base(s);
	if (!ret) {
		s->cover = sci_mapping_inode(s->copy->cache);
		ret = shm_copy_cover(s->copy, addr, len);
	}
	pthread_mutex_unlock(&s->shm->svc.lock);
	if (ret)
		registered_return(s);
	return ret;
}

static int registered_adopt(struct sci_lseg *s, void *addr, size_t len)
{
	int ret;

	/* the child of a fork() must not inherit the map that becomes the registered pages */
	pthread_rwlock_rdlock(&s->shm->svc.gate);
	ret = sci_pages_adopt(s->memfd, addr, len, &s->inode);
	pthread_rwlock_unlock(&s->shm->svc.gate);
	return !ret && s->shm->link.cache ? pages_cover_registered(s, addr, len) : ret;
}

int shm_lseg_register(struct sci_lseg *s, void *addr, size_t len)
{
	struct shm *shm = s->shm;
	int ret;

	if (((uintptr_t)addr | len) & (sci_page_size() - 1))
		return -EINVAL;
	/* registered pages have the ordinary size */
	ret = lseg_alloc_memory(s, 0);
	if (ret)
		return ret;
	/* set the state before the pages change: a child that is forked then returns them */
	pthread_mutex_lock(&shm->svc.lock);
	s->registered = addr;
	pthread_mutex_unlock(&shm->svc.lock);
	ret = registered_adopt(s, addr, len);
	if (!ret)
		return 0;
	pthread_mutex_lock(&shm->svc.lock);
	s->registered = NULL;
	sci_fd_close(&shm->svc, s->memfd);
	s->memfd = -1;
	pthread_mutex_unlock(&shm->svc.lock);
	return ret;
}

int shm_lseg_twin(struct sci_lseg *s, struct sci_lseg *of)
{
	struct shm *shm = s->shm;
	int fd, ret;

	/* each node keeps its cached copy of a segment beside the segment */
	if (shm->link.cache)
		return -EOPNOTSUPP;
	pthread_mutex_lock(&shm->svc.lock);
	do {
		fd = fcntl(of->memfd, F_DUPFD_CLOEXEC, 0);
	} while (fd < 0 && errno == EMFILE && !sci_raise_fd_limit());
	ret = fd < 0 ? -errno : sci_fd_track(&shm->svc, fd);
	if (!ret) {
		s->memfd = fd;
		s->length = of->length;
		s->page = of->page;
	}
	pthread_mutex_unlock(&shm->svc.lock);
	return ret;
}

int shm_lseg_renew(struct sci_lseg *s, void *addr, size_t len)
{
	unsigned long inode = s->shm->link.cache ? s->cover : s->inode;

	if (sci_check_file(addr, len, inode, false) != -EFAULT)
		return 0;
	/* peers use the pages that the program has kept: change none of them in vain */
	if (sci_check_file(addr, len, inode, true))
		return -EFAULT;
	shm_copy_unmap(s->shm, addr);
	/* the pages that the program has kept become private, as the new ones are */
	registered_return(s);
	return registered_adopt(s, addr, len);
}

/* Make the registered pages of the parent private in the child of a fork. */
void shm_lseg_fork(struct sci_lseg *s)
{
	if (s->registered)
		registered_return(s);
}

/* ---- states ---- */

int shm_lseg_share(struct sci_lseg *s)
{
	pthread_mutex_lock(&s->shm->svc.lock);
	s->shared = true;
	pthread_mutex_unlock(&s->shm->svc.lock);
	return 0;
}

int shm_lseg_export(struct sci_lseg *s, unsigned int adapter)
{
	int ret = 0;

	if (s->memfd < 0 || s->port.fd < 0)
		return -EINVAL;
	if (s->flags & SCI_LSEG_BROADCAST && s->group_open.fd < 0)
		ret = group_export(s);
	if (ret)
		return ret;
	pthread_mutex_lock(&s->shm->svc.lock);
	s->adapter = adapter;
	s->exported = true;
	pthread_mutex_unlock(&s->shm->svc.lock);
	return 0;
}

static void importers_notify(struct shm_port *port, enum sci_unexport how)
{
	const struct shm_msg msg = {
		.type = how == SCI_UNEXPORT_FORCE ? SHM_CUT : SHM_NOTIFY,
	};
	struct list *pos, *n;

	list_for_each_safe(pos, n, &port->conns) {
		struct shm_conn *conn = container_of(pos, struct shm_conn,
						     link);

		if (conn->role != SHM_IMPORTER)
			continue;
		shm_send(shm_conn_sock(conn), &msg, NULL, 0);
		if (how == SCI_UNEXPORT_FORCE) {
			port->gone(port, conn, true);
			shm_conn_close(conn);
		}
	}
}

int shm_lseg_unexport(struct sci_lseg *s, enum sci_unexport how)
{
	pthread_mutex_lock(&s->shm->svc.lock);
	s->exported = false;
	if (how != SCI_UNEXPORT_QUIET) {
		importers_notify(&s->port, how);
		importers_notify(&s->group_open, how);
	}
	/* the members that are still exported keep the group's name */
	if (s->group_open.fd >= 0) {
		sci_unwatch(&s->shm->svc, s->group_open.fd);
		shm_unbind(s->shm, s->group_open.name, true,
			   &s->group_open.fd);
	}
	pthread_mutex_unlock(&s->shm->svc.lock);
	return 0;
}

/* Return the number of importers, without those of the group, which belong to no single member. */
unsigned int shm_lseg_importers(struct sci_lseg *s)
{
	unsigned int n;

	pthread_mutex_lock(&s->shm->svc.lock);
	shm_port_drain(&s->port, 0);
	n = s->port.importers;
	pthread_mutex_unlock(&s->shm->svc.lock);
	return n;
}

uint32_t shm_lseg_id(struct sci_lseg *s)
{
	return s->id;
}

uint64_t shm_lseg_size(struct sci_lseg *s)
{
	return s->size;
}

int shm_lseg_map(struct sci_lseg *s, uint64_t off, size_t len,
		 unsigned int flags, void **addr)
{
	int ret;

	if (s->memfd < 0)
		return -EINVAL;
	pthread_mutex_lock(&s->shm->svc.lock);
	ret = s->shm->link.cache ? shm_lseg_base(s) : 0;
	if (!ret)
		ret = s->copy ? shm_copy_map(s->copy, off, len, flags, addr) :
				sci_map_fd(s->memfd, off, len, s->page, flags, addr);
	if (!ret)
		ret = shm_map_add(s->shm, *addr, len, s->page, NULL);
	pthread_mutex_unlock(&s->shm->svc.lock);
	return ret;
}
