// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests the toolbox: lists, tables, arrays, strings, pools, and numbers as text. */
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pm2_common.h>

#include "selftests/harness.h"

/* Return whether @fn ends its process by abort(). */
static bool aborts(void (*fn)(void))
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		signal(SIGABRT, SIG_DFL);
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		fn();
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static int number[10];

static p_tbx_slist_t list_of(int n)
{
	p_tbx_slist_t l = tbx_slist_nil();

	for (int i = 0; i < n; i++)
		tbx_slist_append(l, &number[i]);
	return l;
}

TEST(lists_are_queues_and_stacks)
{
	p_tbx_slist_t l = list_of(3);

	CHECK_EQ(tbx_slist_get_length(l), 3);
	CHECK(tbx_slist_extract(l) == &number[0]);
	CHECK(tbx_slist_pop(l) == &number[2]);
	tbx_slist_add_at_head(l, &number[5]);
	tbx_slist_push(l, &number[6]);
	CHECK(tbx_slist_peek_from_head(l) == &number[5]);
	CHECK(tbx_slist_peek_from_tail(l) == &number[6]);
	CHECK(tbx_slist_index_get(l, 1) == &number[1]);
	CHECK(tbx_slist_index_extract(l, 1) == &number[1]);
	CHECK(tbx_slist_remove_from_tail(l) == &number[6]);
	CHECK(tbx_slist_remove_from_head(l) == &number[5]);
	CHECK(tbx_slist_is_nil(l));
	tbx_slist_free(l);
}

TEST(lists_have_a_cursor)
{
	p_tbx_slist_t l = list_of(4), copy;
	int i = 0;

	tbx_slist_ref_to_head(l);
	do
		CHECK(tbx_slist_ref_get(l) == &number[i++]);
	while (tbx_slist_ref_forward(l));
	CHECK_EQ(i, 4);
	tbx_slist_ref_to_tail(l);
	do
		CHECK(tbx_slist_ref_get(l) == &number[--i]);
	while (tbx_slist_ref_backward(l));
	CHECK_EQ(i, 0);
	copy = tbx_slist_dup(l);
	tbx_slist_merge_after(copy, l);
	tbx_slist_merge_before(copy, l);
	CHECK_EQ(tbx_slist_get_length(copy), 12);
	for (i = 0; i < 12; i++)
		CHECK(tbx_slist_index_get(copy, i) == &number[i % 4]);
	tbx_slist_clear_and_free(copy);
	tbx_slist_clear_and_free(l);
}

static void extract_nothing(void)
{
	tbx_slist_extract(tbx_slist_nil());
}

static void cursor_of_nothing(void)
{
	tbx_slist_ref_to_head(tbx_slist_nil());
}

static void free_something(void)
{
	tbx_slist_free(list_of(1));
}

static void index_too_large(void)
{
	tbx_slist_index_get(list_of(2), 2);
}

static void set_beyond(void)
{
	tbx_darray_set(tbx_darray_init(), 0, number);
}

static void add_twice(void)
{
	p_tbx_htable_t t = tbx_htable_empty_table();

	tbx_htable_add(t, "a", number);
	tbx_htable_add(t, "a", number);
}

static void unpack_other(void)
{
	ntbx_pack_buffer_t b;

	ntbx_pack_int(5, &b);
	ntbx_unpack_long(&b);
}

static void fail(void)
{
	TBX_FAILUREF("it is %d", 5);
}

TEST(failures_are_fatal)
{
	CHECK(aborts(extract_nothing));
	CHECK(aborts(cursor_of_nothing));
	CHECK(aborts(free_something));
	CHECK(aborts(index_too_large));
	CHECK(aborts(set_beyond));
	CHECK(aborts(add_twice));
	CHECK(aborts(unpack_other));
	CHECK(aborts(fail));
}

TEST(tables)
{
	p_tbx_htable_t t = tbx_htable_empty_table();
	p_tbx_slist_t keys;
	char key[16];

	CHECK(tbx_htable_empty(t));
	for (int i = 0; i < 1000; i++) {
		snprintf(key, sizeof(key), "key %d", i);
		tbx_htable_add(t, key, &number[i % 10]);
	}
	CHECK_EQ(tbx_htable_get_size(t), 1000);
	CHECK(tbx_htable_get(t, "key 77") == &number[7]);
	CHECK(!tbx_htable_get(t, "key 1000"));
	CHECK(tbx_htable_replace(t, "key 77", &number[1]) == &number[7]);
	CHECK(tbx_htable_extract(t, "key 77") == &number[1]);
	CHECK(!tbx_htable_extract(t, "key 77"));
	keys = tbx_htable_get_key_slist(t);
	CHECK_EQ(tbx_slist_get_length(keys), 999);
	for (int i = 0; i < 1000; i++) {
		char *k;

		if (i == 77)
			continue;
		snprintf(key, sizeof(key), "key %d", i);
		k = tbx_slist_extract(keys);
		CHECK(tbx_streq(k, key));
		TBX_FREE(k);
	}
	tbx_slist_free(keys);
	tbx_htable_cleanup_and_free(t);
}

TEST(arrays)
{
	p_tbx_darray_t d = tbx_darray_init();
	int i = 99;

	CHECK(!tbx_darray_first_idx(d, &i));
	CHECK(!tbx_darray_get(d, 5));
	tbx_darray_expand_and_set(d, 3, &number[3]);
	CHECK_EQ(tbx_darray_length(d), 4);
	tbx_darray_append(d, &number[4]);
	CHECK(!tbx_darray_expand_and_get(d, 9));
	CHECK_EQ(tbx_darray_length(d), 10);
	CHECK(tbx_darray_first_idx(d, &i) == &number[3]);
	CHECK_EQ(i, 3);
	CHECK(tbx_darray_next_idx(d, &i) == &number[4]);
	CHECK_EQ(i, 4);
	CHECK(!tbx_darray_next_idx(d, &i));
	tbx_darray_free(d);
}

TEST(strings)
{
	p_tbx_string_t s = tbx_string_init_to_cstring("channel "), t;
	char *text;

	tbx_string_append_int(s, -5);
	tbx_string_append_char(s, ',');
	tbx_string_append_uint(s, 4000000000u);
	t = tbx_string_init_to_int(7);
	tbx_string_append_string(s, t);
	tbx_string_append_string(t, t);
	CHECK_EQ(tbx_string_length(s), 8 + 2 + 1 + 10 + 1);
	text = tbx_string_to_cstring(s);
	CHECK(tbx_streq(text, "channel -5,40000000007"));
	TBX_FREE(text);
	text = tbx_string_to_cstring_and_free(t);
	CHECK(tbx_streq(text, "77"));
	TBX_FREE2(text);
	CHECK(!text);
	tbx_string_free(s);
}

TEST(memory)
{
	p_tbx_memory_t mem;
	char *p[100];

	tbx_malloc_init(&mem, 24, 7, "test");
	for (int i = 0; i < 100; i++) {
		p[i] = tbx_malloc(mem);
		memset(p[i], i, 24);
	}
	for (int i = 0; i < 100; i++)
		for (int k = 0; k < 24; k++)
			CHECK_EQ(p[i][k], i);
	for (int i = 0; i < 100; i++)
		tbx_free(mem, p[i]);
	tbx_malloc_clean(mem);
	p[0] = tbx_aligned_malloc(10, 256);
	CHECK_EQ((size_t)p[0] % 256, 0);
	tbx_aligned_free(p[0], 256);
}

TEST(numbers_as_text)
{
	static const double doubles[] = { 0, 1, -1, 0.1, 1e300, -1e-300, 123456.789 };
	ntbx_pack_buffer_t b;

	ntbx_pack_int(-17, &b);
	CHECK(!memcmp(b.buffer, "iiii        -17-", 17));
	CHECK_EQ(ntbx_unpack_int(&b), -17);
	ntbx_pack_int(INT_MIN, &b);
	CHECK_EQ(ntbx_unpack_int(&b), INT_MIN);
	ntbx_pack_long(LONG_MIN, &b);
	CHECK_EQ(ntbx_unpack_long(&b), LONG_MIN);
	ntbx_pack_unsigned_int(UINT_MAX, &b);
	CHECK_EQ(ntbx_unpack_unsigned_int(&b), UINT_MAX);
	ntbx_pack_unsigned_long(ULONG_MAX, &b);
	CHECK(ntbx_unpack_unsigned_long(&b) == ULONG_MAX);
	for (size_t i = 0; i < ARRAY_LEN(doubles); i++) {
		ntbx_pack_double(doubles[i], &b);
		CHECK(fabs(ntbx_unpack_double(&b) - doubles[i]) <=
		      fabs(doubles[i]) * 1e-10);
	}
}
