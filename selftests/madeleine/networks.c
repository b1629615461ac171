// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests sessions over several networks, and virtual channels through gateways. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include <pm2_common.h>

#include "libsci/fabric/core/fabric.h"
#include "selftests/madeleine/files.h"
#include "selftests/ranks.h"

#define SLOW	(TEST_ASAN || TEST_TSAN)

static p_mad_madeleine_t begin(void)
{
	int argc = 1;
	char *argv[] = { (char *)"test", NULL };

	return mad_init(&argc, argv);
}

/* ---- all pairs of modes ---- */

static const unsigned int lengths[] = { 1, 511, 513, 4096, 65537, 300000 };

#define LENGTHS		(sizeof(lengths) / sizeof(lengths[0]))
#define PAIRS		6u		/* of a send and a receive mode */
#define BLOCK_MAX	300000u

struct parcel {
	mad_send_mode_t send;
	mad_receive_mode_t receive;
	unsigned int len;
	unsigned char *buf;
};

/* Describe the two blocks of message @i. All messages have all pairs of modes. */
static void parcels_of(unsigned int i, struct parcel p[2])
{
	unsigned int pair[2] = { i % PAIRS, i / PAIRS % PAIRS };

	for (unsigned int k = 0; k < 2; k++) {
		p[k].send = (mad_send_mode_t)(mad_send_SAFER + pair[k] % 3);
		p[k].receive = (mad_receive_mode_t)(mad_receive_EXPRESS + pair[k] / 3);
		p[k].len = lengths[(i / (PAIRS * PAIRS) + 5 * k * i) % LENGTHS];
	}
}

#define VICTIM_MESSAGE	14u		/* its blocks are sent before the end of the message */

static pid_t victim_pid;		/* rank 0 kills it in VICTIM_MESSAGE; 0: no process */

static void parcels_send(p_mad_channel_t c, int to, unsigned int i, struct parcel p[2])
{
	p_mad_connection_t k = mad_begin_packing(c, to);

	CHECK(k);
	parcels_of(i, p);
	for (unsigned int b = 0; b < 2; b++) {
		bool later = p[b].send == mad_send_LATER;

		test_fill(p[b].buf, p[b].len, later ? 1 : 2 * i + b);
		mad_pack(k, p[b].buf, p[b].len, p[b].send, p[b].receive);
		if (p[b].send == mad_send_SAFER)
			memset(p[b].buf, 0xee, p[b].len);
	}
	if (victim_pid && i == VICTIM_MESSAGE && c->process_lrank == 0)
		CHECK_EQ(kill(victim_pid, SIGKILL), 0);
	for (unsigned int b = 0; b < 2; b++)
		if (p[b].send == mad_send_LATER)
			test_fill(p[b].buf, p[b].len, 2 * i + b);
	mad_end_packing(k);
}

static void parcels_take(p_mad_channel_t c, int from, unsigned int i, struct parcel p[2])
{
	p_mad_connection_t k = mad_begin_unpacking(c);

	CHECK_EQ(k->remote_rank, from);
	parcels_of(i, p);
	for (unsigned int b = 0; b < 2; b++) {
		memset(p[b].buf, 0, p[b].len);
		mad_unpack(k, p[b].buf, p[b].len, p[b].send, p[b].receive);
		if (p[b].receive == mad_receive_EXPRESS)
			CHECK(test_filled(p[b].buf, p[b].len, 2 * i + b));
	}
	mad_end_unpacking(k);
	for (unsigned int b = 0; b < 2; b++)
		CHECK(test_filled(p[b].buf, p[b].len, 2 * i + b));
}

/* The first and the last member of a channel send each other all pairs of modes. */
static void all_pairs(void *arg)
{
	p_mad_madeleine_t m = begin();
	p_mad_channel_t c = tbx_htable_get(m->channel_htable, arg);
	int last = c ? c->pc->count - 1 : -1;
	unsigned int n = PAIRS * PAIRS * (SLOW || victim_pid ? 1 : LENGTHS);
	struct parcel p[2];

	p[0].buf = malloc(BLOCK_MAX);
	p[1].buf = malloc(BLOCK_MAX);
	for (unsigned int i = 0; i < n && c; i++) {
		if (c->process_lrank == 0) {
			parcels_send(c, last, i, p);
			parcels_take(c, last, i, p);
		} else if (c->process_lrank == last) {
			parcels_take(c, 0, i, p);
			parcels_send(c, 0, i, p);
		}
	}
	free(p[0].buf);
	free(p[1].buf);
	common_exit(NULL);
}

TEST(all_pairs_of_modes_on_memory)
{
	test_session("channels : { name : c; net : n; hosts : (a, b); };");
	ranks_run_arg(2, 2, all_pairs, (void *)(uintptr_t)"c", false);
}

TEST(all_pairs_of_modes_on_sockets)
{
	test_session("channels : { name : c; net : t; hosts : (a, b); };");
	ranks_run_arg(2, 2, all_pairs, (void *)(uintptr_t)"c", false);
}

TEST(all_pairs_of_modes_from_memory_to_sockets)
{
	test_session("channels : ({ name : l; net : n; hosts : (a, g); },"
		     " { name : r; net : t; hosts : (g, b); });"
		     "vchannels : { name : c; channels : (l, r); };");
	ranks_run_arg(3, 3, all_pairs, (void *)(uintptr_t)"c", false);
}

TEST(all_pairs_of_modes_between_two_rings)
{
	test_session("channels : ({ name : l; net : n; hosts : (a, g); },"
		     " { name : r; net : m; hosts : (g, b); });"
		     "vchannels : { name : c; channels : (l, r); };");
	ranks_run_arg(3, 3, all_pairs, (void *)(uintptr_t)"c", false);
}

TEST(all_pairs_of_modes_through_two_gateways)
{
	test_session("channels : ({ name : l; net : n; hosts : (a, g); },"
		     " { name : s; net : t; hosts : (g, h); },"
		     " { name : r; net : m; hosts : (h, b); });"
		     "vchannels : { name : c; channels : (l, s, r); };");
	ranks_run_arg(4, 4, all_pairs, (void *)(uintptr_t)"c", false);
}

/* ---- hosts with parameters ---- */

static void networks_of(const char *networks, const char *channels)
{
	char text[2048], nets[64], session[64];

	test_file(networks, nets);
	snprintf(text, sizeof(text), "application : { networks : { include : \"%s\"; %s }; };",
		 nets, channels);
	test_file(text, session);
	setenv("MAD_SESSION", session, 1);
	setenv("SCI_NET_KEY", "hex:000102030405060708090a0b0c0d0e0f", 1);
}

/* Hosts with and without parameters, on fabrics with two names, and TCP between them. */
TEST(fabrics_and_addresses_of_hosts)
{
	char networks[1024], address[32];
	unsigned int pid = (unsigned int)getpid();

	/* an address that only this test uses, and a port that the kernel does not assign */
	snprintf(address, sizeof(address), "tcp:127.%u.%u.%u:%u", 1 + (pid >> 16),
		 pid >> 8 & 0xff, pid & 0xff, 10000 + pid % 20000);
	snprintf(networks, sizeof(networks),
		 "networks : ({ name : n; dev : sisci; hosts : ("
		 "  { name : a; parameter : \"shm:west%1$u\"; },"
		 "  { name : g; parameter : \"shm:west%1$u\"; }); },"
		 " { name : t; dev : udp; hosts : ("
		 "  { name : g; parameter : \"%2$s\"; },"
		 "  { name : h; parameter : \"%2$s\"; }); },"
		 " { name : m; dev : gm; hosts : (h, b); });", pid, address);
	networks_of(networks, "channels : ({ name : l; net : n; hosts : (a, g); },"
		    " { name : s; net : t; hosts : (g, h); },"
		    " { name : r; net : m; hosts : (h, b); });"
		    "vchannels : { name : c; channels : (l, s, r); };");
	ranks_run_arg(4, 4, all_pairs, (void *)(uintptr_t)"c", false);
}

/* ---- channels of both kinds at once ---- */

static void number_send(p_mad_channel_t c, int to, unsigned int number)
{
	p_mad_connection_t k = mad_begin_packing(c, to);

	mad_pack(k, &number, sizeof(number), mad_send_SAFER, mad_receive_EXPRESS);
	mad_end_packing(k);
}

static unsigned int number_take(p_mad_connection_t k)
{
	unsigned int number = 0;

	mad_unpack(k, &number, sizeof(number), mad_send_SAFER, mad_receive_EXPRESS);
	mad_end_unpacking(k);
	return number;
}

static void *echo(void *arg)
{
	p_mad_channel_t c = arg;

	for (unsigned int i = 0; i < 50; i++) {
		if (c->process_lrank == 0)
			number_send(c, 1, i);
		CHECK_EQ(number_take(mad_begin_unpacking(c)), i);
		if (c->process_lrank == 1)
			number_send(c, 0, i);
	}
	return NULL;
}

/* A receive that waits on one network does not block the other network. */
static void both_networks(void *arg)
{
	p_mad_madeleine_t m = begin();
	p_mad_channel_t fast = mad_get_channel(m, "fast"), slow = mad_get_channel(m, "slow");
	pthread_t t;

	(void)arg;
	if (fast->process_lrank == 1) {
		p_mad_connection_t k;

		CHECK_EQ(pthread_create(&t, NULL, echo, fast), 0);
		/* the other side sends on "slow" after all answers on "fast" */
		k = mad_begin_unpacking(slow);
		CHECK_EQ(number_take(k), 7);
		CHECK_EQ(pthread_join(t, NULL), 0);
	} else {
		echo(fast);
		CHECK(!mad_message_ready(slow));
		number_send(slow, 1, 7);
	}
	common_exit(NULL);
}

TEST(memory_and_sockets_at_once)
{
	test_session("channels : ({ name : fast; net : n; hosts : (a, b); },"
		     " { name : slow; net : t; hosts : (a, b); });");
	ranks_run_arg(2, 2, both_networks, NULL, false);
}

/*
 * The receiver takes messages only after the last one was packed: many wait in the sender, which
 * then waits, or tests (*@arg), for an answer on the other network.
 */
#define QUEUED	2000		/* more than a ring has room for, but below SCI_DETACHED_MAX */

static atomic_bool *packed;

static void answer_on_the_other_network(void *arg)
{
	p_mad_madeleine_t m = begin();
	p_mad_channel_t fast = mad_get_channel(m, "fast"), slow = mad_get_channel(m, "slow");
	p_mad_connection_t k = NULL;

	if (fast->process_lrank == 0) {
		for (int i = 0; i < QUEUED; i++)
			number_send(fast, 1, i);
		atomic_store(packed, true);
		if (*(const bool *)arg)
			WAIT_UNTIL((k = mad_message_ready(slow)), TEST_WAIT_MS);
		CHECK_EQ(number_take(k ? k : mad_begin_unpacking(slow)), 7);
	} else {
		WAIT_UNTIL(atomic_load(packed), TEST_WAIT_MS);
		for (int i = 0; i < QUEUED; i++)
			CHECK_EQ(number_take(mad_begin_unpacking(fast)), i);
		number_send(slow, 0, 7);
	}
	common_exit(NULL);
}

static void answers(bool test)
{
	test_needs_shm();
	packed = test_shared(sizeof(*packed));
	test_session("channels : ({ name : fast; net : n; hosts : (a, b); },"
		     " { name : slow; net : t; hosts : (a, b); });");
	ranks_run_arg(2, 2, answer_on_the_other_network, &test, false);
}

TEST(messages_leave_while_the_sender_waits_on_the_other_network) { answers(false); }
TEST(messages_leave_while_the_sender_tests_the_other_network) { answers(true); }

/* ---- many senders, and a gateway that takes part ---- */

#define MESSAGES	(SLOW ? 5u : 40u)

static void send_to_all(p_mad_channel_t c, unsigned int i)
{
	static const char text[70000] = "long";
	unsigned int len = i % 3 ? i : sizeof(text);

	for (int to = 0; to < c->pc->count; to++) {
		p_mad_connection_t k;

		if (to == c->process_lrank)
			continue;
		k = mad_begin_packing(c, to);
		mad_pack(k, &i, sizeof(i), mad_send_SAFER, mad_receive_EXPRESS);
		mad_pack(k, text, len, mad_send_CHEAPER, mad_receive_CHEAPER);
		mad_end_packing(k);
	}
}

static void *take_all(void *arg)
{
	p_mad_channel_t c = arg;
	unsigned int next[8] = { 0 }, others = (unsigned int)c->pc->count - 1;
	static __thread char text[70000];

	for (unsigned int n = 0; n < MESSAGES * others; n++) {
		p_mad_connection_t k = NULL;
		unsigned int i;

		if (n & 1)
			k = mad_message_ready(c);
		k = k ? k : mad_begin_unpacking(c);
		mad_unpack(k, &i, sizeof(i), mad_send_SAFER, mad_receive_EXPRESS);
		CHECK_EQ(i, next[k->remote_rank]++);
		mad_unpack(k, text, i % 3 ? i : sizeof(text), mad_send_CHEAPER,
			   mad_receive_CHEAPER);
		mad_end_unpacking(k);
	}
	return NULL;
}

static void all_to_all(void *arg)
{
	p_mad_channel_t c = mad_get_channel(begin(), "c");
	pthread_t t;

	(void)arg;
	CHECK_EQ(pthread_create(&t, NULL, take_all, c), 0);
	for (unsigned int i = 0; i < MESSAGES; i++)
		send_to_all(c, i);
	CHECK_EQ(pthread_join(t, NULL), 0);
	common_exit(NULL);
}

TEST(all_members_send_to_all)
{
	test_session("channels : ({ name : l; net : n; hosts : (a[0..1], g); },"
		     " { name : r; net : t; hosts : (g, b[0..1]); });"
		     "vchannels : { name : c; channels : (l, r); };");
	ranks_run_arg(5, 5, all_to_all, NULL, false);
}

/* Each pair has two gateways to choose from, twice; see gateways_share_the_pairs. */
TEST(all_members_send_to_all_through_several_gateways)
{
	test_session("channels : ({ name : l; net : n; hosts : (a[0..1], g[0..1]); },"
		     " { name : s; net : t; hosts : (g[0..1], h[0..1]); },"
		     " { name : r; net : m; hosts : (h[0..1], b[0..1]); });"
		     "vchannels : { name : c; channels : (l, s, r); };");
	ranks_run_arg(8, 8, all_to_all, NULL, false);
}

/* A mux channel over a virtual channel has sub-channels with names and with numbers only. */
static void subs_through_gateway(void *arg)
{
	p_mad_madeleine_t m = begin();
	p_mad_channel_t sub[4];

	(void)arg;
	sub[0] = mad_get_channel(m, "x");
	sub[1] = mad_get_channel(m, "one");
	sub[2] = mad_get_channel(m, "two");
	sub[3] = mad_get_sub_channel(sub[1], 200);
	CHECK(sub[2] == mad_get_sub_channel(sub[0], 2));
	/* messages are received in the reverse order: sub-channels do not block each other */
	for (unsigned int i = 0; i < 4 && sub[0]->process_lrank == 0; i++)
		number_send(sub[i], 2, 10 + i);
	for (unsigned int i = 4; i-- && sub[0]->process_lrank == 2;) {
		p_mad_connection_t k = mad_begin_unpacking(sub[i]);

		CHECK_EQ(k->remote_rank, 0);
		CHECK(k->channel == sub[i]);
		CHECK_EQ(number_take(k), 10 + i);
		number_send(sub[i], 0, 20 + i);
	}
	for (unsigned int i = 0; i < 4 && sub[0]->process_lrank == 0; i++)
		CHECK_EQ(number_take(mad_begin_unpacking(sub[i])), 20 + i);
	common_exit(NULL);
}

TEST(sub_channels_through_a_gateway)
{
	test_session("channels : ({ name : l; net : n; hosts : (a, g); },"
		     " { name : r; net : t; hosts : (g, b); });"
		     "vchannels : { name : c; channels : (l, r); };"
		     "xchannels : { name : x; channels : c; sub_channels : (one, two); };");
	ranks_run_arg(3, 3, subs_through_gateway, NULL, false);
}

TEST(sub_channels_of_channels_on_two_networks)
{
	test_session("channels : ({ name : l; net : n; hosts : (a, g); },"
		     " { name : r; net : t; hosts : (g, b); });"
		     "xchannels : { name : x; channels : (l, r); sub_channels : (one, two); };");
	ranks_run_arg(3, 3, subs_through_gateway, NULL, false);
}

/*
 * A process that does not receive blocks its sender, but no other message through the
 * gateway.
 */
static void one_does_not_receive(void *arg)
{
	p_mad_madeleine_t m = begin();
	p_mad_channel_t c = mad_get_channel(m, "c"), go = mad_get_channel(m, "go");
	char *text = malloc(4000000);
	p_mad_connection_t k;

	(void)arg;
	/* ranks: a0 is 0, a1 is 1, g is 2, b0 is 3, b1 is 4 */
	if (c->process_lrank == 0) {
		k = mad_begin_packing(c, 3);
		mad_pack(k, text, 4000000, mad_send_CHEAPER, mad_receive_CHEAPER);
		mad_end_packing(k);
	} else if (c->process_lrank == 1) {
		for (unsigned int i = 0; i < 100; i++)
			number_send(c, 4, i);
	} else if (c->process_lrank == 3) {
		/* wait until b1 has received all its messages */
		CHECK_EQ(number_take(mad_begin_unpacking(go)), 100);
		k = mad_begin_unpacking(c);
		mad_unpack(k, text, 4000000, mad_send_CHEAPER, mad_receive_CHEAPER);
		mad_end_unpacking(k);
	} else if (c->process_lrank == 4) {
		for (unsigned int i = 0; i < 100; i++)
			CHECK_EQ(number_take(mad_begin_unpacking(c)), i);
		number_send(go, 3, 100);
	}
	free(text);
	common_exit(NULL);
}

TEST(a_receiver_that_does_not_receive)
{
	test_session("channels : ({ name : l; net : n; hosts : (a[0..1], g); },"
		     " { name : r; net : t; hosts : (g, b[0..1]); },"
		     " { name : go; net : n; hosts : (a[0..1], g, b[0..1]); });"
		     "vchannels : { name : c; channels : (l, r); };");
	ranks_run_arg(5, 5, one_does_not_receive, NULL, false);
}

/* ---- deaths ---- */

static int errors_fd;
static int gateways;		/* the session's processes are the end 0, gateways, and an end */

/* Check the library's error message. The library calls abort() itself: any call is safe here. */
/* NOLINTBEGIN(bugprone-signal-handler,cert-sig30-c) */

/* Return whether an end's error text names one of the gateways, or comes from a barrier. */
static bool is_text_of_end(const char *text)
{
	char way[64], gone[64];
	bool found = strstr(text, "the processes of the session cannot meet: ");

	for (int g = 1; g <= gateways && !found; g++) {
		snprintf(way, sizeof(way), "by way of process %d: ", g);
		snprintf(gone, sizeof(gone), "process %d is gone: ", g);
		found = strstr(text, way) || strstr(text, gone);
	}
	return found;
}

static void on_abort(int sig)
{
	int rank = (int)ranks_rank();
	bool is_end = rank == 0 || rank > gateways;
	char text[1024];
	ssize_t n = pread(errors_fd, text, sizeof(text) - 1, 0);

	(void)sig;
	text[n > 0 ? n : 0] = '\0';
	if (is_end ? is_text_of_end(text) : strstr(text, "madeleine: gateway: ") != NULL)
		_exit(0);
	fprintf(stdout, "# %s\n", text);
	fflush(stdout);
	_exit(1);
}
/* NOLINTEND(bugprone-signal-handler,cert-sig30-c) */

static void expect_abort(void)
{
	errors_fd = memfd_create("errors", 0);
	CHECK(errors_fd >= 0 && dup2(errors_fd, STDERR_FILENO) >= 0);
	signal(SIGABRT, on_abort);
}

enum ends { BOTH_RECEIVE, BOTH_TEST, BOTH_MEET, SEND_AND_RECEIVE, SEND_TO_NOBODY };

struct death {
	int victim;
	enum ends ends;
};

static void send_long(p_mad_channel_t c, int to, void *text, size_t len)
{
	p_mad_connection_t k = mad_begin_packing(c, to);

	mad_pack(k, text, len, mad_send_CHEAPER, mad_receive_CHEAPER);
	mad_end_packing(k);
}

static void take_long(p_mad_channel_t c, void *text, size_t len)
{
	p_mad_connection_t k = mad_begin_unpacking(c);

	mad_unpack(k, text, len, mad_send_CHEAPER, mad_receive_CHEAPER);
	mad_end_unpacking(k);
}

/*
 * Wait at each end for a message of each gateway except the victim. Then all expect the death. The
 * first end also waits for the last one, which would take a long message for that of a gateway.
 */
static void gateways_meet_ends(p_mad_channel_t c, int victim, int last)
{
	int rank = c->process_lrank;

	if (rank == 0 || rank == last) {
		for (int i = rank ? 1 : 0; i < gateways; i++)
			number_take(mad_begin_unpacking(c));
		if (rank)
			number_send(c, 0, 0);
	} else if (rank != victim) {
		number_send(c, 0, 0);
		number_send(c, last, 0);
	}
}

/* One gateway dies. All other processes go on until they get an error. */
static void gateway_dies(void *arg)
{
	p_mad_channel_t c = mad_get_channel(begin(), "c");
	const struct death *d = arg;
	int rank = c->process_lrank, last = c->pc->count - 1;
	static char text[1 << 20];

	if (rank == d->victim) {
		number_take(mad_begin_unpacking(c));
		number_take(mad_begin_unpacking(c));
		ranks_die_in(d->ends == BOTH_RECEIVE ? 1 : 20000);
		number_take(mad_begin_unpacking(c));
	}
	expect_abort();
	gateways_meet_ends(c, d->victim, last);
	if (rank == 0 || rank == last)
		number_send(c, d->victim, 0);
	while (rank == 0 && (d->ends == SEND_AND_RECEIVE || d->ends == SEND_TO_NOBODY))
		send_long(c, last, text, sizeof(text));
	while (rank == last && d->ends == SEND_AND_RECEIVE)
		take_long(c, text, sizeof(text));
	if (rank == last && d->ends == SEND_TO_NOBODY)
		mad_begin_unpacking(tbx_htable_get(mad_get_madeleine()->channel_htable, "d"));
	else if (d->ends == BOTH_MEET)
		mad_leonie_barrier();
	else if (d->ends == BOTH_TEST)
		WAIT_UNTIL(mad_message_ready(c), TEST_WAIT_MS);
	else
		mad_begin_unpacking(c);
	CHECK(!"the death of a gateway is an error");
}

static void gateway_death(enum ends ends)
{
	struct death d = { 1, ends };

	test_session("channels : ({ name : l; net : n; hosts : (a, g); },"
		     " { name : r; net : t; hosts : (g, b); },"
		     " { name : d; net : t; hosts : (g, b); });"
		     "vchannels : { name : c; channels : (l, r); };");
	gateways = 1;
	ranks_run_arg(3, 3, gateway_dies, &d, true);
}

TEST(a_gateway_dies_while_both_ends_receive)
{
	gateway_death(BOTH_RECEIVE);
}

TEST(a_gateway_dies_while_both_ends_test_for_messages)
{
	gateway_death(BOTH_TEST);
}

TEST(a_gateway_dies_while_both_ends_meet)
{
	gateway_death(BOTH_MEET);
}

TEST(a_gateway_dies_in_a_message)
{
	gateway_death(SEND_AND_RECEIVE);
}

TEST(a_gateway_dies_while_a_sender_has_no_credits)
{
	gateway_death(SEND_TO_NOBODY);
}

/* Each pair of ends uses one of the two gateways: the death of either is an error at both ends. */
static void one_gateway_dies(enum ends ends)
{
	test_session("channels : ({ name : l; net : n; hosts : (a, g[0..1]); },"
		     " { name : r; net : t; hosts : (g[0..1], b); });"
		     "vchannels : { name : c; channels : (l, r); };");
	gateways = 2;
	for (int victim = 1; victim <= 2; victim++) {
		struct death d = { victim, ends };

		ranks_run_arg(4, 4, gateway_dies, &d, true);
	}
}

TEST(one_of_two_gateways_dies_while_both_ends_receive)
{
	one_gateway_dies(BOTH_RECEIVE);
}

TEST(one_of_two_gateways_dies_while_both_ends_test_for_messages)
{
	one_gateway_dies(BOTH_TEST);
}

TEST(one_of_two_gateways_dies_in_a_message)
{
	one_gateway_dies(SEND_AND_RECEIVE);
}

/* The victim and one of the ends are not connected. */
TEST(a_gateway_dies_behind_another_gateway)
{
	test_session("channels : ({ name : l; net : n; hosts : (a, g); },"
		     " { name : s; net : t; hosts : (g, h); },"
		     " { name : r; net : m; hosts : (h, b); });"
		     "vchannels : { name : c; channels : (l, s, r); };");
	gateways = 2;
	ranks_run_arg(4, 4, gateway_dies, &(struct death){ 1, BOTH_RECEIVE }, true);
	ranks_run_arg(4, 4, gateway_dies, &(struct death){ 2, SEND_AND_RECEIVE }, true);
}

static void sender_dies(void *arg)
{
	p_mad_channel_t c = mad_get_channel(begin(), "c");
	p_mad_connection_t k;

	(void)arg;
	if (c->process_lrank == 1) {
		number_send(c, 0, 7);
		raise(SIGKILL);
	}
	expect_abort();
	WAIT_UNTIL((k = mad_message_ready(c)), TEST_WAIT_MS);
	CHECK_EQ(number_take(k), 7);
	WAIT_UNTIL(mad_message_ready(c), TEST_WAIT_MS);
	CHECK(!"the death of a sender is an error");
}

TEST(a_message_comes_before_the_death_of_its_sender)
{
	test_session("channels : { name : c; net : n; hosts : (a, b); };");
	gateways = 1;
	ranks_run_arg(2, 2, sender_dies, NULL, true);
}

/* ---- gateways that are not processes of the session ---- */

static const char *const clusters[] = { "a", "b" };

static void gateway_main(struct peer *self, void *arg)
{
	char names[2][64];
	const char *fabrics[2];
	struct sci_fabric *g;

	(void)arg;
	for (unsigned int i = 0; i < 2; i++) {
		test_use_cluster(clusters[i]);
		snprintf(names[i], sizeof(names[i]), "%s", getenv("SCI_FABRIC"));
		fabrics[i] = names[i];
	}
	CHECK_EQ(sci_gateway_open(&g, fabrics, 2, atoi(getenv("SCI_NODE")), "sci"), 0);
	peer_send(self, "open");
	for (;;)
		pause();
}

static void cluster_member(void *arg)
{
	unsigned int rank = ranks_rank();

	test_use_cluster(clusters[rank]);
	setenv("SCI_NET_PEERS", rank ? "4=via:12,4=via:16" : "8=via:12,8=via:16", 1);
	all_pairs(arg);
}

/* The connection uses one of the two gateways: kill each gateway once. */
TEST(a_session_survives_one_of_two_gateways_of_its_network)
{
	test_session("channels : { name : c; net : n; hosts : (a, b); };");
	setenv("SCI_NET", "sci", 1);
	setenv("SCI_NET_RETRY", "10", 1);
	for (unsigned int victim = 0; victim < 2; victim++) {
		struct peer *gates[2];

		for (unsigned int i = 0; i < 2; i++) {
			gates[i] = peer_spawn(12 + 4 * i, gateway_main, NULL);
			peer_expect(gates[i], "open");
		}
		victim_pid = peer_pid(gates[victim]);
		ranks_run_arg(2, 2, cluster_member, (void *)(uintptr_t)"c", false);
		for (unsigned int i = 0; i < 2; i++)
			peer_kill(gates[i], SIGKILL);
	}
}
