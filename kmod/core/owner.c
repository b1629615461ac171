// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Who may use a segment. */

#include <linux/cred.h>

#include "owner.h"

void sci_credentials(struct sci_msg_connect *who)
{
	const struct cred *cred = current_cred();
	const struct group_info *gi = cred->group_info;
	int i;

	who->type = SCI_MSG_CONNECT;
	who->uid = cpu_to_le32(from_kuid(&init_user_ns, cred->euid));
	who->gid = cpu_to_le32(from_kgid(&init_user_ns, cred->egid));
	who->groups = min(gi->ngroups, SCI_MSG_GROUPS);
	for (i = 0; i < who->groups; i++)
		who->group[i] = cpu_to_le32(from_kgid(&init_user_ns,
						      gi->gid[i]));
}

static bool in_group(const struct sci_msg_connect *who, u32 gid)
{
	int i;

	if (le32_to_cpu(who->gid) == gid)
		return true;
	for (i = 0; i < min_t(int, who->groups, SCI_MSG_GROUPS); i++)
		if (le32_to_cpu(who->group[i]) == gid)
			return true;
	return false;
}

u8 sci_owner_permits(const struct sci_owner *o,
		     const struct sci_msg_connect *who)
{
	u32 uid = le32_to_cpu(who->uid);

	if (!uid)
		return 6;
	if (uid == o->uid)
		return o->mode >> 6 & 6;
	if (in_group(who, o->gid))
		return o->mode >> 3 & 6;
	return o->mode & 6;
}

u8 sci_owner_permits_current(const struct sci_owner *o)
{
	struct sci_msg_connect who = {};

	sci_credentials(&who);
	return sci_owner_permits(o, &who);
}

void sci_owner_init(struct sci_owner *o, u16 mode)
{
	o->uid = from_kuid(&init_user_ns, current_euid());
	o->gid = from_kgid(&init_user_ns, current_egid());
	o->mode = mode;
}
