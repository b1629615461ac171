/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: settings of a link or a node
 *
 * Values are numbers: parts per million, nanoseconds, counts, 0 and 1.
 */
#ifndef SIM_SWITCH_SETTING_H
#define SIM_SWITCH_SETTING_H

#include <stdbool.h>
#include <stdint.h>

enum key {
	KEY_LOSS,		/* ppm */
	KEY_DUPLICATE,		/* ppm */
	KEY_REORDER,		/* ppm of packets held back ... */
	KEY_DISTANCE,		/* ... until so many others have passed */
	KEY_HOLD,		/* ... or for so many ns */
	KEY_CORRUPT,		/* ppm */
	KEY_GARBLE,		/* ppm of mailbox packets with other data and a right CRC */
	KEY_DAMAGE,		/* ppm of messages in them that are changed below the header */
	KEY_DELAY,		/* ns */
	KEY_JITTER,		/* ns added at random, up to this */
	KEY_STUCK,		/* responses are swallowed */
	KEY_DOWN,		/* no link */
	KEY_QUEUE_PACKETS,	/* limit for packets that wait for a node to read */
	KEY_QUEUE_BYTES,
	KEYS,
};

#define PPM	1000000u

const char *key_name(enum key k);
bool key_find(const char *name, enum key *k);
bool key_of_nodes_only(enum key k);
uint64_t key_default(enum key k);
/* Return whether the key is a fault. A fault with the value 0 is off. */
bool key_is_fault(enum key k);

/* Parse the value of key @k.  Return NULL, or an error text. */
const char *key_parse(enum key k, const char *text, uint64_t *value);

struct answer;
void key_print(struct answer *a, enum key k, uint64_t value);

bool parse_number(const char *text, uint64_t max, uint64_t *value);

/* Parse "500ns", "2us", "1ms", "1s". @unit, if not NULL, is that of a bare number. */
bool parse_time(const char *text, const char *unit, uint64_t *ns);

#endif
