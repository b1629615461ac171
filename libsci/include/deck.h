/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: DECK
 *
 * The programming environment of "Low-latency and zero-copy message passing protocols
 * for SCI-based clusters" (de Oliveira and others): threads and semaphores for
 * multiprogramming, mail boxes and messages for communication. The paper describes
 * what there is, but gives no declarations. So all names but deck_mbox_post(),
 * deck_mbox_retrv() and DECK_MSG_BUF_LIMIT are libsci's own.
 *
 *	message		an object that owns its buffer. Values are packed into it, and
 *			unpacked from it, or the program uses the buffer's address.
 *	mail box	a thread creates it under a name, and retrieves messages from
 *			it. Threads of any process find it by this name, and post
 *			messages to it. Each posting process has a ring of its own in
 *			the mail box.
 *
 * How a message travels depends on its length and its buffer:
 *
 *	up to 62 bytes		one 64-byte line (the paper's protocol 1)
 *	longer ones		lines, or blocks of a ring (protocol 2)
 *	created with a size of DECK_MSG_BUF_LIMIT or more, on both sides
 *				from buffer to buffer without a copy (protocol 3)
 *
 * Rules for all calls:
 *  - They return 0 (or what they say) or a negative errno value; errno itself means
 *    nothing after a call. -EINVAL: an argument is NULL or out of range.
 *  - Any threads may make calls at once. One message is used by one thread at a time.
 *    Nothing here may be called from a signal handler.
 *  - Lengths are bytes. Timeouts are milliseconds; -1 waits for ever, 0 not at all.
 *  - Messages of one process to one mail box arrive in order.
 *  - When a process dies, posts to its mail boxes return -ECONNRESET within a second.
 *    So does, once, each retrieve that waits, and of each mail box the next one that
 *    would have to wait. Messages that have arrived before come first. A program that
 *    calls again waits for the processes that live.
 *  - A child after fork() must not make calls, other than those of messages shorter
 *    than the limit.
 */
#ifndef DECK_H
#define DECK_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct deck_msg deck_msg_t;		/* a message */
typedef struct deck_mbox deck_mbox_t;		/* a mail box, own or found */
typedef struct deck_req deck_req_t;		/* a post or retrieve under way */
typedef struct deck_thread deck_thread_t;	/* a thread */
typedef struct deck_sem deck_sem_t;		/* a semaphore of this process */

#define DECK_NAME_MAX	63u			/* bytes of a mail box's name */

/* ---- start and end ---- */

/**
 * deck_init() - join the processes that were started together
 * @argc, @argv: of main(), or NULL; left as they are today
 *
 * Collective over all processes, which sci run or another launcher has started; a
 * process that was started alone is rank 0 of 1. Starts one thread of the library's,
 * which sleeps while no names are looked up.
 *
 * -EALREADY: done before; else as sci_team_open().
 */
int deck_init(int *argc, char ***argv);

/**
 * deck_done() - leave
 *
 * Collective over the processes that live: returns when all have called it. Mail
 * boxes, found ones too, and messages of the limit or more must have been destroyed,
 * and no other thread may be in a call. -EBUSY: some have not been; -ECONNRESET: a
 * process has died; the caller has left all the same.
 */
int deck_done(void);

int deck_rank(void);		/* of this process: 0 .. deck_size() - 1 */
int deck_size(void);		/* number of processes */
int deck_node(int rank);	/* number of @rank's node: 0 .. deck_nodes() - 1 */
int deck_nodes(void);

/* Wait for all processes; one thread of each calls. As sci_team_barrier(). */
int deck_barrier(void);

/**
 * deck_broadcast() - give all processes a message of one of them
 * @root: whose message it is; on the others @msg receives it
 *
 * Collective, by one thread of each. All messages have been created with the same
 * size. As sci_team_bcast(). -EMSGSIZE: it is longer than @msg.
 */
int deck_broadcast(deck_msg_t *msg, int root);

/* ---- messages ---- */

/*
 * Default of DECK_MSG_BUF_LIMIT in the environment, in bytes. A message that is
 * created with this size or more has its buffer in exported memory.
 */
#define DECK_MSG_BUF_LIMIT	1024u

/**
 * deck_msg_create() - create an empty message
 * @msg: the message
 * @size: how many bytes it may hold; 0 is allowed
 *
 * Peers may write to the buffer of DECK_MSG_BUF_LIMIT bytes or more at any time, as
 * they may to any exported memory. Without deck_init() all buffers are private.
 * -ENOMEM, -ENOSPC.
 */
int deck_msg_create(deck_msg_t **msg, size_t size);

/* NULL is allowed. -EBUSY: a post or retrieve under way uses it. */
int deck_msg_destroy(deck_msg_t *msg);

/* It is empty: the next value is packed at its start. */
void deck_msg_clear(deck_msg_t *msg);

/* The next value is unpacked from its start. Retrieves do that, too. */
void deck_msg_rewind(deck_msg_t *msg);

/*
 * The buffer, aligned to 64 bytes, as long as the message exists. A program that
 * writes to it says with deck_msg_set_length() how many bytes the message has.
 */
void *deck_msg_address(deck_msg_t *msg);
size_t deck_msg_size(const deck_msg_t *msg);	/* what it may hold */
size_t deck_msg_length(const deck_msg_t *msg);	/* what it holds, and a post sends */
size_t deck_msg_left(const deck_msg_t *msg);	/* ... that is not unpacked yet */
int deck_msg_set_length(deck_msg_t *msg, size_t length); /* -EMSGSIZE: above its size */

/* The rank of the process that posted what was retrieved last; -1: none was. */
int deck_msg_source(const deck_msg_t *msg);

/**
 * deck_msg_pack() - append bytes
 * deck_msg_unpack() - take the next bytes
 *
 * Nothing stands between values: they are sent as they lie in memory, and unpacked in
 * the order and by the types with which they were packed. -EMSGSIZE: they do not fit,
 * or there are not so many: nothing has been packed or unpacked.
 */
int deck_msg_pack(deck_msg_t *msg, const void *data, size_t len);
int deck_msg_unpack(deck_msg_t *msg, void *data, size_t len);

/*
 * The same for arrays of @n values of each type: deck_pack_int(msg, &i, 1).
 */
#define DECK_TYPES(X)							\
	X(char, char)							\
	X(schar, signed char)						\
	X(uchar, unsigned char)						\
	X(short, short)							\
	X(ushort, unsigned short)					\
	X(int, int)							\
	X(uint, unsigned int)						\
	X(long, long)							\
	X(ulong, unsigned long)						\
	X(float, float)							\
	X(double, double)						\
	X(ldouble, long double)						\
	DECK_TYPES_C99(X)

#if defined(__cplusplus) && __cplusplus >= 201103L
#define DECK_TYPES_C99(X)						\
	X(llong, long long)						\
	X(ullong, unsigned long long)					\
	X(bool, bool)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L
#define DECK_TYPES_C99(X)						\
	X(llong, long long)						\
	X(ullong, unsigned long long)					\
	X(bool, _Bool)							\
	DECK_TYPES_COMPLEX(X)
#else
#define DECK_TYPES_C99(X)
#endif

#ifndef __STDC_NO_COMPLEX__
#define DECK_TYPES_COMPLEX(X)						\
	X(fcomplex, float _Complex)					\
	X(dcomplex, double _Complex)					\
	X(ldcomplex, long double _Complex)
#else
#define DECK_TYPES_COMPLEX(X)
#endif

#define DECK_DECLARE(name, type)					\
	int deck_pack_##name(deck_msg_t *msg, const type *v, size_t n);	\
	int deck_unpack_##name(deck_msg_t *msg, type *v, size_t n);
DECK_TYPES(DECK_DECLARE)
#undef DECK_DECLARE

/* With its length and the 0 at its end. @size: of @s. -EMSGSIZE: also, it is longer. */
int deck_pack_string(deck_msg_t *msg, const char *s);
int deck_unpack_string(deck_msg_t *msg, char *s, size_t size);

/* ---- mail boxes ---- */

/**
 * deck_mbox_create() - create a mail box
 * @box: to retrieve from, by any thread of this process, and to post to
 * @name: of 1 to DECK_NAME_MAX bytes; no other mail box of the program has it
 *
 * -EEXIST: there is one of this name; errors of sci_ep_open().
 */
int deck_mbox_create(deck_mbox_t **box, const char *name);

/**
 * deck_mbox_find() - find a mail box of any process
 * @box: to post to; the same one as long as this process has it
 * @timeout: how long to wait for its creation
 *
 * -EAGAIN with a timeout of 0, else -ETIMEDOUT: there is none yet; -ENOENT: it was
 * destroyed meanwhile; -ECONNRESET: the process that keeps this name, or has the mail
 * box, has died.
 */
int deck_mbox_find(deck_mbox_t **box, const char *name, int timeout);

/**
 * deck_mbox_destroy() - give a mail box back
 *
 * Called once for each create and find. When its creator destroys it, messages in it
 * are lost, and posts return -ENOTCONN as soon as their process has noticed. No other
 * thread may be using @box. NULL is allowed.
 */
int deck_mbox_destroy(deck_mbox_t *box);

int deck_mbox_owner(const deck_mbox_t *box);		/* its creator's rank */
const char *deck_mbox_name(const deck_mbox_t *box);

/**
 * deck_mbox_post() - send a message to a mail box
 *
 * Returns when the message is the caller's again: its bytes are then in the mail box,
 * or in the message that has retrieved them. Long messages wait for the retrieve.
 *
 * -ECONNRESET: the mail box's process has died; -ENOTCONN: the mail box, or this
 * process, is gone; -EBUSY: a post or retrieve under way uses @msg; -ENOMEM.
 */
int deck_mbox_post(deck_mbox_t *box, deck_msg_t *msg);

/**
 * deck_mbox_retrv() - get the next message from a mail box
 * @box: one that this process has created
 * @msg: its content is replaced
 *
 * -EMSGSIZE: the message was longer than @msg, which has its beginning; -ECONNRESET: a
 * process has died, see above.
 */
int deck_mbox_retrv(deck_mbox_t *box, deck_msg_t *msg);

/*
 * The same for at most @timeout. -EAGAIN with a timeout of 0, else -ETIMEDOUT: nothing
 * was posted or retrieved. A message that has begun to arrive arrives to its end.
 * -EINPROGRESS, of posts: the mail box has been told of a long message, which stays the
 * library's until deck_msg_wait().
 */
int deck_mbox_timedpost(deck_mbox_t *box, deck_msg_t *msg, int timeout);
int deck_mbox_timedretrv(deck_mbox_t *box, deck_msg_t *msg, int timeout);
int deck_mbox_trypost(deck_mbox_t *box, deck_msg_t *msg);
int deck_mbox_tryretrv(deck_mbox_t *box, deck_msg_t *msg);

/*
 * Wait for the post of @msg that has returned -EINPROGRESS; as deck_wait(). -ENOENT:
 * there is none.
 */
int deck_msg_wait(deck_msg_t *msg, int timeout);

/**
 * deck_mbox_ipost(), deck_mbox_iretrv() - begin a post or a retrieve
 * @req: to be waited for
 *
 * @msg is the library's until then. Requests of one mail box get messages in the order
 * in which they were begun.
 */
int deck_mbox_ipost(deck_mbox_t *box, deck_msg_t *msg, deck_req_t **req);
int deck_mbox_iretrv(deck_mbox_t *box, deck_msg_t *msg, deck_req_t **req);

/**
 * deck_wait() - wait for a post or retrieve
 * @req: gone, unless -EAGAIN or -ETIMEDOUT is returned
 *
 * -EAGAIN with a timeout of 0, else -ETIMEDOUT: not yet. Else as the blocking call.
 */
int deck_wait(deck_req_t *req, int timeout);

/*
 * Give up a request, which is still to be waited for. -EBUSY: too late, it will complete;
 * of a post also, the mail box has been told of it.
 */
int deck_cancel(deck_req_t *req);

/* ---- threads ---- */

/**
 * deck_thread_create() - start a thread
 * @thread: until deck_thread_join() or deck_thread_detach()
 *
 * A POSIX thread: all of pthreads works with it. -EAGAIN, -ENOMEM: out of resources.
 */
int deck_thread_create(deck_thread_t **thread, void *(*fn)(void *arg), void *arg);

/* @result: what its function returned; may be NULL. -EDEADLK: it is the caller. */
int deck_thread_join(deck_thread_t *thread, void **result);
int deck_thread_detach(deck_thread_t *thread);
void deck_thread_exit(void *result);		/* end the calling thread */
void deck_thread_yield(void);			/* let another thread run */

/* ---- semaphores ---- */

int deck_sem_create(deck_sem_t **sem, unsigned int value);
int deck_sem_destroy(deck_sem_t *sem);		/* nobody waits for it; NULL is allowed */

/* Wait until its value is not 0, and take one from it (P). */
int deck_sem_wait(deck_sem_t *sem);
/* -EAGAIN with a timeout of 0, else -ETIMEDOUT. */
int deck_sem_timedwait(deck_sem_t *sem, int timeout);
/* Add one (V). -EOVERFLOW. */
int deck_sem_post(deck_sem_t *sem);
int deck_sem_value(deck_sem_t *sem);

#ifdef __cplusplus
}
#endif

#endif
