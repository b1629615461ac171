/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Calls on a lock's word that this process reaches by loads and stores: see lock.c. */
#ifndef LIBSCI_TEAM_LOCK_H
#define LIBSCI_TEAM_LOCK_H

#include "libsci/team/team.h"

/**
 * struct lock_wait - a ticket of a waiter
 * @word: the lock's word
 * @seen: the last value of the word
 * @since_ms: when the current ticket or the owner in @seen has changed
 * @member: world rank of the waiter
 * @dead_owner: owner in the word before @member took the lock from it
 */
struct lock_wait {
	uint64_t *word;
	uint64_t seen;
	uint64_t since_ms;
	int member;
	uint32_t dead_owner;
	uint16_t ticket;
};

/*
 * Take the lock for @l->member if no member has a ticket and the owner, if any, is dead.
 * Return 0, -EOWNERDEAD, or -EAGAIN.
 */
int lock_try(struct team_world *w, struct lock_wait *l);

/* Release the lock of @member, and wake the waiters that sleep on the word. Return 0 or -EPERM. */
int lock_release(uint64_t *word, int member);

/* Take a ticket. */
void lock_wait_begin(struct lock_wait *l, uint64_t *word, int member);

/*
 * Take the lock if the ticket is current. Skip the current ticket if its member does not use it. If
 * the waiter's own ticket has been skipped, take another ticket.
 * Return 0, -EOWNERDEAD, or -EAGAIN.
 */
int lock_wait_step(struct team_world *w, struct lock_wait *l);

/* Give a lock back to its dead owner: the next member that takes the lock gets -EOWNERDEAD. */
void lock_give_back(const struct lock_wait *l);

/* Give the ticket back if it is the last one. Otherwise the other members skip it. */
void lock_wait_cancel(struct lock_wait *l);

/* ---- lock_far.c: a word that this process does not reach ---- */

/* The arguments are those of sci_team_lock() and sci_team_unlock(). */
int lock_far_take(struct sci_team *t, uint64_t *lock, int timeout);
int lock_far_release(struct sci_team *t, uint64_t *lock);

#endif
