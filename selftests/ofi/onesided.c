// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* One-sided transfers and atomics, through libfabric. */
#include <complex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "selftests/ofi/link.h"

#define REQUEST	SCI_HANDLER_LIBRARY	/* handler of the provider's requests */
#define KEY		0x1234u
#define SIZE		((size_t)4 << 20)
#define RIGHTS		(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define CAPS		(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | \
			 FI_SOURCE)

static const struct link_config counts = { .caps = CAPS | FI_RMA_EVENT };
static const struct link_config plain = { .caps = CAPS };

/* ---- the target ---- */

/* Byte @i of round @round. */
static unsigned char pattern(size_t i, unsigned int round)
{
	return (unsigned char)(i * 7 + i / 251 + round * 13);
}

static void fill(void *buf, size_t len, unsigned int round)
{
	for (size_t i = 0; i < len; i++)
		((unsigned char *)buf)[i] = pattern(i, round);
}

static void check(const void *buf, size_t len, unsigned int round)
{
	for (size_t i = 0; i < len; i++)
		if (((const unsigned char *)buf)[i] != pattern(i, round))
			FAIL("byte %zu of %zu is wrong", i, len);
}

static void *alloc(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static struct fid_mr *region(struct link *l, void *buf, size_t len,
			     uint64_t access, uint64_t key)
{
	struct fid_mr *mr;

	CHECK_EQ(fi_mr_reg(l->domain, buf, len, access, 0, key, 0, &mr, NULL), 0);
	return mr;
}

/* Serve a region of SIZE bytes until the peer meets again. */
static void serves(struct peer *self, void *arg)
{
	const struct link_config *c = arg;
	struct link l = link_open(self, 4, c);
	char *buf = alloc(SIZE);
	struct fid_mr *mr = region(&l, buf, SIZE, RIGHTS, KEY);
	uint64_t key = fi_mr_key(mr);
	uint64_t base = c->mr_mode & FI_MR_BASIC ? (uintptr_t)buf : 0;

	PEER_PUT(self, key);
	PEER_PUT(self, base);
	link_meet(&l);
	CHECK_EQ(fi_close(&mr->fid), 0);
	link_close(&l);
}

struct served {
	struct peer *proc;
	struct link l;
	uint64_t key, base;
};

static struct served served_open(const struct link_config *c)
{
	struct served s = { .proc = peer_spawn(8, serves, (void *)c) };

	s.l = link_open(s.proc, 8, c);
	PEER_GET(s.proc, s.key);
	PEER_GET(s.proc, s.base);
	return s;
}

static void served_close(struct served *s)
{
	link_meet(&s->l);
	link_close(&s->l);
	peer_join(s->proc);
}

static void put(struct served *s, const void *buf, size_t len, uint64_t at)
{
	struct fi_cq_tagged_entry e;

	CHECK_EQ(fi_write(s->l.ep, buf, len, NULL, s->l.to, s->base + at, s->key,
			  &s->l), 0);
	e = link_next(&s->l, NULL);
	CHECK(e.op_context == &s->l);
	CHECK_EQ(e.flags, FI_RMA | FI_WRITE);
}

static void get(struct served *s, void *buf, size_t len, uint64_t at)
{
	struct fi_cq_tagged_entry e;

	CHECK_EQ(fi_read(s->l.ep, buf, len, NULL, s->l.to, s->base + at, s->key,
			 buf), 0);
	e = link_next(&s->l, NULL);
	CHECK(e.op_context == buf);
	CHECK_EQ(e.flags, FI_RMA | FI_READ);
}

/* ---- reads and writes ---- */

static void write_and_read(const struct link_config *c)
{
	static const size_t lens[] = {
		1, 8, 16, 17, 100, 4095, 4096, 4097, 10000, 65536, 1 << 20,
		SIZE - 77,
	};
	struct served s = served_open(c);
	char *out = alloc(SIZE), *in = alloc(SIZE);

	for (unsigned int i = 0; i < ARRAY_LEN(lens); i++) {
		uint64_t at = lens[i] == SIZE - 77 ? 77 : 1000 * i + i;

		fill(out, lens[i], i);
		put(&s, out, lens[i], at);
		memset(in, 0, lens[i] + 1);
		get(&s, in, lens[i], at);
		check(in, lens[i], i);
		CHECK_EQ(in[lens[i]], 0);
	}
	/* bytes beside the writes have not been touched */
	get(&s, in, 78, 0);
	for (unsigned int i = 0; i < 77; i++)
		CHECK_EQ(in[i], 0);
	CHECK_EQ(in[77], out[0]);
	CHECK_EQ(fi_cntr_read(s.l.asked), 2 * ARRAY_LEN(lens) + 1);
	served_close(&s);
}

TEST(writes_and_reads_of_all_lengths)
{
	write_and_read(&plain);
}

TEST(regions_with_keys_of_the_providers)
{
	static const struct link_config c = {
		.caps = CAPS,
		.mr_mode = FI_MR_PROV_KEY | FI_MR_ALLOCATED | FI_MR_LOCAL,
	};

	write_and_read(&c);
}

TEST(regions_by_address)
{
	static const struct link_config c = {
		.caps = CAPS, .mr_mode = FI_MR_BASIC,
	};

	write_and_read(&c);
}

/* ---- regions that are exported ---- */

static const struct link_config own_keys = {
	.caps = CAPS, .mr_mode = FI_MR_PROV_KEY,
};

TEST(exported_regions)
{
	setenv("FI_SCI_DIRECT", "1", 1);
	write_and_read(&own_keys);
}

static void fetch_add(struct served *s, uint64_t at, uint64_t by, uint64_t *old)
{
	CHECK_EQ(fi_fetch_atomic(s->l.ep, &by, 1, NULL, old, NULL, s->l.to,
				 s->base + at, s->key, FI_UINT64, FI_SUM, old), 0);
}

/* Look at exported memory without progress. */
static void only_looks(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, &own_keys);
	volatile char *buf = alloc(8192);
	struct fid_mr *mr = region(&l, (void *)buf, 8192, RIGHTS, 0);
	struct fid_mr *part = region(&l, (void *)(buf + 1), 100, RIGHTS, 0);
	uint64_t key = fi_mr_key(mr), other = fi_mr_key(part);

	(void)arg;
	CHECK(key != other);
	buf[1] = 'a';
	link_meet(&l);
	PEER_PUT(self, key);
	PEER_PUT(self, other);
	WAIT_UNTIL(buf[0], TEST_WAIT_MS);
	CHECK_EQ(buf[0], 'w');
	peer_send(self, "seen");
	link_meet(&l);
	/* after the close the memory is the program's alone */
	CHECK_EQ(fi_close(&mr->fid), 0);
	CHECK_EQ(buf[1], 'a');
	buf[0] = 'x';
	link_meet(&l);
	link_meet(&l);
	CHECK_EQ(buf[0], 'x');
	CHECK_EQ(fi_close(&part->fid), 0);
	link_close(&l);
}

/* Write to a region that is closed. Return true if that fails, which may be later. */
static bool fails(struct served *s)
{
	struct fi_cq_err_entry err = { .err = 0 };
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	CHECK_EQ(fi_write(s->l.ep, "y", 1, NULL, s->l.to, 0, s->key, NULL), 0);
	WAIT_UNTIL((ret = fi_cq_read(s->l.cq, &e, 1)) != -FI_EAGAIN,
		   TEST_WAIT_MS);
	if (ret == 1)
		return false;
	CHECK_EQ(fi_cq_readerr(s->l.cq, &err, 0), 1);
	CHECK_EQ(err.err, FI_ENOKEY);
	return true;
}

TEST(exported_regions_need_no_progress)
{
	struct served s = { .key = 0 };
	uint64_t part, word = 0;
	char byte = 0;

	setenv("FI_SCI_DIRECT", "1", 1);
	s.proc = peer_spawn(8, only_looks, NULL);
	s.l = link_open(s.proc, 8, &own_keys);
	link_meet(&s.l);
	link_next(&s.l, NULL);
	link_next(&s.l, NULL);
	PEER_GET(s.proc, s.key);
	PEER_GET(s.proc, part);
	get(&s, &byte, 1, 1);
	CHECK_EQ(byte, 'a');
	for (uint64_t i = 0; i < 3; i++) {
		fetch_add(&s, 4096, 5, &word);
		CHECK_EQ(link_next(&s.l, NULL).flags, FI_ATOMIC | FI_READ);
		CHECK_EQ(word, 5 * i);
	}
	put(&s, "w", 1, 0);
	peer_expect(s.proc, "seen");
	/* beyond the end of the region */
	CHECK_EQ(fi_write(s.l.ep, &word, 8, NULL, s.l.to, 8190, s.key, NULL), 0);
	CHECK_EQ(link_error(&s.l).err, ERANGE);
	link_meet(&s.l);
	link_next(&s.l, NULL);
	link_next(&s.l, NULL);
	/* the region is closed; a region that is not whole pages is served, not exported */
	link_meet(&s.l);
	link_next(&s.l, NULL);
	link_next(&s.l, NULL);
	WAIT_UNTIL(fails(&s), TEST_WAIT_MS);
	CHECK_EQ(fi_read(s.l.ep, &byte, 1, NULL, s.l.to, 0, part, NULL), 0);
	link_meet(&s.l);
	link_next(&s.l, NULL);
	CHECK_EQ(byte, 'a');
	link_close(&s.l);
	peer_join(s.proc);
}

/* As with other networks, a region may outlive its memory. */
TEST(exported_region_outlives_its_memory)
{
	struct fid_mr *mr;
	struct link l;
	char *buf = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(buf != MAP_FAILED);
	setenv("FI_SCI_DIRECT", "1", 1);
	l = link_open(NULL, 4, &own_keys);
	mr = region(&l, buf, 8192, RIGHTS, 0);
	CHECK_EQ(munmap(buf, 8192), 0);
	CHECK_EQ(fi_close(&mr->fid), 0);
	link_close(&l);
}

/* Look at exported memory without progress, then take the data of the write. */
static void looks_first(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, &own_keys);
	volatile char *buf = alloc(4096);
	struct fid_mr *mr = region(&l, (void *)buf, 4096, RIGHTS, 0);
	uint64_t key = fi_mr_key(mr);
	struct fi_cq_tagged_entry e;
	fi_addr_t src;

	(void)arg;
	PEER_PUT(self, key);
	link_meet(&l);
	link_next(&l, NULL);
	link_next(&l, NULL);
	WAIT_UNTIL(buf[0], TEST_WAIT_MS);
	e = link_next(&l, &src);
	CHECK(!memcmp((void *)buf, "abc", 3));
	CHECK_EQ(src, l.to);
	CHECK_EQ(e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
	CHECK_EQ(e.data, UINT64_MAX);
	CHECK_EQ(e.len, 3);
	link_meet(&l);
	CHECK_EQ(fi_close(&mr->fid), 0);
	link_close(&l);
}

TEST(data_of_a_write_to_an_exported_region)
{
	struct served s = { .key = 0 };
	struct fi_cq_tagged_entry e;

	setenv("FI_SCI_DIRECT", "1", 1);
	s.proc = peer_spawn(8, looks_first, NULL);
	s.l = link_open(s.proc, 8, &own_keys);
	PEER_GET(s.proc, s.key);
	link_meet(&s.l);
	link_next(&s.l, NULL);
	link_next(&s.l, NULL);
	CHECK_EQ(fi_writedata(s.l.ep, "abc", 3, NULL, UINT64_MAX, s.l.to, 0, s.key, &s), 0);
	e = link_next(&s.l, NULL);
	CHECK(e.op_context == &s);
	CHECK_EQ(e.flags, FI_RMA | FI_WRITE);
	served_close(&s);
}

TEST(nothing_is_written_and_read)
{
	struct served s = served_open(&plain);

	put(&s, NULL, 0, SIZE);
	get(&s, NULL, 0, 0);
	served_close(&s);
}

TEST(pieces_and_places)
{
	struct served s = served_open(&plain);
	char out[3000], in[3000];
	const struct iovec from[3] = {
		{ out, 1 }, { out + 1, 1999 }, { out + 2000, 1000 },
	};
	const struct iovec to[2] = { { in, 2500 }, { in + 2500, 500 } };
	const struct fi_rma_iov places[4] = {
		{ s.base + 9000, 10, s.key }, { s.base + 1, 0, s.key },
		{ s.base + 100, 2000, s.key }, { s.base + 5000, 990, s.key },
	};
	struct fi_msg_rma m = {
		.msg_iov = from, .iov_count = 3, .addr = s.l.to,
		.rma_iov = places, .rma_iov_count = 4, .context = out,
	};

	fill(out, sizeof(out), 3);
	CHECK_EQ(fi_writemsg(s.l.ep, &m, FI_DELIVERY_COMPLETE), 0);
	CHECK(link_next(&s.l, NULL).op_context == out);
	m.msg_iov = to;
	m.iov_count = 2;
	CHECK_EQ(fi_readmsg(s.l.ep, &m, 0), 0);
	link_next(&s.l, NULL);
	check(in, sizeof(in), 3);
	/* plain vectors, at another place */
	CHECK_EQ(fi_writev(s.l.ep, from, NULL, 3, s.l.to, s.base + 20000, s.key,
			   NULL), 0);
	link_next(&s.l, NULL);
	memset(in, 0, sizeof(in));
	CHECK_EQ(fi_readv(s.l.ep, to, NULL, 2, s.l.to, s.base + 20000, s.key,
			  NULL), 0);
	link_next(&s.l, NULL);
	check(in, sizeof(in), 3);
	/* pieces and places of different lengths, then too many places */
	m.iov_count = 1;
	CHECK_EQ(fi_readmsg(s.l.ep, &m, 0), -FI_EINVAL);
	m.rma_iov_count = 5;
	CHECK_EQ(fi_writemsg(s.l.ep, &m, 0), -FI_EINVAL);
	served_close(&s);
}

/* ---- events at the target ---- */

static void hears_of_writes(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, &counts);
	static char buf[20000];
	struct fid_mr *mr = region(&l, buf, sizeof(buf), RIGHTS, KEY);
	struct fi_cq_tagged_entry e;
	struct fid_cntr *cntr;
	fi_addr_t src;

	(void)arg;
	CHECK_EQ(fi_cntr_open(l.domain, NULL, &cntr, NULL), 0);
	CHECK_EQ(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	CHECK_EQ(fi_mr_enable(mr), 0);
	peer_send(self, "there");
	/* the order of the long write's end is not defined */
	for (uint64_t seen = 0; seen != 7;) {
		e = link_next(&l, &src);
		CHECK_EQ(src, l.to);
		CHECK_EQ(e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
		CHECK(e.data >= 1 && e.data <= 3 && !(seen & 1u << (e.data - 1)));
		CHECK_EQ(e.len, e.data == 3 ? 20000 : 4);
		seen |= 1u << (e.data - 1);
	}
	check(buf, sizeof(buf), 1);
	WAIT_UNTIL(fi_cntr_read(l.served) == 5, TEST_WAIT_MS);
	CHECK_EQ(fi_cntr_read(cntr), 4);
	link_meet(&l);
	CHECK_EQ(fi_close(&mr->fid), 0);
	CHECK_EQ(fi_close(&cntr->fid), 0);
	link_close(&l);
}

/* Only the counter of the region makes progress. */
static void waits_for_writes(struct peer *self, void *arg)
{
	enum fi_wait_obj *wait = arg;
	struct link l = link_open(self, 4, &counts);
	struct fi_cntr_attr attr = {
		.events = FI_CNTR_EVENTS_COMP, .wait_obj = *wait,
	};
	static char buf[100];
	struct fid_mr *mr = region(&l, buf, sizeof(buf), RIGHTS, KEY);
	struct fid_cntr *cntr;

	CHECK_EQ(fi_cntr_open(l.domain, &attr, &cntr, NULL), 0);
	CHECK_EQ(fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), 0);
	CHECK_EQ(fi_cntr_wait(cntr, 1, 10), -FI_ETIMEDOUT);
	peer_send(self, "there");
	for (uint64_t i = 1; i <= 3; i++)
		CHECK_EQ(fi_cntr_wait(cntr, i, TEST_WAIT_MS), 0);
	check(buf, sizeof(buf), 3);
	link_meet(&l);
	CHECK_EQ(fi_close(&cntr->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&mr->fid), 0);
	CHECK_EQ(fi_close(&cntr->fid), 0);
	link_close(&l);
}

static void check_waiting(enum fi_wait_obj wait)
{
	struct peer *p = peer_spawn(8, waits_for_writes, &wait);
	struct link l = link_open(p, 8, &counts);
	char buf[100];

	peer_expect(p, "there");
	for (unsigned int i = 1; i <= 3; i++) {
		fill(buf, sizeof(buf), i);
		CHECK_EQ(fi_write(l.ep, buf, sizeof(buf), NULL, l.to, 0, KEY,
				  NULL), 0);
		link_next(&l, NULL);
	}
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

TEST(a_counter_of_a_region_is_waited_for)
{
	check_waiting(FI_WAIT_NONE);
	check_waiting(FI_WAIT_FD);
}

TEST(the_target_is_told)
{
	struct peer *p = peer_spawn(8, hears_of_writes, NULL);
	struct link l = link_open(p, 8, &counts);
	static char buf[20000];
	uint32_t word = 0;

	peer_expect(p, "there");
	CHECK_EQ(fi_inject_write(l.ep, "none", 4, l.to, 100, KEY), 0);
	CHECK_EQ(fi_inject_writedata(l.ep, "none", 4, 1, l.to, 0, KEY), 0);
	CHECK_EQ(fi_writedata(l.ep, "none", 4, NULL, 2, l.to, 4, KEY, NULL), 0);
	link_next(&l, NULL);
	CHECK_EQ(fi_read(l.ep, &word, 4, NULL, l.to, 100, KEY, NULL), 0);
	link_next(&l, NULL);
	CHECK(!memcmp(&word, "none", 4));
	fill(buf, sizeof(buf), 1);
	CHECK_EQ(fi_writedata(l.ep, buf, sizeof(buf), NULL, 3, l.to, 0, KEY,
			      NULL), 0);
	link_next(&l, NULL);
	/* the counter counts writes without a completion, too */
	WAIT_UNTIL(fi_cntr_read(l.asked) == 5, TEST_WAIT_MS);
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

/* ---- refused requests ---- */

static void refuses(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, &plain);
	static char buf[100000];
	struct fid_mr *r = region(&l, buf, 100000, FI_REMOTE_READ, 1);
	struct fid_mr *w = region(&l, buf, 100000, FI_REMOTE_WRITE, 2);
	struct fid_mr *gone = region(&l, buf, 100000, RIGHTS, 3), *again;

	(void)arg;
	CHECK_EQ(fi_mr_reg(l.domain, buf, 8, RIGHTS, 0, 3, 0, &again, NULL),
		 -FI_ENOKEY);
	CHECK_EQ(fi_close(&gone->fid), 0);
	peer_send(self, "there");
	link_meet(&l);
	for (size_t i = 0; i < sizeof(buf); i++)
		CHECK_EQ(buf[i], 0);
	CHECK_EQ(fi_close(&r->fid), 0);
	CHECK_EQ(fi_close(&w->fid), 0);
	link_close(&l);
}

static const struct {
	uint64_t key, at;
	size_t len;
	int err;
} bad_writes[] = {
	{ 1, 0, 4, FI_EACCES }, { 3, 0, 4, FI_ENOKEY }, { 4, 0, 4, FI_ENOKEY },
	{ 2, 99997, 4, ERANGE }, { 2, UINT64_MAX - 1, 4, ERANGE },
	{ 2, 100001, 0, ERANGE }, { 1, 0, 50000, FI_EACCES },
	{ 2, 60000, 50000, ERANGE }, { 3, 0, 50000, FI_ENOKEY },
};

TEST(what_is_not_allowed_is_refused)
{
	struct peer *p = peer_spawn(8, refuses, NULL);
	struct link l = link_open(p, 8, &plain);
	static char buf[50000];
	uint64_t errors = 0;

	peer_expect(p, "there");
	memset(buf, 1, sizeof(buf));
	for (size_t i = 0; i < ARRAY_LEN(bad_writes); i++) {
		struct fi_cq_err_entry e;

		CHECK_EQ(fi_write(l.ep, buf, bad_writes[i].len, NULL, l.to,
				  bad_writes[i].at, bad_writes[i].key, buf), 0);
		e = link_error(&l);
		CHECK_EQ(e.err, bad_writes[i].err);
		CHECK(e.op_context == buf);
		CHECK_EQ(e.flags, FI_RMA | FI_WRITE);
		CHECK_EQ(fi_cntr_readerr(l.asked), ++errors);
	}
	CHECK_EQ(fi_read(l.ep, buf, 4, NULL, l.to, 0, 2, NULL), 0);
	CHECK_EQ(link_error(&l).err, FI_EACCES);
	CHECK_EQ(fi_read(l.ep, buf, 40000, NULL, l.to, 60001, 1, NULL), 0);
	CHECK_EQ(link_error(&l).err, ERANGE);
	/* a failed inject reports its error, though a good one has no completion */
	CHECK_EQ(fi_inject_write(l.ep, buf, 4, l.to, 0, 1), 0);
	CHECK_EQ(link_error(&l).err, FI_EACCES);
	CHECK_EQ(fi_inject_write(l.ep, buf, 5000, l.to, 0, 2), -FI_EMSGSIZE);
	/* allowed requests still work */
	CHECK_EQ(fi_read(l.ep, buf, 40000, NULL, l.to, 60000, 1, NULL), 0);
	link_next(&l, NULL);
	for (unsigned int i = 0; i < 40000; i++)
		CHECK_EQ(buf[i], 0);
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

TEST(an_endpoint_that_serves_none_says_so)
{
	static const struct link_config messages = { .caps = FI_TAGGED };
	struct served s = { .proc = peer_spawn(8, serves, (void *)&messages) };
	char buf[5000] = { 0 };

	s.l = link_open(s.proc, 8, &plain);
	PEER_GET(s.proc, s.key);
	PEER_GET(s.proc, s.base);
	CHECK_EQ(fi_write(s.l.ep, buf, 8, NULL, s.l.to, 0, s.key, NULL), 0);
	CHECK_EQ(link_error(&s.l).err, FI_EOPNOTSUPP);
	CHECK_EQ(fi_write(s.l.ep, buf, 5000, NULL, s.l.to, 0, s.key, NULL), 0);
	CHECK_EQ(link_error(&s.l).err, FI_EOPNOTSUPP);
	served_close(&s);
}

/* ---- atomics ---- */

#define ADDS	200u

static void adds(struct peer *self, void *arg)
{
	struct served s = { .key = KEY };
	uint64_t old, last = 0;

	(void)arg;
	peer_expect(self, "go");
	s.l = link_open(self, 8, &plain);
	for (unsigned int i = 0; i < ADDS; i++) {
		fetch_add(&s, 64, 3, &old);
		CHECK_EQ(link_next(&s.l, NULL).flags, FI_ATOMIC | FI_READ);
		CHECK(!i || old > last);
		last = old;
	}
	link_close(&s.l);
}

TEST(three_add_to_one_word)
{
	struct peer *p[2] = {
		peer_spawn(12, adds, NULL), peer_spawn(16, adds, NULL),
	};
	struct served s = served_open(&plain);
	uint64_t old, sum;

	peer_send(p[0], "go");
	peer_send(p[1], "go");
	for (unsigned int i = 0; i < ADDS; i++) {
		fetch_add(&s, 64, 3, &old);
		link_next(&s.l, NULL);
	}
	peer_join(p[0]);
	peer_join(p[1]);
	get(&s, &sum, 8, 64);
	CHECK_EQ(sum, 9u * ADDS);
	served_close(&s);
}

/* The target executes atomics on two words; this side executes those on one word. */
static void adds_both_ways(struct peer *self, void *arg)
{
	uint64_t by[2] = { 3, 1 }, old;
	struct served s = { .base = 0 };

	(void)arg;
	PEER_GET(self, s.key);
	s.l = link_open(self, 8, &own_keys);
	for (unsigned int i = 0; i < ADDS; i++) {
		fetch_add(&s, 64, 3, &old);
		link_next(&s.l, NULL);
		CHECK_EQ(fi_atomic(s.l.ep, by, 2, NULL, s.l.to, 64, s.key,
				   FI_UINT64, FI_SUM, NULL), 0);
		link_next(&s.l, NULL);
	}
	link_close(&s.l);
}

TEST(words_that_both_sides_change)
{
	struct peer *p[2];
	struct served s;
	uint64_t sum[2];

	setenv("FI_SCI_DIRECT", "1", 1);
	for (unsigned int i = 0; i < 2; i++)
		p[i] = peer_spawn(12 + 4 * i, adds_both_ways, NULL);
	s = served_open(&own_keys);
	for (unsigned int i = 0; i < 2; i++)
		PEER_PUT(p[i], s.key);
	for (unsigned int i = 0; i < 2; i++)
		peer_join(p[i]);
	get(&s, sum, 16, 64);
	CHECK_EQ(sum[0], 2u * 2 * 3 * ADDS);
	CHECK_EQ(sum[1], 2u * ADDS);
	served_close(&s);
}

/* @op of @was and @operand gives @is; a swap compares with @with. */
struct sum {
	enum fi_op op;
	int64_t was, operand, with, is;
};

static const struct sum sums[] = {
	{ FI_MIN, -5, 3, 0, -5 }, { FI_MIN, 5, -3, 0, -3 },
	{ FI_MAX, -5, 3, 0, 3 }, { FI_MAX, 5, 3, 0, 5 },
	{ FI_SUM, -5, 3, 0, -2 }, { FI_PROD, -5, 3, 0, -15 },
	{ FI_LOR, 0, 7, 0, 1 }, { FI_LOR, 0, 0, 0, 0 },
	{ FI_LAND, 5, 7, 0, 1 }, { FI_LAND, 5, 0, 0, 0 },
	{ FI_LXOR, 5, 7, 0, 0 }, { FI_LXOR, 5, 0, 0, 1 },
	{ FI_BOR, 5, 3, 0, 7 }, { FI_BAND, 5, 3, 0, 1 },
	{ FI_BXOR, 5, 3, 0, 6 }, { FI_ATOMIC_READ, 5, 3, 0, 5 },
	{ FI_ATOMIC_WRITE, 5, 3, 0, 3 }, { FI_CSWAP, 5, 3, 5, 3 },
	{ FI_CSWAP, 5, 3, 4, 5 }, { FI_CSWAP_NE, 5, 3, 5, 5 },
	{ FI_CSWAP_NE, 5, 3, 4, 3 }, { FI_CSWAP_LE, 5, 3, 5, 3 },
	{ FI_CSWAP_LE, 5, 3, 6, 5 }, { FI_CSWAP_LT, 5, 3, 5, 5 },
	{ FI_CSWAP_LT, 5, 3, 4, 3 }, { FI_CSWAP_GE, 5, 3, 5, 3 },
	{ FI_CSWAP_GE, 5, 3, 4, 5 }, { FI_CSWAP_GT, 5, 3, 5, 5 },
	{ FI_CSWAP_GT, 5, 3, 6, 3 }, { FI_MSWAP, 12, 3, 5, 9 },
};

/* Store a small number as @type, or load it. */
#define CONVERT(is, name, type)						\
	case name:							\
		if (is)							\
			*(type *)p = (type)v;				\
		else							\
			v = (int64_t)*(type *)p;			\
		break;

static int64_t convert(enum fi_datatype type, void *p, int64_t v, bool is)
{
	switch ((int)type) {
	CONVERT(is, FI_INT8, int8_t)
	CONVERT(is, FI_UINT8, uint8_t)
	CONVERT(is, FI_INT16, int16_t)
	CONVERT(is, FI_UINT16, uint16_t)
	CONVERT(is, FI_INT32, int32_t)
	CONVERT(is, FI_UINT32, uint32_t)
	CONVERT(is, FI_INT64, int64_t)
	CONVERT(is, FI_UINT64, uint64_t)
	CONVERT(is, FI_FLOAT, float)
	CONVERT(is, FI_DOUBLE, double)
	CONVERT(is, FI_FLOAT_COMPLEX, float complex)
	CONVERT(is, FI_DOUBLE_COMPLEX, double complex)
	CONVERT(is, FI_LONG_DOUBLE, long double)
	CONVERT(is, FI_LONG_DOUBLE_COMPLEX, long double complex)
	default:
		FAIL("type %d", type);
	}
	return v;
}

static bool is_signed(enum fi_datatype type)
{
	return type > FI_UINT64 || type == FI_INT8 || type == FI_INT16 ||
	       type == FI_INT32 || type == FI_INT64;
}

/* Return true if fi_atomic(3) defines @op for @type. */
static bool there_is(enum fi_datatype type, enum fi_op op)
{
	bool complex_ = type == FI_FLOAT_COMPLEX || type == FI_DOUBLE_COMPLEX ||
			type == FI_LONG_DOUBLE_COMPLEX;

	switch ((int)op) {
	case FI_BOR: case FI_BAND: case FI_BXOR: case FI_MSWAP:
		return type <= FI_UINT64;
	case FI_MIN: case FI_MAX: case FI_CSWAP_LE: case FI_CSWAP_LT:
	case FI_CSWAP_GE: case FI_CSWAP_GT:
		return !complex_;
	default:
		return true;
	}
}

static uint64_t query_flags(enum fi_op op)
{
	return op >= FI_CSWAP ? FI_COMPARE_ATOMIC : FI_FETCH_ATOMIC;
}

static void try_sum(struct served *s, enum fi_datatype type, size_t size,
		    const struct sum *m, uint64_t at)
{
	_Alignas(16) char was[32], operand[32], with[32], before[32], is[32];
	int ret;

	convert(type, was, m->was, true);
	convert(type, operand, m->operand, true);
	convert(type, with, m->with, true);
	put(s, was, size, at);
	if (m->op >= FI_CSWAP)
		ret = (int)fi_compare_atomic(s->l.ep, operand, 1, NULL, with,
					     NULL, before, NULL, s->l.to,
					     s->base + at, s->key, type, m->op,
					     NULL);
	else
		ret = (int)fi_fetch_atomic(s->l.ep, operand, 1, NULL, before,
					   NULL, s->l.to, s->base + at, s->key,
					   type, m->op, NULL);
	CHECK_EQ(ret, 0);
	CHECK_EQ(link_next(&s->l, NULL).flags, FI_ATOMIC | FI_READ);
	CHECK_EQ(convert(type, before, 0, false), m->was);
	get(s, is, size, at);
	if (convert(type, is, 0, false) != m->is)
		FAIL("type %d, op %d: %lld %lld %lld: %lld", type, m->op,
		     (long long)m->was, (long long)m->operand,
		     (long long)m->with,
		     (long long)convert(type, is, 0, false));
}

static void all_operations(const struct link_config *c)
{
	struct served s = served_open(c);

	for (enum fi_datatype t = 0; t < FI_DATATYPE_LAST; t++)
		for (size_t i = 0; i < ARRAY_LEN(sums); i++) {
			enum fi_op op = sums[i].op;
			struct fi_atomic_attr a;
			int ret = fi_query_atomic(s.l.domain, t, op, &a,
						  query_flags(op));

			CHECK_EQ(ret, there_is(t, op) ? 0 : -FI_EOPNOTSUPP);
			if (ret || (!is_signed(t) && sums[i].was < 0) ||
			    (!is_signed(t) && sums[i].operand < 0))
				continue;
			CHECK_EQ(a.count, 2048 / a.size);
			try_sum(&s, t, a.size, &sums[i], 256);
			/* this type is aligned as its halves: a value may cross a cache line */
			if (t == FI_FLOAT_COMPLEX)
				try_sum(&s, t, a.size, &sums[i], 316);
		}
	served_close(&s);
}

TEST(all_operations_on_all_types)
{
	all_operations(&plain);
}

TEST(all_operations_on_exported_regions)
{
	setenv("FI_SCI_DIRECT", "1", 1);
	all_operations(&own_keys);
}

TEST(many_values_at_once)
{
	struct served s = served_open(&plain);
	static uint32_t ones[512], with[512], before[512], now[512];
	const struct fi_ioc out[2] = { { ones, 500 }, { ones + 500, 12 } };
	struct fi_ioc in[2] = { { before, 12 }, { before + 12, 500 } };
	const struct fi_ioc cmp[1] = { { with, 512 } };
	const struct fi_rma_ioc places[2] = {
		{ s.base + 400, 100, s.key }, { s.base + 4000, 412, s.key },
	};
	const struct fi_msg_atomic m = {
		.msg_iov = out, .iov_count = 2, .addr = s.l.to,
		.rma_iov = places, .rma_iov_count = 2, .datatype = FI_UINT32,
		.op = FI_CSWAP,
	};

	for (unsigned int i = 0; i < 512; i++)
		ones[i] = 1000 + i;
	with[7] = 1;
	CHECK_EQ(fi_compare_atomicmsg(s.l.ep, &m, cmp, NULL, 1, in, NULL, 2, 0), 0);
	link_next(&s.l, NULL);
	get(&s, now, 400, 400);
	get(&s, now + 100, 412 * 4, 4000);
	for (unsigned int i = 0; i < 512; i++) {
		CHECK_EQ(before[i], 0);
		CHECK_EQ(now[i], i == 7 ? 0 : 1000 + i);
	}
	/* atomics without a result; the first has no completion */
	CHECK_EQ(fi_inject_atomic(s.l.ep, ones, 10, s.l.to, s.base + 400, s.key,
				  FI_UINT32, FI_SUM), 0);
	CHECK_EQ(fi_atomicv(s.l.ep, out, NULL, 1, s.l.to, s.base + 4000, s.key,
			    FI_UINT32, FI_ATOMIC_WRITE, NULL), 0);
	CHECK_EQ(link_next(&s.l, NULL).flags, FI_ATOMIC | FI_WRITE);
	get(&s, now, 400, 400);
	CHECK_EQ(now[9], 2018);
	CHECK_EQ(now[10], 1010);
	/* too many values; a misaligned place */
	CHECK_EQ(fi_atomic(s.l.ep, ones, 513, NULL, s.l.to, s.base, s.key,
			   FI_UINT32, FI_SUM, NULL), -FI_EINVAL);
	CHECK_EQ(fi_atomic(s.l.ep, ones, 1, NULL, s.l.to, s.base + 2, s.key,
			   FI_UINT32, FI_SUM, NULL), 0);
	CHECK_EQ(link_error(&s.l).err, FI_EINVAL);
	served_close(&s);
}

/* ---- replies behind injected messages ---- */

static void injects_until_it_is_full(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, &plain);
	static char buf[8];
	struct fid_mr *mr = region(&l, buf, sizeof(buf), RIGHTS, KEY);
	uint32_t n = 0;

	(void)arg;
	link_meet(&l);
	peer_expect(self, "asked");
	while (!fi_tinject(l.ep, &n, 4, l.to, 1))
		n++;
	CHECK(n);
	/* this serves the request, whose reply finds no room */
	WAIT_UNTIL((fi_cntr_read(l.received), ((volatile char *)buf)[0]),
		   TEST_WAIT_MS);
	CHECK_EQ(buf[0], 'w');
	PEER_PUT(self, n);
	link_meet(&l);
	CHECK_EQ(fi_close(&mr->fid), 0);
	link_close(&l);
}

TEST(replies_wait_behind_what_is_injected)
{
	struct peer *p = peer_spawn(8, injects_until_it_is_full, NULL);
	struct link l = link_open(p, 8, &plain);
	uint32_t n, word = 0;
	bool replied = false;

	link_meet(&l);
	link_next(&l, NULL);
	link_next(&l, NULL);
	CHECK_EQ(fi_write(l.ep, "w", 1, NULL, l.to, 0, KEY, &l), 0);
	peer_send(p, "asked");
	PEER_GET(p, n);
	for (uint32_t i = 0; i < n; i++) {
		struct fi_cq_tagged_entry e;

		CHECK_EQ(fi_trecv(l.ep, &word, 4, NULL, l.to, 1, 0, NULL), 0);
		e = link_next(&l, NULL);
		if (e.op_context == &l) {
			CHECK(!replied);
			replied = true;
			link_next(&l, NULL);
		}
		CHECK_EQ(word, i);
	}
	if (!replied)
		CHECK(link_next(&l, NULL).op_context == &l);
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}

/* ---- requests of a peer whose address was removed ---- */

#define EARLIER	8u	/* requests before the removal */

static void asks_meanwhile(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, &plain);

	(void)arg;
	link_meet(&l);
	link_next(&l, NULL);
	link_next(&l, NULL);
	peer_expect(self, "go");
	for (unsigned int i = 0; i < EARLIER; i++)
		CHECK_EQ(fi_write(l.ep, "v", 1, NULL, l.to, i, KEY, &l), 0);
	peer_send(self, "asked");
	peer_expect(self, "removed");
	CHECK_EQ(fi_write(l.ep, "w", 1, NULL, l.to, 0, KEY, &l), 0);
	peer_send(self, "asked");
	peer_expect(self, "inserted");
	/* earlier replies may have been lost with the connection */
	WAIT_UNTIL(fi_cntr_read(l.asked) + fi_cntr_readerr(l.asked) == EARLIER + 1,
		   TEST_WAIT_MS);
	CHECK(fi_cntr_readerr(l.asked));
	CHECK_EQ(fi_av_remove(l.av, &l.to, 1, 0), 0);
	l.to = link_insert(&l, 4, 1);
	LINK_SEND(&l, fi_tinject(l.ep, "b", 1, l.to, 1));
	link_meet(&l);
	link_close(&l);
}

/* The connection stays for replies, and drops the peer's next request meanwhile. */
TEST(a_request_after_the_removal_of_its_address_fails)
{
	struct peer *p = peer_spawn(8, asks_meanwhile, NULL);
	struct link l = link_open(p, 8, &plain);
	volatile char buf[EARLIER] = "";
	struct fid_mr *mr = region(&l, (void *)buf, sizeof(buf), RIGHTS, KEY);
	struct fi_cq_tagged_entry e;
	char back = 0;

	link_meet(&l);
	link_next(&l, NULL);
	link_next(&l, NULL);
	peer_send(p, "go");
	peer_expect(p, "asked");
	while (!fi_tinject(l.ep, "i", 1, l.to, 1))
		;
	/* the last replies find no room */
	WAIT_UNTIL((fi_cntr_read(l.received), buf[EARLIER - 1]), TEST_WAIT_MS);
	CHECK_EQ(fi_av_remove(l.av, &l.to, 1, 0), 0);
	peer_send(p, "removed");
	peer_expect(p, "asked");
	for (unsigned int i = 0; i < 1000; i++)
		CHECK_EQ(fi_cq_read(l.cq, &e, 1), -FI_EAGAIN);
	l.to = link_insert(&l, 8, 1);
	/* this connects again, before the peer makes room for the replies */
	CHECK_EQ(fi_trecv(l.ep, &back, 1, NULL, l.to, 1, 0, NULL), 0);
	peer_send(p, "inserted");
	link_meet(&l);
	CHECK_EQ(buf[0], 'v');
	CHECK_EQ(back, 'b');
	CHECK_EQ(fi_close(&mr->fid), 0);
	link_close(&l);
	peer_join(p);
}

/* ---- peers that die or break the protocol ---- */

static void stands_still(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, &plain);
	static char buf[100000];

	(void)arg;
	region(&l, buf, sizeof(buf), RIGHTS, KEY);
	link_meet(&l);
	peer_send(self, "met");
	pause();
}

TEST(a_target_that_dies)
{
	struct peer *p = peer_spawn(8, stands_still, NULL);
	struct link l = link_open(p, 8, &plain);
	static char buf[100000];
	uint64_t word = 0;

	link_meet(&l);
	peer_expect(p, "met");
	link_next(&l, NULL);
	link_next(&l, NULL);
	CHECK_EQ(fi_write(l.ep, buf, 8, NULL, l.to, 0, KEY, NULL), 0);
	CHECK_EQ(fi_write(l.ep, buf, sizeof(buf), NULL, l.to, 0, KEY, NULL), 0);
	CHECK_EQ(fi_read(l.ep, buf, 100, NULL, l.to, 0, KEY, NULL), 0);
	CHECK_EQ(fi_fetch_atomic(l.ep, &word, 1, NULL, &word, NULL, l.to, 0, KEY,
				 FI_UINT64, FI_SUM, NULL), 0);
	peer_kill(p, SIGKILL);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(link_error(&l).err, FI_ECONNRESET);
	CHECK_EQ(fi_read(l.ep, buf, 100, NULL, l.to, 0, KEY, NULL), 0);
	CHECK_EQ(link_error(&l).err, FI_ECONNRESET);
	link_close(&l);
}

/* Make a random request whose first fields are nearly valid. */
static void noise(uint32_t *state, unsigned char *r, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		*state = *state * 1664525 + 1013904223;
		r[i] = (unsigned char)(*state >> 24);
	}
	r[0] %= 7;			/* verb */
	r[1] %= 16;			/* type */
	r[2] %= 22;			/* op */
	r[3] %= 6;			/* places */
	r[4] &= 1;			/* data follows apart */
	if (*state & 1 << 20) {
		/* an existing region, and a place that is almost inside */
		memset(r + 8, 0, 24);
		r[16] = 0x34, r[17] = 0x12;
		r[8] = r[5], r[9] = r[6];
		r[24] = r[7];
	}
}

/* The provider handles requests in handler REQUEST, and receives bytes in context 3. */
static void talks_nonsense(struct peer *self, void *arg)
{
	const struct sci_addr to = { 8, 1 };
	unsigned char r[300];
	uint32_t state = 1;
	struct sci_peer *p;
	struct sci_ep *ep;

	(void)arg;
	peer_expect(self, "go");
	CHECK_EQ(sci_ep_open(&ep, 0, 0), 0);
	CHECK_EQ(sci_connect(ep, &to, TEST_WAIT_MS, &p), 0);
	for (unsigned int i = 0; i < 5000; i++) {
		noise(&state, r, sizeof(r));
		WAIT_UNTIL((sci_progress(ep),
			    !sci_handler_send(p, REQUEST, i, r, state % sizeof(r))),
			   TEST_WAIT_MS);
		if (state & 2)
			CHECK_EQ(sci_tsend(p, 3, i, r, r[9]), 0);
	}
	CHECK_EQ(sci_ep_close(ep), 0);
}

TEST(nonsense_does_no_harm)
{
	struct peer *p = peer_spawn(12, talks_nonsense, NULL);
	struct served s = served_open(&plain);
	char out[100], in[100];

	peer_send(p, "go");
	peer_join(p);
	fill(out, sizeof(out), 5);
	put(&s, out, sizeof(out), 70000);
	get(&s, in, sizeof(in), 70000);
	check(in, sizeof(in), 5);
	served_close(&s);
}

/* Request a write whose bytes never come, then a write of a word. */
static void promises(struct peer *self, void *arg)
{
	struct { uint8_t head[8]; uint64_t addr, key, len, word; } r = {
		.head = { 0, 0, 0, 1, 1 }, .key = KEY, .len = 10000, .word = 1,
	};
	const struct sci_addr to = { 8, 1 };
	struct sci_peer *p;
	struct sci_ep *ep;

	(void)arg;
	peer_expect(self, "go");
	CHECK_EQ(sci_ep_open(&ep, 0, 0), 0);
	CHECK_EQ(sci_connect(ep, &to, TEST_WAIT_MS, &p), 0);
	CHECK_EQ(sci_handler_send(p, REQUEST, 1, &r, sizeof(r) - 8), 0);
	r.head[4] = 0;
	r.key = KEY + 1;
	r.len = 8;
	CHECK_EQ(sci_handler_send(p, REQUEST, 2, &r, sizeof(r)), 0);
	pause();
}

static void waits_in_vain(struct peer *self, void *arg)
{
	struct link l = link_open(self, 4, &plain);
	static char buf[10000];
	static volatile uint64_t word;
	struct fid_mr *mr = region(&l, buf, sizeof(buf), RIGHTS, KEY);
	struct fid_mr *other = region(&l, (void *)&word, 8, RIGHTS, KEY + 1);

	(void)arg;
	peer_send(self, "there");
	WAIT_UNTIL(!fi_cntr_read(l.received) && word, TEST_WAIT_MS);
	CHECK_EQ(fi_close(&mr->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&other->fid), 0);
	peer_send(self, "busy");
	WAIT_UNTIL(!fi_cntr_read(l.received) && !fi_close(&mr->fid),
		   TEST_WAIT_MS);
	/* the key of the closed region is free */
	mr = region(&l, buf, 8, RIGHTS, KEY);
	CHECK_EQ(fi_close(&mr->fid), 0);
	link_meet(&l);
	link_close(&l);
}

TEST(a_region_in_use_is_not_closed)
{
	struct peer *p = peer_spawn(8, waits_in_vain, NULL);
	struct peer *liar = peer_spawn(12, promises, NULL);
	struct link l = link_open(p, 8, &plain);

	peer_expect(p, "there");
	peer_send(liar, "go");
	peer_expect(p, "busy");
	peer_kill(liar, SIGKILL);
	link_meet(&l);
	link_close(&l);
	peer_join(p);
}
