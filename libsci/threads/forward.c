// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * System calls of threads on other nodes than node 0. A seccomp filter of each such thread lets
 * pass the calls about the thread and its memory. Any other call raises SIGSYS. The handler
 * (futex.c) then lets node 0 make the call: descriptors, the working directory and children are those
 * of node 0, and the pointers of the call mean the same memory there.
 */

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "hosts.h"

#define PROXY_STACK	((size_t)256 << 10)	/* without thread-local variables */

/* Return the size of the smallest stack of a thread, with its thread-local variables. */
size_t __pthread_get_minstack(const pthread_attr_t *attr);

struct forward {
	struct call call;
	struct thread *self;
	void (*fn)(void *arg);
	void *arg;
	bool failed;
	futex_t done;
};

struct system_call {
	int nr;
	const long *args;
	long ret;
};

/* ---- node 0 ---- */

static void forward_end(struct forward *f)
{
	atomic_store(&f->done, 1);
	futex_wake(&f->done, 1);
}

/* Run the function for thread @f->self, which waits: it allocates global memory, for example. */
static void *proxy_main(void *arg)
{
	struct forward *f = arg;

	self_thread = f->self;
	f->fn(f->arg);
	self_thread = NULL;
	forward_end(f);
	return NULL;
}

static void system_call_make(void *arg)
{
	struct system_call *c = arg;
	const long *a = c->args;
	long ret = syscall(c->nr, a[0], a[1], a[2], a[3], a[4], a[5]);

	c->ret = ret < 0 ? -errno : ret;
}

/* A call may wait for ever, so it has a thread of its own. Context: the service thread. */
static void forward_serve(void *arg)
{
	struct forward *f = arg;
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, PROXY_STACK + REAL(__pthread_get_minstack)(&attr));
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (!REAL(pthread_create)(&t, &attr, proxy_main, f))
		return;
	f->failed = true;
	forward_end(f);
}

/* ---- other nodes ---- */

bool forward_run(void (*fn)(void *arg), void *arg)
{
	struct forward f = { .self = self_thread, .fn = fn, .arg = arg };

	node_post(0, &f.call, forward_serve, &f);
	while (!atomic_load(&f.done))
		futex_wait(&f.done, 0);
	return !f.failed;
}

long forward_call(int nr, const long args[6])
{
	struct system_call c = { .nr = nr, .args = args };

	if (nr == SYS_mmap) {
		world_say("only threads on node %u may load libraries or map files", node_id(0));
		return -ENODEV;
	}
	return forward_run(system_call_make, &c) ? c.ret : -EAGAIN;
}

#if defined(__x86_64__)
#define ARCH	AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH	AUDIT_ARCH_AARCH64
#endif

#ifdef ARCH

/* Calls about the calling thread, its memory, signals and time. futex.c handles futexes. */
static const uint16_t local_calls[] = {
	SYS_futex, SYS_munmap, SYS_mprotect, SYS_madvise, SYS_mremap, SYS_brk,
	SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigsuspend,
	SYS_rt_sigpending, SYS_rt_sigtimedwait, SYS_sigaltstack, SYS_tgkill, SYS_tkill,
	SYS_rt_tgsigqueueinfo,
	SYS_exit, SYS_exit_group, SYS_gettid, SYS_getpid, SYS_getppid,
	SYS_sched_yield, SYS_sched_setaffinity, SYS_sched_getaffinity, SYS_sched_setscheduler,
	SYS_sched_getscheduler, SYS_sched_setparam, SYS_sched_getparam,
	SYS_sched_get_priority_min, SYS_sched_get_priority_max, SYS_getcpu,
	SYS_set_robust_list, SYS_get_robust_list, SYS_rseq, SYS_set_tid_address, SYS_membarrier,
	SYS_nanosleep, SYS_clock_nanosleep, SYS_clock_gettime, SYS_clock_getres,
	SYS_gettimeofday, SYS_times, SYS_getrusage, SYS_getrandom, SYS_sysinfo, SYS_uname,
	SYS_prctl, SYS_seccomp, SYS_restart_syscall,
#ifdef __x86_64__
	SYS_arch_prctl, SYS_time, SYS_pause,
#endif
};

/* Calls that node 0 cannot make for another thread. process.c replaces the functions of libc. */
static const uint16_t refused_calls[] = {
	SYS_clone, SYS_clone3, SYS_execve, SYS_execveat,
#ifdef __x86_64__
	SYS_fork, SYS_vfork,
#endif
};

#define REFUSED_N	(sizeof(refused_calls) / sizeof(refused_calls[0]))
#define LOCAL_N		(sizeof(local_calls) / sizeof(local_calls[0]))
#define LOAD(f)		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, f))
#define IF(k, yes, no)	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, yes, no)
#define RET(action)	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_##action)

void forward_begin(void)
{
	const struct sock_filter begin[] = {
		LOAD(arch),
		IF(ARCH, 1, 0),
		RET(KILL_PROCESS),
		LOAD(nr),
		IF(SYS_mmap, 0, 4),
		LOAD(args[3]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 1),
		RET(ALLOW),
		RET(TRAP),
	};
	struct sock_filter code[sizeof(begin) / sizeof(begin[0]) +
				2 * (LOCAL_N + REFUSED_N) + 1];
	struct sock_fprog prog = { 0, code };
	unsigned short n = 0;

	for (size_t i = 0; i < sizeof(begin) / sizeof(begin[0]); i++)
		code[n++] = begin[i];
	for (size_t i = 0; i < LOCAL_N; i++) {
		code[n++] = (struct sock_filter)IF(local_calls[i], 0, 1);
		code[n++] = (struct sock_filter)RET(ALLOW);
	}
	for (size_t i = 0; i < REFUSED_N; i++) {
		code[n++] = (struct sock_filter)IF(refused_calls[i], 0, 1);
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
							 SECCOMP_RET_ERRNO | ENOSYS);
	}
	code[n++] = (struct sock_filter)RET(TRAP);
	prog.len = n;
	if (!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog))
		return;
	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	    !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog))
		return;
	world_say("node %u: no system call filter: the program ends", node_id(self_node));
	hosts_abort();
}

#else

void forward_begin(void)
{
	world_say("threads on several machines are not supported on this processor");
	hosts_abort();
}

#endif
