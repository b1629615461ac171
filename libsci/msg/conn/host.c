// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* A clock and random numbers for the protocols. */

#include "libsci/msg/conn/conn.h"

#include <sys/random.h>
#include <time.h>

uint64_t msg_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Return a random number other than 0, which identifies this endpoint. */
uint64_t msg_nonce(void)
{
	uint64_t nonce;

	if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
		nonce = (uintptr_t)&nonce ^ msg_now_ms() << 20;
	return nonce | 1;
}
