// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Remote segments: connect, events, disconnect. */

#include "libsci/base/thread.h"
#include "libsci/sisci/object.h"

#define DEFAULT_TIMEOUT	5000u		/* ms, if the caller's timeout is 0 */
#define CONNECT_FLAGS	(SCI_FLAG_USE_CALLBACK | SCI_FLAG_BROADCAST |	\
			 SCI_FLAG_ASYNCHRONOUS_CONNECT |		\
			 SCI_FLAG_DMA_GLOBAL)

/* ---- events ---- */

static bool remote_deliver(const struct sci_listener *to, const struct sci_note *note)
{
	struct sci_rseg_obj *r = to->priv;
	sci_cb_remote_segment_t cb = (sci_cb_remote_segment_t)to->cb;

	/* wait for rseg_connect(), which holds the lock until it has stored the handle */
	pthread_mutex_lock(&r->obj.lock);
	pthread_mutex_unlock(&r->obj.lock);
	return cb(to->arg, to->handle, (sci_segment_cb_reason_t)note->reason,
		  note->status) != SCI_CALLBACK_CANCEL;
}

/* ---- connect ---- */

static sci_error_t rseg_new(sci_desc_t sd, sci_cb_remote_segment_t callback,
			    void *arg, unsigned int flags,
			    struct sci_rseg_obj **out)
{
	struct sci_listener to = {.deliver = remote_deliver, .arg = arg};
	struct sci_desc_obj *d = sci_get(sd, SCI_TYPE_DESC);
	struct sci_rseg_obj *r;
	sci_error_t err;

	if (!d)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = sci_new(SCI_TYPE_RSEG, sizeof(*r), &d->obj, &r);
	sci_put(d);
	if (err)
		return err;
	if (flags & SCI_FLAG_USE_CALLBACK)
		to.cb = (void (*)(void))callback;
	to.handle = sci_handle(r);
	to.priv = r;
	r->events = sci_notifier_new(&to);
	if (!r->events) {
		sci_release(r);
		return SCI_ERR_API_NOSPC;
	}
	sci_cond_init(&r->connected);
	list_init(&r->sequences);
	*out = r;
	return SCI_ERR_OK;
}

static void remote_discard(struct sci_rseg_obj *r)
{
	sci_notifier_free(r->events);
	pthread_cond_destroy(&r->connected);
	sci_release(r);
}

/* Connect through the fabric on a pool thread, for an asynchronous connect. */
static void connect_job(struct sci_job *job)
{
	struct sci_rseg_obj *r = container_of(job, struct sci_rseg_obj, job);
	struct sci_note note = { .reason = SCI_CB_CONNECT, .count = 1 };
	struct sci_rseg *seg = NULL;

	note.status = sci_err(sci_lib.ops->rseg.connect(sci_lib.fabric,
							&r->param, &seg),
			      SCI_CTX_CONNECT);
	note.node = r->node;
	note.adapter = r->adapter;
	pthread_mutex_lock(&r->obj.lock);
	r->seg = seg;
	pthread_mutex_unlock(&r->obj.lock);
	sci_notify(r->events, &note, SCI_MERGE_NO);
	pthread_mutex_lock(&r->obj.lock);
	r->connecting = false;
	pthread_cond_broadcast(&r->connected);
	pthread_mutex_unlock(&r->obj.lock);
}

static sci_error_t rseg_start_connect(struct sci_rseg_obj *r, unsigned int flags)
{
	int ret;

	if (!(flags & SCI_FLAG_ASYNCHRONOUS_CONNECT)) {
		ret = sci_lib.ops->rseg.connect(sci_lib.fabric, &r->param,
						&r->seg);
		return sci_err(ret, SCI_CTX_CONNECT);
	}
	r->connecting = true;
	r->job.run = connect_job;
	return sci_err(sci_pool_submit(&r->job), SCI_CTX_CONNECT);
}

static sci_error_t rseg_check_connect(const sci_remote_segment_t *segment,
				      unsigned int *node, unsigned int adapter,
				      sci_cb_remote_segment_t callback,
				      unsigned int flags)
{
	sci_error_t err;

	if (!segment || (flags & SCI_FLAG_USE_CALLBACK && !callback))
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = sci_check_adapter(adapter);
	if (err)
		return err;
	if (*node != DIS_BROADCAST_NODEID_GROUP_ALL)
		return sci_check_node(node);
	*node = SCI_NODE_GROUP;
	return flags & SCI_FLAG_BROADCAST ? SCI_ERR_OK :
					    SCI_ERR_ILLEGAL_NODEID;
}

static sci_error_t rseg_connect(sci_desc_t sd,
				sci_remote_segment_t *segment,
				unsigned int node, unsigned int id,
				unsigned int adapter,
				sci_cb_remote_segment_t callback, void *arg,
				unsigned int timeout, unsigned int flags)
{
	struct sci_rseg_obj *r;
	sci_error_t err;

	err = rseg_check_connect(segment, &node, adapter, callback, flags);
	err = err ? err : rseg_new(sd, callback, arg, flags, &r);
	if (err)
		return err;
	r->adapter = adapter;
	r->node = node;
	r->id = id;
	r->broadcast = flags & SCI_FLAG_BROADCAST;
	r->param = (struct sci_rseg_param) {
		.adapter = adapter, .node = node, .id = id,
		.timeout = timeout ? timeout : DEFAULT_TIMEOUT,
		.event = sci_segment_event, .owner = r->events,
	};

	pthread_mutex_lock(&r->obj.lock);
	err = rseg_start_connect(r, flags);
	if (!err) {
		*segment = sci_handle(r);
		sci_publish(r);
	}
	pthread_mutex_unlock(&r->obj.lock);
	if (err)
		remote_discard(r);
	return err;
}

void SCIConnectSegment(sci_desc_t sd, sci_remote_segment_t *segment,
		       unsigned int nodeId, unsigned int segmentId,
		       unsigned int localAdapterNo,
		       sci_cb_remote_segment_t callback, void *callbackArg,
		       unsigned int timeout, unsigned int flags,
		       sci_error_t *error)
{
	SCI_CALL(error, flags, CONNECT_FLAGS,
		 sci_throttle(rseg_connect(sd, segment, nodeId, segmentId,
					   localAdapterNo, callback,
					   callbackArg, timeout, flags)));
}
SISCI_EXPORT(SCIConnectSegment);

/* ---- disconnect ---- */

void sci_rseg_cancel(void *obj)
{
	struct sci_rseg_obj *r = obj;

	sci_lib.ops->rseg.cancel_connect(sci_lib.fabric, r->events);
	sci_notifier_cancel(r->events);
}

void sci_rseg_destroy(void *obj)
{
	struct sci_rseg_obj *r = obj;

	sci_close_obj(r, true);
	sci_retire(r);
	sci_notifier_cancel(r->events);
	sci_drain(r);
	pthread_mutex_lock(&r->obj.lock);
	/* Repeat the cancel: the job may not have called the fabric yet. */
	while (r->connecting) {
		const struct timespec soon = sci_deadline(10);

		sci_lib.ops->rseg.cancel_connect(sci_lib.fabric, r->events);
		sci_cond_wait(&r->connected, &r->obj.lock, 10, &soon);
	}
	pthread_mutex_unlock(&r->obj.lock);
	sci_seq_orphan(r);
	sci_bequeath(r, r->id, r->node);
	if (r->seg)
		sci_lib.ops->rseg.disconnect(r->seg);
	sci_notifier_free(r->events);
	pthread_cond_destroy(&r->connected);
	sci_release(r);
}

void sci_rseg_bury(void *obj, void *desc)
{
	struct sci_rseg_obj *r = obj;
	bool gone;

	if (r->obj.desc != desc)
		return;
	pthread_mutex_lock(&r->obj.lock);
	gone = r->seg && atomic_load(&sci_lib.ops->rseg.status(r->seg)->gone);
	pthread_mutex_unlock(&r->obj.lock);
	if (gone && !sci_close_obj(r, false))
		sci_rseg_destroy(r);
}

static sci_error_t remote_disconnect(sci_remote_segment_t segment)
{
	struct sci_rseg_obj *r;
	sci_error_t err;

	if (sci_waits_for(segment))
		return SCI_ERR_BUSY;
	r = sci_get(segment, SCI_TYPE_RSEG);
	if (!r)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = sci_close_obj(r, false);
	if (!err)
		sci_rseg_destroy(r);
	sci_put(r);
	return err;
}

void SCIDisconnectSegment(sci_remote_segment_t segment, unsigned int flags,
			  sci_error_t *error)
{
	SCI_CALL(error, flags, 0, remote_disconnect(segment));
}
SISCI_EXPORT(SCIDisconnectSegment);

/* ---- questions ---- */

static sci_error_t remote_wait_event(void *obj, void *arg)
{
	struct sci_rseg_obj *r = obj;
	struct sci_event_wait *w = arg;

	return sci_notifier_wait(r->events, &w->note, w->timeout);
}

sci_segment_cb_reason_t
SCIWaitForRemoteSegmentEvent(sci_remote_segment_t segment,
			     sci_error_t *status, unsigned int timeout,
			     unsigned int flags, sci_error_t *error)
{
	struct sci_event_wait w = { .timeout = timeout };
	sci_error_t err;

	SCI_RUN(err, flags, 0,
		sci_wait_on(segment, SCI_TYPE_RSEG, remote_wait_event, &w));
	sci_set_error(error, err);
	if (!err && status)
		*status = w.note.status;
	return (sci_segment_cb_reason_t)w.note.reason;
}
SISCI_EXPORT(SCIWaitForRemoteSegmentEvent);

struct answers {
	unsigned int id;
	unsigned int node;
	size_t size;
};

static sci_error_t rseg_get_info(sci_remote_segment_t segment, struct answers *a)
{
	struct sci_rseg_obj *r = sci_get(segment, SCI_TYPE_RSEG);
	uint32_t words[2];

	/* Some programs get the ID of a segment that they have just disconnected. */
	if (!r && sci_legacy(segment, SCI_TYPE_RSEG, words)) {
		a->id = words[0];
		a->node = words[1];
		return SCI_ERR_OK;
	}
	if (!r)
		return SCI_ERR_ILLEGAL_PARAMETER;
	pthread_mutex_lock(&r->obj.lock);
	a->id = r->id;
	a->node = r->node;
	a->size = r->seg ? sci_lib.ops->rseg.size(r->seg) : 0;
	pthread_mutex_unlock(&r->obj.lock);
	sci_put(r);
	return SCI_ERR_OK;
}

size_t SCIGetRemoteSegmentSize(sci_remote_segment_t segment)
{
	struct answers a = { .size = 0 };
	sci_error_t err;

	SCI_RUN(err, 0, 0, rseg_get_info(segment, &a));
	return a.size;
}
SISCI_EXPORT(SCIGetRemoteSegmentSize);

unsigned int SCIGetRemoteSegmentId(sci_remote_segment_t segment)
{
	struct answers a = { .id = 0 };
	sci_error_t err;

	SCI_RUN(err, 0, 0, rseg_get_info(segment, &a));
	return a.id;
}
SISCI_EXPORT(SCIGetRemoteSegmentId);

unsigned int SCIGetRemoteSegmentNodeId(sci_remote_segment_t segment)
{
	struct answers a = { .node = 0 };
	sci_error_t err;

	SCI_RUN(err, 0, 0, rseg_get_info(segment, &a));
	return a.node;
}
SISCI_EXPORT(SCIGetRemoteSegmentNodeId);
