// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Threads use descriptors, streams and the end of the process, in turn and at once. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS	4

static int fd = -1, pipes[2];
static FILE *stream;

static void in_turn(void *(*fn)(void *arg))
{
	pthread_t t;

	for (long i = 0; i < THREADS; i++) {
		pthread_create(&t, NULL, fn, (void *)i);
		pthread_join(t, NULL);
	}
}

static void at_once(void *(*fn)(void *arg))
{
	pthread_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, fn, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

/* Several threads print parts of one line, without a flush. */
static void *part(void *arg)
{
	printf("part %ld, ", (long)arg);
	fprintf(stderr, "error %ld\n", (long)arg);
	return NULL;
}

static void *opens(void *arg)
{
	switch ((long)arg) {
	case 0:
		fd = fileno(stream = tmpfile());
		break;
	case 1:
		fprintf(stream, "written by %ld\n", (long)arg);
		break;
	case 2:
		rewind(stream);
		break;
	default:
		{
			char line[100] = "";

			if (fgets(line, sizeof(line), stream))
				printf("read: %s", line);
			printf("close %d\n", fclose(stream));
			printf("closed %d\n", fcntl(fd, F_GETFD) == -1 && errno == EBADF);
		}
	}
	return NULL;
}

static void *many(void *arg)
{
	char line[64];

	for (int i = 0; i < 2000; i++) {
		snprintf(line, sizeof(line), "%ld %d\n", (long)arg, i);
		fputs(line, stream);
	}
	return NULL;
}

/* Check that no line is torn or lost. */
static void many_check(void)
{
	int next[THREADS] = { 0 }, n, i, lines = 0, bad = 0;

	rewind(stream);
	while (fscanf(stream, "%d %d\n", &n, &i) == 2) {
		lines++;
		bad += n < 0 || n >= THREADS || next[n]++ != i;
	}
	printf("%d lines, %d bad\n", lines, bad);
	fclose(stream);
}

static void *pipe_body(void *arg)
{
	char c = 'x';

	if ((long)arg == 0)
		return (void *)(long)pipe(pipes);
	if ((long)arg == 1)
		printf("wrote %zd\n", write(pipes[1], &c, 1));
	if ((long)arg == 2)
		close(pipes[1]);
	if ((long)arg == 3) {
		printf("read %zd\n", read(pipes[0], &c, 1));
		printf("read %zd\n", read(pipes[0], &c, 1));
	}
	return NULL;
}

static void *state(void *arg)
{
	char name[20];

	if (arg)
		printf("VALUE%ld is %s\n", (long)arg, getenv("VALUE"));
	snprintf(name, sizeof(name), "of %ld", (long)arg);
	setenv("VALUE", name, 1);
	return NULL;
}

static void *run(void *arg)
{
	char line[100] = "";
	FILE *p;
	int status;

	fflush(stdout);
	/* NOLINTNEXTLINE(cert-env33-c): our own words */
	status = system("exit 3");
	printf("system %d\n", WEXITSTATUS(status));
	/* NOLINTNEXTLINE(cert-env33-c): our own words */
	p = popen("echo a child", "r");
	if (p && fgets(line, sizeof(line), p))
		printf("popen: %s", line);
	printf("pclose %d\n", p ? pclose(p) : -1);
	return arg;
}

static void *flush_all(void *arg)
{
	if ((long)arg == 1)
		fflush(NULL);
	return NULL;
}

static void at_end(void)
{
	puts("at the end");
}

static void *ends(void *arg)
{
	if ((long)arg == 1)
		atexit(at_end);
	if ((long)arg < 3)
		return NULL;
	printf("exit, without a newline");
	exit(7);
}

int main(void)
{
	in_turn(part);
	puts("all");
	in_turn(opens);
	stream = tmpfile();
	at_once(many);
	many_check();
	in_turn(pipe_body);
	in_turn(state);
	printf("VALUE is %s\n", getenv("VALUE"));
	in_turn(run);
	in_turn(flush_all);
	in_turn(ends);
	return 1;
}
