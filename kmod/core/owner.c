// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Permissions of a segment: see owner.h. */

#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "owner.h"

/*
 * Return whether the process may override modes. Capabilities in a user namespace of its
 * own do not count outside of it.
 */
static bool owner_current_overrides(void)
{
	return ns_capable_noaudit(&init_user_ns, CAP_DAC_OVERRIDE);
}

void sci_credentials(struct sci_msg_connect *who)
{
	const struct cred *cred = current_cred();
	const struct group_info *gi = cred->group_info;
	int i;

	who->type = SCI_MSG_CONNECT;
	who->flags = owner_current_overrides() ? SCI_MSG_OVERRIDES : 0;
	who->uid = cpu_to_le32(from_kuid(&init_user_ns, cred->euid));
	who->gid = cpu_to_le32(from_kgid(&init_user_ns, cred->egid));
	who->groups = min(gi->ngroups, SCI_MSG_GROUPS);
	for (i = 0; i < who->groups; i++)
		who->group[i] = cpu_to_le32(from_kgid(&init_user_ns,
						      gi->gid[i]));
}

static bool owner_in_group(const struct sci_msg_connect *who, u32 gid)
{
	int i;

	if (le32_to_cpu(who->gid) == gid)
		return true;
	for (i = 0; i < min_t(int, who->groups, SCI_MSG_GROUPS); i++)
		if (le32_to_cpu(who->group[i]) == gid)
			return true;
	return false;
}

static u8 owner_mode_permits(const struct sci_owner *o, bool owner, bool group)
{
	return o->mode >> (owner ? 6 : group ? 3 : 0) & 6;
}

u8 sci_owner_permits_current(const struct sci_owner *o)
{
	kuid_t uid = make_kuid(&init_user_ns, o->uid);
	kgid_t gid = make_kgid(&init_user_ns, o->gid);

	if (owner_current_overrides())
		return 6;
	return owner_mode_permits(o, uid_eq(current_euid(), uid),
				  in_egroup_p(gid));
}

u8 sci_owner_permits(const struct sci_owner *o, const struct sci_caller *who)
{
	const struct sci_msg_connect *msg = who->msg;
	const struct cred *old;
	u8 access;

	if (who->cred) {
		old = override_creds(who->cred);
		access = sci_owner_permits_current(o);
		revert_creds(old);
		return access;
	}
	if (msg->flags & SCI_MSG_OVERRIDES)
		return 6;
	return owner_mode_permits(o, le32_to_cpu(msg->uid) == o->uid,
				  owner_in_group(msg, o->gid));
}

void sci_owner_init(struct sci_owner *o, u16 mode)
{
	o->uid = from_kuid(&init_user_ns, current_euid());
	o->gid = from_kgid(&init_user_ns, current_egid());
	o->mode = mode;
}
