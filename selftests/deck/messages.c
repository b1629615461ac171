// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests message objects: unpacked values are the packed values, and no call exceeds the size. */
#include <complex.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <deck.h>

#include "selftests/harness.h"

#define VALUES	7u

static deck_msg_t *message(size_t size)
{
	deck_msg_t *m = NULL;

	CHECK_EQ(deck_msg_create(&m, size), 0);
	CHECK(m);
	return m;
}

/* ---- types ---- */

#define PACK(name, type)							\
	do {									\
		type in[VALUES];						\
		test_fill(in, sizeof(in), __LINE__);				\
		for (unsigned int i_ = 0; i_ < VALUES; i_++)			\
			in[i_] = (type)(i_ * 3 + sizeof(type));			\
		CHECK_EQ(deck_pack_##name(m, in, VALUES), 0);			\
	} while (0);

#define UNPACK(name, type)							\
	do {									\
		type out[VALUES];						\
		CHECK_EQ(deck_unpack_##name(m, out, VALUES), 0);		\
		for (unsigned int i_ = 0; i_ < VALUES; i_++)			\
			CHECK(out[i_] == (type)(i_ * 3 + sizeof(type)));	\
	} while (0);

#define ADD_SIZE(name, type)	+ sizeof(type)

TEST(arrays_of_all_types)
{
	const size_t size = VALUES * (0 DECK_TYPES(ADD_SIZE));
	deck_msg_t *m = message(size);

	DECK_TYPES(PACK)
	CHECK_EQ(deck_msg_length(m), size);
	CHECK_EQ(deck_msg_left(m), size);
	DECK_TYPES(UNPACK)
	CHECK_EQ(deck_msg_left(m), 0);
	deck_msg_rewind(m);
	DECK_TYPES(UNPACK)
	CHECK_EQ(deck_msg_destroy(m), 0);
}

TEST(values_lie_as_in_memory)
{
	deck_msg_t *m = message(100);
	const unsigned char *p = deck_msg_address(m);
	int i = 0x01020304;
	double d = 2.5;

	CHECK_EQ((uintptr_t)p % 64, 0);
	CHECK_EQ(deck_pack_char(m, "x", 1), 0);
	CHECK_EQ(deck_pack_int(m, &i, 1), 0);
	CHECK_EQ(deck_pack_double(m, &d, 1), 0);
	CHECK_EQ(deck_msg_length(m), 1 + sizeof(i) + sizeof(d));
	CHECK(p[0] == 'x' && !memcmp(p + 1, &i, sizeof(i)) &&
	      !memcmp(p + 1 + sizeof(i), &d, sizeof(d)));
	CHECK_EQ(deck_msg_destroy(m), 0);
}

/* ---- room ---- */

TEST(nothing_is_packed_that_does_not_fit)
{
	deck_msg_t *m = message(10);
	int values[3] = { 1, 2, 3 }, out = 0;

	CHECK_EQ(deck_pack_int(m, values, 3), -EMSGSIZE);
	CHECK_EQ(deck_msg_length(m), 0);
	CHECK_EQ(deck_pack_int(m, values, 2), 0);
	CHECK_EQ(deck_pack_int(m, values, 1), -EMSGSIZE);
	CHECK_EQ(deck_pack_int(m, values, SIZE_MAX / sizeof(int) + 2), -EMSGSIZE);
	CHECK_EQ(deck_msg_length(m), 2 * sizeof(int));
	CHECK_EQ(deck_unpack_int(m, values, 3), -EMSGSIZE);
	CHECK_EQ(deck_unpack_int(m, &out, 1), 0);
	CHECK_EQ(out, 1);
	CHECK_EQ(deck_unpack_int(m, values, SIZE_MAX / sizeof(int) + 2), -EMSGSIZE);
	CHECK_EQ(deck_unpack_int(m, NULL, 0), 0);
	CHECK_EQ(deck_unpack_int(m, &out, 1), 0);
	CHECK_EQ(out, 2);
	CHECK_EQ(deck_unpack_int(m, &out, 1), -EMSGSIZE);
	deck_msg_clear(m);
	CHECK_EQ(deck_msg_length(m), 0);
	CHECK_EQ(deck_unpack_int(m, &out, 1), -EMSGSIZE);
	CHECK_EQ(deck_pack_int(m, values, 2), 0);
	CHECK_EQ(deck_msg_destroy(m), 0);
}

TEST(lengths_that_the_program_sets)
{
	deck_msg_t *m = message(100);
	char c;

	memset(deck_msg_address(m), 'y', 100);
	CHECK_EQ(deck_msg_size(m), 100);
	CHECK_EQ(deck_msg_set_length(m, 101), -EMSGSIZE);
	CHECK_EQ(deck_msg_set_length(m, 100), 0);
	for (unsigned int i = 0; i < 60; i++)
		CHECK_EQ(deck_unpack_char(m, &c, 1), 0);
	CHECK_EQ(c, 'y');
	/* a shorter length also ends the values that are left */
	CHECK_EQ(deck_msg_set_length(m, 50), 0);
	CHECK_EQ(deck_msg_left(m), 0);
	CHECK_EQ(deck_unpack_char(m, &c, 1), -EMSGSIZE);
	CHECK_EQ(deck_msg_source(m), -1);
	CHECK_EQ(deck_msg_destroy(m), 0);
}

TEST(strings)
{
	deck_msg_t *m = message(40);
	char s[8];

	CHECK_EQ(deck_pack_string(m, "a string that is too long for the message"),
		 -EMSGSIZE);
	CHECK_EQ(deck_msg_length(m), 0);
	CHECK_EQ(deck_pack_string(m, "mailbox"), 0);
	CHECK_EQ(deck_pack_string(m, ""), 0);
	CHECK_EQ(deck_unpack_string(m, s, 7), -EMSGSIZE);
	CHECK_EQ(deck_unpack_string(m, s, 8), 0);
	CHECK(!strcmp(s, "mailbox"));
	CHECK_EQ(deck_unpack_string(m, s, 1), 0);
	CHECK(!*s);
	CHECK_EQ(deck_unpack_string(m, s, 8), -EMSGSIZE);
	/* wrong lengths, and a string without a zero at its end */
	deck_msg_clear(m);
	CHECK_EQ(deck_pack_ulong(m, &(unsigned long){ -1ul }, 1), 0);
	CHECK_EQ(deck_unpack_string(m, s, 8), -EMSGSIZE);
	deck_msg_clear(m);
	CHECK_EQ(deck_pack_ulong(m, &(unsigned long){ 0 }, 1), 0);
	CHECK_EQ(deck_unpack_string(m, s, 8), -EMSGSIZE);
	deck_msg_clear(m);
	CHECK_EQ(deck_pack_ulong(m, &(unsigned long){ 3 }, 1), 0);
	CHECK_EQ(deck_msg_pack(m, "abc", 3), 0);
	CHECK_EQ(deck_unpack_string(m, s, 8), 0);
	CHECK(!strcmp(s, "ab"));
	CHECK_EQ(deck_msg_destroy(m), 0);
}

TEST(messages_without_room)
{
	deck_msg_t *m = message(0);

	CHECK(deck_msg_address(m));
	CHECK_EQ(deck_msg_pack(m, NULL, 0), 0);
	CHECK_EQ(deck_msg_pack(m, "", 1), -EMSGSIZE);
	CHECK_EQ(deck_msg_destroy(m), 0);
	CHECK_EQ(deck_msg_create(&m, SIZE_MAX), -ENOMEM);
	/* the sanitizer ends programs that allocate so much */
	if (!(TEST_ASAN || TEST_TSAN))
		CHECK_EQ(deck_msg_create(&m, SIZE_MAX / 2), -ENOMEM);
}

TEST(arguments)
{
	deck_msg_t *m = message(8);
	int i;

	CHECK_EQ(deck_msg_create(NULL, 8), -EINVAL);
	CHECK_EQ(deck_msg_destroy(NULL), 0);
	CHECK_EQ(deck_pack_int(NULL, &i, 1), -EINVAL);
	CHECK_EQ(deck_pack_int(m, NULL, 1), -EINVAL);
	CHECK_EQ(deck_unpack_int(NULL, &i, 1), -EINVAL);
	CHECK_EQ(deck_unpack_int(m, NULL, 1), -EINVAL);
	CHECK_EQ(deck_pack_string(m, NULL), -EINVAL);
	CHECK_EQ(deck_unpack_string(m, (char *)&i, 0), -EINVAL);
	CHECK_EQ(deck_msg_set_length(NULL, 0), -EINVAL);
	CHECK_EQ(deck_msg_destroy(m), 0);
}
