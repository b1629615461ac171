// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sim/switch/answer.h"
#include "sim/switch/setting.h"

#define TIME_MAX	(UINT64_C(3600) * 1000000000)
#define ARRAY_LEN(a)	(sizeof(a) / sizeof((a)[0]))

enum kind { KIND_PPM, KIND_TIME, KIND_COUNT, KIND_FLAG };

static const struct setting {
	const char *name;
	enum kind kind;
	bool fault, nodes_only;
	uint64_t min, max, preset;
} table[KEYS] = {
	[KEY_LOSS] = { "loss", KIND_PPM, true, false, 0, PPM, 0 },
	[KEY_DUPLICATE] = { "duplicate", KIND_PPM, true, false, 0, PPM, 0 },
	[KEY_REORDER] = { "reorder", KIND_PPM, true, false, 0, PPM, 0 },
	[KEY_DISTANCE] = { "distance", KIND_COUNT, false, false, 1, 1000000, 1 },
	[KEY_HOLD] = { "hold", KIND_TIME, false, false, 0, TIME_MAX, 10000000 },
	[KEY_CORRUPT] = { "corrupt", KIND_PPM, true, false, 0, PPM, 0 },
	[KEY_GARBLE] = { "garble", KIND_PPM, true, false, 0, PPM, 0 },
	[KEY_DAMAGE] = { "damage", KIND_PPM, true, false, 0, PPM, 0 },
	[KEY_DELAY] = { "delay", KIND_TIME, true, false, 0, TIME_MAX, 0 },
	[KEY_JITTER] = { "jitter", KIND_TIME, true, false, 0, TIME_MAX, 0 },
	[KEY_STUCK] = { "stuck", KIND_FLAG, true, false, 0, 1, 0 },
	[KEY_DOWN] = { "down", KIND_FLAG, true, false, 0, 1, 0 },
	[KEY_QUEUE_PACKETS] = { "queue-packets", KIND_COUNT, false, true,
				0, 1 << 20, 4096 },
	[KEY_QUEUE_BYTES] = { "queue-bytes", KIND_COUNT, false, true,
			      0, 1 << 28, 1 << 20 },
};

static const struct unit {
	const char *name;
	uint64_t ns;
} units[] = {
	{ "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 },
};

const char *key_name(enum key k)
{
	return table[k].name;
}

bool key_of_nodes_only(enum key k)
{
	return table[k].nodes_only;
}

uint64_t key_default(enum key k)
{
	return table[k].preset;
}

bool key_is_fault(enum key k)
{
	return table[k].fault;
}

bool key_find(const char *name, enum key *k)
{
	unsigned int i;

	for (i = 0; i < KEYS; i++) {
		if (strcmp(table[i].name, name))
			continue;
		*k = (enum key)i;
		return true;
	}
	return false;
}

static bool digits_parse(const char *text, char **end, uint64_t *value)
{
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*value = strtoull(text, end, 10);
	return !errno;
}

bool parse_number(const char *text, uint64_t max, uint64_t *value)
{
	char *end;

	return digits_parse(text, &end, value) && !*end && *value <= max;
}

bool parse_time(const char *text, const char *unit, uint64_t *ns)
{
	uint64_t value;
	char *end;
	size_t i;

	if (!digits_parse(text, &end, &value) || (*end && unit))
		return false;
	if (!unit)
		unit = end;
	for (i = 0; i < ARRAY_LEN(units); i++) {
		if (strcmp(unit, units[i].name))
			continue;
		if (value > TIME_MAX / units[i].ns)
			return false;
		*ns = value * units[i].ns;
		return true;
	}
	return false;
}

const char *key_parse(enum key k, const char *text, uint64_t *value)
{
	const struct setting *s = &table[k];
	bool ok = parse_number(text, s->max, value) && *value >= s->min;

	switch (s->kind) {
	case KIND_PPM:
		return ok ? NULL : "parts per million are 0 to 1000000";
	case KIND_FLAG:
		return ok ? NULL : "it is 0 or 1";
	case KIND_COUNT:
		return ok ? NULL : "not a number, or too small, or too large";
	case KIND_TIME:
		break;
	}
	ok = parse_time(text, NULL, value) || (!strcmp(text, "0") && !(*value = 0));
	return ok ? NULL : "a time is a number and ns, us, ms or s, at most an hour";
}

void key_print(struct answer *a, enum key k, uint64_t value)
{
	size_t i = 0;

	if (table[k].kind != KIND_TIME || !value) {
		answer_add(a, "%s %" PRIu64, table[k].name, value);
		return;
	}
	while (value % units[i].ns)
		i++;
	answer_add(a, "%s %" PRIu64 "%s", table[k].name, value / units[i].ns,
		   units[i].name);
}
