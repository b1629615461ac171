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

#include "libsci/fabric/shm/shm.h"

#include "libsci/base/cancel.h"
#include "libsci/base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct message {
	struct list link;
	size_t len;
	unsigned char data[];
};

struct sci_lintr {
	struct shm *shm;
	uint32_t number;
	unsigned int flags;
	unsigned int adapter;
	struct shm_port port;
	sci_event_fn event;
	void *owner;
	_Atomic bool cancelled;
	int eventfd;			/* of a plain interrupt */
	/* shared: edge-triggered epoll of the eventfd; plain: also of the connections */
	int epfd;
	/* fields for data interrupts; svc.lock protects them */
	struct list queue;
	size_t queued_bytes;
	unsigned int queued;
	pthread_cond_t arrived;
};

struct sci_rintr {
	struct shm *shm;
	unsigned int node;
	uint32_t number;
	bool data;
	bool shared;
	unsigned int rejoining;		/* attempts made to find another owner */
	int conn;
	int eventfd;
	_Atomic bool gone;
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

/* ---- the owner of a plain interrupt, by messages ---- */

#define RING_BATCH	16		/* triggers taken in one system call */
/* triggers taken from one importer before the next importer has its turn */
#define RING_MAX	64u
#define RING_EVENTS	16
#define RING_ROUNDS	64u

static bool intr_has_rings(const struct sci_lintr *i)
{
	return !(i->flags & (SCI_INTR_DATA | SCI_INTR_SHARED |
			     SCI_INTR_COUNTING));
}

static bool msg_is(const struct shm_msg *msg, size_t len, enum shm_type type)
{
	return len == sizeof(*msg) && msg->magic == SHM_MAGIC && msg->type == type;
}

/*
 * RING_BYE: the importer ended in good order; RING_LOST: it died, or sent an invalid message;
 * RING_MERGE: the connection of the pair's import replaces this one
 */
enum ring_state { RING_OPEN, RING_BYE, RING_LOST, RING_MERGE };

/* Handle a message that is no trigger. */
static enum ring_state ring_message(struct shm_conn *conn, const struct shm_msg *msg, size_t len)
{
	if (msg_is(msg, len, SHM_BYE))
		return RING_BYE;
	if (msg_is(msg, len, SHM_MERGE))
		return RING_MERGE;
	/* after the merge the peer also sends messages about the segment that it owns */
	if (!conn->pair || !conn->pair->merged ||
	    !(msg_is(msg, len, SHM_NOTIFY) || msg_is(msg, len, SHM_CUT)))
		return RING_LOST;
	return shm_rseg_owner_message(conn->pair, msg->type) ? RING_OPEN : RING_BYE;
}

/* Read the triggers of one importer. Set *@rung if there were any. */
static enum ring_state ring_read(struct shm_conn *conn, bool *rung)
{
	struct mmsghdr mm[RING_BATCH];
	struct shm_msg msg[RING_BATCH];
	struct iovec iov[RING_BATCH];
	unsigned int total;
	int n, k;

	memset(mm, 0, sizeof(mm));
	for (k = 0; k < RING_BATCH; k++) {
		iov[k] = (struct iovec) { &msg[k], sizeof(msg[k]) };
		mm[k].msg_hdr.msg_iov = &iov[k];
		mm[k].msg_hdr.msg_iovlen = 1;
	}
	for (total = 0; total < RING_MAX; total += RING_BATCH) {
		/* the kernel reports a reset once, before earlier messages of the importer */
		do {
			n = recvmmsg(conn->fd, mm, RING_BATCH, MSG_DONTWAIT, NULL);
		} while (n < 0 && (errno == EINTR || errno == ECONNRESET));
		if (n < 0)
			return errno == EAGAIN ? RING_OPEN : RING_LOST;
		for (k = 0; k < n; k++) {
			enum ring_state state = RING_OPEN;

			if (msg_is(&msg[k], mm[k].msg_len, SHM_TRIGGER))
				*rung = true;
			else
				state = ring_message(conn, &msg[k], mm[k].msg_len);
			if (state != RING_OPEN)
				return state;
		}
		if (n < RING_BATCH)
			break;
	}
	return RING_OPEN;
}

/* Report a trigger of an importer to the segment, and store it in the eventfd for the waiters. */
void shm_bell_keep(struct shm_conn *conn)
{
	uint64_t one = 1;
	ssize_t n;

	shm_lseg_rang(conn);
	n = write(conn->bell->eventfd, &one, sizeof(one));
	(void)n;	/* if the write fails, the eventfd is full, hence readable */
}

/* Read all messages of an importer, and store its triggers in the eventfd for the waiters. */
static enum ring_state ring_drain(struct shm_conn *conn)
{
	unsigned int rounds = RING_ROUNDS;
	enum ring_state state;
	bool rung = false, more;

	do {
		more = false;
		state = ring_read(conn, &more);
		rung |= more;
	} while (state == RING_OPEN && more && --rounds);
	if (rung)
		shm_bell_keep(conn);
	return state;
}

static void ring_end(struct shm_conn *conn, enum ring_state state)
{
	const struct shm_msg bye = { .type = SHM_BYE };

	if (state == RING_MERGE && shm_pair_merged(conn))
		return;
	/* this process has ended the import of the pair, or the peer has lied */
	if (state == RING_MERGE)
		shm_send(conn->fd, &bye, NULL, 0);
	shm_conn_gone(conn, state != RING_LOST);
}

/* Remove an importer that has ended. Its earlier triggers stay. */
static void ring_handle_hang_up(void *obj)
{
	enum ring_state state = ring_drain(obj);

	ring_end(obj, state == RING_OPEN ? RING_LOST : state);
}

/* Read the messages that an importer has sent before now. Context: svc.lock is held. */
void shm_bell_drain(struct shm_conn *conn)
{
	enum ring_state state = ring_drain(conn);

	if (state != RING_OPEN)
		ring_end(conn, state);
}

/* Let the waiters receive the messages of a socket. */
int shm_bell_add(struct sci_lintr *i, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(i->epfd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

void shm_bell_remove(struct sci_lintr *i, int fd)
{
	epoll_ctl(i->epfd, EPOLL_CTL_DEL, fd, NULL);
}

/* Add an importer to the epoll of the waiters when it connects. Context: svc.lock is held. */
int shm_bell_listen(struct sci_lintr *i, struct shm_conn *conn)
{
	struct sci_service *svc = &i->shm->svc;
	int ret;

	sci_unwatch(svc, conn->fd);
	ret = shm_bell_add(i, conn->fd);
	if (ret)
		return ret;
	conn->bell = i;
	return sci_watch(svc, conn->fd, EPOLLRDHUP, ring_handle_hang_up, conn);
}

void shm_bell_leave(struct shm_conn *conn)
{
	shm_bell_remove(conn->bell, conn->fd);
}

/*
 * Return the importer of a descriptor that was readable before the lock was taken; NULL:
 * the importer has ended meanwhile.
 */
static struct shm_conn *ring_conn(struct sci_lintr *i, int fd)
{
	const struct sci_watch *w = &i->shm->svc.fds[fd];
	struct shm_conn *conn = w->fn == ring_handle_hang_up ? w->obj : NULL;

	return conn && conn->bell == i ? conn : NULL;
}

/* Return the import that receives triggers on a descriptor, or NULL. */
static struct sci_rseg *ring_import(struct sci_lintr *i, int fd)
{
	const struct sci_watch *w = &i->shm->svc.fds[fd];
	struct sci_rseg *r = w->fn == shm_rseg_input ? w->obj : NULL;

	return r && r->pair && r->pair->bell == i ? r : NULL;
}

static bool ring_take(struct sci_lintr *i, const struct epoll_event *ev, int n)
{
	struct sci_rseg *import;
	enum ring_state state;
	struct shm_conn *conn;
	bool rung = false;
	uint64_t count;
	int k;

	for (k = 0; k < n; k++) {
		bool more = false;

		if (ev[k].data.fd == i->eventfd) {
			rung |= read(i->eventfd, &count, sizeof(count)) ==
				sizeof(count);
			continue;
		}
		import = ring_import(i, ev[k].data.fd);
		conn = import ? import->pair : ring_conn(i, ev[k].data.fd);
		state = RING_OPEN;
		if (import)
			more = shm_rseg_read(import);
		else if (conn)
			state = ring_read(conn, &more);
		if (more)
			shm_lseg_rang(conn);
		rung |= more;
		if (state != RING_OPEN)
			ring_end(conn, state);
	}
	return rung;
}

/* Take all triggers, beginning with the events in @ev. Context: svc.lock is held. */
static bool ring_take_all(struct sci_lintr *i, struct epoll_event *ev, int n)
{
	unsigned int rounds = RING_ROUNDS;
	bool rung = ring_take(i, ev, n);

	while (n == RING_EVENTS && --rounds) {
		n = epoll_wait(i->epfd, ev, RING_EVENTS, 0);
		rung |= ring_take(i, ev, n);
	}
	return rung;
}

static bool ring_input(struct sci_lintr *i)
{
	struct epoll_event ev[RING_EVENTS];

	return ring_take_all(i, ev, epoll_wait(i->epfd, ev, RING_EVENTS, 0));
}

/* ---- the owner of a plain interrupt ---- */

static void shm_intr_plain_input(void *obj)
{
	struct sci_lintr *i = obj;
	struct epoll_event ev;
	uint64_t count = 0;

	if (intr_has_rings(i) ? ring_input(i) :
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
	else if (intr_has_rings(i))
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
			 intr_has_rings(i) ? SHM_F_RINGS : 0,
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
	ret = data || intr_has_rings(i) ? shm_send(conn->fd, &re, NULL, 0) :
				     shm_send(conn->fd, &re, &i->eventfd, 1);
	if (!ret && intr_has_rings(i))
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
	int ret;

	do {
		ret = intr_try_start(i);
	} while (ret == -EEXIST && sci_forked_lately(&i->shm->svc));
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
	struct epoll_event ev[RING_EVENTS];
	int n = sci_epoll_cancelable(i->epfd, ev, RING_EVENTS, ms), ret;

	if (n <= 0)
		return n && errno != EINTR ? -errno : 0;
	pthread_mutex_lock(&i->shm->svc.lock);
	ret = atomic_load(&i->cancelled) ? -ECANCELED :
	      ring_take_all(i, ev, n);
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
	if (m->len > room)
		return -EMSGSIZE;
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
		ret = intr_has_rings(i) ? intr_wait_rings(i, ms) :
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

/* ---- remote interrupts ---- */

/* Check that the peer's descriptor is an eventfd, and that a trigger cannot block. */
static int eventfd_check(int fd)
{
	static const char want[] = "anon_inode:[eventfd]";
	char path[32], is[sizeof(want)];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (readlink(path, is, sizeof(is)) != sizeof(want) - 1 ||
	    memcmp(is, want, sizeof(want) - 1))
		return -EPROTO;
	return fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) ? -errno : 0;
}

static void rintr_input(void *obj);

static void rintr_name(struct sci_rintr *i, char *name)
{
	shm_name(i->shm, name, i->data ? SHM_DATA_INTR : SHM_INTR, i->node,
		 i->number);
}

/*
 * Connect to another owner of a shared number, after the owner that answered the connect has
 * ended. Context: the service thread. rintr_input() receives the answer.
 */
static bool shm_intr_rejoin(struct sci_rintr *i)
{
	const struct shm_msg msg = { .type = SHM_CONNECT,
				     .node = i->shm->node };
	struct shm *shm = i->shm;
	char name[SHM_NAME_MAX];
	int sock;

	if (!i->shared || i->rejoining == SHM_REJOINS)
		return false;
	rintr_name(i, name);
	if (shm_dial_locked(shm, name, &sock))
		return false;
	if (!shm_trusts(shm, sock) || shm_send(sock, &msg, NULL, 0) ||
	    sci_watch(&shm->svc, sock, EPOLLIN, rintr_input, i)) {
		sci_fd_close(&shm->svc, sock);
		return false;
	}
	i->conn = sock;
	i->rejoining++;
	return true;
}

static void rintr_input(void *obj)
{
	struct sci_rintr *i = obj;
	struct shm *shm = i->shm;
	struct shm_msg msg;
	int fd = -1, n_fds = 1, ret;

	ret = shm_recv(shm, i->conn, &msg, &fd, &n_fds);
	if (ret == -EAGAIN)
		return;
	if (!ret && i->rejoining && msg.type == SHM_REPLY && !msg.status &&
	    n_fds == 1 && !eventfd_check(fd)) {
		/* Replace the eventfd in one step. It changes only if all owners are new. */
		dup3(fd, i->eventfd, O_CLOEXEC);
		sci_fd_close(&shm->svc, fd);
		i->rejoining = 0;
		return;
	}
	if (n_fds == 1)
		sci_fd_close(&shm->svc, fd);
	/* Any other message ends the connection: owners send only SHM_BYE. */
	sci_unwatch(&shm->svc, i->conn);
	if (i->shared) {
		sci_fd_close(&shm->svc, i->conn);
		i->conn = -1;
	}
	if (!shm_intr_rejoin(i))
		atomic_store(&i->gone, true);
}

int shm_rintr_connect(struct sci_fabric *f, const struct sci_rintr_param *p,
		      struct sci_rintr **out)
{
	struct shm *shm = container_of(f, struct shm, base);
	struct shm_msg msg = { .type = SHM_CONNECT };
	char name[SHM_NAME_MAX];
	int n_fds = 1, ret;
	struct sci_rintr *i;
	bool messages;

	if (sci_link_down(&shm->link) && p->node != shm->node)
		return -ENETDOWN;
	i = calloc(1, sizeof(*i));
	if (!i)
		return -ENOMEM;
	i->shm = shm;
	i->node = p->node;
	i->number = p->number;
	i->data = p->data;
	i->conn = -1;
	i->eventfd = -1;
	*out = i;
	rintr_name(i, name);
	ret = shm_call(shm, name, &msg, &i->eventfd, &n_fds,
		       shm_deadline(p->timeout), p->owner, &i->conn);
	messages = p->data || msg.flags & SHM_F_RINGS;
	if (!ret)
		ret = n_fds != !messages ? -EPROTO :
		      messages ? 0 : eventfd_check(i->eventfd);
	if (!ret) {
		i->shared = !messages && msg.flags & SHM_F_SHARED;
		pthread_mutex_lock(&shm->svc.lock);
		ret = sci_watch(&shm->svc, i->conn, EPOLLIN, rintr_input, i);
		pthread_mutex_unlock(&shm->svc.lock);
	}
	if (ret) {
		*out = NULL;
		shm_rintr_disconnect(i);
		return ret == -ENOENT && !shm_node_exists(shm, p->node) ?
		       -EHOSTUNREACH : ret;
	}
	return 0;
}

static int intr_send_data(struct sci_rintr *i, const void *data, size_t len)
{
	struct shm_msg head = { .magic = SHM_MAGIC, .type = SHM_DATA,
				.node = i->shm->node };
	struct iovec iov[2] = {
		{ &head, sizeof(head) },
		{ (void *)(uintptr_t)data, len },
	};
	struct msghdr mh = { .msg_iov = iov, .msg_iovlen = 2 };

	if (len > SCI_DATA_INTR_MAX)
		return -EMSGSIZE;
	if (atomic_load(&i->gone))
		return -ENOTCONN;
	for (;;) {
		if (sendmsg(i->conn, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
			return 0;
		if (errno == EAGAIN)
			return -ENOBUFS;
		if (errno != EINTR)
			return errno == EPIPE || errno == ECONNRESET ?
			       -ENOTCONN : -errno;
	}
}

int shm_trigger_send(struct shm *shm, int sock)
{
	const struct shm_msg msg = { .type = SHM_TRIGGER, .node = shm->node };
	int ret = shm_send(sock, &msg, NULL, 0);

	/* EAGAIN: the socket is full of triggers, and the owner will receive one of them */
	return ret == -EAGAIN ? 0 : ret == -EPIPE ? -ENOTCONN : ret;
}

int shm_rintr_trigger(struct sci_rintr *i, const void *data, size_t len)
{
	uint64_t one = 1;

	if (sci_link_down(&i->shm->link) && i->node != i->shm->node)
		return -ENETDOWN;
	if (i->data)
		return intr_send_data(i, data, len);
	if (atomic_load(&i->gone))
		return -ENOTCONN;
	if (i->eventfd < 0)
		return shm_trigger_send(i->shm, i->conn);
	while (write(i->eventfd, &one, sizeof(one)) < 0) {
		/* EAGAIN: 2^64 - 2 triggers are latched, and one more makes no difference */
		if (errno != EINTR)
			return errno == EAGAIN ? 0 : -errno;
	}
	return 0;
}

void shm_rintr_disconnect(struct sci_rintr *i)
{
	const struct shm_msg bye = { .type = SHM_BYE };
	struct shm *shm = i->shm;

	pthread_mutex_lock(&shm->svc.lock);
	if (i->conn >= 0)
		shm_send(i->conn, &bye, NULL, 0);
	sci_fd_close(&shm->svc, i->conn);
	sci_fd_close(&shm->svc, i->eventfd);
	pthread_mutex_unlock(&shm->svc.lock);
	free(i);
}
