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
 * pvmgroupop() - send a request about groups to the first daemon
 * @x: an instance, a tid or a count, depending on @op
 * @tids: GROUP_TIDS: the members by instance; 0: no member. The caller frees the array.
 *
 * Return: the answer; GROUP_TIDS: the number of @tids; or a PVM error.
 */
int pvmgroupop(enum group_op op, const char *group, int x, int **tids);

extern int pvmmytid, pvmmyctx, pvm_errno;

#endif
