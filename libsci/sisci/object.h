/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: objects and handles
 *
 * A handle is a slot's number, the object's type and the slot's generation. The library looks up
 * a handle and never dereferences it, so it detects a stale, foreign or invented handle.
 *
 * The creator has a reference until the object is removed. Each call has a reference from
 * sci_get() to sci_put(). A removal has five steps:
 *
 *	1. set obj->closing under obj->lock, unless the object has users (obj->users): only one
 *	   of two removers, or of a remover and a new user, succeeds;
 *	2. sci_retire(): no call finds the object any more;
 *	3. cancel its waits; sci_drain() waits until these calls have ended;
 *	4. release the object's resources in the fabric;
 *	5. sci_release() drops the creator's reference. The last reference frees the object,
 *	   or the last user if it was removed by force.
 *
 * The data path looks up maps and sequences with sci_peek(), without a
 * reference.  Their memory is therefore never freed, only used again for
 * objects of the same type.
 */
#ifndef LIBSCI_OBJECT_H
#define LIBSCI_OBJECT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "libsci/fabric/core/fabric.h"
#include "libsci/base/list.h"
#include "libsci/sisci/library.h"
#include "libsci/sisci/notify.h"

/* The types, in the order in which SCITerminate() removes objects. */
enum sci_type {
	SCI_TYPE_SEQUENCE = 1,
	SCI_TYPE_BLOCK,
	SCI_TYPE_DMA,
	SCI_TYPE_MAP,
	SCI_TYPE_LINTR,
	SCI_TYPE_LDINTR,
	SCI_TYPE_RINTR,
	SCI_TYPE_RDINTR,
	SCI_TYPE_RSEG,
	SCI_TYPE_LSEG,
	SCI_TYPE_DESC,
	SCI_TYPES
};

/* Every object begins with this structure. */
struct sci_obj {
	uintptr_t handle;
	enum sci_type type;
	pthread_mutex_t lock;
	bool closing;			/* under lock */
	bool orphan;			/* removed while it had users; under lock */
	unsigned int users;		/* number of objects that need this one; under lock */
	struct sci_obj *desc;		/* the device whose user this object is, or NULL */
};

/**
 * sci_new() - make a zeroed object of @size bytes with a handle
 * @desc: the object's device, which gets the object as a user; may be NULL
 * @obj: receives the object
 *
 * API_NOSPC: out of memory or handles; ILLEGAL_PARAMETER: @desc is being
 * closed.  No call finds the object before sci_publish().
 */
sci_error_t sci_new(enum sci_type type, size_t size, struct sci_obj *desc,
		    void *obj);
void sci_publish(void *obj);

/* Return: the object of @handle, with a reference; NULL: no object of @type has this handle. */
void *sci_get(const void *handle, enum sci_type type);
void sci_put(void *obj);

/**
 * sci_wait_on() - wait for an event of an object
 * @wait: the function that waits; it gets @arg and a reference to the object
 *
 * If the thread is cancelled in @wait, the function drops the reference and calls sci_leave().
 *
 * Return: the result of @wait; ILLEGAL_PARAMETER: no object of @type has this handle.
 */
sci_error_t sci_wait_on(const void *handle, enum sci_type type,
			sci_error_t (*wait)(void *obj, void *arg), void *arg);

/* The argument of a wait for segment events. */
struct sci_event_wait {
	struct sci_note note;		/* out */
	unsigned int timeout;
};

/*
 * Return: true if this thread is in sci_wait_on() for @handle. Then the caller is a signal
 * handler and cannot remove the object: it would wait for its own thread.
 */
bool sci_waits_for(const void *handle);

/*
 * A slot's state is one word: the generation, the bit SCI_RETIRED and the number of references.
 * The table of slots grows by chunks, which never move.
 */
#define SCI_CHUNK_BITS	10
#define SCI_CHUNK_SLOTS	(1u << SCI_CHUNK_BITS)
#define SCI_CHUNKS	1024u
#define SCI_INDEX_BITS	20
#define SCI_TYPE_BITS	4
#define SCI_GEN_MASK	(sizeof(uintptr_t) > 4 ? UINT64_C(0xffffffff) : 0xff)
#define SCI_RETIRED	(UINT64_C(1) << 31)
#define SCI_REFS	(SCI_RETIRED - 1)

struct sci_slot {
	_Atomic uint64_t state;
	struct sci_obj *_Atomic obj;	/* may be read by a stale handle */
	_Atomic uint32_t type;		/* type of @obj */
	uint32_t next_free;		/* index of the next free slot + 1; 0: none */
	_Atomic uintptr_t live;		/* the handle while it is valid, else 0 */
	uint32_t words[2];		/* words of sci_bequeath() */
};

extern struct sci_slot *_Atomic sci_chunks[SCI_CHUNKS]
	__attribute__((visibility("hidden")));

/* Return: the slot of @handle, and its @state; NULL: no object of @type has this handle. */
static inline struct sci_slot *sci_find(const void *handle, enum sci_type type,
					uint64_t *state)
{
	uintptr_t h = (uintptr_t)handle;
	uint32_t index = h & ((1u << SCI_INDEX_BITS) - 1);
	uint64_t gen = (uint64_t)h >> (SCI_INDEX_BITS + SCI_TYPE_BITS);
	struct sci_slot *slot;
	uint32_t type_is;

	slot = atomic_load_explicit(&sci_chunks[index >> SCI_CHUNK_BITS],
				    memory_order_acquire);
	if (!slot)
		return NULL;
	slot += index & (SCI_CHUNK_SLOTS - 1);
	*state = atomic_load_explicit(&slot->state, memory_order_acquire);
	type_is = atomic_load_explicit(&slot->type, memory_order_relaxed);
	/* Compare all bits of the handle, also those that no generation uses. */
	return *state >> 32 == gen && type_is == (uint32_t)type &&
	       (h >> SCI_INDEX_BITS & ((1u << SCI_TYPE_BITS) - 1)) == type &&
	       !(*state & SCI_RETIRED) && *state & SCI_REFS ? slot : NULL;
}

/*
 * Return: the object of @handle without a reference, for the data path; NULL: no object of @type
 * has this handle. sci_peek() needs half the instructions of sci_find(), which would be most of
 * a short SCIMemCpy().
 */
static inline void *sci_peek(const void *handle, enum sci_type type)
{
	uintptr_t h = (uintptr_t)handle;
	uint32_t index = h & ((1u << SCI_INDEX_BITS) - 1);
	struct sci_slot *slot;

	slot = atomic_load_explicit(&sci_chunks[index >> SCI_CHUNK_BITS],
				    memory_order_acquire);
	if (!slot || (h & (((1u << SCI_TYPE_BITS) - 1) << SCI_INDEX_BITS)) !=
		     (uintptr_t)type << SCI_INDEX_BITS)
		return NULL;
	slot += index & (SCI_CHUNK_SLOTS - 1);
	return atomic_load_explicit(&slot->live, memory_order_acquire) == h ?
	       atomic_load_explicit(&slot->obj, memory_order_relaxed) : NULL;
}

/*
 * Store two words of an object in its slot, and get them by its handle after the removal.
 * sci_legacy() returns false if @handle is no handle of @type, or if the slot has
 * another object by now.
 */
void sci_bequeath(void *obj, uint32_t word0, uint32_t word1);
bool sci_legacy(const void *handle, enum sci_type type, uint32_t words[2]);

/* Add a user to @obj, and remove the user. Return false if @obj is being removed. */
bool sci_use(void *obj);
void sci_unuse(void *obj);

/* Do step 1 of a removal. @force: even if @obj has users. Errors: BUSY, ILLEGAL_PARAMETER. */
sci_error_t sci_close_obj(void *obj, bool force);
void sci_retire(void *obj);
void sci_drain(void *obj);
void sci_release(void *obj);

/* Call @fn for every live object of a type, with a reference. */
void sci_for_each(enum sci_type type, void (*fn)(void *obj, void *arg),
		  void *arg);

/* Make all handles invalid in the child of a fork. */
void sci_objects_fork(void);

static inline void *sci_handle(const void *obj)
{
	/* a handle is a number in the form of a pointer */
	return (void *)((const struct sci_obj *)obj)->handle;
}

/* ---- the objects ---- */

struct sci_desc_obj {
	struct sci_obj obj;
};

struct sci_lseg_obj {
	struct sci_obj obj;
	struct sci_lseg *seg;
	struct sci_notifier *events;
	bool is_private;
	bool empty;			/* the segment has no memory yet */
	bool attached;
	bool peers_told;		/* importers were asked to disconnect; under lock */
	/* memory that the program provides; NULL: memory of the fabric; set once */
	char *mem;
	/* one bit per adapter: the segment is prepared, available, DMA only; under lock */
	uint32_t prepared;
	uint32_t available;
	uint32_t dma_only;
};

struct sci_rseg_obj {
	struct sci_obj obj;
	struct sci_rseg *seg;		/* NULL until connected; under lock */
	struct sci_notifier *events;
	unsigned int adapter;
	unsigned int node;
	uint32_t id;
	bool broadcast;			/* connected with SCI_FLAG_BROADCAST */
	bool connecting;		/* an asynchronous connect is in progress */
	pthread_cond_t connected;
	struct sci_rseg_param param;
	struct sci_job job;
	struct list sequences;
};

struct sci_map_obj {
	struct sci_obj obj;
	/* the segment, local or remote; the other pointer is NULL */
	struct sci_lseg_obj *lseg;
	struct sci_rseg_obj *rseg;
	struct sci_rseg_status *status;	/* NULL: local segment */
	enum sci_pio_map pio;
	char *addr;
	size_t size;
	size_t offset;			/* offset of the map in the segment */
	bool readonly;
};

struct sci_seq_obj {
	struct sci_obj obj;
	struct list link;		/* in the list of its remote segment */
	/* NULL: the map is local, or the segment was disconnected */
	struct sci_rseg_obj *rseg;
	struct sci_rseg_status *_Atomic status;
	/* for caches that are not coherent: the map, and the link in the list of such sequences */
	struct sci_map_obj *map;
	char *_Atomic addr;
	size_t size;
	struct list stale;
	/* the link's error count at the start of the sequence */
	_Atomic uint32_t errors;
	_Atomic bool started;
};

/* Stop the sequences of @map from writing lines back, before @map is unmapped. */
void sci_seq_unmapped(struct sci_map_obj *map);

/* Make the sequences of @rseg fail from now on: its import is about to be destroyed. */
void sci_seq_orphan(struct sci_rseg_obj *rseg);

/* Reset sequences in the child of a fork: other threads of the parent may have held the lock. */
void sci_seq_fork(void);

/* Handle an event of the fabric for a segment of either kind. @owner is the notifier. */
void sci_segment_event(void *owner, const struct sci_event *ev);

/* Remove an object unconditionally, for SCITerminate(); each function is in the type's file. */
void sci_seq_destroy(void *obj);
void sci_block_destroy(void *obj);
void sci_dma_destroy(void *obj);
void sci_map_destroy(void *obj);
void sci_lintr_destroy(void *obj);
void sci_rintr_destroy(void *obj);
void sci_rseg_destroy(void *obj);
void sci_lseg_destroy(void *obj);
void sci_desc_destroy(void *obj);

/* Disconnect @obj, a remote segment, if it belongs to @desc and its connection is lost. */
void sci_rseg_bury(void *obj, void *desc);

/* End all waits on an object; SCITerminate() then waits for the calls. */
void sci_block_cancel(void *obj);
void sci_dma_cancel(void *obj);
void sci_lintr_cancel(void *obj);
void sci_rseg_cancel(void *obj);
void sci_lseg_cancel(void *obj);

#endif
