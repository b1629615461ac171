/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Requests of libgpvm3 to libpvm3. */
#ifndef LIBSCI_PVM_GROUPOP_H
#define LIBSCI_PVM_GROUPOP_H

enum group_op {
	GROUP_JOIN, GROUP_LEAVE, GROUP_INST, GROUP_TID, GROUP_SIZE, GROUP_BARRIER,
	GROUP_TIDS, GROUP_FREEZE
};

/*
 * pvmgroupop() - ask the daemon that keeps the groups
 * @x: an instance, a tid or a count, as @op needs it
 * @tids: GROUP_TIDS: the members by instance, 0 where there is none; the caller frees it
 *
 * Return: the answer; GROUP_TIDS: the number of @tids; or a PVM error.
 */
int pvmgroupop(enum group_op op, const char *group, int x, int **tids);

extern int pvmmyctx, pvm_errno;

#endif
