/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: a task
 *
 * A task has a socket to the daemon of its host, and an endpoint. Messages of other tasks
 * arrive at the endpoint, messages of daemons (notifications, output of children) at the
 * socket. All messages enter one inbox, in the order in which the task receives them. A
 * call that waits receives all messages that arrive, so two tasks that send long messages
 * to each other make progress.
 *
 * A PVM message is a tagged message in context MSG_CONTEXT. The tag is the PVM context
 * and the PVM tag, the immediate is the sender, the wait id and the encoding. So the
 * bytes of the message are the packed data alone.
 *
 * As in PVM, only one thread at a time may call the library.
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
#define TRY_SIZE	(32u << 10)	/* longest message that is received at once */
#define DATA_SIGNATURE	0x408c41	/* signature of this machine's data formats */
#define ARCH_NAME	"LINUX64"

/* ---- variables that PVM's library shows to programs ---- */

extern int pvmmytid, pvmmyptid, pvmmyctx, pvm_errno, pvmautoerr, pvmtoplvl;

/* ---- messages ---- */

/* In-place data at @at: @n items of @size bytes, @step bytes apart. */
struct piece {
	const uint8_t *at;
	size_t size;
	size_t n;
	size_t step;
};

/*
 * struct buf - a message, packed or received
 * @mid: message id of the program; 0: the program does not know the message
 * @data, @len, @cap: packed bytes
 * @pos: offset of the next byte to unpack
 * @pieces: in-place data (PvmDataInPlace) of a message without packed bytes
 * @msg: a long message whose bytes the sender still has, or NULL
 * @info: source, tag, context and so on
 * @link: in the inbox
 * @late: in the list of messages with @msg
 * @fresh: handlers have not been tried for this message
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
	uint32_t watch_events;		/* events of the daemon's socket in @watch */
	bool unseen;			/* the inbox may have messages that no receive has seen */
	struct sci_ep *ep;
	struct sci_addr addr;
	int host;			/* tid of the daemon's host */
	int manager;			/* tid of the resource manager; 0: none */
	uint32_t seq;
	uint8_t *in;			/* bytes read from the daemon */
	size_t in_len, in_cap;
	size_t in_at;			/* offset in @in of the next frame */
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

/* Enrol this task, unless it has enrolled. Return: 0 or a PVM error. */
int pv_task_enrol(void);

static inline int pv_task_ready(void)
{
	return pv_me.sock >= 0 ? 0 : pv_task_enrol();
}

/* Leave the virtual machine. The process continues. */
void pv_task_leave(void);

/* Report an error as PVM does: set pvm_errno, and print the error if option PvmAutoErr says so. */
PVM_API int lpvmerr(const char *call, int code);

static inline int pv_report(const char *call, int code)
{
	return code < 0 ? lpvmerr(call, code) : code;
}

/* ---- request.c ---- */

/*
 * struct answer - the reply to a request
 * @link: in the list of requests without an answer
 * @body: of the reply, inside @bytes
 * @bytes: freed by pv_answer_free()
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
 * Send @f to the daemon, free @f, and wait for the answer. @a may be NULL.
 * Return: the status in the answer, or a PVM error.
 */
int pv_request(struct frame *f, struct answer *a);
void pv_answer_free(struct answer *a);

/* Send a request without waiting. pv_answer_wait() waits for its answer. */
int pv_request_start(struct frame *f, struct answer *a);
int pv_answer_wait(struct answer *a);

/* Send @f, which gets no answer. */
int pv_request_post(struct frame *f);

/* Read frames of the daemon. Return: the number of frames; -1: the daemon has ended. */
int pv_request_read(void);

/* ---- manager.c ---- */

/*
 * struct ask - a request to the resource manager
 * @request: the message, while the task packs it
 * @saved: the program's send buffer, later its receive buffer
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
 * Begin a request, which becomes the send buffer. Return: false if this task has no manager. Then
 * @a needs no further call.
 */
bool pv_ask_begin(struct ask *a);
/*
 * Send the request. Unless @answered is false, wait for the answer, which is the receive buffer
 * until pv_ask_end().
 * Return: 1; 0: the manager has ended: ask the daemon instead; or a PVM error.
 */
int pv_ask_send(struct ask *a, int tag, bool answered);
void pv_ask_end(struct ask *a);
/* Pack or unpack one number. Return: the number; PvmBadMsg: the message has no further number. */
void pv_pack_int(int v);
int pv_unpack_int(void);
/* Unpack a string, which the caller frees. Return: NULL: no memory. */
char *pv_unpack_new(void);

/* Send @b to daemon @tid, for pvm_send() of a task with PvmResvTids. Return: 0 or a PVM error. */
int pv_daemon_send(struct buf *b, int tid, int tag);

/* ---- wait.c ---- */

/*
 * pv_wait_for() - receive messages until a condition holds
 * @done: returns whether the condition holds
 * @deadline: in microseconds of pv_now_us(); -1: none; 0: test once
 *
 * Return: 0; PvmNoData: the deadline has passed; PvmSysErr: the daemon has ended.
 */
int pv_wait_for(bool (*done)(void *arg), void *arg, int64_t deadline);
/* pv_wait_for() without pv_watch_renew(), which the caller calls later. */
int pv_wait_until(bool (*done)(void *arg), void *arg, int64_t deadline);
int64_t pv_now_us(void);

/*
 * Make pv_me.watch, a descriptor that becomes readable when a message of a task or of the daemon
 * arrives. Return: 0 or a negative errno value.
 */
int pv_watch_begin(void);
/* Arm pv_me.watch again, if the program has it. The call may take in a message and run its handler. */
void pv_watch_renew(void);
void pv_watch_end(void);

/* ---- buf.c ---- */

struct buf *pv_buf_new(int enc);
void pv_buf_free(struct buf *b);
/* Give @b a message id. */
int pv_buf_name(struct buf *b);
struct buf *pv_buf_find(int mid);
/* Make room for @len more bytes. Return NULL if there is no memory. */
uint8_t *pv_buf_room(struct buf *b, size_t len);
/* Return the number of bytes of message @b. */
size_t pv_buf_bytes(const struct buf *b);
/* Return a copy of @b that contains the bytes of in-place data; NULL: no memory. */
struct buf *pv_buf_copy(const struct buf *b);
/* Fetch the bytes of a long message. Return: 0 or a PVM error. */
int pv_buf_fetch(struct buf *b);
int pv_buf_complete(struct buf *b);
void pv_bufs_fetch(void);
void pv_bufs_free(void);

/* ---- inbox.c ---- */

/* Append @b to the inbox, and run its handler, if any, which frees @b. */
void pv_inbox_add(struct buf *b);
/* Return the first message from @tid with @tag; NULL: no message, or *@error is set. */
struct buf *pv_inbox_find(int tid, int tag, int *error);
void pv_inbox_take(struct buf *b);

/* ---- peer.c ---- */

/* Send @b to @n tasks with @tag. Return: 0 or a PVM error. */
int pv_peer_send(struct buf *b, const int *tids, int n, int tag);
void pv_peer_gone(struct sci_peer *peer);
void pv_peers_free(void);
/* Send queued messages whose receivers have enrolled. */
void pv_peers_push(void);
bool pv_peers_unsettled(void);

/* ---- output.c ---- */

/* Print and free @b if it has output of a child. Return: false: @b has no output of a child. */
bool pv_output_take(struct buf *b);
/* End the output of the children on @host, which has left; 0: on all hosts. */
void pv_output_host_gone(int host);
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
