// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test random calls from several threads of several processes, with valid, nearly
 * valid and invalid arguments, on objects that other threads close, unmap, revoke
 * and kill meanwhile.  The test fails if a call hangs, a map gives SIGBUS, a
 * process ends by itself, or an object stays behind.
 *
 * --seed=N	seed of the random numbers (printed)
 * --calls=N	number of calls of all processes (20000)
 * --processes=N	number of processes (3)
 * --threads=N	threads of each process (3)
 * --chaos=0	lose no packets, take no link down, kill no process
 * --failures=0	inject no failures of kernel allocations
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz_steps.h"

#define HANG_MS		60000u
#define DISTURBED	50000u		/* injected faults per million */

static struct fuzz_tally *tally;
static unsigned int nprocesses;

struct supervisor {
	pid_t pid[FUZZ_PROCESSES_MAX];
	uint64_t last[FUZZ_WORKERS_MAX], since[FUZZ_WORKERS_MAX];
	uint64_t rnd;
	unsigned int killed;
	bool chaos;
};

static void start(struct supervisor *s, unsigned int process)
{
	uint64_t seed = ksft_random(&s->rnd);

	s->pid[process] = ksft_fork();
	if (s->pid[process] == 0)
		fuzz_process(tally, process, seed);
}

static uint64_t hang_ms(void)
{
	return HANG_MS * ksft_option("test_timeout", 60) / 60;
}

/* Stop the test if a call does not end though the thread gets signals. */
static void watch(struct supervisor *s)
{
	for (unsigned int i = 0; i < FUZZ_WORKERS_MAX; i++) {
		struct fuzz_worker *w = &tally->worker[i];
		uint64_t calls = atomic_load(&w->calls);

		if (!atomic_load(&w->pid))
			continue;
		if (calls != s->last[i] || !s->since[i])
			s->since[i] = ksft_now_ms();
		s->last[i] = calls;
		if (ksft_now_ms() - s->since[i] < hang_ms())
			continue;
		ksft_note("pid %d hangs in %s", atomic_load(&w->pid),
			  fuzz_op_name(atomic_load(&w->op)));
		/* let the runner print what each thread does, and end the test */
		ksft_set_limit(1);
		pause();
	}
}

/* Wait until the process exits by itself with status 0. */
static void wait_for_end(struct supervisor *s, unsigned int process)
{
	int status = 0;

	while (waitpid(s->pid[process], &status, WNOHANG) == 0) {
		poll(NULL, 0, FUZZ_TICK_MS);
		watch(s);
	}
	EQ(status, 0);
}

static void kill_one(struct supervisor *s)
{
	unsigned int process = ksft_below(&s->rnd, nprocesses);
	int status;

	kill(s->pid[process], SIGKILL);
	status = ksft_wait(s->pid[process]);
	/* the process may have exited before the signal */
	if (status && (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL))
		FAIL("pid %d ended: status %#x", s->pid[process], status);
	s->killed++;
	for (unsigned int i = 0; i < FUZZ_THREADS_MAX; i++)
		s->since[process * FUZZ_THREADS_MAX + i] = 0;
	start(s, process);
}

static void disturb(struct supervisor *s)
{
	static const char *const knobs[] = {
		KNOB_LOSS, KNOB_DUPLICATE, KNOB_REORDER, KNOB_DMA_ERRORS,
	};
	unsigned int i = ksft_below(&s->rnd, adapters());

	if (ksft_below(&s->rnd, 25) == 0)
		kill_one(s);
	for (unsigned int k = 0; k < ARRAY_SIZE(knobs); k++)
		if (has_knob(i, knobs[k]))
			knob_set(i, knobs[k],
				 ksft_below(&s->rnd, 4) ? 0 : DISTURBED);
	if (has_knob(i, KNOB_LINK))
		knob_set(i, KNOB_LINK, ksft_below(&s->rnd, 20) != 0);
}

static void print_op(unsigned int op)
{
	char line[1024];
	size_t n = 0;

	for (unsigned int e = 0; e < FUZZ_ERRNO_MAX; e++) {
		uint32_t seen = atomic_load(&tally->seen[op][e]);

		if (seen && n < sizeof(line))
			n += snprintf(line + n, sizeof(line) - n, " %s %u",
				      ksft_errname((int)e), seen);
	}
	if (n)
		ksft_note("%-16s%s", fuzz_op_name(op), line);
}

static void prepare(struct supervisor *s)
{
	tally = ksft_shared(sizeof(*tally));
	s->rnd = ksft_option("seed", ksft_now_ms() * 2654435761u + getpid());
	tally->wanted = ksft_option("calls", 20000);
	nprocesses = (unsigned int)ksft_option("processes", 3);
	tally->threads = (unsigned int)ksft_option("threads", 3);
	CHECK(nprocesses >= 1 && nprocesses <= FUZZ_PROCESSES_MAX);
	CHECK(tally->threads >= 1 && tally->threads <= FUZZ_THREADS_MAX);
	s->chaos = ksft_option("chaos", 1);
	tally->failures = ksft_option("failures", 1);
	ksft_set_limit((unsigned int)(300 + tally->wanted / 100));
	ksft_note("--seed=%llu --calls=%llu --processes=%u --threads=%u --chaos=%d --failures=%d",
		  (unsigned long long)s->rnd,
		  (unsigned long long)tally->wanted, nprocesses,
		  tally->threads, s->chaos, tally->failures);
}

TEST(anything_goes)
{
	static struct supervisor s;

	CHECK(fuzz_ops() <= FUZZ_OPS_MAX);
	prepare(&s);
	for (unsigned int i = 0; i < nprocesses; i++)
		start(&s, i);
	while (atomic_load(&tally->calls) < tally->wanted) {
		poll(NULL, 0, FUZZ_TICK_MS);
		watch(&s);
		if (s.chaos)
			disturb(&s);
	}
	faults_end();
	for (unsigned int i = 0; i < nprocesses; i++)
		wait_for_end(&s, i);
	ksft_note("%llu calls, %u processes killed",
		  (unsigned long long)atomic_load(&tally->calls), s.killed);
	for (unsigned int op = 0; op < fuzz_ops(); op++)
		print_op(op);
	EQ(atomic_load(&tally->bus_errors), 0);
}
