// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test every operation with every allocation failing once: for N = 1, 2, 3, ... the
 * Nth fault point of a system call fails, until a call reaches no Nth one. A call
 * that fails returns an errno and leaves nothing behind. The kernel needs
 * CONFIG_FAULT_INJECTION with FAILSLAB, FAIL_PAGE_ALLOC and, better, USERCOPY.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sci_test.h"

#define FAILURES_MAX	2000u

static struct fault_injector injector;
static unsigned int faults;		/* of all operations */

static void begin(void)
{
	NEED_ROOT();
	if (injector_open(&injector) < 0)
		SKIP("no fail-nth in this kernel");
}

/* ---- operations ---- */

/* The objects that an operation works on. Each try has its own. */
struct stage {
	struct pair pair;
	int adapter, fd, other;
	void *memory;
	volatile void *map;
	__u32 number;
	struct sci_dma_vec vec;
};

struct operation {
	const char *name;
	__u32 cap;			/* capability that the operation needs */
	void (*prepare)(struct stage *s);
	int (*run)(struct stage *s);	/* returns a descriptor, 0, or -errno */
	bool never_fails;
};

static void prepare_pair(struct stage *s)
{
	s->pair = PAIR(4 * PAGE);
	s->adapter = s->pair.importer;
}

static void prepare_local(struct stage *s)
{
	prepare_pair(s);
	s->fd = OK(segment_create(s->adapter, 100, 4 * PAGE));
}

static void prepare_shared(struct stage *s)
{
	prepare_local(s);
	OK(segment_share(s->fd));
}

static void prepare_exported(struct stage *s)
{
	prepare_local(s);
	OK(segment_export(s->fd));
}

static void prepare_empty(struct stage *s)
{
	prepare_pair(s);
	s->fd = OK(segment_create_as(s->adapter, 100, 16 * PAGE, 0600,
				     SCI_SEGMENT_EMPTY));
	s->memory = user_memory(16 * PAGE);
	memset(s->memory, 1, 16 * PAGE);
}

static void prepare_registered(struct stage *s)
{
	prepare_empty(s);
	OK(segment_register(s->fd, s->memory, 16 * PAGE));
}

static void prepare_remote(struct stage *s)
{
	prepare_pair(s);
	s->fd = OK(remote_connect(s->adapter, s->pair.node, s->pair.id));
}

static void prepare_mapped_remote(struct stage *s)
{
	prepare_remote(s);
	s->map = MAP(s->fd, 0, 4 * PAGE, RW);
	WORD(s->map, 0) = 1;
}

static void intr_of(struct stage *s, __u32 flags)
{
	s->number = 0;
	s->other = OK(intr_create(s->pair.exporter, flags, &s->number));
}

static void prepare_intr(struct stage *s)
{
	prepare_pair(s);
	intr_of(s, 0);
}

static void prepare_rintr(struct stage *s)
{
	prepare_intr(s);
	s->fd = OK(intr_connect(s->adapter, s->pair.node, s->number, 0));
}

static void prepare_data_rintr(struct stage *s)
{
	prepare_pair(s);
	intr_of(s, SCI_INTR_WITH_DATA);
	s->fd = OK(intr_connect(s->adapter, s->pair.node, s->number,
				SCI_CONNECT_DATA));
	s->memory = user_memory(PAGE);
	memset(s->memory, 1, PAGE);
}

static void prepare_dma(struct stage *s)
{
	prepare_local(s);
	s->other = OK(dma_create(s->adapter, 16));
	s->vec = (struct sci_dma_vec){ .length = 4 * PAGE };
}

static void prepare_nothing(struct stage *s)
{
	s->adapter = OK(adapter_open(0));
}

static int run_open(struct stage *s)
{
	(void)s;
	return adapter_open(0);
}

static int run_query(struct stage *s)
{
	struct sci_ioc_query q;

	return adapter_query(s->adapter, &q);
}

static int run_probe(struct stage *s)
{
	return adapter_probe(s->adapter, adapter_node(adapters() - 1));
}

static int run_status(struct stage *s)
{
	long long map = sci_map(s->adapter, SCI_MMAP_STATUS, PAGE, PROT_READ);

	return map < 0 ? (int)map : 0;
}

static int run_create(struct stage *s)
{
	return segment_create(s->adapter, 100, 64 * PAGE);
}

static int run_create_private(struct stage *s)
{
	return segment_private(s->adapter, PAGE);
}

static int run_create_group(struct stage *s)
{
	return segment_create_as(s->adapter, 100, PAGE, 0600,
				 SCI_SEGMENT_BROADCAST);
}

static int run_attach(struct stage *s)
{
	return segment_attach(s->adapter, 100);
}

static int run_register(struct stage *s)
{
	return segment_register(s->fd, s->memory, 16 * PAGE);
}

static int run_share(struct stage *s)
{
	return segment_share(s->fd);
}

static int run_export(struct stage *s)
{
	return segment_export(s->fd);
}

static int run_force(struct stage *s)
{
	return segment_unexport(s->pair.local, SCI_UNEXPORT_HOW_FORCE);
}

static int run_notify(struct stage *s)
{
	return segment_unexport(s->pair.local, SCI_UNEXPORT_HOW_NOTIFY);
}

static int run_remove(struct stage *s)
{
	return segment_remove(s->pair.local);
}

static int run_info(struct stage *s)
{
	struct sci_ioc_segment_info info;

	return segment_info(s->fd, &info);
}

static int run_map(struct stage *s)
{
	long long map = sci_map(s->fd, 0, 4 * PAGE, RW);

	return map < 0 ? (int)map : 0;
}

static int run_connect(struct stage *s)
{
	return remote_connect(s->adapter, s->pair.node, s->pair.id);
}

static int run_connect_async(struct stage *s)
{
	return remote_connect_as(s->adapter, s->pair.node, s->pair.id,
				 SCI_CONNECT_ASYNC, TEST_WAIT_MS);
}

static int run_close(struct stage *s)
{
	int ret = SYS(close(s->fd));

	s->fd = -1;
	return ret;
}

static int run_unmap(struct stage *s)
{
	return sci_unmap(s->map, 4 * PAGE);
}

/* Unmap half of a map: the kernel allocates an area for the other half. */
static int run_split(struct stage *s)
{
	return sci_unmap((volatile char *)s->map + PAGE, PAGE);
}

static int run_flush(struct stage *s)
{
	return sci_flush(s->fd);
}

static int run_intr(struct stage *s)
{
	__u32 number = 0;

	return intr_create(s->adapter, 0, &number);
}

static int run_data_intr(struct stage *s)
{
	__u32 number = 0;

	return intr_create(s->adapter, SCI_INTR_WITH_DATA, &number);
}

static int run_intr_connect(struct stage *s)
{
	return intr_connect(s->adapter, s->pair.node, s->number, 0);
}

static int run_trigger(struct stage *s)
{
	return intr_trigger(s->fd);
}

static int run_send(struct stage *s)
{
	return intr_send(s->fd, s->memory, PAGE);
}

static int run_dma_create(struct stage *s)
{
	return dma_create(s->adapter, 1000);
}

static int run_dma_wait(struct stage *s)
{
	return dma_submit(s->other, SCI_DMA_WAIT, s->fd, s->pair.remote,
			  &s->vec, 1, 0);
}

static int run_dma_queue(struct stage *s)
{
	return dma_submit(s->other, 0, s->fd, s->pair.remote, &s->vec, 1, 0);
}

static const struct operation operations[] = {
	{ "open", 0, prepare_nothing, run_open, false },
	{ "query", 0, prepare_nothing, run_query, false },
	{ "probe", 0, prepare_nothing, run_probe, false },
	{ "map the status page", 0, prepare_nothing, run_status, false },
	{ "create", 0, prepare_nothing, run_create, false },
	{ "create, private", 0, prepare_nothing, run_create_private, false },
	{ "create, broadcast", SCI_CAP_BROADCAST, prepare_nothing,
	  run_create_group, false },
	{ "attach", 0, prepare_shared, run_attach, false },
	{ "register", SCI_CAP_REGISTER, prepare_empty, run_register, false },
	{ "share", 0, prepare_local, run_share, false },
	{ "export", 0, prepare_local, run_export, false },
	{ "export, registered", SCI_CAP_REGISTER, prepare_registered,
	  run_export, false },
	{ "unexport by force", 0, prepare_pair, run_force, false },
	{ "unexport with notice", 0, prepare_pair, run_notify, false },
	{ "remove", 0, prepare_pair, run_remove, false },
	{ "info", 0, prepare_local, run_info, false },
	{ "map a segment", 0, prepare_local, run_map, false },
	{ "connect", 0, prepare_pair, run_connect, false },
	{ "connect asynchronously", 0, prepare_pair, run_connect_async, false },
	{ "map an import", 0, prepare_remote, run_map, false },
	{ "unmap an import", 0, prepare_mapped_remote, run_unmap, false },
	{ "split the map of an import", 0, prepare_mapped_remote, run_split,
	  false },
	{ "flush", 0, prepare_remote, run_flush, false },
	{ "close a segment", 0, prepare_exported, run_close, true },
	{ "close a registered segment", SCI_CAP_REGISTER, prepare_registered,
	  run_close, true },
	{ "close an import", 0, prepare_remote, run_close, true },
	{ "close an import that is mapped", 0, prepare_mapped_remote,
	  run_close, true },
	{ "create an interrupt", 0, prepare_nothing, run_intr, false },
	{ "create a data interrupt", 0, prepare_nothing, run_data_intr,
	  false },
	{ "connect to an interrupt", 0, prepare_intr, run_intr_connect,
	  false },
	{ "trigger", 0, prepare_rintr, run_trigger, false },
	{ "send data", 0, prepare_data_rintr, run_send, false },
	{ "close a remote interrupt", 0, prepare_rintr, run_close, true },
	{ "create a DMA queue", SCI_CAP_DMA, prepare_nothing, run_dma_create,
	  false },
	{ "move", SCI_CAP_DMA, prepare_dma, run_dma_wait, false },
	{ "queue a transfer", SCI_CAP_DMA, prepare_dma, run_dma_queue,
	  false },
};

/* ---- tries ---- */

/* Return whether an injected failure may have this result. */
static bool allowed(int ret)
{
	return ret == -ENOMEM || ret == -EFAULT || ret == -ENFILE ||
	       ret == -ENOBUFS || ret == -EAGAIN || ret == -ENOSPC;
}

/* Try once. The caller forks for each try, so that the objects go away after it. */
static int try_nth(const struct operation *op, unsigned int nth)
{
	struct stage s = { .fd = -1, .other = -1 };
	struct counts a, b;
	bool reached;
	int ret;

	op->prepare(&s);
	a = counts_of(0);
	injector_arm(&injector, nth);
	ret = op->run(&s);
	reached = injector_disarm(&injector);
	if (!reached && ret < 0)
		FAIL("%s: %s, without a fault", op->name, ksft_errname(-ret));
	if (ret < 0 && op->never_fails)
		FAIL("%s, fault %u: %s", op->name, nth, ksft_errname(-ret));
	if (ret < 0 && !allowed(ret))
		FAIL("%s, fault %u: %s", op->name, nth, ksft_errname(-ret));
	if (ret < 0) {
		b = counts_of(0);
		if (!counts_equal(&a, &b))
			ksft_note("%s, fault %u", op->name, nth);
		COUNTS_BACK(0, &a);
		/* without a fault the same call works */
		ret = op->run(&s);
		if (ret < 0)
			FAIL("%s, again after fault %u: %s", op->name, nth,
			     ksft_errname(-ret));
	}
	return reached;
}

/* Try with N = 1, 2, 3, ... until the operation reaches no Nth fault point. */
static bool walk(const struct operation *op)
{
	unsigned int nth = 0, status, far = adapters() > 1;
	struct counts was = counts_of(0), was_far = counts_of(far);
	pid_t pid;

	do {
		pid = ksft_fork();
		if (pid == 0) {
			begin();
			_exit(try_nth(op, nth + 1) ? 0 : 10);
		}
		status = ksft_wait(pid);
		if (status && status != 10 << 8) {
			ksft_note("%s: fault %u", op->name, nth + 1);
			return false;
		}
		COUNTS_BACK(0, &was);
		COUNTS_BACK(far, &was_far);
		nth++;
	} while (!status && nth < FAILURES_MAX);
	ksft_note("%s: %u faults", op->name, nth - 1);
	faults += nth - 1;
	return status;
}

TEST_LIMIT(every_failure_of_every_operation, 1800)
{
	unsigned int bad = 0;

	begin();
	for (unsigned int i = 0; i < ARRAY_SIZE(operations); i++)
		if (!operations[i].cap || adapter_can(0, operations[i].cap))
			bad += !walk(&operations[i]);
	EQ(bad, 0);
	/* 0: the kernel's fault injection has no effect */
	CHECK(faults > 0);
}
