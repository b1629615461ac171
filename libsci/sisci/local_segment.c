// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Local segments: create, prepare, export, share, attach, remove. */

#include "libsci/base/host.h"
#include "libsci/sisci/object.h"

#include <sys/mman.h>
#include <unistd.h>

#define CREATE_FLAGS	(SCI_FLAG_USE_CALLBACK | SCI_FLAG_EMPTY |	\
			 SCI_FLAG_PRIVATE | SCI_FLAG_BROADCAST |	\
			 SCI_FLAG_ALLOW_UNICAST | SCI_FLAG_AUTO_ID |	\
			 SCI_FLAG_DMA_GLOBAL)

/*
 * Flags of the calls that change a segment's state.  Some programs pass a flag of
 * one of these calls to another of them, and hang after ILLEGAL_FLAG.  Each of these
 * calls therefore accepts all of these flags, and ignores the flags of other calls.
 */
#define STATE_FLAGS	(SCI_FLAG_DMA_SOURCE_ONLY | SCI_FLAG_DMA_GLOBAL | \
			 SCI_FLAG_BROADCAST | SCI_FLAG_NOTIFY |		\
			 SCI_FLAG_FORCE_DISCONNECT | SCI_FLAG_FORCE_REMOVE)

/* ---- events ---- */

static bool local_deliver(const struct sci_listener *to, const struct sci_note *note)
{
	struct sci_lseg_obj *s = to->priv;
	sci_cb_local_segment_t cb = (sci_cb_local_segment_t)to->cb;

	/* wait for the call that creates the segment: it has the lock until the handle is stored */
	pthread_mutex_lock(&s->obj.lock);
	pthread_mutex_unlock(&s->obj.lock);
	return cb(to->arg, to->handle, (sci_segment_cb_reason_t)note->reason,
		  note->node, note->adapter, note->status) !=
	       SCI_CALLBACK_CANCEL;
}

/* ---- create and remove ---- */

static sci_error_t lseg_new(sci_desc_t sd, sci_cb_local_segment_t callback,
			    void *arg, unsigned int flags,
			    struct sci_lseg_obj **out)
{
	struct sci_listener to = {.deliver = local_deliver, .arg = arg};
	struct sci_desc_obj *d = sci_get(sd, SCI_TYPE_DESC);
	struct sci_lseg_obj *s;
	sci_error_t err;

	if (!d)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = sci_new(SCI_TYPE_LSEG, sizeof(*s), &d->obj, &s);
	sci_put(d);
	if (err)
		return err;
	if (flags & SCI_FLAG_USE_CALLBACK)
		to.cb = (void (*)(void))callback;
	to.handle = sci_handle(s);
	to.priv = s;
	s->events = sci_notifier_new(&to);
	if (!s->events) {
		sci_release(s);
		return SCI_ERR_API_NOSPC;
	}
	*out = s;
	return SCI_ERR_OK;
}

static void local_discard(struct sci_lseg_obj *s)
{
	sci_notifier_free(s->events);
	sci_release(s);
}

static unsigned int local_fabric_flags(unsigned int flags)
{
	static const struct {
		unsigned int flag, fabric;
	} map[] = {
		{ SCI_FLAG_PRIVATE,	  SCI_LSEG_PRIVATE },
		{ SCI_FLAG_EMPTY,	  SCI_LSEG_EMPTY },
		{ SCI_FLAG_AUTO_ID,	  SCI_LSEG_AUTO_ID },
		{ SCI_FLAG_BROADCAST,	  SCI_LSEG_BROADCAST },
		{ SCI_FLAG_ALLOW_UNICAST, SCI_LSEG_UNICAST },
	};
	unsigned int i, ret = 0;

	for (i = 0; i < sizeof(map) / sizeof(map[0]); i++)
		if (flags & map[i].flag)
			ret |= map[i].fabric;
	return ret;
}

static sci_error_t lseg_check_create(const sci_local_segment_t *segment,
				     size_t size, sci_cb_local_segment_t callback,
				     unsigned int flags)
{
	if (!segment || (flags & SCI_FLAG_USE_CALLBACK && !callback))
		return SCI_ERR_ILLEGAL_PARAMETER;
	/*
	 * Members of a broadcast segment share memory to which other processes store from the
	 * start: the segment is neither private nor empty.
	 */
	if (flags & SCI_FLAG_BROADCAST) {
		if (flags & SCI_FLAG_PRIVATE)
			return SCI_ERR_ILLEGAL_FLAG;
		if (flags & SCI_FLAG_EMPTY)
			return SCI_ERR_FLAG_NOT_IMPLEMENTED;
	}
	return size ? SCI_ERR_OK : SCI_ERR_SIZE_ALIGNMENT;
}

static sci_error_t local_create(sci_desc_t sd, sci_local_segment_t *segment,
				unsigned int id, size_t size,
				sci_cb_local_segment_t callback, void *arg,
				unsigned int flags)
{
	struct sci_lseg_param param = {
		.id = id,
		.size = size,
		.flags = local_fabric_flags(flags),
		.event = sci_segment_event,
	};
	struct sci_lseg_obj *s;
	sci_error_t err;

	err = lseg_check_create(segment, size, callback, flags);
	err = err ? err : lseg_new(sd, callback, arg, flags, &s);
	if (err)
		return err;
	s->is_private = flags & SCI_FLAG_PRIVATE;
	s->empty = flags & SCI_FLAG_EMPTY;
	param.owner = s->events;

	pthread_mutex_lock(&s->obj.lock);
	err = sci_err(sci_lib.ops->lseg.create(sci_lib.fabric, &param,
					       &s->seg), SCI_CTX_CREATE);
	if (!err) {
		*segment = sci_handle(s);
		sci_publish(s);
	}
	pthread_mutex_unlock(&s->obj.lock);
	if (err)
		local_discard(s);
	return err;
}

void SCICreateSegment(sci_desc_t sd, sci_local_segment_t *segment,
		      unsigned int segmentId, size_t size,
		      sci_cb_local_segment_t callback, void *callbackArg,
		      unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, CREATE_FLAGS,
		 local_create(sd, segment, segmentId, size, callback, callbackArg,
			      flags));
}
SISCI_EXPORT(SCICreateSegment);

static sci_error_t segment_attach(sci_desc_t sd, sci_local_segment_t *segment,
				  unsigned int id, size_t *size,
				  sci_cb_local_segment_t callback, void *arg,
				  unsigned int flags)
{
	struct sci_lseg_param param = { .id = id, .event = sci_segment_event };
	struct sci_lseg_obj *s;
	sci_error_t err;

	if (!segment || (flags & SCI_FLAG_USE_CALLBACK && !callback))
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = lseg_new(sd, callback, arg, flags, &s);
	if (err)
		return err;
	s->attached = true;
	param.owner = s->events;

	pthread_mutex_lock(&s->obj.lock);
	err = sci_err(sci_lseg_attach(sci_lib.fabric, &param, &s->seg),
		      SCI_CTX_ATTACH);
	if (!err) {
		*segment = sci_handle(s);
		if (size)
			*size = sci_lib.ops->lseg.size(s->seg);
		sci_publish(s);
	}
	pthread_mutex_unlock(&s->obj.lock);
	if (err)
		local_discard(s);
	return err;
}

void SCIAttachLocalSegment(sci_desc_t sd, sci_local_segment_t *segment,
			   unsigned int segmentId, size_t *size,
			   sci_cb_local_segment_t callback, void *callbackArg,
			   unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, SCI_FLAG_USE_CALLBACK | SCI_FLAG_BROADCAST,
		 segment_attach(sd, segment, segmentId, size, callback, callbackArg,
				flags));
}
SISCI_EXPORT(SCIAttachLocalSegment);

void sci_lseg_cancel(void *obj)
{
	struct sci_lseg_obj *s = obj;

	sci_notifier_cancel(s->events);
}

void sci_lseg_destroy(void *obj)
{
	struct sci_lseg_obj *s = obj;

	sci_close_obj(s, true);
	sci_retire(s);
	sci_notifier_cancel(s->events);
	sci_drain(s);
	sci_lib.ops->lseg.destroy(s->seg);
	sci_notifier_free(s->events);
	sci_release(s);
}

/*
 * Return true if the removal must wait for importers. Importers that were asked to disconnect do
 * not count: they keep their maps until they disconnect.
 */
static bool lseg_has_importers(struct sci_lseg_obj *s)
{
	bool told;

	pthread_mutex_lock(&s->obj.lock);
	told = s->peers_told;
	pthread_mutex_unlock(&s->obj.lock);
	return !told && !s->attached && !s->is_private &&
	       sci_lib.ops->lseg.importers(s->seg);
}

static sci_error_t lseg_remove(struct sci_lseg_obj *s, unsigned int flags)
{
	bool force = flags & SCI_FLAG_FORCE_REMOVE;
	sci_error_t err;

	/*
	 * Programs repeat this call until peers have disconnected.  A callback must not repeat
	 * the call: it asks the peer to disconnect only after the call.
	 */
	if (!force && !sci_pool_thread() && lseg_has_importers(s))
		return SCI_ERR_BUSY;
	err = sci_close_obj(s, force);
	if (err)
		return err;
	if (force && s->available)
		sci_lib.ops->lseg.unexport(s->seg, SCI_UNEXPORT_FORCE);
	sci_lseg_destroy(s);
	return SCI_ERR_OK;
}

/* Run @work with the segment of a handle, and return the result of @work. */
#define WITH_LSEG(handle, s, work)					\
	struct sci_lseg_obj *s = sci_get(handle, SCI_TYPE_LSEG);	\
	sci_error_t err;						\
									\
	if (!s)								\
		return SCI_ERR_ILLEGAL_PARAMETER;			\
	err = (work);							\
	sci_put(s);							\
	return err

static sci_error_t segment_remove(sci_local_segment_t segment,
				  unsigned int flags)
{
	if (sci_waits_for(segment))
		return SCI_ERR_BUSY;
	WITH_LSEG(segment, s, lseg_remove(s, flags));
}

void SCIRemoveSegment(sci_local_segment_t segment, unsigned int flags,
		      sci_error_t *error)
{
	SCI_CALL(error, flags, STATE_FLAGS, segment_remove(segment, flags));
}
SISCI_EXPORT(SCIRemoveSegment);

/* ---- states ---- */

static sci_error_t lseg_prepare(struct sci_lseg_obj *s, unsigned int adapter,
				unsigned int flags)
{
	sci_error_t err = sci_check_adapter(adapter);

	if (err)
		return err;
	pthread_mutex_lock(&s->obj.lock);
	if (s->empty) {
		err = SCI_ERR_ILLEGAL_OPERATION;
	} else {
		s->prepared |= 1u << adapter;
		if (flags & SCI_FLAG_DMA_SOURCE_ONLY)
			s->dma_only |= 1u << adapter;
		else
			s->dma_only &= ~(1u << adapter);
	}
	pthread_mutex_unlock(&s->obj.lock);
	return err;
}

static sci_error_t segment_prepare(sci_local_segment_t segment, unsigned int adapter,
				   unsigned int flags)
{
	WITH_LSEG(segment, s, lseg_prepare(s, adapter, flags));
}

void SCIPrepareSegment(sci_local_segment_t segment,
		       unsigned int localAdapterNo, unsigned int flags,
		       sci_error_t *error)
{
	SCI_CALL(error, flags, STATE_FLAGS,
		 segment_prepare(segment, localAdapterNo, flags));
}
SISCI_EXPORT(SCIPrepareSegment);

static sci_error_t lseg_export(struct sci_lseg_obj *s, unsigned int adapter)
{
	sci_error_t err = sci_check_adapter(adapter);
	uint32_t bit = 1u << (adapter & 31);

	if (err)
		return err;
	if (s->is_private || s->attached)
		return SCI_ERR_ILLEGAL_OPERATION;
	pthread_mutex_lock(&s->obj.lock);
	if (s->obj.closing)
		err = SCI_ERR_ILLEGAL_PARAMETER;
	else if (!(s->prepared & bit))
		err = SCI_ERR_SEGMENT_NOT_PREPARED;
	else if (s->dma_only & bit)
		err = SCI_ERR_ILLEGAL_OPERATION;
	else
		err = sci_err(sci_lib.ops->lseg.export(s->seg, adapter),
			      SCI_CTX_CREATE);
	if (!err) {
		s->available |= bit;
		s->peers_told = false;
	}
	pthread_mutex_unlock(&s->obj.lock);
	return err;
}

static sci_error_t lseg_set_available(sci_local_segment_t segment,
				      unsigned int adapter)
{
	WITH_LSEG(segment, s, lseg_export(s, adapter));
}

void SCISetSegmentAvailable(sci_local_segment_t segment,
			    unsigned int localAdapterNo, unsigned int flags,
			    sci_error_t *error)
{
	SCI_CALL(error, flags, STATE_FLAGS,
		 lseg_set_available(segment, localAdapterNo));
}
SISCI_EXPORT(SCISetSegmentAvailable);

static sci_error_t lseg_unexport(struct sci_lseg_obj *s, unsigned int adapter,
				 unsigned int flags)
{
	sci_error_t err = sci_check_adapter(adapter);
	uint32_t bit = 1u << (adapter & 31);
	enum sci_unexport how = SCI_UNEXPORT_QUIET;

	if (err)
		return err;
	if (flags & SCI_FLAG_FORCE_DISCONNECT)
		how = SCI_UNEXPORT_FORCE;
	else if (flags & SCI_FLAG_NOTIFY)
		how = SCI_UNEXPORT_NOTIFY;
	pthread_mutex_lock(&s->obj.lock);
	if (!(s->available & bit))
		err = SCI_ERR_ILLEGAL_OPERATION;
	else
		err = sci_err(sci_lib.ops->lseg.unexport(s->seg, how),
			      SCI_CTX_CREATE);
	if (!err) {
		s->available &= ~bit;
		s->peers_told = how != SCI_UNEXPORT_QUIET;
	}
	pthread_mutex_unlock(&s->obj.lock);
	return err;
}

static sci_error_t lseg_set_unavailable(sci_local_segment_t segment,
					unsigned int adapter, unsigned int flags)
{
	WITH_LSEG(segment, s, lseg_unexport(s, adapter, flags));
}

void SCISetSegmentUnavailable(sci_local_segment_t segment,
			      unsigned int localAdapterNo, unsigned int flags,
			      sci_error_t *error)
{
	SCI_CALL(error, flags, STATE_FLAGS,
		 lseg_set_unavailable(segment, localAdapterNo, flags));
}
SISCI_EXPORT(SCISetSegmentUnavailable);

static sci_error_t lseg_share(struct sci_lseg_obj *s)
{
	if (s->is_private || s->attached)
		return SCI_ERR_ILLEGAL_OPERATION;
	return sci_err(sci_lseg_share(sci_lib.fabric, s->seg), SCI_CTX_CREATE);
}

static sci_error_t segment_share(sci_local_segment_t segment)
{
	WITH_LSEG(segment, s, lseg_share(s));
}

void SCIShareSegment(sci_local_segment_t segment, unsigned int flags,
		     sci_error_t *error)
{
	SCI_CALL(error, flags, STATE_FLAGS, segment_share(segment));
}
SISCI_EXPORT(SCIShareSegment);

/* ---- memory of the program ---- */

static sci_error_t lseg_check_register(struct sci_lseg_obj *s, void *addr,
				       size_t size)
{
	size_t mask = sci_page_size() - 1;

	if (!s->empty)
		return SCI_ERR_ILLEGAL_OPERATION;
	if (!size || (size & mask && !s->is_private))
		return SCI_ERR_SIZE_ALIGNMENT;
	if (!addr || ((uintptr_t)addr & mask && !s->is_private))
		return SCI_ERR_ILLEGAL_ADDRESS;
	return size == sci_lib.ops->lseg.size(s->seg) ? SCI_ERR_OK :
						       SCI_ERR_OUT_OF_RANGE;
}

/*
 * Register memory of a private segment. No other process uses this memory, so it need be neither
 * whole pages nor anonymous. It stays the caller's: DMA transfers and maps use it in place.
 */
static sci_error_t memory_register_plain(struct sci_lseg_obj *s, void *addr,
					 size_t size)
{
	if (sci_check_mapped((uintptr_t)addr, size))
		return SCI_ERR_ILLEGAL_ADDRESS;
	s->mem = addr;
	return SCI_ERR_OK;
}

static sci_error_t memory_register_pages(struct sci_lseg_obj *s, void *addr,
					 size_t size)
{
	sci_error_t err = SCI_ERR_ILLEGAL_ADDRESS;

	if (!(((uintptr_t)addr | size) & (sci_page_size() - 1)))
		err = sci_err(sci_lseg_register(sci_lib.fabric, s->seg, addr,
						size), SCI_CTX_REGISTER);
	return err && s->is_private ? memory_register_plain(s, addr, size) : err;
}

static sci_error_t lseg_register(struct sci_lseg_obj *s, void *addr,
				 size_t size, unsigned int flags)
{
	bool lock = flags & SCI_FLAG_LOCK_USER_MEM;
	sci_error_t err;

	pthread_mutex_lock(&s->obj.lock);
	err = lseg_check_register(s, addr, size);
	/* registering replaces the pages: this mlock() only checks that they can be locked */
	if (!err && lock && mlock(addr, size))
		err = SCI_ERR_NOSPC;
	if (!err) {
		err = memory_register_pages(s, addr, size);
		if (lock && (err || mlock(addr, size)))
			munlock(addr, size);
	}
	if (!err)
		s->empty = false;
	pthread_mutex_unlock(&s->obj.lock);
	return err;
}

static sci_error_t memory_register(sci_local_segment_t segment, void *addr,
				   size_t size, unsigned int flags)
{
	WITH_LSEG(segment, s, lseg_register(s, addr, size, flags));
}

void SCIRegisterSegmentMemory(void *address, size_t size,
			      sci_local_segment_t segment, unsigned int flags,
			      sci_error_t *error)
{
	SCI_CALL(error, flags, SCI_FLAG_LOCK_USER_MEM,
		 memory_register(segment, address, size, flags));
}
SISCI_EXPORT(SCIRegisterSegmentMemory);

static sci_error_t lseg_attach_physical(struct sci_lseg_obj *s)
{
	if (!s->empty)
		return SCI_ERR_ILLEGAL_OPERATION;
	return geteuid() ? SCI_ERR_ACCESS : SCI_ERR_NOT_SUPPORTED;
}

static sci_error_t segment_attach_physical(sci_local_segment_t segment)
{
	WITH_LSEG(segment, s, lseg_attach_physical(s));
}

void SCIAttachPhysicalMemory(sci_ioaddr_t ioaddress, void *address,
			     unsigned int busNo, size_t size,
			     sci_local_segment_t segment, unsigned int flags,
			     sci_error_t *error)
{
	(void)ioaddress;
	(void)address;
	(void)busNo;
	(void)size;
	SCI_CALL(error, flags, SCI_FLAG_CUDA_BUFFER, segment_attach_physical(segment));
}
SISCI_EXPORT(SCIAttachPhysicalMemory);

/* ---- questions ---- */

static sci_error_t local_wait_event(void *obj, void *arg)
{
	struct sci_lseg_obj *s = obj;
	struct sci_event_wait *w = arg;

	return sci_notifier_wait(s->events, &w->note, w->timeout);
}

sci_segment_cb_reason_t
SCIWaitForLocalSegmentEvent(sci_local_segment_t segment,
			    unsigned int *sourcenodeId,
			    unsigned int *localAdapterNo,
			    unsigned int timeout, unsigned int flags,
			    sci_error_t *error)
{
	struct sci_event_wait w = { .timeout = timeout };
	sci_error_t err;

	SCI_RUN(err, flags, 0, sci_wait_on(segment, SCI_TYPE_LSEG, local_wait_event, &w));
	sci_set_error(error, err);
	if (!err && sourcenodeId)
		*sourcenodeId = w.note.node;
	if (!err && localAdapterNo)
		*localAdapterNo = w.note.adapter;
	return (sci_segment_cb_reason_t)w.note.reason;
}
SISCI_EXPORT(SCIWaitForLocalSegmentEvent);

static sci_error_t lseg_get_id_and_size(sci_local_segment_t segment, unsigned int *id,
					size_t *size)
{
	struct sci_lseg_obj *s = sci_get(segment, SCI_TYPE_LSEG);

	if (!s)
		return SCI_ERR_ILLEGAL_PARAMETER;
	*id = sci_lib.ops->lseg.id(s->seg);
	*size = sci_lib.ops->lseg.size(s->seg);
	sci_put(s);
	return SCI_ERR_OK;
}

unsigned int SCIGetLocalSegmentId(sci_local_segment_t segment)
{
	unsigned int id = 0;
	size_t size;
	sci_error_t err;

	SCI_RUN(err, 0, 0, lseg_get_id_and_size(segment, &id, &size));
	return id;
}
SISCI_EXPORT(SCIGetLocalSegmentId);

size_t SCIGetLocalSegmentSize(sci_local_segment_t segment)
{
	unsigned int id;
	size_t size = 0;
	sci_error_t err;

	SCI_RUN(err, 0, 0, lseg_get_id_and_size(segment, &id, &size));
	return size;
}
SISCI_EXPORT(SCIGetLocalSegmentSize);
