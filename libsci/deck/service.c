// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: the service
 *
 * Every process has an endpoint for the questions of other processes, and a service thread that
 * answers the questions. The service thread sleeps in a wait on this endpoint, takes no part in
 * posts and retrieves, and never asks a question, so no two service threads wait for each other.
 *
 *	names		The table of names is distributed. The hash of a name is the rank of
 *			its home, the process that stores the name. A question for an unknown
 *			name waits at the home until the name is created.
 *	connections	A mail box accepts a connection only while a thread calls its
 *			endpoint. The service polls the endpoint until the connection is
 *			made, so finding a mail box does not wait for a retrieve.
 *	deaths		Each service posts a receive from the nearest living rank before its
 *			own, and from that after. The receive fails when the rank dies. The
 *			service reports the death to all services and to its own mail boxes.
 *
 * A question is a tagged message, whose tag is the asking side's token. The answer has the same tag
 * in another context.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/base/thread.h"
#include "libsci/deck/internal.h"

#define CONTEXT_NOTE	1u
#define CONTEXT_ANSWER	2u
#define CONNECT_MS	10000
#define CONNECT_LOOK_MS	4		/* milliseconds between polls of a connect */

/* Indices of the requests that the service thread waits for. */
enum { WAIT_NOTE, WAIT_BEFORE, WAIT_AFTER, WAITS };

struct name {
	struct list link;		/* in deck_service.names */
	struct deck_note note;		/* that has created the name */
};

/* A question that has no answer yet: for a name, or for a connection from a mail box. */
struct question {
	struct list link;		/* service.questions, under world.lock */
	struct sci_peer *from;		/* connection of the asking service */
	struct deck_note note;
	const struct deck_mbox *box;
	struct sci_req *req;		/* connects the mail box; NULL: a question for a name */
};

static uint32_t name_hash(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h ^ h >> 15;
}

int deck_service_home(const struct deck_world *w, const char *name)
{
	return (int)(name_hash(name) % (uint32_t)w->size);
}

/* ---- asking ---- */

static int service_open_peer(struct deck_world *w, int rank, struct sci_peer **peer)
{
	/* a new connection to a dead process would time out only after CONNECT_MS */
	if (atomic_load(&w->service.dead[rank]))
		return -ECONNRESET;
	return sci_peer_open(w->service.ep, &w->ends[rank].service, CONNECT_MS, peer);
}

/*
 * Send a note without waiting. A thread that waits for the answer detects the death of @to itself.
 */
static int note_send(struct sci_peer *to, uint32_t context, const struct deck_note *note)
{
	const struct iovec iov = { (void *)note, sizeof(*note) };
	const struct sci_send s = {
		.iov = &iov, .n = 1, .tag = note->token, .context = context,
		.flags = SCI_SEND_TAGGED | SCI_SEND_COPY,
	};

	return sci_isendm(to, &s, NULL);
}

int deck_service_tell(struct deck_world *w, int rank, const struct deck_note *note)
{
	struct sci_peer *peer;
	int ret = service_open_peer(w, rank, &peer);

	return ret ? ret : note_send(peer, CONTEXT_NOTE, note);
}

/* Return the error in the answer, or @ret if the receive of the answer has failed. */
static int answer_get_error(const struct deck_ask *ask, int ret, const struct sci_status *st)
{
	if (ret)
		return ret == -ETIME || ret == -ENOTCONN ? -ECONNRESET : ret;
	if (st->len != sizeof(ask->answer))
		return -EPROTO;
	return ask->answer.error;
}

/* End a question. Return: as deck_service_answer(); -ETIMEDOUT: no answer has arrived. */
static int ask_end(struct deck_ask *ask)
{
	struct sci_status st;
	int ret;

	sci_cancel(ask->req);
	ret = sci_wait(ask->req, -1, &st);
	return ret == -ECANCELED ? -ETIMEDOUT : answer_get_error(ask, ret, &st);
}

int deck_service_ask(struct deck_world *w, int rank, const struct deck_note *note,
		     struct deck_ask *ask)
{
	struct deck_note n = *note;
	struct sci_peer *peer;
	int ret = service_open_peer(w, rank, &peer);

	if (ret)
		return ret;
	n.token = atomic_fetch_add(&w->service.tokens, 1) + 1;	/* 0: not a question */
	ask->token = n.token;
	ask->dead = &w->service.dead[rank];
	ret = sci_itrecv(w->service.ep, peer, CONTEXT_ANSWER, n.token, 0, &ask->answer,
			 sizeof(ask->answer), &ask->req);
	if (ret)
		return ret;
	ret = note_send(peer, CONTEXT_NOTE, &n);
	if (ret)
		ask_end(ask);
	return ret;
}

/* End a question, and cancel it at the other process. Return: as ask_end(). */
int deck_service_give_up(struct deck_world *w, int rank, struct deck_ask *ask)
{
	const struct deck_note forget = { .op = NOTE_FORGET, .token = ask->token };
	int ret = ask_end(ask);

	if (ret == -ETIMEDOUT)
		deck_service_tell(w, rank, &forget);
	return ret;
}

/*
 * Wait for an answer, and make progress: the process that creates the name may first retrieve
 * messages of this process. Check at intervals whether the asked process has died: a request on a
 * connection that was never made does not end when the process does.
 * Return: 0; -EAGAIN, -ETIMEDOUT: there is no answer yet; another error is final.
 */
int deck_service_answer(struct deck_ask *ask, int timeout)
{
	struct deck_world *w = deck_world();
	unsigned int looks = 0;
	struct sci_status st;
	int left = timeout, ms = 0, ret;

	do {
		ret = ms ? sci_wait(ask->req, ms, &st) : sci_test(ask->req, &st);
		if (ret != -ETIMEDOUT && ret != -EAGAIN)
			return answer_get_error(ask, ret, &st);
		left -= left > 0 ? ms : 0;
		ms = deck_requests_poll(w, NULL, &looks);
		if (left > 0 && ms > left)
			ms = left;
	} while (left && !atomic_load(ask->dead));
	if (!atomic_load(ask->dead))
		return ret;
	ask_end(ask);
	return -ECONNRESET;
}

int deck_service_call(struct deck_world *w, int rank, struct deck_note *note)
{
	struct deck_ask ask;
	int ret = deck_service_ask(w, rank, note, &ask);

	return ret ? ret : deck_service_answer(&ask, -1);
}

/* ---- answers ---- */

static void answer_send(struct sci_peer *to, uint32_t token, int error, const struct name *name)
{
	struct deck_note note = name ? name->note : (struct deck_note){ 0 };

	note.token = token;
	note.error = error;
	note_send(to, CONTEXT_ANSWER, &note);
}

/* ---- names ---- */

static struct list *name_bucket(struct deck_service *s, const char *name)
{
	return &s->names[name_hash(name) / 7 % NAME_BUCKETS];
}

static struct name *name_find(struct deck_service *s, const char *name)
{
	struct list *bucket = name_bucket(s, name);
	struct name *e, *n;

	list_for_each_entry_safe(e, n, bucket, link)
		if (!strcmp(e->note.name, name))
			return e;
	return NULL;
}

static void question_end(struct question *q, int error, const struct name *name)
{
	/* a port that has cancelled its question, or has died, gets no answer */
	if (error != -ECANCELED)
		answer_send(q->from, q->note.token, error, name);
	list_del(&q->link);
	free(q);
}

static struct question *question_new(struct deck_world *w, struct sci_peer *from,
				     const struct deck_note *note)
{
	struct question *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->from = from;
	q->note = *note;
	list_add_tail(&q->link, &w->service.questions);
	return q;
}

/* Cancel question @token of @from; with @from NULL, all questions of the dead @rank. */
static void questions_cancel(struct deck_world *w, const struct sci_peer *from, uint32_t token,
			     int rank)
{
	struct question *q, *n;

	list_for_each_entry_safe(q, n, &w->service.questions, link) {
		if (from ? q->from != from || q->note.token != token : q->note.rank != rank)
			continue;
		if (q->req)
			sci_cancel(q->req);
		else
			question_end(q, -ECANCELED, NULL);
	}
}

static void questions_answer_name(struct deck_world *w, const struct name *e)
{
	struct question *q, *n;

	list_for_each_entry_safe(q, n, &w->service.questions, link)
		if (!q->req && !strcmp(q->note.name, e->note.name))
			question_end(q, 0, e);
}

/* Create a name. The name of a dead process's mail box may be created again. */
static int name_create(struct deck_world *w, const struct deck_note *note)
{
	struct deck_service *s = &w->service;
	struct name *e = name_find(s, note->name);

	if (e && !atomic_load(&s->dead[e->note.rank]))
		return -EEXIST;
	if (!e) {
		e = calloc(1, sizeof(*e));
		if (!e)
			return -ENOMEM;
		list_add_tail(&e->link, name_bucket(s, note->name));
	}
	e->note = *note;
	questions_answer_name(w, e);
	return 0;
}

static int name_destroy(struct deck_service *s, const struct deck_note *note)
{
	struct name *e = name_find(s, note->name);

	if (!e || e->note.rank != note->rank || e->note.addr.id != note->addr.id)
		return -ENOENT;
	list_del(&e->link);
	free(e);
	return 0;
}

static void name_handle_find(struct deck_world *w, struct sci_peer *from,
			     const struct deck_note *note)
{
	const struct name *e = name_find(&w->service, note->name);

	if (e || note->op == NOTE_FIND_NOW)
		answer_send(from, note->token, e ? 0 : -EAGAIN, e);
	else if (!question_new(w, from, note))
		answer_send(from, note->token, -ENOMEM, NULL);
}

static void names_free(struct deck_service *s)
{
	struct list *l;

	for (unsigned int i = 0; i < NAME_BUCKETS; i++)
		while ((l = list_pop(&s->names[i])))
			free(container_of(l, struct name, link));
	while ((l = list_pop(&s->questions)))
		free(container_of(l, struct question, link));
}

/* ---- connections to mail boxes of this process ---- */

/* Poll a connection attempt for @timeout ms. Return whether the attempt is still under way. */
static bool connect_poll(struct question *q, int timeout)
{
	struct sci_status st;
	int ret = timeout ? sci_wait(q->req, timeout, &st) : sci_test(q->req, &st);

	if (ret == -EAGAIN || ret == -ETIMEDOUT)
		return true;
	if (!ret)
		deck_peer_set_rank(st.peer, q->note.rank);
	question_end(q, ret, NULL);
	return false;
}

/* Poll all connection attempts. Return whether any attempt is still under way. */
static bool connects_poll(struct deck_world *w)
{
	struct question *q, *n;
	bool some = false;

	pthread_mutex_lock(&w->lock);
	list_for_each_entry_safe(q, n, &w->service.questions, link)
		some |= q->req && connect_poll(q, 0);
	pthread_mutex_unlock(&w->lock);
	return some;
}

void deck_connects_end(struct deck_world *w, const struct deck_mbox *box)
{
	struct question *q, *n;

	list_for_each_entry_safe(q, n, &w->service.questions, link)
		if (q->req && q->box == box)
			question_end(q, -ENOENT, NULL);
}

/*
 * Begin to connect a mail box to the port that asks for it. An attempt that takes longer than
 * CONNECT_LOOK_MS continues while the service answers other questions.
 */
static int connect_begin(struct deck_world *w, struct deck_mbox *box,
			 const struct deck_note *note, struct sci_peer *from)
{
	struct question *q = question_new(w, from, note);
	int ret;

	if (!q)
		return -ENOMEM;
	/* first process the disconnect of an earlier connection by the port */
	sci_progress(box->ep);
	deck_mbox_free_gone(box);
	q->box = box;
	ret = sci_iconnect(box->ep, &w->ends[note->rank].port, -1, &q->req);
	if (ret)
		question_end(q, ret, NULL);
	else
		connect_poll(q, CONNECT_LOOK_MS);
	return 0;
}

static void box_accept(struct deck_world *w, const struct deck_note *note,
		       struct sci_peer *from)
{
	struct deck_mbox *box = deck_mbox_at(&w->boxes, &note->addr);
	int ret = box ? connect_begin(w, box, note, from) : -ENOENT;

	if (ret)
		answer_send(from, note->token, ret, NULL);
}

/* Connect the mail box and the service. The service thread polls both endpoints. */
static int control_connect(struct deck_world *w, struct deck_mbox *box)
{
	struct sci_peer *control = NULL;
	struct sci_status st;
	struct sci_req *req;
	int ret;

	if (atomic_load_explicit(&box->control, memory_order_relaxed))
		return 0;
	ret = sci_iconnect(box->ep, &w->ends[w->rank].service, CONNECT_MS, &req);
	if (ret)
		return ret;
	while ((ret = sci_wait(req, 1, &st)) == -ETIMEDOUT)
		sci_progress(w->service.ep);
	if (ret)
		return ret;
	sci_peer_set_data(st.peer, MBOX_CONTROL);
	do
		ret = sci_peer_find(w->service.ep, &box->addr, &control);
	while (ret == -ENOENT && sci_progress(w->service.ep) >= 0);
	/* program threads send the empty messages of unreported deaths on this connection */
	if (!ret)
		atomic_store_explicit(&box->control, control, memory_order_release);
	return ret;
}

/* Send one empty message for each waiting retrieve, and at least one. */
static void box_wake(struct deck_world *w, struct deck_mbox *box)
{
	unsigned int n = atomic_load(&box->waiting);

	if (control_connect(w, box))
		return;
	do
		deck_mbox_tell_death(box);
	while (n-- > 1);
}

/* ---- deaths ---- */

static void death_handle(struct deck_world *w, int rank, bool tell)
{
	const struct deck_note note = { .op = NOTE_DEATH, .rank = rank };
	struct deck_mbox *box, *n;

	if (rank == w->rank || atomic_exchange(&w->service.dead[rank], true))
		return;
	for (int i = 0; tell && i < w->size; i++)
		if (i != w->rank)
			deck_service_tell(w, i, &note);
	pthread_mutex_lock(&w->lock);
	questions_cancel(w, NULL, 0, rank);
	list_for_each_entry_safe(box, n, &w->boxes, link)
		box_wake(w, box);
	pthread_mutex_unlock(&w->lock);
}

/* Return the nearest living rank in the direction @which; -1: there is none. */
static int neighbour_find(const struct deck_world *w, int which)
{
	int step = which == WAIT_BEFORE ? w->size - 1 : 1;

	for (int r = (w->rank + step) % w->size; r != w->rank; r = (r + step) % w->size)
		if (!atomic_load(&w->service.dead[r]))
			return r;
	return -1;
}

/* Post a receive from the neighbour @which. The receive fails when the neighbour dies. */
static void neighbour_watch(struct deck_world *w, int which, struct sci_req **req)
{
	struct sci_peer *peer;
	int r;

	*req = NULL;
	while ((r = neighbour_find(w, which)) >= 0) {
		w->service.neighbour[which - WAIT_BEFORE] = r;
		if (!service_open_peer(w, r, &peer) &&
		    !sci_irecv(w->service.ep, peer, NULL, 0, req))
			return;
		death_handle(w, r, true);
	}
}

static void neighbour_watch_ended(struct deck_world *w, int which, int error, struct sci_req **req)
{
	/* -ENOTCONN and -ECANCELED mean an orderly end: all processes disconnect */
	if (error == -ENOTCONN || error == -ECANCELED)
		return;
	if (error && error != -EMSGSIZE)
		death_handle(w, w->service.neighbour[which - WAIT_BEFORE], true);
	neighbour_watch(w, which, req);
}

/* ---- the thread ---- */

static bool note_is_valid(const struct deck_world *w, const struct deck_note *note, size_t len)
{
	return len == sizeof(*note) && note->rank >= 0 && note->rank < w->size &&
	       memchr(note->name, '\0', sizeof(note->name));
}

static void note_handle(struct deck_world *w, struct sci_peer *from,
			const struct deck_note *note)
{
	if (note->op == NOTE_DEATH) {
		death_handle(w, note->rank, false);
		return;
	}
	pthread_mutex_lock(&w->lock);
	switch (note->op) {
	case NOTE_CREATE:
		answer_send(from, note->token, name_create(w, note), NULL);
		break;
	case NOTE_DESTROY:
		answer_send(from, note->token, name_destroy(&w->service, note), NULL);
		break;
	case NOTE_FIND:
	case NOTE_FIND_NOW:
		name_handle_find(w, from, note);
		break;
	case NOTE_FORGET:
		questions_cancel(w, from, note->token, -1);
		break;
	case NOTE_OPEN:
		box_accept(w, note, from);
	}
	pthread_mutex_unlock(&w->lock);
}

static bool peer_is_self(const struct deck_world *w, struct sci_peer *from)
{
	const struct sci_addr *own = &w->ends[w->rank].service;
	struct sci_addr a;

	return !sci_peer_addr(from, &a) && a.node == own->node && a.id == own->id;
}

static void *service_run(void *arg)
{
	struct deck_world *w = arg;
	struct sci_ep *ep = w->service.ep;
	struct sci_req *reqs[WAITS] = { 0 };
	struct sci_status st;
	struct deck_note note = { 0 };
	size_t which;
	int ret;

	neighbour_watch(w, WAIT_BEFORE, &reqs[WAIT_BEFORE]);
	if (w->size > 2)
		neighbour_watch(w, WAIT_AFTER, &reqs[WAIT_AFTER]);
	for (;;) {
		if (!reqs[WAIT_NOTE] &&
		    sci_itrecv(ep, NULL, CONTEXT_NOTE, 0, UINT64_MAX, &note,
			       sizeof(note), &reqs[WAIT_NOTE]))
			return NULL;
		ret = sci_waitany(reqs, WAITS, connects_poll(w) ? CONNECT_LOOK_MS : -1, &which,
				  &st);
		if (which == WAITS && ret == -ETIMEDOUT)
			continue;
		if (which == WAITS)
			return NULL;
		if (which != WAIT_NOTE) {
			neighbour_watch_ended(w, (int)which, ret, &reqs[which]);
			continue;
		}
		if (ret || !st.peer || !note_is_valid(w, &note, st.len))
			continue;
		if (note.op == NOTE_STOP && peer_is_self(w, st.peer))
			return NULL;
		note_handle(w, st.peer, &note);
	}
}

/* ---- start and end ---- */

int deck_service_start(struct deck_world *w)
{
	struct deck_service *s = &w->service;

	list_init(&s->questions);
	for (unsigned int i = 0; i < NAME_BUCKETS; i++)
		list_init(&s->names[i]);
	s->dead = calloc((size_t)w->size, sizeof(*s->dead));
	if (!s->dead)
		return -ENOMEM;
	return sci_thread_start(&s->thread, service_run, w, "deck-service");
}

void deck_service_stop(struct deck_world *w)
{
	const struct deck_note stop = { .op = NOTE_STOP, .rank = w->rank };

	deck_service_tell(w, w->rank, &stop);
	pthread_join(w->service.thread, NULL);
	names_free(&w->service);
	free(w->service.dead);
}
