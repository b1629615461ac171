// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Pointers to memory of a peer: loads, stores and atomic instructions. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <sci/msg.h>

#include "selftests/harness.h"
#include "selftests/msg/peers.h"

#define BYTES	(4u * 4096)
#define ADDS	200000u
#define ROUNDS	50u

static void *own(struct pair *l, void **buf)
{
	struct sci_key key;

	CHECK_EQ(sci_buf_alloc(l->ep, BYTES, buf), 0);
	CHECK_EQ(sci_buf_key(l->ep, *buf, BYTES, &key), 0);
	CHECK_EQ(sci_send(l->to, &key, sizeof(key)), 0);
	return *buf;
}

static struct sci_key key_of(struct pair *l)
{
	struct sci_key key;

	CHECK_EQ(sci_recv(l->ep, l->to, &key, sizeof(key), NULL), 0);
	return key;
}

static void *map(struct pair *l, const struct sci_key *key)
{
	void *addr = NULL;

	CHECK_EQ(sci_peer_map(l->to, key, TEST_WAIT_MS, &addr), 0);
	CHECK(addr);
	return addr;
}

/* Count the shared mappings of this process. */
static unsigned int shared_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512], access[8];
	unsigned int n = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		n += sscanf(line, "%*s %7s", access) == 1 && access[3] == 's';
	fclose(f);
	return n;
}

/* ---- one memory ---- */

static void add(uint64_t *word)
{
	for (unsigned int i = 0; i < ADDS; i++)
		__atomic_fetch_add(word, 1, __ATOMIC_RELAXED);
}

static void adder(struct peer *self, void *arg)
{
	struct pair l = pair_open(self, 4, 0);
	unsigned char *buf;
	void *mem;

	(void)arg;
	buf = own(&l, &mem);
	msg_fill(buf + 8, 100, 1);
	pair_meet(&l);
	add(mem);
	pair_meet(&l);
	CHECK_EQ(*(uint64_t *)mem, 2 * ADDS);
	CHECK_BYTES(buf + BYTES - 100, 100, 2);
	pair_close(&l);
}

TEST(loads_stores_and_atomics)
{
	struct peer *p = peer_spawn(8, adder, NULL);
	struct pair l = pair_open(p, 8, 0);
	struct sci_key key;
	unsigned char *there;

	need_shared_memory(&l);
	key = key_of(&l);
	there = map(&l, &key);
	pair_meet(&l);
	CHECK_BYTES(there + 8, 100, 1);
	msg_fill(there + BYTES - 100, 100, 2);
	add((uint64_t *)there);
	pair_meet(&l);
	CHECK_EQ(sci_peer_unmap(l.to, there), 0);
	pair_close(&l);
	peer_join(p);
}

static void owner_of_private_memory(struct peer *self, void *arg)
{
	struct pair l = pair_open(self, 4, 0);
	unsigned char buf[3 * 4096];
	uint64_t addr = (uintptr_t)buf;

	(void)arg;
	msg_fill(buf, sizeof(buf), 1);
	CHECK_EQ(sci_send(l.to, &addr, sizeof(addr)), 0);
	pair_close(&l);
}

TEST(private_memory_is_read_and_not_mapped)
{
	struct peer *p = peer_spawn(8, owner_of_private_memory, NULL);
	struct pair l = pair_open(p, 8, 0);
	unsigned char buf[3 * 4096];
	uint64_t addr;
	int ret;

	CHECK_EQ(sci_recv(l.ep, l.to, &addr, sizeof(addr), NULL), 0);
	CHECK_EQ(sci_peer_read_private(NULL, buf, addr, 1), -EINVAL);
	CHECK_EQ(sci_peer_read_private(l.to, NULL, addr, 1), -EINVAL);
	ret = sci_peer_read_private(l.to, buf, addr, sizeof(buf));
	if (ret == -EOPNOTSUPP) {
		pair_meet(&l);
		SKIP("no process may read another");
	}
	CHECK_EQ(ret, 0);
	CHECK_BYTES(buf, sizeof(buf), 1);
	CHECK_EQ(sci_peer_read_private(l.to, buf, 16, 1), -EFAULT);
	CHECK_EQ(sci_peer_read_private(l.to, buf, UINT64_MAX, 2), -EFAULT);
	pair_meet(&l);
	peer_join(p);
	WAIT_UNTIL(sci_peer_read_private(l.to, buf, addr, 1) < 0, TEST_WAIT_MS);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

TEST(memory_of_ones_own)
{
	struct pair l = { .ep = test_ep_open(TEST_ID, 0) };
	struct sci_key key;
	unsigned char *there;
	void *mem;

	l.to = test_ep_connect(l.ep, 4, TEST_ID);
	need_shared_memory(&l);
	own(&l, &mem);
	key = key_of(&l);
	there = map(&l, &key);
	msg_fill(there, BYTES, 1);
	CHECK_BYTES((unsigned char *)mem, BYTES, 1);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

/* ---- how long a map lives ---- */

static void owner(struct peer *self, void *arg)
{
	struct pair l = pair_open(self, 4, 0);
	void *mem;

	(void)arg;
	own(&l, &mem);
	pair_close(&l);
}

TEST(maps_are_counted)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	struct pair l = pair_open(p, 8, 0);
	unsigned char *first, *part;
	struct sci_key key;

	need_shared_memory(&l);
	key = key_of(&l);
	first = map(&l, &key);
	key.offset += 100;
	key.len = 8;
	part = map(&l, &key);
	part[0] = 7;
	CHECK_EQ(first[100], 7);
	CHECK_EQ(sci_peer_unmap(l.to, first), 0);
	part[1] = 8;
	CHECK_EQ(sci_peer_unmap(l.to, part), 0);
	CHECK_EQ(sci_peer_unmap(l.to, part), -EINVAL);
	pair_close(&l);
	peer_join(p);
}

/* Export memory again and again, and free it when the other side has mapped it. */
static void fickle_owner(struct peer *self, void *arg)
{
	struct pair l = pair_open(self, 4, 0);
	void *mem;

	(void)arg;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		own(&l, &mem);
		pair_meet(&l);
		CHECK_EQ(sci_buf_free(l.ep, mem), 0);
		pair_meet(&l);
	}
	pair_close(&l);
}

/* The peer has freed the memory: each page can still be stored to and loaded from. */
static void check_accessible(volatile unsigned char *there)
{
	for (unsigned int i = 0; i < BYTES; i += 4096) {
		there[i] = (unsigned char)(i / 4096 + 1);
		CHECK_EQ(there[i], i / 4096 + 1);
	}
}

TEST(memory_that_was_freed)
{
	struct peer *p = peer_spawn(8, fickle_owner, NULL);
	struct pair l = pair_open(p, 8, 0);
	unsigned int before = 0;
	unsigned char *there;
	struct sci_key key;
	void *again;

	need_shared_memory(&l);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		key = key_of(&l);
		there = map(&l, &key);
		pair_meet(&l);
		pair_meet(&l);
		/* transfers fail, and the mapped pages stay */
		if (i == 0)
			WAIT_UNTIL(sci_read(l.to, &key, 0, &again, 1) == -ENOENT,
				   TEST_WAIT_MS);
		check_accessible(there);
		if (i == 0)
			CHECK_EQ(sci_peer_map(l.to, &key, TEST_WAIT_MS, &again),
				 -ENOENT);
		/* calls with a short timeout get the same error in the end */
		if (i == 0)
			WAIT_UNTIL(sci_peer_map(l.to, &key, 1, &again) == -ENOENT,
				   TEST_WAIT_MS);
		CHECK_EQ(sci_peer_unmap(l.to, there + BYTES - 1), 0);
		CHECK_EQ(sci_peer_unmap(l.to, there), -EINVAL);
		if (i == 0)
			before = shared_maps();
	}
	WAIT_UNTIL((sci_progress(l.ep), shared_maps() <= before), TEST_WAIT_MS);
	pair_close(&l);
	peer_join(p);
}

TEST(a_peer_that_dies)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	struct pair l = pair_open(p, 8, 0);
	unsigned int before;
	unsigned char *there;
	struct sci_key key;
	void *again;

	need_shared_memory(&l);
	key = key_of(&l);
	before = shared_maps();
	there = map(&l, &key);
	msg_fill(there, BYTES, 1);
	peer_kill(p, SIGKILL);
	WAIT_UNTIL(sci_peer_state(l.to) == -ECONNRESET, TEST_WAIT_MS);
	/* mappings of the connection go, and the map stays */
	WAIT_UNTIL((sci_progress(l.ep), shared_maps() <= before), TEST_WAIT_MS);
	before = shared_maps();
	for (unsigned int i = 0; i < BYTES; i++)
		there[i]++;
	CHECK_EQ(sci_peer_map(l.to, &key, TEST_WAIT_MS, &again), -ECONNRESET);
	CHECK_EQ(sci_disconnect(l.to), 0);
	CHECK(shared_maps() < before);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

/* ---- what is refused ---- */

TEST(keys_that_name_nothing)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	struct pair l = pair_open(p, 8, 0);
	struct sci_key key, other;
	void *addr = &key;

	need_shared_memory(&l);
	key = key_of(&l);
	CHECK_EQ(sci_peer_map(NULL, &key, 0, &addr), -EINVAL);
	CHECK_EQ(sci_peer_map(l.to, NULL, 0, &addr), -EINVAL);
	CHECK_EQ(sci_peer_map(l.to, &key, 0, NULL), -EINVAL);
	other = key;
	other.len = 0;
	CHECK_EQ(sci_peer_map(l.to, &other, -1, &addr), -EINVAL);
	other.len = BYTES + 1;
	CHECK_EQ(sci_peer_map(l.to, &other, -1, &addr), -ERANGE);
	other.len = UINT64_MAX;
	other.offset = 1;
	CHECK_EQ(sci_peer_map(l.to, &other, -1, &addr), -EINVAL);
	other = key;
	other.offset = UINT64_MAX - BYTES;
	CHECK_EQ(sci_peer_map(l.to, &other, -1, &addr), -ERANGE);
	other = key;
	other.segment = 1;
	CHECK_EQ(sci_peer_map(l.to, &other, -1, &addr), -EPROTO);
	CHECK_EQ(sci_peer_unmap(NULL, &key), -EINVAL);
	CHECK_EQ(sci_peer_unmap(l.to, NULL), -EINVAL);
	CHECK_EQ(sci_peer_unmap(l.to, &key), -EINVAL);
	CHECK(addr == &key);
	pair_close(&l);
	peer_join(p);
}

TEST(a_peer_that_is_not_there)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	const struct sci_addr nobody = { 8, 99 };
	struct sci_key key = { .segment = 0x4d000001, .len = 1 };
	struct pair l = { .ep = ep };
	void *addr;

	CHECK_EQ(sci_peer_open(ep, &nobody, -1, &l.to), 0);
	need_shared_memory(&l);
	CHECK_EQ(sci_peer_map(l.to, &key, 0, &addr), -ETIMEDOUT);
	CHECK_EQ(sci_peer_map(l.to, &key, 20, &addr), -ETIMEDOUT);
	CHECK_EQ(sci_ep_close(ep), 0);
}
