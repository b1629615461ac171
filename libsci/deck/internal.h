/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: inside DECK
 *
 * Each mail box is an endpoint. The DECK paper gives each posting process a ring in the mail box:
 * these are the rings of the endpoint's connections. A retrieve is a receive from any connection.
 * All threads of a process post from one endpoint, the port. The port also owns the exported
 * buffers and shares them with the endpoints of the mail boxes.
 *
 *	message.c, pack.c	message objects
 *	buffer.c		exported memory for them
 *	mbox.c			post and retrieve
 *	find.c			create, find and destroy mail boxes by name
 *	service.c		the library's thread: names, connections, deaths
 *	world.c			start and end
 *	thread.c, semaphore.c	multiprogramming
 *
 * Locks: world.lock covers the lists of own mail boxes and of buffers, and the service's questions.
 * An endpoint's lock is taken inside world.lock.
 */
#ifndef LIBSCI_DECK_INTERNAL_H
#define LIBSCI_DECK_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sci/msg.h>
#include <sci/team.h>

/* the functions of deck.h are exported, all others are hidden */
#pragma GCC visibility push(default)
#include <deck.h>
#pragma GCC visibility pop

#include "libsci/base/compiler.h"
#include "libsci/base/list.h"

/* ---- messages ---- */

struct deck_msg {
	uint8_t *buf;
	size_t size;
	size_t length;
	size_t at;			/* offset of the next value to be unpacked */
	int source;
	bool exported;
	bool busy;			/* a request uses the message */
	struct deck_req *posted;	/* a post that has timed out and is still under way */
};

/* ---- exported buffers ---- */

#define BUF_CLASSES	9u		/* pieces of 1 KiB to 256 KiB */
#define BUF_CHUNK	(256u << 10)	/* bytes of a chunk, which is cut into pieces */
#define BUF_KEPT_MAX	(32u << 20)	/* bytes of free larger buffers */

/* Memory that the endpoint has exported: a chunk of pieces, or one larger buffer. */
struct deck_chunk {
	struct list link;		/* world.chunks */
	struct list free;		/* world.kept, if it is a free larger buffer */
	void *addr;
	size_t size;
};

/*
 * The free pieces of one size, in an array: peers can write to a piece, so no list link is in it.
 */
struct deck_pieces {
	void **free;
	size_t n;
	size_t room;			/* entries of @free, enough for all pieces */
};

struct deck_world;

int deck_buf_get(struct deck_world *w, size_t size, void **out);
void deck_buf_put(struct deck_world *w, uint8_t *buf, size_t size);
int deck_bufs_share(struct deck_world *w, struct sci_ep *ep);
void deck_bufs_free(struct deck_world *w);

/* ---- mail boxes ---- */

struct deck_mbox {
	struct list link;		/* world.boxes or world.found */
	struct sci_ep *ep;		/* NULL: a mail box of another process */
	_Atomic(struct sci_peer *) to;	/* the port's connection to the mail box */
	struct sci_peer *_Atomic control; /* the service's connection, by which it reports deaths */
	_Atomic unsigned int waiting;	/* retrieves under way */
	_Atomic bool has_gone;		/* deck_mbox_free_gone() has connections left to free */
	struct sci_peer *gone;		/* one of them, under world.lock */
	_Atomic unsigned int longer;	/* posts of more than a line */
	_Atomic unsigned int requests;	/* non-blocking retrieves under way */
	struct sci_addr addr;
	unsigned int refs;		/* creates and finds */
	bool busy;			/* a thread makes or ends the connection */
	int owner;
	char name[DECK_NAME_MAX + 1];
};

struct deck_req {
	struct sci_req *req;
	struct deck_mbox *box;
	struct deck_msg *msg;
	bool retrieve;
};

/*
 * Each connection of a mail box has a pointer that identifies the other side: the rank of a
 * port, plus 1; or MBOX_CONTROL for the service, which reports deaths.
 */
#define MBOX_CONTROL	((void *)-1)

int deck_mbox_open(struct deck_world *w, const char *name, struct deck_mbox **out);
void deck_mbox_close(struct deck_world *w, struct deck_mbox *box);
/* Find a mail box by its address, or return NULL. */
struct deck_mbox *deck_mbox_at(struct list *boxes, const struct sci_addr *addr);
void deck_mbox_free_gone(struct deck_mbox *box);
int deck_mbox_tell_death(struct deck_mbox *box);
/* Make progress for requests: see mbox.c. The caller sets @looks to 0 before its first call. */
int deck_requests_poll(struct deck_world *w, const _Atomic unsigned int *own,
		       unsigned int *looks);
void deck_peer_set_rank(struct sci_peer *peer, int rank);
int deck_mbox_reach(struct deck_mbox *box, struct sci_peer **to);

/* ---- the service ---- */

enum note_op {
	NOTE_CREATE,			/* name, rank and addr of a mail box */
	NOTE_DESTROY,			/* name, rank and addr of a mail box */
	NOTE_FIND,			/* find a name: answered when it exists */
	NOTE_FIND_NOW,			/* find a name: answered at once */
	NOTE_FORGET,			/* cancel the question with this token; no answer */
	NOTE_OPEN,			/* connect the mail box at addr to the port of rank */
	NOTE_DEATH,			/* rank has died; no answer */
	NOTE_STOP,			/* end the service thread of the sender's process */
};

/* A question to another process's service, and the answer. */
struct deck_note {
	uint32_t op;
	uint32_t token;			/* chosen by the asking side; 0: not a question */
	int32_t rank;
	int32_t error;			/* in an answer: 0 or a negative errno */
	struct sci_addr addr;
	char name[DECK_NAME_MAX + 1];
};

/* A question that this process has sent. */
struct deck_ask {
	struct sci_req *req;		/* receives the answer */
	const _Atomic bool *dead;	/* whether the asked process has died */
	uint32_t token;
	struct deck_note answer;
};

#define NAME_BUCKETS	64u

struct deck_service {
	struct sci_ep *ep;
	pthread_t thread;
	_Atomic uint32_t tokens;
	_Atomic bool *dead;		/* by rank; set by the service thread */
	struct list questions;		/* questions without an answer, under world.lock */
	/* only the service's thread uses the members below */
	struct list names[NAME_BUCKETS];
	int neighbour[2];		/* watched ranks: the living ones before and after */
};

int deck_service_start(struct deck_world *w);
void deck_service_stop(struct deck_world *w);
int deck_service_home(const struct deck_world *w, const char *name);
int deck_service_ask(struct deck_world *w, int rank, const struct deck_note *note,
		struct deck_ask *ask);
int deck_service_tell(struct deck_world *w, int rank, const struct deck_note *note);
int deck_service_answer(struct deck_ask *ask, int timeout);
int deck_service_give_up(struct deck_world *w, int rank, struct deck_ask *ask);
int deck_service_call(struct deck_world *w, int rank, struct deck_note *note);
/* End the connections that the service makes to a mail box. Context: world.lock is held. */
void deck_connects_end(struct deck_world *w, const struct deck_mbox *box);

/* ---- the process ---- */

/* The addresses of a process's endpoints. */
struct deck_ends {
	struct sci_addr port;
	struct sci_addr service;
};

struct deck_world {
	struct sci_team *team;
	struct sci_ep *port;
	struct deck_ends *ends;		/* by rank */
	int rank;
	int size;
	size_t limit;			/* size from which on message buffers are exported */
	pthread_mutex_t lock;
	struct list boxes;		/* mail boxes of this process */
	pthread_mutex_t find_lock;	/* covers @found, all refs and busy; taken before @lock */
	pthread_cond_t find_cond;	/* a mail box is no longer busy */
	struct list found;
	struct list chunks;
	struct list kept;
	size_t kept_bytes;
	struct deck_pieces pieces[BUF_CLASSES];
	unsigned int exported;		/* messages in exported buffers */
	_Atomic unsigned int requests;	/* posts and retrieves with a deck_req_t */
	_Atomic unsigned int posts;	/* the posts among @requests */
	struct deck_service service;
};

/* Return the world; NULL: deck_init() has not been called. */
struct deck_world *deck_world(void);

#endif
