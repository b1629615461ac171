// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * If the file system has O_TMPFILE, a file has no name until it is complete, so that even SIGKILL
 * leaves no file. Otherwise, and to replace a file, the file has a temporary name, which a signal
 * handler removes.
 */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "outfile.h"

#define TRIES	100

/* The temporary name that a signal handler removes; there is one per process. */
static struct {
	volatile sig_atomic_t dir;	/* -1: no temporary name */
	char name[40];
} temporary = { .dir = -1 };

static void temporary_remove(void)
{
	if (temporary.dir >= 0)
		unlinkat(temporary.dir, temporary.name, 0);
	temporary.dir = -1;
}

static void outfile_signal(int sig)
{
	temporary_remove();
	raise(sig);			/* SA_RESETHAND: now the signal ends the process */
}

static void signals_catch(void)
{
	static const int signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM,
				       SIGPIPE, SIGXFSZ, SIGXCPU };
	struct sigaction sa = { .sa_handler = outfile_signal,
				.sa_flags = (int)SA_RESETHAND };
	struct sigaction old;
	size_t i;

	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!sigaction(signals[i], NULL, &old) &&
		    old.sa_handler != SIG_IGN)
			sigaction(signals[i], &sa, NULL);
}

/* Call @make with new names until a name is free. */
static int temporary_make(struct outfile *o, int (*make)(struct outfile *o))
{
	unsigned int i, r;
	int ret = -EEXIST;

	signals_catch();
	for (i = 0; i < TRIES && ret == -EEXIST; i++) {
		if (getrandom(&r, sizeof(r), 0) != sizeof(r))
			return -EIO;
		snprintf(temporary.name, sizeof(temporary.name),
			 ".sci-recv.%d.%08x", (int)getpid(), r);
		temporary.dir = o->dir;
		ret = make(o);
		if (ret)
			temporary.dir = -1;
	}
	o->named = !ret;
	return ret;
}

static int outfile_create_named(struct outfile *o)
{
	o->fd = openat(o->dir, temporary.name,
		       O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return o->fd < 0 ? -errno : 0;
}

/* Give the open file, which has no name yet, a name. */
static int fd_link(struct outfile *o, const char *name)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", o->fd);
	if (!linkat(AT_FDCWD, path, o->dir, name, AT_SYMLINK_FOLLOW))
		return 0;
	if (errno == EEXIST || !linkat(o->fd, "", o->dir, name, AT_EMPTY_PATH))
		return errno == EEXIST ? -EEXIST : 0;
	return -errno;
}

static int temporary_link(struct outfile *o)
{
	return fd_link(o, temporary.name);
}

/* Refuse to replace devices, directories and links. */
static int target_check(struct outfile *o)
{
	struct stat st;

	if (fstatat(o->dir, o->name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	return o->replace && S_ISREG(st.st_mode) ? 0 : -EEXIST;
}

int outfile_open(struct outfile *o, const char *dir, const char *name,
		 bool replace)
{
	int ret;

	memset(o, 0, sizeof(*o));
	o->replace = replace;
	o->fd = STDOUT_FILENO;
	o->dir = -1;
	if (!name)
		return 0;
	o->fd = -1;
	if (strlen(name) >= sizeof(o->name))
		return -ENAMETOOLONG;
	memcpy(o->name, name, strlen(name) + 1);
	o->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (o->dir < 0)
		return -errno;
	ret = target_check(o);
	if (ret)
		return ret;
	o->fd = openat(o->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (o->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL &&
	    errno != ENOENT)
		return -errno;
	return temporary_make(o, outfile_create_named);
}

int outfile_reserve(struct outfile *o, uint64_t size)
{
	if (!o->name[0] || !size)
		return 0;
	if (size > INT64_MAX)
		return -EFBIG;
	if (fallocate(o->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size))
		return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : -errno;
	return 0;
}

int outfile_write(struct outfile *o, const void *data, size_t len)
{
	const char *p = data;
	ssize_t n;

	while (len) {
		n = write(o->fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static int outfile_give_name(struct outfile *o)
{
	int ret = target_check(o);

	if (ret)
		return ret;
	if (!o->replace && !o->named)
		return fd_link(o, o->name);
	if (!o->named) {
		ret = temporary_make(o, temporary_link);
		if (ret)
			return ret;
	}
	if (!o->replace) {
		if (!linkat(o->dir, temporary.name, o->dir, o->name, 0)) {
			temporary_remove();
			return 0;
		}
		if (errno == EEXIST)
			return -EEXIST;
		/* no hard links in this file system: rely on the earlier target_check() */
	}
	if (renameat(o->dir, temporary.name, o->dir, o->name))
		return -errno;
	temporary.dir = -1;
	return 0;
}

int outfile_commit(struct outfile *o, mode_t mode)
{
	mode_t mask;
	int ret;

	if (!o->name[0])
		return 0;
	mask = umask(0);
	umask(mask);
	if (fchmod(o->fd, mode & 0777 & ~mask))
		return -errno;
	ret = outfile_give_name(o);
	/* network file systems report errors late: remove a file whose close() fails */
	if (!ret && close(o->fd)) {
		ret = -errno;
		unlinkat(o->dir, o->name, 0);
	}
	if (!ret)
		o->fd = -1;
	return ret;
}

void outfile_close(struct outfile *o)
{
	temporary_remove();
	if (o->name[0] && o->fd >= 0)
		close(o->fd);
	if (o->dir >= 0)
		close(o->dir);
	o->fd = -1;
	o->dir = -1;
}
