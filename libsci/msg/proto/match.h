/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: which message goes to which receive
 *
 * There are two queues: receives that wait for a message, and unexpected messages that
 * wait for a receive. An arriving message goes to the oldest receive that accepts it. A new
 * receive gets the oldest message that it accepts. So the messages of one source and
 * context are received in the order in which they were sent:
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
 * A receive is exact when it names its source and ignores no bit of the tag. A message is compared
 * with all inexact receives one by one, and an inexact receive with all messages one by one. The
 * cost of every other operation does not depend on the length of the queues.
 *
 * The caller allocates receives and messages. It must not change them until they are removed. The
 * caller holds a lock during each call.
 */
#ifndef LIBSCI_MSG_MATCH_H
#define LIBSCI_MSG_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsci/base/list.h"

/*
 * The common part of receives and messages. The caller sets @source, @tag and @context; the other
 * members are private.
 *
 * @order: link in the whole queue, oldest first
 * @same: link in the ring of one key; or in the list of nodes that are not exact
 * @next, @pprev: links to other keys of the bin; @pprev is NULL unless the node is the
 *	oldest of its key
 * @wild: true unless the node is exact
 * @seq: order of arrival
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
 * @source: NULL accepts any source
 * @ignore: bits of @tag that are not compared; 0 for an exact tag, ~0 for any tag
 * @stays: the receive stays posted after a match: see sci_match_arrive()
 * @count: counter of the caller for the posted receives; or NULL
 */
struct sci_match_recv {
	union {
		struct sci_match_node node;
		struct { SCI_MATCH_FIELDS; };
	};
	uint64_t ignore;
	bool stays;
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
 * @order: all nodes
 * @wild: nodes that are not exact; used when @hashed
 * @bins: chains of keys; NULL until the queue is too long for a search
 * @hashed: false while the queue is short
 * @shift: 64 minus the binary logarithm of the number of bins
 * @keys: number of different keys in the bins
 * @limit: with more keys than this the queue gets more bins; unless @hashed: number of nodes
 * @passed: the nodes up to @passed are not of @passed_source
 * @steps: total number of visited nodes; tests read it
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
 * @posted, @unexpected: number of nodes; the caller may read them
 * @of_class: posted receives by class of context. A receive that is always posted in its
 *	own context does not stop the fast paths of other contexts.
 */
struct sci_match {
	size_t posted;
	size_t of_class[SCI_MATCH_CLASSES];
	size_t unexpected;
	uint64_t seq;
	struct sci_match_queue recvs;
	struct sci_match_queue msgs;
};

/* Initialize @m, which must not move. Return 0: only long queues allocate memory. */
int sci_match_init(struct sci_match *m);

/* Free @m, both of whose queues are empty. */
void sci_match_fini(struct sci_match *m);

/* ---- receives ---- */

static inline bool sci_match_none_of(const struct sci_match *m, uint32_t context)
{
	return !m->of_class[context % SCI_MATCH_CLASSES];
}

/* Append a receive. This function and sci_match_unexpected() may allocate memory. */
void sci_match_post(struct sci_match *m, struct sci_match_recv *recv);

/* Remove a posted receive, to cancel it. */
void sci_match_recv_remove(struct sci_match *m, struct sci_match_recv *recv);

struct sci_match_recv *sci_match_arrive_posted(struct sci_match *m,
					       const void *source, uint64_t tag,
					       uint32_t context);

/*
 * Return the oldest receive that accepts this message, and remove it unless it stays; NULL: no
 * receive accepts the message.
 */
static inline struct sci_match_recv *
sci_match_arrive(struct sci_match *m, const void *source, uint64_t tag,
		 uint32_t context)
{
	if (sci_match_none_of(m, context))
		return NULL;
	return sci_match_arrive_posted(m, source, tag, context);
}

/*
 * sci_match_recv_of() - return the oldest receive that names @source, or NULL
 *
 * To get the next receive, remove this receive and call again. Repeated calls for the same source
 * visit each receive once.
 */
struct sci_match_recv *sci_match_recv_of(struct sci_match *m,
					 const void *source);

static inline struct sci_match_recv *sci_match_recv_any(struct sci_match *m)
{
	if (!m->posted)
		return NULL;
	return container_of(m->recvs.order.next, struct sci_match_recv, order);
}

/* ---- messages ---- */

/* Append a message for which sci_match_arrive() found no receive. */
void sci_match_unexpected(struct sci_match *m, struct sci_match_msg *msg);

void sci_match_msg_remove(struct sci_match *m, struct sci_match_msg *msg);

struct sci_match_msg *
sci_match_find_unexpected(struct sci_match *m,
			  const struct sci_match_recv *want);

/* Return the oldest message that @want accepts, without removing it; NULL: none. */
static inline struct sci_match_msg *
sci_match_find(struct sci_match *m, const struct sci_match_recv *want)
{
	if (!m->unexpected)
		return NULL;
	return sci_match_find_unexpected(m, want);
}

/* Return the oldest message of @source, or NULL; see sci_match_recv_of(). */
struct sci_match_msg *sci_match_msg_of(struct sci_match *m,
				       const void *source);

static inline struct sci_match_msg *sci_match_msg_any(struct sci_match *m)
{
	if (!m->unexpected)
		return NULL;
	return container_of(m->msgs.order.next, struct sci_match_msg, order);
}

#endif
