// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests signals and small messages. */

#include <string.h>
#include <sys/wait.h>

#include "selftests/smi/start.h"

#define ROUNDS	20

static void ring(void)
{
	unsigned char out[120], in[120];
	int next, last, n;

	smi_start();
	next = (rank + 1) % size;
	last = (rank + size - 1) % size;
	CHECK_EQ(SMI_Send(out, 1, rank), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Send(out, 1, size), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Recv(in, 1, rank), SMI_ERR_PARAM);
	for (int i = 0; size > 1 && i < ROUNDS; i++) {
		n = i * 6;
		test_fill(out, sizeof(out), (unsigned int)(rank * 100 + i));
		CHECK_EQ(SMI_Send_wait(next), SMI_ERR_NOTPOSTED);
		CHECK_EQ(SMI_Isend(out, 121, next), SMI_ERR_PARAM);
		CHECK_EQ(SMI_Isend(out, -1, next), SMI_ERR_PARAM);
		CHECK_SMI(SMI_Isend(out, n, next));
		CHECK_EQ(SMI_Isend(out, n, next), SMI_ERR_PENDING);
		memset(out, 0, sizeof(out));
		/* a receive of another length is refused, and the message stays */
		CHECK_EQ(SMI_Recv(in, n + 1, last), SMI_ERR_PARAM);
		CHECK_SMI(SMI_Recv(in, n, last));
		CHECK(test_filled(in, (size_t)n, (unsigned int)(last * 100 + i)));
		CHECK_SMI(SMI_Send_wait(next));
	}
	if (size == 2) {
		CHECK_SMI(SMI_Sendrecv(&rank, &n, sizeof(n), next));
		CHECK_EQ(n, next);
	}
	smi_stop();
}

TEST_SIZES(ring, ring)

static void signals(void)
{
	int next, last;

	smi_start();
	next = (rank + 1) % size;
	last = (rank + size - 1) % size;
	/* a signal is kept until a wait; a process may send one to itself */
	for (int i = 0; i < ROUNDS; i++)
		CHECK_SMI(SMI_Signal_send(next | SMI_SIGNAL_ANY));
	for (int i = 0; i < ROUNDS; i++)
		CHECK_SMI(SMI_Signal_wait(SMI_SIGNAL_ANY));
	CHECK_SMI(SMI_Signal_send(next));
	CHECK_SMI(SMI_Signal_wait(last));
	CHECK_SMI(SMI_Barrier());
	if (rank == size - 1)
		CHECK_SMI(SMI_Signal_send(SMI_SIGNAL_BCAST | SMI_SIGNAL_ANY));
	else
		CHECK_SMI(SMI_Signal_wait(SMI_SIGNAL_ANY));
	CHECK_EQ(SMI_Signal_send(size), SMI_ERR_PARAM);
	CHECK_EQ(SMI_Signal_wait(-1), SMI_ERR_PARAM);
	smi_stop();
}

TEST_SIZES(signals, signals)

static void note(void *arg)
{
	__atomic_add_fetch((int *)arg, 1, __ATOMIC_SEQ_CST);
}

static void callbacks(void)
{
	smi_signal_handle h = NULL, second = NULL;
	int calls = 0, next, last;

	smi_start();
	next = (rank + 1) % size;
	last = (rank + size - 1) % size;
	CHECK_EQ(SMI_Signal_joinCallBack(NULL), SMI_ERR_PARAM);
	for (int i = 0; i < 3; i++) {
		int from = i == 1 ? last : SMI_SIGNAL_ANY;

		CHECK_SMI(SMI_Signal_setCallBack(from, note, &calls, &h));
		CHECK(h && h->callback_fcn == note && h->callback_arg == &calls);
		CHECK_EQ(SMI_Signal_setCallBack(from, note, &calls, &second),
			 SMI_ERR_PENDING);
		CHECK_EQ(SMI_Signal_wait(from), SMI_ERR_PENDING);
		CHECK_SMI(SMI_Barrier());
		CHECK_SMI(SMI_Signal_send(i == 1 ? next : next | SMI_SIGNAL_ANY));
		CHECK_SMI(SMI_Signal_joinCallBack(&h));
		CHECK(!h);
		CHECK_EQ(calls, i + 1);
	}
	smi_stop();
}

TEST_SIZES(callbacks, callbacks)

/* The callback's thread may start when SMI_Finalize() has already begun. */
TEST(a_program_ends_right_after_it_has_set_a_callback)
{
	int status, calls = 0;

	for (int i = 0; i < 20; i++) {
		smi_signal_handle h;
		pid_t pid = test_fork();

		if (!pid) {
			smi_start();
			CHECK_SMI(SMI_Signal_setCallBack(SMI_SIGNAL_ANY, note, &calls, &h));
			smi_stop();
			CHECK_SMI(SMI_Signal_joinCallBack(&h));
			CHECK_EQ(calls, 0);
			exit(0);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	}
}
