// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: imports
 *
 * An import is a segment of a peer that this endpoint has mapped, for stores and loads. The import
 * is made on first use and kept until the segment or the connection ends.
 *
 * sci_peer_map() gives the program a pointer into an import. Such an import stays mapped until the
 * last sci_peer_unmap(), or sci_disconnect(), even if the segment or the peer ends: then the import
 * moves from peer->imports, which transfers search, to peer->maps. The fabric guarantees that its
 * pages stay accessible.
 */

#include "libsci/msg/conn/conn.h"

#include <errno.h>
#include <stdlib.h>

/* A peer counts as alive if a segment was missing for this time (ms) without a death report. */
#define DOUBT_MS	1000u

static void import_event(void *owner, const struct sci_event *ev)
{
	if (ev->type == SCI_EVENT_LOST ||
	    (ev->type == SCI_EVENT_DISCONNECT && ev->status))
		peer_event_add(owner, PEER_FREED);
}

void import_drop(struct msg_import *im)
{
	const struct sci_fabric_ops *ops = im->fabric->ops;

	list_del(&im->link);
	sci_fault_forget(im->addr, im->size);
	ops->unmap(im->fabric, im->addr, im->size);
	ops->rseg.disconnect(im->seg);
	free(im);
}

/* Stop using an import. It stays mapped while the program has pointers into it. */
static void import_end(struct sci_peer *p, struct msg_import *im)
{
	if (!im->pointers) {
		import_drop(im);
		return;
	}
	list_del(&im->link);
	list_add_tail(&im->link, &p->maps);
}

static bool import_has_ended(const struct msg_import *im)
{
	return atomic_load(&im->fabric->ops->rseg.status(im->seg)->gone);
}

static void list_drop_gone(struct sci_peer *p, struct list *imports)
{
	struct msg_import *im, *n;

	list_for_each_entry_safe(im, n, imports, link)
		if (import_has_ended(im))
			import_end(p, im);
}

void imports_drop_gone(struct sci_peer *p)
{
	list_drop_gone(p, &p->imports);
	if (p->rails)
		list_drop_gone(p, &p->rails->imports);
}

/* Stop using all imports of @p, which is DOWN. */
void imports_leave(struct sci_peer *p)
{
	struct msg_import *im, *n;

	list_for_each_entry_safe(im, n, &p->imports, link)
		import_end(p, im);
	if (p->rails)
		list_for_each_entry_safe(im, n, &p->rails->imports, link)
			import_drop(im);
}

/* Unmap the remaining imports: the program has no pointer to @p, nor into its memory. */
void maps_drop(struct sci_peer *p)
{
	while (!list_empty(&p->maps))
		import_drop(container_of(p->maps.next, struct msg_import, link));
}

/* Return the import of a segment, or NULL. Drop those before it in the list that have ended. */
static inline struct msg_import *import_find_known(struct sci_peer *p, struct list *imports,
						   uint32_t id)
{
	struct msg_import *im, *n;

	list_for_each_entry_safe(im, n, imports, link) {
		if (import_has_ended(im))
			import_end(p, im);
		else if (im->id == id)
			return im;
	}
	return NULL;
}

/* Pauses after a failed import, and after an import that found no room, in ms. */
#define IMPORT_PAUSE_MS	5u
#define NO_ROOM_MS	100u

/**
 * peer_connect_segment() - connect to a segment of a peer
 * @kind: CALL_SEGMENT, or CALL_RAIL for a segment on the second rail
 * @id: id of the segment
 * @seg: is set on success
 *
 * The first call starts a call to the peer, whose answer wakes progress.
 *
 * Return: 0, -EAGAIN until the peer has answered, or another -errno.
 */
int peer_connect_segment(struct sci_peer *p, enum msg_call_kind kind, uint32_t id,
			 struct sci_rseg **seg)
{
	struct msg_call *c = call_find(p, kind, id);
	struct sci_fabric *f;
	int ret;

	if (!msg_number_is_valid(id))
		return -EPROTO;
	if (!c && kind == CALL_SEGMENT && p->import_ms && msg_now_ms() < p->import_ms) {
		p->ep->retry = true;
		return -EAGAIN;
	}
	if (!c) {
		ret = call_start(p, kind, id, import_event);
		return ret ? ret : -EAGAIN;
	}
	if (!c->answered)
		return -EAGAIN;
	ret = c->ret;
	f = c->fabric;
	*seg = c->seg;
	c->seg = NULL;
	call_end(c);
	if (kind == CALL_SEGMENT)
		p->import_ms = ret ? msg_now_ms() + IMPORT_PAUSE_MS : 0;
	if (ret || !peer_is_gone(p))
		return ret;
	f->ops->rseg.disconnect(*seg);
	return -ENOTCONN;
}

static int import_make(struct sci_peer *p, enum msg_call_kind kind, uint32_t id,
		       struct msg_import **out)
{
	struct sci_fabric *f = kind == CALL_RAIL ? p->ep->rail : p->fabric;
	const struct sci_fabric_ops *ops = f->ops;
	struct msg_import *im;
	struct sci_rseg *seg;
	struct msg_call *c;
	void *addr = NULL;
	int ret = peer_connect_segment(p, kind, id, &seg);

	if (ret == -EAGAIN && (c = call_find(p, kind, id)))
		c->memory = true;
	if (ret)
		return ret;
	im = calloc(1, sizeof(*im));
	ret = -ENOMEM;
	if (!im)
		goto err;
	im->fabric = f;
	im->seg = seg;
	im->id = id;
	im->errors = sci_link_errors(p->ep->link);
	im->size = ops->rseg.size(im->seg);
	ret = ops->rseg.map(im->seg, 0, im->size, 0, &addr);
	if (ret)
		goto err;
	im->addr = addr;
	list_add_tail(&im->link, kind == CALL_RAIL ? &p->rails->imports : &p->imports);
	*out = im;
	return 0;

err:
	ops->rseg.disconnect(seg);
	free(im);
	return ret;
}

static struct msg_import *import_try(struct sci_peer *p, uint32_t id, int *error)
{
	struct msg_import *im = NULL;

	if (p->no_room && msg_now_ms() < p->no_room_ms) {
		*error = p->no_room;
		return NULL;
	}
	*error = import_make(p, CALL_SEGMENT, id, &im);
	p->no_room = import_has_no_room(p, *error) ? *error : 0;
	if (p->no_room)
		p->no_room_ms = msg_now_ms() + NO_ROOM_MS;
	return im;
}

/* Return the import of a segment, which is made on first use; NULL: *@error says why. */
struct msg_import *peer_import(struct sci_peer *p, uint32_t id, int *error)
{
	struct msg_import *im = import_find_known(p, &p->imports, id);

	return im ? im : import_try(p, id, error);
}

/*
 * Return the import of a segment on the second rail as peer_import() does. *@error is -EAGAIN also
 * while the link is down. For a pause after an error, it is this error for the same segment, and
 * -EAGAIN for others.
 */
struct msg_import *rail_import(struct sci_peer *p, uint32_t id, int *error)
{
	struct msg_rails *rails = p->rails;
	struct msg_import *im = import_find_known(p, &rails->imports, id);

	*error = id == rails->import_id && msg_now_ms() < rails->import_ms &&
		 !sci_link_down(p->ep->rail_link) ? rails->import_error : -EAGAIN;
	/* take the result of a call also while the link is down */
	if (im || ((sci_link_down(p->ep->rail_link) || msg_now_ms() < rails->import_ms) &&
		   !call_find(p, CALL_RAIL, id)))
		return im;
	*error = import_make(p, CALL_RAIL, id, &im);
	if (*error && *error != -EAGAIN) {
		rails->import_ms = msg_now_ms() + NO_ROOM_MS;
		rails->import_id = id;
		rails->import_error = *error;
	}
	return im;
}

/**
 * import_is_there() - check that the bytes read so far came from the peer's segment
 *
 * After the death of a peer, its mappings may show other pages before the fabric reports
 * the death. But the link's error count rises first.
 */
bool import_is_there(struct sci_peer *p, struct msg_import *im)
{
	const struct sci_fabric_ops *ops = p->fabric->ops;
	void *addr = NULL;
	uint32_t errors;

	if (p->stream)
		return !atomic_load(&ops->rseg.status(im->seg)->gone);
	sci_load_barrier();
	errors = sci_link_errors(p->ep->link);
	if (errors == im->errors)
		return true;
	/*
	 * a packet was lost, maybe of another segment: if this segment has ended, mapping it fails
	 */
	if (atomic_load(&ops->rseg.status(im->seg)->gone) ||
	    ops->rseg.map(im->seg, 0, 1, SCI_MAP_READONLY, &addr))
		return false;
	ops->unmap(p->fabric, addr, 1);
	im->errors = errors;
	return true;
}

/* Return whether @error means that a segment has ended. The fabric may soon report the reason. */
bool import_is_gone(int error)
{
	return error == -ENOENT || error == -ENOTCONN || error == -EHOSTUNREACH;
}

/*
 * Return whether @error means that there is no room for an import: in the address translation table
 * of the adapter, or in this process. The net needs no room.
 */
bool import_has_no_room(const struct sci_peer *p, int error)
{
	return !p->stream && (error == -ENOSPC || error == -ENOMEM || error == -EMFILE ||
			      error == -ENFILE);
}

/*
 * Return whether an import that failed with @error should be tried again: the peer has not answered
 * yet, or a link is down. In the second case set ep->retry, because no wake-up follows when the
 * link comes up.
 */
bool import_later(struct sci_peer *p, int error)
{
	if (error == -EAGAIN)
		return true;
	if (error != -ENETDOWN && error != -ETIMEDOUT)
		return false;
	p->ep->retry = true;
	return true;
}

/**
 * import_missing() - decide whether the owner of missing memory is alive
 * @doubt_ms: time limit in ms; 0 or an old limit: set a new limit
 *
 * Either the peer has died: the fabric reports the death soon, and all its requests end. Or the
 * peer is alive and has freed the memory. Or the first of two rails is lost, and nothing can be
 * decided before lines use the second one, which may take as long as the peer makes no call.
 *
 * Return: -EAGAIN while unknown; -ENOENT if the peer is alive.
 */
int import_missing(struct sci_peer *p, uint64_t *doubt_ms)
{
	uint64_t now = msg_now_ms();

	if (p->rail_node && p->line == &p->first && (p->rerouting || !first_rail_works(p)))
		*doubt_ms = 0;
	if (!*doubt_ms || now >= *doubt_ms + DOUBT_MS)
		*doubt_ms = now + DOUBT_MS;
	if (now >= *doubt_ms)
		return -ENOENT;
	p->ep->retry = true;
	return -EAGAIN;
}
