// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/base/host.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

/* A mapping, as a line of /proc/self/maps describes it. */
struct mapping {
	uintptr_t start, end;
	unsigned long inode;
	char perms[5];
	char name[64];
};

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
	FILE *f = sci_open_kernel_file("/proc/self/maps");
	char line[PATH_MAX + 128];
	uintptr_t want = addr;
	struct mapping m;

	if (!f)
		return -errno;
	if (len > UINTPTR_MAX - addr) {
		fclose(f);
		return -EFAULT;
	}
	while (want < addr + len && fgets(line, sizeof(line), f)) {
		m.name[0] = '\0';
		if (sscanf(line, "%lx-%lx %4s %*x %*s %lu %63s", &m.start,
			   &m.end, m.perms, &m.inode, m.name) < 4 ||
		    m.end <= want)
			continue;
		if (m.start > want || !good(&m))
			break;
		want = m.end;
	}
	fclose(f);
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
