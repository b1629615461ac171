// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Calls that wait until words in the caller's own memory satisfy a condition. */

#include "libsci/team/team.h"

static uint64_t word_load(const void *p, unsigned int size)
{
	switch (size) {
	case 2:
		return sci_load_acquire((const uint16_t *)p);
	case 4:
		return sci_load_acquire((const uint32_t *)p);
	default:
		return sci_load_acquire((const uint64_t *)p);
	}
}

static int64_t sign_extend(uint64_t v, unsigned int size)
{
	return size == 2 ? (int16_t)v : size == 4 ? (int32_t)v : (int64_t)v;
}

#define COMPARE(a, b, cmp)						\
	((cmp) == SCI_CMP_GT ? (a) > (b) : (cmp) == SCI_CMP_GE ? (a) >= (b) : \
	 (cmp) == SCI_CMP_LT ? (a) < (b) : (a) <= (b))

static bool word_compare(uint64_t word, uint64_t value, unsigned int size, unsigned int cmp)
{
	uint64_t mask = size == 8 ? UINT64_MAX : ((uint64_t)1 << 8 * size) - 1;
	unsigned int kind = cmp & ~(unsigned int)SCI_CMP_UNSIGNED;

	word &= mask;
	value &= mask;
	if (kind == SCI_CMP_EQ || kind == SCI_CMP_NE)
		return (word == value) == (kind == SCI_CMP_EQ);
	if (cmp & SCI_CMP_UNSIGNED)
		return COMPARE(word, value, kind);
	return COMPARE(sign_extend(word, size), sign_extend(value, size), kind);
}

static bool words_ok(const struct sci_words *w)
{
	return w && (w->size == 2 || w->size == 4 || w->size == 8) &&
	       !((size_t)w->words % w->size) && (w->words || !w->n) &&
	       (w->cmp & ~(unsigned int)SCI_CMP_UNSIGNED) <= SCI_CMP_LE;
}

static bool word_holds(const struct sci_words *w, size_t i)
{
	uint64_t value = w->value;

	if (w->values)
		value = word_load((const char *)w->values + i * w->size, w->size);
	return word_compare(word_load((const char *)w->words + i * w->size, w->size), value,
			    w->size, w->cmp);
}

/* Poll or sleep once. After an error (-EAGAIN: @timeout is 0), the caller checks once more. */
static int words_wait(struct sci_team *t, struct team_wait *wait, int timeout)
{
	int ret;

	if (!timeout) {
		world_poll(t->world);
		return -EAGAIN;
	}
	ret = team_wait_more(t->world, wait);
	return ret ? ret : team_check(t);
}

static int words_begin(struct sci_team *t, const struct sci_words *w, int timeout,
		       struct team_wait *wait)
{
	if (!t || !words_ok(w))
		return -EINVAL;
	team_wait_init(wait, timeout);
	wait->own = true;
	return world_usable(t->world);
}

int sci_team_wait_all(struct sci_team *team, const struct sci_words *w, int timeout)
{
	struct team_wait wait;
	int ret = words_begin(team, w, timeout, &wait), last = 0;
	size_t i = 0;

	if (ret)
		return ret;
	for (;;) {
		while (i < w->n && ((w->skip && w->skip[i]) || word_holds(w, i)))
			i++;
		if (i == w->n || last)
			return i == w->n ? 0 : last;
		last = words_wait(team, &wait, timeout);
	}
}

/* Find up to @max words that satisfy the condition, from index @start on. Return their number. */
static size_t words_find(const struct sci_words *w, size_t start, size_t max, size_t *indices,
			 bool *any)
{
	size_t n = 0;

	*any = false;
	for (size_t k = 0; k < w->n && n < max; k++) {
		size_t i = (start + k) % w->n;

		if (w->skip && w->skip[i])
			continue;
		*any = true;
		if (word_holds(w, i))
			indices[n++] = i;
	}
	return n;
}

static int wait_found(struct sci_team *t, const struct sci_words *w, int timeout,
		      size_t start, size_t max, size_t *indices, size_t *found)
{
	struct team_wait wait;
	int ret = words_begin(t, w, timeout, &wait), last = 0;
	bool any;

	if (ret)
		return ret;
	for (;;) {
		*found = words_find(w, start, max, indices, &any);
		if (*found)
			return 0;
		if (!any)
			return -ENOENT;
		if (last)
			return last;
		last = words_wait(t, &wait, timeout);
	}
}

int sci_team_wait_any(struct sci_team *team, const struct sci_words *w, int timeout,
		      size_t *index)
{
	size_t found, start;

	if (!team || !w || !index)
		return -EINVAL;
	/* begin each call with another word, so that no word is always checked last */
	start = w->n ? sci_fetch_add(&team->turn, 1) % w->n : 0;
	return wait_found(team, w, timeout, start, 1, index, &found);
}

int sci_team_wait_some(struct sci_team *team, const struct sci_words *w, int timeout,
		       size_t *indices, size_t *found)
{
	if (!indices || !found)
		return -EINVAL;
	return wait_found(team, w, timeout, 0, SIZE_MAX, indices, found);
}

int sci_team_wait_until(struct sci_team *team, const void *word, unsigned int size,
			unsigned int cmp, uint64_t value, int timeout)
{
	struct sci_words w = { .words = word, .n = 1, .size = size, .cmp = cmp,
			       .value = value };

	return word ? sci_team_wait_all(team, &w, timeout) : -EINVAL;
}
