// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test the tracepoints and their fields, in a tracefs instance of this test. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sci_test.h"

#define TRACEFS		"/sys/kernel/tracing"
#define INSTANCE	TRACEFS "/instances/sci-selftest"
#define EVENTS_MAX	256

struct event {
	char name[32];
	char text[160];			/* text behind the name of the event */
};

static struct event events[EVENTS_MAX];
static unsigned int nevents;

static void trace_end(void)
{
	write_text(INSTANCE "/events/sci/enable", "0");
	rmdir(INSTANCE);
}

static void trace_begin(void)
{
	NEED_ROOT();
	if (access(TRACEFS "/events/sci", F_OK))
		SKIP("no tracepoints in " TRACEFS);
	/* remove the instance of a failed test */
	trace_end();
	OK(SYS(mkdir(INSTANCE, 0700)));
	OK(write_text(INSTANCE "/events/sci/enable", "1"));
}

/* Parse "  task-123  [001] d..1.  12.345678: sci_trigger: sci0 node=4 to 8 ...". */
static void event_parse(const char *line)
{
	struct event *e = &events[nevents];
	const char *name = strstr(line, ": sci_");

	if (line[0] == '#' || !name || nevents == EVENTS_MAX)
		return;
	if (sscanf(name + 2, "%31[a-z_]: %159[^\n]", e->name, e->text) == 2)
		nevents++;
}

static void trace_read(void)
{
	FILE *f = fopen(INSTANCE "/trace", "re");
	char line[512];

	CHECK(f);
	nevents = 0;
	while (fgets(line, sizeof(line), f))
		event_parse(line);
	fclose(f);
	CHECK(nevents < EVENTS_MAX);
}

/* Return the first event at or after @from with this name, and @what in its text. */
static const struct event *event_find(unsigned int from, const char *name,
				      const char *what)
{
	for (unsigned int i = from; i < nevents; i++)
		if (!strcmp(events[i].name, name) &&
		    strstr(events[i].text, what))
			return &events[i];
	return NULL;
}

/* Return whether events with these texts came in this order. */
static bool words_came(const char *name, const char *const *words)
{
	unsigned int from = 0;

	trace_read();
	for (; *words; words++) {
		const struct event *e = event_find(from, name, *words);

		if (!e)
			return false;
		from = (unsigned int)(e - events) + 1;
	}
	return true;
}

static void WORDS(const char *name, const char *const *words)
{
	if (HAPPENS(words_came(name, words), TEST_WAIT_MS))
		return;
	for (unsigned int i = 0; i < nevents; i++)
		ksft_note("%s: %s", events[i].name, events[i].text);
	FAIL("%s: these words did not come in order", name);
}

#define CAME(name, ...)							\
	KSFT_FROM(WORDS(name, (const char *const[]){ __VA_ARGS__, NULL }))

TEST(the_life_of_a_segment_is_traced)
{
	int adapter = OK(adapter_open(0)), fd;

	trace_begin();
	fd = OK(segment_create(adapter, 7, 3 * PAGE));
	OK(segment_share(fd));
	OK(segment_export(fd));
	OK(segment_unexport(fd, SCI_UNEXPORT_HOW_QUIET));
	OK(segment_remove(fd));
	CAME("sci_segment_state", " create", " share", " export",
	     " unexport", " remove");
	trace_end();
}

TEST(registered_memory_is_traced)
{
	int adapter = OK(adapter_open(0)), fd;

	NEED_CAP(SCI_CAP_REGISTER);
	trace_begin();
	fd = OK(segment_create_as(adapter, 7, PAGE, SEGMENT_MODE,
				  SCI_SEGMENT_EMPTY));
	OK(segment_register(fd, user_memory(PAGE), PAGE));
	CAME("sci_segment_state", " create", " register");
	trace_end();
}

TEST(the_life_of_an_import_is_traced)
{
	struct pair p;

	trace_begin();
	p = PAIR(PAGE);
	OK(segment_unexport(p.local, SCI_UNEXPORT_HOW_NOTIFY));
	EV(p.remote, SCI_EV_DISCONNECT);
	OK(sci_unmap(p.there, PAGE));
	OK(SYS(close(p.remote)));
	CAME("sci_import_state", " connecting ", " connected ", " notify ",
	     " disconnect ");
	CAME("sci_importer_state", " connect", " disconnect");
	CAME("sci_map", "offset=0");
	CAME("sci_unmap", "offset=0");
	trace_end();
}

TEST(what_ends_an_import_is_traced)
{
	struct pair p;

	trace_begin();
	p = PAIR(PAGE);
	FAILS(remote_connect(p.importer, p.node, 0xbad), ENOENT);
	OK(segment_unexport(p.local, SCI_UNEXPORT_HOW_FORCE));
	EV(p.remote, SCI_EV_LOST);
	CAME("sci_import_state", "id=0xbad connecting", "id=0xbad refused error=-2",
	     " lost ");
	CAME("sci_revoke", "maps=1");
	CAME("sci_error", "retriable");
	trace_end();
}

TEST(a_connect_without_an_answer_is_traced)
{
	int fd = OK(adapter_open(0));

	NEED_ADAPTERS(2);
	NEED_KNOB(KNOB_LOSS);
	trace_begin();
	OK(knob_set(0, KNOB_LOSS, 1000000));
	FAILS(remote_connect_as(fd, adapter_node(1), 1, 0, 0), ETIMEDOUT);
	CAME("sci_import_state", " connecting ", " timeout error=-110");
	trace_end();
}

static unsigned int handle_of(const char *direction)
{
	const struct event *e = event_find(0, "sci_trigger", direction);
	unsigned int handle = 0;

	CHECK(e);
	EQ(sscanf(strstr(e->text, "handle="), "handle=%x", &handle), 1);
	return handle;
}

/* Check that both ends log the same handle for the connection. */
static void trigger_and_compare(__u32 flags, const char *data)
{
	int owner, sender, intr, remote;
	__u32 number = 1234;
	char text[32];

	NEED_ADAPTERS(2);
	owner = OK(adapter_open(1));
	sender = OK(adapter_open(0));
	intr = OK(intr_create(owner, flags | SCI_INTR_FIXED_NUMBER, &number));
	remote = OK(intr_connect(sender, adapter_node(1), number,
				 data ? SCI_CONNECT_DATA : 0));
	trace_begin();
	OK(data ? intr_send(remote, data, (__u32)strlen(data)) :
		  intr_trigger(remote));
	CHECK(readable(intr, TEST_WAIT_MS));
	snprintf(text, sizeof(text), "length=%zu", data ? strlen(data) : 0);
	CAME("sci_trigger", text, text);
	EQ(handle_of(" to "), handle_of(" from "));
	trace_end();
}

TEST(a_trigger_has_one_handle_at_both_ends)
{
	trigger_and_compare(0, NULL);
}

TEST(a_trigger_with_data_has_one_handle_at_both_ends)
{
	trigger_and_compare(SCI_INTR_WITH_DATA, "four");
}

TEST(the_life_of_an_interrupt_is_traced)
{
	int adapter = OK(adapter_open(0)), fd;
	__u32 number;

	trace_begin();
	fd = OK(intr_create(adapter, 0, &number));
	OK(intr_cancel(fd));
	OK(SYS(close(fd)));
	CAME("sci_intr_state", " create", " cancel", " remove");
	trace_end();
}

TEST(transfers_are_traced)
{
	struct world w = WORLD();

	NEED_CAP(SCI_CAP_DMA);
	trace_begin();
	OK(dma_move(w.fd[KIND_DMA], SCI_DMA_WAIT, w.fd[KIND_LOCAL],
		    w.pair.remote, PAGE));
	OK(dma_move(w.fd[KIND_DMA], SCI_DMA_WAIT | SCI_DMA_PULL,
		    w.fd[KIND_LOCAL], w.pair.remote, PAGE));
	CAME("sci_dma", " push bytes=", " pull bytes=");
	trace_end();
}

TEST(the_link_is_traced)
{
	NEED_ADAPTERS(2);
	NEED_KNOB(KNOB_LINK);
	trace_begin();
	OK(knob_set(0, KNOB_LINK, 0));
	OK(knob_set(0, KNOB_LINK, 1));
	CAME("sci_adapter_state", " link down", " link up");
	trace_end();
}
