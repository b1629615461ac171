// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The calls for memory of peers: reads, writes, atomics, pointers. */

#include "libsci/msg/api/api.h"

#include <errno.h>

#define MAP_LOOK_MS	5u		/* interval of attempts of sci_peer_map(), in ms */

int sci_buf_key(struct sci_ep *ep, const void *addr, size_t len,
		struct sci_key *key)
{
	struct msg_buf *b;

	if (!ep || !addr || !len || !key)
		return -EINVAL;
	if (!ep_lock(ep))
		return -ENOTCONN;
	b = buf_find(ep, addr, len);
	if (b)
		*key = (struct sci_key){
			.segment = ep->ops->lseg.id(b->seg),
			.rail = buf_rail(ep, b),
			.offset = (uint64_t)((const uint8_t *)addr - b->addr),
			.len = len,
		};
	msg_unlock(&ep->lock);
	return b ? 0 : -EINVAL;
}

/* The arguments of a one-sided call: bytes, a word, or both. */
struct transfer {
	enum msg_kind kind;
	enum msg_form form;
	const struct sci_key *key;
	uint64_t offset;
	const struct iovec *iov;
	size_t n;
	const struct sci_rmw *rmw;
	void *before;
	union {
		const struct sci_write_signal *signal;
		uint64_t imm;
		const struct sci_strided *strided;
	};
};

static void strides_describe(struct sci_req *req, const struct transfer *t)
{
	const struct sci_strided *s = t->strided;
	uint64_t below;

	stride_span((uint64_t)s->stride, s->len, s->n, &below, &req->strides.span);
	req->strides.buf = s->buf;
	req->strides.buf_stride = (uint64_t)s->buf_stride;
	req->strides.first = req->offset + below;
	req->strides.stride = (uint64_t)s->stride;
	req->strides.len = s->len;
	req->len = s->len * s->n;
}

static void form_describe(struct sci_req *req, const struct transfer *t)
{
	req->form = (uint8_t)t->form;
	if (t->form == FORM_STRIDED)
		strides_describe(req, t);
	if (t->form == FORM_EVENT)
		req->imm = t->imm;
	if (t->form != FORM_SIGNAL)
		return;
	req->word.rmw = t->signal->rmw;
	req->word.before = NULL;
	req->word.segment = t->signal->key.segment;
	req->word.offset = t->signal->key.offset + t->signal->offset;
}

static void word_describe(struct sci_req *req, const struct transfer *t)
{
	if (t->rmw) {
		req->word.rmw = *t->rmw;
		req->word.before = t->before;
		req->len = atomic_size(t->rmw);
	}
	if (t->form)
		form_describe(req, t);
}

static int transfer_start(struct sci_peer *p, const struct transfer *t, struct sci_req **out)
{
	struct sci_req *req;
	int ret;

	if (p->state == PEER_DOWN)
		return peer_error(p);
	if (!out && p->detached >= SCI_DETACHED_MAX)
		return -EAGAIN;
	req = req_new(p->ep, t->kind);
	if (!req)
		return -ENOMEM;
	ret = req_iov(req, t->iov, t->n);
	if (ret) {
		req_free(req);
		return ret;
	}
	req->peer = p;
	req->segment = t->key->segment;
	req->rail_segment = t->key->rail;
	req->offset = t->key->offset + t->offset;
	word_describe(req, t);
	req->status.len = req->len;
	req->state = MSG_MOVING;
	req->detached = !out;
	p->detached += !out;
	p->transfers += !out;
	list_add_tail(&req->link, &p->onesided);
	if (out)
		*out = req;
	/* the request starts when the connection is up */
	if (p->state == PEER_CONNECTING)
		return 0;
	peer_busy(p);
	send_push(p);
	/* no doorbell reports when the rest can go on: a sleeping thread must try again soon */
	if (!list_empty(&p->busy) && (p->ep->retry || p->ep->lossy))
		wake_all(p->ep);
	return 0;
}

static bool key_is_valid(const struct sci_key *key)
{
	return (!key->rail || msg_number_is_valid(key->rail)) &&
	       key->offset + key->len >= key->offset;
}

static int onesided_check_place(const struct sci_key *key, uint64_t offset, uint64_t len)
{
	if (!key_is_valid(key))
		return -EINVAL;
	return offset > key->len || key->len - offset < len ? -ERANGE : 0;
}

static int onesided_check_word(const struct sci_key *key, uint64_t offset,
			       const struct sci_rmw *a)
{
	if (!atomic_valid(a) || (key->offset + offset) % atomic_size(a))
		return -EINVAL;
	return onesided_check_place(key, offset, atomic_size(a));
}

static int transfer_call(struct sci_peer *peer, const struct transfer *t,
			 struct sci_req **req)
{
	int ret;

	if (!ep_lock(peer->ep))
		return -ENOTCONN;
	ret = transfer_start(peer, t, req);
	msg_unlock(&peer->ep->lock);
	return ret;
}

static int iov_bytes(struct sci_peer *peer, const struct transfer *t,
		     struct sci_req **req)
{
	int ret;

	if (!peer || !t->key || (!t->iov && t->n) || t->n > SCI_IOV_MAX ||
	    !msg_iov_good(t->iov, t->n))
		return -EINVAL;
	ret = onesided_check_place(t->key, t->offset, msg_iov_len(t->iov, t->n));
	return ret ? ret : transfer_call(peer, t, req);
}

int sci_iwritev(struct sci_peer *peer, const struct sci_key *key,
		uint64_t offset, const struct iovec *iov, size_t n,
		struct sci_req **req)
{
	const struct transfer t = { .kind = MSG_WRITE, .key = key, .offset = offset,
				    .iov = iov, .n = n };

	return iov_bytes(peer, &t, req);
}

int sci_iwrite_signal(struct sci_peer *peer, const struct sci_key *key,
		      uint64_t offset, const struct iovec *iov, size_t n,
		      const struct sci_write_signal *signal, struct sci_req **req)
{
	const struct transfer t = { .kind = MSG_WRITE, .key = key, .offset = offset,
				    .iov = iov, .n = n, .signal = signal,
				    .form = FORM_SIGNAL };
	int ret = signal ? onesided_check_word(&signal->key, signal->offset,
					       &signal->rmw) : -EINVAL;

	return ret ? ret : iov_bytes(peer, &t, req);
}

int sci_iwrite_imm(struct sci_peer *peer, const struct sci_key *key,
		   uint64_t offset, const struct iovec *iov, size_t n,
		   uint64_t imm, struct sci_req **req)
{
	const struct transfer t = { .kind = MSG_WRITE, .key = key, .offset = offset,
				    .iov = iov, .n = n, .imm = imm,
				    .form = FORM_EVENT };

	return iov_bytes(peer, &t, req);
}

int sci_ireadv(struct sci_peer *peer, const struct sci_key *key,
	       uint64_t offset, const struct iovec *iov, size_t n,
	       struct sci_req **req)
{
	const struct transfer t = { .kind = MSG_READ, .key = key, .offset = offset,
				    .iov = iov, .n = n };

	return iov_bytes(peer, &t, req);
}

static int strided_call(struct sci_peer *peer, const struct sci_key *key,
			const struct sci_strided *s, enum msg_kind kind, struct sci_req **req)
{
	struct transfer t = { .kind = kind, .key = key, .form = FORM_STRIDED, .strided = s };
	uint64_t below, span, buf_below, buf_span;
	struct iovec iov;
	size_t len;
	int ret;

	if (!peer || !key || !s || __builtin_mul_overflow(s->len, s->n, &len) ||
	    len > SSIZE_MAX || (len && !s->buf))
		return -EINVAL;
	t.offset = s->offset;
	if (!len) {
		t.form = FORM_PLAIN;
		return iov_bytes(peer, &t, req);
	}
	if (!stride_span((uint64_t)s->buf_stride, s->len, s->n, &buf_below, &buf_span) ||
	    buf_below > (uintptr_t)s->buf ||
	    buf_span > UINTPTR_MAX - ((uintptr_t)s->buf - buf_below))
		return -EINVAL;
	if (!stride_span((uint64_t)s->stride, s->len, s->n, &below, &span) ||
	    below > s->offset)
		return -ERANGE;
	t.offset -= below;
	ret = onesided_check_place(key, t.offset, span);
	if (ret)
		return ret;
	/* sci_buf_free() looks for memory in use in the vector */
	iov = (struct iovec){ (char *)s->buf - buf_below, buf_span };
	t.iov = &iov;
	t.n = 1;
	return transfer_call(peer, &t, req);
}

int sci_iwrite_strided(struct sci_peer *peer, const struct sci_key *key,
		       const struct sci_strided *s, struct sci_req **req)
{
	return strided_call(peer, key, s, MSG_WRITE, req);
}

int sci_iread_strided(struct sci_peer *peer, const struct sci_key *key,
		      const struct sci_strided *s, struct sci_req **req)
{
	return strided_call(peer, key, s, MSG_READ, req);
}

/* Execute an atomic at once. Return false if it needs a request, which also reports errors. */
static bool rmw_at_once(struct sci_peer *p, const struct transfer *t)
{
	uint64_t offset = t->key->offset + t->offset, old;
	struct msg_import *im;
	int error;

	if (p->state != PEER_UP || !p->may_read)
		return false;
	im = peer_import(p, t->key->segment, &error);
	if (!im || offset > im->size || im->size - offset < atomic_size(t->rmw))
		return false;
	old = atomic_apply(im->addr + offset, t->rmw);
	/* the word belonged to a dead peer: the change had no effect */
	if (!import_is_there(p, im))
		return false;
	atomic_result(t->before, t->rmw, old);
	p->ep->stats.atomics++;
	return true;
}

/* Start an atomic. @wanted: make a request even if the atomic can be executed at once */
static int rmw_start(struct sci_peer *peer, const struct sci_key *key,
		     uint64_t offset, const struct sci_rmw *rmw, void *before,
		     struct sci_req **req, bool wanted)
{
	const struct transfer t = { .kind = MSG_ATOMIC, .key = key,
				    .offset = offset, .rmw = rmw,
				    .before = before };
	int ret = peer && key && rmw ? onesided_check_word(key, offset, rmw) : -EINVAL;

	if (ret)
		return ret;
	if (!ep_lock(peer->ep))
		return -ENOTCONN;
	if (wanted || !rmw_at_once(peer, &t))
		ret = transfer_start(peer, &t, req);
	msg_unlock(&peer->ep->lock);
	return ret;
}

int sci_irmw(struct sci_peer *peer, const struct sci_key *key, uint64_t offset,
	     const struct sci_rmw *rmw, void *before, struct sci_req **req)
{
	return rmw_start(peer, key, offset, rmw, before, req, req);
}

int sci_write(struct sci_peer *peer, const struct sci_key *key,
	      uint64_t offset, const void *buf, size_t len)
{
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct sci_req *req = NULL;
	int ret = sci_iwritev(peer, key, offset, &iov, 1, &req);

	return ret ? ret : sci_wait(req, -1, NULL);
}

int sci_write_imm(struct sci_peer *peer, const struct sci_key *key,
		  uint64_t offset, const void *buf, size_t len, uint64_t imm)
{
	const struct iovec iov = { .iov_base = (void *)buf, .iov_len = len };
	struct sci_req *req = NULL;
	int ret = sci_iwrite_imm(peer, key, offset, &iov, 1, imm, &req);

	return ret ? ret : sci_wait(req, -1, NULL);
}

int sci_read(struct sci_peer *peer, const struct sci_key *key,
	     uint64_t offset, void *buf, size_t len)
{
	const struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct sci_req *req = NULL;
	int ret = sci_ireadv(peer, key, offset, &iov, 1, &req);

	return ret ? ret : sci_wait(req, -1, NULL);
}

int sci_rmw(struct sci_peer *peer, const struct sci_key *key, uint64_t offset,
	    const struct sci_rmw *rmw, void *before)
{
	struct sci_req *req = NULL;
	int ret = rmw_start(peer, key, offset, rmw, before, &req, false);

	return ret || !req ? ret : sci_wait(req, -1, NULL);
}

static int transfer_test(void *arg)
{
	const struct sci_peer *p = arg;

	return p->transfers ? -EAGAIN : 0;
}

int sci_flush(struct sci_peer *peer, int timeout)
{
	struct sci_ep *ep;
	int ret;

	if (!peer)
		return -EINVAL;
	ep = peer->ep;
	if (!ep_lock(ep))
		return -ENOTCONN;
	ret = msg_look(ep, transfer_test, peer, timeout);
	if (ret == -EAGAIN)
		ret = -ETIMEDOUT;
	if (!ret) {
		ret = peer->transfer_error;
		peer->transfer_error = 0;
	}
	/* also order the program's stores through pointers of sci_peer_map() */
	sci_store_barrier();
	msg_unlock(&ep->lock);
	return ret;
}

/* ---- pointers of the program ---- */

struct map_test {
	struct sci_peer *p;
	const struct sci_key *key;
	uint8_t *addr;
};

static int map_test(void *arg)
{
	struct map_test *m = arg;
	struct sci_peer *p = m->p;
	struct msg_import *im;
	int ret;

	if (p->state != PEER_UP)
		return p->state == PEER_DOWN ? peer_error(p) : -EAGAIN;
	im = peer_import(p, m->key->segment, &ret);
	if (!im && import_later(p, ret))
		return -EAGAIN;
	if (!im)
		return import_is_gone(ret) ? import_missing(p, &p->map_doubt_ms) : ret;
	if (m->key->offset > im->size || im->size - m->key->offset < m->key->len)
		return -ERANGE;
	p->map_doubt_ms = 0;
	im->pointers++;
	m->addr = im->addr + m->key->offset;
	return 0;
}

int sci_peer_map(struct sci_peer *peer, const struct sci_key *key, int timeout,
		 void **addr)
{
	struct map_test m = { .p = peer, .key = key };
	int ret;

	if (!peer || !key || !addr || !key_is_valid(key) || !key->len)
		return -EINVAL;
	if (!ep_lock(peer->ep))
		return -ENOTCONN;
	peer->no_room = 0;	/* the program may have made room */
	ret = peer->may_read ? map_test(&m) : -EOPNOTSUPP;
	if (ret == -EAGAIN)
		ret = msg_wait_often(peer->ep, map_test, &m, timeout, MAP_LOOK_MS);
	msg_unlock(&peer->ep->lock);
	if (!ret)
		*addr = m.addr;
	return ret;
}

int sci_peer_read_private(struct sci_peer *peer, void *dst, uint64_t addr, size_t len)
{
	int ret;

	if (!peer || (len && !dst))
		return -EINVAL;
	if (!ep_lock(peer->ep))
		return -ENOTCONN;
	if (peer->state == PEER_UP)
		ret = peer->stream ? -EOPNOTSUPP :
		      sci_peer_read(peer->fabric, peer->first.outbox, dst, addr, len);
	else
		ret = peer->state == PEER_DOWN ? peer_error(peer) : -EAGAIN;
	msg_unlock(&peer->ep->lock);
	return ret;
}

static struct msg_import *map_find(struct list *imports, const uint8_t *addr)
{
	struct list *pos, *n;

	list_for_each_safe(pos, n, imports) {
		struct msg_import *im = container_of(pos, struct msg_import,
						     link);

		if (im->pointers && addr >= im->addr &&
		    addr < im->addr + im->size)
			return im;
	}
	return NULL;
}

int sci_peer_unmap(struct sci_peer *peer, void *addr)
{
	struct msg_import *im;

	if (!peer || !addr)
		return -EINVAL;
	if (!ep_lock(peer->ep))
		return -ENOTCONN;
	im = map_find(&peer->imports, addr);
	if (im) {
		im->pointers--;
	} else {
		im = map_find(&peer->maps, addr);
		if (im && !--im->pointers)
			import_drop(im);
	}
	msg_unlock(&peer->ep->lock);
	return im ? 0 : -EINVAL;
}
