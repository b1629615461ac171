// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: interrupts
 *
 * A trigger of a plain interrupt is a message on the importer's own connection, so that no
 * importer can take or block the triggers of another importer. The owner waits on an epoll of
 * all these connections and of its own eventfd. The eventfd keeps the triggers of importers that
 * have ended. The service thread watches the connections only for their end.
 *
 * A counting or shared interrupt is an eventfd. The owner passes the eventfd to each importer,
 * and trusts importers not to read it. A counting interrupt is a semaphore: a read takes one
 * trigger, and the kernel counts any number. The owners of a shared number share the eventfd
 * and never read it. Each owner waits on its own edge-triggered epoll, so every owner sees
 * every write.
 *
 * A data interrupt is the connection itself: messages arrive in order and
 * whole. The service thread moves them to the owner's queue; when the queue is full, messages
 * stay in the socket. When the socket is full, the sender gets an error.
 */

#include "libsci/fabric/shm/interrupt.h"

#include "libsci/base/cancel.h"
#include "libsci/base/thread.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct message {
	struct list link;
	size_t len;
	unsigned char data[];
};

static void shm_intr_notify(struct sci_lintr *i)
{
	const struct sci_event ev = {
		.type = SCI_EVENT_INTERRUPT, .node = i->shm->node,
		.adapter = i->adapter,
	};

	if (i->event)
		i->event(i->owner, &ev);
}

/* ---- the owner of a plain interrupt ---- */

static void shm_intr_plain_input(void *obj)
{
	struct sci_lintr *i = obj;
	struct epoll_event ev;
	uint64_t count = 0;

	if (shm_intr_has_rings(i) ? shm_bell_input(i) :
	    i->epfd >= 0 ? epoll_wait(i->epfd, &ev, 1, 0) > 0 :
	    read(i->eventfd, &count, sizeof(count)) == sizeof(count))
		shm_intr_notify(i);
}

static int epoll_new(struct sci_lintr *i, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.fd = i->eventfd };
	int fd;

	do {
		fd = epoll_create1(EPOLL_CLOEXEC);
	} while (fd < 0 && errno == EMFILE && !sci_raise_fd_limit());
	if (fd < 0)
		return -errno;
	if (sci_fd_track(&i->shm->svc, fd))
		return -ENOMEM;
	i->epfd = fd;
	return epoll_ctl(i->epfd, EPOLL_CTL_ADD, i->eventfd, &ev) ? -errno : 0;
}

/* Watch an eventfd for all later writes, without reading it. */
static int eventfd_share(struct sci_lintr *i)
{
	struct epoll_event ev;
	int ret = epoll_new(i, EPOLLIN | EPOLLET);

	/* triggers from before the number was shared do not count */
	if (!ret)
		epoll_wait(i->epfd, &ev, 1, 0);
	return ret;
}

static int plain_listen(struct sci_lintr *i)
{
	int ret = 0;

	if (i->flags & SCI_INTR_SHARED)
		ret = eventfd_share(i);
	else if (shm_intr_has_rings(i))
		ret = epoll_new(i, EPOLLIN);
	if (!ret && i->event)
		ret = sci_watch(&i->shm->svc, i->epfd >= 0 ? i->epfd : i->eventfd,
				EPOLLIN, shm_intr_plain_input, i);
	return ret;
}

static int eventfd_new(struct sci_lintr *i)
{
	struct shm *shm = i->shm;
	int flags = EFD_CLOEXEC | EFD_NONBLOCK;
	int fd;

	if (i->flags & SCI_INTR_COUNTING)
		flags |= EFD_SEMAPHORE;
	do {
		fd = eventfd(0, flags);
	} while (fd < 0 && errno == EMFILE && !sci_raise_fd_limit());
	if (fd < 0)
		return -errno;
	if (sci_fd_track(&shm->svc, fd))
		return -ENOMEM;
	i->eventfd = fd;
	return 0;
}

/* ---- the owner of a data interrupt ---- */

static bool queue_is_full(const struct sci_lintr *i)
{
	return i->queued_bytes >= SHM_DATA_QUEUE_BYTES ||
	       i->queued >= SHM_DATA_QUEUE_MSGS;
}

static void senders_resume(struct sci_lintr *i)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &i->port.conns)
		sci_watch_pause(&i->shm->svc,
				container_of(pos, struct shm_conn, link)->fd,
				false);
}

static struct message *shm_intr_read_message(int sock, int *err)
{
	struct shm_msg head;
	struct iovec iov[2] = { { &head, sizeof(head) } };
	struct msghdr mh = { .msg_iov = iov, .msg_iovlen = 2 };
	struct message *m;
	ssize_t n;

	/* get the length first, to avoid an allocation for the longest message */
	n = recv(sock, NULL, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
	*err = n < 0 ? -errno : -EPIPE;
	if (n < (ssize_t)sizeof(head) ||
	    n > (ssize_t)(sizeof(head) + SCI_DATA_INTR_MAX))
		return NULL;
	m = malloc(sizeof(*m) + (size_t)n);
	*err = -ENOMEM;
	if (!m)
		return NULL;
	iov[1].iov_base = m->data;
	iov[1].iov_len = (size_t)n - sizeof(head);
	m->len = iov[1].iov_len;
	if (recvmsg(sock, &mh, MSG_DONTWAIT) == n && head.magic == SHM_MAGIC &&
	    head.type == SHM_DATA)
		return m;
	free(m);
	*err = -EPIPE;
	return NULL;
}

static void shm_intr_data_input(struct shm_port *port, struct shm_conn *conn)
{
	struct sci_lintr *i = container_of(port, struct sci_lintr, port);
	struct message *m;
	int err;

	if (queue_is_full(i)) {
		sci_watch_pause(&port->shm->svc, conn->fd, true);
		return;
	}
	m = shm_intr_read_message(conn->fd, &err);
	if (!m) {
		if (err != -EAGAIN && err != -EINTR && err != -ENOMEM)
			shm_conn_close(conn);	/* the importer sent SHM_BYE, or it died */
		return;
	}
	list_add_tail(&m->link, &i->queue);
	i->queued++;
	i->queued_bytes += m->len;
	pthread_cond_signal(&i->arrived);
	shm_intr_notify(i);
}

/* ---- both ---- */

static bool shm_intr_refuse(struct shm_conn *conn, int status)
{
	const struct shm_msg no = { .type = SHM_REPLY, .status = status };

	shm_send(conn->fd, &no, NULL, 0);
	return false;
}

static int shm_intr_join_hello(struct sci_lintr *i, struct shm_conn *conn)
{
	const struct shm_msg re = { .type = SHM_REPLY };
	const int fds[] = { i->port.fd, i->eventfd };

	if (!(i->flags & SCI_INTR_SHARED))
		return -EEXIST;
	if ((shm_access(i->shm, conn->fd) & 6) != 6)
		return -EACCES;
	return shm_send(conn->fd, &re, fds, 2);
}

static bool lintr_hello(struct shm_port *port, struct shm_conn *conn,
			const struct shm_msg *msg)
{
	struct sci_lintr *i = container_of(port, struct sci_lintr, port);
	const struct shm_msg re = {
		.type = SHM_REPLY,
		.flags = i->flags & SCI_INTR_SHARED ? SHM_F_SHARED :
			 shm_intr_has_rings(i) ? SHM_F_RINGS : 0,
	};
	bool data = i->flags & SCI_INTR_DATA;
	int ret;

	if (msg->type == SHM_JOIN) {
		ret = data ? -EEXIST : shm_intr_join_hello(i, conn);
		if (ret)
			shm_intr_refuse(conn, ret);
		return false;
	}
	if (msg->type != SHM_CONNECT)
		return shm_intr_refuse(conn, -EPROTO);
	/* only a process with the right to write may trigger */
	if (!(shm_access(i->shm, conn->fd) & 2))
		return shm_intr_refuse(conn, -EACCES);
	ret = data || shm_intr_has_rings(i) ? shm_send(conn->fd, &re, NULL, 0) :
				     shm_send(conn->fd, &re, &i->eventfd, 1);
	if (!ret && shm_intr_has_rings(i))
		ret = shm_bell_listen(i, conn);
	if (ret)
		return false;
	conn->role = SHM_IMPORTER;
	conn->node = msg->node;
	conn->port->importers++;
	return true;
}

static enum shm_kind intr_kind(unsigned int flags)
{
	return flags & SCI_INTR_DATA ? SHM_DATA_INTR : SHM_INTR;
}

static int number_own_free(struct sci_lintr *i)
{
	struct shm *shm = i->shm;
	char name[SHM_NAME_MAX];
	int ret;

	do {
		i->number = shm->next_intno++;
		shm_name(shm, name, intr_kind(i->flags), shm->node, i->number);
		ret = shm_port_open(&i->port, name);
	} while (ret == -EEXIST);
	return ret;
}

static int number_own(struct sci_lintr *i)
{
	struct shm *shm = i->shm;
	char name[SHM_NAME_MAX];

	if (!(i->flags & SCI_INTR_FIXED))
		return number_own_free(i);
	shm_name(shm, name, intr_kind(i->flags), shm->node, i->number);
	return shm_port_open(&i->port, name);
}

/* Take a number that other processes own as well, and get their eventfd. */
static int number_share(struct sci_lintr *i)
{
	const struct shm_msg mine = { .flags = 0 };
	struct shm *shm = i->shm;
	char name[SHM_NAME_MAX];
	struct shm_msg theirs;
	int fd, ret;

	shm_name(shm, name, SHM_INTR, shm->node, i->number);
	ret = shm_port_share(&i->port, name, &mine, &theirs, &fd);
	if (ret)
		return ret;
	pthread_mutex_lock(&shm->svc.lock);
	if (fd >= 0)
		i->eventfd = fd;
	else
		ret = eventfd_new(i);
	ret = ret ? ret : plain_listen(i);
	ret = ret ? ret : shm_port_serve(&i->port);
	pthread_mutex_unlock(&shm->svc.lock);
	return ret;
}

static int intr_try_start(struct sci_lintr *i)
{
	bool data = i->flags & SCI_INTR_DATA;
	int ret = 0;

	if ((i->flags & (SCI_INTR_SHARED | SCI_INTR_FIXED)) ==
	    (SCI_INTR_SHARED | SCI_INTR_FIXED))
		return number_share(i);
	pthread_mutex_lock(&i->shm->svc.lock);
	if (!data && i->eventfd < 0)
		ret = eventfd_new(i);
	ret = ret ? ret : number_own(i);
	if (!ret && !data)
		ret = plain_listen(i);
	pthread_mutex_unlock(&i->shm->svc.lock);
	return ret;
}

static int lintr_start(struct sci_lintr *i)
{
	uint64_t begin = sci_now_ms();
	int ret;

	do {
		ret = intr_try_start(i);
	} while (ret == -EEXIST && shm_name_settles(i->shm, i->port.name, begin));
	return ret;
}

int shm_lintr_create(struct sci_fabric *f, struct sci_lintr_param *p,
		     struct sci_lintr **out)
{
	struct shm *shm = container_of(f, struct shm, base);
	struct sci_lintr *i = calloc(1, sizeof(*i));
	int ret;

	if (!i)
		return -ENOMEM;
	i->shm = shm;
	i->number = p->number;
	i->flags = p->flags;
	i->adapter = p->adapter;
	i->event = p->event;
	i->owner = p->owner;
	i->eventfd = -1;
	i->epfd = -1;
	list_init(&i->queue);
	sci_cond_init(&i->arrived);
	shm_port_init(&i->port, shm);
	i->port.hello = lintr_hello;
	if (p->flags & SCI_INTR_DATA)
		i->port.input = shm_intr_data_input;
	ret = lintr_start(i);
	if (ret) {
		shm_lintr_destroy(i);
		return ret;
	}
	p->number = i->number;
	*out = i;
	return 0;
}

void shm_lintr_destroy(struct sci_lintr *i)
{
	struct shm *shm = i->shm;
	struct list *pos, *n;

	pthread_mutex_lock(&shm->svc.lock);
	shm_port_close(&i->port);
	sci_fd_close(&shm->svc, i->epfd);
	sci_fd_close(&shm->svc, i->eventfd);
	pthread_mutex_unlock(&shm->svc.lock);
	list_for_each_safe(pos, n, &i->queue)
		free(container_of(pos, struct message, link));
	pthread_cond_destroy(&i->arrived);
	free(i);
}

/* ---- waiting ---- */

static int shm_intr_left_ms(uint64_t deadline)
{
	uint64_t now = sci_now_ms();

	if (deadline == UINT64_MAX)
		return -1;
	if (deadline <= now)
		return 0;
	return deadline - now > 60000 ? 60000 : (int)(deadline - now);
}

static int intr_wait_rings(struct sci_lintr *i, int ms)
{
	struct epoll_event ev[SHM_BELL_EVENTS];
	int n = sci_epoll_cancelable(i->epfd, ev, SHM_BELL_EVENTS, ms), ret;

	if (n <= 0)
		return n && errno != EINTR ? -errno : 0;
	pthread_mutex_lock(&i->shm->svc.lock);
	ret = atomic_load(&i->cancelled) ? -ECANCELED :
	      shm_bell_take(i, ev, n);
	pthread_mutex_unlock(&i->shm->svc.lock);
	return ret;
}

static int intr_wait_plain(struct sci_lintr *i, int ms)
{
	struct pollfd pfd = { .fd = i->eventfd, .events = POLLIN };
	uint64_t count;

	if (sci_poll_cancelable(&pfd, 1, ms) < 0)
		return errno == EINTR ? 0 : -errno;
	/* After a cancel do not read the eventfd: other waiters need its count. */
	if (atomic_load(&i->cancelled))
		return -ECANCELED;
	return read(i->eventfd, &count, sizeof(count)) == sizeof(count);
}

static int intr_wait_shared(struct sci_lintr *i, int ms)
{
	struct pollfd pfd = { .fd = i->epfd, .events = POLLIN };
	struct epoll_event ev;

	/* poll() first: it takes no trigger, so a cancelled thread loses none */
	if (sci_poll_cancelable(&pfd, 1, ms) < 0)
		return errno == EINTR ? 0 : -errno;
	if (atomic_load(&i->cancelled))
		return -ECANCELED;
	return epoll_wait(i->epfd, &ev, 1, 0) > 0;
}

static int intr_take_message(struct sci_lintr *i, void *data, size_t *len)
{
	struct message *m = container_of(i->queue.next, struct message, link);
	size_t room = *len;
	bool was_full = queue_is_full(i);

	*len = m->len;
	if (m->len > room) {
		/* another waiter may have room */
		pthread_cond_signal(&i->arrived);
		return -EMSGSIZE;
	}
	if (m->len)
		memcpy(data, m->data, m->len);
	list_del(&m->link);
	i->queued--;
	i->queued_bytes -= m->len;
	free(m);
	if (was_full && !queue_is_full(i))
		senders_resume(i);
	return 0;
}

static int intr_wait_data(struct sci_lintr *i, void *data, size_t *len,
			  uint64_t deadline)
{
	struct timespec ts = {
		.tv_sec = (time_t)(deadline / 1000),
		.tv_nsec = (long)(deadline % 1000 * 1000000),
	};
	int ret = 0;

	pthread_mutex_lock(&i->shm->svc.lock);
	while (list_empty(&i->queue) && !ret && !atomic_load(&i->cancelled))
		ret = sci_cond_wait_cancelable(&i->arrived, &i->shm->svc.lock,
					       deadline == UINT64_MAX ?
					       UINT32_MAX : 0, &ts);
	if (atomic_load(&i->cancelled))
		ret = -ECANCELED;
	else if (!list_empty(&i->queue))
		ret = intr_take_message(i, data, len);
	else
		ret = -ret;
	pthread_mutex_unlock(&i->shm->svc.lock);
	return ret;
}

int shm_lintr_wait(struct sci_lintr *i, void *data, size_t *len,
		   uint32_t timeout)
{
	uint64_t deadline = timeout == SCI_TIMEOUT_NONE ?
			    UINT64_MAX : sci_now_ms() + timeout;
	int ret, ms;

	if (i->flags & SCI_INTR_DATA)
		return intr_wait_data(i, data, len, deadline);
	do {
		ms = shm_intr_left_ms(deadline);
		ret = shm_intr_has_rings(i) ? intr_wait_rings(i, ms) :
		      i->epfd >= 0 ? intr_wait_shared(i, ms) : intr_wait_plain(i, ms);
	} while (!ret && ms);
	return ret < 0 ? ret : ret ? 0 : -ETIMEDOUT;
}

int shm_lintr_fd(struct sci_lintr *i)
{
	if (i->flags & SCI_INTR_DATA || i->event)
		return -EOPNOTSUPP;
	return i->epfd >= 0 ? i->epfd : i->eventfd;
}

void shm_lintr_cancel(struct sci_lintr *i)
{
	struct epoll_event ev = { .events = EPOLLIN };
	uint64_t one = 1;
	ssize_t n;

	pthread_mutex_lock(&i->shm->svc.lock);
	atomic_store(&i->cancelled, true);
	pthread_cond_broadcast(&i->arrived);
	if (i->event && i->eventfd >= 0) {
		/*
		 * Remove the watch: no thread waits any more, and a write would count as a
		 * trigger.
		 */
		sci_unwatch(&i->shm->svc, i->epfd >= 0 ? i->epfd : i->eventfd);
	} else if (i->epfd >= 0) {
		/* Other owners share the eventfd and must not see a write: use readyfd. */
		epoll_ctl(i->epfd, EPOLL_CTL_ADD, i->shm->readyfd, &ev);
	} else if (i->eventfd >= 0) {
		/* if the write fails, the eventfd is full, hence readable */
		n = write(i->eventfd, &one, sizeof(one));
		(void)n;
	}
	pthread_mutex_unlock(&i->shm->svc.lock);
}
