/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: which message goes to which receive
 *
 * Two queues: receives that wait for a message, and unexpected messages that
 * wait for a receive.  An arriving message goes to the oldest receive that
 * accepts it, a new receive gets the oldest message it accepts, so messages of
 * one source and context are received in the order they were sent:
 *
 *	arrives:	r = sci_match_arrive(m, source, tag, context);
 *			if (!r)
 *				sci_match_unexpected(m, msg);
 *	receive:	msg = sci_match_find(m, recv);
 *			if (msg)
 *				sci_match_msg_remove(m, msg);
 *			else
 *				sci_match_post(m, recv);
 *
 * A receive is exact when it names its source and ignores no bit of the tag.
 * Receives that are not exact are compared one by one, and so are the messages
 * with such a receive.  Every other operation has a cost that does not depend on the length of the queues.
 *
 * Receives and messages are the caller's memory.  They belong to the queue,
 * unchanged, until they are removed.  The caller holds a lock.
 */
#ifndef LIBSCI_MSG_MATCH_H
#define LIBSCI_MSG_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsci/base/list.h"

/*
 * The common part of receives and messages.  The caller sets @source, @tag
 * and @context, the rest is private.
 *
 * @order: all of the queue, oldest first
 * @same: all of one key, a ring; those that are not exact, a list
 * @next, @pprev: other keys in the same bin.  @pprev is NULL in all but the
 *	oldest of a key
 * @wild: not exact
 * @seq: grows from one to the next
 */
#define SCI_MATCH_FIELDS						\
	struct list order;						\
	struct list same;						\
	struct sci_match_node *next;					\
	struct sci_match_node **pprev;					\
	void *source;							\
	uint64_t tag;							\
	uint32_t context;						\
	bool wild;							\
	uint64_t seq

struct sci_match_node {
	SCI_MATCH_FIELDS;
};

/*
 * struct sci_match_recv - a posted receive
 * @source: NULL accepts any
 * @ignore: bits of @tag that are not compared; 0 for an exact tag, ~0 for any
 * @count: NULL, or a counter of the caller's: receives that are posted
 */
struct sci_match_recv {
	union {
		struct sci_match_node node;
		struct { SCI_MATCH_FIELDS; };
	};
	uint64_t ignore;
	size_t *count;
};

/*
 * struct sci_match_msg - an unexpected message
 * @source: never NULL
 */
struct sci_match_msg {
	union {
		struct sci_match_node node;
		struct { SCI_MATCH_FIELDS; };
	};
};

/*
 * struct sci_match_queue - posted receives, or unexpected messages
 * @order: all
 * @wild: receives that are not exact; used when @hashed
 * @bins: chains of keys; NULL until a queue is first too long to be searched
 * @hashed: false while the queue is short
 * @shift: 64 less the binary logarithm of the number of bins
 * @keys: different keys in the bins
 * @limit: more keys than this ask for more bins; unless @hashed, more nodes
 * @passed: up to and with this one, none is of @passed_source
 * @steps: nodes visited, ever; tests count them
 */
struct sci_match_queue {
	struct list order;
	struct list wild;
	struct sci_match_node **bins;
	bool hashed;
	unsigned int shift;
	size_t keys;
	size_t limit;
	struct list *passed;
	const void *passed_source;
	unsigned long steps;
};

#define SCI_MATCH_CLASSES	8u

/*
 * @posted, @unexpected: how many there are; the caller may read them
 * @of_class: ... receives of those contexts: one that is always posted in a
 *	context of its own keeps nobody else from taking a message at once
 */
struct sci_match {
	size_t posted;
	size_t of_class[SCI_MATCH_CLASSES];
	size_t unexpected;
	uint64_t seq;
	struct sci_match_queue recvs;
	struct sci_match_queue msgs;
};

/* Always 0: memory is allocated for long queues only.  Not to be moved. */
int sci_match_init(struct sci_match *m);

/* Both queues must be empty: see sci_match_recv_any(), sci_match_msg_any(). */
void sci_match_fini(struct sci_match *m);

/* ---- receives ---- */

/* Is no receive posted that has this context? */
static inline bool sci_match_none_of(const struct sci_match *m, uint32_t context)
{
	return !m->of_class[context % SCI_MATCH_CLASSES];
}

/* Appends; the one place but sci_match_unexpected() that may allocate. */
void sci_match_post(struct sci_match *m, struct sci_match_recv *recv);

/* Remove a posted receive, to cancel it. */
void sci_match_recv_remove(struct sci_match *m, struct sci_match_recv *recv);

struct sci_match_recv *sci_match_arrive_posted(struct sci_match *m,
					       const void *source, uint64_t tag,
					       uint32_t context);

/* The oldest receive that accepts this message, removed; NULL: none. */
static inline struct sci_match_recv *
sci_match_arrive(struct sci_match *m, const void *source, uint64_t tag,
		 uint32_t context)
{
	if (sci_match_none_of(m, context))
		return NULL;
	return sci_match_arrive_posted(m, source, tag, context);
}

/*
 * sci_match_recv_of() - the oldest receive that names @source, or NULL
 *
 * Remove it and ask again to get the next.  This takes time for each receive,
 * but only once for one, however often it is called for the same source.
 */
struct sci_match_recv *sci_match_recv_of(struct sci_match *m,
					 const void *source);

/* The oldest, or NULL. */
static inline struct sci_match_recv *sci_match_recv_any(struct sci_match *m)
{
	if (!m->posted)
		return NULL;
	return container_of(m->recvs.order.next, struct sci_match_recv, order);
}

/* ---- messages ---- */

/* Appends one that sci_match_arrive() found no receive for. */
void sci_match_unexpected(struct sci_match *m, struct sci_match_msg *msg);

void sci_match_msg_remove(struct sci_match *m, struct sci_match_msg *msg);

struct sci_match_msg *
sci_match_find_unexpected(struct sci_match *m,
			  const struct sci_match_recv *want);

/* The oldest message that @want accepts, still queued; NULL: none. */
static inline struct sci_match_msg *
sci_match_find(struct sci_match *m, const struct sci_match_recv *want)
{
	if (!m->unexpected)
		return NULL;
	return sci_match_find_unexpected(m, want);
}

/* The oldest message of @source, or NULL; like sci_match_recv_of(). */
struct sci_match_msg *sci_match_msg_of(struct sci_match *m,
				       const void *source);

/* The oldest, or NULL. */
static inline struct sci_match_msg *sci_match_msg_any(struct sci_match *m)
{
	if (!m->unexpected)
		return NULL;
	return container_of(m->msgs.order.next, struct sci_match_msg, order);
}

#endif
