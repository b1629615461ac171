// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * One process of a job: its endpoint, its connections to peers, the deaths of peers, and the
 * control memory that peers on shared memory map.
 */

#include "libsci/team/team.h"

#include <assert.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/base/attr.h"
#include "libsci/base/host.h"

#define CHUNK		(2u << 20)	/* allocation unit of control memory */
#define DEATHS_MS	5u		/* interval of checks for deaths */
#define MAP_MS		50		/* timeout of one attempt to map a peer's memory */
#define OPEN_MS		60000		/* limit for a link that is down at start-up */
#define REPORT_MS	1000u		/* a launcher reports a death within this time */
#define MISSING_MS	1000u		/* wait of a process that closes for a new connection */

_Atomic uint32_t team_fork_gen;

static void world_is_forked(void)
{
	atomic_fetch_add(&team_fork_gen, 1);
}

static void forks_watch(void)
{
	pthread_atfork(NULL, NULL, world_is_forked);
}

int world_peer(struct team_world *w, int rank, struct sci_peer **peer)
{
	struct team_rank *r = &w->ranks[rank];
	struct sci_peer *p = sci_load_acquire(&r->peer);
	int ret;

	if (!p) {
		/* concurrent calls for one address return the same peer */
		ret = sci_peer_open(w->ep, &r->addr, w->opening ? OPEN_MS : -1, &p);
		if (ret)
			return ret;
		sci_peer_set_data(p, r);
		sci_store_release(&r->peer, p);
	}
	*peer = p;
	return 0;
}

static void deaths_poll(struct team_world *w);

/*
 * Map memory of @rank. The wait ends when the connection to that process fails. If the process dies
 * before the connection is established, only the launcher reports the death.
 */
int world_map(struct team_world *w, int rank, const struct sci_key *key, void **addr)
{
	struct sci_peer *p;
	int ret = world_peer(w, rank, &p);

	if (ret)
		return ret;
	while ((ret = sci_peer_map(p, key, MAP_MS, addr)) == -ETIMEDOUT) {
		deaths_poll(w);
		if (world_dead(w, rank))
			return -ECONNRESET;
	}
	return member_result(ret);
}

/* ---- control memory ---- */

static struct team_chunk *chunk_new(struct team_world *w, size_t len)
{
	struct team_chunk *c = calloc(1, sizeof(*c));
	void *base;

	if (!c)
		return NULL;
	c->len = len > CHUNK ? len : CHUNK;
	if (sci_buf_alloc(w->ep, c->len, &base)) {
		free(c);
		return NULL;
	}
	c->base = base;
	heap_init(&c->heap, c->len);
	list_add_tail(&c->link, &w->chunks);
	return c;
}

int world_alloc(struct team_world *w, size_t len, void **addr, struct sci_key *key)
{
	struct team_chunk *c = NULL;
	struct list *pos, *n;
	size_t at = 0;
	int ret = -ENOSPC;

	pthread_mutex_lock(&w->lock);
	list_for_each_safe(pos, n, &w->chunks) {
		c = container_of(pos, struct team_chunk, link);
		ret = heap_alloc(&c->heap, len, 4096, &at);
		if (ret != -ENOSPC)
			break;
	}
	if (ret == -ENOSPC) {
		c = chunk_new(w, (len + 4095) & ~(size_t)4095);
		ret = c ? heap_alloc(&c->heap, len, 4096, &at) : -ENOMEM;
	}
	pthread_mutex_unlock(&w->lock);
	if (ret)
		return ret;
	*addr = c->base + at;
	return sci_buf_key(w->ep, *addr, len, key);
}

void world_free(struct team_world *w, void *addr)
{
	struct list *pos, *n;

	pthread_mutex_lock(&w->lock);
	list_for_each_safe(pos, n, &w->chunks) {
		struct team_chunk *c = container_of(pos, struct team_chunk, link);
		size_t at = (size_t)addr - (size_t)c->base;

		if (at < c->len)
			heap_free(&c->heap, at);
	}
	pthread_mutex_unlock(&w->lock);
}

/* ---- deaths ---- */

static void rank_died(struct team_world *w, int rank)
{
	if (!sci_exchange(&w->ranks[rank].dead, -ECONNRESET))
		sci_fetch_add(&w->deaths, 1);
}

void world_take_deaths(void *world)
{
	struct team_world *w = world;
	unsigned int rank;

	while (!sci_boot_died(w->boot, &rank)) {
		if (rank >= (unsigned int)w->size)
			continue;
		sci_store_relaxed(&w->ranks[rank].reported, true);
		rank_died(w, (int)rank);
	}
}

/*
 * Check for dead processes. The launcher reports all of them, but it may have exited: also check
 * the connections. If a process leaves the job during sci_team_open(), its call has failed. Then
 * the calls of all processes fail, and all may exit at once: count all as dead.
 */
static void deaths_poll(struct team_world *w)
{
	bool failed = false;

	if (!pthread_mutex_trylock(&w->boot_lock)) {
		world_take_deaths(w);
		failed = w->opening && !sci_boot_complete(w->boot);
		pthread_mutex_unlock(&w->boot_lock);
	}
	/* else a thread in sci_team_shrink() has the lock, and takes the launcher's reports */
	for (int i = 0; i < w->size; i++) {
		struct sci_peer *p = sci_load_acquire(&w->ranks[i].peer);

		if ((p && sci_peer_state(p) == -ECONNRESET) || (failed && i != w->rank))
			rank_died(w, i);
	}
}

int world_dead(const struct team_world *w, int rank)
{
	return sci_load_acquire(&w->ranks[rank].dead);
}

/* Return the tag of the message that reports a broken team. The low 24 bits are the errno. */
static uint64_t break_tag(const struct sci_team *t, int error)
{
	return t->uid << 24 | (uint32_t)-error;
}

/*
 * Send a message to @rank. If the connection has ended for lack of memory, the process may be alive:
 * send the message on a new connection.
 */
static int break_send(struct team_world *w, int rank, const struct sci_send *send)
{
	struct sci_peer *peer;
	int ret = world_peer(w, rank, &peer);

	ret = ret ? ret : sci_isendm(peer, send, NULL);
	if (ret != -ENOBUFS)
		return ret;
	ret = sci_peer_open(w->ep, &w->ranks[rank].addr, OPEN_MS, &peer);
	return ret ? ret : sci_isendm(peer, send, NULL);
}

static bool death_is_reported(const struct sci_team *t)
{
	for (int i = 0; i < t->size; i++)
		if (sci_load_relaxed(&t->world->ranks[t->members[i].world].reported))
			return true;
	return false;
}

/*
 * Send @error from member t->told on. After a send without memory, the next call continues. Do not
 * send -ECONNRESET if the launcher reports the death of a member to all processes.
 */
static void break_announce(struct sci_team *t, int error)
{
	struct sci_send send = { .context = TEAM_CTX_BROKEN, .tag = break_tag(t, error),
				 .flags = SCI_SEND_TAGGED | SCI_SEND_COPY };
	struct team_world *w = t->world;

	if (error == -ECONNRESET && t->told < t->size &&
	    (team_now_ms() < t->tell_ms || death_is_reported(t)))
		return;
	for (; t->told < t->size; t->told++) {
		int rank = t->members[t->told].world, ret;

		if (rank == w->rank || world_dead(w, rank))
			continue;
		ret = break_send(w, rank, &send);
		if (ret == -EAGAIN || ret == -ENOMEM)
			return;
	}
}

/*
 * If another member has sent the error of a broken team, break this process's team, too. If the team
 * is broken already, drop the message: a message that stays would slow down all receives.
 */
static void break_receive(struct sci_team *t)
{
	struct sci_status status;
	struct sci_msg *msg;

	while (!sci_tmatch(t->world->ep, NULL, TEAM_CTX_BROKEN, break_tag(t, 0), 0xffffff, 0, &msg,
			   &status)) {
		if (!sci_load_relaxed(&t->error))
			sci_store_relaxed(&t->error, -(int)(status.tag & 0xffffff));
		sci_store_relaxed(&t->world->broken, true);
		sci_msg_free(msg);
	}
}

void team_break(struct sci_team *t, int error)
{
	struct team_world *w = t->world;

	sci_store_relaxed(&w->broken, true);
	if (sci_load_relaxed(&t->error))
		return;
	pthread_mutex_lock(&w->broken_lock);
	sci_store_relaxed(&t->error, error);
	t->told = 0;
	t->tell_ms = team_now_ms() + REPORT_MS;
	break_announce(t, error);
	pthread_mutex_unlock(&w->broken_lock);
}

/*
 * Exchange the errors of broken teams. Receive and drop the messages of their collective calls: the
 * senders have abandoned these calls, too, but must wait until the messages have been received.
 */
static void break_poll(struct team_world *w)
{
	struct list *pos, *n;
	struct sci_msg *msg;

	if (pthread_mutex_trylock(&w->broken_lock))
		return;
	list_for_each_safe(pos, n, &w->teams) {
		struct sci_team *t = container_of(pos, struct sci_team, link);

		break_receive(t);
		if (sci_load_relaxed(&t->error))
			break_announce(t, t->error);
		while (sci_load_relaxed(&t->error) &&
		       !sci_tmatch(w->ep, NULL, TEAM_CTX_COLL, t->uid << 24, 0xffffff, 0,
				   &msg, NULL))
			sci_msg_free(msg);
	}
	pthread_mutex_unlock(&w->broken_lock);
}

void world_poll(struct team_world *w)
{
	uint64_t now = team_now_ms();

	sci_progress(w->ep);
	if (sci_load_relaxed(&w->queued))
		colls_poll(w);
	if (sci_load_relaxed(&w->n_lock_requests))
		locks_poll(w);
	if (sci_load_relaxed(&w->broken) && w->far)
		break_poll(w);
	if (now < sci_load_relaxed(&w->poll_ms))
		return;
	sci_store_relaxed(&w->poll_ms, now + DEATHS_MS);
	deaths_poll(w);
	break_poll(w);
}

int team_check(struct sci_team *t)
{
	struct team_world *w = t->world;
	int deaths = sci_load_acquire(&w->deaths);

	if (sci_load_relaxed(&t->error) || deaths == sci_load_relaxed(&t->deaths))
		return sci_load_relaxed(&t->error);
	for (int i = 0; i < t->size; i++)
		if (world_dead(w, t->members[i].world))
			team_break(t, -ECONNRESET);
	sci_store_relaxed(&t->deaths, deaths);
	return sci_load_relaxed(&t->error);
}

/* ---- open ---- */

enum memory { MEMORY_ALL, MEMORY_NODE, MEMORY_NONE };

static int memory_mode(enum memory *mode)
{
	static const char *const names[] = { "all", "node", "none" };
	const char *s = getenv("SCI_TEAM_MEMORY");

	*mode = MEMORY_ALL;
	if (!s || !*s)
		return 0;
	for (unsigned int i = 0; i < 3; i++)
		if (!strcmp(s, names[i])) {
			*mode = (enum memory)i;
			return 0;
		}
	return sci_env_bad("SCI_TEAM_MEMORY", s, "not all, node or none");
}

/* Bytes of symmetric memory: @attr, else SCI_SYMMETRIC_SIZE (suffix K, M, G), else 16 MiB. */
static int symmetric_size(const struct sci_team_attr *attr, uint64_t *size)
{
	const char *s = getenv("SCI_SYMMETRIC_SIZE");
	unsigned int shift = 0;
	char *end;

	*size = attr->symmetric_size;
	if (*size)
		return 0;
	*size = 16u << 20;
	if (!s || !*s)
		return 0;
	*size = strtoull(s, &end, 0);
	if (*end && strchr("kKmMgG", *end)) {
		shift = strchr("kK", *end) ? 10 : strchr("mM", *end) ? 20 : 30;
		end++;
	}
	if (*end || end == s || *s == '-' || !*size || *size > UINT64_MAX >> shift >> 1)
		return sci_env_bad("SCI_SYMMETRIC_SIZE", s,
				   "not a number of bytes, which may end in K, M or G");
	*size <<= shift;
	return 0;
}

/* The first data that all processes exchange, through the launcher. */
struct world_hello {
	struct sci_addr addr;
	uint32_t group;
	int32_t error;
	struct sci_key page;
};

/*
 * Return the same number for all ranks that share memory. With SCI_NET, these are the ranks on one
 * machine with the same SCI_FABRIC; sockets connect the other ranks.
 */
static uint32_t memory_group(void)
{
	const char *net = getenv("SCI_NET"), *fabric = getenv("SCI_FABRIC");
	char text[256] = "";
	uint32_t hash = 5381;
	FILE *f;

	if (!net || !*net)
		return 0;
	f = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (f && !fgets(text, 64, f))
		*text = '\0';
	if (f)
		fclose(f);
	strncat(text, fabric ? fabric : "", sizeof(text) - strlen(text) - 1);
	for (const char *c = text; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	/* the most significant bit marks a rank without shared memory */
	return hash & 0x7fffffffu;
}

static int world_endpoint(struct team_world *w, uint32_t flags, enum memory mode,
			  struct world_hello *mine)
{
	size_t len = sizeof(struct team_page) + (size_t)w->size;
	void *page;
	int ret;

	ret = sci_ep_open(&w->ep, 0, flags & SCI_TEAM_SINGLE_THREAD ?
			  SCI_EP_SINGLE_THREAD : 0);
	if (ret)
		return ret;
	w->traits = sci_ep_traits(w->ep);
	ret = sci_ep_addr(w->ep, &mine->addr);
	ret = ret ? ret : locks_open(w);
	if (ret)
		return ret;
	if (!(w->traits & SCI_TRAIT_SHARED_MEMORY) || mode == MEMORY_NONE)
		mine->group = 0x80000000u | (uint32_t)w->rank;
	else
		mine->group = mode == MEMORY_NODE ? mine->addr.node : memory_group();
	ret = world_alloc(w, len, &page, &mine->page);
	w->page = ret ? NULL : page;
	return ret;
}

/* Return whether this machine has more known ranks than CPUs for this process. */
static bool world_is_crowded(const struct team_world *w)
{
	cpu_set_t set;
	int near = 0;

	for (int i = 0; i < w->size; i++)
		near += w->ranks[i].group == w->ranks[w->rank].group;
	if (w->info->launched && (int)w->info->local_size > near)
		near = (int)w->info->local_size;
	return sched_getaffinity(0, sizeof(set), &set) || near > CPU_COUNT(&set);
}

static int near_map(struct team_world *w, const struct world_hello *all)
{
	uint32_t group = w->ranks[w->rank].group;
	int ret = 0;

	/* open all connections first: they are established in parallel */
	for (int i = 0; !ret && i < w->size; i++) {
		struct sci_peer *p;

		if (i != w->rank && w->ranks[i].group == group)
			ret = world_peer(w, i, &p);
	}
	w->ranks[w->rank].page = w->page;
	for (int i = 1; !ret && i < w->size; i++) {
		int r = (w->rank + i) % w->size;
		void *page = NULL;

		if (w->ranks[r].group != group)
			continue;
		ret = world_map(w, r, &all[r].page, &page);
		w->ranks[r].page = page;
	}
	return ret;
}

/*
 * Exchange hellos, and map the pages of the processes on shared memory. @mapped: set to the error
 * of the mapping, which the other processes have not received yet
 */
static int world_meet(struct team_world *w, const struct world_hello *mine, int *mapped)
{
	struct world_hello *all = calloc((size_t)w->size, sizeof(*all));
	int ret;

	if (!all)
		return -ENOMEM;
	ret = sci_boot_gather(w->boot, mine, all, sizeof(*all));
	for (int i = 0; !ret && i < w->size; i++) {
		w->ranks[i].addr = all[i].addr;
		w->ranks[i].group = all[i].group;
		ret = all[i].error;
		if (all[i].group != mine->group)
			w->far = true;
	}
	*mapped = ret ? ret : near_map(w, all);
	free(all);
	return ret;
}

static void world_free_all(struct team_world *w)
{
	struct list *l;

	while ((l = list_pop(&w->teams)))
		team_free(container_of(l, struct sci_team, link));
	if (w->ep) {
		symmetric_close(w);
		while ((l = list_pop(&w->chunks))) {
			struct team_chunk *c = container_of(l, struct team_chunk, link);

			heap_clear(&c->heap);
			free(c);
		}
		sci_ep_close(w->ep);
	}
	locks_close(w);
	sci_boot_close(w->boot);
	pthread_mutex_destroy(&w->lock);
	pthread_mutex_destroy(&w->boot_lock);
	pthread_mutex_destroy(&w->broken_lock);
	pthread_mutex_destroy(&w->far_lock);
	free(w->ranks);
	free(w);
}

/*
 * Make progress while the process waits for the launcher: peers may still need its answers to
 * connect, for example after a link was down.
 */
static void world_idle(void *arg)
{
	struct team_world *w = arg;

	sci_progress(w->ep);
}

/* Join the job first: after that, the launcher reports a failure of this process to the others. */
static int world_new(struct team_world **out, const char *socket)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct sci_boot *boot;
	struct team_world *w;
	int ret = sci_boot_open(&boot, socket);

	if (ret)
		return ret;
	w = calloc(1, sizeof(*w));
	if (!w) {
		sci_boot_close(boot);
		return -ENOMEM;
	}
	w->boot = boot;
	pthread_mutex_init(&w->lock, NULL);
	pthread_mutex_init(&w->boot_lock, NULL);
	pthread_mutex_init(&w->broken_lock, NULL);
	pthread_mutex_init(&w->far_lock, NULL);
	list_init(&w->teams);
	list_init(&w->chunks);
	list_init(&w->far_requests);
	list_init(&w->lock_requests);
	list_init(&w->lock_calls);
	pthread_once(&once, forks_watch);
	w->fork_gen = atomic_load(&team_fork_gen);
	w->info = sci_boot_info(w->boot);
	w->rank = (int)w->info->rank;
	w->size = (int)w->info->size;
	w->ranks = calloc((size_t)w->size, sizeof(*w->ranks));
	if (!w->ranks) {
		world_free_all(w);
		return -ENOMEM;
	}
	*out = w;
	return 0;
}

/* Exchange hellos through the launcher. Return the first error in a hello, or 0. */
static int world_exchange(struct team_world *w, const struct team_hello *mine,
			  struct team_hello *all)
{
	int ret = sci_boot_gather(w->boot, mine, all, sizeof(*mine));

	return ret ? ret : team_hellos_error(all, w->size);
}

/*
 * Make the team of all processes. @error: an earlier error of this process, or 0. A failed process
 * still takes part in the exchanges, so that the other processes receive its error.
 */
static int world_team(struct team_world *w, int error, struct sci_team **out)
{
	struct team_hello mine, *all = calloc((size_t)w->size, sizeof(*all));
	int *ranks = calloc((size_t)w->size, sizeof(*ranks));
	struct sci_team *t = NULL;
	int ret = -ENOMEM;

	memset(&mine, 0, sizeof(mine));
	mine.error = error ? error : -ENOMEM;
	for (int i = 0; ranks && i < w->size; i++)
		ranks[i] = i;
	if (!error && ranks && all)
		mine.error = team_new(w, ranks, w->size, &t);
	if (t)
		mine.error = team_hello(t, &mine);
	if (all)
		ret = world_exchange(w, &mine, all);
	if (!ret) {
		assert(t && all);	/* else the own hello had an error */
		mine.error = team_map(t, all, t);
		ret = world_exchange(w, &mine, all);
	}
	free(ranks);
	free(all);
	if (ret) {
		team_free(t);
		return ret;
	}
	t->all = true;
	team_enter(t);
	*out = t;
	return 0;
}

/*
 * A process that closes its world team frees its control memory, which processes on shared memory
 * may still poll. So each process writes a bye byte to the pages of the others after its last read,
 * and waits for all bye bytes in its own page.
 */
static void near_bye_send(struct team_world *w)
{
	for (int i = 0; i < w->size; i++) {
		if (!w->ranks[i].page)
			continue;
		sci_store_release(&w->ranks[i].page->bye[w->rank], 1);
		world_wake(w, i);
	}
}

int sci_team_open(struct sci_team **team, const struct sci_team_attr *from)
{
	struct sci_team_attr attr = { 0 };
	struct world_hello mine;
	unsigned int single_copy_min = UINT_MAX;
	struct team_world *w;
	struct sci_team *t;
	enum memory mode;
	uint64_t size;
	int ret = team ? 0 : -EINVAL, mapped;

	if (!ret && from)
		ret = attr_copy(&attr, sizeof(attr), from, offsetof(struct sci_team_attr, boot));
	if (!ret && (attr.reserved || attr.flags & ~(uint32_t)SCI_TEAM_SINGLE_THREAD))
		ret = -EINVAL;
	ret = ret ? ret : memory_mode(&mode);
	ret = ret ? ret : symmetric_size(&attr, &size);
	ret = ret ? ret : sci_env_number("SCI_TEAM_SINGLE_COPY_MIN", &single_copy_min, 0,
					 0, UINT_MAX - 1, "not a number of bytes below 4 GiB");
	if (ret)
		return ret;
	ret = world_new(&w, attr.boot);
	if (ret)
		return ret == -EBUSY ? -EALREADY : ret;
	w->single_copy_min = single_copy_min;
	w->opening = true;
	memset(&mine, 0, sizeof(mine));
	mine.error = world_endpoint(w, attr.flags, mode, &mine);
	sci_boot_idle(w->boot, world_idle, w);
	ret = world_meet(w, &mine, &mapped);
	w->crowded = world_is_crowded(w);
	ret = ret ? ret : world_team(w, mapped, &t);
	ret = ret ? ret : symmetric_open(t, size);
	/* world_free_all() closes the endpoint before it leaves the job */
	sci_boot_idle(w->boot, NULL, NULL);
	if (ret) {
		/*
		 * If a process has died in the last step, others may have opened the team: they must
		 * not wait for this process when they close it.
		 */
		near_bye_send(w);
		world_free_all(w);
		return ret;
	}
	w->opening = false;
	*team = t;
	return 0;
}

static void near_bye_exchange(struct team_world *w)
{
	struct team_wait wait;

	near_bye_send(w);
	for (int i = 0; i < w->size; i++) {
		team_wait_init(&wait, -1);
		wait.own = true;
		while (w->ranks[i].page && !sci_load_acquire(&w->page->bye[i]) &&
		       !world_dead(w, i))
			team_wait_more(w, &wait);
	}
}

/*
 * If the barrier of sci_team_close() fails, each process sends a bye message to each live process
 * that is not on shared memory, and waits for a bye message or the end of the connection.
 */
static void far_bye_send(struct team_world *w)
{
	struct sci_send send = { .context = TEAM_CTX_BYE,
				 .flags = SCI_SEND_TAGGED | SCI_SEND_COPY };
	struct sci_peer *peer;

	for (int i = 0; i < w->size; i++)
		if (!w->ranks[i].page && !world_dead(w, i) && !world_peer(w, i, &peer))
			while (sci_isendm(peer, &send, NULL) == -EAGAIN)
				world_poll(w);
}

/*
 * If a process has left the job, no connection to it is established, and nothing reports this: do
 * not wait for it.
 */
static void far_bye_wait(struct team_world *w)
{
	uint64_t missing_ms = team_now_ms() + MISSING_MS;
	struct sci_peer *peer;
	struct team_wait wait;
	struct sci_msg *msg;

	for (int i = 0; i < w->size; i++) {
		if (w->ranks[i].page || world_peer(w, i, &peer))
			continue;
		team_wait_init(&wait, -1);
		while (!world_dead(w, i) &&
		       sci_tmatch(w->ep, peer, TEAM_CTX_BYE, 0, 0, 0, &msg, NULL) == -EAGAIN &&
		       (team_now_ms() < missing_ms || sci_peer_state(peer) != -EINPROGRESS))
			team_wait_more(w, &wait);
	}
}

int sci_team_close(struct sci_team *team)
{
	struct team_world *w;
	bool failed;

	if (!team)
		return 0;
	w = team->world;
	if (world_usable(w))
		return -ENOTCONN;
	if (&team->link == w->teams.next && team->size == w->size) {
		far_quiet(w);
		failed = sci_team_barrier(team);
		if (failed)
			far_bye_send(w);
		near_bye_exchange(w);
		/*
		 * The barrier of a far member may have succeeded. That member sends no bye message,
		 * and leaves after its own near_bye_exchange().
		 */
		if (failed)
			far_bye_wait(w);
		world_free_all(w);
		return 0;
	}
	return team_leave(team);
}
