// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: messages
 *
 * All messages go to one handler. The upper 8 bits of the tag are the operation. The lower 56 bits
 * are the number of the call, which the answer repeats. A handler answers at once if possible.
 * It leaves requests that need memory to the server, and requests that need views to the
 * worker.
 */
#include "libsci/vm/internal.h"

#include <stdlib.h>

#include "libsci/base/thread.h"

#define OP_SHIFT	56
#define POLL_MS		100		/* time between two checks for a dead callee */

int vm_send(struct sci_vm *vm, int rank, enum vm_op op, uint64_t id,
		     const struct vm_wire *w, const void *more, size_t len)
{
	struct iovec iov[2] = {
		{ .iov_base = (void *)(uintptr_t)w, .iov_len = sizeof(*w) },
		{ .iov_base = (void *)(uintptr_t)more, .iov_len = len },
	};
	uint64_t one = rank != vm->rank;
	int ret;

	/* before the send: its receiver may look at the counters */
	VM_COUNT(vm, messages, one);
	VM_COUNT(vm, bytes, one * (sizeof(*w) + len));
	ret = sci_handler_sendv(vm->ranks[rank].peer, VM_HANDLER, (uint64_t)op << OP_SHIFT | id,
				iov, len ? 2 : 1);
	if (ret) {
		VM_COUNT(vm, messages, -one);
		VM_COUNT(vm, bytes, -one * (sizeof(*w) + len));
	}
	return ret;
}

/* ---- calls to other members ---- */

/**
 * vm_call_start() - send a request to a member
 * @c: in use until vm_call_wait() returns; after a return of 0 the caller must wait
 * @more: NULL, or @len bytes that follow @w
 */
int vm_call_start(struct sci_vm *vm, struct vm_call *c, int rank, enum vm_op op,
		  const struct vm_wire *w, const void *more, size_t len)
{
	int ret;

	if (atomic_load(&vm->ranks[rank].dead))
		return -ECONNRESET;
	c->rank = rank;
	c->answer = op == VM_OP_PAGE ? VM_OP_DATA :
		    op == VM_OP_CHANGES ? VM_OP_NOTICES : VM_OP_ANSWER;
	c->error = 0;
	c->got = 0;
	atomic_store(&c->done, false);
	pthread_mutex_lock(&vm->serve_lock);
	c->id = ++vm->next_id;
	list_add_tail(&c->link, &vm->calls);
	pthread_mutex_unlock(&vm->serve_lock);
	while ((ret = vm_send(vm, rank, op, c->id, w, more, len)) == -EAGAIN)
		sci_progress(vm->ep);
	if (ret) {
		pthread_mutex_lock(&vm->serve_lock);
		list_del(&c->link);
		pthread_mutex_unlock(&vm->serve_lock);
	}
	return ret == -ENOTCONN ? -ECONNRESET : ret;
}

static int call_done(void *arg)
{
	struct vm_call *c = arg;

	return atomic_load(&c->done) ? 0 : -EAGAIN;
}

/* Wait for the answer. Return: 0, the error of the answer, or -ECONNRESET. */
int vm_call_wait(struct sci_vm *vm, struct vm_call *c)
{
	/* if the callee dies, the server ends the call, but wakes no thread */
	while (sci_wait_until(vm->ep, call_done, c, POLL_MS) == -ETIMEDOUT)
		if (atomic_load(&vm->ranks[c->rank].dead))
			vm_calls_fail(vm, c->rank);
	return c->error;
}

int vm_call(struct sci_vm *vm, struct vm_call *c, int rank, enum vm_op op,
	    const struct vm_wire *w)
{
	int ret = vm_call_start(vm, c, rank, op, w, NULL, 0);

	return ret ? ret : vm_call_wait(vm, c);
}

/* Call all other members at once. Return the first error, or -ENOMEM. */
int vm_call_all(struct sci_vm *vm, enum vm_op op, const struct vm_wire *w,
		const void *more, size_t len)
{
	struct vm_call *calls = calloc((size_t)vm->size, sizeof(*calls));
	int ret = 0;

	if (!calls)
		return -ENOMEM;
	for (int i = 0; i < vm->size; i++)
		if (i != vm->rank)
			calls[i].sent = vm_call_start(vm, &calls[i], i, op, w, more, len);
	for (int i = 0; i < vm->size; i++) {
		int error = calls[i].sent;

		if (i == vm->rank)
			continue;
		if (!error)
			error = vm_call_wait(vm, &calls[i]);
		ret = ret ? ret : error;
	}
	free(calls);
	return ret;
}

void vm_calls_fail(struct sci_vm *vm, int rank)
{
	struct list *pos, *n;

	pthread_mutex_lock(&vm->serve_lock);
	list_for_each_safe(pos, n, &vm->calls) {
		struct vm_call *c = container_of(pos, struct vm_call, link);

		if (c->rank != rank)
			continue;
		list_del(&c->link);
		c->error = -ECONNRESET;
		atomic_store(&c->done, true);
	}
	pthread_mutex_unlock(&vm->serve_lock);
}

void vm_answer(struct sci_vm *vm, int rank, uint64_t id, const struct vm_wire *w)
{
	/* the caller may have died; then no thread waits for the answer */
	vm_send(vm, rank, VM_OP_ANSWER, id, w, NULL, 0);
}

/* End a call. On return the call belongs to its caller again. */
static void call_end(struct vm_call *c, const struct vm_wire *w, int error)
{
	list_del(&c->link);
	c->w = *w;
	c->error = error;
	atomic_store(&c->done, true);
}

/*
 * Find the call of an answer; NULL: the call has ended. An answer of the wrong kind ends the call.
 * Context: vm->serve_lock is held.
 */
static struct vm_call *call_find(struct sci_vm *vm, int rank, uint64_t id, enum vm_op op,
				 const struct vm_wire *w)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, &vm->calls) {
		struct vm_call *c = container_of(pos, struct vm_call, link);

		if (c->id != id || c->rank != rank)
			continue;
		if (op == c->answer || (op == VM_OP_ANSWER && w->value < 0))
			return c;
		call_end(c, w, -EPROTO);
		return NULL;
	}
	return NULL;
}

static void serve_take_answer(struct sci_vm *vm, int rank, uint64_t id, const struct vm_wire *w)
{
	struct vm_call *c;

	pthread_mutex_lock(&vm->serve_lock);
	c = call_find(vm, rank, id, VM_OP_ANSWER, w);
	if (c)
		call_end(c, w, w->value < 0 ? w->value : 0);
	pthread_mutex_unlock(&vm->serve_lock);
}

static void serve_take_data(struct sci_vm *vm, int rank, uint64_t id, const struct vm_wire *w,
			    const void *data, size_t len)
{
	struct vm_call *c;

	pthread_mutex_lock(&vm->serve_lock);
	c = call_find(vm, rank, id, VM_OP_DATA, w);
	if (c && w->len <= c->room && len <= c->room - w->len) {
		memcpy((uint8_t *)c->buf + w->len, data, len);
		c->got += len;
		if (w->value)
			call_end(c, w, c->got == c->room ? 0 : -EPROTO);
	} else if (c) {
		call_end(c, w, -EPROTO);
	}
	pthread_mutex_unlock(&vm->serve_lock);
}

/* Append write notices to those from earlier messages of the same call. */
static void serve_take_notices(struct sci_vm *vm, int rank, uint64_t id, const struct vm_wire *w,
			       const void *data, size_t len)
{
	struct vm_call *c;
	void *buf;

	pthread_mutex_lock(&vm->serve_lock);
	c = call_find(vm, rank, id, VM_OP_NOTICES, w);
	buf = c && len ? realloc(c->buf, c->got + len) : NULL;
	if (buf) {
		memcpy((uint8_t *)buf + c->got, data, len);
		c->buf = buf;
		c->got += len;
	}
	if (c && len && !buf)
		call_end(c, w, -ENOMEM);
	else if (c && w->value)
		call_end(c, w, 0);
	pthread_mutex_unlock(&vm->serve_lock);
}

/* ---- the directory ---- */

/**
 * vm_serve_home() - find the home of a page of this directory
 * @want: the member that becomes the home if there is none; -1: no member
 *
 * Return: rank of the home; -ENOENT: the page has no home; -EFAULT: no such page.
 */
int vm_serve_home(struct sci_vm *vm, const void *addr, int want)
{
	struct vm_range *r;
	int ret = -EFAULT;

	pthread_mutex_lock(&vm->serve_lock);
	r = vm_range_find(vm, addr);
	if (r) {
		struct vm_page *p = &r->pages[vm_page_index(r, addr)];

		if (p->dir_home < 0)
			p->dir_home = (int16_t)want;
		ret = p->dir_home < 0 ? -ENOENT : p->dir_home;
	}
	pthread_mutex_unlock(&vm->serve_lock);
	return ret;
}

/* Bind pages of this directory from @addr on. Return: 0; -EBUSY: some page has another home. */
int vm_serve_place(struct sci_vm *vm, const void *addr, uint64_t len, int home)
{
	struct vm_range *r;
	int ret = -EFAULT;

	pthread_mutex_lock(&vm->serve_lock);
	r = vm_range_find(vm, addr);
	if (r && len && len <= r->len - (uint64_t)((const uint8_t *)addr - r->addr)) {
		size_t at = (size_t)((const uint8_t *)addr - r->addr);

		ret = 0;
		for (size_t i = at >> r->shift; i <= (at + len - 1) >> r->shift; i++) {
			if (vm_page_directory(vm, i) != vm->rank)
				continue;
			if (r->pages[i].dir_home < 0)
				r->pages[i].dir_home = (int16_t)home;
			else if (r->pages[i].dir_home != home)
				ret = -EBUSY;
		}
	}
	pthread_mutex_unlock(&vm->serve_lock);
	return ret;
}

/* ---- the home ---- */

static bool page_is_home(const struct sci_vm *vm, const struct vm_range *r, size_t i)
{
	int home = vm_page_fixed_home(vm, r, i);

	return home < 0 || home == vm->rank;
}

/* Return how many frames to allocate at once: in an eager range, all of this member's pages. */
static size_t frames_count_missing(const struct sci_vm *vm, const struct vm_range *r)
{
	size_t n = 0;

	if (!(r->flags & SCI_VM_EAGER))
		return 1;
	for (size_t i = 0; i < r->n; i++)
		n += !r->pages[i].frame && page_is_home(vm, r, i);
	return n;
}

static void frames_bind(struct sci_vm *vm, struct vm_range *r, size_t i, uint8_t *frame,
			size_t n)
{
	size_t page = vm_page_size(r);

	VM_COUNT(vm, homed, n);
	if (!(r->flags & SCI_VM_EAGER)) {
		r->pages[i].frame = frame;
		return;
	}
	for (i = 0; n && i < r->n; i++)
		if (!r->pages[i].frame && page_is_home(vm, r, i)) {
			r->pages[i].frame = frame;
			frame += page;
			n--;
		}
}

/**
 * vm_serve_frame() - find the frame of a page whose home is this member, or allocate it
 *
 * Context: no lock is held. Return: 0; -EFAULT: no such page, or another member is its home;
 * -ENOMEM.
 */
int vm_serve_frame(struct sci_vm *vm, const void *addr, void **frame)
{
	void *spare = NULL;
	size_t have = 0;
	int ret = 0;

	for (;;) {
		struct vm_range *r;
		size_t i, n, page;

		pthread_mutex_lock(&vm->serve_lock);
		r = vm_range_find(vm, addr);
		i = r ? vm_page_index(r, addr) : 0;
		page = r ? vm_page_size(r) : 0;
		n = 0;
		if (!r || !page_is_home(vm, r, i))
			ret = -EFAULT;
		else if (!r->pages[i].frame)
			n = frames_count_missing(vm, r);
		if (n && n * page == have) {
			frames_bind(vm, r, i, spare, n);
			spare = NULL;
		}
		if (!ret)
			*frame = r->pages[i].frame;
		if (spare)
			vm_frames_free(vm, spare, have);
		pthread_mutex_unlock(&vm->serve_lock);
		spare = NULL;
		if (ret || *frame)
			return ret;
		have = n * page;
		ret = vm_frames_alloc(vm, have, &spare);
		if (ret)
			return ret;
	}
}

/* Answer VM_OP_FRAME with as many adjacent frames as possible. vm->serve_lock is held. */
static bool frame_answer(struct sci_vm *vm, const void *addr, struct vm_wire *w)
{
	struct vm_range *r = vm_range_find(vm, addr);
	size_t i, page;
	uint8_t *frame;

	if (!r)
		return false;
	i = vm_page_index(r, addr);
	frame = r->pages[i].frame;
	page = vm_page_size(r);
	w->value = -EFAULT;
	if (!frame || !vm_frame_key(vm, frame, &w->key, &w->addr))
		return false;
	w->value = 0;
	w->len = page;
	/* a member that maps the whole range asks once for each run */
	while (r->flags & SCI_VM_EAGER && ++i < r->n && r->pages[i].frame == frame + w->len)
		w->len += page;
	w->len = w->len > w->key.len - w->addr ? w->key.len - w->addr : w->len;
	return true;
}

/* Send a page in parts. The handler holds the endpoint's lock, so the parts arrive in sequence. */
static void serve_send_page(struct sci_vm *vm, int rank, uint64_t id, uint64_t addr)
{
	struct vm_wire w = { .addr = addr, .value = -EFAULT };
	size_t len, part;
	uint8_t *page;

	pthread_mutex_lock(&vm->serve_lock);
	page = vm_home_page(vm, (void *)(uintptr_t)addr, &len);
	if (!page)
		vm_answer(vm, rank, id, &w);
	for (w.len = 0; page && w.len < len; w.len += part) {
		part = len - w.len < VM_DATA_MAX ? len - w.len : VM_DATA_MAX;
		w.value = w.len + part == len;
		vm_send(vm, rank, VM_OP_DATA, id, &w, page + w.len, part);
	}
	pthread_mutex_unlock(&vm->serve_lock);
}

/* Send the write notices of this member with intervals after @since. */
static void serve_send_notices(struct sci_vm *vm, int rank, uint64_t id, uint32_t since)
{
	const size_t most = VM_DATA_MAX / sizeof(struct vm_pages);
	struct vm_wire w = { .value = -ENOMEM };
	struct vm_pages *runs = NULL;
	size_t n, at = 0, part;

	pthread_mutex_lock(&vm->serve_lock);
	w.len = vm->interval;
	n = vm_serve_notices(vm, since, &runs);
	if (n && !runs)
		vm_answer(vm, rank, id, &w);
	else
		do {
			part = n - at < most ? n - at : most;
			w.value = at + part == n;
			vm_send(vm, rank, VM_OP_NOTICES, id, &w, runs + at,
				part * sizeof(*runs));
			at += part;
		} while (at < n);
	pthread_mutex_unlock(&vm->serve_lock);
	free(runs);
}

/* ---- the server ---- */

static void job_queue(struct sci_vm *vm, enum vm_job_kind kind, const struct vm_request *q)
{
	struct vm_wire w = { .value = -ENOMEM };
	struct vm_job *job = calloc(1, sizeof(*job));

	if (!job) {
		vm_answer(vm, q->rank, q->id, &w);
		return;
	}
	job->kind = kind;
	job->addr = (void *)(uintptr_t)q->w.addr;
	job->rank = q->rank;
	job->id = q->id;
	vm_job_push(vm, job);
}

/* Serve a request that a handler has queued. */
static void serve_request(struct sci_vm *vm, struct vm_request *q)
{
	struct vm_wire w = { .value = 0 };
	void *addr = (void *)(uintptr_t)q->w.addr, *frame;

	switch (q->op) {
	case VM_OP_FRAME:
		w.value = vm_serve_frame(vm, addr, &frame);
		pthread_mutex_lock(&vm->serve_lock);
		if (!w.value)
			frame_answer(vm, addr, &w);
		pthread_mutex_unlock(&vm->serve_lock);
		break;
	case VM_OP_ALLOC:
		w.value = vm_range_add(vm, &q->range, q->rank);
		break;
	case VM_OP_EAGER:
		job_queue(vm, VM_JOB_EAGER, q);
		return;
	case VM_OP_FREE:
		job_queue(vm, VM_JOB_FREE, q);
		return;
	default:
		return;
	}
	vm_answer(vm, q->rank, q->id, &w);
}

/* Serve a request in the handler. Return false if the request must be queued for the server. */
static bool serve_at_once(struct sci_vm *vm, enum vm_op op, int rank, uint64_t id,
			  const struct vm_wire *in, const void *more, size_t len)
{
	struct vm_wire w = { .value = 0 };
	const void *addr = (const void *)(uintptr_t)in->addr;
	bool known = true;

	switch (op) {
	case VM_OP_ANSWER:
		serve_take_answer(vm, rank, id, in);
		return true;
	case VM_OP_HOME:
		w.value = in->value >= vm->size ? -EINVAL : vm_serve_home(vm, addr, in->value);
		break;
	case VM_OP_PLACE:
		w.value = in->value < 0 || in->value >= vm->size ? -EINVAL :
			  vm_serve_place(vm, addr, in->len, in->value);
		break;
	case VM_OP_FRAME:
		pthread_mutex_lock(&vm->serve_lock);
		known = frame_answer(vm, addr, &w);
		pthread_mutex_unlock(&vm->serve_lock);
		break;
	case VM_OP_PAGE:
		serve_send_page(vm, rank, id, in->addr);
		return true;
	case VM_OP_DIFF:
		w.value = vm_serve_diff(vm, addr, more, len);
		known = id != 0;	/* only the last of several diffs asks for an answer */
		break;
	case VM_OP_CHANGES:
		serve_send_notices(vm, rank, id, (uint32_t)in->len);
		return true;
	case VM_OP_DATA:
		serve_take_data(vm, rank, id, in, more, len);
		return true;
	case VM_OP_NOTICES:
		serve_take_notices(vm, rank, id, in, more, len);
		return true;
	default:
		return false;
	}
	if (op == VM_OP_DIFF && !known)
		return true;
	if (known)
		vm_answer(vm, rank, id, &w);
	return known;
}

static void serve_message(void *arg, const struct sci_handled *m)
{
	struct sci_vm *vm = arg;
	int rank = (int)(intptr_t)sci_peer_data(m->peer) - 1;
	enum vm_op op = (enum vm_op)(m->tag >> OP_SHIFT);
	uint64_t id = m->tag & ((1ull << OP_SHIFT) - 1);
	struct vm_wire w, no_memory = { .value = -ENOMEM };
	struct vm_request *q;

	if (rank < 0 || op >= VM_OPS || m->len < sizeof(w) || m->error)
		return;
	memcpy(&w, m->data, sizeof(w));
	if (serve_at_once(vm, op, rank, id, &w, (const uint8_t *)m->data + sizeof(w),
			  m->len - sizeof(w)))
		return;
	if (op == VM_OP_ALLOC && m->len != sizeof(w) + sizeof(q->range))
		return;
	q = calloc(1, sizeof(*q));
	if (!q) {
		vm_answer(vm, rank, id, &no_memory);
		return;
	}
	q->op = op;
	q->rank = rank;
	q->id = id;
	q->w = w;
	if (op == VM_OP_ALLOC)
		memcpy(&q->range, (const uint8_t *)m->data + sizeof(w), sizeof(q->range));
	pthread_mutex_lock(&vm->serve_lock);
	list_add_tail(&q->link, &vm->requests);
	pthread_mutex_unlock(&vm->serve_lock);
}

/* Take completions of the endpoint. They report peers that connect, disconnect or die. */
static void serve_take_events(struct sci_vm *vm)
{
	struct sci_completion c;

	while (sci_completions(vm->ep, 0, &c, 1) == 1) {
		if (!(c.status.flags & SCI_STATUS_PEER_DOWN))
			continue;
		for (int i = 0; i < vm->size; i++)
			if (i != vm->rank && vm->ranks[i].peer == c.status.peer)
				vm_death(vm, i, c.status.error == -ENOTCONN ? NULL : "died");
	}
}

/* Return 0 if the server has a request or an event to handle, else -EAGAIN. */
static int serve_needed(void *arg)
{
	struct sci_vm *vm = arg;
	bool idle;

	pthread_mutex_lock(&vm->serve_lock);
	idle = list_empty(&vm->requests);
	pthread_mutex_unlock(&vm->serve_lock);
	return idle && !sci_completions_queued(vm->ep) ? -EAGAIN : 0;
}

static void *serve_thread(void *arg)
{
	struct sci_vm *vm = arg;

	for (;;) {
		struct list *l;

		sci_wait_until(vm->ep, serve_needed, vm, -1);
		serve_take_events(vm);
		pthread_mutex_lock(&vm->serve_lock);
		l = list_pop(&vm->requests);
		pthread_mutex_unlock(&vm->serve_lock);
		if (l) {
			struct vm_request *q = container_of(l, struct vm_request, link);
			bool stop = q->op == VM_OP_STOP && q->rank == vm->rank;

			serve_request(vm, q);
			free(q);
			if (stop)
				return NULL;
		}
	}
}

int vm_server_start(struct sci_vm *vm)
{
	int ret = sci_handler_set(vm->ep, VM_HANDLER, serve_message, vm);

	return ret ? ret : sci_thread_start(&vm->server, serve_thread, vm, "sci-vm-server");
}

void vm_server_stop(struct sci_vm *vm)
{
	struct vm_wire w = { .value = 0 };
	struct list *l;

	while (vm_send(vm, vm->rank, VM_OP_STOP, 0, &w, NULL, 0) == -EAGAIN)
		sci_progress(vm->ep);
	pthread_join(vm->server, NULL);
	sci_handler_set(vm->ep, VM_HANDLER, NULL, NULL);
	while ((l = list_pop(&vm->requests)))
		free(container_of(l, struct vm_request, link));
	vm_jobs_drop(vm);
}
