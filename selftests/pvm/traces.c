// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Tests the ways to collect traces of tasks. selftests/pvm/both/traces.c compares the fields of
 * all events with those of Debian's PVM.
 */

#include "selftests/pvm/machine.h"

#include "selftests/pvm/events.h"

#define TRACE_TAG	60
#define SENDS		3

static int child_main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "halt")) {
		pvm_recvf(NULL);
		return pvm_halt();
	}
	for (int i = 0; i < SENDS; i++) {
		pvm_initsend(PvmDataDefault);
		pvm_send(pvm_parent(), 5);
	}
	pvm_exit();
	return 0;
}

/* Begin a machine, and spawn child @what with a trace of some calls. */
static void trace_begin(const char *what, int option, int bytes)
{
	char mask[MASK_SIZE], got[MASK_SIZE];
	int tid;

	machine_begin();
	mask_make(mask, (const int[]){ SEND, HALT, RECVF, -1 });
	CHECK_EQ(pvm_settmask(PvmTaskChild, mask), 0);
	CHECK_EQ(pvm_gettmask(PvmTaskChild, got), 0);
	CHECK(!strcmp(mask, got));
	CHECK(pvm_setopt(PvmTraceTid, pvm_mytid()) >= 0);
	CHECK(pvm_setopt(PvmTraceCode, TRACE_TAG) >= 0);
	CHECK(pvm_setopt(PvmTraceOptions, option) >= 0);
	CHECK(pvm_setopt(PvmTraceBuffer, bytes) >= 0);
	machine_spawn(what, 1, &tid);
}

/* Receive the next trace message, and store its mark. Return: its event. */
static int next(int *mark)
{
	CHECK(pvm_recv(-1, TRACE_TAG) > 0);
	*mark = unpack_int();
	return *mark == IDS ? 0 : unpack_int();
}

static void next_is(int mark, int event)
{
	int got, id = next(&got);

	CHECK_EQ(got, mark);
	if (mark != IDS)
		CHECK_EQ(id, event);
}

/* Receive the daemon's events, which precede those of the task. */
static void begins(void)
{
	next_is(IDS, 0);
	next_is(DESC, NEWTASK);
	next_is(DESC, NEWTASK + 2);
}

TEST(each_event_is_a_message)
{
	trace_begin("child", PvmTraceFull, 0);
	begins();
	for (int i = 0; i < SENDS; i++) {
		next_is(i ? RECORD : DESC, SEND | ENTRY);
		next_is(i ? RECORD : DESC, SEND | EXIT);
	}
	next_is(DESC, ENDTASK);
	machine_end();
}

TEST(events_are_collected_in_a_buffer)
{
	trace_begin("child", PvmTraceFull, 1 << 20);
	begins();
	CHECK(pvm_recv(-1, TRACE_TAG) > 0);
	CHECK_EQ(unpack_int(), BUFFER);
	CHECK_EQ(unpack_int(), DESC);
	CHECK_EQ(unpack_int(), SEND | ENTRY);
	next_is(DESC, ENDTASK);
	machine_end();
}

/* Unpack an event without fields from a buffer of events. */
static void bare_event_is(int event)
{
	char name[32];

	CHECK_EQ(unpack_int(), DESC);
	CHECK_EQ(unpack_int(), event);
	CHECK_EQ(pvm_upkstr(name), 0);
	unpack_origin(DESC);
	CHECK_EQ(unpack_int(), DESC_END);
}

TEST(a_call_that_halts_the_machine_is_an_event)
{
	trace_begin("halt", PvmTraceFull, 1 << 20);
	begins();
	CHECK(pvm_recv(-1, TRACE_TAG) > 0);
	CHECK_EQ(unpack_int(), BUFFER);
	bare_event_is(RECVF | ENTRY);
	bare_event_is(RECVF | EXIT);
	bare_event_is(HALT | ENTRY);
	WAIT_UNTIL(!machine_there(), TEST_WAIT_MS);
}

/* Check a message of sums: the name of its only event, and the number of calls. */
static void sums_check(int event)
{
	char name[32];

	begins();
	next_is(DESC, event);
	pvm_upkstr(name);
	unpack_origin(DESC);
	unpack_int();
	unpack_int();
	CHECK_EQ(unpack_int(), 1);			/* sums */
	unpack_int();
	unpack_int();
	CHECK_EQ(unpack_int(), 1);
	pvm_upkstr(name);
	CHECK(!strcmp(name, "send"));
	for (int i = 0; event == TIMING && i < 2; i++) {
		unpack_int();
		unpack_int();
		CHECK_EQ(unpack_int(), 1);
		CHECK(unpack_int() >= 0);
	}
	unpack_int();
	unpack_int();
	CHECK_EQ(unpack_int(), 1);
	CHECK_EQ(unpack_int(), SENDS);
	next_is(DESC, ENDTASK);
	machine_end();
}

TEST(only_times_are_summed)
{
	trace_begin("child", PvmTraceTime, 0);
	sums_check(TIMING);
}

TEST(only_calls_are_counted)
{
	trace_begin("child", PvmTraceCount, 0);
	sums_check(PROFILING);
}

/* A task that is the sink of its own trace gets only the daemon's events, no call of its own. */
TEST(a_task_sets_its_own_sink)
{
	char mask[MASK_SIZE];

	machine_begin();
	mask_make_full(mask);
	CHECK_EQ(pvm_settmask(PvmTaskSelf, mask), 0);
	CHECK(pvm_setopt(PvmSelfTraceCode, TRACE_TAG) >= 0);
	CHECK(pvm_setopt(PvmSelfTraceTid, pvm_mytid()) >= 0);
	begins();
	pvm_initsend(PvmDataDefault);
	CHECK_EQ(pvm_send(pvm_mytid(), 5), 0);
	CHECK(pvm_recv(-1, 5) > 0);
	CHECK_EQ(pvm_nrecv(-1, TRACE_TAG), 0);
	machine_end();
}
