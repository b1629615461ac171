// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Connect two processes: hello, nonce and GO. */
#define _GNU_SOURCE

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "libsci/base/barrier.h"
#include "libsci/fabric/core/fabric.h"
#include "session.h"

#define MAGIC		0x69637331u	/* "1sci": also the version of the format */
#define CLIENT_ID	0x5c100000u	/* ids of clients' segments begin here */
#define CONNECT_MS	5000u
#define RETRY_MS	20		/* ms between two attempts to connect */
#define SLICE_MS	100u

/* The first message of a client to the server. */
struct session_hello {
	uint32_t magic;
	uint32_t kind;			/* enum session_kind */
	uint32_t node;
	uint32_t segment;
	uint32_t interrupt;
	uint32_t len;			/* of data[] */
	uint64_t nonce;
	uint8_t data[SESSION_HELLO_MAX];
};

static_assert(sizeof(struct session_hello) == 32 + SESSION_HELLO_MAX,
	      "on the wire");
#define HELLO_HEAD	offsetof(struct session_hello, data)

/* ---- our own side ---- */

static sci_error_t segment_map(struct session *s, size_t size)
{
	sci_error_t err;

	s->data = SCIMapLocalSegment(s->lseg, &s->lmap, 0, size, NULL, 0, &err);
	if (err == SCI_ERR_OK)
		SCICreateMapSequence(s->lmap, &s->data_seq, 0, &err);
	if (err == SCI_ERR_OK)
		s->mine = SCIMapLocalSegment(s->lseg, &s->ctl_map, 0, sizeof(*s->mine),
					     NULL, 0, &err);
	if (err == SCI_ERR_OK)
		SCICreateMapSequence(s->ctl_map, &s->ctl_seq, 0, &err);
	return err;
}

static int segment_open(struct session *s, uint32_t id, size_t size,
			unsigned int flags)
{
	sci_error_t err;

	SCICreateSegment(s->sd, &s->lseg, id, size, NULL, NULL, flags, &err);
	if (err == SCI_ERR_SEGMENTID_USED)
		return tool_error("somebody on this node uses segment 0x%x already (--id gives another)",
				  id);
	if (err != SCI_ERR_OK)
		return tool_sci_error(err, "cannot create a segment");
	err = segment_map(s, size);
	if (err != SCI_ERR_OK)
		return tool_sci_error(err, "cannot map the segment");
	if (getrandom(&s->mine->nonce, sizeof(s->mine->nonce), 0) < 0)
		return tool_error("cannot get random bytes: %s",
				  strerror(errno));
	SCIStoreBarrier(s->ctl_seq, 0);
	SCIPrepareSegment(s->lseg, 0, 0, &err);
	if (err == SCI_ERR_OK)
		SCISetSegmentAvailable(s->lseg, 0, 0, &err);
	if (err != SCI_ERR_OK)
		return tool_sci_error(err, "cannot export the segment");
	return TOOL_OK;
}

static int side_open(struct session *s, uint32_t id, size_t size,
		     unsigned int flags)
{
	sci_error_t err;

	if (!s->sd && tool_join(&s->sd))
		return TOOL_FAILED;
	SCICreateInterrupt(s->sd, &s->lintr, 0, &s->lintr_no, NULL, NULL, 0,
			   &err);
	if (err != SCI_ERR_OK)
		return tool_sci_error(err, "cannot create an interrupt");
	return segment_open(s, id, size, flags);
}

int session_listen(struct session *s, uint32_t id, size_t size)
{
	unsigned int number = id;
	sci_error_t err;

	s->id = id;
	if (side_open(s, id, size, 0))
		return TOOL_FAILED;
	SCICreateDataInterrupt(s->sd, &s->hello, 0, &number, NULL, NULL,
			       SCI_FLAG_FIXED_INTNO, &err);
	if (err != SCI_ERR_OK)
		return tool_sci_error(err, "cannot create data interrupt 0x%x",
				      id);
	return TOOL_OK;
}

/* ---- the other side ---- */

static void peer_drop(struct session *s)
{
	if (s->rintr)
		SCIDisconnectInterrupt(s->rintr, 0, NULL);
	if (s->seq)
		SCIRemoveSequence(s->seq, 0, NULL);
	if (s->their_map)
		SCIUnmapSegment(s->their_map, 0, NULL);
	if (s->rmap)
		SCIUnmapSegment(s->rmap, 0, NULL);
	if (s->rseg)
		SCIDisconnectSegment(s->rseg, 0, NULL);
	s->rintr = NULL;
	s->seq = NULL;
	s->their_map = NULL;
	s->rmap = NULL;
	s->rseg = NULL;
	s->gone = false;
}

static sci_error_t peer_map(struct session *s)
{
	sci_error_t err;

	s->their_size = SCIGetRemoteSegmentSize(s->rseg);
	if (s->their_size < SESSION_CTL_SIZE)
		return SCI_ERR_OUT_OF_RANGE;
	SCIMapRemoteSegment(s->rseg, &s->rmap, 0, s->their_size, NULL, 0, &err);
	if (err != SCI_ERR_OK)
		return err;
	s->theirs = (struct session_ctl *)SCIMapRemoteSegment(
		s->rseg, &s->their_map, 0, sizeof(*s->theirs), NULL, 0, &err);
	if (err != SCI_ERR_OK)
		return err;
	SCICreateMapSequence(s->their_map, &s->seq, 0, &err);
	if (err == SCI_ERR_OK)
		SCIStartSequence(s->seq, 0, &err);
	return err;
}

/* Connect to and map the peer's segment. After an error the caller cleans up. */
static sci_error_t session_map_peer(struct session *s, unsigned int node,
				    uint32_t segment)
{
	sci_error_t err;

	s->node = node;
	SCIConnectSegment(s->sd, &s->rseg, node, segment, 0, NULL, NULL,
			  CONNECT_MS, 0, &err);
	if (err != SCI_ERR_OK) {
		s->rseg = NULL;
		return err;
	}
	err = peer_map(s);
	if (err != SCI_ERR_OK)
		peer_drop(s);
	return err;
}

static sci_error_t interrupt_connect(struct session *s, uint32_t number)
{
	sci_error_t err;

	SCIConnectInterrupt(s->sd, &s->rintr, s->node, 0, number, CONNECT_MS,
			    0, &err);
	if (err != SCI_ERR_OK)
		s->rintr = NULL;
	return err;
}

/* ---- server ---- */

static bool hello_is_valid(const struct session_hello *h, unsigned int len,
			   enum session_kind kind)
{
	return len >= HELLO_HEAD && h->magic == MAGIC && h->kind == kind &&
	       h->len == len - HELLO_HEAD && h->node >= SCI_NODE_STEP &&
	       h->node <= SCI_NODE_MAX && !(h->node % SCI_NODE_STEP);
}

/*
 * Compare the nonce in the hello with the nonce in the segment that the hello names, which only the
 * segment's owner knows. This reads remote memory, once per client. Without the check a client
 * could make the server write to another program's memory.
 */
static bool nonce_is_right(struct session *s, uint64_t nonce)
{
	SCIFlushReadBuffers(s->seq);
	return *(volatile uint64_t *)&s->theirs->nonce == nonce;
}

static bool session_answer(struct session *s, const struct session_hello *h)
{
	if (session_map_peer(s, h->node, h->segment) != SCI_ERR_OK)
		return false;
	s->slept = 0;
	s->answered = 0;
	s->chunk = SIZE_MAX;
	if (nonce_is_right(s, h->nonce) &&
	    interrupt_connect(s, h->interrupt) == SCI_ERR_OK &&
	    !session_status(s, SESSION_GO))
		return true;
	peer_drop(s);
	return false;
}

int session_accept(struct session *s, enum session_kind kind, void *data,
		   size_t *len, unsigned int timeout)
{
	struct session_hello h;
	unsigned int n;
	sci_error_t err;

	for (;;) {
		n = sizeof(h);
		memset(&h, 0, sizeof(h));
		SCIWaitForDataInterrupt(s->hello, &h, &n, timeout, 0, &err);
		if (err == SCI_ERR_TIMEOUT)
			return tool_error("nobody came within %g s",
					  timeout / 1e3);
		if (err != SCI_ERR_OK)
			return tool_sci_error(err, "cannot wait for a peer");
		if (!hello_is_valid(&h, n, kind) || h.len > *len)
			tool_error("ignored a request that makes no sense");
		else if (session_answer(s, &h))
			break;
	}
	memcpy(data, h.data, h.len);
	*len = h.len;
	return TOOL_OK;
}

void session_hangup(struct session *s)
{
	peer_drop(s);
	SCIFlushReadBuffers(s->ctl_seq);
	memset(&s->mine->progress, 0,
	       sizeof(*s->mine) - offsetof(struct session_ctl, progress));
	SCIStoreBarrier(s->ctl_seq, 0);
}

/* ---- client ---- */

static sci_error_t hello_send(struct session *s, const void *data, size_t len,
			      enum session_kind kind)
{
	struct session_hello h = {
		.magic = MAGIC, .kind = kind, .len = (uint32_t)len,
		.segment = SCIGetLocalSegmentId(s->lseg),
		.interrupt = s->lintr_no, .nonce = s->mine->nonce,
	};
	sci_remote_data_interrupt_t door;
	sci_error_t err;

	SCIGetLocalNodeId(0, &h.node, 0, &err);
	if (err != SCI_ERR_OK)
		return err;
	memcpy(h.data, data, len);
	SCIConnectDataInterrupt(s->sd, &door, s->node, 0, s->id, CONNECT_MS,
				0, &err);
	if (err != SCI_ERR_OK)
		return err;
	SCITriggerDataInterrupt(door, &h, (unsigned int)(HELLO_HEAD + len), 0,
				&err);
	SCIDisconnectDataInterrupt(door, 0, NULL);
	return err;
}

/*
 * Connect to the server's interrupt after its GO. If the server has stored a later status, it may
 * have ended: then the status counts, and a failure to connect is no error.
 */
static sci_error_t go_take(struct session *s, uint64_t word)
{
	sci_error_t err = SCI_ERR_OK;

	if ((uint32_t)word == SESSION_GO)
		err = interrupt_connect(s, (uint32_t)(word >> 32));
	if (err != SCI_ERR_OK && session_seen_status(s) > SESSION_GO)
		err = SCI_ERR_OK;
	return err;
}

/* Wait for the server's GO: the server may be busy with another client. */
static sci_error_t session_wait_go(struct session *s, uint64_t end)
{
	uint64_t word;

	while (tool_now_ns() < end) {
		SCIWaitForInterrupt(s->lintr, SLICE_MS, 0, NULL);
		word = session_load(s, &s->mine->status);
		if ((uint32_t)word >= SESSION_GO)
			return go_take(s, word);
		if (session_gone(s) &&
		    session_seen_status(s) == SESSION_NEW)
			return SCI_ERR_NO_SUCH_SEGMENT;
	}
	return SCI_ERR_TIMEOUT;
}

static sci_error_t session_try_connect(struct session *s, unsigned int node,
				       enum session_kind kind, const void *data,
				       size_t len, uint64_t end)
{
	sci_error_t err;

	/* a server of an earlier attempt may have stored GO and died */
	SCIFlushReadBuffers(s->ctl_seq);
	sci_store_release(&s->mine->status, SESSION_NEW);
	SCIStoreBarrier(s->ctl_seq, 0);
	err = session_map_peer(s, node, s->id);
	if (err != SCI_ERR_OK)
		return err;
	err = hello_send(s, data, len, kind);
	if (err == SCI_ERR_OK)
		err = session_wait_go(s, end);
	if (err != SCI_ERR_OK)
		peer_drop(s);
	return err;
}

static bool connect_is_retriable(sci_error_t err)
{
	return err == SCI_ERR_NO_SUCH_SEGMENT || err == SCI_ERR_NO_SUCH_NODEID ||
	       err == SCI_ERR_NO_SUCH_INTNO || err == SCI_ERR_NOT_CONNECTED ||
	       err == SCI_ERR_SEGMENT_NOT_CONNECTED || err == SCI_ERR_NOSPC ||
	       err == SCI_ERR_NO_LINK_ACCESS || err == SCI_ERR_TIMEOUT;
}

static int connect_failed(struct session *s, unsigned int node,
			  sci_error_t err)
{
	if (err == SCI_ERR_NO_SUCH_NODEID)
		return tool_error("there is no node %u in this cluster", node);
	if (err == SCI_ERR_NO_SUCH_SEGMENT || err == SCI_ERR_NO_SUCH_INTNO)
		return tool_error("nobody on node %u waits for us (--id 0x%x)",
				  node, s->id);
	if (err == SCI_ERR_CONNECTION_REFUSED || err == SCI_ERR_ACCESS)
		return tool_error("node %u: permission denied: it belongs to another user",
				  node);
	if (err == SCI_ERR_TIMEOUT)
		return tool_error("node %u is busy with somebody else", node);
	return tool_sci_error(err, "cannot connect to node %u", node);
}

int session_connect(struct session *s, unsigned int node, uint32_t id,
		    enum session_kind kind, const void *data, size_t len,
		    size_t own_size, unsigned int timeout)
{
	uint64_t end = tool_now_ns() + timeout * 1000000ull;
	sci_error_t err;

	s->id = id;
	s->chunk = SIZE_MAX;
	if (side_open(s, CLIENT_ID, SESSION_CTL_SIZE + own_size,
		      SCI_FLAG_AUTO_ID))
		return TOOL_FAILED;
	for (;;) {
		err = session_try_connect(s, node, kind, data, len, end);
		if (err == SCI_ERR_OK)
			return TOOL_OK;
		if (!connect_is_retriable(err) || tool_now_ns() >= end)
			return connect_failed(s, node, err);
		poll(NULL, 0, RETRY_MS);
	}
}

void session_close(struct session *s)
{
	if (s->sd)
		SCITerminate();
	memset(s, 0, sizeof(*s));
}
