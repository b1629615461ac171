// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Requests that have been sent, from their slot to their answer: section 6 of the data sheet.
 *
 * Stores, loads and DMA share the slots of the data sheet; mailbox and command have slots of
 * their own, so neither waits for the other.
 */
#include "sim/adapter/model.h"

#define SPECIAL_ALL	((UINT64_C(1) << (SCI_PCI_MBOX_SLOTS + 1)) - 1)
#define COMMAND_SLOT	(UINT64_C(1) << SCI_PCI_MBOX_SLOTS)

static uint64_t slots_mask(const struct sim_adapter *a)
{
	return UINT64_MAX >> (64 - a->config.outstanding);
}

static struct transaction *slot_first(const struct sim_adapter *a,
				      uint64_t bits)
{
	return &a->slot[__builtin_ctzll(bits)];
}

static struct transaction *special_get_first(const struct sim_adapter *a,
					     uint64_t bits)
{
	return &a->slot[SLOTS_MAX + (unsigned int)__builtin_ctzll(bits)];
}

/* Call @fn, which may end the transaction, for all transactions that have begun. */
static void transactions_each_begun(struct sim_adapter *a, uint64_t arg,
				    void (*fn)(struct sim_adapter *a,
					       struct transaction *t, uint64_t arg))
{
	uint64_t bits = slots_mask(a) & ~a->slots_free;
	uint64_t special = SPECIAL_ALL & ~a->special_free & ~a->special_wait;

	for (; bits; bits &= bits - 1)
		fn(a, slot_first(a, bits), arg);
	for (; special; special &= special - 1)
		fn(a, special_get_first(a, special), arg);
}

/* ---- by line and by number ---- */

static struct transaction **line_bucket(struct sim_adapter *a, uint64_t line)
{
	uint64_t h = line * UINT64_C(0x9e3779b97f4a7c15);

	return &a->by_line[h >> 32 & (BUCKETS - 1)];
}

static struct transaction **number_bucket(struct sim_adapter *a, uint16_t node,
					  uint32_t number)
{
	return &a->by_number[((node >> 2) * 37u + number) & (BUCKETS - 1)];
}

static bool line_is_busy(struct sim_adapter *a, uint64_t line)
{
	const struct transaction *t;

	if (line == NO_LINE)
		return false;
	for (t = *line_bucket(a, line); t; t = t->line_next)
		if (t->line == line)
			return true;
	return false;
}

static struct transaction *transaction_find(struct sim_adapter *a, uint16_t node,
					    uint32_t number)
{
	struct transaction *t = *number_bucket(a, node, number);

	while (t && (t->packet.number != number || t->packet.target != node))
		t = t->number_next;
	return t;
}

static void transaction_hash(struct sim_adapter *a, struct transaction *t)
{
	struct transaction **n = number_bucket(a, t->packet.target,
					       t->packet.number);
	struct transaction **l = line_bucket(a, t->line);

	t->number_next = *n;
	*n = t;
	if (t->line == NO_LINE)
		return;
	t->line_next = *l;
	*l = t;
}

static void transaction_unhash(struct sim_adapter *a, struct transaction *t)
{
	struct transaction **n = number_bucket(a, t->packet.target,
					       t->packet.number);
	struct transaction **l = line_bucket(a, t->line);

	while (*n != t)
		n = &(*n)->number_next;
	*n = t->number_next;
	if (t->line == NO_LINE)
		return;
	while (*l != t)
		l = &(*l)->line_next;
	*l = t->line_next;
}

/* ---- begin ---- */

/* Return the error if no request can be sent to @node, else SCI_PCI_ERR_NONE. */
enum sci_pci_error transaction_reach(struct sim_adapter *a, uint16_t node)
{
	if (!node_valid(node))
		return a->link_up ? SCI_PCI_ERR_NODE : SCI_PCI_ERR_LINK;
	if (!adapter_reaches(a, node) || !node_get(a, node))
		return SCI_PCI_ERR_LINK;
	return SCI_PCI_ERR_NONE;
}

/* Return whether a request may be sent now. If not, it has to wait for an answer. */
bool transaction_ready(struct sim_adapter *a, uint16_t node, uint64_t line)
{
	struct node *p = node_get(a, node);

	return a->slots_free && p && node_ready(p) && !line_is_busy(a, line);
}

static void slot_take(struct sim_adapter *a, struct transaction *t,
		      enum owner owner, uint16_t node, enum packet_kind kind)
{
	memset(&t->packet, 0, PACKET_HEADER);
	t->packet.kind = (uint8_t)kind;
	t->packet.size = PACKET_HEADER;
	t->packet.source = a->config.node;
	t->packet.target = node;
	t->packet.epoch = a->epoch;
	t->owner = (uint8_t)owner;
	t->tries = 0;
}

/* Take a slot. The caller completes the packet. Context: after transaction_ready(). */
struct transaction *transaction_new(struct sim_adapter *a, enum owner owner,
				    uint16_t node, enum packet_kind kind)
{
	struct transaction *t = slot_first(a, a->slots_free);

	a->slots_free &= a->slots_free - 1;
	slot_take(a, t, owner, node, kind);
	return t;
}

/* Free a slot whose transaction has not begun. */
void transaction_cancel(struct sim_adapter *a, struct transaction *t)
{
	a->slots_free |= UINT64_C(1) << (t - a->slot);
}

/* Take a slot for mailbox or command, or return NULL. transaction_run() begins the transaction. */
struct transaction *transaction_special(struct sim_adapter *a,
					enum owner owner, uint16_t node,
					enum packet_kind kind)
{
	uint64_t bits = a->special_free;
	struct transaction *t;

	bits &= owner == OWNER_COMMAND ? COMMAND_SLOT : ~COMMAND_SLOT;
	if (!bits)
		return NULL;
	bits &= -bits;
	t = special_get_first(a, bits);
	a->special_free &= ~bits;
	a->special_wait |= bits;
	a->retry = true;
	slot_take(a, t, owner, node, kind);
	return t;
}

static uint64_t transaction_end_time(const struct sim_adapter *a,
			   const struct transaction *t)
{
	uint64_t us = a->timeout_us ? a->timeout_us : 1;

	return a->host->now(a->ctx) + (us * 1000 << t->tries);
}

static void transaction_transmit(struct sim_adapter *a, struct transaction *t)
{
	t->deadline = transaction_end_time(a, t);
	adapter_until(a, t->deadline);
	a->host->send(a->ctx, &t->packet);
}

void transaction_begin(struct sim_adapter *a, struct transaction *t,
		       uint64_t line)
{
	struct node *p = node_get(a, t->packet.target);

	t->node = p;
	t->line = line;
	t->packet.number = p->next++;
	link_add(&t->node_link, &p->outstanding);
	t->packet.floor = node_floor(p);
	transaction_hash(a, t);
	if (t->owner == OWNER_STORE)
		a->stores++;
	if (t->packet.target == a->config.node) {
		t->deadline = SIM_NEVER;
		link_add(&t->queue, &a->own);
		return;
	}
	t->packet.crc = packet_crc(&t->packet);
	transaction_transmit(a, t);
}

/* ---- waiting transactions ---- */

static void special_end(struct sim_adapter *a, struct transaction *t,
			enum sci_pci_error error,
			const struct sim_packet *response)
{
	if (t->owner == OWNER_COMMAND)
		command_end(a, error, response ? response->value : 0);
	else if (error)
		counter_add(a, SCI_PCI_CNT_MBOX_FAILED);
	if (t->owner != OWNER_COMMAND && error == SCI_PCI_ERR_NODE)
		rx_return(a, &t->packet);
	a->special_free |= UINT64_C(1) << (t - a->slot - SLOTS_MAX);
}

static void special_begin(struct sim_adapter *a, struct transaction *t)
{
	if (t->packet.kind == PACKET_MAILBOX)
		counter_add(a, SCI_PCI_CNT_MBOX_SENT);
	if (t->packet.kind == PACKET_INTERRUPT)
		counter_add(a, SCI_PCI_CNT_INTERRUPTS_SENT);
	transaction_begin(a, t, NO_LINE);
}

static void specials_run(struct sim_adapter *a)
{
	for (uint64_t bits = a->special_wait; bits; bits &= bits - 1) {
		struct transaction *t = special_get_first(a, bits);
		enum sci_pci_error error;

		error = transaction_reach(a, t->packet.target);
		if (!error && !node_ready(node_get(a, t->packet.target)))
			continue;
		a->special_wait &= ~(bits & -bits);
		if (error)
			special_end(a, t, error, NULL);
		else
			special_begin(a, t);
	}
}

static void waiter_issue(struct sim_adapter *a, struct waiter *w)
{
	if (w->read)
		read_issue(a, LINK_OF(w, struct read, wait));
	else
		stream_issue(a, LINK_OF(w, struct stream, wait));
}

/*
 * Issue waiting transactions, the oldest first. Two transactions of one line keep their order,
 * because both wait for the same slot, line or node.
 */
static void waiters_run(struct sim_adapter *a)
{
	struct link *next;

	for (struct link *l = a->waiters.next; l != &a->waiters; l = next) {
		next = l->next;
		waiter_issue(a, LINK_OF(l, struct waiter, link));
	}
}

/* Begin waiting transactions. Return false if nothing has changed since the last call. */
bool transaction_run(struct sim_adapter *a)
{
	if (!a->retry)
		return false;
	a->retry = false;
	if (a->special_wait)
		specials_run(a);
	waiters_run(a);
	return true;
}

/* ---- end ---- */

static void owner_end(struct sim_adapter *a, struct transaction *t,
		      enum sci_pci_error error,
		      const struct sim_packet *response)
{
	switch ((enum owner)t->owner) {
	case OWNER_STORE:
		a->stores--;
		link_del(&t->order.link);
		if (error)
			status_error(a, error, t->packet.target,
				     t->packet.address);
		break;
	case OWNER_READ:
		read_end(a, t, error, response);
		break;
	case OWNER_DMA:
		dma_end(a, t, error, response);
		break;
	case OWNER_MAILBOX:
	case OWNER_COMMAND:
		special_end(a, t, error, response);
		return;
	}
	a->slots_free |= UINT64_C(1) << (t - a->slot);
}

static void transaction_end(struct sim_adapter *a, struct transaction *t,
			    enum sci_pci_error error, const struct sim_packet *response)
{
	transaction_unhash(a, t);
	link_del(&t->node_link);
	if (t->deadline == SIM_NEVER)
		link_del(&t->queue);
	a->retry = true;
	owner_end(a, t, error, response);
}

/* End a transaction without an answer: the target may still execute the request. */
static void transaction_give_up(struct sim_adapter *a, struct transaction *t,
				enum sci_pci_error error)
{
	struct node *p = t->node;
	uint32_t number = t->packet.number;

	if (!p->held || (int32_t)(number - p->gave_up) > 0)
		p->gave_up = number;
	p->held = true;
	transaction_end(a, t, error, NULL);
}

static bool response_fits(const struct sim_packet *request,
			  const struct sim_packet *r)
{
	uint16_t want = PACKET_HEADER;

	if (r->kind != (request->kind | PACKET_RESPONSE))
		return false;
	switch (r->status) {
	case SCI_PCI_ERR_NONE:
		if (request->kind == PACKET_READ)
			want += request->length;
		break;
	case SCI_PCI_ERR_NODE:
	case SCI_PCI_ERR_PROTECTION:
		break;
	case SCI_PCI_ERR_BUSY:
		if (request->kind != PACKET_MAILBOX &&
		    request->kind != PACKET_INTERRUPT)
			return false;
		break;
	default:
		return false;
	}
	return r->size == want;
}

void transaction_response(struct sim_adapter *a, const struct sim_packet *r)
{
	struct transaction *t;

	if (r->epoch != a->epoch)
		return;
	t = transaction_find(a, r->source, r->number);
	if (!t)
		return;
	if (!response_fits(&t->packet, r))
		counter_add(a, SCI_PCI_CNT_CRC_ERRORS);
	else if (r->status == SCI_PCI_ERR_NODE)
		transaction_give_up(a, t, SCI_PCI_ERR_NODE);
	else
		transaction_end(a, t, (enum sci_pci_error)r->status, r);
}

void transaction_no_node(struct sim_adapter *a, const struct sim_packet *p)
{
	struct transaction *t;

	if (p->epoch != a->epoch || !node_valid(p->target))
		return;
	t = transaction_find(a, p->target, p->number);
	if (t && p->kind == t->packet.kind && t->deadline != SIM_NEVER)
		transaction_give_up(a, t, SCI_PCI_ERR_NODE);
}

static void transaction_fail_one(struct sim_adapter *a, struct transaction *t,
				 uint64_t own)
{
	if (own || t->packet.target != a->config.node)
		transaction_give_up(a, t, SCI_PCI_ERR_LINK);
}

/* Fail all transactions, because the link is down. @own: also transactions to the own node. */
void transaction_fail(struct sim_adapter *a, bool own)
{
	transactions_each_begun(a, own, transaction_fail_one);
}

/* ---- time ---- */

static void transaction_expire_one(struct sim_adapter *a, struct transaction *t,
				   uint64_t now)
{
	if (t->deadline > now || t->deadline == SIM_NEVER)
		return;
	if (t->tries >= a->retries) {
		transaction_give_up(a, t, SCI_PCI_ERR_TIMEOUT);
		return;
	}
	t->tries++;
	counter_add(a, SCI_PCI_CNT_RETRIES);
	transaction_transmit(a, t);
}

void transaction_expire(struct sim_adapter *a, uint64_t now)
{
	transactions_each_begun(a, now, transaction_expire_one);
}

uint64_t transaction_deadline(const struct sim_adapter *a)
{
	uint64_t bits = slots_mask(a) & ~a->slots_free;
	uint64_t special = SPECIAL_ALL & ~a->special_free & ~a->special_wait;
	uint64_t first = SIM_NEVER;

	for (; bits; bits &= bits - 1)
		if (slot_first(a, bits)->deadline < first)
			first = slot_first(a, bits)->deadline;
	for (; special; special &= special - 1)
		if (special_get_first(a, special)->deadline < first)
			first = special_get_first(a, special)->deadline;
	return first;
}

/* ---- registers ---- */

/* Return the number of stores that have left the buffers and are not complete. */
unsigned int transaction_stores(const struct sim_adapter *a)
{
	const struct link *l = a->waiters.next;
	unsigned int n = a->stores;

	for (; l != &a->waiters; l = l->next)
		n += !LINK_OF(l, struct waiter, link)->read;
	return n;
}

bool transaction_any(const struct sim_adapter *a)
{
	return a->slots_free != slots_mask(a) ||
	       a->special_free != SPECIAL_ALL || !link_empty(&a->waiters);
}

uint32_t mailbox_free(const struct sim_adapter *a)
{
	return (uint32_t)__builtin_popcountll(a->special_free & ~COMMAND_SLOT);
}

void transaction_reset(struct sim_adapter *a)
{
	a->slots_free = slots_mask(a);
	a->special_free = SPECIAL_ALL;
	a->special_wait = 0;
	a->stores = 0;
	memset(a->by_line, 0, sizeof(a->by_line));
	memset(a->by_number, 0, sizeof(a->by_number));
}
