// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The operations of a fabric that only message layers use, and not SISCI. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sisci_api.h>

#include "libsci/base/barrier.h"
#include "libsci/fabric/core/fabric.h"
#include "libsci/fabric/core/fault.h"
#include "selftests/harness.h"

#define SIZE	65536u

static void no_event(void *owner, const struct sci_event *ev)
{
	(void)owner;
	(void)ev;
}

static struct sci_fabric *join(void)
{
	struct sci_fabric *f;

	CHECK_EQ(sci_fabric_open(&f), 0);
	return f;
}

static struct sci_lseg *export(struct sci_fabric *f, uint32_t id, size_t size,
			       unsigned int flags, void **addr)
{
	const struct sci_lseg_param param = {
		.id = id, .size = size, .flags = flags, .event = no_event,
	};
	struct sci_lseg *s;

	CHECK_EQ(f->ops->lseg.create(f, &param, &s), 0);
	CHECK_EQ(f->ops->lseg.map(s, 0, size, 0, addr), 0);
	CHECK_EQ(f->ops->lseg.export(s, 0), 0);
	return s;
}

static struct sci_rseg *import(struct sci_fabric *f, unsigned int node,
			       uint32_t id, size_t size, void **addr)
{
	const struct sci_rseg_param param = {
		.node = node, .id = id, .timeout = 5000, .event = no_event,
	};
	struct sci_rseg *r;

	WAIT_UNTIL(!f->ops->rseg.connect(f, &param, &r), TEST_WAIT_MS);
	CHECK_EQ(f->ops->rseg.map(r, 0, size, 0, addr), 0);
	return r;
}

static void drop_export(struct sci_fabric *f, struct sci_lseg *s, void *addr)
{
	f->ops->unmap(f, addr, SIZE);
	f->ops->lseg.destroy(s);
}

static void drop_import(struct sci_fabric *f, struct sci_rseg *r, void *addr)
{
	sci_fault_forget(addr, SIZE);
	f->ops->unmap(f, addr, SIZE);
	f->ops->rseg.disconnect(r);
}

/* ---- descriptors of interrupts ---- */

static int create(struct sci_fabric *f, unsigned int flags, sci_event_fn event,
		  struct sci_lintr **out)
{
	struct sci_lintr_param param = {
		.number = 7, .flags = flags, .event = event,
	};

	return f->ops->lintr.create(f, &param, out);
}

static struct sci_rintr *trigger_of(struct sci_fabric *f, unsigned int node)
{
	const struct sci_rintr_param param = {
		.node = node, .number = 7, .timeout = 5000,
	};
	struct sci_rintr *i;

	WAIT_UNTIL(!f->ops->rintr.connect(f, &param, &i), TEST_WAIT_MS);
	return i;
}

static bool readable(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	CHECK(poll(&pfd, 1, ms) >= 0);
	return pfd.revents & POLLIN;
}

static int take(struct sci_fabric *f, struct sci_lintr *i)
{
	size_t len = 0;

	return f->ops->lintr.wait(i, NULL, &len, 0);
}

/* Check the descriptor of an interrupt. @latched: number of interrupts after two triggers. */
static void check_descriptor(unsigned int flags, int latched)
{
	struct sci_fabric *f = join();
	struct sci_rintr *r;
	struct sci_lintr *i;
	int fd;

	CHECK_EQ(create(f, SCI_INTR_FIXED | flags, NULL, &i), 0);
	fd = f->ops->lintr.fd(i);
	CHECK(fd >= 0);
	r = trigger_of(f, 4);
	CHECK(!readable(fd, 0));
	CHECK_EQ(take(f, i), -ETIMEDOUT);
	for (int round = 0; round < 3; round++) {
		CHECK_EQ(f->ops->rintr.trigger(r, NULL, 0), 0);
		CHECK_EQ(f->ops->rintr.trigger(r, NULL, 0), 0);
		for (int k = 0; k < latched; k++) {
			/* poll() consumes no interrupt */
			CHECK(readable(fd, 0) && readable(fd, 0));
			CHECK_EQ(take(f, i), 0);
		}
		CHECK(!readable(fd, 0));
		CHECK_EQ(take(f, i), -ETIMEDOUT);
	}
	CHECK_EQ(f->ops->lintr.fd(i), fd);
	f->ops->lintr.cancel(i);
	CHECK(readable(fd, 0));
	CHECK_EQ(take(f, i), -ECANCELED);
	f->ops->rintr.disconnect(r);
	f->ops->lintr.destroy(i);
	sci_fabric_close(f);
}

TEST(an_interrupt_to_poll)
{
	check_descriptor(0, 1);
}

TEST(a_counting_interrupt_to_poll)
{
	check_descriptor(SCI_INTR_COUNTING, 2);
}

TEST(a_shared_interrupt_to_poll)
{
	check_descriptor(SCI_INTR_SHARED, 1);
}

static void trigger_once(struct peer *self, void *arg)
{
	struct sci_fabric *f = join();
	struct sci_rintr *r;

	(void)arg;
	peer_expect(self, "go");
	r = trigger_of(f, 4);
	WAIT_UNTIL(test_process(getppid()).state == 'S', TEST_WAIT_MS);
	CHECK_EQ(f->ops->rintr.trigger(r, NULL, 0), 0);
	peer_expect(self, "leave");
	f->ops->rintr.disconnect(r);
	sci_fabric_close(f);
}

TEST(a_trigger_ends_a_poll)
{
	struct peer *p = peer_spawn(8, trigger_once, NULL);
	struct sci_fabric *f = join();
	struct sci_lintr *i;

	CHECK_EQ(create(f, SCI_INTR_FIXED, NULL, &i), 0);
	peer_send(p, "go");
	CHECK(readable(f->ops->lintr.fd(i), TEST_WAIT_MS));
	CHECK_EQ(take(f, i), 0);
	CHECK(!readable(f->ops->lintr.fd(i), 0));
	peer_send(p, "leave");
	peer_join(p);
	f->ops->lintr.destroy(i);
	sci_fabric_close(f);
}

/* ---- segments with a bell, for one importer ---- */

struct importers {
	_Atomic unsigned int came, left, lost, rang;
};

static void importer_event(void *owner, const struct sci_event *ev)
{
	struct importers *seen = owner;

	atomic_fetch_add(ev->type == SCI_EVENT_CONNECT ? &seen->came :
			 ev->type == SCI_EVENT_RANG ? &seen->rang :
			 ev->type == SCI_EVENT_LOST ? &seen->lost : &seen->left, 1);
}

/* A segment of this process with a bell, for one importer. */
struct belled {
	struct sci_fabric *f;
	struct sci_lintr *bell;
	struct sci_lseg *s;
	struct importers seen;
	void *addr;
};

static void belled_open(struct belled *b)
{
	struct sci_lseg_param param = {
		.id = 1, .size = SIZE, .flags = SCI_LSEG_ONCE, .event = importer_event,
		.owner = &b->seen,
	};

	b->f = join();
	if (!b->f->ops->ring) {
		sci_fabric_close(b->f);
		SKIP("segments of this fabric have no bells");
	}
	CHECK_EQ(create(b->f, SCI_INTR_FIXED, NULL, &b->bell), 0);
	param.bell = b->bell;
	CHECK_EQ(b->f->ops->lseg.create(b->f, &param, &b->s), 0);
	CHECK_EQ(b->f->ops->lseg.map(b->s, 0, SIZE, 0, &b->addr), 0);
	CHECK_EQ(b->f->ops->lseg.export(b->s, 0), 0);
}

static void belled_close(struct belled *b)
{
	drop_export(b->f, b->s, b->addr);
	b->f->ops->lintr.destroy(b->bell);
	sci_fabric_close(b->f);
}

TEST(a_bell_belongs_to_a_segment)
{
	const struct sci_rseg_param param = {
		.node = 4, .id = 1, .timeout = 5000, .event = no_event,
	};
	struct belled b = { 0 };
	struct sci_rseg *r, *second;
	void *addr;

	belled_open(&b);
	r = import(b.f, 4, 1, SIZE, &addr);
	CHECK_EQ(take(b.f, b.bell), -ETIMEDOUT);
	for (int round = 0; round < 3; round++) {
		atomic_store(&b.seen.rang, 0);
		for (int k = 0; k < 1000; k++)
			CHECK_EQ(b.f->ops->ring(r), 0);
		CHECK(readable(b.f->ops->lintr.fd(b.bell), TEST_WAIT_MS));
		CHECK_EQ(take(b.f, b.bell), 0);
		/* the segment knew that its importer rang before the bell did */
		CHECK(atomic_load(&b.seen.rang));
		while (!take(b.f, b.bell))
			;
		CHECK(!readable(b.f->ops->lintr.fd(b.bell), 0));
	}
	/* the memory works, and a second importer is refused */
	test_fill(addr, SIZE, 5);
	CHECK(test_filled(b.addr, SIZE, 5));
	CHECK_EQ(b.f->ops->rseg.connect(b.f, &param, &second), -ENOENT);
	CHECK_EQ(b.f->ops->lseg.importers(b.s), 1);
	/* a ring before the disconnect is kept, and the importer has left and is not lost */
	CHECK_EQ(b.f->ops->ring(r), 0);
	drop_import(b.f, r, addr);
	CHECK_EQ(b.f->ops->lseg.importers(b.s), 0);
	CHECK_EQ(take(b.f, b.bell), 0);
	WAIT_UNTIL(atomic_load(&b.seen.left), TEST_WAIT_MS);
	CHECK_EQ(atomic_load(&b.seen.came), 1);
	CHECK_EQ(atomic_load(&b.seen.lost), 0);
	belled_close(&b);
}

static void ring_until_death(struct peer *self, void *arg)
{
	struct sci_fabric *f = join();
	struct sci_rseg *r;
	void *addr;

	(void)arg;
	peer_expect(self, "go");
	r = import(f, 4, 1, SIZE, &addr);
	CHECK_EQ(f->ops->ring(r), 0);
	peer_expect(self, "leave");
	/* the owner has disconnected */
	WAIT_UNTIL(f->ops->ring(r) == -ENOTCONN, TEST_WAIT_MS);
	drop_import(f, r, addr);
	sci_fabric_close(f);
}

TEST(a_bell_is_rung_by_a_peer_that_dies)
{
	struct peer *p = peer_spawn(8, ring_until_death, NULL);
	struct belled b = { 0 };

	belled_open(&b);
	peer_send(p, "go");
	CHECK(readable(b.f->ops->lintr.fd(b.bell), TEST_WAIT_MS));
	peer_kill(p, SIGKILL);
	WAIT_UNTIL(atomic_load(&b.seen.lost), TEST_WAIT_MS);
	CHECK_EQ(take(b.f, b.bell), 0);
	CHECK_EQ(take(b.f, b.bell), -ETIMEDOUT);
	CHECK_EQ(atomic_load(&b.seen.left), 0);
	belled_close(&b);
}

TEST(a_bell_is_gone_with_its_segment)
{
	struct peer *p = peer_spawn(8, ring_until_death, NULL);
	struct belled b = { 0 };

	belled_open(&b);
	peer_send(p, "go");
	CHECK(readable(b.f->ops->lintr.fd(b.bell), TEST_WAIT_MS));
	belled_close(&b);
	peer_send(p, "leave");
	peer_join(p);
}

TEST(interrupts_without_a_descriptor)
{
	struct sci_fabric *f = join();
	struct sci_lintr *i;

	CHECK_EQ(create(f, SCI_INTR_FIXED, no_event, &i), 0);
	CHECK_EQ(f->ops->lintr.fd(i), -EOPNOTSUPP);
	f->ops->lintr.destroy(i);
	CHECK_EQ(create(f, SCI_INTR_FIXED | SCI_INTR_DATA, NULL, &i), 0);
	CHECK_EQ(f->ops->lintr.fd(i), -EOPNOTSUPP);
	f->ops->lintr.destroy(i);
	sci_fabric_close(f);
}

/* ---- the barrier before a sleep ---- */

static bool takes_part(struct sci_fabric *f)
{
	struct sci_adapter_info info;

	CHECK_EQ(f->ops->query.adapter(f, 0, &info), 0);
	CHECK_EQ(info.wake_barrier, f->ops->wake_barrier(f) == 0);
	return info.wake_barrier;
}

#define ROUNDS		20000u
#define ROUNDS_MS	4000u		/* ... or as many as fit into this time */
#define JAM		40u		/* less than the size of a store buffer */

struct cell {
	volatile uint32_t word;
	unsigned char pad[128 - sizeof(uint32_t)];
};

/*
 * Part of a segment of the sleeper. The message is stored after stores that miss cache and TLB.
 * Otherwise it would be seen before a system call ends, even without a barrier.
 */
struct litmus {
	_Alignas(4096) struct cell turns[2];
	struct cell message;
	struct cell asleep;
	struct cell over;
	struct cell missed[ROUNDS];	/* message lost, according to the sender */
	struct {
		struct cell cell;
		unsigned char pad[4096 + 64 - sizeof(struct cell)];
	} jam[JAM];
};

/* Both processes leave this at the same time if each has a CPU. */
static void meet(struct litmus *l, unsigned int me, uint32_t round)
{
	unsigned int spins = 0;

	sci_store_release(&l->turns[me].word, round + 1);
	while (sci_load_acquire(&l->turns[!me].word) <= round) {
		sci_cpu_relax();
		if (!(++spins % 16384))
			sched_yield();
	}
}

static void delay(uint32_t n)
{
	while (n--)
		sci_cpu_relax();
}

static void clear_caches(struct litmus *l)
{
	for (unsigned int k = 0; k < JAM; k++)
		sci_cache_flush(&l->jam[k].cell, sizeof(l->jam[k].cell));
}

static void send_message(struct litmus *l, uint32_t round)
{
	for (unsigned int k = 0; k < JAM; k++)
		sci_store_relaxed(&l->jam[k].cell.word, round);
	sci_store_relaxed(&l->message.word, round + 1);
	/* volatile accesses: the compiler keeps their order, the CPU may not */
	if (sci_load_relaxed(&l->asleep.word) != round + 1)
		sci_store_relaxed(&l->missed[round].word, 1);
}

static void sender(struct peer *self, void *arg)
{
	struct sci_fabric *f = join();
	struct sci_rseg *r;
	struct litmus *l;
	void *addr;

	(void)arg;
	peer_expect(self, "go");
	CHECK(takes_part(f));
	r = import(f, 4, 1, sizeof(*l), &addr);
	l = addr;
	for (uint32_t i = 0; !sci_load_relaxed(&l->over.word); i++) {
		clear_caches(l);
		meet(l, 1, 2 * i);
		delay(i / 16 % 16);
		send_message(l, i);
		meet(l, 1, 2 * i + 1);
	}
	f->ops->unmap(f, addr, sizeof(*l));
	f->ops->rseg.disconnect(r);
	sci_fabric_close(f);
}

/* Return the number of rounds. */
static uint32_t sleep_often(struct sci_fabric *f, struct litmus *l,
			    bool *missed)
{
	uint64_t end = test_now_ms() + ROUNDS_MS;
	bool over = false;
	uint32_t i;

	for (i = 0; !over; i++) {
		over = i == ROUNDS - 1 || test_now_ms() > end;
		meet(l, 0, 2 * i);
		delay(i % 16);
		sci_store_relaxed(&l->asleep.word, i + 1);
		f->ops->wake_barrier(f);
		missed[i] = sci_load_relaxed(&l->message.word) != i + 1;
		sci_store_relaxed(&l->over.word, over);
		meet(l, 0, 2 * i + 1);
	}
	return i;
}

static void count_misses(const struct litmus *l, const bool *missed,
			 uint32_t rounds)
{
	unsigned int both = 0, mine = 0, theirs = 0;

	for (uint32_t i = 0; i < rounds; i++) {
		mine += missed[i];
		theirs += l->missed[i].word;
		both += missed[i] && l->missed[i].word;
	}
	test_note("of %u: sleeper missed %u, waker %u, both %u", rounds, mine,
		  theirs, both);
	CHECK_EQ(both, 0);
}

TEST(a_sleeper_and_its_waker_never_miss_each_other)
{
	static bool missed[ROUNDS];
	struct peer *p = peer_spawn(8, sender, NULL);
	struct sci_fabric *f = join();
	struct sci_lseg *s;
	uint32_t rounds;
	void *addr;

	if (!takes_part(f)) {
		peer_kill(p, SIGKILL);
		SKIP("no membarrier() here");
	}
	s = export(f, 1, sizeof(struct litmus), 0, &addr);
	peer_send(p, "go");
	rounds = sleep_often(f, addr, missed);
	peer_join(p);
	count_misses(addr, missed, rounds);
	f->ops->unmap(f, addr, sizeof(struct litmus));
	f->ops->lseg.destroy(s);
	sci_fabric_close(f);
}

TEST(who_takes_no_part_says_so)
{
	struct sci_fabric *f;

	test_needs_shm();
	setenv("SCI_MEMBARRIER", "0", 1);
	f = join();
	CHECK(!takes_part(f));
	CHECK_EQ(f->ops->wake_barrier(f), -EOPNOTSUPP);
	sci_fabric_close(f);
	setenv("SCI_MEMBARRIER", "2", 1);
	CHECK_EQ(sci_fabric_open(&f), -EINVAL);
	unsetenv("SCI_MEMBARRIER");
	f = join();
	if (!takes_part(f))
		SKIP("no membarrier() here");
	sci_fabric_close(f);
}

TEST(a_forked_child_takes_part_again)
{
	struct sci_fabric *f = join();
	bool parent = takes_part(f);
	pid_t pid = test_fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		/* the thread sanitizer forbids threads in this child */
		struct sci_fabric *g = join();
		bool child = takes_part(g);

		sci_fabric_close(g);
		_exit(child == parent ? 0 : 1);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	sci_fabric_close(f);
}

/* ---- reading the memory of a peer ---- */

#define PRIVATE	((size_t)5 << 20)

struct addresses {
	uint64_t data;
	uint64_t hole;			/* the second page is inaccessible */
};

static void reading_owner(struct peer *self, void *arg)
{
	struct sci_fabric *f = join();
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *data = malloc(PRIVATE);
	struct addresses at;
	struct sci_lseg *s;
	void *addr;
	char *hole;

	(void)arg;
	CHECK(data);
	test_fill(data, PRIVATE, 3);
	hole = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(hole != MAP_FAILED);
	CHECK_EQ(mprotect(hole + page, page, PROT_NONE), 0);
	s = export(f, 1, SIZE, 0, &addr);
	at.data = (uintptr_t)data;
	at.hole = (uintptr_t)hole;
	PEER_PUT(self, at);
	peer_expect(self, "leave");
	munmap(hole, 2 * page);
	free(data);
	drop_export(f, s, addr);
	sci_fabric_close(f);
}

static void needs_peer_read(struct peer *p, struct sci_fabric *f,
			    struct sci_rseg *r, uint64_t from)
{
	char c;

	if (sci_peer_read(f, r, &c, from, 1) != -EOPNOTSUPP)
		return;
	peer_kill(p, SIGKILL);
	SKIP("another process's memory may not be read here");
}

TEST(memory_of_a_peer)
{
	struct peer *p = peer_spawn(8, reading_owner, NULL);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *to = malloc(PRIVATE + 2);
	unsigned char *whole = malloc(PRIVATE);
	struct sci_fabric *f = join();
	struct addresses at;
	struct sci_rseg *r;
	void *addr;

	CHECK(to && whole);
	PEER_GET(p, at);
	r = import(f, 8, 1, SIZE, &addr);
	needs_peer_read(p, f, r, at.data);
	test_fill(whole, PRIVATE, 3);
	memset(to, 0xee, PRIVATE + 2);
	CHECK_EQ(sci_peer_read(f, r, to + 1, at.data, PRIVATE), 0);
	CHECK(!memcmp(to + 1, whole, PRIVATE));
	CHECK(to[0] == 0xee && to[PRIVATE + 1] == 0xee);
	for (size_t len = 0; len < 20; len++) {
		memset(to, 0xee, 32);
		CHECK_EQ(sci_peer_read(f, r, to, at.data + 4090 + len, len),
			 0);
		CHECK(!memcmp(to, whole + 4090 + len, len));
		CHECK_EQ(to[len], 0xee);
	}
	/* an address without a page, a part without one, and the end of all memory */
	CHECK_EQ(sci_peer_read(f, r, to, 0, 1), -EFAULT);
	CHECK_EQ(sci_peer_read(f, r, to, at.hole, page), 0);
	CHECK_EQ(sci_peer_read(f, r, to, at.hole, page + 1), -EFAULT);
	CHECK_EQ(sci_peer_read(f, r, to, at.hole + page, 1), -EFAULT);
	CHECK_EQ(sci_peer_read(f, r, to, UINT64_MAX - 1, 16), -EFAULT);
	CHECK_EQ(sci_peer_read(f, r, to, UINT64_MAX - page, 16), -EFAULT);
	peer_send(p, "leave");
	peer_join(p);
	drop_import(f, r, addr);
	sci_fabric_close(f);
	free(to);
	free(whole);
}

TEST(memory_of_a_peer_that_died)
{
	struct peer *p = peer_spawn(8, reading_owner, NULL);
	struct sci_fabric *f = join();
	struct addresses at;
	struct sci_rseg *r;
	void *addr;
	char c;

	PEER_GET(p, at);
	r = import(f, 8, 1, SIZE, &addr);
	needs_peer_read(p, f, r, at.data);
	CHECK_EQ(sci_peer_read(f, r, &c, at.data, 1), 0);
	peer_kill(p, SIGKILL);
	CHECK_EQ(sci_peer_read(f, r, &c, at.data, 1), -ENOTCONN);
	WAIT_UNTIL(atomic_load(&f->ops->rseg.status(r)->gone), TEST_WAIT_MS);
	CHECK_EQ(sci_peer_read(f, r, &c, at.data, 1), -ENOTCONN);
	drop_import(f, r, addr);
	sci_fabric_close(f);
}

/* The owner lives, but the right to read its memory ends with the connection. */
TEST(memory_of_an_export_that_ended)
{
	struct sci_fabric *f = join();
	struct sci_lseg *s;
	struct sci_rseg *r;
	void *mine, *addr;
	char c = 7, d = 0;

	test_needs_shm();
	s = export(f, 1, SIZE, 0, &mine);
	r = import(f, 4, 1, SIZE, &addr);
	/* a process may always read its own memory */
	CHECK_EQ(sci_peer_read(f, r, &d, (uintptr_t)&c, 1), 0);
	CHECK_EQ(d, 7);
	drop_export(f, s, mine);
	WAIT_UNTIL(atomic_load(&f->ops->rseg.status(r)->gone), TEST_WAIT_MS);
	d = 0;
	CHECK_EQ(sci_peer_read(f, r, &d, (uintptr_t)&c, 1), -ENOTCONN);
	CHECK_EQ(d, 0);
	drop_import(f, r, addr);
	sci_fabric_close(f);
}

TEST(a_group_has_no_memory_of_its_own)
{
	struct sci_fabric *f = join();
	struct sci_lseg *s;
	struct sci_rseg *r;
	void *mine, *addr;
	char c = 7, d = 0;
	struct sci_adapter_info info;

	if (f->ops->query.adapter(f, 0, &info) || !info.mcast_groups)
		SKIP("no broadcast segments here");
	s = export(f, 1, SIZE, SCI_LSEG_BROADCAST, &mine);
	r = import(f, SCI_NODE_GROUP, 1, SIZE, &addr);
	CHECK_EQ(sci_peer_read(f, r, &d, (uintptr_t)&c, 1), -EOPNOTSUPP);
	CHECK_EQ(d, 0);
	drop_import(f, r, addr);
	drop_export(f, s, mine);
	sci_fabric_close(f);
}

/* ---- faults ---- */

TEST(faults_are_read_by_the_first_of_several)
{
	struct sci_fabric *f, *g;

	setenv("SCI_FAULT", "loss=1", 1);
	f = join();
	CHECK(atomic_load(&sci_fault_enabled));
	unsetenv("SCI_FAULT");
	g = join();
	CHECK(atomic_load(&sci_fault_enabled));
	sci_fabric_close(f);
	f = join();
	CHECK(atomic_load(&sci_fault_enabled));
	sci_fabric_close(f);
	sci_fabric_close(g);
	f = join();
	CHECK(!atomic_load(&sci_fault_enabled));
	setenv("SCI_FAULT", "nonsense", 1);
	g = join();
	sci_fabric_close(g);
	sci_fabric_close(f);
	CHECK_EQ(sci_fabric_open(&f), -EINVAL);
	/* the failed open has opened nothing */
	setenv("SCI_FAULT", "loss=1", 1);
	f = join();
	CHECK(atomic_load(&sci_fault_enabled));
	sci_fabric_close(f);
}

TEST(a_child_delivers_nothing_of_its_parent)
{
	unsigned char line[64] = { 1 };
	struct sci_fabric *f;
	struct sci_lseg *s;
	struct sci_rseg *r;
	void *mine, *addr;
	int status;
	pid_t pid;

	setenv("SCI_FAULT", "reorder=1", 1);
	f = join();
	s = export(f, 1, SIZE, 0, &mine);
	r = import(f, 4, 1, SIZE, &addr);
	sci_remote_line(addr, line, f->ops->rseg.status(r)->link);
	pid = test_fork();
	CHECK(pid >= 0);
	if (!pid) {
		sci_remote_barrier(f, NULL);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(*(volatile unsigned char *)mine, 0);
	sci_remote_barrier(f, r);
	CHECK_EQ(*(volatile unsigned char *)mine, 1);
	drop_import(f, r, addr);
	drop_export(f, s, mine);
	sci_fabric_close(f);
}

/* The view of a SISCI program: its own segment, a map, a sequence. */
struct pipe {
	sci_desc_t sd;
	sci_remote_segment_t r;
	sci_map_t map;
	sci_sequence_t seq;
	volatile unsigned char *remote;
	unsigned char *local;
};

static void own_pipe(struct pipe *p, const char *faults)
{
	setenv("SCI_FAULT", faults, 1);
	p->sd = test_open();
	p->local = test_map_local(test_segment(p->sd, 1, SIZE, 0), NULL);
	p->r = test_connect(p->sd, 4, 1);
	p->remote = test_map_remote(p->r, &p->map);
	CHECK_OK(SCICreateMapSequence(p->map, &p->seq, 0, &err));
	CHECK_OK(SCIStartSequence(p->seq, 0, &err));
}

enum wait { BARRIER, SEQUENCE, CHECKED, UNMAP, WAITS };

static void copy_and_wait(struct pipe *p, unsigned char *data, enum wait how)
{
	unsigned int flags = how == CHECKED ? SCI_FLAG_ERROR_CHECK : 0;

	CHECK_OK(SCIMemCpy(p->seq, data, p->map, 0, SIZE, flags, &err));
	if (how == BARRIER)
		SCIStoreBarrier(p->seq, 0);
	if (how == SEQUENCE)
		CHECK_EQ(SCICheckSequence(p->seq, 0, NULL), SCI_SEQ_OK);
	if (how == UNMAP)
		CHECK_OK(SCIUnmapSegment(p->map, 0, &err));
}

TEST(all_has_arrived_after_a_barrier)
{
	static unsigned char data[SIZE];
	struct pipe p;

	own_pipe(&p, "reorder=0.5,dup=0.5");
	for (unsigned int round = 0; round < 50; round++)
		for (enum wait how = 0; how < WAITS; how++) {
			test_fill(data, SIZE, round * WAITS + how);
			copy_and_wait(&p, data, how);
			CHECK(!memcmp(p.local, data, SIZE));
			if (how == UNMAP)
				p.remote = test_map_remote(p.r, &p.map);
		}
	SCITerminate();
}

TEST(not_all_has_arrived_before)
{
	unsigned char line[64] = { 1 };
	struct pipe p;

	own_pipe(&p, "reorder=1");
	CHECK_OK(SCIMemWrite(line, p.remote, 64, 0, &err));
	CHECK_EQ(p.local[0], 0);
	/* with this flag, the barrier is the caller's task */
	CHECK_EQ(SCICheckSequence(p.seq, SCI_FLAG_NO_STORE_BARRIER, NULL),
		 SCI_SEQ_OK);
	CHECK_EQ(p.local[0], 0);
	SCIStoreBarrier(p.seq, 0);
	CHECK_EQ(p.local[0], 1);
	SCITerminate();
}

TEST(all_of_a_dma_transfer_has_arrived)
{
	static unsigned char data[SIZE];
	sci_local_segment_t from;
	sci_dma_queue_t q;
	struct pipe p;
	void *src;

	own_pipe(&p, "reorder=1,dup=1");
	CHECK_OK(SCICreateDMAQueue(p.sd, &q, 0, 2, 0, &err));
	from = test_segment(p.sd, 2, SIZE, 0);
	src = test_map_local(from, NULL);
	for (unsigned int round = 0; round < 20; round++) {
		test_fill(data, SIZE, round);
		if (round % 2) {
			memcpy(src, data, SIZE);
			CHECK_OK(SCIStartDmaTransfer(q, from, p.r, 0, SIZE, 0,
						     NULL, NULL, 0, &err));
		} else {
			CHECK_OK(SCIStartDmaTransferMem(q, data, p.r, SIZE, 0,
							NULL, NULL, 0, &err));
		}
		CHECK_EQ(SCIWaitForDMAQueue(q, SCI_INFINITE_TIMEOUT, 0, NULL),
			 SCI_DMAQUEUE_DONE);
		CHECK(!memcmp(p.local, data, SIZE));
	}
	SCITerminate();
}

TEST(packets_are_gone_before_the_map_is)
{
	unsigned char line[64] = { 1 };
	struct pipe p;

	own_pipe(&p, "reorder=1");
	for (int round = 0; round < 20; round++) {
		volatile unsigned char *was = p.remote;
		unsigned char *now;

		p.local[0] = 0;
		CHECK_OK(SCIMemWrite(line, p.remote, 64, 0, &err));
		CHECK_OK(SCIUnmapSegment(p.map, 0, &err));
		CHECK_EQ(p.local[0], 1);
		/* map other memory at the address of the old map */
		now = mmap((void *)(uintptr_t)was, SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(now != MAP_FAILED);
		SCIStoreBarrier(p.seq, 0);
		CHECK_EQ(now[0], 0);
		CHECK_EQ(munmap(now, SIZE), 0);
		p.remote = test_map_remote(p.r, &p.map);
	}
	SCITerminate();
}

/* ---- groups of operations ---- */

/* A group is a struct of pointers to functions: all are set, or none. */
#define GROUP(ops, group)	whole(&(ops)->group, sizeof((ops)->group))

enum { PARTLY, ABSENT, WHOLE };

static int whole(const void *group, size_t size)
{
	size_t n = size / sizeof(void (*)(void)), set = 0;

	for (size_t i = 0; i < n; i++) {
		void (*fn)(void);

		memcpy(&fn, (const char *)group + i * sizeof(fn), sizeof(fn));
		set += fn != NULL;
	}
	return set == n ? WHOLE : set ? PARTLY : ABSENT;
}

TEST(groups_of_operations_are_whole)
{
	const struct sci_fabric_ops *fabrics[] = { &sci_shm_fabric, &sci_dev_fabric };

	for (size_t i = 0; i < ARRAY_LEN(fabrics); i++) {
		const struct sci_fabric_ops *ops = fabrics[i];

		CHECK_EQ(GROUP(ops, query), WHOLE);
		CHECK_EQ(GROUP(ops, lseg), WHOLE);
		CHECK_EQ(GROUP(ops, rseg), WHOLE);
		CHECK_EQ(GROUP(ops, lintr), WHOLE);
		CHECK_EQ(GROUP(ops, rintr), WHOLE);
		CHECK(GROUP(ops, local) != PARTLY);
		CHECK(ops->name && ops->present && ops->open && ops->close &&
		      ops->unmap);
	}
}

TEST(an_absent_group_is_not_supported)
{
	struct sci_fabric_ops ops = { .name = "none" };
	struct sci_fabric f = { .ops = &ops };

	CHECK_EQ(sci_lseg_attach(&f, NULL, NULL), -EOPNOTSUPP);
	CHECK_EQ(sci_lseg_register(&f, NULL, NULL, 0), -EOPNOTSUPP);
	CHECK_EQ(sci_lseg_share(&f, NULL), -EOPNOTSUPP);
	CHECK_EQ(sci_lseg_twin(&f, NULL, NULL), -EOPNOTSUPP);
	CHECK_EQ(sci_dma_copy(&f, NULL, NULL, NULL, false), -EOPNOTSUPP);
	CHECK_EQ(sci_peer_read(&f, NULL, NULL, 0, 0), -EOPNOTSUPP);
}

/* ---- a full queue when no further descriptor can be watched ---- */

static _Atomic bool no_more_watches;

/* The C library's epoll_ctl(), except that it can reach the system's limit of watches. */
int epoll_ctl(int epfd, int op, int fd, struct epoll_event *ev)
{
	if (op == EPOLL_CTL_ADD && atomic_load(&no_more_watches)) {
		errno = ENOSPC;
		return -1;
	}
	return (int)syscall(SYS_epoll_ctl, epfd, op, fd, ev);
}

static bool take_message(struct sci_fabric *f, struct sci_lintr *i, void *buf)
{
	size_t len = SCI_DATA_INTR_MAX;

	return !f->ops->lintr.wait(i, buf, &len, 0);
}

/* The senders continue when the queue has room again. */
TEST(a_full_queue_is_emptied_though_nothing_more_can_be_watched)
{
	struct sci_lintr_param own = {
		.number = 5, .flags = SCI_INTR_FIXED | SCI_INTR_DATA,
		.event = no_event,
	};
	const struct sci_rintr_param there = {
		.node = 4, .number = 5, .timeout = 5000, .data = true,
	};
	static unsigned char buf[SCI_DATA_INTR_MAX];
	struct sci_fabric *f = join();
	unsigned int sent = 0, came = 0;
	struct sci_lintr *i;
	struct sci_rintr *r;

	CHECK_EQ(f->ops->lintr.create(f, &own, &i), 0);
	CHECK_EQ(f->ops->rintr.connect(f, &there, &r), 0);
	/* a queue is full if it stays full for 200 ms */
	while (HAPPENS(!f->ops->rintr.trigger(r, buf, sizeof(buf)), 200))
		sent++;
	atomic_store(&no_more_watches, true);
	WAIT_UNTIL((came += take_message(f, i, buf)) == sent, TEST_WAIT_MS);
	atomic_store(&no_more_watches, false);
	f->ops->rintr.disconnect(r);
	f->ops->lintr.destroy(i);
	sci_fabric_close(f);
}
