// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Tests a process that asks for a connection to a mail box and whose port does not answer,
 * since none of its threads calls the port. The owner of the mail box must serve all other
 * questions meanwhile.
 */
#include <errno.h>
#include <stdio.h>

#include "libsci/deck/internal.h"
#include "selftests/ranks.h"

#define BOXES	3
#define OWNER	0

static const char *const names[BOXES] = { "destroyed", "forgotten", "found" };

static struct deck_note question(enum note_op op, const char *name)
{
	struct deck_note note = { .op = op, .rank = deck_rank() };

	snprintf(note.name, sizeof(note.name), "%s", name);
	return note;
}

/* Ask the owner for its side of a connection to a mail box. */
static void connection_ask(const char *name, struct deck_ask *ask)
{
	struct deck_note note = question(NOTE_FIND, name);
	struct deck_world *w = deck_world();

	CHECK_EQ(deck_service_ask(w, deck_service_home(w, name), &note, ask), 0);
	CHECK_EQ(deck_service_answer(ask, -1), 0);
	CHECK_EQ(ask->answer.rank, OWNER);
	note = question(NOTE_OPEN, name);
	note.addr = ask->answer.addr;
	CHECK_EQ(deck_service_ask(w, OWNER, &note, ask), 0);
}

static void owner_run(deck_mbox_t **box)
{
	deck_msg_t *m;

	for (int i = 0; i < BOXES; i++)
		CHECK_EQ(deck_mbox_create(&box[i], names[i]), 0);
	CHECK_EQ(deck_barrier(), 0);
	CHECK_EQ(deck_msg_create(&m, 100000), 0);
	CHECK_EQ(deck_barrier(), 0);
	CHECK_EQ(deck_mbox_destroy(box[0]), 0);
	CHECK_EQ(deck_mbox_retrv(box[2], m), 0);
	CHECK_EQ(deck_msg_destroy(m), 0);
}

static void peer_run(deck_mbox_t **box)
{
	struct deck_note note = question(NOTE_FIND_NOW, "there is none");
	struct deck_world *w = deck_world();
	struct deck_ask ask[BOXES];
	deck_msg_t *m;

	for (int i = 0; i < BOXES; i++)
		connection_ask(names[i], &ask[i]);
	CHECK_EQ(deck_service_call(w, OWNER, &note), -EAGAIN);
	CHECK_EQ(deck_barrier(), 0);
	/* the owner creates an exported message before the next barrier */
	CHECK_EQ(deck_barrier(), 0);
	CHECK_EQ(deck_service_answer(&ask[0], -1), -ENOENT);
	CHECK_EQ(deck_service_answer(&ask[1], 0), -EAGAIN);
	CHECK_EQ(deck_service_give_up(w, OWNER, &ask[1]), -ETIMEDOUT);
	CHECK_EQ(deck_service_answer(&ask[2], 0), -EAGAIN);
	for (int i = 1; i < BOXES; i++)
		CHECK_EQ(deck_mbox_find(&box[i], names[i], TEST_WAIT_MS), 0);
	CHECK_EQ(deck_service_answer(&ask[2], TEST_WAIT_MS), 0);
	CHECK_EQ(deck_msg_create(&m, 100), 0);
	CHECK_EQ(deck_mbox_post(box[2], m), 0);
	CHECK_EQ(deck_msg_destroy(m), 0);
}

static void connects(void *arg)
{
	deck_mbox_t *box[BOXES];

	(void)arg;
	CHECK_EQ(deck_init(NULL, NULL), 0);
	if (deck_rank() == OWNER)
		owner_run(box);
	else
		peer_run(box);
	CHECK_EQ(deck_barrier(), 0);
	for (int i = 1; i < BOXES; i++)
		CHECK_EQ(deck_mbox_destroy(box[i]), 0);
	CHECK_EQ(deck_done(), 0);
}

TEST(a_connection_that_is_not_answered_delays_no_question)
{
	ranks_run_arg(2, 2, connects, NULL, false);
}
