// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Messages between processes, and the owner's end of connections. */

#include "libsci/fabric/shm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

#define GROUPS_MAX	65536
#define CALL_TRIES	5
#define MIN_TIMEOUT_MS	1000

union control {
	struct cmsghdr align;
	char buf[CMSG_SPACE(SHM_MAX_FDS * sizeof(int))];
};

/*
 * Send a message on a socket that is full of triggers: let it hold twice as many bytes meanwhile.
 * Without SHM_BYE, for example, the peer would take the end of this connection for a death.
 */
static ssize_t send_urgent(int sock, const struct msghdr *mh)
{
	socklen_t len = sizeof(int);
	int size, half, error;
	ssize_t n;

	if (getsockopt(sock, SOL_SOCKET, SO_SNDBUF, &size, &len))
		return -1;
	half = size / 2;
	/* the kernel sets twice the value */
	setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	n = sendmsg(sock, mh, MSG_NOSIGNAL | MSG_DONTWAIT);
	error = errno;
	setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &half, sizeof(half));
	errno = error;
	return n;
}

/**
 * shm_send() - send a message, and descriptors with it
 *
 * The call never blocks. Triggers may fill the socket: any other message is sent nevertheless, up
 * to a limit for a peer that does not read.
 * Return: 0; -EAGAIN: the peer does not read; -EPIPE: the peer has ended.
 */
int shm_send(int sock, const struct shm_msg *msg, const int *fds, int n_fds)
{
	struct shm_msg copy = *msg;
	struct iovec iov = { &copy, sizeof(copy) };
	union control control;
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cm;

	copy.magic = SHM_MAGIC;
	if (n_fds) {
		size_t len = (size_t)n_fds * sizeof(int);

		memset(&control, 0, sizeof(control));
		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE(len);
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(len);
		memcpy(CMSG_DATA(cm), fds, len);
	}
	for (;;) {
		if (sendmsg(sock, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return 0;
		if (errno == EAGAIN && msg->type != SHM_TRIGGER && send_urgent(sock, &mh) >= 0)
			return 0;
		if (errno != EINTR)
			return errno == ECONNRESET ? -EPIPE : -errno;
	}
}

/* Close descriptors. Store -1 for them: the caller may close its array again after an error. */
static void fds_drop(struct shm *shm, int *fds, int *n_fds)
{
	while (*n_fds > 0) {
		sci_fd_close(&shm->svc, fds[--*n_fds]);
		fds[*n_fds] = -1;
	}
}

/* Take the descriptors of a message, and close those beyond the wanted number. */
static int fds_take(struct shm *shm, struct msghdr *mh, int *fds, int *n_fds)
{
	int room = fds ? *n_fds : 0, got = 0, ret = 0;
	struct cmsghdr *cm;

	for (cm = CMSG_FIRSTHDR(mh); cm; cm = CMSG_NXTHDR(mh, cm)) {
		size_t i, n = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (cm->cmsg_level != SOL_SOCKET ||
		    cm->cmsg_type != SCM_RIGHTS)
			continue;
		for (i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cm) + i * sizeof(int),
			       sizeof(fd));
			if (got == room || ret) {
				close(fd);
				continue;
			}
			ret = sci_fd_track(&shm->svc, fd);
			if (!ret)
				fds[got++] = fd;
		}
	}
	if (mh->msg_flags & MSG_CTRUNC)
		ret = -EMFILE;
	if (ret)
		fds_drop(shm, fds, &got);
	if (fds)
		*n_fds = got;
	return ret;
}

/**
 * shm_recv() - receive a message, and at most *@n_fds descriptors
 *
 * The call never blocks. Context: svc.lock is held. Return: 0; -EAGAIN: there is no message;
 * -EPIPE: the peer has ended; -EPROTO: the message is invalid.
 */
int shm_recv(struct shm *shm, int sock, struct shm_msg *msg, int *fds,
	     int *n_fds)
{
	struct iovec iov = { msg, sizeof(*msg) };
	union control control;
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t n;
	int ret;

	/* the kernel drops descriptors beyond the limit of the process */
	if (fds)
		sci_fd_room(SHM_MAX_FDS);
	/* the kernel reports a reset once, before earlier bytes of the peer: read again */
	do {
		n = recvmsg(sock, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return -errno;
	ret = fds_take(shm, &mh, fds, n_fds);
	if (ret)
		return ret;
	if ((size_t)n == sizeof(*msg) && !(mh.msg_flags & MSG_TRUNC) &&
	    msg->magic == SHM_MAGIC)
		return 0;
	/* an empty message, which may have descriptors, looks like the end of the connection */
	if (fds)
		fds_drop(shm, fds, n_fds);
	return n ? -EPROTO : -EPIPE;
}

static int socket_wait_readable(const struct shm_pending *call)
{
	struct pollfd pfd = { .fd = call->sock, .events = POLLIN };

	for (;;) {
		uint64_t now = sci_now_ms();
		int ms = -1, ret;

		if (call->deadline != UINT64_MAX)
			ms = call->deadline <= now ? 0 :
			     call->deadline - now > 60000 ? 60000 :
			     (int)(call->deadline - now);
		ret = poll(&pfd, 1, ms);
		if (ret > 0)
			return 0;
		if (ret < 0 && errno != EINTR)
			return -errno;
		if (sci_now_ms() >= call->deadline)
			return -ETIMEDOUT;
	}
}

/* Read an answer, or the reason why there is none. Context: svc.lock is held. */
static int answer_read(struct shm *shm, int sock, struct shm_msg *msg,
		       int *fds, int *n_fds)
{
	int ret = shm_recv(shm, sock, msg, fds, n_fds);

	if (ret)
		return ret;
	if (msg->type == SHM_REPLY && !msg->status)
		return 0;
	if (fds)
		fds_drop(shm, fds, n_fds);
	/* the owner has closed the name instead of answering */
	if (msg->type == SHM_BYE)
		return -EPIPE;
	return msg->type == SHM_REPLY && msg->status < 0 &&
	       msg->status > -4096 ? msg->status : -EPROTO;
}

/* Call the owner of a name once. Return -EPIPE if the owner ends during the call. */
static int owner_call_once(struct shm *shm, const char *name, struct shm_msg *msg,
			   int *fds, int *n_fds, struct shm_pending *call)
{
	int ret;

	ret = shm_dial(shm, name, call);
	if (ret)
		return ret;
	msg->node = shm->node;
	ret = shm_owner_admit(shm, call->sock) || msg->type == SHM_QUERY ?
	      shm_send(call->sock, msg, NULL, 0) : -EACCES;
	/* an owner that refuses may have closed the connection already: read its answer */
	if (!ret || ret == -EPIPE)
		ret = socket_wait_readable(call);
	pthread_mutex_lock(&shm->svc.lock);
	if (!ret)
		ret = answer_read(shm, call->sock, msg, fds, n_fds);
	if (ret) {
		sci_fd_close(&shm->svc, call->sock);
		call->sock = -1;
	}
	pthread_mutex_unlock(&shm->svc.lock);
	return atomic_load(&call->cancelled) && ret ? -ECANCELED : ret;
}

/**
 * shm_cancel_connect() - cancel connects
 * @owner: the owner of the connects; NULL: cancel all connects, and all later connects
 */
void shm_cancel_connect(struct sci_fabric *f, const void *owner)
{
	struct shm *shm = container_of(f, struct shm, base);
	struct list *pos, *n;

	pthread_mutex_lock(&shm->svc.lock);
	if (!owner)
		shm->no_calls = true;
	list_for_each_safe(pos, n, &shm->calls) {
		struct shm_pending *call = container_of(pos, struct shm_pending,
							link);

		if (owner && call->owner != owner)
			continue;
		atomic_store(&call->cancelled, true);
		/* wake the thread that polls the socket */
		if (call->sock >= 0)
			shutdown(call->sock, SHUT_RDWR);
	}
	pthread_mutex_unlock(&shm->svc.lock);
}

/* Return the deadline of a call. Even a short timeout leaves the peer time to refuse. */
uint64_t shm_deadline(uint32_t timeout)
{
	if (timeout == SCI_TIMEOUT_NONE)
		return UINT64_MAX;
	return sci_now_ms() + (timeout < MIN_TIMEOUT_MS ? MIN_TIMEOUT_MS :
							  timeout);
}

/**
 * shm_call() - connect to a name, send a request, and wait for the answer
 * @msg: in: type and its fields; out: the answer
 * @fds, @n_fds: in: room; out: received descriptors; NULL: none are wanted. After an error, the
 *	call has closed the descriptors, and has stored -1 for them.
 * @deadline: in sci_now_ms() time; UINT64_MAX: none
 * @owner: the argument of shm_cancel_connect() that cancels this call
 * @sock: receives the connection, in the table, if the call returns 0
 *
 * Context: svc.lock is not held. Return: the answer's status; -ENOENT: no process has the name;
 * -ETIMEDOUT; -ECANCELED.
 */
int shm_call(struct shm *shm, const char *name, struct shm_msg *msg, int *fds,
	     int *n_fds, uint64_t deadline, const void *owner, int *sock)
{
	struct shm_pending call = { .owner = owner, .deadline = deadline,
				    .sock = -1 };
	const struct shm_msg ask = *msg;
	int room = n_fds ? *n_fds : 0;
	int tries = CALL_TRIES;
	int ret = -ECANCELED;

	pthread_mutex_lock(&shm->svc.lock);
	list_add_tail(&call.link, &shm->calls);
	atomic_store(&call.cancelled, shm->no_calls);
	pthread_mutex_unlock(&shm->svc.lock);
	/*
	 * An owner that ends during the connect does not answer. Try again: the name is
	 * then free, or another process has it.
	 */
	while (!atomic_load(&call.cancelled) && tries--) {
		if (tries < CALL_TRIES - 1 && sci_now_ms() >= deadline)
			break;
		*msg = ask;
		if (n_fds)
			*n_fds = room;
		ret = owner_call_once(shm, name, msg, fds, n_fds, &call);
		if (ret != -EPIPE)
			break;
	}
	if (ret && n_fds)
		*n_fds = 0;
	pthread_mutex_lock(&shm->svc.lock);
	list_del(&call.link);
	pthread_mutex_unlock(&shm->svc.lock);
	*sock = call.sock;
	return ret == -EPIPE ? -ENOENT : ret;
}

/* ---- the owner's end ---- */

static bool peer_in_groups(int sock, gid_t primary, gid_t group)
{
	socklen_t len = GROUPS_MAX * sizeof(gid_t);
	bool found = primary == group;
	gid_t *groups;
	size_t i;

	if (found)
		return true;
	groups = malloc(len);
	if (!groups)
		return false;
	if (!getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, groups, &len))
		for (i = 0; i < len / sizeof(gid_t); i++)
			found |= groups[i] == group;
	free(groups);
	return found;
}

/**
 * shm_access() - get the rights that SCI_MODE gives the other process
 *
 * Return: bits 4 (read) and 2 (write), as for a file of this user.
 */
unsigned int shm_access(struct shm *shm, int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return 0;
	if (!cred.uid)
		return 6;
	if (cred.uid == geteuid())
		return shm->mode >> 6 & 6;
	if (peer_in_groups(sock, cred.gid, getegid()))
		return shm->mode >> 3 & 6;
	return shm->mode & 6;
}

/**
 * shm_trusts() - test whether the owner of a name is trusted
 *
 * An abstract name belongs to the process that binds it first. This process sends stores and
 * messages only to an owner to whom SCI_MODE gives rights, to its own user and to the
 * superuser.
 */
bool shm_trusts(struct shm *shm, int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return false;
	return cred.uid == geteuid() || shm_access(shm, sock);
}

/* Let a trusted owner of a name send descriptors. Return false if the owner is not trusted. */
bool shm_owner_admit(struct shm *shm, int sock)
{
	bool trusted = shm_trusts(shm, sock);

	if (trusted)
		sci_fd_pass_rights(sock, true);
	return trusted;
}

static void conn_end(struct shm_conn *conn, bool orderly)
{
	if (conn->role == SHM_IMPORTER)
		conn->port->importers--;
	shm_pair_conn_end(conn, orderly);
	if (conn->bell)
		shm_bell_leave(conn);
	list_del(&conn->link);
	sci_fd_close(&conn->port->shm->svc, conn->fd);
	free(conn);
}

void shm_conn_close(struct shm_conn *conn)
{
	conn_end(conn, true);
}

/* Handle the end of a peer: notify the owner of the name, and close the connection. */
void shm_conn_gone(struct shm_conn *conn, bool orderly)
{
	struct shm_port *port = conn->port;

	if (conn->role == SHM_IMPORTER && port->gone)
		port->gone(port, conn, orderly);
	conn_end(conn, orderly);
}

static void conn_input(void *obj)
{
	struct shm_conn *conn = obj;
	struct shm_port *port = conn->port;
	struct shm_msg msg;
	int ret;

	if (conn->role == SHM_IMPORTER && port->input) {
		port->input(port, conn);
		return;
	}
	ret = shm_recv(port->shm, conn->fd, &msg, NULL, NULL);
	/* ignore a trigger of a segment without a bell */
	if (ret == -EAGAIN || (!ret && msg.type == SHM_TRIGGER && conn->role == SHM_IMPORTER))
		return;
	if (ret || conn->role != SHM_NEW)
		shm_conn_gone(conn, !ret && msg.type == SHM_BYE);
	else if (!port->hello(port, conn, &msg))
		shm_conn_close(conn);
}

/* Refuse a peer when no descriptor is free: accept it with the spare descriptor, and close it. */
static bool peer_refuse_one(struct shm *shm, struct shm_port *port)
{
	const struct shm_msg no = { .type = SHM_REPLY, .status = -ENFILE };
	int fd;

	/* accept4() fails if another owner of the name has accepted the peer */
	sci_fd_close(&shm->svc, shm->sparefd);
	fd = accept4(port->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0) {
		shm_send(fd, &no, NULL, 0);
		close(fd);
	}
	shm->sparefd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (shm->sparefd >= 0 && sci_fd_track(&shm->svc, shm->sparefd))
		shm->sparefd = -1;
	return fd >= 0;
}

static void port_input(void *obj)
{
	struct shm_msg no = { .type = SHM_REPLY, .status = -ENOMEM };
	struct shm_port *port = obj;
	struct shm *shm = port->shm;
	struct shm_conn *conn;
	int fd;

	fd = accept4(port->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if ((errno == EMFILE && sci_raise_fd_limit()) ||
		    errno == ENFILE)
			shm->svc.starved = !peer_refuse_one(shm, port);
		return;
	}
	if (sci_fd_prepare(&shm->svc, fd)) {
		shm_send(fd, &no, NULL, 0);
		close(fd);
		return;
	}
	sci_fd_track(&shm->svc, fd);
	/* a peer without rights must not occupy a descriptor */
	conn = NULL;
	if (!shm_access(shm, fd))
		no.status = -EACCES;
	else
		conn = calloc(1, sizeof(*conn));
	if (!conn) {
		shm_send(fd, &no, NULL, 0);
		sci_fd_close(&shm->svc, fd);
		return;
	}
	conn->port = port;
	conn->fd = fd;
	list_add_tail(&conn->link, &port->conns);
	if (sci_watch(&shm->svc, fd, EPOLLIN, conn_input, conn))
		shm_conn_close(conn);
	else	/* most of the time the first message has arrived with the connect */
		conn_input(conn);
}

void shm_port_init(struct shm_port *port, struct shm *shm)
{
	port->shm = shm;
	port->fd = -1;
	list_init(&port->conns);
}

/* Begin to answer processes that connect. Context: svc->lock is held. */
int shm_port_serve(struct shm_port *port)
{
	return sci_watch(&port->shm->svc, port->fd, EPOLLIN, port_input, port);
}

/* Bind a name and answer connects to it. Context: svc.lock is held. */
int shm_port_open(struct shm_port *port, const char *name)
{
	struct shm *shm = port->shm;
	int ret;

	snprintf(port->name, sizeof(port->name), "%s", name);
	ret = shm_bind(shm, name, SOCK_SEQPACKET, &port->fd);
	if (ret)
		return ret;
	ret = shm_port_serve(port);
	if (ret)
		shm_unbind(shm, name, false, &port->fd);
	return ret;
}

/**
 * shm_port_share() - become an owner of a name that processes share
 * @mine: flags and size that all owners must agree on
 * @theirs: receives the answer of an existing owner
 * @their_fd: is set to the memory or eventfd that the owners share; -1: this process is the
 *	first owner
 *
 * The port answers peers only after shm_port_serve().
 *
 * Context: svc->lock is not held.
 * Return: 0; -EEXIST: the owner does not share the name; -EMSGSIZE: the owners have agreed on
 * other flags or another size; or another error.
 */
int shm_port_share(struct shm_port *port, const char *name,
		   const struct shm_msg *mine, struct shm_msg *theirs,
		   int *their_fd)
{
	struct shm *shm = port->shm;
	int fds[SHM_MAX_FDS], n_fds, sock, ret, tries;

	snprintf(port->name, sizeof(port->name), "%s", name);
	port->shared = true;
	for (tries = CALL_TRIES; ; tries--) {
		*their_fd = -1;
		pthread_mutex_lock(&shm->svc.lock);
		ret = shm_bind(shm, name, SOCK_SEQPACKET, &port->fd);
		pthread_mutex_unlock(&shm->svc.lock);
		if (ret != -EEXIST)
			return ret;

		*theirs = *mine;
		theirs->type = SHM_JOIN;
		n_fds = SHM_MAX_FDS;
		ret = shm_call(shm, name, theirs, fds, &n_fds,
			       sci_now_ms() + 5000, NULL, &sock);
		if (!ret)
			break;
		/* the owner has ended since shm_bind(): bind the name, but retry only a few times */
		if (ret != -ENOENT)
			return ret;
		if (!tries)
			return -EEXIST;
	}
	pthread_mutex_lock(&shm->svc.lock);
	sci_fd_close(&shm->svc, sock);
	if (n_fds == SHM_MAX_FDS) {
		port->fd = fds[0];
		*their_fd = fds[1];
	} else {
		fds_drop(shm, fds, &n_fds);
		ret = -EPROTO;
	}
	pthread_mutex_unlock(&shm->svc.lock);
	return ret;
}

pid_t shm_peer(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) ?
	       0 : cred.pid;
}

/*
 * Read the messages that importers have sent before now, so that closed connections no longer
 * count. @pid: only importers of that process; 0: all. Context: svc.lock is held.
 */
void shm_port_drain(struct shm_port *port, pid_t pid)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &port->conns) {
		struct shm_conn *conn = container_of(pos, struct shm_conn,
						     link);

		if (conn->role != SHM_IMPORTER || conn->fd < 0 || port->input ||
		    (pid && conn->pid != pid))
			continue;
		if (conn->bell)
			shm_bell_drain(conn);
		else
			conn_input(conn);
	}
}

/* Send SHM_BYE to all connected processes, and release the name. Context: svc.lock is held. */
void shm_port_close(struct shm_port *port)
{
	const struct shm_msg bye = { .type = SHM_BYE };
	struct list *pos, *n;

	list_for_each_safe(pos, n, &port->conns) {
		struct shm_conn *conn = container_of(pos, struct shm_conn,
						     link);

		shm_send(shm_conn_sock(conn), &bye, NULL, 0);
		shm_conn_close(conn);
	}
	if (port->fd >= 0)
		sci_unwatch(&port->shm->svc, port->fd);
	shm_unbind(port->shm, port->name, port->shared, &port->fd);
}
