// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * A peer that breaks the rules of libsci/msg/conn/wire.h: it connects correctly,
 * by operations of the fabric, and then writes any bytes into the victim's inbox.
 * The victim does not crash, hang or touch other memory (the address sanitizer
 * checks that), and its honest peer notices nothing.
 *
 *	test process	node 4, the victim
 *	  honest	node 8, exchanges messages with the victim all the time
 *	  attacker	node 12, many connections one after the other
 */
#include "selftests/msg/attacker.h"
#include "selftests/msg/traffic.h"

#define ROUNDS		(TRAFFIC_SLOW > 1 ? 40u : 150u)
#define LINES		40u		/* lines of one round */

struct arena {
	uint64_t seed;
	void (*attack)(void *attacker, uint64_t *state);
	_Atomic bool go;		/* the honest peer is connected */
	_Atomic bool honest_stop;
	_Atomic bool done;		/* the attacker is done */
	_Atomic unsigned int rounds;
	_Atomic unsigned int steps;	/* steps of the victim */
	struct meeting meeting;
};

/* ---- what the attacker writes ---- */

static void random_bytes(void *p, size_t len, uint64_t *state)
{
	unsigned char *c = p;

	for (size_t i = 0; i < len; i++)
		c[i] = (unsigned char)draw(state, 256);
}

/* Return a length or offset that is nearly right, or far off. */
static uint64_t odd_number(uint64_t *state)
{
	static const uint64_t odd[] = {
		0, 1, 2, 40, 41, 42, 62, 63, 64, 128, 4095, 4096, 4097, 8192,
		65535, 65536, 65537, 1u << 20, (64u << 20) + 1, INT32_MAX,
		1ull << 31, UINT32_MAX - 63, UINT32_MAX, 1ull << 32, INT64_MAX,
		UINT64_MAX - 4096, UINT64_MAX,
	};

	switch (draw(state, 4)) {
	case 0:
		return draw(state, UINT64_MAX);
	case 1:
		return draw(state, 8);
	default:
		return odd[draw(state, ARRAY_LEN(odd))];
	}
}

/* Return an error, mostly one that means "not yet", or a number that is no error. */
static int32_t odd_status_code(uint64_t *state)
{
	static const int32_t odd[] = {
		-EAGAIN, -ETIMEDOUT, -ENOMEM, -ENOENT, -EPROTO, 1, EAGAIN, -4095,
		-4096, INT32_MIN, INT32_MAX,
	};

	return draw(state, 4) ? odd[draw(state, ARRAY_LEN(odd))] :
				(int32_t)odd_number(state);
}

static uint32_t odd_segment(struct attacker *a)
{
	switch (draw(a->state, 4)) {
	case 0:
		return (uint32_t)odd_number(a->state);
	case 1:
		return a->f->ops->lseg.id(a->inbox);
	default:
		return a->f->ops->lseg.id(a->rings);
	}
}

/* Return mostly a context in which the victim looks for messages: see read_any(). */
static uint32_t odd_context(uint64_t *state)
{
	if (!draw(state, 8))
		return MSG_HANDLERS + (uint32_t)draw(state, SCI_HANDLERS);
	return draw(state, 3) ? 1 + (uint32_t)draw(state, 8) :
	       draw(state, 2) ? MSG_UNTAGGED : (uint32_t)odd_number(state);
}

static void odd_data_line(struct attacker *a, struct msg_typed *t)
{
	uint64_t *s = a->state;

	switch (t->type) {
	case LINE_TAGGED:
		t->tagged.context = odd_context(s);
		t->tagged.len = (uint8_t)odd_number(s);
		break;
	case LINE_TAGGED_IMM:
		t->tagged_imm.context = odd_context(s);
		t->tagged_imm.len = (uint8_t)odd_number(s);
		break;
	case LINE_CHAIN:
		t->chain.context = odd_context(s);
		t->chain.len = odd_number(s);
		break;
	case LINE_CHAIN_IMM:
		t->chain_imm.context = odd_context(s);
		t->chain_imm.len = odd_number(s);
		break;
	case LINE_EAGER:
		t->eager.context = odd_context(s);
		t->eager.len = (uint32_t)odd_number(s);
		t->eager.first = draw(s, 2) ? t->eager.len :
					      (uint32_t)odd_number(s);
		t->eager.end = (uint32_t)odd_number(s);
		break;
	case LINE_RTS:
		t->rts.context = odd_context(s);
		t->rts.len = odd_number(s);
		t->rts.id = (uint32_t)odd_number(s);
		t->rts.addr = draw(s, 2) ? odd_number(s) :
					   (uintptr_t)a->rings_map;
		t->rts.offset = odd_number(s);
		t->rts.segment = odd_segment(a);
		break;
	case LINE_ATTACH:
		/* the victim allocates the ring: limit its size */
		t->attach.size = (uint32_t)odd_number(s) & ((1u << 20) - 1);
		break;
	case LINE_RECALL:
	case LINE_DETACH:
		t->ring.ring = (uint8_t)draw(s, MSG_RINGS + 1);
		break;
	}
}

static void odd_ctl_line(struct attacker *a, struct msg_typed *t)
{
	uint64_t *s = a->state;

	switch (t->type) {
	case LINE_ATTACHED:
		t->attached.segment = odd_segment(a);
		t->attached.size = draw(s, 3) ? 4096 : (uint32_t)odd_number(s);
		t->attached.ring = (uint8_t)draw(s, 4);
		t->attached.status = draw(s, 4) ? 0 : odd_status_code(s);
		break;
	case LINE_CTS:
		t->cts.id = (uint32_t)odd_number(s);
		t->cts.to = (uint32_t)odd_number(s);
		t->cts.len = odd_number(s);
		t->cts.offset = odd_number(s);
		t->cts.segment = odd_segment(a);
		t->cts.mode = (uint8_t)draw(s, 4);
		break;
	case LINE_BLOCK:
		t->block.to = (uint32_t)odd_number(s);
		t->block.len = (uint32_t)odd_number(s);
		t->block.end = (uint32_t)odd_number(s);
		t->block.offset = odd_number(s);
		break;
	case LINE_FIN:
		t->fin.id = (uint32_t)odd_number(s);
		t->fin.status = odd_status_code(s);
		t->fin.receiver = (uint8_t)draw(s, 2);
		break;
	}
}

static void odd_line(struct attacker *a)
{
	static const uint8_t data_types[] = {
		LINE_TAGGED, LINE_CHAIN, LINE_EAGER, LINE_RTS, LINE_ATTACH,
		LINE_TAGGED_IMM, LINE_CHAIN_IMM, LINE_RECALL, LINE_DETACH,
	};
	static const uint8_t ctl_types[] = {
		LINE_ATTACHED, LINE_CTS, LINE_BLOCK, LINE_FIN,
	};
	bool on_data = draw(a->state, 2);
	unsigned int kind = LINE_TYPED;
	struct msg_typed t;
	struct msg_line l;

	random_bytes(&t, sizeof(t), a->state);
	t.type = on_data ? data_types[draw(a->state, ARRAY_LEN(data_types))] :
			   ctl_types[draw(a->state, ARRAY_LEN(ctl_types))];
	odd_data_line(a, &t);
	odd_ctl_line(a, &t);
	if (!draw(a->state, 16))
		t.type = (uint8_t)draw(a->state, 256);
	if (!draw(a->state, 8))
		kind = (unsigned int)draw(a->state, LINE_TYPED);
	memcpy(&l, &t, sizeof(l));
	seal_and_store(on_data ? &a->data : &a->ctl, &l, kind);
}

/* Write a status whose positions are too high or too low. */
static void odd_status(struct attacker *a)
{
	struct msg_status s;
	struct msg_line l;

	random_bytes(&l, sizeof(l), a->state);
	memcpy(&s, &l, sizeof(s));
	s.data = (uint32_t)odd_number(a->state);
	s.ctl = (uint32_t)odd_number(a->state);
	s.eager = (uint32_t)odd_number(a->state);
	s.xfer = (uint32_t)odd_number(a->state);
	memcpy(&l, &s, sizeof(s));
	store_line(&a->outbox_map->status, &l);
}

/* ---- attacks ---- */

static void write_garbage(void *attacker, uint64_t *state)
{
	struct attacker *a = attacker;
	uint64_t words[INBOX_BYTES / 8];

	random_bytes(words, sizeof(words), state);
	for (unsigned int i = 0; i < ARRAY_LEN(words); i++)
		sci_store_release((volatile uint64_t *)a->outbox_map + i,
				  words[i]);
}

static void write_lines(void *attacker, uint64_t *state)
{
	(void)state;
	odd_line(attacker);
}

static void write_lines_and_status(void *attacker, uint64_t *state)
{
	odd_line(attacker);
	if (!draw(state, 3))
		odd_status(attacker);
}

/* Overwrite lines that the victim is reading. */
static void scribble(void *attacker, uint64_t *state)
{
	struct attacker *a = attacker;
	volatile uint64_t *words = (volatile uint64_t *)a->outbox_map;

	odd_line(a);
	for (unsigned int i = 0; i < 50; i++)
		sci_store_release(&words[draw(state, INBOX_BYTES / 8)],
				  draw(state, UINT64_MAX));
}

static void odd_hellos(void *attacker, uint64_t *state)
{
	struct attacker *a = attacker;
	unsigned char junk[sizeof(struct msg_hello) * 4];
	struct msg_hello h = hello_of(a);
	size_t len = draw(state, 2) ? sizeof(h) : draw(state, sizeof(junk));

	random_bytes(junk, sizeof(junk), state);
	if (draw(state, 4)) {
		h.type = (uint16_t)draw(state, 4);
		h.inbox = odd_segment(a);
		/* no node of the honest peer: the victim could not tell the two apart */
		if (draw(state, 2))
			h.node = 12 + 4 * (uint32_t)draw(state, 100);
		if (draw(state, 2))
			h.id = (uint32_t)odd_number(state);
		if (!draw(state, 8))
			h.version++;
		h.flags = (uint32_t)odd_number(state);
		h.status = (int32_t)odd_number(state);
		memcpy(junk, &h, sizeof(h));
	}
	say(a, junk, len ? len : 1);
}

/* Wait for @n steps of the victim, in which it takes lines and answers. */
static void let_it_step(struct arena *arena, unsigned int n)
{
	n += atomic_load(&arena->steps);
	WAIT_UNTIL((int)(atomic_load(&arena->steps) - n) >= 0, TEST_WAIT_MS);
}

static void attack_once(struct attacker *a, struct arena *arena)
{
	if (meet_victim(a)) {
		let_it_step(arena, 2);
		for (unsigned int i = 0; i < LINES; i++) {
			arena->attack(a, a->state);
			if (!draw(a->state, 4))
				ring(a);
			if (!draw(a->state, 8))
				let_it_step(arena, 1);
		}
		let_it_step(arena, 2);
		leave_victim(a);
	} else {
		a->f->ops->unmap(a->f, a->inbox_map, INBOX_BYTES);
		a->f->ops->lseg.destroy(a->inbox);
		a->inbox = NULL;
	}
	atomic_fetch_add(&arena->rounds, 1);
}

static void attacker(struct peer *self, void *arg)
{
	static struct attacker a;
	struct arena *arena = arg;
	uint64_t state = arena->seed;

	(void)self;
	WAIT_UNTIL(atomic_load(&arena->go), TEST_WAIT_MS);
	a.state = &state;
	attacker_open(&a);
	for (unsigned int i = 0; i < ROUNDS; i++)
		attack_once(&a, arena);
	attacker_close(&a);
	atomic_store(&arena->done, true);
}

/* ---- the honest peer ---- */

/* Read all bytes of messages to handlers. */
static void take_bytes(void *arg, const struct sci_handled *m)
{
	const volatile unsigned char *data = m->data;

	(void)arg;
	CHECK(m->len <= SCI_HANDLER_MAX);
	for (size_t i = 0; i < m->len; i++)
		(void)data[i];
}

static void handle_all(struct sci_ep *ep)
{
	for (unsigned int id = SCI_HANDLER_USER; id < SCI_HANDLERS; id++)
		CHECK_EQ(sci_handler_set(ep, id, take_bytes, NULL), 0);
}

static void honest_flows(struct traffic *t, struct sci_peer *peer, bool first)
{
	for (unsigned int k = 0; k < 4; k++)
		traffic_flow(t, (struct flow) {
			.peer = peer, .seed = 77, .stream = k / 2,
			.source = k & 1 ? 8 : 4, .dest = k & 1 ? 4 : 8,
			.sends = (k & 1) != first, .ways = WAY_ALL,
			.limit = 20,
		});
}

/* Run a batch of messages. Return false on both sides after the last batch. */
static bool honest_batch(struct traffic *t, struct arena *arena, bool first)
{
	bool more;

	traffic_run(t);
	if (first)
		atomic_store(&arena->honest_stop, atomic_load(&arena->done));
	meet(t->ep, &arena->meeting, 2);
	more = !atomic_load(&arena->honest_stop);
	meet(t->ep, &arena->meeting, 2);
	for (unsigned int i = 0; more && i < t->n; i++)
		t->flow[i].limit += 20;
	return more;
}

static void honest(struct peer *self, void *arg)
{
	static struct traffic t;

	(void)self;
	t.ep = test_ep_open(TEST_ID, 0);
	handle_all(t.ep);
	traffic_params(t.ep, WAY_ALL);
	honest_flows(&t, test_ep_connect(t.ep, 4, TEST_ID), false);
	while (honest_batch(&t, arg, false))
		;
	traffic_free(&t);
	CHECK_EQ(sci_ep_close(t.ep), 0);
}

/* ---- the victim ---- */

#define GUESTS	8u
#define ORDERS	6u
#define ANSWERS	6u

/* A connection of the attacker, with requests that it may interfere with. */
struct guest {
	struct sci_peer *peer;
	struct sci_req *req[ORDERS + ANSWERS];
	unsigned char *buf;
};

#define GUEST_BYTES	100000u

static void guest_orders(struct sci_ep *ep, struct guest *g, void *exported)
{
	unsigned char *b = g->buf;
	struct iovec iov = { b, 30 };
	int ret[ORDERS] = {
		sci_irecv(ep, g->peer, b, GUEST_BYTES / 2, &g->req[0]),
		sci_irecv(ep, g->peer, exported, 65536, &g->req[1]),
		sci_isend(g->peer, b + GUEST_BYTES / 2, 50000, &g->req[2]),
		sci_isend(g->peer, b + GUEST_BYTES / 2, 3000, &g->req[3]),
		sci_isendv(g->peer, &iov, 1, SCI_SEND_SYNC, &g->req[4]),
		sci_isend(g->peer, exported, 65536, &g->req[5]),
	};

	for (unsigned int i = 0; i < ORDERS; i++)
		if (ret[i])
			g->req[i] = NULL;
}

static void guest_leave(struct guest *g)
{
	if (!g->peer)
		return;
	CHECK_EQ(sci_disconnect(g->peer), 0);
	/* the attacker may choose the error, but every request must end */
	for (unsigned int i = 0; i < ORDERS + ANSWERS; i++)
		if (g->req[i])
			CHECK(sci_wait(g->req[i], TEST_WAIT_MS, NULL) !=
			      -ETIMEDOUT);
	free(g->buf);
	*g = (struct guest){ .peer = NULL };
}

/* Receive @msg, but do not wait: its bytes may never come. */
static void guest_answer(struct guest *guests, struct sci_msg *msg,
			 const struct sci_status *st)
{
	for (unsigned int i = 0; i < GUESTS; i++) {
		struct guest *g = &guests[i];
		struct iovec iov = { g->buf, GUEST_BYTES / 2 };

		for (unsigned int k = ORDERS; k < ORDERS + ANSWERS; k++) {
			if (g->peer != st->peer || g->req[k])
				continue;
			if (!sci_msg_recv(msg, &iov, 1, &g->req[k]))
				return;
			g->req[k] = NULL;
			break;
		}
	}
	sci_msg_free(msg);
}

/* Take messages from any source. The honest peer uses only context 0. */
static void read_any(struct sci_ep *ep, struct guest *guests)
{
	struct sci_status st;
	struct sci_msg *msg;

	for (uint32_t i = 1; i <= 8; i++)
		if (!sci_tmatch(ep, NULL, i, 0, UINT64_MAX, 0, &msg, &st))
			guest_answer(guests, msg, &st);
}

static void victim_step(struct traffic *t, struct guest *guests,
			void *exported, unsigned int *next)
{
	struct guest *g = &guests[*next % GUESTS];
	struct sci_peer *peer;

	for (int i = 0; i < 8; i++)
		traffic_step(t, 0);
	read_any(t->ep, guests);
	if (sci_accept(t->ep, 0, &peer))
		return;
	guest_leave(g);
	g->peer = peer;
	g->buf = malloc(GUEST_BYTES);
	guest_orders(t->ep, g, exported);
	(*next)++;
}

static void run_attack(void (*attack)(void *attacker, uint64_t *state))
{
	static struct traffic t;
	static struct guest guests[GUESTS];
	struct arena *arena = test_shared(sizeof(*arena));
	unsigned int next = 0;
	struct peer *p, *q;
	void *exported;

	arena->attack = attack;
	arena->seed = traffic_seed();
	test_note("SCI_TEST_SEED=%#llx", (unsigned long long)arena->seed);
	p = peer_spawn(8, honest, arena);
	q = peer_spawn(12, attacker, arena);
	t.ep = test_ep_open(TEST_ID, 0);
	handle_all(t.ep);
	traffic_params(t.ep, WAY_ALL);
	CHECK_EQ(sci_ep_set(t.ep, SCI_PARAM_UNEXPECTED_MAX, 1u << 20), 0);
	CHECK_EQ(sci_buf_alloc(t.ep, 65536, &exported), 0);
	honest_flows(&t, test_ep_accept(t.ep), true);
	atomic_store(&arena->go, true);
	do {
		for (unsigned int i = 0; i < 100; i++) {
			victim_step(&t, guests, exported, &next);
			atomic_fetch_add(&arena->steps, 1);
		}
	} while (honest_batch(&t, arena, true));
	for (unsigned int i = 0; i < GUESTS; i++)
		guest_leave(&guests[i]);
	test_note("%u rounds, %u guests, %llu honest messages",
		  atomic_load(&arena->rounds), next,
		  (unsigned long long)traffic_done(&t));
	CHECK(next > 0);
	traffic_free(&t);
	CHECK_EQ(sci_buf_free(t.ep, exported), 0);
	CHECK_EQ(sci_ep_close(t.ep), 0);
	peer_join(p);
	peer_join(q);
}

TEST(garbage_everywhere)
{
	run_attack(write_garbage);
}

TEST(well_formed_lines_that_lie)
{
	run_attack(write_lines);
}

TEST(lines_and_status_that_lie)
{
	run_attack(write_lines_and_status);
}

TEST(scribbling_over_lines)
{
	run_attack(scribble);
}

TEST(connect_messages_that_lie)
{
	run_attack(odd_hellos);
}
