// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Limits of the objects of an adapter that one user can hold. */

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>

#include "adapter_private.h"
#include "att.h"
#include "user.h"

static unsigned int user_connections = 65536;
module_param(user_connections, uint, 0644);
MODULE_PARM_DESC(user_connections,
		 "connections one user can have through one adapter (65536)");

static unsigned int user_percent = 90;
module_param(user_percent, uint, 0644);
MODULE_PARM_DESC(user_percent,
		 "percent of an adapter's table entries and export slots that one user can hold (90)");

/**
 * struct sci_user - a user who holds objects of an adapter
 * @id: user id, the index in sci_adapter.holders
 * @held: number of objects of each kind
 */
struct sci_user {
	u32 id;
	u64 held[SCI_USER_KINDS];
};

/* Return the number of objects of a kind that the adapter can have; 0: no limit. */
static u64 adapter_count_limit(const struct sci_adapter *a, enum sci_user_kind kind)
{
	if (kind == SCI_USER_EXPORTS)
		return a->desc.exports;
	return a->desc.att ? sci_att_entries(a->desc.att) : 0;
}

static u64 user_limit(const struct sci_adapter *a, enum sci_user_kind kind)
{
	u64 n;

	if (kind == SCI_USER_CONNECTIONS)
		return READ_ONCE(user_connections);
	n = adapter_count_limit(a, kind);
	return n ? div_u64(n * READ_ONCE(user_percent), 100) : U64_MAX;
}

static struct sci_user *user_find(struct sci_adapter *a, u32 id)
{
	struct sci_user *user = xa_load(&a->holders, id);
	int ret;

	if (user)
		return user;
	user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
	if (!user)
		return ERR_PTR(-ENOMEM);
	user->id = id;
	ret = xa_insert(&a->holders, id, user, GFP_KERNEL_ACCOUNT);
	if (ret) {
		kfree(user);
		return ERR_PTR(ret == -EBUSY ? -ENOMEM : ret);
	}
	return user;
}

static void user_forget_unused(struct sci_adapter *a, struct sci_user *user)
{
	if (memchr_inv(user->held, 0, sizeof(user->held)))
		return;
	xa_erase(&a->holders, user->id);
	kfree(user);
}

struct sci_user *sci_user_charge(struct sci_adapter *a,
				 enum sci_user_kind kind, u64 n)
{
	u64 limit = user_limit(a, kind);
	struct sci_user *user;

	lockdep_assert_held(&a->lock);
	if (capable(CAP_SYS_RESOURCE))
		return NULL;
	user = user_find(a, from_kuid(&init_user_ns, current_euid()));
	if (IS_ERR(user))
		return user;
	if (n > limit || user->held[kind] > limit - n) {
		user_forget_unused(a, user);
		return ERR_PTR(-ENOSPC);
	}
	user->held[kind] += n;
	return user;
}

void sci_user_uncharge(struct sci_adapter *a, struct sci_user *user,
		       enum sci_user_kind kind, u64 n)
{
	lockdep_assert_held(&a->lock);
	if (!user)
		return;
	user->held[kind] -= n;
	user_forget_unused(a, user);
}
