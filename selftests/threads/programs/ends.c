// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * usage: ends full|flush|destructor|early|large|user|orphan|child|cancel|queue|names|stream
 *
 * Threads and the program end, and threads of two nodes act on each other. The first thread is on
 * the second node.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
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

/* ---- _exit() while fflush() waits for a stream ---- */

static FILE *input, *output;
static int from_output;

static void *flush_all(void *arg)
{
	while (!ftrylockfile(input))
		funlockfile(input);
	fflush(NULL);
	return arg;
}

/* fflush() has written to @output, and waits for @input. */
static void *exit_after_flush(void *arg)
{
	char c;

	if (read(from_output, &c, 1) != 1)
		exit(1);
	_exit((int)(long)arg);
}

static void flush(void)
{
	static const char text[] = "fflush() waits\n";
	int in[2], out[2];

	if (pipe(in) || pipe(out) || write(1, text, sizeof(text) - 1) < 0)
		exit(1);
	/* fflush() begins with the newest stream */
	input = fdopen(in[0], "r");
	output = fdopen(out[1], "w");
	from_output = out[0];
	fputc('x', output);
	start(flush_all, NULL);
	start(exit_after_flush, (void *)3L);
	getc(input);
}

/* ---- a thread is cancelled in the destructor of a key ---- */

static pthread_key_t keys[2];

static void key_end(void *value)
{
	puts(value);
	fflush(stdout);
	write(-1, NULL, 0);		/* a cancellation point */
	puts("the destructor goes on");
}

static void *cancelled(void *arg)
{
	pthread_setspecific(keys[0], "first key");
	pthread_setspecific(keys[1], "second key");
	pthread_cancel(pthread_self());
	return arg;
}

static void destructor(void)
{
	void *result;

	for (int i = 0; i < 2; i++)
		pthread_key_create(&keys[i], key_end);
	for (int i = 0; i < 2; i++) {
		pthread_join(start(cancelled, NULL), &result);
		printf("%s\n", result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
	}
}

/* ---- main() ends first, and a thread ran before main(): the program is on one node ---- */

static sem_t early_go;
static pthread_t main_thread;

static void *early_wait(void *arg)
{
	sem_wait(&early_go);
	return arg;
}

static FILE *early_out;			/* standard output, as constructors of libraries see it */

static void early_start(int argc, char **argv)
{
	early_out = stdout;
	if (argc == 2 && !strcmp(argv[1], "early") && !sem_init(&early_go, 0, 0))
		start(early_wait, NULL);
}

__attribute__((section(".preinit_array"), used))
static void (*const preinit)(int argc, char **argv) = early_start;

static void *main_join(void *arg)
{
	printf("joined %d\n", pthread_join(main_thread, NULL));
	sem_post(&early_go);
	return arg;
}

static void early(void)
{
	main_thread = pthread_self();
	start(main_join, NULL);
	pthread_exit(NULL);
}

/* ---- large stacks are used again ---- */

static void *nothing(void *arg)
{
	return arg;
}

static void large(void)
{
	pthread_attr_t attr;
	pthread_t t;
	int ret = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 20 << 20);
	for (int i = 0; i < 9000 && !ret; i++) {
		ret = pthread_create(&t, &attr, nothing, NULL);
		if (!ret)
			pthread_join(t, NULL);
		if (!ret && i % 100 == 0)
			pthread_join(start(nothing, NULL), NULL);
	}
	printf("%s\n", strerror(ret));
}

/* ---- another user ---- */

static void *user_show(void *arg)
{
	printf("%d %d %d\n", geteuid(), getegid(), getgroups(0, NULL));
	fflush(stdout);
	return arg;
}

static void *user_change(void *arg)
{
	gid_t groups[2] = { 65534, 65533 };

	printf("%d\n", setgroups(2, groups));
	printf("%d\n", setgid(65534));
	printf("%d\n", setuid(65534));
	printf("%d\n", setuid(0) && errno == EPERM);
	return arg;
}

/* Change the user in thread number @before. The number selects the node of the thread. */
static void user(unsigned int before, void (*end)(void))
{
	for (unsigned int i = 0; i < before; i++)
		pthread_join(start(user_show, NULL), NULL);
	pthread_join(start(user_change, NULL), NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(start(user_show, NULL), NULL);
	end();
}

static void end_return(void)
{
}

static void end_kill(void)
{
	kill(getpid(), SIGKILL);
}

/* ---- threads of a child that has the same program ---- */

#define MEETINGS 1000

static sem_t mine, yours;

static void *meet(void *arg)
{
	for (int i = 0; i < MEETINGS; i++) {
		sem_post(&mine);
		sem_wait(&yours);
	}
	return arg;
}

static int meet_here(void)
{
	pthread_t t = start(meet, NULL);

	for (int i = 0; i < MEETINGS; i++) {
		sem_wait(&mine);
		sem_post(&yours);
	}
	return pthread_join(t, NULL);
}

static void child(const char *program)
{
	char name[] = "ends", how[] = "meet", *const argv[] = { name, how, NULL };
	int status = -1;
	pid_t pid;

	meet_here();
	if (posix_spawn(&pid, program, NULL, NULL, argv, environ))
		exit(1);
	waitpid(pid, &status, 0);
	printf("child: %#x\n", status);
}

/* ---- a cancelled thread waits for the owner of a mutex, which waits for a wake-up ---- */

#define CANCELS	20

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static sem_t awaited;
static atomic_int comes, cleans;

static void held_take(void *arg)
{
	(void)arg;
	cleans = 1;
	pthread_mutex_lock(&held);
	pthread_mutex_unlock(&held);
}

static void *cancelled_wait(void *arg)
{
	pthread_cleanup_push(held_take, NULL);
	comes = 1;
	sem_wait(&awaited);
	pthread_cleanup_pop(0);
	return arg;
}

static void *owner_wait(void *arg)
{
	pthread_mutex_lock(&held);
	comes = 2;
	sem_wait(&awaited);
	pthread_mutex_unlock(&held);
	return arg;
}

static void cancel(void)
{
	void *result;

	for (int i = 0; i < CANCELS; i++) {
		pthread_t t, owner;

		comes = cleans = 0;
		t = start(cancelled_wait, NULL);
		while (comes != 1)
			sched_yield();
		owner = start(owner_wait, NULL);
		while (comes != 2)
			sched_yield();
		pthread_cancel(t);
		while (!cleans)
			sched_yield();
		sem_post(&awaited);
		pthread_join(owner, NULL);
		pthread_join(t, &result);
		printf("%s\n", result == PTHREAD_CANCELED ? "cancelled" : "not cancelled");
	}
}

/* ---- calls about threads of the same node and of another one ---- */

static atomic_int queued;

static void queued_take(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	queued = info->si_value.sival_int;
}

static void *queue_use(void *arg)
{
	pthread_t other = *(pthread_t *)arg;

	printf("sigqueue %d\n", pthread_sigqueue(pthread_self(), SIGUSR1,
						 (union sigval){ .sival_int = 7 }));
	printf("value %d\n", queued);
	printf("sigqueue %d\n", pthread_sigqueue(other, SIGUSR1, (union sigval){ .sival_int = 8 }));
	while (queued != 8)
		sched_yield();
	return NULL;
}

static void *names_use(void *arg)
{
	pthread_t other = *(pthread_t *)arg;
	char name[16] = "";

	printf("name %d\n", pthread_setname_np(other, "another"));
	printf("name %d\n", pthread_getname_np(other, name, sizeof(name)));
	puts(name);
	return NULL;
}

static void about(void *(*use)(void *arg))
{
	struct sigaction sa = { .sa_sigaction = queued_take, .sa_flags = SA_SIGINFO };
	pthread_t t;

	sigaction(SIGUSR1, &sa, NULL);
	t = start(wait_for_end, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(start(use, &t), NULL);
}

/* ---- a stream that constructors of libraries keep, as libstdc++ does ---- */

static void *stream_use(void *arg)
{
	fprintf(early_out, "thread %d\n", *(int *)arg);
	return NULL;
}

static void stream(void)
{
	fprintf(early_out, "main\n");
	for (int i = 0; i < 6; i++) {
		printf("%d: ", i);
		pthread_join(start(stream_use, &i), NULL);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2 || sem_init(&go, 0, 0))
		return 2;
	if (!strcmp(argv[1], "full"))
		full();
	if (!strcmp(argv[1], "flush"))
		flush();
	if (!strcmp(argv[1], "destructor"))
		destructor();
	if (!strcmp(argv[1], "early"))
		early();
	if (!strcmp(argv[1], "large"))
		large();
	if (!strcmp(argv[1], "user"))
		user(2, end_return);
	if (!strcmp(argv[1], "orphan"))
		user(1, end_kill);
	if (!strcmp(argv[1], "child"))
		child(argv[0]);
	if (!strcmp(argv[1], "cancel"))
		cancel();
	if (!strcmp(argv[1], "queue"))
		about(queue_use);
	if (!strcmp(argv[1], "names"))
		about(names_use);
	if (!strcmp(argv[1], "stream"))
		stream();
	if (!strcmp(argv[1], "meet"))
		return meet_here();
	return 0;
}
