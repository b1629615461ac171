// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Progress of all endpoints of a domain, and threads that wait for one object. */
#include <sched.h>
#include <stdatomic.h>

#include "selftests/ofi/link.h"

#define TAG	7u
#define KEY	0x1234u
#define CAPS	(FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_SOURCE)

#define ROUNDS	(TEST_TSAN || TEST_ASAN ? 100u : 1000u)

/* ---- endpoints beside the first ---- */

struct second {
	struct fid_ep *ep;
	struct fid_cq *cq;
};

/* Open endpoint 2 of the node, in the same domain, with a queue for receives. */
static struct second second_open(struct link *l)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct second s;

	((struct sci_addr *)l->info->src_addr)->id = 2;
	CHECK_EQ(fi_endpoint(l->domain, l->info, &s.ep, NULL), 0);
	CHECK_EQ(fi_cq_open(l->domain, &attr, &s.cq, NULL), 0);
	CHECK_EQ(fi_ep_bind(s.ep, &l->av->fid, 0), 0);
	CHECK_EQ(fi_ep_bind(s.ep, &s.cq->fid, FI_RECV), 0);
	CHECK_EQ(fi_enable(s.ep), 0);
	return s;
}

static void second_close(struct second *s)
{
	CHECK_EQ(fi_close(&s->ep->fid), 0);
	CHECK_EQ(fi_close(&s->cq->fid), 0);
}

static void both_are_ready(struct peer *p)
{
	peer_send(p, "ready");
	peer_expect(p, "ready");
}

/* Write to the other side's second endpoint, and call nothing but a counter's wait. */
static void write_and_wait(struct peer *proc, unsigned int node,
			   const struct link_config *c)
{
	struct link l = link_open(proc, node, c);
	struct second s = second_open(&l);
	uint64_t here = 0, there = 4711;
	fi_addr_t to = link_insert(&l, node, 2);
	struct fid_mr *mr;

	CHECK_EQ(fi_mr_reg(l.domain, &here, 8, FI_REMOTE_WRITE, 0, KEY, 0, &mr,
			   NULL), 0);
	both_are_ready(proc);
	CHECK_EQ(fi_write(l.ep, &there, 8, NULL, to, 0, KEY, NULL), 0);
	CHECK_EQ(fi_cntr_wait(l.asked, 1, TEST_WAIT_MS), 0);
	link_meet(&l);
	CHECK_EQ(here, 4711);
	CHECK_EQ(fi_close(&mr->fid), 0);
	second_close(&s);
	link_close(&l);
}

static void writes_back(struct peer *self, void *arg)
{
	write_and_wait(self, 4, arg);
}

static void check_waits(enum fi_wait_obj wait)
{
	struct link_config c = { .caps = CAPS, .wait = wait };
	struct peer *p = peer_spawn(8, writes_back, &c);

	write_and_wait(p, 8, &c);
	peer_join(p);
}

TEST(a_wait_that_polls_serves_all_endpoints)
{
	check_waits(FI_WAIT_NONE);
}

TEST(a_wait_that_sleeps_serves_all_endpoints)
{
	check_waits(FI_WAIT_UNSPEC);
}

/* Send a message that needs both sides; the receiver reads another endpoint's queue. */
static void sends_a_long_one(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, arg);
	size_t len = (size_t)1 << 20;
	char *buf = calloc(1, len);
	fi_addr_t to = link_insert(&l, 4, 2);

	CHECK(buf);
	both_are_ready(self);
	CHECK_EQ(fi_tsend(l.ep, buf, len, NULL, to, TAG, NULL), 0);
	CHECK_EQ(fi_cntr_wait(l.sent, 1, TEST_WAIT_MS), 0);
	link_meet(&l);
	link_close(&l);
	free(buf);
}

TEST(a_queue_that_is_read_serves_all_endpoints)
{
	struct link_config c = { .caps = CAPS };
	struct peer *p = peer_spawn(8, sends_a_long_one, &c);
	struct link l = link_open(p, 8, &c);
	struct second s = second_open(&l);
	struct fi_cq_tagged_entry e;
	size_t len = (size_t)1 << 20;
	char *buf = malloc(len);

	CHECK(buf);
	CHECK_EQ(fi_trecv(s.ep, buf, len, NULL, FI_ADDR_UNSPEC, TAG, 0, buf), 0);
	both_are_ready(p);
	link_meet(&l);
	CHECK_EQ(fi_cq_read(s.cq, &e, 1), 1);
	CHECK_EQ(e.len, len);
	second_close(&s);
	link_close(&l);
	free(buf);
	peer_join(p);
}

/* ---- FI_PROGRESS_AUTO ---- */

static const struct link_config automatic = {
	.caps = CAPS, .progress = FI_PROGRESS_AUTO,
};

TEST(progress_is_manual_unless_asked_for)
{
	static const enum fi_progress asked[] = {
		FI_PROGRESS_UNSPEC, FI_PROGRESS_MANUAL, FI_PROGRESS_AUTO,
	};

	link_environment();
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		struct link_config c = { .progress = asked[i] };
		struct fi_info *hints = link_hints(&c), *info;

		CHECK_EQ(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints,
				    &info), 0);
		CHECK_EQ(info->domain_attr->data_progress,
			 asked[i] == FI_PROGRESS_AUTO ? FI_PROGRESS_AUTO :
							FI_PROGRESS_MANUAL);
		CHECK_EQ(info->domain_attr->control_progress,
			 info->domain_attr->data_progress);
		fi_freeinfo(info);
		fi_freeinfo(hints);
	}
}

/* Make no call of the provider while the peer writes and reads. */
static void is_busy(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, arg);
	uint64_t word = 1;
	struct fid_mr *mr;

	CHECK_EQ(fi_mr_reg(l.domain, &word, 8, FI_REMOTE_WRITE | FI_REMOTE_READ, 0,
			   KEY, 0, &mr, NULL), 0);
	for (unsigned int i = 0; i < 3; i++) {
		peer_send(self, "busy");
		peer_expect(self, "done");
		/* this calls the provider again */
		link_meet(&l);
	}
	CHECK_EQ(fi_close(&mr->fid), 0);
	link_close(&l);
}

TEST(a_program_that_never_looks_is_served)
{
	struct peer *p = peer_spawn(8, is_busy, (void *)&automatic);
	struct link_config c = { .caps = CAPS };
	struct link l = link_open(p, 8, &c);
	uint64_t n = 0;

	for (unsigned int i = 0; i < 3; i++) {
		peer_expect(p, "busy");
		for (unsigned int k = 0; k < 20; k++) {
			uint64_t word = 100 * i + k, got = 0;

			CHECK_EQ(fi_write(l.ep, &word, 8, NULL, l.to, 0, KEY, NULL),
				 0);
			CHECK_EQ(fi_cntr_wait(l.asked, ++n, TEST_WAIT_MS), 0);
			CHECK_EQ(fi_read(l.ep, &got, 8, NULL, l.to, 0, KEY, NULL),
				 0);
			CHECK_EQ(fi_cntr_wait(l.asked, ++n, TEST_WAIT_MS), 0);
			CHECK_EQ(got, word);
		}
		peer_send(p, "done");
		link_meet(&l);
	}
	link_close(&l);
	peer_join(p);
}

/* The short message connects the two sides. The long one completes after its receive. */
static void sends_early(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, arg);
	size_t len = (size_t)1 << 20;
	char *buf = calloc(1, len);

	CHECK(buf);
	both_are_ready(self);
	CHECK_EQ(fi_tsend(l.ep, buf, 8, NULL, l.to, TAG + 1, NULL), 0);
	CHECK_EQ(fi_cntr_wait(l.sent, 1, TEST_WAIT_MS), 0);
	CHECK_EQ(fi_tsend(l.ep, buf, len, NULL, l.to, TAG, NULL), 0);
	peer_send(self, "sent");
	CHECK_EQ(fi_cntr_wait(l.sent, 2, TEST_WAIT_MS), 0);
	peer_send(self, "done");
	link_meet(&l);
	link_close(&l);
	free(buf);
}

/* The thread has taken the message as unexpected and sleeps. The program only posts a receive. */
static void check_late_receive(bool directed)
{
	struct peer *p = peer_spawn(8, sends_early, (void *)&automatic);
	struct link l = link_open(p, 8, &automatic);
	size_t len = (size_t)1 << 20;
	char *buf = malloc(len), word[8];

	CHECK(buf);
	both_are_ready(p);
	peer_expect(p, "sent");
	WAIT_UNTIL(others_asleep(), TEST_WAIT_MS);
	CHECK_EQ(fi_trecv(l.ep, buf, len, NULL, directed ? l.to : FI_ADDR_UNSPEC,
			  TAG, 0, NULL), 0);
	peer_expect(p, "done");
	CHECK_EQ(fi_trecv(l.ep, word, 8, NULL, l.to, TAG + 1, 0, NULL), 0);
	link_meet(&l);
	link_close(&l);
	free(buf);
	peer_join(p);
}

TEST(a_receive_after_its_message_needs_no_further_call)
{
	check_late_receive(false);
}

TEST(a_directed_receive_after_its_message_needs_no_further_call)
{
	check_late_receive(true);
}

/* The provider's thread and the program share endpoints, queues and messages. */
static void echoes(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, arg);
	uint32_t word;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(fi_trecv(l.ep, &word, 4, NULL, l.to, TAG, 0, NULL), 0);
		link_next(&l, NULL);
		LINK_SEND(&l, fi_tinject(l.ep, &word, 4, l.to, TAG));
	}
	link_meet(&l);
	link_close(&l);
}

static void check_echoes(enum fi_threading threading, enum fi_wait_obj wait)
{
	struct link_config c = automatic;
	struct peer *p;
	struct link l;

	c.threading = threading;
	c.wait = wait;
	p = peer_spawn(8, echoes, &c);
	l = link_open(p, 8, &c);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct fi_cq_tagged_entry e;
		uint32_t word = ~i;

		CHECK_EQ(fi_trecv(l.ep, &word, 4, NULL, l.to, TAG, 0, &l), 0);
		LINK_SEND(&l, fi_tinject(l.ep, &i, 4, l.to, TAG));
		if (wait == FI_WAIT_NONE)
			link_next(&l, NULL);
		else
			CHECK_EQ(fi_cq_sread(l.cq, &e, 1, NULL, TEST_WAIT_MS), 1);
		CHECK_EQ(word, i);
	}
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

TEST(a_program_that_polls_shares_with_the_thread)
{
	check_echoes(FI_THREAD_DOMAIN, FI_WAIT_NONE);
}

TEST(a_program_that_sleeps_shares_with_the_thread)
{
	check_echoes(FI_THREAD_SAFE, FI_WAIT_UNSPEC);
}

/* ---- objects that are bound late ---- */

/* rounds that are more than enough for the two endpoints to connect */
#define LOOKS	2000u

/* Write to the other side's second endpoint before that side enables it. */
static void writes_early(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, arg);
	fi_addr_t to = link_insert(&l, 4, 2);
	uint64_t word = 4711;

	both_are_ready(self);
	CHECK_EQ(fi_write(l.ep, &word, 8, NULL, to, 0, KEY, NULL), 0);
	for (unsigned int i = 0; i < LOOKS; i++) {
		CHECK_EQ(fi_cntr_read(l.asked), 0);
		both_are_ready(self);
	}
	CHECK_EQ(fi_cntr_wait(l.asked, 1, TEST_WAIT_MS), 0);
	link_meet(&l);
	link_close(&l);
}

/* A queue that is read makes no progress on an endpoint that cannot serve requests yet. */
TEST(a_request_waits_until_the_endpoint_is_enabled)
{
	struct link_config c = { .caps = CAPS };
	struct peer *p = peer_spawn(8, writes_early, &c);
	struct link l = link_open(p, 8, &c);
	struct fi_cq_tagged_entry e;
	uint64_t word = 0;
	struct fid_ep *ep;
	struct fid_mr *mr;

	CHECK_EQ(fi_mr_reg(l.domain, &word, 8, FI_REMOTE_WRITE, 0, KEY, 0, &mr,
			   NULL), 0);
	((struct sci_addr *)l.info->src_addr)->id = 2;
	CHECK_EQ(fi_endpoint(l.domain, l.info, &ep, NULL), 0);
	CHECK_EQ(fi_ep_bind(ep, &l.av->fid, 0), 0);
	CHECK_EQ(fi_ep_bind(ep, &l.cq->fid, FI_RECV), 0);
	both_are_ready(p);
	for (unsigned int i = 0; i < LOOKS; i++) {
		CHECK_EQ(fi_cq_read(l.cq, &e, 1), -FI_EAGAIN);
		both_are_ready(p);
	}
	CHECK_EQ(fi_enable(ep), 0);
	link_meet(&l);
	CHECK_EQ(word, 4711);
	CHECK_EQ(fi_close(&mr->fid), 0);
	CHECK_EQ(fi_close(&ep->fid), 0);
	link_close(&l);
	peer_join(p);
}

TEST(counters_and_queues_are_bound_to_an_enabled_endpoint)
{
	struct link l = link_open(NULL, 4, NULL);
	struct second s = second_open(&l);
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fi_cq_tagged_entry e;
	struct fid_cntr *sent;
	char word[8] = "";

	CHECK_EQ(fi_cntr_open(l.domain, &attr, &sent, NULL), 0);
	CHECK_EQ(fi_ep_bind(s.ep, &sent->fid, FI_SEND), 0);
	CHECK_EQ(fi_ep_bind(s.ep, &l.cq->fid, FI_SEND), 0);
	/* each object is bound once, and the address vector cannot be replaced */
	CHECK_EQ(fi_ep_bind(s.ep, &sent->fid, FI_SEND), -FI_EINVAL);
	CHECK_EQ(fi_ep_bind(s.ep, &l.cq->fid, FI_RECV), -FI_EINVAL);
	CHECK_EQ(fi_ep_bind(s.ep, &l.av->fid, 0), -FI_EOPBADSTATE);
	CHECK_EQ(fi_trecv(l.ep, word, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, word), 0);
	CHECK_EQ(fi_tsend(s.ep, word, 8, NULL, l.to, TAG, &e), 0);
	for (int i = 0; i < 2; i++) {
		e = link_next(&l, NULL);
		CHECK(e.op_context == (e.flags & FI_SEND ? (void *)&e : word));
	}
	CHECK_EQ(fi_cntr_read(sent), 1);
	CHECK_EQ(fi_close(&sent->fid), -FI_EBUSY);
	second_close(&s);
	CHECK_EQ(fi_close(&sent->fid), 0);
	link_close(&l);
}

/* ---- threads that wait for the same object ---- */

struct waiter {
	struct link *l;
	bool reads;			/* reads entries of a queue, else waits for a count */
	unsigned int offset;
	_Atomic unsigned int done;
	_Atomic unsigned int go;
	pthread_t thread;
};

static void *waits(void *arg)
{
	struct waiter *w = arg;
	struct fi_cq_tagged_entry e;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		while (atomic_load(&w->go) == i)
			test_pause();
		if (w->reads)
			CHECK_EQ(fi_cq_sread(w->l->tx_cq, &e, 1, NULL, TEST_WAIT_MS),
				 1);
		else
			CHECK_EQ(fi_cntr_wait(w->l->sent, 2 * i + w->offset,
					      TEST_WAIT_MS), 0);
		atomic_store(&w->done, i + 1);
	}
	return NULL;
}

/* Two threads wait for two completions; each thread takes one. */
static void check_two_threads(bool reads)
{
	const struct link_config c = { .wait = FI_WAIT_UNSPEC, .two = true };
	struct link l = link_open(NULL, 4, &c);
	struct waiter w[2];
	char word[8] = "";

	for (unsigned int k = 0; k < 2; k++) {
		w[k] = (struct waiter){ .l = &l, .reads = reads, .offset = k + 1 };
		CHECK_EQ(pthread_create(&w[k].thread, NULL, waits, &w[k]), 0);
	}
	for (unsigned int i = 0; i < ROUNDS; i++) {
		for (unsigned int k = 0; k < 2; k++)
			atomic_store(&w[k].go, i + 1);
		if (i % 2)
			WAIT_UNTIL(others_asleep(), TEST_WAIT_MS);
		for (unsigned int k = 0; k < 2; k++) {
			LINK_SEND(&l, fi_tsend(l.ep, word, 8, NULL, l.to, TAG, word));
			if (!reads)
				WAIT_UNTIL(atomic_load(&w[k].done) == i + 1,
					   TEST_WAIT_MS);
		}
		for (unsigned int k = 0; k < 2; k++)
			WAIT_UNTIL(atomic_load(&w[k].done) == i + 1, TEST_WAIT_MS);
		if (i % 16 == 15)
			for (unsigned int k = 0; k < 32; k++)
				CHECK_EQ(fi_trecv(l.ep, word, 8, NULL,
						  FI_ADDR_UNSPEC, TAG, 0, NULL), 0);
		if (i % 16 == 15)
			WAIT_UNTIL(fi_cntr_read(l.received) == 2 * (i + 1),
				   TEST_WAIT_MS);
	}
	for (unsigned int k = 0; k < 2; k++)
		CHECK_EQ(pthread_join(w[k].thread, NULL), 0);
	link_close(&l);
}

TEST(two_threads_that_read_a_queue_both_get_an_entry)
{
	check_two_threads(true);
}

TEST(two_threads_that_wait_for_a_counter_both_wake_up)
{
	check_two_threads(false);
}

#define COUNTS	(TEST_TSAN || TEST_ASAN ? 200u : 1000u)

static void wait_done(struct waiter *w, unsigned int n)
{
	uint64_t until = test_now_ms() + (uint64_t)TEST_WAIT_MS;

	while (atomic_load(&w->done) != n) {
		CHECK(test_now_ms() < until);
		sched_yield();
	}
}

static void *counts(void *arg)
{
	struct waiter *w = arg;

	for (unsigned int i = 0; i < COUNTS; i++) {
		while (atomic_load(&w->go) == i)
			sched_yield();
		CHECK_EQ(fi_cntr_wait(w->l->sent, 2 * i + w->offset, -1), 0);
		atomic_store(&w->done, i + 1);
	}
	return NULL;
}

/* The first thread's count is reached while the second thread falls asleep. */
TEST(a_thread_that_falls_asleep_leaves_the_wake_up_of_another)
{
	const struct link_config c = { .wait = FI_WAIT_UNSPEC };
	struct link l = link_open(NULL, 4, &c);
	struct waiter w[2];

	for (unsigned int k = 0; k < 2; k++) {
		w[k] = (struct waiter){ .l = &l, .offset = k + 1 };
		CHECK_EQ(pthread_create(&w[k].thread, NULL, counts, &w[k]), 0);
	}
	for (unsigned int i = 0; i < COUNTS; i++) {
		for (unsigned int k = 0; k < 2; k++)
			atomic_store(&w[k].go, i + 1);
		for (unsigned int k = 0; k < i % 16; k++)
			sched_yield();
		for (unsigned int k = 0; k < 2; k++) {
			CHECK_EQ(fi_cntr_add(l.sent, 1), 0);
			wait_done(&w[k], i + 1);
		}
	}
	for (unsigned int k = 0; k < 2; k++)
		CHECK_EQ(pthread_join(w[k].thread, NULL), 0);
	link_close(&l);
}
