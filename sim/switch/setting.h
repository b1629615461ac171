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
	KEY_REORDER,		/* ppm of packets that are held back */
	KEY_DISTANCE,		/* number of packets that overtake a held packet */
	KEY_HOLD,		/* ns after which a held packet moves anyway */
	KEY_CORRUPT,		/* ppm */
	KEY_GARBLE,		/* ppm of mailbox packets that get random data and a valid CRC */
	KEY_DAMAGE,		/* ppm of control messages that change inside a valid packet */
	KEY_DELAY,		/* ns */
	KEY_JITTER,		/* limit in ns of a random delay */
	KEY_STUCK,		/* 1: responses are lost */
	KEY_DOWN,		/* 1: the link is down */
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

/* Parse "500ns", "2us", "1ms" or "1s". With @unit not NULL, @text is a number of this unit. */
bool parse_time(const char *text, const char *unit, uint64_t *ns);

#endif
