// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Threads with a large thread-local variable: each thread of libc has one, too. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LEN	(300u << 10)

static __thread char large[LEN];

static void *large_write(void *arg)
{
	memset(large, *(char *)arg, LEN);
	return access("/", R_OK) || large[0] != large[LEN - 1] ? NULL : arg;
}

int main(void)
{
	for (char c = 'a'; c < 'c'; c++) {
		void *result = NULL;
		pthread_t t;

		if (pthread_create(&t, NULL, large_write, &c) || pthread_join(t, &result))
			return 1;
		printf("access %s\n", result == &c ? "granted" : "denied");
	}
	return 0;
}
