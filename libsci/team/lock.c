// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: locks
 *
 * A lock is a word in the memory of rank 0: the next ticket, the current ticket, and the owner. A
 * member takes a ticket by one atomic addition. The member with the current ticket writes its rank
 * as the owner. So all members can read the owner, and the member with the next ticket takes the
 * lock from a dead owner. The word does not show which member has a ticket: if the current ticket
 * is not used within GRACE_MS, because its member has died or timed out, the other members skip it.
 * A member whose ticket has been skipped takes another ticket.
 *
 * These are instructions of the members that are near rank 0. Rank 0 executes them for the far
 * members: see lock_far.c.
 */

#include "libsci/team/lock.h"

#include <sched.h>

#define GRACE_MS	100u
#define ONE_TICKET	((uint64_t)1 << 48)

static uint16_t next_of(uint64_t v)
{
	return (uint16_t)(v >> 48);
}

static uint16_t served_of(uint64_t v)
{
	return (uint16_t)(v >> 32);
}

static uint32_t owner_of(uint64_t v)
{
	return (uint32_t)v;		/* world rank + 1; 0: the lock is free */
}

static uint64_t lock_word(uint64_t v, uint16_t served, uint32_t owner)
{
	return (v & ~(ONE_TICKET - 1)) | served * ((uint64_t)1 << 32) | owner;
}

static bool owner_dead(struct team_world *w, uint64_t v)
{
	uint32_t owner = owner_of(v);

	return owner && owner <= (uint32_t)w->size && world_dead(w, (int)owner - 1);
}

int lock_try(struct team_world *w, struct lock_wait *l)
{
	uint64_t v = sci_load_acquire(l->word);

	for (;;) {
		bool dead = owner_dead(w, v);
		uint16_t ticket = (uint16_t)(served_of(v) + dead);

		if ((owner_of(v) && !dead) || next_of(v) != ticket)
			return -EAGAIN;
		l->dead_owner = owner_of(v);
		if (sci_compare_exchange(l->word, &v, lock_word(v + ONE_TICKET, ticket,
								(uint32_t)l->member + 1)))
			return dead ? -EOWNERDEAD : 0;
	}
}

/* Write what follows the ownership of @member, and wake the waiters. */
static int lock_pass(uint64_t *word, int member, uint16_t steps, uint32_t owner)
{
	uint64_t v = sci_load_acquire(word);

	do {
		if (owner_of(v) != (uint32_t)member + 1)
			return -EPERM;
	} while (!sci_compare_exchange(word, &v, lock_word(v, (uint16_t)(served_of(v) + steps),
							   owner)));
	if (next_of(v) != (uint16_t)(served_of(v) + 1))
		team_futex_wake((uint32_t *)word);
	return 0;
}

int lock_release(uint64_t *word, int member)
{
	return lock_pass(word, member, 1, 0);
}

void lock_give_back(const struct lock_wait *l)
{
	lock_pass(l->word, l->member, 0, l->dead_owner);
}

void lock_wait_begin(struct lock_wait *l, uint64_t *word, int member)
{
	*l = (struct lock_wait){
		.word = word, .member = member, .since_ms = team_now_ms(),
		.seen = sci_fetch_add(word, ONE_TICKET),
	};
	l->ticket = next_of(l->seen);
}

int lock_wait_step(struct team_world *w, struct lock_wait *l)
{
	uint64_t v = sci_load_acquire(l->word);
	uint16_t ahead = (uint16_t)(l->ticket - served_of(v));
	bool dead = owner_dead(w, v);

	if (ahead >= 0x8000) {
		lock_wait_begin(l, l->word, l->member);
		return -EAGAIN;
	}
	if (served_of(v) != served_of(l->seen) || owner_of(v) != owner_of(l->seen))
		l->since_ms = team_now_ms();
	l->seen = v;
	if (owner_of(v) && !dead)
		return -EAGAIN;
	if (ahead == dead) {
		l->dead_owner = owner_of(v);
		if (!sci_compare_exchange(l->word, &v, lock_word(v, l->ticket,
								 (uint32_t)l->member + 1)))
			return -EAGAIN;
		return dead ? -EOWNERDEAD : 0;
	}
	if (ahead && team_now_ms() - l->since_ms > GRACE_MS)
		(void)sci_compare_exchange(l->word, &v,
					   lock_word(v, (uint16_t)(served_of(v) + 1),
						     owner_of(v)));
	return -EAGAIN;
}

void lock_wait_cancel(struct lock_wait *l)
{
	uint64_t v = sci_load_acquire(l->word);

	/* after the ticket was skipped, next_of() must not become less than served_of() */
	while (next_of(v) == (uint16_t)(l->ticket + 1) &&
	       (uint16_t)(l->ticket - served_of(v)) < 0x8000 &&
	       !sci_compare_exchange(l->word, &v, v - ONE_TICKET))
		;
}

/* Let processes run that the lock's owner may wait for, after an attempt that has failed. */
static void lock_near_busy(struct team_world *w)
{
	if (w->far)
		world_poll(w);
	if (w->crowded)
		sched_yield();
}

static int lock_near_take(struct sci_team *t, uint64_t *word, int timeout)
{
	struct team_world *w = t->world;
	struct lock_wait l = { .word = word, .member = w->rank };
	struct team_wait wait;
	uint32_t waiters;
	int ret = lock_try(w, &l);

	if (ret != -EAGAIN)
		return ret;
	if (!timeout) {
		lock_near_busy(w);
		return ret;
	}
	lock_wait_begin(&l, word, w->rank);
	team_wait_init(&wait, timeout);
	wait.word = (uint32_t *)word;
	wait.waiters = &waiters;
	while ((ret = lock_wait_step(w, &l)) == -EAGAIN) {
		wait.seen = owner_of(l.seen);
		ret = team_wait_more(w, &wait);
		if (!ret && world_dead(w, t->members[0].world))
			ret = -ECONNRESET;
		if (ret) {
			lock_wait_cancel(&l);
			return ret;
		}
	}
	return ret;
}

/* Find the lock's word. *@word is set to NULL if rank 0 is a far member. */
static int lock_find(struct sci_team *t, uint64_t *lock, uint64_t **word)
{
	const struct sci_key *key;
	uint64_t offset;
	void *ptr = NULL;
	int ret;

	if (!t || !lock || (size_t)lock % sizeof(*lock))
		return -EINVAL;
	ret = world_usable(t->world);
	ret = ret ? ret : symmetric_at(t, lock, sizeof(*lock), 0, &ptr, &key, &offset);
	*word = ptr;
	return ret;
}

/* Return whether the member with the lock's word is dead. The word may read as zero then. */
static bool lock_lost(const struct sci_team *t)
{
	int home = t->members[0].world;
	struct sci_peer *p = sci_load_acquire(&t->world->ranks[home].peer);

	return world_dead(t->world, home) || (p && sci_peer_state(p) == -ECONNRESET);
}

int sci_team_lock(struct sci_team *team, uint64_t *lock, int timeout)
{
	uint64_t *word;
	int ret = lock_find(team, lock, &word);

	if (ret)
		return ret;
	if (!word)
		return lock_far_take(team, lock, timeout);
	ret = lock_near_take(team, word, timeout);
	return lock_lost(team) ? -ECONNRESET : ret;
}

int sci_team_unlock(struct sci_team *team, uint64_t *lock)
{
	uint64_t *word;
	int ret = lock_find(team, lock, &word), quiet;

	if (ret)
		return ret;
	quiet = sci_team_quiet(team);
	ret = word ? lock_release(word, team->world->rank) : lock_far_release(team, lock);
	/* rank 0 may have to give the lock to a far member */
	if (word && team->world->far)
		world_poll(team->world);
	if (ret == -EPERM && word && lock_lost(team))
		ret = -ECONNRESET;
	return ret ? ret : quiet;
}
