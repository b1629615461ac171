// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Faults of sci_loop: the decisions about them, and their files in debugfs. */

#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "loop.h"

#define REPORTS_MAX	1000000		/* errors reported by one write at most */
#define PPM		1000000
#define HOLD_LIMIT	(30 * HZ)	/* longest time that an unmap is held back */

bool loop_chance(struct loop_node *n, const u32 *ppm)
{
	u32 limit = READ_ONCE(*ppm), r;

	if (!limit)
		return false;
	spin_lock(&n->fault.lock);
	r = prandom_u32_state(&n->fault.rnd);
	spin_unlock(&n->fault.lock);
	return r % PPM < limit;
}

/* ---- damaged messages ---- */

/*
 * The functions below change bytes of a message. The session's header stays valid, so the
 * receiver's core has to check the message.
 */

static void message_set_byte(struct loop_node *n, u8 *body)
{
	u32 r = prandom_u32_state(&n->fault.rnd);

	body[r % SCI_MESSAGE_SIZE] = r >> 16;
}

static void message_set_word(struct loop_node *n, u8 *body)
{
	static const __le32 words[] = {
		0, cpu_to_le32(1), cpu_to_le32(2), cpu_to_le32(3),
		cpu_to_le32(PAGE_SIZE), cpu_to_le32(S32_MAX),
		cpu_to_le32(BIT(31)), cpu_to_le32(U32_MAX),
	};
	u32 r = prandom_u32_state(&n->fault.rnd);
	u32 at = r % (SCI_MESSAGE_SIZE / sizeof(*words)) * sizeof(*words);

	memcpy(body + at, &words[(r >> 16) % ARRAY_SIZE(words)], sizeof(*words));
}

static void message_damage(struct loop_node *n, u8 *body)
{
	lockdep_assert_held(&n->fault.lock);
	do {
		switch (prandom_u32_state(&n->fault.rnd) % 4) {
		case 0:		/* any type, also 0 and a type that does not exist */
			body[0] = prandom_u32_state(&n->fault.rnd) %
				  (SCI_MSG_LEFT + 2);
			break;
		case 1:
			message_set_byte(n, body);
			break;
		case 2:
			message_set_word(n, body);
			break;
		case 3:		/* send an earlier message again */
			memcpy(body, n->fault.last, SCI_MESSAGE_SIZE);
			break;
		}
	} while (prandom_u32_state(&n->fault.rnd) % 2);
	n->fault.damaged++;
}

static void message_patch(struct loop_node *n, u8 *body)
{
	struct loop_patch *patch = &n->fault.patch;

	lockdep_assert_held(&n->fault.lock);
	if (!patch->type || patch->type != body[0])
		return;
	memcpy(body + patch->offset, &patch->value, patch->size);
	patch->type = 0;
	n->fault.damaged++;
}

void loop_damage(struct loop_node *from, struct sci_packet *packet)
{
	bool damage = loop_chance(from, &from->fault.damage);
	u8 sent[SCI_MESSAGE_SIZE];

	if (packet->type != SCI_PACKET_DATA)
		return;
	memcpy(sent, packet->body, sizeof(sent));
	spin_lock(&from->fault.lock);
	message_patch(from, packet->body);
	if (damage)
		message_damage(from, packet->body);
	memcpy(from->fault.last, sent, sizeof(sent));
	spin_unlock(&from->fault.lock);
}

bool loop_withholds(struct loop_node *from, const struct sci_packet *p)
{
	u32 type = READ_ONCE(from->fault.withhold);

	return type && p->type == SCI_PACKET_DATA && p->body[0] == type;
}

/* ---- slow unmaps ---- */

void loop_unmap_hold(struct loop_node *n)
{
	if (!READ_ONCE(n->fault.hold_unmap))
		return;
	atomic_inc(&n->fault.unmaps_held);
	wait_event_timeout(n->fault.unmap_wait,
			   !READ_ONCE(n->fault.hold_unmap), HOLD_LIMIT);
	atomic_dec(&n->fault.unmaps_held);
}

/* ---- debugfs ---- */

static int fault_link_get(void *data, u64 *val)
{
	*val = loop_link_up(data);
	return 0;
}

static int fault_link_set(void *data, u64 val)
{
	if (val > 1)
		return -EINVAL;
	loop_set_link(data, val);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(fault_link_fops, fault_link_get, fault_link_set,
			 "%llu\n");

static int fault_seed_get(void *data, u64 *val)
{
	struct loop_node *n = data;

	spin_lock(&n->fault.lock);
	*val = n->fault.seed;
	spin_unlock(&n->fault.lock);
	return 0;
}

static int fault_seed_set(void *data, u64 val)
{
	struct loop_node *n = data;

	spin_lock(&n->fault.lock);
	n->fault.seed = val;
	prandom_seed_state(&n->fault.rnd, val);
	spin_unlock(&n->fault.lock);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(fault_seed_fops, fault_seed_get, fault_seed_set,
			 "%llu\n");

static int fault_report(struct loop_node *n, u64 errors, bool fatal)
{
	if (errors > REPORTS_MAX)
		return -EINVAL;
	while (errors--) {
		sci_adapter_error(n->adapter, fatal);
		cond_resched();
	}
	return 0;
}

static int fault_retriable_set(void *data, u64 val)
{
	return fault_report(data, val, false);
}
DEFINE_DEBUGFS_ATTRIBUTE(fault_retriable_fops, NULL, fault_retriable_set,
			 "%llu\n");

static int fault_fatal_set(void *data, u64 val)
{
	return fault_report(data, val, true);
}
DEFINE_DEBUGFS_ATTRIBUTE(fault_fatal_fops, NULL, fault_fatal_set, "%llu\n");

static int fault_hold_unmap_get(void *data, u64 *val)
{
	struct loop_node *n = data;

	*val = READ_ONCE(n->fault.hold_unmap);
	return 0;
}

static int fault_hold_unmap_set(void *data, u64 val)
{
	struct loop_node *n = data;

	if (val > 1)
		return -EINVAL;
	WRITE_ONCE(n->fault.hold_unmap, val);
	wake_up_all(&n->fault.unmap_wait);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(fault_hold_unmap_fops, fault_hold_unmap_get,
			 fault_hold_unmap_set, "%llu\n");

/* Parse TYPE OFFSET SIZE VALUE, each a number. A later write replaces an earlier one. */
static ssize_t fault_patch_write(struct file *file, const char __user *buf,
				 size_t len, loff_t *pos)
{
	struct loop_node *n = file->private_data;
	struct loop_patch patch = { 0 };
	char text[64] = "";
	u64 value;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buf, len))
		return -EFAULT;
	if (sscanf(text, "%hhu %hhu %hhu %lli", &patch.type, &patch.offset,
		   &patch.size, &value) != 4 ||
	    patch.size > sizeof(patch.value) ||
	    patch.offset + patch.size > SCI_MESSAGE_SIZE)
		return -EINVAL;
	patch.value = cpu_to_le64(value);
	spin_lock(&n->fault.lock);
	n->fault.patch = patch;
	spin_unlock(&n->fault.lock);
	return len;
}

static const struct file_operations fault_patch_fops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.write	= fault_patch_write,
	.llseek	= noop_llseek,
};

void loop_fault_add(struct loop_node *n)
{
	struct dentry *dir;

	dir = debugfs_create_dir("fault", sci_adapter_debugfs(n->adapter));
	debugfs_create_file("link", 0600, dir, n, &fault_link_fops);
	debugfs_create_file("seed", 0600, dir, n, &fault_seed_fops);
	debugfs_create_file("retriable", 0200, dir, n, &fault_retriable_fops);
	debugfs_create_file("fatal", 0200, dir, n, &fault_fatal_fops);
	debugfs_create_u32("loss", 0600, dir, &n->fault.loss);
	debugfs_create_u32("duplicate", 0600, dir, &n->fault.duplicate);
	debugfs_create_u32("reorder", 0600, dir, &n->fault.reorder);
	debugfs_create_u32("dma_errors", 0600, dir, &n->fault.dma_errors);
	debugfs_create_u32("damage", 0600, dir, &n->fault.damage);
	debugfs_create_u32("damaged", 0400, dir, &n->fault.damaged);
	debugfs_create_file("patch", 0200, dir, n, &fault_patch_fops);
	debugfs_create_u32("withhold", 0600, dir, &n->fault.withhold);
	debugfs_create_file("hold_unmap", 0600, dir, n, &fault_hold_unmap_fops);
	debugfs_create_atomic_t("unmaps_held", 0400, dir, &n->fault.unmaps_held);
	n->fault.dir = dir;
}

void loop_fault_remove(struct loop_node *n)
{
	debugfs_remove_recursive(n->fault.dir);
	fault_hold_unmap_set(n, 0);
}

void loop_fault_init(struct loop_node *n, u64 seed)
{
	spin_lock_init(&n->fault.lock);
	init_waitqueue_head(&n->fault.unmap_wait);
	fault_seed_set(n, seed);
}
