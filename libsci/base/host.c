// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/base/host.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

bool sci_cpu_yield(void)
{
	static _Thread_local long seen;
	struct rusage usage;
	bool taken;

	sched_yield();
	getrusage(RUSAGE_THREAD, &usage);
	taken = usage.ru_nivcsw != seen;
	seen = usage.ru_nivcsw;
	return taken;
}

int sci_raise_fd_limit(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) || rl.rlim_cur >= rl.rlim_max)
		return -EMFILE;
	rl.rlim_cur = rl.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &rl) ? -EMFILE : 0;
}

void sci_fd_room(unsigned int n)
{
	int fds[SCI_FD_ROOM_MAX];
	unsigned int i;

	for (i = 0; i < n && i < SCI_FD_ROOM_MAX; i++) {
		fds[i] = eventfd(0, EFD_CLOEXEC);
		if (fds[i] < 0) {
			if (errno == EMFILE)
				sci_raise_fd_limit();
			break;
		}
	}
	while (i > 0)
		close(fds[--i]);
}

/* ---- environment ---- */

int sci_env_bad(const char *var, const char *value, const char *want)
{
	fprintf(stderr, "libsci: %s=%s: %s\n", var, value, want);
	return -EINVAL;
}

int sci_env_number(const char *var, unsigned int *value, int base,
		   unsigned int min, unsigned int max, const char *want)
{
	const char *s = getenv(var);
	unsigned long v;
	char *end;

	if (!s || !*s)
		return 0;
	errno = 0;
	v = strtoul(s, &end, base);
	if (!isdigit((unsigned char)*s) || *end || errno || v < min || v > max)
		return sci_env_bad(var, s, want);
	*value = (unsigned int)v;
	return 0;
}

/* ---- memory ---- */

size_t sci_page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

FILE *sci_open_kernel_file(const char *path)
{
	FILE *f = fopen(path, "re");

	if (!f && errno == EMFILE && !sci_raise_fd_limit())
		f = fopen(path, "re");
	return f;
}

bool sci_processes_are_readable(void)
{
	FILE *f = sci_open_kernel_file("/proc/sys/kernel/yama/ptrace_scope");
	char scope = '0', copy;
	struct iovec to = { &copy, 1 }, from = { &scope, 1 };

	if (f) {
		if (fread(&scope, 1, 1, f) != 1)
			scope = '3';
		fclose(f);
	}
	if (scope != '0' && (scope == '3' || geteuid()))
		return false;
	/* a filter of system calls may refuse the call */
	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1;
}

/* A mapping, as a line of /proc/self/maps describes it. */
struct mapping {
	uintptr_t start, end;
	unsigned long offset;
	unsigned long inode;
	char perms[5];
	char name[64];
};

/* /proc/self/maps, read without an allocator: the child of a fork() reads it, too. */
struct maps {
	int fd;
	size_t used, len;
	char text[PATH_MAX + 256];	/* room for a line of any length */
};

static int maps_open(struct maps *s)
{
	s->used = s->len = 0;
	s->fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (s->fd < 0 && errno == EMFILE && !sci_raise_fd_limit())
		s->fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	return s->fd < 0 ? -errno : 0;
}

/* Return the next line without its newline, or NULL. */
static const char *maps_line(struct maps *s)
{
	char *line, *end;
	ssize_t n = 1;

	while (!(end = memchr(s->text + s->used, '\n', s->len - s->used)) && n > 0) {
		s->len -= s->used;
		memmove(s->text, s->text + s->used, s->len);
		s->used = 0;
		n = read(s->fd, s->text + s->len, sizeof(s->text) - s->len);
		s->len += n > 0 ? (size_t)n : 0;
	}
	if (!end)
		return NULL;
	line = s->text + s->used;
	s->used = (size_t)(end + 1 - s->text);
	*end = '\0';
	return line;
}

/* Set @m to the first mapping in the rest of the file that ends behind @addr. */
static bool maps_next(struct maps *s, uintptr_t addr, struct mapping *m)
{
	const char *line;

	while ((line = maps_line(s))) {
		m->name[0] = '\0';
		if (sscanf(line, "%lx-%lx %4s %lx %*s %lu %63s", &m->start, &m->end,
			   m->perms, &m->offset, &m->inode, m->name) >= 5 && m->end > addr)
			return true;
	}
	return false;
}

static bool mapping_is_anonymous(const struct mapping *m)
{
	return !strcmp(m->perms, "rw-p") && !m->inode &&
	       strncmp(m->name, "[stack", 6) != 0;
}

static bool mapping_is_writable(const struct mapping *m)
{
	return !strncmp(m->perms, "rw", 2);
}

static int maps_check(uintptr_t addr, size_t len,
		      bool (*good)(const struct mapping *m))
{
	uintptr_t want = addr;
	struct mapping m;
	struct maps s;
	int ret;

	if (len > UINTPTR_MAX - addr)
		return -EFAULT;
	ret = maps_open(&s);
	if (ret)
		return ret;
	while (want < addr + len && maps_next(&s, want, &m) && m.start <= want && good(&m))
		want = m.end;
	close(s.fd);
	return want < addr + len ? -EFAULT : 0;
}

int sci_check_anonymous(uintptr_t addr, size_t len)
{
	return maps_check(addr, len, mapping_is_anonymous);
}

int sci_check_mapped(uintptr_t addr, size_t len)
{
	return maps_check(addr, len, mapping_is_writable);
}

unsigned long sci_mapping_inode(const void *addr)
{
	struct mapping m = { .inode = 0 };
	struct maps s;
	bool found;

	if (maps_open(&s))
		return 0;
	found = maps_next(&s, (uintptr_t)addr, &m) && m.start <= (uintptr_t)addr;
	close(s.fd);
	return found ? m.inode : 0;
}

int sci_check_file(const void *addr, size_t len, unsigned long inode, bool anonymous)
{
	uintptr_t begin = (uintptr_t)addr, want = begin;
	struct mapping m;
	struct maps s;
	int ret = maps_open(&s);

	if (ret)
		return ret;
	while (want < begin + len && maps_next(&s, want, &m) && m.start <= want &&
	       ((m.inode == inode && m.offset + (want - m.start) == want - begin) ||
		(anonymous && mapping_is_anonymous(&m))))
		want = m.end;
	close(s.fd);
	return want < begin + len ? -EFAULT : 0;
}

int sci_each_mapping(void *addr, size_t len, unsigned long inode,
		     void (*fn)(void *start, size_t len))
{
	uintptr_t begin = (uintptr_t)addr, end = begin + len;
	struct mapping m;
	struct maps s;
	int ret = maps_open(&s);

	if (ret)
		return ret;
	while (maps_next(&s, begin, &m) && m.start < end) {
		size_t at = m.start - begin;

		/* a mapping that begins before @addr is another one */
		if (m.start >= begin && m.end <= end && m.inode == inode && m.offset == at)
			fn((void *)m.start, m.end - m.start);
	}
	close(s.fd);
	return 0;
}

/* ---- a barrier in other processes ---- */

static int membarrier_call(int cmd)
{
	return syscall(SYS_membarrier, cmd, 0, 0) ? -errno : 0;
}

int sci_wake_init(bool *takes_part)
{
	unsigned int wanted = 1;
	int ret = sci_env_number("SCI_MEMBARRIER", &wanted, 10, 0, 1,
				 "want 0 or 1");

	*takes_part = !ret && wanted &&
		      !membarrier_call(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
	return ret;
}

int sci_wake_barrier(void)
{
	return membarrier_call(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}
