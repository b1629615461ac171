/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: a task
 *
 * A task has a socket to the daemon of its host, and an endpoint. Messages from
 * other tasks come through the endpoint, messages of daemons (notifications, output
 * of children) through the socket. Both end up in one inbox, in the order in which
 * the task takes them in. A call that waits takes in what arrives, so two tasks that
 * send long messages to each other both get on.
 *
 * A PVM message is a tagged message in context MSG_CONTEXT. The tag is the PVM context
 * and the PVM tag, the immediate is the sender, the wait id and the encoding. So the
 * bytes of the message are the packed data alone.
 *
 * PVM's calls are for one thread at a time, as in PVM.
 */
#ifndef LIBSCI_PVM_LIB_H
#define LIBSCI_PVM_LIB_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>

#include <sci/msg.h>

#include "libsci/base/list.h"
#include "libsci/pvm/frame.h"
#ifndef PV_CALLS_HERE
#include "libsci/pvm/traced.h"
#endif
#include "libsci/include/sci-pvm/pvm3.h"

#define PVM_API		__attribute__((visibility("default")))
#define MSG_CONTEXT	1u
#define WID_MAX		0x3fffffff
#define TRY_SIZE	(32u << 10)	/* bytes of a message that is taken in at once */
#define DATA_SIGNATURE	0x408c41	/* of hosts with this machine's data formats */
#define ARCH_NAME	"LINUX64"

/* ---- variables that PVM's library shows to programs ---- */

extern int pvmmytid, pvmmyptid, pvmmyctx, pvm_errno, pvmautoerr, pvmtoplvl;

/* ---- messages ---- */

/* Where in-place data lies: @n items of @size bytes, @step bytes apart. */
struct piece {
	const uint8_t *at;
	size_t size;
	size_t n;
	size_t step;
};

/*
 * struct buf - a message, packed or received
 * @mid: what the program calls it; 0: only the inbox knows it
 * @data, @len, @cap: packed bytes
 * @pos: of the next byte to unpack
 * @pieces: of PvmDataInPlace
 * @msg: a long message whose bytes are still with the sender, or NULL
 * @info: its source, tag and so on
 * @link: in the inbox
 * @late: in the list of messages with @msg
 * @fresh: no handler has seen it
 */
struct buf {
	int mid;
	int enc;
	uint8_t *data;
	size_t len;
	size_t cap;
	size_t pos;
	struct piece *pieces;
	int npieces;
	bool fresh;
	bool queued;
	struct sci_msg *msg;
	struct pvmminfo info;
	struct list link;
	struct list late;
};

struct peer;

/* The state of this task. A process is at most one task. */
struct task {
	int sock;			/* to the daemon; -1: not enrolled */
	int watch;			/* descriptor of pvm_getfds(); -1: none */
	uint32_t watch_events;		/* what it waits for at the daemon's socket */
	struct sci_ep *ep;
	struct sci_addr addr;
	int host;			/* tid of the daemon's host */
	int manager;			/* resource manager; 0: the daemon */
	uint32_t seq;
	uint8_t *in;			/* bytes read from the daemon */
	size_t in_len, in_cap;
	struct buf *sbuf, *rbuf;
	struct list inbox;
	struct list late;
	int handling;			/* handlers under way */
	int *siblings;
	int nsiblings;
	int (*compare)(int mid, int tid, int tag);
	pid_t pid;
};

extern struct task pv_me;

/* ---- task.c ---- */

/* Enrol unless this has happened. Return: 0 or a PVM error. */
int pv_task_enrol(void);

static inline int pv_task_ready(void)
{
	return pv_me.sock >= 0 ? 0 : pv_task_enrol();
}

/* Leave the virtual machine; the process goes on. */
void pv_task_leave(void);

/* Report an error as PVM does: set pvm_errno, and print the error if the program wants that. */
PVM_API int lpvmerr(const char *call, int code);

static inline int pv_report(const char *call, int code)
{
	return code < 0 ? lpvmerr(call, code) : code;
}

/* ---- request.c ---- */

/*
 * struct answer - the reply to a request
 * @link: in the list of requests without an answer
 * @body: of it, inside @bytes
 * @bytes: to be freed by pv_answer_free()
 */
struct answer {
	struct list link;
	uint32_t seq;
	bool came;
	int status;
	struct body body;
	uint8_t *bytes;
};

/*
 * Send @f to the daemon, which frees it, and wait for the answer.
 * Return: the status in the answer or a PVM error; @a may be NULL.
 */
int pv_request(struct frame *f, struct answer *a);
void pv_answer_free(struct answer *a);

/* Send a request whose answer is taken later, by pv_answer_wait(). */
int pv_request_start(struct frame *f, struct answer *a);
int pv_answer_wait(struct answer *a);

/* Send @f, to which there is no answer. */
int pv_request_post(struct frame *f);

/* Read frames of the daemon. Return: the number of frames; -1: the daemon has ended. */
int pv_request_read(void);

/* ---- manager.c ---- */

/*
 * struct ask - a request to the resource manager
 * @request: the message, while it is packed
 * @saved: the send buffer of the program, later its receive buffer
 */
struct ask {
	int manager;
	int tag;
	int wid;
	struct buf *request;
	struct buf *saved;
	struct buf *reply;
};

/*
 * Begin a request: it is packed as the current message. Return: false if this task has no
 * manager. Then @a needs no further call.
 */
bool pv_ask_begin(struct ask *a);
/*
 * Send the request and wait for the answer, unless @answered is false. The answer is
 * unpacked as the current message, until pv_ask_end().
 * Return: 1; 0: the manager has ended: ask the daemon instead; or a PVM error.
 */
int pv_ask_send(struct ask *a, int tag, bool answered);
void pv_ask_end(struct ask *a);
/* Pack or unpack one number. PvmBadMsg: there is none. */
void pv_pack_int(int v);
int pv_unpack_int(void);
/* Unpack a string; to be freed. NULL: no memory. */
char *pv_unpack_new(void);

/* Do pvm_send() to daemon @tid, by a task with PvmResvTids. Return: 0 or a PVM error. */
int pv_daemon_send(struct buf *b, int tid, int tag);

/* ---- wait.c ---- */

/*
 * pv_wait_for() - take in messages until a condition holds
 * @done: returns whether it holds
 * @deadline: microseconds of pv_now_us(); -1: none; 0: test once
 *
 * Return: 0; PvmNoData: it does not hold in time; PvmSysErr: the daemon has ended.
 */
int pv_wait_for(bool (*done)(void *arg), void *arg, int64_t deadline);
int64_t pv_now_us(void);

/* Take in the messages that have arrived. Return: their number. */
int pv_take_in(void);

/*
 * Make pv_me.watch, a descriptor that becomes readable when a message of a task or of the daemon
 * arrives. Return: 0 or a negative errno value.
 */
int pv_watch_begin(void);
void pv_watch_end(void);

/* ---- buf.c ---- */

struct buf *pv_buf_new(int enc);
void pv_buf_free(struct buf *b);
/* Give @b a message id. */
int pv_buf_name(struct buf *b);
struct buf *pv_buf_find(int mid);
/* Make room for @len more bytes. Return NULL if there is no memory. */
uint8_t *pv_buf_room(struct buf *b, size_t len);
/* Return the number of bytes that a message of @b has. */
size_t pv_buf_bytes(const struct buf *b);
/* Gather the bytes of in-place pieces, one after the other. */
int pv_buf_gather(struct buf *b);
/* Fetch the bytes of a long message. Return: 0 or a PVM error. */
int pv_buf_fetch(struct buf *b);
void pv_bufs_fetch(void);
void pv_bufs_free(void);

/* ---- inbox.c ---- */

/* Append @b and run the handler that wants it, which frees it. */
void pv_inbox_add(struct buf *b);
/* Return the message for (@tid, @tag); NULL: none, or *@error. */
struct buf *pv_inbox_find(int tid, int tag, int *error);
void pv_inbox_take(struct buf *b);

/* ---- peer.c ---- */

/* Send @b, as it is packed. Return: 0 or a PVM error. */
int pv_peer_send(struct buf *b, const int *tids, int n, int tag);
void pv_peer_gone(struct sci_peer *peer);
void pv_peers_free(void);
/* Send the messages that wait until their receiver has enrolled. */
void pv_peers_push(void);
bool pv_peers_unsettled(void);

/* ---- output.c ---- */

/*
 * If the daemon's message @b has output of a child, print it and free @b. Return: whether it
 * has.
 */
bool pv_output_take(struct buf *b);
bool pv_output_pending(void);

/* ---- spawn.c ---- */

struct opts {
	int route, debug, frag, resv, show_tids;
	int out_tid, out_tag, out_ctx;
	int trace_tid, trace_tag, trace_ctx, trace_buf, trace_opt;
	int self[OPTS];
	int self_trace_buf, self_trace_opt, noreset;
};

extern struct opts pv_opts;

#endif
