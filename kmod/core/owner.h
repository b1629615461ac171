/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Permissions of a segment: owner and mode, like those of a file. */
#ifndef SCI_OWNER_H
#define SCI_OWNER_H

#include "proto.h"

/**
 * struct sci_owner - ids as numbers of the initial user namespace
 * @uid: user
 * @gid: group
 * @mode: rw bits
 */
struct sci_owner {
	u32 uid;
	u32 gid;
	u16 mode;
};

/**
 * struct sci_caller - a process that connects
 * @msg: the caller's description in a message of its node
 * @cred: credentials of a caller on this node, with all its groups; NULL for a caller on
 *	another node
 */
struct sci_caller {
	const struct sci_msg_connect *msg;
	const struct cred *cred;
};

/* Return the granted permissions: 4 read, 2 write. */
u8 sci_owner_permits(const struct sci_owner *o, const struct sci_caller *who);
u8 sci_owner_permits_current(const struct sci_owner *o);

/* Fill in the ids of the current process, which a CONNECT carries. */
void sci_credentials(struct sci_msg_connect *who);

/* Make the current process the owner, with @mode. */
void sci_owner_init(struct sci_owner *o, u16 mode);

#endif
