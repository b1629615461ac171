// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * usage: libc time|cleared|locale
 *
 * Threads use the state that libc has from before the first thread. Threads run in turn, the first
 * one on the second node.
 */
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TURNS	4
#define BLOCKS	1000

static void thread_run(void *(*fn)(void *arg), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, arg) || pthread_join(t, NULL))
		exit(1);
}

/* ---- blocks that libc frees ---- */

static void *blocks[3 * BLOCKS];

static void *blocks_take(void *arg)
{
	void **block = arg;

	for (int i = 0; i < BLOCKS; i++)
		block[i] = malloc(16);
	return NULL;
}

static int blocks_compare(const void *a, const void *b)
{
	const char *p = *(char *const *)a, *q = *(char *const *)b;

	return (p > q) - (p < q);
}

/* Print how many blocks malloc() returns twice. */
static void blocks_check(void)
{
	int twice = 0;

	blocks_take(blocks);
	thread_run(blocks_take, blocks + BLOCKS);
	thread_run(blocks_take, blocks + 2 * BLOCKS);
	qsort(blocks, 3 * BLOCKS, sizeof(blocks[0]), blocks_compare);
	for (int i = 1; i < 3 * BLOCKS; i++)
		twice += blocks[i] == blocks[i - 1];
	printf("%d blocks twice\n", twice);
}

static void *time_show(void *arg)
{
	time_t at = 1000000000;
	char text[64];

	strftime(text, sizeof(text), "%F %T %Z", localtime(&at));
	puts(text);
	return arg;
}

static void time_use(void)
{
	time_show(NULL);
	for (int i = 0; i < TURNS; i++)
		thread_run(time_show, NULL);
	time_show(NULL);
	blocks_check();
}

static void *locale_show(void *arg)
{
	puts(setlocale(LC_ALL, NULL));
	return arg;
}

static void *locale_change(void *arg)
{
	puts(setlocale(LC_NUMERIC, "C"));
	return arg;
}

static void locale_use(void)
{
	if (!setlocale(LC_ALL, "C.UTF-8"))
		puts("no C.UTF-8");
	thread_run(locale_show, NULL);
	thread_run(locale_change, NULL);
	for (int i = 0; i < TURNS; i++)
		thread_run(locale_show, NULL);
	blocks_check();
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	if (!strcmp(argv[1], "cleared"))
		clearenv();
	if (!strcmp(argv[1], "time") || !strcmp(argv[1], "cleared"))
		time_use();
	else if (!strcmp(argv[1], "locale"))
		locale_use();
	return 0;
}
