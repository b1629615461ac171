/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Generates random hostile values and bytes. SCI_TEST_ROUNDS is the number of rounds of each
 * test, and SCI_TEST_SEED chooses other values.
 */
#ifndef SELFTESTS_PVM_HOSTILE_H
#define SELFTESTS_PVM_HOSTILE_H

#include "selftests/pvm/machine.h"
#include "selftests/random.h"

#define OUTPUT_TAG	0x7ffffffe	/* of messages with the output of tasks */
#define OUTPUT_CTX	0x7fffd

static inline unsigned int rounds(unsigned int n)
{
	const char *s = getenv("SCI_TEST_ROUNDS");

	return s && atoi(s) > 0 ? (unsigned int)atoi(s) : n;
}

static inline bool one_in(unsigned int n)
{
	return !random_below(n);
}

static inline uint32_t random_word(void)
{
	return random_below(0x10000) << 16 | random_below(0x10000);
}

static inline int hostile_int(void)
{
	static const int edges[] = {
		0, 1, -1, -2, 4, 255, 4096, 65536, INT_MAX, INT_MIN, INT_MAX - 3, 0x40000000,
		0x40000001, 0x20000000, TID_GROUPS, (int)0x80040000, (int)0x80000000 + 1,
		0x40001, 0x3ffff, 0x3ffc0000, OUTPUT_TAG, OUTPUT_CTX, SM_SPAWN, SM_STTASK,
	};

	switch (random_below(3)) {
	case 0: return edges[random_below(sizeof(edges) / sizeof(edges[0]))];
	case 1: return (int)random_below(72) - 8;
	default: return (int)random_word();
	}
}

/* Return the id of a task that does not exist, or a value that is no task id. */
static inline int hostile_tid(void)
{
	return hostile_int() | 0x20000;
}

static inline const char *hostile_name(void)
{
	static const char *const names[] = {
		"", "a", "*", "[", "no-such-name", "###_PVM_HOSTER_###", "%s%n", "a b", "-x",
		".", "node", "\xff\xfe", "x=y", ":", "a:b:", PVMNORESETCLASS,
	};
	static char endless[2000];

	if (one_in(20)) {
		memset(endless, 'n', sizeof(endless) - 1);
		return endless;
	}
	return names[random_below(sizeof(names) / sizeof(names[0]))];
}

static inline void random_bytes(void *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = (uint8_t)random_below(256);
}

/* Check that this task can send a number to itself and receive it. */
static inline void alive_check(void)
{
	/* a tag that no hostile message has */
	int v = (int)random_word(), tag = 1000000 + (int)random_below(1000000);

	pvm_setopt(PvmResvTids, 0);
	pvm_setcontext(0);
	message_int(pvm_mytid(), tag, v);
	CHECK_EQ(reply_int(pvm_mytid(), tag), v);
}

static inline void body_mutate(uint8_t *body, size_t len)
{
	for (unsigned int i = random_below(5); i && len; i--) {
		size_t at = random_below((uint32_t)len);

		if (one_in(2))
			body[at] = (uint8_t)random_below(256);
		else if ((at &= ~(size_t)3) + 4 <= len)
			memcpy(body + at, &(int){ hostile_int() }, 4);
	}
}

#endif
