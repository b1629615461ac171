// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Ranges of every policy, mapped and cached: all members see the same bytes. */

#include "selftests/scivm/scivm.h"

static uint32_t mode;

/* Each member stores its words of every page, then reads all words. Three rounds. */
static void share_words(const struct member *m, const struct sci_vm_range *r)
{
	size_t n = 19 * PAGE / 8;
	uint64_t *at = alloc_for_all(m, n * 8, r);

	CHECK((uint8_t *)at >= (uint8_t *)sci_vm_base(m->vm));
	for (uint64_t round = 0; round < 3; round++) {
		for (size_t i = (size_t)m->rank; i < n; i += (size_t)m->size)
			at[i] = i * 3 + round;
		sync_all(m);
		for (size_t i = 0; i < n; i++)
			CHECK_EQ(at[i], i * 3 + round);
		sync_all(m);
	}
	if (!m->rank)
		CHECK_EQ(sci_vm_free(m->vm, at), 0);
	meet(m);
}

static void each_policy(void)
{
	struct sci_vm_attr attr = { .size = sizeof(attr), .mode = mode };
	struct member m;

	member_open(&m, &attr);
	CHECK_EQ(sci_vm_mode(m.vm), mode);
	for (uint32_t policy = 0; policy <= SCI_VM_HOME; policy++)
		/* cached ranges are never eager */
		for (uint32_t flags = 0; flags <= (mode == SCI_VM_MAP ? SCI_VM_EAGER : 0);
		     flags++) {
			struct sci_vm_range r = kind(policy, flags);

			r.home = policy == SCI_VM_HOME ? m.size - 1 : 0;
			r.page = policy == SCI_VM_BLOCK ? 4 * PAGE : PAGE;
			share_words(&m, &r);
		}
	CHECK_EQ(stats_of(&m).homed, 0);
	CHECK_EQ(stats_of(&m).windows, 0);
	member_close(&m);
}

static void run(uint32_t with, unsigned int n, unsigned int nodes)
{
	needs_mode(with);
	mode = with;
	ranks_run(n, nodes, each_policy);
}

TEST(mapped_on_four_nodes) { run(SCI_VM_MAP, 4, 4); }
TEST(cached_on_four_nodes) { run(SCI_VM_CACHE, 4, 4); }
TEST(mapped_by_eight_members_of_one_node) { run(SCI_VM_MAP, 8, 1); }
TEST(cached_by_eight_members_of_one_node) { run(SCI_VM_CACHE, 8, 1); }
TEST(mapped_by_a_member_alone) { run(SCI_VM_MAP, 1, 1); }
TEST(cached_by_a_member_alone) { run(SCI_VM_CACHE, 1, 1); }

/* Ranges of random lengths come and go: they use addresses again, but never overlap. */
static void reuse_addresses(void)
{
	struct sci_vm_attr attr = { .size = sizeof(attr), .length = 16ull << 20, .mode = mode };
	struct { uint8_t *at; size_t len; uint8_t byte; } block[24] = { { 0 } };
	struct member m;
	uint32_t seed = 7;

	member_open(&m, &attr);
	seed += (uint32_t)m.rank;
	for (unsigned int i = 0; i < 400; i++) {
		unsigned int k;
		struct sci_vm_range r = kind(SCI_VM_HOME, 0);
		void *p;

		r.home = -1;
		seed = seed * 1664525 + 1013904223;
		k = (seed >> 8) % 24;
		if (block[k].at) {
			for (size_t j = 0; j < block[k].len; j += PAGE)
				CHECK_EQ(block[k].at[j], block[k].byte);
			CHECK_EQ(sci_vm_free(m.vm, block[k].at), 0);
			block[k].at = NULL;
			continue;
		}
		r.page = PAGE << (seed >> 20) % 4;
		block[k].len = (size_t)r.page * (1 + (seed >> 24) % 8);
		block[k].byte = (uint8_t)(i + 1);
		if (sci_vm_alloc(m.vm, block[k].len, &r, &p) == -ENOSPC)
			continue;
		block[k].at = p;
		CHECK_EQ((uintptr_t)p % r.page, 0);
		for (size_t j = 0; j < block[k].len; j += PAGE) {
			CHECK_EQ(block[k].at[j], 0);
			block[k].at[j] = block[k].byte;
		}
	}
	member_close(&m);
}

TEST(addresses_are_used_again)
{
	needs_mode(SCI_VM_MAP);
	mode = SCI_VM_MAP;
	ranks_run(2, 2, reuse_addresses);
}
