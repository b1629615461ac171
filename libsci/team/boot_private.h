/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* The interface of the implementations for each kind of launcher. boot.c chooses one of them. */
#ifndef LIBSCI_TEAM_BOOT_PRIVATE_H
#define LIBSCI_TEAM_BOOT_PRIVATE_H

#include <sys/types.h>

#include "libsci/team/boot.h"

/* The implementation of the calls sci_boot_*(). boot.c has checked their arguments. */
struct boot_ops {
	int (*gather)(struct sci_boot *boot, const void *mine, void *all, size_t len);
	int (*publish)(struct sci_boot *boot, const char *name, const void *value,
		       size_t len);
	int (*get)(struct sci_boot *boot, unsigned int rank, const char *name,
		   void *value, size_t *len);
	int (*fd)(const struct sci_boot *boot);
	int (*died)(struct sci_boot *boot, unsigned int *rank);
	bool (*complete)(const struct sci_boot *boot);
	void (*abort)(struct sci_boot *boot, int status);
	/* leave the job unless @forked; free @boot and its memory */
	void (*close)(struct sci_boot *boot, bool forked);
};

struct sci_boot {
	const struct boot_ops *ops;
	struct sci_boot_info info;
	unsigned int *nodes;		/* info.nodes; boot.c frees it */
	pid_t pid;			/* the process that has joined */
	void (*idle)(void *arg);	/* of sci_boot_idle() */
	void *idle_arg;
};

/*
 * Wait for @events of poll(). With sci_boot_idle(), call its function, and wait for 10 ms only.
 * Return 0 or -errno.
 */
int boot_wait(struct sci_boot *boot, int fd, short events);

/* Return -ENOENT if no launcher of this kind has started the process. */
int boot_socket_open(struct sci_boot **boot, const char *value);
int boot_pmix_open(struct sci_boot **boot);

#endif
