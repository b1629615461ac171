// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* debugfs: /sys/kernel/debug/sci/sciN. Text for people; not a stable interface. */

#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "att.h"
#include "connection.h"
#include "core.h"
#include "import.h"
#include "object.h"

static struct dentry *sci_debugfs __ro_after_init;

static int att_show(struct seq_file *m, void *unused)
{
	struct sci_adapter *a = m->private;

	if (a->desc.att)
		sci_att_dump(a->desc.att, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(att);

static int mappings_show(struct seq_file *m, void *unused)
{
	struct sci_adapter *a = m->private;
	struct sci_mapping *map;

	seq_puts(m, "node base offset length users\n");
	mutex_lock(&a->lock);
	list_for_each_entry(map, &a->mappings, link)
		seq_printf(m, "%u %#llx %#llx %#llx %u\n", map->node, map->base,
			   map->offset, map->length, map->users);
	mutex_unlock(&a->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(mappings);

static int objects_show(struct seq_file *m, void *unused)
{
	struct sci_adapter *a = m->private;
	struct sci_object *obj;

	mutex_lock(&a->lock);
	list_for_each_entry(obj, &a->objects, link)
		seq_printf(m, "%s events %u\n", obj->ops->name,
			   READ_ONCE(obj->n_events));
	mutex_unlock(&a->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(objects);

static int debug_connections_show(struct seq_file *m, void *unused)
{
	struct sci_adapter *a = m->private;
	struct sci_connection *conn;
	unsigned long handle;

	seq_puts(m, "handle end node remote\n");
	mutex_lock(&a->lock);
	xa_for_each(&a->handles, handle, conn)
		seq_printf(m, "%lu %s %u %u\n", handle,
			   conn->server ? "server" : "client",
			   conn->peer->node, conn->remote);
	mutex_unlock(&a->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(debug_connections);

void sci_debugfs_add(struct sci_adapter *a)
{
	struct dentry *dir = debugfs_create_dir(dev_name(&a->dev), sci_debugfs);

	a->debugfs = dir;
	debugfs_create_file("att", 0400, dir, a, &att_fops);
	debugfs_create_file("mappings", 0400, dir, a, &mappings_fops);
	debugfs_create_file("objects", 0400, dir, a, &objects_fops);
	debugfs_create_file("connections", 0400, dir, a, &debug_connections_fops);
}

void sci_debugfs_remove(struct sci_adapter *a)
{
	debugfs_remove_recursive(a->debugfs);
}

void __init sci_debugfs_init(void)
{
	sci_debugfs = debugfs_create_dir("sci", NULL);
}

void sci_debugfs_exit(void)
{
	debugfs_remove_recursive(sci_debugfs);
}
