// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Data interrupts of the net fabric. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/fabric/net/net.h"

/* ---- interrupts of this process ---- */

/*
 * Return the number of the first data interrupt, which identifies this instance to other
 * instances; 0: none.
 */
uint32_t net_port(struct net *net)
{
	return list_empty(&net->lintrs) ? 0 :
	       container_of(net->lintrs.next, struct sci_lintr, link)->number;
}

struct sci_lintr *net_lintr_find(struct net *net, uint32_t number)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &net->lintrs) {
		struct sci_lintr *i = container_of(pos, struct sci_lintr, link);

		if (i->number == number)
			return i;
	}
	return NULL;
}

/* Deliver an interrupt, or drop it if the queue is full: the sender repeats it until an answer. */
void net_triggered(struct net *net, const struct net_frame *f, const uint8_t *data)
{
	const struct sci_event ev = { .type = SCI_EVENT_INTERRUPT };
	struct sci_lintr *i = net_lintr_find(net, f->object);
	struct net_message *m;

	if (!i || i->n_messages >= NET_TRIGGERS)
		return;
	m = malloc(sizeof(*m) + f->len);
	if (!m)
		return;
	m->len = f->len;
	memcpy(m->data, data, f->len);
	list_add_tail(&m->link, &i->messages);
	i->n_messages++;
	i->event(i->owner, &ev);
}

int net_lintr_create(struct sci_fabric *f, struct sci_lintr_param *p,
			struct sci_lintr **out)
{
	struct net *net = net_of(f);
	struct sci_lintr *i;
	int ret = 0;

	if (p->adapter)
		return -ENODEV;
	if (p->flags != (SCI_INTR_DATA | SCI_INTR_FIXED) || !p->event)
		return -EOPNOTSUPP;
	i = calloc(1, sizeof(*i));
	if (!i)
		return -ENOMEM;
	i->net = net;
	i->number = p->number;
	i->event = p->event;
	i->owner = p->owner;
	list_init(&i->messages);
	pthread_mutex_lock(&net->svc.lock);
	if (net_lintr_find(net, p->number))
		ret = -EEXIST;
	else
		list_add_tail(&i->link, &net->lintrs);
	pthread_mutex_unlock(&net->svc.lock);
	if (ret)
		free(i);
	else
		*out = i;
	return ret;
}

static int message_take(struct sci_lintr *i, void *data, size_t *len)
{
	struct net_message *m;

	if (list_empty(&i->messages))
		return -ETIMEDOUT;
	m = container_of(i->messages.next, struct net_message, link);
	if (m->len > *len) {
		*len = m->len;
		return -EMSGSIZE;
	}
	memcpy(data, m->data, m->len);
	*len = m->len;
	list_del(&m->link);
	i->n_messages--;
	free(m);
	return 0;
}

/* Fetch the data of an interrupt, without a wait: the event function reports interrupts. */
int net_lintr_wait(struct sci_lintr *i, void *data, size_t *len, uint32_t timeout)
{
	int ret;

	if (timeout)
		return -EOPNOTSUPP;
	pthread_mutex_lock(&i->net->svc.lock);
	ret = message_take(i, data, len);
	pthread_mutex_unlock(&i->net->svc.lock);
	return ret;
}

int net_lintr_fd(struct sci_lintr *i)
{
	(void)i;
	return -EOPNOTSUPP;
}

void net_lintr_cancel(struct sci_lintr *i)
{
	(void)i;
}

void net_lintr_destroy(struct sci_lintr *i)
{
	struct list *item;

	pthread_mutex_lock(&i->net->svc.lock);
	list_del(&i->link);
	while ((item = list_pop(&i->messages)))
		free(container_of(item, struct net_message, link));
	pthread_mutex_unlock(&i->net->svc.lock);
	free(i);
}


/* ---- interrupts of other processes ---- */

void net_rintrs_lost(struct net_link *l)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &l->net->rintrs) {
		struct sci_rintr *i = container_of(pos, struct sci_rintr, link);

		if (i->of == l)
			i->of = NULL;
	}
}

int net_rintr_connect(struct sci_fabric *f, const struct sci_rintr_param *p,
			 struct sci_rintr **out)
{
	struct net *net = net_of(f);
	struct sci_rintr *i;
	int ret;

	if (p->adapter)
		return -ENODEV;
	if (!p->data)
		return -EOPNOTSUPP;
	i = calloc(1, sizeof(*i));
	if (!i)
		return -ENOMEM;
	i->net = net;
	i->number = p->number;
	*out = i;
	pthread_mutex_lock(&net->svc.lock);
	ret = net_reach(net, p->node, p->number, p->timeout, &i->of);
	if (!ret)
		list_add_tail(&i->link, &net->rintrs);
	pthread_mutex_unlock(&net->svc.lock);
	if (ret) {
		*out = NULL;
		free(i);
	}
	return ret;
}

int net_rintr_trigger(struct sci_rintr *i, const void *data, size_t len)
{
	struct net_frame f = {
		.type = NET_TRIGGER, .len = (uint32_t)len, .object = i->number,
	};
	int ret = -ENOTCONN;

	if (len > NET_TRIGGER_MAX)
		return -EMSGSIZE;
	pthread_mutex_lock(&i->net->svc.lock);
	if (i->of) {
		ret = net_link_send(i->of, &f, data);
		net_link_flush(i->of);
	}
	pthread_mutex_unlock(&i->net->svc.lock);
	return ret;
}

void net_rintr_disconnect(struct sci_rintr *i)
{
	pthread_mutex_lock(&i->net->svc.lock);
	list_del(&i->link);
	pthread_mutex_unlock(&i->net->svc.lock);
	free(i);
}
