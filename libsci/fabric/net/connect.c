// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Find the instance that has a data interrupt, and send questions to it. Callers may block. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/base/thread.h"
#include "libsci/fabric/net/net.h"

/* ---- questions and answers ---- */

static void question_end(struct net_question *q, int ret)
{
	list_del(&q->link);
	q->ret = ret;
	q->done = true;
	pthread_cond_broadcast(&q->net->cond);
}

/* End a question before its answer. */
static void question_leave(struct net_link *l, struct net_question *q, int ret)
{
	list_add_tail(&q->left->link, &l->left);
	q->left = NULL;
	question_end(q, ret);
}

static void left_end(struct net_left *left)
{
	list_del(&left->link);
	free(left);
}

void net_questions_end(struct net_link *l, int error)
{
	while (!list_empty(&l->questions))
		question_end(container_of(l->questions.next, struct net_question, link),
			     error);
	while (!list_empty(&l->left))
		left_end(container_of(l->left.next, struct net_left, link));
}

/* Return the error of an answer, limited to the errors that a question may end with. */
static int answer_error(uint32_t status)
{
	switch (status) {
	case 0:
		return 0;
	case EACCES:
	case ENOSPC:
	case ENOMEM:
		return -(int)status;
	default:
		return -ENOENT;
	}
}

/* Handle the late answer to a question. If it is yes, end the import. */
static void left_answered(struct net_link *l, const struct net_frame *f)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &l->left) {
		struct net_left *left = container_of(pos, struct net_left, link);
		struct net_frame leave = { .type = NET_LEAVE, .object = left->segment };

		if (left->question != f->request)
			continue;
		if (!f->object)
			net_link_send(l, &leave, NULL);
		left_end(left);
		return;
	}
}

/* Handle an answer. Register the import here: a later frame may already end it. */
void net_answered(struct net_link *l, const struct net_frame *f)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &l->questions) {
		struct net_question *q = container_of(pos, struct net_question, link);

		if (q->id != f->request)
			continue;
		if (!f->object) {
			q->seg->of = l;
			q->seg->size = f->offset;
			list_add_tail(&q->seg->link, &l->imports);
		}
		question_end(q, answer_error(f->object));
		l->net->answered = true;
		return;
	}
	left_answered(l, f);
}

/**
 * net_ask() - ask for a segment and wait for the answer
 * @seg: becomes an import if the answer is yes
 *
 * @l may have been freed after this call.
 *
 * Context: called with svc.lock held, which it releases while waiting.
 * Return: 0; -ENOENT, -EACCES or another error of the owner; -ETIMEDOUT; -ENOTCONN;
 * -ECANCELED; -ENOMEM.
 */
int net_ask(struct net_link *l, uint32_t timeout, const void *owner, struct sci_rseg *seg)
{
	struct net *net = l->net;
	struct timespec until = sci_deadline(timeout);
	struct net_question q = {
		.net = net, .id = ++net->next_question, .seg = seg, .owner = owner,
	};
	struct net_frame f = {
		.type = NET_CONNECT_SEG, .object = seg->id, .request = q.id,
	};

	if (net->stopped)
		return -ECANCELED;
	q.left = malloc(sizeof(*q.left));
	if (!q.left)
		return -ENOMEM;
	*q.left = (struct net_left){ .question = q.id, .segment = seg->id };
	list_add_tail(&q.link, &l->questions);
	net_link_send(l, &f, NULL);
	net_link_flush(l);
	while (!q.done)
		if (sci_cond_wait(&net->cond, &net->svc.lock, timeout, &until) && !q.done)
			question_leave(l, &q, -ETIMEDOUT);
	free(q.left);
	return q.ret;
}

void net_cancel_connect(struct sci_fabric *f, const void *owner)
{
	struct net *net = net_of(f);
	struct list *pos, *n, *qpos, *qn;

	pthread_mutex_lock(&net->svc.lock);
	net->stopped |= !owner;
	list_for_each_safe(pos, n, &net->links) {
		struct net_link *l = container_of(pos, struct net_link, link);

		list_for_each_safe(qpos, qn, &l->questions) {
			struct net_question *q = container_of(qpos, struct net_question,
							      link);

			if (!owner || q->owner == owner)
				question_leave(l, q, -ECANCELED);
		}
	}
	pthread_cond_broadcast(&net->cond);
	pthread_mutex_unlock(&net->svc.lock);
}

/* ---- finding an instance ---- */

/* Return the link to an instance, even a broken link: it may continue on a new socket. */
static struct net_link *link_find_known(struct net *net, unsigned int node, uint32_t port)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &net->links) {
		struct net_link *l = container_of(pos, struct net_link, link);

		if (l->node == node && l->port == port)
			return l;
	}
	return NULL;
}

static int dial_wait(struct net *net, struct net_dial *d, uint32_t timeout)
{
	struct timespec until = sci_deadline(timeout);
	struct list *pos, *n;

	while (!d->done && !net->stopped)
		if (sci_cond_wait(&net->cond, &net->svc.lock, timeout, &until))
			break;
	if (d->done)
		return d->ret;
	/* the socket continues its handshake, but no thread waits for it */
	list_for_each_safe(pos, n, &net->handshakes) {
		struct net_socket *s = container_of(pos, struct net_socket, link);

		if (s->dial == d)
			s->dial = NULL;
	}
	return net->stopped ? -ECANCELED : -ETIMEDOUT;
}

static bool has_no_descriptor(int error)
{
	return error == -EMFILE || error == -ENFILE;
}

/*
 * Connect to the processes in the slots from @first on, until one succeeds. Return true to stop
 * the search; *@ret is the result.
 */
static bool dial_slots(struct net *net, const struct net_addr *first, unsigned int node,
		       uint32_t port, uint32_t timeout, int *ret)
{
	bool denied = false;
	struct net_addr a;

	for (unsigned int i = 0; net_addr_slot(first, i, &a); i++) {
		struct net_dial d = { 0 };
		int err;

		*ret = -ECANCELED;
		if (net->stopped)
			return true;
		err = net_dial_start(net, &a, 0, port, &d);
		*ret = err = err ? err : dial_wait(net, &d, timeout);
		if (err == -ECANCELED || link_find_known(net, node, port)) {
			*ret = err == -EISCONN ? 0 : err;
			return true;
		}
		/* the connect timed out, or a gateway is missing or has no further slot */
		if (err == -ETIMEDOUT || err == -EHOSTUNREACH || err == -ERANGE ||
		    has_no_descriptor(err) || a.below)
			break;
		denied |= err == -EACCES;
	}
	if (denied)
		*ret = -EACCES;
	return false;
}

/* Try all routes to the node, one after the other. */
static int dial_node(struct net *net, unsigned int node, uint32_t port,
		     uint32_t timeout)
{
	struct net_addr first;
	int ret = -EHOSTUNREACH;

	for (unsigned int i = 0; net_route_addr(net, node, i, &first); i++) {
		int err = -ENOENT;

		if (dial_slots(net, &first, node, port, timeout, &err))
			return err;
		/* this error is temporary: return it if all other routes fail, too */
		if (err == -ETIMEDOUT || err == -EACCES || has_no_descriptor(err))
			ret = err;
		else if (ret == -EHOSTUNREACH && err != -EHOSTUNREACH)
			ret = -ENOENT;
	}
	return ret;
}

/**
 * net_reach() - find the link to the instance that has a data interrupt
 *
 * Context: called with svc.lock held, which it releases while waiting.
 * Return: 0; -EHOSTUNREACH: no route to the node; -ENOENT: no such interrupt there; -EACCES: an
 * instance there has another key; -EMFILE, -ENFILE: no descriptor is free; -ETIMEDOUT; -ECANCELED.
 */
int net_reach(struct net *net, unsigned int node, uint32_t port, uint32_t timeout,
	      struct net_link **out)
{
	int ret;

	*out = link_find_known(net, node, port);
	if (*out)
		return 0;
	ret = dial_node(net, node, port, timeout);
	*out = link_find_known(net, node, port);
	if (*out)
		return 0;
	return ret ? ret : -ENOENT;
}
