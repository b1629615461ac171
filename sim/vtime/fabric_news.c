// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Events from other nodes, which arrive later. */
#include <stdlib.h>

#include "sim/vtime/fabric.h"

struct news {
	struct vt_listener *to;
	struct sci_event event;
};

struct vt_listener *fabric_listener(struct vt_node *n, sci_event_fn fn,
				    void *owner)
{
	struct vt_listener *l = malloc(sizeof(*l));

	if (l)
		*l = (struct vt_listener){ n, fn, owner, 1 };
	return l;
}

static void listener_put(struct vt_listener *l)
{
	if (l && !--l->refs)
		free(l);
}

/* End the listener of an object that is freed. */
void fabric_listener_end(struct vt_listener *l)
{
	if (l)
		l->fn = NULL;
	listener_put(l);
}

static void news_deliver(void *arg)
{
	struct news *news = arg;
	struct vt_listener *l = news->to;

	if (l->fn) {
		l->fn(l->owner, &news->event);
		vt_touch(l->node);
	}
	listener_put(l);
	free(news);
}

void fabric_tell(struct vt_listener *l, enum sci_event_type type,
		 unsigned int node, int status)
{
	struct vt_sim *s = l->node->sim;
	struct news *news = malloc(sizeof(*news));

	if (!news)
		abort();
	l->refs++;
	*news = (struct news){ l, { type, node, 0, status } };
	vt_at(s, s->now + s->profile.control / 2, news_deliver, news);
}

/* Free the news of an event that will not run, because the simulation ends. */
void fabric_news_drop(vt_event_fn fn, void *arg)
{
	struct news *news = arg;

	if (fn != news_deliver)
		return;
	listener_put(news->to);
	free(news);
}
