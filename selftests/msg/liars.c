// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * A peer that breaks one rule of libsci/msg/wire.h at a time, on purpose, or stops
 * where no honest one does, and what the victim makes of it.  hostile.c draws such
 * lines at random.
 *
 *	test process	node 4, the victim
 *	  liar		node 12, see attacker.h
 */
#include "libsci/msg/endpoint.h"
#include "selftests/msg/attacker.h"

/* Not the id of a segment of the message layer. */
#define FOREIGN		0x1000u

struct lie {
	void (*fn)(struct attacker *a, struct lie *lie);
	struct peer *proc;
	_Atomic unsigned int stage;	/* of both, one after the other */
	_Atomic unsigned int connects;	/* to the foreign segment */
};

static void liar(struct peer *self, void *arg)
{
	static struct attacker a;
	static uint64_t seed = 1;
	struct lie *lie = arg;

	(void)self;
	a.state = &seed;
	attacker_open(&a);
	lie->fn(&a, lie);
	attacker_close(&a);
}

static struct lie *lie_begin(void (*fn)(struct attacker *a, struct lie *lie))
{
	struct lie *lie = test_shared(sizeof(*lie));

	lie->fn = fn;
	lie->proc = peer_spawn(ATTACKER_NODE, liar, lie);
	return lie;
}

/* The liar waits until the victim has come so far. */
static void stage_wait(struct lie *lie, unsigned int stage)
{
	WAIT_UNTIL(atomic_load(&lie->stage) >= stage, TEST_WAIT_MS);
}

static void stage_set(struct lie *lie, unsigned int stage)
{
	atomic_store(&lie->stage, stage);
}

/* ---- memory that is no message memory ---- */

static void foreign_event(void *owner, const struct sci_event *ev)
{
	struct lie *lie = owner;

	if (ev->type == SCI_EVENT_CONNECT)
		atomic_fetch_add(&lie->connects, 1);
}

static struct sci_lseg *foreign(struct attacker *a, struct lie *lie, void **addr)
{
	return export_as(a->f, (struct sci_lseg_param){
		.id = FOREIGN, .size = INBOX_BYTES, .event = foreign_event,
		.owner = lie }, addr);
}

static void foreign_inbox(struct attacker *a, struct lie *lie)
{
	struct msg_hello mine, theirs;
	struct sci_lseg *s;
	void *addr;

	s = foreign(a, lie, &addr);
	mine = hello_of(a);
	mine.inbox = FOREIGN;
	theirs = answer_to(a, &mine);
	CHECK_EQ(theirs.type, HELLO_REFUSE);
	CHECK_EQ(theirs.status, -EPROTO);
	CHECK_EQ(atomic_load(&lie->connects), 0);
	a->f->ops->unmap(a->f, addr, INBOX_BYTES);
	a->f->ops->lseg_destroy(s);
	stage_set(lie, 1);
}

TEST(an_inbox_that_is_not_of_this_layer)
{
	struct lie *lie = lie_begin(foreign_inbox);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);

	PROGRESS_UNTIL(ep, atomic_load(&lie->stage), TEST_WAIT_MS);
	peer_join(lie->proc);
	CHECK_EQ(sci_ep_close(ep), 0);
}

static void foreign_ring(struct attacker *a, struct lie *lie)
{
	struct msg_typed t;
	struct sci_lseg *s;
	void *addr;

	s = foreign(a, lie, &addr);
	CHECK(meet_victim(a));
	t = hear(&a->in);
	CHECK_EQ(t.type, LINE_ATTACH);
	tell(a, &a->ctl, LINE_ATTACHED, (struct msg_typed){
		.attached = { .segment = FOREIGN, .size = INBOX_BYTES,
			      .ring = RING_EAGER } });
	/* the message comes all the same */
	t = hear(&a->in);
	CHECK_EQ(t.type, LINE_CHAIN);
	CHECK_EQ(atomic_load(&lie->connects), 0);
	stage_set(lie, 1);
	leave_victim(a);
	a->f->ops->unmap(a->f, addr, INBOX_BYTES);
	a->f->ops->lseg_destroy(s);
}

TEST(a_ring_that_is_not_of_this_layer)
{
	static unsigned char buf[3000];
	struct lie *lie = lie_begin(foreign_ring);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *from = test_ep_accept(ep);
	struct sci_req *req;

	CHECK_EQ(sci_isend(from, buf, sizeof(buf), &req), 0);
	PROGRESS_UNTIL(ep, atomic_load(&lie->stage), TEST_WAIT_MS);
	test_wait(req, NULL);
	peer_join(lie->proc);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- messages that stop half-way ---- */

#define PART_LEN	100u

static void half_a_chain(struct attacker *a, struct lie *lie)
{
	struct msg_line rest[2] = { 0 };

	CHECK(meet_victim(a));
	tell(a, &a->data, LINE_CHAIN, (struct msg_typed){
		.chain = { .len = PART_LEN, .context = 1 } });
	stage_wait(lie, 1);
	memset(rest, 7, sizeof(rest));
	seal_and_store(&a->data, &rest[0], PART_LEN - CHAIN_HEAD);
	ring(a);
	stage_wait(lie, 2);
	leave_victim(a);
}

/* The rest will be stored there. */
TEST(a_buffer_for_the_rest_of_a_message)
{
	struct lie *lie = lie_begin(half_a_chain);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *from = test_ep_accept(ep);
	unsigned char *buf;
	struct sci_req *req;
	void *p = NULL;

	CHECK_EQ(sci_buf_alloc(ep, 4096, &p), 0);
	buf = p;
	CHECK_EQ(sci_tprobe(ep, from, 1, 0, 0, TEST_WAIT_MS, NULL), 0);
	CHECK_EQ(sci_itrecv(ep, from, 1, 0, 0, buf, PART_LEN, &req), 0);
	CHECK_EQ(sci_buf_free(ep, buf), -EBUSY);
	stage_set(lie, 1);
	CHECK_EQ(test_wait(req, NULL), 0);
	CHECK_EQ(buf[PART_LEN - 1], 7);
	CHECK_EQ(sci_buf_free(ep, buf), 0);
	stage_set(lie, 2);
	peer_join(lie->proc);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- how a transfer ended ---- */

static void ends_with(struct attacker *a, int32_t status)
{
	struct msg_typed rts;

	CHECK(meet_victim(a));
	rts = hear(&a->in);
	CHECK_EQ(rts.type, LINE_RTS);
	tell(a, &a->ctl, LINE_FIN, (struct msg_typed){
		.fin = { .id = rts.rts.id, .status = status } });
}

static void ends_with_again(struct attacker *a, struct lie *lie)
{
	ends_with(a, -EAGAIN);
	stage_wait(lie, 1);
	leave_victim(a);
}

static void ends_with_a_timeout(struct attacker *a, struct lie *lie)
{
	ends_with(a, -ETIMEDOUT);
	stage_wait(lie, 1);
	leave_victim(a);
}

static void ends_with_no_error(struct attacker *a, struct lie *lie)
{
	ends_with(a, 1);
	stage_wait(lie, 1);
	leave_victim(a);
}

/* @last is the end of a send that the peer ends as @fn does. */
static void check_end(void (*fn)(struct attacker *a, struct lie *lie), int last)
{
	struct lie *lie = lie_begin(fn);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *from = test_ep_accept(ep);
	char what[] = "what";
	const struct iovec iov = { what, 4 };
	struct sci_req *req;

	CHECK_EQ(sci_isendv(from, &iov, 1, SCI_SEND_SYNC, &req), 0);
	PROGRESS_UNTIL(ep, atomic_load(&req->done), TEST_WAIT_MS);
	CHECK_EQ(sci_test(req, NULL), last);
	stage_set(lie, 1);
	peer_join(lie->proc);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(a_transfer_that_ends_with_not_yet)
{
	check_end(ends_with_again, -ENOMEM);
	check_end(ends_with_a_timeout, -ETIME);
}

TEST(a_transfer_that_ends_with_no_error)
{
	check_end(ends_with_no_error, -EPROTO);
}
