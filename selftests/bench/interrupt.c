// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Time interrupts, from SCITriggerInterrupt() to the return of
 * SCIWaitForInterrupt(), there and back, without data, with 8 bytes and with 4 KiB.
 *
 * usage: interrupt [ROUNDS]
 *
 * Two processes sleep in turn. With two CPUs each process has its own, and the time
 * includes waking an idle CPU; "one CPU" puts both on the same CPU.
 */
#define _GNU_SOURCE

#include "bench.h"

#define MAX_ROUNDS	1000000u
#define WARM_UP		200u
#define INTR_PLAIN	10u
#define INTR_DATA	11u
#define MAX_DATA	4096u

struct setup {
	const char *name;
	unsigned int data;		/* bytes of data; 0: none */
	bool one_cpu;
};

static const struct setup setups[] = {
	{ "interrupt", 0, false },
	{ "interrupt, one CPU", 0, true },
	{ "data interrupt, 8 B", 8, false },
	{ "data interrupt, 4 KiB", 4096, false },
};

/* Both ends of one process. */
struct ends {
	sci_local_interrupt_t in;
	sci_remote_interrupt_t out;
	sci_local_data_interrupt_t data_in;
	sci_remote_data_interrupt_t data_out;
};

static double us[MAX_ROUNDS];

static bool not_yet(sci_error_t err, uint64_t end)
{
	if (err == SCI_ERR_OK)
		return false;
	if ((err != SCI_ERR_NO_SUCH_INTNO && err != SCI_ERR_NO_SUCH_NODEID) ||
	    bench_ns() > end)
		bench_die("connect to an interrupt: %s",
			  SCIGetErrorString(err));
	sched_yield();
	return true;
}

static void connect_out(sci_desc_t sd, struct ends *e, unsigned int peer)
{
	uint64_t end = bench_ns() + 20000000000ull;
	sci_error_t err;

	do
		SCIConnectInterrupt(sd, &e->out, peer, 0, INTR_PLAIN, 0, 0,
				    &err);
	while (not_yet(err, end));
	do
		SCIConnectDataInterrupt(sd, &e->data_out, peer, 0, INTR_DATA,
					0, 0, &err);
	while (not_yet(err, end));
}

static void open_ends(struct ends *e, unsigned int self, unsigned int peer)
{
	unsigned int plain = INTR_PLAIN, data = INTR_DATA;
	sci_desc_t sd = bench_open(self);

	BENCH_OK(SCICreateInterrupt(sd, &e->in, 0, &plain, NULL, NULL,
				    SCI_FLAG_FIXED_INTNO, &err));
	BENCH_OK(SCICreateDataInterrupt(sd, &e->data_in, 0, &data, NULL, NULL,
					SCI_FLAG_FIXED_INTNO, &err));
	connect_out(sd, e, peer);
}

static void trigger(struct ends *e, unsigned int data)
{
	static char payload[MAX_DATA];

	if (data)
		BENCH_OK(SCITriggerDataInterrupt(e->data_out, payload, data, 0,
						 &err));
	else
		BENCH_OK(SCITriggerInterrupt(e->out, 0, &err));
}

static void await(struct ends *e, unsigned int data)
{
	static char payload[MAX_DATA];
	unsigned int len = sizeof(payload);

	if (data)
		BENCH_OK(SCIWaitForDataInterrupt(e->data_in, payload, &len,
						 SCI_INFINITE_TIMEOUT, 0,
						 &err));
	else
		BENCH_OK(SCIWaitForInterrupt(e->in, SCI_INFINITE_TIMEOUT, 0,
					     &err));
}

static void echo(void *arg)
{
	const struct setup *s = arg;
	struct ends e;

	bench_pin(s->one_cpu ? 0 : 1);
	open_ends(&e, BENCH_PEER, BENCH_NODE);
	for (;;) {
		await(&e, s->data);
		trigger(&e, s->data);
	}
}

static void measure(const struct setup *s, unsigned int rounds)
{
	pid_t peer = bench_spawn(echo, (void *)s);
	struct ends e;
	uint64_t begin;
	unsigned int i;

	bench_pin(0);
	open_ends(&e, BENCH_NODE, BENCH_PEER);
	for (i = 0; i < WARM_UP + rounds; i++) {
		begin = bench_ns();
		trigger(&e, s->data);
		await(&e, s->data);
		if (i >= WARM_UP)
			us[i - WARM_UP] = (double)(bench_ns() - begin) / 1e3;
	}
	bench_stop(peer);
	SCITerminate();
	bench_sort(us, rounds);
	printf("%-24s %10.2f %10.2f %10.2f %10.2f\n", s->name, us[0],
	       bench_quantile(us, rounds, 0.5), bench_quantile(us, rounds, 0.99),
	       bench_quantile(us, rounds, 0.5) / 2);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 20000;
	size_t i;

	if (!rounds || rounds > MAX_ROUNDS)
		bench_die("usage: interrupt [ROUNDS]");
	bench_begin();
	printf("interrupt round trips, us, %lu rounds\n", rounds);
	printf("%-24s %10s %10s %10s %10s\n", "", "min", "median", "p99",
	       "one way");
	for (i = 0; i < sizeof(setups) / sizeof(setups[0]); i++)
		measure(&setups[i], (unsigned int)rounds);
	return 0;
}
