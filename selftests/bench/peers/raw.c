// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Measure the limit: the memory without a library.
 *
 * usage: raw line|push|pull METRIC SIZE...
 *        raw copy|ordered put_us|get_us SIZE...
 *        raw add fadd_us|fadd_dirty_us SIZE
 *        raw probe
 *
 * line, latency_us, p_us, barrier_us: the widest store writes a line of 64 bytes into memory that the other
 * process polls.  The other process answers in the same way; half a round trip.  rate_Mps:
 * lines into a ring, as fast as the other process takes them.
 *
 * push: memcpy() from private memory into shared memory that the other process has read
 * since the last copy.  latency_us: one copy until its stores are visible.  bandwidth_MBps:
 * consecutive copies into a window of shared memory; the other process reads a full window,
 * which is not timed.
 *
 * pull: the receiver does memcpy() from shared memory, which the other process has written
 * since the last copy, into private memory.
 *
 * copy: memcpy() between the same private and shared memory, again and again, which the
 * other process does not touch.  put_us: into shared memory; get_us: from shared memory.
 * ordered: after each copy, an atomic exchange, which keeps later loads behind the copy.
 *
 * add: a locked addition of 8 bytes that returns the old value.  fadd_us: on one word, which
 * the other process does not touch.  fadd_dirty_us: on lines that the other process has
 * written since the last addition.
 *
 * probe: a probe of measure.h, in microseconds.
 */
#define _GNU_SOURCE

#include "measure.h"

#define WINDOW		((size_t)256 << 10)
#define LINES		64u		/* of the ring, for rate_Mps */
#define LINE		64u

#if defined(__x86_64__)
#define WIDEST	__attribute__((target("avx512f")))
#else
#define WIDEST
#endif

typedef uint64_t line_t __attribute__((vector_size(64)));

enum what { LINE_PING, LINE_STREAM, COPY, ADD, PUSH, PULL, ADD_DIRTY, PROBE };

static struct shared {
	_Alignas(4096) uint64_t go;		/* written by rank 0 */
	enum what what;
	uint64_t count, window;
	_Alignas(4096) uint64_t turn;		/* written by rank 0 */
	_Alignas(4096) uint64_t done;		/* written by rank 1 */
	_Alignas(4096) line_t ping[LINES];
	_Alignas(4096) line_t pong[LINES];
	_Alignas(4096) char data[PEER_MAX];
} *shared;

static char *private;
static volatile uint64_t sink;
static uint64_t line_n, copy_n;		/* both processes count alike */

/* This program sends no messages. */
static void peer_send(size_t n)
{
	(void)n;
}

static void peer_recv(size_t n)
{
	(void)n;
}

static void peer_stream_out(size_t n, uint64_t count)
{
	(void)n;
	(void)count;
}

static void peer_stream_in(size_t n, uint64_t count)
{
	(void)n;
	(void)count;
}

/* ---- lines ---- */

/* Store 64 bytes at once if the CPU can. */
WIDEST static void put_wide(line_t *line, uint64_t n)
{
	*(volatile line_t *)line = (line_t){ n, n, n, n, n, n, n, n };
}

static void put_words(line_t *line, uint64_t n)
{
	volatile uint64_t *w = (volatile uint64_t *)line;
	int i;

	for (i = 0; i < 7; i++)
		w[i] = n;
	sci_store_release(&w[7], n);
}

static void (*put)(line_t *line, uint64_t n) = put_words;

static const uint64_t *last_word(const line_t *line)
{
	return (const uint64_t *)line + 7;
}

static void line_ping(uint64_t count)
{
	while (count--) {
		put(shared->ping, ++line_n);
		peer_await(last_word(shared->pong), line_n);
	}
}

static void line_pong(uint64_t count)
{
	while (count--) {
		peer_await(last_word(shared->ping), ++line_n);
		put(shared->pong, line_n);
	}
}

/* The reader returns half a ring at a time. */
static void line_fill(uint64_t count)
{
	uint64_t i;

	for (i = 0; i < count; i++) {
		while (i % (LINES / 2) == 0 && i >= LINES &&
		       sci_load_acquire(&shared->done) + LINES / 2 < i)
			;
		put(&shared->ping[i % LINES], ++line_n);
	}
	peer_await(&shared->done, count);
}

static void line_drain(uint64_t count)
{
	uint64_t i;

	for (i = 0; i < count; i++) {
		if (i % (LINES / 2) == 0)
			sci_store_release(&shared->done, i);
		peer_await(last_word(&shared->ping[i % LINES]), ++line_n);
	}
	sci_store_release(&shared->done, count);
}

/* ---- copies ---- */

struct point {
	enum what what;
	size_t size;
	size_t window;			/* bytes before the other process's turn */
	double clock;			/* seconds that two readings cost */
	bool get;			/* COPY: from shared memory */
	bool ordered;			/* COPY: with an atomic exchange after each copy */
};

static void touch_read(const char *p, size_t n)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < n; i += LINE)
		sum += *(const volatile unsigned char *)(p + i);
	sink = sum;
}

static void touch_write(char *p, size_t n, uint64_t v)
{
	size_t i;

	for (i = 0; i < n; i += LINE)
		*(volatile char *)(p + i) = (char)v;
}

/* Repeat memcpy(); the compiler must not merge two copies. */
static void copy_again(const struct point *p, uint64_t count)
{
	uint32_t word = 0;

	while (count--) {
		if (p->get)
			memcpy(private, shared->data, p->size);
		else
			memcpy(shared->data, private, p->size);
		if (p->ordered)
			sci_exchange(&word, 1);
		else
			sci_compiler_barrier();
	}
}

static uint64_t add_one(char *word)
{
	return __atomic_fetch_add((uint64_t *)word, 1, __ATOMIC_SEQ_CST);
}

/* Return the seconds of one turn, without the other process's part. */
static double copy_turn(const struct point *p)
{
	double begin = peer_now(), t;
	uint64_t old = 0;
	size_t off;

	for (off = 0; off < p->window; off += p->size)
		if (p->what == ADD_DIRTY)
			old = add_one(shared->data + peer_dirty_at(off, old));
		else if (p->what == PULL)
			memcpy(private, shared->data + off, p->size);
		else
			memcpy(shared->data + off, private, p->size);
	sci_full_barrier();
	t = peer_now() - begin - p->clock;
	sci_store_release(&shared->turn, ++copy_n);
	peer_await(&shared->done, copy_n);
	return t;
}

static void copy_answer(uint64_t turns)
{
	while (turns--) {
		peer_await(&shared->turn, ++copy_n);
		if (shared->what == ADD_DIRTY)
			touch_write(shared->data, PEER_DIRTY * PEER_DIRTY_STEP, copy_n);
		else if (shared->what == PULL)
			touch_write(shared->data, shared->window, copy_n);
		else
			touch_read(shared->data, shared->window);
		sci_store_release(&shared->done, copy_n);
	}
}

/* ---- orders from rank 0 to rank 1 ---- */

static uint64_t orders;

static void order(enum what what, uint64_t count, size_t window)
{
	shared->done = 0;
	shared->what = what;
	shared->count = count;
	shared->window = window;
	copy_n = 0;
	shared->turn = 0;
	sci_store_release(&shared->go, ++orders);
}

static void obey(void)
{
	for (;;) {
		peer_await(&shared->go, ++orders);
		copy_n = 0;
		if (shared->what == LINE_PING)
			line_pong(shared->count);
		else if (shared->what == LINE_STREAM)
			line_drain(shared->count);
		else if (shared->what == PROBE)
			peer_probe_answer();
		else
			copy_answer(shared->count);
	}
}

static double run(void *arg, uint64_t count)
{
	struct point *p = arg;
	uint64_t step = p->window / p->size, turns = (count + step - 1) / step, i;
	double begin, t = 0;

	if (p->what != COPY && p->what != ADD)
		order(p->what, p->what < PUSH ? count : turns, p->window);
	begin = peer_now();
	if (p->what == LINE_PING)
		line_ping(count);
	else if (p->what == LINE_STREAM)
		line_fill(count);
	else if (p->what == COPY)
		copy_again(p, count);
	for (i = 0; p->what == ADD && i < count; i++)
		sink = add_one(shared->data);
	if (p->what < PUSH)
		return peer_now() - begin;
	for (i = 0; i < turns; i++)
		t += copy_turn(p);
	return t * (double)count / (double)(turns * step);
}

static double probe(void)
{
	order(PROBE, 0, 0);
	return peer_probe_ask();
}

static double clock_cost(void)
{
	double v[101];
	int i;

	for (i = 0; i < 101; i++) {
		v[i] = peer_now();
		sci_full_barrier();
		v[i] = peer_now() - v[i];
	}
	return peer_sorted_median(v, 101);
}

static enum what what_of(const char *mode, const char *metric)
{
	if (!strcmp(mode, "line"))
		return strcmp(metric, "rate_Mps") ? LINE_PING : LINE_STREAM;
	if (!strcmp(mode, "add"))
		return !strcmp(metric, "fadd_us") ? ADD : ADD_DIRTY;
	if (!strcmp(mode, "copy") || !strcmp(mode, "ordered"))
		return COPY;
	return !strcmp(mode, "pull") ? PULL : PUSH;
}

static void one_point(const char *mode, const char *metric, size_t n)
{
	bool ping = !strcmp(metric, "latency_us");
	struct point p = { .size = n ? n : 1 };
	struct peer_sample v[PEER_RUNS];
	unsigned int i;

	p.what = what_of(mode, metric);
	p.get = !strcmp(metric, "get_us");
	p.ordered = !strcmp(mode, "ordered");
	p.window = ping || p.size > WINDOW ? p.size : WINDOW / p.size * p.size;
	if (p.what == ADD_DIRTY) {	/* the unit of sizes is a word */
		p.size = 1;
		p.window = PEER_DIRTY;
	}
	p.clock = clock_cost();
	peer_measure(run, &p, probe, v);
	for (i = 0; i < PEER_RUNS; i++) {
		/* peer_value() halves times in us; all but LINE_PING are no round trips */
		if (p.what != LINE_PING && strstr(metric, "_us"))
			v[i].seconds *= 2;
		peer_print(metric, n, peer_value(metric, n, v[i].seconds), &v[i]);
	}
}

int main(int argc, char **argv)
{
	int rank, i;

	if (argc < 4 && (argc != 2 || strcmp(argv[1], "probe")))
		peer_die("usage: raw line|push|pull|copy|ordered|add METRIC SIZE...\n"
			 "       raw probe");
	shared = peer_alloc(sizeof(*shared), MAP_SHARED);
	peer_probe = peer_alloc(sizeof(*peer_probe), MAP_SHARED);
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx512f"))
		put = put_wide;
#endif
	rank = peer_fork();
	private = peer_alloc(PEER_MAX, MAP_PRIVATE);
	if (rank)
		obey();
	if (argc == 2) {
		probe();
		printf("%.4g\n", probe());
	}
	for (i = 3; i < argc; i++)
		one_point(argv[1], argv[2], strtoull(argv[i], NULL, 0));
	return 0;
}
