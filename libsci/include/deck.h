/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: DECK
 *
 * The programming environment of "Low-latency and zero-copy message passing protocols for SCI-based
 * clusters" (de Oliveira and others): threads and semaphores for multiprogramming, mail boxes and
 * messages for communication. The paper describes the environment but gives no declarations. So all
 * names but deck_mbox_post(), deck_mbox_retrv() and DECK_MSG_BUF_LIMIT are libsci's own.
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
 *	longer messages		lines, or blocks of a ring (protocol 2)
 *	created with a size of DECK_MSG_BUF_LIMIT or more, on both sides
 *				from buffer to buffer without a copy (protocol 3)
 *
 * Rules for all calls:
 *  - A call returns 0, or the value in its description, or a negative errno value. errno
 *    itself is undefined after a call. -EINVAL: an argument is NULL or out of range.
 *    -ENOTCONN: the process has not called deck_init(), or has called deck_done().
 *  - Any threads may make calls at once. Only one thread at a time may use a message.
 *    A signal handler must not make calls.
 *  - Lengths are bytes. Timeouts are milliseconds; -1 waits for ever, 0 not at all.
 *  - Messages of one process to one mail box arrive in order.
 *  - When a process dies, posts to its mail boxes return -ECONNRESET within a second.
 *    Each retrieve that waits returns -ECONNRESET once. So does, for each mail box, the
 *    next retrieve that would have to wait. A retrieve returns messages that have
 *    arrived first. A program that calls again waits for the processes that live.
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
 * @argc, @argv: of main(), or NULL; the call does not change them
 *
 * Collective over all processes that sci run or another launcher has started. A process
 * without a launcher is rank 0 of 1. The call starts one thread of the library, which
 * sleeps while no process looks up a name.
 * Return: 0; -EALREADY: the process has called it before; -EAGAIN, -ENOMEM: out of resources;
 * or an error of sci_team_open() or sci_ep_open().
 */
int deck_init(int *argc, char ***argv);

/**
 * deck_done() - leave the program's processes
 *
 * Collective over the processes that live: returns when all of them have called it. The
 * program must have destroyed all mail boxes, found ones too, and all messages of the limit
 * or more. No other thread may be in a call.
 * Return: 0; -EBUSY: a mail box or a message is left, and nothing has changed; -ECONNRESET:
 * a process has died, and the caller has left all the same.
 */
int deck_done(void);

/* Return the rank of this process, from 0 to deck_size() - 1. */
int deck_rank(void);
/* Return the number of processes. */
int deck_size(void);
/* Return the number of the node of @rank, from 0 to deck_nodes() - 1. */
int deck_node(int rank);
/* Return the number of nodes. */
int deck_nodes(void);

/* Wait for all processes; one thread of each calls. Return: as sci_team_barrier(). */
int deck_barrier(void);

/**
 * deck_broadcast() - give all processes a message of one of them
 * @msg: the message; the processes other than @root receive it
 * @root: the process whose message it is
 *
 * Collective, by one thread of each process. All messages have been created with the same size.
 * Return: 0; -EMSGSIZE: the message is longer than @msg; or an error of sci_team_bcast().
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
 * @msg: is set to the message
 * @size: how many bytes it may hold; may be 0
 *
 * Peers may write to the buffer of DECK_MSG_BUF_LIMIT bytes or more at any time, as
 * they may to any exported memory. Without deck_init() all buffers are private.
 * Return: 0; -ENOMEM, -ENOSPC: out of memory; or an error of sci_buf_alloc().
 */
int deck_msg_create(deck_msg_t **msg, size_t size);

/**
 * deck_msg_destroy() - free a message
 * @msg: the message; may be NULL
 * Return: 0; -EBUSY: a post or retrieve under way uses it.
 */
int deck_msg_destroy(deck_msg_t *msg);

/* Make a message empty. The next value is packed at its start. */
void deck_msg_clear(deck_msg_t *msg);

/* Unpack the next value from the start of the message. A retrieve does this, too. */
void deck_msg_rewind(deck_msg_t *msg);

/*
 * Return the address of the buffer. It is aligned to 64 bytes and valid as long as the message
 * exists. A program that writes to the buffer sets the message's length with deck_msg_set_length().
 */
void *deck_msg_address(deck_msg_t *msg);
/* Return how many bytes the message may hold. */
size_t deck_msg_size(const deck_msg_t *msg);
/* Return how many bytes the message holds. A post sends these. */
size_t deck_msg_length(const deck_msg_t *msg);
/* Return how many bytes the message holds that are not unpacked yet. */
size_t deck_msg_left(const deck_msg_t *msg);
/* Set the length. Return: 0; -EMSGSIZE: @length is above the message's size. */
int deck_msg_set_length(deck_msg_t *msg, size_t length);

/*
 * Return the rank of the process that posted the message that @msg has retrieved last. -1:
 * it has retrieved none.
 */
int deck_msg_source(const deck_msg_t *msg);

/**
 * deck_msg_pack(), deck_msg_unpack() - append bytes, take the next bytes
 *
 * Nothing stands between values. Values travel as they lie in memory. The receiver unpacks them in
 * the order and by the types with which the sender has packed them. deck_pack_int(msg, &i, 1) and
 * functions like it do the same with an array of @n values of one type.
 * Return: 0; -EMSGSIZE: the bytes do not fit, or the message has fewer, and nothing has been
 * packed or unpacked.
 */
int deck_msg_pack(deck_msg_t *msg, const void *data, size_t len);
int deck_msg_unpack(deck_msg_t *msg, void *data, size_t len);

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

/**
 * deck_pack_string(), deck_unpack_string() - append a string, take the next string
 * @s: the string, or memory for it
 * @size: how many bytes of memory @s has
 *
 * The string travels with its length and the 0 at its end.
 * Return: 0; -EMSGSIZE: the string does not fit into the message, or into @s, or the message
 * has none.
 */
int deck_pack_string(deck_msg_t *msg, const char *s);
int deck_unpack_string(deck_msg_t *msg, char *s, size_t size);

/* ---- mail boxes ---- */

/**
 * deck_mbox_create() - create a mail box
 * @box: is set to the mail box, from which any thread of this process may retrieve
 * @name: 1 to DECK_NAME_MAX bytes
 * Return: 0; -EEXIST: the program has a mail box of this name; -ECONNRESET: the process that
 * keeps this name has died; -ENOMEM; or an error of sci_ep_open().
 */
int deck_mbox_create(deck_mbox_t **box, const char *name);

/**
 * deck_mbox_find() - find a mail box of any process
 * @box: is set to the mail box, to which any thread may post. A second find in the same
 *	process gives the same one.
 * @name: its name
 * @timeout: how long to wait for its creation and the connection; 0: wait for the connection only
 * Return: 0; -EAGAIN, with a timeout of 0: no mail box has this name; -ETIMEDOUT: the same, or the
 * process that keeps this name, or has the mail box, has not answered in time; -ENOENT: the mail
 * box was destroyed during the call; -ECONNRESET: the process that keeps this name, or has the mail
 * box, has died or cannot be reached; -ENOMEM; or an error of sci_connect().
 */
int deck_mbox_find(deck_mbox_t **box, const char *name, int timeout);

/**
 * deck_mbox_destroy() - give up a mail box
 * @box: the mail box; may be NULL. No other thread may use it.
 *
 * The program calls it once for each create and each find. When the creator gives the mail box
 * up, messages in it are lost. Posts return -ENOTCONN as soon as their process has noticed.
 * Return: 0; -ENOMEM: the process that keeps the name has not been told.
 */
int deck_mbox_destroy(deck_mbox_t *box);

/* Return the rank of the process that has created the mail box. */
int deck_mbox_owner(const deck_mbox_t *box);
/* Return the name of the mail box, which is valid until deck_mbox_destroy(). */
const char *deck_mbox_name(const deck_mbox_t *box);

/**
 * deck_mbox_post() - send a message to a mail box
 * @box: the mail box
 * @msg: the message
 *
 * The call returns when the program may use @msg again. Its bytes are then in the mail box, or
 * in the message that has retrieved them. A long message waits for the retrieve.
 * Return: 0; -ECONNRESET: the mail box's process has died; -ENOTCONN: the mail box is
 * destroyed; -EBUSY: a post or retrieve under way uses @msg; -ENOMEM.
 */
int deck_mbox_post(deck_mbox_t *box, deck_msg_t *msg);

/**
 * deck_mbox_retrv() - get the next message from a mail box
 * @box: a mail box that this process has created
 * @msg: the call replaces its content
 * Return: 0; -EMSGSIZE: the message was longer than @msg, which has its beginning;
 * -ECONNRESET: a process has died, see the rules for all calls; -EBUSY: a post or retrieve
 * under way uses @msg; -ENOMEM.
 */
int deck_mbox_retrv(deck_mbox_t *box, deck_msg_t *msg);

/**
 * deck_mbox_timedpost(), deck_mbox_timedretrv() - post or retrieve within a time
 * @timeout: how long to wait
 *
 * A message that has begun to arrive arrives to its end.
 * Return: as deck_mbox_post() or deck_mbox_retrv(); with a timeout of 0 -EAGAIN, else
 * -ETIMEDOUT: nothing was posted or retrieved; -EINPROGRESS, from a post: the mail box knows of
 * a long message already. The library uses @msg until deck_msg_wait().
 */
int deck_mbox_timedpost(deck_mbox_t *box, deck_msg_t *msg, int timeout);
int deck_mbox_timedretrv(deck_mbox_t *box, deck_msg_t *msg, int timeout);

/* Post or retrieve without waiting. Return: as deck_mbox_timedpost() with a timeout of 0. */
int deck_mbox_trypost(deck_mbox_t *box, deck_msg_t *msg);
int deck_mbox_tryretrv(deck_mbox_t *box, deck_msg_t *msg);

/**
 * deck_msg_wait() - wait for a post that has returned -EINPROGRESS
 * @msg: the message of this post
 * @timeout: how long to wait
 * Return: as deck_wait(); -ENOENT: no such post is under way.
 */
int deck_msg_wait(deck_msg_t *msg, int timeout);

/**
 * deck_mbox_ipost(), deck_mbox_iretrv() - begin a post or a retrieve
 * @msg: the library uses it until deck_wait() has ended the request
 * @req: is set to the request
 *
 * Requests of one mail box get messages in the order in which they were begun.
 * Return: 0; -EBUSY: a post or retrieve under way uses @msg; -ENOMEM; from a post also the
 * errors of deck_mbox_post().
 */
int deck_mbox_ipost(deck_mbox_t *box, deck_msg_t *msg, deck_req_t **req);
int deck_mbox_iretrv(deck_mbox_t *box, deck_msg_t *msg, deck_req_t **req);

/**
 * deck_wait() - wait for a post or retrieve
 * @req: the request; invalid after the call unless it returns -EAGAIN or -ETIMEDOUT
 * @timeout: how long to wait
 * Return: with a timeout of 0 -EAGAIN, else -ETIMEDOUT: the request is still under way; -ECANCELED:
 * deck_cancel() has ended it; or the value of deck_mbox_post() or deck_mbox_retrv().
 */
int deck_wait(deck_req_t *req, int timeout);

/**
 * deck_cancel() - give up a request
 * @req: the request; the program still calls deck_wait() for it
 * Return: 0; -EBUSY: it is too late, and the request will complete. For a post that is so, too,
 * when the mail box knows of the message already.
 */
int deck_cancel(deck_req_t *req);

/* ---- threads ---- */

/**
 * deck_thread_create() - start a thread
 * @thread: is set to the thread; valid until deck_thread_join() or deck_thread_detach()
 * @fn: the thread's function
 * @arg: the function's argument
 *
 * The thread is a POSIX thread: all functions of pthreads work with it.
 * Return: 0; -EAGAIN, -ENOMEM: out of resources.
 */
int deck_thread_create(deck_thread_t **thread, void *(*fn)(void *arg), void *arg);

/**
 * deck_thread_join() - wait for the end of a thread
 * @result: receives what the thread's function has returned; may be NULL
 * Return: 0; -EDEADLK: @thread is the calling thread.
 */
int deck_thread_join(deck_thread_t *thread, void **result);
/* Give up a thread, which runs on. Return: 0. */
int deck_thread_detach(deck_thread_t *thread);
/* End the calling thread. */
void deck_thread_exit(void *result);
/* Let another thread run. */
void deck_thread_yield(void);

/* ---- semaphores ---- */

/* Create a semaphore of this process. Return: 0; -ENOMEM. */
int deck_sem_create(deck_sem_t **sem, unsigned int value);
/* Free a semaphore, for which no thread may wait; may be NULL. Return: 0. */
int deck_sem_destroy(deck_sem_t *sem);

/* Wait until the value is not 0, and subtract 1 (P). Return: 0. */
int deck_sem_wait(deck_sem_t *sem);
/*
 * As deck_sem_wait(), for at most @timeout. Return: 0; with a timeout of 0 -EAGAIN, else
 * -ETIMEDOUT: the value was 0 all the time.
 */
int deck_sem_timedwait(deck_sem_t *sem, int timeout);
/* Add 1 to the value (V). Return: 0; -EOVERFLOW: the value is the largest possible one. */
int deck_sem_post(deck_sem_t *sem);
/* Return the value of a semaphore. */
int deck_sem_value(deck_sem_t *sem);

#ifdef __cplusplus
}
#endif

#endif
