// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Names: sockets in the abstract namespace, or files in SCI_RUNDIR. */

#include "libsci/fabric/shm/shm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG		4096		/* the kernel lowers it to somaxconn */
#define DIAL_SLICE_MS	100
#define LOCK_TRIES	100		/* a millisecond apart */
#define TEMPORARY_MAX_S	60		/* a file with a temporary name gets its name sooner */
#define SPAWN_SETTLES_MS 1000
#define LISTENING	0x10000u	/* Flags in /proc/net/unix */

void shm_name(struct shm *shm, char *name, enum shm_kind kind,
	      unsigned int node, uint32_t id)
{
	if (kind == SHM_GROUP || kind == SHM_GROUP_OPEN)
		snprintf(name, SHM_NAME_MAX, "sci.%s.%c.%08x", shm->cluster,
			 kind, id);
	else
		snprintf(name, SHM_NAME_MAX, "sci.%s.%c.%u.%08x", shm->cluster,
			 kind, node, id);
}

static socklen_t name_address(struct shm *shm, const char *name,
			      struct sockaddr_un *sa)
{
	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	if (shm->rundir >= 0) {
		snprintf(sa->sun_path, sizeof(sa->sun_path),
			 "/proc/self/fd/%d/%s", shm->rundir, name);
		return sizeof(*sa);
	}
	memcpy(sa->sun_path + 1, name, strlen(name));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   strlen(name));
}

/* Open a socket whose peers cannot send descriptors. Return -1 after an error. */
static int name_socket_open(int type)
{
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		sci_fd_pass_rights(fd, false);
	return fd;
}

/* Open a socket and add it to the table. Context: svc.lock is held. */
static int name_socket_new(struct shm *shm, int type, int *fd)
{
	do {
		*fd = name_socket_open(type);
	} while (*fd < 0 && errno == EMFILE && !sci_raise_fd_limit());
	if (*fd < 0)
		return -errno;
	return sci_fd_track(&shm->svc, *fd);
}

/* Return true if no process listens at the file of a name: a file stays after its owner's death. */
static bool file_is_stale(struct shm *shm, const char *name)
{
	static const int types[] = { SOCK_SEQPACKET, SOCK_DGRAM };
	struct sockaddr_un sa;
	socklen_t len = name_address(shm, name, &sa);
	unsigned int i;
	int fd, ret;

	for (i = 0; i < 2; i++) {
		fd = name_socket_open(types[i] | SOCK_NONBLOCK);
		if (fd < 0)
			return false;
		ret = connect(fd, (struct sockaddr *)&sa, len) ? errno : 0;
		close(fd);
		if (ret != EPROTOTYPE)
			return ret == ECONNREFUSED;
	}
	return false;
}

/*
 * Lock the directory. The lock belongs to the open file, so each lock needs a file of its own to
 * exclude other threads. Return: a descriptor for rundir_unlock(); -1: another owner holds the lock
 * for long, or there is no descriptor.
 */
static int rundir_lock(struct shm *shm)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	int fd = openat(shm->rundir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned int tries = LOCK_TRIES;

	while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
		if (!tries--) {
			close(fd);
			return -1;
		}
		nanosleep(&ms, NULL);
	}
	return fd;
}

static void rundir_unlock(int fd)
{
	flock(fd, LOCK_UN);	/* the child of a fork() may have a copy of the descriptor */
	close(fd);
}

/*
 * Remove a stale file. Under the lock, nobody else can replace the file by its own between the
 * test and the removal. Without the lock, the file stays.
 */
static void file_unlink_stale(struct shm *shm, const char *name)
{
	int fd = rundir_lock(shm);

	if (fd < 0)
		return;
	if (file_is_stale(shm, name))
		unlinkat(shm->rundir, name, 0);
	rundir_unlock(fd);
}

/*
 * Set the mode of a socket file: a connect needs the right to write to the file. The owner checks
 * the rights to the segment after the connect.
 */
static int file_open_to_peers(struct shm *shm, const char *name)
{
	unsigned int mode = shm->mode & 0444;

	return fchmodat(shm->rundir, name, mode | mode >> 1, 0) ? -errno : 0;
}

static int socket_bind_and_listen(struct shm *shm, const char *name, int fd, int type)
{
	struct sockaddr_un sa;
	socklen_t len = name_address(shm, name, &sa);

	if (bind(fd, (struct sockaddr *)&sa, len))
		return errno == EADDRINUSE ? -EEXIST : -errno;
	return type == SOCK_SEQPACKET && listen(fd, BACKLOG) ? -errno : 0;
}

static int name_publish(struct shm *shm, const char *temp, const char *name)
{
	if (!renameat2(shm->rundir, temp, shm->rundir, name, RENAME_NOREPLACE))
		return 0;
	/*
	 * If the file system cannot rename without replacing, use link(), which does not
	 * replace either.
	 */
	if ((errno == EINVAL || errno == ENOSYS) &&
	    !linkat(shm->rundir, temp, shm->rundir, name, 0)) {
		unlinkat(shm->rundir, temp, 0);
		return 0;
	}
	return -errno;
}

static void temporary_prefix(struct shm *shm, char *prefix)
{
	snprintf(prefix, SHM_NAME_MAX, "sci.%s.t.", shm->cluster);
}

/*
 * Bind a socket file. A file whose socket does not listen yet looks stale: give the file its
 * name after listen().
 */
static int file_bind(struct shm *shm, const char *name, int fd, int type)
{
	char temp[SHM_NAME_MAX];
	uint64_t unique;
	int ret;

	if (getrandom(&unique, sizeof(unique), 0) != sizeof(unique))
		return -EIO;
	temporary_prefix(shm, temp);
	snprintf(temp + strlen(temp), sizeof(temp) - strlen(temp), "%016llx",
		 (unsigned long long)unique);
	ret = socket_bind_and_listen(shm, temp, fd, type);
	if (ret)
		return ret;
	ret = file_open_to_peers(shm, temp);
	ret = ret ? ret : name_publish(shm, temp, name);
	if (ret == -EEXIST) {
		file_unlink_stale(shm, name);
		ret = name_publish(shm, temp, name);
	}
	if (ret)
		unlinkat(shm->rundir, temp, 0);
	return ret;
}

/**
 * shm_bind() - take a name for this process
 *
 * Context: shm->svc.lock is held.
 * Return: 0; -EEXIST: another process has the name.
 */
int shm_bind(struct shm *shm, const char *name, int type, int *fd)
{
	int sock, ret;

	ret = name_socket_new(shm, type | SOCK_NONBLOCK, &sock);
	if (ret)
		return ret;
	ret = shm->rundir >= 0 ? file_bind(shm, name, sock, type) :
				 socket_bind_and_listen(shm, name, sock, type);
	if (ret) {
		sci_fd_close(&shm->svc, sock);
		return ret;
	}
	*fd = sock;
	return 0;
}

/* Connect to the owner of an abstract name without waiting; -1, and errno, if there is none. */
static int owner_call(struct shm *shm, const char *name)
{
	struct sockaddr_un sa;
	socklen_t len = name_address(shm, name, &sa);
	int fd = name_socket_open(SOCK_SEQPACKET | SOCK_NONBLOCK);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&sa, len)) {
		int error = errno;

		close(fd);
		errno = error;
		fd = -1;
	}
	return fd;
}

static bool socket_listens_at(int fd, const struct sockaddr_un *sa, socklen_t len)
{
	socklen_t size = sizeof(int), at_len = sizeof(struct sockaddr_un);
	struct sockaddr_un at = { 0 };
	int listens = 0;

	return !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) && listens &&
	       !getsockname(fd, (struct sockaddr *)&at, &at_len) && at_len == len &&
	       !memcmp(&at, sa, len);
}

/* Return true if this process itself listens at a name, in any fabric. */
static bool name_listens_here(struct shm *shm, const char *name)
{
	struct sockaddr_un sa;
	socklen_t len = name_address(shm, name, &sa);
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;
	bool found = !dir;

	while (!found && (e = readdir(dir)))
		found = socket_listens_at(atoi(e->d_name), &sa, len);
	if (dir)
		closedir(dir);
	return found;
}

/* Return true if a child of this process holds a name that this process has released. */
static bool name_is_in_child(struct shm *shm, const char *name)
{
	bool held;
	int fd;

	if (shm->rundir >= 0)
		return false;
	pthread_mutex_lock(&shm->svc.lock);
	fd = owner_call(shm, name);
	/* the child has released the name since the bind */
	held = fd < 0 ? errno == ECONNREFUSED :
			shm_peer(fd) == getpid() && !name_listens_here(shm, name);
	if (fd >= 0)
		close(fd);
	pthread_mutex_unlock(&shm->svc.lock);
	return held;
}

/**
 * shm_name_settles() - test whether a name that could not be bound will soon be free
 * @begin: the time of the first attempt, in sci_now_ms() time
 *
 * After fork() a child closes this process's sockets. posix_spawn(), system() and popen() run no fork
 * handlers: their child has the sockets until it starts the program. The call pauses for 1 ms
 * before it returns true.
 *
 * Context: svc.lock is not held.
 */
bool shm_name_settles(struct shm *shm, const char *name, uint64_t begin)
{
	const struct timespec ms = { .tv_nsec = 1000000 };

	if (sci_forked_lately(&shm->svc))
		return true;
	if (sci_now_ms() - begin >= SPAWN_SETTLES_MS || !name_is_in_child(shm, name))
		return false;
	nanosleep(&ms, NULL);
	return true;
}

/**
 * shm_name_taken() - report that a name is taken
 *
 * Any user of the machine may bind an abstract name. If an untrusted user has this name, print
 * the user and a remedy, once: the program gets only -EEXIST. Context: svc.lock is held.
 */
void shm_name_taken(struct shm *shm, const char *name)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int fd;

	if (shm->told_of_stranger || shm->rundir >= 0)
		return;
	fd = owner_call(shm, name);
	if (fd < 0)
		return;
	if (!shm_trusts(shm, fd) &&
	    !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len)) {
		shm->told_of_stranger = true;
		fprintf(stderr, "libsci: user %u has the name %s: set SCI_RUNDIR to a directory that only the cluster's users can write to, or take another cluster\n",
			(unsigned int)cred.uid, name);
	}
	close(fd);
}

/**
 * shm_unbind() - release a name
 * @shared: other processes may hold the same socket
 *
 * Context: svc.lock is held.
 */
void shm_unbind(struct shm *shm, const char *name, bool shared, int *fd)
{
	if (*fd < 0)
		return;
	/* while this process listens no other process removes the file */
	if (shm->rundir >= 0 && !shared)
		unlinkat(shm->rundir, name, 0);
	sci_fd_close(&shm->svc, *fd);
	*fd = -1;
	if (shm->rundir >= 0 && shared)
		file_unlink_stale(shm, name);
}

/* Limit how long connect() blocks before the caller tests whether it was cancelled. */
static int socket_set_send_timeout(int sock, uint64_t deadline)
{
	uint64_t now = sci_now_ms();
	uint64_t left = deadline > now ? deadline - now : 1;
	struct timeval tv = { .tv_usec = DIAL_SLICE_MS * 1000 };

	if (left < DIAL_SLICE_MS)
		tv.tv_usec = (suseconds_t)left * 1000;
	return setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) ?
	       -errno : 0;
}

/* Connect to an address. The function blocks while the owner's backlog is full. */
static int socket_connect_until(const struct sockaddr_un *sa, socklen_t len,
				struct shm_pending *call)
{
	for (;;) {
		int ret = socket_set_send_timeout(call->sock, call->deadline);

		if (ret)
			return ret;
		if (!connect(call->sock, (const struct sockaddr *)sa, len))
			return 0;
		if (errno == ECONNREFUSED || errno == ENOENT)
			return -ENOENT;
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
		if (atomic_load(&call->cancelled))
			return -ECANCELED;
		if (sci_now_ms() >= call->deadline)
			return -ETIMEDOUT;
	}
}

/**
 * shm_dial() - connect to a name
 * @call: has the deadline; receives the socket, in the table
 *
 * Context: svc.lock is not held. Return: 0; -ENOENT: no process has the name; -ETIMEDOUT;
 * -ECANCELED.
 */
int shm_dial(struct shm *shm, const char *name, struct shm_pending *call)
{
	struct sockaddr_un sa;
	socklen_t len = name_address(shm, name, &sa);
	int sock = -1, ret;

	pthread_mutex_lock(&shm->svc.lock);
	ret = name_socket_new(shm, SOCK_SEQPACKET, &sock);
	if (!ret)
		call->sock = sock;
	pthread_mutex_unlock(&shm->svc.lock);
	if (ret)
		return ret;
	ret = socket_connect_until(&sa, len, call);
	if (!ret && fcntl(sock, F_SETFL, O_NONBLOCK))
		ret = -errno;
	if (!ret)
		return 0;
	pthread_mutex_lock(&shm->svc.lock);
	sci_fd_close(&shm->svc, sock);
	call->sock = -1;
	pthread_mutex_unlock(&shm->svc.lock);
	return ret;
}

/* Do what shm_dial() does, without waiting and with the lock held, for the service thread. */
int shm_dial_locked(struct shm *shm, const char *name, int *fd)
{
	struct sockaddr_un sa;
	socklen_t len = name_address(shm, name, &sa);
	int sock, ret;

	ret = name_socket_new(shm, SOCK_SEQPACKET | SOCK_NONBLOCK, &sock);
	if (ret)
		return ret;
	if (connect(sock, (struct sockaddr *)&sa, len)) {
		ret = -errno;
		sci_fd_close(&shm->svc, sock);
		return ret;
	}
	*fd = sock;
	return 0;
}

/* ---- lists ---- */

static int names_list_abstract(const char *prefix,
			       int (*fn)(void *arg, const char *name), void *arg)
{
	FILE *f = fopen("/proc/net/unix", "re");
	size_t size = 0, len = strlen(prefix);
	unsigned int flags, type;
	char *line = NULL;
	ssize_t n;
	int ret = 0;

	if (!f)
		return -errno;
	while (!ret && (n = getline(&line, &size, f)) > 0) {
		char *at = strchr(line, '@');

		if (!at || strncmp(at + 1, prefix, len))
			continue;
		if (sscanf(line, "%*x: %*x %*x %x %x", &flags, &type) != 2)
			continue;
		/* accepted connections have the same name as the listening socket */
		if (type != SOCK_DGRAM && !(flags & LISTENING))
			continue;
		line[n - 1] = '\0';
		ret = fn(arg, at + 1);
	}
	free(line);
	fclose(f);
	return ret;
}

/* Remove a file with a temporary name if its process has died in file_bind(). */
static void file_remove_temporary(struct shm *shm, const char *name)
{
	struct stat st;

	if (fstatat(shm->rundir, name, &st, AT_SYMLINK_NOFOLLOW) ||
	    time(NULL) - st.st_mtime < TEMPORARY_MAX_S)
		return;
	if (file_is_stale(shm, name))
		file_unlink_stale(shm, name);
}

static int names_list_files(struct shm *shm, const char *prefix,
			    int (*fn)(void *arg, const char *name), void *arg)
{
	char temp[SHM_NAME_MAX];
	int fd = openat(shm->rundir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t len = strlen(prefix);
	const struct dirent *e;
	int ret = 0;
	DIR *dir;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		ret = -errno;
		close(fd);
		return ret;
	}
	temporary_prefix(shm, temp);
	while (!ret && (e = readdir(dir))) {
		if (!strncmp(e->d_name, temp, strlen(temp)))
			file_remove_temporary(shm, e->d_name);
		if (strncmp(e->d_name, prefix, len))
			continue;
		if (file_is_stale(shm, e->d_name))
			file_unlink_stale(shm, e->d_name);
		else
			ret = fn(arg, e->d_name);
	}
	closedir(dir);
	return ret;
}

/**
 * shm_name_list() - call @fn for every name of a kind in this cluster
 *
 * Context: svc.lock is not held. Return: 0, or the first other result of @fn, which ends the walk.
 */
int shm_name_list(struct shm *shm, enum shm_kind kind,
		  int (*fn)(void *arg, const char *name), void *arg)
{
	char prefix[SHM_NAME_MAX];

	pthread_mutex_lock(&shm->svc.lock);
	sci_fd_room(3);		/* the directory, its lock, and a socket */
	pthread_mutex_unlock(&shm->svc.lock);
	snprintf(prefix, sizeof(prefix), "sci.%s.%c.", shm->cluster, kind);
	return shm->rundir >= 0 ? names_list_files(shm, prefix, fn, arg) :
				  names_list_abstract(prefix, fn, arg);
}
