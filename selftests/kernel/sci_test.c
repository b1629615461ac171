// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SELFTESTS_KERNEL_SCI_TEST_C
#include "sci_test.h"

struct adapter {
	unsigned int index, node;
};

static struct adapter list[ADAPTERS_MAX];
static unsigned int nlist;

size_t page_size(void)
{
	static size_t size;

	if (!size)
		size = (size_t)sysconf(_SC_PAGESIZE);
	return size;
}

void may_override(bool may)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct caps[2];

	OK(SYS(syscall(SYS_capget, &head, caps)));
	if (may)
		caps[0].effective |= 1u << CAP_DAC_OVERRIDE;
	else
		caps[0].effective &= ~(1u << CAP_DAC_OVERRIDE);
	OK(SYS(syscall(SYS_capset, &head, caps)));
}

/* ---- ioctls ---- */

int xioctl(int fd, unsigned long cmd, void *arg)
{
	return SYS(ioctl(fd, cmd, arg));
}

int adapter_query(int fd, struct sci_ioc_query *q)
{
	*q = (struct sci_ioc_query){ .size = sizeof(*q) };
	return xioctl(fd, SCI_IOC_QUERY, q);
}

int adapter_probe(int fd, unsigned int node)
{
	struct sci_ioc_probe p = {
		.size = sizeof(p), .node = node, .timeout_ms = TEST_WAIT_MS,
	};

	return xioctl(fd, SCI_IOC_PROBE, &p);
}

int adapter_counters(int fd, struct sci_ioc_counters *c)
{
	*c = (struct sci_ioc_counters){ .size = sizeof(*c) };
	return xioctl(fd, SCI_IOC_COUNTERS, c);
}

int sci_check(int fd, struct sci_ioc_check *c)
{
	c->size = sizeof(*c);
	return xioctl(fd, SCI_IOC_CHECK, c);
}

int sci_flush(int fd)
{
	struct sci_ioc_flush f = { .size = sizeof(f) };

	return xioctl(fd, SCI_IOC_FLUSH, &f);
}

int sci_cache(int adapter, volatile void *addr, size_t length, __u32 flags)
{
	struct sci_ioc_cache c = {
		.size = sizeof(c), .flags = flags, .addr = (uintptr_t)addr, .length = length,
	};

	return xioctl(adapter, SCI_IOC_CACHE, &c);
}

int segment_create_as(int adapter, __u32 id, __u64 length, __u32 mode,
		      __u32 flags)
{
	struct sci_ioc_segment_create c = {
		.size = sizeof(c), .flags = flags, .id = id, .mode = mode,
		.numa_node = -1, .length = length,
	};
	int ret = xioctl(adapter, SCI_IOC_SEGMENT_CREATE, &c);

	return ret < 0 ? ret : c.out_fd;
}

int segment_create(int adapter, __u32 id, __u64 length)
{
	return segment_create_as(adapter, id, length, SEGMENT_MODE, 0);
}

int segment_private(int adapter, __u64 length)
{
	return segment_create_as(adapter, 0, length, SEGMENT_MODE,
				 SCI_SEGMENT_PRIVATE);
}

int segment_exported(int adapter, __u32 id, __u64 length)
{
	int fd = segment_create(adapter, id, length);
	int ret;

	if (fd < 0)
		return fd;
	ret = segment_export(fd);
	if (ret < 0)
		close(fd);
	return ret < 0 ? ret : fd;
}

int segment_attach(int adapter, __u32 id)
{
	struct sci_ioc_segment_attach a = { .size = sizeof(a), .id = id };
	int ret = xioctl(adapter, SCI_IOC_SEGMENT_ATTACH, &a);

	return ret < 0 ? ret : a.out_fd;
}

int segment_register(int fd, const void *addr, __u64 length)
{
	struct sci_ioc_segment_register r = {
		.size = sizeof(r), .addr = (uintptr_t)addr, .length = length,
	};

	return xioctl(fd, SCI_IOC_SEGMENT_REGISTER, &r);
}

int segment_get_dmabuf(int fd)
{
	struct sci_ioc_segment_get_dmabuf g = { .size = sizeof(g) };
	int ret = xioctl(fd, SCI_IOC_SEGMENT_GET_DMABUF, &g);

	return ret < 0 ? ret : g.out_fd;
}

int segment_register_dmabuf(int fd, int dmabuf, __u64 offset)
{
	struct sci_ioc_segment_register_dmabuf r = {
		.size = sizeof(r), .fd = dmabuf, .offset = offset,
	};

	return xioctl(fd, SCI_IOC_SEGMENT_REGISTER_DMABUF, &r);
}

int segment_share(int fd)
{
	struct sci_ioc_segment_share s = { .size = sizeof(s) };

	return xioctl(fd, SCI_IOC_SEGMENT_SHARE, &s);
}

int segment_export(int fd)
{
	struct sci_ioc_segment_export e = { .size = sizeof(e) };

	return xioctl(fd, SCI_IOC_SEGMENT_EXPORT, &e);
}

int segment_unexport(int fd, enum sci_unexport_how how)
{
	struct sci_ioc_segment_unexport u = { .size = sizeof(u), .how = how };

	return xioctl(fd, SCI_IOC_SEGMENT_UNEXPORT, &u);
}

int segment_remove(int fd)
{
	struct sci_ioc_segment_remove r = { .size = sizeof(r) };

	return xioctl(fd, SCI_IOC_SEGMENT_REMOVE, &r);
}

int segment_info(int fd, struct sci_ioc_segment_info *info)
{
	*info = (struct sci_ioc_segment_info){ .size = sizeof(*info) };
	return xioctl(fd, SCI_IOC_SEGMENT_INFO, info);
}

int remote_connect_as(int adapter, __u32 node, __u32 id, __u32 flags,
		      __u32 timeout_ms)
{
	struct sci_ioc_connect c = {
		.size = sizeof(c), .flags = flags, .node = node, .id = id,
		.timeout_ms = timeout_ms,
	};
	int ret = xioctl(adapter, SCI_IOC_CONNECT, &c);

	return ret < 0 ? ret : c.out_fd;
}

int remote_connect(int adapter, __u32 node, __u32 id)
{
	return remote_connect_as(adapter, node, id, 0, TEST_WAIT_MS);
}

int remote_info(int fd, struct sci_ioc_remote_info *info)
{
	*info = (struct sci_ioc_remote_info){ .size = sizeof(*info) };
	return xioctl(fd, SCI_IOC_REMOTE_INFO, info);
}

int intr_create_as(int adapter, __u32 flags, __u32 *number, __u32 mode)
{
	struct sci_ioc_intr_create c = {
		.size = sizeof(c), .flags = flags, .number = *number,
		.mode = mode,
	};
	int ret = xioctl(adapter, SCI_IOC_INTR_CREATE, &c);

	if (ret < 0)
		return ret;
	*number = c.out_number;
	return c.out_fd;
}

int intr_create(int adapter, __u32 flags, __u32 *number)
{
	return intr_create_as(adapter, flags, number, SEGMENT_MODE);
}

int intr_cancel(int fd)
{
	struct sci_ioc_intr_cancel c = { .size = sizeof(c) };

	return xioctl(fd, SCI_IOC_INTR_CANCEL, &c);
}

int intr_connect(int adapter, __u32 node, __u32 number, __u32 flags)
{
	struct sci_ioc_intr_connect c = {
		.size = sizeof(c), .flags = flags, .node = node,
		.number = number, .timeout_ms = TEST_WAIT_MS,
	};
	int ret = xioctl(adapter, SCI_IOC_INTR_CONNECT, &c);

	return ret < 0 ? ret : c.out_fd;
}

int intr_send(int fd, const void *data, __u32 length)
{
	struct sci_ioc_intr_trigger t = {
		.size = sizeof(t), .data = (uintptr_t)data, .length = length,
	};

	return xioctl(fd, SCI_IOC_INTR_TRIGGER, &t);
}

int intr_trigger(int fd)
{
	return intr_send(fd, NULL, 0);
}

int dma_create(int adapter, __u32 max_pieces)
{
	struct sci_ioc_dma_create c = {
		.size = sizeof(c), .max_pieces = max_pieces,
	};
	int ret = xioctl(adapter, SCI_IOC_DMA_CREATE, &c);

	return ret < 0 ? ret : c.out_fd;
}

int dma_submit(int fd, __u32 flags, int local, int remote,
	       const struct sci_dma_vec *vecs, __u32 nr, __u64 cookie)
{
	struct sci_ioc_dma_submit s = {
		.size = sizeof(s), .flags = flags, .local_fd = local,
		.remote_fd = remote, .vecs = (uintptr_t)vecs, .nr_vecs = nr,
		.cookie = cookie,
	};

	return xioctl(fd, SCI_IOC_DMA_SUBMIT, &s);
}

int dma_move(int fd, __u32 flags, int local, int remote, __u64 length)
{
	struct sci_dma_vec vec = { .length = length };

	return dma_submit(fd, flags, local, remote, &vec, 1, 0);
}

int dma_abort(int fd)
{
	struct sci_ioc_dma_abort a = { .size = sizeof(a) };

	return xioctl(fd, SCI_IOC_DMA_ABORT, &a);
}

/* ---- adapters ---- */

static int by_index(const void *a, const void *b)
{
	const struct adapter *x = a, *y = b;

	return (x->index > y->index) - (x->index < y->index);
}

static int open_index(unsigned int index)
{
	char path[64];

	snprintf(path, sizeof(path), DEV_DIR "/sci%u", index);
	return SYS(open(path, O_RDWR | O_CLOEXEC));
}

static void add_adapter(unsigned int index)
{
	int fd = open_index(index);
	struct sci_ioc_query q;

	if (fd < 0)
		return;
	if (!adapter_query(fd, &q) && nlist < ADAPTERS_MAX)
		list[nlist++] = (struct adapter){ index, q.out_node };
	close(fd);
}

void adapters_find(void)
{
	DIR *dir = opendir(DEV_DIR);
	unsigned int index;
	struct dirent *e;
	char end;

	nlist = 0;
	while (dir && (e = readdir(dir)))
		if (sscanf(e->d_name, "sci%u%c", &index, &end) == 1)
			add_adapter(index);
	if (dir)
		closedir(dir);
	qsort(list, nlist, sizeof(*list), by_index);
}

unsigned int adapters(void)
{
	return nlist;
}

unsigned int adapter_index(unsigned int i)
{
	return list[i].index;
}

unsigned int adapter_node(unsigned int i)
{
	return list[i].node;
}

int adapter_open(unsigned int i)
{
	return open_index(list[i].index);
}

bool adapter_can(unsigned int i, __u32 cap)
{
	int fd = OK(adapter_open(i));
	struct sci_ioc_query q;

	OK(adapter_query(fd, &q));
	close(fd);
	return q.out_caps & cap;
}

void NEED_ADAPTERS(unsigned int n)
{
	if (adapters() < n)
		SKIP("%u adapters are needed", n);
}

void NEED_CAP(__u32 cap)
{
	if (!adapter_can(0, cap))
		SKIP("the adapter hasn't capability %#x", cap);
}

void NEED_ROOT(void)
{
	if (geteuid() != 0)
		SKIP("only as root");
}

/* ---- maps ---- */

long long sci_map_as(int fd, __u64 offset, size_t length, int prot, int flags)
{
	void *p = mmap(NULL, length, prot, flags, fd, (off_t)offset);

	return p == MAP_FAILED ? -errno : (long long)(uintptr_t)p;
}

long long sci_map(int fd, __u64 offset, size_t length, int prot)
{
	return sci_map_as(fd, offset, length, prot, MAP_SHARED);
}

int sci_unmap(volatile void *p, size_t length)
{
	return SYS(munmap((void *)p, length));
}

static uint32_t pattern(size_t i, uint32_t seed)
{
	return (uint32_t)(i * 2654435761u) ^ (seed * 0x9e3779b9u + 1);
}

void fill(volatile void *p, size_t size, uint32_t seed)
{
	for (size_t i = 0; i < size / 4; i++)
		WORD(p, i) = pattern(i, seed);
}

bool filled(const volatile void *p, size_t size, uint32_t seed)
{
	for (size_t i = 0; i < size / 4; i++)
		if (((const volatile uint32_t *)p)[i] != pattern(i, seed))
			return false;
	return true;
}

bool all_zero(const volatile void *p, size_t size)
{
	const volatile unsigned char *byte = p;

	for (size_t i = 0; i < size; i++)
		if (byte[i])
			return false;
	return true;
}

void *user_memory(size_t length)
{
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* ---- events ---- */

bool readable(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, ms) == 1;
}

int ev_next(int fd, struct sci_ev_record *ev)
{
	long n;

	if (!readable(fd, TEST_WAIT_MS))
		return -ETIMEDOUT;
	n = SYS(read(fd, ev, sizeof(*ev)));
	if (n < 0)
		return n;
	return n == sizeof(*ev) ? 0 : -EIO;
}

struct sci_ev_record EV(int fd, enum sci_ev_type type)
{
	struct sci_ev_record ev = { 0 };

	OK(ev_next(fd, &ev));
	EQ(ev.type, type);
	EQ(ev.reserved, 0);
	if (type != SCI_EV_DMA)
		EQ(ev.cookie, 0);
	return ev;
}

struct sci_ev_record EV_SOON(int fd, enum sci_ev_type type)
{
	struct sci_ev_record ev = { 0 };

	do {
		OK(ev_next(fd, &ev));
	} while (ev.type != type);
	return ev;
}

/* ---- pairs ---- */

struct pair PAIR_EXPORT(size_t length)
{
	struct pair p = { .near = 0, .length = length, .remote = -1 };
	struct sci_ioc_segment_info info;

	p.far = adapters() > 1 ? 1 : 0;
	p.node = adapter_node(p.far);
	p.exporter = OK(adapter_open(p.far));
	p.local = OK(segment_create_as(p.exporter, 1, length, SEGMENT_MODE,
				       SCI_SEGMENT_AUTO_ID));
	OK(segment_info(p.local, &info));
	p.id = info.out_id;
	p.here = MAP(p.local, 0, length, PROT_READ | PROT_WRITE);
	OK(segment_export(p.local));
	return p;
}

void PAIR_IMPORT(struct pair *p)
{
	p->importer = OK(adapter_open(p->near));
	p->remote = OK(remote_connect(p->importer, p->node, p->id));
	p->there = MAP(p->remote, 0, p->length, PROT_READ | PROT_WRITE);
}

struct pair PAIR(size_t length)
{
	struct pair p = PAIR_EXPORT(length);

	PAIR_IMPORT(&p);
	EV(p.local, SCI_EV_CONNECT);
	return p;
}

static void pair_close(struct pair *p)
{
	OK(sci_unmap(p->here, p->length));
	OK(sci_unmap(p->there, p->length));
	OK(SYS(close(p->remote)));
	OK(SYS(close(p->local)));
	OK(SYS(close(p->importer)));
	OK(SYS(close(p->exporter)));
}

struct world WORLD(void)
{
	struct world w = { .pair = PAIR(4 * PAGE), .vec = { .length = PAGE } };
	struct pair *p = &w.pair;
	__u32 number = 0;

	w.fd[KIND_ADAPTER] = p->importer;
	w.fd[KIND_LOCAL] = OK(segment_create_as(p->importer, 1, 4 * PAGE, 0666,
						SCI_SEGMENT_AUTO_ID));
	w.fd[KIND_REMOTE] = p->remote;
	w.fd[KIND_INTR] = OK(intr_create(p->exporter, SCI_INTR_COUNT, &number));
	w.fd[KIND_RINTR] = OK(intr_connect(p->importer, p->node, number, 0));
	w.fd[KIND_DMA] = -1;
	if (adapter_can(p->near, SCI_CAP_DMA))
		w.fd[KIND_DMA] = OK(dma_create(p->importer, 64));
	return w;
}

void world_close(struct world *w)
{
	if (w->fd[KIND_DMA] >= 0)
		OK(SYS(close(w->fd[KIND_DMA])));
	OK(SYS(close(w->fd[KIND_RINTR])));
	OK(SYS(close(w->fd[KIND_INTR])));
	OK(SYS(close(w->fd[KIND_LOCAL])));
	pair_close(&w->pair);
}

/* ---- a bit of everything ---- */

static void some_memory(struct world *w, uint64_t *seed)
{
	int adapter = w->fd[KIND_ADAPTER];
	size_t length = PAGE * (1 + ksft_below(seed, 8));
	struct sci_ioc_query q;
	int fd, mate;
	void *mine;

	OK(adapter_query(adapter, &q));
	if (!(q.out_caps & SCI_CAP_REGISTER))
		return;
	mine = user_memory(length);
	fd = OK(segment_create_as(adapter, 1, length, 0600,
				  SCI_SEGMENT_AUTO_ID | SCI_SEGMENT_EMPTY));
	if (!segment_register(fd, mine, length)) {
		struct sci_ioc_segment_info info;

		OK(segment_share(fd));
		OK(segment_export(fd));
		OK(segment_info(fd, &info));
		mate = OK(segment_attach(adapter, info.out_id));
		OK(SYS(close(mate)));
	}
	OK(sci_unmap(mine, length));
	if (ksft_below(seed, 2))
		OK(segment_remove(fd));
	OK(SYS(close(fd)));
}

static void some_dmabufs(struct world *w, uint64_t *seed)
{
	int buf = segment_get_dmabuf(w->fd[KIND_LOCAL]);
	volatile void *map;
	int fd;

	if (buf < 0)
		return;
	map = MAP(buf, 0, PAGE, RW);
	fd = OK(segment_create_as(w->fd[KIND_ADAPTER], 0, PAGE, 0600,
				  SCI_SEGMENT_PRIVATE | SCI_SEGMENT_EMPTY));
	OK(segment_register_dmabuf(fd, buf, 0));
	if (ksft_below(seed, 2))
		WORD(map, 0) = 1;
	OK(SYS(close(buf)));
	OK(SYS(close(fd)));
	OK(sci_unmap(map, PAGE));
}

static void some_traffic(struct world *w, uint64_t *seed)
{
	uint32_t value = (uint32_t)ksft_random(seed);
	struct pair *p = &w->pair;

	WORD(p->there, ksft_below(seed, p->length / 4)) = value;
	OK(sci_flush(p->remote));
	OK(intr_trigger(w->fd[KIND_RINTR]));
	if (w->fd[KIND_DMA] >= 0) {
		__u32 flags = ksft_below(seed, 4);

		OK(dma_submit(w->fd[KIND_DMA], flags, w->fd[KIND_LOCAL],
			      p->remote, &w->vec, 1, value));
		if (!(flags & SCI_DMA_WAIT))
			EV(w->fd[KIND_DMA], SCI_EV_DMA);
	}
}

static void some_connections(struct world *w, uint64_t *seed)
{
	struct pair *p = &w->pair;
	int fd, ret;

	fd = OK(remote_connect_as(p->importer, p->node, p->id,
				  SCI_CONNECT_ASYNC, TEST_WAIT_MS));
	if (ksft_below(seed, 2))
		EV(fd, SCI_EV_CONNECT);
	OK(SYS(close(fd)));
	ret = remote_connect(p->importer, p->node, 0xdeadbeef);
	FAILS(ret, ENOENT);
}

void everything(uint64_t seed, unsigned int rounds)
{
	for (unsigned int i = 0; i < rounds; i++) {
		struct world w = WORLD();

		some_memory(&w, &seed);
		some_dmabufs(&w, &seed);
		some_connections(&w, &seed);
		some_traffic(&w, &seed);
		OK(segment_unexport(w.pair.local, ksft_below(&seed, 3)));
		world_close(&w);
	}
}
