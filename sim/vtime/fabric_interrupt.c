// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/vtime/fabric.h"

/* A data interrupt that has arrived. */
struct message {
	struct list link;
	size_t len;
	uint8_t data[];
};

struct sci_lintr {
	struct sci_lintr *next;		/* in its bucket */
	struct vt_node *node;
	struct vt_listener *listener;
	uint32_t number;
	bool data;
	bool pending;
	struct list messages;
};

struct sci_rintr {
	struct vt_node *node;
	struct vt_node *target;
	uint32_t number;
	bool data;
	uint32_t entry;			/* of the ATT */
};

static struct sci_lintr *interrupt_find(struct vt_fabric *f, uint32_t number,
					bool data)
{
	struct sci_lintr *i = f->interrupts[number % FABRIC_BUCKETS];

	while (i && (i->number != number || i->data != data))
		i = i->next;
	return i;
}

int fab_lintr_create(struct sci_fabric *base, struct sci_lintr_param *p,
		     struct sci_lintr **out)
{
	struct vt_fabric *f = fabric_cast(base);
	bool data = p->flags & SCI_INTR_DATA;
	struct sci_lintr *i, **bucket;

	if (p->flags & (SCI_INTR_SHARED | SCI_INTR_COUNTING))
		return -EOPNOTSUPP;
	if (!(p->flags & SCI_INTR_FIXED))
		while (interrupt_find(f, p->number, data))
			p->number++;
	if (interrupt_find(f, p->number, data))
		return -EEXIST;
	i = calloc(1, sizeof(*i));
	if (!i)
		return -ENOSPC;
	i->node = f->node;
	i->number = p->number;
	i->data = data;
	list_init(&i->messages);
	i->listener = fabric_listener(f->node, p->event, p->owner);
	if (!i->listener) {
		free(i);
		return -ENOSPC;
	}
	bucket = &f->interrupts[i->number % FABRIC_BUCKETS];
	i->next = *bucket;
	*bucket = i;
	*out = i;
	return 0;
}

static int message_take(struct sci_lintr *i, void *data, size_t *len)
{
	struct message *m;

	if (list_empty(&i->messages))
		return -ETIMEDOUT;
	m = container_of(i->messages.next, struct message, link);
	if (m->len > *len) {
		*len = m->len;
		return -EMSGSIZE;
	}
	memcpy(data, m->data, m->len);
	*len = m->len;
	list_del(&m->link);
	free(m);
	return 0;
}

int fab_lintr_wait(struct sci_lintr *i, void *data, size_t *len,
		   uint32_t timeout)
{
	uint64_t until = timeout == SCI_TIMEOUT_NONE ? VT_NEVER :
			 vt_clock(i->node) + (uint64_t)timeout * VT_MS;

	vt_sync(i->node);
	for (;;) {
		uint64_t seen = vt_touches(i->node);
		int ret = -ETIMEDOUT;

		if (i->data) {
			ret = message_take(i, data, len);
		} else if (i->pending) {
			i->pending = false;
			i->node->rings--;
			ret = 0;
		}
		if (ret != -ETIMEDOUT || vt_clock(i->node) >= until)
			return ret;
		vt_wait(i->node, seen, until);
	}
}

int fab_lintr_fd(struct sci_lintr *i)
{
	(void)i;
	return -EOPNOTSUPP;
}

void fab_lintr_cancel(struct sci_lintr *i)
{
	(void)i;
}

void fab_lintr_destroy(struct sci_lintr *i)
{
	struct vt_fabric *f = i->node->fabric;
	struct sci_lintr **p = &f->interrupts[i->number % FABRIC_BUCKETS];
	struct list *l;

	while (*p != i)
		p = &(*p)->next;
	*p = i->next;
	while ((l = list_pop(&i->messages)))
		free(container_of(l, struct message, link));
	fabric_listener_end(i->listener);
	i->node->rings -= i->pending;
	free(i);
}

void fabric_interrupt(struct vt_node *n, uint32_t value)
{
	struct sci_lintr *i = interrupt_find(n->fabric, value, false);

	if (!i)
		return;
	n->rings += !i->pending;
	i->pending = true;
	if (i->listener->fn)
		fabric_tell(i->listener, SCI_EVENT_INTERRUPT, 0, 0);
}

int fab_rintr_connect(struct sci_fabric *base,
		      const struct sci_rintr_param *p,
		      struct sci_rintr **out)
{
	struct vt_fabric *f = fabric_cast(base);
	struct vt_node *target = fabric_node(f->node, p->node);
	struct sci_rintr *r;

	if (!target)
		return -EHOSTUNREACH;
	fabric_ask(f->node);
	if (!interrupt_find(target->fabric, p->number, p->data))
		return -ENOENT;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOSPC;
	*r = (struct sci_rintr){ f->node, target, p->number, p->data, 0 };
	if (!p->data) {
		r->entry = fabric_entries_get(f, 1);
		if (r->entry == UINT32_MAX) {
			free(r);
			return -ENOSPC;
		}
		fabric_entry_set(f, r->entry, target->id,
				 SCI_PCI_ATT_INTERRUPT, 0, p->number);
	}
	*out = r;
	return 0;
}

struct parcel {
	struct vt_node *target;
	uint32_t number;
	struct message *message;
};

static void parcel_handle(void *arg)
{
	struct parcel *parcel = arg;
	struct sci_lintr *i = interrupt_find(parcel->target->fabric,
					     parcel->number, true);

	if (i) {
		list_add_tail(&parcel->message->link, &i->messages);
		if (i->listener->fn)
			fabric_tell(i->listener, SCI_EVENT_INTERRUPT, 0, 0);
		vt_touch(parcel->target);
	} else {
		free(parcel->message);
	}
	free(parcel);
}

/* Free the data interrupt of an event that will not run, because the simulation ends. */
void fabric_parcel_drop(vt_event_fn fn, void *arg)
{
	struct parcel *parcel = arg;

	if (fn != parcel_handle)
		return;
	free(parcel->message);
	free(parcel);
}

static int data_send(struct sci_rintr *r, const void *data, size_t len)
{
	struct vt_sim *s = r->node->sim;
	struct message *m = malloc(sizeof(*m) + len);
	struct parcel *parcel = malloc(sizeof(*parcel));

	if (!m || !parcel) {
		free(m);
		free(parcel);
		return -ENOBUFS;
	}
	m->len = len;
	list_init(&m->link);
	memcpy(m->data, data, len);
	*parcel = (struct parcel){ r->target, r->number, m };
	vt_sync(r->node);
	vt_at(s, s->now + s->profile.control / 2, parcel_handle, parcel);
	return 0;
}

int fab_rintr_trigger(struct sci_rintr *r, const void *data, size_t len)
{
	const uint32_t zero = 0;

	if (len > SCI_DATA_INTR_MAX)
		return -EMSGSIZE;
	if (!interrupt_find(r->target->fabric, r->number, r->data))
		return -ENOTCONN;
	if (r->data)
		return data_send(r, data, len);
	vt_store(r->node, r->node->window + (size_t)r->entry * VT_ATT_PAGE,
		 &zero, sizeof(zero));
	return 0;
}

void fab_rintr_disconnect(struct sci_rintr *r)
{
	if (!r->data)
		fabric_entries_put(r->node->fabric, r->entry, 1);
	free(r);
}
