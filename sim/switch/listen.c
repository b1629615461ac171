// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/switch/answer.h"
#include "sim/switch/fabric.h"
#include "sim/switch/listen.h"

#define BACKLOG		128

bool socket_address(struct sockaddr_un *sa, const char *path)
{
	size_t n = strlen(path);

	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (!n || n >= sizeof(sa->sun_path))
		return false;
	memcpy(sa->sun_path, path, n);
	return true;
}

void listener_init(struct listener *l)
{
	l->watch.fd = l->lock = -1;
}

/* Return whether the file @path is still the file that @fd has open. */
static bool file_is_same(int fd, const char *path)
{
	struct stat a, b;

	return !fstat(fd, &a) && !lstat(path, &b) && a.st_ino == b.st_ino &&
	       a.st_dev == b.st_dev;
}

/* Take the lock. Repeat this if another daemon has removed the file. Return 0 or -errno. */
static int lock_take(struct listener *l)
{
	for (;;) {
		l->lock = open(l->lock_path,
			       O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (l->lock < 0)
			return -errno;
		if (flock(l->lock, LOCK_EX | LOCK_NB)) {
			int error = errno;

			close(l->lock);
			l->lock = -1;
			return -error;
		}
		if (file_is_same(l->lock, l->lock_path))
			return 0;
		close(l->lock);
	}
}

/* Return whether a process without the lock listens on the socket. */
static bool listener_is_alive(const struct listener *l, int type)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool alive;

	if (fd < 0)
		return true;
	alive = !connect(fd, (const struct sockaddr *)&l->address,
			 sizeof(l->address)) ||
		(errno != ECONNREFUSED && errno != ENOENT);
	close(fd);
	return alive;
}

static bool socket_remove_dead(struct listener *l, int type, struct answer *a)
{
	const char *path = l->address.sun_path;
	struct stat st;

	if (lstat(path, &st))
		return true;
	if (!S_ISSOCK(st.st_mode))
		return answer_fail(a, "%s: there is something else", path);
	if (listener_is_alive(l, type))
		return answer_fail(a, "%s: another program listens there",
				   path);
	if (unlink(path))
		return answer_fail(a, "%s: %s", path, strerror(errno));
	return true;
}

static void listener_ready(struct watch *w, uint32_t events)
{
	struct listener *l = container_of(w, struct listener, watch);
	int fd;

	(void)events;
	fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		l->accepted(l->fabric, fd);
	} else if (errno == EMFILE || errno == ENFILE) {
		fabric_warn("no more descriptors: new ones must wait");
		l->paused = true;
		loop_change(&l->fabric->loop, w, 0);
	}
}

static bool listener_bind(struct listener *l, int type, struct answer *a)
{
	const char *path = l->address.sun_path;
	mode_t mask;
	int ret;

	l->watch.fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->watch.fd < 0)
		return answer_fail(a, "socket: %s", strerror(errno));
	mask = umask(0177);
	ret = bind(l->watch.fd, (const struct sockaddr *)&l->address,
		   sizeof(l->address));
	umask(mask);
	l->bound = !ret;
	if (ret || listen(l->watch.fd, BACKLOG))
		return answer_fail(a, "%s: %s", path, strerror(errno));
	return true;
}

bool listener_open(struct fabric *f, struct listener *l, const char *path,
		   int type, void (*accepted)(struct fabric *f, int fd),
		   struct answer *a)
{
	int ret;

	if (!socket_address(&l->address, path))
		return answer_fail(a, "%s: not a name for a socket", path);
	snprintf(l->lock_path, sizeof(l->lock_path), "%s.lock", path);
	ret = lock_take(l);
	if (ret == -EWOULDBLOCK)
		return answer_fail(a, "%s: another daemon has it", path);
	if (ret)
		return answer_fail(a, "%s: %s", l->lock_path, strerror(-ret));
	if (!socket_remove_dead(l, type, a) || !listener_bind(l, type, a))
		return false;
	l->fabric = f;
	l->accepted = accepted;
	l->watch.ready = listener_ready;
	ret = loop_watch(&f->loop, &l->watch, EPOLLIN);
	return !ret || answer_fail(a, "%s: %s", path, strerror(-ret));
}

void listener_resume(struct loop *loop, struct listener *l)
{
	if (!l->paused)
		return;
	l->paused = false;
	loop_change(loop, &l->watch, EPOLLIN);
}

void listener_close(struct listener *l)
{
	if (l->bound)
		unlink(l->address.sun_path);
	if (l->watch.fd >= 0)
		close(l->watch.fd);
	if (l->lock < 0)
		return;
	unlink(l->lock_path);
	close(l->lock);
}
