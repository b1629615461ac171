// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Nodes, segments and interrupts of the fabric in virtual time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/vtime/fabric.h"

void fabric_ask(struct vt_node *n)
{
	vt_busy(n, n->sim->profile.control);
	vt_sync(n);
}

struct vt_node *fabric_node(struct vt_node *n, unsigned int id)
{
	if (!id || id % 4 || id / 4 > n->sim->nodes || (n->sim->ethernet && id != n->id))
		return NULL;
	return &n->sim->node[id / 4 - 1];
}

/* ---- the adapter ---- */

static bool fab_present(void)
{
	return vt_current();
}

static int fab_open(struct sci_fabric **out, const struct sci_fabric_place *at,
		    const char *arg)
{
	(void)at;
	(void)arg;
	if (!vt_current())
		return -ENODEV;
	*out = &vt_current()->fabric->base;
	return 0;
}

static void fab_close(struct sci_fabric *f)
{
	(void)f;
}

static int fab_adapter_query(struct sci_fabric *base, unsigned int adapter,
			     struct sci_adapter_info *info)
{
	struct vt_fabric *f = fabric_cast(base);
	const struct vt_profile *p = &f->node->sim->profile;

	if (adapter)
		return -ENODEV;
	*info = (struct sci_adapter_info){
		.node = f->node->id, .type = "model", .serial = f->node->id,
		.link_up = !f->node->words->link.hw_down,
		.att_page_size = VT_ATT_PAGE, .att_entries = VT_ATT_ENTRIES,
		.att_available = VT_ATT_ENTRIES - f->entries,
		.streams = (unsigned int)p->streams,
		.stream_size = (size_t)p->stream_size,
	};
	return 0;
}

static struct sci_link_status *fab_link_status(struct sci_fabric *f,
					       unsigned int adapter)
{
	return adapter ? NULL : &fabric_cast(f)->link;
}

static int fab_node_probe(struct sci_fabric *f, unsigned int adapter,
			  unsigned int node)
{
	if (adapter)
		return -ENODEV;
	fabric_ask(fabric_cast(f)->node);
	return fabric_node(fabric_cast(f)->node, node) ? 0 : -EHOSTUNREACH;
}

static int fab_node_list(struct sci_fabric *f,
			 int (*fn)(void *arg, const struct sci_node_info *n),
			 void *arg)
{
	struct vt_node *n = fabric_cast(f)->node;
	int ret = 0;

	for (unsigned int i = 0; i < n->sim->nodes && !ret; i++) {
		struct sci_node_info info = {
			.node = n->sim->node[i].id, .processes = 1,
			.local = i == n->index, .remote = i != n->index,
		};

		ret = fn(arg, &info);
	}
	return ret;
}

static int fab_segment_list(struct sci_fabric *f,
			    int (*fn)(void *arg,
				      const struct sci_segment_info *s),
			    void *arg)
{
	for (unsigned int i = 0; i < FABRIC_BUCKETS; i++) {
		struct sci_lseg *s = fabric_cast(f)->segments[i];

		for (; s; s = s->next) {
			struct sci_segment_info info = {
				.node = s->node->id, .id = s->id,
				.size = s->size, .mode = 0600,
				.importers = s->n_importers,
				.available = s->exported,
			};
			int ret = fn(arg, &info);

			if (ret)
				return ret;
		}
	}
	return 0;
}

/* ---- table of operations, begin and end ---- */

static void fab_store_barrier(struct sci_fabric *f, struct sci_rseg *r)
{
	(void)r;
	vt_barrier(fabric_cast(f)->node);
}

static const struct sci_fabric_ops model_fabric = {
	.name = "model",
	.present = fab_present,
	.open = fab_open,
	.close = fab_close,
	.query = {
		.adapter = fab_adapter_query,
		.link = fab_link_status,
		.probe = fab_node_probe,
		.nodes = fab_node_list,
		.segments = fab_segment_list,
	},
	.lseg = {
		.create = fab_lseg_create,
		.export = fab_lseg_export,
		.unexport = fab_lseg_unexport,
		.importers = fab_lseg_importers,
		.destroy = fab_lseg_destroy,
		.id = fab_lseg_id,
		.size = fab_lseg_size,
		.map = fab_lseg_map,
	},
	.rseg = {
		.connect = fab_rseg_connect,
		.cancel_connect = fab_cancel_connect,
		.disconnect = fab_rseg_disconnect,
		.size = fab_rseg_size,
		.readonly = fab_rseg_readonly,
		.status = fab_rseg_status,
		.map = fab_rseg_map,
		.store_barrier = fab_store_barrier,
	},
	.lintr = {
		.create = fab_lintr_create,
		.wait = fab_lintr_wait,
		.fd = fab_lintr_fd,
		.cancel = fab_lintr_cancel,
		.destroy = fab_lintr_destroy,
	},
	.rintr = {
		.connect = fab_rintr_connect,
		.trigger = fab_rintr_trigger,
		.disconnect = fab_rintr_disconnect,
	},
	.unmap = fab_unmap,
};

bool fabric_init(struct vt_node *n)
{
	struct vt_fabric *f = calloc(1, sizeof(*f));

	if (!f)
		return false;
	f->base.ops = &model_fabric;
	f->node = n;
	f->link.map = SCI_PIO_MAP_LINES;
	f->link.adapter = &n->words->link;
	for (unsigned int i = 0; i < VT_EXPORTS; i++)
		f->next_export[i] = (uint16_t)(i ? i : VT_EXPORTS);
	n->fabric = f;
	return true;
}

void fabric_fini(struct vt_node *n)
{
	struct vt_fabric *f = n->fabric;

	for (unsigned int i = 0; f && i < FABRIC_BUCKETS; i++)
		while (f->segments[i]) {
			struct sci_lseg *s = f->segments[i];

			f->segments[i] = s->next;
			fabric_lseg_free(s);
		}
	free(f);
}

volatile void *vt_share(struct vt_node *owner, struct vt_node *user,
			size_t size, uint16_t attr, void **mem)
{
	const struct sci_lseg_param p = {
		.size = size, .flags = SCI_LSEG_AUTO_ID,
	};
	uint32_t pages = fabric_pages(0, size), first;
	struct sci_lseg *s;

	if (fab_lseg_create(&owner->fabric->base, &p, &s) ||
	    fab_lseg_export(s, 0))
		return NULL;
	first = fabric_entries_get(user->fabric, pages);
	if (first == UINT32_MAX)
		return NULL;
	for (uint32_t i = 0; i < pages; i++)
		fabric_entry_set(user->fabric, first + i, owner->id, attr,
				 s->export_id, (uint64_t)i * VT_ATT_PAGE);
	*mem = s->mem;
	return user->window + (size_t)first * VT_ATT_PAGE;
}

/* Free the argument of an event that will not run, because the simulation ends. */
void fabric_drop(vt_event_fn fn, void *arg)
{
	fabric_news_drop(fn, arg);
	fabric_parcel_drop(fn, arg);
}

struct sci_fabric *fabric_of(struct vt_node *n)
{
	return &n->fabric->base;
}

uint32_t vt_att_max(const struct vt_node *n)
{
	return n->fabric->entries_max;
}
