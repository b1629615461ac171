// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The data path makes no system call.
 *
 * A test sets everything up, lets its traffic run until all that a first
 * message creates is there, and then forbids itself all system calls: a filter
 * in the kernel turns the next call into a signal, and the handler into a
 * failure that names the call.  A filter cannot be removed, so the process ends
 * where the test has passed.  One thread has both endpoints: no call has to
 * wait, which would allow a system call.
 *
 * The clock is a call where the kernel can't lend it to programs, as in a VM
 * without KVM; there it is caught too, because no test needs it.  Messages that
 * receivers read out of private memory (SCI_PARAM_SINGLE_COPY_MIN) take a call
 * each and do not appear.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <sci/msg.h>
#include <sisci_api.h>

#include "selftests/harness.h"
#include "selftests/msg/peers.h"

#if defined(__x86_64__)
#define ARCH	AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH	AUDIT_ARCH_AARCH64
#else
#error "which AUDIT_ARCH_ is this?"
#endif

/* ---- no system calls from here on ---- */

static int expected = -1;		/* a call that must be caught */

/* Sanitizers make calls of their own in _exit(), and before any noreturn function. */
static void end_well(void)
{
	syscall(SYS_exit_group, 0);
}

static void caught(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	if (info->si_syscall == expected)
		end_well();
	/* NOLINTNEXTLINE(bugprone-signal-handler,cert-sig30-c): the process ends here */
	test_note("system call %d", info->si_syscall);
	/* a call in the handler kills the process, and the harness names the check */
	syscall(info->si_syscall, -1, 0, 0, 0, 0, 0);
}

#define LOAD(field)							\
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* Skip @yes or @no lines. */
#define IF(value, yes, no)						\
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define RETURN(value)	BPF_STMT(BPF_RET | BPF_K, value)

/*
 * Allow only the calls that end a test: exit_group(), and write() to standard
 * output, which only FAIL() makes.
 */
static void forbid_calls(void)
{
	static struct sock_filter lines[] = {
		LOAD(arch),
		IF(ARCH, 0, 6),
		LOAD(nr),
		IF(SYS_exit_group, 3, 0),
		IF(SYS_write, 0, 3),
		LOAD(args[0]),		/* lower half of the argument */
		IF(STDOUT_FILENO, 0, 1),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_TRAP),
	};
	static const struct sock_fprog filter = { ARRAY_LEN(lines), lines };
	struct sigaction trap = { .sa_sigaction = caught,
				  .sa_flags = SA_SIGINFO };

	CHECK_EQ(sigaction(SIGSYS, &trap, NULL), 0);
	CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		SKIP("no filters for system calls here: %s", strerror(errno));
}

static void caught_call(int nr, long arg)
{
	if (TEST_TSAN)
		SKIP("the thread sanitizer's signal handlers make calls");
	expected = nr;
	forbid_calls();
	syscall(nr, arg, 0, 0);
	FAIL("system call %d was not caught", nr);
}

TEST(a_call_is_caught)
{
	caught_call(SYS_getppid, 0);
}

TEST(a_write_is_caught)
{
	caught_call(SYS_write, STDERR_FILENO);
}

TEST(the_clock_is_caught)
{
	caught_call(SYS_clock_gettime, 0);
}

/* ---- messages ---- */

#define BURST	64u			/* more than fit into a ring */
#define CONTEXT	5u

enum exported { NOTHING, FROM, TO };

/* Messages of one kind, and the counter of their protocol. */
struct kind {
	size_t len;
	unsigned int n;
	unsigned int burst;		/* 0: BURST */
	bool tagged;
	bool lines;			/* in lines of the small ring */
	enum exported exported;
	size_t counter;			/* offset in struct sci_ep_stats */
};

#define COUNTED(name)	.counter = offsetof(struct sci_ep_stats, name)

struct traffic {
	const struct kind *kind;
	unsigned int burst;
	struct sci_ep *ep[2];
	struct sci_peer *to[2];		/* ep[i]'s connection to the other */
	unsigned char *from[2], *at[2];	/* a burst of messages each */
	size_t stride;
	unsigned int sent;
};

static void *accept_one(void *ep)
{
	return test_ep_accept(ep);
}

static void open_ends(struct traffic *t)
{
	const struct config config = {
		.n = 4,
		.set = { { SCI_PARAM_LINES_MAX, t->kind->lines ? 512 : 64 },
			 { SCI_PARAM_EAGER_MAX, 4096 },
			 { SCI_PARAM_ZCOPY_MIN, 4096 },
			 { SCI_PARAM_SINGLE_COPY_MIN, UINT64_MAX } },
	};
	pthread_t accepter;
	void *peer;

	t->ep[0] = test_ep_config(1, &config);
	t->ep[1] = test_ep_config(2, &config);
	CHECK_EQ(pthread_create(&accepter, NULL, accept_one, t->ep[1]), 0);
	t->to[0] = test_ep_connect(t->ep[0], 4, 2);
	CHECK_EQ(pthread_join(accepter, &peer), 0);
	t->to[1] = peer;
}

static unsigned char *pages(size_t size, struct sci_ep *exporter)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	memset(p, 0, size);
	if (exporter)
		CHECK_EQ(sci_buf_register(exporter, p, size), 0);
	return p;
}

static void make_buffers(struct traffic *t)
{
	enum exported e = t->kind->exported;
	size_t size;

	t->stride = (t->kind->len + 63) & ~(size_t)63;
	size = (t->stride * t->burst + 4095) & ~(size_t)4095;
	for (int i = 0; i < 2; i++) {
		t->from[i] = pages(size, e == FROM ? t->ep[i] : NULL);
		t->at[i] = pages(size, e == TO ? t->ep[i] : NULL);
		msg_fill(t->from[i], size, i);
	}
}

/* Make progress on both ends until all requests have completed. */
static void finish(struct sci_req **reqs, unsigned int n)
{
	unsigned int left;

	do {
		left = 0;
		for (unsigned int i = 0; i < n; i++) {
			int ret = reqs[i] ? sci_test(reqs[i], NULL) : 0;

			left += ret == -EAGAIN;
			if (ret == -EAGAIN)
				continue;
			CHECK_EQ(ret, 0);
			reqs[i] = NULL;
		}
	} while (left);
}

static void start(struct traffic *t, int dir, unsigned int i,
		  struct sci_req **reqs)
{
	const struct kind *k = t->kind;
	unsigned char *from = t->from[dir] + i * t->stride;
	unsigned char *at = t->at[!dir] + i * t->stride;

	memcpy(from, &t->sent, sizeof(t->sent));
	t->sent++;
	if (k->tagged) {
		CHECK_EQ(sci_itrecv(t->ep[!dir], NULL, CONTEXT, i, 0, at,
				    k->len, &reqs[0]), 0);
		CHECK_EQ(sci_itsend(t->to[dir], CONTEXT, i, from, k->len,
				    &reqs[1]), 0);
	} else {
		CHECK_EQ(sci_irecv(t->ep[!dir], t->to[!dir], at, k->len,
				   &reqs[0]), 0);
		CHECK_EQ(sci_isend(t->to[dir], from, k->len, &reqs[1]), 0);
	}
}

/* Send a burst each way. */
static void there_and_back(struct traffic *t)
{
	struct sci_req *reqs[2 * BURST];

	for (int dir = 0; dir < 2; dir++) {
		for (unsigned int i = 0; i < t->burst; i++)
			start(t, dir, i, &reqs[2 * i]);
		finish(reqs, 2 * t->burst);
		for (unsigned int i = 0; i < t->burst; i++)
			CHECK(!memcmp(t->from[dir] + i * t->stride,
				      t->at[!dir] + i * t->stride,
				      t->kind->len));
	}
}

static uint64_t counted(const struct traffic *t)
{
	uint64_t sum = 0;

	for (int i = 0; i < 2; i++) {
		struct sci_ep_stats stats = test_ep_stats(t->ep[i]);

		sum += *(uint64_t *)((char *)&stats + t->kind->counter);
	}
	return sum;
}

/* Wait until nothing that the connects have begun is under way. */
static void settle(struct traffic *t)
{
	WAIT_UNTIL(others_asleep(), TEST_WAIT_MS);
	for (int i = 0; i < 2; i++)
		while (sci_progress(t->ep[i]) > 0)
			;
}

static void run(const struct kind *k)
{
	struct traffic t = { .kind = k, .burst = k->burst ? k->burst : BURST };
	uint64_t before;

	open_ends(&t);
	make_buffers(&t);
	for (int i = 0; i < 4; i++)
		there_and_back(&t);
	settle(&t);
	there_and_back(&t);
	before = counted(&t);
	t.sent = 0;
	forbid_calls();
	while (t.sent < k->n)
		there_and_back(&t);
	/* the messages have gone by the expected protocol */
	CHECK_EQ(counted(&t) - before, t.sent);
	end_well();
}

#define TRAFFIC(name, ...)						\
TEST(name)								\
{									\
	static const struct kind k = { __VA_ARGS__ };	\
									\
	run(&k);							\
}

TRAFFIC(short_messages, .len = 62, .n = 100000, COUNTED(sent_short))
TRAFFIC(tagged_short_messages, .len = 48, .n = 100000, .tagged = true,
	COUNTED(sent_short))
TRAFFIC(messages_of_several_lines, .len = 300, .n = 100000, .lines = true,
	COUNTED(sent_lines))
TRAFFIC(eager_messages, .len = 300, .n = 100000, COUNTED(sent_eager))
TRAFFIC(longer_eager_messages, .len = 3000, .n = 100000, COUNTED(sent_eager))
TRAFFIC(tagged_eager_messages, .len = 3000, .n = 10000, .tagged = true,
	COUNTED(sent_eager))
TRAFFIC(messages_in_blocks, .len = 100000, .n = 2000, .burst = 4,
	COUNTED(sent_rendezvous))
TRAFFIC(messages_into_exported_memory, .len = 100000, .n = 2000, .burst = 4,
	.exported = TO, COUNTED(sent_zcopy))
TRAFFIC(messages_out_of_exported_memory, .len = 100000, .n = 2000, .burst = 4,
	.exported = FROM, COUNTED(sent_zcopy))

/* Blocking calls do not read the clock before they have to wait. */
static void call_and_answer(struct traffic *t, int dir)
{
	unsigned int i = t->sent++, got[2] = { ~i, ~i };

	CHECK_EQ(sci_send(t->to[dir], &i, sizeof(i)), 0);
	CHECK_EQ(sci_recv(t->ep[!dir], t->to[!dir], &got[0], sizeof(i), NULL),
		 0);
	CHECK_EQ(sci_tsend(t->to[dir], CONTEXT, i, &i, sizeof(i)), 0);
	CHECK_EQ(sci_trecv(t->ep[!dir], NULL, CONTEXT, i, 0, &got[1],
			   sizeof(i), NULL), 0);
	CHECK_EQ(got[0], i);
	CHECK_EQ(got[1], i);
}

TEST(blocking_calls_that_need_not_wait)
{
	static const struct kind k = { .len = sizeof(unsigned int) };
	struct traffic t = { .kind = &k };

	open_ends(&t);
	while (t.sent < 1000)
		call_and_answer(&t, t.sent % 2);
	settle(&t);
	call_and_answer(&t, 0);
	call_and_answer(&t, 1);
	forbid_calls();
	while (t.sent < 50000)
		call_and_answer(&t, t.sent % 2);
	end_well();
}

/* ---- SISCI ---- */

#define SEGMENT		7u
#define SIZE		((size_t)65536)
#define ROUNDS		100000u

struct view {
	sci_map_t map, mine;
	sci_sequence_t seq;
	volatile unsigned char *remote;
};

static void owner(struct peer *self, void *arg)
{
	(void)arg;
	test_segment(test_open(), SEGMENT, SIZE, 0);
	peer_send(self, "ready");
	peer_expect(self, "leave");
}

static struct view view_open(struct peer *p)
{
	sci_desc_t sd = test_open();
	struct view v;

	test_map_local(test_segment(sd, SEGMENT, SIZE, 0), &v.mine);
	peer_expect(p, "ready");
	v.remote = test_map_remote(test_connect(sd, 8, SEGMENT), &v.map);
	CHECK_OK(SCICreateMapSequence(v.map, &v.seq, 0, &err));
	return v;
}

static void begin(const struct view *v)
{
	sci_sequence_status_t st;

	CHECK_OK(st = SCIStartSequence(v->seq, 0, &err));
	CHECK_EQ(st, SCI_SEQ_OK);
}

static void check(const struct view *v, unsigned int flags)
{
	sci_sequence_status_t st;

	CHECK_OK(st = SCICheckSequence(v->seq, flags, &err));
	CHECK_EQ(st, SCI_SEQ_OK);
}

static void stores(const struct view *v, unsigned int i)
{
	size_t at = 8 * (i % (SIZE / 8));

	begin(v);
	*(volatile unsigned int *)(v->remote + at) = i;
	SCIStoreBarrier(v->seq, 0);
	check(v, SCI_FLAG_NO_STORE_BARRIER);
	check(v, SCI_FLAG_NO_FLUSH);
	SCIFlush(v->seq, SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY);
	SCIFlush(NULL, 0);
	SCIFlushReadBuffers(v->seq);
	check(v, 0);
	CHECK_EQ(*(volatile unsigned int *)(v->remote + at), i);
}

static void copies(const struct view *v, unsigned int i)
{
	unsigned char to[4096], from[4096];
	size_t len = 1 + i % sizeof(to), off = i % (SIZE - sizeof(to));

	memset(from, (int)i, len);
	begin(v);
	CHECK_OK(SCIMemCpy(v->seq, from, v->map, off, len, 0, &err));
	CHECK_OK(SCIMemCpy(NULL, from, v->map, off, len, 0, &err));
	CHECK_OK(SCIMemCpy(v->seq, from, v->map, off, len,
			   SCI_FLAG_ERROR_CHECK, &err));
	CHECK_OK(SCIMemCopy(from, v->map, off, len, 0, &err));
	CHECK_OK(SCIMemWrite(from, v->remote + off, len, 0, &err));
	check(v, 0);
	CHECK_OK(SCIMemCpy(v->seq, to, v->map, off, len, SCI_FLAG_BLOCK_READ,
			   &err));
	CHECK(!memcmp(to, from, len));
}

/* Transfer a block from map to map. */
static void blocks(const struct view *v, unsigned int i)
{
	size_t off = i % (SIZE - 4096);

	CHECK_OK(SCITransferBlock(v->mine, off, v->map, off, 4096, 0, &err));
	CHECK_OK(SCITransferBlock(v->map, off, v->mine, 0, 4096, 0, &err));
}

static void through_a_map(void (*fn)(const struct view *v, unsigned int i),
			  unsigned int n)
{
	struct peer *p = peer_spawn(8, owner, NULL);
	struct view v = view_open(p);

	fn(&v, 0);
	forbid_calls();
	for (unsigned int i = 0; i < n; i++)
		fn(&v, i);
	end_well();
}

TEST(stores_and_sequences)
{
	through_a_map(stores, ROUNDS);
}

TEST(copies_through_maps)
{
	through_a_map(copies, ROUNDS / 2);
}

TEST(transfers_between_maps)
{
	through_a_map(blocks, ROUNDS / 10);
}
