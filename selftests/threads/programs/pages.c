// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Three threads allocate 16 MiB each. The other threads, and system calls, use this memory. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS	3
#define LEN	((size_t)16 << 20)

static unsigned char *blocks[THREADS];
static pthread_barrier_t barrier;
static long errors[THREADS];

static long bytes_differ(const unsigned char *p, unsigned char want)
{
	long n = 0;

	for (size_t i = 0; i < LEN; i += 1021)
		n += p[i] != want;
	return n;
}

static void *body(void *arg)
{
	long me = (long)arg, next = (me + 1) % THREADS;
	int fd = open("/dev/zero", O_RDONLY);

	blocks[me] = malloc(LEN);
	if (!blocks[me] || fd < 0)
		exit(1);
	memset(blocks[me], (int)me + 1, LEN);
	pthread_barrier_wait(&barrier);
	errors[me] += bytes_differ(blocks[next], (unsigned char)(next + 1));
	pthread_barrier_wait(&barrier);
	errors[me] += read(fd, blocks[next], LEN) != (ssize_t)LEN;
	close(fd);
	pthread_barrier_wait(&barrier);
	errors[me] += bytes_differ(blocks[me], 0);
	return NULL;
}

int main(void)
{
	pthread_t t[THREADS];

	pthread_barrier_init(&barrier, NULL, THREADS);
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, body, (void *)i))
			return 1;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		printf("thread %d: %ld errors\n", i, errors[i]);
	}
	return 0;
}
