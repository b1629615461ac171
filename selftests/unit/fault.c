// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* SCI_FAULT: the syntax of its value, and the number and kind of the injected faults. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/fabric/core/fault.h"
#include "selftests/harness.h"

#define DRAWS	20000

static bool down_at(uint64_t ms)
{
	uint64_t next;

	return sci_fault_link(ms, &next);
}

TEST(no_faults)
{
	uint64_t next = 0;

	CHECK_EQ(sci_fault_init(NULL), 0);
	CHECK(!atomic_load(&sci_fault_enabled));
	CHECK_EQ(sci_fault_init(""), 0);
	CHECK(!atomic_load(&sci_fault_enabled));
	CHECK(!sci_fault_link(0, &next));
	CHECK(next == UINT64_MAX);
	CHECK(!sci_fault_link(UINT64_MAX, &next));
}

TEST(words_it_knows)
{
	static const char *const good[] = {
		"loss=0", "loss=1", "loss=0.5", "loss=1e-9", "loss=1.0",
		"retriable=0.25", "fatal=0.001", "seed=0", "seed=1",
		"seed=4294967295", "linkdown=0", "linkdown=500",
		"linkdown=500:200", "linkdown=0:0",
		"loss=0.01,seed=7", "seed=7,loss=0.01",
		"loss=0.1,retriable=0.2,fatal=0.3,linkdown=1:2,seed=9",
		"linkdown=1:1,linkdown=3:1,linkdown=5:1",
		"loss=0.1,loss=0.2",
		"reorder=0", "reorder=1", "dup=0.5", "reorder=0.1,dup=1e-3",
	};

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		if (sci_fault_init(good[i]))
			FAIL("\"%s\" was refused", good[i]);
		CHECK(atomic_load(&sci_fault_enabled));
	}
}

TEST(words_it_does_not_know)
{
	static const char *const bad[] = {
		"x", "loss", "loss=", "loss=x", "loss=-0.1", "loss=1.1",
		"loss=nan", "loss=inf", "loss=0.1x", "loss=0.1 ", "=1", "=",
		"Loss=0.1", "losses=0.1", "los=0.1", "loss:0.1", "loss=0.1;",
		"retriable=2", "retriable=", "fatal=-1", "fatal=yes",
		"reorder", "reorder=", "reorder=1.1", "reorder=-1", "dup",
		"dup=2", "dup=x", "duplicate=0.1",
		"seed=", "seed=-1", "seed=x", "seed=1x", "seed=+1",
		"seed=99999999999999999999", "seed=1:2", "seed=0.5",
		"linkdown=", "linkdown=x", "linkdown=-1", "linkdown=1:",
		"linkdown=1:x", "linkdown=:1", "linkdown=1:2:3",
		"linkdown=1:-1", "linkdown=1.5", "linkdown=1:2x",
		"linkdown=18446744073709551615:1",
		"linkdown=99999999999999999999",
		"loss=0.1,x", "x,loss=0.1", "loss=0.1,seed", "loss=0.1 seed=1",
		"\xff", "loss=0.1,\n",
	};
	uint64_t next;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		int ret = sci_fault_init(bad[i]);

		if (ret != -EINVAL)
			FAIL("\"%s\" was answered with %d", bad[i], ret);
		/* no part of the value takes effect */
		CHECK(!atomic_load(&sci_fault_enabled));
		CHECK(!sci_fault_link(1, &next));
		CHECK(next == UINT64_MAX);
	}
}

TEST(a_new_word_replaces_the_old)
{
	uint64_t next;

	CHECK_EQ(sci_fault_init("linkdown=5,loss=1"), 0);
	CHECK(down_at(5));
	CHECK_EQ(sci_fault_init("loss=0"), 0);
	CHECK(!down_at(5));
	CHECK_EQ(sci_fault_init("bad"), -EINVAL);
	CHECK(!atomic_load(&sci_fault_enabled));
	CHECK(!sci_fault_link(5, &next));
	CHECK_EQ(sci_fault_init(NULL), 0);
	CHECK(!atomic_load(&sci_fault_enabled));
}

TEST(long_lists)
{
	char spec[4096] = "loss=0.5";
	size_t len = strlen(spec);

	for (int i = 0; i < 16; i++)
		len += snprintf(spec + len, sizeof(spec) - len,
				",linkdown=%d:1", 10 * i);
	CHECK_EQ(sci_fault_init(spec), 0);
	for (int i = 0; i < 16; i++) {
		CHECK(down_at(10 * i));
		CHECK(!down_at(10 * i + 1));
	}
	/* a list with one more is refused as a whole */
	snprintf(spec + len, sizeof(spec) - len, ",linkdown=160:1");
	CHECK_EQ(sci_fault_init(spec), -EINVAL);
	CHECK(!down_at(0));
}

/* ---- the link ---- */

TEST(the_link_as_told)
{
	CHECK_EQ(sci_fault_init("linkdown=500:200,linkdown=1000:1,"
				"linkdown=2000"), 0);
	CHECK(!down_at(0));
	CHECK(!down_at(499));
	CHECK(down_at(500));
	CHECK(down_at(699));
	CHECK(!down_at(700));
	CHECK(down_at(1000));
	CHECK(!down_at(1001));
	CHECK(!down_at(1999));
	CHECK(down_at(2000));
	CHECK(down_at(UINT64_MAX - 1));
}

/* Check that the link's state changes only at the times that sci_fault_link() announces. */
static void check_steps(const char *spec, uint64_t end)
{
	uint64_t now = 0, next;
	unsigned int steps = 0;

	CHECK_EQ(sci_fault_init(spec), 0);
	while (now < end) {
		bool down = sci_fault_link(now, &next);

		CHECK(next > now);
		for (uint64_t t = now; t < next && t < end; t++)
			CHECK_EQ(down_at(t), down);
		now = next;
		CHECK(++steps < 200);
	}
}

TEST(the_next_change)
{
	check_steps("linkdown=5:5", 100);
	check_steps("linkdown=0:5", 100);
	check_steps("linkdown=0", 100);
	check_steps("linkdown=5:0,linkdown=7:1", 100);
	check_steps("linkdown=5:10,linkdown=8:20,linkdown=50:1", 100);
	check_steps("linkdown=50:10,linkdown=8:20,linkdown=28:2", 100);
	check_steps("linkdown=5:10,linkdown=5:10,linkdown=15:5", 100);
}

/* ---- numbers of faults ---- */

static unsigned char src[DRAWS * 64], dst[DRAWS * 64 + 128]
	__attribute__((aligned(64)));

static unsigned int lost_of(size_t packets, size_t skew)
{
	struct sci_link_status link = { .map = SCI_PIO_MAP_CACHED };
	unsigned int lost = 0;

	memset(src, 1, sizeof(src));
	memset(dst, 0, sizeof(dst));
	sci_remote_write(dst + skew, src, packets * 64, &link);
	for (size_t i = 0; i <= packets; i++) {
		size_t from = i * 64 < skew ? skew : i * 64;
		size_t to = (i + 1) * 64 < packets * 64 + skew ? (i + 1) * 64 :
			    packets * 64 + skew;
		unsigned int sum = 0;

		for (size_t k = from; k < to; k++)
			sum += dst[k];
		/* a packet arrives as a whole or not at all */
		CHECK(sum == 0 || sum == to - from);
		lost += to > from && sum == 0;
	}
	/* each lost packet is counted */
	CHECK_EQ(atomic_load(&link.errors), lost);
	/* no byte outside of the block has changed */
	for (size_t k = 0; k < skew; k++)
		CHECK_EQ(dst[k], 0);
	for (size_t k = packets * 64 + skew; k < sizeof(dst); k++)
		CHECK_EQ(dst[k], 0);
	return lost;
}

/* Check a share within five standard deviations: it fails by chance once in millions of runs. */
static void check_share(unsigned int got, unsigned int n, double p)
{
	double want = n * p, slack = 5 * sqrt(n * p * (1 - p)) + 1;

	if (got < want - slack || got > want + slack)
		FAIL("%u of %u, expected %.0f +- %.0f", got, n, want, slack);
}

TEST(losses_are_as_many_as_told)
{
	static const double ps[] = { 0, 0.001, 0.01, 0.1, 0.5, 0.9, 1 };
	char spec[64];

	for (size_t i = 0; i < ARRAY_LEN(ps); i++)
		for (unsigned int seed = 1; seed < 4; seed++) {
			snprintf(spec, sizeof(spec), "loss=%g,seed=%u", ps[i],
				 seed);
			CHECK_EQ(sci_fault_init(spec), 0);
			check_share(lost_of(DRAWS, 0), DRAWS, ps[i]);
		}
}

TEST(losses_at_any_alignment)
{
	CHECK_EQ(sci_fault_init("loss=0.3"), 0);
	for (size_t skew = 0; skew < 64; skew += 7)
		lost_of(100, skew);
}

TEST(a_seed_repeats_a_run)
{
	static unsigned char first[sizeof(dst)];

	CHECK_EQ(sci_fault_init("loss=0.2,seed=5"), 0);
	lost_of(DRAWS, 0);
	memcpy(first, dst, sizeof(dst));
	CHECK_EQ(sci_fault_init("seed=5,loss=0.2"), 0);
	lost_of(DRAWS, 0);
	CHECK(!memcmp(first, dst, sizeof(dst)));
	CHECK_EQ(sci_fault_init("loss=0.2,seed=6"), 0);
	lost_of(DRAWS, 0);
	CHECK(memcmp(first, dst, sizeof(dst)));
	/* the default seed is 1 */
	CHECK_EQ(sci_fault_init("loss=0.2"), 0);
	lost_of(DRAWS, 0);
	memcpy(first, dst, sizeof(dst));
	CHECK_EQ(sci_fault_init("loss=0.2,seed=1"), 0);
	lost_of(DRAWS, 0);
	CHECK(!memcmp(first, dst, sizeof(dst)));
}

/* Two seeds give two sequences. They differ in the upper half of the word only. */
TEST(seeds_differ)
{
	static unsigned char first[sizeof(dst)];

	CHECK_EQ(sci_fault_init("loss=0.5,seed=1"), 0);
	lost_of(DRAWS, 0);
	memcpy(first, dst, sizeof(dst));
	CHECK_EQ(sci_fault_init("loss=0.5,seed=4294967297"), 0);
	lost_of(DRAWS, 0);
	CHECK(memcmp(first, dst, sizeof(dst)));
}

static unsigned int checks_of(const char *spec, unsigned int *gone)
{
	struct sci_link_status link = { .map = SCI_PIO_MAP_CACHED };
	unsigned int found = 0;

	*gone = 0;
	CHECK_EQ(sci_fault_init(spec), 0);
	for (unsigned int i = 0; i < DRAWS; i++) {
		struct sci_rseg_status st = { .link = &link };
		unsigned int before = atomic_load(&link.errors);

		sci_remote_check(&st);
		found += atomic_load(&link.errors) != before;
		*gone += atomic_load(&st.gone) != 0;
	}
	return found;
}

TEST(checks_find_as_much_as_told)
{
	unsigned int gone;

	check_share(checks_of("retriable=0.1", &gone), DRAWS, 0.1);
	CHECK_EQ(gone, 0);
	CHECK_EQ(checks_of("fatal=0.05", &gone), 0);
	check_share(gone, DRAWS, 0.05);
	check_share(checks_of("retriable=0.3,fatal=0.2,seed=3", &gone), DRAWS,
		    0.3);
	check_share(gone, DRAWS, 0.2);
	CHECK_EQ(checks_of("retriable=1,fatal=1", &gone), DRAWS);
	CHECK_EQ(gone, DRAWS);
	CHECK_EQ(checks_of("loss=1", &gone), 0);
	CHECK_EQ(gone, 0);
}

TEST(a_connection_that_is_gone_stays_gone)
{
	struct sci_link_status link = { .map = SCI_PIO_MAP_CACHED };
	struct sci_rseg_status st = { .link = &link };

	CHECK_EQ(sci_fault_init("fatal=1"), 0);
	sci_remote_check(&st);
	CHECK(atomic_load(&st.gone));
	CHECK_EQ(sci_fault_init(NULL), 0);
	sci_remote_check(&st);
	CHECK(atomic_load(&st.gone));
}

TEST(a_link_that_is_down_loses_everything)
{
	struct sci_link_status link = { .map = SCI_PIO_MAP_CACHED };

	CHECK_EQ(sci_fault_init("linkdown=0"), 0);
	atomic_store(&link.down, 1);
	memset(dst, 0, sizeof(dst));
	sci_remote_write(dst, src, 640, &link);
	for (int i = 0; i < 640; i++)
		CHECK_EQ(dst[i], 0);
	CHECK(atomic_load(&link.errors) > 0);
}

/* ---- late and duplicated packets ---- */

#define LINE	64
/* The link of late packets. It still exists when they arrive, after the call that wrote them. */
static struct sci_link_status plain = { .map = SCI_PIO_MAP_CACHED };

static void no_barrier(struct sci_fabric *f, struct sci_rseg *r)
{
	(void)f;
	(void)r;
}

static const struct sci_fabric_ops no_ops = { .rseg.store_barrier = no_barrier };
static struct sci_fabric no_fabric = { .ops = &no_ops };

static void write_line(void *to, unsigned char value, bool as_line)
{
	unsigned char line[LINE];

	memset(line, value, LINE);
	if (as_line)
		sci_remote_line(to, line, &plain);
	else
		sci_remote_write(to, line, LINE, &plain);
	CHECK_EQ(atomic_load(&plain.errors), 0);
}

/* Return the value of a line's bytes. All bytes must have it: no part of a packet arrives. */
static unsigned char line_at(const unsigned char *p)
{
	for (int k = 1; k < LINE; k++)
		CHECK_EQ(p[k], p[0]);
	return p[0];
}

/* Count and clear the lines that have arrived since the last call. */
static unsigned int arrivals(unsigned int *times, unsigned int n)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < n; i++)
		if (line_at(dst + (size_t)i * LINE)) {
			memset(dst + (size_t)i * LINE, 0, LINE);
			times[i]++;
			sum++;
		}
	return sum;
}

struct passed {
	unsigned int late;		/* not there when the write returns */
	unsigned int overtaken;		/* ... and a later packet arrives first */
	unsigned int by_barrier;	/* ... and not there before the barrier */
	unsigned int again;		/* arrives twice */
};

#define PASSED	1000

static void run_packets(const char *spec, bool as_line, struct passed *out)
{
	static unsigned int times[PASSED];

	memset(out, 0, sizeof(*out));
	memset(times, 0, sizeof(times));
	memset(dst, 0, sizeof(dst));
	CHECK_EQ(sci_fault_init(spec), 0);
	for (unsigned int i = 0; i < PASSED; i++) {
		unsigned int missing = 0;

		write_line(dst + (size_t)i * LINE, 1, as_line);
		arrivals(times, i + 1);
		out->late += !times[i];
		for (unsigned int k = 0; k < i && times[i]; k++)
			missing += !times[k];
		out->overtaken += missing;
	}
	for (unsigned int i = 0; i < PASSED; i++)
		out->by_barrier += !times[i];
	sci_remote_barrier(&no_fabric, NULL);
	arrivals(times, PASSED);
	for (unsigned int i = 0; i < PASSED; i++) {
		CHECK(times[i] == 1 || times[i] == 2);
		out->again += times[i] == 2;
	}
	/* no packet arrives after that */
	sci_remote_barrier(&no_fabric, NULL);
	CHECK_EQ(arrivals(times, PASSED), 0);
}

TEST(packets_that_are_overtaken)
{
	struct passed p;

	for (int as_line = 0; as_line < 2; as_line++) {
		run_packets("reorder=0.3", as_line, &p);
		check_share(p.late, PASSED, 0.3);
		CHECK(p.overtaken > 0);
		CHECK_EQ(p.again, 0);
		run_packets("reorder=0,dup=0", as_line, &p);
		CHECK_EQ(p.late, 0);
		/* each further packet delivers half of the late ones: few remain */
		run_packets("reorder=1", as_line, &p);
		CHECK_EQ(p.late, PASSED);
		CHECK(p.by_barrier > 0 && p.by_barrier < 40);
	}
}

TEST(packets_that_come_again)
{
	struct passed p;

	for (int as_line = 0; as_line < 2; as_line++) {
		run_packets("dup=0.3", as_line, &p);
		check_share(p.again, PASSED, 0.3);
		CHECK_EQ(p.late, 0);
		run_packets("reorder=0.5,dup=0.5", as_line, &p);
		CHECK(p.late > 0 && p.overtaken > 0 && p.again > 0);
	}
}

TEST(a_late_packet_waits_for_the_barrier)
{
	unsigned char line[LINE];

	CHECK_EQ(sci_fault_init("reorder=1"), 0);
	memset(dst, 0, sizeof(dst));
	/* the library keeps a copy: the source may change at once */
	memset(line, 7, LINE);
	sci_remote_write(dst, line, LINE, &plain);
	memset(line, 8, LINE);
	CHECK_EQ(line_at(dst), 0);
	sci_remote_barrier(&no_fabric, NULL);
	CHECK_EQ(line_at(dst), 7);
}

/* Stores to one line keep their order, as in an adapter: the last value remains. */
TEST(stores_to_a_line_keep_their_order)
{
	CHECK_EQ(sci_fault_init("reorder=0.5,dup=0.5"), 0);
	for (unsigned int round = 0; round < 1000; round++) {
		unsigned char last = (unsigned char)(round % 200 + 1);

		memset(dst, 0, sizeof(dst));
		for (unsigned char v = 1; v <= last; v++) {
			write_line(dst, v, v & 1);
			/* the line has this value or the one before */
			CHECK(v - line_at(dst) <= 1);
			write_line(dst + LINE, v, v & 1);
		}
		sci_remote_barrier(&no_fabric, NULL);
		CHECK_EQ(line_at(dst), last);
		CHECK_EQ(line_at(dst + LINE), last);
	}
}

/* Late packets also arrive while a program only polls the error count. */
TEST(late_packets_come_with_time)
{
	CHECK_EQ(sci_fault_init("reorder=1"), 0);
	for (unsigned int round = 0; round < 100; round++) {
		memset(dst, 0, sizeof(dst));
		write_line(dst, 1, true);
		CHECK_EQ(line_at(dst), 0);
		for (unsigned int i = 0; i < 1000 && !line_at(dst); i++)
			CHECK_EQ(sci_remote_errors(&plain), 0);
		CHECK_EQ(line_at(dst), 1);
	}
}

TEST(parts_of_packets_are_late_too)
{
	CHECK_EQ(sci_fault_init("reorder=0.5,dup=0.5"), 0);
	for (size_t len = 0; len < 300; len += 7) {
		memset(dst, 0, 1024);
		test_fill(src, len, (unsigned int)len);
		sci_remote_write(dst + 13, src, len, &plain);
		sci_remote_barrier(&no_fabric, NULL);
		CHECK(!memcmp(dst + 13, src, len));
		for (int k = 0; k < 13; k++)
			CHECK(!dst[k] && !dst[13 + len + k]);
	}
}

TEST(what_is_lost_does_not_come_late)
{
	CHECK_EQ(sci_fault_init("loss=1,reorder=1,dup=1"), 0);
	memset(dst, 0, sizeof(dst));
	memset(src, 1, 640);
	sci_remote_write(dst, src, 640, &plain);
	sci_remote_line(dst, src, &plain);
	sci_remote_barrier(&no_fabric, NULL);
	CHECK_EQ(dst[0], 0);
	CHECK_EQ(atomic_load(&plain.errors), 11);
}

TEST(nothing_comes_to_what_is_forgotten)
{
	CHECK_EQ(sci_fault_init("reorder=1"), 0);
	for (int round = 0; round < 100; round++) {
		memset(dst, 0, sizeof(dst));
		for (int k = 0; k < 4; k++)
			write_line(dst + k * LINE, 1, k & 1);
		sci_fault_forget(dst + LINE, 2 * LINE);
		CHECK_EQ(line_at(dst + LINE), 1);
		CHECK_EQ(line_at(dst + 2 * LINE), 1);
		/* the last packet goes to another line, and is still late */
		CHECK_EQ(line_at(dst + 3 * LINE), 0);
		memset(dst + LINE, 0, 2 * LINE);
		sci_remote_barrier(&no_fabric, NULL);
		CHECK_EQ(line_at(dst + LINE), 0);
		CHECK_EQ(line_at(dst + 2 * LINE), 0);
		CHECK_EQ(line_at(dst), 1);
		CHECK_EQ(line_at(dst + 3 * LINE), 1);
	}
}

TEST(part_of_a_line_that_is_forgotten)
{
	CHECK_EQ(sci_fault_init("reorder=1"), 0);
	memset(dst, 0, sizeof(dst));
	write_line(dst + LINE, 1, true);
	sci_fault_forget(dst, LINE);
	sci_fault_forget(dst + 2 * LINE, LINE);
	CHECK_EQ(line_at(dst + LINE), 0);
	sci_fault_forget(dst + 2 * LINE - 1, 1);
	CHECK_EQ(line_at(dst + LINE), 1);
}

TEST(new_words_drop_what_is_held)
{
	CHECK_EQ(sci_fault_init("reorder=1"), 0);
	memset(dst, 0, sizeof(dst));
	write_line(dst, 1, true);
	CHECK_EQ(sci_fault_init("reorder=1"), 0);
	sci_remote_barrier(&no_fabric, NULL);
	CHECK_EQ(line_at(dst), 0);
}

TEST(a_seed_repeats_the_order)
{
	struct passed a, b;

	run_packets("reorder=0.3,dup=0.3,seed=5", false, &a);
	run_packets("reorder=0.3,dup=0.3,seed=5", false, &b);
	CHECK(!memcmp(&a, &b, sizeof(a)));
	run_packets("reorder=0.3,dup=0.3,seed=6", false, &b);
	CHECK(memcmp(&a, &b, sizeof(a)));
}

/* ---- threads ---- */

#define THREADS	4

static struct sci_link_status shared_link = { .map = SCI_PIO_MAP_CACHED };

static void *write_much(void *arg)
{
	unsigned char *to = arg;

	for (int i = 0; i < DRAWS / 10; i++)
		sci_remote_write(to, src, 640, &shared_link);
	return NULL;
}

TEST(threads_lose_as_much)
{
	static unsigned char to[THREADS][640] __attribute__((aligned(64)));
	pthread_t t[THREADS];

	CHECK_EQ(sci_fault_init("loss=0.1"), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, write_much, to[i]));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	check_share(atomic_load(&shared_link.errors), THREADS * DRAWS, 0.1);
}

/* After its own barrier a thread sees all of its packets, whichever thread delivers them. */
static void *write_and_look(void *arg)
{
	unsigned char *to = arg, from[640];

	for (int i = 0; i < DRAWS / 10; i++) {
		memset(from, i, sizeof(from));
		sci_remote_write(to, from, sizeof(from), &plain);
		sci_remote_barrier(&no_fabric, NULL);
		CHECK(!memcmp(to, from, sizeof(from)));
	}
	return NULL;
}

TEST(threads_find_their_packets)
{
	static unsigned char to[THREADS][640] __attribute__((aligned(64)));
	pthread_t t[THREADS];

	CHECK_EQ(sci_fault_init("reorder=0.5,dup=0.5"), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, write_and_look, to[i]));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

/* ---- adapters whose buffers are longer than a line ---- */

TEST(a_line_leaves_at_once)
{
	struct sci_link_status link = { .map = SCI_PIO_MAP_LINES };
	uint8_t to[SCI_PIO_LINE] __attribute__((aligned(SCI_PIO_LINE))) = { 0 };
	uint8_t line[SCI_PIO_LINE];
	uint32_t flush = 1;

	memset(line, 7, sizeof(line));
	sci_remote_line(to, line, &link);
	CHECK_EQ(flush, 1);
	link.flush = &flush;
	sci_remote_line(to, line, &link);
	CHECK_EQ(flush, 0);
	CHECK(!memcmp(to, line, sizeof(line)));
	/* also a line that may be late */
	flush = 1;
	CHECK_EQ(sci_fault_init("reorder=1"), 0);
	sci_remote_line(to, line, &link);
	CHECK_EQ(flush, 0);
	sci_fault_forget(to, sizeof(to));
}
