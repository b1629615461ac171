// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Store engines: all engines of this CPU, and the default one, into both kinds of maps. Blocks
 * are compared byte by byte, between poisoned bytes and inaccessible pages. With ptrace, the
 * test sees the stores of each instruction to an adapter's window.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsci/pio/engine.h"

#define POISON		0xa5	/* never in a source */
#define MAX_SMALL	700
#define MARGIN		128
#define STREAM_MAX	((size_t)64 << 20)	/* larger streaming limits are not tested */

static unsigned int test_nr;
static bool failed;

static void report(bool passed, const char *who, const char *what)
{
	printf("%sok %u - %s: %s\n", passed ? "" : "not ", ++test_nr, who,
	       what);
	fflush(stdout);
	failed = failed || !passed;
}

static void skip(const char *who, const char *what, const char *why)
{
	printf("ok %u - %s: %s # SKIP %s\n", ++test_nr, who, what, why);
	fflush(stdout);
}

static void on_fault(int sig)
{
	static const char message[] = "Bail out! access outside the block\n";

	(void)sig;
	_exit(write(STDOUT_FILENO, message, sizeof(message) - 1) < 0 ? 2 : 1);
}

/* Memory shared with children, between two inaccessible pages. */
struct region {
	char *start, *end;
};

static struct region region_create(size_t size)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct region r;
	char *p;

	size = (size + page - 1) / page * page;
	p = mmap(NULL, size + 2 * page, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS,
		 -1, 0);
	if (p == MAP_FAILED ||
	    mprotect(p + page, size, PROT_READ | PROT_WRITE)) {
		puts("Bail out! no memory");
		exit(1);
	}
	r.start = p + page;
	r.end = r.start + size;
	return r;
}

static void region_destroy(struct region r)
{
	size_t page = sysconf(_SC_PAGESIZE);

	munmap(r.start - page, r.end - r.start + 2 * page);
}

static void fill_source(struct region r)
{
	uint32_t x = 12345;

	for (char *p = r.start; p < r.end; p++) {
		x = x * 1664525 + 1013904223;
		*p = x >> 24 == POISON ? 0 : x >> 24;
	}
}

static bool is_poison(const char *p, size_t len)
{
	return !len || (*(const unsigned char *)p == POISON &&
			!memcmp(p, p + 1, len - 1));
}

/* Give reads and writes the same signature. */
static void do_write(char *dst, const char *src, size_t len,
		     enum sci_pio_map map)
{
	sci_pio_write(dst, src, len, map);
}

static void do_read(char *dst, const char *src, size_t len,
		    enum sci_pio_map map)
{
	sci_pio_read(dst, src, len, map);
}

typedef void transfer_fn(char *, const char *, size_t, enum sci_pio_map);
static transfer_fn *const transfers[] = { do_write, do_read };

/* Transfer a block. MARGIN bytes around it must stay poison. */
static bool block_ok(transfer_fn *transfer, enum sci_pio_map map, char *dst,
		     const char *src, size_t len, size_t before, size_t after)
{
	bool ok;

	transfer(dst, src, len, map);
	ok = is_poison(dst - before, before) && !memcmp(dst, src, len) &&
	     is_poison(dst + len, after);
	memset(dst - before, POISON, before + len + after);
	if (!ok)
		printf("# dst %p src %p len %zu map %d %s\n", (void *)dst,
		       (const void *)src, len, map,
		       transfer == do_write ? "write" : "read");
	return ok;
}

/* Try every alignment in the map, and several alignments in the other memory. */
static bool small_blocks(enum sci_pio_map map, struct region d, struct region s)
{
	static const unsigned int other[] = { 0, 1, 7, 33 };
	char *dst = d.start + MARGIN;

	memset(d.start, POISON, d.end - d.start);
	for (int o = 0; o < 4; o++)
		for (unsigned int at = 0; at < 64; at++)
			for (size_t len = 0; len <= MAX_SMALL; len++)
				if (!block_ok(do_write, map, dst + at,
					      s.start + other[o], len, MARGIN,
					      MARGIN) ||
				    !block_ok(do_read, map, dst + other[o],
					      s.start + at, len, MARGIN,
					      MARGIN))
					return false;
	return true;
}

/* An inaccessible page begins at the end of the block, or ends at its start. */
static bool guarded_blocks(enum sci_pio_map map, struct region d,
			   struct region s)
{
	static const size_t larger[] = { 1023, 2048, 4095, 4096, 4097, 8192 };

	memset(d.start, POISON, d.end - d.start);
	sci_pio_write(NULL, NULL, 0, map);
	sci_pio_read(NULL, NULL, 0, map);
	for (size_t i = 0; i <= MAX_SMALL + 6; i++) {
		size_t len = i <= MAX_SMALL ? i : larger[i - MAX_SMALL - 1];

		for (int t = 0; t < 2; t++) {
			if (!block_ok(transfers[t], map, d.end - len,
				      s.end - len, len, MARGIN, 0) ||
			    !block_ok(transfers[t], map, d.start, s.start, len,
				      0, MARGIN) ||
			    !block_ok(transfers[t], map, d.start, s.end - len,
				      len, 0, MARGIN) ||
			    !block_ok(transfers[t], map, d.end - len, s.start,
				      len, MARGIN, 0))
				return false;
		}
	}
	return true;
}

/* Transfer a block of @len that ends close to the end of both regions. */
static bool big_block(transfer_fn *transfer, enum sci_pio_map map,
		      struct region d, struct region s, size_t len,
		      unsigned int dst_off, unsigned int src_off)
{
	char *dst = d.end - len;
	const char *src = s.end - len;

	dst -= ((uintptr_t)dst - dst_off) % 64;
	src -= ((uintptr_t)src - src_off) % 64;
	memset(dst - MARGIN, POISON, d.end - dst + MARGIN);
	return block_ok(transfer, map, dst, src, len, MARGIN,
			d.end - dst - len);
}

static bool big_blocks(enum sci_pio_map map, struct region d, struct region s)
{
	static const size_t lens[] = {
		1023, 1024, 1025, 2047, 2049, 4095, 4096, 4097, 8192, 16384 + 8,
		65535, 65536, 262144 + 64, (1 << 20) + 17, (3 << 20) + 1,
	};
	static const unsigned char offs[][2] = {
		{ 0, 0 }, { 3, 0 }, { 0, 5 }, { 1, 1 }, { 63, 32 }, { 8, 0 },
	};

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		for (int o = 0; o < 6; o++)
			for (int t = 0; t < 2; t++)
				if (!big_block(transfers[t], map, d, s, lens[i],
					       offs[o][0], offs[o][1]))
					return false;
	return true;
}

/* Blocks around the streaming limit of this CPU. */
static bool stream_blocks(struct region d, struct region s)
{
	size_t limit = sci_pio_stream_min();

	for (int delta = -1; delta <= 1; delta++)
		if (!big_block(do_write, SCI_PIO_MAP_CACHED, d, s,
			       limit + delta, 0, 0) ||
		    !big_block(do_write, SCI_PIO_MAP_CACHED, d, s,
			       limit + delta, 61, 3))
			return false;
	return big_block(do_read, SCI_PIO_MAP_CACHED, d, s, limit + 77, 1, 0);
}

static bool lines(enum sci_pio_map map, struct region d, struct region s)
{
	char *dst = d.start + MARGIN;

	memset(d.start, POISON, 3 * MARGIN);
	for (unsigned int at = 0; at <= 64; at++) {
		const char *src = at < 64 ? s.start + at : s.end - 64;

		sci_pio_line(dst, src, map);
		if (memcmp(dst, src, 64) || !is_poison(dst - MARGIN, MARGIN) ||
		    !is_poison(dst + 64, MARGIN))
			return false;
	}
	sci_pio_line(d.end - 64, s.start, map);
	return !memcmp(d.end - 64, s.start, 64);
}

/* Two threads: one copies @src to @dst, then the other one compares. */
struct handover {
	char *dst, *src;
	size_t len;
	unsigned int way, rounds;
	uint32_t posted, seen;
	bool ok;
};

static void wait_for(uint32_t *word, uint32_t value)
{
	for (unsigned int i = 0; sci_load_acquire(word) != value; i++) {
		sci_cpu_relax();
		if (i % 1024 == 1023)
			sched_yield();
	}
}

static void *watch(void *arg)
{
	struct handover *h = arg;

	for (uint32_t i = 1; i <= h->rounds; i++) {
		wait_for(&h->posted, i);
		/* compare first the bytes that were stored last */
		if (memcmp(h->dst + h->len - 64, h->src + h->len - 64, 64) ||
		    memcmp(h->dst, h->src, h->len))
			h->ok = false;
		sci_store_release(&h->seen, i);
	}
	return NULL;
}

static bool hand_over(enum sci_pio_map map, char *dst, char *src, size_t len,
		      unsigned int rounds)
{
	struct handover h = {
		.dst = dst, .src = src, .len = len, .rounds = rounds,
		.ok = true,
	};
	pthread_t thread;

	if (pthread_create(&thread, NULL, watch, &h))
		return false;
	for (uint32_t i = 1; i <= rounds; i++) {
		for (size_t at = 0; at < len; at += 64)
			src[at]++;
		src[len - 1]++;
		sci_pio_write(dst, src, len, map);
		if (map == SCI_PIO_MAP_LINES)
			sci_pio_barrier();
		sci_store_release(&h.posted, i);
		wait_for(&h.seen, i);
	}
	pthread_join(thread, NULL);
	return h.ok;
}

/* The last word of a line is its flag. */
static void *watch_lines(void *arg)
{
	struct handover *h = arg;
	uint64_t *line = (uint64_t *)h->dst;

	for (uint64_t i = 1; i <= h->rounds; i++) {
		for (unsigned int spins = 1; sci_load_acquire(&line[7]) != i;
		     spins++)
			if (!(spins % 1024))
				sched_yield();
		for (int w = 0; w < 7; w++)
			if (sci_load_relaxed(&line[w]) != i)
				h->ok = false;
		sci_store_release(&h->seen, (uint32_t)i);
	}
	return NULL;
}

static bool hand_over_lines(char *dst)
{
	struct handover h = { .dst = dst, .rounds = 20000, .ok = true };
	uint64_t line[8];
	pthread_t thread;

	memset(dst, 0, 64);
	if (pthread_create(&thread, NULL, watch_lines, &h))
		return false;
	for (uint32_t i = 1; i <= h.rounds; i++) {
		for (int w = 0; w < 8; w++)
			line[w] = i;
		sci_pio_line(dst, line, SCI_PIO_MAP_CACHED);
		wait_for(&h.seen, i);
	}
	pthread_join(thread, NULL);
	return h.ok;
}

/*
 * DOC: watching stores
 *
 * A child writes blocks to a window, and words to cached memory. After each instruction, the parent notes which bytes are no
 * longer poison and poisons them again: a byte that is stored twice is seen twice.
 */
static const struct {
	unsigned int off, len;
	enum sci_pio_map map;
} watched[] = {
	{ 0, 1, SCI_PIO_MAP_LINES }, { 0, 64, SCI_PIO_MAP_LINES }, { 1, 62, SCI_PIO_MAP_LINES },
	{ 1, 63, SCI_PIO_MAP_LINES }, { 1, 200, SCI_PIO_MAP_LINES }, { 7, 9, SCI_PIO_MAP_LINES },
	{ 8, 300, SCI_PIO_MAP_LINES }, { 13, 128, SCI_PIO_MAP_LINES },
	{ 32, 96, SCI_PIO_MAP_LINES }, { 60, 4, SCI_PIO_MAP_LINES },
	{ 63, 130, SCI_PIO_MAP_LINES }, { 0, 256, SCI_PIO_MAP_LINES },
	{ 0, 1, SCI_PIO_MAP_CACHED }, { 0, 2, SCI_PIO_MAP_CACHED },
	{ 0, 4, SCI_PIO_MAP_CACHED }, { 0, 8, SCI_PIO_MAP_CACHED },
};

#define NR_WATCHED	(sizeof(watched) / sizeof(watched[0]))
#define WINDOW		384	/* bytes for each block, a multiple of lines */

static void watched_child(struct region d, struct region s)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(77);
	raise(SIGSTOP);
	for (size_t i = 0; i < NR_WATCHED; i++)
		sci_pio_write(d.start + i * WINDOW + watched[i].off, s.start,
			      watched[i].len, watched[i].map);
	_exit(0);
}

/* The next store that is expected. */
struct plan {
	size_t i, done, line_left;
};

static bool plan_match(struct plan *plan, size_t at, size_t len)
{
	size_t width = sci_load_relaxed(&sci_pio_current)->width;
	size_t start, step;

	start = plan->i * WINDOW + watched[plan->i].off + plan->done;
	step = sci_pio_step(start, watched[plan->i].len - plan->done);
	if (step == SCI_PIO_LINE)
		plan->line_left = SCI_PIO_LINE;
	if (plan->line_left) {
		step = width;
		plan->line_left -= width;
	}
	plan->done += step;
	if (plan->done == watched[plan->i].len) {
		plan->i++;
		plan->done = 0;
	}
	return at == start && len == step;
}

/*
 * Compare the stores of the last instruction with the plan. Only the expected block is checked,
 * for speed. Stores to other places are found at the end.
 */
static bool look(struct region d, struct plan *plan)
{
	char *block = d.start + plan->i * WINDOW;
	size_t from = 0, to = WINDOW;

	if (is_poison(block, WINDOW))
		return true;
	while ((unsigned char)block[from] == POISON)
		from++;
	while ((unsigned char)block[to - 1] == POISON)
		to--;
	memset(block + from, POISON, to - from);
	from += block - d.start;
	to += block - d.start;
	if (plan_match(plan, from, to - from))
		return true;
	printf("# stored %zu bytes at %zu\n", to - from, from);
	return false;
}

static const char one_by_one[] = "stores, one by one";

static void watch_stores(const char *who, struct region d, struct region s)
{
	struct plan plan = { 0 };
	cpu_set_t all, one;
	bool ok = true;
	int status;
	pid_t pid;

	/* On one CPU, parent and child run in turns without interrupts. */
	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);

	fill_source(s);
	memset(d.start, POISON, d.end - d.start);
	pid = fork();
	if (!pid)
		watched_child(d, s);
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		if (ok && plan.i < NR_WATCHED)
			ok = look(d, &plan);
		if (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL))
			break;
	}
	sched_setaffinity(0, sizeof(all), &all);
	if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) == 77)
		skip(who, one_by_one, "no ptrace");
	else
		report(ok && plan.i == NR_WATCHED && !WEXITSTATUS(status) &&
		       is_poison(d.start, d.end - d.start), who, one_by_one);
}

static bool step_ok(uintptr_t addr, size_t len)
{
	size_t n;

	for (; len; addr += n, len -= n) {
		bool line = !(addr % 64) && len >= 64;

		n = sci_pio_step(addr, len);
		if (!n || (n & (n - 1)) || n > len || addr % n ||
		    (n == 64) != line || (n > 8 && n != 64))
			return false;
		/* the step is the widest possible one */
		if (n < 8 && !(addr % (2 * n)) && len >= 2 * n)
			return false;
	}
	return true;
}

static void test_step(void)
{
	bool ok = true;

	for (uintptr_t addr = 0; addr < 128; addr++)
		for (size_t len = 0; len <= MAX_SMALL; len++)
			ok = ok && step_ok(addr, len);
	ok = ok && sci_pio_step(UINTPTR_MAX, 1) == 1;
	report(ok, "step", "powers of two, aligned, whole lines at once");
}

static void test_before_init(void)
{
	char from[100], to[100] = { 0 };

	memset(from, 1, sizeof(from));
	sci_pio_write(to, from, 50, SCI_PIO_MAP_CACHED);
	sci_pio_write(to + 50, from, 50, SCI_PIO_MAP_LINES);
	report(!memcmp(from, to, 100) && !strcmp(sci_pio_name(), "generic") &&
		       sci_pio_width() == 8,
	       "init", "not needed before a write");
}

static void test_override(void)
{
	const struct sci_pio_engine *e, *best = NULL;
	bool ok = true;

	for (unsigned int i = 0; (e = sci_pio_engine(i)); i++) {
		int want = e->supported() ? 0 : -EOPNOTSUPP;

		best = !best && !want ? e : best;
		ok = ok && sci_pio_init(e->name) == want;
		ok = ok && !strcmp(sci_pio_name(), want ? best ? best->name :
				   sci_pio_name() : e->name);
	}
	ok = ok && best && !sci_pio_engine(1000);
	ok = ok && sci_pio_init("sse") == -EINVAL;
	ok = ok && !strcmp(sci_pio_name(), best->name);
	ok = ok && sci_pio_init("generic") == 0 && sci_pio_init("") == 0;
	ok = ok && !strcmp(sci_pio_name(), best->name);
	ok = ok && sci_pio_init("generic ") == -EINVAL;
	ok = ok && sci_pio_init(NULL) == 0;
	ok = ok && !strcmp(sci_pio_name(), best->name);
	report(ok, "init", "override, and the best without");
}

static const char *const per_map[][2] = {
	{ "cached, sizes and alignments", "window, sizes and alignments" },
	{ "cached, between guard pages", "window, between guard pages" },
	{ "cached, big blocks", "window, big blocks" },
	{ "cached, a line", "window, a line" },
	{ "cached, handed to a thread", "window, handed to a thread" },
};
static const char line_flag[] = "a line that carries its flag";
static const char streamed[] = "streamed blocks, also handed to a thread";

#define TESTS_PER_ENGINE	(5 * 2 + 3)

static void test_map(const char *who, enum sci_pio_map map, struct region d,
		     struct region s, struct region big_d, struct region big_s)
{
	report(small_blocks(map, d, s), who, per_map[0][map]);
	report(guarded_blocks(map, d, s), who, per_map[1][map]);
	report(big_blocks(map, big_d, big_s), who, per_map[2][map]);
	report(lines(map, d, s), who, per_map[3][map]);
	report(hand_over(map, d.start + 3, s.start, 5000, 200), who,
	       per_map[4][map]);
}

/* A lower limit allows many short blocks, which find a race. */
static void test_stream(const char *who, struct region d, struct region s,
			struct region big_d, struct region big_s)
{
	size_t limit = sci_pio_stream_min();
	bool ok;

	if (limit == SIZE_MAX) {
		skip(who, streamed, "no streaming");
		return;
	}
	ok = limit > STREAM_MAX || stream_blocks(big_d, big_s);
	sci_store_relaxed(&sci_pio_stream_limit, 2048);
	ok = ok && guarded_blocks(SCI_PIO_MAP_CACHED, d, s) &&
	     big_blocks(SCI_PIO_MAP_CACHED, big_d, big_s) &&
	     hand_over(SCI_PIO_MAP_CACHED, d.start, s.start, 4096, 5000);
	sci_store_relaxed(&sci_pio_stream_limit, limit);
	report(ok, who, streamed);
}

static void test_engine(const char *name)
{
	size_t limit = sci_pio_stream_min();
	size_t big = limit > STREAM_MAX ? (size_t)4 << 20 : limit + 4096;
	struct region d = region_create(12288), s = region_create(12288);
	struct region big_d = region_create(big), big_s = region_create(big);
	const char *who = name ? name : "default";

	sci_pio_init(name);
	fill_source(s);
	fill_source(big_s);
	for (int map = 0; map < 2; map++)
		test_map(who, map, d, s, big_d, big_s);
	report(hand_over_lines(d.start), who, line_flag);
	test_stream(who, d, s, big_d, big_s);
	watch_stores(who, d, s);
	region_destroy(d);
	region_destroy(s);
	region_destroy(big_d);
	region_destroy(big_s);
}

static void skip_engine(const char *name)
{
	static const char why[] = "not on this CPU";

	for (int map = 0; map < 2; map++)
		for (int i = 0; i < 5; i++)
			skip(name, per_map[i][map], why);
	skip(name, line_flag, why);
	skip(name, streamed, why);
	skip(name, one_by_one, why);
}

/* Flushes of the cache change no byte, and access no line outside of the range. */
static void test_cache(void)
{
	struct region r = region_create(4096), source = region_create(4096);
	size_t off, len, size = (size_t)(r.end - r.start);
	bool good = true;

	fill_source(source);
	if (!sci_pio_cache_init()) {
		skip("cache", "flushes change no byte", "not on this CPU");
		return;
	}
	for (off = 0; off < 3 * SCI_PIO_LINE; off += 7)
		for (len = 0; len <= 3 * SCI_PIO_LINE; len++) {
			char *at = off % 2 ? r.end - off - len : r.start + off;

			memcpy(r.start, source.start, size);
			sci_pio_cache_write_back(at, len);
			sci_pio_cache_fence();
			sci_pio_cache_refresh(at, len);
			good = good && !memcmp(r.start, source.start, size);
		}
	report(good, "cache", "flushes change no byte");
	region_destroy(source);
	region_destroy(r);
}

int main(void)
{
	const struct sci_pio_engine *e;
	unsigned int n = 0;

	signal(SIGSEGV, on_fault);
	signal(SIGBUS, on_fault);
	while (sci_pio_engine(n))
		n++;
	printf("1..%u\n", 4 + (n + 1) * TESTS_PER_ENGINE);
	test_before_init();
	test_step();
	test_override();
	test_cache();
	test_engine(NULL);
	for (unsigned int i = 0; (e = sci_pio_engine(i)); i++) {
		if (e->supported())
			test_engine(e->name);
		else
			skip_engine(e->name);
	}
	return failed;
}
