/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Pseudo-random numbers and deaths. The same seed gives the same numbers. */
#ifndef SELFTESTS_RANDOM_H
#define SELFTESTS_RANDOM_H

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static uint64_t random_state = 1;

/* SCI_TEST_SEED repeats the numbers of another run; @n distinguishes processes or rounds. */
static inline void random_seed(unsigned int n)
{
	const char *seed = getenv("SCI_TEST_SEED");

	random_state = (seed ? strtoull(seed, NULL, 0) : 1) * 1000003 + n + 1;
}

static inline uint32_t random_below(uint32_t n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((random_state >> 33) % n);
}

/* Send SIGKILL to this process in @us microseconds. */
static inline void random_death(uint32_t us)
{
	struct sigevent kill = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	struct itimerspec when = {
		.it_value = { us / 1000000, us % 1000000 * 1000 + 1 },
	};
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &kill, &timer) ||
	    timer_settime(timer, 0, &when, NULL))
		abort();
}

#endif
