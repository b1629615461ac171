// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Private futexes of libraries: locks of streams, OpenMP, std::atomic. The kernel keeps the
 * private futexes of each process apart. So a seccomp filter turns such a system call into
 * SIGSYS, and the handler makes the same call without FUTEX_PRIVATE_FLAG. This happens only
 * when a thread has to sleep, or to wake another one.
 *
 * A child program inherits the filter but not the handler. So the filter traps only instructions
 * in the libraries of this process. Another program has the same addresses only by chance.
 *
 * SIGSYS kills a thread that blocks it. libc takes some locks with signals blocked: those in
 * its own data, and the lock of a thread's descriptor at the end of its stack, which only the
 * thread's own process takes. So the filter traps only futexes in shared memory, and none in
 * descriptors. Thread-local variables, below the descriptor or above it, are no part of it.
 */

#include <errno.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>

#include "threads.h"

uint32_t futex_descriptor;

#if defined(__x86_64__)
#define ARCH		AUDIT_ARCH_X86_64
#define RESULT(uc)	((uc)->uc_mcontext.gregs[REG_RAX])
#define ARGUMENT(uc, i)	((uc)->uc_mcontext.gregs[(const int[]){ REG_RDI, REG_RSI, REG_RDX, \
			 REG_R10, REG_R8, REG_R9 }[i]])
#elif defined(__aarch64__)
#define ARCH		AUDIT_ARCH_AARCH64
#define RESULT(uc)	((uc)->uc_mcontext.regs[0])
#define ARGUMENT(uc, i)	((uc)->uc_mcontext.regs[i])
#endif

/* Addresses of libraries' code. A library whose upper 32 address bits differ is left out. */
struct span {
	uintptr_t from, to;
};

static int span_add(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct span *s = arg;

	(void)size;
	if (!info->dlpi_name || !*info->dlpi_name || strstr(info->dlpi_name, "libsci-threads"))
		return 0;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		if (s->to && from >> 32 != s->from >> 32)
			continue;
		s->from = !s->to || from < s->from ? from : s->from;
		s->to = from + p->p_memsz > s->to ? from + p->p_memsz : s->to;
	}
	return 0;
}

#ifdef ARCH

static long futex_call(const ucontext_t *uc)
{
	futex_t *f = (futex_t *)ARGUMENT(uc, 0);
	int op = (int)ARGUMENT(uc, 1) & ~FUTEX_PRIVATE_FLAG;
	long ret;

	if (futex_is_far(f))
		return hosts_futex(f, op, (uint32_t)ARGUMENT(uc, 2),
				   (const struct timespec *)ARGUMENT(uc, 3),
				   (uint32_t)ARGUMENT(uc, 5));
	ret = syscall(SYS_futex, f, op, ARGUMENT(uc, 2), ARGUMENT(uc, 3), ARGUMENT(uc, 4),
		      ARGUMENT(uc, 5));
	return ret < 0 ? -errno : ret;
}

/* Make a call that a filter of forward.c has trapped. */
static long other_call(int nr, const ucontext_t *uc)
{
	long args[6];

	for (unsigned int i = 0; i < 6; i++)
		args[i] = (long)ARGUMENT(uc, i);
	return forward_call(nr, args);
}

static void futex_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	int err = errno;
	long ret;

	if (info->si_code <= 0) {
		/* the first node has died, or the user has sent the signal */
		if (world_orphaned(info->si_pid))
			return;
		/* the kernel's struct sigaction: all zeroes mean the default action */
		syscall(SYS_rt_sigaction, sig, (unsigned long[4]){ 0 }, NULL, 8);
		syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid), sig);
		return;
	}
	ret = info->si_syscall == SYS_futex ? futex_call(uc) : other_call(info->si_syscall, uc);
	RESULT(uc) = ret;
	errno = err;
}

#define FIELD(f)	(uint32_t)offsetof(struct seccomp_data, f)
#define LOAD(at)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define HIGH(p)		(uint32_t)((uintptr_t)(p) >> 32)

#define RET(action)	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_##action)
#define PIECE_CODE	6u
#define CODE_MAX	(24u + PIECES_MAX * PIECE_CODE)

/* Add code that traps a call whose futex is in a shared piece outside of the global range. */
static size_t code_add_piece(struct sock_filter *code, uintptr_t from, uintptr_t to)
{
	/* if the piece is on both sides of a multiple of 4 GiB, trap only the part before it */
	uint32_t last = HIGH(from) == HIGH(to - 1) ? (uint32_t)(to - 1) : UINT32_MAX;
	const struct sock_filter piece[PIECE_CODE] = {
		LOAD(FIELD(args[0]) + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, HIGH(from), 0, 4),
		LOAD(FIELD(args[0])),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)from, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last, 1, 0),
		RET(TRAP),
	};

	memcpy(code, piece, sizeof(piece));
	return PIECE_CODE;
}

/* Return the offset of the end of a thread's descriptor in its slot. */
static uint32_t descriptor_end(void)
{
#ifdef __aarch64__
	/* behind the descriptor is the thread pointer, then thread-local variables */
	return futex_descriptor + (uint32_t)((char *)__builtin_thread_pointer() -
					     (char *)pthread_self());
#else
	return SLOT_SIZE;
#endif
}

static size_t code_make(struct sock_filter *code)
{
	struct span s = { 0 };
	const char *from, *to;
	size_t n;

	dl_iterate_phdr(span_add, &s);
	/* the last two arguments of BPF_JUMP(): instructions to skip if true, and if false */
	const struct sock_filter begin[] = {
		LOAD(FIELD(nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 9),
		LOAD(FIELD(arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 0, 7),
		LOAD(FIELD(args[1])),
		/* between machines trap the calls of process-shared objects, too */
		hosts_on ? (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0, 0, 5) :
			   (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K,
							FUTEX_PRIVATE_FLAG, 0, 5),
		LOAD(FIELD(instruction_pointer) + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, HIGH(s.from), 0, 3),
		LOAD(FIELD(instruction_pointer)),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)s.from, 0, 1),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (uint32_t)s.to, 0, 1),
		RET(ALLOW),
		/* trap futexes in the global range, but not those in a thread's descriptor */
		LOAD(FIELD(args[0]) + 4),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, HIGH(GLOBAL_BASE), 0, 9),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, HIGH(GLOBAL_END), 8, 0),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, HIGH(GLOBAL_STACKS), 0, 5),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, HIGH(GLOBAL_HEAP), 4, 0),
		LOAD(FIELD(args[0])),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SLOT_SIZE - 1),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, futex_descriptor, 0, 1),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, descriptor_end(), 0, 1),
		RET(TRAP),
		RET(ALLOW),
	};
	memcpy(code, begin, sizeof(begin));
	n = sizeof(begin) / sizeof(begin[0]);
	for (unsigned int i = 0; memory_piece(i, &from, &to); i++)
		if (!is_global(from))
			n += code_add_piece(code + n, (uintptr_t)from, (uintptr_t)to);
	code[n++] = (struct sock_filter)RET(ALLOW);
	return n;
}

bool futex_share(void)
{
	struct sigaction sa = { .sa_sigaction = futex_trap,
				.sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART };
	static struct sock_filter code[CODE_MAX];
	struct sock_fprog prog = { (unsigned short)code_make(code), code };

	sigemptyset(&sa.sa_mask);
	if (REAL(sigaction)(SIGSYS, &sa, NULL))
		return false;
	if (!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog))
		return true;
	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	    !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog))
		return true;
	world_say("no system call filter (%s): threads of several nodes that use one stream may hang",
		  strerror(errno));
	return true;
}

#else

bool futex_share(void)
{
	return true;
}

#endif
