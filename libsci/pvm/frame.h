/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: frames
 *
 * Tasks and daemons exchange frames: a head, and a body of numbers and strings in
 * the byte order of the host. A task talks to its own daemon through a Unix socket.
 * Daemons forward frames as messages of libsci. Messages between tasks are not frames:
 * a task sends them to the endpoint of the other task.
 *
 * A request names the host that answers it in @dst. The daemon of the sender fills
 * in @src. The answer is an OP_REPLY with the same @seq, sent to @src.
 */
#ifndef LIBSCI_PVM_FRAME_H
#define LIBSCI_PVM_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_MAX	(1u << 30)	/* bytes of a body */
#define FRAME_VERSION	3

/*
 * Task ids, as in PVM: bit 31 names a daemon, then 12 bits of host and 18 bits that
 * the host's daemon counts. The daemon of host 1 is 0x40000 in tables of hosts.
 */
#define TID_DAEMON	0x80000000u
#define TID_HOST_SHIFT	18
#define TID_HOST_MASK	0x3ffc0000u
#define TID_LOCAL_MASK	0x0003ffffu
#define TID_HOST(tid)	(((uint32_t)(tid) & TID_HOST_MASK) >> TID_HOST_SHIFT)
#define TID_OF_HOST(h)	((uint32_t)(h) << TID_HOST_SHIFT)
#define HOST_MAX	0xfffu
#define TO_OWN		0u		/* destination: the daemon of the sender */
#define TO_MASTER	TID_DAEMON	/* ... the first daemon */

/*
 * Messages of taskers (T), hosters (H) and resource managers (R), with daemons (d) and
 * other tasks (t), in XDR. A reply has the tag or its ...ACK, and the wait id of the
 * request. Hosts in replies are: tid or error, name, architecture, speed, signature.
 */
#define SM(n)		((int)(0x80040001u + (n)))
#define SM_SPAWN	SM(0)	/* t-R file, flags, where, n, args, 6 numbers, env: n, tids */
#define SM_EXEC		SM(1)	/* R-d parent, file, flags, n, args, 6 numbers, env */
#define SM_EXECACK	SM(2)	/* d-R n, tids */
#define SM_TASK		SM(3)	/* t-R tid or 0: error, then tasks */
#define SM_CONFIG	SM(4)	/* t-R : n, architectures, hosts */
#define SM_ADDHOST	SM(5)	/* t-R n, names: n, architectures, hosts */
#define SM_DELHOST	SM(6)	/* t-R n, names: n, results */
#define SM_ADD		SM(7)	/* R-d n, names */
#define SM_ADDACK	SM(8)	/* d-R n, architectures, hosts */
#define SM_NOTIFY	SM(9)	/* t-R what, ctx, tag, count, tids; no reply */
#define SM_TASKX	SM(10)	/* T-d, d-R tid, status, times: a task has ended */
#define SM_HOSTX	SM(11)	/* d-R tid: a host has gone */
#define SM_HANDOFF	SM(12)	/* R-d tid: the manager of tasks that enrol from now on */
#define SM_SCHED	SM(13)	/* t-R : old manager, a host: it registers */
#define SM_STHOST	SM(14)	/* d-H n, then tid, options, login, command, "", VMID */
#define SM_STHOSTACK	SM(15)	/* H-d n, then tid, the daemon's line or an error's name */
#define SM_STTASK	SM(16)	/* d-T tid, flags, path, argc, argv, n, env */

/*
 * The task that PVM's tools take for the server of groups. No task has this id: the first
 * daemon answers GROUP_STATUS: n, then length of name, name, size, n, barrier, arrived,
 * tids.
 */
#define TID_GROUPS	((int)(TID_OF_HOST(1) | TID_LOCAL_MASK))
#define GROUP_STATUS	10
#define GROUP_CONTEXT	0x7fffc

/* Return whether @tid is the id of a task, and not of a daemon or a group. */
static inline bool tid_is_task(int tid)
{
	return tid > 0 && TID_HOST(tid) && ((uint32_t)tid & TID_LOCAL_MASK) &&
	       !((uint32_t)tid & ~(TID_HOST_MASK | TID_LOCAL_MASK));
}

enum frame_op {
	OP_REPLY = 1,
	OP_MSG,		/* ctx, tag, wid, enc, body: a PVM message to task @dst */
	OP_ENROL,	/* version, pid it was started as, node, endpoint */
	OP_EXIT,
	OP_SPAWN,	/* see pvm_spawn() */
	OP_SIBLINGS,	/* list of tids: those of one spawn; to the daemon of @dst */
	OP_GET_SIBLINGS,
	OP_WHERE,	/* tid: node, endpoint; waits until the task has enrolled */
	OP_SIGNAL,	/* tid, signal */
	OP_TASKS,	/* tid or 0 */
	OP_CONFIG,
	OP_PICK,	/* flags, where, n: hosts for n tasks */
	OP_NOTIFY,	/* what, ctx, tag, count, tids */
	OP_CONTEXT,	/* 0: a new one; else this is given back */
	OP_PUTINFO,	/* name, flags, enc, body: index */
	OP_RECVINFO,	/* name, index, flags */
	OP_DELINFO,	/* name, index, flags */
	OP_MBOXES,	/* pattern */
	OP_MBOX_RESET,	/* list of tids whose entries stay */
	OP_ADDHOSTS,	/* list of names: list of tids or errors */
	OP_DELHOSTS,
	OP_HALT,
	OP_CLOCK,	/* seconds, microseconds of @dst */
	OP_SETOPT,	/* enum task_opt, value */
	OP_GROUP,	/* enum group_op, name, a number */
	OP_TASKER,	/* the sender starts the tasks of its host, or no more */
	OP_HOSTER,	/* the sender starts daemons, or no more */
	OP_MANAGER,	/* the sender is the resource manager: the old one, a host */
	OP_TRACER,	/* ctx, tag, ctx, tag of output, mask, bytes, option; or no more */
	OP_TRACE,	/* dst, ctx, tag, bytes: records for the sink of a trace */
	OP_SM,		/* ctx, tag, wid, bytes: an SM_ message to the daemon @dst */
	/* between daemons */
	OP_HELLO,	/* secret, name, architecture, node, endpoint */
	OP_HOSTS,	/* the table of hosts: see table_send() */
	OP_HOSTS_KNOWN,	/* version of the table, which the sender has; to the master */
	OP_EXITED,	/* tid */
	OP_LOST,	/* node, endpoint: of a daemon whose connection has ended; to the master */
	OP_CHECK,	/* tid: answer OP_EXITED if there is no such task */
	OP_NEW_MANAGER,	/* tid: of tasks that enrol; to a task: its own has become this */
	OP_NEW_TRACER,	/* tid or 0, enum task_opt, mask, bytes, option */
	OP_BYE		/* end: all your tasks, and yourself */
};

enum task_opt { OPT_OUT_TID, OPT_OUT_CTX, OPT_OUT_TAG, OPT_TRACE_TID, OPT_TRACE_CTX,
	OPT_TRACE_TAG, OPTS };

struct frame_head {
	uint32_t len;		/* of the body */
	uint16_t op;
	uint16_t reserved;
	int32_t status;
	uint32_t seq;
	uint32_t src;
	uint32_t dst;
};

/* A frame that grows; the head is its first bytes. Zeroed is empty. */
struct frame {
	uint8_t *data;
	size_t len;
	size_t cap;
	bool failed;		/* no memory: it must not be sent */
};

void frame_begin(struct frame *f, enum frame_op op, uint32_t dst);
void frame_free(struct frame *f);
void frame_i32(struct frame *f, int32_t value);
/* Append a string. NULL is sent as the empty string. */
void frame_str(struct frame *f, const char *s);
/* Append bytes, with their number before them. */
void frame_bytes(struct frame *f, const void *data, size_t len);
void frame_ints(struct frame *f, const int *v, int n);

/* Set the length in the head and return it; NULL: @f has failed. */
struct frame_head *frame_head(struct frame *f);

/* The body of a frame that is being read. A read past its end sets @bad. */
struct body {
	const uint8_t *at;
	size_t left;
	bool bad;
};

int32_t body_i32(struct body *b);
/* Return a string inside the body, "" if there is none. */
const char *body_str(struct body *b);
const void *body_bytes(struct body *b, size_t *len);
/* Get a list of numbers. Return their count; @v is inside the body and need not be aligned. */
int body_ints(struct body *b, const void **v);
int ints_at(const void *v, int i);

/*
 * frame_next() - take a frame off the front of a stream's bytes
 * @head: is filled
 * @body: points into @data
 *
 * Return: its length; 0: it is incomplete; -EPROTO: the bytes are no frame.
 */
long frame_next(const uint8_t *data, size_t len, struct frame_head *head,
		struct body *body);

/* Return the value of the environment variable @name, or @value if it is unset or empty. */
const char *pvm_env_or(const char *name, const char *value);

/*
 * Make the address of the daemon's socket: an abstract name of the fabric, the node, the user
 * and PVM_VMID. Return: its length.
 */
struct sockaddr_un;
unsigned int pvm_sock_addr(struct sockaddr_un *un);

/*
 * Return whether the process at the other end of @fd belongs to this user. @pid: receives its
 * id.
 */
bool pvm_same_user(int fd, int *pid);

#endif
