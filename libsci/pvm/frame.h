/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: frames
 *
 * Tasks and daemons exchange frames: a head, and a body of numbers and strings in
 * the byte order of the host. A task and its daemon exchange frames on a Unix socket.
 * Daemons forward frames as messages of libsci. Messages between tasks are not frames:
 * a task sends them to the endpoint of the other task.
 *
 * A request names the host that answers it in head.dst. The daemon of the sender fills
 * in head.src. The answer is an OP_REPLY to head.src with the same head.seq.
 */
#ifndef LIBSCI_PVM_FRAME_H
#define LIBSCI_PVM_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_MAX	(1u << 30)	/* bytes of a body */
#define FRAME_VERSION	3

/*
 * Task ids, as in PVM: bit 31 marks a daemon; 12 bits are the host, and 18 bits are a number that
 * the host's daemon assigns. In tables of hosts the daemon of host 1 has the id 0x40000.
 */
#define TID_DAEMON	0x80000000u
#define TID_HOST_SHIFT	18
#define TID_HOST_MASK	0x3ffc0000u
#define TID_LOCAL_MASK	0x0003ffffu
#define TID_HOST(tid)	(((uint32_t)(tid) & TID_HOST_MASK) >> TID_HOST_SHIFT)
#define TID_OF_HOST(h)	((uint32_t)(h) << TID_HOST_SHIFT)
#define HOST_MAX	0xfffu
#define TO_OWN		0u		/* destination: the daemon of the sender */
#define TO_MASTER	TID_DAEMON	/* destination: the first daemon */

/*
 * Messages of taskers (T), hosters (H) and resource managers (R) with daemons (d) and other tasks
 * (t), in XDR. A colon separates the request and the reply. A reply has the tag of the request or
 * its ...ACK, and the wait id of the request. Each host in a reply is: tid or error, name,
 * architecture, speed, signature.
 */
#define SM(n)		((int)(0x80040001u + (n)))
#define SM_SPAWN	SM(0)	/* t-R file, flags, where, n, args, 6 numbers, env: n, tids */
#define SM_EXEC		SM(1)	/* R-d parent, file, flags, n, args, 6 numbers, env */
#define SM_EXECACK	SM(2)	/* d-R n, tids */
#define SM_TASK		SM(3)	/* t-R tid or 0: error, then tasks */
#define SM_CONFIG	SM(4)	/* t-R nothing: n, architectures, hosts */
#define SM_ADDHOST	SM(5)	/* t-R n, names: n, architectures, hosts */
#define SM_DELHOST	SM(6)	/* t-R n, names: n, results */
#define SM_ADD		SM(7)	/* R-d n, names */
#define SM_ADDACK	SM(8)	/* d-R n, architectures, hosts */
#define SM_NOTIFY	SM(9)	/* t-R what, ctx, tag, count, tids; no reply */
#define SM_TASKX	SM(10)	/* T-d, d-R tid, status, times: a task has ended */
#define SM_HOSTX	SM(11)	/* d-R tid: a host has left */
#define SM_HANDOFF	SM(12)	/* R-d tid: new manager of tasks that enrol later */
#define SM_SCHED	SM(13)	/* t-R register: old manager, a host */
#define SM_STHOST	SM(14)	/* d-H n, then tid, options, login, command, "", VMID */
#define SM_STHOSTACK	SM(15)	/* H-d n, then tid, the daemon's line or an error's name */
#define SM_STTASK	SM(16)	/* d-T tid, flags, path, argc, argv, n, env */

/*
 * The id of the server of groups for PVM's tools. No task has this id: the first daemon answers
 * GROUP_STATUS with n, then for each group length of name, name, size, n, barrier, arrived, tids.
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
	OP_ENROL,	/* version, PVMEPID or 0, node, endpoint */
	OP_EXIT,
	OP_SPAWN,	/* see pvm_spawn() */
	OP_SIBLINGS,	/* list of the tids of one spawn; to the daemon of @dst */
	OP_GET_SIBLINGS,
	OP_WHERE,	/* tid: node, endpoint; waits until the task has enrolled */
	OP_SIGNAL,	/* tid, signal */
	OP_TASKS,	/* tid or 0 */
	OP_CONFIG,
	OP_PICK,	/* flags, where, n: hosts for n tasks */
	OP_NOTIFY,	/* what, ctx, tag, count, tids */
	OP_CONTEXT,	/* 0: allocate a context; else free this context */
	OP_PUTINFO,	/* name, flags, enc, body: index */
	OP_RECVINFO,	/* name, index, flags */
	OP_DELINFO,	/* name, index, flags */
	OP_MBOXES,	/* pattern */
	OP_MBOX_RESET,	/* list of tids: keep the entries of these tasks only */
	OP_ADDHOSTS,	/* list of names: list of tids or errors */
	OP_DELHOSTS,
	OP_HALT,
	OP_CLOCK,	/* nothing: seconds, microseconds of @dst's clock */
	OP_SETOPT,	/* enum task_opt, value */
	OP_GROUP,	/* enum group_op, name, a number */
	OP_TASKER,	/* register the sender as tasker of its host, or unregister */
	OP_HOSTER,	/* register the sender as hoster, or unregister it */
	OP_MANAGER,	/* register the sender as resource manager: old manager, a host */
	OP_TRACER,	/* ctx, tag, ctx, tag of output, mask, bytes, option; or unregister */
	OP_TRACE,	/* dst, ctx, tag, bytes: records for the sink of a trace */
	OP_SM,		/* ctx, tag, wid, bytes: an SM_ message to the daemon @dst */
	/* between daemons */
	OP_HELLO,	/* secret, name, architecture, node, endpoint */
	OP_HOSTS,	/* the table of hosts: see table_send() */
	OP_HOSTS_KNOWN,	/* version of the table that the sender has; to the master */
	OP_EXITED,	/* tid; sent to daemons, and to tasks for a host */
	OP_LOST,	/* node, endpoint: of a daemon whose connection has ended; to the master */
	OP_CHECK,	/* tid: answer OP_EXITED if there is no such task */
	OP_NEW_MANAGER,	/* tid: new manager; sent to daemons and to tasks */
	OP_NEW_TRACER,	/* tid or 0, enum task_opt, mask, bytes, option */
	OP_BYE		/* end all tasks of the host, and its daemon */
};

enum task_opt { OPT_OUT_TID, OPT_OUT_CTX, OPT_OUT_TAG, OPT_TRACE_TID, OPT_TRACE_CTX,
	OPT_TRACE_TAG, OPTS };

struct frame_head {
	uint32_t len;		/* bytes of the body */
	uint16_t op;
	uint16_t reserved;
	int32_t status;
	uint32_t seq;
	uint32_t src;
	uint32_t dst;
};

/* A frame being written. It begins with the head. All zeros is an empty frame. */
struct frame {
	uint8_t *data;
	size_t len;
	size_t cap;
	bool failed;		/* no memory: the frame must not be sent */
};

void frame_begin(struct frame *f, enum frame_op op, uint32_t dst);
void frame_free(struct frame *f);
void frame_i32(struct frame *f, int32_t value);
/* Append a string. NULL is sent as the empty string. */
void frame_str(struct frame *f, const char *s);
/* Append the number of bytes, then the bytes. */
void frame_bytes(struct frame *f, const void *data, size_t len);
void frame_ints(struct frame *f, const int *v, int n);

/* Set the length in the head. Return: the head; NULL: @f has failed. */
struct frame_head *frame_head(struct frame *f);

/* The body of a frame that is being read. A read past its end sets @bad. */
struct body {
	const uint8_t *at;
	size_t left;
	bool bad;
};

int32_t body_i32(struct body *b);
/* Return a string inside the body; "" if the body has no further string. */
const char *body_str(struct body *b);
const void *body_bytes(struct body *b, size_t *len);
/* Get a list of numbers. Return their count. @v points into the body and may be unaligned. */
int body_ints(struct body *b, const void **v);
int ints_at(const void *v, int i);

/*
 * frame_next() - take the first frame of a stream's bytes
 * @head: receives the head of the frame
 * @body: points into @data
 *
 * Return: the frame's length; 0: the frame is incomplete; -EPROTO: the bytes are not a frame.
 */
long frame_next(const uint8_t *data, size_t len, struct frame_head *head,
		struct body *body);

/* Return the value of the environment variable @name, or @value if it is unset or empty. */
const char *pvm_env_or(const char *name, const char *value);

/*
 * Compose the address of the daemon's socket: an abstract name with the fabric, the node, the user
 * and PVM_VMID. Return: the length of the address.
 */
struct sockaddr_un;
unsigned int pvm_sock_addr(struct sockaddr_un *un);

/*
 * Return whether the process at the other end of @fd belongs to this user. *@pid: its process id.
 */
bool pvm_same_user(int fd, int *pid);

#endif
