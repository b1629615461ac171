/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: DECK
 *
 * The programming environment of "Low-latency and zero-copy message passing protocols for SCI-based
 * clusters" (de Oliveira and others): threads and semaphores for multiprogramming, mail boxes and
 * messages for communication. The paper describes the environment but gives no declarations. All
 * names except deck_mbox_post(), deck_mbox_retrv() and DECK_MSG_BUF_LIMIT are libsci's own.
 *
 *	message		an object that owns its buffer. The program packs values into
 *			the buffer and unpacks them, or uses the buffer's address.
 *	mail box	a queue of messages with a name. Threads of the process that
 *			creates the mail box retrieve messages from it. Threads of any
 *			process find it by its name, and post messages to it. Each
 *			posting process has its own ring in the mail box.
 *
 * The length and the buffer of a message select its protocol:
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
 *  - Several threads may make calls at the same time. Only one thread at a time may use a
 *    message. A signal handler must not make calls.
 *  - Lengths are in bytes. Timeouts are in milliseconds; -1 waits for ever, 0 does not wait.
 *  - Messages of one process to one mail box arrive in order.
 *  - Requests make progress while a thread of the process waits in a call; waits for semaphores
 *    and threads do not count.
 *  - When a process dies, posts to its mail boxes return -ECONNRESET within a second.
 *    Each waiting retrieve returns -ECONNRESET. For each mail box, the next retrieve that would
 *    have to wait returns -ECONNRESET, too. A retrieve first returns messages that have arrived.
 *    After -ECONNRESET the program may retrieve again, from the processes that are alive.
 *  - A child after fork() must not make calls, except calls on messages that were created with
 *    less than DECK_MSG_BUF_LIMIT bytes.
 */
#ifndef DECK_H
#define DECK_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct deck_msg deck_msg_t;		/* a message */
typedef struct deck_mbox deck_mbox_t;		/* a mail box, created or found */
typedef struct deck_req deck_req_t;		/* a non-blocking post or retrieve */
typedef struct deck_thread deck_thread_t;	/* a thread */
typedef struct deck_sem deck_sem_t;		/* a semaphore of this process */

#define DECK_NAME_MAX	63u			/* bytes of a mail box's name */

/* ---- start and end ---- */

/**
 * deck_init() - join the processes that were started together
 * @argc, @argv: arguments of main(), or NULL; the call does not change them
 *
 * This is a collective call of all processes that sci run or another launcher has started. A
 * process without a launcher is rank 0 of 1. The call starts one thread of the library, which
 * sleeps while no process looks up a name.
 * Return: 0; -EALREADY: the process has called deck_init(); -EAGAIN, -ENOMEM: out of resources;
 * or an error of sci_team_open() or sci_ep_open().
 */
int deck_init(int *argc, char ***argv);

/**
 * deck_done() - end the use of DECK
 *
 * This is a collective call of the processes that are alive. Before the call, the program destroys
 * all mail boxes that it has created or found, and all messages that it has created with
 * DECK_MSG_BUF_LIMIT bytes or more. No other thread may be in a call.
 * Return: 0; -EBUSY: a mail box or a message still exists, and DECK stays in use; -ECONNRESET:
 * a process has died, and DECK has ended in this process.
 */
int deck_done(void);

/* Return the rank of this process, from 0 to deck_size() - 1. */
int deck_rank(void);
/* Return the number of processes that were started together. */
int deck_size(void);
/* Return the number of the node of @rank, from 0 to deck_nodes() - 1. */
int deck_node(int rank);
/* Return the number of nodes on which these processes run. */
int deck_nodes(void);

/* Wait for all processes. One thread of each process calls. Return: as sci_team_barrier(). */
int deck_barrier(void);

/**
 * deck_broadcast() - send a message from one process to all processes
 * @msg: the message; the processes other than @root receive it
 * @root: rank of the process that sends its message
 *
 * One thread of each process makes this collective call.
 * Return: 0; -EMSGSIZE: the message was longer than @msg, which has its first bytes; -ENOMEM: no
 * memory to receive such a message, so this process has left the broadcast, and the others may wait
 * for it; or an error of sci_team_bcast().
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
 * @size: how many bytes the message may hold; may be 0
 *
 * A buffer of DECK_MSG_BUF_LIMIT bytes or more is exported memory: peers can write to it at any
 * time. Without deck_init() all buffers are private.
 * Return: 0; -ENOMEM, -ENOSPC: out of memory; or an error of sci_buf_alloc().
 */
int deck_msg_create(deck_msg_t **msg, size_t size);

/**
 * deck_msg_destroy() - free a message
 * @msg: the message; may be NULL
 * Return: 0; -EBUSY: a pending post or retrieve uses the message.
 */
int deck_msg_destroy(deck_msg_t *msg);

/* Make a message empty. The next value is packed at the start of the buffer. */
void deck_msg_clear(deck_msg_t *msg);

/* Let the next unpack begin at the start of the message. A retrieve does this, too. */
void deck_msg_rewind(deck_msg_t *msg);

/*
 * Return the address of a message's buffer, which is aligned to 64 bytes and valid while the
 * message exists. A program that writes to the buffer sets the length with deck_msg_set_length().
 */
void *deck_msg_address(deck_msg_t *msg);
/* Return how many bytes @msg may hold. */
size_t deck_msg_size(const deck_msg_t *msg);
/* Return how many bytes @msg holds. A post sends these bytes. */
size_t deck_msg_length(const deck_msg_t *msg);
/* Return how many bytes of @msg are not unpacked yet. */
size_t deck_msg_left(const deck_msg_t *msg);
/* Set the length of a message. Return: 0; -EMSGSIZE: @length is above the message's size. */
int deck_msg_set_length(deck_msg_t *msg, size_t length);

/* Return the rank of the process whose message @msg has retrieved last; -1: no such message. */
int deck_msg_source(const deck_msg_t *msg);

/**
 * deck_msg_pack(), deck_msg_unpack() - append bytes to a message, or take the next bytes out of it
 *
 * A message has its values in the format of the sender's memory, without padding and without types.
 * The receiver unpacks values in the order and with the types with which the sender has packed
 * them. deck_pack_int(msg, &i, 1) and functions like it pack an array of @n values of one type.
 * Return: 0; -EMSGSIZE: the bytes do not fit, or the message has fewer bytes, and the message does
 * not change.
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
 * deck_pack_string(), deck_unpack_string() - append a string to a message, or take the next string
 * @s: the string, or memory for the string
 * @size: how many bytes of memory @s has
 *
 * The message contains the length of the string, its bytes and the 0 at its end.
 * Return: 0; -EMSGSIZE: the string does not fit into the message, or into @s, or the message
 * has no string.
 */
int deck_pack_string(deck_msg_t *msg, const char *s);
int deck_unpack_string(deck_msg_t *msg, char *s, size_t size);

/* ---- mail boxes ---- */

/**
 * deck_mbox_create() - create a mail box
 * @box: is set to the mail box, from which any thread of this process may retrieve
 * @name: 1 to DECK_NAME_MAX bytes
 * Return: 0; -EEXIST: the program has a mail box of this name; -ECONNRESET: the process with the
 * name's entry in the name table has died; -ENOMEM; or an error of sci_ep_open().
 */
int deck_mbox_create(deck_mbox_t **box, const char *name);

/**
 * deck_mbox_find() - find a mail box of any process
 * @box: is set to the mail box, to which any thread may post. A second find in the same
 *	process returns the same mail box.
 * @name: the name of the mail box
 * @timeout: how long to wait for its creation and the connection; 0: wait for the connection only
 * Return: 0; -EAGAIN, with a timeout of 0: no mail box has this name; -ETIMEDOUT: no mail box has
 * this name, or the process with its entry in the name table, or the mail box's process, has not
 * answered in time; -ENOENT: the mail box was destroyed during the call; -ECONNRESET: one of these
 * two processes has died or cannot be reached; -ENOMEM; or an error of sci_connect().
 */
int deck_mbox_find(deck_mbox_t **box, const char *name, int timeout);

/**
 * deck_mbox_destroy() - destroy a mail box, or end its use
 * @box: the mail box; may be NULL. No other thread may use it.
 *
 * The program makes this call once for each create and each find. When the creator destroys the
 * mail box, messages in it are lost. Posts return -ENOTCONN after their process has detected it.
 * Return: 0; -ENOMEM: out of memory: the mail box is destroyed, but its name is still in use.
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
 * destroyed; -EBUSY: a pending post or retrieve uses @msg; -ENOMEM.
 */
int deck_mbox_post(deck_mbox_t *box, deck_msg_t *msg);

/**
 * deck_mbox_retrv() - get the next message from a mail box
 * @box: a mail box that this process has created
 * @msg: the call replaces its content
 * Return: 0; -EMSGSIZE: the message was longer than @msg, which has its first bytes;
 * -ECONNRESET: a process has died, see the rules for all calls; -EBUSY: a pending post or
 * retrieve uses @msg; -ENOMEM.
 */
int deck_mbox_retrv(deck_mbox_t *box, deck_msg_t *msg);

/**
 * deck_mbox_timedpost(), deck_mbox_timedretrv() - post or retrieve with a timeout
 * @timeout: how long to wait
 *
 * A retrieve that has begun to receive a message waits for all bytes of the message.
 * Return: as deck_mbox_post() or deck_mbox_retrv(); with a timeout of 0 -EAGAIN, else
 * -ETIMEDOUT: no message was posted or retrieved; -EINPROGRESS, from a post: the transfer of the
 * message has begun, and the library uses @msg until deck_msg_wait() returns.
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
 * @msg: the message; the library uses it until deck_wait() has ended the request
 * @req: is set to the request
 *
 * Requests of one mail box get messages in the order in which they were begun.
 * Return: 0; -EBUSY: a pending post or retrieve uses @msg; -ENOMEM; from a post also the
 * errors of deck_mbox_post().
 */
int deck_mbox_ipost(deck_mbox_t *box, deck_msg_t *msg, deck_req_t **req);
int deck_mbox_iretrv(deck_mbox_t *box, deck_msg_t *msg, deck_req_t **req);

/**
 * deck_wait() - wait for a post or retrieve
 * @req: the request; invalid after the call unless it returns -EAGAIN or -ETIMEDOUT
 * @timeout: how long to wait
 * Return: with a timeout of 0 -EAGAIN, else -ETIMEDOUT: the request is still pending; -ECANCELED:
 * deck_cancel() has ended it; or the value of deck_mbox_post() or deck_mbox_retrv().
 */
int deck_wait(deck_req_t *req, int timeout);

/**
 * deck_cancel() - cancel a request
 * @req: the request; the program still calls deck_wait() for it
 * Return: 0; -EBUSY: the transfer has begun, and the request will complete. The transfer of a long
 * message begins when the post announces the message to the mail box.
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
/* Detach a thread, which runs on and cannot be joined. Return: 0. */
int deck_thread_detach(deck_thread_t *thread);
/* End the calling thread. */
void deck_thread_exit(void *result);
/* Yield the CPU to another thread. */
void deck_thread_yield(void);

/* ---- semaphores ---- */

/* Create a semaphore of this process. Return: 0; -ENOMEM. */
int deck_sem_create(deck_sem_t **sem, unsigned int value);
/* Free a semaphore; may be NULL. No thread may wait for it. Return: 0. */
int deck_sem_destroy(deck_sem_t *sem);

/* Wait until the value of @sem is not 0, and subtract 1 (P). Return: 0. */
int deck_sem_wait(deck_sem_t *sem);
/*
 * Do what deck_sem_wait() does, for at most @timeout. Return: 0; with a timeout of 0 -EAGAIN, else
 * -ETIMEDOUT: the value was 0 all the time.
 */
int deck_sem_timedwait(deck_sem_t *sem, int timeout);
/* Add 1 to the value of @sem (V). Return: 0; -EOVERFLOW: the value is the largest possible. */
int deck_sem_post(deck_sem_t *sem);
/* Return the value of a semaphore. */
int deck_sem_value(deck_sem_t *sem);

#ifdef __cplusplus
}
#endif

#endif
