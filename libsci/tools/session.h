/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: two processes of `sci` on two nodes
 *
 * A server (`sci recv`, `sci ping --serve`) exports a segment and waits for a
 * data interrupt; both have the number --id.  A client (`sci send`, `sci
 * ping`) connects to both, exports a small segment and sends struct session_hello.
 * The server connects to the client's segment and stores SESSION_GO there. From then on each
 * side writes only to the other side's segment and reads only its own, so no word has two
 * writers.
 *
 * Both segments begin with struct session_ctl. `progress` counts the steps of the peer so far.
 * A process that waits for progress polls for a while, then raises the peer's `sleeps` and waits
 * for an interrupt. The peer sends the interrupt if `sleeps` is raised after the peer's next step.
 *
 * The peer may write to these words at any time: take one copy of a word, then check the copy.
 *
 * A sequence flushes and refreshes the lines of its map, if caches are not coherent. So struct
 * session_ctl has a map of its own on both sides.
 */
#ifndef LIBSCI_TOOLS_SESSION_H
#define LIBSCI_TOOLS_SESSION_H

#include <assert.h>

#include "tool.h"

#define SESSION_CTL_SIZE	4096	/* bytes of a segment before the data */
#define SESSION_HELLO_MAX	512	/* limit of the client's own bytes in a hello */

enum session_kind {
	SESSION_FILE	= 1,
	SESSION_PING	= 2,
};

/* Low half of ctl.status; with GO the high half is the number of the peer's interrupt. */
enum session_status {
	SESSION_NEW	= 0,
	SESSION_GO	= 1,		/* the server is ready */
	SESSION_DONE	= 2,		/* all data has arrived */
	SESSION_EXISTS	= 3,		/* from 3 on: why the server has failed */
	SESSION_NAME	= 4,
	SESSION_NOSPC	= 5,
	SESSION_IO	= 6,
	SESSION_DIGEST	= 7,
	SESSION_PROTOCOL = 8,
};

/* The peer writes all members but nonce. */
struct session_ctl {
	uint64_t nonce;
	uint64_t pad[7];
	_Alignas(64) uint64_t progress;
	_Alignas(64) uint64_t sleeps;
	_Alignas(64) uint64_t status;
};

static_assert(sizeof(struct session_ctl) == 256, "both sides agree");
static_assert(offsetof(struct session_ctl, status) == 192, "both sides agree");

struct session {
	uint32_t id;
	unsigned int node;		/* node id of the peer */

	sci_desc_t sd;
	sci_local_segment_t lseg;
	sci_map_t lmap;			/* of the whole segment */
	sci_sequence_t data_seq;
	char *data;
	sci_map_t ctl_map;		/* of @mine */
	sci_sequence_t ctl_seq;
	struct session_ctl *mine;
	sci_local_interrupt_t lintr;
	unsigned int lintr_no;
	sci_local_data_interrupt_t hello;	/* server */

	sci_remote_segment_t rseg;
	sci_map_t rmap;			/* of the whole segment */
	sci_map_t their_map;		/* of @theirs */
	sci_sequence_t seq;
	struct session_ctl *theirs;
	size_t their_size;
	sci_remote_interrupt_t rintr;

	uint64_t slept;			/* last value of theirs->sleeps */
	uint64_t answered;		/* value of mine->sleeps that was answered */
	size_t chunk;			/* bytes between two checks for lost packets */
	uint64_t resent;		/* number of chunks sent again */
	bool gone;
};

/*
 * The functions from session_listen() to session_connect() print an error (tool_error()) and return
 * TOOL_FAILED. Call session_close() in any case.
 */

/* Export @size bytes as segment @id, with an interrupt for hellos. @s is all zero. */
int session_listen(struct session *s, uint32_t id, size_t size);

/* Wait for a client. *@len: room in @hello; receives the number of the client's bytes. */
int session_accept(struct session *s, enum session_kind kind, void *hello,
		   size_t *len, unsigned int timeout);

/* Connect, and retry until @timeout ms have passed. @s is all zero. */
int session_connect(struct session *s, unsigned int node, uint32_t id,
		    enum session_kind kind, const void *hello, size_t len,
		    size_t own_size, unsigned int timeout);

/* End the session of a server's client, so that the next client can connect. */
void session_hangup(struct session *s);
void session_close(struct session *s);

/*
 * The functions from session_write() to session_wait() return 0 or -errno. -ECONNRESET: the peer
 * has ended or disconnected; -ENETDOWN: the link stays down; -EIO: all attempts have lost packets;
 * -ETIMEDOUT.
 */

/* Copy to offset @off of the peer's segment. Return when all bytes have arrived. */
int session_write(struct session *s, size_t off, const void *src, size_t len);

/* Raise the peer's progress, after all data that was written before. */
int session_progress(struct session *s, uint64_t progress);

int session_status(struct session *s, enum session_status status);

/* Wait until this side's progress is not @seen, or its status is later than GO. */
int session_wait(struct session *s, uint64_t seen, unsigned int timeout);

/* Return whether the peer has disconnected. Do not wait. */
bool session_gone(struct session *s);

/* Load a word of this side's ctl. */
uint64_t session_load(struct session *s, const uint64_t *word);
uint64_t session_seen(struct session *s);
enum session_status session_seen_status(struct session *s);

/* Return a text for @err, which follows the name of the peer. */
const char *session_strerror(int err);
const char *session_refusal(enum session_status status);

static inline void *session_data(struct session *s)
{
	return s->data + SESSION_CTL_SIZE;
}

/* Load the peer's data from memory, and not from the cache, if caches are not coherent. */
static inline void session_refresh_data(struct session *s)
{
	SCIFlushReadBuffers(s->data_seq);
}

#endif
