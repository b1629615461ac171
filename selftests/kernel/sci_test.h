/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Helpers for tests of /dev/sciN: adapters, one wrapper per ioctl, maps, events,
 * and connected objects.
 *
 * Wrappers check nothing and return -errno, or a descriptor or 0. Functions that
 * check have names in capitals.
 */
#ifndef SELFTESTS_KERNEL_SCI_TEST_H
#define SELFTESTS_KERNEL_SCI_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/sci.h>

#include "ksft.h"
#include "sci_state.h"

/* ---- devices and addresses ---- */

#define DEV_DIR		"/dev"

/* A node id that no test has. */
#define NODE_NOBODY	0xfff8u

#define PAGE		page_size()

size_t page_size(void);

/* An address outside of user space. */
#define KERNEL_ADDRESS							\
	((void *)(uintptr_t)(sizeof(void *) == 8 ? ~0ull << 47 : 0xfffff000))

/* ---- adapters of this machine, identified by their place in the list ---- */

#define ADAPTERS_MAX	64

unsigned int adapters(void);
void adapters_find(void);			/* read the list again */
unsigned int adapter_index(unsigned int i);	/* N of /dev/sciN */
unsigned int adapter_node(unsigned int i);
int adapter_open(unsigned int i);
bool adapter_can(unsigned int i, __u32 cap);

/* Skip the test without @n adapters, without @cap of the first one, or without root. */
void NEED_ADAPTERS(unsigned int n);
void NEED_CAP(__u32 cap);
void NEED_ROOT(void);

/*
 * Raise or drop CAP_DAC_OVERRIDE of this thread. Without the capability modes apply
 * to root, too; the thread may raise it again.
 */
void may_override(bool may);

/* ---- ioctls ---- */

int xioctl(int fd, unsigned long cmd, void *arg);

int adapter_query(int fd, struct sci_ioc_query *q);
int adapter_probe(int fd, unsigned int node);
int adapter_counters(int fd, struct sci_ioc_counters *c);

/* For adapters and remote segments. @c has the errors and fatal of an earlier check. */
int sci_check(int fd, struct sci_ioc_check *c);
int sci_flush(int fd);
int sci_cache(int adapter, volatile void *addr, size_t length, __u32 flags);

#define SEGMENT_MODE	0600u

int segment_create(int adapter, __u32 id, __u64 length);
int segment_create_as(int adapter, __u32 id, __u64 length, __u32 mode,
		      __u32 flags);
int segment_private(int adapter, __u64 length);
int segment_exported(int adapter, __u32 id, __u64 length);
int segment_attach(int adapter, __u32 id);
int segment_register(int fd, const void *addr, __u64 length);
int segment_get_dmabuf(int fd);
int segment_register_dmabuf(int fd, int dmabuf, __u64 offset);
int segment_share(int fd);
int segment_export(int fd);
int segment_unexport(int fd, enum sci_unexport_how how);
int segment_remove(int fd);
int segment_info(int fd, struct sci_ioc_segment_info *info);

int remote_connect(int adapter, __u32 node, __u32 id);
int remote_connect_as(int adapter, __u32 node, __u32 id, __u32 flags,
		      __u32 timeout_ms);
int remote_info(int fd, struct sci_ioc_remote_info *info);

/* The call stores the number in @number. */
int intr_create(int adapter, __u32 flags, __u32 *number);
int intr_create_as(int adapter, __u32 flags, __u32 *number, __u32 mode);
int intr_cancel(int fd);
int intr_connect(int adapter, __u32 node, __u32 number, __u32 flags);
int intr_trigger(int fd);
int intr_send(int fd, const void *data, __u32 length);

int dma_create(int adapter, __u32 max_pieces);
int dma_submit(int fd, __u32 flags, int local, int remote,
	       const struct sci_dma_vec *vecs, __u32 nr, __u64 cookie);
int dma_move(int fd, __u32 flags, int local, int remote, __u64 length);
int dma_abort(int fd);

/* ---- maps ---- */

#define RW	(PROT_READ | PROT_WRITE)

/* Map and return the address, or -errno. */
long long sci_map(int fd, __u64 offset, size_t length, int prot);
long long sci_map_as(int fd, __u64 offset, size_t length, int prot, int flags);

#define MAP(fd, offset, length, prot)					\
	((volatile void *)(uintptr_t)OK(sci_map(fd, offset, length, prot)))

/* Unmap. Unlike munmap(), it takes volatile pointers. */
int sci_unmap(volatile void *p, size_t length);

/* The 32-bit word @i of @p. */
#define WORD(p, i)	(((volatile uint32_t *)(p))[i])

/* Fill @p with a pattern that depends on @seed; test for that pattern or for zeros. */
void fill(volatile void *p, size_t size, uint32_t seed);
bool filled(const volatile void *p, size_t size, uint32_t seed);
bool all_zero(const volatile void *p, size_t size);

/* Map @length bytes of anonymous memory. */
void *user_memory(size_t length);

/* ---- events ---- */

/* Return whether poll() reports POLLIN within @ms milliseconds. */
bool readable(int fd, int ms);

/* Wait for the next event. Return 0 or -errno. */
int ev_next(int fd, struct sci_ev_record *ev);

/* Wait for the next event, check its type, and return it. */
struct sci_ev_record EV(int fd, enum sci_ev_type type);

/* Wait for an event of this type, skipping others. */
struct sci_ev_record EV_SOON(int fd, enum sci_ev_type type);

#define NO_EV(fd)	CHECK(!readable(fd, 0))

/* ---- a segment of one adapter and an import of it on another ---- */

struct pair {
	unsigned int near, far;		/* places of both adapters */
	int exporter, importer;		/* descriptors of both adapters */
	int local, remote;		/* descriptors of the segment */
	__u32 id, node;			/* of the segment */
	size_t length;
	volatile uint32_t *here;	/* map of local */
	volatile uint32_t *there;	/* map of remote */
};

/* Create a pair: the first adapter imports, the second, if there is one, exports. */
struct pair PAIR(size_t length);

/* Create the exporter's half or the importer's half, for use in different processes. */
struct pair PAIR_EXPORT(size_t length);
void PAIR_IMPORT(struct pair *p);

/* ---- one object of each kind, connected to each other ---- */

enum sci_kind {
	KIND_ADAPTER, KIND_LOCAL, KIND_REMOTE, KIND_INTR, KIND_RINTR, KIND_DMA,
	KINDS
};

struct world {
	struct pair pair;
	int fd[KINDS];			/* -1: the adapter does not support the kind */
	struct sci_dma_vec vec;
};

struct world WORLD(void);
void world_close(struct world *w);

/* Create objects of all kinds, move data, trigger, and close them, @rounds times. */
void everything(uint64_t seed, unsigned int rounds);

#ifndef SELFTESTS_KERNEL_SCI_TEST_C
#define EV(fd, type) KSFT_FROM(EV(fd, type))
#define EV_SOON(fd, type) KSFT_FROM(EV_SOON(fd, type))
#define PAIR(length) KSFT_FROM(PAIR(length))
#define PAIR_EXPORT(length) KSFT_FROM(PAIR_EXPORT(length))
#define PAIR_IMPORT(p) KSFT_FROM(PAIR_IMPORT(p))
#define WORLD() KSFT_FROM(WORLD())
#endif

#endif
