// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Messages to handlers: their contents and order, and what a handler may do. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sci/msg.h>

#include "selftests/harness.h"
#include "selftests/msg/peers.h"

#define ECHO	SCI_HANDLER_USER	/* answers with the same bytes */
#define BACK	(SCI_HANDLER_USER + 1)	/* takes answers */
#define SEND	(SCI_HANDLER_USER + 2)	/* answers with a message */
#define END	(SCI_HANDLERS - 1)
#define CONTEXT	5u
#define LONG	(1u << 20)

static const size_t lengths[] = {
	0, 1, 7, 8, 40, 41, 48, 49, 62, 63, 64, 65, 100, 500, 1024, 2047, 2049,
	4096, 5000, SCI_HANDLER_MAX - 1, SCI_HANDLER_MAX,
};

/* ---- a server that answers ---- */

struct server {
	struct sci_ep *ep;
	uint64_t asked;
	bool over;
};

static void echo(void *arg, const struct sci_handled *m)
{
	struct server *s = arg;

	CHECK_EQ(m->error, 0);
	CHECK_EQ((uintptr_t)m->data % 8, 0);
	s->asked++;
	CHECK_EQ(sci_handler_send(m->peer, BACK, m->tag, m->data, m->len), 0);
}

/* Send the bytes back as a message, or LONG bytes for an empty message. */
static void answer_by_message(void *arg, const struct sci_handled *m)
{
	static unsigned char buf[LONG];
	const struct iovec iov[2] = { { (void *)m->data, m->len }, { buf, m->len ? 0 : LONG } };
	const struct sci_send s = {
		.iov = iov, .n = 2, .tag = m->tag, .imm = m->len, .context = CONTEXT,
		.flags = SCI_SEND_TAGGED | SCI_SEND_COPY | SCI_SEND_IMM,
	};

	(void)arg;
	msg_fill(buf, LONG, 0);
	CHECK_EQ(sci_isendm(m->peer, &s, NULL), 0);
	/* the call has copied the bytes */
	memset(buf, 0, LONG);
}

static void over(void *arg, const struct sci_handled *m)
{
	struct server *s = arg;

	(void)m;
	s->over = true;
}

static int look_over(void *arg)
{
	const struct server *s = arg;

	return s->over ? 0 : -EAGAIN;
}

static void serve(struct sci_ep *ep)
{
	struct server s = { .ep = ep };

	CHECK_EQ(sci_handler_set(ep, ECHO, echo, &s), 0);
	CHECK_EQ(sci_handler_set(ep, SEND, answer_by_message, &s), 0);
	CHECK_EQ(sci_handler_set(ep, END, over, &s), 0);
	CHECK_EQ(sci_wait_until(ep, look_over, &s, TEST_WAIT_MS), 0);
}

static void server(struct peer *self, void *arg)
{
	struct pair l = { .proc = self };

	if (arg)
		l.ep = test_ep_config(TEST_ID, arg);
	else
		l.ep = test_ep_open(TEST_ID, 0);
	pair_join(&l, 4);
	serve(l.ep);
	pair_close(&l);
}

/* ---- a client that asks ---- */

struct client {
	struct pair l;
	uint64_t sent, seen;
};

static void answer(void *arg, const struct sci_handled *m)
{
	struct client *c = arg;

	CHECK(m->peer == c->l.to);
	CHECK_EQ(m->error, 0);
	/* answers come in order, each once */
	CHECK_EQ(m->tag, c->seen);
	CHECK_BYTES(m->data, m->len, m->tag);
	CHECK_EQ(m->len, lengths[m->tag % ARRAY_LEN(lengths)]);
	c->seen++;
}

static int look_answered(void *arg)
{
	const struct client *c = arg;

	return c->seen == c->sent ? 0 : -EAGAIN;
}

static void answers(struct client *c)
{
	CHECK_EQ(sci_wait_until(c->l.ep, look_answered, c, TEST_WAIT_MS), 0);
}

static void ask(struct client *c)
{
	size_t len = lengths[c->sent % ARRAY_LEN(lengths)];
	unsigned char buf[SCI_HANDLER_MAX];
	struct iovec iov[3] = {
		{ buf, len / 3 }, { buf + len / 3, 0 },
		{ buf + len / 3, len - len / 3 },
	};
	int ret;

	/* answers beyond SCI_DETACHED_MAX that wait for room would be lost */
	while (c->sent - c->seen >= SCI_DETACHED_MAX)
		sci_progress(c->l.ep);
	msg_fill(buf, len, c->sent);
	do {
		ret = c->sent & 1 ?
			      sci_handler_sendv(c->l.to, ECHO, c->sent, iov, 3) :
			      sci_handler_send(c->l.to, ECHO, c->sent, buf, len);
		CHECK(ret == 0 || ret == -EAGAIN);
		if (ret)
			sci_progress(c->l.ep);
	} while (ret);
	/* the call has copied the bytes */
	memset(buf, 0, len);
	c->sent++;
}

static struct client client_open(struct peer *p, const struct config *config)
{
	struct client c = { .l = { .proc = p } };

	if (config)
		c.l.ep = test_ep_config(TEST_ID, config);
	else
		c.l.ep = test_ep_open(TEST_ID, 0);
	pair_join(&c.l, 8);
	return c;
}

static void client_close(struct client *c)
{
	CHECK_EQ(sci_handler_send(c->l.to, END, 0, NULL, 0), 0);
	pair_close(&c->l);
	peer_join(c->l.proc);
}

/* Send messages of all lengths, with @fault and @config on both sides. */
static void check_all(const char *fault, const struct config *config,
		      unsigned int n)
{
	struct sci_ep_stats stats;
	struct client c;
	struct peer *p;

	if (fault)
		setenv("SCI_FAULT", fault, 1);
	p = peer_spawn(8, server, (void *)config);
	c = client_open(p, config);
	CHECK_EQ(sci_handler_set(c.l.ep, BACK, answer, &c), 0);
	/* one by one, then all together */
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		ask(&c);
		answers(&c);
	}
	for (unsigned int i = 0; i < n; i++)
		ask(&c);
	answers(&c);
	stats = test_ep_stats(c.l.ep);
	CHECK_EQ(stats.handled, c.sent);
	CHECK_EQ(stats.unhandled, 0);
	CHECK_EQ(stats.unexpected, 0);
	client_close(&c);
}

TEST(lengths_and_order)
{
	check_all(NULL, NULL, 5000);
}

TEST(with_one_thread)
{
	static const struct config config = { .flags = SCI_EP_SINGLE_THREAD };

	check_all(NULL, &config, 1000);
}

TEST(with_check_sums)
{
	static const struct config config = { .flags = SCI_EP_CRC };

	check_all(NULL, &config, 1000);
}

TEST(packets_are_lost)
{
	check_all("loss=0.05,reorder=0.1,seed=1", NULL, 300);
}

/* Messages to handlers are never rendezvous, whatever the parameters are. */
TEST(the_longest_eager_message_is_short)
{
	static const struct config config = {
		.n = 2, .set = { { SCI_PARAM_EAGER_MAX, 0 },
				 { SCI_PARAM_ZCOPY_MIN, 0 } },
	};

	check_all(NULL, &config, 1000);
}

TEST(small_rings)
{
	static const struct config config = {
		.n = 3, .set = { { SCI_PARAM_EAGER_RING, 4096 },
				 { SCI_PARAM_LINES_MAX, 0 },
				 { SCI_PARAM_ATTACH_AFTER, 0 } },
	};

	check_all(NULL, &config, 1000);
}

/* ---- handlers that send messages ---- */

static void check_messages(const struct config *config)
{
	struct peer *p = peer_spawn(8, server, (void *)config);
	struct client c = client_open(p, config);
	unsigned char *buf = malloc(LONG), out[SCI_HANDLER_MAX];
	struct sci_status st;

	CHECK(buf);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		msg_fill(out, lengths[i], i);
		CHECK_EQ(sci_handler_send(c.l.to, SEND, i, out, lengths[i]), 0);
	}
	for (size_t i = ARRAY_LEN(lengths); i--;) {
		size_t len = lengths[i] ? lengths[i] : LONG;

		CHECK_EQ(sci_trecv(c.l.ep, c.l.to, CONTEXT, i, 0, buf, LONG, &st), 0);
		CHECK_EQ(st.len, len);
		CHECK_EQ(st.flags, SCI_STATUS_IMM);
		CHECK_EQ(st.imm, lengths[i]);
		CHECK_BYTES(buf, len, i);
	}
	free(buf);
	client_close(&c);
}

TEST(messages_from_a_handler)
{
	static const struct config one = { .flags = SCI_EP_SINGLE_THREAD };

	check_messages(NULL);
	check_messages(&one);
}

/* ---- handlers beside messages ---- */

static void count(void *arg, const struct sci_handled *m)
{
	CHECK_EQ(m->tag, *(uint64_t *)arg);
	++*(uint64_t *)arg;
}

#define BETWEEN	100u

/* Messages without a receive do not hold up messages to handlers. */
static void sender_of_both(struct peer *self, void *arg)
{
	struct pair l = pair_open(self, 4, 0);
	char buf[200] = "";

	(void)arg;
	for (unsigned int i = 0; i < BETWEEN; i++) {
		CHECK_EQ(sci_tsend(l.to, 0, i, buf, i), 0);
		CHECK_EQ(sci_handler_send(l.to, ECHO, i, buf, i), 0);
	}
	pair_close(&l);
}

static int look_counted(void *arg)
{
	return *(uint64_t *)arg == BETWEEN ? 0 : -EAGAIN;
}

TEST(messages_that_nobody_receives)
{
	struct peer *p = peer_spawn(8, sender_of_both, NULL);
	struct sci_status st;
	struct pair l = { .proc = p };
	uint64_t n = 0;
	char buf[200];

	l.ep = test_ep_open(TEST_ID, 0);
	CHECK_EQ(sci_handler_set(l.ep, ECHO, count, &n), 0);
	pair_join(&l, 8);
	CHECK_EQ(sci_wait_until(l.ep, look_counted, &n, TEST_WAIT_MS), 0);
	for (unsigned int i = 0; i < BETWEEN; i++) {
		CHECK_EQ(sci_trecv(l.ep, l.to, 0, i, 0, buf, sizeof(buf), &st), 0);
		CHECK_EQ(st.len, i);
	}
	pair_close(&l);
	peer_join(p);
}

TEST(handlers_that_nobody_has_set)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *me = test_ep_connect(ep, 4, TEST_ID);
	char buf[100] = "";
	uint64_t n = 0;

	CHECK_EQ(sci_handler_send(me, ECHO, 0, buf, 10), 0);
	CHECK_EQ(sci_handler_send(me, ECHO, 0, buf, 100), 0);
	WAIT_UNTIL((sci_progress(ep), test_ep_stats(ep).unhandled == 2),
		   TEST_WAIT_MS);
	CHECK_EQ(sci_handler_set(ep, ECHO, count, &n), 0);
	CHECK_EQ(sci_handler_send(me, ECHO, 0, buf, 10), 0);
	WAIT_UNTIL((sci_progress(ep), n == 1), TEST_WAIT_MS);
	CHECK_EQ(sci_handler_set(ep, ECHO, NULL, NULL), 0);
	CHECK_EQ(sci_handler_send(me, ECHO, 1, buf, 10), 0);
	WAIT_UNTIL((sci_progress(ep), test_ep_stats(ep).unhandled == 3),
		   TEST_WAIT_MS);
	CHECK_EQ(n, 1);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- ends ---- */

static void dies(struct peer *self, void *arg)
{
	struct pair l = pair_open(self, 4, 0);
	char buf[100] = "";

	(void)arg;
	pair_meet(&l);
	for (unsigned int i = 0; i < 10; i++)
		CHECK_EQ(sci_handler_send(l.to, ECHO, i, buf, 100), 0);
	test_send_rows(l.ep);
	peer_send(self, "sent");
	for (;;)
		pause();
}

/* Messages of a peer that arrived before it died are delivered; answers to it are dropped. */
TEST(a_sender_that_dies)
{
	struct peer *p = peer_spawn(8, dies, NULL);
	struct server s = { 0 };
	struct pair l = pair_open(p, 8, 0);

	CHECK_EQ(sci_handler_set(l.ep, ECHO, echo, &s), 0);
	pair_meet(&l);
	peer_expect(p, "sent");
	peer_kill(p, SIGKILL);
	WAIT_UNTIL((sci_progress(l.ep), sci_peer_state(l.to) == -ECONNRESET),
		   TEST_WAIT_MS);
	CHECK_EQ(s.asked, 10);
	CHECK_EQ(sci_handler_send(l.to, ECHO, 0, NULL, 0), -ECONNRESET);
	CHECK_EQ(sci_ep_close(l.ep), 0);
}

/* Messages that are sent before the connection exists arrive later. */
TEST(a_peer_that_comes_later)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	const struct sci_addr later = { 4, 99 };
	struct sci_ep *other;
	struct sci_peer *to;
	uint64_t n = 0;

	CHECK_EQ(sci_peer_open(ep, &later, -1, &to), 0);
	for (unsigned int i = 0; i < SCI_DETACHED_MAX; i++)
		CHECK_EQ(sci_handler_send(to, ECHO, i, &n, 8), 0);
	CHECK_EQ(sci_handler_send(to, ECHO, 0, &n, 8), -EAGAIN);
	other = test_ep_open(99, 0);
	CHECK_EQ(sci_handler_set(other, ECHO, count, &n), 0);
	WAIT_UNTIL((sci_progress(ep), sci_progress(other),
		    n == SCI_DETACHED_MAX), TEST_WAIT_MS);
	CHECK_EQ(sci_ep_close(ep), 0);
	CHECK_EQ(sci_ep_close(other), 0);
}

/* ---- threads ---- */

#define THREADS	3u
#define EACH	3000u

struct crowd {
	struct sci_ep *ep;
	struct sci_peer *me;
	bool inside;			/* not atomic: handlers come one at a time */
	_Atomic unsigned int done;
};

static void one_at_a_time(void *arg, const struct sci_handled *m)
{
	struct crowd *c = arg;

	(void)m;
	CHECK(!c->inside);
	c->inside = true;
	atomic_fetch_add(&c->done, 1);
	c->inside = false;
}

static void *crowd_thread(void *arg)
{
	struct crowd *c = arg;
	char buf[60] = "";

	for (unsigned int i = 0; i < EACH; i++) {
		int ret = sci_handler_send(c->me, ECHO, i, buf, i % sizeof(buf));

		CHECK(!ret || ret == -EAGAIN);
		i -= ret == -EAGAIN;
		if (i % 7 == 0 || ret)
			sci_progress(c->ep);
	}
	return NULL;
}

TEST(threads)
{
	struct crowd c = { .ep = test_ep_open(TEST_ID, 0) };
	pthread_t t[THREADS];

	c.me = test_ep_connect(c.ep, 4, TEST_ID);
	CHECK_EQ(sci_handler_set(c.ep, ECHO, one_at_a_time, &c), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_create(&t[i], NULL, crowd_thread, &c), 0);
	for (unsigned int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
	WAIT_UNTIL((sci_progress(c.ep),
		    atomic_load(&c.done) == THREADS * EACH), TEST_WAIT_MS);
	CHECK_EQ(sci_ep_close(c.ep), 0);
}

/* ---- what is refused ---- */

TEST(arguments_that_make_no_sense)
{
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *me = test_ep_connect(ep, 4, TEST_ID);
	static char buf[SCI_HANDLER_MAX + 1];
	struct iovec iov[2] = { { buf, SCI_HANDLER_MAX }, { buf, 1 } };

	CHECK_EQ(sci_handler_set(NULL, ECHO, count, NULL), -EINVAL);
	CHECK_EQ(sci_handler_set(ep, SCI_HANDLERS, count, NULL), -EINVAL);
	CHECK_EQ(sci_handler_set(ep, SCI_HANDLER_LIBRARY - 1, count, NULL),
		 -EINVAL);
	CHECK_EQ(sci_handler_set(ep, SCI_HANDLER_LIBRARY, NULL, NULL), 0);
	CHECK_EQ(sci_handler_send(NULL, ECHO, 0, buf, 1), -EINVAL);
	CHECK_EQ(sci_handler_send(me, SCI_HANDLERS, 0, buf, 1), -EINVAL);
	CHECK_EQ(sci_handler_send(me, 0, 0, buf, 1), -EINVAL);
	CHECK_EQ(sci_handler_send(me, ECHO, 0, NULL, 1), -EINVAL);
	CHECK_EQ(sci_handler_send(me, ECHO, 0, buf, sizeof(buf)), -EMSGSIZE);
	CHECK_EQ(sci_handler_sendv(me, ECHO, 0, NULL, 1), -EINVAL);
	CHECK_EQ(sci_handler_sendv(me, ECHO, 0, iov, SCI_IOV_MAX + 1), -EINVAL);
	CHECK_EQ(sci_handler_sendv(me, ECHO, 0, iov, 2), -EMSGSIZE);
	CHECK_EQ(sci_handler_sendv(me, ECHO, 0, NULL, 0), 0);
	CHECK_EQ(sci_wait_until(NULL, look_counted, buf, 0), -EINVAL);
	CHECK_EQ(sci_wait_until(ep, NULL, buf, 0), -EINVAL);
	CHECK_EQ(sci_wait_until(ep, look_counted, buf, 1), -ETIMEDOUT);
	CHECK_EQ(sci_ep_close(ep), 0);
}

static void waits_inside(void *arg, const struct sci_handled *m)
{
	(void)m;
	sci_progress(arg);
}

/* A handler that makes progress would wait for itself: the library aborts. */
TEST(a_handler_that_waits_is_found_out)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		struct sci_ep *ep = test_ep_open(TEST_ID, 0);
		struct sci_peer *me = test_ep_connect(ep, 4, TEST_ID);

		signal(SIGABRT, SIG_DFL);
		CHECK_EQ(sci_handler_set(ep, ECHO, waits_inside, ep), 0);
		CHECK_EQ(sci_handler_send(me, ECHO, 0, NULL, 0), 0);
		WAIT_UNTIL((sci_progress(ep), false), TEST_WAIT_MS);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGABRT);
}
