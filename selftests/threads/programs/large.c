// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * usage: large THREADS MIB
 *
 * Threads share MIB MiB of memory. Each thread fills its part, checks all of it after all threads
 * have filled theirs, and checks some pages of the next thread. Prints a sum of the whole memory.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS_MAX	64u
#define PAGE_WORDS	512u
#define FOREIGN		16u		/* check one of so many pages of the next thread */

static pthread_barrier_t barrier;
static uint64_t *memory;
static size_t pages, threads;
static uint64_t sums[THREADS_MAX];

/* The value of word @i of a page. */
static uint64_t word_of(size_t page, size_t i)
{
	return page * 0x9e3779b97f4a7c15u + i;
}

static uint64_t page_check(size_t page)
{
	const uint64_t *p = memory + page * PAGE_WORDS;
	uint64_t sum = 0;

	for (size_t i = 0; i < PAGE_WORDS; i++) {
		if (p[i] != word_of(page, i)) {
			printf("page %zu, word %zu: wrong\n", page, i);
			exit(1);
		}
		sum += p[i];
	}
	return sum;
}

static void *run(void *arg)
{
	size_t i = (size_t)arg, next = (i + 1) % threads;
	size_t from = pages * i / threads, to = pages * (i + 1) / threads;
	uint64_t sum = 0;

	for (size_t page = from; page < to; page++)
		for (size_t k = 0; k < PAGE_WORDS; k++)
			memory[page * PAGE_WORDS + k] = word_of(page, k);
	pthread_barrier_wait(&barrier);
	for (size_t page = from; page < to; page++)
		sum += page_check(page);
	sums[i] = sum;
	from = pages * next / threads;
	to = pages * (next + 1) / threads;
	for (size_t page = from; page < to; page += FOREIGN)
		page_check(page);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS_MAX];
	uint64_t sum = 0;

	threads = argc == 3 ? strtoul(argv[1], NULL, 0) : 0;
	if (!threads || threads > THREADS_MAX) {
		fprintf(stderr, "usage: large THREADS MIB\n");
		return 2;
	}
	pages = strtoul(argv[2], NULL, 0) << 8;
	memory = malloc(pages * PAGE_WORDS * sizeof(*memory));
	if (!memory) {
		perror("malloc");
		return 1;
	}
	pthread_barrier_init(&barrier, NULL, (unsigned int)threads);
	for (size_t i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, run, (void *)i))
			return 1;
	for (size_t i = 0; i < threads; i++) {
		pthread_join(t[i], NULL);
		sum += sums[i];
	}
	printf("%zu MiB, sum %llx\n", pages >> 8, (unsigned long long)sum);
	return 0;
}
