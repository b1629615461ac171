// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test interrupts of other nodes, with and without data. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sci_test.h"

#define DATA_MAX	SCI_IOC_INTR_DATA_MAX
/* Time limit for filling a queue: some machines are slow. */
#define PATIENCE_MS	60000u
/* The module's limit of unread bytes for one owner. */
#define QUEUE_BYTES	((size_t)16 << 20)
#define UNTOUCHED	0x5a5a5a5a5a5a5a5aull

static void *volatile nowhere = (void *)8;

static int owner, sender;		/* descriptors of the two adapters */
static __u32 node;			/* node of the owner's adapter */

static void begin(void)
{
	unsigned int far = adapters() > 1 ? 1 : 0;

	sender = OK(adapter_open(0));
	owner = OK(adapter_open(far));
	node = adapter_node(far);
}

/* An interrupt of the owner, and the sender's connection to it. */
struct line {
	int intr, remote;
	__u32 number;
};

static struct line line_of(__u32 flags)
{
	struct line l = { 0 };

	begin();
	l.intr = OK(intr_create(owner, flags, &l.number));
	l.remote = OK(intr_connect(sender, node, l.number,
				   flags & SCI_INTR_WITH_DATA ?
				   SCI_CONNECT_DATA : 0));
	OK(SYS(fcntl(l.intr, F_SETFL, O_NONBLOCK)));
	return l;
}

/* Wait for one trigger and read it. */
static void take(int intr)
{
	__u64 one = 0;

	CHECK(readable(intr, TEST_WAIT_MS));
	EQ(SYS(read(intr, &one, sizeof(one))), sizeof(one));
	EQ(one, 1);
}

static void none(int intr)
{
	__u64 one = UNTOUCHED;

	CHECK(!readable(intr, 0));
	FAILS(SYS(read(intr, &one, sizeof(one))), EAGAIN);
	EQ(one, UNTOUCHED);
}

/* ---- without data ---- */

TEST(a_trigger_is_read)
{
	struct line l = line_of(0);

	none(l.intr);
	OK(intr_trigger(l.remote));
	take(l.intr);
	none(l.intr);
}

TEST(triggers_before_a_read_are_one)
{
	struct line l = line_of(0);

	for (unsigned int i = 0; i < 5; i++)
		OK(intr_trigger(l.remote));
	/* a probe is answered after all triggers before it */
	OK(adapter_probe(sender, node));
	take(l.intr);
	none(l.intr);
	OK(intr_trigger(l.remote));
	take(l.intr);
}

TEST(counted_triggers_are_each_one)
{
	struct line l = line_of(SCI_INTR_COUNT);

	for (unsigned int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < 50; i++)
			OK(intr_trigger(l.remote));
		for (unsigned int i = 0; i < 50; i++)
			take(l.intr);
		none(l.intr);
	}
}

TEST(a_read_takes_eight_bytes)
{
	struct line l = line_of(0);
	char room[64];

	OK(intr_trigger(l.remote));
	CHECK(readable(l.intr, TEST_WAIT_MS));
	for (size_t size = 0; size < 8; size++)
		FAILS(SYS(read(l.intr, room, size)), EINVAL);
	FAILS(SYS(read(l.intr, nowhere, 8)), EFAULT);
	EQ(SYS(read(l.intr, room, sizeof(room))), 8);
}

TEST(own_interrupts)
{
	__u32 number = 0;
	int intr, remote;

	begin();
	intr = OK(intr_create(owner, 0, &number));
	remote = OK(intr_connect(owner, node, number, 0));
	OK(intr_trigger(remote));
	take(intr);
}

/* ---- numbers ---- */

TEST(numbers_are_distinct)
{
	enum { MANY = 64 };
	__u32 number[MANY];

	begin();
	for (unsigned int i = 0; i < MANY; i++) {
		number[i] = 0;
		OK(intr_create(owner, 0, &number[i]));
		for (unsigned int j = 0; j < i; j++)
			CHECK(number[i] != number[j]);
	}
}

TEST(a_fixed_number)
{
	__u32 number = 17;
	int intr;

	begin();
	intr = OK(intr_create(owner, SCI_INTR_FIXED_NUMBER, &number));
	EQ(number, 17);
	FAILS(intr_create(owner, SCI_INTR_FIXED_NUMBER, &number), EEXIST);
	FAILS(intr_create(owner, SCI_INTR_FIXED_NUMBER |
			  SCI_INTR_SHARE_NUMBER, &number), EEXIST);
	close(intr);
	OK(intr_create(owner, SCI_INTR_FIXED_NUMBER, &number));
}

TEST(all_who_share_a_number_are_triggered)
{
	const __u32 flags = SCI_INTR_FIXED_NUMBER | SCI_INTR_SHARE_NUMBER;
	int intr[4], remote;
	__u32 number = 18;

	begin();
	for (unsigned int i = 0; i < ARRAY_SIZE(intr); i++)
		intr[i] = OK(intr_create(owner, flags, &number));
	FAILS(intr_create(owner, SCI_INTR_FIXED_NUMBER, &number), EEXIST);
	remote = OK(intr_connect(sender, node, number, 0));
	OK(intr_trigger(remote));
	for (unsigned int i = 0; i < ARRAY_SIZE(intr); i++)
		take(intr[i]);
	/* the number is valid until the last interrupt that has it is closed */
	for (unsigned int i = 1; i < ARRAY_SIZE(intr); i++)
		close(intr[i]);
	OK(intr_trigger(remote));
	take(intr[0]);
	close(intr[0]);
	WAIT_UNTIL(intr_trigger(remote) == -ENOTCONN);
}

TEST(numbers_with_data_are_their_own)
{
	__u32 number = 19;

	begin();
	OK(intr_create(owner, SCI_INTR_FIXED_NUMBER, &number));
	FAILS(intr_connect(sender, node, number, SCI_CONNECT_DATA), ENOENT);
	OK(intr_create(owner, SCI_INTR_FIXED_NUMBER | SCI_INTR_WITH_DATA,
		       &number));
	OK(intr_connect(sender, node, number, SCI_CONNECT_DATA));
	OK(intr_connect(sender, node, number, 0));
}

TEST(flags_that_contradict_each_other)
{
	__u32 number = 0;

	begin();
	FAILS(intr_create(owner, SCI_INTR_WITH_DATA | SCI_INTR_COUNT, &number),
	      EINVAL);
	FAILS(intr_create(owner, SCI_INTR_WITH_DATA | SCI_INTR_SHARE_NUMBER,
			  &number), EINVAL);
}

TEST(modes_are_the_rw_bits)
{
	const __u32 bad[] = { 01, 0100, 010, 0777, 01000, 0x80000000 };
	__u32 number = 0;

	begin();
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++)
		FAILS(intr_create_as(owner, 0, &number, bad[i]), EINVAL);
	close(OK(intr_create_as(owner, 0, &number, 0)));
	close(OK(intr_create_as(owner, 0, &number, 0666)));
}

TEST(connecting_to_what_is_not_there)
{
	__u32 number = 20;
	int fd;

	begin();
	FAILS(intr_connect(sender, node, number, 0), ENOENT);
	FAILS(intr_connect(sender, node, 0xffffffff, 0), ENOENT);
	FAILS(intr_connect(sender, 3, number, 0), EINVAL);
	FAILS(intr_connect(sender, SCI_IOC_NODE_GROUP, number, 0), EINVAL);
	fd = OK(intr_connect(sender, node, number, SCI_CONNECT_ASYNC));
	EQ(EV(fd, SCI_EV_CONNECT).status, -ENOENT);
	FAILS(intr_trigger(fd), ENOTCONN);
}

TEST(connecting_asynchronously)
{
	__u32 number = 0;
	int intr, fd;

	begin();
	intr = OK(intr_create(owner, 0, &number));
	fd = OK(intr_connect(sender, node, number, SCI_CONNECT_ASYNC));
	EQ(EV(fd, SCI_EV_CONNECT).status, 0);
	OK(intr_trigger(fd));
	take(intr);
	for (unsigned int i = 0; i < 50; i++)
		close(OK(intr_connect(sender, node, number,
				      SCI_CONNECT_ASYNC)));
}

/* ---- with data ---- */

static void take_data(int intr, const void *want, size_t length)
{
	static char room[DATA_MAX];

	CHECK(readable(intr, TEST_WAIT_MS));
	EQ(SYS(read(intr, room, sizeof(room))), length);
	CHECK(!memcmp(room, want, length));
}

TEST(data_of_every_length)
{
	const size_t lengths[] = {
		0, 1, 2, 3, 7, 8, 15, 31, 32, 48, 63, 64, 65, 127, 128, 1000,
		4095, 4096, 4097, 10000, 65535, 65536,
	};
	struct line l = line_of(SCI_INTR_WITH_DATA);
	char *data = user_memory(DATA_MAX);

	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++) {
		fill(data, DATA_MAX, i);
		OK(intr_send(l.remote, data, lengths[i]));
		take_data(l.intr, data, lengths[i]);
		CHECK(!readable(l.intr, 0));
	}
}

TEST(too_much_data)
{
	struct line l = line_of(SCI_INTR_WITH_DATA);
	char *data = user_memory(2 * DATA_MAX);

	FAILS(intr_send(l.remote, data, DATA_MAX + 1), EMSGSIZE);
	FAILS(intr_send(l.remote, data, 2 * DATA_MAX), EMSGSIZE);
	FAILS(intr_send(l.remote, data, 0xffffffff), EMSGSIZE);
	CHECK(!readable(l.intr, 0));
}

TEST(data_from_nowhere)
{
	struct line l = line_of(SCI_INTR_WITH_DATA);
	char *data = user_memory(2 * PAGE);

	OK(sci_unmap(data + PAGE, PAGE));
	FAILS(intr_send(l.remote, NULL, 1), EFAULT);
	FAILS(intr_send(l.remote, data + PAGE - 1, 2), EFAULT);
	FAILS(intr_send(l.remote, KERNEL_ADDRESS, 8), EFAULT);
	CHECK(!readable(l.intr, 0));
	OK(intr_send(l.remote, data + PAGE - 1, 1));
	take_data(l.intr, data, 1);
}

TEST(less_room_than_it_needs)
{
	struct line l = line_of(SCI_INTR_WITH_DATA);
	char data[100], room[100];
	int length = -1;

	memset(data, 'd', sizeof(data));
	OK(intr_send(l.remote, data, sizeof(data)));
	CHECK(readable(l.intr, TEST_WAIT_MS));
	FAILS(SYS(read(l.intr, room, 0)), EMSGSIZE);
	FAILS(SYS(read(l.intr, room, sizeof(data) - 1)), EMSGSIZE);
	OK(SYS(ioctl(l.intr, FIONREAD, &length)));
	EQ(length, sizeof(data));
	FAILS(SYS(read(l.intr, nowhere, sizeof(data))), EFAULT);
	take_data(l.intr, data, sizeof(data));
	OK(SYS(ioctl(l.intr, FIONREAD, &length)));
	EQ(length, 0);
	FAILS(SYS(ioctl(l.intr, FIONREAD, NULL)), EFAULT);
}

TEST(data_comes_in_order)
{
	struct line l = line_of(SCI_INTR_WITH_DATA);

	for (unsigned int round = 0; round < 4; round++) {
		for (uint32_t i = 0; i < 32; i++)
			OK(intr_send(l.remote, &i, sizeof(i)));
		for (uint32_t i = 0; i < 32; i++)
			take_data(l.intr, &i, sizeof(i));
	}
}

static unsigned int send_until_full(struct line *l, const void *data,
				    size_t length)
{
	uint64_t begun = ksft_now_ms();
	unsigned int sent = 0;
	int ret;

	while (!(ret = intr_send(l->remote, data, length))) {
		sent++;
		if (sent * length > QUEUE_BYTES)
			FAIL("not full after %u times %zu bytes", sent, length);
		if (ksft_now_ms() - begun > PATIENCE_MS)
			SKIP("not full after %u times %zu bytes", sent, length);
	}
	EQ(ret, -ENOBUFS);
	return sent;
}

static void too_much_queued(size_t length)
{
	struct line l = line_of(SCI_INTR_WITH_DATA);
	char *data = user_memory(DATA_MAX);
	unsigned int sent;

	fill(data, DATA_MAX, 1);
	sent = send_until_full(&l, data, length);
	ksft_note("%u times %zu bytes", sent, length);
	CHECK(sent > 0);
	for (unsigned int i = 0; i < sent; i++)
		take_data(l.intr, data, length);
	CHECK(!readable(l.intr, 0));
	OK(intr_send(l.remote, data, length));
	take_data(l.intr, data, length);
}

TEST_LIMIT(too_much_data_is_queued, 300)
{
	too_much_queued(DATA_MAX);
}

/* Entries are limited, too: those without data would have no other limit. */
TEST_LIMIT(too_many_triggers_are_queued, 600)
{
	too_much_queued(0);
}

#define MAX_DATA	"/sys/module/sci/parameters/max_data"

/* End the loss when the main thread waits for the reply to its data. */
static void *lose_no_more(void *arg)
{
	struct line *l = arg;

	WAIT_UNTIL(ksft_waits_in_ioctl(getpid(), l->remote));
	OK(knob_set(1, KNOB_LOSS, 0));
	return NULL;
}

/* The late reply to a killed process's data is not the result of other data. */
TEST(each_is_told_of_his_own_data)
{
	struct line l = line_of(SCI_INTR_WITH_DATA);
	pthread_t thread;
	pid_t child;
	int ret;

	NEED_ADAPTERS(2);
	NEED_KNOB(KNOB_LOSS);
	if (access(MAX_DATA, W_OK))
		SKIP("no %s", MAX_DATA);
	OK(knob_set(1, KNOB_LOSS, 1000000));
	child = ksft_fork();
	if (!child) {
		intr_send(l.remote, "child", 5);
		_exit(1);
	}
	CHECK(readable(l.intr, TEST_WAIT_MS));
	OK(SYS(kill(child, SIGKILL)));
	EQ(ksft_wait(child), SIGKILL);
	OK(write_text(MAX_DATA, "0"));
	EQ(pthread_create(&thread, NULL, lose_no_more, &l), 0);
	ret = intr_send(l.remote, "parent", 6);
	OK(write_text(MAX_DATA, "256"));
	EQ(ret, -ENOBUFS);
	EQ(pthread_join(thread, NULL), 0);
	take_data(l.intr, "child", 5);
	CHECK(!readable(l.intr, 0));
}

TEST(data_for_whom_it_is_nothing)
{
	struct line l = line_of(0);

	FAILS(intr_send(l.remote, "x", 1), EINVAL);
	FAILS(intr_send(l.remote, "x", 0), EINVAL);
	none(l.intr);
}

/* ---- order ---- */

TEST(what_was_stored_before_has_arrived)
{
	struct line l = line_of(SCI_INTR_COUNT);
	struct pair p = PAIR(PAGE);

	for (uint32_t i = 1; i <= 100; i++) {
		p.there[0] = i;
		OK(sci_flush(p.remote));
		OK(intr_trigger(l.remote));
		take(l.intr);
		EQ(p.here[0], i);
	}
}

static struct line busy;

static void *send_numbers(void *arg)
{
	uint32_t data[2] = { (uint32_t)(uintptr_t)arg };

	for (data[1] = 0; data[1] < 100; data[1]++)
		while (intr_send(busy.remote, data, sizeof(data)) == -ENOBUFS)
			ksft_pause();
	return NULL;
}

TEST(each_senders_order_is_kept)
{
	enum { SENDERS = 4 };
	uint32_t next[SENDERS] = { 0 }, data[2];
	pthread_t thread[SENDERS];

	busy = line_of(SCI_INTR_WITH_DATA);
	for (uintptr_t i = 0; i < SENDERS; i++)
		EQ(pthread_create(&thread[i], NULL, send_numbers, (void *)i),
		   0);
	for (unsigned int i = 0; i < SENDERS * 100; i++) {
		CHECK(readable(busy.intr, TEST_WAIT_MS));
		EQ(SYS(read(busy.intr, data, sizeof(data))), sizeof(data));
		CHECK(data[0] < SENDERS);
		EQ(data[1], next[data[0]]++);
	}
	for (unsigned int i = 0; i < SENDERS; i++)
		EQ(pthread_join(thread[i], NULL), 0);
}

static void trigger_often(struct peer *self, void *arg)
{
	unsigned int place = (unsigned int)(uintptr_t)arg;
	__u32 to[2];
	int fd;

	peer_get(self, to, sizeof(to));
	fd = OK(intr_connect(OK(adapter_open(place % adapters())), to[0],
			     to[1], 0));
	for (unsigned int i = 0; i < 100; i++)
		OK(intr_trigger(fd));
}

TEST(no_counted_trigger_is_lost)
{
	enum { SENDERS = 4 };
	struct peer *peer[SENDERS];
	struct line l;

	for (uintptr_t i = 0; i < SENDERS; i++)
		peer[i] = peer_spawn(trigger_often, (void *)i);
	l = line_of(SCI_INTR_COUNT);
	for (unsigned int i = 0; i < SENDERS; i++) {
		__u32 to[2] = { node, l.number };

		peer_put(peer[i], to, sizeof(to));
	}
	for (unsigned int i = 0; i < SENDERS * 100; i++)
		take(l.intr);
	for (unsigned int i = 0; i < SENDERS; i++)
		peer_join(peer[i]);
	none(l.intr);
}

/* ---- ends ---- */

static void *read_blocking(void *arg)
{
	int fd = *(int *)arg;
	__u64 one = UNTOUCHED;

	FAILS(SYS(read(fd, &one, sizeof(one))), ECANCELED);
	EQ(one, UNTOUCHED);
	return NULL;
}

static void cancel_readers(__u32 flags)
{
	struct line l = line_of(flags);
	pthread_t thread[3];
	char room[8];

	OK(SYS(fcntl(l.intr, F_SETFL, 0)));
	for (unsigned int i = 0; i < ARRAY_SIZE(thread); i++)
		EQ(pthread_create(&thread[i], NULL, read_blocking, &l.intr),
		   0);
	OK(intr_cancel(l.intr));
	for (unsigned int i = 0; i < ARRAY_SIZE(thread); i++)
		EQ(pthread_join(thread[i], NULL), 0);
	CHECK(readable(l.intr, 0));
	FAILS(SYS(read(l.intr, room, sizeof(room))), ECANCELED);
	OK(intr_cancel(l.intr));
	FAILS(SYS(read(l.intr, room, sizeof(room))), ECANCELED);
}

TEST(cancel_ends_reads)
{
	cancel_readers(0);
}

TEST(cancel_ends_reads_of_data)
{
	cancel_readers(SCI_INTR_WITH_DATA);
}

TEST(closing_cuts_senders_off)
{
	struct line l = line_of(0);

	OK(intr_trigger(l.remote));
	NO_EV(l.remote);
	close(l.intr);
	EQ(EV(l.remote, SCI_EV_LOST).status, -ENOTCONN);
	FAILS(intr_trigger(l.remote), ENOTCONN);
	FAILS(intr_connect(sender, node, l.number, 0), ENOENT);
}

static void own_until_killed(struct peer *self, void *arg)
{
	__u32 number = 0;

	peer_expect(self, "begin");
	begin();
	OK(intr_create(owner, (__u32)(uintptr_t)arg, &number));
	PEER_PUT(self, number);
	peer_expect(self, "nothing");
}

static void owner_is_killed(__u32 flags, __u32 how)
{
	struct peer *peer = peer_spawn(own_until_killed,
				       (void *)(uintptr_t)flags);
	int fd;

	begin();
	peer_send(peer, "begin");
	fd = OK(intr_connect(sender, node, PEER_GET(peer, __u32), how));
	OK(intr_trigger(fd));
	peer_kill(peer);
	EQ(EV(fd, SCI_EV_LOST).status, -ECONNRESET);
	FAILS(intr_trigger(fd), ENOTCONN);
}

TEST(an_owner_is_killed)
{
	owner_is_killed(0, 0);
}

TEST(an_owner_is_killed_with_data_queued)
{
	owner_is_killed(SCI_INTR_WITH_DATA, SCI_CONNECT_DATA);
}

static void send_until_killed(struct peer *self, void *arg)
{
	char *data;
	__u32 to[2];
	int fd;

	(void)arg;
	peer_get(self, to, sizeof(to));
	data = user_memory(DATA_MAX);
	fill(data, DATA_MAX, 1);
	fd = OK(intr_connect(OK(adapter_open(0)), to[0], to[1],
			     SCI_CONNECT_DATA));
	OK(intr_send(fd, data, DATA_MAX));
	peer_send(self, "sending");
	for (;;)
		intr_send(fd, data, DATA_MAX);
}

TEST(a_sender_is_killed)
{
	struct peer *peer = peer_spawn(send_until_killed, NULL);
	char *data = user_memory(DATA_MAX);
	__u32 to[2], number = 0;
	int intr, next;

	fill(data, DATA_MAX, 1);
	begin();
	intr = OK(intr_create(owner, SCI_INTR_WITH_DATA, &number));
	to[0] = node;
	to[1] = number;
	peer_put(peer, to, sizeof(to));
	peer_expect(peer, "sending");
	peer_kill(peer);
	/* a probe is answered after all messages of the killed process */
	OK(adapter_probe(sender, node));
	/* data of the killed process arrives whole or not at all, and the first was sent */
	take_data(intr, data, DATA_MAX);
	while (readable(intr, 0))
		take_data(intr, data, DATA_MAX);
	/* nothing of the killed process mixes with the data of the next one */
	next = OK(intr_connect(sender, node, number, SCI_CONNECT_DATA));
	OK(intr_send(next, data, 100));
	take_data(intr, data, 100);
}

/* ---- an owner's node that does not reply ---- */

TEST(a_reply_that_does_not_come_is_not_waited_for)
{
	struct line l, other;

	NEED_ADAPTERS(2);
	NEED_KNOB(KNOB_WITHHOLD);
	l = line_of(SCI_INTR_WITH_DATA);
	other.intr = OK(intr_create(owner, SCI_INTR_WITH_DATA, &other.number));
	other.remote = OK(intr_connect(sender, node, other.number,
				       SCI_CONNECT_DATA));
	OK(knob_set(1, KNOB_WITHHOLD, MESSAGE_DATA_REPLY));
	FAILS(intr_send(l.remote, "a", 1), ETIMEDOUT);
	OK(knob_set(1, KNOB_WITHHOLD, 0));
	/* the late reply is not the result of a later send */
	OK(intr_send(other.remote, "b", 1));
	OK(intr_send(l.remote, "c", 1));
	CHECK(readable(l.intr, TEST_WAIT_MS));
}

/* ---- an adapter without remote interrupts ---- */

static unsigned int place_of(unsigned int wanted)
{
	adapters_find();
	for (unsigned int i = 0; i < adapters(); i++)
		if (adapter_node(i) == wanted)
			return i;
	FAIL("node %u is not there", wanted);
}

/* Remove the last node and add it with doorbells or without. */
static unsigned int node_anew(const char *doorbells)
{
	unsigned int last = adapter_node(adapters() - 1);

	OK(write_text(DOORBELLS, doorbells));
	OK(adapter_remove(place_of(last)));
	OK(node_add(last));
	OK(write_text(DOORBELLS, "Y"));
	return place_of(last);
}

static struct line line_by_message(unsigned int *place)
{
	struct line l = { 0 };

	NEED_ADAPTERS(2);
	NEED_ROOT();
	if (access(DOORBELLS, W_OK) || access(LOOP_DIR "/" KNOB_ADD, W_OK))
		SKIP("no " DOORBELLS);
	*place = node_anew("N");
	sender = OK(adapter_open(*place));
	owner = OK(adapter_open(0));
	node = adapter_node(0);
	l.intr = OK(intr_create(owner, SCI_INTR_COUNT, &l.number));
	l.remote = OK(intr_connect(sender, node, l.number, 0));
	OK(SYS(fcntl(l.intr, F_SETFL, O_NONBLOCK)));
	return l;
}

TEST(triggers_by_message)
{
	unsigned int place;
	struct line l = line_by_message(&place);

	for (unsigned int i = 0; i < 50; i++)
		OK(intr_trigger(l.remote));
	for (unsigned int i = 0; i < 50; i++)
		take(l.intr);
	none(l.intr);
	node_anew("Y");
}

/* More triggers than may wait for a node: each is a message until it is acknowledged. */
#define LOTS	1500u

/* Start a process that sends LOTS triggers to a node that gets no packets, and wait until it waits. */
static pid_t flood(struct line *l, unsigned int place, _Atomic unsigned int *sent)
{
	pid_t child;

	OK(knob_set(place, KNOB_LOSS, 1000000));
	child = ksft_fork();
	if (!child) {
		while (*sent < LOTS && !intr_trigger(l->remote))
			++*sent;
		_exit(*sent < LOTS);
	}
	WAIT_UNTIL(*sent && ksft_waits_in_ioctl(child, l->remote));
	return child;
}

TEST(triggers_for_a_silent_node_wait)
{
	_Atomic unsigned int *sent = ksft_shared(sizeof(*sent));
	unsigned int place;
	struct line l = line_by_message(&place);
	pid_t child = flood(&l, place, sent);

	CHECK(*sent < LOTS);
	OK(knob_set(place, KNOB_LOSS, 0));
	EQ(ksft_wait(child), 0);
	for (unsigned int i = 0; i < LOTS; i++)
		take(l.intr);
	none(l.intr);
	node_anew("Y");
}

TEST(a_process_that_waits_for_a_silent_node_can_be_killed)
{
	_Atomic unsigned int *sent = ksft_shared(sizeof(*sent));
	unsigned int place;
	struct line l = line_by_message(&place);
	pid_t child = flood(&l, place, sent);

	OK(SYS(kill(child, SIGKILL)));
	EQ(ksft_wait(child), SIGKILL);
	CHECK(*sent < LOTS);
	OK(knob_set(place, KNOB_LOSS, 0));
	for (unsigned int i = 0; i < *sent; i++)
		take(l.intr);
	OK(intr_trigger(l.remote));
	take(l.intr);
	none(l.intr);
	node_anew("Y");
}

/* A node that stays silent counts as dead, or takes no trigger for as long. */
TEST(triggers_do_not_wait_for_ever)
{
	_Atomic unsigned int *sent = ksft_shared(sizeof(*sent));
	unsigned int place;
	struct line l = line_by_message(&place);
	pid_t child = flood(&l, place, sent);

	EQ(WEXITSTATUS(ksft_wait(child)), 1);
	CHECK(*sent < LOTS);
	OK(knob_set(place, KNOB_LOSS, 0));
	node_anew("Y");
}
