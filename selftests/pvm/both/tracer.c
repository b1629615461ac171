// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Prints what a tracer gets of a task that a shell starts and of one that is spawned.
 * scripts/check-pvm runs it under Debian's PVM and under this one.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pvm3.h>

#define TRACE_TAG	666
#define OUTPUT_TAG	667
#define SEND		47
#define MASK_SIZE	36

static char self[4096];

static void child(void)
{
	printf("a line\n");
	fflush(stdout);
	pvm_initsend(PvmDataDefault);
	pvm_send(pvm_mytid(), 5);
	pvm_exit();
}

static int upk(void)
{
	int v = 0;

	pvm_upkint(&v, 1, 1);
	return v;
}

/* Print the mark, the event and the name. Return: whether it is the end of a task. */
static int trace_print(void)
{
	char name[64] = "";
	int mark = upk(), event = mark == -3 ? 0 : upk();

	if (mark == -5)
		pvm_upkstr(name);
	printf("trace: mark %d event %d %s", mark, event, name);
	/* of a task that a shell has started: the parent and the flags */
	if (mark == -5 && event == 75) {
		for (int i = 0; i < 3 * 3 + 2; i++)
			upk();
		printf(" parent %s", upk() > 0 ? "there" : "none");
		upk();
		upk();
		printf(" flags %d", upk());
	}
	printf("\n");
	return event == 76;
}

static int output_print(void)
{
	char bytes[256] = "";
	int tid = upk(), len = upk();

	(void)tid;
	if (len > 0 && len < 256)
		pvm_upkbyte(bytes, len, 1);
	else if (len < 0)
		len = len * 10 + (upk() > 0);
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
	printf("own tid %d,", upk() == pvm_mytid());
	for (int i = 0; i < 4; i++)
		printf(" %d", upk());
	pvm_upkstr(mask);
	printf(" %s", mask);
	printf(" %d", upk());
	printf(" %d\n", upk());
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
	memset(mask, '@', sizeof(mask));
	mask[MASK_SIZE - 1] = 0;
	mask[SEND / 4] |= 1 << SEND % 4;
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
