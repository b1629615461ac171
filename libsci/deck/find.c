// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Create, find and destroy mail boxes by name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/base/host.h"
#include "libsci/base/thread.h"
#include "libsci/deck/internal.h"

#define LOOK_MS		20		/* milliseconds of a wait in connection_open() */

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
 * Wait up to @timeout for the answer of process @owner to @note. If the last @answer is not
 * -EAGAIN, that process has already answered: ask again first. Return: -EAGAIN: no answer yet.
 */
static int answer_poll(struct deck_world *w, const struct deck_note *note, int owner,
		       struct deck_ask *ask, int answer, int timeout)
{
	if (answer != -EAGAIN)
		answer = deck_service_ask(w, owner, note, ask) ?: -EAGAIN;
	if (answer == -EAGAIN)
		answer = deck_service_answer(ask, timeout);
	return answer == -ETIMEDOUT ? -EAGAIN : answer;
}

/* The port's side of a connection to a mail box. */
struct link {
	struct sci_req *req;		/* NULL: the attempt has ended */
	struct sci_peer *peer;
};

/*
 * Poll the port's side of a connection, and connect again if the mail box has disconnected. The
 * mail box may have connected for an earlier find, which has timed out.
 * Return: 0: connected; -ETIMEDOUT: not yet; or another error.
 */
static int link_poll(struct deck_world *w, const struct sci_addr *addr, struct link *l)
{
	struct sci_status st;
	int ret;

	if (!l->req) {
		sci_progress(w->port);
		if (l->peer && !sci_peer_state(l->peer))
			return 0;
		if (l->peer)
			sci_disconnect(l->peer);
		l->peer = NULL;
		ret = sci_iconnect(w->port, addr, -1, &l->req);
		if (ret)
			return ret;
	}
	ret = sci_wait(l->req, LOOK_MS, &st);
	if (ret != -ETIMEDOUT)
		l->req = NULL;
	if (!ret)
		l->peer = st.peer;
	return ret;
}

static void link_end(struct link *l)
{
	struct sci_status st;

	if (l->req) {
		sci_cancel(l->req);
		if (!sci_wait(l->req, -1, &st))
			l->peer = st.peer;
	}
	if (l->peer)
		sci_disconnect(l->peer);
}

/*
 * Connect the port to the mail box at @addr before @end. The service of process @owner connects the
 * mail box to the port. The port asks that service again and again whether the mail box exists,
 * because it may be destroyed before the connection is made. The attempt has no other time limit,
 * because a network that loses packets may need any number of HELLOs. The attempt ends when the
 * process answers with an error, has died, or cannot be reached.
 */
static int connection_open(struct deck_world *w, int owner, const struct sci_addr *addr,
			   uint64_t end, struct sci_peer **to)
{
	const struct deck_note note = { .op = NOTE_OPEN, .rank = w->rank, .addr = *addr };
	struct link l = { NULL, NULL };
	int ret = -ETIMEDOUT, answer = 0;
	struct deck_ask ask;

	do {
		answer = answer_poll(w, &note, owner, &ask, answer, ret ? 0 : LOOK_MS);
		if (!answer || answer == -EAGAIN)
			ret = link_poll(w, addr, &l);
	} while (sci_now_ms() < end && (!answer || answer == -EAGAIN) &&
		 (ret == -ETIMEDOUT || (!ret && answer)));
	if (answer == -EAGAIN)
		answer = deck_service_give_up(w, owner, &ask);
	if (!ret && !answer) {
		*to = l.peer;
		return 0;
	}
	link_end(&l);
	if (answer && answer != -ETIMEDOUT)
		return answer;
	return ret ? ret : -ETIMEDOUT;
}

/*
 * Wait until @end for a change of a busy mail box, which is freed if its connection ends.
 * Context: find_lock is held, and released meanwhile.
 */
static int busy_wait(struct deck_world *w, uint64_t end)
{
	uint64_t now = sci_now_ms();
	uint32_t ms = end == UINT64_MAX ? UINT32_MAX : (uint32_t)(end - now);
	struct timespec until;

	if (now >= end)
		return -ETIMEDOUT;
	until = sci_deadline(ms);
	sci_cond_wait(&w->find_cond, &w->find_lock, ms, &until);
	return 0;
}

/* Let other threads use find_lock, while this thread makes or ends the connection of @box. */
static void busy_begin(struct deck_world *w, struct deck_mbox *box)
{
	box->busy = true;
	pthread_mutex_unlock(&w->find_lock);
}

static void busy_end(struct deck_world *w, struct deck_mbox *box)
{
	pthread_mutex_lock(&w->find_lock);
	box->busy = false;
	pthread_cond_broadcast(&w->find_cond);
}

static int box_connect(struct deck_world *w, struct deck_mbox *box, uint64_t end)
{
	struct sci_peer *to;
	int ret;

	busy_begin(w, box);
	ret = connection_open(w, box->owner, &box->addr, end, &to);
	busy_end(w, box);
	if (!ret)
		atomic_store_explicit(&box->to, to, memory_order_release);
	return ret;
}

int deck_mbox_reach(struct deck_mbox *box, struct sci_peer **to)
{
	struct deck_world *w = deck_world();
	int ret = 0;

	pthread_mutex_lock(&w->find_lock);
	while (box->busy)
		busy_wait(w, UINT64_MAX);
	if (!atomic_load(&box->to))
		ret = box_connect(w, box, UINT64_MAX);
	*to = atomic_load(&box->to);
	pthread_mutex_unlock(&w->find_lock);
	return ret;
}

struct deck_mbox *deck_mbox_at(struct list *boxes, const struct sci_addr *addr)
{
	struct deck_mbox *box, *n;

	list_for_each_entry_safe(box, n, boxes, link)
		if (box->addr.node == addr->node && box->addr.id == addr->id)
			return box;
	return NULL;
}

static int box_new_found(struct deck_world *w, const struct deck_note *note, uint64_t end,
			 struct deck_mbox **out)
{
	struct deck_mbox *box = calloc(1, sizeof(*box));
	int ret;

	if (!box)
		return -ENOMEM;
	box->owner = note->rank;
	box->addr = note->addr;
	memcpy(box->name, note->name, sizeof(box->name));
	list_add_tail(&box->link, &w->found);
	ret = box_connect(w, box, end);
	if (ret) {
		list_del(&box->link);
		free(box);
		return ret;
	}
	*out = box;
	return 0;
}

/* Find a mail box that this process has created or found. Context: find_lock is held. */
static struct deck_mbox *box_at(struct deck_world *w, const struct sci_addr *addr)
{
	struct deck_mbox *box;

	pthread_mutex_lock(&w->lock);
	box = deck_mbox_at(&w->boxes, addr);
	pthread_mutex_unlock(&w->lock);
	return box ? box : deck_mbox_at(&w->found, addr);
}

static int box_get(struct deck_world *w, const struct deck_note *note, uint64_t end,
		   struct deck_mbox **out)
{
	struct deck_mbox *box;
	int ret = 0;

	pthread_mutex_lock(&w->find_lock);
	while ((box = box_at(w, &note->addr)) && box->busy && !ret)
		ret = busy_wait(w, end);
	if (!box)
		ret = box_new_found(w, note, end, &box);
	if (!ret) {
		box->refs++;
		*out = box;
	}
	pthread_mutex_unlock(&w->find_lock);
	return ret;
}

/* Ask for the owner and address of the mail box @note->name, and store them in @note. */
static int name_look_up(struct deck_world *w, struct deck_note *note, int timeout)
{
	int home = deck_service_home(w, note->name), ret;
	struct deck_ask ask;

	ret = deck_service_ask(w, home, note, &ask);
	if (ret)
		return ret;
	ret = deck_service_answer(&ask, timeout ? timeout : -1);
	if (ret == -ETIMEDOUT)
		ret = deck_service_give_up(w, home, &ask);
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
	uint64_t end;
	int ret;

	if (!w)
		return -ENOTCONN;
	end = timeout > 0 ? sci_now_ms() + (uint64_t)timeout : UINT64_MAX;
	ret = out ? note_fill(&note, timeout ? NOTE_FIND : NOTE_FIND_NOW, w->rank, name) :
		    -EINVAL;
	ret = ret ? ret : name_look_up(w, &note, timeout);
	return ret ? ret : box_get(w, &note, end, out);
}

/* Free a mail box after its last destroy. Context: find_lock is held, and released meanwhile. */
static int box_end(struct deck_world *w, struct deck_mbox *box)
{
	struct deck_note note;
	struct sci_peer *to;
	int ret = 0;

	busy_begin(w, box);
	if (box->ep && !note_fill(&note, NOTE_DESTROY, w->rank, box->name)) {
		note.addr = box->addr;
		ret = deck_service_call(w, deck_service_home(w, box->name), &note);
	}
	to = atomic_exchange(&box->to, NULL);
	if (to)
		sci_disconnect(to);
	busy_end(w, box);
	deck_mbox_close(w, box);
	return ret;
}

int deck_mbox_destroy(deck_mbox_t *box)
{
	struct deck_world *w = deck_world();
	int ret = 0;

	if (!box)
		return 0;
	if (!w)
		return -ENOTCONN;
	pthread_mutex_lock(&w->find_lock);
	if (!--box->refs)
		ret = box_end(w, box);
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
