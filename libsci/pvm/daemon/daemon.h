/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: pvmd3
 *
 * One daemon runs on each host of a virtual machine. It starts tasks, keeps the list of
 * the tasks of its host, and reports the end of tasks to the other daemons. The first
 * daemon, the master, keeps the mail box and the groups, and adds hosts. Messages between
 * tasks do not pass through daemons.
 *
 * A single thread waits in epoll for the sockets of tasks, pipes with the output of tasks,
 * children that have ended, and the endpoint that receives the frames of other daemons. The
 * end of a task's socket is the end of the task. The end of a daemon's connection is the end
 * of its host.
 */
#ifndef LIBSCI_PVM_DAEMON_H
#define LIBSCI_PVM_DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <sci/msg.h>

#include "libsci/base/list.h"
#include "libsci/include/sci-pvm/pvm3.h"
#include "libsci/pvm/frame.h"

#define ARCH_NAME	"LINUX64"
#define DATA_SIGNATURE	0x408c41
#define HOST_SPEED	1000
#define TRACE_MASK_SIZE	36	/* bytes of a mask, with its zero */
#define TASK_FORKED	2	/* ti_flag, as in PVM: a child of the daemon */
#define TASK_CONNECTED	4	/* ti_flag, as in PVM: the task has enrolled */

/* A descriptor that epoll watches. */
struct watch {
	int fd;
	void (*ready)(struct watch *w, uint32_t events);
};

int watch_add(struct watch *w, int fd, uint32_t events,
	      void (*ready)(struct watch *w, uint32_t events));
void watch_mod(struct watch *w, uint32_t events);
/* Stop watching the descriptor, and close it. */
void watch_del(struct watch *w);

/* ---- hosts.c ---- */

struct add;

/*
 * DOC: how a host joins
 *
 * A daemon accepts no frames of unknown hosts, and frames of two senders have no order. So the
 * master announces a new host in three steps, and waits for the answers to each table.
 *
 * 1. The other hosts get a table with the new host as HOST_SHOWN. They accept frames of the new
 * host, but send no frames to it.
 * 2. The new host gets the table, and may send frames to all hosts.
 * 3. The other hosts get a table with the new host as HOST_JOINED. The request that has added the
 * host is answered when all hosts have that table.
 *
 * The first frame of a HOST_SHOWN host proves that the host has its table.
 */
enum host_state {
	HOST_STARTING,			/* the host's daemon has not sent OP_HELLO */
	HOST_SHOWN,			/* OP_HELLO has arrived; the host has no table */
	HOST_JOINING,			/* the master has sent the table; no answer yet */
	HOST_JOINED
};

/*
 * struct host - a host of the machine
 * @addr: the endpoint of the host's daemon
 * @sci: connection to the host's daemon; NULL: not connected yet
 * @out: frames that had no room, oldest first
 * @state: see DOC: how a host joins
 * @version: version of the table of hosts that the host has; the master keeps it
 * @awaited: version that hosts must have before this host's next step
 * @deadline: clock_ms() at which a host that has not joined has failed
 * @pid: the daemon or its remote shell; 0: no child of this daemon
 * @secret: proves the identity of the host's daemon; "": not known yet
 * @hosted: the hoster starts the host, on request @wid
 * @add: the request that adds the host; @slot: index of the host's result in the request
 */
struct host {
	int index;
	char *name;
	char *arch;
	struct sci_addr addr;
	struct sci_peer *sci;
	struct list out;
	enum host_state state;
	int version;
	int awaited;
	int64_t deadline;
	pid_t pid;
	char secret[33];
	bool hosted;
	int wid;
	struct add *add;
	int slot;
};

extern struct host *hosts[HOST_MAX + 1];
extern int own_host;			/* index of this host; 0: not known yet */
extern struct sci_ep *endpoint;

/* Become the master, or join the master at @master ("node:endpoint"). */
int hosts_init(const char *name, const char *master, bool by_hoster);
void hosts_fini(void);

static inline bool host_up(const struct host *h)
{
	return h && h->state == HOST_JOINED;
}

bool peer_known(struct sci_peer *peer);
/* Record that the host at the other end of @peer has sent a frame: a HOST_SHOWN host has joined. */
void host_heard(struct sci_peer *peer);
/* Handle received frames, send queued frames, and detect hosts that have ended. */
void hosts_progress(void);
/*
 * Remove hosts that have not joined in time, and end processes of removed hosts. Return: ms to the
 * next deadline; -1: none.
 */
int hosts_expire(void);
void hosts_add(const struct frame_head *head, struct body *b);
/* Add hosts for the resource manager: @b is an SM_ADD, and the answer is an SM_ADDACK. */
void hosts_add_managed(const struct frame_head *head, int ctx, int wid, struct body *b);
/* Set the result of @h, a host that was starting, to @error, and free @h. */
void host_failed(struct host *h, int error);
/* Accept @h as HOST_SHOWN: its daemon, at the other end of @from, has proved its identity. */
void host_joined(struct host *h, const char *arch, struct sci_peer *from);
/* Return the time that a host has to join, in milliseconds: SCI_PVM_START_MS. */
int start_ms(void);
void hosts_delete(const struct frame_head *head, struct body *b);
void host_hello(const struct frame_head *head, struct body *b, struct sci_peer *from);
void hosts_table(struct body *b);
/* Serve OP_HOSTS_KNOWN of host @index. */
void hosts_known(int index, struct body *b);
/* Serve OP_LOST on the master: a host has lost the connection to another host, which must leave. */
void host_lost(struct body *b);
/* Handle the end of process @pid. Return: false: @pid is not a daemon or a remote shell. */
bool host_starter_ended(pid_t pid);
/*
 * Ask the other hosts to end, and fail the hosts that are starting. @hard: kill the processes that
 * start hosts. Each of these processes leads a process group.
 */
void hosts_halt(bool hard);
bool hosts_left(void);

/* ---- link.c ---- */

/* Begin to receive frames of other daemons. Return: 0 or -errno. */
int arrivals_init(void);
/* Send a frame to the daemon of host @index. The bytes are copied. */
void host_send(int index, const struct frame_head *head, const void *body);
/* Send @f from this daemon to the daemon of host @index, and free @f. */
void host_tell(int index, struct frame *f);
/* Send @f to the daemons of all other hosts, and free @f. */
void hosts_broadcast(struct frame *f);
/* Send the frames that had no room, or free them. */
void host_push(struct host *h);
void host_frames_free(struct host *h);
/* Send @f to a daemon that does not know this host, and free @f. Return: 0 or -errno. */
int hello_push(struct sci_peer *peer, struct frame *f);
bool arrivals_any(void);
void arrivals_serve(void);
/* Wait for a frame. @timeout: milliseconds. Return: false: no frame has arrived. */
bool arrivals_wait(int timeout);
/* Free the received frames of @from, whose connection ends. */
void arrivals_drop(const struct sci_peer *from);
void stranger_end(struct sci_peer *peer);

/* ---- tasks.c ---- */

/*
 * struct task - a process of this host
 * @tid: 0: the process has not enrolled yet, or is not a task any more
 * @sock: .fd -1: the process has not connected yet, or its connection has ended
 * @output: pipe with the standard output and error of the process, or .fd -1
 * @siblings: NULL: not known yet
 */
struct task {
	struct list link;
	int tid;
	int shown_tid;			/* tid in messages about this task */
	int ptid;
	pid_t pid;
	int manager;			/* tid of its resource manager; 0: none */
	int status;			/* exit status, if @reaped */
	struct rusage usage;
	bool left;			/* the task has called pvm_exit() */
	bool told;			/* the end is reported to manager and tracer */
	bool child;			/* the process is a child of the daemon */
	bool reaped;			/* the child has ended */
	bool enrolled;
	int cookie;			/* PVMEPID of a task that the tasker starts */
	char *name;
	struct watch sock;
	struct watch output;
	uint8_t *in;
	size_t in_len, in_cap;
	uint8_t *out;
	size_t out_len, out_cap;
	struct sci_addr addr;
	int ctx;
	int opt[OPTS];
	int *siblings;
	int nsiblings;
};

extern struct list tasks;
int tasks_init(int listen_fd);
struct task *task_find(int tid);
struct task *task_new(void);
int tid_new(void);
void task_end(struct task *t);
void task_send(struct task *t, const struct frame_head *head, const void *body);
void tasks_halt(void);
void tasks_free_ended(void);
bool tasks_left(void);
void task_reaped(pid_t pid, int status, const struct rusage *usage);

/* ---- spawn.c ---- */
void spawn_serve(const struct frame_head *head, struct body *b);
/* Send an event to the sink of @t's output: end of the output, spawn or enrolment of @t. */
enum { TO_EOF = 0, TO_SPAWN = -1, TO_NEW = -2 };
void output_event(struct task *t, int event);
/* Report to the tasks of this host that no further output of @host's tasks arrives. */
void output_host_gone(int host);
void pick_serve(const struct frame_head *head, struct body *b);
/* Serve an SM_EXEC of the resource manager @from. */
void exec_serve(int from, int ctx, int wid, struct body *b);

/* ---- tasker.c ---- */

/* The task of this host that starts tasks for the daemon; 0: there is none. */
extern int tasker;
int tasker_set(int tid);	/* or unset the tasker, if it is @tid */
/* Let the tasker start @t. @env: name, value, ... NULL */
void tasker_start(struct task *t, char *const *argv, const char *const *env, int flags);
/* Handle the end of task @tid. If it was the tasker, end the tasks that it has not started. */
void tasker_ended(int tid);
void tasker_told(struct body *b);

/* ---- hoster.c ---- */

/* The task that starts daemons of other hosts for the master; 0: there is none. */
extern int hoster;
int hoster_set(int tid);
/* Let the hoster start the @n hosts of @list. */
void hoster_start(struct host *const *list, int n);
/* Handle the end of task @tid. If it was the hoster, fail the hosts that it has not started. */
void hoster_ended(int tid);
/* Handle an SM_STHOSTACK. @wid: wait id of the request */
void hoster_told(int wid, struct body *b);
/* Keep a hello until the hoster sends the hello's secret. Return: false: no hello is awaited. */
bool hoster_hello(const char *secret, const char *arch, struct sci_peer *from);
/* Free the hello of a connection that has ended. */
void hoster_peer_gone(struct sci_peer *peer);

/* ---- manager.c ---- */

/* The resource manager of tasks that enrol on this host from now on; 0: there is none. */
extern int manager;
/* Serve OP_MANAGER, on the master. */
void manager_serve(const struct frame_head *head);
/* Serve OP_NEW_MANAGER of the master. */
void manager_set(int tid);
/* Send the manager's tid to a host that has joined. */
void manager_tell(int host);
void manager_ended(int tid);
/* Report a new task, which was not spawned, to its manager. */
void manager_task_new(const struct task *t);
/* Report to the manager of @t that @t has ended or has left the machine. */
void manager_task_gone(const struct task *t);
void manager_host_gone(int host);
/* Serve OP_SM: a message of a task that has registered. */
void sm_serve(const struct frame_head *head, struct body *b);

/* ---- tracer.c ---- */

/*
 * struct tracer - the sink of traces and output of tasks without a sink
 * @tid: 0: there is no tracer
 * @mask, @bytes, @how: options of tracing for these tasks, as for pvm_reg_tracer()
 */
struct tracer {
	int tid;
	int opt[OPTS];
	char mask[TRACE_MASK_SIZE];
	int bytes;
	int how;
};

extern struct tracer tracer;
/* Register the sender of an OP_TRACER, or unregister it, on the master. */
void tracer_serve(const struct frame_head *head, struct body *b);
/* Serve OP_NEW_TRACER of the master. */
void tracer_set(struct body *b);
/* Send the tracer to a host that has joined. */
void tracer_tell(int host);
void tracer_ended(int tid);
/*
 * Make the tracer the sink of a new task, if the task has none.
 * @tid: OPT_OUT_TID or OPT_TRACE_TID. Return: whether the tracer is the sink now.
 */
bool tracer_sink(int opt[OPTS], enum task_opt tid);

/* ---- serve.c ---- */

/* Handle a frame of a task of this host (@t) or of a daemon (@from). */
void serve(struct frame_head *head, struct body *b, struct task *t,
	   struct sci_peer *from);
/* Answer the request @head. @f: a begun reply, or NULL. */
void answer(const struct frame_head *head, int status, struct frame *f);
/* Send a frame to its destination, which is a host or a task. */
void frame_route(struct frame_head *head, const void *body);
void message_send(int tid, int src, int ctx, int tag, const void *data, size_t len);
void message_send_wid(int tid, int src, int ctx, int tag, int wid, const void *data,
		      size_t len);
void put_word(uint8_t *to, uint32_t v);
/* Answer the requests to @host, whose daemon has ended, with PvmHostFail. */
void requests_fail(int host);
/* Handle the end of task @tid. A host's id stands for all tasks of that host. */
void task_ended(int tid);

static inline bool tid_matches(int tid, int which)
{
	return (uint32_t)which & TID_LOCAL_MASK ? tid == which :
		tid && TID_HOST(tid) == TID_HOST(which);
}
void where_serve(struct task *t);

/* ---- notify.c ---- */
void notify_serve(const struct frame_head *head, struct body *b);
void notify_task(int tid);
void notify_host_gone(int host);
void notify_hosts_new(const int *tids, int n);

/* ---- mbox.c ---- */
void mbox_serve(const struct frame_head *head, struct body *b);
void mbox_task_ended(int tid);

/* ---- groups.c ---- */
void group_serve(const struct frame_head *head, struct body *b);
void groups_task_ended(int tid);
/* Send task @tid the list of all groups, for GROUP_STATUS. */
void groups_tell(int tid, int ctx, int wid);

/* ---- trace.c ---- */

/*
 * Send the sink of @t's trace a record that @t has begun. @flags: of pvm_spawn(); -1: @t was not
 * spawned.
 * @spawned: also send a record that the parent has spawned @t
 */
void trace_task_new(const struct task *t, int flags, bool spawned);
void trace_task_ended(const struct task *t);
/* Serve OP_TRACE: relay records of a task to its sink. */
void trace_serve(const struct frame_head *head, struct body *b);

/* ---- main.c ---- */
__attribute__((format(printf, 1, 2))) void say(const char *fmt, ...);
/* Return the milliseconds of the monotonic clock. */
int64_t clock_ms(void);
/* Halt: ask tasks and hosts to end. The loop stops when they have ended. */
void daemon_halt(void);
extern bool halting;
extern const char *search_path;

#endif
