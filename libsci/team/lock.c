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
 */

#include "libsci/team/team.h"

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
	return (v & ~(ONE_TICKET - 1)) | (uint64_t)served << 32 | owner;
}

static int word_get(struct sci_team *t, uint64_t *lock, uint64_t *v)
{
	return sci_team_atomic(t, lock, 8, SCI_ATOMIC_GET, 0, 0, v, 0);
}

/* Replace *@v by @new. Return -EAGAIN if the word has changed, and set *@v to its value. */
static int word_change(struct sci_team *t, uint64_t *lock, uint64_t *v, uint64_t new)
{
	uint64_t old;
	int ret = sci_team_atomic(t, lock, 8, SCI_ATOMIC_CAS, new, *v, &old, 0);

	if (ret)
		return ret;
	ret = old == *v ? 0 : -EAGAIN;
	*v = old;
	return ret;
}

static bool owner_dead(struct sci_team *t, uint64_t v)
{
	uint32_t owner = owner_of(v);

	return owner && owner <= (uint32_t)t->world->size &&
	       world_dead(t->world, (int)owner - 1);
}

/* Take the lock if no other member has a ticket and the owner, if any, is dead. */
static int lock_try(struct sci_team *t, uint64_t *lock, uint32_t me)
{
	uint64_t v;
	int ret = word_get(t, lock, &v);

	while (!ret) {
		bool dead = owner_dead(t, v);
		uint16_t ticket = (uint16_t)(served_of(v) + dead);

		if ((owner_of(v) && !dead) || next_of(v) != ticket)
			return -EAGAIN;
		ret = word_change(t, lock, &v, lock_word(v + ONE_TICKET, ticket, me));
		if (!ret)
			return dead ? -EOWNERDEAD : 0;
		if (ret == -EAGAIN)
			ret = 0;
	}
	return ret;
}

/* Try to take the lock with @ticket. Set *@v. -EAGAIN: not current yet; -ESTALE: skipped. */
static int lock_try_ticket(struct sci_team *t, uint64_t *lock, uint16_t ticket, uint32_t me,
			   uint64_t *v, bool late)
{
	uint16_t ahead;
	int ret = word_get(t, lock, v);

	if (ret)
		return ret;
	ahead = (uint16_t)(ticket - served_of(*v));
	if (!ahead && !owner_of(*v))
		return word_change(t, lock, v, lock_word(*v, ticket, me));
	if (ahead == 1 && owner_dead(t, *v)) {
		ret = word_change(t, lock, v, lock_word(*v, ticket, me));
		return ret ? ret : -EOWNERDEAD;
	}
	/* skip the current ticket: its member does not use it */
	if (late && ahead && ahead < 0x8000 && (!owner_of(*v) || owner_dead(t, *v))) {
		ret = word_change(t, lock, v, lock_word(*v, (uint16_t)(served_of(*v) + 1),
							owner_of(*v)));
		return ret ? ret : -EAGAIN;
	}
	return ahead >= 0x8000 ? -ESTALE : -EAGAIN;
}

/* Take @ticket back if it is the last one. Otherwise the other members skip it after GRACE_MS. */
static void ticket_give_up(struct sci_team *t, uint64_t *lock, uint16_t ticket)
{
	uint64_t v;

	if (word_get(t, lock, &v))
		return;
	while (next_of(v) == (uint16_t)(ticket + 1) &&
	       word_change(t, lock, &v, v - ONE_TICKET) == -EAGAIN)
		;
}

/* Wake all waiters that are near rank 0, if a member has taken a later ticket. */
static void lock_wake(struct sci_team *t, uint64_t *lock, uint64_t v)
{
	uint32_t *word = sci_team_ptr(t, lock, 0);

	if (word && next_of(v) != (uint16_t)(served_of(v) + 1))
		team_futex_wake(word);
}

static int ticket_take(struct sci_team *t, uint64_t *lock, uint16_t *ticket)
{
	uint64_t v;
	int ret = sci_team_atomic(t, lock, 8, SCI_ATOMIC_ADD, ONE_TICKET, 0, &v, 0);

	*ticket = next_of(v);
	return ret;
}

int sci_team_lock(struct sci_team *team, uint64_t *lock, int timeout)
{
	uint64_t v = 0, seen = 0, since = team_now_ms();
	struct team_wait wait;
	uint32_t me, waiters;
	uint16_t ticket;
	int ret;

	if (!team || !lock)
		return -EINVAL;
	me = (uint32_t)team->world->rank + 1;
	ret = lock_try(team, lock, me);
	if (ret != -EAGAIN || !timeout)
		return ret;
	ret = ticket_take(team, lock, &ticket);
	team_wait_init(&wait, timeout);
	wait.word = sci_team_ptr(team, lock, 0);
	wait.waiters = &waiters;
	while (!ret) {
		bool late = wait.spins % 16 == 15 && team_now_ms() - since > GRACE_MS;

		ret = lock_try_ticket(team, lock, ticket, me, &v, late);
		if (ret == -ESTALE) {
			ret = ticket_take(team, lock, &ticket);
			continue;
		}
		if (ret != -EAGAIN)
			return ret;
		if (served_of(v) != served_of(seen) || owner_of(v) != owner_of(seen))
			since = team_now_ms();
		seen = v;
		wait.seen = owner_of(v);
		ret = team_wait_more(team->world, &wait);
		if (!ret && world_dead(team->world, team->members[0].world))
			return -ECONNRESET;
	}
	if (ret == -ETIMEDOUT)
		ticket_give_up(team, lock, ticket);
	return ret;
}

int sci_team_unlock(struct sci_team *team, uint64_t *lock)
{
	uint32_t me;
	uint64_t v;
	int ret;

	if (!team || !lock)
		return -EINVAL;
	me = (uint32_t)team->world->rank + 1;
	ret = sci_team_quiet(team);
	ret = ret ? ret : word_get(team, lock, &v);
	while (!ret) {
		if (owner_of(v) != me)
			return -EPERM;
		ret = word_change(team, lock, &v,
				  lock_word(v, (uint16_t)(served_of(v) + 1), 0));
		if (!ret)
			lock_wake(team, lock, v);
		if (ret != -EAGAIN)
			return ret;
		ret = 0;
	}
	return ret;
}
