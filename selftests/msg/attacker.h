/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: a peer that breaks the rules of libsci/msg/conn/wire.h
 *
 * The attacker connects to the victim, endpoint TEST_ID of node 4, by operations
 * of the fabric, and then writes any lines into the victim's inbox:
 *
 *	struct attacker a = { .state = &seed };
 *
 *	attacker_open(&a);
 *	if (meet_victim(&a)) {
 *		seal_and_store(&a.data, &line, LINE_TYPED);
 *		ring(&a);
 *		leave_victim(&a);
 *	}
 *	attacker_close(&a);
 */
#ifndef SELFTESTS_MSG_ATTACKER_H
#define SELFTESTS_MSG_ATTACKER_H

#include "libsci/fabric/core/fabric.h"
#include "libsci/msg/conn/wire.h"
#include "selftests/msg/traffic.h"

#define ATTACKER_NODE	12u
#define ATTACKER_ID	99u
#define RINGS_BYTES	8192u

/* A ring in the victim's memory. */
struct far_ring {
	volatile struct msg_line *slots;
	uint32_t lines;
	uint32_t pos;
};

/* A ring in the attacker's memory, which the victim writes to. */
struct near_ring {
	const volatile struct msg_line *slots;
	uint32_t lines;
	uint32_t pos;
};

struct attacker {
	struct sci_fabric *f;
	struct sci_lintr *port, *bell;
	struct sci_rintr *victim_port, *victim_bell;
	uint32_t id;
	uint32_t flags;			/* flags of its HELLO */
	uint64_t *state;

	struct sci_lseg *inbox, *rings;
	struct msg_inbox *inbox_map;
	void *rings_map;
	struct sci_rseg *outbox;
	struct msg_inbox *outbox_map;
	struct far_ring data, ctl;
	struct near_ring in, in_ctl;
};

static inline void no_event(void *owner, const struct sci_event *ev)
{
	(void)owner;
	(void)ev;
}

/* Export a zeroed segment and map it at *@addr. */
static inline struct sci_lseg *export_as(struct sci_fabric *f,
					 struct sci_lseg_param param, void **addr)
{
	struct sci_lseg *s;

	CHECK_EQ(f->ops->lseg.create(f, &param, &s), 0);
	CHECK_EQ(f->ops->lseg.map(s, 0, param.size, 0, addr), 0);
	CHECK_EQ(f->ops->lseg.export(s, 0), 0);
	return s;
}

static inline struct sci_lseg *export(struct sci_fabric *f, size_t size,
				      void **addr)
{
	return export_as(f, (struct sci_lseg_param){
		.id = MSG_NUMBERS, .size = size, .flags = SCI_LSEG_AUTO_ID,
		.event = no_event }, addr);
}

static inline struct sci_lintr *own_interrupt(struct attacker *a, bool data)
{
	struct sci_lintr_param param = {
		.number = MSG_NUMBERS + a->id,
		.flags = SCI_INTR_FIXED | (data ? SCI_INTR_DATA : 0),
	};
	struct sci_lintr *i;

	CHECK_EQ(a->f->ops->lintr.create(a->f, &param, &i), 0);
	return i;
}

static inline struct sci_rintr *victims_interrupt(struct attacker *a, bool data)
{
	const struct sci_rintr_param param = {
		.node = 4, .number = MSG_NUMBERS + TEST_ID, .timeout = 5000,
		.data = data,
	};
	struct sci_rintr *i = NULL;

	WAIT_UNTIL(!a->f->ops->rintr.connect(a->f, &param, &i), TEST_WAIT_MS);
	return i;
}

static inline void attacker_open(struct attacker *a)
{
	CHECK_EQ(sci_fabric_open(&a->f), 0);
	a->id = ATTACKER_ID;
	a->port = own_interrupt(a, true);
	a->bell = own_interrupt(a, false);
	a->victim_port = victims_interrupt(a, true);
	a->victim_bell = victims_interrupt(a, false);
	a->rings = export(a->f, RINGS_BYTES, &a->rings_map);
}

static inline void attacker_close(struct attacker *a)
{
	a->f->ops->rintr.disconnect(a->victim_port);
	a->f->ops->rintr.disconnect(a->victim_bell);
	a->f->ops->unmap(a->f, a->rings_map, RINGS_BYTES);
	a->f->ops->lseg.destroy(a->rings);
	a->f->ops->lintr.destroy(a->port);
	a->f->ops->lintr.destroy(a->bell);
	sci_fabric_close(a->f);
}

static inline struct msg_hello hello_of(struct attacker *a)
{
	return (struct msg_hello) {
		.magic = MSG_MAGIC, .version = MSG_VERSION,
		.type = HELLO_CONNECT, .node = ATTACKER_NODE, .id = a->id,
		.nonce = draw(a->state, UINT64_MAX) | 1, .flags = a->flags,
		.inbox = a->inbox ? a->f->ops->lseg.id(a->inbox) : 0,
	};
}

static inline int say(struct attacker *a, const void *data, size_t len)
{
	int ret;

	WAIT_UNTIL((ret = a->f->ops->rintr.trigger(a->victim_port, data,
						   len)) != -ENOBUFS,
		   TEST_WAIT_MS);
	return ret;
}

/* Send @mine until the victim answers it. */
static inline struct msg_hello answer_to(struct attacker *a,
					 const struct msg_hello *mine)
{
	uint64_t until = test_now_ms() + TEST_WAIT_MS;
	struct msg_hello theirs;
	size_t len;
	int ret;

	do {
		/* repeat: the victim may still be connected from the last round */
		CHECK_EQ(say(a, mine, sizeof(*mine)), 0);
		len = sizeof(theirs);
		ret = a->f->ops->lintr.wait(a->port, &theirs, &len, 50);
		CHECK(!ret || (ret == -ETIMEDOUT && test_now_ms() < until));
		/* an answer to the last round may come late */
	} while (ret || theirs.to != mine->nonce);
	return theirs;
}

/* Connect as an endpoint would. Return false if the victim refuses. */
static inline bool meet_victim(struct attacker *a)
{
	struct sci_rseg_param param = {
		.node = 4, .timeout = 5000, .event = no_event,
	};
	struct msg_hello mine, theirs;
	void *addr;

	a->inbox = export(a->f, INBOX_BYTES, &addr);
	a->inbox_map = addr;
	mine = hello_of(a);
	theirs = answer_to(a, &mine);
	if (theirs.type != HELLO_CONNECT)
		return false;
	param.id = theirs.inbox;
	if (a->f->ops->rseg.connect(a->f, &param, &a->outbox))
		return false;
	CHECK_EQ(a->f->ops->rseg.map(a->outbox, 0, INBOX_BYTES, 0, &addr), 0);
	a->outbox_map = addr;
	a->data = (struct far_ring){ a->outbox_map->data, DATA_LINES, 0 };
	a->ctl = (struct far_ring){ a->outbox_map->ctl, CTL_LINES, 0 };
	a->in = (struct near_ring){ a->inbox_map->data, DATA_LINES, 0 };
	a->in_ctl = (struct near_ring){ a->inbox_map->ctl, CTL_LINES, 0 };
	return true;
}

static inline void leave_victim(struct attacker *a)
{
	a->f->ops->unmap(a->f, a->outbox_map, INBOX_BYTES);
	a->f->ops->rseg.disconnect(a->outbox);
	a->f->ops->unmap(a->f, a->inbox_map, INBOX_BYTES);
	a->f->ops->lseg.destroy(a->inbox);
	a->inbox = NULL;
}

/* ---- lines ---- */

static inline void store_line(volatile struct msg_line *slot,
			      const struct msg_line *l)
{
	for (unsigned int i = 0; i < LINE_WORDS; i++)
		sci_store_release(&slot->w[i], l->w[i]);
}

/* Write the next line of the ring as a correct sender would. */
static inline void seal_and_store(struct far_ring *r, struct msg_line *l,
				  unsigned int kind)
{
	uint64_t id = r->pos / r->lines & 1 ? 0 : LINE_ID;

	line_seal(l, id, kind, r->pos);
	store_line(&r->slots[r->pos % r->lines], l);
	r->pos++;
}

static inline void ring(struct attacker *a)
{
	a->f->ops->rintr.trigger(a->victim_bell, NULL, 0);
}

/* Write a typed line into @r and ring the victim's doorbell. */
static inline void tell(struct attacker *a, struct far_ring *r,
			enum msg_line_type type, struct msg_typed t)
{
	struct msg_line l;

	t.type = (uint8_t)type;
	memcpy(&l, &t, sizeof(l));
	seal_and_store(r, &l, LINE_TYPED);
	ring(a);
}

/* Wait for the next line that the victim writes into @r. */
static inline struct msg_typed hear(struct near_ring *r)
{
	uint64_t id = r->pos / r->lines & 1 ? 0 : LINE_ID;
	struct msg_typed t;
	struct msg_line l;

	WAIT_UNTIL(line_take(&r->slots[r->pos % r->lines], id, &l), TEST_WAIT_MS);
	r->pos++;
	memcpy(&t, &l, sizeof(t));
	return t;
}

/* Report all lines of the victim as read, without a doorbell. */
static inline void read_all_of(struct attacker *a)
{
	struct msg_status s = { .data = a->in.pos, .ctl = a->in_ctl.pos };
	struct msg_line l;

	memcpy(&l, &s, sizeof(s));
	store_line(&a->outbox_map->status, &l);
}

#endif
