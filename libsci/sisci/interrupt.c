// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Plain interrupts and data interrupts. Both have the same objects, with different public names. */

#include <errno.h>

#include "libsci/sisci/object.h"

#define DEFAULT_TIMEOUT	5000u		/* ms, if the caller's timeout is 0 */

struct sci_lintr_obj {
	struct sci_obj obj;
	struct sci_lintr *intr;
	struct sci_notifier *events;	/* NULL: the interrupt has no callback */
	enum sci_merge merge;		/* how undelivered triggers are merged */
};

struct sci_rintr_obj {
	struct sci_obj obj;
	struct sci_rintr *intr;
};

/* ---- callbacks ---- */

static struct sci_lintr *intr_wait_created(struct sci_lintr_obj *i)
{
	struct sci_lintr *intr;

	/* wait for intr_create_in_fabric(), which holds the lock until the caller has the handle */
	pthread_mutex_lock(&i->obj.lock);
	intr = i->intr;
	pthread_mutex_unlock(&i->obj.lock);
	return intr;
}

static bool intr_deliver_plain(const struct sci_listener *to,
			       const struct sci_note *note)
{
	sci_cb_interrupt_t cb = (sci_cb_interrupt_t)to->cb;

	if (!intr_wait_created(to->priv))
		return false;
	return cb(to->arg, to->handle, note->status) != SCI_CALLBACK_CANCEL;
}

/*
 * Deliver a data interrupt. The message is on the stack on purpose: some programs pass pointers to
 * local variables of the callback to threads, which read them just after the callback has
 * returned. So no function that uses as much stack, such as free(), may run after the callback.
 */
static bool intr_deliver_data(const struct sci_listener *to,
			      const struct sci_note *note)
{
	sci_cb_data_interrupt_t cb = (sci_cb_data_interrupt_t)to->cb;
	struct sci_lintr *intr = intr_wait_created(to->priv);
	unsigned char data[SCI_DATA_INTR_MAX];
	size_t len = sizeof(data);

	if (!intr)
		return false;
	if (sci_lib.ops->lintr.wait(intr, data, &len, 0))
		return true;
	return cb(to->arg, to->handle, data, (unsigned int)len,
		  note->status) != SCI_CALLBACK_CANCEL;
}

static void intr_event(void *owner, const struct sci_event *ev)
{
	const struct sci_lintr_obj *i = owner;
	const struct sci_note note = {
		.node = ev->node, .adapter = ev->adapter, .count = 1,
	};

	sci_notify(i->events, &note, i->merge);
}

/* ---- local interrupts ---- */

struct create {
	enum sci_type type;
	unsigned int adapter;
	unsigned int *number;
	void (*cb)(void);
	void *arg;
	unsigned int flags;
};

static sci_error_t intr_events_new(struct sci_lintr_obj *i, const struct create *c)
{
	struct sci_listener to = {
		.deliver = c->type == SCI_TYPE_LDINTR ? intr_deliver_data :
							intr_deliver_plain,
		.cb = c->cb, .arg = c->arg, .handle = sci_handle(i), .priv = i,
	};

	if (!(c->flags & SCI_FLAG_USE_CALLBACK))
		return SCI_ERR_OK;
	i->events = sci_notifier_new(&to);
	return i->events ? SCI_ERR_OK : SCI_ERR_API_NOSPC;
}

static unsigned int intr_fabric_flags(const struct create *c)
{
	return (c->type == SCI_TYPE_LDINTR ? SCI_INTR_DATA : 0) |
	       (c->flags & SCI_FLAG_FIXED_INTNO ? SCI_INTR_FIXED : 0) |
	       (c->flags & SCI_FLAG_SHARED_INT ? SCI_INTR_SHARED : 0) |
	       (c->flags & SCI_FLAG_COUNTING_INT ? SCI_INTR_COUNTING : 0);
}

static void intr_discard(struct sci_lintr_obj *i)
{
	sci_notifier_free(i->events);
	sci_release(i);
}

static sci_error_t intr_create_in_fabric(struct sci_lintr_obj *i,
					 const struct create *c, void **handle)
{
	struct sci_lintr_param param = {
		.adapter = c->adapter,
		.flags = intr_fabric_flags(c),
		.event = i->events ? intr_event : NULL,
		.owner = i,
	};
	sci_error_t err;

	if (c->flags & SCI_FLAG_FIXED_INTNO)
		param.number = *c->number;
	pthread_mutex_lock(&i->obj.lock);
	err = sci_err(sci_lib.ops->lintr.create(sci_lib.fabric, &param,
						&i->intr), SCI_CTX_INTERRUPT);
	if (!err) {
		*c->number = param.number;
		*handle = sci_handle(i);
		sci_publish(i);
	}
	pthread_mutex_unlock(&i->obj.lock);
	return err;
}

static sci_error_t intr_create(sci_desc_t sd, const struct create *c,
			       void **handle)
{
	struct sci_lintr_obj *i;
	struct sci_desc_obj *d;
	sci_error_t err;

	if (!handle || !c->number ||
	    (c->flags & SCI_FLAG_USE_CALLBACK && !c->cb))
		return SCI_ERR_ILLEGAL_PARAMETER;
	d = sci_get(sd, SCI_TYPE_DESC);
	if (!d)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = sci_check_adapter(c->adapter);
	err = err ? err : sci_new(c->type, sizeof(*i), &d->obj, &i);
	sci_put(d);
	if (err)
		return err;
	i->merge = c->type == SCI_TYPE_LINTR &&
		   !(c->flags & SCI_FLAG_COUNTING_INT) ? SCI_MERGE_ONCE :
							 SCI_MERGE_COUNT;
	err = intr_events_new(i, c);
	err = err ? err : intr_create_in_fabric(i, c, handle);
	if (err)
		intr_discard(i);
	return err;
}

void sci_lintr_cancel(void *obj)
{
	struct sci_lintr_obj *i = obj;

	sci_lib.ops->lintr.cancel(i->intr);
	if (i->events)
		sci_notifier_cancel(i->events);
}

void sci_lintr_destroy(void *obj)
{
	struct sci_lintr_obj *i = obj;

	sci_close_obj(i, true);
	sci_retire(i);
	sci_lintr_cancel(i);
	sci_drain(i);
	/*
	 * No event arrives from here on. After sci_notifier_quiesce() no callback runs, except one
	 * that calls this function: it holds the notifier, and does not use i->intr any more.
	 */
	sci_notifier_quiesce(i->events);
	sci_lib.ops->lintr.destroy(i->intr);
	sci_notifier_free(i->events);
	sci_release(i);
}

static sci_error_t intr_remove(const void *handle, enum sci_type type)
{
	struct sci_lintr_obj *i;
	sci_error_t err;

	if (sci_waits_for(handle))
		return SCI_ERR_BUSY;
	i = sci_get(handle, type);
	if (!i)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = sci_close_obj(i, false);
	if (!err)
		sci_lintr_destroy(i);
	sci_put(i);
	return err;
}

struct trigger_wait {
	void *data;
	unsigned int *length;		/* NULL: no data */
	unsigned int timeout;
};

static sci_error_t intr_wait_trigger(void *obj, void *arg)
{
	const struct trigger_wait *w = arg;
	struct sci_lintr_obj *i = obj;
	size_t len = w->length ? *w->length : 0;
	int ret;

	if (i->events)
		return SCI_ERR_ILLEGAL_OPERATION;
	ret = sci_lib.ops->lintr.wait(i->intr, w->data, &len, w->timeout);
	if (w->length && (!ret || ret == -EMSGSIZE))
		*w->length = (unsigned int)len;
	return sci_err(ret, SCI_CTX_WAIT);
}

/* ---- remote interrupts ---- */

static sci_error_t intr_connect_in_fabric(struct sci_rintr_obj *i,
					  struct sci_rintr_param *p, void **handle)
{
	sci_error_t err;

	err = sci_err(sci_lib.ops->rintr.connect(sci_lib.fabric, p, &i->intr),
		      SCI_CTX_CONNECT_INTERRUPT);
	if (!err) {
		*handle = sci_handle(i);
		sci_publish(i);
	}
	return err;
}

static sci_error_t intr_connect(sci_desc_t sd, enum sci_type type,
				struct sci_rintr_param *p, void **handle)
{
	struct sci_rintr_obj *i;
	struct sci_desc_obj *d;
	sci_error_t err;

	if (!handle)
		return SCI_ERR_ILLEGAL_PARAMETER;
	d = sci_get(sd, SCI_TYPE_DESC);
	if (!d)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = sci_check_adapter(p->adapter);
	err = err ? err : sci_check_node(&p->node);
	err = err ? err : sci_new(type, sizeof(*i), &d->obj, &i);
	sci_put(d);
	if (err)
		return err;
	p->data = type == SCI_TYPE_RDINTR;
	if (!p->timeout)
		p->timeout = DEFAULT_TIMEOUT;
	err = intr_connect_in_fabric(i, p, handle);
	if (err)
		sci_release(i);
	return err;
}

void sci_rintr_destroy(void *obj)
{
	struct sci_rintr_obj *i = obj;

	sci_close_obj(i, true);
	sci_retire(i);
	sci_drain(i);
	sci_lib.ops->rintr.disconnect(i->intr);
	sci_release(i);
}

static sci_error_t intr_disconnect(const void *handle, enum sci_type type)
{
	struct sci_rintr_obj *i = sci_get(handle, type);
	sci_error_t err;

	if (!i)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = sci_close_obj(i, false);
	if (!err)
		sci_rintr_destroy(i);
	sci_put(i);
	return err;
}

static sci_error_t interrupt_trigger(const void *handle, enum sci_type type,
				     const void *data, unsigned int length)
{
	struct sci_rintr_obj *i;
	int ret;

	if (!data && length)
		return SCI_ERR_ILLEGAL_PARAMETER;
	i = sci_get(handle, type);
	if (!i)
		return SCI_ERR_ILLEGAL_PARAMETER;
	ret = sci_lib.ops->rintr.trigger(i->intr, data, length);
	sci_put(i);
	return sci_err(ret, SCI_CTX_TRIGGER);
}

/* ---- the public names ---- */

void SCICreateInterrupt(sci_desc_t sd, sci_local_interrupt_t *interrupt,
			unsigned int localAdapterNo, unsigned int *interruptNo,
			sci_cb_interrupt_t callback, void *callbackArg,
			unsigned int flags, sci_error_t *error)
{
	const struct create c = {
		.type = SCI_TYPE_LINTR, .adapter = localAdapterNo,
		.number = interruptNo, .cb = (void (*)(void))callback,
		.arg = callbackArg, .flags = flags,
	};

	SCI_CALL(error, flags, SCI_FLAG_USE_CALLBACK | SCI_FLAG_FIXED_INTNO |
		 SCI_FLAG_SHARED_INT | SCI_FLAG_COUNTING_INT,
		 intr_create(sd, &c, (void **)interrupt));
}
SISCI_EXPORT(SCICreateInterrupt);

void SCIRemoveInterrupt(sci_local_interrupt_t interrupt, unsigned int flags,
			sci_error_t *error)
{
	SCI_CALL(error, flags, 0, intr_remove(interrupt, SCI_TYPE_LINTR));
}
SISCI_EXPORT(SCIRemoveInterrupt);

void SCIWaitForInterrupt(sci_local_interrupt_t interrupt, unsigned int timeout,
			 unsigned int flags, sci_error_t *error)
{
	struct trigger_wait w = { .timeout = timeout };

	SCI_CALL(error, flags, 0,
		 sci_wait_on(interrupt, SCI_TYPE_LINTR, intr_wait_trigger, &w));
}
SISCI_EXPORT(SCIWaitForInterrupt);

void SCIConnectInterrupt(sci_desc_t sd, sci_remote_interrupt_t *interrupt,
			 unsigned int nodeId, unsigned int localAdapterNo,
			 unsigned int interruptNo, unsigned int timeout,
			 unsigned int flags, sci_error_t *error)
{
	struct sci_rintr_param p = {
		.adapter = localAdapterNo, .node = nodeId,
		.number = interruptNo, .timeout = timeout,
	};

	SCI_CALL(error, flags, SCI_FLAG_COUNTING_INT,
		 sci_throttle(intr_connect(sd, SCI_TYPE_RINTR, &p,
					   (void **)interrupt)));
}
SISCI_EXPORT(SCIConnectInterrupt);

void SCIDisconnectInterrupt(sci_remote_interrupt_t interrupt,
			    unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0, intr_disconnect(interrupt, SCI_TYPE_RINTR));
}
SISCI_EXPORT(SCIDisconnectInterrupt);

void SCITriggerInterrupt(sci_remote_interrupt_t interrupt, unsigned int flags,
			 sci_error_t *error)
{
	SCI_CALL(error, flags, 0, interrupt_trigger(interrupt, SCI_TYPE_RINTR, NULL, 0));
}
SISCI_EXPORT(SCITriggerInterrupt);

void SCICreateDataInterrupt(sci_desc_t sd,
			    sci_local_data_interrupt_t *interrupt,
			    unsigned int localAdapterNo,
			    unsigned int *interruptNo,
			    sci_cb_data_interrupt_t callback,
			    void *callbackArg, unsigned int flags,
			    sci_error_t *error)
{
	const struct create c = {
		.type = SCI_TYPE_LDINTR, .adapter = localAdapterNo,
		.number = interruptNo, .cb = (void (*)(void))callback,
		.arg = callbackArg, .flags = flags,
	};

	SCI_CALL(error, flags, SCI_FLAG_USE_CALLBACK | SCI_FLAG_FIXED_INTNO,
		 intr_create(sd, &c, (void **)interrupt));
}
SISCI_EXPORT(SCICreateDataInterrupt);

void SCIRemoveDataInterrupt(sci_local_data_interrupt_t interrupt,
			    unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0, intr_remove(interrupt, SCI_TYPE_LDINTR));
}
SISCI_EXPORT(SCIRemoveDataInterrupt);

void SCIWaitForDataInterrupt(sci_local_data_interrupt_t interrupt, void *data,
			     unsigned int *length, unsigned int timeout,
			     unsigned int flags, sci_error_t *error)
{
	struct trigger_wait w = { data, length, timeout };

	SCI_CALL(error, flags, 0,
		 !length || (!data && *length) ? SCI_ERR_ILLEGAL_PARAMETER :
		 sci_wait_on(interrupt, SCI_TYPE_LDINTR, intr_wait_trigger, &w));
}
SISCI_EXPORT(SCIWaitForDataInterrupt);

void SCIConnectDataInterrupt(sci_desc_t sd,
			     sci_remote_data_interrupt_t *interrupt,
			     unsigned int nodeId, unsigned int localAdapterNo,
			     unsigned int interruptNo, unsigned int timeout,
			     unsigned int flags, sci_error_t *error)
{
	struct sci_rintr_param p = {
		.adapter = localAdapterNo, .node = nodeId,
		.number = interruptNo, .timeout = timeout,
	};

	SCI_CALL(error, flags, 0,
		 sci_throttle(intr_connect(sd, SCI_TYPE_RDINTR, &p,
					   (void **)interrupt)));
}
SISCI_EXPORT(SCIConnectDataInterrupt);

void SCIDisconnectDataInterrupt(sci_remote_data_interrupt_t interrupt,
				unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0, intr_disconnect(interrupt, SCI_TYPE_RDINTR));
}
SISCI_EXPORT(SCIDisconnectDataInterrupt);

void SCITriggerDataInterrupt(sci_remote_data_interrupt_t interrupt,
			     void *data, unsigned int length,
			     unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0,
		 interrupt_trigger(interrupt, SCI_TYPE_RDINTR, data, length));
}
SISCI_EXPORT(SCITriggerDataInterrupt);
