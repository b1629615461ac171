// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * A peer that breaks one rule of libsci/msg/conn/wire.h at a time, or stops where no
 * honest peer does, and how the victim reacts.  hostile.c draws such lines at random.
 *
 *	test process	node 4, the victim
 *	  liar		node 12, see attacker.h
 */
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsci/msg/proto/proto.h"
#include "selftests/msg/attacker.h"

/* An id that is not one of the message layer's segments. */
#define FOREIGN		0x1000u

/* ---- malloc() ---- */

static size_t no_memory_for;		/* malloc() of this size fails */
static void (*on_keep)(void);		/* called when a message is kept */
static struct far_ring own_ring;	/* the data ring in the victim's inbox */

#if !TEST_ASAN && !TEST_TSAN
#define CAN_FAIL_MALLOC	1

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);

void *malloc(size_t size)
{
	return size == no_memory_for ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	if (on_keep && size == sizeof(struct sci_msg))
		on_keep();
	return __libc_calloc(n, size);
}
#else
#define CAN_FAIL_MALLOC	0
#endif

/* ---- lies ---- */

struct lie {
	void (*fn)(struct attacker *a, struct lie *lie);
	struct peer *proc;
	_Atomic unsigned int stage;	/* how far both sides have come */
	_Atomic unsigned int connects;	/* connects to the foreign segment */
	unsigned int handler;		/* handler and length of a request */
	uint32_t len;
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

/* Wait until the other side has set @stage. */
static void stage_wait(struct lie *lie, unsigned int stage)
{
	WAIT_UNTIL(atomic_load(&lie->stage) >= stage, TEST_WAIT_MS);
}

static void stage_set(struct lie *lie, unsigned int stage)
{
	atomic_store(&lie->stage, stage);
}

/* ---- segments that are not of the message layer ---- */

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
	a->f->ops->lseg.destroy(s);
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

static void says_hello_without_inbox(struct attacker *a, struct lie *lie)
{
	struct msg_hello mine = hello_of(a);

	mine.inbox = MSG_NUMBERS + 7;
	/* the endpoint gives up such a peer soon, perhaps before the test sees it: repeat the HELLO */
	while (!atomic_load(&lie->stage)) {
		say(a, &mine, sizeof(mine));
		sched_yield();
	}
	stage_wait(lie, 2);
}

/* A process dies after its HELLO, while this program connects to it. */
TEST(a_peer_without_inbox_ends_with_the_connect)
{
	const struct sci_addr addr = { ATTACKER_NODE, ATTACKER_ID };
	struct lie *lie = lie_begin(says_hello_without_inbox);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_req *req;

	PROGRESS_UNTIL(ep, !list_empty(&ep->peers), TEST_WAIT_MS);
	stage_set(lie, 1);
	CHECK_EQ(sci_iconnect(ep, &addr, 50, &req), 0);
	CHECK_EQ(test_wait(req, NULL), -ETIME);
	PROGRESS_UNTIL(ep, list_empty(&ep->peers), TEST_WAIT_MS);
	stage_set(lie, 2);
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
	/* the message arrives as a chain instead */
	t = hear(&a->in);
	CHECK_EQ(t.type, LINE_CHAIN);
	CHECK_EQ(atomic_load(&lie->connects), 0);
	stage_set(lie, 1);
	leave_victim(a);
	a->f->ops->unmap(a->f, addr, INBOX_BYTES);
	a->f->ops->lseg.destroy(s);
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

/* The rest of a message will be stored in the buffer, so it cannot be freed. */
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

static void half_a_chain_when_told(struct attacker *a, struct lie *lie)
{
	struct msg_typed head = {
		.chain = { .len = PART_LEN, .context = 1 } };
	struct msg_line rest[2] = { 0 };

	CHECK(meet_victim(a));
	stage_wait(lie, 1);
	memset(head.chain.data, 5, sizeof(head.chain.data));
	tell(a, &a->data, LINE_CHAIN, head);
	stage_set(lie, 2);
	stage_wait(lie, 3);
	memset(rest, 7, sizeof(rest));
	seal_and_store(&a->data, &rest[0], PART_LEN - CHAIN_HEAD);
	ring(a);
	stage_wait(lie, 4);
	leave_victim(a);
}

/* sci_try_trecvs() does not take a message that has arrived in part. */
TEST(half_a_message_is_not_taken_at_once)
{
	struct lie *lie = lie_begin(half_a_chain_when_told);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *from = test_ep_accept(ep);
	unsigned char first[PART_LEN], buf[PART_LEN] = { 0 };
	struct sci_try_recv t = { .buf = first, .size = sizeof(first) };
	struct sci_status st;

	stage_set(lie, 1);
	stage_wait(lie, 2);
	CHECK_EQ(sci_try_trecvs(ep, from, 1, &t, 1), -EBUSY);
	CHECK_EQ(sci_try_trecvs(ep, from, 1, &t, 1), -EBUSY);
	stage_set(lie, 3);
	CHECK_EQ(sci_trecv(ep, from, 1, 0, 0, buf, sizeof(buf), &st), 0);
	CHECK_EQ(st.len, PART_LEN);
	for (unsigned int i = 0; i < PART_LEN; i++)
		CHECK_EQ(buf[i], i < CHAIN_HEAD ? 5 : 7);
	stage_set(lie, 4);
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

/* Offer a target, which only peers on the net have. */
static void offers_a_target(struct attacker *a, struct lie *lie)
{
	struct msg_typed rts;

	CHECK(meet_victim(a));
	rts = hear(&a->in);
	CHECK_EQ(rts.type, LINE_RTS);
	tell(a, &a->ctl, LINE_CTS, (struct msg_typed){
		.cts = { .id = rts.rts.id, .len = 4, .mode = CTS_TARGET } });
	stage_wait(lie, 1);
	leave_victim(a);
}

/* Check that a send which the peer ends by @fn completes with @last. */
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

TEST(a_target_in_memory)
{
	check_end(offers_a_target, -EPROTO);
}

/* ---- without memory for a control line ---- */

/* Receives of the victim whose answers fill the control ring, and one more. */
#define ANSWERS	(CTL_LINES + 1)

/* Read no answer, then ask for the victim's send with @mode. */
static void reads_no_answer(struct attacker *a, uint8_t mode, struct lie *lie)
{
	struct msg_typed rts;

	CHECK(meet_victim(a));
	for (uint32_t i = 0; i < ANSWERS; i++)
		tell(a, &a->data, LINE_RTS, (struct msg_typed){
			.rts = { .len = 4096, .context = 1, .id = i } });
	rts = hear(&a->in);
	CHECK_EQ(rts.type, LINE_RTS);
	stage_wait(lie, 1);
	tell(a, &a->ctl, LINE_CTS, (struct msg_typed){
		.cts = { .id = rts.rts.id, .len = 4, .mode = mode } });
	stage_wait(lie, 2);
	leave_victim(a);
}

static void asks_for_blocks(struct attacker *a, struct lie *lie)
{
	reads_no_answer(a, CTS_BLOCKS, lie);
}

static void asks_for_zero_copy(struct attacker *a, struct lie *lie)
{
	reads_no_answer(a, CTS_ZCOPY, lie);
}

/* Receive rendezvous messages in blocks, until an answer has to wait. */
static void answer_all(struct sci_ep *ep, struct sci_peer *from,
		       unsigned char (*buf)[4096], struct sci_req **req)
{
	for (uint32_t i = 0; i < ANSWERS; i++)
		CHECK_EQ(sci_itrecv(ep, from, 1, 0, 0, buf[i], sizeof(buf[i]),
				    &req[i]), 0);
	PROGRESS_UNTIL(ep, !list_empty(&from->ctlq), TEST_WAIT_MS);
}

/*
 * A send without a request ends once: after two ends the library would give the
 * same request to two later calls.
 */
static void check_ends_once(void (*fn)(struct attacker *a, struct lie *lie))
{
	static unsigned char buf[ANSWERS][4096];
	struct lie *lie = lie_begin(fn);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *from = test_ep_accept(ep);
	struct sci_req *req[ANSWERS], *more[2];
	char what[] = "what";
	struct iovec iov = { what, 4 };
	const struct sci_send send = {
		.iov = &iov, .n = 1, .flags = SCI_SEND_COPY | SCI_SEND_SYNC,
	};

	answer_all(ep, from, buf, req);
	CHECK_EQ(sci_isendm(from, &send, NULL), 0);
	no_memory_for = sizeof(struct msg_ctl);
	stage_set(lie, 1);
	PROGRESS_UNTIL(ep, from->state == PEER_DOWN, TEST_WAIT_MS);
	no_memory_for = 0;
	CHECK_EQ(from->error, -ENOMEM);
	/* -ENOMEM would mean that the program may repeat these calls */
	CHECK_EQ(sci_isendv(from, &iov, 1, 0, &more[0]), -ENOBUFS);
	CHECK_EQ(sci_itrecv(ep, from, 1, 0, 0, buf[0], 1, &more[0]), -ENOBUFS);
	CHECK_EQ(from->detached, 0);
	for (unsigned int i = 0; i < ARRAY_LEN(more); i++)
		CHECK_EQ(sci_irecv(ep, NULL, buf[0], 1, &more[i]), 0);
	CHECK(more[0] != more[1]);
	for (uint32_t i = 0; i < ANSWERS; i++)
		CHECK_EQ(test_wait(req[i], NULL), -ENOMEM);
	stage_set(lie, 2);
	peer_join(lie->proc);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(a_send_in_blocks_ends_once_without_memory)
{
	if (!CAN_FAIL_MALLOC)
		SKIP("the sanitizers have a malloc() of their own");
	check_ends_once(asks_for_blocks);
}

TEST(a_zero_copy_send_ends_once_without_memory)
{
	if (!CAN_FAIL_MALLOC)
		SKIP("the sanitizers have a malloc() of their own");
	check_ends_once(asks_for_zero_copy);
}

/* Fill the control ring with answers, then send a message that needs a ring. */
static void fills_the_control_ring(struct attacker *a, struct lie *lie)
{
	struct msg_typed t;

	CHECK(meet_victim(a));
	/* empty messages are answered at once: they need no ring */
	for (uint32_t i = 0; i < CTL_LINES; i++)
		tell(a, &a->data, LINE_RTS, (struct msg_typed){
			.rts = { .len = 0, .context = 1, .id = i } });
	for (uint32_t i = 0; i < CTL_LINES; i++) {
		t = hear(&a->in_ctl);
		CHECK_EQ(t.type, LINE_FIN);
	}
	stage_wait(lie, 1);
	tell(a, &a->data, LINE_RTS, (struct msg_typed){
		.rts = { .len = 4096, .context = 1 } });
	stage_wait(lie, 2);
	leave_victim(a);
}

TEST(a_receive_in_blocks_ends_without_memory)
{
	static unsigned char buf[4096];
	struct lie *lie = lie_begin(fills_the_control_ring);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *from = test_ep_accept(ep);
	struct sci_req *req;

	if (!CAN_FAIL_MALLOC)
		SKIP("the sanitizers have a malloc() of their own");
	for (uint32_t i = 0; i < CTL_LINES; i++)
		CHECK_EQ(sci_trecv(ep, from, 1, 0, 0, NULL, 0, NULL), 0);
	CHECK_EQ(sci_itrecv(ep, from, 1, 0, 0, buf, sizeof(buf), &req), 0);
	no_memory_for = sizeof(struct msg_ctl);
	stage_set(lie, 1);
	PROGRESS_UNTIL(ep, from->state == PEER_DOWN, TEST_WAIT_MS);
	no_memory_for = 0;
	CHECK(atomic_load(&req->done));
	CHECK_EQ(test_wait(req, NULL), -ENOMEM);
	stage_set(lie, 2);
	peer_join(lie->proc);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- endless requests ---- */

/* Check that the victim ends the connection to an attacker that does @fn. */
static void check_breaks_rule(void (*fn)(struct attacker *a, struct lie *lie))
{
	struct lie *lie = lie_begin(fn);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *from = test_ep_accept(ep);

	stage_set(lie, 1);
	PROGRESS_UNTIL(ep, from->state == PEER_DOWN, TEST_WAIT_MS);
	CHECK_EQ(from->error, -EPROTO);
	stage_set(lie, 2);
	peer_join(lie->proc);
	CHECK_EQ(sci_ep_close(ep), 0);
}

static void asks_twice_for_a_ring(struct attacker *a, struct lie *lie)
{
	CHECK(meet_victim(a));
	stage_wait(lie, 1);
	for (unsigned int i = 0; i < 2; i++)
		tell(a, &a->data, LINE_ATTACH, (struct msg_typed){
			.attach = { .size = 8192 } });
	stage_wait(lie, 2);
	leave_victim(a);
}

/* Answers to repeated requests would fill the memory of the victim. */
TEST(a_ring_is_asked_for_once)
{
	check_breaks_rule(asks_twice_for_a_ring);
}

static void detaches_twice(struct attacker *a, struct lie *lie)
{
	struct msg_typed t;

	CHECK(meet_victim(a));
	stage_wait(lie, 1);
	tell(a, &a->data, LINE_ATTACH, (struct msg_typed){
		.attach = { .size = 8192 } });
	t = hear(&a->in_ctl);
	CHECK_EQ(t.type, LINE_ATTACHED);
	CHECK_EQ(t.attached.status, 0);
	for (unsigned int i = 0; i < 2; i++)
		tell(a, &a->data, LINE_DETACH, (struct msg_typed){
			.ring.ring = RING_EAGER });
	stage_wait(lie, 2);
	leave_victim(a);
}

TEST(a_ring_is_detached_once)
{
	check_breaks_rule(detaches_twice);
}

/* Attach and detach rings without reading an answer. */
static void attaches_without_end(struct attacker *a, struct lie *lie)
{
	CHECK(meet_victim(a));
	stage_wait(lie, 1);
	for (unsigned int i = 0; i < DATA_LINES / 2; i++) {
		tell(a, &a->data, LINE_ATTACH, (struct msg_typed){
			.attach = { .size = 8192 } });
		tell(a, &a->data, LINE_DETACH, (struct msg_typed){
			.ring.ring = RING_EAGER });
	}
	stage_set(lie, 2);
	stage_wait(lie, 3);
	leave_victim(a);
}

/* Answers that find no room must not fill the memory of the victim. */
TEST(a_ring_is_not_attached_before_the_last_answer_has_left)
{
	struct lie *lie = lie_begin(attaches_without_end);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *from = test_ep_accept(ep);
	struct list *pos, *n;
	unsigned int waiting = 0;

	stage_set(lie, 1);
	PROGRESS_UNTIL(ep, atomic_load(&lie->stage) == 2, TEST_WAIT_MS);
	for (unsigned int i = 0; i < 1000; i++)
		test_progress(ep);
	CHECK_EQ(from->state, PEER_UP);
	list_for_each_safe(pos, n, &from->ctlq)
		waiting++;
	CHECK_EQ(waiting, 1);
	stage_set(lie, 3);
	peer_join(lie->proc);
	CHECK_EQ(sci_ep_close(ep), 0);
}

static void sleeps_without_end(struct attacker *a, struct lie *lie)
{
	volatile uint32_t *sleeps;

	CHECK(meet_victim(a));
	sleeps = &((volatile struct msg_status *)
		   &a->outbox_map->status)->sleeps;
	stage_set(lie, 1);
	while (atomic_load(&lie->stage) < 2)
		for (unsigned int i = 0; i < 1000; i++)
			sci_store_release(sleeps, *sleeps + 1);
	leave_victim(a);
}

/*
 * Each message makes the victim check whether the peer sleeps, and it finds a
 * new sleep each time.  Where the liar has a core to itself, a victim that
 * repeats the check until there is no new sleep hangs.
 */
TEST(a_peer_that_falls_asleep_without_end)
{
	struct lie *lie = lie_begin(sleeps_without_end);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *from = test_ep_accept(ep);

	PROGRESS_UNTIL(ep, atomic_load(&lie->stage) == 1, TEST_WAIT_MS);
	for (unsigned int i = 0; i < DATA_LINES; i++)
		CHECK_EQ(sci_send(from, &i, sizeof(i)), 0);
	stage_set(lie, 2);
	peer_join(lie->proc);
	CHECK_EQ(sci_ep_close(ep), 0);
}

static void leaves(struct attacker *a, struct lie *lie)
{
	CHECK(meet_victim(a));
	stage_wait(lie, 1);
	leave_victim(a);
}

static void write_one(void)
{
	struct msg_line l = { 0 };

	seal_and_store(&own_ring, &l, 8);
}

/*
 * The peer has left, but its ring fills as fast as lines are taken: each kept
 * message brings the next line.  The victim takes only lines that fit the
 * rings.
 */
TEST(a_peer_that_writes_without_end)
{
	struct lie *lie = lie_begin(leaves);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *from = test_ep_accept(ep);
	uint64_t kept = 0, now = 0;

	if (!CAN_FAIL_MALLOC)
		SKIP("the sanitizers have a malloc() of their own");
	own_ring = (struct far_ring){ from->first.inbox_map->data, DATA_LINES, 0 };
	write_one();
	on_keep = write_one;
	stage_set(lie, 1);
	PROGRESS_UNTIL(ep, ({
		kept = now;
		now = test_ep_stats(ep).unexpected;
		from->state == PEER_DOWN;
	}), TEST_WAIT_MS);
	on_keep = NULL;
	CHECK(now - kept < 2 * (DATA_LINES + CTL_LINES));
	peer_join(lie->proc);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- requests that change while a handler serves them ---- */

#define CHANGING_BLOCK	8u
#define CHANGING_LEN	2000u

static uint8_t *second_page;			/* protected, so that a request stops in it */
static struct copy_request *changing;		/* the request, in the victim's eager ring */
static volatile sig_atomic_t changed;

/* Change the request as the peer can, after its first blocks. */
static void change_request(int sig, siginfo_t *info, void *context)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	(void)context;
	if (changed || (uint8_t *)info->si_addr - second_page >= (ptrdiff_t)page) {
		signal(sig, SIG_DFL);
		return;
	}
	changed = true;
	changing->stride = (uint64_t)1 << 40;
	mprotect(second_page, page, PROT_READ | PROT_WRITE);
}

static void change_at_second_page(uint8_t *second)
{
	struct sigaction sa = { .sa_sigaction = change_request, .sa_flags = SA_SIGINFO };

	second_page = second;
	changed = false;
	CHECK_EQ(sigaction(SIGSEGV, &sa, NULL), 0);
	CHECK_EQ(mprotect(second, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE), 0);
}

/* Send a request without its bytes: the victim has written them into the ring. */
static void request_in_one_block(struct attacker *a, struct lie *lie)
{
	struct msg_typed t;

	CHECK(meet_victim(a));
	tell(a, &a->data, LINE_ATTACH, (struct msg_typed){ .attach = { .size = 16384 } });
	t = hear(&a->in_ctl);
	CHECK_EQ(t.type, LINE_ATTACHED);
	CHECK_EQ(t.attached.status, 0);
	stage_set(lie, 1);
	stage_wait(lie, 2);
	tell(a, &a->data, LINE_EAGER, (struct msg_typed){
		.eager = { .context = MSG_HANDLERS + lie->handler, .len = lie->len,
			   .first = lie->len, .end = MSG_PAD(lie->len) } });
	stage_wait(lie, 3);
	leave_victim(a);
}

static void check_changing(unsigned int handler, size_t bytes)
{
	struct lie *lie = lie_begin(request_in_one_block);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *from = test_ep_accept(ep);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct sci_key key;
	void *buf = NULL;

	lie->handler = handler;
	lie->len = (uint32_t)(sizeof(*changing) + bytes);
	CHECK_EQ(sci_buf_alloc(ep, 2 * page, &buf), 0);
	CHECK_EQ(sci_buf_key(ep, buf, 2 * page, &key), 0);
	PROGRESS_UNTIL(ep, atomic_load(&lie->stage) == 1, TEST_WAIT_MS);
	changing = (struct copy_request *)(void *)from->blocks_rx[RING_EAGER].base;
	*changing = (struct copy_request){
		.segment = key.segment, .offset = page - CHANGING_LEN / 2, .len = CHANGING_LEN,
		.block = CHANGING_BLOCK, .stride = CHANGING_BLOCK };
	change_at_second_page((uint8_t *)buf + page);
	stage_set(lie, 2);
	PROGRESS_UNTIL(ep, test_ep_stats(ep).handled == 1, TEST_WAIT_MS);
	CHECK(changed);
	CHECK_EQ(from->state, PEER_UP);
	stage_set(lie, 3);
	peer_join(lie->proc);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* A message of one block is passed to its handler in the ring, which the peer can write to. */
TEST(a_read_that_changes_while_it_is_served)
{
	check_changing(HANDLER_READ, 0);
}

TEST(a_write_that_changes_while_it_is_served)
{
	check_changing(HANDLER_WRITE, CHANGING_LEN);
}

/* ---- check sums ---- */

static void wrong_sum(struct attacker *a, struct lie *lie)
{
	struct msg_typed t;

	a->flags = HELLO_CRC;
	CHECK(meet_victim(a));
	stage_wait(lie, 1);
	tell(a, &a->data, LINE_ATTACH, (struct msg_typed){
		.attach = { .size = 8192 } });
	t = hear(&a->in_ctl);
	CHECK_EQ(t.type, LINE_ATTACHED);
	CHECK_EQ(t.attached.status, 0);
	tell(a, &a->data, LINE_EAGER, (struct msg_typed){
		.eager = { .context = 1, .len = 64, .first = 64, .end = 64,
			   .crc = 1 } });
	stage_wait(lie, 2);
	leave_victim(a);
}

/* The message stays in the ring for a while, because it has no receive. */
TEST(a_wrong_sum_is_counted_once)
{
	struct lie *lie = lie_begin(wrong_sum);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *from = test_ep_accept(ep);
	unsigned char buf[64];

	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_UNEXPECTED_MAX, 0), 0);
	stage_set(lie, 1);
	/* poll for longer than a message stays in the ring that could be kept */
	PROGRESS_UNTIL(ep, from->defer_polls > DEFER_POLLS / 2, TEST_WAIT_MS);
	for (unsigned int i = 0; i < 2 * DEFER_POLLS; i++)
		test_progress(ep);
	CHECK_EQ(sci_trecv(ep, from, 1, 0, 0, buf, sizeof(buf), NULL),
		 -EBADMSG);
	CHECK_EQ(test_ep_stats(ep).crc_errors, 1);
	stage_set(lie, 2);
	peer_join(lie->proc);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- handlers ---- */

static void long_chain(struct attacker *a, struct lie *lie)
{
	CHECK(meet_victim(a));
	stage_wait(lie, 1);
	tell(a, &a->data, LINE_CHAIN, (struct msg_typed){
		.chain = { .context = MSG_HANDLERS + SCI_HANDLER_USER,
			   .len = SCI_HANDLER_MAX + 1 } });
	stage_wait(lie, 2);
	leave_victim(a);
}

static void rendezvous_with_handler(struct attacker *a, struct lie *lie)
{
	CHECK(meet_victim(a));
	stage_wait(lie, 1);
	tell(a, &a->data, LINE_RTS, (struct msg_typed){
		.rts = { .context = MSG_HANDLERS + SCI_HANDLER_USER, .len = 100 } });
	stage_wait(lie, 2);
	leave_victim(a);
}

/* Begin a message and leave. */
static void chain_without_end(struct attacker *a, struct lie *lie)
{
	CHECK(meet_victim(a));
	stage_wait(lie, 1);
	tell(a, &a->data, LINE_CHAIN, (struct msg_typed){
		.chain = { .context = MSG_HANDLERS + SCI_HANDLER_USER, .len = 200 } });
	stage_wait(lie, 2);
	leave_victim(a);
}

static void never(void *arg, const struct sci_handled *m)
{
	(void)arg;
	(void)m;
	FAIL("a handler has got a message that is none");
}

static void check_handler_lie(void (*fn)(struct attacker *a, struct lie *lie),
			      bool breaks_rule)
{
	struct lie *lie = lie_begin(fn);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *from;

	CHECK_EQ(sci_handler_set(ep, SCI_HANDLER_USER, never, NULL), 0);
	from = test_ep_accept(ep);
	stage_set(lie, 1);
	if (breaks_rule)
		PROGRESS_UNTIL(ep, sci_peer_state(from) == -EPROTO, TEST_WAIT_MS);
	else
		PROGRESS_UNTIL(ep, from->chain_left, TEST_WAIT_MS);
	stage_set(lie, 2);
	PROGRESS_UNTIL(ep, sci_peer_state(from), TEST_WAIT_MS);
	peer_join(lie->proc);
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(a_message_too_long_for_a_handler)
{
	check_handler_lie(long_chain, true);
}

TEST(a_rendezvous_with_a_handler)
{
	check_handler_lie(rendezvous_with_handler, true);
}

TEST(a_message_to_a_handler_without_end)
{
	check_handler_lie(chain_without_end, false);
}
