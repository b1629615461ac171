// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * usage: dies NODE HOW SEED
 *
 * Threads on all nodes use locks, condition variables, the heap and streams until node NODE dies.
 * HOW: "kill": SIGKILL; "locked": SIGKILL while the node holds a lock; "abort"; "fault": SIGSEGV;
 * "exit": _exit(3) of the program; "late": SIGKILL after SEED microseconds, at any point.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS	8
#define ROUNDS	200

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static unsigned int turn;
static int victim, late;
static const char *how;

/* Kill this node. getpid() returns the first node's process on all nodes. */
static void kill_node(void)
{
	syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
}

static void die(void)
{
	if (!strcmp(how, "kill"))
		kill_node();
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "fault"))
		raise(SIGSEGV);
	if (!strcmp(how, "exit"))
		_exit(3);
	if (!strcmp(how, "locked")) {
		pthread_mutex_lock(&lock);
		kill_node();
	}
}

static void die_late(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	struct itimerspec when = { .it_value = { .tv_nsec = late * 1000L + 1 } };
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &ev, &timer) || timer_settime(timer, 0, &when, NULL))
		exit(1);
}

static void *work(void *arg)
{
	const char *node = getenv("SCI_NODE");
	int here = (node ? atoi(node) : 4) == victim;
	FILE *null = fopen("/dev/null", "w");
	unsigned int me = (unsigned int)(long)arg;

	if (here && !strcmp(how, "late"))
		die_late();
	for (unsigned int i = 0; ; i++) {
		char *p = malloc(16 + i % 5000);

		if (!p || !null)
			exit(1);
		p[0] = 1;
		fprintf(null, "%u", i);
		pthread_mutex_lock(&lock);
		while (turn % THREADS != me)
			pthread_cond_wait(&turned, &lock);
		turn++;
		pthread_cond_broadcast(&turned);
		pthread_mutex_unlock(&lock);
		free(p);
		if (here && i == ROUNDS)
			die();
	}
}

int main(int argc, char **argv)
{
	struct rlimit none = { 0, 0 };
	pthread_t t[THREADS];

	if (argc != 4)
		return 2;
	victim = atoi(argv[1]);
	how = argv[2];
	late = atoi(argv[3]);
	setrlimit(RLIMIT_CORE, &none);
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, work, (void *)i))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	return 0;
}
