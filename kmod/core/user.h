/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: limits of one user
 *
 * An adapter has few connections, slots for exported segments and entries of the address
 * translation table, and all users of a machine share them. A user without CAP_SYS_RESOURCE
 * gets at most a part of each, so that the rest is left for other users. Connections and exports
 * are charged to the user who asks for them. A mapping is charged to the user whose import was
 * the first to need it.
 */
#ifndef SCI_USER_H
#define SCI_USER_H

#include <linux/types.h>

struct sci_adapter;
struct sci_user;

enum sci_user_kind {
	SCI_USER_CONNECTIONS,	/* connections of clients */
	SCI_USER_EXPORTS,
	SCI_USER_ENTRIES,	/* entries of the address translation table */
	SCI_USER_KINDS
};

/**
 * sci_user_charge() - charge the caller's user for objects of an adapter
 * @a: adapter; @a->lock is held
 * @kind: kind of the objects
 * @n: number of objects
 *
 * Return: the argument of sci_user_uncharge(), which is NULL for a caller without limits; or an
 * ERR_PTR: -ENOSPC: the user would exceed the limit; -ENOMEM.
 */
struct sci_user *sci_user_charge(struct sci_adapter *a,
				 enum sci_user_kind kind, u64 n);

/**
 * sci_user_uncharge() - end a charge of a user
 * @a: adapter; @a->lock is held
 * @user: result of sci_user_charge()
 * @kind: kind of the objects, as in sci_user_charge()
 * @n: number of objects
 */
void sci_user_uncharge(struct sci_adapter *a, struct sci_user *user,
		       enum sci_user_kind kind, u64 n);

#endif
