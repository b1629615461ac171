// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Many processes on few CPUs, and one endpoint with hundreds of peers: idle
 * peers cost little memory and no time, and their messages are noticed.
 */
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "libsci/msg/endpoint.h"
#include "selftests/msg/traffic.h"

/* Return the number in an environment variable, or @otherwise. */
static unsigned int wanted(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned int)atoi(text) : otherwise;
}

/* ---- all to all ---- */

#define NODES		(TRAFFIC_SLOW > 1 ? 8u : 16u)
#define NODES_MAX	16u

struct town {
	struct meeting meeting;
	unsigned int rounds;
};

#define TOWN_MAX	300000u		/* a rendezvous */

static const size_t town_sizes[] = { 0, 48, 62, 1000, 8000, TOWN_MAX };

struct citizen {
	unsigned int me;		/* on node 4 * (me + 1) */
	struct sci_ep *ep;
	struct sci_peer *peer[NODES_MAX];
	unsigned char *in[NODES_MAX], *out;
};

/* Every node connects to all others, so each pair connects from both sides at once. */
static void citizen_open(struct citizen *c)
{
	c->ep = test_ep_open(TEST_ID, 0);
	for (unsigned int k = 1; k < NODES; k++) {
		unsigned int other = (c->me + k) % NODES;

		c->peer[other] = test_ep_connect(c->ep, 4 * (other + 1),
						 TEST_ID);
	}
	CHECK_EQ(test_ep_stats(c->ep).peers, NODES - 1);
	for (unsigned int k = 0; k < NODES; k++)
		c->in[k] = malloc(TOWN_MAX);
	c->out = malloc(TOWN_MAX);
}

static uint64_t town_seed(unsigned int from, size_t len, unsigned int round)
{
	return (uint64_t)round << 40 | (uint64_t)from << 32 | len;
}

static void all_to_all(struct citizen *c, size_t len, unsigned int round)
{
	struct sci_req *reqs[2 * NODES_MAX] = { NULL };
	struct sci_status st[2 * NODES_MAX];

	msg_fill(c->out, len, town_seed(c->me, len, round));
	for (unsigned int k = 1; k < NODES; k++) {
		unsigned int other = (c->me + k) % NODES;

		CHECK_EQ(sci_irecv(c->ep, c->peer[other], c->in[other], len,
				   &reqs[other]), 0);
		CHECK_EQ(sci_isend(c->peer[other], c->out, len,
				   &reqs[NODES_MAX + other]), 0);
	}
	CHECK_EQ(sci_waitall(reqs, 2 * NODES_MAX, TEST_WAIT_MS, st), 0);
	for (unsigned int k = 1; k < NODES; k++) {
		unsigned int other = (c->me + k) % NODES;

		CHECK_EQ(st[other].len, len);
		CHECK(st[other].peer == c->peer[other]);
		CHECK_BYTES(c->in[other], len, town_seed(other, len, round));
	}
}

static void live(struct citizen *c, struct town *town)
{
	citizen_open(c);
	for (unsigned int i = 0; i < town->rounds; i++)
		for (size_t s = 0; s < ARRAY_LEN(town_sizes); s++)
			all_to_all(c, town_sizes[s], i);
	meet(c->ep, &town->meeting, NODES);
	CHECK_EQ(sci_ep_close(c->ep), 0);
	for (unsigned int k = 0; k < NODES; k++)
		free(c->in[k]);
	free(c->out);
}

static void citizen(struct peer *self, void *arg)
{
	struct citizen c = {
		.me = (unsigned int)atoi(getenv("SCI_NODE")) / 4 - 1,
	};

	(void)self;
	live(&c, arg);
}

TEST(all_to_all)
{
	struct town *town = test_shared(sizeof(*town));
	struct citizen c = { .me = 0 };
	struct peer *p[NODES_MAX];

	town->rounds = TRAFFIC_SLOW > 1 ? 2 : 5;
	for (unsigned int k = 1; k < NODES; k++)
		p[k] = peer_spawn(4 * (k + 1), citizen, town);
	live(&c, town);
	for (unsigned int k = 1; k < NODES; k++)
		peer_join(p[k]);
}

/* ---- many processes on one node ---- */

#define CITY_ID		1000u
#define CITY_BYTES	65536u
#define CITY_MAX	256u
#define CITY_SHARED_MAX	(2ull << 30)

/* Stages of a process. Each process waits at the first three for all other processes. */
enum { CITY_OPEN, CITY_DONE, CITY_COUNTED, CITY_CLOSED, CITY_STAGES };

static struct city {
	unsigned int n;
	_Atomic bool reached[CITY_STAGES][CITY_MAX];	/* true for the dead, too */
	_Atomic bool doomed[CITY_MAX];	/* set before the kill */
	_Atomic bool dead[CITY_MAX];	/* set after it */
	_Atomic unsigned int steps;	/* of all processes; they tell the time for the killer */
	_Atomic unsigned int cut;	/* requests that failed because of a death */
	_Atomic uint64_t peer_bytes;	/* sum over all processes */
	struct city_file {
		_Atomic uint64_t inode;		/* 0: free */
		_Atomic uint64_t bytes;
	} files[1u << 18];			/* memory that any process maps, by inode */
} *city;

struct inhabitant {
	unsigned int me;
	struct sci_ep *ep;
	struct sci_peer *peer[CITY_MAX];
	struct sci_req *reqs[2 * CITY_MAX];
	struct sci_status st[2 * CITY_MAX];
};

static bool city_all(unsigned int stage)
{
	for (unsigned int k = 0; k < city->n; k++)
		if (!atomic_load(&city->reached[stage][k]))
			return false;
	return true;
}

static void city_meet(struct inhabitant *i, unsigned int stage)
{
	struct sci_peer *peer;

	atomic_store(&city->reached[stage][i->me], true);
	while (!city_all(stage))
		sci_accept(i->ep, 10, &peer);
}

static uint64_t machine_shared_bytes(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;
	char line[256];

	CHECK(f);
	while (fgets(line, sizeof(line), f) && sscanf(line, "Shmem: %llu", &kib) != 1)
		;
	fclose(f);
	return kib * 1024;
}

static void city_add_file(uint64_t inode, uint64_t bytes)
{
	for (uint64_t i = mix64(inode);; i++) {
		struct city_file *f = &city->files[i % ARRAY_LEN(city->files)];
		uint64_t found = 0;

		if (!atomic_compare_exchange_strong(&f->inode, &found, inode) && found != inode)
			continue;
		found = atomic_load(&f->bytes);
		while (found < bytes && !atomic_compare_exchange_weak(&f->bytes, &found, bytes))
			;
		return;
	}
}

/* Add the shared memory that this process maps: all pages, because all pages are reserved. */
static void city_add_files(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long long from, to, offset, inode;
	char line[512];

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "/memfd:") &&
		    sscanf(line, "%llx-%llx %*s %llx %*s %llu", &from, &to, &offset, &inode) == 4)
			city_add_file(inode, offset + (to - from));
	fclose(f);
}

static uint64_t city_file_bytes(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ARRAY_LEN(city->files); i++)
		sum += atomic_load(&city->files[i].bytes);
	return sum;
}

/* Open connections to all processes, which do so at the same time, and post a message for each. */
static void city_post(struct inhabitant *i)
{
	static unsigned char in[CITY_BYTES], out[CITY_BYTES];

	for (unsigned int k = 0; k < city->n; k++) {
		const struct sci_addr addr = { 4, CITY_ID + k };

		if (k == i->me)
			continue;
		CHECK_EQ(sci_peer_open(i->ep, &addr, -1, &i->peer[k]), 0);
		CHECK_EQ(sci_irecv(i->ep, i->peer[k], in, CITY_BYTES, &i->reqs[2 * k]), 0);
		CHECK_EQ(sci_isend(i->peer[k], out, CITY_BYTES, &i->reqs[2 * k + 1]), 0);
		atomic_fetch_add(&city->steps, 1);
	}
}

/* Wait for request @r. Give up a connection to a process that has died before it was connected. */
static int city_wait_one(struct inhabitant *i, unsigned int r)
{
	struct sci_peer **peer = &i->peer[r / 2];
	int ret;

	while ((ret = sci_wait(i->reqs[r], 100, &i->st[r])) == -ETIMEDOUT)
		if (atomic_load(&city->dead[r / 2]) && *peer &&
		    sci_peer_state(*peer) == -EINPROGRESS) {
			CHECK_EQ(sci_disconnect(*peer), 0);
			*peer = NULL;
		}
	return ret;
}

static void city_wait(struct inhabitant *i)
{
	for (unsigned int r = 0; r < 2 * city->n; r++) {
		int ret;

		if (r / 2 == i->me)
			continue;
		ret = city_wait_one(i, r);
		atomic_fetch_add(&city->steps, 1);
		if (!ret) {
			CHECK_EQ(i->st[r].len, CITY_BYTES);
			continue;
		}
		if (!atomic_load(&city->doomed[r / 2]))
			FAIL("process %u %s %u: %s", i->me, r % 2 ? "to" : "from", r / 2,
			     strerror(-ret));
		CHECK_EQ(ret, i->peer[r / 2] ? -ECONNRESET : -ECANCELED);
		atomic_fetch_add(&city->cut, 1);
	}
}

static void city_part(struct inhabitant *i)
{
	for (unsigned int k = 0; k < city->n; k++) {
		if (i->peer[k])
			CHECK_EQ(sci_disconnect(i->peer[k]), 0);
		atomic_fetch_add(&city->steps, 1);
	}
}

static void city_live(struct peer *self, void *me)
{
	static struct inhabitant i;
	unsigned int fds, maps;

	i.me = *(unsigned int *)me;
	i.ep = test_ep_open(CITY_ID + i.me, 0);
	fds = count_fds();
	maps = count_shared_maps();
	city_meet(&i, CITY_OPEN);
	city_post(&i);
	city_wait(&i);
	atomic_fetch_add(&city->peer_bytes, test_ep_stats(i.ep).peer_bytes);
	city_meet(&i, CITY_DONE);
	city_add_files();
	city_meet(&i, CITY_COUNTED);
	city_part(&i);
	PROGRESS_UNTIL(i.ep, count_fds() <= fds && count_shared_maps() <= maps, TEST_WAIT_MS);
	CHECK_EQ(sci_ep_close(i.ep), 0);
	atomic_store(&city->reached[CITY_CLOSED][i.me], true);
	peer_expect(self, "leave");
}

/* SCI_TEST_PROCESSES: the number of processes, at most CITY_MAX. */
static void city_found(struct peer *p[CITY_MAX])
{
	city = test_shared(sizeof(*city));
	city->n = wanted("SCI_TEST_PROCESSES", TRAFFIC_SLOW > 1 ? 12 : 32);
	CHECK(city->n > 0 && city->n <= CITY_MAX);
	for (unsigned int k = 0; k < city->n; k++)
		p[k] = peer_spawn(4, city_live, &k);
}

static void city_leave(struct peer *p[CITY_MAX])
{
	for (unsigned int k = 0; k < city->n; k++) {
		if (atomic_load(&city->doomed[k]))
			continue;
		peer_send(p[k], "leave");
		peer_join(p[k]);
	}
}

/* Return whether a process has ended by itself: it has failed. */
static bool city_failed(void)
{
	siginfo_t info = { 0 };

	return !waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

#define CITY_WAIT(cond)							\
	do {								\
		WAIT_UNTIL(city_failed() || (cond), 2 * TEST_WAIT_MS);	\
		if (city_failed())					\
			FAIL("a process has ended");			\
	} while (0)

TEST(all_to_all_of_many_processes)
{
	uint64_t before = machine_shared_bytes();
	struct peer *p[CITY_MAX];
	uint64_t most = before, now;

	city_found(p);
	CITY_WAIT((now = machine_shared_bytes(), most = now > most ? now : most,
		   city_all(CITY_CLOSED)));
	test_note("%u processes: %llu MiB for peers, %llu MiB mapped; the machine's shared memory "
		  "has grown by %llu MiB", city->n,
		  (unsigned long long)atomic_load(&city->peer_bytes) >> 20,
		  (unsigned long long)city_file_bytes() >> 20,
		  (unsigned long long)(most - before) >> 20);
	CHECK(atomic_load(&city->peer_bytes) <= CITY_SHARED_MAX);
	CHECK(city_file_bytes() <= CITY_SHARED_MAX);
	city_leave(p);
}

/* ---- processes that die ---- */

static int compare_numbers(const void *a, const void *b)
{
	const unsigned int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Draw a victim that is not doomed yet. Doom it, and then kill it. */
static void city_kill_one(struct peer *p[CITY_MAX], uint64_t *state)
{
	unsigned int k;

	do {
		k = (unsigned int)draw(state, city->n);
	} while (atomic_load(&city->doomed[k]));
	atomic_store(&city->doomed[k], true);
	peer_kill(p[k], SIGKILL);
	atomic_store(&city->dead[k], true);
	for (unsigned int stage = 0; stage < CITY_STAGES; stage++)
		atomic_store(&city->reached[stage][k], true);
}

/* A fourth of the processes die while they start, connect, exchange messages and disconnect. */
TEST(processes_die_in_an_all_to_all)
{
	uint64_t seed = traffic_seed(), state = seed;
	uint64_t before = machine_shared_bytes();
	unsigned int when[CITY_MAX / 4], last[CITY_STAGES] = { 0 }, n;
	struct peer *p[CITY_MAX];

	city_found(p);
	n = city->n / 4;
	/* a process takes about 4 steps for each other process */
	for (unsigned int i = 0; i < n; i++)
		when[i] = i ? (unsigned int)draw(&state, 3 * city->n * city->n) : 0;
	qsort(when, n, sizeof(*when), compare_numbers);
	for (unsigned int i = 0; i < n; i++) {
		unsigned int stage = 0;

		CITY_WAIT(atomic_load(&city->steps) >= when[i] || city_all(CITY_CLOSED));
		while (stage < CITY_CLOSED && city_all(stage))
			stage++;
		last[stage]++;
		city_kill_one(p, &state);
	}
	CITY_WAIT(city_all(CITY_CLOSED));
	city_leave(p);
	test_note("%u processes, SCI_TEST_SEED=%#llx: %u died at the start, %u in the exchange, "
		  "%u after it, %u at the end; %u requests failed", city->n,
		  (unsigned long long)seed, last[CITY_OPEN], last[CITY_DONE], last[CITY_COUNTED],
		  last[CITY_CLOSED], atomic_load(&city->cut));
	test_note("the machine's shared memory has grown by %lld KiB",
		  (long long)(machine_shared_bytes() - before) / 1024);
}

/* ---- hundreds of peers of one endpoint ---- */

#define PEER_BYTES	5184u
#define CROWDS_MAX	2000u
#define PER_CROWD_MAX	250u
#define HUB_FDS		20000u		/* limit of descriptors of each process */

/* The peers of the hub's endpoint. The processes inherit these numbers. */
static unsigned int crowds;		/* processes */
static unsigned int per_crowd;		/* endpoints of each */
#define PEERS		(crowds * per_crowd)

struct hub {
	struct sci_ep *ep;
	struct peer *crowd[CROWDS_MAX];
	_Atomic unsigned int *stepped;	/* crowds that have taken the step */
};

struct crowd {
	unsigned int number;
	struct sci_ep *ep[PER_CROWD_MAX];
	struct sci_peer *to[PER_CROWD_MAX];
};

enum { STEP_FIRST = 1, STEP_ALL, STEP_ECHO, STEP_LONG, STEP_CLOSE };

#define LONG_LEN	50000u

/* Set both limits of descriptors for this process and its peers. */
static void limit_descriptors(void)
{
	struct rlimit lim;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &lim), 0);
	if (lim.rlim_max > HUB_FDS)
		lim.rlim_max = HUB_FDS;
	lim.rlim_cur = lim.rlim_max;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &lim), 0);
	if (lim.rlim_max < 2 * PEERS || lim.rlim_max < 16 * per_crowd)
		SKIP("too few descriptors");
}

struct word {
	uint32_t node;
	uint32_t id;
	uint32_t n;
};

static void say(struct crowd *c, unsigned int i, uint32_t n)
{
	struct word w = { 8 + 4 * c->number, i + 1, n };

	CHECK_EQ(sci_tsend(c->to[i], 0, w.n, &w, sizeof(w)), 0);
}

static void say_long(struct crowd *c, unsigned int i)
{
	static unsigned char buf[LONG_LEN];
	uint64_t seed = (uint64_t)(8 + 4 * c->number) << 32 | (i + 1);

	msg_fill(buf, LONG_LEN, seed);
	CHECK_EQ(sci_tsend(c->to[i], 1, 0, buf, LONG_LEN), 0);
}

static void echo(struct crowd *c, unsigned int i)
{
	struct sci_status st;
	char buf[64];

	CHECK_EQ(sci_trecv(c->ep[i], c->to[i], 0, 5, 0, buf, sizeof(buf), &st),
		 0);
	CHECK_EQ(sci_tsend(c->to[i], 0, 6, buf, st.len), 0);
}

static void crowd_step(struct crowd *c, unsigned int step)
{
	for (unsigned int k = 0; k < per_crowd; k++) {
		/* in another order than that of the connects */
		unsigned int i = (unsigned int)((k * 37ull + 11) % per_crowd);

		switch (step) {
		case STEP_FIRST:
			if (i % 10 == c->number)
				say(c, i, 1);
			break;
		case STEP_ALL:
			for (uint32_t n = 0; n < 10; n++)
				say(c, i, 100 + n);
			break;
		case STEP_ECHO:
			echo(c, i);
			break;
		case STEP_LONG:
			say_long(c, i);
			break;
		case STEP_CLOSE:
			CHECK_EQ(sci_ep_close(c->ep[i]), 0);
			break;
		}
	}
}

static void crowd(struct peer *self, void *arg)
{
	static struct crowd c;
	_Atomic unsigned int *stepped = arg;

	c.number = (unsigned int)atoi(getenv("SCI_NODE")) / 4 - 2;
	/* thousands of processes that look for an endpoint would leave no time to open it */
	peer_expect(self, "step");
	for (unsigned int i = 0; i < per_crowd; i++) {
		c.ep[i] = test_ep_open(i + 1, 0);
		c.to[i] = test_ep_connect(c.ep[i], 4, TEST_ID);
	}
	for (unsigned int step = STEP_FIRST; step <= STEP_CLOSE; step++) {
		atomic_fetch_add(stepped, 1);
		/* idle: these endpoints make no progress */
		peer_expect(self, "step");
		crowd_step(&c, step);
	}
}

/* Let the crowds take the next step. Do not wait for them. */
static void hub_next(struct hub *hub)
{
	atomic_store(hub->stepped, 0);
	for (unsigned int i = 0; i < crowds; i++)
		peer_send(hub->crowd[i], "step");
}

static void hub_settle(struct hub *hub)
{
	PROGRESS_UNTIL(hub->ep, atomic_load(hub->stepped) == crowds, 2 * TEST_WAIT_MS);
}

static unsigned int hear(struct sci_ep *ep, uint32_t want)
{
	struct sci_status st;
	struct sci_addr addr;
	struct sci_req *req;
	struct word w;

	CHECK_EQ(sci_itrecv(ep, NULL, 0, want, 0, &w, sizeof(w), &req), 0);
	CHECK_EQ(test_wait(req, &st), 0);
	CHECK_EQ(st.len, sizeof(w));
	CHECK_EQ(sci_peer_addr(st.peer, &addr), 0);
	CHECK(addr.node == w.node && addr.id == w.id && w.n == want);
	return (w.node - 8) / 4 * per_crowd + w.id - 1;
}

/* Receive each number once from each peer. */
static void hear_all(struct sci_ep *ep)
{
	for (uint32_t n = 100; n < 110; n++) {
		unsigned char *seen = calloc(PEERS + 1, 1);

		CHECK(seen);
		for (unsigned int i = 0; i < PEERS; i++)
			CHECK_EQ(seen[hear(ep, n)]++, 0);
		free(seen);
	}
}

static void hear_first(struct sci_ep *ep, unsigned int heard)
{
	unsigned int want = 0;

	for (unsigned int i = 0; i < per_crowd; i++)
		want += i % 10 < crowds;
	while (heard++ < want)
		hear(ep, 1);
}

/* Return the connection to endpoint @i of the crowds. */
static struct sci_peer *hub_peer(struct sci_ep *ep, unsigned int i)
{
	struct sci_addr addr = {
		8 + 4 * (i / per_crowd), i % per_crowd + 1
	};
	struct sci_peer *peer = NULL;

	CHECK_EQ(sci_peer_find(ep, &addr, &peer), 0);
	return peer;
}

static void echo_all(struct sci_ep *ep)
{
	for (unsigned int i = 0; i < PEERS; i++) {
		struct sci_peer *to = hub_peer(ep, i);
		struct sci_addr addr;

		CHECK_EQ(sci_peer_addr(to, &addr), 0);
		CHECK_EQ(sci_tsend(to, 0, 5, &addr, sizeof(addr)), 0);
	}
	for (unsigned int i = 0; i < PEERS; i++) {
		struct sci_addr addr, got;
		struct sci_status st;

		CHECK_EQ(sci_trecv(ep, NULL, 0, 6, 0, &got, sizeof(got), &st),
			 0);
		CHECK_EQ(sci_peer_addr(st.peer, &addr), 0);
		CHECK(addr.node == got.node && addr.id == got.id);
	}
}

static void hear_long(struct sci_ep *ep)
{
	static unsigned char buf[LONG_LEN];

	for (unsigned int i = 0; i < PEERS; i++) {
		struct sci_status st;
		struct sci_addr addr;

		CHECK_EQ(sci_trecv(ep, NULL, 1, 0, 0, buf, LONG_LEN, &st), 0);
		CHECK_EQ(st.len, LONG_LEN);
		CHECK_EQ(sci_peer_addr(st.peer, &addr), 0);
		CHECK_BYTES(buf, LONG_LEN, (uint64_t)addr.node << 32 | addr.id);
	}
}

static void check_idle_bytes(struct sci_ep *ep)
{
	struct sci_ep_stats s = test_ep_stats(ep);

	CHECK_EQ(s.peers, PEERS);
	CHECK(s.peer_bytes > 0);
	test_note("%llu bytes for each of %u idle peers, %u descriptors, "
		  "%u maps", (unsigned long long)(s.peer_bytes / s.peers),
		  PEERS, count_fds(), count_maps());
	CHECK(s.peer_bytes / s.peers <= PEER_BYTES);
}

/* Open @n connections from processes with @each endpoints. The last process may add some. */
static struct sci_ep *hub_open(struct hub *hub, unsigned int n, unsigned int each)
{
	per_crowd = each;
	crowds = (n + each - 1) / each;
	CHECK(crowds > 0 && crowds <= CROWDS_MAX);
	CHECK(per_crowd > 0 && per_crowd <= PER_CROWD_MAX);
	limit_descriptors();
	hub->stepped = test_shared(sizeof(*hub->stepped));
	for (unsigned int i = 0; i < crowds; i++)
		hub->crowd[i] = peer_spawn(8 + 4 * i, crowd, hub->stepped);
	hub->ep = test_ep_open(TEST_ID, 0);
	hub_next(hub);
	hub_settle(hub);
	return hub->ep;
}

static void hub_close(struct hub *hub)
{
	struct sci_peer **from = calloc(PEERS, sizeof(struct sci_peer *));

	CHECK(from);
	for (unsigned int i = 0; i < PEERS; i++)
		from[i] = hub_peer(hub->ep, i);
	hub_next(hub);
	for (unsigned int i = 0; i < PEERS; i++) {
		char c;

		CHECK_EQ(sci_recv(hub->ep, from[i], &c, 1, NULL), -ENOTCONN);
		CHECK_EQ(sci_disconnect(from[i]), 0);
	}
	free(from);
	for (unsigned int i = 0; i < crowds; i++)
		peer_join(hub->crowd[i]);
	CHECK_EQ(test_ep_stats(hub->ep).peers, 0);
	CHECK_EQ(sci_ep_close(hub->ep), 0);
}

/* From the first short message to the close of all endpoints of the crowds. */
static void hub_steps(struct hub *hub)
{
	hear_first(hub->ep, 0);
	hub_settle(hub);
	hub_next(hub);
	hear_all(hub->ep);
	hub_settle(hub);
	/* short messages have cost no memory that stays */
	check_idle_bytes(hub->ep);
	hub_next(hub);
	echo_all(hub->ep);
	hub_settle(hub);
	hub_next(hub);
	hear_long(hub->ep);
	hub_settle(hub);
	hub_close(hub);
}

/* SCI_TEST_ENDPOINTS: the number of peers, at most 10,000. */
TEST(hundreds_of_peers)
{
	static struct hub hub;
	unsigned int n = wanted("SCI_TEST_ENDPOINTS", TRAFFIC_SLOW > 1 ? 80 : 300);

	check_idle_bytes(hub_open(&hub, n, n > 1000 ? PER_CROWD_MAX : (n + 3) / 4));
	hub_next(&hub);
	hub_steps(&hub);
}

/* SCI_TEST_PROCESSES: the number of processes, at most CROWDS_MAX. */
TEST(peers_in_many_processes)
{
	static struct hub hub;
	/* each is a node: sci_loop has 16 in these tests */
	bool few = TRAFFIC_SLOW > 1 || !test_on_shm();

	check_idle_bytes(hub_open(&hub, wanted("SCI_TEST_PROCESSES", few ? 12 : 32), 1));
	hub_next(&hub);
	hub_steps(&hub);
}

/* ---- waits sleep ---- */

TEST(waits_with_idle_peers_sleep)
{
	static struct hub hub;
	struct sci_status st;
	uint64_t sleeps;
	struct sci_req *req;
	struct sci_ep *ep;
	struct word w;

	ep = hub_open(&hub, TRAFFIC_SLOW > 1 ? 80 : 300, TRAFFIC_SLOW > 1 ? 20 : 75);
	CHECK_EQ(sci_itrecv(ep, NULL, 0, 1, 0, &w, sizeof(w), &req), 0);
	/* on a busy machine it may take long until the endpoint stops polling */
	sleeps = test_ep_stats(ep).sleeps;
	for (int ms = 100; test_ep_stats(ep).sleeps == sleeps; ms *= 2) {
		CHECK(ms < TEST_WAIT_MS);
		CHECK_EQ(sci_wait(req, ms, &st), -ETIMEDOUT);
	}
	sleeps = test_ep_stats(ep).sleeps;
	for (int ms = 100; test_ep_stats(ep).sleeps == sleeps; ms *= 2) {
		CHECK(ms < TEST_WAIT_MS);
		CHECK_EQ(sci_probe(ep, NULL, ms, &st), -ETIMEDOUT);
	}
	/* the peer that sends first wakes the endpoint */
	hub_next(&hub);
	CHECK_EQ(sci_wait(req, TEST_WAIT_MS, &st), 0);
	hear_first(ep, 1);
	hub_settle(&hub);
	hub_next(&hub);
	hear_all(ep);
	hub_settle(&hub);
	hub_next(&hub);
	echo_all(ep);
	hub_settle(&hub);
	hub_next(&hub);
	hear_long(ep);
	hub_settle(&hub);
	hub_close(&hub);
}

/* ---- a token that goes round many sleepers ---- */

#define RING_LAPS	(TRAFFIC_SLOW > 1 ? 20u : 100u)

static void pass_on(unsigned int me, struct town *town)
{
	unsigned int next = (me + 1) % NODES, last = (me + NODES - 1) % NODES;
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);
	struct sci_peer *to, *from;
	uint64_t token = 0;

	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_SPIN_US, 0), 0);
	to = test_ep_connect(ep, 4 * (next + 1), TEST_ID);
	from = test_ep_connect(ep, 4 * (last + 1), TEST_ID);
	for (unsigned int i = 0; i < RING_LAPS; i++) {
		if (!me)
			CHECK_EQ(sci_send(to, &token, sizeof(token)), 0);
		CHECK_EQ(sci_recv(ep, from, &token, sizeof(token), NULL), 0);
		token++;
		if (me)
			CHECK_EQ(sci_send(to, &token, sizeof(token)), 0);
	}
	if (!me)
		CHECK_EQ(token, RING_LAPS * NODES);
	/* all processes but one sleep */
	CHECK(test_ep_stats(ep).sleeps > 0);
	meet(ep, &town->meeting, NODES);
	CHECK_EQ(sci_ep_close(ep), 0);
}

static void passes_on(struct peer *self, void *arg)
{
	(void)self;
	pass_on((unsigned int)atoi(getenv("SCI_NODE")) / 4 - 1, arg);
}

TEST(a_token_wakes_one_after_the_other)
{
	struct town *town = test_shared(sizeof(*town));
	struct peer *p[NODES_MAX];

	for (unsigned int k = 1; k < NODES; k++)
		p[k] = peer_spawn(4 * (k + 1), passes_on, town);
	pass_on(0, town);
	for (unsigned int k = 1; k < NODES; k++)
		peer_join(p[k]);
}

/* ---- one sleeper, woken by each of many peers in turn ---- */

#define CALLERS		48u
#define WAKES		(TRAFFIC_SLOW > 1 ? 2000u : 10000u)
/* Rounds of progress between two messages, after which most callers are not polled. */
#define PAUSE_ROUNDS	150u

struct bedroom {
	_Atomic unsigned int connected;
	_Atomic unsigned int asked;	/* messages wanted so far */
	_Atomic unsigned int sent;
};

static struct {
	struct bedroom *room;
	const struct sci_fabric_ops *real;
	struct sci_fabric_ops ops;
	unsigned int wanted;
} bed;

static void caller(struct peer *self, void *arg)
{
	struct sci_peer *to[CALLERS];
	struct sci_ep *ep[CALLERS];
	struct bedroom *room = arg;

	for (unsigned int i = 0; i < CALLERS; i++) {
		ep[i] = test_ep_open(i + 1, 0);
		to[i] = test_ep_connect(ep[i], 4, TEST_ID);
	}
	atomic_store(&room->connected, 1);
	for (unsigned int n = 0; n < WAKES; n++) {
		uint64_t until = test_now_ms() + TEST_WAIT_MS;

		while (atomic_load(&room->asked) <= n) {
			if (test_now_ms() > until)
				FAIL("message %u did not wake", n - 1);
			sched_yield();
		}
		CHECK_EQ(sci_send(to[n % CALLERS], &n, sizeof(n)), 0);
		atomic_fetch_add(&room->sent, 1);
	}
	peer_expect(self, "leave");
	for (unsigned int i = 0; i < CALLERS; i++)
		CHECK_EQ(sci_ep_close(ep[i]), 0);
}

/*
 * The endpoint has announced its sleep and will look once more: let the message
 * arrive in between.
 */
static int barrier_and_message(struct sci_fabric *f)
{
	struct bedroom *room = bed.room;

	if (atomic_load(&room->asked) != bed.wanted) {
		atomic_store(&room->asked, bed.wanted);
		while (atomic_load(&room->sent) != bed.wanted)
			sched_yield();
	}
	return bed.real->wake_barrier(f);
}

static void bed_make(struct sci_ep *ep, struct bedroom *room)
{
	bed.room = room;
	bed.real = ep->fabric->ops;
	bed.ops = *ep->fabric->ops;
	bed.ops.wake_barrier = barrier_and_message;
	/* progress may use either pointer */
	ep->fabric->ops = &bed.ops;
	ep->ops = &bed.ops;
	ep->fabric->ops = ep->ops;
}

TEST(each_of_many_peers_wakes_a_sleeper)
{
	struct bedroom *room = test_shared(sizeof(*room));
	struct peer *p = peer_spawn(8, caller, room);
	struct sci_ep *ep = test_ep_open(TEST_ID, 0);

	if (!ep->wake_barrier || ep->lossy)
		SKIP("no wake barrier");
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_SPIN_US, 0), 0);
	PROGRESS_UNTIL(ep, atomic_load(&room->connected), TEST_WAIT_MS);
	bed_make(ep, room);
	for (unsigned int n = 0; n < WAKES; n++) {
		unsigned int got;

		/* at times the last round of progress takes the doorbell */
		for (unsigned int i = 0; i < PAUSE_ROUNDS + n % 64; i++)
			test_progress(ep);
		bed.wanted = n + 1;
		CHECK_EQ(sci_recv(ep, NULL, &got, sizeof(got), NULL), 0);
		CHECK_EQ(got, n);
	}
	CHECK(test_ep_stats(ep).sleeps > 0);
	ep->fabric->ops = bed.real;
	ep->ops = bed.real;
	ep->fabric->ops = ep->ops;
	peer_send(p, "leave");
	peer_join(p);
	CHECK_EQ(sci_ep_close(ep), 0);
}
