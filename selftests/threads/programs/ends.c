// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * usage: ends full
 *
 * Threads and the program end. The first thread is on the second node.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sem_t go;

static pthread_t start(void *(*fn)(void *arg), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, arg))
		exit(1);
	return t;
}

/* ---- exit() while no thread can be created ---- */

static void handler(void)
{
	puts("the handler of exit()");
}

static void *exit_call(void *arg)
{
	sem_wait(&go);
	exit((int)(long)arg);
}

static void *wait_for_end(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* Create threads with large and small stacks, natively a part of them. */
static void stacks_take(void)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	for (size_t size = (size_t)8 << 30; size > 1 << 20; size /= 2) {
		pthread_attr_setstacksize(&attr, size);
		for (int i = 0; i < 40 && !pthread_create(&t, &attr, wait_for_end, NULL); i++)
			;
	}
}

static void full(void)
{
	atexit(handler);
	start(exit_call, (void *)3L);
	stacks_take();
	sem_post(&go);
	wait_for_end(NULL);
}

int main(int argc, char **argv)
{
	if (argc != 2 || sem_init(&go, 0, 0))
		return 2;
	if (!strcmp(argv[1], "full"))
		full();
	return 0;
}
