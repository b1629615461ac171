// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Stores and triggers to a node that stops answering, through an adapter with few
 * slots:
 *
 *	SCI_TEST_NODE=8 silent server_of_lines
 *	SCI_TEST_NODE=12 silent server
 *	SCI_TEST_NODE=4 CLUSTER_SILENT=8 CLUSTER_PEER=12 CLUSTER_DATA_PATH=packet silent client
 *
 * The client creates READY when it is connected. The caller stops node 8 and
 * creates GO, and the client begins. The test lasts until the adapter has given up
 * all packets. The adapter and the connection with CLUSTER_PEER must survive.
 *
 * Triggers fail with both data paths. Stores fail with the data path "packet". With
 * "direct" they need no packets: they arrive in the memory of the silent node, which
 * node 8 checks when it runs again.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <sisci_api.h>

#include "selftests/cluster/endure.h"

#define READY		"/tmp/silent-ready"
#define GO		"/tmp/silent-go"

#define SEGMENT		77u
#define NUMBER		78u
#define SIZE		65536u
#define LINE		128u		/* largest size of a stream buffer */
#define LINES		16u		/* number of stream buffers */
#define TRIGGERS	8u		/* threads that trigger an interrupt */
#define END		0x600df00du

/* ---- the silent node and the other one ---- */

/* Serve until a client stores END. Return the segment. */
static volatile unsigned int *serve(void)
{
	sci_desc_t sd = test_open();
	volatile unsigned int *words;

	test_interrupt(sd, NUMBER);
	words = test_map_local(test_segment(sd, SEGMENT, SIZE, 0), NULL);
	WAIT_UNTIL(words[0] == END, 3 * RECOVERY_MS);
	return words;
}

TEST(server)
{
	serve();
}

TEST(server_of_lines)
{
	volatile unsigned int *words = serve();

	for (unsigned int line = 0; line < LINES; line++)
		for (unsigned int i = 1; i < LINE / 4 - 1; i++)
			CHECK_EQ(words[line * LINE / 4 + i], line + 1);
}

/* ---- node 4 ---- */

struct connection {
	sci_remote_segment_t segment;
	sci_remote_interrupt_t intr;
	sci_sequence_t seq;
	volatile unsigned int *words;
};

static struct connection connection_with(sci_desc_t sd, unsigned int node)
{
	struct connection c;
	sci_map_t map;

	c.segment = test_connect(sd, node, SEGMENT);
	c.intr = test_connect_interrupt(sd, node, NUMBER);
	c.words = test_map_remote(c.segment, &map);
	CHECK_OK(SCICreateMapSequence(map, &c.seq, 0, &err));
	return c;
}

/* Store all words of a line but the last, which takes the most packets. */
static void store_lines(volatile unsigned int *words)
{
	for (unsigned int line = 0; line < LINES; line++)
		for (unsigned int i = 0; i < LINE / 4 - 1; i++)
			words[line * LINE / 4 + i] = line + 1;
}

static void *trigger(void *arg)
{
	struct connection *c = arg;

	CHECK(ERR_OF(SCITriggerInterrupt(c->intr, 0, &err)) != SCI_ERR_OK);
	return NULL;
}

/* Repeat the store while errors occur: they count for all connections. */
static void store_end(struct connection *c)
{
	sci_sequence_status_t st;

	do {
		CHECK_OK(st = SCIStartSequence(c->seq, 0, &err));
		if (st == SCI_SEQ_PENDING)
			continue;
		c->words[0] = END;
		CHECK_OK(st = SCICheckSequence(c->seq, 0, &err));
	} while (st != SCI_SEQ_OK);
}

static bool stores_are_direct(void)
{
	const char *path = getenv("CLUSTER_DATA_PATH");

	return path && !strcmp(path, "direct");
}

TEST(client)
{
	unsigned int peer = number_of("CLUSTER_PEER", 0);
	bool direct = stores_are_direct();
	sci_desc_t sd = test_open();
	struct connection silent, other = { 0 };
	pthread_t threads[TRIGGERS];
	sci_sequence_status_t st;

	silent = connection_with(sd, number_of("CLUSTER_SILENT", 8));
	if (peer)
		other = connection_with(sd, peer);
	CHECK_OK(st = SCIStartSequence(silent.seq, 0, &err));
	CHECK_EQ(st, SCI_SEQ_OK);
	close(creat(READY, 0600));
	WAIT_UNTIL(!access(GO, F_OK), RECOVERY_MS);
	store_lines(silent.words);
	for (unsigned int i = 0; i < TRIGGERS; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, trigger, &silent), 0);
	SCIStoreBarrier(silent.seq, 0);
	if (direct) {
		silent.words[0] = END;
	} else {
		CHECK_OK(st = SCICheckSequence(silent.seq, 0, &err));
		CHECK(st != SCI_SEQ_OK);
	}
	for (unsigned int i = 0; i < TRIGGERS; i++)
		pthread_join(threads[i], NULL);
	if (direct) {
		/* the adapter counts a failed trigger as an error of all its users */
		CHECK_OK(st = SCICheckSequence(silent.seq, 0, &err));
		CHECK(st != SCI_SEQ_OK);
	}
	/* the adapter still works */
	test_segment(sd, SEGMENT + 1, SIZE, 0);
	if (peer) {
		CHECK_OK(SCITriggerInterrupt(other.intr, 0, &err));
		store_end(&other);
	}
}
