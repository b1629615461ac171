/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the service of a fabric
 *
 * The service gives a fabric three things: a table of its descriptors, a thread that waits for
 * them, and fork handlers that close them in the child.
 *
 * The child closes the descriptors in the table. So fork() must not come between the opening of a
 * descriptor and its entry in the table, or between its removal and its closing: both are under
 * the lock. If the system call takes long, it runs with the gate held for reading, and only the
 * table is changed under the lock.
 *
 * The first sci_watch() starts the thread. The thread calls watch functions under the lock:
 * once a watch has ended, its function is not called any more.
 *
 * Lock order: gate, lock. A holder of the lock does not block.
 */
#ifndef LIBSCI_SERVICE_H
#define LIBSCI_SERVICE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsci/base/list.h"

struct sci_service;

typedef void (*sci_watch_fn)(void *obj);

/* An open descriptor of the fabric, and the function that handles its events. */
struct sci_watch {
	bool open;
	uint32_t gen;			/* detects an event of an earlier watch */
	sci_watch_fn fn;
	void *obj;
	uint32_t events;
	bool paused;
};

/**
 * struct sci_service_ops - functions of a fabric, called under the lock
 * @forked: Clean up in a child after its descriptors have been closed; may be NULL.
 * @exiting: Send what waits for further work: the program ends; may be NULL.
 * @link: Take the link down or up, as SCI_FAULT demands.
 * @poll: Look for work that no descriptor reports; may be NULL. While @poll returns true, the
 *	service thread calls it again and again instead of sleeping. @crowded: other threads have
 *	used this CPU since the last call
 * @above: true: the fabric calls other fabrics with its lock held, so fork() takes that lock first
 */
struct sci_service_ops {
	void (*forked)(struct sci_service *svc);
	void (*exiting)(struct sci_service *svc);
	void (*link)(struct sci_service *svc, bool down);
	bool (*poll)(struct sci_service *svc, bool crowded);
	bool above;
};

struct sci_service {
	const struct sci_service_ops *ops;
	struct list all;		/* link in the list of all services */
	pthread_rwlock_t gate;
	pthread_mutex_t lock;		/* covers all objects of the fabric */
	struct sci_watch *fds;
	size_t n_fds;
	int epfd;
	int wakefd;			/* an eventfd that wakes the thread */
	bool serving;
	bool stop;
	/* set by a watch function that could not serve its descriptor */
	bool starved;
	uint64_t polls;			/* loops of the thread without a sleep */
	pthread_t thread;
	uint64_t forked_ms;		/* when this process was last forked */
	uint64_t begin_ms;
	bool link_down;			/* injected state of the link */
	uint64_t changed_ms;		/* time of the link's last change */
	uint64_t down_ms;		/* earlier down time of the link */
};

/**
 * sci_service_open() - begin to set a fabric up
 *
 * Context: svc->lock is held on return, also after an error. No fork() happens until
 * sci_service_opened().
 */
int sci_service_open(struct sci_service *svc,
		     const struct sci_service_ops *ops);

/**
 * sci_service_opened() - end the set-up of a fabric, and unlock
 * @ret: the result of the set-up; after 0 the link gets its injected state
 *
 * Return: @ret, or an error of this call.
 */
int sci_service_opened(struct sci_service *svc, int ret);

/* End the thread. Descriptors stay open. */
void sci_service_stop(struct sci_service *svc);

/* Close all descriptors, after sci_service_stop(). */
void sci_service_close(struct sci_service *svc);

/* Make room for a descriptor in the table; svc->lock is held. Return: 0 or -ENOMEM. */
int sci_fd_prepare(struct sci_service *svc, int fd);

/* Add a descriptor to the table, or close it if there is no memory; svc->lock is held. */
int sci_fd_track(struct sci_service *svc, int fd);
void sci_fd_untrack(struct sci_service *svc, int fd);
void sci_fd_close(struct sci_service *svc, int fd);

/**
 * sci_fd_pass_rights() - let the peers of a Unix socket send descriptors, or refuse them
 *
 * The kernel closes a descriptor that the receiver does not take, and this close may block: a TCP
 * socket of the peer lingers as long as the peer demands. So a stranger must not send any. An
 * accepted socket inherits the state from the listening socket. Before Linux 6.16 the call has no
 * effect.
 */
void sci_fd_pass_rights(int fd, bool pass);

/**
 * sci_watch() - have the service thread call @fn while @fd has @events
 *
 * The first watch starts the thread.  Context: svc->lock is held, also during @fn.
 */
int sci_watch(struct sci_service *svc, int fd, uint32_t events,
	      sci_watch_fn fn, void *obj);
void sci_unwatch(struct sci_service *svc, int fd);

/* Change the @events of a watched descriptor; svc->lock is held. */
void sci_watch_events(struct sci_service *svc, int fd, uint32_t events);

/**
 * sci_watch_pause() - stop reporting events of @fd, or report them again
 *
 * Unlike a second sci_watch(), this call needs no memory, so it cannot fail.
 * Context: svc->lock is held.
 */
void sci_watch_pause(struct sci_service *svc, int fd, bool pause);

/* Get the time since the link came up, and its total injected down time; svc->lock is held. */
void sci_service_link_times(struct sci_service *svc, uint64_t *up_ms,
			    uint64_t *down_ms);

/**
 * sci_forked_lately() - test whether a new child may still hold a name of this process
 *
 * The child of a fork() has this process's descriptors until it has closed them.  A name
 * that the process releases meanwhile becomes free a moment later.  The call pauses for
 * 1 ms before it returns true.
 *
 * Context: svc->lock is not held.
 */
bool sci_forked_lately(struct sci_service *svc);

#endif
