// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Two processes that import segments of each other, and share one connection. Each test runs with
 * this process as the lower one, as the upper one, and on one node with the other process.
 */
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "libsci/fabric/core/fabric.h"
#include "selftests/harness.h"
#include "selftests/random.h"

#define SIZE	4096u

struct seen {
	_Atomic unsigned int came;
	_Atomic unsigned int asked;	/* requests to disconnect */
	_Atomic unsigned int left, lost;
	_Atomic unsigned int rang;
};

struct end {
	struct sci_fabric *f;
	struct sci_lintr *bell;
	struct sci_lseg *s;
	struct sci_rseg *r;
	void *mine, *theirs;
	struct seen importer, import;
	unsigned int fds;
};

struct place {
	unsigned int node, peer_node;
	uint32_t id, peer_id;
};

static const struct place places[] = { { 4, 8, 2, 1 }, { 8, 4, 1, 2 }, { 4, 4, 1, 2 } };

static void import_event(void *owner, const struct sci_event *ev)
{
	struct seen *seen = owner;

	if (ev->type == SCI_EVENT_LOST)
		atomic_fetch_add(&seen->lost, 1);
	else if (ev->type == SCI_EVENT_DISCONNECT)
		atomic_fetch_add(ev->status ? &seen->left : &seen->asked, 1);
}

static void importer_event(void *owner, const struct sci_event *ev)
{
	struct seen *seen = owner;

	if (ev->type == SCI_EVENT_LOST)
		atomic_fetch_add(&seen->lost, 1);
	else if (ev->type == SCI_EVENT_RANG)
		atomic_fetch_add(&seen->rang, 1);
	else
		atomic_fetch_add(ev->type == SCI_EVENT_CONNECT ? &seen->came : &seen->left, 1);
}

static void end_open(struct end *e, unsigned int node, uint32_t id)
{
	struct sci_lintr_param bell = { .number = id, .flags = SCI_INTR_FIXED };
	struct sci_lseg_param param = {
		.id = id, .size = SIZE, .flags = SCI_LSEG_ONCE, .event = importer_event,
		.owner = &e->importer,
	};
	const struct sci_fabric_place at = { .node = node };

	CHECK_EQ(sci_fabric_open_at(&e->f, &at), 0);
	if (!e->f->ops->pair) {
		sci_fabric_close(e->f);
		SKIP("the fabric has no pairs");
	}
	CHECK_EQ(e->f->ops->lintr.create(e->f, &bell, &e->bell), 0);
	param.bell = e->bell;
	CHECK_EQ(e->f->ops->lseg.create(e->f, &param, &e->s), 0);
	CHECK_EQ(e->f->ops->lseg.map(e->s, 0, SIZE, 0, &e->mine), 0);
	CHECK_EQ(e->f->ops->lseg.export(e->s, 0), 0);
}

static void end_import(struct end *e, unsigned int node, uint32_t id)
{
	const struct sci_rseg_param param = {
		.node = node, .id = id, .timeout = 5000, .event = import_event,
		.owner = &e->import,
	};

	WAIT_UNTIL(!e->f->ops->rseg.connect(e->f, &param, &e->r), TEST_WAIT_MS);
	CHECK_EQ(e->f->ops->rseg.map(e->r, 0, SIZE, 0, &e->theirs), 0);
}

/* Count descriptors after the segment has given up its name. */
static void end_count(struct end *e)
{
	WAIT_UNTIL(atomic_load(&e->importer.came), TEST_WAIT_MS);
	e->fds = count_fds();
}

static void end_leave(struct end *e)
{
	if (!e->r)
		return;
	e->f->ops->unmap(e->f, e->theirs, SIZE);
	e->f->ops->rseg.disconnect(e->r);
	e->r = NULL;
}

static void end_destroy(struct end *e)
{
	if (!e->s)
		return;
	e->f->ops->unmap(e->f, e->mine, SIZE);
	e->f->ops->lseg.destroy(e->s);
	e->s = NULL;
}

static void end_close(struct end *e)
{
	end_leave(e);
	end_destroy(e);
	e->f->ops->lintr.destroy(e->bell);
	sci_fabric_close(e->f);
}

static int take(struct end *e, uint32_t ms)
{
	size_t len = 0;

	return e->f->ops->lintr.wait(e->bell, NULL, &len, ms);
}

/* ---- the other process ---- */

enum order { PAIR, TRY_PAIR, RING, FLOOD, TAKE, LEAVE, DESTROY, NOTIFY, CUT, SETTLE, FORK, CLOSE };

static void order_run(struct end *e, enum order order)
{
	switch (order) {
	case PAIR:
		CHECK_EQ(sci_pair(e->f, e->s, e->r), 0);
		break;
	case TRY_PAIR:
		sci_pair(e->f, e->s, e->r);
		break;
	case RING:
		CHECK_EQ(e->f->ops->ring(e->r), 0);
		break;
	case FLOOD:
		for (int k = 0; k < 2000; k++)
			CHECK_EQ(e->f->ops->ring(e->r), 0);
		break;
	case TAKE:
		CHECK_EQ(take(e, TEST_WAIT_MS), 0);
		break;
	case LEAVE:
		end_leave(e);
		break;
	case DESTROY:
		end_destroy(e);
		break;
	case NOTIFY:
		CHECK_EQ(e->f->ops->lseg.unexport(e->s, SCI_UNEXPORT_NOTIFY), 0);
		break;
	case CUT:
		CHECK_EQ(e->f->ops->lseg.unexport(e->s, SCI_UNEXPORT_FORCE), 0);
		break;
	case SETTLE:
		WAIT_UNTIL(count_fds() == e->fds - 1, TEST_WAIT_MS);
		break;
	case FORK:
		if (!fork()) {
			pause();
			_exit(0);
		}
		break;
	case CLOSE:
		end_close(e);
		break;
	}
}

static void other(struct peer *self, void *arg)
{
	const struct place *at = arg;
	struct end e = { 0 };
	enum order order;

	end_open(&e, at->peer_node, at->peer_id);
	peer_expect(self, "go");
	end_import(&e, at->node, at->id);
	peer_send(self, "imported");
	peer_expect(self, "imported");
	end_count(&e);
	do {
		PEER_GET(self, order);
		order_run(&e, order);
		peer_send(self, "done");
	} while (order != CLOSE);
}

static void command(struct peer *p, enum order order)
{
	PEER_PUT(p, order);
	peer_expect(p, "done");
}

static struct peer *start(struct end *e, const struct place *at)
{
	struct peer *p = peer_spawn(at->peer_node, other, (void *)(uintptr_t)at);

	*e = (struct end){ 0 };
	end_open(e, at->node, at->id);
	peer_send(p, "go");
	end_import(e, at->peer_node, at->peer_id);
	peer_expect(p, "imported");
	peer_send(p, "imported");
	end_count(e);
	return p;
}

static struct peer *start_pair(struct end *e, const struct place *at)
{
	struct peer *p = start(e, at);

	CHECK_EQ(sci_pair(e->f, e->s, e->r), 0);
	command(p, PAIR);
	order_run(e, SETTLE);
	command(p, SETTLE);
	return p;
}

static void stop(struct end *e, struct peer *p)
{
	command(p, CLOSE);
	peer_join(p);
	end_close(e);
}

#define EACH_PLACE(at)	(const struct place *at = places; at < places + ARRAY_LEN(places); at++)

static void check_ended(struct end *e, unsigned int lost)
{
	WAIT_UNTIL(atomic_load(&e->import.lost) + atomic_load(&e->import.left) == 1,
		   TEST_WAIT_MS);
	WAIT_UNTIL(atomic_load(&e->importer.lost) + atomic_load(&e->importer.left) == 1,
		   TEST_WAIT_MS);
	CHECK_EQ(atomic_load(&e->import.lost), lost);
	CHECK_EQ(atomic_load(&e->importer.lost), lost);
	CHECK(atomic_load(&e->f->ops->rseg.status(e->r)->gone));
	CHECK_EQ(e->f->ops->lseg.importers(e->s), 0);
	CHECK_EQ(e->f->ops->ring(e->r), -ENOTCONN);
}

/* ---- tests ---- */

TEST(a_pair_has_one_connection)
{
	for EACH_PLACE(at) {
		struct end e;
		struct peer *p = start_pair(&e, at);

		for (int k = 0; k < 100; k++) {
			CHECK_EQ(take(&e, 0), -ETIMEDOUT);
			order_run(&e, RING);
			command(p, TAKE);
			command(p, RING);
			CHECK_EQ(take(&e, TEST_WAIT_MS), 0);
		}
		CHECK_EQ(e.f->ops->lseg.importers(e.s), 1);
		CHECK_EQ(sci_pair(e.f, e.s, e.r), -EINVAL);
		stop(&e, p);
	}
}

TEST(triggers_before_the_merge_are_kept)
{
	for EACH_PLACE(at) {
		struct end e;
		struct peer *p = start(&e, at);

		command(p, RING);
		order_run(&e, RING);
		command(p, PAIR);
		order_run(&e, PAIR);
		order_run(&e, SETTLE);
		command(p, TAKE);
		CHECK_EQ(take(&e, TEST_WAIT_MS), 0);
		stop(&e, p);
	}
}

TEST(a_death_is_noticed)
{
	for EACH_PLACE(at) {
		struct end e;
		struct peer *p = start_pair(&e, at);

		command(p, RING);
		peer_kill(p, SIGKILL);
		check_ended(&e, 1);
		CHECK_EQ(take(&e, 0), 0);
		end_close(&e);
	}
}

TEST(a_death_is_noticed_while_a_child_lives)
{
	for EACH_PLACE(at) {
		struct end e;
		struct peer *p = start_pair(&e, at);

		command(p, FORK);
		peer_kill(p, SIGKILL);
		check_ended(&e, 1);
		end_close(&e);
	}
}

TEST(the_end_of_an_import_ends_both)
{
	for EACH_PLACE(at) {
		struct end e;
		struct peer *p = start_pair(&e, at);

		command(p, LEAVE);
		check_ended(&e, 0);
		stop(&e, p);
	}
}

TEST(the_end_of_a_segment_ends_both)
{
	for EACH_PLACE(at) {
		struct end e;
		struct peer *p = start_pair(&e, at);

		command(p, DESTROY);
		check_ended(&e, 0);
		stop(&e, p);
	}
}

TEST(an_own_end_is_noticed_by_the_peer)
{
	for EACH_PLACE(at) {
		struct end e;
		struct peer *p = start_pair(&e, at);

		end_leave(&e);
		CHECK_EQ(e.f->ops->lseg.importers(e.s), 0);
		CHECK_EQ(count_fds(), e.fds - 2);
		stop(&e, p);
		p = start_pair(&e, at);
		end_destroy(&e);
		CHECK(atomic_load(&e.f->ops->rseg.status(e.r)->gone));
		CHECK_EQ(atomic_load(&e.import.left), 1);
		stop(&e, p);
	}
}

TEST(a_request_to_disconnect_arrives)
{
	for EACH_PLACE(at) {
		struct end e;
		struct peer *p = start_pair(&e, at);

		command(p, NOTIFY);
		WAIT_UNTIL(take(&e, 0) == -ETIMEDOUT && atomic_load(&e.import.asked),
			   TEST_WAIT_MS);
		/* the pair still works */
		command(p, RING);
		CHECK_EQ(take(&e, TEST_WAIT_MS), 0);
		stop(&e, p);
	}
}

TEST(a_cut_ends_both)
{
	for EACH_PLACE(at) {
		struct end e;
		struct peer *p = start_pair(&e, at);

		command(p, CUT);
		check_ended(&e, 0);
		/* the map is accessible, and is not the peer's memory any more */
		test_fill(e.theirs, SIZE, 3);
		CHECK(test_filled(e.theirs, SIZE, 3));
		stop(&e, p);
	}
}

/* The socket is full of triggers when the other process ends the pair. */
TEST(an_end_after_many_triggers_is_in_order)
{
	static const enum order ends[] = { LEAVE, DESTROY, CUT, CLOSE };

	for EACH_PLACE(at) {
		for (unsigned int i = 0; i < ARRAY_LEN(ends); i++) {
			struct end e;
			struct peer *p = start_pair(&e, at);

			command(p, FLOOD);
			command(p, ends[i]);
			WAIT_UNTIL(take(&e, 0) == -ETIMEDOUT &&
				   atomic_load(&e.f->ops->rseg.status(e.r)->gone), TEST_WAIT_MS);
			check_ended(&e, 0);
			if (ends[i] != CLOSE)
				command(p, CLOSE);
			peer_join(p);
			end_close(&e);
		}
	}
}

TEST(a_request_to_disconnect_arrives_after_many_triggers)
{
	for EACH_PLACE(at) {
		struct end e;
		struct peer *p = start_pair(&e, at);

		for (unsigned int n = 1; n < 4; n++) {
			command(p, FLOOD);
			command(p, NOTIFY);
			WAIT_UNTIL(take(&e, 0) == -ETIMEDOUT &&
				   atomic_load(&e.import.asked) == n, TEST_WAIT_MS);
		}
		command(p, FLOOD);
		stop(&e, p);
	}
}

TEST(one_side_alone_makes_no_pair)
{
	for EACH_PLACE(at) {
		struct end e;
		struct peer *p = start(&e, at);

		order_run(&e, PAIR);
		order_run(&e, RING);
		command(p, TAKE);
		command(p, RING);
		CHECK_EQ(take(&e, TEST_WAIT_MS), 0);
		CHECK_EQ(count_fds(), e.fds);
		/* the import ends alone */
		command(p, DESTROY);
		WAIT_UNTIL(atomic_load(&e.import.left), TEST_WAIT_MS);
		CHECK_EQ(e.f->ops->lseg.importers(e.s), 1);
		command(p, LEAVE);
		WAIT_UNTIL(atomic_load(&e.importer.left), TEST_WAIT_MS);
		stop(&e, p);

		p = start(&e, at);
		order_run(&e, PAIR);
		command(p, LEAVE);
		WAIT_UNTIL(atomic_load(&e.importer.left), TEST_WAIT_MS);
		CHECK_EQ(e.f->ops->ring(e.r), 0);
		command(p, TAKE);
		peer_kill(p, SIGKILL);
		WAIT_UNTIL(atomic_load(&e.import.lost), TEST_WAIT_MS);
		end_close(&e);
	}
}

static void third(struct peer *self, void *arg)
{
	struct end e = { 0 };

	(void)arg;
	end_open(&e, 12, 1);
	peer_expect(self, "leave");
	end_close(&e);
}

TEST(the_exporter_must_be_the_importer)
{
	struct peer *q = peer_spawn(12, third, NULL);
	struct end e;
	struct peer *p = start(&e, &places[0]);

	end_leave(&e);
	CHECK_EQ(e.f->ops->lseg.importers(e.s), 1);
	end_import(&e, 12, 1);
	CHECK_EQ(sci_pair(e.f, e.s, e.r), -EINVAL);
	peer_send(q, "leave");
	peer_join(q);
	stop(&e, p);
}

/* ---- a kill at any time ---- */

#define KILLS	60u

static void other_hurries(struct peer *self, void *arg)
{
	const struct place *at = arg;
	struct end e = { 0 };

	random_seed((unsigned int)getpid());
	end_open(&e, at->peer_node, at->peer_id);
	peer_expect(self, "go");
	end_import(&e, at->node, at->id);
	peer_send(self, "imported");
	peer_expect(self, "imported");
	random_death(random_below(2000));
	WAIT_UNTIL(!sci_pair(e.f, e.s, e.r), TEST_WAIT_MS);
	while (!e.f->ops->ring(e.r))
		take(&e, 0);
	pause();
}

TEST(a_kill_at_any_time_is_noticed)
{
	for (unsigned int k = 0; k < KILLS; k++) {
		const struct place *at = &places[k % ARRAY_LEN(places)];
		struct peer *p = peer_spawn(at->peer_node, other_hurries,
					    (void *)(uintptr_t)at);
		struct end e = { 0 };

		end_open(&e, at->node, at->id);
		peer_send(p, "go");
		end_import(&e, at->peer_node, at->peer_id);
		peer_expect(p, "imported");
		peer_send(p, "imported");
		for (uint32_t n = random_below(30); n; n--)
			take(&e, 0);
		sci_pair(e.f, e.s, e.r);
		while (!e.f->ops->ring(e.r))
			take(&e, 0);
		peer_kill(p, SIGKILL);
		check_ended(&e, 1);
		end_close(&e);
	}
}

TEST(an_end_at_any_time_is_noticed)
{
	for (unsigned int k = 0; k < KILLS; k++) {
		struct end e;
		struct peer *p = start(&e, &places[k % ARRAY_LEN(places)]);
		enum order order = TRY_PAIR;

		/* the other process makes the pair while this one leaves it */
		CHECK_EQ(sci_pair(e.f, e.s, e.r), 0);
		PEER_PUT(p, order);
		for (uint32_t n = random_below(30); n; n--)
			take(&e, 0);
		if (k & 1)
			end_leave(&e);
		end_destroy(&e);
		peer_expect(p, "done");
		stop(&e, p);
	}
}
