/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * A virtual machine for a test. Tasks that the test spawns run the same program: there, a
 * constructor calls child_main() in place of main().
 */
#ifndef SELFTESTS_PVM_MACHINE_H
#define SELFTESTS_PVM_MACHINE_H

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "selftests/harness.h"

#include <sci-pvm/pvm3.h>
#include <sci/msg.h>

#include "libsci/pvm/frame.h"

static char machine_self[PATH_MAX];

/* The main function of a spawned task; @argc counts @argv[0]. Return: its exit status. */
static int child_main(int argc, char **argv);

static void machine_child_end(int sig)
{
	(void)sig;
	_exit(0);
}

__attribute__((constructor)) static void machine_child(int argc, char **argv)
{
	if (!getenv("PVMEPID"))
		return;
	/* the test would fail if a signal ended the child */
	signal(SIGTERM, machine_child_end);
	signal(SIGPIPE, SIG_IGN);
	_exit(child_main(argc, argv));
}

/* Have the next call start a machine that ends with this test. */
static inline void machine_prepare(void)
{
	char path[PATH_MAX + 16], pid[16];
	char *slash;

	CHECK(realpath("/proc/self/exe", machine_self));
	strcpy(path, machine_self);
	for (int i = 0; i < 3; i++) {
		slash = strrchr(path, '/');
		*slash = 0;
	}
	strcat(path, "/pvmd3");
	setenv("SCI_PVMD", path, 1);
	setenv("PVM_TMP", "/nonexistent", 1);	/* the daemon writes no log */
	unsetenv("PVM_EXPORT");
	/* the daemon ends with the test, even if the test is killed */
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("SCI_PVM_OWNER", pid, 1);
	signal(SIGTERM, SIG_IGN);		/* pvm_halt() sends SIGTERM to all tasks */
}

/* Become the first task of a new machine. */
static inline void machine_begin(void)
{
	machine_prepare();
	CHECK(pvm_mytid() > 0);
	pvm_setopt(PvmAutoErr, 0);
}

/* The same, and virtual nodes can become hosts. */
static inline void machine_begin_hosts(void)
{
	test_needs_shm();
	machine_begin();
}

/* Connect to the daemon as a task does. Return: the socket, or -1 if there is no daemon. */
static inline int machine_connect(void)
{
	struct sockaddr_un un;
	socklen_t len = pvm_sock_addr(&un);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (!connect(fd, (struct sockaddr *)&un, len))
		return fd;
	close(fd);
	return -1;
}

static inline bool machine_there(void)
{
	int fd = machine_connect();

	return fd >= 0 && !close(fd);
}

static inline void machine_end(void)
{
	CHECK_EQ(pvm_halt(), 0);
	WAIT_UNTIL(!machine_there(), TEST_WAIT_MS);
}

static inline double machine_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Return the parent process of task @tid, which is the daemon of its host. */
static inline pid_t machine_daemon(int tid)
{
	struct pvmtaskinfo *info;
	int n;

	CHECK_EQ(pvm_tasks(tid, &n, &info), 0);
	CHECK_EQ(n, 1);
	return test_process(info->ti_pid).parent;
}

/* Return the address of the master's endpoint, the last argument of another host's daemon. */
static inline struct sci_addr master_address(int host_task)
{
	char path[64], line[4096];
	struct sci_addr addr;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", machine_daemon(host_task));
	fd = open(path, O_RDONLY);
	n = read(fd, line, sizeof(line) - 1);
	CHECK(n > 0);
	close(fd);
	line[n] = 0;
	CHECK_EQ(sscanf((char *)memrchr(line, 0, (size_t)n - 1) + 1, "%u:%u", &addr.node,
			&addr.id), 2);
	return addr;
}

/* Spawn @n tasks of this program with one argument. */
static inline void machine_spawn(const char *what, int n, int *tids)
{
	char *argv[] = { (char *)what, NULL };

	CHECK_EQ(pvm_spawn(machine_self, argv, 0, NULL, n, tids), n);
}

static inline void message_empty(int tid, int tag)
{
	CHECK(pvm_initsend(PvmDataDefault) > 0);
	CHECK_EQ(pvm_send(tid, tag), 0);
}

/* Send a message of one number. */
static inline void message_int(int tid, int tag, int v)
{
	CHECK(pvm_initsend(PvmDataDefault) > 0);
	CHECK_EQ(pvm_pkint(&v, 1, 1), 0);
	CHECK_EQ(pvm_send(tid, tag), 0);
}

/* Receive a message that begins with a number. */
static inline int reply_int(int tid, int tag)
{
	int v = -1;

	CHECK(pvm_recv(tid, tag) > 0);
	CHECK_EQ(pvm_upkint(&v, 1, 1), 0);
	return v;
}

#endif
