// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz_steps.h"

#define NOBODY		65534
#define SLOTS		12u		/* descriptors of each kind */
#define POOL_DMABUF	KINDS		/* pool of dma-bufs, behind those of each kind */
#define POOLS		(KINDS + 1)
#define AREAS		16u		/* number of maps */
#define ADAPTERS	8u
#define ARG_BYTES	4096	/* size of the largest structure, or more */
#define MEMORY		(64 * PAGE)	/* memory of the process for SEGMENT_REGISTER */
#define VECS		16u

/* Steps that are not ioctls. */
enum step {
	STEP_MAP, STEP_UNMAP, STEP_PROTECT, STEP_MOVE, STEP_ADVISE, STEP_TOUCH,
	STEP_READ, STEP_POLL, STEP_CLOSE, STEP_DUP, STEP_FORK, STEP_PASS,
	STEP_FIONREAD, STEP_SYSFS, STEPS
};

static const char *const step_names[STEPS] = {
	"mmap", "munmap", "mprotect", "mremap", "madvise", "touch", "read",
	"poll", "close", "dup", "fork", "pass", "FIONREAD", "sysfs",
};

/* A map. A thread may unmap it only while no other thread uses it. */
struct area {
	_Atomic int users;		/* number of users; -1: one exclusive user */
	char *addr;
	size_t length;
};

struct thread {
	pthread_t id;
	struct fuzz_worker *worker;
	uint64_t rnd;
	struct fault_injector injector;
	struct sci_dma_vec vec[VECS];
	unsigned char arg[ARG_BYTES];
};

/* Variables of this process, shared by its threads. */
static struct fuzz_tally *tally;
static int base[ADAPTERS];		/* adapters that stay open */
static unsigned int nbase;
static _Atomic int pool[POOLS][SLOTS];
static struct area areas[AREAS];
static char *memory;

static _Thread_local sigjmp_buf on_fault;
static _Thread_local volatile sig_atomic_t may_fault, failing;

unsigned int fuzz_ops(void)
{
	return sci_ncalls + STEPS;
}

const char *fuzz_op_name(unsigned int op)
{
	return op < sci_ncalls ? sci_calls[op].name :
				 step_names[op - sci_ncalls];
}

/* ---- numbers ---- */

static unsigned int below(struct thread *t, unsigned int n)
{
	return ksft_below(&t->rnd, n);
}

/* Return true once in @n times. */
static bool rarely(struct thread *t, unsigned int n)
{
	return below(t, n) == 0;
}

static __u64 one_of(struct thread *t, const __u64 *list_of, size_t n)
{
	return list_of[below(t, (unsigned int)n)];
}

#define ONE_OF(t, ...)							\
	one_of(t, (const __u64[]){ __VA_ARGS__ },			\
	       sizeof((const __u64[]){ __VA_ARGS__ }) / sizeof(__u64))

static void count(unsigned int op, long result)
{
	unsigned int error = result < 0 ? (unsigned int)-result : 0;

	atomic_fetch_add(&tally->seen[op][error < FUZZ_ERRNO_MAX ? error : 1], 1);
}

/* ---- descriptors ---- */

static int any_fd(struct thread *t, enum sci_kind kind)
{
	int fd = -1;

	for (unsigned int i = 0; i < 4 && fd < 0; i++)
		fd = atomic_load(&pool[kind][below(t, SLOTS)]);
	if (kind == KIND_ADAPTER && fd < 0)
		/* prefer few adapters, so that objects find their peers */
		return base[below(t, 1 + below(t, 1 + below(t, nbase)))];
	return fd;
}

/* Put @fd into a random slot and close the descriptor that was there. */
static void keep(struct thread *t, enum sci_kind kind, int fd)
{
	int old = atomic_exchange(&pool[kind][below(t, SLOTS)], fd);

	if (old >= 0)
		close(old);
}

static long step_close(struct thread *t)
{
	int fd = atomic_exchange(&pool[below(t, POOLS)][below(t, SLOTS)], -1);

	return fd < 0 ? -EBADF : SYS(close(fd));
}

static long step_dup(struct thread *t)
{
	enum sci_kind kind = below(t, POOLS);
	int fd = SYS(fcntl(any_fd(t, kind), F_DUPFD_CLOEXEC, 3));

	if (fd >= 0)
		keep(t, kind, fd);
	return fd;
}

/* Pass a descriptor through a socket pair that is closed without reading. */
static long step_pass(struct thread *t)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control.room, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int s[2], fd = any_fd(t, below(t, POOLS));
	long ret;

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, s))
		return -errno;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	ret = SYS(sendmsg(s[0], &msg, MSG_DONTWAIT));
	close(s[0]);
	close(s[1]);
	return ret;
}

static long step_read(struct thread *t)
{
	char room[256];
	size_t size = ONE_OF(t, 0, 8, 24, 24, 48, sizeof(room));
	void *to = rarely(t, 50) ? (void *)8 : room;

	return SYS(read(any_fd(t, below(t, POOLS)), to, size));
}

static long step_poll(struct thread *t)
{
	struct pollfd pfd[4];

	for (unsigned int i = 0; i < ARRAY_SIZE(pfd); i++)
		pfd[i] = (struct pollfd){
			.fd = any_fd(t, below(t, KINDS)),
			.events = POLLIN | POLLOUT,
		};
	return SYS(poll(pfd, ARRAY_SIZE(pfd), (int)below(t, 3)));
}

static long step_fionread(struct thread *t)
{
	int n;

	return SYS(ioctl(any_fd(t, KIND_INTR), FIONREAD,
			 rarely(t, 20) ? NULL : &n));
}

/* ---- maps ---- */

static struct area *area_alone(struct thread *t)
{
	struct area *a = &areas[below(t, AREAS)];
	int none = 0;

	return atomic_compare_exchange_strong(&a->users, &none, -1) ? a : NULL;
}

static struct area *area_shared(struct thread *t)
{
	struct area *a = &areas[below(t, AREAS)];
	int n = atomic_load(&a->users);

	if (n < 0 || !atomic_compare_exchange_strong(&a->users, &n, n + 1))
		return NULL;
	return a;
}

static void area_done(struct area *a)
{
	int n = atomic_load(&a->users);

	while (!atomic_compare_exchange_strong(&a->users, &n,
					       n < 0 ? 0 : n - 1))
		;
}

static long area_unmap(struct area *a)
{
	long ret = a->addr ? SYS(munmap(a->addr, a->length)) : 0;

	a->addr = NULL;
	a->length = 0;
	return ret;
}

static long step_map(struct thread *t)
{
	enum sci_kind kind = ONE_OF(t, KIND_LOCAL, KIND_LOCAL, KIND_REMOTE,
				    KIND_REMOTE, KIND_REMOTE, KIND_ADAPTER,
				    below(t, POOLS));
	size_t length = PAGE * (rarely(t, 3) ? 1 + below(t, 20) : 1);
	int prot = (int)ONE_OF(t, RW, RW, RW, PROT_READ, PROT_READ, PROT_WRITE,
			       PROT_NONE, RW, RW, rarely(t, 2) ? RW :
			       RW | PROT_EXEC);
	int flags = rarely(t, 30) ? MAP_PRIVATE : MAP_SHARED;
	__u64 offset = !rarely(t, 4) ? 0 :
		       ONE_OF(t, PAGE, PAGE, 4 * PAGE, 1ull << 62, 5);
	struct area *a = area_alone(t);
	long ret;

	if (!a)
		return -EBUSY;
	if (kind == KIND_ADAPTER)
		length = rarely(t, 4) ? length : PAGE;
	if (rarely(t, 4))
		flags |= MAP_POPULATE;
	area_unmap(a);
	ret = sci_map_as(any_fd(t, kind), offset, length, prot, flags);
	if (ret >= 0) {
		a->addr = (char *)ret;
		a->length = length;
	}
	area_done(a);
	return ret;
}

static long step_unmap(struct thread *t)
{
	struct area *a = area_alone(t);
	long ret;

	if (!a)
		return -EBUSY;
	/* unmap only the last page in one of two cases */
	if (a->length > PAGE && rarely(t, 2)) {
		a->length -= PAGE;
		ret = SYS(munmap(a->addr + a->length, PAGE));
	} else {
		ret = area_unmap(a);
	}
	area_done(a);
	return ret;
}

static long step_move(struct thread *t)
{
	struct area *a = area_alone(t);
	size_t length;
	long ret;

	if (!a)
		return -EBUSY;
	if (!a->addr) {
		area_done(a);
		return -ENOENT;
	}
	length = a->length + PAGE * ONE_OF(t, 0, 0, 1, 5);
	ret = SYS(mremap(a->addr, a->length, length, MREMAP_MAYMOVE));
	if (ret >= 0) {
		a->addr = (char *)ret;
		a->length = length;
	}
	area_done(a);
	return ret;
}

static char *page_of(struct thread *t, const struct area *a)
{
	return a->addr + PAGE * below(t, (unsigned int)(a->length / PAGE));
}

static long with_area(struct thread *t,
		      long (*fn)(struct thread *t, struct area *a))
{
	struct area *a = NULL;
	long ret = -ENOENT;

	for (unsigned int i = 0; i < 6 && ret == -ENOENT; i++) {
		a = area_shared(t);
		if (!a)
			continue;
		if (a->addr)
			ret = fn(t, a);
		area_done(a);
	}
	return ret;
}

static long protect(struct thread *t, struct area *a)
{
	return SYS(mprotect(page_of(t, a), PAGE,
			    (int)ONE_OF(t, RW, RW, PROT_READ, PROT_NONE,
					PROT_READ | PROT_EXEC)));
}

static long advise(struct thread *t, struct area *a)
{
	return SYS(madvise(page_of(t, a), PAGE,
			   (int)ONE_OF(t, MADV_DONTNEED, MADV_DONTNEED,
				       MADV_WILLNEED, MADV_REMOVE, MADV_FREE,
				       MADV_DONTFORK, MADV_DOFORK)));
}

static long touch(struct thread *t, struct area *a)
{
	volatile uint32_t *word = (volatile uint32_t *)page_of(t, a) +
				  below(t, PAGE / 4);

	if (sigsetjmp(on_fault, 1)) {
		may_fault = 0;
		return -EFAULT;
	}
	may_fault = 1;
	if (rarely(t, 2))
		*word = below(t, 1000);
	else
		(void)*word;
	may_fault = 0;
	return 0;
}

/* ---- ioctls ---- */

static __u64 node_of(struct thread *t)
{
	unsigned int i = below(t, adapters() + 1);

	if (i < adapters() && !rarely(t, 30))
		return adapter_node(i);
	return ONE_OF(t, SCI_IOC_NODE_GROUP, SCI_IOC_NODE_GROUP,
		      SCI_IOC_NODE_GROUP, NODE_NOBODY, 0, 3, 0x20000);
}

static __u64 address_of(struct thread *t)
{
	switch (below(t, 12)) {
	case 0:
		return ONE_OF(t, 0, 8, 1ull << 63, ~0ull & ~(PAGE - 1));
	case 1:
		return (uintptr_t)areas[below(t, AREAS)].addr;
	case 2:
		return (uintptr_t)memory + MEMORY - PAGE;
	case 3:
		return (uintptr_t)memory + 64;
	default:
		return (uintptr_t)memory + PAGE * below(t, 48);
	}
}

static __u64 vecs_of(struct thread *t)
{
	for (unsigned int i = 0; i < VECS; i++)
		t->vec[i] = (struct sci_dma_vec){
			.local = ONE_OF(t, 0, 0, 64, 1000),
			.remote = ONE_OF(t, 0, 0, 64, 1000),
			.length = ONE_OF(t, 64, 64, 128, 1, 3000),
		};
	if (rarely(t, 4))
		t->vec[below(t, 2)] = (struct sci_dma_vec){
			.local = ONE_OF(t, 0, PAGE, 1ull << 63),
			.remote = ONE_OF(t, 0, PAGE, ~0ull - 63),
			.length = ONE_OF(t, 64, 4 * PAGE, 1 << 20, ~0ull),
		};
	return rarely(t, 20) ? address_of(t) : (uintptr_t)t->vec;
}

static __u64 flags_of(struct thread *t, const struct sci_call *c)
{
	if (rarely(t, 40))
		return 1u << below(t, 32);
	if (rarely(t, 2))
		return 0;
	return (__u32)ksft_random(&t->rnd) & c->flags;
}

static __u64 value_of(struct thread *t, const struct sci_call *c,
		      enum sci_value value)
{
	switch (value) {
	case V_SIZE:
		return c->size;
	case V_FLAGS:
		return flags_of(t, c);
	case V_RESERVED:
		return rarely(t, 40);
	case V_ID:
	case V_NUMBER:
		return rarely(t, 20) ? ~0u : 1 + below(t, 6);
	case V_NODE:
		return node_of(t);
	case V_TIMEOUT:
		return ONE_OF(t, 0, 1, 5, 20, 50, 50, SCI_TIMEOUT_INFINITE);
	case V_MODE:
		return ONE_OF(t, 0600, 0666, 0666, 0666, 0644, 0, 0777);
	case V_NUMA:
		return ONE_OF(t, ~0u, ~0u, ~0u, 0, 1, 99);
	case V_LENGTH:
		return rarely(t, 20) ? ONE_OF(t, 0, 1, 1ull << 20, ~0ull) :
				       ONE_OF(t, PAGE, 2 * PAGE, 4 * PAGE);
	case V_ADDR:
	case V_DATA:
		return address_of(t);
	case V_DMABUF:
		return any_fd(t, rarely(t, 20) ? below(t, KINDS) : POOL_DMABUF);
	case V_DMABUF_OFFSET:
		return ONE_OF(t, 0, 0, 0, PAGE, 2 * PAGE, 1, ~0ull & ~(PAGE - 1));
	case V_HOW:
		return below(t, rarely(t, 20) ? 5 : 3);
	case V_DATA_LENGTH:
		return ONE_OF(t, 0, 1, 8, 64, 200, PAGE, 65536, 65537);
	case V_PIECES:
		return ONE_OF(t, 0, 1, 16, 64, 64, 64, 1000, 65537);
	case V_LOCAL_FD:
		return any_fd(t, rarely(t, 20) ? below(t, KINDS) : KIND_LOCAL);
	case V_REMOTE_FD:
		return any_fd(t, rarely(t, 20) ? below(t, KINDS) : KIND_REMOTE);
	case V_VECS:
		return vecs_of(t);
	case V_NR_VECS:
		return rarely(t, 30) ? 1u << below(t, 32) : 1 + below(t, VECS);
	default:
		return ksft_random(&t->rnd);
	}
}

/* Correct combinations of arguments that random values would rarely hit. */
static void agree(struct thread *t, const struct sci_call *c, int fd)
{
	struct sci_ioc_segment_register *reg = (void *)t->arg;
	struct sci_ioc_segment_create *create = (void *)t->arg;
	struct sci_ioc_segment_info info;

	switch (c->cmd) {
	case SCI_IOC_SEGMENT_CREATE:
		create->flags = (__u32)ONE_OF(t, create->flags, 0, 0,
					      SCI_SEGMENT_AUTO_ID,
					      SCI_SEGMENT_EMPTY |
					      SCI_SEGMENT_AUTO_ID,
					      SCI_SEGMENT_PRIVATE,
					      SCI_SEGMENT_BROADCAST);
		if (create->flags & SCI_SEGMENT_PRIVATE)
			create->id = 0;
		break;
	case SCI_IOC_SEGMENT_REGISTER:
		if (segment_info(fd, &info) == 0)
			reg->length = (info.out_length + PAGE - 1) &
				      ~(PAGE - 1);
		break;
	case SCI_IOC_INTR_TRIGGER:
		/* half of the triggers carry no data */
		if (rarely(t, 2))
			memset(t->arg + 8, 0, c->size - 8);
		break;
	}
}

/* Export and share a segment, so that other threads find it. */
static void publish(struct thread *t, int fd)
{
	if (rarely(t, 3))
		return;
	if (segment_export(fd) == -EBUSY &&
	    !segment_register(fd, memory, PAGE * (1ull << below(t, 3))))
		segment_export(fd);
	segment_share(fd);
}

/* Reduce a plausible large length, for which the kernel would allocate memory. */
static void keep_small(struct thread *t, const struct sci_call *c)
{
	struct sci_ioc_segment_create *create = (void *)t->arg;

	if (c->cmd == SCI_IOC_SEGMENT_CREATE && create->length > 1 << 20 &&
	    create->length < 1ull << 48)
		create->length = PAGE;
}

static void mutate(struct thread *t, const struct sci_call *c)
{
	switch (below(t, 5)) {
	case 0:
		*(__u32 *)t->arg = below(t, 2 * c->size);
		break;
	case 1:
		*(__u32 *)t->arg = c->size + 8;
		t->arg[c->size + below(t, 8)] = rarely(t, 2);
		break;
	default:
		t->arg[below(t, c->size)] ^= 1 << below(t, 8);
		break;
	}
	keep_small(t, c);
}

static long call(struct thread *t, const struct sci_call *c)
{
	const struct sci_field *out = call_field(c, V_OUT_FD);
	enum sci_kind kind = below(t, KINDS);
	void *arg = t->arg;
	long ret;
	int fd, out_fd;

	while (!rarely(t, 50) && !(c->kinds & (1u << kind)))
		kind = below(t, KINDS);
	fd = any_fd(t, kind);
	memset(t->arg, 0, 2 * CALL_SIZE_MAX);
	for (const struct sci_field *f = c->field; f->value; f++)
		field_set(t->arg, f, value_of(t, c, f->value));
	if (!rarely(t, 10))
		agree(t, c, fd);
	if (rarely(t, 10))
		mutate(t, c);
	if (rarely(t, 100))
		arg = (void *)(uintptr_t)address_of(t);
	ret = xioctl(fd, c->cmd, arg);
	if (ret < 0 || !out || arg != t->arg)
		return ret;
	out_fd = (int)field_get(t->arg, out);
	if (!rarely(t, 4))
		fcntl(out_fd, F_SETFL, O_NONBLOCK);
	if (c->makes == KIND_LOCAL)
		publish(t, out_fd);
	keep(t, c->makes, out_fd);
	return ret;
}

/* ---- threads ---- */

static void one_step(struct thread *t);

/* Fork. The child makes some calls with copies of all descriptors and maps. */
static long step_fork(struct thread *t)
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		const struct itimerval tick = {
			{ 0, FUZZ_TICK_MS * 1000 }, { 0, FUZZ_TICK_MS * 1000 },
		};

		t->injector.fd = -1;	/* it belongs to the parent's thread */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setitimer(ITIMER_REAL, &tick, NULL);
		t->rnd += 1;
		for (unsigned int i = below(t, 20); i; i--)
			one_step(t);
		_exit(0);
	}
	if (rarely(t, 2))
		kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

static long step_sysfs(struct thread *t)
{
	char path[128];
	long fd;

	snprintf(path, sizeof(path), SYSFS_DIR "/sci%u/segment%u/exported",
		 adapter_index(0), 1 + below(t, 10));
	fd = SYS(open(path, O_RDONLY | O_CLOEXEC));
	if (fd >= 0) {
		char text[256];

		if (read((int)fd, text, sizeof(text)) < 0)
			fd = -errno;
		close((int)fd);
	}
	return fd;
}

static long do_step(struct thread *t, enum step step)
{
	switch (step) {
	case STEP_MAP:
		return step_map(t);
	case STEP_UNMAP:
		return step_unmap(t);
	case STEP_PROTECT:
		return with_area(t, protect);
	case STEP_MOVE:
		return step_move(t);
	case STEP_ADVISE:
		return with_area(t, advise);
	case STEP_TOUCH:
		return with_area(t, touch);
	case STEP_READ:
		return step_read(t);
	case STEP_POLL:
		return step_poll(t);
	case STEP_CLOSE:
		return step_close(t);
	case STEP_DUP:
		return step_dup(t);
	case STEP_FORK:
		return rarely(t, 5) ? step_fork(t) : -EAGAIN;
	case STEP_PASS:
		return step_pass(t);
	case STEP_FIONREAD:
		return step_fionread(t);
	default:
		return step_sysfs(t);
	}
}

/* Steps that end an object which other threads use. */
static bool is_final(unsigned int op)
{
	if (op >= sci_ncalls)
		return op - sci_ncalls == STEP_UNMAP ||
		       op - sci_ncalls == STEP_CLOSE;
	return sci_calls[op].cmd == SCI_IOC_SEGMENT_REMOVE ||
	       sci_calls[op].cmd == SCI_IOC_INTR_CANCEL;
}

static unsigned int any_op(struct thread *t)
{
	unsigned int op = below(t, 100) < 65 ? below(t, sci_ncalls) :
					       sci_ncalls + below(t, STEPS);

	return is_final(op) && !rarely(t, 4) ? any_op(t) : op;
}

/* Arm the injector, with SIGUSR1 blocked: a signal that can't be delivered kills. */
static bool begin_failure(struct thread *t, unsigned int op)
{
	sigset_t wake;

	if (t->injector.fd < 0 || !rarely(t, 10) ||
	    op == sci_ncalls + STEP_READ || op == sci_ncalls + STEP_TOUCH)
		return false;
	sigemptyset(&wake);
	sigaddset(&wake, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &wake, NULL);
	failing = 1;
	injector_arm(&t->injector, 1 + below(t, 30));
	return true;
}

static void end_failure(struct thread *t)
{
	sigset_t wake;

	injector_disarm(&t->injector);
	failing = 0;
	sigemptyset(&wake);
	sigaddset(&wake, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &wake, NULL);
}

static void one_step(struct thread *t)
{
	unsigned int op = any_op(t);
	bool is_ioctl = op < sci_ncalls;
	bool fails = begin_failure(t, op);
	long ret;

	atomic_store(&t->worker->op, op);
	if (is_ioctl)
		ret = call(t, &sci_calls[op]);
	else if (op - sci_ncalls != STEP_TOUCH || rarely(t, 10))
		ret = do_step(t, op - sci_ncalls);
	else
		for (unsigned int i = 0; i < 10; i++)
			ret = do_step(t, STEP_TOUCH);
	if (fails)
		end_failure(t);
	count(op, ret);
	atomic_fetch_add(&t->worker->calls, 1);
	atomic_fetch_add(&tally->calls, 1);
}

static void *work(void *arg)
{
	struct thread *t = arg;

	t->injector.fd = -1;
	if (tally->failures)
		injector_open(&t->injector);
	while (atomic_load(&tally->calls) < tally->wanted)
		one_step(t);
	return NULL;
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (sig == SIGUSR1 || sig == SIGALRM)
		return;			/* ends a wait */
	/* an injected failure: the kernel could not write to memory of this process */
	if (failing && info->si_code == SI_KERNEL)
		return;
	if (sig == SIGBUS)
		atomic_fetch_add(&tally->bus_errors, 1);
	if (may_fault)
		siglongjmp(on_fault, 1);
	FAIL("signal %d of code %d at %p", sig, info->si_code, info->si_addr);
}

static void set_signals(void)
{
	struct sigaction action = {
		.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO,
	};

	OK(SYS(sigaction(SIGUSR1, &action, NULL)));
	OK(SYS(sigaction(SIGALRM, &action, NULL)));
	OK(SYS(sigaction(SIGSEGV, &action, NULL)));
	OK(SYS(sigaction(SIGBUS, &action, NULL)));
}

/* Every second process gives up root. */
static void become_somebody(unsigned int process)
{
	struct rlimit limit = { 4 << 20, 4 << 20 };

	if (process % 2 == 0 || geteuid() != 0)
		return;
	OK(SYS(setrlimit(RLIMIT_MEMLOCK, &limit)));
	peer_become(NOBODY, NOBODY);
	/* give the files in /proc of this process back to it */
	prctl(PR_SET_DUMPABLE, 1);
}

static void open_adapters(void)
{
	for (unsigned int i = 0; i < adapters() && nbase < ADAPTERS; i++)
		base[nbase++] = OK(adapter_open(i));
	for (unsigned int k = 0; k < POOLS; k++)
		for (unsigned int i = 0; i < SLOTS; i++)
			atomic_store(&pool[k][i], -1);
}

/* Send SIGUSR1 to each thread that has made no call since the last look. */
static void supervise(struct thread *t)
{
	uint64_t last[FUZZ_THREADS_MAX] = { 0 };

	while (atomic_load(&tally->calls) < tally->wanted) {
		poll(NULL, 0, FUZZ_TICK_MS);
		for (unsigned int i = 0; i < tally->threads; i++) {
			uint64_t now = atomic_load(&t[i].worker->calls);

			if (now == last[i])
				pthread_kill(t[i].id, SIGUSR1);
			last[i] = now;
		}
	}
}

/* Wait for all threads; signals end the last calls if they block. */
static void join_all(struct thread *t)
{
	for (unsigned int i = 0; i < tally->threads; i++) {
		struct timespec soon;

		do {
			pthread_kill(t[i].id, SIGUSR1);
			clock_gettime(CLOCK_REALTIME, &soon);
			soon.tv_nsec += FUZZ_TICK_MS * 1000000;
			soon.tv_sec += soon.tv_nsec / 1000000000;
			soon.tv_nsec %= 1000000000;
		} while (pthread_timedjoin_np(t[i].id, NULL, &soon));
	}
}

void fuzz_process(struct fuzz_tally *shared, unsigned int process,
		  uint64_t seed)
{
	static struct thread thread[FUZZ_THREADS_MAX];

	tally = shared;
	open_adapters();
	become_somebody(process);
	set_signals();
	memory = user_memory(MEMORY);
	memset(memory, 1, MEMORY);
	for (unsigned int i = 0; i < tally->threads; i++) {
		struct thread *t = &thread[i];

		t->worker = &tally->worker[process * FUZZ_THREADS_MAX + i];
		atomic_store(&t->worker->pid, getpid());
		t->rnd = seed + i * 7919;
	}
	for (unsigned int i = 0; i < tally->threads; i++)
		EQ(pthread_create(&thread[i].id, NULL, work, &thread[i]), 0);
	supervise(thread);
	join_all(thread);
	exit(0);
}
