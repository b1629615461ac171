/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: start-up of the processes of a job
 *
 * A *job* is a set of processes that a launcher starts together. Each process has a *rank*, from 0
 * to size - 1. Before the processes can send messages, the launcher sends each process its rank,
 * and exchanges the addresses of their endpoints. The launcher also reports the death of ranks.
 *
 * sci_boot_open() finds the launcher:
 *
 *  1. `sci run`: SCI_BOOT=FD:INODE names an inherited socket. Only processes that inherit the
 *     descriptor can act as the rank: the socket has no name and no port.
 *  2. A PMIx server (mpirun, srun): PMIX_NAMESPACE and PMIX_RANK are set. Only then does
 *     the library load libpmix.
 *  3. Without a launcher, the process is alone: rank 0 of 1.
 *
 * Threads: one call at a time for each struct sci_boot. In the child of a fork(), all calls that
 * need the launcher return -ENOTCONN.
 */
#ifndef LIBSCI_TEAM_BOOT_H
#define LIBSCI_TEAM_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCI_BOOT_KEY_SIZE	16	/* bytes of the job's secret */
#define SCI_BOOT_NAME_MAX	63	/* characters of the name of a published value */
#define SCI_BOOT_VALUE_MAX	4096	/* bytes of a published value */
#define SCI_BOOT_GATHER_MAX	65536	/* bytes of each rank in an all-gather */
#define SCI_BOOT_RANKS_MAX	65536

struct sci_boot;

/**
 * struct sci_boot_info - description of a job and of a process in it
 * @rank, @size: rank of this process, and number of ranks
 * @local_rank, @local_size: the same among the ranks on this machine
 * @nodes: the node of each rank, as the launcher placed it; 0: unknown to the launcher, and found
 *	in the address of the rank's endpoint
 * @job: differs between jobs that run at the same time; 0 if the process is alone
 * @key: a random secret of the job; the same in all ranks
 * @launched: whether a launcher started the process
 */
struct sci_boot_info {
	unsigned int rank;
	unsigned int size;
	unsigned int local_rank;
	unsigned int local_size;
	const unsigned int *nodes;
	uint64_t job;
	uint8_t key[SCI_BOOT_KEY_SIZE];
	bool launched;
};

/**
 * sci_boot_open() - join the job
 * @boot: is set; release it with sci_boot_close()
 * @socket: NULL: find the launcher; else the value of SCI_BOOT to use
 *
 * Block until the launcher answers. With `sci run` the answer does not depend on other
 * ranks; with PMIx all ranks have to call. A process may join again after it has left.
 *
 * Return: 0; -ENOENT: @socket names no socket of a launcher; -EBUSY: the process has joined
 * already; -EPROTO: the launcher's protocol has another version; -ECONNRESET: the launcher has
 * ended; -ENOSYS: a PMIx server has started the process, but libpmix cannot be loaded (standard
 * error says why); -ENOMEM.
 */
int sci_boot_open(struct sci_boot **boot, const char *socket);

/* Return facts about the job; valid until sci_boot_close(). */
const struct sci_boot_info *sci_boot_info(const struct sci_boot *boot);

/**
 * sci_boot_gather() - exchange bytes with all ranks
 * @mine: @len bytes of this rank
 * @all: receives size * @len bytes, in the order of ranks; not used if @len is 0
 * @len: up to SCI_BOOT_GATHER_MAX, the same in all ranks
 *
 * This is a collective call: it returns when all ranks have called it.
 *
 * Return: 0; -ECONNRESET: a rank has left or died before it called, or the launcher has
 * ended (all remaining ranks get this error, now and in later calls); -EINVAL: @len is too
 * large, or differs between ranks; -ENOMEM.
 */
int sci_boot_gather(struct sci_boot *boot, const void *mine, void *all, size_t len);

/**
 * sci_boot_idle() - name a function to call while sci_boot_gather() or sci_boot_get() waits
 * @fn: is called with @arg every 10 ms; NULL: none. During sci_boot_get(), it may call sci_boot_died().
 *
 * Some servers of PMIx wait themselves in sci_boot_get(): then @fn is not called.
 */
void sci_boot_idle(struct sci_boot *boot, void (*fn)(void *arg), void *arg);

/* Wait until all ranks have called sci_boot_barrier(). Return: as for sci_boot_gather(). */
int sci_boot_barrier(struct sci_boot *boot);

/**
 * sci_boot_publish() - publish a value for other ranks
 * @name: up to SCI_BOOT_NAME_MAX characters; a second value of a name replaces the first
 * @value: up to SCI_BOOT_VALUE_MAX bytes
 *
 * Return: 0; -EINVAL: @name or @value is too long; -ECONNRESET: the launcher has ended.
 */
int sci_boot_publish(struct sci_boot *boot, const char *name, const void *value, size_t len);

/**
 * sci_boot_get() - wait for a value that a rank publishes
 * @rank: the publishing rank
 * @len: the size of @value; is set to the length of the published value
 *
 * Block until @rank publishes the value.
 *
 * Return: 0; -EINVAL: there is no such rank, or the name is not valid; -EMSGSIZE: the value is
 * longer, and *@len is its length; -ECONNRESET: the rank has left or died without
 * publishing, or the launcher has ended.
 */
int sci_boot_get(struct sci_boot *boot, unsigned int rank, const char *name, void *value,
		 size_t *len);

/**
 * sci_boot_fd() - return a descriptor that becomes readable when a rank dies
 *
 * The library owns the descriptor: poll it, but do not read or close it. Other calls may have read
 * a death from the descriptor already: before a poll, call sci_boot_died() until it returns
 * -EAGAIN.
 *
 * Return: the descriptor, or -1 if the process is alone.
 */
int sci_boot_fd(const struct sci_boot *boot);

/**
 * sci_boot_died() - get the next rank that has died
 * @rank: is set; each death is reported once
 *
 * The call never blocks. A rank has died when its process ended without sci_boot_close().
 *
 * Return: 0; -EAGAIN: there is no unreported death; -ECONNRESET: the launcher has ended and
 * will report no more deaths.
 */
int sci_boot_died(struct sci_boot *boot, unsigned int *rank);

/*
 * Return false if a rank has left or died since sci_boot_open(): no gather can complete any more.
 * The function does not read from the launcher: sci_boot_died() does.
 */
bool sci_boot_complete(const struct sci_boot *boot);

/**
 * sci_boot_abort() - end the whole job
 * @status: exit status of the launcher, from 0 to 255
 *
 * End this process. The launcher ends the other ranks.
 */
__attribute__((noreturn)) void sci_boot_abort(struct sci_boot *boot, int status);

/**
 * sci_boot_close() - leave the job
 *
 * The call does not wait for other ranks. NULL is ignored.
 */
void sci_boot_close(struct sci_boot *boot);

#endif
