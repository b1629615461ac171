/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Facts about the host, for every layer: clock, limits, environment, memory, barriers. */
#ifndef LIBSCI_HOST_H
#define LIBSCI_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SCI_FD_ROOM_MAX		8

/* Return the nanoseconds of a clock that cannot be set. */
static inline uint64_t sci_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Return the milliseconds of the same clock. */
static inline uint64_t sci_now_ms(void)
{
	return sci_now_ns() / 1000000;
}

/**
 * sci_raise_fd_limit() - raise the soft limit of descriptors to the hard limit
 *
 * Call it only after the system has refused a descriptor: a program that uses select()
 * has a reason for a low limit.
 *
 * Return: 0; -EMFILE: the soft limit was the hard limit already.
 */
int sci_raise_fd_limit(void);

/**
 * sci_fd_room() - raise the descriptor limit if @n more descriptors would exceed it
 *
 * Use it before a call that cannot be repeated. Context: the caller holds the lock that fork()
 * takes, because a child must not inherit the descriptors that this call opens for a moment.
 */
void sci_fd_room(unsigned int n);

/* ---- environment ---- */

/*
 * Print on standard error that @value is not allowed for the variable @var; @want says
 * what is allowed, or what to do. Return: -EINVAL.
 */
int sci_env_bad(const char *var, const char *value, const char *want);

/*
 * Read a number from @min to @max from the variable @var. If @var is not set, @value does not
 * change. Return: 0; -EINVAL, after a message with @want: the value is invalid.
 */
int sci_env_number(const char *var, unsigned int *value, int base,
		   unsigned int min, unsigned int max, const char *want);

/* ---- memory ---- */

size_t sci_page_size(void);

/* Open a file of /proc or /sys for reading. If no descriptor is free, raise the soft limit. */
FILE *sci_open_kernel_file(const char *path);

/*
 * Return whether the kernel lets processes of one user read each other's memory, also if neither
 * has started the other.
 */
bool sci_processes_are_readable(void);

/*
 * Move a mapping to @to: mremap() with MREMAP_FIXED. Libraries of other networks in the process may
 * replace libc's mremap(), and that of UCX 1.13 ignores @to. Return: @to; MAP_FAILED: errno is set.
 */
static inline void *sci_map_move(void *from, size_t old_len, size_t len, void *to)
{
	return (void *)syscall(SYS_mremap, from, old_len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
			       to);
}

/*
 * Return: 0 if all of [@addr, @addr + @len) is private, anonymous, writable and no stack
 * (sci_check_mapped(): if all of it is readable and writable); else -EFAULT.
 */
int sci_check_anonymous(uintptr_t addr, size_t len);
int sci_check_mapped(uintptr_t addr, size_t len);

/* Return the inode of the file that is mapped at @addr, or 0. */
unsigned long sci_mapping_inode(const void *addr);

/*
 * Return: 0 if all of [@addr, @addr + @len) maps the start of the file @inode, or with @anonymous
 * is private anonymous writable memory elsewhere; -EFAULT: it does not; or another error: /proc
 * cannot be read.
 */
int sci_check_file(const void *addr, size_t len, unsigned long inode, bool anonymous);

/*
 * Call @fn for each mapping in [@addr, @addr + @len) of the file @inode whose offset in the file is
 * its offset in the range. @fn may replace the mapping. The call allocates no memory.
 * Return: 0, or -errno: /proc cannot be read.
 */
int sci_each_mapping(void *addr, size_t len, unsigned long inode,
		     void (*fn)(void *start, size_t len));

/* ---- the CPU ---- */

/*
 * Let other threads run on this CPU. Return whether one has run instead of the calling thread since
 * the thread's last call. The duration of a yield does not tell: two processes that wait for each
 * other run for only about a microsecond each.
 */
bool sci_cpu_yield(void);

/* ---- a barrier in other processes ---- */

/**
 * sci_wake_init() - take part in the wake barriers of other processes
 * @takes_part: set to true if SCI_MEMBARRIER and the kernel (or its seccomp filter) allow the
 *	process to take part
 *
 * The call is for one address space: the child of a fork() has to call again.
 *
 * Return: 0; -EINVAL, after a message: SCI_MEMBARRIER is invalid.
 */
int sci_wake_init(bool *takes_part);

/*
 * Make each CPU that runs a thread of a participating process do a full barrier. Other CPUs did
 * a full barrier when they switched away from such a thread.
 */
int sci_wake_barrier(void);

#endif
