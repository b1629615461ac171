// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Prints the messages that a tracer gets from a task of a shell and from a spawned task.
 * scripts/check-pvm runs the program under Debian's PVM and under ours, and compares.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "selftests/pvm/events.h"

#define TRACE_TAG	666
#define OUTPUT_TAG	667

static char self[4096];

static void child(void)
{
	printf("a line\n");
	fflush(stdout);
	pvm_initsend(PvmDataDefault);
	pvm_send(pvm_mytid(), 5);
	pvm_exit();
}

/* Print the mark, the event and the name. Return: whether the event is the end of a task. */
static int trace_print(void)
{
	char name[64] = "";
	int mark = unpack_int(), event = mark == IDS ? 0 : unpack_int();

	if (mark == DESC)
		pvm_upkstr(name);
	printf("trace: mark %d event %d %s", mark, event, name);
	/* the parent and the flags show whether a shell has started the task */
	if (mark == DESC && event == NEWTASK) {
		unpack_origin(mark);
		unpack_int();
		unpack_int();
		printf(" parent %s", unpack_int() > 0 ? "there" : "none");
		unpack_int();
		unpack_int();
		printf(" flags %d", unpack_int());
	}
	printf("\n");
	return event == ENDTASK;
}

static int output_print(void)
{
	char bytes[256] = "";
	int tid = unpack_int(), len = unpack_int();

	(void)tid;
	if (len > 0 && len < 256)
		pvm_upkbyte(bytes, len, 1);
	else if (len < 0)
		len = len * 10 + (unpack_int() > 0);
	printf("output: %d %s\n", len, bytes);
	return !len;
}

/* Print until @ends messages say that the trace or the output of a task has ended. */
static void messages_print(int ends)
{
	struct timeval wait = { 5, 0 };
	int tag;

	while (ends && pvm_trecv(-1, -1, &wait) > 0) {
		pvm_bufinfo(pvm_getrbuf(), NULL, &tag, NULL);
		if (tag == TRACE_TAG)
			ends -= trace_print();
		else if (tag == OUTPUT_TAG)
			ends -= output_print();
		else
			printf("tag %d?\n", tag);
	}
	if (pvm_nrecv(-1, -1) > 0)
		printf("one more message\n");
}

static void shell_child(int ends)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (!freopen("/dev/null", "w", stdout))
			_exit(126);
		execl(self, self, "child", (char *)NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	messages_print(ends);
}

static void spawned_child(int ends)
{
	char *args[] = { (char *)"child", NULL };
	int tid;

	printf("spawned %d\n", pvm_spawn(self, args, PvmTaskDefault, NULL, 1, &tid));
	messages_print(ends);
}

static void entry_print(void)
{
	char mask[64] = "";
	int mid = pvm_recvinfo((char *)PVMTRACERCLASS, 0, PvmMboxDefault), old;

	printf("entry %s\n", mid > 0 ? "there" : "none");
	if (mid <= 0)
		return;
	old = pvm_setrbuf(mid);
	printf("own tid %d,", unpack_int() == pvm_mytid());
	for (int i = 0; i < 4; i++)
		printf(" %d", unpack_int());
	pvm_upkstr(mask);
	printf(" %s", mask);
	printf(" %d", unpack_int());
	printf(" %d\n", unpack_int());
	pvm_freebuf(pvm_setrbuf(old));
}

int main(int argc, char **argv)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char mask[MASK_SIZE];

	self[n > 0 ? n : 0] = 0;
	if (argc > 1) {
		child();
		return 0;
	}
	(void)argv;
	pvm_mytid();
	pvm_setopt(PvmAutoErr, 0);
	mask_make(mask, (const int[]){ SEND, -1 });
	printf("register %d\n", pvm_reg_tracer(0, TRACE_TAG, 0, OUTPUT_TAG, mask, 0, PvmTraceFull));
	entry_print();
	shell_child(2);
	spawned_child(2);
	printf("unregister %d\n", pvm_reg_tracer(0, 0, 0, 0, mask, 0, 0));
	entry_print();
	shell_child(0);
	spawned_child(0);
	printf("register %d\n", pvm_reg_tracer(0, TRACE_TAG, 0, 0, mask, 1000, PvmTraceFull));
	entry_print();
	shell_child(1);
	pvm_exit();
	return 0;
}
