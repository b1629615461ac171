// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* The form of messages: each byte that a type does not use must be zero. */

#include <kunit/test.h>
#include <linux/module.h>
#include <linux/string.h>

/* message.c is built into this test module too, for its static functions */
#include "message.c"

/* A range of bytes that a message type uses. All bytes outside of its ranges are reserved. */
struct field_bytes {
	u8 from, to;
};

static const struct form {
	u8 type;
	struct field_bytes used[4];
} forms[] = {
	{ SCI_MSG_CONNECT, { { 1, 20 } } },	/* no groups */
	{ SCI_MSG_REPLY, { { 1, 12 }, { 16, 40 } } },
	{ SCI_MSG_DISCONNECT, { { 1, 2 }, { 4, 8 } } },
	{ SCI_MSG_NOTIFY, { { 4, 8 } } },
	{ SCI_MSG_CUT, { { 1, 2 }, { 4, 8 } } },
	{ SCI_MSG_CUT_ACK, { { 4, 8 } } },
	{ SCI_MSG_TRIGGER, { { 4, 8 } } },
	{ SCI_MSG_DATA, { { 1, 12 } } },	/* no bytes */
	{ SCI_MSG_MORE, { { 1, 2 }, { 4, 8 } } },
	{ SCI_MSG_DATA_REPLY, { { 2, 10 } } },
	{ SCI_MSG_PING, { { 4, 8 } } },
	{ SCI_MSG_PONG, { { 4, 8 } } },
	{ SCI_MSG_LEFT, { { 4, 8 } } },
};

static bool byte_is_used(const struct form *f, unsigned int at)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(f->used); i++)
		if (at >= f->used[i].from && at < f->used[i].to)
			return true;
	return false;
}

static void message_init(u8 *body, u8 type)
{
	memset(body, 0, SCI_MESSAGE_SIZE);
	body[0] = type;
	if (type == SCI_MSG_CONNECT)
		((struct sci_msg_connect *)body)->handle = cpu_to_le32(1);
}

static void test_plain(struct kunit *test)
{
	u8 body[SCI_MESSAGE_SIZE];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(forms); i++) {
		message_init(body, forms[i].type);
		KUNIT_EXPECT_TRUE_MSG(test, sci_message_is_sane(body),
				      "type %u", forms[i].type);
	}
}

static void test_reserved(struct kunit *test)
{
	u8 body[SCI_MESSAGE_SIZE];
	unsigned int i, at, bit;

	for (i = 0; i < ARRAY_SIZE(forms); i++)
		for (at = 1; at < SCI_MESSAGE_SIZE; at++)
			for (bit = 0; bit < 8 && !byte_is_used(&forms[i], at); bit++) {
				message_init(body, forms[i].type);
				body[at] = 1 << bit;
				KUNIT_EXPECT_FALSE_MSG(test,
						       sci_message_is_sane(body),
						       "type %u, byte %u",
						       forms[i].type, at);
			}
}

static void test_types(struct kunit *test)
{
	u8 body[SCI_MESSAGE_SIZE];
	unsigned int type, i;
	bool known;

	for (type = 0; type < 256; type++) {
		known = false;
		for (i = 0; i < ARRAY_SIZE(forms); i++)
			known = known || forms[i].type == type;
		message_init(body, type);
		KUNIT_EXPECT_EQ_MSG(test, sci_message_is_sane(body), known,
				    "type %u", type);
	}
}

/* Check that a CONNECT is sane only with zeros behind its last group. */
static void test_groups(struct kunit *test)
{
	struct sci_msg_connect m;
	unsigned int n, i;

	for (n = 0; n < 256; n++)
		for (i = 0; i < SCI_MSG_GROUPS; i++) {
			message_init((u8 *)&m, SCI_MSG_CONNECT);
			m.groups = n;
			m.group[i] = cpu_to_le32(5);
			KUNIT_EXPECT_EQ_MSG(test, sci_message_is_sane(&m),
					    n <= SCI_MSG_GROUPS && i < n,
					    "%u groups, one at %u", n, i);
		}
}

/* Check that a DATA or MORE is sane only with zeros behind its last byte of data. */
static void test_data(struct kunit *test)
{
	struct sci_msg_data m;
	unsigned int n, i;

	for (n = 0; n < 256; n++)
		for (i = 0; i < SCI_MSG_DATA_BYTES; i++) {
			message_init((u8 *)&m, n & 1 ? SCI_MSG_DATA : SCI_MSG_MORE);
			m.bytes = n;
			m.data[i] = 5;
			KUNIT_EXPECT_EQ_MSG(test, sci_message_is_sane(&m),
					    n <= SCI_MSG_DATA_BYTES && i < n,
					    "%u bytes, one at %u", n, i);
		}
}

static void test_values(struct kunit *test)
{
	struct sci_msg_connect c;
	struct sci_msg_reply r;
	struct sci_msg_simple s;
	unsigned int v;

	for (v = 0; v < 256; v++) {
		message_init((u8 *)&c, SCI_MSG_CONNECT);
		c.kind = v;
		KUNIT_EXPECT_EQ(test, sci_message_is_sane(&c), v < 4);
		message_init((u8 *)&c, SCI_MSG_CONNECT);
		c.flags = v;
		KUNIT_EXPECT_EQ(test, sci_message_is_sane(&c), v < 2);
		message_init((u8 *)&r, SCI_MSG_REPLY);
		r.access = v;
		KUNIT_EXPECT_EQ(test, sci_message_is_sane(&r), !(v & 0xf9));
		message_init((u8 *)&s, SCI_MSG_CUT);
		s.died = v;
		KUNIT_EXPECT_EQ(test, sci_message_is_sane(&s), v < 2);
	}
	message_init((u8 *)&c, SCI_MSG_CONNECT);
	c.handle = 0;
	KUNIT_EXPECT_FALSE(test, sci_message_is_sane(&c));
}

static struct kunit_case message_cases[] = {
	KUNIT_CASE(test_plain),
	KUNIT_CASE(test_reserved),
	KUNIT_CASE(test_types),
	KUNIT_CASE(test_groups),
	KUNIT_CASE(test_data),
	KUNIT_CASE(test_values),
	{}
};

static struct kunit_suite message_suite = {
	.name = "sci_message",
	.test_cases = message_cases,
};

kunit_test_suite(message_suite);

MODULE_DESCRIPTION("Tests of the form of sci messages");
MODULE_LICENSE("GPL");
