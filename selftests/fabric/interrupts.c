// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Interrupts with and without data. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <sisci_api.h>

#include "selftests/harness.h"

#define MESSAGE_MAX	65536

static sci_local_interrupt_t interrupt(sci_desc_t sd, unsigned int number,
				       unsigned int flags)
{
	sci_local_interrupt_t i;

	CHECK_OK(SCICreateInterrupt(sd, &i, 0, &number, NULL, NULL,
				    SCI_FLAG_FIXED_INTNO | flags, &err));
	return i;
}

static sci_local_interrupt_t interrupt_cb(sci_desc_t sd, unsigned int number,
					  unsigned int flags,
					  struct recorder *r)
{
	sci_local_interrupt_t i;

	recorder_init(r);
	CHECK_OK(SCICreateInterrupt(sd, &i, 0, &number, record_interrupt, r,
				    SCI_FLAG_FIXED_INTNO |
				    SCI_FLAG_USE_CALLBACK | flags, &err));
	return i;
}

static sci_local_data_interrupt_t
data_interrupt_cb(sci_desc_t sd, unsigned int number, struct recorder *r)
{
	sci_local_data_interrupt_t d;

	recorder_init(r);
	CHECK_OK(SCICreateDataInterrupt(sd, &d, 0, &number,
					record_data_interrupt, r,
					SCI_FLAG_FIXED_INTNO |
					SCI_FLAG_USE_CALLBACK, &err));
	return d;
}

static void send_data(sci_remote_data_interrupt_t d, const void *data,
		      unsigned int len)
{
	CHECK_OK(SCITriggerDataInterrupt(d, (void *)(uintptr_t)data, len, 0,
					 &err));
}

/* ---- numbers ---- */

TEST(numbers_that_the_library_chooses)
{
	sci_desc_t sd = test_open();
	sci_local_interrupt_t i[20];
	unsigned int numbers[20];

	for (int k = 0; k < 20; k++) {
		numbers[k] = 0xdeadbeef;	/* the value is ignored */
		CHECK_OK(SCICreateInterrupt(sd, &i[k], 0, &numbers[k], NULL,
					    NULL, 0, &err));
		for (int m = 0; m < k; m++)
			CHECK(numbers[m] != numbers[k]);
	}
	for (int k = 0; k < 20; k++) {
		CHECK_OK(SCITriggerInterrupt(
			test_connect_interrupt(sd, 4, numbers[k]), 0, &err));
		CHECK_OK(SCIWaitForInterrupt(i[k], 5000, 0, &err));
	}
}

TEST(data_interrupt_numbers_that_the_library_chooses)
{
	sci_local_data_interrupt_t d[20];
	sci_desc_t sd = test_open();
	unsigned int numbers[20];

	for (int k = 0; k < 20; k++) {
		numbers[k] = 0xdeadbeef;
		CHECK_OK(SCICreateDataInterrupt(sd, &d[k], 0, &numbers[k],
						NULL, NULL, 0, &err));
		for (int m = 0; m < k; m++)
			CHECK(numbers[m] != numbers[k]);
		test_connect_data_interrupt(sd, 4, numbers[k]);
	}
}

static void same_node(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	sci_local_data_interrupt_t d = NULL;
	sci_local_interrupt_t i = NULL;
	unsigned int number = 7;

	(void)arg;
	peer_expect(self, "try");
	CHECK_ERR(SCICreateInterrupt(sd, &i, 0, &number, NULL, NULL,
				     SCI_FLAG_FIXED_INTNO, &err),
		  SCI_ERR_INTNO_USED);
	CHECK_ERR(SCICreateDataInterrupt(sd, &d, 0, &number, NULL, NULL,
					 SCI_FLAG_FIXED_INTNO, &err),
		  SCI_ERR_INTNO_USED);
	CHECK(i == NULL && d == NULL && number == 7);
	peer_send(self, "used");
	peer_expect(self, "removed");
	test_interrupt(sd, 7);
	test_data_interrupt(sd, 7);
}

TEST(numbers_are_used_once_per_node)
{
	struct peer *p = peer_spawn(4, same_node, NULL);
	sci_desc_t sd = test_open();
	sci_local_interrupt_t i = test_interrupt(sd, 7), again;
	sci_local_data_interrupt_t d = test_data_interrupt(sd, 7);
	unsigned int number = 7;

	CHECK_ERR(SCICreateInterrupt(sd, &again, 0, &number, NULL, NULL,
				     SCI_FLAG_FIXED_INTNO, &err),
		  SCI_ERR_INTNO_USED);
	peer_send(p, "try");
	peer_expect(p, "used");
	CHECK_OK(SCIRemoveInterrupt(i, 0, &err));
	CHECK_OK(SCIRemoveDataInterrupt(d, 0, &err));
	peer_send(p, "removed");
	peer_join(p);
}

TEST(arguments_that_are_illegal)
{
	sci_desc_t sd = test_open();
	sci_local_data_interrupt_t d;
	sci_local_interrupt_t i;
	unsigned int number = 7;

	CHECK_ERR(SCICreateInterrupt(sd, NULL, 0, &number, NULL, NULL, 0,
				     &err), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCICreateInterrupt(sd, &i, 0, NULL, NULL, NULL, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCICreateInterrupt(sd, &i, 0, &number, NULL, NULL,
				     0x80000000, &err), SCI_ERR_ILLEGAL_FLAG);
	CHECK_ERR(SCICreateDataInterrupt(sd, &d, 0, &number, NULL, NULL,
					 SCI_FLAG_SHARED_INT, &err),
		  SCI_ERR_ILLEGAL_FLAG);
	CHECK_ERR(SCIWaitForInterrupt(NULL, 0, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCITriggerInterrupt(NULL, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	i = test_interrupt(sd, 7);
	CHECK_OK(SCIRemoveInterrupt(i, 0, &err));
	CHECK_ERR(SCIRemoveInterrupt(i, 0, &err), SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_ERR(SCIWaitForInterrupt(i, 0, 0, &err),
		  SCI_ERR_ILLEGAL_PARAMETER);
	CHECK_OK(SCIClose(sd, 0, &err));
}

/* ---- plain, counting and shared interrupts ---- */

TEST(triggers_of_a_plain_interrupt_merge)
{
	sci_desc_t sd = test_open();
	sci_local_interrupt_t i = interrupt(sd, 1, 0);
	sci_remote_interrupt_t r = test_connect_interrupt(sd, 4, 1);

	for (int round = 0; round < 3; round++) {
		for (int k = 0; k < 10; k++)
			CHECK_OK(SCITriggerInterrupt(r, 0, &err));
		CHECK_OK(SCIWaitForInterrupt(i, 5000, 0, &err));
		CHECK_ERR(SCIWaitForInterrupt(i, 0, 0, &err),
			  SCI_ERR_TIMEOUT);
	}
}

TEST(triggers_of_many_importers_merge)
{
	sci_desc_t sd = test_open();
	sci_local_interrupt_t i = interrupt(sd, 1, 0);
	sci_remote_interrupt_t r[100];

	for (size_t k = 0; k < ARRAY_LEN(r); k++)
		r[k] = test_connect_interrupt(sd, 4, 1);
	for (int round = 0; round < 3; round++) {
		for (size_t k = 0; k < ARRAY_LEN(r); k++)
			CHECK_OK(SCITriggerInterrupt(r[k], 0, &err));
		CHECK_OK(SCIWaitForInterrupt(i, 5000, 0, &err));
		CHECK_ERR(SCIWaitForInterrupt(i, 0, 0, &err),
			  SCI_ERR_TIMEOUT);
	}
}

static void last_trigger(struct peer *self, void *arg)
{
	sci_remote_interrupt_t r;

	(void)arg;
	peer_expect(self, "go");
	r = test_connect_interrupt(test_open(), 4, 1);
	CHECK_OK(SCITriggerInterrupt(r, 0, &err));
	peer_send(self, "triggered");
	peer_expect(self, "leave");
}

TEST(a_trigger_outlives_who_sent_it)
{
	struct peer *p[2] = { peer_spawn(8, last_trigger, NULL),
			      peer_spawn(12, last_trigger, NULL) };
	sci_desc_t sd = test_open();
	sci_local_interrupt_t i = interrupt(sd, 1, 0);

	for (int k = 0; k < 2; k++) {
		peer_send(p[k], "go");
		peer_expect(p[k], "triggered");
	}
	peer_kill(p[0], SIGKILL);
	peer_send(p[1], "leave");
	peer_join(p[1]);
	CHECK_OK(SCIWaitForInterrupt(i, 5000, 0, &err));
	CHECK_OK(SCIRemoveInterrupt(i, 0, &err));
	CHECK_OK(SCIClose(sd, 0, &err));
}

/* The library's thread and a waiter both take the trigger of an importer that has left. */
TEST(a_wait_of_no_time_sees_triggers_of_those_who_left)
{
	sci_desc_t sd = test_open();
	sci_local_interrupt_t i = interrupt(sd, 1, 0);

	for (int k = 0; k < 20000; k++) {
		sci_remote_interrupt_t r = test_connect_interrupt(sd, 4, 1);

		CHECK_OK(SCITriggerInterrupt(r, 0, &err));
		CHECK_OK(SCIDisconnectInterrupt(r, 0, &err));
		CHECK_OK(SCIWaitForInterrupt(i, 0, 0, &err));
		CHECK_ERR(SCIWaitForInterrupt(i, 0, 0, &err), SCI_ERR_TIMEOUT);
	}
	CHECK_OK(SCIRemoveInterrupt(i, 0, &err));
	CHECK_OK(SCIClose(sd, 0, &err));
}

TEST(triggers_of_a_counting_interrupt_count)
{
	sci_desc_t sd = test_open();
	sci_local_interrupt_t i = interrupt(sd, 1, SCI_FLAG_COUNTING_INT);
	sci_remote_interrupt_t r;

	CHECK_OK(SCIConnectInterrupt(sd, &r, 4, 0, 1, SCI_INFINITE_TIMEOUT,
				     SCI_FLAG_COUNTING_INT, &err));
	for (int k = 0; k < 10; k++)
		CHECK_OK(SCITriggerInterrupt(r, 0, &err));
	for (int k = 0; k < 10; k++)
		CHECK_OK(SCIWaitForInterrupt(i, 5000, 0, &err));
	CHECK_ERR(SCIWaitForInterrupt(i, 0, 0, &err), SCI_ERR_TIMEOUT);
}

TEST(each_trigger_of_a_counting_interrupt_is_called_back)
{
	static struct recorder rec;
	sci_desc_t sd = test_open();
	sci_local_interrupt_t i = interrupt_cb(sd, 1, SCI_FLAG_COUNTING_INT,
					       &rec);
	sci_remote_interrupt_t r = test_connect_interrupt(sd, 4, 1);

	for (int k = 0; k < 1000; k++)
		CHECK_OK(SCITriggerInterrupt(r, 0, &err));
	CHECK(recorder_wait(&rec, 1000, TEST_WAIT_MS));
	CHECK(recorder_get(&rec, 999).handle == i);
	CHECK_EQ(rec.overlaps, 0);
	CHECK_OK(SCIRemoveInterrupt(i, 0, &err));
	for (unsigned int k = 0; k < recorder_count(&rec); k++)
		CHECK_EQ(recorder_get(&rec, k).status, SCI_ERR_OK);
	CHECK_EQ(recorder_count(&rec), 1000);
}

static void counting_sender(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	sci_remote_interrupt_t r;

	(void)arg;
	peer_expect(self, "go");
	r = test_connect_interrupt(sd, 4, 1);
	for (int k = 0; k < 1000; k++)
		CHECK_OK(SCITriggerInterrupt(r, 0, &err));
}

TEST(counts_of_several_senders_add_up)
{
	sci_local_interrupt_t i;
	struct peer *p[3];

	for (unsigned int k = 0; k < 3; k++)
		p[k] = peer_spawn(8 + 4 * k, counting_sender, NULL);
	i = interrupt(test_open(), 1, SCI_FLAG_COUNTING_INT);
	for (int k = 0; k < 3; k++)
		peer_send(p[k], "go");
	for (int k = 0; k < 3000; k++)
		CHECK_OK(SCIWaitForInterrupt(i, TEST_WAIT_MS, 0, &err));
	for (int k = 0; k < 3; k++)
		peer_join(p[k]);
	CHECK_ERR(SCIWaitForInterrupt(i, 0, 0, &err), SCI_ERR_TIMEOUT);
}

/* Share an interrupt and wait for a trigger; with @arg, for two triggers. */
static void sharer(struct peer *self, void *arg)
{
	sci_local_interrupt_t i;

	i = interrupt(test_open(), 1, SCI_FLAG_SHARED_INT);
	peer_send(self, "ready");
	CHECK_OK(SCIWaitForInterrupt(i, TEST_WAIT_MS, 0, &err));
	peer_send(self, "triggered");
	if (arg) {
		CHECK_OK(SCIWaitForInterrupt(i, TEST_WAIT_MS, 0, &err));
		peer_send(self, "triggered again");
	}
	peer_expect(self, "end");
	CHECK_OK(SCIRemoveInterrupt(i, 0, &err));
	peer_send(self, "removed");
	peer_expect(self, "leave");
}

TEST(a_trigger_reaches_all_who_share_the_number)
{
	sci_remote_interrupt_t r;
	sci_local_interrupt_t i;
	struct peer *p[2];
	sci_desc_t sd;

	for (int k = 0; k < 2; k++)
		p[k] = peer_spawn(8, sharer, (void *)(intptr_t)k);
	sd = test_open();
	for (int k = 0; k < 2; k++)
		peer_expect(p[k], "ready");
	r = test_connect_interrupt(sd, 8, 1);
	CHECK_OK(SCITriggerInterrupt(r, 0, &err));
	for (int k = 0; k < 2; k++)
		peer_expect(p[k], "triggered");

	/* on this node the number is free, and not shared */
	i = interrupt(sd, 1, 0);
	CHECK_OK(SCIRemoveInterrupt(i, 0, &err));

	/* the remaining owner still gets triggers */
	peer_send(p[0], "end");
	peer_expect(p[0], "removed");
	CHECK_OK(SCITriggerInterrupt(r, 0, &err));
	peer_expect(p[1], "triggered again");
	peer_send(p[1], "end");
	peer_expect(p[1], "removed");
	WAIT_UNTIL(ERR_OF(SCITriggerInterrupt(r, 0, &err)) ==
		   SCI_ERR_NOT_CONNECTED, TEST_WAIT_MS);
}

TEST(sharers_of_one_process)
{
	sci_desc_t sd = test_open();
	sci_local_interrupt_t i[3];
	unsigned int number = 1;

	for (int k = 0; k < 3; k++)
		i[k] = interrupt(sd, 1, SCI_FLAG_SHARED_INT);
	CHECK_ERR(SCICreateInterrupt(sd, &i[0], 0, &number, NULL, NULL,
				     SCI_FLAG_FIXED_INTNO, &err),
		  SCI_ERR_INTNO_USED);
	CHECK_OK(SCITriggerInterrupt(test_connect_interrupt(sd, 4, 1), 0,
				     &err));
	for (int k = 0; k < 3; k++)
		CHECK_OK(SCIWaitForInterrupt(i[k], 5000, 0, &err));
}

TEST(a_flood_of_plain_triggers_is_always_taken)
{
	sci_desc_t sd = test_open();
	sci_local_interrupt_t plain = interrupt(sd, 1, 0);
	sci_local_interrupt_t counting = interrupt(sd, 2,
						   SCI_FLAG_COUNTING_INT);
	sci_remote_interrupt_t r[2];

	r[0] = test_connect_interrupt(sd, 4, 1);
	r[1] = test_connect_interrupt(sd, 4, 2);
	for (int k = 0; k < 200000; k++)
		CHECK_OK(SCITriggerInterrupt(r[k % 2], 0, &err));
	CHECK_OK(SCIWaitForInterrupt(plain, 5000, 0, &err));
	CHECK_OK(SCIWaitForInterrupt(counting, 5000, 0, &err));
	CHECK_OK(SCIRemoveInterrupt(plain, 0, &err));
	CHECK_OK(SCIRemoveInterrupt(counting, 0, &err));
	CHECK_OK(SCIDisconnectInterrupt(r[0], 0, &err));
	CHECK_OK(SCIDisconnectInterrupt(r[1], 0, &err));
}

/* ---- waits and callbacks ---- */

TEST(waits_time_out)
{
	static const unsigned int timeouts[] = { 0, 1, 20 };
	sci_desc_t sd = test_open();
	sci_local_interrupt_t i = interrupt(sd, 1, 0);
	sci_local_data_interrupt_t d = test_data_interrupt(sd, 1);
	unsigned int len = 4;
	char data[4];

	for (size_t k = 0; k < ARRAY_LEN(timeouts); k++) {
		uint64_t begin = test_now_ms();

		CHECK_ERR(SCIWaitForInterrupt(i, timeouts[k], 0, &err),
			  SCI_ERR_TIMEOUT);
		CHECK_ERR(SCIWaitForDataInterrupt(d, data, &len, timeouts[k],
						  0, &err), SCI_ERR_TIMEOUT);
		/* the wait lasts at least for its timeout */
		CHECK(test_now_ms() - begin + 1 >= timeouts[k]);
	}
}

TEST(an_interrupt_with_a_callback_cannot_be_waited_for)
{
	static struct recorder rec[2];
	sci_desc_t sd = test_open();
	unsigned int len = 4;
	char data[4];

	CHECK_ERR(SCIWaitForInterrupt(interrupt_cb(sd, 1, 0, &rec[0]), 0, 0,
				      &err), SCI_ERR_ILLEGAL_OPERATION);
	CHECK_ERR(SCIWaitForDataInterrupt(data_interrupt_cb(sd, 1, &rec[1]),
					  data, &len, 0, 0, &err),
		  SCI_ERR_ILLEGAL_OPERATION);
}

static void sender(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	sci_remote_interrupt_t r;

	(void)arg;
	peer_expect(self, "go");
	r = test_connect_interrupt(sd, 4, 1);
	for (int k = 0; k < 10; k++) {
		CHECK_OK(SCITriggerInterrupt(r, 0, &err));
		peer_expect(self, "next");
	}
}

TEST(callbacks_of_a_plain_interrupt)
{
	static struct recorder rec;
	struct peer *p = peer_spawn(8, sender, NULL);
	sci_local_interrupt_t i = interrupt_cb(test_open(), 1, 0, &rec);

	peer_send(p, "go");
	for (unsigned int k = 0; k < 10; k++) {
		struct record r = recorder_get(&rec, k);

		CHECK(r.handle == i);
		CHECK_EQ(r.status, SCI_ERR_OK);
		CHECK(!pthread_equal(r.thread, pthread_self()));
		peer_send(p, "next");
	}
	peer_join(p);
	CHECK_EQ(recorder_count(&rec), 10);
}

TEST(callbacks_end_when_one_answers_cancel)
{
	static struct recorder rec;
	sci_desc_t sd = test_open();
	sci_remote_interrupt_t r;
	sci_local_interrupt_t i;

	i = interrupt_cb(sd, 1, SCI_FLAG_COUNTING_INT, &rec);
	rec.action = SCI_CALLBACK_CANCEL;
	r = test_connect_interrupt(sd, 4, 1);
	CHECK_OK(SCITriggerInterrupt(r, 0, &err));
	recorder_get(&rec, 0);
	for (int k = 0; k < 10; k++)
		CHECK_OK(SCITriggerInterrupt(r, 0, &err));
	CHECK_OK(SCIRemoveInterrupt(i, 0, &err));
	CHECK_EQ(recorder_count(&rec), 1);
}

static sci_callback_action_t remove_me(void *arg, sci_local_interrupt_t i,
				       sci_error_t status)
{
	CHECK_EQ(status, SCI_ERR_OK);
	CHECK_OK(SCIRemoveInterrupt(i, 0, &err));
	return record_interrupt(arg, i, status);
}

TEST(a_callback_may_remove_its_own_interrupt)
{
	static struct recorder rec;
	sci_desc_t sd = test_open();
	sci_remote_interrupt_t r;
	sci_local_interrupt_t i;
	unsigned int number = 1;

	recorder_init(&rec);
	CHECK_OK(SCICreateInterrupt(sd, &i, 0, &number, remove_me, &rec,
				    SCI_FLAG_FIXED_INTNO |
				    SCI_FLAG_USE_CALLBACK, &err));
	r = test_connect_interrupt(sd, 4, 1);
	CHECK_OK(SCITriggerInterrupt(r, 0, &err));
	recorder_get(&rec, 0);
	CHECK_ERR(SCIRemoveInterrupt(i, 0, &err), SCI_ERR_ILLEGAL_PARAMETER);
	test_interrupt(sd, 1);
	CHECK_EQ(recorder_count(&rec), 1);
}

static void *wait_plain(void *arg)
{
	return (void *)(uintptr_t)
		ERR_OF(SCIWaitForInterrupt(arg, SCI_INFINITE_TIMEOUT, 0, &err));
}

static void *wait_data(void *arg)
{
	unsigned int len = 4;
	char data[4];

	return (void *)(uintptr_t)
		ERR_OF(SCIWaitForDataInterrupt(arg, data, &len,
					       SCI_INFINITE_TIMEOUT, 0, &err));
}

static void check_cancelled(pthread_t *t, int n)
{
	for (int k = 0; k < n; k++) {
		void *code;

		CHECK_EQ(pthread_join(t[k], &code), 0);
		CHECK_EQ((uintptr_t)code, SCI_ERR_CANCELLED);
	}
}

TEST(removing_an_interrupt_ends_waits_for_it)
{
	sci_desc_t sd = test_open();
	sci_local_interrupt_t i = interrupt(sd, 1, 0);
	sci_local_data_interrupt_t d = test_data_interrupt(sd, 1);
	pthread_t t[6];

	for (int k = 0; k < 3; k++) {
		CHECK_EQ(pthread_create(&t[k], NULL, wait_plain, i), 0);
		CHECK_EQ(pthread_create(&t[3 + k], NULL, wait_data, d), 0);
	}
	WAIT_UNTIL(others_asleep(), TEST_WAIT_MS);
	CHECK_OK(SCIRemoveInterrupt(i, 0, &err));
	CHECK_OK(SCIRemoveDataInterrupt(d, 0, &err));
	check_cancelled(t, 6);
	CHECK_OK(SCIClose(sd, 0, &err));
}

static volatile sig_atomic_t alarms;

static void on_alarm(int sig)
{
	(void)sig;
	alarms = alarms + 1;
}

static void slow_sender(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	char c = 1;

	(void)arg;
	peer_expect(self, "go");
	/* until many alarms have interrupted the wait */
	WAIT_UNTIL(*(volatile int *)arg > 20, TEST_WAIT_MS);
	CHECK_OK(SCITriggerInterrupt(test_connect_interrupt(sd, 4, 1), 0,
				     &err));
	WAIT_UNTIL(*(volatile int *)arg > 40, TEST_WAIT_MS);
	send_data(test_connect_data_interrupt(sd, 4, 1), &c, 1);
}

static volatile int *shared_alarms;

static void on_shared_alarm(int sig)
{
	on_alarm(sig);
	*shared_alarms = alarms;
}

TEST(signals_do_not_end_waits)
{
	struct sigaction sa = { .sa_handler = on_shared_alarm };
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } };
	sci_local_data_interrupt_t d;
	sci_local_interrupt_t i;
	unsigned int len = 1;
	struct peer *p;
	sci_desc_t sd;
	char c;

	shared_alarms = test_shared(sizeof(int));
	p = peer_spawn(8, slow_sender, (void *)shared_alarms);
	sd = test_open();
	i = interrupt(sd, 1, 0);
	d = test_data_interrupt(sd, 1);
	sigaction(SIGALRM, &sa, NULL);
	peer_send(p, "go");
	CHECK_EQ(setitimer(ITIMER_REAL, &often, NULL), 0);
	CHECK_OK(SCIWaitForInterrupt(i, SCI_INFINITE_TIMEOUT, 0, &err));
	CHECK(alarms > 20);
	CHECK_OK(SCIWaitForDataInterrupt(d, &c, &len, TEST_WAIT_MS, 0, &err));
	CHECK(alarms > 40);
	often = (struct itimerval){ { 0, 0 }, { 0, 0 } };
	setitimer(ITIMER_REAL, &often, NULL);
}

/* ---- data interrupts ---- */

static const unsigned int lengths[] = {
	0, 1, 2, 3, 4, 7, 8, 24, 50, 60, 63, 64, 65, 1000, 4095, 4096, 4097,
	16384, 65535, 65536
};

static void data_sender(struct peer *self, void *arg)
{
	static unsigned char data[MESSAGE_MAX];
	sci_desc_t sd = test_open();
	sci_remote_data_interrupt_t d;

	(void)arg;
	peer_expect(self, "go");
	d = test_connect_data_interrupt(sd, 4, 1);
	for (unsigned int k = 0; k < ARRAY_LEN(lengths); k++) {
		test_fill(data, lengths[k], k);
		send_data(d, data, lengths[k]);
	}
	peer_send(self, "sent");
}

TEST(messages_of_0_to_65536_bytes)
{
	static unsigned char data[MESSAGE_MAX + 1];
	struct peer *p = peer_spawn(8, data_sender, NULL);
	sci_local_data_interrupt_t d = test_data_interrupt(test_open(), 1);

	peer_send(p, "go");
	for (unsigned int k = 0; k < ARRAY_LEN(lengths); k++) {
		unsigned int len = MESSAGE_MAX;

		memset(data, 0xee, sizeof(data));
		CHECK_OK(SCIWaitForDataInterrupt(d, data, &len, TEST_WAIT_MS,
						 0, &err));
		CHECK_EQ(len, lengths[k]);
		CHECK(test_filled(data, len, k));
		CHECK_EQ(data[len], 0xee);
	}
	peer_join(p);
}

TEST(messages_by_callback)
{
	static struct recorder rec;
	struct peer *p = peer_spawn(8, data_sender, NULL);
	sci_local_data_interrupt_t d = data_interrupt_cb(test_open(), 1, &rec);

	peer_send(p, "go");
	for (unsigned int k = 0; k < ARRAY_LEN(lengths); k++) {
		struct record r = recorder_get(&rec, k);

		CHECK(r.handle == d);
		CHECK_EQ(r.status, SCI_ERR_OK);
		CHECK_EQ(r.length, lengths[k]);
		CHECK(test_filled(r.data, r.length, k));
		CHECK(!pthread_equal(r.thread, pthread_self()));
	}
	CHECK_EQ(rec.overlaps, 0);
	peer_join(p);
	recorder_clear(&rec);
}

TEST(too_long_a_message)
{
	static unsigned char data[MESSAGE_MAX + 1];
	sci_desc_t sd = test_open();
	sci_local_data_interrupt_t d = test_data_interrupt(sd, 1);
	sci_remote_data_interrupt_t r = test_connect_data_interrupt(sd, 4, 1);
	unsigned int len = sizeof(data);

	CHECK_ERR(SCITriggerDataInterrupt(r, data, MESSAGE_MAX + 1, 0, &err),
		  SCI_ERR_OUT_OF_RANGE);
	CHECK_ERR(SCITriggerDataInterrupt(r, data, 0xffffffff, 0, &err),
		  SCI_ERR_OUT_OF_RANGE);
	CHECK_ERR(SCIWaitForDataInterrupt(d, data, &len, 0, 0, &err),
		  SCI_ERR_TIMEOUT);
}

TEST(too_little_room_keeps_the_message)
{
	sci_desc_t sd = test_open();
	sci_local_data_interrupt_t d = test_data_interrupt(sd, 1);
	sci_remote_data_interrupt_t r = test_connect_data_interrupt(sd, 4, 1);
	char data[16] = "";
	unsigned int len;

	send_data(r, "0123456789", 10);
	send_data(r, "abc", 3);
	for (int k = 0; k < 3; k++) {
		len = 4;
		CHECK_ERR(SCIWaitForDataInterrupt(d, data, &len, 5000, 0,
						  &err), SCI_ERR_NOSPC);
		CHECK_EQ(len, 10);
	}
	len = 0;
	CHECK_ERR(SCIWaitForDataInterrupt(d, NULL, &len, 5000, 0, &err),
		  SCI_ERR_NOSPC);
	CHECK_EQ(len, 10);
	CHECK_OK(SCIWaitForDataInterrupt(d, data, &len, 0, 0, &err));
	CHECK_EQ(len, 10);
	CHECK(!memcmp(data, "0123456789", 10));
	/* programs use the same variable for all calls */
	CHECK_OK(SCIWaitForDataInterrupt(d, data, &len, 5000, 0, &err));
	CHECK_EQ(len, 3);
	CHECK(!memcmp(data, "abc", 3));
}

static void *wait_long_data(void *arg)
{
	unsigned int len = 10;
	char data[10];

	return (void *)(uintptr_t)
		ERR_OF(SCIWaitForDataInterrupt(arg, data, &len,
					       SCI_INFINITE_TIMEOUT, 0, &err));
}

/* A thread with room takes the message, whichever thread wakes first. */
TEST(too_little_room_wakes_another_waiter)
{
	sci_desc_t sd = test_open();
	pthread_t small[4], large;
	void *code;

	for (unsigned int n = 0; n < 50; n++) {
		sci_local_data_interrupt_t d = test_data_interrupt(sd, n);
		sci_remote_data_interrupt_t r = test_connect_data_interrupt(sd, 4, n);

		for (unsigned int k = 0; k < ARRAY_LEN(small); k++)
			CHECK_EQ(pthread_create(&small[k], NULL, wait_data, d), 0);
		CHECK_EQ(pthread_create(&large, NULL, wait_long_data, d), 0);
		WAIT_UNTIL(others_asleep(), TEST_WAIT_MS);
		send_data(r, "0123456789", 10);
		CHECK_EQ(pthread_join(large, &code), 0);
		CHECK_EQ((uintptr_t)code, SCI_ERR_OK);
		CHECK_OK(SCIRemoveDataInterrupt(d, 0, &err));
		for (unsigned int k = 0; k < ARRAY_LEN(small); k++)
			CHECK_EQ(pthread_join(small[k], NULL), 0);
	}
}

/* Messages are numbered per sender. */
struct numbered {
	unsigned int sender;
	unsigned int number;
	unsigned char padding[500];
};

static unsigned int messages(void)
{
	unsigned int n = test_calls(20000) / 10;

	CHECK(n);
	return n;
}

static void number_sender(struct peer *self, void *arg)
{
	struct numbered m = { .sender = *(unsigned int *)arg };
	sci_desc_t sd = test_open();
	sci_remote_data_interrupt_t d;
	sci_error_t e;

	peer_expect(self, "go");
	d = test_connect_data_interrupt(sd, 4, 1);
	for (m.number = 0; m.number < messages(); m.number++) {
		unsigned int len = 8 + m.number % sizeof(m.padding);

		test_fill(m.padding, sizeof(m.padding), m.number);
		WAIT_UNTIL((e = ERR_OF(SCITriggerDataInterrupt(d, &m, len, 0,
							       &err))) !=
			   SCI_ERR_NOSPC, TEST_WAIT_MS);
		CHECK_EQ(e, SCI_ERR_OK);
	}
}

static void check_numbered(const struct numbered *m, unsigned int len,
			   unsigned int *next)
{
	CHECK(m->sender < 3);
	CHECK_EQ(m->number, next[m->sender]);
	CHECK_EQ(len, 8 + m->number % sizeof(m->padding));
	CHECK(test_filled(m->padding, len - 8, m->number));
	next[m->sender]++;
}

TEST(messages_of_each_sender_keep_their_order)
{
	static unsigned int names[3] = { 0, 1, 2 };
	unsigned int next[3] = { 0, 0, 0 };
	sci_local_data_interrupt_t d;
	struct peer *p[3];

	for (unsigned int k = 0; k < 3; k++)
		p[k] = peer_spawn(8 + 4 * k, number_sender, &names[k]);
	d = test_data_interrupt(test_open(), 1);
	for (int k = 0; k < 3; k++)
		peer_send(p[k], "go");
	for (unsigned int k = 0; k < 3 * messages(); k++) {
		struct numbered m;
		unsigned int len = sizeof(m);

		CHECK_OK(SCIWaitForDataInterrupt(d, &m, &len, TEST_WAIT_MS, 0,
						 &err));
		check_numbered(&m, len, next);
	}
	for (int k = 0; k < 3; k++)
		peer_join(p[k]);
}

/* Each trigger returns OK or NOSPC. All messages with OK arrive in order. */
static void flood(unsigned int size)
{
	unsigned int times = test_calls(100000) / (1 + size / 512);
	static unsigned char data[MESSAGE_MAX];
	sci_desc_t sd = test_open();
	sci_local_data_interrupt_t d = test_data_interrupt(sd, 1);
	sci_remote_data_interrupt_t r = test_connect_data_interrupt(sd, 4, 1);
	unsigned int taken = 0, refused = 0, len = size;

	for (unsigned int k = 0; k < times; k++) {
		sci_error_t e;

		memcpy(data, &taken, size < 4 ? size : 4);
		e = ERR_OF(SCITriggerDataInterrupt(r, data, size, 0, &err));
		CHECK(e == SCI_ERR_OK || e == SCI_ERR_NOSPC);
		taken += e == SCI_ERR_OK;
		refused += e == SCI_ERR_NOSPC;
	}
	CHECK(taken > 0);
	test_note("%u bytes: %u taken, %u refused", size, taken, refused);
	for (unsigned int k = 0; k < taken; k++) {
		CHECK_OK(SCIWaitForDataInterrupt(d, data, &len, 5000, 0,
						 &err));
		CHECK_EQ(len, size);
		CHECK(!memcmp(data, &k, size < 4 ? size : 4));
	}
	CHECK_ERR(SCIWaitForDataInterrupt(d, data, &len, 0, 0, &err),
		  SCI_ERR_TIMEOUT);
	/* the queue has room again */
	send_data(r, data, size);
	CHECK_OK(SCIWaitForDataInterrupt(d, data, &len, 5000, 0, &err));
	CHECK_OK(SCIRemoveDataInterrupt(d, 0, &err));
	CHECK_OK(SCIDisconnectDataInterrupt(r, 0, &err));
}

TEST(a_flood_of_bytes_without_a_reader)
{
	flood(1);
}

TEST(a_flood_of_50_bytes_without_a_reader)
{
	flood(50);
}

TEST(a_flood_of_long_messages_without_a_reader)
{
	flood(MESSAGE_MAX);
}

TEST(a_flood_of_nothing_without_a_reader)
{
	flood(0);
}

TEST(a_full_interrupt_does_not_stop_another)
{
	static unsigned char data[MESSAGE_MAX];
	sci_desc_t sd = test_open();
	sci_local_data_interrupt_t other = test_data_interrupt(sd, 2);
	sci_remote_data_interrupt_t r;
	unsigned int len = 5;

	test_data_interrupt(sd, 1);
	r = test_connect_data_interrupt(sd, 4, 1);
	while (ERR_OF(SCITriggerDataInterrupt(r, data, MESSAGE_MAX, 0,
					      &err)) == SCI_ERR_OK)
		;
	send_data(test_connect_data_interrupt(sd, 4, 2), "hello", 5);
	CHECK_OK(SCIWaitForDataInterrupt(other, data, &len, 5000, 0, &err));
	test_interrupt(sd, 3);
	CHECK_OK(SCITriggerInterrupt(test_connect_interrupt(sd, 4, 3), 0,
				     &err));
}

/* ---- removal, death and termination ---- */

static void interrupt_owner(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	sci_local_data_interrupt_t d = test_data_interrupt(sd, 1);
	sci_local_interrupt_t i = test_interrupt(sd, 1);

	(void)arg;
	peer_send(self, "ready");
	peer_expect(self, "remove");
	CHECK_OK(SCIRemoveInterrupt(i, 0, &err));
	CHECK_OK(SCIRemoveDataInterrupt(d, 0, &err));
	peer_send(self, "removed");
	peer_expect(self, "leave");
}

static void check_owner_goes(bool dies)
{
	struct peer *p = peer_spawn(8, interrupt_owner, NULL);
	sci_desc_t sd = test_open();
	sci_remote_data_interrupt_t d;
	sci_remote_interrupt_t i;
	char c = 1;

	peer_expect(p, "ready");
	i = test_connect_interrupt(sd, 8, 1);
	d = test_connect_data_interrupt(sd, 8, 1);
	CHECK_OK(SCITriggerInterrupt(i, 0, &err));
	send_data(d, &c, 1);
	if (dies) {
		peer_kill(p, SIGKILL);
	} else {
		peer_send(p, "remove");
		peer_expect(p, "removed");
	}
	WAIT_UNTIL(ERR_OF(SCITriggerInterrupt(i, 0, &err)) ==
		   SCI_ERR_NOT_CONNECTED, TEST_WAIT_MS);
	WAIT_UNTIL(ERR_OF(SCITriggerDataInterrupt(d, &c, 1, 0, &err)) ==
		   SCI_ERR_NOT_CONNECTED, TEST_WAIT_MS);
	CHECK_OK(SCIDisconnectInterrupt(i, 0, &err));
	CHECK_OK(SCIDisconnectDataInterrupt(d, 0, &err));
	CHECK_OK(SCIClose(sd, 0, &err));
}

TEST(triggers_after_the_owner_died)
{
	check_owner_goes(true);
}

TEST(triggers_after_the_owner_removed_it)
{
	check_owner_goes(false);
}

static void hasty_sender(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	sci_remote_data_interrupt_t d;

	(void)arg;
	peer_expect(self, "go");
	d = test_connect_data_interrupt(sd, 4, 1);
	for (unsigned int k = 0; k < 100; k++)
		send_data(d, &k, sizeof(k));
	CHECK_OK(SCIDisconnectDataInterrupt(d, 0, &err));
}

TEST(what_was_sent_arrives_after_the_sender_has_gone)
{
	struct peer *p = peer_spawn(8, hasty_sender, NULL);
	sci_local_data_interrupt_t d = test_data_interrupt(test_open(), 1);

	peer_send(p, "go");
	peer_join(p);
	for (unsigned int k = 0; k < 100; k++) {
		unsigned int data, len = sizeof(data);

		CHECK_OK(SCIWaitForDataInterrupt(d, &data, &len, 5000, 0,
						 &err));
		CHECK_EQ(len, sizeof(data));
		CHECK_EQ(data, k);
	}
}

static void cycle(sci_desc_t sd)
{
	sci_local_interrupt_t i = test_interrupt(sd, 1);
	sci_local_data_interrupt_t d = test_data_interrupt(sd, 1);
	sci_remote_interrupt_t ri = test_connect_interrupt(sd, 4, 1);
	sci_remote_data_interrupt_t rd = test_connect_data_interrupt(sd, 4, 1);

	CHECK_OK(SCITriggerInterrupt(ri, 0, &err));
	send_data(rd, "hello", 5);
	/* remove the local objects first, with unread messages */
	CHECK_OK(SCIRemoveInterrupt(i, 0, &err));
	CHECK_OK(SCIRemoveDataInterrupt(d, 0, &err));
	CHECK_OK(SCIDisconnectInterrupt(ri, 0, &err));
	CHECK_OK(SCIDisconnectDataInterrupt(rd, 0, &err));
}

TEST(nothing_leaks_in_a_loop)
{
	sci_desc_t sd = test_open();

	cycle(sd);
	leak_check_begin();
	for (int k = 0; k < 200; k++)
		cycle(sd);
	leak_check_end();
}

TEST(plain_and_data_numbers_overlap)
{
	sci_desc_t sd = test_open();

	for (unsigned int k = 0; k < 5; k++) {
		test_interrupt(sd, k);
		test_data_interrupt(sd, k);
	}
	test_interrupt(sd, 3 << 16 | 3);
	test_interrupt(sd, 9573);
}
