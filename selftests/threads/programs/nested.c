// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * usage: nested
 *
 * Threads of all nodes create threads, which use variables on the stacks of their creators, and map
 * memory. The output is the same as natively.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define WIDTH	3
#define DEPTH	3
#define PAGE	4096u

/* One level of the tree, on the stack of the thread that creates the level below. */
struct level {
	int depth;
	pthread_mutex_t lock;
	long threads, pages;
};

static void *grow(void *arg)
{
	struct level *above = arg;
	struct level here = { above->depth + 1, PTHREAD_MUTEX_INITIALIZER, 0, 0 };
	pthread_t t[WIDTH];
	char *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (here.depth < DEPTH)
		for (int i = 0; i < WIDTH; i++)
			if (pthread_create(&t[i], NULL, grow, &here))
				abort();
	for (int i = 0; here.depth < DEPTH && i < WIDTH; i++)
		pthread_join(t[i], NULL);
	pthread_mutex_lock(&above->lock);
	above->threads += here.threads + 1;
	above->pages += here.pages + (p != MAP_FAILED && !*p && !munmap(p, PAGE));
	pthread_mutex_unlock(&above->lock);
	return NULL;
}

int main(void)
{
	struct level top = { 0, PTHREAD_MUTEX_INITIALIZER, 0, 0 };
	pthread_t t[WIDTH];

	for (int i = 0; i < WIDTH; i++)
		if (pthread_create(&t[i], NULL, grow, &top))
			return 1;
	for (int i = 0; i < WIDTH; i++)
		pthread_join(t[i], NULL);
	printf("%ld threads, %ld pages\n", top.threads, top.pages);
	return 0;
}
