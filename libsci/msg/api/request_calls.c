// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The calls that test requests, wait for them or cancel them. */

#include "libsci/msg/api/api.h"

#include <errno.h>
#include <limits.h>

static bool req_is_done(struct sci_req *req)
{
	return atomic_load_explicit(&req->done, memory_order_acquire);
}

static __always_inline int req_collect(struct sci_req *req, struct sci_status *status)
{
	int error = req->status.error;

	if (status)
		*status = req->status;
	req_free(req);
	return error;
}

static int reqs_test_one(void *arg)
{
	return req_is_done(arg) ? 0 : -EAGAIN;
}

int sci_wait(struct sci_req *req, int timeout, struct sci_status *status)
{
	struct sci_ep *ep;
	int ret;

	if (!req)
		return -EINVAL;
	ep = req->ep;
	if (!ep_lock(ep))
		return -ENOTCONN;
	ret = req_is_done(req) ? 0 : msg_wait(ep, reqs_test_one, req, timeout);
	if (!ret)
		ret = req_collect(req, status);
	msg_unlock(&ep->lock);
	return ret;
}

int sci_test(struct sci_req *req, struct sci_status *status)
{
	struct sci_ep *ep;
	int ret = -EAGAIN;

	if (!req)
		return -EINVAL;
	ep = req->ep;
	if (!ep_lock(ep))
		return -ENOTCONN;
	if (!req_is_done(req))
		msg_progress(ep);
	if (req_is_done(req))
		ret = req_collect(req, status);
	msg_unlock(&ep->lock);
	return ret;
}

struct many {
	struct sci_req **reqs;
	size_t n;
	size_t found;
	size_t *indices;		/* of the requests that are done */
	struct sci_status *status;
	int error;
	bool all;
};

/* Return 0 if all requests are done. The next call starts at the first request that is not done. */
static int reqs_test_all(void *arg)
{
	struct many *m = arg;

	for (; m->found < m->n; m->found++)
		if (m->reqs[m->found] && !req_is_done(m->reqs[m->found]))
			return -EAGAIN;
	for (size_t i = 0; i < m->n; i++) {
		int ret;

		if (!m->reqs[i])
			continue;
		ret = req_collect(m->reqs[i], m->status ? &m->status[i] : NULL);
		m->reqs[i] = NULL;
		if (ret && !m->error)
			m->error = ret;
	}
	return 0;
}

static int reqs_test_any(void *arg)
{
	struct many *m = arg;
	bool none = true;

	for (size_t i = 0; i < m->n; i++) {
		if (!m->reqs[i])
			continue;
		none = false;
		if (!req_is_done(m->reqs[i]))
			continue;
		m->error = req_collect(m->reqs[i], m->status);
		m->reqs[i] = NULL;
		m->found = i;
		return 0;
	}
	return none ? -ENOENT : -EAGAIN;
}

static int reqs_test_some(void *arg)
{
	struct many *m = arg;
	bool none = true;
	int found = 0;

	for (size_t i = 0; i < m->n && found < INT_MAX; i++) {
		if (!m->reqs[i])
			continue;
		none = false;
		if (!req_is_done(m->reqs[i]))
			continue;
		m->indices[found] = i;
		req_collect(m->reqs[i], &m->status[found++]);
		m->reqs[i] = NULL;
	}
	return none ? -ENOENT : found ? found : -EAGAIN;
}

/* Find the endpoint of the requests. Return: 0; -EINVAL: several endpoints; -ENOENT: no request. */
static int reqs_get_endpoint(const struct many *m, struct sci_ep **out)
{
	struct sci_ep *ep = NULL;

	for (size_t i = 0; i < m->n; i++) {
		if (!m->reqs[i])
			continue;
		if (ep && ep != m->reqs[i]->ep)
			return -EINVAL;
		ep = m->reqs[i]->ep;
	}
	if (!ep)
		return -ENOENT;
	*out = ep;
	return msg_usable(ep) ? 0 : -ENOTCONN;
}

static int reqs_wait(struct many *m, int (*look)(void *arg), int timeout)
{
	struct sci_ep *ep;
	int ret = reqs_get_endpoint(m, &ep);

	if (ret)
		return ret == -ENOENT && m->all ? 0 : ret;
	msg_lock(&ep->lock);
	ret = msg_wait(ep, look, m, timeout);
	msg_unlock(&ep->lock);
	return ret ? ret : m->error;
}

static int reqs_test(struct many *m, int (*look)(void *arg))
{
	struct sci_ep *ep;
	int ret = reqs_get_endpoint(m, &ep);

	if (ret)
		return ret;
	msg_lock(&ep->lock);
	ret = msg_look(ep, look, m, 0);
	msg_unlock(&ep->lock);
	return ret ? ret : m->error;
}

int sci_waitall(struct sci_req **reqs, size_t n, int timeout,
		struct sci_status *status)
{
	struct many m = { .reqs = reqs, .n = n, .status = status, .all = true };

	if (!reqs && n)
		return -EINVAL;
	return reqs_wait(&m, reqs_test_all, timeout);
}

int sci_waitany(struct sci_req **reqs, size_t n, int timeout, size_t *index,
		struct sci_status *status)
{
	struct many m = { .reqs = reqs, .n = n, .status = status };
	int ret;

	if (!reqs || !index)
		return -EINVAL;
	m.found = n;
	ret = reqs_wait(&m, reqs_test_any, timeout);
	*index = m.found;
	return ret;
}

int sci_testany(struct sci_req **reqs, size_t n, size_t *index,
		struct sci_status *status)
{
	struct many m = { .reqs = reqs, .n = n, .found = n, .status = status };
	int ret;

	if (!reqs || !index)
		return -EINVAL;
	ret = reqs_test(&m, reqs_test_any);
	*index = m.found;
	return ret;
}

int sci_testsome(struct sci_req **reqs, size_t n, size_t *indices,
		 struct sci_status *status)
{
	struct many m = {
		.reqs = reqs, .n = n, .indices = indices, .status = status,
	};

	if (!reqs || !indices || !status)
		return -EINVAL;
	return reqs_test(&m, reqs_test_some);
}

int sci_cancel(struct sci_req *req)
{
	struct sci_ep *ep;
	int ret = 0;

	if (!req)
		return -EINVAL;
	ep = req->ep;
	if (!ep_lock(ep))
		return -ENOTCONN;
	if (req->state == MSG_POSTED) {
		recv_withdraw(req, -ECANCELED);
	} else if (req->state == MSG_DIALING) {
		connect_cancel(req);
		req_done(req, -ECANCELED);
	} else if (req->state == MSG_QUEUED && !req->moved) {
		list_del(&req->link);
		req_done(req, -ECANCELED);
	} else {
		ret = -EBUSY;
	}
	msg_unlock(&ep->lock);
	return ret;
}

/* ---- the completion queue ---- */

int sci_req_queue(struct sci_req *req, void *data)
{
	struct sci_ep *ep;
	int ret = 0;

	if (!req)
		return -EINVAL;
	ep = req->ep;
	if (!ep_lock(ep))
		return -ENOTCONN;
	if (req->queued) {
		ret = -EINVAL;
	} else {
		req->queued = true;
		req->data = data;
		if (req->state == MSG_DONE)
			completion_queue(req);
	}
	msg_unlock(&ep->lock);
	return ret;
}

static int completions_test(void *arg)
{
	struct sci_ep *ep = arg;

	return list_empty(&ep->completed) ? -EAGAIN : 0;
}

/* Take up to @n completions. Return their number, or -EAGAIN if there are none. */
static int completions_take(struct sci_ep *ep, struct sci_completion *done, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n && !list_empty(&ep->completed); i++) {
		struct list *l = list_pop(&ep->completed);
		struct sci_req *req = container_of(l, struct sci_req, link);

		done[i].data = req->data;
		done[i].status = req->status;
		done[i].buf = NULL;
		if (req->kind == MSG_RECV && req->whole) {
			done[i].buf = req->iov->iov_base;
			if (req->status.flags & SCI_STATUS_RETURNED)
				req_free(req->whole);
		} else if (req->kind == MSG_EVENT) {
			done[i].data = sci_load_acquire(&req->peer->data);
			req->peer->known = true;
			if (req->status.flags & SCI_STATUS_WRITTEN)
				req->peer->events_taken++;
			events_return(req->peer);
		}
		req_free(req);
	}
	return i ? (int)i : -EAGAIN;
}

int sci_completions_queued(struct sci_ep *ep)
{
	return ep && !list_empty(&ep->completed);
}

int sci_completions(struct sci_ep *ep, int timeout, struct sci_completion *done,
		    unsigned int n)
{
	int ret = 0;

	if (!ep || !done || !n || n > INT_MAX)
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	if (list_empty(&ep->completed))
		msg_progress(ep);
	if (list_empty(&ep->completed))
		ret = timeout ? msg_wait(ep, completions_test, ep, timeout) :
				-EAGAIN;
	ret = ret ? ret : completions_take(ep, done, n);
	msg_unlock(&ep->lock);
	return ret;
}
