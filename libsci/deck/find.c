// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Mail boxes by name: the calls that create, find and destroy them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/deck/internal.h"

#define CONNECT_MS	20000
#define LOOK_MS		20		/* limit for an answer, while a connection is made */

/* Fill in a note about the mail box @name. Return: 0; -EINVAL: not a valid name. */
static int note_fill(struct deck_note *note, enum note_op op, int rank, const char *name)
{
	size_t len = name ? strnlen(name, DECK_NAME_MAX + 1) : 0;

	if (!len || len > DECK_NAME_MAX)
		return -EINVAL;
	*note = (struct deck_note){ .op = op, .rank = rank };
	memcpy(note->name, name, len);
	return 0;
}

int deck_mbox_create(deck_mbox_t **out, const char *name)
{
	struct deck_world *w = deck_world();
	struct deck_mbox *box;
	struct deck_note note;
	int ret;

	if (!w)
		return -ENOTCONN;
	ret = out ? note_fill(&note, NOTE_CREATE, w->rank, name) : -EINVAL;
	ret = ret ? ret : deck_mbox_open(w, name, &box);
	if (ret)
		return ret;
	note.addr = box->addr;
	ret = deck_service_call(w, deck_service_home(w, name), &note);
	if (ret)
		deck_mbox_close(w, box);
	else
		*out = box;
	return ret;
}

/*
 * Wait for the connection.  The mail box's process is asked whether the mail box is there,
 * and once more from time to time: it may be destroyed before this side is connected.
 */
static int connection_wait(struct deck_world *w, const struct deck_note *note, int owner,
			   struct sci_req *req, struct sci_peer **to)
{
	struct sci_status st;
	struct deck_ask ask;
	int ret = deck_service_ask(w, owner, note, &ask), answer = ret ? ret : -EAGAIN;

	if (ret)
		sci_cancel(req);
	while ((ret = sci_wait(req, LOOK_MS, &st)) == -ETIMEDOUT) {
		if (!answer)
			answer = deck_service_ask(w, owner, note, &ask) ?: -EAGAIN;
		if (answer == -EAGAIN)
			answer = deck_service_answer(&ask, 0);
		if (answer && answer != -EAGAIN)
			sci_cancel(req);
	}
	if (answer == -EAGAIN)
		answer = deck_service_answer(&ask, -1);
	if (!ret)
		*to = st.peer;
	if (!ret && answer)
		sci_disconnect(st.peer);
	return answer ? answer : ret;
}

/* Connect the port to a mail box. The service of the mail box's process accepts the connection. */
static int connection_open(struct deck_world *w, int owner, const struct sci_addr *addr,
			   struct sci_peer **to)
{
	struct deck_note note = { .op = NOTE_OPEN, .rank = w->rank, .addr = *addr };
	struct sci_req *req;
	int ret = sci_iconnect(w->port, addr, CONNECT_MS, &req);

	return ret ? ret : connection_wait(w, &note, owner, req, to);
}

int deck_mbox_reach(struct deck_mbox *box, struct sci_peer **to)
{
	struct deck_world *w = deck_world();
	int ret = 0;

	pthread_mutex_lock(&w->find_lock);
	*to = atomic_load(&box->to);
	if (!*to) {
		ret = connection_open(w, box->owner, &box->addr, to);
		if (!ret)
			atomic_store_explicit(&box->to, *to, memory_order_release);
	}
	pthread_mutex_unlock(&w->find_lock);
	return ret;
}

static struct deck_mbox *box_find_address(struct list *boxes, const struct sci_addr *addr)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, boxes) {
		struct deck_mbox *box = container_of(pos, struct deck_mbox, link);

		if (box->addr.node == addr->node && box->addr.id == addr->id)
			return box;
	}
	return NULL;
}

static int box_new_found(struct deck_world *w, const struct deck_note *note,
			 struct deck_mbox **out)
{
	struct deck_mbox *box = calloc(1, sizeof(*box));
	struct sci_peer *to;
	int ret;

	if (!box)
		return -ENOMEM;
	ret = connection_open(w, note->rank, &note->addr, &to);
	if (ret) {
		free(box);
		return ret;
	}
	atomic_init(&box->to, to);
	box->owner = note->rank;
	box->addr = note->addr;
	memcpy(box->name, note->name, sizeof(box->name));
	list_add_tail(&box->link, &w->found);
	*out = box;
	return 0;
}

static int box_get(struct deck_world *w, const struct deck_note *note,
		   struct deck_mbox **out)
{
	struct deck_mbox *box;
	int ret = 0;

	pthread_mutex_lock(&w->find_lock);
	pthread_mutex_lock(&w->lock);
	box = box_find_address(&w->boxes, &note->addr);
	pthread_mutex_unlock(&w->lock);
	box = box ? box : box_find_address(&w->found, &note->addr);
	if (!box)
		ret = box_new_found(w, note, &box);
	if (!ret) {
		box->refs++;
		*out = box;
	}
	pthread_mutex_unlock(&w->find_lock);
	return ret;
}

/* Ask for the owner and address of a mail box; the answer replaces those in @note. */
static int name_look_up(struct deck_world *w, struct deck_note *note, int timeout)
{
	int home = deck_service_home(w, note->name), ret;
	struct deck_note forget = { .op = NOTE_FORGET };
	struct deck_ask ask;

	ret = deck_service_ask(w, home, note, &ask);
	if (ret)
		return ret;
	ret = deck_service_answer(&ask, timeout ? timeout : -1);
	if (ret == -ETIMEDOUT) {
		/* from now on, the home answers this question at once */
		forget.token = ask.answer.token;
		deck_service_tell(w, home, &forget);
		ret = deck_service_answer(&ask, -1);
	}
	if (!ret) {
		note->rank = ask.answer.rank;
		note->addr = ask.answer.addr;
	}
	return ret;
}

int deck_mbox_find(deck_mbox_t **out, const char *name, int timeout)
{
	struct deck_world *w = deck_world();
	struct deck_note note;
	int ret;

	if (!w)
		return -ENOTCONN;
	ret = out ? note_fill(&note, timeout ? NOTE_FIND : NOTE_FIND_NOW, w->rank, name) :
		    -EINVAL;
	ret = ret ? ret : name_look_up(w, &note, timeout);
	return ret ? ret : box_get(w, &note, out);
}

int deck_mbox_destroy(deck_mbox_t *box)
{
	struct deck_world *w = deck_world();
	struct deck_note note;
	int ret = 0;

	if (!box)
		return 0;
	if (!w)
		return -ENOTCONN;
	pthread_mutex_lock(&w->find_lock);
	if (!--box->refs) {
		if (box->ep && !note_fill(&note, NOTE_DESTROY, w->rank, box->name)) {
			note.addr = box->addr;
			ret = deck_service_call(w, deck_service_home(w, box->name), &note);
		}
		deck_mbox_close(w, box);
	}
	pthread_mutex_unlock(&w->find_lock);
	return ret == -ECONNRESET ? 0 : ret;
}

int deck_mbox_owner(const deck_mbox_t *box)
{
	return box ? box->owner : -EINVAL;
}

const char *deck_mbox_name(const deck_mbox_t *box)
{
	return box ? box->name : NULL;
}
