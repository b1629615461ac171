// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The cost of a message in units that do not depend on the load of the machine: instructions, and
 * cache lines that move between the cores of the sender and the receiver.
 *
 * One thread has both endpoints and calls them in turn, so no call waits, and no poll fails. The
 * first pass sets the trap flag of the processor and counts the instructions of the program, which
 * contains libsci. It leaves out this file, and libc, whose memcpy() depends on the processor. The
 * second pass forbids all access to shared mappings: each load and store faults, and a model of two
 * unlimited caches sees its line.
 *
 * instructions.h has the expected values. After a change that is meant to change them, renew it
 * with gcc of Debian 12 and the default flags, on a processor with AVX-512:
 *
 *	build/selftests/msg/instructions | sed -n 's/^# ROW/ROW/p' >rows
 *	sed -i -e '$r rows' -e '/^ROW/d' selftests/msg/instructions.h
 *
 * Lines depend on the protocol alone and must be equal. Instructions are compared only if the
 * compiler and its flags are those of the table. They repeat exactly, except that every 64th
 * progress call polls the bell. The tolerance, 5 % and at least 3 instructions, is for that, and
 * for changes elsewhere that change inlining or register allocation. The test also fails if a
 * message takes fewer instructions, so that the table stays true.
 */
#if !defined(__x86_64__)
#include "selftests/harness.h"

TEST(instructions)
{
	SKIP("only for x86-64");
}
#else
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <sci/msg.h>

#include "selftests/harness.h"
#include "selftests/msg/peers.h"

#define TABLE_CC	"12.2.0"	/* gcc of Debian 12 */
#define TABLE_FLAGS	"-O2"

#define LINE		64u
#define PAGE		4096u
#define TRAP_FLAG	0x100
#define FAULT_WRITES	2		/* in the error code of a page fault */

enum side { SENDER, RECEIVER, SIDES };

struct cost {
	const char *name;
	double instructions[SIDES];	/* per message */
	double fetched[SIDES];		/* lines that move to this side's cache, per message */
	double invalidated;		/* stores to a line that both caches have, per message */
};

#define ROW(name, s, r, fs, fr, i)	{ #name, { s, r }, { fs, fr }, i },
static const struct cost table[] = {
#include "selftests/msg/instructions.h"
};

/* Code in this section is not counted. */
#define UNCOUNTED	__attribute__((noinline, section("uncounted")))
extern const char __start_uncounted[], __stop_uncounted[];
extern const char __executable_start[], etext[];

static enum { OFF, INSTRUCTIONS, LINES } volatile watching;
static volatile enum side side;
static uint64_t instructions[SIDES], fetched[SIDES], invalidated;
static pthread_t stepped;

/* ---- a model of two caches ---- */

/* A shared mapping, and the lines of the memory behind it. */
struct shared {
	char *start, *end;
	unsigned long inode;
	size_t offset;			/* in the memory */
};

/* The memory of an inode. Bit s of a line's byte: the cache of side s has the line. */
struct memory {
	unsigned long inode;
	unsigned char *lines;
	size_t size;
};

static struct shared maps[64];
static struct memory memories[64];
static size_t nmaps;
static char *opened[4];			/* pages that the present instruction may access */

static void protect(int prot)
{
	for (size_t i = 0; i < nmaps; i++)
		CHECK_EQ(mprotect(maps[i].start, maps[i].end - maps[i].start, prot), 0);
}

static struct memory *memory_of(unsigned long inode)
{
	struct memory *m = memories;

	while (m->inode && m->inode != inode)
		m++;
	return m;
}

static void find_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char text[512];

	CHECK(f);
	nmaps = 0;
	while (fgets(text, sizeof(text), f)) {
		struct shared *s = &maps[nmaps];
		struct memory *m;

		if (sscanf(text, "%p-%p rw-s %zx %*s %lu", (void **)&s->start,
			   (void **)&s->end, &s->offset, &s->inode) != 4 ||
		    !strstr(text, "/memfd:"))
			continue;
		CHECK(++nmaps < ARRAY_LEN(maps));
		m = memory_of(s->inode);
		CHECK(m < memories + ARRAY_LEN(memories) - 1);
		m->inode = s->inode;
		if (m->size < s->offset + (s->end - s->start))
			m->size = s->offset + (s->end - s->start);
	}
	CHECK_EQ(fclose(f), 0);
	for (struct memory *m = memories; m->inode; m++) {
		m->lines = malloc(m->size / LINE);
		CHECK(m->lines);
		/* both caches have all lines, as after a lap of each ring */
		memset(m->lines, 1 << SENDER | 1 << RECEIVER, m->size / LINE);
	}
}

/* The present side loads a line or, with @writes, stores to it. */
static void access_line(unsigned char *holders, bool writes)
{
	unsigned char mine = 1 << side, others = *holders & ~mine;

	if (others && !(*holders & mine))
		fetched[side]++;
	else if (others && writes)
		invalidated++;
	*holders = writes ? mine : *holders | mine;
}

/* ---- traps and faults ---- */

static void faulted(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	char *at = info->si_addr, *page = (char *)((uintptr_t)at & -(uintptr_t)PAGE);
	size_t i = 0, free_one = 0;

	while (i < nmaps && (at < maps[i].start || at >= maps[i].end))
		i++;
	while (free_one < ARRAY_LEN(opened) && opened[free_one])
		free_one++;
	if (watching != LINES || i == nmaps || free_one == ARRAY_LEN(opened) ||
	    !pthread_equal(pthread_self(), stepped)) {
		signal(sig, SIG_DFL);
		return;
	}
	access_line(&memory_of(maps[i].inode)->lines[(at - maps[i].start + maps[i].offset) / LINE],
		    regs[REG_ERR] & FAULT_WRITES);
	opened[free_one] = page;
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
	regs[REG_EFL] |= TRAP_FLAG;
}

static bool is_counted(uintptr_t rip)
{
	return rip >= (uintptr_t)__executable_start && rip < (uintptr_t)etext &&
	       (rip < (uintptr_t)__start_uncounted || rip >= (uintptr_t)__stop_uncounted);
}

static void trapped(int sig, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)sig;
	(void)info;
	if (watching == INSTRUCTIONS) {
		instructions[side] += is_counted(regs[REG_RIP]);
		regs[REG_EFL] |= TRAP_FLAG;
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(opened) && opened[i]; i++) {
		mprotect(opened[i], PAGE, PROT_NONE);
		opened[i] = NULL;
	}
	regs[REG_EFL] &= ~TRAP_FLAG;
}

/* ---- points ---- */

#define CONTEXT		5u
#define HANDLER		SCI_HANDLER_USER
#define LONGEST		65536u

struct traffic;
typedef void (*step_fn)(struct traffic *t);

struct traffic {
	const struct point *point;
	const step_fn *steps;
	struct sci_ep *ep[SIDES];
	struct sci_peer *to[SIDES];
	struct sci_req *reqs[SIDES];
	unsigned char *from, *at;
	struct sci_key key;		/* of @at, with .exported */
	uint64_t n;			/* messages until now */
	int error;
};

struct point {
	size_t len;
	unsigned int n;			/* messages: whole rounds of the receiver's status line */
	unsigned int flags;		/* of the endpoints */
	bool handshake;			/* not eager */
	bool exported;			/* the receiver's buffer is exported */
	unsigned int waiting;		/* sends that wait for the receiver meanwhile */
	size_t counter;			/* of the protocol, in struct sci_ep_stats; 0: none */
	step_fn steps[SIDES];
};

UNCOUNTED static void send_untagged(struct traffic *t)
{
	t->error |= sci_send(t->to[SENDER], t->from, t->point->len);
}

UNCOUNTED static void recv_untagged(struct traffic *t)
{
	t->error |= sci_recv(t->ep[RECEIVER], t->to[RECEIVER], t->at, t->point->len, NULL);
}

UNCOUNTED static void send_tagged(struct traffic *t)
{
	t->error |= sci_tsend(t->to[SENDER], CONTEXT, t->n, t->from, t->point->len);
}

UNCOUNTED static void recv_tagged(struct traffic *t)
{
	t->error |= sci_trecv(t->ep[RECEIVER], t->to[RECEIVER], CONTEXT, t->n, 0, t->at,
			      t->point->len, NULL);
}

UNCOUNTED static void recv_tagged_any(struct traffic *t)
{
	t->error |= sci_trecv(t->ep[RECEIVER], NULL, CONTEXT, t->n, 0, t->at, t->point->len, NULL);
}

UNCOUNTED static void test(struct traffic *t, enum side s)
{
	int ret = sci_test(t->reqs[s], NULL);

	if (ret != -EAGAIN) {
		t->reqs[s] = NULL;
		t->error |= ret;
	}
}

/* Start a request, or test the request that has been started. */
UNCOUNTED static void isend(struct traffic *t)
{
	if (t->reqs[SENDER])
		test(t, SENDER);
	else
		t->error |= sci_isend(t->to[SENDER], t->from, t->point->len, &t->reqs[SENDER]);
}

UNCOUNTED static void irecv(struct traffic *t)
{
	if (t->reqs[RECEIVER])
		test(t, RECEIVER);
	else
		t->error |= sci_irecv(t->ep[RECEIVER], t->to[RECEIVER], t->at, t->point->len,
				      &t->reqs[RECEIVER]);
}

UNCOUNTED static void handler_send(struct traffic *t)
{
	t->error |= sci_handler_send(t->to[SENDER], HANDLER, t->n, t->from, t->point->len);
}

UNCOUNTED static void handled(void *arg, const struct sci_handled *m)
{
	struct traffic *t = arg;

	memcpy(t->at, m->data, m->len);
}

UNCOUNTED static void progress(struct traffic *t)
{
	t->error |= sci_progress(t->ep[RECEIVER]) < 0;
}

UNCOUNTED static void put(struct traffic *t)
{
	t->error |= sci_write(t->to[SENDER], &t->key, 0, t->from, t->point->len);
}

UNCOUNTED static void add(struct traffic *t)
{
	struct sci_rmw one = { SCI_RMW_ADD, SCI_RMW_UINT64, 1, 0 };
	uint64_t before;

	t->error |= sci_rmw(t->to[SENDER], &t->key, 0, &one, &before);
	t->error |= before != *(uint64_t *)t->from;
	*(uint64_t *)t->from = before + 1;
}

/* The owner of memory loads the word that the sender has changed. */
UNCOUNTED static void load(struct traffic *t)
{
	t->error |= *(volatile uint64_t *)t->at != *(uint64_t *)t->from;
}

UNCOUNTED static void run_step(struct traffic *t, enum side s, int how)
{
	side = s;
	watching = how;
	if (how == INSTRUCTIONS)
		raise(SIGTRAP);
	t->steps[s](t);
	watching = OFF;
}

static void step(struct traffic *t, enum side s, int how)
{
	if (how == LINES)
		protect(PROT_NONE);
	run_step(t, s, how);
	if (how == LINES)
		protect(PROT_READ | PROT_WRITE);
}

/* Run @n messages. The sender and the receiver do their steps in turn until both have finished. */
static void messages(struct traffic *t, unsigned int n, int how)
{
	while (n--) {
		unsigned int tries = 1000;

		if (t->steps[SENDER] != add)
			msg_fill(t->from, t->point->len, ++t->n);
		step(t, SENDER, how);
		step(t, RECEIVER, how);
		while (t->reqs[SENDER] || t->reqs[RECEIVER]) {
			CHECK(how == OFF || tries--);
			for (int s = 0; s < SIDES; s++)
				if (t->reqs[s])
					step(t, s, how);
		}
		CHECK_EQ(t->error, 0);
		CHECK(!memcmp(t->from, t->at, t->point->len));
	}
}

static void *accept_one(void *ep)
{
	return test_ep_accept(ep);
}

static void open_ends(struct traffic *t)
{
	const struct config config = {
		.flags = t->point->flags,
		.n = t->point->handshake ? 4 : 2,
		.set = { { SCI_PARAM_ATTACH_AFTER, 0 },
			 { SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX },
			 { SCI_PARAM_EAGER_MAX, 4096 },
			 { SCI_PARAM_ZCOPY_MIN, 4096 } },
	};
	pthread_t accepter;
	void *peer;

	for (int s = 0; s < SIDES; s++)
		t->ep[s] = test_ep_config(s + 1, &config);
	CHECK_EQ(pthread_create(&accepter, NULL, accept_one, t->ep[RECEIVER]), 0);
	t->to[SENDER] = test_ep_connect(t->ep[SENDER], 4, RECEIVER + 1);
	CHECK_EQ(pthread_join(accepter, &peer), 0);
	t->to[RECEIVER] = peer;
	CHECK_EQ(sci_handler_set(t->ep[RECEIVER], HANDLER, handled, t), 0);
}

static void make_buffers(struct traffic *t)
{
	void *at;

	t->from = aligned_alloc(PAGE, LONGEST);
	CHECK(t->from);
	memset(t->from, 0, LONGEST);
	if (t->point->exported) {
		CHECK_EQ(sci_buf_alloc(t->ep[RECEIVER], LONGEST, &at), 0);
		CHECK_EQ(sci_buf_key(t->ep[RECEIVER], at, LONGEST, &t->key), 0);
	} else {
		at = aligned_alloc(PAGE, LONGEST);
		CHECK(at);
	}
	t->at = at;
}

/* Attach the rings. Later messages find the same rings at the same positions in each run. */
static void attach(struct traffic *t)
{
	static const step_fn requests[SIDES] = { isend, irecv };

	t->steps = requests;
	for (int i = 0; i < 4; i++) {
		messages(t, 1, OFF);
		WAIT_UNTIL(others_asleep(), TEST_WAIT_MS);
		for (int s = 0; s < SIDES; s++)
			while (sci_progress(t->ep[s]) > 0)
				;
	}
	t->steps = t->point->steps;
}

/* Begin sends that the receiver does not receive: they wait while the messages are counted. */
static void wait_in_vain(struct traffic *t)
{
	struct sci_req *req;

	for (unsigned int i = 0; i < t->point->waiting; i++) {
		CHECK_EQ(sci_itsend(t->to[SENDER], 1, 1, t->from, LONGEST, &req), 0);
		for (int s = 0; s < SIDES; s++)
			while (sci_progress(t->ep[s]) > 0)
				;
	}
}

static uint64_t counted(const struct traffic *t)
{
	struct sci_ep_stats stats = test_ep_stats(t->ep[SENDER]);

	return t->point->counter ? *(uint64_t *)((char *)&stats + t->point->counter) : 0;
}

static struct cost measure(struct traffic *t, const char *name)
{
	unsigned int n = t->point->n;
	struct cost c = { .name = name };
	uint64_t before;

	attach(t);
	wait_in_vain(t);
	messages(t, n, OFF);
	before = counted(t);
	messages(t, n, INSTRUCTIONS);
	if (t->point->counter)
		CHECK_EQ(counted(t) - before, n);
	find_maps();
	messages(t, n, LINES);
	memset(fetched, 0, sizeof(fetched));
	invalidated = 0;
	messages(t, n, LINES);
	for (int s = 0; s < SIDES; s++) {
		c.instructions[s] = (double)instructions[s] / n;
		c.fetched[s] = (double)fetched[s] / n;
	}
	c.invalidated = (double)invalidated / n;
	return c;
}

/* ---- the table ---- */

static bool same_build(void)
{
#if defined(__clang__) || !defined(TEST_FLAGS)
	return false;
#else
	return !strcmp(__VERSION__, TABLE_CC) && !strcmp(TEST_FLAGS, TABLE_FLAGS);
#endif
}

static bool is_near(double got, double want)
{
	return fabs(got - want) <= fmax(3, want / 20);
}

/* The table has two digits after the point. */
static bool is_equal(double got, double want)
{
	return fabs(got - want) < 0.006;
}

static void compare(const struct cost *got)
{
	const struct cost *want = table;

	while (want < table + ARRAY_LEN(table) && strcmp(want->name, got->name))
		want++;
	CHECK(want < table + ARRAY_LEN(table));
	for (int s = 0; s < SIDES; s++)
		if (!is_equal(got->fetched[s], want->fetched[s]))
			FAIL("the %s fetches %.2f lines per message, not %.2f",
			     s ? "receiver" : "sender", got->fetched[s], want->fetched[s]);
	if (!is_equal(got->invalidated, want->invalidated))
		FAIL("%.2f lines are invalidated per message, not %.2f", got->invalidated,
		     want->invalidated);
	if (!same_build()) {
		test_note("instructions not compared: the table is for gcc " TABLE_CC " "
			  TABLE_FLAGS);
		return;
	}
	for (int s = 0; s < SIDES; s++)
		if (!is_near(got->instructions[s], want->instructions[s]))
			FAIL("a message takes %.0f instructions at the %s, not %.0f",
			     got->instructions[s], s ? "receiver" : "sender",
			     want->instructions[s]);
}

static void run(const char *name, const char *engine, const struct point *p)
{
	const struct sigaction trap = { .sa_sigaction = trapped, .sa_flags = SA_SIGINFO };
	const struct sigaction fault = { .sa_sigaction = faulted, .sa_flags = SA_SIGINFO };
	struct traffic t = { .point = p };
	struct cost got;

	test_needs_shm();
	if (TEST_ASAN || TEST_TSAN)
		SKIP("sanitizers add instructions");
	if (!strcmp(engine, "avx512") &&
	    (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
	     !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("bmi2")))
		SKIP("this processor has no AVX-512");
	setenv("SCI_PIO", engine, 1);
	stepped = pthread_self();
	CHECK_EQ(sigaction(SIGTRAP, &trap, NULL), 0);
	CHECK_EQ(sigaction(SIGSEGV, &fault, NULL), 0);
	open_ends(&t);
	make_buffers(&t);
	got = measure(&t, name);
	test_note("ROW(%s, %.0f, %.0f, %.2f, %.2f, %.2f)", name, got.instructions[SENDER],
		  got.instructions[RECEIVER], got.fetched[SENDER], got.fetched[RECEIVER],
		  got.invalidated);
	compare(&got);
}

#define POINT(name, engine, ...)					\
TEST(name##_##engine)							\
{									\
	static const struct point p = { __VA_ARGS__ };			\
									\
	run(#name "_" #engine, #engine, &p);				\
}

#define POINTS(name, ...)						\
POINT(name, avx512, __VA_ARGS__)					\
POINT(name, sse2, __VA_ARGS__)

#define COUNTED(name)	.counter = offsetof(struct sci_ep_stats, name)
#define SHORT		.n = 24, COUNTED(sent_short)
#define UNTAGGED	.steps = { send_untagged, recv_untagged }
#define TAGGED		.steps = { send_tagged, recv_tagged }
#define REQUESTS	.steps = { isend, irecv }
#define BLOCK		.len = 65536, .n = 8

POINTS(untagged_8, .len = 8, SHORT, UNTAGGED)
POINTS(untagged_62, .len = 62, SHORT, UNTAGGED)
POINTS(tagged_8, .len = 8, SHORT, TAGGED)
POINT(untagged_8_single_thread, avx512, .len = 8, .flags = SCI_EP_SINGLE_THREAD, SHORT, UNTAGGED)
POINT(tagged_8_single_thread, avx512, .len = 8, .flags = SCI_EP_SINGLE_THREAD, SHORT, TAGGED)
POINT(tagged_62, avx512, .len = 62, .n = 24, COUNTED(sent_lines), TAGGED)
POINT(tagged_8_any_source, avx512, .len = 8, SHORT, .steps = { send_tagged, recv_tagged_any })
POINTS(requests_8, .len = 8, SHORT, REQUESTS)
POINTS(handler_8, .len = 8, SHORT, .steps = { handler_send, progress })
/* an access never crosses a line if a length of several lines is whole lines */
POINT(untagged_320, avx512, .len = 320, .n = 24, COUNTED(sent_eager), UNTAGGED)
POINT(untagged_4096, avx512, .len = 4096, .n = 24, COUNTED(sent_eager), UNTAGGED)
POINT(untagged_65536, avx512, BLOCK, COUNTED(sent_eager), UNTAGGED)
POINT(rendezvous_65536, avx512, BLOCK, .handshake = true, COUNTED(sent_rendezvous), REQUESTS)
POINT(zero_copy_65536, avx512, BLOCK, .handshake = true, .exported = true, COUNTED(sent_zcopy),
      REQUESTS)
POINT(put_8, sse2, .len = 8, .n = 24, .exported = true, .steps = { put, load })
POINT(put_8_beside_sends, sse2, .len = 8, .n = 24, .exported = true, .handshake = true,
      .waiting = 100, .steps = { put, load })
POINT(atomic_8, sse2, .len = 8, .n = 24, .exported = true, .steps = { add, load })
#endif
